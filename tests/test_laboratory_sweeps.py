"""Chapters 16.9 to 16.11 · Bits, workers, sweeps: the same bits wherever a cell is computed."""

import contextlib
import functools
import heapq
import importlib
import itertools
import multiprocessing
import os
import pickle
import platform
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attention.laboratory import bits as bits_chapter
from attention.laboratory import sweeps
from attention.laboratory import workers as workers_chapter
from attention.laboratory.bits import facts, one_blas_thread
from attention.laboratory.results import SweepError, as_text
from attention.laboratory.sweeps import generator, progress, sweep
from attention.laboratory.workers import _hand_over, workers
from tests import laboratory_cells
from tests.laboratory_cells import WRONG, deadly, measured, untold, visited, wrong


def needed(name):
    """A module of the extra `cluster`; without it the test skips. (In CI a skip is a failure.)"""
    if "MINIGRAD_NEEDS_CLUSTER" in os.environ:
        return importlib.import_module(name)
    return pytest.importorskip(name, reason='needs pip install -e ".[cluster]"')


threadpoolctl = needed("threadpoolctl")
ROOT = Path(__file__).parents[1]
SETTINGS = {"n": [13, 3, 16, 1, 25], "a": [0, 0.5, 1.0]}
SWEEP = functools.partial(sweep, measured, SETTINGS, seed=3, repeats=2, paired=["a"])


def bits(rows):
    """Rows in a form that == compares bit for bit, NaN too: a repr has every digit of a float."""
    return repr(rows)


@pytest.fixture
def two_threads():
    """Here BLAS has two threads, whatever conftest says."""
    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        yield


@pytest.fixture(scope="module")
def serial():
    """What one core with one BLAS thread measures."""
    with threadpoolctl.threadpool_limits(1, user_api="blas"):
        return bits(SWEEP())


