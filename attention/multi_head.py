"""13 · Multi-head attention: several questions at once.

Why should attention be split into heads? One softmax makes one average. Take a sentence as a
sequence of **tokens**: a token is a word or a piece of one, written as a whole number, and its
vector is at one position. A verb that looks for both its subject and its object gets a mixture of
the two. So the layer has H heads. Each projects queries, keys and values by its own matrices and
computes its own attention, and the results are written side by side:

    MultiHead(Q, K, V) = Concat(head₁, …, head_H) W_O
    headᵢ = Attention(Q W_Qᵢ, K W_Kᵢ, V W_Vᵢ)             (Vaswani et al. 2017, section 3.2.2)

Every head sees its whole input: each W_Qᵢ reads all d_model features. What is split is
the *result* of the projection. The H small matrices stand side by side in one W_Q, so one product
computes all heads' queries at once, side by side too:

    X [W_Q₁ W_Q₂ … W_Q_H] = [X W_Q₁  X W_Q₂  …  X W_Q_H]

`split_heads` makes the heads an axis. That axis is a batch axis, so the heads never mix before W_O.

`multi_head_attention` is those two lines. `MultiHeadAttention`, the layer, adds parameters and
options to it. If queries, keys and values all come from one sequence it is **self-attention**. If
the keys and values come from another one, called the memory, it is **cross-attention**.

**Why are W_Q and W_K two matrices?** With a single W for both, the scores would be (X W)(X W)ᵀ, a
symmetric matrix: if a verb fits its subject, the subject would fit the verb with the same score.
And no two positions could fit each other better than the better of them fits itself, because
(xᵢ W)·(xⱼ W) is at most the mean of ‖xᵢ W‖² and ‖xⱼ W‖².

**The way back** through one head of self-attention adds nothing new to chapter 11, which has the
gradients of Q, K and V. As Q = X W_Q is a matrix product (chapter 3.5),

    ∂L/∂W_Q = Xᵀ (∂L/∂Q)

and likewise for K and V. X is used three times. So its gradient is the sum of three contributions:

    ∂L/∂X = (∂L/∂Q) W_Qᵀ + (∂L/∂K) W_Kᵀ + (∂L/∂V) W_Vᵀ

    >>> from minigrad import gradients
    >>> rng = np.random.default_rng(0)
    >>> x, *ws = (Tensor(rng.standard_normal((5, 5)), requires_grad=True) for _ in range(4))
    >>> q, k, v = (x @ w for w in ws)
    >>> of_x, of_q, of_k, of_v = gradients((attention(q, k, v) ** 2).sum(), [x, q, k, v])
    >>> parts = [g @ w.data.T for g, w in zip((of_q, of_k, of_v), ws)]
    >>> np.allclose(of_x, sum(parts))
    True

Legend: B batch, T queries, S keys, H heads; d_model features of a position; d_k features of a query
or key in one head, d_v of a value.

    >>> layer = MultiHeadAttention(6, 3, rng=np.random.default_rng(0))
    >>> x = Tensor(np.ones((2, 5, 6)))
    >>> layer(x).shape, layer.weights(x).shape
    ((2, 5, 6), (2, 3, 5, 5))
    >>> [name for name, _ in layer.named_parameters()]
    ['w_q.weight', 'w_k.weight', 'w_v.weight', 'w_o.weight']

Exercise 21 of `python -m demos learn`: heads that mix positions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from attention.fused import fused_attention
from attention.scaled_dot_product import Scale, attention, attention_weights
from minigrad import Tensor, repeat
from minigrad.nn import Dropout, Linear, Module

if TYPE_CHECKING:
    from attention.cache import KVCache


def split_heads(x: Tensor, num_heads: int) -> Tensor:
    """(…, T, H · d_k) → (…, H, T, d_k): heads become a batch axis, so they never mix.

    >>> split_heads(Tensor([[1, 2, 3, 4]]), 2)          # one position, two heads
    Tensor([[[1, 2]],
    <BLANKLINE>
            [[3, 4]]])
    """
    *batch, T, width = x.shape
    if num_heads < 1 or width % num_heads:
        raise ValueError(f"{width} features cannot be shared equally by num_heads={num_heads}")
    d_k = width // num_heads
    return x.reshape(*batch, T, num_heads, d_k).swapaxes(-3, -2)  # (…, H, T, d_k)


def merge_heads(x: Tensor) -> Tensor:
    """(…, H, T, d_v) → (…, T, H · d_v): the inverse; the heads are side by side again."""
    *batch, H, T, d_v = x.shape
    return x.swapaxes(-3, -2).reshape(*batch, T, H * d_v)  # (…, T, H · d_v)


def multi_head_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    w_q: Tensor,
    w_k: Tensor,
    w_v: Tensor,
    w_o: Tensor,
    num_heads: int,
    **options: Any,
) -> Tensor:
    """Compute the paper's two lines.   (…, T, d_model), (…, S, d_model), … → (…, T, d_model)

    w_q, w_k (d_model, H · d_k), w_v (d_model, H · d_v), w_o (H · d_v, d_model); the options are
    those of `attention`. A mask needs an axis of length 1 for the heads: (B, 1, T, S).

    >>> x, eye = Tensor([[1.0, 0.0], [0.0, 1.0]]), np.eye(2)
    >>> multi_head_attention(x, x, x, eye, eye, eye, eye, 2, scale=0.0)     # the mean, in each head
    Tensor([[0.5, 0.5],
            [0.5, 0.5]])
    """
    pairs = ((q, w_q), (k, w_k), (v, w_v))
    projected = [split_heads(x @ w, num_heads) for x, w in pairs]  # each (…, H, positions, d)
    heads = attention(*projected, **options)  # (…, H, T, d_v)
    return merge_heads(heads) @ w_o  # (…, T, d_model)


# ---------------------------------------------------- A first reading may stop here.
# What follows: the layer, for which chapters 7 and 14 are needed.


class MultiHeadAttention(Module):
    """H attention heads between four learned projections.   (…, T, d_model) → (…, T, d_model)

    This is `multi_head_attention` with its parameters, and with options:

    num_kv_heads  how many heads of keys and values there are (H_kv in the comments); each serves
                  num_heads/num_kv_heads query heads (Ainslie et al. 2023; with 1, Shazeer 2019),
                  which saves parameters and cache. None means as many as num_heads
    d_k, d_v      features of a head; d_model / num_heads if not given
    bias          whether the four projections add a bias
    scale         as for `attention`; a Tensor that requires a gradient becomes a parameter
    dropout       the probability with which a weight is dropped while training
    rotate        a function of (q or k, first position), such as `rotary` (chapter 14); a call with
                  positions= passes those in the place of the first position, as (…, 1, T)
    attend        the function that each head computes, called with mask=, score_bias=, scale= and
                  drop=. None means chapter 12's `fused_attention`, whose results are those of
                  chapter 11's `attention`, but for rounding. It may be set later
    rng           where the initial weights come from (Xavier uniform; see `Linear`)

    The layer keeps nothing of what it computes: `weights` computes the attention weights. To look
    at the scores of each head, or at their gradient, set `attend`. The result must be computed from
    the scores that are kept: scores that are only looked at get no gradient.

    >>> from attention.scaled_dot_product import over_keys, scale_factor   # chapter 11's two steps
    >>> from minigrad import gradients
    >>> kept = []
    >>> def spy(q, k, v, *, mask, scale, **options):    # options: score_bias and drop, None here
    ...     kept.append(scale_factor(q, k, scale) * (q @ k.mT))
    ...     return over_keys(kept[-1], mask) @ v
    >>> layer = MultiHeadAttention(6, 3, attend=spy, rng=np.random.default_rng(0))
    >>> x = Tensor(np.random.default_rng(1).standard_normal((2, 5, 6)))
    >>> (of_scores,) = gradients((layer(x) ** 2).sum(), kept)
    >>> kept[0].shape, of_scores.shape, np.allclose(of_scores.sum(axis=-1), 0)
    ((2, 3, 5, 5), (2, 3, 5, 5), True)
    >>> layer.attend = None                             # from now on without the spy
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        *,
        num_kv_heads: int | None = None,
        d_k: int | None = None,
        d_v: int | None = None,
        bias: bool = False,
        scale: Scale = None,
        dropout: float = 0.0,
        rotate: Callable[[Tensor, Any], Tensor] | None = None,
        attend: Callable[..., Tensor] | None = None,
        rng: np.random.Generator,
    ) -> None:
        if num_heads < 1 or ((d_k is None or d_v is None) and d_model % num_heads):
            raise ValueError(f"d_model={d_model} cannot be shared equally by num_heads={num_heads}")
        num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        if num_kv_heads < 1 or num_heads % num_kv_heads:
            raise ValueError(
                f"num_heads={num_heads} cannot be shared equally by num_kv_heads={num_kv_heads}"
            )
        d_k = d_model // num_heads if d_k is None else d_k
        d_v = d_model // num_heads if d_v is None else d_v
        self.num_heads = num_heads
        self.num_kv_heads = num_kv_heads
        self.scale = scale
        self.rotate = rotate
        self.attend = attend
        self.w_q = Linear(d_model, num_heads * d_k, bias=bias, rng=rng)
        self.w_k = Linear(d_model, num_kv_heads * d_k, bias=bias, rng=rng)
        self.w_v = Linear(d_model, num_kv_heads * d_v, bias=bias, rng=rng)
        self.w_o = Linear(num_heads * d_v, d_model, bias=bias, rng=rng)
        self.dropout = Dropout(dropout, rng=rng)
        for name, parameter in self.named_parameters():
            parameter.name = name  # errors and graphs then speak of w_q.weight

    def __call__(
        self,
        q: Tensor,
        k: Tensor | None = None,
        v: Tensor | None = None,
        *,
        mask: Any = None,
        score_bias: Any = None,
        cache: KVCache | None = None,
        positions: Any = None,
    ) -> Tensor:
        """Attend from q to k and v: `layer(x)` is self-, `layer(x, memory)` cross-attention.

        q (…, T, d_model), k and v (…, S, d_model) → (…, T, d_model). mask is boolean, True =
        may look, of shape (T, S), (B, T, S) or (B, H, T, S), and score_bias (T, S), (H, T, S) or
        (B, H, T, S): padding differs by sequence, distance by head. With a cache, q is the new
        positions, and S counts the earlier ones too. positions, integers (B, T), are for `rotate`
        in self-attention; None means that they follow those in the cache.
        """
        if cache is not None and k is not None:
            raise ValueError("a cache is for self-attention: call layer(x, cache=cache)")
        if cache is not None and mask is None and q.shape[-2] > 1:
            raise ValueError(
                f"each of {q.shape[-2]} new positions would see those after it: with a cache pass "
                "mask=causal_mask(T, cache.length + T)"
            )
        k = q if k is None else k
        v = k if v is None else v
        start: Any = 0 if cache is None else cache.length
        if positions is not None:
            start = np.expand_dims(positions, -2)  # (B, 1, T)
        q_heads, k_heads = self._queries_and_keys(q, k, start)
        v_heads = split_heads(self.w_v(v), self.num_kv_heads)  # (…, H_kv, S, d_v)
        if cache is not None:
            k_heads, v_heads = cache.joined(k_heads, v_heads)
        attend = self.attend or fused_attention
        heads = attend(
            q_heads,  # (…, H, T, d_k)
            self._for_each_head(k_heads),  # (…, H, S, d_k)
            self._for_each_head(v_heads),  # (…, H, S, d_v)
            mask=_for_heads(mask, q_heads, k_heads),
            score_bias=score_bias,
            scale=self.scale,
            drop=self.dropout if self.training and self.dropout.p else None,
        )  # (…, H, T, d_v)
        y = self.w_o(merge_heads(heads))  # (…, T, d_model)
        if cache is not None:  # only now: a call that is refused leaves the cache as it was
            cache.k, cache.v = k_heads, v_heads
        return y

    def weights(
        self, q: Tensor, k: Tensor | None = None, *, mask: Any = None, score_bias: Any = None
    ) -> Tensor:
        """Return every head's attention weights, computed anew, nothing dropped.   → (…, H, T, S)

        They are those of chapter 11's `attention`, after `qk_norm` if the layer has it, even if
        `attend` is another function.
        """
        q_heads, k_heads = self._queries_and_keys(q, q if k is None else k, 0)
        if prepare := getattr(self.attend, "prepare", None):  # such as qk_norm's
            q_heads, k_heads = prepare(q_heads), prepare(k_heads)
        return attention_weights(
            q_heads,
            self._for_each_head(k_heads),
            mask=_for_heads(mask, q_heads, k_heads),
            score_bias=score_bias,
            scale=self.scale,
        )  # (…, H, T, S)

    def _queries_and_keys(self, q: Tensor, k: Tensor, start: Any) -> tuple[Tensor, Tensor]:
        """Project q and k, split them into heads, and turn them if the layer has `rotate`."""
        q_heads = split_heads(self.w_q(q), self.num_heads)  # (…, H, T, d_k)
        k_heads = split_heads(self.w_k(k), self.num_kv_heads)  # (…, H_kv, S, d_k)
        if self.rotate is None:
            return q_heads, k_heads
        # Fewer queries than keys are the last of the positions, as in a causal mask.
        ahead = max(k_heads.shape[-2] - q_heads.shape[-2], 0)
        return self.rotate(q_heads, start + ahead), self.rotate(k_heads, start)

    def _for_each_head(self, x: Tensor) -> Tensor:
        """Repeat the keys or values of a shared head, once for each head of its group."""
        group_size = self.num_heads // self.num_kv_heads
        return x if group_size == 1 else repeat(x, group_size, axis=-3)


def _for_heads(mask: Any, q_heads: Tensor, k_heads: Tensor) -> Any:
    """Give a mask for all heads, (B, T, S), an axis of heads, (B, 1, T, S).

    Otherwise broadcasting would line B up with H. For B ≠ H that is an error, and for B = H it
    would silently give each head the mask of one sequence.
    """
    if 2 < np.ndim(mask) < max(q_heads.ndim, k_heads.ndim):
        return np.expand_dims(mask, -3)
    return mask
