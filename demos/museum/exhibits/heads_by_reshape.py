"""Demos · Museum: heads split by reshape without transpose.

Met where (T, H · d_k) is reshaped to (H, T, d_k) at once. The shape is right, all values are there,
and reshaping back gives the input: a test of the round trip passes. But a head now holds all the
features of T/H positions, not its own features of all, and nobody sees beyond T/H words.
"""

import numpy as np

from attention import attention
from minigrad import Tensor, gradients, scatter_add

REPAIR = (
    "Split the last axis where it stands, (T, H, d_k), and then swap two axes. A reshape never "
    "moves one axis past another."
)


def broken(x, num_heads):
    """Features become heads.   (T, H · d_k) → (H, T, d_k)"""
    T, width = x.shape
    return x.reshape(num_heads, T, width // num_heads)


def repaired(x, num_heads):
    """Features become heads.   (T, H · d_k) → (H, T, d_k)"""
    T, width = x.shape
    return x.reshape(T, num_heads, width // num_heads).swapaxes(0, 1)


def merged(split, heads):
    """Each value of the heads put back to where `split` takes it from.   → (T, H · d_k)"""
    H, T, d_k = heads.shape
    places = split(Tensor(np.arange(heads.size).reshape(T, H * d_k)), H).data
    return scatter_add(heads, (heads.size,), places).reshape(T, H * d_k)


def symptom(split, rng):
    """Row t shows by # which inputs output t feels. Without a mask it should be all of them."""
    x = Tensor(rng.standard_normal((6, 4)), requires_grad=True)
    heads = split(x, 2)
    y = merged(split, attention(heads, heads, heads))
    felt = [gradients(y[t].sum(), [x], retain_graph=True)[0].any(axis=-1) for t in range(6)]
    return {
        "shape of the heads": heads.shape,
        "split and merged, it is x again": bool((merged(split, heads).data == x.data).all()),
        "inputs that each output feels": np.array(felt),
    }


def check(split, rng):
    """Three nested loops: head h at position t is the h-th stretch of that position's features."""
    T, H, d_k = 5, 3, 2
    x = rng.standard_normal((T, H * d_k))
    heads = split(Tensor(x), H).data
    for h in range(H):
        for t in range(T):
            for i in range(d_k):
                assert heads[h, t, i] == x[t, h * d_k + i], f"head {h}, position {t} is wrong"
