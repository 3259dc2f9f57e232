"""Chapter 2.3 · Derivatives: grad to hvp, against each other, against differences, nested."""

import math

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor, grad, hessian, hvp, jacobian, jvp, no_grad, value_and_grad, vjp
from minigrad.engine import replay
from tests.making import DERIVATIVES, leaf

rng = np.random.default_rng(7)
X = rng.uniform(0.5, 2.0, (2, 3))
Y = rng.uniform(0.5, 2.0, (3, 5))
V = rng.standard_normal(3)


# Functions of two arguments (2, 3) and (3, 5): of one vector and one matrix, to many shapes.
FUNCTIONS = {
    "scalar": lambda a, b: (np.tanh(a) @ b).sum(),
    "matrix": lambda a, b: mg.softmax(a @ b),
    "cube": lambda a, b: a[:, :, None] * np.exp(b),
    "of the first alone": lambda a, b: a * a,
    "of neither": lambda a, b: Tensor(V),
    "one element": lambda a, b: a[:1, :1] * b[:1, :1],
    "empty": lambda a, b: (a @ b)[:0],
}
SCALARS = {
    "tanh": lambda a, b: (np.tanh(a) @ b).sum(),
    "softmax": lambda a, b: (mg.softmax(a @ b) ** 2).mean(),
    "norm": lambda a, b: np.linalg.norm(a @ np.sqrt(b)),
    "of neither": lambda a, b: Tensor(5.0),
    "one element": lambda a, b: (a[:1] @ b[:, :1]) ** 3,
}


# ---------------------------------------------------------------- value: grad, value_and_grad


@pytest.mark.parametrize(
    ("argnums", "expected"),
    [
        (0, [35.0]),
        (-1, [15.0]),
        (np.int64(2), [15.0]),
        ((0, 2), [35.0, 15.0]),
        ((-2,), [21.0]),
        ((0, -3), [35.0, 35.0]),
        ((), []),
    ],
)
def test_grad_answers_in_kind_for_the_arguments_chosen(argnums, expected):
    for kind, given in [(float, np.ndarray), (np.float64, np.ndarray), (Tensor, Tensor)]:
        args = [kind(3.0), kind(5.0), kind(7.0)]
        value, found = value_and_grad(lambda a, b, c: a * b * c, argnums)(*args)
        again = grad(lambda a, b, c: a * b * c, argnums)(*args)
        for slopes in (found, again):
            assert isinstance(slopes, tuple) == isinstance(argnums, tuple)
            slopes = slopes if isinstance(slopes, tuple) else (slopes,)
            assert [g.item() for g in slopes] == expected
            assert all(type(g) is given for g in slopes)
            assert not any(isinstance(g, Tensor) and g.requires_grad for g in slopes)
        assert value.item() == 105.0 and type(value) is given


def test_grad_takes_integers_and_options_and_functions_that_ignore_their_argument():
    assert grad(lambda x, power=1: x**power)(3, power=2) == 6.0
    assert grad(lambda x: 5.0)(3.0) == 0.0
    assert grad(lambda x: np.float32(5.0))(3.0) == 0.0
    assert grad(lambda x: leaf(5.0) * 2.0)(3.0) == 0.0
    assert value_and_grad(lambda x: 5)([3.0, 2.0])[0] == 5.0
    np.testing.assert_array_equal(grad(lambda x: 5)([3.0, 2.0]), [0.0, 0.0])


def test_what_grad_gives_is_the_callers_to_write():
    x = X.copy()
    value, slope = value_and_grad(lambda x: x.sum())(x)
    slope += 1.0
    value[...] = 0.0
    np.testing.assert_array_equal(x, X)
    kept = []
    value, _ = value_and_grad(lambda x: kept.append(x[0, 0]) or kept[0])(x)
    value[...] = 7.0
    assert kept[0].item() == X[0, 0]


# ---------------------------------------------------------------- value: vjp, jvp, jacobian


