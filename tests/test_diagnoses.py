"""Chapters 4.4 to 4.10 · Diagnoses: each mistake is planted in several rules, and said first."""

import pickle
import re
from pathlib import Path

import numpy as np
import pytest

import minigrad as mg
from minigrad import GradientError, Tensor, gradcheck, primitive
from minigrad.checks import explaining
from minigrad.checks.claims import Diagnosis
from tests.planted import PLANTED, ROW, WIDE, A, B, X, Z, dot, right, rule, softmax

rng = np.random.default_rng(7)
README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")

IDS = [f"{kind}-{i}" for i, (kind, *_) in enumerate(PLANTED)]


def among_others(f):
    """A function of many right rules, and f among them."""
    return lambda *xs: (np.tanh(f(*[x * 1.5 - 0.5 * x for x in xs]) / 3) + 1.0).mean()


def error_of(f, *inputs, **options):
    with pytest.raises(GradientError) as caught:
        gradcheck(f, *inputs, **options)
    return caught.value


def said(error):
    """The message without its first line and its table: one line for each sentence."""
    return str(error).partition("\n")[2].partition("The elements, the worst first")[0].strip()


@pytest.mark.parametrize(("kind", "words", "i", "f", "inputs"), PLANTED, ids=IDS)
def test_a_planted_mistake_is_said_first(kind, words, i, f, inputs):
    error = error_of(f, *inputs, order=1)
    assert error.diagnoses[0].kind == kind, said(error)
    assert (error.rule, error.input) == ("suspect", i)
    assert re.search(words, said(error).replace("\n", " ")), said(error)
    guesses = [each.sentence.replace("infinity or NaN", "") for each in error.diagnoses]
    assert all(each.count(" or ") <= 1 for each in guesses)  # two at most


@pytest.mark.parametrize(("kind", "words", "i", "f", "inputs"), PLANTED[::4], ids=IDS[::4])
def test_the_one_wrong_rule_of_a_composed_function_is_found(kind, words, i, f, inputs):
    error = error_of(among_others(f), *inputs, order=1)
    assert (error.rule, error.input, error.diagnoses[0].kind) == ("suspect", i, kind), said(error)
    n = 3 * len(inputs) + 4
    assert f"The other {n} operations of f are right" in said(error)


# ------------------------------------------------------------------ of second order


def data(x):
    return x.data if isinstance(x, Tensor) else x


def cut_value(x, /):
    t = np.tanh(data(x))
    return np.tanh(x), lambda g, y: g * (1 - t * t)


CUT = [
    ("y", rule(np.tanh, lambda g, y, x: g * (1 - np.square(data(y)))), [A]),
    ("g", rule(np.tanh, lambda g, y, x: data(g) * (1 - y * y)), [A]),
    ("input 0", primitive(name="suspect")(cut_value), [A]),
    ("y", rule(softmax, lambda g, y, x: data(y) * (g - dot(g, y))), [WIDE]),
    ("g", rule(np.matmul, lambda g, y, a, b: data(g) @ b.mT, lambda g, y, a, b: a.mT @ g), [A, B]),
    (
        "input 1",
        rule(np.matmul, lambda g, y, a, b: g @ data(b).mT, lambda g, y, a, b: a.mT @ g),
        [A, B],
    ),
]


@pytest.mark.parametrize(("which", "f", "inputs"), CUT)
@pytest.mark.parametrize("composed", [False, True])
def test_a_vjp_that_leaves_the_record_is_found_with_what_leaves_it(which, f, inputs, composed):
    assert gradcheck(f, *inputs, order=1)
    error = error_of(among_others(f) if composed else f, *inputs)
    assert error.rule == "suspect" and error.input == 0
    assert error.diagnoses[0].kind == f"the record of {which} is cut", said(error)
    assert "is wrong to second order" in said(error)


def test_how_the_record_is_left_is_said_where_the_text_of_the_rule_names_it():
    @primitive
    def suspect(x, /):
        return np.exp(x), lambda g, y: g * (y.detach() if isinstance(y, Tensor) else y)

    assert "as by `.detach` in its text" in said(error_of(suspect, A))


