"""Tests: the five source texts in one table, their printed numbers, and the marks of their demos.

A demo judges each claim by a mark, and exits with 1 if one fails. So its numbers are not computed a
second time here: it runs whole in the slow group, once as it is, and once without the effect that
it shows, where the marks must fail. What a text's functions compute is tested in a file of its own.
"""

import ast
import re
from html import unescape
from types import ModuleType
from typing import NamedTuple

import numpy as np
import pytest

from demos import files
from demos.pages.tables import printed as on_a_terminal
from demos.pages.text import inline, set_text
from demos.texts._text_page import KINDS, Slip, cells, kinds
from demos.texts.sources import (
    agreeing,
    as_numpy_prints,
    compared,
    counted,
    love_transformers_text,
    love_you_text,
    mammal_and_reptile_text,
    returning,
    sky_is_blue_text,
    your_journey_text,
)
from tests.demos.running import assert_light, python


class Text(NamedTuple):
    """The facts about a text, counted by hand (shapes that it prints are not counted)."""

    source: ModuleType
    same: int  # numbers that come back
    printed: int
    marks: int  # that its demo passes
    pictures: str  # the first two are graphs, in whose colours a gradient is the same
    lost: tuple[str, ...] = ()  # names whose numbers do not come back
    seed: int = 0


TEXTS = {
    "love_transformers": Text(
        love_transformers_text, 121, 121, 33, "head_2_text head_2_unit weights scale"
    ),
    "love_you": Text(
        love_you_text, 82, 552, 23, "head_text head_unit weights scale", lost=("I",), seed=1
    ),
    "sky_is_blue": Text(
        sky_is_blue_text, 8, 10, 34, "graph graph_unit spread two_places", lost=("variances",)
    ),
    "your_journey": Text(your_journey_text, 310, 310, 38, "graph graph_saturated one_vector scale"),
    "mammal_and_reptile": Text(
        mammal_and_reptile_text, 167, 167, 24, "graph_mammal graph_reptile weights plane scale"
    ),
}
every_text = pytest.mark.parametrize("name", TEXTS)


def slips_of(name):
    """Return the slips that a demo's file names, without running it."""
    slips = []
    for node in ast.walk(ast.parse(files()[name].read_text("utf-8"))):
        if isinstance(node, ast.Call) and re.match(r"slips\.(?!show)", ast.unparse(node.func)):
            says, so = map(ast.literal_eval, node.args[:2])
            kind = node.func.attr.replace("_", " ")
            slips.append(Slip(kind, says, so, computed="", weighty=bool(node.keywords)))
    return slips


def run_of(name, *options):
    """Return the options with which a text's demo is run here."""
    return name, "--seed", str(TEXTS[name].seed), *options


@pytest.fixture
def ran(finished):
    """Run a text's demo quickly, once; return its folder and its printed text."""
    return lambda name: finished(*run_of(name, "--quick"))


# ------------------------------------------------------------------ value: the printed numbers


@every_text
def test_every_printed_number_comes_back_as_text_and_one_digit_more_would_be_seen(name):
    source, same, printed, *_ = TEXTS[name]
    lost = set(TEXTS[name].lost)
    assert f" {printed} printed numbers" in source.__doc__.splitlines()[0]
    assert source.LOST.keys() == lost and returning(source) == same
    ours, agree = source.ours(), 0
    assert list(ours) == [array for array in source.PRINTED if array in ours]
    for array in source.PRINTED.keys() - lost:
        kept, text = source.PRINTED[array].split(), source.as_text(ours[array])
        assert text == kept, array
        agree += len(text)
        up = lambda digit: str((int(digit[0]) + 1) % 10)
        changed = [*kept[:-1], re.sub(r"\d(?=\D*$)", up, kept[-1])]
        assert agreeing(" ".join(changed), text) == len(text) - 1, array
    for array in lost & set(ours):  # there is a number for each, and it is another
        assert agreeing(source.PRINTED[array], source.as_text(ours[array])) == 0
    assert (agree, printed) == (same, printed) == counted(source)
    for array, (shape, pairs) in compared(source).items():
        assert np.prod(shape) == len(pairs) and (array in ours or not any(p[1] for p in pairs))


