"""6.6 · More of NumPy: the words that no chapter and no demo needs, composed.

What if a program says `np.vstack` or `np.median`? Each function here has NumPy's name, arguments
and result, and is found by that name: `np.hstack([t, t])` records what `hstack` below does. None
of them is worth a lesson, so they are not among minigrad's own names.

Reference: no demo uses what follows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from minigrad.engine.tensor import Tensor, describe
from minigrad.functional.arranging import (
    diagonal,
    expand_dims,
    flip,
    moveaxis,
    ravel,
    sort,
    split,
    squeeze,
)
from minigrad.functional.reductions import dot, outer, tensordot, trace
from minigrad.functional.reductions import norm as functional_norm
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
    maximum,
    mean,
    min,
    minimum,
    multiply,
    power,
    reshape,
    scatter_add,
    sign,
    sin,
    subtract,
    sum,
    swapaxes,
    where,
)
from minigrad.ops.elementwise import floats

# ---------------------------------------------------------------- joining


def atleast_1d(*arrays: Any) -> Any:
    """Each with at least one axis.

    >>> atleast_1d(2.0)
    array([2.])
    """
    return _each(lambda x: reshape(x, (1,)) if np.ndim(x) == 0 else x, arrays)


def atleast_2d(*arrays: Any) -> Any:
    """Each with at least two axes; a vector becomes a row.

    >>> atleast_2d([1, 2]).shape
    (1, 2)
    """
    return _each(_at_least_2d, arrays)


def atleast_3d(*arrays: Any) -> Any:
    """Each with at least three axes; a vector of n becomes (1, n, 1), a matrix gets a last axis.

    >>> atleast_3d([1, 2]).shape
    (1, 2, 1)
    """
    return _each(lambda x: expand_dims(_at_least_2d(x), 2) if np.ndim(x) < 3 else x, arrays)


def _at_least_2d(x: Any) -> Any:
    return reshape(x, (1, -1)) if np.ndim(x) < 2 else x


def _each(f: Any, arrays: Sequence[Any]) -> Any:
    """One result for one array, a tuple for several, and arrays where lists were."""
    found = tuple(f(x if isinstance(x, Tensor) else np.asarray(x)) for x in arrays)
    return found[0] if len(found) == 1 else found


def vstack(tup: Sequence[Any]) -> Tensor:
    """Joined along the first axis; vectors are rows.

    >>> vstack([[1, 2], [3, 4]])
    array([[1, 2],
           [3, 4]])
    """
    return concatenate([_at_least_2d(x) for x in tup])


def hstack(tup: Sequence[Any]) -> Tensor:
    """Joined along the second axis; vectors, which have one, along that.

    >>> hstack([[1, 2], [3]])
    array([1, 2, 3])
    """
    arrays = [atleast_1d(x) for x in tup]
    return concatenate(arrays, axis=0 if arrays and np.ndim(arrays[0]) == 1 else 1)


def dstack(tup: Sequence[Any]) -> Tensor:
    """Joined along the third axis.

    >>> dstack([[1, 2], [3, 4]]).shape
    (1, 2, 2)
    """
    return concatenate([atleast_3d(x) for x in tup], axis=2)


def column_stack(tup: Sequence[Any]) -> Tensor:
    """Joined along the second axis; vectors are columns.

    >>> column_stack([[1, 2], [3, 4]])
    array([[1, 3],
           [2, 4]])
    """
    return concatenate([reshape(x, (-1, 1)) if np.ndim(x) < 2 else x for x in tup], axis=1)


def append(arr: Any, values: Any, axis: int | None = None) -> Tensor:
    """The values behind arr along the axis; without an axis, both flattened.

    >>> append([1, 2], [[3], [4]])
    array([1, 2, 3, 4])
    """
    if axis is None:
        return concatenate([ravel(arr), ravel(values)])
    return concatenate([arr, values], axis)


# ---------------------------------------------------------------- cutting and turning


def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    """As `split`, into parts that need not be equal: the first ones are one longer.

    >>> array_split([1, 2, 3], 2)
    [array([1, 2]), array([3])]
    """
    shape = np.shape(ary)
    places = np.array_split(
        np.arange(shape[normalize_axis_index(axis, len(shape))]), indices_or_sections
    )
    along = (slice(None),) * normalize_axis_index(axis, len(shape))
    return [
        getitem(ary, (*along, slice(int(p[0]), int(p[-1]) + 1) if p.size else slice(0, 0)))
        for p in places
    ]


def hsplit(ary: Any, indices_or_sections: Any) -> list[Tensor]:
    """Equal parts along the second axis; a vector is cut along its one.

    >>> hsplit([1, 2], 2)
    [array([1]), array([2])]
    """
    return _equal_parts(ary, indices_or_sections, 1 if np.ndim(ary) > 1 else 0, 1, "hsplit")


def vsplit(ary: Any, indices_or_sections: Any) -> list[Tensor]:
    """Equal parts along the first axis of two or more.

    >>> vsplit([[1], [2]], 2)
    [array([[1]]), array([[2]])]
    """
    return _equal_parts(ary, indices_or_sections, 0, 2, "vsplit")


def dsplit(ary: Any, indices_or_sections: Any) -> list[Tensor]:
    """Equal parts along the third axis.

    >>> dsplit([[[1, 2]]], 2)
    [array([[[1]]]), array([[[2]]])]
    """
    return _equal_parts(ary, indices_or_sections, 2, 3, "dsplit")


def _equal_parts(x: Any, places: Any, axis: int, ndim: int, asked: str) -> list[Tensor]:
    if np.ndim(x) < ndim:
        raise ValueError(f"{asked} needs at least {ndim} axes: got {describe(x)}")
    return split(x, places, axis)


def unstack(x: Any, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The parts along an axis, without that axis.

    >>> unstack([[1, 2], [3, 4]])
    (array([1, 2]), array([3, 4]))
    """
    x = moveaxis(x, axis, 0)
    return tuple(getitem(x, i) for i in range(np.shape(x)[0]))


