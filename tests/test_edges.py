"""Tests: places where numbers are alike, empty or far apart, in every operation that minds."""

import importlib
import itertools
import pkgutil
from contextlib import nullcontext

import numpy as np
import pytest

import attention
import minigrad
from minigrad import (
    Tensor,
    cross_entropy,
    gelu_tanh,
    gradients,
    layer_norm,
    log_softmax,
    logsumexp,
    masked_softmax,
    rms_norm,
    softmax,
    unfused,
)
from tests.coverage_table import CASES


def test_a_softmax_over_nothing_is_empty_and_the_sum_of_nothing_has_the_log_of_0():
    x = Tensor(np.zeros((3, 0)), requires_grad=True)
    for f in (softmax, log_softmax):
        assert f(x).shape == gradients(f(x).sum(), [x])[0].shape == (3, 0)
    y = logsumexp(x, axis=1)
    assert (y.data == -np.inf).all() and gradients(y.sum(), [x])[0].shape == (3, 0)


def second_derivative_along(f, xs, v, g):
    """Return ⟨g, f⟩'s second derivative along v, recorded and by differences; None at a jump."""

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


# ---------------------------------------------------------------- every fused rule

EVEN, LINE = np.arange(8) % 2 == 0, np.linspace(-1, 2, 8)
FUSED = {  # of rows (5, 8)
    "cross_entropy": lambda x: cross_entropy(x, [0, 3, 7, 7, 1], reduction="none"),
    "gelu_tanh": gelu_tanh,
    "layer_norm": lambda x: layer_norm(x, LINE.astype(x.dtype), LINE.astype(x.dtype)),
    "masked_softmax": lambda x: masked_softmax(x, EVEN),
    "rms_norm": lambda x: rms_norm(x, LINE.astype(x.dtype)),
    "fused_attention": None,  # tests/test_fused_attention.py asks it the same
}


def softmax_exactly(x, g, mask):
    z = np.where(mask, x, -np.inf)
    e = np.exp(z - z.max(axis=-1, keepdims=True))
    y = e / e.sum(axis=-1, keepdims=True)
    return y, y * (g - (y * g).sum(axis=-1, keepdims=True))


def cross_entropy_exactly(x, g, targets):
    p, _ = softmax_exactly(x, 0 * x, np.full(8, True))
    z = x - x.max(axis=-1, keepdims=True)
    truth = np.eye(8, dtype=bool)[targets]
    return np.log(np.exp(z).sum(axis=-1)) - z[truth], g[:, None] * (p - truth)


def gelu_exactly(x, g):
    root = np.sqrt(np.longdouble(2) / np.arccos(np.longdouble(-1)))
    t = np.tanh(root * (x + np.longdouble("0.044715") * x**3))
    slope = root * (1 + 3 * np.longdouble("0.044715") * x**2)
    with np.errstate(all="ignore"):
        f = (1 + t) / 2 + np.where(abs(t) == 1, 0, x * (1 - t * t) * slope / 2)
    return x * (1 + t) / 2, g * f


def norm_exactly(x, g, gain, bias, centred):
    n = x - centred * x.mean(axis=-1, keepdims=True)
    sigma = np.sqrt((n * n).mean(axis=-1, keepdims=True) + np.longdouble(1e-5))
    n, h = n / sigma, g * gain
    h = h - centred * h.mean(axis=-1, keepdims=True)
    return n * gain + bias, (h - n * (n * h).mean(axis=-1, keepdims=True)) / sigma


# Value and ∂L/∂x by the formulas of chapters 3.7 and 3.10, in NumPy and longdouble.
EXACT = {
    "cross_entropy": lambda x, g, line: cross_entropy_exactly(x, g, [0, 3, 7, 7, 1]),
    "gelu_tanh": lambda x, g, line: gelu_exactly(x, g),
    "layer_norm": lambda x, g, line: norm_exactly(x, g, line, line, centred=1),
    "masked_softmax": lambda x, g, line: softmax_exactly(x, g, EVEN),
    "rms_norm": lambda x, g, line: norm_exactly(x, g, line, 0, centred=0),
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
    """Return whole numbers times a power of ten, far from 0 if they have an offset."""
    x = rng.integers(-5, 6, (5, 8)).astype(float)
    x[:, 1::2] = x[:, ::2] if ties else x[:, 1::2]
    return (x + offset) * 10.0**power


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", EXACT)
def test_at_every_size_the_error_of_a_fused_rule_is_at_most_four_times_its_definitions(name, dtype):
    f, few = FUSED[name], 8 * np.finfo(dtype).eps
    for power, ties, offset, seed in itertools.product(
        range(6), (False, True), (0.0, 50.0), range(3)
    ):
        rng = np.random.default_rng(seed)
        values, g = rows_of(rng, power, ties, offset), rng.standard_normal((5, 8))
        found = []
        for how in (nullcontext, unfused):
            x = Tensor(values.astype(dtype), requires_grad=True)
            with how(), np.errstate(all="ignore"):
                y = f(x)
                seed = g.astype(dtype).flat[: y.size].reshape(y.shape)
                found.append([y.data, *gradients(y, [x], seed)])
        wide = [a.astype(dtype).astype(np.longdouble) for a in (values, seed, LINE)]
        for one, definitions, exact in zip(*found, EXACT[name](*wide), strict=True):
            error, allowed = (np.abs(each - exact).max() for each in (one, definitions))
            assert not error > 4 * allowed + few * np.abs(exact).max(), (power, ties, offset)
