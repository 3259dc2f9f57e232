"""13 · Multi-head attention: several questions at once.

Softmax pushes towards one answer, but a word may need two: its subject and its verb. One head
cannot look at both with full weight, so the layer has H heads. Each projects queries, keys and
values by matrices of its own, attends by itself, and the results stand side by side:

    MultiHead(Q, K, V) = Concat(head₁, …, head_H) W_O
    headᵢ = Attention(Q W_Qᵢ, K W_Kᵢ, V W_Vᵢ)             (Vaswani et al. 2017, section 3.2.2)

No head sees only a part of its input: each W_Qᵢ reads all d_model features. What is split is
the *result* of the projection. The H small matrices stand side by side in one W_Q, one product
computes all heads' queries at once, and `split_heads` turns the columns that belong together
into an axis of their own. On that axis the heads are a batch, so they never mix before W_O.

Legend: B batch, T queries, S keys, H heads; d_model features of a position; d_k features of a
query or key in one head, d_v of a value.

    >>> layer = MultiHeadAttention(6, 3, rng=np.random.default_rng(0))
    >>> x = Tensor(np.ones((2, 5, 6)))
    >>> layer(x).shape, layer.weights(x).shape
    ((2, 5, 6), (2, 3, 5, 5))
    >>> [name for name, _ in layer.named_parameters()]
    ['w_q.weight', 'w_k.weight', 'w_v.weight', 'w_o.weight']
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from attention.masks import check_mask
from attention.scaled_dot_product import Scale, attention, attention_weights
from minigrad import Tensor
from minigrad.nn import Linear, Module


def split_heads(x: Tensor, num_heads: int) -> Tensor:
    """(…, T, H · d_k) → (…, H, T, d_k): heads become a batch axis, so they never mix.

    >>> split_heads(Tensor([[1, 2, 3, 4]]), 2)          # one position, two heads
    Tensor([[[1, 2]],
    <BLANKLINE>
            [[3, 4]]])
    """
    *batch, T, width = x.shape
    if width % num_heads:
        raise ValueError(f"{width} features cannot be shared equally by num_heads={num_heads}")
    d_k = width // num_heads
    return x.reshape(*batch, T, num_heads, d_k).swapaxes(-3, -2)  # (…, H, T, d_k)


def merge_heads(x: Tensor) -> Tensor:
    """(…, H, T, d_v) → (…, T, H · d_v): the inverse; heads stand side by side again."""
    *batch, H, T, d_v = x.shape
    return x.swapaxes(-3, -2).reshape(*batch, T, H * d_v)  # (…, T, H · d_v)


class MultiHeadAttention(Module):
    """H attention heads between four learned projections.   (…, T, d_model) → (…, T, d_model)

    MultiHeadAttention(d_model, num_heads, *, d_k=None, d_v=None, bias=False, scale=None,
                       attend=attention, rng, dtype=float)

    d_k, d_v  features of a head; d_model / num_heads if not given, and then num_heads must
              divide d_model
    bias      whether the four projections add a bias
    scale     as for `attention`; a Tensor that requires a gradient becomes a parameter
    attend    the function of (q, k, v, mask=, scale=) that each head computes
    rng       where the initial weights come from (Xavier uniform; see `Linear`)

    The layer keeps nothing of what it computes: ask `weights` for the attention weights.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        *,
        d_k: int | None = None,
        d_v: int | None = None,
        bias: bool = False,
        scale: Scale = None,
        attend: Callable[..., Tensor] = attention,
        rng: np.random.Generator,
        dtype: Any = float,
    ) -> None:
        if num_heads < 1:
            raise ValueError(f"num_heads must be at least 1: got {num_heads}")
        if (d_k is None or d_v is None) and d_model % num_heads:
            raise ValueError(f"d_model={d_model} cannot be shared equally by num_heads={num_heads}")
        d_k = d_model // num_heads if d_k is None else d_k
        d_v = d_model // num_heads if d_v is None else d_v
        self.num_heads = num_heads
        self.scale = scale
        self.attend = attend
        self.w_q = Linear(d_model, num_heads * d_k, bias=bias, rng=rng, dtype=dtype)
        self.w_k = Linear(d_model, num_heads * d_k, bias=bias, rng=rng, dtype=dtype)
        self.w_v = Linear(d_model, num_heads * d_v, bias=bias, rng=rng, dtype=dtype)
        self.w_o = Linear(num_heads * d_v, d_model, bias=bias, rng=rng, dtype=dtype)
        for name, parameter in self.named_parameters():
            parameter.name = name  # errors and graphs then speak of w_q.weight

    def __call__(
        self, q: Tensor, k: Tensor | None = None, v: Tensor | None = None, *, mask: Any = None
    ) -> Tensor:
        """Attend from q to k and v. `layer(x)` is self-attention, `layer(x, memory)` cross-.

        q (…, T, d_model), k and v (…, S, d_model) → (…, T, d_model). mask is boolean, True =
        may look, of shape (T, S) or (B, T, S) for all heads, or (B, H, T, S).
        """
        k = q if k is None else k
        v = k if v is None else v
        heads = self.attend(
            split_heads(self.w_q(_sequence(q, "q")), self.num_heads),  # (…, H, T, d_k)
            split_heads(self.w_k(_sequence(k, "k")), self.num_heads),  # (…, H, S, d_k)
            split_heads(self.w_v(_sequence(v, "v")), self.num_heads),  # (…, H, S, d_v)
            mask=_for_heads(mask, q, k),
            scale=self.scale,
        )  # (…, H, T, d_v)
        return self.w_o(merge_heads(heads))  # (…, T, d_model)

    def weights(self, q: Tensor, k: Tensor | None = None, *, mask: Any = None) -> Tensor:
        """Every head's attention weights, computed anew.   → (…, H, T, S)

        They are those of chapter 11's `attention`, also where `attend` is another function.
        """
        k = q if k is None else k
        return attention_weights(
            split_heads(self.w_q(_sequence(q, "q")), self.num_heads),  # (…, H, T, d_k)
            split_heads(self.w_k(_sequence(k, "k")), self.num_heads),  # (…, H, S, d_k)
            mask=_for_heads(mask, q, k),
            scale=self.scale,
        )  # (…, H, T, S)


def _sequence(x: Tensor, name: str) -> Tensor:
    """Inputs are Tensors of at least two axes; anything else gets one sentence."""
    if not isinstance(x, Tensor) or x.ndim < 2:
        got = f"one of shape {x.shape}" if isinstance(x, Tensor) else type(x).__name__
        raise TypeError(f"{name} must be a Tensor (…, positions, d_model): got {got}")
    return x


def _for_heads(mask: Any, q: Tensor, k: Tensor) -> Any:
    """Give a mask for all heads, (B, T, S), its axis of heads, (B, 1, T, S).

    Broadcasting would otherwise line B up with H. For B ≠ H that is an error, and for B = H it
    would silently give each head the mask of one sequence.
    """
    if mask is None:
        return None
    try:
        batch = np.broadcast_shapes(q.shape[:-2], k.shape[:-2])
    except ValueError:
        raise ValueError(f"the batch axes of q {q.shape} and k {k.shape} do not fit") from None
    if np.ndim(mask) > len(batch) + 2:  # (B, H, T, S): it has the axis already
        return mask
    mask = check_mask(mask, (*batch, q.shape[-2], k.shape[-2]))
    return np.expand_dims(mask, -3) if mask.ndim > 2 else mask
