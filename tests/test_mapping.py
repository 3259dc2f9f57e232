"""Weights that travel: there and back bit for bit, and the same logits at both ends.

BERT's layout is written out below in PyTorch, as its checkpoints name and shape it. That test is
skipped without torch. Llama's is compared with a checkpoint in test_pretrained.py.
"""

import math

import numpy as np
import pytest

from attention import mapping, padding_mask
from attention.encoders import bert
from attention.mapping import Piece, to_ours, to_theirs
from attention.models import llama

try:
    import torch
    from torch.nn import functional
except ImportError:
    torch = None

try:
    import safetensors.numpy as safetensors
except ImportError:
    safetensors = None

needs_torch = pytest.mark.skipif(torch is None, reason="the comparison with PyTorch needs torch")

random = np.random.default_rng(3)
B, T, S, H, D_MODEL, D_FF, V = 2, 3, 5, 7, 14, 17, 19
LENGTH, BLOCKS = 11, 2


def rng():
    return np.random.default_rng(5)


SIZES = {"d_model": D_MODEL, "num_heads": H, "num_blocks": BLOCKS, "rng": rng()}
D_K = 6  # of the llamas: with 2 features a head both pairs would be the same
LLAMA = SIZES | {"num_kv_heads": 1, "d_k": D_K, "d_ff": D_FF, "pairs": "halves"}
LAYOUTS = {  # a model of ours, and its pieces
    "bert": (lambda: bert(V, LENGTH, **SIZES), mapping.bert_layout(BLOCKS)),
    "llama": (lambda: llama(V, **LLAMA), mapping.llama_layout(BLOCKS)),
    "llama, tied, without a prefix": (
        lambda: llama(V, tied=True, **LLAMA),
        mapping.llama_layout(BLOCKS, ""),
    ),
}
layouts = pytest.mark.parametrize(("make", "pieces"), LAYOUTS.values(), ids=LAYOUTS)


def drawn(model):
    """The model's state with every number drawn, so that no two can be confused."""
    return {name: random.standard_normal(x.shape) for name, x in model.state_dict().items()}


def equal(one, other):
    assert one.keys() == other.keys()
    for name, x in one.items():
        np.testing.assert_array_equal(x, other[name], strict=True, err_msg=name)


# ---------------------------------------------------------------- the layouts, in PyTorch

