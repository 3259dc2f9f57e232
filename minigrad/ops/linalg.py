"""3.5 · Linear algebra: the matrix product, and the general one.

Attention is two matrix products with a softmax between them, so `matmul` does most of the work
of the project. Where do the two transposes in its derivative come from? Its docstring follows one
element. `einsum` is what remains when the rule is freed from two axes: products of any tensors,
summed over any axes, and a derivative that needs no transposes because it names them.
"""

from functools import cache
from string import ascii_letters
from typing import Any

import numpy as np

from minigrad.rules import primitive
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


def einsum(subscripts: str, *operands: Any, optimize: Any = False) -> Tensor:
    """Products of elements, summed: every axis has a letter, and a letter not kept is summed over.

        "ij,jk->ik"   Cᵢₖ = Σⱼ Aᵢⱼ Bⱼₖ

    For fixed letters, y is a sum of products, and ∂y/∂A is the product of the other factors. So
    the gradient of A is g times the others, summed over every letter that A does not have: again
    an einsum, with the letters of A as its output.

        ∂L/∂Aᵢⱼ = Σₖ Gᵢₖ Bⱼₖ                      "ik,jk->ij"

    A letter that only A has was summed over all by itself; each of its places gets the same
    gradient, as in `sum`. A letter that stands twice in one operand ("ii") walks its diagonal:
    that diagonal is picked first (chapter 3.3), so the rule never sees it. "..." stands for
    leading axes, which broadcast; without "->" the letters that occur once are kept, in the order
    of the alphabet, all as in NumPy. So is `optimize=True`, which is faster on large operands.

    >>> einsum("ij,j->i", [[1, 2], [3, 4]], [10, 1])
    array([12, 34])
    >>> einsum("ii", [[1, 2], [3, 4]])                      # the trace
    array(5)
    """
    if not isinstance(subscripts, str):
        raise TypeError('einsum takes its subscripts first, as text: einsum("ij,jk->ik", a, b)')
    tensors = [x if isinstance(x, Tensor) else np.asarray(x) for x in operands]
    *inputs, output = _spelled_out(subscripts, tuple([x.ndim for x in tensors]))
    for k, letters in enumerate(inputs):
        if len(set(letters)) < len(letters):
            inputs[k], tensors[k] = _diagonal(letters, tensors[k])
    return _einsum(*tensors, inputs=tuple(inputs), output=output, optimize=optimize)


@primitive
def _einsum(*xs, inputs, output, optimize=False):
    sizes = {}
    for letters, x in zip(inputs, xs, strict=True):
        for c, n in zip(letters, x.shape, strict=True):
            if n != 1 and sizes.setdefault(c, n) != n:
                raise ValueError(f"axis {c!r} has length {sizes[c]} and length {n}")

    def vjp(k):
        others = [*inputs[:k], *inputs[k + 1 :]]
        lengths = dict(zip(inputs[k], xs[k].shape, strict=True))
        # g and the other factors say what A's letters get. Those that A has alone are not among
        # them, and an axis of length 1 that was stretched to another's length is summed.
        said = {c: c in output or any(c in letters for letters in others) for c in lengths}
        kept = "".join([c for c, n in lengths.items() if said[c] and n == sizes.get(c, 1)])
        terms = ",".join([output, *others])

        def of_this(g, y):
            share = np.einsum(f"{terms}->{kept}", g, *xs[:k], *xs[k + 1 :], optimize=optimize)
            share = share.reshape([n if c in kept else 1 for c, n in lengths.items()])
            return np.broadcast_to(share, tuple(lengths.values()))

        return of_this

    return (
        np.einsum(f"{','.join(inputs)}->{output}", *xs, optimize=optimize),
        *[vjp(k) for k in range(len(xs))],
    )


@cache
def _spelled_out(subscripts, ndims):
    """The letters of each operand and of the output, with letters in the place of "...".

    >>> _spelled_out("...ij,jk", (3, 2))
    ('Zij', 'jk', 'Zik')
    """
    left, arrow, output = subscripts.replace(" ", "").partition("->")
    inputs = left.split(",")
    if len(inputs) != len(ndims):
        raise ValueError(
            f"einsum {subscripts!r} names {len(inputs)} operands, but got {len(ndims)}"
        )
    free = [c for c in ascii_letters if c not in subscripts]
    most = 0
    for k, (letters, ndim) in enumerate(zip(inputs, ndims, strict=True)):
        named = letters.replace("...", "", 1)
        if named and not (named.isascii() and named.isalpha()):
            raise ValueError(f"einsum {subscripts!r}: {letters!r} is not letters and one ellipsis")
        extra = ndim - len(named)
        if extra < 0 or (extra and named == letters):
            raise ValueError(
                f"einsum {subscripts!r}: {letters!r} names {len(named)} axes, but operand {k} "
                f"has {ndim}"
            )
        most = max(most, extra)
        inputs[k] = letters.replace("...", "".join(free[len(free) - extra :]))
    batch = "".join(free[len(free) - most :])
    if arrow:
        output = output.replace("...", batch)
    else:
        every = "".join(inputs)
        output = batch + "".join(sorted(c for c in set(every) - {*batch} if every.count(c) == 1))
    if len(set(output)) < len(output) or not set(output) <= set("".join(inputs)):
        raise ValueError(
            f"einsum {subscripts!r}: the output names letters of the operands, each once"
        )
    return (*inputs, output)


def _diagonal(letters, x):
    """Axes with the same letter become one: the places where their indices are equal.

    >>> _diagonal("iji", np.arange(8).reshape(2, 2, 2))
    ('ij', array([[0, 2],
                  [5, 7]]))
    """
    once = "".join(dict.fromkeys(letters))
    lengths = {}
    for c, n in zip(letters, x.shape, strict=True):
        if n != 1 and lengths.setdefault(c, n) != n:
            raise ValueError(f"einsum: axis {c!r} has length {lengths[c]} and length {n}")
    index = [
        np.arange(n).reshape([-1 if c == other else 1 for other in once])
        for c, n in zip(letters, x.shape, strict=True)
    ]
    return once, x[tuple(index)]
