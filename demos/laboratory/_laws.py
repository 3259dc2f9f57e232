"""The figures in which a law of chapter 16 is drawn through what is measured: dots and lines."""

import math
from functools import cache

import numpy as np

from attention.figures import KINDS, REFERENCE, SCALED, UNSCALED, name_ends, name_place, new_figure
from attention.laboratory.over_training import SPREAD_OUT
from attention.scaling import median_gap, ties
from demos.laboratory._over_training import NOTHING

TOP = 2.3  # the top of a hill of medians, over ρ: measured, not derived
LEAST = 0.003  # ratio that is drawn for a key that fits: below, few queries say little
TIE = 2**0.5 * math.exp(-np.euler_gamma / 2)  # the factor of the law of the median, 1.06
rho = cache(ties)
delta = cache(median_gap)


def mean_law(n, m=0.0):
    """Return √(2/π) ρ, to which the mean of ‖∂L/∂q‖ goes for large s."""
    return math.sqrt(2 / math.pi) * rho(n, m)


def square_law(n, s):
    """Return ρ (s - ρ)/3, near the mean of ‖∂L/∂q‖² for large s."""
    return rho(n) * (s - rho(n)) / 3


def share_law(n, s):
    """Return 6ρ/(π s), to which (mean)²/mean square goes for s far above ρ."""
    return 6 * rho(n) / (math.pi * s)


def median_law(n, s):
    """Return 1.06 s exp(-s δ), near the median of ‖∂L/∂q‖ for large s."""
    return TIE * s * np.exp(-s * delta(n))


def equal_medians(n, scaled):
    """Return the d_k at which the law of the median has fallen to the median with the scale."""
    s = np.linspace(1 / delta(n), 100, 100_000)  # from the law's top on
    return float(np.interp(0, np.log(scaled / median_law(n, s)), s**2))


def hill_panel(panel, rows, raw=()):
    """Draw medians over s: dots at one width, circles at all others, dashed what is derived.

    rows  (s, measurement); raw  measurements without a scale, each at s = √d_k
    """
    ends = []
    for n, colour in zip(sorted({row.keys for _, row in rows}), KINDS, strict=False):
        line = sorted((s, row.gradient_median) for s, row in rows if row.keys == n)
        panel.plot(*zip(*line, strict=True), "o-", color=colour, markersize=4, linewidth=0.8)
        points = [(row.d_k**0.5, row.gradient_median) for row in raw if row.keys == n]
        if points:
            look = {"color": colour, "markersize": 6, "markerfacecolor": "none"}
            panel.plot(*zip(*points, strict=True), "o", **look)
        s = np.geomspace(1.5 / delta(n), line[-1][0])
        panel.plot(s, median_law(n, s), "--", color=colour)
        panel.plot([TOP * rho(n)] * 2, [1.5, 2.6], "-", color=colour, linewidth=2)
        ends.append((line[-1][1], f"{n:,} keys", colour))
    over_spread(panel, "median ‖∂L/∂q‖")
    panel.set_ylim(1e-5, 3)
    name_place(panel, 1.0, "1/√d_k", SCALED)
    name_place(panel, 8.0, "none, d_k = 64", UNSCALED)
    name_ends(panel, ends)


def over_spread(panel, name):
    """Set logarithmic axes, the spread s of the scores below, and a name at the left."""
    panel.set_xscale("log", base=2)
    panel.set_xticks([0.25, 1.0, 4.0, 16.0], ["¼", "1", "4", "16"])
    panel.set_yscale("log")
    panel.set_xlabel("s, the spread of the scores", fontsize=9)
    panel.set_ylabel(name, fontsize=9)
    panel.grid(alpha=0.25)


