"""Chapters 4.4 to 4.10 · Diagnoses over the whole vocabulary: none is false, and none is missed.

Every rule of chapter 3 is broken from outside in the ways that a diagnosis knows, and its text is
changed in all the ways of test_mutation.py. A diagnosis claims an equation between the wrong
gradient and the true one. Here the equation is checked again at other inputs, with another g, and
with the gradient of the rule as it was before it was broken.
"""

import contextlib
import functools
import re

import numpy as np
import pytest

from minigrad import GradientError, Tensor, gradcheck
from minigrad.checks import explaining
from minigrad.checks.culprit import Search
from minigrad.checks.differences import lengths
from minigrad.checks.mistakes import Case, Trial, summed_to, unsummed
from minigrad.checks.places import mixed_axes
from tests import cases
from tests.test_mutation import (
    CASES,
    OPERATIONS,
    STATEMENTS,
    broken_after,
    broken_before,
    exchanged,
    looks_at,
    made_anew,
    mutants,
    plain,
    positions,
    rewritten,
    users,
)

# ---------------------------------------------------------------- what a diagnosis claims


class Noted:
    """What a broken rule gave at other inputs and for another g, beside its diagnoses."""

    def __init__(self, alone, i, found):
        rng = np.random.default_rng(99)
        self.alone, self.i, self.found = alone, i, found
        self.inputs = [
            x + 0.01 * lengths(x) * rng.uniform(-1, 1, x.shape) if k in alone.wanted else x
            for k, x in enumerate(alone.inputs)
        ]
        self.g, other = rng.standard_normal((2, *alone.shape))
        self.c, self.turned_g, self.other = (
            alone.claim(self.inputs, g, i) for g in (self.g, -2 * self.g, other)
        )
        self.raw = unsummed(self.case(), Trial(self.inputs, self.g, self.c, self.c, self.c))
        self.rows = self.jacobian() if any(d.kind == "another axis" for d in found) else None

    def case(self):
        return Case(self.alone, self.i, np.arange(0), ())

    def jacobian(self):
        size = int(np.prod(self.alone.shape))
        basis = np.eye(size).reshape(size, *self.alone.shape)
        return np.array([self.alone.claim(self.inputs, g, self.i).ravel() for g in basis])

    def true(self, inputs=None, g=None, i=None):
        inputs = self.inputs if inputs is None else inputs
        return self.alone.claim(inputs, self.g if g is None else g, self.i if i is None else i)

    def turned(self, j):
        inputs = list(self.inputs)
        inputs[j] = turn(inputs[j])
        return self.true(inputs)


def turn(a):
    return a.swapaxes(-1, -2).copy() if a.ndim > 1 else a


def near(a, b, rtol=1e-6):
    return np.shape(a) == np.shape(b) and np.allclose(a, b, rtol, 1e-9 * np.abs(b).max(initial=0))


def is_transposed(n, words):
    if "before it is summed" in words:
        return near(summed_to(n.c.shape, turn(n.raw)), n.true())
    if "gᵀ" in words:
        return near(n.c, n.true(g=turn(n.g)))
    if at := re.search(r"if input (\d+) is transposed", words):
        return near(n.c, n.turned(int(at[1])))
    return near(n.c.T if "reverse order" in words else turn(n.c), n.true())


def mixes_other_axes(n, words):
    def told(rows):
        clear = np.where(np.abs(rows) > 1e-6 * np.abs(rows).max(), rows, 0)
        axes = mixed_axes(clear, n.c.shape)
        return " and ".join(f"axis {a}" for a in axes) or "no axis"

    return f"along {told(n.jacobian())}, and the VJP along {told(n.rows)}." in words


def is_a_factor(n, words):
    return near(n.c, float(re.search(r"difference = (\S+) in", words)[1]) * n.true(), 1e-5)


def is_a_variable_factor(n, words):
    at = re.search(r"input (\d+)", words)
    v = n.inputs[int(at[1])] if at else n.alone.value(n.inputs)
    return near(n.c, n.true() * v) if "gradient times" in words else near(n.c * v, n.true())


def is_of_another_input(n, words):
    j = int(re.search(r"gradient of input (\d+)", words)[1])
    return near(summed_to(n.inputs[j].shape, n.raw), n.true(i=j))


def is_partly_zero(n, words):
    there = n.c != 0
    return near(n.c[there], n.true()[there]) and not there.all()


def is_not_summed(n, words):
    wide = re.search(r"broadcast to \((.*?)\) along axis (\d+)\. .*gives the (\w+)", words)
    if not wide:
        return not near(n.c, n.true())
    inputs = list(n.inputs)
    shape = tuple(int(length) for length in re.findall(r"\d+", wide[1]))
    inputs[n.i] = np.broadcast_to(inputs[n.i], shape).copy()
    g, axis = n.true(inputs), int(wide[2])
    one = {
        "first": lambda: g.take([0], axis),
        "last": lambda: g.take([-1], axis),
        "mean": lambda: g.mean(axis, keepdims=True),
    }
    return near(n.c, summed_to(n.c.shape, one[wide[3]]()))


