"""Source text 004: its numbers, what is wrong in it, and its weights trained."""

import re

import numpy as np
import pytest

from attention import MultiHeadAttention, attention, attention_weights, qk_norm
from attention.scaled_dot_product import unit_length
from demos.sources import agreeing, as_numpy_prints, text_004
from demos.sources.text_004 import ANIMALS, ATTRIBUTES, AVERAGE, NAMES, QUERIES, Lookup, Retriever
from minigrad import Tensor, gradcheck, gradients, jacobian, mse
from tests.running import ROOT, whole

KITTEN, LIZARD, SALMON, WHALE, WOLF = range(5)
animals, attributes, queries = Tensor(ANIMALS), Tensor(ATTRIBUTES), Tensor(QUERIES)


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The demo, run once with its pass marks enforced: its folder and what it printed."""
    return whole("text_004", tmp_path_factory)


def softmax(scores):
    """The oracle."""
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


# ------------------------------------------------------------------ value: the printed numbers


def test_all_167_printed_numbers_come_back_as_text():
    ours = text_004.ours()
    assert list(ours) == list(text_004.PRINTED)
    for name, array in ours.items():
        assert text_004.as_text(array) == text_004.PRINTED[name].split(), name
    counts = {name: len(printed.split()) for name, printed in text_004.PRINTED.items()}
    assert sum(counts.values()) == 167 and text_004.LOST == ""


def test_the_28_outputs_are_counted_as_the_text_prints_them():
    # Lines that print an animal before and after stand under one name, 5 of them each time; so do
    # the two lines of `outputs` and of `outputs, again`. Two outputs that are shapes are left out.
    lines = dict.fromkeys(text_004.PRINTED, 1)
    lines |= dict.fromkeys(("outputs", "outputs, again"), 2)
    lines |= {name: 5 for name in lines if "before and after" in name}
    assert sum(lines.values()) == 28


def test_a_row_printed_by_itself_has_the_same_text():
    for name, array in text_004.ours().items():
        if "before and after" in name:
            alone = [text for row in array for text in as_numpy_prints(row)]
            assert alone == text_004.PRINTED[name].split()


def test_the_demos_first_line_counts_right():
    line = (ROOT / "demos" / "text_004.py").read_text(encoding="utf-8").splitlines()[0]
    assert "167 numbers, six slips" in line and len(text_004.SLIPS) == 6


def test_a_wrong_digit_is_seen():
    name, array = "mammal: output", text_004.ours()["mammal: output"]
    assert agreeing(text_004.PRINTED[name], text_004.as_text(array)) == 4
    assert agreeing(text_004.PRINTED[name], text_004.as_text(array * (1 + 1e-8))) < 4
    unscaled = attention(queries, animals, attributes, scale=1.0).data
    assert agreeing(text_004.PRINTED["outputs"], text_004.as_text(unscaled)) == 0


def test_the_oracle_agrees():
    weights = softmax(QUERIES @ ANIMALS.T / np.sqrt(3))
    np.testing.assert_allclose(attention_weights(queries, animals).data, weights, rtol=1e-12)
    output = attention(queries, animals, attributes).data
    np.testing.assert_allclose(output, weights @ ATTRIBUTES, rtol=1e-12)


# ------------------------------------------------------------------ value: the slips


def test_the_animals_do_change():
    moved = attention(animals, animals, animals).data - ANIMALS
    share = np.linalg.norm(moved, axis=1) / np.linalg.norm(ANIMALS, axis=1)
    np.testing.assert_allclose(share, [0.040, 0.393, 0.000, 0.169, 0.066], atol=5e-4)
    looks = attention_weights(animals, animals).data
    assert looks.argmax(axis=1).tolist() == [KITTEN, SALMON, SALMON, WOLF, WOLF]
    assert looks[LIZARD, SALMON] == pytest.approx(0.75, abs=5e-3)


def test_the_most_similar_mammal_gets_least():
    weights = attention_weights(queries, animals).data[0]
    mammals = [KITTEN, WHALE, WOLF]
    assert weights[mammals].argmin() == mammals.index(WHALE)
    cosine = (unit_length(queries[:1]) @ unit_length(animals).mT).data[0]
    distance = np.linalg.norm(QUERIES[0] - ANIMALS, axis=1)
    assert cosine.argmax() == distance.argmin() == WHALE


def test_a_longer_key_in_the_same_direction_gets_more():
    twice = np.concatenate([ANIMALS, 1.1 * ANIMALS[[WHALE]]])
    weights = attention_weights(queries[:1], Tensor(twice)).data[0]
    assert weights[-1] > 100 * weights[WHALE]


@pytest.mark.parametrize("scale", [0.1, 1.0, 100.0])
def test_with_lengths_of_1_every_animal_looks_most_at_itself(scale):
    unit = unit_length(animals)
    weights = attention_weights(unit, unit, scale=scale).data
    assert weights.argmax(axis=1).tolist() == list(range(5))
    attend = qk_norm()(animals, animals, animals, scale=scale).data
    np.testing.assert_allclose(attend, weights @ ANIMALS, rtol=1e-12)


def test_the_scaled_scores_are_far_from_a_spread_of_1():
    spread = (QUERIES @ ANIMALS.T).std(axis=1) / np.sqrt(3)
    assert (spread > 10).all()


def test_the_made_up_head_looks_at_salmon_whoever_asks():
    head = text_004.layer(1)
    weights = head.weights(animals).data[0]
    assert weights[:, SALMON].min() == pytest.approx(0.978, abs=5e-4)
    assert np.linalg.norm(head.w_k(animals).data, axis=1).argmax() == SALMON
    assert np.linalg.norm(ANIMALS, axis=1).argmax() == SALMON


def test_positive_projections_give_one_winner_mostly_the_longest_key():
    rng = np.random.default_rng(0)
    positive, signed = rng.random((2, 1000, 3, 2)), rng.uniform(-1, 1, (2, 1000, 3, 2))
    assert text_004.one_winner(*positive) > 0.75 > 0.5 > text_004.one_winner(*signed)
    keys = ANIMALS @ positive[1]
    weights = attention_weights(Tensor(ANIMALS @ positive[0]), Tensor(keys)).data
    winners = weights.argmax(axis=-1)  # (1000, 5)
    one = (winners == winners[:, :1]).all(axis=1)
    longest = np.linalg.norm(keys, axis=-1).argmax(axis=-1)
    assert (winners[one, 0] == longest[one]).mean() > 0.7


# ------------------------------------------------------------------ value: the steps left undone


def test_the_first_of_three_heads_is_the_texts():
    three, one = text_004.layer(3), text_004.layer(1)
    for name in ("w_q", "w_k", "w_v"):
        drawn = getattr(one, name).weight.data
        np.testing.assert_array_equal(getattr(three, name).weight.data[:, :2], drawn)
    np.testing.assert_array_equal(text_004.outputs(three).data[0], text_004.outputs(one).data[0])


def test_three_heads_and_w_o_are_three_loops():
    layer = text_004.layer(3)
    output = np.zeros((5, 3))
    for head in range(3):
        columns = slice(2 * head, 2 * head + 2)
        q, k, v = (
            ANIMALS @ projection.weight.data[:, columns]
            for projection in (layer.w_q, layer.w_k, layer.w_v)
        )
        output += softmax(q @ k.T / np.sqrt(2)) @ v @ layer.w_o.weight.data[columns]
    np.testing.assert_allclose(layer(animals).data, output, rtol=1e-12)


def test_the_draws_go_on_in_the_order_that_is_told():
    draw = np.random.RandomState(775)
    matrices = [draw.rand(3, 2) for _ in range(9)]  # W_Q, W_K, W_V of each head
    layer = text_004.layer(3)
    np.testing.assert_array_equal(layer.w_v.weight.data, np.concatenate(matrices[2::3], axis=1))
    np.testing.assert_array_equal(layer.w_o.weight.data, draw.rand(6, 3))


def test_three_made_up_heads_make_one_animal_of_five():
    layer = text_004.layer(3)
    assert layer.weights(animals).argmax(-1).tolist() == [[SALMON] * 5, [WOLF] * 5, [SALMON] * 5]
    output = layer(animals).data
    apart = np.linalg.norm(output - output.mean(axis=0)) / np.linalg.norm(output)
    assert apart < 0.003 and np.linalg.norm(ANIMALS - AVERAGE) / np.linalg.norm(ANIMALS) > 0.5


def test_the_trained_weights_pass_their_marks_and_the_ablations_fail_theirs(demo):
    _, printed = demo
    assert printed.count(": passed") == 7 and "FAILED" not in printed
    assert "167 of 167 numbers agree as text." in printed
    assert "look most at salmon before the training, and most at lizard after it" in printed
    assert (
        float(re.search(r"‖∂L/∂W_Q‖, is (\S+)\.$", printed, re.MULTILINE)[1]) < 1e-9
    )  # and stays there
    percent = r" +([\d.]+)%"
    found = re.findall(rf"^ +(.{{,20}}?) {{2,}}{percent[1:] + percent * 3}$", printed, re.MULTILINE)
    table = {name: [float(number) for number in numbers] for name, *numbers in found}
    assert list(table) == ["one head", "three heads", "questions from 0", "d_k = 1"]
    untrained_looks, _, looks, finds = range(4)
    assert table["one head"][looks] > 95 > 50 > table["one head"][untrained_looks]
    assert table["three heads"][finds] > 98 and table["three heads"][looks] < 50
    assert table["questions from 0"][looks] == table["questions from 0"][untrained_looks] == 20
    assert table["d_k = 1"][looks] <= 40


def test_the_trained_head_answers_mammal_and_was_never_asked_for_reptile(demo):
    _, printed = demo
    mammal, reptile = (
        [
            float(n)
            for n in re.search(rf"^ +{name}((?: +\d\.\d{{3}}){{5}})$", printed, re.M)[1].split()
        ]
        for name in ("mammal", "reptile")
    )
    assert np.argmax(mammal) == WHALE  # the most alike, by angle and by distance
    assert np.argmax(reptile) == SALMON  # the nearest is the lizard
    apart = np.linalg.norm(QUERIES[1] - ANIMALS, axis=1)
    assert apart.argmin() == LIZARD and apart.min() > 4
    assert "trained: 5 of 5 keys are corners of their hull" in printed


def test_it_leaves_its_pictures(demo):
    stems = ("weights", "heads", "loss", "plane", "scale", "graph_mammal", "graph_reptile")
    expected = {f"{stem}.{ending}" for stem in stems for ending in ("png", "svg")}
    assert {path.name for path in demo[0].iterdir() if path.suffix != ".safetensors"} == expected


# ------------------------------------------------------------------ derivative


@pytest.mark.parametrize("query", [0, 1], ids=["mammal", "reptile"])
def test_the_queries_derivatives_of_both_orders(query):
    report = gradcheck(attention, QUERIES[query : query + 1], ANIMALS, ATTRIBUTES)
    assert report and len(report.comparisons) == 15


@pytest.mark.parametrize("num_heads", [1, 3])
def test_the_made_up_layers_derivatives_of_both_orders(num_heads):
    layer = text_004.layer(num_heads)
    projections = (layer.w_q, layer.w_k, layer.w_v, layer.w_o)

    def output(x, *weights):
        for projection, weight in zip(projections, weights, strict=True):
            projection.weight = weight
        return layer(x)

    assert gradcheck(output, ANIMALS, *(projection.weight.data for projection in projections))


def test_salmons_own_row_is_too_one_hot_for_finite_differences():
    # It has all but 1e-6 of its weight on itself. One of 15 derivatives is then too small to be
    # confirmed to 1e-8; as far as the differences can see, it agrees.
    report = gradcheck(attention, ANIMALS[[SALMON]], ANIMALS, ANIMALS)
    assert [c.what for c in report.unresolved] == ["∂/∂(input 1) of ∂L/∂(input 2)"]
    (small,) = report.unresolved
    assert small.norm < 1e-5 and small.error < small.resolution < 1e-7


def test_the_tasks_derivatives_of_both_orders():
    features, which = text_004.questions(np.random.default_rng(0), 2, 0.3)
    lookup = Lookup()

    def loss(w_q, bias, w_k):
        lookup.w_q.weight, lookup.w_q.bias, lookup.w_k.weight = w_q, bias, w_k
        return mse(lookup(Tensor(features - AVERAGE)), ATTRIBUTES[which])

    assert gradcheck(
        loss, *(t.data for t in (lookup.w_q.weight, lookup.w_q.bias, lookup.w_k.weight))
    )


def test_every_weight_of_three_heads_learns():
    features, which = text_004.questions(np.random.default_rng(0), 3, 0.3)
    model = Retriever(rng=np.random.default_rng(0))
    mse(model(Tensor(features - AVERAGE)), ATTRIBUTES[which]).backward()
    for name, parameter in model.named_parameters():
        assert (np.linalg.norm(parameter.grad) > 1e-3) == (name != "attend.w_k.bias"), name


def test_mammals_gradient_is_two_hundred_times_reptiles():
    slopes = [
        np.linalg.norm(jacobian(lambda q: attention(q, animals, attributes))(query[None]))
        for query in QUERIES
    ]
    np.testing.assert_allclose(slopes, [2.1459, 0.01007], rtol=1e-3)


def test_at_its_best_scale_reptiles_gradient_is_68_times_that_at_1_over_root_3():
    def slope(query, scale):
        answer = jacobian(lambda q: attention(q, animals, attributes, scale=scale))
        return np.linalg.norm(answer(query[None]))

    scales = np.geomspace(0.003, 3, 61)
    curves = np.array([[slope(query, scale) for scale in scales] for query in QUERIES])
    best = scales[curves.argmax(axis=1)]
    assert best[0] == pytest.approx(0.6, rel=0.1) and best[1] == pytest.approx(0.053, rel=0.1)
    assert curves[1].max() / slope(QUERIES[1], None) == pytest.approx(68, abs=1)


# ------------------------------------------------------------------ law


@pytest.mark.parametrize("seed", range(3))
def test_no_key_wins_all_queries_that_are_measured_from_their_average(seed):
    # They sum to 0, so each key's scores do; one that led every row would have a sum above 0.
    rng = np.random.default_rng(seed)
    assert text_004.one_winner(*rng.random((2, 500, 3, 2)), AVERAGE) == 0
    scores = (ANIMALS - AVERAGE) @ rng.random((3, 2)) @ (ANIMALS @ rng.random((3, 2))).T
    np.testing.assert_allclose(scores.sum(axis=0), 0, atol=1e-12)


def test_keys_measured_from_another_point_change_nothing():
    w_q, w_k = (np.random.default_rng(seed).random((3, 2)) for seed in (0, 1))
    here = attention_weights(Tensor(ANIMALS @ w_q), Tensor(ANIMALS @ w_k)).data
    there = attention_weights(Tensor(ANIMALS @ w_q), Tensor((ANIMALS - AVERAGE) @ w_k)).data
    np.testing.assert_allclose(there, here, rtol=1e-9)


def test_queries_measured_from_another_point_are_a_bias_of_w_q():
    moved, biased = Lookup(), Lookup()
    biased.w_q.bias.data = -AVERAGE @ biased.w_q.weight.data
    np.testing.assert_allclose(
        moved.weights(Tensor(QUERIES - AVERAGE)).data, biased.weights(queries).data, rtol=1e-9
    )


def test_a_bias_of_the_keys_has_no_gradient():
    features, _ = text_004.questions(np.random.default_rng(0), 3, 0.3)
    attend = MultiHeadAttention(3, 1, d_k=2, d_v=2, bias=True, rng=np.random.default_rng(0))
    x = Tensor(features - AVERAGE)
    pushed, other = gradients(attend(x).sum(), [attend.w_k.bias, attend.w_q.bias])
    assert np.abs(pushed).max() < 1e-12 * max(1, np.abs(other).max()) and np.abs(other).max() > 1e-3


def test_with_one_feature_only_two_keys_can_win():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        q, k = rng.standard_normal((500, 1)), rng.standard_normal((5, 1))
        winners = set(attention_weights(Tensor(q), Tensor(k)).argmax(-1).tolist())
        assert winners == {int(k.argmax()), int(k.argmin())}


def test_only_a_corner_of_the_hull_can_win():
    keys = text_004.layer(1).w_k(animals).data
    corners = text_004.corners(keys)
    assert sorted(corners) == [KITTEN, LIZARD, SALMON, WHALE]
    # The wolf lies inside: it is an average of the corners.
    q = 100 * np.random.default_rng(0).standard_normal((20_000, 2))
    assert set(attention_weights(Tensor(q), Tensor(keys)).argmax(-1).tolist()) == set(corners)
    assert sorted(text_004.corners(np.array([[0, 0], [1, 0], [0, 1], [0.2, 0.2]]))) == [0, 1, 2]


def test_attributes_are_retrieved_by_the_nearest():
    assert text_004.retrieved(ATTRIBUTES + 0.4).tolist() == list(range(len(NAMES)))


# ------------------------------------------------------------------ refusal


def test_the_texts_own_w_v_does_not_fit_the_attributes():
    with pytest.raises(ValueError, match="3"):
        text_004.layer(1)(animals, animals, attributes)
