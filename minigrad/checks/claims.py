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

How small a slope can a difference show? Each result t on the way to φ rounds by eps = 2⁻⁵² of
itself, and moves φ by ∂φ/∂t of that. (So Linnainmaa followed rounding errors back in 1970.) So φ
rounds by eps · Σ |∂φ/∂t ⊙ t|, for the t of the largest sum, even where φ is 0, as in
φ = Σᵢ (xᵢ - mean of x). A difference of two φ cannot show what is smaller than this.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from minigrad.checks.differences import lengths
from minigrad.checks.rounding import largest_part
from minigrad.engine.autograd import gradients
from minigrad.engine.tensor import Array, Tensor


@dataclass(frozen=True)
class Elements:
    """The elements of a gradient that is wrong, compared one by one.

    differing  how many of the elements that were looked at differ
    how_many   the same in words: "2 of 5 elements differ"
    worst      the flat indices of those that are furthest off, the worst first
    index      the place of the worst
    analytic   what the rules say of the worst
    numerical  what a difference says of it
    table      a row for each of the worst
    """

    differing: int
    how_many: str
    worst: Array
    index: list[int]
    analytic: float
    numerical: float
    table: str


class GradientError(AssertionError):
    """The analytic and the numerical gradient differ by more than both tolerances allow.

    order      which derivative is wrong, 1 or 2; None if a fused rule has another value than its
               definition
    rule       the name of the first operation of the record whose derivative is wrong, or of such a
               fused rule; None if none was found wrong alone, or a doubt remains
    input      which of that operation's inputs has the wrong VJP (from 0 on), or None
    diagnoses  the sentences that explain it, the most specific first: a mistake, or why the
               difference is not to be believed
    elements   its elements, if they were compared one by one, or None. Their table ends the message
    """

    def __init__(
        self,
        message: str = "",
        *,
        order: int | None = None,
        rule: str | None = None,
        input: int | None = None,
        diagnoses: tuple[str, ...] = (),
        elements: Elements | None = None,
    ) -> None:
        super().__init__(message)
        self.order = order
        self.rule = rule
        self.input = input
        self.diagnoses = diagnoses
        self.elements = elements


@dataclass
class Claims:
    """Scalar functions φⱼ of several points, with their analytic gradients.

    The first order has one φ: L = ⟨seed, f(x₁, …, xₙ)⟩. The second order has one for each
    input, φⱼ = ⟨∂L/∂xⱼ, vⱼ⟩, and the seed is a further point. One comparison serves both.
    """

    output: Callable[..., Tensor]  # points as tensors, without the seed → f's output
    points: list[Array]  # the floating inputs of f, and the seed as the last
    names: list[str]  # what the points are called
    analytic: list[list[Array]]  # analytic[j][i] = ∂φⱼ/∂pointᵢ
    v: Sequence[Array] = ()  # the vⱼ; none at first order

    def __post_init__(self) -> None:
        self.order = 2 if self.v else 1

    def evaluate(self, points: list[Array]) -> Array:
        """Return the value of every φ, (m,)."""
        if self.order == 1:
            return np.array([(points[-1] * self.output(*tensors(points[:-1])).data).sum()])
        found = first_gradients(self.output, points)
        return np.array([(g * v).sum() for g, v in zip(found, self.v, strict=True)])

    def recorded(self, points: list[Array]) -> tuple[list[Tensor], list[Tensor]]:
        """Return the points as Tensors, and every φ of them with its record."""
        *given, seed = tensors(points)
        y = self.output(*given)
        if not y.requires_grad:
            y = y + 0.0 * given[0].sum()  # a constant function: its gradient is 0, and recorded
        if self.order == 1:
            return [*given, seed], [(seed * y).sum()]
        found = gradients(y, given, seed, create_graph=True)
        return [*given, seed], [(g * v).sum() for g, v in zip(found, self.v, strict=True)]

    @cached_property
    def magnitude(self) -> Array:
        """For each φ the largest sum that rounds on the way to it, (m,).

        Where all is 0, it is taken at a point that the first step of chapter 4.1 reaches.
        """
        size = np.array([largest_part(phi) for phi in self.recorded(self.points)[1]])
        if size.all():
            return size
        moved = [np.maximum(np.abs(p), lengths(p) / 8) for p in self.points]
        found = [largest_part(phi) for phi in self.recorded(moved)[1]]
        return np.where(size == 0, found, size)

    def derivative(self, i: int, j: int) -> str:
        """Return the name of ∂φⱼ/∂pointᵢ for messages."""
        if self.order == 1:
            return f"∂L/∂{self.names[i]}"
        return f"∂/∂{self.names[i]} of ∂L/∂{self.names[j]}"

    def along(self, i: int) -> Callable[[Array], Array]:
        """Return the function from pointᵢ alone to the values of all φ."""
        return lambda point: self.evaluate([*self.points[:i], point, *self.points[i + 1 :]])


