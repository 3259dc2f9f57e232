"""11.1 · Masks: who may look at whom.

Which keys may a query see? A mask answers with one boolean for each pair of query and key, and
it has one meaning everywhere in this project: **True means "may look"**. (PyTorch has both: True
means that in `scaled_dot_product_attention`, and the opposite in `nn.MultiheadAttention`. A
reversed mask raises no error: the model only trains badly. The meaning of a mask of integers or
floats would have to be guessed, so such a mask is refused.)

A mask is a plain array, not a Tensor: who may look is a fact of the data, and has no derivative.
It has shape (T, S), for T queries and S keys, or (B, T, S) for a batch, or
anything that broadcasts to the scores. (Where these have an axis of heads, (B, H, T, S), chapter
13's layer inserts it into the mask; for chapter 11's functions write (B, 1, T, S).) A boolean
(B, S), True at tokens and False at padding, is not a mask yet: `padding_mask` makes (B, 1, S) of
it. For B = T it would be taken for (T, S), without an error. Masks combine with `&`.

The backward pass needs a mask as it was in the forward pass. The masks made here are read-only, so
attention need not copy them; any other mask it copies.

    >>> causal_mask(3) & padding_mask([3, 2], 3)
    array([[[ True, False, False],
            [ True,  True, False],
            [ True,  True,  True]],
    <BLANKLINE>
           [[ True, False, False],
            [ True,  True, False],
            [ True,  True, False]]])

Legend: B batch, T queries, S keys, d_model features.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from attention.scaled_dot_product import Mask, check_mask
from minigrad import Tensor, as_number, where


def causal_mask(T: int, S: int | None = None) -> Mask:
    """Let query t look at keys up to its own position, never into the future.   → (T, S)

    A model that predicts token t + 1 from position t must not see that token at t. With this mask
    the output at t does not depend on any later input, so no later input gets a gradient from it.
    With more keys than queries, the T queries are the last T of the S positions: the mask is
    aligned at the bottom right. (PyTorch's `is_causal=True` is aligned at the top left, where query
    t sees keys 0 to t. The two are the same only for T = S.) With fewer keys the first queries
    would see nothing, so that is refused.

    >>> causal_mask(2, 3)
    array([[ True,  True, False],
           [ True,  True,  True]])
    """
    S = T if S is None else S
    if T > S:
        raise ValueError(f"a causal mask needs a key for each query: got T={T} queries, S={S} keys")
    return _read_only(np.tri(T, S, S - T, dtype=bool))  # (T, S)


def padding_mask(lengths: Any, S: int) -> Mask:
    """Look only at the first lengths[b] keys of sequence b.   (B,) → (B, 1, S)

    Sequences of a batch are padded to a common length S; the padding is not data. Every query
    of a sequence sees the same keys, hence the axis of length 1. In the place of lengths, a boolean
    array (B, S) says of each position whether it is data, such as tokens != PAD.

    >>> tokens = np.array([[7, 5, 0], [4, 0, 0]])
    >>> np.array_equal(padding_mask(tokens != 0, 3), padding_mask([2, 1], 3))
    True
    """
    counts = np.asarray(lengths)
    if counts.dtype == bool and counts.ndim == 2 and counts.shape[1] == S:
        return _read_only(counts[:, None].copy())  # (B, 1, S)
    if counts.ndim != 1 or (counts.size and counts.dtype.kind not in "iu"):
        raise ValueError(
            f"padding_mask takes B lengths, whole numbers, or booleans (B, S) with S={S}: got "
            f"{counts.dtype} {counts.shape}"
        )
    if counts.size and not 0 <= counts.min() <= counts.max() <= S:
        raise ValueError(f"lengths must lie between 0 and S={S}: got {counts.tolist()}")
    keys = np.arange(S)  # (S,)
    return _read_only(keys < counts[:, None, None])  # (B, 1, S)


def _read_only(mask: Mask) -> Mask:
    """Make a mask read-only, and return it."""
    mask.setflags(write=False)
    return mask


def mean_over_positions(x: Tensor, *, mask: Any = None) -> Tensor:
    """Return the mean of each sequence, without its padding.   (B, S, d_model) → (B, d_model)

    mask is padding's, (B, 1, S). A sequence without any kept position gives zeros.

    >>> x = Tensor([[[1.0], [3.0], [50.0]]])
    >>> mean_over_positions(x), mean_over_positions(x, mask=padding_mask([2], 3))
    (Tensor([[18.]]), Tensor([[2.]]))
    """
    each = (*x.shape[:-2], 1, x.shape[-2])
    mask = np.ones(each, bool) if mask is None else check_mask(mask, each)
    kept = np.broadcast_to(mask, each).swapaxes(-1, -2)  # (B, S, 1)
    number = np.maximum(kept.sum(axis=-2), 1).astype(x.dtype)  # (B, 1)
    return where(kept, x, 0).sum(axis=-2) / number  # type: ignore[no-any-return]  # (B, d_model)


# Reference: no demo uses what follows.


def window_mask(T: int, S: int | None = None, *, size: int) -> Mask:
    """Let query t look at the last `size` keys up to its own position.   → (T, S)

    A sliding window. Each layer reaches size - 1 positions further back, so an output of n layers
    depends on 1 + n (size - 1) positions (Beltagy et al. 2020, section 3.1).

    >>> window_mask(4, size=2).astype(int)
    array([[1, 0, 0, 0],
           [1, 1, 0, 0],
           [0, 1, 1, 0],
           [0, 0, 1, 1]])
    """
    S = T if S is None else S
    size = as_number("size", size, 1, whole=True)
    too_far_back = np.tri(T, S, S - T - size, dtype=bool)  # (T, S)
    return _read_only(causal_mask(T, S) & ~too_far_back)  # (T, S)
