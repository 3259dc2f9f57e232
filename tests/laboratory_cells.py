"""Measurements for the tests of sweeps, in a module that other processes import."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np


@dataclass(frozen=True)
class Found:
    """What a cell found."""

    n: int
    total: float  # of a product whose last bits depend on the number of BLAS threads
    narrow: float  # the same in float32
    draws: list[float]
    pair: tuple[float, int]
    said: str
    odd: float = float("nan")


def product(n: int, a: float = 0.5, *, sleep: float = 0.0, rng: np.random.Generator) -> Found:
    """Draw, multiply, and describe."""
    time.sleep(sleep)
    x, y = rng.standard_normal((64, 8 * n)), rng.standard_normal((129, 8 * n))
    z, w = x @ y.T, x.astype(np.float32) @ y.astype(np.float32).T
    return Found(
        n=n,
        total=float(np.cumsum(z * z**2)[-1] * n**-a),
        narrow=float(w[3, 5]),
        draws=rng.random(3).tolist(),
        pair=(float(z[0, 0]), n),
        said=f"n = {n} · ½",
        odd=[np.nan, np.inf, -np.inf, 0.1][n % 4],
    )


def slow(n: int, *, folder: str, seconds: float = 0.3, rng: np.random.Generator) -> Found:
    """A cell that leaves a file that names its process, and takes its time."""
    (Path(folder) / f"{n}.{os.getpid()}").touch()
    time.sleep(seconds)
    return product(n, rng=rng)
