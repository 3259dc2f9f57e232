"""Chapter 5 · Worked: the rows of a step spell out what the rule did, and nothing else."""

import inspect
import re

import numpy as np
import pytest

from attention import attention
from minigrad import Steps, Tensor, layer_norm, ops, softmax
from minigrad.graphs.names import spoken
from minigrad.graphs.operations import Rule
from minigrad.graphs.worked import RULES, Row, computed, remark, worked
from tests.cases import CASES as EVERY_CASE

CASES = {  # an operation, and the shapes of what it is given
    "softmax": (softmax, (5,)),
    "softmax, axis 0": (lambda x: softmax(x, axis=0), (4, 3)),
    "softmax, a batch": (softmax, (2, 3, 4)),
    "multiply": (np.multiply, (2, 3), (2, 3)),
    "multiply by one number": (np.multiply, (2, 3), ()),
    "multiply, stretched": (np.multiply, (2, 1), (3,)),
    "multiply numbers": (np.multiply, (), ()),
    "sum": (np.sum, (2, 3)),
    "sum over an axis": (lambda x: np.sum(x, axis=-1), (2, 3)),
    "mean": (lambda x: np.mean(x, axis=0, keepdims=True), (4, 3)),
    "layer_norm": (layer_norm, (2, 5), (5,), (5,)),
    "matmul": (np.matmul, (3, 4), (4, 2)),
    "matmul, a batch": (np.matmul, (2, 3, 4), (2, 4, 5)),
    "matmul, a weight": (np.matmul, (2, 3, 4), (4, 5)),
}


def contributions(f, *shapes, seed=0):
    """Return an operation's contributions, with the rule's own results, and all leaves."""
    rng = np.random.default_rng(seed)
    leaves = [
        Tensor(rng.standard_normal(s), requires_grad=True, name=n)
        for s, n in zip(shapes, "abc", strict=False)
    ]
    with Steps() as steps:
        y = f(*leaves)
        g = Tensor(rng.standard_normal(y.shape))
    steps.backward(y, g.data)
    return [c for c in steps.contributions if c.source is not None], leaves, y, g


@pytest.mark.parametrize("case", CASES)
def test_the_last_row_is_what_the_rule_gives(case):
    found, leaves, y, g = contributions(*CASES[case])
    y.backward(g.data)
    assert len(found) == len(leaves) and {case.split(",")[0].split(" ")[0]} <= RULES.keys()
    for c, leaf in zip(found, leaves, strict=True):
        last, whole = c.rows[-1], np.atleast_1d(leaf.grad)
        if last.label.startswith("Σ, element"):
            np.testing.assert_allclose(
                last.numbers, np.abs(whole).max() * np.sign(last.numbers), 1e-12
            )
            np.testing.assert_allclose(
                c.rows[0].numbers @ c.rows[1].numbers, last.numbers[0], 1e-12
            )
            continue
        axis = 0 if "axis 0" in case else -1
        rows = np.moveaxis(whole, axis, -1).reshape(-1, whole.shape[axis])
        apart = np.abs(rows - last.numbers).max(axis=-1)
        assert apart.min() <= 1e-12 * np.abs(whole).max()
        assert np.abs(last.numbers).max() == pytest.approx(np.abs(whole).max(), rel=1e-12)


def test_each_row_follows_from_those_above_it():
    ((_, y, g, average, departure, product),) = [
        (c, *(r.numbers for r in c.rows)) for c in contributions(softmax, (3, 5))[0]
    ]
    np.testing.assert_allclose(average, [y @ g])
    np.testing.assert_allclose(departure, g - average)
    np.testing.assert_allclose(product, y * departure)
    (c, *_), *_ = contributions(layer_norm, (3, 5), (5,), (5,))
    n, h, mean, along, sigma, product = (row.numbers for row in c.rows)
    np.testing.assert_allclose([mean[0], along[0]], [h.mean(), (n * h).mean()])
    np.testing.assert_allclose(product, (h - mean - n * along) / sigma)


def test_a_leaf_that_was_given_another_array_has_no_rows_but_those_of_its_operation():
    w, x = (Tensor([1.0, 2.0], requires_grad=True, name=n) for n in "wx")
    with Steps() as steps:
        y = (w * x).sum()
    w.data = w.data + 100
    steps.backward(y)
    product = steps.contributions[1].target
    assert [c.rows for c in steps.contributions if c.source == product] == [()] * 2


def test_other_rules_and_empty_arrays_have_no_rows():
    assert contributions(np.exp, (3,))[0][0].rows == ()
    assert worked("softmax", {}, [np.ones((0,))], np.ones(0), np.ones(0), 0, np.ones(0)) == ()


