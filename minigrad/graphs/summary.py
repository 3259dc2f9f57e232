"""5.1 · Summary: what is kept of an array.

How much of an array should a picture or a list of steps hold? A person reads a few numbers, and
compares the rest by their size. So a `Summary` keeps a small array whole, and of a large one its
statistics, with a map: the array cut into at most 16 × 16 pieces, and the mean of each.

    >>> import numpy as np
    >>> from minigrad.graphs.summary import Summary
    >>> small, large = Summary.of(np.array([3.0, 4.0])), Summary.of(np.ones((64, 100)))
    >>> small, small.statistics.norm
    ([3, 4], 5.0)
    >>> large
    (64, 100), from 1 to 1, mean 1, RMS 1
    >>> large.map.shape
    (16, 16)
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from minigrad.engine.tensor import Array

WHOLE = 256  # an array of so many numbers is kept whole
MAP = 16  # rows and columns of the map of a larger one


@dataclass(frozen=True)
class Statistics:
    """Of the finite numbers of an array: the ends, the mean, √mean(x²) and √Σx². How many are not.

    An array without finite numbers has NaN for the first three, and 0 for `rms` and `norm`.
    """

    low: float
    high: float
    mean: float
    rms: float
    norm: float
    nans: int
    infinities: int


@dataclass(frozen=True, eq=False)
class Summary:
    """An array of at most 256 numbers, `whole`; of a larger one the `map` and the statistics."""

    shape: tuple[int, ...]
    dtype: str
    whole: Array | None
    map: Array | None
    of_large: Statistics | None

    @classmethod
    def of(cls, a: Array) -> Summary:
        """What is kept of `a`. The array itself is not, so it may change or be freed."""
        if a.size <= WHOLE:
            return cls(a.shape, dtype_name(a.dtype), a.copy(), None, None)
        numbers, scale = _scaled(a)
        found = _statistics(numbers, scale)
        return cls(a.shape, dtype_name(a.dtype), None, _map(numbers, scale, found), found)

    @property
    def size(self) -> int:
        """How many numbers the array had."""
        return math.prod(self.shape)

    @cached_property
    def rms(self) -> float:
        """√mean(x²), the size of a typical element; NaN or ∞ if an element is."""
        s = self.statistics
        return np.nan if s.nans else np.inf if s.infinities else s.rms

    @cached_property
    def statistics(self) -> Statistics:
        """The statistics. Of an array that is kept whole they are computed when they are asked."""
        if self.of_large is not None:
            return self.of_large
        assert self.whole is not None
        return _statistics(*_scaled(self.whole))

    @property
    def kept(self) -> Array:
        """The numbers that are kept: all of them, or the map."""
        kept = self.whole if self.whole is not None else self.map
        assert kept is not None
        return kept

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for equal arrays, and for large ones of equal maps."""
        return self.shape, self.dtype, self.kept.tobytes()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Summary) and self.data() == other.data()

    def data(self) -> dict[str, Any]:
        """The same for JSON: numbers are rounded to 6 digits, and NaN and ∞ are text."""
        found: dict[str, Any] = {"shape": list(self.shape), "dtype": self.dtype}
        if self.whole is not None:
            return found | {"whole": rounded(self.whole, 6)}
        known = {"map": self.map} | vars(self.statistics)
        return found | {name: rounded(x, 6) for name, x in known.items()}

    def __str__(self) -> str:
        """Up to four numbers as they are; of more the RMS."""
        if self.whole is not None and self.whole.size <= 4:
            return shown(self.whole)
        return f"RMS {self.statistics.rms:.3g}{self._lost}"

    def __repr__(self) -> str:
        """Up to four numbers as they are; of more the shape, the ends, the mean and the RMS."""
        if self.whole is not None and self.whole.size <= 4:
            return shown(self.whole)
        s = self.statistics
        mean = s.mean if not abs(s.mean) < 1e-12 * s.rms else 0.0  # (what rounding left)
        ends = f"from {s.low:.3g} to {s.high:.3g}, mean {mean:.3g}, RMS {s.rms:.3g}"
        return f"{self.shape}, {ends}{self._lost}"

    @property
    def _lost(self) -> str:
        s = self.statistics
        nans = f", {s.nans} NaN" if s.nans else ""
        return nans + (f", {s.infinities} infinite" if s.infinities else "")


