"""Exercise 2 · The check: the value, and both gradients against finite differences."""

import inspect

import numpy as np

from demos.learn._telling import Unsolved, given, results, right_derivatives, same
from minigrad import primitive

HINTS = (
    "Move one element of *a* by a small ε and leave b. By how much does the same element of y "
    "move?",
    "y moves by b · ε, and L moves by g for each unit of y: the chain rule multiplies both.",
    "Three results: `a * b`, then two functions of g. The one of *a* is `lambda g: g * b`; the one "
    "of b has the other factor.",
)


def check(answer):
    """Run the learner's product as a rule, with a random gradient of its value."""
    product = given(answer, "product")
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 3, 5))
    y, *functions = results("product(a, b)", product(a, b), 3)
    for i, function in enumerate(functions, 1):
        alone(f"result {i} of product(a, b)", function)
    same("result 0 of product(a, b)", y, a * b)

    @primitive(name="product")
    def rule(a, b, /):
        y, to_a, to_b = product(a, b)
        return y, lambda g, y: to_a(g), lambda g, y: to_b(g)

    right_derivatives(rule, a, b, order=1, asked="product(a, b) for a and b of shape (3, 5)")


def alone(asked, function):
    """Raise Unsolved unless this is a function of g alone."""
    if not callable(function):
        said = f"{asked} is of type {type(function).__name__}; a function of g was expected"
        raise Unsolved(said, "value")
    try:
        inspect.signature(function).bind(0)
    except TypeError:
        said = f"{asked} takes {inspect.signature(function)}; in this exercise a VJP takes g alone"
        raise Unsolved(said, "value") from None
