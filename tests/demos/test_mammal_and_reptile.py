"""Tests: "mammal and reptile": its slips, the laws behind them, and the task of its training."""

import numpy as np
import pytest

from attention import attention, attention_weights
from attention.scaled_dot_product import unit_length
from demos.texts.sources import agreeing, as_numpy_prints, of_weights
from demos.texts.sources import mammal_and_reptile as source
from demos.texts.sources.mammal_and_reptile import (
    ANIMALS,
    ATTRIBUTES,
    AVERAGE,
    QUERIES,
    Lookup,
    Retriever,
)
from minigrad import Tensor, gradcheck, mse
from minigrad.optim import Adam, clip_gradients, warmup_cosine

KITTEN, LIZARD, SALMON, WHALE, WOLF = range(5)
animals, attributes, queries = Tensor(ANIMALS), Tensor(ATTRIBUTES), Tensor(QUERIES)


def softmax(scores):
    """The oracle."""
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def questions(each, seed=0):
    """Noisy questions measured from the average animal, and the attributes that answer them."""
    features, which = source.questions(np.random.default_rng(seed), each, 0.3)
    return Tensor(features - AVERAGE), ATTRIBUTES[which]


# ------------------------------------------------------------------ value


def test_a_row_printed_by_itself_has_the_same_text():
    for name, array in source.ours().items():
        if "before and after" in name:
            alone = [text for row in array for text in as_numpy_prints(row)]
            assert alone == source.PRINTED[name].split()


def test_a_relative_error_of_1e_8_and_a_missing_scale_are_seen():
    name, array = "mammal: output", source.ours()["mammal: output"]
    assert agreeing(source.PRINTED[name], source.as_text(array * (1 + 1e-8))) < 4
    unscaled = attention(queries, animals, attributes, scale=1.0).data
    assert agreeing(source.PRINTED["outputs"], source.as_text(unscaled)) == 0


def test_the_animals_do_change():
    looks = softmax(ANIMALS @ ANIMALS.T / np.sqrt(3))
    moved = np.linalg.norm(looks @ ANIMALS - ANIMALS, axis=1) / np.linalg.norm(ANIMALS, axis=1)
    np.testing.assert_allclose(moved, [0.040, 0.393, 0.000, 0.169, 0.066], atol=5e-4)
    assert looks.argmax(axis=1).tolist() == [KITTEN, SALMON, SALMON, WOLF, WOLF]
    assert source.at_themselves(ANIMALS) == 3 and source.at_themselves(np.eye(2)[[0, 0]]) == 1
    assert (ANIMALS.mean().round(1), ANIMALS.var().round(1)) == (4.5, 8.6)


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


def test_positive_projections_give_one_winner_mostly_the_longest_key():
    rng = np.random.default_rng(0)
    positive, signed = rng.random((2, 1000, 3, 2)), rng.uniform(-1, 1, (2, 1000, 3, 2))
    for (w_q, w_k), origin in ((positive, 0.0), (signed, 0.0), (positive, AVERAGE)):
        winners = np.einsum("if,nfd,ngd,jg->nij", ANIMALS - origin, w_q, w_k, ANIMALS).argmax(-1)
        one = (winners == winners[:, :1]).all(axis=1)
        assert source.one_winner(w_q, w_k, origin) == one.mean()
        if w_q is positive[0] and one.any():
            longest = np.linalg.norm(ANIMALS @ w_k, axis=-1).argmax(axis=-1)
            assert (winners[one, 0] == longest[one]).mean() > 0.7


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
    np.testing.assert_array_equal(source.outputs(three).data[0], source.outputs(one).data[0])


def test_three_made_up_heads_make_one_animal_of_five():
    layer, one = source.layer(3), source.layer(1)
    assert layer.weights(animals).argmax(-1).tolist() == [[SALMON] * 5, [WOLF] * 5, [SALMON] * 5]
    assert one.weights(animals).data[0, :, SALMON].min() == pytest.approx(0.978, abs=5e-4)
    assert np.linalg.norm(one.w_k(animals).data, axis=1).argmax() == SALMON
    assert np.linalg.norm(ANIMALS, axis=1).argmax() == SALMON
    assert np.linalg.norm(ANIMALS - AVERAGE) > 0.5 * np.linalg.norm(ANIMALS)


@pytest.mark.parametrize(("seed", "lost"), [(0, [SALMON, WHALE]), (1, [])])
def test_a_gentler_training_gets_away_from_the_lizard(seed, lost):
    rng, model = np.random.default_rng(seed), Lookup()
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


