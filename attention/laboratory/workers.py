"""16.10 · Workers: processes, or a cluster.

Who computes the cells of a sweep? `workers(jobs, dask)` gives an object to which functions are
submitted, which Python calls an `Executor`, and ends it afterwards:

    workers()                         None: the program itself computes one cell after the other
    workers(jobs=2)                   two processes on this machine
    workers(dask="tcp://host:8786")   a Dask cluster: one machine runs the command `dask scheduler`,
                                      and every other one `dask worker tcp://host:8786`

How does a process begin? By "spawn": a new Python starts, and imports what it needs. The
alternative, "fork", copies the running program, but of its threads only the one that called fork.
If another thread held a lock at that moment, for example one of BLAS or of a progress bar, nobody
will ever release it in the copy. The price of "spawn" is that each process also imports the file of
the program. So in a plain script the sweep stands under `if __name__ == "__main__":`.

What if something goes wrong? Each line of this table is a test:

    an error in a cell         It is raised in the program, with a note that names the cell, and the
                               workers can compute the next sweep. `sys.exit()` is such an error.
    Ctrl-C                     Processes end in the middle of their cells.
    the program is killed      Its processes end too.
    a process is killed        Python ends the whole pool, and the sweep stops with a sentence.
    a process is frozen        The sweep waits for it, until Ctrl-C.
    a cluster's worker is      The cluster computes its cells again on another worker. A frozen
    killed or frozen           worker has five minutes until then (Dask's `worker-ttl`).
    all workers are gone, or   The sweep stops with a sentence after `ABSENCE` seconds.
    the scheduler is frozen
    the scheduler is killed    The sweep stops with a sentence at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import (
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    InvalidStateError,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    as_completed,
)
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NoReturn

from attention.laboratory.bits import Call, sendable
from attention.laboratory.results import SweepError

PATIENCE = 5  # seconds in which a Dask cluster must answer
ABSENCE = 30  # seconds that a sweep waits for a scheduler or for workers to come back

Cell = dict[str, Any]


@contextlib.contextmanager
def workers(jobs: int = 1, dask: str | None = None) -> Iterator[Executor | None]:
    """An executor of `jobs` processes, or of the Dask cluster at an address; None for neither.

    A process begins when there is a cell for it. If the block ends with an error or Ctrl-C, the
    processes end at once, in the middle of what they compute.
    """
    most = 4 * (os.cpu_count() or 1)
    if not 1 <= jobs <= most:
        raise SweepError(
            f"the number of jobs must be from 1 to {most}, 4 for each processor: got {jobs}"
        )
    if dask is not None and jobs > 1:
        raise SweepError(
            f"choose {jobs} jobs on this machine or the Dask cluster at {dask}, not both"
        )
    if dask is None and jobs == 1:
        yield None
    else:
        with _processes(jobs) if dask is None else _cluster(dask) as executor:
            yield executor


def compute(
    call: Callable[[Cell], str],
    cells: list[Cell],
    executor: Executor | None,
    keep: Callable[[Cell, str], None],
) -> None:
    """Call `call` with each cell, and hand its answer to `keep` when it is there.

    An error in a cell is raised with a note that names the cell, whoever computed it. SweepError if
    the executor cannot compute. What was answered before any error is kept.
    """
    if executor is None:
        for cell in cells:
            try:
                answer = call(cell)
            except KeyboardInterrupt:  # it was pressed
                raise
            except BaseException as error:
                _raise(error, cell, error)
            keep(cell, answer)
        return
    waiting: dict[Future[str | bytes], Cell] = {}
    try:
        with _sentences():
            for cell in cells:
                # What `pickle.loads` is called with makes the call. A worker that cannot import
                # what belongs to the call thus fails inside of a task, where an error does no harm.
                waiting[executor.submit(pickle.loads, pickle.dumps(Call(call, cell)))] = cell
        for future in as_completed(waiting):
            cell = waiting.pop(future)
            with _sentences():
                answered = future.result()
                failed = pickle.loads(answered) if isinstance(answered, bytes) else None
            if failed:
                _raise(failed[0], cell, RuntimeError(f"in a worker:\n{failed[1]}"))
            keep(cell, str(answered))
    finally:  # nothing is waiting, unless the sweep ends early
        for future in waiting:
            future.cancel()
        for future, cell in waiting.items():
            if future.done() and not future.cancelled() and future.exception() is None:
                answered = future.result()
                if isinstance(answered, str):
                    keep(cell, answered)


# A first reading may stop here. What follows is how processes begin and end, and how a cluster is
# asked.


def _raise(error: BaseException, cell: Cell, cause: BaseException) -> NoReturn:
    """Raise the error of a cell, with its name."""
    told = sendable(error)
    settings = ", ".join(f"{name}={value!r}" for name, value in cell.items())
    BaseException.add_note(told, f"in the cell {settings}")  # (a class may have its own)
    if told is cause:
        raise told
    raise told from cause


@contextlib.contextmanager
def _sentences() -> Iterator[None]:
    """Errors of an executor become sentences."""
    try:
        yield
    except SweepError:
        raise
    except ImportError as error:
        raise SweepError(f"a worker cannot import {error.name or error}") from None
    except BrokenExecutor:
        raise SweepError("a worker ended before its cell was measured") from None
    except CancelledError:
        raise SweepError("the connection to the workers is lost") from None
    except Exception as error:
        if type(error).__name__ == "KilledWorker":  # of Dask, after some attempts
            raise SweepError("every worker that began one of the cells has ended") from None
        reason = f"{error.__cause__ or error}".partition("\n")[0]
        raise SweepError(f"the workers cannot compute the cells ({reason})") from error


class _Pool(ProcessPoolExecutor):
    """A pool whose processes never hear Ctrl-C, also in the moment when they begin."""

    def submit(self, *arguments: Any, **options: Any) -> Future[Any]:
        with _ctrl_c_waits():
            return super().submit(*arguments, **options)


@contextlib.contextmanager
def _ctrl_c_waits() -> Iterator[list[bool]]:
    """Inside of the block Ctrl-C is only counted. It is heard afterwards, if the count remains.

    In a terminal Ctrl-C reaches every process, and only the program decides what it means. A
    process that begins inside of the block inherits that the signal is blocked. The signal can
    still reach another thread of the program, and Python then calls the handler in the main one.
    """
    pressed: list[bool] = []
    before = None
    if threading.current_thread() is threading.main_thread():  # no other may set a handler
        before = signal.signal(signal.SIGINT, lambda *_: pressed.append(True))
    masks = hasattr(signal, "pthread_sigmask")  # (not on Windows)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT]) if masks else ()
    try:
        yield pressed
    finally:
        if masks:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if before is not None:
            signal.signal(signal.SIGINT, before)
        if pressed:
            signal.raise_signal(signal.SIGINT)


@contextlib.contextmanager
def _processes(jobs: int) -> Iterator[Executor]:
    """A pool of processes on this machine."""
    # (Python marks a process that is just importing the program's file.)
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise SweepError('the program must start its sweep under if __name__ == "__main__":')
    program = getattr(sys.modules["__main__"], "__file__", None) or __file__
    if not Path(program).exists():
        raise SweepError(
            f"every process imports the program's file, and there is no {program}: "
            "write the program to a file, or choose 1 job"
        )
    spawn = multiprocessing.get_context("spawn")
    reader, writer = spawn.Pipe(duplex=False)
    pool = _Pool(jobs, spawn, _begin, (reader,))
    processes = pool._processes  # by their numbers; `shutdown` makes the pool forget them
    try:
        yield pool
        pool.shutdown()
    except BaseException:
        with _ctrl_c_waits() as pressed:
            # What waits leaves the pool before its processes end: a pool of Python 3.11 whose
            # processes end stumbles over cells that were cancelled, and its thread dies.
            pool.shutdown(wait=False, cancel_futures=True)
            time.sleep(0.2)
            for process in list(processes.values()):
                process.kill()
            for process in list(processes.values()):
                process.join(PATIENCE)
            pressed.clear()  # a second Ctrl-C would take the sentence of the first
        raise
    finally:
        writer.close()
        reader.close()


def _begin(reader: Connection) -> None:
    """What a process of the pool does first."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # (where a signal cannot be blocked)
    threading.Thread(target=_end_with, args=(reader,), daemon=True).start()


