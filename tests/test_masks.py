"""Chapter 11.1 · Masks: who may look at whom, and that True means may look."""

import numpy as np
import pytest

from attention import attention_weights, causal_mask, mean_over_positions, padding_mask, window_mask
from minigrad import Tensor, gradients

random = np.random.default_rng(3)
B, T, S, D_K = 2, 3, 5, 11


# ---------------------------------------------------------------- value


@pytest.mark.parametrize(("T", "S"), [(1, 1), (5, 5), (3, 5), (1, 5), (2, 7)])
def test_a_query_may_look_at_its_own_and_earlier_positions(T, S):
    """The queries are the last T of S positions."""
    mask = causal_mask(T) if T == S else causal_mask(T, S)
    assert mask.dtype == bool
    expected = [[s <= S - T + t for s in range(S)] for t in range(T)]
    np.testing.assert_array_equal(mask, expected, strict=True)


@pytest.mark.parametrize("lengths", [[3, 5], (0, 1, 5), np.array([2], np.int32)])
def test_only_the_first_keys_of_a_sequence_are_data(lengths):
    expected = [[[s < length for s in range(S)]] for length in lengths]
    np.testing.assert_array_equal(padding_mask(lengths, S), expected, strict=True)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_mean_over_positions_counts_only_what_is_kept_and_padding_gets_no_gradient(dtype):
    lengths, width = [2, 0, 5], 7
    values = random.standard_normal((3, S, width)).astype(dtype)
    values[0, 2:] = np.nan  # whatever padding holds
    x, g = Tensor(values, requires_grad=True), random.standard_normal((3, width)).astype(dtype)
    y = mean_over_positions(x, mask=padding_mask(lengths, S))
    expected = [x.data[b, :n].mean(axis=0) if n else np.zeros(width) for b, n in enumerate(lengths)]
    np.testing.assert_allclose(y.data, expected, rtol=1e-5 if dtype == np.float32 else 1e-13)
    (dx,) = gradients(y, [x], g)
    assert y.dtype == dx.dtype == dtype
    for b, n in enumerate(lengths):
        assert not dx[b, n:].any()
        np.testing.assert_allclose(dx[b, :n], np.tile(g[b] / max(n, 1), (n, 1)), rtol=1e-6)


@pytest.mark.parametrize("batch", [(), (2,), (2, 3)])
def test_without_padding_a_mean_over_positions_is_the_mean(batch):
    x, mask = Tensor(random.standard_normal((*batch, S, 7))), np.ones((*batch, 1, S), bool)
    expected = x.data.mean(axis=-2)
    np.testing.assert_allclose(mean_over_positions(x).data, expected, rtol=1e-13)
    np.testing.assert_allclose(mean_over_positions(x, mask=mask).data, expected, rtol=1e-13)
    some = random.random(S) < 0.6  # one mask for all, with its holes
    kept = mean_over_positions(x, mask=some)
    np.testing.assert_allclose(kept.data, x.data[..., some, :].mean(axis=-2), rtol=1e-13)


@pytest.mark.parametrize("size", [1, 2, 7])
@pytest.mark.parametrize(("T", "S"), [(1, 1), (5, 5), (3, 5), (1, 5), (2, 7)])
def test_a_window_ends_at_a_querys_own_position_and_holds_so_many_keys(T, S, size):
    own = [S - T + t for t in range(T)]
    expected = [[p - size < s <= p for s in range(S)] for p in own]
    mask = window_mask(T, size=size) if T == S else window_mask(T, S, size=size)
    np.testing.assert_array_equal(mask, expected, strict=True)
    np.testing.assert_array_equal(mask.sum(axis=-1), [min(size, p + 1) for p in own])


MASKS = {
    "causal": causal_mask(T, S),
    "padding": padding_mask([3, 4], S),
    "window": window_mask(T, S, size=2),
    "causal and padding": causal_mask(T, S) & padding_mask([3, 4], S),
    "window and padding": window_mask(T, S, size=2) & padding_mask([2, 4], S),
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


def test_padding_is_told_by_lengths_or_by_a_boolean_for_each_position():
    tokens = np.array([[4, 7, 0, 0, 0], [1, 2, 3, 0, 0]])
    for kept in (tokens != 0, Tensor(tokens != 0)):
        np.testing.assert_array_equal(padding_mask(kept, S), padding_mask([2, 3], S), strict=True)
    left = tokens[:, ::-1] != 0
    np.testing.assert_array_equal(padding_mask(left, S), left[:, None], strict=True)


@pytest.mark.parametrize("mask", [causal_mask(3), window_mask(3, size=1), padding_mask([3], 3)])
def test_a_mask_made_here_can_be_copied_and_not_written(mask):
    with pytest.raises(ValueError, match="read-only"):
        mask[0] = True
    mask.copy()[0] = True
