"""Exercise 11 · The check: a way there and back, and an index that repeats."""

import numpy as np

from demos.learn._telling import given, law, right_derivatives, same
from minigrad import grad

CHAPTER = "3.3"
HINTS = (
    "In reshape, each element has one copy, at the same place in the order of all elements. So g "
    "has to go back to these places: what shape does it need?",
    "In pick, begin with zeros of the shape of x: what was not picked gets 0. What was picked gets "
    "the gradients of all its copies. What does NumPy do in z[[2, 2]] += 1 with z = np.zeros(3)?",
    "NumPy writes there once. np.add.at(z, [2, 2], 1) adds for each entry of the index in turn. "
    "(For reshape: g.reshape(x.shape).)",
)


def check(answer):
    """First reshape; then pick by what takes a place once, and by lists that repeat one."""
    rng = np.random.default_rng(0)
    _reshape(given(answer, "reshape"), rng)
    pick = given(answer, "pick")
    x = rng.standard_normal((4, 3))
    mask = np.array([True, False, True, True])
    for words, index in (
        ("2", 2),
        ("slice(1, 3)", slice(1, 3)),
        ("(1, 2)", (1, 2)),
        ("[3, 0]", [3, 0]),
        ("[True, False, True, True]", mask),
        ("[3, 0, 3, 3]", [3, 0, 3, 3]),
        ("([0, 0], [1, 1])", ([0, 0], [1, 1])),
    ):
        asked = f"pick(x, {words}) for x of shape {x.shape}"
        same(asked, pick(x, index), x[index])
        right_derivatives(lambda x, index=index: pick(x, index), x, order=1, asked=asked)
    wide = rng.standard_normal((5, 2, 3))
    asked = "pick(x, [4, 0]) for x of shape (5, 2, 3)"
    same(asked, pick(wide, [4, 0]), wide[[4, 0]])
    right_derivatives(lambda x: pick(x, [4, 0]), wide, order=1, asked=asked)
    index = [[-1, 3, 0], [0, 0, 2]]
    got = grad(lambda x: pick(x, index).sum())(x)[:, 0]
    law(
        "the gradient of a sum of picked elements is how often each was picked",
        np.array_equal(got, [3, 0, 1, 2]),
        f"for 4 rows and the index {index} it is {', '.join(f'{n:g}' for n in got)}, and they were "
        "picked 3, 0, 1 and 2 times (-1 is the last row)",
    )


def _reshape(reshape, rng):
    x = rng.standard_normal((3, 5))
    for shape in ((5, 3), (15,), (1, 5, 3)):
        asked = f"reshape(x, {shape}) for x of shape {x.shape}"
        same(asked, reshape(x, shape), x.reshape(shape))
        right_derivatives(lambda x, shape=shape: reshape(x, shape), x, asked=asked)
    x = rng.standard_normal((2, 3, 5))
    same("reshape(x, -1) for x of shape (2, 3, 5)", reshape(x, -1), x.ravel())
    got = grad(lambda t: (reshape(t, (-1, 2)) * reshape(t, (-1, 2))).sum())(x)
    law(
        "the gradient of Σ x² is 2 x, in whatever order the elements are looked at",
        got.shape == x.shape and np.allclose(got, 2 * x),
        "for x of shape (2, 3, 5), reshaped to (-1, 2), it is another one",
    )
