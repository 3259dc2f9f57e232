"""Chapter 6 · Functions: kinks, extremes, ties, losses, and what each function promises alone.

That every function is right in ordinary places, to the second order, is shown by the table of
coverage. Powers and roots at 0 are chapter 3.1's.
"""

import re

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor, gradients, ops
from tests import coverage_table
from tests.cases import CASES, apart, case

INF, NAN = np.inf, np.nan
ROWS = np.array([4, 0, 4])  # targets
random = np.random.default_rng(3)


def x(*shape):
    return random.standard_normal(shape)


def orders(f, *inputs):
    """Return f's value, ∂(Σ f)/∂x for each input, and the derivative of the sum of those."""
    xs = [Tensor(np.asarray(a, float), requires_grad=True) for a in inputs]
    y = f(*xs)
    first = gradients(y, xs, np.ones(y.shape), create_graph=True)
    total = sum(slope.sum() for slope in first)
    second = gradients(total, xs) if total.requires_grad else [np.zeros(t.shape) for t in xs]
    return y.data, [slope.data for slope in first], list(second)


def said(text, *letters):
    """Return the function of these letters that is written as an expression in minigrad's words."""
    names = {**vars(mg), "np": np, "INF": INF, "t": ROWS}
    return eval(f"lambda {', '.join(letters)}: {text}", names)


# ---------------------------------------------------------------- value


FAR_OUT = [  # of x, at, value, slope
    ("softplus(x)", [-INF, -800, 800], [0, 0, 800], [0, 0, 1]),
    ("softplus(x)", [INF], [INF], [1]),
    ("logaddexp(x, 0)", [-INF, -800, 800], [0, 0, 800], [0, 0, 1]),
    ("logaddexp(x, -INF)", [-INF, -800, 3], [-INF, -800, 3], [0, 1, 1]),
    ("logaddexp(x, 800)", [-INF, 3, INF], [800, 800, INF], [0, 0, 1]),
    ("sigmoid(x)", [-INF, -800, 800, INF], [0, 0, 1, 1], [0, 0, 0, 0]),
    ("relu(x)", [-INF, -800, 800, INF], [0, 0, 800, INF], [0, 0, 1, 1]),
    ("clip(x, -2, 3)", [-INF, -800, 800, INF], [-2, -2, 3, 3], [0, 0, 0, 0]),
    ("silu(x)", [-800, 800], [0, 800], [0, 1]),
    ("gelu(x)", [-800, 800], [0, 800], [0, 1]),
    ("gelu_tanh(x)", [-800, 800], [0, 800], [0, 1]),
    ("expm1(x)", [-INF, -800], [-1, -1], [0, 0]),
    ("np.arctan(x)", [-INF, INF], [-np.pi / 2, np.pi / 2], [0, 0]),
    ("tanh(x)", [-1000, 1000], [-1, 1], [0, 0]),
    ("erf(x)", [-INF, -800, 800, INF], [-1, -1, 1, 1], [0, 0, 0, 0]),
    ("binary_cross_entropy_with_logits(x, [0, 1])", [-800, 800], 0, [0, 0]),  # the right classes
    ("binary_cross_entropy_with_logits(x, [1, 0])", [-800, 800], 800, [-0.5, 0.5]),
    ("cross_entropy(x[None], [0])", [-800, 800], 1600, [-1, 1]),
    ("cross_entropy(x[None], [0])", [3, -INF], 0, [0, 0]),  # the other class cannot be
]


@pytest.mark.parametrize(("text", "at", "value", "slope"), FAR_OUT)
def test_far_out_the_value_and_the_slope_are_those_of_the_limit_and_nothing_warns(
    text, at, value, slope
):
    t, f = Tensor(np.asarray(at, float), requires_grad=True), said(text, "x")
    y = f(t)
    np.testing.assert_array_equal(y.data, value)
    np.testing.assert_array_equal(gradients(y, [t], np.ones(y.shape))[0], slope)
    if np.isfinite(at).all():
        assert np.isfinite(orders(f, at)[2]).all()


def test_a_tiny_argument_keeps_all_its_digits_and_has_slope_1():
    for f in (ops.expm1, ops.log1p, ops.sin, ops.tanh, np.arctan, mg.sinh):
        y, (first,), _ = orders(f, [-1e-20, 3e-20])
        np.testing.assert_array_equal(y, [-1e-20, 3e-20])
        np.testing.assert_array_equal(first, np.ones(2))


