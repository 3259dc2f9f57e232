"""Demos · Speed: what the race found, as a table, and on which machine."""

from __future__ import annotations

import os
import platform
import re
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from threadpoolctl import threadpool_info

from demos.speed.bench.race import ratio
from demos.speed.bench.rows import NAMES, ROWS

Data = dict[str, Any]
BASES = {"hand": "hand", "torch": "PyTorch", "torch fused": "PyTorch fused", "floor": "floor"}
OURS = {"minigrad": ("hand", "torch", "floor"), "minigrad fused": tuple(BASES)}  # divided by them


def table(data: Data) -> str:
    """Return our times as Markdown, also divided by those of the others, and our page faults."""
    heads = ["row", "allocator"]
    for name, bases in OURS.items():
        heads += [name.split()[-1], *(f"/ {BASES[base]}" for base in bases), "faults"]
    lines = [heads]
    for name, outcomes in data["rows"].items():
        row = ROWS[NAMES.index(name)]
        for allocator, outcome in outcomes.items():
            cells = [name, allocator]
            for ours, bases in OURS.items():
                found = outcome["rounds"].get(ours)
                time = row.shown(median(found), data["quick"]) if found else 0
                cells.append(f"{_number(time)} {row.unit}" if found else "")
                ratios = [ratio(outcome, ours, base) for base in bases]
                cells += ["" if each is None else f"{each:.2f}" for each in ratios]
                cells.append(f"{median(outcome['faults'][ours]):,.0f}" if found else "")
            lines.append(cells)
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    lines.insert(1, ["-" * width for width in widths])
    padded = ([x.ljust(n) for x, n in zip(cells, widths, strict=True)] for cells in lines)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in padded)


def _number(x: float) -> str:
    """Return a number with three digits, without an exponent."""
    return f"{x:.3g}" if x < 100 else f"{x:,.0f}"


def about(data: Data) -> str:
    """Return date, machine, versions and kernel, in a paragraph."""
    names = {"minigrad": "minigrad-attention"} | {name: name for name in data["against"]}
    versions = "".join(f", {name} {version(package)}" for name, package in names.items())
    kernels = "; ".join(
        f"{each['internal_api']} {each['version']}, kernel {each.get('architecture', 'unknown')}"
        for each in threadpool_info()
        if each["user_api"] == "blas"
    )
    library = " ".join(platform.libc_ver()).strip() or "C library unknown"
    threads = f"{data['threads']} thread{'s' if data['threads'] != 1 else ''}"
    return (
        f"{data['date']}, {processor()}, {os.cpu_count()} cores, {platform.system()} "
        f"{platform.machine()}, {library}.\nPython {platform.python_version()}, NumPy "
        f"{np.__version__}{versions}.\nNumPy's BLAS: {kernels or 'unknown'}.\n"
        f"{threads} each, {data['rounds']} rounds, float32. Memory: "
        f"{', then '.join(data['allocators'].values())}."
    )


def processor() -> str:
    """Return the processor's name."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        text = ""
    found = re.search(r"^model name\s*: (.+)$", text, re.MULTILINE)
    return found[1] if found else platform.processor() or platform.machine()
