"""Model: a record as plain data.

What does a drawing need? Which tensors there are, what each was computed from, and how large the
gradient at each is. This file collects that as plain data, a `Vertex` for each tensor, in the
order in which the tensors were computed. A drawing reads this list, and not the record.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cache
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from minigrad.engine.record import Node
from minigrad.engine.replay import inputs_of
from minigrad.engine.tensor import Array, Tensor, result
from minigrad.graphs.operations import UNKNOWN, Facts, facts
from minigrad.graphs.summary import Summary, dtype_name, rounded, shown


class Scope(NamedTuple):
    """A module that was being called: its dotted name in the network, and its class.

    The name ends in #2 in the second call of a module; `call` is that ending.
    """

    path: str
    kind: str
    call: str = ""

    @property
    def layer(self) -> str:
        """The dotted name alone, without the number of the call."""
        return self.path.removesuffix(self.call)


@dataclass(frozen=True)
class Vertex:
    """One tensor of a record: a leaf, a constant, or the result of an operation.

    kind       "leaf" (one that requires a gradient), "constant" or "operation"
    title      the name its owner gave it, the operation's name, or a small constant's values
    operation  the operation's name, "" for leaves and constants
    options    the options the operation was called with, as text; not those with the usual value
    inputs     the numbers of the tensors it was computed from, one for each use
    value      a summary of its array
    gradient   a summary of ∂L/∂(this tensor); None if none was asked for or none reaches it
    named      whether the title is a name that somebody gave
    parameter  whether it is a leaf that a layer holds
    modules    the modules that were being called when it was computed, the outermost first
    line       the line of source that computed it, "demos/one.py, line 12"
               (modules and line are known from `Steps` alone)
    formula    the first line of the operation's docstring, `displayed` the formulas that the
               docstring sets apart, and `letters` the names that both have for the inputs
    fused      whether the operation does several steps at once, which `unfused()` shows
    facts      the operation's entry in the table of operations
    likeness   equal for operations with equal options, also where the text is shortened
    """

    number: int
    kind: str
    title: str
    shape: tuple[int, ...]
    dtype: str
    inputs: tuple[int, ...]
    value: Summary
    operation: str = ""
    options: str = ""
    gradient: Summary | None = None
    named: bool = False
    parameter: bool = False
    modules: tuple[Scope, ...] = ()
    line: str = ""
    formula: str = ""
    displayed: tuple[str, ...] = ()
    letters: tuple[str, ...] = ()
    fused: bool = False
    facts: Facts = field(default=UNKNOWN, repr=False)
    likeness: int = field(default=0, repr=False)

    @property
    def grad_rms(self) -> float | None:
        """√mean(g²) for g = ∂L/∂(this tensor); NaN or ∞ if an element is."""
        return None if self.gradient is None else self.gradient.rms

    @property
    def grad_norm(self) -> float | None:
        """√Σg², the length of the gradient."""
        return None if self.gradient is None else self.gradient.norm


LONGEST = 12  # characters of a composed name
LAST_TWO = ("axis1=-1, axis2=-2", "axis1=-2, axis2=-1")  # options of a transposition
# The names that the layers of chapter 7.3 give their own leaves.
OF_LAYERS = ("weight", "bias", "gain")


class Model:
    """The vertices of all tensors that were met, each after those that it was computed from.

    A tensor is met again and again: when an operation computes it, when others use it, and when its
    gradient comes. The key of a result is its node (while the operation is watched, its Tensor is
    not made yet). The key of a leaf is the leaf with the time of its array: `w -= 0.1` gives it
    another array, and earlier results have used the former one.

    names   names that tensors have besides their own
    """

    def __init__(self, names: Mapping[Tensor, str] | None = None) -> None:
        self.names = names or {}
        self.met: list[Vertex] = []  # a vertex has its place in this list as its number
        self._owners: list[Any] = []  # each vertex's node, or the leaf or constant itself
        self._numbers: dict[Any, int] = {}  # by key

    def _key(self, x: Tensor) -> Any:
        return (x, x._time) if x.node is None else x.node

    def number_of(self, x: Tensor) -> int:
        """Return the number of a tensor's vertex. A tensor that was not met yet gets one.

        The same holds for its inputs, unless an earlier pass has dropped them.
        """
        known, key = self._numbers, self._key
        if key(x) not in known:
            new = lambda t: tuple([z for z in t.node.inputs if key(z) not in known])
            for t in walk(x, new):
                self._add(t, tuple([known[key(z)] for z in (t.node.inputs if t.node else ())]))
        return known[key(x)]

    def still(self, inputs: Sequence[Tensor], numbers: Sequence[int]) -> bool:
        """Return whether tensors have the arrays of these vertices: no leaf was given another."""
        known = [self._numbers.get(self._key(x)) for x in inputs]
        return known == list(numbers)

    def number_of_result(self, x: Any) -> int | None:
        """Return the number of an operation's result that was met; None for anything else."""
        return self._numbers.get(x.node) if isinstance(x, Tensor) else None

    def computed(self, value: Array, node: Node, line: str) -> int:
        """Add the result of an operation, whose Tensor is not made yet; return its number."""
        numbers = tuple([self.number_of(x) for x in node.inputs])
        return self._add(result(value, node), numbers, line)

    def _add(self, t: Tensor, inputs: tuple[int, ...], line: str = "") -> int:
        """Add a vertex for a tensor, and return its number."""
        number = self._numbers[self._key(t)] = len(self.met)
        node, given = t.node, self.names.get(t)
        known: dict[str, Any] = {}
        name = printable(given or t.name or "")
        kind = plain = "leaf" if t.requires_grad else "constant"
        if node is not None:
            kind, plain = "operation", node.rule.__name__
            known = _of_rule(node.rule, node.options, t.shape)
        elif kind == "constant" and t.size <= 4:
            plain = shown(t._array)
        is_parameter = kind == "leaf" and (given is not None or "." in name or name in OF_LAYERS)
        known |= {"named": bool(name), "parameter": is_parameter, "line": line}
        dtype, value = dtype_name(t.dtype), Summary.of(t._array)
        self.met.append(Vertex(number, kind, name or plain, t.shape, dtype, inputs, value, **known))
        self._owners.append(node or t)
        return number

    def change(self, number: int, **known: Any) -> None:
        """Set fields of a vertex that are known later: its layers, its name, its gradient."""
        self.met[number] = replace(self.met[number], **known)

    def behind(
        self, y: Tensor, gradients: Mapping[Tensor, Any] | None, names: Mapping[Tensor, str]
    ) -> list[Vertex]:
        """Return the vertices behind y, numbered anew, with their gradients and more names.

        If `gradients` is None, each vertex keeps the gradient that was noted.
        """
        root = self.number_of(y)
        found, stack = {root}, [root]
        while stack:
            new = set(self.met[stack.pop()].inputs) - found
            found |= new
            stack += new
        number = {n: k for k, n in enumerate(sorted(found))}
        grads = {x.node or x: Summary.of(np.asarray(g)) for x, g in (gradients or {}).items()}
        given = {x.node or x: printable(name) for x, name in names.items()}
        met = [
            replace(v, title=given[x], named=True, parameter=v.kind == "leaf") if x in given else v
            for v, x in zip(self.met, self._owners, strict=True)
        ]
        vertices = []
        for n, k in number.items():
            inputs = tuple([number[i] for i in met[n].inputs])
            gradient = met[n].gradient if gradients is None else grads.get(self._owners[n])
            vertices.append(replace(met[n], number=k, inputs=inputs, gradient=gradient))
        return vertices


