"""14 · Positions: how attention learns where things are.

Does attention depend on the order of its inputs? No. Permute the keys and values together, and
nothing changes: the output is a sum over them, and a sum has no order. A sentence gives the same as
its words in any other order. Position has to be put in, and there are three places to put it:

    sinusoidal, learned   into the input, added to each token's vector      (absolute)
    rotary                into queries and keys, turned by their position   (relative, by angles)
    ALiBi, relative bias  into the scores, added to them                    (relative, by distance)

**Sinusoidal** positions (Vaswani et al. 2017, section 3.5) are pairs (sin, cos) of an angle that
grows with the position. The first pair repeats after 2π positions, the last after 2π · 10000^(1 -
2/d_model): 19,293π for d_model = 512. A shift by Δ adds a fixed angle to each pair, so the vector
at t + Δ is a linear function of that at t, which a layer can learn. **Learned** rows are simpler,
but there are none for positions beyond those of the training. **Rotary** (Su et al. 2021) turns
pairs of features of q and k by an angle proportional to their position; in a product of two turned
vectors only the difference of the angles is left. Which features are a pair is a convention: two
neighbours, or one from each half. A trained model needs the convention of its training. With the
other one its weights load without an error, since all shapes are the same, but its scores are
wrong for any key at another position than the query's. **ALiBi** (Press et al. 2021) subtracts a
constant times the distance. It learns nothing, so it also works beyond the positions of the
training. A **relative bias** learns one number for each head and distance (Raffel et al. 2019, who
let far distances share buckets). Shaw et al. 2018 before them learned a vector for each, added to
the keys and values, and clipped distances at a reach, as here.

Legend: T queries or positions, S keys, H heads, d_model features of a position, d_k of a query or
key in one head, i the number of a pair of features.

    >>> sinusoidal(3, 4).round(2)
    array([[ 0.  ,  1.  ,  0.  ,  1.  ],
           [ 0.84,  0.54,  0.01,  1.  ],
           [ 0.91, -0.42,  0.02,  1.  ]])
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad import Tensor, as_number, embedding, rotate_pairs
from minigrad.nn import Module, normal

Array = np.ndarray[Any, Any]


def sinusoidal(T: int, d_model: int, *, start: Any = 0) -> Array:
    """Row t: sin and cos of t/10000^(2i/d_model), side by side, for each i.   → (T, d_model)

    Positions run from `start`, or are `start`, if that is an array of integers (…, T); the result
    is then (…, T, d_model). It is a plain float64 array: nothing in it is learned.
    """
    angles = _angles(start, T, d_model, 10_000.0)  # (…, T, d_model // 2)
    pairs = np.stack([np.sin(angles), np.cos(angles)], axis=-1)  # (…, T, d_model // 2, 2)
    return pairs.reshape(*angles.shape[:-1], d_model)  # (…, T, d_model)


class LearnedPositions(Module):
    """A learned row for each of `max_length` positions.   (…, T, d_model) → (…, T, d_model)"""

    def __init__(self, max_length: int, d_model: int, *, rng: np.random.Generator) -> None:
        rows = normal((max_length, d_model), 0.02, rng=rng)
        self.weight = Tensor(rows, requires_grad=True, name="weight")

    def __call__(self, x: Tensor, start: Any = 0) -> Tensor:
        """Add the rows of positions start, start + 1, … to x, or those of an array (…, T)."""
        places = positions_from(start, x.shape[-2])  # (…, T)
        end, (known, d_model) = places.max(initial=-1) + 1, self.weight.shape
        if x.shape[-1] != d_model:
            raise ValueError(f"LearnedPositions adds rows of {d_model} features: got {x.shape}")
        if end > known:
            raise ValueError(
                f"x has positions up to {end - 1}, and the learned ones end at {known - 1}"
            )
        if np.ndim(start) == 0:
            return x + self.weight[start:end]
        return x + embedding(self.weight, places)


class SinusoidalPositions(Module):
    """As `LearnedPositions`, with the rows of `sinusoidal`, which are fixed and never end."""

    def __call__(self, x: Tensor, start: Any = 0) -> Tensor:
        """Add the rows of positions start, start + 1, … to x, or those of an array (…, T)."""
        rows = sinusoidal(x.shape[-2], x.shape[-1], start=start)
        return x + rows.astype(np.result_type(x.dtype, np.float32))  # (x may be integers)


def rotary(
    x: Tensor, start: Any = 0, *, base: float = 10_000.0, pairs: str = "neighbours"
) -> Tensor:
    """Turn feature pair i of position t by the angle t/base^(2i/d_k).   (…, T, d_k) → (…, T, d_k)

    A turn by θ takes (a, b) to (a cos θ - b sin θ, a sin θ + b cos θ), keeps its length, and
    ⟨turn(q, s), turn(k, t)⟩ depends on t - s alone: turning both back by s changes no product.
    It is for q and k, not for v. (Su et al. 2021, section 3.2.2.)

    start  the position of the first row, or the positions of all rows, integers (…, T): with heads
           (B, 1, T), where texts of a batch do not begin in the same column
    pairs  which features are pair i: "neighbours" for 2i and 2i + 1, as in the paper and in Meta's
           Llama, "halves" for i and i + d_k/2, as in Hugging Face's. Trained weights need the one
           of their training

    >>> x = Tensor([[1.0, 0.0, 0.0, 0.0]])
    >>> rotary(x, 1, base=1.0).data.round(2)                # 1 in the pair (0, 1), turned by 1
    array([[0.54, 0.84, 0.  , 0.  ]])
    >>> rotary(x, 1, base=1.0, pairs="halves").data.round(2)      # in the pair (0, 2)
    array([[0.54, 0.  , 0.84, 0.  ]])
    """
    if pairs not in ("neighbours", "halves"):
        raise ValueError(f"pairs of features are 'neighbours' or 'halves': got pairs={pairs!r}")
    T, d_k = x.shape[-2:]
    angles = _angles(start, T, d_k, base)  # (…, T, d_k // 2)
    return rotate_pairs(x, cos=np.cos(angles), sin=np.sin(angles), pairs=pairs)


def positions_from(start: Any, T: int) -> Array:
    """Return the T positions from `start` on, or `start` itself if it is an array (…, T)."""
    if np.ndim(start) == 0:
        return np.arange(start, start + T)  # (T,)
    if np.shape(start)[-1] != T:
        raise ValueError(
            f"start is one position, or one for each of {T} rows: got shape {np.shape(start)}"
        )
    return np.asarray(start)  # (…, T)


def _angles(start: Any, T: int, d: int, base: float) -> Array:
    """Return t/base^(2i/d) for each position t, and i = 0 … d/2 - 1.   → (…, T, d // 2)"""
    if d % 2:
        raise ValueError(f"positions are written in pairs of features: {d} features are odd")
    base = as_number("base", base, 0, ends="()")
    return positions_from(start, T)[..., None] / base ** (np.arange(0, d, 2) / d)


# Reference: no demo uses what follows.


def alibi(num_heads: int, T: int, S: int | None = None) -> Array:
    """-slope · distance, with slopes 2^(-8/H), 2^(-16/H), … for the H heads.   → (H, T, S)

    A score_bias for `attention`. Heads with a large slope look near, those with a small slope far.
    The T queries are the last of the S positions, as in `causal_mask`.

    >>> alibi(8, 3)[0]                                              # the first slope is ½
    array([[-0. , -0.5, -1. ],
           [-0.5, -0. , -0.5],
           [-1. , -0.5, -0. ]])
    """
    slopes = 2.0 ** (-8.0 * np.arange(1, num_heads + 1) / num_heads)
    return -slopes[:, None, None] * np.abs(distances(T, S))  # (H, T, S)


class RelativeBias(Module):
    """A learned number for each head and each distance up to `reach`.   → (H, T, S)

    Distances beyond the reach share the number at its end.
    """

    def __init__(self, num_heads: int, reach: int, *, rng: np.random.Generator) -> None:
        self.reach = reach
        table = normal((2 * reach + 1, num_heads), 0.02, rng=rng)
        self.weight = Tensor(table, requires_grad=True, name="weight")

    def __call__(self, T: int, S: int | None = None) -> Tensor:
        """Return the score_bias for T queries, the last of S positions."""
        place = np.clip(distances(T, S), -self.reach, self.reach) + self.reach  # (T, S)
        return embedding(self.weight, place).transpose(2, 0, 1)  # (H, T, S)


def distances(T: int, S: int | None = None) -> Array:
    """Return how far key s lies behind query t; the queries are the last T of S.   → (T, S)"""
    S = T if S is None else S
    return np.arange(S - T, S)[:, None] - np.arange(S)  # (T, S)
