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
    said       how a person writes the result, with its inputs in the places of {}
    """

    constant: tuple[str, ...] = ()
    copied: tuple[int, ...] = ()
    added: tuple[int, ...] = ()
    moves: bool = False
    averages: bool = False
    said: str = ""


UNKNOWN, BOTH = Facts(), (0, 1)
TABLE = {
    "add": Facts(("+ {}", "+ {}"), copied=BOTH, added=BOTH, said="{} + {}"),
    "broadcast_to": Facts(copied=(0,), moves=True),
    "cross_entropy": Facts(averages=True),
    "divide": Facts(("{} /", "/ {}"), copied=BOTH, said="{} / {}"),
    "layer_norm": Facts(copied=(1, 2), added=(2,)),
    "linear": Facts(copied=(2,), added=(2,)),
    "matmul": Facts(said="{}·{}"),
    "maximum": Facts(copied=BOTH),
    "mean": Facts(averages=True, said="mean {}"),
    "minimum": Facts(copied=BOTH),
    "multiply": Facts(("× {}", "× {}"), copied=BOTH, said="{} × {}"),
    "power": Facts(("base {}", "power {}"), copied=BOTH),
    "reshape": Facts(moves=True),
    "subtract": Facts(("{} -", "- {}"), copied=BOTH, added=BOTH, said="{} - {}"),
    "sum": Facts(said="Σ {}"),
    "swapaxes": Facts(moves=True, said="{}ᵀ"),
    "transpose": Facts(moves=True),
    "where": Facts(copied=(0, 1, 2)),
}


def ours(rule: Any) -> bool:
    """Return whether a rule is one of minigrad. (A user's may have the name of one.)"""
    return bool(rule.__module__.startswith("minigrad."))


def facts(rule: Any) -> Facts:
    """Return the facts of an operation."""
    return TABLE.get(rule.__name__, UNKNOWN) if ours(rule) else UNKNOWN
