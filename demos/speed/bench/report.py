"""Demos · Speed: what the race found, as a table, and on which machine."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from statistics import median
from typing import Any

import numpy as np
from threadpoolctl import threadpool_info

from demos.speed.bench.changes import BESIDE_PYTORCH, CHANGES
from demos.speed.bench.race import ratio
from demos.speed.bench.rows import NAMES, ROWS

OURS = {"minigrad": ("hand", "torch"), "minigrad in blocks": ("hand", "torch", "torch in blocks")}


def table(data: dict[str, Any]) -> str:
    """Return our times as Markdown, also divided by those of the others.

    A cell has two numbers: with the allocator's defaults → with freed memory kept.
    """
    lines = [["row"]]
    for name, bases in OURS.items():
        lines[0] += [name, *(f"/ {base.replace('torch', 'PyTorch')}" for base in bases)]
    for name, both in data["rows"].items():
        row = ROWS[NAMES.index(name)]
        cells = [name]
        nodes = row.sizes_of(data["quick"]).get("nodes")
        unit, factor = ("µs a node", 1e6 / nodes) if nodes else ("ms", 1e3)
        for ours, bases in OURS.items():
            timed = [each["rounds"] for each in both.values() if ours in each["rounds"]]
            times = " → ".join(_number(factor * median(rounds[ours])) for rounds in timed)
            cells.append(f"{times} {unit}" if times else "")
            for base in bases:
                there = [x for x in both.values() if {ours, base} <= x["rounds"].keys()]
                cells.append(" → ".join(f"{ratio(each, ours, base):.2f}" for each in there))
        lines.append(cells)
    return _markdown(lines)


def table_of_changes(outcomes: dict[str, Any]) -> str:
    """Return what each change brings as Markdown: time and memory of a step, divided by before."""
    lines = [["what to change here", "time of a step", "its memory"]]
    for change in (*CHANGES, *BESIDE_PYTORCH):
        outcome = outcomes[change.group]
        if change.before in outcome["rounds"]:
            time = ratio(outcome, change.after, change.before)
            lines.append([change.what, f"{time:.2f}", ""])
            if change.before in outcome["bytes"]:
                memory = outcome["bytes"][change.after] / outcome["bytes"][change.before]
                lines[-1][2] = f"{memory:.2f}"
    return _markdown(lines)


def _markdown(lines: list[list[str]]) -> str:
    """Return a table whose first line is its head."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    lines.insert(1, ["-" * width for width in widths])
    padded = ([x.ljust(n) for x, n in zip(cells, widths, strict=True)] for cells in lines)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in padded)


def _number(x: float) -> str:
    """Return a number with three digits, without an exponent."""
    return f"{x:.3g}" if x < 100 else f"{x:,.0f}"


def about(data: dict[str, Any]) -> str:
    """Return date, machine and versions, in a paragraph."""
    versions = "".join(f", {name} {version(name)}" for name in data["against"])
    blas = next(each for each in threadpool_info() if each["user_api"] == "blas")
    return (
        f"{data['date']}, {os.cpu_count()} cores, {platform.platform()}. Python "
        f"{platform.python_version()}, NumPy {np.__version__}{versions}. NumPy's BLAS: "
        f"{blas['internal_api']} {blas['version']}, kernel {blas.get('architecture', 'unknown')}. "
        f"Threads: {data['threads']} each. Rounds: {data['rounds']}. Numbers: float32."
    )
