"""Chapter 4 · Mutation: every rule of chapter 3 is broken in every way we know, and it is noticed.

A check that passes says little until it is known what would make it fail. So each rule is broken
here, one thing at a time, and the gradient check (and, where no difference can look, a law) is run
on it. Breaking goes two ways. From outside, whatever a VJP gives is scaled by 1.0005, negated,
transposed, or cut out of the record. From inside, its text is changed: a + becomes a -, a factor is
dropped, `.mT` forgotten, `keepdims` flipped. What survives is listed with the reason why it is no
mistake, and that list is all.
"""

import ast
import contextlib
import copy
import functools
import importlib
import inspect
import itertools
import re
import types
from unittest import mock

import numpy as np
import pytest

from minigrad import Tensor, cross_entropy, gradcheck, gradients, layer_norm, no_grad, ops, unfused
from minigrad.checks import explaining
from minigrad.engine import replay

rng = np.random.default_rng(11)
S = rng.uniform(0.5, 2.0, (3, 3))  # square: only then does a transposed gradient fit
P = rng.uniform(0.5, 2.0, (3, 3))
X = S * rng.choice([-1, 1], (3, 3))
BOX = rng.uniform(-1.0, 1.0, (3, 3, 3))
ROW = rng.uniform(0.5, 2.0, 3)
PAIRED = rng.uniform(-1.0, 1.0, (3, 4))
MASK = np.array([[True, False, True], [False, False, True], [True, True, False]])
INSIDE = rng.uniform(-0.8, 0.8, (3, 3))  # between -1 and 1
REGULAR = 0.5 * BOX + 3 * np.eye(3)
LONE = 2.0  # a number: what is summed over all places


# ---------------------------------------------------------------- cases
# Of each operation: functions with the inputs to check them at, and laws, which assert.


def ties_are_shared(extremum, sign):
    def law():
        rows = np.array([[2.0, 1.0, 2.0], [0.0, 3.0, 3.0], [5.0, 5.0, 5.0]])
        x = Tensor(sign * rows, requires_grad=True)
        (g,) = gradients(extremum(x, 1), [x], np.array([2.0, 4.0, 6.0]))
        np.testing.assert_array_equal(g, [[1, 0, 1], [0, 2, 2], [2, 2, 2]])

    return law


def a_tie_of_two_is_halved(extremum):
    def law():
        a, b = (Tensor([1.0, 2.0, 5.0], requires_grad=True) for _ in "ab")
        found = gradients(extremum(a, b), [a, b], np.array([2.0, 4.0, 6.0]))
        np.testing.assert_array_equal(found, [[1.0, 2.0, 3.0]] * 2)

    return law


def nothing_comes_back_from_an_empty_sum(f):
    """Return a law: where all summands are exp(-∞), the gradients of both orders are 0."""

    def law():
        x = Tensor([[-np.inf, -np.inf], [0.5, 1.5]], requires_grad=True)
        y = f(x)
        assert y.data.ravel()[0] == -np.inf
        with np.errstate(invalid="ignore"):
            (g,) = gradients(y, [x], np.ones(y.shape), create_graph=True)
            second = gradients((g * g).sum(), [x])[0]
        for found in (g.data, second):
            assert np.isfinite(found).all() and (found[0] == 0).all() and (found[1] != 0).any()

    return law


def where_one_is_far_larger_it_gets_all():
    a = Tensor([np.inf, 0.5, -3.0], requires_grad=True)
    b = Tensor([1.0, -1000.0, np.inf], requires_grad=True)
    found = gradients(ops.logaddexp(a, b), [a, b], np.array([2.0, 3.0, 5.0]))
    np.testing.assert_array_equal(found, [[2.0, 3.0, 0.0], [0.0, 0.0, 5.0]])


def two_that_are_equal_get_the_same():
    a, b = (Tensor([1.0, -1e7, np.inf], requires_grad=True) for _ in "ab")
    found = gradients(ops.logaddexp(a, b), [a, b], np.array([2.0, 4.0, 6.0]))
    np.testing.assert_allclose(found, [[1.0, 2.0, 3.0]] * 2, rtol=1e-15)


def a_nan_is_the_extremum(extremum):
    def law():
        x = Tensor([[1.0, np.nan, 2.0], [np.nan, 3.0, np.nan]], requires_grad=True)
        (g,) = gradients(extremum(x, 1), [x], np.array([2.0, 4.0]))
        np.testing.assert_array_equal(g, [[0, 2, 0], [2, 0, 2]])

    return law


def powers_of_zero_are_smooth():
    x, e = Tensor([0.0, 0.0, 0.0], requires_grad=True), np.array([0.0, 1.0, 2.0])
    np.testing.assert_array_equal(gradients(x**e, [x], np.ones(3))[0], [0.0, 1.0, 0.0])
    b = Tensor([0.5, 2.0, 0.0], requires_grad=True)
    (g,) = gradients(np.array([0.0, 3.0, 0.0]) ** b, [b], np.ones(3))
    np.testing.assert_allclose(g, [0.0, 9 * np.log(3.0), 0.0])


def powers_at_the_edges_have_their_limits():
    x = Tensor([0.0, 1e300, np.inf, -np.inf], requires_grad=True)
    for zero in (0.0, np.zeros(4)):
        np.testing.assert_array_equal(gradients((x**zero).sum(), [x])[0], np.zeros(4))
    b = Tensor([-1.0, 0.0, 1.0], requires_grad=True)
    with np.errstate(divide="ignore"):
        (g,) = gradients((0.0**b).sum(), [b])
    np.testing.assert_array_equal(g, [-np.inf, 0.0, 0.0])  # from ∞ at -1 down


