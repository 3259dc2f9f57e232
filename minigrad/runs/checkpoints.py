"""Checkpoints: a run that can be stopped at any moment.

What must be in a checkpoint, so that a run that is resumed from it ends with the same weights, to
the last bit, as one that never stopped? All that the next step depends on: the parameters, what
the optimizer remembers of each, the step (schedules count it), and the state of the random
generator. The file format is safetensors: names, shapes, dtypes and bytes, and nothing that is
executed when it is read, as a pickle's content is.

    >>> import tempfile
    >>> from minigrad.nn import Linear
    >>> from minigrad.optim import Adam
    >>> rng = np.random.default_rng(0)
    >>> layer = Linear(3, 2, rng=rng)
    >>> run = {"model": layer, "optimizer": Adam(layer.parameters()), "rng": rng}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = save_checkpoint(f"{folder}/run.safetensors", step=7, **run)
    ...     before = rng.random()
    ...     facts = load_checkpoint(path, **run)
    >>> facts, rng.random() == before                   # the generator is back where it was
    ({'step': 7}, True)
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from minigrad.engine.tensor import Array
from minigrad.nn import Module
from minigrad.optim import Optimizer
from minigrad.runs.saving import write_whole


def save_checkpoint(
    path: str | Path,
    *,
    model: Module,
    optimizer: Optimizer | Sequence[Optimizer] | None = None,
    rng: np.random.Generator | None = None,
    **facts: Any,
) -> Path:
    """Write all that a run needs to go on, whole or not at all, and return the path.

    No other thread may change the model, the optimizer or the generator meanwhile: the file would
    hold a part of one step and a part of the next.

    optimizer  of parameters of the model: what it remembers of each is kept under the model's name.
               Or a list of several, which is given in the same order when they are loaded. (If each
               trains a model of its own, such as a generator and a discriminator, `model` is a
               Module that has both as attributes.)
    rng        the one generator that the data and every Dropout share: after loading, a layer with
               another one would draw other masks. It is of NumPy's default kind, PCG64, because
               JSON can write its state
    facts      what else to remember, such as step=7: anything that JSON can write, and NumPy's
               numbers. (A tuple comes back as a list, and a number that is a key as text)
    """
    optimizers = _by_part(optimizer)
    _refuse_another_kind(rng)
    arrays = {f"model.{name}": array for name, array in model.state_dict().items()}
    for part, member in optimizers.items():
        arrays |= {f"{part}.{name}": array for name, array in member.state_dict(model).items()}
    drawn = None if rng is None else rng.bit_generator.state
    about = json.dumps({"facts": facts, "rng": drawn}, default=_of_pythons)
    written = f"{_fingerprint(arrays, about)} {about}"
    # safetensors stores an array's memory as it is, and the memory of a transposed view is not
    # transposed: the values would come back in another order. (A state's copies are in C order.)
    return write_whole(path, _safetensors().numpy.save(arrays, {"minigrad": written}))


def load_checkpoint(
    path: str | Path,
    *,
    model: Module,
    optimizer: Optimizer | Sequence[Optimizer] | None = None,
    rng: np.random.Generator | None = None,
) -> dict[str, Any]:
    """Set a model, its optimizer and its generator from a file, and return the facts.

    ValueError if the file is not a checkpoint of minigrad, is damaged, or does not fit; then
    nothing has been changed. No other thread may use the model, the optimizer or the generator
    meanwhile.
    """
    optimizers = _by_part(optimizer)
    _refuse_another_kind(rng)
    arrays, about = _read(Path(path))
    parts: dict[str, dict[str, Array]] = {"model": {}}
    for name, array in arrays.items():
        part, _, inner = name.partition(".")
        parts.setdefault(part, {})[inner] = array
    if rng is not None and about["rng"] is None:
        raise ValueError(f"{path} holds no rng")
    if optimizers and optimizers.keys() != parts.keys() - {"model"}:
        held = len(parts) - 1 or "no"
        raise ValueError(f"{path} holds {held} optimizer(s), and {len(optimizers)} are to be set")
    before, drawn = model.state_dict(), None if rng is None else rng.bit_generator.state
    former = {part: member.state_dict() for part, member in optimizers.items()}
    try:
        model.load_state_dict(parts["model"])
        if rng is not None:
            rng.bit_generator.state = about["rng"]
        for part, member in optimizers.items():
            member.load_state_dict(parts[part], model)
    except ValueError as error:
        model.load_state_dict(before)
        for part, member in optimizers.items():
            member.load_state_dict(former[part])
        if rng is not None and drawn is not None:
            rng.bit_generator.state = drawn
        raise ValueError(f"{path} does not fit: {error}") from None
    return dict(about["facts"])


def checkpoint_facts(path: str | Path) -> dict[str, Any]:
    """Return the facts of a checkpoint alone, for a program that looks before it sets anything."""
    return dict(_read(Path(path))[1]["facts"])


def _by_part(optimizer: Any) -> dict[str, Optimizer]:
    """Return the optimizers by the first word of their names in the file; TypeError for others."""
    if optimizer is None:
        return {}
    members = optimizer if isinstance(optimizer, list | tuple) else [optimizer]
    for member in members:
        if not isinstance(member, Optimizer):
            raise TypeError(f"optimizer= is an Optimizer, or a list of them: got {member!r:.40}")
    if len(members) == 1:
        return {"optimizer": members[0]}
    return {f"optimizer{i}": member for i, member in enumerate(members)}


def _refuse_another_kind(rng: Any) -> None:
    """Refuse a generator whose state JSON cannot write."""
    if rng is not None and not isinstance(getattr(rng, "bit_generator", None), np.random.PCG64):
        raise TypeError(f"rng must be np.random.default_rng(seed), a PCG64: got {rng!r:.40}")


def _of_pythons(fact: Any) -> Any:
    """Return a number of NumPy's as one of Python's, which JSON can write; TypeError for others."""
    return fact.item() if isinstance(fact, np.generic) else json.JSONEncoder().default(fact)


def _read(path: Path) -> tuple[dict[str, Array], dict[str, Any]]:
    """Return the arrays of a checkpoint, and a dict of its facts and its generator's state."""
    safetensors = _safetensors()
    try:
        with safetensors.safe_open(path, "np") as file:
            metadata = file.metadata() or {}
            if "minigrad" not in metadata:
                raise ValueError("save_checkpoint did not write it")
            names = file.keys()
            arrays = {name: file.get_tensor(name) for name in names}
        checksum, _, about = metadata["minigrad"].partition(" ")
        if checksum != _fingerprint(arrays, about):
            raise ValueError("it is not what was written (the checksum differs)")
    except FileNotFoundError:
        raise
    except (safetensors.SafetensorError, OSError, ValueError) as error:  # (OSError: a folder)
        raise ValueError(
            f"{path} is not a checkpoint of minigrad, or is damaged: {error}; for weights of "
            "PyTorch's see help('attention.mapping')"
        ) from None
    return arrays, json.loads(about)


def _fingerprint(arrays: dict[str, Array], about: str) -> str:
    """Return a checksum of all facts, names, shapes, dtypes and bytes."""
    found = hashlib.sha256(about.encode())
    for name, array in sorted(arrays.items()):
        found.update(repr((name, array.shape, array.dtype.name)).encode())
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


def _safetensors() -> Any:
    """Return the package, with its functions for NumPy's arrays."""
    try:
        import safetensors.numpy
    except ImportError:
        raise ImportError("checkpoints need safetensors: pip install safetensors") from None
    return safetensors
