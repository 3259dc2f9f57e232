"""Chapters 4.3 to 4.10 · What a check must not miss, nor say falsely, over the vocabulary."""

import contextlib
import itertools

import numpy as np
import pytest

from minigrad import GradientError, Tensor, gradcheck, relu
from minigrad.checks import explaining
from minigrad.engine.autograd import gradients
from tests.planted import A, rule
from tests.test_diagnoses_everywhere import (
    false_ones,
    noted,
    outcome,
    right_operation,
    with_another_vjp,
)
from tests.test_mutation import CASES, OPERATIONS, broken_after, exchanged, positions

__all__ = ["noted"]  # a fixture

# ---------------------------------------------------------------- a scalar's seed is 1

OF_G = {
    "|g|": np.abs,
    "max(g, 0)": lambda g: np.maximum(g, 0.0),
    "g²": np.square,
    "1": np.ones_like,
}


def scalar_valued(cases_of_it):
    """The cases of an operation whose output is one number; others with one element of each."""
    for f, *inputs in (case for case in cases_of_it if isinstance(case, tuple)):
        for given in (inputs, [np.ravel(a)[0] if np.size(a) else a for a in inputs]):
            with contextlib.suppress(Exception):  # not every operation takes a number
                points = [Tensor(np.asarray(a), requires_grad=True) for a in given]
                y = f(*points)
                if y.size == 1 and np.isfinite(y.data).all():
                    yield f, given
                    break


def of_another_g(h, i):
    return lambda vjps, xs: lambda g, y: vjps[i](h(g), y)


def test_a_scalar_rule_that_is_not_proportional_to_g_is_found(monkeypatch):
    monkeypatch.setattr(explaining, "explained", lambda found, *_: found)
    tried = 0
    for name in OPERATIONS:
        rule = OPERATIONS[name].__wrapped__
        case = next(scalar_valued(CASES[name]), None)
        if case is None or hasattr(rule, "definition"):
            continue
        f, given = case
        points = [Tensor(np.asarray(a, float), requires_grad=True) for a in given]
        seed = np.full(f(*points).shape, -2.0)
        right = gradients(f(*points), points, seed)
        for i, h in itertools.product(positions(name), OF_G.values()):
            with exchanged({name: with_another_vjp(rule, i, of_another_g(h, i))}):
                wrong = gradients(f(*points), points, seed)
                if not np.allclose([*map(np.sum, right)], [*map(np.sum, wrong)]):
                    tried += 1
                    with pytest.raises(GradientError):
                        gradcheck(f, *points, order=1)
    assert tried > 180


# ---------------------------------------------------------------- nearly right


