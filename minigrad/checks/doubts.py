"""4.9 · Doubts: where a difference cannot judge, and why.

A difference can be wrong, too. At a kink it is the mean of two slopes, neither of which a rule has
to give. Beside a pole or a jump it steps over what it should have seen. Where φ is computed in
float32, or is a large number that hardly moves, the digits that should move are not there. In such
a place the right answer is not "wrong" but "move the input, and check there".

    >>> from minigrad import gradcheck, relu
    >>> report = gradcheck(lambda x: np.tanh(x.astype(np.float32)), np.array([0.5, 1.0]), order=1)
    >>> bool(report)
    False
    >>> report.diagnoses[0].sentence
    'The values of f are float32: they have 7 digits, too few for a difference. Compute in float64.'
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from minigrad.checks.checking import Comparison
from minigrad.checks.claims import Claims, Diagnosis, second_order
from minigrad.checks.differences import lengths
from minigrad.engine.tensor import Array, Tensor

NEAR, NEARER = 2.0**-12, 2.0**-20  # two steps: between them a smooth function's slopes come close
MOST_ELEMENTS = 64  # of an input, looked at one by one


def why_unresolved(
    checked: Sequence[Claims], comparisons: Sequence[Comparison]
) -> tuple[Diagnosis, ...]:
    """The reasons why some comparisons of `gradcheck` could not be judged, each once."""
    found: dict[str, Diagnosis] = {}
    remaining = iter(comparisons)
    for claims in checked:
        for i in range(len(claims.analytic[0])):
            for j in range(len(claims.analytic)):
                seen = next(remaining)
                if seen.verdict == "unresolved":
                    for each in doubts(claims, i, j, seen):
                        found.setdefault(each.kind, each)
    return tuple(found.values())


def doubts(
    claims: Claims, i: int, j: int, seen: Comparison, only: Array | None = None
) -> Iterator[Diagnosis]:
    """Why a difference of φⱼ with respect to pointᵢ cannot be trusted, if there is a reason."""
    with np.errstate(all="ignore"):
        chosen = np.arange(claims.points[i].size) if only is None else only
        for found in (
            list(float32(claims)),
            list(edges(claims, i, j, chosen[:MOST_ELEMENTS])),
            list(rounding(claims, j, seen)),
        ):
            if found:
                yield from found
                return


def float32(claims: Claims) -> Iterator[Diagnosis]:
    """f's values are multiples of what float32 can tell apart."""
    rng = np.random.default_rng(3)
    values = []
    for _ in range(3):
        points = [p + 0.01 * lengths(p) * rng.uniform(-1, 1, p.shape) for p in claims.points[:-1]]
        values.append(claims.output(*[Tensor(p, requires_grad=True) for p in points]).data)
    moved = np.logical_and(*(values[0] != v for v in values[1:]))
    some = np.concatenate([v[moved] for v in values])
    some = some[np.isfinite(some)]
    single = some.astype(np.float32)
    # Round numbers are float32 numbers as well. Those that were computed use the lower bits.
    long = float(np.mean(single.view(np.int32) & 0xFFF != 0)) if len(some) else 0.0
    is_float32 = values[0].dtype == np.float32
    if (is_float32 or (len(some) > 2 and long > 0.9)) and np.array_equal(
        some, single.astype(float)
    ):
        named = "are" if is_float32 else "are computed in"
        yield Diagnosis(
            "float32",
            f"The values of f {named} float32: they have 7 digits, too few for a difference. "
            "Compute in float64.",
            f"all of {len(some)} values at 3 random places are float32 numbers",
        )


