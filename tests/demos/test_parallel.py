"""One training by many workers: its arithmetic without Dask, and with it workers that die."""

import logging
import os
import re
import signal
import sys

import numpy as np
import pytest

from attention import gpt2
from demos.speed import _crew
from demos.speed._crew import IGNORED, MOMENTS, Backwards, Crew, alone, mean
from tests.demos.running import demo_here
from tests.test_sweeps import needed

STEPS = 20
TRAINING = Backwards(3)


class WithDropout(Backwards):
    def make(self):
        _, optimizer = super().make()
        rng = np.random.default_rng(0)
        return gpt2(11, 24, d_model=8, num_heads=2, num_blocks=1, dropout=0.1, rng=rng), optimizer


class Wrong(Backwards):
    """Its code raises what Dask raises when a worker is lost."""

    def batch(self, step, rows):
        raise OSError("no such file")


def apart(parameters, others):
    assert parameters.keys() == others.keys()
    return max(np.abs(parameters[name] - others[name]).max() for name in parameters)


@pytest.fixture(scope="module")
def one():
    """Return the parameters that one process trains."""
    return alone(TRAINING, STEPS)


@pytest.fixture(scope="module")
def client():
    distributed, dask = needed("distributed"), needed("dask")
    options = {"threads_per_worker": 1, "dashboard_address": None}
    with (
        # (A cluster gives up a worker that is away 15 seconds after it was lost, also if it came
        # back and was lost again.)
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1 hour"}),
        distributed.LocalCluster(n_workers=2, silence_logs=logging.CRITICAL, **options) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


# ------------------------------------------------------------------ without Dask


@pytest.mark.parametrize("parts", [2, 3])
def test_shards_weighted_by_counted_targets_make_the_steps_of_one_process(parts, one):
    shards = np.array_split(np.arange(TRAINING.rows), parts)
    counts = {np.sum(TRAINING.batch(1, rows)[1] != IGNORED) for rows in shards}
    assert len(counts) == parts
    assert apart(alone(TRAINING, STEPS, parts=parts), one) < 1e-12
    plain = lambda shares: mean([(1, gradients) for _, gradients in shares])
    assert apart(alone(TRAINING, STEPS, parts=parts, mean=plain), one) > 1e-4


def test_a_row_has_the_same_draws_in_each_shard_and_others_in_each_step():
    whole, some = TRAINING.batch(2, range(14)), TRAINING.batch(2, [5, 7])
    for array, part in zip(whole, some, strict=True):
        np.testing.assert_array_equal(array[[5, 7]], part)
    assert (TRAINING.batch(3, range(14))[0] != whole[0]).any(axis=1).all()


def test_dropout_is_refused_before_anything_is_asked_of_the_cluster():
    with pytest.raises(ValueError, match="workers would drop other numbers than one process"):
        Crew(None, WithDropout(3), 2)


# ------------------------------------------------------------------ with Dask


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_worker_that_dies_is_replaced_and_the_steps_are_those_of_one_process(moment, client, one):
    said = []
    crew = Crew(client, TRAINING, 2, say=said.append, accident=(7, moment))
    assert apart(crew.train(STEPS), one) < 1e-12
    assert sorted(crew.actors) == [1, 2]
    when = "before the update" if moment == MOMENTS[0] else "in the update"
    lost, filled = said
    assert re.fullmatch(rf"step 7, {when}: worker 0 was lost \(.+\)", lost)
    assert filled == f"step 7, {when}: worker 2 is filled from worker 1"


def test_a_worker_that_is_killed_from_outside_is_left_out_if_nobody_waits(client, one, monkeypatch):
    said, steps = [], []
    crew = Crew(client, TRAINING, 2, say=said.append, wait=0)
    pid = client.run(os.getpid, workers=[crew.addresses[0]])[crew.addresses[0]]

    def mean_and_kill(shares):
        steps.append(len(shares))
        if len(steps) == 7:
            os.kill(pid, signal.SIGKILL)
        return mean(shares)

    monkeypatch.setattr(_crew, "mean", mean_and_kill)
    monkeypatch.setattr(client, "nthreads", lambda: crew.addresses)  # no process comes
    assert apart(crew.train(STEPS), one) < 1e-12
    assert sorted(crew.actors) == [1] and steps == 7 * [2] + 13 * [1]
    assert said[-1] == "step 7, in the update: nobody came in its place, 1 go on"


def test_the_last_workers_death_is_a_sentence(client):
    crew = Crew(client, TRAINING, 1, say=[].append, accident=(2, MOMENTS[0]))
    crew.step(1)
    with pytest.raises(OSError, match=r"step 2, before the update: the last worker was lost, and"):
        crew.step(2)


def test_an_error_of_the_trainings_code_is_not_taken_for_a_lost_worker(client):
    said = []
    crew = Crew(client, Wrong(3), 2, say=said.append)
    with pytest.raises(ValueError, match=r"the code of worker 0 has failed\n(?s:.+)no such file"):
        crew.step(1)
    assert said == [] and sorted(crew.actors) == [0, 1]


def test_the_demo_keeps_its_marks_and_its_page_says_what_the_run_says(run_once):
    needed("distributed")
    folder, done = run_once("parallel", "--quick", "--marks")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(": passed") == 4
    page = (folder / "index.html").read_text("utf-8")
    assert page.count("is filled from worker 1") == 3


def test_a_missing_dask_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    done = demo_here("parallel", "--out", tmp_path)
    assert done.returncode == 2
    assert done.stderr == 'parallel needs distributed: pip install -e ".[cluster]"\n'
