"""Chapters 3 and 6 · Operations: any strides, and every way to spell them.

The fixed cases stand in `cases.py`, and `test_coverage_table.py` runs them. Here hypothesis lays
their inputs into memory that is stepped through in any order, also backwards, and draws subscripts
for `einsum`. What only single operations promise (ties, infinities, refusals) stands in the tests
of their chapters and in `test_single_operations.py`.
"""

import inspect
from typing import Any, NamedTuple

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from minigrad import Tensor, gradcheck, ops
from minigrad.engine.words import PLAIN, RECORDED, TensorWords
from tests import cases, oracles
from tests.cases import apart, apart_below, x
from tests.coverage_table import CASES, ROWS

# ---------------------------------------------------------------- value and derivative


class Strided(NamedTuple):
    """An array, and the steps through its memory that make a view of it."""

    base: np.ndarray[Any, Any]
    steps: tuple[Any, ...]
    axes: tuple[int, ...]

    def view(self, base):
        """Return the view, of the array or of a Tensor that holds it."""
        return base[self.steps].transpose(self.axes)


def strided(draw, values):
    """Draw a view with these values: axes in any order of memory, in steps of 1, 2, -1 or -2."""
    axes = tuple(draw(st.permutations(range(values.ndim))))
    steps = [draw(st.sampled_from([1, 2, -1, -2])) for _ in axes]
    lengths = [values.shape[axes.index(i)] for i in range(values.ndim)]
    base = x(*(n * abs(step) for n, step in zip(lengths, steps, strict=True)))
    found = Strided(base, (*(slice(None, None, step) for step in steps), ...), axes)
    found.view(base)[...] = values
    return found


def test_the_number_of_operations_is_the_one_that_the_chapter_says():
    assert f"The {len(ops.__all__)} that this package exports" in ops.__doc__


@pytest.mark.parametrize("name", ROWS)
@settings(max_examples=10)
@given(st.data())
def test_any_strides_give_the_value_and_its_derivative(name, data):
    drawn = data.draw(st.sampled_from([case for case in CASES if case.name == name]))
    is_array = lambda i: i in drawn.floating and isinstance(drawn.inputs[i], np.ndarray)
    laid = {i: strided(data.draw, a) for i, a in enumerate(drawn.inputs) if is_array(i)}

    def f(*bases):
        views = {i: laid[i].view(base) for i, base in zip(laid, bases, strict=True)}
        return drawn.ours(*(views.get(i, a) for i, a in enumerate(drawn.inputs)))

    wanted = oracles.expected(drawn)
    y = f(*(Tensor(each.base) for each in laid.values()))  # the same memory
    assert y.dtype == wanted.dtype
    np.testing.assert_allclose(y.data, wanted, rtol=1e-13, atol=1e-14, strict=True)
    assert gradcheck(f, *(each.base for each in laid.values()), order=1)


@st.composite
def products(draw):
    """Draw products of letters a, b and c: alone, stretched from length 1, summed or kept."""
    lengths = {c: draw(st.integers(1, 3)) for c in "abc"}
    letters = st.lists(st.sampled_from("abc"), unique=True, max_size=3).map("".join)
    terms = draw(st.lists(letters, min_size=1, max_size=3))
    dots = draw(st.sampled_from(["", "..."]))
    stacks = hnp.mutually_broadcastable_shapes(num_shapes=len(terms), max_dims=2, max_side=3)
    stacks = draw(stacks).input_shapes if dots else [()] * len(terms)
    own = [{c: draw(st.sampled_from([n, n, 1])) for c, n in lengths.items()} for _ in terms]
    inputs = [
        x(*stack, *(each[c] for c in term))
        for term, stack, each in zip(terms, stacks, own, strict=True)
    ]
    letters = sorted(set("".join(terms)))
    kept = draw(st.lists(st.sampled_from(letters), unique=True)) if letters else []
    arrow = f"->{dots}{''.join(kept)}" if draw(st.booleans()) else ""
    subscripts = ",".join(dots + term for term in terms) + arrow
    return cases.case("einsum", *inputs, subscripts=subscripts)


@given(products())
def test_einsum_of_any_subscripts_is_numpys_and_has_its_derivative(product):
    wanted = oracles.expected(product)
    np.testing.assert_allclose(product.ours(*product.inputs), wanted, rtol=1e-13, atol=1e-14)
    assert gradcheck(product.ours, *product.inputs, order=1)


