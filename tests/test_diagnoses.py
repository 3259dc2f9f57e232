"""Diagnoses: the wrong rule is named, each mistake is said first, and none is said falsely."""

import functools
import pickle
import re

import numpy as np
import pytest

import minigrad as mg
from minigrad import GradientError, Tensor, gradcheck, primitive
from minigrad.checks import explaining
from minigrad.checks.culprit import Search
from tests import test_mutation as mutation
from tests.planted import NONE, PLANTED, ROW, WIDE, A, B, dot, rule, softmax
from tests.test_readme import BLOCKS, README

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


KINDS = {  # of each kind of sentence, words that no other has
    "sign": "has the wrong sign",
    "factor": "true gradient: ",
    "ignores g": "does not depend on g",
    "transposed": "transposed",
    "exchanged": "are the two exchanged",
    "the wrong axis": "and the VJP along",
    "not summed": "belong added up",
    "a use is missing": "the VJP does not count",
    "the record was left": "leaves the record",
    "not smooth": "is not smooth",
    "the value stands still": "the value stays as it is",
}


def kind_of(sentence):
    (kind,) = (kind for kind, words in KINDS.items() if words in sentence)
    return kind


def kinds(error):
    return [kind_of(each) for each in error.diagnoses]


# ------------------------------------------------------------------ the ten mistakes


@pytest.mark.parametrize(("kind", "words", "i", "f", "inputs"), PLANTED, ids=IDS)
def test_a_planted_mistake_is_said_first(kind, words, i, f, inputs):
    error = error_of(f, *inputs, order=1)
    assert (error.rule, error.input) == ("suspect", i)
    assert kinds(error)[:1] == ([kind] if kind != NONE else []), said(error)
    assert re.search(words, said(error).replace("\n", " ")), said(error)
    assert len(error.diagnoses) <= 2
    assert all(each.count("; or ") <= 1 for each in error.diagnoses)


@pytest.mark.parametrize(("kind", "words", "i", "f", "inputs"), PLANTED[::4], ids=IDS[::4])
def test_the_one_wrong_rule_of_a_composed_function_is_found(kind, words, i, f, inputs):
    error = error_of(among_others(f), *inputs, order=1)
    assert (error.rule, error.input, kinds(error)[:1]) == ("suspect", i, [kind] * (kind != NONE))
    assert f"to order 1: {3 * len(inputs) + 4} right, 1 wrong, 0 not judged" in said(error)


def data(x):
    return x.data if isinstance(x, Tensor) else x


def cut_value(x, /):
    t = np.tanh(data(x))
    return np.tanh(x), lambda g, y: g * (1 - t * t)


CUT = [
    ("input 0, or y,", rule(np.tanh, lambda g, y, x: g * (1 - np.square(data(y)))), [A]),
    ("g", rule(np.tanh, lambda g, y, x: data(g) * (1 - y * y)), [A]),
    ("input 0, or y,", primitive(name="suspect")(cut_value), [A]),
    ("a use of input 0, or y,", rule(softmax, lambda g, y, x: data(y) * (g - dot(g, y))), [WIDE]),
    ("g", rule(np.matmul, lambda g, y, a, b: data(g) @ b.mT, lambda g, y, a, b: a.mT @ g), [A, B]),
    (
        "input 1, or y,",
        rule(np.matmul, lambda g, y, a, b: g @ data(b).mT, lambda g, y, a, b: a.mT @ g),
        [A, B],
    ),
]


@pytest.mark.parametrize(("what", "f", "inputs"), CUT)
@pytest.mark.parametrize("composed", [False, True])
def test_a_vjp_that_leaves_the_record_is_found_with_what_leaves_it(what, f, inputs, composed):
    assert gradcheck(f, *inputs, order=1)
    error = error_of(among_others(f) if composed else f, *inputs)
    assert (error.rule, error.input, kinds(error)) == ("suspect", 0, ["the record was left"])
    assert error.order == 2
    assert "is wrong to second order" in said(error)
    assert f"because {what} leaves the record in the VJP" in said(error)