def numerical_jacobian(f, x, y):
    """Return ∂f/∂x, one element of f at a time."""
    shape = f(Tensor(x), Tensor(y)).shape
    rows = [
        mg.numerical_gradient(lambda x, k=k: f(x, Tensor(y)).reshape(-1)[k], x)[0]
        for k in range(math.prod(shape))
    ]
    return np.reshape(rows, (*shape, *x.shape))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_jacobian_agrees_with_finite_differences(name):
    f = FUNCTIONS[name]
    x, y = X[:, :2], Y[:2, :2]
    if name == "cube":
        y = y[:, :1]
    found = jacobian(f)(x, y)
    np.testing.assert_allclose(found, numerical_jacobian(f, x, y), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_vjp_jvp_and_jacobian_agree_for_every_argument(name):
    f = FUNCTIONS[name]
    y, back = vjp(f, X, Y)
    g, u, v = (rng.standard_normal(shape) for shape in (y.shape, X.shape, Y.shape))
    by_x, by_y = jacobian(f)(X, Y), jacobian(f, 1)(X, Y)
    assert by_x.shape == (*y.shape, *X.shape) and by_y.shape == (*y.shape, *Y.shape)
    np.testing.assert_array_equal(jacobian(f, -1)(X, Y), by_y)
    from_left = np.tensordot(g, by_x, g.ndim), np.tensordot(g, by_y, g.ndim)
    for found, expected in zip(back(g), from_left, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)
    value, pushed = jvp(f, (X, Y), (u, v))
    np.testing.assert_array_equal(value, y)
    from_right = np.tensordot(by_x, u, 2) + np.tensordot(by_y, v, 2)
    np.testing.assert_allclose(pushed, from_right, rtol=1e-12, atol=1e-13)
    assert pushed.shape == y.shape
    np.testing.assert_allclose(  # ⟨g, J u⟩ = ⟨Jᵀ g, u⟩
        (g * pushed).sum(), (back(g)[0] * u).sum() + (back(g)[1] * v).sum(), rtol=1e-11, atol=1e-13
    )


def test_the_seed_of_a_vjp_may_be_a_list_or_of_another_dtype_and_a_scalar_needs_none():
    _, back = vjp(lambda x: x * x, np.array([1.0, 2.0, 3.0], np.float32))
    for seed in ([1, 0, 2], np.array([1.0, 0.0, 2.0]), np.array([1, 0, 2])):
        (found,) = back(seed)
        np.testing.assert_array_equal(found, np.array([2, 0, 12], np.float32), strict=True)
    assert vjp(lambda x: x * x, 3.0)[1](None) == (6.0,)


# ---------------------------------------------------------------- value: hessian, hvp


@pytest.mark.parametrize("name", SCALARS)
def test_hessian_and_hvp_agree_with_each_other_and_with_finite_differences(name):
    f = SCALARS[name]
    vs = rng.standard_normal(X.shape), rng.standard_normal(Y.shape)
    blocks = [[jacobian(grad(f, i), j)(X, Y) for j in (0, 1)] for i in (0, 1)]
    products = hvp(f, (X, Y), vs)
    for i, (row, x) in enumerate(zip(blocks, (X, Y), strict=True)):
        for block, z in zip(row, (X, Y), strict=True):
            assert block.shape == (*x.shape, *z.shape)
        expected = sum(np.tensordot(h, v, 2) for h, v in zip(row, vs, strict=True))
        np.testing.assert_allclose(products[i], expected, rtol=1e-11, atol=1e-13)
    whole = np.block([[h.reshape(6 if i == 0 else 15, -1) for h in blocks[i]] for i in (0, 1)])
    np.testing.assert_allclose(whole, whole.T, rtol=1e-11, atol=1e-13)  # ∂²f/∂x∂y = ∂²f/∂y∂x
    np.testing.assert_array_equal(hessian(f, 1)(X, Y), blocks[1][1])
    found = hessian(f)(X[:, :2], Y[:2, :2])
    expected = numerical_jacobian(lambda a, b: grad(f)(a, b), X[:, :2], Y[:2, :2])
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)


