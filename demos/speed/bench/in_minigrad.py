"""Demos · Speed: this engine's words for the rows, and its model, as a user writes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from attention import attention, causal_mask, fused_attention
from demos.speed.bench.rows import Given, model
from minigrad import Tensor, cross_entropy
from minigrad.optim import Adam

__all__ = ["causal_mask"]
ATTENTION = {"": attention, "in blocks": fused_attention}
constant = np.asarray


def leaf(x: Any) -> Tensor:
    """Return a tensor that gets a gradient."""
    return Tensor(x, requires_grad=True)


def array(x: Any) -> Any:
    """Return a tensor, or a gradient, as NumPy's array."""
    return x.data if isinstance(x, Tensor) else x


def gpt(sizes: dict[str, Any], given: Given, attend: Any) -> tuple[Callable[[], Any], Any, Any]:
    """Return the loss of a batch, the gradients by their names, and Adam."""
    made = model(sizes, attend=attend)
    for name, p in made.named_parameters():
        p.data = given[name]
    return (
        lambda: cross_entropy(made(given["words"]), given["targets"]),
        lambda: {name: p.grad.copy() for name, p in made.named_parameters()},
        Adam(made.parameters()),
    )
