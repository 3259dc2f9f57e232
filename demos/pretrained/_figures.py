"""Demos · Pretrained: the pictures, in the colours of the scale, as in `attention/figures.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from attention.figures import OF_SCALE, REFERENCE, SCALED, UNSCALED, name_ends, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_factor(factors: Sequence[float], losses: Mapping[str, Sequence[float]]) -> Figure:
    """Draw the loss over a factor on the trained scale, a line for each text.

    The first factor is 0, which has no place on a logarithmic axis: it stands at the left edge.
    """
    figure = new_figure(7.0, 3.6)
    panel = figure.subplots()
    places = np.log2([factors[1] / 2, *factors[1:]])
    for style, values in zip(("o-", "s--", "^:"), losses.values(), strict=False):
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


def plot_ratios(
    names: Sequence[str],
    median: np.ndarray[Any, Any],
    mean: np.ndarray[Any, Any],
    *,
    title: str,
) -> Figure:
    """Draw ‖∂L/∂q‖ without the scale over that with it, for each head: median and mean, ± 2 errors.

    median, mean   (texts, heads) logarithms of the ratios
    """
    figure = new_figure(7.4, 3.9)
    panel = figure.subplots()
    panel.set_yscale("log")
    panel.axhline(1.0, color=REFERENCE, linewidth=1)
    at = np.arange(len(names))
    for values, style, face, shift in ((median, "o", UNSCALED, -0.12), (mean, "^", "none", 0.12)):
        middle = values.mean(axis=0)
        error = 2 * values.std(axis=0, ddof=1) / np.sqrt(len(values))
        low, high = np.exp(middle - error), np.exp(middle + error)
        panel.vlines(at + shift, low, high, color=UNSCALED, linewidth=1.4)
        panel.plot(at + shift, np.exp(middle), style, color=UNSCALED, markerfacecolor=face)
    panel.set_xticks(at, names, fontsize=8)
    panel.set(xlabel="block.head", ylabel="‖∂L/∂q‖ without the scale / with it")
    panel.set_title(title, fontsize=10)
    panel.grid(alpha=0.25, axis="y")
    ends = [(np.exp(mean[:, -1].mean()), "△ mean", UNSCALED)]
    name_ends(panel, [*ends, (np.exp(median[:, -1].mean()), "● median", UNSCALED)])
    return figure


def plot_recovery(
    losses: Mapping[tuple[str, int, float], Any], looks: Sequence[int], trained: Sequence[float]
) -> Figure:
    """Draw both losses over the steps, a line for each part that learns and each start.

    losses   (part, texts, a): an array (2, seeds, looks), of the learned texts and of others
    looks    the steps after which they were taken; trained are the losses with the trained scale
    """
    figure = new_figure(8.6, 4.2)
    panels = figure.subplots(1, 2, sharey=True)
    least = min(texts for _, texts, _ in losses)
    for panel, values_of, line, title in zip(
        panels, (0, 1), trained, ("learned texts", "other texts"), strict=True
    ):
        panel.axhline(line, color=SCALED, linewidth=1.2)
        ends = [(line, "1/√d_k, as it was", SCALED)]
        for (part, texts, a), both in losses.items():
            values = np.asarray(both)[values_of]
            steps = looks[: values.shape[1]]
            style = "^:" if part == "temperatures" else "o-" if texts == least else "s--"
            colour, start, _ = OF_SCALE[a]
            name = "temperatures" if part == "temperatures" else f"W_Q, W_K, {texts} texts"
            panel.plot(steps, values.mean(axis=0), style, color=colour, markersize=4)
            ends.append((values[:, -1].mean(), f"{start}: {name}", colour))
        panel.set(xlabel="step")
        panel.set_title(f"loss on {title}", fontsize=10)
        panel.grid(alpha=0.25)
        if panel is panels[-1]:
            name_ends(panel, ends)
    panels[0].set_ylabel("loss")
    figure.suptitle("W_Q and W_K overfit a few texts; temperatures learn the scale", fontsize=10)
    return figure
