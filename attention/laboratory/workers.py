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

What if a worker dies, because it is killed or there is no memory left? Python breaks off the whole
pool, and the sweep stops with a sentence. A cluster computes the cells of the dead worker again on
another one.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import multiprocessing
import os
import signal
import threading
import time
import weakref
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing.connection import Connection
from typing import Any

from attention.laboratory.results import SweepError

PATIENCE = 5  # seconds in which a Dask cluster must answer
ABSENCE = 30  # seconds that a sweep waits for workers to come back, if all of them are gone


@contextlib.contextmanager
def workers(jobs: int = 1, dask: str | None = None) -> Iterator[Executor | None]:
    """An executor of `jobs` processes, or of the Dask cluster at an address; None for neither.

    If the block ends with an error or Ctrl-C, the processes end at once, in the middle of what they
    compute. They also end when this program is killed.
    """
    if jobs < 1:
        raise SweepError(f"the number of jobs must be 1 or larger: got {jobs}")
    if dask is not None and jobs > 1:
        raise SweepError(
            f"choose {jobs} jobs on this machine or the Dask cluster at {dask}, not both"
        )
    if dask is not None:
        with _cluster(dask) as executor:
            yield executor
    elif jobs == 1:
        yield None
    else:
        # (Python marks a process that is just importing the program's file.)
        if getattr(multiprocessing.current_process(), "_inheriting", False):
            raise SweepError('the program must start its sweep under if __name__ == "__main__":')
        spawn = multiprocessing.get_context("spawn")
        reader, writer = spawn.Pipe(duplex=False)
        others = set(multiprocessing.active_children())
        pool = ProcessPoolExecutor(jobs, spawn, _begin, (reader,))
        try:
            yield pool
            pool.shutdown()
        except BaseException:
            # What waits leaves the pool before its processes end: a pool of Python 3.11 whose
            # processes end stumbles over cells that were cancelled, and its thread dies.
            pool.shutdown(wait=False, cancel_futures=True)
            time.sleep(0.2)
            raise
        finally:
            ours = set(multiprocessing.active_children()) - others
            writer.close()  # processes that still compute end now, see `_end_with`
            reader.close()
            pool.shutdown(cancel_futures=True)
            for process in ours:
                process.join(PATIENCE)


# A first reading may stop here. What follows is how processes end, and how a cluster is asked.


def _begin(reader: Connection) -> None:
    """What a process of the pool does first."""
    # In a terminal Ctrl-C reaches every process. Only the program decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(reader,), daemon=True).start()


def _end_with(reader: Connection) -> None:
    """End this process when the other end of the pipe is closed.

    The program closes it when the block of `workers` ends, and the system closes it if the program
    is killed. Without this thread the processes of a killed program would wait for work for ever.
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
    with client:
        try:
            client.wait_for_workers(1, timeout=PATIENCE)
        except TimeoutError:
            raise SweepError(f"the Dask cluster at {address} has no workers") from None
        executor, ended = _Cluster(client), threading.Event()
        threading.Thread(target=_watch, args=(executor, ended), daemon=True).start()
        try:
            yield executor
        finally:
            ended.set()


class _Cluster(Executor):
    """A client of a Dask cluster as an executor.

    Dask has one, `Client.get_executor()`, but if a worker is killed while it sends an answer, that
    one can raise an error of its own (version 2026.8 did, once in some sixty kills). A future of
    Dask, which this class uses, asks for the answer again.
    """

    def __init__(self, client: Any) -> None:
        self.client = client
        self.futures: weakref.WeakSet[Any] = weakref.WeakSet()

    def submit(self, function: Any, /, *arguments: Any, **options: Any) -> Future[Any]:
        # (pure=True would take an equal cell's answer from another sweep on this cluster.)
        theirs = self.client.submit(function, *arguments, **options, pure=False)
        self.futures.add(theirs)
        ours: Future[Any] = Future()
        ours.add_done_callback(lambda _: theirs.cancel() if ours.cancelled() else None)
        theirs.add_done_callback(functools.partial(_hand_over, ours))
        return ours


def _watch(executor: _Cluster, ended: threading.Event) -> None:
    """Cancel what a cluster without workers should compute: it would wait for ever."""
    seen = time.monotonic()
    with contextlib.suppress(Exception):  # (if the scheduler is gone, Dask cancels by itself)
        while not ended.wait(1) and time.monotonic() - seen < ABSENCE:
            if executor.client.scheduler_info()["workers"]:
                seen = time.monotonic()
        if not ended.is_set():
            executor.client.cancel(list(executor.futures))


def _hand_over(ours: Future[Any], theirs: Any) -> None:
    """Give the answer of Dask's future to Python's."""
    if ours.set_running_or_notify_cancel():
        try:
            ours.set_result(theirs.result())
        except BaseException as error:
            ours.set_exception(error)
