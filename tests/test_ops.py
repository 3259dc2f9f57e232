"""Chapter 3 · Primitives: every rule, in every case, against NumPy and against its own derivative.

One table holds the cases. Primitives carry NumPy's names, so NumPy's function of the same name
is the oracle; what NumPy lacks is written out in `ORACLES`. What only one rule promises (ties,
infinities, adjoints, refusals) stands in the subchapters' own tests.
"""

from typing import Any, NamedTuple

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from minigrad import Tensor, gradcheck, ops


class Case(NamedTuple):
    name: str
    inputs: tuple[Any, ...]
    options: dict[str, Any]

    def __str__(self):
        shapes = [
            str(a.shape).replace(" ", "") if isinstance(a, np.ndarray) else repr(a)
            for a in self.inputs
        ]
        return " ".join([self.name, *shapes, *(f"{k}={v}" for k, v in self.options.items())])

    def primitive(self, *inputs):
        if self.name == "concatenate":
            return ops.concatenate(inputs, **self.options)
        return getattr(ops, self.name)(*inputs, **self.options)

    def oracle(self, *inputs):
        oracle = ORACLES.get(self.name) or getattr(np, self.name)
        return np.asarray(oracle(*inputs, **self.options))


def scattered(x, shape, index):
    y = np.zeros(shape, x.dtype)
    places = np.arange(y.size).reshape(shape)[index]
    for place, value in zip(np.ravel(places), np.ravel(x), strict=True):
        y.flat[place] += value
    return y


ORACLES = {
    "astype": lambda x, dtype: x.astype(dtype),
    "concatenate": lambda *xs, axis=0: np.concatenate(xs, axis),
    "getitem": lambda x, index: x[index],
    "log_softmax": lambda x, axis=-1: x - np.log(np.exp(x).sum(axis, keepdims=True)),
    "logsumexp": lambda x, **options: np.log(np.exp(x).sum(**options)),
    "reshape": lambda x, shape: x.reshape(shape),
    "scatter_add": scattered,
    "softmax": lambda x, axis=-1: np.exp(x) / np.exp(x).sum(axis, keepdims=True),
}

random = np.random.default_rng(3)


def case(name, *inputs, **options):
    return Case(name, inputs, options)


def x(*shape):
    return random.standard_normal(shape)


def positive(*shape):
    return random.uniform(0.5, 2.0, shape)


def nonzero(*shape):
    return positive(*shape) * random.choice([-1, 1], shape)


def apart(*shape, start=-1.0):
    """Distinct, in steps of ¼: a finite difference must not step over a tie."""
    return np.asarray(random.permutation(int(np.prod(shape))).reshape(shape) / 4 + start)


def mask(*shape):
    return random.random(shape) < 0.5


BROADCASTS = [
    ((), ()),
    ((3, 5), (3, 5)),
    ((3, 5), ()),
    ((), (3, 5)),
    ((2, 3, 5), (5,)),
    ((5,), (2, 3, 5)),
    ((3, 1), (1, 5)),
    ((2, 1, 5), (3, 1)),
    ((1, 1), (2, 3, 5)),
]
NUMBERS = [2, 0.75, np.int64(2), np.float64(0.75), np.float32(0.75)]
AXES = [None, 1, -1, (0, 2), (-1, 0), (0, 1, 2), ()]
INDICES = [  # each into an array of shape (3, 5)
    2,
    -1,
    np.int64(1),
    slice(1, None),
    slice(None, None, -1),
    (slice(None, None, -2), slice(4, 0, -3)),
    slice(2, 2),
    (),
    ...,
    None,
    (..., 0),
    (1, 3),
    (slice(None), None, 2),
    [2, 0, 2],
    [],
    (slice(None), [1, 1, 4]),
    ([0, 2, 2, 0], [1, 4, 4, 3]),
    ([[0], [2]], [4, 4, 1]),
    ([1, 1], None, [2, 2]),
    (None, [1, 1], ..., 2),
    np.array([[2, 2], [0, 2]]),
    np.array([True, False, True]),
    (slice(1, None), np.array([True, False, True, True, False])),
    np.arange(15).reshape(3, 5) % 2 == 0,
    (np.array([True, False, True]), [3, 3]),
]
PRODUCTS = [
    ((3, 5), (5, 7)),
    ((5,), (5,)),
    ((3, 5), (5,)),
    ((5,), (5, 7)),
    ((2, 3, 5), (5,)),
    ((5,), (2, 5, 7)),
    ((2, 3, 5), (5, 7)),
    ((3, 5), (2, 5, 7)),
    ((2, 3, 5), (2, 5, 7)),
    ((2, 1, 3, 5), (11, 5, 7)),
    ((1, 5), (5, 1)),
    ((1, 3, 5), (2, 5, 1)),
]

