"""6.5 · Vocabulary: which of NumPy's functions finds which operation.

Why does `np.exp(t)` work on a Tensor? NumPy asks its arguments before it computes anything: an
argument with an `__array_ufunc__` or `__array_function__` method is handed the call instead.
Chapter 1.4 has those two methods, and looks here for what to do.

`NUMPY` are the functions that record. `PLAIN` are those that answer questions about values and
have no derivative, or one that is 0 wherever it exists: on Tensors they give plain arrays.
`INSTEAD` says for some others how to get the same from what is there.

    >>> from minigrad import Tensor
    >>> t = Tensor([0.5, -1.5], requires_grad=True)
    >>> np.minimum(t, 0.0)
    Tensor([ 0. , -1.5], node=negative)
    >>> np.round(t), np.argmax(t)
    (array([ 0., -2.]), np.int64(0))
    >>> np.vstack([t, t])
    Traceback (most recent call last):
    TypeError: np.vstack has no rule for Tensors: use np.stack or np.concatenate
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minigrad import functional as F
from minigrad import ops

NUMPY: dict[Any, Callable[..., Any]] = {
    # 3.1 and 6.1, elementwise
    np.abs: ops.abs,
    np.add: ops.add,
    np.arctan: ops.arctan,
    np.cos: ops.cos,
    np.divide: ops.divide,
    np.exp: ops.exp,
    np.expm1: ops.expm1,
    np.fabs: ops.abs,
    np.log: ops.log,
    np.log1p: ops.log1p,
    np.logaddexp: ops.logaddexp,
    np.maximum: ops.maximum,
    np.multiply: ops.multiply,
    np.negative: ops.negative,
    np.positive: ops.positive,
    np.power: ops.power,
    np.remainder: ops.remainder,
    np.sign: ops.sign,
    np.sin: ops.sin,
    np.sqrt: ops.sqrt,
    np.subtract: ops.subtract,
    np.tanh: ops.tanh,
    np.where: ops.where,
    np.clip: F.clip,
    np.cosh: F.cosh,
    np.log2: F.log2,
    np.minimum: F.minimum,
    np.reciprocal: F.reciprocal,
    np.sinh: F.sinh,
    np.square: F.square,
    np.tan: F.tan,
    # 3.2, 3.3 and 6.2, arranging
    np.broadcast_to: ops.broadcast_to,
    np.concatenate: ops.concatenate,
    np.copy: ops.positive,
    np.reshape: ops.reshape,
    np.swapaxes: ops.swapaxes,
    np.transpose: ops.transpose,
    np.matrix_transpose: lambda x: ops.swapaxes(x, -1, -2),
    np.diagonal: F.diagonal,
    np.expand_dims: F.expand_dims,
    np.flip: F.flip,
    np.moveaxis: F.moveaxis,
    np.pad: F.pad,
    np.ravel: F.ravel,
    np.repeat: F.repeat,
    np.roll: F.roll,
    np.sort: F.sort,
    np.split: F.split,
    np.squeeze: F.squeeze,
    np.stack: F.stack,
    np.take: F.take,
    np.take_along_axis: F.take_along_axis,
    np.tile: F.tile,
    np.tril: F.tril,
    np.triu: F.triu,
    # 3.4, 3.5 and 6.3, reductions and products
    np.cumsum: ops.cumsum,
    np.amax: ops.max,
    np.amin: F.min,
    np.max: ops.max,
    np.mean: ops.mean,
    np.sum: ops.sum,
    np.min: F.min,
    np.prod: F.prod,
    np.std: F.std,
    np.var: F.var,
    np.linalg.norm: F.norm,
    np.einsum: ops.einsum,
    np.matmul: ops.matmul,
    np.dot: F.dot,
    np.outer: F.outer,
    np.tensordot: F.tensordot,
    np.trace: F.trace,
}

PLAIN: frozenset[Any] = frozenset(
    {
        # comparisons and questions
        np.equal,
        np.not_equal,
        np.less,
        np.less_equal,
        np.greater,
        np.greater_equal,
        np.isfinite,
        np.isnan,
        np.isinf,
        np.signbit,
        np.logical_and,
        np.logical_or,
        np.logical_not,
        np.all,
        np.any,
        np.allclose,
        np.isclose,
        np.array_equal,
        np.count_nonzero,
        # places
        np.argmax,
        np.argmin,
        np.argsort,
        np.argwhere,
        np.nonzero,
        np.flatnonzero,
        np.searchsorted,
        np.unravel_index,
        # steps: flat between their jumps
        np.around,
        np.ceil,
        np.floor,
        np.floor_divide,
        np.rint,
        np.round,
        np.trunc,
        # what an array is like
        np.empty_like,
        np.ndim,
        np.ones_like,
        np.shape,
        np.size,
        np.zeros_like,
        np.result_type,
        np.may_share_memory,
        np.shares_memory,
    }
)

INSTEAD: dict[Any, str] = {
    np.append: "np.concatenate",
    np.array_split: "np.split with the places to cut at",
    np.average: "(w * x).sum() / w.sum()",
    np.column_stack: "np.stack with axis=1",
    np.copyto: "np.where",
    np.cumprod: "np.prod of slices, or np.exp(np.cumsum(np.log(x))) for positive x",
    np.diag: "np.diagonal",
    np.diff: "x[1:] - x[:-1]",
    np.dstack: "np.stack or np.concatenate",
    np.hstack: "np.concatenate",
    np.hypot: "np.sqrt(a * a + b * b)",
    np.inner: "np.einsum or @",
    np.log10: "np.log(x) / np.log(10)",
    np.median: "np.sort and an index",
    np.nanmean: "np.where(np.isnan(x), 0, x).sum() / (~np.isnan(x)).sum()",
    np.nansum: "np.where(np.isnan(x), 0, x).sum()",
    np.put: "scatter_add or np.where",
    np.vdot: "np.dot of two np.ravel",
    np.vstack: "np.stack or np.concatenate",
}
