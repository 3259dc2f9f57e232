"""Chapter 1.1 · Tensor: what it holds, what it copies, and what it refuses."""

import copy
import math
import operator
import pickle

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided, sliding_window_view

from minigrad import Tensor, gradients, no_grad, ops

A = np.array([[0.7, 1.3, 0.2], [2.1, 0.4, 1.9]])  # (2, 3): two primes, and no value twice
ROW = np.array([0.3, 1.1, 0.6])  # (3,)
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


@pytest.mark.parametrize(
    ("t", "text"),
    [
        (Tensor(2.0), "Tensor(2.)"),
        (Tensor([1, 2]), "Tensor([1, 2])"),
        (Tensor([1.0], dtype=np.float32), "Tensor([1.], dtype=float32)"),
        (Tensor(2.0, requires_grad=True, name="w"), "Tensor(2., requires_grad=True, name='w')"),
        (np.exp(Tensor([0.0], requires_grad=True)), "Tensor([1.], node=exp)"),
    ],
)
def test_repr_says_what_a_tensor_holds_and_where_it_came_from(t, text):
    assert repr(t) == text


def test_what_needs_no_gradient_leaves_for_python_and_numpy():
    t = Tensor([[7.5]], requires_grad=True)
    assert (t.item(), f"{t:.2f}", bool(t), len(t)) == (7.5, "7.50", True, 1)
    assert f"{t}" == str(t) == repr(t)
    assert (float(Tensor(7.5)), int(Tensor(7.5)), [2, 3, 5][Tensor(1)]) == (7.5, 7, 3)
    np.testing.assert_array_equal(np.asarray(Tensor(A), int), A.astype(int), strict=True)


def test_tensors_are_hashed_by_identity_and_iterated_by_rows():
    t, u = leaf(), leaf()
    assert len({t, u, t}) == 2
    assert [(row.shape, row.requires_grad) for row in t] == [((3,), True)] * 2


def test_data_takes_a_copy_in_the_tensors_own_dtype():
    t, new = leaf(dtype=np.float32), A + 1
    t.data = new
    new[:] = 0
    assert t.dtype == np.float32
    np.testing.assert_allclose(t.data, A + 1, rtol=1e-6)


def read_only(array):
    array.setflags(write=False)
    return array


class Holder:
    """An object that shows its own array, read-only, as other libraries do."""

    def __init__(self, array):
        self.array = array
        pointer = (array.ctypes.data, True)
        self.__array_interface__ = array.__array_interface__ | {"data": pointer}


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
        "an array of an object": np.asarray(Holder(mine)),
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


IN_PLACE = {
    "+=": operator.iadd,
    "-=": operator.isub,
    "*=": operator.imul,
    "/=": operator.itruediv,
    "**=": operator.ipow,
    "%=": operator.imod,
    "//=": operator.ifloordiv,
    "@=": operator.imatmul,
}


@pytest.mark.parametrize(
    "other", [A[:, 1:], Tensor(A[:, 1:]), Tensor(A[:, 1:], requires_grad=True)]
)
@pytest.mark.parametrize("sign", IN_PLACE)
def test_under_no_grad_an_assignment_like_plus_equals_gives_the_leaf_another_array(sign, other):
    t = before = Tensor(A[:, :2], requires_grad=True, dtype=np.float32)
    kept = t.data
    loss = (t * t).sum()
    with no_grad():
        t = IN_PLACE[sign](t, other)
    assert t is before and t.dtype == np.float32 and t.requires_grad and t.node is None
    operate = getattr(operator, IN_PLACE[sign].__name__[1:])
    np.testing.assert_allclose(t.data, operate(kept, A[:, 1:]), rtol=1e-6)
    assert not t.data.flags.writeable
    np.testing.assert_array_equal(gradients(loss, [t])[0], 2 * kept)  # of the old array


@pytest.mark.parametrize("sign", IN_PLACE)
def test_under_no_grad_constants_are_changed_where_they_stand_if_the_new_array_fits(sign):
    averages = [Tensor(A[:, :2]), Tensor(A[:, :2])]
    with no_grad():
        for each in averages:
            before = each
            each = IN_PLACE[sign](each, A[:, 1:])
            assert each is before
    expected = getattr(operator, IN_PLACE[sign].__name__[1:])(A[:, :2], A[:, 1:])
    for each in averages:
        np.testing.assert_allclose(each.data, expected)


def test_under_no_grad_a_sum_may_grow_in_shape_and_kind():
    with no_grad():
        total, count = Tensor(0.0), Tensor(0)
        total += Tensor(A)
        count += 0.5
    assert total.shape == A.shape and count.item() == 0.5


