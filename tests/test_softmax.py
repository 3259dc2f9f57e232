"""Chapter 3.6 · Softmax: what its derivative promises, and scores far beyond exp's range."""

import numpy as np
import pytest

from minigrad import Tensor, gradcheck, gradients, jacobian, log_softmax, logsumexp, softmax

random = np.random.default_rng(3)
AXES = [-1, 0, 1, (0, 2), None]


def scores():
    return Tensor(random.standard_normal((2, 3, 5)), requires_grad=True)


# ---------------------------------------------------------------- value and derivative


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


def test_the_log_of_an_underflowed_weight_has_no_gradient_and_log_softmax_has():
    x = Tensor([0.0, -1000.0], requires_grad=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        (lost,) = gradients(np.log(softmax(x))[1], [x])
    (kept,) = gradients(log_softmax(x)[1], [x])
    assert np.isnan(lost).all()
    np.testing.assert_array_equal(kept, [-1.0, 1.0])
