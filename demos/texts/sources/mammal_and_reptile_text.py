"""Demos · Source text "mammal and reptile": its 167 printed numbers, and ours.

W_Q, W_K and W_V of shape (3, 2) are drawn uniformly from 0 to 1 by NumPy's legacy generator with
seed 775. `PRINTED` holds what the text prints, except for shapes. `layer` continues these draws to
several heads and W_O; `questions`, `Lookup` and `Retriever` are the task of the training.
"""

from __future__ import annotations

import numpy as np

from attention import MultiHeadAttention, attention, attention_weights
from attention.scaling import entropy
from demos.texts.sources import as_numpy_prints
from minigrad import Tensor, jacobian
from minigrad.nn import Linear, Module

TITLE = '"mammal and reptile": queries over five animals'

NAMES = ("kitten", "lizard", "salmon", "whale", "wolf")
ANIMALS = np.array(  # the keys, (S, 3)
    [[9.1, 1.0, 2.1], [0.1, 7.5, 4.3], [1.3, 5.5, 8.2], [7.6, 2.4, 4.0], [8.5, 2.7, 2.7]]
)
ATTRIBUTES = np.array(  # the values, (S, 4)
    [
        [3.4, 1.3, 0.4, 9.8],
        [7.5, 3.9, 4.1, 0.2],
        [8.3, 2.8, 2.3, 0.1],
        [1.6, 8.4, 9.9, 3.4],
        [2.2, 9.4, 8.7, 1.1],
    ]
)
QUERIES = np.array([[8.7, 3.2, 4.1], [2.1, 9.9, 1.6]])  # mammal and reptile, (T, 3)
AVERAGE = ANIMALS.mean(axis=0)  # the average animal, (3,)

# One name for each of the 28 outputs, or for several lines that belong together. Two spaces stand
# between rows on one line. The text prints three arrays twice.
MAMMAL = "1.57823895e-01 1.10228985e-13 1.16042942e-08 1.00599432e-01 7.41576662e-01"
REPTILE = "5.25436708e-13 9.98297480e-01 1.70251120e-03 1.47297680e-09 7.33251915e-09"
OUTPUTS = """
    2.32902909 8.02102694 7.51078092 2.70444657
    7.50136196 3.89812728 4.09693552 0.19982976
"""
PRINTED = {
    "√d_k": "1.7320508075688772",
    "animals": "9.1 1. 2.1  0.1 7.5 4.3  1.3 5.5 8.2  7.6 2.4 4.  8.5 2.7 2.7",
    "mammal: scores": "90.98 42.5 62.53 90.2 93.66",
    "mammal: scaled": "52.52732749 24.53738644 36.10171233 52.07699428 54.07462621",
    "mammal: weights": MAMMAL,
    "mammal: output": "2.32902909 8.02102694 7.51078092 2.70444657",
    "reptile: weights": REPTILE,
    "reptile: output": "7.50136196 3.89812728 4.09693552 0.19982976",
    "queries": "8.7 3.2 4.1  2.1 9.9 1.6",
    "weights": f"{MAMMAL}  {REPTILE}",
    "outputs": OUTPUTS,
    "outputs, again": OUTPUTS,
    "animals, before and after self-attention": """
        9.1 1. 2.1 8.97593633 1.33207376 2.22679209
        0.1 7.5 4.3 0.99832734 6.00278776 7.21956386
        1.3 5.5 8.2 1.29999732 5.50000446 8.1999913
        7.6 2.4 4. 8.47958483 2.29781683 2.78497945
        8.5 2.7 2.7 8.6669283 2.1237928 2.54756204
    """,
    "W_Q": "0.37573502 0.24683143  0.24614648 0.38234858  0.03510655 0.89775264",
    "animals W_Q": """
        3.73905893 4.51379518  2.03463026 6.75263382  2.13013489 9.78536968
        3.58676392 6.38456605  3.95313086 5.55434048
    """,
    "animals W_K": """
        8.96561697 2.8778713  9.18598435 6.01216844  12.06063652 5.9414747
        10.5822552 4.0030275  10.27859483 4.02849108
    """,
    "animals W_V": """
        2.18065523 5.67484759  4.44534671 5.48037139  7.14038542 7.99398679
        3.76938987 6.79569809  2.87492446 6.39373835
    """,
    "animals, before and after one head": """
        9.1 1. 2.1 7.1384725 7.99233055
        0.1 7.5 4.3 7.08124031 7.93886421
        1.3 5.5 8.2 7.08371845 7.94113509
        7.6 2.4 4. 7.1378387 7.99162334
        8.5 2.7 2.7 7.13919142 7.99289749
    """,
}

LOST: dict[str, str] = {}

COMPLETED = (
    "Three heads and W_O, from the text's own generator: back from 2 features a head to 3.",
    "Training: W_Q and W_K, from the values the text draws, learn to find an animal's attributes "
    "by its noisy features; then all weights of three heads do.",
    "What the trained weights look at, also for the text's two queries.",
    "The backward pass, its derivatives of both orders checked, and the gradient at each scale.",
)


def as_text(array: np.ndarray) -> list[str]:
    """Return what NumPy prints: an array to 8 digits, a single number with all its digits."""
    return as_numpy_prints(array) if array.ndim else [repr(float(array))]


