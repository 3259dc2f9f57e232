"""Chapter 14 · Positions: their formulas, and what each promises about shifts and distances."""

import math

import numpy as np
import pytest

from attention import attention
from attention.positions import (
    LearnedPositions,
    RelativeBias,
    SinusoidalPositions,
    alibi,
    distances,
    rotary,
    sinusoidal,
)
from minigrad import Tensor, gradcheck, gradients

random = np.random.default_rng(3)
B, T, S, H, D_K, D_MODEL = 2, 3, 5, 7, 22, 34  # features come in pairs


def t(*shape, dtype=float):
    return Tensor(random.standard_normal(shape), dtype=dtype, requires_grad=True)


def learned(rows=11):
    return LearnedPositions(rows, D_MODEL, rng=np.random.default_rng(5))


# ---------------------------------------------------------------- value


@pytest.mark.parametrize("start", [0, 7])
def test_sinusoidal_rows_are_the_papers_equation(start):
    rows = sinusoidal(T, D_MODEL, start=start)
    assert rows.shape == (T, D_MODEL)
    for row, position in enumerate(range(start, start + T)):
        for i in range(D_MODEL // 2):
            angle = position / 10_000 ** (2 * i / D_MODEL)
            assert rows[row, 2 * i] == pytest.approx(math.sin(angle), abs=1e-14)
            assert rows[row, 2 * i + 1] == pytest.approx(math.cos(angle), abs=1e-14)


@pytest.mark.parametrize("start", [0, 7])
def test_positions_are_added_row_by_row_to_every_sequence(start):
    x, made = t(B, T, D_MODEL), learned()
    np.testing.assert_array_equal(made(x, start).data, x.data + made.weight.data[start : start + T])
    fixed = SinusoidalPositions()
    np.testing.assert_array_equal(
        fixed(x, start).data, x.data + sinusoidal(T, D_MODEL, start=start)
    )
    assert [p.shape for p in made.parameters()] == [(11, D_MODEL)]
    assert fixed.parameters() == []


pairs = pytest.mark.parametrize("pairs", ["neighbours", "halves"])


def pair(i, d_k, pairs):
    return [2 * i, 2 * i + 1] if pairs == "neighbours" else [i, i + d_k // 2]


@pairs
@pytest.mark.parametrize(("start", "base"), [(0, 10_000.0), (7, 10.0)])
def test_rotary_turns_each_pair_by_its_angle(start, base, pairs):
    x = t(B, H, T, D_K)
    expected = np.zeros(x.shape)
    for row, position in enumerate(range(start, start + T)):
        for i in range(D_K // 2):
            angle = position / base ** (2 * i / D_K)
            turn = [[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]]
            at = pair(i, D_K, pairs)
            expected[..., row, at] = x.data[..., row, at] @ np.transpose(turn)
    found = rotary(x, start, base=base, pairs=pairs).data
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("num_heads", [7, 8])
def test_alibi_subtracts_a_slope_times_the_distance(num_heads):
    bias = alibi(num_heads, T, S)
    for h, t, s in np.ndindex(num_heads, T, S):
        slope = 2 ** (-8 * (h + 1) / num_heads)
        assert bias[h, t, s] == pytest.approx(-slope * abs(S - T + t - s), rel=1e-14)
    assert bias.shape == (num_heads, T, S)


@pytest.mark.parametrize("reach", [2, 11])
def test_a_relative_bias_is_one_learned_number_a_head_and_distance_up_to_its_reach(reach):
    made = RelativeBias(H, reach, rng=np.random.default_rng(5))
    assert made.weight.shape == (2 * reach + 1, H)
    bias = made(T, S).data
    for h, t, s in np.ndindex(H, T, S):
        place = max(-reach, min(reach, S - T + t - s))
        assert bias[h, t, s] == made.weight.data[place + reach, h]
    assert bias.shape == (H, T, S)


# ---------------------------------------------------------------- derivative


def test_a_number_of_a_relative_bias_gets_the_gradient_of_every_pair_at_its_distance():
    made = RelativeBias(H, 2, rng=np.random.default_rng(5))
    g = random.standard_normal((H, T, S))
    (found,) = gradients(made(T, S), [made.weight], g)
    place = np.clip(distances(T, S), -2, 2)
    for row, distance in enumerate(range(-2, 3)):
        expected = np.where(place == distance, g, 0).sum(axis=(1, 2))
        np.testing.assert_allclose(found[row], expected, rtol=1e-12, atol=1e-14)


# ---------------------------------------------------------------- law


def test_without_positions_a_sentence_is_a_bag_of_words_and_with_them_it_is_not():
    x, order = t(B, S, 6), [1, 2, 3, 4, 0]
    shaken = x[:, order]
    y = attention(x, x, x).data
    np.testing.assert_allclose(attention(x, shaken, shaken).data, y, rtol=1e-11, atol=1e-13)
    y = attention(rotary(x), rotary(x), x).data
    assert abs(attention(rotary(x), rotary(shaken), shaken).data - y).max() > 0.01
    y = attention(x, x, x, score_bias=alibi(8, S)[:1]).data
    assert abs(attention(x, shaken, shaken, score_bias=alibi(8, S)[:1]).data - y).max() > 0.01


@pytest.mark.parametrize("shift", [1, 7, 100])
def test_a_shift_of_sinusoidal_positions_is_linear(shift):
    """Row t + Δ is row t times one matrix, the same for all t: the turn of each pair by Δ."""
    rows, later = sinusoidal(50, D_MODEL), sinusoidal(50, D_MODEL, start=shift)
    matrix = np.zeros((D_MODEL, D_MODEL))
    for i in range(0, D_MODEL, 2):
        angle = shift / 10_000 ** (i / D_MODEL)
        c, s = math.cos(angle), math.sin(angle)
        matrix[i : i + 2, i : i + 2] = [[c, -s], [s, c]]
    np.testing.assert_allclose(rows @ matrix, later, atol=1e-12)
    np.testing.assert_allclose(matrix @ matrix.T, np.eye(D_MODEL), atol=1e-14)


@pytest.mark.parametrize("shift", [1, 7, 1000])
def test_logits_of_turned_queries_and_keys_depend_on_differences_of_positions_only(shift):
    q, k = t(B, H, T, D_K), t(B, H, S, D_K)
    here = rotary(q, 2) @ rotary(k, 0).mT
    there = rotary(q, 2 + shift) @ rotary(k, shift).mT
    np.testing.assert_allclose(here.data, there.data, rtol=1e-9, atol=1e-11)
    elsewhere = rotary(q, 2 + shift) @ rotary(k, 0).mT
    assert abs(here.data - elsewhere.data).max() > 0.1


@pytest.mark.parametrize("bias", [lambda *n: alibi(H, *n), RelativeBias(H, 2, rng=random)])
def test_the_bias_of_the_last_queries_is_the_last_rows_of_the_bias_of_all(bias):
    whole, last = bias(S), bias(T, S)
    np.testing.assert_array_equal(np.asarray(whole.data)[:, -T:], np.asarray(last.data))


@pairs
def test_rotary_is_one_node_whose_gradient_is_turned_back(pairs):
    x = Tensor(np.random.default_rng(0).standard_normal((2, 3, 5, 4)), requires_grad=True)
    y = rotary(x, 2, pairs=pairs)
    assert y.node.name == "rotate_pairs" and y.node.inputs == (x,)
    (back,) = gradients(y, [x], y.data)
    np.testing.assert_allclose(back, x.data, rtol=1e-13)
    assert gradcheck(lambda x: rotary(x, 2, pairs=pairs), x.data)


@pytest.mark.parametrize("add", [rotary, SinusoidalPositions()])
def test_integers_get_positions_that_are_not_cut_to_integers(add):
    x = np.arange(8).reshape(2, 4)
    np.testing.assert_array_equal(add(Tensor(x), 1).data, add(Tensor(x.astype(float)), 1).data)
    assert add(Tensor(x, dtype=np.float32), 1).dtype == np.float32
