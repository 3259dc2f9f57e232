"""Mistakes: what people get wrong in a VJP, each as an equation.

A wrong gradient c and the true one t often stand in a simple relation. If c = -t, a sign is lost.
If c = t / 7 and 7 numbers were added up, a mean stands where a sum belongs. So each mistake that
people make is a small function here. It is given a **case**: a rule, its inputs, and which input's
VJP is wrong. If its equation holds in this case, it returns a sentence that names the mistake.

The two sides are compared as in chapter 4.3, along random directions u: ⟨c, u⟩ is computed, and
⟨t, u⟩, also with an input transposed, is a finite difference. A mistake counts only if it is found
in two cases with different g, the second one at inputs that are moved a little.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from minigrad.checks.claims import Claims, first_gradients, tensors
from minigrad.checks.comparing import DIRECTIONS, DOUBT, Trial
from minigrad.checks.culprit import Alone
from minigrad.checks.differences import elementwise
from minigrad.engine.replay import behind, replay
from minigrad.engine.tensor import Array, Tensor

Slope = Callable[[Array], tuple[float, float]]  # a direction → the slope along it, the resolution
MOST_ENTRIES = 2048  # a Jacobian with more is not made


class Case(Trial):
    """A trial of a rule alone: the gradient that its VJP claims for pointᵢ, here x, from g."""

    def __init__(self, alone: Alone, claims: Claims, i: int) -> None:
        super().__init__(claims, i, 0)
        self.alone, self.points, self.g = alone, claims.points, claims.points[-1]
        self.names = claims.names
        self.known = False  # whether a mistake was found: then nothing is guessed

    def at(self, j: int, point: Array) -> Trial:
        """Return the trial with another pointⱼ."""
        moved = replace(self.claims, points=[*self.points[:j], point, *self.points[j + 1 :]])
        moved.magnitude = self.claims.magnitude  # (the VJP may not take this point)
        return Trial(moved, self.i, 0)

    def value(self, x: Array) -> Array:
        """Return the rule's value at another x."""
        points = [*self.points[: self.i], x, *self.points[self.i + 1 : -1]]
        return self.claims.output(*tensors(points)).data

    def claim(self, g: Array) -> Array:
        """Return the gradient that the VJP claims for another g."""
        return first_gradients(self.claims.output, [*self.points[:-1], g])[self.i]

    def gives(self, slope: Slope, share: Any = 1.0, length: Array | None = None) -> bool:
        """Return whether ⟨c, u⟩ is slope(share · u) for a few random u.

        False where the difference is too coarse to tell: no mistake may fit for that reason.
        """
        length = self.length if length is None else length
        size = np.linalg.norm(self.gradient * length)
        rng = np.random.default_rng(1)
        for _ in range(DIRECTIONS):
            u = length * rng.standard_normal(length.shape)
            seen, coarse = slope(share * u)
            apart = abs((self.gradient * u).sum() - seen)
            doubt = DOUBT * coarse
            if not (doubt < 1e-4 * size and apart <= 1e-7 * size + doubt):
                return False
        return True


def diagnosed(alone: Alone, i: int, rng: np.random.Generator) -> tuple[str, ...]:
    """Return a sentence for each mistake that explains the VJP for input i, at most two."""
    j = alone.wanted.index(i)

    def two_of(rule: Alone) -> list[Case]:
        return [Case(rule, rule.claims(rng, moved), j) for moved in (0.0, 0.02)]

    cases = two_of(alone)
    if told := _found(ignores_g, cases):
        return (told,)
    # The others assume that twice the g gives twice the gradient. And where the gradient is nearly
    # right, an equation that fits too, as "transposed" may, explains nothing.
    if any(not _same(2 * c.gradient, c.claim(2 * c.g)) or c.gives(c.slope) for c in cases):
        return ()
    found: list[str] = []
    mistakes = [a_use_missing, not_summed, the_wrong_axis, transposed, factor, stands_still]
    if told := _found(exchanged, cases):
        found.append(told)
        mistakes = [a_use_missing, not_summed, transposed, factor]  # (these may fit, too)
    # What is mixed, or stands still, is seen at inputs of at most 1: a softmax may be saturated.
    small = deepcopy(alone)
    for k in alone.wanted:
        small.inputs[k] = alone.inputs[k] / max(np.abs(alone.inputs[k]).max(initial=0.0), 1.0)
    small_cases = cases
    with suppress(Exception):  # (the rule may not be defined there)
        small_cases = two_of(small)
    for mistake in mistakes:
        structural = mistake in (the_wrong_axis, stands_still)
        if told := _found(mistake, small_cases if structural else cases):
            found.append(told)
            cases[0].known = cases[1].known = True
        if len(found) == 2:
            break
    return tuple(found)


