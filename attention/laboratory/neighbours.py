"""16.7 · Neighbours: what else keeps scores in bounds, measured alike.

1/√d_k is not the only way. Some models have another exponent, some have no scale and smaller
initial weights, some bring queries and keys to one length, and the attention that came before the
product needs no scale. Where do they agree, and where not?

All are measured in one set-up, at the start of a training. Tokens x have d_model = 768 features of
variance 1. Two random matrices make q = x W_q and k = x W_k of them, and ∂L/∂p is a unit Gaussian,
as in chapter 16. The matrices have variance 1/d_model, so q and k have variance 1, unless a way
says otherwise. `WAYS` has

    none        the scores are q·k
    1/√d_k      Vaswani et al. 2017
    1/d_k       μP (Yang et al. 2022)
    1/√d_model  a mistake: the width of the model where that of a head belongs
    log n       1/√d_k · log n / log 512 (Su 2021, chapter 16.3)
    QK-norm     q and k of length 1, and a scale that starts at log₂(n² - n) (Henry et al. 2020)
    0.02        no scale, but matrices of standard deviation 0.02, which is GPT-2's
    GPT-2       0.02, and 1/√d_k too
    T5          no scale, but a W_q that is √d_k times smaller (as Mesh TensorFlow initialises it)
    additive    wᵀ tanh(q + k), where w has variance 1/d_k (Bahdanau et al. 2014, chapter 11.2)

From left to right there are: the scores' standard deviation at d_k = 16 and at 256; then, at 256,
the entropy / log n, median and mean of ‖∂L/∂q‖, the share of dead queries, and the median of the
gradient ‖∂L/∂x‖ that reaches the token; the scores' standard deviation after W_q and W_k have
become 3 times larger; and the score of a token with itself after W_k has become like W_q.

    >>> from attention.laboratory import WAYS, neighbour
    >>> def measured(d_k, way, **options):
    ...     return neighbour(d_k, way, queries=256, rng=np.random.default_rng(0), **options)
    >>> for way in WAYS:
    ...     few, many, grown = measured(16, way), measured(256, way), measured(256, way, growth=3)
    ...     print(
    ...         f"{way:10} {few.score_std:4.2f} {many.score_std:5.2f} {many.entropy:4.2f}   "
    ...         f"{many.gradient_median:5.3f} {many.gradient_mean:5.3f} {many.dead_share:4.2f}   "
    ...         f"{many.token_gradient:5.3f} {grown.score_std:7.2f} {many.own_score:7.2f}"
    ...     )
    none       3.96 15.80 0.06   0.326 1.857 0.19   0.315  142.16  253.42
    1/√d_k     0.99  0.99 0.89   0.168 0.177 0.00   0.166    8.89   15.84
    1/d_k      0.25  0.06 1.00   0.008 0.008 0.00   0.008    0.56    0.99
    1/√d_model 0.14  0.57 0.96   0.080 0.082 0.00   0.080    5.13    9.14
    log n      0.66  0.66 0.95   0.096 0.099 0.00   0.095    5.92   10.56
    QK-norm    2.97  0.74 0.94   0.111 0.115 0.00   0.112    0.74   11.98
    0.02       1.22  4.85 0.25   1.772 2.262 0.00   0.990   43.67   77.85
    GPT-2      0.30  0.30 0.99   0.070 0.071 0.00   0.039    2.73    4.87
    T5         0.99  0.99 0.89   2.687 2.833 0.00   0.166    8.89   15.84
    additive   0.49  0.52 0.97   0.043 0.044 0.00   0.043    0.69   -0.05

(These are 256 queries of one generator. Over 40 generators the two medians of the row `none` have
a standard deviation of 30 %, and their mean is .22, so the .326 here is unusually large. The other
numbers of this row spread by up to 12 %, those of `0.02` by up to 7 %, all others by up to 4 %.)

**The same at every width.** Five ways start with scores that do not depend on d_k: 1/√d_k, log n,
GPT-2, T5 and additive. The last has no scale, but it has a √d_k in the variance of w, and tanh
bounds what q and k can add. The paper's section 3.2.1 reports that additive attention outperforms
unscaled products at large d_k. At d_k = 1024 we find 44 % of the queries dead with those products,
and none with additive attention.

**Hidden in the initial values.** T5 has the scores of 1/√d_k, and the same gradient at the token.
Its ∂L/∂q is √d_k = 16 times longer only because its q is 16 times shorter. So ‖∂L/∂q‖ may be
compared between ways if q is equally long. (With the relative steps that T5 was trained with, the
two are one model: chapter 16.5.) And small initial weights hide that a scale is missing:
at d_k = 64, the width of GPT-2's heads, the raw scores have the standard deviation 2.5 and not 8,
and no query is dead.

**At the start, or also later.** Weights grow. Three times larger matrices make products 9 times
larger, whatever the scale is. Only QK-norm does not change, and additive scores hardly do. QK-norm
has its own dependence on d_k, though: cosines of random vectors have the standard deviation 1/√d_k.

**When q and k are alike.** The √ in 1/√d_k belongs to independent q and k. If training aligns them,
q·k grows like d_k and not like √d_k: a token's score with itself is √d_k = 16 with 1/√d_k, and 1 at
every width with 1/d_k. That is μP's reason for 1/d_k, and it is one for every optimizer. Its price
is the small gradient at the start.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from attention.laboratory.sharpness import INITIAL
from attention.scaled_dot_product import unit_length
from attention.scaling import DEAD, entropies
from minigrad import Tensor, gradients, softmax, tanh


@dataclass(frozen=True)
class Way:
    """One way to keep scores in bounds.

    scores  of queries q (T, d_k) and keys k (S, d_k), with w (d_k,), d_model and n → (T, S)
    std     of the entries of W_q and W_k, given d_model and d_k
    """

    scores: Callable[[Tensor, Tensor, Tensor, int, int], Tensor]
    std: Callable[[int, int], tuple[float, float]] = INITIAL["unit"]


def times(scale: Callable[[int, int, int], float]) -> Callable[..., Tensor]:
    """Return a function for q·k times a scale that may depend on d_model, d_k and n."""
    return lambda q, k, w, d_model, n: scale(d_model, q.shape[-1], n) * (q @ k.mT)


def cosines(q: Tensor, k: Tensor, w: Tensor, d_model: int, n: int) -> Tensor:
    """Return the scores of chapter 11's `qk_norm`, times log₂(n² - n)."""
    return float(np.log2(n**2 - n)) * (unit_length(q) @ unit_length(k).mT)


