"""17.1 · Figures: pictures of what chapter 16 measured.

What should a picture of a measurement show? The numbers, their spread over repeats, and the
comparison that the text makes, with a name on every axis. Each function here takes data and returns
a matplotlib `Figure`; `save_figure` writes it, without a display.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from attention.scaling import Saturation, summary
from minigrad.runs.saving import write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RAW, SCALED = "#c2571a", "#2b6ca3"  # without and with the scale, told apart by lightness too


# The six panels: the lines each holds, its title, and whether its y axis is logarithmic.
PANELS: tuple[tuple[tuple[tuple[str, str], ...], str, bool], ...] = (
    ((("score_variance", "o-"),), "variance of the scores", True),
    ((("entropy", "o-"),), "entropy of the weights / log n", False),
    ((("largest_weight", "o-"),), "largest weight (median query)", False),
    (
        (("gradient_mean", "s:"), ("gradient_median", "o-")),
        "‖∂L/∂q‖: mean (dotted) and median",
        True,
    ),
    ((("dead_share", "o-"),), "dead queries (‖∂L/∂q‖ < 0.001)", False),
    ((("top_tenth_share", "o-"),), "squared gradient held by the top tenth", False),
)


def plot_sweep(rows: Sequence[Saturation]) -> Figure:
    """Chapter 16's sweep in six panels: each measurement over d_k, raw and scaled, ± spread."""
    found = summary(rows)
    d_ks = sorted({d_k for d_k, _ in found})
    figure = new_figure(11.0, 6.4)
    for panel, (lines, title, logarithmic) in zip(
        figure.subplots(2, 3).ravel(), PANELS, strict=True
    ):
        for scaled, colour, label in ((False, RAW, "no scale"), (True, SCALED, "1/√d_k")):
            for name, style in lines:
                mean, spread = np.array([found[d_k, scaled][name] for d_k in d_ks]).T
                panel.plot(d_ks, mean, style, color=colour, label=label, markersize=4)
                panel.fill_between(
                    d_ks,
                    np.maximum(mean - spread, mean / 10 if logarithmic else 0.0),
                    mean + spread,
                    color=colour,
                    alpha=0.15,
                    linewidth=0,
                )
        panel.set_xscale("log", base=2)
        panel.set_xticks(d_ks, [str(d_k) for d_k in d_ks], fontsize=8)
        if logarithmic:
            panel.set_yscale("log")
        else:
            panel.set_ylim(-0.03, 1.03)
        panel.set_title(title, fontsize=10)
        panel.set_xlabel("d_k", fontsize=9)
        panel.grid(alpha=0.25)
    figure.axes[0].legend(fontsize=9)
    return figure


def save_figure(figure: Figure, path: str | Path) -> list[Path]:
    """Write the figure as path.png and path.svg, each whole or not at all; return both paths."""
    written = []
    for ending, options in (("png", {"dpi": 130}), ("svg", {"metadata": {"Date": None}})):
        content = io.BytesIO()
        figure.savefig(content, format=ending, **options)
        written.append(write_whole(Path(path).with_suffix(f".{ending}"), content.getvalue()))
    return written


def new_figure(width: float, height: float) -> Figure:
    """A figure that needs no display and no global state, unlike those that pyplot makes."""
    try:
        from matplotlib import rcParams
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError(
            'drawing a figure needs matplotlib: pip install "minigrad-attention[demos]"'
        ) from None
    rcParams["svg.hashsalt"] = "minigrad"  # equal figures give equal SVG text
    return Figure(figsize=(width, height), layout="constrained")