@pytest.mark.parametrize("sign", [sign for sign in IN_PLACE if sign != "//="])
def test_a_result_is_bound_to_a_new_one_by_an_assignment_like_plus_equals(sign):
    t, other = leaf(A[:, :2]), Tensor(A[:, 1:])
    total = first = t * 1.0
    total = IN_PLACE[sign](total, other)
    expected = getattr(operator, IN_PLACE[sign].__name__[1:])(A[:, :2], A[:, 1:])
    np.testing.assert_allclose(total.data, expected, rtol=1e-14)
    np.testing.assert_array_equal(first.data, A[:, :2])  # which its record still needs
    assert total.requires_grad and total is not first
    constant = IN_PLACE[sign](Tensor(A[:, :2]), t)
    assert constant.requires_grad and not Tensor(A).requires_grad


def test_a_loss_is_summed_up_over_terms():
    t = leaf()
    loss = 0.0
    for row in t:
        loss += (row * row).sum()
    loss.backward()
    np.testing.assert_allclose(t.grad, 2 * A)


# ---------------------------------------------------------------- derivative


FLOAT32 = {
    "numbers": lambda t: 0.5 - t * 3,
    "powers": lambda t: t**2 + 2.0**t,
    "t / √d_k": lambda t: t / np.sqrt(7),
    "√d_k · t": lambda t: np.sqrt(7) * t,
    "t / count": lambda t: t / MASK.sum(),
    "0-d array": lambda t: np.array(3.0) + t * np.array(3),
    "where": lambda t: np.where(MASK, t, 0) + np.where(MASK, np.float64(7), t),
    "maximum": lambda t: np.maximum(t, 0),
    "mean": lambda t: (t - t.mean(axis=-1, keepdims=True)).mean(),
    "max": lambda t: t - t.max(axis=0),
    "t[integers]": lambda t: t[[1, 1]] * np.int64(3),
    "matmul": lambda t: t @ t.mT / np.sqrt(3),
    "softmax": lambda t: ops.softmax(t / np.sqrt(3)) + ops.log_softmax(t),
    "logsumexp": lambda t: ops.logsumexp(np.log(t) * np.exp(t), axis=0),
}


@pytest.mark.parametrize("f", FLOAT32.values(), ids=FLOAT32)
def test_float32_stays_float32_in_every_value_and_every_vjp(f):
    t = leaf(dtype=np.float32)
    y = f(t)
    below = [y]
    while below:  # look at each VJP before the engine casts its result to the input's dtype
        u = below.pop()
        assert u.dtype == np.float32
        if u.node:
            g = np.ones(u.shape, np.float32)
            assert {vjp(g, u.data).dtype for vjp in u.node.vjps if vjp} <= {np.dtype(np.float32)}
            below += [x for x in u.node.inputs if x.requires_grad]
    (g,) = gradients(y, [t], np.ones(y.shape), create_graph=True)
    assert g.dtype == np.float32
    assert gradients((g * g + t).sum(), [t])[0].dtype == np.float32


@pytest.mark.parametrize("shape", [(), (0, 3), (1, 1)])
def test_0d_and_empty_tensors_go_forward_and_backward(shape):
    t = Tensor(np.full(shape, 3.0), requires_grad=True)
    (t * t + t).sum().backward()
    np.testing.assert_array_equal(t.grad, np.full(shape, 7.0), strict=True)


# ---------------------------------------------------------------- refusal


@pytest.mark.parametrize("sign", IN_PLACE)
def test_a_leaf_is_not_left_behind_by_an_assignment_like_plus_equals(sign):
    t = leaf(A[:, :2])
    words = (
        r"^an assignment like .* would leave the leaf 't' \(2, 2\) behind: write w.data = w.data - "
        r"\.\.\. \(or w -= \.\.\. under no_grad\(\)\) to change the leaf, or w = w - "
    )
    with pytest.raises(TypeError, match=words):
        IN_PLACE[sign](t, A[:, 1:])
    np.testing.assert_array_equal(t.data, A[:, :2])


def test_a_tensor_is_not_changed_in_place_nor_cut_out_of_its_record():
    with pytest.raises(TypeError, match=r"cannot be changed in place.*np\.where"):
        leaf()[0] = 1.0
    with pytest.raises(TypeError, match=r"cut t out of its record.*t\.detach\(\)"):
        Tensor(leaf())
    with pytest.raises(TypeError, match=r"^the format '.2f' is for one element: .* \(2, 3\)$"):
        f"{leaf():.2f}"


def put(t, attribute, value):
    setattr(t, attribute, value)


