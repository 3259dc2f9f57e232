"""Page: a page on which a reader walks through both passes.

A track leads forward over every operation, and then backward over every contribution. The steps of
some rules are worked out (`worked`), and a step says how much of the gradient arrives. Without `at`
the page opens at the step where the smallest share arrives. (`_least` says which steps count.)

The page is one file, and makes no request. Its scripts are `web/page.js` and dagre, which lays out
the boxes; its content security policy names the hashes of the two, so that nothing else can run.
All texts reach the page as data, never as markup.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any

from minigrad.graphs.folding import Box, Drawing, Drawn, Folding, Link
from minigrad.graphs.model import Vertex
from minigrad.graphs.names import spoken
from minigrad.graphs.operations import printable
from minigrad.graphs.render import picture, refuse_many
from minigrad.graphs.scale import DEAD, LOST, colour, in_words, legend, lost
from minigrad.graphs.summary import Summary, rounded
from minigrad.graphs.text import as_text
from minigrad.graphs.worked import Contribution, Row, computed, remark

FOLDER = Path(__file__).parent / "web"
LAID_OUT = 150  # boxes at once
DIGITS = 4
MOST = 64  # numbers of a row; longer rows are not shown
Data = dict[str, Any]
Pass = tuple[str, Drawing, Sequence[Contribution]]


def page(
    passes: Sequence[Pass],
    *,
    title: str,
    steps: bool,
    at: str | None = None,
    sources: Mapping[str, str] | None = None,
) -> str:
    """Return the page of one pass, or of two passes that did the same on different numbers.

    `steps` is True for a track. The page opens where the gradient of the tensor named `at` goes
    back. `sources` has the addresses of pages that show files. Without JavaScript it shows the
    drawings.
    ValueError for passes that differ in their operations or contributions, and for a name that no
    result has.
    """
    (_, first, _), *_ = passes
    refuse_many("operations on a page", sum(bool(v.operation) for v in first.vertices))
    foldings = [Folding(it.vertices, sys.maxsize, closed=False) for _, it, _ in passes]
    drawn = [folding.drawn() for folding in foldings]
    outlines = [_outline(*its, sent) for its, (_, _, sent) in zip(drawn, passes, strict=True)]
    if outlines[0] != outlines[-1]:
        raise ValueError(
            "two passes on one page need the same operations and contributions: these differ"
        )
    boxes = drawn[0][0]
    place: dict[int, int] = {}  # of each vertex: the number of its box, or of the first that has it
    for n, box in enumerate(boxes):
        for row in box.rows:
            place.setdefault(row.vertex, n)
    place |= {box.vertices[0]: n for n, box in enumerate(boxes)}
    limits = first.limits
    data = {
        "passes": [_pass(*each, its, steps) for each, its in zip(passes, drawn, strict=True)],
        "place": [place.get(base) for base in foldings[0].base],  # the box of each vertex
        "groups": _groups(boxes, first.vertices),
        "stations": _stations(passes, at) if steps else [],
        "legend": limits and {"ends": [f"{x:g}" for x in limits], "colours": legend(limits)},
        "dead": DEAD,
        "lost": LOST,
        "sources": dict(sources or {}),
        "most": LAID_OUT,
    }
    script, dagre = _read("page.js"), _read("dagre.min.js")
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return Template(_read("page.html")).substitute(
        TITLE=html.escape(printable(title)),
        HEADING=html.escape(printable(title)).replace("d_k", "<i>d</i><sub>k</sub>"),
        STYLE=_read("page.css"),
        HASHES=f"{_hash(dagre)} {_hash(script)}",
        NOTICE=_read("dagre.LICENSE"),
        STATIC="".join(_static(drawing) for _, drawing, _ in passes),
        # (In a script element, </ would end the element.)
        DATA=text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"),
        DAGRE=dagre,
        SCRIPT=script,
    )


def _outline(
    boxes: Sequence[Box], links: Sequence[Link], contributions: Sequence[Contribution]
) -> tuple[Any, ...]:
    """Return what two passes have in common if they did the same on different numbers."""
    kinds = [(box.id, box.operation, box.shape, box.frame) for box in boxes]
    way = [(c.source, c.target, c.position) for c in contributions]
    return kinds, links, way


def _read(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    """Return a script's hash in the form that a content security policy has."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def _static(drawing: Drawing) -> str:
    """Return a graph as a part of a page without JavaScript: as a picture, and as text."""
    svg = (picture(drawing) or "").partition("?>")[2]
    return f'<div class="static">{svg}<pre>{html.escape(as_text(drawing))}</pre></div>'


