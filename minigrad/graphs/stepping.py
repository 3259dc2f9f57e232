"""5.10 · Stepping: a page on which a reader walks through both passes.

A picture shows the end of a pass. How did it come about? The page that this chapter writes has one
slider: forward over every operation, and then backward over every contribution. Each step shows the
operation with its line, its formula, and the numbers: forward the value, backward what had arrived
before, what comes, and the sum. A click on a box shows its numbers; a click on a layer opens it.

A page holds up to 5,000 operations, and a browser lays out at most 150 boxes at once. So what
stands beside each other and is more than that is cut into parts, which open like layers.

The page is one file. It asks nothing of the network, and what runs in it is `page.js` and dagre,
which lays out the boxes; its content security policy names the hashes of the two, so that nothing
else can run. All texts reach the page as data, never as markup. Words and colours of gradients are
those of chapter 5.5, so a page and a picture cannot differ.
"""

from __future__ import annotations

import base64
import hashlib
import html
import inspect
import json
import math
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

from minigrad.graphs.folding import Box, Folding, Link
from minigrad.graphs.model import Vertex
from minigrad.graphs.nesting import Group, Item
from minigrad.graphs.scale import DEAD, LOST, Limits, checked_limits, colour, in_words, lost
from minigrad.graphs.summary import Summary, rounded
from minigrad.graphs.text import nth_of, numbered, printable, unique_names

if TYPE_CHECKING:
    from minigrad.graphs.steps import Contribution

FOLDER = Path(__file__).parent / "page"
LARGEST = 5000  # operations; a page of more would take seconds to open
LAID_OUT = 150  # boxes at once
DIGITS = 4

Pass = tuple[str, Sequence[Vertex], Sequence["Contribution"]]


def page(
    passes: Sequence[Pass], *, title: str, limits: Limits | None, steps: bool, static: str
) -> str:
    """The page of one pass, or of two that did the same on other numbers, with their names.

    `static` is what is shown without JavaScript, as HTML; `steps` whether there is a slider.

    The two may differ in names, layers and options. They are drawn as the first one is, and each
    box of the second has its own texts and gradients.

    ValueError for passes that differ in their operations, and for more than 5,000 of them.
    """
    check_words(title, [name for name, _, _ in passes])
    _check(passes)
    limits = checked_limits(limits)
    script, dagre = ((FOLDER / name).read_text("utf-8") for name in ("page.js", "dagre.min.js"))
    vertices = passes[0][1]
    opened = _Opened(vertices, depth=sys.maxsize, repeats=False)
    whole, links = opened.drawn()
    boxes = _parted(whole, vertices)
    formulas: dict[tuple[Any, ...], dict[str, Any]] = {}
    data = {
        "passes": [
            _pass(*each, *_as_the_first(each[1], boxes, links, vertices), limits, formulas, steps)
            for each in passes
        ],
        "place": _places(opened, boxes),
        "groups": _groups(boxes, vertices),
        "formulas": list(formulas.values()),
        "limits": limits,
        "legend": _legend(limits),
        "dead": DEAD,
        "lost": LOST,
        "most": LAID_OUT,
    }
    first = printable(title)
    return Template((FOLDER / "page.html").read_text("utf-8")).substitute(
        TITLE=html.escape(first),
        INTRO=html.escape(
            "Every operation of a forward pass, and then every contribution of the backward pass."
            if steps
            else "The record of a computation: each box is a tensor, below those it was made from."
        ),
        STYLE=(FOLDER / "page.css").read_text("utf-8"),
        HASHES=" ".join(f"'sha256-{_hash(text)}'" for text in (dagre, script)),
        NOTICE=(FOLDER / "dagre.LICENSE").read_text("utf-8"),
        STATIC=static,
        DATA=_as_json(data),
        DAGRE=dagre,
        SCRIPT=script,
    )


def check_words(title: Any, titles: Sequence[Any]) -> None:
    """TypeError for a title that is not text."""
    for text in (title, *titles):
        if not isinstance(text, str):
            raise TypeError(f"a title must be text: got {text!r:.60}")


def _check(passes: Sequence[Pass]) -> None:
    if not all(vertices for _, vertices, _ in passes):
        raise ValueError("a page needs at least one operation, and this pass has none")
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


# ---------------------------------------------------------------- the boxes


