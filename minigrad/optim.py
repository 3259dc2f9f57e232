"""8 · Optimizers: what to do with a gradient.

How far should a step go against the gradient? The gradient says in which direction the loss grows,
and how steeply, but only at the present parameters. Each optimizer answers in its own way.

    SGD       a step of lr times the gradient. With **momentum** it moves like a rolling ball: steps
              in the same direction add up, and steps in opposite directions cancel
    Adam      divides each element's step by the recent size of its own gradient, so that all
              elements move about equally fast (Kingma & Ba 2014)
    AdamW     Adam, and each step also shrinks the weights a little. This **weight decay** works
              against learning the examples by heart. If it were added to the gradient, Adam would
              divide it too, and weights with large gradients would hardly decay. AdamW therefore
              shrinks the weights directly (Loshchilov & Hutter 2017)

An optimizer reads `.grad` and gives each parameter a new array, since arrays never change (chapter
1.1). It skips a **frozen** parameter, whose `requires_grad` was set to False. A training loop is
then five lines, which you write yourself:

    >>> import numpy as np
    >>> w = Tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = SGD([w], lr=0.25)
    >>> for step in range(20):
    ...     loss = (w * w).sum()
    ...     optimizer.zero_grad()
    ...     loss.backward()
    ...     optimizer.step()
    >>> np.abs(w.data).max() < 1e-5
    np.True_

What if a batch is too large for the memory? It may be cut into **shards**. If shard i has nᵢ
examples, and gᵢ is the gradient of their mean loss, then the mean over the batch has the gradient

    g = Σᵢ nᵢ gᵢ / Σᵢ nᵢ

`backward` adds to `.grad`, so the shards may follow one another in time, with one step after the
last: **gradient accumulation**. Or they are computed in different places (the demo `parallel`).

    >>> x, w = np.array([1.0, 2.0, 6.0]), Tensor(2.0, requires_grad=True)
    >>> for shard in (x[:1], x[1:]):
    ...     (len(shard) / len(x) * ((w - shard) ** 2).mean()).backward()
    >>> w.grad                                                  # 2 (w - mean of x)
    array(-2.)

Exercise 23 of `python -m demos learn`: write a step of momentum, and one of Adam.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from minigrad.engine.autograd import grad_of
from minigrad.engine.hints import in_our_words, refuse_name
from minigrad.engine.options import as_number
from minigrad.engine.tensor import Array, Tensor, describe
from minigrad.nn import Module

# (The order is the lesson's.)
__all__ = ["Optimizer", "SGD", "Adam", "AdamW", "clip_gradients", "warmup_cosine"]  # noqa: RUF022

if not TYPE_CHECKING:  # (a type checker would take every name)
    __getattr__ = lambda name: refuse_name(__name__, name)

Parameters = Iterable[Tensor | Mapping[str, Any]]  # (a mapping is a group: see below)


class Optimizer:
    """Parameters, a learning rate, and for each parameter a memory of its former gradients.

    `lr` may be set between steps: that is all a schedule does. Only one thread at a time may call
    the methods, while no other uses the parameters: of two steps at once, one may be lost.

    Parameters may be in groups that have options of their own (`_optimizers_of_groups`, below).
    """

    # The names of the arrays in a parameter's memory; each subclass sets them.
    remembers: tuple[str, ...] = ()
    # An optimizer for each group, with the group's options; [] if there are no groups.
    groups: list[Optimizer]

    def __new__(cls, parameters: Any = (), *arguments: Any, **options: Any) -> Self:
        """Make the optimizers of the groups, if there are groups; `__init__` does the rest."""
        optimizer = super().__new__(cls)
        optimizer.groups = _optimizers_of_groups(cls, parameters, arguments, options)
        return optimizer

    def __init__(self, parameters: Parameters, lr: float) -> None:
        if self.groups:
            parameters = [p for group in self.groups for p in group.parameters]
        self.parameters: list[Tensor] = _listed(parameters, "an optimizer")
        if not self.parameters:
            raise ValueError(
                "an optimizer needs a parameter: got none (chapter 7.1 says what counts)"
            )
        for i, p in enumerate(self.parameters):
            if not isinstance(p, Tensor) or p.node is not None or not p._parameter:
                what = "is not a leaf of minigrad that requires a gradient, frozen or not"
                raise TypeError(f"parameters[{i}] {what}: {p!r:.60}")
        if len({id(p) for p in self.parameters}) < len(self.parameters):
            raise ValueError(
                "a parameter is in the list twice, or in two groups: it would be updated twice"
            )
        self._rate = as_number("lr", lr, 0)
        if not self._rate and any(group.lr for group in self.groups):
            raise ValueError("a group's rate is a multiple of the optimizer's lr, which is 0")
        self._multiples = [group.lr / (self._rate or 1.0) for group in self.groups]
        self.steps = 0
        self.memory: list[dict[str, Array]] = [{} for _ in self.parameters]

    @property
    def lr(self) -> float:
        """The learning rate. If it is set, the rate of each group changes in proportion."""
        return self._rate  # type: ignore[no-any-return]

    @lr.setter
    def lr(self, rate: float) -> None:
        self._rate = as_number("lr", rate, 0)
        for group, multiple in zip(self.groups, self._multiples, strict=True):
            group.lr = multiple * self._rate

    def __repr__(self) -> str:
        """Show the kind and the number of parameters."""
        groups = f" in {len(self.groups)} groups" if self.groups else ""
        return f"{type(self).__name__} of {len(self.parameters)} parameters{groups}"

    def zero_grad(self) -> None:
        """Forget the gradients of the last step; `backward` would add to them."""
        for p in self.parameters:
            p.grad = None

    def step(self) -> None:
        """Move every parameter that requires a gradient and has one. RuntimeError if none does."""
        found = [grad_of(p) if p.requires_grad else None for p in self.parameters]
        if all(g is None for g in found):
            raise RuntimeError(
                "no parameter has a gradient: call loss.backward() before step(), or unfreeze one"
            )
        self.steps += 1
        updating = self._updating()
        for i, (p, g) in enumerate(zip(self.parameters, found, strict=True)):
            if g is not None:
                updating[i].update(p, g, self.memory[i])

    def update(self, p: Tensor, g: Array, memory: dict[str, Array]) -> None:
        """Move one parameter, given its gradient and its memory."""
        raise NotImplementedError(f"{type(self).__name__} defines no update")

    @staticmethod
    def give(p: Tensor, values: Array) -> None:
        """Give a parameter a new array. It is made read-only, and so is taken without a copy."""
        values = np.asarray(values)
        values.setflags(write=False)
        p.data = values

    def state_dict(self, model: Module | None = None) -> dict[str, Array]:
        """Return all that a run needs to continue: step, rate, and the memory of each parameter.

        A parameter has its name in the model; without a model, its place in the list is its name.
        """
        names = self._names(model)
        state: dict[str, Array] = {
            "kind": np.frombuffer(repr(self).encode(), np.uint8),
            "names": np.frombuffer("\n".join(names).encode(), np.uint8),
            "steps": np.array(self.steps),
            "lr": np.array(self.lr),
        }
        if self.groups:
            state["rates"] = np.array([group.lr for group in self.groups])
        for name, memory in zip(names, self.memory, strict=True):
            state |= {f"{name}.{what}": array.copy() for what, array in memory.items()}
        return state

    def load_state_dict(self, state: Mapping[str, Array], model: Module | None = None) -> None:
        """Continue from a state. ValueError, with nothing changed, for another optimizer's.

        Each parameter gets the memory of its name, so the order of the parameters does not matter.
        The options, such as betas, stay those that this optimizer, or its group, was made with.
        """
        if (made := bytes(state["kind"]).decode()) != repr(self):
            raise ValueError(f"this state is of {made}, and not of {self}")
        if "names" not in state:
            raise ValueError("this state does not name its parameters: train anew")
        named = bytes(state["names"]).decode().split("\n")
        places = {name: i for i, name in enumerate(self._names(model))}
        if other := sorted(places.keys() ^ set(named)):
            raise ValueError(f"either this state or this optimizer lacks {', '.join(other)}")
        memory: list[dict[str, Array]] = [{} for _ in self.parameters]
        for key in (key for key in state if "." in key):
            name, _, what = key.rpartition(".")
            p, array = self.parameters[places[name]], state[key]
            remembers = self._updating()[places[name]].remembers
            if what not in remembers or array.shape != (() if what == "t" else p.shape):
                raise ValueError(
                    f"this state does not fit parameter {name}, {describe(p)}, of which this "
                    f"{type(self).__name__} remembers {remembers}: {key} is {array.shape}"
                )
            memory[places[name]][what] = np.array(array, None if what == "t" else p.dtype)
        self.steps, self.lr, self.memory = int(state["steps"]), float(state["lr"]), memory
        for group, rate in zip(self.groups, state.get("rates", ()), strict=True):
            group.lr = float(rate)

    def _updating(self) -> list[Optimizer]:
        """Return for each parameter the optimizer that updates it: this one, or its group's."""
        by_group = [group for group in self.groups for _ in group.parameters]
        return by_group or [self] * len(self.parameters)

    def _names(self, model: Module | None) -> list[str]:
        """Return each parameter's name in the model; without a model, its place in the list."""
        if model is None:
            return [str(i) for i in range(len(self.parameters))]
        known = {p: name for name, p in model.named_parameters()}
        if other := [describe(p) for p in self.parameters if p not in known]:
            raise ValueError(
                f"the optimizer has parameters that the model does not have: {', '.join(other)}"
            )
        return [known[p] for p in self.parameters]


