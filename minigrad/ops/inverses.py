"""3.9 · Inverses: differentiate the equation, not its solution.

How is a function differentiated if only its inverse has a formula? y = arcsin(x) means sin(y) = x.
Both sides of that equation move together, and for a small step dx

    f(y) = x        f′(y) dy = dx        ∂y/∂x = 1/f′(y)

That y has a derivative at all is the implicit function theorem, which asks for f′(y) ≠ 0.

The same works where y is a matrix that an algorithm finds. X = A⁻¹ B is found by elimination, and
no step of the elimination is differentiated: the equation A X = B is. Here the theorem asks for a
regular A, one that has an inverse.

These operations are found by NumPy's names for them, `np.arcsin(t)` or `np.linalg.solve(a, b)`,
and are not among minigrad's own names.

Reference: no demo uses what follows.
"""

from typing import Any, NamedTuple

import numpy as np

from minigrad.engine.rules import primitive
from minigrad.engine.tensor import Array, Tensor
from minigrad.ops.indexing import getitem
from minigrad.ops.shape import reshape


@primitive
def arcsin(x, /):
    """y = arcsin(x): from sin(y) = x follows cos(y) dy = dx, and cos(y) = √(1 - x²) ≥ 0.

    f′ = 1/√((1 - x)(1 + x)): near ±1 the product keeps the digits that 1 - x² loses.

    >>> np.arcsin(Tensor(0.0))
    Tensor(0.)
    """
    return lambda: np.arcsin(x), lambda g, y: g / np.sqrt((1 - x) * (1 + x))


@primitive
def arccos(x, /):
    """y = arccos(x) = π/2 - arcsin(x): f′ = -1/√((1 - x)(1 + x)).

    >>> np.arccos(Tensor(1.0))
    Tensor(0.)
    """
    return lambda: np.arccos(x), lambda g, y: -g / np.sqrt((1 - x) * (1 + x))


@primitive
def arcsinh(x, /):
    """y = arcsinh(x): from sinh(y) = x follows cosh(y) dy = dx, and cosh(y) = √(1 + x²).

    f′ = 1/√(1 + x²), with the root taken by `hypot`: x² would overflow at 1e155.

    >>> np.arcsinh(Tensor(0.0))
    Tensor(0.)
    """
    return lambda: np.arcsinh(x), lambda g, y: g / np.hypot(x, 1)


@primitive
def arccosh(x, /):
    """y = arccosh(x) for x ≥ 1: sinh(y) dy = dx, and sinh(y) = √(x² - 1) = √(x - 1) √(x + 1).

    >>> np.arccosh(Tensor(1.0))
    Tensor(0.)
    """
    return lambda: np.arccosh(x), lambda g, y: g / (np.sqrt(x - 1) * np.sqrt(x + 1))


@primitive
def arctanh(x, /):
    """y = arctanh(x) for |x| < 1: tanh′ = 1 - tanh², so (1 - x²) dy = dx.

    >>> np.arctanh(Tensor(0.0))
    Tensor(0.)
    """
    return lambda: np.arctanh(x), lambda g, y: g / ((1 - x) * (1 + x))


@primitive
def cbrt(x, /):
    """y = ∛x: from y³ = x follows 3y² dy = dx, so f′ = 1/(3y²). Infinite at 0.

    >>> np.cbrt(Tensor(-8.0))
    Tensor(-2.)
    """
    return lambda: np.cbrt(x), lambda g, y: g / (3 * y * y)


@primitive
def hypot(a, b, /):
    """y = √(a² + b²): from y² = a² + b² follows y dy = a da + b db.

        ∂y/∂a = a/y        ∂y/∂b = b/y

    They are the cosine and the sine of the direction (a, b). At the origin there is no direction,
    and the gradient used is 0, as for `norm` (chapter 6.3).

    >>> np.hypot(Tensor(3.0), 4.0)
    Tensor(5.)
    """
    return (
        lambda: np.hypot(a, b),
        lambda g, y: g * (a / np.where(np.equal(y, 0), 1, y)),
        lambda g, y: g * (b / np.where(np.equal(y, 0), 1, y)),
    )


@primitive
def arctan2(b, a, /):
    """θ = arctan2(b, a), the angle of the point (a, b), in all four quadrants.

    With r = √(a² + b²) the point is a = r cos θ, b = r sin θ. Turn it by dθ: it moves by r dθ at a
    right angle to itself, which is the direction (-sin θ, cos θ):

        r dθ = cos θ db - sin θ da        ∂θ/∂b = a/r²        ∂θ/∂a = -b/r²

    At the origin there is no angle, and its gradient is NaN.

    >>> np.arctan2(Tensor(0.0), 1.0)
    Tensor(0.)
    """
    return (
        lambda: np.arctan2(b, a),
        lambda g, y: g * (a / np.hypot(a, b)) / np.hypot(a, b),
        lambda g, y: -g * (b / np.hypot(a, b)) / np.hypot(a, b),
    )


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
    again the solution of a system. A moves X as a change of B by -dA X would:

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


