"""Exercise 6 · Find the bug: one doubling is right, and two are wrong.

This small engine gets the slope of a + a right, and that of b + b with
b = a + a wrong: 6, where 4 is right. The mistake was in a well-known engine
in its first days. It is in the lines that are marked; the other lines are
right, and you may use them. Every value behind the root has to get its
gradient, the ones between the root and a too.

    root             a Value, whose grad is 1 before the call
    pass_on(root)    sets x.grad = ∂root/∂x for every value x behind it

Chapter 2.1, minigrad/engine/replay.py.
"""

import itertools

clock = itertools.count()  # gives 0, 1, 2, …


class Value:
    """A number, its inputs, and for each a function: g to its gradient."""

    def __init__(self, number, inputs=(), functions=()):
        self.number, self.inputs, self.functions = number, inputs, functions
        self.time, self.grad = next(clock), 0.0

    def __add__(self, other):
        both = (lambda g: g, lambda g: g)
        return Value(self.number + other.number, (self, other), both)

    def __mul__(self, other):
        a, b = self.number, other.number
        return Value(a * b, (self, other), (lambda g: g * b, lambda g: g * a))


def order(root):
    """Exercise 5: the root and all values behind it, the newest first."""
    found, waiting = {root}, [root]
    while waiting:
        new = [x for x in waiting.pop().inputs if x not in found]
        found.update(new)
        waiting += new
    return sorted(found, key=lambda value: value.time, reverse=True)


def pass_on(root):
    """Pass root.grad on to every value that the root was made from."""
    # Your lines begin.
    for value in order(root):
        for x, function in zip(value.inputs, value.functions, strict=True):
            x.grad = x.grad + function(value.grad)
    # The learner gets:
    #     for x, function in zip(root.inputs, root.functions, strict=True):
    #         x.grad = x.grad + function(root.grad)
    #         pass_on(x)
    # Your lines end.
