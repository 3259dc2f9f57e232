"""Chapters 3 and 6 · Operations: any shape, any strides, any option, and NumPy's own functions.

The fixed cases stand in `cases.py`, and `test_coverage_table.py` runs them. Here hypothesis draws:
for each operation the shapes that fit it, its options, and arrays whose memory is stepped through
in any order, also backwards. What only single operations promise (ties, infinities, refusals)
stands in the subchapters' own tests.
"""

import inspect
from typing import Any, NamedTuple

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from minigrad import Tensor, gradcheck, gradients, ops
from minigrad.engine.words import Words
from minigrad.functional import numpy_words
from minigrad.functional.vocabulary import NUMPY, PLAIN
from tests import cases, oracles
from tests.cases import (
    CURVES,
    PAIRS,
    REDUCTIONS,
    WORDS,
    apart,
    apart_below,
    mask,
    nonzero,
    positive,
    regular,
    x,
)
from tests.coverage_table import CASES, ROWS

# ---------------------------------------------------------------- what is drawn


class Strided(NamedTuple):
    """An array, and the steps through its memory that make a view of it."""

    base: np.ndarray[Any, Any]
    steps: tuple[slice, ...]
    axes: tuple[int, ...]

    def view(self, base):
        """The view, of the array or of a Tensor that holds it."""
        part = base[self.steps]
        return (part if isinstance(part, Tensor) else np.asarray(part)).transpose(self.axes)


def strided(draw, values, shape):
    """A view of the given shape: axes in any order of memory, in steps of 1, 2, -1 or -2."""
    axes = tuple(draw(st.permutations(range(len(shape)))))
    steps = [draw(st.sampled_from([1, 2, -1, -2])) for _ in shape]
    lengths = [shape[axes.index(i)] for i in range(len(shape))]
    base = values(
        *(n * abs(step) for n, step in zip(lengths, steps, strict=True)),
        rng=np.random.default_rng(draw(st.integers(0, 99))),
    )
    return Strided(base, tuple(slice(None, None, step) for step in steps), axes)


def strided_array(draw, values, shape):
    """A view that holds such values, whatever lies between them: for matrices that have to fit."""
    drawn = strided(draw, x, shape)
    drawn.view(drawn.base)[...] = values(
        *shape, rng=np.random.default_rng(draw(st.integers(0, 99)))
    )
    return drawn


def a_shape(draw, least=0, most=3, shortest=0):
    dims = {"min_dims": least, "max_dims": most}
    return draw(hnp.array_shapes(**dims, min_side=shortest, max_side=4)) if most else ()


def shapes_that_broadcast(draw, n, shortest=0):
    drawn = hnp.mutually_broadcastable_shapes(
        num_shapes=n, min_side=shortest, max_side=4, max_dims=3
    )
    return draw(drawn).input_shapes


def an_axis(draw, ndim):
    return draw(st.integers(-ndim, ndim - 1))


def some_axes(draw, ndim, none=True):
    """None, one axis, or a tuple of different ones; each counted from the front or the end."""
    tuples = st.lists(st.integers(0, ndim - 1), unique=True).flatmap(
        lambda axes: st.tuples(*(st.sampled_from([a, a - ndim]) for a in axes))
    )
    one = st.integers(-ndim, ndim - 1)
    return draw((st.none() if none else st.nothing()) | one | tuples) if ndim else None


def indices_below(draw, n, shape=None, negative=True):
    shape = a_shape(draw, most=2) if shape is None else shape
    return draw(hnp.arrays(int, shape, elements=st.integers(-n if negative else 0, n - 1)))


# Each takes hypothesis' draw, and gives the inputs and the options of one case.


def curve(values):
    return lambda draw: ([strided(draw, values, a_shape(draw))], {})


def pair(*values):
    def drawn(draw):
        shapes = shapes_that_broadcast(draw, len(values))
        return [strided(draw, v, s) for v, s in zip(values, shapes, strict=True)], {}

    return drawn


