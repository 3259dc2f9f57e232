"""Vocabulary: which of NumPy's functions finds which operation.

Why does `np.exp(t)` work on a Tensor? NumPy looks at the arguments before it computes anything. If
one of them has a method `__array_ufunc__` or `__array_function__`, NumPy calls that method and
returns its result. Chapter 1.4 defines the two methods, and they use the tables below.

`NUMPY` are the functions that record. `PLAIN` are those that have no derivative, or one that is 0
wherever it exists: on Tensors they give plain arrays. `INSTEAD` says, for some other functions, how
to compute the same. Whatever is in no table is refused by name. (PyTorch's words: `other_words`.)

    >>> from minigrad import Tensor
    >>> t = Tensor([0.5, -1.5], requires_grad=True)
    >>> np.minimum(t, 0.0)
    Tensor([ 0. , -1.5], node=minimum)
    >>> np.round(t), np.argmax(t)
    (array([ 0., -2.]), np.int64(0))
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NoReturn

import numpy as np

from minigrad import functional as F
from minigrad import ops
from minigrad.engine.other_words import OTHER_WORDS
from minigrad.engine.tensor import describe
from minigrad.functional import numpy_words
from minigrad.ops import inverses
from minigrad.ops.elementwise import floats

# Functions that NumPy has too, by the same name: np.exp finds minigrad.exp, np.vstack `vstack`.
_ALIKE = {
    getattr(np, name): f
    for module in (ops, F, inverses, numpy_words)
    for name, f in vars(module).items()
    if callable(f) and f.__module__.startswith("minigrad.") and hasattr(np, name)
}

NUMPY: dict[Any, Callable[..., Any]] = {
    **_ALIKE,
    np.amax: ops.max,
    np.amin: ops.min,
    np.copy: lambda a: a.copy(),
    np.fabs: lambda x, /: ops.abs(floats(x)),
    np.linalg.cross: numpy_words.cross,
    np.linalg.inv: inverses.inv,
    np.linalg.norm: F.norm,
    np.linalg.outer: F.outer,
    np.linalg.solve: inverses.solve,
    np.matrix_transpose: lambda x: ops.swapaxes(x, -1, -2),
}

PLAIN: frozenset[Any] = frozenset(
    {
        # comparisons and questions
        *(np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal),
        *(np.isfinite, np.isnan, np.isinf, np.signbit, np.isin, np.unique),
        *(np.logical_and, np.logical_or, np.logical_not, np.logical_xor),
        *(np.all, np.any, np.allclose, np.isclose, np.array_equal, np.count_nonzero),
        # places
        *(np.argmax, np.argmin, np.argsort, np.argwhere, np.nonzero, np.flatnonzero),
        np.searchsorted,
        # steps: flat between their jumps
        *(np.around, np.ceil, np.floor, np.floor_divide, np.rint, np.round, np.trunc),
        # properties of an array
        *(np.empty_like, np.ndim, np.ones_like, np.shape, np.size, np.zeros_like),
    }
)

INSTEAD: dict[Any, str] = {
    np.append: "np.concatenate",
    np.array_split: "np.split, at the places",
    np.block: "np.concatenate, once for each axis",
    np.broadcast_arrays: "np.broadcast_to",
    np.column_stack: "np.stack with axis=1 for vectors, np.hstack for matrices",
    np.copysign: "np.where(np.signbit(y), -np.abs(x), np.abs(x))",
    np.copyto: "np.where",
    np.cosh: "(np.exp(x) + np.exp(-x)) / 2",
    np.delete: "x[keep], with the indices or a mask of what stays",
    np.diag: "np.diagonal of a matrix, x * np.eye(n) of a vector",
    np.exp2: "2.0**x",
    np.fliplr: "x[:, ::-1]",
    np.flipud: "x[::-1]",
    np.inner: "x @ y.T",
    np.insert: "np.concatenate([x[:i], values, x[i:]])",
    np.linspace: "start + (stop - start) * np.linspace(0, 1, n)",
    np.log10: "np.log(x) / np.log(10)",
    np.log2: "np.log(x) / np.log(2)",
    np.nanmean: "np.where(np.isnan(x), 0, x).sum() / (~np.isnan(x)).sum()",
    np.nansum: "np.where(np.isnan(x), 0, x).sum()",
    np.ptp: "x.max() - x.min()",
    np.put: "scatter_add or np.where",
    np.reciprocal: "1 / x",
    np.remainder: "x - y * (x // y)",
    np.tan: "np.sin(x) / np.cos(x)",
    np.tensordot: "np.einsum",
    np.trace: "np.diagonal(x).sum(axis=-1)",
    np.vdot: "np.sum(x * y)",
    np.vecdot: "np.sum(x * y, axis=-1)",
}


def advice(name: str) -> str:
    """Return a sentence with the word to use instead of `t.name`, which no Tensor t has."""
    if name in OTHER_WORDS:
        return f"a Tensor speaks NumPy's words: instead of t.{name} use {OTHER_WORDS[name]}"
    found = [_name(function) for function in (*NUMPY, *PLAIN) if function.__name__ == name]
    if ours := _where_ours_is(name) or next(iter(found), None):
        return f"a Tensor speaks NumPy's words: {name} is a function, {ours}(t)"
    return f"a Tensor has no attribute {name!r}"


def _where_ours_is(name: str) -> str | None:
    """Return the name by which a function of chapters 3 and 6 is called; None if there is none."""
    if callable(getattr(ops, name, None)) or callable(getattr(F, name, None)):
        return f"np.{name}" if hasattr(np, name) else f"minigrad.{name}"
    return None


def refuse_to_exchange(t: Any, axes: tuple[Any, Any]) -> None:
    """Refuse `t.transpose(-2, -1)` in PyTorch's sense; in NumPy's it is the order of two axes."""
    in_order = t.ndim == 2 and axes[0] in (0, -2) and axes[1] in (1, -1)
    if t.ndim > 2 or in_order:
        raise ValueError(
            f"transpose{axes} of {describe(t)} does not exchange two axes: it takes the order of "
            f"all, as NumPy's does; use .mT, or .swapaxes{axes}"
        )


def refuse_ufunc(ufunc: Any, method: str, options: Mapping[str, Any]) -> NoReturn:
    """Raise TypeError with the reason why this call of a ufunc cannot be recorded."""
    name = f"np.{ufunc.__name__}" + ("" if method == "__call__" else f".{method}")
    if getattr(np, ufunc.__name__, None) is not ufunc:
        name = f"{ufunc.__name__}, which is not NumPy's,"
    if "out" in options:
        raise TypeError(
            f"{name} in place, or with out=, cannot be recorded: make a new array or tensor"
        )
    refuse_unknown(ufunc, name + "".join(f" with {option}=" for option in options))


def refuse_unknown(function: Any, name: str | None = None) -> NoReturn:
    """Raise TypeError for a function without a rule, with a remedy."""
    remedy = (
        "compose it from what minigrad has, write a @primitive, or pass t.data if no gradient is "
        "wanted"
    )
    ours = None if function in NUMPY else _where_ours_is(function.__name__)  # (SciPy's erf)
    if use := INSTEAD.get(function, ours):
        remedy = f"use {use}"
    raise TypeError(f"{name or _name(function)} has no rule for Tensors: {remedy}")


def refuse_unknown_options(function: Any, options: Mapping[str, Any]) -> None:
    """Refuse options of NumPy's that cannot be recorded, or that our operation does not have."""
    parameters = _parameters(NUMPY[function])
    for option in options:
        if option == "out":
            raise TypeError(f"{_name(function)} with out= cannot be recorded: make a new tensor")
        if option not in parameters:
            optional = [p.name for p in parameters.values() if p.default is not p.empty]
            raise TypeError(
                f"{_name(function)} with {option}= has no rule for Tensors: its options here are "
                + (", ".join(optional) or "none")
            )


def _name(function: Any) -> str:
    module = getattr(function, "__module__", "numpy")  # (NumPy 2.0's ufuncs have none)
    return f"{module}.{function.__name__}".replace("numpy", "np", 1)


@cache
def _parameters(rule: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(rule).parameters
