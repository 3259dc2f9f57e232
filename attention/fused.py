"""12 · Fused attention: in blocks, without T² numbers.

Attention over T positions makes T² weights. Must they all be in memory? The result has only T rows,
and each is a weighted sum, which could be added up key by key. The obstacle is softmax, which
divides by a sum over all keys and subtracts a maximum over all keys, both known only at the end.

**Forward, online.** Let zⱼ be a query's score with key j, and vⱼ the value of that key. Keep, for
each query, the largest score m so far, the sum l = Σ exp(zⱼ - m) and the sum a = Σ exp(zⱼ - m) vⱼ
over the keys so far. If a later block has a larger maximum m′, the sums so far contain
exp(zⱼ - m) instead of exp(zⱼ - m′). All terms need the same correction factor:

    exp(zⱼ - m′) = exp(zⱼ - m) exp(m - m′)

So l and *a* are multiplied by exp(m - m′) before the block is added. (Before the first key m = -∞,
and that factor is 0.) At the end y = a/l. Two numbers per query are saved for the backward pass, m
and l, so that each weight is pⱼ = exp(zⱼ - m)/l.

(Milakov & Gimelshein 2018 for l, Rabe & Staats 2021 for a, Dao et al. 2022 for blocks both ways.
Dao 2023 saves one number, λ = m + log l, since pⱼ = exp(zⱼ - λ). But λ is rounded. At m = 1e8 the
numbers of float32 are 8 apart, so log l is lost, and the weights do not sum to 1.)

**Backward, by hand.** Let Q′ = scale · Q. That product is one `multiply` before this rule, and the
VJPs of `multiply` give the gradients of the queries and of a learned scale. With the scores
Z = Q′ Kᵀ + score_bias, P = softmax(Z), Y = P V and G = ∂L/∂Y, the rest is chapter 11's way back,
with Q′ in the place of Q, and 1 in the place of the scale. The gradient of score_bias is ∂L/∂Z,
summed over the axes along which score_bias was stretched.

Each formula there needs P only a block at a time. A block of E = exp(Z - m) is computed again from
Q′ and K: this costs one more product, and T² numbers need not be kept. P is E with each row divided
by its l. Only the average that is subtracted from each row of ∂L/∂P is a sum over all keys,
Dᵢ = Σⱼ Pᵢⱼ (∂L/∂P)ᵢⱼ. But

    Dᵢ = Σⱼ Pᵢⱼ ⟨Gᵢ, Vⱼ⟩ = ⟨Gᵢ, Σⱼ Pᵢⱼ Vⱼ⟩ = ⟨Gᵢ, Yᵢ⟩

needs only the output and its gradient, one row of each, and both are known before the first block
(Dao et al. 2022, appendix B.2). The two sums are equal in exact arithmetic, and differ in rounding.
The difference matters where softmax is saturated. If a query has a single key, its weight is 1
whatever its score, so ∂L/∂Z = 0. The first sum gives exactly 0, because ∂L/∂P - D is a number
minus itself. The second sum leaves a rounding error, about 1e-16 of ∂L/∂P (1e-7 in float32).

So where one block holds all keys, the code takes the first sum, and divides E by l: it rounds as
the definition does. Where there are several blocks, it takes the second sum, and divides the rows
of G and D by l instead of those of E. G and D are smaller, which saves about 4 % of the time:

    ∂L/∂V = Eᵀ (G/l)        ∂L/∂Z = E ⊙ ((G/l) Vᵀ - D/l)

A forbidden score is -∞, so its p is 0, and so is every gradient through it. A query with no key at
all keeps y = 0, and m = ∞ makes each of its exp(z - m) = 0 in the backward pass.

A NaN stays a NaN, as in the definition. (One that meets only weights of 0, such as a value that no
query may look at, has no effect if its whole block is skipped. In the definition 0 · NaN is NaN.)

The definition has the steps of chapter 11's `attention`. It computes the second derivatives, and
everything under `unfused()` (chapter 1.3).

**In the cache.** A processor multiplies numbers faster than its memory delivers them. So an array
of scores has about 2¹⁷ elements, which fit into the processor's cache, and each step writes into
the array of the step before. Where T and S are short, one array holds the scores of several members
of the batch (a member is one head of one sequence). The keys come first in it, (C, R): the
maximum over the keys then compares whole rows, and the sum over the keys is a product with ones.
Both are several times faster than a maximum or a sum along each row.

Scores are forbidden by np.fmin(Z, limits), with a limit of -∞ where a score is forbidden and of NaN
where it is allowed: of a number and NaN fmin takes the number. This takes a quarter to two thirds
of the time of writing -∞ where a mask says so.

Legend: N members of the batch, of which n are computed at once; T queries, S keys, d_k features of
a query or key, d_v of a value; a block is R queries by C keys. In the code ∂L/∂X is `dX`, Q is Q′,
and Z and E have the keys first.

    >>> from attention import attention, causal_mask
    >>> rng = np.random.default_rng(0)
    >>> q, k, v = (Tensor(rng.standard_normal((2, 300, 8)), requires_grad=True) for _ in range(3))
    >>> y = fused_attention(q, k, v, mask=causal_mask(300))
    >>> np.allclose(y.data, attention(q, k, v, mask=causal_mask(300)).data, rtol=1e-12)
    True
    >>> y.node.name
    'fused_attention'
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from attention.scaled_dot_product import (
    Scale,
    attention,
    check_mask,
    check_score_bias,
    over_keys,
    scale_factor,
)
from minigrad import Tensor, as_number, fused

Array = np.ndarray[Any, Any]
IN_THE_CACHE = 2**17  # numbers


def fused_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    mask: Any = None,
    score_bias: Any = None,
    scale: Scale = None,
    drop: Any = None,
    block: int | None = None,
) -> Tensor:
    """Compute `attention` in blocks.   (…, T, d_k), (…, S, d_k), (…, S, d_v) → (…, T, d_v)

    softmax(scale · Q Kᵀ + score_bias) V, with the arguments of `attention`. Beyond copies of its
    inputs and outputs it holds two numbers for each query, and two or three arrays of block²
    scores. (A mask has T · S booleans, and the gradient of a learned score_bias as many numbers.)
    Blocks that the mask forbids are skipped: a causal mask leaves near half of them, a window a
    band. Smaller blocks let more be skipped, larger ones need fewer calls of NumPy: so block= is
    128 with a mask and 256 without, unless it is given.

    Two cases are handed on to `attention`: with drop= all weights are needed, and for a single
    query there is nothing to save.
    """
    if block is None:
        block = 256 if mask is None else 128
    else:
        block = as_number("block", block, 1, whole=True)
    factor = scale_factor(q, k, scale)
    if drop is not None or q.shape[-2] == 1:
        return attention(q, k, v, mask=mask, score_bias=score_bias, scale=factor, drop=drop)
    if v.shape[-2] != k.shape[-2]:
        raise ValueError(f"v {v.shape} needs one row for each of the {k.shape[-2]} keys")
    batch = np.broadcast_shapes(q.shape[:-2], k.shape[:-2])
    scores_shape = (*batch, q.shape[-2], k.shape[-2])
    if mask is not None:
        mask = check_mask(mask, scores_shape)
        if mask.flags.writeable or mask.base is not None:  # the backward pass needs it as it is
            mask = mask.copy()
    added: Any = 0.0
    if score_bias is not None:
        added = check_score_bias(score_bias, scores_shape, q.dtype)
    return _fused_attention(factor * q, k, v, added, mask=mask, block=block)


def _definition(
    Q: Any, K: Any, V: Any, score_bias: Any, /, mask: Any = None, block: int = 128
) -> Tensor:
    """Compute attention in chapter 11's steps, after the scale."""
    tensors: list[Tensor] = [x if isinstance(x, Tensor) else Tensor(x) for x in (Q, K, V)]
    q, k, v = tensors
    scores = q @ k.mT  # (…, T, S)
    if np.ndim(score_bias):
        scores = scores + score_bias  # (…, T, S)
    return over_keys(scores, mask) @ v  # (…, T, d_v)


