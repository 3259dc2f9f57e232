"""The benchmark: its contestants compute the same, and what is wrong is not timed."""

import importlib.util
import json
import re

import numpy as np
import pytest

from demos.site._tasks import TASKS
from demos.speed.bench import race
from demos.speed.bench.by_hand import Attention
from demos.speed.bench.changes import CHANGES, GROUPS, VARIANTS
from demos.speed.bench.programs import contestants, program
from demos.speed.bench.report import table, table_of_changes
from demos.speed.bench.rows import NAMES, ROWS, given
from minigrad.runs import memory
from tests.demos.running import ROOT, assert_light, demo_here

TORCH = ["torch"] if importlib.util.find_spec("torch") else []


# ------------------------------------------------------------------ value


@pytest.mark.parametrize("row", ROWS, ids=NAMES)
def test_all_contestants_of_a_row_compute_the_same_values_and_gradients(row):
    arrays, names = given(row, True, 0), contestants(row, TORCH)
    found = {name: program(name, row, True, arrays)[1]() for name in names}
    assert {"hand", "minigrad", *TORCH} <= found.keys() and all(found.values())
    assert not race.differences(found, 1e-5)
    if row.kind == "step":
        assert len(found["hand"]) == 1 + len(given(row, True, 0)) - 2  # losses and gradients
        assert np.diff(found["hand"]["losses"]).max() < 0


def test_no_weight_is_zero_at_the_start_so_that_each_is_compared():
    arrays = given(ROWS[NAMES.index("toy")], True, 0)
    assert all(np.ptp(x) > 0 and x.dtype in (np.float32, np.int64) for x in arrays.values())


def test_attention_by_hand_refuses_scores_that_could_overflow():
    shape = (1, 1, 3, 4)
    q = np.full(shape, 10, np.float32)
    with pytest.raises(ValueError, match="this program subtracts no maximum"):
        Attention(shape, causal=False).forward(q, q, q, np.empty_like(q))


@pytest.mark.parametrize("group", GROUPS)
def test_all_variants_of_the_step_compute_the_same_as_pytorch(group):
    row, names = GROUPS[group]
    arrays = given(row, True, 0)
    compared = {name: program(name, row, True, arrays)[1]() for name in names}
    if TORCH:
        compared["torch"] = program("torch in blocks", row, True, arrays)[1]()
    assert not race.differences(compared, 1e-5)
    assert len(compared[names[0]]) == 1 + len(arrays) - 2  # losses and gradients


def test_a_change_changes_one_thing():
    for change in CHANGES:
        before, after = VARIANTS[change.before], VARIANTS[change.after]
        assert sum(a != b for a, b in zip(before, after, strict=True)) == 1, change.what


# ------------------------------------------------------------------ what is wrong is not timed


class Planted:
    """A contestant whose numbers are given, and which counts how often it is timed."""

    def __init__(self, found):
        self.found, self.timed = found, 0

    def prepare(self):
        return self.found

    def ask(self, calls):
        self.timed += 1
        return 0.01 * self.timed


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
    others = {"hand": Planted(GOOD), "ours": Planted(wrong)}
    outcome = race.race(ROWS[0], others, rounds=3, turn=0.1)
    assert any(re.search(said, each) for each in outcome["wrong"])
    assert not outcome["rounds"] and not any(each.timed for each in others.values())


def test_rounding_is_not_wrong():
    near = {"y": GOOD["y"] * (1 + 1e-6), "q": GOOD["q"], "k_bias": np.full(6, 1e-8)}
    assert not race.differences({"hand": GOOD, "ours": near}, 1e-4)


def test_ratios_are_taken_within_the_rounds():
    others = {"hand": Planted(GOOD), "minigrad": Planted(GOOD)}
    outcome = race.race(ROWS[0], others, rounds=3, turn=0.1)
    assert others["hand"].timed == 1 + 2 * 3  # a guess, and each turn after a call for the cache
    assert outcome["rounds"]["hand"] == pytest.approx([0.03, 0.05, 0.07])
    outcome["rounds"]["minigrad"] = [0.06, 0.35, 0.07]  # 2, 7 and 1 times as long
    assert race.ratio(outcome, "minigrad", "hand") == pytest.approx(2)
    kept = {"wrong": [], "rounds": {"hand": [0.1], "minigrad": [0.05]}}
    both = {"default": outcome, "kept": kept}
    cells = table({"quick": True, "rows": {"tiny": both}}).splitlines()[2].split("|")
    assert [x.strip() for x in cells[1:5]] == ["tiny", "700 → 500 µs a node", "2.00 → 0.50", ""]


def test_a_process_that_ends_is_said():
    with race.processes(ROWS[0], [], True, 0, False, threads=1) as found:
        found["minigrad"].process.kill()
        with pytest.raises(ChildProcessError, match="the process of minigrad ended with -9"):
            race.race(ROWS[0], found, rounds=2, turn=0.001)


