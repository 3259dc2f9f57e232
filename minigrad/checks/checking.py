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

When the check fails it says which rule of f is wrong, and which mistake fits, if one does. Where a
difference is too coarse to tell, it says so ("unresolved"). Check at inputs of ordinary size: a
step is a part of x, and where x is large f may change within one step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from minigrad.checks.claims import (
    Claims,
    GradientError,
    first_gradients,
    first_order,
    second_order,
    tensors,
)
from minigrad.checks.differences import EPS, lengths, slopes
from minigrad.engine.record import recording
from minigrad.engine.replay import behind
from minigrad.engine.tensor import Array, Tensor

DIRECTIONS = 3
# From this many resolutions on a difference counts as an error. A resolution is an estimate
# itself: on the rules of chapter 3 the true error is seldom above three of them.
DOUBT = 20.0
BAND = 1e4  # how much the elements of one band may differ in their part of the slope
LESS = "{} is large, or small, and f changes over less than the shortest step: shift or scale it"
STILL = (
    "{} does not depend on {} here but for rounding: check what f sums up, or the sum of its "
    "squares, or move the input"
)
VERDICTS = ("zero", "agrees", "unresolved")  # from best to worst


@dataclass(frozen=True)
class Comparison:
    """One derivative against finite differences, along its least convincing direction.

    norm        ‖analytic gradient‖
    error       |analytic - numerical slope|, relative to the slope of a typical direction
    resolution  the relative error that the finite difference could still have seen
    verdict     "agrees", "zero" (analytic exactly 0, and no slope was seen) or "unresolved" (the
                difference is too coarse to tell)
    doubt       why the difference is not believed, where the reason is known
    """

    order: int
    what: str
    norm: float
    error: float
    resolution: float
    verdict: str
    doubt: str = ""

    def __str__(self) -> str:
        return (
            f"order {self.order}  {self.what:<32} ‖gradient‖ {self.norm:8.2e}  "
            f"error {self.error:7.1e}  resolution {self.resolution:7.1e}  {self.verdict}"
            f"{self.doubt and f': {self.doubt}'}"
        )


@dataclass(frozen=True)
class Report:
    """The comparisons that `gradcheck` made. True if every derivative was resolved and agrees."""

    comparisons: tuple[Comparison, ...]

    @property
    def unresolved(self) -> tuple[Comparison, ...]:
        """The comparisons in which the finite difference was too coarse to tell."""
        return tuple(c for c in self.comparisons if c.verdict == "unresolved")

    def __bool__(self) -> bool:
        return all(c.verdict in ("agrees", "zero") for c in self.comparisons)

    def __str__(self) -> str:
        return "\n".join(map(str, self.comparisons))

    __repr__ = __str__


