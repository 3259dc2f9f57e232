"""minigrad: reverse-mode automatic differentiation in NumPy, to be read from chapter 0 on.

The chapters, and the folders of more chapters. A folder's `__init__.py` lists its own:

    0     idea         the whole idea in forty lines
    1, 2  engine       the record of a computation, and the way back through it
    3     ops          each operation with its derivative, derived
    4     checks       how a derivative is tested
    5     graphs       the record as a picture
    6     functional   functions without new derivatives, losses, NumPy's words
    7     nn           layers: functions that own their parameters
    8     optim        what to do with a gradient

A tool, `runs`, has files, saving a run, the memory of a process, and sweeps over many settings.
Chapters 11 to 16 are in the package `attention`. Demos, exercises and tests are in the project's
folder alone, not in a wheel. The names below stand in the order a reader meets them.
"""

# ruff: noqa: I001 (chapter 1 is imported first: the order is the lesson's, not the alphabet's)
import importlib as _importlib
import typing as _typing

from minigrad.engine.tensor import Tensor
from minigrad.engine.record import Node, no_grad
from minigrad.engine.rules import fused, primitive, unfused
from minigrad.engine.autograd import backward, gradients
from minigrad.engine.derivatives import grad, hessian, hvp, jacobian, jvp, value_and_grad, vjp
from minigrad.engine.recomputing import recompute
from minigrad.engine.safety import detect_anomaly
from minigrad.engine.options import as_number
from minigrad.ops import *
from minigrad.functional import *
from minigrad.functional import table as _table  # noqa: F401 (it fills chapter 1.4's tables)
from minigrad.engine.hints import refuse_name as _refuse_name
from minigrad.checks.differences import numerical_gradient
from minigrad.checks.claims import GradientError
from minigrad.checks.checking import gradcheck
from minigrad.checks.agreeing import agreement
from minigrad.runs.memory import keep_memory
from minigrad.runs.saving import write_whole
from minigrad.runs.checkpoints import checkpoint_facts, load_checkpoint, save_checkpoint

__version__ = "0.1.0"  # (pyproject.toml takes the number from here)

if _typing.TYPE_CHECKING:
    from minigrad.graphs import Graph, Steps, graph
else:  # (a type checker would take every name)

    def __getattr__(name):
        """Return a name of chapter 5, which is imported when it is first used; refuse others."""
        if name not in ("graphs", "Graph", "Steps", "graph"):
            return _refuse_name(__name__, name)
        graphs = _importlib.import_module("minigrad.graphs")
        return graphs if name == "graphs" else getattr(graphs, name)

    __dir__ = lambda: sorted({*globals(), *__all__})


__all__ = [
    "Node",
    "Tensor",
    "no_grad",
    "primitive",
    "fused",
    "unfused",
    "backward",
    "gradients",
    "grad",
    "value_and_grad",
    "vjp",
    "jvp",
    "jacobian",
    "hessian",
    "hvp",
    "recompute",
    "detect_anomaly",
    "as_number",
    "numerical_gradient",
    "GradientError",
    "gradcheck",
    "agreement",
    "Graph",
    "graph",
    "Steps",
    "write_whole",
    "save_checkpoint",
    "load_checkpoint",
    "checkpoint_facts",
    "keep_memory",
]
# Those of `ops` and `functional`, as a list, since type checkers do not compute one. (abs, max, min
# and sum are there as well; `from minigrad import *` leaves Python's in place.)
__all__ += [
    "add", "astype", "binary_cross_entropy_with_logits", "broadcast_to", "clip", "concatenate",
    "cos", "cross_entropy", "cumsum", "diagonal", "divide", "dot", "dropout", "einsum",
    "embedding", "erf", "exp", "expand_dims", "expm1", "flip", "gelu", "gelu_tanh", "getitem",
    "layer_norm", "linear", "log", "log1p", "log_softmax", "logaddexp", "logsumexp",
    "masked_softmax", "matmul", "maximum", "mean", "minimum", "moveaxis", "mse", "multiply",
    "negative", "norm", "one_hot", "outer", "pad", "positive", "power", "prod", "ravel", "relu",
    "repeat", "reshape", "rms_norm", "roll", "rotate_pairs", "scatter_add", "sigmoid", "sign",
    "silu", "sin", "sinh", "softmax", "softplus", "sort", "split", "sqrt", "square", "squeeze",
    "stack", "std", "subtract", "swapaxes", "take", "take_along_axis", "tanh", "tile",
    "transpose", "tril", "triu", "var", "where",
]  # fmt: skip
