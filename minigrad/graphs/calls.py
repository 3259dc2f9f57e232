"""5.12 · Calls: the line, the module and the name of a step.

Which line of the program computed a tensor, in which layer, and what did the program call the
result? The record (chapter 1.2) does not say, because no training needs it. But while an operation
runs, Python's call stack says it: it has a stack frame for each function that is being called. A
stack frame knows its source line, and its variable `self`. If `self` is a module of the network,
and the function is `__call__`, the module is being called. The line may be an assignment,
`scores = q @ k.mT`. The last operation that is computed while that line runs is the one whose
result gets the name.

The stack is read at each operation that is watched, which takes some ten microseconds. So it is
read only for those who ask (chapter 5.14).
"""

from __future__ import annotations

import ast
import functools
import linecache
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from minigrad.engine import recomputing, replay
from minigrad.engine.safety import PACKAGE
from minigrad.graphs.model import Scope

GRADIENT = "∂"  # the path of operations that compute a gradient, in the place of a layer's
Name = Callable[[str], None]  # gives a name to a step
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
        self._modules = modules  # (held, so that no other object takes their ids)
        self._names = {id(module): name for name, module in modules.items()}
        # One stack frame is one call of a module. They are held until the end, so that a later call
        # cannot be taken for an earlier one.
        self._of_frame: dict[FrameType, tuple[str, int]] = {}  # its path, and the how many-th call
        self._count: Counter[str] = Counter()
        self._running: list[tuple[_Running, Name]] = []

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
            if code.co_name == "__call__":
                path = self._names.get(id(frame.f_locals.get("self")))
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
        for running, give in self._running[same:][::-1]:
            give(running.assignment.name)
        self._running = [(line, name) for line in lines] if name is not None else []

    def scopes(self, modules: tuple[tuple[str, int], ...]) -> tuple[Scope, ...]:
        """The modules of a call, by name. To be asked when all calls have been made."""
        found = []
        for path, nth in modules:
            count = f"#{nth}" if self._count[path] > 1 else ""
            kind = self.kinds.get(path, "gradient")
            if path or count:  # (the network itself is not worth a frame)
                found.append(Scope(f"{path or kind}{count}", kind))
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
_FILES: dict[str, tuple[list[str], list[_Assignment]]] = {}
# (Equal code of two files compares equal, so the file's name is a part of the key.)
_PLACES: dict[tuple[str, CodeType, int], _Assignment | None] = {}
# What has results of its own, or several: an operation in it is not what is assigned.
OTHERS = (ast.Lambda, ast.GeneratorExp, ast.ListComp, ast.SetComp, ast.DictComp)
OTHERS += (ast.Dict, ast.List, ast.Set, ast.Tuple)  # type: ignore[assignment]


def _assignment_at(code: CodeType, instruction: int) -> _Assignment | None:
    """The assignment whose value is being computed at an instruction of some bytecode."""
    place = code.co_filename, code, instruction
    if place not in _PLACES:
        first, _, column, _ = next(islice(code.co_positions(), instruction // 2, None))
        found = None
        if (
            first is not None
            and column is not None
            and code.co_name not in ("<lambda>", "<genexpr>")
        ):
            inside = [x for x in _assignments(code) if x.start <= (first, column) < x.end]
            found = max(inside[::-1], key=lambda x: x.start, default=None)  # the innermost
        _PLACES[place] = found if found is not None and found.name else None
    return _PLACES[place]


def _assignments(code: CodeType) -> list[_Assignment]:
    """The assignments of a file, and under the name "" what is not to be named.

    Empty for a source that cannot be read. A notebook's cells and doctests have sources, too.
    """
    lines = linecache.getlines(code.co_filename)
    known = _FILES.get(code.co_filename)
    if known is None or (known[0] is not lines and known[0] != lines):
        known = _FILES[code.co_filename] = lines, _assignments_in("".join(lines))
    return known[1]


def _assignments_in(source: str) -> list[_Assignment]:
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except (SyntaxError, ValueError, RecursionError):
        return []
    found = []
    for node in nodes:
        name, value = _assigned(node)
        if value is not None:
            start = (value.lineno, value.col_offset)
            found.append(_Assignment(name, start, (value.end_lineno, value.end_col_offset)))
    return found


def _assigned(node: ast.AST) -> tuple[str, Any]:
    """The one name that a node assigns to, and the value; "" for what is not to be named."""
    if isinstance(node, OTHERS):
        return "", node
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        target: Any = node.targets[0]
    elif isinstance(node, ast.AnnAssign | ast.NamedExpr):
        target = node.target
    elif isinstance(node, ast.AugAssign):  # (the operation stands at the whole statement)
        return (node.target.id, node) if isinstance(node.target, ast.Name) else ("", None)
    else:
        return "", None
    return (target.id, node.value) if isinstance(target, ast.Name) else ("", node.value)
