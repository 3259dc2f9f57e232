"""16.3 · Freezing: how far apart may scores be, and what has the number of keys to do with it?

Chapter 16 has 64 keys. With another number n of keys, how large may d_k become before attention
without the scale looks at one key only? Given its query, the scores of random keys are independent
Gaussian numbers with the standard deviation s = scale · ‖q‖, which is near d_k^(½ - a). Softmax of
n such numbers is the random energy model of physics (Derrida 1981; Giorlandino & Goldt 2025 use it
for attention). As n → ∞ its answer is

    entropy / log n = 1 - (s/s₀)²   up to   s₀ = √(2 ln n),   and 0 beyond

Up to s₀ the weight is shared by about n^(1 - (s/s₀)²) keys. Beyond it a number of keys that does
not grow with n has nearly all of it: the model is frozen. The number is not small at once. As
n → ∞ the mean of Σ p², the chance that two keys drawn by p are the same one, becomes 1 - s₀/s. At
s = 1.1 s₀ that is .09, as if eleven keys shared the weight.

Without the scale s = √d_k, so attention freezes at d_k = 2 ln n. That is early, and n hardly
matters:

    >>> from attention.laboratory import freezing_line
    >>> [round(freezing_line(n) ** 2, 1) for n in (64, 1024, 131_072)]       # d_k = 2 ln n
    [8.3, 13.9, 23.6]

With 1/√d_k the spread is s = 1 at every d_k, which is below s₀ for two keys already.

Can such a line be seen at a finite n? `collapse` measures the entropy H at any n and s. It also
gives the slope, since for weights p = softmax(s x)

    dH/ds = -s · variance of x under the weights p

(dH = -Σ log pᵢ dpᵢ, where log pᵢ = s xᵢ - log Z and dp = J x ds; so dH = -s xᵀ J x ds, and xᵀ J x
is that variance, chapter 16.2.) In the limit the slope of entropy / log n jumps at s₀ from -2/s₀ to
0. At a finite n it cannot jump, since H is a smooth function of s. What is measured is a crossover,
and a wide one. Here are entropy / log n at s = s₀/2, s₀ and 2 s₀, and slope · s₀ at 0.9 s₀ and
1.1 s₀:

    >>> from attention.laboratory import collapse
    >>> for n, samples in ((64, 2000), (1024, 500), (131_072, 40)):
    ...     rows = [
    ...         collapse(n, part * freezing_line(n), samples=samples, rng=np.random.default_rng(0))
    ...         for part in (0.5, 1, 2, 0.9, 1.1)
    ...     ]
    ...     slopes = [row.slope * freezing_line(n) for row in rows[3:]]
    ...     print(f"{n:6}", *[f"{x:.2f}" for x in [*(row.entropy for row in rows[:3]), *slopes]])
        64 0.78 0.45 0.20 -0.55 -0.41
      1024 0.76 0.37 0.14 -0.63 -0.42
    131072 0.75 0.30 0.09 -0.72 -0.43

For n → ∞ it would be 0.75, 0, 0, -1.8 and 0. How slowly is the 0 on the line reached? The entropy
is log Z - s Σ pᵢ xᵢ. Of all Gaussian numbers those near s have the weight exp(s x) in the sum Z,
spread around s with variance 1. At s = s₀ the largest of n numbers is near s₀ too, so only the
lower half of them exists: Z ≈ ½ n exp(s₀²/2), and x is s₀ - |z| under the weights, for a Gaussian z
of variance 1. So

    log Z ≈ ln n + s₀²/2 - ln 2        entropy ≈ s₀ E|z| - ln 2

since s₀² = 2 ln n. With E|z| = √(2/π) the entropy / log n goes like 2/√(π ln n) = 1.13/√(ln n) as
n → ∞. Measured, it is 0.455 for 64 keys, 0.376 for 1024 and 0.298 for 131,072 (± 0.002), which is
.93, .99 and 1.02 over √(ln n). So the line gives the order of magnitude at which raw attention
collapses, and no point at which anything happens. Nor are eleven keys reached: 1 / Σ p² at 1.1 s₀
is 2.8, 3.4 and 4.1 keys.

Legend: n keys; x standard Gaussian numbers, s their factor, so that s x are the scores.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from attention.scaling import Array, entropies
from minigrad import Tensor, softmax


def freezing_line(n: int) -> float:
    """Return √(2 ln n), the deviation of n Gaussian scores beyond which a few keys have all.

    (The top of chapter 16's hill is at 1.4 to 2 times this deviation for 5 to 1,024 keys.)
    """
    return float(np.sqrt(2 * np.log(n)))


def limit(n: int, s: float) -> float:
    """Return entropy / log n of the random energy model as n → ∞, at the same s/√(2 ln n)."""
    return max(0.0, 1 - (s / freezing_line(n)) ** 2)


@dataclass(frozen=True)
class Collapse:
    """Softmax of n independent Gaussian scores of standard deviation s. Means over samples."""

    n: int
    s: float
    entropy: float  # Σ -p log p / log n: 1 is uniform, 0 one-hot
    entropy_error: float  # the standard error of that mean
    slope: float  # of entropy / log n over s, at s
    concentration: float  # mean of Σ p², the chance that two keys drawn by p are the same one


def collapse(n: int, s: float, *, samples: int = 500, rng: np.random.Generator) -> Collapse:
    """Measure `samples` rows of n Gaussian scores, about a million scores at a time."""
    entropy, slope, same = [], [], []
    for x in gaussian_rows(n, samples, rng):
        p = softmax(Tensor(s * x)).data
        mean = (p * x).sum(axis=-1, keepdims=True)
        entropy.append(entropies(p))
        slope.append(-s * (p * (x - mean) ** 2).sum(axis=-1) / np.log(n))
        same.append((p**2).sum(axis=-1))
    all_entropies = np.concatenate(entropy)
    return Collapse(
        n=n,
        s=float(s),
        entropy=float(all_entropies.mean()),
        entropy_error=float(all_entropies.std(ddof=1) / np.sqrt(samples)),
        slope=float(np.concatenate(slope).mean()),
        concentration=float(np.concatenate(same).mean()),
    )


def gaussian_rows(n: int, samples: int, rng: np.random.Generator) -> Iterator[Array]:
    """Yield `samples` rows of n standard Gaussian numbers, in pieces of about a million."""
    rows = max(1, 2**20 // n)
    for start in range(0, samples, rows):
        yield rng.standard_normal((min(rows, samples - start), n))


# ---------------------------------------------------- A first reading may stop here.
# What follows: the scale 1/√d_k, and sequences that become longer.


@dataclass(frozen=True)
class Lookup:
    """Scaled attention over n random keys, times (log n / log n₀)^b. Means over samples."""

    n: int
    b: float
    entropy: float  # entropy / log n over the random keys
    entropy_error: float  # the standard error of that mean
    found: float  # the weight of one more key, whose score is `margin`
    found_error: float


def lookup(
    n: int,
    b: float,
    *,
    start: int = 64,
    margin: float = 6.0,
    samples: int = 200,
    rng: np.random.Generator,
) -> Lookup:
    """Measure a look-up among n keys; the factor of the scores is 1 for n₀ = `start` keys.

    With 1/√d_k the scores of random keys have the standard deviation 1, however many keys there
    are. Every weight is exp(score) over a sum of n terms, so weights thin out as n grows, and a key
    that was found among 64 is lost among many. Su (2021) and Chiang & Cholak (2022, equation 2 and
    section 5.3) therefore multiply the scores by log n. Divided by log n₀, that factor is 1 at the
    length n₀. Here it is (log n / log n₀)^b: b = 0 is the fixed scale, and b = 1 is theirs. One key
    fits the query. Its score is `margin` standard deviations above the mean of the others.

    >>> from attention.laboratory import lookup
    >>> for b in (0, 0.5, 1):
    ...     rows = [
    ...         lookup(n, b, samples=samples, rng=np.random.default_rng(0))
    ...         for n, samples in ((64, 2000), (131_072, 40))
    ...     ]
    ...     print(b, *[f"entropy {row.entropy:.2f}, found {row.found:.3f};" for row in rows])
    0 entropy 0.89, found 0.793; entropy 0.96, found 0.002;
    0.5 entropy 0.89, found 0.793; entropy 0.88, found 0.043;
    1 entropy 0.89, found 0.793; entropy 0.67, found 0.771;

    The square root, b = ½, keeps entropy / log n of random keys, which depends on s²/(2 ln n). The
    logarithm, b = 1, keeps a key that stands out, for a while. With s = c ln n, where c is 1/ln n₀,
    the other keys together weigh n exp(s²/2), and the key that stands out by m weighs exp(s m):

        its weight ≈ 1 / (1 + exp(ln n + s²/2 - s m))

    This is near 1 as long as ln n + s²/2 is below s m, which after division by ln n is

        1 + ½ c² ln n < c m

    The left side grows with n: for m = 6 and n₀ = 64 the limit is n = 4.5 million. Up to some 2,000
    keys the weight even rises, and then it falls: .79, .85 (2,048 keys), .77 (131,072), .51 (four
    million). With a margin of 4 the inequality never holds: the weight is 0.35 among 64 keys and
    0.01 among 131,072. And no factor at all helps once √(2 ln n) > m, as a random key is then
    likely to stand out further.

    So for random keys log n scaling keeps neither the entropy nor entropy / log n. Which power is
    right depends on how the scores of the other keys lie. Hayase & Karakida 2026 (abstract) derive
    it from the number of keys near the best one: √(log n), log n and (log n)² are cases.
    """
    factor = float((np.log(n) / np.log(start)) ** b)
    entropy, found = [], []
    for x in gaussian_rows(n, samples, rng):
        entropy.append(entropies(softmax(Tensor(factor * x)).data))
        found.append(1 / (1 + np.exp(factor * (x - margin)).sum(axis=-1)))
    rows = [np.concatenate(each) for each in (entropy, found)]
    measured = [float(y) for x in rows for y in (x.mean(), x.std(ddof=1) / np.sqrt(samples))]
    return Lookup(n, float(b), *measured)
