"""16.4 · Sharpness: how curved the loss is where a training begins.

How far does a step of gradient descent carry before it goes wrong? Let H be the Hessian of the loss
L at the weights w, and v an eigenvector of H of length 1 with eigenvalue λ > 0. Along v, very near
w, the loss is a parabola,

    L(w + t v) ≈ L(w) + ⟨∂L/∂w, v⟩ t + ½ λ t²

and a step with rate lr multiplies the distance to the parabola's lowest point by 1 - lr λ. On a
parabola the distance shrinks if lr < 2/λ, and grows if lr > 2/λ. A network's loss is a parabola
only very near, and rates beyond 2/λ may work: the loss may rise at first and the weights move to a
flatter place (the catapult of Lewkowycz et al. 2020), and long trainings with full batches settle
where λ is about 2/lr (the edge of stability, Cohen et al. 2021). So the largest eigenvalue, the
**sharpness**, compares how curved two beginnings are. The largest rate that works is measured by
training (chapter 16.5).

How does the sharpness depend on d_k, if the scores are multiplied by d_k^-a? A score is
s = d_k^-a · (x W_q)·(y W_k), for the vectors x of the query's position and y of the key's. With
k = y W_k its derivative with respect to W_q is d_k^-a · x kᵀ, whose squared length is

    d_k^-2a ‖x‖² ‖k‖²        ‖k‖² ≈ d_k        together ∝ d_k^(1 - 2a)

The Hessian with respect to W_q contains this square times L″(s), the second derivative of the loss
with respect to the score. If L″(s) did not depend on d_k, log λ against log d_k would be a line of
slope 1 - 2a. With a ≥ ½ softmax is not saturated, and so it is: for ½ and 1 the slopes are
-.08 ± .01 and -1.07 ± .01 (`head_sharpness`, d_k from 8 to 512, 20 repeats), and from d_k = 32 on
the first is 0 ± .02.

Without a scale saturation makes L″(s) nearly 0 for most queries. A query counts only if two keys
share its weight, and the share of these undecided queries falls like d_k^-½, since its raw scores
are √d_k apart (chapter 16). One undecided query alone has a curvature ∝ d_k. The mean over all
queries, with the share of the undecided, goes like d_k^½, and it is spread over many directions.
The largest eigenvalue of a small batch is made by a single undecided query, and more queries bring
it nearer to the mean's. So the slope of the raw head depends on the number of queries in the batch,
here from d_k = 8 to 512, with eight repeats (three of the largest batch):

    queries       256          8,192        32,768       131,072
    slope         .90 ± .04    .78 ± .01    .65 ± .01    .51 ± .01

The few undecided queries are enough: without the more decided half of 256 queries λ at d_k = 512 is
the same to 1 %. Nothing says that .51 is a limit: larger batches may fall further.

    >>> from attention.laboratory.sharpness import head_sharpness, largest_eigenvalue
    >>> def rise(a):                                # from d_k = 8 to 512, which is 64 times as wide
    ...     rng = np.random.default_rng
    ...     small, large = (head_sharpness(d_k, a, rng=rng(0)) for d_k in (8, 512))
    ...     return large.sharpness / small.sharpness
    >>> 30 < rise(0) < 100, 0.5 < rise(0.5) < 1.5, 1 / 150 < rise(1) < 1 / 50
    (True, True, True)

GPT-2's small initial weights give smaller scores and a smaller λ, but the slope stays (.90 ± .02
with 256 queries). T5 leaves the scale out and divides W_q by √d_k at the start instead. Its scores
have variance 1, so softmax is not saturated, and yet λ grows like d_k^.88: the derivative with
respect to W_q contains keys that are as long as before. For SGD this choice repairs the softmax and
not the step. For the optimizer that T5 was trained with it is the scale 1/√d_k (chapter 16.5).

In these measurements the tokens have d_model = 32 features. Where d_k is larger, q and k fill only
32 of its dimensions: q·k is x (W_q W_kᵀ) y, and that is how it is computed.

**How is an eigenvalue found if the matrix does not fit into memory?** At d_k = 512 and d_model = 32
W_q and W_k have 32,768 elements, and H as an array would take 8.6 GB. But chapter 2.3's `hvp`
multiplies H by any vector for two replays. Power iteration multiplies again and again. It finds the
eigenvalue that is largest in *magnitude*. Without the scale that is a negative one in about a third
of our measurements, and no step along its eigenvector is too large. Lanczos's method keeps all the
products instead. It makes them orthonormal, q₁, q₂, …, and in this basis H is tridiagonal: since H
is symmetric, H qⱼ has no component along q₁ … qⱼ₋₂. The largest eigenvalue of that small matrix
approaches H's from below.

    >>> H = np.diag([3.0, 1.0, -7.0])
    >>> v = np.ones(3)
    >>> for _ in range(50):                                     # power iteration
    ...     v = H @ v / np.linalg.norm(H @ v)
    >>> round(float(v @ H @ v), 9)
    -7.0
    >>> found = largest_eigenvalue(lambda v: H @ v, 3, rng=np.random.default_rng(0))
    >>> round(found.value, 9), round(found.lowest, 9), found.residual < 1e-9
    (3.0, -7.0, True)

Legend: S keys, T queries, B sequences; H is the Hessian with respect to W_q and W_k together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from attention.scaling import Array, Exponent, named, power
from minigrad import Tensor, cross_entropy, hvp, softmax


@dataclass(frozen=True)
class Sharpness:
    """The largest eigenvalue of the Hessian with respect to W_q and W_k, at one d_k and scale."""

    d_k: int
    a: float | str  # the exponent of the scale d_k^-a, or the name of a function
    init: str  # how W_q and W_k are drawn: see `INITIAL`
    queries: int  # over which the loss is a mean
    score_std: float  # standard deviation of the scores that softmax sees
    sharpness: float  # λ, the algebraically largest eigenvalue
    residual: float  # ‖Hv - λv‖ for the v that was found, of length 1
    lowest: float  # H has an eigenvalue at or below this one, which is negative as a rule


def head_sharpness(
    d_k: int,
    a: Exponent,
    *,
    init: str = "unit",
    sequences: int = 32,
    queries: int = 8,
    keys: int = 8,
    d_model: int = 32,
    classes: int = 8,
    rng: np.random.Generator,
) -> Sharpness:
    """Measure the sharpness of one head on random data, in float64.

    The vectors x of the queries' positions (B, T, d_model), those of the keys' y (B, S, d_model)
    and the values (B, S, classes) have independent entries N(0, 1). The head's output is taken for
    logits, the right classes are drawn evenly, and the loss is the mean cross-entropy.
    """
    x = Tensor(rng.standard_normal((sequences, queries, d_model)))
    y = Tensor(rng.standard_normal((sequences, keys, d_model)))
    v = Tensor(rng.standard_normal((sequences, keys, classes)))
    right = rng.integers(0, classes, (sequences, queries))
    w_q, w_k = initial_weights(d_model, d_k, init, rng=rng)

    def scores_of(w_q: Tensor, w_k: Tensor) -> Tensor:
        # q·k = x (W_q W_kᵀ) yᵀ: the inner matrix is d_model × d_model, however large d_k is
        return power(a)(d_k) * (x @ (w_q @ w_k.mT) @ y.mT)  # (B, T, S)

    def loss(w_q: Tensor, w_k: Tensor) -> Tensor:
        return cross_entropy(softmax(scores_of(w_q, w_k)) @ v, right)

    found = largest_of_hessian(loss, (w_q, w_k), rng=rng)
    scores = scores_of(Tensor(w_q), Tensor(w_k))
    return Sharpness(
        d_k=d_k,
        a=named(a),
        init=init,
        queries=sequences * queries,
        score_std=float(scores.data.std()),
        sharpness=found.value,
        residual=found.residual,
        lowest=found.lowest,
    )


def slope(d_ks: Sequence[int], values: Any) -> tuple[float, float]:
    """Return the slope of log values `(R, len(d_ks))` over log d_k, and its standard error.

    Each repeat gives a slope by least squares. The standard error is that of their mean.

    >>> from attention.laboratory.sharpness import slope
    >>> np.round(slope([1, 10, 100], [[5.0, 50.0, 500.0], [3.0, 300.0, 30000.0]]), 9)
    array([1.5, 0.5])
    """
    log_d = np.log(d_ks) - np.mean(np.log(d_ks))
    slopes = np.log(values) @ log_d / (log_d @ log_d)
    error = slopes.std(ddof=1) / math.sqrt(len(slopes))
    return float(slopes.mean()), float(error)


# How W_q and W_k are drawn: (d_model, d_k) → the standard deviation of the entries of each.
INITIAL: dict[str, Callable[[int, int], tuple[float, float]]] = {
    # q and k of variance 1, as in the paper's footnote 4: raw scores have std √d_k
    "unit": lambda d_model, d_k: (d_model**-0.5, d_model**-0.5),
    # GPT-2's .02 at 768 features; at another d_model, what gives q and k the same variance, .31
    "gpt2": lambda d_model, d_k: (0.02 * (768 / d_model) ** 0.5, 0.02 * (768 / d_model) ** 0.5),
    # T5's: the scale 1/√d_k is part of W_q, so raw scores have std 1
    "t5": lambda d_model, d_k: ((d_model * d_k) ** -0.5, d_model**-0.5),
}


def initial_weights(
    d_model: int, d_k: int, init: str, *, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Draw W_q and W_k, Gaussian, each (d_model, d_k).

    For inputs of variance 1, raw scores have the standard deviation std_q · std_k · d_model · √d_k.
    """
    shape = (d_model, d_k)
    std_q, std_k = INITIAL[init](d_model, d_k)
    return std_q * rng.standard_normal(shape), std_k * rng.standard_normal(shape)