def test_hvp_costs_the_same_number_of_rules_whatever_the_size_of_x():
    asked = []

    @mg.primitive
    def cube(x, /):
        asked.append(1)
        return x**3, lambda g, y: 3 * g * x**2

    counts = []
    for n in (2, 31):
        asked.clear()
        found = hvp(lambda x: cube(x).sum(), np.full(n, 2.0), np.ones(n))
        np.testing.assert_array_equal(found, np.full(n, 12.0))
        (alone,) = hvp(lambda x: cube(x).sum(), (np.full(n, 2.0),), (np.ones(n),))
        np.testing.assert_array_equal(found, alone)
        counts.append(len(asked))
    assert counts[0] == counts[1] == 4  # twice: forward, and once more with Tensors


# ---------------------------------------------------------------- derivative: nesting


def test_whatever_is_nested_gives_the_higher_derivative():
    for kind, given in [(float, np.ndarray), (Tensor, Tensor)]:
        for third in (
            grad(grad(grad(np.sin))),
            lambda x: hvp(grad(np.sin), x, 1.0),
            grad(hessian(np.sin)),
            lambda x: jvp(lambda x: vjp(grad(np.sin), x)[1](1.0)[0], x, 1.0)[1],
        ):
            found = third(kind(0.4))
            assert type(found) is given
            np.testing.assert_allclose(found.item(), -np.cos(0.4), rtol=1e-13)


NESTED = {
    "perturbation confusion": (lambda x: x * grad(lambda y: x + y)(1.0), 1.0),  # gives 2
    "at the same point": (lambda x: x * grad(lambda y: x + y)(x), 1.0),
    "through both": (lambda x: grad(lambda y: x * y * y)(x), 12.0),  # 2x² ↦ 4x
    "through the closure": (lambda x: x * grad(lambda y: x * y)(x), 6.0),
    "of two arguments": (lambda x: x * grad(lambda y, z: y * z * z, (0, 1))(x, x)[1], 54.0),  # 2x³
    "cut by detach": (lambda x: grad(lambda y: y * y)(x.detach()), 0.0),
    "jvp": (lambda x: jvp(lambda y: x * y * y, x, 1.0)[1], 12.0),
    "jvp along x": (lambda x: jvp(lambda y: y**3, 1.0, x)[1], 3.0),  # 3x
    "jvp, its value": (lambda x: jvp(lambda y: x * y, x, 1.0)[0], 6.0),
    "vjp with seed x": (lambda x: vjp(lambda y: y**3, 1.0)[1](x)[0], 3.0),
    "vjp": (lambda x: vjp(lambda y: x * y**3, x)[1](x)[0], 324.0),  # 3x⁴ ↦ 12x³
    "jacobian": (lambda x: jacobian(lambda y: np.stack([y, x * y * y]))(x).sum(), 12.0),
    "hessian": (lambda x: hessian(lambda y: x * y**3)(x), 36.0),  # 6x²
    "hvp along x": (lambda x: hvp(lambda y: y**3, 1.0, x), 6.0),
    "value": (lambda x: value_and_grad(lambda y: x * y)(x)[0], 6.0),
    "an option": (lambda x: grad(lambda y, by: by * y * y)(1.0, by=x), 2.0),
}


@pytest.mark.parametrize(("f", "slope"), NESTED.values(), ids=NESTED)
def test_nested_derivatives_keep_the_outer_variable_and_the_inner_one_apart(f, slope):
    assert grad(f)(3.0) == slope
    assert jvp(f, 3.0, 1.0)[1] == slope
    w = leaf(3.0)
    y = f(w)
    if not isinstance(y, Tensor) or not y.requires_grad:
        assert slope == 0.0
        return
    y.backward()  # and they are recorded for whoever stands outside of all
    assert w.grad == slope


each_derivative = pytest.mark.parametrize("derivative", DERIVATIVES.values(), ids=DERIVATIVES)


@each_derivative
def test_a_derivative_that_depends_on_a_tensor_outside_is_recorded(derivative):
    w = leaf(5.0)
    slope = derivative(lambda x: w * w * x * x / 2, 1.0, 1.0)
    assert type(slope) is Tensor and slope.item() == 25.0
    assert mg.gradients(slope, [w]) == (10.0,)
    assert w.grad is None


