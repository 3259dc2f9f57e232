"""Chapter 2.2 · Autograd: what backward leaves in .grad, and what gradients returns."""

import numpy as np
import pytest

from minigrad import Tensor, gradients, primitive
from tests.making import A, B, leaf

# ---------------------------------------------------------------- value


def test_grad_accumulates_over_passes_until_it_is_set_to_none():
    t = leaf()
    for n in (1, 2, 3):
        (t * t).backward(B)
        np.testing.assert_allclose(t.grad, n * 2 * A * B)
    t.grad = None
    (t * t).sum().backward()
    np.testing.assert_array_equal(t.grad, 2 * A)


def test_gradients_are_given_for_leaves_and_for_results_between_and_touch_no_grad():
    a, b, unreached = leaf(), leaf(B), leaf(np.ones((2, 3)))
    h = a * b
    y = (h * h).sum()
    found = gradients(y, iter([h, a, unreached, y]))  # any iterable
    for g, expected in zip(found, [2 * A * B, 2 * A * B**2, np.zeros((2, 3)), 1.0], strict=True):
        assert type(g) is np.ndarray and g.flags.writeable
        np.testing.assert_allclose(g, expected)
        assert g.shape == np.shape(expected)
    assert a.grad is None and b.grad is None


@pytest.mark.parametrize("create_graph", [False, True])
def test_an_x_may_be_asked_for_twice_or_lie_behind_another(create_graph):
    t = leaf()
    h = t * t
    y = (h * B).sum()
    found = gradients(y, [t, h, t, y, h], create_graph=create_graph)
    expected = [2 * A * B, B, 2 * A * B, 1.0, B]
    for g, right in zip(found, expected, strict=True):
        np.testing.assert_allclose(g.data if create_graph else g, right)
    if not create_graph:  # each is memory of its own
        found[0][...] = 0.0
        np.testing.assert_allclose(found[2], 2 * A * B)


def test_a_recorded_gradient_of_what_y_does_not_depend_on_is_a_constant_tensor():
    t, other = leaf(), leaf(np.ones((2, 3)))
    y = t.sum()
    gradients(y, [other])  # (which drops nothing)
    (g,) = gradients(y, [other], create_graph=True)
    assert type(g) is Tensor and g.node is None and not g.requires_grad
    np.testing.assert_array_equal(g.data, np.zeros((2, 3)), strict=True)


@pytest.mark.parametrize(
    "seed", [[2, 3, 5], [2.0, 3.0, 5.0], np.array([2, 3, 5]), Tensor([2, 3, 5])]
)
def test_a_seed_may_be_a_list_an_array_or_a_tensor(seed):
    t = leaf()
    (t * t).backward(seed)
    np.testing.assert_allclose(t.grad, 2 * A * [2, 3, 5])


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_a_root_of_one_element_needs_no_seed(shape):
    t = leaf(np.full(shape, 3.0))
    (t * t).backward()
    np.testing.assert_array_equal(t.grad, np.full(shape, 6.0), strict=True)


# ---------------------------------------------------------------- derivative


def test_create_graph_records_the_gradient_to_any_order():
    t = leaf(2.0)
    y = np.exp(t) * t**3
    orders = []
    for _ in range(3):
        (y,) = gradients(y, [t], create_graph=True)
        orders.append(y.item() / np.exp(2.0))
    np.testing.assert_allclose(orders, [8 + 12, 8 + 24 + 12, 8 + 36 + 36 + 6])  # Leibniz


def test_a_recorded_gradient_depends_on_its_seed_too():
    t, seed = leaf(), leaf(B, "seed")
    (g,) = gradients(t * t, [t], seed, create_graph=True)
    np.testing.assert_allclose(gradients(g, [seed], B)[0], 2 * A * B)


def test_a_gradient_has_the_dtype_of_its_tensor_whatever_the_seed_and_the_others_are():
    total = primitive(lambda x, /: (x.sum(), lambda g, y: g * np.ones(3)))
    t, other = leaf(A.astype(np.float32)), leaf(B)
    (t * other).backward(A)
    t.backward(A)
    total(t).backward()
    assert (t.grad.dtype, other.grad.dtype) == (np.float32, np.float64)
    np.testing.assert_allclose(t.grad, A * B + A + 1, rtol=1e-6)


# ---------------------------------------------------------------- law


@pytest.mark.parametrize(
    "f", [lambda a, b: a + b, lambda a, b: (a + b).sum(), lambda a, b: np.broadcast_to(a, (2, 3))]
)
@pytest.mark.parametrize("passes", [1, 2])
def test_every_grad_owns_writable_memory_that_nothing_else_shares(f, passes):
    a, b = leaf(), leaf(B)
    y = f(a, b)
    seed = np.ones(y.shape)
    for _ in range(passes):
        y.backward(seed, retain_graph=True)
    others = [seed, a.data, b.data, *([] if b.grad is None else [b.grad])]
    assert not any(np.may_share_memory(a.grad, other) for other in others)
    before = a.grad.copy()
    a.grad += A
    np.testing.assert_array_equal(a.grad, before + A)


def test_the_record_is_kept_for_a_recorded_gradient_and_dropped_for_a_plain_one_unless_asked():
    t = leaf()
    for create_graph, retain_graph, kept in [
        (False, None, False),
        (True, None, True),
        (False, True, True),
        (True, False, False),
    ]:
        y = np.exp(t).sum()
        gradients(y, [t], create_graph=create_graph, retain_graph=retain_graph)
        assert y.node.spent is not kept
        if kept:
            y.backward()
        else:
            words = r"^the record of sum \(\) was already dropped by an earlier backward pass"
            with pytest.raises(RuntimeError, match=words + ".* retain_graph=True$"):
                y.backward()


def test_a_0d_grad_stays_an_array_that_can_be_written():
    t = leaf(3.0)
    (t * t + t).backward()
    t.backward()
    assert type(t.grad) is np.ndarray and t.grad.shape == ()
    t.grad[...] += 1.0
    assert t.grad == 9.0
