"""What recording costs: `python -m tests.benchmark`.

Every figure is a comparison of two things timed in turn, A B A B …, in one run: on a machine whose
speed drifts only the pairs mean something. First each operation on 4 × 4 arrays, recorded, against
NumPy's own call; there the arithmetic is nothing, and what is left is the price of the record.
Then a forward and backward pass through a chain of 1,000 nodes, against PyTorch where it is
installed. Then attention at a size where the arithmetic counts, against the same in NumPy by hand.
"""

from __future__ import annotations

import gc
import time

import numpy as np

import minigrad as mg
from attention import attention
from minigrad import Tensor

random = np.random.default_rng(0)
A, B = random.uniform(0.5, 1.5, (2, 4, 4))
PLACES = np.array([2, 0, 2])

# name: (what minigrad does, what NumPy does, primitives in it)
OPERATIONS = {
    "add": (lambda a, b: a + b, None, 1),
    "multiply": (lambda a, b: a * b, None, 1),
    "multiply by a number": (lambda a, b: a * 2.0, None, 1),
    "divide": (lambda a, b: a / b, None, 1),
    "power": (lambda a, b: a**2, None, 1),
    "exp": (lambda a, b: np.exp(a), None, 1),
    "tanh": (lambda a, b: np.tanh(a), None, 1),
    "maximum": (lambda a, b: np.maximum(a, b), None, 1),
    "where": (lambda a, b: np.where(A > 1, a, b), None, 1),
    "reshape": (lambda a, b: a.reshape(16), None, 1),
    "swapaxes": (lambda a, b: a.swapaxes(0, 1), None, 1),
    "a[1]": (lambda a, b: a[1], None, 1),
    "a[[2, 0, 2]]": (lambda a, b: a[PLACES], None, 1),
    "concatenate": (lambda a, b: np.concatenate([a, b]), None, 1),
    "sum": (lambda a, b: a.sum(), None, 1),
    "sum, axis=0": (lambda a, b: a.sum(axis=0), None, 1),
    "mean": (lambda a, b: a.mean(), None, 1),
    "max": (lambda a, b: a.max(axis=-1), None, 1),
    "cumsum": (lambda a, b: a.cumsum(axis=0), None, 1),
    "matmul": (lambda a, b: a @ b, None, 1),
    "einsum": (lambda a, b: np.einsum("ij,jk->ik", a, b), None, 1),
    "softmax": (
        lambda a, b: mg.softmax(a),
        lambda a, b: (
            (e := np.exp(a - a.max(axis=-1, keepdims=True))) / e.sum(axis=-1, keepdims=True)
        ),
        1,
    ),
    "square": (lambda a, b: np.square(a), lambda a, b: a * a, 1),
    "minimum": (lambda a, b: np.minimum(a, b), lambda a, b: -np.maximum(-a, -b), 4),
    "silu": (lambda a, b: mg.silu(a), lambda a, b: a * np.exp(-np.logaddexp(0, -a)), 2),
    "stack": (lambda a, b: np.stack([a, b]), lambda a, b: np.stack([a, b]), 3),
    "var": (
        lambda a, b: a.var(),
        lambda a, b: np.square(a - a.mean(axis=None, keepdims=True)).sum() / 16,
        5,
    ),
}


def paired(first, second, runs: int = 41, calls: int = 200) -> tuple[float, float]:
    """Seconds a call of each: the fastest of runs that took turns (noise only ever adds)."""
    times: tuple[list[float], list[float]] = ([], [])
    gc.collect()
    gc.disable()
    for _ in range(runs):
        for function, kept in zip((first, second), times, strict=True):
            start = time.perf_counter()
            for _ in range(calls):
                function()
            kept.append((time.perf_counter() - start) / calls)
    gc.enable()
    return min(times[0]), min(times[1])


def recording() -> None:
    """The price of the record, operation by operation."""
    a, b = (Tensor(x, requires_grad=True) for x in (A, B))
    print("recorded forward pass on 4 × 4, in microseconds")
    print(f"{'':24}{'NumPy':>8}{'minigrad':>10}{'over it':>9}{'a primitive':>13}")
    for name, (ours, theirs, primitives) in OPERATIONS.items():
        plain = theirs or ours
        ours_s, numpy_s = paired(lambda ours=ours: ours(a, b), lambda plain=plain: plain(A, B))
        over = (ours_s - numpy_s) * 1e6
        print(
            f"{name:24}{numpy_s * 1e6:8.2f}{ours_s * 1e6:10.2f}{over:9.2f}{over / primitives:13.2f}"
        )


def chain(nodes: int = 1000) -> None:
    """Forward and backward through a chain of multiplications."""
    a, b = (Tensor(x, requires_grad=True) for x in (A, B))

    def ours() -> None:
        y = a
        for _ in range(nodes):
            y = y * b
        y.sum().backward()

    try:
        import torch
    except ImportError:
        print("\nno comparison with PyTorch: it is not installed")
        return
    torch.set_num_threads(1)
    c, d = (torch.tensor(x, requires_grad=True) for x in (A, B))

    def theirs() -> None:
        y = c
        for _ in range(nodes):
            y = y * d
        y.sum().backward()

    ours_s, torch_s = paired(ours, theirs, runs=15, calls=2)
    print(
        f"\nforward and backward through {nodes} multiplications of 4 × 4: "
        f"{ours_s / nodes * 1e6:.1f} µs a node, PyTorch {torch_s / nodes * 1e6:.1f}, "
        f"ratio {ours_s / torch_s:.2f}"
    )


def by_hand(q, k, v, g):
    """Attention and its gradients, written out in NumPy."""
    scale = 1 / np.sqrt(q.shape[-1])
    scores = scale * (q @ k.mT)
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    p = e / e.sum(axis=-1, keepdims=True)
    y, dv, dp = p @ v, p.mT @ g, g @ v.mT
    ds = p * (dp - (p * dp).sum(axis=-1, keepdims=True)) * scale
    return y, ds @ k, ds.mT @ q, dv


def large() -> None:
    """Attention forward and backward, where the arithmetic counts."""
    arrays = [random.standard_normal((8, 256, 64), dtype=np.float32) for _ in range(4)]
    q, k, v = (Tensor(x, requires_grad=True) for x in arrays[:3])

    def ours() -> None:
        attention(q, k, v).backward(arrays[3])
        q.grad = k.grad = v.grad = None

    ours_s, numpy_s = paired(ours, lambda: by_hand(*arrays), runs=15, calls=3)
    print(
        f"\nattention forward and backward, (8, 256, 64) in float32: {ours_s * 1e3:.1f} ms, "
        f"by hand in NumPy {numpy_s * 1e3:.1f}, ratio {ours_s / numpy_s:.2f}"
    )


if __name__ == "__main__":
    recording()
    chain()
    large()
