"""5.10 · Stepping: a page on which a reader walks through both passes.

A picture shows the end of a pass. How did it come about? The page that this chapter writes has one
slider: forward over every operation, and then backward over every contribution. Each step shows the
operation with its line, its formula, and the numbers: forward the value, backward what had arrived
before, what comes, and the sum. Layers open and close by a click.

The page is one file. It asks nothing of the network, and what runs in it is `page.js` and dagre,
which lays out the boxes; its content security policy names the hashes of the two, so that nothing
else can run. All texts reach the page as data, never as markup.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

from minigrad.graphs.folding import Box, Folding, Link
from minigrad.graphs.model import Vertex
from minigrad.graphs.nesting import Group, Item
from minigrad.graphs.scale import SCALE, Limits
from minigrad.graphs.summary import Summary, rounded
from minigrad.graphs.text import nth_of, numbered, printable, unique_names

if TYPE_CHECKING:
    from minigrad.graphs.steps import Contribution

FOLDER = Path(__file__).parent / "page"
LARGEST = 5000  # operations; a page of more would take seconds to open
DIGITS = 4


def page(
    passes: Sequence[tuple[str, Sequence[Vertex], Sequence[Contribution]]],
    *,
    title: str,
    limits: Limits | None,
    steps: bool,
    static: str,
) -> str:
    """The page of one pass, or of two that did the same on other numbers, with their names.

    `static` is what is shown without JavaScript, as HTML; `steps` whether there is a slider.

    ValueError for passes that differ in their operations, and for more than 5,000 of them.
    """
    _check(passes)
    script, dagre = ((FOLDER / name).read_text("utf-8") for name in ("page.js", "dagre.min.js"))
    opened = [_Opened(vertices, depth=sys.maxsize, repeats=False) for _, vertices, _ in passes]
    drawn = [folding.drawn() for folding in opened]
    data = {
        "passes": [
            _pass(*each, folding, *boxes_and_links, steps=steps)
            for each, folding, boxes_and_links in zip(passes, opened, drawn, strict=True)
        ],
        "groups": _groups(drawn[0][0], passes[0][1]),
        "limits": limits,
        "scale": SCALE,
        "noise": sorted(opened[0].noise),
    }
    first = printable(title)
    return Template((FOLDER / "page.html").read_text("utf-8")).substitute(
        TITLE=html.escape(first),
        INTRO=html.escape(
            "Every operation of a forward pass, and then every contribution of the backward pass."
            if steps
            else "The record of a computation."
        ),
        STYLE=(FOLDER / "page.css").read_text("utf-8"),
        HASHES=" ".join(f"'sha256-{_hash(text)}'" for text in (dagre, script)),
        NOTICE=(FOLDER / "dagre.LICENSE").read_text("utf-8"),
        STATIC=static,
        DATA=_as_json(data),
        DAGRE=dagre,
        SCRIPT=script,
    )


def _check(passes: Sequence[tuple[str, Sequence[Vertex], Sequence[Contribution]]]) -> None:
    done = sum(bool(v.operation) for v in passes[0][1])
    if done > LARGEST:
        raise ValueError(
            f"a page can hold {LARGEST:,} operations, and this pass has {done:,}: take fewer "
            "layers, or save the folded graph as .svg"
        )
    shapes = [
        (
            [(v.operation, v.shape, v.inputs) for v in vertices],
            [(c.source, c.target, c.position) for c in contributions],
        )
        for _, vertices, contributions in passes
    ]
    if any(shape != shapes[0] for shape in shapes):
        raise ValueError(
            "two passes on one page must have made the same operations on the same shapes: these "
            "differ"
        )


def _pass(
    title: str,
    vertices: Sequence[Vertex],
    contributions: Sequence[Contribution],
    folding: Folding,
    boxes: Sequence[Box],
    links: Sequence[Link],
    *,
    steps: bool,
) -> dict[str, Any]:
    numbers = {box.id: n for n, box in enumerate(boxes)}
    place: list[int | None] = [None] * len(vertices)
    for n, box in enumerate(boxes):
        for row in box.rows:
            if place[row.vertex] is None:
                place[row.vertex] = n
    for n, box in enumerate(boxes):
        place[box.vertices[0]] = n
    place = [place[folding.base[v.number]] for v in vertices]
    return {
        "title": printable(title),
        "names": numbered([printable(v.title) for v in vertices], [""] * len(vertices)),
        "vertices": [_vertex(v, with_gradient=not steps) for v in vertices],
        "boxes": [_box(box, vertices) for box in boxes],
        "links": [
            {"source": numbers[k.source], "target": numbers[k.target], "words": k.words}
            for k in links
        ],
        "place": place,
        "forward": [v.number for v in vertices if v.operation] if steps else [],
        "backward": [_contribution(c) for c in contributions] if steps else [],
    }


def _vertex(v: Vertex, *, with_gradient: bool) -> dict[str, Any]:
    found = {
        "operation": v.operation,
        "kind": v.kind,
        "options": v.options,
        "inputs": v.inputs,
        "value": _summary(v.value),
        "line": v.line,
        "formula": v.formula,
        "vjp": v.vjp,
        "modules": [scope.path for scope in v.modules],
        "gradient": _summary(v.gradient) if with_gradient and v.gradient is not None else None,
    }
    return {name: x for name, x in found.items() if x not in ("", None) and x != []} | {
        "operation": v.operation,
        "inputs": v.inputs,
    }


def _box(box: Box, vertices: Sequence[Vertex]) -> dict[str, Any]:
    return {
        "title": printable(box.title),
        "operation": box.operation,
        "options": printable(box.options),
        "detail": printable(box.detail),
        "kind": box.kind,
        "shape": box.shape,
        "rows": [{"text": printable(row.text), "vertex": row.vertex} for row in box.rows],
        "vertex": box.vertices[0],
        "parameter": vertices[box.vertices[0]].parameter,
        "group": _id(box.frame) if box.frame else None,
    }


def _contribution(c: Contribution) -> dict[str, Any]:
    found: dict[str, Any] = {
        "source": c.source,
        "target": c.target,
        "position": c.position,
        "contribution": _summary(c.contribution),
    }
    if c.of > 1:
        found["count"] = nth_of(c.nth, c.of)
    if c.before is not None:
        found["after"] = _summary(c.after)
    return found


def _groups(boxes: Sequence[Box], vertices: Sequence[Vertex]) -> dict[str, dict[str, Any]]:
    """Every frame: its name, the frame around it, and what is said of it when it is closed."""
    found: dict[str, dict[str, Any]] = {}
    layers = {scope.path: scope.layer for v in vertices for scope in v.modules}
    for box in boxes:
        for depth in range(1, len(box.frame) + 1):
            frame = box.frame[:depth]
            around = [layers[path] for path in frame[:-1] if path in layers]
            group = found.setdefault(
                _id(frame),
                {
                    "title": printable(frame[-1].removeprefix(f"{around[-1]}." if around else "")),
                    "path": frame[-1],
                    "parent": _id(frame[:-1]) if depth > 1 else None,
                    "operations": 0,
                },
            )
            group["operations"] += bool(vertices[box.vertices[0]].operation)
    for group in found.values():
        group["detail"] = f"{group.pop('operations')} operations"
    return found


def _id(frame: tuple[str, ...]) -> str:
    return "/".join(("g", *frame))


class _Opened(Folding):
    """A folding whose layers are all open; further copies of a layer have a frame of their own."""

    def _repeat(self, copies: list[list[Item]], parent: Group, frame: tuple[str, ...]) -> None:
        title, _, _ = self._of_copies(copies, parent)
        around = frame if len(copies) == 1 else (*frame, title)
        for copy in copies:
            for item in copy:
                self._emit_item(item, parent, around, 0)


# ---------------------------------------------------- A first reading may stop here.
# What follows: numbers and text, as a page takes them.


def table(vertices: Sequence[Vertex]) -> str:
    """The gradients as an HTML table, for a reader without JavaScript."""
    rows = [
        f"<tr><td>{html.escape(printable(name))}</td><td>{v.shape}</td><td>{v.grad_rms:.3g}</td></tr>"
        for name, v in zip(unique_names(vertices), vertices, strict=True)
        if v.grad_rms is not None
    ]
    head = "<tr><th>tensor</th><th>shape</th><th>RMS of the gradient</th></tr>"
    return f"<table>{head}{''.join(rows)}</table>" if rows else ""


def _summary(summary: Summary) -> dict[str, Any]:
    kept, name = summary.kept, "map" if summary.whole is None else "whole"
    if kept.dtype == bool:  # (a page shows 1 and 0)
        kept = kept.astype(int)
    rms = rounded(summary.rms, DIGITS)
    return {"shape": summary.shape, "rms": rms, name: rounded(kept, DIGITS)}


def _as_json(data: Mapping[str, Any]) -> str:
    """JSON inside of a script element: </ would end the element."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