@pytest.fixture(scope="module")
def pool():
    """Two processes whose BLAS would take two threads."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENBLAS_NUM_THREADS", "2")
        with workers(jobs=2) as executor:
            yield executor


@pytest.fixture(scope="module")
def address():
    """A Dask cluster of two processes with two threads each, whose BLAS would take two as well."""
    distributed, dask = needed("distributed"), needed("dask")
    changed = {
        "distributed.nanny.pre-spawn-environ.OPENBLAS_NUM_THREADS": 2,
        "distributed.comm.timeouts.connect": "2s",  # how long it looks for a worker that is dead
    }
    options = {"threads_per_worker": 2, "dashboard_address": ":0", "silence_logs": 50}
    with dask.config.set(changed), distributed.LocalCluster(n_workers=2, **options) as cluster:
        yield cluster.scheduler_address


# ------------------------------------------------------------------ value


def test_a_sweep_is_its_measurement_in_nested_loops():
    rows = SWEEP()
    wanted = []
    with one_blas_thread():
        for n in [13, 3, 16, 1, 25]:
            for a in [0, 0.5, 1.0]:
                for repeat in range(2):
                    cell = {"n": n, "a": a, "repeat": repeat}
                    rng = generator(cell, seed=3, paired=["a"])
                    wanted.append((cell, measured(n, a, rng=rng)))
    assert [cell for cell, _ in rows] == [cell for cell, _ in wanted]
    for (_, found), (_, right) in zip(rows, wanted, strict=True):
        for name in vars(right):
            np.testing.assert_array_equal(getattr(found, name), getattr(right, name))
    assert {type(value) for _, found in rows for value in vars(found).values()} == {
        int, float, str, list, tuple
    }  # fmt: skip


def test_the_products_of_these_cells_depend_on_the_number_of_threads(two_threads, serial):
    """If they did not, the tests below would prove nothing."""
    rows = SWEEP()
    assert not bits_chapter.has_one_blas_thread()
    rngs = [generator(cell, seed=3, paired=["a"]) for cell, _ in rows]
    found = [
        measured(cell["n"], cell["a"], rng=rng) for (cell, _), rng in zip(rows, rngs, strict=True)
    ]
    assert sum(two != one for two, (_, one) in zip(found, rows, strict=True)) > 5


# ------------------------------------------------------------------ law: executors


def test_the_program_itself_computes_on_one_blas_thread_and_restores_it(two_threads, serial):
    assert bits(SWEEP()) == serial
    assert not bits_chapter.has_one_blas_thread()


@pytest.mark.parametrize("count", [1, 3])
def test_threads_give_the_serial_bits(count, two_threads, serial):
    with ThreadPoolExecutor(count) as executor:
        assert bits(SWEEP(executor=executor)) == serial


def test_processes_give_the_serial_bits(pool, serial, tmp_path):
    assert bits(SWEEP(executor=pool, path=tmp_path / "r.jsonl")) == serial
    assert bits(SWEEP(path=tmp_path / "r.jsonl")) == serial  # read back


def test_a_cluster_gives_the_serial_bits(address, serial, tmp_path):
    with workers(dask=address) as executor:
        assert bits(SWEEP(executor=executor, path=tmp_path / "r.jsonl")) == serial


def test_a_cluster_survives_a_worker_that_is_killed(address, tmp_path):
    cells = {"n": list(range(12)), "folder": [str(tmp_path)]}
    with workers(dask=address) as executor:
        rows = sweep(deadly, cells, seed=0, executor=executor, path=tmp_path / "r.jsonl")
    assert (tmp_path / "killed").exists()
    assert bits(rows) == bits(sweep(deadly, cells, seed=0))


def test_a_broken_pool_is_one_sentence_and_nothing_measured_is_lost(tmp_path):
    cells, path = {"n": list(range(12)), "folder": [str(tmp_path)]}, tmp_path / "r.jsonl"
    said = r"a worker ended before its cell was measured: \d+ of 12 results are kept in .*r.jsonl\."
    with pytest.raises(SweepError, match=said) as caught, workers(jobs=2) as executor:
        sweep(deadly, cells, seed=0, executor=executor, path=path)
    kept = path.read_bytes()
    count = kept.count(b"\n") - 1
    assert f"{count} of 12" in str(caught.value)
    assert bits(sweep(deadly, cells, seed=0, path=path)) == bits(sweep(deadly, cells, seed=0))
    assert path.read_bytes().startswith(kept)


# ------------------------------------------------------------------ law: several at once


@pytest.mark.parametrize("order", sorted(set(itertools.permutations("aabbcc"))))
def test_blocks_of_one_blas_thread_may_overlap_in_any_order(order, two_threads):
    blocks = {}
    for name in order:
        if name in blocks:
            blocks.pop(name).__exit__(None, None, None)
        else:
            blocks[name] = one_blas_thread()
            blocks[name].__enter__()
        assert bits_chapter.has_one_blas_thread() == bool(blocks)


def test_two_sweeps_at_once_give_the_serial_bits(two_threads, serial):
    with ThreadPoolExecutor(2) as both:
        found = [both.submit(SWEEP) for _ in range(4)]
        assert [bits(each.result()) for each in found] == 4 * [serial]
    assert not bits_chapter.has_one_blas_thread()


# ------------------------------------------------------------------ law: draws


@pytest.fixture(scope="module")
def whole():
    """Cells of a sweep, by their settings in any order."""
    rows = sweep(measured, {"n": [1, 3, 13, 16], "a": [0, 0.5, 2]}, seed=0, repeats=3)
    return {frozenset(cell.items()): bits(found) for cell, found in rows}


@given(
    st.permutations([13, 3, 16, 1]), st.permutations([0.5, 2, 0]), st.integers(1, 3), st.booleans()
)
@settings(max_examples=10)
def test_a_cell_does_not_depend_on_the_others(whole, n, a, repeats, turned):
    chosen = {"a": a[:2], "n": n[:2]} if turned else {"n": n[:1], "a": a}
    rows = sweep(measured, chosen, seed=0, repeats=repeats)
    assert [bits(found) for _, found in rows] == [
        whole[frozenset(cell.items())] for cell, _ in rows
    ]


def first_draw(seed=0, paired=(), **cell):
    return generator(cell, seed=seed, paired=paired).random()


def test_every_cell_and_every_seed_has_draws_of_its_own():
    cells = itertools.product(range(9), [0.0, 0.5, "SGD", None, True], range(3), [0, 1, 2**70])
    drawn = {first_draw(seed, n=n, a=a, repeat=repeat) for n, a, repeat, seed in cells}
    assert len(drawn) == 9 * 5 * 3 * 3


def test_paired_cells_see_the_same_draws_and_so_do_equal_numbers():
    assert first_draw(n=3, a=0, paired=["a"]) == first_draw(n=3, a=1, paired=["a"])
    assert first_draw(n=3, a=0, paired=["a"]) != first_draw(n=4, a=0, paired=["a"])
    assert first_draw(n=3, a=0) != first_draw(n=3, a=1)
    assert first_draw(n=3, a=1) == first_draw(n=3.0, a=1.0)
    ours, numpys = (sweep(measured, {"n": n}, seed=0) for n in ([1, 3], np.array([1, 3])))
    assert bits(ours) == bits(numpys)


PAIRED = {
    "list": lambda: ["n", "a"],
    "tuple": lambda: ("a", "n"),
    "set": lambda: {"n", "a"},
    "keys": lambda: {"n": 0, "a": 0}.keys(),
    "generator": lambda: (name for name in ["n", "a"]),
    "repeated": lambda: ["n", "a", "n"],
}


@pytest.mark.parametrize("kind", PAIRED)
def test_the_names_of_paired_settings_may_come_in_any_form(kind, tmp_path):
    path, cells = tmp_path / "r.jsonl", {"n": [1, 3], "a": [0, 1]}
    wanted = sweep(measured, cells, seed=0, paired=["a", "n"], path=path)
    found = sweep(measured, cells, seed=0, paired=PAIRED[kind]())
    assert bits(found) == bits(wanted) != bits(sweep(measured, cells, seed=0))
    told = Told()
    sweep(measured, cells, seed=0, paired=PAIRED[kind](), path=path, shown=told)  # the same sweep
    assert told == [(4, 4)]
    drawn = generator({"n": 1, "a": 0, "repeat": 0}, seed=0, paired=PAIRED[kind]())
    assert drawn.random() == generator({"repeat": 0}, seed=0).random()


def test_numpys_integers_are_integers(tmp_path):
    one, other = (
        sweep(measured, {"n": [1]}, seed=kind(3), repeats=kind(2), path=tmp_path / "r.jsonl")
        for kind in (int, np.int64)
    )
    assert bits(one) == bits(other)
    assert bits(one) == bits(sweep(measured, {"n": [1]}, seed=np.uint8(3), repeats=2))


# ------------------------------------------------------------------ stopping


class Told(list):
    """What a sweep tells of its progress; the third result presses Ctrl-C."""

    def __init__(self, stops=()):
        self.stops = stops

    def __call__(self, done, cells):
        self.append((done, cells))
        if done in self.stops:
            signal.raise_signal(signal.SIGINT)


@pytest.fixture
def ctrl_c_is_heard():
    """Whoever runs the tests behind `&` ignores SIGINT, and hands that on."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c_is_heard")
