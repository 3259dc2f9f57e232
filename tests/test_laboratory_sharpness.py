"""Chapter 16.4 · Sharpness: Lanczos's method, and the slopes of the sharpness against d_k."""

import functools
import json
import re
from pathlib import Path

import numpy as np
import pytest

from attention import attention, attention_weights
from attention.laboratory import sharpness
from attention.laboratory.sharpness import (
    INITIAL,
    head_sharpness,
    initial_weights,
    largest_eigenvalue,
    largest_of_hessian,
    power,
    slope,
)
from minigrad import Tensor, cross_entropy, hessian, log_softmax

D_KS, REPEATS = (8, 64, 512), 5


@functools.cache
def measured(a, init):
    """Return rows of one repeat each, with one measurement for each d_k."""
    return [
        [head_sharpness(d_k, a, init=init, rng=np.random.default_rng([seed, d_k])) for d_k in D_KS]
        for seed in range(REPEATS)
    ]


def slope_of(a, init="unit"):
    """Return the slope of log sharpness against log d_k, and its standard error."""
    return slope(D_KS, [[one.sharpness for one in row] for row in measured(a, init)])


def one_head(d_k, *, rng, sequences=2, queries=3, keys=5, d_model=7, classes=3):
    """Draw x, y, v, the right classes, W_q and W_k as `head_sharpness` draws them."""
    x, y, v = (
        rng.standard_normal((sequences, *size))
        for size in ((queries, d_model), (keys, d_model), (keys, classes))
    )
    right = rng.integers(0, classes, (sequences, queries))
    return x, y, v, right, *initial_weights(d_model, d_k, "unit", rng=rng)


# ------------------------------------------------------------------ value


@pytest.mark.parametrize("a", [0, 0.5, 1])
def test_lanczos_finds_the_ends_of_the_dense_hessians_spectrum(a):
    sizes = {"sequences": 2, "queries": 3, "keys": 5, "d_model": 7, "classes": 3}
    found = head_sharpness(11, a, **sizes, rng=np.random.default_rng(2))
    x, y, v, right, w_q, w_k = one_head(11, rng=np.random.default_rng(2))

    def loss(w):  # both matrices as one vector
        w_q, w_k = w.reshape(2, 7, 11)
        scores = float(11**-a) * (Tensor(x) @ w_q) @ (Tensor(y) @ w_k).mT
        p = np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)
        return cross_entropy(p @ Tensor(v), right)

    H = hessian(loss)(np.concatenate([w_q.ravel(), w_k.ravel()]))
    exact, vectors = np.linalg.eigh(H)
    assert found.sharpness == pytest.approx(exact[-1], rel=1e-5)
    assert exact[0] <= found.lowest < 0
    assert found.residual < 2e-3 * found.sharpness
    # What the residual promises: an exact eigenvalue is as near as that.
    assert np.abs(exact - found.sharpness).min() <= found.residual
    largest = largest_eigenvalue(lambda u: H @ u, len(H), rng=np.random.default_rng(0))
    assert abs(largest.vector @ vectors[:, -1]) == pytest.approx(1, abs=1e-4)
    assert np.linalg.norm(largest.vector) == pytest.approx(1)


def test_the_largest_eigenvalue_is_found_where_power_iteration_finds_a_negative_one():
    rng = np.random.default_rng(0)
    basis, _ = np.linalg.qr(rng.standard_normal((97, 97)))
    spectrum = np.linspace(-9, 5, 97)
    H = (basis * spectrum) @ basis.T
    v = rng.standard_normal(97)
    for _ in range(300):
        v = H @ v / np.linalg.norm(H @ v)
    assert -9 <= v @ H @ v < -8.9
    found = largest_eigenvalue(lambda u: H @ u, 97, rng=rng)
    assert found.value == pytest.approx(5, abs=1e-3)
    assert found.lowest == pytest.approx(-9, abs=1e-3)


def test_an_estimate_that_was_stopped_early_says_so_in_its_residual():
    H = np.diag(np.arange(1000.0))
    found = largest_eigenvalue(lambda u: H @ u, 1000, most=9, rng=np.random.default_rng(0))
    exact = np.linalg.norm(H @ found.vector - found.value * found.vector)
    assert found.value < 999
    assert found.residual == pytest.approx(exact) and found.residual > 1


@pytest.mark.parametrize("spectrum", [[0.0] * 5, [2.0] * 5, [-3.0, -3, -2, -2, -2], [4.0]])
def test_equal_and_vanishing_eigenvalues_end_the_search_early(spectrum):
    H, products = np.diag(spectrum), []

    def apply(u):
        products.append(H @ u)
        return products[-1]

    found = largest_eigenvalue(apply, len(H), rng=np.random.default_rng(0))
    assert found.value == pytest.approx(max(spectrum))
    assert len(products) <= len(set(spectrum)) + 1


