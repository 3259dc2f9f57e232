"""Exercise 15 · Layer norm: a gradient that loses two of its parts.

Layer normalisation moves each row to mean 0, divides it by its standard
deviation, and then scales and shifts it. The way forward is written below.
Write the three VJPs. x is used three times: in itself, in the mean μ and in
σ. If a row moves up as a whole, y does not change, and if it is stretched, y
hardly changes: so two parts of the gradient are taken away.

    x                (…, d)
    gain, bias       (d,)
    n, g             (…, d);    μ and sigma: (…, 1)
    layer_norm(x, gain, bias) → y, and three functions of (g, y): to ∂L/∂x,
                                ∂L/∂gain and ∂L/∂bias

Chapter 3.7, minigrad/ops/fused.py.
"""

import numpy as np

from minigrad import primitive


@primitive
def layer_norm(x, gain, bias, /, eps=1e-5):
    """y = n ⊙ gain + bias, with n = (x - μ)/σ and σ² = variance + eps."""
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred * centred).mean(axis=-1, keepdims=True)
    sigma = np.sqrt(variance + eps)
    n = centred / sigma
    y = n * gain + bias

    # Your lines begin.
    def to_x(g, y):
        h = g * gain
        h = h - h.mean(axis=-1, keepdims=True)
        return (h - n * (n * h).mean(axis=-1, keepdims=True)) / sigma

    return y, to_x, lambda g, y: g * n, lambda g, y: g
    # Your lines end.
