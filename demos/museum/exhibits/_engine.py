"""Demos · Museum: the engine of chapter 0, with + and *, for mistakes only an engine can make."""

from minigrad import idea


@idea.operation
def add(a, b):
    """y = a + b: the gradient passes to both sides unchanged."""
    return a + b, lambda g: g, lambda g: g


class Value(idea.Value):
    """A value of chapter 0 that can be written with operators."""

    def __add__(self, other):
        y = add(self, other)
        return Value(y.array, y.inputs, y.vjps)

    def __mul__(self, other):
        y = idea.multiply(self, other)
        return Value(y.array, y.inputs, y.vjps)


def in_order(root):
    """The root and all it was made of, the newest first: each before the values it was made of."""
    found, stack = {root}, [root]
    while stack:
        new = [x for x in stack.pop().inputs if x not in found]
        found.update(new)
        stack += new
    return sorted(found, key=lambda v: v.time, reverse=True)
