"""Demos · Texts: pictures of tensors with an axis of heads, as sheets of numbers.

The notebook "A step to step guide to understand attention mechanisms" draws its scores and weights
as blocks of shape (n, n, h), with the heads last, and stores them as (h, n, n), with the heads
first. `draw_orders` shows both for one small example, and along which axis each step works.
`draw_looks` shows where the heads of several layers look.

Legend: H heads, T queries, S keys, d_v features of a value in one head.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from attention.figures import REFERENCE, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = np.ndarray[Any, Any]

# In cells: from a sheet to the one behind it, from a sheet to the one beside it, and an arrow.
SHIFT, BESIDE, ARROW = 0.6, 0.6, 2.9


def draw_orders(
    words: Sequence[str], scores: Array, weights: Array, outputs: Array, joined: Array
) -> Figure:
    """Draw the steps from scores to joined features: above with heads last, below with heads first.

    scores, weights (H, T, S); outputs (H, T, d_v); joined (T, H · d_v). The second row of head 1
    has a frame: it is one of those that softmax makes sum to 1.
    """
    H, T, S = weights.shape
    figure = new_figure(7.8, 4.5)
    panel = figure.subplots()
    panel.set(xlim=(-3.7, 22.9), ylim=(13.7, -1.1), aspect="equal")
    panel.axis("off")

    # As the text draws them: a sheet for each head, one behind the other.
    top = 1.4
    _heading(panel, -0.7, f"As the text draws them, heads last: the weights are {(T, S, H)}")
    _rows(panel, top, words, "axis 0 ↓ queries")
    left = _stack(panel, scores, 0.0, top, "axis 1 → keys", "scores, scaled")
    _say(panel, S + 0.15, top + T - 0.1, "axis 2 ↗\nheads", ha="left")
    left = _arrow(panel, left, top + T / 2, "softmax sums\nalong axis 1,\nthe keys")
    _frame(panel, left, top + 1, S)
    left = _stack(panel, weights, left, top, "framed: weights[1, :, 0]", "weights", shaded=True)
    left = _arrow(panel, left, top + T / 2, "times V′")
    left = _stack(panel, outputs, left, top, "", "outputs")
    left = _arrow(panel, left, top + T / 2, "heads, axis 2,\nare joined\nalong axis 1")
    _joined(panel, joined, left, top, H)

    # As its code stores them: a list of sheets.
    top = 9.0
    _heading(panel, 6.9, f"As its code stores them, heads first: the weights are {(H, T, S)}")
    _rows(panel, top, words, "axis 1 ↓ queries", "axis 0 → heads")
    _frame(panel, 0.0, top + 1, S)
    left = _line(panel, weights, 0.0, top, "axis 2 → keys", "weights", shaded=True)
    _say(panel, S / 2, top + T + 1.4, "framed: weights[0, 1, :]")
    left = _arrow(panel, left, top + T / 2, "times V′")
    left = _line(panel, outputs, left, top, "", "outputs")
    left = _arrow(panel, left, top + T / 2, "joined along\naxis 1 of\neach sheet")
    _joined(panel, joined, left, top, H)
    return figure


def draw_looks(layers: Mapping[str, Array], words: Sequence[str]) -> Figure:
    """Draw the weights of each layer's heads, (H, n, n), as a row of maps with the layer's name."""
    rows, H = len(layers), len(next(iter(layers.values())))
    figure = new_figure(7.8, 1.15 * rows + 0.9)
    figure.set_layout_engine("compressed")
    panels = figure.subplots(rows, H, squeeze=False)
    for n, (name, weights) in enumerate(layers.items()):
        for head, (panel, looks) in enumerate(zip(panels[n], weights, strict=True)):
            image = panel.imshow(looks, cmap="Blues", vmin=0.0, vmax=1.0)
            panel.set_title(f"\nhead {head + 1}", fontsize=8, loc="left")
            panel.set_xticks(range(len(words)), words)
            panel.set_yticks(range(len(words)), words)
            panel.tick_params(length=1.5, labelsize=6.5, labelleft=head == 0)
            panel.tick_params(axis="x", rotation=90, labelbottom=n == rows - 1)
        above = (name, (0, 1), (0, 17), "axes fraction", "offset points")
        panels[n, 0].annotate(*above, fontsize=8).set_in_layout(False)  # it is as wide as two maps
    bar = figure.colorbar(image, ax=list(panels.ravel()), fraction=0.02, aspect=25)
    bar.set_label("weight of a key (column)\nfor a query (row)", fontsize=8)
    bar.ax.tick_params(labelsize=8)
    return figure


# ---------------------------------------------------- the parts of the first picture


def _stack(
    panel: Any,
    sheets: Array,
    left: float,
    top: float,
    below: str,
    name: str,
    *,
    shaded: bool = False,
) -> float:
    """Draw sheets one behind the other, numbers on the first; return their right end."""
    _, T, width = sheets.shape
    for head in reversed(range(len(sheets))):
        at = left + head * SHIFT, top - head * SHIFT
        _sheet(panel, sheets[head], *at, shaded=shaded, written=head == 0)
    back = (len(sheets) - 1) * SHIFT
    _say(panel, left + back + width / 2, top - back - 0.45, name)
    _say(panel, left + width / 2, top + T + 0.5, below)
    return left + width + back


def _line(
    panel: Any,
    sheets: Array,
    left: float,
    top: float,
    below: str,
    name: str,
    *,
    shaded: bool = False,
) -> float:
    """Draw sheets side by side, each with its index; return their right end."""
    _, T, width = sheets.shape
    _say(panel, left + width / 2, top + T + 0.5, below)
    for head, sheet in enumerate(sheets):
        _sheet(panel, sheet, left, top, shaded=shaded)
        _say(panel, left + width / 2, top - 0.45, f"{name}[{head}]")
        left += width + BESIDE
    return left - BESIDE


def _sheet(
    panel: Any, numbers: Array, left: float, top: float, *, shaded: bool, written: bool = True
) -> None:
    """Draw a rectangle of cells, blue where they are weights."""
    from matplotlib import colormaps
    from matplotlib.patches import Rectangle

    for (t, s), number in np.ndenumerate(numbers):
        colour = colormaps["Blues"](float(number)) if shaded else "white"
        cell = {"facecolor": colour, "edgecolor": REFERENCE, "linewidth": 0.6}
        panel.add_patch(Rectangle((left + s, top + t), 1, 1, **cell))
        if written:
            text = f"{number:.2f}".replace("0.", ".") if shaded else f"{number:.1f}"
            ink = "white" if shaded and number > 0.55 else "black"
            at = left + s + 0.5, top + t + 0.5
            panel.text(*at, text, fontsize=6.5, ha="center", va="center", color=ink)


def _joined(panel: Any, joined: Array, left: float, top: float, H: int) -> None:
    """Draw the features of all heads side by side, with a line between two heads."""
    T, width = joined.shape
    _sheet(panel, joined, left, top, shaded=False)
    _say(panel, left + width / 2, top - 0.45, "joined")
    for head in range(H):
        start = left + head * width / H
        _say(panel, start + width / H / 2, top + T + 0.5, f"head {head + 1}")
        if head:
            panel.plot([start, start], [top, top + T], color="black", linewidth=1.8)


def _frame(panel: Any, left: float, top: float, width: int) -> None:
    from matplotlib.patches import Rectangle

    drawn = {"fill": False, "edgecolor": "black", "linewidth": 1.8, "zorder": 5}
    panel.add_patch(Rectangle((left, top), width, 1, **drawn))


def _arrow(panel: Any, left: float, y: float, said: str) -> float:
    """Draw an arrow with words above it; return its right end."""
    ends = (left + ARROW - 0.4, y), (left + 0.4, y)
    panel.annotate("", *ends, arrowprops={"arrowstyle": "->", "color": REFERENCE})
    panel.text(
        *(left + ARROW / 2, y - 0.2, said), fontsize=7.5, ha="center", va="bottom", linespacing=1.1
    )
    return left + ARROW


def _rows(panel: Any, top: float, words: Sequence[str], below: str, above: str = "") -> None:
    """Write the words beside their rows, and the axis above or below them."""
    for t, word in enumerate(words):
        panel.text(-0.25, top + t + 0.5, word, fontsize=7.5, ha="right", va="center")
    _say(panel, -0.25, top + len(words) + 0.5, below, ha="right")
    _say(panel, -0.25, top - 0.45, above, ha="right")


def _heading(panel: Any, y: float, said: str) -> None:
    panel.text(-3.6, y, said, fontsize=10, va="center")


def _say(panel: Any, x: float, y: float, said: str, ha: str = "center") -> None:
    panel.text(x, y, said, fontsize=7.5, ha=ha, va="center", color="#555555")
