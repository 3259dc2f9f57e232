"""Every operation, in the cases that its tests run: chapters 3 and 6, and NumPy's words.

A case is an operation's name, its inputs and its options. Floating inputs are differentiated;
arrays of integers and booleans are handed through. Sizes are distinct primes, so that a mixed-up
axis cannot pass. What the operations are compared with stands in `oracles.py`, and
`python -m tests.coverage_table` says how many of these cases each check has passed.
"""

from typing import Any, NamedTuple

import numpy as np

import minigrad
from minigrad import concatenate, dropout, einsum, split, stack
from minigrad.functional import numpy_words
from minigrad.ops import inverses

random = np.random.default_rng(3)

# Operations that take or return lists, or need a generator, in the form f(*inputs, **options).
OURS = {
    "concatenate": lambda *xs, **options: concatenate(xs, **options),
    "dropout": lambda x, p: dropout(x, p, rng=np.random.default_rng(0)),
    "einsum": lambda *xs, subscripts, **options: einsum(subscripts, *xs, **options),
    # The parts in reverse order: had one been cut at another place, they would not join so.
    "split": lambda x, **o: concatenate(split(x, **o)[::-1], axis=o.get("axis", 0)),
    "stack": lambda *xs, **options: stack(xs, **options),
    # What is found as NumPy's functions only.
    "average": lambda a, weights=None, **o: numpy_words.average(a, weights=weights, **o),
    "hstack": lambda *xs: numpy_words.hstack(xs),
    "vstack": lambda *xs: numpy_words.vstack(xs),
    # Methods that differ from the function of their name, or have none. (An array has them too.)
    "t.T": lambda t: t.T,
    "t.mT": lambda t: t.mT,
    "t.copy": lambda t: t.copy(),
    "t.flatten": lambda t: t.flatten(),
    "t.reshape": lambda t, shape: t.reshape(*shape),
    "t.transpose": lambda t, axes: t.transpose(*axes),
}


INVERSES = (
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "cbrt",
    "hypot",
    "inv",
    "solve",
)  # chapter 3.9
WORDS = (
    *INVERSES,
    "atleast_1d",
    "atleast_2d",
    "average",
    "cross",
    "diff",
    "full_like",
    "hstack",
    "kron",
    "median",
    "nan_to_num",
    "vstack",
)  # and of numpy_words


def operation(name):
    """Return the function of a row."""
    if name in OURS:
        return OURS[name]
    modules = (inverses, numpy_words) if name in WORDS else (minigrad,)
    return next(getattr(module, name) for module in modules if hasattr(module, name))


class Case(NamedTuple):
    name: str
    inputs: tuple[Any, ...]
    options: dict[str, Any]

    def __str__(self):
        options = [f"{k}={_short(v)}" for k, v in self.options.items()]
        return " ".join([self.name, *map(_short, self.inputs), *options])

    def ours(self, *inputs):
        return operation(self.name)(*inputs, **self.options)

    @property
    def floating(self):
        """Return the positions of the inputs that have a derivative: float arrays and numbers."""
        return [i for i, a in enumerate(self.inputs) if np.asarray(a).dtype.kind == "f"]


def _short(value):
    is_array = isinstance(value, np.ndarray)
    return str(value.shape).replace(" ", "") if is_array else repr(value).replace(" ", "")


def case(name, *inputs, **options):
    return Case(name, inputs, options)


# ---------------------------------------------------------------- values


def x(*shape, rng=random):
    return np.asarray(rng.standard_normal(shape))


def positive(*shape, rng=random):
    return np.asarray(rng.uniform(0.5, 2.0, shape))


def probabilities(*shape, rng=random):
    return rng.dirichlet(np.ones(shape[-1]), shape[:-1])


def nonzero(*shape, rng=random):
    return np.asarray(positive(*shape, rng=rng) * rng.choice([-1, 1], shape))


def apart(*shape, start=-1.0, rng=random):
    """Return distinct numbers in steps of ¼: a finite difference must not step over a tie."""
    size = int(np.prod(shape))
    return np.asarray(rng.permutation(size).reshape(shape) / 4 + start)


def apart_below(*shape, rng=random):
    """Return numbers an eighth below those of `apart`: no element of one ties with the other."""
    return apart(*shape, start=-0.875, rng=rng)


