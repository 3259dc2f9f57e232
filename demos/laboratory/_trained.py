"""Figure 6 of the laboratory: a trained model whose scale is removed, and heads of real models.

This run trains a few models at d_k = 64. The figure and the first two tables are of a run with
`--full`, kept in results_full_trained.json, whose first line says how it was made; the third is of
this run.
"""

import math
from collections import Counter
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from attention.laboratory.figures import plot_trained
from attention.laboratory.trained import (
    SLOWED,
    Heads,
    SecondTask,
    TrainedHeads,
    steps_over_rates,
    trained_heads,
)
from attention.scaling import deviation
from demos._json_lines import read
from demos.pretrained._kept_heads import TwoModels, kept_heads

KEPT = Path(__file__).with_name("results_full_trained.json")
HEADER = ["trained with", "d_k", "then", "right", "loss", "dead for L", "dead for g", "2nd task"]
RATES = ["d_k", "scale", "W_Q, W_K"]
# The marks of what is claimed.
LOST = 0.05
SLOWER = 1.2
NAMES = {0.5: "1/√d_k", 0.0: "no scale"}


def sweeps(size):
    """Return the sweeps of a run: a name, and the arguments of its sweep."""
    each: dict[str, dict[str, Any]] = {
        "quick": {"trained": ([8], False, 1, {"limit": [3], "second_limit": [3]})},
        "default": {"trained": ([64], False, 3, {})},
        "full": {"trained": ([64], True, 10, {}), "trained wide": ([512], False, 8, {})},
    }
    return {
        name: (
            trained_heads,
            {"d_k": d_ks, "a": [0.0, 0.5], "every_rate": [every], **limits},
            repeats,
            ["a", "every_rate"],  # (a default run's trainings are the first of a full run's)
        )
        for name, (d_ks, every, repeats, limits) in each[size].items()
    }


class Trained:
    """The measurements of the trainings with one scale at one d_k, at their end."""

    def __init__(self, rows, a, d_k):
        self.rows = [row for row in rows if (row.d_k, row.a) == (d_k, a)]
        self.a = a
        self.d_k = d_k
        self.lr = self.rows[0].lr
        self.changes = [end.change for end in self.rows[0].end]

    def ends(self, name, change="as trained"):
        """Return one measurement of the end of each training, as trained or after a change."""
        ends = [end for row in self.rows for end in row.end if end.change == change]
        return np.array([getattr(end, name) for end in ends])

    def second(self, change="as trained", slowed=1.0):
        """Return the median of the second task's steps, at the rate of the training."""
        return steps_over_rates(self.rows, change, slowed)[self.lr]

    def said(self, change="as trained", slowed=1.0, lr=None):
        """Return the steps to the second task as a table's cell, of trainings that learned it."""
        wanted = (change, slowed, self.lr if lr is None else lr)
        tasks = [task for row in self.rows for task in row.second]
        every = [t.steps for t in tasks if (t.change, t.slowed, t.lr) == wanted]
        steps = [number for number in every if number is not None]
        if not steps:
            return "never"
        spread = f" ± {deviation(steps):.0f}" if len(steps) > 1 else ""
        few = f" ({len(steps)} of {len(every)})" if len(steps) < len(every) else ""
        return f"{np.mean(steps):.0f}{spread}{few}"