CASES = [
    # 3.1 elementwise
    *(
        case(name, positive(*a), positive(*b))
        for name in ("add", "subtract", "multiply", "divide", "power")
        for a, b in BROADCASTS
    ),
    *(case("maximum", apart(*a), apart(*b, start=-0.875)) for a, b in BROADCASTS),
    *(
        case(name, *pair)
        for name in ("add", "subtract", "multiply", "divide", "power")
        for n in NUMBERS
        for pair in ((positive(3, 5), n), (n, positive(3, 5)))
    ),
    *(
        case("maximum", *pair)
        for n in NUMBERS
        for pair in ((apart(3, 5, start=-0.875), n), (n, apart(3, 5, start=-0.875)))
    ),
    *(case(name, nonzero(3, 5), nonzero(5)) for name in ("add", "subtract", "multiply", "divide")),
    *(case("power", nonzero(3, 5), n) for n in (0, 1, 2, 3, -1, -2)),
    case("power", nonzero(3, 5), np.array([2, 3, 0, 1, -1], np.int8)),
    *(case(name, x(3, 5)) for name in ("exp", "negative", "positive", "tanh")),
    *(case(name, positive(3, 5)) for name in ("log", "sqrt")),
    *(case(name, positive()) for name in ("exp", "log", "negative", "positive", "sqrt", "tanh")),
    # 3.2 shape
    *(case("reshape", x(2, 3, 5), shape=s) for s in ((5, 6), 30, -1, (3, -1), (2, 1, 15), (30, 1))),
    *(case("reshape", x(*s), shape=t) for s, t in (((), (1, 1)), ((1, 1), ()), ((1,), -1))),
    *(case("transpose", x(2, 3, 5), axes=a) for a in (None, (2, 0, 1), (-1, 0, 1), (0, 1, 2))),
    *(case("transpose", x(*s)) for s in ((), (3,))),
    *(case("swapaxes", x(2, 3, 5), axis1=i, axis2=j) for i, j in ((0, 2), (-1, -2), (1, 1))),
    *(
        case("broadcast_to", x(*s), shape=(2, 3, 5))
        for s in ((), (1,), (5,), (3, 1), (2, 1, 1), (1, 3, 5), (2, 3, 5))
    ),
    case("broadcast_to", x(), shape=()),
    *(case("astype", x(*s), dtype=np.float64) for s in ((), (3, 5))),
    # 3.3 indexing
    *(case("getitem", x(3, 5), index=i) for i in INDICES),
    *(case("getitem", x(), index=i) for i in ((), ..., None, True)),
    *(
        case("scatter_add", x(*np.shape(np.zeros((3, 5))[i])), shape=(3, 5), index=i)
        for i in INDICES
    ),
    *(
        case("where", mask(*c), x(*a), x(*b))
        for c, a, b in (
            ((3, 5), (3, 5), (3, 5)),
            ((3, 5), (), (5,)),
            ((5,), (2, 3, 5), ()),
            ((2, 3, 5), (3, 1), (1, 5)),
            ((3, 1), (1, 5), (2, 1, 1)),
            ((), (3, 5), (5,)),
        )
    ),
    *(case("where", mask(3, 5), *p) for n in NUMBERS for p in ((x(3, 5), n), (n, x(3, 5)))),
    case("where", np.array([0, 1, 2]), x(3), x(3)),
    case("concatenate", x(2, 5), x(3, 5)),
    case("concatenate", x(3, 2), x(3, 5), x(3, 1), axis=1),
    case("concatenate", x(2, 3, 5), x(2, 7, 5), axis=-2),
    case("concatenate", x(3), x(0), x(2), axis=-1),
    case("concatenate", x(3, 5)),
    # 3.4 reduce, and 3.6's reduction
    *(
        case(name, apart(2, 3, 5), axis=axis, keepdims=keepdims)
        for name in ("sum", "mean", "max", "logsumexp")
        for axis in AXES
        for keepdims in (False, True)
    ),
    *(
        case(name, x(*shape), axis=axis)
        for name in ("sum", "mean", "max", "logsumexp")
        for shape, axis in (((), None), ((3, 1), 1), ((1, 1), None))
    ),
    *(case(name, x(), axis=-1) for name in ("sum", "max", "logsumexp")),  # NumPy allows it
    *(case("sum", x(0, 3), axis=axis) for axis in (None, 0, 1)),
    # 3.5 linear algebra
    *(case("matmul", x(*a), x(*b)) for a, b in PRODUCTS),
    case("matmul", x(3, 0), x(0, 5)),
    # 3.6 softmax
    *(case(name, x(2, 3, 5)) for name in ("softmax", "log_softmax")),
    *(
        case(name, x(2, 3, 5), axis=axis)
        for name in ("softmax", "log_softmax")
        for axis in (0, 1, -2, None, (0, 2))
    ),
    *(case(name, x(*s)) for name in ("softmax", "log_softmax") for s in ((), (1,), (3, 1))),
]