def saturated_it_is_the_identity_or_0():
    """Check gelu_tanh far out, where x² overflows, at both orders and by both ways."""
    x = Tensor([1e20, -1e20, 1e200, -1e200], requires_grad=True)
    with np.errstate(over="ignore"):
        for f in (ops.gelu_tanh, ops.gelu_tanh.__wrapped__.definition):
            y = f(x)
            (g,) = gradients(y.sum(), [x], create_graph=True)
            (second,) = gradients((g * g).sum(), [x])
            np.testing.assert_array_equal(y.data, [1e20, 0, 1e200, 0])
            np.testing.assert_array_equal(g.data, [1, 0, 1, 0])
            np.testing.assert_array_equal(gradients(f(x).sum(), [x])[0], [1, 0, 1, 0])
            np.testing.assert_array_equal(second, [0, 0, 0, 0])


def in_many_parts_it_is_what_it_is_in_one():
    row = np.linspace(-3.0, 3.0, 1001)
    x, g = np.tile(row, 150), np.tile(np.cos(row), 150)  # (more than 2 · 2¹⁶ numbers)
    whole, one = (Tensor(v, requires_grad=True) for v in (x, row))
    (found,) = gradients(ops.gelu_tanh(whole), [whole], g)
    (expected,) = gradients(ops.gelu_tanh(one), [one], np.cos(row))
    np.testing.assert_array_equal(found, np.tile(expected, 150))


def its_definition_too_has_rows_without_a_key():
    x = Tensor(np.array([[[1.0, 2.0, 3.0]]] * 2, np.float32), requires_grad=True)
    mask = [[[False, False, False]], [[True, False, True]]]
    both = []
    for way in (contextlib.nullcontext, unfused):
        with way(), np.errstate(all="raise"):
            y = ops.masked_softmax(x, mask=mask)
            both.append([y.data, *gradients(y, [x], np.array([[[1.0, 2.0, 3.0]]] * 2))])
    np.testing.assert_allclose(*both, rtol=1e-6)
    assert {each.dtype for each in both[1]} == {np.dtype(np.float32)}


def beside_a_nan_what_is_forbidden_is_0():
    rows = [[1.0, np.nan, 2.0, 3.0], [1.0, np.nan, 2.0, 3.0]]
    x = Tensor(rows, requires_grad=True)
    mask = [[True, True, False, True], [True, False, False, True]]
    for way in (contextlib.nullcontext, unfused):
        with way():
            y = ops.masked_softmax(x, mask=mask)
            (g,) = gradients(y, [x], np.array([[1.0, 2.0, 3.0, 5.0]] * 2))
        for found in (y.data, g):
            np.testing.assert_array_equal(np.isnan(found), [[1, 1, 0, 1], [0, 0, 0, 0]])
            assert found[0, 2] == 0 and (found[1] != 0).tolist() == [True, False, False, True]


def what_arrives_where_it_is_forbidden_does_not_count():
    x, mask = Tensor([[1.0, 2.0, 3.0], [2.0, 1.0, 0.0]], requires_grad=True), [True, True, False]
    g = np.array([[1.0, 2.0, 0.0], [5.0, 3.0, 0.0]])
    (expected,) = gradients(ops.masked_softmax(x, mask=mask), [x], g)
    for strange in (np.nan, np.inf):
        g[0, 2] = strange
        (found,) = gradients(ops.masked_softmax(x, mask=mask), [x], g)
        np.testing.assert_array_equal(found, expected)
    most = np.finfo(float).max  # finite, but it overflows when the average is subtracted
    g[:] = -most, -most, most
    (found,) = gradients(ops.masked_softmax(x, mask=mask), [x], g)
    np.testing.assert_array_equal(found[:, 2], 0)


def it_is_flat(f, *places):
    """Return a law: the slope at these places is 0, whatever gradient arrives, 0 too."""

    def law():
        x = Tensor(places, requires_grad=True)
        for g in (3.0, 0.0):
            np.testing.assert_array_equal(gradients(f(x), [x], g + 0 * x.data)[0], 0 * x.data)

    return law


def empty_inputs_go_back_empty(f):
    def law():
        x = Tensor(np.zeros((0, 3)), requires_grad=True)
        y = f(x)
        (g,) = gradients(y, [x], np.ones(y.shape))
        assert g.shape == (0, 3)

    return law


def keeps_float32(f, *inputs):
    """Return a law: a VJP's own result is float32, before the engine makes it so."""

    def law():
        t = f(*[Tensor(x, dtype=np.float32, requires_grad=True) for x in inputs])
        g, vjps = np.ones(t.shape, np.float32), t.node.vjps
        if isinstance(vjps, tuple):
            found = [vjp(g, t.data) for vjp in vjps]
        else:
            found = vjps(g, t.data, (True,) * len(t.node.inputs))
        assert {share.dtype for share in found if share is not None} == {np.dtype(np.float32)}

    return law


def computes_only_what_is_needed(f, *inputs):
    def law():
        t = f(*[Tensor(x, requires_grad=True) for x in inputs])
        for needs in itertools.product([False, True], repeat=len(inputs)):
            found = t.node.vjps(np.ones(t.shape), t.data, needs)
            assert [share is not None for share in found] == list(needs)

    return law


def a_definition_takes_lists_keeps_float32_and_bears_an_impossible_class():
    logits = np.array([[0.5, -np.inf, 1.5], [1.0, 2.0, 3.0]], np.float32)
    x = Tensor(logits, requires_grad=True)
    expected = cross_entropy(x, [2, 0]).data
    with unfused():
        y = cross_entropy(x, [2, 0])
    assert y.dtype == np.float32
    np.testing.assert_allclose(y.data, expected, rtol=1e-6)
    (g,) = gradients(y, [x])
    assert np.isfinite(g).all()


def where_two_are_equal_the_slope_still_has_a_slope():
    x = Tensor([0.0, 1.0], requires_grad=True)
    (slope,) = gradients(np.logaddexp(x, 2 - x).sum(), [x], create_graph=True)
    expected = 1 / np.cosh(x.data - 1) ** 2  # of log(exp(x) + exp(2 - x)), also at x = 1
    np.testing.assert_allclose(gradients(slope.sum(), [x])[0], expected, rtol=1e-14)


