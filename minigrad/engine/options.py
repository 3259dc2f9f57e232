"""Options: one sentence for a number that is not in its range, or that its dtype cannot hold.

NumPy takes an eps below 0, a momentum of 9 and a rate that is NaN, and then the model trains badly.
And 300 becomes 44 in uint8.
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


def check_floating(dtype: np.dtype[Any], asked: str) -> None:
    """Refuse a floating dtype other than float32 and float64."""
    if dtype.kind == "f" and dtype.char not in "fd":
        raise TypeError(
            f"{asked} takes float32 or float64, but got {dtype}: use .astype(np.float32)"
        )


def converted(
    array: np.ndarray[Any, Any], dtype: np.dtype[Any], asked: str
) -> np.ndarray[Any, Any]:
    """Return the array in another dtype; ValueError if a value would wrap around or overflow."""
    if array.dtype == dtype:
        return array
    with np.errstate(invalid="ignore", over="ignore"):
        values = array.astype(dtype)
    held = np.array(True)
    if dtype.kind in "iu":
        held = values == (np.trunc(array) if array.dtype.kind == "f" else array)
    elif dtype.kind == "f":
        held = np.isfinite(values) | ~np.isfinite(array)
    if not held.all():
        raise ValueError(f"{asked} cannot hold {array[~held][0]} as {dtype}: use another dtype")
    return values
