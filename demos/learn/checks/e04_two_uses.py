"""Exercise 4 · The check: the gradient, and which of the two uses it leaves out."""

import numpy as np

from demos.learn._telling import given, law, results, same, shaped

HINTS = (
    "Draw it: two arrows leave x. One goes to the product, the other to the sine and then to the "
    "product.",
    "If x moves, y moves for two reasons, and the two movements add up. So do the gradients that "
    "come back along the two arrows.",
    "Along the first arrow comes `to_factor(g)`. Along the second comes `to_x(to_sine(g))`.",
)


def check(answer):
    """Say which use is missing, if the gradient is that of one use alone."""
    twice = given(answer, "twice")
    rng = np.random.default_rng(0)
    x, g = rng.standard_normal((2, 3, 5))
    x[0, 0] = g[1, 1] = 0.0  # where a division would show
    y, gradient = results("twice(x, g)", twice(x, g), 2)
    same("result 0 of twice(x, g)", y, x * np.sin(x))
    shaped("result 1 of twice(x, g)", gradient, x.shape)
    factor, inside, at_sine = g * np.sin(x), g * x * np.cos(x), g * x
    mistakes = {
        "to_factor(g) is a gradient of x, to_sine(g) is one of sin(x), and to_x(…) goes from a "
        "gradient of sin(x) to one of x": {
            "to_factor(g) + to_sine(g)": factor + at_sine,
            "to_sine(g)": at_sine,
            "to_x(to_factor(g)) + to_x(to_sine(g))": factor * np.cos(x) + inside,
            "to_x(to_factor(g)) + to_sine(g)": factor * np.cos(x) + at_sine,
            "to_x(g)": g * np.cos(x),
            "to_factor(g) + to_x(g)": factor + g * np.cos(x),
        },
        "if g is twice as large, so is every gradient that comes from it": {
            "the same for every g": np.sin(x) + x * np.cos(x)
        },
        "if x is used twice, its gradient is the sum of what both uses contribute": {
            "what comes back through the product alone": factor,
            "what comes back through the sine alone": inside,
            "the product of what comes back along the two ways": factor * inside,
            "the mean of what comes back along the two ways": (factor + inside) / 2,
        },
    }
    for sentence, parts in mistakes.items():
        for words, part in parts.items():
            law(sentence, not np.allclose(gradient, part), f"this gradient is {words}")
    same("result 1 of twice(x, g)", gradient, factor + inside)