def _groups(boxes: Sequence[Box], vertices: Sequence[Vertex]) -> dict[str, Data]:
    """Return every frame: its name, the frame around it, and its text when it is closed."""
    groups: dict[str, Data] = {}
    layers = {scope.path: scope.layer for v in vertices for scope in v.modules}
    for box in boxes:
        around = ""
        for depth, path in enumerate(box.frame, 1):
            parent = _id(box.frame[: depth - 1])
            known = {"title": path.removeprefix(around), "path": path, "parent": parent}
            group = groups.setdefault(_id(box.frame[:depth]) or "", known | {"detail": 0})
            group["detail"] += bool(vertices[box.vertices[0]].operation)
            around = f"{layers[path]}." if path in layers else around
    for group in groups.values():
        count = group["detail"]
        group["detail"] = f"{count:,} operations" if count else "no operations"
        if count == 1:
            group["detail"] = "1 operation"
    return groups


def _id(frame: tuple[str, ...]) -> str | None:
    return "/".join(("g", *frame)) if frame else None


def _pass(
    title: str,
    drawing: Drawing,
    contributions: Sequence[Contribution],
    drawn: Drawn,
    steps: bool,
) -> Data:
    boxes, links = drawn
    vertices, limits, noise = drawing.vertices, drawing.limits, drawing.noise
    numbers = {box.id: n for n, box in enumerate(boxes)}
    names = spoken(vertices)

    def seen(gradient: Summary, n: int) -> Data:
        shade = DEAD if n in noise or limits is None else colour(gradient.rms, limits)
        return {"said": in_words(gradient.rms, limits, n in noise), "colour": shade}

    def vertex(v: Vertex) -> Data:
        modules = [scope.path for scope in v.modules]
        known = {"options": v.options, "line": v.line, "modules": modules, "moves": v.facts.moves}
        data: Data = {name: x for name, x in known.items() if x}
        data |= {"operation": v.operation, "inputs": v.inputs, "value": _numbers(v.value)}
        if steps and v.operation == "softmax":
            rows = computed(vertices[v.inputs[0]].value.whole, v.value.whole)
            data |= _rows(rows, v.value.size, {"x": names[v.inputs[0]]}, names[v.number])
        if v.rule is not None and v.rule.formula:
            line = v.rule.formula
            back = v.rule.displayed or [line]
            data["formula"] = {"line": line, "back": back, "letters": v.rule.letters}
        if not steps and v.gradient is not None:
            data["gradient"] = _numbers(v.gradient) | seen(v.gradient, v.number)
        return data

    def box(box: Box) -> Data:
        name = names[box.vertices[0]]  # (within the frame of a layer, its own name is enough)
        return {
            "operation": box.operation,
            "options": box.options,
            "detail": box.detail,
            "kind": box.kind,
            "shape": box.shape,
            "title": box.title if name.endswith(box.title) else name,
            "rows": [{"text": row.text, "vertex": row.vertex} for row in box.rows],
            "vertex": box.vertices[0],
            "parameter": vertices[box.vertices[0]].parameter,
            "group": _id(box.frame),
        }

    return {
        "title": printable(title),
        "names": names,
        "vertices": [vertex(v) for v in vertices],
        "boxes": [box(each) for each in boxes],
        "links": [
            {"source": numbers[k.source], "target": numbers[k.target], "words": k.words}
            for k in links
        ],
        "forward": [v.number for v in vertices if v.operation] if steps else [],
        "backward": [
            _contribution(c, vertices, names) | seen(c.after, c.target)
            for c in (contributions if steps else ())
        ],
    }


def _contribution(c: Contribution, vertices: Sequence[Vertex], names: Sequence[str]) -> Data:
    data: Data = {"source": c.source, "target": c.target}
    data["contribution"] = _numbers(c.contribution)
    if c.source is not None:
        data |= _way(c, vertices[c.source], names)
    if c.of > 1:
        data["count"] = f"{c.nth} of {c.of}"
    if c.before is not None:
        data["after"] = _numbers(c.after)
    if c.source is not None and c.position in vertices[c.source].facts.copied:
        summed = _summed(vertices[c.source].shape, vertices[c.target].shape, names[c.target])
        if summed:
            data["summed"] = summed
    return data