def at_the_origin_there_is_no_direction():
    a, b = (Tensor([0.0, 0.0, 3.0], requires_grad=True) for _ in "ab")
    found = gradients(np.hypot(a, b), [a, b], np.array([2.0, 0.0, np.sqrt(2)]))
    np.testing.assert_allclose(found, [[0.0, 0.0, 1.0]] * 2)


def of_one(f, x=X):
    return [(f, x)]


def of_two(f, a=S, b=P):
    return [(f, a, b), (f, a, ROW), (f, ROW[:, None], b), (f, LONE, b[:1]), (f, a, LONE)]


CURVES = {  # of one input, and where it is checked
    **dict.fromkeys((np.arctan, np.arcsinh, np.cbrt, ops.cos, ops.exp, ops.expm1, ops.negative), X),
    **dict.fromkeys((ops.positive, ops.sigmoid, ops.sin, ops.tanh), X),
    **dict.fromkeys((np.arccos, np.arcsin, np.arctanh), INSIDE),
    **dict.fromkeys((ops.log, ops.log1p, ops.sqrt), S),
}
CASES = {
    **{f.__name__: of_one(f, x) for f, x in CURVES.items()},
    **{
        f.__name__: of_two(f) for f in (ops.add, ops.divide, ops.multiply, ops.subtract, np.arctan2)
    },
    "abs": [(ops.abs, X), it_is_flat(ops.abs, 0.0)],
    "arccosh": of_one(np.arccosh, S + 1),
    "astype": [(lambda x: ops.astype(x, np.float64), X)],
    "broadcast_to": [
        (lambda x: ops.broadcast_to(x, (3, 3)), X),
        (lambda x: ops.broadcast_to(x, (2, 3, 3)), ROW[:, None]),
    ],
    "concatenate": [
        (lambda a, b: ops.concatenate([a, b, a * b]), S, P),
        (lambda a, b: ops.concatenate([a, b], 1), S, P[:, :2]),
        (lambda a, b: ops.concatenate([a, b], -1), S, P),
    ],
    "cross_entropy": [
        (lambda x: cross_entropy(x, np.array([2, 0, 1])), X),
        (lambda x: cross_entropy(x * x, [2, 0, 1], ignore_index=0, label_smoothing=0.25), X),
        (lambda x: cross_entropy(x, np.array([[2, 0, 1], [1, 1, 0], [0, 2, 2]])), BOX),
        (lambda x: cross_entropy(x, [2, 0, 1], reduction="sum"), X),
        (lambda x: cross_entropy(x, [[2, 0, 1]] * 3, ignore_index=0, reduction="none"), BOX),
        (lambda x: cross_entropy(x, [[0.5, 0.25, 0.25]] * 3, label_smoothing=0.25), X),
        (lambda x: cross_entropy(x, [2, 0, 1], class_weights=[0.5, 2, 3], ignore_index=1), X),
        keeps_float32(lambda x: cross_entropy(x, np.array([2, 0, 1])), X),
        a_definition_takes_lists_keeps_float32_and_bears_an_impossible_class,
    ],
    "cumsum": [
        (ops.cumsum, X),
        *((functools.partial(ops.cumsum, axis=axis), BOX) for axis in (0, 1, -1)),
    ],
    "einsum": [
        (lambda a, b: ops.einsum("ij,jk->ik", a, b), S, P),
        (lambda a, b: ops.einsum("ij,jk->ki", a, b), S, P[:, :2]),
        (lambda a: ops.einsum("ij->i", a), S),
        (lambda a, b: ops.einsum("...i,...i", a, b), S[:1], P),
        (lambda a, b, c: ops.einsum("ij,jk,k->i", a, b, c), S, P, ROW),
    ],
    "erf": [*of_one(ops.erf), (ops.erf, LONE)],
    "gelu_tanh": [
        (ops.gelu_tanh, X),
        (ops.gelu_tanh, LONE),
        saturated_it_is_the_identity_or_0,
        in_many_parts_it_is_what_it_is_in_one,
    ],
    "getitem": [
        (lambda x: x[[2, 0, 2]], X),
        (lambda x: x[1], X),
        (lambda x: x[:, ::-1], X),
        (lambda x: x[MASK], X),
    ],
    "hypot": [*of_two(np.hypot), at_the_origin_there_is_no_direction],
    "inv": [(np.linalg.inv, REGULAR[0]), (np.linalg.inv, REGULAR)],
    "layer_norm": [
        (layer_norm, X, ROW, ROW[::-1].copy()),
        (layer_norm, BOX, S, P),
        (layer_norm, BOX[:, :2], ROW, ROW),
        (lambda x, gain: layer_norm(x, gain, gain, 0.5), S, P),
        computes_only_what_is_needed(layer_norm, X, ROW, ROW),
    ],
    "linear": [
        (ops.linear, X, P, ROW),
        (ops.linear, BOX, P, ROW),
        (ops.linear, ROW, P, ROW),
        keeps_float32(ops.linear, X, P, ROW),
    ],
    "log_softmax": [
        *((lambda x, axis=axis: ops.log_softmax(x, axis), X) for axis in (0, 1)),
        (lambda x: ops.log_softmax(x, None), X),
    ],
    "logaddexp": [
        *of_two(ops.logaddexp),
        nothing_comes_back_from_an_empty_sum(lambda x: ops.logaddexp(x, x / 2)),
        where_one_is_far_larger_it_gets_all,
        two_that_are_equal_get_the_same,
        where_two_are_equal_the_slope_still_has_a_slope,
    ],
    "logsumexp": [
        *((lambda x, axis=axis: ops.logsumexp(x, axis), X) for axis in (0, 1, None)),
        (lambda x: ops.logsumexp(x, 1, keepdims=True), X),
        (ops.logsumexp, LONE),
        nothing_comes_back_from_an_empty_sum(lambda x: ops.logsumexp(x, 1)),
    ],
    "masked_softmax": [
        (lambda x: ops.masked_softmax(x, mask=MASK), X),
        (lambda x: ops.masked_softmax(x, mask=np.eye(3, dtype=bool)[:, ::-1] | MASK), BOX),
        (lambda x: ops.masked_softmax(x, mask=np.array([True, False, True])), X),
        (lambda x: ops.masked_softmax(x, mask=np.zeros((3, 1), bool)), X),
        beside_a_nan_what_is_forbidden_is_0,
        what_arrives_where_it_is_forbidden_does_not_count,
        keeps_float32(lambda x: ops.masked_softmax(x, mask=MASK), X),
        its_definition_too_has_rows_without_a_key,
    ],
    "matmul": [
        (lambda a, b: a @ b, S, P),
        (lambda a, b: a @ b, BOX, BOX[::-1]),
        (lambda a, b: a @ b, S[:2], P[:, :2]),
    ],
    "rows_matmul": [  # a stack times one matrix
        (lambda a, b: a @ b, BOX, P),
        (lambda a, b: a @ b, BOX[:2, :, :2], P[:2]),
    ],
    **{
        name: [
            *((lambda x, f=f, axis=axis: f(x, axis), X) for axis in (0, 1, None)),
            (lambda x, f=f: f(x, (0, 1), keepdims=True), X),
            (f, LONE),
            ties_are_shared(f, sign),
            a_nan_is_the_extremum(f),
            keeps_float32(lambda x, f=f: f(x, 1), X),
        ]
        for name, f, sign in (
            ("max", lambda *args, **options: ops.max(*args, **options), 1),
            ("min", lambda *args, **options: ops.min(*args, **options), -1),
        )
    },
    "maximum": [*of_two(ops.maximum), a_tie_of_two_is_halved(lambda a, b: ops.maximum(a, b))],
    "minimum": [*of_two(ops.minimum), a_tie_of_two_is_halved(lambda a, b: ops.minimum(a, b))],
    "mean": [
        *((lambda x, axis=axis: ops.mean(x, axis), X) for axis in (0, 1, None)),
        (lambda x: ops.mean(x, (0, 1), keepdims=True), X),
        (ops.mean, LONE),
        empty_inputs_go_back_empty(lambda x: ops.mean(x, 1)),
    ],
    "power": [
        *of_two(ops.power),
        (lambda x: x**3, X),
        (lambda x: x**-2, X),
        (ops.power, S, np.array([0.0, 2.0, 0.0])),
        powers_of_zero_are_smooth,
        powers_at_the_edges_have_their_limits,
    ],
    "reshape": [(lambda x: ops.reshape(x, (9,)), X), (lambda x: ops.reshape(x, (3, 9)), BOX)],
    "rms_norm": [
        (ops.rms_norm, X, ROW),
        (ops.rms_norm, BOX, S),
        (ops.rms_norm, BOX[:, :2], ROW),
        (lambda x, gain: ops.rms_norm(x, gain, 0.5), S, P),
        computes_only_what_is_needed(ops.rms_norm, X, ROW),
    ],
    "rotate_pairs": [
        (lambda x, p=pairs: ops.rotate_pairs(x, S[:, :2], P[:, :2], p), PAIRED)
        for pairs in ("neighbours", "halves")
    ],
    "scatter_add": [
        (lambda x: ops.scatter_add(x, (5, 3), [2, 0, 2]), X),
        (lambda x: ops.scatter_add(x, (5, 3), slice(3)), X),
    ],
    "sign": [(ops.sign, X), it_is_flat(ops.sign, -2.0, 0.0, 2.0)],
    "softmax": [
        *((lambda x, axis=axis: ops.softmax(x, axis), X) for axis in (0, 1)),
        (lambda x: ops.softmax(x, None), X),
    ],
    "solve": [
        (np.linalg.solve, REGULAR[0], P),
        (np.linalg.solve, REGULAR[0], ROW),
        (np.linalg.solve, REGULAR, P[:, :2]),
    ],
    "sum": [
        *((lambda x, axis=axis: ops.sum(x, axis), X) for axis in (0, 1, None)),
        (lambda x: ops.sum(x, (0, 1), keepdims=True), X),
        (lambda x: ops.sum(x, (-1, 0)), BOX),
        *((lambda x, axis=axis: ops.sum(x, axis), LONE) for axis in (None, -1)),
    ],
    "swapaxes": [
        (lambda x: ops.swapaxes(x, 0, 1), X),
        (lambda x: ops.swapaxes(x, 0, 2), BOX),
        (lambda x: ops.swapaxes(x, 0, -1), BOX[:2]),
    ],
    "transpose": [
        (ops.transpose, X),
        (lambda x: ops.transpose(x, (1, 2, 0)), BOX),
        (lambda x: ops.transpose(x, (-1, 0, 1)), BOX[:2]),
    ],
    "where": [
        (lambda a, b: ops.where(MASK, a, b), S, P),
        (lambda a, b: ops.where(MASK, a, b), ROW, LONE),
    ],
}