@pytest.mark.parametrize("kind", ["serial", "threads", "processes"])
def test_ctrl_c_is_one_sentence_and_nothing_measured_is_lost(kind, pool, tmp_path):
    path, told = tmp_path / "r.jsonl", Told(stops=[3])
    cells = {"n": list(range(20)), "folder": [str(tmp_path)], "seconds": [0.03]}
    with contextlib.ExitStack() as stack:
        executor = {"serial": None, "processes": pool}.get(kind)
        if kind == "threads":
            executor = stack.enter_context(ThreadPoolExecutor(2))
        said = r"the sweep was stopped: \d+ of 20 results are kept in .*l. Run the same command to "
        with pytest.raises(KeyboardInterrupt, match=said) as caught:
            sweep(visited, cells, seed=0, executor=executor, path=path, shown=told)
    kept = path.read_bytes().count(b"\n") - 1
    assert 3 <= kept <= 6 and f"stopped: {kept} of 20" in str(caught.value)
    assert len(list(tmp_path.iterdir())) < 12  # what had not begun did not begin
    again = Told()
    sweep(visited, cells, seed=0, path=path, shown=again)
    assert again == [(done, 20) for done in range(kept, 21)]


def pids(folder):
    """The processes that visited a folder."""
    return {int(each.name.partition(".")[2]) for each in folder.glob("[0-9]*.[0-9]*")}


def alive(pid):
    """Whether a process runs. (A dead one whose parent has not asked for it is a zombie.)"""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def until(is_so, seconds=20):
    """Wait until something is so."""
    end = time.monotonic() + seconds
    while not is_so() and time.monotonic() < end:
        time.sleep(0.02)
    assert is_so()


@pytest.mark.usefixtures("ctrl_c_is_heard")
def test_processes_end_in_the_middle_of_a_cell_when_the_program_stops(tmp_path):
    cells = {"n": list(range(9)), "folder": [str(tmp_path)], "seconds": [60.0]}

    def press():
        until(lambda: len(pids(tmp_path)) == 2)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    thread = threading.Thread(target=press)
    thread.start()
    with pytest.raises(KeyboardInterrupt, match="0 of 9 results are lost"), workers(2) as executor:
        sweep(visited, cells, seed=0, executor=executor)
    thread.join()
    assert not any(map(alive, pids(tmp_path)))


