"""Tests: the task that one head fails, what is provably lost, and what two heads make of it."""

import numpy as np
import pytest

from attention import MultiHeadAttention
from demos.texts._two_places import NUMBERS, PLACES, WIDTH, BeforeAndAfter, least_lost, questions
from minigrad import Tensor, mse, no_grad
from minigrad.optim import Adam, warmup_cosine

# ------------------------------------------------------------------ value


def test_a_place_asks_for_the_numbers_before_it_and_then_for_those_after_it():
    numbers, answers = questions(np.random.default_rng(0), 3)
    assert numbers.shape == (3, PLACES, NUMBERS) and answers.shape == (3, PLACES - 2, 2 * NUMBERS)
    for t in range(1, PLACES - 1):
        asked = np.concatenate([numbers[:, t - 1], numbers[:, t + 1]], axis=-1)
        np.testing.assert_array_equal(answers[:, t - 1], asked)


@pytest.mark.parametrize("num_heads", [1, 2])
def test_the_layer_equals_its_definition_in_loops_and_its_weights_ignore_the_numbers(num_heads):
    model = BeforeAndAfter(num_heads, rng=np.random.default_rng(1))
    numbers, _ = questions(np.random.default_rng(2), 2)
    q, k, v, o = (layer.weight.data for layer in (model.w_q, model.w_k, model.w_v, model.w_o))
    d = WIDTH // num_heads
    expected = np.zeros((2, PLACES - 2, 2 * NUMBERS))
    for h in range(num_heads):
        part = slice(h * d, h * d + d)
        for t in range(1, PLACES - 1):
            e = np.exp([q[t, part] @ k[s, part] / np.sqrt(d) for s in range(PLACES)])
            np.testing.assert_allclose(model.weights()[h, t - 1], e / e.sum(), rtol=1e-12)
            average = np.einsum("s,bsn->bn", e / e.sum(), numbers)
            expected[:, t - 1] += average @ v[:, part] @ o[part]
    np.testing.assert_allclose(model(Tensor(numbers)).data, expected, rtol=1e-10)


# ------------------------------------------------------------------ law: what is lost


def rows(*weights):
    """Return heads with these weights on the places before, at and after each query: (H, T, S)"""
    found = np.zeros((len(weights), PLACES - 2, PLACES))
    for h, three in enumerate(weights):
        for t in range(1, PLACES - 1):
            found[h, t - 1, t - 1 : t + 2] = three
    return found


@pytest.mark.parametrize(
    ("heads", "lost"),
    [
        ([(0.5, 0, 0.5)], 0.5),
        ([(1, 0, 0)], 0.5),
        ([(0.25, 0.5, 0.25)], 1 - (2 * 0.25**2) / (2 * (2 * 0.25**2 + 0.5**2))),
        ([(0, 1, 0)], 1),
        ([(1, 0, 0), (0, 0, 1)], 0),
        ([(0.7, 0, 0.3), (0.7, 0, 0.3)], 0.5),  # a second head that repeats the first
        ([(0.5, 0.2, 0.3), (0.2, 0.6, 0.2), (0.1, 0.1, 0.8)], 0),
    ],
)
def test_the_least_that_is_lost_is_half_for_one_head_and_nothing_for_two_that_differ(heads, lost):
    assert least_lost(rows(*heads)) == pytest.approx(lost, abs=1e-9)


@pytest.mark.parametrize("num_heads", [1, 2])
def test_the_least_that_is_lost_is_what_least_squares_leaves(num_heads):
    rng = np.random.default_rng(num_heads)
    weights = rng.dirichlet(np.ones(PLACES), (num_heads, PLACES - 2))  # any rows that sum to 1
    numbers = rng.standard_normal((200_000, PLACES))
    left = []
    for t in range(1, PLACES - 1):
        averages, asked = numbers @ weights[:, t - 1].T, numbers[:, [t - 1, t + 1]]
        found, *_ = np.linalg.lstsq(averages, asked, rcond=None)
        left.append(np.mean((averages @ found - asked) ** 2))
    assert least_lost(weights) == pytest.approx(np.mean(left), abs=0.005)
    assert num_heads > 1 or least_lost(weights) > 0.5


def test_no_function_of_one_average_saves_more_than_half():
    """The best function of m is the mean of the answer given m: here in 200 narrow classes."""
    p, (before, after) = 0.7, np.random.default_rng(0).standard_normal((2, 400_000))
    average = p * before + (1 - p) * after
    at = np.searchsorted(np.quantile(average, np.linspace(0, 1, 201)[1:-1]), average)
    lost = [np.var(x - (np.bincount(at, x) / np.bincount(at))[at]) for x in (before, after)]
    assert np.mean(lost) == pytest.approx(0.5, abs=0.005)
    other = (1 - p) * before - p * after
    assert np.abs(np.bincount(at, other) / np.bincount(at)).max() < 0.1  # nothing is known of it


@pytest.mark.slow
def test_keys_made_from_the_numbers_too_pass_on_a_little_of_them():
    rng, width = np.random.default_rng(0), 2 * NUMBERS
    places = np.broadcast_to(3 * np.eye(PLACES, width - NUMBERS), (64, PLACES, width - NUMBERS))
    model = MultiHeadAttention(width, 1, rng=rng)
    optimizer, losses = Adam(model.parameters()), []
    for step in range(1, 501):
        numbers, answers = questions(rng, 64)
        x = Tensor(np.concatenate([numbers, places], axis=-1))
        loss = mse(model(x)[:, 1:-1], answers)
        optimizer.lr = warmup_cosine(step, peak=0.03, warmup=50, total=500)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    with no_grad():
        weights = model.weights(x).data
    assert np.mean(losses[-50:]) == pytest.approx(0.47, abs=0.01)
    assert weights.std(axis=0).max() > 0.005  # they depend on the numbers
