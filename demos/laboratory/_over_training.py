"""Figure 7 of the laboratory: the heads of a small GPT over a training, and a race over spreads.

This run trains from each start once, for 50 steps. The figure and the tables are of a run with
`--full`, kept in results_full_over_training.jsonl, whose first line says how it was made.
"""

from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from attention.figures import KINDS, REFERENCE, SCALED, name_place, new_figure
from attention.laboratory.over_training import (
    SPREAD_OUT,
    HeadLook,
    OverTraining,
    Race,
    heads_over_training,
    natural_spread,
    race,
)
from attention.scaling import deviation, ties
from demos._json_lines import read

KEPT = Path(__file__).with_name("results_full_over_training.jsonl")
STARTS = {"unit": "unit variance", "0.02": "GPT-2's .02"}
TASKS = {False: "one period", True: "periods drawn"}
SPREADS = [1 / 32, 1 / 8, 0.5, 1.0, 2.0, 4.0, 8.0]
# At the start, at d_k = 64: the spread of the scores with the scale 1/√d_k, and without it.
WITH = {init: natural_spread(init, 64) for init in STARTS}
WITHOUT = {init: 8 * s for init, s in WITH.items()}
LIMIT = 400  # steps of a race; a training that is not done counts as this
NOTHING = 1e-6  # ratios below this are drawn here: float32 cannot tell them from rounding
# The marks of what is claimed.
FLAT = 1.2
BEST = 1.05
LATER, SOONER = 1.2, 0.9  # times the steps: without the scale, from unit variance and from .02


def sweeps(size):
    """Return the sweeps of a run: a name, and the arguments of its sweep."""

    def trainings(seeds, **settings):
        settings = {"init": list(STARTS), "drawn": [False]} | settings
        # (The trainings of a default run are the beginnings of a full one's.)
        return heads_over_training, settings, seeds, ["init", "drawn", "limit"]

    if size == "quick":
        return {"over a training": trainings(1, limit=[2], d_k=[8])}
    if size == "default":
        return {"over a training": trainings(1, limit=[50])}
    plan: dict[str, Any] = {
        "over a training": trainings(4, limit=[400]),
        "periods drawn": trainings(2, limit=[600], drawn=[True], init=["unit"]),
    }
    for init in STARTS:
        settings = {
            "init": [init],
            "spread": sorted({*SPREADS, WITH[init], WITHOUT[init]}),
        }
        plan[f"race from {init}"] = race, settings, 4, ["init", "spread"]
    return plan


def heads_at(rows, look):
    """Return the heads of all trainings at a look: 0 is the start, -1 the end."""
    steps = [sorted({head.step for head in row.heads})[look] for row in rows]
    return [h for row, step in zip(rows, steps, strict=True) for h in row.heads if h.step == step]


