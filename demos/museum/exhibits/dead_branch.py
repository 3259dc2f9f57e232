"""Demos · Museum: branch dead to the loss.

This mistake follows a renaming: a line takes x where it should take h. The attention above that
line is computed, and its result is not used. No operation is wrong, so no error is raised. The loss
falls, because the rest of the model learns what it can. A conversion to NumPy and back cuts a
branch off, too.
"""

import numpy as np

from attention import MultiHeadAttention
from minigrad import Tensor, tanh
from minigrad.nn import Linear, Module
from minigrad.optim import Adam

REPAIR = "Use what was computed. For every new model, list the parameters without a gradient once."


class Block(Module):
    """The parameters of both versions."""

    def __init__(self, rng):
        self.attention = MultiHeadAttention(8, 2, rng=rng)
        self.feed_forward = Linear(8, 8, rng=rng)


def broken(block, x):
    """Attention, then a layer at each position, each with a residual."""
    h = x + block.attention(x)
    h = x + tanh(block.feed_forward(x))
    return h


def repaired(block, x):
    """Attention, then a layer at each position, each with a residual."""
    h = x + block.attention(x)
    h = h + tanh(block.feed_forward(h))
    return h


def symptom(forward, rng):
    """The loss falls in both versions. (The task: each position gives the mean of all.)"""
    block, x = Block(rng), rng.standard_normal((32, 5, 8))
    before = block.attention.w_q.weight.data.copy()
    optimizer = Adam(block.parameters(), lr=0.02)
    losses = []
    for _ in range(100):
        loss = ((forward(block, Tensor(x)) - x.mean(axis=1, keepdims=True)) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return {
        "loss at step 1": losses[0],
        "loss at step 100": losses[-1],
        "largest change of w_q": np.abs(block.attention.w_q.weight.data - before).max(),
        "loss, from step 1 to step 100": np.array(losses),
    }


def check(forward, rng):
    """After one backward pass every parameter has a gradient, and not all of it is 0."""
    block = Block(rng)
    (forward(block, Tensor(rng.standard_normal((5, 8)))) ** 2).sum().backward()
    dead = [name for name, p in block.named_parameters() if p.grad is None or not p.grad.any()]
    assert not dead, f"no gradient reaches {', '.join(dead)}"


def refusal():
    """A branch is also lost by a conversion to NumPy and back."""
    x = Tensor(np.ones((5, 8)), requires_grad=True)
    return x + Tensor(np.asarray(2.0 * x))
