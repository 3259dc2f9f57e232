"""Chapter 1.2 · Record."""

import contextlib
import gc
import threading
import weakref

import numpy as np
import pytest

from minigrad import Tensor, grad, gradcheck, gradients, no_grad, ops, primitive, record

A = np.array([0.3, 0.7, 1.1])
B = np.array([1.9, -0.4, 0.6])


def leaf(values=A, name="t"):
    return Tensor(values, requires_grad=True, name=name)


# Written by someone outside of minigrad. NumPy's sine does not take Tensors, so the first two
# return their value as a function.


@primitive
def sine(x, /):
    return lambda: np.sin(x), lambda g, y: g * cosine(x)


@primitive
def cosine(x, /):
    return lambda: np.cos(x), lambda g, y: -g * sine(x)


@primitive
def scaled(a, b, /, factor=1.0, offset=0.0):
    return a * b * factor + offset, lambda g, y: g * b * factor, lambda g, y: g * a * factor


@primitive
def total(*xs):
    return sum(xs), *(lambda g, y: g for _ in xs)


# ---------------------------------------------------------------- value


def test_a_primitive_from_outside_computes_and_leaves_a_node_under_its_own_name():
    t = leaf()
    y = sine(t)
    np.testing.assert_array_equal(y.data, np.sin(A))
    assert (y.node.name, y.node.inputs, len(y.node.vjps)) == ("sine", (t,), 1)
    assert ops.concatenate([t, A]).node.name == "concatenate"  # the rule's name is _concatenate


def test_constants_are_kept_as_arrays_and_options_by_name():
    t = leaf()
    y = scaled(2, t, 3.0, offset=1.0)
    np.testing.assert_array_equal(y.data, A * 2 * 3 + 1)
    constant, kept = y.node.inputs
    assert type(constant) is np.ndarray and kept is t
    assert y.node.options == {"factor": 3.0, "offset": 1.0}


@pytest.mark.parametrize("operation", [sine, cosine, ops.exp, ops.sum, lambda x: total(x, 2.0)])
def test_arrays_give_an_array_and_constant_tensors_a_constant_tensor(operation):
    for x in (A, A.tolist(), 0.5):
        assert type(operation(x)) is np.ndarray
    y = operation(Tensor(A))
    assert type(y) is Tensor and y.node is None and not y.requires_grad


def test_a_value_given_as_a_function_is_called_once_and_on_arrays_only():
    seen = []

    @primitive
    def doubled(x, /):
        return (lambda: seen.append(type(x)) or 2 * x), lambda g, y: 2 * g

    t = leaf()
    (g,) = gradients(doubled(t), [t], A, create_graph=True)
    assert seen == [np.ndarray]
    np.testing.assert_array_equal(g.data, 2 * A)


# ---------------------------------------------------------------- derivative


@pytest.mark.parametrize("operation", [sine, cosine, lambda a: scaled(a, a, 3), total])
def test_rules_from_outside_are_right_to_second_order(operation):
    assert gradcheck(operation, A)


def test_a_variadic_rule_has_a_vjp_for_each_tensor():
    a, b, c = leaf(), leaf(), leaf()
    total(a, b, a, c).backward(A)
    np.testing.assert_allclose([a.grad, b.grad, c.grad], [2 * A, A, A])


def test_a_rule_is_asked_again_with_tensors_only_when_the_derivative_is_recorded():
    asked = []

    @primitive
    def square(x, /):
        asked.append(type(x))
        return x * x, lambda g, y: g * x * 2

    t = leaf()
    y = square(t)
    gradients(y, [t], A, retain_graph=True)
    assert asked == [np.ndarray]
    (g,) = gradients(y, [t], A, create_graph=True)
    assert asked == [np.ndarray, Tensor]
    assert g.requires_grad and g.node.name == "multiply"


# ---------------------------------------------------------------- law


unchanged = primitive(lambda x, /: (x, lambda g, y: g))


@pytest.mark.parametrize("f", [np.exp, ops.sum, lambda t: t.T[1:], lambda t: t[0], unchanged])
def test_a_recorded_result_is_read_only_and_its_input_stays_writable(f):
    t = leaf()
    y = f(t)
    assert not y.data.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        y.data[...] = 0.0
    t.data -= 1.0
    np.testing.assert_array_equal(t.data, A - 1)


def test_a_leaf_that_requires_a_gradient_has_memory_of_its_own_and_a_constant_shares():
    mine = A.copy()
    constant, recorded, late = Tensor(mine), Tensor(mine, requires_grad=True), Tensor(mine)
    late.requires_grad = True
    mine += 1.0
    np.testing.assert_array_equal(constant.data, A + 1)
    np.testing.assert_array_equal([recorded.data, late.data], [A, A])
    assert np.shares_memory(recorded.detach().data, recorded.data)


def test_no_grad_is_a_context_and_a_decorator_and_ends_with_an_exception():
    t = leaf()

    @no_grad()
    def silent():
        return sine(t)

    for _ in range(2):
        y = silent()
        assert y.node is None and not y.requires_grad and record.is_recording()
    with no_grad():
        with no_grad():
            pass
        assert not sine(t).requires_grad
    with contextlib.suppress(KeyError), no_grad():
        raise KeyError
    assert sine(t).requires_grad


def test_no_grad_silences_its_own_thread_and_no_other():
    t, barrier, recorded = leaf(), threading.Barrier(2, timeout=5), {}

    def work(name, context):
        with context:
            barrier.wait()  # each thread is inside its own context before either computes
            recorded[name] = sine(t).requires_grad
            barrier.wait()

    cases = [("quiet", no_grad()), ("loud", contextlib.nullcontext())]
    threads = [threading.Thread(target=work, args=case) for case in cases]
    with no_grad():  # nor does the thread that starts them silence them
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert recorded == {"quiet": False, "loud": True}


