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
    HALFWAY,
    KINDS,
    MODEL,
    REFERENCE,
    SCALED,
    UNSCALED,
    exponents_of,
    name_ends,
    name_place,
    new_figure,
    of_scale,
)
from attention.laboratory.basin import Outcome, Training
from attention.laboratory.chain import Factors
from attention.laboratory.freezing import Collapse, Lookup, freezing_line, limit
from attention.laboratory.sharpness import Sharpness, slope
from attention.laboratory.trained import SLOWED, TrainedHeads, steps_over_rates
from attention.scaling import deviation, summary

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FLOOR = 1e-12  # what is below is drawn here
FEW, MANY = 10, 400  # steps until a task is learned, from the palest cell to the darkest


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


def plot_freezing(rows: Sequence[Collapse]) -> Figure:
    """Chapter 16.3: the entropy of n Gaussian scores over their spread, and the limit n → ∞."""
    figure = new_figure(7.4, 4.0)
    panel = figure.subplots()
    by_n: dict[int, list[Collapse]] = {}
    for row in rows:
        by_n.setdefault(row.n, []).append(row)
    ends = []
    for (n, group), colour in zip(sorted(by_n.items()), KINDS, strict=False):
        group = sorted(group, key=lambda row: row.s)
        x = [row.s / freezing_line(n) for row in group]
        panel.plot(x, [row.entropy for row in group], "o-", color=colour, markersize=4)
        ends.append((group[-1].entropy, f"{n:,} keys", colour))
    part = np.linspace(0, max(row.s / freezing_line(row.n) for row in rows), 100)
    panel.plot(part, [limit(64, s * freezing_line(64)) for s in part], ":", color=REFERENCE)
    ends.append((0.0, "limit n → ∞", REFERENCE))
    panel.set(xlabel="s / √(2 ln n)", ylabel="entropy / log n", ylim=(-0.03, 1.03))
    panel.grid(alpha=0.25)
    name_place(panel, 1.0, "freezing line")
    nearest = [
        min(group, key=lambda row: abs(row.s - freezing_line(row.n)))
        for _, group in sorted(by_n.items())
    ]
    left = ", ".join(f"{row.entropy:.2f}" for row in nearest)
    panel.set_title(f"On the line {left} of the entropy log n are left", fontsize=10, pad=18)
    name_ends(panel, ends)
    return figure


def plot_lookup(rows: Sequence[Lookup]) -> Figure:
    """Chapter 16.3: what more keys do to the entropy, and to a key that stands out."""
    figure = new_figure(7.4, 5.6)
    names = {0.0: "1/√d_k", 0.5: "times √log n", 1.0: "times log n"}
    for panel, (field, axis) in zip(
        figure.subplots(2, 1, sharex=True),
        {"found": "weight of the key 6σ above", "entropy": "entropy / log n"}.items(),
        strict=True,
    ):
        ends, changes = [], []
        for b, colour, style in zip(sorted(names), (MODEL, HALFWAY, KINDS[4]), "os^", strict=True):
            group = sorted((row for row in rows if row.b == b), key=lambda row: row.n)
            values = np.array([getattr(row, field) for row in group])
            error = np.array([getattr(row, f"{field}_error") for row in group])
            _line(panel, [row.n for row in group], values, error, colour, f"{style}-")
            ends.append((values[-1], names[b], colour))
            changes.append(f"{values[0]:.2f} → {values[-1]:.2g} ({names[b]})")
        panel.set(ylabel=axis, ylim=(-0.03, 1.03), xscale="log")
        panel.set_title(", ".join(changes), fontsize=10)
        name_ends(panel, ends)
    panel.set_xlabel("n, the number of keys")
    numbers = [row.n for row in rows]
    figure.suptitle(f"From {min(numbers)} to {max(numbers):,} keys:", fontsize=11)
    return figure


