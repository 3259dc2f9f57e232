"""Demos · Source text "Your journey starts with one step": its 310 printed numbers, and ours.

The text draws W_q, W_k and W_v twice: with `torch.rand` from seed 123 (V1), and as `nn.Linear` from
seed 789 (V2). PyTorch prints 307 of its numbers with four decimals, and three sums in full.

PyTorch draws on the CPU with the Mersenne Twister MT19937, which is NumPy's legacy generator too,
seeded alike. Of each 32-bit word it keeps the lowest 24 bits, as many as a float32 holds, and
divides by 2²⁴. So both recipes are followed here, bit for bit, without PyTorch (a test compares).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from attention import MultiHeadAttention, attention, attention_weights
from attention.mapping import Piece
from attention.scaling import entropy
from demos.texts.sources import as_torch_prints
from minigrad import Tensor, exp, gradients, softmax
from minigrad.nn import Module

TITLE = '"Your journey starts with one step": why we need the attention mechanism'
WORDS = ("Your", "journey", "starts", "with", "one", "step")


def as_text(array: np.ndarray) -> list[str]:
    """Return four decimals, as PyTorch prints arrays; of a number without axes, all digits."""
    return as_torch_prints(array) if np.ndim(array) else [repr(float(array))]


_INPUTS = """
    0.4300 0.1500 0.8900   0.5500 0.8700 0.6600   0.5700 0.8500 0.6400
    0.2200 0.5800 0.3300   0.7700 0.2500 0.1000   0.0500 0.8000 0.5500
"""
INPUTS = np.array(_INPUTS.split(), dtype=float).reshape(6, 3)
_SCORES = """
    0.9995 0.9544 0.9422 0.4753 0.4576 0.6310
    0.9544 1.4950 1.4754 0.8434 0.7070 1.0865
    0.9422 1.4754 1.4570 0.8296 0.7154 1.0605
    0.4753 0.8434 0.8296 0.4937 0.3474 0.6565
    0.4576 0.7070 0.7154 0.3474 0.6654 0.2935
    0.6310 1.0865 1.0605 0.6565 0.2935 0.9450
