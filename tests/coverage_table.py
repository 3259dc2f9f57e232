"""What has been checked, operation by operation: `python -m tests.coverage_table [NAME …]`.

Each cell is the number of cases that passed its check, computed here and now, or says in words why
there is nothing to count. A check that fails shows as FAILED, and the command ends with 1. The
cells are also the tests of `test_coverage_table.py`.

    value         equal to NumPy's, or to a definition (the next column says which), for Tensors,
                  for Tensors beside plain numbers, and for arrays alone
    order 1, 2    gradcheck: the derivative, and the derivative of the derivative
    jvp·vjp       ⟨g, J u⟩ = ⟨Jᵀ g, u⟩, for a random direction u and a random seed g
    broadcasting  the gradient of a stretched input is the sum over what it was stretched to
    float32       the value, and what each VJP of its record gives at both orders, before any cast
    PyTorch       value and gradients, to 1e-10
"""

import sys
import warnings
from functools import cache
from typing import NamedTuple

import numpy as np

from minigrad import GradientError, Tensor, functional, gradcheck, gradients, jvp, ops, vjp
from tests import oracles
from tests.cases import CASES, JOINING, WORDS

CONSTANTS = {"one_hot"}  # public, but not differentiable: no row
METHODS = ("t.T", "t.mT", "t.copy", "t.flatten", "t.reshape", "t.transpose")
ROWS = (*sorted({*ops.__all__, *functional.__all__} - CONSTANTS), *METHODS, *WORDS)
COLUMNS = ("value", "order 1", "order 2", "jvp·vjp", "broadcasting", "float32", "PyTorch")


# ---------------------------------------------------------------- the checks

# Each takes a case. It returns True if the case counts, False if it says nothing about this, and
# raises if it fails.


def value(case):
    wanted = oracles.expected(case)
    for inputs in (
        [_tensor(a) for a in case.inputs],
        [_tensor(a) if isinstance(a, np.ndarray) else a for a in case.inputs],
        list(case.inputs),
    ):
        has_tensor = any(isinstance(a, Tensor) for a in inputs)
        y = case.ours(*inputs)
        _same(isinstance(y, Tensor), has_tensor, "whether the result is a Tensor")
        y = y.data if has_tensor else np.asarray(y)
        _same(y.dtype, wanted.dtype, "dtype")
        np.testing.assert_allclose(y, wanted, rtol=1e-13, atol=1e-15, strict=True)
    return True


def orders(case):
    """Return gradcheck's error in the first and in the second derivatives, each None if right."""
    try:
        report = gradcheck(case.ours, *case.inputs)
    except GradientError as error:
        return (error if str(error).startswith("order 1") else None), error
    except Exception as error:
        return error, error
    found = {1: None, 2: None}
    for c in report.comparisons:
        if c.verdict not in ("agrees", "zero"):
            found[c.order] = AssertionError(str(c))
    return found[1], found[2]


def jvp_and_vjp(case):
    f, xs = _of_floating(case)
    rng = np.random.default_rng(7)
    us = tuple(rng.standard_normal(np.shape(x)) for x in xs)
    y, pushed = jvp(f, xs, us)
    g = rng.standard_normal(np.shape(y))
    again, back = vjp(f, *xs)
    np.testing.assert_array_equal(again, y)
    pairs = [(g, pushed), *zip(back(g), us, strict=True)]
    left, *right = (np.sum(a * b) for a, b in pairs)
    rounding = 1e-13 * sum(np.abs(a * b).sum() for a, b in pairs)
    np.testing.assert_allclose(left, sum(right), rtol=0, atol=rounding)
    return True


def broadcasting(case):
    shapes = STRETCHED[case.name](case) if case.name in STRETCHED else None
    if shapes is None or shapes == [np.shape(x) for x in case.inputs]:
        return False
    stretched = [
        np.broadcast_to(x, shape) if i in case.floating else x
        for i, (x, shape) in enumerate(zip(case.inputs, shapes, strict=True))
    ]
    f, xs = _of_floating(case)
    h, ys = _of_floating(case._replace(inputs=tuple(stretched)))
    (one, back), (other, back_of_copies) = vjp(f, *xs), vjp(h, *ys)
    np.testing.assert_allclose(one, other, rtol=1e-13, atol=1e-15)
    g = np.random.default_rng(7).standard_normal(np.shape(one))
    for x, found, copies in zip(xs, back(g), back_of_copies(g), strict=True):
        shape = (1,) * (copies.ndim - np.ndim(x)) + np.shape(x)
        axes = tuple(i for i, n in enumerate(shape) if n != copies.shape[i])
        np.testing.assert_allclose(
            found, copies.sum(axis=axes).reshape(np.shape(x)), rtol=1e-12, atol=1e-13, strict=True
        )
    return True


