"""Exercise 2 · The check: one array."""

import numpy as np

from demos.learn._telling import given, same

HINTS = ("Try it with one number, 3.", "From 3 to 3.1 the square grows by .61.", "Twice x.")


def check(answer):
    """Check three numbers."""
    gradient = given(answer, "gradient")
    same("gradient of [1, -2, 0]", gradient(np.array([1.0, -2.0, 0.0])), np.array([2.0, -4.0, 0]))
