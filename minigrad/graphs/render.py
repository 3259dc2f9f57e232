"""Rendering: the boxes as DOT text, and that as a picture.

Graphviz has laid out graphs for thirty years. So this file only says what there is, in Graphviz's
DOT language: one statement for each box and each arrow, and a cluster for each layer's frame. Then
the system's `dot` draws them if it is on PATH, and otherwise `graphviz-pure`, a wheel that contains
the same layout engine. Where no program can be started, as in a browser, a function can draw
(`draw_with`).

With gradients, colour is the size of a gradient; with verdicts, it is whether the gradient is right
(a wrong one is dashed as well). Without either, a leaf is green and an operation blue. All of this
can be read without colour: a leaf is rounded with a thick line, a closed layer has a double line, a
gradient of 0 a dashed one, and each gradient is written as a number.
"""

from __future__ import annotations

import html
import json
import math
import shutil
import subprocess
import sysconfig
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from operator import itemgetter
from typing import Any
from xml.etree import ElementTree

import numpy as np

from minigrad.graphs.folding import Box, Drawing, Link
from minigrad.graphs.names import spoken
from minigrad.graphs.scale import DEAD, colour, legend
from minigrad.graphs.text import gradient_of, gradient_of_row, notes

LEAF = "#dcebdc"
PLAIN = "#e4ecf5"  # operations and layers
OFF = "#b3204d"  # what does not agree with differences
VERDICTS = {  # by whether it agrees: the colours of box and line, the width of the line, its dash
    True: ("#ffffff", "#b4500a", "1.6", ""),
    False: ("#f9e6ec", OFF, "2.4", ",dashed"),
    None: ("#ffffff", "#777777", "1.6", ",dotted"),
}
# For a viewer in the dark: the ground, and what is written and drawn on it. The boxes keep their
# colours, and on them black letters can be read.
DARK = """@media (prefers-color-scheme: dark) {
  g.graph > polygon[fill="white"] { fill: #1f2026 } g.cluster > path { fill: none }
  g.graph > text, g.cluster > text, g.edge text, g.constant text { fill: #ececf0 }
  g.edge [stroke="#555555"], g.cluster > path, g.node [stroke="black"] { stroke: #aeb0ba }
  g.edge [fill="#555555"] { fill: #aeb0ba }
  g.edge [stroke="#b3204d"] { stroke: #ff86a8 } g.edge [fill="#b3204d"] { fill: #ff86a8 }
}"""
SMALL = 'POINT-SIZE="9.5"'
LARGEST = 5_000  # boxes, or operations on a page
TABLE = '<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="1" CELLPADDING="1">'


def dot_text(drawing: Drawing) -> str:
    """Return the graph in the DOT language; deterministic, one statement a line."""
    font = {"fontname": "Helvetica"}
    around = {"bgcolor": "white", "nodesep": "0.3", "ranksep": "0.3", "ordering": "in"} | font
    around |= {"fontsize": "10", "labelloc": "b"}
    if said := _legend(drawing):
        around["label"] = said
    if drawing.direction == "right":
        around["rankdir"] = "LR"
    if drawing.width is not None:  # in inches, and as high as it needs to be
        around["size"] = f"{drawing.width / 96:g},1000!"
    arrows = {"arrowsize": "0.6", "color": "#555555", "fontsize": "9", "fontcolor": "#444444"}
    defaults = {
        "graph": around,
        "node": font | {"fontsize": "11", "margin": "0.1,0.05"},
        "edge": arrows | font,
    }
    lines = [f"\t{_statement(what, look)}" for what, look in defaults.items()]
    lines += _lines(drawing, spoken(drawing.vertices), drawing.boxes, ())
    return "\n".join(["digraph {", *lines, "}", ""])


def _statement(what: str, attributes: Mapping[str, str]) -> str:
    """Return a statement of DOT. Text in quotes is text; <…> are labels that this file wrote."""
    quoted = {
        name: text if text.startswith("<") else '"' + text.replace('"', '\\"') + '"'
        for name, text in sorted(attributes.items())
    }
    pairs = [f"{name}={text}" for name, text in quoted.items()]
    return f"{what} [{' '.join(pairs)}]" if pairs else what


