"""Measurements for the tests of sweeps, in a module that worker processes import."""

import os
import signal
import time
from concurrent.futures import BrokenExecutor, CancelledError
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from attention.laboratory.results import SweepError


@dataclass(frozen=True)
class Found:
    """What a cell found."""

    n: int
    product: float  # its last bits depend on the number of BLAS threads
    narrow: float  # the same in float32
    draws: list[float]
    pair: tuple[float, int]
    said: str
    odd: float


def measured(n: int, a: float = 0.5, *, rng: np.random.Generator) -> Found:
    """Draw, multiply, and describe."""
    x, y = rng.standard_normal((64, 8 * n + 3)), rng.standard_normal((129, 8 * n + 3))
    wide, narrow = x @ y.T, x.astype(np.float32) @ y.astype(np.float32).T
    return Found(
        n=n,
        product=np.cumsum(wide**3)[-1] * (n + 1) ** -a,
        narrow=np.cumsum(narrow**3)[-1],  # (a NumPy number, which is kept as Python's)
        draws=rng.random(3).tolist(),
        pair=(float(wide[0, 0]), n),
        said=f"n = {n} · ½",
        odd=[np.nan, np.inf, -np.inf, 0.1][n % 4],
    )


def doubled(n: int, *, rng: np.random.Generator) -> Found:
    """Another measurement with the same arguments."""
    return measured(2 * n, rng=rng)


def visited(n: int, *, folder: str, seconds: float = 0.0, rng: np.random.Generator) -> Found:
    """A cell that takes its time, and leaves a file with the number of its process."""
    (Path(folder) / f"{n}.{os.getpid()}").touch()
    time.sleep(seconds)
    return measured(n, rng=rng)


def deadly(n: int, *, folder: str, rng: np.random.Generator) -> Found:
    """At n = 5 this kills the process that computes it, once in a folder."""
    mark = Path(folder) / "killed"
    if n == 5 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return measured(n, rng=rng)


class Unsendable(Exception):
    """An error that pickle writes, and cannot read."""

    def __init__(self, n: int, why: str) -> None:
        super().__init__(f"{n} {why}")


class Untellable(Exception):
    """An error without a message and without notes."""

    def __str__(self) -> str:
        raise ValueError("no message")

    def add_note(self, note: str) -> None:
        raise ValueError("no notes")


class Base(BaseException):
    """An error that `except Exception` does not catch."""


WRONG = {
    "error": lambda: FloatingPointError("it overflows"),
    "unsendable": lambda: Unsendable(2, "is too many"),
    "untellable": lambda: Untellable(),
    "long": lambda: ValueError("long " * 2_000_000),
    "exit": lambda: SystemExit(7),
    "generator": lambda: GeneratorExit("of a generator"),
    "iteration": lambda: StopIteration("the last"),
    "base": lambda: Base("of all"),
    "ctrl-c": lambda: KeyboardInterrupt("from inside"),
    "broken": lambda: BrokenExecutor("of the cell's own"),
    "cancelled": lambda: CancelledError("of the cell's own"),
    "sentence": lambda: SweepError("the cell says so"),
    "group": lambda: ExceptionGroup("both", [ValueError(1), ValueError(2)]),
}


def wrong(n: int, *, kind: str, rng: np.random.Generator) -> Found:
    """At n = 2 this fails, in one of several ways."""
    if n == 2 and kind in WRONG:
        raise WRONG[kind]()
    if n == 2 and kind == "deep":
        return wrong(n, kind=kind, rng=rng)
    if n == 2 and kind == "threads":
        import threadpoolctl

        threadpoolctl.threadpool_limits(2, user_api="blas")
    if n == 2 and kind == "type":
        return 3.0  # type: ignore[return-value]
    return measured(n, rng=rng)


def untold(n: int, *, rng: np.random.Generator):
    """It does not say what it returns."""
    return measured(n, rng=rng)