HOLDS = {
    "nearly right": lambda n, words: near(n.c, n.true(), 2e-5),
    "sign": lambda n, words: near(n.c, -n.true()),
    "factor": is_a_factor,
    "not finite": lambda n, words: not np.isfinite(n.c).all() and np.isfinite(n.true()).all(),
    "zero": lambda n, words: np.abs(n.c).max() < 1e-12 * np.abs(n.true()).max(),
    "ignores g": lambda n, words: near(n.c, n.other),
    "not proportional to g": lambda n, words: not near(n.turned_g, -2 * n.c),
    "transposed": is_transposed,
    "another axis": mixes_other_axes,
    "another input": is_of_another_input,
    "another order": lambda n, words: near(np.sort(n.c.ravel()), np.sort(n.true().ravel())),
    "partly 0": is_partly_zero,
    "not summed": is_not_summed,
    "a variable factor": is_a_variable_factor,
    "a use is missing": lambda n, words: not near(n.c, n.true()),
}


@pytest.fixture
def noted(monkeypatch):
    """A list of what `diagnosed` was asked and said, and what the broken rule gave."""
    found, diagnosed = [], explaining.diagnosed

    def noting(alone, i, *others):
        said = diagnosed(alone, i, *others)
        with contextlib.suppress(ValueError, IndexError):  # beside the domain there is no gradient
            found.append(Noted(alone, i, said))
        return said

    monkeypatch.setattr(explaining, "diagnosed", noting)
    return found


def false_ones(noted, right):
    """The diagnoses whose equation does not hold with the gradient of the right operation.

    Where nearly the right gradient is given, an equation that holds explains nothing.
    """
    found = []
    for each in noted:
        each.alone.operation = right(each.alone)
        with np.errstate(all="ignore"):
            found += [d for d in each.found if not HOLDS[d.kind](each, str(d))]
            if near(each.c, each.true(), 1e-7):
                found += [d for d in each.found if d.kind != "nearly right"]
    return found


# ---------------------------------------------------------------- broken from outside


def at_ones(vjp):
    return lambda g, y: vjp(np.ones(y.shape), y)


def first_share(vjp, x):
    def share(g, y):
        raw = vjp(g, y)
        for _ in range(raw.ndim - x.ndim):
            raw = raw[0]
        for axis in range(x.ndim):
            if x.shape[axis] == 1 != raw.shape[axis]:
                raw = raw[(slice(None),) * axis + (slice(0, 1),)]
        return raw

    return share


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
    rule = OPERATIONS[name].__wrapped__
    is_fused = hasattr(rule, "definition")
    for i in positions(name):
        for kind, change in (
            ("sign", lambda share: -share),
            ("factor", lambda share: share * 2.0),
            ("factor", lambda share: share * 0.5),
            ("zero", lambda share: share * 0.0),
            ("transposed", lambda share: share.T),
        ):
            yield kind, i, broken_after(rule, i, change)
        if is_fused:
            continue
        yield "ignores g", i, with_another_vjp(rule, i, lambda vjps, xs, i=i: at_ones(vjps[i]))
        yield "another input", i, with_another_vjp(rule, i, lambda vjps, xs, i=i: the_next(vjps, i))
        yield (
            "not summed",
            i,
            with_another_vjp(rule, i, lambda vjps, xs, i=i: first_share(vjps[i], xs[i])),
        )
    for which in ("g", "y", *positions(name)) if not is_fused else ():
        if which == "g" or looks_at(name, which):
            what = which if isinstance(which, str) else f"input {which}"
            yield f"the record of {what} is cut", None, broken_before(rule, which)


# Other names of the same thing: what was planted is, there, also what is said.
AS_WELL = {
    ("softmax", "ignores g"): {"zero"},  # Σ of its weights does not move
    ("power", "another input"): {"not proportional to g"},
    ("layer_norm", "transposed"): set(),  # of a gain, which its backward has summed itself
}
SEEN_ELSEWHERE = {"a wrong rule in the VJP", "zero"}  # where the VJP uses the broken rule itself


def outcome(name, rule, case, order=2):
    """The error of a check with the broken rule, or None: nothing is wrong, or a VJP raises."""
    with exchanged({name: rule}), np.errstate(all="ignore"):
        try:
            gradcheck(*case, order=order)
        except GradientError as error:
            return error
        except (ValueError, IndexError, TypeError):
            return None
    return None


def right_operation(alone):
    return next(f for f in OPERATIONS.values() if f.__wrapped__ is alone.rule.__wrapped__)