class SGD(Optimizer):
    """p ← p - lr · g; with momentum, velocity ← momentum · velocity + g, p ← p - lr · velocity.

    `momentum` is how much of its velocity a step keeps, from 0 to below 1.
    """

    @in_our_words
    def __init__(self, parameters: Parameters, lr: float, *, momentum: float = 0.0) -> None:
        super().__init__(parameters, lr)
        self.momentum = as_number("momentum", momentum, 0, 1)
        self.remembers = ("velocity",) if self.momentum else ()

    def update(self, p: Tensor, g: Array, memory: dict[str, Array]) -> None:
        """Make one step of one parameter."""
        if self.momentum:
            g = memory["velocity"] = self.momentum * memory.get("velocity", 0.0) + g
        self.give(p, p.data - self.lr * g)


class Adam(Optimizer):
    """p ← p - lr · m′/(√v′ + eps), with running means m of g and v of g² (Kingma & Ba 2014).

    m and v start at 0, and are too small at first: after t steps the weights in a mean with rate β
    sum to 1 - βᵗ and not to 1. So m′ = m/(1 - β₁ᵗ) and v′ = v/(1 - β₂ᵗ).

    betas  how much of the means a step keeps: m remembers 1/(1 - β₁) = 10 steps, v 1,000
    eps    keeps the quotient finite where every gradient was 0

    An element whose gradient is 0 moves on, because m remembers the gradients before. So the row of
    an embedding also moves in steps in which its token is absent:

    >>> rows = Tensor([1.0, 1.0], requires_grad=True)
    >>> optimizer = Adam([rows], lr=0.1)
    >>> for token in (0, 1):
    ...     rows.grad = np.eye(2)[token]
    ...     optimizer.step()
    ...     print(rows.data.round(2))
    [0.9 1. ]
    [0.83 0.93]
    """

    remembers = ("m", "v", "t")

    @in_our_words
    def __init__(
        self,
        parameters: Parameters,
        lr: float = 1e-3,
        *,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
    ) -> None:
        super().__init__(parameters, lr)
        if np.shape(betas) != (2,):
            raise ValueError(f"betas must be two numbers: got {betas!r:.60}")
        self.betas = tuple(as_number(f"betas[{i}]", betas[i], 0, 1) for i in (0, 1))
        self.eps = as_number("eps", eps, 0, ends="()")

    def update(self, p: Tensor, g: Array, memory: dict[str, Array]) -> None:
        """Make one step of one parameter."""
        if not memory:
            memory |= {"m": np.zeros_like(p.data), "v": np.zeros_like(p.data), "t": np.zeros(())}
        (beta1, beta2), m, v, t = self.betas, memory["m"], memory["v"], memory["t"]
        t += 1
        m += (1 - beta1) * (g - m)
        v += (1 - beta2) * (g * g - v)
        unbiased_m, unbiased_v = m / (1 - beta1 ** float(t)), v / (1 - beta2 ** float(t))
        step = np.asarray(self.lr * unbiased_m / (np.sqrt(unbiased_v) + self.eps))
        self.give(p, np.subtract(p.data, step, out=step))


