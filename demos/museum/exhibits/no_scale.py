"""Demos · Museum: scale missing.

This mistake does no harm in a toy: at d_k = 4 the scores are only twice too large. Then the model
grows. At d_k = 1024 the scores are 32 times too large, softmax gives nearly all weight to one key,
and half of the queries get almost no gradient. A smaller learning rate can hide the mistake (see
the demo `recall`).
"""

import numpy as np

from minigrad import Tensor, gradients, softmax

REPAIR = "Divide by √d_k, and test at two widths: at the toy's width alone the error is too small."


def broken(q, k):  # (T, d_k), (S, d_k) → (T, S)
    """The scores that go into softmax."""
    return q @ k.mT


def repaired(q, k):  # (T, d_k), (S, d_k) → (T, S)
    """The scores that go into softmax."""
    return q @ k.mT / np.sqrt(q.shape[-1])


def draws(rng, d_k):
    """256 queries and 64 keys of unit variance."""
    return [Tensor(rng.standard_normal((n, d_k)), requires_grad=True) for n in (256, 64)]


def symptom(scores, rng):
    """With a large d_k half of the queries get almost no gradient: one weight is nearly 1."""
    seen = {}
    for d_k in (4, 64, 1024):
        q, k = draws(rng, d_k)
        p = softmax(scores(q, k))
        (g,) = gradients((p * rng.standard_normal(p.shape)).sum(), [q])
        dead = (np.linalg.norm(g, axis=-1) < 1e-3).mean()
        seen[f"d_k = {d_k}: median largest of 64 weights"] = np.median(p.data.max(axis=-1))
        seen[f"d_k = {d_k}: queries with ‖∂L/∂q‖ < 0.001"] = f"{dead:.0%}"
    return seen


def check(scores, rng):
    """The spread of the scores does not depend on the width: it neither grows nor shrinks."""
    narrow, wide = (scores(*draws(rng, d_k)).data.std() for d_k in (4, 1024))
    gone = f"from {narrow:.2g} at d_k = 4 to {wide:.2g} at d_k = 1024"
    assert 1 / 1.5 * narrow < wide < 1.5 * narrow, f"the standard deviation goes {gone}"
