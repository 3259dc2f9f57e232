"""Demos · Pretrained: how ‖∂L/∂q‖ changes in a head whose scale is taken away; two models' heads.

A head is called **decided** here if its entropy / log n is below one half with the trained scale,
on average over the queries, and **diffuse** if it is above.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from demos._json_lines import read
from demos._training import Marks

KEPT = Path(__file__).with_name("real_heads.jsonl")
LEAST = 1e-6  # of a ratio: in float32 a saturated softmax gives 0, and log 0 is infinite


def typical(seen: Any) -> Any:
    """Return the median and the mean of ‖∂L/∂q‖ over the queries of a text.   (2, heads)"""
    return np.array([np.median(seen.gradient, axis=-1), seen.gradient.mean(axis=-1)])


def log_ratios(pairs: Sequence[tuple[Any, Any]]) -> Any:
    """Return the log of both without the scale over with it.   (texts, 2, heads)

    pairs  what was seen in each text, with the trained scale and without it
    """
    return np.log(np.maximum([typical(b) / typical(a) for a, b in pairs], LEAST))


def middle(values: Any) -> tuple[Any, Any]:
    """Return the mean over the texts, and its standard error."""
    return values.mean(axis=0), values.std(axis=0, ddof=1) / len(values) ** 0.5


@dataclass(frozen=True)
class RealHead:
    """One head of a model: ‖∂L/∂q‖ without the scale over that with it.

    Ratios are logarithms: means over the texts, each with its standard error.
    """

    model: str
    head: str  # block.head
    entropy: float  # / log n, with the trained scale
    with_scale: list[float]  # the median over a text's queries of ‖∂L/∂q‖, and the mean
    without: list[float]
    median: list[float]  # log of the ratio of the medians, and its error
    mean: list[float]  # the same of the means
    alone_median: list[float]  # the same if this head alone loses its scale
    alone_mean: list[float]


def kept_heads() -> tuple[dict[str, Any], list[RealHead]]:
    """Return what the file says of itself, and its rows."""
    about, rows = read(KEPT)
    return about, [RealHead(**row) for row in rows]


class TwoModels:
    """The heads of both models, and counts of changes by more than two standard errors."""

    def __init__(self, rows: Sequence[RealHead]) -> None:
        self.rows = rows
        self.groups: dict[str, list[RealHead]] = {}
        for row in sorted(rows, key=lambda row: row.entropy >= 0.5):
            kind = "decided" if row.entropy < 0.5 else "diffuse"
            self.groups.setdefault(f"{row.model}, {kind}", []).append(row)

    def count(self, name: str, sign: int, of: Sequence[RealHead] | None = None) -> int:
        """Return in how many heads a ratio grows (sign 1) or falls (-1)."""
        changes = [getattr(row, name) for row in (self.rows if of is None else of)]
        return sum(sign * ratio > 2 * error for ratio, error in changes)

    def furthest(self, logs: Any) -> float:
        """Return how far the first model's ratios, measured again, are from its rows, in errors.

        logs  (texts, 2, heads), as `log_ratios` returns them
        """
        again, error = (np.moveaxis(array, -1, 0) for array in middle(logs))  # (heads, 2)
        known = np.array([[row.median, row.mean] for row in self.rows[: len(again)]])
        return float(np.max(abs(again - known[..., 0]) / np.hypot(error, known[..., 1])))

    def judge(self, marks: Marks) -> None:
        """Judge what the kept rows say of both models."""
        grows, falls = (self.count("median", sign) for sign in (1, -1))
        what = f"heads of {len(self.rows)} in which the mean of ‖∂L/∂q‖ grows, all without a scale"
        marks.at_least(what, self.count("mean", 1), 0.85 * len(self.rows), ".0f")
        what = "  and if one head alone loses it"
        marks.at_least(what, self.count("alone_mean", 1), 0.65 * len(self.rows), ".0f")
        what = "  and in which the median falls, or grows (the smaller number)"
        marks.at_least(what, min(grows, falls), 0.25 * len(self.rows), ".0f")
