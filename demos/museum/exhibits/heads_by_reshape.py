"""Demos · Museum: heads split by reshape without transpose.

This mistake is to reshape (T, H · d_k) to (H, T, d_k) in one step. The shape is right, all values
are there, and a test that reshapes back to the input passes. But a head now holds all features of
T/H positions instead of its own features of all, and each output depends on T/H tokens only.
"""

import numpy as np

from attention import attention
from minigrad import Tensor, gradients, scatter_add

REPAIR = (
    "Split the last axis first, (T, H, d_k), and then swap two axes. A reshape never moves one "
    "axis past another."
)


def broken(x, num_heads):  # (T, H · d_k) → (H, T, d_k)
    """Features become heads."""
    T, width = x.shape
    return x.reshape(num_heads, T, width // num_heads)


def repaired(x, num_heads):  # (T, H · d_k) → (H, T, d_k)
    """Features become heads."""
    T, width = x.shape
    return x.reshape(T, num_heads, width // num_heads).swapaxes(0, 1)


def merged(split, heads):
    """Each value of the heads, at the place from which `split` takes it.   → (T, H · d_k)"""
    H, T, d_k = heads.shape
    places = split(Tensor(np.arange(heads.size).reshape(T, H * d_k)), H).data
    return scatter_add(heads, (heads.size,), places).reshape(T, H * d_k)


def symptom(split, rng):
    """A mark in row t is an input of output t. Without a mask each output depends on all inputs."""
    x = Tensor(rng.standard_normal((6, 4)), requires_grad=True)
    heads = split(x, 2)
    y = merged(split, attention(heads, heads, heads))
    felt = [gradients(y[t].sum(), [x], retain_graph=True)[0].any(axis=-1) for t in range(6)]
    return {
        "shape of the heads": heads.shape,
        "split and merged, it is x again": bool((merged(split, heads).data == x.data).all()),
        "inputs that each output depends on": np.array(felt),
    }


def check(split, rng):
    """Compare in three loops: head h at position t is the h-th part of that position's features."""
    T, H, d_k = 5, 3, 2
    x = rng.standard_normal((T, H * d_k))
    heads = split(Tensor(x), H).data
    for h in range(H):
        for t in range(T):
            for i in range(d_k):
                assert heads[h, t, i] == x[t, h * d_k + i], f"head {h}, position {t} is wrong"
