"""Chapter 16 · Why √d_k: the measurements, and the figure made of them."""

import math
import re

import numpy as np
import pytest

import attention.scaling as chapter
from attention import attention, attention_weights
from attention.scaling import (
    entropies,
    heads,
    mean_square,
    median_gap,
    power,
    ratios,
    saturation,
    saturations,
    summary,
    ties,
    top_tenth,
    typical_query,
)
from minigrad import Tensor, gradients, softmax


@pytest.fixture(scope="module")
def swept():
    """Return (d_k, a) → each measurement's mean over five repeats."""
    found = summary(list(saturations([4, 64, 256, 512, 1024], repeats=5)))
    return {which: {name: m for name, (m, _) in by.items()} for which, by in found.items()}


# ------------------------------------------------------------------ value


def test_a_measurement_equals_its_definition_in_loops():
    found = saturation(7, 0.5, keys=5, queries=21, per_key_set=3, rng=np.random.default_rng(1))
    rng = np.random.default_rng(1)
    entropies, largest, norms, scores = [], [], [], []
    for _ in range(7):
        q, k, g = (rng.standard_normal(shape) for shape in ((3, 7), (5, 7), (3, 5)))
        for t in range(3):
            s = np.array([q[t] @ k[j] for j in range(5)]) / np.sqrt(7)
            p = np.exp(s) / np.exp(s).sum()
            jacobian = np.diag(p) - np.outer(p, p)
            norms.append(np.linalg.norm(k.T @ jacobian @ g[t] / np.sqrt(7)))
            entropies.append(-(p * np.log(p)).sum() / np.log(5))
            largest.append(p.max())
            scores.append(s)
    assert found.score_variance == pytest.approx(np.var(scores))
    assert found.entropy == pytest.approx(np.mean(entropies))
    assert found.largest_weight == pytest.approx(np.median(largest))
    assert found.gradient_mean == pytest.approx(np.mean(norms))
    assert found.gradient_median == pytest.approx(np.median(norms))
    assert found.dead_share == np.mean(np.array(norms) < 1e-3)
    squares = sorted(n**2 for n in norms)
    top = sum(squares[-2:]) + 0.1 * squares[-3]  # a tenth of 21 queries
    assert found.top_tenth_share == pytest.approx(top / sum(squares))
    assert (found.keys, found.queries) == (5, 21)


def test_the_exponent_is_a_number_or_a_function_of_d_k_and_a_row_says_which():
    def root(d_k):
        return 1 / np.sqrt(d_k)

    half, same = (saturation(64, a, rng=np.random.default_rng(0)) for a in (0.5, root))
    assert power(0.5)(7) == pytest.approx(root(7)) == power(root)(7)
    assert (half.a, same.a) == (0.5, "root") and half.entropy == same.entropy


@pytest.mark.parametrize("size", [1, 7, 40, 512])
def test_the_largest_tenth_of_equal_norms_has_a_tenth_and_never_nothing(size):
    for length in (7.0, 0.0):
        assert top_tenth(np.full(size, length)) == pytest.approx(0.1)
    assert top_tenth(np.eye(1, size).ravel()) == pytest.approx(min(size / 10, 1))
    norms = np.random.default_rng(size).exponential(size=size)
    assert 0.1 <= top_tenth(norms) <= 1
    assert top_tenth(np.repeat(norms, 7)) == pytest.approx(top_tenth(norms))  # of any length


def test_the_entropy_is_1_of_equal_weights_and_0_of_a_single_one():
    assert entropies(np.array([np.full(5, 0.2), np.eye(5)[0]])) == pytest.approx([1, 0])


def test_a_summary_groups_by_width_and_exponent():
    rows = list(saturations([3, 5], repeats=2))
    assert list(summary(rows)) == [(3, 0.0), (3, 0.5), (5, 0.0), (5, 0.5)]
    mean, spread = summary(rows)[5, 0.5]["entropy"]
    first, second = (row.entropy for row in rows if (row.d_k, row.a) == (5, 0.5))
    assert mean == pytest.approx((first + second) / 2)
    assert spread == pytest.approx(abs(first - second) / np.sqrt(2))  # n - 1 = 1


# ------------------------------------------------------------------ law


@pytest.mark.parametrize("d_k", [5, 97])
@pytest.mark.parametrize("a", [0, 0.5, 1])
def test_the_variance_of_scores_is_d_k_to_the_power_of_1_minus_2a(d_k, a):
    rng = np.random.default_rng(0)
    found = [saturation(d_k, a, rng=rng).score_variance for _ in range(40)]
    standard_error = np.std(found, ddof=1) / np.sqrt(40)
    assert abs(np.mean(found) - d_k ** (1 - 2 * a)) < 3 * standard_error
    assert standard_error < 0.015 * d_k ** (1 - 2 * a)  # so a scale that is 5 % off would be seen


