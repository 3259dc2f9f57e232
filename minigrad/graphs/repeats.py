"""5.4 · Repeats: stretches of a list that occur again right after themselves.

Which part of a network is the same thing, again and again? Give each operation, or each layer, a
number that is the same for those that do the same. Then the twelve blocks of a GPT are a stretch of
the list that is repeated: from its start on, each number equals the number one period later.
`runs` finds such stretches, and `alike` gives the numbers.

    >>> from minigrad.graphs.repeats import Run, runs
    >>> runs([7, 1, 2, 1, 2, 1, 2, 9], lambda run: True)
    [0, Run(start=1, period=2, count=3), 7]
    >>> runs([5, 5, 5], lambda run: run.count > 3)              # a repetition that is not wanted
    [0, 1, 2]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from minigrad.engine.tensor import Array
from minigrad.graphs.model import Vertex
from minigrad.graphs.nesting import Group, Item, inside

LONGEST = 64  # a repetition may have so many operations


@dataclass(frozen=True)
class Run:
    """`count` copies of `period` items of a list, from `start` on."""

    start: int
    period: int
    count: int

    def copies(self) -> list[slice]:
        """Where each copy is in the list."""
        starts = range(self.start, self.start + self.period * self.count, self.period)
        return [slice(start, start + self.period) for start in starts]


def runs(numbers: Sequence[int], wanted: Callable[[Run], bool]) -> list[Run | int]:
    """The list's places in order, with a Run in the place of those that are repeated.

    They are looked for from the left. Of several repetitions that begin at one place, the one that
    covers most is taken, and of these the one with the shortest period.
    """
    lengths = _equal_for(np.asarray(numbers))
    found: list[Run | int] = []
    i = 0
    while i < len(numbers):
        possible = [
            Run(i, period, int(equal[i]) // period + 1)
            for period, equal in lengths
            if i < len(equal) and equal[i] >= period
        ]
        best = max(filter(wanted, possible), key=lambda run: run.period * run.count, default=i)
        found.append(best)
        i += 1 if isinstance(best, int) else best.period * best.count
    return found


def _equal_for(numbers: Array) -> list[tuple[int, Array]]:
    """For each period: how many numbers from each place on equal that one period later."""
    found = []
    for period in range(1, min(LONGEST, len(numbers) // 2) + 1):
        equal = numbers[:-period] == numbers[period:]
        ends = np.append(np.flatnonzero(~equal), len(equal))  # where an equal stretch ends
        places = np.arange(len(equal))
        length = ends[np.searchsorted(ends, places)] - places
        if length.max(initial=0) >= period:
            found.append((period, length))
    return found


def alike(
    items: Sequence[Item], vertices: Sequence[Vertex], base: Sequence[int], words: Sequence[str]
) -> list[int]:
    """A number for each item: equal for items that do the same with what they are given.

    Two items are alike if their operations are, one by one. Two operations are alike if they have
    the same name, options and shape, and inputs that are alike: equal constants, leaves of one
    shape, or results from the same place. A place is told by how many items before it is, and by
    how many operations come after it there.

    `base` is for each vertex the one whose numbers it has, and `words` say how they were moved
    (chapter 5.6).

    >>> from minigrad import Tensor, graph
    >>> from minigrad.graphs.repeats import alike
    >>> y = Tensor(1.0, requires_grad=True)
    >>> for _ in range(3):
    ...     y = np.sin(y) * 2.0
    >>> vertices = graph(y).vertices
    >>> operations = [v.number for v in vertices if v.operation]
    >>> alike(operations, vertices, range(len(vertices)), [""] * len(vertices))
    [0, 1, 2, 1, 2, 1]

    (The first sine is not like the others, because its input is a leaf.)
    """
    parts = [inside(item) for item in items]
    # For each operation: in which item it is, and how far from the item's end.
    place = {n: (k, m) for k, part in enumerate(parts) for m, n in enumerate(reversed(part))}
    numbers: dict[Any, int] = {}
    found = []
    for k, (item, part) in enumerate(zip(items, parts, strict=True)):
        what: list[Any] = [item.stem if isinstance(item, Group) else ""]
        leaves: dict[int, int] = {}
        for n in part:
            v = vertices[n]
            sources = []
            for i in v.inputs:
                x = vertices[base[i]]
                if x.number in place:
                    before, from_end = place[x.number]
                    where: Any = (k - before, from_end)
                elif x.kind == "constant":
                    where = x.value.key
                else:  # which of the leaves of this item
                    where = (x.kind, x.shape, leaves.setdefault(x.number, len(leaves)))
                sources.append((where, words[i]))
            what.append((v.kind, v.operation, v.likeness, v.shape, v.dtype, *sources))
        found.append(numbers.setdefault(tuple(what), len(numbers)))
    return found