def within(low, high):
    return lambda *shape, rng=random: np.asarray(rng.uniform(low, high, shape))


def regular(*shape, rng=random):
    """Return matrices far from singular ones."""
    return 0.5 * x(*shape, rng=rng) + 3 * np.eye(shape[-1])


def mask(*shape, rng=random):
    return np.asarray(rng.random(shape) < 0.5)


# Where the curves of one argument are at home, and away from their kinks.
CURVES = {
    **dict.fromkeys(("abs", "relu", "sign"), nonzero),
    **dict.fromkeys(("arccos", "arcsin", "arctanh"), within(-0.8, 0.8)),
    "arccosh": within(1.2, 3.0),
    "cbrt": within(0.5, 3.0),
    **dict.fromkeys(("log", "log1p", "sqrt"), positive),
    **dict.fromkeys(("arcsinh", "arctan", "cos", "erf", "exp", "expm1", "gelu", "gelu_tanh"), x),
    **dict.fromkeys(("nan_to_num", "negative", "positive", "sigmoid", "silu", "sin", "sinh"), x),
    **dict.fromkeys(("softplus", "square", "tanh"), x),
}
PAIRS = {
    **dict.fromkeys(("add", "subtract", "multiply", "logaddexp"), (x, x)),
    "divide": (x, nonzero),
    "power": (positive, x),
    **dict.fromkeys(("maximum", "minimum"), (apart, apart_below)),
}
REDUCTIONS = {
    **dict.fromkeys(("sum", "mean", "var", "std", "logsumexp"), x),
    **dict.fromkeys(("max", "min"), apart),
    "prod": positive,
}
OF_NOTHING = ("sum", "prod")  # the reductions that have a value for no elements

# ---------------------------------------------------------------- shapes and options

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
    ((0, 5), (1, 5)),
    ((3, 1), (0,)),
]
NUMBERS = [2, 0.75, np.int64(2), np.float64(0.75), np.float32(0.75)]
AXES = [None, 1, -1, (0, 2), (-1, 0), (0, 1, 2), ()]
INDICES = [  # each into an array of shape (3, 5)
    2,
    -1,
    np.int64(1),
    (),
    ...,
    None,
    (..., 0),
    (1, 3),
    (slice(None), None, 2),
    slice(1, None),
    slice(None, None, -1),
    slice(2, 2),
    (slice(None, None, -2), slice(4, 0, -3)),
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
    ((3, 0), (0, 5)),
]
SUBSCRIPTS = [
    ("ij->ji", (3, 5)),
    ("ij->", (3, 5)),
    ("ij->i", (3, 5)),
    ("ba", (3, 5)),  # no output is named: the letters in the order of the alphabet
    ("->", ()),
    ("...->...", (3, 5)),
    ("i,i", (5,), (5,)),
    ("i,j->ij", (3,), (5,)),
    (",ij->ij", (), (3, 5)),
    ("ij,jk", (3, 5), (5, 7)),
    ("ij,jk->ki", (3, 5), (5, 7)),
    ("i j, j k -> i k", (3, 5), (5, 7)),
    ("ij,k->j", (3, 5), (7,)),  # i and k stand in one operand alone
    ("bij,bjk->bik", (2, 3, 5), (2, 5, 7)),
    ("bqhd,bkhd->bhqk", (2, 3, 5, 7), (2, 11, 5, 7)),
    ("...ij,...jk->...ik", (2, 1, 3, 5), (7, 5, 2)),
    ("i...,...j", (3, 2, 5), (5, 7)),
    ("...i,i", (2, 3, 5), (5,)),
    ("ij,ij->ij", (3, 1), (1, 5)),  # axes of length 1 stretch under their letter
    ("ij,jk->ik", (3, 1), (5, 7)),
    ("ij,ij->", (3, 1), (3, 5)),
    ("ij,jk,kl->il", (2, 3), (3, 5), (5, 7)),
    ("i,i,i", (5,), (5,), (5,)),
    ("i,j,k->", (2,), (3,), (5,)),
    ("ij,jk->ik", (3, 0), (0, 5)),
]
JOINING = ("hstack", "vstack")

# ---------------------------------------------------------------- the table