def additive(q: Tensor, k: Tensor, w: Tensor, d_model: int, n: int) -> Tensor:
    """Return the scores of chapter 11.2's `additive_attention`."""
    pairs = tanh(np.expand_dims(q, -2) + np.expand_dims(k, -3))  # (T, S, d_k)
    return pairs @ w  # (T, S)


WAYS = {
    "none": Way(times(lambda d_model, d_k, n: 1.0)),
    "1/√d_k": Way(times(lambda d_model, d_k, n: d_k**-0.5)),
    "1/d_k": Way(times(lambda d_model, d_k, n: 1 / d_k)),
    "1/√d_model": Way(times(lambda d_model, d_k, n: d_model**-0.5)),
    "log n": Way(times(lambda d_model, d_k, n: d_k**-0.5 * float(np.log(n) / np.log(512)))),
    "QK-norm": Way(cosines),
    "0.02": Way(times(lambda d_model, d_k, n: 1.0), lambda d_model, d_k: (0.02, 0.02)),
    "GPT-2": Way(times(lambda d_model, d_k, n: d_k**-0.5), lambda d_model, d_k: (0.02, 0.02)),
    "T5": Way(times(lambda d_model, d_k, n: 1.0), INITIAL["t5"]),
    "additive": Way(additive),
}


@dataclass(frozen=True)
class Neighbour:
    """One way at one d_k, at the start of a training."""

    d_k: int
    way: str  # a name of WAYS
    growth: float  # what W_q and W_k were multiplied by
    score_std: float  # over the keys of a query: √ of the mean variance
    entropy: float  # mean over queries of Σ -p log p / log n: 1 is uniform, 0 one-hot
    gradient_median: float  # over queries, of ‖∂L/∂q‖
    gradient_mean: float
    dead_share: float  # of queries with ‖∂L/∂q‖ < DEAD = .001
    token_gradient: float  # median of ‖∂L/∂x‖ for the query's token x, which has variance 1
    own_score: float  # median score of a token with itself, if W_k had the direction of W_q


def neighbour(
    d_k: int,
    way: str,
    *,
    growth: float = 1.0,
    d_model: int = 768,
    keys: int = 64,
    queries: int = 512,
    per_key_set: int = 32,
    rng: np.random.Generator,
) -> Neighbour:
    """Measure one of WAYS. Every `per_key_set` queries share matrices and keys.

    All ways see the same draws. `growth` multiplies W_q and W_k, as a training may do.
    """
    std_q, std_k = (growth * std for std in WAYS[way].std(d_model, d_k))
    found = []
    for _ in range(queries // per_key_set):
        x = Tensor(rng.standard_normal((per_key_set, d_model)), requires_grad=True)
        memory = rng.standard_normal((keys, d_model))  # the tokens of the keys
        unit_q, unit_k = rng.standard_normal((2, d_model, d_k))
        w = Tensor(rng.standard_normal(d_k) * d_k**-0.5)
        q = x @ (std_q * unit_q)
        scores = WAYS[way].scores(q, Tensor(memory @ (std_k * unit_k)), w, d_model, keys)
        weights = softmax(scores)
        of_p = rng.standard_normal(weights.shape)  # ∂L/∂p
        lengths = [np.linalg.norm(each, axis=-1) for each in gradients(weights, [q, x], of_p)]
        alike = Tensor(x.data @ (std_k * unit_q))  # the keys of the query's own tokens
        own = WAYS[way].scores(q, alike, w, d_model, keys).data.diagonal()
        found.append([scores.data.var(axis=-1), entropies(weights.data), *lengths, own])
    variance, entropy, of_q, of_x, own = np.concatenate(found, axis=1)
    return Neighbour(
        d_k=d_k,
        way=way,
        growth=float(growth),
        score_std=float(np.sqrt(variance.mean())),
        entropy=float(entropy.mean()),
        gradient_median=float(np.median(of_q)),
        gradient_mean=float(of_q.mean()),
        dead_share=float((of_q < DEAD).mean()),
        token_gradient=float(np.median(of_x)),
        own_score=float(np.median(own)),
    )
