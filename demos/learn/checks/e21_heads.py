"""Exercise 21 · The check: which features a head has, whether positions mix, the way back."""

import numpy as np

from demos.learn._telling import given, law, numbers, right_derivatives, same, tensor
from minigrad import Tensor

HINTS = (
    "Write down x for two positions and two heads of two features: 0 1 2 3 and 4 5 6 7. Head 0 "
    "should have 0 1 and 4 5. What does it have?",
    "A reshape keeps the order in which the numbers are read, row by row. It can cut an axis in "
    "two, and it can never move one axis past another. Which word of NumPy's does that?",
    "Cut the last axis first, `reshape(*batch, T, num_heads, d_k)`, then `swapaxes(-3, -2)`. To "
    "merge, do the opposite in the opposite order.",
)


def check(answer):
    """Check the features of each head; then all at once, with batch axes; then merge."""
    split, merge = given(answer, "split"), given(answer, "merge")
    x = np.arange(5 * 6.0).reshape(5, 6)
    heads = split(Tensor(x), 3)
    tensor("split(x, 3), for x of shape (5, 6),", heads, (3, 5, 2), "x")
    law(
        "split moves the elements of x, and changes none of them",
        np.array_equal(np.sort(heads.data.ravel()), x.ravel()),
        f"the elements of x are 0 to 29, and those of the heads {heads.data.min():g} to "
        f"{heads.data.max():g}",
    )
    rows = sorted({int(number) // 6 for number in heads.data[0].ravel()})
    law(
        "each head has features of every position",
        rows == [*range(5)],
        f"with 5 positions and 3 heads, head 0 has features of positions {rows} alone",
    )
    for h in range(3):
        found = [int(number) for number in heads.data[h, 2] - x[2, 0]]
        law(
            f"head {h} of 3 has the features {2 * h} and {2 * h + 1} of each position",
            found == [2 * h, 2 * h + 1],
            f"at position 2 it has {', '.join(words(number) for number in found)}",
        )
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 7, 5, 6))
    expected = np.stack([x[..., 2 * h : 2 * h + 2] for h in range(3)], axis=-3)
    same("with batch axes (2, 7) in front, split(x, 3)", split(Tensor(x), 3), expected)
    merged = merge(Tensor(expected))
    tensor("merge(heads), for heads of shape (2, 7, 3, 5, 2),", merged, x.shape, "heads")
    law(
        "split and merged, x is x again",
        np.array_equal(merged.data, x),
        f"{(merged.data != x).sum()} of {x.size} elements are other ones: the first few of x are "
        f"{numbers(x.flat[:3])}, and they become {numbers(merged.data.flat[:3])}",
    )
    x = rng.standard_normal((7, 8))
    heads = np.stack([x[:, :4], x[:, 4:]])
    same("split(x, 2), for x of shape (7, 8),", split(Tensor(x), 2), heads)
    same("merge(heads), for heads of shape (2, 7, 4),", merge(Tensor(heads)), x)
    x = rng.standard_normal((2, 7, 5, 6))
    right_derivatives(lambda x: merge(split(x, 3) * expected[0, 0]), x[0, 0])


def words(feature):
    """Return the name of a feature of position 2, or say which other position has it."""
    return f"feature {feature}" if 0 <= feature < 6 else f"a feature of position {2 + feature // 6}"
