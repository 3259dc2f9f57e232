"""Chapter 11 · Attention: the equation, its masks, and the laws of every function that attends.

Those are scaled dot products, the sums of chapter 11.2 and the blocks of chapter 12.
"""

import math
from functools import partial

import numpy as np
import pytest

import attention.scaled_dot_product as chapter
from attention import (
    MultiHeadAttention,
    additive_attention,
    attention,
    attention_backward,
    attention_weights,
    causal_mask,
    fused_attention,
    padding_mask,
    qk_norm,
    window_mask,
)
from minigrad import Tensor, detect_anomaly, gradcheck, gradients
from tests.attention_refusals import REFUSED

random = np.random.default_rng(3)
B, T, S, H, D_K, D_V = 2, 3, 5, 7, 11, 13

MASKS = {
    "none": None,
    "one (T, S) for all": causal_mask(T, S),
    "one a sequence (B, T, S)": random.random((B, T, S)) < 0.6,
    "padding (B, 1, S)": padding_mask([2, 5], S),
    "padding and causal": padding_mask([2, 5], S) & causal_mask(T, S),
    "one a key (S,)": np.array([True, False, True, True, False]),
    "a row that sees nothing": np.array([[True] * S, [False] * S, [False, True] * 2 + [True]]),
    "a sequence that sees nothing": padding_mask([3, 0], S),
    "nothing at all": np.array(False),
}
masks = pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS.keys())


BIASES = {  # each axis of (B, T, S) there, of length 1, or missing
    "one for all": (),
    "one a key (S,)": (S,),
    "one a query (T, 1)": (T, 1),
    "one a pair (T, S)": (T, S),
    "one a sequence (B, 1, 1)": (B, 1, 1),
    "one a key of a sequence (B, 1, S)": (B, 1, S),
    "one a score (B, T, S)": (B, T, S),
}
biases = pytest.mark.parametrize("shape", BIASES.values(), ids=BIASES.keys())


def qkv(*batch, dtype=float):
    return [
        Tensor(random.standard_normal((*batch, *shape)), dtype=dtype, requires_grad=True)
        for shape in ((T, D_K), (S, D_K), (S, D_V))
    ]


def three_loops(q, k, v, mask, scale, bias=0.0):
    """Compute attention one query, one key and one feature at a time."""
    bias = np.broadcast_to(bias, (B, T, S))
    weights, output = np.zeros((B, T, S)), np.zeros((B, T, D_V))
    for b in range(B):
        for t in range(T):
            for s in range(S):
                if mask[b, t, s]:
                    weights[b, t, s] = math.exp(scale * sum(q[b, t] * k[b, s]) + bias[b, t, s])
            weights[b, t] /= sum(weights[b, t]) or 1.0
            for s in range(S):
                output[b, t] += weights[b, t, s] * v[b, s]
    return weights, output


# ---------------------------------------------------------------- value


SCALES = {  # each with the number that it is
    "1/√d_k": (None, 1 / math.sqrt(D_K)),
    "number": (0.25, 0.25),
    "tensor": (Tensor(0.25), 0.25),
    "function": (lambda d_k: d_k**-0.25, D_K**-0.25),
    "function to a tensor": (lambda d_k: Tensor(1 / d_k), 1 / D_K),
}


@masks
def test_attention_equals_three_nested_loops(mask):
    q, k, v = qkv(B)
    allowed = np.broadcast_to(True if mask is None else mask, (B, T, S))
    for scale, factor in SCALES.values():
        weights, output = three_loops(q.data, k.data, v.data, allowed, factor)
        found = attention_weights(q, k, mask=mask, scale=scale).data
        np.testing.assert_allclose(found, weights, rtol=1e-12)
        found = attention(q, k, v, mask=mask, scale=scale).data
        np.testing.assert_allclose(found, output, rtol=1e-12, atol=1e-14)


