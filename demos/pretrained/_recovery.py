"""Demos · Pretrained: can W_Q and W_K learn the scale that was taken away?

A model that was trained with 1/√d_k gets another scale, and its query and key projections alone
are trained on. All else is frozen. The two starts are equally far from the trained scale on a
logarithmic axis: 1/d_k is √d_k times smaller (too flat), and no scale √d_k times larger (too
sharp). There is an exact way back in both: W_Q times √d_k, or W_Q / √d_k.

The texts are the model's own, at temperature 1. So the trained weights are as good as weights can
be on them, and a loss above theirs is not for lack of knowledge.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from attention import GPT, generate
from demos.pretrained._loading import WeightsError, origin, tokenizer, writer
from minigrad import Tensor, cross_entropy, gradients, keep_memory, no_grad
from minigrad.optim import SGD, Adam

OPTIMIZERS = {"sgd": SGD, "adam": Adam}
LENGTH = 64  # tokens of a text
LEARNED, OTHERS, BATCH = 16, 8, 4  # texts: to learn from, to judge by, of one step
LOOKS = (0, 5, 10, 20, 40, 80)  # steps after which the loss on the other texts is taken


@dataclass(frozen=True)
class Recovery:
    """One training of W_Q and W_K."""

    a: float  # the exponent of the scale d_k^-a
    optimizer: str
    lr: float
    trained: float  # the loss on the other texts with 1/√d_k, before any step
    losses: list[float]  # with the scale d_k^-a, after the steps of LOOKS
    gradient: float  # ‖∂L/∂(W_Q, W_K)‖ over all texts to learn from, before any step
    broke_at: int | None  # the first step whose loss was infinite or NaN; the training ended there


def recovery(
    a: float, *, optimizer: str, lr: float, files: str, steps: int = 80, rng: np.random.Generator
) -> Recovery:
    """Train W_Q and W_K for so many steps, in float32. The texts depend on rng alone.

    files is the `origin` of the model, by which a table of results is known to be about it.
    """
    if files != origin():
        raise WeightsError("a file that the model is loaded from has changed during the run")
    keep_memory()
    model = writer(dtype=np.float32)
    texts = own_texts(model, LEARNED + OTHERS, LENGTH, rng=rng)
    learned, others = texts[:LEARNED], texts[LEARNED:]
    trained = loss_on(model, others)
    moving = []
    for name, parameter in model.named_parameters():
        parameter.requires_grad = name.endswith(("w_q.weight", "w_k.weight"))
        moving += [parameter] * parameter.requires_grad
    set_scale(model, lambda d_k: d_k**-a)
    stepper = OPTIMIZERS[optimizer](moving, lr)
    found = gradients(loss_of(model, learned), moving)
    losses, broke_at = [loss_on(model, others)], None
    with np.errstate(over="ignore", invalid="ignore"):
        for step in range(1, steps + 1):
            if step % (LEARNED // BATCH) == 1:  # an epoch begins
                order = rng.permutation(LEARNED).reshape(-1, BATCH)
            loss = loss_of(model, learned[order[(step - 1) % len(order)]])
            if not math.isfinite(loss.item()):
                broke_at = step
                break
            stepper.zero_grad()
            loss.backward()
            stepper.step()
            if step in LOOKS:
                losses.append(loss_on(model, others))
    return Recovery(
        a=a,
        optimizer=optimizer,
        lr=lr,
        trained=trained,
        losses=losses,
        gradient=math.sqrt(sum(float((g**2).sum()) for g in found)),
        broke_at=broke_at,
    )


def own_texts(model: GPT, count: int, length: int, *, rng: np.random.Generator) -> Any:
    """What the model writes at temperature 1 after the end of a line.   → (count, length)"""
    start = np.full((count, 1), tokenizer().encode("\n")[0])
    return generate(model, start, length - 1, temperature=1.0, rng=rng)


def set_scale(model: GPT, scale: Any) -> None:
    """Give all heads a scale: None for 1/√d_k, a number, or a function of d_k."""
    for block in model.blocks:
        block.attention.scale = scale


def loss_of(model: GPT, texts: Any) -> Tensor:
    """The mean cross-entropy of each token after those before it."""
    return cross_entropy(model(texts[:, :-1]), texts[:, 1:])


def loss_on(model: GPT, texts: Any) -> float:
    """The same as a number, without a record."""
    with no_grad():
        return loss_of(model, texts).item()