def test_numpys_print_options_change_nothing():
    array = np.array([1e-9, 2.0, 0.123456789012])
    expected = as_numpy_prints(array)
    with np.printoptions(precision=3, suppress=True, sign="+", floatmode="fixed"):
        assert as_numpy_prints(array) == expected


def test_a_cell_says_both_numbers_and_its_form_says_whether_they_are_equal():
    pairs = [("1.50", "1.50"), ("2.", "3."), ("<4", None)]
    shown = cells("x", ["x[0]", "x[1]", "x[2]"], pairs, 2)
    found = re.findall('<title>(.*?)</title>.*?fill="(.*?)".*?/>(.*?)</g>', shown)
    assert found == [
        ("x[0]: the text 1.50, ours 1.50", "currentColor", ""),
        ("x[1]: the text 2., ours 3.", "none", '<path d="M0 0 8 8M0 8 8 0"/>'),
        ("x[2]: the text &lt;4, ours not computed", "none", ""),
    ]
    assert 'width="22" height="22"' in shown and "x: 1 of 3 numbers are equal" in shown


# ------------------------------------------------------------------ what is said of the texts


@every_text
def test_slips_and_completed_steps_are_sentences_and_each_slip_has_one_of_three_kinds(name):
    source, slips = TEXTS[name].source, slips_of(name)
    assert slips and source.COMPLETED and KINDS == ("wrong", "unclear", "left open")
    assert kinds(name) == [sum(slip.kind == kind for slip in slips) for kind in KINDS]
    assert sum(slip.weighty for slip in slips) == 3
    assert sum(kinds(name)) == len({(slip.says, slip.so) for slip in slips})
    parts = [part for slip in slips for part in (slip.says, slip.so)]
    for sentence in (*parts, *source.COMPLETED):
        assert re.match(r'[A-Z`".√\d]|d_model|Var', sentence) and sentence.endswith("."), sentence


def test_what_is_said_to_be_lost_of_love_you_adds_up():
    printed = {name: text.split() for name, text in love_you_text.PRINTED.items()}
    given = len(printed.pop("I"))
    plain = sum(float(number) in (0, 1) for text in printed.values() for number in text)
    assert (given, 512 - given, plain) == (470, 42, 73) and 73 + 3 + 6 == 82
    assert all(f"{n}" in love_you_text.LOST["I"] for n in (given, 512 - given, "1,024"))


# ------------------------------------------------------------------ the demos

# What takes the effect of a text out of its demo, and what that leaves of its marks.
ABLATED = {
    "love_transformers": (
        "layer = source.layer; source.layer = lambda **options: layer(**options | {'unit': True})",
        ["text, head 2: W_Q / W_V", "seven words, text: queries above .999 on one word"],
    ),
    "love_you": (
        "layer = source.layer; "
        "source.layer = lambda **options: layer(**options | {'constant': False})",
        ["constant weights: heads apart", "gradient of W_Q and W_K at the four usual scales"],
    ),
    "sky_is_blue": (
        "source.INITIAL['N(0, 1)'] = source.INITIAL['N(0, 1/d)']",
        ["its recipe, scaled: dead queries", "graph: the gradient of W_Q, over that"],
    ),
    "your_journey": (
        "rand = source.torch_rand; source.torch_rand = lambda *shape: rand(*shape) - 0.5",
        ["V1's recipe: times as much with the scale", "V1's recipe, d_k = 2048, 1/√d_k"],
    ),
    "mammal_and_reptile": (
        "source.AVERAGE = 0 * source.AVERAGE",
        ["queries from the average: rows that it wins"],
    ),
}


