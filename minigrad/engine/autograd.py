"""2.2 · Autograd: `backward` and `gradients`.

In chapter 0: `root.grad = np.ones_like(root.array)`.

Who asks for a replay, and for which gradients? A training loop calls `backward`: after one pass,
∂L/∂p is in the `.grad` of every parameter p. A mathematician calls `gradients(y, xs)`, and gets the
gradients of these xs only, as arrays, or as tensors that can be differentiated again. (A function's
derivative as a function is chapter 2.3.)

    >>> from minigrad import Tensor, gradients
    >>> x = Tensor(3.0, requires_grad=True)
    >>> (x * x + x).backward()
    >>> x.grad
    array(7.)

How can a gradient be differentiated again? ∂L/∂x is computed by VJPs, and VJPs are written in
NumPy's words. In an ordinary pass the VJPs work on arrays and leave no record. With
`create_graph=True` each rule is called again, with Tensors in place of the arrays. Its value is
known already; only its new VJPs are used. They get y as a Tensor, and g too as soon as something
recorded has contributed to it. So what they compute is recorded like any other result, and can be
differentiated in turn.

    >>> (slope,) = gradients(x**3, [x], create_graph=True)
    >>> slope.item(), gradients(slope, [x])[0].item()           # 3x² and 6x
    (27.0, 18.0)
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from minigrad.engine.record import PASSES
from minigrad.engine.replay import replay
from minigrad.engine.tensor import Tensor, describe, real_array


def backward(y: Tensor, gradient: Any = None, *, retain_graph: bool = False) -> None:
    """Add ∂y/∂leaf to the `.grad` of every leaf that y was computed from.

    y is a scalar, or has one element; otherwise `gradient`, of y's shape, says what ∂L/∂y is
    (the seed). `.grad` accumulates over calls: set it to None between steps. All `.grad`s are
    written at the end, so an exception in a rule changes none of them. Threads may share leaves:
    their gradients are added one after the other.

    The record is dropped during the pass, which returns its memory as early as possible;
    `retain_graph=True` keeps it for another pass, also for one in another thread.

    >>> x = Tensor([1.0, 2.0], requires_grad=True)
    >>> (x * x).backward()
    Traceback (most recent call last):
    ValueError: backward() needs a seed gradient: the root has shape (2,), not (); make it one
        number with .sum() or .mean(), or pass ∂L/∂root
    >>> (x * x).backward([1.0, 10.0])
    >>> x.grad
    array([ 2., 40.])
    """
    check_root(y, "backward()")
    seed = check_seed(y, gradient, "backward()")
    with PASSES.get()(y, seed) as observe:  # (None, if no `Steps` note this pass)
        found = replay(y, seed, retain_graph=retain_graph, observe=observe)
        with _adding:
            # Two leaves may have received one array (both sides of a + b), or a read-only view
            # (sum): each .grad gets its own memory.
            totals = [
                np.array(g) if (old := grad_of(x)) is None else np.asarray(old + g)
                for x, g in found.items()
            ]
            for x, total in zip(found, totals, strict=True):
                x.grad = total


def gradients(
    y: Tensor,
    xs: Iterable[Tensor],
    gradient: Any = None,
    *,
    create_graph: bool = False,
    retain_graph: bool | None = None,
) -> tuple[Any, ...]:
    """∂y/∂x for each x in xs, leaves or results in between, without touching any `.grad`.

    Plain arrays; with `create_graph=True` Tensors, recorded where they depend on something (the
    record of y is then kept; otherwise its nodes between y and the xs are dropped, unless
    `retain_graph=True`). If y does not depend on an x, its gradient is 0.
    ValueError for an x that does not require a gradient, because nobody can know whether y depends
    on it, and for a y that depends on no tensor that requires a gradient.

    >>> x = Tensor(3.0, requires_grad=True)
    >>> h = x * x
    >>> gradients(h * x, [h, x])                # x, and 3x²
    (array(3.), array(27.))
    """
    if isinstance(xs, Tensor):
        raise TypeError("gradients(y, xs) takes a list of tensors: write [x] for a single one")
    xs = list(xs)
    for i, x in enumerate(xs):
        if not isinstance(x, Tensor) or not x.requires_grad:
            what = "is not a Tensor of minigrad that requires a gradient: leave it out"
            raise ValueError(f"gradients(): xs[{i}], {describe(x)}, {what}")
    check_root(y, "gradients()")
    seed = check_seed(y, gradient, "gradients()", recorded=create_graph)
    retain_graph = create_graph if retain_graph is None else retain_graph
    # A tensor that is older than every x was made before them and cannot depend on them: the pass
    # may stop there. (0 means that there is no limit. A leaf's time says nothing: it may have been
    # given another array.)
    since = min([x._time if x.node else 0 for x in xs], default=0)
    return collect(y, seed, xs, create_graph=create_graph, retain_graph=retain_graph, since=since)


# ---------------------------------------------------- A first reading may stop here.
# What follows checks the seed, and puts gradients in the order they were asked for.

_adding = threading.RLock()  # one thread at a time adds to .grad


def grad_of(x: Tensor) -> Any:
    """Return x's `.grad`; TypeError if a user has set it to something that cannot be a gradient."""
    grad: Any = x.grad
    if grad is None:
        return None
    is_array = isinstance(grad, (np.ndarray, np.generic)) and grad.dtype.kind == "f"
    if not is_array or grad.shape != x.shape:
        raise TypeError(
            f"the .grad of {describe(x)} must be an array of floats of its shape (of a Tensor, its "
            f".data): got {type(grad).__name__} of shape {np.shape(grad)}"
        )
    return grad


