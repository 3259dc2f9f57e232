"""Chapter 3.6 · Softmax: what its derivative promises, and scores far beyond exp's range."""

import numpy as np
import pytest

from minigrad import Tensor, gradcheck, gradients, jacobian, log_softmax, logsumexp, softmax

random = np.random.default_rng(3)
AXES = [-1, 0, 1, (0, 2), None]


def scores():
    return Tensor(random.standard_normal((2, 3, 5)), requires_grad=True)


# ---------------------------------------------------------------- value and derivative


def test_the_vjp_of_softmax_is_its_whole_jacobian_times_g():
    x, g = Tensor(random.standard_normal(5), requires_grad=True), random.standard_normal(5)
    y = softmax(x)
    J = np.array([[y.data[i] * ((i == j) - y.data[j]) for j in range(5)] for i in range(5)])
    np.testing.assert_allclose(gradients(y, [x], g)[0], J.T @ g, rtol=1e-13)


@pytest.mark.parametrize("c", [0, 3])
def test_the_gradient_of_a_cross_entropy_is_prediction_minus_truth(c):
    x = Tensor(random.standard_normal(5), requires_grad=True)
    np.testing.assert_allclose(
        gradients(-log_softmax(x)[c], [x])[0], softmax(x).data - np.eye(5)[c], rtol=1e-13
    )


# ---------------------------------------------------------------- law


@pytest.mark.parametrize("n", [2, 5, 64])
def test_a_row_whose_largest_weight_is_1_less_ε_passes_on_at_most_2ε_of_its_gradient(n):
    """For two keys the bound is nearly reached: softmax is 2ε (1 - ε) times as steep there."""
    g = np.array([1.0, -1.0, *np.zeros(n - 2)])
    for gap in (1, 3, 10):
        x = Tensor([gap + 1, *random.random(n - 1)], requires_grad=True)
        y = softmax(x)
        rest = y.data[1:].sum()  # ε
        assert np.linalg.norm(jacobian(softmax)(x).data, 2) <= 2 * rest
        if n == 2:
            (dx,) = gradients(y, [x], g)
            assert np.linalg.norm(dx) == pytest.approx(2 * rest * (1 - rest) * np.linalg.norm(g))


@pytest.mark.parametrize("axis", AXES)
def test_weights_are_positive_and_sum_to_1(axis):
    y = softmax(scores(), axis=axis).data
    assert (y > 0).all()
    np.testing.assert_allclose(y.sum(axis=axis), 1.0, rtol=1e-15)


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("f", [softmax, log_softmax])
def test_the_gradient_sums_to_0_along_the_axis(f, axis):
    """Raising all scores together changes no output."""
    x = scores()
    (dx,) = gradients(f(x, axis=axis), [x], random.standard_normal((2, 3, 5)))
    assert abs(dx).max() > 0.01
    np.testing.assert_allclose(dx.sum(axis=axis), 0.0, atol=1e-14)


@pytest.mark.parametrize("axis", AXES)
def test_a_shift_of_all_scores_changes_no_weight_and_no_gradient(axis):
    """Shifts by powers of 2 of scores with few digits are exact, so nothing may change at all."""
    x = Tensor(np.round(random.standard_normal((2, 3, 5)), 0) / 8, requires_grad=True)
    for f in (softmax, log_softmax):
        y, shifted = f(x, axis=axis), f(x + 1024.0, axis=axis)
        g = random.standard_normal(y.shape)
        np.testing.assert_array_equal(y.data, shifted.data)
        np.testing.assert_array_equal(gradients(y, [x], g)[0], gradients(shifted, [x], g)[0])


@pytest.mark.parametrize("axis", AXES)
def test_log_softmax_is_the_log_of_softmax(axis):
    x, g = scores(), random.standard_normal((2, 3, 5))
    y, composed = log_softmax(x, axis=axis), np.log(softmax(x, axis=axis))
    np.testing.assert_allclose(y.data, composed.data, rtol=1e-13)
    np.testing.assert_allclose(
        gradients(y, [x], g)[0], gradients(composed, [x], g)[0], rtol=1e-12, atol=1e-14
    )


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("keepdims", [False, True])
def test_the_gradient_of_logsumexp_is_softmax(axis, keepdims):
    x = scores()
    (dx,) = gradients(logsumexp(x, axis=axis, keepdims=keepdims).sum(), [x])
    np.testing.assert_allclose(dx, softmax(x, axis=axis).data, rtol=1e-13)


