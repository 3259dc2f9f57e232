"""Demos · Speed: the rows written by hand, and the floor, which is their matrix products alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from demos.speed.bench import by_hand, by_hand_models, by_hand_step
from demos.speed.bench.by_hand import Program, product
from demos.speed.bench.rows import Given


def versions() -> dict[str, str]:
    """Return no versions: NumPy's is shown anyway."""
    return {}


def limit_threads(threads: int) -> None:
    """Do nothing: BLAS has read its number of threads from the environment."""


def floor(program: Any) -> Any:
    """Make the products of a program, back to back, on its own arrays, and nothing else."""

    def products(sizes: dict[str, Any], given: Given) -> Program:
        step, _ = program(sizes, given)
        step()  # makes the buffers
        product.made = made = []
        step()
        product.made = None

        def again() -> None:
            for a, b, out in made:
                np.matmul(a, b, out=out)

        return again, dict  # (a floor has no numbers that could be wrong)

    return products


WRITTEN: dict[str, Any] = {
    "products": by_hand.products,
    "attention": by_hand.attention,
    "step": by_hand_step.step,
    "second_order": by_hand.second_order,
    "encoder": by_hand_models.encoder,
    "generation": by_hand_models.generation,
}
WITH_PRODUCTS = ("attention", "step", "second_order", "encoder")
PROGRAMS: dict[str, dict[str, Any]] = {
    kind: {"": program} | ({"floor": floor(program)} if kind in WITH_PRODUCTS else {})
    for kind, program in WRITTEN.items()
}