def judged(name, noted, cases_of_it):
    """Check what is said of each planted mistake; return how many were said, and said first."""
    tried = said = first = 0
    for kind, i, broken in planted(name):
        for case in cases_of_it:
            noted.clear()
            error = outcome(name, broken, case)
            if error is None:
                continue
            kinds = [each.kind for each in error.diagnoses]
            assert error.rule == broken.__name__ and i in (None, error.input), str(error)
            assert not false_ones(noted, right_operation), str(error)
            allowed = {kind} | SEEN_ELSEWHERE | AS_WELL.get((name, kind), {kind})
            assert allowed & set(kinds) or (name, kind) in AS_WELL, f"{kind} in {error}"
            tried, said, first = tried + 1, said + (kind in kinds), first + (kinds[:1] == [kind])
    return tried, said, first


QUICK = ("multiply", "matmul", "softmax", "sum", "linear")


@pytest.mark.parametrize("name", QUICK)
def test_each_mistake_is_told_when_it_is_planted_in_a_rule_of_ours(name, noted):
    checks = [case for case in CASES[name] if isinstance(case, tuple)]
    tried, said, first = judged(name, noted, checks[-1:])
    assert tried > 4 and said >= tried - 1 and first >= 0.7 * tried


@pytest.mark.slow
def test_each_mistake_is_told_in_every_rule_and_no_diagnosis_is_false(noted):
    counts = np.zeros(3, int)
    for name in OPERATIONS:
        counts += judged(name, noted, [case for case in CASES[name] if isinstance(case, tuple)])
    tried, said, first = counts
    print(f"\n{tried} planted mistakes: {said} told, {first} of them first")
    assert tried > 1500 and said > 0.98 * tried and first > 0.9 * tried


# ---------------------------------------------------------------- broken from inside


@pytest.mark.slow
def test_no_diagnosis_of_a_rule_whose_text_was_changed_is_false(noted):
    caught = named = told = 0
    kinds = {}
    for name, (module, statement) in STATEMENTS.items():
        function = plain(getattr(module, name))
        checks = [case for user in users(function) for case in CASES[user]]
        for words, changed in mutants(statement):
            noted.clear()
            error = None
            with rewritten(function, made_anew(module, changed)), np.errstate(all="ignore"):
                for case in checks:
                    if isinstance(case, tuple):
                        try:
                            gradcheck(*case)
                        except GradientError as found:
                            error = found
                            break
                        except Exception:  # whatever a broken rule leads to
                            continue
            if error is not None:
                caught, named = caught + 1, named + (error.rule is not None)
                told += bool(error.diagnoses)
                for each in error.diagnoses:
                    kinds[each.kind] = kinds.get(each.kind, 0) + 1
                wrong = false_ones(noted, lambda alone: alone.operation)
                assert not wrong, f"{name}: {words}\n{wrong}\n{error}"
    print(f"\n{caught} mutants raise a GradientError; in {named} a rule is named, {told} are told")
    print(dict(sorted(kinds.items(), key=lambda pair: -pair[1])))
    assert caught > 400 and named > 0.95 * caught and told > 0.3 * caught


# ---------------------------------------------------------------- not broken


def moved(case, rng):
    """The case's inputs, each floating element moved by at most 2 % of its size."""
    return [
        Tensor(a + 0.02 * lengths(a) * rng.uniform(-1, 1, np.shape(a)), requires_grad=True)
        if i in case.floating
        else a
        for i, a in enumerate(
            np.asarray(a) if i in case.floating else a for i, a in enumerate(case.inputs)
        )
    ]


TABLE = [c for c in cases.CASES if c.floating]


def judged_alone(case, order, rng):
    """How many operations of a case are right, and how many there are; none may be wrong."""
    inputs = moved(case, rng)

    def f(*points):
        given = iter(points)
        return case.ours(*[next(given) if isinstance(x, Tensor) else x for x in inputs])

    points = [x for x in inputs if isinstance(x, Tensor)]
    search = Search(f, points, order=order, rtol=1e-8, rng=rng)
    assert not search.wrong, f"{case}, order {order}: {search.found}"
    return search.right, search.right + search.unsure


def test_a_right_rule_is_not_accused_in_fifty_random_draws():
    rng = np.random.default_rng(1)
    drawn = [(TABLE[k], 1 + n % 2) for n, k in enumerate(rng.integers(len(TABLE), size=50))]
    assert sum(judged_alone(case, order, rng)[0] for case, order in drawn) > 40


@pytest.mark.slow
def test_a_right_rule_is_not_accused_in_five_thousand_random_draws():
    """Each case in both orders; then at random, and those of many operations less often."""
    rng = np.random.default_rng(2)
    found = [[judged_alone(case, order, rng) for case in TABLE] for order in (1, 2)]
    cheap = np.array([1.0 / max(1, operations) ** 2 for _, operations in found[0]])
    more = 5_000 - 2 * len(TABLE)
    for k in rng.choice(len(TABLE), more, p=cheap / cheap.sum()):
        found[0].append(judged_alone(TABLE[k], 1 + int(rng.random() < 0.2), rng))
    assert sum(right for each in found for right, _ in each) > 5_000
