"""4.10 · Explaining: what gradcheck says when it fails.

What does somebody need who has made a mistake? Which rule it is in, which of the rule's VJPs, and
what kind of mistake; then the numbers, to look closer. The message has these parts in this order.
Chapter 4.4 finds the rule, chapters 4.5 to 4.8 each try some mistakes, and 4.9 says where the check
itself cannot be trusted. Of the mistakes that fit, the more specific ones are said first. If none
fits, none is said.

    >>> from minigrad import GradientError, gradcheck, primitive
    >>> @primitive
    ... def wrong_tanh(x, /):
    ...     return np.tanh(x), lambda g, y: g * (y * y - 1)
    >>> try:
    ...     gradcheck(lambda x: (wrong_tanh(x) * x).sum(), np.array([0.5, 1.0]))
    ... except GradientError as error:
    ...     print(error)                                            # doctest: +ELLIPSIS
    order 1: ∂L/∂(input 0) is wrong (argument 0 of f, shape (2,)): along ... 2 of 2 elements differ
    The rule wrong_tanh is wrong: its VJP for input 0, shape (2,). The other 2 operations of f are
    right to first order, each checked by itself.
    The VJP has the wrong sign: it gives -1 times the true gradient. (VJP / difference = -1 in each
    of 2 elements, for 2 random g.)
    The elements, the worst first:
           index       analytic      numerical     difference     resolution          input
             [1]   3.416198e-01   1.181568e+00        8.4e-01        ...                  1
             [0]   6.889329e-02   8.553410e-01        7.9e-01        ...                0.5

(The last column is the element of the input. If it is above 2 in every row, the VJP may have
forgotten a limit at 2.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any

import numpy as np

from minigrad.checks import cuts, mistakes, places, shares
from minigrad.checks.checking import DOUBT, Wrong
from minigrad.checks.claims import Claims, Diagnosis, GradientError
from minigrad.checks.culprit import Alone, Search
from minigrad.checks.differences import elementwise, lengths, slopes
from minigrad.checks.doubts import doubts
from minigrad.engine.tensor import Array, Tensor

MOST_ROWS = 8  # of the table
MOST_SECONDS = 3.0  # for the elements that are looked at one by one, where 8 are always


def explained(
    found: GradientError, f: Any, first: Claims, rtol: float, rng: np.random.Generator
) -> GradientError:
    """The error with its explanation: the rule, the input, the mistakes, and the table."""
    wrong = found if isinstance(found, Wrong) else None
    with np.errstate(all="ignore"):
        heading, worst, table = _elements(wrong) if wrong else (str(found), np.zeros(0), "")
        try:
            rule, i, said, reasons = _reasons(wrong, worst, f, first, rtol, rng)
        except (Exception, SystemExit):  # whatever a rule of the user's does: the table is left
            rule, i, said, reasons = None, None, "", ()
    lines = [heading, said, *map(str, reasons), table]
    message = "\n".join(line for line in lines if line)
    return GradientError(message, rule=rule, input=i, diagnoses=reasons)


def _reasons(
    wrong: Wrong | None, worst: Array, f: Any, first: Claims, rtol: float, rng: np.random.Generator
) -> tuple[str | None, int | None, str, tuple[Diagnosis, ...]]:
    """The wrong rule and its input, the line that names them, and the diagnoses."""
    search = Search(first.output, _tensors(first), wrong.worst.order if wrong else 2, rtol, rng)
    reasons: tuple[Diagnosis, ...] = ()
    if wrong:  # the check itself may be what is wrong
        reasons = tuple(_tried(doubts, wrong.claims, wrong.i, wrong.j, wrong.worst, worst))
    said = _which_rule(search, doubtful=bool(reasons))
    if search.wrong or not reasons:
        reasons += _mistakes(search, f, wrong, rng)
    alone, i = search.wrong[0] if search.wrong else (None, None)
    return alone.name if alone else None, i, said, reasons


def _tensors(claims: Claims) -> list[Tensor]:
    names = claims.names[: len(claims.positions)]
    return [
        Tensor(point, requires_grad=True, name=None if name.startswith("(input") else name)
        for point, name in zip(claims.points, names, strict=False)
    ]


def _mistakes(
    search: Search, f: Any, wrong: Wrong | None, rng: np.random.Generator
) -> tuple[Diagnosis, ...]:
    """The mistakes that explain the first wrong rule, or f if every rule is right."""
    if not search.wrong:
        if wrong and wrong.worst.order == 1 and not search.unsure:
            return tuple(_tried(cuts.left_the_record, f, wrong.claims, wrong))
        return ()
    (alone, i), how = search.wrong[0], search.found[0]
    if i is None:
        return ()
    if isinstance(how, Wrong) and how.worst.order == 2:
        return tuple(_tried(cuts.cut_in_a_vjp, alone, i, rng))
    worst = _elements(how)[1] if isinstance(how, Wrong) and alone.inputs[i].size > 8 else None
    return diagnosed(alone, i, rng, worst)


def diagnosed(
    alone: Alone, i: int, rng: np.random.Generator, worst: Array | None = None
) -> tuple[Diagnosis, ...]:
    """Every mistake whose equation the VJP for input i fulfils, the more specific first."""
    case = mistakes.Case.of(alone, i, rng, worst)
    if case is None:
        return ()
    reduces = len(alone.shape) < alone.inputs[i].ndim
    tried: list[Callable[..., Iterator[Diagnosis]]] = [
        shares.forgotten_use,
        shares.not_summed,
        *((places.another_axis, places.transposed)[:: 1 if reduces else -1]),
        mistakes.constant_factor,
        places.another_input,
    ]
    for hypothesis in (mistakes.not_finite, mistakes.zero, mistakes.ignores_g):
        found = _tried(hypothesis, case)
        if found:
            return tuple(found)  # the others take for granted that twice the g gives twice as much
    # An equation that fits what is nearly right, as "transposed" for one axis, explains nothing.
    if case.gives(lambda t: t.true) or _tried(mistakes.nearly_right, case):
        return tuple(_tried(mistakes.nearly_right, case))
    found = [each for hypothesis in tried for each in _tried(hypothesis, case)]
    found = found or _tried(mistakes.a_variable_factor, case)
    if not found:  # two that say less
        found = [*_tried(places.another_order, case), *_tried(places.partly_zero, case)]
    return tuple(found)


def _tried(hypothesis: Callable[..., Iterator[Diagnosis]], *given: Any) -> list[Diagnosis]:
    """What a hypothesis says. Nothing, if a rule that is not ours cannot be asked in its way."""
    try:
        return list(hypothesis(*given))
    except Exception:
        return []


# ---------------------------------------------------- A first reading may stop here.
# What follows: the line that names the rule, and the table of elements.


def _which_rule(search: Search, doubtful: bool) -> str:
    """The line that names the rule, and how many others are right."""
    total = search.right + search.unsure + len(search.wrong)
    if not search.wrong:
        if not total:
            return ""
        n = f"Each of the {total} operations" if total > 1 else "The one operation"
        if search.unsure:
            return (
                f"Of the operations of f that could be judged, none is wrong by itself: "
                f"{search.right} right, and {search.unsure} could not be judged."
            )
        return f"{n} of f is right by itself."
    alone, i = search.wrong[0]
    others = dict.fromkeys(_named(*each) for each in search.wrong[1:])
    others.pop(_named(alone, i), None)
    found = search.found[0]
    fault = "does not agree with the difference" if doubtful else "is wrong"
    if i is None:
        said = (
            f"The rule {alone.name} is wrong: it computes one thing with arrays and another with "
            "Tensors."
        )
    elif isinstance(found, Wrong) and found.worst.order == 2:
        said = (
            f"The rule {alone.name} {fault} to second order: what its VJP for "
            f"{_input(alone, i)}, gives is right, and the derivative of that is not."
        )
    else:
        said = f"The rule {alone.name} {fault}: its VJP for {_input(alone, i)}."
    if others:
        said += f" Wrong as well: {', '.join(others)}."
    if search.right:
        n = (
            f"The other {search.right} operations of f are"
            if search.right > 1
            else "The other operation of f is"
        )
        far = "right to first order" if search.order == 1 else "right"
        said += f" {n} {far}, {'each ' if search.right > 1 else ''}checked by itself."
    if search.unsure:
        said += f" ({search.unsure} could not be judged.)"
    return said


def _input(alone: Alone, i: int) -> str:
    name = f" ({alone.names[i]!r})" if alone.names[i] else ""
    return f"input {i}{name}, shape {alone.inputs[i].shape}"


def _named(alone: Alone, i: int | None) -> str:
    return f"{alone.name} (input {i})" if i is not None else alone.name


# ---------------------------------------------------------------- the table of elements


def _elements(wrong: Wrong) -> tuple[str, Array, str]:
    """The heading, the flat indices of the worst elements, and the table that shows them."""
    claims, i, j, worst = wrong.claims, wrong.i, wrong.j, wrong.worst
    analytic, point = claims.analytic[j][i], claims.points[i]
    chosen = _narrowed(claims, i, j, wrong.among)
    found = elementwise(claims.along(i), point, claims.magnitude, chosen)
    claimed, (seen, resolution) = analytic.ravel()[chosen], (a[:, j] for a in found)
    difference = np.abs(claimed - seen)
    infinite = ~np.isfinite(claimed)  # the worst of all
    rows = np.argsort(np.where(infinite, -np.inf, -difference), kind="stable")[:MOST_ROWS]
    lines = [
        f"{[int(n) for n in np.unravel_index(chosen[row], analytic.shape)]!s:>12} "
        f"{claimed[row]:14.6e} {seen[row]:14.6e} {difference[row]:14.1e} {resolution[row]:14.1e} "
        f"{point.flat[chosen[row]]:14.6g}"
        for row in rows
    ]
    where = f"argument {claims.positions[i]} of f, " if i < len(claims.positions) else ""
    differ = infinite | (difference > DOUBT * resolution)
    of = "" if len(chosen) == analytic.size else f"the {len(chosen)} looked at of "
    heading = (
        f"order {worst.order}: {worst.what} is wrong ({where}shape {analytic.shape}): along a "
        f"random direction it claims {worst.analytic:.6e}, the difference is "
        f"{worst.numerical:.6e}; {int(differ.sum())} of {of}{analytic.size} elements differ"
    )
    table = (
        f"The elements, the worst first:\n{'index':>12} {'analytic':>14} {'numerical':>14} "
        f"{'difference':>14} {'resolution':>14} {'input':>14}\n" + "\n".join(lines)
    )
    return heading, chosen[rows], table


def _narrowed(claims: Claims, i: int, j: int, chosen: Array) -> Array:
    """Which of the chosen elements to look at one by one: all, or where the error is largest.

    A large input is halved, and the half along which the two slopes differ more is kept, until
    few enough are left: fewer, where f is slow.
    """
    point, length = claims.points[i], lengths(claims.points[i]).ravel()
    rng = np.random.default_rng(0)
    start = perf_counter()
    claims.along(i)(point)
    affordable = MOST_SECONDS / (26 * (perf_counter() - start) + 1e-9)  # 26 evaluations for each
    enough = max(8, min(512 if point.size <= 10_000 else 32, int(affordable)))
    while len(chosen) > enough:
        halves = np.array_split(chosen, 2)
        apart = []
        for half in halves:
            u = np.zeros(point.size)
            u[half] = length[half] * rng.standard_normal(len(half))
            u = u.reshape(point.shape)
            seen, _ = slopes(claims.along(i), point, u, claims.magnitude)
            off = abs((claims.analytic[j][i] * u).sum() - seen[j])
            claimed = claims.analytic[j][i].ravel()[half]
            apart.append(off if np.isfinite(claimed).all() else np.inf)
        chosen = halves[int(np.nanargmax([*apart, 0.0]) == 1)]
    return chosen
