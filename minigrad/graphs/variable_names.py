"""Variable names: the variable that got a tensor, and the line of the program that computed it.

The record does not say it, but while an operation runs, Python's call stack does: each function
that is being called has a stack frame, which knows its file and its present line. The line may be
an assignment, `scores = q @ k.mT`. When the next operation comes, or the block ends, its variable
is looked up: if that is now the result of an operation that was computed while the line ran, the
result gets the variable's name.
"""

from __future__ import annotations

import ast
import linecache
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

from minigrad.engine import recomputing
from minigrad.engine.safety import PACKAGE
from minigrad.graphs.model import Model
from minigrad.graphs.operations import printable

Variable = tuple[FrameType, str]  # of a stack frame


def line_of(operation: FrameType, outermost: FrameType) -> tuple[str, list[Variable]] | None:
    """Read the call stack, from the stack frame of an operation up to `outermost`.

    Return the line that called the operation, and the variables of all assignments that are
    running, the innermost first. None inside of `recompute`, whose steps are not steps of the pass.
    """
    text, variables = "", list[Variable]()
    frame: FrameType | None = operation
    while frame is not None:
        code = frame.f_code
        if code.co_filename == recomputing.__file__ and frame is not operation:
            return None
        if not code.co_filename.startswith(PACKAGE):
            text = text or f"{shown_path(code.co_filename)}, line {frame.f_lineno}"
            names = _assigned(code.co_filename).get(frame.f_lineno, ())
            variables += [(frame, name) for name in names]
        frame = frame.f_back if frame is not outermost else None
    return text, variables


def named(
    running: dict[Variable, int], number: int, variables: list[Variable], model: Model
) -> dict[Variable, int]:
    """Name results after their variables; return the variables of the lines that run now.

    `running` are the variables of the lines that ran before, each with the first step of its line;
    `variables` are those of step `number`. If two lines assign one result, as `y = f(x)` and a line
    inside f do, the inner line names it.
    """
    now = dict.fromkeys(variables, number)
    for (frame, name), first in running.items():
        value = frame.f_locals.get(name, frame.f_globals.get(name))
        found = model.number_of_result(value)
        if found is not None and found >= first:
            if not model.met[found].named:
                model.change(found, title=name, named=True)
        elif (frame, name) in now:  # the line is still running
            now[frame, name] = first
    return now


@cache
def shown_path(filename: str) -> str:
    """Return a source file's path, from its package on."""
    path = Path(filename)
    if not path.is_absolute():
        return printable(filename)
    top = path.parent
    while (top / "__init__.py").exists():
        top = top.parent
    return printable(path.relative_to(top).as_posix())


@cache
def _assigned(filename: str) -> dict[int, list[str]]:
    """Return the names that a file's lines assign to; none if its source cannot be read.

    A notebook's cells and doctests have sources, too.
    """
    found: dict[int, list[str]] = {}
    try:
        nodes: list[Any] = list(ast.walk(ast.parse("".join(linecache.getlines(filename)))))
    except SyntaxError:
        return found
    for node in nodes:
        targets = getattr(node, "targets", None) or [getattr(node, "target", None)]
        if hasattr(node, "value") and len(targets) == 1 and isinstance(targets[0], ast.Name):
            for line in range(node.lineno, node.end_lineno + 1):
                found.setdefault(line, []).append(targets[0].id)
    return found
