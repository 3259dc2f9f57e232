"""Demos · Source text "The sky is blue and world is round": its 10 printed numbers, and ours.

Nothing is seeded in the text, so `draw` repeats its recipe and not its numbers, `measure` looks at
the softmax of many draws, and `expected_variance` is the mean of the printed variance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from attention import MultiHeadAttention, attention, attention_weights, scaling
from minigrad import Tensor, gradients, no_grad, softmax, where
from minigrad.nn import Embedding, Linear, Module, normal

TITLE = '"The sky is blue and world is round": wrapping your head around self-attention'
SENTENCE = "The sky is blue and world is round"  # as it is in the text
REPAIRED = "The sky is blue and world is blue"  # the one that the printed token ids belong to
IGNORED = ",';#$@&)("  # the characters that the text takes out
VOCABULARY, D_MODEL, HEADS = 100, 32, 4

PRINTED = {"token ids": "0 6 5 3 1 7 5 3", "variances": "38521.3046875 1203.790771484375"}

LOST = {
    "variances": "the two variances, as nothing is seeded; their ratio, 32, comes back in every "
    'draw. The eight ids come back with "blue" for "round"'
}

COMPLETED = (
    "The blank that the text opens with, asked of counts and of a GPT (on the page of charlm).",
    "The text's SelfAttention, run, and with a mask.",
    "The text's MultiHeadAttention, head by head, with the mask that the text never passes to it.",
    "A causal mask, and the gradient that proves it.",
    "A query that may look nowhere.",
    "A task that shows the limited capacity of one head: it fails at any width, and two learn it.",
    "The way back, checked to order 2, and how many queries get next to none of it.",
)


def as_text(array: np.ndarray) -> list[str]:
    """Return what the text prints: integers, and floats of PyTorch with all their digits."""
    return [str(number) for number in np.ravel(array).tolist()]


def ours() -> dict[str, np.ndarray]:
    """Return the ids of the repaired sentence, and the variances of one draw of ours."""
    ids = token_ids(REPAIRED)
    variances = [measure(ids, "N(0, 1)", scale, draws=1, seed=0).variance for scale in (1.0, None)]
    return {"token ids": ids, "variances": np.array(variances, np.float32)}  # the text's precision


def token_ids(sentence: str, *, distinct: bool = False) -> np.ndarray:
    """Return a number for each word: its place among the sorted words, the last if it is repeated.

    >>> token_ids("to be or not to be").tolist()
    [5, 1, 3, 2, 5, 1]
    >>> token_ids("to be or not to be", distinct=True).tolist()
    [3, 0, 2, 1, 3, 0]
    """
    words = np.array(sentence.split())
    places = np.unique(words) if distinct else np.sort(words)
    return np.searchsorted(places, words, side="right") - 1


Draw = Callable[[tuple[int, ...], np.random.Generator], np.ndarray]

# How a projection (…, d_in, d_out) is drawn: as in the text's example, with variance 1/d_in, and as
# in nn.Linear, from which the text builds its two classes.
INITIAL: dict[str, Draw] = {
    "N(0, 1)": lambda shape, rng: normal(shape, 1.0, rng=rng),
    "N(0, 1/d)": lambda shape, rng: normal(shape, shape[-2] ** -0.5, rng=rng),
    "U(±1/√d)": lambda shape, rng: rng.uniform(-1, 1, shape) / shape[-2] ** 0.5,
}


def draw(
    ids: np.ndarray, initial: str, draws: int, d_model: int, rng: np.random.Generator
) -> list[Tensor]:
    """Return X (n, T, d_model) and W_Q, W_K, W_V (n, d_model, d_model), in the text's order.

    One embedding holds the words of all n draws, one example's after the other's.
    """
    V = int(ids.max()) + 1
    begin = V * np.arange(draws)[:, None]  # (n, 1): where the rows of each example begin
    rows = Embedding(draws * V, d_model, rng=rng)(begin + ids).data  # (n, T, d_model)
    weights = [INITIAL[initial]((draws, d_model, d_model), rng) for _ in range(3)]
    named = zip((rows, *weights), ("X", "W_Q", "W_K", "W_V"), strict=True)
    return [Tensor(array, requires_grad=True, name=name) for array, name in named]


def example(ids: np.ndarray, initial: str, seed: int) -> tuple[Tensor, ...]:
    """Return X, W_Q, W_K, W_V of one draw, and a g that makes one number: L = ⟨g, output⟩."""
    rng = np.random.default_rng(seed)
    g = Tensor(rng.standard_normal((len(ids), D_MODEL)), name="g")
    drawn = draw(ids, initial, 1, D_MODEL, rng)
    return *(Tensor(a.data[0], requires_grad=True, name=a.name) for a in drawn), g


@dataclass(frozen=True)
class ManyDraws:
    """Many draws of the example, each array with an axis of draws first."""

    scores: np.ndarray  # (n, T, S), scaled: the input of softmax
    weights: np.ndarray  # (n, T, S)
    gradient: np.ndarray  # (n, T): ‖∂L/∂q‖ of each query, L = ⟨g, output⟩ with a random g
    key_variance: float
    value_variance: float

    @property
    def variance(self) -> np.ndarray:
        """Return the variance of each draw's scores, over n - 1 as in `torch.var`.   → (n,)"""
        return self.scores.reshape(len(self.scores), -1).var(axis=1, ddof=1)

    @property
    def largest(self) -> float:
        """Return the largest weight of a query, on average."""
        return float(self.weights.max(axis=-1).mean())

    def dead(self) -> float:
        """Return the share of queries that get next to no gradient, as chapter 16 counts them."""
        return float((self.gradient < scaling.DEAD).mean())

    def top_tenth(self) -> float:
        """Return the share of the squared gradient in the luckiest tenth of the queries."""
        return scaling.top_tenth(self.gradient.ravel())


