"""16.2 · The chain: which factor makes a gradient long or short?

There are four steps from a query q to the output of a head, and on the way back each of them
multiplies the gradient by one factor. With products K q, scores s = scale · K q, weights
p = softmax(s), output Vᵀ p and g = ∂L/∂output, these are

    ∂L/∂p = V g        ∂L/∂s = J ∂L/∂p        ∂L/∂(K q) = scale · ∂L/∂s        ∂L/∂q = Kᵀ ∂L/∂(K q)

where J = diag(p) - p pᵀ (chapter 3.6), and all together ∂L/∂q = Kᵀ · scale · J V g.

A factor's **gain** at a query is the length of the gradient after it, divided by the length before
it. Every gradient of the chain belongs to a tensor of the record, so the lengths can be read there.
These are two heads at d_k = 512, which differ in the scale alone. The query is one whose raw
gradient is the median of many.

    >>> from attention.laboratory import at_each_tensor
    >>> from attention.scaling import typical_query
    >>> q, k, v, g = typical_query(512, rng=np.random.default_rng(0))
    >>> scaled, raw = (at_each_tensor(q, k, v, g, a) for a in (0.5, 0))
    >>> for name in scaled:
    ...     print(f"{name:8} {scaled[name]:7.1e} {raw[name]:7.1e}")
    output   6.3e-01 6.3e-01
    weights  2.0e+00 2.0e+00
    scores   1.8e-01 7.5e-05
    products 7.9e-03 7.5e-05
    q        1.8e-01 1.6e-03

V acts alike on both. J shortens the scaled gradient 11 times and the raw one 27,000 times. The
scale shortens the first again, √512 = 23 times, and Kᵀ lengthens each of them about as much. So the
scale costs nothing in the end, and with it J does not become small.

One query proves little. `factors` measures many, for any exponent *a* of the scale d_k^-a. Here are
the medians over 512 queries of the four gains, and of their product ‖∂L/∂q‖/‖g‖, with n = 64 keys.

    >>> from attention.laboratory import factors
    >>> print("  a  d_k    V       J  scale     K  product")
      a  d_k    V       J  scale     K  product
    >>> for a in (0, 0.5, 1):
    ...     for d_k in (4, 64, 1024):
    ...         f = factors(d_k, a, rng=np.random.default_rng(0))
    ...         gains = f"{f.gain_v:4.1f} {f.gain_j:7.1e} {f.gain_scale:6.3f} {f.gain_k:5.1f}"
    ...         print(f"{a:3} {d_k:4} {gains}  {f.gradient:7.1e}")
      0    4  8.0 2.6e-02  1.000   1.8  3.6e-01
      0   64  8.0 1.3e-02  1.000   7.8  8.4e-01
      0 1024  8.0 1.3e-05  1.000  31.9  3.4e-03
    0.5    4  8.0 2.0e-02  0.500   1.9  1.5e-01
    0.5   64  8.0 2.1e-02  0.125   7.9  1.7e-01
    0.5 1024  8.0 2.1e-02  0.031  32.0  1.7e-01
      1    4  8.0 1.7e-02  0.250   1.8  6.1e-02
      1   64  8.0 1.6e-02  0.016   7.9  1.5e-02
      1 1024  8.0 1.6e-02  0.001  32.0  3.8e-03

Column by column:

- V gains √n = 8 and K gains √d_k, whatever the scale is: each of the n entries of V g is about as
  large as ‖g‖, and each of the d_k entries of Kᵀ u about as large as ‖u‖.
- Scale and K together gain d_k^(½ - a), which falls as d_k grows if a > ½.
- J is the factor that softmax decides. Its gain falls as d_k grows if a < ½. If a > ½ the weights
  become uniform, J becomes (I - 1 1ᵀ/n)/n, and its gain 1/n = 0.016.

So ½ is the only exponent at which neither J nor scale · K depends on d_k. With a larger one the
scale is smaller than K can make up for, and with a smaller one J becomes small. (At d_k = 4 some
gains are up to a tenth smaller.)

The mean of J's gain at a = 0 falls more slowly than its median, nearly like 1/√d_k: 0.022, 0.013
and 0.007 at d_k = 64, 256 and 1024. K's gain grows like √d_k. This is why the mean gradient of
chapter 16 levels off.

**Do the norms of the factors bound the gradient?** That depends on the norm. The spectral norm
‖M‖₂, the largest singular value, is the most that M can lengthen a vector. So the product of four
spectral norms, ‖K‖₂ · scale · ‖J‖₂ · ‖V‖₂, bounds ‖∂L/∂q‖/‖g‖ at every query. Frobenius norms are
never smaller, so their product is a bound too, and a worse one. Already the first is far from the
truth, 9 times too large at a = ½ and d_k = 1024 and 54 times at a = 0 and d_k = 4: each factor
receives a vector of some direction, and not of the one that it lengthens most. The product of four
median gains bounds nothing. Averaged over 20 generators it is the median gradient to 2 %, only
because J's gain is the one that differs much between queries. (In a single measurement at a = 0 and
d_k = 1024 it is some 5 % off, and was up to 11 %.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from attention.scaling import Array, Exponent, named, power
from minigrad import Steps, Tensor, gradients, softmax


@dataclass(frozen=True)
class Factors:
    """The factors of ∂L/∂q = Kᵀ · scale · J V g at one d_k and one scale. All are ratios."""

    d_k: int
    a: float | str  # the exponent of the scale d_k^-a, or the name of a function
    gain_v: float  # median over queries of ‖∂L/∂p‖ / ‖g‖
    gain_j: float  # median of ‖∂L/∂s‖ / ‖∂L/∂p‖
    gain_scale: float  # ‖∂L/∂(K q)‖ / ‖∂L/∂s‖, the scale itself
    gain_k: float  # median of ‖∂L/∂q‖ / ‖∂L/∂(K q)‖
    gain_j_mean: float  # the mean over queries instead of the median
    gradient: float  # median of ‖∂L/∂q‖ / ‖g‖, which is the product of a query's four gains
    looseness: float  # median of ‖K‖₂ scale ‖J‖₂ ‖V‖₂ over ‖∂L/∂q‖ / ‖g‖: never below 1


def forward(q: Tensor, k: Tensor, v: Tensor, a: Exponent) -> tuple[Tensor, ...]:
    """Compute attention in its four steps: return products, scores, weights and output."""
    products = q @ k.mT  # (…, T, n)
    scores = power(a)(q.shape[-1]) * products  # (…, T, n)
    weights = softmax(scores)  # (…, T, n)
    output = weights @ v  # (…, T, d_v)
    return products, scores, weights, output


def at_each_tensor(q: Any, k: Any, v: Any, g: Any, a: Exponent) -> dict[str, float]:
    """Return ‖∂L/∂tensor‖ from the output back to q, as one backward pass meets the tensors.

    The arrays are q (T, d_k), k (n, d_k), v (n, d_v) and g = ∂L/∂output (T, d_v). `Steps`
    names the tensors after the variables in `forward`.
    """
    leaf = Tensor(q, requires_grad=True, name="q")
    with Steps() as steps:
        *_, output = forward(leaf, Tensor(k), Tensor(v), a)
    steps.backward(output, g)
    order = [steps.vertices[contribution.target] for contribution in steps.contributions]
    return {vertex.title: float(vertex.grad_norm or 0.0) for vertex in order}


def factors(
    d_k: int,
    a: Exponent,
    *,
    keys: int = 64,
    d_v: int = 32,
    queries: int = 512,
    per_key_set: int = 32,
    rng: np.random.Generator,
) -> Factors:
    """Measure the four gains at many random queries, and the bound by spectral norms.

    Entries of q, k, v and of g = ∂L/∂output are independent N(0, 1). Every `per_key_set` queries
    share a set of `keys` keys and their values.
    """
    sets = queries // per_key_set
    q = Tensor(rng.standard_normal((sets, per_key_set, d_k)), requires_grad=True)
    k, v = (Tensor(rng.standard_normal((sets, keys, d))) for d in (d_k, d_v))
    products, scores, weights, output = forward(q, k, v, a)
    g = rng.standard_normal(output.shape)
    arrays = [g, *gradients(output, [weights, scores, products, q], g)]
    lengths = np.array([np.linalg.norm(each, axis=-1).ravel() for each in arrays])
    gains = lengths[1:] / lengths[:-1]  # four rows: V, J, scale, K
    total = lengths[-1] / lengths[0]
    norm_v, norm_k = (np.linalg.norm(each.data, 2, axis=(-2, -1)) for each in (v, k))
    norm_j = np.linalg.eigvalsh(jacobians(weights.data))[..., -1]  # (sets, per_key_set)
    bound = (norm_v * norm_k)[:, None] * power(a)(d_k) * norm_j
    median = np.median(gains, axis=1)
    return Factors(
        d_k=d_k,
        a=named(a),
        gain_v=float(median[0]),
        gain_j=float(median[1]),
        gain_scale=float(median[2]),
        gain_k=float(median[3]),
        gain_j_mean=float(gains[1].mean()),
        gradient=float(np.median(total)),
        looseness=float(np.median(bound.ravel() / total)),
    )


# ---------------------------------------------------- A first reading may stop here.
# What follows: the eigenvalues of J. How many directions does softmax still let through?


@dataclass(frozen=True)
class Spectrum:
    """The eigenvalues λ of J = diag(p) - p pᵀ at one d_k and one scale.

    J is symmetric, and xᵀ J x = Σ pᵢ xᵢ² - (Σ pᵢ xᵢ)² is the variance of x under the weights p. So
    no λ is negative, and x = (1, …, 1) has λ = 0: softmax does not see a shift of all its scores.
    The eigenvalues sum to the trace, Σ pᵢ (1 - pᵢ) = 1 - Σ pᵢ². The largest lies between two
    numbers that can be read off the weights:

        the second largest pᵢ  ≤  λ₁  ≤  2 max pᵢ (1 - pᵢ)  ≤  ½

    The upper bound is Gershgorin's: row i has pᵢ (1 - pᵢ) on the diagonal, and elsewhere entries
    whose absolute values sum to as much. The lower bound is Cauchy's interlacing: subtracting p pᵀ
    from diag(p) moves no eigenvalue below the next smaller pᵢ. So if one weight is 1 - ε, no λ is
    above 2ε; if two weights are ½, λ₁ is ½.

    A gradient of random direction is shortened to √(Σ λ² / n) of its length, in the mean square.
    """

    d_k: int
    a: float | str  # the exponent of the scale d_k^-a, or the name of a function
    largest: float  # median over queries of the largest λ: between 0 and ½
    largest_mean: float
    directions: float  # median of (Σ λ)² / Σ λ²: how many directions pass a gradient on
    above: float  # median of how many λ are larger than .001


def spectrum(
    d_k: int,
    a: Exponent,
    *,
    keys: int = 64,
    queries: int = 256,
    per_key_set: int = 32,
    rng: np.random.Generator,
) -> Spectrum:
    """Measure the eigenvalues of softmax's Jacobian at many queries, drawn as `factors` does.

    >>> from attention.laboratory import spectrum
    >>> raw, scaled = (spectrum(1024, a, rng=np.random.default_rng(0)) for a in (0, 0.5))
    >>> f"{raw.largest:.4f} {scaled.largest:.4f}"                   # of at most ½
    '0.0002 0.0923'
    >>> raw.above, scaled.above                                     # of 64 eigenvalues
    (0.0, 62.0)
    """
    sets = queries // per_key_set
    q, k = (rng.standard_normal((sets, rows, d_k)) for rows in (per_key_set, keys))
    weights = softmax(power(a)(d_k) * Tensor(q) @ Tensor(k).mT).data
    values = np.linalg.eigvalsh(jacobians(weights)).reshape(-1, keys)
    squares = (values**2).sum(axis=-1)
    return Spectrum(
        d_k=d_k,
        a=named(a),
        largest=float(np.median(values[:, -1])),
        largest_mean=float(values[:, -1].mean()),
        directions=float(np.median(values.sum(axis=-1) ** 2 / squares)),
        above=float(np.median((values > 1e-3).sum(axis=-1))),
    )


def jacobians(p: Array) -> Array:
    """diag(p) - p pᵀ for each row of weights.   (…, n) → (…, n, n)

    >>> from attention.laboratory.chain import jacobians
    >>> np.linalg.eigvalsh(jacobians(np.array([0.5, 0.5, 0.0]))).round(6) + 0.0
    array([0. , 0. , 0.5])
    """
    return p[..., None] * (np.eye(p.shape[-1]) - p[..., None, :])
