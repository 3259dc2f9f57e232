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

A course of your own is a folder with `exercises/` and `checks/` in this format, and has names such
as c01_mean.py. The check of a course is typically ten lines; one lies in tests/demos/course.
"""

from __future__ import annotations

import ast
import difflib
import re
import textwrap
from functools import cache
from pathlib import Path

from demos._files import stop
from demos.learn import EXERCISES

FOLDER = Path(__file__).parent
COURSES = dict.fromkeys(EXERCISES, FOLDER.parent)  # of each exercise, where its two files lie
_HOLE = re.compile(
    r"(?P<begin>^(?P<indent> *)# Your lines begin\.\n)"
    r"(?P<ours>.*?)"
    r"(?P<given>^(?P=indent)# The learner gets[^\n]*\n(?:^(?P=indent)#[^\n]*\n)*?)?"
    r"(?P<end>^(?P=indent)# Your lines end\.\n)",
    re.MULTILINE | re.DOTALL,
)


def open_course(text: str) -> tuple[str, ...]:
    """Return the names of a course's exercises, which are known from then on as ours are."""
    course = Path(text).expanduser().resolve()
    texts = {p.stem: p.read_text("utf-8") for p in sorted(course.glob("exercises/[!_]*.py"))}
    if not texts:
        stop(f"{text} is not a course: it has no exercises/c01_….py")
    for name, lines in texts.items():
        if not re.fullmatch(r"[a-z]\d\d_\w+", name):
            stop(
                f"{text}/exercises/{name}.py: call it by a letter and its number, as in c01_mean.py"
            )
        if COURSES.get(name, course) != course:
            stop(f"{name} is an exercise of {COURSES[name]}, too: another name is needed")
        if not (course / "checks" / f"{name}.py").is_file():
            stop(f"{text}/checks/{name}.py is not there: each exercise needs a check")
        if not _HOLE.search(lines):
            stop(f"{text}/exercises/{name}.py has no `# Your lines begin.` and `# Your lines end.`")
    COURSES.update(dict.fromkeys(texts, course))
    return tuple(texts)


def _text(name: str) -> str:
    return (COURSES[name] / "exercises" / f"{name}.py").read_text(encoding="utf-8")


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
    """Return the last chapter that an exercise belongs to; "" if it names none."""
    return (chapters(name) or [""])[-1]


def number(name: str) -> int:
    """Return an exercise's number: e07_exp → 7."""
    return int(name[1:3])


def size_of_course(name: str) -> int:
    """Return how many exercises there are in the course of an exercise."""
    return list(COURSES.values()).count(COURSES[name])
