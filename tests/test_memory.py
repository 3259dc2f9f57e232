"""Chapter 2 · Memory and depth: what a record keeps alive, how long, and how deep it may be."""

import contextlib
import gc
import sys
import weakref

import numpy as np
import pytest

import minigrad as mg
from minigrad import detect_anomaly, grad, gradients, graph, ops, primitive, recompute, vjp
from minigrad.engine import tensor
from tests.making import A, B, leaf


@mg.fused(definition=lambda x: np.tanh(x) * x)
def soft(x, /):
    y = np.tanh(x)
    return y * x, lambda g, _, needs: (g * (y + x * (1 - y * y)),)


@primitive
def failing(x, /):
    def vjp(g, y):
        raise KeyError("half-way")

    return x * 2.0, vjp


@pytest.fixture(autouse=True, scope="module")
def what_is_older_than_these_tests_is_not_searched():
    """Freeze older objects: a search takes a millisecond, and still sees all we make."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


# ---------------------------------------------------------------- what is kept alive


@contextlib.contextmanager
def watching(monkeypatch, build):
    """Return a weak reference to every tensor made and to its array, without garbage collection."""
    build(leaf())  # what Python and NumPy do at the first call of all is not ours
    alive = []

    def watched(wrap):
        def wrapper(array, *rest):
            t = wrap(array, *rest)
            alive.extend([weakref.ref(t), weakref.ref(array)])
            return t

        return wrapper

    seams = []
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] == "minigrad" and getattr(module, "result", None) is tensor.result:
            seams.append(module)
    for module in seams:
        monkeypatch.setattr(module, "result", watched(module.result))
    gc.collect()
    gc.disable()
    try:
        yield alive
    finally:
        gc.enable()


def expecting(error, call):
    """Call, and forget the error it must raise."""
    try:
        call()
    except error:
        return
    raise AssertionError("no error was raised")


def interrupted(t):
    y = (failing(np.exp(t)) * t).sum()
    expecting(KeyError, y.backward)
    expecting(RuntimeError, y.backward)
    return y


def anomalous(t):
    with detect_anomaly():
        h = np.exp(t)
        expecting(FloatingPointError, lambda: np.log(h - 100.0))
        y = np.sqrt(h * 0.0).sum()
        expecting(FloatingPointError, y.backward)
        return h * 2.0


def watched(t):
    with detect_anomaly():
        y = (soft(np.exp(t)) * t).sum()
        y.backward()
    return y


def twice(t, f):
    (g,) = gradients(f(t).sum(), [t], create_graph=True)
    return gradients((g * g).sum(), [t]), g


GRAPHS = {
    "forward": lambda t: (np.sin(t) * t + np.exp(t)).sum(),
    "backward": lambda t: [y := (np.tanh(t) / t).sum(), y.backward()],
    "second order": lambda t: gradients((t * np.exp(t)).sum(), [t], create_graph=True),
    "differentiated twice": lambda t: twice(t, lambda t: t * np.exp(t)),
    "fused": lambda t: [y := soft(t * 2.0).sum(), y.backward()],
    "recomputed": lambda t: [y := recompute(lambda t: np.exp(t) * t, t).sum(), y.backward()],
    "vjp": lambda t: [back := vjp(lambda x: x * t, t)[1], back(A), back(B)],
    "hvp": lambda t: mg.hvp(lambda x: (x**3 * t).sum(), t, A),
    "watched": watched,
    "a graph": lambda t: [y := (np.exp(t) * t).sum(), graph(y, grads=True)],
    "a nan": anomalous,
    "an error in a vjp": interrupted,
}


@pytest.mark.parametrize("build", GRAPHS.values(), ids=GRAPHS)
def test_a_graph_is_freed_with_its_last_result_without_the_garbage_collector(build, monkeypatch):
    t = leaf()
    with np.errstate(all="ignore"), watching(monkeypatch, build) as alive:
        result = build(t)
        assert alive
        del result  # the leaf lives on, and nothing else does
        assert [ref() for ref in alive if ref() is not None] == []
        assert gc.collect() == 0  # not one object that only a search would have found


def test_what_a_vjp_does_not_need_is_gone_before_the_pass():
    t = leaf()
    h = np.exp(t)
    gone = weakref.ref(h), weakref.ref(h.data)
    y = h + 1.0  # needs no value of h, but its node has h as an input
    del h
    assert gone[0]() is not None
    y.backward(A)
    assert [ref() for ref in gone] == [None, None]
    assert t.grad is not None


def test_without_a_record_nothing_is_kept_alive():
    with mg.no_grad():
        h = np.exp(leaf())
        gone = weakref.ref(h), weakref.ref(h.data)
        h = h * h
    assert [ref() for ref in gone] == [None, None]


# ---------------------------------------------------------------- how deep it may be


def chain(step, n, x):
    y = x
    for _ in range(n):
        y = step(y, x)
    return y


STEPS = {
    "add": (lambda y, x: y + x, 100_000, 100_001.0),
    "multiply": (lambda y, x: y * x, 20_000, 20_001.0),  # x is 1, so ∂xⁿ⁺¹/∂x = n + 1
    "softmax": (lambda y, x: ops.softmax(y) * x, 5_000, 1.0),
}


@pytest.mark.parametrize(("step", "n", "slope"), STEPS.values(), ids=STEPS)
def test_up_to_100_000_operations_go_forward_and_backward_and_are_freed(step, n, slope):
    x = leaf(1.0)
    y = chain(step, n, x)
    y.backward(retain_graph=True)
    assert x.grad == slope
    gone = weakref.ref(y.node.inputs[0])
    del y  # it was kept, so all its nodes fall at once
    assert gone() is None


def test_a_node_is_not_freed_inside_of_a_newer_one_which_a_small_stack_would_not_survive():
    gone = []
    y = leaf(1.0)
    for i in range(10):
        factor = np.array(2.0)  # the VJPs hold it, which fall after the node's inputs
        weakref.finalize(factor, gone.append, i)
        y = y * factor
        del factor
    del y
    # The newest node begins, and so ends last. (One inside of another, it would be 0 to 9.)
    assert gone == [8, 7, 6, 5, 4, 3, 2, 1, 0, 9]


def test_a_result_that_a_finalizer_brings_back_says_that_its_record_is_gone():
    back = []

    class Keeper:
        def __init__(self, t):
            self.t = t
            self.circle = self

        def __del__(self):
            back.append(self.t)

    x = leaf([1.0, 2.0])
    Keeper((x * x).sum())
    gc.collect()
    with pytest.raises(RuntimeError, match=r"the record of sum \(\) was already dropped"):
        back[0].backward()


def test_5_000_operations_are_differentiated_twice_and_freed():
    n = 5_000
    x = leaf(1.0)
    (slope,) = gradients(chain(lambda y, x: y * x, n, x), [x], create_graph=True)
    assert slope.item() == n + 1
    (second,) = gradients(slope, [x], retain_graph=True)
    assert second == n * (n + 1)
    gone = weakref.ref(slope.node.inputs[0])
    del slope
    assert gone() is None


ASKED = {  # how the slope of f at 1 is asked for
    "grad": lambda f: grad(f)(1.0),
    "jvp": lambda f: mg.jvp(f, 1.0, 1.0)[1],
    "recomputed": lambda f: grad(lambda x: recompute(f, x))(1.0),
}


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)
def test_a_function_of_thousands_of_operations_has_every_derivative(ask):
    n = 3_000  # three times as deep as Python's own stack
    assert ask(lambda x: chain(lambda y, x: y * x, n, x)) == n + 1


def test_the_graph_of_20_000_operations_is_found_and_coloured_and_all_of_it_watched():
    drawn = graph(chain(lambda y, x: y + x, 20_000, leaf(1.0)))
    assert (len(drawn.vertices), len(drawn.links)) == (20_001, 40_000)
    with detect_anomaly():
        y = chain(lambda y, x: y + x, 3_000, leaf(1.0))
        drawn = graph(y, grads=True)
        y.backward()
    assert drawn.vertices[0].grad_rms == 3_001


# ---------------------------------------------------------------- how many paths there may be

DOUBLES = {  # step, and ∂y/∂x, ∂²y/∂x² at 1 after n steps
    "multiply": (lambda y: y * y, lambda n: (2.0**n, 2.0**n * (2.0**n - 1))),  # x to the 2ⁿ
    "in blocks": (
        lambda y: recompute(lambda y: y * y * 1.0, y),
        lambda n: (2.0**n, 2.0**n * (2.0**n - 1)),
    ),
}


@pytest.mark.parametrize(("double", "slopes"), DOUBLES.values(), ids=DOUBLES)
def test_2_to_the_18_paths_are_walked_twice_and_drawn(double, slopes):
    n = 18
    x = leaf(1.0)
    y = x
    for _ in range(n):
        y = double(y)
    first, second = slopes(n)
    (found,) = gradients(y, [x], retain_graph=True)
    np.testing.assert_allclose(found, first, rtol=1e-9)
    drawn = graph(y, grads=True)
    assert len(drawn.vertices) <= 9 * n + 1 and len(drawn.links) <= 12 * n
    (slope,) = gradients(y, [x], create_graph=True)
    np.testing.assert_allclose(slope.data, first, rtol=1e-9)
    np.testing.assert_allclose(gradients(slope, [x])[0], second, rtol=1e-9)


def test_a_wide_graph_is_as_fine_as_a_deep_one():
    x = leaf(1.0)
    y = ops.concatenate([(x * 2.0).reshape(1) for _ in range(10_000)]).sum()
    y.backward()
    assert x.grad == 20_000
    assert sum(type(o) is mg.Node for o in gc.get_objects()) < 10
