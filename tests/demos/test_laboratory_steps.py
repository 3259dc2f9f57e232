"""The laboratory's marks about steps: each passes, and fails when its effect is taken out."""

import dataclasses

import pytest

from attention.laboratory import sweep
from demos.laboratory._steps import Found, Steps, about, sweeps


class Judged:
    """Which marks were reached: what they say → whether."""

    def __init__(self):
        self.of = {}

    def at_most(self, what, got, mark, form=".1%"):
        self.of[what] = bool(got <= mark)

    def at_least(self, what, got, mark, form=".1%"):
        self.of[what] = bool(got >= mark)


@pytest.fixture(scope="module")
def measured():
    """The default run, with fewer repeats."""
    least = {"sharpness 256": 5, "sharpness 8192": 2, "first steps": 2, "first steps of T5": 2}
    return {
        name: [row for _, row in sweep(f, given, seed=0, repeats=least.get(name, 1), paired=pairs)]
        for name, (f, given, _, pairs) in sweeps("default").items()
    }


def judged(measured):
    marks = Judged()
    Steps(measured, seed=0, size="default").print(marks)
    return marks.of


def test_every_mark_is_reached(measured):
    assert len(judged(measured)) == 11 and all(judged(measured).values())


def with_(rows, **changes):
    return [dataclasses.replace(row, **changes) for row in rows]


TAKEN_OUT = {  # a mark's beginning → rows that do not have its effect
    "SGD: distance": lambda m: {
        "first steps": [
            dataclasses.replace(r, optimizer={"sgd": "adam", "adam": "sgd"}.get(r.optimizer, "-"))
            for r in m["first steps"]
            if r.optimizer != "adafactor"
        ]
        + [r for r in m["first steps"] if r.optimizer == "adafactor"],
    },
    "SGD, 1/d_k, rate 1: steps at d_k = 512 over those at 8, W_q's": lambda m: {
        "SGD that follows": with_(m["SGD over d_k"], follow=1.0)
    },
    "SGD, 1/d_k, rate 1: steps at d_k = 512 over those at 8, one": lambda m: {
        "SGD over d_k": with_(m["SGD that follows"], follow=0.0)
    },
    "Adam, d_k = 512, 1/√d_k and": lambda m: {
        "Adam that follows": with_([r for r in m["Adam"] if r.a == 0.5], follow=-0.5)
    },
    "relative steps, T5's values and 1/√d_k: trainings": lambda m: {
        "relative steps of T5": with_(m["relative steps of T5"], accuracy=0.5)
    },
    "relative steps, T5's values and 1/√d_k: first": lambda m: {
        "first steps of T5": [
            dataclasses.replace(r, change=1.00001 * r.change) for r in m["first steps of T5"]
        ]
    },
    "SGD, d_k = 512: steps at the best": lambda m: {"SGD raw": with_(m["SGD"], a=0.0)},
    "no scale: slope of log sharpness against log d_k, 8,192": lambda m: {
        "sharpness 8192": [
            dataclasses.replace(r, sharpness=float(r.d_k), queries=8192)
            for r in m["sharpness 8192"]
        ]
    },
}


@pytest.mark.parametrize("what", TAKEN_OUT)
def test_a_mark_fails_when_its_effect_is_taken_out(measured, what):
    found = judged(measured | TAKEN_OUT[what](measured))
    assert [reached for mark, reached in found.items() if mark.startswith(what)] == [False]


def test_the_file_of_the_run_with_full_is_read_as_it_was_written(measured, tmp_path):
    run = Found.of(measured, about(0, "default"))
    run.write(tmp_path / "results.json")
    assert vars(Found.read(tmp_path / "results.json")) == vars(run)


def test_the_claims_name_numbers_of_the_run_with_full(measured):
    steps = Steps(measured, seed=0, size="default")
    assert len(steps.claims) == 4 and all(len(row) == 4 for row in steps.claims)
    assert str(steps.full.best("sgd", 0.0, 0.0, 512)) in steps.claims[3][1]
