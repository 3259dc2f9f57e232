"""Explaining: what gradcheck says when it fails.

What does somebody need who has made a mistake? Which rule it is in, which of the rule's VJPs, and
what kind of mistake; then the numbers, to look closer. The message has these parts in this order.
If no known mistake fits, the message names none.

    >>> from minigrad import GradientError, gradcheck, primitive
    >>> @primitive
    ... def wrong_tanh(x, /):
    ...     return np.tanh(x), lambda g, y: g * (y * y - 1)
    >>> try:
    ...     gradcheck(lambda x: (wrong_tanh(x) * x).sum(), np.array([0.5, 1.0]))
    ... except GradientError as error:
    ...     print(error)                                            # doctest: +ELLIPSIS
    order 1: ∂L/∂(input 0) is wrong (shape (2,)): along a ... 2 of 2 elements differ
    The rule wrong_tanh is wrong: its VJP for input 0, shape (2,).
    Operations of f, each checked alone to order 1: 2 right, 1 wrong, 0 not judged.
    The VJP has the wrong sign: it gives -1 times the true gradient.
    The elements, the worst first:
           index       analytic      numerical     difference     resolution          input
             [1]   3.416198e-01   1.181568e+00        8.4e-01        ...                  1
             [0]   6.889329e-02   8.553410e-01        7.9e-01        ...                0.5

(The last column is the element of the input. If it is above 2 in every row, the VJP may have
forgotten a limit at 2.)
"""

from __future__ import annotations

import numpy as np

from minigrad.checks.claims import Claims, Elements, GradientError, tensors
from minigrad.checks.comparing import DOUBT, Trial, Wrong
from minigrad.checks.culprit import Search
from minigrad.checks.differences import EPS, elementwise
from minigrad.checks.mistakes import diagnosed
from minigrad.engine.tensor import Array

MOST_ELEMENTS = 64  # at most so many are looked at one by one
NEAR, NEARER = 2.0**-12, 2.0**-20  # two steps: between them a smooth function's slopes come close
WAYS_OUT = "as by `.data` or a function that takes arrays only"


@np.errstate(all="ignore")
def explained(
    found: GradientError, claims: Claims, rtol: float, rng: np.random.Generator
) -> GradientError:
    """Return the error with its explanation: the rule, the input, the mistakes, and the table."""
    order = 2
    heading = str(found)
    compared = None
    reasons: list[str] = []
    if isinstance(found, Wrong):
        order = found.trial.claims.order
        compared = elements(found.trial)
        heading += f"; {compared.how_many}"
        reasons += doubts(found, compared.worst)
    search = Search(claims.output, tensors(claims.points[:-1]), order, rtol, rng)
    lines = [heading]
    name = None
    i = None
    named = [] if reasons else search.wrong  # while there is a doubt, no rule is named
    unsure = search.unsure + len(search.wrong) - len(named)
    if named:
        rule, i, how = named[0]
        name = rule.name
        fault = "is wrong"
        if isinstance(how, Wrong) and how.order == 2:
            fault += " to second order"
            if not hasattr(rule.rule, "definition"):  # (which has its own record)
                reasons.append(_left_by_a_vjp(how.trial))
        else:
            reasons += diagnosed(rule, i, rng)
        shape = rule.inputs[i].shape
        lines.append(f"The rule {name} {fault}: its VJP for input {i}, shape {shape}.")
    elif isinstance(found, Wrong) and order == 1 and not reasons and not unsure:
        ways = "one way" if found.trial.gradient.any() else "every way"
        start = found.trial.claims.names[found.trial.i]
        reasons.append(f"f leaves the record on {ways} from {start}, {WAYS_OUT}.")
    if search.right or unsure:
        lines.append(
            f"Operations of f, each checked alone to order {order}: {search.right} right, "
            f"{len(named)} wrong, {unsure} not judged."
        )
    lines += reasons
    if compared is not None:
        lines.append(compared.table)
    return GradientError(
        "\n".join(lines),
        order=found.order,
        rule=name,
        input=i,
        diagnoses=tuple(reasons),
        elements=compared,
    )


# ---------------------------------------------------------------- the record left, and doubts


