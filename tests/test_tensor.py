"""Chapter 1.1 · Tensor: what it holds, what it copies, and what it refuses."""

import copy
import math
import operator
import pickle

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided, sliding_window_view

from minigrad import Tensor, gradients, no_grad
from tests.making import M as A

MASK = A > 1.0


def leaf(values=A, dtype=None):
    return Tensor(values, requires_grad=True, dtype=dtype, name="t")


# ---------------------------------------------------------------- value


@pytest.mark.parametrize(
    ("values", "given", "shape", "dtype"),
    [
        (2.0, None, (), np.float64),
        ([1, 2, 3], None, (3,), np.int64),
        ([1, 2, 3], float, (3,), np.float64),
        (A.astype(np.float32), None, (2, 3), np.float32),
        (A.tolist(), np.float32, (2, 3), np.float32),
        (np.zeros((0, 3)), None, (0, 3), np.float64),
        (Tensor([1.0, 2.0]), None, (2,), np.float64),
    ],
)
def test_a_tensor_has_the_shape_and_dtype_numpy_would_give(values, given, shape, dtype):
    t = Tensor(values, dtype=given)
    assert (t.shape, t.ndim, t.size, t.dtype) == (shape, len(shape), math.prod(shape), dtype)
    assert t.node is None and not t.requires_grad and t.grad is None


def test_repr_says_what_a_tensor_holds_and_where_it_came_from():
    for t, text in [
        (Tensor(2.0), "Tensor(2.)"),
        (Tensor([1, 2]), "Tensor([1, 2])"),
        (Tensor([1.0], dtype=np.float32), "Tensor([1.], dtype=float32)"),
        (Tensor(2.0, requires_grad=True, name="w"), "Tensor(2., requires_grad=True, name='w')"),
        (np.exp(Tensor([0.0], requires_grad=True)), "Tensor([1.], node=exp)"),
    ]:
        assert repr(t) == text


def test_what_needs_no_gradient_leaves_for_python_and_numpy():
    t = Tensor([[7.5]], requires_grad=True)
    assert (t.item(), f"{t:.2f}", bool(t), len(t)) == (7.5, "7.50", True, 1)
    assert f"{t}" == str(t) == repr(t)
    assert (float(Tensor(7.5)), int(Tensor(7.5)), range(3)[Tensor(2)]) == (7.5, 7, 2)
    np.testing.assert_array_equal(round(Tensor(A, requires_grad=True), 1), np.round(A, 1))
    np.testing.assert_array_equal(np.asarray(Tensor(A), int), A.astype(int), strict=True)


def test_tensors_are_hashed_by_identity_and_iterated_by_rows():
    t, u = leaf(), leaf()
    assert len({t, u, t}) == 2
    assert [(row.shape, row.requires_grad) for row in t] == [((3,), True)] * 2


def read_only(array):
    array.setflags(write=False)
    return array


def test_an_array_that_nobody_can_write_is_taken_and_any_other_is_copied(tmp_path):
    np.save(tmp_path / "a.npy", A)
    mine = A.copy()
    view = read_only(mine[:])  # read-only, but its memory is not
    under_a_view = read_only(A.copy())
    buffer = np.frombuffer(A.tobytes()).reshape(A.shape)
    long = np.arange(4.0)  # whose windows have the shape of A
    taken = {
        "frozen": read_only(A.copy()),
        "a view of a frozen one": under_a_view[::-1][::-1],
        "a memory map": np.load(tmp_path / "a.npy", mmap_mode="r"),
        "a buffer of bytes": buffer,
        "another tensor's": leaf().data,
        "a result's": np.exp(leaf()).data,
    }
    copied = {
        "an array": mine,
        "a read-only view": view,
        "a broadcast one": np.broadcast_to(mine[0], A.shape),
        "windows": sliding_window_view(long, 3),
        "a view by strides": as_strided(mine, mine.shape, mine.strides, writeable=False),
        "a memory map that can be written": np.load(tmp_path / "a.npy", mmap_mode="r+"),
        "a writable buffer": np.frombuffer(bytearray(A.tobytes())).reshape(A.shape),
        "another dtype": read_only(A.astype(np.float32)),
    }
    for given, shares in [(taken, True), (copied, False)]:
        for what, values in given.items():
            late = leaf(np.zeros(np.shape(values)))
            late.data = values
            for t in (Tensor(values, requires_grad=True, dtype=float), late):
                assert np.shares_memory(t.data, values) == shares, what
                assert not t.data.flags.writeable and t.dtype == float
                np.testing.assert_array_equal(t.data, values)
    mine += 1.0
    assert mine.flags.writeable


def test_a_constant_looks_at_the_callers_array_and_cannot_write_to_it():
    mine = A.copy()
    constant = Tensor(mine)
    mine += 1.0
    np.testing.assert_array_equal(constant.data, A + 1)
    with pytest.raises(ValueError, match="read-only"):
        constant.data[0] = 0.0
    assert mine.flags.writeable
    constant.requires_grad = True
    mine += 1.0
    np.testing.assert_array_equal(constant.data, A + 1)


