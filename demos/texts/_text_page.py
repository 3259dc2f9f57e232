"""Demos · Texts: what the pages of the source texts share.

Each page shows the text's numbers beside ours, its doubtful lines, both passes of an example with
the text's inputs and with inputs of unit variance, whether finite differences confirm its
gradients, and what the scale does to it.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup

from attention.figures import name_ends, name_place, new_figure
from demos import files
from demos.pages.publish import Published
from demos.pages.tables import printed
from demos.pages.templates import ENVIRONMENT
from demos.pages.templates import parts as page_parts
from demos.pages.text import inline, markdown, set_text
from demos.texts.sources import Pair, compared, counted, returning
from minigrad import Steps, Tensor, gradcheck, graph
from minigrad.graphs.render import described

parts: Any = ENVIRONMENT.get_template("texts/parts.html").module
WIDEST = 32  # cells in a row
SIDE = 11  # of a cell, with its margin
KINDS = ("wrong", "unclear", "left open")


def numbers(page: Published, text: ModuleType) -> None:
    """Say how many of the text's numbers come back; show each in a cell, fold all, and judge."""
    same, total = counted(text)
    sentence = f"{same} of {total} numbers that the text prints come back, in every printed digit."
    caption = "A cell is a printed number; point at it to see both."
    if text.LOST:
        sentence += f" What cannot come back: {'; '.join(text.LOST.values())}."
        caption += " A cross is another number, an empty cell is not computed."
    page.say(sentence)
    page.html(parts.arrays(strip(text), caption), place="right")
    with page.folded(f"All {total} numbers, array by array", place="below"):
        lists = "\n\n".join(_listed(name, *array) for name, array in compared(text).items())
        page.html(page_parts.plain(lists))
    page.marks.at_least("numbers that come back", same, returning(text), "d")


def strip(text: ModuleType) -> list[Markup]:
    """Return a picture of each array, in its rows, with a cell for each number."""
    pictures = []
    for name, (shape, pairs) in compared(text).items():
        places = [f"{name}[{', '.join(map(str, index))}]" for index in np.ndindex(shape)]
        drawn = cells(name, places, pairs, _width(shape))
        pictures.append(parts.array(name, drawn))
    return pictures


def cells(name: str, places: Sequence[str], pairs: Sequence[Pair], width: int) -> Markup:
    """Return a picture of cells, `width` in a row: each says its place and both numbers."""
    drawn = []
    for n, (place, (theirs, ours)) in enumerate(zip(places, pairs, strict=True)):
        number = "not computed" if ours is None else ours
        drawn.append(
            {
                "x": n % width * SIDE + 1,
                "y": n // width * SIDE + 1,
                "title": f"{place}: the text {theirs}, ours {number}",
                "equal": theirs == ours,
                "other": ours not in (theirs, None),
            }
        )
    equal = sum(theirs == ours for theirs, ours in pairs)
    rows = math.ceil(len(pairs) / width)
    return parts.cells(name, drawn, equal, width * SIDE, rows * SIDE)


def _listed(name: str, shape: tuple[int, ...], pairs: list[Pair]) -> str:
    """Return one array as the text prints it, row by row, and ours below if one number differs."""
    same = sum(theirs == ours for theirs, ours in pairs)
    width = _width(shape)
    lines = [f"{name} {shape}: {same} of {len(pairs)} are equal"]
    for side, numbers in zip(("the text", "ours"), zip(*pairs, strict=True), strict=True):
        if side == "ours" and (same == len(pairs) or None in numbers):
            continue
        if same < len(pairs):
            lines.append(f"{side}:")
        wide = max(map(len, numbers))
        rows = (numbers[at : at + width] for at in range(0, len(numbers), width))
        lines += ["  " + " ".join(f"{number:>{wide}}" for number in row) for row in rows]
    return "\n".join(lines)


def _width(shape: tuple[int, ...]) -> int:
    return min(shape[-1] if shape else 1, WIDEST)


class Slip(NamedTuple):
    """A line of a text that can mislead its reader, by its own fault or not."""

    kind: str
    says: str  # what the text says or does, or leaves out
    so: str  # what is so
    computed: str  # what shows it, in Markdown
    weighty: bool  # whether the page shows it unfolded


