"""Demos · Museum: an engine in fifteen lines, for the mistakes that only an engine can make."""


class Value:
    """A number; for each value it was made of, the slope towards it; and a place for a gradient."""

    def __init__(self, data, *edges):
        self.data, self.edges, self.grad = data, edges, 0.0

    def __add__(self, other):
        return Value(self.data + other.data, (self, 1.0), (other, 1.0))

    def __mul__(self, other):
        return Value(self.data * other.data, (self, other.data), (other, self.data))


def in_order(root):
    """Every value behind the root, each before all it was made of."""
    done = []

    def visit(v):
        if v not in done:
            for x, _ in v.edges:
                visit(x)
            done.append(v)

    visit(root)
    return reversed(done)