class OverATraining:
    """Figure 7, its claims and their marks."""

    def __init__(self, rows):
        self.rows = [row for row in rows if isinstance(row, OverTraining)]
        self.about, self.kept, races = kept_rows()
        self.steps = {init: steps_over_spreads(races, init) for init in STARTS}
        self.source = f"a run with --full of {self.about['date']}, seed {self.about['seed']}"

    @cached_property
    def figure(self):
        """Draw figure 7."""
        tasks = [[row for row in self.kept if row.drawn == drawn] for drawn in TASKS]
        return plot_over_training(tasks, self.steps)

    def judge(self, marks):
        """Judge this run's trainings, those that are kept, and the kept races."""
        for name, rows in (("", self.rows), ("--full, ", self.kept)):
            falls = sum(head.mean < 1 for head in at_unit_variance(rows))
            what = f"{name}a GPT at step 0, unit variance: heads whose mean falls"
            marks.at_most(what, falls, 0, "d")
            ends = [heads_at([row], -1) for row in rows if row.init == "unit" or row in self.kept]
            least = max(min(head.mean for head in heads) for heads in ends)
            marks.at_most(f"{name}at the end: the least ratio of means", least, 1.0, ".2g")
        most = max((head.mean for head in that_found(self.kept, -1)), default=9)
        what = "--full, at the end: the largest ratio of means of heads that have found a key"
        marks.at_most(what, most, 1.0, ".2g")
        for init, steps in self.steps.items():
            means = {s: float(np.mean(of)) for s, of in steps.items()}
            least = min(means.values())
            floor = {s: mean for s, mean in means.items() if 0.5 <= s <= 2}
            worst = max(floor, key=lambda s: floor[s])
            what = f"--full, from {STARTS[init]}, steps over the least:"
            marks.at_most(f"{what} best s from ½ to 2", min(floor.values()) / least, BEST, ".2f")
            marks.at_most(f"{what} worst s from ½ to 2", floor[worst] / least, FLAT, ".2f")
            more = min(np.subtract(steps[4.0], steps[worst]))  # the same seeds
            what = (
                f"--full, from {STARTS[init]}, steps at s = 4 minus those at {worst:g}, the worst"
            )
            marks.at_least(f"{what} from ½ to 2: least of the seeds", more, 0, "d")
        what = "--full: steps without the scale over with it, from"
        unit, gpt = (np.mean(of[WITHOUT[i]]) / np.mean(of[WITH[i]]) for i, of in self.steps.items())
        marks.at_least(f"{what} unit variance", unit, LATER, ".2f")
        marks.at_most(f"{what} GPT-2's .02", gpt, SOONER, ".2f")

    def said_falls(self):
        """Return in how many heads the mean falls before and after the trainings, as text."""
        before, after = at_unit_variance(self.kept), that_found(self.kept, -1)
        return f"{falls(before)} heads at unit variance before, {falls(after)} with a key after"

    def falls(self, look):
        """Return in how many heads of the kept trainings the mean falls at a look, as text."""
        return falls(heads_at(self.kept, look))

    def found_early(self):
        """Return the heads that have found a key at a look before the end of their training."""
        return [
            head
            for row in self.kept
            for head in row.heads
            if head.kind != SPREAD_OUT and head.step < row.heads[-1].step
        ]

    def said_means(self, look):
        """Return how much of the mean is left in heads that have found a key, as text."""
        means = [(h.kind, max(h.mean, NOTHING)) for h in that_found(self.kept, look)]
        ranges = []
        for kind in sorted({kind for kind, _ in means}, reverse=True):
            of_kind = [mean for other, mean in means if other == kind]
            ranges.append(f"{min(of_kind):.2g} to {max(of_kind):.2g} ({kind})")
        return ", ".join(ranges)

    def others(self):
        """Return in how many other heads the mean falls at the end, as text."""
        heads = [head for head in heads_at(self.kept, -1) if head.kind == SPREAD_OUT]
        fallen = [f"{head.mean:.2g}" for head in heads if head.mean < 1]
        return f"{falls(heads)} others" + (f" (to {', '.join(fallen)})" if fallen else "")

    def said(self, init, s):
        """Return the steps of the races from one start and spread, as text."""
        steps = self.steps[init].get(s)
        return f"{np.mean(steps):.0f} ± {deviation(steps):.0f}" if steps else ""

    @property
    def claims(self):
        """Return the rows of the report's table: claim, effect, repeats, condition of failure."""
        seeds = f"{len(self.steps['unit'][1.0])} seeds (--full)"
        return [
            [
                "Before a training with 1/√d_k, at unit variance, the mean of no head falls without"
                " the scale. At its end it falls in each head that has more than half of its "
                "weight at one place",
                f"before, the mean falls in {falls(at_unit_variance(self.kept))} heads; at the end "
                f"in {falls(that_found(self.kept, -1))} that have found a key, where "
                f"{self.said_means(-1)} of it is left, and in {self.others()}. At earlier looks it "
                f"falls in {falls(self.found_early())} that have found a key",
                f"{len(self.kept)} trainings (--full)",
                "a head at unit variance whose mean falls before it; at its end, a training "
                "without a head whose mean falls, or a head with more than half of its weight at "
                "one place whose mean does not",
            ],
            [
                "The steps until a GPT has learned are a valley over the spread s of the scores at "
                "the start, with its floor from ½ to 2, and higher at 4, near the hill's top",
                "; ".join(
                    f"from {name} {self.said(init, 1.0)} at 1, {self.said(init, 4.0)} at 4"
                    for init, name in STARTS.items()
                ),
                f"1 task, Adam at one rate, {seeds}",
                f"{BEST} times fewer steps outside ½ to 2, more than {FLAT} times the least "
                "inside, or at 4, in one seed, fewer than at the worst of ½, 1 and 2",
            ],
            [
                "Without the scale a GPT learns later from unit variance, and sooner from GPT-2's "
                ".02",
                "; ".join(
                    f"from {name} {self.said(init, WITHOUT[init])} against "
                    f"{self.said(init, WITH[init])} steps"
                    for init, name in STARTS.items()
                ),
                f"1 task, Adam at one rate, {seeds}",
                f"less than {LATER} times the steps from unit variance, or more than {SOONER} from "
                "the other",
            ],
        ]

    def show(self, page):
        """Show the figure and the tables, after a question."""
        with_it, without = (self.said("0.02", s["0.02"]) for s in (WITH, WITHOUT))
        page.ask(
            "A small GPT learns with 1/√d_k. Which spread s of the scores at the start lets it "
            "learn soonest: the 1 of the scale, or 4, near which the median gradient is largest?",
            f"From unit variance it takes {self.said('unit', 1.0)} steps at 1, and "
            f"{self.said('unit', 4.0)} at 4. From GPT-2's .02, where the scale makes the spread "
            f"{WITH['0.02']:.2f}, it takes {with_it} with the scale, {without} without it, and "
            f"{self.said('0.02', 1.0)} at 1.",
        )
        page.figure(
            self.figure,
            "over_training",
            alt=f"Left and middle: the mean falls in {self.falls(0)} heads at step 0, and in "
            f"{self.falls(-1)} at the last step. Right: the steps to learn over the spread of the "
            f"scores are a valley: from unit variance {self.said('unit', 1.0)} at 1.",
            caption=f"Figure 7, from {self.source}. Left and middle: a point is a head; circles "
            "are in block 1, squares in block 2; filled: more than half of its weight is "
            "at one place. Ratios below 10⁻⁶, which are rounding, are drawn there. At step 0 from "
            f"GPT-2's .02, with d_model = 128, s is at most {WITHOUT['0.02']:.2f}, where the ratio "
            "has to be near √64. "
            f"Right: mean ± one standard deviation; not done after {LIMIT} counts as {LIMIT}.",
        ).place = "below"
        with page.folded("The heads at each step, and the race"):
            page.table(
                ["task", "start", "step", "loss", "found", "mean falls", "median falls", "means"],
                [row for rows in (self.kept, self.rows) for row in table_rows(rows)],
                caption=f"From {self.source}; below, this run. Found: heads with more than half of "
                "their weight at one place. Falls: if the block loses its scale. Means: geometric "
                "mean of the heads' ratios of means. Loss: of sequences of period 16",
            )
            page.table(
                ["s", *STARTS.values()],
                [
                    [f"{s:.3g}", *(self.said(init, s) for init in STARTS)]
                    for s in sorted({s for steps in self.steps.values() for s in steps})
                ],
                caption=f"Steps to a loss of ½, from {self.source}: mean ± one standard deviation",
            )


