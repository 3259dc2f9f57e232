"""Text: a graph, and both passes, to be read in a terminal.

Each line reads like the assignment that computed a tensor, and layers are indentation. Both passes
are a line for each operation, and then a line for each contribution. A result that no variable
names has its layer and its operation before its number: blocks.1: add (t99) → x#4.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from minigrad.graphs.folding import Box, Drawing, Row
from minigrad.graphs.model import Scope, Vertex
from minigrad.graphs.names import unique_names
from minigrad.graphs.scale import in_words
from minigrad.graphs.worked import Contribution


def as_text(drawing: Drawing) -> str:
    """Write the boxes as lines of text, in three columns."""
    names = unique_names(drawing.vertices)
    inputs = {box.id: _inside(box, names, drawing) for box in drawing.boxes}
    for link in drawing.links:
        words = f" ({link.words})" if link.words else ""
        inputs[link.target].append((link.position, f"{names[link.vertex]}{words}", ""))
    rows: list[tuple[str, str, str]] = []
    frame: tuple[str, ...] = ()
    for box in drawing.boxes:
        for level, layer in enumerate(box.frame):
            if box.frame[: level + 1] != frame[: level + 1]:
                rows.append(("    " * level + layer, "", ""))
        frame = box.frame
        given = [text for position, text, _ in sorted(inputs[box.id]) if position >= 0]
        text = "    " * len(frame) + _line(box, names, drawing, given)
        grads = [gradient_of(box, drawing), *(f"{t} {g}" for _, t, g in inputs[box.id] if g)]
        positions = range(1 + max((n for n, *_ in inputs[box.id]), default=-1))
        grads += [f"✗ input {n}" for n in positions if drawing.wrong_at(box, n)]
        shape = str(box.shape) if box.kind != "repeat" else ""
        rows.append((text, shape, "; ".join(grads) if grads[0] else ""))
    width = min(max(len(text) for text, _, _ in rows) + 2, 72)
    shapes = max(len(shape) for _, shape, _ in rows) + 2
    lines = [f"{text + '  ':<{width}}{shape:<{shapes}}{rest}" for text, shape, rest in rows]
    return "\n".join([*map(str.rstrip, lines), *notes(drawing)])


def _inside(box: Box, names: list[str], drawing: Drawing) -> list[tuple[int, str, str]]:
    """Return the position, the text and the gradient of each row inside a box.

    A layer's own weights are called as the layer does.
    """
    around = drawing.vertices[box.vertices[-1]].modules
    found = []
    for row in box.rows:
        name = names[row.vertex].removeprefix(f"{around[-1].layer}." if around else "")
        text = f"{name}, {row.words}" if row.words else name
        grad = gradient_of_row(row, drawing).removeprefix("grad ")
        found.append((row.position, text if row.position >= 0 else row.text, grad))
    return found


def notes(drawing: Drawing) -> list[str]:
    """Return the notes below a drawing: on operations not counted, verdicts, gradients ≈ 0."""
    found = []
    drawn = {n for box in drawing.boxes for n in (*box.vertices, *(row.vertex for row in box.rows))}
    if any(box.kind == "module" for box in drawing.boxes):
        found.append("not counted: operations that only move numbers (reshape, …)")
    if drawing.judged:
        found += ["✓: the gradient equals the difference", "dashed: the gradient is off by so much"]
        if any(v.verdict.wrong for v in drawing.vertices if v.verdict):
            found.append("✗: the VJP that is wrong")
    if drawn & drawing.noise:
        found.append("≈ 0: the gradient is 0 on paper, and rounding leaves a little")
    return found


def gradient_of(box: Box, drawing: Drawing) -> str:
    """Return the gradient of a box as text; of several operations the largest."""
    words = in_words(box.grad, drawing.limits, box.vertices[-1] in drawing.noise)
    if box.of_several:
        words = words.replace("grad", "grad up to")
    if box.norm is not None:
        words = f"{words}, ‖g‖ {box.norm:.3g}"
    verdict = drawing.verdict(box)
    return words if verdict is None else f"{words}, {verdict.said}".removeprefix(", ")


def gradient_of_row(row: Row, drawing: Drawing) -> str:
    """Return the gradient of a row inside a box as text."""
    words = in_words(row.grad, drawing.limits, row.vertex in drawing.noise)
    verdict = drawing.vertices[row.vertex].verdict
    return words if verdict is None else f"{words}, {verdict.said}".removeprefix(", ")


def _line(box: Box, names: list[str], drawing: Drawing, inputs: list[str]) -> str:
    name, last = names[box.vertices[-1]], drawing.vertices[box.vertices[-1]]
    given = ", ".join([*inputs, box.options] if box.options else inputs)
    if box.kind in ("leaf", "constant"):
        return f"{name} = {box.detail}" if box.detail else name
    if box.of_several:
        return f"{name} = {box.title}({given})  {box.detail}"
    layer = f"{box.title}: " if box.title != last.title else ""
    return f"{name} = {layer}{box.operation}({given})"


def forward_lines(vertices: Sequence[Vertex]) -> Iterator[str]:
    """Yield a line for each operation of a forward pass, and one where a layer begins."""
    names = unique_names(vertices)
    around: tuple[Scope, ...] = ()
    for n, v in enumerate((v for v in vertices if v.operation), 1):
        for level, scope in enumerate(v.modules):
            if v.modules[: level + 1] != around[: level + 1]:
                yield f"{' ' * 7}{'    ' * level}{scope.path}"
        around = v.modules
        own = f"{around[-1].layer}." if around else ""  # (left out for a layer's own weights)
        given = ", ".join([*(names[i].removeprefix(own) for i in v.inputs), v.options])
        called = f"{names[v.number]} = {v.operation}({given.removesuffix(', ')})"
        line = v.line or "outside of the block"
        yield f"{n:5}. {'    ' * len(around)}{called}  {v.shape}  {v.value}  {line}"


def backward_lines(
    vertices: Sequence[Vertex], contributions: Sequence[Contribution]
) -> Iterator[str]:
    """Yield a line for each contribution of a backward pass."""
    names = unique_names(vertices)
    for n, c in enumerate(contributions, 1):
        target = vertices[c.target]
        if c.source is None:
            yield f"{n:5}. {_in_layer(target, names)} receives {c.after}"
            continue
        source = vertices[c.source]
        which = f", input {c.position}" if source.inputs.count(c.target) > 1 else ""
        count = f", {c.nth} of {c.of}" if c.of > 1 else ""
        both = f"{_in_layer(source, names)} → {_in_layer(target, names)}"
        yield f"{n:5}. {both}{which}{count}: {_total(c)}"


def _in_layer(v: Vertex, names: list[str]) -> str:
    """Return a tensor's name; for a result without one its layer, operation and number."""
    if v.named or not v.operation:
        return names[v.number]
    place = f"{v.modules[-1].path}: " if v.modules else ""
    return f"{place}{v.operation} ({names[v.number]})"


def _total(c: Contribution) -> str:
    """Write `before + contribution = after` for small arrays, and the three RMS for large ones."""
    if c.before is None:
        return str(c.after)
    if str(c.after).startswith("RMS"):
        return f"had {c.before}, gets {c.contribution}, now {c.after}"
    return f"{c.before} + {c.contribution} = {c.after}"
