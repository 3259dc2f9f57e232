"""Demos · Museum: √d_model for √d_k.

Met in GPTs written after a lecture, as `C ** -0.5` with C the width of the embedding. With one head
of full width the two are equal, and no test of one head can tell. With H heads the scores come out
√H times too small, and the weights nearly uniform: a head must grow before it can choose.
"""

import numpy as np

from attention import split_heads
from minigrad import Tensor, softmax

REPAIR = "Take d_k from the tensors that are multiplied, q.shape[-1], and from no configuration."


def broken(x, w_q, w_k, num_heads):
    """The scores that softmax sees.   (T, d_model) → (H, T, T)"""
    q, k = (split_heads(x @ w, num_heads) for w in (w_q, w_k))  # (H, T, d_k)
    return q @ k.mT / np.sqrt(x.shape[-1])


def repaired(x, w_q, w_k, num_heads):
    """The scores that softmax sees.   (T, d_model) → (H, T, T)"""
    q, k = (split_heads(x @ w, num_heads) for w in (w_q, w_k))  # (H, T, d_k)
    return q @ k.mT / np.sqrt(q.shape[-1])


def draws(rng, d_model):
    """An input of unit variance, and two projections that keep it so."""
    x = Tensor(rng.standard_normal((64, d_model)))
    return x, *(Tensor(rng.standard_normal((d_model, d_model)) / d_model**0.5) for _ in range(2))


def symptom(scores, rng):
    """The spread of the scores falls with the number of heads, and so does every weight."""
    given = draws(rng, 256)
    seen = {}
    for num_heads in (1, 4, 16):
        s = scores(*given, num_heads)
        seen[f"H = {num_heads}: standard deviation of the scores"] = s.data.std()
        seen[f"H = {num_heads}: mean largest of 64 weights"] = softmax(s).data.max(axis=-1).mean()
    return seen


def check(scores, rng):
    """From inputs of unit variance come scores of unit variance, at two widths and head counts."""
    for d_model, num_heads in ((256, 8), (128, 16)):
        spread = scores(*draws(rng, d_model), num_heads).data.std()
        said = f"with {num_heads} heads their standard deviation is {spread:.2f}, not 1"
        assert 0.9 < spread < 1.1, said
