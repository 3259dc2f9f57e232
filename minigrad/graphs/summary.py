"""Summary: what is kept of an array.

A person reads a few numbers, and compares the rest by their size. So a `Summary` keeps a small
array whole, and a large one as a map: cut into at most 16 × 16 pieces, and the mean of each.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from minigrad.engine.tensor import Array

WHOLE = 256  # an array of up to so many numbers is kept whole
MAP = 16  # rows and columns of the map of a larger one


@dataclass(frozen=True, eq=False)
class Summary:
    """An array of at most 256 numbers as it is, `whole`; a larger one as a `map` of means.

    `rms` = √mean(x²), the size of a typical element, and `norm` = √Σx² are NaN or ∞ if an element
    is.
    """

    shape: tuple[int, ...]
    whole: Array | None
    map: Array | None
    rms: float
    norm: float

    @classmethod
    def of(cls, a: Array) -> Summary:
        """Summarise `a`. The array itself is not kept, so it may change or be freed."""
        whole, map_ = (a.copy(), None) if a.size <= WHOLE else (None, _map(a))
        numbers = np.asarray(a if whole is None else whole, float)
        with np.errstate(all="ignore"):
            total = float((numbers**2).sum())
        rms, norm = math.sqrt(total / max(a.size, 1)), math.sqrt(total)
        return cls(a.shape, whole, map_, rms, norm)

    @property
    def kept(self) -> Any:
        """The numbers that are kept: all of them, or the map."""
        return self.whole if self.whole is not None else self.map

    @property
    def key(self) -> tuple[Any, ...]:
        """A key that is equal for equal arrays, and for large arrays with equal maps."""
        return self.shape, self.kept.dtype, self.kept.tobytes()

    @property
    def size(self) -> int:
        """The number of elements that the array had."""
        return math.prod(self.shape)

    def __str__(self) -> str:
        """Return up to four numbers as they are, or the RMS of more."""
        return shown(self.whole) if self.size <= 4 else f"RMS {self.rms:.3g}"


dtype_name = functools.cache(str)  # (NumPy builds the name anew each time)


def _map(a: Array) -> Array:
    """Return means over pieces of a large array, as a matrix with its last axis as columns."""
    rows = a.reshape(-1, a.shape[-1]).astype(float)
    for axis in (0, 1):
        n = rows.shape[axis]
        starts = np.unique(np.arange(MAP) * n // MAP)
        lengths = np.diff([*starts, n])
        with np.errstate(all="ignore"):  # NaN and ∞ stay what they are
            total = np.add.reduceat(rows, starts, axis=axis)
            rows = total / (lengths[:, None] if axis == 0 else lengths)
    return rows


def shown(a: Any) -> str:
    """Write a small array as a reader does: 0.577, or [1, 2]."""
    if a.ndim == 0:
        return f"{a.item():.3g}" if a.dtype.kind == "f" else str(a.item())
    return f"[{', '.join(shown(row) for row in a)}]"


def rounded(x: Any, digits: int) -> Any:
    """Round a number or an array for JSON. NaN and ∞, which JSON does not have, become text."""
    if isinstance(x, np.ndarray):
        return rounded(x.tolist(), digits)
    if isinstance(x, list | tuple):
        return [rounded(each, digits) for each in x]
    if not isinstance(x, float):
        return x
    return float(f"{x:.{digits}g}") if math.isfinite(x) else str(x)
