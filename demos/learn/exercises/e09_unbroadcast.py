"""Exercise 9 · Un-broadcast: back to the shape that was stretched.

In x + b NumPy stretches b to the shape of x: it puts new axes in front, and
copies b along them, and along axes where the length of b is 1. Each copy
gets a gradient of its own, and g holds these gradients. What is the gradient
of b? The engine computes this after every VJP, so that no rule has to. Write
it for an array g and the shape that was stretched.

    g        an array, for example (2, 3, 5)
    shape    a shape that broadcasts to that of g: (5,) or (3, 1) or ()
    unbroadcast(g, shape) → an array of this shape

Chapter 2.1, minigrad/engine/replay.py.
"""

import numpy as np


def unbroadcast(g, shape):
    """The gradient of what had this shape, before it was stretched."""
    # Your lines begin.
    new = g.ndim - len(shape)
    g = g.sum(axis=tuple(range(new)))
    stretched = [axis for axis, n in enumerate(shape) if n != g.shape[axis]]
    return g.sum(axis=tuple(stretched), keepdims=True)
    # Your lines end.
