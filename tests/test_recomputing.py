"""Chapter 2.4 · Recomputing: the same function, value and gradients, without its record."""

import weakref

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor, dropout, grad, gradients, graph, no_grad, recompute, softmax
from minigrad.engine.record import is_recording
from tests.making import DERIVATIVES, A, B, M, change, leaf

# ---------------------------------------------------------------- value and derivative

FUNCTIONS = {  # of x (2, 3) and w (3,)
    "many steps": lambda x, w: softmax(np.tanh(x * w) @ x.mT),
    "its input": lambda x, w: x,
    "a view of it": lambda x, w: x.T[1:],
    "a scalar": lambda x, w: (x * w).sum(),
    "a constant": lambda x, w: Tensor(A),
    "a fused step": lambda x, w: mg.layer_norm(x, w, w),
    "a recomputed step": lambda x, w: recompute(np.tanh, x * w) * w,
    "a derivative": lambda x, w: grad(lambda x: (np.tanh(x) * w).sum())(x),
    "a derivative in x of x": lambda x, w: x * grad(lambda u: (np.sin(u) * w).sum())(x),
    "silence within": lambda x, w: x * no_grad(lambda: x.detach() * 2.0)(),
}


@pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS)
def test_value_and_gradients_of_both_orders_are_those_of_the_function(f):
    found = []
    for g in (f, lambda *xs: recompute(f, *xs)):
        x, w = leaf(M), leaf(A, "w")
        y = g(x, w)
        seed = leaf(np.linspace(1.0, 2.0, y.size).reshape(y.shape), "seed")
        if not y.requires_grad:
            found.append([y.data])
            continue
        first = gradients(y, [x, w], seed.data, retain_graph=True)
        recorded = gradients(y, [x, w], seed, create_graph=True)
        total = sum((r * r).sum() for r in recorded) + 0.0 * x.sum()
        second = gradients(total, [x, w, seed])
        found.append([y.data, *first, *[r.data for r in recorded], *second])
    for theirs, ours in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-13, atol=1e-15, strict=True)


CLOSURES = {
    "a leaf": (lambda w: w, 1.0),
    "a result": (lambda w: w * 2.0, 2.0),
    "a view": (lambda w: w[:], 1.0),
}


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize(("make", "factor"), CLOSURES.values(), ids=CLOSURES)
def test_what_f_reaches_for_gets_its_gradient_exactly_once(make, factor, create_graph):
    for handed in (False, True):
        x, w = leaf(), leaf(B, "w")
        h = make(w)
        y = recompute(lambda x, *_, h=h: np.sin(x) * h * h + h, x, *([h] if handed else []))
        expected = [np.cos(A) * (factor * B) ** 2, (2 * np.sin(A) * factor * B + 1) * factor]
        found = gradients(y, [x, w], np.ones(3), create_graph=create_graph, retain_graph=True)
        for g, right in zip(found, expected, strict=True):
            np.testing.assert_allclose(g.data if create_graph else g, right, rtol=1e-14)
        y.backward(np.ones(3))
        np.testing.assert_allclose([x.grad, w.grad], expected, rtol=1e-14)


def test_arrays_lists_and_other_arguments_are_handed_through():
    x = leaf()

    def f(x, array, how, pair):
        return np.tanh(x) * array * how["factor"] + pair[0] * pair[1]

    w = leaf(B, "w")
    y = recompute(f, x, A, {"factor": 3.0}, (w, x))
    y.backward(np.ones(3))
    np.testing.assert_allclose(x.grad, (1 - np.tanh(A) ** 2) * A * 3 + B)
    np.testing.assert_allclose(w.grad, A)


@pytest.mark.parametrize("derivative", DERIVATIVES.values(), ids=DERIVATIVES)
def test_every_derivative_of_chapter_2_3_works_through_it_also_twice(derivative):
    f = lambda x: np.tanh(x * x) * x[::-1]
    twice = lambda f: derivative(lambda x: derivative(f, x, B), A, B)
    for ask in (lambda f: derivative(f, A, B), twice):
        np.testing.assert_allclose(ask(lambda x: recompute(f, x)), ask(f), rtol=1e-12)


