"""Chapter 2.1 · Replay: order, contributions, where a pass ends, and what changes in between."""

import contextlib
import itertools
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import mutually_broadcastable_shapes
from numpy.lib.stride_tricks import sliding_window_view

import minigrad
from minigrad import concatenate, gradients, primitive, recompute
from minigrad.engine.replay import contributions, replay
from tests.making import CHANGES, NOT_OF_P, A, B, change, leaf


def copy_with(vjp):
    """Return an operation that copies its input forward, and goes back as the test needs."""
    return primitive(lambda x, /: (x.copy(), vjp))


# ---------------------------------------------------------------- value


USES = {
    "x · x": (lambda x: x * x, 6.0),
    "three times": (lambda x: x * x + x, 7.0),
    "b = a + a, c = b + b": (lambda x: (b := x + x) + b, 4.0),
    "x⁴": (lambda x: (h := x * x) * h, 108.0),
    "diamonds": (lambda x: (h := x * x) * x + (h + x) * (h - x), 129.0),  # x³ + x⁴ - x²
    "x - x": (lambda x: x - x, 0.0),
    "a mask has no gradient": (lambda x: np.where(x, x * x, 0.0), 6.0),
}


@pytest.mark.parametrize(("f", "slope"), USES.values(), ids=USES)
def test_a_tensor_used_more_than_once_receives_the_sum_of_its_contributions(f, slope):
    x = leaf(3.0)
    f(x).backward()
    assert x.grad == slope


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99), st.booleans()), min_size=1))
def test_any_graph_gives_the_derivative_that_dual_numbers_give(steps):
    tensors, duals = [leaf(1.25)], [(1.25, 1.0)]  # (value, ∂/∂x), carried forward alongside
    for i, j, product in steps[:7]:
        a, b = tensors[i % len(tensors)], tensors[j % len(tensors)]
        (u, du), (v, dv) = duals[i % len(duals)], duals[j % len(duals)]
        tensors.append(a * b if product else a - b)
        duals.append((u * v, du * v + u * dv) if product else (u - v, du - dv))
    tensors[-1].backward()
    np.testing.assert_allclose(tensors[0].grad, duals[-1][1], rtol=1e-9, atol=1e-9)


# ---------------------------------------------------------------- derivative


@given(mutually_broadcastable_shapes(num_shapes=2, max_dims=4, min_side=0, max_side=5))
def test_every_broadcast_is_summed_back_to_the_shapes_it_came_from(shapes):
    rng = np.random.default_rng(0)
    a, b = (leaf(rng.standard_normal(shape)) for shape in shapes.input_shapes)
    y = a * b
    g = rng.standard_normal(y.shape)
    assert y.shape == shapes.result_shape
    for x, other in ((a, b), (b, a)):
        # Number the elements of x. NumPy carries the numbers to where the copies go.
        source = np.broadcast_to(np.arange(x.size).reshape(x.shape), y.shape)
        shares = (g * other.data).ravel()
        expected = np.bincount(source.ravel(), shares, minlength=x.size).reshape(x.shape)
        (plain,) = gradients(y, [x], g, retain_graph=True)
        (recorded,) = gradients(y, [x], g, create_graph=True)
        for found in (plain, recorded.data):
            assert found.shape == x.shape
            np.testing.assert_allclose(found, expected, atol=1e-12)


# ---------------------------------------------------------------- law


def stretches(shape, to):
    try:
        return np.broadcast_to(np.ones(shape), to).shape == to
    except ValueError:
        return False


SHAPES = [shape for n in range(4) for shape in itertools.product((1, 2, 3), repeat=n)]


@pytest.mark.parametrize("y", [(), (3,), (1, 3), (2, 3)], ids=str)
def test_a_gradient_is_summed_to_the_inputs_shape_only_within_the_output(y):
    for x, g in itertools.product(SHAPES[:13], SHAPES):
        t = leaf(np.ones(x))
        given_g = primitive(lambda a, /, g=g: (np.zeros(y), lambda *_: np.ones(g)))
        try:
            (found,) = gradients(given_g(t), [t], np.ones(y))
        except ValueError as error:
            assert "which is neither the input's" in str(error)
            assert not (stretches(x, g) and stretches(g, y))
        else:
            assert found.shape == x and stretches(x, g)
            assert found.size == 0 or found.sum() == np.prod(g)
            in_front = g[: len(g) - len(x)]
            assert all(n in (1, y[len(y) - len(g) + i]) for i, n in enumerate(in_front))


