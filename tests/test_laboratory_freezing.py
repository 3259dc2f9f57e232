"""Chapter 16.3 · The random energy model's freezing line over attention, and longer sequences."""

import numpy as np
import pytest

from attention.laboratory import collapse, freezing_line, lookup
from attention.laboratory.freezing import limit
from attention.scaling import saturation
from minigrad import Tensor, gradients, log, softmax, sum


def together(*errors):
    """Return the standard error of a difference of independent means."""
    return np.sqrt(np.sum(np.square(errors)))


# ------------------------------------------------------------------ value


def test_a_collapse_equals_its_definition_in_loops():
    found = collapse(5, 1.7, samples=11, rng=np.random.default_rng(1))
    x = np.random.default_rng(1).standard_normal((11, 5))
    entropies, slopes, same = [], [], []
    for row in x:
        p = np.exp(1.7 * row) / np.exp(1.7 * row).sum()
        entropies.append(-(p * np.log(p)).sum() / np.log(5))
        variance = (p * row**2).sum() - (p * row).sum() ** 2
        slopes.append(-1.7 * variance / np.log(5))
        same.append((p**2).sum())
    assert found.entropy == pytest.approx(np.mean(entropies))
    assert found.entropy_error == pytest.approx(np.std(entropies, ddof=1) / np.sqrt(11))
    assert found.slope == pytest.approx(np.mean(slopes))
    assert found.concentration == pytest.approx(np.mean(same))


def test_rows_in_pieces_are_the_same_rows():
    rng = np.random.default_rng(2)
    x = np.concatenate([rng.standard_normal((8, 2**17)), rng.standard_normal((3, 2**17))])
    entropies = []
    for row in x:
        e = np.exp(row - row.max())
        p = e / e.sum()
        entropies.append(-(p * np.log(p)).sum() / np.log(2**17))
    found = collapse(2**17, 1.0, samples=11, rng=np.random.default_rng(2))
    assert found.entropy == pytest.approx(np.mean(entropies))


def test_a_lookup_equals_softmax_over_the_random_keys_and_one_more():
    found = lookup(5, 0.5, start=3, margin=2.0, samples=11, rng=np.random.default_rng(1))
    factor = np.sqrt(np.log(5) / np.log(3))
    x = np.random.default_rng(1).standard_normal((11, 5))
    weights = softmax(Tensor(factor * np.c_[x, np.full(11, 2.0)])).data
    assert found.found == pytest.approx(weights[:, -1].mean())
    alone = softmax(Tensor(factor * x)).data
    assert found.entropy == pytest.approx(-(alone * np.log(alone)).sum(axis=1).mean() / np.log(5))


# ------------------------------------------------------------------ derivative


def test_the_slope_is_the_derivative_of_the_entropy_over_the_spread_of_the_scores():
    x = np.random.default_rng(1).standard_normal((11, 5))
    s = Tensor(1.7, requires_grad=True)
    p = softmax(s * Tensor(x))
    entropy = -sum(p * log(p)) / (11 * np.log(5))
    (slope,) = gradients(entropy, [s])
    assert collapse(5, 1.7, samples=11, rng=np.random.default_rng(1)).slope == pytest.approx(slope)


# ------------------------------------------------------------------ law


def test_attention_without_the_scale_collapses_as_the_random_energy_model_does():
    for d_k in (64, 1024):
        found = [saturation(d_k, 0, rng=np.random.default_rng([d_k, i])).entropy for i in range(12)]
        model = collapse(64, np.sqrt(d_k), samples=4000, rng=np.random.default_rng(0))
        error = together(np.std(found, ddof=1) / np.sqrt(12), model.entropy_error)
        assert abs(np.mean(found) - model.entropy) < 3 * error < 0.01, d_k


def test_far_from_the_line_the_entropy_of_many_keys_is_that_of_the_limit():
    for part in (0.25, 0.5):
        found = collapse(
            2**17, part * freezing_line(2**17), samples=20, rng=np.random.default_rng(0)
        )
        assert abs(found.entropy - limit(2**17, found.s)) < 3 * found.entropy_error + 0.002
    assert limit(64, freezing_line(64)) == limit(64, 100.0) == 0
    assert limit(64, freezing_line(64) / 2) == pytest.approx(0.75)


TOLD = ((64, 0.455, 4000), (1024, 0.376, 1500), (131_072, 0.298, 80))


