"""Exercise 12 · The check: value, gradient, and the derivative of the gradient."""

import numpy as np

from demos.learn._telling import given, right_derivatives, same

HINTS = (
    "Which names does the VJP use, and what are they when x is a Tensor: Tensors or arrays? An "
    "array has no record, so to the engine it is a constant.",
    "The slope of the length is x / y, and it turns when x turns. So the VJP has to compute it "
    "from the x that the rule was given, and from the y that the VJP is given.",
    "No line needs `x.data`: NumPy's functions and operators work on Tensors. Then the VJP is "
    "`lambda g, y: g * x / y`.",
)


def check(answer):
    """Check the length of (3, 4), which is 5; then the derivatives, first order before second."""
    length = given(answer, "length")
    x = np.random.default_rng(0).standard_normal((3, 5))
    same("length([[3.0, 4.0]])", length(np.array([[3.0, 4.0]])), [[5.0]])
    same("length(x) for x of shape (3, 5)", length(x), np.linalg.norm(x, axis=1)[:, None])
    stack = np.arange(1.0, 31.0).reshape(2, 3, 5)
    lengths = np.linalg.norm(stack, axis=-1)[..., None]
    same("length(x) for x of shape (2, 3, 5)", length(stack), lengths)
    right_derivatives(length, x, asked="length(x) for x of shape (3, 5)")