def _found(mistake: Callable[[Case], str | None], cases: list[Case]) -> str | None:
    """Return the sentence that a mistake gives in both cases; None if they differ or it fails."""
    try:
        first = mistake(cases[0])
        if first is None or mistake(cases[1]) != first:
            return None
    except Exception:
        return None
    return first


def _same(a: Array, b: Array) -> bool:
    """Return whether two computations of one array agree, but for rounding."""
    small = 1e-12 * np.abs(b).max(initial=0.0)
    return bool(np.isfinite(small) and np.allclose(a, b, rtol=1e-9, atol=small))


# ---------------------------------------------------------------- g, a sign, a factor


def ignores_g(case: Case) -> str | None:
    """Diagnose a c that is the same for another g."""
    other = case.claim(np.asarray(np.random.default_rng(1).standard_normal(case.g.shape)))
    if not case.gradient.any() or not _same(other, case.gradient):
        return None
    return "The VJP does not depend on g, the gradient that arrives at the output: multiply by g."


def factor(case: Case) -> str | None:
    """Diagnose c = k t with one k."""
    if not case.gradient.any():
        why = "0 or None stands where a derivative belongs; or two terms cancel"
        return f"The VJP gives 0 times the true gradient: {why}."
    u = case.length * np.random.default_rng(2).standard_normal(case.point.shape)
    k = float((case.gradient * u).sum()) / case.slope(u)[0]

    def times_k(u: Array) -> tuple[float, float]:
        seen, coarse = case.slope(u)
        return k * seen, abs(k) * coarse

    if not case.gives(times_k):
        return None
    if abs(k + 1) < 1e-6:
        return "The VJP has the wrong sign: it gives -1 times the true gradient."
    text, causes = _causes(abs(k), case.point.shape, case.g.shape)
    if case.known:
        causes = causes[:-1]
    if not causes:
        return None
    why = "; or ".join(causes[:2])
    sign = "minus " if k < 0 else ""
    return f"The VJP gives {sign}{text} the true gradient: {why}."


def _causes(k: float, x: tuple[int, ...], y: tuple[int, ...]) -> tuple[str, list[str]]:
    """Return the factor k as a reader would write it, and its usual causes, a guess last."""
    counts: dict[float, str] = {n: f"the length of axis {i} of the input" for i, n in enumerate(x)}
    counts[math.prod(x) / math.prod(y)] = "the number of elements added up for one result"
    less = k < 1
    ratio = max(k, 1 / k)
    n, square = round(ratio), round(ratio**2)
    if abs(ratio - n) < 1e-6 * n and (1 < n < 65 or n in counts):
        is_wrong = "missing" if less else "there twice"
        causes = [f"the inner derivative {n} of {n}x is {is_wrong}"]
        if n in counts:
            here, there = ("mean", "sum") if less else ("sum", "mean")
            causes.insert(0, f"perhaps a {here} stands where a {there} belongs: {n} is {counts[n]}")
        if n == 2:
            counted = "not counted" if less else "counted twice"
            causes.insert(0, f"one of two equal uses is {counted}")
        return f"1/{n} of" if less else f"{n} times", causes
    if abs(ratio**2 - square) < 1e-6 * square and square in (*x[-1:], *y[-1:]):
        is_wrong = "one too many" if less else "missing"
        cause = f"a division by √{square}, as by √d_k, is {is_wrong}"
        return f"1/√{square} of" if less else f"√{square} times", [cause]
    return f"{k:.6g} times", ["a constant, as an inner derivative, is missing or there twice"]


