"""Tests: numbers at the edges of their range, in the operations that square or exponentiate.

Everything is compared with the same numbers at an ordinary size.
"""

import importlib
import itertools
import pkgutil
from contextlib import nullcontext

import numpy as np
import pytest

import attention
import minigrad
from attention.positions import rotary
from minigrad import (
    Tensor,
    cosine_similarity,
    cross_entropy,
    gelu_tanh,
    gradients,
    layer_norm,
    log_softmax,
    logsumexp,
    masked_softmax,
    mse,
    norm,
    softmax,
    std,
    unfused,
)
from minigrad.nn import RMSNorm
from minigrad.nn.layers import _rms_norm
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


# ---------------------------------------------------------------- every fused rule

WIDER = {np.float16: np.float64, np.float32: np.float64, np.float64: np.longdouble}
EVEN, LINE = np.arange(8) % 2 == 0, np.linspace(-1, 2, 8)
FUSED = {  # of rows (5, 8)
    "cross_entropy": lambda x: cross_entropy(x, [0, 3, 7, 7, 1], reduction="none"),
    "gelu_tanh": gelu_tanh,
    "layer_norm": lambda x: layer_norm(x, LINE.astype(x.dtype), LINE.astype(x.dtype)),
    "masked_softmax": lambda x: masked_softmax(x, EVEN),
    "rms_norm": lambda x: _rms_norm(x, Tensor(LINE.astype(x.dtype)), eps=1e-5),
    "rotary": lambda x: rotary(rotary(x), pairs="halves"),
    "fused_attention": None,  # tests/test_fused_attention.py asks it the same
}


def test_every_fused_rule_is_asked():
    names = set()
    for package in (minigrad, attention):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if found.name.endswith("__main__") or ".graphs" in found.name:
                continue
            for f in vars(importlib.import_module(found.name)).values():
                rule = getattr(f, "__wrapped__", None)
                names |= {rule.__name__} if hasattr(rule, "definition") else set()
    assert names == FUSED.keys()


def rows_of(rng, power, ties, offset):
    """Whole numbers times a power of ten, far from 0 if they have an offset."""
    x = rng.integers(-5, 6, (5, 8)).astype(float)
    x[:, 1::2] = x[:, ::2] if ties else x[:, 1::2]
    return (x + offset) * 10.0**power


@pytest.mark.parametrize("dtype", WIDER)
@pytest.mark.parametrize("name", sorted(FUSED.keys() - {"fused_attention"}))
def test_at_every_size_the_error_of_a_fused_rule_is_at_most_four_times_its_definitions(name, dtype):
    f, few = FUSED[name], 8 * np.finfo(dtype).eps
    for power, ties, offset, seed in itertools.product(
        range(9), (False, True), (0.0, 50.0), range(3)
    ):
        rng = np.random.default_rng(seed)
        values, g = rows_of(rng, power, ties, offset), rng.standard_normal((5, 8))
        if np.abs(values).max() > np.finfo(dtype).max:
            continue
        found = []
        for definition, each in ((False, dtype), (True, dtype), (True, WIDER[dtype])):
            x = Tensor(values.astype(dtype), dtype=each, requires_grad=True)
            with unfused() if definition else nullcontext(), np.errstate(all="ignore"):
                y = f(x)
                found.append(
                    [y.data, *gradients(y, [x], g.astype(dtype).flat[: y.size].reshape(y.shape))]
                )
        for one, definitions, exact in zip(*found, strict=True):
            error, allowed = (np.abs(each - exact).max() for each in (one, definitions))
            assert not error > 4 * allowed + few * np.abs(exact).max(), (power, ties, offset)


# ---------------------------------------------------------------- every curve at its ends

CURVES = """
    abs arctan cosh elu erf exp expm1 gelu gelu_tanh leaky_relu log1p logsigmoid relu sigmoid sign
    silu sinh softplus sqrt square tanh
"""


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("name", CURVES.split())
def test_a_curve_overflows_only_where_its_value_or_its_slope_does(name, dtype):
    """Its definition, in numbers that cannot overflow here, says where that is."""
    f, limits = getattr(minigrad, name), np.finfo(dtype)
    ends = [
        1,
        limits.max / 2,
        limits.max,
        np.sqrt(limits.max),
        limits.tiny,
        limits.smallest_subnormal,
    ]
    for value in np.array([*ends, *np.negative(ends)], dtype):
        if value < 0 and name in ("sqrt", "log1p"):
            continue
        with np.errstate(all="ignore"):
            x = Tensor(value, dtype=np.longdouble, requires_grad=True)
            exact = [f(x).data, *gradients(f(x), [x])]
        if name == "gelu" and abs(value) > 100:  # (erf of a longdouble has the digits of a double)
            exact = [max(value, 0), float(value > 0)]
        if not max(map(np.abs, exact)) <= limits.max:
            continue
        with np.errstate(over="raise", invalid="raise"):
            x = Tensor(value, requires_grad=True)
            found = [f(x).data, *gradients(f(x), [x])]
        for one, other, atol in zip(
            found, exact, (limits.smallest_subnormal, limits.eps), strict=True
        ):
            np.testing.assert_allclose(
                one, other, rtol=8 * limits.eps, atol=atol, err_msg=str(value)
            )


