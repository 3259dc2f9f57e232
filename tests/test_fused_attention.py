"""Chapter 12 · Fused attention: in any blocks, what chapter 11's attention is, in O(T) memory."""

import itertools
import tracemalloc

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import attention.fused as chapter
from attention import (
    attention,
    attention_backward,
    causal_mask,
    fused_attention,
    padding_mask,
    window_mask,
)
from minigrad import Tensor, gradcheck, gradients, unfused

random = np.random.default_rng(3)
B, T, S, H, D_K, D_V = 2, 3, 5, 7, 11, 13
BLOCKS = [2, 17]


def t(*shape, dtype=float):
    return Tensor(random.standard_normal(shape), dtype=dtype, requires_grad=True)


def qkv(*batch, dtype=float):
    return [t(*batch, *shape, dtype=dtype) for shape in ((T, D_K), (S, D_K), (S, D_V))]


MASKS = {
    "none": None,
    "causal": causal_mask(T, S),
    "window": window_mask(T, S, size=2),
    "padding": padding_mask([2, 5], S)[:, None],
    "causal and padding": (causal_mask(T, S) & padding_mask([1, 4], S))[:, None],
    "one a key": np.array([False, True, False, True, True]),
    "one a query": np.array([[True], [False], [True]]),
    "random": random.random((B, H, T, S)) < 0.5,
    "an empty sequence": padding_mask([3, 0], S)[:, None],
    "nothing at all": np.array(False),
    "a list": causal_mask(T, S).tolist(),
    "a tensor": Tensor(causal_mask(T, S)),
}
masks = pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS.keys())
blocks = pytest.mark.parametrize("block", BLOCKS)

# Every way in which a bias with axes can broadcast to scores (B, H, T, S).
BROADCAST = [
    shape
    for axes in range(1, 5)
    for shape in itertools.product(*[(1, n) for n in (B, H, T, S)[4 - axes :]])
]


def agree(ours, theirs, rtol=1e-10, atol=1e-12):
    for one, other in zip(ours, theirs, strict=True):
        assert one.shape == other.shape and one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=rtol, atol=atol)


def both(inputs, g=None, block=2, **options):
    """Return values and input gradients of the fused function, and of its definition."""
    found = []
    for attend, more in ((fused_attention, {"block": block}), (attention, {})):
        y = attend(*inputs[:3], **options, **more)
        g = random.standard_normal(y.shape) if g is None else g
        found.append([y.data, *gradients(y, inputs, g)])
    return found


# ---------------------------------------------------------------- value and derivatives


@masks
@blocks
def test_value_and_gradients_are_those_of_the_definition(mask, block):
    agree(*both(qkv(B, H), mask=mask, block=block))


@masks
def test_the_gradients_written_by_hand_are_those_that_the_engine_derives(mask):
    """With create_graph=True it goes back to the definition, and otherwise asks the rule.

    Chapter 11's way back, on paper, is a third one.
    """
    inputs = qkv(B, H)
    y = fused_attention(*inputs, mask=mask, block=2)
    g = random.standard_normal(y.shape)
    by_hand = gradients(y, inputs, g, retain_graph=True)
    agree(by_hand, [d.data for d in gradients(y, inputs, g, create_graph=True)])
    arrays = [x.data for x in inputs]
    agree(by_hand, attention_backward(*arrays, g, scale=1 / np.sqrt(D_K), may_look=mask))


@pytest.mark.parametrize("queries", [1, T])
def test_dropped_weights_and_a_single_query_are_handed_on_to_chapter_11(queries):
    q, k, v = qkv(B, H)
    q, mask = q[..., :queries, :], random.random((B, H, queries, S)) < 0.7
    options = {"mask": mask, "score_bias": random.standard_normal(S), "scale": 0.3}
    for drop in (None, lambda weights: weights * np.arange(float(S))):
        y = fused_attention(q, k, v, drop=drop, **options)
        by_steps = attention(q, k, v, drop=drop, **options)
        np.testing.assert_allclose(y.data, by_steps.data, rtol=1e-10, atol=1e-12)
        assert (y.node.name == "matmul") == (queries == 1 or drop is not None)