def test_a_variance_far_from_0_keeps_its_digits():
    y, (first,), _ = orders(mg.var, [1e8 + 1, 1e8 + 2, 1e8 + 3])
    assert y == 2 / 3
    np.testing.assert_array_equal(first, [-2 / 3, 0, 2 / 3])


CURVES = """relu softplus silu gelu gelu_tanh sigmoid tanh abs sign sinh square sqrt log1p expm1 erf
    np.arctan"""
BESIDE = "clip(x, 0.25, 3.0)|minimum(x, 1.0)|maximum(x, 1.0)|logaddexp(x, 1.0)"


@pytest.mark.filterwarnings("ignore:invalid value encountered in logaddexp")  # NumPy's own word
def test_a_nan_stays_a_nan_and_harms_nobody_beside_it():
    for text in (*(f"{f}(x)" for f in CURVES.split()), *BESIDE.split("|")):
        f = said(text, "x")
        y, (first,), _ = orders(f, [0.5, NAN, 5.0])
        alone, (slope,), _ = orders(f, [0.5, 5.0])
        np.testing.assert_array_equal(np.isnan(y), [False, True, False], text)
        np.testing.assert_array_equal(y[[0, 2]], alone, text)
        np.testing.assert_array_equal(first[[0, 2]], slope, text)


def test_a_reduction_of_a_nan_is_a_nan_and_leaves_the_other_rows_alone():
    rows = np.array([[1.0, NAN, 3.0], [2.0, 0.5, -1.5]])
    for f in (mg.prod, mg.min, ops.max, ops.sum, ops.mean, mg.var, mg.std, mg.logsumexp, mg.norm):
        y, alone = f(Tensor(rows), axis=1).data, f(Tensor(rows[1:]), axis=1).data
        assert np.isnan(y[0]) and y[1] == alone[0], f


def test_a_sort_is_stable_and_puts_nan_last():
    assert np.isnan(mg.sort([2.0, NAN, 1.0])[2])
    ties = Tensor([2.0, 1.0, 2.0, 1.0, 2.0], requires_grad=True)
    (shares,) = gradients(mg.sort(ties), [ties], np.array([3.0, 5.0, 7.0, 11.0, 13.0]))
    np.testing.assert_array_equal(shares, [7, 3, 11, 5, 13])


def test_dropout_keeps_the_mean_and_drops_the_share_it_was_asked_for():
    rng = np.random.default_rng(3)
    for p in (0.0, 0.1, 0.5, 0.9):
        y = mg.dropout(np.ones(100_000), p, rng=rng)
        dropped = (y == 0).mean()
        assert set(np.unique(y)) <= {0.0, 1 / (1 - p)}
        assert abs(dropped - p) < 5 * np.sqrt(p * (1 - p) / y.size) + 1e-12
        assert abs(y.mean() - 1) < 5 * np.sqrt(p / (1 - p) / y.size) + 1e-12


def test_dropout_draws_anew_at_each_call_and_repeats_under_one_seed():
    rng, again = np.random.default_rng(3), np.random.default_rng(3)
    first, second = (mg.dropout(np.ones(97), 0.5, rng=rng) for _ in "ab")
    assert (first != second).any()
    np.testing.assert_array_equal(first, mg.dropout(np.ones(97), 0.5, rng=again))


def test_one_hot_is_a_plain_array_of_the_dtype_that_was_asked_for():
    for indices in ([2, 0], np.array([2, 0]), Tensor([2, 0])):
        rows = mg.one_hot(indices, 3, dtype=np.float32)
        assert type(rows) is np.ndarray and rows.dtype == np.float32
        np.testing.assert_array_equal(rows, [[0, 0, 1], [1, 0, 0]])
    assert mg.one_hot(np.zeros((2, 3), int), 5).shape == (2, 3, 5)
    assert mg.one_hot([], 5).shape == (0, 5)


