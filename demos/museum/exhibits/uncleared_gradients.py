"""Demos · Museum: gradients not cleared.

This mistake is made in a training loop typed from memory, where one line is missing. `backward`
adds to `.grad`, so that the gradients of several batches can be accumulated. Without that line each
step follows the sum of all gradients so far. That is momentum 1, like a ball without friction: the
loss falls and rises again.
"""

import numpy as np

from minigrad import Tensor

REPAIR = "Set w.grad = None before each backward pass; for a model, call `optimizer.zero_grad()`."


def broken(w, loss, rate, steps):
    """Gradient descent: `steps` steps against the gradient of loss(w)."""
    for _ in range(steps):
        loss(w).backward()
        w.data = w.data - rate * w.grad


def repaired(w, loss, rate, steps):
    """Gradient descent: `steps` steps against the gradient of loss(w)."""
    for _ in range(steps):
        w.grad = None
        loss(w).backward()
        w.data = w.data - rate * w.grad


def symptom(descend, rng):
    """The first step is right. Then the loss ½ w², which starts at 4.5, falls and rises."""
    losses = []

    def loss(w):
        losses.append(w.item() ** 2 / 2)
        return w * w / 2

    descend(Tensor(3.0, requires_grad=True), loss, 0.1, 81)
    seen = {f"loss after step {steps}": losses[steps] for steps in (1, 5, 10, 15, 20, 40, 80)}
    return seen | {"loss, from step 0 to step 80": np.array(losses)}


def check(descend, rng):
    """A step at rate 0.1 on ½ w² takes away a tenth of w, so 0.9⁵ of w is left after five steps."""
    start = rng.standard_normal(3)
    w = Tensor(start.copy(), requires_grad=True)
    descend(w, lambda w: (w * w).sum() / 2, 0.1, 5)
    left, truth = w.data / start, 0.9**5
    assert np.allclose(left, truth), f"{left.mean():.3f} of w is left, not 0.9⁵ = {truth:.3f}"
