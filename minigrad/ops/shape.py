"""3.2 · Shape operations: moving and copying.

In chapter 0: `return a.T, lambda g: g.T`.

What does a derivative mean for an operation that computes nothing? Each output element is a
copy of one input element, so the Jacobian is a matrix of zeros and ones. If output i is a copy
of input s(i), then ∂yᵢ/∂xⱼ = 1 where j = s(i), and 0 elsewhere. The VJP multiplies by its
transpose, that is, it sums over the outputs:

    ∂L/∂xⱼ = Σᵢ gᵢ [j = s(i)]

In words: an input element receives the gradients of all its copies. Where each element has one
copy (reshape, transpose), the VJP moves that copy's gradient back to the element. Where an element
has several copies (broadcast_to), their gradients are summed.

Exercise 11 of `python -m demos learn`: write the rule of reshape, and that of chapter 3.3.
"""

import numpy as np

from minigrad.engine.options import check_floating
from minigrad.engine.rules import primitive


@primitive
def reshape(x, /, shape):
    """The same elements in the same order, under new axes.

    yᵢ = xᵢ in flat order, so the Jacobian is the identity, and the VJP gives g the old axes:

        ∂L/∂x = reshape(g, x.shape)

    One axis may be -1: it becomes whatever is left.

    >>> reshape([[1, 2, 3], [4, 5, 6]], (3, 2))
    array([[1, 2],
           [3, 4],
           [5, 6]])
    """
    old = x.shape
    return x.reshape(shape), lambda g, y: g.reshape(old)


@primitive
def transpose(x, /, axes=None):
    """Axis i of the result is axis axes[i] of x; by default all axes reversed.

    The Jacobian is a permutation, and the transpose of a permutation is its inverse. Axis axes[i]
    of x stands at place i of y; argsort turns that list round, and undoes the move:

        ∂L/∂x = transpose(g, argsort(axes))

    >>> transpose([[1, 2, 3]]).shape
    (3, 1)
    """
    axes = (axes,) if isinstance(axes, int) else axes
    y = x.transpose(axes)
    # argsort, for axes that may be negative
    back = None if axes is None else sorted(range(x.ndim), key=lambda i: axes[i] % x.ndim)
    return y, lambda g, y: g.transpose(back)


@primitive
def swapaxes(x, /, axis1, axis2):
    """Exchange two axes. The exchange undoes itself: ∂L/∂x = swapaxes(g, axis1, axis2)."""
    return x.swapaxes(axis1, axis2), lambda g, y: g.swapaxes(axis1, axis2)


@primitive
def broadcast_to(x, /, shape):
    """Copy x along new or length-1 axes until it has `shape` (as a view: no memory is copied).

    Each element of x is copied, so it receives the sum of its copies' gradients. The engine
    computes that sum for every operation that broadcasts (chapter 2.1), so the rule returns g
    as it is.

    >>> broadcast_to([1, 2], (3, 2)).sum(axis=0)
    array([3, 6])
    """
    return np.broadcast_to(x, shape), lambda g, y: g


@primitive
def astype(x, /, dtype):
    """The same numbers in another floating dtype: a copy, so ∂L/∂x = g.

    The engine gives every gradient its input's dtype, so g comes back rounded to x's.

    >>> astype([1.0], np.float32).dtype
    dtype('float32')
    """
    if np.dtype(dtype).kind != "f":
        raise ValueError(f"{np.dtype(dtype)} is not a floating dtype: use t.data.astype(...)")
    check_floating(np.dtype(dtype), "astype")
    return x.astype(dtype), lambda g, y: g


def broadcasts_to(own: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Return whether `own` and `shape` broadcast to `shape`, so that only `own` is stretched."""
    try:
        return np.broadcast_shapes(own, shape) == shape
    except ValueError:
        return False
