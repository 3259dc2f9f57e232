"""5.8 · DOT: the boxes as text that Graphviz can draw.

How does a data structure become a drawing? Graphviz has laid out graphs for thirty years. So this
chapter only says what there is, in Graphviz's DOT language: one statement for each box, one for
each arrow, and a cluster for each layer's frame. The `graphviz` package writes and quotes them.

In a drawing with gradients, colour says one thing only, the size of a gradient. All else can be
told without it: a leaf is rounded with a thick line, a closed layer has a double line, an operation
without a record or a gradient of 0 a dashed one, and each gradient is written as a number.
"""

from __future__ import annotations

import html
import itertools
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from minigrad.graphs.folding import SIGNS
from minigrad.graphs.scale import DEAD, colour
from minigrad.graphs.text import gradient_of, notes, ordinal, printable, words_of

if TYPE_CHECKING:
    from minigrad.graphs.drawing import Graph
    from minigrad.graphs.folding import Box, Link

LONGEST = 60  # characters of a name that somebody typed

FILL = {"leaf": "#dcebdc", "constant": "#ffffff"}
PLAIN = "#e4ecf5"  # operations and layers
ORDERED = ("divide", "matmul", "power", "remainder", "subtract", "where")
SMALL = 'POINT-SIZE="9.5"'
TABLE = '<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="1" CELLPADDING="1">'


def dot_text(drawing: Graph) -> str:
    """The graph in the DOT language; deterministic, one statement a line."""
    digraph = _graphviz().Digraph(
        graph_attr={
            "bgcolor": "white",
            "nodesep": "0.3",
            "ranksep": "0.3",
            "ordering": "in",
            "fontname": "Helvetica",
            "fontsize": "10",
            "labelloc": "b",
        },
        node_attr={"fontname": "Helvetica", "fontsize": "11", "margin": "0.1,0.05"},
        edge_attr={"arrowsize": "0.6", "color": "#555555", "fontname": "Helvetica"},
    )
    digraph.edge_attr |= {"fontsize": "9", "fontcolor": "#444444"}
    if legend := _legend(drawing):
        digraph.graph_attr["label"] = legend
    _write(digraph, drawing, drawing.boxes, (), _links_of_frames(drawing))
    return str(digraph.source)


def _links_of_frames(drawing: Graph) -> dict[tuple[str, ...], list[tuple[int, Link]]]:
    """The arrows that each frame holds, with their numbers: those whose both ends are in it.

    Graphviz then keeps the words on the arrow inside the frame.
    """
    frames = {box.id: box.frame for box in drawing.boxes}
    found: dict[tuple[str, ...], list[tuple[int, Link]]] = {}
    for number, link in enumerate(drawing.links):
        ends = zip(frames[link.source], frames[link.target], strict=False)
        common = tuple(a for a, _ in itertools.takewhile(lambda pair: pair[0] == pair[1], ends))
        found.setdefault(common, []).append((number, link))
    return found


def _write(
    digraph: Any,
    drawing: Graph,
    boxes: Sequence[Box],
    frame: tuple[str, ...],
    links: dict[tuple[str, ...], list[tuple[int, Link]]],
) -> None:
    """The boxes of a frame, in order, the frames within it as clusters, and its arrows."""
    depth = len(frame)
    inner: list[Box] = []
    for k, box in enumerate(boxes):
        if len(box.frame) == depth:
            digraph.node(box.id, _label(box, drawing), **_style(box, drawing))
            continue
        inner.append(box)
        following = boxes[k + 1].frame if k + 1 < len(boxes) else ()
        within = box.frame[: depth + 1]
        if following[: depth + 1] != within:
            with digraph.subgraph(name=f"cluster_{inner[0].id}_{depth}") as cluster:
                cluster.attr(
                    label=_plain(within[-1]),
                    labelloc="t",
                    labeljust="l",
                    style="dashed,rounded",
                    color="#777777",
                    id=f"f{inner[0].id}_{depth}",
                )
                _write(cluster, drawing, inner, within, links)
            inner = []
    for number, link in links.pop(frame, ()):
        words = {"label": _plain(f" {link.words}")} if link.words else {}
        digraph.edge(link.source, link.target, id=f"e{number}", **words)


