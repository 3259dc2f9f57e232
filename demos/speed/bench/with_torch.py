"""Demos · Speed: the rows in PyTorch's eager mode, in the same steps, as its users write them.

Matrices are stored as nn.Linear stores them, attention is composed of the same operations as ours,
and `F.scaled_dot_product_attention` is the variant called "fused". Nothing is compiled.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from demos.speed.bench.by_hand import Program
from demos.speed.bench.rows import Given


def versions() -> dict[str, str]:
    """Return the version of the measured framework, with its BLAS."""
    found = re.search(r"oneAPI (Math Kernel Library) Version (\S+)-", torch.__config__.show())
    inside = f"MKL {found[2]}" if found else "another BLAS than MKL"
    return {"torch": f"{torch.__version__} ({inside}, {torch.backends.cpu.get_cpu_capability()})"}


def limit_threads(threads: int) -> None:
    """Set the number of threads in PyTorch's own pool."""
    torch.set_num_threads(threads)


def leaves(given: Given, names: Any) -> list[torch.Tensor]:
    """Return tensors that get a gradient."""
    return [torch.tensor(given[name], requires_grad=True) for name in names]


def chain(sizes: dict[str, Any], x: torch.Tensor, others: list[Any], word: Any) -> Program:
    """Apply one operation, `word`, many times in a row, and then go back."""

    def step() -> Given:
        y = x
        for _ in range(sizes["nodes"]):
            y = word(y)
        for each in (x, *others):
            each.grad = None
        y.sum().backward()
        found = {name: each.grad for name, each in zip("xw", (x, *others), strict=False)}
        return {"y": y.detach()} | found

    return step, lambda: arrays(step())


def arrays(found: Any) -> Given:
    """Return the tensors as NumPy's arrays."""
    return {name: x.numpy() for name, x in found.items()}


def products(sizes: dict[str, Any], given: Given) -> Program:
    """Multiply by w in each step."""
    x, w = leaves(given, "xw")
    return chain(sizes, x, [w], lambda y: y * w)


def sums(sizes: dict[str, Any], given: Given) -> Program:
    """Add 1 in each step."""
    (x,) = leaves(given, "x")
    return chain(sizes, x, [], lambda y: y + 1.0)


def composed(q: Any, k: Any, v: Any, mask: Any, causal: bool) -> torch.Tensor:
    """Return softmax(Q Kᵀ / √d_k) V, step by step."""
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return scores.softmax(-1) @ v


def fused(q: Any, k: Any, v: Any, mask: Any, causal: bool) -> torch.Tensor:
    """Call PyTorch's own attention."""
    return F.scaled_dot_product_attention(q, k, v, is_causal=causal)


def causal_mask(T: int) -> torch.Tensor:
    """Return a mask (T, T) that is True where a position may look."""
    return torch.ones((T, T), dtype=torch.bool).tril()


def attend(function: Any) -> Any:
    """Return the program of the rows of attention."""

    def program(sizes: dict[str, Any], given: Given) -> Program:
        q, k, v = leaves(given, "qkv")
        g, causal = torch.tensor(given["g"]), sizes["causal"]
        mask = causal_mask(sizes["shape"][-2]) if causal else None

        def step() -> Any:
            y = function(q, k, v, mask, causal)
            q.grad = k.grad = v.grad = None
            y.backward(g)
            return {"y": y.detach(), "q": q.grad, "k": k.grad, "v": v.grad}

        return step, lambda: arrays(step())

    return program


def is_linear(name: str, x: Any) -> bool:
    """Return True for the weights of a linear layer, and False for the rows of an embedding."""
    return x.ndim == 2 and name.split(".")[0] not in ("tokens", "positions", "kinds")


def weights(given: Given, *, requires_grad: bool) -> dict[str, torch.Tensor]:
    """Return the parameters; those of a linear layer transposed, as nn.Linear has them."""
    found = {}
    for name, x in given.items():
        if x.dtype == np.float32:
            p = torch.tensor(np.ascontiguousarray(x.T) if is_linear(name, x) else x)
            found[name] = p.requires_grad_(requires_grad)
    return found


