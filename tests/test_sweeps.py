"""Sweeps: the same bits wherever a cell is computed, and what is kept when a sweep ends early."""

import functools
import importlib
import inspect
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import threadpoolctl

from minigrad.runs import sweeps
from minigrad.runs.sweeps import generator, sweep, workers
from tests.sweep_cells import measured, visited

ROOT = Path(__file__).parents[1]
SETTINGS = {"n": [13, 3, 16, 1, 25], "a": [0, 0.5, 1.0]}
SWEEP = functools.partial(sweep, measured, SETTINGS, seed=3, repeats=2, paired=["a"])


def needed(name):
    """Import a module of the extra `cluster`, or skip the test. (In CI a skip is a failure.)"""
    if "MINIGRAD_NEEDS_CLUSTER" in os.environ:
        return importlib.import_module(name)
    return pytest.importorskip(name, reason='needs pip install -e ".[cluster]"')


def bits(rows):
    """Return rows in a form that == compares bit for bit: a repr has every digit of a float."""
    return repr(rows)


def threads():
    """Return the number of BLAS threads."""
    return {lib["num_threads"] for lib in threadpoolctl.threadpool_info() if "blas" in lib.values()}


@pytest.fixture
def two_threads():
    """Give BLAS two threads, whatever conftest says."""
    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        yield


@pytest.fixture(scope="module")
def serial():
    """Return the measurements of one process with one BLAS thread."""
    with threadpoolctl.threadpool_limits(1, user_api="blas"):
        return bits(SWEEP())


# ------------------------------------------------------------------ value


def test_a_sweep_is_its_measurement_in_nested_loops(serial):
    wanted = []
    with threadpoolctl.threadpool_limits(1, user_api="blas"):
        for n in [13, 3, 16, 1, 25]:
            for a in [0, 0.5, 1.0]:
                for repeat in range(2):
                    cell = {"n": n, "a": a, "repeat": repeat}
                    rng = generator(cell, seed=3, paired=["a"])
                    wanted.append((cell, measured(n, a, rng=rng)))
    assert bits(wanted) == serial


@pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "2.1.0", reason="they do not with NumPy 2.0's OpenBLAS"
)
def test_the_products_of_these_cells_depend_on_the_number_of_threads(two_threads):
    """If they did not, the tests below would prove nothing."""
    rows = SWEEP()
    assert threads() == {2}
    found = [measured(c["n"], c["a"], rng=generator(c, seed=3, paired=["a"])) for c, _ in rows]
    assert sum(two != one for two, (_, one) in zip(found, rows, strict=True)) > 5


# ------------------------------------------------------------------ law: the same bits


def test_the_program_itself_computes_on_one_blas_thread_and_restores_it(two_threads, serial):
    assert bits(SWEEP()) == serial
    assert threads() == {2}


def test_two_processes_and_what_they_have_kept_give_the_serial_bits(monkeypatch, serial, tmp_path):
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")
    with workers(jobs=2):
        assert bits(SWEEP(folder=tmp_path)) == serial
    assert bits(SWEEP(folder=tmp_path)) == serial  # read back


def test_a_dask_cluster_gives_the_serial_bits_and_survives_a_worker_that_is_killed(
    serial, tmp_path
):
    distributed, dask = needed("distributed"), needed("dask")
    changed = {
        "distributed.nanny.pre-spawn-environ.OPENBLAS_NUM_THREADS": 2,
        "distributed.comm.timeouts.connect": "2s",  # how long it looks for a worker that is dead
    }
    options = {"threads_per_worker": 2, "dashboard_address": ":0", "silence_logs": 50}
    cells = {"n": list(range(12)), "folder": [str(tmp_path)], "end": ["killed"]}
    with (
        dask.config.set(changed),
        distributed.LocalCluster(n_workers=2, **options) as cluster,
        workers(dask=cluster.scheduler_address),
    ):
        assert bits(SWEEP()) == serial
        rows = sweep(visited, cells, seed=0)
    assert (tmp_path / "5").read_text() == "xx"
    assert bits(rows) == bits(sweep(visited, cells, seed=0))


# ------------------------------------------------------------------ law: draws


def test_a_cell_depends_on_the_seed_and_on_its_settings_alone():
    rows = sweep(measured, {"n": [1, 3, 13], "a": [0, 0.5, 2]}, seed=0, repeats=3)
    whole = {frozenset(cell.items()): bits(found) for cell, found in rows}
    for chosen in ({"a": [2, 0], "n": [13, 1]}, {"n": [3], "a": [0.5, 2, 0]}):
        for cell, found in sweep(measured, chosen, seed=0, repeats=2):
            assert bits(found) == whole[frozenset(cell.items())]
    drawn = {
        generator({"n": n, "a": a, "repeat": repeat}, seed=seed).random()
        for n in range(9)
        for a in (0.0, 0.5, "SGD", None, True)
        for repeat in range(3)
        for seed in (0, 1, 2**70)
    }
    assert len(drawn) == 9 * 5 * 3 * 3


