"""Demos · Museum: repeated index without scatter-add.

Met in embeddings written by hand. `grad[words] += g` reads like a sum. NumPy reads all rows first,
adds, and then writes: of several gradients for one row the last stays. Whatever word comes twice in
a sentence, such as "the", learns too little. A sentence without repetition is right.
"""

import numpy as np

from minigrad import Tensor, gradcheck, gradients, primitive

REPAIR = (
    "np.add.at, which adds for each index in turn. (In this project `scatter_add`; x[words] uses "
    "it.) Check a look-up with an index that repeats."
)


@primitive
def broken(table, /, words):
    """The rows of a table that belong to the words.   (V, d) → (T, d)"""

    def vjp(g, y):
        grad = np.zeros(table.shape)
        grad[words] += g
        return grad

    return table[words], vjp


@primitive
def repaired(table, /, words):
    """The rows of a table that belong to the words.   (V, d) → (T, d)"""

    def vjp(g, y):
        grad = np.zeros(table.shape)
        np.add.at(grad, words, g)
        return grad

    return table[words], vjp


def symptom(lookup, rng):
    """The sum over a sentence has derivative 1 for each time that a word occurs in it."""
    table = Tensor(rng.standard_normal((4, 2)), requires_grad=True)
    (g,) = gradients(lookup(table, [3, 1, 3, 3]).sum(), [table])
    distinct = gradcheck(lambda t: lookup(t, [3, 1, 0]), table, order=1)
    return {
        "how often the words 0 1 2 3 occur": "0 1 0 3",
        "derivatives with respect to their rows": " ".join(f"{row[0]:.0f}" for row in g),
        "gradcheck without a repetition": "passes" if distinct else "fails",
    }


def check(lookup, rng):
    """`gradcheck`, at an index that repeats."""
    table = rng.standard_normal((4, 2))
    assert gradcheck(lambda table: lookup(table, [3, 1, 3]), table, order=1), "unresolved"