def edges(claims: Claims, i: int, j: int, chosen: Array) -> Iterator[Diagnosis]:
    """A kink, a jump, or the edge of the domain, at one of the elements."""
    point, length = claims.points[i], lengths(claims.points[i])
    middle = claims.evaluate(claims.points)[j]
    for flat in chosen:
        index = np.unravel_index(flat, point.shape)
        u = np.zeros(point.shape)
        u[index] = length[index]
        right, left = (
            [
                (sign * (claims.along(i)(point + sign * h * u)[j] - middle)) / h
                for h in (NEAR, NEARER)
            ]
            for sign in (1, -1)
        )
        name, place = claims.named(i), [int(n) for n in index]
        where = f"element {place} of {name}, which is {point[index]:.6g}"
        claim = claims.analytic[j][i][index] * length[index]
        kind = _kind_of_edge(
            np.array(right), np.array(left), float(claim), float(claims.magnitude[j])
        )
        if kind:
            below, above = left[1] / length[index], right[1] / length[index]
            what = "first derivative" if "of" in claims.derivatives[j] else "value"
            said = f"the slope is {below:.6g} from below, {above:.6g} from above"
            yield Diagnosis(kind, TOLD[kind].format(where=where, what=what), said)
            return


TOLD = {
    "kink": "There is a kink at {where}: the slope differs on its two sides, and the check cannot "
    "judge there. Move the input away from it.",
    "jump": "There is a jump at {where}: the {what} changes at once, and the check cannot judge "
    "there. Move the input away from it.",
    "edge of the domain": "The function ends at {where}: on one side of it there is no finite "
    "value, and the check cannot judge there. Move the input away from it.",
}


def _kind_of_edge(right: Array, left: Array, claim: float, magnitude: float) -> str:
    """What the slopes of the right and the left side, for a near and a nearer step, show."""
    if not np.isfinite([right, left]).all():
        return "edge of the domain"
    seen = np.finfo(float).eps * magnitude / np.array([NEAR, NEARER])  # what rounding does
    apart = np.abs(right - left)
    size = np.maximum(np.abs(right), np.abs(left))
    if size[1] > 1000 * seen[1] and size[1] > 50 * size[0]:  # the same change on a shorter way
        return "jump"
    if apart[1] > 1000 * seen[1] and apart[1] > 1e-3 * size[1] and apart[1] > 0.5 * apart[0]:
        low, high = min(right[1], left[1]), max(right[1], left[1])
        slack = 0.01 * (high - low)
        return "kink" if low - slack <= claim <= high + slack else ""
    return ""


def rounding(claims: Claims, j: int, seen: Comparison) -> Iterator[Diagnosis]:
    """What moves is not far above the last digit of what is added up."""
    found = np.array([seen.analytic, seen.numerical])
    moves = float(np.abs(found[np.isfinite(found)]).max(initial=0.0)) / 8  # over the longest step
    digit = float(np.finfo(float).eps * claims.magnitude[j])
    seeds = float(np.abs(claims.points[-1]).max(initial=0.0))  # a gradient is made of these, too
    if moves < 1e5 * digit or moves < 1e-13 * seeds:
        yield Diagnosis(
            "rounding",
            "What should move is lost in rounding: it is far smaller than what it is added to, as "
            "where a softmax or a tanh is saturated. Check at an input that moves more.",
            f"the terms are of size {max(claims.magnitude[j], seeds):.2g}, and over the longest "
            f"step their sum moves by {moves:.1g}",
        )
        return
    # The gradient may be a difference of numbers that agree in nearly all digits. Then a change in
    # the last digit of the points changes all of its own.
    rng = np.random.default_rng(4)
    if moves > 1e-9 * max(seeds, claims.magnitude[j]):
        return
    again = claims if claims.derivatives[0].startswith("∂/∂{}") else second_order(claims, rng)
    eps = np.finfo(float).eps
    nearby = [
        again.evaluate([p * (1 + eps * rng.uniform(-2, 2, p.shape)) for p in again.points])
        for _ in range(4)
    ]
    shaken = np.ptp(nearby, axis=0) > 1e-4 * again.magnitude
    if shaken.any():
        yield Diagnosis(
            "rounding",
            "The gradient itself is rounding: it is a small difference of large numbers, as where "
            "a softmax is saturated. Check at an input that moves more.",
            "a change of the input in its last digit changes the gradient's fourth",
        )