def _lines(
    drawing: Drawing, names: Sequence[str], boxes: Sequence[Box], frame: tuple[str, ...]
) -> Iterator[str]:
    """Yield the boxes of a frame, the frames within it as clusters, and its arrows."""
    depth = len(frame)
    indent = "\t" * (depth + 1)
    for within, run in groupby(boxes, key=lambda box: box.frame[: depth + 1]):
        inner = list(run)
        if within == frame:
            for box in inner:
                look = {"label": _label(box, drawing, names)} | _style(box, drawing)
                yield f"{indent}{_statement(box.id, look)}"
            continue
        name = f"{inner[0].id}_{depth}"
        look = {"style": "dashed,rounded", "color": "#777777", "id": f"f{name}"}
        look |= {"label": _plain(within[-1]), "labelloc": "t", "labeljust": "l"}
        yield f"{indent}subgraph cluster_{name} {{"
        yield f"{indent}\t{_statement('graph', look)}"
        yield from _lines(drawing, names, inner, within)
        yield f"{indent}}}"
    inside = {box.id: box.frame[: depth + 1] for box in boxes}
    for link in drawing.links:  # (words of an arrow then stay in its frame)
        a, b = inside.get(link.source), inside.get(link.target)
        if a is not None and b is not None and (a == frame or a != b):
            yield f"{indent}{_statement(f'{link.source} -> {link.target}', _arrow(link, drawing))}"


def _arrow(link: Link, drawing: Drawing) -> dict[str, str]:
    """Return an arrow's words, and its look if the gradient that goes back along it is wrong."""
    words = link.words
    look = {}
    verdict = drawing.verdict(drawing.box_of[link.source])
    if verdict is not None and verdict.agrees is False:
        look = {"color": OFF, "style": "dashed"}
    if drawing.wrong_at(drawing.box_of[link.target], link.position):
        words = f"✗ {words}".rstrip()
        look |= {"fontcolor": OFF, "fontsize": "16", "penwidth": "2.5", "style": "solid"}
    return {"label": _plain(words)} | look if words else look


def _label(box: Box, drawing: Drawing, names: Sequence[str]) -> str:
    """Return a table: the name and the operation, the shape and the gradient, the rows inside.

    A result without a name is called as the stepped page calls it, q·kᵀ in place of matmul.
    """
    title = box.title
    if title == box.operation:
        title = names[box.vertices[0]].partition("#")[0]
    called = [x for x in (box.operation, box.options, box.detail) if x and box.title != x]
    words = " ".join([f"<B>{_text(title)}</B>", *map(_text, called)])
    facts = f"{box.shape} {_text(gradient_of(box, drawing))}".rstrip()
    lines = [f"<TR><TD>{words}</TD></TR><TR><TD><FONT {SMALL}>{facts}</FONT></TD></TR>"]
    for row in box.rows:
        mark = "✗ " if drawing.wrong_at(box, row.position) else ""
        inside = f"{mark}{row.text} {gradient_of_row(row, drawing)}".rstrip()
        cell = _cell(row.grad, row.vertex, drawing, f"<FONT {SMALL}>{_text(inside)}</FONT>")
        lines.append(f"<TR>{cell}</TR>")
    if box.strip:
        cells = []
        for label, grad in box.strip:
            number = f"<BR/>{grad:.2g}" if grad is not None else ""
            text = f'<FONT POINT-SIZE="8">{_text(label)}{number}</FONT>'
            cells.append(_cell(grad, -1, drawing, text, bordered=True))
        wide = max(12, math.isqrt(len(cells)))  # (so a hundred copies stay in sight)
        rows = ["".join(cells[k : k + wide]) for k in range(0, len(cells), wide)]
        lines.append(f"<TR><TD>{TABLE}<TR>{'</TR><TR>'.join(rows)}</TR></TABLE></TD></TR>")
    return f"<{TABLE}{''.join(lines)}</TABLE>>"


def _cell(
    grad: float | None, vertex: int, drawing: Drawing, text: str, bordered: bool = False
) -> str:
    look = ""
    if bordered or grad is not None:
        look = ' BORDER="1" COLOR="#999999"'
    shade = _fill(grad, vertex, drawing)
    if shade:
        look += f' BGCOLOR="{shade}"'
    return f"<TD{look}>{text}</TD>"


def _fill(grad: float | None, vertex: int, drawing: Drawing) -> str:
    if grad is None or drawing.limits is None:
        return ""
    return DEAD if vertex in drawing.noise else colour(grad, drawing.limits)