@pytest.mark.parametrize(
    ("f", "words"),
    [
        (lambda x: (x * x.data).sum(), "one way from .input 0., as by `.data`"),
        (lambda x: np.tanh(x.detach()) + np.exp(x), "one way from"),
        (lambda x: Tensor(np.tanh(x.data)), "every way from"),
    ],
)
def test_a_function_that_leaves_the_record_is_told_apart_from_a_wrong_rule(f, words):
    error = error_of(f, A)
    assert (error.rule, error.input, kinds(error)) == (None, None, ["the record was left"])
    assert re.search(words, said(error)) and "The rule" not in said(error)


def test_a_rule_that_computes_another_thing_with_tensors_is_named():
    f = rule(np.tanh, lambda g, y, x: g * (1 - y * y) * (1.01 if isinstance(y, Tensor) else 1.0))
    error = error_of(among_others(f), A)
    assert error.rule == "suspect"
    assert "The rule suspect is wrong to second order: its VJP for input 0" in said(error)


@pytest.mark.parametrize("order", [1, 2])
def test_a_scalar_rule_that_ignores_g_is_found_although_its_g_is_1(order):
    error = error_of(rule(lambda x: (x * x).mean(), lambda g, y, x: 2 * x / x.size), A, order=order)
    assert "-2 times the seed" in str(error) and error.rule == "suspect"
    assert error.order == 1
    assert kinds(error) == ["ignores g"]


# ------------------------------------------------------------------ where no mistake is said