def linear(p: dict[str, torch.Tensor], x: Any, name: str) -> torch.Tensor:
    """x W + b"""
    return F.linear(x, p[f"{name}.weight"], p.get(f"{name}.bias"))


def layer_norm(p: dict[str, torch.Tensor], x: Any, name: str, eps: float = 1e-5) -> torch.Tensor:
    """(x - μ)/σ ⊙ gain + bias"""
    return F.layer_norm(x, x.shape[-1:], p[f"{name}.gain"], p[f"{name}.bias"], eps)


def heads_of(p: Any, x: Any, block: str, H: int) -> list[torch.Tensor]:
    """Return queries, keys and values.   (B, T, d) → 3 times (B, H, T, d_k)"""
    B, T, _ = x.shape
    return [
        linear(p, x, f"{block}.attention.w_{each}").view(B, T, H, -1).transpose(1, 2)
        for each in "qkv"
    ]


def training(function: Any) -> Any:
    """Return the program of a training step."""

    def program(sizes: dict[str, Any], given: Given) -> Program:
        p = weights(given, requires_grad=True)
        V, B, T, d, H = (sizes[name] for name in ("V", "B", "T", "d", "heads"))
        words, targets = torch.tensor(given["words"]), torch.tensor(given["targets"])
        optimizer, mask = torch.optim.Adam(p.values()), causal_mask(T)

        def forward() -> torch.Tensor:
            x = F.embedding(words, p["tokens.weight"]) + p["positions.weight"]
            for i in range(sizes["blocks"]):
                block = f"blocks.{i}"
                h = layer_norm(p, x, f"{block}.norm_attention")
                y = function(*heads_of(p, h, block, H), mask, True)
                y = y.transpose(1, 2).reshape(B, T, d)
                x = x + linear(p, y, f"{block}.attention.w_o")
                h = linear(
                    p, layer_norm(p, x, f"{block}.norm_feed_forward"), f"{block}.feed_forward.w_1"
                )
                h = F.gelu(h, approximate="tanh")
                x = x + linear(p, h, f"{block}.feed_forward.w_2")
            logits = layer_norm(p, x, "norm") @ p["tokens.weight"].mT
            return F.cross_entropy(logits.view(-1, V), targets.view(-1))

        def step() -> float:
            loss = forward()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss.item()

        def results() -> Given:
            losses = [step()]
            slopes = arrays({name: x.grad.clone() for name, x in p.items()})
            found = {name: g.T if is_linear(name, g) else g for name, g in slopes.items()}
            return {"losses": np.array([*losses, step(), step()])} | found

        return step, results

    return program


def second_order(sizes: dict[str, Any], given: Given) -> Program:
    """Return the program of the gradient of a gradient's length."""
    x, w = torch.tensor(given["x"]), leaves(given, ("w_1", "w_2"))

    def step() -> Any:
        loss = ((torch.tanh(x @ w[0]) @ w[1]) ** 2).mean()
        slopes = torch.autograd.grad(loss, w, create_graph=True)
        return torch.autograd.grad(0.5 * sum((g * g).sum() for g in slopes), w)

    return step, lambda: arrays(dict(zip(("w_1", "w_2"), step(), strict=True)))


