"""16.8 · Workers: the same bits on one core, on two, or on a cluster.

A measurement with a seed should not depend on who computes it. A worker is another process, on this
machine or another, that computes a part of a sweep. What can be different there?

**Threads.** BLAS, the library behind NumPy's `@`, shares the work of a large product among threads.
With another number of threads it adds the same numbers in another order, and the last bits differ.
So every cell of a sweep is computed on one BLAS thread:

    >>> from attention.laboratory.workers import has_one_blas_thread, one_blas_thread
    >>> with one_blas_thread():
    ...     has_one_blas_thread()
    True

**Code.** A worker may have started before the last change of a file. `facts` says what a process
has imported: the versions of Python and NumPy, and a hash of the source files. A worker whose facts
are not those of the program refuses to compute.

**Processors.** BLAS has several versions of its innermost loop, chooses one by the processor, and
each of them adds in an order of its own. Nothing here changes that: the same bits need processors
of the same kind.

`workers(jobs, dask)` gives the `Executor` of Python's `concurrent.futures` that a sweep hands its
cells to, and ends it afterwards:

    workers()                         None: the program itself computes one cell after the other
    workers(jobs=2)                   two processes on this machine
    workers(dask="tcp://host:8786")   a Dask cluster: one machine runs the command `dask scheduler`,
                                      and every other one `dask worker tcp://host:8786`

How does a process begin? By "spawn": a new Python starts, and imports what it needs. The
alternative, "fork", copies the running program, but of its threads only the one that called fork.
If another thread held a lock at that moment, for example one of BLAS or of a progress bar, nobody
will ever release it in the copy. The price of "spawn" is that each process also imports the file of
the program. So in a plain script the sweep stands under `if __name__ == "__main__":`.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import functools
import hashlib
import importlib.metadata
import multiprocessing
import os
import platform
import signal
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

import attention
import minigrad
from attention.laboratory.results import SweepError

PATIENCE = 5  # seconds in which a Dask cluster must answer


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
        with _cluster(dask) as client:
            # (pure=True would take an equal cell's result from another sweep of this cluster.)
            yield client.get_executor(pure=False)
    elif jobs == 1:
        yield None
    else:
        # (Python marks a process that is just importing the program's file.)
        if getattr(multiprocessing.current_process(), "_inheriting", False):
            raise SweepError('the program must start its sweep under if __name__ == "__main__":')
        spawn = multiprocessing.get_context("spawn")
        reader, writer = spawn.Pipe(duplex=False)
        pool = ProcessPoolExecutor(jobs, spawn, _begin, (reader,))
        try:
            yield pool
            pool.shutdown()
        finally:
            writer.close()  # processes that still compute end now, see `_end_with`
            reader.close()
            pool.shutdown(cancel_futures=True)


@contextlib.contextmanager
def one_blas_thread() -> Iterator[None]:
    """BLAS computes on one thread inside of the block; SweepError if that cannot be arranged."""
    controller = _controller()
    with controller.limit(limits=1) if controller else contextlib.nullcontext():
        use_one_blas_thread()
        yield


# A first reading may stop here. What follows is how BLAS is asked, what is compared, and how
# processes end.


def use_one_blas_thread() -> None:
    """Give BLAS one thread for good, as a worker does; SweepError if that cannot be arranged.

    Some libraries count threads for the whole process, others for each of its threads. So every
    thread of a worker calls this. It restores nothing: other threads may still be computing.
    """
    controller = _controller()
    if controller:
        controller.limit(limits=1)
    if not _is_one(controller):
        raise SweepError(
            "results depend on the number of BLAS threads, which must be 1: "
            f'pip install -e ".[cluster]", or set {_variable()}=1 before Python starts'
        )


def has_one_blas_thread() -> bool:
    """Whether BLAS computes on one thread now, also one that was loaded a moment ago."""
    return _is_one(_controller())


def _is_one(controller: Any) -> bool:
    """Whether BLAS has one thread, as threadpoolctl knows, or OpenBLAS, or the environment."""
    if controller:
        return all(each["num_threads"] == 1 for each in controller.info())
    threads = _openblas_threads()
    return os.environ.get(_variable()) == "1" if threads is None else threads == 1


def _controller() -> Any:
    """What threadpoolctl knows of the BLAS libraries of this process; None if nothing.

    (It is an extra. And it does not know Apple's Accelerate.)
    """
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return None
    return (
        None if "accelerate" in _blas() else ThreadpoolController().select(user_api="blas") or None
    )


def _openblas_threads() -> int | None:
    """How many threads NumPy's OpenBLAS has now; None if that library is not to be found.

    The environment is not asked: it may have changed since OpenBLAS read it.
    """
    core = getattr(sys.modules.get("numpy._core._multiarray_umath"), "__file__", None)
    with contextlib.suppress(OSError, TypeError):
        library = ctypes.CDLL(core)  # it is loaded already, and so is the BLAS that it needs
        for name in ("openblas_get_num_threads", "openblas_get_num_threads64_"):
            for each in (name, f"scipy_{name}"):
                if hasattr(library, each):
                    return int(getattr(library, each)())
    return None


def _blas() -> str:
    """The name of NumPy's BLAS, such as scipy-openblas."""
    return str(np.show_config(mode="dicts")["Build Dependencies"]["blas"]["name"])


def _variable() -> str:
    """The environment variable that sets the number of threads of NumPy's BLAS."""
    known = {
        "accelerate": "VECLIB_MAXIMUM_THREADS",
        "mkl": "MKL_NUM_THREADS",
        "blis": "BLIS_NUM_THREADS",
    }
    return next((known[name] for name in known if name in _blas()), "OPENBLAS_NUM_THREADS")


def _hash(*modules: Any) -> str:
    """A hash of the source files of modules, and of all files of those that are packages."""
    found = hashlib.sha256()
    for module in modules:
        file = Path(module.__file__)
        paths = sorted(file.parent.rglob("*.py")) if file.name == "__init__.py" else [file]
        for path in filter(Path.is_file, paths):  # (an editor's lock looks like a file, and is not)
            found.update(str(path.relative_to(file.parent)).encode())
            found.update(path.read_bytes())
    return found.hexdigest()[:16]


_IMPORTED = _hash(minigrad, attention)  # now, while the files are being imported


@functools.cache
def facts(module: str) -> dict[str, str]:
    """What this process computes a function of `module` with: versions, and hashes of the code."""
    try:
        version = importlib.metadata.version("minigrad-attention")
    except importlib.metadata.PackageNotFoundError:
        version = "not installed"
    return {
        "Python": platform.python_version(),
        "NumPy": np.__version__,
        "minigrad-attention": version,
        "the code of minigrad and attention": _IMPORTED,
        f"the code of {module}": _hash(sys.modules[module]),
    }


def refuse_changed_code(module: str) -> None:
    """SweepError if the files are no longer those that this process imported."""
    for code, modules in zip(
        list(facts(module).values())[-2:],
        [(minigrad, attention), (sys.modules[module],)],
        strict=True,
    ):
        if _hash(*modules) != code:
            names = " or ".join(each.__name__ for each in modules)
            raise SweepError(
                f"a source file of {names} has changed since this program imported it: "
                "start the program again"
            )


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
def _cluster(address: str) -> Iterator[Any]:
    """A client of the Dask cluster at an address."""
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
        yield client
