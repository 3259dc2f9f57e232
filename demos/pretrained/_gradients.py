"""Demos · Pretrained: ‖∂L/∂q‖ of every head, with the trained scale and without it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from attention.figures import save_figure
from demos._page import Page
from demos._training import Marks
from demos.pretrained._figures import plot_ratios
from demos.pretrained._heads import Seen

HEADS = 4  # of each block
NAMES = [f"{block}.{head}" for block in range(1, 5) for head in range(1, HEADS + 1)]
DECIDED = slice(HEADS, None)  # blocks 2 to 4: the heads of the first are the least decided
HEADER = ["head", "std of scores", "no scale", "entropy", "no scale", "median", "mean", "dead"]
Pair = tuple[Seen, Seen]  # with the scale, and without it


class Gradients:
    """All heads on “Alice”; and on the model's own texts, whose spread gives standard errors."""

    def __init__(self, alice: Pair, own: list[Pair]) -> None:
        self.alice, self.texts = alice, len(own)
        ratios = np.array([np.log(_ratios(pair)) for pair in own])  # (texts, 2, heads)
        self.median, self.mean = ratios[:, 0], ratios[:, 1]
        self.typical, self.average = (
            _middle(values[:, DECIDED].mean(axis=1)) for values in (self.median, self.mean)
        )
        (median, error), (mean, mean_error) = _middle(self.median), _middle(self.mean)
        self.falls = int((median < -2 * error).sum())
        self.grows = int((median > 2 * error).sum())
        self.mean_grows = int((mean > 2 * mean_error).sum())
        self.tenth = [float(np.mean([_top_tenth(pair[i]) for pair in own])) for i in (0, 1)]
        with_scale, without = alice
        typical = np.median(with_scale.gradient, axis=-1)[:, None]
        # The first query has one key, so its gradient is 0 with any scale.
        self.dead = (without.gradient[:, 1:] < 0.01 * typical).mean(axis=-1)

    def rows(self) -> list[list[str]]:
        """A row for each head, on “Alice”."""
        (a, b), (median, mean) = self.alice, _ratios(self.alice)
        return [
            [
                name,
                f"{a.score_std[h]:.2f}",
                f"{b.score_std[h]:.1f}",
                f"{a.entropy[h]:.2f}",
                f"{b.entropy[h]:.2f}",
                f"× {median[h]:.2g}",
                f"× {mean[h]:.2g}",
                f"{self.dead[h]:.0%}",
            ]
            for h, name in enumerate(NAMES)
        ]

    def tell(self, marks: Marks, looks_back: int) -> None:
        """Print the table, and judge the directions with their errors."""
        for cells in (HEADER, *self.rows()):
            print("   " + "".join(f"{cell:>14}" for cell in cells))
        a, b = self.alice
        print(
            f"\n   mean of the heads: std {a.score_std.mean():.2f} and {b.score_std.mean():.1f}, ",
            end="",
        )
        print(f"entropy {a.entropy.mean():.2f} and {b.entropy.mean():.2f} of log n\n")
        print(
            f"   {self.texts} of its own texts, heads beyond two standard errors, of {len(NAMES)}:"
        )
        print(f"   the median falls in {self.falls} and grows in {self.grows}; ", end="")
        print(f"the mean grows in {self.mean_grows} (about one would pass them by chance)\n")
        (median, error), (mean, mean_error) = self.typical, self.average
        what = "blocks 2 to 4: median without / with the scale, and two standard errors more"
        marks.at_most(what, np.exp(median + 2 * error), 0.5, ".2f")
        what = "blocks 2 to 4: mean without / with the scale, and two standard errors less"
        marks.at_least(what, np.exp(mean - 2 * mean_error), 1.5, ".2f")
        marks.at_least("heads in which the mean grows", self.mean_grows, len(NAMES), "d")
        marks.at_least("heads in which the median falls", self.falls, 5, "d")
        what = "without the scale: share of ‖∂L/∂q‖² that a tenth of the queries has"
        marks.at_least(what, self.tenth[1], 0.6)
        what = f"dead queries of head {NAMES[looks_back]} on “Alice”"
        marks.at_least(what, self.dead[looks_back], 0.3)

    def show(self, page: Page, out: Path, looks_back: int, alone: str) -> None:
        """A question, the picture and the table; `alone` is said of one head's scale."""
        (median, error), (mean, mean_error) = self.typical, self.average
        page.ask(
            "The scale is taken away, and the weights stay. ‖∂L/∂q‖ is measured for each query of "
            "each head. Does its median over the queries fall? Does its mean?",
            f"On {self.texts} of the model's own texts the median falls in {self.falls} of "
            f"{len(NAMES)} heads by more than two standard errors and grows in {self.grows}; the "
            f"mean grows in {self.mean_grows}. In blocks 2 to 4 the median is × "
            f"{np.exp(median):.2f} and the mean × {np.exp(mean):.1f} (standard errors of "
            f"{error:.0%} and {mean_error:.0%}). By chance alone about one head of {len(NAMES)} "
            "would be beyond two standard errors.",
        )
        title = f"The mean grows in {self.mean_grows} heads, the median falls in {self.falls}"
        save_figure(plot_ratios(NAMES, self.median, self.mean, title=title), out / "ratios")
        one = NAMES[looks_back]
        page.figure(
            out / "ratios.svg",
            alt="For each of 16 heads, the gradient without the scale over that with it. In block "
            f"1 median and mean grow alike. In head {one} the median is × "
            f"{np.exp(self.median[:, looks_back].mean()):.1g} and the mean × "
            f"{np.exp(self.mean[:, looks_back].mean()):.1f}.",
            caption=f"{self.texts} of the model's own texts of 128 tokens; bars are two standard "
            "errors over the texts",
        )
        page.table(
            HEADER,
            self.rows(),
            groups=[("", 1), ("scores", 2), ("entropy / log n", 2), ("‖∂L/∂q‖, no scale", 3)],
            caption="“Alice”: all heads, with the scale and without it. A query is dead if it has "
            "less than a hundredth of the head's median with the scale; the first query, which has "
            "one key, is left out. The scores' deviations are within a query's row",
        )
        a, b = self.alice
        page.say(
            "The four heads of block 1 are diffuse: with the scale their scores have standard "
            f"deviations of at most {a.score_std[:HEADS].max():.2f}. There the typical gradient "
            "grows: it is multiplied by √d_k, and softmax is not yet saturated. Over all heads the "
            f"standard deviation of the scores goes from {a.score_std.mean():.1f} to "
            f"{b.score_std.mean():.1f}, and the entropy from {a.entropy.mean():.2f} to "
            f"{b.entropy.mean():.2f} of log n.",
            "A saturated head may be a finished one. With the scale that it was trained with, "
            f"head {one} has scores of standard deviation {a.score_std[looks_back]:.1f} and the "
            f"entropy {a.entropy[looks_back]:.2f}, and it is the head that looks most at the "
            f"token before. {alone}",
        )


def _ratios(pair: Pair) -> Any:
    """Without the scale over with it: the median over the queries, and the mean.   (2, heads)"""
    a, b = ([np.median(x.gradient, axis=-1), x.gradient.mean(axis=-1)] for x in pair)
    return np.divide(b, a)


def _middle(values: Any) -> tuple[Any, Any]:
    """The mean over the texts, and its standard error."""
    return values.mean(axis=0), values.std(axis=0, ddof=1) / len(values) ** 0.5


def _top_tenth(seen: Seen) -> float:
    """The share of the squared gradient that a tenth of the queries has, in blocks 2 to 4."""
    squares = np.sort(seen.gradient[DECIDED] ** 2, axis=-1)
    few = -(-squares.shape[-1] // 10)
    return float((squares[:, -few:].sum(axis=-1) / squares.sum(axis=-1)).mean())
