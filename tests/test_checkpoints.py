"""Checkpoints: whole or refused, and a run that is killed ends as if it never was."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from minigrad import Tensor
from minigrad.nn import Linear, Module, Sequential
from minigrad.optim import SGD, Adam
from minigrad.runs import checkpoints
from minigrad.runs.checkpoints import checkpoint_facts, load_checkpoint, save_checkpoint

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


def test_a_float64_state_goes_on_in_the_parameters_dtype(tmp_path):
    parts = run()
    train(**parts)
    path = save_checkpoint(tmp_path / "c", **parts)
    other = run()
    other["model"].astype(np.float32)
    load_checkpoint(path, **other)
    dtypes = {name: x.dtype for name, x in other["optimizer"].memory[0].items()}
    assert dtypes == {"m": np.float32, "v": np.float32, "t": np.float64}


def test_an_array_of_another_machines_byte_order_comes_back_too(tmp_path):
    model, swapped = run()["model"], np.arange(15.0).reshape(3, 5).astype(">f4")
    for t in (Tensor(swapped), Tensor([2.0], dtype=">f4"), Tensor(0.0).astype(">f4")):
        assert t.dtype.isnative
    model.astype(">f4").weight.data = swapped
    assert model.weight.dtype.isnative
    other = run()["model"]
    load_checkpoint(save_checkpoint(tmp_path / "c", model=model), model=other)
    np.testing.assert_array_equal(other.weight.data, swapped)


def test_facts_are_what_json_makes_of_them(tmp_path):
    facts = {"a": (1, np.int64(2)), "b": {10: "x", 9: None}, "c": "√d_k", "d": np.float32(0.5)}
    path = save_checkpoint(tmp_path / "c", model=run()["model"], **facts)
    expected = {"a": [1, 2], "b": {"10": "x", "9": None}, "c": "√d_k", "d": 0.5}
    assert checkpoint_facts(path) == expected
    with pytest.raises(TypeError, match="ndarray is not JSON serializable"):
        save_checkpoint(tmp_path / "d", model=run()["model"], it=np.arange(3))
    assert not (tmp_path / "d").exists()


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
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    start(whole, 150).communicate()
    for wait in (0.0, 0.01, 0.05):
        process = start(killed, 150)
        assert process.stdout.readline()  # it has come to a step
        time.sleep(wait)
        process.kill()
        process.communicate()
    assert checkpoint_facts(killed)["step"] < 150
    start(killed, 150).communicate()
    assert checkpoint_facts(killed) == {"step": 150}
    assert whole.read_bytes() == killed.read_bytes()


class Named(Module):
    """Leaves of one shape, set in some order, and one of two names."""

    def __init__(self, names):
        for name in names:
            setattr(self, name, Tensor([1.0, 2.0], requires_grad=True))
        self.frozen = self.tied = Tensor([3.0, 4.0], requires_grad=True)


def test_an_optimizer_knows_its_parameters_by_the_models_names_and_not_by_their_order(tmp_path):
    first, second = Named("abc"), Named("cab")
    one, other = (Adam(m.parameters(), 0.1) for m in (first, second))
    (first.a * 20 + first.b * 40 + first.frozen * 60).sum().backward()  # (c gets no gradient)
    one.step()
    first.frozen.requires_grad = False
    path = save_checkpoint(tmp_path / "c", model=first, optimizer=one)
    load_checkpoint(path, model=second, optimizer=other)
    names = [name for name, _ in second.named_parameters()]
    means = {name: held["m"][0] for name, held in zip(names, other.memory, strict=True) if held}
    assert means == pytest.approx({"a": 2.0, "b": 4.0, "frozen": 6.0})
    some = Adam([second.a, second.frozen])
    path = save_checkpoint(tmp_path / "c", model=second, optimizer=some)
    with pytest.raises(ValueError, match="either this state or this optimizer lacks a, c$"):
        load_checkpoint(path, model=second, optimizer=Adam([second.c, second.frozen]))


def two_parts(seed=0):
    """A model of two layers, each with an optimizer of its own, of which one has groups."""
    rng = np.random.default_rng(seed)
    first, second = Linear(3, 5, rng=rng), Linear(5, 3, rng=rng)
    groups = [{"params": [p], "lr": 0.1 * i} for i, p in enumerate(second.parameters())]
    optimizers = [Adam(first.parameters(), 0.1), SGD(groups, 0.1, momentum=0.9)]
    return {"model": Sequential(first, np.tanh, second), "optimizer": optimizers, "rng": rng}


def states(parts):
    return [each.state_dict() for each in (parts["model"], *parts["optimizer"])]


def test_several_optimizers_are_in_one_checkpoint_and_all_of_them_go_on_or_none(tmp_path):
    parts, other = two_parts(), two_parts(5)
    for optimizer in parts["optimizer"]:
        train(parts["model"], optimizer, parts["rng"])
    path = save_checkpoint(tmp_path / "c", **parts)
    before, (adam, sgd) = states(other), other["optimizer"]
    plain = SGD(other["model"].layers[2].parameters(), 0.1)
    for wrong, words in (
        ([sgd, adam], "does not fit: this state is of Adam of 2 parameters, and not of SGD"),
        ([adam, plain], "of SGD of 2 parameters in 2 groups, and not of SGD of 2 parameters$"),
        ([adam], r"holds 2 optimizer\(s\), and 1 are to be set"),
        ([adam, sgd, adam], r"holds 2 optimizer\(s\), and 3 are to be set"),
    ):
        with pytest.raises(ValueError, match=words):
            load_checkpoint(path, **other | {"optimizer": wrong})
        np.testing.assert_equal(states(other), before)
    load_checkpoint(path, **other)
    np.testing.assert_equal(states(other), states(parts))


# ---------------------------------------------------------------- refusal


@pytest.mark.parametrize(
    ("part", "given", "words"),
    [
        ("optimizer", [run()["optimizer"], 3], "is an Optimizer, or a list of them: got 3$"),
        ("rng", np.random.Generator(np.random.SFC64(0)), r"default_rng\(seed\), a PCG64: got Gen"),
        ("rng", 3, r"rng must be np.random.default_rng\(seed\), a PCG64: got 3$"),
    ],
)
def test_a_part_of_another_kind_is_refused_in_both_directions(tmp_path, part, given, words):
    path = save_checkpoint(tmp_path / "c", **run())
    for use in (save_checkpoint, load_checkpoint):
        with pytest.raises(TypeError, match=words):
            use(path, **run() | {part: given})
    load_checkpoint(path, **run())


def test_what_is_no_whole_checkpoint_is_refused_in_a_sentence_and_changes_nothing(tmp_path):
    path = save_checkpoint(tmp_path / "c", **run(), step=1)
    other = run(seed=5)
    before = everything(other)
    whole = path.read_bytes()
    end = 8 + int.from_bytes(whole[:8], "little")  # of the header
    about = json.loads(whole[8:end])["__metadata__"]["minigrad"].partition(" ")[2]
    arrays = {"x": np.zeros(3)}
    half = b'{"x": {"dtype": "BF16", "shape": [1], "data_offsets": [0, 2]}}'
    foreign = "save_checkpoint did not write it"
    changed = "it is not what was written (the checksum differs)"
    files = [  # what the file holds, and the reason that is given
        (b"", "Error while deserializing header: header too small"),
        (b"not at all", "Error while deserializing header: header too large"),
        (b"PK, as a .pt file begins", "Error while deserializing header: header too large"),
        (whole[:30], "Error while deserializing header: invalid header length"),
        (whole[: end // 2], "Error while deserializing header: invalid header length"),
        (whole[:8] + b"x" * (end - 8) + whole[end:], "Error while deserializing header: invalid"),
        (whole[:end], "Error while deserializing header: incomplete metadata"),
        (whole[:-1], "Error while deserializing header: incomplete metadata"),
        (whole[:-1] + bytes([whole[-1] ^ 1]), changed),
        (safetensors.numpy.save(safetensors.numpy.load(whole), {"minigrad": about}), changed),
        (safetensors.numpy.save(arrays), foreign),
        (safetensors.numpy.save(arrays, {"format": "pt"}), foreign),
        (len(half).to_bytes(8, "little") + half + b"00", foreign),
    ]
    for data, reason in files:
        path.write_bytes(data)
        words = f"{path} is not a checkpoint of minigrad, or is damaged: {reason}"
        with pytest.raises(ValueError, match=f"^{re.escape(words)}.*; for weights of PyTorch's"):
            load_checkpoint(path, **other)
    with pytest.raises(ValueError, match=f"^{re.escape(str(tmp_path))} is not a checkpoint"):
        load_checkpoint(tmp_path, **other)
    with pytest.raises(FileNotFoundError, match=r"No such file .*/nothing"):
        load_checkpoint(tmp_path / "nothing", **other)
    assert everything(other) == before


def test_what_does_not_fit_is_refused_and_changes_nothing(tmp_path):
    parts = run()
    train(**parts)
    path = save_checkpoint(tmp_path / "c", **parts, step=1)
    rng, stray = np.random.default_rng(5), Tensor([1.0], requires_grad=True, name="stray")
    for model, optimizer, words in (
        (Linear(3, 2, rng=rng), None, "weight has shape"),
        (run(5)["model"], lambda p: SGD(p, 0.1), "of Adam of 2 parameters, and not"),
        (run(5)["model"], lambda p: Adam([p[0], stray]), "the model does not have: 'stray'"),
    ):
        other = {"model": model, "optimizer": (optimizer or Adam)(model.parameters()), "rng": rng}
        before = everything(other)
        with pytest.raises(ValueError, match=words):
            load_checkpoint(path, **other)
        np.testing.assert_equal(everything(other), before)


def test_what_the_file_does_not_hold_cannot_be_asked_of_it(tmp_path):
    path = save_checkpoint(tmp_path / "c", model=run()["model"])
    for name in ("optimizer", "rng"):
        with pytest.raises(ValueError, match=f"holds no {name}"):
            load_checkpoint(path, model=run()["model"], **{name: run()[name]})


def test_without_safetensors_one_sentence_names_the_command(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "safetensors", None)
    monkeypatch.setitem(sys.modules, "safetensors.numpy", None)
    with pytest.raises(ImportError, match="pip install safetensors$"):
        checkpoints.save_checkpoint(tmp_path / "c", model=run()["model"])


def test_one_changed_bit_anywhere_is_refused_or_changes_nothing(tmp_path):
    parts = run()
    train(**parts)
    path = save_checkpoint(tmp_path / "c", **parts, step=3, note="half-way")
    whole, rng = path.read_bytes(), np.random.default_rng(0)
    refused = 0
    for place in rng.choice(len(whole), 200, replace=False):
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
    assert refused > 150
