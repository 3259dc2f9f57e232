"""5.11 · Drawing: `graph(y)`, all of it together.

Where in a record does the gradient die? The parts of the answer are written: chapter 2.1 can
replay the record without dropping it and return the gradient at every tensor, 5.2 turns the record
into data, 5.6 folds it, 5.5 colours it, 5.7 and 5.8 write it as text, 5.9 makes a picture of it and
5.10 a page. `graph` puts them together.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from minigrad.engine.autograd import check_root, check_seed
from minigrad.engine.replay import replay
from minigrad.engine.tensor import Tensor, describe
from minigrad.graphs.dot import dot_text
from minigrad.graphs.folding import Box, Drawn, Link, Row, fold
from minigrad.graphs.model import Arrow, Names, Vertex, model, walk
from minigrad.graphs.render import render
from minigrad.graphs.scale import Limits, checked_limits, limits_around, lost
from minigrad.graphs.stepping import page, table
from minigrad.graphs.summary import rounded
from minigrad.graphs.text import as_text
from minigrad.runs.saving import write_whole

if TYPE_CHECKING:
    from minigrad.graphs.steps import Steps

DRAWABLE = 2000  # boxes; above it Graphviz takes minutes, and nobody could look at the picture
ENDINGS = (".svg", ".png", ".pdf", ".dot", ".json", ".html")


@dataclass(frozen=True)
class Graph:
    """A record as data, and as what is drawn of it.

    vertices  every tensor of the record (chapter 5.2), in the order in which they were computed
    boxes     what is drawn (chapter 5.6), and `links` the arrows between them
    limits    the gradients at the two ends of the colour scale; None without gradients
    note      a sentence, if more was folded than was asked

    `print(drawing)` shows it as text, and a notebook as a picture. `drawing.save("x.svg")` draws
    it, also as .png or .pdf; .html is a page on which layers open by a click, .dot the text for
    Graphviz, and .json the data. Two drawings get one colour scale by
    `drawing.with_limits(limits)`.
    """

    vertices: tuple[Vertex, ...]
    limits: Limits | None
    depth: int | None = 1

    @property
    def arrows(self) -> tuple[Arrow, ...]:
        """Every use of every tensor as an input."""
        return tuple(
            Arrow(source, v.number, i) for v in self.vertices for i, source in enumerate(v.inputs)
        )

    @property
    def boxes(self) -> tuple[Box, ...]:
        """The boxes, each after those from which an arrow leads to it."""
        return self._folded[0][0]

    @property
    def links(self) -> tuple[Link, ...]:
        """The arrows between the boxes."""
        return self._folded[0][1]

    @property
    def note(self) -> str:
        """What was folded unasked, or ""."""
        return self._folded[1]

    @cached_property
    def _folded(self) -> tuple[Drawn, str]:
        return fold(self.vertices, self.depth)

    @cached_property
    def noise(self) -> frozenset[int]:
        """The leaves whose gradients are what rounding has left of 0 (chapter 5.5)."""
        return lost(self.vertices)

    @cached_property
    def first_arrows(self) -> dict[str, int]:
        """For each box the position of the first input that comes by an arrow."""
        found: dict[str, int] = {}
        for link in self.links:
            found[link.target] = min(link.position, found.get(link.target, link.position))
        return found

    def with_limits(self, limits: Limits | None) -> Graph:
        """The same drawing on another colour scale."""
        other = replace(self)
        # (No folding depends on the scale, so what was folded already is kept.)
        vars(other).update(vars(self) | {"limits": checked_limits(limits)})
        return other

    @property
    def source(self) -> str:
        """The graph in the DOT language. Equal records give equal text."""
        return dot_text(self)

    def data(self) -> dict[str, Any]:
        """What is drawn, for JSON: boxes and arrows."""
        return {
            "boxes": [_given(box) for box in self.boxes],
            "links": [_given(link) for link in self.links],
            "limits": self.limits,
        }

    def save(self, path: str | Path) -> Path:
        """Draw to path, in the format of its ending: .svg, .png, .pdf, .dot, .json or .html.

        The file is written whole or not at all (chapter 9.1).

        Raises ValueError for another ending, or for a picture of more than 2,000 boxes, and
        ImportError, with the install command, where no program can draw the format.
        """
        path = Path(path)
        ending = path.suffix.lower()
        if ending not in ENDINGS:
            raise ValueError(
                f"a graph can be saved as {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}: "
                f"{path.name!r} is none of them"
            )
        if ending == ".dot":
            return write_whole(path, self.source)
        if ending == ".json":
            return write_whole(path, json.dumps(self.data(), indent=1) + "\n")
        if ending == ".html":
            return write_whole(path, self._page())
        return write_whole(path, self._picture(ending[1:]))

    def _page(self) -> str:
        """A page on which layers open by a click (chapter 5.10)."""
        static = f'<div class="static">{self.inline()}{table(self.vertices)}</div>'
        passes = [("", self.vertices, ())]
        last = self.vertices[-1]
        title = f"The graph of {last.title}" if last.named else "A graph"
        return page(passes, title=title, limits=self.limits, steps=False, static=static)

    def inline(self) -> str:
        """The SVG as a part of an HTML page, or the text where no program can draw."""
        svg = self._svg()
        return svg.partition("?>")[2] if svg else f"<pre>{html.escape(str(self))}</pre>"

    def _svg(self) -> str:
        """The picture as SVG, "" where no program can draw."""
        with suppress(ImportError, ValueError, RuntimeError, OSError):
            return self._picture("svg").decode()
        return ""

    def _picture(self, format: str) -> bytes:
        if len(self.boxes) > DRAWABLE:
            raise ValueError(
                f"this graph has {len(self.boxes):,} boxes, and a picture of more than "
                f"{DRAWABLE:,} cannot be read: print() it, save it as .dot, or draw it folded, "
                "with depth=1 and steps="
            )
        return render(self, format)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """What a notebook shows: the picture, or the text where no program can draw."""
        shown = {"text/plain": str(self), "image/svg+xml": self._svg()}
        return {kind: text for kind, text in shown.items() if text}

    def __str__(self) -> str:
        """The same as indented text, a line for each box."""
        return as_text(self)

    def __repr__(self) -> str:
        return f"Graph({len(self.boxes)} boxes of {len(self.vertices)} tensors)"


def graph(
    y: Tensor,
    *,
    grads: bool = False,
    gradient: Any = None,
    names: Names = (),
    limits: Limits | None = None,
    steps: Steps | None = None,
    depth: int | None = 1,
) -> Graph:
    """The record behind y, as a `Graph`, in time linear in its size.

    grads     show the RMS of ∂y/∂(each tensor) and colour the boxes by it. They come from a
              separate backward pass, which changes no `.grad` and keeps the record.
    gradient  the seed ∂L/∂y, as for `backward`; needed with grads if y is not a scalar
    names     more names for tensors, such as `layer.named_parameters()`
    limits    the RMS at the two ends of the colour scale, so that several drawings can share one
    steps     the `Steps` (chapter 5.14) in which y was computed: its layers are drawn as frames
    depth     how many frames may be inside each other; a layer below is one box. (Those around the
              first of numbered layers, blocks.0, do not count.) None opens all, and folds nothing

    TypeError for what is not a Tensor, ValueError for a tensor without a record. RuntimeError if
    the record was already dropped by a backward pass: draw first, or keep it with
    `retain_graph=True`.
    """
    _check(y, steps, depth)
    ends = checked_limits(limits)
    gradients: Mapping[Tensor, Any] = {}
    given = {x: name for name, x in _pairs(names)}
    if grads:
        check_root(y, "graph(grads=True)")
        seed = check_seed(y, gradient, "graph(grads=True)")
        gradients = replay(y, seed, set(walk(y)), retain_graph=True)
    vertices = (steps.behind if steps is not None else model)(y, gradients, given)
    drawing = Graph(tuple(vertices), ends if grads else None, depth)
    if grads and limits is None:
        drawing = drawing.with_limits(limits_around(drawn_gradients(drawing)))
    return drawing


def drawn_gradients(drawing: Graph) -> Iterator[float | None]:
    """Every gradient that has a colour in the drawing."""
    for box in drawing.boxes:
        if drawing.noise.isdisjoint(box.vertices):
            yield box.grad
        yield from (row.grad for row in box.rows if row.vertex not in drawing.noise)
        yield from (grad for _, grad in box.strip)


# ---------------------------------------------------- A first reading may stop here.
# What follows: refusals, and data for JSON.


def _check(y: Any, steps: Any, depth: Any) -> None:
    if not isinstance(y, Tensor):
        raise TypeError(f"graph() draws the record of a Tensor, but got {type(y).__name__}")
    if y.node is None:
        why = "is a leaf" if y.requires_grad else "does not require a gradient"
        raise ValueError(f"graph(): {describe(y)} has no record to draw, because it {why}")
    if steps is not None and not hasattr(steps, "behind"):
        raise TypeError(f"graph(steps=…) takes Steps: got {type(steps).__name__}")
    if depth is not None and (
        type(depth) is bool or not isinstance(depth, int | np.integer) or depth < 0
    ):
        raise ValueError(f"depth must be a whole number from 0 on, or None: got {depth!r}")


def _pairs(names: Any) -> list[tuple[str, Tensor]]:
    pairs = list(names.items() if isinstance(names, Mapping) else names)
    for pair in pairs:
        if not (isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[1], Tensor)):
            raise TypeError(
                "names= takes a dict of Tensors, or pairs (name, Tensor) such as "
                f"layer.named_parameters(): got {pair!r:.60}"
            )
    return pairs


def _given(x: Any) -> Any:
    """What is set, for JSON."""
    if isinstance(x, Box | Link | Row):
        return {name: _given(y) for name, y in vars(x).items() if y not in (None, (), "")}
    if isinstance(x, tuple):
        return [_given(y) for y in x]
    return rounded(x, 3)
