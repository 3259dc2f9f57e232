"""Figures of the laboratory: one function for each question of chapters 16.5 and 16.6.

As in `attention.figures` a colour has one meaning, each line has its name at its end, and a title
says what was found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from attention.figures import KINDS, REFERENCE, SCALED, UNSCALED, name_ends, new_figure, of_scale
from attention.laboratory.basin import FirstStep, Outcome, Setting, step_exponents
from attention.laboratory.trained import SLOWED, TrainedHeads, steps_over_rates

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAMES = {"sgd": "SGD", "adam": "Adam", "adafactor": "relative steps"}  # of the optimizers


def plot_steps(
    first: Sequence[FirstStep], found: Mapping[Setting, Outcome], *, d_k: int = 512
) -> Figure:
    """Draw chapter 16.5: the first step, and the steps until a task is learned at each rate.

    Above, the exponent of d_k with which the first step's change of the scores grows, over the
    exponent *a* of the scale; dotted lines are those derived for SGD and for Adam. A star is T5:
    no scale, but its initial values. Below, a panel for each optimizer of `found`, at one width: a
    ring is the best rate, and an empty marker a rate at which not every training learned.
    """
    found = {key: each for key, each in found.items() if key[4] == d_k}
    optimizers = [name for name in NAMES if any(key[0] == name for key in found)]
    figure = new_figure(7.4, 3.6 + 3.2 * len(optimizers))
    panel, *others = figure.subplots(1 + len(optimizers), 1)
    rises = step_exponents(first)
    ends = []
    nearest = []
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
        ends = []
        best = []
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


def plot_trained(rows: Sequence[TrainedHeads], heads: Sequence[Any]) -> Figure:
    """Draw chapter 16.6: dead queries after a training, the second task's steps, and real heads.

    rows   trainings; the middle panel has those with every_rate=, at 1/√d_k
    heads  of real models: each has its entropy, and alone_median and alone_mean, the logarithms
           of ‖∂L/∂q‖ over that with the scale, if it alone has none, with their errors
    """
    figure = new_figure(10.4, 4.0)
    dead, steps, real = figure.subplots(1, 3)
    looks = {
        1.0: (SCALED, "s", "1/√d_k"),
        2.0: (REFERENCE, "^", "doubled"),
        0.0: (UNSCALED, "o", "no scale"),
    }
    for row in rows:
        for end in row.end:
            away = end.change == "no scale" or (row.a == 0 and end.change == "as trained")
            key = 2.0 if end.change == "doubled" else 0.0 if away else 1.0
            colour, marker, _ = looks[key]
            face = colour if row.a else "none"
            dead.plot(end.dead, end.passed_dead, marker, color=colour, markerfacecolor=face)
    for colour, marker, name in looks.values():
        dead.plot([], [], marker, color=colour, label=name)
    dead.set(xlabel="dead for the task's gradient", ylabel="dead for a random g")
    dead.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))
    dead.legend(fontsize=8, frameon=False, loc="upper left")
    narrow = min(row.d_k for row in rows)
    means = {
        a: np.mean([row.end[0].passed_dead for row in rows if (row.d_k, row.a) == (narrow, a)])
        for a in (0.5, 0.0)  # (end[0] is as trained)
    }
    every = [row for row in rows if row.a and len({task.lr for task in row.second}) > 1]
    medians = {
        (change, slowed): steps_over_rates(every, change, slowed)
        for change in ("as trained", "no scale")
        for slowed in (1.0, SLOWED)
    }
    never = 2 * max(y for line in medians.values() for y in line.values() if np.isfinite(y))
    for (change, slowed), line in medians.items():
        colour, name, style = of_scale(0.5 if change == "as trained" else 0.0)
        style = style if slowed == 1 else style[0] + ":"
        name += "" if slowed == 1 else f", W_Q and W_K at 1/{slowed:.0f}"
        face = colour if slowed == 1 else "none"
        at = np.minimum(list(line.values()), never)
        steps.plot(list(line), at, style, color=colour, markerfacecolor=face, label=name)
    times = [medians["no scale", 1.0][lr] / y for lr, y in medians["as trained", 1.0].items()]
    steps.axhline(never, color=REFERENCE, linestyle=":", linewidth=1)
    steps.annotate(
        "never", (1.0, never), (2, 2), ("axes fraction", "data"), "offset points", fontsize=8
    )
    steps.set(xscale="log", yscale="log", xlabel="learning rate", ylabel="steps of the second task")
    steps.legend(fontsize=7, frameon=False, loc="lower left")
    entropy = [head.entropy for head in heads]
    for name, marker, face in (("mean", "^", "none"), ("median", "o", UNSCALED)):
        ratio = np.exp([getattr(head, f"alone_{name}")[0] for head in heads])
        real.plot(
            entropy, ratio, marker, color=UNSCALED, markerfacecolor=face, markersize=4, label=name
        )
    grows, usual = (
        sum(ratio > 2 * error for ratio, error in (getattr(head, name) for head in heads))
        for name in ("alone_mean", "alone_median")
    )
    real.axhline(1.0, color=REFERENCE, linewidth=1)
    real.set(
        yscale="log", xlabel="entropy / log n, scaled (1: even)", ylabel="‖∂L/∂q‖: no scale / scale"
    )
    real.legend(fontsize=8, frameon=False, loc="lower right")
    least, most = min(times), max(each for each in times if np.isfinite(each))
    titles = {
        dead: f"d_k = {narrow}, as trained, dead for g:\n{means[0.5]:.0%} with 1/√d_k, "
        f"{means[0.0]:.0%} without",
        steps: f"Without the scale {least:.1f} to {most:.1f} times\nthe steps, or never",
        real: f"{len(heads)} real heads, one at a time:\nmean grows in {grows}, median in {usual}",
    }
    for panel, title in titles.items():
        panel.set_title(title, fontsize=10)
        panel.grid(alpha=0.25)
    return figure
