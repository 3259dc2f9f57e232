"""Chapter 10 · Masks: who may look at whom, and that True means may look."""

from functools import partial

import numpy as np
import pytest

from attention import (
    MultiHeadAttention,
    additive_attention,
    attention,
    attention_weights,
    causal_mask,
    fused_attention,
    padding_mask,
    window_mask,
)
from attention.scaled_dot_product import check_mask
from minigrad import Tensor, gradients

random = np.random.default_rng(3)
B, T, S, H, D_K, D_V = 2, 3, 5, 7, 11, 13


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


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7])
@pytest.mark.parametrize(("T", "S"), [(1, 1), (5, 5), (3, 5), (1, 5), (2, 7)])
def test_a_window_ends_at_a_querys_own_position_and_holds_so_many_keys(T, S, size):
    own = [S - T + t for t in range(T)]
    expected = [[p - size < s <= p for s in range(S)] for p in own]
    mask = window_mask(T, S, size=size)
    np.testing.assert_array_equal(mask, expected, strict=True)
    np.testing.assert_array_equal(mask.sum(axis=-1), [min(size, p + 1) for p in own])


COMBINED = {  # each with the positions (b, t, s) that it allows; the queries are the last T of S
    "causal and padding": (
        causal_mask(T, S) & padding_mask([2, 5], S),
        lambda b, t, s: s <= S - T + t and s < (2, 5)[b],
    ),
    "window and padding": (
        window_mask(T, S, size=2) & padding_mask([2, 5], S),
        lambda b, t, s: S - T + t - 2 < s <= S - T + t and s < (2, 5)[b],
    ),
    "padding on the left and causal": (
        causal_mask(T, S) & ~padding_mask([2, 0], S),
        lambda b, t, s: s <= S - T + t and s >= (2, 0)[b],
    ),
    "window and the first key": (
        window_mask(T, S, size=2) | (np.arange(S) == 0) & padding_mask([5, 5], S),
        lambda b, t, s: S - T + t - 2 < s <= S - T + t or s == 0,
    ),
}


@pytest.mark.parametrize(("mask", "may"), COMBINED.values(), ids=COMBINED.keys())
def test_masks_combine_as_what_they_say_does(mask, may):
    expected = [[[may(b, t, s) for s in range(S)] for t in range(T)] for b in range(B)]
    np.testing.assert_array_equal(mask, expected, strict=True)


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


def test_a_reversed_mask_is_another_mask():
    q, k = Tensor(random.standard_normal((T, D_K))), Tensor(random.standard_normal((S, D_K)))
    mask = MASKS["random"][0]
    one, other = (attention_weights(q, k, mask=m).data for m in (mask, ~mask))
    assert not (one * other).any()


@pytest.mark.parametrize(
    "made", [causal_mask, partial(window_mask, size=3)], ids=["causal", "window"]
)
def test_the_masks_of_a_text_read_piece_by_piece_are_the_rows_of_the_whole_one(made):
    """A cache of earlier keys (chapter 13.1) asks with T = 1, or a few, queries at a time."""
    pieces = [made(1, 1), made(3, 4), made(1, 5), made(2, 7)]
    padded = [np.pad(piece, ((0, 0), (0, 7 - piece.shape[1]))) for piece in pieces]
    np.testing.assert_array_equal(np.concatenate(padded), made(7), strict=True)


def test_a_window_as_long_as_the_text_is_the_causal_mask_and_windows_grow_by_a_diagonal():
    np.testing.assert_array_equal(window_mask(T, S, size=S), causal_mask(T, S), strict=True)
    np.testing.assert_array_equal(window_mask(S, size=1), np.eye(S, dtype=bool), strict=True)
    for size in range(1, S):
        more = window_mask(S, size=size + 1) & ~window_mask(S, size=size)
        np.testing.assert_array_equal(more, np.eye(S, k=-size, dtype=bool))


@pytest.mark.parametrize(
    "made", [causal_mask, partial(window_mask, size=2)], ids=["causal", "window"]
)
def test_the_last_queries_alone_get_what_they_get_among_all(made):
    """The right edge of a mask with T ≠ S: aligned at the left it would see other keys."""
    q, k, v = (Tensor(random.standard_normal((B, S, d))) for d in (D_K, D_K, D_V))
    whole = attention(q, k, v, mask=made(S)).data
    last = attention(q[:, -T:], k, v, mask=made(T, S)).data
    np.testing.assert_allclose(last, whole[:, -T:], rtol=1e-13)


def test_layers_of_windows_reach_further_by_a_window_less_one_each():
    """∂(output t)/∂(input s) through n layers is 0 for s ≤ t - n (size - 1) - 1, and not before."""
    x = Tensor(random.standard_normal((11, D_K)), requires_grad=True)
    y = x
    for _ in range(3):
        y = attention(y, y, y, mask=window_mask(11, size=3))
    (dx,) = gradients(y[9], [x], random.standard_normal(D_K))
    np.testing.assert_array_equal((dx != 0).any(axis=-1), [3 <= s <= 9 for s in range(11)])


