"""Chapter 7.1 · Former names: states that were saved under them load, and keywords are refused."""

import inspect
import re
from importlib import import_module
from typing import ClassVar

import numpy as np
import pytest

from attention import (
    GPT,
    Classifier,
    Encoder,
    LearnedPositions,
    MultiHeadAttention,
    TextEncoder,
    Transformer,
    attention,
    attention_weights,
    bert,
    fused_attention,
    generate,
    gpt2,
    llama,
)
from minigrad import Tensor
from minigrad.nn import Embedding, LayerNorm, Linear, Module, renamed
from minigrad.optim import Adam
from minigrad.runs.checkpoints import load_checkpoint, save_checkpoint

T, S, V, D_MODEL = 3, 5, 11, 14
SIZES = {"d_model": D_MODEL, "num_heads": 7, "num_blocks": 2}


def rng(seed=5):
    return np.random.default_rng(seed)


def x(*shape):
    return Tensor(rng().standard_normal(shape), requires_grad=True)


class Pair(Module):
    """Two models in a list, and in a dict an embedding that both have."""

    def __init__(self, seed):
        self.models = [gpt2(V, S, **SIZES, rng=rng(seed)), classifier(seed)]
        self.models[1].encoder.tokens = self.models[0].tokens
        self.shared = {"table": self.models[0].tokens}


class First(Module):
    """An embedding is found under its first name, which is not that of the model's attribute."""

    def __init__(self, seed):
        self.table = Embedding(V, D_MODEL, rng=rng(seed))
        self.model = GPT(self.table, [], LayerNorm(D_MODEL))


def classifier(seed):
    small = {**SIZES, "num_kinds": 3}
    return Classifier(bert(V, S, **small, rng=rng(seed)), D_MODEL, 2, rng=rng(seed))


def transformer(seed):
    return Transformer(V + 2, V, **SIZES, d_ff=17, rng=rng(seed))


def one_vocabulary(seed):
    model = Transformer(V, V, **SIZES, d_ff=17, rng=rng(seed))
    model.target_tokens = model.source_tokens
    return model


# Each model, and what its state was called when `tokens` was `words`: the names that have changed.
MODELS = {
    "gpt2": (lambda seed: gpt2(V, S, **SIZES, rng=rng(seed)), ["words.weight"]),
    "llama": (
        lambda seed: llama(V, **SIZES, num_kv_heads=1, rng=rng(seed)),
        ["words.weight"],
    ),
    "bert": (lambda seed: bert(V, S, **SIZES, rng=rng(seed)), ["words.weight"]),
    "classifier": (classifier, ["encoder.words.weight"]),
    "Transformer": (transformer, ["source_words.weight", "target_words.weight"]),
    "one vocabulary": (one_vocabulary, ["source_words.weight"]),
    "models in a list": (Pair, ["models.0.words.weight"]),
    "another name first": (First, []),
}
models = pytest.mark.parametrize(("make", "changed"), MODELS.values(), ids=MODELS)


def formerly(state):
    """The state as the former version saved it."""
    return {name.replace("tokens.", "words."): array for name, array in state.items()}


# ---------------------------------------------------------------- value


@models
def test_a_state_under_former_names_loads(make, changed):
    saved, model = make(1), make(2)
    former = formerly(saved.state_dict())
    assert [name for name in former if name not in saved.state_dict()] == changed
    model.load_state_dict(former)
    for name, array in saved.state_dict().items():
        np.testing.assert_array_equal(model.state_dict()[name], array)
    made_anew = make(3)
    made_anew.load_state_dict(model.state_dict())  # present names load as ever


