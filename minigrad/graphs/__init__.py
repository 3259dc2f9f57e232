"""5 · Graphs: the record, drawn.

What does the record of chapter 1 look like? `graph(y)` walks it once and turns it into data (5.1,
5.2), decides what is a box and what stands inside of one (5.3 to 5.6), writes that as text (5.7,
5.8), and has it drawn (5.9 to 5.11). A leaf is a box, with its name if it has one; so is the result
of each operation. A layer's parameters stand inside the operation that uses them. Every use of a
tensor is one arrow, so x · x shows two.

With `grads=True` each box also shows the root mean square (RMS) of ∂L/∂(that tensor), and is
coloured by it on a log scale (5.5): the smaller, the paler. That turns a vanishing gradient from a
sentence into a picture. One kind of pale box is harmless: the mean over an axis of length n divides
the gradient by n, so every box behind it has an RMS n times smaller, though nothing is lost. So at
the input of a mean the length of the whole gradient is shown, too: ‖g‖ = √n RMS.

    >>> from minigrad import Tensor, graph
    >>> x = Tensor([1.0, 2.0], requires_grad=True, name="x")
    >>> drawing = graph((x * x).mean(), grads=True)
    >>> drawing
    Graph(3 boxes of 3 tensors)
    >>> print(drawing)
    x = [1, 2]           (2,)  grad 1.58
    t1 = multiply(x, x)  (2,)  grad 0.5, ‖g‖ 0.707
    t2 = mean(t1)        ()    grad 1

`Steps` notes what happens while a network computes (5.12 to 5.14): every operation with its layer
and its line, and every contribution of the backward pass. With it, `graph(y, steps=steps)` draws a
network of any size: layers are frames, and of equal ones only the first is drawn.
"""

from minigrad.graphs.drawing import Graph, graph
from minigrad.graphs.folding import Box, Link
from minigrad.graphs.model import Arrow, Vertex
from minigrad.graphs.steps import Contribution, Steps

__all__ = ["Arrow", "Box", "Contribution", "Graph", "Link", "Steps", "Vertex", "graph"]