# Masks under which queries of the text are left without a key, and which (b, t) those are.
BLIND = {
    "a row": (np.array([[True] * S, [False] * S, [True] * S]), [(0, 1), (1, 1)]),
    "an empty sequence": (padding_mask([3, 0], S), [(1, 0), (1, 1), (1, 2)]),
    "window past the padding": (
        window_mask(T, S, size=2) & padding_mask([2, 5], S),
        [(0, 1), (0, 2)],
    ),
    "causal before the padding on the left": (
        causal_mask(T, S) & ~padding_mask([3, 0], S),
        [(0, 0)],
    ),
    "all": (np.array(False), [(b, t) for b in range(B) for t in range(T)]),
}


def looks(attend):
    def f(q, k, v, mask):
        return attend(q, k, v, mask=mask)

    return f


W = Tensor(random.standard_normal(D_K), requires_grad=True)
ATTENDS = {
    "attention": looks(attention),
    "additive_attention": lambda q, k, v, mask: additive_attention(q, k, v, W, mask=mask),
    "fused_attention": looks(fused_attention),
    "fused_attention in blocks of 2": looks(partial(fused_attention, block=2)),
}


@pytest.mark.parametrize("attend", ATTENDS.values(), ids=ATTENDS)
@pytest.mark.parametrize(("mask", "blind"), BLIND.values(), ids=BLIND)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_row_without_keys_gives_zeros_forward_and_backward_and_its_neighbours_keep_every_bit(
    mask, blind, dtype, attend
):
    """Without it: where it may look at everything, and is not listened to."""
    q, k, v = (
        Tensor(random.standard_normal((B, n, d)), dtype=dtype, requires_grad=True)
        for n, d in ((T, D_K), (S, D_K), (S, D_V))
    )
    nowhere = np.zeros((B, T, 1), bool)
    for b, t in blind:
        nowhere[b, t] = True
    np.testing.assert_array_equal(~np.broadcast_to(mask, (B, T, S)).any(-1), nowhere[..., 0])
    g = np.where(nowhere, 0, random.standard_normal((B, T, D_V)))
    found = {}
    for seeing in (False, True):
        y = attend(q, k, v, mask | nowhere if seeing else mask)
        found[seeing] = [y.data, *gradients(y, [q, k, v], g)]
    y, of_q, *_ = found[False]
    assert not y[nowhere[..., 0]].any()
    np.testing.assert_array_equal(y, np.where(nowhere, 0, found[True][0]), strict=True)
    assert not of_q[nowhere[..., 0]].any()
    for one, other in zip(found[False][1:], found[True][1:], strict=True):
        np.testing.assert_array_equal(one, other, strict=True)
    loud = attend(q, k, v, mask)  # whatever arrives at them, they send nothing on
    for one, other in zip(
        gradients(loud, [q, k, v], np.where(nowhere, 1e30, g)), found[False][1:], strict=True
    ):
        np.testing.assert_array_equal(one, other, strict=True)


@pytest.mark.parametrize("attend", [attention, fused_attention])
@pytest.mark.parametrize(("mask", "blind"), BLIND.values(), ids=BLIND)
def test_a_layer_gives_a_row_without_keys_the_bias_of_its_last_projection(mask, blind, attend):
    rng = np.random.default_rng(5)
    layer = MultiHeadAttention(H * 2, H, bias=True, attend=attend, rng=rng)
    layer.w_o.bias.data = rng.standard_normal(H * 2)
    x, memory = (Tensor(rng.standard_normal((B, n, H * 2)), requires_grad=True) for n in (T, S))
    y = layer(x, memory, mask=mask)
    of_x, of_memory = gradients(y, [x, memory], rng.standard_normal(y.shape))
    for b, t in blind:
        np.testing.assert_array_equal(y.data[b, t], layer.w_o.bias.data)
        assert not of_x[b, t].any()
    assert np.isfinite(of_memory).all()


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


def test_a_window_with_fewer_keys_than_queries_is_refused_too():
    with pytest.raises(ValueError, match="a key for each query: got T=5 queries, S=3 keys$"):
        window_mask(5, 3, size=2)


@pytest.mark.parametrize("size", [0, -1])
def test_a_window_without_a_key_is_refused(size):
    with pytest.raises(ValueError, match=f"^a window holds at least one key: got size={size}$"):
        window_mask(T, S, size=size)


def test_a_mask_of_rows_of_different_lengths_is_refused():
    with pytest.raises(ValueError, match="^mask must be one boolean array: got rows of different"):
        check_mask([[True], [True, False]], (T, S))


@pytest.mark.parametrize("lengths", [[3.0, 5.0], 5, [[3, 5]], [True, False]])
def test_lengths_that_are_no_list_of_integers_are_refused(lengths):
    with pytest.raises(TypeError, match="^lengths must be a list of integers, one a sequence: got"):
        padding_mask(lengths, S)


@pytest.mark.parametrize("lengths", [[3, 6], [-1, 3]])
def test_lengths_that_do_not_fit_the_keys_are_refused(lengths):
    with pytest.raises(ValueError, match="^lengths must lie between 0 and S=5: got "):
        padding_mask(lengths, S)
