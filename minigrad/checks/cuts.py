"""4.8 · Cuts: a gradient that lost its way back.

Two mistakes leave every number right that can be seen, and a record that is too short. A function
takes `.data` of a tensor and computes on: the value is right, and what came through `.data` has no
gradient. Or a VJP does it: the first derivative is right, and the second one is not.

Both show in the same way. Something moves when the input moves, and the record says that it does
not. For a VJP, c = vjp(g, y), that is a check of three kinds: move g alone, move y alone, move an
input alone, and compare how c moves with what its record says.

    >>> from minigrad import primitive
    >>> from minigrad.checks.culprit import Alone, Search
    >>> from minigrad.checks.cuts import cut_in_a_vjp
    >>> @primitive
    ... def tanh(x, /):
    ...     return np.tanh(x), lambda g, y: g * (1 - np.square(getattr(y, "data", y)))
    >>> alone = Alone(tanh(Tensor([0.5, 1.0], requires_grad=True)))
    >>> found, = cut_in_a_vjp(alone, 0, np.random.default_rng(0))
    >>> print(found.sentence)
    The first derivative is right and the second one is not, because y leaves the record in the VJP
    for input 0: a Tensor became an array there, as by .data or by a function that takes arrays
    only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import attrgetter
from types import CodeType
from typing import Any

import numpy as np

from minigrad.checks.checking import DOUBT, Wrong
from minigrad.checks.claims import Claims, Diagnosis
from minigrad.checks.culprit import Alone, Search
from minigrad.checks.differences import lengths, slopes
from minigrad.engine.autograd import gradients
from minigrad.engine.replay import behind
from minigrad.engine.tensor import Array, Tensor

METHODS = ("data", "item", "detach", "tolist")
WAYS_OUT = (*METHODS, "asarray", "no_grad")


def cut_in_a_vjp(alone: Alone, i: int, rng: np.random.Generator) -> Iterator[Diagnosis]:
    """Which of g, y and the inputs the VJP for input i moves with, and its record denies."""
    if alone.is_fused:
        return  # it is differentiated by its definition, of which every rule has a node of its own
    g = np.asarray(rng.standard_normal(alone.shape))
    values = [*alone.inputs, alone.value(alone.inputs), g]
    wanted = [*alone.wanted, len(values) - 2, len(values) - 1]
    named = {len(values) - 2: "y", len(values) - 1: "g"}

    def vjp(points: list[Any]) -> Any:
        *inputs, y, g = points
        return alone.rule(*inputs, **alone.options)[1 + i](g, y)

    tensors = [Tensor(v, requires_grad=True) if k in wanted else v for k, v in enumerate(values)]
    c = vjp(tensors)
    if np.abs(getattr(c, "data", c)).max(initial=0.0) < 1e-9 * np.abs(values[-1]).max(initial=0.0):
        return  # saturated: perhaps it is nothing but rounding
    v = np.asarray(rng.standard_normal(np.shape(c)))
    recorded = [np.zeros(np.shape(x)) for x in values]
    if isinstance(c, Tensor) and c.requires_grad:
        found = gradients((c * v).sum(), [tensors[k] for k in wanted])
        for k, gradient in zip(wanted, found, strict=True):
            recorded[k] = gradient
    wrong = []
    if isinstance(c, Tensor):  # (else it has no record, in which a rule could be wrong)
        inner = lambda *points: vjp(_in_place(values, wanted, points))
        wrong = Search(inner, [tensors[k] for k in wanted], order=1, rtol=1e-8, rng=rng).wrong
    if wrong:
        other, position = wrong[0]
        yield Diagnosis(
            "a wrong rule in the VJP",
            f"The VJP for input {i} computes with {other.name}, whose own VJP for input {position} "
            "is wrong.",
            "each operation in the record of the VJP was checked by itself",
        )
        return
    for k in reversed(wanted):  # g first, since a VJP without g moves with nothing else either
        phi = lambda p, k=k: np.array([(vjp([*values[:k], p, *values[k + 1 :]]) * v).sum()])
        told = _moves_more(phi, values[k], recorded[k], rng)
        if told:
            what = named.get(k, f"input {k}")
            all_of_it = not recorded[k].any()
            how = f"{what} leaves" if all_of_it else f"some of the uses of {what} leave"
            yield Diagnosis(
                f"the record of {what} is cut",
                f"The first derivative is right and the second one is not, because {how} the "
                f"record in the VJP for input {i}: a Tensor became an array there, as by "
                f"{_ways_out(alone.rule)}.",
                f"with {what} alone the VJP moves by {told[0]:.6g}, its record says {told[1]:.6g}",
            )


def _in_place(values: list[Any], wanted: list[int], points: Any) -> list[Any]:
    """The values, with points in the place of the wanted ones."""
    new = dict(zip(wanted, points, strict=True))
    return [new.get(k, v) for k, v in enumerate(values)]


def _moves_more(
    phi: Callable[[Array], Array], point: Array, recorded: Array, rng: np.random.Generator
) -> tuple[float, float] | None:
    """How fast φ moves along a random direction and what is recorded, if these differ."""
    u = lengths(point) * rng.standard_normal(point.shape)
    slope, resolution = slopes(phi, point, u, np.abs(phi(point)))
    said = float((recorded * u).sum())
    apart = abs(float(slope[0]) - said)
    size = float(np.linalg.norm(recorded * u)) + abs(float(slope[0]))
    if apart > DOUBT * resolution[0] and apart > 1e-7 * size:
        return float(slope[0]), said
    return None


def _ways_out(function: Any) -> str:
    """The ways to leave the record that the text of a function names; otherwise all of them."""
    codes = [getattr(getattr(function, "__wrapped__", function), "__code__", None)]
    names: set[str] = set()
    while codes:
        code = codes.pop()
        if isinstance(code, CodeType):
            names |= {*code.co_names}
            codes += code.co_consts
    said = [way for way in WAYS_OUT if way in names]
    if not said:
        return ".data or by a function that takes arrays only"
    shown = [f"`.{way}`" if way in METHODS else f"`{way}`" for way in said]
    return f"{' or '.join(shown)} in its text"


def left_the_record(f: Any, claims: Claims, wrong: Wrong) -> Iterator[Diagnosis]:
    """Every rule is right by itself, and f's gradient is not: where f went on without a record.

    f runs twice, the second time with its input moved a little. What the record holds for a
    constant should be the same both times. A constant that moved was computed from the input.
    """
    i = wrong.i
    point = claims.points[i]
    moved = point + 1e-3 * lengths(point) * np.random.default_rng(2).uniform(0.5, 1, point.shape)
    before, after = (_constants(claims, i, p) for p in (point, moved))
    places = []
    if before and after and [where for where, _ in before] == [where for where, _ in after]:
        for (where, a), (_, b) in zip(before, after, strict=True):
            if a.shape == b.shape and not np.array_equal(a, b, equal_nan=True):
                places.append(f"{where}, shape {a.shape}")
    missing = wrong.worst.numerical - wrong.worst.analytic
    if not wrong.worst.norm:
        how = "Nothing that f computes from {} leads back to it: it is 0 because f left the record"
    else:
        how = "Only some of the uses of {} are recorded: f left the record on one of its ways"
    what = claims.named(i)
    sentence = f"{how.format(what)}, as by {_ways_out(f)}."
    if wrong.worst.norm and not places:  # nothing was found that shows it
        sentence = (
            "Every operation is right by itself, and the gradient of f is not: did f leave the "
            f"record on a way from {what}, or is a rule not a pure function?"
        )
    if places:
        sentence += (
            f" In the record a constant stands where something computed from {what} belongs: "
            f"{'; '.join(places[:3])}."
        )
    yield Diagnosis(
        "the record was left",
        sentence,
        f"along the direction above {missing:.6g} is missing"
        + ("; the constant changes when the input is moved" if places else ""),
    )


def _constants(claims: Claims, i: int, point: Array) -> list[tuple[str, Array]]:
    """The floating constants in the record of f's output, and where each of them enters."""
    points = [*claims.points[:i], point, *claims.points[i + 1 : -1]]
    y = claims.output(*[Tensor(p, requires_grad=True) for p in points])
    found = []
    for t in sorted(behind(y), key=attrgetter("_time")):
        node: Any = t.node
        for k, x in enumerate(node.inputs if node else ()):
            if not x.requires_grad and x.dtype.kind == "f":
                found.append((f"input {k} of {node.name}", x.data))
    return found
