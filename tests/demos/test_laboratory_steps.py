"""The laboratory's marks about steps: each passes, and fails when its effect is taken out."""

from dataclasses import replace

import pytest

from demos.laboratory._steps import Findings, StepsToLearn, about, sweeps
from minigrad.runs.sweeps import sweep

pytestmark = pytest.mark.slow  # (it trains to each mark, as the demo does without --quick)


class Judged(dict):
    """Marks that keep their names, each with True if it was reached."""

    def at_most(self, what, got, mark, form):
        self[what] = bool(got <= mark)

    def at_least(self, what, got, mark, form):
        self[what] = bool(got >= mark)


@pytest.fixture(scope="module")
def measured():
    """Return the default run, with fewer repeats."""
    least = {"sharpness 256": 5, "sharpness 8192": 2, "first steps": 2, "first steps of T5": 2}
    return {
        name: [row for _, row in sweep(f, given, seed=0, repeats=least.get(name, 1), paired=pairs)]
        for name, (f, given, _, pairs) in sweeps("default").items()
    }


def judged(measured):
    marks = Judged()
    StepsToLearn(measured, seed=0, size="default").judge(marks)
    return marks


def test_every_mark_is_reached(measured):
    assert len(judged(measured)) == 13 and all(judged(measured).values())


FIRST, ROWS, T5 = "first steps", "SGD, 1/d_k, rate 1: steps at d_k = 512 over those at 8, ", "of T5"
SAME = "relative steps, T5's values and 1/√d_k: "
SLOPE = "no scale: slope of log sharpness against log d_k, "
TAKEN_OUT = {  # a mark's beginning → which rows are replaced by others that lack its effect
    "SGD: ": (FIRST, FIRST, lambda r: replace(r, a=(r.a + 0.25) % 1.5)),
    "Adam: ": (FIRST, FIRST, lambda r: replace(r, a=(r.a + 0.25) % 1.5)),
    f"{ROWS}W_q's": ("SGD that follows", "SGD over d_k", lambda r: replace(r, follow=1.0)),
    f"{ROWS}one": ("SGD over d_k", "SGD that follows", lambda r: replace(r, follow=0.0)),
    "Adam, d_k": ("Adam that follows", "Adam", lambda r: replace(r, follow=-0.5)),
    f"{SAME}train": (*[f"relative steps {T5}"] * 2, lambda r: replace(r, steps=9)),
    f"{SAME}first": (
        f"{FIRST} {T5}",
        f"{FIRST} {T5}",
        lambda r: replace(r, change=1.01 * r.change),
    ),
    "SGD, the": (f"{FIRST} {T5}", FIRST, lambda r: replace(r, a=0.5 - r.a, init="t5")),
    "Adam, the": (f"{FIRST} {T5}", FIRST, lambda r: replace(r, a=0.5 - r.a, init="t5")),
    "SGD, d_k = 512: ": ("SGD raw", "SGD", lambda r: replace(r, a=0.0)),
    f"{SLOPE}256": (*["sharpness 256"] * 2, lambda r: replace(r, sharpness=1.0)),
    f"{SLOPE}8,192": (*["sharpness 8192"] * 2, lambda r: replace(r, sharpness=float(r.d_k))),
}


@pytest.mark.parametrize("what", TAKEN_OUT)
def test_a_mark_fails_when_its_effect_is_taken_out(measured, what):
    name, other, change = TAKEN_OUT[what]
    found = judged(measured | {name: [change(row) for row in measured[other]]})
    assert [reached for mark, reached in found.items() if mark.startswith(what)] == [False]


def test_the_mark_of_the_kept_run_fails_if_the_scale_changes_nothing_there(measured, monkeypatch):
    raw = [replace(row, a=0.0) for row in measured["SGD"]]
    without_effect = Findings.of(measured | {"SGD raw": raw}, about(0, "default"))
    monkeypatch.setattr(Findings, "read", lambda: without_effect)
    assert [mark for mark, reached in judged(measured).items() if not reached] == [
        "--full, SGD, d_k = 512: steps at the best rate, no scale over 1/√d_k"
    ]


def test_the_file_of_the_run_with_full_is_read_as_it_was_written(measured, tmp_path):
    run = Findings.of(measured, about(0, "default"))
    run.write(tmp_path / "results.json")
    assert vars(Findings.read(tmp_path / "results.json")) == vars(run)


def test_the_claims_name_numbers_of_the_run_with_full(measured):
    steps = StepsToLearn(measured, seed=0, size="default")
    assert len(steps.claims) == 5 and all(len(row) == 4 for row in steps.claims)
    assert str(steps.full.best("sgd", 0.0, 0.0, 512)) in steps.claims[3][1]
