"""Exercise 15 · The check: three gradients, and the two moves that change nothing."""

from functools import partial

import numpy as np

from demos.learn._telling import given, law, place, right_derivatives
from minigrad import grad

HINTS = (
    "Begin with the easy ones: y = n ⊙ gain + bias is a product and a sum, and the engine sums "
    "over the rows. For x, go back in steps: the gradient of n is h = g ⊙ gain. What does n move "
    "with, if x moves by dx?",
    "dn = (dx - mean(dx) - n mean(n ⊙ dx))/σ: the direct way, the way through μ, and the way "
    "through σ. As a matrix this is (I - 1 1ᵀ/d - n nᵀ/d)/σ, where 1 is a column of ones. It is "
    "its own transpose, so h goes back by the same formula.",
    "∂L/∂x = (h - mean(h) - n mean(n ⊙ h))/σ, each mean along the last axis, with `keepdims=True`.",
)


def check(answer):
    """Check rows and stacks: value, derivatives, laws; then a row of equal numbers."""
    layer_norm = given(answer, "layer_norm")
    rng = np.random.default_rng(0)
    for shape in ((3, 5), (2, 3, 5), (2, 7)):
        gain, bias = rng.standard_normal((2, shape[-1]))
        x = rng.standard_normal(shape)
        asked = f"layer_norm(x, gain, bias) for x of shape {shape}"
        n = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
        laws, value = partial(unmoved, layer_norm, x, gain, bias), n * gain + bias
        right_derivatives(layer_norm, x, gain, bias, value=value, asked=asked, laws=laws)
        laws()
    g = rng.standard_normal((2, 7))
    equal = grad(lambda x: (g * layer_norm(x, gain, bias)).sum())(np.ones((2, 7)))
    law(
        "a row of equal numbers has the variance 0, and eps keeps its gradient finite",
        np.isfinite(equal).all(),
        f"it is {equal[0]}",
    )


def unmoved(layer_norm, x, gain, bias):
    """Check two moves of a row that leave y as it is (eps is 0), and a row twice as large."""
    g = np.random.default_rng(1).standard_normal(x.shape)
    to_x = grad(lambda x: (g * layer_norm(x, gain, bias, eps=0.0)).sum())
    found, doubled = to_x(x), to_x(2 * x)
    for words, totals in (
        ("rises as a whole, y does not change: so the gradients of a row sum to 0", found.sum(-1)),
        ("is stretched, y does not change: so Σ x ⊙ ∂L/∂x is 0", (x * found).sum(-1)),
    ):
        law(
            f"if a row {words} (with eps = 0)",
            np.allclose(totals, 0),
            f"for x of shape {x.shape} a sum is {totals.flat[np.abs(totals).argmax()]:.6g}",
        )
    worst = np.unravel_index(np.abs(doubled - found / 2).argmax(), x.shape)
    law(
        "a row that is twice as large has the same y, and a gradient half as large (with eps = 0)",
        np.allclose(doubled, found / 2),
        f"element {place(worst)} of this gradient goes from {found[worst]:.6g} to "
        f"{doubled[worst]:.6g}",
    )