def walk(y: Tensor, inputs: Callable[[Tensor], tuple[Tensor, ...]] = inputs_of) -> list[Tensor]:
    """Return all tensors behind y, each after those that it was computed from.

    The results are collected from y backwards, and sorted by their times (chapter 2.1). `inputs`
    gives a result's inputs, or those of them that are wanted.
    """
    results: set[Tensor] = set()
    stack = [y] if y.node is not None else []
    while stack:
        t = stack.pop()
        if t not in results:
            results.add(t)
            stack += [x for x in inputs(t) if x.node is not None and x not in results]
    order: dict[Tensor, None] = {}  # (used as a set that keeps its order)
    for t in sorted(results, key=attrgetter("_time")):
        order |= dict.fromkeys(x for x in inputs(t) if x.node is None)
        order[t] = None
    return list(order) or [y]


def plain(x: Any, digits: int = 6) -> Any:
    """Return data as JSON can hold it, without empty fields. NaN and ∞ become text."""
    if is_dataclass(x):
        known = {f.name: getattr(x, f.name) for f in fields(x) if f.repr}
        return {
            name: plain(y, digits)
            for name, y in known.items()
            if not (y is None or y is False or (isinstance(y, str | tuple) and not y))
        }
    if isinstance(x, Scope):
        return x.path
    if isinstance(x, list | tuple):
        return [plain(each, digits) for each in x]
    return rounded(x, digits)


def unique_names(vertices: Sequence[Vertex]) -> list[str]:
    """Return a name for each vertex, to be used in text: its title, or t and its number.

    If several have the title x, they are x#1, x#2, and so on. A small constant is called by its
    values.
    """
    values = {v.title for v in vertices if v.kind == "constant" and v.title != "constant"}
    titles = []
    for v in vertices:
        plain = f"t{v.number}" if v.operation else f"{v.kind} {v.shape}"
        titles.append(v.title if v.named or v.title in values else plain)
    return numbered(titles, values - {v.title for v in vertices if v.named})


