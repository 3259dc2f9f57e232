"""5.12 · Calls: the line, the module and the name of a step.

Which line of the program computed a tensor, in which layer, and what did the program call the
result? The record (chapter 1.2) does not say, because no training needs it. But while an operation
runs, Python's call stack says it: it has a stack frame for each function that is being called. A
stack frame knows its source line, its code and its variables. If the code is that of a module's
`__call__`, and its first argument is that module, usually called `self`, the module is being
called.

The line may be an assignment, `scores = q @ k.mT`. When it has ended, the variable `scores` is some
object. If that object is the result of an operation that was computed while the line ran, the
result gets the name. So `n = len(x * x)` names nothing.

The stack is read at each operation that is watched, which takes some ten microseconds. So it is
read only for those who ask (chapter 5.14).
"""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from minigrad.engine import recomputing, replay
from minigrad.engine.safety import PACKAGE
from minigrad.graphs.model import Scope
from minigrad.graphs.text import printable

GRADIENT = "∂"  # the path of operations that compute a gradient, in the place of a layer's
Place = tuple[int, int]  # of a character in a file: its line, and its column in bytes


@dataclass(frozen=True)
class Call:
    """Where an operation was called: its line, its modules, and the lines that assign its result.

    `modules` are the names of layers, the outermost first, each with the number of its call.
    """

    line: str
    modules: tuple[tuple[str, int], ...]
    assignments: tuple[_Running, ...]


@dataclass(frozen=True)
class _Assignment:
    """A statement `name = value` in a file: the name, and where the value stands."""

    name: str
    start: Place
    end: Place


