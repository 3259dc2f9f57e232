"""Tests: numbers at the edges of their range, in the operations that square or exponentiate.

Everything is compared with the same numbers at an ordinary size.
"""

import numpy as np
import pytest

from minigrad import Tensor, gradients, layer_norm, log_softmax, logsumexp, norm, softmax, std

ROWS = np.random.default_rng(2).standard_normal((3, 5))
SCALES = {
    np.float64: (1e-200, 1e-160, 1e150, 1e200, 1e305),
    np.float32: (1e-30, 1e-20, 1e18, 1e37),
    np.float16: (1e-3, 300.0, 1e4),
}


@pytest.mark.parametrize(("dtype", "scale"), [(d, s) for d, all_ in SCALES.items() for s in all_])
@pytest.mark.parametrize("f", [norm, std])
def test_a_length_grows_with_its_vector_at_every_size(f, dtype, scale):
    x = ROWS.astype(dtype)
    close = {"rtol": 20 * np.finfo(dtype).eps * (10 if scale < 1 else 1)}
    large = Tensor((x * dtype(scale)), requires_grad=True)
    y, wanted = f(large, axis=1), f(x, axis=1).astype(float) * float(dtype(scale))
    np.testing.assert_allclose(y.data.astype(float), wanted, **close)
    one = Tensor(x, requires_grad=True)
    expected = gradients(f(one, axis=1).sum(), [one])[0]
    np.testing.assert_allclose(
        gradients(y.sum(), [large])[0], expected, atol=close["rtol"], **close
    )
    assert y.dtype == dtype


@pytest.mark.parametrize(
    ("dtype", "scale"), [(d, s) for d, all_ in SCALES.items() for s in all_ if s > 1]
)
def test_layer_norm_does_not_see_the_size_of_its_rows(dtype, scale):
    x, gain, bias = ROWS.astype(dtype), np.ones(5, dtype), np.zeros(5, dtype)
    large, one = (Tensor(v, requires_grad=True) for v in (x * dtype(scale), x))
    y, wanted = layer_norm(large, gain, bias), layer_norm(one, gain, bias, 0.0)
    close = {"rtol": 0, "atol": 40 * np.finfo(dtype).eps}
    np.testing.assert_allclose(y.data, wanted.data, **close)
    found, expected = (
        gradients(t, [v], ROWS.astype(dtype))[0].astype(float)
        for t, v in ((y, large), (wanted, one))
    )
    np.testing.assert_allclose(
        found * scale,
        expected,
        rtol=0,
        atol=0.02 if dtype is np.float16 else 1e-4 if dtype is np.float32 else 1e-12,
    )


def test_a_softmax_over_nothing_is_empty_and_the_sum_of_nothing_has_the_log_of_0():
    x = Tensor(np.zeros((3, 0)), requires_grad=True)
    for f in (softmax, log_softmax):
        assert f(x).shape == gradients(f(x).sum(), [x])[0].shape == (3, 0)
    y = logsumexp(x, axis=1)
    assert (y.data == -np.inf).all() and gradients(y.sum(), [x])[0].shape == (3, 0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_of_two_almost_equal_large_numbers_each_gets_its_part_of_the_gradient(dtype):
    a, b = (Tensor(dtype([1e7, 1e7, -1e7]) + dtype(v), requires_grad=True) for v in (0, 1))
    found = np.array(gradients(np.logaddexp(a, b).sum(), [a, b]))
    np.testing.assert_allclose(found.sum(axis=0), 1, rtol=4 * np.finfo(dtype).eps)
    np.testing.assert_allclose(found[1], 1 / (1 + np.exp(-1.0)), rtol=1e-6)
