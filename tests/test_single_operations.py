"""Chapters 3.1 to 3.5 · What single operations promise beside the tables: powers at 0, and laws.

That every rule is right on ordinary inputs is shown by the table of coverage, and that no change of
it goes unnoticed by `test_mutation.py`.
"""

import math
import sys

import numpy as np
import pytest

from minigrad import Tensor, erf, gradcheck, gradients, matmul, ops
from minigrad.ops import error_function

random = np.random.default_rng(3)
B, T, S, K = 2, 3, 5, 7


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


def test_the_mixed_second_derivative_of_a_power_is_right_at_exponent_0():
    a, b = Tensor(3.0, requires_grad=True), Tensor(0.0, requires_grad=True)
    (by_a,) = gradients(a**b, [a], create_graph=True)
    (by_b,) = gradients(a**b, [b], create_graph=True)
    assert gradients(by_a, [b])[0] == gradients(by_b, [a])[0] == 1 / 3


def test_the_log_of_a_negative_base_is_nan_as_in_numpy():
    a, b = Tensor(-2.0, requires_grad=True), Tensor(3.0, requires_grad=True)
    with np.errstate(invalid="ignore"):
        da, db = gradients(a**b, [a, b])
    assert da == 12.0
    assert np.isnan(db)


@pytest.mark.parametrize(("there", "back"), [(np.float32, np.float64), (np.float64, np.float32)])
def test_the_gradient_of_astype_comes_back_in_the_dtype_of_the_input(there, back):
    x = Tensor(random.standard_normal(5), dtype=back, requires_grad=True)
    g = random.standard_normal(5)
    y = x.astype(there)
    assert y.dtype == there
    (dx,) = gradients(y, [x], g)
    assert dx.dtype == back
    np.testing.assert_array_equal(dx, g.astype(there).astype(back))


def test_matmul_and_its_gradients_equal_three_nested_loops():
    a, b, g = (random.standard_normal(shape) for shape in ((T, K), (K, S), (T, S)))
    c, da, db = np.zeros((T, S)), np.zeros((T, K)), np.zeros((K, S))
    for i, j, k in np.ndindex(T, S, K):
        c[i, j] += a[i, k] * b[k, j]
        da[i, k] += g[i, j] * b[k, j]
        db[k, j] += g[i, j] * a[i, k]
    A, B = Tensor(a, requires_grad=True), Tensor(b, requires_grad=True)
    y = matmul(A, B)
    for found, expected in zip((y.data, *gradients(y, [A, B], g)), (c, da, db), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.fixture(params=["scipy", "math"])
def error_functions_of(request, monkeypatch):
    """Look erf up anew, with SciPy or as if it were not installed: the module it comes from."""
    if request.param == "scipy":
        pytest.importorskip("scipy.special", reason="SciPy is not installed")
    else:
        monkeypatch.setitem(sys.modules, "scipy", None)
        monkeypatch.setitem(sys.modules, "scipy.special", None)
    error_function._of_arrays.cache_clear()
    yield request.param
    error_function._of_arrays.cache_clear()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(), (0,), (1001,), (7, 11, 13)])
def test_erf_is_that_of_the_c_library_with_scipy_and_without(error_functions_of, shape, dtype):
    x = np.random.default_rng(0).uniform(-7, 7, shape).astype(dtype)
    y = erf(Tensor(x.T)).data.T  # (strides in another order)
    exact = np.array([math.erf(v) for v in x.ravel()]).reshape(shape)
    assert (y.dtype, y.shape) == (dtype, shape)
    np.testing.assert_allclose(y, exact, rtol=2 * np.finfo(dtype).eps)
    assert type(erf(x)) is np.ndarray and gradcheck(erf, x.astype(float), order=2)
    ends = erf(np.array([-np.inf, -6, 0, 6, np.inf, np.nan], dtype))
    np.testing.assert_array_equal(ends, [-1, -1, 0, 1, 1, np.nan])
    by_python = error_function._of_arrays() is error_function._by_python
    assert by_python == (error_functions_of == "math")


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
