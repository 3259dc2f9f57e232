"""Chapter 16.8 · Over a training: where heads look, what they pass back, and the race."""

import dataclasses
import itertools
from argparse import Namespace

import numpy as np
import pytest

from attention import gpt2
from attention.laboratory.over_training import (
    INITIAL,
    OTHER,
    PERIOD,
    SPREAD_OUT,
    HeadLook,
    heads_over_training,
    look_at_heads,
    most_weight,
    natural_spread,
    race,
    repeating_gpt,
    sequences,
)
from attention.laboratory.trained import Look
from demos._training import Marks
from demos.laboratory import _over_training as section
from minigrad.runs.sweeps import generator

T = 2 * PERIOD - 1


def draws(seed=0):
    return np.random.default_rng(seed)


class Keeping(Look):
    """A look that keeps all that it was given."""

    def __call__(self, q, k, v, **options):
        self.k, self.v = k.data.astype(float), v.data.astype(float)
        return super().__call__(q, k, v, **options)


def model_and_batches(d_k=5, init="unit", number=3):
    model = repeating_gpt(init, natural_spread(init, d_k), d_k, rng=draws())
    test, other = (sequences(number, p, rng=draws(1))[:, :-1] for p in (PERIOD, OTHER))
    g = draws(2).standard_normal((number, 2, T, d_k)).astype(np.float32)
    return model, test, other, g


# ------------------------------------------------------------------ value


@pytest.mark.parametrize("period", [8, 14, 16])
def test_a_sequence_has_different_tokens_that_repeat_after_the_period(period):
    x = sequences(7, period, rng=draws())
    assert x.shape == (7, 2 * PERIOD) and np.array_equal(x[:, period:], x[:, :-period])
    assert all(len(set(row)) == period for row in x)
    assert len({tuple(row) for row in x}) == 7


@pytest.mark.parametrize("init", INITIAL)
def test_with_the_spread_of_the_scale_the_model_is_a_gpt2_with_other_weights(init):
    """The factor is 1: the same model whose heads are chapter 13's own computes the same."""
    model, test, _, _ = model_and_batches(init=init)
    plain = gpt2(32, 2 * PERIOD, d_model=10, num_heads=2, num_blocks=2, rng=draws())
    plain = plain.astype(np.float32)
    for p, q in zip(plain.parameters(), model.parameters(), strict=True):
        p.data = q.data
    np.testing.assert_allclose(model(test).data, plain(test).data, rtol=1e-4, atol=1e-6)
    std = model.blocks[0].attention.w_q.weight.data.std()
    assert std == pytest.approx({"unit": 10**-0.5, "0.02": 0.02}[init], rel=0.2)


@pytest.mark.parametrize(("init", "s"), [*itertools.product(INITIAL, (0.125, 1.0, 8.0))])
def test_the_scores_spread_at_the_start_as_was_asked(init, s):
    model = repeating_gpt(init, s, 32, rng=draws())
    model(sequences(5, rng=draws(1))[:, :-1])
    for block in model.blocks:
        assert block.attention.attend.scores.data.std(axis=-1).mean() == pytest.approx(s, rel=0.15)


@pytest.mark.parametrize("init", INITIAL)
def test_the_gradients_are_those_that_the_formula_of_chapter_16_gives(init):
    """The oracle: scale · Kᵀ J V g, query by query in NumPy, with the scale and without it."""
    d_k = 5
    model, test, other, g = model_and_batches(d_k, init)
    looks = look_at_heads(model, test, other, g, step=0)
    for block in model.blocks:
        block.attention.attend = Keeping(block.attention.attend.factor)
    model(test)
    for number, block in enumerate(model.blocks, start=1):
        kept = block.attention.attend
        q, k = kept.q.data.astype(float), kept.k
        norms = []
        for scale in (1.0, d_k**-0.5):
            scores = np.where(np.tri(T, dtype=bool), scale * q @ k.swapaxes(-1, -2), -np.inf)
            p = np.exp(scores - scores.max(axis=-1, keepdims=True))
            p /= p.sum(axis=-1, keepdims=True)
            of_p = g @ kept.v.swapaxes(-1, -2)
            of_scores = p * (of_p - (p * of_p).sum(axis=-1, keepdims=True))
            norms.append(np.linalg.norm(scale * of_scores @ k, axis=-1)[:, :, PERIOD:])
        for head in (0, 1):
            (look,) = (x for x in looks if (x.block, x.head) == (number, head + 1))
            raw, scaled = (each[:, head] for each in norms)
            assert look.mean == pytest.approx(raw.mean() / scaled.mean(), rel=1e-3)
            assert look.median == pytest.approx(np.median(raw) / np.median(scaled), rel=1e-3)


