"""Demos · Speed: the rows that MyGrad knows well: small operations. It has no second order."""

from __future__ import annotations

from typing import Any

import mygrad

from demos.speed.bench.by_hand import Program
from demos.speed.bench.rows import Given


def versions() -> dict[str, str]:
    """Return the version of the measured framework."""
    return {"mygrad": mygrad.__version__}


def limit_threads(threads: int) -> None:
    """Do nothing: NumPy's BLAS has read its number of threads from the environment."""


def products(sizes: dict[str, Any], given: Given) -> Program:
    """Multiply by w in each step."""
    x, w = (mygrad.tensor(given[name]) for name in "xw")

    def step() -> Given:
        y = x
        for _ in range(sizes["nodes"]):
            y = y * w
        y.sum().backward()
        return {"y": y.data, "x": x.grad, "w": w.grad}

    return step, step


def sums(sizes: dict[str, Any], given: Given) -> Program:
    """Add 1 in each step."""
    x = mygrad.tensor(given["x"])

    def step() -> Given:
        y = x
        for _ in range(sizes["nodes"]):
            y = y + 1.0
        y.sum().backward()
        return {"y": y.data, "x": x.grad}

    return step, step


PROGRAMS: dict[str, dict[str, Any]] = {"products": {"": products}, "sums": {"": sums}}
