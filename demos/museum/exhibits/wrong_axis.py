"""Demos · Museum: softmax over the wrong axis.

This mistake is made where the axis is left to a default, or was counted from the left before an
axis of heads was added in front. With as many queries as keys every shape is right, and the weights
are positive. But now the weights of each *key* sum to 1, over the queries. Under a causal mask, an
earlier output then depends on later queries.
"""

import numpy as np

from attention import causal_mask
from minigrad import Tensor, gradients, softmax, where

REPAIR = "Count the axis from the end, where the keys are: `axis=-1` is right for any batch axes."


def broken(q, k, mask):  # (T, d_k), (S, d_k) → (T, S)
    """How much each query looks at each key."""
    scores = where(mask, q @ k.mT / np.sqrt(q.shape[-1]), -np.inf)
    return softmax(scores, axis=-2)


def repaired(q, k, mask):  # (T, d_k), (S, d_k) → (T, S)
    """How much each query looks at each key."""
    scores = where(mask, q @ k.mT / np.sqrt(q.shape[-1]), -np.inf)
    return softmax(scores, axis=-1)


def symptom(weights, rng):
    """The shape is right, but the rows do not sum to 1, and output 0 depends on the last input."""
    x = Tensor(rng.standard_normal((5, 8)), requires_grad=True)
    p = weights(x, x, causal_mask(5))
    (g,) = gradients((p @ x)[0].sum(), [x])
    return {
        "shape of the weights": p.shape,
        "sums of the five queries' weights": p.data.sum(axis=-1),
        "largest |∂ output 0 / ∂ input 4|": np.abs(g[4]).max(),
    }


def check(weights, rng):
    """The weights of each query sum to 1."""
    q, k = (Tensor(rng.standard_normal((n, 7))) for n in (3, 5))
    sums = weights(q, k, np.ones((3, 5), bool)).data.sum(axis=-1)
    assert np.allclose(sums, 1), f"the queries' weights sum to {sums.round(2)}, not to 1"
