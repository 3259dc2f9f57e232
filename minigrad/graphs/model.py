"""5.1 · Graph model: one walk from the result back to the leaves.

What must a drawing know? Which tensors there are, what each came from, and how strong the
gradient at each is. That is plain data, gathered here without a thought of how it will look:
`Vertex` for a tensor, `Arrow` for one use of it.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from minigrad.autograd import check_seed
from minigrad.record import Node
from minigrad.replay import replay
from minigrad.saving import write_whole
from minigrad.tensor import Array, Tensor


@dataclass(frozen=True)
class Vertex:
    """One tensor or constant of the record.

    kind      "leaf" (requires a gradient), "constant", or "operation"
    title     the name its owner gave it, the operation's name, or a scalar constant's value
    operation the operation's name, "" for leaves and constants
    options   the options the operation was called with, as text
    grad_rms  √mean(g²) for g = ∂L/∂(this tensor); None if no gradient was asked for or none
              reaches it
    """

    number: int
    kind: str
    title: str
    operation: str
    options: str
    shape: tuple[int, ...]
    dtype: str
    grad_rms: float | None


@dataclass(frozen=True)
class Arrow:
    """One use of tensor `source` (by number) as input `position` of the operation `target`."""

    source: int
    target: int
    position: int


@dataclass(frozen=True)
class Graph:
    """A record as data, in the order it was computed: inputs stand before results.

    `source` is its DOT text. `save("x.svg")` draws it, also as .png, .pdf or .dot. A notebook
    shows it as a picture.
    """

    vertices: tuple[Vertex, ...]
    arrows: tuple[Arrow, ...]
    limits: tuple[float, float] | None  # the two ends of the colour scale

    @property
    def source(self) -> str:
        """The graph in the DOT language. Equal records give equal text."""
        from minigrad.graphs.dot import dot_text  # here, since 5.2 is written for this class

        return dot_text(self)

    def save(self, path: str | Path) -> Path:
        """Draw to path, in the format its ending names: .svg, .png, .pdf or .dot.

        Raises ValueError for another ending, and ImportError, with the install command, where
        no program can draw the format.
        """
        from minigrad.graphs.render import render

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
        from minigrad.graphs.render import render

        try:
            return render(self.source, "svg").decode()
        except ImportError:
            return None

    def __repr__(self) -> str:
        return f"Graph({len(self.vertices)} tensors, {len(self.arrows)} arrows)"


def graph(
    y: Tensor,
    *,
    grads: bool = False,
    gradient: Any = None,
    names: Mapping[str, Tensor] | Iterable[tuple[str, Tensor]] = (),
    limits: tuple[float, float] | None = None,
) -> Graph:
    """The record behind y, as a `Graph`: walked once, in time linear in its size.

    grads     show the RMS of ∂y/∂(each tensor) and colour the boxes by it. They come from a
              backward pass of the graph's own, which touches no `.grad` and keeps the record.
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
    found = _walk(y)
    strength: dict[int, float] = {}
    if grads:
        seed = check_seed(y, gradient, "graph(grads=True)")
        arrived = replay(y, seed, {id(x) for x in found}, create_graph=False, retain_graph=True)
        strength = {id(x): rms(g) for x, g in arrived}
    given = {id(x): name for name, x in dict(names).items()}
    numbers = {id(x): number for number, x in enumerate(found)}
    return Graph(
        vertices=tuple(_vertex(x, numbers, given, strength.get(id(x))) for x in found),
        arrows=tuple(
            Arrow(numbers[id(x)], numbers[id(t)], position)
            for t in found
            for position, x in enumerate(_inputs(t))
        ),
        limits=(limits or _decades(list(strength.values()))) if grads else None,
    )


def rms(x: Array) -> float:
    """√mean(x²), the size of a typical element.

    Divided by the largest element first: the square of 1e-200 is 0 in floating point.

    >>> round(rms(np.array([3e-200, 4e-200])) / 1e-200, 6)
    3.535534
    """
    largest = float(np.abs(x).max(initial=0))
    if largest == 0 or not np.isfinite(largest):
        return largest
    return largest * float(np.sqrt(np.mean((x / largest) ** 2)))


def _inputs(t: Any) -> tuple[Any, ...]:
    """What t was computed from; a constant may be a plain array."""
    if not isinstance(t, Tensor) or t.node is None:
        return ()
    if t.node.spent is not None:
        raise RuntimeError(
            f"the record of {t.node.name} {t.shape} was dropped by a backward pass: draw the "
            "graph first, or call backward(retain_graph=True)"
        )
    return t.node.inputs


def _walk(y: Tensor) -> list[Any]:
    """All tensors and constants behind y, each after all it was computed from.

    Chapter 2's search, over every input and not only those that require a gradient. Inputs go
    on the stack last one first, so that the first is numbered first.
    """
    order: list[Any] = []
    met: set[int] = set()
    stack: list[tuple[Any, bool]] = [(y, False)]
    while stack:
        t, inputs_done = stack.pop()
        if inputs_done:
            order.append(t)
        elif id(t) not in met:
            met.add(id(t))
            stack.append((t, True))
            stack.extend([(x, False) for x in reversed(_inputs(t))])
    return order


def _vertex(
    t: Any, numbers: Mapping[int, int], given: Mapping[int, str], grad_rms: float | None
) -> Vertex:
    node = t.node if isinstance(t, Tensor) else None
    name = given.get(id(t)) or getattr(t, "name", None)
    if node is not None:
        kind, plain = "operation", node.name
    elif isinstance(t, Tensor) and t.requires_grad:
        kind, plain = "leaf", "leaf"
    else:
        kind, plain = "constant", f"{t.item():.4g}" if t.size == 1 else "constant"
    return Vertex(
        number=numbers[id(t)],
        kind=kind,
        title=str(name or plain),
        operation=node.name if node is not None else "",
        options=_options(node, t.shape) if node is not None else "",
        shape=t.shape,
        dtype=str(t.dtype),
        grad_rms=grad_rms,
    )


def _options(node: Node, shape: tuple[int, ...]) -> str:
    """The options worth a place: not the rule's defaults, and not the shape shown below them."""
    usual = inspect.signature(node.rule).parameters
    return ", ".join(
        f"{name}={_option(value)}"
        for name, value in node.options.items()
        if not (value is usual[name].default or (name == "shape" and value == shape))
    )


def _option(value: Any) -> str:
    """An option as short text: slices as they are typed, long arrays by their shape."""
    if isinstance(value, tuple):
        inside = ", ".join(_option(v) for v in value)
        return f"({inside},)" if len(value) == 1 else f"({inside})"
    if isinstance(value, slice):
        ends = ["" if v is None else str(v) for v in (value.start, value.stop)]
        return ":".join(ends) + ("" if value.step is None else f":{value.step}")
    if value is Ellipsis:
        return "..."
    if isinstance(value, np.ndarray) and value.size > 4:
        return f"array {value.shape}"
    text = str(value) if not isinstance(value, str) else repr(value)
    return text if len(text) <= 32 else text[:31] + "…"


def _decades(strengths: list[float]) -> tuple[float, float]:
    """Whole powers of ten around the gradients found, at most twelve of them."""
    seen = [s for s in strengths if s > 0 and np.isfinite(s)]
    if not seen:
        return 0.1, 1.0
    top = int(np.ceil(np.log10(max(seen))))
    bottom = int(np.floor(np.log10(min(seen))))
    bottom = max(min(bottom, top - 1), top - 12)
    return 10.0**bottom, 10.0**top
