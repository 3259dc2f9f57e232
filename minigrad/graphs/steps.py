"""Steps: everything that happens in a pass, in order, as data.

`Steps` notes each operation as it is computed: its layer, its line, its inputs and its result. Of
the way back it notes every contribution in the order in which it arrives (chapter 2.1): the
tensor's gradient before it, the contribution itself, and the sum. The pass that is noted is the
first `loss.backward()` in the block. Or, also after the block, `steps.backward(loss)` sends the
gradient back, keeps the record and writes no `.grad`. Both are the engine's own pass.

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
        3. square → x, input 0, 1 of 2: [1, 2]
        4. square → x, input 1, 2 of 2: [1, 2] + [1, 2] = [2, 4]

- An operation under `no_grad` leaves no record and is not a step. Its result is a constant.
- A fused operation is one step. (Under `unfused()` its definition's operations are the steps.)
- `recompute` is one step, and what it runs again is not a step.
- A leaf that is given another array in the block is a leaf for each of its arrays.
- Only the first `backward()` that ends without an error is noted. After a second one, `save`
  refuses.
- A module that is called twice has the scopes block and block#2. What a layer computes in another
  method than `__call__` belongs to its caller.
"""

from __future__ import annotations

import html
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Self
from weakref import ref

import numpy as np

from minigrad.engine.autograd import check_root, check_seed
from minigrad.engine.record import PASSES, WATCHERS
from minigrad.engine.replay import Observer, Sent
from minigrad.engine.replay import replay as send_back
from minigrad.engine.tensor import Array, Tensor
from minigrad.graphs.folding import Drawing
from minigrad.graphs.model import Model, Scope, Vertex, plain
from minigrad.graphs.operations import ours, printable
from minigrad.graphs.page import page
from minigrad.graphs.scale import Limits, limits_around
from minigrad.graphs.summary import Summary
from minigrad.graphs.text import backward_lines, forward_lines
from minigrad.graphs.variable_names import Variable, line_of, named
from minigrad.graphs.worked import Contribution, worked
from minigrad.nn.module import CALLS, Module
from minigrad.runs.saving import write_whole

TITLE = "Both passes, step by step"  # of a page without another


