"""Exercise 22 · Rotary positions: turn each pair of features by an angle.

Attention does not know the order of its keys. So every query and key is
turned by its position: features 2i and 2i + 1 are a point (a, b) of a plane,
and at position t this point is turned by the angle t times the speed of pair
i. A turn by θ takes (a, b) to (a cos θ - b sin θ, a sin θ + b cos θ). It
keeps every length, and the product of a turned query and a turned key depends
on the distance of their positions alone.

    x               a Tensor (…, T, d_k), d_k even; row t is at position t
    cos, sin        arrays (T, d_k / 2): those of each position's angles
    rotary(x) → a Tensor (…, T, d_k)

Chapter 14, attention/positions.py.
"""

import numpy as np


def rotary(x, base=10_000.0):
    """Turn the pair i of position t by the angle t / base^(2i/d_k)."""
    T, d_k = x.shape[-2:]
    speed = 1 / base ** (np.arange(0, d_k, 2) / d_k)  # (d_k / 2,)
    angle = np.arange(T)[:, None] * speed  # (T, d_k / 2)
    cos, sin = np.cos(angle), np.sin(angle)
    # Your lines begin.
    a, b = x[..., 0::2], x[..., 1::2]  # (…, T, d_k / 2)
    turned = np.stack([a * cos - b * sin, a * sin + b * cos], axis=-1)
    return turned.reshape(x.shape)
    # Your lines end.
