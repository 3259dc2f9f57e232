"""5.9 · Rendering: DOT text in, picture out.

Which program computes where the boxes go? One of Graphviz's: the system's `dot` if it is on PATH,
otherwise `graphviz-pure`, a wheel that contains the same layout engine. The wheel draws SVG and
PNG; PDF needs the system's `dot`. Either program reads DOT and writes bytes.

An SVG names its font, Helvetica, and a viewer without it takes another, perhaps a wider one, whose
letters leave their boxes. So each text is given the length for which its box was made, and the
viewer fits the letters to it. The length is the sum of the widths that Adobe published for
Helvetica, which Graphviz uses, too.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import numpy as np

from minigrad.graphs.text import printable

if TYPE_CHECKING:
    from minigrad.graphs.drawing import Graph

# graphviz-pure prints a line like this for a symbol outside ASCII in a label, whose width it has to
# guess. The guess is near enough.
HARMLESS = "Warning: Warning: no"
PATIENCE = 60  # seconds
SVG = "http://www.w3.org/2000/svg"


def render(drawing: Graph, format: str) -> bytes:
    """The picture of a graph, in "svg", "png" or "pdf".

    ImportError, with what to install, if there is no program, or none that draws the format.
    """
    picture = _laid_out(drawing.source, format)
    return _finished(picture, drawing) if format == "svg" else picture


def _laid_out(source: str, format: str) -> bytes:
    program, is_pure = _program()
    if is_pure and format == "pdf":
        raise ImportError(
            "graphviz-pure draws svg and png: for pdf, install the system's Graphviz "
            "(on Debian: apt install graphviz)"
        )
    # 110 dots an inch: a PNG then has the size that a screen shows the SVG at, a little sharper.
    command = [program, f"-T{format}", *(["-Gdpi=110"] if format == "png" else [])]
    try:
        done = subprocess.run(
            command, input=source.encode(), capture_output=True, check=False, timeout=PATIENCE
        )
    except subprocess.TimeoutExpired:
        raise RuntimeError(
            f"{Path(program).name} did not lay out the graph within {PATIENCE} seconds: draw it "
            "folded, with depth=1 and steps=, or print() it"
        ) from None
    complaints = [
        line for line in done.stderr.decode().splitlines() if not line.startswith(HARMLESS)
    ]
    if done.returncode or not done.stdout:
        raise RuntimeError(f"{Path(program).name} could not draw the graph: {complaints}")
    return done.stdout


def _finished(svg: bytes, drawing: Graph) -> bytes:
    """Texts of a fixed length, tooltips, a description for a screen reader, and the data."""
    ElementTree.register_namespace("", SVG)
    ElementTree.register_namespace("xlink", "http://www.w3.org/1999/xlink")
    root = ElementTree.fromstring(svg)
    for text in root.iter(f"{{{SVG}}}text"):
        bold = text.get("font-weight") == "bold"
        length = text_width(text.text or "", float(text.get("font-size", "14")), bold=bold)
        text.set("textLength", f"{length:.2f}")
        text.set("lengthAdjust", "spacingAndGlyphs")
    tips = tooltips(drawing)
    for group in root.iter(f"{{{SVG}}}g"):
        title = group.find(f"{{{SVG}}}title")
        if title is not None:
            title.text = tips.get(group.get("id", ""), "")
    finding = described(drawing)
    root.set("role", "img")
    root.set("aria-label", finding)
    data = ElementTree.Element(f"{{{SVG}}}metadata")
    data.text = json.dumps(drawing.data())
    root.insert(0, data)
    picture: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return picture


def tooltips(drawing: Graph) -> dict[str, str]:
    """What is shown when the pointer rests on a box, a frame or an arrow: by the id of each."""
    names = {box.id: printable(box.title) for box in drawing.boxes}
    found = {
        f"e{number}": f"{names[link.source]} → {names[link.target]}"
        for number, link in enumerate(drawing.links)
    }
    for box in drawing.boxes:
        last = drawing.vertices[box.vertices[-1]]
        lines = [f"{box.title} {box.operation if box.operation != box.title else ''}".rstrip()]
        if last.modules:
            lines.append(f"in {last.modules[-1].path}")
        lines += [x for x in (box.options, box.detail, f"{last.shape} {last.dtype}") if x]
        lines.append(f"value: {last.value!r}")
        if last.gradient is not None:
            lines.append(f"gradient: {last.gradient!r}")
        lines += [x for x in (last.formula, last.line) if x]
        if last.fused:
            lines.append(f"fused: `with unfused():` shows the steps inside {last.operation}")
        found[box.id] = "\n".join(printable(line) for line in lines)
    return found


def described(drawing: Graph) -> str:
    """The drawing in a sentence: where it begins and ends, and where the gradient is smallest."""
    first, last = (printable(drawing.boxes[k].title) for k in (0, -1))
    text = f"Computation graph of {len(drawing.boxes)} boxes, from {first} to {last}"
    known = [
        v
        for v in drawing.vertices
        if v.grad_rms is not None and np.isfinite(v.grad_rms) and v.number not in drawing.noise
    ]
    if not known:
        return text
    least, most = (pick(known, key=lambda v: v.grad_rms or 0.0) for pick in (min, max))
    ends = [f"{v.grad_rms:.3g} at {printable(v.title)}" for v in (least, most)]
    return f"{text}. The RMS of the gradient goes from {ends[0]} to {ends[1]}"


# ---------------------------------------------------- A first reading may stop here.
# What follows: widths of letters, and the program that draws.

# The widths of the characters from space to ~, in thousandths of the font's size (Adobe's font
# metrics of Helvetica and Helvetica-Bold).
REGULAR = (
    "278 278 355 556 556 889 667 191 333 333 389 584 278 333 278 278 556 556 556 556 556 556 556 "
    "556 556 556 278 278 584 584 584 556 1015 667 667 722 722 667 611 778 722 278 500 667 556 833 "
    "722 778 667 778 722 667 611 722 667 944 667 667 611 278 278 278 469 556 333 556 556 500 556 "
    "556 278 556 556 222 222 500 222 833 556 556 556 556 333 500 278 556 500 722 500 500 500 334 "
    "260 334 584"
)
BOLD = (
    "278 333 474 556 556 889 722 238 333 333 389 584 278 333 278 278 556 556 556 556 556 556 556 "
    "556 556 556 333 333 584 584 584 611 975 722 722 722 722 667 611 778 722 278 556 722 611 833 "
    "722 778 667 778 722 667 611 722 667 944 667 667 611 333 278 333 584 556 333 556 611 556 611 "
    "556 333 611 611 278 278 556 278 889 611 611 611 611 389 556 333 611 556 778 556 556 500 389 "
    "280 389 584"
)
WIDTHS = {
    bold: dict(zip(map(chr, range(32, 127)), map(int, table.split()), strict=True))
    for bold, table in ((False, REGULAR), (True, BOLD))
}
OTHER = 278  # what Graphviz takes for each byte of another character


def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """The width of a line of Helvetica, in the units of the font's size.

    >>> from minigrad.graphs.render import text_width
    >>> text_width("softmax", 10.0), text_width("softmax", 10.0, bold=True)
    (35.01, 38.34)
    """
    known = WIDTHS[bold]
    widths = [known.get(c, OTHER * len(c.encode())) for c in text]
    return size * sum(widths) / 1000


def _program() -> tuple[str, bool]:
    """The program that draws, and whether it is graphviz-pure's.

    pip puts the wheel's program beside python, in a folder that need not be on PATH.
    """
    if system := shutil.which("dot"):
        return system, False
    scripts = sysconfig.get_path("scripts")
    if pure := shutil.which("graphviz-pure", path=scripts) or shutil.which("graphviz-pure"):
        return pure, True
    raise ImportError(
        "drawing needs a Graphviz program, and neither the system's dot nor graphviz-pure is "
        'here: pip install -e ".[draw]"'
    )