def test_looking_leaves_the_model_as_it_was():
    model, test, other, g = model_and_batches()
    attends = [block.attention.attend for block in model.blocks]
    before = model(test).data
    look_at_heads(model, test, other, g, step=0)
    assert [block.attention.attend for block in model.blocks] == attends
    assert np.array_equal(model(test).data, before)
    assert all(p.grad is None for p in model.parameters())


@pytest.mark.parametrize("back", [0, 1, 13, 15])
def test_where_the_most_weight_is_is_found(back):
    p = np.zeros((2, 2, T, T))
    at = np.arange(PERIOD, T)
    p[:, 0, at, at - back] = 0.75
    p[:, 0, at, at - 7] = 0.25
    p[:, 1, at, 0] = 1.0  # always the first token: at no one distance
    first, second = most_weight(p)
    assert first == (back, 0.75) and second[1] < 0.1


@pytest.mark.parametrize(
    ("back", "weight", "other_back", "other_weight", "kind"),
    [
        (15, 0.9, 15, 0.9, "by position"),
        (15, 0.9, 13, 0.9, "by content"),
        (8, 0.6, 6, 0.6, "by content"),
        (15, 0.9, 13, 0.4, SPREAD_OUT),
        (15, 0.5, 15, 0.9, SPREAD_OUT),
        (13, 0.9, 15, 0.9, SPREAD_OUT),
        (1, 0.9, 1, 0.9, "by position"),
    ],
)
def test_the_kind_of_a_head_is_told_by_where_it_looks_at_two_periods(
    back, weight, other_back, other_weight, kind
):
    places = dict(zip(("back", "weight", "other_back", "other_weight"), [0] * 4, strict=True))
    head = HeadLook(0, 1, 1, 1.0, 1.0, **places)
    found = dataclasses.replace(
        head, back=back, weight=weight, other_back=other_back, other_weight=other_weight
    )
    assert found.kind == kind


def test_a_head_is_changed_alone_with_its_block():
    """Other blocks keep their scale: block 1's ratios do not depend on block 2's weights."""
    model, test, other, g = model_and_batches()
    first = look_at_heads(model, test, other, g, step=0)[:2]
    model.blocks[1].attention.w_q.weight.data = 9 * model.blocks[1].attention.w_q.weight.data
    assert look_at_heads(model, test, other, g, step=0)[:2] == first


# ------------------------------------------------------------------ the training


def test_a_default_run_is_the_beginning_of_a_full_one():
    sizes = [section.sweeps(size)["over a training"] for size in ("default", "full")]
    cells = [
        {name: values[-1] for name, values in settings.items()} | {"repeat": 0}
        for _, settings, _, _ in sizes
    ]
    first, second = (generator(c, seed=0, paired=sizes[0][3]).random() for c in cells)
    assert first == second
    short = heads_over_training("unit", limit=1, d_k=4, rng=draws())
    longer = heads_over_training("unit", limit=2, d_k=4, rng=draws())
    assert [h.step for h in longer.heads] == [0] * 4 + [2] * 4 and len(longer.losses) == 2
    assert short.heads[:4] == longer.heads[:4]


def test_a_race_that_ends_at_its_limit_has_no_steps():
    assert race("unit", 1.0, limit=3, d_k=4, rng=draws()).steps is None


