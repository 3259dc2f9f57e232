"""6.6 · Joining and cutting: NumPy's words for what `concatenate` and `getitem` do already.

What if a program says `np.vstack`, or `np.rot90`? The functions of this chapter and of chapter 6.7
have NumPy's names, arguments and results, and are found by these names: `np.hstack([t, t])` records
what `hstack` below does. None of them is worth a lesson, so they are not among minigrad's own
names.

Reference: no demo uses what follows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from minigrad.engine.tensor import Tensor, as_operand, describe, refuse_masked
from minigrad.functional.arranging import diagonal, expand_dims, flip, moveaxis, ravel, split
from minigrad.ops import (
    broadcast_to,
    concatenate,
    getitem,
    maximum,
    minimum,
    reshape,
    scatter_add,
    swapaxes,
    where,
)

# ---------------------------------------------------------------- joining


def atleast_1d(*arrays: Any) -> Any:
    """Each with at least one axis.   () → (1,)

    >>> np.atleast_1d(Tensor(2.0))
    Tensor([2.])
    """
    return _each(lambda x: reshape(x, (1,)) if np.ndim(x) == 0 else x, arrays)


def atleast_2d(*arrays: Any) -> Any:
    """Each with at least two axes; a vector becomes a row.   (n,) → (1, n)

    >>> np.atleast_2d(Tensor([1, 2])).shape
    (1, 2)
    """
    return _each(_at_least_2d, arrays)


def atleast_3d(*arrays: Any) -> Any:
    """Each with at least three axes; a vector of n becomes (1, n, 1), a matrix gets a last axis.

    >>> np.atleast_3d(Tensor([1, 2])).shape
    (1, 2, 1)
    """
    return _each(lambda x: expand_dims(_at_least_2d(x), 2) if np.ndim(x) < 3 else x, arrays)


def _at_least_2d(x: Any) -> Any:
    return reshape(x, (1, -1)) if np.ndim(x) < 2 else x


def _each(f: Any, arrays: Sequence[Any]) -> Any:
    """One result for one array, a tuple for several, and arrays where lists were."""
    found = tuple(f(as_operand(x, "minigrad")) for x in arrays)
    return found[0] if len(found) == 1 else found


def vstack(tup: Sequence[Any]) -> Tensor:
    """Joined along the first axis; vectors are rows.   (n,), (n,) → (2, n)

    >>> np.vstack([Tensor([1, 2]), [3, 4]])
    Tensor([[1, 2],
            [3, 4]])
    """
    return concatenate([_at_least_2d(x) for x in tup])


def hstack(tup: Sequence[Any]) -> Tensor:
    """Joined along the second axis; vectors along the one they have.   (n,), (m,) → (n + m,)

    >>> np.hstack([Tensor([1, 2]), [3]])
    Tensor([1, 2, 3])
    """
    arrays = [atleast_1d(x) for x in tup]
    return concatenate(arrays, axis=0 if arrays and np.ndim(arrays[0]) == 1 else 1)


def dstack(tup: Sequence[Any]) -> Tensor:
    """Joined along the third axis.   (n, m), (n, m) → (n, m, 2)

    >>> np.dstack([Tensor([1, 2]), [3, 4]]).shape
    (1, 2, 2)
    """
    return concatenate([atleast_3d(x) for x in tup], axis=2)


def column_stack(tup: Sequence[Any]) -> Tensor:
    """Joined along the second axis; vectors are columns.   (n,), (n,) → (n, 2)

    >>> np.column_stack([Tensor([1, 2]), [3, 4]])
    Tensor([[1, 3],
            [2, 4]])
    """
    return concatenate([reshape(x, (-1, 1)) if np.ndim(x) < 2 else x for x in tup], axis=1)


def append(arr: Any, values: Any, axis: int | None = None) -> Tensor:
    """The values behind arr along the axis; without an axis, both flattened.   → (n + m,)

    >>> np.append(Tensor([1, 2]), [[3], [4]])
    Tensor([1, 2, 3, 4])
    """
    if axis is None:
        return concatenate([ravel(arr), ravel(values)])
    return concatenate([arr, values], axis)


# ---------------------------------------------------------------- cutting and turning


def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    """As `split`, into parts that need not be equal: the first ones are one longer.

    >>> np.array_split(Tensor([1, 2, 3]), 2)
    [Tensor([1, 2]), Tensor([3])]
    """
    refuse_masked(indices_or_sections, "array_split")
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

    >>> np.hsplit(Tensor([1, 2]), 2)
    [Tensor([1]), Tensor([2])]
    """
    return _equal_parts(ary, indices_or_sections, 1 if np.ndim(ary) > 1 else 0, 1, "hsplit")


def vsplit(ary: Any, indices_or_sections: Any) -> list[Tensor]:
    """Equal parts along the first axis of two or more.

    >>> np.vsplit(Tensor([[1], [2]]), 2)
    [Tensor([[1]]), Tensor([[2]])]
    """
    return _equal_parts(ary, indices_or_sections, 0, 2, "vsplit")