@primitive
def det(a, /):
    """y = det A: by how much A stretches volumes.   (…, n, n) → (…)

    Near the identity only the diagonal counts to first order: det(I + E) = 1 + tr(E) + …
    Any other regular A is brought there by taking it out in front:

        det(A + dA) = det(A) det(I + A⁻¹ dA) = det(A) (1 + tr(A⁻¹ dA) + …)

        ∂y/∂A = det(A) A⁻ᵀ        ∂L/∂A = g y A⁻ᵀ

    A singular A has a gradient too, its cofactors. This rule cannot give it, since it divides by
    det(A) inside A⁻¹. The value is 0, and the backward pass raises a LinAlgError.

    >>> np.linalg.det(Tensor([[2.0, 1.0], [0.0, 4.0]]))
    Tensor(8.)
    """
    return (
        lambda: np.linalg.det(a),
        lambda g, y: (g * y)[..., None, None] * _inverse(a, "det").mT,
    )


def _inverse(a, asked):
    """A⁻¹, for the gradient of a determinant."""
    try:
        return np.linalg.inv(a)
    except np.linalg.LinAlgError:
        raise np.linalg.LinAlgError(
            f"the gradient of {asked} is computed from the inverse, which a singular matrix lacks"
        ) from None


class Slogdet(NamedTuple):
    """The two results of `slogdet`, as NumPy names them."""

    sign: Array
    logabsdet: Tensor


def slogdet(a: Any) -> Slogdet:
    """The sign of det A, a plain array, and log |det A|.   (…, n, n) → (…), (…)

    A determinant is a product of n numbers, and overflows long before its logarithm does. From
    `det` follows d log |det A| = tr(A⁻¹ dA), so

        ∂L/∂A = g A⁻ᵀ

    The sign is 1 or -1, and has no slope to give. For a singular A it is 0 and the logarithm -∞,
    and the backward pass raises a LinAlgError.

    >>> sign, log = np.linalg.slogdet(Tensor([[-2.0, 0.0], [0.0, 1.0]]))
    >>> sign, log
    (np.float64(-1.0), Tensor(0.69314718))
    >>> np.linalg.slogdet(Tensor([[0.0]]))
    Slogdet(sign=np.float64(0.0), logabsdet=Tensor(-inf))
    """
    array = a.data if isinstance(a, Tensor) else np.asarray(a)
    return Slogdet(np.linalg.slogdet(array)[0], _logabsdet(a))


@primitive(name="slogdet")
def _logabsdet(a, /):
    return (
        lambda: np.linalg.slogdet(a)[1],
        lambda g, y: g[..., None, None] * _inverse(a, "slogdet").mT,
    )


@primitive
def cholesky(a, /):
    """The lower triangular C with C Cᵀ = A, a positive definite matrix.   (…, n, n) → (…, n, n)

    A is symmetric, and being positive definite makes sure that C and C⁻¹ exist. Differentiate the
    equation, and multiply by C⁻¹ from the left and by C⁻ᵀ from the right:

        dC Cᵀ + C dCᵀ = dA        C⁻¹ dC + (C⁻¹ dC)ᵀ = C⁻¹ dA C⁻ᵀ

    C⁻¹ dC is lower triangular, and the second term is its mirror image. So C⁻¹ dC is the lower half
    of the right side, and the two terms share the diagonal equally. Write Φ for taking that half:
    keep what is below the diagonal, halve the diagonal, drop the rest.

        dC = C Φ(C⁻¹ dA C⁻ᵀ)

    Put that into the change of the loss, Σ G ⊙ dC, and move each factor to the side of G. Φ only
    multiplies elements, so it moves as it is:

        Σ G ⊙ dC = Σ S ⊙ dA        S = C⁻ᵀ Φ(Cᵀ G) C⁻¹

    NumPy reads only A's lower triangle, and takes the upper one for its mirror image. An element
    below the diagonal then stands for two, and gets the gradient of both:

        ∂L/∂A = Φ(S + Sᵀ)

    >>> np.linalg.cholesky(Tensor([[4.0, 2.0], [2.0, 2.0]]))
    Tensor([[2., 0.],
            [1., 1.]])
    """
    n = a.shape[-1]
    phi = np.tril(np.ones((n, n), a.dtype)) - np.eye(n, dtype=a.dtype) / 2

    def gradient(g, y):
        p = phi * (y.mT @ g)
        s = np.linalg.solve(y.mT, np.linalg.solve(y.mT, p).mT)  # (C⁻ᵀ P C⁻¹)ᵀ: Sᵀ serves as well
        return phi * (s + s.mT)

    return lambda: np.linalg.cholesky(a), gradient


__all__ = [
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan2",
    "arctanh",
    "cbrt",
    "cholesky",
    "det",
    "hypot",
    "inv",
    "slogdet",
    "solve",
]