@pytest.mark.slow
@pytest.mark.parametrize("seed", [100, 101])
def test_a_head_that_has_found_its_key_loses_its_mean_and_before_that_none_does(seed):
    """At d_k = 32, with seeds that the text was not written from."""
    row = heads_over_training("unit", limit=150, d_k=32, rng=draws(seed))
    start, end = (section.heads_at([row], look) for look in (0, -1))
    assert min(head.mean for head in start) > 1
    found = [head for head in end if head.kind == "by position"]
    assert found and max(head.mean for head in found) < 1
    assert max(head.mean for head in end) > 1 and {head.block for head in found} == {1}


# ------------------------------------------------------------------ the kept run

ABOUT, KEPT, RACES = section.kept_rows()


def test_the_first_look_and_one_race_of_the_kept_run_are_measured_again():
    """A start is the same on every machine; a race may be a few steps apart by rounding."""
    plan = section.sweeps("full")
    for name, drawn in (("over a training", False), ("periods drawn", True)):
        paired = plan[name][3]
        for init in plan[name][1]["init"]:
            (kept, *_) = (row for row in KEPT if (row.init, row.drawn) == (init, drawn))
            cell = {"init": init, "drawn": drawn, "limit": 0, "repeat": 0}
            again = heads_over_training(init, limit=0, rng=generator(cell, seed=0, paired=paired))
            assert again.losses == pytest.approx(kept.losses[:1], rel=1e-3)
            for head, known in zip(again.heads, kept.heads[:4], strict=True):
                assert head.mean == pytest.approx(known.mean, rel=1e-2)
                assert head.median == pytest.approx(known.median, rel=1e-2)
    (known, *_) = (row for row in RACES if (row.init, row.spread) == ("unit", 1.0))
    cell = {"init": "unit", "spread": 1.0, "repeat": 0}
    again = race("unit", 1.0, rng=generator(cell, seed=0, paired=["init", "spread"]))
    assert again.steps == pytest.approx(known.steps, abs=5)


def test_the_kept_file_has_every_cell_of_the_plan():
    plan = section.sweeps("full")
    wanted = {
        name: list(itertools.product(*settings.values())) * repeats
        for name, (_, settings, repeats, _) in plan.items()
    }
    trainings = [(row.init, row.drawn) for row in KEPT]
    expected = [cell[:2] for name in list(plan)[:2] for cell in wanted[name]]
    assert sorted(trainings) == sorted(expected)
    races = [(row.init, row.spread) for row in RACES]
    expected = [cell for name in list(plan)[2:] for cell in wanted[name]]
    for (init, s), (other, wanted_s) in zip(sorted(races), sorted(expected), strict=True):
        assert init == other and s == pytest.approx(wanted_s, rel=1e-3)  # (four digits are kept)


def test_the_numbers_of_the_chapter_are_those_of_the_kept_run():
    counts = {"unit": ([0, 5, 5], [0, 8, 9]), "0.02": ([0, 6, 7], [0, 7, 8])}
    for init, expected in counts.items():
        rows = [row for row in KEPT if row.init == init and not row.drawn]
        looks = [section.heads_at(rows, look) for look in range(3)]
        for name, falls in zip(("mean", "median"), expected, strict=True):
            assert [sum(getattr(h, name) < 1 for h in heads) for heads in looks] == falls
    ends = section.heads_at([row for row in KEPT if not row.drawn], -1)
    found = sorted(head.mean for head in ends if head.kind == "by position")
    others = [head.mean for head in ends if head.kind == SPREAD_OUT]
    assert (len(found), len(others)) == (12, 20) and found[-2] < 2e-5 < 0.3 < found[-1] < 0.34
    assert min(others) > 1.75 and max(others) < 8
    content = [h for h in section.heads_at(KEPT, -1) if h.kind == "by content"]
    assert len(content) == 4 and {(h.block, h.back, h.other_back) for h in content} == {(2, 8, 6)}
    assert min(h.mean for h in content) > 0.59 and max(h.mean for h in content) < 0.86
    assert max(h.median for h in content) < 1e-8
    (other,) = (h for h in section.heads_at(KEPT, -1) if h.kind == SPREAD_OUT and h.mean < 1)
    assert f"{other.mean:.2f}" == "0.97"
    early = (h for row in KEPT for h in row.heads if h.step < row.heads[-1].step)
    stays = [h for h in early if h.kind != SPREAD_OUT and h.mean >= 1]
    known = [(h.step, h.block, f"{h.mean:.1f}") for h in sorted(stays, key=lambda h: h.mean)]
    assert known == [(400, 2, "1.0"), (400, 2, "1.2"), (50, 1, "1.6"), (50, 1, "2.6")]
    for init, most in (("unit", "1.3"), ("0.02", "1.7")):
        steps = section.steps_over_spreads(RACES, init)
        least = min(np.mean(of) for of in steps.values())
        assert f"{np.mean(steps[4.0]) / least:.1f}" == most


