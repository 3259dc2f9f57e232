"""Chapter 9.2 · Checkpoints: whole or refused, and a run that is killed ends as if it never was."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from minigrad import Tensor
from minigrad.nn import Linear, Module
from minigrad.optim import SGD, Adam
from minigrad.runs import checkpoints
from minigrad.runs.checkpoints import load_checkpoint, save_checkpoint

ROOT = Path(__file__).parents[1]


def run(seed=0):
    rng = np.random.default_rng(seed)
    model = Linear(3, 5, rng=rng)
    return {"model": model, "optimizer": Adam(model.parameters(), 0.1), "rng": rng}


def train(model, optimizer, rng, steps=3):
    for _ in range(steps):
        x = Tensor(rng.standard_normal((7, 3)))
        optimizer.zero_grad()
        (model(x) ** 2).mean().backward()
        optimizer.step()


def everything(parts):
    state = parts["optimizer"].state_dict()
    numbers = [*parts["model"].state_dict().values(), *(state[name] for name in sorted(state))]
    return [x.tolist() for x in numbers], parts["rng"].bit_generator.state


# ---------------------------------------------------------------- value


def test_a_run_comes_back_with_all_it_depends_on(tmp_path):
    parts = run()
    train(**parts)
    path = save_checkpoint(tmp_path / "c.safetensors", **parts, step=3, note="half-way")
    other = run(seed=5)
    assert load_checkpoint(path, **other) == {"step": 3, "note": "half-way"}
    assert everything(other) == everything(parts)
    train(**parts)
    train(**other)
    assert everything(other) == everything(parts)


def test_a_transposed_view_is_stored_as_it_reads(tmp_path):
    """safetensors stores memory as it lies; this view lies the other way round."""
    model = Module()
    model.weight = Tensor(np.zeros((3, 5)), requires_grad=True)
    model.weight._array = np.arange(15.0).reshape(5, 3).T
    assert not model.weight.data.flags.c_contiguous
    path = save_checkpoint(tmp_path / "c", model=model)
    other = Module()
    other.weight = Tensor(np.zeros((3, 5)), requires_grad=True)
    load_checkpoint(path, model=other)
    np.testing.assert_array_equal(other.weight.data, np.arange(15.0).reshape(5, 3).T)


def test_numbers_without_axes_and_float32_come_back(tmp_path):
    model = Module()
    model.scale = Tensor(2.5, requires_grad=True, dtype=np.float32)
    path = save_checkpoint(tmp_path / "c", model=model)
    model.scale.data = np.zeros((), np.float32)
    load_checkpoint(path, model=model)
    assert model.scale.data == 2.5 and model.scale.shape == () and model.scale.dtype == np.float32


def test_a_float64_state_goes_on_in_the_parameters_dtype(tmp_path):
    parts = run()
    train(**parts)
    path = save_checkpoint(tmp_path / "c", **parts)
    other = run()
    other["model"].astype(np.float32)
    load_checkpoint(path, **other)
    dtypes = {name: x.dtype for name, x in other["optimizer"].memory[0].items()}
    assert dtypes == {"m": np.float32, "v": np.float32, "t": np.float64}


# ---------------------------------------------------------------- law

TRAINING = """
import sys
import numpy as np
from pathlib import Path
from minigrad import Tensor
from minigrad.runs.checkpoints import load_checkpoint, save_checkpoint
from minigrad.nn import Linear
from minigrad.optim import Adam

path, steps = Path(sys.argv[1]), int(sys.argv[2])
rng = np.random.default_rng(0)
model = Linear(40, 50, rng=rng)
parts = {"model": model, "optimizer": Adam(model.parameters(), 0.01), "rng": rng}
first = load_checkpoint(path, **parts)["step"] if path.exists() else 0
for step in range(first + 1, steps + 1):
    x = Tensor(rng.standard_normal((7, 40)))
    parts["optimizer"].zero_grad()
    (model(x) ** 2).mean().backward()
    parts["optimizer"].step()
    save_checkpoint(path, **parts, step=step)
    print(step, flush=True)