def flipud(m: Any) -> Tensor:
    """Backwards along the first axis.

    >>> flipud([[1], [2]])
    array([[2],
           [1]])
    """
    return flip(m, 0)


def fliplr(m: Any) -> Tensor:
    """Backwards along the second axis.

    >>> fliplr([[1, 2]])
    array([[2, 1]])
    """
    return flip(m, 1)


def rot90(m: Any, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Tensor:
    """Turned by k · 90°, from the first of the two axes towards the second.

    >>> rot90([[1, 2], [3, 4]])
    array([[2, 4],
           [1, 3]])
    """
    first, second = (normalize_axis_index(i, np.ndim(m)) for i in axes)
    if first == second:
        raise ValueError(f"rot90 of {describe(m)}: the two axes are one axis")
    for _ in range(k % 4):
        m = flip(swapaxes(m, first, second), first)
    return m if isinstance(m, Tensor) else np.asarray(m)  # type: ignore[return-value]


def full_like(a: Any, fill_value: Any) -> Tensor:
    """An array of a's shape and dtype that has one value everywhere.

    >>> full_like([1.0, 2.0], 7.0)
    array([7., 7.])
    """
    like = a if isinstance(a, Tensor) else np.asarray(a)
    if not isinstance(fill_value, Tensor):
        return np.full(like.shape, fill_value, like.dtype)  # type: ignore[return-value]
    y = broadcast_to(fill_value, like.shape)
    return y if y.dtype == like.dtype else y.astype(like.dtype)


def diag(v: Any, k: int = 0) -> Tensor:
    """The k-th diagonal of a matrix, or a matrix with the vector on its k-th diagonal.

    >>> diag([1, 2])
    array([[1, 0],
           [0, 2]])
    """
    if np.ndim(v) == 2:
        return diagonal(v, k)
    if np.ndim(v) != 1:
        raise ValueError(f"diag takes a vector or a matrix: got {describe(v)}")
    n = np.shape(v)[0]
    rows = np.arange(n) + (-k if k < 0 else 0)
    size = n + (k if k > 0 else -k)
    return scatter_add(v, (size, size), (rows, rows + k))


def meshgrid(*xi: Any, indexing: str = "xy") -> tuple[Tensor, ...]:
    """One array for each vector, of the shape of all of them, that varies along its own axis.

    >>> [grid.shape for grid in meshgrid([1, 2], [3, 4, 5])]
    [(3, 2), (3, 2)]
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid knows indexing 'xy' and 'ij', but was asked for {indexing!r}")
    shape = tuple(np.size(x) for x in xi)
    grids = [
        broadcast_to(reshape(x, tuple(-1 if i == j else 1 for j in range(len(xi)))), shape)
        for i, x in enumerate(xi)
    ]
    swap = indexing == "xy" and len(xi) > 1
    return tuple(swapaxes(grid, 0, 1) if swap else grid for grid in grids)


def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Tensor:
    """At each place the first choice whose condition holds, else the default.

    >>> select([[True, False]], [[1, 2]], 7)
    array([1, 7])
    """
    if len(condlist) != len(choicelist):
        raise ValueError(f"select: {len(condlist)} conditions for {len(choicelist)} choices")
    y = default
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        y = where(condition, choice, y)
    return y  # type: ignore[no-any-return]


def nan_to_num(
    x: Any, copy: bool = True, nan: float = 0.0, posinf: Any = None, neginf: Any = None
) -> Tensor:
    """NaN becomes `nan`, and ∞ and -∞ the largest and smallest number, or what is given for them.

    Where an element is replaced by a constant, it gets no gradient.

    >>> nan_to_num([np.nan, 1.0])
    array([0., 1.])
    """
    array = x.data if isinstance(x, Tensor) else np.asarray(x)
    put = np.nan_to_num(array, copy=True, nan=nan, posinf=posinf, neginf=neginf)
    return where(np.isfinite(array), x, put)


# ---------------------------------------------------------------- sums and products


def average(a: Any, axis: Any = None, weights: Any = None, *, keepdims: bool = False) -> Tensor:
    """The mean, or Σ w x / Σ w. Weights with one axis belong to the axis that is averaged.

    >>> average([1.0, 4.0], weights=[2.0, 1.0])
    array(2.)
    """
    if weights is None:
        return mean(a, axis=axis, keepdims=keepdims)
    shape = np.shape(a)
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
    return divide(sum(multiply(weights, a), axis=axis, keepdims=keepdims), total)


def median(a: Any, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    """The middle element, or the mean of the two middle ones. Only they get a gradient.

    >>> median([[3.0, 1.0, 10.0]], axis=1)
    array([3.])
    """
    shape = np.shape(a)
    x = ravel(a) if axis is None else moveaxis(a, axis, -1)
    n = np.shape(x)[-1]
    middle = getitem(sort(x), (..., slice((n - 1) // 2, n // 2 + 1)))
    y = mean(middle, axis=-1)
    if np.isnan(x).any():  # NaN is sorted to the end, and is not the middle: NumPy's answer is NaN
        y = where(np.isnan(x).any(axis=-1), np.nan, y)
    if not keepdims:
        return y
    return reshape(y, (1,) * len(shape)) if axis is None else expand_dims(y, axis)


def diff(a: Any, n: int = 1, axis: int = -1) -> Tensor:
    """Each element minus the one before it, n times over.

    >>> diff([1, 4, 9])
    array([3, 5])
    """
    if n < 0:
        raise ValueError(f"diff: n must be 0 or larger, got {n}")
    along = (slice(None),) * normalize_axis_index(axis, np.ndim(a))
    for _ in range(n):
        later, earlier = (*along, slice(1, None)), (*along, slice(None, -1))
        a = subtract(getitem(a, later), getitem(a, earlier))
    return a  # type: ignore[no-any-return]


def cumprod(a: Any, axis: int | None = None) -> Tensor:
    """yᵢ = x₀ · … · xᵢ along the axis; with axis=None along the flattened a.

    In log₂ n rounds, each element is multiplied by the product of the 1, 2, 4, … before it. There
    is no division, so an element that is 0 has the right gradient too.

    >>> cumprod([1, 2, 3])
    array([1, 2, 6])
    """
    x = ravel(a) if axis is None else moveaxis(a, axis, -1)
    n, step = np.shape(x)[-1], 1
    while step < n:
        head, tail = getitem(x, (..., slice(step))), getitem(x, (..., slice(step, None)))
        x = concatenate([head, multiply(tail, getitem(x, (..., slice(n - step))))], axis=-1)
        step *= 2
    return x if axis is None else moveaxis(x, -1, axis)


def inner(a: Any, b: Any) -> Tensor:
    """Sums over the last axes of both.

    >>> inner([1, 2], [3, 4])
    array(11)
    """
    if np.ndim(a) == 0 or np.ndim(b) == 0:
        return multiply(a, b)
    return tensordot(a, b, (-1, -1))


def vdot(a: Any, b: Any) -> Tensor:
    """The inner product of all elements.

    >>> vdot([[1, 2]], [[3], [4]])
    array(11)
    """
    return dot(ravel(a), ravel(b))


def vecdot(x1: Any, x2: Any, *, axis: int = -1) -> Tensor:
    """The inner products along an axis, with the others broadcast.

    >>> vecdot([[1, 2], [3, 4]], [1, 1])
    array([3, 7])
    """
    return sum(multiply(moveaxis(x1, axis, -1), moveaxis(x2, axis, -1)), axis=-1)


def kron(a: Any, b: Any) -> Tensor:
    """A block matrix: b times each element of a.

    >>> kron([1, 10], [1, 2])
    array([ 1,  2, 10, 20])
    """
    ndim = np.ndim(a) if np.ndim(a) > np.ndim(b) else np.ndim(b)
    shapes = [(1,) * (ndim - np.ndim(x)) + np.shape(x) for x in (a, b)]
    outer_axes = tuple(n for m in shapes[0] for n in (m, 1))
    inner_axes = tuple(n for m in shapes[1] for n in (1, m))
    blocks = multiply(reshape(a, outer_axes), reshape(b, inner_axes))
    return reshape(blocks, tuple(m * n for m, n in zip(*shapes, strict=True)))


def norm(x: Any, ord: Any = None, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """NumPy's `linalg.norm`: chapter 6.3's, and for vectors (Σ |xᵢ|ᵖ)^(1/p) of any order p.

    -∞ is the smallest |xᵢ|, and 0 counts the elements that are not 0. Over two axes, of matrices:
    "fro" is the root of all squares, 1 and -1 the largest and smallest sum of a column, ∞ and -∞ of
    a row. Those of the singular values (2, -2, "nuc") need a decomposition that is not here.

    >>> norm([1.0, -2.0, 2.0], 3).round(6)
    np.float64(2.571282)
    """
    ndim = np.ndim(x)
    axes = tuple(range(ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    if ord is None or (len(axes) == 2 and ord == "fro"):
        return functional_norm(x, None, axis, keepdims=keepdims)
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
        return functional_norm(x, ord, axis, keepdims=keepdims)
    if ord == -np.inf:
        return min(abs(x), axis=axis, keepdims=keepdims)
    x = floats(x)
    if ord == 0:
        return sum(abs(sign(x)), axis=axis, keepdims=keepdims)
    powers = sum(power(abs(x), ord), axis=axis, keepdims=keepdims)
    at_zero = np.equal(powers, 0)  # where the root's slope is infinite, and 0 is used
    return where(at_zero, 0, power(where(at_zero, 1, powers), 1 / ord))


def cross(a: Any, b: Any, *, axis: int = -1) -> Tensor:
    """The vector at right angles to two vectors of 3 elements, as long as the area they span.

    >>> cross([1, 0, 0], [0, 1, 0])
    array([0, 0, 1])
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

    >>> log10(100.0)
    array(2.)
    """
    return divide(log(x), math.log(10))


def exp2(x: Any) -> Tensor:
    """2ˣ.

    >>> exp2(3.0)
    array(8.)
    """
    return power(2.0, x)


def logaddexp2(x1: Any, x2: Any) -> Tensor:
    """log₂(2ᵃ + 2ᵇ).

    >>> logaddexp2(0.0, 0.0)
    array(1.)
    """
    ln2 = math.log(2)
    return divide(logaddexp(multiply(x1, ln2), multiply(x2, ln2)), ln2)


def deg2rad(x: Any) -> Tensor:
    """Degrees as an angle: x π/180.

    >>> deg2rad(180.0).round(6)
    np.float64(3.141593)
    """
    return multiply(x, math.pi / 180)


def rad2deg(x: Any) -> Tensor:
    """An angle in degrees: x 180/π.

    >>> rad2deg(np.pi)
    array(180.)
    """
    return multiply(x, 180 / math.pi)


def sinc(x: Any) -> Tensor:
    """sin(πx)/(πx), and 1 at 0.

    Near 0 the quotient has the right value, but its derivatives are differences of large numbers,
    and at 0 there are none. So the power series 1 - t²/3! + t⁴/5! - … is used there, t = πx.

    >>> sinc([0.0, 0.5]).round(5)
    array([1.     , 0.63662])
    """
    t = multiply(math.pi, x)
    near = np.less(np.abs(t), 0.5)
    small, far = multiply(where(near, t, 0), where(near, t, 0)), where(near, 1, t)
    series: Any = 0.0
    for k in range(8, -1, -1):  # the first term that is left out is below 1e-23
        series = add(multiply(series, small), (-1) ** k / math.factorial(2 * k + 1))
    return where(near, series, divide(sin(far), far))


def fmax(x1: Any, x2: Any) -> Tensor:
    """The larger of two numbers; where one of them is NaN, the other.

    >>> fmax([1.0, np.nan], 0.5)
    array([1. , 0.5])
    """
    return maximum(where(np.isnan(x1), x2, x1), where(np.isnan(x2), x1, x2))


def fmin(x1: Any, x2: Any) -> Tensor:
    """The smaller of two numbers; where one of them is NaN, the other.

    >>> fmin([1.0, np.nan], 0.5)
    array([0.5, 0.5])
    """
    return minimum(where(np.isnan(x1), x2, x1), where(np.isnan(x2), x1, x2))


# ---------------------------------------------------------------- which word is which

__all__ = [
    "append",
    "array_split",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "average",
    "column_stack",
    "cross",
    "cumprod",
    "deg2rad",
    "diag",
    "diff",
    "dsplit",
    "dstack",
    "exp2",
    "fliplr",
    "flipud",
    "fmax",
    "fmin",
    "full_like",
    "hsplit",
    "hstack",
    "inner",
    "kron",
    "log10",
    "logaddexp2",
    "median",
    "meshgrid",
    "nan_to_num",
    "norm",
    "rad2deg",
    "rot90",
    "select",
    "sinc",
    "unstack",
    "vdot",
    "vecdot",
    "vsplit",
    "vstack",
]

LINALG = ("cholesky", "det", "inv", "slogdet", "solve")
MORE: dict[Any, Any] = {
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
    np.linalg.matmul: lambda x1, x2, /: matmul(x1, x2),
    np.linalg.matrix_transpose: lambda x, /: swapaxes(x, -1, -2),
    np.linalg.outer: lambda x1, x2, /: outer(x1, x2),
    np.linalg.tensordot: lambda x1, x2, /, *, axes=2: tensordot(x1, x2, axes),
    np.linalg.trace: lambda x, /, *, offset=0: trace(x, offset, -2, -1),
    np.linalg.vecdot: lambda x1, x2, /, *, axis=-1: vecdot(x1, x2, axis=axis),
    np.linalg.vector_norm: lambda x, /, *, axis=None, keepdims=False, ord=2: norm(
        x, ord, axis, keepdims=keepdims
    ),
}
