"""Demos · Texts: a picture of weights with an axis of heads, as it is drawn and as it is stored.

The notebook "A step to step guide to understand attention mechanisms" draws its weights as a block
of shape (n, n, h), with the heads last, and stores them as (h, n, n), with the heads first.

Legend: H heads, T queries, S keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from attention.figures import REFERENCE, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = np.ndarray[Any, Any]


def draw_orders(words: Sequence[str], weights: Array) -> Figure:
    """Draw the weights (H, T, S) one behind the other, heads last, and side by side, heads first.

    The second row of head 1 has a frame: it is one of those that softmax makes sum to 1.
    """
    H, T, S = weights.shape
    figure = new_figure(7.8, 2.6)
    panel = figure.subplots()
    panel.set(xlim=(-3.4, 3 * S + 6), ylim=(T + 1.6, -2.0), aspect="equal")
    panel.axis("off")
    for t, word in enumerate(words):
        panel.text(-0.25, t + 0.5, word, fontsize=8, ha="right", va="center")
    for head in reversed(range(H)):  # as the text draws them: the first sheet is in front
        _sheet(panel, weights[head], 0.6 * head, -0.6 * head, written=head == 0)
    stored = S + 4.6
    for head in range(H):
        _sheet(panel, weights[head], stored + head * (S + 0.6), 0, written=True)
        _say(panel, stored + head * (S + 0.6) + S / 2, -0.4, f"weights[{head}]")
    for left, row in ((0, "weights[1, :, 0]"), (stored, "weights[0, 1, :]")):
        x, y = (left, left + S, left + S, left, left), (1, 1, 2, 2, 1)
        panel.plot(x, y, color="black", linewidth=1.8, zorder=5)
        _say(panel, left + S / 2, T + 1.2, f"framed: {row}")
    _say(panel, S / 2, T + 0.4, "axis 1 → keys")
    _say(panel, stored + S / 2, T + 0.4, "axis 2 → keys")
    _say(panel, S + 0.9, T - 0.4, "axis 2 ↗ heads")
    panel.text(-0.3, -1.6, f"drawn, heads last: {(T, S, H)}", fontsize=10)
    panel.text(stored, -1.6, f"stored, heads first: {(H, T, S)}", fontsize=10)
    return figure


def _sheet(panel: Any, numbers: Array, left: float, top: float, *, written: bool) -> None:
    """Draw the numbers of one head as blue cells."""
    T, S = numbers.shape
    edges = left + np.arange(S + 1), top + np.arange(T + 1)
    style = {"cmap": "Blues", "vmin": 0, "vmax": 1, "edgecolors": REFERENCE, "linewidth": 0.6}
    panel.pcolormesh(*edges, numbers, **style)
    for (t, s), number in np.ndenumerate(numbers) if written else ():
        ink, text = "white" if number > 0.55 else "black", f"{number:.2f}".replace("0.", ".")
        at = left + s + 0.5, top + t + 0.5
        panel.text(*at, text, fontsize=7.5, ha="center", va="center", color=ink)


def _say(panel: Any, x: float, y: float, said: str) -> None:
    ha = "left" if "↗" in said else "center"
    panel.text(x, y, said, fontsize=8, ha=ha, va="center", color="#555555")