@pytest.mark.parametrize(("n", "entropy", "samples"), TOLD)
def test_on_the_line_the_entropy_is_far_from_zero(n, entropy, samples):
    found = collapse(n, freezing_line(n), samples=samples, rng=np.random.default_rng(3))
    assert abs(found.entropy - entropy) < 3 * together(found.entropy_error, 0.002)
    assert found.entropy > 20 * found.entropy_error


@pytest.mark.slow
def test_on_the_line_of_131_072_keys_the_entropy_is_as_told():
    n = 131_072
    found = collapse(n, freezing_line(n), samples=1500, rng=np.random.default_rng(5))
    assert abs(found.entropy - 0.298) < 3 * together(found.entropy_error, 0.002)
    assert found.entropy_error < 0.003


def test_the_slope_crosses_the_line_without_a_kink_and_changes_more_the_more_keys_there_are():
    """The same draws at 0.9 and 1.1 of the line: in the limit the slope · s₀ would jump by 1.8."""
    jumps = []
    for n, samples in ((64, 2000), (1024, 500), (131_072, 80)):
        s = freezing_line(n)
        before, after = (
            s * collapse(n, part * s, samples=samples, rng=np.random.default_rng(4)).slope
            for part in (0.9, 1.1)
        )
        assert -0.9 < before < after < -0.35
        jumps.append(after - before)
    assert max(jumps) < 1.8 / 4 and jumps[2] > 1.5 * jumps[0]


@pytest.fixture(scope="module")
def lookups():
    """Return (n, b) → a measurement; the powers of one n see the same draws."""
    return {
        (n, b): lookup(n, b, samples=samples, rng=np.random.default_rng(n))
        for n, samples in ((64, 2000), (4096, 200), (131_072, 40))
        for b in (0, 0.5, 1)
    }


def test_at_a_fixed_scale_weights_thin_out(lookups):
    entropies = [lookups[n, 0].entropy for n in (64, 4096, 131_072)]
    assert entropies[0] < 0.89 and entropies[2] > 0.95 and entropies == sorted(entropies)
    assert lookups[64, 0].found > 0.78 and lookups[131_072, 0].found < 0.003


def test_the_root_of_log_n_keeps_the_entropy_of_random_keys(lookups):
    for n in (4096, 131_072):
        assert lookups[n, 0.5].entropy == pytest.approx(lookups[64, 0.5].entropy, rel=0.01)
        assert lookups[n, 0.5].found < 0.4 * lookups[64, 0.5].found


def test_log_n_loses_the_entropy_of_random_keys(lookups):
    first, last = lookups[64, 1], lookups[131_072, 1]
    assert last.entropy < 0.7 < 0.88 < first.entropy
    assert last.entropy * np.log(131_072) > 2 * first.entropy * np.log(64)


@pytest.mark.parametrize(
    ("n", "samples", "told"), [(2048, 200, 0.85), (131_072, 40, 0.77), (4_000_000, 6, 0.51)]
)
def test_log_n_keeps_a_key_that_stands_out_for_a_while(n, samples, told):
    found = lookup(n, 1, samples=samples, rng=np.random.default_rng(n))
    c, log_n = 1 / np.log(64), np.log(n)
    derived = 1 / (1 + np.exp(log_n + (c * log_n) ** 2 / 2 - 6 * c * log_n))
    assert abs(found.found - derived) < 0.003 + 3 * found.found_error
    assert abs(found.found - told) < 0.005 + 3 * found.found_error < 0.07
    assert (1 + c**2 * log_n / 2 < 6 * c) == (n < 4_500_000) == (derived > 0.5)


def test_beyond_the_line_a_few_keys_share_the_weight():
    for n, samples, keys in ((64, 2000, 2.8), (1024, 500, 3.4), (131_072, 40, 4.1)):
        s = 1.1 * freezing_line(n)
        found = collapse(n, s, samples=samples, rng=np.random.default_rng(0))
        assert 1 / found.concentration == pytest.approx(keys, abs=0.06)


def test_log_n_loses_a_key_of_a_small_margin():
    few, many = (
        lookup(n, 1, margin=4.0, samples=samples, rng=np.random.default_rng(0))
        for n, samples in ((64, 2000), (131_072, 40))
    )
    assert abs(few.found - 0.35) < 0.005 + 3 * few.found_error
    assert abs(many.found - 0.01) < 0.005 + 3 * many.found_error
