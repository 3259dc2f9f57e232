"""Culprit: which rule of a composed function is wrong.

How do you find the one wrong derivative among thirty? By checking each of them alone. The record
of f holds all that is needed: every node names its rule, and has the inputs on which the rule ran.
So each node is a small function of its own, and chapter 4.3 judges it on those inputs, whatever
stands before it or after it in f.

If each rule is right by itself and the gradient of f is still wrong, then some step of f left the
record, for example by `.data`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minigrad.checks.claims import Claims, GradientError, first_order
from minigrad.checks.comparing import compare
from minigrad.engine.replay import behind
from minigrad.engine.rules import primitive
from minigrad.engine.tensor import Tensor


class Alone:
    """One node of a record as a function of its own: a rule, with the inputs that it had in f.

    Elements that are not finite are replaced by 1, such as scores that a mask has set to -∞.
    """

    def __init__(self, t: Tensor) -> None:
        node: Any = t.node
        self.rule, self.name, self.options = node.rule, node.name, node.options
        self.operation = primitive(name=node.name)(node.rule)
        self.inputs = [np.where(np.isfinite(x.data), x.data, x.dtype.type(1)) for x in node.inputs]
        self.wanted = [i for i, x in enumerate(node.inputs) if x.requires_grad]

    def given(self, points: Any) -> list[Any]:
        """Return all inputs, with these points in place of those that need a gradient."""
        given: list[Any] = list(self.inputs)
        for i, point in zip(self.wanted, points, strict=True):
            given[i] = point
        return given

    def claims(self, rng: np.random.Generator, moved: float = 0.0) -> Claims:
        """Return the rule's claims for a random g, at inputs that are moved by up to this share."""
        points = [
            Tensor(x + moved * x * rng.uniform(-1, 1, x.shape), name=f"input {i}")
            for i, x in ((i, self.inputs[i]) for i in self.wanted)
        ]
        f = lambda *xs: self.operation(*self.given(xs), **self.options)
        return first_order(f, points, rng, alone=True)


class Search:
    """Check each node behind f's output alone. (All together cost as much as the check of f.)

    wrong    each wrong rule, the input whose VJP is wrong, and the error that was raised for it,
             in the order of the record
    right    the number of nodes that are right
    unsure   the number of those not judged: the difference is too coarse, or the rule fails
    """

    def __init__(
        self, f: Callable[..., Tensor], points: list[Tensor], order: int, rtol: float, rng: Any
    ) -> None:
        self.wrong: list[tuple[Alone, int, GradientError]] = []
        self.right = self.unsure = 0
        nodes = [t for t in behind(f(*points)) if t.node is not None]
        for t in sorted(nodes, key=lambda t: t._time):
            node = Alone(t)
            sure = False
            try:
                with np.errstate(all="ignore"):
                    seen = compare(node.claims(rng), order, rtol, rng)
                sure = all(each.verdict != "unresolved" for each in seen)
            except GradientError as found:
                assert found.input is not None
                self.wrong.append((node, node.wanted[found.input], found))
                continue
            except Exception:  # a rule that fails on its own inputs, now in float64
                pass
            self.right += sure
            self.unsure += not sure
