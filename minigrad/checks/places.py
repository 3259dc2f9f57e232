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

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from minigrad.checks.checking import DOUBT
from minigrad.checks.claims import Diagnosis
from minigrad.checks.differences import elementwise
from minigrad.checks.mistakes import LOOKED_AT, Case, Trial, same, summed_to, unsummed
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
    if not np.isfinite(claimed).all() or not DOUBT * coarse.max() < 1e-6 * largest:
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
        x = trial.inputs[case.i].shape
        found.add(tuple(mixed_axes(table, x) for table in tables))
    if len(found) != 1:
        return
    ((claimed, true),) = found
    if claimed == true:
        return
    told, meant = (" and ".join(f"axis {a}" for a in axes) or "no axis" for axes in (claimed, true))
    yield Diagnosis(
        "another axis",
        f"At these inputs the derivative of the value mixes the elements of input {case.i} along "
        f"{meant}, and the VJP along {told}.",
        "read off the two Jacobians: which elements of the input each output depends on",
    )


def mixed_axes(table: Array, x: tuple[int, ...]) -> tuple[int, ...]:
    """The axes of x along which a Jacobian mixes: an output needs elements at several places there.

    >>> from minigrad.checks.places import mixed_axes
    >>> mixed_axes(np.kron(np.eye(2), np.ones((1, 3))), (2, 3))           # a sum along axis 1
    (1,)
    """
    needed = (table != 0).reshape(len(table), *x)
    found = []
    for axis in range(len(x)):
        others = tuple(a + 1 for a in range(len(x)) if a != axis)
        if (needed.any(axis=others).sum(axis=1) > 1).any():  # how many places along the axis
            found.append(axis)
    return tuple(found)


# ---------------------------------------------------- A first reading may stop here.
# What follows: transposed gradients, those of another input, and other orders.


def transposed(case: Case) -> Iterator[Diagnosis]:
    """c is the true gradient transposed, or the true one at a transposed input, or of a gᵀ."""
    turns = {"transposed": _mT, "with its axes in reverse order": _T}
    for how, turn in turns.items():
        if _fits_turned(case, turn):
            yield Diagnosis(
                "transposed",
                f"The VJP gives the true gradient {how}.",
                "the VJP turned round is the difference in every element, for 2 random g",
            )
            return
    if all(_fits_before_the_sum(case, t) for t in case.trials):
        yield Diagnosis(
            "transposed",
            f"The VJP gives the true gradient transposed, before it is summed to the shape of "
            f"input {case.i}.",
            "turned round and then summed, it is the difference in every element, for 2 random g",
        )
        return
    for j, a in enumerate(case.alone.inputs):
        if a.dtype.kind == "f" and case.gives(partial(_true_where_turned, case, j)):
            yield Diagnosis(
                "transposed",
                f"The VJP gives what is right if input {j} is transposed: it uses input {j} "
                "without the .mT that belongs there, or with one too many.",
                f"VJP = difference at the transposed input {j}, for 2 random g",
            )
            return
    if case.gives(partial(_true_where_turned, case, None)):
        yield Diagnosis(
            "transposed",
            "The VJP gives what is right for gᵀ in the place of g.",
            "VJP for g = difference for gᵀ, for 2 random g",
        )


def _mT(a: Array) -> Array:
    return a.swapaxes(-1, -2) if a.ndim > 1 else a


def _T(a: Array) -> Array:
    return a.transpose()


def _fits_turned(case: Case, turn: Callable[[Array], Array]) -> bool:
    """Whether c, turned round, is the true gradient."""
    found = [(turn(t.claimed), t) for t in case.trials]
    return all(
        c.shape == t.claimed.shape and same(case.at(c), t.true, t.resolution) for c, t in found
    )


def _fits_before_the_sum(case: Case, trial: Trial) -> bool:
    """Whether what the VJP itself gives, turned round, is right once it is summed."""
    g, shape = unsummed(case, trial), trial.inputs[case.i].shape
    found = summed_to(shape, _mT(g)) if g.shape != shape else None
    return found is not None and same(case.at(found), trial.true, trial.resolution)


def _true_where_turned(case: Case, j: int | None, trial: Trial) -> Array:
    """The true gradient with input j transposed, or g; NaN, which fits nothing, if none can be."""
    inputs, g = list(trial.inputs), trial.g
    before = g if j is None else inputs[j]
    after = _mT(before)
    if after.shape != before.shape or before.ndim < 2:
        return np.full(len(case.looked), np.nan)
    if j is None:
        g = after
    else:
        inputs[j] = after.copy()
    return case.alone.true(inputs, g, case.i, case.looked)[0]


def another_input(case: Case) -> Iterator[Diagnosis]:
    """c for input i is t for input j, before the engine has brought it to the shape of i."""
    for j in case.alone.wanted:
        if j != case.i and all(_is_of(case, t, j) for t in case.trials):
            yield Diagnosis(
                "another input",
                f"The VJP gives the gradient of input {j}: are the VJPs of inputs "
                f"{min(case.i, j)} and {max(case.i, j)} exchanged?",
                f"VJP {case.i} = difference with respect to input {j} in every element, for 2 "
                "random g",
            )


def _is_of(case: Case, trial: Trial, j: int) -> bool:
    """Whether the VJP of input i gives what is right for input j."""
    if trial.inputs[j].size > LOOKED_AT:
        return False
    found = summed_to(trial.inputs[j].shape, unsummed(case, trial))
    return found is not None and same(found.ravel(), *case.alone.true(trial.inputs, trial.g, j))


def another_order(case: Case) -> Iterator[Diagnosis]:
    """c holds the numbers of t in another order."""
    shape = case.alone.inputs[case.i].shape
    if len(case.looked) < max(2, int(np.prod(shape))):
        return
    for axis in range(len(shape)):
        if _fits_turned(case, partial(np.flip, axis=axis)):
            how = f"reversed along axis {axis}"
            break
    else:
        if not all(
            same(np.sort(t.claimed.ravel()), np.sort(t.true), t.resolution.max())
            for t in case.trials
        ):
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