# No error here explains itself, which would take most of the time. (What an error says is tested in
# test_checking.py and in test_diagnoses.py.)
IN_SHORT = mock.patch.object(explaining, "explained", lambda found, *_: found)


@IN_SHORT  # (outside of the try: a patch that no longer fits is an error, not a mutant noticed)
def notices(case):
    """Return True if a check complains: gradcheck raises or does not agree, or a law raises."""
    try:
        if not isinstance(case, tuple):
            case()
            return False
        with np.errstate(all="ignore"):
            return not gradcheck(*case)
    except Exception:  # whatever a broken rule leads to
        return True


def noticed(cases):
    """Return True if a case complains. It is moved to the front: it often sees the next mutant."""
    for i, case in enumerate(cases):
        if notices(case):
            cases.insert(0, cases.pop(i))
            return True
    return False


# ---------------------------------------------------------------- how a rule is exchanged

RULES = [
    "elementwise",
    "classification",
    "error_function",
    "shape",
    "indexing",
    "reduce",
    "linalg",
    "softmaxes",
    "fused",
    "products",
    "inverses",
]
MODULES = [importlib.import_module(f"minigrad.ops.{name}") for name in RULES]
OPERATIONS = {
    name.lstrip("_"): f
    for module in MODULES
    for name, f in vars(module).items()
    if "rule" in getattr(getattr(f, "__code__", None), "co_freevars", ())
    and f.__module__ == module.__name__
}


