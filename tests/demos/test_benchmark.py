"""The benchmark: its contestants compute the same, and what is wrong is not timed."""

import gc
import importlib
import importlib.util
import json
import re

import numpy as np
import pytest

from demos.speed.bench import machine, race, report
from demos.speed.bench.by_hand import Attention, product
from demos.speed.bench.rows import NAMES, ROWS, given, row_named
from demos.speed.bench.worker import Worker
from minigrad.runs import memory
from tests.demos.running import ROOT, assert_light, demo_here, python

INSTALLED = [name for name in race.INSTALL if importlib.util.find_spec(name)]
CONTESTANTS = ["hand", "minigrad", *(["torch"] if "torch" in INSTALLED else [])]


def module(contestant):
    return importlib.import_module(f"demos.speed.bench.with_{contestant}")


def results(row, against=()):
    """What each contestant computes of a row with the sizes of --quick, in this process."""
    arrays = given(row, True, 0)
    return {
        name: module(contestant).PROGRAMS[row.kind][variant](row.quick, arrays)[1]()
        for name, (contestant, variant) in race.contestants(row, list(against)).items()
    }


# ------------------------------------------------------------------ value


@pytest.mark.parametrize("row", ROWS, ids=NAMES)
def test_all_contestants_of_a_row_compute_the_same_values_and_gradients(row):
    found = results(row, CONTESTANTS[2:])
    assert {"minigrad"} <= found.keys() and ("hand" in found or row.kind == "sums")
    assert not race.differences(found, 1e-5)
    if row.kind == "step":
        assert len(found["hand"]) == 1 + len(given(row, True, 0)) - 2  # losses and gradients
        assert np.diff(found["hand"]["losses"]).max() < 0


@pytest.mark.parametrize("contestant", [*CONTESTANTS[:2], *INSTALLED])
def test_the_table_of_programs_says_which_there_are(contestant):
    programs = {kind: tuple(each) for kind, each in module(contestant).PROGRAMS.items()}
    kinds = race.KINDS[contestant].split()
    assert {kind: race.variants(contestant, kind) for kind in kinds} == programs


def test_the_floor_is_six_products_for_attention_and_is_nobodys():
    row = row_named("attention-128")
    arrays = given(row, True, 0)
    found = module("hand").PROGRAMS["attention"]["floor"](row.quick, arrays)
    product.made = made = []
    module("hand").PROGRAMS["attention"][""](row.quick, arrays)[0]()
    product.made = None
    assert len(made) == 6 and found[1]() == {}
    assert found[0]() is None and race.contestants(row, [])["floor"] == ("hand", "floor")


def test_attention_by_hand_refuses_scores_that_could_overflow():
    shape = (1, 1, 3, 4)
    q = np.full(shape, 10, np.float32)
    with pytest.raises(ValueError, match="this program subtracts no maximum"):
        Attention(shape, causal=False).forward(q, q, q, np.empty_like(q))


# ------------------------------------------------------------------ what is wrong is not timed


class Planted:
    """A contestant whose numbers are given, and which counts how often it is timed."""

    def __init__(self, found, fails=()):
        self.found, self.fails, self.timed = found, fails, 0
        self.about = {"seconds": 0.01, "peak": 5}

    def prepare(self, row):
        if "prepare" in self.fails:
            raise race.Failed("RecursionError: too deep")
        return self.found

    def time(self, calls):
        self.timed += 1
        if "time" in self.fails:
            raise race.Failed("MemoryError: no more")
        return {"seconds": 0.01, "faults": 3}


