"""Exercise 10 · The check: squares, then other shapes, then stacks of which one is broadcast."""

from functools import partial

import numpy as np

from demos.learn._telling import given, law, right_derivatives
from minigrad import grad

HINTS = (
    "Write Cᵢⱼ = Σₖ Aᵢₖ Bₖⱼ. Which elements of C does A₀₁ reach, and with which factors?",
    "Aᵢₖ reaches row i of C, and element j there with Bₖⱼ. So ∂L/∂Aᵢₖ = Σⱼ Gᵢⱼ Bₖⱼ. Which product "
    "of two matrices is this sum, if j has to be the last axis of the left one and the first of "
    "the right one?",
    "∂L/∂A = G Bᵀ and ∂L/∂B = Aᵀ G. In a stack, each matrix is transposed for itself: `.mT` swaps "
    "the last two axes, and `.T` turns all axes round.",
)


def check(answer):
    """Check square matrices, where only the numbers can be wrong; then shapes; then stacks."""
    matmul = given(answer, "matmul")
    rng = np.random.default_rng(0)
    stack = (2, 3, 5)
    for shapes in (((3, 3), (3, 3)), ((3, 5), (5, 7)), (stack, (2, 5, 7)), (stack, (5, 7))):
        a, b = map(rng.standard_normal, shapes)
        words = f"matmul(a, b) for a of shape {a.shape} and b of shape {b.shape}"
        laws = partial(doubled, matmul, a, b)
        if a.shape == b.shape:
            sided(words, matmul, a, b)
        right_derivatives(matmul, a, b, value=a @ b, asked=words, laws=laws)
    doubled(matmul, rng.standard_normal((2, 1, 3, 5)), rng.standard_normal((7, 5, 4)))


def sided(words, matmul, a, b):
    """Check that no gradient is a product with its factors exchanged."""
    g = np.random.default_rng(1).standard_normal(a.shape)
    for i, wrong, said in (
        (0, b.mT @ g, "Aᵢₖ reaches row i of C, so row i of ∂L/∂A is made of row i of G"),
        (1, g @ a.mT, "Bₖⱼ reaches column j of C, so column j of ∂L/∂B is made of column j of G"),
    ):
        to_x = grad(lambda a, b: (g * matmul(a, b)).sum(), i)(a, b)
        law(said, not np.allclose(to_x, wrong), f"in {words} g stands on the wrong side")


def doubled(matmul, a, b):
    """Check Σ A ⊙ ∂L/∂A = Σ C ⊙ G: if A doubles, so does L."""
    c = a @ b
    g = np.random.default_rng(1).standard_normal(c.shape)
    forward = (c * g).sum()
    for i, (name, x) in enumerate({"A": a, "B": b}.items()):
        to_x = grad(lambda a, b: (g * matmul(a, b)).sum(), i)(a, b)
        back = (x * to_x).sum()
        law(
            f"A B doubles if {name} does: so Σ {name} ⊙ ∂L/∂{name} is Σ C ⊙ G",
            np.isclose(back, forward),
            f"for A of shape {a.shape} and B of shape {b.shape} these are {back:.6g} and "
            f"{forward:.6g}",
        )