def test_a_rule_that_computes_another_thing_with_tensors_is_named():
    f = rule(np.tanh, lambda g, y, x: g * (1 - y * y) * (1.01 if isinstance(y, Tensor) else 1.0))
    error = error_of(among_others(f), A)
    assert error.rule == "suspect"
    assert "The rule suspect is wrong: it computes one thing with arrays and another" in said(error)


def test_a_scalar_rule_that_ignores_g_is_found_although_its_g_is_1():
    f = rule(lambda x: (x * x).mean(), lambda g, y, x: 2 * x / x.size)
    for order in (1, 2):
        error = error_of(f, A, order=order)
        assert "-2 times the seed" in str(error) and error.rule == "suspect"
        assert [each.kind for each in error.diagnoses] == ["ignores g"]


# ------------------------------------------------------------------ the record was left by f


@pytest.mark.parametrize(
    ("f", "words"),
    [
        (lambda x: (x * x.data).sum(), "Only some of the uses .*`.data`.*input 1 of multiply"),
        (lambda x: np.exp(x) * x.sum().item(), "Only some of the uses .*input 1 of multiply"),
        (lambda x: np.tanh(x.detach()) + np.exp(x), "`.detach`.*input 0 of add, shape .3, 4."),
        (lambda x: Tensor(np.tanh(x.data)), "it is 0 because f left the record, as by `.data`"),
        (lambda x: x @ Tensor(x.data.T), "input 1 of (rows_)?matmul, shape .4, 3."),
    ],
)
def test_a_function_that_leaves_the_record_is_told_apart_from_a_wrong_rule(f, words):
    error = error_of(f, A)
    assert error.rule is None and error.input is None
    assert [each.kind for each in error.diagnoses] == ["the record was left"]
    assert re.search(words, said(error)), said(error)


def test_every_rule_right_is_said_too():
    assert "Each of the 3 operations of f is right by itself." in said(
        error_of(lambda x: np.exp(x * x.data).sum(), A)
    )


# ------------------------------------------------------------------ where the check cannot judge


