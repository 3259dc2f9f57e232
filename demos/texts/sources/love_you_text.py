"""Demos · Source text "I love you": its 552 printed numbers, of which 82 come back.

The text draws integers from 1 to 9 as embeddings, without a seed, and takes weights that are 1, 3
and 5 everywhere. A query is then one number 64 times over, the sum sᵢ of its word's row, and a key
is 3 sⱼ. So the scores depend on the rows by three sums alone:

    score(i, j) = 64 · sᵢ · 3 sⱼ / √64 = 24 sᵢ sⱼ

`sums` reads the three off the printed diagonal. The six scores beside it are then predictions, and
any rows with these sums will do: `rows` builds some. What depends on more than the sums depends on
how the lost values are drawn again: so do the gradients of W_Q, W_K and W_V, where they are not 0.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from attention import MultiHeadAttention, attention, attention_weights, split_heads
from attention.scaling import entropy
from demos.texts.sources import as_numpy_prints, parsed
from minigrad import Tensor, gradients, mse, softmax
from minigrad.optim import Adam

TITLE = '"I love you": multi-head attention at the size of the original Transformer'
WORDS = ("I", "love", "you")
D_MODEL, NUM_HEADS, D_K = 512, 8, 64
W_Q, W_K, W_V = 1.0, 3.0, 5.0  # what the text's ranges of one integer can give

as_text = as_numpy_prints

# The first row of the input is printed up to its 470th value, the other two rows not at all. These
# 470 are what our rows begin with, so they do not count as reproduced.
PRINTED = {
    "I": """
        8 5 6 7 7 7 2 2 5 5 7 5 5 1 1 9 3 2 9 7 1 1 8 7 1 7 7 1 1 6 1 3 2 6 5 9 3 5 2 6 2 9 4 1 3
        3 5 2 1 8 7 6 5 9 5 7 3 2 9 8 5 3 5 1 8 5 2 5 8 3 2 3 6 7 7 1 6 7 2 1 9 1 7 4 5 6 9 6 6 6
        8 2 2 8 5 3 8 1 9 5 3 6 4 6 7 6 4 7 5 4 7 7 4 6 7 8 7 3 4 1 4 9 7 6 8 9 4 1 3 4 2 9 6 6 8
        8 2 1 5 3 2 1 9 3 4 2 6 9 8 7 7 4 6 8 8 5 1 2 5 8 9 3 6 2 8 5 9 4 6 8 5 8 6 2 3 1 4 2 1 2
        2 7 1 4 1 7 4 6 6 8 1 4 3 3 6 6 8 8 2 2 4 2 7 7 1 3 5 3 5 5 1 3 8 7 8 9 5 8 9 6 3 6 5 1 9
        3 3 2 2 8 4 2 5 2 9 8 1 1 5 5 2 5 9 8 4 2 3 9 5 4 3 4 2 5 4 5 9 3 1 2 3 1 9 9 7 6 4 1 8 2
        5 6 3 7 3 9 4 9 2 8 3 2 9 3 5 4 6 5 9 1 6 8 3 7 7 6 5 1 5 7 2 2 7 1 2 8 7 3 4 5 6 4 4 5 3
        1 8 1 1 7 8 6 2 8 8 7 9 4 5 4 5 5 1 1 6 1 7 5 5 3 4 5 3 2 4 3 3 1 8 3 8 6 1 3 6 6 2 2 2 8
        3 5 7 6 6 9 8 8 1 6 8 2 1 1 6 7 7 6 7 7 4 2 8 8 1 4 1 3 8 4 6 3 4 9 3 9 9 7 8 4 7 2 3 8 4
        1 6 7 5 3 9 5 9 6 3 4 8 5 8 1 6 1 5 3 2 2 6 4 7 1 9 1 8 4 8 9 7 3 6 5 9 9 3 7 8 4 1 4 4 5
        9 7 7 3 7 3 6 6 5 9 6 5 2 6 8 5 1 8 4 2
    """,
    "scores": """
        1.49520384e+08 1.49939712e+08 1.56768768e+08
        1.49939712e+08 1.50360216e+08 1.57208424e+08
        1.56768768e+08 1.57208424e+08 1.64368536e+08
    """,
    "weights": "0. 0. 1. " * 3,
    "context": "0. " * 64,  # of the word "I"
}

LOST = {
    "I": 'the rows as they were drawn, as nothing was seeded: the 470 printed values of "I" are '
    'taken over, and its other 42 and all 1,024 of "love" and "you" are lost'
}

COMPLETED = (
    "Step 7: the context vectors of all three words, in one product.",
    "Step 8, which is a heading alone: eight heads from the text's numbers, joined, and W_O.",
    "Step 8 with weights that are not constant, and with rows of mean 0 and variance 1.",
    "Values of another width than keys, which the text allows and does not try.",
    "The way back: every gradient, and the scales at which W_Q and W_K get any.",
)


def sums() -> np.ndarray:
    """Return the sums of the three rows, from the printed diagonal: √(scoreᵢᵢ / 24).   → (3,)"""
    diagonal = parsed(PRINTED["scores"]).reshape(3, 3).diagonal()
    return np.sqrt(diagonal / (D_K * W_Q * W_K / np.sqrt(D_K))).round().astype(int)


def rows(rng: np.random.Generator) -> np.ndarray:
    """Return integers from 1 to 9 with the text's sums; "I" begins as printed.   → (3, 512)

    They are drawn as the text draws them, then moved by 1 in random places until the sum is right.
    """
    known = parsed(PRINTED["I"]).astype(int)
    filled = []
    for total, start in zip(sums(), (known, known[:0], known[:0]), strict=True):
        rest, wanted = rng.integers(1, 10, D_MODEL - len(start)), total - start.sum()
        while missing := wanted - rest.sum():
            place = rng.integers(len(rest))
            rest[place] = np.clip(rest[place] + np.sign(missing), 1, 9)
        filled.append(np.concatenate([start, rest]))
    return np.stack(filled)


def unit(array: np.ndarray) -> np.ndarray:
    """Return every row shifted and scaled to mean 0 and variance 1; the text does not do it."""
    return (array - array.mean(axis=-1, keepdims=True)) / array.std(axis=-1, keepdims=True)


def layer(
    *, scale: float | None = None, constant: bool = True, seed: int = 0, d_v: int = D_K
) -> MultiHeadAttention:
    """Return eight heads of 64 with the text's constant weights, or with Xavier draws of the layer.

    The text has no W_O. Ours, where weights are constant, makes each output the mean of the joined
    features.
    """
    rng = np.random.default_rng(seed)
    attend = MultiHeadAttention(D_MODEL, NUM_HEADS, d_v=d_v, scale=scale, rng=rng)
    if constant:
        for name, value in (("w_q", W_Q), ("w_k", W_K), ("w_v", W_V), ("w_o", 1 / D_MODEL)):
            projection = getattr(attend, name)
            projection.weight.data = np.full(projection.weight.shape, value)
    return attend


def heads(x: Tensor, attend: MultiHeadAttention) -> tuple[Tensor, Tensor, Tensor]:
    """Return queries, keys and values of every head.   (3, d_model) → three times (H, 3, d_k)"""
    q, k, v = (split_heads(w(x), NUM_HEADS) for w in (attend.w_q, attend.w_k, attend.w_v))
    return q, k, v


def head_outputs(attend: MultiHeadAttention, x: Tensor) -> Tensor:
    """Return the output of each head, before W_O.   → (H, 3, d_v)"""
    return attention(*heads(x, attend), scale=attend.scale)


def apart(attend: MultiHeadAttention, x: Tensor) -> float:
    """Return the largest difference from the first head's output, over the largest number."""
    outputs = head_outputs(attend, x).data
    return float(np.abs(outputs - outputs[0]).max() / np.abs(outputs).max())


