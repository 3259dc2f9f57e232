"""Chapters 3, 6, 11 and 13 · Against PyTorch: the same values and gradients, to 1e-10 in float64.

A second implementation, by other people, cannot share our mistakes. Skipped without torch.
"""

import math

import numpy as np
import pytest

from attention import MultiHeadAttention, attention, attention_weights, causal_mask, padding_mask
from minigrad import Tensor, gradients, ops
from minigrad import functional as F

torch = pytest.importorskip("torch", reason="the comparison with PyTorch needs torch")
nn = torch.nn.functional

random = np.random.default_rng(3)
B, T, S, H, D_K, D_V = 2, 3, 5, 7, 11, 13


def x(*shape):
    return random.standard_normal(shape)


def agree(ours, theirs):
    for one, other in zip(ours, theirs, strict=True):
        one = one.data if isinstance(one, Tensor) else one
        other = other.detach().numpy()
        assert one.dtype == other.dtype == np.float64
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12, strict=True)


# ---------------------------------------------------------------- operations

# Every operation in ordinary places stands against PyTorch in the table of coverage (chapters 3
# and 6). Here are the places where a convention is chosen, and the scores are large.

ZEROS_AND_ONES = random.integers(0, 2, (2, 3, 5)).astype(float)
FAR = np.array([-800.0, -30.0, -1.0, 0.0, 1.0, 30.0, 800.0])

PLACES = {
    "abs at 0": (ops.abs, torch.abs, [-1.0, 0.0, 1.0]),
    "elu at 0": (F.elu, nn.elu, [-1.0, 0.0, 1.0]),
    "log_softmax of large scores": (
        ops.log_softmax,
        lambda x: torch.log_softmax(x, -1),
        300 * x(2, 3, 5),
    ),
    "logaddexp far apart": (
        lambda x: ops.logaddexp(x, 0.0),
        lambda x: torch.logaddexp(x, torch.zeros(7, dtype=torch.float64)),
        FAR,
    ),
    "logsumexp of large scores": (
        lambda x: ops.logsumexp(x, axis=(0, 2)),
        lambda x: torch.logsumexp(x, (0, 2)),
        300 * x(2, 3, 5),
    ),
    "losses of large scores": (
        lambda x: ops.cross_entropy(x, [1, 4, 0]),
        lambda x: nn.cross_entropy(x, torch.tensor([1, 4, 0])),
        300 * x(3, 5),
    ),
    "losses of large logits": (
        lambda x: F.binary_cross_entropy_with_logits(x, np.linspace(0, 1, 7)),
        lambda x: nn.binary_cross_entropy_with_logits(x, torch.tensor(np.linspace(0, 1, 7))),
        FAR,
    ),
    "max of ties": (ops.max, torch.amax, ZEROS_AND_ONES[0]),
    "maximum of ties": (ops.maximum, torch.maximum, *ZEROS_AND_ONES),
    "min of ties": (F.min, torch.amin, ZEROS_AND_ONES[0]),
    "minimum of ties": (F.minimum, torch.minimum, *ZEROS_AND_ONES),
    "norm at 0": (F.norm, torch.linalg.vector_norm, np.zeros(3)),
    "norm of order 1 at 0": (
        lambda x: F.norm(x, 1),
        lambda x: torch.linalg.vector_norm(x, 1),
        [0.0, -2.0],
    ),
    "norm of order inf in ties": (
        lambda x: F.norm(x, np.inf),
        lambda x: torch.linalg.vector_norm(x, np.inf),
        [2.0, -2.0, 1.0],
    ),
    "power of 0": (lambda x: x**2 + x**1 + x**0, lambda x: x**2 + x**1 + x**0, np.zeros(3)),
    "prod with one 0": (F.prod, torch.prod, [2.0, 0.0, 3.0, 5.0]),
    "prod with two zeros": (F.prod, torch.prod, [2.0, 0.0, 3.0, 0.0]),
    "relu at 0": (F.relu, nn.relu, [-1.0, 0.0, 1.0]),
    "sign at 0": (ops.sign, torch.sign, [-1.0, 0.0, 1.0]),
    "sigmoid far out": (ops.sigmoid, torch.sigmoid, FAR),
    "softmax of large scores": (
        lambda x: ops.softmax(x, axis=1),
        lambda x: torch.softmax(x, 1),
        300 * x(2, 3, 5),
    ),
    "softplus far out": (F.softplus, lambda x: nn.softplus(x, threshold=1000), FAR[:-1]),
    "sort of ties": (
        F.sort,
        lambda x: torch.sort(x, stable=True).values,
        random.integers(0, 3, 15).astype(float),
    ),
    "tanh far out": (ops.tanh, torch.tanh, FAR),
}


@pytest.mark.parametrize(
    ("ours", "theirs", "inputs"), [(f, g, a) for f, g, *a in PLACES.values()], ids=PLACES
)
def test_an_operation_has_pytorchs_value_and_gradients_where_a_convention_is_chosen(
    ours, theirs, inputs
):
    tensors = [Tensor(a, requires_grad=True) for a in inputs]
    others = [torch.tensor(a, dtype=torch.float64, requires_grad=True) for a in inputs]
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
