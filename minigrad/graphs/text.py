"""5.7 · Text: a graph, and both passes, to be read in a terminal.

What can be shown where there is no picture? Of a graph the same boxes in the same order, a line for
each, with the layers as indentation. Each line reads like the assignment that computed the tensor:
the inputs are in their order.

    >>> from minigrad import Tensor, graph
    >>> x = Tensor([1.0, 2.0], requires_grad=True, name="x")
    >>> print(graph((x * x).mean(), grads=True))
    x = [1, 2]           (2,)  grad 1.58
    t1 = multiply(x, x)  (2,)  grad 0.5, ‖g‖ 0.707
    t2 = mean(t1)        ()    grad 1

The passes that `Steps` notes (chapter 5.14) are written in the same way: forward a line for each
operation, with its number, and backward a line for each contribution. There a result that no
variable names has its layer and its operation before its number: blocks.1: add (t99) → x#4.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from minigrad.graphs.model import Scope, Vertex
from minigrad.graphs.scale import in_words, is_unseen_by_softmax

if TYPE_CHECKING:
    from minigrad.graphs.drawing import Graph
    from minigrad.graphs.folding import Box, Row
    from minigrad.graphs.steps import Contribution

# ---------------------------------------------------------------- a graph


def as_text(drawing: Graph) -> str:
    """The boxes as lines of text, in three columns."""
    names = unique_names(drawing.vertices)
    inputs: dict[str, list[tuple[int, str]]] = {
        box.id: [
            (row.position, _inside(row, box, names, drawing))
            for row in box.rows
            if row.position >= 0
        ]
        for box in drawing.boxes
    }
    for link in drawing.links:
        words = f" ({link.words})" if link.words else ""
        inputs[link.target].append((link.position, f"{names[link.vertex]}{words}"))
    rows: list[tuple[str, str, str]] = []
    frame: tuple[str, ...] = ()
    for box in drawing.boxes:
        for level, layer in enumerate(box.frame):
            if box.frame[: level + 1] != frame[: level + 1]:
                rows.append(("    " * level + printable(layer), "", ""))
        frame = box.frame
        shape = str(box.shape) if box.kind != "repeat" else ""
        text = "    " * len(frame) + _line(box, names, drawing, sorted(inputs[box.id]))
        rows.append((text, shape, _gradients(box, names, drawing)))
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
    if any(box.kind == "module" for box in drawing.boxes):
        found.append("not counted: operations that only move numbers (reshape, …)")
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


def gradient_of(box: Box, drawing: Graph) -> str:
    """The gradient of a box in words: of several operations the largest."""
    words = words_of(box.grad, box.vertices[-1], drawing)
    if box.of_several:
        words = words.replace("grad", "grad up to")
    return words if box.norm is None else f"{words}, ‖g‖ {box.norm:.3g}"


def _line(box: Box, names: list[str], drawing: Graph, inputs: list[tuple[int, str]]) -> str:
    name, title = names[box.vertices[-1]], printable(box.title)
    options = [printable(box.options)] if box.options else []
    inside = ", ".join([*(text for _, text in inputs), *options])
    if box.kind in ("leaf", "constant"):
        return f"{name} = {box.detail}" if box.detail else name
    if box.of_several:
        return f"{name} = {title}({inside})  {box.detail}"
    layer = f"{title}: " if box.title != drawing.vertices[box.vertices[-1]].title else ""
    note = "  (without a record)" if box.kind == "unrecorded" else ""
    return f"{name} = {layer}{box.operation}({inside}){note}"


def _inside(row: Row, box: Box, names: list[str], drawing: Graph) -> str:
    """What stands inside of a box: a layer's own weights are called as the layer calls them."""
    around = drawing.vertices[box.vertices[-1]].modules
    name = names[row.vertex].removeprefix(f"{around[-1].layer}." if around else "")
    return f"{name}, {row.words}" if row.words else name


def _gradients(box: Box, names: list[str], drawing: Graph) -> str:
    found = [gradient_of(box, drawing)]
    for row in box.rows:
        if row.grad is not None:
            text = _inside(row, box, names, drawing) if row.position >= 0 else printable(row.text)
            grad = words_of(row.grad, row.vertex, drawing).removeprefix("grad ")
            found.append(f"{text} {grad}")
    return "; ".join(found) if found[0] else ""


# ---------------------------------------------------------------- both passes


def forward_lines(vertices: Sequence[Vertex]) -> Iterator[str]:
    """The operations of a forward pass, a line for each, and a line where a layer begins."""
    operations = [v for v in vertices if v.operation]
    names = unique_names(vertices)
    around: tuple[Scope, ...] = ()
    for n, v in enumerate(operations, 1):
        for level, scope in enumerate(v.modules):
            if v.modules[: level + 1] != around[: level + 1]:
                yield f"{' ' * 7}{'    ' * level}{scope.path}"
        around = v.modules
        # (A layer's own weights are called as the layer calls them.)
        own = f"{v.modules[-1].layer}." if v.modules else ""
        inputs = ", ".join(names[i].removeprefix(own) for i in v.inputs)
        options = f", {v.options}" if v.options else ""
        where = "    " * len(v.modules)
        note = "  without a record" if v.kind == "unrecorded" else ""
        called = f"{names[v.number]} = {v.operation}({inputs}{options})"
        line = v.line or "outside of the block"
        yield f"{n:5}. {where}{called}  {v.shape}  {v.value}  {line}{note}"