def inputs(attend: MultiHeadAttention, x: Tensor) -> list[Tensor]:
    """Return x and the three matrices of the layer's first head, each (512, 64)."""
    first = [
        Tensor(projection.weight.data[:, :D_K], requires_grad=True, name=name)
        for name, projection in (("w_q", attend.w_q), ("w_k", attend.w_k), ("w_v", attend.w_v))
    ]
    return [x, *first]


def head(scale: float | None = None) -> Callable[..., Tensor]:
    """Return the text's one head as a function of x, W_Q, W_K and W_V."""
    return lambda x, w_q, w_k, w_v: attention(x @ w_q, x @ w_k, x @ w_v, scale=scale)


def measure(scale: float | None, tensors: list[Tensor]) -> tuple[float, list[np.ndarray]]:
    """Return entropy / log 3, and the gradients of x, W_Q, W_K and W_V for L = Σ output."""
    x, w_q, w_k, _ = tensors
    weights = attention_weights(x @ w_q, x @ w_k, scale=scale).data
    g = gradients(head(scale)(*tensors).sum(), tensors)
    return float(entropy(weights).mean() / np.log(3)), list(g)


def largest(gradient: np.ndarray) -> float:
    """Return the size of a gradient's largest element."""
    return float(np.abs(gradient).max())


def trained(
    scale: float, x: Tensor, *, seed: int, w_o: np.ndarray | None = None
) -> tuple[float, float]:
    """Train for 20 steps; return how far W_Q moves, and how far apart the heads are then."""
    attend = layer(scale=scale)
    if w_o is not None:
        attend.w_o.weight.data = w_o
    target = 13085 * np.random.default_rng(seed).standard_normal((3, D_MODEL))
    optimizer = Adam(attend.parameters(), 0.01)
    for _ in range(20):
        optimizer.zero_grad()
        mse(attend(x), target).backward()
        optimizer.step()
    return largest(attend.w_q.weight.data - W_Q), apart(attend, x)


def ours() -> dict[str, np.ndarray]:
    """Return the arrays that the text prints after its draws: the first of eight equal heads."""
    x, attend = Tensor(rows(np.random.default_rng(0)), dtype=float), layer()
    q, k, v = (projected[0] for projected in heads(x, attend))
    scores = q @ k.mT / np.sqrt(D_K)  # (T, S)
    return {
        "scores": scores.data,
        "weights": attend.weights(x).data[0],  # by row, as the text prints them
        "context": (softmax(scores, axis=None) @ v).data[0],  # over all nine, as it uses them
    }