GOOD = {"y": np.arange(6.0), "q": np.ones(6), "k_bias": np.zeros(6)}
WRONG = {
    "5 % in one gradient": (GOOD | {"q": GOOD["q"] * 1.05}, r"differ in q by 5\.0e-02 of its"),
    "one NaN": (GOOD | {"q": np.array([np.nan, 1, 1, 1, 1, 1])}, "differ in q by inf of its"),
    "a shape": (GOOD | {"q": np.ones((1, 6))}, r"ours: q is \(1, 6\), and \(6,\) by hand"),
    "a small gradient": (GOOD | {"k_bias": np.full(6, 0.01)}, "differ in k_bias by"),
    "no gradients": ({"y": GOOD["y"]}, "ours leaves out q, k_bias, which hand computes"),
    "one gradient more": (GOOD | {"v": np.ones(6)}, "hand leaves out v, which ours computes"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_row_with_wrong_numbers_is_reported_and_nobody_is_timed(what):
    wrong, said = WRONG[what]
    others = {"hand": Planted(GOOD), "ours": Planted(wrong), "floor": Planted({})}
    outcome = race.race(row_named("tiny"), others, rounds=3, turn=0.1)
    assert any(re.search(said, each) for each in outcome.wrong)
    assert not outcome.times and not any(each.timed for each in others.values())
    row = {"allocators": {"default": {"wrong": outcome.wrong, "times": {}, "failed": {}}}}
    assert report.table(row, "default").startswith(f"   WRONG, and not timed: {outcome.wrong[0]}")
    assert not report.right(row)


def test_rounding_is_not_wrong():
    near = {"y": GOOD["y"] * (1 + 1e-6), "q": GOOD["q"], "k_bias": np.full(6, 1e-8)}
    assert not race.differences({"hand": GOOD, "ours": near}, 1e-4)


@pytest.mark.parametrize("when", ["prepare", "time"])
def test_a_contestant_that_cannot_do_a_row_leaves_the_others_in_the_race(when):
    others = {"hand": Planted(GOOD), "ours": Planted(GOOD, fails=(when,))}
    outcome = race.race(row_named("tiny"), others, rounds=3, turn=0.1)
    assert list(outcome.times) == ["hand"] and list(outcome.failed) == ["ours"]
    assert outcome.times["hand"]["calls"] == 10 and others["hand"].timed == 6
    assert outcome.times["hand"]["rounds"] == [0.01] * 3 and outcome.times["hand"]["faults"] == 3
    outcomes = [{"wrong": [], "failed": {name: "MemoryError"}} for name in ("minigrad", "torch")]
    assert [report.right({"allocators": {"kept": each}}) for each in outcomes] == [False, True]


def test_a_process_that_is_killed_is_said_in_the_table_and_the_others_are_timed():
    row = row_named("tiny")
    with race.processes(row, [], seed=0, keep_memory=False, threads=1, quick=True) as found:
        found["minigrad"].process.kill()
        found["minigrad"].process.wait()
        outcome = race.race(row, found, rounds=2, turn=0.001)
    assert list(outcome.times) == ["hand"]
    assert outcome.failed == {"minigrad": "its process ended with -9"}


def test_the_collector_is_off_only_where_the_row_says_so():
    worker, seen = Worker("hand", 1), []
    worker.step = lambda: seen.append(gc.isenabled())
    for worker.collector in (True, False, True):
        worker.time(1)
    assert seen == [True, False, True] and gc.isenabled()


# ------------------------------------------------------------------ the demo


TWO = (
    *("benchmark", "--quick", "--json", "{}/all.json", "--markdown"),
    *("--against", "--rows", "deep", "attention-causal"),
)
ONE = ("benchmark", "--quick", "--rows", "tiny", "--allocator", "kept")


@pytest.fixture
def quick(finished):
    """Two rows without PyTorch: the folder, what it printed, and its data."""
    folder, printed = finished(*TWO)
    return folder, printed, json.loads((folder / "all.json").read_text(encoding="utf-8"))


def test_the_data_has_times_faults_memory_ratios_machine_and_versions(quick):
    folder, printed, data = quick
    assert {path.name for path in folder.iterdir()} == {"all.json", "speed.png", "speed.svg"}
    assert_light(folder)
    assert (data["threads"], data["rounds"], data["quick"], data["against"]) == (1, 2, True, [])
    assert data["machine"].keys() >= {"processor", "cores", "C library", "Python", "NumPy"}
    assert [row["name"] for row in data["rows"]] == ["attention-causal", "deep"]
    four = {"hand", "floor", "minigrad", "minigrad fused"}
    for row, names in zip(data["rows"], (four, {"minigrad"}), strict=True):
        assert list(row["allocators"]) == ["default", "kept"]
        for outcome in row["allocators"].values():
            times = outcome["times"]
            assert times.keys() == names and not outcome["wrong"] and not outcome["failed"]
            for name, found in times.items():
                assert 0 < found["minimum"] <= found["median"] and len(found["rounds"]) == 2
                assert found.keys() >= {"faults", "peak", "ratios", "calls"}
                for base, ratio in found["ratios"].items():
                    pairs = zip(found["rounds"], times[base]["rounds"], strict=True)
                    assert ratio == pytest.approx(np.median([a / b for a, b in pairs]))
                assert found["ratios"].keys() == (names & {"hand", "floor"}) - {name}
    assert "1 of 1 checks passed" in printed
    assert data["allocators"]["kept"].startswith("freed memory is ")
    if importlib.util.find_spec("threadpoolctl"):
        assert all(data["blas"][0][word] for word in ("library", "kernel", "threads"))


def test_the_markdown_table_is_whole_and_comes_from_the_file_as_well(quick, tmp_path):
    folder, printed, data = quick
    lines = [line for line in printed.splitlines() if line.startswith("|")]
    assert len(lines) == 2 + 2 * 2 and len({line.count("|") for line in lines}) == 1
    assert re.search(r"^\| attention-causal \|.*\| default \| \S+ ms \| \S+ \|", printed, re.M)
    assert data["date"] in printed.rpartition("Medians. ")[2]
    shown = ("benchmark", "--from", folder / "all.json", "--out", tmp_path)
    again = demo_here(*shown, "--markdown")
    assert again.returncode == 0, again.stderr
    assert report.markdown(data) in again.stdout and (tmp_path / "speed.png").exists()
    refused = demo_here(*shown, "--rows", "toy")
    assert refused.returncode == 2 and refused.stderr.startswith("--from shows what was measured")
    (tmp_path / "a.json").write_text('{"rows": []}')
    refused = demo_here(*shown[:2], tmp_path / "a.json", *shown[3:])
    assert refused.returncode == 2 and "was not written by --json of this version" in refused.stderr


def test_pytorch_takes_part_if_it_is_installed(finished):
    _, printed = finished(*ONE)
    torch = "torch" in INSTALLED
    assert bool(re.search(r"^   torch  .*", printed, re.MULTILINE)) == torch
    assert printed.startswith("PyTorch is not installed.") == (not torch)
    assert printed.lstrip().startswith("(--quick: tiny sizes") == torch
    assert "tiny: 100 elementwise products" in printed  # what was measured


# ------------------------------------------------------------------ refusal


def test_a_missing_framework_is_one_sentence_with_its_command(tmp_path):
    code = (
        "import sys, runpy; sys.modules['mygrad'] = None; "
        f"sys.argv = ['demos', 'benchmark', '--against', 'mygrad', '--out', {str(tmp_path)!r}];"
        "runpy.run_module('demos', run_name='__main__')"
    )
    done = python("-c", code)
    said = "mygrad is not installed: pip install mygrad\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", said)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--threads", 0], "--threads and --rounds must be 1 or larger: got 0 and 9\n"),
        (["--json", "{}/none/a.json"], "there is no folder {}/none to write a.json to\n"),
        (["--from", "{}/none.json"], "{}/none.json cannot be read: "),
    ],
)
def test_an_impossible_option_is_one_sentence(words, said, tmp_path):
    words = [str(word).format(tmp_path) for word in words]
    words += [] if "--from" in words else ["--against"]
    done = demo_here("benchmark", "--out", tmp_path / "out", *words)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith(said.format(tmp_path)) and done.stderr.count("\n") == 1