def backward_lines(
    vertices: Sequence[Vertex], contributions: Sequence[Contribution]
) -> Iterator[str]:
    """The contributions of a backward pass, a line for each."""
    names = unique_names(vertices)
    for n, c in enumerate(contributions, 1):
        target = vertices[c.target]
        if c.source is None:
            yield f"{n:5}. {_in_layer(target, names)} receives {c.after}"
            continue
        source = vertices[c.source]
        said = source.modules[-1:] if not source.named else ()  # the layer that the line names
        uses = source.inputs.count(c.target)
        which = f", input {c.position}" if uses > 1 else ""
        count = f", {nth_of(c.nth, c.of)}" if c.of > 1 else ""
        names_both = f"{_in_layer(source, names)} → {_in_layer(target, names, *said)}"
        yield f"{n:5}. {names_both}{which}{count}: {_total(c)}"


def _in_layer(v: Vertex, names: list[str], said: Scope | None = None) -> str:
    """Return a tensor's name; for a result without one its operation, and its layer if not said."""
    if v.named or not v.operation:
        return names[v.number].removeprefix(f"{said.layer}." if said else "")
    layer = v.modules[-1] if v.modules else said
    place = f"{layer.path}: " if layer and layer != said else ""
    return f"{place}{v.operation} ({names[v.number]})"


def _total(c: Contribution) -> str:
    """The sum, if its numbers are shown; of large arrays what was there, comes, and results."""
    if c.before is None:
        return str(c.after)
    if str(c.after).startswith("RMS"):
        return f"had {c.before}, gets {c.contribution}, now {c.after}"
    return f"{c.before} + {c.contribution} = {c.after}"


# ---------------------------------------------------- A first reading may stop here.
# What follows: names that can be printed and told apart, and numbers as words.

FORBIDDEN = re.compile("[^\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")
CARDINALS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def printable(text: str) -> str:
    """A text that a user supplied, on one line, with a ? for control characters and their like.

    >>> from minigrad.graphs.text import printable
    >>> printable("two\\nlines"), printable("\\x1b[31mred")
    ('two lines', '?[31mred')
    """
    return FORBIDDEN.sub("?", " ".join(text.split()))


def unique_names(vertices: Sequence[Vertex]) -> list[str]:
    """A name for each vertex, to be used in text: its title, if it has one, or t and its number.

    Of several that have one title the first is x#1, and so on. Vertices of a graph that is drawn
    with steps are called as the steps call them. A small constant is called by its values.
    """
    if all(v.called for v in vertices):
        return [v.called for v in vertices]
    titles: list[str | None] = []
    plain = []
    for v in vertices:
        is_known = v.named and printable(v.title)
        is_value = v.kind == "constant" and v.title != "constant"
        leaf = v.title if is_value else f"{v.kind} {v.shape}"
        plain.append(f"t{v.number}" if v.operation else leaf)
        titles.append(
            v.title if is_known else None if v.operation or (is_value and not v.named) else leaf
        )
    return numbered(titles, plain)


def numbered(titles: Sequence[str | None], plain: Sequence[str]) -> list[str]:
    """The titles, those that occur several times as x#1, x#2, …; for None what is plain.

    No two titles get one name, and none gets that of what is plain.

    >>> from minigrad.graphs.text import numbered
    >>> numbered(["x", None, "x", "loss"], ["t0", "t1", "t2", "t3"])
    ['x#1', 't1', 'x#2', 'loss']
    >>> numbered(["x", "x", "x#1", "t3", None], ["t0", "t1", "t2", "t3", "t3"])
    ['x#2', 'x#3', 'x#1', 't3#1', 't3']
    """
    shown = [None if title is None else printable(title) for title in titles]
    without = {name for name, title in zip(plain, titles, strict=True) if title is None}
    count, met = Counter(shown), Counter[str]()
    once = {title for title, n in count.items() if title is not None and n == 1} - without
    taken = without | once
    names = []
    for title, otherwise in zip(shown, plain, strict=True):
        name = otherwise if title is None else title
        while title is not None and title not in once and (name == title or name in taken):
            met[title] += 1
            name = f"{title}#{met[title]}"
        taken.add(name)
        names.append(name)
    return names


def ordinal(n: int) -> str:
    """first, second, …, ninth, 10th.

    >>> from minigrad.graphs.text import ordinal
    >>> ordinal(2), ordinal(10), ordinal(21)
    ('second', '10th', '21st')
    """
    if n <= len(ORDINALS):
        return ORDINALS[n - 1]
    ending = "th" if n % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{ending}"


def nth_of(n: int, of: int) -> str:
    """Which one of how many.

    >>> from minigrad.graphs.text import nth_of
    >>> nth_of(2, 3), nth_of(10, 12)
    ('second of three', '10th of 12')
    """
    return f"{ordinal(n)} of {CARDINALS[of - 1] if of <= len(CARDINALS) else of}"
