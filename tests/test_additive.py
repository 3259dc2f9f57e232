"""Chapter 11.2 · Additive attention: three nested loops, masks, and words about what is wrong."""

import math

import numpy as np
import pytest

from attention import additive_attention, attention, causal_mask, padding_mask
from minigrad import Tensor, detect_anomaly, gradcheck, gradients
from minigrad.nn import Linear

random = np.random.default_rng(3)
B, T, S, D, D_V = 2, 3, 5, 7, 11

MASKS = {
    "none": None,
    "causal": causal_mask(T, S),
    "padding": padding_mask([2, 5], S),
    "padding and causal": padding_mask([2, 5], S) & causal_mask(T, S),
    "one a sequence (B, T, S)": random.random((B, T, S)) < 0.6,
    "a row that sees nothing": np.array([[True] * S, [False] * S, [False, True] * 2 + [True]]),
    "nothing at all": np.array(False),
}
masks = pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS.keys())


def qkvw(*batch, dtype=float):
    shapes = (*batch, T, D), (*batch, S, D), (*batch, S, D_V), (D,)
    return [Tensor(random.standard_normal(s), dtype=dtype, requires_grad=True) for s in shapes]


def three_loops(q, k, v, w, mask):
    """Bahdanau's equations, one query, one key and one feature at a time."""
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
    q, k, v, w = qkvw(B)
    allowed = np.broadcast_to(True if mask is None else mask, (B, T, S))
    expected = three_loops(q.data, k.data, v.data, w.data, allowed)
    found = additive_attention(q, k, v, w, mask=mask)
    assert found.shape == (B, T, D_V)
    np.testing.assert_allclose(found.data, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("batches", [((7, 1), (1, B), (B,)), ((), (B,), ()), ((B,), (), (7, B))])
def test_batch_axes_broadcast(batches):
    shapes = (T, D), (S, D), (S, D_V)
    q, k, v = (
        Tensor(random.standard_normal((*batch, *shape)))
        for batch, shape in zip(batches, shapes, strict=True)
    )
    w, batch = Tensor(random.standard_normal(D)), np.broadcast_shapes(*batches)
    whole = additive_attention(q, k, v, w).data
    assert whole.shape == (*batch, T, D_V)
    q, k, v = (np.broadcast_to(x.data, (*batch, *x.shape[-2:])) for x in (q, k, v))
    for i in np.ndindex(batch):
        one = additive_attention(Tensor(q[i]), Tensor(k[i]), Tensor(v[i]), w)
        np.testing.assert_allclose(whole[i], one.data, rtol=1e-13)


# ---------------------------------------------------------------- derivative


@masks
def test_first_and_second_derivatives_agree_with_finite_differences(mask):
    inputs = [x.data / 2 for x in qkvw(B)]
    assert gradcheck(lambda q, k, v, w: additive_attention(q, k, v, w, mask=mask), *inputs)


def test_the_gradient_reaches_both_projections_and_the_weights_of_features():
    rng = np.random.default_rng(5)
    w_q, w_k = Linear(13, D, rng=rng), Linear(17, D, bias=False, rng=rng)
    _, _, v, w = qkvw(B)
    queries, keys = (Tensor(rng.standard_normal((B, *s))) for s in ((T, 13), (S, 17)))
    additive_attention(w_q(queries), w_k(keys), v, w).sum().backward()
    for parameter in (*w_q.parameters(), *w_k.parameters(), v, w):
        assert parameter.grad.any()


@masks
def test_float32_stays_float32_in_everything_that_is_recorded(mask):
    inputs = qkvw(B, dtype=np.float32)
    found = [additive_attention(*inputs, mask=mask)]
    for t in found:
        assert t.dtype == np.float32
        found += [x for x in (t.node.inputs if t.node else ()) if x.requires_grad]
    assert {id(x) for x in inputs} <= {id(t) for t in found}


# ---------------------------------------------------------------- law


def test_permuting_keys_and_values_together_changes_nothing_and_permuting_queries_permutes():
    q, k, v, w = qkvw(B)
    mask, order, turned = MASKS["one a sequence (B, T, S)"], random.permutation(S), [2, 0, 1]
    y = additive_attention(q, k, v, w, mask=mask).data
    same = additive_attention(q, k[:, order], v[:, order], w, mask=mask[..., order])
    np.testing.assert_allclose(same.data, y, rtol=1e-12, atol=1e-14)
    other = additive_attention(q[:, turned], k, v, w, mask=mask[:, turned])
    np.testing.assert_allclose(other.data, y[:, turned], rtol=1e-13, atol=1e-15)


def test_scores_cannot_differ_by_more_than_twice_the_sum_of_the_features_weights():
    """tanh ends at ±1: weights stay alive, however large q and k. A product's do not."""
    q, k, v = Tensor(1e6 * np.ones((1, D))), Tensor(1e6 * random.standard_normal((S, D))), np.eye(S)
    w = Tensor(np.full(D, 0.1))
    weights = additive_attention(q, k, Tensor(v), w).data
    assert weights.min() * S >= math.exp(-2 * 0.1 * D) - 1e-12
    assert attention(q, k, Tensor(v)).data.min() == 0


@pytest.mark.parametrize(("dtype", "high"), [(np.float64, 1e300), (np.float32, 1e30)])
def test_what_a_query_may_see_counts_however_low_its_score(dtype, high):
    q, k = Tensor([[0.0]], dtype=dtype), Tensor([[-50.0], [50.0], [-50.0]], dtype=dtype)
    v, w = Tensor(np.eye(3), dtype=dtype), Tensor([high], dtype=dtype)
    weights = additive_attention(q, k, v, w, mask=np.array([True, False, True]))
    np.testing.assert_array_equal(weights.data, [[0.5, 0, 0.5]])


def test_under_a_causal_mask_no_gradient_flows_from_an_output_to_a_later_input():
    x, w = Tensor(random.standard_normal((S, D)), requires_grad=True), qkvw()[3]
    for t in range(S):
        y = additive_attention(x, x, x, w, mask=causal_mask(S))
        (dx,) = gradients(y[t], [x], random.standard_normal(D))
        np.testing.assert_array_equal((dx != 0).any(axis=-1), np.arange(S) <= t)


@masks
def test_nothing_in_it_is_an_anomaly(mask):
    inputs = qkvw(B)
    with detect_anomaly():
        y = additive_attention(*inputs, mask=mask)
        y.backward(random.standard_normal(y.shape))


# ---------------------------------------------------------------- refusal

AGREE = r"^q \(…, T, d\), k \(…, S, d\) and w \(d,\) must agree in d: they have shapes "


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"k": (S, 2)}, AGREE + r"\(3, 7\), \(5, 2\) and \(7,\)$"),
        ({"q": (T, 2)}, AGREE + r"\(3, 2\), \(5, 7\) and \(7,\)$"),
        ({"w": (2,)}, AGREE + r"\(3, 7\), \(5, 7\) and \(2,\)$"),
        ({"w": ()}, AGREE + r"\(3, 7\), \(5, 7\) and \(\)$"),
        ({"w": (D, D)}, AGREE + r"\(3, 7\), \(5, 7\) and \(7, 7\)$"),
        ({"q": (D,)}, AGREE),
        ({"k": (D,)}, AGREE),
        ({"v": (S - 1, D_V)}, r"one row for each of the 5 keys: it has shape \(4, 11\)"),
        ({"v": (S,)}, r"one row for each of the 5 keys: it has shape \(5,\)"),
    ],
)
def test_shapes_that_do_not_agree_are_refused(change, message):
    given = dict(zip("qkvw", qkvw(), strict=True))
    given |= {name: Tensor(random.standard_normal(shape)) for name, shape in change.items()}
    with pytest.raises(ValueError, match=message):
        additive_attention(**given)


