"""Demos · Training curves: pictures of trainings, and a model judged beside its ablation.

A line is a mean over neighbouring steps, and the band around it goes from their lower to their
upper quartile. Each line has its name at its end. On a logarithmic axis the mean is that of the
logarithms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from attention.figures import ABLATION, MODEL, REFERENCE, name_ends, new_figure
from demos._training import Run

if TYPE_CHECKING:
    from demos.pages.publish import Published


class Line(NamedTuple):
    """A line of a picture, with one measured value for each step."""

    name: str
    values: Sequence[float]
    colour: str
    style: str = "-"


def compare(
    page: Published,
    claim: str,
    model: tuple[Run, float],
    ablation: tuple[Run, float],
    *,
    choices: int,
    at_least: float,
    at_most: float,
    counted: str,
    scored: str,
) -> None:
    """Judge and draw a model and its ablation, each with its run and its score in the end.

    choices  how many answers there are: a guess is right once in so many
    counted  what is counted in a training step
    scored   what the final score counts
    """
    figure = new_figure(5.4, 6.4)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    lines = []
    ends = []
    alt = ""
    for (run, score), colour, style in ((model, MODEL, "-"), (ablation, ABLATION, "--")):
        lines.append(Line(run.what, run.losses, colour, style))
        draw_line(below, run.history["accuracy"], colour, centred, style)
        below.plot(1.02 * run.steps, score, "D", color=colour, markersize=6, clip_on=False)
        ends.append((score, f"{run.what}: {score:.1%}", colour))
        alt += f"{run.what.capitalize()}: the loss goes from {run.losses[0]:.2g} to "
        alt += f"{np.mean(run.losses[-20:]):.2g}, and {score:.1%} of the {scored} are right. "
    draw_losses(above, lines, {f"chance: ln {choices}": np.log(choices)})
    levels = {f"chance: {1 / choices:.0%}": 1 / choices, f"pass mark: {at_least:.0%}": at_least}
    below.set_ylim(-0.04, 1.04)
    name_ends(below, ends + draw_levels(below, levels))
    below.set(xlabel="step", ylabel=f"{counted} right\n◆ {scored}")
    below.grid(alpha=0.25)
    figure.suptitle(claim, fontsize=11)
    caption = f"The loss, and the share of {counted} that are right, at each step"
    page.figure(figure, "loss", alt=alt.strip(), caption=caption)
    losses = ablation[0].losses
    page.say(
        "The ablation has trained: the mean of its last 20 losses is "
        f"{np.mean(losses[-20:]) / losses[0]:.2f} of the first."
    )
    page.marks.at_least(model[0].what, model[1], at_least)
    page.marks.at_most(f"ablation, {ablation[0].what}", ablation[1], at_most)
    page.marks.trained("ablation", losses)


def draw_losses(panel: Any, lines: Sequence[Line], levels: Mapping[str, float]) -> None:
    """Draw named losses on a logarithmic axis; a run that broke with NaN ends in a ✕."""
    from matplotlib.ticker import LogLocator, NullFormatter

    panel.set_yscale("log")
    last = max(len(line.values) for line in lines)
    drawn = [draw_line(panel, line.values, line.colour, smoothed, line.style) for line in lines]
    top = 3 * max(*(values[0] for values in drawn), *levels.values())
    bottom = 0.6 * min(values.min() for values in drawn)
    panel.set_ylim(bottom, top)
    panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if top < 30 * bottom else (1,)))
    ends = []
    for line, values in zip(lines, drawn, strict=True):
        if len(values) == last:
            ends.append((values[-1], line.name, line.colour))
            continue
        at = len(values), min(values[-1], 0.6 * top)
        panel.plot(*at, "X", color=line.colour, markersize=9)
        label = f"{line.name}, NaN at step {len(values) + 1}"
        style = {"color": line.colour, "va": "center", "fontsize": 9}
        panel.annotate(label, at, (8, 0), textcoords="offset points", **style)
    name_ends(panel, ends + draw_levels(panel, levels))
    panel.yaxis.set_major_formatter("{x:g}")
    panel.yaxis.set_minor_formatter(NullFormatter())
    panel.set_ylabel("loss")
    panel.grid(alpha=0.25)


def draw_levels(panel: Any, levels: Mapping[str, float]) -> list[tuple[float, str, str]]:
    """Draw a dotted line at each height; return the heights and names for `name_ends`."""
    for height in levels.values():
        panel.axhline(height, color=REFERENCE, linestyle=":", linewidth=1.2)
    return [(height, name, REFERENCE) for name, height in levels.items()]


def draw_line(
    panel: Any,
    values: Sequence[float],
    colour: str,
    mean: Callable[[Any], Any],
    style: str,
) -> Any:
    """Draw and return the local mean, over a band from the neighbours' lower to upper quartile."""
    steps = np.arange(1, len(values) + 1)
    middle = mean(values)
    starts, ends = neighbours(len(values))
    near = [np.quantile(values[a:b], (0.25, 0.75)) for a, b in zip(starts, ends, strict=True)]
    panel.fill_between(steps, *np.transpose(near), color=colour, alpha=0.2, linewidth=0)
    panel.plot(steps, middle, style, color=colour, linewidth=1.8)
    return middle


def smoothed(values: Sequence[float]) -> Any:
    """Return the geometric mean of each value and its neighbours, as the axis is logarithmic.

    So an exponential decay is kept.
    """
    return np.exp(centred(np.log(np.maximum(values, np.finfo(float).tiny))))


def centred(values: np.ndarray | Sequence[float]) -> Any:
    """Return the mean of each value and as many neighbours on both sides: it does not lag."""
    starts, ends = neighbours(len(values))
    sums = np.cumsum([0.0, *values])
    return (sums[ends] - sums[starts]) / (ends - starts)


def neighbours(n: int) -> tuple[Any, Any]:
    """Return the starts and ends of the values' windows: a twenty-fifth of all values is in each.

    Windows grow from the first value on, since losses fall fast there, and are cut off at the end.
    """
    at = np.arange(n)
    reach = np.minimum(at, n // 50)
    return at - reach, np.minimum(at + reach + 1, n)
