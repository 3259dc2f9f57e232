"""Chapter 16.5 · The basin: one head learns associative recall, at many rates and widths."""

import dataclasses
import functools
import json
import math
import re
from pathlib import Path

import numpy as np
import pytest

from attention import MultiHeadAttention
from attention.laboratory import basin
from attention.laboratory.basin import (
    Adafactor,
    Outcome,
    first_step,
    initial_model,
    look_up,
    outcomes,
    recall_batch,
    step_exponents,
    training,
)
from attention.laboratory.sharpness import largest_of_hessian
from minigrad import Tensor, cross_entropy

ROOT = Path(__file__).parents[1]


@functools.cache
def trained(d_k, a, lr, optimizer="sgd", init="unit", seed=0, limit=100):
    rng = np.random.default_rng(seed)
    return training(d_k, a, lr=lr, optimizer=optimizer, init=init, limit=limit, rng=rng)


# ------------------------------------------------------------------ value


def test_the_look_up_is_chapter_13s_attention_with_one_head():
    rng = np.random.default_rng(0)
    weights = initial_model(11, "unit", d_model=7, rng=rng)
    asked, keys, values, _ = recall_batch(5, pairs=3, rng=rng)
    tensors = {name: Tensor(w) for name, w in weights.items()}
    _, p, logits = look_up((asked, keys, values), tensors, 11**-0.5)
    layer = MultiHeadAttention(7, 1, d_k=11, d_v=16, rng=rng)
    for name in ("w_q", "w_k", "w_v"):
        getattr(layer, name).weight.data = weights[name]
    question = Tensor(weights["of_keys"][asked])
    pair = Tensor((weights["of_keys"][keys] + weights["of_values"][values]) / math.sqrt(2))
    assert np.allclose(p.data, layer.weights(question, pair).data[:, 0])
    layer.w_o.weight.data = np.eye(16, 7)
    assert np.allclose(logits.data[:, :7], layer(question, pair).data[:, 0])


def test_a_batch_asks_for_one_of_its_keys_and_the_answer_is_that_keys_value():
    asked, keys, values, answer = recall_batch(97, rng=np.random.default_rng(0))
    assert keys.shape == values.shape == (97, 8) and asked.shape == (97, 1)
    assert all(len(set(row)) == 8 for row in keys)
    assert np.array_equal(values[keys == asked], answer)
    assert set(answer) == set(range(16))


def test_a_training_tells_its_steps_its_share_and_how_it_began():
    found = trained(16, 0.5, 1.0)
    assert 15 < found.steps < 60 and found.learned
    assert found.broke_at is None and found.accuracy > 0.98
    assert found.entropy > 0.7
    # It ends 50 steps after it learned: a longer limit changes nothing.
    assert trained(16, 0.5, 1.0, limit=found.steps + 50) == trained(16, 0.5, 1.0, limit=400)


def test_learned_is_98_percent_of_the_last_ten_batches():
    # A limit at the step that was told is long enough, and one step less is not.
    steps = trained(16, 0.5, 1.0).steps
    assert trained(16, 0.5, 1.0, limit=steps).steps == steps
    assert trained(16, 0.5, 1.0, limit=steps).accuracy >= 0.98
    short = trained(16, 0.5, 1.0, limit=steps - 1)
    assert short.steps is None and short.accuracy < 0.98 and not short.learned


def test_a_training_that_breaks_says_when_and_counts_as_not_learned():
    found = trained(16, 0.5, 30.0)
    assert 1 < found.broke_at <= 100 and found.accuracy == 0.0 and not found.learned
    assert math.isfinite(found.entropy)


def test_outcomes_count_and_average_those_that_learned():
    some = [trained(16, 0.5, 1.0, seed=seed) for seed in range(3)]
    never = dataclasses.replace(some[0], steps=40, accuracy=0.5)  # it forgot
    broken = dataclasses.replace(some[0], steps=None, accuracy=0.0, broke_at=7)
    (key, found), *others = outcomes([*some, never, broken]).items()
    assert key == ("sgd", "unit", 0.5, 0.0, 16, 1.0) and not others
    steps = [one.steps for one in some]
    assert found == Outcome(5, 3, 1, np.mean(steps), np.std(steps, ddof=1))
    assert str(found) == f"{np.mean(steps):.0f} ± {np.std(steps, ddof=1):.0f} (3 of 5)"
    assert str(outcomes([broken])[key]) == "broke"
    assert str(outcomes([broken, never])[key]) == "never"
    assert str(outcomes(some)[key]).endswith(f"± {np.std(steps, ddof=1):.0f}")
    (alone,) = outcomes([some[0], never]).values()
    assert alone.steps_std is None and str(alone) == f"{steps[0]} (1 of 2)"


