"""Demos · Museum: square matrix not transposed.

This mistake is made with weights that another program has trained. PyTorch stores the matrix of a
layer as (d_out, d_in), and here it is (d_in, d_out). Nearly all matrices of attention are square.
They fit either way, so every name and every shape is right, and each number is one that was
trained.
"""

import numpy as np

from attention import MultiHeadAttention
from minigrad import Tensor, softmax

REPAIR = (
    "Write the layout down once, as in attention/mapping.py. Then compare one output with the "
    "author's. The shapes do not show this mistake, nor that two matrices changed places."
)


def broken(layer, theirs):
    """The layer, with the matrices of a checkpoint that stores them as (d_out, d_in)."""
    layer.load_state_dict({f"w_{name[0]}.weight": w for name, w in theirs.items()})
    return layer


def repaired(layer, theirs):
    """The layer, with the matrices of a checkpoint that stores them as (d_out, d_in)."""
    layer.load_state_dict({f"w_{name[0]}.weight": w.T for name, w in theirs.items()})
    return layer


def published(rng):
    """A layer that gives each position the token before it: four matrices (16, 16)."""
    one, other = (np.linalg.qr(rng.standard_normal((16, 16)))[0] for _ in range(2))
    token, place = np.diag([1.0] * 8 + [0.0] * 8), np.diag([0.0] * 8 + [1.0] * 8)
    after = np.roll(place, 1, axis=0)  # position s → s + 1
    return {
        "q_proj": 80 * one @ place,
        "k_proj": one @ after,
        "v_proj": other @ token,
        "o_proj": other.T,
    }


def authors(theirs, x):
    """Return the output of the author's program, which computes x Wᵀ."""
    q, k, v = (x @ theirs[name].T for name in ("q_proj", "k_proj", "v_proj"))
    return softmax(q @ k.mT / 4) @ v @ theirs["o_proj"].T


def texts(rng):
    """64 texts of 8 tokens: rows with a 1 for the token, and one for the position."""
    tokens = rng.integers(0, 8, (64, 8))
    positions = np.broadcast_to(np.eye(8), (64, 8, 8))
    return tokens, np.concatenate([np.eye(8)[tokens], positions], axis=-1)


def loaded(load, rng):
    """A new layer with published weights; and the weights."""
    theirs = published(rng)
    return load(MultiHeadAttention(16, 1, rng=rng), theirs), theirs


def symptom(load, rng):
    """The layer was made to give each position the token before it; most get another token.
    The shapes, the weights' sum and the lengths of the outputs look right.
    """
    layer, _ = loaded(load, rng)
    tokens, x = texts(rng)
    y = layer(Tensor(x)).data
    found = y[:, 1:, :8].argmax(axis=-1)
    return {
        "matrices of another shape": sum(p.shape != (16, 16) for p in layer.parameters()),
        "sum of a query's weights": layer.weights(Tensor(x)).data.sum(axis=-1).mean(),
        "length of an output": np.linalg.norm(y, axis=-1).mean(),
        "positions that find the token before": f"{(found == tokens[:, :-1]).mean():.0%}",
    }


def check(load, rng):
    """One output is known: what the author's program gives, with the same weights."""
    layer, theirs = loaded(load, rng)
    x = texts(rng)[1][:1]
    off = abs(layer(Tensor(x)).data - authors(theirs, x)).max()
    assert off < 1e-9, f"an output differs from the author's by {off:.2g}"


def refusal():
    """The same mistake is made with matrices that are not square."""
    layer = MultiHeadAttention(16, 1, d_k=4, d_v=16, rng=np.random.default_rng(0))
    theirs = published(np.random.default_rng(0))
    return broken(layer, theirs | {name: theirs[name][:4] for name in ("q_proj", "k_proj")})