def measure(
    ids: np.ndarray,
    initial: str,
    scale: float | None = None,
    *,
    draws: int,
    seed: int,
    d_model: int = D_MODEL,
) -> ManyDraws:
    """Return `draws` examples with this initialisation and scale (None is 1/√d_k).

    Every scale and every initialisation gets the same words and the same g.
    """
    rng = np.random.default_rng(seed)
    g = rng.standard_normal((draws, len(ids), d_model))
    x, w_q, w_k, w_v = draw(ids, initial, draws, d_model, rng)
    with no_grad():
        projected = [(x @ w).data for w in (w_q, w_k, w_v)]  # (n, T, d_model)
    q, k, v = (
        Tensor(a, requires_grad=name == "q") for a, name in zip(projected, "qkv", strict=True)
    )
    weights = attention_weights(q, k, scale=scale)  # (n, T, S)
    assert weights.node is not None
    scores = weights.node.inputs[0].data  # the record remembers
    (gradient,) = gradients(weights @ v, [q], g)
    return ManyDraws(
        scores=scores,
        weights=weights.data,
        gradient=np.linalg.norm(gradient, axis=-1),
        key_variance=float(k.data.var()),
        value_variance=float(v.data.var()),
    )


def expected_variance(ids: np.ndarray, d: int = D_MODEL) -> float:
    """Return the mean of the printed variance over all draws of the example, scores unscaled.

    A score is sᵢⱼ = xᵢ W_Q W_Kᵀ xⱼᵀ. With G = X Xᵀ, and weights independent of each other,

        E[sᵢⱼ sₖₗ] = d Gᵢₖ Gⱼₗ        so        E Σ s² = d (tr G)²,    E (Σ s)² = d (Σ G)²

    and the variance over n² scores is (Σ s² - (Σ s)²/n²) / (n² - 1). Let a word occur m times in
    the sentence, and M be the sum of m² over its words. The words are Gaussian, which gives

        E (tr G)² = n² d² + 2 d M        E (Σ G)² = M² (d² + 2 d)

    For single scores this is d³. Repeated words make repeated scores, which vary less.

    >>> eight = np.arange(8)
    >>> round(expected_variance(eight)), 32**3
    (32996, 32768)
    """
    n = len(ids)
    m = np.bincount(ids)
    M = int((m**2).sum())
    squares, square = n**2 * d**2 + 2 * d * M, M**2 * (d**2 + 2 * d)
    return d * (squares - square / n**2) / (n**2 - 1)


class SelfAttention(Module):
    """The text's first class: three projections with biases, and one attention between them.

    Its softmax runs over the keys, as in equation 1 of the paper. The mask is ours.
    """

    def __init__(self, d_model: int, *, rng: np.random.Generator) -> None:
        self.w_q = Linear(d_model, d_model, rng=rng)
        self.w_k = Linear(d_model, d_model, rng=rng)
        self.w_v = Linear(d_model, d_model, rng=rng)

    def __call__(self, x: Tensor, *, mask: Any = None) -> Tensor:
        """(…, T, d_model) → (…, T, d_model)"""
        return attention(self.w_q(x), self.w_k(x), self.w_v(x), mask=mask)


def layers(seed: int = 0) -> tuple[Tensor, SelfAttention, MultiHeadAttention]:
    """Return the sentence as a batch, (1, 8, 32), and the text's two classes, with biases."""
    rng = np.random.default_rng(seed)
    x = Embedding(VOCABULARY, D_MODEL, rng=rng)(token_ids(REPAIRED)[None])
    x = Tensor(x.data, requires_grad=True, name="X")
    return (
        x,
        SelfAttention(D_MODEL, rng=rng),
        MultiHeadAttention(D_MODEL, HEADS, bias=True, rng=rng),
    )


def as_it_masks(layer: SelfAttention, x: Tensor, mask: np.ndarray, axis: int = -1) -> Tensor:
    """Return weights masked as in the text's second class, softmax over keys or queries."""
    scores = layer.w_q(x) @ layer.w_k(x).mT / np.sqrt(D_MODEL)
    return softmax(where(mask, scores, -np.inf), axis=axis)


def moved_by(output: Tensor, x: Tensor) -> np.ndarray:
    """Return how much each word moves an output: ‖∂(Σ output)/∂xₛ‖.   (1, S, d_model) → (S,)"""
    (moved,) = gradients(output.sum(), [x], retain_graph=True)
    return np.asarray(np.linalg.norm(moved[0], axis=-1))


def complaint(source: str) -> str:
    """Return the error that this source raises, after the imports that the text has."""
    try:
        exec(compile(source, "text", "exec"), {"math": None, "torch": None})
    except (NameError, SyntaxError) as error:
        return f"{type(error).__name__}: {error.args[0]}"
    return "nothing"