# ------------------------------------------------------------------ law


def test_with_the_papers_scale_a_rate_of_1_needs_the_same_steps_at_every_width():
    steps = [trained(d_k, 0.5, 1.0, seed=s, limit=60).steps for d_k in (8, 512) for s in range(2)]
    assert None not in steps and min(steps) > 20 and max(steps) < 50


def test_without_a_scale_a_rate_of_1_is_too_large_at_every_width():
    for d_k, limit in ((8, 100), (512, 60)):  # as long as the scaled head needs twice
        found = trained(d_k, 0, 1.0, limit=limit)
        assert found.steps is None and found.accuracy < 0.9


def test_without_a_scale_a_small_rate_works_at_every_width_and_a_wide_head_is_slow():
    narrow, wide = trained(8, 0, 0.3), trained(512, 0, 0.3, limit=200)
    assert narrow.learned and wide.learned
    assert wide.steps > 2 * narrow.steps
    assert wide.entropy < 0.1 < 0.3 < narrow.entropy
    assert trained(512, 0.5, 1.0, limit=60).entropy > 0.75


@functools.cache
def rise(optimizer, a, init="unit"):
    """Return the power of d_k in the first step, and its error."""
    rows = [
        first_step(d_k, a, optimizer=optimizer, init=init, rng=np.random.default_rng([seed, d_k]))
        for d_k in (8, 64, 512)
        for seed in range(3)
    ]
    return step_exponents(rows)[optimizer, init, a]


@pytest.mark.parametrize(
    ("optimizer", "a", "expected"),
    [("sgd", 0.5, 0), ("sgd", 1, -1), ("adam", 0, 1), ("adam", 0.5, 0.5), ("adam", 1, 0)],
)
def test_the_first_step_moves_scores_by_1_minus_2a_with_sgd_and_1_minus_a_with_adam(
    optimizer, a, expected
):
    found, error = rise(optimizer, a)
    assert error < 0.07 and abs(found - expected) < 0.2


def test_without_a_scale_the_first_step_of_sgd_grows_less_than_the_prediction():
    found, error = rise("sgd", 0)  # most queries are decided, and do not push
    assert 0.3 < found < 1 - 2 * error


@pytest.mark.parametrize("d_k", [64, 256])
def test_t5s_values_with_relative_steps_are_the_papers_scale_bit_for_bit(d_k):
    scaled, t5 = (
        trained(d_k, a, 0.03, "adafactor", init) for a, init in ((0.5, "unit"), (0.0, "t5"))
    )
    assert dataclasses.replace(t5, a=0.5, init="unit") == scaled and scaled.learned
    t5 = trained(d_k, 0.0, 0.03, "adam", "t5")
    assert dataclasses.replace(t5, a=0.5, init="unit") != trained(d_k, 0.5, 0.03, "adam")


def test_below_adafactors_floor_t5s_values_are_not_the_scale():
    """The floor is .001; here the weights are so small that every step is relative to it."""
    start = np.random.default_rng(0).standard_normal((2, 5, 7))
    for size, same in ((1e-2, True), (1e-4, False)):
        weights = [Tensor(size * start[0] / by, requires_grad=True) for by in (1, 4)]
        for w, by in zip(weights, (1, 4), strict=True):
            w.grad = by * start[1]
        Adafactor(weights, 0.1).step()
        assert np.allclose(weights[0].data, 4 * weights[1].data, rtol=1e-12, atol=0) == same


def test_relative_steps_are_torchs():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    ours = Tensor(rng.standard_normal((5, 7)), requires_grad=True)
    theirs = torch.tensor(ours.data.copy(), requires_grad=True)
    stepper = Adafactor([ours], 0.01)
    other = torch.optim.Adafactor([theirs], 0.01, eps=(1e-30, 1e-3), weight_decay=0.0)
    for scale in (1.0, 30.0, 0.1):
        ours.grad = scale * rng.standard_normal((5, 7))
        theirs.grad = torch.tensor(ours.grad)
        stepper.step()
        other.step()
        assert ours.data == pytest.approx(theirs.detach().numpy(), rel=1e-9)


WEIGHTS = initial_model(2, "unit", rng=np.random.default_rng(0))


