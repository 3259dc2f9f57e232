"""Output folders: what a run may replace, what is kept of a stopped run, and the list of pages."""

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
from demos import _list, files, options
from demos._list import LIST, PAGE, QUICK, read
from demos._page import Page
from demos._training import Run
from minigrad.nn import Linear
from minigrad.optim import SGD


@pytest.fixture
def begin(monkeypatch):
    """begin(demo, *words, **what it is): the demo's options, as if its file had asked for them."""
    monkeypatch.setattr(demos, "running", None)
    monkeypatch.setattr(os, "fsync", lambda handle: None)  # (no power cut is tested here)

    def begin(demo, *words, **kinds):
        monkeypatch.setattr(sys, "argv", ["demos", *map(str, words)])
        asked = {"__file__": str(files()[demo]), "options": options, "kinds": kinds}
        return eval("options('', 'A claim.', **kinds)", asked)

    return begin


def end(chosen, title="A title", **more):
    """The run writes its page."""
    demos.running = chosen
    return Page(title, claim="A claim.").write(chosen.out, quick=chosen.quick, **more)


def contents(folder):
    """Every file below a folder."""
    return {p: p.read_bytes() for p in folder.rglob("*") if p.is_file() and not p.is_symlink()}


# ------------------------------------------------------------------ law: nothing of others is lost

SPELLED = {  # a name of the folder → where its list belongs
    ".": "home",
    "..": "",
    "pics": "home/work",
    "new/deep": "home/work/new",
    "../work": "home",
    "link/..": "home",
    "up": "home/work",  # where its page is
}


@pytest.mark.parametrize("theirs", [(), ("", "work", "far", "work/pics", "far/pics")])
@pytest.mark.parametrize("out", SPELLED)
def test_however_the_folder_is_named_its_page_is_there_and_no_file_of_others_is_changed(
    out, theirs, begin, tmp_path, monkeypatch, capsys
):
    home = tmp_path / "home"
    for folder in ("work/pics", "work/a", "far/pics"):
        (home / folder).mkdir(parents=True)
    (home / "work/link").symlink_to(home / "far/pics")
    (home / "work/up").symlink_to(".")
    for folder in theirs:
        (home / folder / "index.html").write_text("<title>All pages</title> mine")
    (home / "work/notes.html").write_text("mine")
    before = contents(tmp_path)
    monkeypatch.chdir(home / "work")
    path = Path(out.format(tmp_path)) / "index.html"
    in_the_way = path.exists()
    for title in ("First", "Second"):
        try:
            end(begin("reverse", "--out", path.parent), title)
        except SystemExit as stopped:
            said = capsys.readouterr().err
            assert in_the_way and stopped.code == 2 and said.count("\n") == 1
            assert "was not written by a demo" in said
        else:
            assert not in_the_way
            assert read(path)[1] == PAGE and f"<h1>{title}</h1>" in read(path)[0]
    assert contents(tmp_path).items() >= before.items()
    written = contents(tmp_path).keys() - before.keys()
    assert in_the_way == (written == set())
    for other in written - {path.resolve()}:
        assert read(other)[1] == LIST
    listed = tmp_path / SPELLED[out] / "index.html"
    assert in_the_way or (listed in written) or listed in before
    if not in_the_way and out != "up":
        assert (len(written) == 2) == (listed not in before)
        assert capsys.readouterr().err.count("There is no list") == 2 * (listed in before)


def test_some_exhibits_replace_no_page_of_all(begin, tmp_path):
    path = end(begin("museum", "--out", tmp_path / "museum"))
    before = path.read_bytes()
    assert end(begin("museum", "--out", tmp_path / "museum"), name="some.html").exists()
    assert path.read_bytes() == before


# ------------------------------------------------------------------ law: no training is lost


def trained(chosen, what, until):
    """A training of a few numbers, which is interrupted after a step, or breaks if that is < 0."""
    rng = np.random.default_rng(0)
    model = Linear(2, 1, rng=rng)
    optimizer = SGD(model.parameters(), 0.1)
    run = Run(chosen, what, model=model, optimizer=optimizer, rng=rng)
    for step in run:
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
    trained(chosen, "a", -3)  # as after a NaN
    end(chosen)
    begun()


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

NAMES = (
    "100%",
    "a#b",
    "a?b=c",
    "a b",
    "%41",
    "é",
    '"q"',
    "<i>",
    "&amp;",
    "javascript:x",
    "reverse",
)
TITLES = ("<script>alert(1)</script>", "a & b &lt;", "*x* `y`", "\ud800", "'\"")


def test_the_list_leads_to_every_page_and_says_what_it_is_called(begin, tmp_path):
    shown = {name: TITLES[i % len(TITLES)] for i, name in enumerate(NAMES)}
    for name, title in shown.items():
        end(begin("reverse", "--out", tmp_path / name), title)
    (tmp_path / "other").mkdir()
    (tmp_path / "other/index.html").write_text("<title>not ours</title>")
    text = read(tmp_path / "index.html")[0]
    rows = re.findall(r'<a href="([^"]*)/index\.html">(.*?)</a>', text)
    found = {unquote(unescape(address)): unescape(title) for address, title in rows}
    assert found == {n: t.replace("\ud800", "?") for n, t in shown.items()}
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


def spoil(path, how):
    """Put something at a path that is not a page."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if how == "folder":
        path.mkdir()
    else:
        path.write_bytes(b"<title>\xe9\xff\x00</title>")


@pytest.mark.parametrize("how", ["folder", "bytes"])
def test_whatever_else_is_in_the_folders_a_page_is_written_or_refused_before_the_work(
    how, begin, tmp_path, capsys
):
    spoil(tmp_path / "a/other/index.html", how)  # beside it
    path = end(begin("reverse", "--out", tmp_path / "a/one"))
    assert read(path)[1] == PAGE and capsys.readouterr().err == ""
    assert 'href="one/index.html"' in read(tmp_path / "a/index.html")[0]
    spoil(tmp_path / "b/index.html", how)  # where the list would be
    path = end(begin("reverse", "--out", tmp_path / "b/one"))
    assert read(path)[1] == PAGE and capsys.readouterr().err.count("\n") == 1
    spoil(tmp_path / "b/two/index.html", how)  # where the page would be
    with pytest.raises(SystemExit):
        begin("reverse", "--out", tmp_path / "b/two")
    assert re.fullmatch(r".*b/two/index\.html.*\n", capsys.readouterr().err)


def test_a_folder_of_lists_that_cannot_be_written_costs_a_sentence_and_not_the_page(
    begin, tmp_path, capsys, monkeypatch
):
    def full(path, content):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(_list, "write_whole", full)
    assert read(end(begin("reverse", "--out", tmp_path / "one")))[1] == PAGE
    assert re.fullmatch(
        r"The list of pages was not renewed: .*No space.*\n", capsys.readouterr().err
    )
    assert not os.path.lexists(tmp_path / "index.html")