def reduction(values, **options):
    """`options` are strategies. An empty axis has no largest element, and no mean."""

    def drawn(draw):
        shape = a_shape(draw, shortest=1)
        drawn_options = {"axis": some_axes(draw, len(shape)), "keepdims": draw(st.booleans())}
        drawn_options |= {name: draw(of) for name, of in options.items()}
        return [strided(draw, values, shape)], drawn_options

    return drawn


def clip(draw):
    limits = [lambda *s, rng, k=k: apart(*s, start=k / 16, rng=rng) for k in (-10, 3)]
    shapes = shapes_that_broadcast(draw, 3)
    return [strided(draw, v, s) for v, s in zip([apart, *limits], shapes, strict=True)], {}


def where(draw):
    c, a, b = shapes_that_broadcast(draw, 3)
    condition = mask(*c, rng=np.random.default_rng(draw(st.integers(0, 99))))
    return [condition, strided(draw, x, a), strided(draw, x, b)], {}


def layer_norm(draw):
    shape = a_shape(draw, least=1, shortest=1)
    gain, bias = (draw(hnp.broadcastable_shapes(shape, max_dims=len(shape))) for _ in "ab")
    if any(n > m for s in (gain, bias) for n, m in zip(s[::-1], shape[::-1], strict=False)):
        gain = bias = shape[-1:]  # x is not what stretches
    return [strided(draw, v, s) for v, s in ((apart, shape), (x, gain), (x, bias))], {"eps": 0.25}


def rms_norm(draw):
    inputs, options = layer_norm(draw)
    return inputs[:2], options


def rotate_pairs(draw):
    *rows, n = a_shape(draw, least=1)
    angles = np.random.default_rng(0).standard_normal((*rows, n))
    pairs = draw(st.sampled_from(["neighbours", "halves"]))
    options = {"cos": np.cos(angles), "sin": np.sin(angles), "pairs": pairs}
    return [strided(draw, x, (*rows, 2 * n))], options


def linear(draw):
    *rows, d_in = a_shape(draw, least=1)
    d_out = draw(st.integers(0, 3))
    return [strided(draw, x, s) for s in ((*rows, d_in), (d_in, d_out), (d_out,))], {}


def masked_softmax(draw):
    shape = a_shape(draw, least=1)
    of = tuple(draw(st.sampled_from([1, n])) for n in shape)[draw(st.integers(0, len(shape))) :]
    return [strided(draw, x, shape)], {"mask": mask(*of, rng=np.random.default_rng(0))}


def reshape(draw):
    shape = a_shape(draw)
    new = list(draw(st.permutations([*shape, *[1] * draw(st.integers(0, 2))])))
    if new and 0 not in shape and draw(st.booleans()):
        new[draw(st.integers(0, len(new) - 1))] = -1
    return [strided(draw, x, shape)], {"shape": tuple(new)}


def transpose(draw):
    shape = a_shape(draw)
    order = draw(st.permutations(range(len(shape))))
    axes = tuple(i - len(shape) if draw(st.booleans()) else i for i in order)
    return [strided(draw, x, shape)], {"axes": draw(st.sampled_from([axes, None]))}


def reshape_method(draw):
    inputs, options = reshape(draw)
    return inputs, {"shape": options["shape"] or (1,)}


def transpose_method(draw):
    inputs, options = transpose(draw)
    return inputs, {"axes": options["axes"] or ()}


def swapaxes(draw):
    shape = a_shape(draw, least=1)
    return [strided(draw, x, shape)], {
        name: an_axis(draw, len(shape)) for name in ("axis1", "axis2")
    }


def broadcast_to(draw):
    shape = a_shape(draw)
    target = draw(hnp.mutually_broadcastable_shapes(num_shapes=1, base_shape=shape, max_side=4))
    return [strided(draw, x, shape)], {"shape": target.result_shape}


def moveaxis(draw):
    shape = a_shape(draw, least=1)
    source, destination = (draw(st.permutations(range(len(shape)))) for _ in "ab")
    n = draw(st.integers(1, len(shape)))
    return [strided(draw, x, shape)], {"source": source[:n], "destination": destination[:n]}