@contextlib.contextmanager
def exchanged(rules):
    """Give the operations named other rules, inside the block."""
    cells = {
        name: OPERATIONS[name].__closure__[OPERATIONS[name].__code__.co_freevars.index("rule")]
        for name in rules
    }
    before = {name: cell.cell_contents for name, cell in cells.items()}
    try:
        for name, cell in cells.items():
            cell.cell_contents = rules[name]
        yield
    finally:
        for name, cell in cells.items():
            cell.cell_contents = before[name]


def survives(rules, cases):
    with exchanged(rules):
        return not noticed(cases)


def test_every_rule_of_chapter_3_is_broken_here():
    assert set(OPERATIONS) == set(CASES)
    assert len(OPERATIONS) > 40


def test_nothing_is_noticed_where_nothing_is_broken():
    for name, operation in OPERATIONS.items():
        same = functools.wraps(operation.__wrapped__)(
            lambda *xs, rule=operation.__wrapped__, **options: rule(*xs, **options)
        )
        assert survives({name: same}, CASES[name]), name


# ---------------------------------------------------------------- broken from outside


def detached(x):
    return x.detach() if isinstance(x, Tensor) else x


def every_other_dropped(share):
    keep = np.ones(share.shape)
    keep.flat[::2] = 0.0
    return share * keep


AFTER = {  # what is done to what a VJP gives
    "times 1.0005": lambda share: share * 1.0005,
    "negated": lambda share: -share,
    "dropped": lambda share: share * 0.0,
    "every other element dropped": every_other_dropped,
    "transposed": lambda share: share.T,
    "cut out of the record": detached,
}


def broken_after(rule, position, change):
    """Return the rule with a changed result of its VJP at this position."""

    @functools.wraps(rule)
    def broken(*xs, **options):
        value, *vjps = rule(*xs, **options)
        if hasattr(rule, "definition"):
            (backward,) = vjps

            def all_of_them(g, y, needs):
                shares = list(backward(g, y, needs))
                shares[position] = change(shares[position])
                return tuple(shares)

            return value, all_of_them
        vjp = vjps[position]
        vjps[position] = lambda g, y: change(vjp(g, y))
        return (value, *vjps)

    return broken


def broken_before(rule, which):
    """Return the rule with the record of g, of y, or of one of its inputs cut."""

    @functools.wraps(rule)
    def broken(*xs, **options):
        if isinstance(which, int):
            xs = [detached(x) if i == which else x for i, x in enumerate(xs)]
        value, *vjps = rule(*xs, **options)
        if which == "g":
            return value, *[vjp and (lambda g, y, vjp=vjp: vjp(detached(g), y)) for vjp in vjps]
        if which == "y":
            return value, *[vjp and (lambda g, y, vjp=vjp: vjp(g, detached(y))) for vjp in vjps]
        return value, *vjps

    return broken


POSITIONS = {"where": [1, 2], "concatenate": [0, 1], "einsum": [0, 1], "cross_entropy": [0]}


def positions(name):
    """Return the positions of an operation's inputs that have a VJP."""
    rule = OPERATIONS[name].__wrapped__
    kinds = [p.kind for p in inspect.signature(rule).parameters.values()]
    return POSITIONS.get(name, range(kinds.count(inspect.Parameter.POSITIONAL_ONLY)))


def holds_a_tensor(vjps):
    """Return True if a VJP, or its closure, holds a Tensor: only then can a record be cut."""
    stack, met = list(vjps), set()
    while stack:
        x = stack.pop()
        if isinstance(x, Tensor):
            return True
        if id(x) not in met:
            met.add(id(x))
            if isinstance(x, tuple | list):
                stack.extend(x)
            elif isinstance(x, functools.partial):
                stack.extend((x.func, *x.args))
            else:
                stack.extend(cell.cell_contents for cell in getattr(x, "__closure__", None) or ())
    return False


class Untouchable:
    """A stand-in for a y that a VJP has no use for."""


def looks_at(name, which):
    """Return True if a VJP of the operation uses y, or input number `which`, at all."""
    f, *inputs = next(case for case in CASES[name] if isinstance(case, tuple))
    node = f(*[Tensor(x, requires_grad=True) for x in inputs]).node
    if which == "y":
        g = np.ones(f(*inputs).shape)
        try:
            [vjp(g, Untouchable()) for vjp in node.vjps if vjp]
        except Exception:  # whatever comes of touching it
            return True
        return False
    arrays = [x.data if isinstance(x, Tensor) else x for x in node.inputs]
    arrays[which] = Tensor(arrays[which])
    return holds_a_tensor(node.rule(*arrays, **node.options)[1:])


COMPARED = "it is only compared with: where the answer flips there is no derivative"
MEASURED = "only its shape is looked at"
NO_MISTAKE_OUTSIDE = {
    "linear: gradient 2 transposed": "a vector has no transpose",
    **{f"sign: gradient 0 {how}": "a gradient that is 0 stays 0" for how in AFTER},
    "sign: the record of g cut": "a gradient that is 0 depends on no g",
    "abs: the record of 0 cut": "its sign is flat",
    "maximum: the record of 0 cut": COMPARED,
    "maximum: the record of 1 cut": COMPARED,
    "minimum: the record of 0 cut": COMPARED,
    "minimum: the record of 1 cut": COMPARED,
    "max: the record of 0 cut": COMPARED,
    "max: the record of y cut": COMPARED,
    "min: the record of 0 cut": COMPARED,
    "min: the record of y cut": COMPARED,
    "mean: the record of y cut": MEASURED,
    "cumsum: the record of y cut": MEASURED,
}


def no_mistakes(reasons, name):
    return {key for key in reasons if key.startswith(f"{name}:")}


