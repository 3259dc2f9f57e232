"""The laboratory as a demo: its page, what is kept of it, and what it refuses."""

import importlib.util
import json
import re

import pytest

from tests.demos.running import assert_light, demo

HAS_DASK = importlib.util.find_spec("distributed") is not None
PICTURES = {"map", "distributions", "hill", "steps", "trained"}


@pytest.fixture
def ran(finished):
    """`laboratory --quick`: its folder, and what it printed."""
    return finished("laboratory", "--quick")


def kept(folder):
    """The files of results, by name."""
    return {path.name: path.read_bytes() for path in folder.glob("*.jsonl")}


@pytest.mark.beside("laboratory", "--quick")
def test_it_leaves_a_page_its_pictures_and_its_results(ran):
    folder, printed = ran
    assert {path.stem for path in folder.glob("*.svg")} == PICTURES
    assert_light(folder)
    assert len(kept(folder)) == 15
    for content in kept(folder).values():
        first, *rows = map(json.loads, content.decode().splitlines())
        assert first["sweep"]["seed"] == 0 and rows
    page = (folder / "index.html").read_text("utf-8")
    (judged,) = re.findall(r"\n\d+ of (\d+) checks passed; --marks shows them\n$", printed)
    verdicts = re.findall(r"<td[^>]*>(?:passed|not reached \(--quick\))</td></tr>", page)
    assert len(verdicts) == int(judged) >= 17
    assert page.count("<svg") == len(PICTURES) and page.count("What do you expect?") >= 1


def test_the_same_command_measures_nothing_again_and_writes_the_same_page(ran):
    folder, printed = ran
    before, page = kept(folder), (folder / "index.html").read_bytes()
    done = demo("laboratory", "--quick", "--out", folder)
    assert done.returncode == 0 and done.stdout == printed
    assert kept(folder) == before and (folder / "index.html").read_bytes() == page


def test_two_processes_measure_the_same_bits_and_continue_a_torn_file(ran, tmp_path):
    folder, printed = ran
    torn = kept(folder)["sharpness_256_quick_seed_0.jsonl"]
    (tmp_path / "sharpness_256_quick_seed_0.jsonl").write_bytes(torn[: len(torn) // 2])
    done = demo("laboratory", "--quick", "--jobs", 2, "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    unordered = lambda content: sorted(content.splitlines())
    for name, content in kept(folder).items():
        assert unordered((tmp_path / name).read_bytes()) == unordered(content)
    assert done.stdout.replace(str(tmp_path), str(folder)) == printed


def test_the_page_is_read_on_a_phone_in_the_dark_and_by_a_screen_reader(ran, visit, serious):
    page = visit(ran[0] / "index.html", viewport={"width": 320, "height": 800}, color_scheme="dark")
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    assert serious(page) == []


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--jobs", 0], "the number of jobs must be from 1 to"),
        (
            ["--dask", "tcp://127.0.0.1:9"],
            "127.0.0.1:9" if HAS_DASK else 'pip install -e ".[cluster]"',
        ),
        (["--jobs", 2, "--dask", "tcp://127.0.0.1:9"], "not both"),
    ],
)
def test_workers_that_cannot_be_had_are_one_sentence(options, sentence, tmp_path):
    done = demo("laboratory", "--quick", "--out", tmp_path, *options)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert re.fullmatch(r"laboratory: .+\n", done.stderr.replace("\r", "\n").rpartition("\n\n")[2])
    assert sentence in done.stderr


def test_results_of_another_sweep_are_refused_and_stay_as_they_are(ran, tmp_path):
    content = kept(ran[0])["hill_quick_seed_0.jsonl"]
    path = tmp_path / "hill_quick_seed_1.jsonl"
    path.write_bytes(content)
    done = demo("laboratory", "--quick", "--seed", 1, "--out", tmp_path)
    assert done.returncode == 2 and "belongs to another sweep" in done.stderr
    assert path.read_bytes() == content