def encoder(function: Any) -> Any:
    """Return the program of BERT, without a record."""

    def program(sizes: dict[str, Any], given: Given) -> Program:
        p, H = weights(given, requires_grad=False), sizes["heads"]
        words = torch.tensor(given["words"])
        B, T = words.shape

        def step() -> torch.Tensor:
            with torch.no_grad():
                x = F.embedding(words, p["tokens.weight"]) + p["positions.weight"][:T]
                x = layer_norm(p, x + p["kinds.weight"][0], "norm", 1e-12)
                for i in range(sizes["blocks"]):
                    block = f"encoder.blocks.{i}"
                    y = function(*heads_of(p, x, block, H), None, False)
                    y = linear(p, y.transpose(1, 2).reshape(B, T, -1), f"{block}.attention.w_o")
                    x = layer_norm(p, x + y, f"{block}.norm_attention", 1e-12)
                    h = F.gelu(linear(p, x, f"{block}.feed_forward.w_1"))
                    h = linear(p, h, f"{block}.feed_forward.w_2")
                    x = layer_norm(p, x + h, f"{block}.norm_feed_forward", 1e-12)
                return x

        return step, lambda: {"y": step().numpy()}

    return program


def generation(sizes: dict[str, Any], given: Given) -> Program:
    """Return a program that appends the best next token, keys and values in buffers made once."""
    p = weights(given, requires_grad=False)
    d, H, H_kv = (sizes[name] for name in ("d", "heads", "kv_heads"))
    d_k, group = d // H, H // H_kv
    longest = sizes["prompt"] + sizes["tokens"]
    places = torch.arange(longest)[:, None]
    angles = places / 10_000.0 ** (torch.arange(0, d_k, 2, dtype=torch.float64) / d_k)
    cos, sin = angles.cos().float(), angles.sin().float()
    caches = [[torch.empty(1, H_kv, longest, d_k) for _ in "kv"] for _ in range(sizes["blocks"])]
    prompt = torch.tensor(given["words"])

    def norm(x: Any, name: str) -> torch.Tensor:
        return F.rms_norm(x, (d,), p[f"{name}.gain"], 1e-5)

    def turned(x: Any, start: int) -> torch.Tensor:
        T = x.shape[-2]
        a, b = x[..., 0::2], x[..., 1::2]
        c, s = cos[start : start + T], sin[start : start + T]
        return torch.stack([a * c - b * s, a * s + b * c], -1).flatten(-2)

    def scores(words: Any, start: int) -> torch.Tensor:
        T = words.shape[1]
        end = start + T
        x = F.embedding(words, p["tokens.weight"])
        mask = causal_mask(T) if start == 0 else None
        for i, (keys, values) in enumerate(caches):
            block = f"blocks.{i}"
            h = norm(x, f"{block}.norm_attention")
            q, k, v = (
                linear(p, h, f"{block}.attention.w_{each}").view(1, T, -1, d_k).transpose(1, 2)
                for each in "qkv"
            )
            keys[:, :, start:end], values[:, :, start:end] = turned(k, start), v
            k, v = (x[:, :, :end].repeat_interleave(group, 1) for x in (keys, values))
            y = composed(turned(q, start), k, v, mask, False).transpose(1, 2).reshape(1, T, d)
            x = x + linear(p, y, f"{block}.attention.w_o")
            h, m = norm(x, f"{block}.norm_feed_forward"), f"{block}.feed_forward"
            h = F.silu(linear(p, h, f"{m}.w_1")) * linear(p, h, f"{m}.w_3")
            x = x + linear(p, h, f"{m}.w_2")
        return linear(p, norm(x, "norm")[:, -1], "head")

    def step() -> Any:
        with torch.no_grad():
            words, found = prompt, scores(prompt, 0)
            for _ in range(sizes["tokens"] - 1):
                words = torch.cat([words, found.argmax(-1, keepdim=True)], 1)
                found = scores(words[:, -1:], words.shape[1] - 1)
            return {"words": torch.cat([words, found.argmax(-1, keepdim=True)], 1), "logits": found}

    return step, lambda: arrays(step())


PROGRAMS: dict[str, dict[str, Any]] = {
    "products": {"": products},
    "sums": {"": sums},
    "attention": {"": attend(composed), "fused": attend(fused)},
    "step": {"": training(composed), "fused": training(fused)},
    "second_order": {"": second_order},
    "encoder": {"": encoder(composed)},
    "generation": {"": generation},
}
