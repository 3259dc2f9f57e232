"""Exercise 7 · A rule: the exponential function.

From here on you write rules, as chapter 1.3 does. A rule returns its value
y, and then for each input a VJP: a function of g = ∂L/∂y and of y, which
returns the gradient of this input. (In exercises 2 to 4 it took g alone. From
now on it takes both, even if it needs only one.) `@primitive` makes an
operation of the rule. Write the rule of y = exp(x), element by element. Use
NumPy's functions and operators. They work on Tensors too, and for second
derivatives your rule is called again, with Tensors.

    x    an array of any shape
    g    an array of the shape of y
    exp(x) → y, a function (g, y) ↦ ∂L/∂x

Chapter 1.3, minigrad/engine/rules.py, and
chapter 3.1, minigrad/ops/elementwise.py.
"""

import numpy as np

from minigrad import primitive


@primitive
def exp(x, /):
    """y = exp(x), element by element."""
    # Your lines begin.
    return np.exp(x), lambda g, y: g * y
    # Your lines end.
