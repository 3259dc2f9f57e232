"""Chapter 3.1 · Elementwise operations: powers at 0, ties, and operations that undo each other.

That every rule is right on ordinary inputs is shown by the table of test_ops.py.
"""

import numpy as np
import pytest

from minigrad import Tensor, gradcheck, gradients, maximum, ops, power

random = np.random.default_rng(3)


# ---------------------------------------------------------------- value and derivative


@pytest.mark.parametrize(
    ("exponent", "value", "first", "second"),
    [(0, 1, 0, 0), (1, 0, 1, 0), (2, 0, 0, 2), (3, 0, 0, 0), (2.5, 0, 0, 0), (1.5, 0, 0, np.inf)],
)
def test_a_power_of_0_has_the_derivatives_of_its_limit(exponent, value, first, second):
    x = Tensor([0.0, 2.0], requires_grad=True)
    with np.errstate(divide="ignore"):
        y = x**exponent
        (slope,) = gradients(y, [x], np.ones(2), create_graph=True)
        curvature = gradients(slope, [x], np.ones(2))[0] if slope.requires_grad else np.zeros(2)
    e = exponent
    np.testing.assert_array_equal(y.data, [value, 2.0**e])
    np.testing.assert_array_equal(slope.data, [first, e * 2.0 ** (e - 1)])
    np.testing.assert_allclose(curvature, [second, e * (e - 1) * 2.0 ** (e - 2)], rtol=1e-15)


@pytest.mark.parametrize("exponent", [0, 1, 2, 3])
def test_a_whole_power_of_0_passes_the_gradient_check(exponent):
    assert gradcheck(lambda x: x**exponent, [0.0, -2.0, 3.0])


@pytest.mark.parametrize("root", [lambda x: x**0.5, np.sqrt], ids=["power", "sqrt"])
def test_a_root_is_infinitely_steep_at_0(root):
    x = Tensor(0.0, requires_grad=True)
    with np.errstate(divide="ignore"):
        (slope,) = gradients(root(x), [x])
    assert slope == np.inf


def test_0_to_a_positive_power_does_not_feel_its_exponent():
    a, b = Tensor([0.0, 0.0], requires_grad=True), Tensor([0.5, 2.0], requires_grad=True)
    (slope,) = gradients(power(a, b), [b], np.ones(2), create_graph=True)
    np.testing.assert_array_equal(slope.data, [0.0, 0.0])
    np.testing.assert_array_equal(gradients(slope, [b], np.ones(2))[0], [0.0, 0.0])


def test_the_mixed_second_derivative_of_a_power_is_right_at_exponent_0():
    a, b = Tensor(3.0, requires_grad=True), Tensor(0.0, requires_grad=True)
    (by_a,) = gradients(a**b, [a], create_graph=True)
    (by_b,) = gradients(a**b, [b], create_graph=True)
    assert gradients(by_a, [b])[0] == gradients(by_b, [a])[0] == 1 / 3


def test_a_negative_base_has_a_derivative_if_its_exponent_is_a_constant():
    assert gradcheck(lambda x: x**3 + x**-2, [-2.0, -0.5])


def test_the_log_of_a_negative_base_is_nan_as_in_numpy():
    a, b = Tensor(-2.0, requires_grad=True), Tensor(3.0, requires_grad=True)
    with np.errstate(invalid="ignore"):
        da, db = gradients(a**b, [a, b])
    assert da == 12.0
    assert np.isnan(db)


# ---------------------------------------------------------------- law


def test_at_a_tie_each_input_of_maximum_gets_half():
    a = Tensor([1.0, 5.0, 2.0, -np.inf], requires_grad=True)
    b = Tensor([1.0, 2.0, 5.0, -np.inf], requires_grad=True)
    g = np.array([3.0, 7.0, 11.0, 5.0])
    da, db = gradients(maximum(a, b), [a, b], g)
    np.testing.assert_array_equal(da, [1.5, 7.0, 0.0, 2.5])
    np.testing.assert_array_equal(da + db, g)


@pytest.mark.parametrize(
    ("there", "back"),
    [
        (np.exp, np.log),
        (np.log, np.exp),
        (np.sqrt, lambda y: y * y),
        (lambda x: x**3, lambda y: y ** (1 / 3)),
        (lambda x: x / 7, lambda y: y * 7),
        (lambda x: x - 7, lambda y: y + 7),
        (lambda x: 7 - x, lambda y: 7 - y),
        (lambda x: 7 / x, lambda y: 7 / y),
        (np.negative, lambda y: -y),
        (lambda x: 2**x, lambda y: np.log(y) / np.log(2)),
    ],
)
def test_going_there_and_back_has_slope_1_and_no_curvature(there, back):
    x = Tensor(random.uniform(0.5, 2.0, (3, 5)), requires_grad=True)
    (slope,) = gradients(back(there(x)), [x], np.ones((3, 5)), create_graph=True)
    np.testing.assert_allclose(slope.data, 1.0, rtol=1e-14)
    if slope.requires_grad:
        np.testing.assert_allclose(gradients(slope.sum(), [x])[0], 0.0, atol=1e-13)


# ---------------------------------------------------------------- refusal


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide", "power", "maximum"])
def test_shapes_that_do_not_broadcast_are_refused_with_name_and_shapes(name):
    q, k = Tensor(np.ones((2, 3)), name="q"), Tensor(np.ones((5, 3)))
    with pytest.raises(ValueError, match=rf"^{name} of 'q' \(2, 3\) and \(5, 3\): "):
        getattr(ops, name)(q, k)
