"""Figure 5 of the laboratory: how far a first step moves the scores, and which rates learn."""

import dataclasses
import json
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from attention.figures import of_scale
from attention.laboratory.basin import (
    Outcome,
    Training,
    first_step,
    outcomes,
    step_exponents,
    training,
)
from attention.laboratory.figures import NAMES, plot_steps
from attention.laboratory.sharpness import head_sharpness, slope
from demos._json_lines import made
from minigrad.runs.saving import write_whole

LIMIT = 400  # steps of a training
NEAR = 1.3  # how far apart equal steps may be
SLOWER = 5  # how many times more slower ones are
STEEP, FLATTER = 0.7, 0.85  # slopes of log sharpness: at least with few queries, at most with many
FULL = Path(__file__).with_name("results_full_steps.json")  # what a run with --full has found


def sweeps(size):
    """Return name → the measure, its settings, the repeats, and the paired settings."""
    quick = size == "quick"
    full = size == "full"

    def trainings(optimizer, rates, d_ks, a, follow=0.0, init="unit"):
        return {
            "d_k": [8] if quick else d_ks,
            "lr": rates[:1] if quick else rates,
            "optimizer": [optimizer],
            "limit": [20 if quick else LIMIT],
            "a": a,
            "follow": [follow],
            "init": [init],
        }

    way = ["a", "follow", "init"]
    d_ks = [8, 16] if quick else [8, 64, 512]
    first = {"d_k": d_ks, "optimizer": ["sgd", "adam", "adafactor"]}
    grid = [0.0, 0.25, 0.5, 0.75, 1.0, 1.25]
    seeds, draws = {"quick": (1, 2), "default": (3, 10), "full": (8, 40)}[size]
    plan: dict[str, tuple[Callable[..., Any], dict[str, Any], int, list[str]]] = {
        "first steps": (first_step, first | {"a": grid, "init": ["unit"]}, draws, way[::2]),
        "first steps of T5": (first_step, first | {"a": [0.0], "init": ["t5"]}, draws, way[::2]),
    }
    if full:
        sgd = [0.03, 0.1, 0.3, 1.0, 3.0, 10.0]
        adam = [0.003, 0.01, 0.03, 0.1]
        runs = {
            "SGD": trainings("sgd", sgd, [8, 512], [0.0, 0.5, 1.0]),
            "SGD that follows": trainings("sgd", sgd, [8, 512], [1.0], 1.0),
            "SGD at 2048": trainings("sgd", sgd[:4], [2048], [0.0, 0.5]),
            "Adam": trainings("adam", adam, [8, 512], [0.0, 0.5, 0.75, 1.0]),
            "Adam that follows": trainings("adam", adam, [8, 512], [0.5], -0.5),
            "Adam from T5": trainings("adam", adam, [512], [0.0], init="t5"),
        }
    else:
        runs = {
            "SGD raw": trainings("sgd", [0.1, 0.3], [512], [0.0]),
            "SGD": trainings("sgd", [1.0, 3.0], [512], [0.5]),
            "SGD over d_k": trainings("sgd", [1.0], [8, 512], [1.0]),
            "SGD that follows": trainings("sgd", [1.0], [8, 512], [1.0], 1.0),
            "Adam": trainings("adam", [0.01, 0.03], [512], [0.5, 1.0]),
            "Adam that follows": trainings("adam", [0.01, 0.03], [512], [0.5], -0.5),
        }
    for name, settings in runs.items():
        plan[name] = training, settings, min(seeds, 4) if "2048" in name else seeds, way
    # Widths that are powers of 4: T5's √d_k is a power of 2, so that no rounding hides an equality.
    for name, a, init in (("relative steps", 0.5, "unit"), ("relative steps of T5", 0.0, "t5")):
        settings = trainings("adafactor", [0.01, 0.03, 0.1], [64, 256], [a], init=init)
        plan[name] = training, settings, 3 if full else 1, way
    of_sharpness = {
        "quick": {32: 2},
        "default": {32: 5, 1024: 3},
        "full": {32: 8, 1024: 8, 4096: 8, 16_384: 3},
    }
    for sequences, repeats in of_sharpness[size].items():
        settings = {"d_k": d_ks, "a": [0.0], "sequences": [sequences]}
        plan[f"sharpness {8 * sequences}"] = head_sharpness, settings, repeats, []
    return plan


