"""Comparing: every derivative of some claims against finite differences.

What chapter 4.3 does in its simplest form for one direction is done here for several, in bands of
similar size, and with a second and a third look before a rule is called wrong. `gradcheck` calls
`compare` for all of f, and the tools that look for the wrong rule call it for one operation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from minigrad.checks.claims import Claims, GradientError, first_gradients, second_order
from minigrad.checks.differences import EPS, lengths, slopes
from minigrad.engine.tensor import Array

DIRECTIONS = 3
# A difference of more than this many resolutions counts as an error. A resolution is an estimate
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
        verdict = self._verdict(rtol * typical, claim, slope, coarse)
        doubt = ""
        if verdict == "WRONG":
            # A second look, with steps a thousand times shorter. A wrong derivative stays wrong; a
            # right one near a pole, which the first steps jumped over, does not: the slope that is
            # seen is another one.
            near, coarse_near = (1024 * x for x in self.slope(u / 1024))
            if not abs(near - slope) <= DOUBT * coarse_near:
                slope, coarse = near, coarse_near
                verdict = self._verdict(rtol * typical, claim, slope, coarse)
        if verdict == "WRONG":
            small = self.length / np.where(self.point == 0, self.length, np.abs(self.point))
            size = max(self.length.max(), small.max())
            if size > 1024:
                # A third look, with steps of at most 1/8, and of a part of a small element. It can
                # only withdraw the accusation, where it sees the slope that is claimed and rules
                # out the slope that longer steps saw.
                near, coarse_near = (size * x for x in self.slope(u / size))
                close = max(rtol * typical, DOUBT * coarse_near)
                if abs(claim - near) <= close < abs(slope - near):
                    verdict = "unresolved"
                    doubt = LESS.format(self.claims.names[self.i])
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
        if close == 0 and claim == 0 and fine:
            return "zero"
        return "unresolved"


class Wrong(GradientError):
    """Raised for a wrong derivative, before the reason is looked for.

    Its `input` is the one whose VJP is wrong: at second order the derivative of that VJP is.
    """

    def __init__(self, trial: Trial, analytic: float, numerical: float) -> None:
        order = trial.claims.order
        what = trial.claims.derivative(trial.i, trial.j)
        super().__init__(
            f"order {order}: {what} is wrong (shape {trial.point.shape}): along a random "
            f"direction it claims {analytic:.6e}, the difference is {numerical:.6e}",
            order=order,
            input=trial.j if order == 2 else trial.i,
        )
        self.trial = trial


def compare(claims: Claims, order: int, rtol: float, rng: np.random.Generator) -> list[Comparison]:
    """Compare every φ at every point, along a few random directions; raise if one is wrong.

    `claims` are of first order. If order is 2, those of second order are compared as well.
    """
    comparisons = _of_one_order(claims, rtol, rng)
    _refuse_an_ignored_seed(claims)
    if order == 2:
        comparisons += _of_one_order(second_order(claims, rng), rtol, rng)
    return comparisons


def _of_one_order(claims: Claims, rtol: float, rng: np.random.Generator) -> list[Comparison]:
    """Return the comparisons of claims of first order, or of second; raise if one is wrong."""
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
                comparison = trial.compare(rtol, u, slope, coarse, band)
                if comparison.doubt:
                    tried.append(comparison)
            unconvincing = lambda c: (VERDICTS.index(c.verdict), bool(c.doubt), c.error)
            comparisons.append(max(tried, key=unconvincing))
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
                order=1,
                input=i,
            )
