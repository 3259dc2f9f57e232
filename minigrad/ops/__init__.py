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

from typing import TYPE_CHECKING

from minigrad.ops.classification import cross_entropy as cross_entropy
from minigrad.ops.elementwise import (
    abs as abs,
    add as add,
    cos as cos,
    divide as divide,
    exp as exp,
    expm1 as expm1,
    log as log,
    log1p as log1p,
    logaddexp as logaddexp,
    maximum as maximum,
    minimum as minimum,
    multiply as multiply,
    negative as negative,
    positive as positive,
    power as power,
    sigmoid as sigmoid,
    sign as sign,
    sin as sin,
    sqrt as sqrt,
    subtract as subtract,
    tanh as tanh,
)
from minigrad.ops.error_function import erf as erf
from minigrad.ops.fused import (
    gelu_tanh as gelu_tanh,
    layer_norm as layer_norm,
    linear as linear,
    masked_softmax as masked_softmax,
    rms_norm as rms_norm,
    rotate_pairs as rotate_pairs,
)
from minigrad.ops.indexing import (
    concatenate as concatenate,
    getitem as getitem,
    scatter_add as scatter_add,
    where as where,
)
from minigrad.ops.linalg import matmul as matmul
from minigrad.ops.products import einsum as einsum
from minigrad.ops.reduce import cumsum as cumsum, max as max, mean as mean, min as min, sum as sum
from minigrad.ops.shape import (
    astype as astype,
    broadcast_to as broadcast_to,
    reshape as reshape,
    swapaxes as swapaxes,
    transpose as transpose,
)
from minigrad.ops.softmaxes import (
    log_softmax as log_softmax,
    logsumexp as logsumexp,
    softmax as softmax,
)

if not TYPE_CHECKING:  # (a type checker takes every `name as name` for public)
    __all__ = sorted(name for name, value in globals().items() if callable(value))
