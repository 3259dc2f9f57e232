"""4.7 · Shares: several belong added up, and some are lost.

An element that is used at several places gets a share of the gradient from each, and its gradient
is their sum (chapter 2.1). A rule that uses its input twice, or whose input is broadcast, or copied
by an index, has to add these shares up. The commonest wrong rule loses some. So here the shares are
computed one by one: by a replay in which some uses are left out, or by differences with a number of
its own in each place. Then we look which of them the VJP gives.

    >>> from minigrad import primitive
    >>> from minigrad.checks.culprit import Alone
    >>> from minigrad.checks.mistakes import Case
    >>> from minigrad.checks.shares import forgotten_use
    >>> @primitive
    ... def square(x, /):
    ...     return x * x, lambda g, y: g * x
    >>> alone = Alone(square(Tensor([1.0, 3.0], requires_grad=True)))
    >>> for each in forgotten_use(Case.of(alone, 0, np.random.default_rng(0))):
    ...     print(each)
    The value uses input 0 twice, and the VJP counts only one use: multiply (its input 1). Missing:
    multiply (its input 0). (Without what is missing, a replay of the value gives exactly the
    VJP's numbers, for 2 random g.)
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import combinations
from operator import attrgetter
from typing import Any

import numpy as np

from minigrad.checks.claims import Diagnosis
from minigrad.checks.mistakes import LOOKED_AT, Case, Trial, same
from minigrad.checks.places import jacobians
from minigrad.engine.replay import behind, replay
from minigrad.engine.tensor import Array, Tensor

# ---------------------------------------------------------------- a use forgotten

Arrow = tuple[int, int]  # which node of the value's record, and which of its inputs


def forgotten_use(case: Case) -> Iterator[Diagnosis]:
    """c is the gradient that comes back if only some uses of a tensor in the value are counted.

    A rule is written for Tensors, too. Called with them, its value has a record, in which every use
    of a tensor is an arrow. The gradient without some of the arrows is one replay.
    """
    first, second = case.trials
    value, x = _recorded(case, first)
    if not isinstance(value, Tensor) or value.node is None:
        return
    nodes = _nodes(value)
    uses: dict[Tensor, list[Arrow]] = {}
    for k, t in enumerate(nodes):
        node: Any = t.node
        for position, used in enumerate(node.inputs):
            if used.requires_grad:
                uses.setdefault(used, []).append((k, position))
    cuts = [
        (used, cut)
        for used, arrows in uses.items()
        for missing in range(1, len(arrows) if len(arrows) < 5 else 2)
        for cut in combinations(arrows, missing)
    ]
    # A use that changes nothing, as that in the shift x - max(x) of a softmax, may be missing too.
    whole = _without(case, first, ())
    idle = tuple(a for _, cut in cuts if same(_without(case, first, cut), whole) for a in cut)
    for used, cut in cuts:
        for all_of_it in dict.fromkeys([cut, (*cut, *(a for a in idle if a not in cut))]):
            if all(same(t.claimed, _without(case, t, all_of_it)) for t in (first, second)):
                counted = [arrow for arrow in uses[used] if arrow not in cut]
                name = partial(_named, nodes)
                what = f"input {case.i}" if used is x else f"the result of {_name(used)}"
                n, left = len(uses[used]), len(counted)
                times = "twice" if n == 2 else f"{n} times"
                yield Diagnosis(
                    "a use is missing",
                    f"The value uses {what} {times}, and the VJP counts only "
                    f"{'one use' if left == 1 else f'{left} uses'}: "
                    f"{', '.join(map(name, counted))}. "
                    f"Missing: {', '.join(map(name, cut))}.",
                    "without what is missing, a replay of the value gives exactly the VJP's "
                    "numbers, for 2 random g",
                )
                return


def _recorded(case: Case, trial: Trial) -> tuple[Any, Tensor]:
    """The rule's value with a record, and the input in question."""
    alone, x = case.alone, Tensor(trial.inputs[case.i], requires_grad=True)
    given = [x if k == case.i else a for k, a in enumerate(trial.inputs)]
    if alone.is_fused:
        return alone.rule.definition(*given, **alone.options), x
    return alone.rule(*given, **alone.options)[0], x


def _nodes(value: Tensor) -> list[Tensor]:
    return sorted((t for t in behind(value) if t.node is not None), key=attrgetter("_time"))


