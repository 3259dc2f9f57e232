"""Exercise 13 · Softmax: every weight feels every score.

Write the rule of softmax, yᵢ = exp(xᵢ) / Σⱼ exp(xⱼ), along one axis. Its
weights have to come out right for scores of 1,000 as well, whose exp is
infinite. If xⱼ rises, yⱼ rises and all other weights of its row fall. So each
element of ∂L/∂x depends on g in the whole row. Do not build the n × n table
of derivatives: the product of this table with g is short.

    x       scores, for example (3, 5); the weights sum to 1 along `axis`
    g, y    the shape of x
    softmax(x, axis) → y, a function (g, y) ↦ ∂L/∂x

Chapter 3.6, minigrad/ops/softmaxes.py.
"""

import numpy as np

from minigrad import primitive


@primitive
def softmax(x, /, axis=-1):
    """yᵢ = exp(xᵢ) / Σⱼ exp(xⱼ): positive weights that sum to 1."""
    # Your lines begin.
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return (
        e / e.sum(axis=axis, keepdims=True),
        lambda g, y: y * (g - (y * g).sum(axis=axis, keepdims=True)),
    )
    # Your lines end.
