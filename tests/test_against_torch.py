"""Chapters 3, 11 and 13 · Against PyTorch: the same values and gradients, to 1e-10 in float64.

A second implementation, by other people, cannot share our mistakes. Skipped without torch.
"""

import math

import numpy as np
import pytest

from attention import MultiHeadAttention, attention, attention_weights, causal_mask, padding_mask
from minigrad import Tensor, gradients, ops

torch = pytest.importorskip("torch", reason="the comparison with PyTorch needs torch")

random = np.random.default_rng(3)
B, T, S, H, D_K, D_V = 2, 3, 5, 7, 11, 13


def x(*shape):
    return random.standard_normal(shape)


def positive(*shape):
    return random.uniform(0.5, 2.0, shape)


def agree(ours, theirs):
    for one, other in zip(ours, theirs, strict=True):
        one = one.data if isinstance(one, Tensor) else one
        other = other.detach().numpy()
        assert one.dtype == other.dtype == np.float64
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12, strict=True)


# ---------------------------------------------------------------- primitives

PICKS = np.array([2, 0, 2])
CONDITION = random.random((3, 5)) < 0.5

PRIMITIVES = {
    "add": (ops.add, torch.add, x(3, 5), x(5)),
    "astype": (lambda x: ops.astype(x, float), lambda x: x.to(torch.float64), x(3, 5)),
    "broadcast_to": (
        lambda x: ops.broadcast_to(x, (2, 3, 5)),
        lambda x: torch.broadcast_to(x, (2, 3, 5)),
        x(3, 1),
    ),
    "concatenate": (
        lambda a, b: ops.concatenate([a, b, a], axis=1),
        lambda a, b: torch.cat([a, b, a], dim=1),
        x(2, 3),
        x(2, 5),
    ),
    "divide": (ops.divide, torch.div, x(3, 1), positive(1, 5)),
    "exp": (ops.exp, torch.exp, x(3, 5)),
    "getitem": (lambda x: x[PICKS, 1:, None], lambda x: x[PICKS, 1:, None], x(3, 5)),
    "log": (ops.log, torch.log, positive(3, 5)),
    "log_softmax": (ops.log_softmax, lambda x: torch.log_softmax(x, -1), 10 * x(2, 3, 5)),
    "logsumexp": (
        lambda x: ops.logsumexp(x, axis=(0, 2)),
        lambda x: torch.logsumexp(x, (0, 2)),
        10 * x(2, 3, 5),
    ),
    "matmul": (ops.matmul, torch.matmul, x(2, 1, 3, 5), x(7, 5, 11)),
    "matmul of vectors": (ops.matmul, torch.matmul, x(5), x(2, 5, 7)),
    "max": (lambda x: ops.max(x, axis=1), lambda x: torch.amax(x, 1), x(2, 3, 5)),
    "max of ties": (ops.max, torch.amax, random.integers(0, 2, (3, 5)).astype(float)),
    "maximum": (ops.maximum, torch.maximum, x(3, 5), x(5)),
    "maximum of ties": (ops.maximum, torch.maximum, *random.integers(0, 2, (2, 15)).astype(float)),
    "mean": (lambda x: ops.mean(x, axis=(0, 2)), lambda x: torch.mean(x, (0, 2)), x(2, 3, 5)),
    "multiply": (ops.multiply, torch.mul, x(2, 3, 5), x(3, 1)),
    "negative": (ops.negative, torch.neg, x(3, 5)),
    "positive": (ops.positive, torch.positive, x(3, 5)),
    "power": (ops.power, torch.pow, positive(3, 5), x(5)),
    "power of 0": (lambda x: x**2 + x**1 + x**0, lambda x: x**2 + x**1 + x**0, np.zeros(3)),
    "reshape": (lambda x: ops.reshape(x, (5, -1)), lambda x: torch.reshape(x, (5, -1)), x(3, 5)),
    "scatter_add": (
        lambda x: ops.scatter_add(x, (3, 5), PICKS),
        lambda x: torch.zeros(3, 5, dtype=torch.float64).index_add(0, torch.tensor(PICKS), x),
        x(3, 5),
    ),
    "softmax": (
        lambda x: ops.softmax(x, axis=1),
        lambda x: torch.softmax(x, 1),
        10 * x(2, 3, 5),
    ),
    "sqrt": (ops.sqrt, torch.sqrt, positive(3, 5)),
    "subtract": (ops.subtract, torch.sub, x(), x(3, 5)),
    "sum": (lambda x: ops.sum(x, axis=(0, 2)), lambda x: torch.sum(x, (0, 2)), x(2, 3, 5)),
    "swapaxes": (lambda x: ops.swapaxes(x, 0, -1), lambda x: torch.swapaxes(x, 0, -1), x(2, 3, 5)),
    "tanh": (ops.tanh, torch.tanh, 3 * x(3, 5)),
    "transpose": (
        lambda x: ops.transpose(x, (2, 0, 1)),
        lambda x: torch.permute(x, (2, 0, 1)),
        x(2, 3, 5),
    ),
    "where": (
        lambda a, b: ops.where(CONDITION, a, b),
        lambda a, b: torch.where(torch.tensor(CONDITION), a, b),
        x(3, 5),
        x(5),
    ),
}


