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
from markupsafe import Markup

from demos import files, options
from demos._files import resumable
from demos._training import Run
from demos.pages.page import page_alone
from demos.pages.publish import publish, renew_list
from minigrad.nn import Linear
from minigrad.optim import SGD
from tests.demos.running import demo_here


@pytest.fixture
def begin(monkeypatch):
    """Give begin(demo, *words, **kinds): the demo's options, as if its file had asked for them."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)  # (no power cut is tested here)

    def begin(demo, *words, **kinds):
        monkeypatch.setattr(sys, "argv", ["demos", *map(str, words)])
        asked = {"__file__": str(files()[demo]), "options": options, "kinds": kinds}
        return eval("options('', 'A claim.', **kinds)", asked)

    return begin


def end(chosen, title="A title"):
    """Write a page of a run, and the list above it."""
    path = chosen.out / "index.html"
    body = [Markup("<h1>{}</h1>").format(title), Markup('<p class="claim">A claim.</p>')]
    path.write_bytes(page_alone(title, body))
    renew_list(chosen.out.parent)
    return path


def contents(folder):
    """Return every file below a folder."""
    return {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}


# ------------------------------------------------------------------ law: nothing of others is lost


# Where a list belongs, where a page belongs, and its content for the site.
@pytest.mark.parametrize("theirs", ["index.html", "work/index.html", "work/content.json"])
def test_no_file_of_others_is_replaced_by_a_page_or_a_list(theirs, begin, tmp_path, capsys):
    (tmp_path / "work").mkdir()
    (tmp_path / theirs).write_text("<title>All pages</title> mine")
    (tmp_path / "work/notes.html").write_text("mine")
    before = contents(tmp_path)
    if theirs != "index.html":
        with pytest.raises(SystemExit):
            publish(begin("reverse", "--out", tmp_path / "work"))
        assert re.fullmatch(
            r"\S+ is not a demo's page, and a page would replace it: .+\n",
            capsys.readouterr().err,
        )
        assert contents(tmp_path) == before
    else:
        for title in ("First", "Second"):
            path = end(begin("reverse", "--out", tmp_path / "work"), title)
            assert f"<h1>{title}</h1>" in path.read_text("utf-8")
        assert capsys.readouterr().err.count("There is no list of pages in") == 2
        assert contents(tmp_path) == before | {path: path.read_bytes()}


def test_neither_a_page_nor_a_list_replaces_the_other(begin, tmp_path, capsys):
    end(begin("reverse", "--out", tmp_path / "one"))
    before = contents(tmp_path)
    with pytest.raises(SystemExit):
        publish(begin("sort", "--out", tmp_path))
    assert "is not a demo's page" in capsys.readouterr().err
    (tmp_path / "one/two").mkdir()
    end(begin("sort", "--out", tmp_path / "one/two"))
    assert "There is no list of pages in" in capsys.readouterr().err
    assert before.items() <= contents(tmp_path).items()


def test_a_folder_in_the_place_of_a_page_is_loud_before_the_work(begin, tmp_path, capsys):
    (tmp_path / "a/index.html").mkdir(parents=True)
    end(begin("reverse", "--out", tmp_path / "one"))
    assert re.fullmatch(r"The list of pages was not renewed: .+\n", capsys.readouterr().err)
    with pytest.raises(IsADirectoryError, match="a/index.html"):
        publish(begin("reverse", "--out", tmp_path / "a"))


# ------------------------------------------------------------------ law: no training is lost


REFUSED = {  # why: a demo, its words, a package that is missing, and what is said
    "no step": ("reverse", ("--steps", "0"), "", "--steps must be 1 or larger"),
    "no seed": ("reverse", ("--seed", "-1"), "", "--seed must be 0 or larger"),
    "unknown": ("reverse", ("--stepps", "9"), "", "unrecognized arguments: --stepps 9"),
    "no number": ("reverse", ("--steps", "many"), "", "invalid int value"),
    "another seed": ("reverse", ("--resume", "--seed", "1"), "", "begun with another --seed"),
    "in the way": ("reverse", ("--out", "{}/notes.html"), "", "cannot write to the output folder"),
    "pictures": ("reverse", (), "matplotlib", "reverse needs matplotlib"),
    "checkpoints": ("reverse", (), "safetensors", "checkpoints need safetensors"),
    "images": ("digits", (), "sklearn", "digits needs sklearn"),
}


@pytest.mark.parametrize("why", REFUSED)
def test_a_refused_run_has_deleted_nothing(why, begin, tmp_path, monkeypatch):
    name, words, package, sentence = REFUSED[why]
    chosen = begin(name, "--out", tmp_path / "run", steps=6)
    for what in ("with positions", "without positions", "rows in a bag"):
        trained(chosen, what, 99)
    end(chosen)
    (chosen.out / "notes.html").write_text("mine")
    before = contents(tmp_path)
    if package:
        for module in [each for each in sys.modules if each.startswith(f"{package}.")]:
            monkeypatch.delitem(sys.modules, module)  # (which another test has imported)
        monkeypatch.setitem(sys.modules, package, None)
    done = demo_here(name, "--out", chosen.out, *(word.format(chosen.out) for word in words))
    assert done.returncode == 2 and sentence in done.stderr
    assert contents(tmp_path) == before


@pytest.mark.parametrize("name", [name for name, path in files().items() if resumable(path)])
def test_a_demo_that_would_replace_the_page_of_others_deletes_nothing(name, begin, tmp_path):
    chosen = begin(name, "--out", tmp_path / "run", steps=6)
    trained(chosen, "with positions", 99)
    (chosen.out / "index.html").write_text("mine")
    before = contents(tmp_path)
    done = demo_here(name, "--out", chosen.out)
    assert done.returncode == 2 and "is not a demo's page" in done.stderr
    assert contents(tmp_path) == before


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


def test_a_stopped_run_is_resumed_and_a_new_one_forgets_what_was_saved(begin, tmp_path):
    """Seed 1 has done both trainings; then seed 0 is stopped in its first."""
    (tmp_path / "mine.safetensors").write_text("not a checkpoint")
    chosen = begin("reverse", "--seed", "1", "--out", tmp_path, steps=6)
    for what in "ab":
        trained(chosen, what, 99)
    names = lambda: {path.name for path in tmp_path.glob("*.safetensors")}
    chosen = begin("reverse", "--out", tmp_path, steps=6)
    assert names() == {"a.safetensors", "b.safetensors", "mine.safetensors"}  # not yet begun
    with pytest.raises(SystemExit):
        trained(chosen, "a", 4)
    assert names() == {"a.safetensors", "mine.safetensors"}
    chosen = begin("reverse", "--out", tmp_path, "--resume", steps=6)
    _, _, *whole = np.random.default_rng(0).random(8).tolist()  # (the first two are the weights)
    assert [trained(chosen, what, 99).losses for what in "ab"] == [whole] * 2
    begin("sort", "--out", tmp_path, steps=6)  # another demo takes nothing away
    assert names() == {"a.safetensors", "b.safetensors", "mine.safetensors"}


RESUMED = {  # what another run is resumed with, and what is said
    "steps": (("--steps", "3"), "was begun with another --steps, 6 and not 3: "),
    "seed": (("--seed", "1"), "was begun with another --seed, 0 and not 1: "),
    "demo": (("--resume",), "was begun with another demo, reverse and not sort: "),
    "bytes": (("--resume",), "a.safetensors is not a checkpoint of minigrad, or is damaged"),
}


@pytest.mark.parametrize("other", RESUMED)
def test_resuming_something_else_is_one_sentence(other, begin, tmp_path, capsys):
    words, said = RESUMED[other]
    with pytest.raises(SystemExit):
        trained(begin("reverse", "--out", tmp_path, steps=6), "a", 4)
    if other == "bytes":
        (tmp_path / "a.safetensors").write_text("not at all")
    capsys.readouterr()
    name = "sort" if other == "demo" else "reverse"
    chosen = begin(name, "--out", tmp_path, "--resume", *words, steps=6)
    with pytest.raises(SystemExit, match="^2$"):
        trained(chosen, "a", 99)
    *_, last = capsys.readouterr().err.splitlines()
    assert said in last and last.endswith(" start again without --resume")


def test_resuming_nothing_is_one_sentence(begin, tmp_path, capsys):
    with pytest.raises(SystemExit, match="^2$"):
        begin("reverse", "--out", tmp_path, "--resume", steps=6)
    said = capsys.readouterr().err
    assert said == f"there is no training to resume in {tmp_path}: start without --resume\n"


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
        assert chosen.shortened == (bool(kinds) and "--quick" in words)


# ------------------------------------------------------------------ the list

NAMES = ("100%", "a#b", "a?b=c", "a b", "é", "<i>", "reverse")
TITLES = ("<script>alert(1)</script>", "a & b &lt;")


def test_the_list_leads_to_every_page_and_says_what_it_is_called(begin, tmp_path):
    shown = {name: TITLES[i % len(TITLES)] for i, name in enumerate(NAMES)}
    for name, title in shown.items():
        end(begin("reverse", "--out", tmp_path / name), title)
    (tmp_path / "other").mkdir()
    (tmp_path / "other/index.html").write_text("<title>not ours</title>")
    text = (tmp_path / "index.html").read_text("utf-8")
    rows = re.findall(r'<a href="([^"]*)/index\.html">(.*?)</a>', text)
    found = {unquote(unescape(address)): unescape(title) for address, title in rows}
    assert found == shown
    assert all(re.fullmatch(r"[\w.%~-]+", address) for address, _ in rows)
    assert "<script" not in text and "script-src 'none'" in text