def ours() -> dict[str, np.ndarray]:
    """Return every array that the text prints, under the same names."""
    q, k, v = Tensor(QUERIES), Tensor(ANIMALS), Tensor(ATTRIBUTES)
    mammal, reptile = q[:1], q[1:]
    scores = mammal @ k.mT  # (1, S)
    weights = attention_weights(q, k)  # (T, S)
    head = layer(1)
    return {
        "√d_k": np.array(np.sqrt(QUERIES.shape[-1])),
        "animals": ANIMALS,
        "mammal: scores": scores.data[0],
        "mammal: scaled": scores.data[0] / np.sqrt(3),
        "mammal: weights": attention_weights(mammal, k).data[0],
        "mammal: output": attention(mammal, k, v).data[0],
        "reptile: weights": attention_weights(reptile, k).data[0],
        "reptile: output": attention(reptile, k, v).data[0],
        "queries": QUERIES,
        "weights": weights.data,
        "outputs": (weights @ v).data,
        "outputs, again": attention(q, k, v).data,
        "animals, before and after self-attention": beside_input(attention(k, k, k)),
        "W_Q": head.w_q.weight.data,
        "animals W_Q": head.w_q(k).data,
        "animals W_K": head.w_k(k).data,
        "animals W_V": head.w_v(k).data,
        "animals, before and after one head": beside_input(head.weights(k)[0] @ head.w_v(k)),
    }


def beside_input(output: Tensor) -> np.ndarray:
    """Return the animals before and after, row by row, as the text prints both."""
    return np.concatenate([ANIMALS, output.data], axis=1)


def layer(num_heads: int = 3) -> MultiHeadAttention:
    """Return the text's head, and others whose matrices continue its draws; last of all comes W_O.

    Each head draws W_Q, W_K and W_V, (3, 2) each, in this order, as the text does for its one.
    """
    draw = np.random.RandomState(775)
    attend = MultiHeadAttention(3, num_heads, d_k=2, d_v=2, rng=np.random.default_rng(0))
    heads = [[draw.rand(3, 2) for _ in "qkv"] for _ in range(num_heads)]
    projections = (attend.w_q, attend.w_k, attend.w_v)
    for projection, matrices in zip(projections, zip(*heads, strict=True), strict=True):
        projection.weight.data = np.concatenate(matrices, axis=1)  # (3, H · 2)
    attend.w_o.weight.data = draw.rand(2 * num_heads, 3)
    return attend


def questions(rng: np.random.Generator, times: int, noise: float) -> tuple[np.ndarray, np.ndarray]:
    """Return noisy features, `times` for each animal, and which it is: (N, 3) and (N,)."""
    which = np.repeat(np.arange(len(NAMES)), times)
    return ANIMALS[which] + noise * rng.standard_normal((which.size, 3)), which


class Lookup(Module):
    """The text's head with its own attributes as values: features (N, 3) → attributes (N, 4).

    W_Q and W_K are learned, from the values that the text draws. W_Q has a bias, 0 at first. W_K
    has none: it would add one number to all scores of a query, and softmax would not see it.
    """

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self.w_q = Linear(3, 2, rng=rng)
        self.w_k = Linear(3, 2, bias=False, rng=rng)
        self.w_q.weight.data = layer(1).w_q.weight.data
        self.w_k.weight.data = layer(1).w_k.weight.data

    def weights(self, features: Tensor) -> Tensor:
        """Return each question's weights on the animals.   (N, 3) → (N, 5)"""
        return attention_weights(self.w_q(features), self.w_k(Tensor(ANIMALS)))

    def __call__(self, features: Tensor) -> Tensor:
        return self.weights(features) @ Tensor(ATTRIBUTES)  # (N, 4)


class Retriever(Module):
    """Three heads on the same task, with every weight learned: (N, 3) → (N, 4).

    W_Q and W_K start as in `layer`. W_V (4, 3 · 4) and W_O (3 · 4, 4) are made for four attributes,
    where the text's are made for three features, so they are drawn anew.
    """

    def __init__(self, *, rng: np.random.Generator) -> None:
        drawn = layer()
        self.attend = MultiHeadAttention(3, 3, d_k=2, d_v=4, bias=True, rng=rng)
        self.attend.w_q.weight.data = drawn.w_q.weight.data
        self.attend.w_k.weight.data = drawn.w_k.weight.data
        self.attend.w_v = Linear(4, 12, bias=False, rng=rng)
        self.attend.w_o = Linear(12, 4, rng=rng)

    def weights(self, features: Tensor) -> Tensor:
        """Return the weights of each head's questions on the animals.   (N, 3) → (H, N, 5)"""
        return self.attend.weights(features, Tensor(ANIMALS))

    def __call__(self, features: Tensor) -> Tensor:
        return self.attend(features, Tensor(ANIMALS), Tensor(ATTRIBUTES))


def retrieved(attributes: np.ndarray) -> np.ndarray:
    """Return the animal whose attributes are nearest to each row.   (N, 4) → (N,)"""
    apart = attributes[:, None] - ATTRIBUTES  # (N, 5, 4)
    nearest: np.ndarray = np.argmin((apart**2).sum(axis=-1), axis=-1)
    return nearest


def corners(keys: np.ndarray) -> list[int]:
    """Return the keys of two features that some query prefers to all others.   (S, 2) → …

    A score is linear in its key, so it is largest at a corner of the keys' hull: a key that lies
    between others never has the largest weight, whatever is asked.
    """
    angle = np.linspace(0, 2 * np.pi, 3600, endpoint=False)
    ask = np.stack([np.cos(angle), np.sin(angle)], axis=1)  # queries in every direction
    return list(dict.fromkeys(np.argmax(ask @ keys.T, axis=1).tolist()))


def at_scale(query: np.ndarray, scale: float | None = None) -> tuple[float, float]:
    """Return the entropy of its weights as a share of log 5, and ‖∂output/∂query‖ of its answer."""
    k, v = Tensor(ANIMALS), Tensor(ATTRIBUTES)
    weights = attention_weights(Tensor(query[None]), k, scale=scale).data
    slope = jacobian(lambda q: attention(q, k, v, scale=scale))(query[None])
    return entropy(weights)[0] / np.log(5), float(np.linalg.norm(slope))