@masks
@pytest.mark.parametrize("keys", [T, S])
def test_the_way_back_by_hand_is_that_of_the_engine(mask, keys):
    if mask is not None and mask.shape[-1:] == (S,):
        mask = mask[..., :keys]
    q, k, v = qkv(B)
    inputs = [q, k[:, :keys], v[:, :keys]]
    g = random.standard_normal((B, T, D_V))
    expected = gradients(attention(*inputs, mask=mask, scale=0.3), inputs, g)
    arrays = [x.data for x in inputs]
    found = attention_backward(*arrays, g, scale=0.3, may_look=mask)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-14)


def test_with_orthogonal_keys_a_step_lowers_the_scores_whose_values_raise_the_loss():
    """One key moves the query at a time: the keys are a basis, so no other score changes."""
    q, k, v = random.standard_normal((1, S)), np.eye(S), random.standard_normal((S, D_V))
    g = random.standard_normal((1, D_V))
    weights = attention_weights(Tensor(q), Tensor(k), scale=1.0).data
    d_q, d_k, d_v = attention_backward(q, k, v, g, scale=1.0)
    above = v @ g[0] > (weights @ v @ g[0]).item()
    assert 0 < above.sum() < S
    np.testing.assert_array_equal((q - 0.1 * d_q < q)[0], above)
    np.testing.assert_array_equal((d_k @ q[0]) > 0, above)  # and so do they from q
    np.testing.assert_allclose(d_v, weights.T * g, rtol=1e-12)


@pytest.mark.parametrize(
    ("d_k", "keys", "draws", "told"), [(4, 2, 200, 6), (64, 64, 40, 34), (64, 1024, 10, 45)]
)
def test_a_step_of_q_lowers_the_loss_and_not_each_score_that_raises_it(d_k, keys, draws, told):
    """The chapter says how many percent it raises. (The error is that of a ratio of means.)"""
    assert f" {told} % " in " ".join(chapter.__doc__.split())
    rng = np.random.default_rng(d_k)
    raised, of = [], []
    for _ in range(draws):
        q, k = rng.standard_normal((20, 1, d_k)), rng.standard_normal((20, keys, d_k))
        g, v = rng.standard_normal((20, 1, 1)), rng.standard_normal((20, keys, 1))  # (d_v = 1)
        d_q, d_k_, _ = attention_backward(q, k, v, g, scale=d_k**-0.5)
        above = (g * v > g * (attention_weights(Tensor(q), Tensor(k)).data @ v))[..., 0]
        raised.append((above & ((-d_q @ k.mT)[:, 0] > 0)).sum(axis=1))
        of.append(above.sum(axis=1))
        np.testing.assert_array_equal((d_k_ @ q.mT)[..., 0] > 0, above)  # a key's own step
        moved = [attention(Tensor(x), Tensor(k), Tensor(v)).data for x in (q, q - 1e-5 * d_q)]
        fell = (g * (moved[0] - moved[1])).sum()
        assert fell == pytest.approx(1e-5 * (d_q**2).sum(), rel=1e-3)  # rate · ‖∂L/∂q‖²
    raised, of = np.concatenate(raised), np.concatenate(of)
    share = raised.sum() / of.sum()
    error = np.sqrt(((raised - share * of) ** 2).sum()) / of.sum()
    assert abs(share - told / 100) < 0.005 + 3 * error < 0.03


@biases
def test_a_bias_is_added_to_the_scaled_scores(shape):
    q, k, v = qkv(B)
    bias, mask = random.standard_normal(shape), MASKS["a row that sees nothing"]
    for may in (None, mask):
        allowed = np.broadcast_to(True if may is None else may, (B, T, S))
        weights, output = three_loops(q.data, k.data, v.data, allowed, 0.3, bias)
        given = {"mask": may, "score_bias": bias, "scale": 0.3}
        np.testing.assert_allclose(attention_weights(q, k, **given).data, weights, rtol=1e-12)
        np.testing.assert_allclose(attention(q, k, v, **given).data, output, rtol=1e-12, atol=1e-14)