class AllTrained:
    """The section's data: this run's trainings, those that are kept, and the real heads."""

    def __init__(self, rows):
        self.rows = rows
        self.about, self.kept = kept_rows()
        self.by_scale = grouped(rows)
        self.of_kept = grouped(self.kept)
        self.heads = TwoModels(kept_heads()[1])

    @cached_property
    def figure(self):
        """Draw figure 6."""
        return plot_trained(self.kept, self.heads.rows)

    def judge(self, marks):
        """Judge this run's trainings, the kept ones, and the real heads."""
        judge(marks, self.by_scale)
        judge_kept(marks, self.of_kept)
        real = len(self.heads.rows)
        what = f"real heads of {real}, one alone without its scale:"
        marks.at_least(f"{what} mean grows", self.heads.count("alone_mean", 1), real / 2, ".0f")
        fallen = self.heads.count("alone_median", -1)
        marks.at_least(f"{what} median falls", fallen, real / 2, ".0f")
        marks.at_least(f"{what} both fall", self.both_fall, 1, "d")

    @property
    def both_fall(self):
        """Return in how many real heads mean and median fall, by two standard errors."""
        both = [(row.alone_mean, row.alone_median) for row in self.heads.rows]
        return sum(max(ratio + 2 * error for ratio, error in pair) < 0 for pair in both)

    @property
    def claims(self):
        """Return the rows of the report's table: claim, effect, repeats, condition of failure."""
        scaled, raw = self.of_kept[0.5, 64], self.of_kept[0.0, 64]
        trainings = f"{len(scaled.rows)} trainings (--full)"
        real = len(self.heads.rows)
        grows = self.heads.count("alone_mean", 1)
        return [
            [
                "A model that has learned a look-up keeps its answers without the scale, and "
                "learns a second task more slowly, at d_k = 64 at each of four rates (one for all "
                "weights)",
                f"{scaled.ends('accuracy', 'no scale').mean():.1%} right; at d_k = 64 "
                f"{scaled.said('no scale')} steps against {scaled.said()}",
                trainings,
                f"more than {LOST:.0%} of the answers lost, or a rate of four at which the second "
                f"task takes less than {SLOWER} times the steps",
            ],
            [
                "Where a random g does not reach many queries, heads are saturated and not "
                "finished: from there the second task takes longer (medians of a state, one rate)",
                f"{scaled.ends('passed_dead').mean():.0%} with 1/√d_k and "
                f"{raw.ends('passed_dead').mean():.0%} without, where "
                f"{scaled.ends('dead').mean():.0%} and {raw.ends('dead').mean():.0%} are dead for "
                f"the loss. The medians are {slow_over_fast(self.of_kept, 64):.1f} times apart or "
                f"more; single trainings overlap: {overlap(self.of_kept, 64)} that are dead for g "
                "are not slower than the slowest of the others",
                trainings,
                f"two states of one width whose medians are less than {SLOWER} times apart",
            ],
            [
                "In most heads of two real models the mean grows if one head loses its scale, and "
                "the median falls; in some both fall",
                f"the mean grows in {grows} of {real} and falls in "
                f"{self.heads.count('alone_mean', -1)}; the median falls in "
                f"{self.heads.count('alone_median', -1)} and grows in "
                f"{self.heads.count('alone_median', 1)}",
                "two models, kept, by two standard errors",
                "a mean that grows, or a median that falls, in fewer than half; none in which both "
                "fall",
            ],
        ]

    def source(self):
        """Say which run the kept rows are from."""
        trainings = Counter(row.d_k for row in self.kept if row.a)
        counts = ", ".join(f"{count} at d_k = {d_k}" for d_k, count in trainings.items())
        return (
            f"from a run with --full of {self.about['date']} (seed {self.about['seed']}, NumPy "
            f"{self.about['numpy']}; trainings: {counts})"
        )

    def show(self, page):
        """Show the figure and the tables, after a question."""
        d_k = min(d_k for _, d_k in self.by_scale)
        scaled = self.of_kept[0.5, 64]
        page.ask(
            "A model of four heads has learned to look up a value by its key, with 1/√d_k, at "
            "d_k = 64. Now the scale is removed. How many of its answers become wrong? And how "
            "much longer does it take to learn another task? Would smaller steps of W_Q and W_K "
            "help, since without the scale a step changes the scores more?",
            f"It answers {scaled.ends('accuracy', 'no scale').mean():.1%} of the questions, and "
            f"before {scaled.ends('accuracy').mean():.1%}: a positive factor does not change "
            "which score is the largest. The second task needs "
            f"{scaled.said('no scale')} steps, and with the scale {scaled.said()}. With W_Q and "
            f"W_K at an eighth of the rate it needs {scaled.said('no scale', SLOWED)}. At the rate "
            "1 it does help: there the second "
            f"task is {scaled.said('no scale', lr=1.0)} learned without the scale, and in "
            f"{scaled.said('no scale', SLOWED, 1.0)} steps with W_Q and W_K slowed. (With the "
            f"scale it takes {scaled.said(lr=1.0)}.) So at a large rate the step is too long, and "
            "at smaller ones it is not: there softmax is saturated.",
        )
        page.figure(
            self.figure,
            "trained",
            alt="Left: with the scale queries are dead for the loss and alive for a random g; "
            "without it they are dead for both. Middle: the second task takes more steps without "
            "the scale at every rate, and still more with W_Q and W_K slowed. Right: in most real "
            "heads the mean gradient grows without the scale, and the median falls.",
            caption=f"Figure 6. Left and middle: {self.source()}. Left: each point is a training "
            "and what was done to its scale; filled, trained with 1/√d_k; open, without. Middle: "
            f"medians at d_k = 64. Right: {len(self.heads.rows)} heads of two real models (demo "
            "`pretrained`), of which one at a time loses its scale; counted are changes by two "
            "standard errors, and ratios below 10⁻⁶ are taken as 10⁻⁶",
        ).place = "below"
        with page.folded("The trainings, and the second task at each rate"):
            page.table(
                HEADER,
                table_rows(self.of_kept),
                caption=f"After 300 steps of SGD at the rate {scaled.lr:g}, {self.source()}. A "
                "query is dead if ‖∂L/∂q‖ is below .001, for a question's loss L, or for "
                "L = ⟨g, output⟩ with a random g. 2nd task: steps to 98 %, mean ± one standard "
                "deviation of the trainings that learned it",
            )
            page.table(
                *rate_rows(self.of_kept),
                caption="The second task over the learning rate, after a training with 1/√d_k. "
                f"1/8: W_Q and W_K move at an eighth of the rate. {self.source().capitalize()}",
            )
            page.table(
                HEADER,
                table_rows(self.by_scale),
                caption=f"This run, d_k = {d_k}: {len(self.rows) // 2} trainings with each scale",
            )


