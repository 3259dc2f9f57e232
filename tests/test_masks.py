"""Chapter 10 · Masks: who may look at whom, and that True means may look."""

import numpy as np
import pytest

from attention import attention_weights, causal_mask, padding_mask
from attention.masks import check_mask
from minigrad import Tensor, gradients

random = np.random.default_rng(3)
B, T, S, D_K = 2, 3, 5, 11


# ---------------------------------------------------------------- value


@pytest.mark.parametrize(("T", "S"), [(1, 1), (5, 5), (3, 5), (1, 5), (2, 7)])
def test_a_query_may_look_at_its_own_and_earlier_positions(T, S):
    """The queries are the last T of S positions."""
    mask = causal_mask(T, S)
    assert mask.dtype == bool
    expected = [[s <= S - T + t for s in range(S)] for t in range(T)]
    np.testing.assert_array_equal(mask, expected, strict=True)


def test_without_a_number_of_keys_there_are_as_many_as_queries():
    np.testing.assert_array_equal(causal_mask(5), causal_mask(5, 5), strict=True)


@pytest.mark.parametrize("lengths", [[3, 5], (0, 1, 5), np.array([2], np.int32), [0]])
def test_only_the_first_keys_of_a_sequence_are_data(lengths):
    expected = [[[s < length for s in range(S)]] for length in lengths]
    np.testing.assert_array_equal(padding_mask(lengths, S), expected, strict=True)


def test_masks_combine_to_what_both_allow():
    mask = causal_mask(S) & padding_mask([2, 5], S)
    expected = [[[s <= t and s < n for s in range(S)] for t in range(S)] for n in (2, 5)]
    np.testing.assert_array_equal(mask, expected, strict=True)


MASKS = {
    "causal": causal_mask(T, S),
    "padding": padding_mask([3, 4], S),
    "both": causal_mask(T, S) & padding_mask([3, 4], S),
    "one for each query": np.array([[True], [False], [True]]),
    "one for each key": np.array([True, False, True, False, False]),
    "one for all": np.array(True),
    "a list": causal_mask(T, S).tolist(),
    "a tensor": Tensor(causal_mask(T, S)),
    "random": random.random((B, T, S)) < 0.5,
}


def as_array(mask):
    return mask.data if isinstance(mask, Tensor) else np.asarray(mask)


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS.keys())
def test_true_means_may_look(mask):
    """A query has weight on a key exactly where the mask is True."""
    q, k = Tensor(random.standard_normal((B, T, D_K))), Tensor(random.standard_normal((B, S, D_K)))
    weights = attention_weights(q, k, mask=mask).data
    np.testing.assert_array_equal(weights > 0, np.broadcast_to(as_array(mask), (B, T, S)))


# ---------------------------------------------------------------- derivative


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS.keys())
def test_a_key_that_no_query_may_look_at_receives_a_gradient_of_exactly_0(mask):
    q = Tensor(random.standard_normal((B, T, D_K)), requires_grad=True)
    k = Tensor(random.standard_normal((B, S, D_K)), requires_grad=True)
    weights = attention_weights(q, k, mask=mask)
    dq, dk = gradients(weights, [q, k], random.standard_normal(weights.shape))
    may = np.broadcast_to(as_array(mask), (B, T, S))
    several = may.sum(axis=-1) > 1  # softmax over one key is constant: no gradient either
    np.testing.assert_array_equal((dq != 0).any(axis=-1), several)
    np.testing.assert_array_equal((dk != 0).any(axis=-1), (may & several[..., None]).any(axis=-2))


# ---------------------------------------------------------------- law


def test_a_reversed_mask_is_another_mask():
    q, k = Tensor(random.standard_normal((T, D_K))), Tensor(random.standard_normal((S, D_K)))
    mask = MASKS["random"][0]
    one, other = (attention_weights(q, k, mask=m).data for m in (mask, ~mask))
    assert not (one * other).any()


def test_causal_masks_of_a_text_read_piece_by_piece_are_the_rows_of_the_whole_one():
    """A cache of earlier keys (chapter 15) asks with T = 1, or a few, queries at a time."""
    pieces = [causal_mask(1, 1), causal_mask(3, 4), causal_mask(1, 5), causal_mask(2, 7)]
    padded = [np.pad(piece, ((0, 0), (0, 7 - piece.shape[1]))) for piece in pieces]
    np.testing.assert_array_equal(np.concatenate(padded), causal_mask(7), strict=True)


# ---------------------------------------------------------------- refusal


@pytest.mark.parametrize("dtype", [int, float, np.uint8, np.float32])
def test_a_mask_of_numbers_is_refused_and_told_what_true_means(dtype):
    with pytest.raises(
        TypeError,
        match="^mask must be boolean, with True where a query may look: "
        f"got dtype {np.dtype(dtype)}; compare first",
    ):
        check_mask(np.ones((T, S), dtype), (T, S))


@pytest.mark.parametrize(
    ("mask", "scores"),
    [
        ((S, T), (T, S)),
        ((T, S + 1), (T, S)),
        ((T,), (T, S)),
        ((B, T, S), (T, S)),
        ((B, T, S), (1, T, S)),
        ((B + 1, T, S), (B, T, S)),
        ((2, 2, 2, 2), (B, T, S)),
    ],
)
def test_a_mask_that_does_not_fit_the_scores_is_refused_with_both_shapes(mask, scores):
    with pytest.raises(ValueError, match="^mask of shape .* does not broadcast") as error:
        check_mask(np.ones(mask, bool), scores)
    assert f"mask of shape {mask} does not broadcast to the scores' {scores}" in str(error.value)


def test_a_causal_mask_with_fewer_keys_than_queries_is_refused():
    with pytest.raises(ValueError, match="a key for each query: got T=5 queries, S=3 keys$"):
        causal_mask(5, 3)


@pytest.mark.parametrize("lengths", [[3.0, 5.0], 5, [[3, 5]], [True, False]])
def test_lengths_that_are_no_list_of_integers_are_refused(lengths):
    with pytest.raises(TypeError, match="^lengths must be a list of integers, one a sequence: got"):
        padding_mask(lengths, S)


@pytest.mark.parametrize("lengths", [[3, 6], [-1, 3]])
def test_lengths_that_do_not_fit_the_keys_are_refused(lengths):
    with pytest.raises(ValueError, match="^lengths must lie between 0 and S=5: got "):
        padding_mask(lengths, S)