def refused(t):
    h = sine(t)
    try:
        return h + np.ones(7)
    except ValueError:
        return sine(h)


GRAPHS = {
    "forward": lambda t: (sine(t) * t + np.exp(t)).sum(),
    "views": lambda t: np.broadcast_to(t.reshape(3, 1).T, (5, 3))[1:],
    "backward": lambda t: [y := (np.tanh(t) / t).sum(), y.backward()],
    "kept": lambda t: [y := (ops.softmax(t) ** 2).sum(), y.backward(retain_graph=True)],
    "second order": lambda t: gradients((t * np.exp(t)).sum(), [t], create_graph=True),
    "nested": lambda t: grad(grad(lambda x: (np.tanh(x) * t).sum()))(0.5),
    "refused": refused,
}


@pytest.mark.parametrize("build", GRAPHS.values(), ids=GRAPHS)
def test_a_graph_is_freed_with_its_last_result_without_the_garbage_collector(build, monkeypatch):
    alive = []  # a weak reference to every result, and to its array
    wrap = record._wrap

    def watched(array, *rest):
        t = wrap(array, *rest)
        alive.extend([weakref.ref(t), weakref.ref(array)])
        return t

    monkeypatch.setattr(record, "_wrap", watched)
    gc.disable()
    try:
        result = build(leaf())
        assert sum(ref() is not None for ref in alive) >= 2
        del result
        assert [ref() for ref in alive if ref() is not None] == []
    finally:
        gc.enable()


def test_without_a_record_nothing_is_kept_alive():
    t = leaf()
    with no_grad():
        h = np.exp(t)
        gone = weakref.ref(h), weakref.ref(h.data)
        h = h * h
        assert [ref() for ref in gone] == [None, None]


# ---------------------------------------------------------------- refusal


def wrong(rule):
    rule.__name__ = "wrong"
    return primitive(rule)


WRONG_COUNTS = {
    "none": lambda a, b, /: (a * b,),
    "too few": lambda a, b, /: (a * b, lambda g, y: g * b),
    "too many": lambda a, b, /: (a * b, *[lambda g, y: g] * 3),
}


@pytest.mark.parametrize("rule", WRONG_COUNTS.values(), ids=WRONG_COUNTS)
def test_a_wrong_number_of_vjps_is_one_sentence(rule):
    words = r"^the rule wrong must return one VJP for each of its 2 tensor inputs, but [^.]*$"
    with pytest.raises(TypeError, match=words):
        wrong(rule)(leaf(), 2.0)


@pytest.mark.parametrize("shape", [(), (2,), (3,)])
@pytest.mark.parametrize("requires_grad", [True, False])
def test_a_rule_that_returns_its_value_alone_is_refused_and_not_unpacked(requires_grad, shape):
    t = Tensor(np.ones(shape), requires_grad=requires_grad)
    with pytest.raises(TypeError, match="the rule wrong must return"):
        wrong(lambda a, b, /: a * b)(t, 2.0)


def test_a_rule_that_names_no_tensor_is_refused_when_it_is_decorated():
    for rule in (lambda x: (x, None), lambda x, axis=0: (x, None), lambda *, x: (x, None)):
        with pytest.raises(TypeError, match="wrong names no tensor input.*before a '/'"):
            wrong(rule)


def test_a_rule_that_reaches_for_a_tensor_outside_is_refused():
    w = leaf(B, "w")
    in_its_closure = wrong(lambda x, /: (x * w, lambda g, y: g))
    among_its_options = wrong(lambda x, /, factor: (x * factor, lambda g, y: g))
    for call in (lambda: in_its_closure(leaf()), lambda: among_its_options(leaf(), w)):
        with pytest.raises(TypeError, match="wrong got arrays and returned a Tensor.*its inputs"):
            call()


def test_a_value_that_only_arrays_can_say_is_refused_when_the_rule_is_asked_with_tensors():
    t = leaf()
    y = wrong(lambda x, /: (np.spacing(x), lambda g, y: g))(t)
    with pytest.raises(TypeError, match=r"np.spacing has no rule[\s\S]*return it as a function"):
        gradients(y, [t], A, create_graph=True)


CALLS = {
    "too many arguments": (lambda t: scaled(t, t, 1, 2, 3), TypeError, "scaled.*but 5 were given"),
    "no options at all": (lambda t: sine(t, 1.0), TypeError, "sine.*but 2 were given"),
    "an option twice": (lambda t: scaled(t, t, 1.0, factor=2.0), TypeError, "scaled.*'factor'"),
    "too few arguments": (lambda t: scaled(t), TypeError, "scaled.*'b'"),
    "shapes": (lambda t: t * np.ones(7), ValueError, r"^multiply of 't' \(3,\) and \(7,\): "),
    "an index": (lambda t: t[7], IndexError, r"^getitem of 't' \(3,\): index 7 is out of bounds"),
    "an axis": (lambda t: t.sum(axis=2), ValueError, r"^sum of 't' \(3,\): axis 2 is out of"),
}


@pytest.mark.parametrize(("call", "error", "words"), CALLS.values(), ids=CALLS)
def test_a_call_that_does_not_fit_is_explained_with_the_operation_and_its_inputs(
    call, error, words
):
    with pytest.raises(error, match=words):
        call(leaf())
