"""Chapter 4 · The checker, checked: it must fail on what is wrong, and say what it cannot see."""

import itertools
import re

import numpy as np
import pytest

import minigrad as mg
from minigrad import GradientError, Tensor, gradcheck, numerical_gradient, primitive
from minigrad.checks import differences
from minigrad.checks.differences import difference, slopes

rng = np.random.default_rng(0)
X = np.random.default_rng(1).standard_normal((2, 4))
BARS, LADDER = differences.__doc__, slopes.__doc__


def rule_with(vjp, value=np.tanh):
    """Return a primitive for one value whose VJP is the one given."""

    @primitive
    def suspect(x, /):
        return value(x), lambda g, y: vjp(g, y, x)

    return suspect


def table(error):
    """Return the rows of an error's table of elements."""
    lines = str(error).splitlines()
    return lines[1 + next(i for i, line in enumerate(lines) if "analytic  " in line) :]


# ------------------------------------------------------------------ value


def test_finite_differences_find_a_known_slope_to_twelve_digits():
    slope, resolution = numerical_gradient(lambda x: np.exp(x).sum(), np.array([0.5, -2.0, 3.0]))
    np.testing.assert_allclose(slope, np.exp([0.5, -2.0, 3.0]), rtol=1e-11)
    assert (np.abs(slope - np.exp([0.5, -2.0, 3.0])) <= 3 * resolution).all()


def test_the_resolution_admits_the_rounding_of_the_function():
    def stairs(x):
        return np.round(x * 1e6) / 1e6  # a slope of 1, made of steps of 1e-6

    slope, resolution = slopes(stairs, np.array([0.3]), np.array([1.0]), np.array([0.3]))
    assert abs(slope[0] - 1) < 1e-2
    assert abs(slope[0] - 1) < 20 * resolution[0] < 1


def test_a_report_names_each_derivative_of_each_input():
    a, b = Tensor(rng.standard_normal((2, 3)), name="a"), rng.standard_normal((3, 5))
    report = gradcheck(lambda a, b: a @ b, a, b)
    assert [c.what for c in report.comparisons[:2]] == ["∂L/∂a", "∂L/∂(input 1)"]
    assert {c.what for c in report.comparisons[2:]} == {
        f"∂/∂{x} of ∂L/∂{y}" for x in ("a", "(input 1)", "seed") for y in ("a", "(input 1)")
    }
    assert report and "agrees" in str(report)


def test_a_right_derivative_is_not_called_wrong_where_steps_jump_over_a_pole():
    for _ in range(100):
        gradcheck(lambda x: np.sin(x) / np.cos(x), np.pi / 2 - 10.0 ** rng.uniform(-3, -1, 3))


@pytest.mark.parametrize("f", [lambda x: 1 / x, np.log, np.tanh, mg.softmax, lambda x: x**3])
def test_right_derivatives_agree_at_a_hundred_random_points(f):
    for _ in range(100):
        assert gradcheck(f, rng.random(7) + 1e-3)


def test_the_checker_records_whatever_surrounds_it():
    with mg.no_grad():
        assert gradcheck(np.tanh, np.ones(3))


def test_the_errors_that_chapter_4_1_shows_are_measured():
    bars = [len(bar) for bar in re.findall(r"^    1e-\d\d .* (#+)$", BARS, re.M)]
    bottom = bars.index(min(bars))  # (the numbers beside the bars are a doctest's)
    assert len(bars) == 12 and bottom == 5
    assert bars == sorted(bars[:bottom], reverse=True) + sorted(bars[bottom:])  # a V
    ladder = [difference(np.exp, 1.0, 1.0, h) for h in (1 / 8, 1 / 16, 1 / 32)]
    once = [(4 * b - a) / 3 for a, b in itertools.pairwise(ladder)]
    twice = (16 * once[1] - once[0]) / 15
    said = [float(x) for x in re.findall(r"(?:\) |cancelled) +(\de-\d+)", LADDER)]
    found = [abs(x - np.e) for x in (ladder[0], ladder[1], once[0], ladder[2], once[1], twice)]
    assert said == [float(f"{x:.0e}") for x in found]


# ------------------------------------------------------------------ it catches what is wrong

WRONG = {
    "0.05 % too large": lambda g, y, x: g * (1 - y * y) * 1.0005,
    "0.05 % too large in one element of 35": lambda g, y, x: (
        g * (1 - y * y) * np.where(np.arange(35).reshape(5, 7) == 11, 1.0005, 1.0)
    ),
    "of other elements": lambda g, y, x: g * (1 - y * y)[::-1],
    "not a number": lambda g, y, x: g * np.nan,
}


