"""3 · Primitives: value and derivative side by side.

Which functions must a learner differentiate by hand? The 48 that this package exports, and the
eleven of chapter 3.9. Everything else is composed of them, and the chain rule does the rest. Each
rule has its derivation beside it:

    3.1   elementwise     add, multiply, exp, … : diagonal Jacobians
    3.2   shape           reshape, transpose, … : moving and copying
    3.3   indexing        getitem, where, … : picking and putting back
    3.4   reduce          sum, mean, max, … : many to one
    3.5   linalg          matmul
    3.6   softmaxes       softmax, log_softmax, logsumexp
    3.7   fused           layer_norm, rms_norm, linear, masked_softmax, …: several steps, one node
    3.8   products        einsum
    3.9   inverses        np.arcsin, np.linalg.inv, …: eleven more, only as NumPy's functions
    3.10  classification  cross_entropy

(NumPy has no `erf`. The rule for it is in `error_function.py`, which is not a chapter.)

How to read a rule: g is ∂L/∂y, the gradient of the output y, and each lambda returns the
gradient of one input. Capitals in docstrings are the matrices of the lower-case names,
and G = ∂L/∂C for an output C. The signs:

    a ⊙ b     elementwise product             ⟨a, b⟩    Σᵢ aᵢ bᵢ
    δᵢⱼ       1 if i = j, else 0              diag(a)   *a* on the diagonal, else 0
    [i = j]   1 if the bracket holds, else 0  ‖a‖       √⟨a, a⟩

    >>> from minigrad import softmax
    >>> softmax([0.0, 0.0])
    array([0.5, 0.5])
"""

from minigrad.ops.classification import cross_entropy
from minigrad.ops.elementwise import (
    abs,
    add,
    cos,
    divide,
    exp,
    expm1,
    log,
    log1p,
    logaddexp,
    maximum,
    minimum,
    multiply,
    negative,
    positive,
    power,
    sigmoid,
    sign,
    sin,
    sqrt,
    subtract,
    tanh,
)
from minigrad.ops.error_function import erf
from minigrad.ops.fused import gelu_tanh, layer_norm, linear, masked_softmax, rms_norm, rotate_pairs
from minigrad.ops.indexing import concatenate, getitem, scatter_add, where
from minigrad.ops.linalg import matmul
from minigrad.ops.products import einsum
from minigrad.ops.reduce import cumsum, max, mean, min, sum
from minigrad.ops.shape import astype, broadcast_to, reshape, swapaxes, transpose
from minigrad.ops.softmaxes import log_softmax, logsumexp, softmax

__all__ = [
    "abs", "add", "astype", "broadcast_to", "concatenate", "cos", "cross_entropy", "cumsum",
    "divide", "einsum", "erf", "exp", "expm1", "gelu_tanh", "getitem", "layer_norm", "linear",
    "log", "log1p", "log_softmax", "logaddexp", "logsumexp", "masked_softmax", "matmul", "max",
    "maximum", "mean", "min", "minimum", "multiply", "negative", "positive", "power", "reshape",
    "rms_norm", "rotate_pairs", "scatter_add", "sigmoid", "sign", "sin", "softmax", "sqrt",
    "subtract", "sum", "swapaxes", "tanh", "transpose", "where",
]  # fmt: skip