def _way(c: Contribution, source: Vertex, names: Sequence[str]) -> Data:
    """Return how the rule of an operation made this contribution: its formula and worked rows."""
    rule = source.rule
    assert rule is not None
    letter, formula = rule.letter(c.position), rule.gradient(c.position)
    if c.rows and not formula:
        last = [row.label for row in c.rows if not row.label.startswith("Σ")][-1]
        formula = f"∂L/∂{letter} = {last}"
    result = names[source.number]
    arrives = f"arrives: ∂L/∂{result if result.isalnum() else f'({result})'}"
    called = {"y": result, "g": arrives, "G": arrives}
    for name, i in zip(rule.letters, source.inputs, strict=False):
        text = f"the tensor {names[i]}" if names[i] in called else names[i]
        called |= {name: text, name.upper(): text}
    size = max(c.contribution.size, 0 if source.operation == "matmul" else source.value.size)
    rows = _rows(c.rows, size, called, f"goes to {names[c.target]}")
    if rows:
        rows["remark"] = remark(c.rows)
    return {"formula": formula} | rows


def _summed(y: tuple[int, ...], x: tuple[int, ...], name: str) -> str:
    """Return over which axes of y the gradient of x was summed, and why; "" if over none."""
    extra = len(y) - len(x)  # the axes along which x was copied to the shape of y (broadcast)
    axes = [i for i, n in enumerate(y) if n > 1 and (i < extra or x[i - extra] == 1)]
    if not axes:
        return ""
    numbers = " and ".join(map(str, axes))
    which = f"axis {numbers}" if len(axes) == 1 else f"axes {numbers}"
    uses = math.prod(y[i] for i in axes)
    return f"summed over {which}, because {name} was used {uses:,} times"


def _rows(rows: Sequence[Row], size: int, called: Mapping[str, str], last: str) -> Data:
    """Return the worked rows of a step and which part they show; {} for none, or if too long."""
    longest = max((row.numbers.size for row in rows), default=0)
    if not 0 < longest <= MOST:
        return {}
    written = []
    for row in rows:
        name = last if row is rows[-1] else called.get(row.label.split(",")[0], "")
        written.append(row._asdict() | {"called": name, "numbers": rounded(row.numbers, 6)})
    data: Data = {"rows": written}
    count = size // longest
    if rows[-1].label.startswith("Σ, element"):
        if size > 1:
            data["shown"] = f"the largest of {size:,} elements"
    elif count > 1:
        data["shown"] = f"the row with the largest element, of {count:,} rows"
    return data


def _least(vertices: Sequence[Vertex], contributions: Sequence[Contribution]) -> tuple[float, int]:
    """Return the smallest share of a gradient's RMS that arrives, and at which step.

    An operation that only moves, copies or adds numbers does not count, nor does a mean, which
    divides by its length, nor a leaf whose gradient is rounding. (∞, 0) if nothing is left.
    """
    noise, least, matters = lost(vertices), math.inf, 0
    arrived: dict[int, float] = {}  # the RMS of each tensor's gradient, when it goes on
    for n, c in enumerate(contributions, sum(bool(v.operation) for v in vertices) + 1):
        if c.source is not None:
            facts, g = vertices[c.source].facts, arrived[c.source]
            passes = facts.moves or facts.averages or facts.said == "Σ {}"
            counts = not (passes or c.position in facts.added or c.target in noise)
            if counts and 0 < g < math.inf and c.contribution.rms / g < least:
                least, matters = c.contribution.rms / g, n
        arrived[c.target] = c.after.rms
    return least, matters


def _stations(passes: Sequence[Pass], at: str | None) -> list[Data]:
    """Return the places that a reader is offered; the first of them is where the page opens.

    The step that matters is the contribution that falls most, in one of the passes. Where none
    falls, the first is the start.
    """
    _, first, contributions = passes[0]
    start = sum(bool(v.operation) for v in first.vertices) + 1
    share, matters = min(_least(drawing.vertices, sent) for _, drawing, sent in passes)
    if share >= 1:
        matters = 0
    sent = [*enumerate(contributions, start)]
    if at is not None:
        names = spoken(first.vertices)
        known = {names[c.source]: n for n, c in reversed(sent) if c.source is not None}
        if at not in known:
            all_of = ", ".join(reversed(known))
            raise ValueError(
                f"at= names a result whose gradient goes back, one of {all_of}: got {at!r}"
            )
        matters = known[at]
    stations = []
    if matters:
        stations.append(("falls most" if at is None else "opens here", matters))
    if sent:
        stations.append(("start", start))
    sums = [n for n, c in sent if c.nth > 1]
    if sums:
        stations.append(("first sum", sums[0]))
    if sent:
        stations.append(("end", sent[-1][0]))
    return [{"name": name, "step": n} for name, n in stations]


def _numbers(summary: Summary) -> Data:
    kept, name = summary.kept, "map" if summary.whole is None else "whole"
    if kept.dtype == bool:  # (a page shows 1 and 0)
        kept = kept.astype(int)
    # (Three digits are shown, and they are rounded once.)
    rms = rounded(summary.rms, 3)
    return {"shape": summary.shape, "rms": rms, name: rounded(kept, DIGITS)}
