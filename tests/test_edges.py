"""Tests: numbers at the edges of their range, in the operations that square or exponentiate.

Everything is compared with the same numbers at an ordinary size.
"""

import itertools

import numpy as np
import pytest

from minigrad import (
    Tensor,
    cosine_similarity,
    gradients,
    layer_norm,
    log_softmax,
    logsumexp,
    mse,
    norm,
    softmax,
    std,
)
from minigrad.nn import RMSNorm
from tests.coverage_table import CASES

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


def second_derivative_along(f, xs, v, g):
    """That of ⟨g, f⟩: recorded, and by differences of the slope; None where it has a jump."""

    def slope(step, **options):
        ts = [Tensor(x + step * u, requires_grad=True) for x, u in zip(xs, v, strict=True)]
        found = gradients(f(*ts), ts, g, **options)
        return sum((d * u).sum() for d, u in zip(found, v, strict=True)), ts

    h = 1e-5
    left, here, right, further = (float(slope(s * h)[0]) for s in (-1, 0, 1, 2))
    # A jump would halve the second of these, and make the third differ from the first.
    differences = [(right - here) / h, (further - here) / (2 * h), (here - left) / h]
    if not np.isfinite(differences).all() or np.ptp(differences) > 1e-3 * np.abs(differences).max():
        return None
    y, ts = slope(0, create_graph=True)
    found = gradients(y, ts) if y.requires_grad else [np.zeros(x.shape) for x in xs]
    return sum(float((d * u).sum()) for d, u in zip(found, v, strict=True)), differences[0]


@pytest.mark.parametrize("name", sorted({case.name for case in CASES} - {"dropout"}))
def test_where_inputs_are_alike_a_smooth_slope_has_the_second_derivative_that_it_has(name):
    """Ties and zeros are where a rule asks for special values, and may cut the record by it."""
    rng = np.random.default_rng(0)
    cases = sorted((c for c in CASES if c.name == name), key=lambda c: str(c.options))
    for case, value in itertools.product(cases[:3], (0.0, 1.0)):
        xs = [np.full(np.shape(case.inputs[i]), value) for i in case.floating]
        v = [rng.standard_normal(x.shape) for x in xs]

        def f(*ts, case=case):
            given = dict(zip(case.floating, ts, strict=True))
            return case.ours(*[given.get(i, x) for i, x in enumerate(case.inputs)])

        try:
            with np.errstate(all="ignore"):
                y = f(*[Tensor(x, requires_grad=True) for x in xs])
                if not isinstance(y, Tensor) or not y.requires_grad:
                    continue
                found = second_derivative_along(f, xs, v, rng.standard_normal(y.shape))
        except (ValueError, TypeError, ZeroDivisionError, np.linalg.LinAlgError):
            continue  # the operation is not defined there
        if found is not None:
            np.testing.assert_allclose(*found, rtol=2e-3, atol=1e-3, err_msg=f"{case} at {value}")


LONG = 70_000  # more than the largest number of float16


def test_a_mean_over_more_elements_than_float16_has_numbers_has_a_gradient():
    x = Tensor(np.ones(LONG, np.float16), requires_grad=True)
    for y, slope in ((x.mean(), 1 / LONG), (mse(x, np.zeros(LONG, np.float16)), 2 / LONG)):
        np.testing.assert_allclose(gradients(y, [x])[0], slope, rtol=2e-3)


@pytest.mark.parametrize("f", [norm, std, lambda x, axis: cosine_similarity(x, x, axis)])
def test_a_long_row_of_float16_has_a_length(f):
    x = np.random.default_rng(0).standard_normal((2, LONG))
    found = f(Tensor(x.astype(np.float16)), axis=1)
    assert found.dtype == np.float16
    np.testing.assert_allclose(found.data.astype(float), f(x, axis=1), rtol=3e-3)


@pytest.mark.parametrize(
    ("dtype", "scale"), [(d, s) for d, all_ in SCALES.items() for s in all_ if s > 1]
)
def test_rms_norm_does_not_lose_a_row_whose_squares_overflow(dtype, scale):
    large = Tensor((np.abs(ROWS) * dtype(scale)).astype(dtype))
    y = RMSNorm(5, eps=0.0).astype(dtype)(large).data.astype(float)
    held = large.data.astype(float) / scale  # (as this dtype has them)
    expected = held / np.sqrt((held**2).mean(axis=-1, keepdims=True))
    np.testing.assert_allclose(y, expected, rtol=30 * np.finfo(dtype).eps)
