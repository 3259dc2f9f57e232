"""Sweeps: one measurement, many settings, on one processor or on many computers.

How does a training end at three widths with two rates, over five repeats? Each combination is a
**cell**, and a sweep measures them all. A measurement is a function of a module. Its last argument
is `rng`, from which it draws all that is random, and it returns what is to be kept:

    rows = sweep(trained, {"width": [32, 64, 128], "lr": [1e-3, 3e-3]}, seed=0, repeats=5)

Here the measurement only draws weights, as many as `shape` says:

    >>> from minigrad.nn.initial import normal
    >>> from minigrad.runs.sweeps import generator, sweep
    >>> settings = {"shape": [1, 3], "std": [0.02, 1.0]}
    >>> rows = sweep(normal, settings, seed=0, repeats=3, paired=["std"])
    >>> cell, weights = rows[0]
    >>> len(rows), cell                                         # 2 · 2 · 3 cells
    (12, {'shape': 1, 'std': 0.02, 'repeat': 0})

No cell needs the result of another, so this program, processes or a Dask cluster (`workers`) may
compute them in any order, and the numbers are the same to the last bit. A cell's random generator
is made from the sweep's seed and the cell's settings, and not from its place in the order. So a
value that is added to a setting changes no other cell, and any cell can be measured again alone:

    >>> rng = generator(cell, seed=0, paired=["std"])
    >>> bool(normal(1, 0.02, rng=rng) == weights)
    True

`paired` names settings that do *not* choose the draws. Here both deviations scale the same draws,
so the difference between their weights is due to the deviation, and not to another sample:

    >>> small, large = rows[0][1], rows[3][1]
    >>> round(float(large[0] / small[0]), 9)                    # 1 / 0.02, exactly
    50.0

What else could change the last bits? With another number of threads BLAS, the library behind
NumPy's `@`, adds the same numbers in another order. So every cell is computed on one thread. BLAS
also chooses its innermost loop by the processor, and each loop adds in an order of its own. So
results are kept in a folder whose name is a hash of that choice, of NumPy's version, and of the
sources of minigrad, of the measurement's top-level package (or its file, if it is in no package),
and of the packages that are named in `uses`. After a change of any of them the cells are measured
again, into another folder, and the old one may be removed. After a change of any other source the
old results are returned, so `uses` must name all packages whose changes matter.
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
from types import ModuleType
from typing import Any

import numpy as np

Cell = dict[str, Any]
Measure = Callable[..., Any]


def sweep(
    measure: Measure,
    settings: Mapping[str, Iterable[Any]],
    *,
    seed: int,
    repeats: int = 1,
    paired: Iterable[str] = (),
    uses: Iterable[ModuleType] = (),
    folder: str | Path | None = None,
    label: str | None = None,
) -> list[tuple[Cell, Any]]:
    """Measure every combination of the settings: (cell, result) for each, in the product's order.

    measure   a function of a module, called as measure(**cell, rng=…) without the cell's `repeat`
    settings  the values of each of its arguments: numbers, text, True, False or None
    repeats   how often each combination is measured, each time with other draws
    paired    the names of settings that do not choose the draws
    uses      packages, as modules, whose sources the results depend on, beside minigrad and the
              measurement's own
    folder    keeps each result as soon as it is known. Whatever ends the sweep early, the same call
              continues it
    label     the name of a progress bar; None shows no bar
    """
    joblib, threads, tqdm = _needed("joblib"), _needed("threadpoolctl"), _needed("tqdm").tqdm
    paired = sorted(set(paired))
    if strange := [name for name in paired if name not in settings]:
        raise ValueError(f"paired must name settings: got {', '.join(strange)}")
    packages = _packages(measure, uses)
    combinations = itertools.product(*settings.values(), range(repeats))
    cells = [dict(zip([*settings, "repeat"], each, strict=True)) for each in combinations]
    with contextlib.ExitStack() as stack:
        folder = folder or stack.enter_context(tempfile.TemporaryDirectory())
        stack.enter_context(threads.threadpool_limits(1, user_api="blas"))
        made_by = _made_by(measure, packages)
        kept = _keeper(Path(folder, made_by), packages, made_by)
        missing = [c for c in cells if not kept.check_call_in_cache(measure, c, seed, paired)]
        compute = joblib.delayed(_measured)
        found = joblib.Parallel(return_as="generator_unordered", batch_size=1)(
            compute(measure, cell, seed, paired, packages, made_by) for cell in missing
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


def _measured(
    measure: Measure,
    cell: Cell,
    seed: int,
    paired: list[str],
    packages: tuple[str, ...],
    made_by: str,
) -> Any:
    """Measure a cell, as a worker does; return the cell and its result."""
    # No `with` block: its end would allow more threads to all cells that this process measures.
    _needed("threadpoolctl").threadpool_limits(1, user_api="blas")
    if _made_by(measure, packages) != made_by:
        raise RuntimeError("a worker has other sources, NumPy or BLAS than the program: restart it")
    arguments = {name: value for name, value in cell.items() if name != "repeat"}
    try:
        return cell, measure(**arguments, rng=generator(cell, seed=seed, paired=paired))
    except Exception as error:
        error.add_note(f"in the cell {cell}")
        raise


def _keeper(folder: Path, packages: tuple[str, ...], made_by: str) -> Any:
    """Return a function that keeps the result of a cell in a folder, and returns it."""

    # (A function of its own for each folder: joblib prepares one folder for each function, and
    # distrusts the first result that the next program finds in another one.)
    def kept(measure: Measure, cell: Cell, seed: int, paired: list[str], result: Any = None) -> Any:
        if result is None:  # what was kept is damaged
            _, result = _measured(measure, cell, seed, paired, packages, made_by)
        return result

    return _needed("joblib").Memory(folder, verbose=0).cache(kept, ignore=["result"])


def _packages(measure: Measure, uses: Iterable[ModuleType]) -> tuple[str, ...]:
    """Return the names of the packages whose sources are hashed, beside the measurement's file."""
    modules = list(uses)
    if strange := [thing for thing in modules if not inspect.ismodule(thing)]:
        raise TypeError(f"uses takes imported modules: got {strange[0]!r}")
    own = sys.modules[measure.__module__].__package__ or ""  # (a file in no package has none)
    names = ["minigrad", own, *(module.__name__ for module in modules)]
    return tuple(sorted({name.partition(".")[0] for name in names} - {""}))


@functools.cache
def _made_by(measure: Measure, packages: tuple[str, ...]) -> str:
    """Return a hash of the sources, of NumPy's version, and of the loop that BLAS has chosen."""
    libraries = _needed("threadpoolctl").ThreadpoolController().select(user_api="blas").info()
    loops = sorted({str(library.get("architecture")) for library in libraries})
    files = [file for package in packages for file in _files(package)]
    files.append(Path(inspect.getfile(inspect.unwrap(measure))))
    sources = [file.read_bytes() for file in files]
    return str(_needed("joblib").hash([np.__version__, loops, sources]))


def _files(package: str) -> list[Path]:
    """Return the files of a package's sources, or the one file of a module that has no folder."""
    module = importlib.import_module(package)
    if not hasattr(module, "__path__"):
        return [Path(inspect.getfile(module))]
    return [file for folder in module.__path__ for file in sorted(Path(folder).rglob("*.py"))]


def _needed(module: str) -> Any:
    """Import and return a module of an extra; ImportError with the command that installs it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise ImportError(f"a sweep needs {module}: pip install {module}") from None
