"""Exercises: stubs fail, solutions pass, wrong answers are answered, and nothing is ever lost."""

import ast
import importlib
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from demos.learn import EXERCISES, GROUPS
from demos.learn._folder import KEPT
from demos.learn._running import judged, run
from demos.learn.exercises import filled, solution, stub, title
from tests.demos.learn_answers import WRONG
from tests.demos.running import ENVIRONMENT, ROOT, command, demo_here

FOLDER = ROOT / "demos" / "learn" / "exercises"
BUGS = {"e06_bug", "e12_bug", "e18_bug", "e21_heads"}  # their stubs are wrong, and not empty


def check_of(name):
    return importlib.import_module(f"demos.learn.checks.{name}")


def answer(name, text):
    """What the check says of a text, in this process. (It may import our other solutions.)"""
    return judged(FOLDER / f"{name}.py", name, text)


# ------------------------------------------------------------------ value: the exercises


def test_there_are_twenty_four_exercises_in_groups_of_six_numbered_in_order():
    assert [len(names) for names in GROUPS.values()] == [6] * 4
    names = [name for names in GROUPS.values() for name in names]
    assert [name[:4] for name in names] == [f"e{n:02}_" for n in range(1, 25)]


@pytest.mark.parametrize("name", EXERCISES)
def test_a_stub_fails_and_says_that_it_is_empty(name):
    found = answer(name, stub(name))
    assert not found.solved
    assert (name in BUGS) == ("still to be written" not in found.said), found.said
    assert name not in BUGS or found.kind, found.said  # a sentence of the check, not an accident


@pytest.mark.parametrize("name", EXERCISES)
def test_our_solution_is_right(name):
    assert answer(name, solution(name)) == (True, "", "", (), "")


@pytest.mark.parametrize(
    ("name", "lines", "words"),
    [(name, *each) for name, wrong in WRONG.items() for each in wrong],
)
def test_a_wrong_answer_is_answered(name, lines, words):
    found = answer(name, filled(name, *([lines] if isinstance(lines, str) else lines)))
    assert not found.solved and words in found.said, found.said


@pytest.mark.parametrize("name", EXERCISES)
def test_an_exercise_has_a_task_three_hints_and_wrong_answers_and_fits_on_80_columns(name):
    check, text = check_of(name), solution(name)
    docstring = ast.get_docstring(ast.parse(text))
    first, _, rest = docstring.partition("\n\n")
    assert re.fullmatch(rf"Exercise {int(name[1:3])} · [^:]+: [^\n]+\.", first)
    assert len(title(name)) < 60
    assert re.search(rf"[Cc]hapter {re.escape(check.CHAPTER)}\b", rest.splitlines()[-1])
    assert len(check.HINTS) == 3 and all(len(hint) > 40 for hint in check.HINTS)
    assert len(WRONG[name]) >= 3
    assert max(map(len, f"{text}\n{stub(name)}".splitlines())) <= 78
    assert text.count("# Your lines begin.") == stub(name).count("# Your lines end.") >= 1
    assert "The learner gets" not in text + stub(name)
