"""Chapter 3.4 · Reductions: how one gradient is shared among many."""

import numpy as np
import pytest

from minigrad import Tensor, gradients, ops

random = np.random.default_rng(3)


# ---------------------------------------------------------------- derivative


@pytest.mark.parametrize("keepdims", [False, True])
def test_equal_largest_elements_share_the_gradient_equally(keepdims):
    x = Tensor([[1.0, 5.0, 5.0, 5.0], [7.0, 2.0, 7.0, 0.0]], requires_grad=True)
    y = ops.max(x, axis=1, keepdims=keepdims)
    (dx,) = gradients(y, [x], np.array([6.0, 10.0]).reshape(y.shape))
    np.testing.assert_array_equal(dx, [[0, 2, 2, 2], [5, 0, 5, 0]])


@pytest.mark.parametrize("extremum", [ops.max, ops.min])
def test_ties_of_infinities_share_as_well(extremum):
    x = Tensor([-np.inf, -np.inf], requires_grad=True)
    np.testing.assert_array_equal(gradients(extremum(x), [x])[0], [0.5, 0.5])


@pytest.mark.parametrize(
    ("of_two", "of_all"), [(ops.maximum, ops.max), (ops.minimum, ops.min)], ids=["max", "min"]
)
def test_the_larger_of_two_is_the_max_of_a_stack_of_two_in_ties_too(of_two, of_all):
    a, b = random.integers(0, 3, (2, 3, 5)).astype(float)
    stack = Tensor([a, b], requires_grad=True)
    g = random.standard_normal((3, 5))
    (shares,) = gradients(of_all(stack, axis=0), [stack], g)
    (same,) = gradients(of_two(stack[0], stack[1]), [stack], g)
    assert (a == b).any()
    np.testing.assert_array_equal(shares, same)


# ---------------------------------------------------------------- law


@pytest.mark.parametrize("name", ["mean", "max", "min", "logsumexp"])
@pytest.mark.parametrize("axis", [None, 1, (0, -1)])
def test_the_shares_of_an_average_sum_to_what_arrived(name, axis):
    """If adding c to all x adds c to y, the weights ∂y/∂xᵢ of each output sum to 1."""
    x = Tensor(random.integers(0, 3, (2, 3, 5)), dtype=float, requires_grad=True)
    y = getattr(ops, name)(x, axis=axis)
    g = random.standard_normal(y.shape)
    (dx,) = gradients(y, [x], g)
    np.testing.assert_allclose(dx.sum(axis=axis), g, rtol=1e-13)


@pytest.mark.parametrize("axis", [None, 1, (0, -1), ()])
def test_a_mean_is_a_sum_divided_by_how_many_it_took(axis):
    x = Tensor(random.standard_normal((2, 3, 5)), requires_grad=True)
    y, total = ops.mean(x, axis=axis), ops.sum(x, axis=axis)
    n = {None: 30, 1: 3, (0, -1): 10, (): 1}[axis]
    g = random.standard_normal(y.shape)
    np.testing.assert_allclose(y.data * n, total.data, rtol=1e-13)
    np.testing.assert_allclose(gradients(y, [x], g)[0] * n, gradients(total, [x], g)[0], rtol=1e-15)


def test_a_sum_of_nothing_is_0_and_sends_nothing_back():
    x = Tensor(np.zeros((0, 3)), requires_grad=True)
    y = ops.sum(x, axis=0)
    np.testing.assert_array_equal(y.data, np.zeros(3))
    assert gradients(y, [x], np.ones(3))[0].shape == (0, 3)


# ---------------------------------------------------------------- refusal


@pytest.mark.parametrize(
    "name", ["sum", "mean", "max", "min", "logsumexp", "softmax", "log_softmax"]
)
@pytest.mark.parametrize(
    ("axis", "complaint"), [(2, "axis 2 is out of"), (-3, "axis -3 is out of"), ((0, 0), "dupl")]
)
def test_an_axis_that_is_not_there_is_refused_with_the_name_and_the_shape(name, axis, complaint):
    with pytest.raises(ValueError, match=rf"^{name} of 'q' \(2, 3\): {complaint}"):
        getattr(ops, name)(Tensor(np.ones((2, 3)), requires_grad=True, name="q"), axis=axis)


@pytest.mark.parametrize("name", ["max", "min"])
def test_the_largest_and_the_smallest_of_nothing_are_refused(name):
    with pytest.raises(ValueError, match=rf"^{name} of \(2, 0\): zero-size array"):
        getattr(ops, name)(Tensor(np.ones((2, 0)), requires_grad=True), axis=1)
