"""Operations: a table of facts about operations that drawings use and records do not hold.

An operation that is not in the table, such as a user's own, is drawn without these facts.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Facts(NamedTuple):
    """Facts about an operation.

    constant   how a constant is written as its first input, and as its second
    copied     the positions of the inputs that it copies to the shape of its result (broadcasts)
    added      the positions of the inputs that it only adds to something
    moves      it only moves numbers, and changes none
    averages   its gradient is divided by the length of an axis
    """

    constant: tuple[str, ...] = ()
    copied: tuple[int, ...] = ()
    added: tuple[int, ...] = ()
    moves: bool = False
    averages: bool = False


UNKNOWN, BOTH = Facts(), (0, 1)
TABLE = {
    "add": Facts(("+ {}", "+ {}"), copied=BOTH, added=BOTH),
    "broadcast_to": Facts(copied=(0,), moves=True),
    "cross_entropy": Facts(averages=True),
    "divide": Facts(("{} /", "/ {}"), copied=BOTH),
    "layer_norm": Facts(copied=(1, 2), added=(2,)),
    "linear": Facts(copied=(2,), added=(2,)),
    "maximum": Facts(copied=BOTH),
    "mean": Facts(averages=True),
    "minimum": Facts(copied=BOTH),
    "multiply": Facts(("× {}", "× {}"), copied=BOTH),
    "power": Facts(("base {}", "power {}"), copied=BOTH),
    "reshape": Facts(moves=True),
    "subtract": Facts(("{} -", "- {}"), copied=BOTH, added=BOTH),
    "swapaxes": Facts(moves=True),
    "transpose": Facts(moves=True),
    "where": Facts(copied=(0, 1, 2)),
}


def facts(rule: Any) -> Facts:
    """Return the facts of an operation. (A user's rule may have the name of one of ours.)"""
    ours = rule.__module__.startswith("minigrad.")
    return TABLE.get(rule.__name__, UNKNOWN) if ours else UNKNOWN