def test_what_is_dropped_is_dropped_from_the_weights_and_the_rest_averages_the_values():
    q, k, v = qkv(B)
    seen = []

    def drop(weights):
        seen.append(weights)
        return weights * np.arange(S)

    y = attention(q, k, v, mask=causal_mask(T, S), drop=drop)
    [weights] = seen
    expected = attention_weights(q, k, mask=causal_mask(T, S)).data
    np.testing.assert_array_equal(weights.data, expected)
    np.testing.assert_allclose(y.data, (expected * np.arange(S)) @ v.data, rtol=1e-13)


# ---------------------------------------------------------------- derivative


@masks
def test_first_and_second_derivatives_agree_with_finite_differences(mask):
    q, k, v = (x.data / 2 for x in qkv(B))
    assert gradcheck(lambda q, k, v: attention(q, k, v, mask=mask), q, k, v)
    assert gradcheck(lambda q, k: attention_weights(q, k, mask=mask), q, k)


def test_a_learned_scale_and_a_learned_bias_have_first_and_second_derivatives_too():
    """(One number for a whole row of scores changes nothing, so its gradient is rounding.)"""
    q, k, v = (x.data / 2 for x in qkv(B))
    mask = MASKS["a row that sees nothing"]
    for shape in ((S,), (B, 1, S)):
        assert gradcheck(
            lambda q, k, bias, s: attention(q, k, Tensor(v), mask=mask, score_bias=bias, scale=s),
            *(q, k, random.standard_normal(shape), np.array(0.3)),
        )


# ---------------------------------------------------------------- law


@masks
def test_adding_one_number_to_all_scores_of_a_query_changes_nothing(mask):
    q, k, v = qkv(B)
    row = Tensor(100 * random.standard_normal((B, T, 1)), requires_grad=True)
    one, other = attention(q, k, v, mask=mask), attention(q, k, v, mask=mask, score_bias=row)
    np.testing.assert_allclose(one.data, other.data, rtol=1e-11, atol=1e-13)
    (of_row,) = gradients(other, [row], random.standard_normal(other.shape))
    np.testing.assert_allclose(of_row, 0, atol=1e-14)


@pytest.mark.parametrize("d_k", [7, 11, 101])
def test_under_unit_variance_the_scores_have_standard_deviation_1_at_every_width(d_k):
    q, k = (Tensor(random.standard_normal((200, 30, d_k)), requires_grad=True) for _ in "qk")
    deviations = {}
    for name, scale in {"default": None, "missing": 1.0, "inverted": math.sqrt(d_k)}.items():
        (scores,) = attention_weights(q, k, scale=scale).node.inputs
        deviations[name] = scores.data.std()
    assert abs(deviations["default"] - 1) < 0.02
    assert deviations["missing"] > 2
    assert deviations["inverted"] > 6


@pytest.mark.parametrize(("d_k", "percent"), [(4, 35), (64, 9)])
def test_over_the_keys_the_scores_of_a_query_spread_like_its_length(d_k, percent):
    q, k = (random.standard_normal((2000, d_k)) for _ in "qk")
    lengths = np.linalg.norm(q, axis=-1)
    np.testing.assert_allclose((q @ k.T).std(axis=-1), lengths, rtol=0.15)
    assert 100 * lengths.std() / math.sqrt(d_k) == pytest.approx(percent, abs=1.5)
    assert lengths.mean() / math.sqrt(d_k) == pytest.approx(1, abs=0.08)


# ---------------------------------------------------------------- law, of unit length


def test_qk_norm_sees_only_the_directions_of_queries_and_keys():
    q, k, v = qkv(B)
    scale = Tensor(3.0, requires_grad=True)
    one = qk_norm()(q, k, v, scale=scale)
    other = qk_norm()(q * 7.0, k * 0.01, v, scale=scale)
    np.testing.assert_allclose(one.data, other.data, rtol=1e-12)
    cosines = np.einsum(
        "btd,bsd->bts", *(x.data / np.linalg.norm(x.data, axis=-1)[..., None] for x in (q, k))
    )
    e = np.exp(3.0 * cosines)
    np.testing.assert_allclose(one.data, e / e.sum(-1, keepdims=True) @ v.data, rtol=1e-12)


