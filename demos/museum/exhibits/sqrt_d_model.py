"""Demos · Museum: √d_model for √d_k.

This mistake is made in GPTs written after a lecture, as `C ** -0.5` with C the width of the
embedding. With one head of full width d_model is d_k, so a test with one head cannot find the
mistake. With H heads the scores are √H times too small and the weights nearly uniform. The
projections of a head must grow before it can choose between keys.
"""

import numpy as np

from attention import split_heads
from minigrad import Tensor, softmax

REPAIR = "Take d_k from the tensors that are multiplied, `q.shape[-1]`, not from a configuration."


def broken(x, w_q, w_k, num_heads):  # (T, d_model) → (H, T, T)
    """The scores that go into softmax."""
    q, k = (split_heads(x @ w, num_heads) for w in (w_q, w_k))  # (H, T, d_k)
    return q @ k.mT / np.sqrt(x.shape[-1])


def repaired(x, w_q, w_k, num_heads):  # (T, d_model) → (H, T, T)
    """The scores that go into softmax."""
    q, k = (split_heads(x @ w, num_heads) for w in (w_q, w_k))  # (H, T, d_k)
    return q @ k.mT / np.sqrt(q.shape[-1])


def draws(rng, d_model):
    """An input of unit variance, and two projections that keep the variance."""
    x = Tensor(rng.standard_normal((64, d_model)))
    return x, *(Tensor(rng.standard_normal((d_model, d_model)) / d_model**0.5) for _ in range(2))


def symptom(scores, rng):
    """The spread of the scores falls with the number of heads, and so does the largest weight."""
    given = draws(rng, 256)
    seen = {}
    for num_heads in (1, 4, 16):
        s = scores(*given, num_heads)
        seen[f"H = {num_heads}: standard deviation of the scores"] = s.data.std()
        seen[f"H = {num_heads}: mean largest of 64 weights"] = softmax(s).data.max(axis=-1).mean()
    return seen


def check(scores, rng):
    """Inputs of unit variance give scores of unit variance, at two widths and numbers of heads."""
    for d_model, num_heads in ((256, 8), (128, 16)):
        spread = scores(*draws(rng, d_model), num_heads).data.std()
        said = f"with {num_heads} heads the scores' standard deviation is {spread:.2f}, not 1"
        assert 0.9 < spread < 1.1, said
