"""2.4 · Recomputing: memory for time.

Where does the memory of training go? Not into parameters: into the record, which keeps what
every operation's derivative will need until the replay comes by. A network of N equal blocks
keeps N blocks' worth. But a block can be computed again from its inputs. `recompute(f, x)` computes
f(x) and forgets how; when the replay arrives, it runs f once more, this time with a record, and
sends the gradient through it at once. One block's record exists at a time, beside each block's
input: of 8 blocks of 16 operations, 24 arrays instead of 128. The price is one more forward pass
(Chen et al. 2016, "Training deep nets with sublinear memory cost").

f may use tensors it was not handed, such as the parameters of a layer. They get their gradients
too: they are found in the record of the first run, before it is dropped.

    >>> w = Tensor([2.0, 3.0], requires_grad=True)
    >>> x = Tensor([1.0, 10.0], requires_grad=True)
    >>> y = recompute(lambda x: np.tanh(w * x), x)
    >>> [t is w or t is x for t in y.node.inputs], y.node.name    # and nothing in between
    ([True, True], 'recompute')
    >>> y.backward([1.0, 1.0])
    >>> np.allclose(w.grad, x.data * (1 - np.tanh(w.data * x.data) ** 2))
    True
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minigrad.record import Node, is_recording, recording, watched
from minigrad.replay import replay
from minigrad.tensor import Array, Tensor, _now, _wrap, describe

_HANDED = object()  # stands where a tensor stood among the arguments


def recompute(f: Callable[..., Any], *xs: Any) -> Tensor:
    """f(*xs), of which only the inputs are remembered; the record is made again when it is needed.

    f takes Tensors and returns one. It must give the same value each time: draw random numbers
    (dropout's) outside and hand them in. RuntimeError at `backward()` if it does not, or if
    something it uses has changed in between. Derivatives of any order are those of f.
    """
    if not is_recording():
        return f(*xs)  # type: ignore[no-any-return]
    start = _now()  # what f records is newer, and what is older lies outside
    y = f(*xs)
    if not isinstance(y, Tensor):
        raise TypeError(f"recompute(f, …): f must return one Tensor, but gave {type(y).__name__}")
    if not y.requires_grad:
        return y
    handed = {id(x) for x in xs}
    found = [t for t in _behind(y, handed, start) if id(t) not in handed]
    inputs = (*[x for x in xs if isinstance(x, Tensor)], *found)
    borders = {id(x) for x in inputs}
    made = _now()
    value = y._array.view()
    value.flags.writeable = False

    others = [_HANDED if isinstance(x, Tensor) else x for x in xs]

    def again(*tensors: Any) -> Tensor:
        """f, as a function of all it depends on; those that it was not handed, it has anyway.

        It is told them, and does not keep them: the node that holds this outlives the replay.
        """
        for x in tensors:
            if max(x._written) > made:
                raise RuntimeError(
                    f"recompute(f, …) cannot run f again: {describe(x)} was changed after the "
                    "forward pass; run the forward pass again after each change"
                )
        handed = iter(tensors)
        with recording(True):
            now: Tensor = f(*[next(handed) if given is _HANDED else given for given in others])
        if not np.array_equal(now.data, value, equal_nan=True):
            raise RuntimeError(
                "recompute(f, …): f gave another value the second time; draw random numbers "
                "outside and hand them in, and leave what f uses as it is until backward()"
            )
        return now

    def backward(g: Array, y: Array, needs: tuple[bool, ...]) -> tuple[Any, ...]:
        now = again(*inputs)
        wanted = {id(x) for x, need in zip(inputs, needs, strict=True) if need}
        arrived = replay(now, g, wanted, False, False, borders=borders, hooks=False)
        gradients = {id(x): share for x, share in arrived}
        return tuple(
            gradients.pop(id(x), np.zeros(x.shape, x.dtype)) if need else None
            for x, need in zip(inputs, needs, strict=True)
        )

    def rule() -> None:
        """The name and the definition that the node shows to others."""

    rule.__name__ = "recompute"
    rule.definition = again  # type: ignore[attr-defined]
    node = Node(rule, inputs, {}, backward, made)
    watched(rule, inputs, value, node)
    return _wrap(value, node, y._written)


def _behind(y: Tensor, handed: set[int], start: int) -> list[Tensor]:
    """The tensors from before the start that y depends on directly: leaves, and older results."""
    older: list[Tensor] = []
    met: set[int] = set()
    stack = [y]
    while stack:
        t = stack.pop()
        if id(t) in met or not t.requires_grad:
            continue
        met.add(id(t))
        if t.node is None or t.node.made < start or id(t) in handed:
            older.append(t)
        else:
            stack.extend([x for x in t.node.inputs if isinstance(x, Tensor)])
    return older
