"""Pictures · One drawing for a chapter that needs one, made of the engine's numbers.

In a module `name.py`, `picture()` returns the HTML of a figure: an SVG in the site's colours, and a
caption. The figure is true and legible without its script, on paper too.
Some move: `name.js` finds the figure by its id, and what it computes is tested against minigrad.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

from demos.pages import page
from demos.pages.text import formula, inline

CHAPTERS = {  # chapter → the module of its picture
    "0": "loop",
    "1.2": "node",
    "2.1": "waiting",
    "3.1": "diagonal",
    "3.4": "shared",
    "3.5": "product",
    "3.6": "softmax",
    "4.1": "error",
    "8": "valley",
    "11": "way_back",
    "12": "tiles",
    "14": "dial",
    "16": "hill",
}
Points = Sequence[tuple[float, float]]
Axes = tuple[float, float, float, float]  # where (0, 0) is, and how far 1 is right and up


def figure(name: str, svg: str, says: str, controls: str = "") -> str:
    """Return a figure: the drawing, its controls (hidden until its script runs), its caption."""
    moved = f'<div class="moves" hidden>{controls}</div>' if controls else ""
    says = f"<figcaption>{inline(says)}</figcaption>"
    return f'<figure class="pic" id="{name}">{svg}{moved}{says}</figure>'


def drawing(width: float, height: float, parts: Sequence[str], alt: str) -> str:
    """Return an SVG of these parts; `alt` is its alt text, with the numbers."""
    said = f'role="img" aria-label="{escape(alt)}"'
    return f'<svg viewBox="0 0 {width} {height}" {said}>{"".join(parts)}</svg>'


def place(axes: Axes, a: float, b: float) -> tuple[float, float]:
    """Return where the point (a, b) is drawn: `place` of axes.js with the same axes."""
    x, y, right, up = axes
    return x + right * a, y - up * b


def text(x: float, y: float, words: str, kind: str = "", **at: str) -> str:
    """Return words around the point (x, y), or beside it if `kind` has start or end.

    They are set as formulas, unless they are code (mono).
    """
    shown = escape(words, quote=False) if "mono" in kind else math(words)
    return f'<text x="{x:g}" y="{y:g}"{_attributes(kind, at)}>{shown}</text>'


def box(x: float, y: float, words: str, kind: str = "", width: float = 60, **at: str) -> str:
    """Return a box around the point (x, y) with its name."""
    shape = f'<rect x="{x - width / 2:g}" y="{y - 16:g}" width="{width:g}" height="32" rx="7"/>'
    return f"<g{_attributes(f'box {kind}'.strip(), at)}>{shape}{text(x, y + 5, words)}</g>"


def line(points: Points, kind: str = "", *, tip: bool = False, **at: str) -> str:
    """Return a line through points; with a `tip` an arrow."""
    shown = " ".join(f"{x:.4g},{y:.4g}" for x, y in points)
    found = f'<polyline points="{shown}"{_attributes(kind, at)}/>'
    if tip:
        (a, b), (x, y) = points[-2:]
        long = ((x - a) ** 2 + (y - b) ** 2) ** 0.5
        u, v = 8 * (x - a) / long, 8 * (y - b) / long
        wings = ((x - u - v / 2, y - v + u / 2), (x - u + v / 2, y - v - u / 2))
        corners = " ".join(f"{a:.4g},{b:.4g}" for a, b in ((x, y), *wings))
        found += f'<polygon points="{corners}"{_attributes(f"tip {kind}".strip(), at)}/>'
    return found


def math(words: str) -> str:
    """Return a formula for an SVG: variables in italics (also *a*), indices and exponents."""
    found = re.sub(r"\*(?:<var>)?(\w)(?:</var>)?\*", r"<var>\1</var>", str(formula(words)))
    shown = found.replace("<var>", '<tspan class="var">').replace("</var>", "</tspan>")
    for tag, shift in (("sub", 4), ("sup", -5)):
        back = f'</tspan><tspan dy="{-shift}">\u200b</tspan>'
        shown = shown.replace(f"<{tag}>", f'<tspan dy="{shift}" class="small">')
        shown = shown.replace(f"</{tag}>", back)
    return shown


def number(x: float, digits: int = 3) -> str:
    """Return a number as a picture shows it, with a minus as wide as a digit."""
    return f"{x:.{digits}g}".replace("-", "−")


def data(found: object) -> str:
    """Return what a picture's script is given, as JSON."""
    return f'<script type="application/json">{page.data(found)}</script>'


def slider(name: str, low: float, high: float, start: float, step: float = 1) -> str:
    """Return a slider below its name and its value, which its script fills in."""
    ends = f'min="{low:g}" max="{high:g}" step="{step:g}" value="{start:g}"'
    return f'<label>{formula(name)}: <b></b><input type="range" {ends}></label>'


def _attributes(kind: str, at: dict[str, str]) -> str:
    named = f' class="{kind}"' if kind else ""
    return named + "".join(f' data-{name}="{escape(value)}"' for name, value in at.items())
