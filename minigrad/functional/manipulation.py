"""Manipulation: the same elements at other places, composed.

What must be known of `flip`, `roll`, `tile` or `sort` to differentiate them? Only which input
element each output element is a copy of. Each function here is an indexing, a reshape, a broadcast
or a concatenation, whose gradients chapters 3.2 and 3.3 derive: an element's gradient is the sum of
its copies' gradients. Constants that are put in between (the zeros of `pad`) need no gradient.

`axis` is as in NumPy: negative ones count from the end.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from minigrad.engine.hints import in_our_words
from minigrad.engine.tensor import Tensor, describe
from minigrad.ops import (
    add,
    broadcast_to,
    concatenate,
    getitem,
    reshape,
    scatter_add,
    transpose,
    where,
)


def _shape(x: Any) -> tuple[int, ...]:
    """Return np.shape(x); of a Tensor its attribute, which is faster than NumPy's protocol."""
    return x.shape if isinstance(x, Tensor | np.ndarray) else np.shape(x)


def _along(axis: int, ndim: int, index: Any) -> tuple[Any, ...]:
    """Return an index that picks along one axis and leaves the others whole."""
    return (slice(None),) * normalize_axis_index(axis, ndim) + (index,)


def ravel(x: Any) -> Tensor:
    """Return all elements along one axis, in their order.

    >>> ravel([[1, 2], [3, 4]])
    array([1, 2, 3, 4])
    """
    return reshape(x, -1)


def moveaxis(x: Any, source: Any, destination: Any) -> Tensor:
    """Move axis `source` to `destination`; the others keep their order.

    >>> moveaxis(np.ones((2, 3, 5)), 0, -1).shape
    (3, 5, 2)
    """
    ndim = len(_shape(x))
    sources = normalize_axis_tuple(source, ndim, "source")
    destinations = normalize_axis_tuple(destination, ndim, "destination")
    axes = [i for i in range(ndim) if i not in sources]
    for place, axis in sorted(zip(destinations, sources, strict=True)):
        axes.insert(place, axis)
    return transpose(x, tuple(axes))


@in_our_words
def expand_dims(x: Any, axis: int | tuple[int, ...]) -> Tensor:
    """Insert a new axis of length 1, which is axis `axis` of the result; of a tuple, several.

    >>> expand_dims([1, 2], 0).shape
    (1, 2)
    """
    shape = list(_shape(x))
    new = len(axis) if isinstance(axis, tuple | list) else 1
    for place in sorted(normalize_axis_tuple(axis, len(shape) + new)):
        shape.insert(place, 1)
    return reshape(x, tuple(shape))


@in_our_words
def squeeze(x: Any, axis: int | tuple[int, ...] | None = None) -> Tensor:
    """Return x without its axes of length 1, or without those that `axis` names.

    >>> squeeze([[[1, 2]]]).shape, squeeze([[[1, 2]]], axis=0).shape
    ((2,), (1, 2))
    """
    shape = _shape(x)
    if axis is None:
        return reshape(x, tuple(n for n in shape if n != 1))
    places = normalize_axis_tuple(axis, len(shape))
    for place in places:
        if shape[place] != 1:
            raise ValueError(f"squeeze of {describe(x)}: axis {place} has length {shape[place]}")
    return reshape(x, tuple(n for i, n in enumerate(shape) if i not in places))


@in_our_words
def flip(x: Any, axis: int | tuple[int, ...] | None = None) -> Tensor:
    """Reverse the order of the elements along the axis, or along all axes.

    >>> flip([1, 2, 3])
    array([3, 2, 1])
    """
    ndim = len(_shape(x))
    axes = normalize_axis_tuple(range(ndim) if axis is None else axis, ndim)
    return getitem(x, tuple(slice(None, None, -1 if i in axes else None) for i in range(ndim)))


@in_our_words
def roll(x: Any, shift: Any, axis: Any = None) -> Tensor:
    """Move all elements on by `shift` places; those that leave at the end enter at the front.

    >>> roll([1, 2, 3, 4], 1)
    array([4, 1, 2, 3])
    """
    shape = _shape(x)
    if axis is None:
        return reshape(roll(ravel(x), shift, 0), shape)
    for by, along in np.broadcast(shift, axis):
        n = shape[normalize_axis_index(int(along), len(shape))]
        cut = (n - operator.index(by)) % n if n else 0
        ends = [_along(int(along), len(shape), s) for s in (slice(cut, None), slice(None, cut))]
        x = concatenate([getitem(x, end) for end in ends], int(along))
    return x  # type: ignore[no-any-return]


@in_our_words
def take(x: Any, indices: Any, axis: int | None = None) -> Tensor:
    """Return the elements at the indices along the axis; without an axis, of the flattened x.

    >>> take([10, 20, 30], [2, 0, 2])
    array([30, 10, 30])
    """
    if np.asarray(indices).dtype.kind == "b":
        raise TypeError("take needs integers, but got booleans: x[mask] picks by a mask")
    if axis is None:
        return getitem(ravel(x), np.asarray(indices))
    return getitem(x, _along(axis, len(_shape(x)), indices))


@in_our_words
def take_along_axis(x: Any, indices: Any, axis: int = -1) -> Tensor:
    """Take from each line of x along the axis the elements that its own line of indices names.

    >>> take_along_axis([[10, 20, 30], [40, 50, 60]], [[2, 2], [0, 1]])
    array([[30, 30],
           [40, 50]])
    """
    places = np.asarray(indices)
    ndim = len(_shape(x))
    if places.ndim != ndim:
        raise ValueError(
            f"take_along_axis needs indices with as many axes as x: x has shape {_shape(x)}, the "
            f"indices {places.shape}"
        )
    along = normalize_axis_index(axis, ndim)
    index = list(np.ix_(*map(np.arange, _shape(x))))
    index[along] = places
    return getitem(x, tuple(index))


