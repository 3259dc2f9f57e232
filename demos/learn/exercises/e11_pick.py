"""Exercise 11 · Reshape and pick: nothing is computed, only moved.

Write two rules. `reshape` gives the elements of x, in the same order, other
axes. `pick` is y = x[index], with all that NumPy takes as an index. In both,
each element of y is a copy of one element of x. An element of x can
have several copies, and all of them move when it moves. (Only the first
derivative of `pick` is checked. So g is an array in its VJP, and you may
write to arrays of your own there, which a Tensor does not allow.)

    x, g    arrays: g has the shape of y
    reshape(x, shape) → y, a function (g, y) ↦ ∂L/∂x
    pick(x, index) → y, a function (g, y) ↦ ∂L/∂x

Chapter 3.2, minigrad/ops/shape.py, and chapter 3.3, minigrad/ops/indexing.py.
"""

import numpy as np

from minigrad import primitive


@primitive
def reshape(x, /, shape):
    """The same elements in the same order, under other axes."""
    # Your lines begin.
    return x.reshape(shape), lambda g, y: g.reshape(x.shape)
    # Your lines end.


@primitive
def pick(x, /, index):
    """y = x[index]."""

    def vjp(g, y):
        # Your lines begin.
        gradient = np.zeros(x.shape)
        np.add.at(gradient, index, g)
        # The learner gets:
        #     gradient = ...
        # Your lines end.
        return gradient

    return x[index], vjp