def test_weights_of_features_are_one_vector_also_where_a_matrix_would_happen_to_fit():
    """With as many keys as features, w (d, d) would give a result, of the wrong shape or not."""
    q, k, v = (Tensor(random.standard_normal((n, S))) for n in (T, S, S))
    with pytest.raises(ValueError, match=AGREE):
        additive_attention(q, k, v, Tensor(random.standard_normal((S, S))))


@pytest.mark.parametrize("name", ["q", "k", "v", "w"])
def test_plain_arrays_and_lists_are_refused_by_name(name):
    given = dict(zip("qkvw", qkvw(), strict=True))
    for plain in (given[name].data, given[name].data.tolist()):
        with pytest.raises(
            TypeError, match=f"^{name} must be a Tensor: got {type(plain).__name__}"
        ):
            additive_attention(**given | {name: plain})


@pytest.mark.parametrize("name", ["q", "k"])
def test_integers_are_refused_by_name(name):
    given = dict(zip("qkvw", qkvw(), strict=True))
    given[name] = Tensor(np.ones(given[name].shape, int))
    with pytest.raises(TypeError, match=f"^{name} must have a floating dtype: got int64"):
        additive_attention(**given)


@pytest.mark.parametrize(
    ("mask", "error", "message"),
    [
        (np.ones((T, S), int), TypeError, "True where a query may look: got dtype int64"),
        (np.ones((S, T), bool), ValueError, r"mask of shape \(5, 3\) does not broadcast to"),
    ],
)
def test_a_mask_that_does_not_fit_is_refused(mask, error, message):
    with pytest.raises(error, match=message):
        additive_attention(*qkvw(), mask=mask)
