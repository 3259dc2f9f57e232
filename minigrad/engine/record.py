"""1.2 · Record: what an operation stores.

In chapter 0: `return Value(value, inputs, vjps)`.

What must an operation remember, so that a gradient can later be sent back through it? Which rule
ran (the formula and its derivatives, chapter 1.3), on which inputs, and how to go back. That is a
`Node`. Its `vjps` are the way back: for each input one VJP, a function that is given g = ∂L/∂y, the
gradient that arrives at the output y, and returns ∂L/∂input, the gradient that leaves. All that a
VJP has to know about L is g. It is given y too, for two reasons. Some derivatives are shortest when
they are written with y: for y = exp(x), ∂y/∂x is y. And a VJP that held y itself would keep y in
memory.

The record is nothing but these nodes. Each tensor holds the node that describes how it was made,
and the node is freed with that tensor. Chapter 1.3 makes a node for each operation with an
input that requires a gradient. Inside a `no_grad` block it makes none.

    >>> import numpy as np
    >>> from minigrad import Tensor
    >>> x = Tensor([1.0, 2.0, 3.0], requires_grad=True)
    >>> y = (x * x).sum()               # two nodes: multiply, then sum
    >>> product = y.node.inputs[0]
    >>> g = np.ones(3)                  # what `sum` sends back: each element has the slope 1
    >>> [vjp(g, product.data) for vjp in product.node.vjps]             # g · x, for either factor
    [array([1., 2., 3.]), array([1., 2., 3.])]
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from minigrad.engine.freeing import FreedInALoop

if TYPE_CHECKING:
    from minigrad.engine.tensor import Array, Tensor


class Node(FreedInALoop):
    """One entry of the record: an operation's rule, inputs and options, and a VJP for each input.

    `inputs` are Tensors; a number or an array became a constant one.

    The node does not hold its own output: the output holds the node. References then lead only
    from results to what they were made of, never in a circle, and Python frees a record as soon as
    its last result is gone. A backward pass drops the node's inputs as soon as it is done with
    them.
    """

    __slots__ = ("options", "rule", "vjps", "watch")  # (and `inputs` and `spent`)

    def __init__(
        self,
        rule: Callable[..., Any],
        inputs: tuple[Tensor, ...],
        options: dict[str, Any],
        vjps: Any,
    ) -> None:
        self.rule = rule
        self.inputs = inputs
        self.options = options
        self.vjps = vjps
        self.spent = False  # (explained below, with `watch`)
        self.watch: Any = None

    @property
    def name(self) -> str:
        """The operation's name, as NumPy spells it where NumPy has it."""
        return self.rule.__name__


def no_grad(function: Any = None) -> Any:
    """Compute without a record: `with no_grad():`, or `@no_grad` above a function.

    Results inside do not require a gradient, and nothing is kept alive for a backward pass. This
    holds for the thread or asynchronous task that entered the block, until the block ends.

    >>> from minigrad import Tensor
    >>> w = Tensor(2.0, requires_grad=True)
    >>> with no_grad():
    ...     (w * w).requires_grad
    False
    """
    if function is None:
        return setting(_recording, False)
    asks = inspect.isgeneratorfunction, inspect.iscoroutinefunction, inspect.isasyncgenfunction
    if any(ask(function) for ask in asks):
        raise TypeError(
            f"{getattr(function, '__name__', function)} pauses in the middle, and no_grad as a "
            "decorator would end before its body runs: write `with no_grad():` inside it"
        )
    return setting(_recording, False)(function)


# ---------------------------------------------------- A first reading may stop here.
# What follows: whether operations are recorded now, and who looks at each of them.
#
# And three things of a `Node` that the lesson left out. A fused rule (chapter 1.3) has in `vjps`
# one function `backward(g, y, needs)` in place of the tuple. `spent` is True when a backward pass
# has dropped the node's inputs. `watch` is what `detect_anomaly` noted when the node was made.

# A context variable is private to each thread and each asynchronous task: no_grad() in one thread
# does not stop another from recording. It is not private to a generator: one that pauses at a
# `yield` inside `with no_grad():` leaves recording off in its caller until it goes on, as in
# PyTorch. (And Ctrl-C in the very instant in which a block ends can leave recording off: start
# again.)
_recording: ContextVar[bool] = ContextVar("recording", default=True)


@contextmanager
def setting(variable: ContextVar[Any], value: Any) -> Iterator[None]:
    """Give a context variable another value until the block ends."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def is_recording() -> bool:
    """Return whether operations are recorded now, as they are outside of no_grad() blocks."""
    return _recording.get()


def recording() -> AbstractContextManager[None]:
    """Record the operations inside the block, even if it is within no_grad() blocks."""
    return setting(_recording, True)


# Functions that look at each operation when it is done: those of `Steps` and `detect_anomaly`.
Watcher = Callable[[Callable[..., Any], tuple[Any, ...], "Array", Any], None]
WATCHERS: ContextVar[tuple[Watcher, ...]] = ContextVar("watchers", default=())

# The same for a whole backward pass: a block for it to run in, made from its root and its seed. The
# block gives an observer (chapter 2.1); outside of `Steps` it does nothing.
Passes = Callable[["Tensor", "Array"], AbstractContextManager[Any]]
PASSES: ContextVar[Passes] = ContextVar("passes", default=lambda *_: nullcontext())

# Makes the block in which `recompute` (chapter 2.4) runs its function again: it puts back what the
# function found in its first run.
AGAIN: ContextVar[Callable[[], AbstractContextManager[Any]]] = ContextVar(
    "again", default=nullcontext
)
