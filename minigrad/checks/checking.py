"""4.3 · Gradient check: believe no derivative you have not tested.

How many evaluations does it take to test a million derivatives? As many as to test one. Move all
elements of an input at once, along a **random direction** u, and compare two slopes: the one that
the gradient claims, ⟨∂f, u⟩, and the one that a difference sees. In its simplest form:

    >>> from minigrad import grad, primitive
    >>> def agrees(f, x, h=1e-5):
    ...     u = np.random.default_rng(0).standard_normal(x.shape)
    ...     claimed = (grad(f)(x) * u).sum()
    ...     seen = (f(x + h * u) - f(x - h * u)) / (2 * h)
    ...     return bool(abs(claimed - seen) < 1e-6 * abs(seen))
    >>> wrong = primitive(lambda x, /: (np.tanh(x), lambda g, y: g * (1 - y)))     # y² has become y
    >>> x = np.linspace(-1.0, 1.0, 1_000_000)
    >>> agrees(lambda x: np.tanh(x).sum(), x), agrees(lambda x: wrong(x).sum(), x)
    (True, False)

This form has one step h for all sizes of x, and does not know how far a difference can be believed:
its 1e-6 is a guess. It tests one input of a scalar f, and no second derivative. It does not say
which rule is wrong, or where. `gradcheck` below does what this form leaves out, and compares in the
same way.

Can u hide an error? If the gradient is off by e, the two slopes differ by ⟨e, u⟩. For a Gaussian u,
⟨e, u⟩ is Gaussian with standard deviation ‖e‖. It comes out below ‖e‖/100 in 8 draws of 1,000, so
all three of our draws miss an error only once in two million. (`gradcheck` also scales each element
of u by how far it may move, chapter 4.1.) Single elements are needed only to say *where* a gradient
is wrong.

A wrong element can hide behind right ones that are a billion times larger, because its error is
then nothing beside the slope. So if a gradient's elements differ much in size, those of similar
size are also moved alone, a **band** at a time, and each band is compared with its own slope.

At a kink a central difference gives the mean of the slopes on both sides. A rule that promises that
mean (`maximum`, `abs`) agrees there. One that promises a side (`relu`, chapter 6.1) is called
wrong: keep inputs away from its kink.

When the check fails it says which rule of f is wrong, and which mistake fits, if one does. Where a
difference is too coarse to tell, it says so ("unresolved"). Check at inputs of ordinary size: a
step is a part of x, and where x is large f may change within one step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from minigrad.checks.claims import Claims, GradientError, first_order, tensors
from minigrad.checks.comparing import Comparison, compare
from minigrad.engine.record import recording
from minigrad.engine.replay import behind
from minigrad.engine.tensor import Tensor


@dataclass(frozen=True)
class Report:
    """The comparisons that `gradcheck` made. True if every derivative was resolved and agrees."""

    comparisons: tuple[Comparison, ...]

    @property
    def unresolved(self) -> tuple[Comparison, ...]:
        """The comparisons in which the finite difference was too coarse to tell."""
        return tuple(c for c in self.comparisons if c.verdict == "unresolved")

    def __bool__(self) -> bool:
        return all(c.verdict in ("agrees", "zero") for c in self.comparisons)

    def __str__(self) -> str:
        return "\n".join(map(str, self.comparisons))

    __repr__ = __str__


def gradcheck(
    f: Callable[..., Tensor],
    *inputs: Any,
    order: int = 2,
    rtol: float = 1e-8,
    rng: np.random.Generator | None = None,
) -> Report:
    """Check f's first and second derivatives with respect to every floating input.

    f takes Tensors and returns one Tensor. Unless that is a scalar, a random seed makes it one.
    Inputs are checked in float64, each against the size of *its own* gradient, so a small wrong
    gradient beside a large right one is found. Integers and booleans are passed to f as arrays.

    Returns a `Report`, which is true if everything agrees to `rtol`, and false if somewhere
    the finite difference was too coarse to tell (printed, it says why). Raises GradientError where
    it could tell and they differ, with the name of the rule that is wrong, the mistake if it is a
    known one, and the worst elements first; also where a fused rule has another value than its
    definition. ValueError if f is not a pure function (two calls must agree) or not finite at the
    inputs. `order=1` leaves out the second derivatives.

    >>> from minigrad import primitive
    >>> @primitive
    ... def slightly_wrong(x, /):
    ...     return np.exp(x), lambda g, y: g * y * 1.0005
    >>> gradcheck(slightly_wrong, [0.0])                  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    minigrad.checks.claims.GradientError: order 1: ∂L/∂(input 0) is wrong (shape (1,)): along ...
    The rule slightly_wrong is wrong: its VJP for input 0, shape (1,).
    The VJP gives 1.0005 times the true gradient: ...
           index       analytic      numerical     difference     resolution          input
             [0]   1.000500e+00   1.000000e+00        5.0e-04 ...
    """
    if order not in (1, 2):
        raise ValueError(f"gradcheck checks order 1 or, with it, order 2: got order={order}")
    # Not default_rng(0): the caller may have drawn the inputs from that one. With g equal to an
    # input, `g.mT @ a` passes for the right `a.mT @ g`, because AᵀA is symmetric.
    rng = np.random.default_rng([4, 3]) if rng is None else rng
    with recording():
        claims = first_order(f, inputs, rng)
        _compare_with_definitions(claims, rtol)
        try:
            return Report(tuple(compare(claims, order, rtol, rng)))
        except GradientError as error:
            wrong = error
        from minigrad.checks.explaining import explained  # (needed only if a check fails)

        # Raised inside `except`, the new error would have the first one as its context. That one
        # refers to f, which often cannot be pickled.
        raise explained(wrong, claims, rtol, rng)


# ---------------------------------------------------- A first reading may stop here.
# What follows compares the value of a fused rule. (The tool `comparing` compares gradients.)


def _compare_with_definitions(claims: Claims, rtol: float) -> None:
    """Raise if a fused operation behind f's output has another value than its definition."""
    for t in behind(claims.output(*tensors(claims.points[:-1]))):
        if t.node is not None and hasattr(t.node.rule, "definition"):
            meant = np.asarray(t.node.rule.definition(*t.node.inputs, **t.node.options).data)
            close = rtol * np.abs(meant[np.isfinite(meant)]).max(initial=0)
            if meant.shape != t.shape or not np.allclose(t.data, meant, 0, close, equal_nan=True):
                name = t.node.name
                raise GradientError(f"the fused rule {name} and its definition differ", rule=name)
