"""Demos · Learn: the exercises, each with our solution, and what the learner gets instead.

An exercise NAME is two files. exercises/NAME.py is what the learner gets, with our lines in its
holes:

    its docstring   the first line "Exercise 1 · A slope: …" is the title; then the task, the
                    shapes as a display, and each chapter with its file, as in "Chapter 4.1,
                    minigrad/checks/differences.py". At most 78 columns, so that a comparison with
                    a mark in front of each line fits on 80
    the code        complete, with holes

A hole is what stands between two comments, at one indentation. The learner gets `...` there:

    # Your lines begin.
    return (f(x + h) - f(x - h)) / (2 * h)
    # Your lines end.

In an exercise that gives wrong lines to repair, or lines to complete, the hole ends with them:

    # Your lines begin.
    x.grad = x.grad + vjp(g)
    # The learner gets:
    #     x.grad = vjp(g)
    # Your lines end.

If it ends with "# The learner gets the names.", each line `name = value` becomes `name = ...`.

checks/NAME.py has HINTS (three: where to look, the idea, nearly the line), if ten seconds
are not enough SECONDS, and check(answer), which returns if the module `answer` is right and raises
`Unsolved` if it is not. What it can say is in demos/learn/_telling.py.

A typical mistake in each is in demos/learn/_mistakes.py; other wrong answers, and what the check
says of all of them, are in tests/demos/learn_answers.py.
"""

from __future__ import annotations

import ast
import difflib
import re
import textwrap
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent
_HOLE = re.compile(
    r"(?P<begin>^(?P<indent> *)# Your lines begin\.\n)"
    r"(?P<ours>.*?)"
    r"(?P<given>^(?P=indent)# The learner gets[^\n]*\n(?:^(?P=indent)#[^\n]*\n)*?)?"
    r"(?P<end>^(?P=indent)# Your lines end\.\n)",
    re.MULTILINE | re.DOTALL,
)


def _text(name: str) -> str:
    return (FOLDER / f"{name}.py").read_text(encoding="utf-8")


def _put(hole: re.Match[str], lines: str) -> str:
    """Return the hole with these lines in it."""
    inside = textwrap.indent(textwrap.dedent(lines).strip("\n") + "\n", hole["indent"])
    return hole["begin"] + inside + hole["end"]


def _given(hole: re.Match[str]) -> str:
    """Return the lines that the learner gets in a hole."""
    first, *lines = (hole["given"] or "").splitlines() or [""]
    if first.endswith("names."):
        return re.sub(r"^( *\w+ =) .*?(?=  #|$)", r"\1 ...", hole["ours"], flags=re.MULTILINE)
    return "\n".join(line.strip().removeprefix("#")[5:] for line in lines) or "..."


def solution(name: str) -> str:
    """Return an exercise's file with our lines."""
    return _HOLE.sub(lambda hole: _put(hole, hole["ours"]), _text(name))


@cache
def stub(name: str) -> str:
    """Return an exercise's file as the learner gets it."""
    return _HOLE.sub(lambda hole: _put(hole, _given(hole)), _text(name))


def changes(name: str, yours: str) -> list[str]:
    """Return the lines of a comparison that leads from the learner's text to ours."""
    pair = yours.splitlines(), solution(name).splitlines()
    return list(difflib.unified_diff(*pair, n=3, lineterm=""))[2:]


def filled(name: str, *texts: str) -> str:
    """Return an exercise's file with other lines in its holes, one text for each."""
    left = list(texts)
    holes = len(_HOLE.findall(_text(name)))
    if len(left) != holes:
        raise ValueError(f"{name} has {holes} holes: got {len(left)} texts")
    return _HOLE.sub(lambda hole: _put(hole, left.pop(0)), _text(name))


def title(name: str) -> str:
    """Return an exercise's title, from its docstring's first line."""
    docstring = ast.get_docstring(ast.parse(_text(name))) or ""
    return docstring.splitlines()[0].partition(" · ")[2].rstrip(".")


def chapters(name: str) -> list[str]:
    """Return the chapters that an exercise belongs to: its file names each with the chapter's."""
    return re.findall(r"[Cc]hapter (\d[\d.]*),\s+\w+/", _text(name))


def chapter(name: str) -> str:
    """Return the last chapter that an exercise belongs to."""
    return chapters(name)[-1]


def number(name: str) -> int:
    """Return an exercise's number: e07_exp → 7."""
    return int(name[1:3])