def test_the_table_has_a_row_for_every_primitive():
    assert {name.split(" of ")[0] for name in PRIMITIVES} == set(ops.__all__)


@pytest.mark.parametrize(
    ("ours", "theirs", "inputs"), [(f, g, a) for f, g, *a in PRIMITIVES.values()], ids=PRIMITIVES
)
def test_a_primitive_has_the_value_and_the_gradients_of_pytorchs(ours, theirs, inputs):
    tensors = [Tensor(a, requires_grad=True) for a in inputs]
    others = [torch.tensor(a, requires_grad=True) for a in inputs]
    y, other = ours(*tensors), theirs(*others)
    g = x(*y.shape)
    agree([y], [other])
    agree(gradients(y, tensors, g), torch.autograd.grad(other, others, torch.tensor(g)))


# ---------------------------------------------------------------- attention

MASKS = {
    "none": None,
    "causal": causal_mask(T),
    "padding": np.broadcast_to(padding_mask([2, 5], S)[:, None], (B, 1, T, S)),
    "(B, H, T, S)": random.random((B, H, T, S)) < 0.7,
    "a row that sees nothing": np.array([[True] * S, [False] * S, [True] * S]),
}


@pytest.mark.parametrize("scale", [None, 0.7])
@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
def test_attention_has_the_value_and_the_gradients_of_pytorchs(mask, scale):
    keys = S if mask is None else mask.shape[-1]
    arrays = [x(B, H, T, D_K), x(B, H, keys, D_K), x(B, H, keys, D_V)]
    ours = [Tensor(a, requires_grad=True) for a in arrays]
    theirs = [torch.tensor(a, requires_grad=True) for a in arrays]
    y = attention(*ours, mask=mask, scale=scale)
    other = torch.nn.functional.scaled_dot_product_attention(
        *theirs, attn_mask=None if mask is None else torch.tensor(mask), scale=scale
    )
    g = x(*y.shape)
    agree([y], [other])
    agree(gradients(y, ours, g), torch.autograd.grad(other, theirs, torch.tensor(g)))


def test_causal_attention_is_pytorchs_is_causal():
    arrays = [x(B, H, T, D_K), x(B, H, T, D_K), x(B, H, T, D_V)]
    y = attention(*map(Tensor, arrays), mask=causal_mask(T))
    other = torch.nn.functional.scaled_dot_product_attention(
        *map(torch.tensor, arrays), is_causal=True
    )
    agree([y], [other])


@pytest.mark.parametrize("mask", [None, causal_mask(T)], ids=["no mask", "causal"])
def test_the_second_derivative_of_attention_is_pytorchs(mask):
    """The gradient's squared norm, differentiated: a penalty on gradients, as one trains with."""
    arrays, g = [x(B, T, D_K), x(B, T, D_K), x(B, T, D_V), np.array(0.3)], x(B, T, D_V)

    def softmax_attention(q, k, v, scale):
        scores = q @ k.mT * scale
        if mask is not None:
            scores = scores.masked_fill(~torch.tensor(mask), -torch.inf)
        return torch.softmax(scores, -1) @ v

    ours = [Tensor(a, requires_grad=True) for a in arrays]
    theirs = [torch.tensor(a, requires_grad=True) for a in arrays]
    first = gradients(attention(*ours[:3], mask=mask, scale=ours[3]), ours, g, create_graph=True)
    others = torch.autograd.grad(
        softmax_attention(*theirs), theirs, torch.tensor(g), create_graph=True
    )
    agree(first, others)
    agree(
        gradients(sum((d * d).sum() for d in first), ours),
        torch.autograd.grad(sum((d * d).sum() for d in others), theirs),
    )