def plot_sharpness(rows: Sequence[Sharpness]) -> Figure:
    """Chapter 16.4: the largest eigenvalue of the Hessian over d_k, for each exponent."""
    figure = new_figure(7.4, 4.4)
    panel = figure.subplots()
    found = summary(rows, by=("d_k", "a", "init"))
    (init,) = {row.init for row in rows}
    d_ks, ends, changes = sorted({row.d_k for row in rows}), [], []
    for a in exponents_of(rows):
        colour, name, style = of_scale(a)
        mean, spread = np.array([found[d_k, a, init]["sharpness"] for d_k in d_ks]).T
        _line(panel, d_ks, mean, spread, colour, style)
        rise, error = slope(d_ks, by_repeat(rows, a))
        ends.append((mean[-1], f"{name}\nslope {rise:.2f} ± {error:.2f}", colour))
        changes.append(f"{mean[-1] / mean[0]:.2g} ({name})")
    panel.set_yscale("log")
    told = f"From d_k = {d_ks[0]} to {d_ks[-1]} λ becomes {', '.join(changes)} times as large"
    panel.set_title(told, fontsize=10)
    panel.set(ylabel="largest eigenvalue with respect to W_q, W_k")
    _widths(panel, d_ks)
    name_ends(panel, ends)
    return figure


def by_repeat(rows: Sequence[Sharpness], a: float | str) -> np.ndarray[Any, Any]:
    """The sharpness at one exponent: a row for each repeat, a column for each d_k."""
    d_ks = sorted({row.d_k for row in rows})
    return np.array([[r.sharpness for r in rows if (r.d_k, r.a) == (d, a)] for d in d_ks]).T


def plot_basin(
    found: Mapping[tuple[str, str, float | str, int, float], Outcome], *, optimizer: str = "sgd"
) -> Figure:
    """Chapter 16.5: steps until the task is learned, over learning rate and d_k, for each scale.

    A cell has the mean number of steps, and a small number of how many trainings learned if not
    all did. Hatched: none learned; with ✕: all of them broke.
    """
    from matplotlib.colors import LogNorm
    from matplotlib.patches import Rectangle

    cells = {
        (a, d_k, lr): outcome
        for (with_optimizer, _, a, d_k, lr), outcome in found.items()
        if with_optimizer == optimizer
    }
    exponents = sorted({a for a, _, _ in cells}, key=lambda a: (isinstance(a, str), a))
    d_ks, rates = sorted({d_k for _, d_k, _ in cells}), sorted({lr for *_, lr in cells})
    figure = new_figure(7.6, 0.9 + 0.42 * len(d_ks) * len(exponents) + 0.35 * len(exponents))
    panels = figure.subplots(len(exponents), 1, sharex=True, squeeze=False)[:, 0]
    for panel, a in zip(panels, exponents, strict=True):
        steps = np.full((len(d_ks), len(rates)), np.nan)
        for i, d_k in enumerate(d_ks):
            for j, lr in enumerate(rates):
                each = cells.get((a, d_k, lr))
                if each is None:
                    continue
                if each.learned:
                    steps[i, j] = each.steps_mean
                    few = (
                        ""
                        if each.learned == each.trainings
                        else f"\n{each.learned} of {each.trainings}"
                    )
                    dark = np.log(steps[i, j] / FEW) < 0.5 * np.log(MANY / FEW)
                    colour = "white" if dark else "black"
                    text = f"{steps[i, j]:.0f}{few}"
                    panel.text(j, i, text, color=colour, fontsize=8, ha="center", va="center")
                else:
                    hatched: Any = {"hatch": "/////", "edgecolor": "#b5b5b5", "linewidth": 0}
                    panel.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, fill=False, **hatched))
                    if each.broke == each.trainings:
                        panel.text(j, i, "✕", color=UNSCALED, ha="center", va="center")
        panel.imshow(
            np.ma.masked_invalid(steps), cmap="Blues_r", norm=LogNorm(FEW, MANY), aspect="auto"
        )
        panel.set_yticks(range(len(d_ks)), [f"d_k = {d_k}" for d_k in d_ks], fontsize=9)
        panel.set_xticks(range(len(rates)), [f"{lr:g}" for lr in rates], fontsize=9)
        learned = [
            f"{lr:g}"
            for lr in rates
            if all(
                (each := cells.get((a, d_k, lr))) and each.learned == each.trainings for d_k in d_ks
            )
        ]
        told = f"every training learned at {', '.join(learned)}" if learned else "none works always"
        panel.set_title(f"{of_scale(a)[1]}: {told}", fontsize=10)
    panels[-1].set_xlabel("learning rate")
    return figure