def spoken(vertices: Sequence[Vertex]) -> list[str]:
    """Return what a person calls each tensor: its name, or one composed of up to twelve characters.

    The result of q @ k.mT is called q·kᵀ. If that is too long, the last input is left: × c. The
    result of a layer that is one operation is called by the layer's name, as its box is.
    """
    found: list[str] = []
    inside = Counter(s for v in vertices if v.operation and not v.facts.moves for s in v.modules)
    composed: set[int] = set()  # names of several letters, which may need brackets
    shortened: set[int] = set()  # of × c nothing can be composed
    for v in vertices:
        said, short = v.facts.said, ""
        layer = next((scope.path for scope in v.modules if inside[scope] == 1), "")
        if layer and not v.facts.moves:
            found.append(layer)
            continue
        inputs = [found[i] for i in v.inputs]
        unknown = {vertices[i].operation for i in v.inputs if not vertices[i].named} & {*inputs}
        if v.named or not said or unknown or (v.facts.moves and v.options not in LAST_TWO):
            found.append(v.title)
            continue
        if len(inputs) > 1:
            short = said.removeprefix("{}").strip().format(inputs[-1])
        elif said[0] != "{":
            short = said.split()[0]  # Σ, mean
        for k, i in enumerate(v.inputs):
            is_sum = " + " in inputs[k] or " - " in inputs[k]
            close = said in ("{}ᵀ", "{}·{}") or (said == "{} / {}" and k)
            apart = said not in ("{} + {}", "{} - {}") or (said == "{} - {}" and k)
            if i in composed and (close or (is_sum and apart)):
                inputs[k] = f"({inputs[k]})"
        if said == "{} × {}" and all(x.isalpha() and len(x) == 1 for x in inputs):
            said = "{} {}"  # w x, as on paper
        whole = "" if shortened & {*v.inputs} else said.format(*inputs)
        name = next((x for x in (whole, short) if 0 < len(x) <= LONGEST), v.operation)
        composed |= {v.number} if name == whole and re.search("[ ·]", whole) else set()
        shortened |= {v.number} if name != whole else set()
        found.append(name)
    constants = {v.title for v in vertices if v.kind == "constant" and not v.named}
    return numbered(found, constants - {"constant"})


def numbered(titles: Sequence[str], alone: Set[str] = frozenset()) -> list[str]:
    """Return the titles, and x#1, x#2, … for those that occur several times (but for `alone`)."""
    count, met, names = Counter(titles), Counter[str](), []
    for title in titles:
        met[title] += 1
        is_one = count[title] == 1 or title in alone
        names.append(title if is_one else f"{title}#{met[title]}")
    return names


def _of_rule(rule: Any, options: Mapping[str, Any], shape: tuple[int, ...]) -> dict[str, Any]:
    # The function that a user calls: the operation of the rule, or ours that calls the rule.
    public: Any = getattr(sys.modules.get(rule.__module__), rule.__name__, None)
    ours = rule.__module__.startswith(("minigrad.", "attention."))
    if not (callable(public) and (ours or getattr(public, "__wrapped__", None) is rule)):
        public = rule
    formula, displayed = formulas(public.__doc__ or "")
    return {
        "operation": rule.__name__,
        "options": _options((rule, public), options, shape) if options else "",
        "formula": formula,
        "displayed": displayed,
        "letters": rule.__code__.co_varnames[: rule.__code__.co_posonlyargcount],
        "fused": hasattr(rule, "definition") and rule.__name__ != "recompute",
        "facts": facts(rule),
        # (A hash is another number in each process. It is only compared, and never written.)
        "likeness": hash(repr(options)) if options else 0,
    }


@cache
def formulas(doc: str) -> tuple[str, tuple[str, ...]]:
    """Return a docstring's first line, and the indented lines before its example."""
    lines = inspect.cleandoc(doc).partition(">>>")[0].splitlines() or [""]
    return lines[0], tuple([line[4:] for line in lines if line.startswith(" " * 4)])


def _options(functions: Iterable[Any], options: Mapping[str, Any], shape: tuple[int, ...]) -> str:
    """Return an operation's options as text, without defaults and without the result's shape."""
    parameters = [p for f in functions for p in inspect.signature(f).parameters.values()]
    usual = {(p.name, repr(p.default)) for p in parameters} | {("shape", repr(shape))}
    shown = [(name, value) for name, value in options.items() if (name, repr(value)) not in usual]
    return ", ".join(f"{name}={_option(value)}" for name, value in shown)


def _option(value: Any) -> str:
    """Write an option as short text: slices as they are typed, long arrays by their shape."""
    if isinstance(value, tuple):
        inside = ", ".join(_option(v) for v in value)
        return f"({inside},)" if len(value) == 1 else f"({inside})"
    if isinstance(value, slice):
        ends = ["" if v is None else str(v) for v in (value.start, value.stop)]
        return ":".join(ends) + ("" if value.step is None else f":{value.step}")
    if value is Ellipsis:
        return "..."
    if isinstance(value, np.ndarray) and value.size > 4:
        return f"array {value.shape}"
    text = printable(str(value) if not isinstance(value, str) else repr(value))
    return text if len(text) <= 32 else text[:31] + "…"


def printable(text: str) -> str:
    """Bring a text that a user supplied to one line, with a ? for control characters."""
    return "".join(c if c.isprintable() else "?" for c in " ".join(text.split()))
