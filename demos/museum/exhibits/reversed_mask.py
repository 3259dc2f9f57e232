"""Demos · Museum: mask reversed.

This mistake is made where two conventions meet. True means "may look" in PyTorch's
scaled_dot_product_attention and "forbidden" in its MultiheadAttention. No error is raised. A model
that should predict the next token is shown that token and the later ones. The earlier tokens, which
are all that it has when it generates a text, are hidden.
"""

import numpy as np

from attention import attention
from minigrad import Tensor, gradients

REPAIR = "Choose one meaning for True, write it beside every mask, and test the mask by gradients."


def broken(x):  # (T, d) → (T, d)
    """Causal self-attention: output t depends on the inputs 0 … t."""
    T = x.shape[-2]
    mask = np.triu(np.ones((T, T), bool), 1)  # True = forbidden
    return attention(x, x, x, mask=mask)


def repaired(x):  # (T, d) → (T, d)
    """Causal self-attention: output t depends on the inputs 0 … t."""
    T = x.shape[-2]
    mask = np.tril(np.ones((T, T), bool))  # True = may look
    return attention(x, x, x, mask=mask)


def symptom(attend, rng):
    """A mark in row t is an input that output t depends on. The future is right of the diagonal."""
    x = Tensor(rng.standard_normal((6, 3)), requires_grad=True)
    felt = np.array([gradients(attend(x)[t].sum(), [x])[0].any(axis=-1) for t in range(6)])
    return {
        "inputs that each output depends on": felt,
        "outputs that depend on a later input": int(np.triu(felt, 1).any(axis=-1).sum()),
    }


def check(attend, rng):
    """Causality by gradients: output t depends on each of the inputs 0 … t, and on no later one."""
    x = Tensor(rng.standard_normal((5, 3)), requires_grad=True)
    for t in range(5):
        (g,) = gradients(attend(x)[t].sum(), [x])
        later = [s for s in range(t + 1, 5) if g[s].any()]
        assert not later, f"output {t} depends on the later inputs {later}"
        hidden = [s for s in range(t + 1) if not g[s].any()]
        assert not hidden, f"output {t} does not depend on the inputs {hidden}"
