"""Every operation of chapters 3.9, 6.6 and 6.7, in the cases that its tests run: as `cases.py`.

They go through the same seven checks. What NumPy and PyTorch call them, where it differs from the
operation's name, is here as well.
"""

import numpy as np

from minigrad import concatenate, ravel
from minigrad.functional import more, pieces
from minigrad.ops import inverses
from tests.cases import Case, apart, x

random = np.random.default_rng(11)


class MoreCase(Case):
    """A case whose operation is not among minigrad's own names."""

    def ours(self, *inputs):
        return OURS[self.name](*inputs, **self.options)


def case(name, *inputs, **options):
    return MoreCase(name, inputs, options)


def within(low, high):
    return lambda *shape, rng=random: np.asarray(rng.uniform(low, high, shape))


def regular(*shape, rng=random):
    """Matrices far from singular ones."""
    return 0.5 * x(*shape, rng=rng) + 3 * np.eye(shape[-1])


def definite(*shape, rng=random):
    """Symmetric matrices with positive eigenvalues."""
    a = x(*shape, rng=rng)
    return a @ np.swapaxes(a, -1, -2) + 5 * np.eye(shape[-1])


def sums_apart(*shape, rng=random):
    """No two rows or columns are of about one size: no finite difference steps over a tie."""
    sizes = 0.3 + sum(
        step * i for step, i in zip((1.0, 4.1, 17.0), np.indices(shape), strict=False)
    )
    return sizes * rng.choice([-1, 1], shape)


def of(*shape, rng=random):
    return x(*shape, rng=rng)


CURVES = {
    "arccos": within(-0.8, 0.8),
    "arccosh": within(1.2, 3.0),
    "arcsin": within(-0.8, 0.8),
    "arcsinh": of,
    "arctanh": within(-0.8, 0.8),
    "cbrt": within(0.5, 3.0),
    "deg2rad": of,
    "exp2": of,
    "log10": within(0.5, 2.0),
    "nan_to_num": of,
    "rad2deg": of,
    "sinc": of,
}
PAIRS = ("arctan2", "fmax", "fmin", "hypot", "logaddexp2")
JOINING = ("column_stack", "dstack", "hstack", "vstack")
TURNS = ("atleast_1d", "atleast_2d", "atleast_3d", "fliplr", "flipud")