@pytest.mark.parametrize("vjp", WRONG.values(), ids=WRONG.keys())
def test_a_wrong_first_derivative_is_caught(vjp):
    with pytest.raises(GradientError, match="order 1: ∂L/∂\\(input 0\\) is wrong"):
        gradcheck(rule_with(vjp), rng.standard_normal((5, 7)))


def test_a_wrong_element_is_caught_behind_right_ones_that_are_a_million_times_larger():
    sizes = 10.0 ** -np.arange(7)

    @primitive
    def weighted(x, /):
        wrong = np.where(sizes < 2e-6, 1.0005, 1.0)
        return sizes * np.tanh(x), lambda g, y: g * sizes * (1 - (y / sizes) ** 2) * wrong

    for seed in range(20):
        with pytest.raises(GradientError, match="^order 1: .* 1 of 7 elements"):
            gradcheck(weighted, np.random.default_rng(seed).uniform(0.5, 1.5, 7))


RIGHT = {  # below the rounding of f, or of what f is made of: (f, input, what is said)
    "a mean subtracted": (lambda x: (x - x.mean()).sum(), [0.3, 1.2], "f does not depend on .inp"),
    "the same at 0": (lambda x: (x - x.mean()).sum(), np.zeros(7), "f does not depend"),
    "a sum of shares": (lambda x: (x / x.sum()).sum(), [0.3, 1.2, -0.4], "f does not depend"),
    "sums of weights": (lambda x: mg.softmax(x).sum(axis=1), X, "f does not depend"),
    "sin² + cos²": (lambda x: np.sin(x) ** 2 + np.cos(x) ** 2, X, "f does not depend"),
    "in float32": (lambda x: (x - x.mean()).sum(), np.float32([0.3, 1.2]), "f does not depend"),
    "a sure class": (lambda x: mg.cross_entropy(x, [0]), [[60.0, 0.0, 1.0]], "f does not depend"),
    "a sure weight": (mg.softmax, [50.0, 0.0, -3.0], "∂L/∂.input 0. does not depend on .input 0."),
    "its logarithm": (lambda x: mg.log_softmax(x)[0], [60.0, 0.0, 1.0], "f does not depend"),
    "small squares": (lambda x: x * x, 1e-200 * np.array([0.3, -0.2, 0.7]), ""),
}


@pytest.mark.parametrize(("f", "x", "doubt"), RIGHT.values(), ids=RIGHT)
def test_a_right_derivative_that_is_rounding_is_unresolved_and_the_reason_is_said(f, x, doubt):
    report = gradcheck(f, np.asarray(x))
    assert not report and re.search(f"unresolved.*{doubt}", str(report)), report


@pytest.mark.parametrize("x", [[0.0, 3.0, 2.0], [0.0, 0.0, 2.0], [0.0, 0.0, 0.0, 2.0]])
def test_a_product_with_zeros_is_right(x):
    assert gradcheck(mg.prod, x)


@pytest.mark.parametrize("f", [mg.softmax, mg.log_softmax, mg.logsumexp])
def test_a_saturated_softmax_may_be_unresolved_but_is_not_called_wrong(f):
    for seed in range(50):
        gradcheck(f, 8 * np.random.default_rng(seed).standard_normal(5))


def test_a_small_wrong_gradient_beside_a_large_right_one_is_caught():
    @primitive
    def both(a, b, /):
        return 1e3 * a + 1e-3 * b, lambda g, y: 1e3 * g, lambda g, y: 1.0005e-3 * g

    with pytest.raises(GradientError, match="∂L/∂\\(input 1\\) is wrong"):
        gradcheck(both, rng.standard_normal(3), rng.standard_normal(3))


def test_the_report_of_an_error_lists_the_worst_elements_first():
    def vjp(g, y, x):
        return g * (1 - y * y) * np.array([1.0, 1.01, 1.0, 1.5, 1.0])

    with pytest.raises(GradientError) as caught:
        gradcheck(rule_with(vjp), np.array([0.1, 0.2, 0.3, 0.4, 0.5]))
    rows = [row.split("]")[0].strip() for row in table(caught.value)]
    assert rows[:2] == ["[3", "[1"]
    assert [row.split()[-1] for row in table(caught.value)[:2]] == ["0.4", "0.2"]  # the inputs
    assert "2 of 5 elements differ" in str(caught.value)


