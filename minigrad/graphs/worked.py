"""Worked: one step of the way back, written out as a hand would do it.

A rule says its gradient in one line, ∂L/∂x = y ⊙ (g - ⟨y, g⟩). Here the parts of that line stand
below each other with the numbers of one pass: y, g, ⟨y, g⟩, g - ⟨y, g⟩ and the product. The last
row equals what the VJP gave: a test compares the two to 1e-12.

Of a larger array one row is shown: the row with the largest element of the contribution, or of the
products that are summed to it. For a product of matrices that element is shown, as a row times a
column. `RULES` lists the rules that are worked out; any other rule has no rows.

    >>> import numpy as np
    >>> from minigrad.graphs.worked import worked
    >>> y, g = np.array([0.75, 0.25]), np.array([1.0, -1.0])
    >>> for row in worked("softmax", {}, (np.log(y),), y, g, 0, y * (g - y @ g)):
    ...     print(f"{row.label:18}{row.numbers}")
    y                 [0.75 0.25]
    g                 [ 1. -1.]
    ⟨y, g⟩            [0.5]
    g - ⟨y, g⟩        [ 0.5 -1.5]
    y ⊙ (g - ⟨y, g⟩)  [ 0.375 -0.375]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from minigrad.engine.tensor import Array
from minigrad.graphs.summary import Summary

SHOWN = 3  # digits of a number on a page


class Row(NamedTuple):
    """One line of the work: what it is, its numbers, and whether they come from the way back."""

    label: str
    numbers: Array  # (n,); a single number stands for the whole row
    back: bool = True


@dataclass(frozen=True)
class Contribution:
    """One tensor's share of another's gradient, as it is sent in the backward pass.

    source, target   the vertices' numbers; the seed, which starts the pass, has no source
    position         which input of the source's operation the target is
    before           what the target had received; None if this is the first contribution
    contribution     the result of that input's VJP, and `after` is the sum
    nth, of          the number of this contribution to the target, and the count of all to it
    rows             the step written out (`worked`); () for most operations
    """

    source: int | None
    target: int
    position: int
    before: Summary | None
    contribution: Summary
    after: Summary
    nth: int
    of: int
    rows: tuple[Row, ...] = field(default=(), repr=False)


class Work(NamedTuple):
    """Hold what rows are made of: the gradient g at output y, and what `position` got of it."""

    options: Mapping[str, Any]
    inputs: Sequence[Array]
    y: Array
    g: Array
    position: int  # of the input
    found: Array  # the contribution to its gradient


def worked(rule: str, *given: Any) -> tuple[Row, ...]:
    """Return the rows of one contribution. `given` are the fields of a `Work`.

    () for a rule that is not in the table, and for an array without elements.
    """
    work = Work(*given)
    if rule not in RULES or not work.found.size or not work.g.size:
        return ()
    with np.errstate(all="ignore"):  # (the rule has warned)
        return tuple(RULES[rule](work))


def computed(x: Array | None, y: Array | None) -> tuple[Row, ...]:
    """Return the rows of y = softmax(x); () if an array was not kept, or if y is something else."""
    if x is None or y is None or not y.size or not y.ndim:
        return ()
    with np.errstate(all="ignore"):
        below = x - x.max(axis=-1, keepdims=True)
        e, at = np.exp(below), _largest(y, -1)
        total = e.sum(axis=-1, keepdims=True)
        if not np.allclose(e / total, y, equal_nan=True):
            return ()  # (along another axis, or a user's own softmax)
    rows = (
        ("x", x),
        ("x - max x", below),
        ("e = exp(x - max x)", e),
        ("Σ e", total),
        ("e / Σ e", y),
    )
    return tuple([Row(label, at(each), False) for label, each in rows])


def remark(rows: Sequence[Row]) -> str:
    """Return a sentence on what a reader does not see in the digits of the rows, or ""."""
    if rows and rows[0].label == "y" and np.max(rows[0].numbers) > 0.99:
        said = "One y is nearly 1, so ⟨y, g⟩ is nearly its g, and there g - ⟨y, g⟩ is nearly 0. "
        return said + "The other y are nearly 0. So each product has a factor that is nearly 0."
    for a, b, c in zip(rows, rows[1:], rows[2:], strict=False):
        if c.label == f"{a.label} - {b.label}":
            small = np.abs(c.numbers) < 0.5 * 10.0 ** (1 - SHOWN) * np.abs(a.numbers)
            if np.any(small & (c.numbers != 0)):
                said = f"Where {a.label} and {b.label} show the same digits, their difference is "
                return said + "small. It was computed with all digits."
    return ""


# ---------------------------------------------------------------- rules


def _softmax(work: Work) -> list[Row]:
    y, g, axis = work.y, work.g, work.options.get("axis", -1)
    if not y.ndim or not isinstance(axis, int):
        return []
    average = (y * g).sum(axis=axis, keepdims=True)
    at = _largest(work.found, axis)
    return [
        Row("y", at(y), False),
        Row("g", at(g)),
        Row("⟨y, g⟩", at(average)),
        Row("g - ⟨y, g⟩", at(g - average)),
        Row("y ⊙ (g - ⟨y, g⟩)", at(work.found)),
    ]


def _multiply(work: Work) -> list[Row]:
    """Return the rows of a product; a factor that was stretched gets the sum over its uses."""
    other = np.broadcast_to(work.inputs[1 - work.position], work.g.shape)
    product, letter = work.g * other, "ba"[work.position]
    at = _largest(product, -1)
    rows = [Row("g", at(work.g)), Row(letter, _once(at(other)), False)]
    return [*rows, Row(f"g ⊙ {letter}", at(product)), *_summed(work, product.shape)]


def _shared(work: Work, n: int = 1) -> list[Row]:
    """Return g, and the share of it that each element gets."""
    row = _largest(work.found, -1)(work.found)
    share = "g" if n == 1 else f"g / {n}"
    return [Row("g", _once(row * n)), Row(f"{share}, at each element", row)]


def _layer_norm(work: Work) -> list[Row]:
    x, gain, _ = work.inputs
    n = x - x.mean(axis=-1, keepdims=True)
    sigma = np.sqrt((n**2).mean(axis=-1, keepdims=True) + float(work.options.get("eps", 1e-5)))
    n, h = n / sigma, work.g * gain
    if work.position == 0:
        at = _largest(work.found, -1)
        return [
            Row("n = (x - μ)/σ", at(n), False),
            Row("h = g ⊙ gain", at(h)),
            Row("mean(h)", at(h.mean(axis=-1, keepdims=True))),
            Row("mean(n ⊙ h)", at((n * h).mean(axis=-1, keepdims=True))),
            Row("σ", at(sigma), False),
            Row("(h - mean(h) - n mean(n ⊙ h))/σ", at(work.found)),
        ]
    product = work.g * n if work.position == 1 else work.g
    at = _largest(product, -1)
    rows = [Row("g", at(work.g))]
    if work.position == 1:
        rows += [Row("n", at(n), False), Row("g ⊙ n", at(product))]
    return rows + _summed(work, product.shape)


def _matmul(work: Work) -> list[Row]:
    """Return the largest element of ∂L/∂A = G Bᵀ: a row of G times a row of B. (∂L/∂B: columns.)"""
    a, b = work.inputs
    if work.position == 1 and b.ndim == 2 < a.ndim:  # a weight, which a whole batch has used
        a, g = a.reshape(-1, a.shape[-1]), work.g.reshape(-1, work.g.shape[-1])
        work = work._replace(inputs=(a, b), g=g)
    if work.found.ndim != work.g.ndim or work.found.shape[:-2] != work.g.shape[:-2]:
        return []  # (a factor that was stretched over a batch)
    place = _place(work.found)
    batch, (i, j) = place[:-2], place[-2:]
    other = work.inputs[1 - work.position]
    whole = np.broadcast_to(other, (*work.g.shape[:-2], *other.shape[-2:]))
    if work.position == 0:
        left = Row(f"G, row {i}", work.g[batch][i, :])
        right = Row(f"B, row {j}", whole[batch][j, :], False)
    else:
        left = Row(f"A, column {i}", whole[batch][:, i], False)
        right = Row(f"G, column {j}", work.g[batch][:, j])
    products = Row("their products", left.numbers * right.numbers)
    total = Row(f"Σ, element [{i}, {j}]", work.found[place].reshape(1))
    return [left, right, products, total]


def _summed(work: Work, shape: tuple[int, ...]) -> list[Row]:
    """Return the row of the contribution, if it is a sum over axes that were stretched."""
    if work.found.shape == shape:
        return []
    uses = math.prod(shape) // work.found.size
    return [Row(f"Σ over all {uses} uses", _largest(work.found, -1)(work.found))]


def _once(row: Array) -> Array:
    """Return one number for the whole row if all of its numbers are equal."""
    return row[:1] if np.all(row == row[0]) else row


def _largest(a: Array, axis: int) -> Callable[[Array], Array]:
    """Return a function that takes the row along the axis where `a` has its largest element."""
    if not a.ndim:
        return lambda x: x.reshape(1)
    place = [i for k, i in enumerate(_place(a)) if k != axis % a.ndim]
    return lambda x: np.moveaxis(x, axis, -1)[tuple(place)]


def _place(a: Array) -> tuple[int, ...]:
    """Return the indices of the largest element."""
    return tuple([int(i) for i in np.unravel_index(np.argmax(np.abs(a)), a.shape)])


RULES: dict[str, Callable[[Work], list[Row]]] = {
    "softmax": _softmax,
    "multiply": _multiply,
    "sum": _shared,
    "mean": lambda work: _shared(work, work.found.size // work.y.size),
    "layer_norm": _layer_norm,
    "matmul": _matmul,
}
