"""12 · Fused attention: in blocks, without T² numbers.

Attention over T positions makes T² weights. Must they all be in memory? The result has only T rows,
and each is a weighted sum, which could be added up key by key. The obstacle is softmax, which
divides by a sum over all keys and subtracts a maximum over all keys, both known only at the end.

**Forward, online.** Keep, for each query, the largest score m so far, the sum l = Σ exp(zⱼ - m) and
the sum a = Σ exp(zⱼ - m) vⱼ. If a later block has a larger maximum m′, the sums so far contain
exp(zⱼ - m) instead of exp(zⱼ - m′). All terms need the same correction factor:

    exp(zⱼ - m′) = exp(zⱼ - m) exp(m - m′)

So l and a are multiplied by exp(m - m′) before the block is added. (Before the first key m = -∞,
and that factor is 0.) At the end y = a/l. One number per query is saved for the backward pass, the
log-sum-exp

    λ = m + log l        so that each weight is pⱼ = exp(zⱼ - λ)

(Milakov & Gimelshein 2018 for l, Rabe & Staats 2021 for a, Dao et al. 2022 for blocks both ways,
Dao 2023 for saving λ alone.)

**Backward, by hand.** Let Q be the queries already multiplied by the scale. That product is one
`multiply` before this rule, and the VJPs of `multiply` give the gradients of the queries and of a
learned scale. With Z = Q Kᵀ + score_bias, P = softmax(Z), Y = P V and G = ∂L/∂Y, the rules of
chapters 3.5 and 3.6 give, one after the other,

    ∂L/∂V = Pᵀ G        ∂L/∂P = G Vᵀ        ∂L/∂Z = P ⊙ (∂L/∂P - D),    Dᵢ = Σⱼ Pᵢⱼ (∂L/∂P)ᵢⱼ
    ∂L/∂Q = (∂L/∂Z) K        ∂L/∂K = (∂L/∂Z)ᵀ Q

and the gradient of score_bias is ∂L/∂Z, summed over the axes along which score_bias was stretched.
Each formula needs P only a block at a time, and exp(Z - λ) makes any block of P again from Q and K:
this costs one more product, and T² numbers need not be kept. Only D is a sum over all keys. But

    Dᵢ = Σⱼ Pᵢⱼ ⟨Gᵢ, Vⱼ⟩ = ⟨Gᵢ, Σⱼ Pᵢⱼ Vⱼ⟩ = ⟨Gᵢ, Yᵢ⟩

needs only the output and its gradient, one row of each, and both are known before the first block
(Dao et al. 2022, appendix B.2). The two sums are equal in exact arithmetic, and differ in rounding.
One can see it where a query has a single key: its weight is 1 whatever its score, so the gradients
of q and k are 0. Chapter 11's `attention` subtracts a number from itself and gives exactly 0. Here
∂L/∂P - D is the difference of two sums of the same terms in another order, which is rounding: about
1e-16 times as large as the terms.

A forbidden score is -∞, so its p is 0, and so is every gradient through it. A query with no key at
all keeps y = 0, and λ = ∞ makes each of its p = exp(z - ∞) = 0 in the backward pass. A NaN stays a
NaN, as in the definition, with one exception: a NaN that meets only weights of 0, such as a value
that no query may look at. In the definition 0 · NaN is NaN. Here it has no effect if its whole
block is skipped, or if the query has no key at all.

The definition of this function is chapter 11's `attention`, which computes second derivatives, and
everything under `unfused()` (chapter 1.3). Other derivatives are in `minigrad/ops/`. This one is
here because its reader needs it here, and because it shows that anyone can write a rule.

Legend: T queries, S keys, d_k features of a query or key, d_v of a value; a block is R queries by C
keys. The code has the letters above: λ is `lam`, and ∂L/∂X is `of_x`.

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

from attention.scaled_dot_product import (
    Scale,
    attention,
    check_mask,
    check_score_bias,
    check_values,
    scale_factor,
)
from minigrad import Tensor, fused
from minigrad.nn import renamed

Array = np.ndarray[Any, Any]


@renamed(bias="score_bias")
def fused_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    mask: Any = None,
    score_bias: Any = None,
    scale: Scale = None,
    drop: Any = None,
    block: int = 128,
) -> Tensor:
    """`attention` in blocks.   (…, T, d_k) · (…, S, d_k) · (…, S, d_v) → (…, T, d_v)

    softmax(scale · Q Kᵀ + score_bias) V, with the arguments of `attention` except drop=: the
    weights are never all in memory, so none can be dropped. Beyond inputs and outputs it holds one
    number for each query, and a few blocks of block² scores for each member of the batch. (A mask
    still has T · S booleans.) Blocks that the mask forbids in every member of the batch are
    skipped: of n × n blocks a causal mask leaves n (n + 1)/2, which is near half of them for large
    n, and a window leaves a band.
    """
    if drop is not None:
        raise TypeError("fused_attention keeps no weights to drop: use attention for drop=")
    if block < 1:
        raise ValueError(f"block must be at least 1: got {block}")
    factor = scale_factor(q, k, scale)
    check_values(k, v)
    batch = np.broadcast_shapes(q.shape[:-2], k.shape[:-2])
    scores_shape = (*batch, q.shape[-2], k.shape[-2])
    if mask is not None:
        mask = check_mask(mask, scores_shape)
    added: Any = 0.0
    if score_bias is not None:
        added = check_score_bias(score_bias, scores_shape, q.dtype)
    return _fused_attention(factor * q, k, v, added, mask=mask, block=block)


def _definition(
    q: Any, k: Any, v: Any, score_bias: Any, /, mask: Any = None, block: int = 128
) -> Tensor:
    q, k, v = (x if isinstance(x, Tensor) else Tensor(x) for x in (q, k, v))
    added = score_bias if np.ndim(score_bias) else None
    return attention(q, k, v, mask=mask, score_bias=added, scale=1.0)


@fused(definition=_definition, name="fused_attention")
def _fused_attention(
    q: Array, k: Array, v: Array, score_bias: Array, /, mask: Any = None, block: int = 128
) -> Any:
    T, S, d_v = q.shape[-2], k.shape[-2], v.shape[-1]
    batch = np.broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])
    may_look = None if mask is None else np.broadcast_to(mask, (*batch, T, S))  # (…, T, S)
    added = np.broadcast_to(score_bias, (*batch, T, S)) if score_bias.ndim else None  # (…, T, S)

    def key_blocks(rows: slice) -> Iterator[tuple[slice, Array]]:
        """The scores of some queries, a block of keys at a time; forbidden ones are -∞."""
        for columns in _blocks(S, block):
            allowed = None if may_look is None else may_look[..., rows, columns]
            if allowed is not None and not allowed.any():
                continue
            z = q[..., rows, :] @ k[..., columns, :].mT  # (…, R, C)
            if added is not None:
                z = z + added[..., rows, columns]  # (…, R, C)
            yield columns, z if allowed is None else np.where(allowed, z, -np.inf)

    dtype = np.result_type(q, k, v, *([] if added is None else [score_bias]))
    y = np.zeros((*batch, T, d_v), dtype)  # (…, T, d_v)
    lam = np.full((*batch, T, 1), np.inf, dtype)  # (…, T, 1)
    # Whether a query has a key is asked of the mask. (The sum l does not tell: it may be NaN.)
    has_key: Any = S > 0 if mask is None else np.atleast_1d(mask).any(axis=-1, keepdims=True)
    has_key = np.broadcast_to(has_key, lam.shape)  # (…, T, 1)
    for rows in _blocks(T, block):
        m: Any = -np.inf
        l: Any = 0.0
        a: Any = 0.0
        for columns, z in key_blocks(rows):
            before, m = m, np.maximum(m, z.max(axis=-1, keepdims=True))
            shift = np.where(m == -np.inf, 0, m)  # no key yet: exp(-∞ - 0) is 0
            p = np.exp(z - shift)  # (…, R, C)
            rescale = np.exp(before - shift)
            l = rescale * l + p.sum(axis=-1, keepdims=True)  # (…, R, 1)
            a = rescale * a + p @ v[..., columns, :]  # (…, R, d_v)
        # A query without a key keeps y = 0, and λ = ∞ makes all its weights 0.
        some = has_key[..., rows, :]
        np.divide(a, l, out=y[..., rows, :], where=some)
        np.add(m, np.log(np.where(some, l, 1)), out=lam[..., rows, :], where=some)

    def backward(g: Array, y: Array, needs: tuple[bool, ...]) -> tuple[Array | None, ...]:
        of_q, of_k, of_v = (np.zeros((*batch, *x.shape[-2:]), dtype) for x in (q, k, v))
        of_score_bias = np.zeros_like(score_bias) if needs[3] else None
        d = (g * y).sum(axis=-1, keepdims=True)  # (…, T, 1)
        for rows in _blocks(T, block):
            g_rows = g[..., rows, :]  # (…, R, d_v)
            for columns, z in key_blocks(rows):
                p = np.exp(z - lam[..., rows, :])  # (…, R, C)
                of_v[..., columns, :] += p.mT @ g_rows  # (…, C, d_v)
                of_p = g_rows @ v[..., columns, :].mT  # (…, R, C)
                of_z = p * (of_p - d[..., rows, :])  # (…, R, C)
                of_q[..., rows, :] += of_z @ k[..., columns, :]  # (…, R, d_k)
                of_k[..., columns, :] += of_z.mT @ q[..., rows, :]  # (…, C, d_k)
                if of_score_bias is not None and added is not None:  # (one number changes nothing)
                    _add_block(of_score_bias, of_z, rows, columns)
        found = (of_q, of_k, of_v, of_score_bias)
        return tuple(x if need else None for x, need in zip(found, needs, strict=True))

    return y, backward


# ---------------------------------------------------- A first reading may stop here.
# What follows: blocks of positions, and the gradient of a score_bias that was stretched.


def _blocks(n: int, size: int) -> Iterator[slice]:
    return (slice(start, min(start + size, n)) for start in range(0, n, size))


def _add_block(total: Array, part: Array, rows: slice, columns: slice) -> None:
    """Add the gradient of a block of scores to that of a score_bias that was stretched to them."""
    index = (rows, columns)[-total.ndim :]
    places = zip(index, total.shape[-2:], strict=True)
    block: list[Any] = [slice(None) if n == 1 else where for where, n in places]
    view = total[(..., *block)]
    part = part.sum(axis=tuple(range(part.ndim - view.ndim)))
    stretched = tuple(j for j, n in enumerate(view.shape) if n != part.shape[j])
    view += part.sum(axis=stretched, keepdims=True)
