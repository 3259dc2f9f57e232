"""Safety: what could make a record quietly wrong, and how to find the first NaN.

What if a value changes between the forward and the backward pass? The VJP of `w * x` holds the
array of w, and is right only for the values of the forward pass. The arrays of leaves and results
never change (chapter 1.1). What remains is memory that belongs to you: the array of a constant, as
in `Tensor(a)` or `t * a`. You can still write to it, and NumPy gives no signal. The only way to
notice is to compare values, which costs as much as the forward pass. So it is done only for
operations that ran inside `detect_anomaly()`, when the backward pass comes to them. The same mode
finds the first NaN: it names the operation that made it, and the line of your program.

    >>> import numpy as np
    >>> from minigrad import Tensor, detect_anomaly
    >>> x = Tensor([1.0, -1.0], requires_grad=True)
    >>> with detect_anomaly():
    ...     np.log(x)                                                # doctest: +ELLIPSIS
    Traceback (most recent call last):
    FloatingPointError: log of (2,) made a NaN, in ... line ...
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from minigrad.engine.record import WATCHERS, Node, setting
from minigrad.engine.tensor import Array, Tensor, describe

PACKAGE = f"{Path(__file__).parents[1]}{os.sep}"


@contextmanager
def detect_anomaly() -> Iterator[None]:
    """Look at every value that an operation inside computes, and stop at the first wrong one.

    FloatingPointError if an operation makes a NaN, or an infinity from finite inputs, or is given a
    NaN from outside; likewise if the VJP of an operation made inside does so, also when
    `backward()` (chapter 2.2) runs after the block. Operations made before the block are not
    watched. The sentence names the operation, its inputs and the line of your program that called
    it. An infinity that you put there yourself, such as a mask of -∞, is allowed.

    RuntimeError in the backward pass if an array that a VJP holds is not what it was when the
    operation ran, for example a constant that was written to.

    It watches the thread that entered it. It costs a look at every array: up to five times as long
    on small arrays, a few percent where large matrix products dominate. So switch it on to find
    an error, and off to train.

    >>> scale = np.array([2.0])
    >>> x = Tensor([3.0], requires_grad=True)
    >>> with detect_anomaly():
    ...     y = x * scale
    >>> scale *= 10
    >>> y.backward()                                                 # doctest: +ELLIPSIS
    Traceback (most recent call last):
    RuntimeError: multiply cannot be replayed: an array (1,) that its derivative needs was ...
    """

    def look(rule: Callable[..., Any], inputs: tuple[Any, ...], value: Array, node: Any) -> None:
        line = _users_line()
        called = f"{rule.__name__} of {' and '.join(describe(x) for x in inputs)}"
        arrays = [x._array if isinstance(x, Tensor) else np.asarray(x, float) for x in inputs]
        if any(np.isnan(a).any() for a in arrays):
            raise FloatingPointError(f"{called} was given a NaN, {line}")
        made = _broken(value, arrays)
        if made:
            raise FloatingPointError(f"{called} made {made}, {line}")
        if node is not None:
            node.watch = _Watch(called, line, node)

    quiet = np.errstate(divide="ignore", over="ignore", invalid="ignore")  # the error says more
    with setting(WATCHERS, (*WATCHERS.get(), look)), quiet:
        yield


# ---------------------------------------------------- A first reading may stop here.
# What follows: how the watch looks at a node's VJPs, and finds the arrays that they hold.


class _Watch:
    """A note of `detect_anomaly` on a node: where it was made, and its arrays' fingerprints."""

    def __init__(self, called: str, line: str, node: Node) -> None:
        self.name, self.called, self.line = node.name, called, line
        compared = hasattr(node.rule, "compares_its_value")  # by chapter 2.4
        self.prints = [(a, hash(a.tobytes())) for a in ([] if compared else _held(node.vjps))]

    def refuse_changed_arrays(self) -> None:
        """Raise if an array that a VJP holds was changed after the forward pass."""
        for array, before in self.prints:
            if hash(array.tobytes()) != before:
                raise RuntimeError(
                    f"{self.name} cannot be replayed: an array {array.shape} that its derivative "
                    f"needs was changed after the forward pass ({self.line})"
                )

    def refuse_nan(self, i: int, g: Any, contribution: Any) -> None:
        """Raise if the VJP for input i made a NaN, or an infinity, of a g that had none."""
        given = g._array if isinstance(g, Tensor) else g
        array = contribution._array if isinstance(contribution, Tensor) else contribution
        made = _broken(np.asarray(array), [given])
        if made:
            raise FloatingPointError(
                f"the derivative of {self.called} made {made} in the gradient of input {i}; "
                f"the operation was called {self.line}"
            )


def _broken(made: Array, given: list[Array]) -> str:
    """Return 'a NaN' or 'an infinity' if `made` has one and no given array has; otherwise ''."""
    for what, broken in (("a NaN", np.isnan), ("an infinity", np.isinf)):
        if broken(made).any() and not any(broken(a).any() for a in given):
            return what
    return ""


def _held(vjps: Any) -> list[Array]:
    """Return the arrays that VJPs hold: in closures, in defaults, or in objects that they hold.

    Python's garbage collector knows what every object refers to. The global names that a function
    refers to are not its own.
    """
    met: dict[int, Any] = {}  # by their ids, which no other object takes while they are here
    stack = [vjps]
    while stack:
        x = stack.pop()
        if id(x) not in met and not isinstance(x, type | ModuleType | Tensor):
            met[id(x)] = x
            if isinstance(x, FunctionType):
                stack += [x.__closure__, x.__defaults__, x.__kwdefaults__]
            else:
                stack += gc.get_referents(x)
    return [x for x in met.values() if isinstance(x, np.ndarray)]


def _users_line() -> str:
    """Return the innermost line on the call stack that is not this package's own."""
    frame: Any = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    return f"in {frame.f_code.co_filename}, line {frame.f_lineno}"
