"""Page: a page on which a reader walks through both passes.

A track leads forward over every operation, and then backward over every contribution. The steps of
some rules are worked out (`worked`), and a step says how much of the gradient arrives. Without `at`
the page opens at the step where the smallest share arrives. (`_least` says which steps count.)

The page is one file, and makes no request. Its scripts are `page.js` and dagre, which lays out the
boxes; its content security policy names the hashes of the two, so that nothing else can run. All
texts reach the page as data, never as markup.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

from minigrad.graphs.folding import Box, Drawn, Folding
from minigrad.graphs.model import Vertex, printable, spoken
from minigrad.graphs.render import refuse_many
from minigrad.graphs.scale import DEAD, LOST, Limits, colour, in_words, legend, lost
from minigrad.graphs.summary import Summary, rounded
from minigrad.graphs.worked import Row, computed, remark

if TYPE_CHECKING:
    from minigrad.graphs.steps import Contribution

FOLDER = Path(__file__).parent / "page"
LAID_OUT = 150  # boxes at once
DIGITS = 4
MOST = 64  # numbers of a row; longer rows are not shown
Data = dict[str, Any]
Pass = tuple[str, Sequence[Vertex], Sequence["Contribution"]]


def page(
    passes: Sequence[Pass],
    *,
    title: str,
    limits: Limits | None,
    steps: bool,
    static: str,
    at: str | None = None,
) -> str:
    """Return the page of one pass, or of two passes that did the same on different numbers.

    `static` is the HTML that is shown without JavaScript; `steps` is True for a track. The page
    opens where the gradient of the tensor named `at` goes back.
    ValueError for passes that differ in their operations or contributions, and for a name that no
    result has.
    """
    refuse_many("operations on a page", sum(bool(v.operation) for v in passes[0][1]))
    foldings = [Folding(vertices, sys.maxsize, closed=False) for _, vertices, _ in passes]
    drawn = [folding.drawn() for folding in foldings]
    sent = [[(c.source, c.target, c.position) for c in each] for *_, each in passes]
    made = [
        ([(b.id, b.operation, b.shape, b.frame) for b in boxes], links, way)
        for (boxes, links), way in zip(drawn, sent, strict=True)
    ]
    boxes = drawn[0][0]
    if made[0] != made[-1]:
        said = "two passes on one page need the same operations and contributions"
        raise ValueError(f"{said}: these differ")
    place = {row.vertex: n for n, box in reversed([*enumerate(boxes)]) for row in box.rows}
    place |= {box.vertices[0]: n for n, box in enumerate(boxes)}
    data = {
        "passes": [
            _pass(*each, found, limits, steps) for each, found in zip(passes, drawn, strict=True)
        ],
        "place": [place.get(base) for base in foldings[0].base],  # the box of each vertex
        "groups": _groups(boxes, passes[0][1]),
        "stations": _stations(passes, at) if steps else [],
        "legend": limits and {"ends": [f"{x:g}" for x in limits], "colours": legend(limits)},
        "dead": DEAD,
        "lost": LOST,
        "most": LAID_OUT,
    }
    files = ("page.html", "page.css", "page.js", "dagre.min.js", "dagre.LICENSE")
    template, style, script, dagre, notice = ((FOLDER / f).read_text("utf-8") for f in files)
    hashes = [hashlib.sha256(text.encode()).digest() for text in (dagre, script)]
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return Template(template).substitute(
        TITLE=html.escape(printable(title)),
        HEADING=html.escape(printable(title)).replace("d_k", "<i>d</i><sub>k</sub>"),
        STYLE=style,
        HASHES=" ".join(f"'sha256-{base64.b64encode(each).decode()}'" for each in hashes),
        NOTICE=notice,
        STATIC=static,
        # (In a script element, </ would end the element.)
        DATA=text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"),
        DAGRE=dagre,
        SCRIPT=script,
    )


def _groups(boxes: Sequence[Box], vertices: Sequence[Vertex]) -> dict[str, Data]:
    """Return every frame: its name, the frame around it, and its text when it is closed."""
    found: dict[str, Data] = {}
    layers = {scope.path: scope.layer for v in vertices for scope in v.modules}
    for box in boxes:
        around = ""
        for depth, path in enumerate(box.frame, 1):
            parent = _id(box.frame[: depth - 1])
            known = {"title": path.removeprefix(around), "path": path, "parent": parent}
            group = found.setdefault(_id(box.frame[:depth]) or "", known | {"detail": 0})
            group["detail"] += bool(vertices[box.vertices[0]].operation)
            around = f"{layers[path]}." if path in layers else around
    for group in found.values():
        done = group["detail"]
        group["detail"] = f"{done:,} operation{'s' * (done != 1)}" if done else "no operations"
    return found


def _id(frame: tuple[str, ...]) -> str | None:
    return "/".join(("g", *frame)) if frame else None


def _pass(
    title: str,
    vertices: Sequence[Vertex],
    contributions: Sequence[Contribution],
    drawn: Drawn,
    limits: Limits | None,
    steps: bool,
) -> Data:
    boxes, links = drawn
    numbers = {box.id: n for n, box in enumerate(boxes)}
    names, noise = spoken(vertices), lost(vertices)

    def seen(gradient: Summary, n: int) -> Data:
        shade = DEAD if n in noise or limits is None else colour(gradient.rms, limits)
        return {"said": in_words(gradient.rms, limits, n in noise), "colour": shade}

    def vertex(v: Vertex) -> Data:
        modules = [scope.path for scope in v.modules]
        known = {"options": v.options, "line": v.line, "modules": modules, "moves": v.facts.moves}
        found: Data = {name: x for name, x in known.items() if x}
        found |= {"operation": v.operation, "inputs": v.inputs, "value": _numbers(v.value)}
        if steps and v.operation == "softmax":
            made = computed(vertices[v.inputs[0]].value.whole, v.value.whole)
            found |= _rows(made, v.value.size, {"x": names[v.inputs[0]]}, names[v.number])
        if v.formula:
            known = {"back": v.displayed or [v.formula], "letters": v.letters}
            found["formula"] = {"line": v.formula} | known
        if not steps and v.gradient is not None:
            found["gradient"] = _numbers(v.gradient) | seen(v.gradient, v.number)
        return found

    def box(box: Box) -> Data:
        kept = ("operation", "options", "detail", "kind", "shape")
        name = names[box.vertices[0]]  # (within the frame of a layer, its own name is enough)
        return {name: getattr(box, name) for name in kept} | {
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
    come = _numbers(c.contribution)
    found: Data = {"source": c.source, "target": c.target, "contribution": come}
    if c.source is not None:
        v = vertices[c.source]
        letter = v.letters[c.position] if c.position < len(v.letters) else ""
        found["formula"] = _formula(v.displayed, letter)
        if c.rows and not found["formula"]:
            last = [row.label for row in c.rows if not row.label.startswith("Σ")][-1]
            found["formula"] = f"∂L/∂{letter} = {last}"
        arrives = f"arrives: ∂L/∂{name if (name := names[c.source]).isalnum() else f'({name})'}"
        called = {"y": names[c.source], "g": arrives, "G": arrives}
        for name, i in zip(v.letters, v.inputs, strict=False):
            told = f"the tensor {names[i]}" if names[i] in called else names[i]
            called |= {name: told, name.upper(): told}
        size = max(c.contribution.size, 0 if v.operation == "matmul" else v.value.size)
        found |= _rows(c.rows, size, called, f"goes to {names[c.target]}")
        found |= {"remark": remark(c.rows)} if "rows" in found else {}
    if c.of > 1:
        found["count"] = f"{c.nth} of {c.of}"
    if c.before is not None:
        found["after"] = _numbers(c.after)
    if c.source is not None and c.position in vertices[c.source].facts.copied:
        y, x = vertices[c.source].shape, vertices[c.target].shape
        extra = len(y) - len(x)  # the axes along which x was copied to the shape of y (broadcast)
        axes = [i for i, n in enumerate(y) if n > 1 and (i < extra or x[i - extra] == 1)]
        if axes:
            which = f"{'axis' if len(axes) == 1 else 'axes'} {' and '.join(map(str, axes))}"
            used = f"was used {math.prod(y[i] for i in axes):,} times"
            found["summed"] = f"summed over {which}, because {names[c.target]} {used}"
    return found


def _rows(rows: Sequence[Row], size: int, called: Mapping[str, str], last: str) -> Data:
    """Return the worked rows of a step and which part they show; {} for none, or if too long."""
    longest = max((row.numbers.size for row in rows), default=0)
    if not 0 < longest <= MOST:
        return {}
    written = []
    for row in rows:
        said = last if row is rows[-1] else called.get(row.label.split(",")[0], "")
        written.append(row._asdict() | {"called": said, "numbers": rounded(row.numbers, 6)})
    count, part = size // longest, "the row with the largest element, of {:,} rows"
    if rows[-1].label.startswith("Σ, element"):
        count, part = size, "the largest of {:,} elements"
    return {"rows": written} | ({"shown": part.format(count)} if count > 1 else {})


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


def _formula(displayed: Sequence[str], letter: str) -> str:
    """Return the formula of one input's gradient, out of those that a rule's docstring displays."""
    parts = [part for line in displayed for part in re.split(" {2,}", line.strip())]
    begins = (f"∂L/∂{letter} ", f"∂L/∂{letter.upper()} ", f"∂L/∂{letter}ᵢ ")
    found = next((part for part in reversed(parts) if part.startswith(begins)), "")
    first, *_, last = found.split(" = ") if " = " in found else ("", "")
    return f"{first} = {last}" if found else ""


def _stations(passes: Sequence[Pass], at: str | None) -> list[Data]:
    """Return the places that a reader is offered; the first of them is where the page opens.

    The step that matters is the contribution that falls most, in one of the passes.
    """
    vertices = passes[0][1]
    done = sum(bool(v.operation) for v in vertices)
    matters = min(_least(its, sent) for _, its, sent in passes)[1]
    sent = [*enumerate(passes[0][2], done + 1)]
    if at is not None:
        names = spoken(vertices)
        known = {names[c.source]: n for n, c in reversed(sent) if c.source is not None}
        if at not in known:
            all_of = ", ".join(reversed(known))
            said = f"at= names a result whose gradient goes back, one of {all_of}: got {at!r}"
            raise ValueError(said)
        matters = known[at]
    first = next((n for n, c in sent if c.nth > 1), 0)
    found = [("falls most" if at is None else "opens here", matters)] * bool(matters)
    found += [("start", done + 1)] * bool(sent)
    found += [("first sum", first)] * bool(first) + [("end", done + len(sent))] * bool(sent)
    return [{"name": name, "step": n} for name, n in found]


def _numbers(summary: Summary) -> Data:
    kept, name = summary.kept, "map" if summary.whole is None else "whole"
    if kept.dtype == bool:  # (a page shows 1 and 0)
        kept = kept.astype(int)
    # (Three digits are shown, and they are rounded once.)
    rms = rounded(summary.rms, 3)
    return {"shape": summary.shape, "rms": rms, name: rounded(kept, DIGITS)}
