"""Exercise 2 · The check: the value, and both gradients against finite differences."""

import numpy as np

from demos.learn._telling import Unsolved, given, right_derivatives, same
from minigrad import primitive

CHAPTER = "0"
HINTS = (
    "Move one element of a by a small ε and leave b. By how much does the same element of y move?",
    "y moves by b · ε, and L moves by g for each unit of y: the chain rule multiplies both.",
    "Three results: a * b, then two functions of g. The one of a is lambda g: g * b; the one of b "
    "has the other factor.",
)


def check(answer):
    """Run the learner's product as a rule, with a random gradient of its value."""
    product = given(answer, "product")
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 3, 5))
    results = product(a, b)
    if not isinstance(results, tuple) or len(results) != 3 or not all(map(callable, results[1:])):
        raise Unsolved("product(a, b) returns three results: y, and two functions of g", "value")
    same("the value of product(a, b)", results[0], a * b)

    @primitive(name="product")
    def rule(a, b, /):
        y, to_a, to_b = product(a, b)
        return y, lambda g, y: to_a(g), lambda g, y: to_b(g)

    right_derivatives(rule, a, b, order=1)
