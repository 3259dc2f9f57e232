"""Weights that travel: the same numbers under other names.

Why does a checkpoint of the same model not fit? The same matrix is called `w_1` here and `linear1`
there, is stored transposed, or is one of three in one array. Each layout is written down once, as a
list of pieces, and used in both directions.

A **piece** says which of our arrays make one of theirs. PyTorch's `Linear` stores (d_out, d_in) and
computes x Wᵀ, so its weights are the transposes of ours; W_Q, W_K and W_V become one array, one
below the other. GPT-2's `Conv1D` stores (d_in, d_out) as we do; there the three are side by side.
BERT and Llama keep them apart.

    >>> from attention.mapping import Piece, multi_head_layout, to_ours, to_theirs
    >>> ours = {"w_q.weight": np.array([[1, 2]]), "w_k.weight": np.array([[3, 4]]),
    ...         "w_v.weight": np.array([[5, 6]]), "w_o.weight": np.array([[7], [8]])}
    >>> theirs = to_theirs(ours, multi_head_layout())
    >>> theirs["in_proj_weight"].tolist()
    [[1], [2], [3], [4], [5], [6]]
    >>> all(np.array_equal(x, ours[n]) for n, x in to_ours(theirs, multi_head_layout()).items())
    True

Somebody else's file is read by `safetensors.numpy.load_file(path)`, which gives arrays by name.
Never load a stranger's pickle file, such as PyTorch's .bin and .pt files: it can run any code. Your
own one is read by `torch.load`. NumPy has no bfloat16. Let PyTorch read a file of it
(`safetensors.torch.load_file`), and pass `x.float()` of each array x. `gpt2_from`, `llama_from` and
`bert_from` build the model by a config.json. If none of the layouts below fits, write one: a list
with a `Piece` for each array of the file. What is missing or left over is an error with its name.

Shapes cannot show three mistakes: two matrices of one shape have changed places, a square matrix is
not transposed, or an option of the model (eps, base, pairs) is wrong. So compare the logits of one
long text with those of the author's program, both in float64: they agree to some 1e-10.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from attention.blocks import Array
from attention.encoders import TextEncoder, bert
from attention.models import GPT, gpt2, llama
from minigrad import gelu, gelu_tanh, relu


@dataclass(frozen=True)
class Piece:
    """One array of theirs, made of one or several of ours.

    ours        names of our arrays, which are side by side in theirs, or one below the other if
                matrices are transposed
    transposed  True if matrices are stored (d_out, d_in)
    optional    True if both sides may lack it (a layer without biases)
    """

    theirs: str
    ours: tuple[str, ...]
    transposed: bool
    optional: bool = False


def to_theirs(state: Mapping[str, Any], pieces: Iterable[Piece]) -> dict[str, Array]:
    """Return our state under their names and in their shapes, each array row by row in memory.

    ValueError, with the names, if a piece lacks an array or an array is in no piece.
    """
    left = dict(state)
    found: dict[str, Array] = {}
    for piece in pieces:
        if piece.optional and not any(name in state for name in piece.ours):
            continue
        arrays = [_taken(left, name) for name in piece.ours]
        if len({a.shape for a in arrays}) > 1:
            shapes = " and ".join(f"{n} {a.shape}" for n, a in zip(piece.ours, arrays, strict=True))
            raise ValueError(f"{piece.theirs} is made of equal parts: got {shapes}")
        if piece.transposed:
            arrays = [a.T for a in arrays]
        joined = np.concatenate(arrays, axis=0 if piece.transposed else -1)
        if piece.theirs in found:
            raise ValueError(f"this layout has two pieces that make {piece.theirs}")
        # safetensors writes an array's memory, which in a transposed array is not row by row.
        found[piece.theirs] = np.ascontiguousarray(joined)
    _refuse_left(left)
    return found


def to_ours(
    state: Mapping[str, Any], pieces: Iterable[Piece], *, ignore: Iterable[str] = ()
) -> dict[str, Array]:
    """Return their state under our names and in our shapes, for `load_state_dict`.

    The state's values are arrays, or anything that NumPy makes an array of. Names that end in one
    of `ignore` are left out, such as the masks in GPT-2's checkpoints. ValueError as above.
    """
    ends = tuple(f".{end}" for end in ignore)
    left: dict[str, Any] = {}
    for name, x in state.items():
        if not f".{name}".endswith(ends):
            # (Files of BERT that were TensorFlow's have a norm's gamma and beta.)
            name = name.replace("LayerNorm.gamma", "LayerNorm.weight")
            left[name.replace("LayerNorm.beta", "LayerNorm.bias")] = x
    found: dict[str, Array] = {}
    for piece in pieces:
        if piece.optional and piece.theirs not in left:
            continue
        array = _taken(left, piece.theirs)
        parts = np.split(array, len(piece.ours), axis=0 if piece.transposed else -1)
        for name, part in zip(piece.ours, parts, strict=True):
            if name in found:
                raise ValueError(f"this layout has two pieces that make {name}")
            found[name] = np.ascontiguousarray(part.T if piece.transposed else part)
    _refuse_left(left)
    return found


def multi_head_layout(ours: str = "", theirs: str = "") -> list[Piece]:
    """Return the layout of PyTorch's `nn.MultiheadAttention`. The names may have prefixes."""
    qkv = ("w_q", "w_k", "w_v")
    return [
        Piece(f"{theirs}in_proj_weight", tuple(f"{ours}{w}.weight" for w in qkv), True),
        Piece(f"{theirs}in_proj_bias", tuple(f"{ours}{w}.bias" for w in qkv), True, True),
        *_layers({"w_o": "out_proj"}, ours, theirs),
    ]