# ---------------------------------------------------------------- the wrong place


def transposed(case: Case) -> str | None:
    """Diagnose a c that is the true gradient transposed, or the true one at a transposed point."""
    square = [a.ndim > 1 and a.shape[-2] == a.shape[-1] for a in case.points]
    if square[case.i] and case.gives(lambda u: case.slope(u.mT)):
        return "The VJP gives the true gradient transposed."
    for j, name in enumerate(case.names):
        if square[j] and case.gives(case.at(j, case.points[j].mT.copy()).slope):
            said = f"The VJP gives what is right if {name} is transposed: "
            return f"{said}a .mT is missing there, or there is one too many."
    return None


def the_wrong_axis(case: Case) -> str | None:
    """Diagnose a VJP and a value that mix the elements of the input along different axes.

    Row k of a Jacobian is the gradient of output k. A VJP gives it for the g that is 1 at k and 0
    elsewhere; a difference gives one column for each element of the input.
    """
    x, size = case.point, case.g.size
    if size * x.size > MOST_ENTRIES or not case.gradient.any():
        return None
    basis = np.eye(size).reshape(size, *case.g.shape)
    claimed = np.array([case.claim(g).ravel() for g in basis])
    true, _ = elementwise(lambda x: case.value(x).ravel(), x, np.abs(case.value(x)).ravel())
    told, meant = (
        " and ".join(f"axis {axis}" for axis in mixed_axes(table, x.shape)) or "no axis"
        for table in (claimed, true.T)
    )
    if told == meant:
        return None
    if meant == "no axis":
        meant += " here"
    name = case.names[case.i]
    return f"The value mixes the elements of {name} along {meant}, and the VJP along {told}."


def mixed_axes(table: Array, x: tuple[int, ...]) -> tuple[int, ...]:
    """Return the axes of x along which a Jacobian mixes: an output needs several places there.

    >>> from minigrad.checks.mistakes import mixed_axes
    >>> mixed_axes(np.kron(np.eye(2), np.ones((1, 3))), (2, 3))           # a sum along axis 1
    (1,)
    """
    needed = (np.abs(table) > 1e-6 * np.abs(table).max()).reshape(len(table), *x)
    others = [tuple(a + 1 for a in range(len(x)) if a != axis) for axis in range(len(x))]
    places = [needed.any(axis=each).sum(axis=1) for each in others]  # of each output
    return tuple(axis for axis, count in enumerate(places) if (count > 1).any())


def exchanged(case: Case) -> str | None:
    """Diagnose a c that is the true gradient of another input, both summed to the smaller shape."""
    for j in range(len(case.points) - 1):
        other = Trial(case.claims, j, 0)
        length = min(case.length, other.length, key=np.size)
        with suppress(ValueError):  # neither of the two shapes can be broadcast to the other
            if j != case.i and case.gives(other.slope, length=length):
                said = f"The VJP of {case.names[case.i]} gives the gradient of {case.names[j]}: "
                return f"{said}are the two exchanged?"
    return None


def stands_still(case: Case) -> str | None:
    """Diagnose a c with a slope in a direction in which the value stands still.

    A softmax is the same at x + 1, and x divided by its length the same at 2x. This shows a VJP
    that loses the sum or length that was divided by, or gives it another sign or weight.
    """
    x, name, value = case.point, case.names[case.i], case.value(case.point)
    for axis in range(x.ndim):
        rows = np.ones([1 if a == axis else n for a, n in enumerate(x.shape)])
        rows *= np.random.default_rng(3).uniform(0.5, 1.0, rows.shape)
        for u, how, what in (
            (rows + 0 * x, "rise by the same amount", "the gradient"),
            (rows * x, "are multiplied by the same number", f"{name} ⊙ the gradient"),
        ):
            parts = case.gradient * u
            lost = abs(parts.sum()) > 1e-6 * abs(parts).sum()
            if lost and all(_same(case.value(x + h * u), value) for h in (0.125, 1.0)):
                return (
                    f"If all elements of {name} along axis {axis} {how}, the value stays as it is, "
                    f"so {what} sums to 0 along axis {axis}. That of the VJP does not: is a term "
                    "missing, is its sign wrong, or is it an average with other weights?"
                )
    return None