KILLED = """
import sys
from attention.laboratory.sweeps import sweep
from attention.laboratory.workers import _hand_over, workers
from tests.laboratory_cells import visited

with workers(jobs=2) as executor:
    cells = {"n": list(range(20)), "folder": [sys.argv[1]], "seconds": [0.1]}
    sweep(visited, cells, seed=0, executor=executor, path=sys.argv[1] + "/r.jsonl")
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")
def test_a_program_that_is_killed_takes_its_processes_along_and_is_continued(tmp_path):
    program = subprocess.Popen([sys.executable, "-c", KILLED, tmp_path], cwd=ROOT)
    path = tmp_path / "r.jsonl"
    until(lambda: path.exists() and path.read_bytes().count(b"\n") > 5)
    assert all(map(alive, pids(tmp_path))) and len(pids(tmp_path)) == 2
    program.kill()
    program.wait()
    until(lambda: not any(map(alive, pids(tmp_path))))
    kept, told = path.read_bytes().rpartition(b"\n")[0], Told()
    cells = {"n": list(range(20)), "folder": [str(tmp_path)], "seconds": [0.1]}
    rows = sweep(visited, cells, seed=0, path=path, shown=told)
    assert told[0] == (kept.count(b"\n"), 20) and path.read_bytes().startswith(kept)
    fresh = [as_text(measured(cell["n"], rng=generator(cell, seed=0))) for cell, _ in rows]
    assert [as_text(found) for _, found in rows] == fresh


@pytest.mark.usefixtures("ctrl_c_is_heard")
def test_a_frozen_process_is_waited_for_until_ctrl_c(tmp_path):
    begin, main = time.monotonic(), threading.main_thread().ident

    def shown(done, _):
        if done == 2:
            os.kill(min(pids(tmp_path)), signal.SIGSTOP)
            threading.Timer(0.2, signal.pthread_kill, (main, signal.SIGINT)).start()

    cells = {"n": list(range(12)), "folder": [str(tmp_path)], "seconds": [0.05]}
    with pytest.raises(KeyboardInterrupt, match="^the sweep was stopped: "), workers(2) as executor:
        sweep(visited, cells, seed=0, executor=executor, shown=shown)
    assert not any(map(alive, pids(tmp_path))) and time.monotonic() - begin < 20


STOPPED = """
import sys
from attention.laboratory.sweeps import progress, sweep
from attention.laboratory.workers import _hand_over, workers
from tests.laboratory_cells import visited

try:
    print("begin", flush=True)
    with workers(jobs=2) as executor, progress("cells") as shown:
        cells = {"n": list(range(200)), "folder": [sys.argv[1]], "seconds": [0.1]}
        sweep(visited, cells, seed=0, executor=executor, shown=shown)
except KeyboardInterrupt as error:
    print(error, flush=True)
"""


@pytest.mark.usefixtures("ctrl_c_is_heard")
def test_ctrl_c_at_any_moment_leaves_no_traceback(tmp_path):
    """In a terminal it reaches the program and its processes, once or several times."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "cwd": ROOT}
    for moment, gaps in [(0.02, [0.02]), (0.25, [0.1, 0.1])]:
        with subprocess.Popen(
            [sys.executable, "-c", STOPPED, tmp_path], start_new_session=True, **pipes
        ) as program:
            assert program.stdout.readline() == "begin\n"
            for pause in [moment, *gaps]:
                time.sleep(pause)
                os.killpg(program.pid, signal.SIGINT)
            said, errors = program.communicate(timeout=20)
        assert "Traceback" not in errors and "Error" not in errors
        assert said in ("", "\n") or said.startswith("the sweep was stopped: ")
        assert not any(map(alive, pids(tmp_path)))


# ------------------------------------------------------------------ refusal: a cell


PLACES = ["serial", "threads", "processes", "cluster"]


@contextlib.contextmanager
def executors(place, request):
    """Each kind of executor; the pool and the cluster serve all tests."""
    with contextlib.ExitStack() as stack:
        if place == "threads":
            yield stack.enter_context(ThreadPoolExecutor(2))
        elif place == "cluster":
            yield stack.enter_context(workers(dask=request.getfixturevalue("address")))
        else:
            yield request.getfixturevalue("pool") if place == "processes" else None


def settles(executor, serial):
    """Whether the executor can compute the next sweep."""
    return bits(SWEEP(executor=executor)) == serial


SAID = {
    "deep": "maximum recursion depth exceeded",
    "type": "wrong should return Found, as its annotation says: got 3.0",
    "unsendable": "2 is too many",
    "untellable": "Untellable: (its message cannot be read)",
    "exit": "SystemExit: 7",
    "generator": "GeneratorExit: of a generator",
    "base": "Base: of all",
    "ctrl-c": "KeyboardInterrupt: from inside",
    "long": "ValueError: long long",
    "group": "both (2 sub-exceptions)",
}


