"""Figures: one palette for all pictures, names for their lines, and saving.

Blue is for what goes forward, and orange for what goes back. A comparison is ink against crimson,
and solid against dashed; a third line is grey. Colours that occur together differ in lightness, so
a grey print shows the difference, and so does an eye that confuses red and green. Each of them has
a contrast of 3 : 1 or more on white, which is the ground of every figure.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from minigrad import write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK, CRIMSON, GREY = "#1b1b1f", "#b3204d", "#85858f"
UNSCALED, SCALED, SCALED_TWICE = CRIMSON, INK, GREY  # times 1, 1/√d_k, 1/d_k
# The exponent a of the scale d_k^-a: colour, name, style of line.
OF_SCALE: dict[float | str, tuple[str, str, str]] = {
    0.0: (UNSCALED, "no scale", "o--"),
    0.5: (SCALED, "1/√d_k", "s-"),
    1.0: (SCALED_TWICE, "1/d_k", "d-."),
}
MODEL, ABLATION = INK, CRIMSON  # a demo's model, and the same model with one part missing
TEXT, HALFWAY, UNIT = CRIMSON, GREY, INK  # a source's numbers, and two repairs
MAMMAL, REPTILE = "#6b3d14", "#3f9b2f"  # the two questions of one source
KINDS = ("#14104f", "#7d1d4f", "#56670f", "#8f66c9", "#b98a00")  # classes of data, such as animals
REFERENCE = "#757575"  # only for comparison: chance, a pass mark, theory


# How d_k is set in an SVG. (The last part brings the line back up.)
D_K = (
    '<tspan font-style="italic">d</tspan><tspan font-size="75%" dy="2">k</tspan>'
    '<tspan dy="-2">\u200b</tspan>'
)


def of_scale(a: float | str) -> tuple[str, str, str]:
    """Return colour, name and line style of the scale d_k^-a: grey unless a is 0, ½ or 1."""
    name = a if isinstance(a, str) else f"d_k^-{a:g}"  # (a function of d_k is a name in a row)
    return OF_SCALE.get(a, (REFERENCE, name, "x:"))


def name_ends(panel: Any, ends: Sequence[tuple[float, str, str]]) -> None:
    """Write names at the right edge, each at the height where its line ends; they do not touch.

    `ends` has (height, name, colour) of each line. The panel's limits must be final.
    """
    panel.set_ylim(panel.get_ylim())
    inches = panel.get_position().height * panel.figure.get_figheight()
    ends = sorted(ends, key=lambda end: end[0])
    heights = panel.transData.transform([(1.0, height) for height, _, _ in ends])
    at = np.clip(panel.transAxes.inverted().transform(heights)[:, 1], 0, 1)
    sizes = np.array([name.count("\n") + 1 for _, name, _ in ends]) * 12 / 72 / inches
    for _ in range(100):  # two names that touch move apart, each by half of what is missing
        for i in range(len(ends) - 1):
            missing = (sizes[i] + sizes[i + 1]) / 2 - (at[i + 1] - at[i])
            at[i : i + 2] += np.array([-0.5, 0.5]) * max(missing, 0.0)
    for y, (_, name, colour) in zip(at, ends, strict=True):
        panel.annotate(
            name,
            xy=(1.0, y),
            xytext=(5, 0),
            xycoords="axes fraction",
            textcoords="offset points",
            color=colour,
            fontsize=9,
            va="center",
        )


def name_place(
    panel: Any, x: float, name: str, colour: str = REFERENCE, ha: str = "center"
) -> None:
    """Draw a dotted line from top to bottom, with its name above the frame, aligned by `ha`."""
    panel.axvline(x, color=colour, linestyle=":", linewidth=1.4)
    above = (name, (x, 1.0), (0, 3), ("data", "axes fraction"), "offset points")
    panel.annotate(*above, color=colour, fontsize=9, ha=ha)


def save_figure(figure: Figure, path: str | Path) -> list[Path]:
    """Write the figure as path.png and path.svg, each whole or not at all; return both paths."""
    png, svg = io.BytesIO(), io.BytesIO()
    figure.savefig(png, format="png", dpi=130)
    figure.set_layout_engine("none")  # (the panels are arranged, which took half of the time)
    figure.savefig(svg, format="svg", metadata={"Date": None})
    drawn = re.sub(' id="image[0-9a-f]+"', "", svg.getvalue().decode())  # equal ones had equal ids
    drawn = re.sub("(?<!<!-- )\\bd_k\\b", D_K, drawn)
    return [write_whole(f"{path}.png", png.getvalue()), write_whole(f"{path}.svg", drawn)]


def new_figure(width: float, height: float) -> Figure:
    """Return a figure that needs no display and no global state, unlike those of pyplot."""
    try:
        from matplotlib import rcParams
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("drawing a figure needs matplotlib: pip install matplotlib") from None
    rcParams["svg.fonttype"] = "none"  # text stays text
    rcParams["svg.hashsalt"] = "minigrad"  # equal figures give equal SVG text
    return Figure(figsize=(width, height), layout="constrained")
