"""Exercise 8 · A sum: one gradient for all that was added up.

Write the rule of y = Σ x. What is added up is said as in NumPy: by `axis`,
which is None (everything), an integer, which may be negative, or a tuple of
them; and `keepdims=True` keeps these axes with the length 1. The value is one
call of x.sum. In the VJP, g has the shape of y, and ∂L/∂x has to have that of
x. Find out where each element of g belongs, before you copy it there.

    x                  an array, for example (3, 5)
    g                  the shape of y: for axis=1 it is (3,), or with
                       keepdims=True (3, 1)
    sum(x, axis, keepdims=…) → y, a function (g, y) ↦ ∂L/∂x

Chapter 3.4, minigrad/ops/reduce.py.
"""

import numpy as np

from minigrad import primitive


@primitive
def sum(x, /, axis=None, *, keepdims=False):
    """y = Σ x over the axis, or over several."""
    # Your lines begin.
    kept = x.sum(axis=axis, keepdims=True).shape
    return (
        x.sum(axis=axis, keepdims=keepdims),
        lambda g, y: np.broadcast_to(g.reshape(kept), x.shape),
    )
    # Your lines end.
