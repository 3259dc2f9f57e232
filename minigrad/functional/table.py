"""Table: the rows of chapter 1.4's tables, which this module fills when it is imported.

`RECORDED` says which operation records a function of NumPy's, and `PLAIN` names the functions that
give plain arrays. `CALLED` says how each function is called, for errors. (What to write instead of
a function that no table has stands in `minigrad/engine/hints.py`.)
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

# NumPy's name goes first: t.exp is answered with np.exp(t), t.relu with minigrad.relu(t).
for name in (*ops.__all__, *functional.__all__):
    CALLED[name] = f"np.{name}" if hasattr(np, name) else f"minigrad.{name}"
for function in (*RECORDED, *PLAIN):
    CALLED.setdefault(function.__name__, name_of(function))
