"""Demos · Museum: integer mask.

This mistake is made with a tokenizer whose attention_mask holds the integers 1 and 0. `~mask` is
then -2 and -1, and both count as true. So every key gets the same score, -1e9, and softmax makes a
plain average of tokens and padding. The weights are positive and sum to 1, and there is no NaN.
"""

import numpy as np

from attention import attention_weights
from minigrad import Tensor, softmax, where

REPAIR = "Compare first, mask == 0. Better, refuse every mask that is not boolean."


def broken(scores, mask):  # (T, S), (S,) → (T, S)
    """The weights over the keys where mask is 1."""
    return softmax(where(~mask, -1e9, scores))


def repaired(scores, mask):  # (T, S), (S,) → (T, S)
    """The weights over the keys where mask is 1."""
    return softmax(where(mask == 0, -1e9, scores))


def symptom(weights, rng):
    """These are the weights of one query over five keys, of which the last two are padding."""
    scores, mask = Tensor([[2.0, 1.0, 0.0, 0.0, 0.0]]), np.array([1, 1, 1, 0, 0])
    p = weights(scores, mask).data[0]
    return {
        "weights": p,
        "their sum": p.sum(),
        "weight on padding": p[3:].sum(),
        "weights, if the mask is boolean": weights(scores, mask == 1).data[0],
    }


def check(weights, rng):
    """Padding gets no weight, and the tokens have the weights that they have without padding."""
    scores, mask = Tensor(rng.standard_normal((3, 5))), np.array([1, 1, 1, 0, 0])
    p = weights(scores, mask).data
    on_padding = p[:, 3:].sum(axis=-1).max()
    assert on_padding == 0, f"padding gets {on_padding:.2f} of the weight"
    alone = softmax(scores[:, :3]).data
    assert np.allclose(p[:, :3], alone), f"three tokens get {p[0, :3]}, and alone {alone[0]}"


def refusal():
    """The same mask is passed to this project's attention."""
    q, k = Tensor(np.ones((3, 2))), Tensor(np.ones((5, 2)))
    return attention_weights(q, k, mask=np.array([1, 1, 1, 0, 0]))