def _end_with(reader: Connection) -> None:
    """End this process when the program has ended, and with it the other end of the pipe.

    Without this thread the processes of a killed program would wait for work for ever.
    """
    with contextlib.suppress(OSError):
        reader.poll(None)
    os._exit(1)


@contextlib.contextmanager
def _cluster(address: str) -> Iterator[Executor]:
    """The Dask cluster at an address, as an executor."""
    try:
        import distributed
    except ImportError:
        raise ImportError('a Dask cluster needs dask: pip install -e ".[cluster]"') from None

    async def greet() -> None:
        connection = distributed.comm.connect(address, timeout=PATIENCE)
        await (await asyncio.wait_for(connection, PATIENCE)).close()

    try:
        # If a program listens there that is not Dask, a client waits for ever, so that the address
        # is tried first. (In a thread, because a notebook has an event loop in the main one.)
        with ThreadPoolExecutor(1) as thread:
            thread.submit(asyncio.run, greet()).result()
        client = distributed.Client(address, timeout=PATIENCE, set_as_default=False)
    except Exception as error:  # what another program answers can cause any error here
        reason = str(error).partition("\n")[0] or f"{type(error).__name__} within {PATIENCE} s"
        raise SweepError(f"there is no Dask cluster at {address!r}: {reason}") from None
    executor, ended, silent = _Cluster(client), threading.Event(), lambda record: False
    log = logging.getLogger("distributed.client")
    log.addFilter(silent)  # it writes tracebacks when a scheduler is gone
    try:
        try:
            client.wait_for_workers(1, timeout=PATIENCE)
        except TimeoutError:
            raise SweepError(f"the Dask cluster at {address} has no workers") from None
        threading.Thread(target=_watch, args=(executor, ended), daemon=True).start()
        yield executor
    finally:
        ended.set()
        for future in list(executor.waiting):
            future.cancel()
        with contextlib.suppress(TimeoutError):  # a frozen scheduler does not answer
            client.close(timeout=PATIENCE)
        log.removeFilter(silent)


