"""Exercise 18 · Find the bug: one sequence is right, and a batch is wrong.

How much does each query look at each key? For one sequence, with q and k of
shape (T, d_k) and (S, d_k), the function below is right, and its test passed.
Then a batch axis was added in front, and the model trained badly. No error
was raised, every shape is right, and every weight is positive. Repair it.

    q, k    arrays (…, T, d_k) and (…, S, d_k), where … are batch axes
    weights(q, k) → (…, T, S): row t has the weights of query t over the keys

Chapter 11, attention/scaled_dot_product.py.
"""

import numpy as np


def weights(q, k):
    """softmax(Q Kᵀ / √d_k): each query's weights over the keys."""
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    # Your lines begin.
    largest = scores.max(axis=-1, keepdims=True)
    e = np.exp(scores - largest)
    return e / e.sum(axis=-1, keepdims=True)
    # The learner gets:
    #     largest = scores.max(axis=1, keepdims=True)
    #     e = np.exp(scores - largest)
    #     return e / e.sum(axis=1, keepdims=True)
    # Your lines end.
