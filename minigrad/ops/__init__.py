"""3 · Primitives: value and derivative side by side.

Which functions must a learner differentiate by hand? The few below; everything else is
composed of them, and the chain rule does the rest. Each rule stands with its derivation:

    3.1  elementwise   add, multiply, exp, … : diagonal Jacobians
    3.2  shape         reshape, transpose, … : moving and copying
    3.3  indexing      getitem, where, … : picking and putting back
    3.4  reduce        sum, mean, max : many to one
    3.5  linalg        matmul
    3.6  softmaxes     softmax, log_softmax, logsumexp

How to read a rule: g is ∂L/∂y, the gradient arriving at the output y; each lambda gives the
gradient leaving for one input. Capitals in docstrings are the matrices of the lower-case names,
and G = ∂L/∂C for an output C. The signs:

    a ⊙ b     elementwise product          ⟨a, b⟩    Σᵢ aᵢ bᵢ          ‖a‖    √⟨a, a⟩
    δᵢⱼ       1 if i = j, else 0           diag(a)   a on the diagonal, else 0
    [i = j]   1 if the bracket holds, else 0

`NUMPY` below is the table through which NumPy's own functions reach the rules: with it,
`np.exp(t)` on a Tensor is `exp(t)`. `PLAIN` are the functions that answer questions about
values and have no derivative; on Tensors they give plain arrays.

    >>> import numpy as np
    >>> from minigrad import Tensor
    >>> np.exp(Tensor([0.0], requires_grad=True))
    Tensor([1.], node=exp)
    >>> np.isfinite(Tensor([0.0, np.inf]))
    array([ True, False])
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from minigrad.ops.elementwise import (
    add,
    divide,
    exp,
    log,
    maximum,
    multiply,
    negative,
    positive,
    power,
    sqrt,
    subtract,
    tanh,
)
from minigrad.ops.indexing import concatenate, getitem, scatter_add, where
from minigrad.ops.linalg import matmul
from minigrad.ops.reduce import max, mean, sum
from minigrad.ops.shape import astype, broadcast_to, reshape, swapaxes, transpose
from minigrad.ops.softmaxes import log_softmax, logsumexp, softmax

__all__ = [
    "add",
    "astype",
    "broadcast_to",
    "concatenate",
    "divide",
    "exp",
    "getitem",
    "log",
    "log_softmax",
    "logsumexp",
    "matmul",
    "max",
    "maximum",
    "mean",
    "multiply",
    "negative",
    "positive",
    "power",
    "reshape",
    "scatter_add",
    "softmax",
    "sqrt",
    "subtract",
    "sum",
    "swapaxes",
    "tanh",
    "transpose",
    "where",
]

NUMPY: dict[Any, Callable[..., Any]] = {
    np.add: add,
    np.subtract: subtract,
    np.multiply: multiply,
    np.divide: divide,
    np.negative: negative,
    np.positive: positive,
    np.power: power,
    np.exp: exp,
    np.log: log,
    np.sqrt: sqrt,
    np.tanh: tanh,
    np.maximum: maximum,
    np.matmul: matmul,
    np.reshape: reshape,
    np.transpose: transpose,
    np.swapaxes: swapaxes,
    np.broadcast_to: broadcast_to,
    np.concatenate: concatenate,
    np.where: where,
    np.sum: sum,
    np.mean: mean,
    np.max: max,
    np.amax: max,
}

PLAIN: frozenset[Any] = frozenset(
    {
        np.equal,
        np.not_equal,
        np.less,
        np.less_equal,
        np.greater,
        np.greater_equal,
        np.isfinite,
        np.isnan,
        np.isinf,
        np.sign,
        np.argmax,
        np.argsort,
        np.shape,
        np.ndim,
        np.size,
        np.zeros_like,
        np.ones_like,
        np.array_equal,
        np.allclose,
    }
)