def _left_by_a_vjp(trial: Trial) -> str:
    """Return the sentence on a VJP whose values are right, but whose own derivative is wrong."""
    name = trial.claims.names[trial.i]
    what = name if name == "g" else f"{name}, or y,"
    how = f"{what} leaves the record in the VJP, {WAYS_OUT}"
    if trial.gradient.any():
        how = f"a use of {what} leaves the record in the VJP; or a rule that the VJP uses is wrong"
    return f"The first derivative is right and the second one is not, because {how}."


def doubts(wrong: Wrong, chosen: Array) -> list[str]:
    """Return the reason not to believe the difference, if f is not smooth there.

    At a kink, a jump or the edge of a domain the slopes on the two sides of an element differ, also
    for a nearer step, and the claim is between them.
    """
    trial, i, j = wrong.trial, wrong.trial.i, wrong.trial.j
    rounding = 1000 * EPS * trial.claims.magnitude[j] / NEARER
    for flat in chosen:
        u = np.zeros(trial.point.shape)
        u.flat[flat] = trial.length.flat[flat]
        points = [trial.point + h * u for h in (-NEAR, -NEARER, 0.0, NEARER, NEAR)]
        a, b, c, d, e = (float(trial.claims.along(i)(point)[j]) for point in points)
        below, above = (c - b) / NEARER, (d - c) / NEARER
        far = abs(a - 2 * c + e) / NEAR
        claim = float((trial.gradient * u).sum())
        apart = abs(above - below)
        between = abs(above - claim) + abs(claim - below) < 1.02 * apart
        kink = between and apart > max(0.5 * far, rounding)
        if kink or not np.isfinite(apart):
            index = [int(n) for n in np.unravel_index(flat, u.shape)]
            below, above = below / u.flat[flat], above / u.flat[flat]
            return [
                f"f is not smooth at element {index} of {trial.claims.names[i]}, which is "
                f"{trial.point.flat[flat]:.6g} (its slope is {below:.6g} from below and "
                f"{above:.6g} from above): move the input away from there."
            ]
    return []


# ---------------------------------------------------------------- the table of elements


def elements(trial: Trial) -> Elements:
    """Compare the elements of a gradient one by one: at most 64, those that are furthest off."""
    point, gradient = trial.point, trial.gradient.ravel()
    chosen = np.arange(point.size)
    rng = np.random.default_rng(0)
    while len(chosen) > MOST_ELEMENTS:  # keep the half along which the two slopes differ more
        halves = np.array_split(chosen, 2)
        apart = []
        for half in halves:
            u = np.zeros(point.shape)
            u.flat[half] = trial.length.flat[half] * rng.standard_normal(len(half))
            apart.append(abs(gradient[half] @ u.flat[half] - trial.slope(u)[0]))
        chosen = halves[int(np.argmax(np.nan_to_num(apart, nan=np.inf)))]
    found = elementwise(trial.claims.along(trial.i), point, trial.claims.magnitude, chosen)
    claimed, (seen, resolution) = gradient[chosen], (each[:, trial.j] for each in found)
    difference = np.nan_to_num(np.abs(claimed - seen), nan=np.inf)
    rows = np.argsort(-difference, kind="stable")[:8]
    places = [[int(n) for n in np.unravel_index(chosen[row], point.shape)] for row in rows]
    lines = [
        f"{place!s:>12} "
        f"{claimed[row]:14.6e} {seen[row]:14.6e} {difference[row]:14.1e} {resolution[row]:14.1e} "
        f"{point.flat[chosen[row]]:14.6g}"
        for row, place in zip(rows, places, strict=True)
    ]
    differ = ~(difference <= DOUBT * resolution) | ~np.isfinite(claimed)
    of = "" if len(chosen) == point.size else f"the {len(chosen)} looked at of "
    how_many = f"{int(differ.sum())} of {of}{point.size} elements differ"
    if not differ.any():
        how_many = "no element differs by as much alone"
    table = (
        f"The elements, the worst first:\n{'index':>12} {'analytic':>14} {'numerical':>14} "
        f"{'difference':>14} {'resolution':>14} {'input':>14}\n" + "\n".join(lines)
    )
    worst = rows[0]
    return Elements(
        differing=int(differ.sum()),
        how_many=how_many,
        worst=chosen[rows],
        index=places[0],
        analytic=float(claimed[worst]),
        numerical=float(seen[worst]),
        table=table,
    )
