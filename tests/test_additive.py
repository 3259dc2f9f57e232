"""Chapter 11.2 · Additive attention: three nested loops, and scores that cannot run away.

What it has in common with all that attends is in `test_scaled_dot_product.py`.
"""

import math

import numpy as np
import pytest

from attention import additive_attention, attention, causal_mask, padding_mask
from minigrad import Tensor, gradcheck
from minigrad.nn import Linear

random = np.random.default_rng(3)
B, T, S, D, D_V = 2, 3, 5, 7, 11

MASKS = {
    "none": None,
    "padding and causal": padding_mask([2, 5], S) & causal_mask(T, S),
    "one a sequence (B, T, S)": random.random((B, T, S)) < 0.6,
    "a row that sees nothing": np.array([[True] * S, [False] * S, [False, True] * 2 + [True]]),
}
masks = pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS.keys())


def qkvw():
    shapes = (B, T, D), (B, S, D), (B, S, D_V), (D,)
    return [Tensor(random.standard_normal(s), requires_grad=True) for s in shapes]


def three_loops(q, k, v, w, mask):
    """Compute Bahdanau's equations, one query, one key and one feature at a time."""
    output = np.zeros((B, T, D_V))
    for b in range(B):
        for t in range(T):
            e = np.zeros(S)
            for s in range(S):
                if mask[b, t, s]:
                    e[s] = math.exp(
                        sum(w[i] * math.tanh(q[b, t, i] + k[b, s, i]) for i in range(D))
                    )
            output[b, t] = (e / (e.sum() or 1.0)) @ v[b]
    return output


# ---------------------------------------------------------------- value


@masks
def test_it_equals_three_nested_loops(mask):
    q, k, v, w = qkvw()
    allowed = np.broadcast_to(True if mask is None else mask, (B, T, S))
    expected = three_loops(q.data, k.data, v.data, w.data, allowed)
    found = additive_attention(q, k, v, w, mask=mask)
    assert found.shape == (B, T, D_V)
    np.testing.assert_allclose(found.data, expected, rtol=1e-12, atol=1e-14)


# ---------------------------------------------------------------- derivative


@masks
def test_first_and_second_derivatives_agree_with_finite_differences(mask):
    inputs = [x.data / 2 for x in qkvw()]
    assert gradcheck(lambda q, k, v, w: additive_attention(q, k, v, w, mask=mask), *inputs)


def test_the_gradient_reaches_both_projections_and_the_weights_of_features():
    rng = np.random.default_rng(5)
    w_q, w_k = Linear(13, D, rng=rng), Linear(17, D, bias=False, rng=rng)
    _, _, v, w = qkvw()
    queries, keys = (Tensor(rng.standard_normal((B, *s))) for s in ((T, 13), (S, 17)))
    additive_attention(w_q(queries), w_k(keys), v, w).sum().backward()
    for parameter in (*w_q.parameters(), *w_k.parameters(), v, w):
        assert parameter.grad.any()


# ---------------------------------------------------------------- law


def test_scores_cannot_differ_by_more_than_twice_the_sum_of_the_features_weights():
    """tanh ends at ±1: weights stay alive, however large q and k. A product's do not."""
    q, k, v = Tensor(1e6 * np.ones((1, D))), Tensor(1e6 * random.standard_normal((S, D))), np.eye(S)
    w = Tensor(np.full(D, 0.1))
    weights = additive_attention(q, k, Tensor(v), w).data
    assert weights.min() * S >= math.exp(-2 * 0.1 * D) - 1e-12
    assert attention(q, k, Tensor(v)).data.min() == 0