def surviving_rules(_, name):
    """Return the broken rules of an operation that no case notices."""
    rule = OPERATIONS[name].__wrapped__
    is_fused = hasattr(rule, "definition")  # and then its arrays have no record to be cut
    broken = {
        f"{name}: gradient {position} {how}": broken_after(rule, position, change)
        for position in positions(name)
        for how, change in AFTER.items()
        if not (is_fused and change is detached)
    }
    if not is_fused:
        broken |= {
            f"{name}: the record of {which} cut": broken_before(rule, which)
            for which in ("g", "y", *positions(name))
            if which == "g" or looks_at(name, which)
        }
    cases = list(CASES[name])
    return {key for key, other in broken.items() if survives({name: other}, cases)}


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_vjp_that_gives_something_else_or_cuts_the_record_is_noticed(name, run_once):
    _, survivors = run_once(surviving_rules, name)
    assert survivors == no_mistakes(NO_MISTAKE_OUTSIDE, name)


def test_every_reason_is_of_something_that_is_tried():
    tried = {f"{n}: gradient {i} {how}" for n in CASES for i in positions(n) for how in AFTER}
    tried |= {f"{n}: the record of {w} cut" for n in CASES for w in ("g", "y", *positions(n))}
    assert set(NO_MISTAKE_OUTSIDE) <= tried


FUSED = [name for name, f in OPERATIONS.items() if hasattr(f.__wrapped__, "definition")]
OTHER_MEANINGS = {
    "times 1.0005": lambda y: y * 1.0005,
    "negated": lambda y: -y,
    "cut": lambda y: y.detach(),
    "half of it cut": lambda y: (y + y.detach()) / 2,
}


@pytest.mark.parametrize("change", OTHER_MEANINGS.values(), ids=OTHER_MEANINGS)
@pytest.mark.parametrize("name", FUSED)
def test_a_definition_that_means_something_else_is_noticed(name, change):
    rule = OPERATIONS[name].__wrapped__
    other = functools.wraps(rule)(lambda *xs, **options: rule(*xs, **options))
    other.definition = lambda *xs, **options: change(rule.definition(*xs, **options))
    assert not survives({name: other}, CASES[name])


@pytest.mark.parametrize("name", FUSED)
def test_a_fused_rule_that_has_another_value_and_the_right_gradients_is_noticed(name):
    rule = OPERATIONS[name].__wrapped__

    def moved(*xs, **options):
        y, backward = rule(*xs, **options)
        return y + 1e-6, lambda g, _, needs: backward(g, y, needs)

    gradient_checks = [case for case in CASES[name] if isinstance(case, tuple)]
    assert not survives({name: functools.wraps(rule)(moved)}, gradient_checks)


# ---------------------------------------------------------------- broken from inside

PAIRS = [(ast.Add, ast.Sub), (ast.Mult, ast.Div), (ast.Eq, ast.NotEq), (ast.And, ast.Or)]
PAIRS += [(ast.Gt, ast.GtE), (ast.Lt, ast.LtE)]
SWAPS = {ast.Pow: ast.Mult, ast.MatMult: ast.Mult, **dict(PAIRS), **{b: a for a, b in PAIRS}}
OTHER_NAMES = {"sin": "cos", "cos": "sin", "exp": "expm1", "log": "log1p", "sign": "abs"}


def alternatives(node):
    """Yield the ways to get this expression wrong: functions from a copy to its replacement."""
    match node:
        case ast.BinOp():
            if type(node.op) in SWAPS:
                yield lambda n: ast.BinOp(n.left, SWAPS[type(n.op)](), n.right)
            yield lambda n: n.left
            yield lambda n: n.right
            if not isinstance(node.op, ast.Add | ast.Mult):
                yield lambda n: ast.BinOp(n.right, n.op, n.left)
        case ast.UnaryOp():
            yield lambda n: n.operand
        case ast.Compare() if type(node.ops[0]) in SWAPS:
            yield lambda n: ast.Compare(n.left, [SWAPS[type(n.ops[0])]()], n.comparators)
        case ast.BoolOp():
            yield lambda n: ast.BoolOp(SWAPS[type(n.op)](), n.values)
            yield lambda n: n.values[0]
            yield lambda n: n.values[1]
        case ast.IfExp():
            yield lambda n: n.body
            yield lambda n: n.orelse
        case ast.Constant(value=bool()):
            yield lambda n: ast.Constant(not n.value)
        case ast.Constant(value=int() | float()):
            yield lambda n: ast.Constant(n.value + 1)
        case ast.Attribute(attr="mT" | "T"):
            yield lambda n: n.value
        case ast.Subscript():
            yield lambda n: n.value
        case ast.Call():
            for k in range(len(node.keywords)):
                yield lambda n, k=k: ast.Call(n.func, n.args, n.keywords[:k] + n.keywords[k + 1 :])
            if isinstance(node.func, ast.Attribute) and not _is_module(node.func.value):
                yield lambda n: n.func.value
            elif node.args:
                yield lambda n: n.args[-1 if len(n.args) == 1 else 0]
            for k in range(len(node.args) - 1):
                yield lambda n, k=k: ast.Call(
                    n.func, [*n.args[:k], n.args[k + 1], n.args[k], *n.args[k + 2 :]], n.keywords
                )
        case ast.Name(id=name) if name in OTHER_NAMES:
            yield lambda n: ast.Name(OTHER_NAMES[n.id], ast.Load())
    if isinstance(node, ast.Attribute) and node.attr in OTHER_NAMES and _is_module(node.value):
        yield lambda n: ast.Attribute(n.value, OTHER_NAMES[n.attr], ast.Load())


def _is_module(node):
    return isinstance(node, ast.Name) and node.id in ("np", "math")


HELPERS = {"part", "kept_shape"}  # functions that only VJPs call
PREPARED = {"back", "slope", "ends", "others", "flat", "phi"}  # names for what only VJPs use
DEFINITIONS = {OPERATIONS[name].__wrapped__.definition.__name__ for name in FUSED}


