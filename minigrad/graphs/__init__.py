"""5 · Graphs: the record, drawn.

What does the record of chapter 1 look like? `graph(y)` walks it once, from y back to the leaves
(5.1, the data model), writes it as DOT text (5.2), has that text drawn (5.3), and puts all of it
in one object (5.4). Every tensor that requires a gradient is a box: leaves with their names,
results with the operation they came from. Constants are plain text. Every use of a tensor is one
arrow, so x · x shows two.

With `grads=True` each box also shows the root mean square (RMS) of ∂L/∂(that tensor), and is
coloured by it on a log scale: the smaller, the paler. That turns a vanishing gradient from a
sentence into a picture. One kind of pale box is harmless: the mean over an axis of length n divides
the gradient by n, so every box behind it has an RMS n times smaller, though nothing is lost.

    >>> from minigrad import Tensor, graph
    >>> x = Tensor([1.0, 2.0], requires_grad=True, name="x")
    >>> drawing = graph((x * x).sum())
    >>> drawing
    Graph(3 vertices, 3 arrows)
    >>> [f"{v.title} {v.shape}" for v in drawing.vertices]
    ['x (2,)', 'multiply (2,)', 'sum ()']
    >>> [(arrow.source, arrow.target) for arrow in drawing.arrows]
    [(0, 1), (0, 1), (1, 2)]
    >>> drawing = graph((x * x).mean(), grads=True)
    >>> [f"{v.title} {v.grad_rms:.2f}" for v in drawing.vertices]       # multiply: 1/n, and n = 2
    ['x 1.58', 'multiply 0.50', 'mean 1.00']
"""

from minigrad.graphs.drawing import Graph, graph
from minigrad.graphs.model import Arrow, Vertex

__all__ = ["Arrow", "Graph", "Vertex", "graph"]
