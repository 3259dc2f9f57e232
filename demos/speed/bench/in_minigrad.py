"""Demos · Speed: this engine's words for the rows, and its model, as a user writes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from attention import attention, causal_mask, fused_attention, gpt2
from demos.speed.bench.by_hand import Program
from demos.speed.bench.changes import Variant
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


def training(sizes: dict[str, Any], given: Given, variant: Variant) -> Program:
    """Return a training step of a small GPT as a user writes it, and one with its gradients."""
    model = gpt2(
        sizes["V"],
        sizes["T"],
        d_model=sizes["d"],
        num_heads=sizes["heads"],
        num_blocks=sizes["blocks"],
        attend=ATTENTION[variant.attend],
        recompute=variant.recomputed,
        rng=np.random.default_rng(0),
    ).astype(variant.dtype)
    model.load_state_dict({name: given[name] for name in model.state_dict()})
    optimizer = Adam(model.parameters())
    rows = np.split(np.arange(sizes["B"]), variant.parts)

    def step() -> float:
        optimizer.zero_grad()
        loss = 0.0
        for part in rows:
            scores = model(given["words"][part])
            share = cross_entropy(scores, given["targets"][part]) / variant.parts
            share.backward()
            loss += share.item()
        optimizer.step()
        return loss

    def results() -> Given:
        losses = [step()]
        slopes = {name: p.grad.copy() for name, p in model.named_parameters()}
        return {"losses": np.array([*losses, step(), step()])} | slopes

    return step, results
