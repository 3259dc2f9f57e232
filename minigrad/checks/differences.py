"""4.1 · Finite differences: move the input and look.

In chapter 0: `steps = 1e-6 * np.eye(4)`.

How do you find out that a derivation is wrong? Not by reading it again. A derivative claims
how much the output moves when the input does. So move the input a little along a direction u, which
is an array of the shape of x, and look:

    ∂f/∂x · u  ≈  (f(x + h u) - f(x - h u)) / 2h

How large should h be? If it is too large, the third derivative of f enters: the error is about h²/6
times it. (The second derivative moves f(x + h u) and f(x - h u) alike, so it cancels.) If h is too
small, f(x + h u) and f(x - h u) agree in all but their last digits, which are rounding. So the
error of x³ at 1 is a V (two # are one digit):

    >>> from minigrad.checks.differences import difference
    >>> for k in range(1, 13):
    ...     h = float(f"1e-{k}")
    ...     error = abs(difference(lambda x: x * x * x, 1.0, 1.0, h) - 3.0)
    ...     print(f"{h:.0e}  {error:.0e}  " + "#" * round(24 + 2 * np.log10(error)))
    1e-01  1e-02  ####################
    1e-02  1e-04  ################
    1e-03  1e-06  ############
    1e-04  1e-08  ########
    1e-05  1e-10  ####
    1e-06  2e-11  ###
    1e-07  9e-11  ####
    1e-08  7e-09  ########
    1e-09  8e-08  ##########
    1e-10  2e-07  ###########
    1e-11  2e-07  ###########
    1e-12  1e-04  ################

Where the bottom of the V is depends on f. So `slopes` below takes many steps and combines them into
one estimate, which has more digits than any single step gives. It also says how far this estimate
can be believed: an error smaller than its **resolution** cannot be seen. Where the resolution is
too coarse for a check, chapter 4.3 says so instead of passing.

Exercise 1 of `python -m demos learn`: write the difference.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minigrad.engine.tensor import Array, Tensor


def difference(f: Callable[[Any], Any], x: Any, u: Any, h: float) -> Any:
    """Return how fast f moves when x moves along u: the central difference, with one step h.

    >>> from minigrad.checks.differences import difference
    >>> difference(lambda x: x * x * x, 2.0, 1.0, 0.5)          # 3x², and h² too much
    12.25
    """
    return (f(x + h * u) - f(x - h * u)) / (2 * h)


# ---------------------------------------------------- A first reading may stop here.
# What follows: the ladder of steps, and how far its best estimate can be believed.

STEPS = 2.0 ** -np.arange(3, 16)
EPS = float(np.finfo(float).eps)


def slopes(
    phi: Callable[[Array], Array], point: Array, u: Array, magnitude: Array
) -> tuple[Array, Array]:
    """Return the slopes of n functions φ at point, along u, and the resolution of each slope.

    (Chapter 4.2 has several φ of the same point, which one evaluation gives all at once.)

    Ridders (1982) does better than any single step. Take a ladder of steps, each half the one
    before. By Taylor's series the error of a central difference D(h) is c₂h² + c₄h⁴ + … (In
    φ(x + h u) - φ(x - h u) all even powers of h cancel. The division by 2h makes even powers of the
    odd ones.) Half the step divides the first term by 4, so (4 D(h/2) - D(h)) / 3 has no c₂. It
    divides the second term by 16. So from two estimates without c₂ comes one that has no c₄
    either, (16 × the one of smaller steps - the other) / 15, and so on. For exp at 1, the errors
    of three steps and of the estimates that are made of them:

        D(1/8)   7e-3
        D(1/16)  2e-3     c₂ cancelled  1e-6
        D(1/32)  4e-4     c₂ cancelled  9e-8     c₄ cancelled  3e-11

    Each combined estimate is made of two others. Its error is taken to be its distance from the
    farther one of the two, plus the rounding error of φ divided by the step. (Without the second
    term, two estimates that agree by accident would look exact. They agree most easily where
    rounding turns a smooth φ into stairs.) The estimate for which this sum is smallest is the
    result, and the sum is its resolution.

    phi        point → (n,), the value of every function
    u          the direction; the first step is u / 8
    magnitude  (n,), the size of what is added up in each φ: it rounds by at least eps of this
               (eps = 2⁻⁵² is the distance from 1 to the next number)

    >>> from minigrad.checks.differences import slopes
    >>> slope, resolution = slopes(np.exp, np.array([0.0]), np.array([1.0]), np.array([1.0]))
    >>> bool(abs(slope[0] - 1.0) < 1e-13), bool(resolution[0] < 1e-13)
    (True, True)
    """
    # Row k has the step STEPS[k]; its column m has cancelled c₂ … c₂ₘ. (NaN: not enough steps yet)
    table = np.full((len(STEPS), 5, *magnitude.shape), np.nan)
    with np.errstate(all="ignore"):  # a long step may leave φ's domain; a shorter one counts
        table[:, 0] = [difference(phi, point, u, h) for h in STEPS]
        for m in range(1, 5):  # cancels c₂ … c₈
            table[m:, m] = (4**m * table[m:, m - 1] - table[m - 1 : -1, m - 1]) / (4**m - 1)
        # In the last rows curvature no longer changes column 2. What still changes it is the
        # rounding of φ, divided by h. That gives the size of the rounding.
        moves = STEPS[-4:, None] * abs(table[-4:, 2] - table[-5:-1, 2])
        rounding = np.maximum(EPS * magnitude, moves.max(axis=0))
        made = table[1:, 1:]
        parents = np.maximum(abs(made - table[1:, :-1]), abs(made - table[:-1, :-1]))
        doubts = (parents + rounding / STEPS[1:, None, None]).reshape(-1, *magnitude.shape)
        doubts[np.isnan(doubts)] = np.inf
        first = doubts.argmin(axis=0)[None]
        resolution = np.take_along_axis(doubts, first, axis=0)[0]
        best = np.take_along_axis(made.reshape(doubts.shape), first, axis=0)[0]
        best[np.isinf(resolution)] = np.nan
        # An estimate with a resolution above a tenth of itself is not believed. All that is known
        # then: the slope is no steeper than the steepest one seen, which becomes the resolution.
        steepest = np.fmax.reduce(abs(table[:, 0]))
        nothing = abs(best) <= EPS * magnitude / STEPS[0]
        swamped = ~nothing & (resolution > abs(best) / 10)
    return best, np.where(swamped, np.fmax(resolution, steepest), resolution)


def lengths(point: Array) -> Array:
    """Return how far each element may move: its own size, but at least 0.001 of the typical one.

    Steps are relative, because a step of .1 is small for x = 5, but it carries x = .01 across the
    pole of 1/x.

    An element that is exactly 0 says nothing of its size, and gets the typical one.
    """
    typical = float(np.sqrt(np.mean(point**2))) or 1.0 if point.size else 1.0
    return np.where(point == 0, typical, np.maximum(np.abs(point), 1e-3 * typical))


def elementwise(
    phi: Callable[[Array], Array], point: Array, magnitude: Array, only: Array | None = None
) -> tuple[Array, Array]:
    """Return ∂φ/∂(element) of n functions, and the resolutions: arrays (elements, n), flat order.

    `only` names the elements to look at by their flat index; otherwise all.
    """
    length = lengths(point).ravel()
    chosen = np.arange(point.size) if only is None else only
    slope, resolution = np.zeros((2, len(chosen), *magnitude.shape))
    for row, flat in enumerate(chosen):
        u = np.zeros(point.size)
        u[flat] = length[flat]
        found = slopes(phi, point, u.reshape(point.shape), magnitude)
        slope[row], resolution[row] = (each / length[flat] for each in found)
    return slope, resolution


def numerical_gradient(f: Callable[[Tensor], Tensor], x: Array | Tensor) -> tuple[Array, Array]:
    """∂f/∂x by finite differences alone, element by element: (gradient, resolution).

    f takes a Tensor and returns a scalar one. Each element costs 26 evaluations of f, so this
    is for small inputs and for looking closely.

    >>> slope, resolution = numerical_gradient(lambda x: (x * x).sum(), np.array([1.0, 2.0]))
    >>> slope.round(9), bool(resolution.max() < 1e-12)
    (array([2., 4.]), True)
    """
    point = np.asarray(x.data if isinstance(x, Tensor) else x, dtype=float)
    value = f(Tensor(point))
    if value.size != 1:
        raise ValueError(f"numerical_gradient needs a scalar: f returned shape {value.shape}")
    slope, resolution = elementwise(
        lambda p: f(Tensor(p)).data.reshape(1), point, np.abs(value.data).reshape(1)
    )
    return slope.reshape(point.shape), resolution.reshape(point.shape)