@dataclass(frozen=True)
class _Running:
    """An assignment that is running, in a stack frame."""

    frame: FrameType
    assignment: _Assignment
    place: int  # how far the stack frame has come, in its bytecode
    callee: FrameType | None  # the function that it has called

    def goes_on_as(self, later: _Running) -> bool:
        """Whether `later` is the same run of the line. A loop that runs it again jumps back."""
        return (
            self.frame is later.frame
            and self.assignment is later.assignment
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
        self._mark = "#"  # before the number of a call: what no name of a layer contains
        while any(self._mark in name for name in modules):
            self._mark += "#"
        # By the ids of a code and of its first argument. (Modules and codes are held, so that no
        # other object takes their ids.)
        self._paths: dict[tuple[int, int], str] = {}
        self._modules, self._codes = modules, dict[int, CodeType]()
        for name, module in modules.items():
            for code in _codes(type(module)):
                self._codes[id(code)] = code
                self._paths[id(code), id(module)] = name
        # One stack frame is one call of a module. They are held until the end, so that a later call
        # cannot be taken for an earlier one.
        self._of_frame: dict[FrameType, tuple[str, int]] = {}  # its path, and the how many-th call
        self._count: Counter[str] = Counter()
        self._running: list[tuple[_Running, int]] = []  # lines, and the first step of each

    def now(self, frame: FrameType | None) -> Call | None:
        """What the stack says of the operation that is called in `frame`.

        None inside of `recompute`, whose steps are not steps of the pass, unless they are computed
        to be differentiated again.
        """
        line, inside_recompute = "", False
        modules: list[tuple[FrameType, str]] = []
        running: list[_Running] = []
        callee = None
        while frame is not None:
            code = frame.f_code
            if code is _RECOMPUTED:
                inside_recompute = True
            elif code is _BY_DEFINITION:
                inside_recompute = False
            elif code is _REPLAY:
                modules = [(frame, GRADIENT)]  # (of passes inside each other, the outer one)
            elif not code.co_filename.startswith(PACKAGE):
                line = line or f"{shown_path(code.co_filename)}, line {frame.f_lineno}"
                assignment = _assignment_at(code, frame.f_lasti)
                if assignment is not None:
                    running.append(_Running(frame, assignment, frame.f_lasti, callee))
            if id(code) in self._codes:
                if frame in self._of_frame:
                    path: str | None = self._of_frame[frame][0]
                else:
                    path = self._paths.get((id(code), id(_first_argument(frame))))
                if path is not None:
                    if modules and modules[-1][1] == path:  # super().__call__
                        modules.pop()
                    modules.append((frame, path))
            if frame is self.outermost:
                break
            callee, frame = frame, frame.f_back
        if inside_recompute:
            return None
        for module, path in reversed(modules):
            if module not in self._of_frame:
                self._count[path] += 1
                self._of_frame[module] = (path, self._count[path])
        calls = [self._of_frame[module] for module, _ in reversed(modules)]
        return Call(line, tuple(calls), tuple(running[::-1]))

    def ended(self, call: Call | None, number: int) -> list[tuple[str, Any, int]]:
        """The lines that have ended: the name, what the variable is now, and the first step.

        Called for each step with its number, and with None at the end. If two lines assign one
        result, as `y = f(x)` and a line inside f do, the inner line comes first.
        """
        lines = call.assignments if call is not None else ()
        same = 0
        while same < min(len(lines), len(self._running)) and self._running[same][0].goes_on_as(
            lines[same]
        ):
            same += 1
        found = []
        for line, first in reversed(self._running[same:]):
            name = line.assignment.name
            found.append((name, _variable(line.frame, name), first))
        firsts = [first for _, first in self._running[:same]]
        firsts += [number] * (len(lines) - same)
        self._running = list(zip(lines, firsts, strict=True))
        return found

    def scopes(self, modules: tuple[tuple[str, int], ...]) -> tuple[Scope, ...]:
        """The modules of a call, by name. To be asked when all calls have been made."""
        found = []
        for path, nth in modules:
            count = f"{self._mark}{nth}" if self._count[path] > 1 else ""
            kind = self.kinds.get(path, "gradient")
            if path or count:  # (the network itself is not worth a frame)
                found.append(Scope(f"{path or kind}{count}", kind, count))
        return tuple(found)


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
        return printable(filename)
    top = path.parent
    while top != top.parent and os.path.exists(top / "__init__.py"):
        top = top.parent
    with suppress(OSError):  # (the working folder may have been removed)
        if top == path.parent and path.is_relative_to(Path.cwd()):
            top = Path.cwd()
    return printable(path.relative_to(top).as_posix())


# ---------------------------------------------------- A first reading may stop here.
# What follows: the code and the variables of a stack frame, and the assignments in a source file.

_REPLAY: CodeType = replay.replay.__code__
_RECOMPUTED: CodeType = recomputing.called.__code__
_BY_DEFINITION: CodeType = replay.by_definition.__code__  # (in a pass with create_graph=True)
_FILES: dict[str, tuple[list[str], list[_Assignment]]] = {}
# (Equal code of two files compares equal, so the file's name is a part of the key.)
_PLACES: dict[tuple[str, CodeType, int], _Assignment | None] = {}


def _codes(kind: type) -> Iterator[CodeType]:
    """The code of a class's `__call__`, inside of its decorators, and of those that it inherits."""
    for each in kind.__mro__:
        with suppress(ValueError):  # (a decorator that wraps itself)
            call: Any = vars(each).get("__call__")
            code = getattr(inspect.unwrap(call), "__code__", None)
            if isinstance(code, CodeType):
                yield code


def _first_argument(frame: FrameType) -> Any:
    """What a function was given first, in `f(self, x)` and in `f(*args)`."""
    code = frame.f_code
    if code.co_argcount:
        return _variable(frame, code.co_varnames[0])
    if code.co_flags & inspect.CO_VARARGS:
        given = _variable(frame, code.co_varnames[code.co_kwonlyargcount])
        return given[0] if isinstance(given, tuple) and given else None
    return None


def _variable(frame: FrameType, name: str) -> Any:
    """What a variable of a stack frame is; None if it has no value."""
    known = frame.f_locals
    try:
        return known[name] if name in known else frame.f_globals.get(name)
    finally:
        # Before Python 3.13 this is a copy that the frame keeps, and with it all that the function
        # has let go of. So it is emptied, unless the program holds it, too.
        is_copy = frame.f_code.co_flags & inspect.CO_NEWLOCALS and type(known) is dict
        if is_copy and sys.getrefcount(known) <= 3:
            known.clear()


def _assignment_at(code: CodeType, instruction: int) -> _Assignment | None:
    """The assignment whose value is being computed at an instruction of some bytecode."""
    place = code.co_filename, code, instruction
    if place not in _PLACES:
        first, _, column, _ = next(islice(code.co_positions(), instruction // 2, None))
        inside: list[_Assignment] = []
        if first is not None and column is not None:
            inside = [x for x in _assignments(code) if x.start <= (first, column) < x.end]
        # (the innermost)
        _PLACES[place] = max(inside[::-1], key=lambda x: x.start, default=None)
    return _PLACES[place]


def _assignments(code: CodeType) -> list[_Assignment]:
    """The assignments of a file: none of a source that cannot be read.

    A notebook's cells and doctests have sources, too.
    """
    name, lines = code.co_filename, list[str]()
    if os.path.isfile(name) or not os.path.exists(name):  # (a pipe may never end)
        with suppress(ValueError):  # (a name that no file can have)
            lines = linecache.getlines(name)
    known = _FILES.get(name)
    if known is None or (known[0] is not lines and known[0] != lines):
        known = _FILES[name] = lines, _assignments_in("".join(lines))
    return known[1]


def _assignments_in(source: str) -> list[_Assignment]:
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    return [_Assignment(*found) for node in nodes for found in _assigned(node)]


def _assigned(node: ast.AST) -> Iterator[tuple[str, Place, Place]]:
    """The one name that a node assigns to, and where the value begins and ends."""
    value: Any = None
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        target, value = node.targets[0], node.value
    elif isinstance(node, ast.AnnAssign | ast.NamedExpr):
        target, value = node.target, node.value
    elif isinstance(node, ast.AugAssign):  # (the operation stands at the whole statement)
        target, value = node.target, node
    if value is not None and isinstance(target, ast.Name):
        yield (
            target.id,
            (value.lineno, value.col_offset),
            (value.end_lineno, value.end_col_offset),
        )