"""
_SOFTMAX_2 = "0.1385 0.2379 0.2333 0.1240 0.1082 0.1581"
_W_QUERY = "0.2961 0.5166 0.2517 0.6886 0.0740 0.8665"
_WEIGHTS_2 = "0.1500 0.2264 0.2199 0.1311 0.0906 0.1820"

# In the order of the text, which prints some arrays twice or three times.
PRINTED = {
    "scores of x₂": "0.9544 1.4950 1.4754 0.8434 0.7070 1.0865",
    "divided by their sum": "0.1455 0.2278 0.2249 0.1285 0.1077 0.1656",
    "their sum": "1.0000001192092896",
    "naive softmax": _SOFTMAX_2,
    "sum of the naive softmax": "1.0",
    "softmax": _SOFTMAX_2,
    "sum of the softmax": "1.0",
    "context of x₂": "0.4419 0.6515 0.5683",
    "inputs": _INPUTS,
    "scores, pair by pair": _SCORES,
    "scores, as one product": _SCORES,
    "weights": """
        0.2098 0.2006 0.1981 0.1242 0.1220 0.1452
        0.1385 0.2379 0.2333 0.1240 0.1082 0.1581
        0.1390 0.2369 0.2326 0.1242 0.1108 0.1565
        0.1435 0.2074 0.2046 0.1462 0.1263 0.1720
        0.1526 0.1958 0.1975 0.1367 0.1879 0.1295
        0.1385 0.2184 0.2128 0.1420 0.0988 0.1896
    """,
    "inputs, again": _INPUTS,
    "contexts": """
        0.4421 0.5931 0.5790   0.4419 0.6515 0.5683   0.4431 0.6496 0.5671
        0.4304 0.6298 0.5510   0.4671 0.5910 0.5266   0.4177 0.6503 0.5645
    """,
    "W_q": _W_QUERY,
    'W_q, called "Key matrix weights"': _W_QUERY,
    "W_v": "0.0756 0.1966 0.3164 0.4017 0.1186 0.8274",
    "x₂": "0.5500 0.8700 0.6600",
    "q₂": "0.4306 1.4551",
    "inputs, a third time": _INPUTS,
    "W_k": "0.1366 0.1025 0.1841 0.7264 0.3153 0.6871",
    "score of q₂ and k₂": "1.8524",
    "q₂, again": "0.4306 1.4551",
    "Kᵀ": """
        0.3669 0.4433 0.4361 0.2408 0.1827 0.3275
        0.7646 1.1419 1.1156 0.6706 0.3292 0.9642
    """,
    "scores of q₂": "1.2705 1.8524 1.8111 1.0795 0.5577 1.5440",
    "weights of q₂": _WEIGHTS_2,
    "V": "0.1855 0.8812 0.3951 1.0037 0.3879 0.9831 0.2393 0.5493 0.1492 0.3346 0.3221 0.7863",
    "weights of q₂, again": _WEIGHTS_2,
    "context of q₂": "0.3061 0.8210",
    "V1": "0.2996 0.8053 0.3061 0.8210 0.3058 0.8203 0.2948 0.7939 0.2927 0.7891 0.2990 0.8040",
    "V2": """
        -0.0739 0.0713 -0.0748 0.0703 -0.0749 0.0702 -0.0760 0.0685 -0.0763 0.0679 -0.0754 0.0693
    """,
}


def torch_rand(draw: np.random.RandomState, *shape: int) -> np.ndarray:
    """Return what `torch.rand(shape)` draws after `torch.manual_seed`: 24 random bits over 2²⁴.

    The result is float64, and every number in it is a float32 exactly.
    """
    return draw.randint(1 << 24, size=shape) / 2**24


def torch_linear(draw: np.random.RandomState, d_in: int, d_out: int) -> np.ndarray:
    """Return the weight that `nn.Linear(d_in, d_out)` draws, as it stores it: (d_out, d_in).

    It is drawn evenly between ±1/√d_in. The bounds are rounded to float32 first, u (hi - lo) + lo
    is computed in float64, and the result is rounded to float32 once.
    """
    return _evenly(draw, d_in, d_out, d_in)


def _evenly(draw: np.random.RandomState, d_in: int, *shape: int) -> np.ndarray:
    hi = float(np.float32(1 / np.sqrt(d_in)))
    u = torch_rand(draw, *shape)
    return (u * (hi + hi) - hi).astype(np.float32).astype(float)


def lane_sum(x: np.ndarray) -> np.ndarray:
    """Return the sum of four to seven float32 numbers, in PyTorch's order: four lanes, then these.

    Lane 0 also takes what is left over, so six numbers make ((x₀ + x₄ + x₅) + x₁) + x₂ + x₃.
    """
    lanes = list(x[:4])
    for left_over in x[4:]:
        lanes[0] = lanes[0] + left_over
    return np.asarray(((lanes[0] + lanes[1]) + lanes[2]) + lanes[3])


def naive_softmax(x: Any) -> Any:
    """Return exp(xᵢ) / Σⱼ exp(xⱼ) as it is on paper, without chapter 3.6's care."""
    return exp(x) / exp(x).sum()


