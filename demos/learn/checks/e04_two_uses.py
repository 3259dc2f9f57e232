"""Exercise 4 · The check: the gradient, and which of the two uses it leaves out."""

import numpy as np

from demos.learn._telling import given, law, same

CHAPTER = "2.1"
HINTS = (
    "Draw it: two arrows leave x. One goes to the product, the other to the sine and then to the "
    "product.",
    "If x moves, y moves for two reasons, and the two movements add up. So do the gradients that "
    "come back along the two arrows.",
    "Along the first arrow comes to_factor(g). Along the second comes to_x(to_sine(g)).",
)


def check(answer):
    """Say which use is missing, if the gradient is that of one use alone."""
    twice = given(answer, "twice")
    rng = np.random.default_rng(0)
    x, g = rng.standard_normal((2, 3, 5))
    results = twice(x, g)
    same("the value of twice(x, g)", results[0], x * np.sin(x))
    factor, inside = g * np.sin(x), g * x * np.cos(x)
    parts = {
        "what comes back through the product alone": factor,
        "what comes back through the sine alone": inside,
        "the product of what comes back along the two ways": factor * inside,
        "the mean of what comes back along the two ways": (factor + inside) / 2,
        "the same for every g": (factor + inside) / g,
    }
    for words, part in parts.items():
        equal = np.shape(results[1]) == part.shape and np.allclose(results[1], part)
        law(
            "if x is used twice, its gradient is the sum of what both uses contribute",
            not equal,
            f"this gradient is {words}",
        )
    same("the gradient of twice(x, g)", results[1], factor + inside)