# ---------------------------------------------------------------- shares that are not added up


def a_use_missing(case: Case) -> str | None:
    """Diagnose a c that counts only some uses of a tensor in the value.

    A rule is written for Tensors, too. Called with them, its value has a record, in which every use
    of a tensor is an arrow: (result, which of its inputs). The gradient without some of the arrows
    is one replay.
    """
    rule, x = case.alone.rule, Tensor(case.point, requires_grad=True)
    given = case.alone.given([*case.points[: case.i], x, *case.points[case.i + 1 : -1]])
    value: Any = getattr(rule, "definition", rule)(*given, **case.alone.options)
    value = value[0] if isinstance(value, tuple) else value
    results: list[Any] = [t for t in behind(value) if t.node is not None]
    uses: dict[Tensor, list[tuple[Tensor, int]]] = {}
    for t in sorted(results, key=lambda t: t._time):
        for position, used in enumerate(t.node.inputs):
            if used.requires_grad:
                uses.setdefault(used, []).append((t, position))
    cuts = [  # one arrow is missing, or all but one
        (used, set(cut))
        for used, arrows in uses.items()
        for n in {1, len(arrows) - 1} - {0, len(arrows)}
        for cut in combinations(arrows, n)
    ]

    def without(missing: set[tuple[Tensor, int]]) -> Array:
        counted = lambda t, sent, _: (each for each in sent if (t, each[1]) not in missing)
        found = replay(value, case.g, {x}, retain_graph=True, observe=counted)
        return np.asarray(found.get(x, np.zeros(x.shape)))

    # A use that changes nothing, as that in the shift x - max(x) of a softmax, may be missing too.
    whole = without(set())
    idle = {arrow for _, cut in cuts if _same(without(cut), whole) for arrow in cut}
    name: Callable[[Any], str] = lambda t: t.node.name if t.node else "an input"
    for used, cut in cuts:
        if any(_same(case.gradient, without(missing)) for missing in (cut, cut | idle)):
            what = case.names[case.i] if used is x else f"the result of {name(used)}"
            times = "twice" if len(uses[used]) == 2 else f"{len(uses[used])} times"
            lost = [f"{name(t)} (its input {k})" for t, k in uses[used] if (t, k) in cut]
            said = f"The value uses {what} {times}, and the VJP does not count "
            return f"{said}{' and '.join(lost)}."
    return None


def not_summed(case: Case) -> str | None:
    """Diagnose a c that is one share of a broadcast input, or the mean of its shares.

    The copies that broadcasting makes of the input get numbers of their own, so that a difference
    gives the share of each.
    """
    x, y = case.point, case.g.shape
    copies = np.broadcast_to(x, y).copy()
    before = (1,) * (len(y) - x.ndim) + x.shape
    axes = [axis for axis, n in enumerate(y) if before[axis] == 1 < n]
    if not axes:
        return None
    wide = case.at(case.i, copies)
    first = (np.indices(y)[axes] == 0).all(axis=0)  # 1 for the first copy, 0 for the others
    for how, share in {"first share": first, "mean": first.mean()}.items():
        if case.gives(wide.slope, share):
            where = " and ".join(f"axis {axis}" for axis in axes)
            return (
                f"Along {where} {case.names[case.i]} of shape {x.shape} was broadcast to {y}: the "
                f"shares of its copies belong added up, and the VJP gives the {how} of them."
            )
    return None
