"""Demos · Speed: this engine's words for the rows, and its models, as a user writes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import minigrad as mg
from attention import attention, causal_mask, fused_attention, generate
from demos.speed.bench.by_hand import Program
from demos.speed.bench.rows import Given, model
from minigrad import gradients, no_grad
from minigrad.optim import Adam

__all__ = ["causal_mask", "gradients", "no_grad"]
ATTENTION = {"": attention, "fused": fused_attention}
constant, tanh = np.asarray, np.tanh


def limit_threads(threads: int) -> None:
    """Do nothing: BLAS has read its number of threads from the environment."""


def leaf(x: Any) -> mg.Tensor:
    """Return a tensor that gets a gradient."""
    return mg.Tensor(x, requires_grad=True)


def array(x: Any) -> Any:
    """Return a tensor, or a gradient, as NumPy's array."""
    return x.data if isinstance(x, mg.Tensor) else x


def loaded(kind: str, sizes: dict[str, Any], given: Given, **options: Any) -> Any:
    """Return a model with the row's weights."""
    made = model(kind, sizes, **options)
    for name, p in made.named_parameters():
        p.data = given[name]
    return made


def gpt(sizes: dict[str, Any], given: Given, attend: Any) -> tuple[Callable[[], Any], Any, Any]:
    """Return the loss of a batch, the gradients by their names, and Adam."""
    made = loaded("step", sizes, given, attend=attend)
    return (
        lambda: mg.cross_entropy(made(given["words"]), given["targets"]),
        lambda: {name: p.grad.copy() for name, p in made.named_parameters()},
        Adam(made.parameters()),
    )


def bert(sizes: dict[str, Any], given: Given) -> Callable[[], Any]:
    """Return the reading of the words."""
    made = loaded("encoder", sizes, given)
    return lambda: made(given["words"])


def llama(sizes: dict[str, Any], given: Given) -> Program:
    """Return `generate` with a cache."""
    made = loaded("generation", sizes, given)

    def step() -> Any:
        return generate(made, given["words"], sizes["tokens"], temperature=0.0)

    def results() -> Given:
        words = step()
        with no_grad():
            return {"words": words, "logits": made(words[:, :-1]).data[:, -1]}

    return step, results