def _without(case: Case, trial: Trial, cut: tuple[Arrow, ...]) -> Array:
    """The gradient of the value's own record, without what goes along some of its arrows."""
    value, x = _recorded(case, trial)
    number = {t: k for k, t in enumerate(_nodes(value))}

    def observe(t: Tensor, sent: Any, _: Any) -> Any:
        return (each for each in sent if (number[t], each[1]) not in cut)

    found = replay(value, trial.g, {x}, observe=observe)
    return np.asarray(found.get(x, np.zeros(x.shape)))


def _name(t: Tensor) -> str:
    return t.node.name if t.node is not None else "an input"


def _named(nodes: list[Tensor], arrow: Arrow) -> str:
    return f"{_name(nodes[arrow[0]])} (its input {arrow[1]})"


# ---------------------------------------------------------------- shares that are not added up


def not_summed(case: Case) -> Iterator[Diagnosis]:
    """c is one share, or the mean of the shares, where several shares belong added up."""
    found = next(_a_share(case), None) or next(_a_repeated_place(case), None)
    if found:
        yield found


SHARES = {
    "the first share": lambda wide, axis: wide.take(0, axis),
    "the last share": lambda wide, axis: wide.take(-1, axis),
    "the mean of the shares": lambda wide, axis: wide.mean(axis),
}


def _a_share(case: Case) -> Iterator[Diagnosis]:
    """For an input that was broadcast: its copies are given different numbers, and asked alone."""
    x, y = case.alone.inputs[case.i], case.alone.shape
    for wide in dict.fromkeys([y, y[:-2] + x.shape[-2:]]):
        extra = len(wide) - x.ndim
        before = [1] * extra + list(x.shape)
        axes = [a for a, n in enumerate(wide) if extra >= 0 and before[a] == 1 < n]
        if not axes or int(np.prod(wide)) > LOOKED_AT:
            continue
        try:
            stretched = [_stretched(case, t, wide) for t in case.trials]
        except ValueError:  # such an input is not of this shape, or the rule takes no other
            continue
        for how, share in SHARES.items():
            for kept in (k for n in range(len(axes), 0, -1) for k in combinations(axes, n)):
                taken = []
                for shares, coarse in stretched:
                    for axis in reversed(axes):  # the last one first: each step drops an axis
                        shares = (share if axis in kept else np.sum)(shares, axis)
                    taken.append((shares.reshape(x.shape), coarse))
                if all(same(t.claimed, a, c) for t, (a, c) in zip(case.trials, taken, strict=True)):
                    where = " and ".join(f"axis {a}" for a in kept)
                    n = int(np.prod([wide[a] for a in kept]))
                    yield Diagnosis(
                        "not summed",
                        f"Input {case.i} of shape {x.shape} was broadcast to {wide} along {where}. "
                        f"Each of its elements gets {n} shares there, which belong added up, and "
                        f"the VJP gives {how}.",
                        f"with a number of its own in each place, {how} by differences is the VJP",
                    )
                    return


def _stretched(case: Case, trial: Trial, wide: tuple[int, ...]) -> tuple[Array, float]:
    """The gradient with respect to the input after broadcasting, and its coarsest resolution."""
    inputs = list(trial.inputs)
    inputs[case.i] = np.broadcast_to(inputs[case.i], wide).copy()
    if not same(case.alone.value(inputs), case.alone.value(trial.inputs)):
        raise ValueError
    shares, resolution = case.alone.true(inputs, trial.g, case.i)
    return shares.reshape(wide), float(resolution.max(initial=0.0) * len(shares))


def _a_repeated_place(case: Case) -> Iterator[Diagnosis]:
    """Some elements go to several places, as in x[[0, 0]], and only one share is kept."""
    tables = [jacobians(case, t) for t in case.trials]
    for how, pick in (("last", -1), ("first", 0)):
        fits = []
        several = 0
        for trial, table in zip(case.trials, tables, strict=True):
            if table is None:
                return
            shares = trial.g.reshape(-1, 1) * table[1]
            one = np.zeros(shares.shape[1])
            for column in range(len(one)):
                nonzero = np.flatnonzero(table[1][:, column])
                several += len(nonzero) > 1
                one[column] = shares[nonzero[pick], column] if len(nonzero) else 0.0
            fits.append(same(trial.claimed.ravel(), one, trial.resolution.max(initial=0.0)))
        if all(fits) and several:
            yield Diagnosis(
                "not summed",
                f"{several // 2} elements of input {case.i} go to several places of the output. "
                f"Their shares belong added up, and the VJP gives only the {how} one. (out[index] "
                "= g and out[index] += g write only once to each place.)",
                f"by differences the {how} share of each element is the VJP, for 2 random g",
            )