@fused(definition=_definition, name="fused_attention")
def _fused_attention(
    Q: Any, K: Any, V: Any, score_bias: Any, /, mask: Any = None, block: int = 128
) -> Any:
    T, S, d_v = Q.shape[-2], K.shape[-2], V.shape[-1]
    dtype = np.result_type(Q, K, V, *([score_bias] if score_bias.ndim else []))
    batch = np.broadcast_shapes(Q.shape[:-2], K.shape[:-2], V.shape[:-2])
    Q, K, V = (_in_a_row(x.astype(dtype, copy=False), batch) for x in (Q, K, V))
    N = math.prod(batch)
    C = min(block, S)
    at_once = max(1, IN_THE_CACHE // max(1, min(block, T) * C))  # members in an array of scores
    added = _of_members(_stretched(score_bias, T, S), batch) if score_bias.ndim else None
    may_look = None
    has_key = _of_members(np.full((1, T), S > 0), batch)
    if mask is not None:  # whether a query has a key is asked of the mask, since l may be NaN
        allowed = _stretched(mask, T, S)
        any_key = np.expand_dims(allowed.any(axis=-1), -2)  # (…, 1, T)
        may_look, has_key = (_of_members(x, batch) for x in (allowed, any_key))
    ones = np.ones(C, dtype)
    smallest = np.finfo(dtype).min
    nan, forbidden = dtype.type(np.nan), dtype.type(-np.inf)
    size = min(at_once, N) * min(block, T) * C

    def key_blocks(members: slice, rows: slice, space: Array) -> Iterator[tuple[slice, Array]]:
        """Yield Z for some queries, a block of keys at a time, in space; -∞ where forbidden."""
        q_t = np.ascontiguousarray(Q[members, rows].mT)  # (n, d_k, R)
        for columns in _blocks(S, block):
            allowed = None if may_look is None else may_look(members, rows, columns)
            if allowed is not None and not allowed.any():
                continue
            Z = _part(space, members, columns, rows)
            np.matmul(K[members, columns], q_t, out=Z)  # (n, C, R)
            if added is not None:
                Z += added(members, rows, columns).mT  # (…, C, R)
            if allowed is not None and not allowed.all():
                in_order = np.ascontiguousarray(allowed.mT)  # (…, C, R)
                np.fmin(Z, np.where(in_order, nan, forbidden), out=Z)
            yield columns, Z

    Y = np.zeros((N, T, d_v), dtype)
    space = np.empty(size, dtype)
    M, L = np.full((N, 1, T), np.inf, dtype), np.ones((N, 1, T), dtype)  # m and l of all queries
    for members, rows in itertools.product(_blocks(N, at_once), _blocks(T, block)):
        n, r = members.stop - members.start, rows.stop - rows.start
        m = np.full((n, 1, r), -np.inf, dtype)
        l = np.zeros((n, 1, r), dtype)
        a = np.zeros((n, r, d_v), dtype)
        for columns, Z in key_blocks(members, rows, space):
            before = m
            m = np.maximum(before, Z.max(axis=-2, keepdims=True))  # (n, 1, R)
            shift = np.maximum(m, smallest)  # no key yet: exp(-∞ - shift) is 0, not exp(-∞ + ∞)
            E = np.exp(np.subtract(Z, shift, out=Z), out=Z)  # (n, C, R)
            rescale = np.exp(before - shift)  # (n, 1, R)
            l = rescale * l + (ones[: Z.shape[1]] @ E)[:, None]  # (n, 1, R)
            a = rescale.mT * a + E.mT @ V[members, columns]  # (n, R, d_v)
        # A query without a key keeps y = 0, and m = ∞ makes all its weights 0.
        some = has_key(members, slice(None), rows)  # (…, 1, R)
        np.divide(a, l.mT, out=Y[members, rows], where=some.mT)
        np.copyto(M[members, :, rows], m, where=some)
        np.copyto(L[members, :, rows], l, where=some)

    def backward(g: Array, y: Array, needs: tuple[bool, ...]) -> tuple[Array | None, ...]:
        in_one_block = block >= S
        G = g.reshape(Y.shape)  # (N, T, d_v)
        G = G if in_one_block else G / L.mT  # (N, T, d_v)
        row_sums = np.vecdot(G, Y)[:, None]  # (N, 1, T)
        dQ, dK, dV = (np.zeros(x.shape, dtype) for x in (Q, K, V))
        d_bias = np.zeros((N, T, S) if needs[3] else 0, dtype)
        space = np.empty((2, size), dtype)  # (not shared: two threads may run backward at once)
        for members, rows in itertools.product(_blocks(N, at_once), _blocks(T, block)):
            g_t = np.ascontiguousarray(G[members, rows].mT)  # (n, d_v, R)
            for columns, Z in key_blocks(members, rows, space[0]):
                E = np.exp(np.subtract(Z, M[members, :, rows], out=Z), out=Z)  # (n, C, R)
                if in_one_block:
                    E /= L[members, :, rows]
                dV[members, columns] += E @ G[members, rows]  # (n, C, d_v)
                dP = _part(space[1], members, columns, rows)
                np.matmul(V[members, columns], g_t, out=dP)  # (n, C, R)
                D = row_sums[members, :, rows]  # (n, 1, R)
                if in_one_block:
                    D = np.einsum("ncr,ncr->nr", E, dP)[:, None]
                dP -= D
                dZ = np.multiply(dP, E, out=dP)  # (n, C, R)
                dQ[members, rows] += dZ.mT @ K[members, columns]  # (n, R, d_k)
                dK[members, columns] += dZ @ Q[members, rows]  # (n, C, d_k)
                if needs[3]:
                    d_bias[members, rows, columns] += dZ.mT  # (n, R, C)
        if needs[3]:
            d_bias = _summed(d_bias.reshape(*batch, T, S), score_bias.shape)
        found = (*(d.reshape(*batch, *d.shape[1:]) for d in (dQ, dK, dV)), d_bias)
        return tuple(x if need else None for x, need in zip(found, needs, strict=True))

    return Y.reshape(*batch, T, d_v), backward


# ---------------------------------------------------- A first reading may stop here.
# What follows: blocks, and members of a batch whose arrays were broadcast to it.


def _blocks(n: int, size: int) -> list[slice]:
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def _part(space: Array, *axes: slice) -> Array:
    """Return the first numbers of `space` as an array whose axes are as long as the slices."""
    shape = [axis.stop - axis.start for axis in axes]
    return space[: math.prod(shape)].reshape(shape)


def _stretched(x: Array, T: int, S: int) -> Array:
    """Return a mask or a score_bias with its last two axes broadcast to T and S, not copied."""
    return np.broadcast_to(x, (*np.shape(x)[:-2], T, S))  # (…, T, S)


def _in_a_row(x: Array, batch: tuple[int, ...]) -> Array:
    """Return x's matrices in a row, one for each member of the batch.   (…, ·, ·) → (N, ·, ·)

    Matrices that do not lie so in memory are copied. Their products are then faster, too.
    """
    whole = np.broadcast_to(x, (*batch, *x.shape[-2:]))
    return whole.reshape(math.prod(batch), *x.shape[-2:])


def _of_members(x: Array, batch: tuple[int, ...]) -> Callable[..., Array]:
    """Return a function f(members, *part) that gives the matrices in x of these members.

    `members` is a slice of the batch flattened to one axis, and `part` are slices of each matrix.
    If x has a single matrix for all members, f returns it once, with a first axis of length 1.
    """
    own = x.shape[:-2]
    flat = x.reshape(math.prod(own), *x.shape[-2:])
    if len(flat) == 1:
        return lambda members, *part: flat[:, *part]
    places = np.broadcast_to(np.arange(len(flat)).reshape(own), batch).ravel()  # (N,)
    return lambda members, *part: flat[places[members], *part]


def _summed(dZ: Array, shape: tuple[int, ...]) -> Array:
    """Return ∂L/∂Z summed over the axes along which a score_bias of this shape was stretched."""
    missing = dZ.ndim - len(shape)
    stretched = [i + missing for i, n in enumerate(shape) if n == 1]
    return np.asarray(dZ.sum(axis=(*range(missing), *stretched))).reshape(shape)
