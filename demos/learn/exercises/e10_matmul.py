"""Exercise 10 · A matrix product: two gradients that are products, too.

Write the rule of C = A B. Follow one element of A: which elements of C does
it reach, and how strongly? Its gradient gathers what comes back from these.
Do the same for B. Axes before the last two are a stack of matrices. Where a
stack was broadcast, the engine sums your gradient over it (exercise 9).

    a    (n, k), or a stack of them, (…, n, k)
    b    (k, m), or (…, k, m)
    g    (n, m), or (…, n, m)
    matmul(a, b) → C, (g, y) ↦ ∂L/∂A, (g, y) ↦ ∂L/∂B

Chapter 3.5, minigrad/ops/linalg.py.
"""

import numpy as np

from minigrad import primitive


@primitive
def matmul(a, b, /):
    """C = A B, for matrices and for stacks of them."""
    # Your lines begin.
    return a @ b, lambda g, y: g @ b.mT, lambda g, y: a.mT @ g
    # Your lines end.
