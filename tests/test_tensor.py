"""Chapter 1.1 · Tensor."""

import copy
import math
import operator
import pickle

import numpy as np
import pytest

from minigrad import Tensor, gradcheck, gradients, ops

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


NAMES = ["add", "sub", "mul", "truediv", "pow"]
BINARY = [getattr(operator, name) for name in NAMES] + [np.add, np.power, np.maximum]


@pytest.mark.parametrize("op", BINARY, ids=lambda op: op.__name__)
@pytest.mark.parametrize("other", [A + 0.5, ROW, [3, 5, 7], 3, 2.5, np.float64(1.5), np.array(0.5)])
def test_an_operation_takes_a_tensor_on_either_side_of_an_array_or_a_number(op, other):
    array = np.array(other) if isinstance(other, list) else other
    for y, expected in [(op(leaf(), other), op(A, array)), (op(other, leaf()), op(array, A))]:
        assert type(y) is Tensor and y.requires_grad
        np.testing.assert_allclose(y.data, expected, rtol=1e-15)


def test_a_python_integer_may_be_larger_than_64_bits():
    np.testing.assert_allclose((leaf() * 10**20).data, A * 10**20)


CALLS = {
    "exp": lambda t: np.exp(t),
    "negative": lambda t: -t,
    "where": lambda t: np.where(MASK, t, 0),
    "sum": lambda t: np.sum(t, axis=0),
    "mean": lambda t: np.mean(t, axis=-1, keepdims=True),
    "max": lambda t: np.max(t, axis=1),
    "reshape": lambda t: np.reshape(t, (3, -1)),
    "transpose": lambda t: np.transpose(t, (1, 0)),
    "broadcast_to": lambda t: np.broadcast_to(t, (5, 2, 3)),
    "concatenate": lambda t: np.concatenate([t, A, t], axis=1),
    "array @ t": lambda t: A.T @ t,
    "list @ t": lambda t: A.T.tolist() @ t,
    "t @ array": lambda t: t @ ROW,
    ".sum": lambda t: t.sum(0, keepdims=True),
    ".mean": lambda t: t.mean(axis=(0, 1)),
    ".reshape": lambda t: t.reshape(3, 2),
    ".T and .mT": lambda t: t.T @ t @ t.mT,
    ".swapaxes": lambda t: t.swapaxes(0, -1),
    "t[i, slice]": lambda t: t[1, ::2],
    "t[mask]": lambda t: t[MASK],
    "t[integers]": lambda t: t[[1, 1, 0]],
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_numpys_words_mean_on_a_tensor_what_they_mean_on_its_array(call):
    y = call(leaf())
    assert type(y) is Tensor and y.requires_grad
    np.testing.assert_array_equal(y.data, call(A))


QUESTIONS = {
    "==": lambda t: t == 1.3,  # which A holds once
    "!=": lambda t: t != 1.3,
    "<": lambda t: t < 1.3,
    "<=": lambda t: t <= 1.3,
    ">": lambda t: t > 1.3,
    ">=": lambda t: t >= 1.3,
    "array > t": lambda t: operator.gt(ROW, t),
    "isnan": lambda t: np.isnan(t),
    "argmax": lambda t: np.argmax(t, axis=1),
    "zeros_like": lambda t: np.zeros_like(t),
    "shape": lambda t: np.array(np.shape(t)),
}


@pytest.mark.parametrize("ask", QUESTIONS.values(), ids=QUESTIONS)
def test_a_question_about_values_is_answered_by_a_plain_array(ask):
    answer = ask(leaf())
    assert type(answer) is np.ndarray
    np.testing.assert_array_equal(answer, ask(A), strict=True)


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
    t.data -= 1.0
    assert t.dtype == np.float32
    np.testing.assert_allclose(t.data, A, rtol=1e-6)


# ---------------------------------------------------------------- derivative


@pytest.mark.parametrize("op", BINARY, ids=lambda op: op.__name__)
def test_both_sides_of_an_operation_receive_their_gradient(op):
    assert gradcheck(op, A, ROW + 0.05)
    assert gradcheck(lambda t: op(ROW, t), A)  # an array on the left: NumPy is asked first


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_numpys_words_carry_the_gradient(call):
    assert gradcheck(call, A)


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
            below += [x for x in u.node.inputs if isinstance(x, Tensor)]
    (g,) = gradients(y, [t], np.ones(y.shape), create_graph=True)
    assert g.dtype == np.float32
    assert gradients((g * g + t).sum(), [t])[0].dtype == np.float32


@pytest.mark.parametrize("shape", [(), (0, 3), (1, 1)])
def test_0d_and_empty_tensors_go_forward_and_backward(shape):
    t = Tensor(np.full(shape, 3.0), requires_grad=True)
    (t * t + t).sum().backward()
    np.testing.assert_array_equal(t.grad, np.full(shape, 7.0), strict=True)


# ---------------------------------------------------------------- law

UFUNCS = {f.__name__: f for f in vars(np).values() if isinstance(f, np.ufunc)}


@pytest.mark.parametrize("ufunc", UFUNCS.values(), ids=UFUNCS)
def test_every_ufunc_records_or_answers_or_refuses_by_name(ufunc):
    args = [leaf([[0.3, 0.6], [0.2, 0.7]])] * ufunc.nin
    if ufunc in ops.NUMPY:
        assert ufunc(*args).requires_grad
    elif ufunc in ops.PLAIN:
        assert ufunc(*args).dtype in (np.bool_, np.float64)
    else:
        with pytest.raises(TypeError, match=rf"^np\.{ufunc.__name__} has no rule"):
            ufunc(*args)


OUTSIDE = {  # NumPy's functions that ask their arguments first, as np.sum does
    f"{module.__name__}.{name}": f
    for module in (np, np.linalg, np.fft)
    for name, f in vars(module).items()
    if type(f) is type(np.sum) and f not in ops.NUMPY and f not in ops.PLAIN
}


@pytest.mark.parametrize("function", OUTSIDE.values(), ids=OUTSIDE)
def test_every_function_outside_the_vocabulary_refuses(function):
    for n in (1, 2, 3):
        with pytest.raises(TypeError, match="has no rule|argument|expected str"):
            function(*[leaf()] * n)


# ---------------------------------------------------------------- refusal

LOST = {
    "np.asarray": (lambda t: np.asarray(t), "a NumPy array would drop the gradient of 't'"),
    "np.array of a list": (lambda t: np.array([t, t]), "array would drop the gradient"),
    "object array": (lambda t: np.array(t, dtype=object), "array would drop the gradient"),
    "Tensor of a list": (lambda t: Tensor([t, t]), "array would drop the gradient"),
    "masked array": (lambda t: np.ma.array(A) * t, "array would drop the gradient"),
    "a[...] = t": (lambda t: A.copy().__setitem__(..., t), "drop the gradient of 't'"),
    "float": (lambda t: float(t), r"float\(\) would drop the gradient of 't' \(2, 3\)"),
    "int": (lambda t: int(t), r"int\(\) would drop the gradient of 't'"),
    "math.exp": (lambda t: math.exp(t[0, 0]), r"float\(\) would drop the gradient"),
    "t[0] = 1": (lambda t: t.__setitem__(0, 1), "cannot be changed in place.*np.where"),
    "array += t": (
        lambda t: operator.iadd(A.copy(), t),
        "np.add in place, or with out=, cannot be recorded",
    ),
    "ufunc, out=": (
        lambda t: np.exp(t, out=A.copy()),
        "np.exp in place, or with out=, cannot be recorded",
    ),
    "sum, out=": (lambda t: np.sum(t, out=np.zeros(())), "np.sum with out= cannot be recorded"),
    "where=": (lambda t: np.add(t, 1, where=MASK), "np.add with where= cannot be recorded"),
    "np.linalg.svd": (lambda t: np.linalg.svd(t), "np.linalg.svd has no rule"),
    "np.histogram": (lambda t: np.histogram(t), "np.histogram has no rule.*@primitive"),
    "np.add.reduce": (lambda t: np.add.reduce(t), "np.add.reduce has no rule"),
    "array // t": (lambda t: A // t, "np.floor_divide has no rule"),
    "an unknown option": (lambda t: np.sum(t, initial=3.0), "sum.*initial"),
    "dtype by position": (lambda t: np.sum(t, 0, np.float32), "sum"),
    "order by position": (lambda t: np.reshape(t, (3, 2), "F"), "reshape.*positional"),
    "Tensor(t)": (lambda t: Tensor(t), r"cut t out of its record.*t\.detach\(\)"),
}


@pytest.mark.parametrize(("lose", "words"), LOST.values(), ids=LOST)
def test_what_would_lose_the_record_is_refused_in_a_sentence(lose, words):
    with pytest.raises(TypeError, match=words):
        lose(leaf())


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
    other.data -= 1.0
    np.testing.assert_array_equal(leaf.data, [1.0, 2.0])
    with pytest.raises(TypeError, match="the result of exp cannot be copied or pickled"):
        duplicate(np.exp(leaf))


def test_writes_to_a_leaf_made_of_a_result_disturb_no_other_record():
    x = Tensor([1.0, 2.0], requires_grad=True)
    y = (np.exp(x) * np.tanh(x)).sum()
    h = np.exp(x).detach()
    h.requires_grad = True
    h.data -= 0.1
    y.backward()
    assert x.grad is not None


LEAF = Tensor([1.0], requires_grad=True)


@pytest.mark.parametrize("use", [Tensor, lambda m: LEAF * m, lambda m: m * LEAF])
def test_a_masked_array_is_refused_since_its_mask_would_be_ignored(use):
    with pytest.raises(TypeError, match="ignore|drop the gradient"):
        use(np.ma.array([1.0], mask=[True]))


def test_questions_about_values_take_tensors_by_keyword_too():
    t = Tensor([1.0, 3.0], requires_grad=True)
    assert np.argmax(a=t) == 1 and np.allclose(t, b=t)
