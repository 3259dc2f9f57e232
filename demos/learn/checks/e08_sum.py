"""Exercise 8 · The check: all, one axis, axes that are kept; then tuples and negative axes."""

from functools import partial

import numpy as np

from demos.learn._telling import given, law, right_derivatives, same
from minigrad import grad

HINTS = (
    "Each element of x moves its sum by as much as it moves itself: the slope is 1. So which "
    "element of g does it get, for `axis=0`, and which for `axis=1`?",
    "g goes back to every element that was added up. First give g the shape that y has with "
    "`keepdims=True`: then NumPy can stretch it to the shape of x.",
    "`x.sum(axis=axis, keepdims=True).shape` is the shape that g needs, for every axis. Then: "
    "`np.broadcast_to(g.reshape(this shape), x.shape)`.",
)


def asked(options):
    """Return the call as a learner would type it."""
    return ", ".join(["sum(x", *(f"{name}={value}" for name, value in options.items())]) + ")"


def check(answer):
    """Check the axes that people use first; then those that are easily forgotten."""
    sum = given(answer, "sum")
    rng = np.random.default_rng(0)
    x = rng.standard_normal((3, 5))
    kept = {"keepdims": True}
    for options in ({}, {"axis": 0}, {"axis": 1}, {"axis": 1} | kept, kept, {"axis": -1}):
        words = f"{asked(options)} for x of shape {x.shape}"
        laws = partial(alike, sum, x, options)
        right_derivatives(sum, x, value=x.sum(**options), asked=words, laws=laws, **options)
    x = rng.standard_normal((2, 3, 5, 7))
    for axis in ((1, 2), (0, -1), -2, (-3, 0, 3), ()):
        for keepdims in (False, True):
            alike(sum, x, {"axis": axis, "keepdims": keepdims})


def alike(sum, x, options):
    """Check that all elements of a group that is added up have the gradient g."""
    y = x.sum(**options)
    words = f"{asked(options)} for x of shape {x.shape}"
    same(words, sum(x, **options), y)
    g = np.random.default_rng(1).standard_normal(y.shape)
    to_x = grad(lambda x: (g * sum(x, **options)).sum())(x)
    kept = x.sum(axis=options.get("axis"), keepdims=True).shape
    law(
        "all elements that are added up for one result get the same gradient, that of the result",
        np.allclose(to_x, g.reshape(kept)),
        f"in {words} they do not",
    )
