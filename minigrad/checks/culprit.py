"""4.4 · Culprit: which rule of a composed function is wrong.

How do you find the one wrong derivative among thirty? By checking each of them alone. The record
of f holds all that is needed: every node names its rule, and has the inputs on which the rule ran.
So each node is a small function of its own, and `compare` (chapter 4.3) judges it on those inputs,
whatever stands before it or after it in f.

    >>> from minigrad import primitive
    >>> from minigrad.checks.culprit import Search
    >>> @primitive
    ... def half_tanh(x, /):
    ...     return np.tanh(x), lambda g, y: g * (1 - y * y) / 2
    >>> f = lambda x: (np.exp(half_tanh(x)) * x).sum()
    >>> rng = np.random.default_rng(0)
    >>> search = Search(f, [Tensor([0.5, 1.0], requires_grad=True)], order=1, rtol=1e-8, rng=rng)
    >>> [(rule.name, i) for rule, i in search.wrong], search.right
    ([('half_tanh', 0)], 3)

If each rule is right by itself and the gradient of f is wrong all the same, then f left the record
on its way (chapter 4.7).

A node whose value holds an infinity is checked where it is finite.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from time import perf_counter
from typing import Any

import numpy as np

from minigrad.checks.checking import Wrong, compare, refuse_an_ignored_seed
from minigrad.checks.claims import GradientError, first_order, second_order
from minigrad.checks.differences import elementwise
from minigrad.engine.autograd import gradients
from minigrad.engine.replay import behind
from minigrad.engine.rules import primitive
from minigrad.engine.tensor import Array, Tensor

MOST_NODES = 200  # of a larger record only so many are checked, those of different rules first
MOST_WORK = 2e8  # and in all only so many numbers are computed, which takes about a second
MOST_SECONDS = 3.0  # after this no further node is looked at
EVALUATIONS = 100  # of a rule, for one input of it: 26 along each of three directions, and bands


class Alone:
    """One node of a record as a function of its own: a rule on the inputs that it met in f."""

    def __init__(self, t: Tensor) -> None:
        node: Any = t.node
        self.rule, self.name, self.options = node.rule, node.name, node.options
        self.operation = _operation_of(node)
        self.is_fused = hasattr(node.rule, "definition")
        # What gradcheck does with f's inputs: floating numbers are computed with in float64.
        self.inputs = [x.data.astype(float) if x.dtype.kind == "f" else x.data for x in node.inputs]
        self.wanted = [
            i for i, x in enumerate(node.inputs) if x.requires_grad and x.dtype.kind == "f"
        ]
        self.names = [x.name for x in node.inputs]
        self.shape = t.shape

    def value(self, inputs: Sequence[Array]) -> Array:
        """What the rule computes from these arrays."""
        return np.asarray(self.operation(*inputs, **self.options))

    def claim(self, inputs: Sequence[Array], g: Array, i: int) -> Array:
        """What the rule's VJP says: the gradient of ⟨g, value⟩ with respect to input i."""
        tensors = [Tensor(x, requires_grad=k == i) for k, x in enumerate(inputs)]
        y = self.operation(*tensors, **self.options)
        return np.asarray(gradients(y, [tensors[i]], g)[0])

    def true(
        self, inputs: Sequence[Array], g: Array, i: int, only: Array | None = None
    ) -> tuple[Array, Array]:
        """The same gradient by differences, and its resolution; `only` at these flat indices."""
        given = list(inputs)

        def total(point: Array) -> Array:
            given[i] = point
            return np.array([(g * self.value(given)).sum()])

        point = np.asarray(inputs[i])
        magnitude = np.array([np.abs(g * self.value(inputs)).sum()])
        slope, resolution = elementwise(total, point, magnitude, only)
        return slope[:, 0], resolution[:, 0]

    def function(self) -> Callable[..., Tensor]:
        """The rule as a function of its wanted inputs alone, kept to what is finite."""
        finite = np.isfinite(self.value(self.inputs))
        places = [np.isfinite(self.inputs[i]) for i in self.wanted]

        def f(*points: Any) -> Any:
            given: list[Any] = list(self.inputs)
            for i, place, point in zip(self.wanted, places, points, strict=True):
                given[i] = point if place.all() else np.where(place, point, self.inputs[i])
            y = self.operation(*given, **self.options)
            return y if finite.all() else np.where(finite, y, 0.0)

        return f

    def points(self) -> list[Array]:
        """Where to check that function: the wanted inputs; what is not finite becomes 1."""
        return [np.where(np.isfinite(x), x, 1.0) for x in (self.inputs[i] for i in self.wanted)]


