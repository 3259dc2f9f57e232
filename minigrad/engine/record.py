"""1.2 · Record: what an operation stores.

In chapter 0: `return Value(value, inputs, vjps)`.

What must an operation remember, so that a gradient can later be sent back through it? Which rule
ran (the formula and its derivatives, chapter 1.3), on which inputs, and how to go back. That is a
`Node`. Its `vjps` are the way back: for each input one VJP, a function that is given g = ∂L/∂y, the
gradient that arrives at the output y, and returns ∂L/∂input, the gradient that leaves. It is given
y too, because some derivatives are shortest when they are written with y: for y = exp(x), ∂y/∂x is
y. A node does not need to know L: g is all that a rule needs of it.

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

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from minigrad.engine.tensor import Array, Tensor


class Node:
    """One entry of the record: an operation's rule, inputs and options, and a VJP for each input.

    `inputs` are Tensors; a number or an array became a constant one.

    The node does not hold its own output: the output holds the node. References then lead only
    from results to what they were made of, never in a circle, and Python frees a record as soon as
    its last result is gone. A backward pass drops the node's inputs as soon as it is done with
    them.
    """

    __slots__ = ("inputs", "options", "rule", "spent", "vjps", "watch")

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
        self.spent: Any = None  # (explained below the reading line, with `watch`)
        self.watch: Any = None

    @property
    def name(self) -> str:
        """The operation's name, as NumPy spells it where NumPy has it."""
        return self.rule.__name__


class no_grad:
    """Compute without a record: `with no_grad():`, or `@no_grad` above a function.

    Results inside do not require a gradient, and nothing is kept alive for a backward pass. This
    holds for the thread or asynchronous task that entered the block, until the block ends.

    >>> from minigrad import Tensor
    >>> w = Tensor(2.0, requires_grad=True)
    >>> with no_grad():
    ...     (w * w).requires_grad
    False
    """

    # ------------------------------------------------ A first reading may stop here.
    # What follows makes no_grad right in threads, tasks and generators, and as a decorator. If a
    # generator yields inside a block, its caller too runs without a record until the block ends.
    # Ctrl-C in the very instant in which a block ends can leave the record off.
    #
    # And three things of a `Node` that the lesson left out. A fused rule (chapter 1.3) has in
    # `vjps` one function `backward(g, y, needs)` in place of the tuple. `spent` is None until a
    # backward pass drops the node's inputs. Then it is an object for that pass, whose `finished`
    # says whether the pass reached its end. `watch` is what `detect_anomaly` noted when the node
    # was made (chapter 2.5).

    def __new__(cls, function: Any = None) -> Any:
        """`@no_grad` and `@no_grad()` are the same decorator."""
        self = super().__new__(cls)
        self._open = []
        return self if function is None else self(function)

    _open: list[_Pause]  # the blocks that were entered with this object, and have not ended

    def __enter__(self) -> None:
        pause = [object()]
        self._open.append(pause)
        try:
            _pauses.set((*filter(None, _pauses.get()), pause))
        except BaseException:  # Ctrl-C
            pause.clear()
            raise

    def __exit__(self, *_: object) -> None:
        pause: _Pause | None = None
        try:
            pause = self._innermost()
        finally:  # also after Ctrl-C
            (self._innermost() if pause is None else pause).clear()
        self._open.remove(pause)
        _pauses.set(tuple(filter(None, _pauses.get())))

    def _innermost(self) -> _Pause:
        """The pause that ends first. It is one of another thread's only if a generator is closed by
        a thread that never entered its block.
        """
        still_open = [pause for pause in tuple(self._open) if pause]
        around = _pauses.get()
        return ([pause for pause in still_open if pause in around] or still_open)[-1]

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, computing without a record whenever it is called."""
        if not callable(function):
            raise TypeError(f"no_grad decorates functions: got {type(function).__name__}")
        kinds = ("generatorfunction", "coroutinefunction", "asyncgenfunction")
        asks = [getattr(inspect, f"is{kind}") for kind in kinds]
        if any(ask(function) or ask(type(function).__call__) for ask in asks):
            name = getattr(function, "__name__", repr(function))
            raise TypeError(
                f"{name} pauses in the middle, and no_grad as a decorator would end before its "
                "body runs: write `with no_grad():` inside it"
            )

        @functools.wraps(function)
        def without_record(*args: Any, **options: Any) -> Any:
            token = _pauses.set((*_pauses.get(), [function]))
            try:
                return function(*args, **options)
            finally:
                _pauses.reset(token)

        return without_record


# One list for each no_grad() block that was entered. It holds one object while the block runs, and
# is emptied when the block ends. (A list and not a boolean, because a generator that was begun in
# the block may run on after the block has ended, and must then see that it has.)
_Pause = list[object]

# The no_grad() blocks around what runs now. A context variable is private to each thread and each
# asynchronous task: no_grad() in one thread does not stop another from recording.
_pauses: ContextVar[tuple[_Pause, ...]] = ContextVar("pauses", default=())


def is_recording() -> bool:
    """Return whether operations leave a node now: outside of no_grad() blocks."""
    return not any(_pauses.get())


@contextmanager
def recording() -> Iterator[None]:
    """Leave a record inside, whatever no_grad() blocks there are around."""
    token = _pauses.set(())
    try:
        yield
    finally:
        _pauses.reset(token)


# Functions that look at each operation when it is done (chapter 2.5); almost always none.
WATCHERS: list[Callable[[Callable[..., Any], tuple[Any, ...], Array, Any], None]] = []


def watched(rule: Callable[..., Any], inputs: tuple[Any, ...], value: Array, node: Any) -> None:
    """Show an operation to all who watch."""
    for look in list(WATCHERS):  # a copy, since a watcher may remove itself
        look(rule, inputs, value, node)
