"""5.14 · Steps: everything that happens in a pass, in order, as data.

What would you see if you could watch a network forwards, and then backwards, one operation at a
time? `Steps` notes each operation as it is computed: which layer called it, on which line, on what,
and with which result. Then `steps.backward(loss)` sends the gradient back, and notes every
contribution in the order in which it arrives (chapter 2.1): what the tensor had received before,
what comes, and the sum. It is the engine's own pass, so its gradients are those of `backward()`, to
the last bit. Only `.grad` is not written, and the record is kept.

    >>> from minigrad import Steps, Tensor
    >>> x = Tensor([1.0, 2.0], requires_grad=True, name="x")
    >>> with Steps() as steps:
    ...     square = x * x
    ...     loss = square.sum()
    >>> found = steps.backward(loss)
    >>> found[x], x.grad
    (array([2., 4.]), None)
    >>> print(steps)                                                     # doctest: +ELLIPSIS
    forward
        1. square = multiply(x, x)  (2,)  [1, 4]  <doctest ...>, line 2
        2. loss = sum(square)  ()  5  <doctest ...>, line 3
    backward
        1. loss receives 1
        2. loss → square: [1, 1]
        3. square → x, input 0, first of two: [1, 2]
        4. square → x, input 1, second of two: [1, 2] + [1, 2] = [2, 4]

`Steps(net)` knows the layers of net, and `graph(loss, steps=steps)` draws them as frames
(chapter 5.11).

What counts as a step:

- An operation under `no_grad` is a step without a record, and sends nothing back.
- A fused operation is one step. Its contributions come in the order of its inputs. (Under
  `unfused()` its definition's operations are the steps.)
- `recompute` is one step, and what it runs again is not a step.
- The operations of a backward pass with `create_graph=True` are steps in the scope ∂.
- A weight that is used in several places is one leaf. A leaf that is given another array in the
  block is a leaf for each of its arrays.
- A module that is called twice has the scopes block#1 and block#2. What a layer computes in another
  method than `__call__`, or in a decorator around it, belongs to its caller. (A `__call__` whose
  `self` is given another value in its body is not seen.)
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from minigrad.engine.autograd import check_root, check_seed
from minigrad.engine.record import WATCHERS
from minigrad.engine.replay import Sent
from minigrad.engine.replay import replay as send_back
from minigrad.engine.tensor import Array, Tensor
from minigrad.graphs.calls import Calls
from minigrad.graphs.drawing import Graph, drawn_gradients
from minigrad.graphs.model import Vertex
from minigrad.graphs.scale import Limits, checked_limits, limits_around
from minigrad.graphs.stepping import check_words, page, table
from minigrad.graphs.summary import Summary
from minigrad.graphs.text import backward_lines, forward_lines
from minigrad.graphs.vertices import Vertices
from minigrad.runs.saving import write_whole


@dataclass(frozen=True)
class Contribution:
    """What one tensor sends to another in the backward pass.

    source, target   the vertices' numbers; the seed, which starts the pass, has no source
    position         which input of the source's operation the target is
    before           what the target had received; None if this is the first contribution
    contribution     what the VJP of that input gave
    after            before + contribution
    nth, of          which contribution to the target this is, and of how many
    """

    source: int | None
    target: int
    position: int
    before: Summary | None
    contribution: Summary
    after: Summary
    nth: int
    of: int


class Steps:
    """What a forward and a backward pass do, in order: `with Steps(net) as steps: …`.

    `net` is the Module whose layers are to be named; without it no step has a layer. The operations
    of the thread that entered the block are noted until the block ends, also by an exception. A
    step costs 20 to 80 microseconds, the more the more functions are being called, and a summary of
    the result (chapter 5.1). Steps keep the record alive, and so all that it holds, until they are
    freed; and until the block ends also the variables of layers that were called in it.

    vertices       every tensor that was met: leaves, constants, and the results of operations, as
                   `Vertex` (chapter 5.2), each after those that it was computed from
    contributions  after `backward`, in the order in which they arrived
    """

    def __init__(self, net: Any = None) -> None:
        if net is not None and not hasattr(net, "named_modules"):
            raise TypeError(f"Steps(net) takes a Module: got {type(net).__name__}")
        self._net = net
        self._vertices = Vertices()
        self._where: dict[int, Any] = {}  # a vertex's number: the layers that were called
        self._calls: Calls | None = None
        self._classes: dict[str, str] = {}
        self._entered = False
        self.contributions: tuple[Contribution, ...] = ()

    def __enter__(self) -> Self:
        if self._entered:
            raise RuntimeError("these Steps have noted a pass already: make new ones")
        self._entered = True
        modules = dict(self._net.named_modules()) if self._net is not None else {}
        parameters = self._net.named_parameters() if self._net is not None else ()
        self._vertices.names = {leaf: name for name, leaf in parameters}
        self._calls = Calls(modules, sys._getframe(1))
        self._classes = self._calls.kinds
        self._token = WATCHERS.set((*WATCHERS.get(), self._noted))
        return self

    def _noted(
        self, rule: Callable[..., Any], inputs: tuple[Any, ...], value: Array, node: Any
    ) -> None:
        """Note an operation; it has just been computed, and its Tensor is not made yet."""
        assert self._calls is not None
        call = self._calls.now(sys._getframe(1))
        if call is None:
            return
        tensors = node.inputs if node is not None else inputs
        number = self._vertices.computed(rule, tensors, value, node, call.line)
        self._where[number] = call.modules
        self._name(self._calls.ended(call, number))

    def _name(self, ended: list[tuple[str, Any, int]]) -> None:
        """Give names to results: those that are variables of lines that computed them."""
        for name, value, first in ended:
            number = self._vertices.number_of_result(value)
            if number is not None and number >= first and not self._vertices.met[number].named:
                self._vertices.change(number, title=name, named=True)

    def __exit__(self, *_: object) -> None:
        calls, where = self._calls, self._where
        try:
            assert calls is not None
            self._name(calls.ended(None, 0))
            for number, modules in where.items():
                self._vertices.change(number, modules=calls.scopes(modules))
        finally:  # also after Ctrl-C
            self._stop()

    @property
    def vertices(self) -> tuple[Vertex, ...]:
        """Every tensor that was met. Layers are known when the block has ended."""
        return tuple(self._vertices.met)

    def backward(self, loss: Tensor, gradient: Any = None) -> dict[Tensor, Array]:
        """Send the gradient back from `loss`, noting every contribution; the leaves' gradients.

        Arguments and errors are those of `loss.backward`, but no `.grad` is written, and the record
        is kept. What was computed outside of the block is noted without a line.
        """
        check_root(loss, "steps.backward()")
        seed = check_seed(loss, gradient, "steps.backward()")
        sent_to: Counter[int] = Counter()
        noted: list[Contribution] = []

        def note(source: int | None, target: int, i: int, *arrays: Array | None) -> None:
            sent_to[target] += 1
            before, contribution, after = (
                None if a is None else Summary.of(np.asarray(a)) for a in arrays
            )
            assert contribution is not None and after is not None
            nth = sent_to[target]
            noted.append(Contribution(source, target, i, before, contribution, after, nth, 0))

        def observe(t: Tensor, sent: Sent, gradients: dict[Tensor, Any]) -> Sent:
            source = self._vertices.number_of(t)
            for x, i, contribution in sent:
                before = gradients.get(x)
                yield x, i, contribution
                # (The vertex of x, if x is a leaf that was given another array meanwhile, is the
                # one that the operation used.)
                target = self._vertices.met[source].inputs[i]
                note(source, target, i, before, contribution, gradients[x])

        note(None, self._vertices.number_of(loss), 0, None, seed, seed)
        found = send_back(loss, seed, retain_graph=True, observe=observe)
        self.contributions = tuple([replace(c, of=sent_to[c.target]) for c in noted])
        for v in self.vertices:
            self._vertices.change(v.number, gradient=None)
        for c in self.contributions:
            self._vertices.change(c.target, gradient=c.after)
        return {x: np.array(g) for x, g in found.items()}

    def __str__(self) -> str:
        """Both passes, a line for each operation and for each contribution."""
        lines = ["forward", *forward_lines(self.vertices)]
        if self.contributions:
            lines += ["backward", *backward_lines(self.vertices, self.contributions)]
        return "\n".join(lines)

    # ------------------------------------------------ A first reading may stop here.
    # What follows: what chapter 5.11 asks for, the page, data for JSON, and the end of a block.

    def behind(
        self, y: Tensor, gradients: Mapping[Tensor, Any], names: Mapping[Tensor, str]
    ) -> list[Vertex]:
        """The vertices behind y, numbered anew, with gradients and more names: for chapter 5.11."""
        return self._vertices.behind(y, gradients, names)

    def save(
        self,
        path: str | Path,
        *,
        beside: Steps | None = None,
        titles: tuple[str, str] = ("", ""),
        title: str = "Both passes, step by step",
        limits: Limits | None = None,
    ) -> Path:
        """Write a page (.html) on which a reader walks through both passes (chapter 5.10).

        beside   Steps of a second pass that did the same on other numbers, to be shown beside
                 these, on one slider and one scale of colours; `titles` are the names of the two
        limits   the gradients at the ends of the scale

        The file is written whole or not at all. ValueError for another ending, for steps that noted
        no operation, for passes that did not do the same, and for more than 5,000 operations.
        """
        path = Path(path)
        if path.suffix.lower() != ".html":
            raise ValueError(f"steps are saved as .html: {path.name!r} is not")
        if not isinstance(titles, tuple | list) or len(titles) != 2:
            raise ValueError(f"titles must be two texts, one for each pass: got {titles!r:.60}")
        check_words(title, titles)
        ends = checked_limits(limits)
        both = [self] if beside is None else [self, beside]
        if not all(any(v.operation for v in each.vertices) for each in both):
            raise ValueError("there is nothing to save: these Steps have noted no operation")
        drawings = [Graph(each.vertices, None) for each in both]
        found = [g for drawing in drawings for g in drawn_gradients(drawing)]
        known = any(g is not None for g in found)
        scale = ends if ends or not known else limits_around(found)
        static = "".join(
            f'<div class="static">{drawing.with_limits(scale).inline()}</div>'
            f'<div class="static">{table(drawing.vertices)}</div>'
            for drawing in drawings
        )
        passes = [(t, s.vertices, s.contributions) for t, s in zip(titles, both, strict=False)]
        text = page(passes, title=title, limits=scale, steps=True, static=static)
        return write_whole(path, text)

    def __repr__(self) -> str:
        count = Counter(v.kind for v in self.vertices)
        done = count["operation"] + count["unrecorded"]
        return f"Steps({done} operations, {len(self.contributions)} contributions)"

    def data(self) -> dict[str, Any]:
        """The same as numbers, text, lists and dicts, for JSON: without a path of this machine."""
        return {
            "vertices": [v.data() for v in self.vertices],
            "classes": self._classes,
            "contributions": [
                {name: x.data() if isinstance(x, Summary) else x for name, x in vars(c).items()}
                for c in self.contributions
            ],
        }

    def _stop(self) -> None:
        """Watch no longer, and let go of stack frames, which hold all that their functions held."""
        WATCHERS.reset(self._token)
        self._calls, self._where, self._net = None, {}, None
        self._vertices.forget_arrays()