def test_without_a_scale_the_parabola_of_the_sharpest_direction_ends_at_once():
    for seed in range(2):
        rng = np.random.default_rng(seed)
        start = initial_model(512, "unit", rng=rng)
        *question, answer = recall_batch(64, rng=rng)

        def loss(*weights, question=question, answer=answer):
            named = dict(zip(WEIGHTS, weights, strict=True))
            return cross_entropy(look_up(question, named, 1.0)[2], answer)

        found = largest_of_hessian(loss, list(start.values()), rng=rng)
        parts = np.split(found.vector, np.cumsum([w.size for w in start.values()])[:-1])

        def along(t, loss=loss, start=start, parts=parts):
            moved = (
                Tensor(w + t * part.reshape(w.shape))
                for w, part in zip(start.values(), parts, strict=True)
            )
            return loss(*moved).item()

        assert 100 < found.value < 450  # so 2/λ is at most .02, and a rate of .3 learns
        second = (along(1e-4) - 2 * along(0) + along(-1e-4)) / 1e-8
        assert second == pytest.approx(found.value, rel=0.01)  # a parabola, very near
        for t, parabola, most in ((0.1, 1, 0.1), (1, 100, 0.3)):
            assert found.value * t**2 / 2 == pytest.approx(parabola, rel=0.4)
            assert max(along(t), along(-t)) - along(0) < most


# ------------------------------------------------------------------ the chapter's numbers

FULL = ROOT / "demos" / "laboratory" / "results_full_steps.json"
LINES = [json.loads(line) for line in FULL.read_text("utf-8").splitlines()]


def test_the_chapters_steps_are_those_of_the_run_with_full():
    found = {tuple(key): Outcome(**one) for kind, key, one in LINES if kind == "trainings"}

    def of(optimizer, a, d_k, follow=0.0):
        """Return rate → the outcome of the trainings."""
        wanted = (optimizer, "unit", a, follow, d_k)
        return {key[5]: one for key, one in found.items() if key[:5] == wanted}

    def best(a, d_k):
        """Return the fewest mean steps, and their rate."""
        fit = of("sgd", a, d_k).items()
        return min((one.steps_mean, lr) for lr, one in fit if one.learned == one.trainings)

    steps = [f"{best(a, d_k)[0]:.0f}" for d_k in (512, 8) for a in (0.5, 0.0)]
    assert steps == ["20", "205", "37", "56"]
    for d_k in (8, 512, 2048):
        raw, scaled = of("sgd", 0.0, d_k), of("sgd", 0.5, d_k)
        assert raw[0.03].learned > 0 == scaled[0.03].learned == raw[1.0].learned
    assert raw[0.3].learned == 0
    for lr in (0.1, 0.3, 1.0):
        steps = [of("sgd", 0.5, d_k)[lr].steps_mean for d_k in (8, 512, 2048)]
        assert max(steps) < 1.35 * min(steps)
    assert best(1.0, 8)[1] < best(1.0, 512)[1]
    steps = [of("sgd", 1.0, d_k, f)[1.0].steps_mean for f in (1.0, 0.0) for d_k in (8, 512)]
    assert [f"{each:.0f}" for each in steps] == ["47", "39", "47", "231"]
    rates = (0.003, 0.01, 0.03)
    one, other = (of("adam", a, 512, follow) for a, follow in ((0.5, -0.5), (1.0, 0.0)))
    assert all(abs(one[lr].steps_mean / other[lr].steps_mean - 1) < 0.06 for lr in rates)
    for d_k in (8, 512):
        less, more = (of("adam", a, d_k) for a in (0.75, 1.0))
        assert all(less[lr].steps_mean < more[lr].steps_mean for lr in rates)


def test_the_chapters_first_steps_are_those_of_the_run_with_full():
    rises = {tuple(key): value for kind, key, value in LINES if kind == "first step"}
    power = r" +(-?1?\.\d\d)"
    rows = re.findall(rf"^    (a = \S|T5)  {3 * power}$", basin.__doc__, re.MULTILINE)
    for name, *powers in rows:
        exponent = {"0": 0.0, "½": 0.5, "¾": 0.75, "1": 1.0}
        key = ("t5", 0.0) if name == "T5" else ("unit", exponent[name[4:]])
        for optimizer, power in zip(("sgd", "adam", "adafactor"), powers, strict=True):
            assert abs(rises[optimizer, *key][0] - float(power)) <= 0.005
            assert rises[optimizer, *key][1] < 0.02
    assert len(rows) == 5
