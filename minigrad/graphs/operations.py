"""Operations: what drawings say about an operation, and its record does not hold.

That is what the docstring of its rule says, its options as text, and a table of facts. An operation
that is not in the table, such as a user's own, is drawn without the facts.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np


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
    "transpose": Facts(moves=True, said="{}ᵀ"),
    "where": Facts(copied=(0, 1, 2)),
}


def ours(rule: Any) -> bool:
    """Return whether a rule is one of minigrad. (A user's may have the name of one.)"""
    return bool(rule.__module__.startswith("minigrad."))


def facts(rule: Any) -> Facts:
    """Return the facts of an operation."""
    return TABLE.get(rule.__name__, UNKNOWN) if ours(rule) else UNKNOWN


@dataclass(frozen=True)
class Rule:
    """The facts about a rule that a drawing shows.

    formula    the first line of its docstring
    displayed  the formulas that the docstring sets apart
    letters    the names that the rule and its docstring have for the inputs
    fused      whether it does several steps at once, which `unfused()` shows
    facts      its entry in the table
    """

    formula: str = ""
    displayed: tuple[str, ...] = ()
    letters: tuple[str, ...] = ()
    fused: bool = False
    facts: Facts = field(default=UNKNOWN, repr=False)

    @classmethod
    def of(cls, rule: Any) -> Rule:
        """Return what is known about a rule."""
        formula, displayed = formulas(called(rule).__doc__ or "")
        letters = rule.__code__.co_varnames[: rule.__code__.co_posonlyargcount]
        fused = hasattr(rule, "definition") and rule.__name__ != "recompute"
        return cls(formula, displayed, letters, fused, facts(rule))

    def letter(self, position: int) -> str:
        """Return the name that the rule has for an input; "" for one of `*xs`."""
        return self.letters[position] if position < len(self.letters) else ""

    def gradient(self, position: int) -> str:
        """Return the formula of an input's gradient, `∂L/∂x = …`; "" if none is displayed.

        This is all that a program reads in a docstring's formulas. The formula stands in a display
        (`formulas` says what that is), at the beginning of a line or behind two spaces. Its letter
        is the rule's own name for the input, or the capital of this name, and may have an index:
        ∂L/∂Aᵢₖ. Of several such formulas the last one counts. Of a chain of equations the two ends
        are returned.
        """
        name = self.letter(position)
        if not name:
            return ""
        begins = re.compile(f"∂L/∂({name}|{name.upper()})[ᵢⱼₖ]* = ")
        parts = [part for line in self.displayed for part in re.split(" {2,}", line.strip())]
        written = [part.split(" = ") for part in parts if begins.match(part)]
        return f"{written[-1][0]} = {written[-1][-1]}" if written else ""


def called(rule: Any) -> Any:
    """Return the function that a user calls for this rule; its docstring is the rule's.

    Beside the rule, under its name, stands the operation that `primitive` made of it, or, for a
    rule of ours, a function that calls the operation.
    """
    public: Any = rule.__globals__.get(rule.__name__)
    is_ours = rule.__module__.startswith(("minigrad.", "attention."))
    if callable(public) and (is_ours or getattr(public, "__wrapped__", None) is rule):
        return public
    return rule


@cache
def formulas(docstring: str) -> tuple[str, tuple[str, ...]]:
    """Return a docstring's first line, and the lines that it displays before its example.

    A display begins behind a blank line, and is indented by four spaces more than the text. (So the
    second line of a list's item, which may be indented as far, is not one.)
    """
    lines = inspect.cleandoc(docstring).partition(">>>")[0].splitlines() or [""]
    displayed: list[str] = []
    in_display = False
    for before, line in pairwise(lines):
        in_display = line.startswith("    ") and (in_display or not before.strip())
        if in_display:
            displayed.append(line[4:])
    return lines[0], tuple(displayed)


def transposes(rule: Any, options: Mapping[str, Any], ndim: int) -> bool:
    """Return whether an operation exchanges the last two axes of x, and no others."""
    if not ours(rule) or ndim < 2:
        return False
    if rule.__name__ == "swapaxes":
        exchanged = {options["axis1"] % ndim, options["axis2"] % ndim}
        return exchanged == {ndim - 2, ndim - 1}
    if rule.__name__ == "transpose":
        axes = options.get("axes")
        if axes is None:  # all axes reversed
            return ndim == 2
        return [axis % ndim for axis in axes] == [*range(ndim - 2), ndim - 1, ndim - 2]
    return False


def options_text(rule: Any, options: Mapping[str, Any], shape: tuple[int, ...]) -> str:
    """Return an operation's options as text, without defaults and without the result's shape."""
    parameters = [p for f in (rule, called(rule)) for p in inspect.signature(f).parameters.values()]
    usual = {(p.name, repr(p.default)) for p in parameters} | {("shape", repr(shape))}
    unusual = [(name, value) for name, value in options.items() if (name, repr(value)) not in usual]
    return ", ".join(f"{name}={_option(value)}" for name, value in unusual)


def _option(value: Any) -> str:
    """Write an option as short text: slices as they are typed, long arrays by their shape."""
    if isinstance(value, tuple):
        inside = ", ".join(_option(v) for v in value)
        return f"({inside},)" if len(value) == 1 else f"({inside})"
    if isinstance(value, slice):
        ends = ["" if v is None else str(v) for v in (value.start, value.stop)]
        return ":".join(ends) + ("" if value.step is None else f":{value.step}")
    if value is Ellipsis:
        return "..."
    if isinstance(value, np.ndarray) and value.size > 4:
        return f"array {value.shape}"
    text = printable(str(value) if not isinstance(value, str) else repr(value))
    return text if len(text) <= 32 else text[:31] + "…"


def printable(text: str) -> str:
    """Bring a text that a user supplied to one line, with a ? for control characters."""
    return "".join(c if c.isprintable() else "?" for c in " ".join(text.split()))