def test_without_the_scale_the_mean_gradient_grows_while_the_median_dies(swept):
    narrow, wide, scaled = swept[4, 0], swept[1024, 0], swept[1024, 0.5]
    assert wide["gradient_mean"] > 3 * narrow["gradient_mean"]
    assert wide["gradient_median"] < narrow["gradient_median"] / 20
    assert wide["dead_share"] > 0.3 and scaled["dead_share"] == swept[4, 0.5]["dead_share"] == 0
    assert scaled["gradient_median"] == pytest.approx(swept[4, 0.5]["gradient_median"], rel=0.2)
    assert wide["top_tenth_share"] > 0.85 > 0.4 > scaled["top_tenth_share"]


def test_the_unscaled_median_rises_before_it_dies_and_the_mean_levels_off(swept):
    mean = {d_k: swept[d_k, 0]["gradient_mean"] for d_k, _ in swept}
    median, scaled = ({d_k: swept[d_k, a]["gradient_median"] for d_k, _ in swept} for a in (0, 0.5))
    assert 4 < median[64] / scaled[64] < 6
    assert median[256] > scaled[256]
    assert median[512] < scaled[512]
    assert 20 < scaled[1024] / median[1024] < 120
    assert mean[64] > 3 * mean[4]
    assert mean[1024] < 1.2 * mean[256]


@pytest.fixture(scope="module")
def cells():
    """Return (d_k, keys) → the ratios of the twelve cells of chapter 16's table."""
    found = ratios(saturations([64, 128, 512, 1024], keys=[5, 64, 1024], repeats=3, seed=1))
    return {(cell.d_k, cell.keys): cell for cell in found}


def test_the_twelve_medians_of_the_chapter_are_measured(cells):
    """The table's numbers are of 20 repeats at seed 0."""
    rows = re.findall(r"^ +d_k = (\d+) +(\S+) +(\S+) +(\S+)$", chapter.__doc__, re.MULTILINE)
    told = {
        (int(d), n): float(x) for d, *xs in rows for n, x in zip((5, 64, 1024), xs, strict=True)
    }
    assert told.keys() == cells.keys() and len(told) == 12
    for where, cell in cells.items():
        assert abs(np.log10(cell.median / told[where])) < 0.05 + 4 * cell.error, where


def test_the_mean_is_larger_without_the_scale_in_all_cells_and_the_tenth_has_more(cells):
    means = [cell.mean for cell in cells.values()]
    assert min(means) == pytest.approx(2.4, rel=0.1) and max(means) == pytest.approx(46, rel=0.2)
    without, with_it = (
        [getattr(cell, f"top_tenth_{which}") for cell in cells.values()]
        for which in ("without", "with")
    )
    assert min(without) == pytest.approx(0.5, abs=0.05) and max(without) > 0.99
    assert min(with_it) == pytest.approx(0.17, abs=0.02)
    assert max(with_it) == pytest.approx(0.36, abs=0.03)


def test_a_ratio_is_paired_by_repeat_and_has_a_standard_error():
    rows = list(saturations([7], keys=[5], repeats=2))
    assert rows[0].score_variance == pytest.approx(7 * rows[1].score_variance)  # the same draws
    (cell,) = ratios(rows)
    logs = [np.log10(rows[i].gradient_median / rows[i + 1].gradient_median) for i in (0, 2)]
    assert cell.median == pytest.approx(10 ** np.mean(logs))
    assert cell.error == pytest.approx(abs(logs[0] - logs[1]) / 2)
    assert cell.mean == pytest.approx(
        np.sqrt(np.prod([rows[i].gradient_mean / rows[i + 1].gradient_mean for i in (0, 2)]))
    )
    assert cell.top_tenth_without == pytest.approx(
        (rows[0].top_tenth_share + rows[2].top_tenth_share) / 2
    )
    assert np.isnan(ratios(rows[:2])[0].error)


@pytest.mark.parametrize("n", [5, 64])
def test_all_widths_and_scales_are_on_one_hill(n):
    """The same spread s of the scores, made by another width: the same median."""
    for s, apart in ((0.5, 1.1), (1.0, 1.1), (4.0, 1.2), (8.0, 1.35)):
        medians = []
        for d_k in (64, 256, 1024):
            a = 0.5 - np.log(s) / np.log(d_k)
            rng = np.random.default_rng([n, d_k])
            medians.append(saturation(d_k, a, keys=n, queries=2048, rng=rng).gradient_median)
        assert max(medians) < apart * min(medians), (s, medians)


