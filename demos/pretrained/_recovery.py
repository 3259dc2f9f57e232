"""Demos · Pretrained: can the scale be learned back that was taken away?

A model that was trained with 1/√d_k gets another scale, and a part of it alone is trained on. All
else is frozen. The two starts are equally far from the trained scale on a logarithmic axis: 1/d_k
is √d_k times smaller (too flat), and no scale √d_k times larger (too sharp). What learns is either
W_Q and W_K, or one **temperature** for each head, a positive number that multiplies its scores.
Both have an exact way back: W_Q times √d_k or W_Q / √d_k, and all temperatures √d_k or 1/√d_k.

The texts are the model's own, at temperature 1. So the trained weights are as good as weights can
be on *other* such texts, and a loss above theirs is not for lack of knowledge. On a few texts that
are overfitted, a loss can fall below theirs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from attention import GPT, attention, generate
from attention.scaled_dot_product import scale_factor
from demos.pretrained._loading import WeightsError, origin, tokenizer, writer
from minigrad import Tensor, cross_entropy, exp, keep_memory, no_grad
from minigrad.optim import SGD, Adam

OPTIMIZERS = {"sgd": SGD, "adam": Adam}
LENGTH = 64  # tokens of a text
LEARNED, OTHERS, BATCH = 16, 8, 4  # texts: to learn from, to judge by, of one step
LOOKS = (0, 5, 10, 20, 40, 80)  # steps after which both losses are taken


@dataclass(frozen=True)
class Recovery:
    """One training of W_Q and W_K, or of the temperatures."""

    a: float  # the exponent of the scale d_k^-a
    part: str  # what learns: "weights" (W_Q and W_K) or "temperatures"
    texts: int  # to learn from
    optimizer: str
    lr: float
    trained: list[float]  # with 1/√d_k, before any step: the losses on learned and on other texts
    learned: list[float]  # with d_k^-a, on 16 of the learned texts, after the steps of LOOKS
    others: list[float]  # the same on the other texts
    temperatures: list[float]  # of all heads, after the last step
    broke_at: int | None  # the first step whose loss was infinite or NaN; the training ended there


def recovery(
    a: float,
    *,
    optimizer: str,
    lr: float,
    files: str,
    part: str = "weights",
    texts: int = LEARNED,
    steps: int = 80,
    rng: np.random.Generator,
) -> Recovery:
    """Train a part for so many steps, in float32. The texts depend on rng alone.

    files is the `origin` of the model, by which a table of results is known to be about it.
    """
    if files != origin():
        raise WeightsError("a file that the model is loaded from has changed during the run")
    keep_memory()
    model = writer().astype(np.float32)
    drawn = own_texts(model, LEARNED + OTHERS, LENGTH, rng=rng)
    others, learned = drawn[LEARNED:], drawn[:LEARNED]
    if texts > LEARNED:
        more = own_texts(model, texts - LEARNED, LENGTH, rng=rng)
        learned = np.concatenate([learned, more])
    judged = learned[:LEARNED], others
    trained = [loss_on(model, each) for each in judged]
    num_heads = model.blocks[0].attention.num_heads
    logs = [Tensor(np.zeros(num_heads, np.float32), requires_grad=True) for _ in model.blocks]
    weights = dict(model.named_parameters())
    for parameter in weights.values():
        parameter.requires_grad = False
    moving = [w for name, w in weights.items() if name.endswith(("w_q.weight", "w_k.weight"))]
    moving = logs if part == "temperatures" else moving
    for parameter in [*logs, *moving]:
        parameter.requires_grad = any(parameter is each for each in moving)
    set_scale(model, lambda d_k: d_k**-a)
    stepper = OPTIMIZERS[optimizer](moving, lr)

    def temperatures() -> list[Tensor]:
        return [exp(each) for each in logs]

    def both() -> tuple[float, ...]:
        with multiplied(model.blocks, temperatures()):
            return tuple(loss_on(model, each) for each in judged)

    losses, broke_at = [both()], None
    with np.errstate(over="ignore", invalid="ignore"):
        for step in range(1, steps + 1):
            if step % (texts // BATCH) == 1:  # an epoch begins
                order = rng.permutation(texts).reshape(-1, BATCH)
            with multiplied(model.blocks, temperatures()):
                loss = loss_of(model, learned[order[(step - 1) % len(order)]])
            if not math.isfinite(loss.item()):
                broke_at = step
                break
            stepper.zero_grad()
            loss.backward()
            stepper.step()
            if step in LOOKS:
                losses.append(both())
    of_learned, of_others = (list(each) for each in zip(*losses, strict=True))
    return Recovery(
        a=a,
        part=part,
        texts=texts,
        optimizer=optimizer,
        lr=lr,
        trained=trained,
        learned=of_learned,
        others=of_others,
        temperatures=[float(t) for each in temperatures() for t in each.data],
        broke_at=broke_at,
    )


def own_texts(model: GPT, count: int, length: int, *, rng: np.random.Generator) -> Any:
    """Draw texts of the model at temperature 1 after the end of a line.   → (count, length)"""
    start = np.full((count, 1), tokenizer().encode("\n")[0])
    return generate(model, start, length - 1, temperature=1.0, rng=rng)


def set_scale(model: GPT, scale: Any) -> None:
    """Give all heads a scale: None for 1/√d_k, a number, or a function of d_k."""
    for block in model.blocks:
        block.attention.scale = scale


@contextmanager
def multiplied(
    blocks: Any, factors: Iterable[Any], asked: list[Any] | None = None
) -> Iterator[None]:
    """Multiply every head's scores by a factor of its own: q by numbers or a tensor of (H,).

    A layer has one scale for all of its heads. But a score is linear in its query, so the queries
    can be multiplied instead. asked gets (q, k, scale) of each layer, with q as it was before.
    """

    def attend_with(factor: Any) -> Any:
        def attend(q: Any, k: Any, v: Any, *, scale: Any, **options: Any) -> Any:
            scale = scale_factor(q, k, scale)
            if asked is not None:
                asked.append((q, k, scale))
            by = factor if isinstance(factor, Tensor) else np.asarray(factor, q.dtype)
            return attention(q * by.reshape(-1, 1, 1), k, v, scale=scale, **options)

        return attend

    for block, factor in zip(blocks, factors, strict=True):
        block.attention.attend = attend_with(factor)
    try:
        yield
    finally:
        for block in blocks:
            block.attention.attend = None


def loss_of(model: GPT, texts: Any) -> Tensor:
    """Return the mean cross-entropy of each token after those before it."""
    return cross_entropy(model(texts[:, :-1]), texts[:, 1:])


def loss_on(model: GPT, texts: Any) -> float:
    """Return the same loss as a number, without a record."""
    with no_grad():
        return loss_of(model, texts).item()
