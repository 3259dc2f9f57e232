"""The benchmark: its contestants compute the same, and what is wrong is not timed."""

import gc
import importlib.util
import json
import re
from dataclasses import replace

import numpy as np
import pytest

from demos.speed.bench import race
from demos.speed.bench.by_hand import Attention, product
from demos.speed.bench.programs import contestants, program
from demos.speed.bench.report import table
from demos.speed.bench.rows import NAMES, ROWS, given
from minigrad.runs import memory
from tests.demos.running import ROOT, assert_light, demo_here, python

TORCH = ["torch"] if importlib.util.find_spec("torch") else []
BY_NAME = dict(zip(NAMES, ROWS, strict=True))


# ------------------------------------------------------------------ value


@pytest.mark.parametrize("row", ROWS, ids=NAMES)
def test_all_contestants_of_a_row_compute_the_same_values_and_gradients(row):
    arrays, names = given(row, True, 0), contestants(row, TORCH)
    found = {name: program(name, row, True, arrays)[1]() for name in names}
    assert "minigrad" in found
    assert ("hand" in found) == (row.kind in ("products", "attention", "step"))
    assert {name for name in found if not found[name]} <= {"floor"}
    assert not race.differences(found, 1e-5)
    if row.kind == "step":
        assert len(found["hand"]) == 1 + len(given(row, True, 0)) - 2  # losses and gradients
        assert np.diff(found["hand"]["losses"]).max() < 0


def test_no_weight_is_zero_at_the_start_so_that_each_is_compared():
    for name in ("toy", "encoder", "generation"):
        arrays = given(BY_NAME[name], True, 0)
        assert all(np.ptp(x) > 0 and x.dtype in (np.float32, np.int64) for x in arrays.values())


def test_the_floor_is_six_products_for_attention_and_is_nobodys():
    row = BY_NAME["attention-128"]
    arrays = given(row, True, 0)
    found = program("floor", row, True, arrays)
    product.made = made = []
    program("hand", row, True, arrays)[0]()
    product.made = None
    assert len(made) == 6 and found[1]() == {} and found[0]() is None


def test_attention_by_hand_refuses_scores_that_could_overflow():
    shape = (1, 1, 3, 4)
    q = np.full(shape, 10, np.float32)
    with pytest.raises(ValueError, match="this program subtracts no maximum"):
        Attention(shape, causal=False).forward(q, q, q, np.empty_like(q))


# ------------------------------------------------------------------ what is wrong is not timed


class Planted:
    """A contestant whose numbers are given, and which counts how often it is timed."""

    def __init__(self, found, fails=""):
        self.found, self.fails, self.timed = found, fails, 0

    def prepare(self):
        if self.fails == "prepare":
            raise race.Failed("ours: RecursionError: too deep")
        return "freed memory is kept", self.found

    def time(self, calls):
        self.timed += 1
        if self.fails == "time":
            raise race.Failed("ours: MemoryError: no more")
        return 0.01 * self.timed, 3