def ways_back(tree):
    """Yield the parts of a statement that go back: VJPs, helpers, and fused rules' definitions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Lambda | ast.FunctionDef):
            names = [a.arg for a in node.args.args]
            if {"g", "y"} <= set(names) or getattr(node, "name", "") in HELPERS | DEFINITIONS:
                yield from node.body if isinstance(node.body, list) else [node.body]
        elif isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") in PREPARED:
            yield node.value


def mutants(statement):
    """Yield each single change in what goes back: (the change in words, the changed statement)."""
    nodes = list(ast.walk(statement))
    numbers = {id(node): i for i, node in enumerate(nodes)}
    inside = {numbers[id(n)] for part in ways_back(statement) for n in ast.walk(part)}
    for i in sorted(inside):
        for alternative in alternatives(nodes[i]):
            changed = copy.deepcopy(statement)
            copies = list(ast.walk(changed))
            old = copies[i]
            around = old if not isinstance(old, ast.Constant) else _parent(copies, old)
            before = ast.unparse(around)
            new = ast.copy_location(alternative(old), old)
            for parent in copies:
                for field, value in ast.iter_fields(parent):
                    if value is old:
                        setattr(parent, field, new)
                    elif isinstance(value, list):
                        setattr(parent, field, [new if v is old else v for v in value])
            ast.fix_missing_locations(changed)
            after = ast.unparse(new if around is old else around)
            if before != after:
                # (Python 3.12 and later write other quotes around an f-string that has some in it.)
                yield f"{before} → {after}".replace('"', "'"), changed


def _parent(nodes, child):
    return next(n for n in nodes if any(c is child for c in ast.iter_child_nodes(n)))


def plain(f):
    """Return the function that stands in the text: of an operation, its rule."""
    return getattr(f, "__wrapped__", f)


def made_anew(module, statement):
    """Return the function that a changed statement would have defined."""
    space = dict(vars(module))
    exec(compile(ast.Module([statement], []), module.__file__, "exec"), space)
    return plain(space[statement.name])


@contextlib.contextmanager
def rewritten(function, other):
    """Give a function the code of another one, inside the block, for all who know it."""
    before = function.__code__
    function.__code__ = other.__code__
    try:
        yield
    finally:
        function.__code__ = before


def names_in(code):
    """Return all names that a function's code, and the functions in it, look up."""
    inner = [c for c in code.co_consts if isinstance(c, types.CodeType)]
    return set(code.co_names).union(*map(names_in, inner))


def users(function):
    """Yield the operations whose rule is this function, calls it, or has it as its definition."""
    for name, operation in OPERATIONS.items():
        rule = operation.__wrapped__
        is_it = function in (rule, getattr(rule, "definition", None))
        if is_it or function.__name__ in names_in(rule.__code__):
            yield name


STATEMENTS = {
    statement.name: (module, statement)
    for module in MODULES
    for statement in ast.parse(inspect.getsource(module)).body
    if isinstance(statement, ast.FunctionDef) and next(ways_back(statement), None) is not None
}

UNUSED = "what stands there is not used: the outer `where`, or a factor 0, has the last word"
SPEED = "NumPy may multiply in another order, which is faster or slower and nothing else"
SURE = "the lengths are equal: einsum has accepted these letters for these shapes"
NO_MISTAKE_INSIDE = {
    "linear: _rows(g) → g": "the same product, of each member of the batch by itself",
    "power: (a == 0) & (b >= 0) → (b >= 0) & (a == 0)": "& commutes",
    "logaddexp: (x == other) & np.isinf(x) → np.isinf(x) & (x == other)": "& commutes",
    "power: (a == 0) & (b == 0) → (b == 0) & (a == 0)": "& commutes",
    "hypot: np.equal(y, 0) → np.equal(0, y)": "= commutes",
    "hypot: np.where(np.equal(y, 0), 1, y) → np.where(np.equal(y, 0), 2, y)": (
        "0 divided by either is 0"
    ),
    "_gelu_tanh: np.clip(x, -_FAR, _FAR) → np.clip(-_FAR, x, _FAR)": "max has no order",
    "gelu_tanh: min(_AT_ONCE, flat.size) → min(flat.size, _AT_ONCE)": "min has no order",
    "gelu_tanh: min(_AT_ONCE, flat.size) → _AT_ONCE": "more room than is used",
    "gelu_tanh: np.multiply(y[part], r_part, out=f) → np.multiply(r_part, y[part], out=f)": (
        "a product commutes"
    ),
    "gelu_tanh: np.multiply(f, x_part, out=space[:len(f)]) → "
    "np.multiply(x_part, f, out=space[:len(f)])": "a product commutes",
    "gelu_tanh: np.multiply(f, x_part, out=space[:len(f)]) → np.multiply(f, x_part)": SPEED,
    "_masked_softmax: np.vecdot(g, y) → np.vecdot(y, g)": "a product commutes",
    "layer_norm: np.vecdot(h, n) → np.vecdot(n, h)": "a product commutes",
    "rms_norm: np.vecdot(h, n) → np.vecdot(n, h)": "a product commutes",
    "_rms_norm: floats(x) → x": "the same for floats; test_integers.py has the others",
    "gelu_tanh: floats(x) → x": "the same for floats; test_integers.py has the others",
    "_rms_norm: float(eps) → eps": "the same for Python's; test_functional.py has NumPy's",
    "_masked_softmax: np.where(mask, g, 0) → np.where(mask, g, 1)": UNUSED,
    "_composed_masked_softmax: np.where(nowhere, 0.0, -np.inf) → "
    "np.where(nowhere, 1.0, -np.inf)": UNUSED,
    "power: floats(np.where((a == 0) & (b >= 0), 1, a)) → np.where((a == 0) & (b >= 0), 1, a)": (
        "the same for floats; test_integers.py has the others"
    ),
    "_shared_by_ties: (x == y.reshape(shape)) | (x != x) → (x != x) | (x == y.reshape(shape))": (
        "| commutes"
    ),
    "power: np.where((a == 0) & (b == 0), 1, b - 1) → np.where((a == 0) & (b == 0), 2, b - 1)": (
        "0 · 0¹ and 0 · 0² are 0, and so are the derivatives of both"
    ),
    "swapaxes: g.swapaxes(axis1, axis2) → g.swapaxes(axis2, axis1)": "an exchange has no order",
    "_rows_matmul: g.reshape(n, m) → g": "the same, of many small products",
    "mean: size or 1 → size or 2": "an empty x has an empty gradient, whatever n is",
    "_einsum: strict=True → strict=False": SURE,
    "_einsum: zip(inputs[k], shapes[k], strict=True) → zip(inputs[k], shapes[k])": SURE,
    "logsumexp: np.where(y == -np.inf, 0, y) → np.where(y == -np.inf, 1, y)": (
        "every x there is -∞, and exp(-∞ - 1) is exp(-∞ - 0)"
    ),
    "_composed_cross_entropy: np.where(counts, logits, 0) → np.where(counts, logits, 1)": UNUSED,
    "_composed_cross_entropy: np.where(truth == 0, 0, log_p) → "
    "np.where(truth == 0, 1, log_p)": UNUSED,
}


