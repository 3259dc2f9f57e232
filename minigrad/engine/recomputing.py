"""2.4 · Recomputing: memory for time.

Where does the memory of training go? Not into parameters: into the record, which keeps what every
operation's derivative will need until the backward pass. A network of N equal blocks keeps N
blocks' worth. But a block can be computed again from its inputs. This is known as *gradient
checkpointing*. `recompute(f, x)` computes f(x), notes which tensors f used, and drops the record.
When the backward pass arrives, it runs f once more and sends the gradient through the new record at
once. One block's record exists at a time, beside each block's input: of 8 blocks of 16 operations,
8 + 16 = 24 arrays instead of 8 · 16 = 128. The price is one more forward pass (Chen et al. 2016,
"Training deep nets with sublinear memory cost").

f may use tensors that are not among its arguments, such as the parameters of a layer. They get
their gradients too. The models of chapter 15 have it as an option, `gpt2(…, recompute=True)`, which
also takes care of dropout: each block is computed again with the numbers that it drew at first.

    >>> import numpy as np
    >>> from minigrad import Tensor, recompute
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

from minigrad.engine.record import AGAIN, WATCHERS, Node, is_recording, recording
from minigrad.engine.replay import ends, refuse_changed, replay
from minigrad.engine.tensor import Array, Tensor, now, result

_ARGUMENT = object()  # in the place of each Tensor among f's arguments


def recompute(f: Callable[..., Any], *xs: Any) -> Tensor:
    """Return f(*xs) and remember only its inputs; the record is made again when it is needed.

    f takes Tensors and returns one. It must give the same value each time: draw random numbers
    (dropout's) outside and pass them in. RuntimeError at `backward()` if it does not, or if one of
    its arguments, or of the parameters that it uses, has been changed in between. (Constants that f
    reaches by name are not remembered. If one changes, f gives another value the second time, which
    is an error.) Derivatives of any order are those of f.
    """
    if not is_recording():
        return f(*xs)  # type: ignore[no-any-return]
    since = now()  # what f computes is newer than this, and what it uses is older
    y = f(*xs)
    if not isinstance(y, Tensor):
        raise TypeError(f"recompute(f, …): f must return one Tensor, but gave {type(y).__name__}")
    if not y.requires_grad:
        return y
    arguments = [x for x in xs if isinstance(x, Tensor)]
    given = set(arguments)
    inputs = (*arguments, *[t for t in ends(y, since) if t not in given])
    others = [_ARGUMENT if isinstance(x, Tensor) else x for x in xs]
    value, made, as_before = y._array, now(), AGAIN.get()

    def again(*tensors: Any) -> Tensor:
        """Compute f again, with a record, as a function of every tensor that it depends on.

        Only its arguments are passed to f, since f reaches the others by name. Nothing is stored
        here, because this closure lives as long as the node.
        """
        arguments = iter(tensors)
        with recording(), as_before():
            y = f(*[next(arguments) if x is _ARGUMENT else x for x in others])
        _refuse_another_run(y, value, tensors, since)
        return y  # type: ignore[no-any-return]

    def backward(g: Array, y: Array, needs: tuple[bool, ...]) -> tuple[Any, ...]:
        """Return the gradients of the inputs: run f once more and replay the record of that run."""
        refuse_changed(inputs, made, "recompute(f, …) cannot run f again")
        wanted = {x for x, need in zip(inputs, needs, strict=True) if need}
        found = replay(again(*inputs), g, wanted, since=since)
        # (pop: an input at two positions gets its whole gradient at the first, and then zeros)
        return tuple([found.pop(x, np.zeros(x.shape, x.dtype)) for x in inputs])

    rule: Any = lambda: None  # what the node shows: a name, and what `create_graph` differentiates
    rule.__name__ = "recompute"
    rule.definition = again
    rule.compares_its_value = True
    node = Node(rule, inputs, {}, backward)
    for look in WATCHERS.get():
        look(rule, inputs, value, node)
    return result(value, node)


# ---------------------------------------------------- A first reading may stop here.
# What follows: what would make the second run another than the first.


def _refuse_another_run(y: Any, value: Array, inputs: tuple[Any, ...], since: int) -> None:
    """Refuse a second run that gave another value, or used other tensors from before the first."""
    given = set(inputs)
    if not (
        isinstance(y, Tensor)
        and np.array_equal(y._array, value, equal_nan=True)
        and all(t in given for t in ends(y, since) if t._time <= since)
    ):
        raise RuntimeError(
            "recompute(f, …): f gave another value the second time, or used other tensors; draw "
            "random numbers outside and pass them in, and leave what f uses as it is until "
            "backward()"
        )
