"""8 · Optimizers: what to do with a gradient.

How far should a step go against the gradient? The gradient says in which direction the loss grows,
and how steeply, but only at the present parameters. Each optimizer answers in its own way.

    SGD       a step of lr times the gradient. With **momentum** it moves like a rolling ball: steps
              in the same direction add up, and steps in opposite directions cancel
    Adam      divides each element's step by the recent size of its own gradient, so that all
              elements move about equally fast (Kingma & Ba 2014)
    AdamW     Adam, and each step also shrinks the weights a little. This **decay** works against
              learning the examples by heart. If it were added to the gradient, Adam would divide it
              too, and weights with large gradients would hardly decay. AdamW therefore shrinks the
              weights directly (Loshchilov & Hutter 2017)

An optimizer reads `.grad` and gives each parameter a new array, since arrays never change (chapter
1.1). A training loop is then five lines, which you write yourself:

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

Exercise 23 of `python -m demos learn`: write a step of momentum, and one of Adam.
"""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from minigrad.engine.autograd import grad_of
from minigrad.engine.tensor import Array, Tensor, describe

__all__ = [  # noqa: RUF022 (the order is the lesson's)
    "Optimizer",
    "SGD",
    "Adam",
    "AdamW",
    "clip_gradients",
    "warmup_cosine",
    "inverse_sqrt",
]


class Optimizer:
    """Parameters, a learning rate, and for each parameter what the optimizer remembers of it.

    `lr` may be set between steps: that is all a schedule does. Only one thread at a time may call
    the methods, while no other uses the parameters: of two steps at once, one may be lost.
    """

    # The names of what is remembered of a parameter; each subclass sets them.
    remembers: tuple[str, ...] = ()

    def __init__(self, parameters: Iterable[Tensor], lr: float) -> None:
        if not isinstance(parameters, Iterable):
            raise TypeError(
                f"an optimizer takes a list of tensors, such as model.parameters(): got a "
                f"{type(parameters).__name__}"
            )
        self.parameters = list(parameters)
        if not self.parameters:
            raise ValueError("an optimizer needs parameters: the list is empty")
        for i, p in enumerate(self.parameters):
            if not isinstance(p, Tensor) or p.node is not None or not p.requires_grad:
                raise TypeError(
                    f"parameters[{i}] is not a leaf that requires a gradient: {p!r:.60}"
                )
        if len({id(p) for p in self.parameters}) < len(self.parameters):
            raise ValueError("a parameter is in the list twice: it would be updated twice")
        self.lr = _checked_rate(lr)
        self.steps = 0
        self.memory: list[dict[str, Array]] = [{} for _ in self.parameters]

    def __repr__(self) -> str:
        """The options as they are now, and the number of parameters.

        >>> Adam([Tensor([1.0], requires_grad=True)], lr=0.02)
        Adam(lr=0.02, betas=(0.9, 0.999), eps=1e-08), 1 parameter
        """
        shown = ", ".join(f"{name}={value}" for name, value in self._options().items())
        count = len(self.parameters)
        return f"{type(self).__name__}({shown}), {count} parameter{'' if count == 1 else 's'}"

    def _options(self) -> dict[str, str]:
        """What the optimizer was made with, as text, from its attributes of the same names."""
        names = [name for name in inspect.signature(type(self)).parameters if name != "parameters"]
        kept = {name: getattr(self, name) for name in names if hasattr(self, name)}
        return {name: repr(value) for name, value in kept.items() if not callable(value)}

    def zero_grad(self) -> None:
        """Forget the gradients of the last step; `backward` would add to them."""
        for p in self.parameters:
            p.grad = None

    def step(self) -> None:
        """Move every parameter that has a gradient. RuntimeError if none has one."""
        self.lr = _checked_rate(self.lr)
        found = [grad_of(p) for p in self.parameters]
        if all(g is None for g in found):
            raise RuntimeError(
                "step() has nothing to do, because no parameter has a gradient: call "
                "loss.backward() before it"
            )
        self.steps += 1
        for i, (p, g) in enumerate(zip(self.parameters, found, strict=True)):
            if g is not None:
                self.update(p, g, self.memory[i])

    def update(self, p: Tensor, g: Array, memory: dict[str, Array]) -> None:
        """Move one parameter, given its gradient and what is remembered of it."""
        raise NotImplementedError(f"{type(self).__name__} defines no update")

    @staticmethod
    def give(p: Tensor, values: Array) -> None:
        """Give a parameter a new array. It is made read-only, and so is taken without a copy."""
        values = np.asarray(values)
        values.setflags(write=False)
        p.data = values

    def state_dict(self) -> dict[str, Array]:
        """All that a run needs to continue: step, rate, and the memory of each parameter.

        Besides it the options, such as betas, which `load_state_dict` compares.
        """
        options = {name: value for name, value in self._options().items() if name != "lr"}
        state: dict[str, Array] = {
            "options": np.frombuffer(json.dumps(options).encode(), np.uint8),
            "kind": np.frombuffer(type(self).__name__.encode(), np.uint8),
            "count": np.array(len(self.parameters)),
            "steps": np.array(self.steps),
            "lr": np.array(self.lr),
        }
        for i, memory in enumerate(self.memory):
            state |= {f"{i}.{name}": array.copy() for name, array in memory.items()}
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a state. ValueError, with nothing changed, for another optimizer's."""
        missing = {"kind", "count", "steps", "lr"} - state.keys()
        if missing:
            raise ValueError(
                f"this is not an optimizer's state: {', '.join(sorted(missing))} is missing"
            )
        kind, count = bytes(np.asarray(state["kind"])).decode(), int(state["count"])
        if (kind, count) != (type(self).__name__, len(self.parameters)):
            raise ValueError(
                f"this state is of {kind} with {count} parameters, not of {type(self).__name__} "
                f"with {len(self.parameters)}"
            )
        if "options" in state:  # (a state that an older version wrote has none)
            made = json.loads(bytes(np.asarray(state["options"])))
            for name, value in self._options().items():
                if name != "lr" and made.get(name, value) != value:
                    raise ValueError(
                        f"this state is of {kind} with {name}={made[name]}, and not with "
                        f"{name}={value}: make the optimizer with the same, and change it after "
                        "loading if that is meant"
                    )
        memory: list[dict[str, Array]] = [{} for _ in self.parameters]
        for key, value in state.items():
            place, dot, name = key.partition(".")
            if not dot:
                continue
            if not place.isdecimal() or int(place) >= len(self.parameters):
                raise ValueError(f"this state has {key} for {len(self.parameters)} parameters")
            p = self.parameters[int(place)]
            if np.shape(value) != (() if name == "t" else p.shape):
                raise ValueError(
                    f"this state does not fit parameter {place}, {describe(p)}: {key} has shape "
                    f"{np.shape(value)}"
                )
            if np.asarray(value).dtype.kind != "f" or not self._may_remember(name, value):
                raise ValueError(f"this state is damaged: {key} of parameter {place} cannot be")
            memory[int(place)][name] = np.array(value, None if name == "t" else p.dtype)
        for i, held in enumerate(memory):
            if held and held.keys() != set(self.remembers):
                raise ValueError(
                    f"this state keeps {', '.join(held)} of parameter {i}, not what this "
                    f"{kind} remembers: {', '.join(self.remembers) or 'nothing'}"
                )
        steps, lr = int(state["steps"]), float(state["lr"])
        if not (steps >= 0 and 0 <= lr < math.inf):
            raise ValueError(f"this state is damaged: it has steps {steps} and lr {lr}")
        self.steps, self.lr, self.memory = steps, lr, memory

    def _may_remember(self, name: str, value: Any) -> bool:
        """Whether this can be what a step left: a number of steps and a mean of squares are ≥ 0."""
        return name not in ("t", "v") or bool((np.asarray(value) >= 0).all())


