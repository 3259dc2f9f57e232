"""2.2 · Autograd: the derivatives one asks for.

Who wants what from the replay of chapter 2.1? A training loop wants `backward`: walk once, and
leave ∂L/∂p in the `.grad` of every parameter. A mathematician wants `gradients(y, xs)`: just
these, as values. And whoever thinks in functions wants `grad(f)`, the function f′, which can be
differentiated again.

    >>> x = Tensor(3.0, requires_grad=True)
    >>> (x * x + x).backward()
    >>> x.grad
    array(7.)
    >>> grad(grad(grad(np.tanh)))(0.0)  # tanh‴ = (1 - y²)(6y² - 2) at y = 0
    array(-2.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from minigrad.record import is_recording, recording
from minigrad.replay import leaves, replay
from minigrad.tensor import Array, Tensor, _real_array, describe


def backward(y: Tensor, gradient: Any = None, *, retain_graph: bool = False) -> None:
    """Add ∂y/∂leaf to the `.grad` of every leaf that y was computed from.

    y is a scalar, or has one element; otherwise `gradient`, of y's shape, says what ∂L/∂y is
    (the seed). `.grad` accumulates over calls: set it to None between steps. It is written
    only when the whole pass has succeeded, so an exception half-way changes no `.grad`.

    The record is dropped as it is replayed, which returns its memory as early as possible;
    `retain_graph=True` keeps it for another pass.

    >>> x = Tensor([1.0, 2.0], requires_grad=True)
    >>> (x * x).backward()
    Traceback (most recent call last):
    ValueError: backward() needs a seed gradient: the root has shape (2,), not ()
    >>> (x * x).backward([1.0, 10.0])
    >>> x.grad
    array([ 2., 40.])
    """
    seed = check_seed(y, gradient, "backward()")
    arrived = replay(y, seed, None, create_graph=False, retain_graph=retain_graph)
    # Two leaves may have been handed one array (both sides of a + b), or a read-only view
    # (sum). Each .grad gets memory of its own. All are computed before the first is written.
    totals = [np.array(g) if x.grad is None else x.grad + g for x, g in arrived]
    for (x, _), total in zip(arrived, totals, strict=True):
        x.grad = np.asarray(total)


def gradients(
    y: Tensor,
    xs: Iterable[Tensor],
    gradient: Any = None,
    *,
    create_graph: bool = False,
    retain_graph: bool | None = None,
) -> tuple[Any, ...]:
    """∂y/∂x for each x in xs, leaves or results in between, without touching any `.grad`.

    Plain arrays; with `create_graph=True` recorded Tensors, which can be differentiated again
    (the record is then kept; otherwise it is dropped, unless `retain_graph=True`). An x that y
    does not depend on has the derivative 0 and gets it. An x that does not require a gradient
    is a ValueError, because nobody can know whether y depends on it.

    >>> x = Tensor(3.0, requires_grad=True)
    >>> (slope,) = gradients(x**3, [x], create_graph=True)
    >>> slope.item(), gradients(slope, [x])[0].item()           # 3x² and 6x
    (27.0, 18.0)
    """
    if isinstance(xs, Tensor):
        raise TypeError("gradients(y, xs) takes a list of tensors: write [x] for a single one")
    xs = list(xs)
    for i, x in enumerate(xs):
        if not isinstance(x, Tensor) or not x.requires_grad:
            raise ValueError(f"gradients(): xs[{i}], {describe(x)}, does not require a gradient")
    seed: Any = check_seed(y, gradient, "gradients()")
    if create_graph and isinstance(gradient, Tensor):
        # The derivative depends on the seed too, and remembers it.
        seed = gradient if gradient.dtype == y.dtype else gradient.astype(y.dtype)
    retain = create_graph if retain_graph is None else retain_graph
    return _gradients(y, seed, xs, create_graph, retain)


def grad(f: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """The derivative of f as a function: `grad(f)(x)` is ∂f/∂x at x, for a scalar-valued f.

    `argnums` chooses the argument; a tuple of them gives a tuple of gradients. Handed arrays
    or numbers, the derivative returns arrays; handed Tensors, Tensors. If the result depends
    on a tensor outside that requires a gradient, it is a recorded Tensor in either case: this
    lets `grad(grad(f))` nest to any depth, and lets f reach for outer variables.

    >>> grad(lambda x: x**2)(3.0)
    array(6.)
    >>> grad(lambda x, y: x * y, argnums=(0, 1))(3.0, 5.0)
    (array(5.), array(3.))
    >>> grad(lambda x: x * grad(lambda y: x * y)(1.0))(3.0)     # x · x, through the inner grad
    array(6.)
    """
    chosen = (argnums,) if isinstance(argnums, int) else tuple(argnums)

    def derivative(*args: Any, **options: Any) -> Any:
        inputs = list(args)
        for i in chosen:
            if not -len(args) <= i < len(args):
                raise ValueError(
                    f"grad: argnums asks for argument {i}, but f got {len(args)} by position"
                )
            inputs[i] = _fresh(args[i])
        with recording(True):
            y = f(*inputs, **options)
        if not isinstance(y, Tensor | np.ndarray | np.number | float | int):
            raise TypeError(f"grad(f) needs a scalar: f returned {type(y).__name__}")
        y = y if isinstance(y, Tensor) else Tensor(y)  # f may ignore its arguments
        if y.size != 1:
            raise ValueError(f"grad(f) needs a scalar: f returned shape {y.shape}, not ()")
        xs = [inputs[i] for i in chosen]
        outside = is_recording() and leaves(y) - {id(x) for x in xs}
        found = _gradients(y, np.ones(y.shape, y.dtype), xs, bool(outside), bool(outside))
        if not outside and any(isinstance(x, Tensor) for x in args):
            found = tuple(Tensor(g) for g in found)
        return found[0] if isinstance(argnums, int) else found

    return derivative


def _fresh(x: Any) -> Tensor:
    """A tensor of its own for f's argument.

    If f also reaches the caller's x by name, that x and this argument must stay two variables.
    `+x` is a new result whose record leads back to x, so outer derivatives still find x.
    """
    if isinstance(x, Tensor) and x.requires_grad and is_recording():
        return +x
    values = x.data if isinstance(x, Tensor) else np.asarray(x)
    dtype = float if values.dtype.kind in "iub" else None
    return Tensor(values, requires_grad=True, dtype=dtype)


def _gradients(
    y: Tensor, seed: Any, xs: Sequence[Tensor], create_graph: bool, retain_graph: bool
) -> tuple[Any, ...]:
    """`gradients` after its checks: one result for each x, zeros where y does not depend on it."""
    arrived = replay(y, seed, {id(x) for x in xs}, create_graph, retain_graph)
    found = {id(x): g for x, g in arrived}
    results = [found[id(x)] if id(x) in found else np.zeros(x.shape, x.dtype) for x in xs]
    if create_graph:
        return tuple(g if isinstance(g, Tensor) else Tensor(g) for g in results)
    # Arrays of their own, as in backward: the caller may write to them.
    return tuple(np.array(g) for g in results)


def check_seed(y: Any, gradient: Any, asked: str) -> Array:
    """Check the root, and give ∂L/∂y as an array of its shape and dtype: 1 for a scalar."""
    if not isinstance(y, Tensor):
        raise TypeError(f"{asked} starts at a Tensor, but got {type(y).__name__}")
    if not y.requires_grad:
        raise ValueError(
            f"{asked}: nothing leads back from {describe(y)}: no input required a gradient, "
            "or it was computed under no_grad()"
        )
    if gradient is None:
        if y.size != 1:
            raise ValueError(f"{asked} needs a seed gradient: the root has shape {y.shape}, not ()")
        return np.ones(y.shape, y.dtype)
    seed = gradient.data if isinstance(gradient, Tensor) else _real_array(gradient, asked)
    if seed.shape != y.shape:
        raise ValueError(
            f"{asked}: the seed gradient has shape {seed.shape}, but the root has {y.shape}"
        )
    return seed.astype(y.dtype)
