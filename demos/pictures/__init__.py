"""Pictures · Drawings for the chapters that need one, made of the engine's numbers.

In a module `name.py`, `picture()` returns the HTML of a figure: an SVG in the site's colours, and a
caption. The figure is true and legible without its script, on paper too.
Some move: `name.js` finds the figure by its id, and what it computes is tested against minigrad.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from demos.pages import page
from demos.pages.templates import ENVIRONMENT, parts
from demos.pages.text import formula, inline

CHAPTERS: dict[
    str, tuple[str, ...]
] = {  # chapter → the modules of its pictures, or their functions
    "0": ("loop",),
    "1.2": ("node",),
    "2.1": ("waiting",),
    "2.3": ("curvature",),
    "3.1": ("diagonal",),
    "3.4": ("shared",),
    "3.5": ("product",),
    "3.6": ("softmax",),
    "4.1": ("error",),
    "5": ("record",),
    "7.1": ("tree",),
    "8": ("valley",),
    "11": ("forces", "way_back"),
    "11.1": ("masks",),
    "12": ("tiles",),
    "13": ("heads",),
    "14": ("dial",),
    "15.1": ("bypass",),
    "16": ("hill",),
    "16.2": ("measured.chain",),
    "16.3": ("measured.freezing",),
    "16.4": ("measured.sharpness",),
    "16.5": ("measured.basin",),
    "16.6": ("measured.trained",),
    "16.7": ("measured.neighbours",),
    "16.8": ("measured.over_training",),
}
SHARED_SCRIPTS = {  # module → the scripts whose functions its own script calls
    "error": ("axes",),
    "valley": ("axes",),
    "dial": ("axes",),
    "hill": ("draws", "axes"),
}
FOLDER = Path(__file__).parent
# The macros of shapes.html, each a function that returns Markup: `shapes.rect(6, 34, 34, 34)`.
shapes: Any = ENVIRONMENT.get_template("pictures/shapes.html").module

Points = Sequence[tuple[float, float]]
Axes = tuple[float, float, float, float]  # where (0, 0) is, and how far 1 is right and up


def figure(
    name: str,
    size: tuple[int, int],
    parts: Sequence[str],
    alt: str,
    says: str,
    controls: str = "",
) -> Markup:
    """Return a figure: a drawing of these parts, its controls and its caption.

    alt       the drawing's alt text, with the numbers
    controls  are hidden until the figure's script runs
    """
    drawing = shapes.drawing(*size, parts, alt)
    return shapes.figure(name, drawing, controls, inline(says))


def place(axes: Axes, a: float, b: float) -> tuple[float, float]:
    """Return where the point (a, b) is drawn: `place` of axes.js with the same axes."""
    x, y, right, up = axes
    return x + right * a, y - up * b


def text(x: float, y: float, words: str, kind: str = "", **data: str) -> Markup:
    """Return words around the point (x, y), or beside it if `kind` has start or end.

    They are set as formulas, unless they are code (mono).
    """
    return shapes.text(x, y, words if "mono" in kind else math(words), kind, data)


def box(x: float, y: float, words: str, kind: str = "", width: float = 60) -> Markup:
    """Return a box around the point (x, y) with its name."""
    edge = shapes.rect(x - width / 2, y - 16, width, 32, rx=7)
    return shapes.group([edge, text(x, y + 5, words)], f"box {kind}".strip())


def line(points: Points, kind: str = "", *, tip: bool = False, **data: str) -> Markup:
    """Return a line through points; with a `tip` an arrow."""
    drawn = shapes.polyline(_listed(points), kind, data)
    if tip:
        (a, b), (x, y) = points[-2:]
        long = ((x - a) ** 2 + (y - b) ** 2) ** 0.5
        u, v = 8 * (x - a) / long, 8 * (y - b) / long
        corners = (x, y), (x - u - v / 2, y - v + u / 2), (x - u + v / 2, y - v - u / 2)
        drawn += shapes.polygon(_listed(corners), f"tip {kind}".strip())
    return drawn


def _listed(points: Points) -> str:
    return " ".join(f"{x:.4g},{y:.4g}" for x, y in points)


def math(words: str) -> Markup:
    """Return a formula for an SVG: variables in italics (also *a*), indices and exponents."""
    html = re.sub(r"\*(?:<var>)?(\w)(?:</var>)?\*", r"<var>\1</var>", str(formula(words)))
    svg = html.replace("<var>", '<tspan class="var">').replace("</var>", "</tspan>")
    for tag, shift in (("sub", 4), ("sup", -5)):
        back = f'</tspan><tspan dy="{-shift}">\u200b</tspan>'
        svg = svg.replace(f"<{tag}>", f'<tspan dy="{shift}" class="small">')
        svg = svg.replace(f"</{tag}>", back)
    return Markup(svg)


def number(x: float, digits: int = 3) -> str:
    """Return a number as a picture shows it, with a minus as wide as a digit."""
    return f"{x:.{digits}g}".replace("-", "−")


def data(given: object) -> Markup:
    """Return what a picture's script is given, as JSON."""
    return shapes.data(Markup(page.data(given)))


def slider(name: str, low: float, high: float, start: float, step: float = 1) -> Markup:
    """Return a slider below its name and its value, which its script fills in."""
    return shapes.slider(formula(name), low, high, start, step)


def kept(name: str, alt: str) -> Markup:
    """Return a picture that is kept as a file, with its size."""
    svg = (FOLDER / f"{name}.svg").read_text("utf-8")
    size = [round(float(x)) for x in re.findall(r'viewBox="\S+ \S+ (\S+) (\S+)"', svg)[0]]
    return parts.picture(name, alt, size)
