"""6.7 · More of NumPy: other sums, products and curves, and the table of all such words.

What is left of NumPy's vocabulary once the chapters above have what a model needs? `np.median`,
`np.cross`, `np.sinc`: functions with NumPy's names, arguments and results, composed, and found by
their names as those of chapter 6.6 are. The table at the end says which word finds what.

Reference: no demo uses what follows.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from minigrad.engine.tensor import Tensor, describe
from minigrad.functional import pieces, reductions
from minigrad.functional.arranging import diagonal, expand_dims, moveaxis, ravel, sort, squeeze
from minigrad.functional.reductions import dot, outer, tensordot, trace
from minigrad.ops import (
    abs,
    add,
    broadcast_to,
    concatenate,
    divide,
    getitem,
    inverses,
    log,
    logaddexp,
    matmul,
    max,
    mean,
    min,
    multiply,
    power,
    reshape,
    sign,
    sin,
    subtract,
    sum,
    swapaxes,
    where,
)
from minigrad.ops.elementwise import floats, wide

# ---------------------------------------------------------------- sums and products


def average(a: Any, axis: Any = None, weights: Any = None, *, keepdims: bool = False) -> Tensor:
    """The mean, or Σ w x / Σ w. Weights with one axis belong to the axis that is averaged.

    >>> np.average(Tensor([1.0, 4.0]), weights=[2.0, 1.0])
    Tensor(2.)
    """
    if weights is None:
        return mean(a, axis=axis, keepdims=keepdims)
    a, weights, shape = floats(a), floats(weights), np.shape(a)
    if np.shape(weights) != shape:
        if np.ndim(weights) != 1 or not isinstance(axis, int | np.integer):
            raise ValueError(
                f"average of {describe(a)} over axis={axis}: weights {np.shape(weights)} need the "
                "same shape, or one axis and one axis to average over"
            )
        along = normalize_axis_index(int(axis), len(shape))
        weights = reshape(weights, tuple(-1 if i == along else 1 for i in range(len(shape))))
        weights = broadcast_to(weights, shape)
    total = sum(weights, axis=axis, keepdims=keepdims)
    if np.equal(total, 0).any():
        raise ZeroDivisionError(f"average of {describe(a)}: the weights sum to 0")
    return divide(sum(multiply(weights, a), axis=axis, keepdims=keepdims), total)


def median(a: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """The middle element, or the mean of the two middle ones. Only they get a gradient.

    >>> np.median(Tensor([[3.0, 1.0, 10.0]]), axis=1)
    Tensor([3.])
    """
    x, axes = _as_one_axis(a, axis)
    n = np.shape(x)[-1]
    middle = getitem(sort(x), (..., slice((n - 1) // 2, n // 2 + 1)))
    y = mean(middle, axis=-1)
    if np.isnan(x).any():  # NaN is sorted to the end, and is not the middle: NumPy's answer is NaN
        y = where(np.isnan(x).any(axis=-1), np.nan, y)
    return expand_dims(y, axes) if keepdims else y


def _as_one_axis(x: Any, axis: Any) -> tuple[Tensor, tuple[int, ...]]:
    """x with the given axes, or all of them, made one, which is the last; and their numbers."""
    shape = np.shape(x)
    axes = normalize_axis_tuple(range(len(shape)) if axis is None else axis, len(shape))
    rest = tuple(n for i, n in enumerate(shape) if i not in axes)
    last = moveaxis(x, axes, range(-len(axes), 0))
    return reshape(last, (*rest, math.prod(shape[i] for i in axes))), axes


def diff(a: Any, n: int = 1, axis: int = -1) -> Tensor:
    """Each element minus the one before it, n times over.   (…, m) → (…, m - n)

    >>> np.diff(Tensor([1, 4, 9]))
    Tensor([3, 5])
    """
    if n < 0:
        raise ValueError(f"diff: n must be 0 or larger, got {n}")
    along = (slice(None),) * normalize_axis_index(axis, np.ndim(a))
    for _ in range(n):
        a = subtract(getitem(a, (*along, slice(1, None))), getitem(a, (*along, slice(None, -1))))
    return a  # type: ignore[no-any-return]


def cumprod(a: Any, axis: int | None = None) -> Tensor:
    """yᵢ = x₀ · … · xᵢ along the axis; with axis=None along the flattened a.

    In log₂ n rounds, each element is multiplied by the product of the 1, 2, 4, … before it.
    Nothing is divided, so an element that is 0 has the right gradient too.

    >>> np.cumprod(Tensor([1, 2, 3]))
    Tensor([1, 2, 6])
    """
    if isinstance(a, Tensor) and a.dtype.kind in "iub":  # no gradient: NumPy's wider integers
        return Tensor(np.cumprod(a.data, axis))
    x = ravel(a) if axis is None else moveaxis(a, axis, -1)
    n, step = np.shape(x)[-1], 1
    while step < n:
        head, tail = getitem(x, (..., slice(step))), getitem(x, (..., slice(step, None)))
        x = concatenate([head, multiply(tail, getitem(x, (..., slice(n - step))))], axis=-1)
        step *= 2
    return x if axis is None else moveaxis(x, -1, axis)


def inner(a: Any, b: Any) -> Tensor:
    """Sums over the last axes of both.   (…, n), (…, n) → (…, …)

    >>> np.inner(Tensor([1, 2]), [3, 4])
    Tensor(11)
    """
    if np.ndim(a) == 0 or np.ndim(b) == 0:
        return multiply(a, b)
    return tensordot(a, b, (-1, -1))


def vdot(a: Any, b: Any) -> Tensor:
    """The inner product of all elements.   (…), (…) → ()

    >>> np.vdot(Tensor([[1, 2]]), [[3], [4]])
    Tensor(11)
    """
    return dot(ravel(a), ravel(b))


def vecdot(x1: Any, x2: Any, *, axis: int = -1) -> Tensor:
    """The inner products along an axis, with the others broadcast.   (…, n), (…, n) → (…)

    >>> np.vecdot(Tensor([[1, 2], [3, 4]]), [1, 1])
    Tensor([3, 7])
    """
    x1, x2 = (moveaxis(wide(x), axis, -1) for x in (x1, x2))
    return sum(multiply(x1, x2), axis=-1)


def kron(a: Any, b: Any) -> Tensor:
    """A block matrix: b times each element of a.   (n, m), (p, q) → (n p, m q)

    >>> np.kron(Tensor([1, 10]), [1, 2])
    Tensor([ 1,  2, 10, 20])
    """
    ndim = np.ndim(a) if np.ndim(a) > np.ndim(b) else np.ndim(b)
    shapes = [(1,) * (ndim - np.ndim(x)) + np.shape(x) for x in (a, b)]
    outer_axes = tuple(n for m in shapes[0] for n in (m, 1))
    inner_axes = tuple(n for m in shapes[1] for n in (1, m))
    blocks = multiply(reshape(a, outer_axes), reshape(b, inner_axes))
    return reshape(blocks, tuple(m * n for m, n in zip(*shapes, strict=True)))


def norm(x: Any, ord: Any = None, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """NumPy's `linalg.norm`: chapter 6.3's, and for vectors (Σ |xᵢ|ᵖ)^(1/p) of any order p.

    -∞ is the smallest |xᵢ|, and 0 counts the elements that are not 0. (For p < 1 a power has no
    finite slope at 0: the gradient of an element 0 is NaN.) Over two axes, of matrices:
    "fro" is the root of all squares, 1 and -1 the largest and smallest sum of a column, ∞ and -∞ of
    a row. Those of the singular values (2, -2, "nuc") need a decomposition that is not here.

    >>> np.linalg.norm(Tensor([1.0, -2.0, 2.0]), 3)
    Tensor(2.57128159)
    """
    ndim = np.ndim(x)
    axes = tuple(range(ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    if ord is None or (len(axes) == 2 and ord == "fro"):
        return reductions.norm(x, None, axis, keepdims=keepdims)
    if len(axes) == 2 and ord in (1, -1, np.inf, -np.inf):
        summed, compared = axes if ord in (1, -1) else axes[::-1]
        sums = sum(abs(x), axis=summed, keepdims=True)
        y = (max if ord > 0 else min)(sums, axis=compared, keepdims=True)
        return y if keepdims else squeeze(y, axes)
    if len(axes) != 1 or not isinstance(ord, int | float | np.number):
        raise TypeError(
            f"norm of {describe(x)} over {len(axes)} axes has no rule for ord={ord!r}: of vectors "
            'it has any number, of matrices "fro", 1, -1, np.inf and -np.inf'
        )
    (axis,) = axes
    if ord in (1, 2, np.inf):
        return reductions.norm(x, ord, axis, keepdims=keepdims)
    if ord == -np.inf:
        return min(abs(x), axis=axis, keepdims=keepdims)
    x = floats(x)
    if ord == 0:
        return sum(abs(sign(x)), axis=axis, keepdims=keepdims)
    powers = sum(power(abs(x), ord), axis=axis, keepdims=keepdims)
    if ord < 0:
        return power(powers, 1 / ord)
    at_zero = np.equal(powers, 0)  # where the root's slope is infinite, and 0 is used
    return where(at_zero, 0, power(where(at_zero, 1, powers), 1 / ord))


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Tensor:
    """The norm of a vector: of all elements, or of those along the axis or axes.

    >>> np.linalg.vector_norm(Tensor([[3.0, 0.0], [0.0, -4.0]]), ord=1)
    Tensor(7.)
    """
    lines, axes = _as_one_axis(x, axis)
    y = norm(lines, ord, -1)
    return expand_dims(y, axes) if keepdims else y


def cross(a: Any, b: Any, *, axis: int = -1) -> Tensor:
    """The vector at right angles to both, as long as their area.   (…, 3), (…, 3) → (…, 3)

    >>> np.cross(Tensor([1, 0, 0]), [0, 1, 0])
    Tensor([0, 0, 1])
    """
    x, y = moveaxis(a, axis, -1), moveaxis(b, axis, -1)
    if np.shape(x)[-1] != 3 or np.shape(y)[-1] != 3:
        raise ValueError(f"cross takes vectors of 3: got {describe(a)} and {describe(b)}")
    left, right = (..., [1, 2, 0]), (..., [2, 0, 1])
    turned = subtract(
        multiply(getitem(x, left), getitem(y, right)),
        multiply(getitem(x, right), getitem(y, left)),
    )
    return moveaxis(turned, -1, axis)


# ---------------------------------------------------------------- curves


def log10(x: Any) -> Tensor:
    """log x / log 10.

    >>> np.log10(Tensor(100.0))
    Tensor(2.)
    """
    return divide(log(floats(x)), math.log(10))


def exp2(x: Any) -> Tensor:
    """2ˣ.

    >>> np.exp2(Tensor(3.0))
    Tensor(8.)
    """
    return power(2.0, x)


def logaddexp2(x1: Any, x2: Any) -> Tensor:
    """log₂(2ᵃ + 2ᵇ).

    >>> np.logaddexp2(Tensor(0.0), 0.0)
    Tensor(1.)
    """
    ln2 = math.log(2)
    return divide(logaddexp(multiply(x1, ln2), multiply(x2, ln2)), ln2)


def deg2rad(x: Any) -> Tensor:
    """Degrees as an angle: x π/180.

    >>> np.deg2rad(Tensor(180.0))
    Tensor(3.14159265)
    """
    return multiply(x, math.pi / 180)


def rad2deg(x: Any) -> Tensor:
    """An angle in degrees: x 180/π.

    >>> np.rad2deg(Tensor(np.pi))
    Tensor(180.)
    """
    return multiply(x, 180 / math.pi)


def sinc(x: Any) -> Tensor:
    """sin(πx)/(πx), and 1 at 0.

    Near 0 the quotient has the right value, but its derivatives are differences of large numbers,
    and at 0 there are none. So the power series 1 - t²/3! + t⁴/5! - … is used there, t = πx.

    >>> np.sinc(Tensor([0.0, 0.5]))
    Tensor([1.        , 0.63661977])
    """
    t = multiply(math.pi, x)
    near = np.less(np.abs(t), 0.5)
    small, far = multiply(where(near, t, 0), where(near, t, 0)), where(near, 1, t)
    series: Any = 0.0
    for k in range(8, -1, -1):  # the first term that is left out is below 1e-23
        series = add(multiply(series, small), (-1) ** k / math.factorial(2 * k + 1))
    return where(near, series, divide(sin(far), far))


# ---------------------------------------------------------------- which word is which

__all__ = [
    "average",
    "cross",
    "cumprod",
    "deg2rad",
    "diff",
    "exp2",
    "inner",
    "kron",
    "log10",
    "logaddexp2",
    "median",
    "norm",
    "rad2deg",
    "sinc",
    "vdot",
    "vecdot",
    "vector_norm",
]

LINALG = ("cholesky", "det", "inv", "slogdet", "solve")
MORE: dict[Any, Any] = {
    **{getattr(np, name): getattr(pieces, name) for name in pieces.__all__ if hasattr(np, name)},
    **{getattr(np, name): globals()[name] for name in __all__ if hasattr(np, name)},
    **{
        getattr(np.linalg if name in LINALG else np, name): getattr(inverses, name)
        for name in inverses.__all__
    },
    np.degrees: rad2deg,
    np.radians: deg2rad,
    np.linalg.cross: cross,
    np.linalg.norm: norm,
    np.linalg.diagonal: lambda x, /, *, offset=0: diagonal(x, offset, -2, -1),
    np.linalg.matmul: matmul,
    np.linalg.matrix_transpose: lambda x, /: swapaxes(x, -1, -2),
    np.linalg.outer: outer,
    np.linalg.tensordot: tensordot,
    np.linalg.trace: lambda x, /, *, offset=0: trace(x, offset, -2, -1),
    np.linalg.vecdot: vecdot,
    np.linalg.vector_norm: vector_norm,
    np.linalg.matrix_norm: lambda x, /, *, keepdims=False, ord="fro": norm(
        x, ord, (-2, -1), keepdims=keepdims
    ),
}
