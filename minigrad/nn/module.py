"""7.1 · Module: parameters that can be found by their names.

How does an optimizer find the parameters of a model that was written by someone else? They are
attributes of objects, and objects of objects. A `Module` is an object whose attributes are leaf
tensors or further modules, or lists or dicts of them; walking through `vars(self)` finds them all,
and their names fall out of the attributes' names: `blocks.0.w_q.weight` is the attribute `weight`
of the attribute `w_q` of member 0 of the attribute `blocks`. Nothing is registered anywhere.

The **parameters** are the leaves that require a gradient, and those that did until they were
**frozen** (`p.requires_grad = False`). Optimizers skip frozen parameters. The **state**, which is
saved, is every leaf, constants too.

Some attributes are not what they seem. The members of a set have no names, so a leaf or layer in a
set is an error. A result hides the leaf that it was made from: of `self.b = 0.1 * Tensor(…,
requires_grad=True)` nothing would be trained or saved, and where that is known it is an error. So
is a result in the place of a parameter, such as a transposed weight: compute it at each call. And a
constant that you only look at becomes a part of the state: keep its array, `self.seen = y.data`.

    >>> class Scaled(Module):
    ...     def __init__(self):
    ...         self.factor = Tensor(2.0, requires_grad=True)
    ...     def __call__(self, x):
    ...         return self.factor * x
    >>> model = Scaled()
    >>> model.load_state_dict({"factor": np.array(3.0)})
    >>> model(Tensor(5.0)), model.state_dict()
    (Tensor(15., node=multiply), {'factor': array(3.)})
    >>> model.factor.requires_grad = False                      # frozen
    >>> model
    Scaled(
        factor () frozen)
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from inspect import unwrap
from typing import TYPE_CHECKING, Any, Self, overload

import numpy as np

from minigrad.engine.hints import OTHER_NAMES, in_our_words
from minigrad.engine.options import check_floating, converted
from minigrad.engine.record import WATCHERS
from minigrad.engine.replay import ends
from minigrad.engine.tensor import Array, Tensor, real_array

if TYPE_CHECKING:
    from typing import ParamSpec, Protocol, TypeVar

    P = ParamSpec("P")
    R = TypeVar("R", covariant=True)

    class _HasForward(Protocol[P, R]):
        def forward(self, *args: P.args, **options: P.kwargs) -> R: ...


class Module:
    """An object with parameters. Subclasses set them as attributes and define `__call__`.

    Or they define forward(…), as in PyTorch, and `__call__` calls it, in a subclass of Linear too:
    there `super().__call__(x)` is what Linear computes.

    Several threads may compute with one module. Only one thread at a time may change it (`train`,
    `eval`, `load_state_dict`, `astype`, an optimizer's step), while no other computes.
    """

    # True while the model is being trained: Dropout reads it. `train` and `eval` set it.
    training: bool = True

    def __init_subclass__(cls, **options: Any) -> None:
        """Wrap two methods of the class: `__call__` and `__init__`.

        The new `__call__` notes in `CALLS` that it is running, so `Steps` (chapter 5) knows in
        which layer an operation is computed. Without `Steps` it costs 0.2 µs a call. An inherited
        `__call__` that calls no forward(…) gives way to it. The new `__init__` completes Python's
        error if `rng` is missing (it says how to make one). Layers of other packages and of yours
        get both without a line of their own.
        """
        super().__init_subclass__(**options)
        if "__init__" in vars(cls):
            cls.__init__ = in_our_words(cls.__init__)  # type: ignore[method-assign]
        owner = next(ancestor for ancestor in cls.__mro__ if "__call__" in vars(ancestor))
        if owner is cls or not issubclass(owner, Module):  # (its own, or a mixin's)
            cls.__call__ = _noting(cls.__call__)  # type: ignore[method-assign]
        elif hasattr(cls, "forward") and "forward" not in unwrap(owner.__call__).__code__.co_names:
            cls.__call__ = _noting(Module.__call__)  # type: ignore[method-assign]

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute. TypeError for a result in the place of a parameter."""
        old = vars(self).get(name)
        if isinstance(value, Tensor) and value.node and isinstance(old, Tensor) and old._parameter:
            raise TypeError(
                f"{name} is a parameter, and the result of {value.node.name} would not follow what "
                f"it was made from: set {name}.data, or compute {name} whenever the model is called"
            )
        super().__setattr__(name, value)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Raise AttributeError; if the name is PyTorch's, say what to write here."""
            if here := OTHER_NAMES.get(f".{name}"):
                raise AttributeError(f"a Module has no .{name}: use {here}", name=name, obj=None)
            return super().__getattribute__(name)  # raises Python's error; a property runs again

    @overload  # (for a type checker: what forward(…) returns, if the class has it)
    def __call__(self: _HasForward[P, R], *args: P.args, **options: P.kwargs) -> R: ...
    @overload
    def __call__(self, *args: Any, **options: Any) -> Any: ...
    def __call__(self, *args: Any, **options: Any) -> Any:
        """Compute the layer's output: every subclass defines this, or forward(…)."""
        if not hasattr(self, "forward"):
            raise NotImplementedError(f"{type(self).__name__} defines no __call__")
        return self.forward(*args, **options)

    def named_parameters(self) -> Iterator[tuple[str, Tensor]]:
        """Yield every parameter with its dotted name, in the order the attributes were set.

        A list, tuple or dict counts through its members, `blocks.0.weight`. A parameter
        that is reached by two names comes once, under the first.
        """
        for name, leaf in _leaves(self).items():
            if leaf._parameter:
                yield name, leaf

    def parameters(self) -> list[Tensor]:
        """Return every parameter, frozen ones too, in the same order."""
        return [parameter for _, parameter in self.named_parameters()]

    def zero_grad(self) -> None:
        """Forget the gradients of all parameters."""
        for p in self.parameters():
            p.grad = None

    def named_modules(self) -> Iterator[tuple[str, Module]]:
        """Yield this module, under the name "", and every module within it with its dotted name."""
        for name, member in _members(self):
            if isinstance(member, Module):
                yield name, member

    def modules(self) -> list[Module]:
        """Return this module and every module within it."""
        return [module for _, module in self.named_modules()]

    def state_dict(self) -> dict[str, Array]:
        """Return a copy of every leaf's values, frozen ones too, under their dotted names."""
        return {name: leaf.data.copy() for name, leaf in _leaves(self).items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Set every leaf from a state; nothing is set unless everything fits.

        ValueError, with every name that is missing, unexpected or of another shape. Values take the
        dtype of the leaf, and ValueError if they are of another kind: integers for a floating leaf
        may be the bits of another format. Optimizers keep their hold of the parameters.
        """
        leaves = _leaves(self)
        values = {
            name: x.data if isinstance(x, Tensor) else real_array(x, name)
            for name, x in state.items()
        }
        extra = [f"{name} is unexpected" for name in values if name not in leaves]
        wrong = [f"{name} is missing" for name in leaves if name not in values] + extra
        for name, leaf in leaves.items():
            x = values.get(name, leaf.data)
            if x.shape != leaf.shape:
                wrong.append(f"{name} has shape {x.shape}, not {leaf.shape}")
            elif x.dtype.kind != leaf.dtype.kind:
                wrong.append(f"{name} has dtype {x.dtype}, which cannot become {leaf.dtype}")
        if wrong:
            message = f"this state does not fit {type(self).__name__}: {'; '.join(wrong)}"
            if extra:
                message += " (a Tensor that a call keeps is state, too: keep its .data)"
            raise ValueError(message)
        fitting = {name: converted(values[name], x.dtype, name) for name, x in leaves.items()}
        for name, leaf in leaves.items():
            leaf._take(fitting[name], leaf.dtype)

    def train(self, mode: bool = True) -> Self:
        """Set this module and all within it to training, and return it."""
        for module in self.modules():
            module.training = mode
        return self

    def eval(self) -> Self:
        """Set this module and all within it to evaluation, and return it: dropout drops nothing."""
        return self.train(False)

    def astype(self, dtype: Any) -> Self:
        """Turn every floating leaf into another dtype, in place. Gradients are dropped."""
        if np.dtype(dtype).kind != "f":
            raise ValueError(f"a model's parameters have a floating dtype: got {np.dtype(dtype)}")
        check_floating(np.dtype(dtype), f"{type(self).__name__}.astype")
        for leaf in _leaves(self).values():
            if leaf.dtype.kind == "f":
                leaf._take(leaf.data, np.dtype(dtype).newbyteorder("="))
                leaf.grad = None
        return self

    def __repr__(self) -> str:
        """Show the class, and each parameter's name and shape, and whether it is frozen."""
        text = f"{type(self).__name__}("
        for name, parameter in self.named_parameters():
            text += f"\n    {name} {parameter.shape}"
            if not parameter.requires_grad:
                text += " frozen"
        return text + ")"


# ---------------------------------------------------- A first reading may stop here.
# What follows: which modules are being called, and how members are found.


class _Calls(threading.local):
    """The calls of modules that are running in this thread, the outermost first."""

    def __init__(self) -> None:
        self.running: list[tuple[Module]] = []  # a new tuple for each call


CALLS = _Calls()


def _noting(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return `call` with a note in `CALLS` while it runs; `super().__call__` is not noted again."""

    @functools.wraps(call)
    def noted(self: Module, /, *args: Any, **options: Any) -> Any:
        running = CALLS.running if WATCHERS.get() else None
        if running is None or (running and running[-1][0] is self):
            return call(self, *args, **options)
        running.append((self,))
        try:
            return call(self, *args, **options)
        finally:
            running.pop()

    return noted


def _leaves(owner: Module) -> dict[str, Tensor]:
    """Return every leaf under its dotted name. TypeError for a result of other leaves alone."""
    tensors = {name: t for name, t in _members(owner) if isinstance(t, Tensor)}
    leaves = {name: t for name, t in tensors.items() if t.node is None}
    if any(t._parameter and not t.requires_grad for t in leaves.values()):
        return leaves  # (of a result of frozen leaves alone the record knows none)
    for name, t in tensors.items():
        if t.node is None:
            continue
        try:
            found = ends(t, 0)
        except RuntimeError:  # a backward pass has dropped a part of its record
            continue
        if found and {*leaves.values()}.isdisjoint(found):
            raise TypeError(
                f"{name} is the result of {t.node.name}, and only leaves are trained and saved: "
                "make a leaf of the finished array, Tensor(array, requires_grad=True), or compute "
                f"{name} whenever the model is called, or keep it outside of the model"
            )
    return leaves


def _members(owner: Module) -> Iterator[tuple[str, Tensor | Module]]:
    """Yield the owner, and each module and tensor that it holds, once and under its dotted name."""
    seen: set[int] = set()
    named: dict[str, Any] = {}
    waiting: list[tuple[str, Any]] = [("", owner)]  # a stack: the next one is the last
    while waiting:
        name, value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, Module | Tensor):
            if name in named and isinstance(value, Tensor):
                raise ValueError(
                    f"two tensors of this {type(owner).__name__} are called {name}, of shapes "
                    f"{named[name].shape} and {value.shape}: a state would lose one; rename it"
                )
            named[name] = value
            yield name, value
        if isinstance(value, set | frozenset) and any(
            isinstance(x, Module | Tensor) for x in value
        ):
            raise TypeError(f"{name} is a set, in which nothing has a name: use a list")
        held = [(f"{name}.{key}" if name else str(key), x) for key, x in _held(value)]
        waiting += reversed(held)


def _held(owner: Any) -> Iterable[tuple[Any, Any]]:
    """Return the names and values in a module, a dict or a sequence; () for anything else."""
    if isinstance(owner, Module):
        return vars(owner).copy().items()  # (`eval` in another thread may add `training` meanwhile)
    if isinstance(owner, Mapping):
        return owner.items()
    has_members = isinstance(owner, Sequence) and not isinstance(owner, str | bytes | range)
    return enumerate(owner) if has_members else ()