def expand_dims(draw):
    shape = a_shape(draw)
    return [strided(draw, x, shape)], {"axis": an_axis(draw, len(shape) + 1)}


def squeeze(draw):
    shape = tuple(draw(st.lists(st.sampled_from([1, 1, 3]), max_size=4)))
    ones = [i - draw(st.sampled_from([0, len(shape)])) for i, n in enumerate(shape) if n == 1]
    return [strided(draw, x, shape)], {"axis": draw(st.sampled_from([None, *ones]))}


def flip(draw):
    shape = a_shape(draw)
    return [strided(draw, x, shape)], {"axis": some_axes(draw, len(shape))}


def roll(draw):
    shape = a_shape(draw)
    shifts = st.integers(-7, 7)
    if not shape or draw(st.booleans()):
        return [strided(draw, x, shape)], {"shift": draw(shifts)}
    n = draw(st.integers(1, 3))
    options = {
        "shift": tuple(draw(shifts) for _ in range(n)),
        "axis": tuple(an_axis(draw, len(shape)) for _ in range(n)),
    }
    return [strided(draw, x, shape)], options


def take(draw):
    shape = a_shape(draw, least=1, shortest=1)
    axis = draw(st.sampled_from([None, *range(-len(shape), len(shape))]))
    n = int(np.prod(shape)) if axis is None else shape[axis]
    return [strided(draw, x, shape)], {"indices": indices_below(draw, n), "axis": axis}


def take_along_axis(draw):
    shape = a_shape(draw, least=1, shortest=1)
    axis = an_axis(draw, len(shape))
    places = [draw(st.sampled_from([n, 1])) for n in shape]
    places[axis] = draw(st.integers(0, 4))
    of_x = [draw(st.sampled_from([n, 1])) for n in shape]
    of_x[axis] = shape[axis]
    indices = indices_below(draw, shape[axis], tuple(places))
    return [strided(draw, x, of_x)], {"indices": indices, "axis": axis}


def along_one_axis(draw):
    shape = a_shape(draw, least=1)
    return [strided(draw, apart, shape)], {"axis": an_axis(draw, len(shape))}


def cumsum(draw):
    shape = a_shape(draw)
    axis = draw(st.sampled_from([None, *range(-len(shape), len(shape))]))
    return [strided(draw, x, shape)], {"axis": axis}


def softmax(draw):
    shape = a_shape(draw, least=1, shortest=1)
    return [strided(draw, x, shape)], {"axis": some_axes(draw, len(shape))}


def repeat(draw):
    shape = a_shape(draw)
    axis = draw(st.sampled_from([None, *range(-len(shape), len(shape))]))
    n = int(np.prod(shape)) if axis is None else shape[axis]
    each = st.lists(st.integers(0, 3), min_size=n, max_size=n)
    repeats = draw(st.integers(0, 3) | each.map(lambda counts: np.array(counts, int)))
    return [strided(draw, x, shape)], {"repeats": repeats, "axis": axis}


def tile(draw):
    counts = st.integers(0, 3)
    reps = draw(counts | st.lists(counts, max_size=4).map(tuple))
    return [strided(draw, x, a_shape(draw, most=2))], {"reps": reps}


def pad(draw):
    shape = a_shape(draw, least=1)
    widths = st.tuples(st.integers(0, 5), st.integers(0, 5))
    options = {"constant_values": draw(st.integers(-2, 2))}
    return [strided(draw, x, shape)], {"pad_width": [draw(widths) for _ in shape], **options}


def diagonal(draw):
    shape = a_shape(draw, least=2)
    axis1, axis2 = draw(st.permutations(range(len(shape))))[:2]
    options = {"axis1": axis1, "axis2": axis2 - draw(st.sampled_from([0, len(shape)]))}
    return [strided(draw, x, shape)], {"offset": draw(st.integers(-5, 5)), **options}


def triangle(draw):
    return [strided(draw, x, a_shape(draw, least=1))], {"k": draw(st.integers(-5, 5))}


