"""2.1 · Replay: the record, in reverse.

In chapter 0: `y = max(waiting, key=lambda value: value.time)`.

In which order should the derivatives of a chain be multiplied? A loss L is computed from y, y from
h, h from x. The **Jacobian** ∂y/∂h of two vectors is a table: row i, column j holds ∂yᵢ/∂hⱼ. (An
array with more axes is laid out in one row first.) The chain rule is a product of such tables,

    ∂L/∂x = ∂L/∂y · ∂y/∂h · ∂h/∂x

and a product can be taken from either end. L is one number, so ∂L/∂y is one row. From the left,
(∂L/∂y · ∂y/∂h) · ∂h/∂x, each product is one row again, with one number for each element of h, and
then of x. From the right each product but the last is a matrix, with a column for every element of
x. And from the left no Jacobian is ever built: a rule needs only the product of a row g with its
Jacobian, and has a formula for that product. The formula is called a **VJP**, short for
vector-Jacobian product, where the vector is g. This is reverse mode. It is right for training,
where one loss meets a million parameters.

If x is used twice, as in x · x, moving x by ε moves the left factor by ε and the right one by ε,
and L changes by the sum of both effects. Each use of x sends a **contribution**, and the gradient
of x is their sum. The same holds for an element that NumPy copies to many places: in x + c with x
of shape (2, 3) and c of shape (3,), g has the shape (2, 3), and ∂L/∂c = `g.sum(axis=0)`. This is
**un-broadcasting**, in the function `_fitted` below.

A gradient is such a sum, and it must be complete before it is passed on. So the results must be
visited in the right order: a result passes its gradient on when everything that leads from it to L
has sent its contribution. A result is made after its inputs, so it is newer than each input that is
a result itself. This order never changes, because a result keeps its array, and so its time. (A
leaf can be given another array and become newer, but a leaf passes nothing on.) So take, of all the
results that have received something and wait to pass it on, the **newest**. In this picture the
arrows lead forward, from each input to the result that uses it:

    time   1          2               3                 4
           x ───────▶ a = x² ───────▶ b = a + x ──────▶ L = a b
           │          └───────────────────────────────▶ L
           └────────────────────────▶ b

Let x be 3, so that *a* is 9, b is 12 and L is 108. Backward, L sends the value of *a*, 9, to b, and
the value of b, 12, to *a*, and both wait. b is the newer one. It sends 9 to *a* and 9 to x. Only
now is the gradient of *a* complete: it is 12 + 9 = 21. Then *a* sends 21 · 2x = 126 to x, and ∂L/∂x
is 9 + 126 = 135. (If *a* were taken before b, it would send only 12 · 2x = 72.)

Why is the newest always complete? Let t be the newest result that waits. Suppose that a newer
result r still had to send something to t. r does not wait now, since t is the newest that waits. So
r would have to receive something first, from a result that is newer still. That one does not wait
either, and would have to receive something first, from one that is newer again, and so on without
an end. But the results are finitely many. So there is no such r, and t is complete.

Leaves pass nothing on, they only collect. The pass starts with the seed ∂L/∂L = 1 at the loss,
which is its **root**, and ends when no result is waiting. This is the loop in its simplest form. It
is right if nothing is broadcast, and if there are no constants and no fused rules:

    >>> import numpy as np
    >>> from minigrad import Tensor
    >>> def way_back(root):
    ...     gradients, waiting = {root: np.ones(root.shape)}, {root}
    ...     while waiting:
    ...         t = max(waiting, key=lambda result: result._time)       # the newest
    ...         waiting.remove(t)
    ...         for x, vjp in zip(t.node.inputs, t.node.vjps):
    ...             gradients[x] = gradients.get(x, 0) + vjp(gradients[t], t.data)
    ...             if x.node is not None:                              # not a leaf
    ...                 waiting.add(x)
    ...     return gradients
    >>> x = Tensor(3.0, requires_grad=True)
    >>> a = x * x
    >>> b = a + x
    >>> L = a * b                           # x⁴ + x³
    >>> x._time < a._time < b._time < L._time
    True
    >>> float(way_back(L)[x])               # 4x³ + 3x²
    135.0

`replay` is this loop with a heap, which finds the newest without comparing all that wait. It also
computes only what is asked for, un-broadcasts, and frees the record on the way:

    >>> from minigrad.engine.replay import replay
    >>> float(replay(L, np.array(1.0))[x])
    135.0

Exercises 3 to 6 and 9 of `python -m demos learn`: the way back through a chain, two uses, the
order, a mistake in it; and un-broadcasting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from contextlib import nullcontext
from functools import partial
from heapq import heappop, heappush
from operator import attrgetter
from typing import Any

import numpy as np

from minigrad.engine.record import Node, recording
from minigrad.engine.slips import PRODUCT, note_slip
from minigrad.engine.tensor import Tensor, describe

# ---------------------------------------------------- A first reading may stop here.
# What follows: the loop with a heap and its options, un-broadcasting, how a VJP is called,
# gradients that can be differentiated again, fused rules, and records that were dropped before.

Sent = Iterator[tuple[Tensor, int, Any]]  # inputs, their positions, and their contributions
Observer = Callable[[Tensor, Sent, dict[Tensor, Any]], Sent]


def replay(
    root: Tensor,
    seed: Any,
    wanted: Set[Tensor] | None = None,
    *,
    create_graph: bool = False,
    retain_graph: bool = False,
    since: int = 0,
    observe: Observer | None = None,
) -> dict[Tensor, Any]:
    """Send the seed back through the record; return the gradient of each wanted tensor it reaches.

    wanted        None for all leaves; otherwise only what leads to one of these is computed
    create_graph  whether the gradients are recorded, so that they can be differentiated again
                  (graph is PyTorch's word for the record); otherwise they are arrays
    retain_graph  whether to keep the record for another pass. Otherwise each node lets go of its
                  inputs as soon as it is done, and memory is returned from the loss backwards
    since         a time: the pass ends at tensors that are not newer, as it does at leaves
                  (chapter 2.4)
    observe       a function that is given what t sends, before it is sent, and hands it on
                  (`minigrad.Steps` uses it)
    """
    leads = None if wanted is None else _leading_to(wanted, root, since)  # what is on the way there
    gradients: dict[Tensor, Any] = {root: seed}  # (a Tensor's hash is its identity)
    waiting: list[tuple[int, Tensor]] = []  # a heap of (-time, result): the newest comes out first
    if passes_on(root, since) and (leads is None or root in leads):
        heappush(waiting, (-root._time, root))
    with recording() if create_graph else nullcontext():
        while waiting:
            t = heappop(waiting)[1]
            g = gradients[t]
            if wanted is None or t not in wanted:
                del gradients[t]  # which frees its memory
            elif leads is not None and leads.isdisjoint(inputs_of(t)):
                continue  # t is wanted, and nothing behind it is: the pass ends here
            sent = contributions(t, g, leads, create_graph)
            if observe is not None:
                sent = observe(t, sent, gradients)
            for x, _, contribution in sent:
                if x in gradients:  # (not +=: several tensors may hold this array)
                    gradients[x] = gradients[x] + contribution
                else:
                    gradients[x] = contribution
                    if passes_on(x, since):
                        heappush(waiting, (-x._time, x))
            if leads is not None:
                leads.discard(t)  # which frees t
            if not retain_graph:
                node: Any = t.node
                node.spent, node.inputs, node.vjps, node.watch = True, (), (), None
    return gradients


def _fitted(g: Any, x: Tensor, t: Tensor, i: int, create_graph: bool) -> Any:
    """Bring a VJP's result to the shape and dtype of its input x: the one un-broadcast.

    Rules leave the sum over what was stretched to this function, except for a few that sum while
    they multiply (as in chapter 3.5). A shape that broadcasting cannot explain is the rule's
    mistake, and a sum would hide the mistake.
    """
    vjp = f"the VJP of {t.node.name if t.node else ''} for input {i}"
    arrays = (np.ndarray, np.generic, Tensor) if create_graph else (np.ndarray, np.generic)
    if not isinstance(g, arrays) or g.dtype.kind not in "fiub":
        kind = g.dtype if isinstance(g, arrays) else type(g).__name__
        gave = f"{kind}, not an array of real numbers"
        if g is None:
            gave = "None: is a return missing?"
        raise TypeError(f"{vjp} gave {gave}")
    extra = g.ndim - x.ndim
    shape = (1,) * extra + x.shape
    stretched = [j for j in range(-g.ndim, 0) if g.shape[j] != shape[j]]
    if g.shape != x.shape and (
        not 0 <= extra <= t.ndim - x.ndim
        or any(shape[j] != 1 or g.shape[j] != t.shape[j] for j in stretched)
    ):
        asks = "is g forgotten, or a sum over an axis"
        alike = [k for k, other in enumerate(inputs_of(t)) if k != i and other.shape == g.shape]
        if alike:
            asks += f", or are the gradients of inputs {i} and {alike[0]} exchanged"
        asks += "?"
        if x.shape == t.shape and g.ndim > 1 and g.shape[-2] == g.shape[-1]:  # as G Bᵀ is
            asks = PRODUCT
        raise ValueError(
            f"{vjp} gave shape {g.shape}, which is neither the input's {x.shape} nor a broadcast "
            f"of it within the output's {t.shape}: {asks}"
        )
    if extra:
        g = g.sum(axis=tuple(range(extra)))
    stretched = [j for j in stretched if j >= -x.ndim]
    if stretched:
        g = g.sum(axis=tuple(stretched), keepdims=True)
    return g if g.dtype == x.dtype else g.astype(x.dtype)


def contributions(
    t: Tensor, g: Any, leads: Set[Tensor] | None = None, create_graph: bool = False
) -> Sent:
    """Yield t's contribution to each of its inputs: that input's VJP of g, the gradient of t.

    Three things for each: the input, its position among t's inputs, and the contribution.
    """
    node: Any = t.node
    y: Any = t._array
    vjps, inputs, watch = node.vjps, inputs_of(t), node.watch
    if watch is not None:
        watch.refuse_changed_arrays()
    if create_graph:
        # The rule is called again, with Tensors. y is t itself: what uses y leads back through t.
        y, vjps = t, _called_again(t, inputs)
    else:
        # An array, since NumPy turns 0-d results into scalars, and a read-only view of it
        # (write=False), since several VJPs are given the same g.
        g = np.asarray(g).view()
        g.setflags(False)
    if type(vjps) is not tuple:
        needs = [x._requires_grad if leads is None else x in leads for x in inputs]
        vjps = _all_at_once(vjps, g, y, node, tuple(needs))
    for i, vjp in enumerate(vjps):
        x = inputs[i]
        if vjp is not None and (x._requires_grad if leads is None else x in leads):
            try:
                contribution, a = vjp(g, y), x._array
            except (ValueError, IndexError, TypeError) as error:
                note_slip(error, node, i, y)
                raise
            if watch is not None:
                watch.refuse_nan(i, g, contribution)
            if (
                type(contribution) is not np.ndarray
                or contribution.dtype is not a.dtype
                or contribution.shape != a.shape
            ):
                contribution = _fitted(contribution, x, t, i, create_graph)
            yield x, i, contribution


def _called_again(t: Tensor, inputs: tuple[Tensor, ...]) -> Any:
    """Return the VJPs of t's rule called with Tensors, so that what they compute is recorded.

    The rule sees the present values of its inputs, so a leaf must still hold the array of the
    forward pass. A fused rule works on arrays only; its definition takes its place.
    """
    node: Any = t.node
    refuse_changed(inputs, t._time, f"{node.name} cannot be differentiated again")
    if hasattr(node.rule, "definition"):
        return partial(by_definition, node, inputs)
    variables = [x if x._requires_grad else x._array for x in inputs]  # constants stay arrays
    return node.rule(*variables, **node.options)[1:]


def refuse_changed(inputs: tuple[Tensor, ...], made: int, what: str) -> None:
    """Refuse inputs that were given another array after the time at which a result was made."""
    for x in inputs:
        if x._time > made:
            raise RuntimeError(
                f"{what}: {describe(x)} was changed after the forward pass; run the forward pass "
                "again after each change"
            )


def _all_at_once(
    backward: Any, g: Any, y: Any, node: Any, needs: tuple[bool, ...]
) -> list[Callable[..., Any]]:
    """Compute a fused rule's gradients together, and return a VJP for each that hands it out."""
    found = backward(g, y, needs)
    if not isinstance(found, tuple) or len(found) != len(needs):
        raise TypeError(
            f"the backward of {node.name} must return a tuple with a gradient or None for each of "
            f"its {len(needs)} inputs"
        )
    return [lambda *_, each=each: each for each in found]


def by_definition(
    node: Node, inputs: tuple[Tensor, ...], g: Any, y: Any, needs: tuple[bool, ...]
) -> tuple[Any, ...]:
    """Return the inputs' gradients by computing a fused rule's definition and replaying it.

    An input that is given at several positions gets its whole gradient at the first one, and then
    zeros; so does one that the definition ignores.
    """
    since = max([x._time for x in inputs])  # all that the definition computes is newer
    composed = node.rule.definition(*inputs, **node.options)  # type: ignore[attr-defined]
    wanted = {x for x, need in zip(inputs, needs, strict=True) if need}
    found = replay(composed, g, wanted, create_graph=True, retain_graph=True, since=since)
    return tuple([found.pop(x, np.zeros(x.shape, x.dtype)) for x in inputs])


def passes_on(t: Tensor, since: int) -> bool:
    """Return whether t passes its gradient on: it has a node, and is newer than `since`.

    (A leaf passes nothing on. So it does not matter that a leaf which was given another array is
    newer than what was made from it.)
    """
    return t.node is not None and t._time > since


def behind(root: Tensor, since: int = 0) -> dict[Tensor, tuple[Tensor, ...]]:
    """Return the root and every tensor behind it that requires a gradient, each with its inputs.

    Where the pass ends, at a leaf or at what is not newer than `since`, there are no inputs.
    """
    found: dict[Tensor, tuple[Tensor, ...]] = {}
    stack = [root]
    while stack:
        t = stack.pop()
        if t not in found:
            found[t] = inputs = inputs_of(t) if passes_on(t, since) else ()
            stack += [x for x in inputs if x._requires_grad and x not in found]
    return found


def ends(y: Tensor, since: int) -> list[Tensor]:
    """Return the tensors that require a gradient and at which a pass from y ends."""
    return [t for t in behind(y, since) if t._requires_grad and not passes_on(t, since)]


def _leading_to(wanted: Set[Tensor], root: Tensor, since: int) -> set[Tensor]:
    """Return the wanted tensors behind the root, and the tensors between them and the root.

    A tensor leads to a wanted one if one of its inputs does. The inputs, which are older, come
    first.
    """
    found = behind(root, since)
    leads = {x for x in wanted if x in found}
    for t in sorted(found, key=attrgetter("_time")):
        if not leads.isdisjoint(found[t]):
            leads.add(t)
    return leads


def inputs_of(t: Tensor) -> tuple[Tensor, ...]:
    """Return the tensors that t was made from. RuntimeError if a pass has dropped them.

    The inputs are read before `spent`, because a pass in another thread may be dropping the node at
    this moment, and it sets `spent` first.
    """
    node: Any = t.node
    inputs: tuple[Tensor, ...] = node.inputs
    if node.spent:
        raise RuntimeError(
            f"the record of {node.name} {t.shape} was already dropped by an earlier backward pass: "
            "run the whole forward pass again (an attribute may keep a part of it), or ask the "
            "first pass to keep it with retain_graph=True"
        )
    return inputs
