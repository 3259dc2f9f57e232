"""Tests: "I love Transformers": its slips, and the gradients that the text does not show."""

import numpy as np
import pytest

from attention import merge_heads, split_heads
from attention.maps import entropy
from demos.texts import _seven_words
from demos.texts._tensors import draw_looks, draw_orders
from demos.texts.sources import love_transformers as source
from demos.texts.sources import numbers, of_weights
from minigrad import Tensor, concatenate, gradcheck, gradients, jacobian, softmax
from minigrad.nn import xavier_uniform
from minigrad.optim import SGD

OURS = source.ours()
RAW = OURS["Q'"] @ np.stack([OURS["K'₁"], OURS["K'₂"]]).mT  # (H, T, S)


def head(number, *, unit=False):
    """Σ output of one head as a function, and its points X, W_Q, W_K, W_V, W_O."""
    x, layer = source.layer(unit=unit)
    alone = source.one_head(layer, number - 1)
    return source.sum_of_head(alone), [x, *alone.parameters()]


def arrays(points):
    return [point.data for point in points]


# ------------------------------------------------------------------ value


def test_another_order_of_the_draws_gives_other_weights():
    draw = np.random.RandomState(0)
    draw.uniform(-1, 1, (4, 2))  # W_Q before the input
    assert not np.array_equal(draw.randint(10, size=(3, 4)), OURS["input"])


def by_the_text(n, d_model, h, seed):
    """The text's own lines, one head after the other: X, the weights, and the output."""
    draw, d_k = np.random.RandomState(seed), d_model // h

    def xavier(rows, columns):
        limit = np.sqrt(6 / (rows + columns))
        return draw.uniform(-limit, limit, (rows, columns))

    X = draw.randint(10, size=(n, d_model))
    W_Q, W_K, W_V = ([xavier(d_model, d_k) for _ in range(h)] for _ in range(3))
    weights = np.array([softmax((X @ W_Q[i]) @ (X @ W_K[i]).T / np.sqrt(d_k)) for i in range(h)])
    heads = [weights[i] @ (X @ W_V[i]) for i in range(h)]
    return X, weights, np.concatenate(heads, axis=1) @ xavier(h * d_k, d_model)