def grouped(rows):
    """Return the trainings by scale and d_k."""
    d_ks = sorted({row.d_k for row in rows})
    return {(a, d_k): Trained(rows, a, d_k) for d_k in d_ks for a in (0.5, 0.0)}


def table_rows(by_scale):
    """Return a row for each scale and width, and each change of the scale after the training."""
    percent = lambda x: f"{x.mean():.0%}" + (f" ± {deviation(x):.0%}" if len(x) > 1 else "")
    return [
        [
            NAMES[a],
            d_k,
            change,
            f"{trained.ends('accuracy', change).mean():.1%}",
            f"{trained.ends('loss', change).mean():.3f}",
            percent(trained.ends("dead", change)),
            percent(trained.ends("passed_dead", change)),
            trained.said(change),
        ]
        for (a, d_k), trained in by_scale.items()
        for change in trained.changes
    ]


def rate_rows(by_scale):
    """Return a table's head, and its rows: one for each width, scale and rate of W_Q and W_K."""
    rows = [row for trained in by_scale.values() for row in trained.rows]
    rates = sorted({task.lr for row in rows for task in row.second})
    rows = []
    for (a, d_k), trained in by_scale.items():
        tasks = dict.fromkeys((t.change, t.slowed) for r in trained.rows for t in r.second)
        for change, slowed in tasks:
            if not a or change == "doubled":
                continue
            name = "1/√d_k" if change == "as trained" else change
            known = steps_over_rates(trained.rows, change, slowed)
            cells = [trained.said(change, slowed, lr) if lr in known else "" for lr in rates]
            rows.append([d_k, name, "" if slowed == 1 else f"1/{slowed:.0f}", *cells])
    return [*RATES, *(f"{lr:g}" for lr in rates)], rows


