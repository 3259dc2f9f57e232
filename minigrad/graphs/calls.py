"""5.12 · Calls: the line, the module and the name of a step.

Which line of the program computed a tensor, in which layer, and what did the program call the
result? The record (chapter 1.2) does not say, because no training needs it. But while an operation
runs, Python's call stack says it: it has a stack frame for each function that is being called. A
stack frame knows its source line, and its variable `self`. If `self` is a module of the network,
and the function is `__call__`, the module is being called. The line may be an assignment,
`scores = q @ k.mT`. The last operation that is computed while that line runs is the one whose
result gets the name.

The stack is read at each operation that is watched, which takes some ten microseconds. So it is
read only for those who ask (chapter 5.13).
"""

from __future__ import annotations

import ast
import functools
import linecache
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from minigrad.engine import recomputing, replay
from minigrad.engine.safety import PACKAGE
from minigrad.graphs.model import Scope

GRADIENT = Scope("∂", "operations that compute a gradient")
Name = Callable[[str], None]  # gives a name to a step


@dataclass(frozen=True)
class Call:
    """Where an operation was called: its line, its modules, and the lines that assign its result.

    `modules` are stack frames, the outermost first. `Calls.scopes` turns them into names at the
    end.
    """

    line: str
    modules: tuple[FrameType, ...]
    of_gradient: bool
    assignments: tuple[_Assignment, ...]


@dataclass(frozen=True)
class _Assignment:
    """A line `name = …` that is running. Equal ones are one run of the line."""

    frame: FrameType
    start: int  # the first line of the statement
    name: str
    place: int  # how far the frame has come, in its bytecode
    callee: FrameType | None  # the function that the frame has called

    def goes_on_as(self, later: _Assignment) -> bool:
        """Whether `later` is the same run of the line. A loop that runs it again jumps back."""
        return (
            self.frame is later.frame
            and self.start == later.start
            and (
                self.place < later.place
                or (self.place == later.place and self.callee is later.callee)
            )
        )


class Calls:
    """Reads the call stack, from each operation up to the frame that asked for it."""

    def __init__(self, modules: Mapping[str, Any], outermost: FrameType) -> None:
        self.outermost = outermost
        self.kinds = {name: type(module).__name__ for name, module in modules.items()}
        self._names = {id(module): name for name, module in modules.items()}
        # One frame is one call of a module. The frames are held until the end, so that a later
        # call cannot be taken for an earlier one.
        self._calls: dict[str, list[FrameType]] = {}
        self._of_frame: dict[FrameType, str] = {}
        self._running: list[tuple[_Assignment, Name]] = []

    def now(self, frame: FrameType | None) -> Call | None:
        """What the stack says of the operation that is called in `frame`.

        None inside of `recompute`, whose steps are not steps of the pass, unless they are computed
        to be differentiated again.
        """
        line, of_gradient, inside_recompute = "", False, False
        modules: list[FrameType] = []
        assignments: list[_Assignment] = []
        callee = None
        while frame is not None:
            code = frame.f_code
            if code is _RECOMPUTED:
                inside_recompute = True
            elif code is _BY_DEFINITION:
                inside_recompute = False
            elif code is _REPLAY:
                of_gradient = True
            elif not code.co_filename.startswith(PACKAGE):
                line = line or f"{shown_path(code.co_filename)}, line {frame.f_lineno}"
                start, name = _assignments(code.co_filename).get(frame.f_lineno, (0, ""))
                # (A lambda's body stands on the line of an assignment, but is not what it assigns.)
                if name and not code.co_name.startswith("<l"):
                    assignments.append(_Assignment(frame, start, name, frame.f_lasti, callee))
            if code.co_name == "__call__" and self._is_module(frame):
                modules.append(frame)
            if frame is self.outermost:
                break
            callee, frame = frame, frame.f_back
        if inside_recompute:
            return None
        return Call(line, tuple(modules[::-1]), of_gradient, tuple(assignments[::-1]))

    def assign(self, call: Call | None, name: Name | None) -> None:
        """Note the lines that run; lines that have ended give their names to their last steps.

        Called for each step with a function that names it, and with None at the end. If two lines
        assign one result, as `y = f(x)` and a line inside f do, the inner line names it.
        """
        lines = call.assignments if call is not None else ()
        same = 0
        while same < min(len(lines), len(self._running)) and self._running[same][0].goes_on_as(
            lines[same]
        ):
            same += 1
        for assignment, give in self._running[same:][::-1]:
            give(assignment.name)
        self._running = [(line, name) for line in lines] if name is not None else []

    def scopes(self, call: Call) -> tuple[Scope, ...]:
        """The modules of a call, by name. To be asked when all calls have been made."""
        if call.of_gradient:
            return (GRADIENT,)
        found = []
        for frame in call.modules:
            path = self._of_frame[frame]
            calls = self._calls[path]
            count = f"#{calls.index(frame) + 1}" if len(calls) > 1 else ""
            if path or count:  # (the network itself is not worth a frame)
                found.append(Scope(f"{path or self.kinds[path]}{count}", self.kinds[path]))
        return tuple(found)

    def _is_module(self, frame: FrameType) -> bool:
        if frame in self._of_frame:
            return True
        path = self._names.get(id(frame.f_locals.get("self")))
        if path is None:
            return False
        self._of_frame[frame] = path
        self._calls.setdefault(path, []).append(frame)
        return True


@functools.cache
def shown_path(filename: str) -> str:
    """A source file's path from its package or from the working folder on; never an absolute one.

    >>> import minigrad
    >>> from minigrad.graphs.calls import shown_path
    >>> shown_path(minigrad.__file__)
    'minigrad/__init__.py'
    """
    path = Path(filename)
    if not path.is_absolute():
        return filename
    top = path.parent
    while (top / "__init__.py").exists():
        top = top.parent
    if top == path.parent and path.is_relative_to(Path.cwd()):
        top = Path.cwd()
    return path.relative_to(top).as_posix()


# ---------------------------------------------------- A first reading may stop here.
# What follows: the assignments in a source file.

_REPLAY: CodeType = replay.replay.__code__
_RECOMPUTED: CodeType = recomputing.called.__code__
_BY_DEFINITION: CodeType = replay.by_definition.__code__  # (in a pass with create_graph=True)
_FILES: dict[str, tuple[list[str], dict[int, tuple[int, str]]]] = {}


def _assignments(filename: str) -> dict[int, tuple[int, str]]:
    """For each line of a file that is part of an assignment to one name: its start, and the name.

    Empty for a source that cannot be read. A notebook's cells and doctests have sources, too.
    """
    lines = linecache.getlines(filename)
    known = _FILES.get(filename)
    if known is None or (known[0] is not lines and known[0] != lines):
        known = _FILES[filename] = lines, _assignments_in("".join(lines))
    return known[1]


def _assignments_in(source: str) -> dict[int, tuple[int, str]]:
    found: dict[int, tuple[int, str]] = {}
    try:
        statements = ast.walk(ast.parse(source))
    except (SyntaxError, ValueError, RecursionError):
        return found
    for statement in statements:
        name = _assigned(statement)
        if name:
            first, last = statement.lineno, statement.end_lineno  # type: ignore[attr-defined]
            found |= dict.fromkeys(range(first, last + 1), (first, name))
    return found


def _assigned(statement: ast.AST) -> str:
    """The one name that a statement assigns to, or ""."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target: Any = statement.targets[0]
    elif isinstance(statement, ast.AugAssign | ast.AnnAssign | ast.NamedExpr):
        target = statement.target
    else:
        return ""
    return target.id if isinstance(target, ast.Name) else ""
