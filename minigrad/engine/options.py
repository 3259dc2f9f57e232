"""Options: one sentence for a number that is not in its range.

NumPy takes an eps below 0, a momentum of 9 and a rate that is NaN, and then the model trains badly.
"""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np


def as_number(
    name: str, value: Any, low: float, high: float = inf, ends: str = "[)", *, whole: bool = False
) -> Any:
    """Return an option as Python's float, or int if it is whole; ValueError if it is out of range.

    "[" and "]" are ends that belong to the range, "(" and ")" are ends that do not. (A number of
    NumPy's would make float32 arrays float64 ones. A boolean is not a number.)

    >>> as_number("momentum", np.float64(0.5), 0, 1)
    0.5
    >>> as_number("momentum", 9, 0, 1)
    Traceback (most recent call last):
    ValueError: momentum must be a number, 0 ≤ momentum < 1: got 9
    """
    array = np.asarray(value)
    if array.ndim == 0 and array.dtype.kind in ("iu" if whole else "iuf"):
        number = int(array) if whole else float(array)
        at_an_end = (number == low and ends[0] == "[") or (number == high and ends[1] == "]")
        if low < number < high or at_an_end:
            return number
    first, last = ("≤" if end in "[]" else "<" for end in ends)
    kind = "whole number" if whole else "number"
    limit = "∞" if high == inf else high
    raise ValueError(
        f"{name} must be a {kind}, {low} {first} {name} {last} {limit}: got {value!r:.60}"
    )