CASES = [
    # 3.9
    *(case(name, at(*shape)) for name, at in CURVES.items() for shape in ((3, 5), (), (0, 3))),
    case("sinc", np.array([0.0, 0.1, 0.159, 0.16, 1.0])),
    case("cbrt", np.array([-8.0, 27.0])),
    *(
        case(name, of(*a), of(*b))
        for name in PAIRS
        for a, b in (((3, 5), (3, 5)), ((3, 5), ()), ((2, 3, 5), (5,)), ((3, 1), (1, 5)))
    ),
    *(
        case(name, made(*s))
        for name, made in (("inv", regular), ("det", regular), ("cholesky", definite))
        for s in ((3, 3), (2, 5, 5))
    ),
    *(case("slogdet", made(*s)) for made in (regular, definite) for s in ((3, 3), (2, 5, 5))),
    *(
        case("solve", regular(*a), of(*b))
        for a, b in (
            ((3, 3), (3,)),
            ((3, 3), (3, 5)),
            ((3, 3), (2, 3, 5)),
            ((2, 3, 3), (3, 5)),
            ((2, 3, 3), (3,)),
            ((2, 3, 3), (2, 3, 1)),
        )
    ),
    # 6.6, joining, cutting and turning
    *(case(name, of(3, 5), of(3, 5)) for name in JOINING),
    *(case(name, of(3), of(3)) for name in JOINING),
    *(case(name, of(2, 3, 5), of(2, 3, 5)) for name in JOINING),
    *(case(name, of(), of()) for name in ("hstack", "vstack", "dstack", "column_stack")),
    *(
        case("append", of(2, 3), of(*s), axis=a)
        for s, a in (((5, 3), 0), ((2, 1), -1), ((7,), None))
    ),
    *(case(name, of(3, 5)) for name in TURNS),
    *(case(name, of()) for name in TURNS[:3]),
    *(case(name, of(3)) for name in (*TURNS[:3], "flipud")),
    *(case("rot90", of(2, 3, 5), k=k, axes=a) for k in (0, 1, 2, 3, -1) for a in ((0, 1), (2, 0))),
    case("full_like", of(3, 5), of()),
    *(case("diag", of(*s), k=k) for s in ((3,), (3, 5)) for k in (0, 1, -2)),
    *(
        case("array_split", of(7, 3), indices_or_sections=i, axis=a)
        for i, a in ((3, 0), ([2, 5], 0), (2, 1), (9, 0))
    ),
    *(case("hsplit", of(*s), indices_or_sections=2) for s in ((3, 4), (4,))),
    case("vsplit", of(4, 3), indices_or_sections=2),
    case("dsplit", of(3, 5, 4), indices_or_sections=2),
    *(case("unstack", of(3, 5, 2), axis=a) for a in (0, 1, -1)),
    *(case("meshgrid", of(3), of(5), indexing=i) for i in ("xy", "ij")),
    case("meshgrid", of(2), of(3), of(5)),
    case("meshgrid", of(3)),
    case("select", of(3, 5), of(3, 5), of(5)),
    # 6.7, sums and products
    *(case("average", of(2, 3, 5), axis=a) for a in (None, 1, (0, 2))),
    *(case("average", of(3, 5), within(0.5, 2.0)(3, 5), axis=a) for a in (None, 0)),
    *(case("average", of(3, 5), within(0.5, 2.0)(5), axis=1, keepdims=k) for k in (False, True)),
    *(case("median", apart(3, 5), axis=a, keepdims=k) for a in (None, 0, 1) for k in (False, True)),
    *(case("median", apart(2, 3, 5), axis=a, keepdims=True) for a in ((0, 2), (2, 1))),
    *(case("median", apart(*s)) for s in ((2,), (1,), (7,), (2, 3, 2))),
    *(
        case("linalg.norm", apart(3, 5) + 0.1, ord=o, axis=a, keepdims=k)
        for o in (3, 0.5, -1, 0, -np.inf, 2, 1, np.inf, None)
        for a, k in ((0, False), (-1, True))
    ),
    *(
        case("linalg.norm", sums_apart(2, 3, 5), ord=o, axis=a, keepdims=k)
        for o in ("fro", 1, -1, np.inf, -np.inf)
        for a, k in (((0, 2), False), ((2, 1), True))
    ),
    *(
        case("vector_norm", apart(2, 3, 5) + 0.1, ord=o, axis=a, keepdims=k)
        for o in (1, 2, 3, -np.inf)
        for a, k in ((None, False), (None, True), ((0, 2), False), ((2, 0), True), (1, False))
    ),
    *(case("diff", of(3, 5), n=n, axis=a) for n in (0, 1, 2) for a in (0, -1)),
    *(case("cumprod", of(2, 3, 5), axis=a) for a in (None, 0, -1)),
    case("cumprod", np.array([2.0, 0.0, 3.0, 0.0, 5.0])),
    *(case("inner", of(*a), of(*b)) for a, b in (((3,), (3,)), ((2, 3), (5, 3)), ((), (3,)))),
    *(case("vdot", of(*a), of(*b)) for a, b in (((3,), (3,)), ((2, 3), (3, 2)))),
    *(case("vecdot", of(*a), of(*b)) for a, b in (((3, 5), (3, 5)), ((2, 3, 5), (5,)))),
    case("vecdot", of(3, 5), of(3, 5), axis=0),
    *(
        case("kron", of(*a), of(*b))
        for a, b in (((2, 3), (5, 7)), ((3,), (5,)), ((2,), (3, 5)), ((2, 3, 1), (5,)))
    ),
    *(case("cross", of(*a), of(*b)) for a, b in (((3,), (3,)), ((5, 3), (5, 3)), ((5, 3), (1, 3)))),
    case("cross", of(3, 5), of(3, 5), axis=0),
]

SELECT = random.random((2, 3, 5)) < 0.5


def several(f):
    """A function that gives several results, as one that joins them and weighs each otherwise."""

    def joined(*xs, **options):
        parts = [ravel(part) * (i + 1) for i, part in enumerate(f(*xs, **options))]
        return concatenate(parts)

    return joined