@pytest.mark.parametrize("place", PLACES)
def test_every_error_inside_a_cell_names_the_cell_and_the_next_sweep_is_computed(
    place, request, serial, tmp_path
):
    with executors(place, request) as executor:
        for kind in [*WRONG, "deep", "type"]:
            if place == "serial" and kind == "ctrl-c":  # nobody can tell it from a real one
                continue
            path, cells = tmp_path / f"{kind}.jsonl", {"n": [1, 2, 3], "kind": [kind]}
            with pytest.raises(Exception) as caught:
                sweep(wrong, cells, seed=0, executor=executor, path=path)
            error = caught.value
            said = SAID.get(kind) or str(WRONG[kind]())
            assert said in str(error) and len(str(error)) < 1200
            kept = path.read_bytes().count(b"\n") - 1
            assert error.__notes__ == [
                f"in the cell n=2, kind='{kind}', repeat=0",
                f"{kept} of 3 results are kept in {path}",
            ]
            assert kept >= (place == "serial")
            if kind not in SAID:
                assert type(error) is type(WRONG[kind]())
            if place != "serial" and kind != "type":  # the line of the cell is shown
                assert "laboratory_cells.py" in str(error.__cause__)
        assert settles(executor, serial)


@pytest.mark.parametrize("place", ["processes", "cluster"])
def test_a_measurement_that_only_the_program_can_import_is_one_sentence(
    place, request, serial, monkeypatch, tmp_path
):
    file = tmp_path / "cells_of_mine.py"
    file.write_text(Path(laboratory_cells.__file__).read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    measure = importlib.import_module("cells_of_mine").measured
    sys.path.remove(str(tmp_path))  # a process of the pool would look there too
    with (
        executors(place, request) as executor,
        pytest.raises(SweepError, match="^a worker cannot import cells_of_mine: 0 of 1 results "),
    ):
        sweep(measure, {"n": [1]}, seed=0, executor=executor)
    with executors(place, request) as executor:
        assert settles(executor, serial)


def test_a_cell_that_changes_the_number_of_threads_is_refused():
    with (
        threadpoolctl.threadpool_limits(1, user_api="blas"),
        pytest.raises(SweepError, match="the number of BLAS threads changed while a cell"),
    ):
        sweep(wrong, {"n": [1, 2], "kind": ["threads"]}, seed=0)


def test_a_worker_with_other_code_is_refused(monkeypatch):
    here = facts(measured.__module__)
    sweeps._measured(measured, 0, [], here, {"n": 1, "repeat": 0})
    other = here | {"NumPy": "1.26.4"}
    said = f"^a worker has imported NumPy {np.__version__} and not 1.26.4: start the workers again$"
    with pytest.raises(SweepError, match=said):
        sweeps._measured(measured, 0, [], other, {"n": 1, "repeat": 0})


def test_code_that_changed_since_it_was_imported_is_refused(tmp_path, monkeypatch):
    file = tmp_path / "changing_cells.py"
    file.write_text(Path(laboratory_cells.__file__).read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    measure = importlib.import_module("changing_cells").measured
    sweep(measure, {"n": [1]}, seed=0)
    file.write_text(file.read_text(encoding="utf-8") + "# later\n", encoding="utf-8")
    said = "^a source file of changing_cells has changed since this program imported it: start the"
    with pytest.raises(SweepError, match=said):
        sweep(measure, {"n": [1]}, seed=0)


# ------------------------------------------------------------------ refusal: before anything starts

inner = {}
exec("def local(n, *, rng): ...", {"__name__": "__main__"}, inner)
BY_NAME = "another process must be able to import what a sweep measures: write {} as a function of"


@pytest.mark.parametrize(
    ("measure", "said"),
    [
        (lambda n, *, rng: None, BY_NAME.format("<lambda>")),
        (inner["local"], BY_NAME.format("local")),
        (functools.partial(measured, a=1), BY_NAME.split("{")[0] + "functools.partial("),
        (untold, "the return annotation of untold must be a dataclass: got None"),
    ],
)
def test_a_measurement_that_cannot_be_sent_or_read_back_is_refused(measure, said, tmp_path):
    with pytest.raises(TypeError) as caught:
        sweep(measure, {"n": [1]}, seed=0, path=tmp_path / "r.jsonl")
    assert str(caught.value).startswith(said) and not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"settings": {"n": 3}}, "n must be a list of values: got 3"),
        ({"settings": {"n": "SGD"}}, "n must be a list of values: got 'SGD'"),
        (
            {"settings": {"n": [1, None, abs]}},
            "a value of n must be a number, text, True, False or",
        ),
        ({"settings": {"n": []}}, "n must have values, each once: got []"),
        ({"settings": {"n": [1, 2, 1]}}, "n must have values, each once: got [1, 2, 1]"),
        ({"settings": {"a": [1]}}, "measured does not take these settings: missing a required arg"),
        (
            {"settings": {"n": [1], "b": [1]}},
            "measured does not take these settings: got an unexpec",
        ),
        (
            {"settings": {"n": [1], "rng": [1]}},
            "a setting cannot be called rng, which is the sweep",
        ),
        (
            {"settings": {"n": [1], "repeat": [1]}},
            "a setting cannot be called repeat, which is the",
        ),
        ({"seed": -1}, "the seed must be an integer of 0 or more: got -1"),
        ({"seed": 0.5}, "the seed must be an integer of 0 or more: got 0.5"),
        ({"repeats": 0}, "repeats must be an integer of 1 or more: got 0"),
        ({"seed": True}, "the seed must be an integer of 0 or more: got True"),
        ({"repeats": True}, "repeats must be an integer of 1 or more: got True"),
        ({"paired": ["b"]}, "paired must name settings: got b"),
        ({"paired": "n"}, "paired must be a list of names: got 'n'"),
        (
            {"settings": {"n": {3}}},
            "n must be a list of values, because a set has no order: got {3",
        ),
        ({"settings": {"n": b"SGD"}}, "n must be a list of values: got b'SGD'"),
    ],
)
def test_a_sweep_that_makes_no_sense_is_refused(changed, said, tmp_path):
    arguments = {"settings": {"n": [1]}, "seed": 0, "path": tmp_path / "r.jsonl"} | changed
    with pytest.raises((TypeError, ValueError)) as caught:
        sweep(measured, **arguments)
    assert str(caught.value).startswith(said) and not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"jobs": 0}, "the number of jobs must be from 1 to [0-9]+, 4 for each processor: got 0"),
        ({"jobs": 9999}, "the number of jobs must be from 1 to [0-9]+, 4 for each pro.*: got 9999"),
        ({"jobs": 2, "dask": "tcp://a:1"}, "choose 2 jobs on this machine or the Dask cluster at"),
    ],
)
def test_workers_that_make_no_sense_are_refused(options, said):
    with pytest.raises(SweepError, match=f"^{said}"), workers(**options):
        pass


