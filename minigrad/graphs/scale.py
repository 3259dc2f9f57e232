"""Scale: the colour of a gradient.

Gradients differ by powers of ten, so the scale of colours is a logarithmic one. It goes from the
smallest gradient of the picture to the largest, four powers of ten at least, or a factor of two
would look like a dying gradient.

One kind of gradient does not count: it is 0 on paper, and rounding makes 1e-17 of it. A scale down
to there would give one colour to all others. The bias of attention's keys is the example: it adds
one number to all scores of a query, and softmax ignores that. Such a gradient is a sum of terms
that cancel, no larger than their rounding. A gradient that has become small by factors, layer after
layer, has all its digits, and is shown.

    >>> from minigrad.graphs.scale import limits_around
    >>> limits_around([2e-5, 0.3]), limits_around([0.5, 1.0])
    ((1e-05, 1.0), (0.0001, 1.0))
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from minigrad.graphs.model import Vertex

Limits = tuple[float, float]
LEAST, MOST = 4, 12  # powers of ten between the ends of a scale
ROUNDING = 1024  # the error of a term, in units of its last digit

# From the smallest gradient to the largest. Each is darker than the one before by the same step, so
# the order is kept in print and for colour-blind eyes, and black text can be read on each.
SCALE = ("#efe6d3", "#f6d07a", "#f3b94f", "#ea983f", "#e17c3a")
DEAD = "#ffffff"
LOST = "#e79aa0"  # the colour of a NaN, which has no place on the scale


def colour(strength: float, limits: Limits) -> str:
    """Return a gradient's colour on the log scale between the limits, as #rrggbb."""
    if math.isnan(strength):
        return LOST
    if strength == 0:
        return DEAD
    channels = [[int(shade[i : i + 2], 16) for shade in SCALE] for i in (1, 3, 5)]
    low, high = np.log10(limits)
    places = np.linspace(low, high, len(SCALE))
    found = [round(np.interp(np.log10(strength), places, channel)) for channel in channels]
    return "#" + "".join(f"{channel:02x}" for channel in found)


def legend(limits: Limits) -> list[str]:
    """Return seven colours from one limit to the other."""
    return [colour(strength, limits) for strength in np.geomspace(*limits, 7)]


def limits_around(strengths: Iterable[float | None]) -> Limits:
    """Return whole powers of ten around the gradients found, four of them to twelve."""
    seen = [s for s in strengths if s is not None and 0 < s < math.inf]
    if not seen:
        return 1e-4, 1.0
    top = max(math.ceil(round(math.log10(max(seen)), 6)), -300)
    bottom = math.floor(math.log10(min(seen)))
    return 10.0 ** max(min(bottom, top - LEAST), top - MOST), 10.0**top


def lost(vertices: Sequence[Vertex]) -> frozenset[int]:
    """Return the numbers of the leaves whose gradients are 0 but for rounding.

    The gradient of a number that is added to n rows is a sum of n terms. Its rounding error is
    about √n times that of one term. (The factor 1024 stands for the terms' own errors: they are
    differences of larger numbers.) A sum that is no larger than this error counts as 0.
    """
    found = set()
    for v in vertices:
        for i in v.facts.added if v.grad_rms is not None else ():
            x = vertices[v.inputs[i]]
            if x.kind == "leaf" and x.grad_rms is not None and 0 < x.value.size < v.value.size:
                terms = v.value.size // x.value.size
                rounding = ROUNDING * float(np.finfo(x.dtype).eps) * terms**0.5 * v.grad_rms
                if 0 < x.grad_rms < rounding:
                    found.add(x.number)
    return frozenset(found)


def in_words(strength: float | None, limits: Limits | None, noise: bool = False) -> str:
    """Return a gradient as text, with an arrow if it is beyond the limits."""
    if strength is None:
        return ""
    if noise:
        return "grad ≈ 0"
    mark = ""
    if limits is not None and strength > 0:
        mark = " ↑" if strength > limits[1] else " ↓" if strength < limits[0] else ""
    return f"grad {strength:.3g}{mark}"