class Slips:
    """The slips of a text, each named in the demo's file below the lines that measure it.

    slips = Slips(page)
    slips.wrong("Two and two are said to be five.", "They are four.", f"2 + 2 is {2 + 2}.")
    slips.show()
    """

    def __init__(self, page: Published) -> None:
        self.page = page
        self.slips: list[Slip] = []

    def wrong(self, says: str, so: str, computed: str, *, weighty: bool = False) -> None:
        """Add that what the text says, prints or runs is not so."""
        self.slips.append(Slip("wrong", says, so, computed, weighty))

    def unclear(self, says: str, so: str, computed: str, *, weighty: bool = False) -> None:
        """Add what can be read in two ways, or a name that says something else."""
        self.slips.append(Slip("unclear", says, so, computed, weighty))

    def left_open(self, says: str, so: str, computed: str, *, weighty: bool = False) -> None:
        """Add a condition, a choice or a further case that is not mentioned."""
        self.slips.append(Slip("left open", says, so, computed, weighty))

    def show(self) -> None:
        """Show the weighty slips, in the order of `KINDS`, and fold the others."""
        counts = [(sum(slip.kind == kind for slip in self.slips), kind) for kind in KINDS]
        listed = ", ".join(f"{n} {kind}" for n, kind in counts if n)
        self.page.say(f"We found {len(self.slips)} lines that can mislead a reader: {listed}.")
        ordered = sorted(self.slips, key=lambda slip: (not slip.weighty, KINDS.index(slip.kind)))
        html, text = zip(*map(_slip, range(1, len(ordered) + 1), ordered), strict=True)
        first = sum(slip.weighty for slip in ordered)
        weighty = parts.beside("19rem", html[:first])
        self.page.html(weighty, "\n\n".join(text[:first]), "below")
        with self.page.folded(f"The other {len(ordered) - first} lines", place="below"):
            self.page.html(parts.beside("19rem", html[first:]))


def _slip(number: int, slip: Slip) -> tuple[Markup, str]:
    """Return a slip as HTML, and for a terminal."""
    says, so = (inline(part, set_text) for part in (slip.says, slip.so))
    computed = markdown(f"**Computed.** {slip.computed}", set_text)
    text = f"{number} · {slip.kind}: {slip.says} {slip.so}\n\nComputed: {slip.computed}"
    html = parts.slip(number, slip.kind, says, so, computed)
    return html, printed(text).replace("\n\n", "\n")


def kinds(demo: str) -> list[int]:
    """Count the slips of each of `KINDS` in a demo's file. (To import the file would run it.)"""
    tree = ast.parse(files()[demo].read_text("utf-8"))
    called = [ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [called.count(f"slips.{kind.replace(' ', '_')}") for kind in KINDS]


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
    drawn = []
    for name, (caption, run) in runs.items():
        with Steps() as steps:
            output = run()
        drawing = graph(output, grads=True, limits=limits, steps=steps)
        steps.backward(output)
        noted.append(steps)
        alt = f"{caption}: {described(drawing)}."
        drawn.append(page.figure(drawing, name, alt=alt, caption=caption))
    drawn[0].html = parts.beside("26rem", [part.html for part in drawn])
    drawn[1].html = Markup("")
    drawn[0].place = "below"
    first, second = (caption for caption, _ in runs.values())
    path = page.chosen.out / "steps.html"
    noted[0].save(path, beside=noted[1], titles=(first, second), title=title, limits=limits)
    with page.folded(f"{title}: both passes, step by step", place="below"):
        page.embed(path)


def checked(
    page: Published,
    cases: Mapping[str, tuple[Callable[..., Tensor], Sequence[Any]]],
    coarse: Mapping[str, int] | None = None,
) -> None:
    """Check derivatives of order 1 and 2 by finite differences; say and judge how many agree.

    cases   a name → a function and its points
    coarse  a name → how many of its derivatives may be too small for a difference to tell
    """
    confirmed = total = 0
    exceptions = ""
    for name, (f, points) in cases.items():
        report = gradcheck(f, *points)
        every = len(report.comparisons)
        few = len(report.unresolved)
        least = every - (coarse or {}).get(name, 0)
        page.marks.at_least(f"{name}: derivatives confirmed", every - few, least, "d")
        confirmed += every - few
        total += every
        if few:
            exceptions += f"; {few} of “{name}” are too small to tell"
    page.say(
        f"Finite differences confirm {confirmed} of {total} derivatives of order 1 and 2"
        f"{exceptions}."
    )


def scale_figure(
    page: Published,
    scales: np.ndarray,
    lines: Mapping[str, tuple[np.ndarray, str, str]],
    *,
    sides: tuple[str, str],
    titles: tuple[str, str],
    usual: tuple[float, str],
    low: float,
    alt: str,
) -> None:
    """Show two measurements over the scale of the scores, one above the other.

    lines  a name → the measurements (scales, 2), the line's colour and its style
    sides  what is measured above and below; the axis below is logarithmic and begins at `low`
    usual  the scale that is marked, and its name
    """
    figure = new_figure(5.4, 6.6)
    panels = figure.subplots(2, 1, sharex=True)
    panels[1].set(yscale="log", ylim=(low, 1e2), xscale="log", xlabel="scale of QKᵀ")
    for n, panel in enumerate(panels):
        for measured, colour, style in lines.values():
            panel.plot(scales, measured[:, n], style, color=colour)
        name_ends(panel, [(m[-1, n], name, colour) for name, (m, colour, _) in lines.items()])
        name_place(panel, *usual)
        panel.set_ylabel(sides[n])
        panel.set_title(titles[n], fontsize=10, pad=18)
        panel.grid(alpha=0.25)
    page.figure(figure, "scale", alt=alt)