class AdamW(Adam):
    """Adam, and p ← (1 - lr · weight_decay) p before it, apart from the gradient.

    Each step multiplies a weight by 1 - lr · weight_decay.

    Biases and the gains of norms, which have one axis, are mostly left as they are. They get a
    group of their own, in which an option has another value:

    >>> w, b = Tensor(np.ones((2, 3)), requires_grad=True), Tensor(np.ones(3), requires_grad=True)
    >>> optimizer = AdamW([{"params": [w]}, {"params": [b], "weight_decay": 0.0}], weight_decay=0.1)
    >>> optimizer, [group.weight_decay for group in optimizer.groups]
    (AdamW of 2 parameters in 2 groups, [0.1, 0.0])
    """

    @in_our_words
    def __init__(
        self,
        parameters: Parameters,
        lr: float = 1e-3,
        *,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.01,
    ) -> None:
        super().__init__(parameters, lr, betas=betas, eps=eps)
        self.weight_decay = as_number("weight_decay", weight_decay, 0)

    def update(self, p: Tensor, g: Array, memory: dict[str, Array]) -> None:
        """Make one step of one parameter."""
        self.give(p, p.data * (1 - self.lr * self.weight_decay))
        super().update(p, g, memory)


# ---------------------------------------------------- A first reading may stop here.
# What follows: shorter gradients, a rate that changes, and groups of parameters.