@each_derivative
def test_a_derivative_within_no_grad_differentiates_and_leaves_no_record(derivative):
    w = leaf(5.0)
    f = lambda x: w * np.exp(x)
    with no_grad():
        plain, of_tensor = derivative(f, 0.0, 1.0), derivative(f, leaf(0.0), 1.0)
        twice = derivative(lambda x: derivative(f, x, 1.0), 0.0, 1.0)
    assert type(plain) is np.ndarray and (plain, twice) == (5.0, 5.0)
    assert of_tensor.node is None and of_tensor.item() == 5.0


def test_the_way_back_of_a_vjp_leaves_no_record_within_no_grad():
    w = leaf(5.0)
    _, back = vjp(lambda x: w * x * x, 3.0)
    with no_grad():
        (found,) = back(leaf(1.0))
        (plain,) = back(1.0)
    assert found.item() == plain.item() == 30.0
    assert not found.requires_grad and not getattr(plain, "requires_grad", False)


@each_derivative
def test_derivatives_are_functions_that_pass_the_gradient_check_themselves(derivative):
    assert mg.gradcheck(lambda x: derivative(lambda x: np.tanh(x) * x[::-1], x, V), [0.3, 0.7, 1.1])


# ---------------------------------------------------------------- law


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_every_derivative_has_the_shape_and_dtype_of_its_argument(dtype):
    for shape in [(), (0, 3), (2, 3)]:
        x, v = np.full(shape, 0.5, dtype), np.ones(shape)
        found = {name: d(lambda x: x**3, x, v) for name, d in DERIVATIVES.items()}
        found["value"] = value_and_grad(lambda x: (x**3).sum())(x)[0]
        shapes = dict.fromkeys(found, shape)
        shapes |= {"value": (), "jacobian": shape + shape, "hessian": shape + shape}
        assert {name: y.shape for name, y in found.items()} == shapes
        assert {y.dtype for y in found.values()} == {np.dtype(dtype)}
        np.testing.assert_allclose(found["grad"], np.full(shape, 0.75))
        np.testing.assert_allclose(found["hvp"], np.full(shape, 3.0))
        n = x.size
        np.testing.assert_allclose(found["jacobian"].reshape(n, n), 0.75 * np.eye(n))
        np.testing.assert_allclose(found["hessian"].reshape(n, n), 3.0 * np.eye(n))


@each_derivative
def test_no_derivative_touches_a_grad_or_the_record_of_what_f_reaches_for(derivative):
    w, x = leaf(X), leaf(X)
    h = np.tanh(w)  # a record from before, which f uses and someone else needs afterwards
    assert derivative(lambda x: h * x**3, x, X).requires_grad
    assert w.grad is None and x.grad is None
    h.sum().backward()
    np.testing.assert_allclose(w.grad, 1 - np.tanh(X) ** 2)


@each_derivative
def test_f_is_called_once_for_each_derivative(derivative):
    calls = []
    f = lambda x: calls.append(type(x)) or x * x
    derivative(f, X, X)
    assert calls == [Tensor]
    _, back = vjp(f, X)
    back(X), back(2 * X)
    assert calls == [Tensor] * 2


# ---------------------------------------------------------------- law: nests, and what they cost


@pytest.mark.parametrize("create_graph", [False, True])
def test_a_derivative_inside_a_growing_record_does_not_walk_what_is_older(
    monkeypatch, create_graph
):
    """Twice as many steps look at about twice as many tensors, and not at four times as many."""
    looked = [0]
    inputs_of = replay.inputs_of

    def counted(t):
        looked[0] += 1
        return inputs_of(t)

    monkeypatch.setattr(replay, "inputs_of", counted)

    def walked(steps):
        looked[0] = 0
        h = x = Tensor(np.full(3, 0.1), requires_grad=True)
        for _ in range(steps):
            if create_graph:
                h = h - 0.1 * mg.gradients((np.sin(h) * h).sum(), [h], create_graph=True)[0]
            else:
                h = h - 0.1 * grad(lambda q, h=h: (np.sin(q) * h).sum())(x)
        return looked[0]

    assert walked(40) < 3 * walked(20)
