"""Demos · Speed: PyTorch's words for the rows, and its model, in eager mode, as its users write.

Matrices are stored as nn.Linear stores them, attention is composed of the same operations as ours,
and `F.scaled_dot_product_attention` is the variant called "in blocks". Nothing is compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import tensor as constant

from demos.speed.bench.rows import Given

__all__ = ["constant"]


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


def in_blocks(q: Any, k: Any, v: Any, *, mask: Any) -> torch.Tensor:
    """Call PyTorch's own attention. Each mask of a row is causal, and it takes a word for that."""
    return F.scaled_dot_product_attention(q, k, v, is_causal=mask is not None)


ATTENTION = {"": composed, "in blocks": in_blocks}


def is_linear(name: str, x: Any) -> bool:
    """Return True for the weights of a linear layer, and False for the rows of an embedding."""
    return x.ndim == 2 and name.split(".")[0] not in ("tokens", "positions")


def gpt(sizes: dict[str, Any], given: Given, attend: Any) -> tuple[Callable[[], Any], Any, Any]:
    """Return the loss of a batch, the gradients by their names, and Adam."""
    words, targets = torch.tensor(given["words"]), torch.tensor(given["targets"])
    mask = causal_mask(sizes["T"])
    p = {
        name: leaf(np.ascontiguousarray(x.T) if is_linear(name, x) else x)
        for name, x in given.items()
        if x.dtype == np.float32
    }

    def linear(x: Any, name: str) -> torch.Tensor:
        return F.linear(x, p[f"{name}.weight"], p[f"{name}.bias"])

    def norm(x: Any, name: str) -> torch.Tensor:
        return F.layer_norm(x, x.shape[-1:], p[f"{name}.gain"], p[f"{name}.bias"], 1e-5)

    def heads(x: Any, name: str) -> torch.Tensor:  # (B, T, d) → (B, H, T, d_k)
        B, T, _ = x.shape
        return linear(x, name).view(B, T, sizes["heads"], -1).transpose(1, 2)

    def loss() -> torch.Tensor:
        x = F.embedding(words, p["tokens.weight"]) + p["positions.weight"]
        for i in range(sizes["blocks"]):
            block = f"blocks.{i}"
            n = norm(x, f"{block}.norm_attention")
            q, k, v = (heads(n, f"{block}.attention.w_{each}") for each in "qkv")
            y = attend(q, k, v, mask=mask).transpose(1, 2).reshape(x.shape)
            x = x + linear(y, f"{block}.attention.w_o")
            h = linear(norm(x, f"{block}.norm_feed_forward"), f"{block}.feed_forward.w_1")
            x = x + linear(F.gelu(h, approximate="tanh"), f"{block}.feed_forward.w_2")
        logits = norm(x, "norm") @ p["tokens.weight"].mT
        return F.cross_entropy(logits.view(-1, sizes["V"]), targets.view(-1))

    def slopes() -> Given:
        found = {name: array(x.grad.clone()) for name, x in p.items()}
        return {name: g.T if is_linear(name, g) else g for name, g in found.items()}

    return loss, slopes, torch.optim.Adam(p.values())
