"""12 · Fused attention: one node, in blocks, with O(T) memory.

Attention over T positions makes T² weights. Must they all be in memory? The result has only T rows,
and each is a weighted sum that could be added up as one goes; what stands in the way is softmax,
which divides by a sum over all keys and subtracts a maximum over all keys, both known only at
the end.

**Forward, online.** Keep, for each query, the largest score m so far, the sum l = Σ exp(sⱼ - m) and
the sum a = Σ exp(sⱼ - m) vⱼ. When a block of further keys brings a larger maximum m', everything
so far was measured against the wrong one, all by the same factor exp(m - m'): multiply l and a by
it and go on. At the end y = a/l. (Milakov & Gimelshein 2018 for the sum, Dao et al. 2022 for a.)
One number per query is saved for the way back, the log-sum-exp

    λ = m + log l        so that the weight is pⱼ = exp(sⱼ - λ)

**Backward, by hand.** With S = scale · Q Kᵀ + bias, P = softmax(S), Y = P V and G = ∂L/∂Y, the
rules of chapters 3.5 and 3.6 give, one after the other,

    ∂L/∂V = Pᵀ G        ∂L/∂P = G Vᵀ        ∂L/∂S = P ⊙ (∂L/∂P - D),    Dᵢ = Σⱼ Pᵢⱼ (∂L/∂P)ᵢⱼ
    ∂L/∂Q = scale · ∂L/∂S K                  ∂L/∂K = scale · (∂L/∂S)ᵀ Q

Each needs P only a block at a time, and exp(S - λ) makes any block of P again from Q and K: one
more product, instead of T² numbers kept. Only D is a sum over all keys. But

    Dᵢ = Σⱼ Pᵢⱼ ⟨Gᵢ, Vⱼ⟩ = ⟨Gᵢ, Σⱼ Pᵢⱼ Vⱼ⟩ = ⟨Gᵢ, Yᵢ⟩

is known from the output alone, before the first block. That is the whole trick.

What the function means is chapter 11's `attention`: that is its definition, which takes over for
second derivatives and under `unfused()`. (Derivatives live in `minigrad/ops/`; this one stands
where its reader needs it, and shows that the door to rules of one's own is open to everyone.)

Legend: T queries, S keys, d_k features of a query or key, d_v features of a value; a block is R
queries by C keys.

    >>> from attention import causal_mask
    >>> rng = np.random.default_rng(0)
    >>> q, k, v = (Tensor(rng.standard_normal((2, 300, 8)), requires_grad=True) for _ in range(3))
    >>> y = fused_attention(q, k, v, mask=causal_mask(300))
    >>> np.allclose(y.data, attention(q, k, v, mask=causal_mask(300)).data, rtol=1e-12)
    True
    >>> y.node.name
    'fused_attention'
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from attention.masks import check_mask
from attention.scaled_dot_product import (
    Scale,
    attention,
    check_bias,
    check_values,
    scale_factor,
)
from minigrad import Tensor, fused

Array = np.ndarray[Any, Any]


def fused_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    mask: Any = None,
    bias: Any = None,
    scale: Scale = None,
    drop: Any = None,
    block: int = 128,
) -> Tensor:
    """softmax(scale · Q Kᵀ + bias) V.   (…, T, d_k) · (…, S, d_k) · (…, S, d_v) → (…, T, d_v)

    The arguments of `attention`, except that nothing can be dropped from weights that are never all
    there. Memory beyond inputs and outputs is O(T · block). Blocks that the mask forbids as a whole
    are skipped: a causal mask saves half of the work, a window all but a band.
    """
    if drop is not None:
        raise TypeError("fused_attention keeps no weights to drop: use attention for drop=")
    if block < 1:
        raise ValueError(f"block must be at least 1: got {block}")
    factor = scale_factor(q, k, scale)
    check_values(k, v)
    batch = np.broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])
    scores_shape = (*batch, q.shape[-2], k.shape[-2])
    if mask is not None:
        mask = check_mask(mask, scores_shape)
    added: Any = 0.0 if bias is None else check_bias(bias, scores_shape, q.dtype)
    return _fused_attention(factor * q, k, v, added, mask=mask, block=block)


def _definition(q: Any, k: Any, v: Any, bias: Any, /, mask: Any, block: int) -> Tensor:
    q, k, v = (x if isinstance(x, Tensor) else Tensor(x) for x in (q, k, v))
    return attention(q, k, v, mask=mask, bias=bias if np.ndim(bias) else None, scale=1.0)


@fused(definition=_definition)
def _fused_attention(q: Array, k: Array, v: Array, bias: Array, /, mask: Any, block: int) -> Any:
    T, S, d_v = q.shape[-2], k.shape[-2], v.shape[-1]
    batch = np.broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])
    may_look = None if mask is None else np.broadcast_to(mask, (*batch, T, S))  # (…, T, S)
    added = np.broadcast_to(bias, (*batch, T, S)) if bias.ndim else None

    def key_blocks(rows: slice) -> Iterator[tuple[slice, Array]]:
        """The scores of some queries, a block of keys at a time; forbidden ones are -∞."""
        for columns in _blocks(S, block):
            allowed = None if may_look is None else may_look[..., rows, columns]
            if allowed is not None and not allowed.any():
                continue
            scores = q[..., rows, :] @ k[..., columns, :].mT  # (…, R, C)
            if added is not None:
                scores = scores + added[..., rows, columns]  # (…, R, C)
            yield columns, scores if allowed is None else np.where(allowed, scores, -np.inf)

    y = np.zeros((*batch, T, d_v), q.dtype)  # (…, T, d_v)
    log_sum = np.full((*batch, T, 1), np.inf, q.dtype)  # λ, (…, T, 1)
    for rows in _blocks(T, block):
        largest: Any = -np.inf
        total: Any = 0.0
        average: Any = 0.0
        for columns, scores in key_blocks(rows):
            before, largest = largest, np.maximum(largest, scores.max(axis=-1, keepdims=True))
            shift = np.where(largest == -np.inf, 0, largest)  # no key yet: exp(-∞ - 0) is 0
            p = np.exp(scores - shift)  # (…, R, C)
            smaller = np.exp(before - shift)
            total = smaller * total + p.sum(axis=-1, keepdims=True)  # (…, R, 1)
            average = smaller * average + p @ v[..., columns, :]  # (…, R, d_v)
        # A query that may look nowhere keeps y = 0, and λ = ∞ makes all its weights 0.
        some = np.broadcast_to(total > 0, log_sum[..., rows, :].shape)
        np.divide(average, total, out=y[..., rows, :], where=some)
        np.add(largest, np.log(np.where(some, total, 1)), out=log_sum[..., rows, :], where=some)

    def backward(g: Array, y: Array, needs: tuple[bool, ...]) -> tuple[Array | None, ...]:
        of_q, of_k, of_v = (np.zeros((*batch, *x.shape[-2:]), x.dtype) for x in (q, k, v))
        of_bias = np.zeros_like(bias) if needs[3] else None
        d = (g * y).sum(axis=-1, keepdims=True)  # (…, T, 1)
        for rows in _blocks(T, block):
            g_rows = g[..., rows, :]  # (…, R, d_v)
            for columns, scores in key_blocks(rows):
                p = np.exp(scores - log_sum[..., rows, :])  # (…, R, C)
                of_v[..., columns, :] += p.mT @ g_rows
                of_p = g_rows @ v[..., columns, :].mT  # (…, R, C)
                of_scores = p * (of_p - d[..., rows, :])  # (…, R, C)
                of_q[..., rows, :] += of_scores @ k[..., columns, :]
                of_k[..., columns, :] += of_scores.mT @ q[..., rows, :]
                if of_bias is not None:
                    _add_block(of_bias, of_scores, rows, columns)
        found = (of_q, of_k, of_v, of_bias)
        return tuple(x if need else None for x, need in zip(found, needs, strict=True))

    return y, backward


def _blocks(n: int, size: int) -> Iterator[slice]:
    return (slice(start, min(start + size, n)) for start in range(0, n, size))


def _add_block(total: Array, part: Array, rows: slice, columns: slice) -> None:
    """Add the gradient of a block of scores to that of a bias which was broadcast to them."""
    index = (rows, columns)[-total.ndim :]
    places = zip(index, total.shape[-2:], strict=True)
    block: list[Any] = [slice(None) if n == 1 else where for where, n in places]
    view = total[(..., *block)]
    part = part.sum(axis=tuple(range(part.ndim - view.ndim)))
    stretched = tuple(j for j, n in enumerate(view.shape) if n != part.shape[j])
    view += part.sum(axis=stretched, keepdims=True)
