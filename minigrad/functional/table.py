"""Table: the rows of chapter 1.4's tables.

`RECORDED` says which operation records a function of NumPy's. `PLAIN` has the functions that have
no derivative, or one that is 0 wherever it exists. What is in neither is refused, and for some
functions `minigrad/engine/hints.py` says what to write instead.

    >>> from minigrad import Tensor
    >>> t = Tensor([0.5, -1.5], requires_grad=True)
    >>> np.minimum(t, 0.0)
    Tensor([ 0. , -1.5], node=minimum)
    >>> np.round(t), np.argmax(t)
    (array([ 0., -2.]), np.int64(0))
"""

import numpy as np

from minigrad import functional, ops
from minigrad.engine.words import CALLED, PLAIN, RECORDED, name_of
from minigrad.functional import numpy_words
from minigrad.ops import inverses
from minigrad.ops.elementwise import floats

# Functions that NumPy has too, by the same name: np.exp finds minigrad.exp, np.vstack `vstack`.
for module in (ops, functional, inverses, numpy_words):
    for name, function in vars(module).items():
        is_ours = callable(function) and function.__module__.startswith("minigrad.")
        if is_ours and hasattr(np, name):
            RECORDED[getattr(np, name)] = function

# Other names, and what NumPy has as a method of arrays alone.
RECORDED.update(
    {
        np.amax: ops.max,
        np.amin: ops.min,
        np.copy: ops.positive,
        np.fabs: lambda x, /: ops.abs(floats(x)),
        np.linalg.cross: numpy_words.cross,
        np.linalg.inv: inverses.inv,
        np.linalg.norm: functional.norm,
        np.linalg.outer: functional.outer,
        np.linalg.solve: inverses.solve,
        np.matrix_transpose: lambda x: ops.swapaxes(x, -1, -2),
        np.ndarray.__getitem__: ops.getitem,
        np.ndarray.astype: ops.astype,
    }
)

# Comparisons and questions.
PLAIN.update({np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal})
PLAIN.update({np.isfinite, np.isnan, np.isinf, np.signbit, np.isin, np.unique})
PLAIN.update({np.logical_and, np.logical_or, np.logical_not, np.logical_xor})
PLAIN.update({np.all, np.any, np.allclose, np.isclose, np.array_equal, np.count_nonzero})
# Places.
PLAIN.update({np.argmax, np.argmin, np.argsort, np.argwhere, np.nonzero, np.flatnonzero})
PLAIN.add(np.searchsorted)
# Steps: flat between their jumps.
PLAIN.update({np.around, np.ceil, np.floor, np.floor_divide, np.rint, np.round, np.trunc})
# Properties of an array.
PLAIN.update({np.empty_like, np.ndim, np.ones_like, np.shape, np.size, np.zeros_like})

for name in (*ops.__all__, *functional.__all__):  # type: ignore[attr-defined]
    CALLED[name] = f"np.{name}" if hasattr(np, name) else f"minigrad.{name}"
for function in (*RECORDED, *PLAIN):
    CALLED.setdefault(function.__name__, name_of(function))
