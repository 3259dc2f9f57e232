"""Output folders: what a run may replace, what is kept of a stopped run, and the list of pages."""

import importlib
import os
import re
import signal
import sys
from html import unescape
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytest

import demos
from demos import files, fingerprint, options
from demos._list import PAGE, QUICK, read
from demos._page import Page
from demos._training import Run
from minigrad.nn import Linear
from minigrad.optim import SGD


@pytest.fixture
def begin(monkeypatch):
    """Give begin(demo, *words, **kinds): the demo's options, as if its file had asked for them."""
    monkeypatch.setattr(demos, "running", None)
    monkeypatch.setattr(os, "fsync", lambda handle: None)  # (no power cut is tested here)

    def begin(demo, *words, **kinds):
        monkeypatch.setattr(sys, "argv", ["demos", *map(str, words)])
        asked = {"__file__": str(files()[demo]), "options": options, "kinds": kinds}
        return eval("options('', 'A claim.', **kinds)", asked)

    return begin


def end(chosen, title="A title", **more):
    """Write the page of a run."""
    demos.running = chosen
    return Page(title, claim="A claim.").write(chosen.out, quick=chosen.quick, **more)


def contents(folder):
    """Return every file below a folder."""
    return {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}


# ------------------------------------------------------------------ law: nothing of others is lost


@pytest.mark.parametrize("theirs", ["", "work"])  # where a list belongs, where a page belongs
def test_no_file_of_others_is_replaced_by_a_page_or_a_list(theirs, begin, tmp_path, capsys):
    (tmp_path / "work").mkdir()
    in_the_way = tmp_path / theirs / "index.html"
    in_the_way.write_text("<title>All pages</title> mine")
    (tmp_path / "work/notes.html").write_text("mine")
    before = contents(tmp_path)
    if theirs:
        with pytest.raises(SystemExit):
            begin("reverse", "--out", tmp_path / "work")
        assert re.fullmatch(
            r"\S+ was not written by a demo, and its page would replace it: .+\n",
            capsys.readouterr().err,
        )
        assert contents(tmp_path) == before
    else:
        for title in ("First", "Second"):
            path = end(begin("reverse", "--out", tmp_path / "work"), title)
            assert read(path)[1] == PAGE and f"<h1>{title}</h1>" in read(path)[0]
        assert capsys.readouterr().err.count("There is no list of pages in") == 2
        assert contents(tmp_path) == before | {path: path.read_bytes()}


def test_a_folder_in_the_place_of_a_page_is_one_sentence(begin, tmp_path, capsys):
    (tmp_path / "a/index.html").mkdir(parents=True)
    assert read(end(begin("reverse", "--out", tmp_path / "one")))[1] == PAGE
    assert re.fullmatch(r"The list of pages was not renewed: .+\n", capsys.readouterr().err)
    with pytest.raises(SystemExit):
        begin("reverse", "--out", tmp_path / "a")
    assert re.match(r"cannot write the page \S+a/index\.html: ", capsys.readouterr().err)


def test_some_exhibits_replace_no_page_of_all(begin, tmp_path):
    path = end(begin("museum", "--out", tmp_path / "museum"))
    before = path.read_bytes()
    assert end(begin("museum", "--out", tmp_path / "museum"), name="some.html").exists()
    assert path.read_bytes() == before


# ------------------------------------------------------------------ law: no training is lost


def trained(chosen, what, until):
    """Run a training of a few numbers; interrupt it after step `until`, or stop at -until."""
    rng = np.random.default_rng(0)
    model = Linear(2, 1, rng=rng)
    optimizer = SGD(model.parameters(), 0.1)
    run = Run(chosen, what, model=model, optimizer=optimizer, rng=rng)
    for step in run:
        run.show(loss=chosen.seed + rng.random())
        if step == -until:
            break
        if step == until:
            run.interrupted = signal.SIGINT
    return run


def test_a_stopped_training_is_kept_until_it_is_resumed(begin, tmp_path, capsys):
    folder = tmp_path / "one two"
    begun = lambda *words: begin("reverse", "--out", folder, *words, steps=6, quick=2)
    trained(begun(), "a", 99)  # done, but without a page: nothing was stopped
    chosen = begun("--seed", "1")
    trained(chosen, "a", 99)
    end(chosen)
    chosen = begun()
    trained(chosen, "a", 99)
    with pytest.raises(SystemExit):
        trained(chosen, "b", 4)
    kept = contents(folder)
    capsys.readouterr()
    for words in ((), ("--quick",), ("--seed", "2"), ("--steps", "3")):
        with pytest.raises(SystemExit):
            begun(*words)
        assert re.fullmatch(
            r"\S+ \S+b\.safetensors is from a run that was stopped after step 4 of 6: continue it "
            r"with --resume, or begin .+\n",
            capsys.readouterr().err,
        )
    assert contents(folder) == kept
    chosen = begun("--resume")
    assert [trained(chosen, what, 99).done for what in "ab"] == [6, 6]
    end(chosen)
    chosen = begun()  # (nothing is left of the stopped run)
    trained(chosen, "a", 99)
    trained(chosen, "b", -3)  # as after a NaN
    end(chosen)
    begun()


