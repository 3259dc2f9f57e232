"""5.13 · Vertices: one for each tensor, however often it is met.

While a network computes, a tensor is met again and again: when an operation computes it, when
others use it, and when its gradient comes. How is it known to be the same tensor? By a key that
stays the same, and that no other tensor has:

- The key of an operation's result is its node. (While the operation is watched, its node is there,
  and its Tensor is not made yet.)
- The key of a leaf is the leaf with the time of its array. A step, `w -= 0.1`, gives the leaf
  another array, and what was computed before has used the former one. So there is a vertex for each
  array.
- The result of an operation under `no_grad` has no node. Its key is the id of its array, as long as
  the array lives. Afterwards another array may get that id.

    >>> from minigrad import Tensor, no_grad
    >>> from minigrad.graphs.vertices import Vertices
    >>> vertices, w = Vertices(), Tensor([1.0], requires_grad=True, name="w")
    >>> y = w * w
    >>> vertices.number_of(y), vertices.number_of(w), vertices.number_of(y)
    (1, 0, 1)
    >>> with no_grad():
    ...     w -= 0.1
    >>> vertices.number_of(w), [v.title for v in vertices.met]
    (2, ['w', 'multiply', 'w'])
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from minigrad.engine.tensor import Array, Tensor, result
from minigrad.graphs.model import Vertex, vertex, walk, without_record
from minigrad.graphs.summary import Summary
from minigrad.graphs.text import unique_names


class Vertices:
    """The vertices of all tensors that were met, each after those that it was computed from.

    met      the vertices: each has its place in this list as its number
    names    names that tensors have besides their own
    """

    def __init__(self) -> None:
        self.met: list[Vertex] = []
        self.names: Mapping[Tensor, str] = {}
        self._times: list[int] = []  # when the array of each came into being
        self._numbers: dict[Any, int] = {}  # by key: a node, (a leaf, its array's time), or an id
        self._unrecorded: dict[int, Any] = {}  # weak references: an id is forgotten with its array

    def number_of(self, x: Tensor) -> int:
        """The number of a tensor's vertex. A tensor that was not met yet gets one.

        So does all behind it that was not met; not what another pass has dropped from the record.
        """
        key = self._key(x)
        if key not in self._numbers:
            for t in walk(x, self._new_inputs):
                numbers = tuple([self._numbers[self._key(z)] for z in _inputs(t)])
                made = vertex(t, len(self.met), numbers, given=self.names.get(t))
                self._add(self._key(t), made, t._time)
        return self._numbers[key]

    def number_of_result(self, x: Any) -> int | None:
        """The number of an operation's result that was met; None for all else."""
        if not isinstance(x, Tensor):
            return None
        return self._numbers.get(id(x._array) if x.node is None else x.node)

    def computed(
        self, rule: Callable[..., Any], inputs: tuple[Any, ...], value: Array, node: Any, line: str
    ) -> int:
        """The number of an operation's result, whose Tensor is not made yet."""
        numbers = tuple([self.number_of(x if isinstance(x, Tensor) else Tensor(x)) for x in inputs])
        t = result(value, node)
        made = vertex(t, len(self.met), numbers, line=line)
        if node is None:
            made = without_record(made, rule)
            self._unrecorded[id(value)] = weakref.ref(value, self._forget(id(value)))
        self._add(self._key(t), made, t._time)
        return made.number

    def change(self, number: int, **known: Any) -> None:
        """What is known of a vertex later: its layers, its name, its gradient."""
        changed = object.__new__(Vertex)  # (`replace` would give twenty fields to `__init__`)
        vars(changed).update(vars(self.met[number]), **known)
        self.met[number] = changed

    def forget_arrays(self) -> None:
        """Forget the ids of arrays: from now on they may be those of others."""
        self._unrecorded.clear()
        self._numbers = {key: n for key, n in self._numbers.items() if not isinstance(key, int)}

    def behind(
        self, y: Tensor, gradients: Mapping[Tensor, Any], names: Mapping[Tensor, str]
    ) -> list[Vertex]:
        """The vertices behind y, numbered anew, with gradients and more names: for chapter 5.11.

        They are in the order in which they were computed, as `walk` has them (chapter 5.2).
        """
        root = self.number_of(y)
        found, stack = {root}, [root]
        while stack:
            new = set(self.met[stack.pop()].inputs) - found
            found |= new
            stack += new
        results = [n for n in found if self.met[n].operation]
        number: dict[int, int] = {}  # the new number of each
        for n in sorted(results, key=self._times.__getitem__):
            for i in self.met[n].inputs:
                if not self.met[i].operation:
                    number.setdefault(i, len(number))
            number[n] = len(number)
        of_leaf: dict[Any, list[int]] = {}  # a leaf has a number for each array that it had
        for key, n in self._numbers.items():
            if n in found:
                of_leaf.setdefault(key[0] if isinstance(key, tuple) else key, []).append(n)
        grads = {n: g for x, g in gradients.items() for n in of_leaf.get(x.node or x, ())}
        given = {n: name for x, name in names.items() for n in of_leaf.get(x.node or x, ())}
        met = [
            replace(v, title=given[v.number], named=True, parameter=v.kind == "leaf")
            if v.number in given
            else v
            for v in self.met
        ]
        called = unique_names(met)
        return [
            replace(
                met[n],
                number=number[n],
                inputs=tuple([number[i] for i in met[n].inputs]),
                gradient=None if n not in grads else Summary.of(np.asarray(grads[n])),
                called=called[n],
            )
            for n in number
        ]

    def _key(self, x: Tensor) -> Any:
        """The key of a tensor: see the head of this chapter."""
        if x.node is not None:
            return x.node
        number = id(x._array)
        is_result = not x._requires_grad and number in self._unrecorded
        return number if is_result else (x, x._time)

    def _new_inputs(self, t: Tensor) -> tuple[Tensor, ...]:
        return tuple([z for z in _inputs(t) if self._key(z) not in self._numbers])

    def _add(self, key: Any, made: Vertex, time: int) -> None:
        self.met.append(made)
        self._times.append(time)
        self._numbers[key] = made.number

    def _forget(self, number: int) -> Callable[[Any], None]:
        """What is called when an unrecorded array is freed."""

        def forget(_: Any) -> None:
            self._unrecorded.pop(number, None)
            self._numbers.pop(number, None)

        return forget


def _inputs(t: Tensor) -> tuple[Tensor, ...]:
    """What t was made from, if no pass has dropped it."""
    return () if t.node is None else t.node.inputs  # (none when a pass has dropped them)