def an_index(draw, shape):
    """Basic with negative steps, integers with repeats, or a mask."""
    kinds = hnp.basic_indices(shape, allow_newaxis=True, allow_ellipsis=True) | hnp.arrays(
        bool, shape
    )
    if shape and 0 not in shape:
        kinds |= hnp.integer_array_indices(shape) | st.tuples(
            st.none(),
            st.lists(st.integers(-shape[0], shape[0] - 1), min_size=1, max_size=7),
            st.just(...),
        )
    return draw(kinds)


def getitem(draw):
    shape = a_shape(draw)
    return [strided(draw, x, shape)], {"index": an_index(draw, shape)}


def scatter_add(draw):
    shape = a_shape(draw)
    index = an_index(draw, shape)
    picked = np.shape(np.zeros(shape)[index])
    return [strided(draw, x, picked)], {"shape": shape, "index": index}


def concatenate(draw):
    shape = list(a_shape(draw, least=1))
    axis = an_axis(draw, len(shape))
    lengths = draw(st.lists(st.integers(0, 4), min_size=1, max_size=3))
    shapes = [[*shape] for _ in lengths]
    for each, n in zip(shapes, lengths, strict=True):
        each[axis] = n
    return [strided(draw, x, each) for each in shapes], {"axis": axis}


def stack(draw):
    shape = a_shape(draw)
    n = draw(st.integers(1, 3))
    return [strided(draw, x, shape) for _ in range(n)], {"axis": an_axis(draw, len(shape) + 1)}


def split(draw):
    shape = a_shape(draw, least=1)
    axis = an_axis(draw, len(shape))
    parts = [n for n in (1, 2, 3, 4) if shape[axis] % n == 0]
    cuts = st.lists(st.integers(-6, 6), max_size=3)
    at = draw(st.sampled_from(parts) | cuts)
    if isinstance(at, list):  # cuts that overtake each other give parts that overlap
        at = sorted(at, key=lambda i: i % (shape[axis] or 1))
    return [strided(draw, x, shape)], {"indices_or_sections": at, "axis": axis}


def matmul(draw):
    drawn = hnp.mutually_broadcastable_shapes(
        signature=np.matmul.signature, min_side=0, max_side=3, max_dims=2
    )
    return [strided(draw, x, shape) for shape in draw(drawn).input_shapes], {}


def einsum(draw):
    """Letters a, b and c, at will: repeated, alone, stretched from length 1, summed or kept."""
    lengths = {c: draw(st.integers(1, 3)) for c in "abc"}
    terms = draw(st.lists(st.text("abc", max_size=3), min_size=1, max_size=3))
    dots = draw(st.sampled_from(["", "..."]))
    stacks = shapes_that_broadcast(draw, len(terms), shortest=1) if dots else [()] * len(terms)
    inputs = []
    for term, stack in zip(terms, stacks, strict=True):
        own = {c: draw(st.sampled_from([n, n, 1])) for c, n in lengths.items()}
        inputs.append(strided(draw, x, (*stack[-2:], *(own[c] for c in term))))
    kept = (
        draw(st.lists(st.sampled_from(sorted(set("".join(terms)))), unique=True))
        if any(terms)
        else []
    )
    arrow = draw(st.booleans())
    subscripts = ",".join(dots + term for term in terms)
    return inputs, {"subscripts": f"{subscripts}->{dots}{''.join(kept)}" if arrow else subscripts}


def dot(draw):
    n = draw(st.integers(0, 3))
    a = (*a_shape(draw, most=2), n)
    b = draw(st.sampled_from([(n,), (*a_shape(draw, most=1), n, draw(st.integers(0, 3)))]))
    a, b = draw(st.sampled_from([(a, b), (a, b), ((), b), (a, ())]))
    return [strided(draw, x, a), strided(draw, x, b)], {}


def outer(draw):
    return [strided(draw, x, a_shape(draw, most=2)) for _ in "ab"], {}


