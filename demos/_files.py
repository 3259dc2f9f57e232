"""Demos · Files: where each demo is, and what it says of itself without being run."""

from __future__ import annotations

import ast
import re
import sys
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


def files() -> dict[str, Path]:
    """Return where each demo is, by its name."""
    folders = (sorted((DEMOS / kind).glob("[!_]*.py")) for kind in KINDS)
    return {path.stem: path for paths in folders for path in paths}


def docstring(path: Path) -> str:
    """Return a module's docstring without running the module."""
    return ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "(no docstring)"


def seconds(path: Path) -> str:
    """Return the seconds that a demo takes: its docstring has them after the command."""
    found = re.search(r"^ +python -m demos .*# (\d+) s$", docstring(path), re.MULTILINE)
    return found[1] if found else "?"


def stop(sentence: str, *, code: int = 2) -> NoReturn:
    """End with one sentence on stderr and a non-zero exit, without a traceback."""
    print(sentence, file=sys.stderr)
    raise SystemExit(code)
