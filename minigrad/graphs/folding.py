"""Folding: which of a record's tensors get a box of their own.

The loss of a GPT of twelve blocks, whose attention is not fused, has 295 operations on 196
parameters. A drawing has fewer boxes:

- A parameter stands inside the box of the operation that uses it. (Other leaves are boxes. A
  layer's leaf is one too if it is the operation's only input: the box would have no arrow.)
- `reshape`, `swapaxes` and their like move numbers and change none. They are words on the arrow,
  and a closed box does not count them among its operations.
- A constant without a name stands inside the box, too; small ones with their values.
- With `Steps`, each layer that was called is a frame down to a depth, and below it one box.
- Equal layers of several operations that follow each other are drawn once, and so is a layer that
  is used again and again, with what a loop does beside it. A second box stands for the others and
  for the data that they use, with a strip of the gradients at the output of each.

Every use of a drawn tensor is one arrow, so x · x shows two. Into a box that stands for several
operations, one arrow comes from each source, and one leads from copies to each use.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np

from minigrad.checks.agreeing import Verdict
from minigrad.graphs.model import Scope, Vertex, plain
from minigrad.graphs.scale import Limits, limits_around, lost


@dataclass(frozen=True)
class Row:
    """A parameter or a constant inside a box: its text, which input it is, and its gradient's RMS.

    `words` are the shape operations on the way; the text has them, too. The box of a closed layer
    has one row, at position -1: the parameter or result with the smallest gradient.
    """

    text: str
    vertex: int
    grad: float | None
    position: int = -1
    words: str = ""


@dataclass(frozen=True)
class Box:
    """One box of a drawing.

    kind       that of its vertex, or "module", a closed layer, or "repeat", copies of what is drawn
               before it
    title      its name, in bold: the tensor's, the layer's, or that of its operation
    frame      the layers around it, the outermost first
    vertices   the numbers of all tensors that the box stands for
    operation  the operation, with its options beside; "" where there is none
    detail     of a constant or a leaf a few values, of a layer its class and its size
    rows       the parameters and constants inside
    grad       the RMS of the gradient at its result; of a closed layer the largest inside
    norm       √Σg² as well, where the result is averaged next, which makes the RMS small
    strip      of a repeat: the name of each copy, and the RMS of the gradient at its output
    """

    id: str
    kind: str
    title: str
    shape: tuple[int, ...]
    frame: tuple[str, ...]
    vertices: tuple[int, ...]
    operation: str = ""
    options: str = ""
    detail: str = ""
    rows: tuple[Row, ...] = ()
    grad: float | None = None
    norm: float | None = None
    strip: tuple[tuple[str, float | None], ...] = ()

    @property
    def of_several(self) -> bool:
        """True if it stands for several operations: a closed layer, or copies."""
        return self.kind in ("module", "repeat")


@dataclass(frozen=True)
class Link:
    """An arrow from one box to another, as its input at a position.

    `words` are the shape operations between the two, and `vertex` is the tensor that they move.
    """

    source: str
    target: str
    words: str
    position: int
    vertex: int


Drawn = tuple[tuple[Box, ...], tuple[Link, ...]]
Ops = Sequence[Vertex]
Group = Sequence[Ops]
LONGEST, TRIED = 64, 8  # items of a group that is drawn once, and ends of it that are tried


class Folding:
    """One folding of a list of vertices.

    depth    how many frames may be inside each other; None for all, and then all copies are drawn
    closed   whether the copies of a layer are one box. Otherwise they are drawn, in one frame.
    """

    def __init__(
        self, vertices: Sequence[Vertex], depth: float | None, *, closed: bool = True
    ) -> None:
        self.vertices, self.depth, self.closed = vertices, depth, closed
        self.base, self.words = _bases(vertices)
        self.operations = [v for v in vertices if v.operation and self.base[v.number] == v.number]
        self.averaged = {self.base[i] for v in vertices if v.facts.averages for i in v.inputs}
        self.inputs = {v.number: self._split(v) for v in self.operations}
        self.boxes: dict[str, Box] = {}
        self.owner: dict[int, str] = {}  # by vertex: the box that stands for it
        self.hidden: set[int] = set()  # operations inside a box of several
        self.copied: set[int] = set()  # operations of copies, if there are several
        self.noise = lost(vertices)

    def drawn(self) -> Drawn:
        """Return all boxes, each after those from which an arrow leads to it, and all arrows."""
        self._emit(self.operations, 0, (), 0)
        self.order = {id: float(place) for place, id in enumerate(self.boxes)}
        framed = [box for box in self.boxes.values() if box.frame]
        self.first = {box.frame[0]: self.order[box.id] for box in reversed(framed)}
        links = self._links()
        boxes = sorted(self.boxes.values(), key=lambda box: self.order[box.id])
        return tuple(boxes), tuple(links)

    def _source(self, v: Vertex, i: int) -> Vertex:
        """Return the vertex that is input i of v, as it was before any shape operations."""
        return self.vertices[self.base[v.inputs[i]]]

    def _split(self, v: Vertex) -> tuple[list[int], list[int]]:
        """Return the positions of inputs that come by an arrow, and of those inside the box."""
        places = range(len(v.inputs))
        inputs = [self._source(v, i) for i in places]
        leaves = [x for x in inputs if x.kind == "leaf"]
        data = [x for x in inputs if x.kind == "constant"]
        arrows = [x.number for x in inputs if x.operation]
        arrows += [x.number for x in leaves if not x.parameter]
        arrows += [x.number for x in data if x.named]
        if not arrows:  # (the first constant array, or the first leaf if there is none)
            arrows = [x.number for x in (*(x for x in data if x.value.size > 1), *leaves)][:1]
        by_arrow = [i for i in places if inputs[i].number in arrows]
        return by_arrow, [i for i in places if i not in by_arrow]

    def _emit(self, operations: Ops, n: int, frame: tuple[str, ...], level: int) -> None:
        """Make boxes for operations that have n calls around them in common: equal layers once.

        A call is one item, also if other operations ran between its own.
        """
        calls: dict[Any, list[Vertex]] = {}
        for v in operations:
            calls.setdefault(_scope(v, n) or v.number, []).append(v)
        items = list(calls.values())
        for first, *copies in self._runs(items, n):
            for item in first:
                self._emit_item(item, n, frame, level)
            others = [item for copy in copies for item in copy]
            if copies[1:]:
                self.copied |= {v.number for item in others for v in item}
            if copies and self.closed:
                self._repeat(copies, n, frame)
                continue
            within = (*frame, _title_of(others, n)) if copies[1:] else frame
            for item in others:
                self._emit_item(item, n, within, level)

    def _emit_item(self, operations: Ops, n: int, frame: tuple[str, ...], level: int) -> None:
        scope, title = _scope(operations[0], n), _title_of([operations], n)
        if scope is None or len(operations) == 1:
            self._operation(operations[0], frame, title)
        elif self.depth is None or level < self.depth:
            self._emit(operations, n + 1, (*frame, scope.path), level + 1)
        else:
            detail = f"{scope.kind}: {len(operations)} operations"
            self._close("module", title, operations, frame, detail=detail)

    def _runs(self, items: Group, n: int) -> Iterator[list[Group]]:
        """Yield all items in runs: a group of items, and after it the groups that do the same.

        A group is one layer, or what a loop does each time: a cell, and a loss beside it.
        """
        looks = [re.sub("[0-9]+", "", _called(item, n)) for item in items]
        at = 0
        while at < len(items):
            near = range(at + 1, min(at + LONGEST, len(items)))
            ends = [k for k in near if looks[k] == looks[at] and self.depth is not None]
            runs = (run for k in ends[:TRIED] if len(run := self._run(items, at, k - at, n)) > 1)
            run = next(runs, [items[at : at + 1]])
            yield run
            at += sum(map(len, run))

    def _run(self, items: Group, at: int, length: int, n: int) -> list[Group]:
        """Return the group of so many items at a place, and those after it that do the same.

        They are drawn once if one of their layers has several operations, or if there are three of
        them. (Operations without a layer are alone, until there are copies of a layer.)
        """
        run = [items[at : at + length]]
        layers = [item for item in run[0] if _scope(item[0], n)]
        if not (layers or self.copied):
            return run
        several = any(len(layer) > 1 for layer in layers)
        calls, first, settings = self._key(run[0], n)
        for k in range(at + length, len(items), length):
            group = items[k : k + length]
            called, found, others = self._key(group, n)
            if found != first or (called != calls and others != settings):
                break
            run.append(group)
        return run if several or run[2:] else run[:1]

    def _key(self, group: Group, n: int) -> tuple[list[str], list[Any], list[Any]]:
        """Return what is called; what is equal for groups that are alike; and their settings.

        Two groups are alike if their layers have the same classes, and the same names up to
        numbers, and if their operations agree in name, shape and inputs. An input from inside the
        group is compared by its place there; one from outside by when it first occurs: the first,
        the second, and so on. Settings are options, and constants that are numbers or broadcast. A
        layer that is used again has its own. (Other constants are data, or frozen.)
        """
        calls = [_called(item, n) for item in group]
        operations = [v for item in group for v in item]
        place = {v.number: k for k, v in enumerate(operations)}
        key: list[Any] = [re.sub("[0-9]+", "", call) for call in calls]
        settings: list[Any] = []
        outside: dict[int, int] = {}
        for v in operations:
            key.append((v.operation, v.shape, v.dtype))
            settings.append(v.settings)
            for i, used in enumerate(v.inputs):
                x = self._source(v, i)
                if x.number in place:
                    key.append((place[x.number], self.words[used]))
                    continue
                nth = outside.setdefault(x.number, len(outside))
                key.append((nth, x.shape, x.parameter, self.words[used]))
                stretched = i in v.facts.copied and x.value.size < v.value.size
                if x.kind == "constant" and not x.named and (stretched or x.shape == ()):
                    settings.append(x.value.key)
        return calls, key, settings

    def _add(
        self, kind: str, title: str, vertices: Ops, frame: tuple[str, ...], **known: Any
    ) -> Box:
        """Add a box that stands for these vertices."""
        numbers = tuple([v.number for v in vertices])
        id = f"{kind[0] if kind in ('module', 'repeat') else 't'}{numbers[0]}"
        box = Box(id, kind, title, vertices[-1].shape, frame, numbers, **known)
        self.boxes[id] = box
        self.owner |= dict.fromkeys(numbers, id)
        return box

    def _operation(self, v: Vertex, frame: tuple[str, ...], title: str) -> None:
        rows = [self._row(v, i) for i in self.inputs[v.number][1]]
        # (Fused attention adds 0 if there is no score_bias.)
        if v.rule is not None and v.rule.fused:
            rows = [row for row in rows if row.text != "0"]
        norm = v.grad_norm if v.number in self.averaged else None
        called = {"operation": v.operation, "options": v.options}
        self._add(v.kind, title, [v], frame, rows=tuple(rows), grad=v.grad_rms, norm=norm, **called)

    def _row(self, v: Vertex, i: int) -> Row:
        x, words = self._source(v, i), self.words[v.inputs[i]]
        text = x.title
        if x.kind == "constant" and text == "constant":
            text = f"constant {x.shape}"
        elif v.modules:
            text = text.removeprefix(f"{v.modules[-1].layer}.")
        text = f"{text}, {words}" if words else text
        if x.kind == "constant" and v.facts.constant:
            text = v.facts.constant[i].format(text)
        return Row(text, x.number, x.grad_rms, i, words)

    def _repeat(self, copies: Sequence[Group], n: int, frame: tuple[str, ...]) -> None:
        """Make a box for all copies of what was drawn before it."""
        others = [item for copy in copies for item in copy]
        names = [_title_of(copy, n) for copy in copies]
        numerals = [(re.findall("[0-9]+", x) or [str(k)])[-1] for k, x in enumerate(names, 2)]
        ends = [copy[-1][-1].grad_rms for copy in copies]
        kinds = {scope.kind for copy in copies for item in copy if (scope := _scope(item[0], n))}
        count = len(copies) + 1
        often = f"{kinds.pop()} × {count}" if len(kinds) == 1 else f"{count} times"
        detail = f"{often}, with the one before"
        known = {"detail": detail, "strip": tuple(zip(numerals, ends, strict=True))}
        operations = [v for item in others for v in item]
        self._close("repeat", _title_of(others, n), operations, frame, **known)

    def _close(
        self, kind: str, title: str, operations: Ops, frame: tuple[str, ...], **known: Any
    ) -> None:
        """Make a box for several operations, with the largest gradient inside, and the least."""
        used = {self.base[i]: None for v in operations for i in v.inputs}
        within = [*operations, *(self.vertices[i] for i in used if self.vertices[i].parameter)]
        grads = [v.grad_rms for v in within if v.grad_rms is not None]
        known["grad"] = float(np.max(grads)) if grads else None
        sizes = [(v.grad_rms, v) for v in within if v.gradient and v.number not in self.noise]
        if sizes:
            size, least = min(sizes, key=itemgetter(0))
            path = f"{least.modules[-1].path}: " if least.modules else ""
            known["rows"] = (Row(f"least: {path}{least.title}", least.number, size),)
        self._add(kind, title, operations, frame, **known)
        self.hidden |= {v.number for v in operations}

    def _links(self) -> list[Link]:
        uses = [(v, i) for v in self.operations for i in self.inputs[v.number][0]]
        for v, i in uses:  # (first all leaves, so that the arrows do not depend on the order)
            x = self._source(v, i)
            if x.number in self.owner or (x.parameter and v.number in self.hidden):
                continue
            if self.closed and v.number in self.copied:  # (its box stands for it, too)
                self.owner[x.number] = self.owner[v.number]
            else:
                self._leaf(x, self.boxes[self.owner[v.number]])
        links: list[Link] = []
        met: set[tuple[str, str]] = set()
        for v, i in uses:
            x, is_hidden = self._source(v, i), v.number in self.hidden
            source, target = self.owner.get(x.number), self.owner[v.number]
            if source is None or source == target:
                continue
            several = is_hidden or self.boxes[source].kind == "repeat"
            if several and (source, target) in met:
                continue
            met.add((source, target))
            words = "" if is_hidden else self.words[v.inputs[i]]
            links.append(Link(source, target, words, i, x.number))
        return links

    def _leaf(self, x: Vertex, target: Box) -> None:
        """Make a box for a leaf, before all frames or in the frame of its layer or copy."""
        frame = target.frame if x.parameter or target.vertices[0] in self.copied else ()
        # (Boxes stand in the order of their frames, so the first one of a frame is known.)
        anchor = self.order[target.id] if frame == target.frame else self.first[target.frame[0]]
        detail = str(x.value) if x.named and x.value.size <= 4 else ""
        box = self._add(x.kind, x.title, [x], frame, detail=detail, grad=x.grad_rms)
        self.order[box.id] = anchor - 0.5


def _scope(v: Vertex, n: int) -> Scope | None:
    """Return the call inside n others that computed v, or None if there is none."""
    return v.modules[n] if len(v.modules) > n else None


def _called(item: Ops, n: int) -> str:
    """Return the class and the name of the layer that an item is a call of, or its operation."""
    scope = _scope(item[0], n)
    return f"{scope.kind} {scope.layer}" if scope else item[0].operation


def _title_of(calls: Group, n: int) -> str:
    """Return the name of calls within the layer around them: that of one, or "first … last"."""
    found = []
    for v, *_ in [call for call in calls if _scope(call[0], n)] or calls:
        scope, around = _scope(v, n), f"{v.modules[n - 1].layer}." if n else ""
        found.append(scope.path.removeprefix(around) if scope else v.title)
    return found[0] if found[0] == found[-1] else f"{found[0]} … {found[-1]}"


def _bases(vertices: Sequence[Vertex]) -> tuple[list[int], list[str]]:
    """Return for each vertex v the one that it only rearranges, with the operations in words.

    That is v itself if it computes something. (A result that nothing uses is always drawn.)
    """
    used = {i for v in vertices for i in v.inputs}
    base: list[int] = []
    moves: list[tuple[str, ...]] = []
    for v in vertices:
        moved = v.facts.moves and v.number in used
        base.append(base[v.inputs[0]] if moved else v.number)
        how = "transposed" if v.transposes else v.operation
        moves.append((*moves[v.inputs[0]], how) if moved else ())
    words = [
        f"{', '.join(moved)} → {v.shape}" if moved else ""
        for v, moved in zip(vertices, moves, strict=True)
    ]
    return base, words


@dataclass
class Drawing:
    """The data of a drawing, which every renderer reads.

    vertices   every tensor of the record, in the order in which they were computed
    boxes      what is drawn, each box after those from which an arrow leads to it, and `links` the
               arrows between them
    limits     the gradients at the two ends of the colour scale; None without gradients, and with
               verdicts, because a box then has the colour of its verdict
    noise      the leaves whose gradients are 0 but for rounding
    depth      how many frames may be inside each other; None for all
    direction  where a picture's arrows lead: "down" or "right"
    width      of a picture, in pixels; None for as wide as its boxes need
    """

    vertices: Sequence[Vertex]
    limits: Limits | None = None
    depth: int | None = 1
    direction: str = "down"
    width: float | None = None

    def __post_init__(self) -> None:
        self.boxes, self.links = Folding(self.vertices, self.depth).drawn()
        self.box_of = {box.id: box for box in self.boxes}
        self.noise = lost(self.vertices)
        low, high = self.limits or limits_around(self.strengths())
        if not 0 < low < high:
            raise ValueError(
                f"limits must be two positive numbers, the lower first: got {low}, {high}"
            )
        self.judged = any(v.verdict for v in self.vertices)
        sizes = any(v.gradient for v in self.vertices) and not self.judged
        self.limits = (low, high) if sizes else None

    def strengths(self) -> Iterator[float | None]:
        """Yield every gradient that has a colour in the drawing."""
        for box in self.boxes:
            if self.noise.isdisjoint(box.vertices):
                yield box.grad
            yield from (row.grad for row in box.rows if row.vertex not in self.noise)
            yield from (grad for _, grad in box.strip)

    def verdict(self, box: Box) -> Verdict | None:
        """Return the verdict on a box: the worst of what it stands for, with its parameters."""
        inside = {*box.vertices}
        if box.of_several:
            used = {i for n in box.vertices for i in self.vertices[n].inputs}
            inside |= {i for i in used if self.vertices[i].parameter}
        verdicts = [v for n in inside if (v := self.vertices[n].verdict)]
        return max(verdicts, key=lambda verdict: verdict.badness, default=None)

    def wrong_at(self, box: Box, position: int) -> bool:
        """Return whether the VJP of a box's operation for the input at a position is wrong."""
        verdict = self.vertices[box.vertices[0]].verdict
        return verdict is not None and not box.of_several and position in verdict.wrong

    def data(self) -> dict[str, Any]:
        """Return the boxes, the arrows and the limits as plain data, to three digits, for JSON."""
        boxes, links = plain(self.boxes, 3), plain(self.links, 3)
        return {"boxes": boxes, "links": links, "limits": self.limits}
