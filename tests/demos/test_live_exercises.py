"""Live: an exercise's check and comparison say in a page what they say in a terminal."""

import gc
import re
import signal
import sys

import pytest

from demos.learn import EXERCISES
from demos.learn._running import as_ctrl_c, run
from demos.learn.exercises import filled, solution, stub
from demos.live import _exercises
from demos.live._exercises import compare
from tests.demos.learn_texts import ANSWERS, OURS

CLOCKS = [as_ctrl_c]
if sys.version_info >= (3, 12):
    CLOCKS.append(_exercises.line_by_line)


def check(name, text, *, clock=CLOCKS[-1], **message):
    """Return what a page is answered, and what was sent before."""
    out = []
    message = {"check": name, "text": text, "files": OURS} | message
    found = _exercises.check(message, lambda **sent: out.append(sent["out"]), clock)
    return found, "".join(out)


def in_terminal(folder, name, text, **options):
    """Return what the terminal is answered for the same folder."""
    for each, ours in OURS.items():
        (folder / f"{each}.py").write_text(ours, "utf-8")
    (folder / f"{name}.py").write_text(text, "utf-8")
    return run(folder / f"{name}.py", name, **options)._asdict()


def different(folder, answers):
    pairs = [(check(*each)[0], in_terminal(folder, *each)) for each in answers]
    return [pair for pair in pairs if pair[0] != pair[1]]


def test_answers_are_those_of_the_terminal(tmp_path):
    """(A browser gives all of them: test_live_exercises_in_a_browser.py.)"""
    assert different(tmp_path, ANSWERS[::5]) == []


SPOILED = {
    "a syntax error": "def slope(:\n    return 1\n",
    "no text": "",
    "null bytes": "a = 1\0",
    "an exit": "raise SystemExit(3)",
    "an interrupt of its own": "raise KeyboardInterrupt('so')",
    "a generator's end": "raise GeneratorExit",
    "a long line": "print('a' * 5000)\n" + solution("e01_slope"),
    "much printed": "for i in range(5000):\n    print('line', i)\n" + solution("e01_slope"),
    "a warning": "import warnings\nwarnings.warn('look')\n" + solution("e01_slope"),
    "recursion": filled("e01_slope", "return slope(f, x, h)"),
    "a missing package": "import torch_of_nobody",
    "an end of a script": "print('</script>')\n" + solution("e01_slope"),
}


@pytest.mark.parametrize("text", SPOILED.values(), ids=SPOILED)
def test_a_spoiled_file_is_answered_as_in_the_terminal(tmp_path, text):
    assert check("e01_slope", text)[0] == in_terminal(tmp_path, "e01_slope", text)


@pytest.mark.parametrize("clock", CLOCKS, ids=lambda clock: clock.__name__)
def test_a_loop_that_never_ends_is_stopped_in_its_line(tmp_path, clock):
    signal.signal(signal.SIGINT, signal.default_int_handler)  # (a shell turns it off for a `&`)
    text = filled("e01_slope", "while True:\n    x = x + h")
    found, _ = check("e01_slope", text, clock=clock, seconds=0.5)
    said = found["said"]
    assert re.match("e01_slope.py, line (19|20), in slope: still at work after 0.5 s, and st", said)
    terminal = in_terminal(tmp_path, "e01_slope", text, seconds=0.5)["said"]
    assert said.partition(", in ")[2] == terminal.partition(", in ")[2]


def test_a_walk_that_calls_itself_leaves_no_long_chain_to_the_collector():
    """(Freed inside of itself, at any later moment, the chain would end a browser's Python.)"""
    lines = (
        "seen = []\ndef visit(value):\n    seen.append(value)\n    for x in value.inputs:\n"
        "        visit(x)\nvisit(root)\nreturn seen[::-1]"
    )
    whole = [each for name, each in ANSWERS if name == "e05_order" and "def visit" in each]
    for text in [*whole, filled("e05_order", lines)]:
        check("e05_order", text)
        linked = [
            each for each in gc.get_objects() if type(each).__name__ == "Value" and each.inputs
        ]
        assert len(linked) < 50


def test_what_a_file_prints_comes_at_once_and_is_in_the_answer():
    found, sent = check("e01_slope", "print('a')\n" + solution("e01_slope"))
    assert (found["solved"], found["printed"], sent) == (True, "a", "a\n")


def test_a_long_line_ends_where_it_is_cut():
    found, _ = check("e01_slope", "print('a' * 5000)\n" + solution("e01_slope"))
    assert found["printed"] == "a" * 4000 + "\n…"


def test_a_file_that_is_not_there_is_as_it_was_given():
    found, _ = check("e24_reverse", OURS["e24_reverse"], files={"e99_none": "", "e10_matmul": "x"})
    assert not found["solved"] and found["said"].startswith("e10_matmul.py")


@pytest.mark.parametrize("name", EXERCISES)
def test_our_lines_beside_mine_are_those_of_the_terminal(name):
    assert compare({"compare": name, "text": OURS[name]}) == []
    lines = compare({"compare": name, "text": stub(name)})
    assert lines[0].startswith("@@") and {line[0] for line in lines[1:]} <= {" ", "+", "-", "@"}