def one_element(share):
    """One element of several is half as large again."""
    share = np.array(share)
    share.flat[share.size // 3] *= 1.5
    return share


NEARLY = {
    "five digits after the seventh": lambda share: share * (1 + 5e-8),
    "float32": lambda share: np.asarray(share, np.float32),
    "one element": one_element,
}


def large(inputs, shape):
    """The inputs again and again, so that there are 1,000 elements."""
    return [np.resize(a, shape) if np.size(a) > 1 else a for a in inputs]


def nearly_right_ones(names, noted):
    """What is said of nearly right rules: pairs of what was planted and what was said."""
    found = []
    for name, (kind, change) in itertools.product(names, NEARLY.items()):
        rule = OPERATIONS[name].__wrapped__
        case = next((case for case in CASES[name] if isinstance(case, tuple)), None)
        shapes = ((300,), (20, 15)) if kind == "one element" else ((12,), (3, 4))
        for shape in shapes if case else ():
            f, *inputs = case
            given = large(inputs, shape)
            try:
                with np.errstate(all="ignore"):
                    f(*given)
            except Exception:  # not a rule for inputs of this shape
                given = inputs
            for i in [*positions(name)][:1]:
                noted.clear()
                error = outcome(name, broken_after(rule, i, change), (f, *given), order=1)
                if error is not None:
                    assert not false_ones(noted, right_operation), f"{name} {kind} {error}"
                    found += [(kind, d.kind) for d in error.diagnoses]
    return found


def test_what_is_nearly_right_is_not_called_transposed_or_in_another_order(noted):
    found = nearly_right_ones(("tanh", "exp"), noted)
    assert set(found) == {(kind, "nearly right") for kind in NEARLY if kind != "one element"}


@pytest.mark.slow
def test_of_no_rule_that_is_nearly_right_a_diagnosis_is_false(noted):
    found = nearly_right_ones(OPERATIONS, noted)
    for kind in ("float32", "five digits after the seventh"):
        assert found.count((kind, "nearly right")) > 50


# ---------------------------------------------------------------- names, infinities, round numbers

NAMES = ["w{1}", "{", "{}", "100 %", "f(x)", "(", "two\nlines", "\x1b[31mred", "roof", "x" * 300]


@pytest.mark.parametrize("name", NAMES)
def test_whatever_an_input_is_called_the_verdict_is_the_same_and_its_heading_one_line(name):
    assert gradcheck(np.tanh, Tensor(A, name=name))
    cut = rule(np.tanh, lambda g, y, x: g * (1 - np.square(getattr(y, "data", y))))
    for f in (rule(np.exp, lambda g, y, x: -g * y), cut):
        with pytest.raises(
            GradientError, match="^order .: .*elements differ\nThe rule suspect"
        ) as e:
            gradcheck(f, Tensor(A, name=name))
        assert e.value.rule == "suspect" and str(e.value).replace("\n", "").isprintable()
    with pytest.raises(GradientError) as caught:
        gradcheck(relu, Tensor([0.0, 1.0], name="f(x)"))
    assert "element [0] of f(x), which" in str(caught.value)


@pytest.mark.parametrize("rounded", [np.round, np.floor, np.ceil])
def test_round_numbers_are_not_called_float32(rounded):
    try:
        found = gradcheck(rule(rounded, lambda g, y, x: g), 100 * A)
        assert not found
    except GradientError as error:
        found = error
    assert "float32" not in [each.kind for each in found.diagnoses]


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_an_input_that_is_not_finite_is_refused(bad):
    with pytest.raises(ValueError, match="not finite"):
        gradcheck(lambda x: np.exp(-x * x), [1.0, bad])


def test_a_large_operation_does_not_use_up_the_budget_of_the_small_ones(monkeypatch):
    monkeypatch.setattr("minigrad.checks.culprit.MOST_WORK", 1e5)
    f = rule(np.exp, lambda g, y, x: -g * y)
    with pytest.raises(GradientError) as caught:
        gradcheck(lambda x: f((x[:1] + np.zeros(3_000)).mean() * x), [0.5, 1.0], order=1)
    assert caught.value.rule == "suspect" and "could not be judged" in str(caught.value)


@pytest.mark.parametrize("shape", [(12,), (3_000,)])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_an_element_that_is_not_finite_is_counted_and_shown_first(bad, shape):
    x = np.resize(A, shape)
    there = np.where(np.arange(x.size) == 7, bad, 1.0)
    with pytest.raises(GradientError, match=r": .*; 1 of .*elements differ") as caught:
        gradcheck(rule(np.tanh, lambda g, y, x: g * (1 - y * y) * there), x, order=1)
    rows = str(caught.value).partition("input\n")[2]
    assert rows.split()[:1] == ["[7]"]


@pytest.mark.parametrize("factor", [1.7e-7, 1e-15])
def test_a_tiny_factor_is_neither_0_nor_an_inner_derivative(factor):
    with pytest.raises(GradientError) as caught:
        gradcheck(rule(np.tanh, lambda g, y, x: g * (1 - y * y) * factor), A, order=1)
    kinds = [each.kind for each in caught.value.diagnoses]
    assert "zero" not in kinds and "inner derivative 5" not in str(caught.value)


def test_a_vjp_that_leaves_python_does_not_hide_the_error():
    calls = 0

    def vjp(g, y, x):
        nonlocal calls
        calls += 1
        if calls > 3:
            raise SystemExit
        return -g

    with pytest.raises(GradientError, match="the worst first"):
        gradcheck(rule(np.exp, vjp), A, order=1)