@pytest.mark.parametrize(
    ("kind", "f", "x"),
    [
        ("kink", mg.relu, [0.0, 1.0]),
        ("kink", lambda x: mg.leaky_relu(x).sum() * 3, [0.5, 0.0]),
        ("jump", primitive(lambda x, /: (np.where(x >= 0, 1.0, 0.0), lambda g, y: g * 0)), [0.0]),
        ("jump", lambda x: mg.maximum(x, 0.0), [0.0]),  # its second derivative
        ("edge of the domain", np.sqrt, [0.0, 1.0]),
        ("edge of the domain", np.arcsin, [0.0, 1.0]),
        ("float32", lambda x: np.tanh(x.astype(np.float32)), A),
        ("float32", lambda x: np.exp(x.astype(np.float32)).astype(np.float64), A),
        ("rounding", lambda x: (1.0 + 1e-13 * np.tanh(x)).sum(), [0.3, 0.5]),
        ("rounding", mg.softmax, [0.0, 40.0]),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_where_the_check_cannot_judge_it_says_why(kind, f, x):
    try:
        found = gradcheck(f, x)
        assert not found and str(found.diagnoses[0]) in str(found)
    except GradientError as error:
        found = error
        assert "is wrong:" not in said(error)
    assert [each.kind for each in found.diagnoses] == [kind]


def test_a_kink_beside_a_wrong_rule_does_not_excuse_it():
    f = rule(np.tanh, lambda g, y, x: -g * (1 - y * y))
    kinds = [each.kind for each in error_of(lambda x: f(x) + mg.relu(x), [0.0, 0.5, 1.0]).diagnoses]
    assert "sign" in kinds


# ------------------------------------------------------------------ a VJP that fails


def test_an_error_inside_a_vjp_names_the_rule_the_input_and_the_shapes():
    f = rule(np.matmul, lambda g, y, a, b: g @ b, lambda g, y, a, b: a.mT @ g, name="mm")
    words = (
        r"^matmul: .*size 4 is different from 5.*\n\(in the VJP of mm for input 0, which takes g "
        r"and y of shape \(3, 5\).*; the inputs have \(3, 4\), \(4, 5\)\)$"
    )
    for check in (
        lambda: gradcheck(among_others(f), A, B),
        lambda: f(Tensor(A, requires_grad=True), B).sum().backward(),
    ):
        with pytest.raises(ValueError, match=words):
            check()


def test_an_error_inside_a_fused_backward_names_the_rule():
    @mg.fused(definition=lambda a, /: a * 2.0)
    def twice(a, /):
        return a * 2.0, lambda g, y, needs: (np.zeros((2, 2)) + g,)

    with pytest.raises(ValueError, match=r"^operands could not .*\n\(in the backward of twice, "):
        twice(Tensor(A, requires_grad=True)).sum().backward()


def test_an_error_keeps_its_kind_and_gets_a_note():
    where = r"\n\(in the VJP of suspect for input 0, which takes g and y of shape \(3, 4\)"
    with pytest.raises(IndexError, match=f"^index 7 is out.*{where}"):
        gradcheck(rule(np.exp, lambda g, y, x: g[7]), A)
    with pytest.raises(TypeError, match=f"^object of type 'float' has no len.*{where}"):
        gradcheck(rule(np.exp, lambda g, y, x: len(1.5)), A)
    suspect = primitive(name="suspect")(lambda x, /: (np.exp(x), lambda g: g))
    with pytest.raises(TypeError, match=f"takes 1 positional argument but 2 were given{where}"):
        gradcheck(suspect, A)


# ------------------------------------------------------------------ the message and its parts


def test_every_wrong_rule_is_named_and_the_first_is_explained():
    f = rule(np.tanh, lambda g, y, x: -g * (1 - y * y), name="first")
    h = rule(np.exp, lambda g, y, x: y, name="second")
    error = error_of(lambda x: (h(f(x)) * x).sum(), A)
    assert (error.rule, [each.kind for each in error.diagnoses]) == ("first", ["sign"])
    assert "Wrong as well: second (input 0)." in said(error)
    assert "The other 2 operations of f are right" in said(error)


def test_a_named_input_is_named_and_a_fused_rule_is_diagnosed():
    @mg.fused(definition=lambda a, b, /: a * b)
    def product(a, b, /):
        return a * b, lambda g, y, needs: (g * b, g * b)

    error = error_of(product, Tensor(A, name="a"), Tensor(A + 1, name="b"))
    assert "its VJP for input 1 ('b'), shape (3, 4)." in said(error)
    assert error.diagnoses[0].kind == "another input"


def test_where_nothing_fits_nothing_is_said():
    error = error_of(rule(np.exp, lambda g, y, x: g * np.sin(x + y)), A)
    assert error.rule == "suspect" and error.diagnoses == ()
    assert said(error) == "The rule suspect is wrong: its VJP for input 0, shape (3, 4)."


def test_a_wrong_element_among_right_ones_is_not_explained_by_a_factor():
    factor = np.where(np.arange(12).reshape(3, 4) == 5, 2.0, 1.0)
    assert error_of(rule(np.exp, lambda g, y, x: g * y * factor), A).diagnoses == ()


def test_a_wrong_fused_value_names_its_rule():
    f = mg.fused(definition=np.exp)(lambda x, /: (np.exp(x) + 1, lambda g, y, needs: (g,)))
    error = error_of(f, A)
    assert error.rule == "<lambda>"
    assert "the fused rule <lambda> and its definition differ: their values" in str(error)


def test_an_error_can_be_pickled_with_its_diagnoses():
    error = error_of(rule(np.exp, lambda g, y, x: -g * y), A)
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.rule, copy.input) == (str(error), "suspect", 0)
    assert copy.diagnoses == error.diagnoses and isinstance(copy.diagnoses[0], Diagnosis)


def test_what_a_learner_forgets_about_a_rule_is_asked():
    def times(a, b, /):
        return a * b, lambda g, y: b, lambda g, y: g * a

    with pytest.raises(ValueError, match=r"gave tuple \(is @primitive missing above it\?\)"):
        gradcheck(times, A, ROW)
    words = r"gave shape \(4,\), .* within the output's \(3, 4\): is g forgotten"
    with pytest.raises(ValueError, match=words):
        gradcheck(primitive(times), A, ROW)
    with pytest.raises(ValueError, match=r"nor a broadcast of it"):  # here g is what is returned
        gradcheck(rule(lambda x: x.sum(1), lambda g, y, x: g), A)
    full = rule(lambda x: x.sum(), lambda g, y, x: np.full(x.shape, g))
    with pytest.raises(
        TypeError,
        match=r"a conversion to a NumPy array.*\n.*VJP of suspect for input 0, .* np.full does not",
    ):
        gradcheck(full, A)
    item = rule(lambda x: x.sum(), lambda g, y, x: np.full(x.shape, g.item()))
    assert "because g leaves the record" in said(error_of(item, A))
    report = gradcheck(lambda x: np.abs(x).sum(), np.array([0.0, 1.0]))
    assert [d.sentence.split(", which is 0: ")[1].split(",")[0] for d in report.diagnoses] == [
        "the first derivative changes at once"
    ]


def test_a_check_that_passes_asks_for_no_explanation(monkeypatch):
    def never(*_):
        raise RuntimeError

    monkeypatch.setattr(explaining, "explained", never)
    monkeypatch.setattr("minigrad.checks.doubts.why_unresolved", never)
    assert gradcheck(among_others(np.exp), A)
    with pytest.raises(RuntimeError):
        gradcheck(rule(np.exp, lambda g, y, x: -g * y), A)


def test_an_explanation_that_fails_does_not_hide_the_error(monkeypatch):
    def fails(*_):
        raise RuntimeError

    for place in ("mistakes.Case.of", "explaining.doubts"):
        monkeypatch.setattr(f"minigrad.checks.{place}", fails)
    error = error_of(rule(np.exp, lambda g, y, x: -g * y), A)
    assert error.rule is None and error.diagnoses == () and "the worst first" in str(error)


def test_for_a_large_input_the_work_is_bounded_and_the_mistake_still_found():
    calls = 0

    def value(x):
        nonlocal calls
        calls += 1
        return np.tanh(x)

    f = rule(value, lambda g, y, x: g * (1 - y * y) / 2)
    error = error_of(f, rng.standard_normal((100, 150)), order=1)
    assert error.rule == "suspect" and error.diagnoses[0].kind == "factor"
    assert "in each of 66 elements" in str(error.diagnoses[0])
    assert calls < 12_000


def test_what_the_readme_shows_is_what_is_said():
    shown = re.search(r"the message says\n\n((?:    .+\n)+)", README)[1]
    f = primitive(name="square")(lambda x, /: (x * x, lambda g, y: g * x))
    error = error_of(lambda x: np.exp(f(x)) * x, np.array([0.5, 1.0, 1.5]))
    assert shown.split() == said(error).split()


# ------------------------------------------------------------------ eight mistakes of a learner

LEARNERS = {
    "sign": (rule(np.sin, lambda g, y, x: -g * np.cos(x)), [A], "wrong sign"),
    "a missing factor": (rule(lambda x: x * x, lambda g, y, x: g * x), [A], "counts only one use"),
    "g forgotten": (rule(np.exp, lambda g, y, x: y), [A], "does not depend on g"),
    "a lost sum": (rule(np.add, right, lambda g, *_: g[0]), [A, ROW], "belong added up"),
    "mean for sum": (rule(np.add, right, lambda g, *_: g.mean(0)), [A, ROW], "mean of the shares"),
    "not broadcast back": (
        rule(np.add, right, lambda g, *_: g.sum(1)),
        [A, ROW],
        r"suspect for input 1 gave shape \(3,\), which is neither the input's \(4,\)",
    ),
    "transposed, rectangular": (
        rule(np.matmul, lambda g, y, a, b: g @ b, lambda g, y, a, b: a.mT @ g),
        [A, B],
        r"in the VJP of suspect for input 0, .*the inputs have \(3, 4\)",
    ),
    "transposed, square": (
        rule(np.matmul, lambda g, y, a, b: g @ b, lambda g, y, a, b: a.mT @ g),
        [X, Z],
        "uses input 1 without the .mT",
    ),
    "a wrong second derivative": (
        rule(np.tanh, lambda g, y, x: g * (1 - np.square(data(y)))),
        [A],
        "because y leaves the record",
    ),
}


@pytest.mark.parametrize(("f", "inputs", "words"), LEARNERS.values(), ids=LEARNERS)
def test_the_mistakes_that_a_learner_tried_are_explained(f, inputs, words):
    with pytest.raises((GradientError, ValueError), match=words):
        gradcheck(f, *inputs)