SIGNS = {"+=": "add", "-=": "sub", "*=": "mul", "/=": "truediv", "**=": "pow", "@=": "matmul"}
IN_PLACE = {sign: [getattr(operator, i + name) for i in ("i", "")] for sign, name in SIGNS.items()}
each_sign = pytest.mark.parametrize(("assign", "operate"), IN_PLACE.values(), ids=IN_PLACE)
LEFT, RIGHT = A[:, :2], A[:, 1:]


@each_sign
def test_under_no_grad_an_assignment_like_plus_equals_gives_the_leaf_another_array(assign, operate):
    t = before = leaf(LEFT, np.float32)
    kept = t.data
    loss = (t * t).sum()
    with no_grad():
        t = assign(t, Tensor(RIGHT, requires_grad=True))
    assert t is before and t.dtype == np.float32 and t.requires_grad and t.node is None
    np.testing.assert_allclose(t.data, operate(kept, RIGHT), rtol=1e-6)
    assert not t.data.flags.writeable
    np.testing.assert_array_equal(gradients(loss, [t])[0], 2 * kept)  # of the old array
    average = before = Tensor(LEFT)  # a constant is changed where it stands, too
    with no_grad():
        average = assign(average, RIGHT)
    assert average is before
    np.testing.assert_allclose(average.data, operate(LEFT, RIGHT))


@each_sign
def test_a_result_is_bound_to_a_new_one_by_an_assignment_like_plus_equals(assign, operate):
    t = leaf(LEFT)
    total = first = t * 1.0
    total = assign(total, Tensor(RIGHT))
    np.testing.assert_allclose(total.data, operate(LEFT, RIGHT), rtol=1e-14)
    np.testing.assert_array_equal(first.data, LEFT)  # which its record still needs
    assert total.requires_grad and total is not first
    assert assign(Tensor(LEFT), t).requires_grad


@pytest.mark.parametrize(
    "duplicate", [copy.copy, copy.deepcopy, lambda t: pickle.loads(pickle.dumps(t))]
)
def test_a_leaf_is_copied_and_pickled_and_a_result_refuses(duplicate):
    leaf = Tensor([1.0, 2.0], requires_grad=True, name="w")
    leaf.grad = np.ones(2)
    other = duplicate(leaf)
    assert (other.name, other.requires_grad, other.node) == ("w", True, None)
    np.testing.assert_array_equal([other.data, other.grad], [[1.0, 2.0], [1.0, 1.0]])
    other.data = other.data - 1.0
    np.testing.assert_array_equal(leaf.data, [1.0, 2.0])
    other.grad += 1.0
    np.testing.assert_array_equal(leaf.grad, [1.0, 1.0])
    mine = np.array([2, 3])
    constant = duplicate(Tensor(mine))
    mine *= 10
    np.testing.assert_array_equal(constant.data, [2, 3])
    with pytest.raises(
        TypeError, match="the result of exp cannot be copied or pickled .*: use detach"
    ):
        duplicate(np.exp(leaf))


def test_plotting_a_recorded_tensor_says_what_to_plot_instead():
    plt = pytest.importorskip("matplotlib.figure", reason="matplotlib is not installed")
    axes, t = plt.Figure().subplots(), leaf(np.arange(3.0))
    for plotted in (t, t[:2]):  # a leaf, and a result
        with pytest.raises(TypeError, match=r"\.data"):
            axes.plot(plotted)
    axes.plot(t[:2].data)


# ---------------------------------------------------------------- refusal


def test_a_result_has_no_grad_to_read_and_its_gradient_is_given_by_gradients():
    x = leaf()
    w = 0.1 * x  # not a leaf, so this is what a training loop would never fill
    loss = (w * w).sum()
    words = (
        r"only a leaf has a .grad, and \(2, 3\) is the result of multiply: .*gradients\(loss, \["
    )
    for value in (None, np.ones((2, 3))):
        w.grad = value  # (which does nothing)
        with pytest.raises(RuntimeError, match=words):
            _ = w.grad
    np.testing.assert_allclose(gradients(loss, [w])[0], 2 * w.data)
    constants = Tensor(A), 2.0 * Tensor(A), w.detach(), no_grad(np.exp)(w), x
    assert all(t.grad is None for t in constants)


@each_sign
def test_a_leaf_is_not_left_behind_by_an_assignment_like_plus_equals(assign, operate):
    t = leaf(LEFT)
    words = (
        r"^an assignment like .* would leave the leaf 't' \(2, 2\) behind: write w.data = w.data - "
        r"\.\.\. \(or w -= \.\.\. under no_grad\(\)\) to change the leaf, or w = w - "
    )
    with pytest.raises(TypeError, match=words):
        assign(t, RIGHT)
    np.testing.assert_array_equal(t.data, LEFT)