def dsplit(ary: Any, indices_or_sections: Any) -> list[Tensor]:
    """Equal parts along the third axis.

    >>> np.dsplit(Tensor([[[1, 2]]]), 2)
    [Tensor([[[1]]]), Tensor([[[2]]])]
    """
    return _equal_parts(ary, indices_or_sections, 2, 3, "dsplit")


def _equal_parts(x: Any, places: Any, axis: int, ndim: int, asked: str) -> list[Tensor]:
    if np.ndim(x) < ndim:
        raise ValueError(f"{asked} needs at least {ndim} axes: got {describe(x)}")
    return split(x, places, axis)


def unstack(x: Any, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The parts along an axis, without that axis.   (n, …) → n times (…)

    >>> from minigrad.functional.pieces import unstack   # np.unstack(t), from NumPy 2.1 on
    >>> unstack(Tensor([[1, 2], [3, 4]]))
    (Tensor([1, 2]), Tensor([3, 4]))
    """
    x = moveaxis(x, axis, 0)
    return tuple(getitem(x, i) for i in range(np.shape(x)[0]))


def flipud(m: Any) -> Tensor:
    """Backwards along the first axis.   (n, …) → (n, …)

    >>> np.flipud(Tensor([[1], [2]]))
    Tensor([[2],
            [1]])
    """
    return flip(m, 0)


def fliplr(m: Any) -> Tensor:
    """Backwards along the second axis.   (n, m, …) → (n, m, …)

    >>> np.fliplr(Tensor([[1, 2]]))
    Tensor([[2, 1]])
    """
    return flip(m, 1)


def rot90(m: Any, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Tensor:
    """Turned by k · 90°, from the first of the two axes towards the second.   (n, m) → (m, n)

    >>> np.rot90(Tensor([[1, 2], [3, 4]]))
    Tensor([[2, 4],
            [1, 3]])
    """
    first, second = (normalize_axis_index(i, np.ndim(m)) for i in axes)
    if first == second:
        raise ValueError(f"rot90 of {describe(m)}: the two axes are one axis")
    for _ in range(k % 4):
        m = flip(swapaxes(m, first, second), first)
    return as_operand(m, "rot90")  # type: ignore[no-any-return]


def full_like(a: Any, fill_value: Any) -> Tensor:
    """fill_value, broadcast to a's shape, in a's dtype. A plain array if it is not a Tensor.

    >>> np.full_like(Tensor([1.0, 2.0]), Tensor(7.0))
    Tensor([7., 7.])
    """
    refuse_masked(fill_value, "full_like")
    like = a if isinstance(a, Tensor) else np.asarray(a)
    if not isinstance(fill_value, Tensor):
        return np.full(like.shape, fill_value, like.dtype)  # type: ignore[return-value]
    y = broadcast_to(fill_value, like.shape)
    return y if y.dtype == like.dtype else y.astype(like.dtype)


def diag(v: Any, k: int = 0) -> Tensor:
    """The k-th diagonal of a matrix, or a matrix with that diagonal.   (n, n) → (n,) → (n, n)

    >>> np.diag(Tensor([1, 2]))
    Tensor([[1, 0],
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
    """Each vector along its own axis, the same on all others.   (n,), (m,) → (m, n), (m, n)

    >>> [grid.shape for grid in np.meshgrid(Tensor([1, 2]), [3, 4, 5])]
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


# ---------------------------------------------------------------- choosing


def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Tensor:
    """At each place the first choice whose condition holds, else the default.

    >>> np.select([[True, False]], [Tensor([1, 2])], 7)
    Tensor([1, 7])
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

    >>> np.nan_to_num(Tensor([np.nan, 1.0]))
    Tensor([0., 1.])
    """
    array = x.data if isinstance(x, Tensor) else np.asarray(x)
    put = np.nan_to_num(array, copy=True, nan=nan, posinf=posinf, neginf=neginf)
    return where(np.isfinite(array), x, put)


def fmax(x1: Any, x2: Any) -> Tensor:
    """The larger of two numbers; where one of them is NaN, the other.

    >>> np.fmax(Tensor([1.0, np.nan]), 0.5)
    Tensor([1. , 0.5])
    """
    return maximum(where(np.isnan(x1), x2, x1), where(np.isnan(x2), x1, x2))


def fmin(x1: Any, x2: Any) -> Tensor:
    """The smaller of two numbers; where one of them is NaN, the other.

    >>> np.fmin(Tensor([1.0, np.nan]), 0.5)
    Tensor([0.5, 0.5])
    """
    return minimum(where(np.isnan(x1), x2, x1), where(np.isnan(x2), x1, x2))


__all__ = [
    "append",
    "array_split",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "column_stack",
    "diag",
    "dsplit",
    "dstack",
    "fliplr",
    "flipud",
    "fmax",
    "fmin",
    "full_like",
    "hsplit",
    "hstack",
    "meshgrid",
    "nan_to_num",
    "rot90",
    "select",
    "unstack",
    "vsplit",
    "vstack",
]