def test_a_training_left_by_an_earlier_run_is_not_taken_for_ones_own(begin, tmp_path):
    """Seed 1 has done both trainings; seed 0 is stopped in its first, and its second is new."""
    chosen = begin("reverse", "--seed", "1", "--out", tmp_path, steps=6)
    for what in "ab":
        trained(chosen, what, 99)
    end(chosen)
    with pytest.raises(SystemExit):
        trained(begin("reverse", "--out", tmp_path, steps=6), "a", 4)
    chosen = begin("reverse", "--out", tmp_path, "--resume", steps=6)
    _, _, *whole = np.random.default_rng(0).random(8).tolist()  # (the first two are the weights)
    assert [trained(chosen, what, 99).losses for what in "ab"] == [whole] * 2


RESUMED = {  # what another run is resumed with, and what is said
    "nothing": (("--out", "{}/none"), "there is no {}/none/a.safetensors to resume: "),
    "steps": (("--steps", "3"), "was begun with another --steps, 6 and not 3: "),
    "seed": (("--seed", "1"), "was begun with another --seed, 0 and not 1: "),
    "demo": (("--resume",), "was begun with another demo, reverse and not sort: "),
    "files": (("--resume",), "was begun with another text of its files, "),
    "bytes": (("--resume",), "a.safetensors is not a checkpoint of minigrad, or is damaged"),
}


@pytest.mark.parametrize("other", RESUMED)
def test_resuming_nothing_or_something_else_is_one_sentence(
    other, begin, tmp_path, monkeypatch, capsys
):
    words, said = RESUMED[other]
    with pytest.raises(SystemExit):
        trained(begin("reverse", "--out", tmp_path, steps=6), "a", 4)
    if other == "files":  # as when one does what "Try it" says
        monkeypatch.setattr(demos, "fingerprint", lambda file: "another")
    if other == "bytes":
        (tmp_path / "a.safetensors").write_text("not at all")
    capsys.readouterr()
    words = [word.format(tmp_path) for word in words]
    name = "sort" if other == "demo" else "reverse"
    chosen = begin(name, "--out", tmp_path, "--resume", *words, steps=6)
    with pytest.raises(SystemExit, match="^2$"):
        trained(chosen, "a", 99)
    *_, last = capsys.readouterr().err.splitlines()
    assert said.format(tmp_path) in last and last.endswith(" start again without --resume")


def test_the_files_of_a_demo_are_all_that_it_imports(monkeypatch):
    read, file = [], str(files()["love_transformers"])
    importlib.import_module("demos.texts.sources.love_transformers")
    before = fingerprint(file)
    monkeypatch.setattr(Path, "read_bytes", lambda path: read.append(path.name) or b"another")
    assert fingerprint(file) != before and read.count("love_transformers.py") == 2
    assert {"_training.py", "__init__.py"} <= set(read)


def test_a_quick_run_has_a_folder_of_its_own_where_it_is_shorter(begin, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for kinds, words, folder in (
        ({"steps": 9, "quick": 2}, ("--quick",), "out/quick/reverse"),
        ({"quick": True}, ("--quick",), "out/quick/reverse"),
        ({}, ("--quick",), "out/reverse"),
        ({"steps": 9, "quick": 2}, (), "out/reverse"),
        ({"steps": 9, "quick": 2}, ("--quick", "--out", "x"), "x"),
    ):
        chosen = begin("reverse", *words, **kinds)
        assert chosen.out == Path(folder)
        assert (QUICK in read(end(chosen))[0]) == (bool(kinds) and "--quick" in words)


# ------------------------------------------------------------------ the list

NAMES = ("100%", "a#b", "a?b=c", "a b", "é", "<i>", "reverse")
TITLES = ("<script>alert(1)</script>", "a & b &lt;", "*x* `y`")


def test_the_list_leads_to_every_page_and_says_what_it_is_called(begin, tmp_path):
    shown = {name: TITLES[i % len(TITLES)] for i, name in enumerate(NAMES)}
    for name, title in shown.items():
        end(begin("reverse", "--out", tmp_path / name), title)
    (tmp_path / "other").mkdir()
    (tmp_path / "other/index.html").write_text("<title>not ours</title>")
    text = read(tmp_path / "index.html")[0]
    rows = re.findall(r'<a href="([^"]*)/index\.html">(.*?)</a>', text)
    found = {unquote(unescape(address)): unescape(title) for address, title in rows}
    assert found == shown
    assert all(re.fullmatch(r"[\w.%~-]+", address) for address, _ in rows)
    assert "<script" not in text and "script-src 'none'" in text


def test_the_list_has_the_demos_in_their_order_and_says_which_page_is_quick(begin, tmp_path):
    known = ["reverse", "why_half", "scaling", "sky_is_blue"]
    for name in [*known, "zoo", "also"]:
        words = ("--quick",) if name in ("scaling", "zoo") else ()
        end(begin(name if name in known else "sort", *words, "--out", tmp_path / name, quick=1))
    text = read(tmp_path / "index.html")[0]
    rows = re.findall(r'<a href="(\w+)/index.html">A title</a>(.*?)<br>A claim.</p>', text)
    order = ["scaling", "why_half", "reverse", "sky_is_blue", "also", "zoo"]
    assert [name for name, _ in rows] == order
    marked = {name: re.findall(r">([^<]+)</", said) for name, said in rows}
    assert marked == {name: [] for name in order} | {
        "scaling": ["--quick"],
        "also": ["also"],
        "zoo": ["zoo", "--quick"],
    }
