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


def stop(sentence: str, *, code: int = 2) -> NoReturn:
    """End with one sentence on stderr and a non-zero exit, without a traceback."""
    print(sentence, file=sys.stderr)
    raise SystemExit(code)
