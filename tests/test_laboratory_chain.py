"""Chapter 16.2 · The chain of factors behind ∂L/∂q, and the spectrum of softmax's Jacobian."""

from itertools import pairwise

import numpy as np
import pytest

from attention import attention
from attention.laboratory import at_each_tensor, factors, spectrum
from attention.laboratory.chain import jacobians
from attention.scaling import typical_query
from minigrad import Tensor, gradients


def repeated(measure, *settings, repeats=6, **options):
    """Return each number's mean and standard error, over a generator for each d_k and repeat."""
    d_k = settings[0]
    rows = [
        vars(measure(*settings, rng=np.random.default_rng([d_k, i]), **options))
        for i in range(repeats)
    ]
    names = [name for name in rows[0] if name not in ("d_k", "a")]
    found = {name: np.array([row[name] for row in rows]) for name in names}
    return {n: (x.mean(), x.std(ddof=1) / np.sqrt(repeats)) for n, x in found.items()}


@pytest.fixture(scope="module")
def chains():
    """Return (d_k, a) → each number's mean and standard error."""
    raw = {(d_k, 0): repeated(factors, d_k, 0, repeats=8) for d_k in (64, 256, 1024)}
    others = {
        (d_k, a): repeated(factors, d_k, a, queries=256) for d_k in (64, 1024) for a in (0.5, 1)
    }
    return raw | others


# ------------------------------------------------------------------ value


def test_the_factors_equal_their_definition_in_loops():
    sizes = {"keys": 5, "d_v": 3, "queries": 14, "per_key_set": 2}
    found = factors(11, 0.3, **sizes, rng=np.random.default_rng(1))
    rng = np.random.default_rng(1)
    q, k, v = (rng.standard_normal(shape) for shape in ((7, 2, 11), (7, 5, 11), (7, 5, 3)))
    g, scale = rng.standard_normal((7, 2, 3)), 11**-0.3
    rows = []
    for b in range(7):
        for t in range(2):
            s = np.array([scale * k[b, j] @ q[b, t] for j in range(5)])
            p = np.exp(s) / np.exp(s).sum()
            jacobian = np.diag(p) - np.outer(p, p)
            chain = [g[b, t], v[b] @ g[b, t]]
            chain += [jacobian @ chain[-1]]
            chain += [scale * chain[-1]]
            chain += [k[b].T @ chain[-1]]
            lengths = [np.linalg.norm(x) for x in chain]
            gains = [after / before for before, after in pairwise(lengths)]
            norms = [np.linalg.svd(m)[1].max() for m in (v[b], jacobian, [[scale]], k[b].T)]
            assert all(gain <= norm * (1 + 1e-12) for gain, norm in zip(gains, norms, strict=True))
            rows.append([*gains, np.prod(gains), *norms, np.prod(norms) / np.prod(gains)])
    median, mean = np.median(rows, axis=0), np.mean(rows, axis=0)
    assert (found.d_k, found.a) == (11, 0.3)
    got = (found.gain_v, found.gain_j, found.gain_scale, found.gain_k, found.gradient)
    assert got == pytest.approx(tuple(median[:5]))
    assert found.gain_j_mean == pytest.approx(mean[1])
    assert found.looseness == pytest.approx(median[9])


def test_at_each_tensor_tells_the_gradients_that_the_engine_computes():
    q, k, v, g = typical_query(7, keys=5, queries=11, rng=np.random.default_rng(0))
    for a, scale in ((0, 1.0), (0.5, None)):
        found = at_each_tensor(q, k, v, g, a)
        assert list(found) == ["output", "weights", "scores", "products", "q"]
        leaf = Tensor(q, requires_grad=True)
        output = attention(leaf, Tensor(k), Tensor(v), scale=scale)
        assert found["q"] == pytest.approx(np.linalg.norm(gradients(output, [leaf], g)[0]))
        assert found["output"] == pytest.approx(np.linalg.norm(g))
        assert found["weights"] == pytest.approx(np.linalg.norm(v @ g[0]))
        assert found["products"] == pytest.approx(found["scores"] * (scale or 7**-0.5))


def test_the_spectrum_equals_its_definition_in_loops():
    sizes = {"keys": 5, "queries": 14, "per_key_set": 2}
    found = spectrum(11, 0.3, **sizes, rng=np.random.default_rng(1))
    rng = np.random.default_rng(1)
    q, k = rng.standard_normal((7, 2, 11)), rng.standard_normal((7, 5, 11))
    rows = []
    for b in range(7):
        for t in range(2):
            p = np.exp(11**-0.3 * k[b] @ q[b, t])
            p = p / p.sum()
            values = np.linalg.eigvals(np.diag(p) - np.outer(p, p)).real
            directions = values.sum() ** 2 / (values**2).sum()
            above = sum(value > 1e-3 for value in values)
            rows.append([values.max(), directions, above])
    median, mean = np.median(rows, axis=0), np.mean(rows, axis=0)
    assert (found.largest, found.largest_mean) == pytest.approx((median[0], mean[0]))
    assert (found.directions, found.above) == pytest.approx((median[1], median[2]))


# ------------------------------------------------------------------ law


@pytest.mark.parametrize("a", [0, 0.5, 1, lambda d_k: 3.0])
def test_the_gain_of_the_scale_is_the_scale(a):
    found = factors(16, a, queries=64, rng=np.random.default_rng(0))
    assert found.gain_scale == pytest.approx(a(16) if callable(a) else 16.0**-a, rel=1e-12)


