"""Demos · Speed: two rows in JAX, compiled by `jax.jit`, as its users run it.

A compiled program has no price for each operation, so "tiny" says here what a compiler saves.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from demos.speed.bench.by_hand import Program
from demos.speed.bench.rows import Given


def versions() -> dict[str, str]:
    """Return the version of the measured framework."""
    return {"jax": jax.__version__}


def limit_threads(threads: int) -> None:
    """Do nothing: XLA has read its number of threads from the environment (`worker`)."""


def compiled(function: Any, names: tuple[str, ...], inputs: list[Any]) -> Program:
    """Return a compiled function of the inputs, with its results by their names."""
    run, values = jax.jit(function), [jnp.asarray(x) for x in inputs]

    def step() -> Any:
        return jax.block_until_ready(run(*values))

    return step, lambda: dict(zip(names, map(np.asarray, step()), strict=True))


def products(sizes: dict[str, Any], given: Given) -> Program:
    """Multiply by w in each step."""

    def chain(x: Any, w: Any) -> Any:
        y = x
        for _ in range(sizes["nodes"]):
            y = y * w
        return y.sum()

    return compiled(jax.grad(chain, argnums=(0, 1)), ("x", "w"), [given["x"], given["w"]])


def second_order(sizes: dict[str, Any], given: Given) -> Program:
    """Return the program of the gradient of a gradient's length."""
    x = jnp.asarray(given["x"])

    def loss(w_1: Any, w_2: Any) -> Any:
        return jnp.mean((jnp.tanh(x @ w_1) @ w_2) ** 2)

    def length(w_1: Any, w_2: Any) -> Any:
        return 0.5 * sum((g * g).sum() for g in jax.grad(loss, argnums=(0, 1))(w_1, w_2))

    names = ("w_1", "w_2")
    return compiled(jax.grad(length, argnums=(0, 1)), names, [given[name] for name in names])


PROGRAMS: dict[str, dict[str, Any]] = {
    "products": {"": products},
    "second_order": {"": second_order},
}