BY_NAME = """
np.add(x, 1.0, out=None) = x + 1.0
np.reshape(x, shape=(5, -1)) = x.reshape(5, 3)
np.clip(x, a_min=0, a_max=1) = clip(x, 0, 1)
np.clip(x, min=0, max=1) = clip(x, 0, 1)
np.clip(x, None, 1) = clip(x, a_max=1)
x.clip(0) = clip(x, a_min=0)
x.clip(min=0, max=1) = clip(x, 0, 1)
x.clip(0, 1) = minimum(maximum(x, 0), 1)
np.std(x, ddof=1, axis=0, keepdims=True) = std(x, 0, ddof=1, keepdims=True)
np.roll(x, shift=2, axis=1) = roll(x, 2, 1)
np.split(x, indices_or_sections=[1])[1] = split(x, [1])[1]
np.take(x, indices=[2], axis=1) = take(x, [2], 1)
"""


def test_options_are_understood_under_numpys_names():
    t = Tensor(x(3, 5), requires_grad=True)
    old = np.lib.NumpyVersion(np.__version__) < "2.1.0"  # some of these names are newer
    for row in BY_NAME.strip().splitlines():
        if old and row.startswith(("np.reshape(x, shape=", "np.clip(x, min=")):
            continue
        found, same = (said(side, "x")(t) for side in row.split(" = "))
        assert found.requires_grad, row
        np.testing.assert_array_equal(found.data, same.data, row)


# ---------------------------------------------------------------- derivative

KINKS = [  # of x, at, slope, curvature
    ("relu(x)", [0.0, -0.0], [0, 0], [0, 0]),
    ("abs(x)", [0.0, -0.0], [0, 0], [0, 0]),
    ("sign(x)", [0.0, -0.0], [0, 0], [0, 0]),
    ("clip(x, -1, 2)", [-1.0, 0.0, 2.0], [0.5, 1, 0.5], [0, 0, 0]),
    ("clip(x, 1, 1)", [0.0, 1.0, 2.0], [0, 0.25, 0], [0, 0, 0]),
    ("minimum(x, 2.0)", [1.0, 2.0, 3.0], [1, 0.5, 0], [0, 0, 0]),
    ("maximum(x, 0)", [-1.0, -0.0, 0.0, 1.0], [0, 0.5, 0.5, 1], [0, 0, 0, 0]),
    ("min(x)", [2.0, 1.0, 1.0], [0, 0.5, 0.5], [0, 0, 0]),
    ("square(x)", [0.0], [0], [2]),
    ("norm(x)", [0.0, 0.0, 0.0], [0, 0, 0], [0, 0, 0]),
    ("norm(x, axis=1)", [[0.0, 0.0], [3.0, 0.0]], [[0, 0], [1, 0]], None),
    ("var(x)", [2.0, 2.0, 2.0], [0, 0, 0], [0, 0, 0]),
    ("std(x)", [2.0, 2.0, 2.0], [0, 0, 0], [0, 0, 0]),
    ("std(x)", [2.0], [0], [0]),
    ("std(x, axis=1)", [[2.0, 2.0], [1.0, 3.0]], [[0, 0], [-0.5, 0.5]], None),
    ("prod(x)", [2.0, 0.0, 5.0], [0, 10, 0], [5, 7, 2]),
    ("prod(x)", [0.0, 0.0, 5.0], [0, 0, 0], [5, 5, 0]),
    ("prod(x)", [0.0, 0.0, 0.0], [0, 0, 0], [0, 0, 0]),
]


@pytest.mark.parametrize(("text", "at", "slope", "curvature"), KINKS)
def test_at_a_kink_the_slope_is_what_is_said_and_so_is_its_own_derivative(
    text, at, slope, curvature
):
    _, (first,), (second,) = orders(said(text, "x"), at)
    np.testing.assert_allclose(first, slope, rtol=1e-14, atol=1e-15)
    assert np.isfinite(second).all()
    if curvature is not None:
        np.testing.assert_allclose(second, curvature, rtol=1e-14, atol=1e-15)


def test_both_sides_of_a_minimum_share_a_tie_and_so_do_a_value_and_its_limit():
    _, (da, db), _ = orders(mg.minimum, [1.0, 2.0, 5.0], [1.0, 5.0, 2.0])
    np.testing.assert_array_equal([da, db], [[0.5, 1, 0], [0.5, 0, 1]])
    _, (dx, low, high), _ = orders(mg.clip, [1.0, 0.0, 3.0], [1.0, 1.0, 1.0], [2.0, 2.0, 2.0])
    np.testing.assert_array_equal([dx, low, high], [[0.5, 0, 0], [0.5, 1, 0], [0, 0, 1]])


