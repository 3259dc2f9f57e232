"""Chapter 2.2 · Autograd."""

import numpy as np
import pytest

from minigrad import Tensor, backward, grad, gradients, no_grad, primitive

A = np.array([0.3, 0.7, 1.1])
B = np.array([1.9, -0.4, 0.6])


def leaf(values=A, name="t"):
    return Tensor(values, requires_grad=True, name=name)


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
    found = gradients(y, [h, a, unreached, y])
    for g, expected in zip(found, [2 * A * B, 2 * A * B**2, np.zeros((2, 3)), 1.0], strict=True):
        assert type(g) is np.ndarray and g.flags.writeable
        np.testing.assert_allclose(g, expected)
        assert g.shape == np.shape(expected)
    assert a.grad is None and b.grad is None


def test_gradients_takes_any_iterable_of_tensors():
    t = leaf()
    assert len(gradients(t.sum(), (p for p in [t]))) == 1


@pytest.mark.parametrize("kind", [float, np.array, Tensor])
@pytest.mark.parametrize(
    ("argnums", "expected"),
    [(0, [35.0]), (1, [21.0]), (-1, [15.0]), ((0, 2), [35.0, 15.0]), ((-2,), [21.0]), ((), [])],
)
def test_grad_answers_in_kind_for_the_arguments_chosen(argnums, expected, kind):
    found = grad(lambda a, b, c: a * b * c, argnums)(kind(3.0), kind(5.0), kind(7.0))
    assert isinstance(found, tuple) == isinstance(argnums, tuple)
    found = found if isinstance(found, tuple) else (found,)
    assert [g.item() for g in found] == expected
    assert all(type(g) is (Tensor if kind is Tensor else np.ndarray) for g in found)


def test_grad_takes_integers_and_options_and_functions_that_ignore_their_argument():
    assert grad(lambda x, power=1: x**power)(3, power=2) == 6.0
    assert grad(lambda x: 5.0)(3.0) == 0.0
    assert grad(lambda x: leaf(5.0) * 2.0)(3.0) == 0.0


# ---------------------------------------------------------------- derivative


def test_the_third_derivative_of_tanh_is_a_tower_of_three_grads():
    y = np.tanh(0.4)
    third = grad(grad(grad(np.tanh)))(0.4)
    np.testing.assert_allclose(third, (1 - y**2) * (6 * y**2 - 2), rtol=1e-12)


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


NESTED = {
    "perturbation confusion": (lambda x: x * grad(lambda y: x + y)(1.0), 1.0),  # gives 2
    "at the same point": (lambda x: x * grad(lambda y: x + y)(x), 1.0),
    "through both": (lambda x: grad(lambda y: x * y * y)(x), 12.0),  # 2x² ↦ 4x
    "through the closure": (lambda x: x * grad(lambda y: x * y)(x), 6.0),
    "three deep": (lambda x: grad(lambda y: grad(lambda z: x * y * z * z)(y))(x), 24.0),  # 4x² ↦ 8x
    "of two arguments": (lambda x: x * grad(lambda y, z: y * z * z, (0, 1))(x, x)[1], 54.0),  # 2x³
    "cut by detach": (lambda x: grad(lambda y: y * y)(x.detach()), 0.0),
}


@pytest.mark.parametrize(("f", "slope"), NESTED.values(), ids=NESTED)
def test_nested_grads_keep_the_outer_variable_and_the_inner_one_apart(f, slope):
    assert grad(f)(3.0) == slope


def test_grad_of_a_function_that_reaches_for_a_tensor_outside_is_recorded():
    w = leaf(5.0)
    slope = grad(lambda x: w * w * x)(3.0)
    assert type(slope) is Tensor and slope.item() == 25.0
    assert gradients(slope, [w]) == (10.0,)
    assert w.grad is None


def test_grad_within_no_grad_differentiates_and_leaves_no_record():
    w = leaf(5.0)
    with no_grad():
        plain = grad(lambda x: w * x * x)(3.0)
        of_tensor = grad(lambda x: w * x * x)(leaf(3.0))
        twice = grad(grad(lambda x: w * x**3))(2.0)
    assert type(plain) is np.ndarray and (plain, twice) == (30.0, 60.0)
    assert of_tensor.node is None and of_tensor.item() == 30.0


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


def test_gradients_of_a_result_leave_the_record_below_it():
    t = leaf()
    h = t * t
    np.testing.assert_array_equal(gradients((h * B).sum(), [h])[0], B)
    h.backward(B)
    np.testing.assert_allclose(t.grad, 2 * A * B)


def test_a_constant_receives_no_gradient():
    t, constant = leaf(), Tensor(B)
    (t * constant).backward(A)
    assert constant.grad is None and t.grad is not None


def test_a_leaf_may_be_its_own_root_and_its_grad_is_not_the_seed():
    t, seed = leaf(), np.ones(3)
    t.backward(seed)
    t.grad[:] = 7.0
    np.testing.assert_array_equal(seed, np.ones(3))


def test_a_0d_grad_stays_an_array_that_can_be_written():
    t = leaf(3.0)
    (t * t + t).backward()
    t.backward()
    assert type(t.grad) is np.ndarray and t.grad.shape == ()
    t.grad[...] += 1.0
    assert t.grad == 9.0


# ---------------------------------------------------------------- refusal

c = Tensor(A, name="c")
ASKED = {
    "no seed": (lambda t: t.backward(), ValueError, r"needs a seed .* shape \(3,\), not \(\)"),
    "seed of 5": (lambda t: t.backward(np.ones(5)), ValueError, r"\(5,\), but the root has \(3,\)"),
    "seed of 1": (lambda t: t.backward(1.0), ValueError, r"shape \(\), but the root has \(3,\)"),
    "a constant": (lambda t: backward(c), ValueError, r"from 'c' \(3,\): no input required"),
    "a number": (lambda t: backward(2.0), TypeError, "starts at a Tensor, but got float"),
    "x alone": (lambda t: gradients(t.sum(), t), TypeError, r"list of tensors: write \[x\]"),
    "constant x": (lambda t: gradients(t.sum(), [t, c]), ValueError, r"xs\[1\], 'c' \(3,\), does"),
    "array x": (lambda t: gradients(t.sum(), [A]), ValueError, r"xs\[0\].*not require a gradient"),
    "not scalar": (lambda t: grad(np.exp)(A), ValueError, r"needs a scalar: .* \(3,\), not \(\)"),
    "argnums 1": (lambda t: grad(np.exp, 1)(2.0), ValueError, "for argument 1, but f got 1"),
    "argnums -2": (lambda t: grad(np.exp, (0, -2))(2.0), ValueError, "for argument -2, but f got"),
}


@pytest.mark.parametrize(("ask", "error", "words"), ASKED.values(), ids=ASKED)
def test_what_cannot_be_differentiated_is_refused_in_a_sentence(ask, error, words):
    t = leaf()
    with pytest.raises(error, match=words):
        ask(t)
    assert t.grad is None


def test_a_result_computed_without_a_record_has_nothing_to_replay():
    with no_grad():
        y = np.exp(leaf()).sum()
    with pytest.raises(ValueError, match=r"or it was computed under no_grad\(\)"):
        y.backward()