PYTORCH = {
    "feed_forward.w_1": "linear1",
    "feed_forward.w_2": "linear2",
    "norm_attention": "norm1",
    "norm_feed_forward": "norm2",
}


def encoder_layer_layout(ours: str = "", theirs: str = "") -> list[Piece]:
    """Return the layout of PyTorch's `nn.TransformerEncoderLayer`, for a `Block`."""
    heads = multi_head_layout(f"{ours}attention.", f"{theirs}self_attn.")
    return heads + _layers(PYTORCH, ours, theirs)


GPT2 = {
    "attention.w_o": "attn.c_proj",
    "feed_forward.w_1": "mlp.c_fc",
    "feed_forward.w_2": "mlp.c_proj",
    "norm_attention": "ln_1",
    "norm_feed_forward": "ln_2",
}


def gpt2_layout(num_blocks: int, theirs: str = "") -> list[Piece]:
    """Return the layout of GPT-2's checkpoints, for the `GPT` that `gpt2` builds.

    Theirs may have the prefix "transformer."; ignore "attn.bias", "attn.masked_bias" (masks) and
    "lm_head.weight" (the token embedding again).
    """
    pieces = _layers({"tokens": "wte", "positions": "wpe", "norm": "ln_f"}, "", theirs)
    for i in range(num_blocks):
        ours = f"blocks.{i}."
        layer = f"{theirs}h.{i}."
        qkv = [f"{ours}attention.{w}" for w in ("w_q", "w_k", "w_v")]
        for kind in ("weight", "bias"):
            joined = tuple(f"{w}.{kind}" for w in qkv)
            pieces.append(Piece(f"{layer}attn.c_attn.{kind}", joined, False))
        pieces += _layers(GPT2, ours, layer, transposed=False)
    return pieces


BERT = {
    "attention.w_q": "attention.self.query",
    "attention.w_k": "attention.self.key",
    "attention.w_v": "attention.self.value",
    "attention.w_o": "attention.output.dense",
    "norm_attention": "attention.output.LayerNorm",
    "feed_forward.w_1": "intermediate.dense",
    "feed_forward.w_2": "output.dense",
    "norm_feed_forward": "output.LayerNorm",
}


def bert_layout(num_blocks: int, theirs: str = "") -> list[Piece]:
    """Return the layout of BERT's checkpoints, for the `TextEncoder` that `bert` builds.

    Theirs may have the prefix "bert."; ignore "position_ids", "pooler.dense.weight" and
    "pooler.dense.bias", and the heads of a task ("cls.…").
    """
    kinds = {"tokens": "word", "positions": "position", "kinds": "token_type"}
    names = {ours: f"{name}_embeddings" for ours, name in kinds.items()} | {"norm": "LayerNorm"}
    pieces = _layers(names, "", f"{theirs}embeddings.")
    for i in range(num_blocks):
        pieces += _layers(BERT, f"encoder.blocks.{i}.", f"{theirs}encoder.layer.{i}.")
    return pieces


LLAMA = {
    **{f"attention.w_{w}": f"self_attn.{w}_proj" for w in "qkvo"},
    "feed_forward.w_1": "mlp.gate_proj",
    "feed_forward.w_3": "mlp.up_proj",
    "feed_forward.w_2": "mlp.down_proj",
    "norm_attention": "input_layernorm",
    "norm_feed_forward": "post_attention_layernorm",
}


def llama_layout(model: GPT, theirs: str = "model.") -> list[Piece]:
    """Return the layout of Llama's checkpoints at Hugging Face, for the `GPT` of `llama_from`.

    A tied model has no "lm_head.weight": ignore that name if their file repeats the embedding under
    it. Older files also hold "rotary_emb.inv_freq". ValueError for a model of other pairs.
    """
    turns = [getattr(block.attention.rotate, "keywords", {}) for block in model.blocks]
    if any(each.get("pairs") != "halves" for each in turns):
        raise ValueError('these files need a model with pairs="halves": build it by llama_from')
    pieces = _layers({"tokens": "embed_tokens", "norm": "norm"}, "", theirs)
    pieces += _layers({"head": "lm_head"}, optional=True)
    for i in range(len(model.blocks)):
        pieces += _layers(LLAMA, f"blocks.{i}.", f"{theirs}layers.{i}.")
    return pieces