class Search:
    """Each node behind f's output, checked alone. What is wrong, and how many are right.

    wrong    each wrong rule with the input whose VJP is wrong (or None), in the order of the record
    found    what `compare` raised for each of them
    right    how many nodes are right
    unsure   how many could not be judged: the difference is too coarse, or the node too large
    """

    def __init__(
        self, f: Callable[..., Tensor], points: list[Tensor], order: int, rtol: float, rng: Any
    ) -> None:
        self.wrong: list[tuple[Alone, int | None]] = []
        self.found: list[GradientError] = []
        self.order, self.right, self.unsure = order, 0, 0
        self.work = MOST_WORK
        nodes = [t for t in behind(f(*points)) if t.node is not None]
        nodes.sort(key=attrgetter("_time"))
        chosen = _of_different_rules_first(nodes)[:MOST_NODES]
        self.unsure += len(nodes) - len(chosen)
        judged = {}
        until = perf_counter() + MOST_SECONDS
        for t in sorted(chosen, key=_numbers):  # the small ones first
            before = len(self.wrong)
            if perf_counter() < until:
                self._judge(Alone(t), order, rtol, rng)
            else:
                self.unsure += 1
            if len(self.wrong) > before:
                judged[t] = self.wrong[-1], self.found[-1]
        in_order = [judged[t] for t in sorted(judged, key=attrgetter("_time"))]
        self.wrong, self.found = [pair for pair, _ in in_order], [how for _, how in in_order]

    def _judge(self, alone: Alone, order: int, rtol: float, rng: Any) -> None:
        size = int(np.prod(alone.shape)) + sum(x.size for x in alone.inputs)
        work = size * EVALUATIONS * len(alone.wanted) * order
        if not alone.wanted or work > self.work:
            self.unsure += 1
            return
        self.work -= work
        try:
            with np.errstate(all="ignore"):
                claims = first_order(alone.function(), alone.points(), rng, alone=True)
                seen = compare(claims, 1, rtol, rng)
                refuse_an_ignored_seed(claims)
                if order == 2:
                    seen += compare(second_order(claims, rng), 2, rtol, rng)
        except Wrong as found:
            position = found.j if found.worst.order == 2 else found.i
            self.wrong.append((alone, alone.wanted[position]))
            self.found.append(found)
        except GradientError as found:
            # Not proportional to g; or it computes one thing with arrays and another with Tensors.
            self.wrong.append((alone, None if found.input is None else alone.wanted[found.input]))
            self.found.append(found)
        except Exception:  # a rule that fails on its own inputs, now in float64: nothing is known
            self.unsure += 1
        else:
            sure = all(c.verdict != "unresolved" for c in seen)
            self.right, self.unsure = self.right + sure, self.unsure + (not sure)


def _operation_of(node: Any) -> Callable[..., Any]:
    """The operation of a node: its rule, made one once more, so that it records itself."""
    remade: Callable[..., Any] = primitive(name=node.name)(node.rule)
    return remade


def _numbers(t: Tensor) -> tuple[int, int]:
    """How many numbers a node takes and gives; of two with as many the earlier one is first."""
    node: Any = t.node
    return t.size + sum(x.size for x in node.inputs), t._time


def _of_different_rules_first(nodes: list[Tensor]) -> list[Tensor]:
    """The first node of each rule, options and shapes; after these the others."""
    first: dict[Any, Tensor] = {}
    for t in nodes:
        node: Any = t.node
        first.setdefault((node.name, str(node.options), *(x.shape for x in node.inputs)), t)
    chosen = set(first.values())
    return [*first.values(), *(t for t in nodes if t not in chosen)]
