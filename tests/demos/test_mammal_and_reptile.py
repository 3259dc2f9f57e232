"""Tests: "mammal and reptile": its slips, the laws behind them, and the task of its training."""

import numpy as np
import pytest

from attention import attention_weights
from attention.scaled_dot_product import unit_length
from demos.texts.sources import as_numpy_prints
from demos.texts.sources import mammal_and_reptile_text as source
from demos.texts.sources.mammal_and_reptile_text import ANIMALS, ATTRIBUTES, AVERAGE, QUERIES
from minigrad import Tensor, mse
from minigrad.optim import Adam, clip_gradients, warmup_cosine

KITTEN, LIZARD, SALMON, WHALE, WOLF = range(5)
animals, attributes, queries = Tensor(ANIMALS), Tensor(ATTRIBUTES), Tensor(QUERIES)


def softmax(scores):
    """Return the softmax of the scores, as an oracle."""
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


# ------------------------------------------------------------------ value


def test_a_row_printed_by_itself_has_the_same_text():
    for name, array in source.ours().items():
        if "before and after" in name:
            alone = [text for row in array for text in as_numpy_prints(row)]
            assert alone == source.PRINTED[name].split()


def test_the_most_similar_mammal_gets_least_and_a_longer_key_gets_more():
    weights = attention_weights(queries, animals).data[0]
    assert weights[[KITTEN, WHALE, WOLF]].argmin() == 1
    cosine = (unit_length(queries[:1]) @ unit_length(animals).mT).data[0]
    distance = np.linalg.norm(QUERIES[:, None] - ANIMALS, axis=-1)
    assert cosine.argmax() == distance[0].argmin() == WHALE
    lengths = np.linalg.norm(ANIMALS, axis=1) * np.linalg.norm(QUERIES[0])
    np.testing.assert_allclose(cosine, ANIMALS @ QUERIES[0] / lengths, rtol=1e-12)
    assert distance[1].argmin() == LIZARD and distance[1].min() > 4  # reptile's, in no training
    twice = np.concatenate([ANIMALS, 1.1 * ANIMALS[[WHALE]]])
    weights = attention_weights(queries[:1], Tensor(twice)).data[0]
    assert weights[-1] > 100 * weights[WHALE]


# ------------------------------------------------------------------ value: the steps left undone


def test_the_draws_go_on_in_the_order_that_is_told_and_the_first_head_is_the_texts():
    draw = np.random.RandomState(775)
    matrices = [draw.rand(3, 2) for _ in range(9)]  # W_Q, W_K, W_V of each head
    three, one = source.layer(3), source.layer(1)
    for i, name in enumerate(("w_q", "w_k", "w_v")):
        drawn = getattr(three, name).weight.data
        np.testing.assert_array_equal(drawn, np.concatenate(matrices[i::3], axis=1))
        np.testing.assert_array_equal(drawn[:, :2], getattr(one, name).weight.data)
    np.testing.assert_array_equal(three.w_o.weight.data, draw.rand(6, 3))


@pytest.mark.slow  # ("Try it" asks for this)
@pytest.mark.parametrize(("seed", "lost"), [(0, [SALMON, WHALE]), (1, [])])
def test_a_gentler_training_gets_away_from_the_lizard(seed, lost):
    rng, model = np.random.default_rng(seed), source.Lookup()
    optimizer = Adam(model.parameters())
    for step in range(1, 3001):
        features, which = source.questions(rng, 13, 0.3)
        loss = mse(model(Tensor(features)), ATTRIBUTES[which])
        optimizer.lr = warmup_cosine(step, peak=0.03, warmup=300, total=3000)
        optimizer.zero_grad()
        loss.backward()
        clip_gradients(model.parameters(), 1.0)
        optimizer.step()
    assert source.retrieved(ATTRIBUTES + 0.4).tolist() == list(range(5))
    found = source.retrieved(model(animals).data)
    assert np.flatnonzero(found != range(5)).tolist() == lost


def test_the_slope_of_an_answer_at_a_scale_is_the_length_of_its_jacobian():
    for query in QUERIES:
        for scale in (1.0, None, 1 / 3):
            p = softmax((scale or 3**-0.5) * (ANIMALS @ query))
            spread, slope = source.at_scale(query, scale)
            assert spread == pytest.approx(-(p * np.log(p)).sum() / np.log(5), abs=1e-9)
            jacobian = ATTRIBUTES.T @ (np.diag(p) - np.outer(p, p)) @ ANIMALS  # (4, 3)
            assert slope == pytest.approx((scale or 3**-0.5) * np.linalg.norm(jacobian), rel=1e-7)


# ------------------------------------------------------------------ law


def test_queries_measured_from_another_point_are_a_bias_of_w_q():
    moved, biased = source.Lookup(), source.Lookup()
    biased.w_q.bias.data = -AVERAGE @ biased.w_q.weight.data
    moved, biased = moved.weights(Tensor(QUERIES - AVERAGE)), biased.weights(queries)
    np.testing.assert_allclose(moved.data, biased.data, rtol=1e-9)


def test_only_a_corner_of_the_hull_can_win():
    keys = source.layer(1).w_k(animals).data
    corners = source.corners(keys)
    assert sorted(corners) == [KITTEN, LIZARD, SALMON, WHALE]  # the wolf is an average of these
    q = 100 * np.random.default_rng(0).standard_normal((20_000, 2))
    assert set(attention_weights(Tensor(q), Tensor(keys)).argmax(-1).tolist()) == set(corners)
    assert sorted(source.corners(np.array([[0, 0], [1, 0], [0, 1], [0.2, 0.2]]))) == [0, 1, 2]


# ------------------------------------------------------------------ refusal


def test_the_texts_own_w_v_does_not_fit_the_attributes():
    with pytest.raises(ValueError, match="3"):
        source.layer(1)(animals, animals, attributes)
