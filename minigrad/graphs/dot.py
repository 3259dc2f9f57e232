"""5.2 · DOT: the graph model as text that Graphviz can draw.

How does a data structure become a drawing? Graphviz has laid out graphs for thirty years. So this
chapter only says what there is, in Graphviz's DOT language: one line for each box, and one for
each arrow. The `graphviz` package writes those lines and quotes the names that users typed: a
tensor named `<b>` or `"q"` is shown with exactly that name.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from minigrad.graphs.model import Arrow, Vertex

Limits = tuple[float, float]
FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # in XML 1.0

# From the smallest gradient to the largest: pale grey, yellow, orange. Black text can be read on
# each. Each is darker than the one before, so the order is kept in print and for colour-blind eyes.
SCALE = ("#f4f4f5", "#fdf3c6", "#fbdf82", "#f7bd4b", "#ee8f31")
DEAD = "#ffffff"
FILL = {"leaf": "#dcebdc", "operation": "#e4ecf5", "constant": "#ffffff"}


def dot_text(vertices: Sequence[Vertex], arrows: Sequence[Arrow], limits: Limits | None) -> str:
    """The graph in the DOT language; deterministic, one statement a line.

    `limits` are the ends of the colour scale, None where boxes are not coloured by gradient.
    """
    graphviz = _graphviz()
    digraph = graphviz.Digraph(
        graph_attr={"bgcolor": "white", "nodesep": "0.3", "ranksep": "0.35", "ordering": "in"},
        node_attr={"fontname": "Helvetica", "fontsize": "11", "margin": "0.12,0.06"},
        edge_attr={"arrowsize": "0.6", "color": "#555555"},
    )
    for vertex in vertices:
        # Graphviz reads &lt; in a label as <, so an & that somebody typed is escaped first.
        # What XML forbids, such as control characters and lone surrogates, becomes a ?.
        text = FORBIDDEN.sub("?", _label(vertex))
        label = graphviz.escape(text.replace("&", "&amp;"))
        digraph.node(f"t{vertex.number}", label, **_style(vertex, limits))
    for arrow in arrows:
        digraph.edge(f"t{arrow.source}", f"t{arrow.target}")
    if limits is not None:
        digraph.node("legend", _legend(limits), shape="plain")
    return str(digraph.source)


def colour(strength: float, limits: Limits) -> str:
    """A gradient's place on the log scale between the limits, as #rrggbb.

    >>> from minigrad.graphs.dot import colour
    >>> colour(1e-3, (1e-3, 1e3)), colour(1.0, (1e-3, 1e3)), colour(1e9, (1e-3, 1e3))
    ('#f4f4f5', '#fbdf82', '#ee8f31')
    """
    low, high = (math.log10(limit) for limit in limits)
    if not strength > 0:
        return DEAD
    place = (math.log10(strength) - low) / (high - low) if math.isfinite(strength) else 1.0
    place = min(max(place, 0.0), 1.0) * (len(SCALE) - 1)
    left = min(int(place), len(SCALE) - 2)
    channels = [
        round(a + (b - a) * (place - left))
        for a, b in zip(_rgb(SCALE[left]), _rgb(SCALE[left + 1]), strict=True)
    ]
    return "#" + "".join(f"{channel:02x}" for channel in channels)


def _rgb(text: str) -> tuple[int, ...]:
    return tuple(int(text[i : i + 2], 16) for i in (1, 3, 5))


def _label(vertex: Vertex) -> str:
    """The title, the operation if the title is another name, the options, shape and gradient."""
    if vertex.kind == "constant":
        return vertex.title if vertex.shape == () else f"{vertex.title}\n{vertex.shape}"
    called = vertex.operation + (f" {vertex.options}" if vertex.options else "")
    first = called if vertex.title == vertex.operation else vertex.title
    lines = [first] + ([called] if vertex.operation and first != called else [])
    lines.append(str(vertex.shape))
    if vertex.grad_rms is not None:
        lines.append(f"grad {vertex.grad_rms:.1e}" if vertex.grad_rms else "grad 0")
    return "\n".join(lines)


def _style(vertex: Vertex, limits: Limits | None) -> dict[str, str]:
    if vertex.kind == "constant":
        return {"shape": "plaintext", "fontcolor": "#555555", "height": "0.1", "margin": "0.04"}
    rounded = ",rounded" if vertex.kind == "leaf" else ""
    pen = {"penwidth": "1.6"} if vertex.kind == "leaf" else {}
    if limits is None or vertex.grad_rms is None:
        fill = FILL[vertex.kind]
    else:
        fill = colour(vertex.grad_rms, limits)
    dashed = ",dashed" if vertex.grad_rms == 0 else ""
    return {"shape": "box", "style": f"filled{rounded}{dashed}", "fillcolor": fill, **pen}


def _legend(limits: Limits) -> str:
    """A strip of colours from one limit to the other, as one of Graphviz's HTML-like tables."""
    low, high = (math.log10(limit) for limit in limits)
    cells = 9
    shades = [colour(10 ** (low + (high - low) * i / (cells - 1)), limits) for i in range(cells)]
    strip = "".join(f'<TD BGCOLOR="{shade}" WIDTH="16" HEIGHT="12"></TD>' for shade in shades)
    return (
        '<<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0">'
        f'<TR><TD COLSPAN="{cells}">RMS of the gradient (log scale)</TD></TR>'
        f"<TR>{strip}</TR>"
        f'<TR><TD COLSPAN="4" ALIGN="LEFT">{limits[0]:.0e}</TD>'
        f'<TD></TD><TD COLSPAN="4" ALIGN="RIGHT">{limits[1]:.0e}</TD></TR></TABLE>>'
    )


def _graphviz() -> Any:
    try:
        import graphviz
    except ImportError:
        raise ImportError('drawing a graph needs graphviz: pip install -e ".[draw]"') from None
    return graphviz
