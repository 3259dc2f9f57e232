"""The figure of chapter 16's sweep, each measurement over d_k for each scale, and its numbers."""

import math

import numpy as np

from attention.figures import OF_SCALE, name_ends, new_figure
from attention.scaling import summary

# The six panels. Each has its lines, the name of its y axis, whether that axis is logarithmic, and
# what is found without the scale at the largest d_k.
PANELS = (
    (("score_variance",), "variance", True, "the scores have variance {score_variance:,.0f}"),
    (("entropy",), "entropy / log n", False, "the entropy is {entropy:.2f} (equal weights: 1)"),
    (("largest_weight",), "weight", False, "a median query puts {largest_weight:.2f} on one key"),
    (
        ("gradient_median", "gradient_mean"),
        "‖∂L/∂q‖",
        True,
        "the median gradient is {gradient_median:.2g}, the mean {gradient_mean:.2g}",
    ),
    (
        ("dead_share",),
        "share of ‖∂L/∂q‖ < 0.001",
        False,
        "{dead_share:.0%} of the queries are dead",
    ),
    (
        ("top_tenth_share",),
        "share of ‖∂L/∂q‖²",
        False,
        "a tenth of the queries has {top_tenth_share:.0%} of ‖∂L/∂q‖²",
    ),
)


def plot_sweep(rows):
    """Draw chapter 16's sweep in six panels: each measurement over d_k, without and with the scale.

    The bands are ± the spread. The titles say what is found without the scale.
    """
    found = summary(rows)
    d_ks = sorted({d_k for d_k, _ in found})
    last = {name: mean for name, (mean, _) in found[d_ks[-1], 0.0].items()}
    figure = new_figure(7.4, 7.0)
    for panel, (names, axis, logarithmic, finding) in zip(
        figure.subplots(3, 2).ravel(), PANELS, strict=True
    ):
        ends = []
        for a in (0.0, 0.5):
            colour, label, style = OF_SCALE[a]
            for name in names:
                mean, spread = np.array([found[d_k, a][name] for d_k in d_ks]).T
                is_mean = name == "gradient_mean"
                panel.plot(d_ks, mean, "^:" if is_mean else style, color=colour, markersize=4)
                low = np.maximum(mean - spread, mean / 10 if logarithmic else 0.0)
                panel.fill_between(d_ks, low, mean + spread, color=colour, alpha=0.15, linewidth=0)
                what = f"\n{name.removeprefix('gradient_')}" if len(names) > 1 else ""
                ends.append((mean[-1], label + what, colour))
        panel.set_xscale("log", base=2)
        panel.set_xticks(d_ks[::2], [str(d_k) for d_k in d_ks[::2]])
        if logarithmic:
            panel.set_yscale("log")
        else:
            panel.set_ylim(-0.03, 1.03)
        panel.set_title(finding.format(**last), fontsize=9)
        panel.set_xlabel("d_k", fontsize=9)
        panel.set_ylabel(axis, fontsize=9)
        panel.grid(alpha=0.25)
        name_ends(panel, ends)
    figure.suptitle(f"Without the scale, at d_k = {d_ks[-1]}:", fontsize=11)
    return figure


def plus_minus(mean, spread):
    """Return a mean and its spread as text, with the decimals that the spread's first digit has."""
    if math.isnan(spread):  # of a single value
        return f"{mean:.4g}"
    decimals = 0 if spread == 0 else min(max(-math.floor(math.log10(spread)), 0), 6)
    return f"{mean:.{decimals}f} ± {spread:.{decimals}f}"