def test_the_slope_of_reptiles_answer_is_68_times_below_its_best():
    for query in QUERIES:
        for scale in source.SCALES.values():
            p = softmax((scale or 3**-0.5) * (ANIMALS @ query))
            spread, slope = source.at_scale(query, scale)
            assert spread == pytest.approx(-(p * np.log(p)).sum() / np.log(5), abs=1e-9)
            jacobian = ATTRIBUTES.T @ (np.diag(p) - np.outer(p, p)) @ ANIMALS  # (4, 3)
            assert slope == pytest.approx((scale or 3**-0.5) * np.linalg.norm(jacobian), rel=1e-7)
    default = [source.at_scale(query)[1] for query in QUERIES]
    np.testing.assert_allclose(default, [2.1459, 0.01007], rtol=1e-3)
    scales = np.geomspace(0.003, 3, 61)
    slopes = np.array([[source.at_scale(query, s)[1] for s in scales] for query in QUERIES])
    assert scales[slopes.argmax(axis=1)] == pytest.approx([0.6, 0.053], rel=0.1)
    assert slopes[1].max() / default[1] == pytest.approx(68, abs=1)


# ------------------------------------------------------------------ derivative


@pytest.mark.parametrize("num_heads", [1, 3])
def test_the_made_up_layers_derivatives_of_both_orders(num_heads):
    layer = source.layer(num_heads)
    assert gradcheck(of_weights(layer), ANIMALS, *(p.data for p in layer.parameters()))


def test_salmons_own_row_is_too_one_hot_for_finite_differences():
    # It has all but 1e-6 of its weight on itself. One of 15 derivatives along these directions is
    # then too small to be confirmed to 1e-8; as far as the differences can see, it agrees.
    directions = np.random.default_rng(0)
    report = gradcheck(attention, ANIMALS[[SALMON]], ANIMALS, ANIMALS, rng=directions)
    assert [c.what for c in report.unresolved] == ["∂/∂(input 1) of ∂L/∂(input 2)"]
    (small,) = report.unresolved
    assert small.norm < 1e-5 and small.error < small.resolution < 1e-7


def test_the_tasks_derivatives_of_both_orders():
    (asked, answers), lookup = questions(2), Lookup()

    def loss(w_q, bias, w_k):
        lookup.w_q.weight, lookup.w_q.bias, lookup.w_k.weight = w_q, bias, w_k
        return mse(lookup(asked), answers)

    assert gradcheck(loss, lookup.w_q.weight.data, lookup.w_q.bias.data, lookup.w_k.weight.data)


def test_every_weight_of_three_heads_learns():
    (asked, answers), model = questions(3), Retriever(rng=np.random.default_rng(0))
    mse(model(asked), answers).backward()
    for name, parameter in model.named_parameters():
        size = np.linalg.norm(parameter.grad)  # a bias of the keys adds one number to all scores
        assert size < 1e-12 if name == "attend.w_k.bias" else size > 1e-3, name


# ------------------------------------------------------------------ law


@pytest.mark.parametrize("seed", range(3))
def test_no_key_wins_all_queries_that_are_measured_from_their_average(seed):
    # They sum to 0, so each key's scores do; one that led every row would have a sum above 0.
    rng = np.random.default_rng(seed)
    assert source.one_winner(*rng.random((2, 500, 3, 2)), AVERAGE) == 0
    scores = (ANIMALS - AVERAGE) @ rng.random((3, 2)) @ (ANIMALS @ rng.random((3, 2))).T
    np.testing.assert_allclose(scores.sum(axis=0), 0, atol=1e-12)


def test_queries_measured_from_another_point_are_a_bias_of_w_q():
    moved, biased = Lookup(), Lookup()
    biased.w_q.bias.data = -AVERAGE @ biased.w_q.weight.data
    moved, biased = moved.weights(Tensor(QUERIES - AVERAGE)), biased.weights(queries)
    np.testing.assert_allclose(moved.data, biased.data, rtol=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_with_one_feature_only_two_keys_can_win(seed):
    rng = np.random.default_rng(seed)
    q, k = rng.standard_normal((500, 1)), rng.standard_normal((5, 1))
    winners = set(attention_weights(Tensor(q), Tensor(k)).argmax(-1).tolist())
    assert winners == {int(k.argmax()), int(k.argmin())}


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