# ---------------------------------------------------------------- law

# NumPy's functions whose row in the table has another name.
SAME = {
    "absolute": "abs",
    "amax": "max",
    "amin": "min",
    "copy": "t.copy",
    "fabs": "abs",
    "matrix_transpose": "t.mT",
}
METHODS = [name for name in vars(TensorWords) if name in ROWS]


def spellings(case, inputs):
    """Yield a case's results in NumPy's words, and by a method of its first input if a Tensor."""
    for function in RECORDED:
        if SAME.get(function.__name__, function.__name__) == case.name:
            yield oracles.CALLS.get(case.name, function)(*inputs, **case.options)
    first, *others = inputs
    if case.name in METHODS and isinstance(first, Tensor):
        method, options = getattr(first, case.name), dict(case.options)
        parameters = inspect.signature(method).parameters.values()
        by_place = [p.name for p in parameters if p.kind is not p.KEYWORD_ONLY]
        yield method(*others, *(options.pop(p) for p in by_place if p in options), **options)
        if case.name not in ("reshape", "transpose"):  # whose integers have no name
            yield method(*others, **case.options)


@pytest.mark.parametrize("name", ROWS)
def test_every_spelling_of_a_word_records_the_same_also_with_arrays_before_and_lists(name):
    its_cases = [case for case in CASES if case.name == name]
    for case in its_cases:
        for places in (case.floating, case.floating[-1:]):
            if name == "full_like" and places != case.floating:
                continue  # (NumPy does not look at its last argument)
            inputs = [
                Tensor(a, requires_grad=True) if i in places else a
                for i, a in enumerate(case.inputs)
            ]
            ours = case.ours(*inputs)
            for y in spellings(case, inputs):
                assert isinstance(y, Tensor) and y.requires_grad == ours.requires_grad
                assert (y.node and y.node.name) == (ours.node and ours.node.name)
                np.testing.assert_array_equal(y.data, ours.data, strict=True)
    if name[:2] != "t." and name != "full_like":
        case = its_cases[0]
        lists = [a.tolist() if isinstance(a, np.ndarray) else a for a in case.inputs]
        np.testing.assert_array_equal(case.ours(*lists), case.ours(*case.inputs))


T, U = apart(3, 5), apart_below(3, 5)
NEED_ARGUMENTS = {"astype", "reshape", "swapaxes", "clip"}


def test_a_methods_default_arguments_are_numpys():
    for name in ({*METHODS} | {"copy", "flatten"}) - NEED_ARGUMENTS:
        t = Tensor(T[:1] if name == "squeeze" else T)
        np.testing.assert_allclose(getattr(t, name)().data, getattr(t.data, name)(), rtol=1e-15)


# How the questions are asked that take more than one array, or two for a ufunc of two.
ASKED = {
    "allclose": lambda t, u: (np.allclose(t, u), np.allclose(t, b=u)),
    "argmax": lambda t, u: (np.argmax(t, axis=1), np.argmax(a=t, axis=1)),
    "array_equal": lambda t, u: np.array_equal(t, u),
    "empty_like": lambda t, u: np.empty_like(t).shape,
    "isclose": lambda t, u: np.isclose(t, u, atol=0.5),
    "isin": lambda t, u: np.isin(t, u),
    "round": lambda t, u: (np.round(t), np.round(t, 1)),
    "searchsorted": lambda t, u: np.searchsorted(t[0, :1], u),
}


def test_a_question_is_answered_by_numpy_with_a_plain_array():
    for function in PLAIN:
        name = function.__name__

        def ask(t, u, function=function, name=name):
            if name in ASKED:
                return ASKED[name](t, u)
            return function(t, u) if getattr(function, "nin", 1) == 2 else function(t)

        answer = ask(Tensor(T, requires_grad=True), Tensor(U, requires_grad=True))
        wanted = ask(T, U)
        pairs = zip(answer, wanted, strict=True) if type(wanted) is tuple else [(answer, wanted)]
        for one, other in pairs:
            assert type(one) is type(other), name
            np.testing.assert_array_equal(one, other, name)
        mixed = ask(T, Tensor(U, requires_grad=True))
        np.testing.assert_array_equal(np.asarray(mixed), np.asarray(wanted), name)