class Findings:
    """The findings of a run: exponents of the first step, outcomes of trainings, sharpness slopes.

    about      when, with which seed and which NumPy, and how often each setting was measured
    rises      (optimizer, init, a) → the exponent of d_k in the first step, and its error
    outcomes   chapter 16.5's settings → what became of the trainings
    slopes     the number of queries → the raw head's slope of log sharpness, and its error
    """

    def __init__(self, about, rises, outcomes, slopes):
        self.about = about
        self.rises = rises
        self.outcomes = outcomes
        self.slopes = slopes

    @classmethod
    def of(cls, measured, about):
        """Make the findings from the rows of each of `sweeps`, by its name."""
        trained = [row for rows in measured.values() for row in rows if isinstance(row, Training)]
        slopes = {}
        for rows in (rows for name, rows in measured.items() if name.startswith("sharpness")):
            by_width = {}
            for row in rows:
                by_width.setdefault(row.d_k, []).append(row.sharpness)
            slopes[rows[0].queries] = slope(list(by_width), np.array(list(by_width.values())).T)
        rises = step_exponents(measured["first steps"] + measured["first steps of T5"])

        return cls(about, rises, outcomes(trained), slopes)

    def write(self, path):
        """Write the findings as a file of a few kilobytes: a line for each result."""
        lines = [["about", "", self.about]]
        lines += [["first step", key, value] for key, value in self.rises.items()]
        lines += [["trainings", k, dataclasses.asdict(one)] for k, one in self.outcomes.items()]
        lines += [["sharpness", key, value] for key, value in self.slopes.items()]
        write_whole(path, "\n".join(json.dumps(line) for line in lines) + "\n")

    @classmethod
    def read(cls, path=FULL):
        """Read the findings that `write` has written."""
        kinds = {"first step": {}, "trainings": {}, "sharpness": {}}
        (_, _, about), *lines = map(json.loads, path.read_text("utf-8").splitlines())
        for kind, key, value in lines:
            key = tuple(key) if isinstance(key, list) else key
            kinds[kind][key] = Outcome(**value) if kind == "trainings" else tuple(value)
        return cls(about, *kinds.values())

    @property
    def source(self):
        """Return which run this is, for a caption."""
        return f"a run of {self.about['date']}, seed {self.about['seed']}"

    def best(self, optimizer, a, follow, d_k):
        """Return the Outcome with the fewest mean steps, of rates at which all learned, or None."""
        fit = [
            one
            for key, one in self.outcomes.items()
            if key[:5] == (optimizer, "unit", a, follow, d_k) and one.learned == one.trainings
        ]
        return min(fit, key=lambda one: one.steps_mean, default=None)

    def times(self, d_k):
        """Return the steps of SGD without the scale over with it, each at its best rate, or NaN."""
        raw, scaled = (self.best("sgd", a, 0.0, d_k) for a in (0.0, 0.5))
        return raw.steps_mean / scaled.steps_mean if raw and scaled else np.nan

    def ratios(self, one, other, rates):
        """Return the steps of one way over another's at these rates; ∞ where one never learned.

        one, other  (optimizer, a, follow, d_k)
        """
        ratios = []
        for lr in rates:
            ways = [(optimizer, "unit", *way, lr) for optimizer, *way in (one, other)]
            steps = [
                self.outcomes[way].steps_mean if way in self.outcomes else None for way in ways
            ]
            ratios.append(steps[0] / steps[1] if all(steps) else np.inf)
        return ratios

    def nearest(self, optimizer):
        """Return the exponent with which the first step depends least on d_k."""
        grid = [key for key in self.rises if key[:2] == (optimizer, "unit")]
        return min(grid, key=lambda key: abs(self.rises[key][0]))[2]


def about(seed, size):
    """Return the date and the command of a run, with its seed and repeats."""
    repeats = {name: repeats for name, (_, _, repeats, _) in sweeps(size).items()}
    return made(f"python -m demos laboratory --{size}", seed, repeats=repeats)


def error(of):
    """Return a number and its standard error as text."""
    return f"{of[0]:.2f} ± {of[1]:.2f}"


