"""Model: a record as plain data.

What does a drawing need? Which tensors there are, what each was computed from, and how large the
gradient at each is. This file collects that as plain data, a `Vertex` for each tensor, in the
order in which the tensors were computed. A drawing reads this list, and not the record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from minigrad.checks.agreeing import Verdict
from minigrad.engine.record import Node
from minigrad.engine.replay import inputs_of
from minigrad.engine.tensor import Array, Tensor, result
from minigrad.graphs.operations import (
    UNKNOWN,
    Facts,
    Rule,
    options_text,
    printable,
    transposes,
)
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

    kind        "leaf" (one that requires a gradient), "constant" or "operation"
    title       the name its owner gave it, the operation's name, or a small constant's values
    operation   the operation's name, "" for leaves and constants
    options     the options the operation was called with, as text; not those with the usual value
    inputs      the numbers of the tensors it was computed from, one for each use
    value       a summary of its array
    gradient    a summary of ∂L/∂(this tensor); None if none was asked for or none reaches it
    named       whether the title is a name that somebody gave
    parameter   whether it is a leaf that a layer or `names=` names, or whose own name looks like
                that of a layer's leaf (weight, bias, gain, or a name with a dot)
    modules     the modules that were being called when it was computed, the outermost first
    line        the line of source that computed it, "demos/one.py, line 12"
                (modules and line are known from `Steps` alone)
    rule        what is known about the operation's rule; None for leaves and constants
    verdict     what differences say of the gradient at it; None if they were not asked
    settings    all options in full, to compare operations with: `options` may be shortened
    transposes  whether it exchanges the last two axes, and no others
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
    rule: Rule | None = None
    verdict: Verdict | None = None
    settings: str = field(default="", repr=False)
    transposes: bool = field(default=False, repr=False)

    @property
    def facts(self) -> Facts:
        """The operation's entry in the table of operations."""
        return UNKNOWN if self.rule is None else self.rule.facts

    @property
    def grad_rms(self) -> float | None:
        """√mean(g²) for g = ∂L/∂(this tensor); NaN or ∞ if an element is."""
        return None if self.gradient is None else self.gradient.rms

    @property
    def grad_norm(self) -> float | None:
        """√Σg², the length of the gradient."""
        return None if self.gradient is None else self.gradient.norm


# The names that the layers of chapter 7.3 give their own leaves.
OF_LAYERS = ("weight", "bias", "gain")


class Model:
    """The vertices of all tensors that were met, each after those that it was computed from.

    A tensor is met again and again: when an operation computes it, when others use it, and when its
    gradient comes. The key of a result is its node (while the operation is watched, its Tensor is
    not made yet). The key of a leaf is the leaf with the time of its array: `w -= 0.1` gives it
    another array, and earlier results have used the former one.

    `names` has names that tensors have besides their own.
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
        number = len(self.met)
        node, given = t.node, self.names.get(t)
        name = printable(given or t.name or "")
        known: dict[str, Any] = {"named": bool(name), "line": line}
        if node is not None:
            kind, title = "operation", node.rule.__name__
            known |= {"operation": title, "rule": Rule.of(node.rule)}
            known["transposes"] = transposes(node.rule, node.options, t.ndim)
            if node.options:
                known["options"] = options_text(node.rule, node.options, t.shape)
                known["settings"] = repr(node.options)
        elif t.requires_grad:
            kind = title = "leaf"
            known["parameter"] = given is not None or "." in name or name in OF_LAYERS
        else:
            kind = title = "constant"
            if t.size <= 4:
                title = shown(t._array)
        dtype, value = dtype_name(t.dtype), Summary.of(t._array)
        self.met.append(Vertex(number, kind, name or title, t.shape, dtype, inputs, value, **known))
        self._owners.append(node or t)
        self._numbers[self._key(t)] = number
        return number

    def change(self, number: int, **known: Any) -> None:
        """Set fields of a vertex that are known later: its layers, its name, its gradient."""
        self.met[number] = replace(self.met[number], **known)

    def behind(
        self,
        results: Iterable[Tensor],
        gradients: Mapping[Tensor, Any] | None,
        names: Mapping[Tensor, str],
        verdicts: Mapping[Tensor, Verdict] | None = None,
    ) -> list[Vertex]:
        """Return the vertices behind results, numbered anew, with gradients, names and verdicts.

        If `gradients` is None, each vertex keeps the gradient that was noted.
        """
        stack = [self.number_of(y) for y in results]
        found = set(stack)
        while stack:
            new = set(self.met[stack.pop()].inputs) - found
            found |= new
            stack += new
        number = {n: k for k, n in enumerate(sorted(found))}
        grads = {x.node or x: Summary.of(np.asarray(g)) for x, g in (gradients or {}).items()}
        given = {x.node or x: printable(name) for x, name in names.items()}
        judged = {x.node or x: verdict for x, verdict in (verdicts or {}).items()}
        met = [
            replace(v, title=given[x], named=True, parameter=v.kind == "leaf") if x in given else v
            for v, x in zip(self.met, self._owners, strict=True)
        ]
        vertices = []
        for n, k in number.items():
            inputs = tuple([number[i] for i in met[n].inputs])
            gradient = met[n].gradient if gradients is None else grads.get(self._owners[n])
            verdict = judged.get(self._owners[n])
            numbered = replace(met[n], number=k, inputs=inputs)
            vertices.append(replace(numbered, gradient=gradient, verdict=verdict))
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
