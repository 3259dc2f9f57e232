"""5 · Graphs: the record, drawn.

What does the record of chapter 1 look like? A drawing, in its simplest form, walks from the result
through `node.inputs` and writes what it meets in DOT, the language of Graphviz: a box for each
tensor, an arrow for each use of it, and the size of each gradient, as its root mean square (RMS).
The box has the colour of that size, on a scale of four powers of ten: the smaller, the paler.

    >>> import numpy as np
    >>> from minigrad import Tensor, gradients, graph
    >>> def draw(y):
    ...     numbers, waiting = {}, [y]
    ...     while waiting:  # (each tensor is met once)
    ...         t = waiting.pop()
    ...         if t not in numbers:
    ...             numbers[t] = f"t{len(numbers)}"
    ...             waiting += t.node.inputs if t.node else ()
    ...     some = [t for t in numbers if t.requires_grad]
    ...     found = dict(zip(some, gradients(y, some, retain_graph=True)))
    ...     print("digraph { node [shape=box style=filled]")
    ...     for t, number in numbers.items():
    ...         name = t.name or (t.node.name if t.node else "leaf")
    ...         label, shade = f"{name} {t.shape} no grad", 0.0
    ...         if t in found:
    ...             rms = np.sqrt(np.mean(found[t] ** 2))
    ...             label = f"{name} {t.shape} grad {rms:.3g}"
    ...             shade = np.clip(1 + np.log10(rms) / 4, 0, 1) if rms > 0 else 0.0
    ...         print(f'  {number} [label="{label}" fillcolor="0.08 {shade:.2f} 1"]')
    ...         for x in t.node.inputs if t.node else ():
    ...             print(f"  {numbers[x]} -> {number}")
    ...     print("}")
    >>> x = Tensor([1.0, 2.0], requires_grad=True, name="x")
    >>> y = (x * x).mean()
    >>> draw(y)
    digraph { node [shape=box style=filled]
      t0 [label="mean () grad 1" fillcolor="0.08 1.00 1"]
      t1 -> t0
      t1 [label="multiply (2,) grad 0.5" fillcolor="0.08 0.92 1"]
      t2 -> t1
      t2 -> t1
      t2 [label="x (2,) grad 1.58" fillcolor="0.08 1.00 1"]
    }

x is used twice, so two arrows lead from x to `multiply`. `dot -Tsvg` makes a picture of the text.
This form draws every record, but a long one cannot be read: a GPT of twelve blocks has about 500
boxes. There are no layers and no options of operations, and parameters are among data.

A first reading may stop here. What follows is a tool, which draws the same record so that it can be
read. Its files have no chapter: `model.py` turns the record into data (with `operations.py`, what
is known about operations, and `summary.py`, what is kept of an array), `names.py` names the
tensors, `folding.py` decides what is a box and what is inside of one, `scale.py` colours it,
`text.py` and `render.py` write and draw it, and `drawing.py` puts them together.

    >>> print(graph(y, grads=True))
    x = [1, 2]           (2,)  grad 1.58
    t1 = multiply(x, x)  (2,)  grad 0.5, ‖g‖ 0.707
    t2 = mean(t1)        ()    grad 1

With `grads=True` each box is coloured by its RMS on a log scale: the smaller, the paler. That turns
a vanishing gradient from a sentence into a picture. One kind of pale box is harmless: the mean over
an axis of length n divides the gradient by n, so every box behind it has an RMS n times smaller,
though nothing is lost. So at the input of a mean the length of the whole gradient is shown, too:
‖g‖ = √n RMS.

`graph(y, verdicts=agreement(y))` colours each box by whether its gradient is right, and not by its
size (`agreeing.py` of chapter 4's tools).

`Steps` (`steps.py`, with `variable_names.py`) notes what happens while a network computes: every
operation with its layer and its line, and every contribution of the backward pass. With it,
`graph(y, steps=steps)` draws a network of any size: layers are frames, and of equal ones, or of one
that is used again and again, only the first is drawn. `page.py` makes a page of both passes, and
`worked.py` writes out each step of the way back.
"""

from minigrad.graphs.drawing import Graph, graph
from minigrad.graphs.folding import Box, Link
from minigrad.graphs.model import Vertex
from minigrad.graphs.render import draw_with
from minigrad.graphs.steps import Steps
from minigrad.graphs.worked import Contribution

__all__ = ["Box", "Contribution", "Graph", "Link", "Steps", "Vertex", "draw_with", "graph"]
