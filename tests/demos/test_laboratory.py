"""The laboratory as a demo: its page, what is kept of it, and what it refuses."""

import importlib.util
import re
import shutil

import pytest

from minigrad import __version__
from tests.demos.running import assert_light, demo

HAS_DASK = importlib.util.find_spec("distributed") is not None
PICTURES = {"summary", "map", "distributions", "hill", "fits", "steps", "trained", "over_training"}


@pytest.fixture
def ran(finished):
    """Run `laboratory --quick`; return its folder and its printed text."""
    return finished("laboratory", "--quick")


def kept(folder):
    """Return the kept results, by their places in the folder."""
    files = (folder / "results").rglob("output.pkl")
    return {path.relative_to(folder): path.read_bytes() for path in files}


def test_it_leaves_a_page_its_pictures_and_its_results(ran):
    folder, printed = ran
    assert {path.stem for path in folder.glob("*.svg")} == PICTURES
    assert_light(folder)
    assert len(kept(folder)) > 100
    page = (folder / "index.html").read_text("utf-8")
    (judged,) = re.findall(r"\n\d+ of (\d+) checks passed; --marks shows them\n$", printed)
    verdicts = re.findall(r"<td[^>]*>(?:passed|not reached \(--quick\))</td></tr>", page)
    assert len(verdicts) == int(judged) >= 17
    assert page.count("<svg") == len(PICTURES)
    ids = re.findall(r'<a href="#([^"]+)"><img', page)
    assert len(ids) == 7 and all(f'<h2 id="{each}">' in page for each in ids)


def test_the_page_can_be_cited_and_printed_with_all_that_is_folded(ran, visit):
    page = visit(ran[0] / "index.html")
    cited = page.inner_text("pre:has-text('cff-version')")
    assert f"version: {__version__}" in cited and 'title: "Unequal before, vanishing after' in cited
    folded = page.locator("th", has_text="falsified by")
    assert not folded.is_visible()
    page.emulate_media(media="print")
    assert folded.bounding_box()["height"] > 0
    figures = page.locator("figcaption").all_inner_texts()
    for number in range(1, 8):
        assert any(f"Figure {number}" in caption for caption in figures), number


def test_the_same_command_measures_nothing_again_and_writes_the_same_page(ran):
    folder, printed = ran
    page = lambda: (folder / "index.html").read_text("utf-8").partition("<title>")[2]
    times = lambda: {path: (folder / path).stat().st_mtime_ns for path in kept(folder)}
    before = page(), times()
    done = demo("laboratory", "--quick", "--out", folder)
    assert done.returncode == 0 and done.stdout == printed
    assert (page(), times()) == before


def test_two_processes_measure_the_same_bits_and_what_was_kept_is_not_measured_again(ran, tmp_path):
    folder, printed = ran
    some = list(kept(folder))[::3]
    for path in some:
        shutil.copytree((folder / path).parent, (tmp_path / path).parent)
    done = demo("laboratory", "--quick", "--jobs", 2, "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    assert kept(tmp_path) == kept(folder)
    assert done.stdout.replace(str(tmp_path), str(folder)) == printed


def test_the_page_is_read_on_a_phone_in_the_dark_and_by_a_screen_reader(ran, visit, serious):
    page = visit(ran[0] / "index.html", viewport={"width": 320, "height": 800}, color_scheme="dark")
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    assert serious(page) == []


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--jobs", 0], "--jobs must be 1 or larger: got 0"),
        (["--dask", "tcp://127.0.0.1:9"], "127.0.0.1:9" if HAS_DASK else "pip install distributed"),
    ],
)
def test_workers_that_cannot_be_had_are_one_sentence(options, sentence, tmp_path):
    done = demo("laboratory", "--quick", "--out", tmp_path, *options)
    assert done.returncode == 2 and re.fullmatch("laboratory: .+\n", done.stderr)
    assert sentence in done.stderr
