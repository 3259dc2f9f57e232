"""5.5 · Scale: the colour of a gradient.

Gradients differ by powers of ten, so the scale of colours is a logarithmic one. Where should its
ends be? At the smallest and the largest gradient of the picture; but some gradients are 0 on paper,
and rounding makes 1e-17 of them. An end there would give one colour to all others. So what is
below 1e-12 of the largest is drawn as ≈ 0, and does not count.

    >>> from minigrad.graphs.scale import colour, limits_around
    >>> limits_around([1e-17, 2e-5, 0.3])
    (1e-05, 1.0)
    >>> colour(1e-9, (1e-5, 1.0)) == colour(1e-5, (1e-5, 1.0))            # beyond an end: the end
    True
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

Limits = tuple[float, float]
NOISE = 1e-12  # of the largest gradient: about what rounding leaves where the sum is 0 on paper

# From the smallest gradient to the largest. Each is darker than the one before by the same step, so
# the order is kept in print and for colour-blind eyes, and black text can be read on each.
SCALE = ("#efe6d3", "#f6d07a", "#f3b94f", "#ea983f", "#e17c3a")
DEAD = "#ffffff"


def colour(strength: float, limits: Limits) -> str:
    """A gradient's place on the log scale between the limits, as #rrggbb.

    >>> from minigrad.graphs.scale import colour
    >>> colour(1e-3, (1e-3, 1e3)), colour(1.0, (1e-3, 1e3)), colour(1e9, (1e-3, 1e3))
    ('#efe6d3', '#f3b94f', '#e17c3a')
    """
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


def limits_around(strengths: Iterable[float | None]) -> Limits:
    """Whole powers of ten around the gradients found, at most twelve of them."""
    seen = [s for s in strengths if s is not None and s > 0 and math.isfinite(s)]
    if not seen:
        return 0.1, 1.0
    largest = max(seen)
    top = math.ceil(math.log10(largest))
    bottom = math.floor(math.log10(min(s for s in seen if not is_noise(s, largest))))
    bottom = max(min(bottom, top - 1), top - 12)
    return 10.0**bottom, 10.0**top


def is_noise(strength: float, largest: float) -> bool:
    """Whether a gradient is what rounding has left of 0."""
    return 0 < strength < NOISE * largest


def is_lost(sum_rms: float, rms: float, n: int, dtype: str) -> bool:
    """Whether the sum of n gradients is no more than the rounding of its terms.

    A bias is added to many rows, so its gradient is such a sum. Where it is 0 on paper, rounding
    leaves about 1e-16 of the terms, and 1e-7 in float32.
    """
    return 0 < sum_rms < 4 * float(np.finfo(dtype).eps) * n * rms


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
