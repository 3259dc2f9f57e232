"""Exercise 11 · The check: a way there and back, and an index that repeats."""

from functools import partial

import numpy as np

from demos.learn._telling import given, law, place, right_derivatives, same
from minigrad import grad

HINTS = (
    "In reshape, each element has one copy, at the same place in the order of all elements. So g "
    "has to go back to these places: what shape does it need?",
    "In pick, begin with zeros of the shape of x: what was not picked gets 0. What was picked gets "
    "the gradients of all its copies. What does NumPy do in `z[[2, 2]] += 1` with `z = "
    "np.zeros(3)`?",
    "NumPy writes there once. `np.add.at(z, [2, 2], 1)` adds for each entry of the index in turn. "
    "(For reshape: `g.reshape(x.shape)`.)",
)


def check(answer):
    """Check reshape; then pick, by what takes a place once, and by lists that repeat one."""
    rng = np.random.default_rng(0)
    _reshape(given(answer, "reshape"), rng)
    pick = given(answer, "pick")
    x = rng.standard_normal((4, 3))
    mask = [True, False, True, True]
    for words in (2, slice(1, 3), (1, 2), [3, 0], mask, [3, 0, 3, 3], ([0, 0], [1, 1])):
        index = np.array(mask) if words is mask else words
        asked = f"pick(x, {words}) for x of shape {x.shape}"
        laws = partial(counted, pick, x, index, asked)
        picked = lambda x, index=index: pick(x, index)
        right_derivatives(picked, x, value=x[index], order=1, asked=asked, laws=laws)
    wide = rng.standard_normal((5, 2, 3))
    asked = "pick(x, [4, 0]) for x of shape (5, 2, 3)"
    right_derivatives(lambda x: pick(x, [4, 0]), wide, value=wide[[4, 0]], order=1, asked=asked)
    index = [[-1, 3, 0], [0, 0, 2]]
    counted(pick, x, index, f"pick(x, {index}), where -1 is the last of 4 rows,")


def counted(pick, x, index, asked):
    """Raise Unsolved unless each element's gradient in a sum is how often it was picked."""
    times = np.zeros(x.shape)
    np.add.at(times, index, 1.0)
    got = grad(lambda x: pick(x, index).sum())(x)
    worst = np.unravel_index(np.abs(got - times).argmax(), x.shape)
    law(
        "the gradient of a sum of picked elements is how often each was picked",
        np.array_equal(got, times),
        f"in {asked} element {place(worst)} is picked {times[worst]:.0f} times, and its "
        f"gradient is {got[worst]:g}",
    )


def _reshape(reshape, rng):
    x = rng.standard_normal((3, 5))
    for shape in ((5, 3), (15,), (1, 5, 3)):
        asked = f"reshape(x, {shape}) for x of shape {x.shape}"
        laws = partial(doubled, reshape, x, shape)
        reshaped = lambda x, shape=shape: reshape(x, shape)
        right_derivatives(reshaped, x, value=x.reshape(shape), asked=asked, laws=laws)
    x = rng.standard_normal((2, 3, 5))
    same("reshape(x, -1) for x of shape (2, 3, 5)", reshape(x, -1), x.ravel())
    doubled(reshape, x, (-1, 2))


def doubled(reshape, x, shape):
    """Raise Unsolved unless the gradient of Σ x², of which x is reshaped, is 2 x."""
    got = grad(lambda t: (reshape(t, shape) * reshape(t, shape)).sum())(x)
    law(
        "the gradient of Σ x² is 2 x, in whatever order the elements are looked at",
        got.shape == x.shape and np.allclose(got, 2 * x),
        f"for x of shape {x.shape}, reshaped to {shape}, it is another one",
    )