def _style(box: Box, drawing: Drawing) -> dict[str, str]:
    if box.kind == "constant":
        look = {"shape": "plain", "fontcolor": "#333333"}
        return {**look, "id": box.id, "class": "constant"}
    fill = _fill(box.grad, box.vertices[-1], drawing) or (LEAF if box.kind == "leaf" else PLAIN)
    style = "filled,rounded" if box.kind == "leaf" else "filled"
    if box.grad == 0 or box.vertices[-1] in drawing.noise:
        style += ",dashed"
    attributes = {"shape": "box", "fillcolor": fill, "id": box.id, "style": style}
    if box.kind == "leaf":
        attributes["penwidth"] = "1.6"
    if box.of_several:
        attributes["peripheries"] = "2"
    verdict = drawing.verdict(box)
    if verdict is not None:
        shade, line, width, how = VERDICTS[verdict.agrees]
        attributes |= {"fillcolor": shade, "color": line, "penwidth": width}
        attributes["style"] = style + how
    return attributes


def _legend(drawing: Drawing) -> str:
    """Return the table below the drawing: a strip of colours between the limits, and the notes."""
    said = notes(drawing)
    if any(box.of_several for box in drawing.boxes):
        said.append("double line: several operations")
    rows = []
    if drawing.limits is not None:
        low, high = drawing.limits
        cells = [f'<TD BGCOLOR="{c}" WIDTH="20" HEIGHT="12"></TD>' for c in legend(drawing.limits)]
        rows.append(f"<TR><TD>{low:g} </TD>{''.join(cells)}<TD> {high:g}</TD></TR>")
        said.insert(0, "RMS of the gradient, on a logarithmic scale")
        where = "upwards" if drawing.direction == "down" else "to the left"
        said.append(f"arrows: forward; the gradient goes back, {where}")
    lines = [line for sentence in said for line in textwrap.wrap(sentence, 60)]
    rows += [f'<TR><TD COLSPAN="9">{html.escape(line)}</TD></TR>' for line in lines]
    if not rows:
        return ""
    rows.insert(0, '<TR><TD COLSPAN="9" HEIGHT="14"></TD></TR>')
    return f'<<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0">{"".join(rows)}</TABLE>>'


def _text(text: str) -> str:
    """Escape a text for Graphviz's HTML-like labels, where \\N is the name of the node."""
    return html.escape(text).replace("\\", "\\\\")


def _plain(text: str) -> str:
    """Escape a text for a plain label, in which Graphviz reads &lt; and doubled backslashes."""
    return html.escape(text, quote=False).replace("\\", "\\\\")


# ---------------------------------------------------------------- the picture

SVG = "{http://www.w3.org/2000/svg}"
Layout = Callable[[str], tuple[str, str]]  # of DOT text: the SVG, and Graphviz's JSON
_layout: Layout | None = None


def draw_with(layout: Layout | None) -> None:
    """Let a function draw every SVG, in the place of a Graphviz program; None: the program again.

    The function takes DOT text. It returns the SVG, and Graphviz's JSON, which has the lengths of
    the texts.
    """
    global _layout
    _layout = layout


def render(drawing: Drawing, format: str) -> bytes:
    """Draw a graph as "svg", "png" or "pdf". ImportError, with what to install, if none can."""
    refuse_many("boxes in a picture", len(drawing.boxes))
    if _layout is not None:
        if format != "svg":
            raise ImportError(
                f"a {format} needs a Graphviz program, and here a function draws: save it as .svg"
            )
        svg, layout = _layout(dot_text(drawing))
        return _finished(svg.encode(), layout.encode(), drawing)
    if format == "pdf" and shutil.which("dot") is None:
        raise ImportError(
            "a .pdf needs the system's dot, which is not on PATH: install Graphviz "
            "(graphviz.org/download), or save the graph as .svg"
        )
    program = _program()
    if program is None:
        raise ImportError(missing())
    # 110 dots an inch: a PNG then has the size that a screen shows the SVG at, a little sharper.
    dpi = 110 if drawing.width is None else 96
    options = {"svg": ["-Tsvg", "-Tjson"], "png": ["-Tpng", f"-Gdpi={dpi}"], "pdf": ["-Tpdf"]}
    source = dot_text(drawing).encode()
    done = subprocess.run(
        [program, *options[format]], input=source, capture_output=True, check=False
    )
    if done.returncode or not done.stdout:
        raise RuntimeError(f"{program} could not draw the graph: {done.stderr.decode().strip()}")
    if format != "svg":
        return done.stdout
    picture, end, lengths = done.stdout.partition(b"</svg>")
    return _finished(picture + end, lengths, drawing)


def _program() -> str | None:
    scripts = sysconfig.get_path("scripts")  # (pip puts graphviz-pure there, perhaps off PATH)
    return shutil.which("dot") or shutil.which("graphviz-pure", path=scripts)