def surviving_changes(_, name):
    """Return the changes of a statement that no case notices, and all that were tried."""
    module, statement = STATEMENTS[name]
    function = plain(getattr(module, name))
    cases = [case for user in users(function) for case in CASES[user]]
    assert cases
    survivors, tried = set(), []
    for words, changed in mutants(statement):
        tried.append(f"{name}: {words}")
        with rewritten(function, made_anew(module, changed)):
            if not noticed(cases):
                survivors.add(tried[-1])
    return survivors, tried


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_derivative_whose_text_is_changed_is_noticed(name, run_once):
    _, (survivors, _) = run_once(surviving_changes, name)
    assert survivors == no_mistakes(NO_MISTAKE_INSIDE, name)


def test_there_are_more_than_five_hundred_such_changes_and_every_reason_is_of_one(run_once):
    tried = [words for name in STATEMENTS for words in run_once(surviving_changes, name)[1][1]]
    assert len(tried) > 500 and set(NO_MISTAKE_INSIDE) <= set(tried)


# ---------------------------------------------------------------- the engine, broken

ADDED_UP = [
    (lambda a, b: a * b, P, ROW),
    (lambda a, b: a * b, P, ROW[:, None]),
    (lambda a, b: a * b, BOX, ROW[:, None]),
    (lambda a, b: a * b, BOX, LONE),
    (lambda a: (a * a).sum() * a, P),
    (lambda a, b: (a @ b + a) / (b + a), S, P),
    (lambda a: (h := a * a) * np.exp(h * a) + h, P),  # a result, used at three depths
]
# What is lost or mixed up, the function of minigrad.engine.replay, and the change of its text.
ENGINE = """
the first of the added axes instead of their sum: _fitted
    g.sum(axis=tuple(range(extra))) → g[(0,) * extra]
the mean of the added axes: _fitted
    g.sum(axis=tuple(range(extra))) → g.mean(axis=tuple(range(extra)))
the first of the stretched axis instead of its sum: _fitted
    g.sum(axis=tuple(stretched), keepdims=True)
    → g[tuple(slice(0, 1) if j - g.ndim in stretched else slice(None) for j in range(g.ndim))]
the mean of the stretched axis: _fitted
    g.sum(axis=tuple(stretched), keepdims=True) → g.mean(axis=tuple(stretched), keepdims=True)
the added axes not summed: _fitted
    if extra: → if False:
the stretched axes not summed: _fitted
    if stretched: → if False:
the last contribution instead of all: replay
    gradients[x] + contribution → contribution
the first contribution instead of all: replay
    gradients[x] + contribution → gradients[x]
the difference of the contributions: replay
    gradients[x] + contribution → gradients[x] - contribution
contributions added in place: replay
    gradients[x] = gradients[x] + contribution → gradients[x] += contribution
each input with the first one's vjp: contributions
    vjp(g, y) → vjps[0](g, y)
each input with the last one's vjp: contributions
    vjp(g, y) → vjps[-1](g, y)
the gradient in the place of the output: contributions
    vjp(g, y) → vjp(g, g)
the output's record cut: contributions
    y, vjps = t, _called_again → y, vjps = t.detach(), _called_again
the old vjps instead of recorded ones: contributions
    y, vjps = t, _called_again(t, inputs) → pass
no record of the replay: replay
    recording() if create_graph else nullcontext() → no_grad() if create_graph else nullcontext()
the oldest first: replay
    (-x._time, x) → (x._time, x)
in the order of arrival: replay
    (-x._time, x) → (len(gradients), x)
passed on at each contribution: replay
    if x in gradients: → if x in gradients and x.node is None:
what leads to the wanted ones, the newest first: _leading_to
    sorted(found, key=attrgetter("_time")) → sorted(found, key=attrgetter("_time"), reverse=True)
a variable handed to the rule as an array: _called_again
    x if x._requires_grad else x._array → x._array
"""
MIXED_UP = re.findall(r"^(.+): (\w+)\n    (.+?)\s+→ (.+)$", ENGINE, re.MULTILINE)


def in_another_text(function, old, new):
    text = inspect.getsource(function)
    assert text.count(old) == 1, f"{function.__name__} has no single {old!r}: has it changed?"
    text = f"from __future__ import annotations\n{text.replace(old, new)}"
    space = {**vars(replay), "no_grad": no_grad}
    exec(compile(text, "", "exec"), space)
    return space[function.__name__]


@pytest.fixture(scope="module")
def nothing_is_noticed_before_and_after():
    assert not any(notices(case) for case in ADDED_UP)
    yield
    assert not any(notices(case) for case in ADDED_UP)


@pytest.mark.usefixtures("nothing_is_noticed_before_and_after")
@pytest.mark.parametrize(("what", "name", "old", "new"), MIXED_UP)
def test_an_engine_that_loses_or_mixes_up_a_contribution_is_noticed(what, name, old, new):
    function = getattr(replay, name)
    with rewritten(function, in_another_text(function, old, new)):
        assert any(notices(case) for case in ADDED_UP), what