class StepsToLearn:
    """Figure 5, its claims and their marks."""

    def __init__(self, measured, *, seed, size):
        self.run = Findings.of(measured, about(seed, size))
        self.full = self.run if size == "full" else Findings.read()
        self.first = measured["first steps"] + measured["first steps of T5"]
        self.relative = [measured["relative steps"], measured["relative steps of T5"]]
        widths = {key[4] for key in self.run.outcomes if key[0] == "sgd"}
        self.narrow, self.wide = min(widths), min(max(widths), 512)
        self.one_number = ("adam", 0.5, -0.5, self.wide), ("adam", 1.0, 0.0, self.wide)

    @property
    def unequal(self):
        """Return how many trainings with relative steps differ between T5's values and 1/√d_k."""
        pairs = zip(*self.relative, strict=True)
        return sum(dataclasses.replace(t5, a=s.a, init=s.init) != s for s, t5 in pairs)

    def apart(self, optimizer):
        """Return the largest difference of T5's first steps from those of 1/√d_k, over these."""
        t5, scaled = (
            np.array([r.change for r in self.first if (r.optimizer, r.init, r.a) == key])
            for key in ((optimizer, "t5", 0.0), (optimizer, "unit", 0.5))
        )
        return float(np.abs(t5 / scaled - 1).max())

    @cached_property
    def figure(self):
        """Draw figure 5: its first panel from this run, the others from the run with --full."""
        return plot_steps(self.first, self.full.outcomes)

    def judge(self, marks):
        """Judge this run: a claim is falsified if its mark fails."""
        run = self.run
        both = (self.narrow, self.wide)
        for optimizer, a in (("sgd", 0.5), ("adam", 1.0)):
            what = (
                f"{NAMES[optimizer]}: distance from {a:g} of the exponent with the steadiest step"
            )
            marks.at_most(what, abs(run.nearest(optimizer) - a), 0, ".2f")
        (follows,), (stays,) = (
            run.ratios(*(("sgd", 1.0, follow, d_k) for d_k in both[::-1]), [1.0])
            for follow in (1.0, 0.0)
        )
        what = f"SGD, 1/d_k, rate 1: steps at d_k = {self.wide} over those at {self.narrow}"
        marks.at_most(f"{what}, W_q's and W_k's rate × d_k/8", follows, NEAR, ".2f")
        marks.at_least(f"{what}, one rate for all", stays, 3, ".2f")
        ratios = run.ratios(*self.one_number, [0.01, 0.03])
        what = f"Adam, d_k = {self.wide}, 1/√d_k and other rates of W_q, W_k against 1/d_k: steps"
        far = float(np.exp(np.abs(np.log(ratios)).max()))
        marks.at_most(f"{what} apart", far, NEAR, ".2f")
        what = "relative steps, T5's values and 1/√d_k"
        marks.at_most(f"{what}: trainings that are not the same bit for bit", self.unequal, 0, "d")
        marks.at_most(f"{what}: first steps apart", self.apart("adafactor"), 1e-9, ".0e")
        for optimizer in ("sgd", "adam"):
            what = f"{NAMES[optimizer]}, the same two: first steps apart"
            marks.at_least(what, self.apart(optimizer), 1, ".1f")
        for name, findings, wide in (("", run, self.wide), ("--full, ", Findings.read(), 512)):
            what = f"{name}SGD, d_k = {wide}: steps at the best rate, no scale over 1/√d_k"
            marks.at_least(what, findings.times(wide), SLOWER, ".1f")
        few, many = min(run.slopes), max(run.slopes)
        what = "no scale: slope of log sharpness against log d_k"
        marks.at_least(f"{what}, {few:,} queries", run.slopes[few][0], STEEP, ".2f")
        marks.at_most(f"{what}, {many:,} queries", run.slopes[many][0], FLATTER, ".2f")

    @property
    def claims(self):
        """Return the rows of the report's table: claim, effect, repeats, condition of failure."""
        full = self.full
        times = self.full.about["repeats"]
        rise = lambda *key: error(full.rises[key])
        best = lambda *key: str(full.best(*key))
        ratios = full.ratios(*self.one_number, [0.003, 0.01, 0.03])
        rates = sorted({key[5] for key in full.outcomes if key[0] == "sgd"})
        return [
            [
                "If all weights have one rate, the first step depends least on d_k at the exponent "
                "½ for SGD, and at 1 for Adam",
                f"the step goes with d_k to the power of {rise('sgd', 'unit', 0.5)} and "
                f"{rise('adam', 'unit', 1.0)}, d_k from 8 to 512",
                f"{times['first steps']} draws",
                "another of six exponents, 0 to 1¼, whose step depends less on d_k",
            ],
            [
                "Scale and rate are nearly one number, below the largest rates",
                "Adam, 512: 1/√d_k with W_q's and W_k's rate × (d_k/8)^-½ needs "
                f"{min(ratios):.2f} to {max(ratios):.2f} times the steps of 1/d_k; SGD, 1/d_k with "
                f"that rate × d_k/8: {best('sgd', 1.0, 1.0, 8)} and {best('sgd', 1.0, 1.0, 512)} "
                "steps at 8 and 512",
                f"{times['Adam']} seeds, {len(ratios)} rates",
                f"steps more than {NEAR:g} times apart",
            ],
            [
                "T5's initial values with relative steps are 1/√d_k, while the root mean square of "
                "W_q is above Adafactor's floor of .001; with SGD and Adam they are not",
                "the same training bit for bit, at 64 and 256; with SGD and Adam first steps up to "
                f"{self.apart('sgd') + 1:.0f} and {self.apart('adam') + 1:.0f} times as long",
                f"{len(self.relative[0])} trainings",
                "one bit of difference; with SGD or Adam, less than twice as long at every width",
            ],
            [
                f"With SGD at d_k = 512 a head without the scale needs more than {SLOWER} times "
                "the steps, each at the best of its rates",
                f"{best('sgd', 0.0, 0.0, 512)} against {best('sgd', 0.5, 0.0, 512)} (--full): "
                f"{full.times(512):.1f} times; in this run {self.run.times(self.wide):.1f} times",
                f"{times['SGD']} seeds, {len(rates)} rates from {rates[0]:g} to {rates[-1]:g}; "
                f"this run, {self.run.about['repeats']['SGD']} seeds",
                f"at 512, less than {SLOWER} times the steps, each at its best rate",
            ],
            [
                "Without the scale the curvature at the start (chapter 16.4) rises with d_k, and "
                "less steeply with more queries",
                "it goes with d_k to the power of "
                + ", ".join(
                    f"{error(full.slopes[n])} ({n:,} queries)" for n in sorted(full.slopes)
                ),
                f"{times['sharpness 256']} draws (--full); this run judges "
                f"{' and '.join(f'{n:,}' for n in sorted(self.run.slopes))} queries",
                f"a power below {STEEP} with the fewest queries, or above {FLATTER} with the most",
            ],
        ]

    def show(self, page):
        """Show the figure and its numbers."""
        rise = lambda optimizer, a: error(self.run.rises[optimizer, "unit", a])
        page.figure(
            self.figure,
            "steps",
            alt="Above: the power of d_k in the first step falls with the exponent of the scale. "
            "Below: steps until the task is learned, over the learning rate, at d_k = 512.",
            caption="Figure 5. Above, this run: the power of d_k with which the first step moves "
            "the scores, and dotted what is derived, 1 - 2a for SGD and 1 - a for Adam. That is "
            f"missed by many standard errors: for a = 0 SGD has {rise('sgd', 0.0)}, and for ½ and "
            f"1 Adam has {rise('adam', 0.5)} and {rise('adam', 1.0)}. Below, "
            f"from {self.full.source} with --full: mean steps of the trainings that learned. A "
            "ring is the best rate at which all learned; empty: some did not. With “other rate” "
            "W_q's and W_k's rate is multiplied by d_k/8 (1/d_k) or by (d_k/8)^-½ (1/√d_k)",
        )
        ways = {"1/√d_k": ("unit", 0.5), "T5's values": ("t5", 0.0), "no scale": ("unit", 0.0)}
        with page.folded("The first step, and the steps at each rate"):
            page.table(
                ["first step ∝ d_k to the power of", *NAMES.values()],
                [
                    [name, *(error(self.run.rises[o, *way]) for o in NAMES)]
                    for name, way in ways.items()
                ],
                caption="One rate for all weights, this run; ± one standard error",
            )
            for optimizer in ("sgd", "adam"):
                self.show_rates(page, optimizer)

    def show_rates(self, page, optimizer):
        """Show a table of the trainings with one optimizer, from the run with --full."""
        outcomes = {key[1:]: one for key, one in self.full.outcomes.items() if key[0] == optimizer}
        rates = sorted({key[4] for key in outcomes})
        rows = []
        for init, a, follow, d_k in dict.fromkeys(key[:4] for key in outcomes):
            way = "T5's values" if init == "t5" else of_scale(a)[1]
            way += ", other rate" if follow else ""
            cells = [outcomes.get((init, a, follow, d_k, lr), "") for lr in rates]
            rows.append([f"{way}, d_k = {d_k}", *map(str, cells)])
        page.table(
            [f"{NAMES[optimizer]}, learning rate", *(f"{lr:g}" for lr in rates)],
            rows,
            caption=f"Steps to 98 %, mean ± spread of the seeds, from {self.full.source} with "
            f"--full. Never: not within {LIMIT} steps. (1 of 8): the mean of those that learned",
        )