def test_logsumexp_lies_between_max_and_max_plus_log_n():
    x = scores()
    y, largest = logsumexp(x, axis=-1).data, x.data.max(axis=-1)
    assert (y > largest).all()
    assert (y < largest + np.log(5)).all()
    equal = logsumexp(Tensor(np.full(5, 7.0)))
    np.testing.assert_allclose(equal.data, 7 + np.log(5), rtol=1e-15)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("f", [softmax, log_softmax, lambda x: logsumexp(x, axis=-1)])
def test_scores_of_1000_give_finite_values_and_gradients_at_both_orders(f, dtype):
    x = Tensor([[1000, -1000, 0], [-1000, -1000, -1000]], dtype=dtype, requires_grad=True)
    y = f(x)
    g = np.ones(y.shape) + np.arange(y.shape[-1])
    (dx,) = gradients(y, [x], g, create_graph=True)
    (again,) = gradients((dx * x).sum(), [x])
    for found in (y.data, dx.data, again):
        assert np.isfinite(found).all()


def test_at_scores_of_1000_log_softmax_still_says_how_small_a_weight_is():
    x = Tensor([1000.0, -1000.0, 0.0], requires_grad=True)
    y = log_softmax(x)
    np.testing.assert_array_equal(y.data, [0.0, -2000.0, -1000.0])
    (dx,) = gradients(-y[1], [x])
    np.testing.assert_array_equal(dx, [1.0, -1.0, 0.0])  # prediction minus truth, not dead
    assert gradcheck(log_softmax, [1000.0, -1000.0, 0.0])


def test_logsumexp_of_nothing_but_minus_infinity_is_that_with_gradient_0_at_both_orders():
    x = Tensor([[-np.inf, -np.inf, -np.inf], [0.0, -np.inf, 0.0]], requires_grad=True)
    y = logsumexp(x, axis=-1)
    np.testing.assert_array_equal(y.data, [-np.inf, np.log(2.0)])
    (dx,) = gradients(y, [x], np.array([3.0, 5.0]), create_graph=True)
    np.testing.assert_allclose(dx.data, [[0, 0, 0], [2.5, 0, 2.5]], rtol=1e-15)
    (again,) = gradients(dx, [x], np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]]))
    np.testing.assert_allclose(again, [[0, 0, 0], [-2.5, 0, 2.5]], rtol=1e-15)


def test_beside_a_score_of_plus_infinity_the_others_get_no_gradient():
    x = Tensor([np.inf, 1.0], requires_grad=True)
    with np.errstate(invalid="ignore"):
        y = logsumexp(x)
        (dx,) = gradients(y, [x])
    assert y.item() == np.inf
    assert dx[1] == 0.0


def test_a_score_of_minus_infinity_among_others_has_weight_0_and_gradient_0():
    x = Tensor([0.0, -np.inf, np.log(3.0)], requires_grad=True)
    y = softmax(x)
    np.testing.assert_allclose(y.data, [0.25, 0, 0.75], rtol=1e-15)
    (dx,) = gradients(y, [x], np.array([1.0, 7.0, 0.0]))
    np.testing.assert_allclose(dx, [0.1875, 0, -0.1875], rtol=1e-14)


def test_a_one_hot_softmax_passes_no_gradient_on():
    """Its saturation, the subject of chapter 16."""
    x = Tensor([100.0, 0.0, -100.0], requires_grad=True)
    (dx,) = gradients(softmax(x), [x], np.array([1.0, -2.0, 3.0]))
    assert abs(dx).max() < 1e-40


def test_the_log_of_an_underflowed_weight_has_no_gradient_and_log_softmax_has():
    x = Tensor([0.0, -1000.0], requires_grad=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        (lost,) = gradients(np.log(softmax(x))[1], [x])
    (kept,) = gradients(log_softmax(x)[1], [x])
    assert np.isnan(lost).all()
    np.testing.assert_array_equal(kept, [-1.0, 1.0])