@models
def test_a_checkpoint_under_former_names_goes_on_with_its_optimizer(
    make, changed, tmp_path, monkeypatch
):
    def step(model, optimizer):
        for p in model.parameters():
            p.grad = 0.1 * p.data + 0.3
        optimizer.step()

    saved, model = make(1), make(2)
    optimizer, resumed = Adam(saved.parameters()), Adam(model.parameters())
    step(saved, optimizer)
    with monkeypatch.context() as patched:
        state = saved.state_dict
        patched.setattr(saved, "state_dict", lambda: formerly(state()), raising=False)
        path = save_checkpoint(tmp_path / "run", model=saved, optimizer=optimizer, step=1)
    assert all(name.encode() in path.read_bytes() for name in changed)
    assert load_checkpoint(path, model=model, optimizer=resumed) == {"step": 1}
    step(saved, optimizer)
    step(model, resumed)
    for p, q in zip(saved.parameters(), model.parameters(), strict=True):
        np.testing.assert_array_equal(p.data, q.data)


class Inner(Module):
    former_names: ClassVar = {"gamma": "gain", "table": "rows"}

    def __init__(self):
        self.gain = Tensor([1.0], requires_grad=True)
        self.rows = [Tensor([2.0]), {"last": Tensor([3.0])}]


class Outer(Module):
    former_names: ClassVar = {"block": "inner", "blocks": "layers"}

    def __init__(self):
        self.inner = Inner()
        self.layers = [Inner()]


FORMER = {
    "block.gamma": "inner.gain",
    "inner.gamma": "inner.gain",
    "block.gain": "inner.gain",
    "block.table.1.last": "inner.rows.1.last",
    "blocks.0.table.0": "layers.0.rows.0",
    "layers.0.gamma": "layers.0.gain",
}


@pytest.mark.parametrize(("former", "present"), FORMER.items())
def test_a_name_changes_at_every_depth(former, present):
    model = Outer()
    state = model.state_dict()
    assert present in state
    del state[present]
    model.load_state_dict(state | {former: np.array([7.0])})
    assert model.state_dict()[present] == 7
    model.load_state_dict({former: np.array([9.0])}, strict=False)
    assert model.state_dict()[present] == 9


# ---------------------------------------------------------------- law


def test_a_leaf_that_has_a_former_name_keeps_it():
    class Both(Inner):
        def __init__(self):
            super().__init__()
            self.gamma = Tensor([5.0])

    model = Both()
    model.load_state_dict({"gamma": np.array([6.0])}, strict=False)
    assert (model.gamma.item(), model.gain.item()) == (6, 1)


@pytest.mark.parametrize("f", [attention, attention_weights, fused_attention, generate, gpt2])
def test_help_and_signature_are_those_of_the_function(f):
    names = inspect.signature(f).parameters
    assert f.__doc__ and f.__name__ == f.__qualname__
    assert not {"bias", "num_words", "args", "options", "kwargs"} & set(names)


def test_positions_are_passed_on_and_an_error_within_is_left_as_it_is():
    @renamed(old="new")
    def f(a, *, new=0, **more):
        if new == 13:
            raise TypeError("not 13")
        return a, new, more

    assert f(1) == (1, 0, {}) and f(1, new=2, other=3) == (1, 2, {"other": 3})
    with pytest.raises(TypeError, match="^not 13$"):
        f(1, new=13)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'a'$"):
        f()


# ---------------------------------------------------------------- refusal


def table():
    return Embedding(V, D_MODEL, rng=rng())


def heads():
    return MultiHeadAttention(D_MODEL, 2, rng=rng())


def gpt():
    return GPT(table(), [], LayerNorm(D_MODEL), head=Linear(D_MODEL, V, rng=rng()))


def of_texts(**options):
    places, kinds = LearnedPositions(S, D_MODEL, rng=rng()), Embedding(2, D_MODEL, rng=rng())
    parts = {"norm": LayerNorm(D_MODEL), "encoder": Encoder(1, D_MODEL, 2, 17, rng=rng())}
    return TextEncoder(positions=places, kinds=kinds, **parts, **options)


