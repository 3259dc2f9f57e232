"""Exercise 23 · The check: steps on the parabola L = ½ p², whose gradient is p, by hand."""

import numpy as np

from demos.learn._telling import array, given, law, numbers, results, same

HINTS = (
    "Take p = 1, g = 1 and lr = 0.1. At the first step both optimizers move p by exactly 0.1: for "
    "momentum the velocity is g, for Adam the corrected m is g and the corrected v is g².",
    "Momentum adds up gradients. Adam's means are not sums: each keeps b of itself and takes 1 - b "
    "of the new number. The correction is made for the step alone, not in what is returned.",
    "`m / (1 - b1**t)` and `v / (1 - b2**t)` are the corrected means; `np.sqrt(corrected_v) + eps` "
    "is below the line of the fraction.",
)


def check(answer):
    """Check two steps by hand, a law for each optimizer, then many steps with arrays."""
    momentum_step, adam_step = given(answer, "momentum_step"), given(answer, "adam_step")
    asked = "on the parabola ½ p², with lr = 0.1 and momentum = 0.9, step"
    one, zero = np.array([1.0]), np.array([0.0])
    p, velocity = stepped(momentum_step, 2, one, one, zero, 0.1)
    element(f"{asked} 1 from p = 1: p", p, 0.9)
    p, velocity = stepped(momentum_step, 2, p, p, velocity, 0.1)
    element(f"{asked} 2 from p = 0.9 and velocity = 1: the velocity", velocity, 1.8)
    element(f"{asked} 2 from p = 0.9 and velocity = 1: p", p, 0.72)

    first = lambda g: stepped(adam_step, 3, one, g * one, zero, zero, 1, 0.1)[0]
    sizes = np.array([1.0 - first(g)[0] for g in (0.001, 1.0, 1000.0)])
    shown = numbers(sizes, ".3g")
    law(
        "Adam's first step is lr long, whatever the size of the gradient",
        all(0.0999 < size < 0.1001 for size in sizes),
        f"with lr = 0.1, p moves against a gradient of 0.001, 1 and 1000 by {shown}",
    )
    p, m, v = one, zero, zero
    for t in range(1, 6):
        before = p
        p, m, v = stepped(adam_step, 3, p, one, m, v, t, 0.1)
        law(
            "as long as the gradient is the same, each of Adam's steps is lr long",
            abs(before[0] - p[0] - 0.1) < 1e-4,
            f"with lr = 0.1 and g = 1 at each step, step {t} is {before[0] - p[0]:.3g} long",
        )
    p = np.array([[3.0, -2.0], [0.5, 0.0]])
    g = np.array([[1.0, -10.0], [1e-3, 0.0]])
    moved, *_ = stepped(adam_step, 3, p, g, 0 * p, 0 * p, 1, 0.1)
    same("Adam's first step from p = [[3, -2], [0.5, 0]]", moved, p - 0.1 * np.sign(g), rtol=1e-4)
    momentum, lr, b1, b2, eps = 0.5, 0.02, 0.7, 0.8, 0.1
    moved, velocity = stepped(momentum_step, 2, p, g, p, lr, momentum)
    asked = "momentum_step(p, g, velocity, lr=0.02, momentum=0.5)"
    same(asked, (moved, velocity), (p - lr * (momentum * p + g), momentum * p + g))
    m, v = b1 * p + (1 - b1) * g, b2 * p * p + (1 - b2) * g * g
    step = (m / (1 - b1**2)) / (np.sqrt(v / (1 - b2**2)) + eps)
    asked = "adam_step(p, g, m, v, t=2, lr=0.02, b1=0.7, b2=0.8, eps=0.1)"
    same(asked, stepped(adam_step, 3, p, g, p, p * p, 2, lr, b1, b2, eps), (p - lr * step, m, v))


def element(asked, got, expected):
    """Raise Unsolved unless the one element of got is the expected one."""
    same(asked, got[0], expected, rtol=1e-6)


def stepped(step, count, *given_to):
    """Return the results of a step; raise Unsolved unless they are `count` arrays."""
    found = step(*given_to)
    results(f"{step.__name__}(…)", found, count)
    for i, x in enumerate(found):
        array(f"result {i} of {step.__name__}(…)", x, given_to[0].shape)
    return found
