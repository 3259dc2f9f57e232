"""5.1 · Graph model: one walk from the result back to the leaves.

What does a drawing need? Which tensors there are, what each was computed from, and how large the
gradient at each is. This chapter collects that as plain data, a `Vertex` for each tensor and an
`Arrow` for each use of one. How the data will look is decided in chapter 5.2.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from minigrad.engine.record import Node
from minigrad.engine.replay import inputs_of
from minigrad.engine.tensor import Tensor


@dataclass(frozen=True)
class Vertex:
    """One tensor or constant of the record.

    kind      "leaf" (one that requires a gradient), "constant" (any other), or "operation"
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


Names = Mapping[str, Tensor] | Iterable[tuple[str, Tensor]]


def model(
    found: list[Tensor], strength: Mapping[int, float], names: Names
) -> tuple[list[Vertex], list[Arrow]]:
    """The vertices and arrows of what `walk` found; `strength` is each id's gradient RMS."""
    given = {id(x): name for name, x in dict(names).items()}
    numbers = {id(x): number for number, x in enumerate(found)}
    vertices = [_vertex(x, numbers[id(x)], given.get(id(x)), strength.get(id(x))) for x in found]
    arrows = [
        Arrow(numbers[id(x)], numbers[id(t)], position)
        for t in found
        for position, x in enumerate(_inputs(t))
    ]
    return vertices, arrows


def _inputs(t: Tensor) -> tuple[Tensor, ...]:
    """What t was computed from; RuntimeError if a backward pass has dropped it."""
    return () if t.node is None else inputs_of(t)


def walk(y: Tensor) -> list[Tensor]:
    """All tensors and constants behind y, each after all it was computed from.

    A depth-first search with its own stack, since Python's call stack ends near 1,000. Each tensor
    is put on the stack twice; when it is taken off the second time, all its inputs are in the
    order, and it is appended. Inputs are put on in reverse, so that the first is numbered first.
    """
    order: list[Tensor] = []
    met: set[int] = set()
    stack: list[tuple[Tensor, bool]] = [(y, False)]
    while stack:
        t, inputs_done = stack.pop()
        if inputs_done:
            order.append(t)
        elif id(t) not in met:
            met.add(id(t))
            stack.append((t, True))
            stack.extend([(x, False) for x in reversed(_inputs(t))])
    return order


def _vertex(t: Tensor, number: int, given: str | None, grad_rms: float | None) -> Vertex:
    node = t.node
    name = given or t.name
    if node is not None:
        kind, plain = "operation", node.name
    elif t.requires_grad:
        kind, plain = "leaf", "leaf"
    else:
        kind, plain = "constant", f"{t.item():.4g}" if t.size == 1 else "constant"
    return Vertex(
        number=number,
        kind=kind,
        title=str(name or plain),
        operation=node.name if node is not None else "",
        options=_options(node, t.shape) if node is not None else "",
        shape=t.shape,
        dtype=str(t.dtype),
        grad_rms=grad_rms,
    )


def _options(node: Node, shape: tuple[int, ...]) -> str:
    """The options to show: not those with the rule's default, and not the shape, shown below."""
    usual = inspect.signature(node.rule).parameters
    return ", ".join(
        f"{name}={_option(value)}"
        for name, value in node.options.items()
        if not (
            _option(value) == _option(usual[name].default)
            or (name == "shape" and isinstance(value, tuple) and value == shape)
        )
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
