"""3.8 · The general product: einsum.

What does the matrix product become if tensors may have any number of axes? A product of any
tensors, summed over any axes. Every axis has a letter for its name, so no transpose is needed,
forward or backward.
"""

from functools import cache
from string import ascii_letters
from typing import Any

import numpy as np

from minigrad.engine.rules import primitive
from minigrad.engine.tensor import Tensor, as_operand
from minigrad.ops.elementwise import floats


def einsum(subscripts: str, *operands: Any) -> Tensor:
    """Products of elements, summed: every axis has a letter, and a letter not kept is summed over.

        "ij,jk->ik"   Cᵢₖ = Σⱼ Aᵢⱼ Bⱼₖ

    Every element of C is a sum of products, and the derivative of a product by one factor is the
    product of the others. So the gradient of A is G = ∂L/∂C times the others, summed over every
    letter that A does not have: again an einsum, with the letters of A as its output.

        ∂L/∂Aᵢⱼ = Σₖ Gᵢₖ Bⱼₖ                      "ik,jk->ij"

    A letter that only A has was summed over all by itself; each of its places gets the same
    gradient, as in `sum`. "..." stands for leading axes, which broadcast; without "->" the letters
    that occur once are kept, in the order of the alphabet, all as in NumPy. A letter stands in one
    operand once ("ii" walks a diagonal, which is `np.diagonal` here). An axis of length 1 under a
    letter that is longer elsewhere is stretched, and its gradient summed. np.einsum may sum up one
    factor before it multiplies by the next: beside a 0, an infinite factor can then give ∞ in the
    place of NaN.

    >>> einsum("ij,j->i", [[1, 2], [3, 4]], [10, 1])
    array([12, 34])
    """
    if not isinstance(subscripts, str):
        raise TypeError('einsum takes its subscripts first, as text: einsum("ij,jk->ik", a, b)')
    tensors: Any = [as_operand(x, "einsum") for x in operands]
    if any(x.dtype.kind == "f" for x in tensors):  # NumPy would multiply two masks as booleans
        tensors = [floats(x) if x.dtype.kind == "b" else x for x in tensors]
    inputs, output = _spelled_out(subscripts, tuple([x.ndim for x in tensors]))
    return _einsum(*tensors, inputs=inputs, output=output)


@primitive(name="einsum")
def _einsum(*xs, inputs, output):
    try:
        y = np.einsum(f"{','.join(inputs)}->{output}", *xs)
    except ValueError:
        _lengths(inputs, [x.shape for x in xs])  # says it in the caller's letters
        raise
    shapes = [x.shape for x in xs]

    def vjp(k):
        others = (*xs[:k], *xs[k + 1 :])

        def of_this(g, y):
            lengths = _lengths(inputs, shapes)
            # The gradient has the letters of this factor that g or another factor has, too. An
            # axis of length 1 that was stretched is summed over.
            terms = [output, *inputs[:k], *inputs[k + 1 :]]
            own = dict(zip(inputs[k], shapes[k], strict=True))
            kept = "".join(
                [c for c, n in own.items() if n == lengths[c] and any(c in t for t in terms)]
            )
            found = np.einsum(f"{','.join(terms)}->{kept}", g, *others)
            found = found[tuple([slice(None) if c in kept else None for c in own])]
            return np.broadcast_to(found, shapes[k])

        return of_this

    return y, *[vjp(k) for k in range(len(xs))]


# ---------------------------------------------------- A first reading may stop here.
# What follows: how subscripts are read.


def _lengths(inputs, shapes):
    """Return the length of each letter's axis; length 1 is stretched to the others' length."""
    lengths = {}
    for letters, shape in zip(inputs, shapes, strict=True):
        for c, n in zip(letters, shape, strict=True):
            if n != 1 and lengths.get(c, 1) not in (1, n):
                raise ValueError(f"axis {c!r} has length {lengths[c]} and length {n}")
            lengths[c] = n if n != 1 else lengths.get(c, 1)
    return lengths


@cache
def _spelled_out(subscripts, ndims):
    """Return the letters of each operand and of the output, with letters in the place of "...".

    >>> _spelled_out("...ij,jk", (3, 2))
    (('Zij', 'jk'), 'Zik')
    """
    np.einsum(subscripts, *[np.ones((1,) * n) for n in ndims])  # refuses what cannot be read
    left, arrow, output = subscripts.replace(" ", "").partition("->")
    inputs = left.split(",")
    free = [c for c in ascii_letters if c not in subscripts]
    most = 0
    for k, (letters, ndim) in enumerate(zip(inputs, ndims, strict=True)):
        extra = ndim - len(letters.replace("...", ""))
        most = max(most, extra)
        inputs[k] = letters.replace("...", "".join(free[len(free) - extra :]))
    batch = "".join(free[len(free) - most :])
    if arrow:
        output = output.replace("...", batch)
    else:
        every = "".join(inputs)
        output = batch + "".join(sorted(c for c in set(every) - {*batch} if every.count(c) == 1))
    if any(len(set(letters)) < len(letters) for letters in inputs):
        raise ValueError(f"{subscripts!r} has a letter twice in one operand: use np.diagonal")
    return tuple(inputs), output
