"""16 · Why √d_k: what the scale does to gradients, measured.

"Without the scale the dot products grow, softmax saturates (its weights become one-hot), and the
gradients vanish." How much of that is true? This chapter measures it, with random queries and keys
of unit variance and a random gradient ∂L/∂p at the weights p, so that only the scale differs.

The dot products grow, and softmax saturates: that is true. A product q·k is a sum of d_k
independent terms of mean 0 and variance 1, so Var(q·k) = d_k. The further apart the scores are, the
larger is the share of the weight that softmax puts on a few keys, and at last on one.

That the gradients vanish is true of most queries of a head that has found its key. Before, the
gradient of a typical query may vanish or grow, and the mean over queries does not vanish: this
chapter says when. Take one query q as a column. Its scores are z = scale · K q, and its weights p =
softmax(z). Softmax passes back ∂L/∂z = J ∂L/∂p (chapter 3.6), and the product passes back ∂L/∂q =
scale · Kᵀ ∂L/∂z (chapter 11). Together:

    ∂L/∂q = scale · Kᵀ J ∂L/∂p        J = diag(p) - p pᵀ

The gradients of the keys have the same factors, scale and J, with q in the place of K. That of the
values has neither: ∂L/∂V = p (∂L/∂o)ᵀ shares out by the weights what comes from the output o. They
sum to 1, so nothing is lost there. At a large d_k, without the scale, nearly all of it goes to one
value.

Saturation makes J small. But without the scale nothing shrinks Kᵀ, and its columns, the keys, are
about √d_k long. So there are two kinds of queries. In a decided one a single weight is near 1: J is
nearly 0, and so is the gradient. In an undecided one the two largest scores are nearly equal: J is
not small, and Kᵀ makes the gradient about √d_k long.

**One hill.** d_k and the scale matter only through s = scale · √d_k, the spread of the scores. Here
is why. Let u = J ∂L/∂p, so that ∂L/∂q = scale · Kᵀ u. A score is scale · ‖q‖ times x, the component
of its key along q, and ‖q‖ is about √d_k. So the scores are s x, and along q the gradient is scale
· x·u. In each of the d_k - 1 directions across q the components of the keys are still random,
whatever the scores are. There the gradient is scale · ‖u‖ times a standard Gaussian number r:

    ‖∂L/∂q‖² = scale² · ((x·u)² + ‖u‖² (r₁² + r₂² + …))

The d_k - 1 squares sum to about d_k. So except in very narrow heads ‖∂L/∂q‖ is about s ‖u‖, and u
depends on the scores and ∂L/∂p alone. Plot the median of ‖∂L/∂q‖ against s, for one number n of
keys. It is a hill, and it is the same hill at every d_k. At small s the weights are nearly equal,
‖u‖ is about 1/√n, and the gradient grows like s. At large s the typical query is decided, and its
gradient is nearly 0. The top is near s = 2½ with 5 keys, 5½ with 64, and 7½ with 1,024.

1/√d_k puts every width at the same place, s = 1, which is not the top of the hill. Without the
scale a head is at s = √d_k, somewhere else for each width. So whether a typical gradient is smaller
or larger depends on d_k and on n. Here is the median of ‖∂L/∂q‖ without the scale, divided by the
median with it, from 20 repeats of 512 queries with the seed 0:

                     5 keys     64 keys     1,024 keys
    d_k = 64           .43         4.9           27
    d_k = 128          .09         3.1           23
    d_k = 512        .0005         .24          4.5
    d_k = 1024        4e-6         .03          1.0

(Ten other seeds gave .0004 to .0007 for .0005, and 4.8 to 5.1 for 4.9. Pictures have other draws,
and differ in the second digit. They call the two "about 2,000 times smaller" and "about 5 times
larger".)

At d_k = 64, the width of the paper's heads, a typical gradient is *larger* without the scale,
except with a handful of keys. It dies where √d_k is far beyond the top of the hill: in heads that
are very wide for their number of keys. The *mean* is larger in all twelve cells, 2.4 to 46 times.

**How much is left?** At large s only the two best keys count. Let ρ be the density of ties: the
chance that the two best x are less than a small t apart is ρ t. It is 1.16, 2.34 and 3.25 for 5, 64
and 1,024 keys. So for large s the two best scores are less than 1 apart in about a share ρ/s of
the queries. As s grows, these undecided queries become rare. But their gradients grow like s, so
the mean does not vanish. `ties`, below, derives for large s:

    mean → √(2/π) ρ        mean square ≈ ρ s/3        (mean)² / mean square ≈ 6ρ/(π s)
    median ≈ 1.06 s exp(-s δ)

The third says how few queries carry the gradient. If a share w of the queries had equal gradients
and the others none, it would be w. It holds for s far above ρ only. δ is the median gap between the
two best x. ρ (s - ρ)/3 is nearer to the mean square: with 5 to 1,024 keys it is 1 to 6 % too low
from d_k = 64 on. The mean comes from below: at d_k = 64 it is 10, 25 and 35 % under its limit with
5, 64 and 1,024 keys, and at d_k = 1024 it is 3, 6 and 9 % under it. The top of the median's hill is
near 2.3 ρ, which is measured, not derived: 2.2 to 2.4, with 3 to 1,024 keys.

**How unequal the gradients are** changes in each of these twelve cells, too. The 10 % of the
queries with the longest gradients have half to nearly all of Σ ‖∂L/∂q‖² without the scale, and 17
to 36 % of it with the scale. (In very narrow heads, and from initial weights so small that the
scores spread by less than 1 without a scale, there is little difference.)

**When a key fits.** Among random keys none fits the query. A training makes one fit: its
correlation with q, α, is no longer 0, and its score lies m = α √d_k standard deviations above the
mean of the others. Where m is large a tie between two keys is rare, nearly every query is decided,
and without the scale even the mean vanishes. With 64 keys and d_k = 1024 the mean without the
scale, divided by the mean with it, is 10 at m = 0, 3.6 at m = 3, 1 at m = 4 and 0.2 at m = 5. With
5 and 1,024 keys it is 1 near m = 2.6 and 5.3. (For other n, `ties` gives the mean without the
scale. With it, too, a key that stands out far enough takes nearly all of the weight: it has half of
it at m = ln n + ½.) So from variance 1, without the scale, a head's query gradients are unequal
before it has found its key, and after that most queries get next to none. (A head that looks by
content keeps a mean of .6 to .85 of that with the scale, which few queries have: chapter 16.8.)

What is the scale for, then? With it, if q and k have variance 1, a head of any width starts at the
same place, and the gradients of its queries are much more alike. Write the scale as d_k^-a: the
exponent *a* is ½ for the paper's 1/√d_k and 0 for no scale. Then s = d_k^(½ - a), which is the same
for all d_k only if a = ½. This is algebra, and what is measured tests the code. (Any c/√d_k does
the same: then s = c at every d_k. Chapter 16.8 tries at which s a model learns soonest: it is near
1, and not at the top of the hill.)

None of this is numerical stability, which chapter 3.6's subtraction of the maximum provides at
every scale. Random queries and keys are as at the start of a training from variance 1; the demo
`recall` trains one head with and without the scale. The laboratory has further measurements.

For each d_k and number of keys: is the median larger without the scale? And the mean?

    >>> from attention.scaling import ratios, saturations
    >>> for cell in ratios(saturations((64, 512), keys=(5, 64), repeats=3)):
    ...     larger = ("larger" if x > 1 else "smaller" for x in (cell.median, cell.mean))
    ...     print(cell.d_k, cell.keys, *larger)
    64 5 smaller larger
    64 64 larger larger
    512 5 smaller larger
    512 64 smaller larger

Legend: N queries look at n keys of d_k features.

Exercise 17 of `python -m demos learn`: predict what is measured here, and then measure it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from attention.scaled_dot_product import attention, over_keys, scale_factor
from minigrad import Tensor, erf, gradients

DEAD = 1e-3  # a query with a shorter ∂L/∂q counts as dead (median with the scale, 64 keys: 0.17)
Array = np.ndarray[Any, Any]
Exponent = float | Callable[[int], float]


def power(a: Exponent) -> Callable[[int], float]:
    """Return the scale d_k^-a for `attention(scale=…)`; a function of d_k is returned as it is."""
    return a if callable(a) else lambda d_k: float(d_k) ** -a


def named(a: Exponent) -> float | str:
    """Return *a* as a row of results has it: the number, or the name of the function."""
    return str(getattr(a, "__name__", a)) if callable(a) else float(a)


@dataclass(frozen=True)
class Saturation:
    """One measurement of random attention at one d_k, one number of keys and one scale."""

    d_k: int
    a: float | str  # the exponent of the scale d_k^-a, or the name of a function
    keys: int
    queries: int
    score_variance: float  # of the scores that softmax sees
    entropy: float  # mean over queries of Σ -p log p / log n: 1 is uniform, 0 one-hot
    largest_weight: float  # median over queries of max p
    gradient_mean: float  # over queries, of ‖∂L/∂q‖
    gradient_square: float  # the mean of its square
    gradient_median: float
    dead_share: float  # of queries with ‖∂L/∂q‖ < DEAD
    top_tenth_share: float  # of Σ ‖∂L/∂q‖², what the 10 % with the longest gradients have


def heads(
    d_k: int,
    a: Exponent,
    *,
    keys: int = 64,
    queries: int = 512,
    per_key_set: int = 32,
    deviation: float = 1.0,
    fit: float = 0.0,
    rng: np.random.Generator,
) -> tuple[Array, Array, Array]:
    """Return the scores, the weights and ‖∂L/∂q‖ of random queries.   → (N, n), (N, n), (N,)

    Entries of q and k are independent N(0, deviation²), and those of ∂L/∂p N(0, 1). With `fit`
    each query has that correlation with one key, and is as long as before. Every
    `per_key_set` queries share a set of `keys` keys, and the sets are drawn one after the other:
    the 16 sets for 512 queries, of 4,096 keys with 1,024 features, would be 540 MB at once.
    """
    found = []
    for _ in range(queries // per_key_set):
        drawn = deviation * rng.standard_normal((per_key_set, d_k))
        k = Tensor(deviation * rng.standard_normal((keys, d_k)))
        of_key = k.data[np.arange(per_key_set) % keys]  # the key that fits
        q = Tensor(fit * of_key + math.sqrt(1 - fit**2) * drawn, requires_grad=True)
        # Chapter 11's `attention_weights` in its two steps, because the scores are measured too.
        scores = scale_factor(q, k, power(a)) * (q @ k.mT)
        weights = over_keys(scores, None)
        of_p = rng.standard_normal(weights.shape)  # ∂L/∂p: no loss is needed
        (gradient,) = gradients(weights, [q], of_p)
        found.append((scores.data, weights.data, np.linalg.norm(gradient, axis=-1)))
    scores_of, weights_of, norms = (np.concatenate(each) for each in zip(*found, strict=True))
    return scores_of, weights_of, norms


def saturation(
    d_k: int, a: Exponent, *, keys: int = 64, rng: np.random.Generator, **drawn: Any
) -> Saturation:
    """Measure attention of random queries over random keys, and the gradient that reaches them.

    The scale is d_k^-a. The other options are those of `heads`. A query with ‖∂L/∂q‖ < DEAD counts
    as dead.
    """
    scores, weights, norms = heads(d_k, a, keys=keys, rng=rng, **drawn)
    return Saturation(
        d_k=d_k,
        a=named(a),
        keys=keys,
        queries=norms.size,
        score_variance=float(scores.var()),
        entropy=float(entropies(weights).mean()),
        largest_weight=float(np.median(weights.max(axis=-1))),
        gradient_mean=float(norms.mean()),
        gradient_square=float((norms**2).mean()),
        gradient_median=float(np.median(norms)),
        dead_share=float((norms < DEAD).mean()),
        top_tenth_share=top_tenth(norms),
    )


# ---------------------------------------------------- A first reading may stop here.
# What follows: the mean square on the hill, how much gradient is left where scores are far apart,
# entropies and shares, many measurements and their ratios, their means, and the drawn query.


def mean_square(z: Array, d_k: int, *, scale: float, length: float) -> Array:
    """Return the mean of ‖∂L/∂q‖² over ∂L/∂p and over all keys that give q the scores z.

    (…, n) → (…). length is ‖q‖, so z = scale · length · x. In the chapter's formula for ‖∂L/∂q‖²
    the d_k - 1 squares have the mean 1. And u = J ∂L/∂p, where ∂L/∂p is standard Gaussian and J is
    symmetric. So the mean of ‖u‖² is the sum of J's squared entries, tr J², and that of (x·u)² is
    ‖J x‖²:

        E ‖∂L/∂q‖² = scale² · ((d_k - 1) tr J² + ‖J x‖²)
        tr J² = Σ pᵢ² - 2 Σ pᵢ³ + (Σ pᵢ²)²

    This is exact at every d_k, n and scale.

    >>> from attention import attention_weights
    >>> from attention.scaling import mean_square
    >>> rng, x = np.random.default_rng(0), np.array([1.5, 1.0, 0.0, -1.0])
    >>> q = Tensor(np.tile([2.0, 0, 0], (100_000, 1, 1)), requires_grad=True)
    >>> k = rng.standard_normal((100_000, 4, 3))
    >>> k[..., 0] = x                                # along q; across q the keys are random
    >>> p = attention_weights(q, Tensor(k), scale=0.5)
    >>> (g,) = gradients(p, [q], rng.standard_normal(p.shape))
    >>> f"{(g**2).sum(axis=-1).mean():.2f} {mean_square(x, 3, scale=0.5, length=2):.2f}"
    '0.11 0.11'
    """
    p = np.exp(z - z.max(axis=-1, keepdims=True))
    p /= p.sum(axis=-1, keepdims=True)
    x = z / (scale * length)
    of_x = p * (x - (p * x).sum(axis=-1, keepdims=True))  # J x
    squares = (p**2).sum(axis=-1)
    trace = squares - 2 * (p**3).sum(axis=-1) + squares**2
    return scale**2 * ((d_k - 1) * trace + (of_x**2).sum(axis=-1))  # type: ignore[no-any-return]


def ties(n: int, m: float = 0.0) -> float:
    """Return ρ, the density of ties: that of the gap between the two best of n keys, at gap 0.

    The scores are s x, with x standard Gaussian numbers; that of one key is higher by m. How much
    gradient is left if s is large? Then only the two best keys have weights that are not 0: p and
    1 - p, with p = 1/(1 + exp(-s · gap)). Softmax sends p (1 - p)(g₁ - g₂) to one score and the
    negative to the other (chapter 3.6). The two keys are √2 · √d_k apart, so

        ‖∂L/∂q‖ = √2 s p (1 - p) |g₁ - g₂|

    p (1 - p) is not small only where u = s · gap is a few units at most. The gap is then close to
    0, where its density is ρ. So the chance of a u between u and u + du is (ρ/s) du, and

        mean          √2 s · (ρ/s) · ∫ p (1 - p) du · E|g₁ - g₂| = √(2/π) ρ
        mean square   2 s² · (ρ/s) · ∫ p² (1 - p)² du · E(g₁ - g₂)² = ρ s/3

    since the integrals from 0 to ∞ are 1/2 and 1/12, and the expectations 2/√π and 2. The mean does
    not depend on s: undecided queries become rare like 1/s, and their gradients grow like s.
    (mean)²/mean square is 6ρ/(π s). And p (1 - p) is about exp(-s · gap) for most queries, so

        ln ‖∂L/∂q‖ = ln(√2 s) - s · gap + ln|g₁ - g₂|

    For large s the second term spreads much wider than the last, which then moves the median by its
    mean, -γ/2 (γ is Euler's .577). So with the median gap δ (`median_gap`), median → √2 exp(-γ/2) s
    exp(-s δ). The factor is 1.06.

    In the limit of many keys more is known: beyond s = √(2 ln n), E tr J² = μ (1 - μ)/3 with
    μ = √(2 ln n)/s (from the weights of the random energy model, Derrida & Toulouse 1985; with this
    model Giorlandino & Goldt 2025 derive where gradients vanish). It is largest at s = 2 √(2 ln n).
    With ρ for √(2 ln n) this gives ρ (s - ρ)/3. That is not derived for few keys (with 2 there is
    no -ρ), but with 5 to 1,024 it is nearer to what is measured than ρ s/3 is.

        ρ(m) = 2 (n - 1) ∫ φ(x - m) φ(x) Φ(x)ⁿ⁻² dx + (n - 1)(n - 2) ∫ φ(x)² Φ(x)ⁿ⁻³ Φ(x - m) dx

    The key that stands out ties with the best of the others, or two others tie above it. φ is the
    Gaussian density and Φ its integral. For large m, ρ falls like a Gaussian's tail.

    >>> from attention.scaling import heads, ties
    >>> [round(ties(n), 3) for n in (2, 5, 64, 1024)]
    [0.564, 1.163, 2.344, 3.248]
    >>> rng, rho, s = np.random.default_rng(0), ties(16), 32
    >>> _, _, norms = heads(1024, 0.0, keys=16, queries=4096, rng=rng)
    >>> np.round([norms.mean(), (norms**2).mean()], 2)
    array([ 1.33, 17.39])
    >>> np.round([np.sqrt(2 / np.pi) * rho, rho * (s - rho) / 3], 2)
    array([ 1.41, 17.8 ])
    """
    x = np.linspace(-9.0, 9.0 + m, 2001)
    (density, below), (of_fit, below_fit) = gaussian(x), gaussian(x - m)
    one_fits = 2 * (n - 1) * of_fit * density * below ** (n - 2)
    others = (n - 1) * (n - 2) * density**2 * below ** max(n - 3, 0) * below_fit
    return float(np.trapezoid(one_fits + others, x))


def gaussian(x: Array) -> tuple[Array, Array]:
    """Return φ(x), the Gaussian density, and Φ(x), its integral up to x."""
    density = np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)
    return density, (1 + np.asarray(erf(x / math.sqrt(2)))) / 2


def median_gap(n: int) -> float:
    """Return δ, the median of the gap between the two largest of n standard Gaussian numbers.

    The gap is larger than δ if one number is x and all others are below x - δ.

    >>> from attention.scaling import median_gap
    >>> [round(median_gap(n), 3) for n in (5, 64, 1024)]
    [0.528, 0.282, 0.208]
    """
    x = np.linspace(-9.0, 9.0, 2001)
    density, _ = gaussian(x)
    low, high = 0.0, 4.0
    for _ in range(50):
        gap = (low + high) / 2
        _, below = gaussian(x - gap)
        chance = n * np.trapezoid(density * below ** (n - 1), x)
        low, high = (gap, high) if chance > 0.5 else (low, gap)
    return low


def entropy(p: Array) -> Array:
    """-Σ p log p of each row: 0 for a row with one weight, log n for n equal ones.   (…, n) → (…)

    >>> from attention.scaling import entropy
    >>> entropy(np.array([[1.0, 0.0], [0.5, 0.5]])) / np.log(2)
    array([-0.,  1.])
    """
    log_p = np.log(np.where(p > 0, p, 1))  # p log p is 0 at p = 0
    sums: Array = (p * log_p).sum(axis=-1)
    return -sums


def entropies(p: Array) -> Array:
    """Return entropy / log n of each row: 1 is uniform, 0 one-hot.   (…, n) → (…)"""
    return entropy(p) / np.log(p.shape[-1])  # type: ignore[no-any-return]


def top_tenth(norms: Array) -> float:
    """Return the share of Σ norm² that the largest tenth of the norms has: .1 if all are equal.

    A tenth of 25 norms is 2½ of them, so half of the third largest square counts.

    >>> from attention.scaling import top_tenth
    >>> round(top_tenth(np.full(25, 7.0)), 9), top_tenth(np.array([3.0, 0, 0, 0, 0]))
    (0.1, 0.5)
    """
    if not norms.any():
        return 0.1  # all are 0, and equal
    squares = np.sort(norms**2)[::-1]
    whole, tenths = divmod(len(squares), 10)
    top = squares[:whole].sum() + tenths / 10 * squares[whole : whole + 1].sum()
    return float(top / squares.sum())


def saturations(
    d_ks: Sequence[int],
    exponents: Sequence[Exponent] = (0.0, 0.5),
    *,
    repeats: int = 5,
    keys: int | Sequence[int] = 64,
    seed: int = 0,
) -> Iterator[Saturation]:
    """Measure every d_k with every number of keys and every exponent, `repeats` times each.

    Each repeat has its own generator, and all exponents of a repeat see the same q, k and ∂L/∂p.
    """
    for d_k, n in itertools.product(d_ks, [keys] if isinstance(keys, int) else keys):
        for repeat in range(repeats):
            for a in exponents:
                rng = np.random.default_rng([seed, d_k, n, repeat])
                yield saturation(d_k, a, keys=n, rng=rng)


@dataclass(frozen=True)
class Ratio:
    """The measurements without the scale over those with it, at one d_k and number of keys."""

    d_k: int
    keys: int
    repeats: int
    median: float  # of ‖∂L/∂q‖; the geometric mean over the repeats, as for the mean
    error: float  # the standard error of its log₁₀; NaN for one repeat
    mean: float  # of ‖∂L/∂q‖
    top_tenth_without: float  # the tenth's share of the squared gradient
    top_tenth_with: float


def ratios(rows: Iterable[Saturation]) -> list[Ratio]:
    """Compare the rows of exponent 0 with those of ½, for every d_k and number of keys."""
    cells: dict[tuple[int, int], tuple[list[Saturation], list[Saturation]]] = {}
    for row in rows:
        cells.setdefault((row.d_k, row.keys), ([], []))[row.a == 0.5].append(row)

    found = []
    for (d_k, keys), pair in cells.items():
        median, mean, tenth = (
            np.array([[getattr(row, name) for row in group] for group in pair])  # without and with
            for name in ("gradient_median", "gradient_mean", "top_tenth_share")
        )
        of_median, of_mean = np.log10(median[0] / median[1]), np.log10(mean[0] / mean[1])
        found.append(
            Ratio(
                d_k,
                keys,
                repeats=len(of_median),
                median=float(10 ** of_median.mean()),
                error=float(deviation(of_median) / math.sqrt(len(of_median))),
                mean=float(10 ** of_mean.mean()),
                top_tenth_without=float(tenth[0].mean()),
                top_tenth_with=float(tenth[1].mean()),
            )
        )
    return found


MEASURED = tuple(field.name for field in fields(Saturation))[4:]


def summary(rows: Sequence[Any]) -> dict[Any, dict[str, tuple[float, float]]]:
    """Return for each (d_k, a) each measurement's mean and standard deviation over the repeats.

    rows are dataclasses of one kind. The deviation is the estimate from a sample, with n - 1 below,
    so a single row has none: NaN.
    """
    groups: dict[Any, list[Any]] = {}
    for row in rows:
        groups.setdefault((row.d_k, row.a), []).append(row)
    names = [field.name for field in fields(rows[0]) if field.name not in ("d_k", "a")]
    found: dict[Any, dict[str, tuple[float, float]]] = {}
    for key, group in groups.items():
        of = {name: [getattr(row, name) for row in group] for name in names}
        found[key] = {n: (float(np.mean(x)), float(deviation(x))) for n, x in of.items()}
    return found


def deviation(values: Any) -> Any:
    """Return the standard deviation along the first axis, estimated with n - 1; NaN for n = 1."""
    values = np.asarray(values, float)
    return values.std(axis=0, ddof=1) if len(values) > 1 else np.full(values.shape[1:], np.nan)


def typical_query(
    d_k: int, *, keys: int = 8, d_v: int = 3, queries: int = 1001, rng: np.random.Generator
) -> tuple[Array, Array, Array, Array]:
    """Draw an unscaled head, return its median query: q (1, d_k), k, v, and g = ∂L/∂output.

    Of many random queries over one set of keys, each with its own g, this is the one whose
    ‖∂L/∂q‖ without the scale is the median. So a drawing of it shows neither the worst case nor
    the best.
    """
    q = Tensor(rng.standard_normal((queries, d_k)), requires_grad=True)
    k, v = rng.standard_normal((keys, d_k)), rng.standard_normal((keys, d_v))
    g = rng.standard_normal((queries, d_v))
    output = attention(q, Tensor(k), Tensor(v), scale=1.0)
    norms = np.linalg.norm(gradients(output, [q], g)[0], axis=-1)
    median = int(np.argsort(norms)[queries // 2])
    return q.data[median : median + 1], k, v, g[median : median + 1]
