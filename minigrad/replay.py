"""2.1 · Replay: the record, in reverse.

In which order should the derivatives of a chain be multiplied? A loss L is computed from y, y from
h, h from x. The **Jacobian** ∂y/∂h of two vectors is a table: row i, column j holds ∂yᵢ/∂hⱼ. The
chain rule is a product of such tables,

    ∂L/∂x = ∂L/∂y · ∂y/∂h · ∂h/∂x

and a product can be taken from either end. L is one number, so ∂L/∂y is one row. From the left,
everything carried along stays one row, no longer than the tensor it belongs to; from the right
it would be a matrix with a column for every element of x. And from the left no Jacobian is ever
built: a rule needs only the product of a row with its Jacobian, and has a formula for that, its
VJP. (The row g times J is, as a column, Jᵀ g: the chapters write whichever is shorter.) This is
reverse mode. It is right for training, where one loss meets a million parameters.

The pass needs an order. If x is used twice, as in x · x, moving x by ε moves the left factor by
ε and the right one by ε, and L changes by both: the **shares** of a tensor's gradient add. So it
is complete only when everything computed from the tensor has sent its share. `replay_order`
finds an order in which that is so; `replay` walks it, from the seed ∂L/∂L = 1 to the leaves.

    >>> x = Tensor(3.0, requires_grad=True)
    >>> y = x * x + x                   # x is used three times
    >>> order, _ = replay_order(y, wanted=None)
    >>> [t.node.name if t.node else "x" for t in reversed(order)]
    ['add', 'multiply', 'x']
    >>> seed = np.array(1.0)
    >>> replay(y, seed, wanted=None, create_graph=False, retain_graph=False)[0][1]  # 3 + 3 + 1
    array(7.)
"""

from __future__ import annotations

from collections.abc import Set
from typing import Any

import numpy as np

from minigrad.record import Node, recording
from minigrad.safety import refuse_changed_inputs
from minigrad.tensor import _LAST_WRITE, Array, Tensor, _retain, describe


class _Pass:
    """One replay. Each node it spends keeps it, and can say later how the pass ended."""

    finished = False


def _refuse_spent(t: Tensor, node: Node) -> None:
    """A node that another pass has dropped can pass nothing on: say so, and how that pass ended."""
    if node.spent is not None:
        how = "an earlier backward pass" if node.spent.finished else "a pass that was interrupted"
        raise RuntimeError(
            f"the record of {node.name} {t.shape} was already dropped by {how}: run the forward "
            "pass again, or ask the first pass to keep it with retain_graph=True"
        )


def _sources(t: Tensor, borders: Set[int], since: int) -> list[Tensor]:
    """The tensors that t's gradient is passed on to: none for a leaf, and none at a border."""
    node = t.node
    if node is None or id(t) in borders or node.made < since:
        return []
    _refuse_spent(t, node)
    return [x for x in node.inputs if isinstance(x, Tensor) and x._requires_grad]


