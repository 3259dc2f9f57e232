"""Agreeing: where on the way back a gradient goes wrong.

`gradcheck` says which rule is wrong. What does that do to the gradients? Each tensor t of a record
is the start of a small program: all that was computed from it. So the gradient at t, as the rules
deliver it, can be compared with chapter 4.1's differences of the rest of the program, as t moves
and all else stays. Size shows nothing of this: a softmax without ⟨y, g⟩ gives scores a gradient
that is 45 % wrong, and as long as the right one.

A wrong rule spoils what is behind it on the way back, and nothing else:

    >>> from minigrad import Tensor, agreement, primitive
    >>> @primitive
    ... def halved(x, /):
    ...     return np.exp(x), lambda g, y: g * y / 2
    >>> x = Tensor([0.5, 1.0], requires_grad=True, name="x")
    >>> y = halved(x * x)
    >>> for t, verdict in agreement(y.sum()).items():
    ...     print(t.name or t.node.name, verdict)
    x 50 % off
    multiply 50 % off
    halved ✓ (its rule is wrong: input 0)
    sum ✓

The cost grows with the square of the record's length, so this is for small programs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

import numpy as np

from minigrad.checks.claims import Claims, GradientError
from minigrad.checks.comparing import Trial, Wrong, compare
from minigrad.checks.culprit import Alone
from minigrad.checks.differences import difference
from minigrad.checks.explaining import MOST_ELEMENTS, doubts, elements
from minigrad.engine.autograd import check_seed, gradients
from minigrad.engine.record import recording
from minigrad.engine.replay import behind
from minigrad.engine.rules import primitive
from minigrad.engine.tensor import Array, Tensor

RTOL = 1e-8
NEAR = 2.0**-8  # of the size of what moves: a step that shows how far a gradient is off


@dataclass(frozen=True)
class Verdict:
    """What differences say of the gradient at a tensor.

    agrees     True, or False; None where differences cannot decide
    deviation  ‖gradient - difference‖ / ‖difference‖ where it does not agree: ∞ if it should be 0,
               NaN if the gradient is not a number. (Of a tensor with more than 64 elements it is
               an estimate along 64 random directions)
    wrong      the positions of the inputs whose VJP is wrong in the rule that computed the tensor
    """

    agrees: bool | None
    deviation: float = 0.0
    wrong: tuple[int, ...] = ()

    @property
    def badness(self) -> tuple[bool, bool, float]:
        """A key by which the worst of several verdicts is the largest."""
        off = math.inf if math.isnan(self.deviation) else self.deviation
        return self.agrees is False, self.agrees is None, off

    @property
    def said(self) -> str:
        """The verdict on the gradient in a word or two."""
        if self.agrees is None:
            return "? unresolved"
        if self.agrees:
            return "✓"
        if math.isnan(self.deviation):
            return "not a number"
        if self.deviation == math.inf:
            return "should be 0"
        percent = 100 * self.deviation
        return f"{percent:,.0f} % off" if percent > 99 else f"{percent:.2g} % off"

    def __str__(self) -> str:
        if not self.wrong:
            return self.said
        inputs = " and ".join(f"input {i}" for i in self.wrong)
        return f"{self.said} (its rule is wrong: {inputs})"


def agreement(y: Tensor, *, rng: np.random.Generator | None = None) -> dict[Tensor, Verdict]:
    """Compare ∂y/∂t with differences for each tensor t behind y; return a verdict on each.

    y is a scalar, and keeps its record. The program is computed again from the record, in float64.
    (So what a comparison decided, a mask or an index, stays as it was.) The tensors stand in the
    order in which they were computed, the leaves first. ValueError if a rule gives another value
    when it is called again, if a leaf was changed, and if the record has a `recompute`, which
    computes f for its own input alone.

    `graph(y, verdicts=agreement(y))` draws the verdicts.
    """
    check_seed(y, None, "agreement()")
    rng = np.random.default_rng([4, 4]) if rng is None else rng
    with recording(), np.errstate(all="ignore"):
        return Program(y).verdicts(rng)


class Program:
    """A record that is computed again, from any of its tensors on.

    `order` has the tensors that require a gradient, each after those that it was computed from
    """

    def __init__(self, y: Tensor) -> None:
        self.y = y
        self.order = sorted(behind(y), key=attrgetter("_time"))
        self.order.sort(key=lambda t: t.node is not None)  # (a leaf may have got a newer array)
        if any(hasattr(t.node.rule, "compares_its_value") for t in self.order if t.node):
            raise ValueError(
                "agreement() moves each tensor, and recompute(f, …) computes f again for its own "
                "input alone: call f itself"
            )
        self.operations = {
            t: primitive(name=t.node.name)(t.node.rule) for t in self.order if t.node is not None
        }
        leaves = {t: Tensor(_wide(t), requires_grad=True) for t in self.order if t.node is None}
        self.computed: dict[Tensor, Any] = {}
        self.computed = self._continued(leaves)
        again = self.computed[y].data
        if not np.allclose(again, y.data, rtol=1e3 * np.finfo(y.dtype).eps, equal_nan=True):
            raise ValueError(
                f"agreement() computed {again:.6g} from the record of {y.data:.6g}: was a leaf "
                "changed after the forward pass, or does a rule draw random numbers?"
            )
        found = gradients(self.computed[y], [self.computed[t] for t in self.order])
        self.gradients = dict(zip(self.order, found, strict=True))

    def _continued(self, values: dict[Tensor, Any]) -> dict[Tensor, Any]:
        """Compute all that follows from these values; the other tensors stay as they are."""
        values = dict(values)
        for t in self.order:
            node: Any = t.node
            if node is None or t in values or values.keys().isdisjoint(node.inputs):
                continue
            inputs = [values[x] if x in values else self._still(x) for x in node.inputs]
            values[t] = self.operations[t](*inputs, **node.options)
        return values

    def _still(self, x: Tensor) -> Array:
        """Return the array of a tensor that does not move."""
        return self.computed[x].data if x in self.computed else _wide(x)

    def claims(self, t: Tensor) -> Claims:
        """Return the claim on y as a function of t alone. (What is not finite in t stays.)"""
        point, gradient = self.computed[t].data, self.gradients[t]
        finite = np.isfinite(point)

        def output(moved: Any) -> Any:
            whole = moved if finite.all() else np.where(finite, moved, point)
            return self._continued({t: whole})[self.y]

        points = [np.where(finite, point, 0.0), np.ones(self.y.shape)]
        name = t.name or (t.node.name if t.node else "a leaf")
        return Rest(output, points, [name, "seed"], [[np.where(finite, gradient, 0.0)]])

    def verdicts(self, rng: np.random.Generator) -> dict[Tensor, Verdict]:
        """Return the verdict on each tensor, and on the rule that computed it."""
        verdicts = {t: judged(self.claims(t), rng) for t in self.order}
        for t in self.order:
            wrong = tuple(self.wrong_inputs(t, verdicts, rng))
            verdicts[t] = replace(verdicts[t], wrong=wrong)
        return verdicts

    def wrong_inputs(
        self, t: Tensor, verdicts: dict[Tensor, Verdict], rng: np.random.Generator
    ) -> Iterator[int]:
        """Yield the positions of the inputs whose VJP is wrong, by a check of the rule alone.

        Only rules that send something to a wrong gradient are checked.
        """
        for i, x in enumerate(t.node.inputs if t.node else ()):
            if x in verdicts and verdicts[x].agrees is False:
                alone = Alone(t)
                alone.wanted = [i]
                if judged(alone.claims(rng), rng, alone=True).agrees is False:
                    yield i


class Rest(Claims):
    """The claim on a program's end as a function of one tensor, which moves as a plain array."""

    def evaluate(self, points: list[Array]) -> Array:
        """Return the program's end, (1,)."""
        return np.reshape(self.output(points[0]), 1)