@pytest.mark.parametrize(
    ("kind", "f", "x"),
    [
        ("not smooth", mg.relu, [0.0, 1.0]),
        ("not smooth", lambda x: mg.relu(x).sum() * 3, [0.5, 0.0]),
        ("not smooth", np.sqrt, [0.0, 1.0]),
        ("not smooth", np.arcsin, [0.0, 1.0]),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_where_the_check_cannot_judge_it_says_why(kind, f, x):
    error = error_of(f, x)
    assert kinds(error) == [kind] and "is wrong:" not in said(error)
    assert error.rule is None and "The rule" not in said(error)


def test_a_rule_that_is_judged_at_a_kink_counts_as_not_judged():
    slopes = lambda g, y, x: g * np.where(x < 0, -2.0, 1.0)
    f = rule(lambda x: np.where(x < 0, -2 * x, x), slopes)
    error = error_of(lambda x: (f(x) * 2.0).sum(), [0.0, 1.0])
    assert "order 1: 2 right, 0 wrong, 1 not judged." in str(error)


def test_a_kink_does_not_excuse_a_wrong_rule():
    f = rule(lambda x: np.maximum(x, 0), lambda g, y, x: g * np.where(x > 0, 1.0, 3.0))
    assert error_of(f, [0.0, 1.0], order=1).diagnoses == ()
    f = rule(np.tanh, lambda g, y, x: -g * (1 - y * y))
    assert "sign" in kinds(error_of(lambda x: f(x) + mg.relu(x), [0.0, 0.5, 1.0]))


ALMOST = {
    "of another shape": lambda g, y, x: g * np.sin(x + y),
    "wrong in one element": lambda g, y, x: (
        g * y * np.where(np.arange(12) == 5, 2.0, 1.0).reshape(3, 4)
    ),
    "wrong after the seventh digit": lambda g, y, x: g * y * (1 + 5e-8),
    "in float32": lambda g, y, x: np.asarray(g * y, np.float32),
}


@pytest.mark.parametrize("vjp", ALMOST.values(), ids=ALMOST)
def test_where_nothing_fits_nothing_is_said(vjp):
    error = error_of(rule(np.exp, vjp), A, order=1)
    assert error.rule == "suspect" and error.diagnoses == ()
    assert said(error) == "The rule suspect is wrong: its VJP for input 0, shape (3, 4)."


# ------------------------------------------------------------------ the message and its parts


def test_of_two_wrong_rules_the_first_is_named_and_explained():
    f = rule(np.tanh, lambda g, y, x: -g * (1 - y * y), name="first")
    h = rule(np.exp, lambda g, y, x: y, name="second")
    error = error_of(lambda x: (h(f(x).sum()) * x).sum(), A)
    assert (error.rule, kinds(error)) == ("first", ["sign"])
    assert "3 right, 2 wrong" in said(error)


def test_a_wrong_rule_is_found_behind_a_mask_of_infinities():
    f = rule(softmax, lambda g, y, x: y * (dot(g, y) - g))
    error = error_of(lambda x: f(mg.where(np.tri(3, 4, 1) > 0, x, -np.inf)), A)
    assert (error.rule, kinds(error)) == ("suspect", ["sign"])


def test_a_named_input_is_named_and_a_fused_rule_is_diagnosed():
    @mg.fused(definition=lambda a, b, /: a * b)
    def product(a, b, /):
        return a * b, lambda g, y, needs: (g * b, g * b)

    error = error_of(product, Tensor(A, name="a"), Tensor(A + 1, name="b"))
    assert str(error).startswith("order 1: ∂L/∂b is wrong (shape (3, 4)): ")
    assert kinds(error) == ["exchanged"]


def test_a_wrong_fused_value_names_its_rule():
    f = mg.fused(definition=np.exp)(lambda x, /: (np.exp(x) + 1, lambda g, y, needs: (g,)))
    error = error_of(f, A)
    assert (error.order, error.rule) == (None, "<lambda>")
    assert "the fused rule <lambda> and its definition differ" in str(error)


def test_an_error_can_be_pickled_with_its_diagnoses():
    error = error_of(rule(np.exp, lambda g, y, x: -g * y), A)
    assert error.__cause__ is error.__context__ is None  # (Dask pickles these, too)
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.order, copy.rule, copy.input) == (str(error), 1, "suspect", 0)
    assert copy.diagnoses == error.diagnoses != ()


def test_a_check_that_passes_asks_for_no_explanation(monkeypatch):
    def never(*_):
        raise RuntimeError

    monkeypatch.setattr(explaining, "explained", never)
    assert gradcheck(among_others(np.exp), A)
    with pytest.raises(RuntimeError):
        gradcheck(rule(np.exp, lambda g, y, x: -g * y), A)


def test_for_a_large_input_the_work_is_bounded_and_the_mistake_still_found():
    calls = 0

    def value(x):
        nonlocal calls
        calls += 1
        return np.tanh(x)

    f = rule(value, lambda g, y, x: g * (1 - y * y) / 2)
    error = error_of(f, np.random.default_rng(7).standard_normal((100, 150)), order=1)
    assert error.rule == "suspect" and kinds(error) == ["factor"]
    assert calls < 5_000


def test_what_the_readme_shows_is_what_is_said():
    (block,) = (block for block in BLOCKS if "gradcheck" in block)
    wrong, shown = re.search(
        r"Forget a term, `(.+)`, and it says:\n\n((?:    .+\n)+)", README
    ).groups()
    right = "g * (s + y * (1 - s))"
    assert block.count(right) == 1
    with pytest.raises(GradientError) as caught:
        exec(block.replace(right, wrong), {})
    assert shown.split() == said(caught.value).split()


# ------------------------------------------------------------------ a VJP that fails


def test_an_error_inside_a_vjp_keeps_its_kind_and_notes_the_rule_the_input_and_the_shapes():
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
    where = r"\n\(in the VJP of suspect for input 0, which takes g and y of shape \(3, 4\)"
    with pytest.raises(IndexError, match=f"^index 7 is out.*{where}"):
        gradcheck(rule(np.exp, lambda g, y, x: g[7]), A)
    suspect = primitive(name="suspect")(lambda x, /: (np.exp(x), lambda g: g))
    words = r"takes 1 positional argument but 2 were given: a VJP takes \(g, y\)"
    with pytest.raises(TypeError, match=words + where):
        gradcheck(suspect, A)


def test_what_a_learner_forgets_about_a_rule_is_asked():
    def times(a, b, /):
        return a * b, lambda g, y: b, lambda g, y: g * a

    with pytest.raises(ValueError, match=r"gave tuple \(is @primitive missing above it\?\)"):
        gradcheck(times, A, ROW)
    words = r"gave shape \(4,\), .* within the output's \(3, 4\): is g forgotten"
    with pytest.raises(ValueError, match=words):
        gradcheck(primitive(times), A, ROW)
    exchanged = rule(np.matmul, lambda g, y, a, b: a.T @ g, lambda g, y, a, b: g @ b.T)
    words = r"gave shape \(4, 5\), .*, or are the gradients of inputs 0 and 1 exchanged\?"
    with pytest.raises(ValueError, match=words):
        gradcheck(exchanged, A, np.ones((4, 5)))
    product = rule(np.multiply, lambda g, y, a, b: g @ b.T, lambda g, y, a, b: g * a)
    words = r"gave shape \(3, 3\), .* matrix product \(@\) written where \* belongs"
    with pytest.raises(ValueError, match=words):
        gradcheck(product, A, A)
    stacks = np.ones((2, 3, 4)), np.ones((2, 4, 5))
    product = rule(np.matmul, lambda g, y, a, b: g @ b.T, lambda g, y, a, b: a.T @ g)
    with pytest.raises(ValueError, match=r"^`\.T` of a stack.*: is `\.mT` meant\? \(in the VJP of"):
        gradcheck(product, *stacks)
    of_a_matrix = rule(lambda x, w: x @ w, lambda g, y, x, w: g * w.T, lambda g, y, x, w: x.mT @ g)
    with pytest.raises(ValueError, match="^(?!.*is `.mT` meant)"):  # (where .T is right)
        gradcheck(of_a_matrix, stacks[0], np.ones((4, 5)))
    named = primitive(name="matmul")(
        lambda a, b, /: (a @ b, lambda g: g @ b.mT, lambda g: a.mT @ g)
    )
    with pytest.raises(TypeError, match=r"but 2 were given: a VJP takes \(g, y\)"):
        gradcheck(named, A[:3, :3], A[:3, :3])
    full = rule(lambda x: x.sum(), lambda g, y, x: np.full(x.shape, g))
    words = r"^np.full does not take a Tensor: write np.broadcast_to \(in the VJP of suspect for"
    with pytest.raises(TypeError, match=words):
        gradcheck(full, A)
    item = rule(lambda x: x.sum(), lambda g, y, x: np.full(x.shape, g.item()))
    assert "because g leaves the record" in said(error_of(item, A))
    with pytest.raises(ValueError, match=r"gave shape \(3,\), which is neither the input's \(4,\)"):
        gradcheck(rule(np.add, lambda g, *_: g, lambda g, *_: g.sum(1)), A, ROW)


@pytest.mark.parametrize(
    "average", ["g.mean(axis=-1, keepdims=True)", "-(y * g).sum(axis=-1)[:, None]"]
)
def test_what_is_so_of_a_saturated_softmax_alone_is_not_told(average):
    lost = eval(f"lambda g, y, x: y * (g - {average})", {})
    sure = "\n".join(error_of(rule(softmax, lost), 100 * np.eye(3, 5), order=1).diagnoses)
    assert "no axis" not in sure and "axis 0" not in sure and "along axis 1 rise" in sure


def test_a_rule_that_is_defined_at_large_inputs_only_has_its_diagnosis():
    thrice = rule(np.arccosh, lambda g, y, x: 3 * g / np.sqrt((x - 1) * (x + 1)))
    assert kinds(error_of(thrice, np.array([1.5, 3.0]))) == ["factor"]


# ------------------------------------------------------------------ over the whole vocabulary
# Every rule of chapter 3 is broken from outside in the ways that a diagnosis knows, and its text is
# changed in all the ways of test_mutation.py.


def with_another_vjp(rule, position, make):
    """The rule with one of its VJPs made anew from all of them and the inputs."""

    @functools.wraps(rule)
    def broken(*xs, **options):
        value, *vjps = rule(*xs, **options)
        if vjps[position] is not None:
            vjps[position] = make([*vjps], xs)
        return (value, *vjps)

    return broken


def the_next(vjps, position):
    others = [vjp for vjp in vjps[position + 1 :] + vjps[:position] if vjp is not None]
    return others[0] if others else vjps[position]


def planted(name):
    """Broken rules of an operation: the kind to be said, the position, and the rule."""
    rule = mutation.OPERATIONS[name].__wrapped__
    is_fused = hasattr(rule, "definition")
    for i in mutation.positions(name):
        for kind, change in (
            ("sign", lambda share: -share),
            ("factor", lambda share: share * 2.0),
            ("factor", lambda share: share * 0.5),
            ("factor", lambda share: share * 0.0),
            ("transposed", lambda share: share.mT if share.ndim > 1 else share),
        ):
            yield kind, i, mutation.broken_after(rule, i, change)
        if is_fused:
            continue
        ones = lambda vjps, xs, i=i: lambda g, y: vjps[i](np.ones(y.shape), y)
        yield "ignores g", i, with_another_vjp(rule, i, ones)
        yield "exchanged", i, with_another_vjp(rule, i, lambda vjps, xs, i=i: the_next(vjps, i))
    for which in ("g", "y", *mutation.positions(name)) if not is_fused else ():
        if which == "g" or mutation.looks_at(name, which):
            yield "the record was left", None, mutation.broken_before(rule, which)


QUICK = ["multiply", "matmul", "softmax", "sum", "linear"]


@pytest.mark.parametrize(
    "names",
    [*([name] for name in QUICK), pytest.param(list(mutation.CASES), marks=pytest.mark.slow)],
)
def test_each_mistake_that_is_planted_in_a_rule_of_ours_is_told(names):
    tried = told = first = 0
    for name in names:
        checks = [case for case in mutation.CASES[name] if isinstance(case, tuple)]
        for kind, i, broken in planted(name):
            for case in checks if len(names) > 1 else checks[-1:]:
                error = None
                with mutation.exchanged({name: broken}), np.errstate(all="ignore"):
                    try:
                        gradcheck(*case)
                    except GradientError as found:
                        error = found
                    except (ValueError, IndexError, TypeError):  # the VJP itself raises
                        continue
                if error is not None:
                    assert error.rule == broken.__name__ and i in (None, error.input), str(error)
                    tried, told = tried + 1, told + (kind in kinds(error))
                    first += kinds(error)[:1] == [kind]
    print(f"\n{tried} planted mistakes: {told} told, {first} of them first")
    assert tried > 4 * len(names) and first >= 0.7 * tried
    assert told >= min(tried - 1, 0.98 * tried)


@pytest.mark.slow
def test_every_rule_whose_text_was_changed_is_named():
    caught = named = told = 0
    for name, (module, statement) in mutation.STATEMENTS.items():
        function = mutation.plain(getattr(module, name))
        cases = (case for user in mutation.users(function) for case in mutation.CASES[user])
        checks = [case for case in cases if isinstance(case, tuple)]
        for _, changed in mutation.mutants(statement):
            other = mutation.made_anew(module, changed)
            with mutation.rewritten(function, other), np.errstate(all="ignore"):
                for i, case in enumerate(checks):
                    try:
                        gradcheck(*case)
                    except GradientError as error:
                        caught, named = caught + 1, named + (error.rule is not None)
                        told += bool(error.diagnoses)
                        checks.insert(0, checks.pop(i))  # it often sees the next change
                        break
                    except Exception:  # whatever a broken rule leads to
                        continue
    print(f"\n{caught} are found, in {named} a rule is named, {told} are told")
    # (Of such changes 29 % are one of the nine mistakes. The others are named, and not explained.)
    assert caught > 400 and named == caught and told > 0.28 * caught


@pytest.mark.parametrize("name", ["matmul", "softmax", pytest.param("", marks=pytest.mark.slow)])
def test_a_right_rule_is_not_accused(name):
    """(Of all rules in the slow group, each without the others around it, which are the same.)"""
    rng, right = np.random.default_rng(1), 0
    for f, *inputs in (
        c for n in mutation.CASES if name in n for c in mutation.CASES[n] if isinstance(c, tuple)
    ):
        points = [Tensor(x, dtype=float, requires_grad=True) for x in inputs]
        for order in (1, 2):
            whole = among_others(f) if name else f
            search = Search(whole, points, order=order, rtol=1e-8, rng=rng)
            assert not search.wrong, f"{f}, order {order}: {search.wrong}"
            right += search.right
    assert right > (30 if name else 300)
