"""Exercise 9 · The check: shapes, the gradient of a broadcast, and every shape that stretches."""

import inspect
from itertools import product

import numpy as np

from demos.learn._telling import Unsolved, asking, given, law, right_derivatives, same, shaped
from minigrad import primitive

HINTS = (
    "Write both shapes below each other, from the right, as NumPy does: (2, 3, 5) and (3, 1). "
    "Along which axes of g are there copies of one element?",
    "An element moves all its copies, so its gradient is the sum of theirs. Sum over the axes that "
    "are new, in front; then over those whose length was 1, and keep these with the length 1.",
    "`g.ndim - len(shape)` axes are new: `g.sum(axis=(0, 1, …))` without `keepdims`. Then "
    "`g.sum(axis=…, keepdims=True)` over all axes where shape has another length than g has now.",
)


def stretched_to(wide, unbroadcast):
    """Return the rule of np.broadcast_to, with the learner's function as its VJP."""

    @primitive
    def stretch(x, /):
        return np.broadcast_to(x, wide), lambda g, y: unbroadcast(g, x.shape)

    return stretch


def shrunk(words, unbroadcast, g, shape):
    """Return unbroadcast(g, shape); raise Unsolved if it asks NumPy to stretch g."""
    try:
        with asking(words):
            return unbroadcast(g, shape)
    except ValueError:
        if "broadcast_to" not in inspect.unwrap(unbroadcast).__code__.co_names:
            raise
        said = f"{words}: np.broadcast_to stretches an array, and here g has to become smaller"
        raise Unsolved(said, "value") from None


def check(answer):
    """Check new axes, stretched axes, both; then all shapes that broadcast to (2, 3, 5)."""
    unbroadcast = given(answer, "unbroadcast")
    rng = np.random.default_rng(0)
    for wide, shape in (
        ((3, 5), (5,)),
        ((3, 5), (3, 1)),
        ((3, 5), (1, 5)),
        ((2, 3, 5), (3, 1)),
        ((3, 5), (3, 5)),
        ((3, 5), ()),
    ):
        g = rng.standard_normal(wide)
        words = f"unbroadcast(g, {shape}) for g of shape {wide}"
        shaped(words, shrunk(words, unbroadcast, g, shape), shape)
        asked = f"{words}, as the VJP of stretch, which copies the shape {shape} to {wide}"
        stretch = stretched_to(wide, unbroadcast)
        right_derivatives(stretch, rng.standard_normal(shape), order=1, asked=asked)
    for shape in [shape[i:] for shape in product((1, 2), (1, 3), (1, 5)) for i in range(4)]:
        g, x = rng.standard_normal((2, 3, 5)), rng.standard_normal(shape)
        words = f"unbroadcast(g, {shape}) for g of shape (2, 3, 5)"
        shaped(words, unbroadcast(g, shape), shape)
        found = (x * unbroadcast(g, shape)).sum()
        law(
            "Σ g ⊙ (b, stretched) is Σ unbroadcast(g) ⊙ b",
            np.isclose(found, (x * g).sum()),
            f"for g of shape (2, 3, 5) and b of shape {shape} these are {(x * g).sum():.6g} and "
            f"{found:.6g}",
        )
    g = rng.standard_normal((7, 2, 3, 5))
    for shape, axes in (((3, 1), (0, 1, 3)), ((7, 1, 3, 5), 1), ((2, 1, 5), (0, 2))):
        ours = g.sum(axis=axes).reshape(shape)
        asked = f"unbroadcast(g, {shape}) for g of shape (7, 2, 3, 5)"
        same(asked, unbroadcast(g, shape), ours)
    g = np.ones((1, 3, 1))
    same("unbroadcast(g, (3, 1)) for g = np.ones((1, 3, 1))", unbroadcast(g, (3, 1)), g[0])
