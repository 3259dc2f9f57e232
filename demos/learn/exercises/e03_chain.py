"""Exercise 3 · A chain: one step after the other, and back.

Run x through several rules, one after the other. A rule takes an array and
returns its value, and a function that takes the gradient of this value and
returns the gradient of the rule's input. Then go the way back: begin with g,
the gradient of the last value, and end with the gradient of x. Two rules to
play with are below.

    x        an array
    rules    a list of functions: array → (value, function)
    g        an array of the shape of the last value
    chain(x, rules, g) → the last value, the gradient of x

Chapter 0, minigrad/idea.py, and chapter 2.1, minigrad/engine/replay.py.
"""

import numpy as np


def sine(x):
    """y = sin(x), whose slope is cos(x)."""
    return np.sin(x), lambda g: g * np.cos(x)


def total(x):
    """y = Σ x: every element of x moves y by as much as it moves itself."""
    return x.sum(), lambda g: g * np.ones_like(x)


def chain(x, rules, g):
    """The last value, and the gradient of x, if g is that of the value."""
    # Your lines begin.
    functions = []
    for rule in rules:
        x, function = rule(x)
        functions.append(function)
    for function in reversed(functions):
        g = function(g)
    return x, g
    # Your lines end.
