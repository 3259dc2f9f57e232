"""4.5 · Mistakes: a gradient of the wrong size, or of the wrong thing.

A wrong gradient c and the true one t, found by differences, often stand in a simple relation. If
c = -t, a sign is lost. If c = t / 7 and 7 numbers were added up, a mean stands where a sum belongs.
So each mistake that people make becomes a small function here. It is given one **case**: a rule,
its inputs, and which input's VJP is wrong. It asks whether its equation holds, and if so says what
that means.

An equation with one unknown holds somewhere by accident. So every case is tried twice, with
different random g and with inputs that are moved a little. An equation counts only if it holds both
times, in each element, as precisely as the difference can tell.

    >>> from minigrad import primitive, Tensor
    >>> from minigrad.checks.culprit import Alone
    >>> from minigrad.checks.mistakes import Case, constant_factor
    >>> @primitive
    ... def total(x, /):
    ...     return x.sum(), lambda g, y: g * np.ones(x.shape) / x.size
    >>> x = Tensor(np.arange(7.0), requires_grad=True)
    >>> case = Case.of(Alone(total(x)), 0, np.random.default_rng(0))
    >>> for each in constant_factor(case):
    ...     print(each)
    The VJP gives 1/7 of the true gradient. 7 is the number of elements that are added up for one
    result and the length of axis 0 of the input: a mean where a sum belongs; or the inner
    derivative 7 of 7x is missing. (VJP / difference = 0.142857 in each of 7 elements, for 2
    random g.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from minigrad.checks.checking import DOUBT
from minigrad.checks.claims import Diagnosis
from minigrad.checks.culprit import Alone
from minigrad.checks.differences import lengths
from minigrad.engine.tensor import Array, Tensor

LOOKED_AT = 256  # of a larger input only so many elements are compared with a difference
MOST_NUMBERS = 2e6  # and fewer, where a rule computes more than this for all of them together


@dataclass(frozen=True)
class Trial:
    """One try: inputs, g, the claimed gradient, and the true one at the elements looked at."""

    inputs: list[Array]
    g: Array
    claimed: Array
    true: Array  # one number for each element looked at
    resolution: Array


@dataclass(frozen=True)
class Case:
    """A rule and the input whose gradient is wrong, tried on two inputs that differ a little."""

    alone: Alone
    i: int
    looked: Array  # flat indices of the elements that are compared
    trials: tuple[Trial, ...]

    @classmethod
    def of(
        cls, alone: Alone, i: int, rng: np.random.Generator, worst: Array | None = None
    ) -> Case | None:
        """A case, or None if it cannot be tried; of a large input with its `worst` elements."""
        x = alone.inputs[i]
        numbers = int(np.prod(alone.shape)) + sum(a.size for a in alone.inputs)
        most = min(LOOKED_AT, max(8, int(MOST_NUMBERS / (numbers + 1))))
        looked = np.arange(x.size)
        if x.size > most:
            first = looked[:0] if worst is None else worst
            others = np.setdiff1d(rng.permutation(x.size)[:most], first)
            looked = np.sort([*first, *rng.permutation(others)[: max(0, most - len(first))]])
        moved = [
            a + 0.02 * lengths(a) * rng.uniform(-1, 1, a.shape) if k in alone.wanted else a
            for k, a in enumerate(alone.inputs)
        ]
        trials: list[Trial] = []
        for inputs in (alone.inputs, moved, alone.inputs):  # (again, where moving leads nowhere)
            try:
                trials.append(_tried(alone, i, inputs, rng, looked))
            except Exception:  # the moved inputs are outside of the rule's domain
                continue
            if not np.isfinite(trials[-1].true).all():
                trials.pop()
            if len(trials) == 2:
                return cls(alone, i, looked, tuple(trials))
        return None

    def gives(self, candidate: Callable[[Trial], Array]) -> bool:
        """Whether the VJP gives in every trial what a candidate does at the elements looked at."""
        return all(same(self.at(t.claimed), candidate(t), t.resolution) for t in self.trials)

    def at(self, gradient: Any) -> Array:
        """The elements of a gradient that are looked at, in flat order."""
        return np.asarray(gradient).ravel()[self.looked]

    def claim(self, trial: Trial, g: Any) -> Array:
        """What the VJP gives for another g."""
        return self.alone.claim(trial.inputs, np.asarray(g), self.i)


def _tried(alone: Alone, i: int, inputs: list[Array], rng: Any, looked: Array) -> Trial:
    g = np.asarray(rng.standard_normal(alone.shape))
    claimed = alone.claim(inputs, g, i)
    return Trial(inputs, g, claimed, *alone.true(inputs, g, i, looked))


def same(a: Any, b: Any, resolution: Any = 0.0) -> bool:
    """Whether two arrays are equal in each element, as far as the resolution lets one tell.

    Where the resolution is too coarse to tell, they are not: nothing may fit for that reason.
    """
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape or not (np.isfinite(a).all() and np.isfinite(b).all()):
        return False
    size = float(np.abs(b).max(initial=0.0))
    coarse = DOUBT * np.asarray(resolution)
    if size == 0 or np.max(coarse, initial=0.0) > 1e-4 * size:
        return False
    return bool((np.abs(a - b) <= 1e-7 * np.abs(b) + coarse + 1e-13 * size).all())


# ---------------------------------------------------------------- nearly right, 0, not as g is


def nearly_right(case: Case) -> Iterator[Diagnosis]:
    """c is t in its first five digits or more, in each element."""
    parts = [
        (np.abs(case.at(t.claimed) - t.true), np.abs(t.true), DOUBT * t.resolution)
        for t in case.trials
    ]
    if all((apart <= 1e-5 * true + coarse).all() for apart, true, coarse in parts):
        off = max(float((a / t)[(a > r) & (t > 0)].max(initial=0.0)) for a, t, r in parts)
        if off:
            yield Diagnosis(
                "nearly right",
                f"The VJP is right to {int(-np.log10(off))} digits, and not in the digits after "
                "these: is something in it computed in float32, or is a constant rounded?",
                f"VJP / difference is off by up to {off:.1g} in {len(case.looked)} elements",
            )


def zero(case: Case) -> Iterator[Diagnosis]:
    """c = 0, but for rounding, and the value moves."""
    trials = [(t, c) for t in case.trials for c in (t.claimed, case.claim(t, -t.g))]
    small = all(np.abs(c).max() < 1e-13 * np.abs(t.true).max() for t, c in trials)
    # What is left over by rounding has no pattern. The true gradient times 1e-15 is not 0.
    if small and not any(_is_a_multiple(case.at(t.claimed), t.true) for t in case.trials):
        moves = max(float(np.abs(t.true).max()) for t in case.trials)
        yield Diagnosis(
            "zero",
            f"The VJP gives 0 for input {case.i}, and the value does move with that input: "
            "0 stands where a derivative belongs (None counts as 0), or two terms cancel.",
            f"VJP 0 in every element, difference up to {moves:.3g}",
        )


def _is_a_multiple(c: Array, true: Array) -> bool:
    k = float((c * true).sum() / (true**2).sum())
    return bool(k and (np.abs(c - k * true) <= 1e-3 * np.abs(k * true)).all())


def not_finite(case: Case) -> Iterator[Diagnosis]:
    """c is infinite or not a number where t is finite."""
    finite = [np.isfinite(t.claimed) for t in case.trials]
    if not finite[0].all() and not finite[1].all():
        yield Diagnosis(
            "not finite",
            "The VJP gives infinity or NaN where the true gradient is finite: does it divide by 0, "
            "or leave the domain of a function such as the logarithm?",
            f"{int((~finite[0]).sum())} of {finite[0].size} elements are not finite",
        )


def ignores_g(case: Case) -> Iterator[Diagnosis]:
    """c does not change with g, or does not become -2c for -2g."""
    others = [np.random.default_rng(1).standard_normal(t.g.shape) for t in case.trials]
    pairs = list(zip(case.trials, others, strict=True))
    if all(not t.claimed.any() and not case.claim(t, -t.g).any() for t in case.trials):
        return
    if all(same(case.claim(t, other), t.claimed) for t, other in pairs):
        ones = all(
            same(
                case.at(t.claimed),
                *case.alone.true(t.inputs, np.ones_like(t.g), case.i, case.looked),
            )
            for t in case.trials
        )
        right = " What it gives is right for g = 1: multiply it by g." if ones else ""
        yield Diagnosis(
            "ignores g",
            f"The VJP does not depend on g, the gradient that arrives at the output.{right}",
            "another random g gives exactly the same numbers",
        )
        return
    turned = [(case.claim(t, -2 * t.g), t.claimed) for t in case.trials]
    off = [np.abs(b + 2 * a).max() / max(np.abs(a).max(), np.abs(b).max()) for b, a in turned]
    if max(off) > 1e-6:  # (a NaN is not)
        other, once = turned[int(np.argmax(off))]
        change = float((other * once).sum() / max((once**2).sum(), 1e-300))
        yield Diagnosis(
            "not proportional to g",
            "The VJP is not proportional to g: -2 times the g must give -2 times the gradient. "
            "(Is g squared, or is something added to it?)",
            f"-2 g makes it {change:.4g} times as large"
            if change
            else "0 goes with one of the two g",
        )


# ---------------------------------------------------------------- a factor


def constant_factor(case: Case) -> Iterator[Diagnosis]:
    """c = k t with one k, and where such a k comes from."""
    first = case.trials[0]
    size = float((first.true**2).sum())
    k = float((case.at(first.claimed) * first.true).sum() / size) if size else 0.0
    if k == 0 or not np.isfinite(k) or abs(k - 1) < 1e-6:
        return
    if not all(same(case.at(t.claimed), k * t.true, abs(k) * t.resolution) for t in case.trials):
        return
    evidence = f"VJP / difference = {k:.6g} in each of {len(case.looked)} elements, for 2 random g"
    if abs(k + 1) < 1e-6:
        yield Diagnosis(
            "sign", "The VJP has the wrong sign: it gives -1 times the true gradient.", evidence
        )
        return
    sign = "minus " if k < 0 else ""
    shown, origins = _origins(case, abs(k))
    why = "; or ".join(origins[:2])
    yield Diagnosis(
        "factor",
        f"The VJP gives {sign}{shown} the true gradient. {why[0].upper()}{why[1:]}.",
        evidence,
    )


# ---------------------------------------------------- A first reading may stop here.
# What follows: the origins of a factor, and what a VJP gives before it is summed.

CONSTANTS = {
    "2": (2.0, "one of two equal uses is counted twice"),
    "1/2": (0.5, "one of two equal uses is not counted"),
    "ln 2": (np.log(2), "ln 2 is the factor between logarithms, or powers, of base 2 and base e"),
    "1/ln 2": (1 / np.log(2), "ln 2 is the factor between logarithms, or powers, of base 2 and e"),
    "π/180": (np.pi / 180, "degrees and radians are mixed up"),
    "180/π": (180 / np.pi, "degrees and radians are mixed up"),
    "√π/2": (np.sqrt(np.pi) / 2, "erf has the factor 2/√π in front of its integral"),
    "2/√π": (2 / np.sqrt(np.pi), "erf has the factor 2/√π in front of its integral"),
}


def _origins(case: Case, k: float) -> tuple[str, list[str]]:
    """The factor k as a reader would write it, and the origins it may have, the likely first."""

    def near(value: float) -> bool:
        return abs(k - value) < 1e-6 * value

    shown, found = "", []
    for text, (value, why) in CONSTANTS.items():
        if near(value):
            shown = f"{text} of" if value < 1 else f"{text} times"
            found.append(why)
    last = {shape[-1] for shape in (case.alone.inputs[case.i].shape, case.alone.shape) if shape}
    for n, what in _lengths(case).items():
        if near(n):
            shown, why = f"{n} times", "a sum where a mean belongs"
        elif near(1 / n):
            shown, why = f"1/{n} of", "a mean where a sum belongs"
        elif n in last and near(np.sqrt(n)):
            why = "a division by the root of a length, as √d_k, is missing"
            shown = shown or f"√{n} times"
        elif n in last and near(1 / np.sqrt(n)):
            why = "a division by the root of a length, as √d_k, too many"
            shown = shown or f"1/√{n} of"
        else:
            continue
        found.append(f"{n} is {' and '.join(what)}: {why}")
    n = round(min(max(k, 1 / k), 64))
    if near(1 / n) or near(n):
        how = "missing" if k < 1 else "there twice"
        found.append(f"the inner derivative {n} of {n}x is {how}")
    elif not found:
        found.append("a constant, as an inner derivative, is missing or there twice")
    return shown or f"{k:.6g} times", found


def _lengths(case: Case) -> dict[int, list[str]]:
    """The lengths that a forgotten or added division could be by, and what each is."""
    x, y = case.alone.inputs[case.i].shape, case.alone.shape
    sizes = [int(np.prod(x)), int(np.prod(y))]
    found: dict[int, list[str]] = {}
    if sizes[1] and sizes[0] % sizes[1] == 0:
        found[sizes[0] // sizes[1]] = ["the number of elements that are added up for one result"]
    for shape, whose in ((x, "the input"), (y, "the output")):
        for n in dict.fromkeys(shape):
            axes = " and ".join(str(axis) for axis, length in enumerate(shape) if length == n)
            which = f"axis {axes}" if shape.count(n) == 1 else f"axes {axes}"
            found.setdefault(n, []).append(f"the length of {which} of {whose}")
    for size, shape, whose in zip(sizes, (x, y), ("the input", "the output"), strict=True):
        if len(shape) > 1:
            found.setdefault(size, []).append(f"the number of elements of {whose}")
    return {n: what for n, what in found.items() if n > 1}


def a_variable_factor(case: Case) -> Iterator[Diagnosis]:
    """c = t v or c = t / v, where v is one of the inputs or the output."""
    x = case.alone.inputs[case.i]
    variables = {f"input {j}": [t.inputs[j] for t in case.trials] for j in case.alone.wanted}
    variables["the output"] = [case.alone.value(t.inputs) for t in case.trials]
    for name, values in variables.items():
        if np.broadcast_shapes(values[0].shape, x.shape) != x.shape:
            continue
        found = [case.at(np.broadcast_to(v, x.shape)) for v in values]
        for factors, ratio, said in (
            (found, name, f"times {name}: is a division by {name} missing, or a product with it"),
            (
                [1 / v for v in found],
                f"1 / {name}",
                f"divided by {name}: is a product with {name} missing, or a division by it",
            ),
        ):
            if all(
                same(case.at(t.claimed), t.true * f, np.abs(f) * t.resolution)
                for t, f in zip(case.trials, factors, strict=True)
            ):
                yield Diagnosis(
                    "a variable factor",
                    f"The VJP gives the true gradient {said} too many?",
                    f"VJP / difference = {ratio} in each of {len(case.looked)} elements, for 2 "
                    "random g",
                )
                return


def unsummed(case: Case, trial: Trial) -> Array:
    """What the VJP itself gives, before the engine sums it over the axes of a broadcast."""
    tensors = [Tensor(x, requires_grad=True) if x.dtype.kind == "f" else x for x in trial.inputs]
    t = case.alone.operation(*tensors, **case.alone.options)
    vjps: Any = t.node.vjps
    if isinstance(vjps, tuple):
        return np.asarray(vjps[case.i](trial.g, t.data))
    return np.asarray(vjps(trial.g, t.data, (True,) * len(tensors))[case.i])


def summed_to(shape: tuple[int, ...], g: Array) -> Array | None:
    """A gradient summed to the shape of what was broadcast, or None if it does not fit."""
    extra = g.ndim - len(shape)
    if extra < 0 or any(n not in (1, m) for n, m in zip(shape, g.shape[extra:], strict=True)):
        return None
    g = g.sum(axis=tuple(range(extra)))
    stretched = tuple(a for a, n in enumerate(shape) if n == 1 != g.shape[a])
    return np.asarray(g.sum(axis=stretched, keepdims=True))
