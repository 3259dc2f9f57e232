"""4.6 · Places: the right numbers in the wrong places.

A wrong gradient is often made of right numbers. They are transposed, or added up along another
axis. For each of these there is a second computation of what the mistake would give: the difference
at a transposed input, or the Jacobian, which shows what element of the output moves with what
element of the input. If that is what the VJP gives, the mistake is found.

    >>> from minigrad import primitive, Tensor
    >>> from minigrad.checks.culprit import Alone
    >>> from minigrad.checks.mistakes import Case
    >>> from minigrad.checks.places import transposed
    >>> @primitive
    ... def product(a, b, /):
    ...     return a @ b, lambda g, y: g @ b, lambda g, y: a.mT @ g
    >>> rng = np.random.default_rng(0)
    >>> a, b = (Tensor(rng.standard_normal((3, 3)), requires_grad=True) for _ in "ab")
    >>> for each in transposed(Case.of(Alone(product(a, b)), 0, rng)):
    ...     print(each)
    The VJP gives what is right if input 1 is transposed: it uses input 1 without the .mT that
    belongs there, or with one too many. (VJP = difference at the transposed input 1, for 2 random
    g.)
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from minigrad.checks.claims import Diagnosis
from minigrad.checks.differences import elementwise
from minigrad.checks.mistakes import Case, Trial, same
from minigrad.engine.tensor import Array

MOST_ENTRIES = 4096  # a Jacobian with more is not made

# ---------------------------------------------------------------- axes


def jacobians(case: Case, trial: Trial) -> tuple[Array, Array] | None:
    """The Jacobian that the VJP claims and the true one, or None if they are large or coarse.

    Row k is the gradient of output k: a VJP gives it for the g that is 1 at k and 0 elsewhere.
    Entries below a millionth of the largest one are 0.
    """
    alone, i = case.alone, case.i
    size, x = int(np.prod(alone.shape)), trial.inputs[i]
    if size * x.size > MOST_ENTRIES or size * x.size == 0:
        return None
    basis = np.eye(size).reshape(size, *alone.shape)
    claimed = np.array([case.claim(trial, g).ravel() for g in basis])
    inputs = list(trial.inputs)

    def values(point: Array) -> Array:
        inputs[i] = point
        return alone.value(inputs).ravel()

    true, coarse = elementwise(values, x, np.abs(values(x)))
    largest = float(np.abs(true).max())
    if not np.isfinite(claimed).all() or not 20 * coarse.max() < 1e-6 * largest:
        return None
    return _clear(claimed, float(np.abs(claimed).max())), _clear(true.T, largest)


def _clear(table: Array, largest: float) -> Array:
    return np.where(np.abs(table) > 1e-6 * largest, table, 0.0)


def another_axis(case: Case) -> Iterator[Diagnosis]:
    """The value and the VJP add up along different axes: their Jacobians couple other elements."""
    found = set()
    for trial in case.trials:
        tables = jacobians(case, trial)
        if tables is None or not tables[0].any():
            return
        x, y = trial.inputs[case.i].shape, case.alone.shape
        found.add(tuple(mixed_axes(table, y, x) for table in tables))
    ((claimed, true),) = found if len(found) == 1 else ((None, None),)
    if claimed == true:
        return
    spell = lambda axes: " and ".join(f"axis {a}" for a in axes) if axes else "no axis"
    yield Diagnosis(
        "another axis",
        f"The value mixes the elements of input {case.i} along {spell(true)}, and the VJP along "
        f"{spell(claimed)}.",
        "seen in which elements of the input each element of the output moves with",
    )


def mixed_axes(table: Array, y: tuple[int, ...], x: tuple[int, ...]) -> tuple[int, ...]:
    """The axes of x along which a Jacobian mixes: those that no axis of y runs along.

    An axis of x runs along with one of y if every entry that is not 0 has equal indices on both.

    >>> from minigrad.checks.places import mixed_axes
    >>> mixed_axes(np.kron(np.eye(2), np.ones((1, 3))), (2,), (2, 3))         # a sum along axis 1
    (1,)
    """
    rows, columns = np.nonzero(table)
    outs, ins = np.unravel_index(rows, y or (1,)), np.unravel_index(columns, x or (1,))
    along = {
        a
        for a, n in enumerate(x)
        for b, m in enumerate(y)
        if n == m and np.array_equal(ins[a], outs[b])
    }
    return tuple(a for a, n in enumerate(x) if n > 1 and a not in along)


# ---------------------------------------------------------------- transposed, and other orders


def transposed(case: Case) -> Iterator[Diagnosis]:
    """c is the true gradient transposed, or the true one at a transposed input, or of a gᵀ."""
    x = case.alone.inputs[case.i]
    turns = {"transposed": lambda a: a.swapaxes(-1, -2)} if x.ndim > 1 else {}
    if x.ndim > 2:
        turns["with its axes in reverse order"] = lambda a: a.transpose()
    for how, turn in turns.items():
        if turn(x).shape == x.shape and case.shows(
            lambda t, turn=turn: case.at(turn(t.claimed)), lambda t: t.true
        ):
            yield Diagnosis(
                "transposed",
                f"The VJP gives the true gradient {how}.",
                "element [i, j] of the VJP is element [j, i] of the difference, for 2 random g",
            )
            return
    for j, a in enumerate(case.alone.inputs):
        if (
            a.dtype.kind == "f"
            and a.ndim > 1
            and case.shows(lambda t: case.at(t.claimed), lambda t, j=j: _true_at(case, t, j))
        ):
            yield Diagnosis(
                "transposed",
                f"The VJP gives what is right if input {j} is transposed: it uses input {j} "
                "without the .mT that belongs there, or with one too many.",
                f"VJP = difference at the transposed input {j}, for 2 random g",
            )
            return
    g = case.trials[0].g
    if (
        g.ndim > 1
        and g.shape[-1] == g.shape[-2]
        and case.shows(
            lambda t: case.at(t.claimed),
            lambda t: case.alone.true(t.inputs, t.g.swapaxes(-1, -2), case.i, case.looked)[0],
        )
    ):
        yield Diagnosis(
            "transposed",
            "The VJP gives what is right for gᵀ in the place of g.",
            "VJP for g = difference for gᵀ, for 2 random g",
        )


def _true_at(case: Case, trial: Trial, j: int) -> Array:
    """The true gradient where input j is transposed; NaN, which fits nothing, where it has none."""
    inputs = list(trial.inputs)
    inputs[j] = inputs[j].swapaxes(-1, -2).copy()
    if inputs[j].shape != trial.inputs[j].shape:
        return np.full(len(case.looked), np.nan)
    return case.alone.true(inputs, trial.g, case.i, case.looked)[0]


def another_order(case: Case) -> Iterator[Diagnosis]:
    """c holds the numbers of t in another order."""
    shape = case.alone.inputs[case.i].shape
    if len(case.looked) < max(2, int(np.prod(shape))):
        return
    for axis in range(len(shape)):
        if case.shows(lambda t, a=axis: np.flip(t.claimed, a).ravel(), lambda t: t.true):
            how = f"reversed along axis {axis}"
            break
    else:
        if not case.shows(lambda t: np.sort(t.claimed.ravel()), lambda t: np.sort(t.true)):
            return
        how = "in another order"
    yield Diagnosis(
        "another order",
        f"The VJP gives the right numbers {how}.",
        f"the {len(case.looked)} numbers of VJP and difference are the same, for 2 random g",
    )


def partly_zero(case: Case) -> Iterator[Diagnosis]:
    """c is right in some elements and 0 in the others."""
    here = [case.at(t.claimed) == 0 for t in case.trials]
    if np.array_equal(*here) and 0 < here[0].sum() < len(here[0]):
        there = ~here[0]
        right = all(
            same(case.at(t.claimed)[there], t.true[there], t.resolution[there])
            and t.true[~there].any()
            for t in case.trials
        )
        if right:
            yield Diagnosis(
                "partly 0",
                f"The VJP is right in {there.sum()} of the {len(there)} elements that were looked "
                "at, and 0 in the others.",
                "the same elements for 2 random g",
            )
