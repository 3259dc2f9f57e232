"""Demos · Source text "I love Transformers": its 121 printed numbers, and ours.

The text draws everything from NumPy's legacy generator with seed 0, and prints the result of each
step. `layer` and `steps` compute the same with this project's `MultiHeadAttention`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from attention import MultiHeadAttention, merge_heads, split_heads
from attention.scaling import entropy
from demos.texts.sources import as_numpy_prints, of_weights
from minigrad import Tensor, gradients

TITLE = '"I love Transformers": a step to step guide to understand attention mechanisms'
WORDS = ("I", "love", "Transformers")

as_text = as_numpy_prints

Array = np.ndarray[Any, Any]

# Row by row; arrays of several heads one head after the other.
PRINTED = {
    "input": "5 0 3 3 7 9 3 5 2 4 7 6",
    "W_Q": """
        -0.88657405 -0.45468741 -0.04466977 0.62433746
        -0.04004566 -0.21443041 0.67215753 -0.32520768
        0.29634374 -0.26351692 0.91431032 -0.71929844
        0.74017452 -0.05278391 0.6018215 0.04095496
    """,
    "Q'": """
        -2.53653461 -3.89235132 -3.36739554 0.16689562 1.80079842 -1.86428392
        5.50770678 -1.35307145 15.53283014 -8.27188133 13.0420794 -3.52798521
    """,
    "K'₁": "3.18209156 -2.04023375 5.26836762 -1.73965563 4.67550023 -8.09978892",
    "V'₁": "0.34381182 1.1983878 6.06952461 -6.1297034 5.6468306 -2.31171686",
    "K'₂": "-0.41383514 -2.08497727 -6.48627938 -4.77384381 -8.23726599 -1.59698938",
    "V'₂": "4.22924766 4.64235554 2.69400362 -2.69442861 3.31644301 4.78472233",
    "weights": """
        8.32207466e-07 8.62661112e-09 9.99999159e-01
        9.79261626e-01 7.06124878e-03 1.36771253e-02
        5.06701339e-05 4.85740226e-04 9.99463590e-01
        9.99999999e-01 7.02243021e-10 3.67172510e-14
        1.00000000e+00 7.32297340e-23 2.77013209e-39
        1.00000000e+00 3.91078473e-22 1.37240079e-32
    """,
    "sums of head 1": "1. 1. 1.",
    "heads": """
        5.64682619 -2.31171397 0.45677255 1.09863418 5.64676721 -2.31339355
        4.22924766 4.64235554 4.22924766 4.64235554 4.22924766 4.64235554
    """,
    "concatenated": """
        5.64682619 -2.31171397 4.22924766 4.64235554
        0.45677255 1.09863418 4.22924766 4.64235554
        5.64676721 -2.31339355 4.22924766 4.64235554
    """,
    "output": """
        7.3765234 6.13875477 3.44813173 -0.03779159
        3.6536207 4.44609421 5.25015372 -0.89010674
        7.3761135 6.13921767 3.44763211 -0.03725722
    """,
}

# The shapes that the text states for W_Q, for Q K and the weights, and for the heads' outputs, with
# its n, d_model, d_k, d_v and h put in. It prints three more, of single matrices, and those hold.
STATED_SHAPES = {"W_Q": (4, 2, 2), "weights": (3, 3, 2), "heads": (3, 2, 2)}

LOST: dict[str, str] = {}

COMPLETED = (
    "All heads at once, as the text says it is done in practice: one product, and a layer that is "
    "the sum of its heads.",
    "The embedding and the positions that the text leaves out, and what the layer does without "
    "them.",
    "The backward pass: the gradient of X and of every weight, head by head, checked to order 2.",
    "Training: what a head learns whose weights are one-hot.",
    "The sentence of seven words at d_model = 512, with eight heads, by the text's own recipe.",
    "Its drawing of tensors (n, n, h) with the numbers in it, beside the order of its code.",
)


def ours() -> dict[str, Array]:
    """Return every array that the text prints, under the same names, computed with this project."""
    return steps(*layer())


def layer(
    *, unit: bool = False, seed: int = 0, n: int = 3, d_model: int = 4, num_heads: int = 2
) -> tuple[Tensor, MultiHeadAttention]:
    """Return the text's input X, at mean 0 and variance 1 if `unit`, and a layer with its weights.

    The draws come in the text's order: X, then W_Q of both heads, W_K, W_V, and last W_O, each
    uniform within Xavier's bound. A head's matrix is (4, 2), so its bound is √(6 / (4 + 2)) = 1.
    Our layer holds the heads of one projection side by side, (4, 4).
    """
    draw, d_k = np.random.RandomState(seed), d_model // num_heads

    def xavier(d_in: int, d_out: int) -> Array:
        bound = np.sqrt(6 / (d_in + d_out))
        return draw.uniform(-bound, bound, (d_in, d_out))

    values = draw.randint(10, size=(n, d_model)).astype(float)
    values = (values - values.mean()) / values.std() if unit else values
    x = Tensor(values, requires_grad=True, name="X")
    attend = MultiHeadAttention(d_model, num_heads, rng=np.random.default_rng(0))
    for projection in (attend.w_q, attend.w_k, attend.w_v):
        heads = [xavier(d_model, d_k) for _ in range(num_heads)]
        projection.weight.data = np.concatenate(heads, axis=1)
    attend.w_o.weight.data = xavier(d_model, d_model)
    return x, attend


def steps(x: Tensor, attend: MultiHeadAttention) -> dict[str, Array]:
    """Return every array that the text prints, under the same names, from our layer."""
    heads = {
        letter: split_heads(projection(x), attend.num_heads)  # (H, T, d_k)
        for letter, projection in (("Q", attend.w_q), ("K", attend.w_k), ("V", attend.w_v))
    }
    weights = attend.weights(x)  # (H, T, S)
    outputs = weights @ heads["V"]  # (H, T, d_v)
    w_q = split_heads(attend.w_q.weight, attend.num_heads)  # (H, d_model, d_k)
    return {
        "input": x.data if (x.data % 1).any() else x.data.astype(int),  # the text's are integers
        "W_Q": w_q.data,
        "Q'": heads["Q"].data,
        "K'₁": heads["K"].data[0],
        "V'₁": heads["V"].data[0],
        "K'₂": heads["K"].data[1],
        "V'₂": heads["V"].data[1],
        "weights": weights.data,
        "sums of head 1": weights.data[0].sum(axis=-1),
        "heads": outputs.data,
        "concatenated": merge_heads(outputs).data,
        "output": attend(x).data,
    }


def one_head(attend: MultiHeadAttention, head: int) -> MultiHeadAttention:
    """Return one head as a layer of its own, with its rows of W_O: the layer is their sum."""
    alone = MultiHeadAttention(4, 1, d_k=2, d_v=2, rng=np.random.default_rng(0))
    columns = slice(2 * head, 2 * head + 2)
    for name in ("w_q", "w_k", "w_v"):
        getattr(alone, name).weight.data = getattr(attend, name).weight.data[:, columns]
    alone.w_o.weight.data = attend.w_o.weight.data[columns]
    return alone


def sum_of_head(alone: MultiHeadAttention) -> Callable[..., Tensor]:
    """Return Σ output of one head, as a function of X, W_Q, W_K, W_V and W_O."""
    output = of_weights(alone)
    return lambda *points: output(*points).sum()


def measure(values: Array, *, scale: float | None = None, seed: int = 0) -> Array:
    """Return each head's mean entropy / log n and its ‖∂L/∂W_Q‖ / ‖∂L/∂W_V‖.   → (2, H)

    L = Σ output.
    """
    _, attend = layer(seed=seed)
    measured = []
    for alone in (one_head(attend, head) for head in (0, 1)):
        alone.scale, x = scale, Tensor(values)
        g_q, g_v = gradients(alone(x).sum(), [alone.w_q.weight, alone.w_v.weight])
        spread = entropy(alone.weights(x).data).mean() / np.log(len(values))
        measured.append((spread, np.linalg.norm(g_q) / np.linalg.norm(g_v)))
    return np.array(measured).T


def dead(prepare: Callable[[Array], Array]) -> float:
    """Return the share of dead heads, W_Q / W_V below 1e-3, of 200 seeds with two heads each."""
    others = ((seed, prepare(layer(seed=seed)[0].data)) for seed in range(1, 201))
    left = [measure(values, seed=seed)[1] for seed, values in others]
    return float(np.mean(np.array(left) < 1e-3))