def test_the_std_of_equal_numbers_has_no_gradient_even_if_their_mean_was_rounded():
    _, (first,), (second,) = orders(mg.std, [0.1] * 3)  # 0.1 + 0.1 + 0.1 is not 3 · 0.1
    np.testing.assert_allclose(first, 0, atol=1e-15)
    assert np.isfinite(second).all()


PADDED = np.array([[4, -100, 1], [-100, 2, 0]])


LOSSES = {
    "cross_entropy": mg.cross_entropy,
    "label_smoothing": lambda *a, **o: mg.cross_entropy(*a, **o, label_smoothing=0.1),
}


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
@pytest.mark.parametrize("padding", [0.0, NAN])
def test_an_ignored_target_counts_for_nothing_whatever_its_scores(loss, padding):
    counts = PADDED != -100
    scores = x(2, 3, 5)
    scores[~counts] = padding
    all_rows, rows = (Tensor(a, requires_grad=True) for a in (scores, scores[counts]))
    y, without = loss(all_rows, PADDED, ignore_index=-100), loss(rows, PADDED[counts])
    np.testing.assert_allclose(y.data, without.data, rtol=1e-14)
    ((g,), (other,)) = gradients(y, [all_rows]), gradients(without, [rows])
    np.testing.assert_allclose(g[counts], other, rtol=1e-13, atol=1e-16)
    assert not g[~counts].any()


def test_a_loss_is_prediction_minus_truth_over_how_many_count():
    logits, targets = Tensor(x(3, 5), requires_grad=True), [4, 0, 4]
    (g,) = gradients(mg.cross_entropy(logits, targets), [logits])
    p = ops.softmax(logits.data)
    np.testing.assert_allclose(g, (p - mg.one_hot(targets, 5)) / 3, rtol=1e-12, atol=1e-16)
    z, t = Tensor(x(7), requires_grad=True), random.uniform(0, 1, 7)
    (g,) = gradients(mg.binary_cross_entropy_with_logits(z, t), [z])
    np.testing.assert_allclose(g, (mg.sigmoid(z.data) - t) / 7, rtol=1e-12, atol=1e-16)


# ---------------------------------------------------------------- law

A, POSITIVE = x(3, 5), random.uniform(0.5, 2.0, (3, 5))
LETTERS = {
    "x": A,
    "y": x(3, 5),
    "m": x(5, 3),
    "v": x(5),
    "w": x(3),
    "p": POSITIVE,
    "d": apart(3, 5),  # positive; all distinct
}
LAWS = """
relu(x) - relu(-x) = +x
silu(x) - silu(-x) = +x
gelu(x) - gelu(-x) = +x
softplus(x) - softplus(-x) = +x
2 * sinh(x) = np.exp(x) - np.exp(-x)
sigmoid(x) = (1 + np.tanh(x / 2)) / 2
logaddexp(x, y) = logsumexp(stack([x, y]), axis=0)
minimum(x, y) + maximum(x, y) = x + y
clip(x, -0.5, 1.0) = x - relu(x - 1.0) + relu(-0.5 - x)
square(std(x, 1)) = var(x, 1)
var(x) = (x * x).mean() - x.mean() ** 2
square(norm(x, axis=0)) = (x * x).sum(axis=0)
prod(p, axis=1) = np.exp(np.log(p).sum(axis=1))
diagonal(x @ m).sum() = diagonal(m @ x).sum()
outer(v, w) = einsum("i,j->ij", v, w)
dot(x, m) = x @ m
tril(x, -1) + triu(x) = +x
flip(flip(x, 1), 1) = +x
roll(roll(x, (2, 1), (1, 0)), -1, 0) = roll(x, 2, 1)
moveaxis(moveaxis(x, 0, 1), 1, 0) = +x
squeeze(expand_dims(x, 1), 1) = +x
concatenate(split(x, [1, 4], 1), 1) = +x
tile(x, (2, 1)) = stack([x, x]).reshape(6, 5)
repeat(x, 2, 0) = tile(x.reshape(3, 1, 5), (1, 2, 1)).reshape(6, 5)
pad(x, ((1, 2), (0, 3))).sum() = x.sum()
sort(-d) = -flip(sort(d), -1)
sort(d) = take_along_axis(d, np.argsort(d))
take(x, [4, 0, 4], axis=1) = x @ one_hot([4, 0, 4], 5).T
embedding(x, [2, 0, 2]) = one_hot([2, 0, 2], 3) @ x
cross_entropy(x, t) = -log_softmax(x)[[0, 1, 2], t].mean()
cross_entropy(x, t, label_smoothing=0.1) = 0.9 * cross_entropy(x, t) - 0.1 * log_softmax(x).mean()
binary_cross_entropy_with_logits(w, [1, 0, 1]) = cross_entropy(stack([0 * w, w], 1), [1, 0, 1])
mse(x, y) = square(norm(x - y)) / 15
layer_norm(x, 1.0, 0.0, eps=0.0) * std(x, 1, keepdims=True) = x - x.mean(axis=1, keepdims=True)
square(layer_norm(x, 1.0, 0.0, eps=0.5)).mean(axis=1) = 1 - 0.5 / (square(std(x, 1)) + 0.5)
"""


