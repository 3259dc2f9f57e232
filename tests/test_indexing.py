"""Chapter 3.3 · Indexing: picking and putting back, and that nothing is lost between them."""

import itertools

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import minigrad
from minigrad import Tensor, concatenate, getitem, grad, gradients, scatter_add, where

random = np.random.default_rng(3)


# ---------------------------------------------------------------- derivative


def test_where_sends_each_gradient_to_the_side_it_chose_and_nothing_to_the_condition():
    condition = Tensor([True, False, True])
    a, b = Tensor(np.full(3, np.inf), requires_grad=True), Tensor(np.zeros(3), requires_grad=True)
    y = where(condition, a, b)
    np.testing.assert_array_equal(y.data, [np.inf, 0, np.inf])
    da, db = gradients(y, [a, b], np.array([2.0, 3.0, 5.0]))
    np.testing.assert_array_equal(da, [2, 0, 5])
    np.testing.assert_array_equal(db, [0, 3, 0])


def test_a_function_that_where_does_not_choose_makes_nan_of_its_0_unless_its_input_is_safe():
    with np.errstate(divide="ignore", invalid="ignore"):
        unsafe = grad(lambda x: np.where(x > 0, np.log(x), 0).sum())(np.array([0.0, 2.0]))
    np.testing.assert_array_equal(unsafe, [np.nan, 0.5])


def test_what_where_did_not_choose_gets_exactly_0_even_from_a_gradient_of_nan():
    x = Tensor([1.0, 2.0], requires_grad=True)
    (dx,) = gradients(where([True, False], x, 0.0), [x], np.array([1.0, np.nan]))
    np.testing.assert_array_equal(dx, [1.0, 0.0])


@pytest.mark.parametrize("index", [(0, 0), range(1)], ids=["a tuple in a tuple", "a range"])
def test_any_sequence_may_be_an_index_and_its_repeats_add_up(index):
    x = Tensor(np.arange(6.0).reshape(2, 3), requires_grad=True)
    for y in (x[:, index], np.take(x, index, axis=1)):
        expected = [[y.shape[1], 0, 0]] * 2
        np.testing.assert_array_equal(gradients(y.sum(), [x])[0], expected)


# ---------------------------------------------------------------- law


@st.composite
def indexed_arrays(draw):
    """Draw a shape and an index: basic with negative steps, integers with repeats, or a mask."""
    shape = draw(hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=5))
    first = st.integers(-shape[0], shape[0] - 1)
    return shape, draw(
        hnp.basic_indices(shape, allow_newaxis=True, allow_ellipsis=True)
        | hnp.integer_array_indices(shape)
        | hnp.arrays(bool, shape)
        | hnp.arrays(bool, shape[0])
        | st.lists(first, max_size=7)
        | st.tuples(st.none(), st.lists(first, min_size=1, max_size=7), st.just(...))
    )


@given(indexed_arrays())
def test_getitem_and_scatter_add_are_adjoint(drawn):
    """⟨scatter_add(x), z⟩ = ⟨x, z[index]⟩: so each is the other's VJP."""
    shape, index = drawn
    z = Tensor(random.standard_normal(shape), requires_grad=True)
    picked = getitem(z, index)
    x = Tensor(random.standard_normal(picked.shape), requires_grad=True)
    spread = scatter_add(x, shape, index)
    np.testing.assert_allclose((spread * z).sum().data, (x * picked).sum().data, atol=1e-12)
    np.testing.assert_array_equal(gradients(spread, [x], z.data)[0], picked.data)
    np.testing.assert_array_equal(gradients(picked, [z], x.data)[0], spread.data)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_what_is_cut_apart_and_joined_again_is_the_identity(axis):
    x = Tensor(random.standard_normal((5, 7, 11)), requires_grad=True)
    before = (slice(None),) * (axis % 3)
    parts = [x[(*before, slice(a, b))] for a, b in ((0, 2), (2, 2), (2, 3), (3, None))]
    y = concatenate(parts, axis=axis)
    g = random.standard_normal(y.shape)
    np.testing.assert_array_equal(y.data, x.data)
    np.testing.assert_array_equal(gradients(y, [x], g)[0], g)


# ---------------------------------------------------------------- indices of every dtype

SMALL = [np.int8, np.uint8, np.uint16, np.int32]
INDEXING = {  # of x (n, 2), with five indices
    "getitem": lambda x, i: x[i],
    "getitem of numbers": lambda x, i: x[:, 0][i],
    "getitem of a tuple": lambda x, i: x[i, 1],
    "getitem of a block": lambda x, i: x[i[:4].reshape(2, 2)],
    "getitem by a tensor": lambda x, i: x[Tensor(i)],
    "getitem by a 0-d array": lambda x, i: x[np.array(i[0])],
    "take": lambda x, i: minigrad.take(x, i, 0),
    "take from all": lambda x, i: minigrad.take(x, i),
    "take_along_axis": lambda x, i: minigrad.take_along_axis(x, np.stack([i, i[::-1]], 1), 0),
    "scatter_add": lambda x, i: scatter_add(x[:5], x.shape, i),
    "scatter_add by a tensor": lambda x, i: scatter_add(x[:5], x.shape, Tensor(i)),
    "scatter_add of numbers": lambda x, i: scatter_add(x[:5, 0], (len(x),), i),
    "embedding": lambda x, i: minigrad.embedding(x, np.where(i < 0, 0, i)),
    "cross_entropy": lambda x, i: minigrad.cross_entropy(x.mT, np.where(i < 0, 0, i)[:2]),
    "one_hot": lambda x, i: x[:5].mT @ minigrad.one_hot(np.where(i < 0, 0, i), len(x)),
    "repeat": lambda x, i: minigrad.repeat(x[:5], np.where(i < 0, 0, i), 0),
    "where": lambda x, i: where(i[:, None] > 3, x[:5], 0.0),
}


@pytest.mark.parametrize("name", INDEXING)
def test_an_index_of_any_dtype_picks_and_puts_back_as_one_of_int64(name):
    for dtype, length in itertools.product(SMALL, (100, 256, 70_000)):
        last = min(length - 1, int(np.iinfo(dtype).max))
        indices = np.array([last, 0, last // 2, last, -1 if np.iinfo(dtype).min < 0 else 3])
        x = Tensor(random.standard_normal((length, 2)), requires_grad=True)
        found = []
        for each in (np.int64, dtype):
            y = INDEXING[name](x, indices.astype(each))
            g = np.cos(np.arange(y.size)).reshape(y.shape)
            found.append([y.data, *gradients(y, [x], g)])
        for one, other in zip(*found, strict=True):
            np.testing.assert_array_equal(one, other)