def test_a_kernel_that_the_environment_fixes_is_warned_of(monkeypatch):
    monkeypatch.delenv("OPENBLAS_CORETYPE", raising=False)
    assert machine.warning() == ""
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    assert machine.warning().startswith("OPENBLAS_CORETYPE=Haswell is set: it fixes NumPy's kernel")


MEASURED = (ROOT / "demos" / "speed" / "measured.md").read_text(encoding="utf-8")


def test_the_table_that_is_kept_has_every_row_once_for_each_allocator():
    rows = re.findall(r"^\| ([\w-]+) \| .* \| (default|kept) \|", MEASURED, re.MULTILINE)
    assert rows == [(name, allocator) for name in NAMES for allocator in ("default", "kept")]


def test_what_is_said_of_speed_elsewhere_is_in_the_table_that_is_kept():
    rows = [[x.strip() for x in line.split("|")[1:-1]] for line in MEASURED.splitlines()]
    cells = {(row[0], row[2]): row[3:] for row in rows if len(row) == 12}
    gpt, blocks, tiny = (cells[n, "default"] for n in ("char-gpt", "attention-512", "tiny"))
    said = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    found = re.search(
        r"GPT takes (\S+) times as long as PyTorch's, and (\S+) times .*? by hand in NumPy. "
        r"Attention in blocks .*? takes (\S+) times .*? small operation (\S+) times",
        said,
    )
    assert found.groups() == (gpt[2], gpt[1], blocks[7], tiny[2])
    times = re.search(r"takes (\d+) and\s(\d+) ms", memory.__doc__).groups()
    assert [f"{each} ms" for each in times] == [gpt[0], cells["char-gpt", "kept"][0]]