def float32(case):
    """Check that all values and gradients of float32 inputs are float32."""
    inputs = [
        Tensor(a, dtype=np.float32, requires_grad=True)
        if isinstance(a, np.ndarray) and a.dtype.kind == "f"
        else a
        for a in case.inputs
    ]
    below, met = [case.ours(*inputs)], set()
    while below:
        t = below.pop()
        _same(t.dtype, np.dtype(np.float32), "dtype of a value")
        if t.node is None or id(t) in met:
            continue
        met.add(id(t))
        g = np.ones(t.shape, np.float32)
        if hasattr(t.node.rule, "definition"):
            for first in t.node.vjps(g, t.data, (True,) * len(t.node.inputs)):
                if first is not None:
                    _same(first.dtype, np.dtype(np.float32), f"dtype of {t.node.name}'s backward")
            below.append(t.node.rule.definition(*t.node.inputs, **t.node.options))
            continue
        variables = [x if x.requires_grad else x.data for x in t.node.inputs]
        _, *again = t.node.rule(*variables, **t.node.options)
        for x, first, second in zip(t.node.inputs, t.node.vjps, again, strict=True):
            if x.requires_grad and first is not None:
                name = f"dtype of {t.node.name}'s VJP at order"
                _same(first(g, t.data).dtype, np.dtype(np.float32), f"{name} 1")
                _same(second(Tensor(g), t).dtype, np.dtype(np.float32), f"{name} 2")
                below.append(x)
    return True


def pytorch(case):
    places = [i for i in case.floating if isinstance(case.inputs[i], np.ndarray)]
    ours = [Tensor(x, requires_grad=True) if i in places else x for i, x in enumerate(case.inputs)]
    theirs = [_in_torch(x) for x in case.inputs]
    other = oracles.in_torch(case, theirs)
    if other is NotImplemented:
        return False
    y = case.ours(*ours)
    np.testing.assert_allclose(y.data, other.detach().numpy(), rtol=1e-10, atol=1e-12, strict=True)
    g = np.random.default_rng(7).standard_normal(y.shape)
    found = gradients(y, [ours[i] for i in places], g)
    leaves = [theirs[i] for i in places]
    for one, leaf, two in zip(
        found,
        leaves,
        oracles.torch.autograd.grad(other, leaves, oracles.torch.tensor(g), allow_unused=True),
        strict=True,
    ):
        two = np.zeros(leaf.shape) if two is None else two.numpy()
        np.testing.assert_allclose(one, two, rtol=1e-10, atol=1e-12, strict=True)
    return True


def _same(found, wanted, what):
    if found != wanted:
        raise AssertionError(f"{what}: {found}, not {wanted}")


def _tensor(x):
    return x if x is None else Tensor(x)


def _in_torch(x):
    if isinstance(x, np.ndarray):
        return oracles.torch.tensor(x, requires_grad=x.dtype.kind == "f")
    return x.item() if isinstance(x, np.generic) else x


def _of_floating(case):
    """Return the case as a function of its floating inputs alone, and those inputs."""
    places = case.floating

    def f(*xs):
        inputs = list(case.inputs)
        for i, x in zip(places, xs, strict=True):
            inputs[i] = x
        return case.ours(*inputs)

    return f, tuple(np.asarray(case.inputs[i], float) for i in places)


# ---------------------------------------------------------------- what stretches

# For a case, the shapes its inputs are stretched to; None where nothing can be.


def _alike(case):
    shapes = [np.shape(x) for x in case.inputs]
    return [np.broadcast_shapes(*shapes)] * len(shapes)


def _stacks(case):
    a, b = (np.shape(x) for x in case.inputs)
    if len(a) < 2 or len(b) < 2:
        return None
    stack = np.broadcast_shapes(a[:-2], b[:-2])
    return [(*stack, *a[-2:]), (*stack, *b[-2:])]


def _letters(case):
    terms = case.options["subscripts"].replace(" ", "").split("->")[0].split(",")
    lengths, stacks = {}, [()]
    for term, x in zip(terms, case.inputs, strict=True):
        before, _, after = term.partition("...")
        n, m = len(before), x.ndim - len(after)
        stacks.append(x.shape[n:m])
        for c, length in zip(before + after, x.shape[:n] + x.shape[m:], strict=True):
            lengths[c] = max(length, lengths.get(c, 1)) if length else 0
    stack = np.broadcast_shapes(*stacks)
    return [
        (*(lengths[c] for c in before), *(stack if dots else ()), *(lengths[c] for c in after))
        for before, dots, after in (term.partition("...") for term in terms)
    ]


