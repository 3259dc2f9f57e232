"""16.11 · Sweeps: one measurement, many settings, any number of computers.

How do two exponents compare at five widths and eight learning rates, over five repeats? Each
combination is a **cell**, and a sweep measures them all:

    >>> from attention.laboratory.sweeps import sweep
    >>> from attention.scaling import saturation
    >>> settings = {"d_k": [4, 64], "a": [0.0, 0.5], "queries": [64]}
    >>> rows = sweep(saturation, settings, seed=0, repeats=3, paired=["a"])
    >>> len(rows)                                               # 2 · 2 · 1 · 3
    12
    >>> cell, result = rows[0]
    >>> cell
    {'d_k': 4, 'a': 0.0, 'queries': 64, 'repeat': 0}
    >>> result.d_k, result.a
    (4, 0.0)

No cell needs the result of another, so they may be computed in any order and anywhere: by this
program, by processes, or by a cluster (`workers`, chapter 16.10). The numbers are the same to the
last bit. Each cell has a random generator of its own, made from the sweep's seed and the cell's
settings, and not from its place in the order. So a value that is added to a setting changes no
other cell, and any cell can be measured again by itself:

    >>> from attention.laboratory.sweeps import generator
    >>> rng = generator(cell, seed=0, paired=["a"])
    >>> saturation(4, 0.0, queries=64, rng=rng) == result
    True

`paired` names settings that do *not* choose the draws. Cells that differ in these alone see the
same random numbers. Here raw and scaled attention see the same queries and keys, so the difference
between them is due to the scale, and not to another sample:

    >>> raw, scaled = rows[0][1], rows[3][1]
    >>> round(raw.score_variance / scaled.score_variance, 9)    # d_k, exactly
    4.0

With `path` each result is written as soon as it is known (chapter 16.8), and the same call
continues a sweep that was killed. The whole of a demo's sweep is then

    with workers(jobs, dask) as executor, progress("basin") as shown:
        rows = sweep(measure, settings, seed=0, executor=executor, path=path, shown=shown)
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
import itertools
import json
import operator
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

import numpy as np

from attention.laboratory.bits import (
    facts,
    has_one_blas_thread,
    one_blas_thread,
    refuse_changed_code,
    use_one_blas_thread,
)
from attention.laboratory.results import (
    LostFile,
    SweepError,
    as_text,
    from_text,
    results_file,
)
from attention.laboratory.workers import compute

Value = bool | int | float | str | None
Cell = dict[str, Value]
Result = TypeVar("Result")


def sweep(
    measure: Callable[..., Result],
    settings: Mapping[str, Iterable[Value]],
    *,
    seed: int,
    repeats: int = 1,
    paired: Iterable[str] = (),
    executor: Executor | None = None,
    path: str | Path | None = None,
    shown: Callable[[int, int], object] = lambda done, cells: None,
) -> list[tuple[Cell, Result]]:
    """Measure every combination of the settings: (cell, result) for each, in the product's order.

    measure   a function of a module, so that another process can import it. Its return annotation
              is the frozen dataclass that it returns. It is called as measure(**cell, rng=…)
    settings  the values of each of its arguments. The last name changes fastest, and the cells
              begin in this order
    repeats   how often each combination is measured, each time with other draws. The cell counts
              them as `repeat`, which measure does not get
    paired    the names of settings that do not choose the draws
    executor  what computes the cells, as `workers` gives it. None is this program itself
    path      a file that keeps the results. Those that it holds already are not measured again
    shown     is called with the number of results so far and of all cells, as `progress` gives it

    An error inside a cell names the cell. SweepError if a worker dies or the file cannot be used.
    Whatever ends the sweep early, Ctrl-C too, the file keeps what was measured by then.
    """
    kind = _result_of(measure)
    values = {name: _values(name, given) for name, given in settings.items()}
    repeats, seed = _integer("repeats", repeats, 1), _integer("the seed", seed, 0)
    cells = _cells(measure, values, repeats)
    paired = _names(paired)
    if strange := [name for name in paired if name not in values]:
        raise ValueError(f"paired must name settings: got {', '.join(strange)}")
    refuse_changed_code(measure.__module__)
    here = facts(measure.__module__)
    about = {
        "measure": f"{measure.__module__}.{measure.__qualname__}",
        "settings": values,
        "repeats": repeats,
        "seed": seed,
        "paired": paired,
        "versions": here,
    }
    texts: dict[str, str] = {}  # by the name of a cell, its result as JSON
    with contextlib.ExitStack() as stack:
        stack.enter_context(one_blas_thread())
        append: Callable[[dict[str, Any]], None] = lambda record: None
        if path is not None:
            records, append = stack.enter_context(results_file(path, about))
            texts = _texts(records, {_name(cell) for cell in cells}, kind, path)
        shown(len(texts), len(cells))

        def keep(cell: Cell, text: str) -> None:
            append({"settings": cell, "result": json.loads(text)})
            texts[_name(cell)] = text
            shown(len(texts), len(cells))

        call = functools.partial(_measured, measure, seed, paired, here)
        try:
            compute(call, [cell for cell in cells if _name(cell) not in texts], executor, keep)
        except LostFile:
            raise
        except BaseException as error:
            count = f"{len(texts)} of {len(cells)} results are"
            kept = f"{count} lost" if path is None else f"{count} kept in {path}"
            again = "" if path is None else ". Run the same command to go on."
            if isinstance(error, KeyboardInterrupt):
                raise KeyboardInterrupt(f"the sweep was stopped: {kept}{again}") from None
            if isinstance(error, SweepError) and not hasattr(error, "__notes__"):
                raise SweepError(f"{error}: {kept}{again}") from error.__cause__
            error.add_note(kept)
            raise
    return [(cell, from_text(kind, texts[_name(cell)])) for cell in cells]


def generator(cell: Cell, *, seed: int, paired: Iterable[str] = ()) -> np.random.Generator:
    """The random numbers of one cell: they depend on the seed and on its unpaired settings."""
    paired = _names(paired)
    # Equal numbers get equal draws, 1 and 1.0 too, which JSON writes differently.
    own = {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in cell.items()
        if name not in paired
    }
    digest = hashlib.sha256(_name(own).encode()).digest()
    return np.random.default_rng([seed, int.from_bytes(digest[:16], "big")])


@contextlib.contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """A function for `shown` that moves a bar of tqdm; it does nothing where tqdm is missing."""
    try:
        from tqdm import tqdm
    except ImportError:
        tqdm = None
    if tqdm is None or sys.stderr is None:  # (the latter after 2>&- in a shell)
        yield lambda done, cells: None
        return
    with tqdm(desc=what, unit="cell") as bar:

        def shown(done: int, cells: int) -> None:
            if bar.total is None:  # the first call: what a file held cost no time
                bar.total, bar.initial, bar.n = cells, done, done
            bar.update(done - bar.n)

        yield shown


# A first reading may stop here. What follows is a calculation on paper, how a cell is computed, and
# what is refused.

# What would more computers do? An example: 3 exponents · 8 rates · 5 widths · 5 repeats · 2
# optimizers are 1,200 cells. Say that a cell takes 3 seconds on average, and the slowest cell 10.
# Then
#
#      1 worker      60 minutes
#      2 workers     30 minutes
#    100 workers     36 seconds, if the slow cells begin first; up to 46 if they begin last
# 10,000 workers     10 seconds: 8,800 workers get nothing, and all wait for the slowest cell
#
# Beyond 3600 / 10 = 360 workers the slowest cell is what takes the time. More workers then help
# only if there are more cells: 10,000 workers could measure 41 repeats in the time of 5.
#
# What is sent? A task is the name of a function, a cell, a seed, and what the worker must have
# imported: less than 500 bytes as a pickle. A result is a line of text. No data is sent, since each
# cell draws its own, so that 1,200 cells are about a megabyte. Every task passes through one
# scheduler. If it needs a millisecond for each, it hands out 1,000 cells a second, and keeps 3,000
# workers busy with cells of 3 seconds. For 10,000 workers a task would have to hold several cells.


def _name(cell: Cell) -> str:
    """A cell as text, in which the order of its settings does not count."""
    return json.dumps(cell, sort_keys=True)


def _measured(
    measure: Callable[..., object],
    seed: int,
    paired: list[str],
    expected: dict[str, str],
    cell: Cell,
) -> str:
    """One cell's result as JSON."""
    here = facts(measure.__module__)
    if here != expected:
        other = [f"{n} {here[n]} and not {expected[n]}" for n in here if here[n] != expected[n]]
        raise SweepError(f"a worker has imported {', '.join(other)}: start the workers again")
    arguments = {name: value for name, value in cell.items() if name != "repeat"}
    use_one_blas_thread()
    result = measure(**arguments, rng=generator(cell, seed=seed, paired=paired))
    if not has_one_blas_thread():
        raise SweepError("the number of BLAS threads changed while a cell was measured")
    if type(result) is not (kind := _result_of(measure)):
        raise TypeError(
            f"{measure.__qualname__} should return {kind.__name__}, as its annotation says: "
            f"got {result!r}"
        )
    return as_text(result)


