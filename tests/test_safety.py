"""Safety: arrays that change, and the first NaN."""

import contextlib
import copy
import functools
import inspect
import re

import numpy as np
import pytest

from attention import MultiHeadAttention, additive_attention, attention, fused_attention
from minigrad import (
    Tensor,
    detect_anomaly,
    fused,
    gradients,
    masked_softmax,
    ops,
    primitive,
    recompute,
)
from minigrad.engine.replay import behind
from tests.cases import CASES
from tests.making import A, B, leaf


def line():
    """Return the number of the line that calls this."""
    return inspect.currentframe().f_back.f_lineno


def here(number):
    """Return the pattern by which an error names a line of this file."""
    return re.escape(f"in {__file__}, line {number}")


# ---------------------------------------------------------------- value

SOUND = {
    "ordinary": lambda t: np.exp(t) * np.tanh(t) / ops.softmax(t),
    "a mask of -∞": lambda t: ops.softmax(t + np.array([0.0, -np.inf, 0.0])),
    "log_softmax of it": lambda t: ops.log_softmax(np.where([True, False, True], t, -np.inf))[::2],
    "an empty sum": lambda t: np.logaddexp(*[np.where([False, True, True], t, -np.inf)] * 2)[1:],
    "integers": lambda t: np.sqrt(t[np.array([2, 2, 0])]) * Tensor([2, 3, 5]),
    "a large integer": lambda t: t * 10**20,
    "a large integer beside a constant": lambda t: t * (Tensor(A) * 10**20),
    "nothing": lambda t: t[:0] * 2.0,
    "booleans": lambda t: np.where(t > 0.5, t, 0.0) * Tensor([True, False, True]),
}


@pytest.mark.parametrize("f", SOUND.values(), ids=SOUND)
def test_what_is_sound_passes_and_gives_the_same_value_and_gradient(f):
    plain, watched = leaf(), leaf()
    y = f(plain)
    y.backward(np.ones(y.shape))
    with detect_anomaly():
        z = f(watched)
        z.backward(np.ones(z.shape))
    np.testing.assert_array_equal(z.data, y.data)
    np.testing.assert_array_equal(watched.grad, plain.grad)


# ---------------------------------------------------------------- law: changed arrays


def test_the_array_a_leaf_was_built_from_is_not_the_leafs_and_a_constants_is():
    mine, constants = A.copy(), B.copy()
    p, c = leaf(mine), Tensor(constants)
    with detect_anomaly():
        y, at = (p * p * c).sum(), line()
    mine += 1.0
    y.backward(retain_graph=True)
    np.testing.assert_array_equal(p.grad, 2 * A * B)
    p.grad = None
    constants[0] += 1.0
    with pytest.raises(RuntimeError, match=rf"^multiply .*\(3,\) .*changed.*\({here(at)}\)$"):
        y.backward()
    assert p.grad is None


def _arrays(values):
    for value in values:
        if isinstance(value, (tuple, list)):
            yield from _arrays(value)
        elif isinstance(value, np.ndarray):
            yield value


def _given(case):
    """Return the arrays that a case gives as indices, masks and options."""
    fixed = [x for i, x in enumerate(case.inputs) if i not in case.floating]
    return list(_arrays([*fixed, *case.options.values()]))


# (Of power and where, an input may be an array of integers or booleans: a constant. The angles of
# rotate_pairs are constants, too.)
SHARED = ("power", "where", "rotate_pairs")
WITH_ARRAYS = [case for case in CASES if case.name not in SHARED and _given(case)]


@pytest.mark.parametrize("name", sorted({case.name for case in WITH_ARRAYS}))
def test_an_index_or_an_option_that_is_written_between_the_passes_changes_nothing(name):
    for case in [case for case in WITH_ARRAYS if case.name == name]:
        own = copy.deepcopy(case)
        inputs = [leaf(x) if i in case.floating else x for i, x in enumerate(own.inputs)]
        ys = [own.ours(*inputs) for _ in range(4)]
        if not isinstance(ys[0], Tensor) or not ys[0].requires_grad:
            continue
        wanted = [x for x in inputs if isinstance(x, Tensor)]
        g = np.cos(np.arange(ys[0].size)).reshape(ys[0].shape)
        expected = gradients(ys[0], wanted, g)
        again = gradients(ys[1], wanted, g, create_graph=True)  # where the rule is called again
        for array in _given(own):
            array[...] = 0
        np.testing.assert_equal(gradients(ys[2], wanted, g), expected)
        found = gradients(ys[3], wanted, g, create_graph=True)
        np.testing.assert_equal([x.data for x in found], [x.data for x in again])


