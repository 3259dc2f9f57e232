"""3.5 · Linear algebra: the matrix product.

In chapter 0: `return a @ b, lambda g: g @ b.T, lambda g: a.T @ g`.

Where do the two transposes in the derivative of A B come from? Attention is two matrix products
with a softmax between them, so this rule does most of the work of the project. The docstring of
`matmul` follows one element of the product.

Exercise 10 of `python -m demos learn`: write the rule of a matrix product.
"""

import math
from typing import Any

import numpy as np

from minigrad.engine.rules import primitive
from minigrad.engine.slips import TURNED
from minigrad.engine.tensor import Tensor, as_operand, describe


def matmul(a: Any, b: Any) -> Tensor:
    """C = A B: every row of A against every column of B.   (…, n, k) · (…, k, m) → (…, n, m)

    Write one element of the product, and ask which outputs a single Aᵢₖ reaches:

        Cᵢⱼ = Σₗ Aᵢₗ Bₗⱼ        ∂Cᵢⱼ/∂Aᵢₖ = Bₖⱼ

    It reaches all elements of row i of C, and element j of this row with the slope Bₖⱼ. Its
    gradient gathers what comes back from the row, G = ∂L/∂C:

        ∂L/∂Aᵢₖ = Σⱼ Gᵢⱼ Bₖⱼ = Σⱼ Gᵢⱼ (Bᵀ)ⱼₖ        ∂L/∂A = G Bᵀ

    Likewise Bₖⱼ reaches all elements of column j of C, and element i of this column with the
    slope Aᵢₖ:

        ∂L/∂Bₖⱼ = Σᵢ Aᵢₖ Gᵢⱼ                        ∂L/∂B = Aᵀ G

    With n, k and m different the shapes allow no other product of the two: G is (n, m), so an
    (n, k) result needs (m, k) on the right, which is Bᵀ. Where broadcasting used one matrix for a
    whole stack, its gradient is summed over the stack.

    Axes before the last two are a stack of matrices and broadcast. A vector is treated as in
    NumPy: on the left it becomes a matrix with one row, on the right a matrix with one column, and
    the result loses the axis that was added. A scalar is refused. An `np.matrix` is an array here:
    write @ for its product, because * is elementwise.

    >>> matmul([[1, 2], [3, 4]], [[0, 1], [1, 0]])
    array([[2, 1],
           [4, 3]])
    >>> matmul([1, 2], [3, 4])
    array(11)
    """
    a, b = as_operand(a, "matmul"), as_operand(b, "matmul")
    if a.ndim < 2 or b.ndim < 2:
        return _of_a_vector(a, b)
    try:
        # (`_rows_matmul` is the same rule, and faster where a is a stack and b is one matrix)
        return _rows_matmul(a, b) if b.ndim == 2 < a.ndim else _matmul(a, b)
    except ValueError as error:
        unexplained = error
    _refuse_shapes(a, b)
    raise unexplained


@primitive(name="matmul")
def _matmul(a, b, /):
    return (
        a @ b,
        lambda g, y: g @ b.mT,  # ∂L/∂A = G Bᵀ
        lambda g, y: a.mT @ g,  # ∂L/∂B = Aᵀ G
    )


# ---------------------------------------------------- A first reading may stop here.
# What follows: vectors, a faster way for a stack times one matrix, and refusals.


def _of_a_vector(a: Any, b: Any) -> Tensor:
    """Return the product where *a* or b is a vector, which is taken for a row or a column."""
    _refuse_shapes(a, b)
    if b.ndim == 1:
        c = matmul(a, b.reshape(-1, 1))
        return c.reshape(c.shape[:-1])
    c = matmul(a.reshape(1, -1), b)
    return c.reshape((*c.shape[:-2], c.shape[-1]))


@primitive(name="matmul")
def _rows_matmul(a, b, /):
    """Multiply a stack *a* by one matrix b: all rows of a's matrices form one large matrix.

    One large product is several times faster than many small ones. Aᵀ G of the large matrices is
    already the sum over the stack; otherwise the engine would add up one gradient for each matrix.
    """
    (*stack, k), m = a.shape, b.shape[-1]
    n = math.prod(stack)
    rows = a.reshape(n, k)
    return (
        (rows @ b).reshape(*stack, m),
        lambda g, y: (g.reshape(n, m) @ b.mT).reshape(a.shape),
        lambda g, y: rows.mT @ g.reshape(n, m),
    )


def _refuse_shapes(a, b):
    """Raise ValueError, with the caller's shapes, if the product does not exist."""
    asked = f"matmul of {describe(a)} and {describe(b)}"
    if a.ndim == 0 or b.ndim == 0:
        raise ValueError(f"{asked}: for a scalar write *")
    rows, columns = a.shape[-1], b.shape[-2 if b.ndim > 1 else 0]
    if rows != columns:
        why = f"the left has rows of {rows}, the right has columns of {columns}"
        if (b.ndim > 2 and b.shape[0] == rows) or (a.ndim > 2 and a.shape[1] == columns):
            why += f" ({TURNED})"
        raise ValueError(f"{asked}: {why}")
    try:
        np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ValueError:
        raise ValueError(f"{asked}: the axes before the last two do not broadcast") from None