def calls(f):
    """What is called in the form f(*inputs, **options), where f(name) is the function of a name."""
    return {
        **{name: (lambda *xs, name=name: f(name)(xs)) for name in JOINING},
        **{name: several(lambda *xs, name=name, **o: f(name)(*xs, **o)) for name in SEVERAL},
        "average": lambda a, weights=None, **o: f("average")(a, weights=weights, **o),
        "select": lambda a, b, c: f("select")(list(SELECT), [a, b], c),
        "slogdet": lambda a: f("slogdet")(a)[1],
    }


def of_numpy(name):
    if name == "linalg.norm":
        return np.linalg.norm
    if name == "unstack" and not hasattr(np, name):  # as until NumPy 2.0
        return lambda x, axis=0: list(np.moveaxis(x, axis, 0))
    return getattr(np.linalg if name in LINALG else np, name)


def ours(name):
    name = name.removeprefix("linalg.")
    return next(getattr(m, name) for m in (inverses, pieces, more) if name in m.__all__)


LINALG = ("cholesky", "det", "inv", "linalg.norm", "slogdet", "solve", "vector_norm")
SEVERAL = ("array_split", "hsplit", "vsplit", "dsplit", "unstack", "meshgrid")
ROWS = tuple(
    "linalg.norm" if name == "norm" else name
    for name in (*inverses.__all__, *pieces.__all__, *more.__all__)
)
OURS = {name: calls(ours).get(name) or ours(name) for name in ROWS}
NUMPY = {
    name: calls(of_numpy).get(name) or of_numpy(name)
    for name in ROWS
    if hasattr(np, name) or name in LINALG
}
NUMPY.setdefault("unstack", several(lambda x, axis=0: list(np.moveaxis(x, axis, 0))))  # from 2.1 on
NUMPY.setdefault("vecdot", lambda a, b, axis=-1: (a * b).sum(axis))


# PyTorch's functions, where ours has another name or takes other options.
def in_torch(torch):
    lin = torch.linalg
    same = (
        *("arccos", "arccosh", "arcsin", "arcsinh", "arctan2", "arctanh", "deg2rad", "exp2"),
        *("fmax", "fmin", "log10", "logaddexp2", "nan_to_num", "rad2deg", "sinc"),
        *("atleast_1d", "atleast_2d", "atleast_3d", "inner", "kron"),
    )
    return {
        **{name: getattr(torch, name) for name in same},
        **{name: (lambda *xs, name=name: getattr(torch, name)(xs)) for name in JOINING},
        "append": lambda a, b, axis: (
            torch.cat([a.ravel(), b.ravel()]) if axis is None else torch.cat([a, b], axis)
        ),
        "cross": lambda a, b, axis=-1: lin.cross(a, b, dim=axis),
        "cumprod": lambda x, axis=None: (
            x.ravel().cumprod(0) if axis is None else torch.cumprod(x, axis)
        ),
        "det": lin.det,
        "diag": lambda x, k=0: torch.diag(x, k),
        "diff": lambda x, n=1, axis=-1: torch.diff(x, n=n, dim=axis),
        "flipud": torch.flipud,
        "fliplr": torch.fliplr,
        "hypot": lambda a, b: torch.hypot(*torch.broadcast_tensors(a, b)),
        "inv": lin.inv,
        "linalg.norm": lambda x, ord=None, axis=None, *, keepdims=False: (
            lin.matrix_norm if isinstance(axis, tuple) else lin.vector_norm
        )(x, 2 if ord is None else ord, axis, keepdims),
        "rot90": lambda x, k=1, axes=(0, 1): torch.rot90(x, k, axes),
        "slogdet": lambda a: lin.slogdet(a)[1],
        "solve": lambda a, b: (
            lin.solve(a, b[..., None].expand(*a.shape[:-1], 1))[..., 0]
            if b.ndim == 1
            else lin.solve(a, b)
        ),
        "vector_norm": lambda x, ord=2, axis=None, *, keepdims=False: lin.vector_norm(
            x, ord, axis, keepdims
        ),
        "vdot": lambda a, b: torch.dot(a.ravel(), b.ravel()),
        "vecdot": lambda a, b, axis=-1: lin.vecdot(a, b, dim=axis),
    }
