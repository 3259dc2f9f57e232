"""A long record is freed in a loop.

A result holds its node, and the node holds the results that it was computed from. So when Python
frees the newest result, it would free the next one inside of that, and so on: calls in C, as deep
as the record is long. In a browser, whose stack is small, 5,000 operations ended Python before this
loop.
"""

import threading
from typing import Any


class FreedInALoop:
    """What holds others of its kind by its `inputs`, and lets go of these one after the other.

    The first one that falls begins a loop. Those that fall in the meantime hand their inputs over
    to this loop, and return.
    """

    __slots__ = ("inputs", "spent")
    inputs: tuple[Any, ...]
    spent: bool

    def __del__(self) -> None:
        if not self.inputs:  # (a backward pass has dropped them)
            return
        waiting = _dropped.inputs
        if waiting:
            waiting.append(self.inputs)
            return
        waiting += [(), self.inputs]  # (the first one says that a loop is at work)
        self.inputs = ()
        self.spent = True  # (another finalizer may bring it back: a pass then says what is missing)
        try:
            while len(waiting) > 1:
                waiting.pop()
        finally:
            waiting.clear()


class _Dropped(threading.local):
    """Inputs that are to be freed, in this thread."""

    def __init__(self) -> None:
        self.inputs: list[tuple[Any, ...]] = []


_dropped = _Dropped()
