"""Demos · The museum of bugs: real mistakes, each with its symptom, its check and its repair.

Every other file here is one exhibit. It is a module that holds

    its docstring      the mistake's name, and where the mistake is made
    broken             a function with the mistake
    repaired           the same function without the mistake: only the lines in question differ
    symptom(f, rng)    measures f: a name → a number or a text
    check(f, rng)      raises an error if f has the mistake: a few lines that fit into any project
    REPAIR             what to do, and what not to do, in a sentence or two

If this project refuses the mistake, the module also has `refusal()`, which makes the mistake on
purpose. The code that an exhibit shows is read from the functions that run, so the two cannot
differ.
"""

from __future__ import annotations

import ast
import difflib
import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

NAMES = (
    "wrong_axis",
    "sqrt_d_model",
    "no_scale",
    "reversed_mask",
    "empty_row",
    "assigned_gradient",
    "unordered_recursion",
    "repeated_index",
    "dead_branch",
    "uncleared_gradients",
    "log_of_softmax",
    "lost_sum",
    "in_place",
    "heads_by_reshape",
    "integer_mask",
    "axes_in_order",
)
# What a check may raise: its own AssertionError, gradcheck's GradientError (a kind of it), or the
# FloatingPointError of `detect_anomaly`. Any other error is an accident and not a catch.
CATCHES = (AssertionError, FloatingPointError)
ROOT = str(Path(__file__).parents[3])


@dataclass(frozen=True)
class Exhibit:
    """One mistake, with its story, its symptoms, a check that catches it, and the repair."""

    name: str
    number: int
    module: ModuleType

    @property
    def title(self) -> str:
        """Return the mistake in a few words."""
        return self._paragraphs()[0].partition(": ")[2].rstrip(".")

    @property
    def story(self) -> str:
        """Return the story: where the mistake is made, why it is not seen."""
        return " ".join(self._paragraphs()[1:])

    def _paragraphs(self) -> list[str]:
        return [" ".join(part.split()) for part in (self.module.__doc__ or "").split("\n\n")]

    def caught(self, f: Callable[..., Any], seed: int = 0) -> str | None:
        """Return the sentence with which the check rejects f; None if it lets f pass."""
        try:
            with np.errstate(all="ignore"):
                self.module.check(f, np.random.default_rng(seed))
        except CATCHES as error:
            sentence = str(error).partition("\n")[0].replace(f"{ROOT}/", "")
            return f"{type(error).__name__}: {sentence}"
        return None

    def symptoms(self, f: Callable[..., Any], seed: int = 0) -> dict[str, Any]:
        """Return the measurements of `symptom` on f."""
        with np.errstate(all="ignore"):
            seen: dict[str, Any] = self.module.symptom(f, np.random.default_rng(seed))
        return seen

    def refused(self) -> str | None:
        """Return this project's error for the mistake; None if it cannot detect the mistake."""
        if not hasattr(self.module, "refusal"):
            return None
        try:
            self.module.refusal()
        except (TypeError, ValueError, RuntimeError) as error:
            return f"{inspect.getdoc(self.module.refusal)} {type(error).__name__}: {error}"
        raise AssertionError(f"{self.name} should have been refused, but raised no error")


def exhibit(name: str) -> Exhibit:
    """Return the exhibit of this name."""
    return Exhibit(
        name, NAMES.index(name) + 1, importlib.import_module(f"demos.museum.exhibits.{name}")
    )


def source(f: Callable[..., Any], *, docstring: bool = True) -> list[str]:
    """Return the lines of a function, as they are in its file."""
    lines = inspect.getsource(f).splitlines()
    if docstring:
        return lines
    words = ast.parse("\n".join(lines)).body[0].body[0]  # type: ignore[attr-defined]
    return lines[: words.lineno - 1] + lines[words.end_lineno :]


def difference(broken: list[str], repaired: list[str]) -> list[str]:
    """Return the broken function, its wrong lines marked - and the lines that repair it +."""
    renamed = [line.replace("def repaired(", "def broken(") for line in repaired]
    marked = [line for line in difflib.ndiff(broken, renamed) if not line.startswith("?")]
    # The removed lines come before the added ones, so that each version can be read in one piece.
    ordered: list[str] = []
    run: list[str] = []
    for line in [*marked, "  "]:
        if line.startswith("  "):
            ordered += sorted(run, key=lambda changed: changed[0], reverse=True)
            run = []
            ordered.append(line)
        else:
            run.append(line)
    return [f"   {line}".rstrip() for line in ordered[:-1]]


def short_text(value: Any) -> str:
    """Return a number with three digits, a text as it is, a boolean table with # for True."""
    if np.size(value) > 40:
        return f"{short_text(value[0])} … {short_text(value[-1])}"
    if isinstance(value, float | np.floating):
        return f"{value:.3g}"
    if isinstance(value, np.ndarray) and value.dtype == bool:
        return "\n".join("".join("#" if true else "." for true in row) for row in value)
    if isinstance(value, np.ndarray):
        return np.array2string(value, precision=2, suppress_small=True)
    return str(value)