# ------------------------------------------------------------------ the demo


TWO = ("benchmark", "--quick", "--rows", "tiny", "attention-causal")


def test_the_data_has_times_and_the_table_their_ratios(finished):
    folder, printed = finished(*TWO)
    assert [path.name for path in folder.iterdir()] == ["speed.json"]
    assert_light(folder)
    data = json.loads((folder / "speed.json").read_text(encoding="utf-8"))
    assert (data["threads"], data["rounds"], data["quick"], data["against"]) == (1, 2, True, TORCH)
    assert list(data["rows"]) == ["tiny", "attention-causal"]
    for row in ROWS:
        for outcome in data["rows"].get(row.name, {"default": {}, "kept": {}}).values():
            assert not outcome or list(outcome["rounds"]) == contestants(row, TORCH)
            for each in outcome.get("rounds", {}).values():
                assert min(each) > 0 and len(each) == 2
    assert table(data) in printed and "1 of 1 checks passed" in printed
    assert printed.startswith("PyTorch is not installed") == (not TORCH)
    lines = [line for line in printed.splitlines() if line.startswith("|")]
    assert len(lines) == 2 + 2 and len(set(map(len, lines))) == 1
    for part in (data["date"], "NumPy's BLAS: ", "Rounds: 2", "tiny: 100 elementwise products"):
        assert part in printed


def test_the_last_table_has_a_factor_for_each_change(finished):
    folder, printed = finished("benchmark", "--quick", "--rows", "changes")
    outcomes = json.loads((folder / "speed.json").read_text(encoding="utf-8"))["changes"]
    assert table_of_changes(outcomes) in printed and "what to change here" in printed
    lines = [line.split("|")[1:-1] for line in printed.splitlines() if line.startswith("|")]
    assert len(lines) == 2 + len(CHANGES) + 2 * len(TORCH)
    assert all(float(time) > 0 for _, time, _ in lines[2:])
    assert all(float(memory) > 0 for _, _, memory in lines[2 : 2 + len(CHANGES)])
    assert outcomes["gpt"]["bytes"]["float32"] < 0.7 * outcomes["gpt"]["bytes"]["as it comes"]


def test_a_change_is_what_comes_after_divided_by_what_was_before():
    names = {name for _, names in GROUPS.values() for name in names}
    rounds = {name: [0.2, 0.2, 0.2] for name in names}
    outcome = {"rounds": rounds, "bytes": dict.fromkeys(names, 100)}
    outcome["rounds"]["float32"] = [0.1, 0.1, 0.9]
    outcome["bytes"]["float32"] = 40
    first, second, *_ = table_of_changes(dict.fromkeys(GROUPS, outcome)).splitlines()[2:]
    assert [x.strip() for x in first.split("|")[2:4]] == ["0.50", "0.40"]
    assert [x.strip() for x in second.split("|")[2:4]] == ["2.00", "2.50"]


def test_an_impossible_option_is_one_sentence(tmp_path):
    done = demo_here("benchmark", "--out", tmp_path, "--threads", 0)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "--threads must be 1 or larger: got 0\n"


# ------------------------------------------------------------------ the table that is kept


MEASURED = (ROOT / "demos" / "speed" / "measured.md").read_text(encoding="utf-8")


def test_the_table_that_is_kept_has_every_row_and_what_is_said_elsewhere_is_in_it():
    rows = [[x.strip() for x in line.split("|")[1:-1]] for line in MEASURED.splitlines()]
    cells = {row[0]: row[2:] for row in rows[1:] if len(row) == 9}
    assert [name for name in cells if name.strip("-") and name != "row"] == list(NAMES)
    said = " ".join(memory.__doc__.split())
    faults = re.search(r"has (\S+) page faults without it and (\d+) with it", said).groups()
    assert "has {} of them, and {} after".format(*faults) in MEASURED
    times = re.search(r"takes (\d+) and (\d+) ms", said).groups()
    assert "{} → {} ms".format(*times) == cells["char-gpt"][0]


def test_the_factors_that_the_pages_name_are_those_that_were_measured():
    rows = [[x.strip() for x in line.split("|")[1:-1]] for line in MEASURED.splitlines()]
    factors = {row[0]: row[1:] for row in rows if len(row) == 3}
    assert factors.keys() >= {change.what for change in CHANGES}
    for change, task in zip(CHANGES, TASKS["Make it fast"], strict=True):
        time, memory = re.search(r": time (\S+), memory (\S+)\.$", task.sentence).groups()
        assert [time, memory] == factors[change.what]
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    ratios = re.search(r"takes (\S+) times .*? PyTorch's .*?, (\S+) with these", readme).groups()
    ours = [row[0] for name, row in factors.items() if name.endswith("beside PyTorch")]
    assert list(ratios) == ours