@blocks
def test_derivatives_to_second_order_agree_with_finite_differences(block):
    inputs = [random.standard_normal(s) / 2 for s in ((T, 5), (S, 5), (S, 7), (T, S))]
    assert gradcheck(
        lambda q, k, v, bias, scale: fused_attention(
            q, k, v, score_bias=bias, scale=scale, mask=causal_mask(T, S), block=block
        ),
        *inputs,
        np.array(0.7),
    )


@blocks
def test_a_bias_may_broadcast_in_every_axis(block):
    assert len(BROADCAST) == 2 + 4 + 8 + 16
    q, k, v = qkv(B, H)
    g = random.standard_normal((B, H, T, D_V))
    for shape in BROADCAST:
        bias = t(*shape)
        agree(*both([q, k, v, bias], g, block, score_bias=bias, mask=MASKS["random"]))


def test_the_gradients_of_a_saturated_softmax_have_the_digits_that_the_definitions_have():
    """The smallest are 1e-50 of ∂L/∂P, and its rounding would bury them."""
    q, k, v = (t(5, 16) for _ in range(3))
    found = [gradients(f(q, k, v, scale=60.0).sum(), [q, k]) for f in (attention, fused_attention)]
    np.testing.assert_allclose(*[np.concatenate(both) for both in found], rtol=1e-4)
    assert np.abs(found[0][0]).max(axis=-1).min() < 1e-40


@pytest.mark.parametrize("needed", [(0,), (1,), (2,), (0, 2), (1, 2), (3,)])
def test_each_gradient_may_be_the_only_one_that_somebody_needs(needed):
    inputs = [
        Tensor(random.standard_normal(shape), requires_grad=i in needed)
        for i, shape in enumerate([(B, T, D_K), (B, S, D_K), (B, S, D_V), (T, S)])
    ]
    ours, theirs = (
        gradients(
            attend(*inputs[:3], score_bias=inputs[3]),
            [inputs[i] for i in needed],
            np.arange(B * T * D_V).reshape(B, T, D_V),
        )
        for attend in (fused_attention, attention)
    )
    agree(ours, theirs)


# ---------------------------------------------------------------- law


@given(
    n=st.tuples(*[st.integers(1, 7)] * 4),
    block=st.integers(1, 8),
    share=st.sampled_from([0.1, 0.5, 0.9, None]),
    seed=st.integers(0, 99),
)
def test_any_sizes_in_any_blocks_under_any_mask_give_what_the_definition_gives(
    n, block, share, seed
):
    rng = np.random.default_rng(seed)
    T, S, d_k, d_v = n
    inputs = [
        Tensor(rng.standard_normal(shape), requires_grad=True)
        for shape in ((T, d_k), (S, d_k), (S, d_v), (T, S))
    ]
    mask = None if share is None else rng.random((T, S)) < share
    agree(*both(inputs, block=block, mask=mask, score_bias=inputs[3]))


def exact_and_size(q, k, v, g, mask):
    """Return y, dQ, dK and dV in wider numbers, and their sizes if nothing cancelled."""
    q, k, v, g = (x.astype(np.longdouble) for x in (q, k, v, g))
    z = np.where(mask, q @ k.T, -np.inf)
    e = np.exp(z - z.max(axis=-1, keepdims=True))
    p = e / e.sum(axis=-1, keepdims=True)
    found = []
    for q, k, v, g, sign in ((q, k, v, g, -1), (*map(np.abs, (q, k, v, g)), 1)):  # noqa: B020
        dp = g @ v.T
        dz = p * (dp + sign * (p * dp).sum(axis=-1, keepdims=True))
        found.append([p @ v, dz @ k, dz.T @ q, p.T @ g])
    return found


def drawn(rng, power, ties, offset):
    """Draw integers with exact scores; queries are times 10^power, keys are moved by offset."""
    q, k = rng.integers(-2, 3, (23, 8)) * 10.0**power, rng.integers(-2, 3, (29, 8))
    k = k[rng.integers(0, 4, 29)] if ties else k
    return q, k + offset, rng.standard_normal((29, 8)), rng.standard_normal((23, 8))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("power", [0, 1, 3, 5, 8])