class _Opened(Folding):
    """A folding whose layers are all open; further copies of a layer have a frame of their own."""

    def _repeat(self, copies: list[list[Item]], parent: Group, frame: tuple[str, ...]) -> None:
        title, _, _ = self._of_copies(copies, parent)
        around = frame if len(copies) == 1 else (*frame, title)
        for copy in copies:
            for item in copy:
                self._emit_item(item, parent, around, 0)


def _as_the_first(
    vertices: Sequence[Vertex],
    boxes: Sequence[Box],
    links: Sequence[Link],
    of_first: Sequence[Vertex],
) -> tuple[Sequence[Box], Sequence[Link]]:
    """A pass's own boxes and arrows, one for each of the first pass's, in their order.

    What is a box depends on names and layers, so those of the first pass are taken for that.
    """
    if vertices is of_first:
        return boxes, links
    alike = [
        replace(
            v,
            kind=w.kind,
            named=w.named,
            parameter=w.parameter,
            modules=w.modules,
            moves=w.moves,
        )
        for v, w in zip(vertices, of_first, strict=True)
    ]
    own, own_links = _Opened(alike, depth=sys.maxsize, repeats=False).drawn()
    found = {box.id: box for box in own}
    drawn = []
    for box in boxes:
        n = box.vertices[0]
        v, mine = vertices[n], found[box.id]
        if box.title != of_first[n].title:  # (that of a layer of one operation)
            around = v.modules[-2].layer if len(v.modules) > 1 else ""
            title = v.modules[-1].path.removeprefix(f"{around}.") if v.modules else v.title
            mine = replace(mine, title=title)
        drawn.append(replace(mine, kind=v.kind, frame=box.frame))
    return drawn, own_links


def _parted(boxes: Sequence[Box], vertices: Sequence[Vertex]) -> Sequence[Box]:
    """The boxes, with frames around neighbours where more than 150 would be laid out at once.

    A part has at most `most` boxes, layers or smaller parts: as many as possible, so that each
    layer can be opened, together with those around it.
    """
    items: dict[tuple[str, ...], dict[Any, list[int]]] = {}  # of a frame: what stands in it
    for n, box in enumerate(boxes):
        for depth in range(len(box.frame) + 1):
            item = box.frame[: depth + 1] if depth < len(box.frame) else n
            items.setdefault(box.frame[:depth], {}).setdefault(item, []).append(n)
    for most in (len(boxes), 25, 16, 10, 7, 5, 4, 3, 2):
        needed: dict[tuple[str, ...], int] = {}
        for frame in sorted(items, key=len, reverse=True):
            deeper = [needed[item] for item in items[frame] if isinstance(item, tuple)]
            needed[frame] = _width(len(items[frame]), most) + max(deeper, default=0)
        if needed[()] <= LAID_OUT:
            break
    step = {v.number: k for k, v in enumerate((v for v in vertices if v.operation), 1)}
    parts: dict[tuple[str, ...], dict[Any, tuple[str, ...]]] = {}
    for frame, inside in items.items():
        known = list(inside.items())
        found: list[tuple[str, ...]] = [()] * len(known)
        for start, end in _parts(0, len(known), most):
            numbers = [boxes[n].vertices[0] for _, each in known[start:end] for n in each]
            done = [step[n] for n in numbers if n in step]
            what, these = ("operations", done) if done else ("tensors", numbers)
            for i in range(start, end):
                found[i] += (f"{what} {min(these):,} … {max(these):,}",)
        parts[frame] = dict(zip(inside, found, strict=True))
    return [replace(box, frame=_within(n, box.frame, parts)) for n, box in enumerate(boxes)]


def _within(
    n: int, frame: tuple[str, ...], parts: Mapping[tuple[str, ...], Mapping[Any, tuple[str, ...]]]
) -> tuple[str, ...]:
    """A box's frame with the parts around it."""
    found: tuple[str, ...] = ()
    for depth, name in enumerate(frame):
        found += (*parts[frame[:depth]][frame[: depth + 1]], name)
    return found + parts[frame][n]


