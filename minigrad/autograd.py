"""2 · Autograd: replay the record in reverse.

Given L = f(h(x)), which derivative should be multiplied first? The chain rule is a product of
Jacobians,

    ∂L/∂x = ∂L/∂y · ∂y/∂h · ∂h/∂x

and a product can be taken from either end. From the left, ∂L/∂y is one row, and row times
matrix is a row again: no Jacobian is ever built, and one pass gives the derivative of one L
with respect to every x. That is reverse mode, and it is right for training, where one loss
meets a million parameters. Each factor "row times Jacobian" is a VJP, which chapter 1's rules
supply.

The pass needs an order: a tensor's gradient is complete only when *everything computed from it*
has sent its share, for shares add (the multivariate chain rule). `_replay_order` finds such an
order; `_replay` walks it.

    >>> import numpy as np
    >>> from minigrad import Tensor, grad
    >>> x = Tensor(3.0, requires_grad=True)
    >>> (x * x + x).backward()          # x is used three times; three shares: 3 + 3 + 1
    >>> x.grad
    array(7.)
    >>> grad(grad(grad(np.tanh)))(0.0)  # tanh''' = (1 - y²)(6y² - 2) at y = 0
    array(-2.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minigrad.tensor import Array, Node, Tensor, _recorded, _recording, describe


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
    seed = _seed(y, gradient, "backward()")
    arrived = _replay(y, seed, None, create_graph=False, retain_graph=retain_graph)
    # Two leaves may have been handed one array (both sides of a + b), or a read-only view
    # (sum). Each .grad gets memory of its own. All are computed before the first is written.
    totals = [np.array(g) if x.grad is None else x.grad + g for x, g in arrived]
    for (x, _), total in zip(arrived, totals, strict=True):
        x.grad = np.asarray(total)


def gradients(
    y: Tensor,
    xs: Sequence[Tensor],
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

    >>> x = Tensor(2.0, requires_grad=True)
    >>> (slope,) = gradients(x**3, [x], create_graph=True)
    >>> slope.item(), gradients(slope, [x])[0].item()           # 3x² and 6x
    (12.0, 12.0)
    """
    if isinstance(xs, Tensor):
        raise TypeError("gradients(y, xs) takes a list of tensors: write [x] for a single one")
    for i, x in enumerate(xs):
        if not isinstance(x, Tensor) or not x.requires_grad:
            raise ValueError(f"gradients(): xs[{i}], {describe(x)}, does not require a gradient")
    seed = _seed(y, gradient, "gradients()")
    if create_graph and isinstance(gradient, Tensor):
        seed = gradient  # the derivative depends on the seed too, and remembers it
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
                raise ValueError(f"grad: argnums asks for argument {i}, but f got {len(args)}")
            inputs[i] = _fresh(args[i])
        with _recorded():
            y = f(*inputs, **options)
        y = y if isinstance(y, Tensor) else Tensor(y)  # f may ignore its arguments
        if y.size != 1:
            raise ValueError(f"grad(f) needs a scalar: f returned shape {y.shape}, not ()")
        xs = [inputs[i] for i in chosen]
        outside = _recording.get() and _leaves(y) - {id(x) for x in xs}
        with _recorded():
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
    if isinstance(x, Tensor) and x.requires_grad and _recording.get():
        return +x
    values = x.data if isinstance(x, Tensor) else np.asarray(x)
    dtype = float if values.dtype.kind in "iub" else None
    return Tensor(values, requires_grad=True, dtype=dtype)


def _gradients(
    y: Tensor, seed: Any, xs: Sequence[Tensor], create_graph: bool, retain_graph: bool
) -> tuple[Any, ...]:
    """`gradients` after its checks: one result for each x, zeros where y does not depend on it."""
    arrived = _replay(y, seed, {id(x) for x in xs}, create_graph, retain_graph)
    found = {id(x): g for x, g in arrived}
    results = [found[id(x)] if id(x) in found else np.zeros(x.shape, x.dtype) for x in xs]
    if create_graph:
        return tuple(g if isinstance(g, Tensor) else Tensor(g) for g in results)
    # Arrays of their own, as in backward: the caller may write to them.
    return tuple(np.array(g) for g in results)


def _seed(y: Any, gradient: Any, asked: str) -> Array:
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
    seed = gradient.data if isinstance(gradient, Tensor) else np.asarray(gradient)
    if seed.shape != y.shape:
        raise ValueError(
            f"{asked}: the seed gradient has shape {seed.shape}, but the root has {y.shape}"
        )
    return seed.astype(y.dtype)


class _Pass:
    """One replay. Each node it spends keeps it, and can say later how the pass ended."""

    finished = False


def _sources(t: Tensor) -> list[Tensor]:
    """The tensors that t's gradient is passed on to: none for a leaf."""
    node = t.node
    if node is None:
        return []
    if node.spent is not None:
        how = "an earlier backward pass" if node.spent.finished else "a pass that was interrupted"
        raise RuntimeError(
            f"the record of {node.name} {t.shape} was already dropped by {how}: run the forward "
            "pass again, or ask the first pass to keep it with retain_graph=True"
        )
    return [x for x in node.inputs if isinstance(x, Tensor) and x._requires_grad]


