"""Tests: integers and booleans, in every operation. (Chapters 3 and 6.)

An operation of integers gives what it gives for the same numbers as floats, or what NumPy gives for
the integers, or refuses. It never gives a third answer.
"""

import itertools
import warnings

import numpy as np
import pytest

from minigrad import Tensor, gradients, layer_norm, linear, rms_norm, unfused
from tests import oracles
from tests.coverage_table import CASES

DTYPES = [np.bool_, np.uint8, np.int8, np.int64]
NUMBERS = [*((dtype, False) for dtype in DTYPES), (np.uint8, True), (np.int16, True)]


def in_integers(case, dtype, places, large=False):
    """Return the case with numbers of the dtype at those places, and with the same as floats."""
    rng = np.random.default_rng(5)
    inputs = list(case.inputs)
    low, high = (-3 if np.dtype(dtype).kind == "i" else 0), 2 if dtype is np.bool_ else 4
    if large:
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    for i in places:
        inputs[i] = rng.integers(low, high, np.shape(inputs[i])).astype(dtype)
    floats = [np.asarray(x, float) if i in places else x for i, x in enumerate(inputs)]
    return case._replace(inputs=tuple(inputs)), case._replace(inputs=tuple(floats))


def answer(f, *inputs):
    """Return the result of f as an array, or the exception with which it refuses."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            y = f(*inputs)
    except (TypeError, ValueError, ZeroDivisionError, np.linalg.LinAlgError) as error:
        assert "Cannot cast ufunc" not in str(error), "a result of NumPy's own dtype is not refused"
        return error
    return np.asarray(y.data if isinstance(y, Tensor) else y)


def same(a, b):
    if isinstance(a, Exception) or isinstance(b, Exception):
        return False
    return a.shape == b.shape and np.allclose(a, b, rtol=1e-12, atol=1e-14, equal_nan=True)


def with_gradient(case, i):
    """Return the case's value, and the gradient of its sum with respect to input i, in one row."""
    inputs = [Tensor(x, requires_grad=True) if j == i else x for j, x in enumerate(case.inputs)]
    y = case.ours(*inputs)
    return np.append(np.ravel(y.data), np.ravel(gradients(y.sum(), [inputs[i]])[0]))


@pytest.mark.parametrize("name", sorted({case.name for case in CASES}))
def test_integers_give_what_floats_or_numpy_give_or_a_refusal_and_beside_floats_are_floats(name):
    for case in (case for case in CASES if case.name == name and case.floating):
        for dtype, large in NUMBERS:
            if large and name == "power":
                continue  # (above 2⁶³ it wraps around, as NumPy's does)
            integers, floats = in_integers(case, dtype, case.floating, large)
            ours = answer(integers.ours, *map(Tensor, integers.inputs))
            if not isinstance(ours, Exception):
                assert ours.dtype.kind != "f" or ours.dtype == np.float64, str(case)
                as_floats = answer(floats.ours, *floats.inputs)
                numpys = answer(oracles.expected, integers)
                assert same(ours, as_floats) or same(ours, numpys), (str(case), ours, as_floats)
        beside = [i for i in case.floating if isinstance(case.inputs[i], np.ndarray)]
        for i, dtype in itertools.product(beside if len(case.floating) > 1 else (), DTYPES):
            others = [j for j in case.floating if j != i]
            found = [answer(with_gradient, each, i) for each in in_integers(case, dtype, others)]
            assert isinstance(found[0], Exception) or same(*found), (str(case), *found)


def test_linear_has_the_dtype_and_the_numbers_of_its_composition():
    shapes = (2, 3), (3, 5), (5,)
    for dtypes in itertools.product([np.int8, np.int64, np.float32], repeat=3):
        x, w, b = (Tensor(np.ones(shape, d)) for shape, d in zip(shapes, dtypes, strict=True))
        y, composed = linear(x, w, b), x @ w + b
        assert y.dtype == composed.dtype, dtypes
        np.testing.assert_array_equal(y.data, composed.data)


def test_the_definition_of_a_norm_too_takes_integers_as_numbers():
    x = np.array([[-128, 100, 127, 1]], np.int8)  # whose squares are beyond an int8
    for norm in (lambda x: layer_norm(x, 1.0, 0.0), lambda x: rms_norm(x, 1.0)):
        with unfused():
            np.testing.assert_allclose(norm(Tensor(x)).data, norm(x.astype(float)), rtol=1e-12)
