"""Tests: "I love Transformers": the text's own lines at other sizes, and its slips."""

import numpy as np
import pytest

from attention.scaling import entropy
from demos.texts.sources import love_transformers_text as source
from demos.texts.sources import parsed
from minigrad import softmax

OURS = source.ours()
RAW = OURS["Q'"] @ np.stack([OURS["K'₁"], OURS["K'₂"]]).mT  # (H, T, S)


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
