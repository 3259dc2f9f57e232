"""Demos · Texts: what the pages of the source texts share.

Each shows its numbers beside ours, its doubtful lines, both passes of an example with the text's
inputs and with inputs of unit variance, and what the scale does to that example.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from attention.figures import name_ends, name_place, new_figure
from demos.publish import Published
from demos.site._parts import printed, set_text
from demos.site._templates import inline, markdown
from demos.texts.sources import KINDS, Pair, Slip, compared, counted, kinds
from minigrad import Steps, Tensor, graph
from minigrad.graphs.render import described

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEGEND = {
    "wrong": "what the text says, prints or runs is not so",
    "unclear": "it can be read in two ways, or a name says something else",
    "left open": "nothing is wrong, but a condition, a choice or a further case is not mentioned",
}
CELLS = "■ equal, × another number, □ not computed"
WIDEST = 32  # cells in a row


def numbers(page: Published, text: ModuleType) -> None:
    """Say how many of the text's numbers come back; show a cell for each, and fold all of them."""
    same, total = counted(text)
    lost = f" What cannot come back: {text.LOST}." * bool(text.LOST)
    page.say(
        f"{same} of {total} numbers that the text prints come back, in every printed digit.{lost}"
    )
    said = f"A cell is a printed number: {CELLS}. Point at it to see both."
    page.html(f"<figure>{strip(text)}<figcaption>{said}</figcaption></figure>", place="right")
    with page.folded(f"All {total} numbers, array by array"):
        page.html("".join(_listed(name, *array) for name, array in compared(text).items()))
    page.parts[-1].place = "below"


def strip(text: ModuleType) -> str:
    """Return the text's arrays as HTML, a cell for each number, which says both numbers."""
    return "".join(_cells(name, *array) for name, array in compared(text).items())


def _cells(name: str, shape: tuple[int, ...], pairs: list[Pair]) -> str:
    """Return one array in its rows of cells, under its name."""
    width = _width(shape)
    shown = []
    for n, (index, (theirs, ours)) in enumerate(zip(np.ndindex(shape), pairs, strict=True)):
        sign = "□" if ours is None else "■" if ours == theirs else "×"
        at = ", ".join(map(str, index))
        both = f"{name}[{at}]: the text {theirs}, ours {'not computed' if ours is None else ours}"
        colour = ' style="color:var(--backward)"' * (sign == "×")
        line = "<br>" * (n > 0 and n % width == 0)
        shown.append(f'{line}<span title="{escape(both)}"{colour}>{sign}</span>')
    same = sum(theirs == ours for theirs, ours in pairs)
    return (
        '<div style="display:inline-block; vertical-align:top; margin:0 1.1rem .8rem 0">'
        f"<code>{escape(name)}</code><div"
        f' role="img" aria-label="{escape(name)}: {same} of {len(pairs)} numbers are equal"'
        f' style="font:12px/1.05 var(--mono); letter-spacing:2px">{"".join(shown)}</div></div>'
    )


def _listed(name: str, shape: tuple[int, ...], pairs: list[Pair]) -> str:
    """Return one array as the text prints it, row by row, and ours below if one number differs."""
    same, width = sum(theirs == ours for theirs, ours in pairs), _width(shape)
    shape_said = " × ".join(map(str, shape))
    shown = f"<p><code>{escape(name)}</code> {shape_said}: {same} of {len(pairs)} are equal</p>"
    for side, numbers in zip(("the text", "ours"), zip(*pairs, strict=True), strict=True):
        if side == "ours" and (same == len(pairs) or None in numbers):
            continue
        wide = max(map(len, numbers))
        rows = (numbers[at : at + width] for at in range(0, len(numbers), width))
        lines = "\n".join(" ".join(f"{number:>{wide}}" for number in row) for row in rows)
        title = f"{side}\n" * (same < len(pairs))
        shown += f'<pre class="plain" tabindex="0">{title}{lines}</pre>'
    return shown


def _width(shape: tuple[int, ...]) -> int:
    return min(shape[-1] if shape else 1, WIDEST)


