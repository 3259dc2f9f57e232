"""1.2 · Record: what an operation leaves behind.

What must an operation remember, so that someone can go back through it later? Which rule ran,
on which inputs, and how to send a gradient back. That is a `Node`. Its `vjps` are that way back:
for each input one VJP, a function of g = ∂L/∂y, the gradient that arrives at the output y, which
gives ∂L/∂input, the gradient that leaves. (VJP is short for vector-Jacobian product; chapter 2.1
says of what.) L is whatever scalar you will differentiate later; a node never needs to know it.

The record has no tape and no owner. It is nothing but these nodes, each held by the tensor that it
describes, and freed with that tensor. Chapter 1.3 makes them; `no_grad` switches that off.

    >>> import numpy as np
    >>> from minigrad import Tensor
    >>> x = Tensor([1.0, 2.0, 3.0], requires_grad=True)
    >>> y = (x * x).sum()               # two nodes: multiply, then sum
    >>> node = y.node.inputs[0].node
    >>> node.name, [vjp(np.ones(3), None) for vjp in node.vjps]     # x, for each of the two uses
    ('multiply', [array([1., 2., 3.]), array([1., 2., 3.])])
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from minigrad.tensor import Array

# Whether operations leave a record. A context variable is private to each thread and each
# asynchronous task, so one thread's no_grad() never silences another's training.
_recording: ContextVar[bool] = ContextVar("recording", default=True)

is_recording = _recording.get
# What was so outside of each no_grad() block that this thread or task is in.
_outside: ContextVar[tuple[bool, ...]] = ContextVar("outside", default=())


@contextmanager
def recording(yes: bool) -> Iterator[None]:
    """Switch the record on or off for what runs inside."""
    token = _recording.set(yes)
    try:
        yield
    finally:
        _recording.reset(token)


class no_grad:
    """Compute without a record: `with no_grad():`, or `@no_grad` above a function.

    Results inside do not require a gradient, and nothing is kept alive for a backward pass. It
    holds for the thread or asynchronous task that entered the block, until the block ends; a
    generator that yields inside the block lets its caller run there too.

    >>> from minigrad import Tensor
    >>> w = Tensor(2.0, requires_grad=True)
    >>> with no_grad():
    ...     (w * w).requires_grad
    False
    """

    def __new__(cls, function: Any = None) -> Any:
        """`@no_grad` and `@no_grad()` are the same decorator."""
        self = super().__new__(cls)
        return self if function is None else self(function)

    def __enter__(self) -> None:
        _outside.set((*_outside.get(), _recording.get()))
        _recording.set(False)

    def __exit__(self, *_: object) -> None:
        *outer, before = _outside.get()
        _outside.set(tuple(outer))
        _recording.set(before)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, computing without a record whenever it is called."""
        if not callable(function):
            raise TypeError(f"no_grad decorates functions: got {type(function).__name__}")
        pauses = (
            inspect.isgeneratorfunction,
            inspect.iscoroutinefunction,
            inspect.isasyncgenfunction,
        )
        if any(kind(function) for kind in pauses):
            raise TypeError(
                f"{function.__name__} pauses in the middle, and no_grad as a decorator would end "
                "before it begins: write `with no_grad():` inside it"
            )

        @functools.wraps(function)
        def without_record(*args: Any, **options: Any) -> Any:
            with recording(False):
                return function(*args, **options)

        return without_record


# Functions that look at each operation when it is done (chapter 1.5); almost always none.
WATCHERS: list[Callable[[Callable[..., Any], tuple[Any, ...], Array, Any], None]] = []


def watched(rule: Callable[..., Any], inputs: tuple[Any, ...], value: Array, node: Any) -> None:
    """Show an operation to all who watch; one of them may leave while we go round."""
    for look in list(WATCHERS):
        look(rule, inputs, value, node)


class Node:
    """The record of one operation: the rule, its inputs and options, one VJP for each input.

    `inputs` holds Tensors, and plain arrays for constants. The node does not hold its own
    output: the output holds the node. References then point only from results to what they
    were made of, never round in a circle, and Python frees a graph with its last result.

    `made` is when, by the clock of writes (chapter 1.5).
    `vjps` is a tuple, one for each input, or the one `backward` of a fused rule. `spent` is None
    until a backward pass has replayed the node and let its inputs go; then it is that pass, so
    that an error about a second pass can say what happened to the first. `watch` is what
    `detect_anomaly` noted when the node was made (chapter 1.5).
    """

    __slots__ = ("inputs", "made", "options", "rule", "spent", "vjps", "watch")

    def __init__(
        self,
        rule: Callable[..., Any],
        inputs: tuple[Any, ...],
        options: dict[str, Any],
        vjps: Any,
        made: int,
    ) -> None:
        self.rule = rule
        self.inputs = inputs
        self.options = options
        self.vjps = vjps
        self.made = made  # by the clock of writes (chapter 1.1)
        self.spent: Any = None
        self.watch: Any = None

    @property
    def name(self) -> str:
        """The operation's name, as NumPy spells it where NumPy has it."""
        return self.rule.__name__.strip("_")
