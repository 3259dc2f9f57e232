"""4.3 · Gradient check: believe no derivative you have not tested.

How many evaluations does it take to test a million derivatives? As many as to test one. Move all
elements of an input at once, along a **random direction** u, and compare two slopes: the one that
the gradient claims, ⟨∂f, u⟩, and the one that a difference sees. In its simplest form:

    >>> from minigrad import grad, primitive
    >>> def agrees(f, x, h=1e-5):
    ...     u = np.random.default_rng(0).standard_normal(x.shape)
    ...     claimed = (grad(f)(x) * u).sum()
    ...     seen = (f(x + h * u) - f(x - h * u)) / (2 * h)
    ...     return bool(abs(claimed - seen) < 1e-6 * abs(seen))
    >>> wrong = primitive(lambda x, /: (np.tanh(x), lambda g, y: g * (1 - y)))     # y² has become y
    >>> x = np.linspace(-1.0, 1.0, 1_000_000)
    >>> agrees(lambda x: np.tanh(x).sum(), x), agrees(lambda x: wrong(x).sum(), x)
    (True, False)

This form has one step h for all sizes of x, and does not know how far a difference can be believed:
its 1e-6 is a guess. It tests one input of a scalar f, and no second derivative. It does not say
which rule is wrong, or where. `gradcheck` below does what this form leaves out, and compares in the
same way.

Can u hide an error? If the gradient is off by e, the two slopes differ by ⟨e, u⟩. For a Gaussian u,
⟨e, u⟩ is Gaussian with standard deviation ‖e‖. It comes out below ‖e‖/100 in 8 draws of 1,000, so
all three of our draws miss an error only once in two million. (`gradcheck` also scales each element
of u by how far it may move, chapter 4.1.) Single elements are needed only to say *where* a gradient
is wrong.

A wrong element can hide behind right ones that are a billion times larger, because its error is
then nothing beside the slope. So if a gradient's elements differ much in size, those of similar
size are also moved alone, a **band** at a time, and each band is compared with its own slope.

At a kink a central difference gives the mean of the slopes on both sides. A rule that promises that
mean (`maximum`, `abs`) agrees there. One that promises a side (`relu`, chapter 6.1) is called
wrong: keep inputs away from its kink.

When the check fails it says which rule of f is wrong, and which mistake fits, if one does (chapters
4.4 to 4.10). Where a difference cannot be trusted, as at a kink, or is too coarse to tell
("unresolved"), it says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from minigrad.checks.claims import Claims, Diagnosis, GradientError, first_order, second_order
from minigrad.checks.differences import lengths, slopes
from minigrad.engine.record import recording
from minigrad.engine.replay import behind
from minigrad.engine.tensor import Array, Tensor

DIRECTIONS = 3
# From this many resolutions on a difference counts as an error. A resolution is an estimate
# itself: on the rules of chapter 3 the true error is seldom above three of them.
DOUBT = 20.0
BAND = 1e4  # how much the elements of one band may differ in their part of the slope
VERDICTS = ("zero", "agrees", "unresolved", "WRONG")  # from best to worst


@dataclass(frozen=True)
class Comparison:
    """One derivative against finite differences, along its least convincing direction.

    analytic, numerical  the two slopes along that direction
    norm                 ‖analytic gradient‖
    error                |analytic - numerical|, relative to the slope of a typical direction
    resolution           the relative error that the finite difference could still have seen
    verdict              "agrees", "zero" (analytic exactly 0, and no slope was seen),
                         "unresolved" (the difference is too coarse to tell) or "WRONG"
    """

    order: int
    what: str
    analytic: float
    numerical: float
    norm: float
    error: float
    resolution: float
    verdict: str

    def __str__(self) -> str:
        return (
            f"order {self.order}  {self.what:<32} ‖gradient‖ {self.norm:8.2e}  "
            f"error {self.error:7.1e}  resolution {self.resolution:7.1e}  {self.verdict}"
        )


@dataclass(frozen=True)
class Report:
    """What `gradcheck` found. True if every derivative was resolved and agrees.

    `diagnoses` say why a derivative could not be judged, where a reason was found (chapter 4.9).
    """

    comparisons: tuple[Comparison, ...]
    diagnoses: tuple[Diagnosis, ...] = ()

    @property
    def unresolved(self) -> tuple[Comparison, ...]:
        """The comparisons in which the finite difference was too coarse to tell."""
        return tuple(c for c in self.comparisons if c.verdict == "unresolved")

    def __bool__(self) -> bool:
        return all(c.verdict in ("agrees", "zero") for c in self.comparisons)

    def __str__(self) -> str:
        return "\n".join(str(each) for each in (*self.comparisons, *self.diagnoses))

    __repr__ = __str__


def gradcheck(
    f: Callable[..., Tensor],
    *inputs: Any,
    order: int = 2,
    rtol: float = 1e-8,
    rng: np.random.Generator | None = None,
) -> Report:
    """Check f's first and second derivatives with respect to every floating input.

    f takes Tensors and returns one Tensor. Unless that is a scalar, a random seed makes it one.
    Inputs are checked in float64, each against the size of *its own* gradient, so a small wrong
    gradient beside a large right one is found. Integers and booleans are passed to f as arrays.

    Returns a `Report`, which is true if everything agrees to `rtol`, and false if somewhere
    the finite difference was too coarse to tell. Raises GradientError where it could tell and
    they differ, with the name of the rule that is wrong, the mistake if it is a known one, and the
    worst elements first; also where a fused rule has another value than its definition.
    ValueError if f is not a pure function (two calls must agree) or not finite at the inputs.
    `order=1` leaves out the second derivatives.

    A gradient that is itself rounding, a difference of numbers that agree in their first twelve
    digits (softmax where one weight is 1 - 1e-13), may be called wrong: no digit of it is right.

    >>> from minigrad import primitive
    >>> @primitive
    ... def slightly_wrong(x, /):
    ...     return np.exp(x), lambda g, y: g * y * 1.0005
    >>> gradcheck(slightly_wrong, [0.0])                  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    minigrad.checks.claims.GradientError: order 1: ∂L/∂(input 0) is wrong (argument 0 of f, ...
    The rule slightly_wrong is wrong: its VJP for input 0, shape (1,).
    The VJP gives 1.0005 times the true gradient. ...
           index       analytic      numerical     difference     resolution          input
             [0]   1.000500e+00   1.000000e+00        5.0e-04 ...
    """
    if order not in (1, 2):
        raise ValueError(f"gradcheck checks order 1 or, with it, order 2: got order={order}")
    # Not default_rng(0): the caller may have drawn the inputs from that one. With g equal to an
    # input, `g.mT @ a` passes for the right `a.mT @ g`, because AᵀA is symmetric.
    rng = np.random.default_rng([4, 3]) if rng is None else rng
    # (A check that passes needs nothing of the later chapters: they are imported when one fails.)
    with recording():
        claims = first_order(f, inputs, rng)
        _compare_with_definitions(claims, rtol)
        checked = [claims]
        try:
            comparisons = compare(claims, 1, rtol, rng)
            refuse_an_ignored_seed(claims)
            if order == 2:
                checked.append(second_order(claims, rng))
                comparisons += compare(checked[1], 2, rtol, rng)
        except GradientError as found:
            from minigrad.checks.explaining import explained

            raise explained(found, f, claims, rtol, rng) from None
        report = Report(tuple(comparisons))
        if report.unresolved:
            from minigrad.checks.doubts import why_unresolved

            report = Report(report.comparisons, why_unresolved(checked, comparisons))
    return report


class Wrong(GradientError):
    """A derivative that is wrong, before it is known why: φⱼ of these claims against pointᵢ."""

    def __init__(self, claims: Claims, i: int, j: int, worst: Comparison, among: Array) -> None:
        super().__init__(worst.what)
        self.claims, self.i, self.j, self.worst, self.among = claims, i, j, worst, among


# ---------------------------------------------------- A first reading may stop here.
# What follows: how each gradient is compared.


def _compare_with_definitions(claims: Claims, rtol: float) -> None:
    """Raise if a fused operation behind f's output has not the value of its definition."""
    points = [Tensor(point, requires_grad=True) for point in claims.points[:-1]]
    for t in behind(claims.output(*points)):
        if t.node is not None and hasattr(t.node.rule, "definition"):
            meant = np.asarray(t.node.rule.definition(*t.node.inputs, **t.node.options).data)
            close = rtol * np.abs(meant[np.isfinite(meant)]).max(initial=0)
            if meant.shape != t.shape or not np.allclose(t.data, meant, 0, close, equal_nan=True):
                raise GradientError(
                    f"the fused rule {t.node.name} and its definition differ: their values are "
                    f"{_shortened(t.data)} and {_shortened(meant)}",
                    rule=t.node.name,
                )


def refuse_an_ignored_seed(claims: Claims) -> None:
    """Raise if -2 times the seed does not give -2 times the gradient of f.

    The seed of a scalar f is 1. For g = 1 a last rule that has forgotten to multiply by g looks
    right, and so does one that multiplies by g² or |g|. No power of g and no |g| turns -2 into -2.
    """
    seed = claims.points[-1]
    other = claims.gradients([*claims.points[:-1], -2 * seed])
    for i, (once, found) in enumerate(zip(claims.analytic[0], other, strict=True)):
        small = 1e-12 * np.abs(once).max(initial=0)
        if not np.allclose(-2 * once, found, rtol=1e-9, atol=small, equal_nan=True):
            raise GradientError(
                f"order 1: ∂L/∂{claims.names[i]} is wrong: it is not proportional to the gradient "
                "that arrives at f's output (-2 times the seed does not give -2 times it)",
                input=i,
            )


def _shortened(x: Array) -> str:
    return np.array2string(x, threshold=8, edgeitems=1, separator=", ").replace("\n", "")


def compare(claims: Claims, order: int, rtol: float, rng: np.random.Generator) -> list[Comparison]:
    """Every φ against every point, along a few random directions; raise if one is wrong."""
    comparisons = []
    for i, point in enumerate(claims.points[: len(claims.analytic[0])]):
        length = lengths(point)
        directions = [length * rng.standard_normal(point.shape) for _ in range(DIRECTIONS)]
        found = [slopes(claims.along(i), point, u, claims.magnitude) for u in directions]
        for j in range(len(claims.analytic)):
            tried = [
                _compare_along(claims, order, rtol, i, j, u, (slope[j], resolution[j]))
                for u, (slope, resolution) in zip(directions, found, strict=True)
            ]
            worst = max(tried, key=lambda c: (VERDICTS.index(c.verdict), c.error))
            if worst.verdict == "WRONG":
                raise Wrong(claims, i, j, worst, np.arange(point.size))
            comparisons.append(worst)
            for band in _bands(claims.analytic[j][i] * length):
                u = np.where(band, directions[0], 0.0)
                slope, resolution = slopes(claims.along(i), point, u, claims.magnitude)
                # φ rounds as along the other directions, even where it does not move along u.
                coarse = max(resolution[j], min(along[1][j] for along in found))
                alone = _compare_along(claims, order, rtol, i, j, u, (slope[j], coarse), band)
                if alone.verdict == "WRONG":
                    raise Wrong(claims, i, j, alone, np.flatnonzero(band))
    return comparisons


def _bands(parts: Array) -> Iterator[Array]:
    """Groups of elements with parts of the slope of similar size, without the largest parts.

    (A random direction checks the largest, because they decide its slope.)

    >>> [band.tolist() for band in _bands(np.array([1.0, -0.5, 1e-6, 0.0]))]
    [[False, False, True, False]]
    """
    size = np.abs(parts)
    upper = size.max(initial=0) / BAND
    lowest = size.max(initial=0) * np.finfo(float).eps  # below this everything is rounding
    while upper > lowest:
        band = (size <= upper) & (size > upper / BAND)
        if band.any():
            yield band
        upper /= BAND


def _compare_along(
    claims: Claims,
    order: int,
    rtol: float,
    i: int,
    j: int,
    u: Array,
    seen: tuple[float, float],
    band: Array | None = None,
) -> Comparison:
    """The claimed slope of φⱼ along u against the one seen, (slope, resolution)."""
    gradient, length = claims.analytic[j][i], lengths(claims.points[i])
    typical = float(np.linalg.norm((gradient * length)[... if band is None else band]))
    claim = float((gradient * u).sum())
    slope, coarse = float(seen[0]), float(seen[1])
    judged = _verdict(claim, slope, coarse, typical, claims.magnitude[j], rtol)
    if judged == "WRONG":
        # A second look, with steps a thousand times shorter. A wrong derivative stays wrong; a
        # right one near a pole, which the first steps jumped over, does not.
        short = slopes(claims.along(i), claims.points[i], u / 1024, claims.magnitude)
        slope, coarse = 1024 * float(short[0][j]), max(coarse, 1024 * float(short[1][j]))
        judged = _verdict(claim, slope, coarse, typical, claims.magnitude[j], rtol)
    unit = typical or 1.0
    return Comparison(
        order=order,
        what=claims.derivatives[j].replace("{}", claims.names[i], 1),
        analytic=claim,
        numerical=slope,
        norm=float(np.linalg.norm(gradient)),
        error=abs(claim - slope) / unit,
        resolution=coarse / unit,
        verdict=judged,
    )


def _verdict(
    claim: float, seen: float, coarse: float, typical: float, magnitude: float, rtol: float
) -> str:
    """Judge one direction: the claimed slope, the one seen, and how coarsely it was seen."""
    apart = abs(claim - seen)
    if not np.isfinite(claim):
        return "WRONG"
    if not np.isfinite(seen):
        return "unresolved"
    if typical > 0 and apart <= rtol * typical:
        return "agrees"
    if apart > DOUBT * coarse:
        return "WRONG"
    # No slope was claimed and φ did not move. That agrees only if a small slope could be seen.
    quiet = typical == 0 and seen == 0 and DOUBT * coarse <= 1e-6 * magnitude
    return "zero" if quiet else "unresolved"
