"""4.2 · Claims: what a gradient says, made ready to be checked.

What exactly is compared with a finite difference? A number that moves when an input moves. At first
order it is L = ⟨seed, f(x₁, …, xₙ)⟩, and the gradients of L are the claim. For f(x) = x³ and the
seed 1 the claim is 3x².

Second order needs no new idea. The gradient times a direction v is itself a number that moves with
x: φ = ⟨∂L/∂x, v⟩. For x³ it is 3x² v, and its derivative 6x v is a claim of the same kind. φ also
moves with the seed, and that derivative is a claim as well. (If a rule computes with `g.data`, its
first derivatives are right, its second derivatives in x are right, and those in the seed are 0.)

    >>> from minigrad.checks.claims import first_order
    >>> rng = np.random.default_rng(0)
    >>> claims = first_order(lambda x: (x * x).sum(), [np.array([1.0, 3.0])], rng)
    >>> claims.analytic[0][0], claims.evaluate(claims.points)
    (array([2., 6.]), array([10.]))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from minigrad.engine.autograd import gradients
from minigrad.engine.tensor import Array, Tensor


@dataclass(frozen=True)
class Diagnosis:
    """A mistake that explains a wrong gradient: its kind, a sentence, and the numbers that fit."""

    kind: str
    sentence: str
    evidence: str

    def __str__(self) -> str:
        return f"{self.sentence} ({self.evidence[0].upper()}{self.evidence[1:]}.)"


class GradientError(AssertionError):
    """The analytic and the numerical gradient differ by more than both tolerances allow.

    rule       the name of the operation that is wrong, or None if no single one is
    input      which of that operation's inputs has the wrong VJP (from 0 on), or None
    diagnoses  the mistakes that explain it (chapters 4.5 to 4.8), the most specific first
    """

    def __init__(
        self,
        message: str = "",
        *,
        rule: str | None = None,
        input: int | None = None,
        diagnoses: tuple[Diagnosis, ...] = (),
    ) -> None:
        super().__init__(message)
        self.rule, self.input, self.diagnoses = rule, input, diagnoses


@dataclass
class Claims:
    """Scalar functions φⱼ of several points, with their analytic gradients.

    The first order has one φ: L = ⟨seed, f(x₁, …, xₙ)⟩. The second order has one for each
    input, φⱼ = ⟨∂L/∂xⱼ, vⱼ⟩, and the seed is a further point. One comparison serves both.
    """

    points: list[Array]
    names: list[str]
    positions: list[int]  # which of f's arguments each point is
    derivatives: list[str]  # what the gradient of each φ is called, `{}` standing for the point
    evaluate: Callable[[list[Array]], Array]  # points → (m,), the value of every φ
    magnitude: Array  # (m,), the size of what is added up in φ, which sets its rounding error
    analytic: list[list[Array]]  # analytic[j][i] = ∂φⱼ/∂pointᵢ
    output: Callable[..., Tensor]  # points as tensors → f's output

    def gradients(self, points: list[Array]) -> list[Array]:
        """∂L/∂point at other points, the seed (the last of them) excepted."""
        return _first_gradients(self.output, points, self.names[:-1])

    def named(self, i: int) -> str:
        """What pointᵢ is called in a sentence."""
        name = self.names[i]
        return name[1:-1] if name.startswith("(input ") else name

    def along(self, i: int) -> Callable[[Array], Array]:
        """All φ as functions of pointᵢ alone."""
        return lambda point: self.evaluate([*self.points[:i], point, *self.points[i + 1 :]])


def first_order(
    f: Callable[..., Any], inputs: Sequence[Any], rng: np.random.Generator, *, alone: bool = False
) -> Claims:
    """L = ⟨seed, f(x)⟩ with a random seed; for a scalar f the seed is 1, and L is f itself.

    A rule that is checked alone (chapter 4.4) gets a random seed for a scalar, too: a VJP that
    ignores g is right for g = 1.
    """
    arrays = [x.data if isinstance(x, Tensor) else np.asarray(x) for x in inputs]
    positions = [i for i, a in enumerate(arrays) if a.dtype.kind == "f"]
    if not positions:
        raise ValueError(
            "gradcheck has nothing to check: no input has a floating dtype (write 1.0, not 1)"
        )
    given = [getattr(x, "name", None) for x in inputs]
    names = [_in_one_line(str(given[i])) if given[i] else f"(input {i})" for i in positions]

    def output(*points: Tensor) -> Tensor:
        arguments: list[Any] = list(arrays)
        for position, point in zip(positions, points, strict=True):
            arguments[position] = point
        y = f(*arguments)
        if not isinstance(y, Tensor):
            rule = isinstance(y, tuple) and any(map(callable, y))
            remark = " (is @primitive missing above it?)" * rule
            raise ValueError(
                f"gradcheck: f must return one Tensor, but gave {type(y).__name__}{remark}"
            )
        return y

    points = [arrays[i].astype(float) for i in positions]
    for name, point in zip(names, points, strict=True):
        if not np.isfinite(point).all():
            raise ValueError(f"gradcheck: {name} is not finite, and no difference can move it")
    y, again = output(*_tensors(points, names)), output(*_tensors(points, names))
    if not np.isfinite(y.data).all():
        raise ValueError("gradcheck: f is not finite at the inputs")
    if not np.array_equal(y.data, again.data):
        raise ValueError(
            "gradcheck: two calls of f with equal inputs gave different values; "
            "draw random numbers outside f and hand them in"
        )
    random = alone or y.size != 1
    seed = np.asarray(rng.standard_normal(y.shape)) if random else np.ones(y.shape)
    points.append(seed)
    return Claims(
        points=points,
        names=[*names, "seed"],
        positions=positions,
        derivatives=["∂L/∂{}"],
        evaluate=lambda p: np.array([(p[-1] * output(*_tensors(p[:-1], names)).data).sum()]),
        magnitude=np.array([np.abs(seed * y.data).sum()]),
        analytic=[_first_gradients(output, points, names)],
        output=output,
    )


def _in_one_line(name: str) -> str:
    """A name of any text as a heading can hold it: printable, and of 40 letters at most."""
    shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in name)
    return shown if len(shown) <= 40 else f"{shown[:39]}…"


def second_order(first: Claims, rng: np.random.Generator) -> Claims:
    """φⱼ = ⟨∂L/∂xⱼ, vⱼ⟩ for random vⱼ; its own gradients come from the record of the first."""
    names, output = first.names[:-1], first.output
    v = [rng.standard_normal(point.shape) for point in first.points[:-1]]

    def evaluate(points: list[Array]) -> Array:
        found = _first_gradients(output, points, names)
        return np.array([(g * direction).sum() for g, direction in zip(found, v, strict=False)])

    tensors = _tensors(first.points, first.names)
    y = output(*tensors[:-1])
    if not y.requires_grad:
        y = y + 0.0 * tensors[0].sum()  # a constant function: its gradient is 0, and recorded
    recorded = gradients(y, tensors[:-1], tensors[-1], create_graph=True)
    for plain, g, name in zip(first.analytic[0], recorded, names, strict=False):
        if not np.allclose(plain, g.data, rtol=1e-9, atol=1e-12 * np.abs(plain).max(initial=0)):
            raise GradientError(
                f"∂L/∂{name} depends on whether it is recorded: a rule on its way computes one "
                "thing with arrays and another with Tensors"
            )
    analytic = []
    for g, direction in zip(recorded, v, strict=True):
        phi = (g * direction).sum()
        found = gradients(phi, tensors, retain_graph=True) if phi.requires_grad else None
        analytic.append(list(found) if found else [np.zeros(t.shape) for t in tensors])
    return Claims(
        points=first.points,
        names=first.names,
        positions=first.positions,
        derivatives=[f"∂/∂{{}} of ∂L/∂{name}" for name in names],
        evaluate=evaluate,
        magnitude=np.array(
            [np.abs(g * d).sum() for g, d in zip(first.analytic[0], v, strict=False)]
        ),
        analytic=analytic,
        output=output,
    )


def _tensors(points: Sequence[Array], names: Sequence[str]) -> list[Tensor]:
    return [Tensor(p, requires_grad=True, name=n) for p, n in zip(points, names, strict=True)]


def _first_gradients(
    output: Callable[..., Tensor], points: list[Array], names: Sequence[str]
) -> list[Array]:
    """∂⟨seed, output⟩/∂point for each point, the seed (the last point) excepted."""
    tensors = _tensors(points[:-1], names)
    y = output(*tensors)
    if not y.requires_grad:
        return [np.zeros(p.shape) for p in points[:-1]]
    return list(gradients(y, tensors, points[-1]))
