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

A model that counts positions must also know where a text begins. So the models of chapter 15 take
that boolean itself, as `real=`. They make the mask of it, and a token's position is the number of
real tokens before it. What is computed at padding is finite, and no token depends on it.

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

Array = np.ndarray[Any, Any]


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


# ---------------------------------------------------- A first reading may stop here.
# What follows: padding as the models of chapter 15 take it.


def real_positions(real: Mask) -> Array:
    """Return how many real tokens come before each position, its place in its text. → (B, S)

    Padding before a text gets 0, and padding after it the place of the text's last token: an
    integer that a table of learned positions has.

    >>> from attention.masks import real_positions
    >>> real_positions(np.array([[False, False, True, True], [True, True, True, False]]))
    array([[0, 0, 0, 1],
           [0, 1, 2, 2]])
    """
    return np.asarray(np.maximum(real.cumsum(axis=-1) - 1, 0))  # (B, S)


def without_padding(mask: Any, real: Any) -> Any:
    """Return the mask without the keys of padding.   (T, S) or (B, T, S), (B, S) → (B, T, S)

    mask None allows all keys, and real None means that none is padding.
    """
    if real is None:
        return mask
    keys = padding_mask(real, np.shape(real)[-1])  # (B, 1, S)
    return keys if mask is None else _read_only(keys & mask)  # (B, T, S)


def check_real(real: Any, tokens: Any) -> Mask:
    """Return `real` as a boolean array of the tokens' shape; refuse another dtype or shape."""
    array = np.asarray(real)
    if array.dtype != np.bool_ or array.shape != np.shape(tokens) or array.ndim != 2:
        raise ValueError(
            "real is boolean (B, S), True at tokens and False at padding, such as tokens != PAD: "
            f"got {array.dtype} {array.shape} for tokens of shape {np.shape(tokens)}"
        )
    return array  # (B, S)


def left_padded(texts: Any) -> tuple[Any, Mask | None]:
    """Return texts of unequal length as one array, and where it is real.   → (B, T), (B, T)

    Each text ends in the last column, where a model's next token is read off, so padding (token 0)
    is on its left. Texts of equal length are returned as they are, with None. ValueError if a text
    is empty.

    >>> from attention.masks import left_padded
    >>> left_padded([[7, 5, 3], [4]])[0]
    array([[7, 5, 3],
           [0, 0, 4]])
    """
    if not isinstance(texts, list | tuple) or {*map(np.ndim, texts)} != {1}:
        return texts, None
    lengths = np.array([*map(len, texts)])  # (B,)
    T = lengths.max()
    if (lengths == T).all():
        return texts, None
    if 0 in lengths:
        raise ValueError(
            "an empty text has no token after which a model could go on: got texts of "
            f"{lengths.tolist()} tokens"
        )
    real = np.arange(T) >= T - lengths[:, None]  # (B, T)
    tokens = np.zeros(real.shape, int)  # (B, T)
    for row, text in zip(tokens, texts, strict=True):
        row[T - len(text) :] = np.asarray(text).astype(int, casting="same_kind")
    return tokens, real


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
