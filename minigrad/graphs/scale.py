"""5.5 · Scale: the colour of a gradient.

Gradients differ by powers of ten, so the scale of colours is a logarithmic one. Where should its
ends be? At the smallest and the largest gradient of the picture, four powers of ten apart at least,
or a factor of two would look like a dying gradient. (Two pictures are compared on one scale: give
both the same `limits=`.)

One kind of gradient does not count: where it is 0 on paper, rounding makes 1e-17 of it, and an end
there would give one colour to all others. The bias of attention's keys is the example. It adds one
number to all scores of a query, and softmax does not see that. Such a gradient is a sum of many
terms that cancel, and it is recognised by its size: it is no larger than the rounding of the terms.
A gradient that has become small by factors, layer after layer, is not of that kind. It has all its
digits, and is shown.

    >>> from minigrad.graphs.scale import colour, limits_around
    >>> limits_around([2e-5, 0.3]), limits_around([0.5, 1.0])
    ((1e-05, 1.0), (0.0001, 1.0))
    >>> colour(1e-9, (1e-5, 1.0)) == colour(1e-5, (1e-5, 1.0))            # beyond an end: the end
    True
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from minigrad.graphs.model import Vertex

Limits = tuple[float, float]
LEAST, MOST = 4, 12  # powers of ten between the ends of a scale
ROUNDING = 1024  # of the last digits of a term

# From the smallest gradient to the largest. Each is darker than the one before by the same step, so
# the order is kept in print and for colour-blind eyes, and black text can be read on each.
SCALE = ("#efe6d3", "#f6d07a", "#f3b94f", "#ea983f", "#e17c3a")
DEAD = "#ffffff"
LOST = "#e79aa0"  # a NaN: no place on the scale


def colour(strength: float, limits: Limits) -> str:
    """A gradient's place on the log scale between the limits, as #rrggbb.

    >>> from minigrad.graphs.scale import colour
    >>> colour(1e-3, (1e-3, 1e3)), colour(1.0, (1e-3, 1e3)), colour(1e9, (1e-3, 1e3))
    ('#efe6d3', '#f3b94f', '#e17c3a')
    """
    if math.isnan(strength):
        return LOST
    low, high = (math.log10(limit) for limit in limits)
    if not strength > 0:
        return DEAD
    place = (math.log10(strength) - low) / (high - low) if math.isfinite(strength) else 1.0
    place = min(max(place, 0.0), 1.0) * (len(SCALE) - 1)
    left = min(int(place), len(SCALE) - 2)
    channels = [
        round(a + (b - a) * (place - left))
        for a, b in zip(_rgb(SCALE[left]), _rgb(SCALE[left + 1]), strict=True)
    ]
    return "#" + "".join(f"{channel:02x}" for channel in channels)


def checked_limits(limits: Any) -> Limits | None:
    """Limits that somebody gave, as floats; None if they gave none. ValueError for all else."""
    if limits is None:
        return None
    with suppress(TypeError, ValueError, OverflowError):
        numbers = [np.asarray(x) for x in limits]
        low, high = (float(x) for x in numbers if x.dtype.kind in "fiu" and x.ndim == 0)
        if len(numbers) == 2 and low > 0 and high < math.inf and math.log10(low) < math.log10(high):
            return low, high
    raise ValueError(f"limits must be two positive numbers, the lower first: got {limits!r:.80}")


def limits_around(strengths: Iterable[float | None]) -> Limits:
    """Whole powers of ten around the gradients found, at least four of them and at most twelve."""
    seen = [s for s in strengths if s is not None and s > 0 and math.isfinite(s)]
    if not seen:
        return 1e-4, 1.0
    top = min(max(math.ceil(round(math.log10(max(seen)), 6)), -300), 308)  # (10.0**309 overflows)
    bottom = math.floor(math.log10(min(seen)))
    bottom = max(min(bottom, top - LEAST), top - MOST)
    return 10.0**bottom, 10.0**top


def lost(vertices: Sequence[Vertex]) -> frozenset[int]:
    """The leaves whose gradients are what rounding has left of 0, by number.

    A number that is added to n rows has the sum of their gradients. Its rounding is about √n times
    that of one term. (The factor 1024 stands for the terms' own rounding: they are differences
    of larger numbers.) If the sum is no larger than that, nothing is left of it.
    """
    found = set()
    for v in vertices:
        if v.operation not in ("add", "subtract", "linear", "layer_norm") or v.grad_rms is None:
            continue
        for position, i in enumerate(v.inputs):
            x = vertices[i]
            is_added = position == 2 if v.operation in ("linear", "layer_norm") else True
            if x.kind == "leaf" and is_added and x.value.size < v.value.size:
                terms = v.value.size // max(x.value.size, 1)
                rounding = ROUNDING * float(np.finfo(x.dtype).eps) * terms**0.5 * v.grad_rms
                if x.grad_rms is not None and 0 < x.grad_rms < rounding:
                    found.add(i)
    return frozenset(found)


def is_unseen_by_softmax(vertices: Sequence[Vertex], leaf: int) -> bool:
    """Whether a leaf is added to what becomes the scores of a softmax."""
    reached = {leaf}
    for v in vertices:
        if not reached.isdisjoint(v.inputs):
            if "softmax" in v.operation or v.operation == "fused_attention":
                return True
            if v.operation in TO_SCORES:
                reached.add(v.number)
    return False


# What can stand between keys and softmax.
TO_SCORES = frozenset(("add", "broadcast_to", "divide", "linear", "matmul", "multiply", "reshape"))
TO_SCORES |= {"rotary", "subtract", "swapaxes", "transpose", "where"}


def in_words(strength: float | None, limits: Limits | None, noise: bool = False) -> str:
    """A gradient as a drawing says it; beyond the limits with an arrow.

    >>> from minigrad.graphs.scale import in_words
    >>> [in_words(g, (1e-3, 1.0)) for g in (0.0123456, 7.0, 1e-4, 0.0)], in_words(1e-17, None, True)
    (['grad 0.0123', 'grad 7 ↑', 'grad 0.0001 ↓', 'grad 0'], 'grad ≈ 0')
    """
    if strength is None:
        return ""
    if noise:
        return "grad ≈ 0"
    mark = ""
    if limits is not None and strength > 0:
        mark = " ↑" if strength > limits[1] else " ↓" if strength < limits[0] else ""
    return f"grad {strength:.3g}{mark}"


def _rgb(text: str) -> tuple[int, ...]:
    return tuple(int(text[i : i + 2], 16) for i in (1, 3, 5))