def plot_laws(rows, raw):
    """Draw median, mean, mean square and share over s for each number of keys, with their laws.

    rows, raw  as `hill_panel` takes them
    """
    figure = new_figure(9.4, 7.4)
    panels = figure.subplots(2, 2)
    hill_panel(panels[0, 0], rows, raw)
    panels[0, 0].set_title("the median is a hill with its top near 2.3 ρ\n", fontsize=10)
    mean = lambda row: row.gradient_mean
    square = lambda row: row.gradient_square
    share = lambda row: mean(row) ** 2 / square(row)
    laws = (
        ("mean ‖∂L/∂q‖", "the mean goes to √(2/π) ρ", mean, lambda n, s: mean_law(n)),
        ("mean ‖∂L/∂q‖²", "the mean square is near ρ (s - ρ)/3", square, square_law),
        ("(mean)² / mean square", "for s far above ρ this goes to 6ρ/(π s)", share, share_law),
    )
    for panel, (name, title, measured, law) in zip(panels.ravel()[1:], laws, strict=True):
        panel.set_title(title, fontsize=10)
        ends = []
        for n, colour in zip(sorted({row.keys for _, row in rows}), KINDS, strict=False):
            line = sorted((s, measured(row)) for s, row in rows if row.keys == n)
            panel.plot(*zip(*line, strict=True), "o", color=colour, markersize=4)
            s = np.geomspace(min(1.5 * rho(n), line[-1][0]), line[-1][0])
            panel.plot(s, [law(n, each) for each in s], "--", color=colour)
            ends.append((line[-1][1], f"{n:,} keys", colour))
        over_spread(panel, name)
        name_ends(panel, ends)
    return figure


def fit_panel(panel, rows):
    """Draw the ratio of the means over m for each number of keys, and dashed what is derived.

    rows  (keys, m, ratio of means, its relative standard error, mean with the scale)
    """
    ends = []
    for n, colour in zip(sorted({row[0] for row in rows}), KINDS, strict=False):
        _, m, ratio, error, scaled = zip(*(row for row in rows if row[0] == n), strict=True)
        ratio, error = np.array(ratio), np.array(error)
        panel.errorbar(m, ratio, ratio * error, fmt="o", color=colour, markersize=4, capsize=2)
        fine = np.linspace(m[0], m[-1], 61)
        of_scale = np.exp(np.interp(fine, m, np.log(scaled)))
        derived = [mean_law(n, x) for x in fine] / of_scale
        panel.plot(fine, derived, "--", color=colour)
        ends.append((derived[-1], f"{n:,} keys", colour))
    panel.axhline(1.0, color=REFERENCE, linewidth=1)
    panel.set_yscale("log")
    panel.set_ylim(LEAST, 100)
    panel.set_xlabel("m: by how far the right key stands out", fontsize=9)
    panel.set_ylabel("mean ‖∂L/∂q‖, no scale / scale", fontsize=9)
    panel.grid(alpha=0.25)
    name_ends(panel, ends)


def plot_fits(rows):
    """Draw the ratio of the means over how far the right key stands out, as `fit_panel` does."""
    figure = new_figure(6.4, 4.0)
    fit_panel(figure.subplots(), rows)
    return figure


def heads_panel(panel, trainings):
    """Draw each head's ratio of means at each look; filled if it has found a key."""
    looks = sorted({head.step for row in trainings for head in row.heads})
    for number, row in enumerate(trainings):
        aside = 0.5 * (number / len(trainings) - 0.5)
        for head in row.heads:
            face = "none" if head.kind == SPREAD_OUT else UNSCALED
            at = looks.index(head.step) + aside
            panel.plot(at, max(head.mean, NOTHING), "o", color=UNSCALED, mfc=face, ms=4)
    panel.axhline(1.0, color=REFERENCE, linewidth=1)
    panel.set_yscale("log")
    panel.set_xticks(range(len(looks)), [f"step {step}" for step in looks])
    panel.set_ylabel("mean ‖∂L/∂q‖, no scale / scale", fontsize=9)
    panel.grid(alpha=0.25)


def plot_summary(hill, fits, trainings, found):
    """Draw the report in three parts: the hill, a key that fits, and heads over a training.

    found  in how many heads the mean falls, as text
    """
    figure = new_figure(8.8, 7.2)
    panels = figure.subplot_mosaic([["hill", "fits"], ["training", "training"]])
    hill_panel(panels["hill"], hill)
    fit_panel(panels["fits"], fits)
    panels["hill"].set_title("No key fits: the median is a hill\n", fontsize=10)
    panels["fits"].set_title("A key fits by m: the mean vanishes, too\n", fontsize=10)
    heads_panel(panels["training"], trainings)
    panels["training"].set_title(f"Over a training the mean falls: {found}", fontsize=10)
    return figure
