"""Demos · Speed: the rows that HIPS autograd knows well: small operations, and second order."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import autograd
import autograd.numpy as np

from demos.speed.bench.by_hand import Program
from demos.speed.bench.rows import Given


def versions() -> dict[str, str]:
    """Return the version of the measured framework."""
    return {"autograd": version("autograd")}


def limit_threads(threads: int) -> None:
    """Do nothing: NumPy's BLAS has read its number of threads from the environment."""


def products(sizes: dict[str, Any], given: Given) -> Program:
    """Multiply by w in each step."""

    def chain(pair: Any) -> Any:
        y, w = pair
        for _ in range(sizes["nodes"]):
            y = y * w
        return np.sum(y)

    both = autograd.value_and_grad(chain)

    def step() -> Given:
        y, (x, w) = both((given["x"], given["w"]))
        return {"y": y, "x": x, "w": w}

    return step, lambda: {name: x for name, x in step().items() if name != "y"}


def sums(sizes: dict[str, Any], given: Given) -> Program:
    """Add 1 in each step."""

    def chain(y: Any) -> Any:
        for _ in range(sizes["nodes"]):
            y = y + 1.0
        return np.sum(y)

    slope = autograd.grad(chain)

    def step() -> Given:
        return {"x": slope(given["x"])}

    return step, step


def second_order(sizes: dict[str, Any], given: Given) -> Program:
    """Return the program of the gradient of a gradient's length."""
    x = given["x"]

    def loss(w: Any) -> Any:
        return np.mean(np.dot(np.tanh(np.dot(x, w[0])), w[1]) ** 2)

    def length(w: Any) -> Any:
        a, b = autograd.grad(loss)(w)
        return 0.5 * (np.sum(a * a) + np.sum(b * b))

    slope = autograd.grad(length)

    def step() -> Given:
        a, b = slope((given["w_1"], given["w_2"]))
        return {"w_1": a, "w_2": b}

    return step, step


PROGRAMS: dict[str, dict[str, Any]] = {
    "products": {"": products},
    "sums": {"": sums},
    "second_order": {"": second_order},
}