# ------------------------------------------------------------------ what would falsify the claims


def same(x):
    return x


def steps_of(row):
    return row.steps


def verdicts(change=same, steps=steps_of):
    """Return the marks of a run with other heads and steps: name → True if it was passed."""
    replace = dataclasses.replace
    rows = [replace(row, heads=[change(head) for head in row.heads]) for row in KEPT]
    run = section.OverATraining([row for row in rows if not row.drawn])
    run.kept = rows
    races = [replace(row, steps=steps(row)) for row in RACES]
    run.steps = {init: section.steps_over_spreads(races, init) for init in section.STARTS}
    marks = Marks(Namespace(quick=False, marks=False))
    run.judge(marks)
    return {row[0]: row[-1] == "passed" for row in marks.rows}


def test_every_mark_is_passed_by_what_is_kept():
    assert len(verdicts()) == 13 and all(verdicts().values()), verdicts()


def turned(head, where):
    """Return the head with its ratio of means turned upside down, if it is where the effect is."""
    return dataclasses.replace(head, mean=1 / head.mean) if where(head) else head


STEP_0 = "a GPT at step 0, unit variance: heads whose mean falls"
LEAST = "at the end: the least ratio of means"
FOUND = "--full, at the end: the largest ratio of means of heads that have found a key"
OF_RACE = [f"--full, from {name}, steps over the least:" for name in section.STARTS.values()]


@pytest.mark.parametrize(
    ("where", "fail"),
    [
        (lambda head: head.step == 0, {STEP_0, f"--full, {STEP_0}"}),
        (lambda head: head.mean < 1, {LEAST, f"--full, {LEAST}", FOUND}),
        (lambda head: head.kind == "by content" and head.step == 600, {FOUND}),
    ],
)
def test_a_mark_of_the_heads_fails_when_the_sign_is_turned(where, fail):
    found = verdicts(lambda head: turned(head, where))
    assert {name for name, passed in found.items() if not passed} >= fail


@pytest.mark.parametrize(
    ("steps", "fail"),
    [
        (lambda row: 2 * row.steps if row.spread == 2 else row.steps, "worst s from ½ to 2"),
        (lambda row: 300 if 0.5 <= row.spread <= 2 else row.steps, "best s from ½ to 2"),
    ],
)
def test_a_mark_of_the_race_fails_without_its_valley(steps, fail):
    found = verdicts(steps=steps)
    assert not any(found[f"{what} {fail}"] for what in OF_RACE)


def test_the_mark_of_a_spread_of_4_fails_if_it_is_as_good_as_the_floor():
    found = verdicts(steps=lambda row: 40 if row.spread == 4 else row.steps)
    names = [name for name in found if "steps at s = 4 minus" in name]
    assert len(names) == 2 and not any(found[name] for name in names)


def test_the_marks_of_what_the_lack_of_the_scale_does_fail_with_the_other_sign():
    exchanged = {"unit": "0.02", "0.02": "unit"}
    of = {
        init: [section.steps_over_spreads(RACES, init)[s] for s in (low[init], high[init])]
        for low, high in ((section.WITH, section.WITHOUT),)
        for init in exchanged
    }
    assert np.mean(of["unit"][1]) > np.mean(of["unit"][0])
    assert np.mean(of["0.02"][1]) < np.mean(of["0.02"][0])
    found = verdicts(steps=lambda row: round(6000 / (row.steps or 400)))
    names = [name for name in found if name.startswith("--full: steps without the scale")]
    assert len(names) == 2 and not any(found[name] for name in names)