@pytest.mark.parametrize(("n", "d_model", "h"), [(3, 4, 2), (5, 21, 3), (7, 512, 8)])
def test_the_text_s_own_lines_give_the_same_at_every_size(n, d_model, h):
    found = source.steps(*source.layer(seed=1, n=n, d_model=d_model, num_heads=h))
    X, weights, output = by_the_text(n, d_model, h, seed=1)
    np.testing.assert_array_equal(found["input"], X)
    np.testing.assert_allclose(found["weights"], weights, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found["output"], output, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("h", [1, 2, 4, 8])
def test_xavier_s_bound_for_one_head_makes_scores_as_large_as_2h_over_h_plus_1(h):
    case = source.layer(unit=True, n=50, d_model=256, num_heads=h)
    assert source.scores(*case).std() == pytest.approx(2 * h / (h + 1), rel=0.05)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_with_other_seeds_too_most_queries_of_seven_words_are_decided(seed):
    sizes = {"seed": seed, "n": 7, "d_model": 512, "num_heads": 8}
    text, unit = (source.layer(unit=unit, **sizes) for unit in (False, True))
    assert 0.6 < (source.steps(*text)["weights"].max(axis=-1) > 0.999).mean() < 0.85
    assert (source.steps(*unit)["weights"].max(axis=-1) < 0.999).all()
    dead, alive = source.reached(*text), source.reached(*unit)
    limit = np.median(alive) / 1000
    assert (dead < limit).mean() > 0.4 and alive.min() > limit
    assert dead.mean() > 0.5 * alive.mean()  # one average hides it


def test_the_share_of_dead_queries_counts_those_below_the_limit():
    reached, weights = (
        np.array([[1e-9, 2.0, 3.0]]),
        np.array([[[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]]),
    )
    heads = _seven_words.Heads({"weights": weights}, np.zeros(1), reached, 1.0)
    assert heads.dead(0.1) == pytest.approx(1 / 3) and heads.sharp == pytest.approx(2 / 3)
    assert _seven_words.dying(heads) == 0.002


# ------------------------------------------------------------------ value: its pictures

H, T, S, d_v = 2, 3, 5, 2


def test_both_orders_are_drawn_with_every_number_and_the_frame_is_one_row():
    draw = np.random.default_rng(0)
    scores, outputs = draw.standard_normal((H, T, S)), 10 + draw.standard_normal((H, T, d_v))
    weights, joined = softmax(scores), merge_heads(Tensor(outputs)).data
    (panel,) = draw_orders("abc", scores, weights, outputs, joined).axes
    said = [text.get_text() for text in panel.texts]
    form = lambda array: [f"{number:.2f}".replace("0.", ".") for number in array.ravel()]
    assert [t for t in said if t.startswith(".")] == form(weights[0]) + form(weights)
    for heading in (
        "heads last: the weights are (3, 5, 2)",
        "heads first: the weights are (2, 3, 5)",
    ):
        assert sum(heading in text for text in said) == 1
    assert {"framed: weights[1, :, 0]", "framed: weights[0, 1, :]"} <= set(said)
    frames = [p for p in panel.patches if not p.get_fill()]
    assert [p.get_width() for p in frames] == [S, S]  # a whole row, in both orders
    for frame in frames:
        x, y = frame.get_xy()
        inside = [t for t in panel.texts if y < t.get_position()[1] < y + 1]
        row = [t.get_text() for t in inside if x < t.get_position()[0] < x + S]
        assert row == form(weights[0, 1])


def test_a_row_of_maps_is_drawn_for_each_layer():
    layers = {name: np.random.default_rng(i).random((H, T, T)) for i, name in enumerate("pqr")}
    images = [panel.images[0] for panel in draw_looks(layers, "abc").axes if panel.images]
    expected = [looks for weights in layers.values() for looks in weights]
    for image, looks in zip(images, expected, strict=True):
        np.testing.assert_array_equal(image.get_array(), looks)


# ------------------------------------------------------------------ value: its slips


def test_shapes_are_stated_heads_last_and_stored_heads_first():
    stored = {name: OURS[name].shape for name in source.STATED_SHAPES}
    assert stored == {"W_Q": (2, 4, 2), "weights": (2, 3, 3), "heads": (2, 3, 2)}
    for name, stated in source.STATED_SHAPES.items():
        assert np.moveaxis(OURS[name], 0, -1).shape == stated != stored[name]


def test_concatenation_joins_features_and_a_reshape_alone_mixes_words():
    heads = Tensor(OURS["heads"])
    joined = concatenate([heads[0], heads[1]], axis=1).data
    np.testing.assert_array_equal(joined, merge_heads(heads).data)
    assert source.as_text(joined) == source.PRINTED["concatenated"].split()
    other = heads.reshape(3, 4).data
    assert other.shape == joined.shape and not np.allclose(other, joined)
    np.testing.assert_array_equal(other[1, 2:], joined[0, 2:])  # features of another word


def test_what_is_called_scores_are_weights_and_weighted_scores_are_averages():
    np.testing.assert_allclose(OURS["weights"].sum(axis=-1), 1, rtol=1e-15)
    scores = RAW / np.sqrt(2)
    assert scores.min() < -80 and scores.max() > 13  # neither bounded nor positive
    np.testing.assert_allclose(softmax(scores), OURS["weights"], rtol=1e-12)
    for outputs, values in zip(OURS["heads"], (OURS["V'₁"], OURS["V'₂"]), strict=True):
        assert (outputs <= values.max(axis=0) + 1e-12).all()
        assert (outputs >= values.min(axis=0) - 1e-12).all()


def test_each_head_reads_all_four_features_of_a_word():
    x, layer = source.layer()
    reads = jacobian(lambda x: split_heads(layer.w_q(x), 2))(x.data).data[:, 1, :, 1]
    lengths = np.linalg.norm(reads, axis=1)  # (H, d_model)
    np.testing.assert_allclose(lengths, np.linalg.norm(OURS["W_Q"], axis=-1), rtol=1e-12)
    split_first = jacobian(lambda x: split_heads(x, 2))(x.data)[:, 1, :, 1]
    assert (np.linalg.norm(split_first, axis=1) == 0).sum() == 4  # half of them


def test_two_printed_weights_exceed_the_bound_of_the_layer_and_none_that_of_a_head():
    sizes = np.abs(numbers(source.PRINTED["W_Q"]))
    assert sorted(sizes[sizes > np.sqrt(6 / 8)]) == [0.88657405, 0.91431032]
    assert sizes.max() < np.sqrt(6 / 6) == 1


def test_what_xavier_multiplies_is_the_mean_square_and_not_the_variance():
    x, _ = source.layer()
    assert (x.data.mean(), x.data.var(), np.mean(x.data**2)) == (4.5, 5.75, 26.0)
    drawn = x.data @ xavier_uniform((20000, 4, 2), rng=np.random.default_rng(0))
    assert np.mean(drawn**2) == pytest.approx(4 / 3 * 26, rel=0.02)


@pytest.mark.parametrize("scale", [2**-0.5, 1.0])
def test_the_maximum_is_what_keeps_softmax_finite_at_every_scale(scale):
    large = 100 * scale * RAW
    with np.errstate(over="ignore", invalid="ignore"):
        assert np.isnan(np.exp(large) / np.exp(large).sum(axis=-1, keepdims=True)).any()
    assert np.isfinite(softmax(large)).all()
    assert np.isfinite(np.exp(scale * RAW)).all()  # the text's own need no help, scaled or not


def test_head_2_is_one_hot_and_its_three_printed_rows_are_the_same():
    rows = np.array(source.PRINTED["heads"].split()).reshape(2, 3, 2)
    assert (rows[1] == rows[1, 0]).all() and not (rows[0] == rows[0, 0]).all()
    assert 1 - numbers(source.PRINTED["weights"]).reshape(2, 3, 3)[1, :, 0].min() < 2e-9
    left = OURS["weights"][1][:, 1:].sum(axis=1)
    np.testing.assert_allclose(left, [7.0228e-10, 7.323e-23, 3.9108e-22], rtol=1e-4)
    assert entropy(OURS["weights"][1]).mean() / np.log(3) < 1e-8


# ------------------------------------------------------------------ derivative


def test_gradcheck_confirms_the_whole_layer_at_unit_inputs():
    x, layer = source.layer(unit=True)
    g = np.random.default_rng(0).standard_normal((3, 4))
    output = of_weights(layer)
    assert gradcheck(lambda *points: (output(*points) * g).sum(), x, *layer.parameters())


def test_gradcheck_cannot_tell_about_21_derivatives_of_head_2():
    total, points = head(2)
    report = gradcheck(total, *points, rng=np.random.default_rng(0))  # as the demo has it
    assert not report
    assert len(report.comparisons) == 35 and len(report.unresolved) == 21
    assert max(c.norm for c in report.unresolved) < 1e-5
    assert min(c.norm for c in report.comparisons if c.verdict == "agrees") > 1


@pytest.mark.parametrize("unit", [False, True])
def test_decimals_confirm_every_element_of_a_living_head(unit):
    total, points = head(1, unit=unit)
    value = source.slope_in_decimals(arrays(points))
    assert value == pytest.approx(total(*points).item(), rel=1e-14)
    for i, exact in enumerate(gradients(total(*points), points)):
        true = source.gradient_in_decimals(arrays(points), i)
        np.testing.assert_allclose(exact, true, rtol=1e-11)


def test_decimals_confirm_head_2_as_far_as_float64_can_hold_it():
    """Each norm to 1e-6, and each element to what rounding at the size of ∂L/∂weights leaves."""
    total, points = head(2)
    value = source.slope_in_decimals(arrays(points))
    assert value == pytest.approx(total(*points).item(), rel=1e-14)
    for i, exact in enumerate(gradients(total(*points), points)):
        true = source.gradient_in_decimals(arrays(points), i)
        assert np.linalg.norm(exact - true) <= 1e-6 * np.linalg.norm(true)
        np.testing.assert_allclose(exact, true, rtol=1e-13, atol=1e-12)
    true = source.gradient_in_decimals(arrays(points), 1)
    np.testing.assert_allclose(true[1], [1.49366226e-19, 6.6139075e-20], rtol=1e-8)


def test_decimals_confirm_the_second_order_of_head_2_and_refuse_a_wrong_one():
    total, points = head(2)
    recorded = gradients(total(*points), points, create_graph=True)
    off = [source.off_at_order_2(recorded, points, np.random.default_rng(s)) for s in (0, 1)]
    assert off[0].shape == (5, 5) and np.max(off) <= 1e-5
    for i, g in enumerate(recorded):
        for j, row in enumerate(gradients(g.sum(), points, retain_graph=True)):
            assert (np.linalg.norm(row) == 0) == (i == j and i in (3, 4))  # linear in W_V, in W_O
    wrong = [1.0005 * g for g in recorded]
    assert source.off_at_order_2(wrong, points, np.random.default_rng(1)).max() > 4e-4


@pytest.mark.parametrize("factor", [1.0005, 0.9995])
def test_decimals_refuse_a_gradient_of_head_2_that_is_slightly_wrong(factor):
    total, points = head(2)
    wrong = factor * gradients(total(*points), points)[1]
    true = source.gradient_in_decimals(arrays(points), 1)
    assert np.linalg.norm(wrong - true) > 4e-4 * np.linalg.norm(true)


@pytest.mark.parametrize("unit", [False, True])
def test_what_reaches_a_query_is_its_slope(unit):
    """Central differences of the text's formula, feature by feature of each query."""
    x, layer = source.layer(unit=unit)
    q, k, v = (split_heads(w(x), 2).data for w in (layer.w_q, layer.w_k, layer.w_v))

    def total(q):
        heads = softmax(q @ k.mT / np.sqrt(2)) @ v
        return (np.concatenate(list(heads), axis=1) @ layer.w_o.weight.data).sum()

    slopes, step = np.zeros(q.shape), 1e-5
    for at in np.ndindex(q.shape):
        moved = np.zeros(q.shape)
        moved[at] = step
        slopes[at] = (total(q + moved) - total(q - moved)) / (2 * step)
    expected = np.linalg.norm(slopes, axis=-1)
    np.testing.assert_allclose(source.reached(x, layer), expected, rtol=1e-6, atol=1e-7)


# ------------------------------------------------------------------ law


def test_head_2_keeps_1e_8_of_the_gradient_and_needs_mean_0_as_well_as_variance_1():
    digits = source.layer()[0].data
    (_, spread_2), (left_1, left_2) = source.measure(digits)
    assert left_2 == pytest.approx(8.17e-9, rel=0.01) and left_1 == pytest.approx(0.171, rel=0.01)
    assert spread_2 == pytest.approx(4.70e-9, rel=0.01)
    assert 0.04 < source.measure(digits / digits.std())[1, 1] < 0.06
    assert 2e-3 < source.measure(digits - digits.mean())[1, 1] < 3e-3
    assert 0.6 < source.measure((digits - digits.mean()) / digits.std())[1, 1] < 0.62


def test_gradient_descent_makes_the_living_head_one_hot_too_and_a_smaller_rate_takes_longer():
    taken = []
    for rate in (0.01, 0.003):
        x, layer = source.layer()
        optimizer, steps = SGD(layer.parameters(), rate), 0
        while np.ptp((answer := layer(Tensor(x.data))).data, axis=0).max() > 1e-3 and steps < 500:
            optimizer.zero_grad()
            ((answer - x.data) ** 2).mean().backward()
            optimizer.step()
            steps += 1
        taken.append(steps)
        weights = layer.weights(x).data  # (H, T, S): each head looks at one word, the same for all
        assert (weights.max(axis=-1) > 0.999).all()
        assert (weights.argmax(axis=-1) == weights.argmax(axis=-1)[:, :1]).all()
    assert 0 < taken[0] < taken[1] < 500


def test_the_usual_scales_leave_head_2_dead_and_a_thirty_second_revives_it():
    digits = source.layer()[0].data
    left = [source.measure(digits, scale=s)[1, 1] for s in (1.0, 2**-0.5, 0.5, 1 / 32)]
    assert left == sorted(left) and left[2] < 1e-5 and left[3] > 0.1
    assert source.measure(digits)[1, 1] == pytest.approx(left[1], rel=1e-6)  # None is 1/√d_k