def replay_order(
    root: Tensor, wanted: Set[int] | None, borders: Set[int] = frozenset(), since: int = 0
) -> tuple[list[Tensor], set[int]]:
    """The tensors between the root and the wanted ones, each after all it was computed from.

    This is depth-first search, with a stack of its own: a chain of 100,000 operations is
    ordinary here, and Python's call stack ends near 1,000. Each tensor is met twice: first its
    inputs go on the stack above it, then, when they are all done, it takes its place. Read
    from the end, the list has every tensor *before* all it was computed from, which is the
    order of the replay. The work is linear in the number of edges.

    Branches that lead to no wanted tensor are left out (None wants every leaf). The ids of
    those that do lead there come back beside the order. Nothing behind a border is looked at.
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
            sources = _sources(t, borders, since)
            stack.append((t, sources))
            stack.extend([(x, None) for x in sources])
    return order, leads


def replay(
    root: Tensor,
    seed: Any,
    wanted: Set[int] | None,
    create_graph: bool,
    retain_graph: bool,
    borders: Set[int] = frozenset(),
    hooks: bool = True,
    since: int = 0,
) -> list[tuple[Tensor, Any]]:
    """Send the seed back through the record; return each wanted tensor with its gradient.

    With `create_graph` the gradients are recorded Tensors, otherwise arrays. With
    `retain_graph` the record is kept for another pass, otherwise dropped on the way.

    The pass ends at `borders`, and at whatever was made before the time `since`: a derivative of f
    (chapter 2.3) has no business behind f's arguments, nor with what is older than its call.
    `hooks=False` is for a pass within another one, which will come by the borders itself.

    `shares` holds the gradient collected so far for each tensor not yet reached. Tensors leave
    `order`, and gradients leave `shares`, when their turn comes, and a spent node lets go of
    its inputs: memory is returned from the loss backwards, while the pass is still going on.
    """
    order, leads = replay_order(root, wanted, borders, since)

    def node_to_replay(t: Tensor) -> Node | None:
        """t's node, unless t is as far down as anyone wants: then it stays as it is."""
        node = t.node
        if node is None or id(t) in borders:
            return None
        leads_on = wanted is None or any(id(x) in leads for x in node.inputs)
        _refuse_spent(t, node)  # by another pass, since this one began
        return node if leads_on else None

    for t in order:
        node = t.node
        if node is None or (node.made > _LAST_WRITE[0] and node.watch is None):
            continue
        if node_to_replay(t) is not None:
            refuse_changed_inputs(node, leads, create_graph)
            if node.watch is not None:
                node.watch.refuse_changed_arrays(node, leads)
    this_pass = _Pass()
    shares: dict[int, Any] = {id(root): seed}
    arrived: list[tuple[Tensor, Any]] = []
    with recording(create_graph):
        while order:
            t = order.pop()
            g = shares.pop(id(t), None)
            if g is not None:
                if not create_graph:
                    g = np.asarray(g)  # 0-d results are scalars in NumPy: make them arrays again
                if t._hooks and (hooks or id(t) not in borders):
                    g = _hooked(t, Tensor(g) if create_graph and not isinstance(g, Tensor) else g)
                is_wanted = _keeps_grad(t) if wanted is None else id(t) in wanted
                if is_wanted:
                    arrived.append((t, g))
            if (node := node_to_replay(t)) is not None:
                if g is not None:
                    _pass_on(t, node, g, leads, shares, create_graph)
                if not retain_graph:
                    node.spent, node.inputs, node.vjps, node.watch = this_pass, (), (), None
    this_pass.finished = True
    return arrived


def _keeps_grad(t: Tensor) -> bool:
    """Whether `backward` fills t's `.grad`: a leaf's always, a result's if it was asked to."""
    return t.node is None or (t._hooks is not None and _retain in t._hooks)


def _hooked(t: Tensor, g: Any) -> Any:
    """The gradient after t's hooks have seen it, each in the order it was registered."""
    for hook in tuple(t._hooks or ()):
        seen = hook(g if isinstance(g, Tensor) else _unwritable(g))
        if seen is None:
            continue
        if isinstance(seen, Tensor) and not isinstance(g, Tensor):
            seen = seen._array
        if np.shape(seen) != t.shape:
            raise ValueError(
                f"a hook of {describe(t)} returned a gradient of shape {np.shape(seen)}: it must "
                "keep the shape, or return None to leave the gradient as it is"
            )
        g = seen.astype(t.dtype) if isinstance(seen, Tensor) else np.asarray(seen, t.dtype)
    return g


def _unwritable(g: Array) -> Array:
    """A view of g that cannot be written: the same g may be on its way to others too."""
    g = g.view()
    g.flags.writeable = False
    return g


