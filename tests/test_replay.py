"""Chapter 2.1 · Replay: order, shares, borders, and hooks on the way."""

import functools
import re
import threading
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import mutually_broadcastable_shapes
from numpy.lib.stride_tricks import sliding_window_view

from minigrad import (
    Tensor,
    concatenate,
    fused,
    gradcheck,
    gradients,
    no_grad,
    primitive,
    recompute,
)

A = np.array([0.3, 0.7, 1.1])
B = np.array([1.9, -0.4, 0.6])


def leaf(values=A, name="t"):
    return Tensor(values, requires_grad=True, name=name)


def copy_with(vjp):
    """An operation that copies its input forward, and goes back as the test needs."""
    return primitive(lambda x, /: (x.copy(), vjp))


# ---------------------------------------------------------------- value


SHARES = {
    "x · x": (lambda x: x * x, 6.0),
    "three times": (lambda x: x * x + x, 7.0),
    "b = a + a, c = b + b": (lambda x: (b := x + x) + b, 4.0),
    "x⁴": (lambda x: (h := x * x) * h, 108.0),
    "diamonds": (lambda x: (h := x * x) * x + (h + x) * (h - x), 129.0),  # x³ + x⁴ - x²
    "x - x": (lambda x: x - x, 0.0),
    "a mask has no share": (lambda x: np.where(x, x * x, 0.0), 6.0),
}


@pytest.mark.parametrize(("f", "slope"), SHARES.values(), ids=SHARES)
def test_a_tensor_used_more_than_once_receives_the_sum_of_its_shares(f, slope):
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


@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 1), (2, 3), (1, 1, 3)])
def test_broadcasting_is_right_to_second_order(shape):
    x = np.linspace(0.5, 1.5, np.prod(shape, dtype=int)).reshape(shape)
    assert gradcheck(lambda a, b: a * b / (a + b), x, np.ones((2, 3)) + A)


# ---------------------------------------------------------------- law


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


NEEDS_NO_OLD_VALUE = {
    "add": lambda p, q: p + q * 1.0,
    "reshape": lambda p, q: p.reshape(3, 1),
    "exp keeps its output": lambda p, q: np.exp(p),
    "the numerator": lambda p, q: p / q,
}


@pytest.mark.parametrize("f", NEEDS_NO_OLD_VALUE.values(), ids=NEEDS_NO_OLD_VALUE)
def test_a_write_between_the_passes_is_fine_where_no_vjp_needs_the_old_values(f):
    p, q = leaf(A, "p"), leaf(B, "q")
    p.data -= 0.5
    q.data -= 0.5  # before the forward pass: every parameter has been written once
    (expected,) = gradients(f(p, q).sum(), [p])
    y = f(p, q).sum()
    p.data -= 0.5
    np.testing.assert_array_equal(gradients(y, [p])[0], expected)


def write(p):
    p.data -= 1.0


def replace(p):
    p.data = p.data - 1.0


CHANGES = {
    "write": write,
    "replace": replace,
    "write and replace": lambda p: (write(p), replace(p)),
    "write through detach": lambda p: write(p.detach()),
}


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