def missing() -> str:
    """Return a sentence that says what is missing for a picture; "" if a picture can be drawn."""
    if _layout is not None or _program() is not None:
        return ""
    return (
        "drawing needs a Graphviz program, and neither the system's dot nor graphviz-pure is "
        "here: pip install graphviz-pure"
    )


def picture(drawing: Drawing) -> str | None:
    """Return a graph as SVG; None where no program can draw it."""
    with suppress(ImportError, ValueError, RuntimeError, OSError):
        return render(drawing, "svg").decode()
    return None


def _finished(svg: bytes, layout: bytes, drawing: Drawing) -> bytes:
    """Complete an SVG: tooltips, a description for a screen reader, the data, and text lengths.

    A viewer without Helvetica takes another font, perhaps a wider one, whose letters leave their
    boxes. With the length for which its box was made, the viewer fits the letters of a text to it.
    """
    ElementTree.register_namespace("", SVG[1:-1])
    ElementTree.register_namespace("xlink", "http://www.w3.org/1999/xlink")
    root = ElementTree.fromstring(svg)
    lengths = _lengths(layout)
    for text in root.iter(f"{SVG}text"):
        letters = (text.text or "").replace("\u00a0", " ")
        is_bold = text.get("font-weight") == "bold"
        length = lengths.get((letters, float(text.get("font-size", "14")), is_bold))
        if length is not None:
            text.set("textLength", f"{length:.2f}")
            text.set("lengthAdjust", "spacingAndGlyphs")
    tips = tooltips(drawing)
    for group in root.iter(f"{SVG}g"):
        title = group.find(f"{SVG}title")
        if title is not None:
            title.text = tips.get(group.get("id", ""), "")
    style = ElementTree.Element(f"{SVG}style")
    style.text = DARK
    root.insert(0, style)
    root.set("role", "img")
    root.set("aria-label", described(drawing))
    data = ElementTree.Element(f"{SVG}metadata")
    data.text = json.dumps(drawing.data())
    root.insert(0, data)
    picture: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return picture


def _lengths(layout: bytes) -> dict[tuple[str, float, bool], float]:
    """Return the length that Graphviz gave each text: by its letters, size, and whether it is bold.

    Graphviz's JSON lists what it draws, one operation after another: F sets a font and its size, t
    sets bold letters, and T draws a text.
    """
    lengths: dict[tuple[str, float, bool], float] = {}
    size, is_bold = 0.0, False

    def read(part: dict[str, Any]) -> None:
        nonlocal size, is_bold
        match part.get("op"):
            case "F":
                size = part["size"]
            case "t":
                is_bold = bool(part["fontchar"] & 1)
            case "T":
                lengths[part["text"], size, is_bold] = part["width"]

    json.loads(layout, object_hook=read)  # (it calls `read` with each object, in their order)
    return lengths


def refuse_many(what: str, count: int) -> None:
    """Refuse what would take minutes, before it is laid out."""
    if count > LARGEST:
        raise ValueError(
            f"at most {LARGEST:,} {what} can be laid out, and here are {count:,}: take a part, "
            "such as one layer, or print it as text"
        )


def tooltips(drawing: Drawing) -> dict[str, str]:
    """Return for each box's id the text that is shown when the pointer rests on the box."""
    tips = {}
    for box in drawing.boxes:
        last = drawing.vertices[box.vertices[-1]]
        lines = [box.title]
        if box.operation and box.operation != box.title:
            lines = [f"{box.title} {box.operation}"]
        if last.modules:
            lines.append(f"in {last.modules[-1].path}")
        lines += [f"{last.shape} {last.dtype}", f"value: {last.value}"]
        if last.gradient is not None:
            lines.append(f"gradient: {last.gradient}")
        lines += [last.rule.formula if last.rule else "", last.line]
        tips[box.id] = "\n".join(lines).rstrip()
    return tips


def described(drawing: Drawing) -> str:
    """Return a sentence on the first and the last box, and on the extreme gradients."""
    first, last = (drawing.boxes[k].title for k in (0, -1))
    text = f"Computation graph of {len(drawing.boxes)} boxes, from {first} to {last}"
    known = [(v.grad_rms, v.title) for v in drawing.vertices if v.number not in drawing.noise]
    sizes = [(size, title) for size, title in known if size is not None and np.isfinite(size)]
    if not sizes:
        return text
    least, where = min(sizes, key=itemgetter(0))
    most, there = max(sizes, key=itemgetter(0))
    return (
        f"{text}. The RMS of the gradient goes from {least:.3g} at {where} to {most:.3g} at {there}"
    )