BIAS, TEXT = np.zeros((T, T)), np.ones((1, T), int)
Q, X = x(T, 2), x(T, D_MODEL)
ASKED = """
attention(Q, Q, Q, bias=BIAS) → attention() got bias=…, which is now called score_bias
attention_weights(Q, Q, bias=BIAS) → attention_weights() got bias=…, … score_bias
fused_attention(Q, Q, Q, bias=BIAS) → fused_attention() got bias=…, … score_bias
qk_norm()(Q, Q, Q, bias=BIAS) → attention() got bias=…, … score_bias
multi_head_attention(*[Q] * 3, *[x(2, 2)] * 4, 1, bias=BIAS) → attention() got bias=…, … score_bias
heads()(X, bias=BIAS) → MultiHeadAttention.__call__() got bias=…, … score_bias
heads().weights(X, bias=BIAS) → MultiHeadAttention.weights() got bias=…, … score_bias
Block(heads(), FeedForward(D_MODEL, 17, rng=rng()))(X, bias=BIAS) → Block.__call__() … score_bias
Embedding(num_words=V, d_model=2, rng=rng()) → Embedding.__init__() got num_words=…, … vocab_size
gpt2(num_words=V, max_length=S) → gpt2() got num_words=…, … vocab_size
llama(num_words=V) → llama() got num_words=…, … vocab_size
bert(num_words=V) → bert() got num_words=…, … vocab_size
Transformer(num_source_words=V, rng=rng()) → Transformer.__init__() … source_vocab_size
Transformer(V, num_target_words=V, rng=rng()) → Transformer.__init__() … target_vocab_size
transformer(1).embed(words=TEXT, table=table()) → Transformer.embed() got words=…, … tokens
GPT(words=table()) → GPT.__init__() got words=…, … tokens
gpt()(words=TEXT) → GPT.__call__() got words=…, … tokens
of_texts(words=table()) → TextEncoder.__init__() got words=…, … tokens
of_texts(tokens=table())(words=TEXT) → TextEncoder.__call__() got words=…, … tokens
generate(gpt(), TEXT, num_words=2) → generate() got num_words=…, … num_tokens
translate(transformer(1), TEXT, start=0, end=1, max_words=2) → translate() … max_tokens
"""


@pytest.mark.parametrize("row", ASKED.strip().splitlines())
def test_a_former_keyword_is_refused_with_the_present_one(row):
    call, _, words = row.partition(" → ")
    with pytest.raises(TypeError, match=f"^{re.escape(words).replace('…', '.*')}$"):
        eval(call, vars(import_module("attention")) | globals())


def test_a_state_with_both_names_is_refused_and_nothing_is_lost():
    model = gpt2(V, S, **SIZES, rng=rng(1))
    state = model.state_dict()
    for both in (
        state | {"words.weight": state["tokens.weight"]},
        {"words.weight": state["tokens.weight"]} | state,
    ):
        with pytest.raises(ValueError, match="^this state does not fit GPT: words.weight is unexp"):
            model.load_state_dict(both)
    model = Outer()
    twice = formerly(model.state_dict())
    one, other = twice.pop("inner.gain"), np.array([9.0])
    with pytest.raises(ValueError, match="does not fit Outer: inner.gamma is unexpected$"):
        model.load_state_dict(twice | {"block.gamma": one, "inner.gamma": other})


def test_a_strange_name_is_refused_as_it_was_written():
    model = gpt2(V, S, **SIZES, rng=rng(1))
    state = formerly(model.state_dict())
    for strange in ("words.bias", "words", "wordsmith.weight", "blocks.0.words.weight"):
        with pytest.raises(ValueError, match=f"fit GPT: {strange} is unexpected$"):
            model.load_state_dict(state | {strange: np.ones(2)})


def test_what_does_not_fit_is_said_under_the_present_name():
    model = gpt2(V, S, **SIZES, rng=rng(1))
    state = formerly(model.state_dict()) | {"words.weight": np.ones((2, 2))}
    with pytest.raises(ValueError, match=r"tokens.weight has shape \(2, 2\), not \(11, 14\)$"):
        model.load_state_dict(state)
    del state["words.weight"]
    with pytest.raises(ValueError, match=r"fit GPT: tokens.weight is missing$"):
        model.load_state_dict(state)