def tensordot(draw):
    paired = a_shape(draw, most=2)
    shapes, axes = [], []
    for _ in "ab":
        rest = a_shape(draw, most=2)
        order = draw(st.permutations(range(len(paired) + len(rest))))
        lengths = [*paired, *rest]
        shapes.append(tuple(lengths[i] for i in order))
        axes.append([order.index(i) for i in range(len(paired))])
    return [strided(draw, x, shape) for shape in shapes], {"axes": axes}


def sizes_apart(*shape, rng):
    return apart(*shape, start=0.125, rng=rng) * rng.choice([-1, 1], shape)


def norm(draw):
    shape = a_shape(draw, least=1)
    axis = draw(st.integers(-len(shape), len(shape) - 1) | st.none())
    if len(shape) > 1 and draw(st.booleans()):
        axis = tuple(draw(st.permutations(range(len(shape))))[:2])
    options = {"axis": axis, "keepdims": draw(st.booleans())}
    return [strided(draw, sizes_apart, shape)], options


def two_of_one_shape(*values):
    def drawn(draw):
        shape = a_shape(draw, shortest=1)
        return [strided(draw, v, shape) for v in values], {}

    return drawn


def between_0_and_1(*shape, rng):
    return np.asarray(rng.uniform(0.45, 0.55, shape))  # (differences stay between 0 and 1)


def targets(draw):
    shape = a_shape(draw, least=1, shortest=1)
    chosen = indices_below(draw, shape[-1], shape[:-1], negative=False)
    ignore = draw(st.sampled_from([None, -1, 0, 1]))
    if ignore is not None and (chosen == ignore).all():
        ignore = None  # a mean over something
    return [strided(draw, x, shape), chosen], {"ignore_index": ignore}


def cross_entropy(draw):
    inputs, options = targets(draw)
    return inputs, options | {"label_smoothing": draw(st.sampled_from([0.0, 0.1, 0.7]))}


def kl_div(draw):
    shape = a_shape(draw, least=1, shortest=1)
    return [strided(draw, v, shape) for v in (x, positive)], {}


def cosine_similarity(draw):
    n = draw(st.integers(2, 4))
    a, b = ((*stack[-2:], n) for stack in shapes_that_broadcast(draw, 2))
    return [strided(draw, x, a), strided(draw, positive, b)], {"axis": -1}


def embedding(draw):
    n, d = draw(st.integers(1, 5)), draw(st.integers(0, 3))
    indices = indices_below(draw, n, negative=False)
    return [strided(draw, x, (n, d))], {"indices": indices}


def dropout(draw):
    return [strided(draw, x, a_shape(draw))], {"p": draw(st.sampled_from([0.0, 0.3, 0.9]))}


def with_option(drawn, **more):
    def both(draw):
        inputs, options = drawn(draw)
        return inputs, options | {name: draw(of) for name, of in more.items()}

    return both


# What chapter 3.9 has.


def matrices(values):
    def drawn(draw):
        n = draw(st.integers(1, 4))
        return [strided_array(draw, values, (*a_shape(draw, most=1), n, n))], {}

    return drawn


def solve(draw):
    n, (one, other) = draw(st.integers(1, 4)), shapes_that_broadcast(draw, 2)
    b = draw(st.sampled_from([(n,), (*other[-1:], n, draw(st.integers(0, 3)))]))
    return [strided_array(draw, regular, (*one[-1:], n, n)), strided(draw, x, b)], {}


