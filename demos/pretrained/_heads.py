"""Demos · Pretrained: what a scale does in each of a model's heads, on a text.

A layer's `attend` is the place to look at the queries, at the scores and at ∂L/∂q: it is called
with each head's queries, keys and values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from attention import GPT, attention, generate
from attention.masks import causal_mask
from attention.scaled_dot_product import scale_factor
from attention.scaling import entropy
from demos.pretrained._loading import tokenizer
from minigrad import Tensor, cross_entropy, gradients, no_grad, softmax

Array = np.ndarray[Any, Any]
AWAY = 32**0.5  # the factor that takes 1/√d_k away: d_k is 32


def own_texts(model: GPT, count: int, length: int, *, rng: np.random.Generator) -> Any:
    """Draw texts of the model at temperature 1 after the end of a line.   → (count, length)"""
    start = np.full((count, 1), tokenizer().encode("\n")[0])
    return generate(model, start, length - 1, temperature=1.0, rng=rng)


def loss_of(model: GPT, texts: Any) -> Tensor:
    """Return the mean cross-entropy of each token after those before it."""
    return cross_entropy(model(texts[:, :-1]), texts[:, 1:])


def loss_on(model: GPT, texts: Any) -> float:
    """Return the same loss as a number, without a record."""
    with no_grad():
        return loss_of(model, texts).item()


def set_scale(model: GPT, scale: Any) -> None:
    """Give all heads a scale: None for 1/√d_k, a number, or a function of d_k."""
    for block in model.blocks:
        block.attention.scale = scale


@contextmanager
def multiplied(
    blocks: Any, factors: Iterable[Any], asked: list[Any] | None = None
) -> Iterator[None]:
    """Multiply every head's scores by a factor of its own: q by numbers of (H,).

    A layer has one scale for all of its heads. But a score is linear in its query, so the queries
    can be multiplied instead. asked gets (q, k, scale) of each layer, with q as it was before.
    """

    def attend_with(factor: Any) -> Any:
        def attend(q: Any, k: Any, v: Any, *, scale: Any, **options: Any) -> Any:
            scale = scale_factor(q, k, scale)
            if asked is not None:
                asked.append((q, k, scale))
            by = np.asarray(factor, q.dtype).reshape(-1, 1, 1)
            return attention(q * by, k, v, scale=scale, **options)

        return attend

    for block, factor in zip(blocks, factors, strict=True):
        block.attention.attend = attend_with(factor)
    try:
        yield
    finally:
        for block in blocks:
            block.attention.attend = None


class Seen(NamedTuple):
    """The measurements of all heads, block after block, on one text of T tokens."""

    loss: float
    score_std: Array  # (H,) of the scores that softmax gets, from the mean of their row
    entropy: Array  # (H,) mean over the queries; 1 is all keys alike, 0 one key alone
    gradient: Array  # (H, T) ‖∂L/∂q‖ of each query
    previous: Array  # (H,) mean weight of the key just before the query


def see(model: GPT, text: Array, factor: Any = 1.0) -> Seen:
    """Return what is in all heads, with the trained scale times a factor.   text (T + 1,)

    factor  a number, or one for each head (blocks, H)
    """
    factors = np.full((len(model.blocks), model.blocks[0].attention.num_heads), factor)
    allowed = causal_mask(len(text) - 1)
    return seen_in(model.blocks, lambda: loss_of(model, text[None]), factors, allowed)


def seen_in(blocks: Any, run: Callable[[], Any], factors: Any, allowed: Array) -> Seen:
    """Return what is in the heads of these blocks while `run` computes a number from one text.

    factors  (blocks, H) of the trained scale, one for each head
    allowed  (T, T) where a query may look
    """
    asked: list[Any] = []
    with multiplied(blocks, factors, asked):
        loss = run()
    of_queries = gradients(loss, [q for q, _, _ in asked])  # each (1, H, T, d_k)
    keys = allowed.sum(axis=-1)  # (T,)
    std, spread, previous = [], [], []
    for (q, k, scale), factor in zip(asked, factors, strict=True):
        scores = scale * factor[:, None, None] * (q.data @ k.data.mT)[0]  # (H, T, T)
        p = np.asarray(softmax(np.where(allowed, scores, -np.inf)))
        # Softmax sees how a query's scores differ from each other: a number added to all of them
        # changes nothing. So they are measured from their mean.
        mean = np.mean(scores, axis=-1, keepdims=True, where=allowed)
        std += list(np.sqrt(np.mean((scores - mean) ** 2, axis=(-2, -1), where=allowed)))
        # A row's entropy is divided by the log of its number of keys. One key has none.
        spread += list((entropy(p)[:, keys > 1] / np.log(keys[keys > 1])).mean(axis=-1))
        previous += list(np.diagonal(p, offset=-1, axis1=-2, axis2=-1).mean(axis=-1))
    gradient = np.concatenate([np.linalg.norm(g[0], axis=-1) for g in of_queries])  # (H, T)
    return Seen(loss.item(), np.array(std), np.array(spread), gradient, np.array(previous))


def sharpened(model: GPT, texts: Array, heads: Iterable[int], factor: float) -> Array:
    """Return the loss of each text if the scores of these heads alone are multiplied by a factor.

    texts (N, T + 1) → (N,)
    """
    factors = np.ones((len(model.blocks), model.blocks[0].attention.num_heads))
    factors.flat[list(set(heads))] = factor
    with multiplied(model.blocks, factors):
        return np.array([loss_on(model, text[None]) for text in texts])
