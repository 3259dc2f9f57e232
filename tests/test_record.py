"""Chapter 1.2 · Record: nodes, whose memory is whose, and when nothing is recorded."""

import contextlib
import functools
import re
import threading

import numpy as np
import pytest

from minigrad import Node, Tensor, no_grad, ops, primitive, recompute
from minigrad.engine import record
from tests.making import A, B, leaf
from tests.threads import in_threads

# ---------------------------------------------------------------- value


def test_a_node_says_which_rule_ran_on_which_inputs_with_which_options():
    t = leaf()
    h = np.exp(t)
    y = ops.sum(h, axis=0, keepdims=True)
    assert type(y.node) is Node and y.node.name == "sum" and y.node.rule is ops.sum.__wrapped__
    assert y.node.inputs == (h,) and h.node.inputs == (t,) and t.node is None
    assert y.node.options == {"axis": 0, "keepdims": True} and h.node.options == {}
    assert (len(y.node.vjps), y.node.spent, y.node.watch) == (1, False, None)
    np.testing.assert_array_equal(y.node.vjps[0](np.array([2.0]), y.data), [2.0, 2.0, 2.0])


def test_a_node_has_the_name_that_numpy_uses():
    t = leaf()
    results = [t[0], np.concatenate([t, t]), np.einsum("i->", t), np.abs(t)]
    assert [y.node.name for y in results] == ["getitem", "concatenate", "einsum", "abs"]


def test_constants_are_among_a_nodes_inputs_as_tensors_that_nobody_can_write():
    t, c = leaf(), Tensor(B)
    assert (t * c).node.inputs == (t, c)
    for constant in (3, 3.0, np.float32(3), [3.0, 5.0, 7.0], B, np.float64(3.0), B[::-1]):
        first, kept = (constant * t).node.inputs
        assert type(first) is Tensor and first.node is None and not first.requires_grad
        assert kept is t and not first.data.flags.writeable
        np.testing.assert_array_equal(first.data, constant)
    assert B.flags.writeable


# ---------------------------------------------------------------- law

unchanged = primitive(lambda x, /: (x, lambda g, y: g))
second = primitive(lambda a, b, /: (b, lambda g, y: 0 * g, lambda g, y: g))
RESULTS = {
    "exp": np.exp,
    "sum": ops.sum,
    "a view of a view": lambda t: t.T[1:],
    "its input": unchanged,
    "its other input, an array": lambda t: second(t, B),
    "its other input, a number": lambda t: second(t, 3.0),
    "a recomputed one": lambda t: recompute(lambda t: t, t),
    "detached": lambda t: t.detach(),
}


@pytest.mark.parametrize("f", RESULTS.values(), ids=RESULTS)
def test_every_result_is_read_only_and_no_array_of_the_callers_becomes_so(f):
    for requires_grad, context in [
        (True, no_grad()),
        (True, record.recording()),
        (False, no_grad()),
    ]:
        mine = A.copy()
        t = Tensor(mine, requires_grad=requires_grad)
        with context:
            y = f(t)
        for array in (y.data, t.data, y.detach().data):
            assert not array.flags.writeable
        assert mine.flags.writeable and B.flags.writeable


def test_an_operation_on_arrays_alone_gives_and_leaves_arrays_that_can_be_written():
    mine = A.copy()
    for y in (ops.add(mine, 1.0), unchanged(mine), second(B, mine), ops.softmax(mine)):
        assert type(y) is np.ndarray and y.flags.writeable
    assert mine.flags.writeable


@pytest.mark.parametrize("decorate", [no_grad, no_grad()], ids=["@no_grad", "@no_grad()"])
def test_no_grad_is_a_decorator_with_and_without_parentheses(decorate):
    t = leaf()

    @decorate
    def area(width, /, height=2.0, *rest, scale=1.0):
        """Return a rectangle's area."""
        return width * height * scale, rest

    for _ in range(2):
        y, rest = area(t, 5.0, "more", scale=7.0)
        assert y.node is None and not y.requires_grad and rest == ("more",)
        np.testing.assert_array_equal(y.data, A * 5.0 * 7.0)
        assert record.is_recording()
    assert (area.__name__, area.__doc__) == ("area", "Return a rectangle's area.")


def test_no_grad_is_a_context_that_nests_and_ends_with_an_exception():
    t = leaf()
    with no_grad():
        with no_grad():
            assert not record.is_recording()
        assert not np.exp(t).requires_grad
        with record.recording():
            assert np.exp(t).requires_grad
        assert not record.is_recording()
    assert record.is_recording()
    with contextlib.suppress(KeyError), no_grad():
        raise KeyError
    assert np.exp(t).requires_grad
    with pytest.raises(KeyError):
        no_grad(lambda: {}["no key"])()
    assert record.is_recording()


def test_no_grad_silences_its_own_thread_and_no_other():
    t, barrier = leaf(), threading.Barrier(2, timeout=5)

    def recorded(context):
        with context:
            barrier.wait()  # each thread is inside its own context before any computes
            found = np.exp(t).requires_grad
            barrier.wait()
        return found

    with no_grad():  # nor does the thread that starts them silence them
        tasks = [functools.partial(recorded, c) for c in (no_grad(), contextlib.nullcontext())]
        assert in_threads(*tasks) == [False, True]
    assert record.is_recording()


def test_a_generator_that_pauses_inside_no_grad_leaves_recording_off_in_its_caller():
    """(As in PyTorch.)"""

    def paused():
        with no_grad():
            yield

    steps = paused()
    next(steps)
    assert not record.is_recording()
    assert next(steps, "done") == "done" and record.is_recording()


# ---------------------------------------------------------------- refusal


def generator():
    yield 1


async def coroutine():
    return 1


async def both():
    yield 1


@pytest.mark.parametrize("function", [generator, coroutine, both, functools.partial(both)])
def test_no_grad_refuses_what_pauses_in_the_middle(function):
    name = getattr(function, "__name__", str(function))
    words = rf"^{re.escape(name)} pauses in the middle, .*: write `with no_grad\(\):` inside it$"
    with pytest.raises(TypeError, match=words):
        no_grad(function)
