"""Demos · Museum: gradients not cleared.

Met in a training loop typed from memory, where a line is missing. `backward` adds to `.grad`, so
that the gradients of several batches can be accumulated. Without that line each step goes along the
sum of all gradients so far: momentum 1, a ball without friction. The loss falls, and rises again.
"""

import numpy as np

from minigrad import Tensor

REPAIR = "w.grad = None before each backward pass; for a model, `optimizer.zero_grad()`."


def broken(w, loss, rate, steps):
    """Gradient descent: `steps` steps against the gradient of loss(w)."""
    for _ in range(steps):
        loss(w).backward()
        w.data -= rate * w.grad


def repaired(w, loss, rate, steps):
    """Gradient descent: `steps` steps against the gradient of loss(w)."""
    for _ in range(steps):
        w.grad = None
        loss(w).backward()
        w.data -= rate * w.grad


def symptom(descend, rng):
    """The first step is the same. Then the loss ½ w², which starts at 4.5, swings to and fro."""
    seen = {}
    for steps in (1, 5, 10, 15, 20, 40, 80):
        w = Tensor(3.0, requires_grad=True)
        descend(w, lambda w: w * w / 2, 0.1, steps)
        seen[f"loss after step {steps}"] = w.item() ** 2 / 2
    return seen


def check(descend, rng):
    """Two steps of length 0 leave the gradient that one leaves: nothing has moved."""
    start, found = rng.standard_normal(3), []
    for steps in (1, 2):
        w = Tensor(start, requires_grad=True)
        descend(w, lambda w: (w**4).sum(), 0.0, steps)
        found.append(w.grad)
    ratio = np.linalg.norm(found[1]) / np.linalg.norm(found[0])
    assert np.allclose(*found), f"the second gradient in one place is {ratio:.1f} × the first"
