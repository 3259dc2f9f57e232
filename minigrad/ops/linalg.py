"""3.5 · Linear algebra: the matrix product.

Attention is two matrix products with a softmax between them, so this rule does most of the
work of the project. Where do the two transposes in it come from? The docstring of `matmul`
follows one element.
"""

from typing import Any

import numpy as np

from minigrad.record import primitive
from minigrad.tensor import Tensor, describe


def matmul(a: Any, b: Any) -> Tensor:
    """C = A B: every row of A against every column of B.   (…, n, k) · (…, k, m) → (…, n, m)

    Write one element of the product, and ask which outputs a single Aᵢₖ reaches:

        Cᵢⱼ = Σₗ Aᵢₗ Bₗⱼ        ∂Cᵢⱼ/∂Aᵢₖ = Bₖⱼ

    It reaches row i of C, element j with strength Bₖⱼ. Its gradient gathers what comes back
    from that row, G = ∂L/∂C:

        ∂L/∂Aᵢₖ = Σⱼ Gᵢⱼ Bₖⱼ = Σⱼ Gᵢⱼ (Bᵀ)ⱼₖ        ∂L/∂A = G Bᵀ

    By the same walk, Bₖⱼ reaches column j of C, element i with strength Aᵢₖ:

        ∂L/∂Bₖⱼ = Σᵢ Aᵢₖ Gᵢⱼ                        ∂L/∂B = Aᵀ G

    The shapes allow no other product: G is (n, m), so an (n, k) result needs (m, k) on the
    right, which is Bᵀ. Each side's gradient is the other side applied to G: each decides where
    the other is pushed.

    Axes before the last two are a stack of matrices and broadcast. A vector takes part as NumPy
    has it: one axis of length 1 is added, in front on the left side and behind on the right
    side, and taken away from the result. A scalar is refused.

    >>> matmul([[1, 2], [3, 4]], [[0, 1], [1, 0]])
    array([[2, 1],
           [4, 3]])
    >>> matmul([1, 2], [3, 4])
    array(11)
    """
    a, b = (x if isinstance(x, Tensor) else np.asarray(x) for x in (a, b))
    if a.ndim == 0 or b.ndim == 0:
        raise ValueError(f"matmul of {describe(a)} and {describe(b)}: for a scalar write *")
    if a.shape[-1] != b.shape[-2 if b.ndim > 1 else 0]:
        raise ValueError(
            f"matmul of {describe(a)} and {describe(b)}: the left has rows of "
            f"{a.shape[-1]}, the right has columns of {b.shape[-2 if b.ndim > 1 else 0]}"
        )
    if b.ndim == 1:
        c = matmul(a, b.reshape(-1, 1))
        return c.reshape(c.shape[:-1])
    if a.ndim == 1:
        c = matmul(a.reshape(1, -1), b)
        return c.reshape((*c.shape[:-2], c.shape[-1]))
    try:
        return _matmul(a, b)
    except ValueError:  # their last two axes fit, so it is the stacks that do not
        raise ValueError(
            f"matmul of {describe(a)} and {describe(b)}: the axes before the last two do not "
            "broadcast"
        ) from None


@primitive
def _matmul(a, b, /):
    return (
        a @ b,
        lambda g, y: g @ b.mT,  # ∂L/∂A = G Bᵀ
        lambda g, y: a.mT @ g,  # ∂L/∂B = Aᵀ G
    )
