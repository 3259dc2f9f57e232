"""Exercise 15 · The check: three gradients, and the two moves that change nothing."""

import numpy as np

from demos.learn._telling import given, law, right_derivatives, same
from minigrad import grad

CHAPTER = "3.7"
HINTS = (
    "Begin with the easy ones: y = n ⊙ gain + bias is a product and a sum, and the engine sums over "
    "the rows. For x, go back in steps: the gradient of n is h = g ⊙ gain. What does dn depend on?",
    "dn = (dx - mean(dx) - n mean(n ⊙ dx))/σ: the direct way, the way through μ, and the way "
    "through σ. This map is symmetric, so h goes back by the same formula.",
    "∂L/∂x = (h - mean(h) - n mean(n ⊙ h))/σ, each mean along the last axis, with keepdims=True.",
)


def check(answer):
    """One row is enough to see a wrong formula; several rows and stacks come after it."""
    layer_norm = given(answer, "layer_norm")
    rng = np.random.default_rng(0)
    gain, bias = rng.standard_normal((2, 5))
    for shape in ((3, 5), (2, 3, 5)):
        x = rng.standard_normal(shape)
        asked = f"layer_norm(x, gain, bias) for x of shape {shape}"
        n = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
        same(asked, layer_norm(x, gain, bias), n * gain + bias)
        right_derivatives(layer_norm, x, gain, bias, asked=asked)
    g = rng.standard_normal(x.shape)
    to_x = grad(lambda x: (g * layer_norm(x, gain, bias, eps=0.0)).sum())(x)
    for words, totals in (
        ("rises as a whole, y does not change: its gradients sum to 0", to_x.sum(-1)),
        ("is stretched, y does not change: Σ x ⊙ ∂L/∂x is 0", (x * to_x).sum(-1)),
    ):
        law(
            f"if a row {words} (with eps = 0)",
            np.allclose(totals, 0),
            f"the largest of these sums is {np.abs(totals).max():.6g}",
        )
    equal = grad(lambda x: (g[0] * layer_norm(x, gain, bias)).sum())(np.ones((3, 5)))
    law(
        "a row of equal numbers has the variance 0, and eps keeps its gradient finite",
        np.isfinite(equal).all(),
        f"it is {equal[0]}",
    )
