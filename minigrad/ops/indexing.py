"""3.3 · Indexing: picking and putting back.

Where does the gradient of x[2] go? To place 2 of x, and zeros everywhere else. The
Jacobian of picking is again a matrix of zeros and ones (chapter 3.2), and its transpose *puts
back*: `getitem` and `scatter_add` are each other's VJP. `where` and `concatenate` pick as well:
`where` from two tensors by a mask, `concatenate` from many tensors by position.

Exercise 11 of `python -m demos learn`: write the rule of x[index].
"""

from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from minigrad.engine.hints import in_our_words
from minigrad.engine.rules import primitive
from minigrad.engine.tensor import Array, Tensor
from minigrad.ops.shape import broadcast_to, reshape


def getitem(x: Any, index: Any) -> Tensor:
    """y = x[index], with any index NumPy knows: integers, slices, masks, arrays of integers.

    An element may be picked several times (x[[2, 2]]). It then has several copies, and
    receives the sum of their gradients (chapter 3.2):

        ∂L/∂x = scatter_add(g, x.shape, index)

    >>> getitem([10, 20, 30], [2, 2, 0])
    array([30, 30, 10])
    """
    return _getitem(x, index=_own(index))


@primitive(name="getitem")
def _getitem(x, /, index):
    shape = x.shape
    return x[index], lambda g, y: _scatter_add(g, shape, index)


def scatter_add(x: Any, shape: tuple[int, ...], index: Any) -> Tensor:
    """Zeros of the given shape, with x added at [index]: getitem's transpose.

    Added, not assigned: `y[index] = x` would keep only the last of several values for one
    place, and lose the gradient of the others. y is linear in x, and each xᵢ lands in one
    place, so the VJP picks g up from there:

        ∂L/∂x = g[index]

    x has a value for each place of y[index], or is broadcast to have one.

    >>> scatter_add([1.0, 2.0, 4.0], (3,), [2, 2, 0])
    array([4., 0., 3.])
    """
    index = _own(index)
    places = np.broadcast_to(0, shape)[index].shape
    x = x if np.shape(x) == places else broadcast_to(x, places)
    return _scatter_add(x, shape, index)


@primitive(name="scatter_add")
def _scatter_add(x, /, shape, index):
    def value():
        y = np.zeros(shape, x.dtype)
        parts = index if isinstance(index, tuple) else (index,)
        if y.ndim > 1 and type(index) is np.ndarray and index.dtype.kind != "b" and index.size:
            _add_rows(y, index, x)
        elif any(isinstance(part, np.ndarray) and part.dtype.kind != "b" for part in parts):
            # Arrays of integers can name a place twice, to which += would add only once.
            np.add.at(y, index, x)
        else:
            y[index] += x
        return y

    return value, lambda g, y: g[index]


def _add_rows(y, index, x):
    """Do `np.add.at(y, index, x)` for one array of integers, several times faster for long rows.

    Sorted by their places, the rows of each place lie together, and `reduceat` sums them.
    """
    # (The last row may be called -1. An index of int8 or uint8 cannot hold every length.)
    places = index.ravel().astype(np.intp) % len(y)
    order = np.argsort(places, kind="stable")
    places = places[order]
    first = np.flatnonzero(np.diff(places, prepend=-1))
    rows = x.reshape(index.size, *y.shape[1:])[order]
    y[places[first]] = np.add.reduceat(rows, first, axis=0)


def _own(index):
    """Return the index with copies of its arrays, since the record needs them as they are now."""
    return tuple(map(_copied, index)) if isinstance(index, tuple) else _copied(index)


def _copied(part):
    """Return a sequence as an array, also a tuple in x[:, (0, 0)], and anything else as it is."""
    if not hasattr(part, "__len__"):
        return part
    array = np.array(part)
    return array if array.size or hasattr(part, "dtype") else array.astype(int)  # x[[]]


def integers_below(indices: Any, n: int, asked: str) -> Array:
    """Return indices of n places as an array of integers; TypeError or ValueError for others.

    Negative ones are refused: the token or class -1 is a mistake, and NumPy would take the last.
    """
    places = np.asarray(indices)
    if places.dtype.kind not in "iu" and places.size:
        raise TypeError(
            f"{asked}: integers were asked for, but the dtype is {places.dtype}; if the values are "
            "whole numbers, use .astype(int)"
        )
    if places.size and not 0 <= places.min() <= places.max() < n:
        wrong = places.min() if places.min() < 0 else places.max()
        raise ValueError(f"{asked}: {wrong} is not between 0 and {n - 1}")
    return places.astype(int, copy=False)


@primitive
def where(condition, a, b, /):
    """y = a where the condition holds, b elsewhere.

    Each output element is a copy of one of the two, and the other has no influence on it:

        ∂L/∂a = g where the condition holds, else 0        ∂L/∂b the reverse

    The condition itself has no derivative: y jumps when it flips.

    >>> where([True, False], [1.0, 2.0], 0.0)
    array([1., 0.])

    In `np.where(x > 0, np.log(x), 0)` the logarithm at x = 0 is not chosen and gets g = 0. Its rule
    nevertheless computes g/x = 0/0, which is NaN. So give it a safe input as well:

    >>> from minigrad import grad
    >>> f = lambda x: np.where(x > 0, np.log(np.where(x > 0, x, 1)), 0).sum()
    >>> grad(f)(np.array([0.0, 2.0]))
    array([0. , 0.5])
    """
    return (
        np.where(condition, a, b),
        None,
        lambda g, y: np.where(condition, g, 0),
        lambda g, y: np.where(condition, 0, g),
    )


@in_our_words
def concatenate(arrays: Any, axis: int | None = 0) -> Tensor:
    """Join tensors along an axis they already have; with axis=None all their elements.

    Input k fills one stretch of the output along the axis, by copying. Its gradient is that
    stretch of g:

        ∂L/∂xₖ = g[start of k : end of k] along the axis

    >>> concatenate([[1.0, 2.0], [3.0]])
    array([1., 2., 3.])
    """
    if axis is None:
        return _concatenate(*[reshape(x, -1) for x in arrays])
    return _concatenate(*arrays, axis=axis)


@primitive(name="concatenate")
def _concatenate(*xs, axis=0):
    y = np.concatenate(xs, axis=axis)
    ends = [0, *accumulate([x.shape[axis] for x in xs])]
    before = (slice(None),) * (axis % y.ndim)
    return y, *[
        lambda g, y, stretch=slice(start, end): g[(*before, stretch)]
        for start, end in pairwise(ends)
    ]