def judge(marks, by_scale):
    """Judge this run's trainings, at the narrowest width."""
    d_k = min(d_k for _, d_k in by_scale)
    scaled, raw = by_scale[0.5, d_k], by_scale[0.0, d_k]
    kept, removed = (scaled.ends("accuracy", c).mean() for c in ("as trained", "no scale"))
    marks.at_most("trained with 1/√d_k: right answers lost without it", kept - removed, LOST)
    slower = scaled.second("no scale") / scaled.second()
    marks.at_least("  and the steps of the second task, times (medians)", slower, 1.5, ".1f")
    slowed = scaled.second("no scale", SLOWED) / scaled.second("no scale")
    what = f"  and with W_Q and W_K at 1/{SLOWED:.0f} of this rate, times those steps"
    marks.at_least(what, slowed, 1.1, ".1f")
    dead = [trained.ends("passed_dead").mean() for trained in (scaled, raw)]
    marks.at_most("trained with 1/√d_k: queries that no g reaches", dead[0], 0.05)
    marks.at_least("trained with no scale: queries that no g reaches", dead[1], 0.3)
    what = "second task, medians: the fastest state that is dead for g over the slowest that is not"
    marks.at_least(what, slow_over_fast(by_scale, d_k), SLOWER, ".1f")


def states(by_scale, d_k):
    """Return those that are dead for g at one width, and the others: lists of (training, change).

    A state is a scale, and its change after the training.
    """
    every = [
        (t, change) for (_, width), t in by_scale.items() if width == d_k for change in t.changes
    ]
    shares = [trained.ends("passed_dead", change).mean() for trained, change in every]
    dead = [state for state, share in zip(every, shares, strict=True) if share > 0.4]
    alive = [state for state, share in zip(every, shares, strict=True) if share < 0.25]
    return dead, alive


def slow_over_fast(by_scale, d_k):
    """Return the second task's steps, medians: the fastest dead state over the slowest other."""
    dead, alive = states(by_scale, d_k)
    slow = min((trained.second(change) for trained, change in dead), default=math.nan)
    return slow / max((trained.second(change) for trained, change in alive), default=math.nan)


def overlap(by_scale, d_k):
    """Return how many trainings of dead states are not slower than all others, as text."""
    dead, alive = (
        [
            math.inf if task.steps is None else task.steps
            for trained, change in group
            for row in trained.rows
            for task in row.second
            if (task.change, task.slowed, task.lr) == (change, 1, trained.lr)
        ]
        for group in states(by_scale, d_k)
    )
    return f"{sum(steps <= max(alive) for steps in dead)} of {len(dead)}"


def judge_kept(marks, by_scale):
    """Judge the kept trainings: every rate, W_Q and W_K slowed, and the wide heads."""
    for (a, d_k), trained in by_scale.items():
        if not a:
            continue
        scaled, removed, slowed = (
            steps_over_rates(trained.rows, *of)
            for of in (("as trained",), ("no scale",), ("no scale", SLOWED))
        )
        slower = min(removed[lr] / steps for lr, steps in scaled.items())
        what = f"--full, d_k = {d_k}: no scale, times the steps, least over rates: {len(scaled)}"
        marks.at_least(what, slower, SLOWER, ".1f")
        if len(scaled) > 1:
            best = min([*removed.values(), *slowed.values()]) / min(scaled.values())
            what = f"--full, d_k = {d_k}: the same at each one's best rate, slowed or not"
            marks.at_least(what, best, 2.0, ".1f")
        if far := steps_over_rates(trained.rows, "no scale", float(d_k)):
            what = f"--full, d_k = {d_k}: the same with W_Q and W_K at 1/{d_k} of the rate"
            marks.at_least(what, far[trained.lr] / scaled[trained.lr], 4.0, ".1f")
        what = f"--full, d_k = {d_k}: medians of states, the fastest dead for g over the slowest"
        marks.at_least(f"{what} that is not", slow_over_fast(by_scale, d_k), SLOWER, ".1f")


def kept_rows():
    """Return how the kept trainings were made, and the trainings."""
    about, rows = read(KEPT)
    trainings = []
    for row in rows:
        row["start"] = Heads(**row["start"])
        row["end"] = [Heads(**end) for end in row["end"]]
        row["second"] = [SecondTask(**task) for task in row["second"]]
        trainings.append(TrainedHeads(**row))
    return about, trainings
