"""1.5 · Safety: what could make a record quietly wrong, and how to find the first NaN.

What if a value changes between the forward and the backward pass? A record is a promise about
arrays: "with these values, the derivative is this". The VJP of `w * x` holds the array of w. If a
step of training overwrote that array, the VJP would multiply by values that the forward pass never
saw. No NaN would appear, training would go on, and every gradient would be a little wrong.

That cannot happen to a leaf or to a result, because their arrays never change (chapter 1.1): the
step gives w another array, and the VJP keeps the old one.

    >>> import numpy as np
    >>> from minigrad import Tensor, detect_anomaly
    >>> w = Tensor([2.0], requires_grad=True)
    >>> loss = (w * w).sum()
    >>> w.data = w.data - 1.0
    >>> loss.backward()
    >>> w.grad                                      # 2w, at the w of the forward pass
    array([4.])

One case needs a check. With `create_graph=True` rules are called again, on the *present* values of
their inputs. If a leaf has been given another array since then, its time is later than the
result's (chapter 2.1), and that pass is an error.

What remains is memory that belongs to you: the array of a constant, `Tensor(a)` or the `a` in
`t * a`. You can still write to it, and NumPy gives no signal. The only way to notice is to compare
values, which costs as much as the forward pass. So it is done only for operations that ran inside
`detect_anomaly()`, when the backward pass comes to them. The same mode answers the other question
of a bad day: which operation, on which line of my program, made the first NaN?

    >>> x = Tensor([1.0, -1.0], requires_grad=True)
    >>> with detect_anomaly():
    ...     np.log(x)                                                # doctest: +ELLIPSIS
    Traceback (most recent call last):
    FloatingPointError: log of (2,) made a NaN, in ... line ...
"""

from __future__ import annotations

import functools
import gc
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from minigrad.engine.record import WATCHERS, Node
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
    thread = threading.get_ident()

    def look(rule: Callable[..., Any], inputs: tuple[Any, ...], value: Array, node: Any) -> None:
        if threading.get_ident() != thread:
            return
        line = _users_line()
        called = f"{rule.__name__} of {' and '.join(describe(x) for x in inputs)}"
        arrays = [x._array if isinstance(x, Tensor) else np.asarray(x) for x in inputs]
        if any(_has_nan(a) for a in arrays):
            raise FloatingPointError(f"{called} was given a NaN, {line}")
        if _has_nan(value):
            raise FloatingPointError(f"{called} made a NaN, {line}")
        if not _is_finite(value) and all(_is_finite(a) for a in arrays):
            raise FloatingPointError(f"{called} made an infinity, {line}")
        if node is not None:
            node.watch = _Watch(called, line, node)

    WATCHERS.append(look)
    try:
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):  # the error says more
            yield
    finally:
        WATCHERS.remove(look)


# ---------------------------------------------------- A first reading may stop here.
# What follows: how the watch looks at a node's VJPs, and finds the arrays that they hold.


class _Watch:
    """What `detect_anomaly` notes with a node: where it was made, and its arrays' fingerprints."""

    def __init__(self, called: str, line: str, node: Node) -> None:
        self.rule, self.name, self.called, self.line = node.rule, node.name, called, line
        vjps = node.vjps if isinstance(node.vjps, tuple) else (node.vjps,) * len(node.inputs)
        if hasattr(node.rule, "compares_its_value"):  # chapter 2.4
            vjps = (None,) * len(node.inputs)
        self.prints = [[(a, _fingerprint(a)) for a in _held(vjp)] for vjp in vjps]

    def over(self, vjps: Sequence[Any]) -> list[Any]:
        """The VJPs, each looked at before and after it is asked."""
        return [vjp and functools.partial(self._asked, i, vjp) for i, vjp in enumerate(vjps)]

    def refuse_changed_arrays(self, i: int) -> None:
        """Raise if an array that VJP i holds is not what it was."""
        for array, before in self.prints[i]:
            if _fingerprint(array) != before:
                raise RuntimeError(
                    f"{self.name} cannot be replayed: an array {array.shape} that its derivative "
                    f"needs was changed after the forward pass ({self.line})"
                )

    def _asked(self, i: int, vjp: Callable[..., Any], g: Any, y: Any) -> Any:
        if not hasattr(self.rule, "definition"):  # (a fused rule's arrays were compared at once)
            self.refuse_changed_arrays(i)
        contribution = vjp(g, y)
        given, made = (
            x._array if isinstance(x, Tensor) else np.asarray(x) for x in (g, contribution)
        )
        for what, right in (("a NaN", lambda x: not _has_nan(x)), ("an infinity", _is_finite)):
            if right(given) and not right(made):
                raise FloatingPointError(
                    f"the derivative of {self.called} made {what} in the gradient of input {i}; "
                    f"the operation was called {self.line}"
                )
        return contribution


def _held(vjp: Any) -> list[Array]:
    """The arrays that a VJP holds, in its closure, its defaults, or in objects that it holds.

    Python's garbage collector knows what every object refers to. Two things that a function refers
    to are not its own: the global and the built-in names.
    """
    arrays: list[Array] = []
    met: dict[int, Any] = {}
    stack = [vjp]
    while stack:
        x = stack.pop()
        if isinstance(x, np.ndarray):
            arrays.append(x)
        elif id(x) not in met and not isinstance(x, type | ModuleType | Tensor):
            met[id(x)] = x  # (kept, so that no other object takes its id)
            if isinstance(x, FunctionType):
                f: Any = x
                met |= {id(f.__globals__): f.__globals__, id(f.__builtins__): f.__builtins__}
            stack += gc.get_referents(x)
    return arrays


def _users_line() -> str:
    """The innermost line on the call stack that is not this package's own."""
    frame: Any = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    return f"in {frame.f_code.co_filename}, line {frame.f_lineno}"


def _has_nan(a: Array) -> bool:
    return a.dtype.kind == "f" and bool(np.isnan(a).any())


def _is_finite(a: Array) -> bool:
    return a.dtype.kind != "f" or bool(np.isfinite(a).all())


def _fingerprint(a: Array) -> int:
    return hash(a.tobytes())