def test_a_program_that_every_worker_would_start_again_is_refused(monkeypatch):
    """Python marks a process that is importing the program's file for a worker."""
    monkeypatch.setattr(multiprocessing.current_process(), "_inheriting", True, raising=False)
    with pytest.raises(SweepError, match="under if __name__ == .__main__.:$"), workers(2):
        pass


def test_a_program_that_is_not_a_file_is_refused(monkeypatch):
    """As in `cat program.py | python -`, whose name is <stdin>."""
    monkeypatch.setattr(sys.modules["__main__"], "__file__", "/nowhere/<stdin>")
    said = "^every process imports the program's file, and there is no /nowhere/<stdin>: write the"
    with pytest.raises(SweepError, match=said), workers(2):
        pass


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:{port}", "nonsense", ""])
def test_an_address_without_a_cluster_is_one_sentence(address, monkeypatch):
    needed("distributed")
    monkeypatch.setattr(workers_chapter, "PATIENCE", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:  # it listens, and never answers
        address = address.format(port=silent.getsockname()[1])
        with pytest.raises(
            SweepError, match=f"^there is no Dask cluster at '{address}': "
        ) as caught:
            workers(dask=address).__enter__()
    assert "\n" not in str(caught.value)


def test_a_cluster_without_workers_is_one_sentence(monkeypatch):
    distributed = needed("distributed")
    monkeypatch.setattr(workers_chapter, "PATIENCE", 0.5)
    with distributed.LocalCluster(n_workers=0, dashboard_address=":0") as cluster:
        address = cluster.scheduler_address
        with pytest.raises(SweepError, match=f"^the Dask cluster at {address} has no workers$"):
            workers(dask=address).__enter__()


def test_a_cluster_that_loses_all_its_workers_is_one_sentence(monkeypatch, tmp_path):
    distributed = needed("distributed")
    monkeypatch.setattr(workers_chapter, "ABSENCE", 0.5)
    path = tmp_path / "r.jsonl"
    options = {"n_workers": 1, "threads_per_worker": 1, "processes": False}
    with distributed.LocalCluster(dashboard_address=":0", **options) as cluster:

        def shown(done, _):
            if done == 2:
                cluster.scale(0)

        cells = {"n": list(range(60)), "folder": [str(tmp_path)], "seconds": [0.05]}
        said = "^for [0-9]+ s the Dask cluster has no workers: [0-9]+ of 60 results are kept in"
        with pytest.raises(SweepError, match=said), workers(dask=cluster.scheduler_address) as pool:
            sweep(visited, cells, seed=0, executor=pool, path=path, shown=shown)
    assert 3 <= path.read_bytes().count(b"\n") < 60


CLUSTER = """
import sys
from distributed import LocalCluster

options = {"protocol": "tcp://", "host": "127.0.0.1", "dashboard_address": ":0"}
with LocalCluster(1, threads_per_worker=1, processes=False, silence_logs=50, **options) as cluster:
    print(cluster.scheduler_address, flush=True)
    sys.stdin.read()
"""


def test_a_scheduler_that_is_frozen_or_killed_is_one_sentence(monkeypatch, tmp_path, capfd):
    needed("distributed")
    monkeypatch.setattr(workers_chapter, "ABSENCE", 0.5)
    monkeypatch.setattr(workers_chapter, "PATIENCE", 0.5)
    cells = {"n": list(range(60)), "folder": [str(tmp_path)], "seconds": [0.02]}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    path, told = tmp_path / "r.jsonl", Told()
    with subprocess.Popen([sys.executable, "-c", CLUSTER], **pipes) as scheduler:
        address = scheduler.stdout.readline().strip()
        for number, stops, said in [
            (signal.SIGSTOP, 2, "for [0-9]+ s the Dask cluster does not answer"),
            (signal.SIGKILL, 9, "the connection to the workers is lost"),
        ]:

            def shown(done, _, number=number, stops=stops):
                told.append((done, 60))
                if done == stops:
                    scheduler.send_signal(number)

            begin = time.monotonic()
            said = f"^{said}: [0-9]+ of 60 results are kept in "
            with pytest.raises(SweepError, match=said), workers(dask=address) as executor:
                sweep(visited, cells, seed=0, executor=executor, path=path, shown=shown)
            assert time.monotonic() - begin < 15
            scheduler.send_signal(signal.SIGCONT)
    assert told[-1][0] >= 9  # after the pause the same cluster goes on
    assert capfd.readouterr().err == ""


class Silent:
    """A future of Dask whose answer never comes, since its client has been closed."""

    status = "finished"

    def result(self, timeout=None):
        threading.Event().wait(timeout)
        raise TimeoutError


def test_nobody_waits_for_an_answer_that_a_sweep_has_given_up():
    ours = Future()
    asks = threading.Thread(target=_hand_over, args=(ours, Silent()), daemon=True)
    asks.start()
    asks.join(1.5)
    assert asks.is_alive()  # while the sweep waits for it, it is asked for again
    ours.cancel()
    asks.join(5)
    assert not asks.is_alive()


def test_an_answer_that_is_a_timeout_of_its_cell_is_handed_over():
    ours, theirs = Future(), Silent()
    theirs.status = "error"
    _hand_over(ours, theirs)
    assert isinstance(ours.exception(), TimeoutError)


def test_after_a_sweep_that_ended_at_any_moment_the_next_one_gets_its_answers(tmp_path):
    distributed = needed("distributed")
    cells = {"n": list(range(40)), "folder": [str(tmp_path)], "seconds": [0.0]}
    options = {"n_workers": 1, "threads_per_worker": 1, "processes": False}
    with distributed.LocalCluster(dashboard_address=":0", **options) as cluster:
        address = cluster.scheduler_address
        for stops in (1, 2, 3, 5, 8, 13, 21, 34):

            def shown(done, _, stops=stops):
                if done == stops:
                    raise KeyError(stops)

            with pytest.raises(KeyError), workers(dask=address) as pool:
                sweep(visited, cells, seed=0, executor=pool, shown=shown)
        with workers(dask=address) as pool:
            assert len(sweep(visited, cells, seed=0, executor=pool)) == 40


def test_dask_gives_the_cells_of_a_frozen_worker_to_another_after_five_minutes():
    needed("distributed")
    assert needed("dask").config.get("distributed.scheduler.worker-ttl") == "5 minutes"


def test_without_the_extra_a_cluster_is_refused_in_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    said = r'^a Dask cluster needs dask: pip install -e "\.\[cluster\]"$'
    with pytest.raises(ImportError, match=said):
        workers(dask="tcp://127.0.0.1:8786").__enter__()


# ------------------------------------------------------------------ one thread without the extra


def test_without_the_extra_blas_itself_is_asked(monkeypatch, tmp_path):
    if bits_chapter._openblas_threads() is None:
        pytest.skip("NumPy's BLAS is not OpenBLAS")
    with threadpoolctl.threadpool_limits(1, user_api="blas"), monkeypatch.context() as patch:
        patch.setitem(sys.modules, "threadpoolctl", None)
        assert len(sweep(measured, {"n": [1]}, seed=0)) == 1
    with threadpoolctl.threadpool_limits(2, user_api="blas"), monkeypatch.context() as patch:
        patch.setitem(sys.modules, "threadpoolctl", None)
        patch.setenv("OPENBLAS_NUM_THREADS", "1")  # too late: OpenBLAS has read it
        said = r'must be 1: pip install -e "\.\[cluster\]", or set OPENBLAS_NUM_THREADS=1 before Py'
        with pytest.raises(SweepError, match=said):
            sweep(measured, {"n": [1]}, seed=0, path=tmp_path / "r.jsonl")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("blas", "variable"),
    [("accelerate", "VECLIB_MAXIMUM_THREADS"), ("mkl-sdl", "MKL_NUM_THREADS")],
)
def test_a_blas_that_cannot_be_asked_must_be_told_by_its_variable(blas, variable, monkeypatch):
    monkeypatch.setattr(bits_chapter, "_blas", lambda: blas)
    monkeypatch.setattr(bits_chapter, "_openblas_threads", lambda: None)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")  # another library's
    if blas != "accelerate":  # (threadpoolctl does not know that one)
        monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    monkeypatch.delenv(variable, raising=False)
    with pytest.raises(SweepError, match=f"or set {variable}=1 before"), one_blas_thread():
        pass
    monkeypatch.setenv(variable, "1")
    with one_blas_thread():
        pass