def _checked_rate(lr: Any) -> float:
    """The rate as a number of Python's: one of NumPy's would make float32 arrays float64 ones."""
    if not isinstance(lr, int | float | np.number | np.ndarray) or not 0 <= float(lr) < math.inf:
        raise ValueError(f"lr must be a number, 0 or larger, and finite: got {lr!r}")
    return float(lr)


class SGD(Optimizer):
    """p ← p - lr · g; with momentum, velocity ← momentum · velocity + g, p ← p - lr · velocity.

    momentum  how much of its velocity a step keeps, from 0 to below 1
    """

    def __init__(
        self,
        parameters: Iterable[Tensor],
        lr: float,
        *,
        momentum: float = 0.0,
    ) -> None:
        super().__init__(parameters, lr)
        if not 0 <= momentum < 1:
            raise ValueError(f"momentum lies between 0 and 1: got {momentum}")
        self.momentum = momentum
        self.remembers = ("velocity",) if momentum else ()

    def update(self, p: Tensor, g: Array, memory: dict[str, Array]) -> None:
        """One step of one parameter."""
        if self.momentum:
            g = memory["velocity"] = self.momentum * memory.get("velocity", 0.0) + g
        self.give(p, p.data - self.lr * g)


class Adam(Optimizer):
    """p ← p - lr · m′/(√v′ + eps), with running means m of g and v of g² (Kingma & Ba 2014).

    m and v start at 0, and are too small at first: after t steps the weights in a mean with rate β
    sum to 1 - βᵗ and not to 1. So m′ = m/(1 - β₁ᵗ) and v′ = v/(1 - β₂ᵗ).

    betas  how much of the means a step keeps: m remembers 1/(1 - β₁) = 10 steps, v 1,000
    eps    keeps the quotient finite where every gradient was 0
    """

    remembers = ("m", "v", "t")

    def __init__(
        self,
        parameters: Iterable[Tensor],
        lr: float = 1e-3,
        *,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
    ) -> None:
        super().__init__(parameters, lr)
        if len(betas) != 2 or not all(0 <= beta < 1 for beta in betas):
            raise ValueError(f"betas lie between 0 and 1, and are two: got {betas}")
        for p in self.parameters:
            if not eps > 0 or p.dtype.type(eps) == 0:
                raise ValueError(f"eps must be above 0 in {describe(p)}, {p.dtype}: got {eps}")
        self.betas = betas
        self.eps = eps

    def update(self, p: Tensor, g: Array, memory: dict[str, Array]) -> None:
        """One step of one parameter."""
        if not memory:
            memory |= {"m": np.zeros_like(p.data), "v": np.zeros_like(p.data), "t": np.zeros(())}
        (beta1, beta2), m, v, t = self.betas, memory["m"], memory["v"], memory["t"]
        t += 1
        m += (1 - beta1) * (g - m)
        v += (1 - beta2) * (g * g - v)
        unbiased_m, unbiased_v = m / (1 - beta1 ** float(t)), v / (1 - beta2 ** float(t))
        step = np.asarray(self.lr * unbiased_m / (np.sqrt(unbiased_v) + self.eps))
        self.give(p, np.subtract(p.data, step, out=step if step.dtype == p.dtype else None))