GOOD = {"y": np.arange(6.0), "q": np.ones(6), "k_bias": np.zeros(6)}
WRONG = {
    "5 % in one gradient": (GOOD | {"q": GOOD["q"] * 1.05}, r"differ in q by 5\.0e-02 of its"),
    "one NaN": (GOOD | {"q": np.array([np.nan, 1, 1, 1, 1, 1])}, "differ in q by nan of its"),
    "a shape": (GOOD | {"q": np.ones((1, 6))}, r"ours: q is \(1, 6\), and \(6,\) by hand"),
    "a small gradient": (GOOD | {"k_bias": np.full(6, 0.01)}, "differ in k_bias by"),
    "no gradients": ({"y": GOOD["y"]}, "only one of ours and hand computes k_bias, q"),
    "one gradient more": (GOOD | {"v": np.ones(6)}, "only one of ours and hand computes v"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_row_with_wrong_numbers_is_reported_and_nobody_is_timed(what):
    wrong, said = WRONG[what]
    others = {"hand": Planted(GOOD), "ours": Planted(wrong), "floor": Planted({})}
    outcome = race.race(ROWS[0], others, rounds=3, turn=0.1)
    assert any(re.search(said, each) for each in outcome["wrong"])
    assert not outcome["rounds"] and not any(each.timed for each in others.values())


def test_rounding_is_not_wrong():
    near = {"y": GOOD["y"] * (1 + 1e-6), "q": GOOD["q"], "k_bias": np.full(6, 1e-8)}
    assert not race.differences({"hand": GOOD, "ours": near}, 1e-4)


@pytest.mark.parametrize("when", ["prepare", "time"])
def test_a_row_that_a_contestant_cannot_do_has_no_times(when):
    others = {"hand": Planted(GOOD), "ours": Planted(GOOD, when)}
    outcome = race.race(ROWS[0], others, rounds=3, turn=0.1)
    assert outcome["wrong"][0].startswith("ours: ") and not outcome["rounds"]


def test_ratios_are_taken_within_the_rounds():
    others = {"hand": Planted(GOOD), "minigrad": Planted(GOOD)}
    outcome = race.race(ROWS[0], others, rounds=3, turn=0.1)
    assert others["hand"].timed == 1 + 2 * 3  # a guess, and each turn after a call for the cache
    assert outcome["rounds"]["hand"] == pytest.approx([0.03, 0.05, 0.07])
    assert outcome["faults"] == {"hand": [3] * 3, "minigrad": [3] * 3}
    outcome["rounds"]["minigrad"] = [0.06, 0.35, 0.07]  # 2, 7 and 1 times as long
    assert race.ratio(outcome, "minigrad", "hand") == pytest.approx(2)
    assert race.ratio(outcome, "minigrad", "torch") is None
    cells = table({"quick": True, "rows": {"tiny": {"kept": outcome}}}).splitlines()[2].split("|")
    assert [x.strip() for x in cells[1:8]] == [
        "tiny",
        "kept",
        "700 µs a node",
        "2.00",
        "",
        "",
        "3",
    ]


SHARED = {"seed": 0, "keep": False, "threads": 1, "quick": True}


def test_a_process_that_ends_with_an_error_is_said_with_its_last_line():
    with race.processes(replace(ROWS[0], quick={}), [], **SHARED) as found:
        outcome = race.race(ROWS[0], found, rounds=2, turn=0.001)
    assert outcome["wrong"] == ["hand: KeyError: 'nodes'"] and not outcome["rounds"]


def test_a_process_that_is_killed_is_said():
    with race.processes(ROWS[0], [], **SHARED) as found:
        found["minigrad"].process.kill()
        found["minigrad"].process.wait()
        outcome = race.race(ROWS[0], found, rounds=2, turn=0.001)
    assert outcome["wrong"] == ["minigrad: its process ended with -9"]


def test_the_collector_is_off_only_where_the_row_says_so():
    seen = []
    for collector in (True, False, True):
        race.timed(lambda: seen.append(gc.isenabled()), 1, collector)
    assert seen == [True, False, True] and gc.isenabled()
    assert [row.name for row in ROWS if not row.collector] == ["deep-uncollected"]


# ------------------------------------------------------------------ the demo


TWO = ("benchmark", "--quick", "--against", "--rows", "deep", "attention-causal")
ONE = ("benchmark", "--quick", "--rows", "tiny")


def test_the_data_has_times_and_faults_and_the_table_its_ratios(finished):
    folder, printed = finished(*TWO)
    assert [path.name for path in folder.iterdir()] == ["speed.json"]
    assert_light(folder)
    data = json.loads((folder / "speed.json").read_text(encoding="utf-8"))
    assert (data["threads"], data["rounds"], data["quick"], data["against"]) == (1, 2, True, [])
    assert list(data["rows"]) == ["attention-causal", "deep"]
    assert data["allocators"]["kept"].startswith("freed memory is ")
    four = {"hand", "floor", "minigrad", "minigrad fused"}
    for outcomes, names in zip(data["rows"].values(), (four, {"minigrad"}), strict=True):
        assert list(outcomes) == ["default", "kept"]
        for outcome in outcomes.values():
            assert outcome["rounds"].keys() == outcome["faults"].keys() == names
            assert all(min(each) > 0 and len(each) == 2 for each in outcome["rounds"].values())
            assert not outcome["wrong"]
    assert table(data) in printed and "1 of 1 checks passed" in printed
    lines = [line for line in printed.splitlines() if line.startswith("|")]
    assert len(lines) == 2 + 2 * 2 and len({line.count("|") for line in lines}) == 1
    for part in (data["date"], "NumPy's BLAS: ", "1 thread each, 2 rounds", "then freed memory is"):
        assert part in printed


def test_pytorch_takes_part_if_it_is_installed(finished):
    folder, printed = finished(*ONE)
    data = json.loads((folder / "speed.json").read_text(encoding="utf-8"))
    assert data["against"] == TORCH and len(data["rows"]["tiny"]["kept"]["rounds"]) == 2 + len(
        TORCH
    )
    assert printed.startswith("PyTorch is not installed.") == (not TORCH)
    assert printed.lstrip().startswith("(--quick: tiny sizes") == bool(TORCH)
    assert "tiny: 100 elementwise products" in printed  # what was measured


def test_pytorch_that_is_missing_is_one_sentence_with_its_command(tmp_path):
    code = (
        "import sys, runpy, importlib.util as util; find = util.find_spec;"
        "util.find_spec = lambda name, *more: None if name == 'torch' else find(name, *more);"
        f"sys.argv = ['demos', 'benchmark', '--against', 'torch', '--out', {str(tmp_path)!r}];"
        "runpy.run_module('demos', run_name='__main__')"
    )
    done = python("-c", code)
    said = "torch is not installed: pip install torch\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", said)


def test_an_impossible_option_is_one_sentence(tmp_path):
    done = demo_here("benchmark", "--out", tmp_path, "--threads", 0)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "--threads and --rounds must be 1 or larger: got 0 and 9\n"


# ------------------------------------------------------------------ the table that is kept


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