def test_the_kernel_depends_on_the_processor():
    """Chapter 16.9 says so: OpenBLAS is told that the processor is another one."""
    kernels = {each.get("architecture") for each in threadpoolctl.threadpool_info()}
    if platform.machine() not in ("x86_64", "AMD64") or kernels <= {None, "Nehalem"}:
        pytest.skip("needs OpenBLAS on a processor that is newer than Nehalem")
    code = (
        "import numpy as np\nx = np.random.default_rng(0).random((64, 64))\n"
        "print(*(x @ x.T).ravel().tolist())"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, env=os.environ | more
        ).stdout
        for more in ({}, {"OPENBLAS_CORETYPE": "Nehalem"})
    }
    assert len(found) == 2


# ------------------------------------------------------------------ progress, and on paper


def test_a_bar_shows_what_is_done_and_without_tqdm_nothing(monkeypatch, capsys, tmp_path):
    for n in ([1, 2], [1, 2]):
        with progress("cells") as shown:
            sweep(measured, {"n": n}, seed=0, path=tmp_path / "r.jsonl", shown=shown)
        assert "cells: 100%" in (said := capsys.readouterr().err) and "2/2" in said
    for missing in [(sys.modules, "tqdm"), (vars(sys), "stderr")]:
        with monkeypatch.context() as patch, progress("cells") as shown:
            patch.setitem(*missing, None)
            with progress("cells") as shown:
                sweep(measured, {"n": [1, 2]}, seed=0, shown=shown)
        assert "2/2" not in capsys.readouterr().err


