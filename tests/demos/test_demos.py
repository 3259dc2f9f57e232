"""Demos: run as a user runs them, without a display."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from demos import files
from demos._files import COMMANDS, docstring, resumable
from demos.pictures.forces import STILLS
from demos.site._contents import PICTURES as CHAPTERS_PICTURES
from tests.demos.running import ENVIRONMENT, ROOT, demo_here, python
from tests.demos.test_texts import TEXTS, run_of
from tests.demos.test_training_demos import TRAIN
from tests.test_readme import README

# ------------------------------------------------------------------ the pictures of README


PICTURES = sorted((ROOT / "demos" / "pictures").glob("*.svg"))
SMALL = sorted((ROOT / "demos" / "pictures" / "small").iterdir())
# How a demo runs for its small picture: as in other tests, which share the run, so that it runs
# once. Quick runs draw the same first picture, but for three texts, where it has fewer draws in it,
# and for the demos that train. The slow group runs those whole.
WHOLE = ("mammal_and_reptile", "sky_is_blue", "your_journey")
RUN = {path.stem: (path.stem,) for path in SMALL} | {"scaling": ("scaling", "--quick")}
RUN |= {name: run_of(name, "--quick") for name in ("love_transformers", "love_you")}
RUN |= {name: run_of(name, "--marks") for name in WHOLE}
RUN |= {name: (name, "--marks") for name in TRAIN}
SLOW = ("scaling", *WHOLE, *TRAIN)
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
    names = {path.name for path in folder.glob("*.svg")}
    assert names == {"small.svg", "layer.svg", *(path.name for path in PICTURES)}
    for path in PICTURES:
        if path.stem in ("map", *STILLS):  # (matplotlib's, without data; test_hero)
            continue
        assert same(drawn(path), drawn(folder / path.name)), path.name


def pixels(path):
    return pytest.importorskip("matplotlib.image").imread(path)


def apart(picture, other):
    """Return how many pixels differ, as a share of those that are not white."""
    assert picture.shape == other.shape
    inked = (np.minimum(picture, other)[..., :3] < 0.9).any(axis=2)
    differ = np.abs(picture - other).max(axis=2) > 0.1
    return differ.sum() / inked.sum()


def kept_picture(path):
    """Return a case, in the slow group where the run is."""
    marks = [pytest.mark.slow] if path.stem in SLOW else []
    return pytest.param(path, id=path.stem, marks=marks)


@pytest.mark.parametrize("path", [kept_picture(path) for path in SMALL])
def test_a_small_picture_that_is_kept_is_that_of_a_run(finished, path):
    folder, _ = finished(*RUN[path.stem])
    run = folder / f"small{path.suffix}"
    if path.suffix == ".svg":
        assert same(drawn(path), drawn(run))
    else:
        assert apart(pixels(path), pixels(run)) < 0.05


def test_the_small_pictures_are_light_and_another_picture_is_told_from_each():
    """A picture that is moved by one pixel is another one."""
    assert sum(path.stat().st_size for path in SMALL) < 250_000
    for path in SMALL:
        if path.suffix == ".png":
            picture = pixels(path)
            assert apart(picture, np.roll(picture, 1, axis=0)) > 0.08, path


def test_the_readme_or_the_site_shows_every_picture_that_is_kept_and_none_is_large():
    """(That each has a description: test_readme, test_site.)"""
    shown = set(re.findall(r'"demos/pictures/(\w+)\.svg"', README))
    for path in (ROOT / "demos").rglob("*.*"):
        if path.suffix in (".py", ".html", ".md"):
            text = path.read_text("utf-8")
            shown |= set(re.findall(r'(?:"pictures/|[{] picture\(")(\w+)(?:\.svg)?"', text))
    shown |= {name for files in CHAPTERS_PICTURES.values() for name, _ in files}
    assert sorted(shown) == [path.stem for path in PICTURES]
    assert all(path.stat().st_size < 100_000 for path in PICTURES)


def test_the_readme_says_the_numbers_of_the_two_cases():
    """(That they are right: test_cases.)"""
    names = ("usual", "extreme")
    cases = [drawn(ROOT / "demos" / "pictures" / f"{name}.svg")["case"] for name in names]
    at_q, rare_at_q = (case["line"][0] for case in cases)
    usual, rare = (f"{case['keys']} keys at d_k = {case['d_k']}" for case in cases)
    smaller, readme = f"{float(f'{1 / rare_at_q:.1g}'):,.0f}", " ".join(README.split())
    assert f"about {at_q:.0f} times larger than with it for {usual}, and" in readme
    assert f"and about {smaller} times smaller for {rare}." in readme


SHOWN = {"draw"}  # above
ELSEWHERE = {
    "first_gradient",
    "scaling",
    "benchmark",
    "laboratory",
    "learn",
    "museum",
    "parallel",
    "pretrained",
    "site",
    "texts",
    "why_half",
}


def test_every_demo_is_listed_with_a_line_and_its_seconds_and_tested_and_twelve_are_in_the_readme():
    names = set(files())
    assert names == SHOWN | ELSEWHERE | set(TEXTS) | set(TRAIN)
    listed = re.findall(r"^  (\w+) +(\d+) s   \S.{20,}$", demo_here().stdout, re.MULTILINE)
    assert {name for name, _ in listed} == names
    twelve = re.findall(r"^- `(\w+)`, (\d+) s: .{20,}$", README, re.MULTILINE)
    assert len({*twelve} & {*listed}) == len(twelve) == 12


@pytest.mark.parametrize("name", files())
def test_a_docstring_names_the_resuming_exactly_if_the_demo_has_it(name):
    path = files()[name]
    can_resume = "--resume" in demo_here(name, "--help").stdout
    assert resumable(path) == can_resume
    assert ("--resume" in docstring(path)) == can_resume


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
    assert names.split(", ") == [*files(), *COMMANDS]


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
            "--out",
            "{}/file/out",
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
    ("name", "sentence"),
    [("reverse", "stopped; --resume keeps the trainings that are done\n"), ("draw", "stopped\n")],
)
def test_a_demo_that_is_stopped_says_how_it_continues(name, sentence, monkeypatch):
    def interrupt(module, **more):
        raise KeyboardInterrupt

    monkeypatch.setattr("runpy.run_module", interrupt)
    done = demo_here(name)
    assert (done.returncode, done.stderr) == (128 + signal.SIGINT, sentence)


@pytest.mark.parametrize("name", ["two_moons", "texts"])
def test_a_demo_runs_without_a_standard_error(name, tmp_path):
    command = f"'{sys.executable}' -m demos {name} --quick --out '{tmp_path}' 2>&-"
    done = subprocess.run(command, shell=True, cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 0 and (tmp_path / "index.html").exists()


@pytest.mark.parametrize(
    ("package", "name", "said"),
    [
        ("tqdm", "scaling", 'scaling needs tqdm: pip install -e ".[demos]"\n'),
        ("nbformat", "site", 'site needs nbformat: pip install -e ".[site]"\n'),
        (
            "safetensors",
            "two_moons",
            "two_moons: checkpoints need safetensors: pip install safetensors\n",
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