ANY = curve(x)
OWN = [
    *(clip, where, layer_norm, rms_norm, rotate_pairs, linear, masked_softmax, reshape, transpose),
    *(swapaxes, broadcast_to, moveaxis, expand_dims, squeeze, flip, roll, take, take_along_axis),
    *(cumsum, softmax, repeat, tile, pad, diagonal, getitem, scatter_add, concatenate, stack),
    *(split, matmul, einsum, dot, outer, tensordot, norm, cross_entropy, kl_div),
    *(cosine_similarity, embedding, dropout, solve),
]
DRAWN = {
    **{drawn.__name__: drawn for drawn in OWN},
    **{name: curve(values) for name, values in CURVES.items()},
    **{name: pair(*values) for name, values in PAIRS.items()},
    **{name: reduction(values) for name, values in REDUCTIONS.items()},
    **dict.fromkeys(("arctan2", "hypot"), pair(nonzero, nonzero)),  # the origin has no direction
    **dict.fromkeys(("ravel", "t.T", "t.copy", "t.flatten"), ANY),
    "astype": with_option(ANY, dtype=st.just(np.float64)),
    "binary_cross_entropy_with_logits": two_of_one_shape(x, between_0_and_1),
    "inv": matrices(regular),
    "leaky_relu": with_option(curve(CURVES["leaky_relu"]), slope=st.sampled_from([0.3, 0, -2.0])),
    "log_softmax": softmax,
    "mse": two_of_one_shape(x, x),
    "nll": targets,
    "sort": along_one_axis,
    "std": reduction(apart, ddof=st.sampled_from([0, 0.5])),
    "t.mT": lambda draw: ([strided(draw, x, a_shape(draw, least=2))], {}),
    "t.reshape": reshape_method,
    "t.transpose": transpose_method,
    "trace": diagonal,
    "tril": triangle,
    "triu": triangle,
    "var": reduction(apart, ddof=st.sampled_from([0, 0.5])),
}

# ---------------------------------------------------------------- value and derivative


def test_the_number_of_operations_is_the_one_that_the_chapter_says():
    assert f"The {len(ops.__all__)} below." in ops.__doc__


def test_hypothesis_draws_for_every_row_but_those_of_numpys_words():
    assert set(ROWS) - DRAWN.keys() == {name for name in WORDS if hasattr(numpy_words, name)}


@pytest.mark.parametrize("name", DRAWN)
@settings(max_examples=12)
@given(st.data())
def test_any_shape_any_strides_and_any_options_give_the_value_and_its_derivative(name, data):
    drawn, options = DRAWN[name](data.draw)
    views = [d.view(d.base) if isinstance(d, Strided) else d for d in drawn]
    case = cases.case(name, *views, **options)
    wanted = oracles.expected(case)
    y = case.ours(*(Tensor(v) if v.dtype.kind == "f" else v for v in views))  # the same memory
    assert y.dtype == wanted.dtype
    np.testing.assert_allclose(y.data, wanted, rtol=1e-13, atol=1e-14, strict=True)

    def f(*bases):
        bases = iter(bases)
        return case.ours(*(d.view(next(bases)) if isinstance(d, Strided) else d for d in drawn))

    assert gradcheck(f, *(d.base for d in drawn if isinstance(d, Strided)), order=1)


# ---------------------------------------------------------------- law

FUSED = [name for name in ops.__all__ if hasattr(getattr(ops, name), "definition")]


@pytest.mark.parametrize("name", FUSED)
def test_a_fused_operation_is_its_definition_in_value_and_gradient(name):
    operation = getattr(ops, name)
    for case in (case for case in CASES if case.name == name):
        inputs = [Tensor(a, requires_grad=True) if a.dtype.kind == "f" else a for a in case.inputs]
        leaves = [t for t in inputs if isinstance(t, Tensor)]
        y, composed = (f(*inputs, **case.options) for f in (operation, operation.definition))
        assert y.node.rule is not composed.node.rule
        np.testing.assert_allclose(y.data, composed.data, rtol=1e-13, atol=1e-15, strict=True)
        g = np.random.default_rng(7).standard_normal(y.shape)
        for one, other in zip(gradients(y, leaves, g), gradients(composed, leaves, g), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14, strict=True)


# NumPy's functions whose row in the table has another name.
SAME = {
    "absolute": "abs",
    "amax": "max",
    "amin": "min",
    "copy": "t.copy",
    "fabs": "abs",
    "matrix_transpose": "t.mT",
}
METHODS = [name for name in vars(Words) if name in ROWS]


