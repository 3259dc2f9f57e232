"""Exercise 10 · The check: squares, then other shapes, then stacks of which one is broadcast."""

import numpy as np

from demos.learn._telling import given, law, right_derivatives, same
from minigrad import grad

CHAPTER = "3.5"
HINTS = (
    "Write Cᵢⱼ = Σₖ Aᵢₖ Bₖⱼ. Which elements of C does A₀₁ reach, and with which factors?",
    "Aᵢₖ reaches row i of C, and element j there with Bₖⱼ. So ∂L/∂Aᵢₖ = Σⱼ Gᵢⱼ Bₖⱼ. Which product "
    "of two matrices is this sum, if j has to be the last axis of the left one and the first of "
    "the right one?",
    "∂L/∂A = G Bᵀ and ∂L/∂B = Aᵀ G. In a stack, each matrix is transposed for itself: .mT swaps "
    "the last two axes, and .T turns all axes round.",
)


def check(answer):
    """Squares, where nothing but the numbers can be wrong; then shapes; then stacks."""
    matmul = given(answer, "matmul")
    rng = np.random.default_rng(0)
    for a_shape, b_shape in (
        ((3, 3), (3, 3)),
        ((3, 5), (5, 7)),
        ((2, 3, 5), (2, 5, 7)),
        ((2, 3, 5), (5, 7)),
    ):
        a, b = rng.standard_normal(a_shape), rng.standard_normal(b_shape)
        words = f"matmul(a, b) for a of shape {a_shape} and b of shape {b_shape}"
        same(words, matmul(a, b), a @ b)
        right_derivatives(matmul, a, b, asked=words)
    a, b = rng.standard_normal((2, 1, 3, 5)), rng.standard_normal((7, 5, 4))
    c = a @ b
    g = rng.standard_normal(c.shape)
    for i, (name, x) in enumerate({"A": a, "B": b}.items()):
        to_x = grad(lambda a, b: (g * matmul(a, b)).sum(), i)(a, b)
        law(
            f"A B doubles if {name} does: so Σ {name} ⊙ ∂L/∂{name} is Σ C ⊙ G",
            np.isclose((x * to_x).sum(), (c * g).sum()),
            f"for stacks of shape {a.shape} and {b.shape} these are {(x * to_x).sum():.6g} and "
            f"{(c * g).sum():.6g}",
        )
