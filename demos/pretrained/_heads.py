"""Demos · Pretrained: what a scale does in each of a model's heads, on a text.

A layer's `attend` is the place to look at the queries, at the scores and at ∂L/∂q: it is called
with each head's queries, keys and values.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from attention import GPT, attention
from attention.maps import entropy
from attention.masks import causal_mask
from demos.pretrained._recovery import loss_of, loss_on, set_scale
from minigrad import gradients, softmax

Array = np.ndarray[Any, Any]


class Seen(NamedTuple):
    """What was found in all heads, block after block, on one text of T tokens."""

    loss: float
    score_std: Array  # (H,) of the scores that softmax gets, from the mean of their row
    entropy: Array  # (H,) mean over the queries; 1 is all keys alike, 0 one key alone
    gradient: Array  # (H, T) ‖∂L/∂q‖ of each query
    previous: Array  # (H,) mean weight of the key just before the query


def see(model: GPT, text: Array, factor: float = 1.0) -> Seen:
    """All heads, with the trained scale times a factor.   text (T + 1,)"""
    asked: list[Any] = []

    def attend(q: Any, k: Any, v: Any, *, scale: Any, **options: Any) -> Any:
        asked.append((q, k, scale))
        return attention(q, k, v, scale=scale, **options)

    set_scale(model, lambda d_k: factor / d_k**0.5)
    for block in model.blocks:
        block.attention.attend = attend
    try:
        loss = loss_of(model, text[None])
    finally:
        set_scale(model, None)
        for block in model.blocks:
            block.attention.attend = None
    of_queries = gradients(loss, [q for q, _, _ in asked])  # each (1, H, T, d_k)
    T = len(text) - 1
    allowed = causal_mask(T)
    std, spread, previous = [], [], []
    for q, k, scale in asked:
        scores = scale(q.shape[-1]) * (q.data @ k.data.mT)[0]  # (H, T, T)
        p = softmax(np.where(allowed, scores, -np.inf))
        # Softmax sees how a query's scores differ from each other: a number added to all of them
        # changes nothing. So they are measured from their mean.
        mean = np.mean(scores, axis=-1, keepdims=True, where=allowed)
        std += list(np.sqrt(np.mean((scores - mean) ** 2, axis=(-2, -1), where=allowed)))
        # A row t has t + 1 keys. Its entropy is divided by log(t + 1), and the first has none.
        spread += list((entropy(p)[:, 1:] / np.log(np.arange(2, T + 1))).mean(axis=-1))
        previous += list(np.diagonal(p, offset=-1, axis1=-2, axis2=-1).mean(axis=-1))
    gradient = np.concatenate([np.linalg.norm(g[0], axis=-1) for g in of_queries])  # (H, T)
    return Seen(loss.item(), np.array(std), np.array(spread), gradient, np.array(previous))


def sharpened(model: GPT, texts: Array, heads: Iterable[int], factor: float) -> Array:
    """The loss of each text if the scores of these heads alone are multiplied by a factor.

    A layer has one scale for all of its heads. But a score is linear in its query, so the heads'
    columns of W_Q can be multiplied instead: `rotary` turns queries and does not stretch them.

    texts (N, T + 1) → (N,)
    """
    num_heads = model.blocks[0].attention.num_heads
    weights = [block.attention.w_q.weight for block in model.blocks]
    kept = [weight.data for weight in weights]
    changed = [data.copy() for data in kept]
    for block, head in (divmod(each, num_heads) for each in set(heads)):
        d_k = changed[block].shape[1] // num_heads
        changed[block][:, head * d_k : (head + 1) * d_k] *= factor
    try:
        for weight, data in zip(weights, changed, strict=True):
            weight.data = data
        return np.array([loss_on(model, text[None]) for text in texts])
    finally:
        for weight, data in zip(weights, kept, strict=True):
            weight.data = data
