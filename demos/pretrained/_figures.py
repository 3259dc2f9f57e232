"""Demos · Pretrained: the pictures, in the colours of the scale, as in `attention/figures.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from attention.figures import REFERENCE, SCALED, UNSCALED, name_ends, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_ratios(models: Mapping[str, tuple[Any, Any, Any]]) -> Figure:
    """Draw ‖∂L/∂q‖ without the scale over that with it, for each head: median and mean, ± 2 errors.

    models   by name: entropies (heads,), logarithms of both ratios (2, heads), and their errors
    """
    figure = new_figure(7.6, 4.0)
    panels = figure.subplots(1, len(models), sharex=True, sharey=True)
    for panel, (name, (entropy, ratios, errors)) in zip(panels, models.items(), strict=True):
        panel.axhline(1.0, color=REFERENCE, linewidth=1)
        for middle, error, style, face, average in zip(
            ratios, errors, "o^", (UNSCALED, "none"), ("median", "mean"), strict=True
        ):
            low, high = np.exp(middle - 2 * error), np.exp(middle + 2 * error)
            panel.vlines(entropy, low, high, color=UNSCALED, linewidth=1, alpha=0.6)
            looks = {"color": UNSCALED, "markerfacecolor": face, "markersize": 5}
            panel.plot(entropy, np.exp(middle), style, **looks, label=f"{average} over the queries")
        panel.set(yscale="log", xlabel="entropy / log n with the scale (1: equal weights)")
        panel.set_title(f"{name}: {len(entropy)} heads", fontsize=10)
        panel.grid(alpha=0.25)
    panels[0].set_ylabel("‖∂L/∂q‖ without the scale / with it")
    panels[0].legend(fontsize=9, loc="lower right")
    return figure


def plot_factor(factors: Sequence[float], losses: Mapping[str, Sequence[float]]) -> Figure:
    """Draw the loss over a factor on the trained scale, a line for each text.

    The first factor is 0, which has no place on a logarithmic axis: it stands at the left edge.
    """
    figure = new_figure(7.0, 3.6)
    panel = figure.subplots()
    places = np.log2([factors[1] / 2, *factors[1:]])
    for style, values in zip(("o-", "s--", "^:"), losses.values(), strict=True):
        panel.plot(places[1:], values[1:], style, color=REFERENCE, markersize=4)
        panel.plot(places[0], values[0], style[0], color=REFERENCE, markersize=5)
        for factor, colour in ((1.0, SCALED), (factors[-1], UNSCALED)):
            i = list(factors).index(factor)
            panel.plot(places[i], values[i], style[0], color=colour, markersize=7)
    panel.set_xticks(places, [f"{factor:.3g}" for factor in factors])
    panel.set(xlabel="factor on the trained scale 1/√d_k", ylabel="loss")
    panel.set_title("The loss is smallest near the scale of the training", fontsize=10)
    panel.grid(alpha=0.25)
    name_ends(panel, [(values[-1], name, REFERENCE) for name, values in losses.items()])
    return figure