def test_paired_cells_see_the_same_draws_and_so_do_equal_numbers():
    draw = lambda paired=(), **cell: generator(cell, seed=0, paired=paired).random()
    assert draw(n=3, a=0, paired=["a"]) == draw(n=3, a=1, paired=["a"]) == draw(n=3)
    assert draw(n=3, a=0, paired=["a"]) != draw(n=4, a=0, paired=["a"])
    assert draw(n=3, a=0) != draw(n=3, a=1) == draw(n=3.0, a=1.0) == draw(n=np.int64(3), a=1)
    # What the committed results of the demos were drawn with:
    drawn = generator({"d_k": 64, "a": 0.5, "optimizer": "sgd", "repeat": 1}, seed=3, paired=["a"])
    assert drawn.random(2).tolist() == [0.8843380042984758, 0.11561576270772511]


# ------------------------------------------------------------------ law: what is kept


def test_a_second_run_computes_nothing_and_a_longer_one_only_what_is_new(capsys, tmp_path):
    results, cells = tmp_path / "results", {"n": [3, 1, 4], "folder": [str(tmp_path)]}
    first = sweep(visited, cells, seed=0, folder=results, label="first")
    assert "first: 100%" in (said := capsys.readouterr().err) and "3/3" in said
    assert sweep(visited, cells, seed=0, folder=results) == first
    assert capsys.readouterr().err == ""
    longer = sweep(visited, cells | {"n": [1, 2, 3, 4]}, seed=0, folder=results)
    assert [found for cell, found in longer if cell["n"] == 3] == [first[0][1]]
    assert {(tmp_path / f"{n}").read_text() for n in range(1, 5)} == {"x"}
    sweep(visited, cells, seed=1, folder=results)
    assert (tmp_path / "3").read_text() == "xx"


@pytest.mark.parametrize(
    ("end", "jobs"), [("stopped", 1), ("wrong", 1), ("killed", 2), ("wrong", 2)]
)
def test_a_run_that_ended_early_keeps_what_it_had_and_is_continued(end, jobs, tmp_path):
    results = tmp_path / "results"
    cells = {"n": list(range(9)), "folder": [str(tmp_path)], "end": [end]}
    with pytest.raises(BaseException) as caught, workers(jobs):
        sweep(visited, cells, seed=0, folder=results)
    kind = {"stopped": "KeyboardInterrupt", "wrong": "FloatingPointError"}
    assert caught.type.__name__ == kind.get(end, "TerminatedWorkerError")
    if end == "wrong":
        assert caught.value.__notes__[0].startswith("in the cell {'n': 5, 'folder'")
    kept = len(list(results.rglob("output.pkl")))
    assert 1 <= kept <= 8 and (jobs > 1 or kept == 5)
    rows = sweep(visited, cells, seed=0, folder=results)
    visits = [(tmp_path / f"{n}").read_text() for n in range(9)]
    assert visits[5] == "xx" and sum(each != "x" for each in visits) <= 9 - kept
    fresh = [measured(cell["n"], rng=generator(cell, seed=0)) for cell, _ in rows]
    assert bits([found for _, found in rows]) == bits(fresh)


def test_a_result_whose_file_is_damaged_is_measured_again(tmp_path):
    rows = SWEEP(folder=tmp_path)
    next(tmp_path.rglob("output.pkl")).write_bytes(b"torn")
    assert bits(SWEEP(folder=tmp_path)) == bits(rows)


INSIDE, ALONE = "package_of_mine.cells", "cells_of_mine"  # modules of measurements
BOTH = {INSIDE, ALONE}
WITH = {f"{name}, uses" for name in BOTH}


