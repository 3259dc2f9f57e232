"""Demos · Speed: PyTorch's words for the rows, and its models, in eager mode, as its users write.

Matrices are stored as nn.Linear stores them, attention is composed of the same operations as ours,
and `F.scaled_dot_product_attention` is the variant called "fused". Nothing is compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import no_grad, tanh
from torch import tensor as constant
from torch.autograd import grad as gradients

from demos.speed.bench.by_hand import Program
from demos.speed.bench.rows import Given

__all__ = ["constant", "gradients", "no_grad", "tanh"]
limit_threads = torch.set_num_threads  # of its own pool


def leaf(x: Any) -> torch.Tensor:
    """Return a tensor that gets a gradient."""
    return torch.tensor(x, requires_grad=True)


def array(x: torch.Tensor) -> Any:
    """Return a tensor as NumPy's array."""
    return x.detach().numpy()


def causal_mask(T: int) -> torch.Tensor:
    """Return a mask (T, T) that is True where a position may look."""
    return torch.ones((T, T), dtype=torch.bool).tril()


def composed(q: Any, k: Any, v: Any, *, mask: Any) -> torch.Tensor:
    """Return softmax(Q Kᵀ / √d_k) V, step by step."""
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return scores.softmax(-1) @ v


def fused(q: Any, k: Any, v: Any, *, mask: Any) -> torch.Tensor:
    """Call PyTorch's own attention. Each mask of a row is causal, and it takes a word for that."""
    return F.scaled_dot_product_attention(q, k, v, is_causal=mask is not None)


ATTENTION = {"": composed, "fused": fused}


class Weights:
    """A row's weights by their names, and the layers that use them."""

    def __init__(self, given: Given, eps: float, *, requires_grad: bool = False) -> None:
        self.named, self.eps = {}, eps
        for name, x in given.items():
            if x.dtype == np.float32:
                p = torch.tensor(np.ascontiguousarray(x.T) if is_linear(name, x) else x)
                self.named[name] = p.requires_grad_(requires_grad)

    def embedding(self, words: Any, name: str) -> torch.Tensor:
        """Return the words' rows."""
        return F.embedding(words, self.named[f"{name}.weight"])

    def linear(self, x: Any, name: str) -> torch.Tensor:
        """x W + b"""
        return F.linear(x, self.named[f"{name}.weight"], self.named.get(f"{name}.bias"))

    def norm(self, x: Any, name: str) -> torch.Tensor:
        """(x - μ)/σ ⊙ gain + bias, or x/√(mean(x²)) ⊙ gain where there is no bias"""
        gain, bias = self.named[f"{name}.gain"], self.named.get(f"{name}.bias")
        if bias is None:
            return F.rms_norm(x, x.shape[-1:], gain, self.eps)
        return F.layer_norm(x, x.shape[-1:], gain, bias, self.eps)

    def heads(self, x: Any, block: str, d_k: int) -> list[torch.Tensor]:
        """Return queries, keys and values.   (B, T, d) → 3 times (B, H, T, d_k)"""
        B, T, _ = x.shape
        projected = (self.linear(x, f"{block}.attention.w_{each}") for each in "qkv")
        return [each.view(B, T, -1, d_k).transpose(1, 2) for each in projected]

    def merged(self, y: Any, block: str) -> torch.Tensor:
        """Return the heads side by side, times w_o.   (B, H, T, d_k) → (B, T, d)"""
        B, _, T, _ = y.shape
        return self.linear(y.transpose(1, 2).reshape(B, T, -1), f"{block}.attention.w_o")


def is_linear(name: str, x: Any) -> bool:
    """Return True for the weights of a linear layer, and False for the rows of an embedding."""
    return x.ndim == 2 and name.split(".")[0] not in ("tokens", "positions", "kinds")


