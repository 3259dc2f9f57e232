"""Demos · Museum: in-place overwrite.

Met where memory is saved: an array is written over after the forward pass, and read by the backward
pass. PyTorch counts versions and raises, and a Tensor's array here is read-only. Code written by
hand says nothing. The output is right to the last bit, no NaN appears, and training goes on with a
gradient that is wrong.
"""

import numpy as np

from minigrad import Tensor

REPAIR = "Write over no array that a derivative holds: dropout makes an array of its own."


def broken(scores, kept):
    """Softmax, then dropout, and the way back.   (T, S) → (T, S), and ∂L/∂y ↦ ∂L/∂scores"""
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    p = e / e.sum(axis=-1, keepdims=True)
    y = np.multiply(p, kept, out=p)

    def backward(g):
        return p * (g * kept - (p * g * kept).sum(axis=-1, keepdims=True))

    return y, backward


def repaired(scores, kept):
    """Softmax, then dropout, and the way back.   (T, S) → (T, S), and ∂L/∂y ↦ ∂L/∂scores"""
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    p = e / e.sum(axis=-1, keepdims=True)
    y = p * kept

    def backward(g):
        return p * (g * kept - (p * g * kept).sum(axis=-1, keepdims=True))

    return y, backward


def draws(rng, rows):
    """Scores; which weights are kept, and then doubled, as half are dropped; a gradient."""
    scores, g = rng.standard_normal((2, rows, 5))
    return scores, 2.0 * (rng.random((rows, 5)) < 0.5), g


def symptom(dropped, rng):
    """Raising all scores of a row changes no weight, so the gradients of a row must sum to 0."""
    scores, kept, g = draws(rng, 100)
    y, backward = dropped(scores, kept)
    return {
        "sum of the output": y.sum(),
        "median |sum of ∂L/∂scores|, 100 rows": np.median(np.abs(backward(g).sum(-1)).round(12)),
    }


def check(dropped, rng):
    """A central difference, along a random direction."""
    (scores, kept, g), u, h = draws(rng, 3), rng.standard_normal((3, 5)), 1e-5
    said = (dropped(scores, kept)[1](g) * u).sum()
    ahead, behind = (dropped(scores + step * u, kept)[0] for step in (h, -h))
    moved = (g * (ahead - behind)).sum() / (2 * h)
    assert abs(said - moved) < 1e-6, f"along u, L moves by {moved:.4f}, not {said:.4f}"


def refusal():
    """A leaf written over between the passes. (`w.data = w.data - 0.1` gives it another array.)"""
    x, w = (Tensor(np.ones(3), requires_grad=True, name=name) for name in "xw")
    y = x * w
    w.data -= 0.1
    y.sum().backward()