def judged(claims: Claims, rng: np.random.Generator, alone: bool = False) -> Verdict:
    """Return the verdict on the gradient of some claims.

    A rule that ignores the seed is right for the seed 1. It counts as wrong if it is checked alone.
    """
    try:
        (comparison,) = compare(claims, 1, RTOL, rng)
    except Wrong as wrong:
        deviation, worst = looked_at(wrong.trial, rng)
        return Verdict(None) if doubts(wrong, worst) else Verdict(False, deviation)
    except GradientError:
        return Verdict(not alone)
    except Exception:  # a rule that fails on its own inputs, in float64 or moved
        return Verdict(None)
    return Verdict(None if comparison.verdict == "unresolved" else True)


def looked_at(trial: Trial, rng: np.random.Generator) -> tuple[float, Array]:
    """Return ‖gradient - difference‖ / ‖difference‖, and the flat indices of the worst elements."""
    point, gradient = trial.point, trial.gradient.ravel()
    if point.size <= MOST_ELEMENTS:
        claimed, seen = gradient, by_elements(trial).ravel()
        worst = np.argsort(-np.nan_to_num(np.abs(claimed - seen), nan=np.inf))[:8]
    else:
        directions = rng.standard_normal((MOST_ELEMENTS, *point.shape))
        length = np.sqrt(np.mean(point**2)) or 1.0
        claimed = directions.reshape(MOST_ELEMENTS, -1) @ gradient
        seen = np.array([slope(trial, length * u) / length for u in directions])
        worst = elements(trial).worst
    apart, true = np.linalg.norm(claimed - seen), np.linalg.norm(seen)
    if np.isnan(apart):
        return math.nan, worst
    nothing = true <= 1e-12 * np.linalg.norm(claimed)
    return math.inf if nothing else float(apart / true), worst


def by_elements(trial: Trial) -> Array:
    """Return the gradient by differences: element by element, to about nine digits."""
    units = np.eye(trial.point.size).reshape(-1, *trial.point.shape)
    slopes = [slope(trial, trial.length * unit) for unit in units]
    return np.reshape(slopes, trial.point.shape) / trial.length


def slope(trial: Trial, u: Array) -> float:
    """Return the slope along u by two steps, of which h² is cancelled as in chapter 4.1."""
    phi = trial.claims.along(trial.i)
    far, near = (difference(phi, trial.point, u, h)[trial.j] for h in (NEAR, NEAR / 2))
    return float(4 * near - far) / 3


def _wide(t: Tensor) -> Array:
    """Return a tensor's array, in float64 if it is floating."""
    return t.data.astype(float) if t.dtype.kind == "f" else t.data
