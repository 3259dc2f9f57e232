"""Exercise 23 · Two optimizers: momentum, and Adam.

Given a parameter p and its gradient g, what is p after the next step?
**Momentum** keeps a velocity: momentum · velocity + g is the new one, and p
moves against it by lr times as much. **Adam** keeps two running means: m of
g, and v of g². Each step replaces m by b₁ m + (1 - b₁) g, and v by
b₂ v + (1 - b₂) g². Both begin at 0 and are too small at first, so after t
steps they are divided by 1 - b₁ᵗ and 1 - b₂ᵗ. Then p moves by lr · m / (√v +
eps), with the corrected m and v. Return what the next step needs: the means
without this correction.

    p, g, velocity, m, v    arrays of one shape, which stay as they are
    t                       the number of this step: 1, 2, 3, …
    momentum_step(…) → p, velocity      adam_step(…) → p, m, v

Chapter 8, minigrad/optim.py.
"""

import numpy as np


def momentum_step(p, g, velocity, lr, momentum=0.9):
    """p and its velocity after one step."""
    # Your lines begin.
    velocity = momentum * velocity + g
    return p - lr * velocity, velocity
    # Your lines end.


def adam_step(p, g, m, v, t, lr, b1=0.9, b2=0.999, eps=1e-8):
    """p and its two running means after step t."""
    # Your lines begin.
    m = b1 * m + (1 - b1) * g
    v = b2 * v + (1 - b2) * g * g
    corrected_m, corrected_v = m / (1 - b1**t), v / (1 - b2**t)
    return p - lr * corrected_m / (np.sqrt(corrected_v) + eps), m, v
    # Your lines end.