# Which rule is wrong, and which mistake it is, is found by tools that use this chapter. So it does
# not import them: `minigrad/checks/__init__.py` puts here what explains an error.
explained: Callable[..., GradientError] = lambda found, *_: found


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
    the finite difference was too coarse to tell (printed, it says why). Raises GradientError where
    it could tell and they differ, with the name of the rule that is wrong, the mistake if it is a
    known one, and the worst elements first; also where a fused rule has another value than its
    definition. ValueError if f is not a pure function (two calls must agree) or not finite at the
    inputs. `order=1` leaves out the second derivatives.

    >>> from minigrad import primitive
    >>> @primitive
    ... def slightly_wrong(x, /):
    ...     return np.exp(x), lambda g, y: g * y * 1.0005
    >>> gradcheck(slightly_wrong, [0.0])                  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    minigrad.checks.claims.GradientError: order 1: ∂L/∂(input 0) is wrong (shape (1,)): along ...
    The rule slightly_wrong is wrong: its VJP for input 0, shape (1,).
    The VJP gives 1.0005 times the true gradient: ...
           index       analytic      numerical     difference     resolution          input
             [0]   1.000500e+00   1.000000e+00        5.0e-04 ...
    """
    if order not in (1, 2):
        raise ValueError(f"gradcheck checks order 1 or, with it, order 2: got order={order}")
    # Not default_rng(0): the caller may have drawn the inputs from that one. With g equal to an
    # input, `g.mT @ a` passes for the right `a.mT @ g`, because AᵀA is symmetric.
    rng = np.random.default_rng([4, 3]) if rng is None else rng
    with recording():
        claims = first_order(f, inputs, rng)
        _compare_with_definitions(claims, rtol)
        try:
            return Report(tuple(compare(claims, order, rtol, rng)))
        except GradientError as error:
            raise explained(error, claims, rtol, rng) from None


# ---------------------------------------------------- A first reading may stop here.
# What follows: how each gradient is compared.


class Trial:
    """One derivative that is checked: that of φⱼ of some claims with respect to pointᵢ."""

    def __init__(self, claims: Claims, i: int, j: int) -> None:
        self.claims, self.i, self.j = claims, i, j
        self.point, self.gradient = claims.points[i], claims.analytic[j][i]
        self.length = lengths(self.point)

    def slope(self, u: Array) -> tuple[float, float]:
        """Return the measured slope of φⱼ along u, which is broadcast, and its resolution."""
        u = np.broadcast_to(u, self.point.shape)
        of_all = slopes(self.claims.along(self.i), self.point, u, self.claims.magnitude)
        return float(of_all[0][self.j]), float(of_all[1][self.j])

    def compare(
        self, rtol: float, u: Array, slope: float, coarse: float, band: Array | bool = True
    ) -> Comparison:
        """Compare the slope that is claimed along u with the one seen; raise if it is wrong.

        Errors are relative to the slope of a typical direction, within a band if one is given.
        """
        typical = float(np.linalg.norm(self.gradient * self.length * band))
        claim = float((self.gradient * u).sum())
        verdict, doubt = self._verdict(rtol * typical, claim, slope, coarse), ""
        if verdict == "WRONG":
            # A second look, with steps a thousand times shorter. A wrong derivative stays wrong; a
            # right one near a pole, which the first steps jumped over, does not: the slope that is
            # seen is another one.
            near, coarse_near = (1024 * x for x in self.slope(u / 1024))
            if not abs(near - slope) <= DOUBT * coarse_near:
                slope, coarse = near, coarse_near
                verdict = self._verdict(rtol * typical, claim, slope, coarse)
            small = self.length / np.where(self.point == 0, self.length, np.abs(self.point))
        if verdict == "WRONG" and (size := max(self.length.max(), small.max())) > 1024:
            # A third look, with steps of at most 1/8, and of a part of a small element. It can only
            # withdraw the accusation, where it sees the slope that is claimed and rules out the
            # slope that longer steps saw.
            near, coarse_near = (size * x for x in self.slope(u / size))
            if abs(claim - near) <= max(rtol * typical, DOUBT * coarse_near) < abs(slope - near):
                verdict, doubt = "unresolved", LESS.format(self.claims.names[self.i])
        if verdict == "unresolved" and band is True and self._is_still(u):
            names, j = self.claims.names, self.j
            if self.claims.order == 1:
                doubt = STILL.format("f", names[self.i])
            elif names[self.i] == names[-1]:  # ∂L/∂xⱼ without the seed: f does not depend on xⱼ
                doubt = STILL.format("f", names[j])
            else:
                doubt = STILL.format(f"∂L/∂{names[j]}", names[self.i])
        if verdict == "WRONG":
            raise Wrong(self, claim, slope)
        return Comparison(
            order=self.claims.order,
            what=self.claims.derivative(self.i, self.j),
            norm=float(np.linalg.norm(self.gradient)),
            error=abs(claim - slope) / (typical or 1.0),
            resolution=coarse / (typical or 1.0),
            verdict=verdict,
            doubt=doubt,
        )

    @np.errstate(all="ignore")  # a long step may leave φ's domain
    def _is_still(self, u: Array) -> bool:
        """Return whether φⱼ moves along u by no more than it rounds."""
        phi = self.claims.along(self.i)
        values = [phi(self.point + h * u)[self.j] for h in (-1 / 8, -1 / 64, 0, 1 / 64, 1 / 8)]
        return bool(np.ptp(values) <= 64 * EPS * self.claims.magnitude[self.j])

    def _verdict(self, close: float, claim: float, slope: float, coarse: float) -> str:
        """Return the verdict on a claimed slope, given the slope seen and its resolution."""
        if not np.isfinite(claim):
            return "WRONG"
        if not np.isfinite(slope):
            return "unresolved"
        if abs(claim - slope) <= close and close > 0:
            return "agrees"
        if abs(claim - slope) > DOUBT * coarse:
            return "WRONG"
        # No slope was claimed and φ did not move. That agrees only if a small slope could be seen.
        size = self.claims.magnitude[self.j]
        fine = abs(slope) <= 8 * EPS * size and DOUBT * coarse <= 1e-6 * size
        quiet = close == 0 == claim and fine
        return "zero" if quiet else "unresolved"


class Wrong(GradientError):
    """Raised for a wrong derivative, before the reason is looked for.

    Its `input` is the one whose VJP is wrong: at second order the derivative of that VJP is.
    """

    def __init__(self, trial: Trial, analytic: float, numerical: float) -> None:
        self.order, what = trial.claims.order, trial.claims.derivative(trial.i, trial.j)
        super().__init__(
            f"order {self.order}: {what} is wrong (shape {trial.point.shape}): along a random "
            f"direction it claims {analytic:.6e}, the difference is {numerical:.6e}",
            input=trial.j if self.order == 2 else trial.i,
        )
        self.trial = trial


def compare(claims: Claims, order: int, rtol: float, rng: np.random.Generator) -> list[Comparison]:
    """Compare every φ at every point, along a few random directions; raise if one is wrong.

    `claims` are of first order. If order is 2, those of second order are compared as well.
    """
    comparisons = []
    for i, point in enumerate(claims.points[: len(claims.analytic[0])]):
        directions = [lengths(point) * rng.standard_normal(point.shape) for _ in range(DIRECTIONS)]
        seen = [slopes(claims.along(i), point, u, claims.magnitude) for u in directions]
        for j in range(len(claims.analytic)):
            trial = Trial(claims, i, j)
            tried = [
                trial.compare(rtol, u, float(slope[j]), float(coarse[j]))
                for u, (slope, coarse) in zip(directions, seen, strict=True)
            ]
            for band in _bands(trial.gradient * trial.length):
                u = np.where(band, directions[0], 0.0)
                slope, coarse = trial.slope(u)
                # φ rounds as along the other directions, even where it does not move along u.
                coarse = max(coarse, min(float(each[1][j]) for each in seen))
                found = trial.compare(rtol, u, slope, coarse, band)
                tried += [found] * bool(found.doubt)
            least = lambda c: (VERDICTS.index(c.verdict), bool(c.doubt), c.error)
            comparisons.append(max(tried, key=least))
    if claims.order == 1:
        _refuse_an_ignored_seed(claims)
    if claims.order < order:
        comparisons += compare(second_order(claims, rng), order, rtol, rng)
    return comparisons


def _bands(parts: Array) -> Iterator[Array]:
    """Yield groups of elements whose parts of the slope are similar, without the largest parts.

    (A random direction checks the largest, because they decide its slope.)

    >>> [band.tolist() for band in _bands(np.array([1.0, -0.5, 1e-6, 0.0]))]
    [[False, False, True, False]]
    """
    size = np.abs(parts)
    upper = size.max(initial=0) / BAND
    lowest = size.max(initial=0) * EPS  # below this everything is rounding
    while upper > lowest:
        band = (size <= upper) & (size > upper / BAND)
        if band.any():
            yield band
        upper /= BAND


def _compare_with_definitions(claims: Claims, rtol: float) -> None:
    """Raise if a fused operation behind f's output has another value than its definition."""
    for t in behind(claims.output(*tensors(claims.points[:-1]))):
        if t.node is not None and hasattr(t.node.rule, "definition"):
            meant = np.asarray(t.node.rule.definition(*t.node.inputs, **t.node.options).data)
            close = rtol * np.abs(meant[np.isfinite(meant)]).max(initial=0)
            if meant.shape != t.shape or not np.allclose(t.data, meant, 0, close, equal_nan=True):
                name = t.node.name
                raise GradientError(f"the fused rule {name} and its definition differ", rule=name)


def _refuse_an_ignored_seed(claims: Claims) -> None:
    """Raise if -2 times the seed does not give -2 times the gradient of f.

    The seed of a scalar f is 1. For g = 1 a last rule that has forgotten to multiply by g looks
    right, and so does one that multiplies by g² or |g|. No power of g and no |g| turns -2 into -2.
    """
    points = [*claims.points[:-1], -2 * claims.points[-1]]
    found = first_gradients(claims.output, points)
    for i, (once, other) in enumerate(zip(claims.analytic[0], found, strict=True)):
        small = 1e-12 * np.abs(once).max(initial=0)
        if not np.allclose(-2 * once, other, rtol=1e-9, atol=small, equal_nan=True):
            raise GradientError(
                f"order 1: ∂L/∂{claims.names[i]} is wrong: it is not proportional to the gradient "
                "that arrives at f's output (-2 times the seed does not give -2 times it)",
                input=i,
            )
