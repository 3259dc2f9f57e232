"""What recording costs: `python -m tests.benchmark`.

Every figure is a comparison of two things timed in turn, A B A B …, in one run: on a machine whose
speed drifts only the pairs mean something. First each operation on 4 × 4 arrays, recorded, against
NumPy's own call; there the arithmetic is nothing, and what is left is the price of the record.
Then, against PyTorch where it is installed: chains of 1,000 products and of 100,000 sums, a
gradient of a gradient, and training steps of two small GPTs. Then attention at a size where the
arithmetic counts, against the same in NumPy by hand. Before two things are timed, their results are
compared.
"""

from __future__ import annotations

import gc
import time

import numpy as np

import minigrad as mg
from attention import attention, gpt2
from minigrad import Tensor, cross_entropy, gradients
from minigrad.optim import Adam

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    torch = None

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


def paired(
    first, second, runs: int = 41, calls: int = 200, collector: bool = False
) -> tuple[float, float]:
    """Seconds a call of each: the fastest of runs that took turns (noise only ever adds).

    Python's cycle collector runs when it likes, and is off unless it is what is measured.
    """
    times: tuple[list[float], list[float]] = ([], [])
    gc.collect()
    if not collector:
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


def against_torch(
    what: str, unit: str, ours, theirs, scale: float, runs: int, calls: int, collector: bool = False
) -> None:
    """One line: what took how long here and there."""
    ours_s, torch_s = paired(ours, theirs, runs, calls, collector)
    print(
        f"{what:58}{ours_s * scale:9.2f} {unit}, PyTorch {torch_s * scale:9.2f}, "
        f"ratio {ours_s / torch_s:.2f}"
    )


def chain(step, nodes: int, what: str, runs: int, collector: bool = False) -> None:
    """Forward and backward through a chain of one operation."""
    a, b = (Tensor(x, requires_grad=True) for x in (A, B))
    c, d = (torch.tensor(x, requires_grad=True) for x in (A, B))

    def through(first, second):
        def run():
            y = first
            for _ in range(nodes):
                y = step(y, second)
            first.grad = second.grad = None
            y.sum().backward()

        return run

    ours, theirs = through(a, b), through(c, d)
    ours(), theirs()
    np.testing.assert_allclose(a.grad, c.grad.numpy(), rtol=1e-10)
    against_torch(what, "µs a node", ours, theirs, 1e6 / nodes, runs, 1, collector)


def second_order() -> None:
    """The gradient of ½‖∇L‖² with respect to two weights of a small network."""
    shapes = [(32, 64), (64, 64), (64, 64)]
    x, *weights = [random.standard_normal(shape) / 8 for shape in shapes]
    w = [Tensor(each, requires_grad=True) for each in weights]
    v = [torch.tensor(each, requires_grad=True) for each in weights]
    data = torch.tensor(x)

    def ours():
        loss = ((np.tanh(x @ w[0]) @ w[1]) ** 2).mean()
        slopes = gradients(loss, w, create_graph=True)
        return gradients(0.5 * sum((g * g).sum() for g in slopes), w)

    def theirs():
        loss = ((torch.tanh(data @ v[0]) @ v[1]) ** 2).mean()
        slopes = torch.autograd.grad(loss, v, create_graph=True)
        return torch.autograd.grad(0.5 * sum((g * g).sum() for g in slopes), v)

    for g, h in zip(ours(), theirs(), strict=True):
        np.testing.assert_allclose(g, h.numpy(), rtol=1e-9)
    against_torch("gradient of ½‖∇L‖², tanh network (32, 64)", "ms", ours, theirs, 1e3, 21, 5)


def gpt_in_torch(p, words, num_heads: int):
    """GPT-2's forward pass, with the names and shapes of our parameters.   (B, T) → (B, T, V)"""

    def norm(x, name):
        return F.layer_norm(x, x.shape[-1:], p[f"{name}.gain"], p[f"{name}.bias"])

    def linear(x, name):
        return x @ p[f"{name}.weight"] + p[f"{name}.bias"]

    B, T = words.shape
    x = p["tokens.weight"][words] + p["positions.weight"][:T]
    d_model = x.shape[-1]
    mask = torch.ones((T, T), dtype=torch.bool).tril()
    for i in range(sum(name.endswith("norm_attention.gain") for name in p)):
        block = f"blocks.{i}"
        h = norm(x, f"{block}.norm_attention")
        q, k, v = (
            linear(h, f"{block}.attention.w_{each}").view(B, T, num_heads, -1).transpose(1, 2)
            for each in "qkv"
        )
        scores = (q @ k.mT / (d_model // num_heads) ** 0.5).masked_fill(~mask, -torch.inf)
        h = (scores.softmax(-1) @ v).transpose(1, 2).reshape(B, T, d_model)
        x = x + linear(h, f"{block}.attention.w_o")
        h = linear(norm(x, f"{block}.norm_feed_forward"), f"{block}.feed_forward.w_1")
        x = x + linear(F.gelu(h, approximate="tanh"), f"{block}.feed_forward.w_2")
    return norm(x, "norm") @ p["tokens.weight"].mT


def gpt_step(what: str, V: int, B: int, T: int, d_model: int, num_blocks: int) -> None:
    """One training step with Adam: forward, backward, update. All of it in float32."""
    model = gpt2(V, T, d_model=d_model, num_heads=4, num_blocks=num_blocks, rng=random)
    model.astype(np.float32)
    words, targets = random.integers(V, size=(2, B, T))
    p = {name: torch.tensor(x.data.copy()) for name, x in model.named_parameters()}
    for each in p.values():
        each.requires_grad_()
    optimizer, other = Adam(model.parameters()), torch.optim.Adam(p.values())
    theirs_words, theirs_targets = torch.tensor(words), torch.tensor(targets)

    def ours():
        loss = cross_entropy(model(words), targets).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    def theirs():
        logits = gpt_in_torch(p, theirs_words, 4)
        loss = F.cross_entropy(logits.reshape(-1, V), theirs_targets.reshape(-1))
        other.zero_grad()
        loss.backward()
        other.step()
        return loss.item()

    for _ in range(3):  # the second and third loss show that the steps were the same
        np.testing.assert_allclose(ours(), theirs(), rtol=1e-4)
    against_torch(what, "ms", ours, theirs, 1e3, 15, 1)


def with_pytorch() -> None:
    """The rows that need PyTorch, each with one thread."""
    if torch is None:
        print("\nno comparison with PyTorch: it is not installed")
        return
    torch.set_num_threads(1)
    print("\nforward and backward (to compare engines, set OPENBLAS_NUM_THREADS=1)")
    chain(lambda y, x: y * x, 1_000, "1,000 products of 4 × 4", runs=21)
    sums = "100,000 sums of a 4 × 4 and a number"
    chain(lambda y, x: y + 1.0, 100_000, sums, runs=3)
    chain(lambda y, x: y + 1.0, 100_000, f"{sums}, collector on", runs=3, collector=True)
    second_order()
    gpt_step("step of a toy GPT: V 16, B 64, T 16, d 64, 2 blocks", 16, 64, 16, 64, 2)
    gpt_step("step of a char-GPT: V 65, B 16, T 128, d 128, 4 blocks", 65, 16, 128, 128, 4)


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
    with_pytorch()
    large()
