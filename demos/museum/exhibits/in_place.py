"""Demos · Museum: in-place overwrite.

This mistake is made to save memory: an array is overwritten after the forward pass, and then the
backward pass reads it. PyTorch counts versions and raises an error, and a Tensor's array here is
read-only. Code written by hand raises no error. The output is right to the last bit, no NaN
appears, and training continues with a wrong gradient.
"""

import numpy as np

from minigrad import Tensor

REPAIR = "Do not overwrite an array that a derivative needs: dropout makes a new array."


def broken(scores, kept):  # (T, S) → (T, S), and ∂L/∂y ↦ ∂L/∂scores
    """Softmax, dropout, and the backward pass."""
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    p = e / e.sum(axis=-1, keepdims=True)
    y = np.multiply(p, kept, out=p)

    def backward(g):
        return p * (g * kept - (p * g * kept).sum(axis=-1, keepdims=True))

    return y, backward


def repaired(scores, kept):  # (T, S) → (T, S), and ∂L/∂y ↦ ∂L/∂scores
    """Softmax, dropout, and the backward pass."""
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    p = e / e.sum(axis=-1, keepdims=True)
    y = p * kept

    def backward(g):
        return p * (g * kept - (p * g * kept).sum(axis=-1, keepdims=True))

    return y, backward


def draws(rng, rows):
    """Scores; the factor of each weight, 2 if it is kept and 0 if it is dropped; a gradient."""
    scores, g = rng.standard_normal((2, rows, 5))
    return scores, 2.0 * (rng.random((rows, 5)) < 0.5), g


def symptom(dropped, rng):
    """A shift of all scores of a row changes no weight, so the gradients of a row sum to 0."""
    scores, kept, g = draws(rng, 100)
    y, backward = dropped(scores, kept)
    return {
        "sum of the output": y.sum(),
        "median |sum of ∂L/∂scores|, 100 rows": np.median(np.abs(backward(g).sum(-1)).round(12)),
    }


def check(dropped, rng):
    """Compare with a central difference along a random direction."""
    (scores, kept, g), u, h = draws(rng, 3), rng.standard_normal((3, 5)), 1e-5
    said = (dropped(scores, kept)[1](g) * u).sum()
    ahead, behind = (dropped(scores + step * u, kept)[0] for step in (h, -h))
    moved = (g * (ahead - behind)).sum() / (2 * h)
    assert abs(said - moved) < 1e-6, f"along u, L moves by {moved:.4f}, not {said:.4f}"


def refusal():
    """A leaf is overwritten between the passes. (`w.data = w.data - 0.1` gives it a new array.)"""
    x, w = (Tensor(np.ones(3), requires_grad=True, name=name) for name in "xw")
    y = x * w
    w.data -= 0.1
    y.sum().backward()