def clip_gradients(parameters: Iterable[Tensor], max_norm: float) -> float:
    """Shorten all gradients together so that, as one vector, they are at most max_norm long.

    Returns the length before. All are multiplied by one factor, which keeps the direction. So at a
    rare steep place one step is short, and the run goes on. Call it in the thread that makes the
    steps. A frozen parameter does not count, whatever its `.grad`. FloatingPointError if a gradient
    is not finite, RuntimeError if there is none.
    """
    max_norm = as_number("max_norm", max_norm, 0, ends="(]")
    listed = _listed(parameters, "clip_gradients")
    given = [(p, g) for p in listed if p.requires_grad and (g := grad_of(p)) is not None]
    if not given:
        raise RuntimeError("clip_gradients found no gradient: call loss.backward() before it")
    if wrong := [describe(p) for p, g in given if not np.isfinite(g).all()]:
        raise FloatingPointError(
            f"the gradient of {', '.join(wrong)} is not finite: run the step under detect_anomaly()"
        )
    # Divided by the largest element first: squares of large gradients would overflow.
    largest = max(float(np.abs(g).max(initial=0)) for _, g in given)
    squares = [np.sum(np.square(g / (largest or 1.0), dtype=float)) for _, g in given]
    root = math.sqrt(math.fsum(squares))
    if largest * root > max_norm:
        for p, g in given:
            p.grad = np.asarray(g * (max_norm / largest / root), g.dtype)
    return largest * root


def warmup_cosine(step: int, *, peak: float, warmup: int, total: int, floor: float = 0.0) -> float:
    """Return the rate of a step, from 1 on: up to peak in a line, down to floor in half a cosine.

    The rate starts small, because early gradients point in all directions, and Adam's means are
    taken over few of them. It ends small, because large steps would keep the weights jumping.

    >>> [warmup_cosine(t, peak=1.0, warmup=2, total=6) for t in (1, 2, 4, 6)]
    [0.5, 1.0, 0.5, 0.0]
    """
    if step < warmup:
        return peak * step / warmup
    done = min((step - warmup) / max(total - warmup, 1), 1.0)
    return floor + (peak - floor) * (1 + math.cos(math.pi * done)) / 2


def _listed(parameters: Iterable[Any], asked: str) -> list[Any]:
    """Return the parameters as a list. TypeError for a model, and for a single Tensor."""
    if isinstance(parameters, Tensor) or not isinstance(parameters, Iterable):
        kind = type(parameters).__name__
        raise TypeError(f"{asked} takes model.parameters(), or a list: got a {kind}")
    return list(parameters)


def _optimizers_of_groups(
    kind: type[Optimizer], parameters: Any, arguments: tuple[Any, ...], options: dict[str, Any]
) -> list[Optimizer]:
    """Return `optimizer.groups`: an optimizer for each group, made with the group's options.

    A group is a dict, as in PyTorch: "params", and the options that have another value for these
    parameters. `optimizer.step()` lets each of them update its parameters. They take no steps of
    their own, and the memory is the optimizer's. TypeError for a key that it does not know.

    A schedule keeps the ratios of rates: if a group was made with twice the optimizer's lr, then
    `optimizer.lr = rate` gives the group twice the rate, as PyTorch's schedules do. The rate of one
    group is `optimizer.groups[1].lr`; if you set it, it stays until `optimizer.lr` is set again.
    """
    listed = parameters if isinstance(parameters, list | tuple) else []
    if not any(isinstance(x, Mapping) for x in listed):
        return []
    signature = inspect.signature(kind.__init__)
    names = list(signature.parameters)[2:]  # (without self, and the parameters themselves)
    groups = []
    for i, group in enumerate(listed):
        if not isinstance(group, Mapping) or "params" not in group:
            raise TypeError(f'group {i} must be a dict with "params": got {group!r:.60}')
        if unknown := ", ".join(map(str, group.keys() - {"params", *names})):
            raise TypeError(
                f"{kind.__name__} does not know {unknown}, of group {i}: use {', '.join(names)}"
            )
        bound = signature.bind(None, _listed(group["params"], f"group {i}"), *arguments, **options)
        bound.arguments.update({name: group[name] for name in names if name in group})
        groups.append(kind(*bound.args[1:], **bound.kwargs))
    return groups