def _label(box: Box, drawing: Graph) -> str:
    """A table: the name and the operation, the shape and the gradient, and what is inside."""
    called = [x for x in (box.operation, box.options, box.detail) if x and x != box.title]
    words = [f"<B>{_text(box.title)}</B>", *map(_text, called)]
    gradient = gradient_of(box, drawing) if box.kind != "unrecorded" else "no record"
    facts = " ".join(x for x in (str(box.shape), _text(gradient)) if x)
    lines = [f"<TR><TD>{' '.join(words)}</TD></TR>"]
    lines.append(f"<TR><TD><FONT {SMALL}>{facts}</FONT></TD></TR>")
    first_arrow = drawing.first_arrows.get(box.id, -1)
    for row in box.rows:
        is_written = box.operation in SIGNS and drawing.vertices[row.vertex].kind == "constant"
        is_before = 0 <= row.position < first_arrow and box.operation in ORDERED and not is_written
        words_inside = (
            f"{ordinal(row.position + 1)} input:" if is_before else "",
            row.text,
            words_of(row.grad, row.vertex, drawing),
        )
        cell = f"<FONT {SMALL}>{_text(' '.join(x for x in words_inside if x))}</FONT>"
        border = ' BORDER="1" COLOR="#999999"' if row.grad is not None else ""
        lines.append(f"<TR><TD{border}{_cell(row.grad, row.vertex, drawing)}>{cell}</TD></TR>")
    if box.strip:
        lines.append(f"<TR><TD>{_strip(box, drawing)}</TD></TR>")
    return f"<{TABLE}{''.join(lines)}</TABLE>>"


def _strip(box: Box, drawing: Graph) -> str:
    """A row of small cells: the gradient at the output of each copy."""
    cells = "".join(
        f'<TD BORDER="1" COLOR="#999999"{_cell(grad, -1, drawing)}><FONT POINT-SIZE="8">'
        f"{_text(label)}{f'<BR/>{grad:.2g}' if grad is not None else ''}</FONT></TD>"
        for label, grad in box.strip
    )
    return f"{TABLE}<TR>{cells}</TR></TABLE>"


def _cell(grad: float | None, vertex: int, drawing: Graph) -> str:
    if grad is None or drawing.limits is None:
        return ""
    return f' BGCOLOR="{_fill(grad, vertex, drawing)}"'


def _fill(grad: float, vertex: int, drawing: Graph) -> str:
    if drawing.limits is None or vertex in drawing.noise:
        return DEAD
    return colour(grad, drawing.limits)


def _style(box: Box, drawing: Graph) -> dict[str, str]:
    if box.kind == "constant":
        return {"shape": "plain", "fontcolor": "#333333", "id": box.id}
    fill = FILL.get(box.kind, PLAIN)
    if drawing.limits is not None and box.grad is not None:
        fill = _fill(box.grad, box.vertices[-1], drawing)
    styles = ["filled"]
    attributes = {"shape": "box", "fillcolor": fill, "id": box.id}
    if box.kind == "leaf":
        styles.append("rounded")
        attributes["penwidth"] = "1.6"
    if box.of_several:
        attributes["peripheries"] = "2"
    if box.grad == 0 or box.vertices[-1] in drawing.noise or box.kind == "unrecorded":
        styles.append("dashed")
    return attributes | {"style": ",".join(styles)}


def _legend(drawing: Graph) -> str:
    """Below the drawing: a strip of colours from one limit to the other, and the notes."""
    said = notes(drawing)
    if any(box.of_several for box in drawing.boxes):
        said.append("double line: several operations")
    lines = ['<TR><TD COLSPAN="9" HEIGHT="14"></TD></TR>']
    if drawing.limits is not None:
        low, high = drawing.limits
        shades = [colour(low * (high / low) ** (i / 6), drawing.limits) for i in range(7)]
        strip = "".join(f'<TD BGCOLOR="{shade}" WIDTH="20" HEIGHT="12"></TD>' for shade in shades)
        lines.append(
            f"<TR><TD>{low:g} </TD>{strip}<TD> {high:g}</TD></TR>"
            '<TR><TD COLSPAN="9">RMS of the gradient, on a logarithmic scale</TD></TR>'
        )
        said.append("arrows: forward; the gradient goes back, upwards")
    lines += [
        f'<TR><TD COLSPAN="9">{html.escape(line)}</TD></TR>'
        for sentence in said
        for line in textwrap.wrap(sentence, 60)
    ]
    if len(lines) == 1:
        return ""
    return f'<<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0">{"".join(lines)}</TABLE>>'


# ---------------------------------------------------- A first reading may stop here.
# What follows: texts that somebody typed.


def _text(text: str) -> str:
    """The same inside of Graphviz's HTML-like labels, and not too long.

    A backslash is a command there, too: \\N is the name of the node.
    """
    return html.escape(_short(text)).replace("\\", "\\\\")


def _short(text: str) -> str:
    line = printable(text)
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"


def _plain(text: str) -> str:
    """The same in a plain label, where Graphviz reads &lt; as < and a backslash as a command."""
    escaped: str = _graphviz().escape(html.escape(_short(text), quote=False))
    return escaped


def _graphviz() -> Any:
    try:
        import graphviz
    except ImportError:
        raise ImportError('drawing a graph needs graphviz: pip install -e ".[draw]"') from None
    return graphviz