# ---------------------------------------------------- A first reading may stop here.
# What follows: the largest eigenvalue, by Lanczos's method.


@dataclass(frozen=True)
class Largest:
    """The algebraically largest eigenvalue of a symmetric matrix H, as far as it was found.

    An exact eigenvalue of H is within `residual` of `value`. That it is the largest one follows
    from no residual: the random first vector has a component along every eigenvector, and those at
    both ends of the spectrum are found first.
    """

    value: float
    vector: Array  # of length 1
    residual: float  # ‖Hv - λv‖, computed by one more product
    lowest: float  # the smallest eigenvalue in the same basis: H has one at or below it


def largest_eigenvalue(
    apply: Callable[[Array], Array],
    size: int,
    *,
    tolerance: float = 1e-3,
    most: int = 120,
    rng: np.random.Generator,
) -> Largest:
    """Run Lanczos's method for `apply`, v ↦ H v with a symmetric H of size × size.

    It stops when ‖H v - λ v‖ is at most `tolerance` times |λ|, or after `most` products. The error
    of λ is then much smaller, about residual² over the distance to the next eigenvalue.

    In exact arithmetic H qⱼ needs to be made orthogonal to qⱼ and qⱼ₋₁ only. With rounding, the
    basis loses its orthogonality as soon as an eigenvalue has been found, and then finds copies of
    it. So each product is made orthogonal to all vectors before it, and twice, since a vector that
    loses nearly all its length in the first pass keeps the rounding errors of what was subtracted.
    """
    most = min(most, size)
    basis = np.empty((most, size))  # rows q₁, q₂, …
    diagonal: list[float] = []  # of the tridiagonal matrix Q H Qᵀ
    beside: list[float] = []  # the diagonal
    q = rng.standard_normal(size)
    length = np.linalg.norm(q)
    while True:
        n = len(diagonal)
        basis[n] = q / length
        known = basis[: n + 1]
        q = apply(basis[n])
        diagonal.append(float(basis[n] @ q))
        for _ in range(2):
            q = q - (known @ q) @ known
        length = np.linalg.norm(q)
        values, vectors = np.linalg.eigh(
            np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1)
        )
        # H v - λ v has one component outside the basis, along the next q: its length is known.
        expected = length * abs(vectors[-1, -1])
        if expected <= tolerance * abs(values[-1]) or n + 1 == most:
            break
        beside.append(float(length))
    v = vectors[:, -1] @ known
    return Largest(
        value=float(values[-1]),
        vector=v,
        residual=float(np.linalg.norm(apply(v) - values[-1] * v)),
        lowest=float(values[0]),
    )


def largest_of_hessian(
    loss: Callable[..., Tensor], weights: Sequence[Array], *, rng: np.random.Generator
) -> Largest:
    """Find the largest eigenvalue of the Hessian of loss(*weights), all weights as one vector.

    >>> from attention.laboratory.sharpness import largest_of_hessian
    >>> loss = lambda w: 3 * w[0] ** 2 - 7 * w[1] ** 2
    >>> round(largest_of_hessian(loss, [np.ones(2)], rng=np.random.default_rng(0)).value, 9)
    6.0
    """
    ends = np.cumsum([w.size for w in weights])

    def apply(v: Array) -> Array:
        parts = np.split(v, ends[:-1])
        directions = tuple(p.reshape(w.shape) for p, w in zip(parts, weights, strict=True))
        return np.concatenate([part.ravel() for part in hvp(loss, tuple(weights), directions)])

    return largest_eigenvalue(apply, int(ends[-1]), rng=rng)
