"""Exercise 19 · The check: shape, the sums of the weights, the scale, orders, value, gradient."""

import numpy as np

from demos.learn._telling import given, law, numbers, right_derivatives, same, tensor
from minigrad import Tensor

HINTS = (
    "There are three steps: scores (…, T, S), weights of the same shape, and their product with "
    "the values. Write the shapes down first: they leave little choice.",
    "A score is the product of a query with a key, so the scores of all pairs are one product of "
    "matrices, in which the keys are transposed. d_k is the length of the last axis of q.",
    "`scores = q @ k.mT / np.sqrt(q.shape[-1])`, then `softmax(scores) @ v`.",
)


def check(answer):
    """Check the sums of weights by values of 1, and the weights by a unit matrix as values."""
    attention = given(answer, "attention")
    rng = np.random.default_rng(0)
    q, k, v = (Tensor(rng.standard_normal((2, *shape))) for shape in ((3, 7), (5, 7), (5, 11)))
    asked = "for q (2, 3, 7), k (2, 5, 7) and v (2, 5, 11), attention(q, k, v)"
    y = attention(q, k, v)
    tensor(asked, y, (2, 3, 11), "q")
    sums = attention(q, k, Tensor(np.ones((2, 5, 1)))).data.ravel()
    law(
        "the weights of each query sum to 1, so values that are all 1 give 1",
        np.allclose(sums, 1),
        f"they give {numbers(sums[:3], '.3f')} for the first three queries",
    )
    seen = {d_k: variance(attention, d_k, rng) for d_k in (16, 256)}
    shown = " and ".join(f"{found:.3g} for d_k = {d_k}" for d_k, found in seen.items())
    law(
        "the scores that softmax is given have a variance near 1, whether d_k is 16 or 256",
        all(0.7 < found < 1.4 for found in seen.values()),
        f"from the weights one sees that it is {shown}",
    )
    order = [3, 0, 4, 1, 2]
    moved = attention(q, k[:, order], v[:, order]).data
    law(
        "if the keys change places, and their values with them, the output stays",
        np.allclose(moved, y.data),
        f"it moves by up to {np.abs(moved - y.data).max():.3f}",
    )
    e = np.exp(q.data @ k.data.mT / np.sqrt(7))
    same(asked, y, e / e.sum(axis=-1, keepdims=True) @ v.data)
    mean = np.repeat(v.data.mean(axis=1, keepdims=True), 3, axis=1)
    asked = "attention(q, k, v, softmax=f), with a function f that makes every weight 1/5,"
    same(asked, attention(q, k, v, softmax=lambda x: x * 0 + 1 / 5), mean)
    right_derivatives(attention, q.data, k.data, v.data)


def variance(attention, d_k, rng):
    """Return the variance of a row's scores: log softmax is the scores, up to a constant a row."""
    q, k = (Tensor(rng.standard_normal((64, d_k))) for _ in range(2))
    p = attention(q, k, Tensor(np.eye(64))).data
    return float(np.log(np.maximum(p, 1e-300)).var(axis=-1).mean())
