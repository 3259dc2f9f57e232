"""Exercise 7 · The check: values, derivatives, and that all derivatives are the function itself."""

import math

import numpy as np

from demos.learn._telling import given, law, right_derivatives, same
from minigrad import grad

HINTS = (
    "Return two things: a value, and one function of g and y. The function is called later, when g "
    "is known.",
    "Move one element of x by a small ε: only the same element of y moves, by ε times the slope. "
    "So the VJP is g times the slope, element by element. What is the slope of exp?",
    "The slope of exp is exp, and that is y, which the VJP is given: `lambda g, y: g * …`",
)


def check(answer):
    """Check that exp is its own derivative, of every order."""
    exp = given(answer, "exp")
    x = np.random.default_rng(0).standard_normal((3, 5))
    same("exp(x) for x of shape (3, 5)", exp(x), np.exp(x))
    far = np.array([-20.0, 20.0])
    same("exp(x) for x = [-20, 20]", exp(far), np.exp(far))
    right_derivatives(exp, x, asked="exp(x) for x of shape (3, 5)")
    third = grad(grad(grad(exp)))(1.0)
    law(
        "every derivative of exp is exp",
        bool(np.isclose(third, math.e)),
        f"the third one at x = 1 is {third:.6g}, and exp(1) is {math.e:.6g}",
    )
    slope, seen = grad(exp)(-800.0), "at x = -800 the gradient is"
    law("far to the left exp is 0, and so is its slope", slope == 0, f"{seen} {slope:.6g}")