@in_our_words
def sort(x: Any, axis: int | None = -1) -> Tensor:
    """Sort x in rising order along the axis. Equal elements, and their gradients, keep their order.

    >>> sort([3, 1, 2])
    array([1, 2, 3])
    """
    if axis is None:
        return sort(ravel(x))
    return take_along_axis(x, np.argsort(x, axis=axis, kind="stable"), axis)


@in_our_words
def repeat(x: Any, repeats: Any, axis: int | None = None) -> Tensor:
    """Repeat each element `repeats` times in a row along the axis; without an axis, flattened.

    >>> repeat([1, 2], 2)
    array([1, 1, 2, 2])
    """
    x = ravel(x) if axis is None else x
    along = normalize_axis_index(0 if axis is None else axis, len(_shape(x)))
    return take(x, np.repeat(np.arange(_shape(x)[along]), repeats), along)


def tile(x: Any, reps: Any) -> Tensor:
    """Repeat the whole of x `reps` times, side by side along each axis.

    Each axis gets a new axis in front of it, x is broadcast along the new axes, and each pair of
    axes is merged into one.

    >>> tile([1, 2], 2)
    array([1, 2, 1, 2])
    """
    counts = tuple(map(operator.index, reps if np.ndim(reps) else (reps,)))
    ndim = max(len(counts), len(_shape(x)))
    counts = (1,) * (ndim - len(counts)) + counts
    shape = (1,) * (ndim - len(_shape(x))) + _shape(x)
    apart = reshape(x, tuple(n for length in shape for n in (1, length)))
    copies = broadcast_to(apart, tuple(n for pair in zip(counts, shape, strict=True) for n in pair))
    return reshape(copies, tuple(c * n for c, n in zip(counts, shape, strict=True)))


def pad(x: Any, pad_width: Any, mode: str = "constant", *, constant_values: Any = 0) -> Tensor:
    """Put `constant_values` on each side of each axis: `pad_width` is ((before, after), …).

    >>> pad([1, 2, 3], (0, 2)), pad([1, 2, 3], 1, constant_values=7)
    (array([1, 2, 3, 0, 0]), array([7, 1, 2, 3, 7]))
    """
    if mode != "constant":
        raise ValueError(
            f"pad has the mode 'constant', not {mode!r}: np.concatenate puts copies there"
        )
    shape = _shape(x)
    widths = np.broadcast_to(pad_width, (len(shape), 2)).tolist()
    inside = tuple(slice(a, a + n) for (a, _), n in zip(widths, shape, strict=True))
    margin = np.pad(np.zeros(shape), widths, constant_values=constant_values)
    y = scatter_add(x, margin.shape, inside)
    return add(y, margin.astype(y.dtype)) if margin.any() else y


@in_our_words
def stack(arrays: Sequence[Any], axis: int = 0) -> Tensor:
    """Join tensors of one shape along a new axis.

    >>> stack([[1, 2], [3, 4]], axis=1)
    array([[1, 3],
           [2, 4]])
    """
    arrays = list(arrays)
    shapes = {_shape(x) for x in arrays}
    if len(shapes) != 1:
        asked = " and ".join(describe(x) for x in arrays) or "nothing"
        raise ValueError(f"stack joins tensors of one shape, but got {asked}")
    return concatenate([expand_dims(x, axis) for x in arrays], axis)


@in_our_words
def split(x: Any, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    """Cut x along the axis: into equal parts, or at the given places.

    >>> split([1, 2, 3, 4], 2), split([1, 2, 3, 4], [1])
    ([array([1, 2]), array([3, 4])], [array([1]), array([2, 3, 4])])
    """
    n = _shape(x)[normalize_axis_index(axis, len(_shape(x)))]
    if isinstance(indices_or_sections, int | np.integer):
        parts = int(indices_or_sections)
        if parts < 1 or n % parts:
            raise ValueError(
                f"split of {describe(x)}: {n} places along axis {axis} do not make "
                f"{parts} equal parts"
            )
        cuts = [i * (n // parts) for i in range(1, parts)]
    else:
        cuts = [operator.index(place) for place in indices_or_sections]
    ends = zip([0, *cuts], [*cuts, None], strict=True)
    return [getitem(x, _along(axis, len(_shape(x)), slice(a, b))) for a, b in ends]


def diagonal(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """Return the elements whose indices on the two axes differ by `offset`, on a new last axis.

    >>> diagonal([[1, 2, 3], [4, 5, 6]], 1)
    array([2, 6])
    """
    y = moveaxis(x, (axis1, axis2), (-2, -1))
    rows, columns = np.shape(y)[-2:]
    first = np.array([max(-offset, 0), max(offset, 0)])
    n = np.clip([rows, columns] - first, 0, None).min()
    return getitem(y, (..., first[0] + np.arange(n), first[1] + np.arange(n)))


def tril(x: Any, k: int = 0) -> Tensor:
    """Keep the lower triangle of each matrix, up to its k-th diagonal; zeros above.

    >>> tril([[1, 2], [3, 4]])
    array([[1, 0],
           [3, 4]])
    """
    return where(np.tril(np.ones(_shape(x)[-2:], bool), k), x, 0)


def triu(x: Any, k: int = 0) -> Tensor:
    """Keep the upper triangle of each matrix, from its k-th diagonal on; zeros below.

    >>> triu([[1, 2], [3, 4]])
    array([[1, 2],
           [0, 4]])
    """
    return where(np.triu(np.ones(_shape(x)[-2:], bool), k), x, 0)