CASES = [
    # 3.1 and 6.1, elementwise
    *(case(name, at(*shape)) for name, at in CURVES.items() for shape in ((3, 5), (), (0, 3))),
    *(case(name, of(*a), to(*b)) for name, (of, to) in PAIRS.items() for a, b in BROADCASTS),
    *(
        case(name, *pair)
        for name, (of, to) in PAIRS.items()
        for n in NUMBERS
        for pair in ((to(3, 5) if of is apart else of(3, 5), n), (n, to(3, 5)))
    ),
    *(case("power", nonzero(3, 5), n) for n in (0, 1, 2, 3, -1, -2)),
    case("power", nonzero(3, 5), np.array([2, 3, 0, 1, -1], np.int8)),
    case("clip", apart(3, 5, start=-1.9), a_min=-0.8, a_max=0.8),
    case("clip", apart(3, 5, start=-1.9), a_min=-0.8, a_max=None),
    case("clip", apart(3, 5, start=-1.9), a_min=None, a_max=np.float64(0.8)),
    case("clip", apart(3, 5, start=-1.9), a_min=0.5, a_max=-0.5),  # limits the wrong way round
    case("clip", apart(3, 5, start=-1.9), -0.8, 0.8),
    case("clip", apart(3, 5, start=-1.9), np.array(-0.8), np.array(0.8)),
    case("clip", apart(3, 5, start=-1.9), apart(5, start=-1.3), apart(3, 1, start=0.7)),
    case("clip", apart(5, start=-1.9), apart(2, 3, 1, start=-2.3), 2),
    case("clip", apart(0, 3), -1.0, 1.0),
    # 3.2, and manipulation
    *(case("reshape", x(2, 3, 5), shape=s) for s in ((5, 6), 30, -1, (3, -1), (2, 1, 15), (30, 1))),
    *(case("reshape", x(*s), shape=t) for s, t in (((), (1, 1)), ((1, 1), ()), ((1,), -1))),
    case("reshape", x(0, 3), shape=(5, 0)),
    *(case("transpose", x(2, 3, 5), axes=a) for a in (None, (2, 0, 1), (-1, 0, 1), (0, 1, 2))),
    *(case("transpose", x(*s)) for s in ((), (3,), (0, 3))),
    *(case("swapaxes", x(2, 3, 5), axis1=i, axis2=j) for i, j in ((0, 2), (-1, -2), (1, 1))),
    case("swapaxes", x(0, 3), axis1=0, axis2=1),
    *(
        case("broadcast_to", x(*s), shape=(2, 3, 5))
        for s in ((), (1,), (5,), (3, 1), (2, 1, 1), (1, 3, 5), (2, 3, 5))
    ),
    case("broadcast_to", x(), shape=()),
    case("broadcast_to", x(1, 3), shape=(0, 3)),
    *(case("astype", x(*s), dtype=np.float64) for s in ((), (3, 5), (0, 3))),
    *(case("ravel", x(*s)) for s in ((2, 3, 5), (3,), (), (0, 3))),
    *(
        case("moveaxis", x(2, 3, 5), source=i, destination=j)
        for i, j in ((0, -1), (-1, 0), (1, 1), ((0, 1), (-1, 0)), ((2, 0), (0, 1)))
    ),
    case("moveaxis", x(0, 3), source=0, destination=1),
    *(case("expand_dims", x(3, 5), axis=a) for a in (0, 1, -1)),
    *(case("expand_dims", x(*s), axis=0) for s in ((), (0, 3))),
    *(case("squeeze", x(1, 3, 1, 5), axis=a) for a in (None, 0, 2, -2)),
    *(case("squeeze", x(*s)) for s in ((1, 1), (), (3, 5), (1, 0))),
    *(case("flip", x(2, 3, 5), axis=a) for a in (None, 0, -1, (0, 2), (1, -1), ())),
    *(case("flip", x(*s)) for s in ((), (0, 3))),
    *(
        case("roll", x(2, 3, 5), shift=s, axis=a)
        for s, a in (
            (7, None),
            (0, None),
            (1, 0),
            (-2, -1),
            (13, 1),
            (2, (1, 2)),
            (np.int64(2), 1),
            ((1, -1), (0, 2)),
            ((1, 2), (2, 2)),
            ((1, 2), 2),  # also twice along one axis
        )
    ),
    *(case("roll", x(*s), shift=1) for s in ((), (0, 3))),
    case("roll", x(0, 3), shift=1, axis=0),
    *(
        case("take", x(3, 5), indices=i, axis=a)
        for i, a in (
            ([2, 0, 2], 0),
            ([2, 0, 2], -1),
            ([[1, -1], [0, 2]], 1),
            ([14, 0, -1, 0], None),
            (1, 0),
            (np.int64(-1), 1),
            (np.array([], int), 1),
            ([], 1),
        )
    ),
    case("take", x(), indices=[0, 0]),
    *(
        case("take_along_axis", x(*s), indices=np.asarray(i), axis=a)
        for s, i, a in (
            ((2, 3), [[2, 2], [0, 1]], -1),
            ((2, 3), [[2, 2], [0, -1]], 1),
            ((3, 2), [[2, 1], [2, 1], [0, 1], [0, 0]], 0),
            ((2, 3, 1), [[[1]], [[2]]], 1),
            ((1, 5), [[4, 4], [0, 1], [2, 1]], 1),  # x stretches to the indices' rows
            ((3, 5), [[4, 4, 0]], 1),  # and they to those of x
            ((2, 3), np.zeros((2, 0), int), 1),
        )
    ),
    *(case("sort", apart(2, 3, 5), axis=a) for a in (0, 1, -1)),
    *(case("sort", apart(*s)) for s in ((5,), (1,), (0, 3), (3, 0))),
    *(
        case("repeat", x(3, 5), repeats=r, axis=a)
        for r, a in (
            (2, None),
            (2, 0),
            (3, -1),
            (0, 1),
            ([1, 0, 2], 0),
            (np.array([2, 1, 0, 3, 1]), 1),
            ([2], 1),
        )
    ),
    *(case("repeat", x(*s), repeats=2) for s in ((), (0, 3))),
    *(case("tile", x(3, 5), reps=r) for r in (2, (2,), (2, 1), (2, 3, 1), (1, 1), (0, 2), ())),
    case("tile", x(3, 5), reps=np.int64(2)),
    *(case("tile", x(*s), reps=(2, 3)) for s in ((), (5,), (0, 3))),
    *(
        case("pad", x(3, 5), pad_width=w)
        for w in (1, (2, 1), ((1, 2), (0, 3)), 0, ((0, 0), (1, 0)))
    ),
    case("pad", x(3), pad_width=(4, 8)),
    case("pad", x(3, 5), pad_width=((1, 2), (0, 3)), constant_values=7.0),
    case("pad", x(3, 5), pad_width=((1, 2), (0, 3)), constant_values=(-1, 2.5)),
    case("pad", x(3, 5), pad_width=((1, 2), (0, 3)), constant_values=((1, 2), (3, 4))),
    case("pad", x(0, 3), pad_width=1),
    *(
        case("diagonal", x(2, 3, 5), offset=o, axis1=i, axis2=j)
        for o, i, j in (
            (0, 0, 1),
            (0, 1, 2),
            (1, -2, -1),
            (-2, 1, 2),
            (3, 2, 0),
            (-4, 2, 0),
            (9, 0, 1),
        )
    ),
    *(case("diagonal", x(*s)) for s in ((3, 3), (0, 3))),
    *(case(name, x(2, 3, 5), k=k) for name in ("tril", "triu") for k in (0, 1, -1, 3, -4, 9)),
    *(case(name, x(*s)) for name in ("tril", "triu") for s in ((5, 3), (5,), (0, 3))),
    # 3.3 and 6.2, indexing and joining
    *(case("getitem", x(3, 5), index=i) for i in INDICES),
    *(case("getitem", x(), index=i) for i in ((), ..., None, True)),
    *(
        case("scatter_add", x(*np.shape(np.zeros((3, 5))[i])), shape=(3, 5), index=i)
        for i in INDICES
    ),
    *(
        case("scatter_add", x(*s), shape=(3, 5), index=i)
        for s, i in (  # stretched to the places
            ((5,), [2, 0, 2]),
            ((2, 1), slice(1, None)),
            ((), (..., 0)),
            ((), [2, 0, 2]),
            ((3, 1), (slice(None), [0, 4, 4, 1, 4, 0, 2])),
        )
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
            ((0, 5), (5,), ()),
        )
    ),
    *(case("where", mask(3, 5), *p) for n in NUMBERS for p in ((x(3, 5), n), (n, x(3, 5)))),
    case("where", np.array([0, 1, 2]), x(3), x(3)),
    case("concatenate", x(2, 5), x(3, 5)),
    case("concatenate", x(3, 2), x(3, 5), x(3, 1), axis=1),
    case("concatenate", x(2, 3, 5), x(2, 7, 5), axis=-2),
    case("concatenate", x(3), x(0), x(2), axis=-1),
    case("concatenate", x(3, 5)),
    *(case("stack", x(3, 5), x(3, 5), axis=a) for a in (0, 1, 2, -1, -2)),
    *(case("stack", x(*s), x(*s), x(*s)) for s in ((), (3,), (0, 3))),
    case("stack", x(3, 5), axis=1),
    *(
        case("split", x(6, 5), indices_or_sections=i, axis=a)
        for i, a in (
            (1, 0),
            (2, 0),
            (np.int64(3), 0),
            (5, -1),
            ([1, 4], 0),
            ([2], 1),
            ([], 1),
            ([3, 3], 0),
            ([2, 11], 0),
            ([1, -1], 1),
            (np.array([1, 2]), -1),  # also behind the end
        )
    ),
    case("split", x(0, 3), indices_or_sections=2),
    # 3.4 and 6.3, reductions
    *(
        case(name, of(2, 3, 5), axis=axis, keepdims=keepdims)
        for name, of in REDUCTIONS.items()
        for axis in AXES
        for keepdims in (False, True)
    ),
    *(
        case(name, of(*shape), axis=axis)
        for name, of in REDUCTIONS.items()
        for shape, axis in (((), None), ((3, 1), 1), ((1, 1), None), ((0, 3), 1))
    ),
    # NumPy lets some reductions of a 0-d array run over axis -1.
    *(
        case(name, REDUCTIONS[name](), axis=-1)
        for name in ("sum", "max", "min", "prod", "logsumexp")
    ),
    *(case(name, x(0, 3), axis=axis) for name in OF_NOTHING for axis in (None, 0)),
    case("prod", np.array([[2.0, 0.0, 3.0], [0.5, -2.0, 5.0]])),
    case("prod", np.array([[2.0, 0.0, 3.0], [0.0, -2.0, 0.0]]), axis=1),
    *(case(name, x(3, 5), axis=a, ddof=1) for name in ("var", "std") for a in (None, 0, -1)),
    *(case(name, x(3, 5), axis=1, ddof=d) for name in ("var", "std") for d in (4, 0.5, -1)),
    *(
        case("norm", x(2, 3, 5), axis=axis, keepdims=keepdims)
        for axis in (None, 1, -1, (0, 2), (-1, 0))
        for keepdims in (False, True)
    ),
    *(
        case("norm", apart(5), axis=a, keepdims=k)
        for a, k in ((None, False), (0, True), (-1, False))
    ),
    *(case("norm", x(*s), axis=a) for s, a in (((0, 3), 1), ((0, 3), None))),
    # 3.5 and 6.3, linear algebra
    *(case("matmul", x(*a), x(*b)) for a, b in PRODUCTS),
    *(case("einsum", *(x(*s) for s in shapes), subscripts=s) for s, *shapes in SUBSCRIPTS),
    case("einsum", x(2, 3), x(3, 5), x(5, 7), subscripts="ij,jk,kl->il"),
    *(
        case("dot", x(*a), x(*b))
        for a, b in (
            ((), ()),
            ((), (3, 5)),
            ((3, 5), ()),
            ((5,), (5,)),
            ((3, 5), (5,)),
            ((5,), (5, 7)),
            ((3, 5), (5, 7)),
            ((2, 3, 5), (5,)),
            ((2, 3, 5), (5, 7)),
            ((3, 0), (0, 5)),
        )
    ),
    *(case("dot", *p) for p in ((x(3, 5), 2), (0.75, x(3, 5)))),
    *(
        case("outer", x(*a), x(*b))
        for a, b in (
            ((3,), (5,)),
            ((2, 3), (5,)),
            ((3,), (2, 5)),
            ((), (5,)),
            ((), ()),
            ((0,), (3,)),
        )
    ),
    # 3.6 softmax
    *(case(name, x(2, 3, 5)) for name in ("softmax", "log_softmax")),
    *(
        case(name, x(2, 3, 5), axis=axis)
        for name in ("softmax", "log_softmax")
        for axis in (0, 1, -2, None, (0, 2))
    ),
    *(case(name, x(*s)) for name in ("softmax", "log_softmax") for s in ((), (1,), (3, 1), (0, 3))),
    # 6.4 losses
    *(case("mse", x(*s), x(*s)) for s in ((3, 5), (3, 1), ())),
    *(
        case("binary_cross_entropy_with_logits", x(*s), np.asarray(random.uniform(0.3, 0.7, s)))
        for s in ((3, 5), (3, 1), ())
    ),
    case("binary_cross_entropy_with_logits", x(2, 3), np.array([[0, 1, 1], [1, 0, 1]])),
    *(
        case("cross_entropy", x(*s), np.array(t))
        for s, t in (
            ((3, 5), [4, 0, 4]),
            ((2, 3, 5), [[4, 0, 4], [1, 2, 0]]),
            ((5,), 3),
            ((3, 1), [0, 0, 0]),
        )
    ),
    *(
        case("cross_entropy", x(2, 3, 5), np.array([[4, 0, i], [i, 2, 0]]), ignore_index=i)
        for i in (-100, 3, 7)
    ),
    *(case("cross_entropy", x(3, 5), np.array([4, 0, 4]), label_smoothing=e) for e in (0.1, 0.7)),
    *(
        case("cross_entropy", x(2, 3, 5), np.array([[4, 0, 4], [1, 2, 0]]), **options)
        for options in (
            {"reduction": "sum"},
            {"reduction": "none"},
            {"ignore_index": 4, "reduction": "none"},
        )
    ),
    *(
        case("cross_entropy", x(*s), targets=probabilities(*s), **options)
        for s in ((3, 5), (2, 3, 5), (5,))
        for options in ({}, {"label_smoothing": 0.1, "reduction": "none"})
    ),
    *(
        case(name, x(3, 5), random.uniform(0.3, 0.7, (3, 5)), reduction=reduction)
        for name in ("mse", "binary_cross_entropy_with_logits")
        for reduction in ("sum", "none")
    ),
    case("cross_entropy", x(3, 5), np.array([4, -1, 2]), ignore_index=-1, label_smoothing=0.1),
    *(
        case("cross_entropy", x(2, 3, 5), np.array([[4, 0, 4], [1, 2, 0]]), **options, **more)
        for options in ({}, {"ignore_index": 4}, {"label_smoothing": 0.3, "ignore_index": 0})
        for more in (
            {"class_weights": np.array([0.3, 1.0, 0.0, 2.5, 0.7])},
            {"class_weights": [1, 0, 3, 2, 5], "reduction": "sum"},
        )
    ),
    *(
        case("cross_entropy", x(3, 5), targets=probabilities(3, 5), class_weights=w, **options)
        for w in ([0.3, 1.0, 0.0, 2.5, 0.7],)
        for options in ({}, {"label_smoothing": 0.3}, {"reduction": "none"})
    ),
    # 3.7 fused
    *(case("linear", x(*s, 5), x(5, 7), x(7)) for s in ((3,), (2, 3), (), (0,))),
    case("linear", x(3, 0), x(0, 7), x(7)),
    *(
        case("masked_softmax", x(2, 3, 5), mask=random.random(s) < 0.6)
        for s in ((2, 3, 5), (3, 5), (5,), (2, 1, 5), (3, 1), ())
    ),
    case("masked_softmax", x(3, 0), mask=np.zeros((3, 0), bool)),
    *(case("rms_norm", x(*s), x(5)) for s in ((3, 5), (2, 3, 5), (5,), (0, 5))),
    case("rms_norm", x(3, 5), x(5), eps=0.5),
    case("rms_norm", x(2, 3, 5), x(3, 5)),
    *(
        case("rotate_pairs", x(*s), cos=x(*c), sin=x(*c), pairs=pairs)
        for s, c in (((3, 4), (3, 2)), ((2, 3, 6), (3, 3)), ((2,), (1,)))
        for pairs in ("neighbours", "halves")
    ),
    *(case("layer_norm", x(*s), x(5), x(5)) for s in ((3, 5), (2, 3, 5), (5,), (0, 5))),
    case("layer_norm", x(3, 5), x(5), x(5), eps=0.5),
    case("layer_norm", x(3, 5), x(3, 1), x()),
    case("layer_norm", x(2, 3, 5), x(1, 5), x(3, 5)),
    *(
        case("embedding", x(5, 3), indices=i)
        for i in ([4, 0, 4], 2, np.array([[1, 1], [0, 4]]), np.zeros((0, 2), int))
    ),
    *(
        case("embedding", x(5, 3) * (np.arange(5) != 4)[:, None], indices=i, padding_idx=4)
        for i in ([4, 0, 4], 4, np.array([[1, 1], [0, 4]]))
    ),
    *(case("dropout", x(*s), p=p) for s in ((3, 5), (), (0, 3)) for p in (0.3, 0.0)),
    # methods that differ from the function of their name, or have none
    *(case("t.T", x(*s)) for s in ((2, 3, 5), (3, 5), (3,), (), (0, 3))),
    *(case("t.mT", x(*s)) for s in ((2, 3, 5), (3, 5), (0, 3))),
    *(case(name, x(*s)) for name in ("t.copy", "t.flatten") for s in ((2, 3, 5), (), (0, 3))),
    *(case("cumsum", x(2, 3, 5), axis=a) for a in (None, 0, 1, -1)),
    *(case("cumsum", x(*s)) for s in ((), (1,), (0, 3))),
    case("cumsum", x(0, 3), axis=1),
    *(case("t.reshape", x(2, 3, 5), shape=s) for s in ((5, 6), (30,), (-1,), (3, -1))),
    *(case("t.transpose", x(2, 3, 5), axes=s) for s in ((), (2, 0, 1), (-1, 0, 1))),
    case("t.transpose", x(3), axes=(0,)),
    # 3.9 and NumPy's words
    case("cbrt", np.array([-8.0, 27.0])),
    *(
        case(name, x(*a), x(*b))
        for name in ("arctan2", "hypot")
        for a, b in (((3, 5), (3, 5)), ((3, 5), ()), ((2, 3, 5), (5,)), ((3, 1), (1, 5)))
    ),
    *(case("inv", regular(*s)) for s in ((3, 3), (2, 5, 5))),
    *(
        case("solve", regular(*a), x(*b))
        for a, b in (
            ((3, 3), (3,)),
            ((3, 3), (3, 5)),
            ((3, 3), (2, 3, 5)),
            ((2, 3, 3), (3, 5)),
            ((2, 3, 3), (3,)),
            ((2, 3, 3), (2, 3, 1)),
        )
    ),
    *(case(name, x(*s), x(*s)) for name in JOINING for s in ((3, 5), (3,), (2, 3, 5), ())),
    *(case(name, x(*s)) for name in ("atleast_1d", "atleast_2d") for s in ((3, 5), (), (3,))),
    case("full_like", x(3, 5), x()),
    *(case("average", x(2, 3, 5), axis=a) for a in (None, 1, (0, 2))),
    *(case("average", x(3, 5), positive(3, 5), axis=a) for a in (None, 0)),
    *(case("average", x(3, 5), positive(5), axis=1, keepdims=k) for k in (False, True)),
    *(case("median", apart(3, 5), axis=a, keepdims=k) for a in (None, 0, 1) for k in (False, True)),
    *(case("median", apart(*s)) for s in ((2,), (1,), (7,), (2, 3, 2))),
    *(case("diff", x(3, 5), n=n, axis=a) for n in (0, 1, 2) for a in (0, -1)),
    *(
        case("kron", x(*a), x(*b))
        for a, b in (((2, 3), (5, 7)), ((3,), (5,)), ((2,), (3, 5)), ((2, 3, 1), (5,)))
    ),
    *(case("cross", x(*a), x(*b)) for a, b in (((3,), (3,)), ((5, 3), (5, 3)), ((5, 3), (1, 3)))),
    case("cross", x(3, 5), x(3, 5), axis=0),
]
