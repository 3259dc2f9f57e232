"""Demos · Pretrained: ‖∂L/∂q‖ of every head, with the trained scale and without it.

A head is called **decided** here if its entropy / log n is below one half with the trained scale,
on average over the queries, and **diffuse** if it is above.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from attention.figures import save_figure
from demos._page import Page
from demos._training import Marks
from demos.pretrained._factor import AWAY
from demos.pretrained._figures import plot_ratios
from demos.pretrained._heads import Seen

HEADS = 4  # of each block
NAMES = [f"{block}.{head}" for block in range(1, 5) for head in range(1, HEADS + 1)]
FIRST = slice(0, HEADS)  # the heads of block 1
GROUPS = [("", 1), ("std of scores", 2), ("entropy / log n", 2)]
GROUPS += [("‖∂L/∂q‖: no scale / scale", 2), ("no scale", 1), ("no scale here alone", 1)]
HEADER = ["head", "scale", "none", "scale", "none", "median", "mean", "dead", "loss rises by"]
WIDTHS = 15, 10, 10, 10, 10, 16, 11, 11, 22  # on the screen
Pair = tuple[Seen, Seen]  # with the scale, and without it


class Gradients:
    """The gradients of all heads on the model's own texts, whose spread gives standard errors.

    costs   (texts, heads) the rise of the loss if the scale is taken from one head alone
    """

    def __init__(self, own: list[Pair], costs: Any) -> None:
        self.texts = len(own)
        self.score_std, self.entropy = (
            np.mean([[getattr(seen, name) for seen in pair] for pair in own], axis=0)  # (2, heads)
            for name in ("score_std", "entropy")
        )
        self.decided = self.entropy[0] < 0.5
        ratios = np.array([np.log(_ratios(pair)) for pair in own])  # (texts, 2, heads)
        self.median, self.mean = ratios[:, 0], ratios[:, 1]
        self.typical, self.average = (
            _middle(values[:, self.decided].mean(axis=1)) for values in (self.median, self.mean)
        )
        (median, error), (mean, mean_error) = _middle(self.median), _middle(self.mean)
        self.falls, self.grows = median < -2 * error, median > 2 * error
        self.mean_grows = mean > 2 * mean_error
        self.tenth = [float(np.mean([_top_tenth(p[i], self.decided) for p in own])) for i in (0, 1)]
        self.dead = np.mean([_dead(pair) for pair in own], axis=0)
        self.alone, self.costs = costs, _middle(costs)
        self.dearer = _middle(costs[:, FIRST].mean(axis=1) - costs[:, HEADS:].mean(axis=1))

    def rows(self) -> list[list[str]]:
        """Return a row for each head, the one with the smallest entropy first."""
        median, mean = np.exp(self.median.mean(axis=0)), np.exp(self.mean.mean(axis=0))
        costs, errors = self.costs
        return [
            [
                f"{NAMES[h]}{', decided' * bool(self.decided[h])}",
                f"{self.score_std[0, h]:.2f}",
                f"{self.score_std[1, h]:.1f}",
                f"{self.entropy[0, h]:.2f}",
                f"{self.entropy[1, h]:.2f}",
                f"× {median[h]:.2g}",
                f"× {mean[h]:.2g}",
                f"{self.dead[h]:.0%}",
                f"{costs[h]:.3f} ± {errors[h]:.3f}",
            ]
            for h in np.argsort(self.entropy[0], kind="stable")
        ]

    def tell(self, marks: Marks, looks_back: int) -> None:
        """Print the table, and judge the directions with their errors."""
        starts = np.cumsum([0, *(columns for _, columns in GROUPS)])
        print(
            "   "
            + "".join(
                f"{name:>{sum(WIDTHS[start : start + columns])}}"
                for start, (name, columns) in zip(starts, GROUPS, strict=False)
            )
        )
        for first, *others in (HEADER, *self.rows()):
            cells = zip(others, WIDTHS[1:], strict=True)
            print(f"   {first:{WIDTHS[0]}}" + "".join(f"{cell:>{width}}" for cell, width in cells))
        few, many = self.decided.sum(), (~self.decided).sum()
        print("\n   decided: entropy / log n (1: equal weights) below a half with the scale.")
        print("   dead: queries below a hundredth of the scaled median. Ratios: geometric means.")
        print(f"\n   By more than two standard errors, over {self.texts} texts,")
        print(f"   the median falls in {self.falls[self.decided].sum()} of {few} decided heads")
        print(f"   the median grows in {self.grows[~self.decided].sum()} of {many} diffuse heads")
        print(f"   the mean grows in {self.mean_grows.sum()} of {len(NAMES)} heads\n")
        (median, error), (mean, mean_error) = self.typical, self.average
        what = "decided heads: median without / with the scale, and two standard errors more"
        marks.at_most(what, np.exp(median + 2 * error), 0.5, ".2f")
        what = "decided heads: mean without / with the scale, and two standard errors less"
        marks.at_least(what, np.exp(mean - 2 * mean_error), 1.5, ".2f")
        marks.at_least("heads in which the mean grows", self.mean_grows.sum(), len(NAMES), "d")
        share = self.falls[self.decided].sum() / max(few, 1)
        marks.at_least("share of the decided heads in which the median falls", share, 0.75)
        what = "decided heads, no scale: share of ‖∂L/∂q‖² that a tenth of the queries has"
        marks.at_least(what, self.tenth[1], 0.6)
        marks.at_least(f"dead queries of head {NAMES[looks_back]}", self.dead[looks_back], 0.3)
        dearer, error = self.dearer
        what = "no scale in one head of block 1, or of another: difference in standard errors"
        marks.at_least(what, dearer / error, 4.0, ".1f")

    def together(self, said: str, heads: Sequence[int], rises: Any) -> str:
        """Say by how much the loss rises if several heads lose their scale at once, and one by one.

        rises   (texts,) the rise of the loss if it is taken from all of these heads
        """
        rise, error = _middle(rises)
        more, of_more = _middle(rises - self.alone[:, heads].sum(axis=1))
        beside = (
            f"; that is {abs(more):.3f} ± {of_more:.3f} {'more' if more > 0 else 'less'} than the "
            "sum of the single rises"
        )
        return (
            f"Without the scale in {said} the loss rises by {rise:.3f} ± {error:.3f}"
            f"{beside if len(heads) > 1 else ''}."
        )

    def show(self, page: Page, out: Path, looks_back: int, rises: str) -> None:
        """Add a question, the picture and the table; `rises` is about several heads at once."""
        (median, error), (mean, mean_error) = self.typical, self.average
        few, many = self.decided.sum(), (~self.decided).sum()
        page.say(
            "A head is called decided here if the entropy of its weights is below half of log n, "
            f"that of equal weights, with the scale and over {self.texts} of the model's own "
            f"texts. {few} of the {len(NAMES)} heads are. The others are called diffuse."
        )
        page.ask(
            "The scale is taken away in all heads, and the matrices stay as they were trained. "
            "The length ‖∂L/∂q‖ of the gradient is measured for each query of each head. Does its "
            "median over the queries fall? Does its mean? In which heads?",
            f"In this model the median falls in {self.falls[self.decided].sum()} of the {few} "
            f"decided heads and grows in {self.grows[~self.decided].sum()} of the {many} diffuse "
            f"ones; the mean grows in {self.mean_grows.sum()} of all {len(NAMES)} heads. (Each by "
            "more than two standard errors. By chance alone about one head of "
            f"{len(NAMES)} would change so much.) The geometric mean over the decided heads is "
            f"× {np.exp(median):.2f} for the median and × {np.exp(mean):.1f} for the mean, with "
            f"standard errors of {error:.0%} and {mean_error:.0%}.",
        )
        title = (
            f"The mean grows in {self.mean_grows.sum()} heads, the median falls in "
            f"{self.falls.sum()}"
        )
        save_figure(plot_ratios(NAMES, self.median, self.mean, title=title), out / "ratios")
        one = NAMES[looks_back]
        grown = np.exp(self.median[:, FIRST].mean(axis=0))
        low, high = grown.min(), grown.max()
        page.figure(
            out / "ratios.svg",
            alt="For each of 16 heads, the gradient without the scale over that with it. In block "
            f"1 the median grows {low:.0f} to {high:.0f} times. In head {one} the median is × "
            f"{np.exp(self.median[:, looks_back].mean()):.1g} and the mean × "
            f"{np.exp(self.mean[:, looks_back].mean()):.1f}.",
            caption=f"{self.texts} of the model's own texts of 128 tokens; bars are two standard "
            "errors over the texts",
        )
        page.table(
            HEADER,
            self.rows(),
            groups=GROUPS,
            caption=f"All heads on {self.texts} of the model's own texts, with the scale and "
            "without it (in no head). The scores' deviations are within a query's row; those of "
            "blocks 2 to 4 do not grow by √d_k exactly, since their inputs change too. Ratios are "
            "geometric means over the texts. A query is dead if it "
            "has less than a hundredth of the head's median with the scale; the first query, "
            "which has one key, is left out. The last column is the loss, with one standard "
            "error, if this head alone loses its scale",
        )
        costs, errors = self.costs
        page.say(
            "The four heads of block 1 are the most diffuse ones: with the scale their scores have "
            f"standard deviations of at most {self.score_std[0, FIRST].max():.2f}. There the "
            f"typical gradient is multiplied by {low:.0f} to {high:.0f}. ∂L/∂q is "
            "the scale times ∂L/∂(scores) K, so without the scale it has the factor "
            f"√d_k = {AWAY:.1f} more. The rest comes from the attention weights, which change in "
            "this head and in all others.",
            "The heads that lose their gradient are not those whose scale the model needs most. "
            "If one head alone loses its scale, the loss rises by "
            f"{costs[FIRST].min():.3f} to {costs[FIRST].max():.3f} for a head of block 1, and by "
            f"at most {costs[HEADS:].max():.3f} for each of the other {len(NAMES) - HEADS}. "
            f"{rises}",
            "A small gradient is not always a fault. With the scale that it was trained with, "
            f"head {one} has the entropy {self.entropy[0, looks_back]:.2f}: it gives most of its "
            "weight to few keys, because it has learned to look at the token before. "
            f"If it alone loses its scale, the loss rises by {costs[looks_back]:.3f} ± "
            f"{errors[looks_back]:.3f}.",
        )


def _ratios(pair: Pair) -> Any:
    """Return the median and the mean over the queries, without over with the scale.   (2, heads)"""
    a, b = ([np.median(x.gradient, axis=-1), x.gradient.mean(axis=-1)] for x in pair)
    return np.divide(b, a)


def _dead(pair: Pair) -> Any:
    """Return the share of queries below a hundredth of the median with the scale.   (heads,)

    The first query has one key, so its gradient is 0 with any scale.
    """
    with_scale, without = pair
    typical = np.median(with_scale.gradient, axis=-1)[:, None]
    return (without.gradient[:, 1:] < 0.01 * typical).mean(axis=-1)


def _middle(values: Any) -> tuple[Any, Any]:
    """Return the mean over the texts, and its standard error."""
    return values.mean(axis=0), values.std(axis=0, ddof=1) / len(values) ** 0.5


def _top_tenth(seen: Seen, heads: Any) -> float:
    """Return the share of the squared gradient in a tenth of the queries, mean over these heads."""
    squares = np.sort(seen.gradient[heads] ** 2, axis=-1)
    few = -(-squares.shape[-1] // 10)
    return float((squares[:, -few:].sum(axis=-1) / squares.sum(axis=-1)).mean())
