"""Chapter 3.5 · Linear algebra: the matrix product, also of vectors and of stacks."""

import numpy as np
import pytest

from minigrad import Tensor, gradients, matmul

random = np.random.default_rng(3)
B, T, S, K = 2, 3, 5, 7


# ---------------------------------------------------------------- value and derivative


def test_matmul_and_its_gradients_equal_three_nested_loops():
    a, b, g = (random.standard_normal(shape) for shape in ((T, K), (K, S), (T, S)))
    c, da, db = np.zeros((T, S)), np.zeros((T, K)), np.zeros((K, S))
    for i in range(T):
        for j in range(S):
            for k in range(K):
                c[i, j] += a[i, k] * b[k, j]
                da[i, k] += g[i, j] * b[k, j]
                db[k, j] += g[i, j] * a[i, k]
    A, B = Tensor(a, requires_grad=True), Tensor(b, requires_grad=True)
    y = matmul(A, B)
    for found, expected in zip((y.data, *gradients(y, [A, B], g)), (c, da, db), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("left", "right", "result"),
    [
        ((K,), (K,), ()),
        ((K,), (K, S), (S,)),
        ((T, K), (K,), (T,)),
        ((K,), (B, K, S), (B, S)),
        ((B, T, K), (K,), (B, T)),
    ],
)
def test_a_vector_is_a_matrix_with_one_row_or_column(left, right, result):
    """The gradients of a vector are those of that row or column, whatever axes it took part in."""
    a = Tensor(random.standard_normal(left), requires_grad=True)
    b = Tensor(random.standard_normal(right), requires_grad=True)
    row = a.reshape(1, K) if a.ndim == 1 else a
    column = b.reshape(K, 1) if b.ndim == 1 else b
    y, wide = a @ b, row @ column
    g = random.standard_normal(result)
    assert y.shape == result
    np.testing.assert_array_equal(y.data.ravel(), wide.data.ravel())
    for found, expected in zip(
        gradients(y, [a, b], g), gradients(wide, [a, b], g.reshape(wide.shape)), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


def test_one_matrix_against_a_stack_collects_the_gradient_of_every_use():
    a, b = random.standard_normal((T, K)), random.standard_normal((B, K, S))
    one, stack = Tensor(a, requires_grad=True), Tensor(b, requires_grad=True)
    g = random.standard_normal((B, T, S))
    da, db = gradients(one @ stack, [one, stack], g)
    np.testing.assert_allclose(da, sum(g[i] @ b[i].T for i in range(B)), rtol=1e-13)
    np.testing.assert_allclose(db, [a.T @ g[i] for i in range(B)], rtol=1e-13)


# ---------------------------------------------------------------- law


def test_a_product_can_be_taken_from_either_end():
    a, b, c = (
        Tensor(random.standard_normal(s), requires_grad=True) for s in ((B, T), (T, S), (S, K))
    )
    g = random.standard_normal((B, K))
    left, right = (a @ b) @ c, a @ (b @ c)
    np.testing.assert_allclose(left.data, right.data, rtol=1e-12)
    for one, other in zip(
        gradients(left, [a, b, c], g), gradients(right, [a, b, c], g), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_the_transpose_of_a_product_is_the_product_of_the_transposes_in_reverse():
    a = Tensor(random.standard_normal((B, T, K)), requires_grad=True)
    b = Tensor(random.standard_normal((B, K, S)), requires_grad=True)
    g = random.standard_normal((B, S, T))
    one, other = (a @ b).mT, b.mT @ a.mT
    np.testing.assert_allclose(one.data, other.data, rtol=1e-13)
    for x, y in zip(gradients(one, [a, b], g), gradients(other, [a, b], g), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-13)


def test_each_gradient_dotted_with_its_input_is_the_output_dotted_with_g():
    """AB is linear in each: ⟨A, ∂L/∂A⟩ = ⟨B, ∂L/∂B⟩ = ⟨AB, G⟩ (Euler)."""
    a = Tensor(random.standard_normal((T, K)), requires_grad=True)
    b = Tensor(random.standard_normal((B, K, S)), requires_grad=True)
    g = random.standard_normal((B, T, S))
    y = a @ b
    da, db = gradients(y, [a, b], g)
    np.testing.assert_allclose([(a.data * da).sum(), (b.data * db).sum()], (y.data * g).sum())


# ---------------------------------------------------------------- refusal


def test_stacks_that_do_not_broadcast_are_refused_with_names_and_shapes():
    q, k = Tensor(np.ones((2, 3, 5)), name="q"), Tensor(np.ones((3, 5, 7)), name="k")
    with pytest.raises(ValueError, match=r"^matmul of 'q' \(2, 3, 5\) and 'k' \(3, 5, 7\): "):
        q @ k
