"""3.9 · Inverses: differentiate the equation, not its solution.

How is a function differentiated if only its inverse has a formula? y = arcsin(x) means sin(y) = x.
Both sides of that equation move together, and for a small step dx

    f(y) = x        f′(y) dy = dx        ∂y/∂x = 1/f′(y)

That y has a derivative at all is the implicit function theorem, which asks for f′(y) ≠ 0.

The same works where y is a matrix that an algorithm finds. X = A⁻¹ B is found by elimination, and
no step of the elimination is differentiated: the equation A X = B is. Here the theorem asks for a
regular A, one that has an inverse.

The operations here are found by NumPy's names for them, `np.arcsin(t)` or `np.linalg.solve(a, b)`,
and are not among minigrad's own names.
"""

from typing import Any

import numpy as np

from minigrad.engine.rules import primitive
from minigrad.engine.tensor import Tensor
from minigrad.ops.elementwise import floats
from minigrad.ops.indexing import getitem
from minigrad.ops.shape import reshape


@primitive
def arcsin(x, /):
    """y = arcsin(x): from sin(y) = x follows cos(y) dy = dx, and cos(y) = √(1 - x²) ≥ 0.

    f′ = 1/√((1 - x)(1 + x)): near ±1 the product keeps the digits that 1 - x² loses.

    >>> np.arcsin(Tensor(0.0))
    Tensor(0.)
    """
    return lambda: np.arcsin(floats(x)), lambda g, y: g / np.sqrt((1 - x) * (1 + x))


@primitive
def inv(a, /):
    """Y = A⁻¹, the solution of A Y = I.   (…, n, n) → (…, n, n)

    Differentiate A Y = I, whose right side does not move:

        dA Y + A dY = 0        dY = -Y dA Y

    Put that into the change of the loss. Σ A ⊙ B is tr(Aᵀ B), where tr, the trace, is the sum of
    the diagonal. And the trace of a product does not change when its last factor moves to the
    front:

        dL = Σ G ⊙ dY = -tr(Gᵀ Y dA Y) = -tr(Y Gᵀ Y dA)        ∂L/∂A = -Yᵀ G Yᵀ

    >>> np.linalg.inv(Tensor([[2.0, 0.0], [0.0, 4.0]]))
    Tensor([[0.5 , 0.  ],
            [0.  , 0.25]])
    """
    return lambda: np.linalg.inv(a), lambda g, y: -(y.mT @ g @ y.mT)


def solve(a: Any, b: Any) -> Tensor:
    """X = A⁻¹ B, the solution of A X = B.   (…, n, n) · (…, n, m) → (…, n, m)

    Differentiate the equation and solve for dX:

        dA X + A dX = dB        dX = A⁻¹ (dB - dA X)

    B moves X through A⁻¹, so its gradient comes back through the transpose of that, which is
    again the solution of a system. *A* moves X as a change of B by -dA X would:

        ∂L/∂B = A⁻ᵀ G        ∂L/∂A = -(∂L/∂B) Xᵀ

    As in NumPy, a b with one axis is a vector, and so is the solution.

    >>> np.linalg.solve(Tensor([[2.0, 0.0], [0.0, 4.0]]), [2.0, 2.0])
    Tensor([1. , 0.5])
    """
    if np.ndim(b) == 1:
        x = _solve(a, reshape(b, (-1, 1)))
        return getitem(x, (..., 0))
    return _solve(a, b)


@primitive(name="solve")
def _solve(a, b, /):
    return (
        lambda: np.linalg.solve(a, b),
        lambda g, y: -(np.linalg.solve(a.mT, g) @ y.mT),  # ∂L/∂A = -A⁻ᵀ G Xᵀ
        lambda g, y: np.linalg.solve(a.mT, g),  # ∂L/∂B = A⁻ᵀ G
    )


# ---------------------------------------------------- A first reading may stop here.
# What follows: eight more curves by the same way.


@primitive
def arccos(x, /):
    """y = π/2 - arcsin(x): f′ = -1/√((1 - x)(1 + x))."""
    return lambda: np.arccos(floats(x)), lambda g, y: -g / np.sqrt((1 - x) * (1 + x))


@primitive
def arcsinh(x, /):
    """From sinh(y) = x follows cosh(y) dy = dx, and cosh(y) = √(1 + x²)."""
    return lambda: np.arcsinh(floats(x)), lambda g, y: g / np.sqrt(1 + x * x)


@primitive
def arccosh(x, /):
    """From cosh(y) = x ≥ 1 follows sinh(y) dy = dx, and sinh(y) = √(x² - 1) = √((x - 1)(x + 1))."""
    return lambda: np.arccosh(floats(x)), lambda g, y: g / np.sqrt((x - 1) * (x + 1))


@primitive
def arctanh(x, /):
    """From tanh(y) = x and tanh′ = 1 - tanh² follows (1 - x²) dy = dx."""
    return lambda: np.arctanh(floats(x)), lambda g, y: g / ((1 - x) * (1 + x))


@primitive
def arctan(x, /):
    """From tan(y) = x follows (1 + tan² y) dy = dx, so f′ = 1/(1 + x²)."""
    return lambda: np.arctan(floats(x)), lambda g, y: g / (1 + x * x)


@primitive
def cbrt(x, /):
    """y = ∛x: from y³ = x follows 3y² dy = dx, so f′ = 1/(3y²). Infinite at 0."""
    return lambda: np.cbrt(floats(x)), lambda g, y: g / (3 * y * y)


@primitive
def hypot(a, b, /):
    """y = √(a² + b²): from y² = a² + b² follows y dy = a da + b db. At the origin, 0 is used."""
    return (
        lambda: np.hypot(floats(a), floats(b)),
        lambda g, y: g * a / np.where(np.equal(y, 0), 1, y),
        lambda g, y: g * b / np.where(np.equal(y, 0), 1, y),
    )


@primitive
def arctan2(b, a, /):
    """θ, the angle of the point (a, b) = (r cos θ, r sin θ). At the origin, its gradient is NaN.

    Turned by dθ, the point moves by r dθ in the direction (-sin θ, cos θ), so

        r dθ = cos θ db - sin θ da        ∂θ/∂b = a/r²        ∂θ/∂a = -b/r²
    """
    return (
        lambda: np.arctan2(floats(b), floats(a)),
        lambda g, y: g * a / (a * a + b * b),
        lambda g, y: -g * b / (a * a + b * b),
    )
