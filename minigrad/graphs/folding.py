"""5.6 · Folding: which of a record's tensors get a box of their own.

A GPT of twelve blocks has 295 operations on 196 parameters. Who can read a picture of 500 boxes?
Half of them tell the reader nothing. So a drawing has fewer boxes than the record has tensors:

- A parameter stands inside the box of the operation that uses it. (A leaf that is not a layer's is
  a box. So is one that meets no other input there, or else the operation would have no arrow.)
- `reshape`, `swapaxes` and their like move numbers and change none. They are words on the arrow,
  and where a closed box tells how many operations it stands for, they are not counted.
- A constant without a name stands inside the box, too; small ones with their values.
- With `Steps` (chapter 5.14), each layer that was called is a frame down to a depth, and below it
  one box. For the first of numbered layers, such as blocks.0, the layers around it do not count.
  So one block is opened, wherever the blocks are.
- Equal layers of several operations that follow each other are drawn once. A second box stands for
  the others, with a strip of the gradients at the output of each.
- If there are still more than 150 boxes, any operations that are repeated are drawn once.

Every use of a drawn tensor is one arrow, so x · x shows two. Into a box that stands for several
operations, one arrow comes from each source.

    >>> import numpy as np
    >>> from minigrad import Tensor, graph
    >>> from minigrad.nn import Linear
    >>> layer = Linear(3, 2, rng=np.random.default_rng(0))
    >>> x = Tensor([[1.0, 2.0, 3.0]], name="x")
    >>> drawing = graph(np.tanh(layer(x).mT).sum())
    >>> [(box.title, [row.text for row in box.rows]) for box in drawing.boxes]
    [('x', []), ('linear', ['weight', 'bias']), ('tanh', []), ('sum', [])]
    >>> [link.words for link in drawing.links]
    ['', 'transposed → (2, 1)', '']
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from minigrad.graphs.model import Vertex
from minigrad.graphs.nesting import Group, Item, inside, nested
from minigrad.graphs.repeats import Run, alike, runs
from minigrad.graphs.scale import lost

READABLE = 150  # boxes; above it, repeated operations are folded
NUMBERED = re.compile(r"\.\d+$")  # the name of a layer that is one of a list
SIGNS = {  # how a constant is written that is the first input, or the second
    "add": ("+ {}", "+ {}"),
    "divide": ("{} /", "/ {}"),
    "multiply": ("× {}", "× {}"),
    "power": ("base {}", "power {}"),
    "remainder": ("{} %", "% {}"),
    "subtract": ("{} -", "- {}"),
}


@dataclass(frozen=True)
class Row:
    """A parameter or a constant inside a box: its text, which input it is, and its gradient's RMS.

    A constant that is added is "+ 2", and so on (see `SIGNS`). `words` are the shape operations on
    the way, which stand in the text, too. In the box of a closed layer it is the parameter or the
    result that gets least, at position -1.
    """

    text: str
    vertex: int
    grad: float | None
    position: int = -1
    words: str = ""


@dataclass(frozen=True)
class Box:
    """One box of a drawing.

    kind      that of its vertex (chapter 5.2), or "module", a closed layer, or "repeat", copies of
              what is drawn before it
    title     its name, in bold: the tensor's, the layer's, or that of its operation
    operation the operation, with its options beside; "" where there is none
    detail    of a constant or a leaf a few values, of a layer its class and its size
    rows      the parameters and constants inside
    grad      the RMS of the gradient at its result; of a closed layer the largest inside
    norm      √Σg² as well, where the result is averaged next, which makes the RMS small
    frame     the layers around it, the outermost first
    strip     of a repeat: the name of each copy, and the RMS of the gradient at its output
    vertices  the numbers of all tensors that the box stands for
    """

    id: str
    kind: str
    title: str
    shape: tuple[int, ...]
    operation: str = ""
    options: str = ""
    detail: str = ""
    rows: tuple[Row, ...] = ()
    grad: float | None = None
    norm: float | None = None
    frame: tuple[str, ...] = ()
    strip: tuple[tuple[str, float | None], ...] = ()
    vertices: tuple[int, ...] = ()

    @property
    def of_several(self) -> bool:
        """Whether it stands for several operations: a closed layer, or copies."""
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


def fold(vertices: Sequence[Vertex], depth: int | None) -> tuple[Drawn, str]:
    """The boxes and the arrows between them, and a sentence if more was folded than was asked."""
    drawn = Folding(vertices, depth, repeats=False).drawn()
    asked = len(drawn[0])
    if depth is None or asked <= READABLE:
        return drawn, ""
    drawn = Folding(vertices, depth, repeats=True).drawn()
    if len(drawn[0]) == asked:
        return drawn, ""
    return drawn, f"{asked:,} boxes, of which repeated ones are folded (depth=None draws all)"


class Folding:
    """One folding of a list of vertices."""

    def __init__(self, vertices: Sequence[Vertex], depth: int | None, *, repeats: bool) -> None:
        self.vertices, self.depth, self.repeats = vertices, depth, repeats
        self.base, self.words = _bases(vertices)
        self.operations = [n for n, v in enumerate(vertices) if v.operation and self.base[n] == n]
        averaging = [v for v in vertices if v.averages]
        self.averaged = {self.base[i] for v in averaging for i in v.inputs}
        self.inputs = {n: self._split(vertices[n]) for n in self.operations}
        self.boxes: dict[str, Box] = {}
        self.owner: dict[int, str] = {}  # a vertex: the box that stands for it
        self.hidden: set[int] = set()  # operations inside a box of several
        self.later: set[int] = set()  # the ids of blocks that come after an opened one
        self.noise = lost(vertices)

    def drawn(self) -> Drawn:
        """All boxes, each after those from which an arrow leads to it, and all arrows."""
        scopes = [self.vertices[n].modules for n in self.operations]
        self._emit(nested(self.operations, scopes), (), 0)
        self.order = {id: float(place) for place, id in enumerate(self.boxes)}
        framed = [box for box in self.boxes.values() if box.frame]
        self.first = {box.frame[0]: self.order[box.id] for box in reversed(framed)}
        links = self._links()
        boxes = sorted(self.boxes.values(), key=lambda box: self.order[box.id])
        return tuple(boxes), tuple(links)

    def _split(self, v: Vertex) -> tuple[list[int], list[int]]:
        """The inputs that come by an arrow, and those that stand inside the box: their positions.

        A layer's leaf stands inside, if there is another input to come by an arrow.
        """
        bases = [self.vertices[self.base[i]] for i in v.inputs]
        arrows = [b.number for b in bases if b.operation or (b.kind == "leaf" and not b.parameter)]
        arrows += [b.number for b in bases if b.kind == "constant" and b.named]
        if not arrows:  # (the data, if there are any, and otherwise the first parameter)
            data = [
                b.number for b in bases if b.kind == "constant" and b.shape and b.value.size > 1
            ]
            arrows = (data + [b.number for b in bases if b.kind == "leaf"])[:1]
        places = range(len(bases))
        return (
            [i for i in places if bases[i].number in arrows],
            [i for i in places if bases[i].number not in arrows],
        )

    # ---------------------------------------------------------------- boxes

    def _emit(self, group: Group, frame: tuple[str, ...], level: int) -> None:
        """Boxes for the items of a group: repeated ones once, with a box for the others."""
        for part in self._parts(group.items):
            if isinstance(part, int):
                self._emit_item(group.items[part], group, frame, level)
                continue
            first, *others = [group.items[copy] for copy in part.copies()]
            for item in first:
                self._emit_item(item, group, frame, level)
            self._repeat(others, group, frame)

    def _parts(self, items: list[Item]) -> list[Run | int]:
        """The items' places, with a `Run` in the place of those that are repeated."""
        layers = [isinstance(item, Group) and len(inside(item)) > 1 for item in items]
        if self.depth is None or not (self.repeats or any(layers)):
            return list(range(len(items)))

        def wanted(run: Run) -> bool:
            has_layer = any(layers[run.start : run.start + run.period])
            return has_layer or (self.repeats and run.count > 2)

        return runs(alike(items, self.vertices, self.base, self.words), wanted)

    def _emit_item(self, item: Item, parent: Group, frame: tuple[str, ...], level: int) -> None:
        if isinstance(item, int):
            self._operation(self.vertices[item], frame)
            return
        numbers = inside(item)
        name = item.name_within(parent)
        level += id(item) in self.later
        if len(numbers) == 1:  # a layer of one operation is a box with the layer's name
            self._operation(self.vertices[numbers[0]], frame, name)
            return
        assert item.scope is not None
        if self.depth is None or level < self.depth:
            around_blocks = self._holds_blocks(item, numbers)
            if around_blocks:
                blocks = [x for x in item.items if isinstance(x, Group) and NUMBERED.search(x.path)]
                self.later |= set(map(id, blocks[1:]))
            self._emit(item, (*frame, item.scope.path), level + (not around_blocks))
        else:
            detail = f"{item.scope.kind}: {len(numbers)} operations"
            self._closed("module", name, detail, numbers, frame)

    def _holds_blocks(self, group: Group, numbers: list[int]) -> bool:
        """Return whether numbered layers of several operations are inside, such as blocks.0."""
        if NUMBERED.search(group.path):
            return False
        layers = [scope.layer for n in numbers for scope in self.vertices[n].modules]
        inside = Counter(layer for layer in layers if layer.startswith(f"{group.path}."))
        return any(count > 1 and NUMBERED.search(layer) for layer, count in inside.items())

    def _operation(self, v: Vertex, frame: tuple[str, ...], layer: str = "") -> None:
        self._add(
            Box(
                id=f"t{v.number}",
                kind=v.kind,
                title=layer or v.title,
                operation=v.operation,
                options=v.options,
                shape=v.shape,
                rows=tuple(
                    [self._row(v, i) for i in self.inputs[v.number][1] if self._tells(v, i)]
                ),
                grad=v.grad_rms,
                norm=v.grad_norm if v.number in self.averaged else None,
                frame=frame,
                vertices=(v.number,),
            )
        )

    def _tells(self, v: Vertex, i: int) -> bool:
        """Whether an input says something. (Fused attention adds 0 if there is no score_bias.)"""
        x = self.vertices[self.base[v.inputs[i]]]
        return not (v.fused and x.kind == "constant" and x.title == "0")

    def _row(self, v: Vertex, i: int) -> Row:
        x = self.vertices[self.base[v.inputs[i]]]
        words = self.words[v.inputs[i]]
        text = x.title
        if x.kind == "constant" and text == "constant":
            text = f"constant {x.shape}"
        elif v.modules:
            text = text.removeprefix(f"{v.modules[-1].layer}.")
        text = f"{text}, {words}" if words else text
        if x.kind == "constant" and v.operation in SIGNS:
            text = SIGNS[v.operation][i].format(text)
        return Row(text, x.number, x.grad_rms, i, words)

    # ------------------------------------------------ A first reading may stop here.
    # What follows: a box for several operations, arrows, and words for shape operations.

    def _repeat(self, copies: list[list[Item]], parent: Group, frame: tuple[str, ...]) -> None:
        """A box for all copies of what was drawn before it."""
        title, detail, labels = self._of_copies(copies, parent)
        each = [[n for item in copy for n in inside(item)] for copy in copies]
        numbers = [n for copy in each for n in copy]
        ends = [self.vertices[copy[-1]].grad_rms for copy in each]
        strip = _some(list(zip(labels, ends, strict=True)))
        self._closed("repeat", title, detail, numbers, frame, strip)

    def _of_copies(self, copies: list[list[Item]], parent: Group) -> tuple[str, str, list[str]]:
        """Title and detail of a box for these copies, and the name of each."""
        first = [n for item in copies[0] for n in inside(item)]
        labels = [str(k + 2) for k in range(len(copies))]
        detail = "alike"
        layers = [copy[0] for copy in copies if isinstance(copy[0], Group) and len(copy) == 1]
        if layers:
            names = [layer.name_within(parent) for layer in layers]
            labels = [_numeral(name) for name in names]
            title = names[0] if len(names) == 1 else f"{names[0]} … {names[-1]}"
            detail = "like the one before" if len(names) == 1 else f"{len(names)} more, alike"
        elif len(first) == 1:
            title = f"{self.vertices[first[0]].operation} × {len(copies):,}"
        else:
            title = f"the same {len(first)} operations × {len(copies):,}"
        return title, detail, labels

    def _closed(
        self,
        kind: str,
        title: str,
        detail: str,
        numbers: list[int],
        frame: tuple[str, ...],
        strip: Sequence[tuple[str, float | None]] = (),
    ) -> None:
        """A box for several operations, with the largest gradient inside, and the least."""
        used = {self.base[i]: None for n in numbers for i in self.vertices[n].inputs}
        within = [*numbers, *(i for i in used if self.vertices[i].parameter)]
        known = [self.vertices[n] for n in within if self.vertices[n].grad_rms is not None]
        self._add(
            Box(
                id=f"{kind[0]}{numbers[0]}",
                kind=kind,
                title=title,
                detail=detail,
                shape=self.vertices[numbers[-1]].shape,
                rows=_least([v for v in known if v.number not in self.noise]),
                grad=float(np.max([v.grad_rms for v in known])) if known else None,
                frame=frame,
                strip=tuple(strip),
                vertices=tuple(numbers),
            )
        )
        self.hidden |= set(numbers)

    def _add(self, box: Box) -> None:
        self.boxes[box.id] = box
        self.owner |= dict.fromkeys(box.vertices, box.id)

    # ---------------------------------------------------------------- arrows

    def _links(self) -> list[Link]:
        uses = [(n, i) for n in self.operations for i in self.inputs[n][0]]
        for n, i in uses:  # (first all leaves, so that the arrows do not depend on the order)
            x = self.vertices[self.base[self.vertices[n].inputs[i]]]
            if x.number not in self.owner and not (x.parameter and n in self.hidden):
                self._leaf(x, self.boxes[self.owner[n]])
        links: list[Link] = []
        met: set[tuple[str, str]] = set()
        for n, i in uses:
            used = self.vertices[n].inputs[i]
            source, target = self.owner.get(self.base[used]), self.owner[n]
            if source is None or source == target or (n in self.hidden and (source, target) in met):
                continue
            met.add((source, target))
            words = "" if n in self.hidden else self.words[used]
            links.append(Link(source, target, words, i, self.base[used]))
        return links

    def _leaf(self, x: Vertex, target: Box) -> None:
        """A box for a leaf: of a layer's own in its frame, of another one before all frames."""
        frame = target.frame if x.parameter else ()
        # (Boxes stand in the order of their frames, so the first one of a frame is known.)
        anchor = self.order[target.id] if frame == target.frame else self.first[target.frame[0]]
        few = x.value.whole is not None and x.value.whole.size <= 4
        box = Box(
            id=f"t{x.number}",
            kind=x.kind,
            title=x.title,
            detail=str(x.value) if few and x.named else "",
            shape=x.shape,
            grad=x.grad_rms,
            frame=frame,
            vertices=(x.number,),
        )
        self._add(box)
        self.order[box.id] = anchor - 0.5


