"""Exercise 12 · Double backward: a rule that can be differentiated twice.

The length of a vector is y = √Σ x². The rule below gets its gradient right,
and every training with it works. But the derivative of that gradient is
wrong. For a second derivative the engine calls the rule once more, now with a
Tensor x, and records what the VJP computes with Tensors. Find out what it
computes with arrays, and change the rule so that its second derivative is
right, too.

    x    vectors, as rows: an array (…, d), and a Tensor the second time
    y    their lengths: (…, 1)
    length(x) → y, and its VJP: g = ∂L/∂y and y ↦ ∂L/∂x

Chapter 1.3, minigrad/engine/rules.py.
"""

import numpy as np

import minigrad


@minigrad.primitive
def length(x, /):
    """y = √Σ x² of each row, and its slope ∂y/∂x = x / y."""
    # Your lines begin.
    value = np.sqrt((x * x).sum(axis=-1, keepdims=True))
    return value, lambda g, y: g * x / y
    # The learner gets:
    #     array = x.data if isinstance(x, minigrad.Tensor) else x
    #     value = np.sqrt((array * array).sum(axis=-1, keepdims=True))
    #     slope = array / value
    #     return value, lambda g, y: g * slope
    # Your lines end.
