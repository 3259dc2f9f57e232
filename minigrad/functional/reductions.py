"""6.3 · Reductions: sums, products and lengths, composed.

Which functions of statistics and linear algebra need a derivative of their own, once sums, maxima
and matrix products have one? None. A variance is a mean of squares, and a product is a tree of
multiplications. Care is needed only at single points, where a formula that is right everywhere else
divides 0 by 0.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from minigrad.engine.hints import in_our_words
from minigrad.engine.tensor import Tensor, describe
from minigrad.functional.activations import square
from minigrad.ops import (
    concatenate,
    divide,
    matmul,
    mean,
    multiply,
    reshape,
    sqrt,
    subtract,
    sum,
    transpose,
    where,
)
from minigrad.ops.elementwise import floats
from minigrad.ops.reduce import kept_shape


@in_our_words
def prod(x: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """Multiply the elements over the axis: halves with each other, until one factor is left.

    The textbook derivative y/xᵢ is 0/0 where an element is 0. A tree of multiplications never
    divides, and its gradient is right there too, at every order.

    >>> from minigrad import grad
    >>> prod([2.0, 3.0, 5.0]), grad(prod)([2.0, 0.0, 5.0])
    (array(30.), array([ 0., 10.,  0.]))
    """
    array: Any = np.asarray(x.data if isinstance(x, Tensor) else x)
    if array.dtype.kind in "iub":  # no gradient, and NumPy's wider integers
        y = array.prod(axis=axis, keepdims=keepdims)
        return Tensor(y) if isinstance(x, Tensor) else np.asarray(y)  # type: ignore[return-value]
    shape = np.shape(x)
    axes = _reduced(axis, shape)
    rest = tuple(i for i in range(len(shape)) if i not in axes)
    n = math.prod(shape[i] for i in axes)
    others = tuple(shape[i] for i in rest)
    factors: Any = reshape(transpose(x, (*axes, *rest)), (n, *others))
    if n == 0:  # the product of nothing is 1
        factors = 1 + sum(factors, axis=0, keepdims=True)
        n = 1
    while n > 1:
        half = n // 2
        pairs = factors[:half] * factors[half : 2 * half]
        factors = concatenate([pairs, factors[2 * half :]]) if n % 2 else pairs
        n -= half
    return reshape(factors, kept_shape(shape, axes) if keepdims else others)


@in_our_words
def var(x: Any, axis: Any = None, *, ddof: int = 0, keepdims: bool = False) -> Tensor:
    """Return the mean squared distance from the mean. `ddof=1` divides by n - 1, for samples.

    >>> var([1.0, 2.0, 3.0])
    array(0.66666667)
    """
    n = _count(x, axis, ddof, "var")
    centred = subtract(x, mean(x, axis=axis, keepdims=True))
    return divide(sum(square(centred), axis=axis, keepdims=keepdims), n)


@in_our_words
def std(x: Any, axis: Any = None, *, ddof: int = 0, keepdims: bool = False) -> Tensor:
    """√var: the length of x - mean, divided by √n. Where all elements are equal, the gradient is 0.

    >>> std([1.0, 3.0])
    array(1.)
    """
    n = _count(x, axis, ddof, "std")
    centred = subtract(x, mean(x, axis=axis, keepdims=True))
    return divide(norm(centred, axis=_reduced(axis, np.shape(x)), keepdims=keepdims), math.sqrt(n))


@in_our_words
def norm(x: Any, ord: Any = None, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """Return the length of vectors: √Σ xᵢ². Without an axis all elements are one vector.

    The length has a kink at 0, where it grows with slope 1 in every direction. √ has slope ∞ there,
    and ∞ · 0 is NaN. So at 0 no root is taken, and the gradient is 0, the mean of all those slopes.
    The second derivative used there is 0 too.

    >>> from minigrad import grad
    >>> norm([3.0, 4.0]), grad(norm)([3.0, 4.0]), grad(norm)([0.0, 0.0])
    (array(5.), array([0.6, 0.8]), array([0., 0.]))
    """
    if ord is not None and (ord != 2 or len(_reduced(axis, np.shape(x))) != 1):
        raise TypeError(
            f"norm has no rule for ord={ord!r}, only for the root of all squares: of vectors use "
            "np.abs(x).sum(axis) for ord=1 and np.abs(x).max(axis) for ord=np.inf"
        )
    squares = sum(square(floats(x)), axis=axis, keepdims=keepdims)
    at_zero = np.equal(squares, 0)
    return where(at_zero, 0, sqrt(where(at_zero, 1, squares)))


def dot(a: Any, b: Any) -> Tensor:
    """Multiply as NumPy's `dot`: the last axis of *a* and the last but one of b. Matrices: a @ b.

    >>> dot([1, 2], [3, 4])
    array(11)
    """
    if np.ndim(a) == 0 or np.ndim(b) == 0:
        return multiply(a, b)
    if np.ndim(b) > 2:
        raise ValueError(f"dot takes at most two axes of b, not {describe(b)}: use @ or einsum")
    return matmul(a, b)


def outer(a: Any, b: Any) -> Tensor:
    """Multiply every element of *a* by every element of b. (n,), (m,) → (n, m)

    >>> outer([1, 2], [3, 4])
    array([[3, 4],
           [6, 8]])
    """
    shape = np.size(a), np.size(b)
    column = reshape(a, (-1, 1)) if np.ndim(a) else a  # a number stays one, and takes b's dtype
    row = reshape(b, (1, -1)) if np.ndim(b) else b
    return reshape(multiply(column, row), shape)


def _reduced(axis: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the axes that a reduction runs over, counted from the front."""
    if axis is None or not shape:
        return tuple(range(len(shape)))
    return tuple(normalize_axis_tuple(axis, len(shape)))


def _count(x: Any, axis: Any, ddof: int, asked: str) -> int:
    """Return n - ddof, the divisor of a sum over n elements; ValueError if it is not positive."""
    shape = np.shape(x)
    n: int = math.prod(shape[i] for i in _reduced(axis, shape))
    if n <= ddof:
        raise ValueError(
            f"{asked} of {describe(x)} over {n} elements with ddof={ddof}: "
            "there is nothing to divide by"
        )
    return n - ddof
