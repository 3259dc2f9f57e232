"""17.3 · Figures of the laboratory: one function for each question of chapter 16's sections.

As in chapter 17.1: each function takes data and returns a matplotlib `Figure`, a colour has one
meaning, each line has its name at its end, and a title says what was found. Where rows of several
generators are given, a line is their mean, and the band around it is ± one standard deviation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from attention.figures import (
    KINDS,
    REFERENCE,
    exponents_of,
    name_ends,
    new_figure,
    of_scale,
)
from attention.laboratory.basin import FirstStep, Outcome, Setting, step_exponents
from attention.laboratory.chain import Factors
from attention.laboratory.trained import TrainedHeads, over_heads
from attention.scaling import deviation, summary

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FLOOR = 1e-12  # what is below is drawn here
NAMES = {"sgd": "SGD", "adam": "Adam", "adafactor": "relative steps"}  # of the optimizers


def plot_factors(rows: Sequence[Factors]) -> Figure:
    """Chapter 16.2: the gains of the chain over d_k, for each exponent."""
    found = summary(rows)
    d_ks, exponents = sorted({d for d, _ in found}), exponents_of(rows)
    panels: dict[str, tuple[str, Callable[[dict[str, tuple[float, float]]], tuple[float, float]]]]
    panels = {
        "J": ("gain of J, median", lambda row: row["gain_j"]),
        "scale · Kᵀ": (
            "gain of scale · Kᵀ, median",
            lambda row: (
                row["gain_scale"][0] * row["gain_k"][0],
                row["gain_scale"][0] * row["gain_k"][1],
            ),
        ),
        "all four factors": ("‖∂L/∂q‖ / ‖g‖, median", lambda row: row["gradient"]),
    }
    figure = new_figure(7.4, 7.6)
    for panel, (title, (axis, value)) in zip(
        figure.subplots(3, 1, sharex=True), panels.items(), strict=True
    ):
        ends, changes = [], []
        for a in exponents:
            colour, name, style = of_scale(a)
            mean, spread = np.array([value(found[d_k, a]) for d_k in d_ks]).T
            _line(panel, d_ks, mean, spread, colour, style)
            ends.append((mean[-1], name, colour))
            changes.append(f"{mean[-1] / mean[0]:.2g} times ({name})")
        panel.set_yscale("log")
        panel.set(ylabel=axis)
        panel.set_title(f"{title}: {', '.join(changes)}", fontsize=10)
        name_ends(panel, ends)
    _widths(panel, d_ks)
    figure.suptitle(f"From d_k = {d_ks[0]} to {d_ks[-1]} a gain becomes", fontsize=11)
    return figure


def plot_steps(
    first: Sequence[FirstStep], found: Mapping[Setting, Outcome], *, d_k: int = 512
) -> Figure:
    """Chapter 16.5: how far a first step goes, and the steps until a task is learned, at each rate.

    Above, the exponent of d_k with which the first step's change of the scores grows, over the
    exponent *a* of the scale; dotted what is derived for SGD and for Adam. A star is T5: no scale,
    but its initial values. Below, a panel for each optimizer of `found`, at one width: a ring is
    the best rate, and an empty marker a rate at which not every training learned.
    """
    found = {key: each for key, each in found.items() if key[4] == d_k}
    optimizers = [name for name in NAMES if any(key[0] == name for key in found)]
    figure = new_figure(7.4, 3.6 + 3.2 * len(optimizers))
    panel, *others = figure.subplots(1 + len(optimizers), 1)
    rises, ends, nearest = step_exponents(first), [], []
    for (optimizer, name), colour in zip(NAMES.items(), KINDS, strict=False):
        of_unit = [key for key in rises if key[:2] == (optimizer, "unit")]
        line = {float(a): rises[optimizer, init, a][0] for _, init, a in of_unit}
        panel.plot(list(line), list(line.values()), "o-", color=colour, markersize=4)
        if t5 := rises.get((optimizer, "t5", 0.0)):
            panel.plot(0, t5[0], "*", color=colour, markersize=11)
        ends.append((list(line.values())[-1], name, colour))
        nearest.append(f"{min(line, key=lambda a: abs(line[a])):g} ({name})")
        if optimizer != "adafactor":
            derived = [1 - (2 if optimizer == "sgd" else 1) * a for a in line]
            panel.plot(list(line), derived, ":", color=REFERENCE)
    panel.axhline(0, color=REFERENCE, linewidth=0.8)
    panel.set(xlabel="a of the scale d_k^-a   (★ T5)", ylabel="power of d_k in the first step")
    panel.set_title(f"The first step depends least on d_k at a = {', '.join(nearest)}", fontsize=10)
    panel.grid(alpha=0.25)
    name_ends(panel, ends)
    for panel, optimizer in zip(others, optimizers, strict=True):
        ends, best = [], []
        for a, follow in sorted({key[2:4] for key in found if key[:2] == (optimizer, "unit")}):
            of_rate = {lr: found.get((optimizer, "unit", a, follow, d_k, lr)) for *_, lr in found}
            some = [(lr, each) for lr, each in sorted(of_rate.items()) if each and each.learned]
            if not some:
                continue
            colour, name, style = of_scale(a)
            name = f"{name}, other rate" if follow else name
            rates, steps = [lr for lr, _ in some], [each.steps_mean or 0.0 for _, each in some]
            panel.plot(rates, steps, ":" if follow else "-", color=colour)
            whole = [each.learned == each.trainings for _, each in some]
            faces = [colour if each else "white" for each in whole]
            marker = style[0].replace("x", "v")  # (a cross cannot be empty)
            panel.scatter(rates, steps, 24, faces, marker=marker, edgecolors=colour, zorder=3)
            ends.append((steps[-1], name, colour))
            if fewest := min(
                zip(np.array(steps)[whole], np.array(rates)[whole], strict=True), default=()
            ):
                panel.scatter(*fewest[::-1], 120, "none", edgecolors=colour, zorder=3)
                best.append(f"{fewest[0]:.0f} ({name})")
        panel.set(xscale="log", yscale="log", xlabel="learning rate", ylabel="steps")
        rates = sorted({key[5] for key in found if key[0] == optimizer})
        panel.set_xticks(rates, [f"{lr:g}" for lr in rates])
        panel.set_yticks([20, 50, 100, 200, 400], ["20", "50", "100", "200", "400"])
        panel.minorticks_off()
        told = f"{NAMES[optimizer]}, d_k = {d_k}, steps at the best rate:"
        panel.set_title(f"{told}\n{', '.join(best)}", fontsize=10)
        panel.grid(alpha=0.25)
        name_ends(panel, ends)
    return figure


def plot_heads_learning(rows: Sequence[TrainedHeads]) -> Figure:
    """Chapter 16.6: each head's entropy, and its weight on the right pair, while a model learns.

    The trainings have one d_k. The heads of a training are sorted by that weight, so a line is the
    mean of the trainings' best heads, second heads, …
    """
    figure = new_figure(7.4, 6.4)
    panels = {
        "entropy": ("entropy / log n", "Without the scale the entropy is {:.2f} from the start …"),
        "on_pair": ("weight on the right pair", "… with {:.2f} of the weight on the right pair"),
    }
    raw = [row for row in rows if row.a == 0]
    for panel, (name, (axis, title)) in zip(
        figure.subplots(2, 1, sharex=True), panels.items(), strict=True
    ):
        first = np.mean(over_heads(raw, name, step=0, change="as trained"))
        ends = []
        for a in exponents_of(rows):
            colour, scale, style = of_scale(a)
            group = [row for row in rows if row.a == a]
            steps = sorted({head.step for head in group[0].heads})
            values = np.array(
                [over_heads(group, name, step=step, change="as trained") for step in steps]
            )  # (steps, trainings, heads)
            mean, spread = values.mean(axis=1), deviation(values.swapaxes(0, 1))
            last = mean.shape[1] - 1
            for rank in range(last + 1):
                outer = rank in (0, last)
                band = spread[:, rank] if outer else np.zeros(len(steps))
                _line(panel, steps, mean[:, rank], band, colour, style if outer else style[0] + ":")
            ends.append((mean[-1, 0], f"{scale}, best head", colour))
            ends.append((mean[-1, last], f"{scale}, worst head", colour))
        panel.set(ylabel=axis, ylim=(-0.03, 1.03))
        panel.set_title(title.format(first), fontsize=10)
        _steps(panel, steps)
        name_ends(panel, ends)
    panel.set_xlabel("steps of the training")
    return figure


def plot_changed_scale(rows: Sequence[TrainedHeads]) -> Figure:
    """Chapter 16.6: what reaches q at each checkpoint, with the scale as trained, and changed.

    The trainings have one d_k. A line is the median over the heads of all trainings.
    """
    exponents = exponents_of(rows)[::-1]
    figure = new_figure(7.4, 3.4 * len(exponents))
    panels = figure.subplots(len(exponents), 2, sharex=True, sharey=True, squeeze=False)
    fields = {
        "gradient_median": ("‖∂L/∂q‖, median", "{}: {:.1g} from the loss …"),
        "passed_median": ("‖∂⟨g, output⟩/∂q‖, median", "… and {1:.1g} from a random g"),
    }
    for line, a in zip(panels, exponents, strict=True):
        group = [row for row in rows if row.a == a]
        steps = sorted({head.step for head in group[0].heads})
        own, name, style = of_scale(a)
        looks = {"as trained": (own, style), "doubled": (REFERENCE, "^:")}
        looks |= {name: (colour, line) for colour, name, line in map(of_scale, (0.0, 0.5))}
        for panel, (field, (axis, title)) in zip(line, fields.items(), strict=True):
            ends = []
            for change in dict.fromkeys(head.change for head in group[0].heads):
                medians = [
                    np.median(over_heads(group, field, step=step, change=change)) for step in steps
                ]
                values = np.maximum(medians, FLOOR)
                panel.plot(steps, values, looks[change][1], color=looks[change][0], markersize=4)
                ends.append((values[-1], change, looks[change][0]))
            how = f"trained with {name}" if a else "trained without a scale"
            panel.set_title(title.format(how, ends[0][0]), fontsize=10)
            panel.set_yscale("log")
            panel.set_ylim(FLOOR / 2, 10)
            panel.grid(alpha=0.25)
            panel.set_ylabel(axis, fontsize=9)
            _steps(panel, steps)
            name_ends(panel, ends)
    for panel in panels[-1]:
        panel.set_xlabel("steps of the training")
    return figure


# ---------------------------------------------------- A first reading may stop here.
# What follows: what several pictures draw alike.


def _line(panel: Any, x: Any, mean: Any, spread: Any, colour: str, style: str) -> None:
    """A line with markers, in a band of ± spread."""
    panel.plot(x, mean, style, color=colour, markersize=4)
    low = np.maximum(mean - spread, mean / 10)
    panel.fill_between(x, low, mean + spread, color=colour, alpha=0.15, linewidth=0)
    panel.grid(alpha=0.25)


def _widths(panel: Any, d_ks: Sequence[int]) -> None:
    """The lower axis, where it is d_k."""
    panel.set_xscale("log", base=2)
    panel.set_xticks(d_ks, [str(d_k) for d_k in d_ks])
    panel.set_xlabel("d_k")


def _steps(panel: Any, steps: Sequence[int]) -> None:
    """The lower axis, where it is the step of a training, from 0 on."""
    panel.set_xscale("symlog", linthresh=1, linscale=0.4)
    panel.set_xlim(-0.15, steps[-1] * 1.2)
    panel.set_xticks(steps, [str(step) for step in steps])
    panel.minorticks_off()
