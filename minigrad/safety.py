"""1.5 · Safety: what would make a record quietly wrong, and who notices.

What if a value changes between the forward and the backward pass? A record is a promise about
arrays: "with these values, the derivative is this". The VJP of `exp(w)` uses the old output and
cannot be hurt. The VJP of `w * x` holds the array of w, and after `w.data -= step` it would
multiply by a w that the forward pass never saw. No NaN appears, training goes on, and every
gradient is a little wrong.

Four things stand against that. (1) Results are read-only. (2) A leaf copies the array it is made
from, which may then change freely. (3) A write through the setter, `w.data -= step`, is noted with
its time. (4) Before the replay each node is asked: was one of my inputs written after I was made,
and does a VJP hold that memory? If so, `backward()` refuses, and names the operation and the
tensor.

What remains are writes that call no setter: to an element, `w.data[0] = 1`, to a view somebody
keeps, or to an array that was handed in as a constant. NumPy does not tell. Only comparing the
values would, and that costs as much as the forward pass itself; so it is done on request, in
`detect_anomaly()`. The same mode answers the other question of a bad day: which operation, on
which line of my program, made the first NaN?

    >>> x = Tensor([1.0, -1.0], requires_grad=True)
    >>> with detect_anomaly():
    ...     np.log(x)                                                # doctest: +ELLIPSIS
    Traceback (most recent call last):
    FloatingPointError: log of (2,) made a NaN, in ... line ...
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from minigrad.record import WATCHERS, Node
from minigrad.tensor import Array, Tensor, describe

PACKAGE = str(Path(__file__).parent)


def refuse_changed_inputs(node: Node, leads: set[int], create_graph: bool) -> None:
    """A derivative that needs an input's old values is wrong once they have been written over.

    A VJP needs them if it holds them, that is, if an array in its closure shares the input's
    memory. With create_graph the rule runs again, on the present values of its inputs: then a
    write matters if the VJPs hold any array at all, whichever memory it is.
    """
    written = [x for x in node.inputs if isinstance(x, Tensor) and max(x._written) > node.made]
    if not written:
        return
    vjps = node.vjps if isinstance(node.vjps, tuple) else (node.vjps,) * len(node.inputs)
    held = _held([vjp for x, vjp in zip(node.inputs, vjps, strict=True) if id(x) in leads])
    for x in written:
        wrote, moved = (time > node.made for time in x._written)
        # If x has moved to other memory too, the write may have been to the old, now out of sight.
        if any(
            create_graph or (wrote and (moved or np.may_share_memory(x._array, array)))
            for array in held
        ):
            raise RuntimeError(
                f"{node.name} cannot be replayed: {describe(x)} was changed after the forward "
                "pass, and the derivative needs its old values; run the forward pass again "
                "after each change"
            )


def _held(vjps: Any) -> list[Any]:
    """The arrays that VJPs hold: in their closures and defaults, and in functions held there."""
    arrays: list[Any] = []
    met: set[int] = set()
    stack = list(vjps)
    while stack:
        x = stack.pop()
        if isinstance(x, np.ndarray):
            arrays.append(x)
        elif id(x) not in met:
            met.add(id(x))
            if isinstance(x, tuple | list | set):
                stack.extend(x)
            elif isinstance(x, dict):
                stack.extend(x.values())
            elif isinstance(x, functools.partial):
                stack.extend((x.func, *x.args, *x.keywords.values()))
            elif isinstance(x, MethodType):
                stack.extend((x.__func__, x.__self__))
            elif isinstance(x, FunctionType):
                stack.extend(_contents(x.__closure__ or ()))
                stack.extend((*(x.__defaults__ or ()), *(x.__kwdefaults__ or {}).values()))
            elif type(x).__module__ not in ("builtins", "numpy"):  # an object that is called
                stack.append(getattr(x, "__dict__", {}))
    return arrays


def _contents(cells: Any) -> Iterator[Any]:
    """What the cells of a closure hold; one whose variable was never set is empty."""
    for cell in cells:
        with suppress(ValueError):
            yield cell.cell_contents


@contextmanager
def detect_anomaly() -> Iterator[None]:
    """Look at every value computed inside, and stop at the first that cannot be right.

    FloatingPointError if an operation makes a NaN, or an infinity from finite inputs, or is
    handed a NaN from outside; likewise if a VJP does so when the operation is replayed. The
    sentence names the operation, its inputs and the line of your program that called it. An
    infinity that you put there yourself, such as a mask of -∞, is let pass.

    RuntimeError at `backward()` if an array that a VJP holds has changed since the operation:
    also a constant, an element written through `.data[0] = …`, a view.

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
        called = f"{rule.__name__.strip('_')} of {' and '.join(describe(x) for x in inputs)}"
        arrays = [x._array if isinstance(x, Tensor) else np.asarray(x) for x in inputs]
        if any(_has_nan(a) for a in arrays):
            raise FloatingPointError(f"{called} was handed a NaN, {line}")
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


class _Watch:
    """What `detect_anomaly` notes with a node: where it was made, and its arrays' fingerprints."""

    def __init__(self, called: str, line: str, node: Node) -> None:
        self.called, self.line = called, line
        vjps = node.vjps if isinstance(node.vjps, tuple) else (node.vjps,) * len(node.inputs)
        self.prints = [[(a, _fingerprint(a)) for a in _held([vjp])] for vjp in vjps]

    def refuse_changed_arrays(self, node: Node, leads: set[int]) -> None:
        """Raise if an array that a needed VJP holds is not what it was."""
        needed = [p for x, p in zip(node.inputs, self.prints, strict=True) if id(x) in leads]
        for array, before in [each for prints in needed for each in prints]:
            if _fingerprint(array) != before:
                raise RuntimeError(
                    f"{node.name} cannot be replayed: an array {array.shape} that its derivative "
                    f"needs was changed after the forward pass ({self.line})"
                )

    def refuse_anomaly(self, i: int, g: Any, share: Any) -> None:
        """Raise if the VJP for input i made, of a gradient g that was right, one that is not."""
        g, share = (x._array if isinstance(x, Tensor) else np.asarray(x) for x in (g, share))
        for what, right in (("a NaN", lambda x: not _has_nan(x)), ("an infinity", _is_finite)):
            if right(g) and not right(share):
                raise FloatingPointError(
                    f"the derivative of {self.called} made {what} in the gradient of input {i}; "
                    f"the operation was called {self.line}"
                )


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