def _lines(case):
    (x,), places = case.inputs, case.options["indices"].shape
    axis = case.options["axis"] % x.ndim
    shape = np.broadcast_shapes(*((*s[:axis], 1, *s[axis + 1 :]) for s in (x.shape, places)))
    return [(*shape[:axis], x.shape[axis], *shape[axis + 1 :])]


STRETCHED = {
    **dict.fromkeys(
        [
            "add",
            "subtract",
            "multiply",
            "divide",
            "power",
            "logaddexp",
            "maximum",
            "minimum",
            "where",
            "clip",
            "layer_norm",
            "rms_norm",
            "arctan2",
            "hypot",
            "cross",
        ],
        _alike,
    ),
    "broadcast_to": lambda case: [case.options["shape"]],
    "full_like": lambda case: [np.shape(case.inputs[0])] * 2,
    "einsum": _letters,
    "matmul": _stacks,
    "scatter_add": lambda case: [np.shape(np.zeros(case.options["shape"])[case.options["index"]])],
    "take_along_axis": _lines,
}

# ---------------------------------------------------------------- the table

REASONS = {
    "broadcasting": {
        **dict.fromkeys(("mse", "binary_cross_entropy_with_logits"), "equal shapes only"),
        **dict.fromkeys(("dot", "outer"), "pairs axes or keeps them"),
        "linear": "b alone is stretched, to every row",
        **dict.fromkeys(
            {case.name for case in CASES if len(case.inputs) == 1} - STRETCHED.keys(), "one input"
        ),
        "concatenate": "joins, never stretches",
        "stack": "joins, never stretches",
        **dict.fromkeys(JOINING, "joins, never stretches"),
        **dict.fromkeys(("average", "kron", "solve"), "composed of what stretches"),
        "cross_entropy": "one target for each row",
    },
    "float32": {"astype": "an option decides"},
    "PyTorch": dict.fromkeys(ROWS, "torch is missing")
    if oracles.torch is None
    else dict.fromkeys(oracles.OTHER_WORDS, "other words"),
}


class Cell(NamedTuple):
    passed: int
    failures: tuple[str, ...]
    reason: str

    @property
    def good(self):
        """Return True if something was counted or there is a reason why not, but not both."""
        return not self.failures and (self.passed > 0) != bool(self.reason)

    def __str__(self):
        if not self.good:
            return f"{len(self.failures) or ''} FAILED".strip()
        return str(self.passed) if self.passed else self.reason


@cache
def cells(name):
    """Return the row of an operation: its cells by their column."""
    return row(name, [case for case in CASES if case.name == name])


def row(name, cases):
    checks = {
        "value": value,
        "jvp·vjp": jvp_and_vjp,
        "broadcasting": broadcasting,
        "float32": float32,
        "PyTorch": pytorch,
    }
    found = {}
    for column, check in checks.items():
        reason = REASONS.get(column, {}).get(name, "")
        found[column] = _cell(check, [] if reason else cases, reason)
    by_order = [(case, orders(case)) for case in cases]
    for k, column in enumerate(("order 1", "order 2")):
        failures = tuple(f"{case}: {errors[k]!r}" for case, errors in by_order if errors[k])
        found[column] = Cell(len(cases) - len(failures), failures, "")
    return {column: found[column] for column in COLUMNS}


def _cell(check, cases, reason):
    passed, failures = 0, []
    for case in cases:
        try:
            passed += check(case)
        except Exception as error:
            failures.append(f"{case}: {error!r}")
    return Cell(passed, tuple(failures), reason)


def lines(names=ROWS):
    """Yield the table, line by line, as its rows are computed."""
    longest = {"broadcasting": 26, "float32": 17}  # the reasons

    def line(name, oracle, texts):
        first, *rest = (text.ljust(longest.get(column, 9)) for column, text in texts.items())
        return "  ".join([name.ljust(32), first, oracle.ljust(36), *rest]).rstrip()

    yield line("", "by", {column: column for column in COLUMNS})
    for name in names:
        yield line(name, oracles.named(name), {c: str(cell) for c, cell in cells(name).items()})


def main(*names):
    """Print the table, or the rows of these names, with all failures; return 1 if there are any."""
    names = names or ROWS
    warnings.simplefilter("error")  # as in the tests
    for line in lines(names):
        print(line, flush=True)
    all_cells = [(name, column, cell) for name in names for column, cell in cells(name).items()]
    counted = sum(cell.passed for *_, cell in all_cells)
    run = sum(case.name in names for case in CASES)
    bad = [(name, column, cell) for name, column, cell in all_cells if not cell.good]
    print(f"\n{len(names)} operations, {run} cases, {counted} checks passed")
    for name, column, cell in bad:
        print(
            f"\n{name}, {column}: {len(cell.failures)} failed, {cell.passed} passed {cell.reason}"
        )
        print("\n".join(f"    {failure}" for failure in cell.failures[:3]))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