def _bases(vertices: Sequence[Vertex]) -> tuple[list[int], list[str]]:
    """For each vertex the one whose numbers it has, and how they were moved, in words.

    A shape operation has its input's numbers. (The last tensor is always drawn.)
    """
    base: list[int] = []
    moves: list[tuple[str, ...]] = []
    for v in vertices:
        moved = v.moves and len(v.inputs) == 1 and v is not vertices[-1]
        base.append(base[v.inputs[0]] if moved else v.number)
        moves.append((*moves[v.inputs[0]], _move(v)) if moved else ())
    words = [
        f"{', '.join(moved)} → {v.shape}" if moved else ""
        for v, moved in zip(vertices, moves, strict=True)
    ]
    return base, words


def _move(v: Vertex) -> str:
    last_two = ("axis1=-1, axis2=-2", "axis1=-2, axis2=-1")
    if v.operation == "swapaxes" and v.options in last_two:
        return "transposed"
    return v.operation


def _least(known: list[Vertex]) -> tuple[Row, ...]:
    """A row for the result or the parameter that gets least."""
    if not known:
        return ()
    least = min(known, key=lambda v: v.grad_rms or 0.0)
    path = least.modules[-1].path if least.modules and not least.parameter else ""
    text = f"{path}: {least.title}" if path else least.title
    return (Row(f"least: {text}", least.number, least.grad_rms),)


def _numeral(name: str) -> str:
    found = re.findall("[0-9]+", name)
    return found[-1] if found else name


def _some(strip: list[tuple[str, float | None]], most: int = 24) -> list[tuple[str, float | None]]:
    """At most 24 of the copies, evenly spaced, the first and the last among them."""
    if len(strip) <= most:
        return strip
    return [strip[round(k * (len(strip) - 1) / (most - 1))] for k in range(most)]
