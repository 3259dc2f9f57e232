"""Exercise 19 · Attention: every query takes an average of the values.

Write the equation of the paper, softmax(Q Kᵀ / √d_k) V. Each query is
compared with every key, the scores are divided by √d_k, softmax makes weights
of them, and the result is the average of the values under these weights. The
tensors are minigrad's, so NumPy's words work (@, reshape, swapaxes, .mT for
the transpose of the last two axes), and nothing has to be done for the
gradient.

    q        a Tensor (…, T, d_k): T queries; … are batch axes
    k, v     Tensors (…, S, d_k) and (…, S, d_v): S keys and their values
    softmax  a function of a Tensor, along its last axis
    attention(q, k, v) → a Tensor (…, T, d_v)

Chapter 11, attention/scaled_dot_product.py.
"""

import numpy as np

import minigrad


def attention(q, k, v, softmax=minigrad.softmax):
    """softmax(Q Kᵀ / √d_k) V."""
    # Your lines begin.
    scores = q @ k.mT / np.sqrt(q.shape[-1])
    return softmax(scores) @ v
    # Your lines end.