def _pass_on(
    t: Tensor, node: Node, g: Any, leads: set[int], shares: dict[int, Any], create_graph: bool
) -> None:
    """One step of the replay: through each input's VJP, add that input's share of g.

    For a gradient that will itself be differentiated, the rule is asked again with Tensors,
    so that its VJPs, and what they compute from g and y, are recorded. A fused rule, which
    speaks to arrays only, gives all its gradients at once, or leaves it to its definition.
    """
    inputs, vjps, watch = node.inputs, node.vjps, node.watch
    _refuse_spent(t, node)  # by a pass in another thread; asked only now that both are in hand
    found = None
    y: Any = t
    if not create_graph:
        y, g = t._array, _unwritable(g)
        if not isinstance(vjps, tuple):
            needs = tuple([id(x) in leads for x in inputs])
            found = vjps(g, y, needs)
            if not isinstance(found, tuple) or len(found) != len(inputs):
                raise TypeError(
                    f"the backward of {node.name} must return a tuple with a gradient or None "
                    f"for each of its {len(inputs)} inputs"
                )
    elif not isinstance(vjps, tuple):
        found = _by_definition(node, g, leads)
    else:
        try:
            vjps = node.rule(*inputs, **node.options)[1:]
        except TypeError as error:
            error.add_note(
                f"(the rule {node.name} was asked again, with Tensors, for create_graph=True; if "
                "its value is what only arrays can say, return it as a function: lambda: ...)"
            )
            raise
    for i, x in enumerate(inputs):
        if id(x) not in leads:
            continue
        if found is None:
            if vjps[i] is None:
                continue
            share = vjps[i](g, y)
        else:
            share = found[i]
            if share is None and create_graph:  # the definition does not use it, or has it before
                continue
        if getattr(share, "shape", None) != x._array.shape or share.dtype != x._array.dtype:
            share = _fitted(share, x, t, node, i)
        if watch is not None:
            watch.refuse_anomaly(i, g, share)
        before = shares.get(id(x))
        if before is not None:
            share = before + share  # never +=: `before` may be the array of another input too
        shares[id(x)] = share


def _by_definition(node: Node, g: Any, leads: set[int]) -> list[Any]:
    """A fused node's gradients, recorded: those of its definition, computed here and replayed.

    The inner pass ends at the node's inputs. An input that stands at several places gets its
    whole gradient at the first.
    """
    y = node.rule.definition(*node.inputs, **node.options)  # type: ignore[attr-defined]
    if not isinstance(y, Tensor) or y.shape != g.shape:
        gave = f"shape {y.shape}" if isinstance(y, Tensor) else type(y).__name__
        raise TypeError(
            f"the definition of {node.name} gave {gave}, but the operation has shape {g.shape}"
        )
    needed = {id(x) for x in node.inputs if id(x) in leads}
    borders = {id(x) for x in node.inputs}
    arrived = replay(y, g, needed, True, True, borders, hooks=False)
    gradients = {id(x): share for x, share in arrived}
    return [gradients.pop(id(x), None) for x in node.inputs]


def _fitted(g: Any, x: Tensor, t: Tensor, node: Node, i: int) -> Any:
    """A VJP's result, brought to the shape and dtype of its input x.

    Broadcasting copies one element to many places; the gradient of a copy is summed over the
    places (∂L/∂x = Σ ∂L/∂copy). This is the one place where that happens. A shape that
    broadcasting cannot explain is the rule's mistake, and summing it away would hide it.
    """
    if not isinstance(g, (np.ndarray, np.generic, Tensor)):
        raise TypeError(
            f"the VJP of {node.name} for input {i} gave {type(g).__name__}, not an array"
        )
    extra = g.ndim - x.ndim
    explained = 0 <= extra <= t.ndim - x.ndim or g.shape == x.shape
    axes = range(-1, -x.ndim - 1, -1)  # counted from the end, as broadcasting does
    stretched = [j for j in axes if explained and g.shape[j] != x.shape[j]]
    if not explained or any(x.shape[j] != 1 or g.shape[j] != t.shape[j] for j in stretched):
        raise ValueError(
            f"the VJP of {node.name} for input {i} gave shape {g.shape}, "
            f"which is neither the input's {x.shape} nor a broadcast of it"
        )
    if g.dtype.kind not in "fiub":
        raise TypeError(
            f"the VJP of {node.name} for input {i} gave dtype {g.dtype}, not a real one"
        )
    if extra:
        g = g.sum(axis=tuple(range(extra)))
    if stretched:
        g = g.sum(axis=tuple(stretched), keepdims=True)
    return g.astype(x.dtype)


def leaves(y: Tensor, borders: Set[int] = frozenset(), since: int = 0) -> set[int]:
    """The ids of the leaves behind y that require a gradient; nothing behind a border counts.

    A result from before `since` counts as a leaf: what it was made of need not be looked at.
    """
    order, _ = replay_order(y, None, borders, since)
    return {id(t) for t in order if (t._requires_grad if t.node is None else t.node.made < since)}