def gpt(sizes: dict[str, Any], given: Given, attend: Any) -> tuple[Callable[[], Any], Any, Any]:
    """Return the loss of a batch, the gradients by their names, and Adam."""
    p = Weights(given, 1e-5, requires_grad=True)
    words, targets = torch.tensor(given["words"]), torch.tensor(given["targets"])
    mask = causal_mask(sizes["T"])

    def loss() -> torch.Tensor:
        x = p.embedding(words, "tokens") + p.named["positions.weight"]
        for i in range(sizes["blocks"]):
            block = f"blocks.{i}"
            q, k, v = p.heads(
                p.norm(x, f"{block}.norm_attention"), block, sizes["d"] // sizes["heads"]
            )
            x = x + p.merged(attend(q, k, v, mask=mask), block)
            h = p.linear(p.norm(x, f"{block}.norm_feed_forward"), f"{block}.feed_forward.w_1")
            x = x + p.linear(F.gelu(h, approximate="tanh"), f"{block}.feed_forward.w_2")
        logits = p.norm(x, "norm") @ p.named["tokens.weight"].mT
        return F.cross_entropy(logits.view(-1, sizes["V"]), targets.view(-1))

    def slopes() -> Given:
        found = {name: array(x.grad.clone()) for name, x in p.named.items()}
        return {name: g.T if is_linear(name, g) else g for name, g in found.items()}

    return loss, slopes, torch.optim.Adam(p.named.values())


def bert(sizes: dict[str, Any], given: Given) -> Callable[[], Any]:
    """Return the reading of the words."""
    p, words = Weights(given, 1e-12), torch.tensor(given["words"])

    def read() -> torch.Tensor:
        x = p.embedding(words, "tokens") + p.named["positions.weight"][: words.shape[1]]
        x = p.norm(x + p.named["kinds.weight"][0], "norm")
        for i in range(sizes["blocks"]):
            block = f"encoder.blocks.{i}"
            y = composed(*p.heads(x, block, sizes["d"] // sizes["heads"]), mask=None)
            x = p.norm(x + p.merged(y, block), f"{block}.norm_attention")
            h = F.gelu(p.linear(x, f"{block}.feed_forward.w_1"))
            h = p.linear(h, f"{block}.feed_forward.w_2")
            x = p.norm(x + h, f"{block}.norm_feed_forward")
        return x

    return read


def llama(sizes: dict[str, Any], given: Given) -> Program:
    """Return a program that appends the best next token, keys and values in buffers made once."""
    p = Weights(given, 1e-5)
    d_k, group = sizes["d"] // sizes["heads"], sizes["heads"] // sizes["kv_heads"]
    longest = sizes["prompt"] + sizes["tokens"]
    places = torch.arange(longest)[:, None]
    angles = places / 10_000.0 ** (torch.arange(0, d_k, 2, dtype=torch.float64) / d_k)
    cos, sin = angles.cos().float(), angles.sin().float()
    shape = (sizes["blocks"], 2, 1, sizes["kv_heads"], longest, d_k)
    caches, prompt = torch.empty(shape), torch.tensor(given["words"])

    def turned(x: Any, here: slice) -> torch.Tensor:
        a, b = x[..., 0::2], x[..., 1::2]
        c, s = cos[here], sin[here]
        return torch.stack([a * c - b * s, a * s + b * c], -1).flatten(-2)

    def scores(words: Any, start: int) -> torch.Tensor:
        end = start + words.shape[1]
        here = slice(start, end)
        x = p.embedding(words, "tokens")
        mask = causal_mask(end) if start == 0 else None
        for i, (keys, values) in enumerate(caches):
            block, m = f"blocks.{i}", f"blocks.{i}.feed_forward"
            q, k, v = p.heads(p.norm(x, f"{block}.norm_attention"), block, d_k)
            keys[:, :, here], values[:, :, here] = turned(k, here), v
            k, v = (each[:, :, :end].repeat_interleave(group, 1) for each in (keys, values))
            x = x + p.merged(composed(turned(q, here), k, v, mask=mask), block)
            h = p.norm(x, f"{block}.norm_feed_forward")
            h = F.silu(p.linear(h, f"{m}.w_1")) * p.linear(h, f"{m}.w_3")
            x = x + p.linear(h, f"{m}.w_2")
        return p.linear(p.norm(x, "norm")[:, -1], "head")

    def step() -> dict[str, torch.Tensor]:
        with no_grad():
            words, found = prompt, scores(prompt, 0)
            for _ in range(sizes["tokens"] - 1):
                words = torch.cat([words, found.argmax(-1, keepdim=True)], 1)
                found = scores(words[:, -1:], words.shape[1] - 1)
            return {"words": torch.cat([words, found.argmax(-1, keepdim=True)], 1), "logits": found}

    return step, lambda: {name: array(x) for name, x in step().items()}