HEADS = MultiHeadAttention(5, 1, rng=np.random.default_rng(0))
TAKES_ARRAYS = {  # with the options that each takes as arrays
    "attention": (attention, ["mask", "score_bias"]),
    "fused_attention": (fused_attention, ["mask", "score_bias"]),
    "additive_attention": (
        lambda *x, mask: additive_attention(*x, x[0][0, 0], mask=mask),
        ["mask"],
    ),
    "MultiHeadAttention": (HEADS, ["mask", "score_bias"]),
    "masked_softmax": (lambda q, k, v, mask: masked_softmax(q @ k.mT, mask), ["mask"]),
}


@pytest.mark.parametrize(("f", "options"), TAKES_ARRAYS.values(), ids=TAKES_ARRAYS)
def test_an_array_that_attention_was_given_and_that_is_written_later_changes_no_gradient(
    f, options
):
    rng = np.random.default_rng(1)
    q, k, v = (leaf(rng.standard_normal((2, 3, 5))) for _ in range(3))

    def found(write, **how):
        bias = np.cos(np.arange(9.0)).reshape(3, 3)
        given = {"mask": np.tri(3, dtype=bool), "score_bias": bias}
        y = f(q, k, v, **{option: given[option] for option in options})
        for array in given.values() if write else ():
            array[...] = 0
        reached = [x for x in (q, k, v) if x in behind(y)]
        g = np.cos(np.arange(y.size)).reshape(y.shape)
        return [x.data if how else x for x in gradients(y, reached, g, **how)]

    for how in ({}, {"create_graph": True}):
        for one, other in zip(found(True, **how), found(False, **how), strict=True):
            np.testing.assert_array_equal(one, other)


def test_a_write_is_fine_where_no_gradient_needs_the_old_values():
    for f in (lambda p, c: p + c, lambda p, c: np.exp(p) - c):
        p, c = leaf(), B.copy()
        (expected,) = gradients(f(p, c).sum(), [p])
        with detect_anomaly():
            y = f(p, c).sum()
        c[:] = 5.0  # (and where it is written with what it holds, nothing is changed)
        np.testing.assert_array_equal(gradients(y, [p])[0], expected)


# ---------------------------------------------------------------- law: the first NaN


@fused(definition=np.sqrt)
def root(x, /):
    return np.sqrt(x), lambda g, y, needs: (g / (2 * y),)


FORWARD = {
    "NaN of a leaf": (lambda t: np.sqrt(t - 2.0), r"^sqrt of \(3,\) made a NaN, "),
    "0/0": (lambda t: (t - t) / (t - t), r"^divide of \(3,\) and \(3,\) made a NaN, "),
    "∞ - ∞": (lambda t: (t + np.inf) - np.inf, r"^subtract of \(3,\) and \(\) made a NaN, "),
    "overflow": (lambda t: np.exp(t * 1e5), r"^exp of \(3,\) made an infinity, "),
    "1/0": (lambda t: 1.0 / (t - t), r"^divide of \(\) and \(3,\) made an infinity, "),
    "handed in": (lambda t: t * np.nan, r"^multiply of 't' \(3,\) and \(\) was given a NaN, "),
    "float32": (lambda t: np.exp(100 * t.astype(np.float32)), "^exp of .* made an infinity, "),
    "a fused rule": (lambda t: root(leaf([-1.0, 1.0], "x")), r"^root of 'x' \(2,\) made a NaN, "),
    "a composed function": (
        lambda t: np.var(t * np.inf),
        r"^subtract of \(3,\) and \(1,\) made a NaN, ",
    ),
}


@pytest.mark.parametrize(("f", "words"), FORWARD.values(), ids=FORWARD)
def test_a_nan_or_an_infinity_stops_the_forward_pass(f, words):
    at = inspect.getsourcelines(f)[1]
    with detect_anomaly(), pytest.raises(FloatingPointError, match=words) as caught:
        f(leaf())
    assert f"in {__file__}, line {at}" in str(caught.value)