def test_memory_is_returned_while_the_pass_is_still_going_on():
    results, alive = [], []

    def vjp(g, y):
        alive.append(sum(ref() is not None for ref in results))
        return g

    step = copy_with(vjp)
    y = leaf()
    for _ in range(7):
        y = step(y)
        results.append(weakref.ref(y.data))
    y.backward(A)
    # The root is ours, the current result is y of its VJP, and above it all others are gone.
    assert alive == [7, 7, 6, 5, 4, 3, 2]
    assert [ref() is not None for ref in results] == [False] * 6 + [True]


@primitive
def square(x, /):
    held = x[...]  # a rule may hold its input as a view,
    return x * x, lambda g, y: 2 * g * held


@primitive
def square_by_copy(x, /):
    twice = 2 * x  # or what it has made of the input
    return x * x, lambda g, y: g * twice


@primitive
def windows(x, /):
    return (
        lambda: sliding_window_view(x, 2),
        lambda g, y: concatenate([g[:, 0], [0.0]]) + concatenate([[0.0], g[:, 1]]),
    )


NEEDS = {  # each needs its input on the way back
    "product": lambda x: x * x,
    "held": square,
    "copied": square_by_copy,
    "matmul": lambda x: x.reshape(1, -1) @ x.reshape(-1, 1),
    "log": np.log,
}
VIEWS = {
    "itself": lambda p: p,
    "slice": lambda p: p[1:],
    "broadcast_to": lambda p: np.broadcast_to(p, (2, 3)),
    "windows": windows,
}


@pytest.mark.parametrize("how", CHANGES)
@pytest.mark.parametrize("f", NEEDS.values(), ids=NEEDS)
def test_after_a_change_the_gradient_is_that_of_the_forward_pass_watched_or_not(how, f):
    for view in VIEWS.values():
        p = leaf(A, "p")
        (expected,) = gradients(f(view(p)).sum(), [p])
        for context in (contextlib.nullcontext(), minigrad.detect_anomaly()):
            p = leaf(A, "p")
            with context:
                y = f(view(p)).sum()
            change(p, how)
            np.testing.assert_array_equal(gradients(y, [p])[0], expected)


@pytest.mark.parametrize("how", CHANGES)
@pytest.mark.parametrize("f", [lambda p: p * p, lambda p: np.exp(p * p), lambda p: p + p])
def test_after_a_change_only_a_gradient_that_is_to_be_differentiated_is_refused(f, how):
    p = leaf(A, "p")
    y = f(p).sum()
    change(p, how)
    if how in NOT_OF_P:
        (recorded,) = gradients(y, [p], create_graph=True)
        np.testing.assert_array_equal(recorded.data, gradients(y, [p])[0])
        return
    words = r"^(add|multiply) cannot be differentiated again: 'p' \(3,\) was changed after the forw"
    with pytest.raises(RuntimeError, match=words):
        gradients(y, [p], create_graph=True)
    y.backward()  # and the record is as it was
    assert p.grad is not None


@given(st.integers(0, 2**32 - 1))
def test_the_order_of_time_is_an_order_of_the_record_whatever_is_done_with_it(seed):
    """A tensor passes its gradient on only after all results of it have contributed."""
    rng = np.random.default_rng(seed)
    tensors = [leaf(1.5, "a"), leaf(2.5, "b")]
    for _ in range(12):
        a, b = (tensors[i] for i in rng.integers(len(tensors), size=2))
        results = [np.tanh(a * b), np.sin(-a), (a - b).detach() * b, recompute(np.tanh, +a)]
        tensors.append(results[rng.integers(4)])
        if rng.random() < 0.3:
            tensors[0].data = rng.normal()  # newer than what was made of it
    root = tensors[-1] + sum(tensors)
    done, waiting, gradients_of = set(), {root}, {root: np.array(1.0)}
    while waiting:
        t = max(waiting, key=lambda t: t._time)
        waiting.remove(t)
        done.add(t)
        for x, _, contribution in contributions(t, gradients_of[t]):
            assert x not in done
            gradients_of[x] = gradients_of.get(x, 0) + contribution
            if x.node is not None:
                waiting.add(x)
    found = replay(root, np.array(1.0))
    assert all(found[t] == gradients_of[t] for t in tensors[:2] if t in found)


# ---------------------------------------------------------------- refusal


def test_an_exception_half_way_leaves_every_grad_and_is_remembered():
    def fails(g, y):
        raise KeyError("half-way")

    a, b = leaf(), leaf(B)
    b.grad = B.copy()
    y = (copy_with(fails)(a) * b).sum()
    with pytest.raises(KeyError, match="half-way"):
        y.backward()
    assert a.grad is None
    np.testing.assert_array_equal(b.grad, B)
    with pytest.raises(RuntimeError, match="was already dropped"):
        y.backward()
