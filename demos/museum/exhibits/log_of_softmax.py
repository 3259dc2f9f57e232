"""Demos · Museum: log of a saturated softmax.

This mistake is made by typing the formula as it is printed, -log softmax(z). The weight of a score
far below the largest underflows to 0 (from a gap of 746 in float64, of 104 in float32). Its
logarithm is -∞, and the gradient is NaN. This happens late, when a model has become sure, on one
mislabelled example.
"""

import numpy as np

from minigrad import Tensor, gradients, log_softmax, softmax

REPAIR = (
    "Use `log_softmax`, or a loss that takes logits (`cross_entropy`). log(p + 1e-9) is not a "
    "repair: its loss stops at 20.7, and its gradient there is 0."
)


def broken(logits, target):  # (n,) → ()
    """Cross-entropy: how much the target surprises these logits."""
    return -np.log(softmax(logits)[target])


def repaired(logits, target):  # (n,) → ()
    """Cross-entropy: how much the target surprises these logits."""
    return -log_softmax(logits)[target]


def symptom(loss, rng):
    """The target is the lower of two logits. The gradient should be nearly (-1, 1)."""
    seen = {}
    for gap in (10, 700, 800):
        x = Tensor([0.0, gap], requires_grad=True)
        y = loss(x, 0)
        seen[f"loss at a gap of {gap}"] = y.item()
        seen[f"gradient at a gap of {gap}"] = gradients(y, [x])[0]
    return seen


def check(loss, rng):
    """The gradient of a sure mistake is prediction - truth: 1 at the guess, -1 at the target."""
    x = Tensor(1000.0 * rng.permutation(5), requires_grad=True)
    guess, target = x.data.argmax(), x.data.argmin()
    (g,) = gradients(loss(x, target), [x])
    truth = np.eye(5)[guess] - np.eye(5)[target]
    assert np.allclose(g, truth), f"the gradient is {g}, not {truth}"
