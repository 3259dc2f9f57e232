"""4.2 · Gradient check: believe no derivative you have not tested.

One **random direction** u tests all elements of a gradient at once. If the analytic gradient is
off by an error vector e, it differs from the finite difference along u by ⟨e, u⟩, which for a
Gaussian u is a Gaussian of standard deviation ‖e‖: below ‖e‖/100 in 8 draws of 1,000, and in
three draws out of three once in two million. So a check of a million parameters costs the same
few evaluations as a check of one; element by element is only needed to say *where* a gradient
is wrong.

Second order costs no new idea. The gradient, dotted with a direction v, is itself a function
of x, so it is checked in the same way. It also depends on the seed ∂L/∂y, and that derivative
is checked as well: a VJP that cuts the record of g is wrong only there.

At a kink nothing can be checked. A central difference gives the mean of the slopes on both
sides, and the report says "unresolved" or, where a rule promises that mean, agrees.

    >>> report = gradcheck(lambda a, b: a @ b, np.ones((2, 3)), np.ones((3, 5)))
    >>> bool(report), len(report.comparisons)        # 2 gradients, and 2 · 3 blocks of order 2
    (True, 8)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from minigrad.autograd import gradients
from minigrad.differences import elementwise, lengths, slopes
from minigrad.record import recording
from minigrad.tensor import Array, Tensor

DIRECTIONS = 3
# From this many resolutions on a difference counts as an error. A resolution is an estimate
# itself: on the rules of chapter 3 the true error is seldom above three of them.
DOUBT = 20.0
VERDICTS = ("zero", "agrees", "unresolved", "WRONG")  # from best to worst


class GradientError(AssertionError):
    """The analytic and the numerical gradient differ by more than both tolerances allow."""


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
    """What `gradcheck` found. True if every derivative was resolved and agrees."""

    comparisons: tuple[Comparison, ...]

    @property
    def unresolved(self) -> tuple[Comparison, ...]:
        """The comparisons in which the finite difference was too coarse to tell."""
        return tuple(c for c in self.comparisons if c.verdict == "unresolved")

    def __bool__(self) -> bool:
        return all(c.verdict in ("agrees", "zero") for c in self.comparisons)

    def __str__(self) -> str:
        return "\n".join(str(c) for c in self.comparisons)

    __repr__ = __str__


def gradcheck(
    f: Callable[..., Tensor],
    *inputs: Any,
    order: int = 2,
    rtol: float = 1e-8,
    rng: np.random.Generator | None = None,
) -> Report:
    """Check f's first and second derivatives with respect to every floating input.

    f takes Tensors and returns one Tensor; unless it is a scalar, a random seed makes it one.
    Inputs are checked in float64, each against the norm of *its own* gradient, so a small
    wrong gradient beside a large right one is found. Inputs of integers or booleans are handed
    through as arrays.

    Returns a `Report`, which is true if everything agrees to `rtol`, and false if somewhere
    the finite difference was too coarse to tell. Raises GradientError where it could tell and
    they differ, with the worst elements first; ValueError if f is not a pure function (two
    calls must agree) or not finite at the inputs. `order=1` leaves out the second derivatives.

    >>> from minigrad import primitive
    >>> @primitive
    ... def slightly_wrong(x, /):
    ...     return np.exp(x), lambda g, y: g * y * 1.0005
    >>> gradcheck(slightly_wrong, [0.0])                  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    minigrad.checking.GradientError: order 1: ∂L/∂(input 0) is wrong (argument 0 of f, ...
           index       analytic      numerical     difference     resolution
             [0]   1.000500e+00   1.000000e+00        5.0e-04 ...
    """
    if order not in (1, 2):
        raise ValueError(f"gradcheck checks order 1 or, with it, order 2: got order={order}")
    rng = np.random.default_rng(0) if rng is None else rng
    with recording(True):
        problem = _first_order(f, inputs, rng)
        comparisons = _compare(problem, 1, rtol, rng)
        if order == 2:
            comparisons += _compare(_second_order(problem, rng), 2, rtol, rng)
    return Report(tuple(comparisons))


@dataclass
class _Problem:
    """Scalar functions φⱼ of several points, with their analytic gradients.

    The first order has one φ: L = ⟨seed, f(x₁, …, xₙ)⟩. The second order has one for each
    input, φⱼ = ⟨∂L/∂xⱼ, vⱼ⟩, and the seed is a further point. One comparison serves both.
    """

    points: list[Array]
    names: list[str]
    positions: list[int]  # which of f's arguments each point is
    derivatives: list[str]  # what the gradient of each φ is called, `{}` standing for the point
    evaluate: Callable[[list[Array]], Array]  # points → (m,), the value of every φ
    magnitude: Array  # (m,), the size of what is added up in φ, which sets its rounding error
    analytic: list[list[Array]]  # analytic[j][i] = ∂φⱼ/∂pointᵢ
    output: Callable[..., Tensor]  # points as tensors → f's output

    def along(self, i: int) -> Callable[[Array], Array]:
        """All φ as functions of pointᵢ alone."""
        return lambda point: self.evaluate([*self.points[:i], point, *self.points[i + 1 :]])


def _first_order(
    f: Callable[..., Any], inputs: Sequence[Any], rng: np.random.Generator
) -> _Problem:
    """L = ⟨seed, f(x)⟩ with a random seed; for a scalar f the seed is 1, and L is f itself."""
    arrays = [x.data if isinstance(x, Tensor) else np.asarray(x) for x in inputs]
    positions = [i for i, a in enumerate(arrays) if a.dtype.kind == "f"]
    if not positions:
        raise ValueError(
            "gradcheck has nothing to check: no input has a floating dtype (write 1.0, not 1)"
        )
    given = [getattr(x, "name", None) for x in inputs]
    names = [given[i] or f"(input {i})" for i in positions]

    def output(*points: Tensor) -> Tensor:
        arguments: list[Any] = list(arrays)
        for position, point in zip(positions, points, strict=True):
            arguments[position] = point
        y = f(*arguments)
        if not isinstance(y, Tensor):
            raise ValueError(f"gradcheck: f must return one Tensor, but gave {type(y).__name__}")
        return y

    points = [arrays[i].astype(float) for i in positions]
    y, again = output(*_tensors(points, names)), output(*_tensors(points, names))
    if not np.isfinite(y.data).all():
        raise ValueError("gradcheck: f is not finite at the inputs")
    if not np.array_equal(y.data, again.data):
        raise ValueError(
            "gradcheck: two calls of f with equal inputs gave different values; "
            "draw random numbers outside f and hand them in"
        )
    seed = rng.standard_normal(y.shape) if y.size != 1 else np.ones(y.shape)
    return _Problem(
        points=[*points, seed],
        names=[*names, "seed"],
        positions=positions,
        derivatives=["∂L/∂{}"],
        evaluate=lambda p: np.array([(p[-1] * output(*_tensors(p[:-1], names)).data).sum()]),
        magnitude=np.array([np.abs(seed * y.data).sum()]),
        analytic=[_first_gradients(output, [*points, seed], names)],
        output=output,
    )


def _second_order(problem: _Problem, rng: np.random.Generator) -> _Problem:
    """φⱼ = ⟨∂L/∂xⱼ, vⱼ⟩ for random vⱼ; its own gradients come from the record of the first."""
    names, output = problem.names[:-1], problem.output
    v = [rng.standard_normal(point.shape) for point in problem.points[:-1]]

    def evaluate(points: list[Array]) -> Array:
        found = _first_gradients(output, points, names)
        return np.array([(g * direction).sum() for g, direction in zip(found, v, strict=False)])

    tensors = _tensors(problem.points, problem.names)
    y = output(*tensors[:-1])
    if not y.requires_grad:
        y = y + 0.0 * tensors[0].sum()  # a constant function: its gradient is 0, and recorded
    recorded = gradients(y, tensors[:-1], tensors[-1], create_graph=True)
    for plain, g, name in zip(problem.analytic[0], recorded, names, strict=False):
        if not np.allclose(plain, g.data, rtol=1e-9, atol=1e-12 * np.abs(plain).max(initial=0)):
            raise GradientError(
                f"∂L/∂{name} depends on whether it is recorded: a rule on its way computes one "
                "thing with arrays and another with Tensors"
            )
    analytic = []
    for g, direction in zip(recorded, v, strict=True):
        phi = (g * direction).sum()
        found = gradients(phi, tensors, retain_graph=True) if phi.requires_grad else None
        analytic.append(list(found) if found else [np.zeros(t.shape) for t in tensors])
    return _Problem(
        points=problem.points,
        names=problem.names,
        positions=problem.positions,
        derivatives=[f"∂/∂{{}} of ∂L/∂{name}" for name in names],
        evaluate=evaluate,
        magnitude=np.array(
            [np.abs(g * d).sum() for g, d in zip(problem.analytic[0], v, strict=False)]
        ),
        analytic=analytic,
        output=output,
    )


def _tensors(points: Sequence[Array], names: Sequence[str]) -> list[Tensor]:
    return [Tensor(p, requires_grad=True, name=n) for p, n in zip(points, names, strict=True)]


def _first_gradients(
    output: Callable[..., Tensor], points: list[Array], names: Sequence[str]
) -> list[Array]:
    """∂⟨seed, output⟩/∂point for each point, the seed (the last point) excepted."""
    tensors = _tensors(points[:-1], names)
    y = output(*tensors)
    if not y.requires_grad:
        return [np.zeros(p.shape) for p in points[:-1]]
    return list(gradients(y, tensors, points[-1]))


def _compare(
    problem: _Problem, order: int, rtol: float, rng: np.random.Generator
) -> list[Comparison]:
    """Every φ against every point, along a few random directions; raise if one is wrong."""
    comparisons = []
    for i, point in enumerate(problem.points[: len(problem.analytic[0])]):
        length = lengths(point)
        directions = [length * rng.standard_normal(point.shape) for _ in range(DIRECTIONS)]
        found = [slopes(problem.along(i), point, u, problem.magnitude) for u in directions]
        for j, gradients_of_phi in enumerate(problem.analytic):
            gradient, what = gradients_of_phi[i], problem.derivatives[j].format(problem.names[i])
            typical = float(np.linalg.norm(gradient * length))
            norm = float(np.linalg.norm(gradient))
            tried = []
            for u, (slope, resolution) in zip(directions, found, strict=True):
                claim, seen, coarse = float((gradient * u).sum()), slope[j], resolution[j]
                judged = _verdict(claim, seen, coarse, typical, problem.magnitude[j], rtol)
                if judged == "WRONG":
                    # A second look, with steps a thousand times shorter. A wrong derivative stays
                    # wrong; a right one near a pole, which the first steps jumped over, does not.
                    short = slopes(problem.along(i), point, u / 1024, problem.magnitude)
                    seen, coarse = 1024 * short[0][j], 1024 * short[1][j]
                    judged = _verdict(claim, seen, coarse, typical, problem.magnitude[j], rtol)
                unit = typical or 1.0
                error, coarse = float(abs(claim - seen) / unit), float(coarse / unit)
                tried.append(
                    Comparison(order, what, claim, float(seen), norm, error, coarse, judged)
                )
            worst = max(tried, key=lambda c: (VERDICTS.index(c.verdict), c.error))
            if worst.verdict == "WRONG":
                raise GradientError(_report_elements(problem, i, j, worst))
            comparisons.append(worst)
    return comparisons


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
    # No slope was claimed and φ did not move: that means something if a small one would show.
    quiet = typical == 0 and seen == 0 and DOUBT * coarse <= 1e-6 * magnitude
    return "zero" if quiet else "unresolved"


def _report_elements(problem: _Problem, i: int, j: int, worst: Comparison, most: int = 8) -> str:
    """The message of a GradientError: which derivative, and its worst elements first."""
    analytic, point = problem.analytic[j][i], problem.points[i]
    chosen = _narrowed(problem, i, j)
    found = elementwise(problem.along(i), point, problem.magnitude, chosen)
    claimed, (seen, resolution) = analytic.ravel()[chosen], (a[:, j] for a in found)
    difference = np.abs(claimed - seen)
    rows = [
        f"{[int(n) for n in np.unravel_index(chosen[row], analytic.shape)]!s:>12} "
        f"{claimed[row]:14.6e} {seen[row]:14.6e} {difference[row]:14.1e} {resolution[row]:14.1e}"
        for row in np.argsort(-difference, kind="stable")[:most]
    ]
    where = f"argument {problem.positions[i]} of f, " if i < len(problem.positions) else ""
    wrong = int((difference > DOUBT * resolution).sum())
    among = "" if len(chosen) == analytic.size else f"the {len(chosen)} looked at of "
    return (
        f"order {worst.order}: {worst.what} is wrong ({where}shape {analytic.shape}): along a "
        f"random direction it claims {worst.analytic:.6e}, the difference is "
        f"{worst.numerical:.6e}; {wrong} of {among}{analytic.size} elements differ, the worst "
        f"first\n{'index':>12} {'analytic':>14} {'numerical':>14} {'difference':>14} "
        f"{'resolution':>14}\n" + "\n".join(rows)
    )


def _narrowed(problem: _Problem, i: int, j: int, enough: int = 512) -> Array:
    """Flat indices of the elements to look at one by one: all, or where the error is largest.

    A large input is halved, and the half along which the two slopes differ more is kept, until
    few enough are left.
    """
    point, rng = problem.points[i], np.random.default_rng(0)
    length = lengths(point).ravel()
    chosen = np.arange(point.size)
    while len(chosen) > enough:
        halves = np.array_split(chosen, 2)
        apart = []
        for half in halves:
            u = np.zeros(point.size)
            u[half] = length[half] * rng.standard_normal(len(half))
            u = u.reshape(point.shape)
            seen, _ = slopes(problem.along(i), point, u, problem.magnitude)
            apart.append(abs((problem.analytic[j][i] * u).sum() - seen[j]))
        chosen = halves[int(np.nanargmax([*apart, 0.0]) == 1)]
    return chosen