def test_qk_norm_bears_a_query_of_zeros_and_a_layer_with_it_learns_its_temperature():
    q, k, v = qkv(B)
    q = Tensor(np.zeros(q.shape), requires_grad=True)
    y = qk_norm(fused_attention)(q, k, v)
    np.testing.assert_allclose(y.data, v.data.mean(-2, keepdims=True) + 0 * y.data, rtol=1e-12)
    assert all(np.isfinite(g).all() for g in gradients(y, [q, k, v], np.ones(y.shape)))
    scale = Tensor(10.0, requires_grad=True)
    layer = MultiHeadAttention(6, 2, attend=qk_norm(), scale=scale, rng=np.random.default_rng(0))
    layer(Tensor(random.standard_normal((B, T, 6)))).sum().backward()
    assert "scale" in dict(layer.named_parameters()) and scale.grad != 0


# ---------------------------------------------------------------- law, of extreme scores


@pytest.mark.parametrize("dtype", [float, np.float32])
def test_however_low_an_allowed_score_is_a_forbidden_one_is_lower(dtype):
    """Biases near the lowest number are a habit of others' code, for padding."""
    q, k, v = (Tensor(x.data, dtype=dtype, requires_grad=True) for x in qkv(B))
    bias = np.where(np.arange(S) < 3, np.finfo(dtype).min / 4 * 3, 0).astype(dtype)
    mask = causal_mask(T, S) & (np.arange(S) < 3)
    weights = attention_weights(q, k, mask=mask, score_bias=bias)
    np.testing.assert_allclose(weights.data.sum(-1), 1.0, rtol=1e-6)
    one, other = (f(q, k, v, mask=mask, score_bias=bias).data for f in (attention, fused_attention))
    np.testing.assert_allclose(one, other, rtol=1e-5)


def test_without_keys_the_output_is_0():
    q, k, v = qkv(B)
    for attend in (attention, fused_attention):
        y = attend(q, k[:, :0], v[:, :0])
        assert y.shape == (B, T, D_V) and not y.data.any()


# ---------------------------------------------------------------- law, of all that attends


W = Tensor(random.standard_normal(D_K), requires_grad=True)
ATTENDS = {
    "attention": attention,
    "additive_attention": lambda q, k, v, mask=None: additive_attention(
        q, k, v, W.astype(q.dtype), mask=mask
    ),
    "fused_attention": fused_attention,
    "fused_attention in blocks of 2": partial(fused_attention, block=2),
}
attends = pytest.mark.parametrize("attend", ATTENDS.values(), ids=ATTENDS)


@attends
@pytest.mark.parametrize("batches", [((H, 1), (1, B), (B,)), ((), (B,), ()), ((B,), (), (H, B))])
@pytest.mark.parametrize("masked", [False, True])
def test_batch_axes_broadcast_and_a_mask_may_have_them_all(masked, batches, attend):
    q, k, v = (
        Tensor(random.standard_normal((*batch, *shape)))
        for batch, shape in zip(batches, ((T, D_K), (S, D_K), (S, D_V)), strict=True)
    )
    batch = np.broadcast_shapes(*batches)
    mask = random.random((*np.broadcast_shapes(*batches[:2]), T, S)) < 0.6 if masked else None
    whole = attend(q, k, v, mask=mask).data
    assert whole.shape == (*batch, T, D_V)
    q, k, v = (np.broadcast_to(x.data, (*batch, *x.shape[-2:])) for x in (q, k, v))
    masks = np.broadcast_to(True if mask is None else mask, (*batch, T, S))
    for i in np.ndindex(batch):
        one = attend(Tensor(q[i]), Tensor(k[i]), Tensor(v[i]), mask=masks[i])
        np.testing.assert_allclose(whole[i], one.data, rtol=1e-13, atol=1e-15)


