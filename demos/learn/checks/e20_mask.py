"""Exercise 20 · The check: forbidden keys, a row without keys, and NaN in both directions."""

import numpy as np

from demos.learn._telling import given, law, numbers, right_derivatives, same, tensor
from minigrad import Tensor, gradients

HINTS = (
    "Look at a row without keys alone. All its scores are forbidden: what does softmax make of a "
    "row of -∞, and what of any row of equal numbers?",
    "If softmax gets a row of -∞, its weights are NaN, and so is its gradient, since 0 · NaN is "
    "NaN. A `where` around softmax replaces the first, and a `where` before it keeps out the "
    "second. A way without any NaN: decide before softmax what such a row gets instead.",
    "Give softmax -∞ where the mask is False, but 0 in a row without keys: `~mask.any(axis=-1, "
    "keepdims=True)` says which rows these are. After softmax, put 0 wherever the mask is False.",
)
MASK = np.array([[1, 0, 1, 0, 1], [0, 0, 0, 0, 0], [1, 1, 1, 1, 1], [0, 0, 0, 1, 0]], bool)


def check(answer):
    """Check sums, zeros, NaN; then a forbidden score that is changed; then the gradient.

    Query 1 of four has no key.
    """
    masked_weights = given(answer, "masked_weights")
    scores = np.random.default_rng(0).standard_normal((3, 4, 5))
    x = Tensor(scores, requires_grad=True)
    y = masked_weights(x, MASK)
    tensor("masked_weights(scores, mask), for scores (3, 4, 5),", y, (3, 4, 5), "scores")
    p = y.data
    shown = lambda row: numbers(row, ".3g")
    law(
        "a query that may look at no key has weights of 0",
        not p[:, 1].any(),
        f"the five weights of such a query are {shown(p[0, 1])}",
    )
    law(
        "the weight of a forbidden key is 0",
        not p[:, ~MASK].any(),
        f"where the mask is {shown(MASK[0].astype(int))}, the weights are {shown(p[0, 0])}",
    )
    sums = p.sum(axis=-1)[0]
    law(
        "the weights of a query that has a key sum to 1",
        np.allclose(sums, [1, 0, 1, 1]),
        f"the sums of four queries, of which the second has no key, are {shown(sums)}",
    )
    (g,) = gradients(y, [x], np.random.default_rng(1).standard_normal(y.shape))
    law(
        "no gradient is NaN",
        not np.isnan(g).any(),
        f"{np.isnan(g).sum()} of {g.size} elements of ∂L/∂scores are NaN, and "
        f"{np.isnan(g[:, 1]).sum()} of these are in rows without a key",
    )
    large = masked_weights(Tensor(np.where(MASK, scores, 1e12)), MASK).data
    law(
        "a forbidden score changes no weight, however large it is",
        np.allclose(large, p),
        "when all forbidden scores are 1,000,000,000,000, the weights of the first query are "
        f"{shown(large[0, 0])}, and they were {shown(p[0, 0])}",
    )
    low = masked_weights(Tensor(scores - 1e6), MASK).data
    law(
        "if all scores fall by 1,000,000 no weight changes",
        np.allclose(low, p),
        f"then the weights of the first query are {shown(low[0, 0])}, and they were "
        f"{shown(p[0, 0])}",
    )
    e = np.where(MASK, np.exp(scores), 0)
    expected = e / np.maximum(e.sum(axis=-1, keepdims=True), 1e-300)
    asked = "masked_weights(scores, mask), for scores (3, 4, 5) and a mask (4, 5),"
    same(asked, y, expected)
    right_derivatives(lambda scores: masked_weights(scores, MASK), scores)