def _replay_order(root: Tensor, wanted: set[int] | None) -> tuple[list[Tensor], set[int]]:
    """The tensors between the root and the wanted ones, each after all it was computed from.

    This is depth-first search, with a stack of its own: a chain of 100,000 operations is
    ordinary here, and Python's call stack ends near 1,000. Each tensor is met twice: first its
    inputs go on the stack above it, then, when they are all done, it takes its place. Read
    from the end, the list has every tensor *before* all it was computed from, which is the
    order of the replay. The work is linear in the number of edges.

    Branches that lead to no wanted tensor are left out (None wants every leaf). The ids of
    those that do lead there come back beside the order.
    """
    order: list[Tensor] = []
    leads: set[int] = set()
    met: set[int] = set()
    stack: list[tuple[Tensor, list[Tensor] | None]] = [(root, None)]
    while stack:
        t, sources = stack.pop()
        if sources is not None:
            at_goal = wanted is None or id(t) in wanted
            if at_goal or any(id(x) in leads for x in sources):
                leads.add(id(t))
                order.append(t)
        elif id(t) not in met:
            met.add(id(t))
            sources = _sources(t)
            stack.append((t, sources))
            stack.extend([(x, None) for x in sources])
    return order, leads


def _replay(
    root: Tensor, seed: Any, wanted: set[int] | None, create_graph: bool, retain_graph: bool
) -> list[tuple[Tensor, Any]]:
    """Send the seed back through the record; return each wanted tensor with its gradient.

    `shares` holds the gradient collected so far for each tensor not yet reached. Tensors leave
    `order`, and gradients leave `shares`, when their turn comes, and a spent node lets go of
    its inputs: memory is returned from the loss backwards, while the pass is still going on.
    """
    order, leads = _replay_order(root, wanted)
    for t in order:
        if t.node is not None:
            _refuse_changed_inputs(t.node)
    this_pass = _Pass()
    shares: dict[int, Any] = {id(root): seed}
    arrived: list[tuple[Tensor, Any]] = []
    with _recorded(create_graph):
        while order:
            t = order.pop()
            g = shares.pop(id(t), None)
            node = t.node
            if g is not None and (node is None if wanted is None else id(t) in wanted):
                arrived.append((t, g))
            if node is not None:
                if g is not None:
                    _pass_on(t, node, g, leads, shares, create_graph)
                if not retain_graph:
                    node.spent, node.inputs, node.vjps = this_pass, (), ()
    this_pass.finished = True
    return arrived


def _pass_on(
    t: Tensor, node: Node, g: Any, leads: set[int], shares: dict[int, Any], create_graph: bool
) -> None:
    """One step of the replay: through each input's VJP, add that input's share of g.

    For a gradient that will itself be differentiated, the rule is asked again with Tensors,
    so that its VJPs, and what they compute from g and y, are recorded.
    """
    if create_graph:
        _, *vjps = node.rule(*node.inputs, **node.options)
        y: Any = t
    else:
        vjps, y = node.vjps, t._array
    for i, x in enumerate(node.inputs):
        if id(x) not in leads or vjps[i] is None:
            continue
        share = vjps[i](g, y)
        if share.shape != x._array.shape or share.dtype != x._array.dtype:
            share = _fitted(share, x, t, node, i)
        before = shares.get(id(x))
        if before is not None:
            # Never `before += share`: another input may have been given that same array. And
            # a sum of 0-d arrays is a scalar in NumPy, so it is made an array again.
            share = before + share if create_graph else np.asarray(before + share)
        shares[id(x)] = share


def _fitted(g: Any, x: Tensor, t: Tensor, node: Node, i: int) -> Any:
    """A VJP's result, brought to the shape and dtype of its input x.

    Broadcasting copies one element to many places; the gradient of a copy is summed over the
    places (∂L/∂x = Σ ∂L/∂copy). This is the one place where that happens. A shape that
    broadcasting cannot explain is the rule's mistake, and summing it away would hide it.
    """
    extra = g.ndim - x.ndim
    explained = 0 <= extra <= t.ndim - x.ndim or g.shape == x.shape
    stretched = [i for i, (n, m) in enumerate(zip(g.shape[extra:], x.shape, strict=False)) if n != m]
    if not explained or any(x.shape[i] != 1 for i in stretched):
        raise ValueError(
            f"the VJP of {node.name} for input {i} gave shape {g.shape}, "
            f"which is neither the input's {x.shape} nor a broadcast of it"
        )
    if extra:
        g = g.sum(axis=tuple(range(extra)))
    if stretched:
        g = g.sum(axis=tuple(stretched), keepdims=True)
    return g.astype(x.dtype)


def _refuse_changed_inputs(node: Node) -> None:
    """A VJP that holds an array which was written since would give a wrong gradient: say so."""
    writes = 0
    for x in node.inputs:
        if isinstance(x, Tensor):
            writes += x._writes[0]
    if writes == node.writes:
        return
    held = [
        cell.cell_contents
        for vjp in node.vjps
        for cell in getattr(vjp, "__closure__", None) or ()
        if isinstance(cell.cell_contents, np.ndarray)
    ]
    for x in node.inputs:
        if isinstance(x, Tensor) and any(np.may_share_memory(x._array, h) for h in held):
            raise RuntimeError(
                f"{node.name} cannot be replayed: {describe(x)} was changed in place after the "
                "forward pass, and the derivative needs its old values; run the forward pass "
                "again after each change"
            )


def _leaves(y: Tensor) -> set[int]:
    """The ids of the leaves below y that require a gradient."""
    order, _ = _replay_order(y, None)
    return {id(t) for t in order if t.node is None and t._requires_grad}