@pytest.mark.parametrize("law", LAWS.strip().splitlines())
def test_two_ways_to_say_one_function_agree_in_value_and_at_both_orders(law):
    letters = sorted(LETTERS.keys() & set(re.findall(r"\w+", law)))
    one, other = (said(side, *letters) for side in law.split(" = "))
    inputs = [LETTERS[letter] for letter in letters]
    (y, *found), (z, *wanted) = orders(one, *inputs), orders(other, *inputs)
    np.testing.assert_allclose(y, z, rtol=1e-12, atol=1e-13)
    for slopes, others in zip(found, wanted, strict=True):
        for a, b in zip(slopes, others, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)


FLOAT64 = [  # NumPy's float64 numbers, where a user has them from np.sqrt, np.mean or a table
    case("clip", apart(3, 5, start=-1.9), np.float64(-0.8), np.float64(0.8)),
    case("minimum", POSITIVE, np.float64(0.7)),
    case("pad", A, pad_width=1, constant_values=np.float64(7)),
    case("dropout", A, p=np.float64(0.3)),
    case("layer_norm", A, x(5), x(5), eps=np.float64(0.1)),
    case("cross_entropy", A, ROWS, label_smoothing=np.float64(0.1)),
    case("var", A, axis=1, ddof=np.float64(1)),
    case("std", A, axis=1, ddof=np.int64(1)),
    case("outer", A, np.float64(2.0)),
    case("dot", A, np.float64(2.0)),
    case("tile", A, reps=np.int64(2)),
]


def test_float32_stays_float32_beside_numpys_float64_numbers():
    assert all(map(coverage_table.float32, FLOAT64))


def test_a_constant_tensor_gives_a_constant_tensor():
    for one in {c.name: c for c in CASES}.values():
        y = one.ours(*(Tensor(a) if isinstance(a, np.ndarray) else a for a in one.inputs))
        assert isinstance(y, Tensor) and not y.requires_grad, one


def test_split_gives_a_list_of_tensors_as_numpy_does():
    parts = np.split(Tensor(x(5, 3), requires_grad=True), [2, 3])
    assert type(parts) is list and [part.shape for part in parts] == [(2, 3), (1, 3), (2, 3)]
    assert all(part.requires_grad for part in parts)


# ---------------------------------------------------------------- refusal

Q = Tensor(x(2, 3), requires_grad=True, name="q")


PICKERS = {
    "cross_entropy": mg.cross_entropy,
    "embedding": lambda table, i: mg.embedding(table.mT, i),
    "one_hot": lambda table, i: mg.one_hot(i, 3),
}


@pytest.mark.parametrize("pick", PICKERS.values(), ids=PICKERS)
@pytest.mark.parametrize(
    ("indices", "error", "words"),
    [
        ([0, 3], ValueError, "3 is not between 0 and 2"),
        ([0, -1], ValueError, "-1 is not between 0 and 2"),
        ([0.0, 1.0], TypeError, "integers were asked for, but the dtype is float64"),
    ],
)
def test_an_index_that_names_no_class_is_refused_even_a_negative_one(pick, indices, error, words):
    with pytest.raises(error, match=words):
        pick(Q, indices)


def test_a_mean_over_no_target_is_refused():
    for scores, targets in [(Q, [-1, -1]), (Q[:0], np.zeros(0, int))]:
        with pytest.raises(ValueError, match="no target is left to take the mean over"):
            mg.cross_entropy(scores, targets, ignore_index=-1)