def doubts(page: Published, text: ModuleType, computed: list[str]) -> None:
    """Show the lines that are wrong, unclear or left open, the weighty ones first, others folded.

    computed  for each of text.SLIPS, Markdown that says what shows it
    """
    count = {kind: number for kind, number in zip(KINDS, kinds(text), strict=True) if number}
    meant = "; ".join(f"{number} {kind} ({LEGEND[kind]})" for kind, number in count.items())
    page.say(f"We found {len(text.SLIPS)} lines that can mislead a reader: {meant}.")
    found = zip(text.SLIPS, computed, strict=True)
    ordered = sorted(found, key=lambda each: (not each[0].weighty, KINDS.index(each[0].kind)))
    told = [_told(number, *each) for number, each in enumerate(ordered, 1)]
    first = sum(slip.weighty for slip in text.SLIPS)
    page.html(_cards(told[:first]), "\n\n".join(text for _, text in told[:first]), "below")
    with page.folded(f"The other {len(told) - first} lines"):
        page.html(_cards(told[first:]))
    page.parts[-1].place = "below"


def _told(number: int, slip: Slip, computed: str) -> tuple[str, str]:
    """Return a line of the text, what is so, and what shows it: as HTML and for a terminal."""
    says, so = (inline(part, set_text) for part in (slip.says, slip.so))
    html = f"<h3>{number} · {slip.kind}</h3><p><b>The text.</b> {says}</p>"
    html += f"<p><b>What is so.</b> {so}</p>{markdown(f'**Computed.** {computed}', set_text)}"
    said = f"{number} · {slip.kind}: {slip.says} {slip.so}\n\nComputed: {computed}"
    return html, printed(said).replace("\n\n", "\n")


def _cards(told: list[tuple[str, str]]) -> str:
    """Return lines of a text side by side, as many as there is room for."""
    cards = "".join(f'<div style="min-width:0">{html}</div>' for html, _ in told)
    grid = "display:grid; gap:1rem 2rem; grid-template-columns:repeat(auto-fill,minmax(19rem,1fr))"
    return f'<div style="{grid}">{cards}</div>'


def both_passes(
    page: Published,
    runs: Mapping[str, tuple[str, Callable[[], Tensor]]],
    *,
    title: str,
    limits: tuple[float, float],
) -> None:
    """Show the graphs of two runs on one scale of colours, and fold both passes step by step.

    runs    the name of a picture → what it shows, and a function that computes the output
    limits  the gradients at the ends of the scale
    """
    noted = []
    for name, (caption, run) in runs.items():
        with Steps() as steps:
            output = run()
        drawing = graph(output, grads=True, limits=limits, steps=steps)
        steps.backward(output)
        noted.append(steps)
        page.figure(drawing, name, alt=f"{caption}: {described(drawing)}.", caption=caption)
    first, second = (caption for caption, _ in runs.values())
    path = page.chosen.out / "steps.html"
    noted[0].save(path, beside=noted[1], titles=(first, second), title=title, limits=limits)
    with page.folded(f"{title}: both passes, step by step"):
        page.embed(path)
    page.parts[-1].place = "below"


def scale_figure(
    scales: np.ndarray,
    lines: Mapping[str, tuple[np.ndarray, str, str]],
    *,
    sides: tuple[str, str],
    titles: tuple[str, str],
    usual: tuple[float, str],
    low: float,
) -> Figure:
    """Draw two measurements over the scale of the scores, one above the other.

    lines  a name → the measurements (scales, 2), the line's colour and its style
    sides  what is measured above and below; the axis below is logarithmic and begins at `low`
    usual  the scale that is marked, and its name
    """
    figure = new_figure(6.8, 6.6)
    panels = figure.subplots(2, 1, sharex=True)
    panels[1].set(yscale="log", ylim=(low, 1e2), xscale="log", xlabel="scale of QKᵀ")
    for n, panel in enumerate(panels):
        for measured, colour, style in lines.values():
            panel.plot(scales, measured[:, n], style, color=colour)
        name_ends(panel, [(found[-1, n], name, c) for name, (found, c, _) in lines.items()])
        name_place(panel, *usual)
        panel.set_ylabel(sides[n])
        panel.set_title(titles[n], fontsize=10, pad=18)
        panel.grid(alpha=0.25)
    return figure
