"""Demos · Speed: the race: processes that take turns, after their numbers were compared.

    python -m demos.speed.bench.race

If the machine's speed drifts, only times measured close together can be compared. So the
contestants of a row take turns: A B C A B C …, each in its own process, whose allocator, threads
and caches of libraries are its own.

The command is a contestant's process. It reads pickles and answers in pickles: first what it shall
run, answered by the values and gradients, then numbers of calls, each answered by the seconds of
one call. "memory" is answered by the bytes that a call needs at once.
"""

from __future__ import annotations

import gc
import os
import pickle
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from demos.speed.bench.changes import GROUPS, asked_of, members, threads_of
from demos.speed.bench.programs import contestants, program
from demos.speed.bench.rows import BenchmarkRow, Given, given
from minigrad import keep_memory

THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def timed(step: Callable[[], Any], calls: int) -> float:
    """Return the seconds of one call, the mean over some calls. (Python's collector runs.)"""
    gc.collect()
    start = time.perf_counter()
    for _ in range(calls):
        step()
    return (time.perf_counter() - start) / calls


def most_bytes(step: Callable[[], Any]) -> int:
    """Return the most bytes that a call has had at once, of those that it allocated itself."""
    gc.collect()
    tracemalloc.start()  # NumPy reports its arrays to it
    step()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most


def serve() -> None:
    """Answer until the input ends."""

    def answer(content: Any) -> None:
        pickle.dump(content, sys.stdout.buffer)
        sys.stdout.flush()

    with suppress(EOFError):
        contestant, row, quick, seed, keep = pickle.load(sys.stdin.buffer)
        if keep:
            keep_memory()
        step, results = program(contestant, row, quick, given(row, quick, seed))
        answer(results())
        while True:
            question = pickle.load(sys.stdin.buffer)
            answer(most_bytes(step) if question == "memory" else timed(step, question))


class Process:
    """A contestant in a process of its own, spoken to in pickles."""

    def __init__(self, name: str, *asked: Any, threads: int) -> None:
        self.name = name
        self.asked = (name, *asked)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "demos.speed.bench.race"],
            cwd=Path(__file__).parents[3],
            env=os.environ | dict.fromkeys(THREADS, str(threads)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def prepare(self) -> Given:
        """Return its values and gradients."""
        return self.ask(self.asked)

    def ask(self, what: Any) -> Any:
        """Send a question, such as a number of calls, and return the answer."""
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            pickle.dump(what, self.process.stdin)
            self.process.stdin.flush()
            return pickle.load(self.process.stdout)
        except (BrokenPipeError, EOFError):
            code = self.process.wait()
            raise ChildProcessError(f"the process of {self.name} ended with {code}") from None


def differences(results: dict[str, Given], tolerance: float) -> list[str]:
    """Return a sentence for each array in which a contestant differs from the first one.

    Each array is compared as a vector: the length of the difference may be `tolerance` times the
    vector's length. Gradients that are 0 but for rounding, such as that of a key's bias, are
    compared with a hundredth of the longest gradient instead.
    """
    (first, truth), *others = results.items()
    lengths = [np.linalg.norm(x) for name, x in truth.items() if name != "losses"]
    least = 0.01 * max(lengths)
    sentences = []
    for other, found in others:
        if one_has := truth.keys() ^ found.keys():
            sentences.append(
                f"only one of {other} and {first} computes {', '.join(sorted(one_has))}"
            )
        for name in sorted(truth.keys() & found.keys()):
            x, y = (np.asarray(each[name], float) for each in (truth, found))
            if x.shape != y.shape:
                sentences.append(f"{other}: {name} is {y.shape}, and {x.shape} by {first}")
                continue
            apart = np.linalg.norm(y - x) / max(np.linalg.norm(x), least)
            if not apart <= tolerance:  # (a NaN is not)
                sentences.append(
                    f"{other} and {first} differ in {name} by {apart:.1e} of its length"
                )
    return sentences


def race(
    row: BenchmarkRow, taking_part: dict[str, Any], *, rounds: int, turn: float
) -> dict[str, Any]:
    """Compare, and then take turns of about `turn` seconds. Return plain data.

    wrong   a sentence for each array in which two contestants differ; then there are no times
    rounds  contestant → seconds of a call in each round
    """
    wrong = differences({name: x.prepare() for name, x in taking_part.items()}, row.tolerance)
    seconds: dict[str, list[float]] = {}
    if not wrong:
        calls = {name: max(1, round(turn / each.ask(1))) for name, each in taking_part.items()}
        seconds = {name: [] for name in taking_part}
        for name, each in list(taking_part.items()) * rounds:
            if calls[name] > 1:  # another process had the cache before
                each.ask(1)
            seconds[name].append(each.ask(calls[name]))
    return {"wrong": wrong, "rounds": seconds}


@contextmanager
def together(starting: Iterable[Process]) -> Iterator[dict[str, Process]]:
    """Start processes at once, and end them together."""
    with ExitStack() as stack:
        processes_of = {}
        for each in starting:
            processes_of[each.name] = each
            stack.callback(each.process.communicate)
            stack.callback(each.process.kill)
        yield processes_of


def processes(
    row: BenchmarkRow, against: list[str], *asked: Any, threads: int
) -> AbstractContextManager[dict[str, Process]]:
    """Return the context in which all contestants of a row run."""
    return together(
        Process(name, row, *asked, threads=threads) for name in contestants(row, against)
    )


def changes(
    against: list[str], *asked: Any, threads: int, rounds: int, turn: float
) -> dict[str, Any]:
    """Return the outcome of the race of each group of variants, and the bytes of a step of each."""
    outcomes = {}
    for group, (row, variants) in GROUPS.items():
        starting = (
            Process(*asked_of(name, row, *asked), threads=threads_of(name, threads))
            for name in members(group, against)
        )
        with together(starting) as taking_part:
            outcomes[group] = race(row, taking_part, rounds=rounds, turn=turn)
            outcomes[group]["bytes"] = {name: taking_part[name].ask("memory") for name in variants}
    return outcomes


def ratio(outcome: dict[str, Any], name: str, base: str) -> float:
    """Return a contestant's time over the base's.

    The two times of a round are measured one after the other, so the ratio is taken in each round.
    The median of these ratios hardly changes if the machine becomes slower for a while.
    """
    rounds = outcome["rounds"]
    return median(a / b for a, b in zip(rounds[name], rounds[base], strict=True))


if __name__ == "__main__":
    serve()
