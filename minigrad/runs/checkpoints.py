"""9.2 · Checkpoints: a run that can be stopped at any moment.

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
    optimizer: Optimizer | None = None,
    rng: np.random.Generator | None = None,
    **facts: Any,
) -> Path:
    """Write all that a run needs to go on, whole or not at all, and return the path.

    No other thread may change the model, the optimizer or the generator meanwhile: the file would
    hold a part of one step and a part of the next.

    rng    the one generator that the data and every Dropout share: after loading, a layer with
           another one would draw other masks. It is of NumPy's default kind, PCG64, because JSON
           can write its state
    facts  what else to remember, such as step=7: anything that JSON can write
    """
    _refuse_other_kinds(model, optimizer, rng)
    if rng is not None and not isinstance(rng.bit_generator, np.random.PCG64):
        raise TypeError(f"a checkpoint keeps a PCG64 generator: got {rng.bit_generator!r}")
    arrays = {f"model.{name}": array for name, array in model.state_dict().items()}
    if optimizer is not None:
        state = optimizer.state_dict()
        arrays |= {f"optimizer.{name}": array for name, array in state.items()}
    for name, fact in facts.items():
        _refuse_what_json_changes(name, fact)
    about: dict[str, Any] = {
        "facts": facts,
        "rng": None if rng is None else rng.bit_generator.state,
    }
    about["sha256"] = _fingerprint(arrays, about)
    # safetensors stores an array's memory as it is, and the memory of a transposed view is not
    # transposed: the values would come back in another order. So each array is copied in C order.
    laid_out = {name: np.array(array, order="C") for name, array in arrays.items()}
    return write_whole(path, _safetensors().save(laid_out, {"minigrad": json.dumps(about)}))


def load_checkpoint(
    path: str | Path,
    *,
    model: Module,
    optimizer: Optimizer | None = None,
    rng: np.random.Generator | None = None,
) -> dict[str, Any]:
    """Set a model, its optimizer and its generator from a file, and return the facts.

    ValueError if the file is not a checkpoint of minigrad, is damaged, or does not fit; then
    nothing has been changed. No other thread may use the model, the optimizer or the generator
    meanwhile.
    """
    _refuse_other_kinds(model, optimizer, rng)
    arrays, about = _read(Path(path))
    for name, wanted in (("optimizer", optimizer), ("rng", rng)):
        held = about["rng"] if name == "rng" else any(n.startswith("optimizer.") for n in arrays)
        if wanted is not None and not held:
            raise ValueError(f"{path} holds no {name}")
    parts: dict[str, dict[str, Array]] = {"model": {}, "optimizer": {}}
    for name, array in arrays.items():
        part, _, inner = name.partition(".")
        parts[part][inner] = array
    facts = dict(about["facts"])
    # The generator is set last. If one of the three does not fit, all get their old state back.
    before = model.state_dict(), None if optimizer is None else optimizer.state_dict()
    try:
        model.load_state_dict(parts["model"])
        if optimizer is not None:
            optimizer.load_state_dict(parts["optimizer"])
        if rng is not None:
            rng.bit_generator.state = about["rng"]
    except Exception as error:  # of any kind: a damaged file can cause any error here
        model.load_state_dict(before[0])
        if optimizer is not None and before[1] is not None:
            optimizer.load_state_dict(before[1])
        raise ValueError(f"{path} does not fit: {error}") from None
    return facts


def checkpoint_facts(path: str | Path) -> dict[str, Any]:
    """The facts of a checkpoint alone: what a program looks at before it sets anything from it."""
    return dict(_read(Path(path))[1]["facts"])


def _read(path: Path) -> tuple[dict[str, Array], dict[str, Any]]:
    """The arrays of a checkpoint, and what is written about them."""
    data = path.read_bytes()
    try:
        arrays = _safetensors().load(data)
        # The format: 8 bytes with the length of a JSON header, the header, then the arrays.
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
        about = json.loads(header["__metadata__"]["minigrad"])
        if not isinstance(about["facts"], dict) or not isinstance(about["rng"], dict | None):
            raise TypeError("it does not say what it holds")
        if strange := [n for n in arrays if n.partition(".")[0] not in ("model", "optimizer")]:
            raise ValueError(f"it holds {', '.join(strange)}")
        written = about.pop("sha256", None)
        if written is not None and written != _fingerprint(arrays, about):  # None: an older file
            raise ValueError("it is not what was written (the checksum differs)")
    except ImportError:
        raise
    except Exception as error:  # (safetensors has errors of its own, and JSON others)
        if isinstance(error, KeyError):
            error = ValueError(f"it lacks {error}")
        raise ValueError(
            f"{path} is not a checkpoint of minigrad, or is damaged: {error}"
        ) from None
    return arrays, about


def _refuse_other_kinds(model: Any, optimizer: Any, rng: Any) -> None:
    for name, given, kind in (
        ("model", model, Module),
        ("optimizer", optimizer, Optimizer),
        ("rng", rng, np.random.Generator),
    ):
        if not isinstance(given, kind) and (given is not None or kind is Module):
            raise TypeError(
                f"{name}= must be of the class {kind.__name__}: got {type(given).__name__}"
            )


def _fingerprint(arrays: dict[str, Array], about: dict[str, Any]) -> str:
    """A number for all facts, names, shapes, dtypes and bytes: one changed bit gives another."""
    found = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    for name, array in sorted(arrays.items()):
        found.update(repr((name, array.shape, array.dtype.name)).encode())
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


def _refuse_what_json_changes(name: str, fact: Any) -> None:
    """Only what comes back from JSON as it went in: of these types, and of no others."""
    if isinstance(fact, dict):
        for key, value in fact.items():
            if type(key) is not str:
                raise TypeError(
                    f"the fact {name} has the key {key!r}, which would come back as text: "
                    f"use {str(key)!r}"
                )
            _refuse_what_json_changes(f"{name}[{key!r}]", value)
    elif type(fact) is list:
        for i, value in enumerate(fact):
            _refuse_what_json_changes(f"{name}[{i}]", value)
    elif type(fact) not in (str, int, float, bool, type(None)):
        remedies = {tuple: "list(...)", np.ndarray: ".tolist()"}
        remedy = remedies.get(type(fact), "int(...), float(...) or str(...)")
        raise TypeError(
            f"the fact {name} has the type {type(fact).__name__}, which would not come back: "
            f"use {remedy}"
        )


def _safetensors() -> Any:
    try:
        import safetensors.numpy
    except ImportError:
        raise ImportError('checkpoints need safetensors: pip install -e ".[save]"') from None
    return safetensors.numpy