"""


def start(path, steps):
    return subprocess.Popen(
        [sys.executable, "-c", TRAINING, str(path), str(steps)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        text=True,
    )


def test_a_run_that_is_killed_again_and_again_ends_with_the_same_bits(tmp_path):
    steps = 150
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    start(whole, steps).communicate()
    kills, wait = 0, np.random.default_rng(0)
    while True:
        process = start(killed, steps)
        process.stdout.readline()  # it has come to a step of its own
        time.sleep(wait.uniform(0.0, 0.05))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        if process.returncode == 0 or kills == 6:
            break
        kills += 1
    start(killed, steps).communicate()
    assert kills >= 1
    one, other = ({"model": Linear(40, 50, rng=np.random.default_rng(1))} for _ in range(2))
    assert load_checkpoint(whole, **one) == load_checkpoint(killed, **other) == {"step": steps}
    for x, y in zip(one["model"].parameters(), other["model"].parameters(), strict=True):
        np.testing.assert_array_equal(x.data, y.data)
    assert whole.read_bytes() == killed.read_bytes()


# ---------------------------------------------------------------- refusal


DAMAGED = {
    "empty": lambda data: b"",
    "cut in the length": lambda data: data[:4],
    "cut in the header": lambda data: data[:30],
    "half": lambda data: data[: len(data) // 2],
    "nearly whole": lambda data: data[: int(0.99 * len(data))],
    "text": lambda data: b"not at all",
    "another program's": lambda data: safetensors.numpy.save({"x": np.zeros(3)}),
}


@pytest.mark.parametrize("damage", DAMAGED.values(), ids=DAMAGED)
def test_what_is_no_whole_checkpoint_is_refused_in_a_sentence_and_changes_nothing(tmp_path, damage):
    path = save_checkpoint(tmp_path / "c", **run(), step=1)
    path.write_bytes(damage(path.read_bytes()))
    other = run(seed=5)
    before = everything(other)
    with pytest.raises(ValueError, match="is not a checkpoint of minigrad, or is damaged"):
        load_checkpoint(path, **other)
    assert everything(other) == before


def test_what_does_not_fit_is_refused_and_changes_nothing(tmp_path):
    parts = run()
    train(**parts)
    path = save_checkpoint(tmp_path / "c", **parts, step=1)
    rng = np.random.default_rng(5)
    for model, optimizer, generator, words in (
        (Linear(3, 2, rng=rng), None, None, "weight has shape"),
        (run(5)["model"], lambda p: SGD(p, 0.1), None, "of Adam with 2 parameters, not of SGD"),
        (run(5)["model"], Adam, np.random.Generator(np.random.MT19937(0)), "does not fit"),
    ):
        other = {"model": model, "optimizer": optimizer and optimizer(model.parameters())}
        before = model.state_dict(), other["optimizer"] and other["optimizer"].state_dict()
        with pytest.raises(ValueError, match=words):
            load_checkpoint(path, **other, rng=generator)
        after = model.state_dict(), other["optimizer"] and other["optimizer"].state_dict()
        for one, two in zip(before, after, strict=True):
            for name in one or {}:
                np.testing.assert_array_equal(one[name], two[name])


def test_what_the_file_does_not_hold_cannot_be_asked_of_it(tmp_path):
    path = save_checkpoint(tmp_path / "c", model=run()["model"])
    for name in ("optimizer", "rng"):
        with pytest.raises(ValueError, match=f"holds no {name}"):
            load_checkpoint(path, model=run()["model"], **{name: run()[name]})


@pytest.mark.parametrize("use", [save_checkpoint, load_checkpoint])
@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"model": 3}, "model= must be of the class Module: got int"),
        ({"optimizer": "Adam"}, "optimizer= must be of the class Optimizer: got str"),
        ({"rng": 3}, "rng= must be of the class Generator: got int"),
    ],
)
def test_another_kind_of_object_is_refused_by_its_keyword(use, wrong, words, tmp_path):
    model = Linear(2, 3, rng=np.random.default_rng(0))
    with pytest.raises(TypeError, match=words):
        use(tmp_path / "c", **{"model": model} | wrong)
    assert not any(tmp_path.iterdir())


def test_a_generator_that_cannot_be_written_is_refused_before_anything_is(tmp_path):
    with pytest.raises(TypeError, match="keeps a PCG64 generator"):
        save_checkpoint(
            tmp_path / "c",
            model=run()["model"],
            rng=np.random.Generator(np.random.MT19937(0)),
        )
    assert not list(tmp_path.iterdir())


def test_without_safetensors_one_sentence_names_the_command(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "safetensors", None)
    monkeypatch.setitem(sys.modules, "safetensors.numpy", None)
    with pytest.raises(ImportError, match=r'pip install -e "\.\[save\]"$'):
        checkpoints.save_checkpoint(tmp_path / "c", model=run()["model"])


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("array of no part", lambda arrays, about: arrays | {"ema.x": np.zeros(3)}),
        ("a place beyond", lambda arrays, about: arrays | {"optimizer.7.m": np.zeros((3, 5))}),
        ("a negative place", lambda arrays, about: arrays | {"optimizer.-1.m": np.zeros((3, 5))}),
        ("half a memory", lambda arrays, about: arrays.pop("optimizer.0.v")),
        ("no rate", lambda arrays, about: arrays | {"optimizer.lr": np.array(np.nan)}),
        ("a generator's state", lambda arrays, about: about["rng"]["state"].update(state=-1)),
        ("facts", lambda arrays, about: about.update(about=about.pop("facts"))),
        ("null facts", lambda arrays, about: about.update(facts=None)),
        ("no text", lambda arrays, about: about.clear()),
    ],
)
def test_a_strange_file_is_refused_and_changes_nothing(tmp_path, name, change):
    parts = run()
    train(**parts)
    path = save_checkpoint(tmp_path / "c", **parts, step=1)
    arrays, about = checkpoints._read(path)
    changed = change(arrays, about)
    arrays = changed if isinstance(changed, dict) else arrays
    path.write_bytes(safetensors.numpy.save(arrays, {"minigrad": json.dumps(about)}))
    other = run(seed=5)
    before = everything(other)
    with pytest.raises(ValueError, match=r"c (is not a checkpoint of minigrad|does not fit)"):
        load_checkpoint(path, **other)
    assert everything(other) == before


# ---------------------------------------------------------------- damage


def test_one_changed_bit_anywhere_is_refused_or_changes_nothing(tmp_path):
    parts = run()
    train(**parts)
    path = save_checkpoint(tmp_path / "c", **parts, step=3, note="half-way")
    whole, rng = path.read_bytes(), np.random.default_rng(0)
    refused = 0
    for place in rng.choice(len(whole), 400, replace=False):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << rng.integers(8)
        path.write_bytes(damaged)
        other = run(seed=5)
        before = everything(other)
        try:
            facts = load_checkpoint(path, **other)
        except ValueError as error:
            assert str(path) in str(error) and everything(other) == before
            refused += 1
        else:
            assert facts == {"step": 3, "note": "half-way"}
            assert everything(other) == everything(parts)
    assert refused > 300


def test_a_file_without_a_checksum_still_loads(tmp_path, monkeypatch):
    parts = run()
    monkeypatch.setattr(checkpoints, "_fingerprint", lambda *arguments: None)
    path = save_checkpoint(tmp_path / "c", **parts, step=3)
    monkeypatch.undo()
    assert load_checkpoint(path, **run(seed=5)) == {"step": 3}


@pytest.mark.parametrize(
    ("fact", "words"),
    [
        ({1: "a"}, "the fact it has the key 1, which would come back as text: use '1'"),
        ((1, 2), "the fact it has the type tuple, which would not come back: use list"),
        ([1, (2,)], r"the fact it\[1\] has the type tuple"),
        (np.int64(3), "the fact it has the type int64, which would not come back: use int"),
        (np.float64(3), "the fact it has the type float64"),
        (
            np.arange(3),
            r"the fact it has the type ndarray, which would not come back: use \.tolist",
        ),
        ({"a": {"b": {3}}}, r"the fact it\['a'\]\['b'\] has the type set"),
    ],
    ids=str,
)
def test_a_fact_that_would_come_back_as_another_type_is_refused(fact, words, tmp_path):
    with pytest.raises(TypeError, match=words):
        save_checkpoint(tmp_path / "c", **run(), it=fact)
    assert not (tmp_path / "c").exists()
