"""Chapter 16.7 · Other ways than 1/√d_k to keep scores in bounds, measured alike."""

import numpy as np
import pytest

from attention import additive_attention, attention_weights, qk_norm
from attention.laboratory import WAYS, neighbour
from attention.scaling import DEAD
from minigrad import Tensor, softmax

T, S, D_K, D_MODEL = 3, 5, 7, 11


def one(d_k, way, **options):
    """Return a measurement whose draws depend on nothing but `seed`."""
    rng = np.random.default_rng(options.pop("seed", 0))
    return neighbour(d_k, way, **{"queries": 256, **options}, rng=rng)


def over_seeds(d_k, way, name, seeds=6, **options):
    """Return one number's mean over generators, its standard error and standard deviation."""
    found = np.array([getattr(one(d_k, way, seed=[d_k, i], **options), name) for i in range(seeds)])
    return found.mean(), found.std(ddof=1) / np.sqrt(seeds), found.std(ddof=1)


# ------------------------------------------------------------------ value


@pytest.mark.parametrize("way", WAYS)
def test_the_scores_are_those_of_the_layers_that_have_them(way):
    rng = np.random.default_rng(0)
    q, k = (Tensor(rng.standard_normal((rows, D_K))) for rows in (T, S))
    w, eye = Tensor(rng.standard_normal(D_K)), Tensor(np.eye(S))
    weights = softmax(WAYS[way].scores(q, k, w, D_MODEL, S)).data
    scales = {
        "none": 1.0,
        "1/d_k": lambda d_k: 1 / d_k,
        "1/√d_model": 1 / np.sqrt(D_MODEL),
        "log n": np.log(S) / np.log(512) / np.sqrt(D_K),
        "0.02": 1.0,
        "T5": 1.0,
    }
    if way == "QK-norm":
        wanted = qk_norm()(q, k, eye, scale=np.log2(S**2 - S))
    elif way == "additive":
        wanted = additive_attention(q, k, eye, w)
    else:
        wanted = attention_weights(q, k, scale=scales.get(way))  # None is 1/√d_k
    assert weights == pytest.approx(wanted.data, rel=1e-12)


def test_a_neighbour_equals_its_definition_in_loops():
    sizes = {"d_model": D_MODEL, "keys": S, "queries": 2 * T, "per_key_set": T}
    found = neighbour(D_K, "T5", **sizes, growth=2.0, rng=np.random.default_rng(1))
    rng, rows = np.random.default_rng(1), []
    for _ in range(2):
        x, memory = rng.standard_normal((T, D_MODEL)), rng.standard_normal((S, D_MODEL))
        w_q, w_k = rng.standard_normal((2, D_MODEL, D_K))
        rng.standard_normal(D_K)
        g = rng.standard_normal((T, S))
        w_own = 2 * w_q / np.sqrt(D_MODEL)
        w_q, w_k = 2 * w_q / np.sqrt(D_MODEL * D_K), 2 * w_k / np.sqrt(D_MODEL)
        k = memory @ w_k
        for t in range(T):
            s = np.array([k[j] @ (w_q.T @ x[t]) for j in range(S)])
            p = np.exp(s) / np.exp(s).sum()
            at_q = k.T @ (np.diag(p) - np.outer(p, p)) @ g[t]
            at_x = w_q @ at_q
            own = (x[t] @ w_q) @ (x[t] @ w_own)
            entropy = -(p * np.log(p)).sum() / np.log(S)
            rows.append([s.var(), entropy, *(np.linalg.norm(z) for z in (at_q, at_x)), own])
    columns = np.array(rows).T
    assert found.score_std == pytest.approx(np.sqrt(columns[0].mean()))
    assert found.entropy == pytest.approx(columns[1].mean())
    assert found.gradient_median == pytest.approx(np.median(columns[2]))
    assert found.gradient_mean == pytest.approx(columns[2].mean())
    assert found.dead_share == np.mean(columns[2] < DEAD)
    assert found.token_gradient == pytest.approx(np.median(columns[3]))
    assert found.own_score == pytest.approx(np.median(columns[4]))


# ------------------------------------------------------------------ law