def test_in_a_large_input_the_wrong_element_is_found_by_halving():
    x = rng.standard_normal(5_000)
    factor = np.ones(5_000)
    factor[4_001] = 3.0
    wrong = rule_with(lambda g, y, x: g * (1 - y * y) * factor)
    with pytest.raises(GradientError, match="1 of the \\d+ looked at of 5000") as caught:
        gradcheck(lambda x: (wrong(x) * wrong(x)).sum(), x, order=1)
    assert table(caught.value)[0].strip().startswith("[4001]")


# ------------------------------------------------------------------ it says what it cannot see


def test_a_gradient_too_small_for_the_difference_is_unresolved_and_not_passed():
    report = gradcheck(lambda x: (1.0 + 1e-13 * np.tanh(x)).sum(), np.array([0.3, 0.5]), order=1)
    assert not report
    assert [c.verdict for c in report.unresolved] == ["unresolved"]
    assert report.unresolved[0].resolution > 1e-4
    in_float32 = gradcheck(lambda x: np.tanh(x.astype(np.float32)), np.array([0.3, 0.5]), order=1)
    assert not in_float32 and in_float32.unresolved


def test_a_gradient_of_exactly_zero_passes_as_zero():
    report = gradcheck(lambda x: mg.maximum(x, 7.0), rng.standard_normal(5))
    assert report and report.comparisons[0].verdict == "zero"
    assert gradcheck(lambda x: Tensor(1.0), rng.standard_normal(5))


def test_at_a_kink_or_a_jump_nothing_passes_as_zero():
    @primitive
    def step(x, /):
        return np.where(x >= 0, 1.0, 0.0), lambda g, y: g * 0

    for report in (gradcheck(step, np.zeros(1)), gradcheck(lambda x: mg.maximum(x, 0.0), [0.0])):
        assert not report and report.unresolved


FAR = 1e6 + np.array([0.3, -0.2, 0.7])
SHORT = {  # f changes over less than the shortest step, which is relative
    "sin": (np.sin, [1000000.25]),
    "relu": (lambda x: mg.relu(x - 1e6), FAR),
    "cross_entropy": (lambda x: mg.cross_entropy(x, [0]), 1e6 + np.array([[0.3, 0.1, -0.5]])),
    "softmax": (mg.softmax, FAR + 1e8 - 1e6),
    "median": (lambda x: np.sort(x)[1], FAR),
    "log": (np.log, [1e-12, 1.0]),
    "in a band": (lambda x: (x * [1.0, 1e-9]).sum() + 1e-6 * np.sin(x[1]), [1e6, 1e6 + 0.25]),
}


@pytest.mark.parametrize(("f", "x"), SHORT.values(), ids=SHORT)
def test_a_right_rule_at_a_large_or_small_input_is_not_accused_and_the_doubt_is_said(f, x):
    report = gradcheck(f, x)
    (doubt,) = {c.doubt for c in report.unresolved} - {""}
    assert not report and doubt.startswith(
        "(input 0) is large, or small, and f changes over less than"
    )
    assert f"unresolved: {doubt}" in str(report)


@pytest.mark.parametrize("size", 10.0 ** np.arange(3, 10))
def test_a_wrong_rule_at_a_large_input_is_caught_without_a_kink_or_not_passed(size):
    x = size + np.random.default_rng(0).standard_normal(5)
    with pytest.raises(GradientError, match="The rule suspect is wrong"):
        gradcheck(rule_with(lambda g, y, x: 2.001 * g * x, lambda x: x * x), x)
    for vjp in (lambda g, y, x: -g * np.cos(x), lambda g, y, x: 0 * g):
        try:
            assert not gradcheck(rule_with(vjp, np.sin), x)
        except GradientError as error:
            assert "smooth" not in str(error)


@pytest.mark.parametrize("seed", range(3))
def test_the_random_g_is_not_what_the_caller_drew(seed):
    """With g = a the wrong gᵀ A and the right Aᵀ g are the same."""

    @primitive
    def matmul(a, b, /):
        return a @ b, lambda g, y: g @ b.mT, lambda g, y: g.mT @ a

    drawn = np.random.default_rng(seed)
    with pytest.raises(GradientError, match="VJP for input 1"):
        gradcheck(matmul, drawn.standard_normal((3, 3)), drawn.standard_normal((3, 3)))
