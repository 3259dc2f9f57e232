"""minigrad: reverse-mode automatic differentiation in NumPy, to be read from chapter 1 on.

README.md is the table of contents. The names below stand in the order a reader meets them.
"""

# ruff: noqa: I001 (chapter 1 is imported first: the order is the lesson's, not the alphabet's)
from minigrad.tensor import Tensor
from minigrad.record import Node, no_grad, primitive
from minigrad.autograd import backward, grad, gradients
from minigrad.ops import *
from minigrad.ops import __all__ as _primitives
from minigrad.differences import numerical_gradient
from minigrad.checking import GradientError, gradcheck
from minigrad.graphs import Graph, graph

__all__ = [
    "Node",
    "Tensor",
    "no_grad",
    "primitive",
    "backward",
    "grad",
    "gradients",
    *_primitives,
    "numerical_gradient",
    "GradientError",
    "gradcheck",
    "Graph",
    "graph",
]
