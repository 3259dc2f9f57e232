"""Chapter 13 · Multi-head attention: heads that never mix, under masks that stay in their batch."""

import math

import numpy as np
import pytest

from attention import (
    MultiHeadAttention,
    attention,
    causal_mask,
    merge_heads,
    multi_head_attention,
    padding_mask,
    split_heads,
    window_mask,
)
from attention.cache import KVCache
from attention.positions import rotary
from minigrad import Tensor, gradcheck, gradients, no_grad
from minigrad.nn import Dropout

random = np.random.default_rng(3)
B, T, S, H, D_K, D_V, D_MODEL = 2, 3, 5, 7, 11, 13, 17


def layer(d_model=D_MODEL, num_heads=H, **options):
    return MultiHeadAttention(d_model, num_heads, rng=np.random.default_rng(5), **options)


def free(**options):
    """Return a layer with d_k and d_v of its own choice."""
    return layer(d_k=D_K, d_v=D_V, **options)


def shared(num_kv_heads=2, **options):
    """Return a layer of 6 heads, which share keys of 14 features: pairs that can be turned."""
    return layer(num_heads=6, num_kv_heads=num_kv_heads, d_k=14, **options)


def randomised(layer):
    """Draw every parameter of the layer that starts at 0."""
    for parameter in layer.parameters():
        if not parameter.data.any():
            parameter.data = random.standard_normal(parameter.shape)
    return layer


def wide(**options):
    """Return a layer with d_k and d_v of its own choice, and biases that are not 0."""
    return randomised(free(bias=True, **options))


def sequences(positions, batch=(B,), d_model=D_MODEL, dtype=float):
    values = random.standard_normal((*batch, positions, d_model))
    return Tensor(values, dtype=dtype, requires_grad=True)


def turned(x, position):
    """Turn pairs of features by the position, one at a time (Su et al. 2021, equation 34)."""
    y = np.zeros_like(x)
    for i in range(0, len(x), 2):
        angle = position / 10_000 ** (i / len(x))
        y[i] = x[i] * math.cos(angle) - x[i + 1] * math.sin(angle)
        y[i + 1] = x[i] * math.sin(angle) + x[i + 1] * math.cos(angle)
    return y


def three_loops(layer, q, k, v, mask, bias=0.0):
    """Compute the paper's equations, one batch element, one head and one query at a time.

    Heads that share keys use those of their group. Rotary layers turn queries and keys by their
    positions; the queries are at the last ones.
    """
    p = {name: parameter.data for name, parameter in layer.named_parameters()}
    H, shared_by = layer.num_heads, layer.num_heads // layer.num_kv_heads
    d_k, d_v = p["w_q.weight"].shape[1] // H, p["w_o.weight"].shape[0] // H
    turn = turned if layer.rotate else lambda x, position: x
    mask, bias = (np.broadcast_to(x, (B, H, T, len(k[0]))) for x in (mask, bias))
    weights, output = np.zeros(mask.shape), np.zeros((B, T, D_MODEL))
    for b in range(B):
        for h in range(H):
            group = h // shared_by
            ours, keys = (slice(n * d_k, (n + 1) * d_k) for n in (h, group))
            values = slice(group * d_v, (group + 1) * d_v)
            for t in range(T):
                position = len(k[0]) - T + t
                query = turn(q[b, t] @ p["w_q.weight"][:, ours] + p["w_q.bias"][ours], position)
                for s in range(len(k[0])):
                    key = turn(k[b, s] @ p["w_k.weight"][:, keys] + p["w_k.bias"][keys], s)
                    if mask[b, h, t, s]:
                        score = query @ key / math.sqrt(d_k) + bias[b, h, t, s]
                        weights[b, h, t, s] = math.exp(score)
                weights[b, h, t] /= weights[b, h, t].sum() or 1.0
                averaged = weights[b, h, t] @ (
                    v[b] @ p["w_v.weight"][:, values] + p["w_v.bias"][values]
                )
                output[b, t] += averaged @ p["w_o.weight"][h * d_v : (h + 1) * d_v]
        output[b] += p["w_o.bias"]
    return weights, output