def plot_entropies(trainings: Sequence[Training]) -> Figure:
    """Chapter 16.5: the entropy of the weights while a head learns, a line for each scale.

    The trainings have one d_k and one learning rate.
    """
    figure = new_figure(7.4, 4.0)
    panel = figure.subplots()
    ends, starts = [], []
    for a in exponents_of(trainings):
        colour, name, style = of_scale(a)
        group = [t for t in trainings if t.a == a]
        last = min(len(t.entropy) for t in group)
        values = np.array([t.entropy[:last] for t in group])
        steps = group[0].entropy_at[:last]
        _line(panel, steps, values.mean(axis=0), deviation(values), colour, style)
        ends.append((values[:, -1].mean(), name, colour))
        starts.append(f"{values[:, 0].mean():.2f} ({name})")
    panel.set_title(f"At the first step the entropy is {', '.join(starts)}", fontsize=10)
    panel.set(xlabel="step", ylabel="entropy / log n", xscale="log", ylim=(-0.03, 1.03))
    panel.grid(alpha=0.25)
    name_ends(panel, ends)
    return figure


def plot_trained(rows: Sequence[TrainedHeads], heads: Sequence[Any]) -> Figure:
    """Chapter 16.6: what is dead after a training, the second task's steps, and real heads.

    rows   trainings; the middle panel has those with every_rate=, at 1/√d_k
    heads  of real models: each has its entropy, and median and mean, the logarithms of ‖∂L/∂q‖
           without the scale over that with it, with their errors
    """
    figure = new_figure(10.4, 4.0)
    dead, steps, real = figure.subplots(1, 3)
    looks = {
        1.0: (SCALED, "s", "1/√d_k"),
        2.0: (REFERENCE, "^", "doubled"),
        0.0: (UNSCALED, "o", "no scale"),
    }
    shares: dict[float, list[float]] = {key: [] for key in looks}
    for row in rows:
        for end in row.end:
            away = end.change == "no scale" or (row.a == 0 and end.change == "as trained")
            key = 2.0 if end.change == "doubled" else 0.0 if away else 1.0
            colour, marker, _ = looks[key]
            face = colour if row.a else "none"
            dead.plot(end.dead, end.passed_dead, marker, color=colour, markerfacecolor=face)
            shares[key].append(end.passed_dead)
    for colour, marker, name in looks.values():
        dead.plot([], [], marker, color=colour, label=name)
    dead.set(xlabel="dead for the task's gradient", ylabel="dead for a random g")
    dead.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))
    dead.legend(fontsize=8, frameon=False, loc="upper left")
    means = [float(np.mean(shares[key])) for key in (1.0, 0.0)]
    dead.set_title(
        f"Dead for g: {means[0]:.0%} with 1/√d_k,\n{means[1]:.0%} without it", fontsize=10
    )
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
    finite = [each for each in times if np.isfinite(each)]
    steps.set_title(
        f"Without the scale {min(finite):.1f} to {max(finite):.1f} times\nthe steps, or never",
        fontsize=10,
    )
    entropy = [head.entropy for head in heads]
    for name, marker, face in (("mean", "^", "none"), ("median", "o", UNSCALED)):
        ratio = np.exp([getattr(head, name)[0] for head in heads])
        real.plot(
            entropy, ratio, marker, color=UNSCALED, markerfacecolor=face, markersize=4, label=name
        )
    grows = [sum(getattr(head, name)[0] > 0 for head in heads) for name in ("mean", "median")]
    real.axhline(1.0, color=REFERENCE, linewidth=1)
    real.set(
        yscale="log", xlabel="entropy / log n with the scale", ylabel="‖∂L/∂q‖: no scale / scale"
    )
    real.legend(fontsize=8, frameon=False, loc="lower right")
    real.set_title(
        f"{len(heads)} real heads: the mean grows in {grows[0]},\nthe median in {grows[1]}",
        fontsize=10,
    )
    for panel in (dead, steps, real):
        panel.grid(alpha=0.25)
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