def at_unit_variance(rows):
    """Return the heads at step 0 where the ratio is not algebra, as it is for a small spread."""
    return heads_at([row for row in rows if row.init == "unit"], 0)


def that_found(rows, look):
    """Return the heads that have found one key for each query at a look."""
    return [head for head in heads_at(rows, look) if head.kind != SPREAD_OUT]


def falls(heads):
    """Return in how many heads the mean falls, as text."""
    return f"{sum(head.mean < 1 for head in heads)} of {len(heads)}"


def table_rows(rows):
    """Return a row for each task, start and step."""
    table = []
    for drawn, init in dict.fromkeys((row.drawn, row.init) for row in rows):
        group = [row for row in rows if (row.drawn, row.init) == (drawn, init)]
        for look in range(len(group[0].losses)):
            heads = heads_at(group, look)
            loss = np.mean([row.losses[look] for row in group])
            found = sum(head.kind != SPREAD_OUT for head in heads)
            fallen = [sum(getattr(h, name) < 1 for h in heads) for name in ("mean", "median")]
            typical = np.exp(np.mean([np.log(max(head.mean, NOTHING)) for head in heads]))
            counts = [f"{n} of {len(heads)}" for n in (found, *fallen)]
            name = [TASKS[drawn], STARTS[init], heads[0].step, f"{loss:.2f}"]
            table.append([*name, *counts, f"{typical:.2g}"])
    return table


