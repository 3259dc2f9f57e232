"""5.7 · Text: a graph to be read in a terminal.

What can be shown where there is no picture? The same boxes in the same order, a line for each, with
the layers as indentation. Each line reads like the assignment that computed the tensor: the inputs
are in their order.

    >>> from minigrad import Tensor, graph
    >>> x = Tensor([1.0, 2.0], requires_grad=True, name="x")
    >>> print(graph((x * x).mean(), grads=True))
    x = [1, 2]           (2,)  grad 1.58
    t1 = multiply(x, x)  (2,)  grad 0.5, ‖g‖ 0.707
    t2 = mean(t1)        ()    grad 1
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minigrad.graphs.model import numbered, printable
from minigrad.graphs.scale import in_words, is_unseen_by_softmax

if TYPE_CHECKING:
    from minigrad.graphs.drawing import Graph
    from minigrad.graphs.folding import Box


def as_text(drawing: Graph) -> str:
    """The boxes as lines of text, in three columns."""
    titles = [box.title if box.title != box.operation else None for box in drawing.boxes]
    unique = numbered(titles, [box.id for box in drawing.boxes])
    names = {box.id: name for box, name in zip(drawing.boxes, unique, strict=True)}
    inputs: dict[str, list[tuple[int, str]]] = {
        box.id: [(row.position, printable(row.text)) for row in box.rows if row.position >= 0]
        for box in drawing.boxes
    }
    for link in drawing.links:
        words = f" ({link.words})" if link.words else ""
        inputs[link.target].append((link.position, f"{names[link.source]}{words}"))
    rows: list[tuple[str, str, str]] = []
    frame: tuple[str, ...] = ()
    for box in drawing.boxes:
        same = 0
        while same < min(len(frame), len(box.frame)) and frame[same] == box.frame[same]:
            same += 1
        for level in range(same, len(box.frame)):
            rows.append(("    " * level + printable(box.frame[level]), "", ""))
        frame = box.frame
        shape = str(box.shape) if box.kind != "repeat" else ""
        text = "    " * len(frame) + _line(box, names[box.id], sorted(inputs[box.id]))
        rows.append((text, shape, _gradients(box, drawing)))
    width = min(max(len(text) for text, _, _ in rows) + 2, 72)
    shapes = max(len(shape) for _, shape, _ in rows) + 2
    lines = [
        f"{text + '  ':<{width}}{shape:<{shapes}}{rest}".rstrip() for text, shape, rest in rows
    ]
    return "\n".join([*lines, *notes(drawing)])


def notes(drawing: Graph) -> list[str]:
    """Sentences below a drawing: what was folded, and why a gradient is ≈ 0."""
    found = [drawing.note] if drawing.note else []
    shown = {n for box in drawing.boxes for n in (*box.vertices, *(row.vertex for row in box.rows))}
    noise = sorted(shown & drawing.noise)
    if noise:
        found.append("≈ 0: the gradient is 0 on paper, and rounding leaves a little")
    blind = [n for n in noise if is_unseen_by_softmax(drawing.vertices, n)]
    if blind:
        which = " and ".join(dict.fromkeys(drawing.vertices[n].title for n in blind[:2]))
        found.append(f"{which}: softmax does not see a shift of all its scores")
    return found


def words_of(grad: float | None, vertex: int, drawing: Graph) -> str:
    """A gradient in words: that of one vertex."""
    return in_words(grad, drawing.limits, vertex in drawing.noise)


def _line(box: Box, name: str, inputs: list[tuple[int, str]]) -> str:
    options = [printable(box.options)] if box.options else []
    inside = ", ".join([*(text for _, text in inputs), *options])
    if box.kind in ("leaf", "constant"):
        return f"{name} = {box.detail}" if box.detail else name
    if box.kind in ("module", "repeat"):
        return f"{name}({inside})  {box.detail}"
    note = "  (without a record)" if box.kind == "unrecorded" else ""
    return f"{name} = {box.operation}({inside}){note}"


def _gradients(box: Box, drawing: Graph) -> str:
    words = words_of(box.grad, box.vertices[-1], drawing)
    if box.kind in ("module", "repeat"):
        words = words.replace("grad", "grad up to")
    if box.norm is not None:
        words += f", ‖g‖ {box.norm:.3g}"
    rows = [
        f"{printable(row.text)} {words_of(row.grad, row.vertex, drawing).removeprefix('grad ')}"
        for row in box.rows
        if row.grad is not None
    ]
    return "; ".join([words, *rows]) if words else ""
