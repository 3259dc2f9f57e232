"""Drawing: `graph(y)`, which puts the other files of this folder together."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from minigrad.checks.agreeing import Verdict
from minigrad.engine.autograd import check_seed
from minigrad.engine.options import as_number
from minigrad.engine.replay import replay
from minigrad.engine.tensor import Tensor, describe
from minigrad.graphs.folding import Drawing
from minigrad.graphs.model import Model, walk
from minigrad.graphs.operations import printable
from minigrad.graphs.page import page
from minigrad.graphs.render import dot_text, missing, picture, render
from minigrad.graphs.scale import Limits
from minigrad.graphs.steps import Steps
from minigrad.graphs.text import as_text
from minigrad.runs.saving import write_whole


class Graph(Drawing):
    """The `Drawing` of a record, which can be shown and saved.

    `print(drawing)` shows it as text, and a notebook as a picture. `drawing.save("x.svg")` draws
    it, also as .png and .pdf; .html is a page on which layers open by a click, .dot the text for
    Graphviz, and .json the data.
    """

    @property
    def source(self) -> str:
        """The graph in the DOT language. Equal records give equal text."""
        return dot_text(self)

    def save(self, path: str | Path) -> Path:
        """Draw to path, in the format of its ending: .svg, .png, .pdf, .html, .dot or .json.

        The file is written whole or not at all. ValueError for another ending, and for more than
        5,000 boxes in a picture or operations on a page; ImportError, with the install command,
        where no program can draw (a .pdf needs the system's dot).
        """
        path = Path(path)
        writers: dict[str, Callable[[], str | bytes]] = {
            ".svg": lambda: render(self, "svg"),
            ".png": lambda: render(self, "png"),
            ".pdf": lambda: render(self, "pdf"),
            ".html": self._page,
            ".dot": lambda: self.source,
            ".json": lambda: json.dumps(self.data(), indent=1) + "\n",
        }
        if path.suffix.lower() not in writers:
            known = ", ".join(writers)
            raise ValueError(f"a graph can be saved as {known}: {path.name!r} is none of them")
        return write_whole(path, writers[path.suffix.lower()]())

    def _page(self) -> str:
        last = self.vertices[-1]
        title = f"The graph of {last.title}" if last.named else "A graph"
        return page([("", self, ())], title=title, steps=False)

    def _repr_svg_(self) -> str | None:
        """Return the SVG that a notebook shows; None where no program can draw."""
        return picture(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Print what a notebook shows without a picture: the text, and what would draw one."""
        how = "" if cycle else missing()
        printer.text(f"{self}\n({how})" if how else repr(self))

    def __str__(self) -> str:
        """Return the graph as indented text, a line for each box."""
        return as_text(self)

    def __repr__(self) -> str:
        return f"Graph({len(self.boxes)} boxes of {len(self.vertices)} tensors)"


def graph(
    y: Tensor | Sequence[Tensor],
    *,
    grads: bool = False,
    names: Mapping[str, Tensor] | Iterable[tuple[str, Tensor]] = (),
    limits: Limits | None = None,
    steps: Steps | None = None,
    depth: int | None = 1,
    verdicts: Mapping[Tensor, Verdict] | None = None,
    direction: str = "down",
    width: float | None = None,
) -> Graph:
    """Return the record behind y, or behind several results, in time linear in its size.

    grads      show the RMS of ∂y/∂(each tensor) and colour the boxes by it. They come from a
               separate backward pass, which changes no `.grad` and keeps the record. y is a scalar;
               of several results, which are scalars, the gradients are those of their sum
    names      more names for tensors, such as `layer.named_parameters()`
    limits     the RMS at the two ends of the colour scale, so that several drawings can share one
    steps      the `Steps` in which y was computed: its layers are drawn as frames
    depth      how many frames may be inside each other; a layer below is one box. None opens all,
               and folds nothing
    verdicts   what `agreement(y)` returns: it colours the boxes, in the place of sizes. A gradient
               that equals its difference is ticked, the box of another is dashed and says how far
               it is off, and a cross marks the input whose VJP is wrong. (A page shows sizes alone)
    direction  where a picture's arrows lead: "down", or "right", as a slide needs it
    width      of a picture in pixels, 96 of which are an inch on paper; by default it is as wide as
               its boxes need

    TypeError for what is not a Tensor, ValueError for a tensor without a record. RuntimeError if
    the record was already dropped by a backward pass: draw first, or keep it with
    `retain_graph=True`. (With `steps` it can still be drawn, also the gradients that they noted.)
    """
    results: list[Tensor] = [*y] if isinstance(y, list | tuple) else [y]  # type: ignore[list-item]
    for result in results:
        if not isinstance(result, Tensor):
            got = type(result).__name__
            raise TypeError(f"graph() draws the record of a Tensor, but got {got}")
        if result.node is None:
            why = "is a leaf" if result.requires_grad else "does not require a gradient"
            raise ValueError(f"graph(): {describe(result)} has no record to draw, because it {why}")
    if not results:
        raise ValueError("graph() draws the records of results, and got none")
    if direction not in ("down", "right"):
        raise ValueError(f'direction must be "down" or "right": got {direction!r}')
    if width is not None:
        width = as_number("width", width, 1)
    if depth is not None:
        depth = as_number("depth", depth, 0, whole=True)
    given = {x: name for name, x in dict(names).items() if printable(name)}
    model = steps.model if steps is not None else Model()
    gradients: dict[Tensor, Any] = {}
    noted = grads and steps is not None and len(results) == 1 and steps.root is results[0]
    for result in results if grads and not noted else ():
        seed = check_seed(result, None, "graph(grads=True)")
        sent = replay(result, seed, {*walk(result)}, retain_graph=True)
        gradients |= {t: gradients[t] + g if t in gradients else g for t, g in sent.items()}
    vertices = model.behind(results, None if noted else gradients, given, verdicts)
    if not all(v.inputs for v in vertices if v.operation):
        for result in results:
            walk(result)  # (which refuses a record that was dropped)
    return Graph(tuple(vertices), limits, depth, direction, width)
