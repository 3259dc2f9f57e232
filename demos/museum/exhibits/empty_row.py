"""Demos · Museum: fully masked row.

This mistake is made with padding in a batch, when a query has no key left (PyTorch's issue 41508).
Its scores are all -∞, and softmax turns them into NaN. The loss leaves that row out, so the loss is
finite. But in the backward pass 0 · NaN is NaN, and one padded position makes the gradient of every
parameter of the layer NaN.
"""

import numpy as np

from minigrad import Tensor, detect_anomaly, softmax, where

REPAIR = (
    "Decide before softmax what a query without keys gets; `attention` gives it weights of 0. "
    "If NaN is only replaced in the output, the gradients are still NaN."
)


def broken(scores, mask):  # (T, S) → (T, S)
    """The weights of each query over the keys it may look at."""
    return softmax(scores + np.where(mask, 0.0, -np.inf))


def repaired(scores, mask):  # (T, S) → (T, S)
    """The weights of each query over the keys it may look at."""
    nowhere = ~mask.any(axis=-1, keepdims=True)
    p = softmax(scores + np.where(mask | nowhere, 0.0, -np.inf))
    return where(mask, p, 0.0)


MASK = np.tril(np.ones((4, 4), bool)) & [[True], [True], [True], [False]]  # the last has no key


def layer(weights, rng):
    """The outputs for four positions, their weights, and the two parameters."""
    x, (w, w_v) = rng.standard_normal((4, 3)), rng.standard_normal((2, 3, 3))
    w, w_v = (Tensor(values, requires_grad=True) for values in (w, w_v))
    p = weights(x @ w @ x.T, MASK)
    return p @ (x @ w_v), p, w, w_v


def symptom(weights, rng):
    """The loss is finite, and every number in the gradients is NaN."""
    y, _, w, w_v = layer(weights, rng)
    loss = (y[:3] ** 2).mean()  # without the position that has no key
    loss.backward()
    return {
        "loss of the other three positions": loss.item(),
        "NaN among the 9 numbers of ∂L/∂w": int(np.isnan(w.grad).sum()),
        "NaN among the 9 numbers of ∂L/∂w_v": int(np.isnan(w_v.grad).sum()),
    }


def check(weights, rng):
    """Run both passes under `detect_anomaly`, which names the line; then look at the weights."""
    with detect_anomaly():
        y, p, w, w_v = layer(weights, rng)
        (y[:3] ** 2).mean().backward()
    for g in (w.grad, w_v.grad):
        assert np.isfinite(g).all() and g.any(), "a gradient is not finite, or all of it is 0"
    assert not p.data[~MASK].any(), "a weight is not 0 where the mask is False"
    sums = p.data.sum(axis=-1)
    assert np.allclose(sums, [1, 1, 1, 0]), f"rows sum to {sums.round(2)}, not to 1 1 1 0"
