"""Demos · Museum: lost un-broadcast sum.

This mistake is made in layers written by hand. Broadcasting copies the bias to every row of the
batch, so its gradient is the sum over the rows. Without that sum the gradient has the batch's
shape, and `b = b - rate * g` turns the bias into one bias for each *example*. The layer learns the
batch by heart.
"""

import numpy as np

from minigrad import Tensor, primitive

REPAIR = (
    "Sum over every axis that was broadcast. (A mean has the right shape, but is too small by a "
    "factor of the batch size: compare values too.)"
)


def broken(x, w, b, g):  # (B, 3), (3, 2) → (B, 2)
    """∂L/∂w and ∂L/∂b of y = x w + b, for g = ∂L/∂y."""
    return x.T @ g, g


def repaired(x, w, b, g):  # (B, 3), (3, 2) → (B, 2)
    """∂L/∂w and ∂L/∂b of y = x w + b, for g = ∂L/∂y."""
    return x.T @ g, g.sum(axis=0)


def symptom(backward, rng):
    """The errors after 200 steps on eight points of a plane, there and at eight other points."""
    plane, others = 3 * rng.standard_normal((3, 2)), rng.standard_normal((8, 3))
    x = np.indices((2, 2, 2)).reshape(3, 8).T - 0.5  # the corners of a cube
    w, b = np.zeros((3, 2)), np.zeros(2)
    for _ in range(200):
        g_w, g_b = backward(x, w, b, x @ w + b - (x @ plane + 1))  # of ½ ‖y - target‖²
        w, b = w - 0.05 * g_w, b - 0.05 * g_b
    return {
        "shape of the bias": b.shape,
        "mean squared error, these points": ((x @ w + b - (x @ plane + 1)) ** 2).mean(),
        "mean squared error, others": ((others @ w + b - (others @ plane + 1)) ** 2).mean(),
    }


def check(backward, rng):
    """For L = Σ g y, compare the gradients' shapes, and their values with a central difference."""
    x, w, b, u, v, g = (rng.standard_normal(s) for s in ((5, 3), (3, 2), 2, (3, 2), 2, (5, 2)))
    g_w, g_b = backward(x, w, b, g)
    for name, p, d in (("w", w, g_w), ("b", b, g_b)):
        assert d.shape == p.shape, f"the gradient of {name} {p.shape} has shape {d.shape}"
    ahead, behind = ((g * (x @ (w + h * u) + b + h * v)).sum() for h in (1, -1))
    slope, said = (ahead - behind) / 2, (g_w * u).sum() + g_b @ v  # (L is linear)
    assert np.isclose(said, slope), f"along (u, v), L moves by {slope:.4f}, not {said:.4f}"


def refusal():
    """Broadcasting cannot explain the shape of this rule's gradient. (Otherwise it is summed.)"""

    @primitive
    def add_bias(y, b, /):
        return y + b, lambda g, _: g, lambda g, _: g.sum(axis=1)

    y, b = Tensor(np.ones((5, 2))), Tensor(np.ones(2), requires_grad=True)
    add_bias(y, b).sum().backward()
