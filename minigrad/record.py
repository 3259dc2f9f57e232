"""1.2 · Record: what an operation leaves behind.

What must an operation remember, so that a gradient can later be sent back through it? Which rule
ran, on which inputs, and how to go back. That is a `Node`. Its `vjps` are the way back: for each
input one VJP, a function of g = ∂L/∂y, the gradient that arrives at the output y, which gives
∂L/∂input, the gradient that leaves. (VJP is short for vector-Jacobian product; chapter 2.1 says of
what.) A node does not need to know L: g contains all that matters about it.

The record is nothing but these nodes. Each is held by the tensor that it describes, and is freed
with that tensor. Chapter 1.3 makes them; under `no_grad` it makes none.

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
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from minigrad.tensor import Array, Tensor


class Node:
    """The record of one operation: its rule, its inputs and options, and one VJP for each input.

    `inputs` are Tensors; a number or an array became a constant one. `vjps` is a tuple, or the one
    function `backward` of a fused rule (chapter 1.3).

    The node does not hold its own output: the output holds the node. References then lead only
    from results to what they were made of, never in a circle, and Python frees a record with the
    last result of it.

    `spent` is None until a backward pass has gone through the node and has let its inputs go; then
    it is that pass, so that an error about a second pass can say how the first one ended. `watch`
    is what `detect_anomaly` noted when the node was made (chapter 1.5).
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
        self.spent: Any = None
        self.watch: Any = None

    @property
    def name(self) -> str:
        """The operation's name, as NumPy spells it where NumPy has it."""
        return self.rule.__name__


class no_grad:
    """Compute without a record: `with no_grad():`, or `@no_grad` above a function.

    Results inside do not require a gradient, and nothing is kept alive for a backward pass. This
    holds for the thread or asynchronous task that entered the block, until the block ends. If a
    generator yields inside the block, its caller runs without a record too until the generator
    goes on. (Ctrl-C in the very instant in which a block ends can leave the record off.)

    >>> from minigrad import Tensor
    >>> w = Tensor(2.0, requires_grad=True)
    >>> with no_grad():
    ...     (w * w).requires_grad
    False
    """

    # ------------------------------------------------ A first reading may stop here.
    # What follows makes no_grad right in threads, tasks, generators and as a decorator.

    def __new__(cls, function: Any = None) -> Any:
        """`@no_grad` and `@no_grad()` are the same decorator."""
        self = super().__new__(cls)
        self._open = []
        return self if function is None else self(function)

    _open: list[_Pause]  # the blocks that were entered with this object, and have not ended

    def __enter__(self) -> None:
        pause = [object()]
        self._open.append(pause)
        _pauses.set((*filter(None, _pauses.get()), pause))

    def __exit__(self, *_: object) -> None:
        around = _pauses.get()
        mine = [pause for pause in self._open if pause in around]
        pause = mine[-1] if mine else self._open[-1]
        if mine:
            _pauses.set(tuple([other for other in around if other and other is not pause]))
        else:  # a generator was closed by a thread that never entered its block
            pause.clear()
        self._open.remove(pause)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, computing without a record whenever it is called."""
        if not callable(function):
            raise TypeError(f"no_grad decorates functions: got {type(function).__name__}")
        kinds = ("generatorfunction", "coroutinefunction", "asyncgenfunction")
        if any(getattr(inspect, f"is{kind}")(function) for kind in kinds):
            raise TypeError(
                f"{function.__name__} pauses in the middle, and no_grad as a decorator would end "
                "before it begins: write `with no_grad():` inside it"
            )

        @functools.wraps(function)
        def without_record(*args: Any, **options: Any) -> Any:
            with no_grad():
                return function(*args, **options)

        return without_record


# One entry into a no_grad() block: a list with one object, which is taken out where another thread
# ends the block. So `any(pauses)` tells whether there is a block that has not ended.
_Pause = list[object]

# The no_grad() blocks around what runs now, the innermost last. A context variable is private to
# each thread and each asynchronous task: a thread's no_grad() does not silence another's training.
_pauses: ContextVar[tuple[_Pause, ...]] = ContextVar("pauses", default=())


def is_recording() -> bool:
    """Whether operations on what requires a gradient leave a node."""
    return not any(_pauses.get())


@contextmanager
def recording() -> Iterator[None]:
    """Leave a record inside, whatever no_grad() blocks there are around."""
    token = _pauses.set(())
    try:
        yield
    finally:
        _pauses.reset(token)


# Functions that look at each operation when it is done (chapter 1.5); almost always none.
WATCHERS: list[Callable[[Callable[..., Any], tuple[Any, ...], Array, Any], None]] = []


def watched(rule: Callable[..., Any], inputs: tuple[Any, ...], value: Array, node: Any) -> None:
    """Show an operation to all who watch."""
    for look in list(WATCHERS):  # a copy, since a watcher may remove itself
        look(rule, inputs, value, node)