# ---------------------------------------------------------------- law


def test_f_runs_once_forward_and_once_for_each_pass():
    calls = []

    def f(x):
        calls.append(is_recording())
        return np.tanh(x)

    x = leaf()
    y = recompute(f, x)
    assert len(calls) == 1
    y.backward(A, retain_graph=True)
    assert len(calls) == 2
    gradients(y, [x], A, create_graph=True)
    assert calls == [True] * 3


def test_it_is_one_node_with_the_inputs_and_what_f_reaches_for():
    x, w, c = leaf(), leaf(B, "w"), Tensor(A, name="c")
    y = recompute(lambda x, c: np.tanh(x * w) * c, x, c)
    assert y.node.name == "recompute" and y.node.inputs == (x, c, w)
    drawn = graph(y * 1.0)
    assert [v.operation for v in drawn.vertices if v.operation] == ["recompute", "multiply"]


def test_without_a_record_it_is_the_function():
    x = leaf()
    f = lambda x: np.tanh(x) * 2.0
    with no_grad():
        y = recompute(f, x)
    assert y.node is None and not y.requires_grad
    np.testing.assert_array_equal(y.data, f(x).data)
    constant = recompute(f, Tensor(A))
    assert constant.node is None and not constant.requires_grad
    within = recompute(no_grad(f), x)
    assert within.node is None


def test_one_blocks_record_exists_at_a_time():
    alive, most = [], [0]

    def counted(x):
        for _ in range(7):
            x = np.tanh(x)
            alive.append(weakref.ref(x))
        most[0] = max(most[0], sum(ref() is not None for ref in alive))
        return x

    y = leaf()
    for _ in range(5):
        y = recompute(counted, y)
    assert most[0] == 7
    y.backward(A)
    del y
    # The seven of the block at hand, and the results between blocks are other tensors.
    assert most[0] == 7 and not any(ref() for ref in alive)


def test_a_nan_is_the_same_nan_the_second_time():
    x = leaf([0.5, np.nan])
    recompute(lambda x: x * 2.0, x).backward([1.0, 1.0])
    np.testing.assert_array_equal(x.grad, [2.0, 2.0])


# ---------------------------------------------------------------- refusal


def another_parameter():
    parameters = [leaf(B, "w"), leaf(B, "other")]  # of the same value
    return lambda x: x * parameters.pop(0)


def a_state():
    calls = []
    return lambda x: calls.append(1) or x * len(calls)


def random_numbers():
    rng = np.random.default_rng(0)
    return lambda x: dropout(np.tanh(x), 0.5, rng=rng) + rng.random()


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("make", [another_parameter, a_state, random_numbers])
def test_what_f_does_otherwise_the_second_time_is_refused(make, create_graph):
    x = leaf()
    y = recompute(make(), x)
    words = "f gave another value the second time, or used other tensors; draw random num"
    with pytest.raises(RuntimeError, match=words):
        gradients(y, [x], A, create_graph=create_graph)


CHANGED = {  # what uses w
    "handed": lambda x, w: recompute(lambda x, w: np.tanh(x * w), x, w),
    "reached for": lambda x, w: recompute(lambda x: np.tanh(x * w), x),
}


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("use", CHANGED.values(), ids=CHANGED)
def test_a_changed_parameter_is_named(use, create_graph):
    x, w = leaf(), leaf(B, "w")
    y = use(x, w)
    change(w, "a step")
    words = r"'w' \(3,\) was changed after the forward pass; run the forward pass again"
    with pytest.raises(RuntimeError, match=words):
        gradients(y, [x], A, create_graph=create_graph)


def test_an_error_in_f_is_its_own_and_leaves_recording_as_it_was():
    x = leaf()
    fail = []

    def f(x):
        if fail:
            raise KeyError("half-way")
        return np.tanh(x)

    y = recompute(f, x)
    fail.append(True)
    with pytest.raises(KeyError, match="half-way"):
        recompute(f, x)
    with pytest.raises(KeyError, match="half-way"):
        y.backward(A)
    assert is_recording() and x.grad is None