@pytest.mark.parametrize("largest", [1e-3, 1.0, 300.0, 6e4])
@pytest.mark.parametrize("length", [4, 1000, LONG])
@pytest.mark.parametrize("name", ["layer_norm", "rms_norm"])
def test_a_norm_of_float16_has_the_values_and_gradients_of_float64(name, length, largest):
    rng = np.random.default_rng(0)
    x = largest * rng.choice([-1, 1, 1, 1], (2, length)) * rng.uniform(0.5, 1, (2, length))
    x[0, :4], g = largest * np.array([1, 1, 1, -1]), rng.standard_normal((2, length))
    found = []
    for dtype in (np.float16, np.float64):
        t, one = (
            Tensor(x.astype(np.float16), dtype=dtype, requires_grad=True),
            np.ones(length, dtype),
        )
        if name == "layer_norm":
            y = layer_norm(t, one, 0 * one, eps=1e-7)
        else:
            y = _rms_norm(t, Tensor(one), eps=1e-7)
        assert y.dtype == dtype
        found.append([y.data, *gradients(y, [t], g.astype(np.float16))])
    for one, other, tiny in zip(
        *found, (0, 2 * np.finfo(np.float16).smallest_subnormal), strict=True
    ):
        atol = 2e-3 * np.abs(other).max() + tiny
        np.testing.assert_allclose(one.astype(float), other, rtol=0, atol=atol)


# ------------------------------------------------------------------ masked arrays

GIVEN = {"index", "indices", "mask", "targets", "weight"}  # options that are arrays
GIVEN |= {"indices_or_sections", "pad_width", "repeats", "shift"}


def masked(values):
    found = np.ma.array(values)
    found[(0,) * found.ndim] = np.ma.masked
    return found


def with_one_masked(case):
    """The case with each of its arrays in turn as a masked array, its first element masked."""
    for i, given in enumerate(case.inputs):
        if isinstance(given, np.ndarray) and given.size and (case.name, i) != ("full_like", 0):
            inputs = (*case.inputs[:i], masked(given), *case.inputs[i + 1 :])
            yield case._replace(inputs=inputs)
    for name in case.options.keys() & GIVEN:
        given = case.options[name]
        if isinstance(given, np.ndarray | list) and np.size(given):
            yield case._replace(options=case.options | {name: masked(given)})


@pytest.mark.parametrize("name", sorted({case.name for case in CASES if case.name[:2] != "t."}))
def test_no_operation_leaves_out_the_mask_of_a_masked_array(name):
    """It refuses, or gives back the masked array itself."""
    for case in CASES:
        for changed in with_one_masked(case) if case.name == name else ():
            try:
                y = changed.ours(*changed.inputs)
            except TypeError as error:
                assert "would ignore the mask of a masked array" in str(error), changed
            else:
                assert isinstance(y, np.ma.MaskedArray) and y.mask.any(), changed


@pytest.mark.filterwarnings("ignore:the matrix subclass")
@pytest.mark.parametrize("name", sorted({case.name for case in CASES if case.name[:2] != "t."}))
def test_a_subclass_of_arrays_is_read_as_its_array(name):
    """np.matrix keeps two axes whatever is done to it, so a result of its own shape would show."""
    is_matrix = lambda x: isinstance(x, np.ndarray) and x.ndim == 2 and x.dtype.kind in "iuf"
    for case in CASES:
        if case.name == name and any(map(is_matrix, case.inputs)):
            found = case.ours(*[np.matrix(x) if is_matrix(x) else x for x in case.inputs])
            known = case.ours(*case.inputs)
            lists = (list, tuple)
            pairs = zip(found, known, strict=True) if isinstance(known, lists) else [(found, known)]
            for y, expected in pairs:
                np.testing.assert_array_equal(np.asarray(y), np.asarray(expected), strict=True)
