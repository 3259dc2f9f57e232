"""Demos · Pretrained: what became of the trainings of W_Q and W_K.

A `--full` run takes eight rates of SGD, six of Adam, and five seeds. At the best rate of each start
77 % (SGD) and 75 % (Adam) of what the wrong scale costs was won back from too flat, and 6 % from
too sharp. No best rate is the smallest or the largest one, so others would hardly change this.
(These are marks of a `--full` run.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from attention.figures import save_figure
from demos._page import Page
from demos._training import Marks
from demos.pretrained._figures import OPTIMIZERS, plot_rates, plot_recovery
from demos.pretrained._recovery import LEARNED, LOOKS, OTHERS, Recovery

STARTS = {1.0: "too flat: 1/d_k", 0.0: "too sharp: no scale"}
HEADER = ["start", "‖gradient‖", "before", "optimizer", "best rate", "after", "won back"]
EVERY = ["start", "optimizer", "rate", "before", *(f"{n} steps" for n in LOOKS[1:])]


class Recovered:
    """All trainings, by optimizer, start and rate; and the best rate of each start."""

    def __init__(
        self, results: Sequence[Recovery], rates: Mapping[str, Sequence[float]], steps: int
    ) -> None:
        self.rates, self.steps = rates, steps
        self.of: dict[tuple[str, float, float], list[Recovery]] = {}
        for each in results:
            self.of.setdefault((each.optimizer, each.a, each.lr), []).append(each)
        self.before, self.norm = (
            {a: float(np.mean([value(r) for r in results if r.a == a])) for a in STARTS}
            for value in (lambda r: r.losses[0], lambda r: r.gradient)
        )
        self.trained = float(np.mean([r.trained for r in results]))
        self.best = {
            (optimizer, a): min(given, key=lambda lr: np.mean(self.after(optimizer, a, lr)))
            for optimizer, given in rates.items()
            for a in STARTS
        }

    def after(self, optimizer: str, a: float, lr: float) -> Any:
        """The loss of each repeat after the last step; infinite if the training broke."""
        found = self.of[optimizer, a, lr]
        return np.array([r.losses[-1] if r.broke_at is None else np.inf for r in found])

    def won_back(self, optimizer: str, a: float) -> float:
        """At the best rate: the share of what the wrong scale costs that the training won back."""
        found = self.of[optimizer, a, self.best[optimizer, a]]
        won, cost = np.transpose(
            [(r.losses[0] - r.losses[-1], r.losses[0] - r.trained) for r in found]
        )
        with np.errstate(divide="ignore", invalid="ignore"):  # (a scale that costs nothing: NaN)
            return float(np.mean(won / cost))

    def rows(self) -> list[list[str]]:
        """A row for each start and optimizer, at the best rate."""
        rows = []
        for a, said in STARTS.items():
            for optimizer, name in OPTIMIZERS.items():
                lr = self.best[optimizer, a]
                losses = self.after(optimizer, a, lr)
                spread = f" ± {losses.std(ddof=1):.3f}" if len(losses) > 1 else ""
                start = [said, f"{self.norm[a]:.2f}", f"{self.before[a]:.3f}"]
                end = [f"{losses.mean():.3f}{spread}", f"{self.won_back(optimizer, a):.0%}"]
                rows.append([*start, name, f"{lr:g}", *end])
        return rows

    def every_row(self) -> list[list[str]]:
        """A row for each start, optimizer and rate: the mean loss on the way."""
        rows = []
        for optimizer, a, lr in [
            (o, a, lr) for o in self.rates for a in STARTS for lr in self.rates[o]
        ]:
            found = self.of[optimizer, a, lr]
            whole = [r.losses for r in found if r.broke_at is None]
            cells = [f"{loss:.3f}" for loss in np.mean(whole, axis=0)] if whole else ["broke"]
            cells += [""] * (len(LOOKS) - len(cells))
            rows.append([STARTS[a], OPTIMIZERS[optimizer], f"{lr:g}", *cells])
        return rows

    def tell(self, marks: Marks, *, every: bool) -> None:
        """Print the table, or both tables, and judge the shares."""
        for cells in (HEADER, *self.rows()):
            print(f"   {cells[0]:20}" + "".join(f"{cell:>15}" for cell in cells[1:]))
        print(f"   the trained scale, on the same texts: {self.trained:.3f}\n")
        for cells in (EVERY, *self.every_row()) if every else ():
            print(f"   {cells[0]:20}" + "".join(f"{cell:>10}" for cell in cells[1:]))
        print("\n" * every, end="")
        for optimizer, name in OPTIMIZERS.items():
            what = f"{name}, at its best rate: won back from too"
            flat, sharp = self.won_back(optimizer, 1.0), self.won_back(optimizer, 0.0)
            marks.at_least(f"{what} flat", flat, 0.7 if every else 0.5)
            marks.at_most(f"{what} sharp", sharp, 0.1 if every else 0.3)  # (one seed: up to 0.2)
        if every:
            inner = [lr in self.rates[o][1:-1] for (o, _), lr in self.best.items()]
            marks.at_least("best rates with a smaller and a larger one", sum(inner), 4, "d")
        what = "‖gradient‖ of the start that is too sharp, over that of the other"
        marks.at_least(what, self.norm[0.0] / self.norm[1.0], 4.0, ".1f")

    def show(self, page: Page, out: Path, *, tenth: Sequence[float], full: bool) -> None:
        """A question, pictures and tables; `tenth` is what a tenth of the queries has."""
        shares = "; ".join(
            f"{name} wins back {self.won_back(optimizer, 1.0):.0%} from too flat and "
            f"{self.won_back(optimizer, 0.0):.0%} from too sharp"
            for optimizer, name in OPTIMIZERS.items()
        )
        page.ask(
            "Two models start with factors that are equally far from the trained scale: one with "
            "1/d_k, √d_k times too small, and one with no scale, √d_k times too large. W_Q and W_K "
            "alone are trained. "
            f"The second has a gradient that is {self.norm[0.0] / self.norm[1.0]:.0f} times "
            "longer. Which of them learns more?",
            "The first. Won back is the share (before - after) / (before - loss with the trained "
            f"scale), at the best rate of each: {shares}.",
        )
        seeds = len(next(iter(self.of.values())))
        on_the_way = {
            start: [r.losses for r in self.of[(*start, lr)] if r.broke_at is None]
            for start, lr in self.best.items()
        }
        save_figure(plot_recovery(on_the_way, LOOKS, self.trained), out / "recovery")
        page.figure(
            out / "recovery.svg",
            alt="The loss over the steps, by SGD and by Adam. From 1/d_k it falls towards that of "
            "the trained scale; without a scale it stays near its start.",
            caption=f"Loss on {OTHERS} other texts, at the best rate of each start. "
            + "Bands go from the smallest to the largest of the seeds. " * (seeds > 1)
            + "The blue line is the model as it was, with its scale",
        )
        page.table(
            HEADER,
            self.rows(),
            caption=f"W_Q and W_K trained on {LEARNED} texts of 64 tokens, {self.steps} steps of 4 "
            f"texts; seeds: {seeds}; rates: {len(self.rates['sgd'])} of SGD, "
            f"{len(self.rates['adam'])} of Adam; loss of the trained model: {self.trained:.3f}",
        )
        if full:
            after = {key: self.after(*key) for key in self.of}
            save_figure(plot_rates(after, self.before, self.trained), out / "rates")
            page.figure(
                out / "rates.svg",
                alt="The loss after the last step over the learning rate. At no rate does the "
                "start without a scale come far below its first loss; at large rates it rises.",
                caption=f"After {self.steps} steps, at every rate; dotted: before the training",
            )
        with page.folded("Every rate, and the loss on the way"):
            caption = "Loss on the other texts, the mean over the seeds"
            page.table(EVERY, self.every_row(), caption=caption)
        page.say(
            "Why does a longer gradient teach less? Section 6 has a possible reason, which is not "
            "tested here: without the scale the typical query of a decided head has next to no "
            f"gradient, and on the model's own texts a tenth of the queries has "
            f"{tenth[1]:.0%} of ‖∂L/∂q‖² in the decided heads (with the scale, {tenth[0]:.0%})."
            + " At small rates the loss hardly moves, and larger ones make it worse."
            * full,
            "There is no hill in between. Dividing W_Q by a number is the same as a smaller "
            "factor on the scale, so one way back is a straight line, and section 5 has the loss "
            "along it: on the model's own texts it falls all the way from √d_k to 1.",
            "The best rate is the one with the smallest loss on the other texts after the last step"
            f", out of {len(self.rates['sgd'])} of SGD and {len(self.rates['adam'])} of Adam. "
            "`--full` takes so many rates that no best one is the smallest or the largest, and "
            "five seeds. These texts have 64 tokens, so their loss is not that of section 5. All "
            f"this is about {self.steps} steps on {LEARNED} texts: nothing is said of a longer "
            "training.",
        )