def test_k_gains_the_root_of_d_k_and_v_that_of_n_at_every_scale(chains):
    """‖Kᵀ u‖²/‖u‖² has the law χ² of d_k degrees if u is independent of K: median d_k - ⅔."""
    for (d_k, a), found in chains.items():
        mean, error = found["gain_k"]
        assert abs(mean - np.sqrt(d_k - 2 / 3)) < max(3 * error, 0.01 * mean), (d_k, a)
        mean, error = found["gain_v"]
        assert abs(mean - np.sqrt(64 - 2 / 3)) < 3 * error < 0.02 * mean, (d_k, a)


def test_j_is_the_same_at_every_width_if_a_is_one_half(chains):
    for d_k in (64, 1024):
        mean, error = chains[d_k, 0.5]["gain_j"]
        assert abs(mean - 0.021) < 0.0005 + 3 * error < 0.0015  # (0.0005: the text has two digits)


def test_without_the_scale_j_dies_in_the_median_and_like_the_root_of_d_k_in_the_mean(chains):
    medians = [chains[d_k, 0]["gain_j"][0] for d_k in (64, 256, 1024)]
    assert medians[0] > 5 * medians[1] > 250 * medians[2]
    for d_k, told in ((64, 0.022), (256, 0.013), (1024, 0.007)):
        mean, error = chains[d_k, 0]["gain_j_mean"]
        assert abs(mean - told) < 0.0005 + 3 * error < 0.0025
    ratio = chains[64, 0]["gain_j_mean"][0] / chains[1024, 0]["gain_j_mean"][0]
    assert 2.7 < ratio < 4  # √(1024 / 64) = 4 is the limit


def test_with_one_over_d_k_the_weights_are_uniform_and_the_gradient_falls_like_the_root(chains):
    assert chains[1024, 1]["gain_j"][0] == pytest.approx(1 / 64, rel=0.01)
    ratio = chains[64, 1]["gradient"][0] / chains[1024, 1]["gradient"][0]
    assert ratio == pytest.approx(np.sqrt(1024 / 64), rel=0.03)


def test_one_half_is_the_exponent_that_keeps_the_gradient(chains):
    fall = {a: chains[64, a]["gradient"][0] / chains[1024, a]["gradient"][0] for a in (0, 0.5, 1)}
    assert fall[0] > 50 and fall[0.5] == pytest.approx(1, abs=0.05) and fall[1] > 3.8


def test_the_product_of_the_spectral_norms_bounds_the_gradient_loosely(chains):
    assert 8 < chains[1024, 0.5]["looseness"][0] < 9.5
    assert 50 < repeated(factors, 4, 0)["looseness"][0] < 58
    assert min(found["looseness"][0] for found in chains.values()) > 1


def test_the_product_of_the_median_gains_comes_near_the_median_gradient(chains):
    for found in chains.values():
        product = np.prod([found[f"gain_{name}"][0] for name in ("v", "j", "scale", "k")])
        assert product == pytest.approx(found["gradient"][0], rel=0.05)


def test_in_a_single_measurement_the_product_of_median_gains_is_a_twentieth_off():
    rows = [factors(1024, 0, rng=np.random.default_rng(100 + i)) for i in range(8)]
    products = [r.gain_v * r.gain_j * r.gain_scale * r.gain_k / r.gradient for r in rows]
    off = np.std(products, ddof=1)  # known to a quarter of itself
    assert 0.02 < off < 0.1 and abs(np.mean(products) - 1) < 0.02 + 4 * off / np.sqrt(8)


def test_the_eigenvalues_of_j_lie_where_the_weights_say():
    rng = np.random.default_rng(0)
    for concentration in (0.03, 0.3, 3.0):
        p = rng.dirichlet(np.full(7, concentration), 200)
        values = np.linalg.eigvalsh(jacobians(p))
        ordered = np.sort(p)
        assert np.all(values > -1e-15) and np.all(values[:, 0] < 1e-15)
        assert np.all(values[:, -1] <= 2 * (p * (1 - p)).max(axis=1) + 1e-15)
        assert np.all(2 * (p * (1 - p)).max(axis=1) <= 0.5)
        assert np.all(values[:, -1] >= ordered[:, -2] - 1e-15)
        assert np.allclose(values.sum(axis=1), 1 - (p**2).sum(axis=1), atol=1e-14)
        assert np.abs(jacobians(p) @ np.ones(7)).max() < 1e-15


def test_on_a_random_direction_the_gain_is_the_root_mean_square_of_the_eigenvalues():
    rng = np.random.default_rng(0)
    jacobian = jacobians(rng.dirichlet(np.ones(7)))
    x = rng.standard_normal((40_000, 7))
    squares = ((x @ jacobian) ** 2).sum(axis=1) / (x**2).sum(axis=1)
    wanted = (np.linalg.eigvalsh(jacobian) ** 2).sum() / 7
    assert abs(squares.mean() - wanted) < 3 * squares.std() / np.sqrt(40_000) < 0.03 * wanted


def test_without_the_scale_fewer_and_fewer_directions_pass_and_with_it_nearly_all():
    raw = [repeated(spectrum, d_k, 0, repeats=3) for d_k in (4, 64, 1024)]
    scaled = [repeated(spectrum, d_k, 0.5, repeats=3) for d_k in (4, 64, 1024)]
    assert raw[0]["above"][0] > 40 > 6 > raw[1]["above"][0] > 2 and raw[2]["above"][0] == 0
    assert all(found["above"][0] > 61 for found in scaled)
    assert raw[0]["directions"][0] > 10 and raw[2]["directions"][0] < 1.1
    assert all(28 < found["directions"][0] < 35 for found in scaled)
    assert raw[2]["largest"][0] < 1e-3 and raw[2]["largest_mean"][0] > 0.05  # few, but alive
    assert all(0.07 < found["largest"][0] < 0.1 for found in scaled)