@pytest.mark.parametrize(
    ("file", "changed"),
    [
        ("minigrad/deep/a.py", BOTH | WITH),
        ("package_of_mine/cells.py", {INSIDE, f"{INSIDE}, uses"}),
        ("package_of_mine/deep/b.py", {INSIDE, f"{INSIDE}, uses"}),
        ("cells_of_mine.py", {ALONE, f"{ALONE}, uses"}),
        ("used/deep/c.py", WITH),
        ("used/d.py", WITH),
        ("used_file.py", WITH),
        ("another_file.py", set()),
    ],
)
def test_a_changed_source_changes_what_depends_on_it(file, changed, monkeypatch, tmp_path):
    names = ["minigrad/deep/a", "used/deep/c", "used/d", "used_file", "another_file"]
    for name in [*names, "package_of_mine/cells", "package_of_mine/deep/b", "cells_of_mine"]:
        path = tmp_path / f"{name}.py"
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(inspect.getsource(sys.modules[measured.__module__]))
    ours = ModuleType("minigrad")
    ours.__path__ = [str(tmp_path / "minigrad")]
    monkeypatch.setitem(sys.modules, "minigrad", ours)
    for name in BOTH | {"package_of_mine", "used", "used.deep", "used.deep.c", "used_file"}:
        monkeypatch.delitem(sys.modules, name, raising=False)  # (of another file's test)
    monkeypatch.syspath_prepend(tmp_path)
    uses = [importlib.import_module(name) for name in ("used.deep.c", "used_file")]

    def hashes():
        sweeps._made_by.cache_clear()  # (as in a new process)
        for name in BOTH:
            measure = importlib.import_module(name).measured
            yield name, sweeps._made_by(measure, sweeps._packages(measure, []))
            yield f"{name}, uses", sweeps._made_by(measure, sweeps._packages(measure, uses))

    before = dict(hashes())
    assert len(before) == len(set(before.values())) == 4
    (tmp_path / file).write_text((tmp_path / file).read_text() + "# later\n")
    assert {name for name, made_by in hashes() if made_by != before[name]} == changed
    sweeps._made_by.cache_clear()


def test_another_numpy_gives_another_folder(monkeypatch, tmp_path):
    for version in (np.__version__, "0", np.__version__):
        monkeypatch.setattr(np, "__version__", version)
        sweeps._made_by.cache_clear()
        sweep(measured, {"n": [1]}, seed=0, folder=tmp_path)
    assert len(list(tmp_path.iterdir())) == 2


PROGRAM = """
import sys
import used
from tests.sweep_cells import visited
from minigrad.runs.sweeps import sweep, workers

def again(n, *, folder, rng):
    return visited(n, folder=folder, rng=rng)

for measure, jobs, folder in ((visited, 2, "module"), (again, 1, "here"), (again, 2, "here")):
    with workers(jobs):
        sweep(measure, {"n": [1, 2], "folder": [folder]}, seed=0, folder="results", uses=[used])
"""


def test_cells_are_measured_again_if_a_package_in_uses_has_changed(tmp_path):
    """(Also by processes, and if the program itself has the measurement.)"""
    for name, text in {"program.py": PROGRAM, "used/__init__.py": "", "used/deep.py": ""}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    visits = []
    for text in ("", "", "later = True"):
        (tmp_path / "used" / "deep.py").write_text(text)
        for folder in ("module", "here"):
            (tmp_path / folder).mkdir(exist_ok=True)
        subprocess.run(
            [sys.executable, "program.py"],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])},
            check=True,
        )
        marks = [tmp_path / folder / n for folder in ("module", "here") for n in ("1", "2")]
        visits.append([mark.read_text() for mark in marks])
    assert visits == [["x"] * 4, ["x"] * 4, ["xx"] * 4]


# ------------------------------------------------------------------ refusal


def test_a_paired_name_that_is_not_a_setting_is_refused():
    with pytest.raises(ValueError, match=r"^paired must name settings: got b$"):
        sweep(measured, {"n": [1]}, seed=0, paired=["n", "b"])


def test_a_worker_with_other_sources_is_refused():
    cell = {"n": 1, "repeat": 0}
    here = sweeps._made_by(measured, ("minigrad", "numpy"))
    assert sweeps._measured(measured, cell, 0, [], ("minigrad", "numpy"), here)[0] == cell
    with pytest.raises(
        RuntimeError, match="a worker has other sources, NumPy or BLAS than the pro"
    ):
        sweeps._measured(measured, cell, 0, [], ("minigrad",), here)


@pytest.mark.parametrize("thing", ["numpy", measured])
def test_what_is_not_a_module_is_refused_in_uses(thing):
    with pytest.raises(TypeError, match=r"^uses takes imported modules: got ['<]"):
        sweep(measured, {"n": [1]}, seed=0, uses=[thing])


@pytest.mark.parametrize("module", ["joblib", "threadpoolctl", "tqdm", "distributed"])
def test_without_its_extra_a_sweep_is_refused_in_one_sentence(module, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    dask = "tcp://127.0.0.1:9" if module == "distributed" else None
    said = f"^a sweep needs {module}: pip install {module}$"
    with pytest.raises(ImportError, match=said), workers(dask=dask):
        sweep(measured, {"n": [1]}, seed=0)


def test_a_sweep_and_the_laboratory_are_imported_without_any_extra():
    extras = ["joblib", "threadpoolctl", "tqdm", "distributed", "matplotlib"]
    imports = "import minigrad.runs.sweeps, attention.laboratory"
    code = f"import sys; sys.modules |= dict.fromkeys({extras}); {imports}"
    subprocess.run([sys.executable, "-c", code], check=True)
