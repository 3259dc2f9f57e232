"""Sweeps: one measurement, many settings, on one processor or on many computers.

How do two exponents compare at several widths, over five repeats? Each combination is a **cell**,
and a sweep measures them all:

    >>> from attention.laboratory.sweeps import generator, sweep
    >>> from attention.scaling import saturation
    >>> settings = {"d_k": [4, 64], "a": [0.0, 0.5], "queries": [64]}
    >>> rows = sweep(saturation, settings, seed=0, repeats=3, paired=["a"])
    >>> cell, result = rows[0]
    >>> len(rows), cell                                         # 2 · 2 · 1 · 3 cells
    (12, {'d_k': 4, 'a': 0.0, 'queries': 64, 'repeat': 0})

No cell needs the result of another, so this program, processes or a Dask cluster (`workers`) may
compute them in any order, and the numbers are the same to the last bit. A cell's random generator
is made from the sweep's seed and the cell's settings, and not from its place in the order. So a
value that is added to a setting changes no other cell, and any cell can be measured again alone:

    >>> rng = generator(cell, seed=0, paired=["a"])
    >>> saturation(4, 0.0, queries=64, rng=rng) == result
    True

`paired` names settings that do *not* choose the draws. Here raw and scaled attention see the same
queries and keys, so the difference between them is due to the scale, and not to another sample:

    >>> raw, scaled = rows[0][1], rows[3][1]
    >>> round(raw.score_variance / scaled.score_variance, 9)    # d_k, exactly
    4.0

What else could change the last bits? With another number of threads BLAS, the library behind
NumPy's `@`, adds the same numbers in another order. So every cell is computed on one thread. BLAS
also chooses its innermost loop by the processor, and each loop adds in an order of its own. So
results are kept in a folder whose name is a hash of that choice, of NumPy's version, and of the
sources of minigrad, of attention and of the measurement. After a change of any of them the cells
are measured again, into another folder, and the old one may be removed.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import inspect
import itertools
import json
import sys
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import attention
import minigrad

Cell = dict[str, Any]
Measure = Callable[..., Any]


def sweep(
    measure: Measure,
    settings: Mapping[str, Iterable[Any]],
    *,
    seed: int,
    repeats: int = 1,
    paired: Iterable[str] = (),
    folder: str | Path | None = None,
    label: str | None = None,
) -> list[tuple[Cell, Any]]:
    """Measure every combination of the settings: (cell, result) for each, in the product's order.

    measure   a function of a module, called as measure(**cell, rng=…) without the cell's `repeat`
    settings  the values of each of its arguments: numbers, text, True, False or None
    repeats   how often each combination is measured, each time with other draws
    paired    the names of settings that do not choose the draws
    folder    keeps each result as soon as it is known. Whatever ends the sweep early, the same call
              continues it
    label     the name of a progress bar; None shows no bar
    """
    joblib, threads, tqdm = _needed("joblib"), _needed("threadpoolctl"), _needed("tqdm").tqdm
    paired = sorted(set(paired))
    if strange := [name for name in paired if name not in settings]:
        raise ValueError(f"paired must name settings: got {', '.join(strange)}")
    combinations = itertools.product(*settings.values(), range(repeats))
    cells = [dict(zip([*settings, "repeat"], each, strict=True)) for each in combinations]
    with contextlib.ExitStack() as stack:
        folder = folder or stack.enter_context(tempfile.TemporaryDirectory())
        stack.enter_context(threads.threadpool_limits(1, user_api="blas"))
        made_by = _made_by(measure)
        kept = joblib.Memory(Path(folder, made_by), verbose=0).cache(_kept, ignore=["result"])
        missing = [c for c in cells if not kept.check_call_in_cache(measure, c, seed, paired)]
        found = joblib.Parallel(return_as="generator_unordered", batch_size=1)(
            joblib.delayed(_measured)(measure, cell, seed, paired, made_by) for cell in missing
        )
        silent = label is None or sys.stderr is None
        for cell, result in tqdm(found, label, len(missing), disable=silent, unit="cell"):
            kept(measure, cell, seed, paired, result)
        return [(cell, kept(measure, cell, seed, paired)) for cell in cells]


def generator(cell: Cell, *, seed: int, paired: Collection[str] = ()) -> np.random.Generator:
    """Return a cell's random generator, made from the seed and the cell's unpaired settings."""
    # Equal numbers get equal draws, 1 and 1.0 too, which JSON writes differently.
    own = {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in cell.items()
        if name not in paired
    }
    text = json.dumps(own, sort_keys=True, default=lambda number: number.item())  # (of NumPy)
    digest = hashlib.sha256(text.encode()).digest()
    return np.random.default_rng([seed, int.from_bytes(digest[:16], "big")])


@contextlib.contextmanager
def workers(jobs: int = 1, dask: str | None = None) -> Iterator[None]:
    """Compute the sweeps of a block by `jobs` processes, or by the Dask cluster at `dask`."""
    joblib = _needed("joblib")
    if dask is None:
        with joblib.parallel_config("loky", n_jobs=jobs):
            yield
    else:
        with _needed("distributed").Client(dask, timeout=5), joblib.parallel_config("dask"):
            yield


def _measured(measure: Measure, cell: Cell, seed: int, paired: list[str], made_by: str) -> Any:
    """Measure a cell, as a worker does; return the cell and its result."""
    # No `with` block: its end would allow more threads to all cells that this process measures.
    _needed("threadpoolctl").threadpool_limits(1, user_api="blas")
    if _made_by(measure) != made_by:
        raise RuntimeError("a worker has other sources, NumPy or BLAS than the program: restart it")
    arguments = {name: value for name, value in cell.items() if name != "repeat"}
    try:
        return cell, measure(**arguments, rng=generator(cell, seed=seed, paired=paired))
    except Exception as error:
        error.add_note(f"in the cell {cell}")
        raise


def _kept(measure: Measure, cell: Cell, seed: int, paired: list[str], result: Any = None) -> Any:
    """Return the result, for joblib.Memory to keep; measure it if the kept one is damaged."""
    if result is None:
        _, result = _measured(measure, cell, seed, paired, _made_by(measure))
    return result


@functools.cache
def _made_by(measure: Measure) -> str:
    """Return a hash of the sources, of NumPy's version, and of the loop that BLAS has chosen."""
    libraries = _needed("threadpoolctl").ThreadpoolController().select(user_api="blas").info()
    loops = sorted({str(library.get("architecture")) for library in libraries})
    folders = [Path(inspect.getfile(package)).parent for package in (minigrad, attention)]
    files = [file for folder in folders for file in sorted(folder.rglob("*.py"))]
    sources = [file.read_bytes() for file in [*files, Path(inspect.getfile(measure))]]
    return str(_needed("joblib").hash([np.__version__, loops, sources]))


def _needed(module: str) -> Any:
    """Import and return a module of an extra; ImportError with the command that installs it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise ImportError(f"a sweep needs {module}: pip install {module}") from None