def spellings(case, inputs):
    """A case asked in NumPy's words, and with a method of its first input if that is a Tensor."""
    for function in NUMPY:
        if SAME.get(function.__name__, function.__name__) == case.name:
            yield oracles.CALLS.get(case.name, function)(*inputs, **case.options)
    first, *others = inputs
    if case.name in METHODS and isinstance(first, Tensor):
        method, options = getattr(first, case.name), dict(case.options)
        parameters = inspect.signature(method).parameters.values()
        by_place = [p.name for p in parameters if p.kind is not p.KEYWORD_ONLY]
        yield method(*others, *(options.pop(p) for p in by_place if p in options), **options)
        if case.name not in ("reshape", "transpose"):  # whose integers have no name
            yield method(*others, **case.options)


@pytest.mark.parametrize("name", ROWS)
def test_every_spelling_of_a_word_records_the_same_also_with_arrays_before_and_lists(name):
    its_cases = [case for case in CASES if case.name == name]
    for case in its_cases:
        for places in (case.floating, case.floating[-1:]):
            if name == "full_like" and places != case.floating:
                continue  # (NumPy does not look at its last argument)
            inputs = [
                Tensor(a, requires_grad=True) if i in places else a
                for i, a in enumerate(case.inputs)
            ]
            ours = case.ours(*inputs)
            for y in spellings(case, inputs):
                assert isinstance(y, Tensor) and y.requires_grad == ours.requires_grad
                assert (y.node and y.node.name) == (ours.node and ours.node.name)
                np.testing.assert_array_equal(y.data, ours.data, strict=True)
    if name[:2] != "t." and name != "full_like":
        case = its_cases[0]
        lists = [a.tolist() if isinstance(a, np.ndarray) else a for a in case.inputs]
        np.testing.assert_array_equal(case.ours(*lists), case.ours(*case.inputs))


T, U = apart(3, 5), apart_below(3, 5)
NEED_ARGUMENTS = {"dot", "repeat", "take", "astype", "reshape", "swapaxes", "clip"}


def test_a_methods_default_arguments_are_numpys():
    for name in ({*METHODS} | {"copy", "flatten"}) - NEED_ARGUMENTS:
        t = Tensor(T[:1] if name == "squeeze" else T)
        np.testing.assert_allclose(getattr(t, name)().data, getattr(t.data, name)(), rtol=1e-15)


# How the questions are asked that take more than one array, or two for a ufunc of two.
ASKED = {
    "allclose": lambda t, u: (np.allclose(t, u), np.allclose(t, b=u)),
    "argmax": lambda t, u: (np.argmax(t, axis=1), np.argmax(a=t, axis=1)),
    "array_equal": lambda t, u: np.array_equal(t, u),
    "empty_like": lambda t, u: np.empty_like(t).shape,
    "isclose": lambda t, u: np.isclose(t, u, atol=0.5),
    "isin": lambda t, u: np.isin(t, u),
    "may_share_memory": lambda t, u: np.may_share_memory(t, t[1:]),
    "result_type": lambda t, u: np.result_type(t, np.float32),
    "round": lambda t, u: (np.round(t), np.round(t, 1)),
    "searchsorted": lambda t, u: np.searchsorted(t[0, :1], u),
    "shares_memory": lambda t, u: np.shares_memory(t, u),
    "unravel_index": lambda t, u: np.unravel_index(np.argmax(t), np.shape(u)),
}


def test_a_question_is_answered_by_numpy_with_a_plain_array():
    for function in PLAIN:
        name = function.__name__

        def ask(t, u, function=function, name=name):
            if name in ASKED:
                return ASKED[name](t, u)
            return function(t, u) if getattr(function, "nin", 1) == 2 else function(t)

        answer = ask(Tensor(T, requires_grad=True), Tensor(U, requires_grad=True))
        wanted = ask(T, U)
        pairs = zip(answer, wanted, strict=True) if type(wanted) is tuple else [(answer, wanted)]
        for one, other in pairs:
            assert type(one) is type(other), name
            np.testing.assert_array_equal(one, other, name)
        if name not in ("may_share_memory", "shares_memory", "unravel_index"):
            mixed = ask(T, Tensor(U, requires_grad=True))
            np.testing.assert_array_equal(np.asarray(mixed), np.asarray(wanted), name)
