"""Chapter 16.6 · Trained: the heads of a trained model, and what a change of their scale does."""

import functools
import json
import math
import re
from dataclasses import asdict

import numpy as np
import pytest

from attention import attention
from attention.laboratory import trained
from attention.laboratory.basin import SYMBOLS, recall_batch
from attention.laboratory.results import as_text, from_text
from attention.laboratory.trained import (
    SHIFT,
    Look,
    Recall,
    TrainedHeads,
    changes,
    measured,
    over_heads,
    trained_heads,
)
from attention.laboratory.workers import workers
from attention.scaling import power
from minigrad import Tensor, cross_entropy, gradients


@functools.cache
def of(d_k, a, seed, limit=300, second_limit=600):
    rng = np.random.default_rng(seed)
    return trained_heads(d_k, a, limit=limit, second_limit=second_limit, rng=rng)


def small(limit=3, a=0.5):
    rng = np.random.default_rng(0)
    return trained_heads(5, a, num_heads=2, limit=limit, second_limit=2, questions=20, rng=rng)


def model_and_batch(d_k=11, num_heads=4, size=7):
    rng = np.random.default_rng(0)
    model = Recall(num_heads, d_k=d_k, scale=power(0.5)(d_k), rng=rng)
    g = rng.standard_normal((size, num_heads, 1, 32 // num_heads))
    return model, recall_batch(size, rng=rng), g


# ------------------------------------------------------------------ value


def test_a_look_computes_attention_with_the_scale_times_its_factor():
    rng = np.random.default_rng(0)
    q, k, v = (Tensor(rng.standard_normal((2, 3, n, 5))) for n in (4, 7, 7))
    mask = rng.random((4, 7)) < 0.7
    for given, alone in ((None, 5**-0.5), (0.3, 0.3), (lambda d_k: 1 / d_k, 0.2)):
        look = Look(2.0)
        y = look(q, k, v, mask=mask, scale=given)
        expected = attention(q, k, v, mask=mask, scale=2 * alone)
        assert np.allclose(y.data, expected.data) and look.output is y
        assert np.allclose((look.p @ v).data, y.data)
    with pytest.raises(ValueError, match=r"mask= and scale= only: got score_bias$"):
        look(q, k, v, score_bias=np.ones(7), drop=None)


def test_measuring_leaves_the_model_as_it_was():
    model, batch, g = model_and_batch()
    *question, _ = batch
    before = model(*question).data
    weights = [p.data for p in model.parameters()]
    measured(model, batch, g, step=0, change="doubled", factor=2.0)
    assert model.attention.attend is None
    assert all(
        p.data is w and p.grad is None for p, w in zip(model.parameters(), weights, strict=True)
    )
    assert np.array_equal(model(*question).data, before)


@pytest.mark.parametrize("factor", [1.0, 2.0])
def test_a_heads_gradients_are_those_of_each_questions_own_loss(factor):
    """The oracle: question by question, with the layer's scale itself changed."""
    model, batch, g = model_and_batch()
    rows = measured(model, batch, g, step=3, change="x", factor=factor)
    of_loss, of_g, on_pair = [], [], []
    for i in range(7):
        asked, keys, values, answer = (part[i : i + 1] for part in batch)
        question = model.keys(asked)
        pairs = (model.keys(keys) + model.values(values)) / math.sqrt(2)
        layer = model.attention
        q, k, v = (
            Tensor(
                w(x).data.reshape(1, -1, 4, w(x).shape[-1] // 4).swapaxes(1, 2), requires_grad=True
            )
            for w, x in ((layer.w_q, question), (layer.w_k, pairs), (layer.w_v, pairs))
        )
        heads = attention(q, k, v, scale=factor * 11**-0.5)
        y = layer.w_o(heads.swapaxes(1, 2).reshape(1, 1, 32))
        loss = cross_entropy(model.answer(y)[:, 0], answer)
        (each,) = gradients(loss, [q], retain_graph=True)
        of_loss.append(np.linalg.norm(each[0, :, 0], axis=-1))
        (each,) = gradients(heads, [q], g[i : i + 1])
        of_g.append(np.linalg.norm(each[0, :, 0], axis=-1))
        p = np.exp(factor * 11**-0.5 * (q.data @ k.data.mT))[0, :, 0]
        on_pair.append((p / p.sum(-1, keepdims=True))[:, np.argmax(keys[0] == asked[0])])
    for head, row in enumerate(rows):
        assert (row.head, row.step, row.change, row.factor) == (head, 3, "x", factor)
        lengths, passed = np.array(of_loss)[:, head], np.array(of_g)[:, head]
        assert row.gradient_median == pytest.approx(np.median(lengths))
        assert row.gradient_mean == pytest.approx(lengths.mean())
        assert row.passed_median == pytest.approx(np.median(passed))
        assert row.on_pair == pytest.approx(np.array(on_pair)[:, head].mean())


def test_changes_name_the_factors_that_make_a_scale_another():
    assert changes(16, 0.5) == {"as trained": 1, "doubled": 2, "no scale": 4}
    assert changes(16, 0) == {"as trained": 1, "doubled": 2, "1/√d_k": 0.25}
    assert changes(16, 1) == {"as trained": 1, "doubled": 2, "no scale": 16, "1/√d_k": 4}
    assert changes(16, lambda d_k: 4 / d_k) == changes(16, 0.5)


def test_every_checkpoint_has_every_change_of_every_head_and_all_of_it_can_be_kept():
    found = small(limit=12)
    assert [(h.step, h.change, h.head) for h in found.heads] == [
        (step, change, head)
        for step in (0, 1, 3, 10)
        for change in ("as trained", "doubled", "no scale")
        for head in (0, 1)
    ]
    assert [each.steps for each in found.second] == [None] * 3  # two steps are not enough
    assert from_text(TrainedHeads, as_text(found)) == found
    assert json.loads(json.dumps(asdict(found), allow_nan=False))
    assert small(limit=12) == found


def test_exponents_see_the_same_draws_and_a_change_at_the_start_is_the_other_model():
    """Before the first step the models differ in their scale only."""
    raw, scaled = small(a=0.0), small(a=0.5)
    for one, its, other in (
        (raw, "as trained", "no scale"),
        (scaled, "as trained", "1/√d_k"),
    ):
        two = scaled if one is raw else raw
        (here,), (there,) = (
            [[h for h in found.heads if (h.step, h.change) == (0, change)]]
            for found, change in ((one, its), (two, other))
        )
        for mine, yours in zip(here, there, strict=True):
            assert mine.entropy == pytest.approx(yours.entropy, rel=1e-4)
            assert mine.loss == pytest.approx(yours.loss, rel=1e-4)


def test_heads_are_sorted_by_their_weight_on_the_right_pair_as_trained():
    found = [small(), small(a=0.0)]
    on_pair = over_heads(found, "on_pair", step=3, change="as trained")
    assert all(row == sorted(row, reverse=True) and len(row) == 2 for row in on_pair)
    number = over_heads(found, "head", step=3, change="doubled")
    assert number == over_heads(found, "head", step=3, change="as trained")


def test_another_w_q_is_enough_for_the_second_task():
    rng = np.random.default_rng(0)
    model = Recall(4, d_k=5, scale=5**-0.5, rng=rng)
    asked, keys, values, _ = recall_batch(11, rng=rng)
    first = model(asked, keys, values).data
    table = model.keys.weight.data  # (SYMBOLS, d_model): 16 independent vectors
    moved = np.linalg.pinv(table) @ np.roll(table, SHIFT, axis=0)
    model.attention.w_q.weight.data = moved @ model.attention.w_q.weight.data
    second = model((asked + SHIFT) % SYMBOLS, keys, values).data
    assert np.allclose(first, second)


# ------------------------------------------------------------------ the chapter's numbers

TABLE = re.findall(
    r"^    (1/√d_k|no scale) +(as trained|doubled|no scale|1/√d_k) +([\d.]+) % +(\.\d+)"
    r" +(\d+) ± (\d+) % +(\d+) ± (\d+) % +(\d+) ± (\d+)$",
    trained.__doc__,
    re.MULTILINE,
)
NARROW, WIDE = TABLE[:6], TABLE[6:]  # d_k = 64 and 512
RANKS = re.findall(
    r"^    (1/√d_k|no scale), (start|trained) +((?:[\d.]+ ± [\d.]+ *){4})$",
    trained.__doc__,
    re.MULTILINE,
)
A = {"1/√d_k": 0.5, "no scale": 0.0}


def near(found, mean, spread, least, of_seeds):
    """Whether new trainings' mean is that of the text, within three standard errors."""
    error = max(spread, least) * (1 / of_seeds + 1 / len(found)) ** 0.5
    return abs(np.mean(found) - mean) < 3 * error


def assert_the_table_is_true(table, rows, of_seeds, least_steps=8):
    """rows: new trainings with both scales. A second task that is never learned counts as 600."""
    for scale, change, right, loss, *numbers in table:
        group = [row for row in rows if row.a == A[scale]]
        dead, dead_spread, g, g_spread, steps, steps_spread = map(float, numbers)
        each = {
            name: np.mean(over_heads(group, name, step=300, change=change), axis=1)
            for name in ("accuracy", "loss", "dead_share", "passed_dead")
        }
        assert each["accuracy"].mean() == pytest.approx(float(right) / 100, abs=0.01)
        assert near(each["loss"], float(loss), float(loss), 0.001, of_seeds)
        assert near(100 * each["dead_share"], dead, dead_spread, 3, of_seeds)
        assert near(100 * each["passed_dead"], g, g_spread, 3, of_seeds)
        second = [s.steps or 600 for row in group for s in row.second if s.change == change]
        assert near(second, steps, steps_spread, least_steps, of_seeds)


def assert_the_ranks_are_true(rows):
    """rows: new trainings with both scales at d_k = 64."""
    for (scale, when, cells), name in zip(RANKS, ["entropy"] * 4 + ["on_pair"] * 4, strict=True):
        group = [row for row in rows if row.a == A[scale]]
        step = 300 if when == "trained" else 0
        found = np.array(over_heads(group, name, step=step, change="as trained"))
        for rank, (mean, spread) in enumerate(re.findall(r"([\d.]+) ± ([\d.]+)", cells)):
            assert near(found[:, rank], float(mean), float(spread), 0.02, 10), (scale, when, rank)


def test_the_text_is_true_of_seeds_that_it_was_not_written_from():
    rows = [of(64, a, 10) for a in (0.0, 0.5)]
    assert len(NARROW) == 6 and len(WIDE) == 4 and len(RANKS) == 8
    assert_the_table_is_true(NARROW, rows, of_seeds=10)
    assert_the_ranks_are_true(rows)


def heads(found, step):
    return [h for h in found.heads if (h.step, h.change) == (step, "as trained")]


def fell(found):
    """For each head, whether its entropy is lower after the training."""
    both = zip(heads(found, 0), heads(found, 300), strict=True)
    return [after.entropy < before.entropy for before, after in both]


def test_the_training_makes_the_scores_larger_and_the_heads_more_decided():
    for a, first, last, spread in ((0.5, 0.9, 2.5, 0.15), (0.0, 7, 24, 13)):
        found = of(64, a, 10)
        start, end = (
            over_heads([found], "score_std", step=step, change="as trained")[0][0]
            for step in (0, 300)
        )
        assert start == pytest.approx(first, rel=0.3)
        assert abs(end - last) < 3 * spread and end > 1.5 * start
        fell = [
            e.entropy < s.entropy for s, e in zip(heads(found, 0), heads(found, 300), strict=True)
        ]
        assert sum(fell) >= 3  # in 78 heads of 80


def test_a_head_that_has_finished_lets_a_random_gradient_pass_and_a_saturated_one_does_not():
    scaled, raw = of(64, 0.5, 10), of(64, 0.0, 10)
    passed = {
        (name, step): np.median([h.passed_median for h in heads(found, step)])
        for name, found in (("scaled", scaled), ("raw", raw))
        for step in (0, 300)
    }
    assert 0.6 < passed["scaled", 0] < 1.0 and 0.3 < passed["scaled", 300] < 0.8
    assert passed["raw", 300] < 0.02 < 0.4 < passed["raw", 0]
    assert max(h.dead_share for h in heads(scaled, 0)) < 0.02
    assert np.mean([h.passed_dead for h in heads(raw, 0)]) == pytest.approx(0.08, abs=0.05)


def of_seed(settings):
    """A training; another process may compute it."""
    d_k, a, seed = settings
    return trained_heads(d_k, a, rng=np.random.default_rng(seed))


@pytest.mark.slow
def test_the_text_is_true_of_many_seeds():
    narrow = [(64, a, seed) for a in (0.0, 0.5) for seed in range(10, 20)]
    wide = [(512, a, seed) for a in (0.0, 0.5) for seed in (5, 6)]
    with workers(2) as executor:
        found = list(executor.map(of_seed, wide + narrow))
    # Five seeds show too small a spread: one of these has not learned after 600 steps.
    assert_the_table_is_true(WIDE, found[:4], of_seeds=5, least_steps=100)
    rows = found[4:]
    assert_the_table_is_true(NARROW, rows, of_seeds=10)
    assert_the_ranks_are_true(rows)
    falls = [
        e.entropy < s.entropy for r in rows for s, e in zip(heads(r, 0), heads(r, 300), strict=True)
    ]
    assert sum(falls) >= 72  # of 80
