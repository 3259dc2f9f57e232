"""Demos · Files: where each demo is, and what it says of itself without being run."""

from __future__ import annotations

import ast
import sys
from functools import cache
from pathlib import Path
from typing import NoReturn

DEMOS = Path(__file__).parent
KINDS = (
    "first",
    "learn",
    "laboratory",
    "tasks",
    "pretrained",
    "texts",
    "museum",
    "speed",
    "site",
)  # the folders, in the order of the list
OF_CHAPTERS = {  # the demos that belong to each chapter
    "0": "learn site",
    "4.3": "museum",
    "5": "draw",
    "7.3": "two_moons",
    "8": "parallel",
    "11": "first_gradient digits sort mammal_and_reptile texts",
    "11.2": "your_journey",
    "12": "benchmark",
    "13": "love_transformers",
    "14": "reverse",
    "15.1": "induction",
    "15.2": "translate",
    "15.3": "addition pretrained",
    "15.4": "charlm",
    "16": "scaling laboratory why_half love_you sky_is_blue",
    "16.5": "recall",
}
CHAPTERS = {name: number for number, names in OF_CHAPTERS.items() for name in names.split()}
COMMANDS = {"runtime": "live"}  # what else `python -m demos` runs, and its folder


def files() -> dict[str, Path]:
    """Return where each demo is, by its name."""
    folders = (sorted((DEMOS / kind).glob("[!_]*.py")) for kind in KINDS)
    return {path.stem: path for paths in folders for path in paths}


@cache
def _tree(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


def docstring(path: Path) -> str:
    """Return a module's docstring without running the module."""
    return ast.get_docstring(_tree(path)) or "(no docstring)"


def seconds(path: Path) -> int:
    """Return the number that a demo calls SECONDS, without running the demo."""
    for node in _tree(path).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "SECONDS":
            return int(ast.literal_eval(node.value))
    raise ValueError(f"{path} has no line SECONDS = …: how long does a run take?")


def resumable(path: Path) -> bool:
    """Return whether a demo passes `steps=` to `options`, without running the demo."""
    calls = [node for node in ast.walk(_tree(path)) if isinstance(node, ast.Call)]
    of_options = [call for call in calls if ast.unparse(call.func) == "options"]
    return any(word.arg == "steps" for call in of_options for word in call.keywords)


def stop(sentence: str, *, code: int = 2) -> NoReturn:
    """End with one sentence on stderr and a non-zero exit, without a traceback."""
    print(sentence, file=sys.stderr)
    raise SystemExit(code)
