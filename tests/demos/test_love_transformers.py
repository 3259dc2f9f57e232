"""Tests: "I love Transformers": its slips, and the gradients that the text does not show."""

import numpy as np
import pytest

from attention import split_heads
from attention.maps import entropy
from demos.texts._tensors import draw_orders
from demos.texts.sources import love_transformers as source
from demos.texts.sources import parsed
from minigrad import gradients, softmax

OURS = source.ours()
RAW = OURS["Q'"] @ np.stack([OURS["K'₁"], OURS["K'₂"]]).mT  # (H, T, S)


def head(number):
    """Return Σ output of one head as a function, and its points X, W_Q, W_K, W_V, W_O."""
    x, layer = source.layer()
    alone = source.one_head(layer, number - 1)
    return source.sum_of_head(alone), [x, *alone.parameters()]


def arrays(points):
    return [point.data for point in points]


# ------------------------------------------------------------------ value


def by_the_text(n, d_model, h, seed):
    """Run the text's own lines, one head after the other; return X, the weights, and the output."""
    draw, d_k = np.random.RandomState(seed), d_model // h

    def xavier(rows, columns):
        limit = np.sqrt(6 / (rows + columns))
        return draw.uniform(-limit, limit, (rows, columns))

    X = draw.randint(10, size=(n, d_model))
    W_Q, W_K, W_V = ([xavier(d_model, d_k) for _ in range(h)] for _ in range(3))
    weights = np.array([softmax((X @ W_Q[i]) @ (X @ W_K[i]).T / np.sqrt(d_k)) for i in range(h)])
    heads = [weights[i] @ (X @ W_V[i]) for i in range(h)]
    return X, weights, np.concatenate(heads, axis=1) @ xavier(h * d_k, d_model)


@pytest.mark.parametrize(("n", "d_model", "h"), [(5, 21, 3), (7, 512, 8)])
def test_the_text_s_own_lines_give_the_same_at_every_size(n, d_model, h):
    found = source.steps(*source.layer(seed=1, n=n, d_model=d_model, num_heads=h))
    X, weights, output = by_the_text(n, d_model, h, seed=1)
    np.testing.assert_array_equal(found["input"], X)
    np.testing.assert_allclose(found["weights"], weights, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found["output"], output, rtol=1e-9, atol=1e-9)


# ------------------------------------------------------------------ value: its pictures


def test_both_orders_are_drawn_with_their_numbers_and_the_frame_is_one_row():
    weights = softmax(np.random.default_rng(0).standard_normal((2, 3, 5)))  # (H, T, S)
    (panel,) = draw_orders("abc", weights).axes
    said = [text.get_text() for text in panel.texts]
    form = lambda array: [f"{number:.2f}".replace("0.", ".") for number in array.ravel()]
    assert [t for t in said if t.startswith(".")] == form(weights[0]) + form(weights)
    for frame in panel.lines:  # a whole row, in both orders
        (left, right, *_), y = frame.get_data()
        inside = [t for t in panel.texts if min(y) < t.get_position()[1] < max(y)]
        row = [t.get_text() for t in inside if left < t.get_position()[0] < right]
        assert row == form(weights[0, 1])


# ------------------------------------------------------------------ value: its slips


def test_shapes_are_stated_heads_last_and_stored_heads_first():
    stored = {name: OURS[name].shape for name in source.STATED_SHAPES}
    assert stored == {"W_Q": (2, 4, 2), "weights": (2, 3, 3), "heads": (2, 3, 2)}
    for name, stated in source.STATED_SHAPES.items():
        assert np.moveaxis(OURS[name], 0, -1).shape == stated != stored[name]


def test_what_is_called_scores_are_weights_and_weighted_scores_are_averages():
    np.testing.assert_allclose(OURS["weights"].sum(axis=-1), 1, rtol=1e-15)
    scores = RAW / np.sqrt(2)
    assert scores.min() < -80 and scores.max() > 13  # neither bounded nor positive
    np.testing.assert_allclose(softmax(scores), OURS["weights"], rtol=1e-12)
    for outputs, values in zip(OURS["heads"], (OURS["V'₁"], OURS["V'₂"]), strict=True):
        assert (outputs <= values.max(axis=0) + 1e-12).all()
        assert (outputs >= values.min(axis=0) - 1e-12).all()


def test_two_printed_weights_exceed_the_bound_of_the_layer_and_none_that_of_a_head():
    sizes = np.abs(parsed(source.PRINTED["W_Q"]))
    assert sorted(sizes[sizes > np.sqrt(6 / 8)]) == [0.88657405, 0.91431032]
    assert sizes.max() < np.sqrt(6 / 6) == 1


def test_what_the_weights_multiply_is_the_mean_square_and_not_the_variance():
    x = OURS["input"]
    assert (x.mean(), x.var(), np.mean(x**2)) == (4.5, 5.75, 26.0)


def test_head_2_is_one_hot_and_its_three_printed_rows_are_the_same():
    rows = np.array(source.PRINTED["heads"].split()).reshape(2, 3, 2)
    assert (rows[1] == rows[1, 0]).all() and not (rows[0] == rows[0, 0]).all()
    assert 1 - parsed(source.PRINTED["weights"]).reshape(2, 3, 3)[1, :, 0].min() < 2e-9
    left = OURS["weights"][1][:, 1:].sum(axis=1)
    np.testing.assert_allclose(left, [7.0228e-10, 7.323e-23, 3.9108e-22], rtol=1e-4)
    assert entropy(OURS["weights"][1]).mean() / np.log(3) < 1e-8


# ------------------------------------------------------------------ derivative


def test_decimals_confirm_every_element_of_a_living_head():
    total, points = head(1)
    value = source.slope_in_decimals(arrays(points))
    assert value == pytest.approx(total(*points).item(), rel=1e-14)
    for i, exact in enumerate(gradients(total(*points), points)):
        true = source.gradient_in_decimals(arrays(points), i)
        np.testing.assert_allclose(exact, true, rtol=1e-11)


def test_decimals_refuse_a_gradient_of_head_2_that_is_slightly_wrong_in_both_orders():
    total, points = head(2)
    recorded = gradients(total(*points), points, create_graph=True)
    true = source.gradient_in_decimals(arrays(points), 1)
    off = lambda factor: np.linalg.norm(factor * recorded[1].data - true) / np.linalg.norm(true)
    assert off(1) < 1e-6 and off(1.0005) > 4e-4
    wrong = [1.0005 * g for g in recorded]
    assert source.off_at_order_2(wrong, points, np.random.default_rng(1)).max() > 4e-4


def test_what_reaches_a_query_is_its_slope():
    """Central differences of the text's formula, feature by feature of each query."""
    x, layer = source.layer(unit=True)
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