if torch is not None:
    torch.set_num_threads(1)  # on arrays this small, threads only wait for each other

    def named(**parts):
        """A module of parts, under names that are none in Python's eyes or take many lines."""
        module = torch.nn.Module()
        for name, part in parts.items():
            module.add_module(name, part)
        return module

    def split(x):
        return x.unflatten(-1, (H, D_MODEL // H)).transpose(1, 2)

    def attend(q, k, v, allowed):
        scores = (split(q) @ split(k).mT / math.sqrt(D_MODEL // H)).masked_fill(
            ~allowed, -torch.inf
        )
        return (scores.softmax(-1) @ split(v)).transpose(1, 2).flatten(-2)

    class BERT(torch.nn.Module):
        """encoder.layer.0.attention.self.query, …: the names of BertModel."""

        def __init__(self):
            super().__init__()
            norm = lambda: torch.nn.LayerNorm(D_MODEL, eps=1e-12)
            linear = torch.nn.Linear
            self.embeddings = named(
                word_embeddings=torch.nn.Embedding(V, D_MODEL),
                position_embeddings=torch.nn.Embedding(LENGTH, D_MODEL),
                token_type_embeddings=torch.nn.Embedding(2, D_MODEL),
                LayerNorm=norm(),
            )
            self.embeddings.register_buffer("position_ids", torch.arange(LENGTH)[None])
            self.encoder = named(
                layer=torch.nn.ModuleList(
                    named(
                        attention=named(
                            self=named(
                                query=linear(D_MODEL, D_MODEL),
                                key=linear(D_MODEL, D_MODEL),
                                value=linear(D_MODEL, D_MODEL),
                            ),
                            output=named(dense=linear(D_MODEL, D_MODEL), LayerNorm=norm()),
                        ),
                        intermediate=named(dense=linear(D_MODEL, 4 * D_MODEL)),
                        output=named(dense=linear(4 * D_MODEL, D_MODEL), LayerNorm=norm()),
                    )
                    for _ in range(BLOCKS)
                )
            )
            self.pooler = named(dense=linear(D_MODEL, D_MODEL))

        def forward(self, words, kinds, lengths):
            e = self.embeddings
            S = words.shape[1]
            allowed = torch.arange(S) < lengths[:, None, None, None]
            places = e.position_embeddings(e.position_ids[0, :S])
            x = e.LayerNorm(e.word_embeddings(words) + places + e.token_type_embeddings(kinds))
            for layer in self.encoder.layer:
                a = layer.attention.self
                averaged = attend(a.query(x), a.key(x), a.value(x), allowed)
                x = layer.attention.output.LayerNorm(x + layer.attention.output.dense(averaged))
                inner = functional.gelu(layer.intermediate.dense(x))
                x = layer.output.LayerNorm(x + layer.output.dense(inner))
            return x


def randomised(other):
    """PyTorch's model in float64, every parameter drawn."""
    other = other.double()
    with torch.no_grad():
        for p in other.parameters():
            p[...] = torch.tensor(0.4 * random.standard_normal(p.shape))
    return other


def agree(ours, theirs):
    np.testing.assert_allclose(ours, theirs.detach().numpy(), rtol=1e-10, atol=1e-10)


BERT_IGNORED = ["position_ids", "pooler.dense.weight", "pooler.dense.bias"]


# ---------------------------------------------------------------- value and derivative


def test_three_parts_stand_side_by_side_or_transposed_and_one_below_the_other():
    q, k, v = (random.standard_normal((2, 3)) for _ in "qkv")
    ours = {"q": q, "k": k, "v": v}
    for transposed, expected in ((False, np.hstack([q, k, v])), (True, np.vstack([q.T, k.T, v.T]))):
        pieces = [Piece("joined", ("q", "k", "v"), transposed)]
        theirs = to_theirs(ours, pieces)
        np.testing.assert_array_equal(theirs["joined"], expected)
        equal(to_ours(theirs, pieces), ours)


WORDS, KINDS = random.integers(0, V, (B, S)), random.integers(0, 2, (B, S))


@needs_torch
def test_a_bert_of_that_layout_has_our_output_and_our_gradients_under_its_names():
    theirs, pieces = randomised(BERT()), mapping.bert_layout(BLOCKS)
    ours = bert(V, LENGTH, **SIZES)
    ours.load_state_dict(to_ours(theirs.state_dict(), pieces, ignore=BERT_IGNORED))
    y = ours(WORDS, kinds=KINDS, mask=padding_mask([2, 5], S))
    result = theirs(torch.tensor(WORDS), torch.tensor(KINDS), torch.tensor([2, 5]))
    agree(y.data, result)
    g = random.standard_normal(y.shape)
    y.backward(g)
    result.backward(torch.tensor(g))
    found = to_theirs({name: p.grad for name, p in ours.named_parameters()}, pieces)
    expected = {name: p.grad for name, p in theirs.named_parameters() if p.grad is not None}
    assert found.keys() == expected.keys()
    for name, gradient in expected.items():
        agree(found[name], gradient)


# ---------------------------------------------------------------- law


@layouts
def test_there_and_back_every_number_is_what_it_was_bit_for_bit(make, pieces):
    """Also through bytes: safetensors writes an array's memory, so theirs lie row by row in it."""
    model = make()
    ours = {name: x.astype(np.float32) for name, x in drawn(model).items()}
    theirs = to_theirs(ours, pieces)
    back = to_ours(theirs, pieces)
    equal(back, ours)
    equal(to_theirs(back, pieces), theirs)
    assert all(x.flags.c_contiguous for x in (*theirs.values(), *back.values()))
    if safetensors is not None:
        equal(to_ours(safetensors.load(safetensors.save(theirs)), pieces), ours)
    model.load_state_dict(back)
    assert sum(x.size for x in theirs.values()) == sum(x.size for x in ours.values())


@layouts
def test_each_of_our_arrays_is_in_one_piece_and_each_of_theirs_is_one_piece(make, pieces):
    ours = [name for piece in pieces for name in piece.ours]
    theirs = [piece.theirs for piece in pieces]
    assert len(ours) == len(set(ours)) and len(theirs) == len(set(theirs))
    state = make().state_dict()
    assert set(state) <= set(ours)
    assert {n for p in pieces if not p.optional for n in p.ours} <= set(state)


def test_what_is_ignored_is_ignored_by_its_whole_name():
    piece = [Piece("a.b_bias", ("c",), False)]
    state = {"a.b_bias": np.ones(2), "a.bias": np.ones(3), "bias": np.ones(5)}
    assert list(to_ours(state, piece, ignore=["bias"])) == ["c"]


# ---------------------------------------------------------------- refusal


def test_names_that_are_missing_or_unexpected_are_refused_by_name_on_both_sides():
    make, pieces = LAYOUTS["bert"]
    ours = drawn(make())
    for state, f in ((ours, to_theirs), (to_theirs(ours, pieces), to_ours)):
        first, *others = state
        with pytest.raises(
            ValueError, match=f"^this layout needs {first}, which the state does not"
        ):
            f({name: state[name] for name in others}, pieces)
        with pytest.raises(ValueError, match="^this layout has no place for extra, more$"):
            f(state | {"more": np.ones(2), "extra": np.ones(2)}, pieces)