class _Cluster(Executor):
    """A client of a Dask cluster as an executor.

    Dask has one, `Client.get_executor()`, but if a worker is killed while it sends an answer, that
    one can raise an error of its own (version 2026.8 did, once in some sixty kills). A future of
    Dask, which this class uses, asks for the answer again.
    """

    def __init__(self, client: Any) -> None:
        self.client = client
        self.waiting: set[Future[Any]] = set()

    def submit(self, function: Any, /, *arguments: Any, **options: Any) -> Future[Any]:
        # (pure=True would take an equal cell's answer from another sweep on this cluster.)
        theirs = self.client.submit(function, *arguments, **options, pure=False)
        ours: Future[Any] = Future()
        self.waiting.add(ours)
        ours.add_done_callback(self.waiting.discard)
        # The cluster forgets what nobody needs. (`cancel` would wait for the scheduler's answer.)
        ours.add_done_callback(lambda _: theirs.release())
        theirs.add_done_callback(functools.partial(_hand_over, ours))
        return ours


def _watch(executor: _Cluster, ended: threading.Event) -> None:
    """What a frozen scheduler, or a cluster without workers, should compute would wait for ever."""
    seen = time.monotonic()
    while not ended.wait(1):
        try:
            ask = executor.client.scheduler.ncores
            lacks = "" if executor.client.sync(ask, callback_timeout=PATIENCE) else "has no workers"
        except Exception:
            lacks = "does not answer"
        if not lacks:
            seen = time.monotonic()
        elif (absent := time.monotonic() - seen) >= ABSENCE:
            error = SweepError(f"for {absent:.0f} s the Dask cluster {lacks}")
            for future in list(executor.waiting):
                with contextlib.suppress(InvalidStateError):  # it has just come
                    future.set_exception(error)


def _hand_over(ours: Future[Any], theirs: Any) -> None:
    """Give the answer of Dask's future to Python's.

    One thread of Dask's calls this for all clients of a program. If a sweep ends before the answer
    has come, it may never come, and later sweeps would wait for the thread. So it looks each second
    whether anybody still waits for the answer.
    """
    with contextlib.suppress(InvalidStateError):  # it has been given up
        while not ours.done():
            try:
                ours.set_result(theirs.result(timeout=1))
            except TimeoutError as error:
                if theirs.status == "error":  # of the cell
                    ours.set_exception(error)
            except BaseException as error:
                ours.set_exception(error)