def test_at_every_size_of_the_scores_the_error_is_at_most_four_times_the_definitions(dtype, power):
    """The saved numbers make each weight again: their rounding must not grow with the scores."""
    masks = {"none": np.ones((23, 29), bool), "causal": causal_mask(23, 29)}
    for (name, mask), ties, offset, seed in itertools.product(
        masks.items(), (False, True), (0.0, 50.0), range(2)
    ):
        arrays = drawn(np.random.default_rng(seed), power, ties, offset)
        q, k, v, g = (x.astype(dtype) for x in arrays)
        exact, size = exact_and_size(q, k, v, g, mask)
        ways = [(attention, {})] + [(fused_attention, {"block": b}) for b in (2, 7, 64)]
        errors = []
        for attend, options in ways:
            inputs = [Tensor(x, requires_grad=True) for x in (q, k, v)]
            if name == "causal":
                options["mask"] = mask
            y = attend(*inputs, scale=1.0, **options)
            found = [y.data, *gradients(y, inputs, g)]
            errors.append([np.abs(x - e).max() for x, e in zip(found, exact, strict=True)])
        for each in errors[1:]:
            for error, definitions, terms in zip(each, errors[0], size, strict=True):
                assert error <= 4 * (definitions + np.finfo(dtype).eps * terms.max())


def test_it_is_one_node_and_unfused_it_is_the_graph_of_the_equation():
    q, k, v = qkv()

    def names(y):
        found, stack = [], [y]
        while stack:
            x = stack.pop()
            if isinstance(x, Tensor) and x.node is not None:
                found.append(x.node.name)
                stack += x.node.inputs
        return sorted(found)

    mask = causal_mask(T, S)
    assert names(fused_attention(q, k, v, mask=mask)) == ["fused_attention", "multiply"]
    with unfused():
        composed = fused_attention(q, k, v, mask=mask)
        plain = names(attention(q, k, v, mask=mask))
    assert {"matmul", "softmax", "where"} <= set(plain)
    assert set(names(composed)) == set(plain)
    agree([composed.data], [attention(q, k, v, mask=mask).data])


class CountingNumPy:
    """A NumPy that counts the exponentials of whole blocks of scores."""

    def __init__(self, block):
        self.block, self.blocks = block, 0

    def __getattr__(self, name):
        return getattr(np, name)

    def exp(self, x, **options):
        self.blocks += np.shape(x)[-2:] == (self.block, self.block)
        return np.exp(x, **options)


N = 12  # positions, in 4 blocks of 3: 16 blocks of scores
SKIPPED = {
    "no mask": (None, 16),
    "causal: half, and the diagonal": (causal_mask(N), 4 + 3 + 2 + 1),
    "window of 1: the diagonal": (window_mask(N, size=1), 4),
    "window of 4: the diagonal and its neighbour": (window_mask(N, size=4), 4 + 3),
    "window of 5: and one block more": (window_mask(N, size=5), 4 + 3 + 2),
    "padding: the blocks in which any sequence has a key": (padding_mask([2, 5], N), 4 * 2),
    "causal and padding": (causal_mask(N) & padding_mask([2, 5], N), 1 + 2 + 2 + 2),
    "nothing at all": (np.array(False), 0),
}


@pytest.mark.parametrize(("mask", "count"), SKIPPED.values(), ids=SKIPPED)
def test_blocks_that_a_mask_forbids_are_not_computed_forward_nor_backward(mask, count, monkeypatch):
    counting = CountingNumPy(3)
    monkeypatch.setattr(chapter, "np", counting)
    inputs = [t(B, N, d) for d in (D_K, D_K, D_V)]
    y = fused_attention(*inputs, mask=mask, block=3)
    assert counting.blocks == count
    gradients(y, inputs, np.ones(y.shape))
    assert counting.blocks == 2 * count


def peak(attend, T, mask):
    """Return the most bytes that forward and backward hold at once, beyond their inputs."""
    inputs = [t(T, 8) for _ in range(3)]
    g = np.ones((T, 8))
    tracemalloc.start()
    gradients(attend(*inputs, mask=mask), inputs, g)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most


@pytest.mark.parametrize("masked", [False, True])
def test_forward_and_backward_hold_far_less_than_the_weights_would_take(masked):
    """T² weights are 8 T² bytes. Composed it is 5 to 7 times that; fused, a sixth of it."""
    T = 1024
    mask = causal_mask(T) if masked else None
    assert peak(fused_attention, T, mask) < 8 * T * T / 5
    assert peak(attention, T, mask) > 4 * 8 * T * T
