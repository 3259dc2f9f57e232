"""Demos: run as a user runs them, without a display."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from demos import files
from demos.site._contents import PICTURES as CHAPTERS_PICTURES
from tests.demos.running import ENVIRONMENT, ROOT, assert_light, demo_here, python
from tests.demos.test_texts import TEXTS
from tests.demos.test_training_demos import TRAIN
from tests.test_readme import README


@pytest.fixture
def scaling(finished):
    """The main demo, run once: its folder and what it printed."""
    return finished("scaling", "--seed", "1")


# ------------------------------------------------------------------ value


def test_scaling_reproduces_the_text_and_tells_dead_from_alive(scaling):
    _, printed = scaling
    assert "121 of 121 numbers agree" in printed
    assert "head 1: 35 derivatives of order 1 and 2 checked, 35 agree" in printed
    assert "nevertheless its second head is dead" in printed
    assert printed.count("they agree to") == 6


def test_scaling_measures_what_it_claims(scaling):
    _, printed = scaling
    cell = r"(\S+) ± \S+\s+"
    rows = re.findall(rf"^ +(\d+) +(none|1/√d_k) +{cell * 6}(\S+) ± ", printed, re.MULTILINE)
    assert len(rows) == 18
    table = {(int(d), s == "none"): [float(m) for m in found] for d, s, *found in rows}
    for (d_k, raw), (variance, entropy, *_) in table.items():
        assert variance == pytest.approx(d_k if raw else 1, rel=0.15)
        assert raw or 0.85 < entropy < 0.92
    mean, median, dead = 3, 4, 5
    assert table[1024, True][mean] > 3 * table[4, True][mean]  # one average hides it
    assert table[1024, True][median] < table[4, True][median] / 20
    assert table[1024, True][dead] > 0.3 and table[1024, False][dead] == 0


# ------------------------------------------------------------------ what it leaves behind


def test_scaling_leaves_its_pictures_and_one_page(scaling):
    folder, _ = scaling
    stems = {"sweep", "head_scaled", "head_unscaled", "multi_head"}
    expected = {f"{stem}.{ending}" for stem in stems for ending in ("svg", "png")}
    assert {path.name for path in folder.iterdir()} == expected | {"index.html", "steps.html"}
    assert f'href="{folder.name}/index.html"' in (folder.parent / "index.html").read_text("utf-8")
    assert_light(folder)


def test_the_two_heads_share_one_colour_scale(scaling):
    legends = []
    for name in ("head_scaled", "head_unscaled"):
        svg = (scaling[0] / f"{name}.svg").read_text()
        legends.append(re.findall(r">\s*(\de[^<]*\d)\s*</text>", svg))
    assert legends[0] == legends[1] == ["1e-06"]


# ------------------------------------------------------------------ the list


def test_first_gradient_shows_sixteen_gradients_three_ways_and_their_check(finished):
    folder, printed = finished("first_gradient", "--seed", "1")
    kept = {"graph.png", "graph.svg", "index.html", "steps.html"}
    assert {path.name for path in folder.iterdir()} == kept
    assert_light(folder.parent)
    rows = re.findall(r"^   ∂L/∂([qkv])[₁₂]?  +(-?\d.*)$", printed, re.MULTILINE)
    rows = [re.split("  +", numbers) for _, numbers in rows]
    assert [len(row) for row in rows] == [3] * 5  # by the engine, by hand, by moving
    assert all(row == [row[0]] * 3 for row in rows) and "FAILED" not in printed
    found = [float(number) for row in rows for number in row[0].split(", ")]
    expected = [np.log(3) * 3 / 4, -3, 0, 0, 1.5, 0, 0, 0, -1.5, 0, 0, 0, 0.75, -0.75, 0.25, -0.25]
    np.testing.assert_allclose(found, expected, rtol=1e-3)


PICTURES = sorted((ROOT / "demos" / "pictures").glob("*.svg"))
SVG = "{http://www.w3.org/2000/svg}"


def drawn(path):
    """Return the data of an SVG, which are in its metadata."""
    return json.loads(ElementTree.parse(path).find(f"{SVG}metadata").text)


def same(a, b):
    """Equal but for the last digits of numbers, and for what is rounding noise in both."""
    if isinstance(a, float) and isinstance(b, float):
        return a == pytest.approx(b, rel=0.02) or max(abs(a), abs(b)) < 1e-12
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


def test_draw_draws_the_pictures_of_the_readme_again(finished):
    folder, _ = finished("draw")
    assert {path.name for path in PICTURES} == {path.name for path in folder.iterdir()}
    for path in PICTURES:
        if path.stem == "map":  # (matplotlib's, without data)
            continue
        assert same(drawn(path), drawn(folder / path.name)), path.name


def test_the_readme_or_the_site_shows_every_picture_that_is_kept_and_none_is_large():
    """(That each has a description: test_readme, test_site.)"""
    shown = set(re.findall(r'"demos/pictures/(\w+)\.svg"', README))
    for path in (ROOT / "demos" / "site").iterdir():
        if path.suffix in (".py", ".html", ".md"):
            shown |= set(re.findall(r'"pictures/(\w+)\.svg"', path.read_text("utf-8")))
    shown |= {name for name, _ in CHAPTERS_PICTURES.values()}
    assert sorted(shown) == [path.stem for path in PICTURES]
    assert all(path.stat().st_size < 100_000 for path in PICTURES)


def test_the_readme_says_the_numbers_of_its_first_picture():
    """(That they are right: test_hero.)"""
    cases = drawn(ROOT / "demos" / "pictures" / "hero.svg")["cases"]
    at_q, rare_at_q = (case["line"][0] for case in cases)
    usual, rare = (f"{case['keys']} keys at d_k = {case['d_k']}" for case in cases)
    smaller, readme = f"{float(f'{1 / rare_at_q:.1g}'):,.0f}", " ".join(README.split())
    assert f"about {at_q:.0f} times larger than with it for {usual}, and" in readme
    assert f"and about {smaller} times smaller for {rare}." in readme


SHOWN = {"draw", "first_gradient", "scaling"}  # above
ELSEWHERE = {"benchmark", "laboratory", "learn", "museum", "pretrained", "site", "texts"}
ELSEWHERE |= {"why_half"}


def test_every_demo_is_listed_with_a_line_and_its_seconds_and_tested_and_twelve_are_in_the_readme():
    names = set(files())
    assert names == SHOWN | ELSEWHERE | set(TEXTS) | set(TRAIN)
    listed = re.findall(r"^  (\w+) +(\d+) s   \S.{20,}$", demo_here().stdout, re.MULTILINE)
    assert {name for name, _ in listed} == names
    twelve = re.findall(r"^- `(\w+)`, (\d+) s: .{20,}$", README, re.MULTILINE)
    assert len({*twelve} & {*listed}) == len(twelve) == 12


def test_the_list_names_the_page_of_all_pages_where_there_is_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "Pages" not in demo_here().stdout
    (tmp_path / "out").mkdir()
    (tmp_path / "out/index.html").touch()
    said = f"Pages of the demos that you have run: {Path('out/index.html')}\n"
    assert demo_here().stdout.endswith(said)


# ------------------------------------------------------------------ refusal


def test_an_unknown_demo_is_one_sentence_with_a_guess():
    done = demo_here("scalign")
    assert done.returncode == 2
    guess, _, names = done.stderr.strip().partition(": the demos are ")
    assert guess == "there is no demo 'scalign' (did you mean scaling?)"
    assert names.split(", ") == list(files())


def test_a_reader_that_has_read_enough_ends_a_demo_without_a_traceback(tmp_path):
    line = f"python -m demos museum --out {tmp_path} | head -2 > /dev/null; exit ${{PIPESTATUS[0]}}"
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    options = {"cwd": ROOT, "env": ENVIRONMENT | {"PATH": path}, "check": False}
    done = subprocess.run(["bash", "-c", line], capture_output=True, **options)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        (
            *("--out", "{}/file/out"),
            r"cannot write to the output folder \S+: Not a directory; choose one with --out\n",
        ),
        ("--seed", "-1", r"--seed must be 0 or larger, and below 2\*\*32: got -1\n"),
    ],
)
def test_an_impossible_option_is_refused_before_any_work(option, value, said, tmp_path):
    (tmp_path / "file").write_text("in the way")
    done = demo_here("scaling", option, value.format(tmp_path))
    assert done.returncode == 2 and done.stdout == ""
    assert re.fullmatch(said, done.stderr)


def test_an_error_with_a_sentence_of_its_own_is_this_sentence(monkeypatch):
    def fails(*given, **more):
        raise OSError("a.svg is not a regular file")

    monkeypatch.setattr("runpy.run_module", fails)
    done = demo_here("draw")
    assert (done.returncode, done.stderr) == (2, "draw: a.svg is not a regular file\n")


@pytest.mark.parametrize(
    ("package", "name", "said"),
    [
        ("tqdm", "scaling", 'scaling needs tqdm: pip install -e ".[demos]"\n'),
        (
            *("safetensors", "two_moons"),
            'two_moons: checkpoints need safetensors: pip install -e ".[save]"\n',
        ),
    ],
)
def test_a_missing_package_is_one_sentence_before_the_work(package, name, said, tmp_path):
    code = (
        f"import sys, runpy; sys.modules[{package!r}] = None; "
        f"sys.argv = ['demos', {name!r}, '--out', {str(tmp_path)!r}];"
        "runpy.run_module('demos', run_name='__main__')"
    )
    done = python("-c", code)
    assert (done.returncode, done.stderr) == (2, said)
