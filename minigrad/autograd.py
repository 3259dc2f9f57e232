"""2.2 · Autograd: the derivatives one asks for.

Who wants what from the replay of chapter 2.1? A training loop wants `backward`: walk once, and
leave ∂L/∂p in the `.grad` of every parameter. A mathematician wants `gradients(y, xs)`: just
these, as values, or as tensors that can be differentiated again. (And whoever thinks in functions
wants f′: that is chapter 2.3.)

    >>> x = Tensor(3.0, requires_grad=True)
    >>> (x * x + x).backward()
    >>> x.grad
    array(7.)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from minigrad.replay import replay
from minigrad.tensor import Tensor, _real_array, describe


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
    for x, _ in arrived:
        if isinstance(x.grad, Tensor):
            raise TypeError(
                f"the .grad of {describe(x)} is a Tensor: set it to an array, its .data"
            )
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
    is a ValueError, because nobody can know whether y depends on it; so is a y that depends on
    nothing that does. (How a gradient comes to be recorded: `_pass_on` in chapter 2.1.)

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
    seed = check_seed(y, gradient, "gradients()")
    if create_graph:
        seed = check_seed(y, gradient, "gradients()", recorded=True)
    retain = create_graph if retain_graph is None else retain_graph
    return collect(y, seed, xs, create_graph, retain)


def collect(
    y: Tensor,
    seed: Any,
    xs: Sequence[Tensor],
    create_graph: bool,
    retain_graph: bool,
    *,
    borders: bool = False,
    since: int | None = None,
) -> tuple[Any, ...]:
    """`gradients` after its checks: one result for each x, zeros where y does not depend on it.

    With `borders=True` nothing behind the xs is looked at, for callers who know that none of them
    is behind another.
    """
    wanted = {id(x) for x in xs}
    if y.requires_grad:
        ends = wanted if borders else frozenset()
        if since is None:  # nothing that is older than all of the xs leads to one
            since = min([x.node.made if x.node else 0 for x in xs], default=0)
        arrived = replay(y, seed, wanted, create_graph, retain_graph, ends, since=since)
    else:
        arrived = []
    found = {id(x): g for x, g in arrived}
    results = [found[id(x)] if id(x) in found else np.zeros(x.shape, x.dtype) for x in xs]
    if create_graph:
        return tuple(g if isinstance(g, Tensor) else Tensor(g) for g in results)
    # Arrays of their own, as in backward: the caller may write to them.
    return tuple(np.array(g) for g in results)


def check_seed(y: Any, gradient: Any, asked: str, *, recorded: bool = False) -> Any:
    """Check the root, and give ∂L/∂y as an array of its shape and dtype: 1 for a scalar.

    With `recorded=True` a seed that is a Tensor stays one: a derivative of the derivative then
    depends on the seed too.
    """
    if not isinstance(y, Tensor):
        raise TypeError(f"{asked} starts at a Tensor, but got {type(y).__name__}")
    if not y.requires_grad and not recorded:
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
    if recorded and isinstance(gradient, Tensor):
        return gradient if gradient.dtype == y.dtype else gradient.astype(y.dtype)
    return seed.astype(y.dtype)