def first_order(
    f: Callable[..., Any], inputs: Sequence[Any], rng: np.random.Generator, *, alone: bool = False
) -> Claims:
    """Return the claim on L = ⟨seed, f(x)⟩ for a random seed; for a scalar f the seed is 1.

    A rule that is checked alone, to find which one is wrong, gets a random seed for a scalar, too:
    a VJP that ignores g is right for g = 1. Its seed is that g, and is called so.
    """
    arrays = [x.data if isinstance(x, Tensor) else np.asarray(x) for x in inputs]
    positions = [i for i, a in enumerate(arrays) if a.dtype.kind == "f"]
    if not positions:
        raise ValueError(
            "gradcheck has nothing to check: no input has a floating dtype (write 1.0, not 1)"
        )
    names = [getattr(inputs[i], "name", None) or f"(input {i})" for i in positions]

    def output(*points: Tensor) -> Tensor:
        arguments: list[Any] = list(arrays)
        for position, point in zip(positions, points, strict=True):
            arguments[position] = point
        y = f(*arguments)
        if not isinstance(y, Tensor):
            message = f"gradcheck: f must return one Tensor, but gave {type(y).__name__}"
            if isinstance(y, tuple) and any(map(callable, y)):
                message += " (is @primitive missing above it?)"
            raise ValueError(message)
        return y

    points = [arrays[i].astype(float) for i in positions]
    for name, point in zip(names, points, strict=True):
        if not np.isfinite(point).all():
            raise ValueError(f"gradcheck: {name} is not finite, and no difference can move it")
    y, again = output(*tensors(points)), output(*tensors(points))
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
    names.append("g" if alone else "seed")
    return Claims(output, points, names, [first_gradients(output, points)])


def second_order(first: Claims, rng: np.random.Generator) -> Claims:
    """Return the claims on φⱼ = ⟨∂L/∂xⱼ, vⱼ⟩ for random vⱼ: gradients of recorded gradients."""
    v = [np.asarray(rng.standard_normal(point.shape)) for point in first.points[:-1]]
    claims = Claims(first.output, first.points, first.names, [], v)
    given, phis = claims.recorded(first.points)
    for phi in phis:
        found = gradients(phi, given, retain_graph=True) if phi.requires_grad else None
        claims.analytic.append(list(found) if found else [np.zeros(t.shape) for t in given])
    return claims


def tensors(points: list[Array]) -> list[Tensor]:
    """Return the points as Tensors that require a gradient."""
    return [Tensor(point, requires_grad=True) for point in points]


def first_gradients(output: Callable[..., Tensor], points: list[Array]) -> list[Array]:
    """Return ∂⟨seed, output⟩/∂point for each point, the seed (the last point) excepted."""
    given = tensors(points[:-1])
    y = output(*given)
    if not y.requires_grad:
        return [np.zeros(p.shape) for p in points[:-1]]
    return list(gradients(y, given, points[-1]))
