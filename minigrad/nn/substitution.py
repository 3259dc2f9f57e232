"""Substitution: a model that is called with other parameters than its own.

What would the loss be after a step of gradient descent, and how does it depend on the weights
before the step? An optimizer cannot say: it gives each parameter a new array, and an array has no
record. But a parameter's place in the model can be taken by a result for the time of one call. The
call is then recorded as a function of whatever the result was made of. So a step can be
differentiated (MAML: Finn et al. 2017), and a network can make the weights of another (Ha et al.
2016).

Here w₀ = 1 is moved by one inner step, w₁ = w₀ - ¼ ∂L/∂w₀ with L = (w₀ - 3)², and the loss after
the step is (w₁ - 3)² = ¼ (w₀ - 3)²:

    >>> model = Linear(1, 1, bias=False, rng=np.random.default_rng(0))
    >>> model.load_state_dict({"weight": [[1.0]]})
    >>> def loss(parameters):
    ...     return ((functional_call(model, parameters, np.ones((1, 1))) - 3.0) ** 2).sum()
    >>> start = dict(model.named_parameters())
    >>> slopes = gradients(loss(start), [*start.values()], create_graph=True)
    >>> moved = {name: p - 0.25 * g for (name, p), g in zip(start.items(), slopes)}
    >>> loss(moved).backward()                       # through the step
    >>> moved["weight"].data, model.weight.grad      # ½ (w₀ - 3)
    (array([[2.]]), array([[-1.]]))
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, ParamSpec, TypeVar

from minigrad.engine.record import AGAIN, setting
from minigrad.engine.tensor import Tensor
from minigrad.nn.module import Module, _held, _members

P = ParamSpec("P")
R = TypeVar("R")


# Reference: no demo uses what follows.


def functional_call(
    model: Callable[P, R], parameters: Mapping[str, Any], /, *xs: P.args, **options: P.kwargs
) -> R:
    """Return model(*xs, **options), computed with these parameters in the place of its own.

    parameters  by the names of `named_parameters` (or other leaves, by those of `state_dict`): a
                Tensor, which may be a result, or an array of the same shape. Those that are not
                given stay. A tied parameter has one name, its first, and is replaced everywhere.

    `recompute` (chapter 2.4) inside of the model replaces them again in its second run. ValueError
    for a name that the model does not have, and for another shape. Afterwards the model is what it
    was, also after an error. Meanwhile no other thread may use it.
    """
    module: Any = model
    own = {name: t for name, t in _members(module) if isinstance(t, Tensor)}
    others: dict[Tensor, Tensor] = {}
    for name, x in parameters.items():
        if name not in own:
            known = ", ".join(own)
            raise ValueError(f"{name} is not a name in this {type(model).__name__}: {known:.200}")
        p = own[name]
        others[p] = x if isinstance(x, Tensor) else Tensor(x, dtype=p.dtype)
        if others[p].shape != p.shape:
            raise ValueError(f"{name} has shape {p.shape}: got {others[p].shape}")
    places = [(holder, key, p) for holder, key, p in _holders(module) if p in others]
    replaced = partial(_replaced, places, others, AGAIN.get())
    with replaced():
        return model(*xs, **options)


@contextmanager
def _replaced(
    places: list[tuple[Any, Any, Tensor]], others: dict[Tensor, Tensor], around: Any
) -> Iterator[None]:
    """Have the others in the places of the model's own parameters, until the block ends.

    `around` makes the block of a functional_call in which this one is.
    """
    with around(), setting(AGAIN, partial(_replaced, places, others, around)):
        before = [holder[key] for holder, key, _ in places]  # (the others, in a second run within)
        try:
            for holder, key, p in places:
                holder[key] = others[p]
            yield
        finally:
            for (holder, key, _), x in zip(places, before, strict=True):
                holder[key] = x


def _holders(model: Module) -> Iterator[tuple[Any, Any, Tensor]]:
    """Yield each place of a tensor, a tied one's too: the dict or list, the key, and the tensor."""
    seen: set[int] = set()
    waiting: list[Any] = [model]
    while waiting:
        owner = waiting.pop()
        if id(owner) not in seen:
            seen.add(id(owner))
            for key, member in _held(owner):
                waiting.append(member)
                if isinstance(member, Tensor):
                    yield vars(owner) if isinstance(owner, Module) else owner, key, member
