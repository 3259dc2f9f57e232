"""Demos · Speed: the race: processes that take turns, after their numbers were compared.

If the machine's speed drifts, only times measured close together can be compared. So the
contestants of a row take turns: A B C A B C …, each in its own process. Before that, all have
computed the row once from the same arrays, and their values and gradients are compared. If two
differ, the row is not timed.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Protocol

import numpy as np

from demos.speed.bench.rows import Given, Row

ROOT = Path(__file__).parents[3]
INSTALL = {  # the frameworks that can be measured, and how to get them
    "torch": "pip install torch",
    "autograd": "pip install autograd",
    "mygrad": "pip install mygrad",
    "jax": "pip install jax",
}
# The kinds of rows that each contestant knows (its PROGRAMS, without importing its framework).
KINDS = {
    "hand": "products attention step second_order encoder generation",
    "minigrad": "products sums attention step second_order encoder generation",
    "torch": "products sums attention step second_order encoder generation",
    "autograd": "products sums second_order",
    "mygrad": "products sums",
    "jax": "products second_order",
}
VARIANTS = {  # more than one program of the same contestant, by kind
    "hand": dict.fromkeys(("attention", "step", "second_order", "encoder"), "floor"),
    "minigrad": dict.fromkeys(("attention", "step"), "fused"),
    "torch": dict.fromkeys(("attention", "step"), "fused"),
}
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def missing(name: str) -> str:
    """Return a sentence if a framework is not installed, or an empty string."""
    if importlib.util.find_spec(name) is not None:
        return ""
    return f"{name} is not installed: {INSTALL[name]}"


def named(contestant: str, variant: str) -> str:
    """Return the name in the table. The floor belongs to no contestant, so its name is "floor"."""
    return "floor" if variant == "floor" else f"{contestant} {variant}".strip()


def variants(contestant: str, kind: str) -> tuple[str, ...]:
    """Return the programs that a contestant has for a kind of row; "" is the usual one."""
    if kind not in KINDS[contestant].split():
        return ()
    more = VARIANTS.get(contestant, {}).get(kind)
    return ("", more) if more else ("",)


def contestants(row: Row, against: list[str]) -> dict[str, tuple[str, str]]:
    """Return the contestants of a row: name → (contestant, variant)."""
    return {
        named(each, variant): (each, variant)
        for each in ("hand", "minigrad", *against)
        for variant in variants(each, row.kind)
    }


class Contestant(Protocol):
    """The interface of a contestant, as the race calls it."""

    about: dict[str, Any]

    def prepare(self, row: Row) -> Given:
        """Return its values and gradients."""

    def time(self, calls: int) -> dict[str, Any]:
        """Return the seconds and page faults of one call."""


class Process:
    """A contestant in a process of its own, spoken to in lines of JSON."""

    def __init__(
        self,
        contestant: str,
        variant: str,
        *,
        keep_memory: bool,
        threads: int,
        quick: bool,
        seed: int,
    ) -> None:
        command = [sys.executable, "-m", "demos.speed.bench.worker", contestant]
        command += ["--threads", str(threads), *(["--keep-memory"] if keep_memory else [])]
        environment = os.environ | dict.fromkeys(THREADS, str(threads))
        if contestant == "jax":
            environment["JAX_PLATFORMS"] = "cpu"
            if threads == 1:
                environment["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
        self.name, self.variant = contestant, variant
        self.options = {"quick": quick, "seed": seed}
        self.about: dict[str, Any] = {}
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed by close)
        self.process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            encoding="utf-8",
        )

    def prepare(self, row: Row) -> Given:
        """Return its values and gradients; `about` has its versions and the peak of its memory."""
        self.about = self._read()
        with tempfile.TemporaryDirectory() as folder:
            file = str(Path(folder) / "results.npz")
            asked = {"do": "prepare", "row": row.name, "variant": self.variant, "file": file}
            self.about |= self._ask(asked | self.options)
            with np.load(file) as found:
                return dict(found)

    def time(self, calls: int) -> dict[str, Any]:
        """Return the seconds and page faults of one call."""
        return self._ask({"do": "time", "calls": calls})

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.kill()
        self.process.wait()
        with suppress(OSError):  # (what was asked of a process that had already ended)
            self.process.stdin.close()
        self.process.stdout.close()
        self.errors.close()

    def _ask(self, asked: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(asked) + "\n")
            self.process.stdin.flush()
        except OSError:
            pass  # (it has ended: reading says so)
        return self._read()

    def _read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line.endswith("\n"):  # it has ended, perhaps in the middle of an answer
            self.process.wait()
            self.errors.seek(0)
            said = self.errors.read().decode(errors="replace").strip().splitlines()
            raise Failed(said[-1] if said else f"its process ended with {self.process.returncode}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise Failed(answer["error"])
        return answer


class Failed(Exception):
    """A contestant could not do a row."""


@dataclass
class Outcome:
    """The outcome of a row: times by contestant, or the reasons why there are none.

    wrong   a sentence for each two contestants whose numbers differ; then nothing was timed
    failed  contestant → why it could not do the row
    about   contestant → its versions, its kernels, what it says of the allocator
    """

    wrong: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    times: dict[str, dict[str, Any]] = field(default_factory=dict)
    about: dict[str, dict[str, Any]] = field(default_factory=dict)


def differences(results: dict[str, Given], tolerance: float) -> list[str]:
    """Return a sentence for each contestant that differs from the first or leaves out an array.

    Each array is compared as a vector: the length of the difference may be `tolerance` times the
    vector's length. Gradients that are 0 but for rounding, such as that of a key's bias, are
    compared with a hundredth of the longest gradient instead.
    """
    known = {name: found for name, found in results.items() if found}
    if not known:
        return []
    first, *others = known
    truth = {name: np.asarray(x, float) for name, x in known[first].items()}
    lengths = [float(np.linalg.norm(x)) for name, x in truth.items() if name != "losses"]
    floor = 0.01 * max(lengths, default=0.0)
    said = []
    for other in others:
        for one, two in ((first, other), (other, first)):
            if left_out := [name for name in known[one] if name not in known[two]]:
                said.append(f"{two} leaves out {', '.join(left_out)}, which {one} computes")
        worst, where = 0.0, ""
        for name in truth.keys() & known[other].keys():
            x = np.asarray(known[other][name], float)
            if x.shape != truth[name].shape:
                said.append(f"{other}: {name} is {x.shape}, and {truth[name].shape} by {first}")
                continue
            size = np.linalg.norm(truth[name])
            size = size if name in ("losses", "y", "words") else max(size, floor)
            apart = float(np.linalg.norm(x - truth[name]) / (size or 1))
            apart = np.inf if np.isnan(apart) else apart  # (a NaN would be lost in comparisons)
            if apart > worst:
                worst, where = apart, name
        if worst > tolerance:
            said.append(f"{other} and {first} differ in {where} by {worst:.1e} of its length")
    return said


def race(
    row: Row,
    taking_part: dict[str, Contestant],
    *,
    rounds: int,
    turn: float,
    patience: float = 30.0,
    tick: Callable[[], None] = lambda: None,
) -> Outcome:
    """Compare, and then take turns of about `turn` seconds.

    After `patience` seconds five rounds are enough.
    """
    outcome, results = Outcome(), {}
    for name, each in taking_part.items():
        try:
            results[name] = each.prepare(row)
        except Failed as error:
            outcome.failed[name] = str(error)
        outcome.about[name] = each.about
    outcome.wrong = differences(results, row.tolerance)
    if outcome.wrong:
        return outcome
    racing = {name: taking_part[name] for name in results}
    calls = {n: max(1, round(turn / each.about["seconds"])) for n, each in racing.items()}
    seconds: dict[str, list[float]] = {name: [] for name in racing}
    faults: dict[str, list[Any]] = {name: [] for name in racing}
    start = time.monotonic()
    for done in range(rounds):
        if done >= 5 and time.monotonic() - start > patience:
            break
        for name, each in racing.items():
            if name in outcome.failed:
                continue
            try:
                if calls[name] > 1:
                    each.time(1)  # another process had the cache before
                found = each.time(calls[name])
            except Failed as error:
                outcome.failed[name] = str(error)
                continue
            seconds[name].append(found["seconds"])
            faults[name].append(found["faults"])
        tick()
    for name in racing:
        if name not in outcome.failed:
            known = [n for n in faults[name] if n is not None]
            outcome.times[name] = {
                "median": median(seconds[name]),
                "minimum": min(seconds[name]),
                "rounds": seconds[name],
                "calls": calls[name],
                "faults": median(known) if known else None,
                "peak": racing[name].about.get("peak"),
            }
    return outcome


@contextmanager
def processes(row: Row, against: list[str], **options: Any) -> Iterator[dict[str, Contestant]]:
    """Start all contestants of a row at once, and end them together."""
    with ExitStack() as stack:
        found: dict[str, Contestant] = {}
        for name, (contestant, variant) in contestants(row, against).items():
            process = Process(contestant, variant, **options)
            stack.callback(process.close)
            found[name] = process
        yield found
