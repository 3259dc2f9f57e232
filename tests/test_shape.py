"""Chapter 3.2 · Shape operations: each rule is another's transpose, or its inverse."""

from itertools import permutations

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from minigrad import Tensor, broadcast_to, gradients, ops, reshape, swapaxes, transpose

random = np.random.default_rng(3)


# ---------------------------------------------------------------- derivative


def test_a_copied_element_receives_the_sum_of_its_copies_gradients():
    x = Tensor([[1.0], [2.0]], requires_grad=True)
    g = np.arange(30.0).reshape(5, 2, 3)
    (dx,) = gradients(broadcast_to(x, (5, 2, 3)), [x], g)
    np.testing.assert_array_equal(dx, [[195.0], [240.0]])  # Σ g[:, 0, :] and Σ g[:, 1, :]


def test_reshape_gives_the_gradient_its_old_axes():
    x = Tensor(random.standard_normal((2, 3, 5)), requires_grad=True)
    g = random.standard_normal((5, 6))
    np.testing.assert_array_equal(
        gradients(reshape(x, (5, 6)), [x], g)[0].ravel(), g.ravel(), strict=True
    )


@pytest.mark.parametrize(("there", "back"), [(np.float32, np.float64), (np.float64, np.float32)])
def test_the_gradient_of_astype_comes_back_in_the_dtype_of_the_input(there, back):
    x = Tensor(random.standard_normal(5), dtype=back, requires_grad=True)
    g = random.standard_normal(5)
    y = x.astype(there)
    assert y.dtype == there
    (dx,) = gradients(y, [x], g)
    assert dx.dtype == back
    np.testing.assert_array_equal(dx, g.astype(there).astype(back))


# ---------------------------------------------------------------- law


@pytest.mark.parametrize("axes", [*permutations(range(4)), (-1, 0, -2, 1), None])
def test_transpose_is_undone_by_its_own_vjp(axes):
    """The Jacobian of a permutation is orthogonal: its transpose is its inverse."""
    x = Tensor(random.standard_normal((2, 3, 5, 7)), requires_grad=True)
    y = transpose(x, axes)
    assert y.shape == tuple(x.shape[i] for i in (axes or (3, 2, 1, 0)))
    np.testing.assert_array_equal(gradients(y, [x], y.data)[0], x.data)


@pytest.mark.parametrize("axes", [(0, 1), (1, -1), (-2, -1), (0, 2), (1, 1)])
def test_swapaxes_undoes_itself(axes):
    x = Tensor(random.standard_normal((2, 3, 5)), requires_grad=True)
    y = swapaxes(x, *axes)
    np.testing.assert_array_equal(swapaxes(y, *axes).data, x.data)
    np.testing.assert_array_equal(gradients(y, [x], y.data)[0], x.data)


@st.composite
def broadcasts(draw):
    """Draw a shape, a shape it broadcasts to, and values of both."""
    wide = draw(hnp.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=5))
    narrow = wide[draw(st.integers(0, len(wide))) :]
    narrow = tuple(n if draw(st.booleans()) else 1 for n in narrow)
    values = np.random.default_rng(draw(st.integers(0, 99)))
    return values.standard_normal(narrow), values.standard_normal(wide)


@given(broadcasts())
def test_sum_and_broadcast_to_are_adjoint(drawn):
    """⟨broadcast x, z⟩ = ⟨x, sum z⟩: so each is the other's VJP."""
    narrow, wide = drawn
    extra = wide.ndim - narrow.ndim
    stretched = [i for i, n in enumerate(narrow.shape, extra) if n == 1]
    axes = (*range(extra), *stretched)

    x, z = Tensor(narrow, requires_grad=True), Tensor(wide, requires_grad=True)
    spread = broadcast_to(x, wide.shape)
    total = ops.sum(z, axis=axes, keepdims=True).reshape(narrow.shape)
    np.testing.assert_allclose((spread * z).sum().data, (x * total).sum().data, atol=1e-12)
    np.testing.assert_allclose(gradients(spread, [x], wide)[0], total.data, atol=1e-12)
    np.testing.assert_array_equal(gradients(total, [z], narrow)[0], spread.data)
