"""The figures of the first two sections: the map and the distributions."""

import numpy as np

from attention.figures import OF_SCALE, REFERENCE, SCALED, new_figure

HEADS = {  # d_k and trained context of well-known heads
    "BERT": (64, 512),
    "GPT-2": (64, 1024),
    "Llama 2": (128, 4096),
}


def plot_map(maps, derived=None):
    """Draw maps over d_k and n: the median ‖∂L/∂q‖ without the scale divided by that with it.

    In each cell is the ratio, and its colour says whose gradient is larger. The line is where both
    are equal; the dotted one is the freezing line (chapter 16.3), where the scores without a scale
    spread by √(2 ln n).

    maps     (title, deviation of the entries of q and k, cells)
    derived  number of keys → the d_k of equal medians by a law, dashed on the first map
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
        if derived and panel is panels[0]:
            law = np.interp(np.log([derived[n] for n in ns]), np.log(d_ks), np.arange(len(d_ks)))
            panel.plot(law, np.arange(len(ns)), "--", color=SCALED, linewidth=1.2)
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
    """Return a ratio in a few letters: 27, 4.9, .2, <.01. (Few draws do not tell small ones.)"""
    if ratio < 0.01:
        return "<.01"
    digits = 2 if ratio >= 0.95 else 1
    return f"{ratio:.0f}" if ratio >= 9.95 else f"{ratio:.{digits}g}".removeprefix("0")


def plot_distributions(points):
    """Draw the share of queries below each ‖∂L/∂q‖, without the scale and with it, for each title.

    points  (title, norms without the scale, norms with it, and the mean that is derived without
            it); the circles are the means, and the cross is the one that is derived
    """
    figure = new_figure(3.0 * len(points) + 0.6, 3.0)
    panels = figure.subplots(1, len(points), squeeze=False, sharey=True)[0]
    for panel, (title, *both, derived) in zip(panels, points, strict=True):
        for norms, a in zip(both, (0.0, 0.5), strict=True):
            colour, name, _ = OF_SCALE[a]
            norms = np.sort(np.maximum(norms, 1e-7))
            share = (np.arange(norms.size) + 0.5) / norms.size
            panel.plot(norms, share, "--" if a == 0 else "-", color=colour, label=name)
            panel.plot(norms.mean(), np.mean(norms < norms.mean()), "o", color=colour, markersize=5)
            if a == 0:
                panel.plot(derived, np.mean(norms < derived), "x", color=colour, markersize=7)
        panel.axhline(0.5, color=REFERENCE, linewidth=0.8)
        panel.set_xscale("log")
        panel.set_xlim(1e-6, 100)
        panel.set_xlabel("‖∂L/∂q‖", fontsize=9)
        panel.set_title(title, fontsize=9)
        panel.grid(alpha=0.25)
    panels[0].set_ylabel("share of queries below", fontsize=9)
    panels[0].legend(fontsize=8, loc="upper left")
    return figure