@pytest.mark.slow
@every_text
def test_the_demo_passes_every_mark_and_misses_some_without_its_effect(finished, name, tmp_path):
    _, printed = finished(*run_of(name, "--marks"))
    count = TEXTS[name].marks
    assert printed.endswith(f"\n{count} of {count} checks passed\n")
    change, marks = ABLATED[name]
    words = ["demos", *run_of(name, "--quick"), "--out", str(tmp_path)]
    ablated = python(
        "-c",
        f"import runpy, sys; from demos.texts.sources import {name}_text as source; {change}; "
        f"sys.argv = {words!r}; runpy.run_module('demos', run_name='__main__')",
    )
    assert ablated.returncode == 0, ablated.stderr
    for mark in marks:
        line = rf"^   {re.escape(mark)}: expected .*, got .*: "
        assert re.search(line + "passed$", printed, re.MULTILINE), mark
        assert re.search(line + r"not reached \(--quick\)$", ablated.stdout, re.MULTILINE), mark


@every_text
def test_the_page_has_every_mark_every_slip_and_every_printed_number(ran, name):
    folder, printed = ran(name)
    _, same, total, marks, *_ = TEXTS[name]
    page = re.sub(r' srcdoc="[^"]*"', "", (folder / "index.html").read_text("utf-8"))
    rows = re.findall(r"<tr><td[^>]*>(.*?)</td><td[^>]*>[^<]*</td><td[^>]*>[≥≤]", page)
    names = [unescape(what).strip() for what in rows]
    assert len(names) == len(set(names)) == marks
    headings = [len(re.findall(rf"<h3>\d+ · {kind}</h3>", page)) for kind in KINDS]
    assert headings == kinds(name)
    for slip in slips_of(name):
        assert inline(slip.says, set_text) in page and inline(slip.so, set_text) in page
    assert len(re.findall(r"<title>[^<]*: the text \S+, ours ", page)) == total
    said = " ".join(printed.split())
    assert f"{same} of {total} numbers that the text prints come back" in said
    for slip in slips_of(name):
        assert (" ".join(on_a_terminal(slip.so).split()) in said) == slip.weighty


@every_text
def test_a_page_says_what_it_calls_dead_and_which_graph_is_which(ran, name):
    page = re.sub(r' srcdoc="[^"]*"', "", (ran(name)[0] / "index.html").read_text("utf-8"))
    page = unescape(page)
    assert not re.search(r"\bdead\b", page) or re.search(r"\bcalled dead here\b", page)
    alts = re.findall(r'role="img" aria-label="([^"]*)"', page)
    graphs = [alt.partition("Computation graph")[0] for alt in alts if "Computation graph" in alt]
    assert len(set(graphs)) == len(graphs) and all(graphs)


@every_text
def test_the_demo_leaves_its_pictures_and_two_graphs_on_one_colour_scale(ran, name):
    (folder, _), stems = ran(name), TEXTS[name].pictures.split()
    expected = {f"{stem}.{ending}" for stem in stems for ending in ("png", "svg")}
    expected |= {"index.html", "content.json", "steps.html", "small.png"}
    assert {path.name for path in folder.iterdir() if path.suffix != ".safetensors"} == expected
    assert_light(folder)
    graphs = [(folder / f"{stem}.svg").read_text("utf-8") for stem in stems[:2]]
    limits = r">\s*(\d\S*)\s*</text>"  # of the colours: the two numbers before what they are
    first, second = (re.findall(limits, graph.rpartition("RMS of the")[0]) for graph in graphs)
    assert first == second and len(first) == 2


def test_the_demo_of_all_texts_prints_the_counts_and_its_page_has_every_step(finished):
    folder, printed = finished("texts", "--quick")
    rows = re.findall(r"^ +(\w+)" + r" +(\d+)" * 6 + "$", printed, re.MULTILINE)
    table = {name: tuple(map(int, numbers)) for name, *numbers in rows}
    sums = table.pop("together")
    assert table == {
        name: (t.printed, t.same, *kinds(name), len(t.source.COMPLETED))
        for name, t in TEXTS.items()
    }
    assert sums == tuple(map(sum, zip(*table.values(), strict=True))) and sums[:2] == (1160, 688)
    assert printed.endswith("\n5 of 5 checks passed; --marks shows them\n")
    page = (folder / "index.html").read_text("utf-8")
    for text in TEXTS.values():
        for sentence in (*text.source.COMPLETED, *text.source.LOST.values()):
            assert inline(sentence, set_text) in page