def seconds(durations, count):
    """How long `count` workers take, each of which takes the next cell when it is free."""
    free = [0.0] * count
    for duration in durations:
        heapq.heappush(free, heapq.heappop(free) + duration)
    return max(free)


def test_what_is_said_of_many_workers_is_what_a_simulation_finds():
    cells = 3 * 8 * 5 * 5 * 2
    quantiles = (np.arange(cells) + 0.5) / cells
    slow_last = 10 * quantiles ** (7 / 3)  # the mean is 10 / (7/3 + 1)
    slow_first, shuffled = slow_last[::-1], np.random.default_rng(0).permutation(slow_last)
    assert cells == 1200 and seconds(shuffled, 1) == pytest.approx(3600)
    assert slow_last.max() == pytest.approx(10, rel=0.01)
    assert seconds(shuffled, 2) == pytest.approx(1800, abs=10)
    assert 36 <= seconds(slow_first, 100) < 37
    assert 40 < seconds(slow_last, 100) <= 46
    assert seconds(slow_first, 360) < 1.1 * 10
    assert seconds(slow_last, 10_000) == slow_last.max()
    assert 10_000 // (cells // 5) == 41


def test_what_is_sent_is_small():
    cell = {"optimizer": "SGD", "a": 0.5, "d_k": 512, "rate": 0.01, "repeat": 4}
    here = facts(measured.__module__)
    call = functools.partial(sweeps._measured, measured, 0, ["a", "rate"], here)
    task = (pickle.loads, pickle.dumps(bits_chapter.Call(call, cell)))
    answer = sweeps._measured(measured, 0, [], here, {"n": 3, "repeat": 0})
    assert 200 < len(pickle.dumps(task)) < 700
    assert 1200 * (len(pickle.dumps(task)) + len(answer)) < 1.3e6