# ---------------------------------------------------------------- value


MASKS = {  # with the shape (B, H, T, S) that each stands for
    "none": (None, np.ones((1, 1, 1, 1))),
    "(T, S)": (m := random.random((T, S)) < 0.6, m[None, None]),
    "(B, T, S)": (m := random.random((B, T, S)) < 0.6, m[:, None]),
    "(B, H, T, S)": (m := random.random((B, H, T, S)) < 0.6, m),
    "padding": (m := padding_mask([2, 4], S), m[:, None]),
    "padding and causal": (m := padding_mask([2, 4], S) & causal_mask(T, S), m[:, None]),
    "a row that sees nothing": (m := random.random((T, S)) < [[1], [0], [1]], m[None, None]),
}


@pytest.mark.parametrize(("mask", "for_heads"), MASKS.values(), ids=MASKS.keys())
def test_cross_attention_equals_three_nested_loops(mask, for_heads):
    made, q, k, v = wide(), sequences(T), sequences(S), sequences(S)
    weights, output = three_loops(made, q.data, k.data, v.data, for_heads)
    np.testing.assert_allclose(made(q, k, v, mask=mask).data, output, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(made.weights(q, k, mask=mask).data, weights, rtol=1e-11)
    _, output = three_loops(made, q.data, k.data, k.data, for_heads)
    np.testing.assert_allclose(made(q, k, mask=mask).data, output, rtol=1e-11, atol=1e-13)


GROUPS = {"each its own": 6, "threes": 2, "one for all": 1}  # how many of 6 have their own keys
groups = pytest.mark.parametrize("num_kv_heads", GROUPS.values(), ids=GROUPS)
SCORE_BIASES = {  # with the shape (B, 6, T, S) that each stands for
    "no bias": (),
    "(T, S)": (T, S),
    "(H, T, S)": (6, T, S),
    "(B, H, T, S)": (B, 6, T, S),
}


@pytest.mark.parametrize("mask", [None, np.tri(T, S, S - T, dtype=bool)])
def test_the_papers_two_lines_are_the_layer_without_its_options(mask):
    made = free()
    rng = np.random.default_rng(3)
    q, k, v = (Tensor(rng.standard_normal((B, n, D_MODEL))) for n in (T, S, S))
    weights = [p for _, p in made.named_parameters()]  # w_q, w_k, w_v, w_o
    ys = multi_head_attention(q, k, v, *weights, H, mask=mask), made(q, k, v, mask=mask)
    np.testing.assert_allclose(*[y.data for y in ys], rtol=1e-12, atol=1e-14)
    g = rng.standard_normal(ys[0].shape)
    for one, other in zip(*[gradients(y, weights, g) for y in ys], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)


@groups
@pytest.mark.parametrize("shape", SCORE_BIASES.values(), ids=SCORE_BIASES)
def test_shared_keys_rotary_positions_and_a_bias_equal_three_nested_loops(shape, num_kv_heads):
    mask = window_mask(T, S, size=3)
    made = randomised(shared(num_kv_heads=num_kv_heads, d_v=D_V, bias=True, rotate=rotary))
    q, memory = sequences(T), sequences(S)
    bias = random.standard_normal(shape) if shape else None
    arrays = q.data, memory.data, memory.data, mask
    weights, output = three_loops(made, *arrays, 0.0 if bias is None else bias)
    found = made(q, memory, mask=mask, score_bias=bias)
    np.testing.assert_allclose(found.data, output, rtol=1e-10, atol=1e-12)
    found = made.weights(q, memory, mask=mask, score_bias=bias)
    np.testing.assert_allclose(found.data, weights, rtol=1e-10)


@groups
def test_the_parameters_are_named_as_the_paper_names_them_and_shared_keys_take_a_share(
    num_kv_heads,
):
    made = shared(num_kv_heads, d_v=D_V, bias=True, scale=Tensor(0.3, requires_grad=True))
    widths = {"q": 6 * 14, "k": num_kv_heads * 14, "v": num_kv_heads * D_V, "o": D_MODEL}
    weights = {f"w_{x}.weight": (D_MODEL, width) for x, width in widths.items()}
    weights["w_o.weight"] = (6 * D_V, D_MODEL)
    biases = {f"w_{x}.bias": (width,) for x, width in widths.items()}
    found = dict(made.named_parameters())
    assert {name: p.shape for name, p in found.items()} == weights | biases | {"scale": ()}
    assert {name: p.name for name, p in found.items()} == {name: name for name in found}
    plain = shared(num_kv_heads, d_v=D_V)
    assert {name: p.shape for name, p in plain.named_parameters()} == weights


# ---------------------------------------------------------------- derivative


@pytest.mark.parametrize("mask", [None, padding_mask([1, 3], 3) & causal_mask(2, 3)])
def test_every_derivative_agrees_with_finite_differences(mask):
    """With respect to both inputs, the parameters, and a learned scale, at both orders.

    The biases of W_K and W_V are left out: weights sum to 1, so the first changes nothing and
    the second is only added to the output. A derivative that is 0 but for rounding can't be
    resolved.
    """
    made = layer(5, 2, d_k=3, d_v=2, bias=True, scale=Tensor(0.5, requires_grad=True))
    owners = [(made.w_q, "weight"), (made.w_k, "weight"), (made.w_v, "weight")]
    owners += [(made.w_o, "weight"), (made.w_q, "bias"), (made.w_o, "bias"), (made, "scale")]

    def f(x, memory, *parameters):
        for (owner, name), parameter in zip(owners, parameters, strict=True):
            setattr(owner, name, parameter)
        return made(x, memory, mask=mask)

    assert gradcheck(
        f,
        random.standard_normal((2, 2, 5)),
        random.standard_normal((2, 3, 5)),
        *(getattr(owner, name).data for owner, name in owners),
    )


# ---------------------------------------------------------------- law


def test_merging_undoes_splitting_in_both_directions_and_so_do_their_gradients():
    x = sequences(T, d_model=H * D_K)
    heads = Tensor(random.standard_normal((B, H, T, D_V)), requires_grad=True)
    for input, output in (
        (x, merge_heads(split_heads(x, H))),
        (heads, split_heads(merge_heads(heads), H)),
    ):
        g = random.standard_normal(input.shape)
        np.testing.assert_array_equal(output.data, input.data, strict=True)
        np.testing.assert_array_equal(gradients(output, [input], g)[0], g)


def test_heads_never_mix_before_the_last_projection():
    """A gradient at one head's output reaches that head's columns of W_Q, W_K and W_V only."""
    made, x, seen = free(), sequences(T), []

    def attend(q, k, v, **options):
        seen.append(attention(q, k, v, **options))
        return seen[0]

    made.attend = attend
    made(x)
    projections = [made.w_q.weight, made.w_k.weight, made.w_v.weight]
    for w, d in zip(projections, gradients(seen[0][:, 3].sum(), projections), strict=True):
        columns = (d.reshape(D_MODEL, H, -1) != 0).any(axis=(0, 2))
        np.testing.assert_array_equal(columns, np.arange(H) == 3, err_msg=w.name)


def test_one_matrix_for_queries_and_keys_lets_no_two_positions_fit_each_other_best():
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((B, T, D_MODEL)), rng.standard_normal((D_MODEL, D_K))
    z = (x @ w) @ (x @ w).mT
    own = np.diagonal(z, axis1=1, axis2=2)
    np.testing.assert_allclose(z, z.mT, rtol=1e-13)
    assert (z <= (own[:, :, None] + own[:, None]) / 2 + 1e-9).all()


def test_the_axis_before_the_last_is_that_of_the_positions():
    """So (T, B, d) would mix the sequences of a batch; with (B, T, d) each is on its own."""
    x = np.random.default_rng(0).standard_normal((B, T, D_MODEL))
    changed = x.copy()
    changed[1] += 1.0  # the second sequence
    mix = layer(num_heads=1)
    np.testing.assert_array_equal(mix(Tensor(x))[0].data, mix(Tensor(changed))[0].data)
    turned = [mix(Tensor(each.swapaxes(0, 1)))[:, 0].data for each in (x, changed)]
    assert np.abs(turned[0] - turned[1]).max() > 0.01


def test_a_cache_belongs_to_its_user_and_carries_gradients_where_a_record_is_made():
    made, x, cache = wide(), sequences(S), KVCache()
    made(x[:, :2], mask=causal_mask(2), cache=cache)
    y = made(x[:, 2:], mask=causal_mask(3, S), cache=cache)
    (dx,) = gradients(y, [x], random.standard_normal(y.shape))
    assert dx.any(axis=-1).all()  # also the first two positions, through the cache
    other = KVCache()
    with no_grad():
        made(x, mask=causal_mask(S), cache=other)
    assert not other.k.requires_grad and other.length == S and cache.length == S


def test_it_attends_with_the_function_it_was_given_which_always_gets_the_same_four_options():
    calls = []

    def attend(q, k, v, **options):
        calls.append(([x.shape for x in (q, k, v)], options))
        return attention(q, k, v, **options)

    made, mask, bias = free(dropout=0.5, attend=attend, scale=0.25), causal_mask(T, S), np.ones(S)
    q, memory = sequences(T), sequences(S)
    made(q, memory, mask=mask)
    made(q, memory, mask=mask, score_bias=bias)
    made.eval()(q, memory, mask=mask)
    always = {"mask": mask, "score_bias": None, "scale": 0.25, "drop": None}
    assert isinstance(made.dropout, Dropout)
    assert [options for _, options in calls] == [
        always | {"drop": made.dropout},
        always | {"drop": made.dropout, "score_bias": bias},
        always,
    ]
    assert [shapes for shapes, _ in calls] == [[(B, H, T, D_K), (B, H, S, D_K), (B, H, S, D_V)]] * 3


@pytest.mark.parametrize("batch", [(3, S), (2, S), (S,)])
def test_a_mask_of_a_sequence_is_not_taken_for_a_mask_of_a_head(batch):
    """With as many sequences as heads, only its place tells (B, T, S) from (H, T, S)."""
    made = layer(6, 3)
    x, mask = sequences(T, batch, 6), random.random((*batch, T, T)) < 0.6
    whole = made(x, mask=mask).data
    for i in np.ndindex(batch):
        one = made(Tensor(x.data[i]), mask=mask[i]).data
        np.testing.assert_allclose(whole[i], one, rtol=1e-12, atol=1e-14)


# ---------------------------------------------------------------- refusal


def test_a_call_that_is_refused_leaves_the_cache_as_it_was():
    made, cache, x = free(), KVCache(), sequences(S)
    made(x[:, :3], mask=causal_mask(3), cache=cache)
    with pytest.raises(ValueError, match="mask"):
        made(x[:, 3:], mask=causal_mask(2), cache=cache)
    assert cache.length == 3
    projection, made.w_o = made.w_o, lambda x: x @ np.ones((2, 2))
    with pytest.raises(ValueError, match="matmul"):
        made(x[:, 3:], mask=causal_mask(2, S), cache=cache)
    assert cache.length == 3
    made.w_o = projection
    y = made(x[:, 3:], mask=causal_mask(2, S), cache=cache)
    whole = made(x, mask=causal_mask(S))
    np.testing.assert_allclose(y.data, whole.data[:, 3:], rtol=1e-10, atol=1e-12)