class SelfAttention(Module):
    """One head without W_O, as both of the text's classes are.   (T, d_in) → (T, d_out)

    Its parameters are w_q, w_k, w_v and, as V2 has them with `qkv_bias=True`, b_q, b_k, b_v.
    """

    w_q: Tensor
    w_k: Tensor
    w_v: Tensor
    b_q: Tensor
    b_k: Tensor
    b_v: Tensor

    def __init__(self, *parameters: Any) -> None:
        for name, p in zip(("w_q", "w_k", "w_v", "b_q", "b_k", "b_v"), parameters, strict=False):
            new = p if isinstance(p, Tensor) else Tensor(p, requires_grad=True, name=name)
            setattr(self, name, new)

    def __call__(self, x: Tensor, **options: Any) -> Tensor:
        """Return the output; `options` are those of `attention`: mask, scale, drop."""
        return attention(*self.project(x), **options)

    def weights(self, x: Tensor, **options: Any) -> Tensor:
        """Return the weights of each word on each word.   (T, d_in) → (T, T)"""
        q, k, _ = self.project(x)
        return attention_weights(q, k, **options)

    def project(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return queries, keys and values.   (T, d_in) → three times (T, d_out)"""
        projected = x @ self.w_q, x @ self.w_k, x @ self.w_v
        if not hasattr(self, "b_q"):
            return projected
        return projected[0] + self.b_q, projected[1] + self.b_k, projected[2] + self.b_v


# The two classes' parameters under the text's names, as PyTorch stores them.
LAYOUT_V1 = [Piece(f"W_{long}", (f"w_{long[0]}",), False) for long in ("query", "key", "value")]
LAYOUT_V2 = [Piece(f"{piece.theirs}.weight", piece.ours, True) for piece in LAYOUT_V1]


def version_1(d_k: int = 2, seed: int = 123) -> SelfAttention:
    """Return the text's V1: matrices (d_in, d_k), drawn evenly between 0 and 1."""
    draw = np.random.RandomState(seed)
    return SelfAttention(*(torch_rand(draw, 3, d_k) for _ in range(3)))


def version_2(d_k: int = 2, seed: int = 789) -> SelfAttention:
    """Return the text's V2, matrices (d_k, d_in) between ±1/√d_in, by their transposes."""
    draw = np.random.RandomState(seed)
    return SelfAttention(*(torch_linear(draw, 3, d_k).T for _ in range(3)))


def version_2_biased() -> SelfAttention:
    """Return V2 with `qkv_bias=True`: each projection draws its weight, and then its bias."""
    draw = np.random.RandomState(789)
    weights, biases = zip(
        *((torch_linear(draw, 3, 2).T, _evenly(draw, 3, 2)) for _ in range(3)), strict=True
    )
    return SelfAttention(*weights, *biases)


def two_heads() -> MultiHeadAttention:
    """Return V1 and V2 as the two heads of one layer, with a W_O of ours: Xavier, seed 0."""
    rng = np.random.default_rng(0)
    layer = MultiHeadAttention(3, 2, d_k=2, d_v=2, rng=rng)
    heads = version_1(), version_2()
    for name in ("w_q", "w_k", "w_v"):
        getattr(layer, name).weight.data = np.hstack([getattr(head, name).data for head in heads])
    return layer


def ours() -> dict[str, np.ndarray]:
    """Return every array that the text prints, under the same names, in the same order.

    The sums, and what they add up, are float32, because their last digit is decided there.
    """
    single = Tensor(INPUTS, dtype=np.float32)
    scores = (single * single[1]).sum(axis=-1).data  # (6,), each added from left to right
    divided = scores / lane_sum(scores)
    # exp is rounded to float32 once: NumPy's own float32 exp may differ in its last bit by machine
    powers = np.exp(scores.astype(float)).astype(np.float32)
    naive = powers / lane_sum(powers)
    stable = softmax(Tensor(scores.astype(float))).data.astype(np.float32)
    sums = [lane_sum(weights) for weights in (divided, naive, stable)]
    first = [scores, divided, sums[0], naive, sums[1], stable, sums[2]]

    x = Tensor(INPUTS)
    pairs = (np.expand_dims(x, 1) * x).sum(axis=-1)  # (6, 6)
    weights, contexts = attention_weights(x, x, scale=1.0), attention(x, x, x, scale=1.0)
    plain = [contexts[1], x, pairs, x @ x.mT, weights, x, contexts]

    one, two = version_1(), version_2()
    q, k, v = x @ one.w_q, x @ one.w_k, x @ one.w_v  # (6, 2) each
    s, w = q[1] @ k.mT, one.weights(x)[1]  # (6,) each
    trained = [one.w_q, one.w_q, one.w_v, x[1], q[1], x, one.w_k, s[1:2], q[1], k.mT, s]
    trained += [w, v, w, w @ v, one(x), two(x)]
    arrays = [*first, *(tensor.data for tensor in (*plain, *trained))]
    return dict(zip(PRINTED, arrays, strict=True))


def spread(head: SelfAttention, x: Any = INPUTS, **options: Any) -> float:
    """Return the mean entropy of the head's weights, as a share of log n: 1 is a plain average."""
    weights = head.weights(Tensor(x), **options).data
    return float(entropy(weights).mean() / np.log(len(WORDS)))


def reached(head: SelfAttention, scale: float | None) -> tuple[float, float]:
    """Return ‖∂L/∂W_q‖ and ‖∂L/∂W_v‖ at a scale; L is the sum of all contexts."""
    output = head(Tensor(INPUTS), scale=scale).sum()
    of_q, of_v = gradients(output, [head.w_q, head.w_v])
    return float(np.linalg.norm(of_q)), float(np.linalg.norm(of_v))


LOST: dict[str, str] = {}

COMPLETED = (
    "The reason that the text opens with, measured: a recurrent encoder read through its last "
    "state, and through additive attention over all of its states, as sentences grow.",
    "V1 and V2 made equal, in each other's storage.",
    "The loops timed beside the one product that replaces them.",
    "V1 and V2 trained with softmax, and with scores divided by their sum.",
    "`qkv_bias`, which V2 has and never uses: what a bias of queries, of keys and of values does.",
    "A causal mask.",
    "Dropout of attention weights.",
    "Two heads, which are V1 and V2, and W_O.",
    "The way back: gradients of every weight and input, to second order.",
)