def steps_over_spreads(races, init):
    """Return spread → the steps of each race from it; LIMIT for one that was not done by then."""
    steps: dict[float, list[int]] = {}
    for row in sorted(races, key=lambda row: row.spread):
        if row.init == init:
            steps.setdefault(row.spread, []).append(row.steps or LIMIT)
    return steps


def kept_rows():
    """Return how the kept rows were made, the trainings, and the races."""
    about, rows = read(KEPT)
    races = [Race(**row) for row in rows if "spread" in row]
    trainings = [
        OverTraining(**row | {"heads": [HeadLook(**head) for head in row["heads"]]})
        for row in rows
        if "heads" in row
    ]
    return about, trainings, races


def plot_over_training(tasks, steps):
    """Draw the heads of trainings, a panel for each task, and the steps over the spread.

    tasks  for each task its trainings
    steps  start → spread of the scores → the steps of each race
    """
    figure = new_figure(10.4, 4.2)
    *panels, valley = figure.subplots(1, len(tasks) + 1)
    colours = dict(zip(STARTS, (SCALED, KINDS[4]), strict=True))
    for panel, trainings, title in zip(panels, tasks, TASKS.values(), strict=True):
        looks = sorted({head.step for row in trainings for head in row.heads})
        for row in trainings:
            colour = colours[row.init]
            for head in row.heads:
                side = 0.08 if colour == SCALED else -0.16
                at = looks.index(head.step) - side + 0.08 * (head.head - 1)
                face = "none" if head.kind == SPREAD_OUT else colour
                mark = "o" if head.block == 1 else "s"
                panel.plot(at, max(head.mean, NOTHING), mark, color=colour, mfc=face, ms=4.5)
        panel.axhline(1.0, color=REFERENCE, linewidth=0.8)
        panel.set(yscale="log", ylim=(NOTHING / 2, 30), xlabel="step")
        panel.set_xticks(range(len(looks)), [str(step) for step in looks])
        start, end = falls(heads_at(trainings, 0)), falls(that_found(trainings, -1))
        panel.set_title(
            f"{title}: the mean falls in {start}\nheads, at the end in {end} with a key", size=9
        )
    panels[0].set_ylabel("mean ‖∂L/∂q‖: no scale / scale", fontsize=9)
    for init, of in steps.items():
        means = {s: np.mean(x) for s, x in of.items()}
        errors = [np.std(x, ddof=1) for x in of.values()]
        colour, name = colours[init], f"from {STARTS[init]}"
        valley.errorbar(list(of), list(means.values()), errors, fmt=".-", color=colour, capsize=2)
        valley.plot(WITH[init], means[WITH[init]], "s", color=colour, label=f"{name}: 1/√d_k")
        without = means[WITHOUT[init]]
        valley.plot(WITHOUT[init], without, "o", color=colour, mfc="white", label="no scale")
    valley.axvspan(0.5, 2.0, color=REFERENCE, alpha=0.15, linewidth=0)
    name_place(valley, 2.3 * ties(24), "the hill's top")  # for some 24 keys
    valley.set(xscale="log", yscale="log", xlabel="s, the spread of the scores at the start")
    valley.set_ylabel("steps to a loss of ½", fontsize=9)
    names = ["1/32", "1/8", "½", "1", "2", "4", "8"]
    valley.set_xticks(SPREADS, names)
    valley.set_yticks([50, 70, 100, 150, 200, 300], ["50", "70", "100", "150", "200", "300"])
    valley.minorticks_off()
    valley.legend(fontsize=8, frameon=False, loc="upper center")
    for panel in (*panels, valley):
        panel.grid(alpha=0.25)
    return figure
