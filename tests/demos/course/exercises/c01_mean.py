"""Exercise 1 · A mean: the gradient of an average.

x    (N,)
gradient(x) → (N,), the gradient of x.mean() for x
"""

import numpy as np


def gradient(x):
    """Return how much the mean grows with each number."""
    # Your lines begin.
    return np.full(x.shape, 1 / x.size)
    # Your lines end.
