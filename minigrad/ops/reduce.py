"""3.4 · Reductions: many to one.

In chapter 0: `y = e / e.sum(axis=-1, keepdims=True)`.

If many inputs make one output, how is one gradient shared among them? By each input's own
influence on the output. In a sum every element has influence 1, so each receives the whole g:
the VJP of a sum is a copy, as the VJP of a copy is a sum (chapter 3.2). In a mean each has
1/n. In a maximum one element has all the influence.

`axis` is None (all axes), an integer or a tuple; `keepdims=True` leaves the reduced axes in
place with length 1, as in NumPy. A VJP first restores those axes with length 1, so that g
broadcasts against x. `kept_shape` computes the shape that g then has: for x of shape (2, 3, 5)
and `axis=-1` it is (2, 3, 1).

Exercise 8 of `python -m demos learn`: write the rule of a sum, for every axis.
"""

from typing import Any

import numpy as np

from minigrad.engine.rules import primitive


@primitive
def sum(x, /, axis=None, *, keepdims=False):
    """y = Σᵢ xᵢ over the axis.

        ∂y/∂xᵢ = 1        ∂L/∂xᵢ = g

    Every element of a summed group receives the same g: the VJP broadcasts g over the group
    (as a view: no memory is filled).

    >>> import minigrad
    >>> minigrad.sum([[1, 2], [3, 4]], axis=0)
    array([4, 6])
    """
    shape = x.shape
    return (
        x.sum(axis=axis, keepdims=keepdims),
        lambda g, y: np.broadcast_to(g.reshape(kept_shape(shape, axis)), shape),
    )


@primitive
def mean(x, /, axis=None, *, keepdims=False):
    """y = 1/n · Σᵢ xᵢ over the axis, where n elements share one mean.

        ∂y/∂xᵢ = 1/n        ∂L/∂xᵢ = g/n

    A mean of losses over n examples divides the gradient of each loss by n. So the gradient of a
    parameter, which is a sum over all examples, does not grow with their number.

    >>> mean([[1.0, 2.0], [3.0, 4.0]], axis=0)
    array([2., 3.])
    """
    shape, size = x.shape, x.size

    def vjp(g, y):
        share = y.size / (size or 1)  # 1/n, because x has n times as many elements as y
        return np.broadcast_to((g * share).reshape(kept_shape(shape, axis)), shape)

    return x.mean(axis=axis, keepdims=keepdims), vjp


# ---------------------------------------------------- A first reading may stop here.
# What follows: `kept_shape`, and extrema, whose ties share the gradient.


def kept_shape(shape: tuple[int, ...], axis: Any) -> tuple[int, ...]:
    """Return the shape with its reduced axes at length 1, as keepdims=True would leave it.

    >>> from minigrad.ops.reduce import kept_shape
    >>> kept_shape((2, 3, 5), -1), kept_shape((2, 3, 5), (0, 1)), kept_shape((2, 3, 5), None)
    ((2, 3, 1), (1, 1, 5), (1, 1, 1))
    """
    if axis is None or not shape:  # NumPy lets a 0-d array be reduced over axis -1, to itself
        return (1,) * len(shape)
    reduced = {i % len(shape) for i in (axis if isinstance(axis, tuple) else (axis,))}
    return tuple(1 if i in reduced else n for i, n in enumerate(shape))


@primitive
def max(x, /, axis=None, *, keepdims=False):
    """y = the largest xᵢ over the axis.

    Only the largest element moves y, so it alone receives g. If k elements tie, each receives
    g/k: these then still sum to g, and equal inputs are treated equally.

        ∂L/∂xᵢ = g/k  if xᵢ = y, else 0

    >>> import minigrad
    >>> minigrad.max([[1, 5], [3, 4]], axis=1)
    array([5, 4])
    """
    return x.max(axis=axis, keepdims=keepdims), _shared_by_ties(x, axis)


@primitive
def min(x, /, axis=None, *, keepdims=False):
    """y = the smallest xᵢ over the axis. It receives g, or those that tie share it, as in max."""
    return x.min(axis=axis, keepdims=keepdims), _shared_by_ties(x, axis)


def _shared_by_ties(x, axis):
    """Return the VJP of max and of min: g for the element that is y, divided among all that tie."""

    def vjp(g, y):
        shape = kept_shape(x.shape, axis)
        chosen = (x == y.reshape(shape)) | (x != x)  # a NaN is NumPy's extremum, equal to nothing
        ties = chosen.sum(axis=axis, keepdims=True, dtype=x.dtype)
        return np.where(chosen, g.reshape(shape) / ties, 0)

    return vjp


@primitive
def cumsum(x, /, axis=None):
    """yᵢ = x₀ + … + xᵢ along the axis; with axis=None along the flattened x.

    xⱼ is part of every yᵢ from i = j on, ∂yᵢ/∂xⱼ = [i ≥ j] (1 if i ≥ j, else 0), so it gathers
    the gradients from its own place to the end:

        ∂L/∂xⱼ = Σᵢ gᵢ [i ≥ j]

    That is a cumulative sum from the other end: flip, sum up, flip back.

    >>> cumsum([1, 2, 4])
    array([1, 3, 7])
    """
    shape = x.shape

    def vjp(g, y):
        along = 0 if axis is None else axis
        backwards = (slice(None),) * (along % y.ndim) + (slice(None, None, -1),)
        return np.cumsum(g[backwards], axis=along)[backwards].reshape(shape)

    return x.cumsum(axis=axis), vjp