SQUARES = {"product": lambda x: x * x, "held": square, "copied": square_by_copy}
VIEWS = {
    "itself": lambda p: p,
    "reshape": lambda p: p.reshape(3, 1),
    "slice": lambda p: p[1:],
    "transpose of a view": lambda p: p.reshape(3, 1).T,
    "broadcast_to": lambda p: np.broadcast_to(p, (2, 3)),
    "windows": windows,
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("square", SQUARES.values(), ids=SQUARES)
@pytest.mark.parametrize("create_graph", [False, True])
def test_after_a_change_the_gradient_is_the_right_one_or_refused(
    view, change, square, create_graph
):
    p = leaf(A, "p")
    (expected,) = gradients(square(view(p)).sum(), [p])
    y = square(view(p)).sum()
    change(p)
    try:
        (found,) = gradients(y, [p], create_graph=create_graph)
    except RuntimeError as error:
        assert "cannot be replayed" in str(error)
    else:
        np.testing.assert_array_equal(found.data if create_graph else found, expected)


@pytest.mark.parametrize("detached", [lambda t: t.detach(), lambda t: np.exp(t).detach()])
def test_new_data_for_a_detached_tensor_disturbs_no_record(detached):
    t = leaf()
    y = (t * np.exp(t) * np.tanh(t)).sum()
    detached(t).data = np.zeros(3)
    y.backward()
    assert t.grad is not None


# ---------------------------------------------------------------- refusal


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
@pytest.mark.parametrize("square", [square, lambda x: x * x])
def test_a_write_is_noticed_if_a_vjp_holds_the_array_also_through_a_view(view, square):
    p = leaf(A, "p")
    y = square(view(p)).sum()
    write(p)
    words = r"^(multiply|square) cannot be replayed: .* was changed .* run the forward pass again"
    with pytest.raises(RuntimeError, match=words):
        y.backward()


def test_a_pass_through_a_dropped_record_is_one_error_and_through_a_kept_one_none():
    t = leaf()
    y = np.exp(t).sum()
    y.backward(retain_graph=True)
    y.backward()
    np.testing.assert_allclose(t.grad, 2 * np.exp(A))
    words = r"^the record of sum \(\) was .* by an earlier .* retain_graph=True$"
    with pytest.raises(RuntimeError, match=words):
        y.backward()


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
    with pytest.raises(RuntimeError, match="dropped by a pass that was interrupted"):
        y.backward()


WRONG_SHARES = {  # the output has shape (3,)
    "another shape": (A, lambda g, y: np.ones(5), r"gave shape \(5,\).*the input's \(3,\)"),
    "more axes than the output": (A, lambda g, y: np.ones((2, 3)), r"gave shape \(2, 3\)"),
    "fewer axes": (A, lambda g, y: np.ones(()), r"gave shape \(\)"),
    "a shorter axis": (A, lambda g, y: np.ones(1), r"gave shape \(1,\)"),
    "an axis stretched further": ([2.0], lambda g, y: np.ones(7), r"gave shape \(7,\)"),
    "nothing": (A, lambda g, y: None, "gave"),
    "a list": (A, lambda g, y: [1.0, 1.0, 1.0], "gave"),
}


@pytest.mark.parametrize(("values", "vjp", "words"), WRONG_SHARES.values(), ids=WRONG_SHARES)
def test_a_result_of_a_vjp_that_broadcasting_cannot_explain_is_refused(values, vjp, words):
    y = primitive(lambda x, /: (x + np.zeros(3), vjp))(leaf(values))
    with pytest.raises((ValueError, TypeError), match="^the VJP of .* for input 0 " + words):
        y.backward(A)


def test_of_two_passes_over_one_trunk_none_is_silently_wrong():
    p = leaf(A, "p")
    trunk = p
    for _ in range(300):
        trunk = trunk + 1.0
    losses = [trunk.sum(), (trunk * 2.0).sum()]
    answers = []

    def ask(loss):
        try:
            answers.append(gradients(loss, [p])[0][0])
        except RuntimeError as error:
            answers.append(str(error))

    threads = [threading.Thread(target=ask, args=(loss,)) for loss in losses]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 2
    assert all(a in (1.0, 2.0) if not isinstance(a, str) else "dropped" in a for a in answers)


def test_a_pass_inside_a_vjp_that_drops_the_record_below_is_noticed():
    p = leaf(A, "p")
    trunk = np.exp(p)
    total = trunk.sum()

    @primitive
    def meddling(x, /):
        return x * 2.0, lambda g, y: [gradients(total, [p]), g * 2.0][1]

    with pytest.raises(RuntimeError, match="dropped"):
        meddling(trunk).sum().backward()
    assert p.grad is None


HOLDERS = {
    "default": lambda x: lambda g, y, x=x: 2 * g * x,
    "partial": lambda x: functools.partial(lambda x, g, y: 2 * g * x, x),
    "tuple": lambda x: (lambda held: lambda g, y: 2 * g * held[0])((x,)),
    "inner function": lambda x: (lambda inner: lambda g, y: inner(g))(lambda g: 2 * g * x),
}


@pytest.mark.parametrize("vjp", HOLDERS.values(), ids=HOLDERS)
def test_a_write_is_noticed_wherever_a_vjp_holds_the_array(vjp):
    @primitive
    def squared(x, /):
        return x * x, vjp(x)

    p = leaf(A, "p")
    y = squared(p).sum()
    p.data *= 10
    with pytest.raises(RuntimeError, match="squared cannot be replayed"):
        y.backward()


# ---------------------------------------------------------------- hooks: value


def test_a_hook_is_called_once_when_all_shares_are_in():
    x, seen = leaf(), []
    h = np.exp(x)
    h.register_hook(lambda g: seen.append(g.copy()))
    (h * h + h * B).sum().backward()
    np.testing.assert_allclose(seen, [2 * np.exp(A) + B])
    np.testing.assert_allclose(x.grad, (2 * np.exp(A) + B) * np.exp(A))


def test_hooks_are_called_in_the_order_they_were_registered_from_the_root_to_the_leaves():
    x, called = leaf(), []
    h = x * 2.0
    y = (h * h).sum()
    for name, t in [("leaf", x), ("root", y), ("h", h), ("h again", h), ("leaf again", x)]:
        t.register_hook(lambda g, name=name: called.append(name))
    y.backward()
    assert called == ["root", "h", "h again", "leaf", "leaf again"]


def test_what_a_hook_returns_takes_the_gradients_place_for_the_next_hook_and_all_below():
    x = leaf()
    h = x * 2.0
    seen = []
    h.register_hook(lambda g: g.clip(-1.0, 1.0))
    h.register_hook(lambda g: seen.append(g))
    h.register_hook(lambda g: 10.0 * g)
    (h * B).sum().backward()
    np.testing.assert_array_equal(seen, [B.clip(-1.0, 1.0)])
    np.testing.assert_array_equal(x.grad, 20.0 * B.clip(-1.0, 1.0))


REPLACEMENTS = {
    "a list": lambda g: [1, 2, 3],
    "integers": lambda g: np.array([1, 2, 3]),
    "float32": lambda g: np.array([1, 2, 3], np.float32),
    "a tensor": lambda g: Tensor([1.0, 2.0, 3.0]),
}


@pytest.mark.parametrize("hook", REPLACEMENTS.values(), ids=REPLACEMENTS)
@pytest.mark.parametrize("at", ["leaf", "result", "root"])
def test_a_hook_may_return_anything_of_the_right_shape(hook, at):
    x = leaf()
    h = x * 1.0
    y = h * 1.0
    {"leaf": x, "result": h, "root": y}[at].register_hook(hook)
    y.backward(B)
    assert type(x.grad) is np.ndarray and x.grad.flags.writeable
    np.testing.assert_array_equal(x.grad, [1.0, 2.0, 3.0], strict=True)


def test_a_0d_hook_gets_an_array_and_may_return_a_number():
    x, kinds = leaf(3.0), []
    x.register_hook(lambda g: kinds.append((type(g), g.shape)))
    x.register_hook(lambda g: 7.0)
    (x * x + x).backward()
    assert kinds == [(np.ndarray, ())]
    assert type(x.grad) is np.ndarray and x.grad == 7.0


def test_a_hook_stays_for_every_pass_until_it_is_removed():
    x, seen = leaf(), []
    hook = x.register_hook(lambda g: seen.append(1))
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward(retain_graph=True)
    assert len(seen) == 2
    hook.remove()
    y.backward(retain_graph=True)
    hook.remove()  # a second time does nothing
    y.backward()
    assert len(seen) == 2


def test_removing_one_hook_leaves_the_others_also_the_same_function():
    x, seen = leaf(), []
    first, second = x.register_hook(seen.append), x.register_hook(seen.append)
    other = x.register_hook(lambda g: seen.append("other"))
    first.remove()
    first.remove()
    (x * 1.0).sum().backward()
    assert len(seen) == 2
    second.remove()
    (x * 1.0).sum().backward()
    assert seen[2:] == ["other"]
    other.remove()


def test_a_hook_is_removed_also_after_retain_grad():
    x, seen = leaf(), []
    h = x * 1.0
    hook = h.register_hook(seen.append)
    h.retain_grad()
    hook.remove()
    h.sum().backward()
    assert seen == [] and h.grad is not None


def test_a_hook_may_remove_itself_or_register_another():
    x, seen = leaf(), []

    def once(g):
        seen.append("once")
        hook.remove()
        x.register_hook(lambda g: seen.append("later"))

    hook = x.register_hook(once)
    x.register_hook(lambda g: seen.append("second"))
    (x * 1.0).sum().backward()
    assert seen[:2] == ["once", "second"]
    (x * 1.0).sum().backward()
    assert seen.count("once") == 1 and seen[-2:] == ["second", "later"]


def test_hooks_on_what_leads_to_nothing_wanted_are_not_called():
    x, seen = leaf(), []
    aside, wanted = np.exp(x), x * 2.0
    aside.register_hook(lambda g: seen.append("aside"))
    x.register_hook(lambda g: seen.append("below"))
    wanted.register_hook(lambda g: 10.0 * g)
    (found,) = gradients((aside * wanted).sum(), [wanted])
    np.testing.assert_allclose(found, 10.0 * np.exp(A))
    assert seen == []


# ---------------------------------------------------------------- hooks: derivative


def test_with_a_recorded_gradient_a_hook_gets_tensors_everywhere():
    x, kinds = leaf(), []
    h = x + 1.0  # whose VJP computes nothing: g is still the seed
    y = (h * 2.0).sum()
    for t in (x, h, y):
        t.register_hook(lambda g: kinds.append(type(g)))
    gradients(y, [x], create_graph=True, retain_graph=True)
    assert kinds == [Tensor] * 3
    kinds.clear()
    gradients(y, [x])
    assert kinds == [np.ndarray] * 3


def test_what_a_hook_does_to_a_recorded_gradient_is_differentiated_too():
    x = leaf()
    h = x * x
    hook = h.register_hook(lambda g: g * g)  # ∂L/∂h = 3h² becomes 9x⁸, and ∂L/∂x = 18x⁹
    (slope,) = gradients((h**3).sum(), [x], create_graph=True)
    hook.remove()  # or it would be called in the next pass too
    np.testing.assert_allclose(slope.data, 18 * A**9, rtol=1e-14)
    np.testing.assert_allclose(gradients(slope, [x], np.ones(3))[0], 162 * A**8, rtol=1e-14)


@pytest.mark.parametrize("create_graph", [False, True])
def test_hooks_at_the_inputs_of_a_fused_rule_are_called_once_at_both_orders(create_graph):
    @fused(definition=lambda a, b: a * b + a)
    def both(a, b, /):
        return a * b + a, lambda g, y, needs: (g * b + g, g * a)

    x, w, called = leaf(), leaf(B, "w"), []
    h = np.exp(x)
    y = both(h, w)
    for name, t in [("x", x), ("w", w), ("h", h), ("y", y)]:
        t.register_hook(lambda g, name=name: called.append(name) or 2.0 * g)
    found = gradients(y, [x, w], np.ones(3), create_graph=create_graph)
    assert sorted(called) == ["h", "w", "x", "y"]
    expected = 2 * 2 * 2 * (B + 1) * np.exp(A), 2 * 2 * np.exp(A)
    for g, right in zip(found, expected, strict=True):
        np.testing.assert_allclose(g.data if create_graph else g, right, rtol=1e-14)


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("where", ["outside", "inside"])
def test_hooks_around_and_in_what_is_recomputed_are_called_once_at_both_orders(where, create_graph):
    x, w, called = leaf(), leaf(B, "w"), []

    def hook(name, factor):
        return lambda g: called.append(name) or factor * g

    def f(x):
        h = x * x
        if where == "inside":
            h.register_hook(hook("h", 3.0))
        return h * w

    t = np.exp(x)
    y = recompute(f, t)
    if where == "outside":
        for name, tensor in [("t", t), ("w", w), ("y", y)]:
            tensor.register_hook(hook(name, 2.0))
    found = gradients(y, [x, w], np.ones(3), create_graph=create_graph)
    assert sorted(called) == (["t", "w", "y"] if where == "outside" else ["h"])
    factors = (4.0, 4.0) if where == "outside" else (3.0, 1.0)
    expected = factors[0] * 2 * B * np.exp(2 * A), factors[1] * np.exp(2 * A)
    for g, right in zip(found, expected, strict=True):
        np.testing.assert_allclose(g.data if create_graph else g, right, rtol=1e-14)


# ---------------------------------------------------------------- hooks: retain_grad


def test_retain_grad_leaves_the_gradient_of_a_result_in_its_grad():
    x = leaf()
    h, unasked = np.exp(x), x * 2.0
    h.retain_grad()
    (h * h * unasked).sum().backward()
    np.testing.assert_allclose(h.grad, 2 * np.exp(A) * 2 * A)
    assert unasked.grad is None
    others = [x.grad, h.data, x.data]
    assert type(h.grad) is np.ndarray and h.grad.flags.writeable
    assert not any(np.may_share_memory(h.grad, other) for other in others)


def test_what_is_retained_accumulates_and_comes_after_the_hooks():
    x = leaf()
    h = x * 1.0
    h.retain_grad()
    h.register_hook(lambda g: 3.0 * g)
    h.retain_grad()  # a second time does nothing
    y = (h * B).sum()
    for n in (1, 2):
        y.backward(retain_graph=True)
        np.testing.assert_allclose(h.grad, n * 3 * B)
    h.grad = None
    y.backward()
    np.testing.assert_allclose(h.grad, 3 * B)


def test_retain_grad_on_the_root_on_a_leaf_and_on_a_view():
    x = leaf()
    x.retain_grad()
    rows = np.broadcast_to(x, (2, 3))
    rows.retain_grad()
    y = rows.sum()
    y.retain_grad()
    y.backward()
    np.testing.assert_array_equal(y.grad, 1.0)
    np.testing.assert_array_equal(rows.grad, np.ones((2, 3)))
    np.testing.assert_array_equal(x.grad, [2.0, 2.0, 2.0])
    rows.grad += 1.0


def test_gradients_touches_no_retained_grad():
    x = leaf()
    h = x * 2.0
    h.retain_grad()
    gradients(h.sum(), [x, h])
    assert h.grad is None and x.grad is None


# ---------------------------------------------------------------- hooks: refusal


def test_a_hook_cannot_write_into_the_gradient_it_is_shown():
    x = leaf()
    h = x + 0.0

    def hook(g):
        g *= 2.0

    h.register_hook(hook)
    with pytest.raises(ValueError, match="read-only"):
        h.sum().backward()
    assert x.grad is None


@pytest.mark.parametrize("shape", [(), (1,), (2, 3), (3, 1)])
@pytest.mark.parametrize("create_graph", [False, True])
def test_a_hook_that_changes_the_shape_is_refused_with_both_shapes(shape, create_graph):
    x = leaf()
    h = x * 2.0
    h.name = "h"
    h.register_hook(lambda g: np.ones(shape))
    words = rf"^a hook of 'h' \(3,\) returned a gradient of shape {re.escape(str(shape))}: it must "
    with pytest.raises(ValueError, match=words):
        gradients(h * h, [x], A, create_graph=create_graph)


@pytest.mark.parametrize("at", ["root", "result", "leaf", "other leaf"])
def test_an_exception_in_a_hook_leaves_every_grad_and_is_remembered(at):
    def fails(g):
        raise KeyError("half-way")

    a, b = leaf(), leaf(B)
    b.grad = B.copy()
    h = np.exp(a)
    h.retain_grad()
    y = (h * b).sum()
    hooked = {"root": y, "result": h, "leaf": a, "other leaf": b}[at]
    hook = hooked.register_hook(fails)
    with pytest.raises(KeyError, match="half-way"):
        y.backward()
    assert a.grad is None and h.grad is None
    np.testing.assert_array_equal(b.grad, B)
    hook.remove()
    if at == "root":  # nothing had been replayed yet
        y.backward()
        np.testing.assert_allclose(a.grad, B * np.exp(A))
    else:
        with pytest.raises(RuntimeError, match="^the record of sum .* a pass that was interrupted"):
            y.backward()


@pytest.mark.parametrize("t", [Tensor(A, name="c"), leaf().detach()])
def test_what_requires_no_gradient_has_no_hook_and_retains_nothing(t):
    with pytest.raises(TypeError, match=r"^a hook waits for a gradient, and .*\(3,\) does not req"):
        t.register_hook(print)
    with pytest.raises(TypeError, match=r"\(3,\) does not require a gradient: none will be retain"):
        t.retain_grad()
    with no_grad():
        h = np.exp(leaf())
    with pytest.raises(TypeError, match="does not require"):
        h.retain_grad()


def test_a_hook_must_be_a_function():
    with pytest.raises(TypeError, match="hook"):
        leaf().register_hook(3.0)
