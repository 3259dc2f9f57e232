"""Demos · Museum: repeated index without scatter-add.

This mistake is made in embeddings written by hand. `grad[tokens] += g` reads like a sum. But NumPy
reads all rows, adds, and then writes, so only the last of several gradients for one row remains. A
token that occurs more than once in a text, such as "the", gets too small a gradient. A text without
repetition gets the right one.
"""

import numpy as np

from minigrad import Tensor, gradcheck, gradients, primitive

REPAIR = (
    "Use np.add.at, which adds for each index in turn. (In this project x[tokens] uses "
    "`scatter_add`.) Check a look-up with an index that repeats."
)


@primitive
def broken(table, /, tokens):  # (V, d) → (T, d)
    """The rows of a table that belong to the tokens."""

    def vjp(g, y):
        grad = np.zeros(table.shape)
        grad[tokens] += g
        return grad

    return table[tokens], vjp


@primitive
def repaired(table, /, tokens):  # (V, d) → (T, d)
    """The rows of a table that belong to the tokens."""

    def vjp(g, y):
        grad = np.zeros(table.shape)
        np.add.at(grad, tokens, g)
        return grad

    return table[tokens], vjp


def symptom(lookup, rng):
    """The derivative of the sum, for a token's row, is how often the token occurs in the text."""
    table = Tensor(rng.standard_normal((4, 2)), requires_grad=True)
    (g,) = gradients(lookup(table, [3, 1, 3, 3]).sum(), [table])
    distinct = gradcheck(lambda t: lookup(t, [3, 1, 0]), table, order=1)
    return {
        "how often the tokens 0 1 2 3 occur": "0 1 0 3",
        "derivatives with respect to their rows": " ".join(f"{row[0]:.0f}" for row in g),
        "gradcheck without a repetition": "passes" if distinct else "fails",
    }


def check(lookup, rng):
    """Run `gradcheck` at an index that repeats."""
    table = rng.standard_normal((4, 2))
    assert gradcheck(lambda table: lookup(table, [3, 1, 3]), table, order=1), "unresolved"