class AdamW(Adam):
    """Adam, and p ← (1 - lr · decay) p before it, apart from the gradient (Loshchilov & Hutter).

    decay          each step multiplies a weight by 1 - lr · decay
    matrices_only  leave out parameters with fewer than two axes: biases, and the gains of norms
    """

    def __init__(
        self,
        parameters: Iterable[Tensor],
        lr: float = 1e-3,
        *,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        decay: float = 0.01,
        matrices_only: bool = False,
    ) -> None:
        super().__init__(parameters, lr, betas=betas, eps=eps)
        if not decay >= 0:
            raise ValueError(f"decay must not be negative: got {decay}")
        self.decay = decay
        self.matrices_only = matrices_only

    def update(self, p: Tensor, g: Array, memory: dict[str, Array]) -> None:
        """One step of one parameter."""
        if p.ndim > 1 or not self.matrices_only:
            self.give(p, p.data * (1 - self.lr * self.decay))
        super().update(p, g, memory)


def clip_gradients(parameters: Iterable[Tensor], max_norm: float) -> float:
    """Shorten all gradients together so that, as one vector, they are at most max_norm long.

    Returns the length before. All are multiplied by one factor, which keeps the direction. So at a
    rare steep place one step is short, and the run goes on. Call it in the thread that makes the
    steps. FloatingPointError if a gradient is not finite.
    """
    if not max_norm > 0:
        raise ValueError(f"max_norm must be above 0: got {max_norm}")
    if isinstance(parameters, Tensor) or not isinstance(parameters, Iterable):
        raise TypeError(
            "clip_gradients takes a list of tensors, such as model.parameters(): got a "
            f"{type(parameters).__name__}"
        )
    given = list({id(p): (p, g) for p in parameters if (g := grad_of(p)) is not None}.values())
    wrong = [describe(p) for p, g in given if not np.isfinite(g).all()]
    if wrong:
        raise FloatingPointError(
            f"the gradient of {', '.join(wrong)} is not finite: run the step under detect_anomaly()"
        )
    # Divided by the largest element first: squares of large gradients would overflow.
    largest = max([float(np.abs(g).max(initial=0)) for _, g in given], default=0.0)
    squares = [np.sum(np.square(g / (largest or 1.0), dtype=float)) for _, g in given]
    root = math.sqrt(math.fsum(squares))
    if largest * root > max_norm:
        for p, g in given:
            p.grad = np.asarray(g * (max_norm / largest / root), g.dtype)
    return largest * root


def warmup_cosine(step: int, *, peak: float, warmup: int, total: int, floor: float = 0.0) -> float:
    """The rate of a step, counted from 1: up to peak in a line, down to floor in half a cosine.

    The rate starts small, because early gradients point in all directions, and Adam's means are
    taken over few of them. It ends small, because large steps would keep the weights jumping.

    >>> [warmup_cosine(t, peak=1.0, warmup=2, total=6) for t in (1, 2, 4, 6)]
    [0.5, 1.0, 0.5, 0.0]
    """
    if step < 1:
        raise ValueError(f"steps are counted from 1: got {step}")
    if step <= warmup:
        return peak * step / warmup
    done = min((step - warmup) / max(total - warmup, 1), 1.0)
    return floor + (peak - floor) * (1 + math.cos(math.pi * done)) / 2


# Reference: no demo uses what follows.


def inverse_sqrt(step: int, *, d_model: int, warmup: int = 4000) -> float:
    """The paper's rate of a step, counted from 1 (Vaswani et al. 2017, equation 3).

        d_model^-½ · min(step^-½, step · warmup^-1½)

    A line up to the end of the warm-up, where both are equal, then 1/√step.

    >>> round(inverse_sqrt(4000, d_model=512) * (512 * 4000) ** 0.5, 12)
    1.0
    """
    if step < 1:
        raise ValueError(f"steps are counted from 1: got {step}")
    if warmup < 1:
        raise ValueError(f"warmup is a number of steps, 1 or more: got {warmup}")
    return float(min(step**-0.5, step * warmup**-1.5) / math.sqrt(d_model))
