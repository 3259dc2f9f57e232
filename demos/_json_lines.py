"""Demos · JSON lines: results of a long run that are kept in a file, and how they were made."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from minigrad.runs.saving import write_whole


def made(command: str, seed: int, **more: Any) -> dict[str, Any]:
    """Return how results are made: the command, its seed, NumPy's version and the day."""
    day = str(datetime.now(UTC).date())
    return {"command": command, "seed": seed, "numpy": np.__version__, "date": day, **more}


def keep(path: Path, results: Sequence[Any], about: dict[str, Any]) -> None:
    """Write how dataclasses were made, and then each of them in a line, with four digits."""
    lines = [about, *(_shortened(asdict(each)) for each in results)]
    write_whole(path, "".join(json.dumps(line) + "\n" for line in lines))


def read(path: Path) -> tuple[dict[str, Any], list[Any]]:
    """Return how kept results were made, and their lines."""
    about, *rows = map(json.loads, path.read_text("utf-8").splitlines())
    return about, rows


def _shortened(x: Any) -> Any:
    """Return a structure whose floats have four digits."""
    if isinstance(x, dict):
        return {name: _shortened(value) for name, value in x.items()}
    if isinstance(x, list):
        return [_shortened(value) for value in x]
    return float(f"{x:.4g}") if isinstance(x, float) else x
