"""NumPy's words: stacking, sums and products that NumPy programs use, composed.

What if a program says `np.vstack` or `np.median`? The functions below have NumPy's names, arguments
and results, and are found by these names: `np.hstack([t, t])` records what `hstack` below does.
They are not among minigrad's own names. What is in no table is refused by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from minigrad.engine.tensor import Tensor, describe
from minigrad.functional.manipulation import expand_dims, moveaxis, ravel, sort
from minigrad.ops import (
    broadcast_to,
    concatenate,
    divide,
    getitem,
    mean,
    multiply,
    reshape,
    subtract,
    sum,
    where,
)
from minigrad.ops.elementwise import floats

# ---------------------------------------------------------------- joining and cutting


def atleast_1d(x: Any) -> Tensor:
    """Return x with at least one axis.   () → (1,)"""
    return x if np.ndim(x) else reshape(x, (1,))


def atleast_2d(x: Any) -> Tensor:
    """Return x with at least two axes; a vector becomes a row.   (n,) → (1, n)"""
    return x if np.ndim(x) > 1 else reshape(x, (1, -1))


def vstack(tup: Sequence[Any]) -> Tensor:
    """Join arrays along the first axis; vectors are rows.   (n,), (n,) → (2, n)

    >>> np.vstack([Tensor([1, 2]), [3, 4]])
    Tensor([[1, 2],
            [3, 4]])
    """
    return concatenate([atleast_2d(x) for x in tup])


def hstack(tup: Sequence[Any]) -> Tensor:
    """Join arrays along the second axis, vectors along their own.   (n,), (m,) → (n + m,)"""
    arrays = [atleast_1d(x) for x in tup]
    return concatenate(arrays, axis=0 if arrays and np.ndim(arrays[0]) == 1 else 1)


def full_like(a: Any, fill_value: Any) -> Any:
    """Broadcast fill_value to a's shape, in a's dtype; a plain array unless fill_value is a Tensor.

    >>> np.full_like(Tensor([1.0, 2.0]), Tensor(7.0)), np.full_like(Tensor([1.0, 2.0]), 7)
    (Tensor([7., 7.]), array([7., 7.]))
    """
    if not isinstance(fill_value, Tensor):
        return np.full(np.shape(a), fill_value, a.dtype)
    y = broadcast_to(fill_value, np.shape(a))
    return y if y.dtype == a.dtype else y.astype(a.dtype)


def nan_to_num(x: Any, *, nan: float = 0.0, posinf: Any = None, neginf: Any = None) -> Tensor:
    """Replace NaN by `nan`, ±∞ by the largest numbers or the given ones, without a gradient."""
    array = x.data if isinstance(x, Tensor) else np.asarray(x)
    put = np.nan_to_num(array, nan=nan, posinf=posinf, neginf=neginf)
    return where(np.isfinite(array), x, put)


# ---------------------------------------------------------------- sums and products


def average(a: Any, axis: Any = None, weights: Any = None, *, keepdims: bool = False) -> Tensor:
    """Return the mean, or Σ w x / Σ w. Weights with one axis belong to the averaged axis."""
    if weights is None:
        return mean(a, axis=axis, keepdims=keepdims)
    a, weights = floats(a), floats(weights)
    shape = np.shape(a)
    if np.shape(weights) != shape:
        if axis is None or np.ndim(axis) or np.shape(weights) != (shape[axis],):
            raise ValueError(
                f"average of {describe(a)} takes weights of its shape, or with an axis one for "
                f"each place along it: got {np.shape(weights)} with axis={axis}"
            )
        ones = [1] * len(shape)
        ones[axis] = -1
        weights = broadcast_to(reshape(weights, tuple(ones)), shape)
    total = sum(weights, axis=axis, keepdims=keepdims)
    return divide(sum(multiply(weights, a), axis=axis, keepdims=keepdims), total)


def median(a: Any, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    """Return the middle element, or the mean of the two middle ones. Only they get a gradient."""
    x = sort(ravel(a) if axis is None else moveaxis(a, axis, -1))
    n = np.shape(x)[-1]
    if n == 0:
        raise ValueError(f"median of {describe(a)} over 0 elements: there is nothing in the middle")
    y = mean(getitem(x, (..., slice((n - 1) // 2, n // 2 + 1))), axis=-1)
    # A NaN is sorted to the end, where it would not be found in the middle.
    y = where(np.isnan(getitem(x, (..., -1))), np.nan, y)
    if not keepdims:
        return y
    return reshape(y, (1,) * np.ndim(a)) if axis is None else expand_dims(y, axis)


def diff(a: Any, n: int = 1, axis: int = -1) -> Tensor:
    """Subtract from each element the one before it, n times.   (…, m) → (…, m - n)"""
    along = (slice(None),) * normalize_axis_index(axis, np.ndim(a))
    for _ in range(n):
        a = subtract(getitem(a, (*along, slice(1, None))), getitem(a, (*along, slice(None, -1))))
    return a  # type: ignore[no-any-return]


def kron(a: Any, b: Any) -> Tensor:
    """Return a block matrix: b times each element of a.   (n, m), (p, q) → (n p, m q)

    >>> np.kron(Tensor([1, 10]), [1, 2])
    Tensor([ 1,  2, 10, 20])
    """
    ndim = max(np.ndim(a), np.ndim(b))
    shapes = [(1,) * (ndim - np.ndim(x)) + np.shape(x) for x in (a, b)]
    outer_axes = tuple(n for m in shapes[0] for n in (m, 1))
    inner_axes = tuple(n for m in shapes[1] for n in (1, m))
    blocks = multiply(reshape(a, outer_axes), reshape(b, inner_axes))
    return reshape(blocks, tuple(m * n for m, n in zip(*shapes, strict=True)))


def cross(a: Any, b: Any, *, axis: int = -1) -> Tensor:
    """Return a vector at right angles to both, as long as their area. (…, 3), (…, 3) → (…, 3)"""
    x, y = moveaxis(a, axis, -1), moveaxis(b, axis, -1)
    if np.shape(x)[-1] != 3 or np.shape(y)[-1] != 3:
        raise ValueError(f"cross takes vectors of 3: got {describe(a)} and {describe(b)}")
    left, right = (..., [1, 2, 0]), (..., [2, 0, 1])
    turned = subtract(
        multiply(getitem(x, left), getitem(y, right)),
        multiply(getitem(x, right), getitem(y, left)),
    )
    return moveaxis(turned, -1, axis)
