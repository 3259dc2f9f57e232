"""Exercise 14 · Cross-entropy: prediction minus truth.

Write two rules. The first is the logarithm of softmax along the last axis,
yᵢ = xᵢ - log Σⱼ exp(xⱼ). The second is the loss of a classifier: the mean
over the rows of -log p, where p is the probability that softmax gives to the
true class of the row. It may call the first. Derive its gradient as a whole:
much cancels. With scores of 1,000 both have to stay finite.

    x, logits    scores, (n, C): n rows, C classes
    targets      (n,), the true class of each row, an integer from 0 to C - 1
    log_softmax(x) → (n, C), a function (g, y) ↦ ∂L/∂x
    cross_entropy(logits, targets) → a number, (g, y) ↦ ∂L/∂logits

Chapter 3.6, minigrad/ops/softmaxes.py, and
chapter 3.10, minigrad/ops/classification.py.
"""

import numpy as np

from minigrad import primitive


@primitive
def log_softmax(x, /):
    """yᵢ = xᵢ - log Σⱼ exp(xⱼ), along the last axis."""
    # Your lines begin.
    x = x - x.max(axis=-1, keepdims=True)
    return (
        x - np.log(np.exp(x).sum(axis=-1, keepdims=True)),
        lambda g, y: g - np.exp(y) * g.sum(axis=-1, keepdims=True),
    )
    # Your lines end.


@primitive
def cross_entropy(logits, /, targets):
    """The mean over the rows of -log softmax(logits)[true class]."""
    n, C = logits.shape
    truth = np.eye(C)[targets]  # (n, C): 1 at the true class, 0 elsewhere
    # Your lines begin.
    log_p = log_softmax(logits)
    return (
        -(truth * log_p).sum() / n,
        lambda g, y: g * (np.exp(log_p) - truth) / n,
    )
    # Your lines end.
