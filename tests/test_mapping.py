"""Weights that travel: there and back bit for bit, and the same logits at both ends.

The layouts of GPT-2, BERT and Llama are written out below in PyTorch, as their checkpoints name and
shape them. Those tests are skipped without torch.
"""

import math
import re
from types import SimpleNamespace

import numpy as np
import pytest

from attention import MultiHeadAttention, mapping, padding_mask
from attention.blocks import Block, FeedForward
from attention.encoders import bert
from attention.mapping import Piece, bert_from, llama_from, llama_layout, to_ours, to_theirs
from attention.models import gpt2, llama

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
LENGTH, BLOCKS, EPS, BASE = 11, 2, 0.1, 500.0


def rng():
    return np.random.default_rng(5)


def heads(bias):
    return MultiHeadAttention(D_MODEL, H, bias=bias, rng=rng())


def block(cross):
    feed_forward = FeedForward(D_MODEL, D_FF, rng=rng())
    return Block(heads(True), feed_forward, cross=heads(True) if cross else None)


SIZES = {"d_model": D_MODEL, "num_heads": H, "num_blocks": BLOCKS, "rng": rng()}
D_K = 6  # of the llamas: with 2 features a head both pairs would be the same
LLAMA = SIZES | {"num_kv_heads": 1, "d_k": D_K, "d_ff": D_FF, "pairs": "halves"}
CONFIG = {"vocab_size": V, "hidden_size": D_MODEL, "num_attention_heads": H}  # Hugging Face's
CONFIG |= {"num_hidden_layers": BLOCKS, "max_position_embeddings": LENGTH}
BERT_CONFIG = CONFIG | {"model_type": "bert", "type_vocab_size": 2, "layer_norm_eps": EPS}
GPT2_CONFIG = {"vocab_size": V, "n_positions": LENGTH, "n_embd": D_MODEL, "n_layer": BLOCKS}
GPT2_CONFIG |= {"n_head": H, "layer_norm_epsilon": EPS, "n_inner": None, "model_type": "gpt2"}
GPT2_CONFIG |= {"activation_function": "gelu_new", "attn_pdrop": 0.1}
LLAMA_CONFIG = CONFIG | {"model_type": "llama", "num_key_value_heads": 1, "head_dim": D_K}
LLAMA_CONFIG |= {"intermediate_size": D_FF, "rms_norm_eps": EPS, "tie_word_embeddings": False}
LLAMA_CONFIG |= {"rope_parameters": {"rope_theta": BASE, "rope_type": "default"}}
LAYOUTS = {  # a model of ours, and its pieces
    "multi_head": (lambda: heads(True), mapping.multi_head_layout()),
    "multi_head without biases": (lambda: heads(False), mapping.multi_head_layout()),
    "encoder_layer": (lambda: block(False), mapping.encoder_layer_layout()),
    "gpt2 with a prefix": (
        lambda: gpt2(V, LENGTH, **SIZES),
        mapping.gpt2_layout(BLOCKS, "transformer."),
    ),
    "bert": (lambda: bert(V, LENGTH, **SIZES), mapping.bert_layout(BLOCKS)),
    "llama": (lambda: llama(V, **LLAMA), llama_layout(llama(V, **LLAMA))),
    "llama, tied, without a prefix": (
        lambda: llama(V, tied=True, **LLAMA),
        llama_layout(llama(V, **LLAMA), ""),
    ),
}
layouts = pytest.mark.parametrize(("make", "pieces"), LAYOUTS.values(), ids=LAYOUTS)


def drawn(model):
    """Return the model's state with every number drawn, so that no two can be confused."""
    return {name: random.standard_normal(x.shape) for name, x in model.state_dict().items()}


def equal(one, other):
    assert one.keys() == other.keys()
    for name, x in one.items():
        np.testing.assert_array_equal(x, other[name], strict=True, err_msg=name)


# ---------------------------------------------------------------- the layouts, in PyTorch