def collect(
    y: Tensor, seed: Any, xs: Sequence[Tensor], *, create_graph: bool, **how: Any
) -> tuple[Any, ...]:
    """Return one gradient for each x, zeros where y does not depend on it. Nothing is checked."""
    found: dict[Tensor, Any] = {}
    if y.requires_grad:
        found = replay(y, seed, set(xs), create_graph=create_graph, **how)
    results = [found[x] if x in found else np.zeros(x.shape, x.dtype) for x in xs]
    if create_graph:
        return tuple([g if isinstance(g, Tensor) else Tensor(g) for g in results])
    return tuple([np.array(g) for g in results])  # arrays that the caller may write to


def check_root(y: Any, asked: str) -> None:
    """Refuse a y from which no record leads back."""
    if not isinstance(y, Tensor):
        raise TypeError(f"{asked} starts at a Tensor of minigrad, but got {type(y)}")
    if not y.requires_grad:
        raise ValueError(
            f"{asked}: nothing leads back from {describe(y)}: no input required a gradient, "
            "or it was computed under no_grad()"
        )


def check_seed(y: Tensor, gradient: Any, asked: str, *, recorded: bool = False) -> Any:
    """Return the seed ∂L/∂y as an array of y's shape and dtype; 1 for a scalar if none is given.

    With `recorded=True` a seed that is a Tensor stays one: a derivative of the derivative then
    depends on the seed too.
    """
    if gradient is None:
        if y.size != 1:
            raise ValueError(
                f"{asked} needs a seed gradient: the root has shape {y.shape}, not (); make it one "
                "number with .sum() or .mean(), or pass ∂L/∂root"
            )
        return np.ones(y.shape, y.dtype)
    seed = gradient._array if isinstance(gradient, Tensor) else real_array(gradient, asked)
    if seed.shape != y.shape:
        raise ValueError(
            f"{asked}: the seed gradient has shape {seed.shape}, but the root has {y.shape}"
        )
    if recorded and isinstance(gradient, Tensor):
        return gradient if gradient.dtype == y.dtype else gradient.astype(y.dtype)
    return seed.astype(y.dtype)