@masks
@attends
def test_nothing_in_it_is_an_anomaly_and_float32_stays_float32_in_all_that_is_recorded(
    attend, mask
):
    inputs = qkv(B, dtype=np.float32)
    with detect_anomaly():
        y = attend(*inputs, mask=mask)
        y.backward(random.standard_normal(y.shape))
    found = [attend(*inputs, mask=mask)]
    for t in found:
        assert t.dtype == np.float32
        found += [x for x in (t.node.inputs if t.node else ()) if x.requires_grad and x is not W]
    assert {id(x) for x in inputs} <= {id(t) for t in found}


@attends
def test_permuting_keys_and_values_together_changes_nothing_and_permuting_queries_permutes(attend):
    q, k, v = qkv(B)
    mask, order, turned = MASKS["one a sequence (B, T, S)"], random.permutation(S), [2, 0, 1]
    one = attend(q, k, v, mask=mask)
    other = attend(q, k[:, order], v[:, order], mask=mask[..., order])
    np.testing.assert_allclose(one.data, other.data, rtol=1e-12, atol=1e-14)
    g = random.standard_normal(one.shape)
    for a, b in zip(gradients(one, [q, k, v], g), gradients(other, [q, k, v], g), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-14)
    moved = attend(q[:, turned], k, v, mask=mask[:, turned])
    np.testing.assert_allclose(moved.data, one.data[:, turned], rtol=1e-13, atol=1e-15)


@attends
def test_under_a_causal_mask_no_gradient_flows_from_an_output_to_a_later_input(attend):
    """Self-attention: ∂(output t)/∂(input s) is exactly 0 for s > t, and is not for s ≤ t."""
    x = Tensor(random.standard_normal((S, D_K)), requires_grad=True)
    for t in range(S):
        y = attend(x, x, x, mask=causal_mask(S))
        (dx,) = gradients(y[t], [x], random.standard_normal(D_K))
        np.testing.assert_array_equal((dx != 0).any(axis=-1), np.arange(S) <= t)


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


@attends
@pytest.mark.parametrize(("mask", "blind"), BLIND.values(), ids=BLIND)
def test_a_row_without_keys_gives_zeros_forward_and_backward_and_its_neighbours_keep_every_bit(
    mask, blind, attend
):
    """Without it: where it may look at everything, and is not listened to."""
    q, k, v = qkv(B)
    nowhere = np.zeros((B, T, 1), bool)
    for b, t in blind:
        nowhere[b, t] = True
    np.testing.assert_array_equal(~np.broadcast_to(mask, (B, T, S)).any(-1), nowhere[..., 0])
    g = np.where(nowhere, 0, random.standard_normal((B, T, D_V)))
    found = {}
    for seeing in (False, True):
        y = attend(q, k, v, mask=mask | nowhere if seeing else mask)
        found[seeing] = [y.data, *gradients(y, [q, k, v], g)]
    y, of_q, *_ = found[False]
    assert not y[nowhere[..., 0]].any()
    np.testing.assert_array_equal(y, np.where(nowhere, 0, found[True][0]), strict=True)
    assert not of_q[nowhere[..., 0]].any()
    for one, other in zip(found[False][1:], found[True][1:], strict=True):
        np.testing.assert_array_equal(one, other, strict=True)
    loud = attend(q, k, v, mask=mask)  # whatever arrives at them, they send nothing on
    for one, other in zip(
        gradients(loud, [q, k, v], np.where(nowhere, 1e30, g)), found[False][1:], strict=True
    ):
        np.testing.assert_array_equal(one, other, strict=True)


# ---------------------------------------------------------------- refusal, of all chapters


@pytest.mark.parametrize(("ask", "error", "words"), REFUSED.values(), ids=REFUSED)
def test_what_is_wrong_is_refused_in_a_sentence(ask, error, words):
    with pytest.raises(error, match=words):
        ask()