@pytest.mark.parametrize(("n", "top"), [(5, 2.5), (64, 5.5), (1024, 7.5)])
def test_the_top_of_the_hill_is_where_the_chapter_says(n, top):
    def median(s):
        scale = lambda d_k: s / np.sqrt(d_k)
        rng = np.random.default_rng(n)
        return saturation(256, scale, keys=n, queries=2048, rng=rng).gradient_median

    at_top = median(top)
    assert median(1.0) < at_top and median(top / 1.7) < at_top > median(1.7 * top)
    assert 1.35 < top / np.sqrt(2 * np.log(n)) < 2.05


def test_undecided_queries_become_rarer_as_their_gradient_grows():
    share, gradient = {}, {}
    for d_k in (64, 1024):
        rng = np.random.default_rng(0)
        q = Tensor(rng.standard_normal((32, 64, d_k)), requires_grad=True)
        weights = attention_weights(q, Tensor(rng.standard_normal((32, 64, d_k))), scale=1.0)
        undecided = weights.data.max(axis=-1) < 0.9
        (g,) = gradients(weights, [q], rng.standard_normal(weights.shape))
        share[d_k] = undecided.mean()
        gradient[d_k] = np.linalg.norm(g, axis=-1)[undecided].mean()
    assert gradient[1024] / gradient[64] == pytest.approx(4, rel=0.15)  # √(1024 / 64)
    assert share[64] / share[1024] == pytest.approx(4, rel=0.2)


def test_the_typical_query_is_the_median_one():
    q, k, v, g = typical_query(64, keys=5, queries=101, rng=np.random.default_rng(0))
    rng = np.random.default_rng(0)
    queries = Tensor(rng.standard_normal((101, 64)), requires_grad=True)
    assert np.array_equal(k, rng.standard_normal((5, 64)))
    assert np.array_equal(v, rng.standard_normal((5, 3)))
    output = attention(queries, Tensor(k), Tensor(v), scale=1.0)
    (all_gradients,) = gradients(output, [queries], rng.standard_normal((101, 3)))
    norms = np.linalg.norm(all_gradients, axis=-1)
    x = Tensor(q, requires_grad=True)
    (gradient,) = gradients(attention(x, Tensor(k), Tensor(v), scale=1.0), [x], g)
    assert np.linalg.norm(gradient) == pytest.approx(np.median(norms))


# ------------------------------------------------------------------ ties


@pytest.mark.parametrize("n", [2, 3, 5, 64, 1024])
@pytest.mark.parametrize("m", [0.0, 1.5, 4.0])
def test_the_density_of_ties_is_that_of_another_quadrature(n, m):
    """Gauss and Legendre's rule; the densities by `math.erf`."""
    nodes, weights = np.polynomial.legendre.leggauss(400)
    x = 2.0 + 10 * nodes  # -8 to 12
    phi = lambda x: np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)
    below = lambda x: np.array([(1 + math.erf(t / math.sqrt(2))) / 2 for t in x])
    fits = 2 * (n - 1) * phi(x - m) * phi(x) * below(x) ** (n - 2)
    others = (n - 1) * (n - 2) * phi(x) ** 2 * below(x) ** max(n - 3, 0) * below(x - m)
    assert ties(n, m) == pytest.approx(10 * (weights * (fits + others)).sum(), rel=1e-6)
    if m == 0:  # (then one formula is enough)
        whole = n * (n - 1) * phi(x) ** 2 * below(x) ** (n - 2)
        assert ties(n) == pytest.approx(10 * (weights * whole).sum(), rel=1e-6)
    if n == 2 and m == 0:
        assert ties(2) == pytest.approx(1 / math.sqrt(math.pi), rel=1e-9)


@pytest.mark.parametrize("n", [2, 7, 300])
def test_the_median_gap_is_that_of_many_draws(n):
    best = np.sort(np.random.default_rng(n).standard_normal((40_000, n)))[:, -2:]
    gaps = best[:, 1] - best[:, 0]
    at = median_gap(n)
    assert abs((gaps < at).mean() - 0.5) < 3 * 0.5 / math.sqrt(40_000)
    assert (gaps < 0.02).mean() == pytest.approx(0.02 * ties(n), rel=0.25)


@pytest.mark.parametrize(("d_k", "n", "scale"), [(3, 2, 1.0), (16, 7, 0.25), (37, 5, 1.0)])
def test_the_mean_square_given_the_scores_is_exact(d_k, n, scale):
    """Many keys with the same components along q, and random ones across it."""
    rng = np.random.default_rng(d_k)
    direction = rng.standard_normal(d_k)
    length = float(np.linalg.norm(direction))
    x = rng.standard_normal(n)
    k = rng.standard_normal((20_000, n, d_k))
    k += (x - k @ direction / length)[..., None] * direction / length
    q = Tensor(np.tile(direction, (20_000, 1, 1)), requires_grad=True)
    weights = attention_weights(q, Tensor(k), scale=scale)
    (g,) = gradients(weights, [q], rng.standard_normal(weights.shape))
    squares = (g**2).sum(axis=(-2, -1))
    derived = mean_square(scale * length * x, d_k, scale=scale, length=length)
    assert abs(squares.mean() - derived) < 4 * squares.std() / math.sqrt(20_000)
    assert squares.std() / math.sqrt(20_000) < 0.03 * derived  # (so 12 % would be seen)


