"""Demos · Speed: the race: processes that take turns, after their numbers were compared.

    python -m demos.speed.bench.race

If the machine's speed drifts, only times measured close together can be compared. So the
contestants of a row take turns: A B C A B C …, each in its own process, whose allocator, threads
and caches of libraries are its own. Before that, all have computed the row once from the same
arrays, and their values and gradients are compared. If two differ, the row is not timed.

The command is a contestant's process. It reads pickles and answers in pickles: first what it shall
run, answered by the values and gradients, then numbers of calls, each answered by seconds and page
faults of one call.
"""

from __future__ import annotations

import gc
import os
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from demos.speed.bench.programs import contestants, program
from demos.speed.bench.rows import Given, Row, given
from minigrad import keep_memory

try:
    from resource import RUSAGE_SELF, getrusage
except ImportError:  # on Windows
    getrusage = None  # type: ignore[assignment]

ROOT = Path(__file__).parents[3]
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
PATIENCE = 30.0  # After so many seconds five rounds are enough.


def timed(step: Callable[[], Any], calls: int, collector: bool) -> tuple[float, float]:
    """Return the seconds and page faults of one call, the mean over some calls."""
    gc.collect()
    if not collector:
        gc.disable()
    try:
        faults, start = page_faults(), time.perf_counter()
        for _ in range(calls):
            step()
        seconds = (time.perf_counter() - start) / calls
        return seconds, (page_faults() - faults) / calls
    finally:
        gc.enable()


def page_faults() -> float:
    """Return the number of page faults of this process that needed no disk; NaN if unknown."""
    return getrusage(RUSAGE_SELF).ru_minflt if getrusage else float("nan")


def serve() -> None:
    """Answer until the input ends. An error ends the process, and its last line says why."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # What libraries print goes to stderr: stdout is for answers alone.

    def answer(content: Any) -> None:
        pickle.dump(content, answers)
        answers.flush()

    with suppress(EOFError):
        asked = pickle.load(sys.stdin.buffer)
        kept = keep_memory() if asked["keep"] else "the allocator's defaults"
        row, quick = asked["row"], asked["quick"]
        arrays = given(row, quick, asked["seed"])
        step, results = program(asked["contestant"], row, quick, arrays, asked["threads"])
        answer((kept, results()))
        while True:
            answer(timed(step, pickle.load(sys.stdin.buffer), row.collector))


class Failed(Exception):
    """A contestant could not do a row, and which and why."""


class Process:
    """A contestant in a process of its own, spoken to in pickles."""

    def __init__(self, asked: dict[str, Any]) -> None:
        self.asked = asked
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed by close)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "demos.speed.bench.race"],
            cwd=ROOT,
            env=os.environ | dict.fromkeys(THREADS, str(asked["threads"])),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
        )

    def prepare(self) -> tuple[str, Given]:
        """Return what its allocator does, in words, and its values and gradients."""
        return self.ask(self.asked)

    def time(self, calls: int) -> tuple[float, float]:
        """Return the seconds and page faults of one call."""
        return self.ask(calls)

    def ask(self, what: Any) -> Any:
        """Send a question and return the answer; if the process has ended, Failed says why."""
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            pickle.dump(what, self.process.stdin)
            self.process.stdin.flush()
            return pickle.load(self.process.stdout)
        except (OSError, EOFError, pickle.UnpicklingError):
            self.process.wait()
            self.errors.seek(0)
            said = self.errors.read().decode(errors="replace").strip().splitlines()
            ended = f"its process ended with {self.process.returncode}"
            raise Failed(f"{self.asked['contestant']}: {said[-1] if said else ended}") from None

    def close(self) -> None:
        """End the process."""
        self.process.kill()
        with suppress(OSError):  # (what was asked of a process that had already ended)
            self.process.communicate()
        self.errors.close()


def differences(results: dict[str, Given], tolerance: float) -> list[str]:
    """Return a sentence for each array in which a contestant differs from the first one.

    Each array is compared as a vector: the length of the difference may be `tolerance` times the
    vector's length. Gradients that are 0 but for rounding, such as that of a key's bias, are
    compared with a hundredth of the longest gradient instead.
    """
    (first, truth), *others = ((name, found) for name, found in results.items() if found)
    lengths = [np.linalg.norm(x) for name, x in truth.items() if name != "losses"]
    least, said = 0.01 * max(lengths), []
    for other, found in others:
        if one_has := truth.keys() ^ found.keys():
            said.append(f"only one of {other} and {first} computes {', '.join(sorted(one_has))}")
        for name in sorted(truth.keys() & found.keys()):
            x, y = (np.asarray(each[name], float) for each in (truth, found))
            if x.shape != y.shape:
                said.append(f"{other}: {name} is {y.shape}, and {x.shape} by {first}")
                continue
            apart = np.linalg.norm(y - x) / max(np.linalg.norm(x), least)
            if not apart <= tolerance:  # (a NaN is not)
                said.append(f"{other} and {first} differ in {name} by {apart:.1e} of its length")
    return said


def race(row: Row, taking_part: dict[str, Any], *, rounds: int, turn: float) -> dict[str, Any]:
    """Compare, and then take turns of about `turn` seconds. Return plain data.

    wrong   a sentence for each two contestants whose numbers differ, and for one that cannot do the
            row; then there are no times
    rounds  contestant → seconds of a call in each round; `faults` → page faults
    allocator  what it does
    """
    outcome: dict[str, Any] = {"wrong": [], "rounds": {}, "faults": {}}
    try:
        found = {name: each.prepare() for name, each in taking_part.items()}
        outcome["allocator"] = next(iter(found.values()))[0]
        results = {name: numbers for name, (_, numbers) in found.items()}
        outcome["wrong"] = differences(results, row.tolerance)
        if not outcome["wrong"]:
            outcome["rounds"], outcome["faults"] = turns(taking_part, rounds, turn)
    except Failed as error:
        outcome["wrong"].append(str(error))
    return outcome


def turns(taking_part: dict[str, Any], rounds: int, turn: float) -> tuple[Any, Any]:
    """Return each contestant's seconds and page faults of a call, round by round."""
    seconds, faults = ({name: [] for name in taking_part} for _ in range(2))
    calls = {name: max(1, round(turn / each.time(1)[0])) for name, each in taking_part.items()}
    start = time.monotonic()
    for done in range(rounds):
        if done >= 5 and time.monotonic() - start > PATIENCE:
            break
        for name, each in taking_part.items():
            if calls[name] > 1:  # another process had the cache before
                each.time(1)
            for found, x in zip((seconds, faults), each.time(calls[name]), strict=True):
                found[name].append(x)
    return seconds, faults


@contextmanager
def processes(row: Row, against: list[str], **options: Any) -> Iterator[dict[str, Process]]:
    """Start all contestants of a row at once, and end them together."""
    with ExitStack() as stack:
        found = {}
        for name in contestants(row, against):
            found[name] = Process({"contestant": name, "row": row, **options})
            stack.callback(found[name].close)
        yield found


def ratio(outcome: dict[str, Any], name: str, base: str) -> float | None:
    """Return a contestant's time over the base's; None unless both were measured.

    The two times of a round are measured one after the other, so the ratio is taken in each round.
    The median of these ratios hardly changes if the machine becomes slower for a while.
    """
    rounds = outcome["rounds"]
    if name not in rounds or base not in rounds:
        return None
    return median(a / b for a, b in zip(rounds[name], rounds[base], strict=True))


if __name__ == "__main__":
    serve()
