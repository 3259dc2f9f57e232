"""16.9 · The same bits: what may be different in another process.

A measurement with a seed should not depend on who computes it. A worker is another process, on this
machine or another, that computes a part of a sweep. What can be different there?

**Threads.** BLAS, the library behind NumPy's `@`, shares the work of a large product among threads.
With another number of threads it adds the same numbers in another order, and the last bits differ.
So every cell of a sweep is computed on one BLAS thread:

    >>> from attention.laboratory.bits import has_one_blas_thread, one_blas_thread
    >>> with one_blas_thread():
    ...     has_one_blas_thread()
    True

**Code.** A worker may have started before the last change of a file. `facts` says what a process
has imported: the versions of Python and NumPy, and a hash of the source files. A worker whose facts
are not those of the program refuses to compute. The hash covers minigrad, attention, and the file
of the measurement. If that file is your own and imports a third one, a change there is not noticed:
remove the old results then, and start the workers again.

**Errors.** An error is sent as a pickle, and some errors cannot be read back. `sys.exit()` in a
cell would end the worker, and with it the cells of others. So a worker raises nothing: its answer
is a result or an error, and `sendable` replaces an error that cannot be sent.

**Processors.** BLAS has several versions of its innermost loop, chooses one by the processor, and
each of them adds in an order of its own. Nothing here changes that: the same bits need processors
of the same kind.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import importlib.metadata
import os
import pickle
import platform
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import attention
import minigrad
from attention.laboratory.results import SweepError

_lock = threading.Lock()
_blocks = 0  # how many of `one_blas_thread` are open, in all threads of this program
_before: Any = None  # what threadpoolctl keeps to restore the number that the first one found


@contextlib.contextmanager
def one_blas_thread() -> Iterator[None]:
    """BLAS computes on one thread inside of the block; SweepError if that cannot be arranged.

    The number of threads belongs to the whole program, in which several blocks may be open at once.
    The end of the last one restores what the first one found.
    """
    global _blocks, _before
    with _lock:
        if not _blocks:
            _before = _limited(_controller())
        _blocks += 1
    try:
        use_one_blas_thread()
        yield
    finally:
        with _lock:
            _blocks -= 1
            if not _blocks and _before:
                _let_this_thread()
                _before.restore_original_limits()


def use_one_blas_thread() -> None:
    """Give BLAS one thread for good, as a worker does; SweepError if that cannot be arranged.

    Some libraries count threads for the whole process, others for each of its threads. So every
    thread of a worker calls this. It restores nothing: other threads may still be computing.
    """
    controller = _controller()
    _limited(controller)
    if not _is_one(controller):
        raise SweepError(
            "results depend on the number of BLAS threads, which must be 1: "
            f'pip install -e ".[cluster]", or set {_variable()}=1 before Python starts'
        )


def has_one_blas_thread() -> bool:
    """Whether BLAS computes on one thread now, also one that was loaded a moment ago."""
    return _is_one(_controller())


# A first reading may stop here. What follows is how an error is sent, how BLAS is asked, and what
# is hashed.


class Call:
    """A call that is made where its pickle is read."""

    def __init__(self, *call: Any) -> None:
        self.call = call

    def __reduce__(self) -> tuple[Any, ...]:
        return attempt, self.call


def attempt(call: Callable[[Any], str], cell: Any) -> str | bytes:
    """The answer, or an error and its traceback as bytes: nothing that is raised ends a worker."""
    try:
        return call(cell)
    except BaseException as error:
        lines = traceback.format_tb(error.__traceback__, limit=-9)
        return pickle.dumps((sendable(error), "".join(lines)))


def sendable(error: BaseException) -> Exception:
    """The error itself if it can be sent and is short; otherwise one that says the same."""
    with contextlib.suppress(Exception):
        if isinstance(error, Exception) and len(sent := pickle.dumps(error)) < 10_000:
            str(pickle.loads(sent))
            return error
    try:
        said = str(error)
    except Exception:
        said = "(its message cannot be read)"
    if len(said) > 1000:
        said = f"{said[:1000]}… ({len(said)} letters)"
    return RuntimeError(f"{type(error).__name__}: {said}")


def _is_one(controller: Any) -> bool:
    """Whether BLAS has one thread, as threadpoolctl knows, or OpenBLAS, or the environment."""
    if controller:
        return all(each["num_threads"] == 1 for each in controller.info())
    threads = _openblas_threads()
    return os.environ.get(_variable()) == "1" if threads is None else threads == 1


def _controller() -> Any:
    """What threadpoolctl knows of the BLAS libraries of this process; None if nothing."""
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:  # it is an extra
        return None
    if "accelerate" in _blas():  # Apple's, which threadpoolctl does not know
        return None
    return ThreadpoolController().select(user_api="blas") or None


def _limited(controller: Any) -> Any:
    """Limit BLAS to one thread; what can restore the number of before, or None."""
    if not controller:
        return None
    _let_this_thread()
    return controller.limit(limits=1)


def _let_this_thread() -> None:
    """Since version 3.8 threadpoolctl ignores every thread but the first that set a number."""
    import threadpoolctl

    if hasattr(threadpoolctl.OpenBLASController, "clear_controlling_thread"):
        threadpoolctl.OpenBLASController.clear_controlling_thread(force=True)


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
