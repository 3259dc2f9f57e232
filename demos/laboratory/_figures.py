"""The figures of the first three sections: the map, the distributions and the hill."""

import numpy as np

from attention.figures import (
    KINDS,
    OF_SCALE,
    REFERENCE,
    SCALED,
    UNSCALED,
    name_ends,
    name_place,
    new_figure,
)

HEADS = {  # d_k and trained context of well-known heads
    "BERT": (64, 512),
    "GPT-2": (64, 1024),
    "Llama 2": (128, 4096),
}


def plot_map(maps):
    """Draw maps over d_k and n: the median ‖∂L/∂q‖ without the scale divided by that with it.

    In each cell is the ratio, and its colour says whose gradient is larger. The line is where both
    are equal; the dotted one is the freezing line (chapter 16.3), where the scores without a scale
    spread by √(2 ln n).

    maps  (title, deviation of the entries of q and k, cells)
    """
    figure = new_figure(4.6 * len(maps) + 0.6, 4.4)  # (ImportError, in a sentence)
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.patheffects import withStroke

    shade = LinearSegmentedColormap.from_list("larger", ["#e2a1b4", "#ffffff", "#9d9da6"])
    panels = figure.subplots(1, len(maps), squeeze=False, sharey=True)[0]
    for panel, (title, deviation, cells) in zip(panels, maps, strict=True):
        d_ks, ns = (sorted({getattr(cell, name) for cell in cells}) for name in ("d_k", "keys"))
        logs = np.full((len(ns), len(d_ks)), np.nan)
        for cell in cells:
            place = ns.index(cell.keys), d_ks.index(cell.d_k)
            logs[place] = np.log10(cell.median)
            at = place[1], place[0] - 0.14
            number = panel.text(*at, ratio_in_words(cell.median), ha="center", va="center", size=8)
            number.set_path_effects([withStroke(linewidth=2, foreground="white", alpha=0.8)])
        panel.pcolormesh(np.clip(logs, -2, 2), cmap=shade, vmin=-2, vmax=2, shading="nearest")
        panel.contour(logs, levels=[0.0], colors=[SCALED], linewidths=1.6)
        frozen = np.log(2 * np.log(ns) / deviation**4)
        freezing = np.interp(frozen, np.log(d_ks), np.arange(len(d_ks)), np.nan, np.nan)
        panel.plot(freezing, np.arange(len(ns)), ":", color=SCALED, linewidth=1.4)
        for name, (d_k, n) in HEADS.items():
            if d_ks[0] <= d_k <= d_ks[-1] and ns[0] <= n <= ns[-1]:
                x, y = (
                    float(np.interp(np.log(at), np.log(ticks), np.arange(len(ticks))))
                    for at, ticks in ((d_k, d_ks), (n, ns))
                )
                panel.plot(x, y + 0.1, "o", color=SCALED, markersize=3)
                above = (name, (x, y + 0.1), (4, 1), "data", "offset points")
                panel.annotate(*above, size=7, color=SCALED)
        panel.set_xticks(np.arange(len(d_ks)), [str(d_k) for d_k in d_ks], size=8)
        panel.set_yticks(np.arange(len(ns)), [f"{n:,}" for n in ns], size=8)
        panel.set_xlabel("d_k", fontsize=9)
        panel.set_title(title, fontsize=9)
    panels[0].set_ylabel("keys", fontsize=9)
    return figure


def ratio_in_words(ratio):
    """Return a ratio in a few letters: 27, 4.9, .24, 5e-4."""
    if ratio < 0.01:
        return f"{ratio:.0e}".replace("e-0", "e-")
    return f"{ratio:.0f}" if ratio >= 9.95 else f"{ratio:.2g}".removeprefix("0")


def plot_distributions(points):
    """Draw the share of queries below each ‖∂L/∂q‖, without the scale and with it, for each title.

    points  (title, norms without the scale, norms with it); the circles are the means
    """
    figure = new_figure(3.0 * len(points) + 0.6, 3.0)
    panels = figure.subplots(1, len(points), squeeze=False, sharey=True)[0]
    for panel, (title, *both) in zip(panels, points, strict=True):
        for norms, a in zip(both, (0.0, 0.5), strict=True):
            colour, name, _ = OF_SCALE[a]
            norms = np.sort(np.maximum(norms, 1e-7))
            share = (np.arange(norms.size) + 0.5) / norms.size
            panel.plot(norms, share, "--" if a == 0 else "-", color=colour, label=name)
            panel.plot(norms.mean(), np.mean(norms < norms.mean()), "o", color=colour, markersize=5)
        panel.axhline(0.5, color=REFERENCE, linewidth=0.8)
        panel.set_xscale("log")
        panel.set_xlim(1e-6, 100)
        panel.set_xlabel("‖∂L/∂q‖", fontsize=9)
        panel.set_title(title, fontsize=9)
        panel.grid(alpha=0.25)
    panels[0].set_ylabel("share of queries below", fontsize=9)
    panels[0].legend(fontsize=8, loc="upper left")
    return figure


def plot_hill(rows, raw):
    """Draw the median of ‖∂L/∂q‖ over the spread s of the scores: a hill for each number of keys.

    rows  (s, measurement) for the lines; raw  measurements without a scale, each a point at √d_k
    """
    figure = new_figure(6.4, 4.0)
    panel = figure.subplots()
    ends = []
    for n, colour in zip(sorted({row.keys for _, row in rows}), KINDS, strict=False):
        line = sorted((s, row.gradient_median) for s, row in rows if row.keys == n)
        panel.plot(*zip(*line, strict=True), "-", color=colour)
        points = [(row.d_k**0.5, row.gradient_median) for row in raw if row.keys == n]
        if points:
            panel.plot(*zip(*points, strict=True), "o", color=colour, markersize=4)
        ends.append((line[-1][1], f"{n:,} keys", colour))
    panel.set_xscale("log", base=2)
    panel.set_yscale("log")
    panel.set_ylim(1e-5, 3)
    panel.set_xlabel("s, the spread of the scores", fontsize=9)
    panel.set_ylabel("median ‖∂L/∂q‖", fontsize=9)
    panel.grid(alpha=0.25)
    name_place(panel, 1.0, "1/√d_k: every width", SCALED)
    name_place(panel, 8.0, "no scale, d_k = 64", UNSCALED)
    name_ends(panel, ends)
    return figure