STD = {  # of the scores at the start, with matrices for d_model = 768 and 64 keys
    "none": lambda d_k: np.sqrt(d_k),
    "1/√d_k": lambda d_k: 1.0,
    "1/d_k": lambda d_k: 1 / np.sqrt(d_k),
    "1/√d_model": lambda d_k: np.sqrt(d_k / 768),
    "log n": lambda d_k: np.log(64) / np.log(512),
    "QK-norm": lambda d_k: np.log2(64**2 - 64) / np.sqrt(d_k),
    "0.02": lambda d_k: 768 * 0.02**2 * np.sqrt(d_k),
    "GPT-2": lambda d_k: 768 * 0.02**2,
    "T5": lambda d_k: 1.0,
}


@pytest.mark.parametrize("way", STD)
def test_the_scores_have_the_standard_deviation_that_follows_from_the_initial_values(way):
    for d_k in (16, 64):
        mean, error, _ = over_seeds(d_k, way, "score_std", queries=128)
        # (n - 1 of n, since the variance is taken over 64 keys around their own mean)
        assert abs(mean - STD[way](d_k) * np.sqrt(63 / 64)) < 3 * error + 0.004 * mean
        assert error < 0.03 * mean


def test_the_scores_of_additive_attention_are_the_same_at_every_width():
    (few, error, _), (many, other, _) = (
        over_seeds(d_k, "additive", "score_std") for d_k in (16, 256)
    )
    assert abs(few - many) < 3 * np.hypot(error, other) < 0.15 * many


def test_where_products_without_a_scale_leave_queries_dead_additive_attention_leaves_none():
    mean, error, _ = over_seeds(1024, "none", "dead_share", queries=128)
    assert abs(mean - 0.44) < 0.005 + 3 * error < 0.1
    assert one(1024, "additive", queries=128).dead_share == 0


def test_t5_has_the_scores_and_the_tokens_gradient_of_the_scale_and_a_longer_one_at_q():
    t5, scaled = one(64, "T5"), one(64, "1/√d_k")
    for name in ("score_std", "entropy", "token_gradient", "own_score"):
        assert getattr(t5, name) == pytest.approx(getattr(scaled, name), rel=1e-9)
    assert t5.gradient_median == pytest.approx(8 * scaled.gradient_median, rel=1e-9)


def test_small_initial_weights_hide_that_a_scale_is_missing():
    mean, error, _ = over_seeds(64, "0.02", "score_std")
    assert abs(mean - 2.5) < 0.05 + 3 * error < 0.2
    assert over_seeds(64, "0.02", "dead_share")[0] == 0 < over_seeds(64, "none", "dead_share")[0]


def test_when_the_matrices_grow_only_qk_norm_and_additive_attention_keep_their_scores():
    for way in WAYS:
        before, after = (one(64, way, growth=growth).score_std for growth in (1, 3))
        if way == "QK-norm":
            assert after == pytest.approx(before, rel=1e-9)
        elif way == "additive":
            assert 1 < after / before < 1.5
        else:
            assert after == pytest.approx(9 * before, rel=1e-9)


def test_the_score_of_a_token_with_itself_depends_on_the_width_but_for_1_over_d_k_and_qk_norm():
    for way, few, many in (
        ("none", 16, 256),
        ("1/√d_k", 4, 16),
        ("1/d_k", 1, 1),
        ("QK-norm", 11.98, 11.98),
    ):
        assert one(16, way).own_score == pytest.approx(few, rel=0.1)
        assert one(256, way).own_score == pytest.approx(many, rel=0.03)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("way", "of_medians", "of_others"),
    [("none", 0.30, 0.12), ("0.02", 0.07, 0.07), ("1/√d_k", 0.04, 0.04)],
)
def test_the_spread_over_generators_is_about_what_the_text_says(way, of_medians, of_others):
    """(A standard deviation of ten numbers is known to a quarter of itself.)"""
    for name in ("score_std", "entropy", "gradient_median", "gradient_mean", "own_score"):
        mean, error, spread = over_seeds(256, way, name, seeds=10, queries=256)
        told = of_medians if name == "gradient_median" else of_others
        assert spread / mean < told * 1.75
        if (way, name) == ("none", "gradient_median"):
            assert abs(mean - 0.22) < 0.005 + 4 * error
