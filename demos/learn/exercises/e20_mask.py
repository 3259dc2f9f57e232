"""Exercise 20 · A mask: and a query that may look at no key.

A mask says which keys a query may look at: True means "may look". The weights
of the keys that it may look at sum to 1, and all others are 0. But in a
padded batch a query can have no key at all. Such a row gets weights of 0, and
neither the weights nor the gradient may be NaN, because one NaN in a gradient
makes every parameter NaN at the next step. Take care: exp(-∞) is 0, and
-∞ - (-∞) is NaN.

    scores    a Tensor (…, T, S)
    mask      a boolean array (T, S)
    softmax(x), where(mask, a, b)    minigrad's, for Tensors and arrays
    masked_weights(scores, mask) → a Tensor (…, T, S)

Chapter 11, attention/scaled_dot_product.py.
"""

import numpy as np

from minigrad import softmax, where


def masked_weights(scores, mask):
    """Softmax over the keys that each query may look at; 0 without any."""
    # Your lines begin.
    nowhere = ~mask.any(axis=-1, keepdims=True)  # (T, 1)
    allowed = where(mask, scores, np.where(nowhere, 0.0, -np.inf))
    return where(mask, softmax(allowed), 0.0)
    # Your lines end.
