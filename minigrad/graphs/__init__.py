"""5 · Graphs: the record, drawn.

What does the record of chapter 1 look like? A drawing, in its simplest form, walks from the result
through `node.inputs` and writes what it meets in DOT, the language of Graphviz: a box for each
tensor, an arrow for each use of it, and the size of each gradient, as its root mean square (RMS).

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
    ...     print("digraph {")
    ...     for t, number in numbers.items():
    ...         name = t.name or (t.node.name if t.node else "leaf")
    ...         grad = f"grad {np.sqrt(np.mean(found[t] ** 2)):.3g}" if t in found else "no grad"
    ...         print(f'  {number} [label="{name} {t.shape} {grad}"]')
    ...         for x in t.node.inputs if t.node else ():
    ...             print(f"  {numbers[x]} -> {number}")
    ...     print("}")
    >>> x = Tensor([1.0, 2.0], requires_grad=True, name="x")
    >>> y = (x * x).mean()
    >>> draw(y)
    digraph {
      t0 [label="mean () grad 1"]
      t1 -> t0
      t1 [label="multiply (2,) grad 0.5"]
      t2 -> t1
      t2 -> t1
      t2 [label="x (2,) grad 1.58"]
    }

x is used twice, so two arrows lead from x to `multiply`. `dot -Tsvg` makes a picture of the text.
This form draws every record, but a long one cannot be read: a GPT of twelve blocks has about 500
boxes. There are no layers, no options of operations and no colours, and parameters are among data.

A first reading may stop here. What follows is the tool, which draws the same record so that it can
be read. `graph(y)` turns the record into data (5.1, 5.2), decides what is a box and what is inside
of one (5.3 to 5.6), writes that as text (5.7, 5.8), and has it drawn (5.9 to 5.11). A layer's
parameters are inside of the operation that uses them.

    >>> print(graph(y, grads=True))
    x = [1, 2]           (2,)  grad 1.58
    t1 = multiply(x, x)  (2,)  grad 0.5, ‖g‖ 0.707
    t2 = mean(t1)        ()    grad 1

With `grads=True` each box is coloured by its RMS on a log scale (5.5): the smaller, the paler. That
turns a vanishing gradient from a sentence into a picture. One kind of pale box is harmless: the
mean over an axis of length n divides the gradient by n, so every box behind it has an RMS n times
smaller, though nothing is lost. So at the input of a mean the length of the whole gradient is
shown, too: ‖g‖ = √n RMS.

`Steps` notes what happens while a network computes (5.12 to 5.14): every operation with its layer
and its line, and every contribution of the backward pass. With it, `graph(y, steps=steps)` draws a
network of any size: layers are frames, and of equal ones only the first is drawn.
"""

from minigrad.graphs.drawing import Graph, graph
from minigrad.graphs.folding import Box, Link
from minigrad.graphs.model import Arrow, Vertex
from minigrad.graphs.steps import Contribution, Steps

__all__ = ["Arrow", "Box", "Contribution", "Graph", "Link", "Steps", "Vertex", "graph"]