if torch is not None:
    torch.set_num_threads(1)  # on arrays this small, threads only wait for each other

    def named(**parts):
        """Return a module of parts, under names that are not identifiers or take many lines."""
        module = torch.nn.Module()
        for name, part in parts.items():
            module.add_module(name, part)
        return module

    class Conv1D(torch.nn.Module):
        """GPT-2's Linear, which stores (d_in, d_out)."""

        def __init__(self, d_in, d_out):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.empty(d_in, d_out))
            self.bias = torch.nn.Parameter(torch.empty(d_out))

        def forward(self, x):
            return x @ self.weight + self.bias

    def split(x):
        return x.unflatten(-1, (H, D_MODEL // H)).transpose(1, 2)

    def attend(q, k, v, allowed):
        scores = (split(q) @ split(k).mT / math.sqrt(D_MODEL // H)).masked_fill(
            ~allowed, -torch.inf
        )
        return (scores.softmax(-1) @ split(v)).transpose(1, 2).flatten(-2)

    class GPT2(torch.nn.Module):
        """GPT2LMHeadModel's names: transformer.wte, transformer.h.0.attn.c_attn, …, lm_head."""

        def __init__(self):
            super().__init__()
            self.transformer = named(
                wte=torch.nn.Embedding(V, D_MODEL),
                wpe=torch.nn.Embedding(LENGTH, D_MODEL),
                h=torch.nn.ModuleList(
                    named(
                        ln_1=torch.nn.LayerNorm(D_MODEL, eps=EPS),
                        attn=named(
                            c_attn=Conv1D(D_MODEL, 3 * D_MODEL), c_proj=Conv1D(D_MODEL, D_MODEL)
                        ),
                        ln_2=torch.nn.LayerNorm(D_MODEL, eps=EPS),
                        mlp=named(
                            c_fc=Conv1D(D_MODEL, 4 * D_MODEL), c_proj=Conv1D(4 * D_MODEL, D_MODEL)
                        ),
                    )
                    for _ in range(BLOCKS)
                ),
                ln_f=torch.nn.LayerNorm(D_MODEL, eps=EPS),
            )
            self.lm_head = torch.nn.Linear(D_MODEL, V, bias=False)
            self.lm_head.weight = self.transformer.wte.weight
            for layer in self.transformer.h:  # older checkpoints carry masks
                mask = torch.ones(LENGTH, LENGTH).tril()[None, None]
                layer.attn.register_buffer("bias", mask)
                layer.attn.register_buffer("masked_bias", torch.tensor(-1e4))

        def forward(self, words):
            t = self.transformer
            T = words.shape[1]
            causal = torch.ones(T, T, dtype=torch.bool).tril()
            x = t.wte(words) + t.wpe(torch.arange(T))
            for layer in t.h:
                q, k, v = layer.attn.c_attn(layer.ln_1(x)).chunk(3, -1)
                x = x + layer.attn.c_proj(attend(q, k, v, causal))
                inner = functional.gelu(layer.mlp.c_fc(layer.ln_2(x)), approximate="tanh")
                x = x + layer.mlp.c_proj(inner)
            return self.lm_head(t.ln_f(x))

    class BERT(torch.nn.Module):
        """BertModel's names: encoder.layer.0.attention.self.query, …"""

        def __init__(self):
            super().__init__()
            norm = lambda: torch.nn.LayerNorm(D_MODEL, eps=EPS)
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
    """Return PyTorch's model in float64, every parameter drawn."""
    other = other.double()
    with torch.no_grad():
        for p in other.parameters():
            p[...] = torch.tensor(0.4 * random.standard_normal(p.shape))
    return other


def agree(ours, theirs):
    np.testing.assert_allclose(ours, theirs.detach().numpy(), rtol=1e-10, atol=1e-10)


GPT2_PIECES = mapping.gpt2_layout(BLOCKS, "transformer.")
BERT_IGNORED = ["position_ids", "pooler.dense.weight", "pooler.dense.bias"]


# ---------------------------------------------------------------- value and derivative


WORDS, KINDS = random.integers(0, V, (B, S)), random.integers(0, 2, (B, S))
CHECKPOINTS = {  # theirs, its layout and what it has beyond ours; calls of both
    "gpt2": (  # "attn.bias" is a mask, and "attn.c_attn.bias" a parameter that ends alike
        lambda: GPT2(),
        (
            lambda: mapping.gpt2_from(GPT2_CONFIG),
            GPT2_PIECES,
            ["attn.bias", "attn.masked_bias", "lm_head.weight"],
        ),
        lambda ours: ours(WORDS),
        lambda theirs: theirs(torch.tensor(WORDS)),
    ),
    "bert": (
        lambda: BERT(),
        (lambda: bert_from(BERT_CONFIG), mapping.bert_layout(BLOCKS), BERT_IGNORED),
        lambda ours: ours(WORDS, kinds=KINDS, mask=padding_mask([2, 5], S)),
        lambda theirs: theirs(torch.tensor(WORDS), torch.tensor(KINDS), torch.tensor([2, 5])),
    ),
}


@needs_torch
@pytest.mark.parametrize(
    ("make", "layout", "call", "call_theirs"), CHECKPOINTS.values(), ids=CHECKPOINTS
)
def test_a_model_of_that_layout_has_our_output_and_our_gradients_under_its_names(
    make, layout, call, call_theirs
):
    theirs, (make_ours, pieces, ignored) = randomised(make()), layout
    ours = make_ours()
    ours.load_state_dict(to_ours(theirs.state_dict(), pieces, ignore=ignored))
    y, result = call(ours), call_theirs(theirs)
    agree(y.data, result)
    g = random.standard_normal(y.shape)
    y.backward(g)
    result.backward(torch.tensor(g))
    found = to_theirs({name: p.grad for name, p in ours.named_parameters()}, pieces)
    expected = {name: p.grad for name, p in theirs.named_parameters() if p.grad is not None}
    assert found.keys() == expected.keys()
    for name, gradient in expected.items():
        agree(found[name], gradient)


def llama_of(theirs, words):
    """Return the logits of LlamaForCausalLM (with one head of keys), from its arrays by name."""
    norm = lambda x, gain: x / np.sqrt((x * x).mean(-1, keepdims=True) + EPS) * gain
    turn = np.exp(1j * np.arange(S)[:, None] * BASE ** (-np.arange(D_K // 2) / (D_K // 2)))

    def turned(x):
        z = (x[..., : D_K // 2] + 1j * x[..., D_K // 2 :]) * turn
        return np.concatenate([z.real, z.imag], -1)

    x = theirs["model.embed_tokens.weight"][words]
    for i in range(BLOCKS):
        w = lambda name, i=i: theirs[f"model.layers.{i}.{name}.weight"].T
        h = norm(x, w("input_layernorm"))
        q, k, v = (h @ w(f"self_attn.{name}_proj") for name in "qkv")
        q = q.reshape(B, S, H, D_K).swapaxes(1, 2)
        scores = turned(q) @ turned(k)[:, None].mT / math.sqrt(D_K)
        e = np.tril(np.exp(scores))
        heads = (e / e.sum(-1, keepdims=True)) @ v[:, None]
        x = x + heads.swapaxes(1, 2).reshape(B, S, H * D_K) @ w("self_attn.o_proj")
        h = norm(x, w("post_attention_layernorm"))
        gate = h @ w("mlp.gate_proj")
        x = x + (gate / (1 + np.exp(-gate)) * (h @ w("mlp.up_proj"))) @ w("mlp.down_proj")
    return norm(x, theirs["model.norm.weight"]) @ theirs["lm_head.weight"].T


def test_a_llama_built_from_a_configuration_has_the_logits_of_that_file():
    model = llama_from(LLAMA_CONFIG)
    theirs = {n: 0.4 * x for n, x in to_theirs(drawn(model), llama_layout(model)).items()}
    model.load_state_dict(to_ours(theirs, llama_layout(model)))
    np.testing.assert_allclose(model(WORDS).data, llama_of(theirs, WORDS), rtol=1e-10, atol=1e-10)


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


def test_norms_with_gamma_and_beta_are_read_as_files_of_the_first_bert_have_them():
    make, pieces = LAYOUTS["bert"]
    ours = drawn(make())
    theirs = {
        re.sub("LayerNorm.bias$", "LayerNorm.beta", re.sub("Norm.weight$", "Norm.gamma", name)): x
        for name, x in to_theirs(ours, pieces).items()
    }
    assert "embeddings.LayerNorm.gamma" in theirs and "embeddings.LayerNorm.beta" in theirs
    equal(to_ours(theirs, pieces), ours)


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


@pytest.mark.parametrize(
    "make",
    [lambda: llama(V, **LLAMA | {"pairs": "neighbours"}), lambda: gpt2(V, LENGTH, **SIZES)],
)
def test_a_model_whose_rotary_pairs_are_not_those_of_the_file_is_refused(make):
    with pytest.raises(ValueError, match='^these files need a model with pairs="halves": build it'):
        llama_layout(make())


@pytest.mark.parametrize(("name", "activation"), mapping.ACTIVATIONS.items())
def test_a_gpt2_of_a_configuration_has_its_activation(name, activation):
    model = mapping.gpt2_from(GPT2_CONFIG | {"activation_function": name, "n_inner": 4 * D_MODEL})
    assert model.blocks[0].feed_forward.activation is activation and model.dropout is None


def test_a_configuration_is_a_dict_or_an_object_and_may_be_of_the_first_llama():
    first = {n: x for n, x in LLAMA_CONFIG.items() if n not in ("num_key_value_heads", "head_dim")}
    model = llama_from(SimpleNamespace(to_dict=lambda: first | {"rope_parameters": None}))
    layer = model.blocks[0].attention
    assert layer.w_k.weight.shape == (D_MODEL, D_MODEL)
    assert layer.rotate.keywords == {"base": 1e4, "pairs": "halves"} and model.max_length == LENGTH


@pytest.mark.parametrize(
    ("build", "config", "other"),
    [
        (llama_from, LLAMA_CONFIG, {"model_type": "gemma"}),
        (llama_from, LLAMA_CONFIG, {"hidden_act": "gelu"}),
        (llama_from, LLAMA_CONFIG, {"rope_scaling": {"type": "linear", "factor": 2.0}}),
        (llama_from, LLAMA_CONFIG, {"rope_parameters": {"rope_type": "llama3"}}),
        (llama_from, LLAMA_CONFIG, {"partial_rotary_factor": 0.5}),
        (llama_from, LLAMA_CONFIG, {"attention_bias": True}),
        (llama_from, LLAMA_CONFIG, {"mlp_bias": True}),
        (mapping.gpt2_from, GPT2_CONFIG, {"model_type": "gpt_neo"}),
        (mapping.gpt2_from, GPT2_CONFIG, {"activation_function": "swish"}),
        (mapping.gpt2_from, GPT2_CONFIG, {"n_inner": 5 * D_MODEL}),
        (mapping.gpt2_from, GPT2_CONFIG, {"scale_attn_weights": False}),
        (mapping.gpt2_from, GPT2_CONFIG, {"scale_attn_by_inverse_layer_idx": True}),
        (mapping.gpt2_from, GPT2_CONFIG, {"add_cross_attention": True}),
        (mapping.gpt2_from, GPT2_CONFIG, {"tie_word_embeddings": False}),
        (bert_from, BERT_CONFIG, {"position_embedding_type": "relative_key"}),
        (bert_from, BERT_CONFIG, {"is_decoder": True}),
    ],
)
def test_a_setting_that_no_shape_shows_and_no_model_of_ours_has_is_refused(build, config, other):
    with pytest.raises(ValueError, match="^there is no model of ours with "):
        build(config | other)


@pytest.mark.parametrize(
    ("build", "config", "name"),
    [
        (mapping.gpt2_from, GPT2_CONFIG, "n_embd"),
        (mapping.gpt2_from, GPT2_CONFIG, "layer_norm_epsilon"),
        (llama_from, LLAMA_CONFIG, "rms_norm_eps"),
        (bert_from, BERT_CONFIG, "vocab_size"),
    ],
)
def test_a_setting_that_is_missing_is_named(build, config, name):
    with pytest.raises(ValueError, match=f"^this configuration has no {name}$"):
        build({each: value for each, value in config.items() if each != name})


@needs_torch
def test_an_array_of_bfloat16_is_refused_by_its_name():
    with pytest.raises(TypeError, match=r"^a is in bfloat16, .* pass x.float\(\) of it$"):
        to_ours({"a": torch.ones(2, dtype=torch.bfloat16)}, [Piece("a", ("b",), False)])
