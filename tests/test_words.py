"""Chapter 1.4 · Words: each records, answers, or is refused by name."""

import copy
import doctest
import inspect
import itertools
import operator
import pickle
import re
from pathlib import Path

import numpy as np
import pytest

import attention
import minigrad
from minigrad import Tensor, functional, nn, ops, optim
from minigrad.engine.hints import INSTEAD, OTHER_NAMES, OTHER_WORDS
from minigrad.engine.words import PLAIN, RECORDED, TensorWords
from minigrad.optim import SGD, Adam, AdamW
from tests.coverage_table import ROWS
from tests.making import M as A

ROW = np.array([0.3, 1.1, 0.6])  # (3,)
FOUR = np.concatenate([A, A + 1.0])  # (4, 3)
MASK = A > 1.0
SITE = Path(__file__).parents[1] / "demos" / "site"


def leaf(values=A, name="t"):
    return Tensor(values, requires_grad=True, name=name)


# ---------------------------------------------------------------- value

OPERATORS = [operator.add, operator.sub, operator.mul, operator.truediv, operator.pow]
UFUNCS_OF_TWO = [np.add, np.power, np.maximum, np.logaddexp]
COMPARISONS = [getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")]
COMPARISONS += [operator.floordiv]  # whole steps: flat between their jumps
OTHERS = {
    "an array": A + 0.5,
    "a row": ROW,
    "a list": [3, 5, 7],
    "nested lists": A.tolist(),
    "an integer": 3,
    "a number": 2.5,
    "an element": 1.3,
    "NumPy's integer": np.int64(2),
    "NumPy's number": np.float64(1.5),
    "a 0-d array": np.array(0.5),
    "integers": np.array([2, 3, 5]),
    "booleans": np.array([True, True, True]),
}


def on_either_side(op, values, other):
    """Return op's results with the values on either side of the other: of a Tensor, of an array."""
    array = np.array(other) if isinstance(other, list) else other
    return [
        (op(leaf(values), other), op(values, array)),
        (op(other, leaf(values)), op(array, values)),
    ]


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_an_operation_takes_a_tensor_on_either_side_of_an_array_or_a_number(other):
    for op in OPERATORS + UFUNCS_OF_TWO:
        for y, expected in on_either_side(op, A, other):
            assert type(y) is Tensor and y.requires_grad, op
            np.testing.assert_allclose(y.data, expected, rtol=1e-15)
    for op in COMPARISONS:
        both = op(leaf(), Tensor(other)), op(A, np.array(other))
        for answer, expected in [*on_either_side(op, A, other), both]:
            assert type(answer) is np.ndarray, op
            np.testing.assert_array_equal(answer, expected, strict=True)


def test_the_record_has_the_inputs_in_the_order_in_which_they_are_typed():
    t = leaf()
    for op in (*OPERATORS, *UFUNCS_OF_TWO):
        assert op(t, 2.0).node.inputs[0] is t and op(2.0, t).node.inputs[1] is t, op


def test_an_operator_of_one_tensor_records():
    for op in (operator.neg, operator.pos, abs):
        y = op(leaf(A - 1))
        assert type(y) is Tensor and y.requires_grad
        np.testing.assert_array_equal(y.data, op(A - 1))


def test_the_matrix_product_stands_on_either_side_of_an_array_or_a_list():
    for y, expected in [
        (leaf() @ A.T, A @ A.T),
        (A.T @ leaf(), A.T @ A),
        (A.T.tolist() @ leaf(), A.T @ A),
        (leaf() @ ROW, A @ ROW),
        (ROW @ leaf(A.T), ROW @ A.T),
    ]:
        assert type(y) is Tensor and y.requires_grad
        np.testing.assert_allclose(y.data, expected, rtol=1e-15)


def test_a_sum_begun_by_python_records():
    y = sum([leaf(), leaf(), leaf()])
    assert type(y) is Tensor and y.requires_grad
    np.testing.assert_allclose(y.data, 3 * A)


ANSWERS = {"argmax": lambda t: t.argmax(axis=1), "tolist": lambda t: t.tolist()}


def test_every_method_is_an_operation_of_the_table_or_a_question():
    ours = {name for name in vars(TensorWords) if not name.startswith("_")}
    assert ours - {row.removeprefix("t.") for row in ROWS} == {*ANSWERS, "backward"}


def test_a_question_is_answered_as_the_array_would():
    for call in ANSWERS.values():
        assert not isinstance(call(leaf()), Tensor)
        np.testing.assert_array_equal(call(leaf()), call(A))


def test_a_plain_answer_heeds_numpys_options_and_a_tensor_among_them():
    for call in (
        lambda t: np.argmax(t, axis=1),
        lambda t: np.round(t, decimals=1),
        lambda t: np.isclose(a=A + 0.05, b=t, rtol=0.1),
        lambda t: np.searchsorted([0.5, 1.0, 1.5], v=t, side="right"),
    ):
        np.testing.assert_array_equal(call(leaf()), call(A), strict=True)


def test_a_copy_has_memory_of_its_own_for_every_dtype():
    for values in (A, [2, 3, 5]):
        t = Tensor(values)
        assert not np.shares_memory(t.copy().data, t.data)
        np.testing.assert_array_equal(t.copy().data, values)


def test_constant_tensors_in_a_list_become_an_ordinary_array():
    for a in (np.array([Tensor(A), Tensor(A)]), np.asarray([[Tensor(1.0), 2.0]])):
        assert a.dtype == np.float64
    np.testing.assert_array_equal(np.array([Tensor(A), Tensor(A)]), [A, A], strict=True)


# ---------------------------------------------------------------- law

UFUNCS = {f.__name__: f for f in vars(np).values() if isinstance(f, np.ufunc)}


def test_every_ufunc_records_or_answers_or_refuses_by_name():
    for ufunc in UFUNCS.values():
        numbers = np.array([[0.3, 0.6], [0.2, 0.7]]) + (1 if ufunc is np.arccosh else 0)
        args = [leaf(numbers)] * ufunc.nin
        if ufunc in RECORDED:
            assert ufunc(*args).requires_grad
        elif ufunc in PLAIN:
            assert ufunc(*args).dtype in (np.bool_, np.float64)
        else:
            with pytest.raises(TypeError, match=rf"^np\.{ufunc.__name__} has no rule"):
                ufunc(*args)


ASKS_FIRST = {  # NumPy's functions that ask their arguments first, as np.sum does
    f"{module.__name__}.{name}".replace("numpy", "np", 1): f
    for module in (np, np.linalg, np.fft)
    for name, f in vars(module).items()
    if type(f) is type(np.sum)
}
METHODS_ALONE = {np.ndarray.__getitem__, np.ndarray.astype}  # (np.astype is of NumPy 2.1)
OUTSIDE = {name: f for name, f in ASKS_FIRST.items() if f not in RECORDED and f not in PLAIN}


def test_every_function_outside_the_tables_refuses():
    assert {"np.linalg.det", "np.linalg.cholesky", "np.sinc"} <= OUTSIDE.keys()
    for name, function in OUTSIDE.items():
        for n in (1, 2, 3):
            with pytest.raises(TypeError) as caught:
                function(*[leaf()] * n)
            assert re.match(f"{name} has no rule|.*(argument|expected str)", str(caught.value))


def test_everything_the_tables_name_is_one_of_numpys_words_and_stands_once():
    named = {*UFUNCS.values(), *ASKS_FIRST.values(), *METHODS_ALONE}
    assert set(RECORDED) | PLAIN | set(INSTEAD) <= named
    assert not set(RECORDED) & PLAIN and not (set(RECORDED) | PLAIN) & set(INSTEAD)


def test_hasattr_and_getattr_ask_a_tensor_as_anything_and_no_other_door_leads_to_the_array():
    for name in ("numel", "softmax", "exp", "nummel", "_secret"):
        assert not hasattr(leaf(), name) and getattr(leaf(), name, 7) == 7
    for protocol in ("__array_interface__", "__array_struct__", "__dlpack__", "_data", "_mask"):
        assert not hasattr(leaf(), protocol)


# ---------------------------------------------------------------- refusal

CONVERSIONS = {
    "np.asarray": lambda t: np.asarray(t),
    "object array": lambda t: np.array(t, dtype=object),
    "list": lambda t: np.array([t, t]),
    "list of scalars": lambda t: np.array([t[0, 0], t[1, 1]]),
    "ragged list": lambda t: np.array([t[0], t[0, :2]]),
    "Tensor of a list": lambda t: Tensor([t, t]),
    "t + list": lambda t: 1.0 * leaf(A[None]) + [t],
    "np.sum of a list": lambda t: np.sum([t, t]),
    "np.maximum of a list": lambda t: np.maximum([t, t], 0.0),
    "np.float64": lambda t: np.float64(t[0, 0]),
    "np.full": lambda t: np.full(3, t[0, 0]),
    "np.broadcast": lambda t: np.broadcast(t, A),
    "a[...] = t": lambda t: A.copy().__setitem__(..., t),
    "a[0, 0] = t": lambda t: A.copy().__setitem__((0, 0), t[0, 0]),
    "a.dot(t)": lambda t: A.T.dot(t),
    "rng.normal": lambda t: np.random.default_rng(0).normal(t),
    "an index": lambda t: A[t],
}


def test_no_array_is_made_of_tensors_whose_gradient_it_would_drop():
    for name, lose in CONVERSIONS.items():
        with pytest.raises((TypeError, ValueError)) as caught:
            lose(leaf())
        error = caught.value.__cause__ or caught.value  # NumPy wraps what a[0] = t says
        assert "a conversion to a NumPy array would drop the gradient of" in str(error) or (
            "float() would drop the gradient of" in str(error)
        ), name


WRITES = {  # what is typed, and the function that is named
    "a += t": "add",
    "a /= t": "divide",
    "square @= t[:, :2]": "matmul",
    "np.exp(t, out=a)": "exp",
    "np.exp(t, a)": "exp",
    "np.exp(a, out=t)": "exp",
}


def test_nothing_is_written_to_an_array_where_it_stands():
    for write, name in WRITES.items():
        words = "in place, or with out=, cannot be recorded: make a new array or tensor$"
        with pytest.raises(TypeError, match=f"^np.{name} {words}"):
            exec(write, {"np": np, "a": A.copy(), "square": A[:, :2].copy(), "t": leaf()})


signed = pytest.mark.skipif(
    not hasattr(np.copysign, "__signature__"), reason="NumPy's built-ins have no signatures yet"
)


@signed
def test_every_option_of_numpys_that_a_rule_lacks_is_refused_with_those_it_has():
    for function, rule in RECORDED.items():
        if isinstance(function, np.ufunc) or function in METHODS_ALONE:
            continue
        theirs, ours = (inspect.signature(f).parameters.values() for f in (function, rule))
        t = leaf()
        args = [t for p in theirs if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
        joins = (np.concatenate, np.stack, np.hstack, np.vstack)
        args = [args] if function in joins else ["ij", t] if function is np.einsum else args
        have = ", ".join(p.name for p in ours if p.default is not p.empty) or "none"
        named = (p for p in theirs if p.kind is not p.POSITIONAL_ONLY)
        options = {p.name for p in named if p.default is not p.empty}
        for option in options - {p.name for p in ours}:
            words = f"with {option}= has no rule for Tensors: its options here are {have}"
            if option == "out":
                words = "with out= cannot be recorded: make a new tensor"
            words = rf"^np\.(linalg\.)?{function.__name__} {re.escape(words)}$"
            with pytest.raises(TypeError, match=words):
                function(*args, **{option: "no" if option == "casting" else np.zeros(())})


REFUSES = "has no rule for Tensors: compose it from what minigrad has, write a @primitive, or pass "


def test_the_methods_of_a_ufunc_are_refused_by_name():
    args = {"reduce": [], "accumulate": [], "reduceat": [[0, 1]], "outer": [A], "at": [[0], 1.0]}
    for method, more in args.items():
        words = rf"^np\.add\.{method} {REFUSES}t.data if no gradient is wanted$"
        with pytest.raises(TypeError, match=words):
            getattr(np.add, method)(leaf(), *more)


def test_an_array_filled_with_a_number_is_a_plain_one_and_no_array_swallows_a_tensor():
    assert type(np.full_like(leaf(), 7.0)) is np.ndarray
    np.testing.assert_array_equal(np.full_like(leaf(), 7.0), np.full_like(A, 7.0), strict=True)
    with pytest.raises(TypeError, match="drop the gradient|has no rule"):
        np.full_like(A, leaf(0.5))


def test_a_ufunc_of_scipys_is_refused_with_ours():
    special = pytest.importorskip("scipy.special", reason="SciPy is not installed")
    ours = {"erf": "use minigrad.erf$", "gamma": "compose it from what minigrad has"}
    for name, remedy in ours.items():
        words = f"^{name}, which is not NumPy's, has no rule for Tensors: {remedy}"
        with pytest.raises(TypeError, match=words):
            getattr(special, name)(leaf())


@signed
def test_where_another_way_is_known_it_is_named_and_exists():
    for function, alternative in INSTEAD.items():
        required = [
            p
            for p in inspect.signature(function).parameters.values()
            if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        ]
        words = f"has no rule for Tensors: use {re.escape(alternative)}$"
        with pytest.raises(TypeError, match=words):
            function(*[leaf(ROW)] * max(len(required), 1))
        named = [getattr(np, name) for name in re.findall(r"np\.(\w+)", alternative)]
        of_numbers = {np.linspace, np.log, np.eye, np.ones, np.triu}  # (of numbers alone)
        assert all(f in RECORDED or f in PLAIN or f in of_numbers for f in named), function


def is_formula(text):
    try:
        return "(" in text and bool(compile(text, "the advice", "eval"))
    except SyntaxError:
        return False  # it is said in words


def test_where_the_other_way_is_a_formula_it_gives_the_same():
    y, start, stop = np.array([2.0, -0.5, -5.0]), np.float64(0.3), np.float64(1.7)
    for function, text in ((f, text) for f, text in INSTEAD.items() if is_formula(text)):
        x = np.array([0.7, np.nan, 0.2]) if "nan" in function.__name__ else ROW
        x = A if function in (np.fliplr, np.trace) else x
        calls = {
            np.insert: lambda x=x: np.insert(x, 1, [7.0, 11.0]),
            np.linspace: lambda: np.linspace(start, stop, 5),
        }
        of_two = function in (np.copysign, np.inner, np.remainder, np.vdot, np.vecdot)
        given = (x, y) if of_two else (x,)
        expected = calls.get(function, lambda f=function, given=given: f(*given))()
        names = {"x": leaf(x), "y": leaf(y), "start": leaf(start), "stop": leaf(stop)}
        found = eval(text, {"np": np, **names, "i": 1, "values": [7.0, 11.0], "n": 5})
        assert found.requires_grad
        np.testing.assert_allclose(found.data, expected, rtol=1e-14, strict=True)


def test_what_is_joined_without_an_axis_is_flattened_and_each_part_gets_its_gradient():
    a, b = leaf(), leaf(ROW)
    y = np.concatenate([a, b], axis=None)
    np.testing.assert_array_equal(y.data, np.concatenate([A, ROW], axis=None), strict=True)
    g = np.arange(9.0)
    for found, wanted in zip(
        minigrad.gradients(y, [a, b], g), (g[:6].reshape(2, 3), g[6:]), strict=True
    ):
        np.testing.assert_array_equal(found, wanted)


def test_a_copy_and_the_floating_absolute_value_have_numpys_dtypes():
    for numbers in (np.array([2, -3]), np.array([0.5, -1.5])):
        for f in (np.copy, np.fabs):
            np.testing.assert_array_equal(f(Tensor(numbers)).data, f(numbers), strict=True)


STACK = np.random.default_rng(7).uniform(0.2, 2.0, (2, 3, 5))
OTHER_ROWS = {  # the table's rows with another name than that of their operation
    np.amax: lambda x: np.amax(x, axis=1),
    np.amin: lambda x: np.amin(x, axis=(0, 2), keepdims=True),
    np.copy: lambda x: np.copy(x),
    np.fabs: lambda x: np.fabs(x * [1, -1, 1, -1, 1]) * x,
    np.linalg.cross: lambda x: np.linalg.cross(x[..., :3], x[..., 2:]),
    np.linalg.inv: lambda x: np.linalg.inv(x[:, :, 1:4]),
    np.linalg.norm: lambda x: np.linalg.norm(x, axis=1),
    np.linalg.outer: lambda x: np.linalg.outer(x[0, 1], x[1, :, 2]),
    np.linalg.solve: lambda x: np.linalg.solve(x[:, :, 1:4], x[:, :, :2]),
    np.matrix_transpose: lambda x: np.matrix_transpose(x),
}


def test_a_row_under_another_name_gives_numpys_value_and_its_derivative():
    named = {f for f, operation in RECORDED.items() if f.__name__ != operation.__name__}
    assert named - METHODS_ALONE <= {*OTHER_ROWS, np.absolute}  # (np.absolute is np.abs)
    for function, call in OTHER_ROWS.items():
        y = call(leaf(STACK))
        assert type(y) is Tensor and y.requires_grad, function
        np.testing.assert_allclose(y.data, call(STACK), rtol=1e-12, strict=True)
        assert minigrad.gradcheck(call, STACK), function
    t = leaf(STACK)  # (and a method without an argument)
    np.testing.assert_array_equal(t.transpose().data, STACK.transpose(), strict=True)


def test_axes_may_be_a_tuple_and_the_order_of_a_vectors_norm_2():
    for call in (
        lambda x: x.transpose((0, 1)) + np.transpose(x, (-2, -1)) + x.transpose(1, 0).T,
        lambda x: np.expand_dims(x, [-1, -3]),
        lambda x: np.squeeze(x[None, :, None], axis=(0, -2)),
        lambda x: np.expand_dims(x, (0, -1)),
        lambda x: np.linalg.norm(x[0], 2),
        lambda x: np.linalg.norm(x, ord=2, axis=-1),
        lambda x: np.average(x, axis=1, weights=[2.0, 3.0, 5.0]),
    ):
        np.testing.assert_allclose(call(leaf()).data, call(A), rtol=1e-15, strict=True)


# What the words of others would be given, for the tensors t (2, 3) and u (2, 3).
HERE = {
    "np": np,
    "minigrad": minigrad,
    "dtype": np.float32,
    "mask": MASK,
    "axis": 1,
    "axes": (1, 0),
    "n": 3,
    "shape": (6, 1),
    "value": -7.0,
    "values": np.array([2.0, 3.0]),
    "index": (np.array([0, 1]), np.array([2, 2])),
    "indices": np.array([[2, 0], [1, 1]]),
}


def recommended(word):
    """Return the code in a recommendation, without the words around it."""
    parts = re.split(r" for a (?:gradient|leaf)(?:, )?| itself.*", OTHER_WORDS[word])
    return [part for part in parts if part]


def test_a_word_of_pytorchs_is_answered_with_numpys_and_that_one_works():
    for word in (word for word in OTHER_WORDS if word[-1] != "="):
        with pytest.raises(AttributeError) as caught:
            getattr(leaf(), word)
        expected = f"a Tensor speaks NumPy's words: instead of t.{word} use {OTHER_WORDS[word]}"
        assert str(caught.value) == expected
        for statement in recommended(word):
            names = HERE | {"t": leaf(), "u": leaf(A.T if word == "mm" else A)}
            if "broadcast_to" in statement:
                names["shape"] = (5, 2, 3)
            if statement.startswith("t.data"):
                names["values"] = A + 1
            if "loss" in statement:
                names["loss"] = (names["t"] * 2.0).sum()
            if "scatter_add" in statement:
                names["values"], names["shape"] = leaf(np.array([2.0, 3.0])), (2, 3)
            exec(statement, names)


FUNCTIONS = {name: getattr(minigrad, name) for name in (*ops.__all__, *functional.__all__)}
FUNCTIONS |= {f"Tensor.{name}": f for name, f in vars(TensorWords).items() if name[0] != "_"}
FUNCTIONS = {name: f for name, f in FUNCTIONS.items() if callable(f)}


def test_a_wrong_option_is_refused_with_the_name_that_is_typed_and_with_an_option_that_is_there():
    """(PyTorch's word for an option gets ours where the function has it, and nowhere else.)"""
    theirs = {"dim": "axis", "keepdim": "keepdims", "bad": "bad"}
    for (name, function), (option, ours) in itertools.product(FUNCTIONS.items(), theirs.items()):
        parameters = inspect.signature(function).parameters
        given = [leaf() for p in parameters.values() if p.default is p.empty and p.kind < 2]
        said = rf"^{name}\(\) got an unexpected keyword argument '{option}'"
        hint = f"; instead of {option}= use {ours}=" if ours in parameters else ""
        with pytest.raises(TypeError, match=f"{said}{hint}$"):
            function(*given, **{option: True})
    for call in (lambda t: t.sum(0, True), lambda t: t.swapaxes(0)):  # (and any other TypeError)
        with pytest.raises(TypeError, match=r"^Tensor\.(sum|swapaxes)\(\) (takes|missing) "):
            call(leaf())


def test_a_former_option_is_refused_with_the_present_one():
    for optimizer in (SGD, Adam):
        with pytest.raises(
            TypeError, match="; instead of weight_decay= use weight_decay= of AdamW$"
        ):
            optimizer([leaf()], lr=0.1, weight_decay=0.1)
    with pytest.raises(TypeError, match="; instead of decay= use weight_decay= of AdamW$"):
        AdamW([leaf()], decay=0.1)  # (its name until 0.1.0)


@minigrad.engine.hints.in_our_words
def mean_of_all(x, axis=None, **options):
    return x.mean(axis=axis, **options)


def test_an_option_that_a_function_passes_on_is_explained_once_and_other_errors_stay():
    with pytest.raises(TypeError, match=r"^Tensor\.mean\(\) .*'dim'; instead of dim= use axis=$"):
        mean_of_all(leaf(), dim=1)
    with pytest.raises(TypeError, match="'NoneType'$"):  # (not an error about an option)
        minigrad.primitive(lambda x, /, *, dim: (x + None, None))(leaf(), dim=0)


def test_a_name_of_pytorchs_is_answered_by_a_module_or_a_model_with_what_exists_here():
    places = {"minigrad": minigrad, "np": np, "model": nn.LayerNorm(3), "attention": attention}
    for name, here in OTHER_NAMES.items():
        owners = [each for each in (minigrad, nn, optim) if name not in vars(each)]
        for owner in [places["model"]] if name[0] == "." else owners:
            with pytest.raises(AttributeError, match=f"{name}.*: use {re.escape(here)}$"):
                getattr(owner, name.strip("."))
        for named in re.findall(r"(?:minigrad|attention|np|model)(?:\.\w+)+", here):
            assert callable(eval(named, places))
    for name, here in (("cat", OTHER_WORDS["cat"]), ("zeros", "np.zeros"), ("argmax", "np.argmax")):
        with pytest.raises(AttributeError, match=f"no attribute '{name}': use {re.escape(here)}$"):
            getattr(minigrad, name)


class Careful(nn.Module):
    @property
    def broken(self):
        return {}.missing


def test_what_asks_a_module_or_a_model_for_a_name_gets_pythons_answer():
    for name in ("__wrapped__", "__path__x", "_secret", "__author__", "Lineer"):
        for owner in (minigrad, nn, optim, Careful()):
            assert not hasattr(owner, name) and getattr(owner, name, 7) == 7
    with pytest.raises(AttributeError, match="^'dict' object has no attribute 'missing'$"):
        _ = Careful().broken  # (its own error)
    for made in (copy.deepcopy(Careful()), pickle.loads(pickle.dumps(Careful()))):
        assert type(made) is Careful
    assert inspect.getmembers(nn) and doctest.DocTestFinder().find(optim)


PYTHONS = {  # lines of PyTorch's that Python or NumPy answers, and what to write
    "x.data -= 0.1 * x.grad": ("output array is read-only", "x.data = x.data - 0.1 * x.grad"),
    "x.size()": ("'int' object is not callable", "x.shape"),
    "x.grad.zero_()": ("has no attribute 'zero_'", "x.grad = None"),
    "SGD([x])": ("missing 1 required positional argument: 'lr'", "SGD([x], lr=0.1)"),
    "y, _ = layer(x, x, x)": ("too many values to unpack", "y = layer(x)"),
    "from minigrad.nn import ReLU": ("cannot import name 'ReLU'", "from minigrad import relu"),
}


def test_where_python_answers_the_page_of_words_says_what_to_write():
    page = (SITE / "words.html").read_text("utf-8")
    layer = attention.MultiHeadAttention(3, 1, rng=np.random.default_rng(0))
    for line, (error, instead) in PYTHONS.items():
        names = {"x": leaf(FOUR), "SGD": SGD, "layer": layer}
        names["x"].grad = np.ones_like(FOUR)
        with pytest.raises((TypeError, ValueError, AttributeError, ImportError)) as caught:
            exec(line, names)
        assert error in str(caught.value)
        exec(instead, names)
        assert f"<tr><td><code>{line}</code></td><td><code>{instead}</code></td>" in page


TORCH = """
t.chunk(3, 1) = np.split(t, 3, 1)
t.clone() = t.copy()
t.dim() = t.ndim
t.expand(5, 2, 3) = np.broadcast_to(t, (5, 2, 3))
t.gather(1, i) = np.take_along_axis(t, i, 1)
t.masked_fill(t > 1.0, -7.0) = np.where(t > 1.0, -7.0, t)
t.numel() = t.size
t.permute(1, 0) = t.transpose((1, 0))
t.t() = t.T
t.unsqueeze(1) = np.expand_dims(t, 1)
t.view(6, 1) = t.reshape((6, 1))
"""


def elsewhere():
    """Yield the calls that the site's page of words has side by side: PyTorch's, and ours."""
    page = (SITE / "words.html").read_text("utf-8")
    for theirs, ours in re.findall(r"<tr><td>(<code>t\..*?)</td><td>(.*?)</td>", page):
        calls = (re.findall("<code>(.*?)</code>", each) for each in (theirs, ours))
        yield from zip(*calls, strict=True)


def test_the_recommended_word_means_what_pytorchs_means():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    cases = [(*row.split(" = "), A) for row in TORCH.strip().splitlines()]
    others = [(*pair, ROW if "repeat" in pair[0] else FOUR) for pair in elsewhere()]
    assert len(others) == 7
    for theirs, ours, t in cases + others:
        expected = eval(theirs, {"t": torch.tensor(t), "i": torch.tensor(HERE["indices"])})
        found = eval(ours, {"np": np, "t": leaf(t), "i": HERE["indices"]})
        if not isinstance(found, list):
            found, expected = [found], [expected]
        for y, z in zip(found, expected, strict=True):
            y = y.data if isinstance(y, Tensor) else y
            np.testing.assert_allclose(y, np.asarray(z), rtol=1e-14)


def test_a_function_looked_for_among_the_methods_is_named_with_its_module():
    for name in {*ops.__all__, *functional.__all__} - {*dir(Tensor), *OTHER_WORDS}:
        with pytest.raises(AttributeError) as caught:
            getattr(leaf(), name)
        words = rf"a Tensor speaks NumPy's words: {name} is a function, (np|minigrad)\.{name}\(t\)"
        (where,) = re.fullmatch(words, str(caught.value)).groups()
        function = getattr({"np": np, "minigrad": minigrad}[where], name)
        assert function in RECORDED if where == "np" else function is getattr(minigrad, name)


def test_an_unknown_attribute_is_an_ordinary_error():
    for name in ("nummel", "_secret", "__array_struct__", "Node", "primitive", "Graph"):
        with pytest.raises(AttributeError, match=f"^a Tensor has no attribute '{name}'$"):
            getattr(leaf(), name)
