"""Exercise 5 · An order: which value passes its gradient on first.

A value passes its gradient on to its inputs. It has to wait until its
gradient is complete: until every value that was made from it has passed on
its own. So bring the values behind a root into an order: each value once, and
after all values that were made from it. A value knows its inputs, and its
time: the larger, the newer. Some chains are 5,000 values long, and Python
does not let a function call itself that often.

    root    a Value
    order(root) → a list of Values: the root first, and all it was made from

Chapter 2.1, minigrad/engine/replay.py.
"""

import itertools

clock = itertools.count()  # gives 0, 1, 2, …


class Value:
    """A value that knows from which values it was made, and when."""

    def __init__(self, *inputs):
        self.inputs = inputs  # a tuple of Values, in which one may be twice
        self.time = next(clock)


def order(root):
    """The root and all behind it, each after all values made from it."""
    # Your lines begin.
    found, waiting = {root}, [root]
    while waiting:
        for x in waiting.pop().inputs:
            if x not in found:
                found.add(x)
                waiting.append(x)
    return sorted(found, key=lambda value: value.time, reverse=True)
    # Your lines end.
