"""Demos · Museum: mask reversed.

Met where two conventions meet. True means "may look" to PyTorch's scaled_dot_product_attention, and
"forbidden" to its MultiheadAttention. Nothing is raised. A model that is to predict the next word
is shown that word and those after it, and what it will have when it writes by itself is hidden.
"""

import numpy as np

from attention import attention
from minigrad import Tensor, gradients

REPAIR = "Choose one meaning for True, write it beside every mask, and test it on gradients."


def broken(x):
    """Causal self-attention: output t is made of the inputs 0 … t.   (T, d) → (T, d)"""
    T = x.shape[-2]
    mask = np.triu(np.ones((T, T), bool), 1)  # True = forbidden
    return attention(x, x, x, mask=mask)


def repaired(x):
    """Causal self-attention: output t is made of the inputs 0 … t.   (T, d) → (T, d)"""
    T = x.shape[-2]
    mask = np.tril(np.ones((T, T), bool))  # True = may look
    return attention(x, x, x, mask=mask)


def symptom(attend, rng):
    """Row t shows by # which inputs output t feels. The future is right of the diagonal."""
    x = Tensor(rng.standard_normal((6, 3)), requires_grad=True)
    felt = np.array([gradients(attend(x)[t].sum(), [x])[0].any(axis=-1) for t in range(6)])
    return {
        "inputs that each output feels": felt,
        "outputs that feel a later input": int(np.triu(felt, 1).any(axis=-1).sum()),
    }


def check(attend, rng):
    """The causal gradient test: output t feels each of the inputs 0 … t, and no later one."""
    x = Tensor(rng.standard_normal((5, 3)), requires_grad=True)
    for t in range(5):
        (g,) = gradients(attend(x)[t].sum(), [x])
        later = [s for s in range(t + 1, 5) if g[s].any()]
        assert not later, f"output {t} feels the later inputs {later}"
        hidden = [s for s in range(t + 1) if not g[s].any()]
        assert not hidden, f"output {t} does not feel the inputs {hidden}"