# The names of activations at Hugging Face.
ACTIVATIONS = {"gelu_new": gelu_tanh, "gelu_pytorch_tanh": gelu_tanh, "gelu": gelu, "relu": relu}


def gpt2_from(config: Any) -> GPT:
    """Build `gpt2` by a configuration of Hugging Face: the dict of its config.json, or an object.

    Its initial weights are the same each time, and are to be replaced. Its dropout is 0. ValueError
    for a setting that no shape shows and that `gpt2` does not have, such as another scale.
    """
    must = {"model_type": "gpt2", "scale_attn_weights": True, "tie_word_embeddings": True}
    must |= {"scale_attn_by_inverse_layer_idx": False, "add_cross_attention": False}
    names = {"hidden_size": "n_embd", "num_attention_heads": "n_head"}
    names |= {"num_hidden_layers": "n_layer", "max_position_embeddings": "n_positions"}
    c, options = _settings(config, must, names)
    inner, name = c.get("n_inner"), c.get("activation_function", "gelu_new")
    if inner not in (None, 4 * options["d_model"]) or name not in ACTIVATIONS:
        raise ValueError(f"there is no model of ours with n_inner={inner}, activation {name!r}")
    return gpt2(**options, activation=ACTIVATIONS[name], eps=c["layer_norm_epsilon"])


def llama_from(config: Any) -> GPT:
    """Build `llama` by a configuration of Hugging Face, as `gpt2_from` builds `gpt2`.

    It refuses, for example, scaled rotary positions.
    """
    must = {"model_type": "llama", "hidden_act": "silu", "rope_type": "default", "type": "default"}
    without = {"partial_rotary_factor": 1.0, "attention_bias": False, "mlp_bias": False}
    c, options = _settings(config, must | without)
    options |= {"num_kv_heads": c.get("num_key_value_heads") or c["num_attention_heads"]}
    options |= {"d_ff": c["intermediate_size"], "d_k": c.get("head_dim"), "pairs": "halves"}
    options |= {"base": c.get("rope_theta") or 10_000.0, "eps": c["rms_norm_eps"]}
    return llama(**options, tied=c.get("tie_word_embeddings", False))


def bert_from(config: Any) -> TextEncoder:
    """Build `bert` by a configuration of Hugging Face, as `gpt2_from` builds `gpt2`."""
    must = {"model_type": "bert", "hidden_act": "gelu", "position_embedding_type": "absolute"}
    c, options = _settings(config, must | {"is_decoder": False})
    return bert(**options, num_kinds=c["type_vocab_size"], eps=c["layer_norm_eps"])


def _settings(
    config: Any, must: Mapping[str, Any], names: Mapping[str, str] | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a configuration, and the options for its sizes; refuse other settings than `must`.

    `names` has the sizes that have another name in this configuration.
    """
    c = _Config(config if isinstance(config, Mapping) else config.to_dict())
    c |= {usual: c[name] for usual, name in (names or {}).items()}
    c |= (c.get("rope_scaling") or {}) | (c.get("rope_parameters") or {})
    if other := [f"{n}={c[n]!r}" for n, x in must.items() if c.get(n) not in (None, x)]:
        raise ValueError(f"there is no model of ours with {', '.join(other)}")
    options = {"vocab_size": c["vocab_size"], "max_length": c["max_position_embeddings"]}
    options |= {"d_model": c["hidden_size"], "num_heads": c["num_attention_heads"]}
    return c, options | {"num_blocks": c["num_hidden_layers"], "rng": np.random.default_rng(0)}


class _Config(dict[str, Any]):
    """A configuration that says which of its settings is missing."""

    def __missing__(self, name: str) -> Any:
        raise ValueError(f"this configuration has no {name}")


def _layers(
    names: Mapping[str, str],
    ours: str = "",
    theirs: str = "",
    *,
    transposed: bool = True,
    optional: bool = False,
) -> list[Piece]:
    """Return the pieces of layers: weights, and biases if any. A norm's weight is our gain."""
    pieces = []
    for name, other in names.items():
        weight = "gain" if "norm" in name else "weight"
        turned = transposed and ("w_" in name or name == "head")  # (an embedding's rows are rows)
        pieces += [
            Piece(f"{theirs}{other}.weight", (f"{ours}{name}.{weight}",), turned, optional),
            Piece(f"{theirs}{other}.bias", (f"{ours}{name}.bias",), turned, optional=True),
        ]
    return pieces


def _taken(left: dict[str, Any], name: str) -> Array:
    """Remove an array from those still to be mapped, and return it."""
    if name not in left:
        raise ValueError(f"this layout needs {name}, which the state does not have")
    x = left.pop(name)
    if "bfloat16" in str(getattr(x, "dtype", "")):
        raise TypeError(f"{name} is in bfloat16, which NumPy does not have: pass x.float() of it")
    return np.asarray(x)


def _refuse_left(left: Mapping[str, Any]) -> None:
    if left:
        raise ValueError(f"this layout has no place for {', '.join(sorted(map(str, left)))}")
