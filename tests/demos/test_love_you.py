"""Tests: "I love you": three sums, its slips, its undone steps, and the way back."""

import numpy as np
import pytest

from demos.texts.sources import love_you_text as source
from demos.texts.sources import parsed
from demos.texts.sources.love_you_text import largest, measure
from minigrad import Tensor

GAP = 24 * 2496 * (2617 - 2503)  # how far the second score is behind, where it is least
ALIVE = 2 / (8 * GAP)
LAST = 745.1332191019411  # exp(-z) is 0 in float64 from here on
CASES = {
    "text": {},
    "Xavier, integers": {"constant": False},
    "Xavier, unit variance": {"constant": False, "unit": True},
}


def layer_and_rows(*, unit=False, seed=0, **options):
    rows = source.rows(np.random.default_rng(seed)).astype(float)
    x = Tensor(source.unit(rows) if unit else rows, requires_grad=True, name="x")
    return source.layer(seed=seed, **options), x


def inputs(**case):
    """Return x and the first head's three matrices, each (512, 64)."""
    return source.inputs(*layer_and_rows(**case))


# ------------------------------------------------------------------ value


def test_the_printed_part_of_the_first_row_sums_to_2308():
    known = parsed(source.PRINTED["I"])
    assert len(known) == 470 and known.sum() == 2308 and set(known) == set(range(1, 10))
    assert list(known[:5]) == [8, 5, 6, 7, 7] and list(known[-5:]) == [5, 1, 8, 4, 2]
    assert 42 <= 2496 - 2308 <= 42 * 9  # so the other 42 can make up the sum


def test_the_diagonal_gives_three_sums_and_they_give_all_nine_scores():
    assert list(source.sums()) == [2496, 2503, 2617]
    expected = [[24 * a * b for b in (2496, 2503, 2617)] for a in (2496, 2503, 2617)]
    assert [int(n) for n in parsed(source.PRINTED["scores"])] == np.ravel(expected).tolist()
    assert source.ours()["scores"].tolist() == expected


@pytest.mark.parametrize("seed", [0, 4])
def test_our_rows_have_the_sums_and_begin_as_printed(seed):
    rows = source.rows(np.random.default_rng(seed))
    assert rows.shape == (3, 512) and rows.min() >= 1 and rows.max() <= 9
    assert list(rows.sum(axis=1)) == [2496, 2503, 2617]
    assert list(rows[0, :470]) == list(parsed(source.PRINTED["I"]))


# ------------------------------------------------------------------ value: its slips


def test_whatever_the_words_are_the_largest_sum_takes_all():
    layer, rng = source.layer(), np.random.default_rng(1)
    for _ in range(20):
        words = rng.integers(1, 10, (3, 512))
        if len(set(words.sum(axis=1))) == 3:
            looks = layer.weights(Tensor(words, dtype=float)).data.argmax(axis=-1)
            assert (looks == words.sum(axis=1).argmax()).all()


def test_the_gradients_of_the_weights_depend_on_how_the_lost_values_are_drawn():
    found = [source.measure(1e-9, inputs(seed=seed))[1] for seed in (0, 1)]
    same = [np.allclose(first, second, rtol=1e-9) for first, second in zip(*found, strict=True)]
    assert same == [True, False, False, False]  # x, W_Q, W_K, W_V


# ------------------------------------------------------------------ derivative


def test_the_gradient_returns_where_the_gap_says_one_in_73000_of_the_raw_scores():
    tensors, returns = inputs(), LAST / (8 * GAP)
    assert returns == pytest.approx(1.364e-5, rel=1e-3)  # of QKᵀ
    assert 8 * returns == pytest.approx(1.09e-4, rel=2e-3)  # of what is already divided by 8
    assert 73_000 < 1 / returns < 74_000
    for factor, alive in ((1.002, False), (0.998, True)):
        _, (_, w_q, w_k, _) = measure(factor * returns, tensors)
        assert w_q.any() == w_k.any() == alive
    _, (_, w_q, _, _) = measure(1e-5, tensors)
    assert 1e-240 < largest(w_q) < 1e-230 and np.linalg.norm(w_q) == 0  # a norm squares


def test_pytorch_finds_the_same_zeros_and_the_same_gradients():
    torch = pytest.importorskip("torch")
    for scale, case in ((1 / 8, "text"), (ALIVE, "text"), (1 / 8, "Xavier, unit variance")):
        tensors = inputs(**CASES[case])
        x, w_q, w_k, w_v = theirs = [torch.tensor(t.data, requires_grad=True) for t in tensors]
        weights = torch.softmax(scale * (x @ w_q) @ (x @ w_k).T, dim=-1)
        (weights @ (x @ w_v)).sum().backward()
        spread, found = measure(scale, tensors)
        entropies = torch.special.entr(weights).sum(dim=-1) / np.log(3)
        assert spread == pytest.approx(entropies.mean().item(), abs=1e-12)
        for ours, t in zip(found, theirs, strict=True):
            atol = 1e-10 * largest(ours)
            np.testing.assert_allclose(ours, t.grad.numpy(), rtol=1e-7, atol=atol)


# ------------------------------------------------------------------ law


def test_equal_heads_part_under_training_if_w_o_differs():
    """("Try it" asks for this.)"""
    _, x = layer_and_rows(seed=4)
    w_o = source.layer(constant=False).w_o.weight.data
    moved, far = source.trained(ALIVE, x, seed=4, w_o=w_o)
    assert moved > 0.01 and far > 1e-3


def test_the_scale_fits_rows_of_unit_variance_and_not_integers():
    """At 1/√d_k: entropy, and W_Q's gradient beside W_V's."""
    spread, passed = {}, {}
    for name, case in CASES.items():
        spread[name], (_, g_q, _, g_v) = measure(None, inputs(**case))
        passed[name] = largest(g_q) / largest(g_v)
    assert spread["text"] == passed["text"] == 0
    assert spread["Xavier, integers"] < 0.1 and passed["Xavier, integers"] < 0.05
    assert 0.6 < spread["Xavier, unit variance"] < 0.95 and passed["Xavier, unit variance"] > 0.3