BACKWARD = {
    "√ at 0": (lambda x: np.sqrt(x), "sqrt of 'x'", "an infinity"),
    "√ at 0, cut by where": (lambda x: np.where(x > 0.5, np.sqrt(x), 0.0), "sqrt of 'x'", "a NaN"),
    "a fused rule": (lambda x: root(x), "root of 'x'", "an infinity"),
    "at second order": (
        lambda x: gradients(x**1.5, [x], np.ones(3), create_graph=True)[0],
        "power of 'x'",
        "an infinity",
    ),
    "recomputed": (lambda x: recompute(lambda x: np.sqrt(x), x), "sqrt of 'x'", "an infinity"),
}


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize(("f", "operation", "what"), BACKWARD.values(), ids=BACKWARD)
def test_a_derivative_that_makes_a_nan_or_an_infinity_names_the_forward_operation(
    f, operation, what, inside
):
    x = leaf([0.0, 0.7, 1.1], "x")
    if f is BACKWARD["recomputed"][0] and not inside:
        operation = "recompute of 'x'"  # its own record is made after watching has ended
    at = inspect.getsourcelines(f)[1]
    words = (
        rf"^the derivative of {operation}.* made {what} in the gradient of input 0; the operation "
        rf"was called {here(at)}$"
    )
    with contextlib.ExitStack() as stack:
        stack.enter_context(detect_anomaly())
        y = f(x).sum()
        if not inside:
            stack.close()
            stack.enter_context(np.errstate(divide="ignore", invalid="ignore"))
        with pytest.raises(FloatingPointError, match=words):
            y.backward()
    assert x.grad is None


def test_a_gradient_that_arrives_broken_is_nobodys_fault_further_down():
    t = leaf()
    with detect_anomaly():
        y = t * 2.0
    y.backward([np.inf, np.nan, 1.0])
    np.testing.assert_array_equal(t.grad, [np.inf, np.nan, 2.0])


# ---------------------------------------------------------------- law: in and out


def test_watching_twice_is_watching_and_ends_with_the_outer_block():
    for broken in ("inner", "between"):
        t = leaf(B)
        with contextlib.ExitStack() as stack:
            stack.enter_context(detect_anomaly())
            stack.enter_context(pytest.raises(FloatingPointError, match="^log of 't'"))
            with detect_anomaly():
                if broken == "inner":
                    np.log(t)
            np.log(t)
        assert np.exp(t).node.watch is None


def test_an_exception_ends_the_watching_and_numpys_own_settings_come_back():
    before = np.geterr()
    with contextlib.suppress(FloatingPointError), detect_anomaly():
        np.log(leaf(B))
    assert np.geterr() == before and np.exp(leaf()).node.watch is None


# ---------------------------------------------------------------- law: where a VJP keeps an array


class Saved:
    def __init__(self, x):
        self.x = x

    def vjp(self, g, y):
        return 2 * g * self.x

    def __call__(self, g, y):
        return 2 * g * self.x


WAYS_TO_KEEP = {
    "a closure": lambda x: lambda g, y: 2 * g * x,
    "a dict": lambda x: (lambda saved: lambda g, y: 2 * g * saved["x"])({"x": x}),
    "a default": lambda x: lambda g, y, x=x: 2 * g * x,
    "a default that is keyword-only": lambda x: lambda g, y, *, x=x: 2 * g * x,
    "a bound method": lambda x: Saved(x).vjp,
    "an object that is called": Saved,
    "a partial": lambda x: functools.partial(lambda x, g, y: 2 * g * x, x),
}


@pytest.mark.parametrize("keep", WAYS_TO_KEEP.values(), ids=WAYS_TO_KEEP)
def test_a_write_to_an_array_that_a_vjp_keeps_in_any_way_is_noticed_by_watching(keep):
    constant = np.array([1.0, 2.0])

    @primitive
    def scaled(x, /):
        return x * 2.0 * constant, keep(constant)

    w = Tensor([1.0, 2.0], requires_grad=True)
    with detect_anomaly():
        y = scaled(w)
    constant *= 10
    with pytest.raises(RuntimeError, match="scaled cannot be replayed"):
        y.backward(np.ones(2))
