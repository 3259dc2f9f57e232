"""5.7 · Text: a graph to be read in a terminal.

What can be shown where there is no picture? The same boxes in the same order, a line for each, with
the layers as indentation. Each line reads like the assignment that computed the tensor.

    >>> from minigrad import Tensor, graph
    >>> x = Tensor([1.0, 2.0], requires_grad=True, name="x")
    >>> print(graph((x * x).mean(), grads=True))
    x = [1, 2]           (2,)  grad 1.58
    t1 = multiply(x, x)  (2,)  grad 0.5, ‖g‖ 0.707
    t2 = mean(t1)        ()    grad 1
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minigrad.graphs.model import numbered
from minigrad.graphs.scale import in_words

if TYPE_CHECKING:
    from minigrad.graphs.drawing import Graph
    from minigrad.graphs.folding import Box, Row


def as_text(drawing: Graph) -> str:
    """The boxes as lines of text, in three columns."""
    titles = [box.title if box.title != box.operation else None for box in drawing.boxes]
    unique = numbered(titles, [box.id for box in drawing.boxes])
    names = {box.id: name for box, name in zip(drawing.boxes, unique, strict=True)}
    inputs: dict[str, list[str]] = {box.id: [] for box in drawing.boxes}
    for link in drawing.links:
        words = f" ({link.words})" if link.words else ""
        inputs[link.target].append(f"{names[link.source]}{words}")
    rows: list[tuple[str, str, str]] = []
    frame: tuple[str, ...] = ()
    for box in drawing.boxes:
        same = 0
        while same < min(len(frame), len(box.frame)) and frame[same] == box.frame[same]:
            same += 1
        for level in range(same, len(box.frame)):
            rows.append(("    " * level + box.frame[level], "", ""))
        frame = box.frame
        shape = str(box.shape) if box.kind != "repeat" else ""
        text = "    " * len(frame) + _line(box, names[box.id], inputs[box.id])
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
    rows = [row for box in drawing.boxes for row in box.rows]
    noise = [row for row in rows if drawing.is_noise(row.grad, row)]
    if noise:
        found.append("≈ 0: the gradient is 0 on paper, and rounding leaves a little")
    if any(drawing.vertices[row.vertex].title.endswith("w_k.bias") for row in noise):
        found.append("w_k.bias learns nothing: softmax does not see a shift of all its scores")
    return found


def words_of(row: Row, drawing: Graph) -> str:
    """The gradient of a parameter inside a box."""
    words = in_words(row.grad, drawing.limits, drawing.is_noise(row.grad, row))
    return words.removeprefix("grad ")


def _line(box: Box, name: str, inputs: list[str]) -> str:
    options = [box.options] if box.options else []
    inside = ", ".join([*inputs, *(row.text for row in box.rows), *options])
    if box.kind in ("leaf", "constant"):
        return f"{name} = {box.detail}" if box.detail else name
    if box.kind in ("module", "repeat"):
        return f"{name}({inside})  {box.detail}"
    return f"{name} = {box.operation}({inside})"


def _gradients(box: Box, drawing: Graph) -> str:
    words = in_words(box.grad, drawing.limits, drawing.is_noise(box.grad))
    if box.kind in ("module", "repeat"):
        words = words.replace("grad", "grad up to")
    if box.norm is not None:
        words += f", ‖g‖ {box.norm:.3g}"
    rows = [f"{row.text} {words_of(row, drawing)}" for row in box.rows if row.grad is not None]
    return "; ".join([words, *rows]) if words else ""