def test_an_eigenvalue_that_lanczos_without_reorthogonalisation_finds_twice_is_found_once():
    # 100 products are many more than the largest eigenvalue needs: then copies would appear.
    H = np.diag([*np.linspace(0, 1, 300), 50.0])
    basis = []

    def apply(u):
        basis.append(u.copy())
        return H @ u

    largest_eigenvalue(apply, 301, tolerance=-1, most=100, rng=np.random.default_rng(0))
    Q = np.array(basis[:-1])
    assert np.abs(Q @ Q.T - np.eye(100)).max() < 1e-12


def test_the_spread_of_the_scores_is_what_the_initialisation_says():
    for init, stds in INITIAL.items():
        found = [row[-1].score_std for row in measured(0, init)]
        expected = np.prod(stds(32, 512)) * 32 * 512**0.5
        assert abs(np.mean(found) - expected) < 3 * np.std(found, ddof=1) / len(found) ** 0.5


# ------------------------------------------------------------------ law


def test_the_slopes_are_1_minus_2a_and_those_of_the_chapter_which_small_weights_do_not_change():
    unit = ((0, "unit", 0.87), (0.5, "unit", -0.08), (1, "unit", -1.07))
    for a, init, said in (*unit, (0, "gpt2", 0.90), (0, "t5", 0.88)):
        found, error = slope_of(a, init)
        assert abs(found - said) < 3 * error < 0.21, (a, init, found, error)
        assert abs(found - (1 - 2 * a)) < 0.2
    found, error = slope_of(0)
    assert found + 3 * error < 1  # the prediction is not exact
    pairs = zip(measured(0, "unit"), measured(0, "gpt2"), strict=True)
    assert all(ours[-1].sharpness > 1.5 * gpt2[-1].sharpness for ours, gpt2 in pairs)
    assert max(row[-1].score_std for row in measured(0, "t5")) < 1.2


def test_from_32_features_on_the_sharpness_with_the_papers_scale_does_not_change():
    def one(d_k, seed):
        return head_sharpness(d_k, 0.5, rng=np.random.default_rng([seed, d_k])).sharpness

    found, error = slope((32, 512), [[one(32, seed), one(512, seed)] for seed in range(6)])
    assert abs(found) < 2 * error < 0.14


def test_every_eigenvalue_of_the_sweep_has_a_small_residual():
    rows = [one for a in (0, 0.5, 1) for row in measured(a, "unit") for one in row]
    assert max(one.residual / one.sharpness for one in rows) < 2e-3
    assert all(one.lowest < 0 for one in rows)


def test_without_the_scale_power_iteration_would_often_find_a_negative_eigenvalue():
    raw = [one for row in measured(0, "unit") for one in row]
    assert sum(-one.lowest > one.sharpness for one in raw) > len(raw) / 5


def test_the_decided_half_of_the_queries_adds_nothing_to_the_sharpness_without_the_scale():
    def share(a, seed):
        """Return the sharpness of the less decided half of the queries, over that of all."""
        sizes = {"sequences": 32, "queries": 8, "keys": 8, "d_model": 32, "classes": 8}
        x, y, v, right, w_q, w_k = one_head(512, rng=np.random.default_rng(seed), **sizes)
        p = attention_weights(Tensor(x @ w_q), Tensor(y @ w_k), scale=power(a)).data
        top = p.max(axis=-1)
        found = []
        for kept in (np.ones(top.shape), top < np.median(top)):
            chosen = np.eye(8)[right] * kept[..., None]

            def loss(w_q, w_k, chosen=chosen):
                logits = attention(Tensor(x) @ w_q, Tensor(y) @ w_k, Tensor(v), scale=power(a))
                return -(log_softmax(logits) * chosen).sum() / top.size

            found.append(largest_of_hessian(loss, (w_q, w_k), rng=np.random.default_rng(0)).value)
        return found[1] / found[0]

    raw, scaled = ([share(a, seed) for seed in range(3)] for a in (0, 0.5))
    assert min(raw) > 0.99
    assert np.mean(scaled) < 0.95


def test_the_slopes_of_many_queries_are_those_of_the_run_with_full():
    path = Path(__file__).parents[1] / "demos" / "laboratory" / "results_full_steps.json"
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    found = {key: value for kind, key, value in lines if kind == "sharpness"}
    queries, slopes = re.findall(r"^    (?:queries|slope)  +(.+)$", sharpness.__doc__, re.MULTILINE)
    assert [int(n.replace(",", "")) for n in queries.split()] == sorted(found)
    said = re.findall(r"(\.\d\d) ± (\.\d\d)", slopes)
    assert [(f"{s:.2f}"[1:], f"{e:.2f}"[1:]) for _, (s, e) in sorted(found.items())] == said
    assert said == sorted(said, reverse=True)