def _texts(
    records: list[dict[str, Any]], names: set[str], kind: type, path: str | Path
) -> dict[str, str]:
    """The results of a file by the names of their cells; SweepError if one is not of this sweep."""
    texts: dict[str, str] = {}
    for record in records:
        name, text = _name(record["settings"]), json.dumps(record["result"])
        if name not in names:
            raise SweepError(f"{path} holds a cell that this sweep does not have: {name}")
        if texts.setdefault(name, text) != text:
            raise SweepError(
                f"{path} holds two results of the cell {name}: remove one of its lines"
            )
        try:
            known = as_text(from_text(kind, text)) == text
        except Exception:  # what the class refuses is its own matter
            known = False
        if not known:
            raise SweepError(
                f"{path} holds a result of the cell {name} that is not a {kind.__name__}: remove "
                "its line, and the cell is measured again"
            )
    return texts


def _result_of(measure: Callable[..., Result]) -> type[Result]:
    """The dataclass that a measurement returns; TypeError if it is not one, or has no address."""
    name = getattr(measure, "__qualname__", repr(measure))
    module = getattr(measure, "__module__", None)
    if module == "__main__" or getattr(sys.modules.get(module or ""), name, None) is not measure:
        raise TypeError(
            f"another process must be able to import what a sweep measures: write {name} as a "
            "function of a module that is imported, not of the program that is run"
        )
    kind: type[Result] | None = get_type_hints(measure).get("return")
    if not isinstance(kind, type) or not is_dataclass(kind):
        raise TypeError(f"the return annotation of {name} must be a dataclass: got {kind}")
    return kind