@pytest.mark.parametrize("d_k", [8, 48])
def test_the_law_of_the_length_is_that_of_the_engine(d_k):
    """‖∂L/∂q‖² = scale² ((x·u)² + ‖u‖² χ²), in distribution: quantiles of both."""
    norms = heads(d_k, 0.0, keys=9, queries=16_384, rng=np.random.default_rng(0))[2]
    rng = np.random.default_rng(1)
    x, g = rng.standard_normal((2, 16_384, 9))
    z = np.sqrt(rng.chisquare(d_k, (16_384, 1))) * x
    p = softmax(Tensor(z)).data
    u = p * (g - (p * g).sum(axis=-1, keepdims=True))
    across = (u**2).sum(axis=-1) * rng.chisquare(d_k - 1, 16_384)
    drawn = np.sqrt((x * u).sum(axis=-1) ** 2 + across)
    for part in (0.3, 0.5, 0.7, 0.9, 0.99):
        share = (norms < np.quantile(drawn, part)).mean()
        assert share == pytest.approx(part, abs=0.02), part


def test_what_the_chapter_prints_of_its_laws_is_what_they_say():
    told = " ".join(chapter.__doc__.split())
    assert [f"{ties(n):.2f}" for n in (5, 64, 1024)] == ["1.16", "2.34", "3.25"]
    assert "It is 1.16, 2.34 and 3.25 for 5, 64 and 1,024 keys" in told
    assert f"median ≈ {math.sqrt(2) * math.exp(-np.euler_gamma / 2):.2f} s exp(-s δ)" in told
    assert "10, 25 and 35 % under its limit" in told and "3, 6 and 9 % under it" in told
    for d_k, under in ((64, (10, 25)), (1024, (3, 6))):  # (1,024 keys would take long)
        for n, percent in zip((5, 64), under, strict=True):
            rng = np.random.default_rng([n, d_k])
            mean = heads(d_k, 0.0, keys=n, queries=8192, per_key_set=64, rng=rng)[2].mean()
            limit = math.sqrt(2 / math.pi) * ties(n)
            assert 100 * (1 - mean / limit) == pytest.approx(percent, abs=9)


def test_what_is_derived_from_ties_is_what_the_engine_measures():
    """At cells that chapter 16 does not print: the mean, its square, and a key that fits."""
    for d_k, n in ((2048, 16), (1024, 8)):
        norms = heads(d_k, 0.0, keys=n, queries=8192, rng=np.random.default_rng(n))[2]
        rho, s = ties(n), math.sqrt(d_k)
        assert norms.mean() == pytest.approx(math.sqrt(2 / math.pi) * rho, rel=0.12)
        assert (norms**2).mean() == pytest.approx(rho * (s - rho) / 3, rel=0.2)
        fit = 3.0 / s
        fits = heads(d_k, 0.0, keys=n, queries=8192, fit=fit, rng=np.random.default_rng(n))[2]
        assert fits.mean() == pytest.approx(math.sqrt(2 / math.pi) * ties(n, 3.0), rel=0.35)


def test_the_mean_grows_without_the_scale_for_random_queries_and_vanishes_if_a_key_fits():
    def ratio(fit):
        raw, scaled = (
            heads(512, a, queries=2048, fit=fit, rng=np.random.default_rng(7))[2].mean()
            for a in (0.0, 0.5)
        )
        return raw / scaled

    m = math.sqrt(512)
    found = [ratio(fit) for fit in (0.0, 3 / m, 6 / m)]
    assert found[0] > 5 and 1.5 < found[1] < 5 and found[2] < 0.2


def test_a_query_that_fits_a_key_has_that_correlation_and_the_same_length():
    scores = heads(400, 1.0, keys=8, queries=3200, fit=0.3, rng=np.random.default_rng(0))[0]
    fits = scores.reshape(-1, 32, 8)[:, np.arange(32), np.arange(32) % 8]
    assert fits.mean() == pytest.approx(0.3, abs=0.01)
    others = np.ones((32, 8), bool)
    others[np.arange(32), np.arange(32) % 8] = False
    raw = heads(400, 0.5, keys=8, queries=3200, fit=0.3, rng=np.random.default_rng(0))[0]
    assert raw.reshape(-1, 32, 8)[:, others].std() == pytest.approx(1, abs=0.05)