def _cuts(start: int, end: int, most: int) -> list[int]:
    count = end - start
    pieces = min(most, -(-count // most))
    return [start + count * k // pieces for k in range(pieces + 1)]


def _parts(start: int, end: int, most: int) -> Iterator[tuple[int, int]]:
    """Parts of a list of items, the larger ones first, so that none holds more than `most`."""
    if end - start > most:
        for part in pairwise(_cuts(start, end, most)):
            yield part
            yield from _parts(*part, most)


def _width(count: int, most: int) -> int:
    """How many boxes are laid out if one part of a list is opened, and one in it, and so on."""
    if count <= most:
        return count
    cuts = _cuts(0, count, most)
    return len(cuts) - 1 + _width(max(b - a for a, b in pairwise(cuts)), most)


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
                    "path": printable(frame[-1]),
                    "parent": _id(frame[:-1]) if depth > 1 else None,
                    "operations": 0,
                },
            )
            group["operations"] += bool(vertices[box.vertices[0]].operation)
    for group in found.values():
        done = group.pop("operations")
        group["detail"] = f"{done:,} operation{'s' * (done != 1)}" if done else "no operations"
    return found


def _id(frame: tuple[str, ...]) -> str:
    return printable("/".join(("g", *frame)))


def _places(folding: Folding, boxes: Sequence[Box]) -> list[int | None]:
    """For each vertex the box in which it is shown."""
    place: list[int | None] = [None] * len(folding.vertices)
    for n, box in enumerate(boxes):
        for row in box.rows:
            if place[row.vertex] is None:
                place[row.vertex] = n
    for n, box in enumerate(boxes):
        place[box.vertices[0]] = n
    return [place[folding.base[v.number]] for v in folding.vertices]


# ---------------------------------------------------------------- a pass as data


def _pass(
    title: str,
    vertices: Sequence[Vertex],
    contributions: Sequence[Contribution],
    boxes: Sequence[Box],
    links: Sequence[Link],
    limits: Limits | None,
    formulas: dict[tuple[Any, ...], dict[str, Any]],
    steps: bool,
) -> dict[str, Any]:
    numbers = {box.id: n for n, box in enumerate(boxes)}
    names = numbered([printable(v.title) for v in vertices], [""] * len(vertices))
    noise = lost(vertices)

    def seen(gradient: Summary, n: int) -> dict[str, str]:
        shade = DEAD if n in noise or limits is None else colour(gradient.rms, limits)
        return {"said": in_words(gradient.rms, limits, n in noise), "colour": shade}

    def vertex(v: Vertex) -> dict[str, Any]:
        found = _vertex(v)
        if v.formula or v.vjp:
            key = (v.operation, v.formula, v.vjp, len(v.inputs))
            formulas.setdefault(key, {"number": len(formulas), **_explained(v)})
            found["formula"] = formulas[key]["number"]
        if not steps and v.gradient is not None:
            found["gradient"] = _summary(v.gradient) | seen(v.gradient, v.number)
        return found

    return {
        "title": printable(title),
        "names": names,
        "vertices": [vertex(v) for v in vertices],
        "boxes": [_box(box, vertices) for box in boxes],
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


def _vertex(v: Vertex) -> dict[str, Any]:
    found = {
        "kind": v.kind,
        "options": printable(v.options),
        "line": v.line,
        "modules": [printable(scope.path) for scope in v.modules],
    }
    return {name: x for name, x in found.items() if x not in ("", [])} | {
        "operation": v.operation,
        "inputs": v.inputs,
        "value": _summary(v.value),
    }


def _box(box: Box, vertices: Sequence[Vertex]) -> dict[str, Any]:
    return {
        "title": printable(box.title),
        "operation": box.operation,
        "options": printable(box.options),
        "detail": printable(box.detail) if box.detail != box.title else "",
        "kind": box.kind,
        "shape": box.shape,
        "rows": [{"text": printable(row.text), "vertex": row.vertex} for row in box.rows],
        "vertex": box.vertices[0],
        "parameter": vertices[box.vertices[0]].parameter,
        "group": _id(box.frame) if box.frame else None,
    }


def _contribution(
    c: Contribution, vertices: Sequence[Vertex], names: Sequence[str]
) -> dict[str, Any]:
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
    if c.source is not None:
        axes, times = _copied(vertices[c.source], c.position, vertices[c.target].shape)
        if times > 1:
            which = f"{'axis' if len(axes) == 1 else 'axes'} {' and '.join(map(str, axes))}"
            used = f"because {names[c.target]} was used {times:,} times"
            found["summed"] = f"summed over {which}, {used}"
    return found


def _copied(v: Vertex, position: int, shape: tuple[int, ...]) -> tuple[list[int], int]:
    """The axes of a result along which an input was copied (broadcast), and how often it was."""
    if v.operation in LAST_ONES and position not in LAST_ONES[v.operation]:
        return [], 1
    if v.operation not in BROADCASTING and v.operation not in LAST_ONES:
        return [], 1
    extra = len(v.shape) - len(shape)
    axes = [i for i, n in enumerate(v.shape) if n > 1 and (i < extra or shape[i - extra] == 1)]
    return axes, math.prod(v.shape[i] for i in axes)


# The operations that work element by element, where an input is copied to the result's shape; and
# those that copy some of their inputs, by position.
BROADCASTING = frozenset(("add", "arctan2", "divide", "hypot", "logaddexp", "maximum", "minimum"))
BROADCASTING |= {"broadcast_to", "multiply", "power", "remainder", "subtract", "where"}
LAST_ONES = {"layer_norm": (1, 2), "linear": (2,)}


# ---------------------------------------------------------------- formulas


def equations(text: str, *, displayed: bool = False) -> list[str]:
    """A formula's text, cut into its equations and sentences.

    `displayed` for lines that a docstring sets apart: there equations have only spaces between.

    >>> from minigrad.graphs.stepping import equations
    >>> equations("y = a - b: ∂y/∂a = 1 and ∂y/∂b = -1.")
    ['y = a - b', '∂y/∂a = 1', '∂y/∂b = -1']
    >>> equations("∂y/∂a = y · b/a = b aᵇ⁻¹ ∂y/∂b = y log a", displayed=True)
    ['∂y/∂a = y · b/a = b aᵇ⁻¹', '∂y/∂b = y log a']
    """
    cut = r"(?:: |,? and )(?=∂[yL]/∂|f′ =)|(?<=\.) (?=[A-Z])|; "
    if displayed:
        cut += r"|(?<!=) +(?=(?:∂[yL]\S*/∂\S+|u′) (?:=|the ))"
    return [line.removesuffix(".") for line in re.split(cut, text) if line]


def _explained(v: Vertex) -> dict[str, Any]:
    """The equations of an operation, the letters of its inputs, and which equation is whose."""
    text = v.vjp or v.formula
    back = equations(text, displayed=text != v.formula)
    letters = _letters(v)
    derivatives = [i for i, line in enumerate(back) if "∂" in line]
    used = []
    for letter in letters:
        about = re.compile(rf"∂[yL]\w?/∂{re.escape(letter)}(?![A-Za-z0-9_])")
        those = [i for i in derivatives if letter and about.search(back[i])]
        used.append(those if len(those) < len(derivatives) else [])
    result = re.match(r"([yYCθ])[ᵢⱼ]? = ", v.formula)
    return {
        "lines": equations(v.formula),
        "back": back,
        "letters": letters,
        "result": result[1] if result and any(letters) else "",
        "used": used,
    }


def _letters(v: Vertex) -> list[str]:
    """The letters that an operation's formula has for its inputs; "" where that is not sure.

    They are the names of its function's arguments; a matrix is a capital in a formula.
    """
    function: Any = getattr(sys.modules["minigrad"], v.operation, None)
    if not callable(function) or (inspect.getdoc(function) or "").partition("\n")[0] != v.formula:
        return [""] * len(v.inputs)
    needed = [
        p.name
        for p in inspect.signature(function).parameters.values()
        if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    if len(needed) != len(v.inputs):
        return [""] * len(v.inputs)
    text = f"{v.formula} {v.vjp}"

    def written(name: str) -> str:
        for way in (r"∂[yL]\w?/∂{}(?![A-Za-z0-9_])", r"(?<![A-Za-z0-9_]){}(?![A-Za-z0-9_])"):
            for letter in (name, name.upper()):
                if re.search(way.format(re.escape(letter)), text):
                    return letter
        return ""

    return [written(name) for name in needed]


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
    # (Three digits are shown, and they are rounded once.)
    rms = rounded(float(summary.rms), 3)
    return {"shape": summary.shape, "rms": rms, name: rounded(kept, DIGITS)}


def _legend(limits: Limits | None) -> dict[str, Any] | None:
    if limits is None:
        return None
    low, high = limits
    colours = [colour(low * (high / low) ** (i / 6), limits) for i in range(7)]
    return {"low": f"{low:,g}", "high": f"{high:,g}", "colours": colours}


def _as_json(data: Mapping[str, Any]) -> str:
    """JSON inside of a script element: </ would end the element."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