def _values(name: str, given: Iterable[Value]) -> list[Value]:
    """The values of a setting as a list that JSON can keep."""
    if name in ("repeat", "rng"):
        raise ValueError(f"a setting cannot be called {name}, which is the sweep's own")
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise TypeError(f"{name} must be a list of values: got {given!r}")
    if isinstance(given, set | frozenset):
        raise TypeError(f"{name} must be a list of values, because a set has no order: got {given}")
    values = [each.item() if isinstance(each, np.generic) else each for each in given]
    for each in values:
        if type(each) not in (bool, int, float, str, type(None)):
            raise TypeError(
                f"a value of {name} must be a number, text, True, False or None: got {each!r}"
            )
    if not values or len({json.dumps(each) for each in values}) < len(values):
        raise ValueError(f"{name} must have values, each once: got {values}")
    return values


def _names(paired: Iterable[str]) -> list[str]:
    """The names of `paired`, each once, in an order that does not depend on theirs."""
    if isinstance(paired, str):
        raise TypeError(f"paired must be a list of names: got {paired!r}")
    return sorted(set(paired))


def _integer(what: str, value: int, least: int) -> int:
    """Python's or NumPy's integer as Python's."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{what} must be an integer of {least} or more: got {value!r}")
    return operator.index(value)


def _cells(
    measure: Callable[..., object], values: dict[str, list[Value]], repeats: int
) -> list[Cell]:
    """All cells, after a look at whether they fit the measurement's arguments."""
    try:
        inspect.signature(measure).bind(**dict.fromkeys([*values, "rng"]))
    except TypeError as error:
        raise TypeError(f"{measure.__qualname__} does not take these settings: {error}") from None
    names = [*values, "repeat"]
    combinations = itertools.product(*values.values(), range(repeats))
    return [dict(zip(names, combination, strict=True)) for combination in combinations]