dtype_name = functools.cache(str)  # (NumPy builds the name anew each time)


def _scaled(a: Array) -> tuple[Array, float]:
    """An array as float64, of numbers whose squares and sums do not leave its range, and a factor.

    The array is what is returned times the factor, a power of two. In floating point (1e-200)² is
    0, and 1e308 + 1e308 is ∞.
    """
    with np.errstate(over="ignore"):
        numbers = np.asarray(a, float)
    largest = float(np.abs(numbers).max(initial=0))
    if not math.isfinite(largest):
        largest = float(np.abs(numbers[np.isfinite(numbers)]).max(initial=0))
    if largest == 0 or 1e-100 < largest < 1e100:
        return numbers, 1.0
    scale = math.ldexp(1.0, math.frexp(largest)[1] - 1)
    return numbers / scale, scale


def _statistics(numbers: Array, scale: float) -> Statistics:
    """The statistics of an array, which may be empty."""
    nans = infinities = 0
    finite = np.isfinite(numbers)
    if not finite.all():
        nans, infinities = int(np.isnan(numbers).sum()), int(np.isinf(numbers).sum())
        numbers = numbers[finite]
    if not numbers.size:
        return Statistics(np.nan, np.nan, np.nan, 0.0, 0.0, nans, infinities)
    low, high = float(numbers.min()), float(numbers.max())
    mean = min(low + float(np.mean(numbers - low)), high)
    squares = numbers**2
    total = float(squares.sum())
    # (Rounding may go beyond the ends.)
    square = np.clip(total / numbers.size, squares.min(), squares.max())
    found = np.array([low, high, mean, math.sqrt(square), math.sqrt(total)])
    with np.errstate(over="ignore"):  # (√Σx² may be larger than any float64)
        low, high, mean, rms, norm = (found * scale).tolist()
    return Statistics(low, high, mean, rms, norm, nans, infinities)


def _map(numbers: Array, scale: float, known: Statistics) -> Array:
    """Means over the pieces of a large array: its last axis by all others, 16 × 16 at most."""
    rows = numbers.reshape(-1, numbers.shape[-1])
    for axis in (0, 1):
        n = rows.shape[axis]
        starts = np.unique(np.arange(MAP) * n // MAP)
        lengths = np.diff([*starts, n])
        with np.errstate(all="ignore"):  # NaN and ∞ stay what they are
            total = np.add.reduceat(rows, starts, axis=axis)
            rows = total / (lengths[:, None] if axis == 0 else lengths)
    rows = rows * scale
    return np.where(np.isfinite(rows), rows.clip(known.low, known.high), rows)


def shown(a: Array) -> str:
    """A small array as a reader writes it: 0.577, or [1, 2].

    >>> from minigrad.graphs.summary import shown
    >>> shown(np.array(1 / np.sqrt(3))), shown(np.array([[1.0, -2.5]]))
    ('0.577', '[[1, -2.5]]')
    """
    if a.ndim == 0:
        return f"{a.item():.3g}" if a.dtype.kind == "f" else str(a.item())
    return f"[{', '.join(shown(row) for row in a)}]"


def rounded(x: Any, digits: int) -> Any:
    """A number or an array for JSON, to so many digits. NaN and ∞, which JSON has not, are text.

    >>> from minigrad.graphs.summary import rounded
    >>> rounded(np.array([2 / 3, np.inf, 1e20]), 3), rounded(1.797e308, 2)
    ([0.667, 'inf', 1e+20], 1.797e+308)
    """
    if isinstance(x, np.ndarray):
        return rounded(x.tolist(), digits)
    if isinstance(x, list):
        return [rounded(each, digits) for each in x]
    if not isinstance(x, float):
        return x
    if not math.isfinite(x):
        return str(x)
    near = float(f"{x:.{digits}g}")
    return near if math.isfinite(near) else x  # (1.797e308 would be rounded up to ∞)