REFUSED = {
    "integers": (lambda t: Tensor([1], requires_grad=True), "an integer tensor cannot require"),
    "complex": (lambda t: Tensor(1j), "Tensor takes real numbers.*dtype complex128"),
    "objects": (lambda t: Tensor(None), "Tensor takes real numbers.*dtype object"),
    "t * 1j": (lambda t: t * 1j, "multiply takes real numbers.*complex128"),
    "complex array": (lambda t: np.array([1j, 2, 3]) + t, "add takes real numbers.*complex128"),
    "t + None": (lambda t: t + None, "add takes real numbers.*object"),
    "complex data": (lambda t: put(t, "data", A * 1j), "real numbers.*complex128"),
    "object data": (lambda t: put(t, "data", A.astype(object)), "real numbers.*object"),
    "floats for integers": (
        lambda t: put(Tensor([1, 2]), "data", [1.7, 2.7]),
        "int64 cannot become flo",
    ),
    "complex numbers as floats": (
        lambda t: Tensor(np.array([1 + 5j]), dtype=float),
        "real numbers",
    ),
    "None as a float": (lambda t: Tensor(None, dtype=float), "real numbers"),
    "text as a float": (lambda t: Tensor("3", dtype=float), "real numbers"),
    "a result's data": (lambda t: put(t * t, "data", A), "only a leaf.*result of multiply"),
    "its requires_grad": (lambda t: put(t * t, "requires_grad", False), "multiply; use detach"),
}


@pytest.mark.parametrize(("ask", "words"), REFUSED.values(), ids=REFUSED)
def test_only_real_numbers_are_taken_and_only_a_leaf_is_set(ask, words):
    with pytest.raises(TypeError, match=words):
        ask(leaf())


def test_a_shape_that_does_not_fit_is_a_value_error():
    with pytest.raises(ValueError, match=r"data of shape \(2, 3\) cannot become \(3,\)"):
        leaf().data = ROW
    with pytest.raises(ValueError, match=r"shape \(2, 3\) is ambiguous"):
        bool(leaf())


def test_data_can_be_kept_and_restored_and_swapped():
    p, q = Tensor([1.0, 2.0], requires_grad=True), Tensor([3.0, 5.0], requires_grad=True)
    saved = p.data
    p.data = np.array([10.0, 20.0])
    p.data = saved
    np.testing.assert_array_equal(p.data, [1.0, 2.0])
    p.data, q.data = q.data, p.data
    np.testing.assert_array_equal([p.data, q.data], [[3.0, 5.0], [1.0, 2.0]])


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
    with pytest.raises(
        TypeError, match="the result of exp cannot be copied or pickled .*: use detach"
    ):
        duplicate(np.exp(leaf))


def test_plotting_a_recorded_tensor_says_what_to_plot_instead():
    plt = pytest.importorskip("matplotlib.figure", reason="matplotlib is not installed")
    axes, t = plt.Figure().subplots(), leaf(ROW)
    for plotted in (t, t[:2]):  # a leaf, and a result
        with pytest.raises(TypeError, match=r"\.data"):
            axes.plot(plotted)
    axes.plot(t[:2].data)


def test_tensors_that_are_copied_together_stay_one_where_they_were_one():
    t = leaf()
    model = copy.deepcopy({"encoder": t, "decoder": t, "other": leaf()})
    assert model["encoder"] is model["decoder"] is not t
    assert model["other"] is not model["encoder"]


LEAF = Tensor([1.0], requires_grad=True)


@pytest.mark.parametrize("use", [Tensor, lambda m: LEAF * m, lambda m: m * LEAF])
def test_a_masked_array_is_refused_since_its_mask_would_be_ignored(use):
    with pytest.raises(TypeError, match="ignore|drop the gradient"):
        use(np.ma.array([1.0], mask=[True]))


def test_a_copy_of_a_constant_has_memory_of_its_own():
    mine = np.array([2.0, 3.0])
    constant = copy.copy(Tensor(mine))
    mine *= 10
    np.testing.assert_array_equal(constant.data, [2.0, 3.0])


def test_a_grad_of_another_shape_is_refused_by_name():
    w = Tensor([1.0, 2.0], requires_grad=True, name="w")
    w.grad = np.ones((1, 2))
    with pytest.raises(
        ValueError, match=r"^the .grad of 'w' \(2,\) has shape \(1, 2\), not \(2,\)$"
    ):
        (w * w).sum().backward()


def test_a_grad_that_is_a_tensor_is_refused_by_name():
    w = Tensor([1.0, 2.0], requires_grad=True, name="w")
    w.grad = gradients((w * w).sum(), [w], create_graph=True)[0]
    with pytest.raises(TypeError, match=r"the .grad of 'w' \(2,\) is a Tensor"):
        (w * w).sum().backward()
