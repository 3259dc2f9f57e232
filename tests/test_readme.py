"""README: short, its links lead somewhere, and what it says is so.

`python -m tests.test_readme` writes the chapters of its evening anew.
"""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from demos.live._examples import PRELUDE
from demos.site._contents import book

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
MOST_LINES, MOST_WORDS, WIDEST = 220, 2_600, 120


def run_block(folder, block):
    """Run a block of README in a process of its own."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", block],
        cwd=folder,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(ROOT), "PYTHONUTF8": "1", "OPENBLAS_NUM_THREADS": "1"},
        check=False,
    )


# ------------------------------------------------------------------ the whole page


def test_it_is_short():
    lines = README.splitlines()
    assert len(lines) <= MOST_LINES and len(README.split()) <= MOST_WORDS
    assert max(map(len, lines)) <= WIDEST


def test_its_sections_stand_in_the_order_of_a_visit():
    assert re.findall(r"^## (.+)$", README, re.MULTILINE) == [
        "An evening",
        "Run",
        "Draw",
        "Your own rule",
        "Your own model",
        "Exercises",
        "What is checked",
        "Working on it",
    ]


def test_every_link_leads_to_a_file_or_a_heading():
    links = re.findall(r"\]\(([^)\s]+)\)", README)
    links += re.findall(r'(?:src|srcset|href)="([^"]+)"', README)
    headings = re.findall(r"^#+ (.+)$", README, re.MULTILINE)
    slugs = {f"#{heading.lower().replace(' ', '-')}" for heading in headings}
    ours = [link for link in links if not link.startswith("https://")]
    assert len(ours) > 20
    assert not [x for x in ours if x not in slugs and not (ROOT / x).is_file()]


def test_every_command_and_file_that_it_names_exists():
    commands = set(re.findall(r"python -m demos (\w+)", README)) - {"NAME"}
    assert commands and all(any((ROOT / "demos").glob(f"*/{name}.py")) for name in commands)
    named = set(re.findall(r"`((?:minigrad|attention|demos|tests)/[\w/.]*)`", README))
    assert len(named) > 8 and not [name for name in named if not (ROOT / name).exists()]


def test_every_picture_is_told_in_words():
    pictures = re.findall(r"<img\s[^>]*>", README)
    assert len(pictures) == 3
    for picture in pictures:
        assert len(re.search(r'\balt="([^"]*)"', picture)[1]) >= 40, picture


# ------------------------------------------------------------------ the first screen


def test_the_three_links_lead_to_files_until_the_site_has_an_address():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    site = settings["tool"]["minigrad"]["site"]
    links = dict(re.findall(r"^- \*\*\[(\w+)\]\(([^)]+)\)\*\*", README, re.MULTILINE))
    assert list(links) == ["Read", "Move", "Do"]
    assert all(
        link.startswith(site) if site else (ROOT / link).is_file() for link in links.values()
    )


def test_its_question_is_that_of_the_sites_first_page():
    (question,) = re.findall(r"^\*\*(.+\?)\*\*", README, re.MULTILINE)
    assert question in (ROOT / "demos/site/_landing.py").read_text(encoding="utf-8")


def test_the_opening_block_is_about_twelve_lines_and_draws_what_it_says(tmp_path):
    assert 10 <= len([line for line in BLOCKS[0].splitlines() if line.strip()]) <= 14
    exec(
        compile(BLOCKS[0].replace('"attention.svg"', f'r"{tmp_path}/a.svg"'), "README", "exec"), {}
    )
    assert (tmp_path / "a.svg").read_text().count('class="node"') == 8


def test_its_commands_for_a_new_environment_are_those_that_ci_runs():
    first, second = re.findall(r"^    (python3 -m venv.*)$", README, re.MULTILINE)
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    for step in second.split(" && "):
        assert step in ci
    assert first.split(" && ")[2] == ".venv/bin/python -m demos scaling"
    assert README.index(first) < README.index("\n## ") < README.index(second)
    assert "uv run --extra demos python -m demos scaling" in README


def test_what_runs_before_a_commit_is_what_ci_runs_and_the_workflow_calls_nothing_else():
    ci = map(str.strip, (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines())
    hooks = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    entries = re.findall(r"entry: (.+)", hooks)
    assert len(entries) == 3 and set(entries) <= set(ci)
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    assert re.findall(r"run: (.+)", workflow) == [".ci/run", ".ci/fast python"]
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert settings["project"]["requires-python"] == ">=3.11"
    assert re.findall(r'"(3\.\d+)"', workflow) == ["3.11", "3.11", "3.12", "3.13", "3.14"]


# ------------------------------------------------------------------ blocks


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_a_block_runs(block, run_once):
    _, done = run_once(run_block, block)
    assert done.returncode == 0, done.stderr


def test_a_block_prints_what_the_page_says(run_once):
    said = re.findall(r"It prints `([^`]+)`", README)
    blocks = [block for block in BLOCKS if "print(" in block]
    for line, block in zip(said, blocks, strict=True):
        assert run_once(run_block, block)[1].stdout == f"{line}\n"


def test_it_says_what_an_example_needs():
    (sentence,) = re.findall(r"An example \(`>>>`\)\s+needs\s+([^.]+(?:\.\w[^.]*)*)\.\n", README)
    names = re.findall(r"`([^`]+)`", sentence)
    lines = [f"from {name} import *" for name in names[2:]]
    assert PRELUDE.splitlines() == [names[0], *lines] and names[1] == "from … import *"


# ------------------------------------------------------------------ the evening


ROW = r"^- \[([\d.]+) · ([^\]]+)\]\((\S+)\), (\d+) min: (.+)$"


def evening():
    """Return the rows of the evening, as the table of contents has them, and their minutes."""
    chapters = [chapter for chapter in book()[0].values() if chapter.star]
    rows = [
        (each.number, each.title, each.source.path, str(each.minutes), each.after)
        for each in chapters
    ]
    return rows, sum(each.minutes for each in chapters)


def test_the_evening_is_that_of_the_table_of_contents():
    """(A minute more or less is rounding: the page lives through edits.)"""
    said, (rows, minutes) = re.findall(ROW, README, re.MULTILINE), evening()
    assert [(*row[:3], row[4]) for row in said] == [(*row[:3], row[4]) for row in rows]
    for row, found in zip(said, rows, strict=True):
        assert abs(int(row[3]) - int(found[3])) <= 1, "run python -m tests.test_readme"
    assert len(rows) == 14 and "These fourteen files" in README
    total = int(re.search(r"files take (\d+) minutes", README)[1])
    assert total == sum(int(row[3]) for row in said) and abs(total - minutes) <= 5


if __name__ == "__main__":
    rows, minutes = evening()
    lines = [f"- [{n} · {title}]({path}), {m} min: {after}" for n, title, path, m, after in rows]
    listed = re.compile(rf"(?:{ROW.rstrip('$')}\n)+", re.MULTILINE)
    text = listed.sub(lambda _: "\n".join(lines) + "\n", README)
    text = re.sub(r"files take \d+ minutes", f"files take {minutes} minutes", text)
    (ROOT / "README.md").write_text(text, encoding="utf-8")