class Steps:
    """The steps of a forward and a backward pass, in order: `with Steps(net) as steps: …`.

    `net` is the Module whose layers are to be named, and drawn as frames by `graph(loss,
    steps=steps)`; without it no step has a layer. The operations of the thread that entered the
    block are noted until the block ends, also by an exception. A step costs some 160 microseconds.
    Steps keep the record alive, and so all that it holds, until they are freed.

    model          the `Model` of all tensors met, from which `graph(y, steps=steps)` draws
    vertices       every tensor that was met: leaves, constants, and the results of operations, as
                   `Vertex`, each after those that it was computed from
    contributions  of the way back that was noted, in the order in which they arrived
    """

    def __init__(self, net: Module | None = None) -> None:
        net = Module() if net is None else net
        self.model = Model({x: name for name, x in net.named_parameters()})
        self.contributions: tuple[Contribution, ...] = ()
        self.root: Tensor | None = None  # where the pass began that was noted, if the seed was 1
        self._passes = 0  # how often `backward()` ran in the block, without an error
        self._running: dict[Variable, int] = {}  # variables of lines that are running
        # By id: the modules and their paths, and the calls and their scopes. All are held until the
        # block ends, so that no other object takes an id.
        self._modules = {id(m): (m, printable(path)) for path, m in net.named_modules()}
        self._calls: dict[int, tuple[Any, Scope]] = {}
        self._count: Counter[str] = Counter()

    def __enter__(self) -> Self:
        if hasattr(self, "_token"):
            raise RuntimeError("these Steps have noted a pass already: make new ones")
        self._outermost = sys._getframe(1)
        self._depth = len(CALLS.running)
        # (An interrupt may hide the end of the block. So the watcher does not keep these Steps.)
        steps = ref(self)

        def look(*operation: Any) -> None:
            noting = steps()
            if noting is not None:
                noting._noted(*operation)

        def back(root: Tensor, seed: Array) -> Any:
            noting = steps()
            return nullcontext() if noting is None else noting._noting(root, seed)

        self._token = WATCHERS.set((*WATCHERS.get(), look))
        self._token_back = PASSES.set(back)
        return self

    def _noted(
        self, rule: Callable[..., Any], inputs: tuple[Any, ...], value: Array, node: Any
    ) -> None:
        """Note an operation; it has just been computed, and its Tensor is not made yet."""
        read = None if node is None else line_of(sys._getframe(2), self._outermost)
        if read is None:
            return
        line, variables = read
        number = self.model.computed(value, node, line)
        calls = [call for call in CALLS.running[self._depth :] if id(call[0]) in self._modules]
        scopes = [scope for scope in map(self._scope_of, calls) if scope.path]
        self.model.change(number, modules=tuple(scopes))
        self._running = named(self._running, number, variables, self.model)

    def _scope_of(self, call: tuple[Module]) -> Scope:
        """Return the scope of a call that is running. (The network's first call has no frame.)"""
        if id(call) not in self._calls:
            path, kind = self._modules[id(call[0])][1], type(call[0]).__name__
            self._count[path] += 1
            again = f"#{self._count[path]}" if self._count[path] > 1 else ""
            self._calls[id(call)] = call, Scope(f"{path or (again and kind)}{again}", kind, again)
        return self._calls[id(call)][1]

    def __exit__(self, *_: object) -> None:
        WATCHERS.reset(self._token)
        PASSES.reset(self._token_back)
        self._running = named(self._running, 0, [], self.model)
        self._calls, self._modules = {}, {}
        del self._outermost

    @property
    def vertices(self) -> tuple[Vertex, ...]:
        """Every tensor that was met."""
        return tuple(self.model.met)

    def backward(self, loss: Tensor, gradient: Any = None) -> dict[Tensor, Array]:
        """Send the gradient back from `loss`; note each contribution; return the leaves' gradients.

        Arguments and errors are those of `loss.backward`, but no `.grad` is written, and the record
        is kept. Operations outside of the block are noted without a line.
        """
        check_root(loss, "steps.backward()")
        seed = check_seed(loss, gradient, "steps.backward()")
        self.root, self.contributions = None, ()
        with self._noting(loss, seed) as observe:
            found = send_back(loss, seed, retain_graph=True, observe=observe)
        self._passes = 0
        return {x: np.array(g) for x, g in found.items()}

    @contextmanager
    def _noting(self, root: Tensor, seed: Array) -> Iterator[Observer]:
        """Give the observer of a pass; keep what the first pass without an error noted."""
        sent_to: Counter[int] = Counter()
        noted: list[Contribution] = []

        def note(
            source: int | None, target: int, i: int, *arrays: Array | None, rows: Any = ()
        ) -> None:
            sent_to[target] += 1
            old, come, now = (None if a is None else Summary.of(np.asarray(a)) for a in arrays)
            assert come is not None and now is not None
            noted.append(Contribution(source, target, i, old, come, now, sent_to[target], 0, rows))

        def observe(t: Tensor, sent: Sent, gradients: dict[Tensor, Any]) -> Sent:
            source, node = self.model.number_of(t), t.node
            g = np.asarray(received.pop(t))
            assert node is not None
            for x, i, contribution in sent:
                before = gradients.get(x)
                yield x, i, contribution
                received[x] = gradients[x]
                # (The vertex of x, if x is a leaf that was given another array meanwhile, is the
                # one that the operation used.)
                target = self.model.met[source].inputs[i]
                inputs = [each.data for each in node.inputs]
                given = (node.options, inputs, t.data, g, i, np.asarray(contribution))
                same = self.model.still(node.inputs, self.model.met[source].inputs)
                rows = worked(node.name, *given) if same and ours(node.rule) else ()
                note(source, target, i, before, contribution, gradients[x], rows=rows)

        note(None, self.model.number_of(root), 0, None, seed, seed)
        received: dict[Tensor, Any] = {root: seed}
        yield observe
        self._passes += 1
        if self.contributions:
            return
        self.root = root if (seed == 1).all() else None
        self.contributions = tuple([replace(c, of=sent_to[c.target]) for c in noted])
        last = {c.target: c.after for c in self.contributions}
        for v in self.vertices:
            self.model.change(v.number, gradient=last.get(v.number))

    def __str__(self) -> str:
        """Return both passes as text, a line for each operation and for each contribution."""
        lines = ["forward", *forward_lines(self.vertices)]
        if self.contributions:
            lines += ["backward", *backward_lines(self.vertices, self.contributions)]
        return "\n".join(lines)

    def __repr__(self) -> str:
        done = sum(bool(v.operation) for v in self.vertices)
        return f"Steps({done} operations, {len(self.contributions)} contributions)"

    def data(self) -> dict[str, Any]:
        """Return the vertices and contributions as numbers, text, lists and dicts, for JSON."""
        return {"vertices": plain(self.vertices), "contributions": plain(self.contributions)}

    def save(
        self,
        path: str | Path,
        *,
        beside: Steps | None = None,
        titles: tuple[str, str] = ("", ""),
        title: str = TITLE,
        at: str | None = None,
        limits: Limits | None = None,
        sources: Mapping[str, str] | None = None,
    ) -> Path:
        """Write a page (.html) on which a reader walks through both passes.

        beside   Steps of a second pass that did the same on other numbers, to be shown beside
                 these, on one track and one scale of colours; `titles` are the names of the two
        at       the name of a result: the page opens where its gradient goes back. By default it
                 opens at the step of which the smallest share of the gradient arrives
        limits   the gradients at the ends of the scale
        sources  the addresses of pages that show files, as {"demos/one.py": "one.html"}: a step's
                 line 12 of this file is a link to one.html#L12

        The file is written whole or not at all. ValueError for another ending, if there was not
        exactly one backward pass, for more than 5,000 operations, and for passes that did not do
        the same.
        """
        path = Path(path)
        if path.suffix.lower() != ".html":
            raise ValueError(f"steps are saved as .html: {path.name!r} is not")
        return write_whole(path, self._page(beside, titles, title, at, limits, sources))

    def _repr_html_(self) -> str | None:
        """Return the page in a frame, which a notebook shows; None where `save` would refuse."""
        with suppress(ValueError):
            return (
                '<iframe sandbox="allow-scripts" style="width: 100%; height: 40rem; border: 0" '
                f'title="{TITLE}" srcdoc="{html.escape(self._page())}"></iframe>'
            )
        return None

    def _page(
        self,
        beside: Steps | None = None,
        titles: tuple[str, str] = ("", ""),
        title: str = TITLE,
        at: str | None = None,
        limits: Limits | None = None,
        sources: Mapping[str, str] | None = None,
    ) -> str:
        both = [self] if beside is None else [self, beside]
        if not all(any(v.operation for v in each.vertices) for each in both):
            raise ValueError("there is nothing to save: these Steps have noted no operation")
        if not any(each.contributions for each in both):
            how = "steps.backward(loss), or loss.backward() inside of the block"
            raise ValueError(f"no backward pass was noted: call {how}")
        ran = max(each._passes for each in both)
        if ran > 1:
            raise ValueError(
                f"a page shows one backward pass, and {ran} ran in the block of these Steps: end "
                "the block after the first"
            )
        if limits is None:
            drawings = [Drawing(each.vertices) for each in both]
            limits = limits_around(g for drawing in drawings for g in drawing.strengths())
        passes = [
            (name, Drawing(each.vertices, limits), each.contributions)
            for name, each in zip(titles, both, strict=False)
        ]
        return page(passes, title=title, steps=True, at=at, sources=sources)
