"""4.1 · Finite differences: move the input and look.

How do you find out that a derivation is wrong? Not by reading it again. A derivative claims
how much the output moves when the input does, so move the input a little, along u, and look:

    ∂f/∂x · u  ≈  (f(x + h u) - f(x - h u)) / 2h

How large should h be? Too large, and the curvature of f enters. Too small, and f(x + hu) and
f(x - hu) agree in all but their last digits, which are rounding. For most functions the best
single step leaves 10 digits of 16. Ridders (1982) does better: take a ladder of steps, each half
the one before. The error of a central difference is c₂h² + c₄h⁴ + …, so two rungs combined as
(4 D(h/2) - D(h)) / 3 cancel c₂, two of those with 16 and 15 cancel c₄, and so on. Of all these
estimates keep the one that departs least from the two it was made of.

That departure is worth as much as the estimate: it says how far the result can be believed. We
call it the **resolution**. A comparison with something finer than it means nothing, and chapter
4.2 says so instead of passing.

    >>> slope, resolution = slopes(np.exp, np.array([0.0]), np.array([1.0]), np.array([1.0]))
    >>> bool(abs(slope[0] - 1.0) < 1e-13), bool(resolution[0] < 1e-13)
    (True, True)
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from minigrad.tensor import Array, Tensor

STEPS = 2.0 ** -np.arange(3, 16)


def slopes(
    phi: Callable[[Array], Array], point: Array, u: Array, magnitude: Array
) -> tuple[Array, Array]:
    """The slope of φ at point, along u, for m functions at once, and the resolution of each.

    phi        point → (m,), the value of every function
    magnitude  (m,), the size of what is added up in each φ: it rounds by at least eps of this

    No estimate is credited with less error than the rounding of φ, spread over its step. Two
    estimates may agree by accident, most easily where rounding makes stairs of a smooth φ.

    Steps are measured in the typical size of the point's elements: the first is an eighth.
    """
    size = float(np.sqrt(np.mean(point**2))) or 1.0 if point.size else 1.0
    rungs = STEPS * size
    rows: list[list[Array]] = []
    with np.errstate(all="ignore"):  # a long step may leave φ's domain; a shorter one counts
        for h in rungs:
            row = [(phi(point + h * u) - phi(point - h * u)) / (2 * h)]
            for m, parent in enumerate(rows[-1][:4] if rows else [], 1):
                row.append((4**m * row[-1] - parent) / (4**m - 1))
            rows.append(row)
        # On the last rungs, curvature is long gone from the third column. What still moves there
        # is the rounding of φ, divided by h: so this is how large that rounding is.
        moves = [rungs[k] * abs(rows[k][2] - rows[k - 1][2]) for k in (-4, -3, -2, -1)]
        rounding = np.maximum(np.finfo(float).eps * magnitude, np.max(moves, axis=0))
        best = np.full(magnitude.shape, np.nan)
        resolution = np.full(magnitude.shape, np.inf)
        for row, above, h in zip(rows[1:], rows, rungs[1:], strict=False):
            for m in range(1, len(row)):
                parents = np.maximum(abs(row[m] - row[m - 1]), abs(row[m] - above[m - 1]))
                doubt = parents + rounding / h
                better = doubt < resolution
                best[better], resolution[better] = row[m][better], doubt[better]
    return best, resolution


def elementwise(
    phi: Callable[[Array], Array], point: Array, magnitude: Array
) -> tuple[Array, Array]:
    """∂φ/∂point for each element of point and each of m functions: two arrays (*shape, m)."""
    slope = np.zeros((*point.shape, *magnitude.shape))
    resolution = np.zeros_like(slope)
    for index in np.ndindex(point.shape):
        u = np.zeros(point.shape)
        u[index] = 1.0
        slope[index], resolution[index] = slopes(phi, point, u, magnitude)
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
    return slope[..., 0], resolution[..., 0]