def test_the_rows_of_a_softmax_lead_to_its_result_and_another_result_has_none():
    x = np.array([[1.0, 2.0, 4.0], [0.0, -np.inf, 1.0]])
    *_, e, total, y = (row.numbers for row in computed(x, softmax(x)))
    np.testing.assert_allclose(e / total, y)
    assert computed(x, softmax(x, axis=0)) == computed(x, None) == computed(None, x) == ()


def test_what_the_digits_do_not_show_is_said():
    g, average = Row("g", np.array([1.0, -1.528])), Row("a", np.array([-1.528009]))
    said = remark([g, average, Row("g - a", g.numbers - average.numbers)])
    assert said.startswith("Where g and a show the same digits")
    assert remark([g, Row("a", np.array([0.5])), Row("g - a", g.numbers - 0.5)]) == ""
    for most, says in ((0.995, "One y is nearly 1, so ⟨y, g⟩ is nearly its g"), (0.5, "")):
        y = np.array([most, 1 - most])
        rows = worked("softmax", {}, (np.log(y),), y, y[::-1], 0, y * (y[::-1] - y @ y[::-1]))
        assert remark(rows).startswith(says) and bool(remark(rows)) == bool(says)


def test_results_without_a_name_are_called_as_a_person_would():
    q, k, v, w, x, b, y = (Tensor(np.ones((2, 2)), requires_grad=True, name=n) for n in "qkvwxby")
    with Steps() as steps:
        (attention(q, k, v, scale=0.5) - y).sum()
        w * x + b - y
        ((w + x) * b) @ (q * Tensor(np.ones(2), name="a_long_name"))
        (w @ x).mT, w / (x / b), w @ (x / b), w * 2.0
    both = zip(spoken(steps.vertices), steps.vertices, strict=True)
    names = [name for name, v in both if v.operation]
    said = "kᵀ|q·kᵀ|scores|weights|weights·v|- y|Σ|w x|w x + b|w x + b - y|w + x|(w + x) × b|"
    said += "multiply|matmul|w·x|(w·x)ᵀ|x / b#1|w / (x / b)|x / b#2|w·(x / b)|w × 2"
    assert names == said.split("|")


# The inputs of our rules whose docstring displays no ∂L/∂x, by the reason. All others do.
NOT_DISPLAYED = {
    "the head of the chapter displays it once, ∂L/∂x = g ⊙ f′(x)": (
        "abs add arccos arccosh arcsin arcsinh arctan arctan2 arctanh cbrt cos divide erf exp "
        "expm1 gelu_tanh hypot log log1p logaddexp maximum minimum multiply negative positive "
        "power sigmoid sign sin sqrt subtract tanh"
    ),
    "the gradient is g, in words": "astype broadcast_to",
    "the way back is said in the text": "swapaxes min",
    "the way back is a turn by -θ, and is displayed as a matrix": "rotate_pairs",
    "the scores are called z in the formulas": "cross_entropy",
}
WITHOUT_ONE = {"where": "condition b"}  # a condition has none; that of b is "the reverse"


def test_the_gradient_that_a_page_shows_is_displayed_in_the_docstring_of_its_rule():
    rules = {}
    for case in EVERY_CASE:
        inputs = [Tensor(a, requires_grad=i in case.floating) for i, a in enumerate(case.inputs)]
        with Steps() as steps:
            case.ours(*inputs)
        rules |= {v.operation: v.rule for v in steps.vertices if v.operation}
    assert rules.keys() >= {*ops.__all__} - {"copy"}
    silent = set()
    for name, rule in rules.items():
        for position, letter in enumerate(rule.letters):
            formula = rule.gradient(position)
            if formula:
                assert re.match(f"∂L/∂({letter}|{letter.upper()})[ᵢⱼₖ]* = .", formula), name
            elif letter not in WITHOUT_ONE.get(name, "").split():
                silent.add(name)
    assert silent == {*" ".join(NOT_DISPLAYED.values()).split()}


def test_a_gradient_in_a_sentence_is_not_shown_and_of_several_displays_the_last_one_is():
    def planted(x, w, /):
        """Here ∂L/∂x = 1 is said in a sentence:
        ∂L/∂x = 2 stands at the beginning of a line.

            ∂L/∂x = 3        ∂L/∂xᵢ = 4        so ∂L/∂x = 5        ∂L/∂W = 6 = 7

        - ∂L/∂x = 8 is an item of a list, and its second line is indented as far as a display:
            ∂L/∂x = 9
        """

    assert [Rule.of(planted).gradient(k) for k in range(3)] == ["∂L/∂xᵢ = 4", "∂L/∂W = 7", ""]
    text = inspect.cleandoc(planted.__doc__)  # (Python 3.13 takes the indentation away itself)
    planted.__doc__ = f"{text}\n\n∂L/∂x = 10\n"
    assert Rule.of(planted).gradient(0) == "∂L/∂xᵢ = 4"
    planted.__doc__ = f"{text}\n\n    ∂L/∂X = 11\n"
    assert Rule.of(planted).gradient(0) == "∂L/∂X = 11"
