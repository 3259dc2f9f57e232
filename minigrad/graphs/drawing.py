"""5.4 · Drawing: `graph(y)`, all of it together.

Where in a record does the gradient die? The parts of the answer are written: chapter 2.1 can
replay the record without dropping it and return the gradient at every tensor, 5.1 turns the record
into data, 5.2 into text, 5.3 into a picture. `graph` puts them together.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from minigrad.engine.autograd import check_root, check_seed
from minigrad.engine.replay import replay
from minigrad.engine.tensor import Array, Tensor
from minigrad.graphs.dot import dot_text
from minigrad.graphs.model import Arrow, Names, Vertex, model, walk
from minigrad.graphs.render import render
from minigrad.runs.saving import write_whole


@dataclass(frozen=True)
class Graph:
    """A record as data, in the order it was computed: inputs come before results.

    `source` is its DOT text. `save("x.svg")` draws it, also as .png, .pdf or .dot. A notebook
    shows it as a picture.
    """

    vertices: tuple[Vertex, ...]
    arrows: tuple[Arrow, ...]
    limits: tuple[float, float] | None  # the two ends of the colour scale

    @property
    def source(self) -> str:
        """The graph in the DOT language. Equal records give equal text."""
        return dot_text(self.vertices, self.arrows, self.limits)

    def save(self, path: str | Path) -> Path:
        """Draw to path, in the format its ending names: .svg, .png, .pdf or .dot.

        The file is written whole or not at all (chapter 9.1).

        Raises ValueError for another ending, and ImportError, with the install command, where
        no program can draw the format.
        """
        path = Path(path)
        ending = path.suffix.lower()
        if ending not in (".svg", ".png", ".pdf", ".dot"):
            raise ValueError(
                f"a graph can be saved as .svg, .png, .pdf or .dot: {path.name!r} is none of them"
            )
        text = self.source
        return write_whole(path, text if ending == ".dot" else render(text, ending[1:]))

    def _repr_svg_(self) -> str | None:
        """What a notebook shows. Without a program that draws, the notebook falls back to repr."""
        try:
            return render(self.source, "svg").decode()
        except ImportError:
            return None

    def __repr__(self) -> str:
        return f"Graph({len(self.vertices)} vertices, {len(self.arrows)} arrows)"


def graph(
    y: Tensor,
    *,
    grads: bool = False,
    gradient: Any = None,
    names: Names = (),
    limits: tuple[float, float] | None = None,
) -> Graph:
    """The record behind y, as a `Graph`: walked once, in time linear in its size.

    grads     show the RMS of ∂y/∂(each tensor) and colour the boxes by it. They come from a
              separate backward pass, which changes no `.grad` and keeps the record.
    gradient  the seed ∂L/∂y, as for `backward`; needed with grads if y is not a scalar
    names     more names for tensors, such as `layer.named_parameters()`
    limits    the RMS at the two ends of the colour scale, so that several drawings can share one

    RuntimeError if the record was already dropped by a backward pass: draw first, or keep it
    with `retain_graph=True`.
    """
    if not isinstance(y, Tensor):
        raise TypeError(f"graph() draws the record of a Tensor, but got {type(y).__name__}")
    if limits is not None and not 0 < limits[0] < limits[1]:
        raise ValueError(f"limits must be two positive numbers, the lower first: got {limits}")
    found = walk(y)
    strength: dict[int, float] = {}
    if grads:
        check_root(y, "graph(grads=True)")
        seed = check_seed(y, gradient, "graph(grads=True)")
        gradients = replay(y, seed, set(found), retain_graph=True)
        strength = {id(x): rms(g) for x, g in gradients.items()}
    vertices, arrows = model(found, strength, names)
    scale = (limits or _decades(list(strength.values()))) if grads else None
    return Graph(tuple(vertices), tuple(arrows), scale)


def rms(x: Array) -> float:
    """√mean(x²), the size of a typical element.

    Divided by the largest element first: the square of 1e-200 is 0 in floating point.

    >>> from minigrad.graphs.drawing import rms
    >>> round(rms(np.array([3e-200, 4e-200])) / 1e-200, 6)
    3.535534
    """
    largest = float(np.abs(x).max(initial=0))
    if largest == 0 or not np.isfinite(largest):
        return largest
    return largest * float(np.sqrt(np.mean((x / largest) ** 2)))


def _decades(strengths: list[float]) -> tuple[float, float]:
    """Whole powers of ten around the gradients found, at most twelve of them."""
    seen = [s for s in strengths if s > 0 and np.isfinite(s)]
    if not seen:
        return 0.1, 1.0
    top = int(np.ceil(np.log10(max(seen))))
    bottom = int(np.floor(np.log10(min(seen))))
    bottom = max(min(bottom, top - 1), top - 12)
    return 10.0**bottom, 10.0**top