# ---------------------------------------------------------------- multi-head attention


# torch's layer gives NaN where a query may look nowhere, so here each may look at key 0.
SEEING = (random.random((B, T, S)) < 0.7) | (np.arange(S) == 0)


def pytorchs(layer, d_model, bias):
    """torch's layer with our weights. It stores transposes, and W_Q, W_K, W_V in one."""
    other = torch.nn.MultiheadAttention(
        d_model, H, bias=bias, batch_first=True, dtype=torch.float64
    )
    p = {name: parameter.data for name, parameter in layer.named_parameters()}
    with torch.no_grad():
        other.in_proj_weight[:] = torch.tensor(
            np.concatenate([p[f"w_{n}.weight"].T for n in "qkv"])
        )
        other.out_proj.weight[:] = torch.tensor(p["w_o.weight"].T)
        if bias:
            other.in_proj_bias[:] = torch.tensor(np.concatenate([p[f"w_{n}.bias"] for n in "qkv"]))
            other.out_proj.bias[:] = torch.tensor(p["w_o.bias"])
    return other


def back_in_our_names(other, bias):
    """The gradients of torch's parameters, cut apart and transposed to ours."""
    found = dict(zip(["w_q", "w_k", "w_v"], other.in_proj_weight.grad.chunk(3), strict=True))
    found = {f"{name}.weight": g.mT for name, g in found.items()}
    found["w_o.weight"] = other.out_proj.weight.grad.mT
    if bias:
        for n, g in zip("qkv", other.in_proj_bias.grad.chunk(3), strict=True):
            found[f"w_{n}.bias"] = g
        found["w_o.bias"] = other.out_proj.bias.grad
    return found


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(
    "mask",
    [None, causal_mask(T, S), SEEING],
    ids=["none", "(T, S)", "(B, T, S)"],
)
def test_multi_head_attention_has_pytorchs_value_weights_and_gradient_of_every_parameter(
    mask, bias
):
    d_model = H * D_K
    layer = MultiHeadAttention(d_model, H, bias=bias, rng=random)
    for parameter in layer.parameters():
        if parameter.ndim == 1:
            parameter.data = x(*parameter.shape)
    other = pytorchs(layer, d_model, bias)
    arrays, g = [x(B, T, d_model), x(B, S, d_model), x(B, S, d_model)], x(B, T, d_model)

    ours = [Tensor(a, requires_grad=True) for a in arrays]
    y = layer(*ours, mask=mask)
    y.backward(g)

    theirs = [torch.tensor(a, requires_grad=True) for a in arrays]
    # torch's mask says who may NOT look, and takes (B · H, T, S) where ours is (B, T, S).
    blocked = None if mask is None else torch.tensor(~mask)
    if mask is not None and mask.ndim == 3:
        blocked = blocked.repeat_interleave(H, dim=0)
    result, weights = other(*theirs, attn_mask=blocked, average_attn_weights=False)
    result.backward(torch.tensor(g))

    agree([y, layer.weights(*ours[:2], mask=mask)], [result, weights])
    agree([t.grad for t in ours], [t.grad for t in theirs])
    expected = back_in_our_names(other, bias)
    parameters = dict(layer.named_parameters())
    assert expected.keys() == parameters.keys()
    agree([parameters[name].grad for name in expected], expected.values())


def test_padding_is_pytorchs_key_padding_mask_reversed():
    d_model = H * D_K
    layer = MultiHeadAttention(d_model, H, rng=random)
    q, memory, mask = x(B, T, d_model), x(B, S, d_model), padding_mask([2, 5], S)
    ours = layer(Tensor(q), Tensor(memory), mask=mask)
    q, memory = torch.tensor(q), torch.tensor(memory)
    theirs, _ = pytorchs(layer, d_model, False)(
        q, memory, memory, key_padding_mask=torch.tensor(~mask[:, 0])
    )
    agree([ours], [theirs])


def test_the_default_scale_is_one_over_the_root_of_d_k():
    q, k = x(B, T, D_K), x(B, S, D_K)
    ours = attention_weights(Tensor(q), Tensor(k))
    scores = torch.tensor(q) @ torch.tensor(k).mT / math.sqrt(D_K)
    agree([ours], [torch.softmax(scores, -1)])