every_case = pytest.mark.parametrize("case", CASES, ids=str)


# ---------------------------------------------------------------- value


def test_the_table_has_a_row_for_every_primitive():
    assert {case.name for case in CASES} == set(ops.__all__)


@every_case
def test_the_value_is_numpys(case):
    y, expected = case.primitive(*map(Tensor, case.inputs)).data, case.oracle(*case.inputs)
    assert y.shape == expected.shape
    assert y.dtype == expected.dtype
    np.testing.assert_allclose(y, expected, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("case", [c for c in CASES if getattr(np, c.name, 0) in ops.NUMPY], ids=str)
def test_numpys_own_function_on_tensors_is_the_primitive(case):
    function = getattr(np, case.name)
    inputs = [
        Tensor(a, requires_grad=True) if np.asarray(a).dtype.kind == "f" else a for a in case.inputs
    ]
    y = function(*([inputs] if case.name == "concatenate" else inputs), **case.options)
    assert y.requires_grad
    np.testing.assert_array_equal(y.data, case.primitive(*inputs).data)


# ---------------------------------------------------------------- derivative


@every_case
def test_first_and_second_derivatives_agree_with_finite_differences(case):
    assert gradcheck(case.primitive, *case.inputs)


# ---------------------------------------------------------------- law


@pytest.mark.parametrize("case", [c for c in CASES if c.name != "astype"], ids=str)
def test_float32_stays_float32_in_the_value_and_in_every_vjp(case):
    """Looks at what each VJP itself gives, before the engine casts it: on arrays, and on Tensors
    as in the second order. Numbers stand beside the tensors as they are."""
    inputs = [
        Tensor(a, dtype=np.float32, requires_grad=True)
        if isinstance(a, np.ndarray) and a.dtype.kind == "f"
        else a
        for a in case.inputs
    ]
    found = [case.primitive(*inputs)]
    for t in found:
        assert t.dtype == np.float32
        if t.node is None:
            continue
        g = np.ones(t.shape, np.float32)
        _, *again = t.node.rule(*t.node.inputs, **t.node.options)
        for x, first, second in zip(t.node.inputs, t.node.vjps, again, strict=True):
            if isinstance(x, Tensor):
                assert first(g, t.data).dtype == np.float32
                assert second(Tensor(g), t).dtype == np.float32
                found.append(x)


@st.composite
def strided_views(draw):
    """An array, and what makes a view of it: any strides, also negative ones; any size, also 0."""
    shape = draw(hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=5))
    array = np.random.default_rng(draw(st.integers(0, 99))).uniform(0.5, 2.0, shape)
    index = draw(hnp.basic_indices(shape, allow_newaxis=True))
    axes = draw(st.permutations(range(np.ndim(array[index]))))
    return array, lambda a: (a if isinstance(a, Tensor) else np.asarray(a))[index].transpose(axes)


@pytest.mark.parametrize(
    "f",
    [
        lambda a: a * np.exp(a[..., ::-1]) if a.ndim else a * a,
        lambda a: a.reshape(-1)[::-2],
        lambda a: a.sum(axis=0, keepdims=True) if a.ndim else a.sum(),
        lambda a: np.concatenate([a.reshape(-1), a.T.reshape(-1)]),
        lambda a: np.broadcast_to(a, (2, *a.shape)) / 3,
        lambda a: a.mT @ a if a.ndim > 1 else a**3,
    ],
    ids=["multiply", "reshape", "sum", "concatenate", "broadcast_to", "matmul"],
)
@given(strided_views())
def test_any_strides_and_any_size_give_the_same(f, drawn):
    array, view = drawn
    expected = f(view(array))
    constant = Tensor(view(array))  # it shares the strided memory, where a leaf copies it
    for t in (constant, view(Tensor(array, requires_grad=True))):
        assert f(t).shape == expected.shape
        np.testing.assert_allclose(f(t).data, expected, rtol=1e-14)
    assert gradcheck(lambda a: f(view(a)), array, order=1)
