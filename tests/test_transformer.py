"""Chapter 15 · Transformers: blocks, stacks of blocks, and the models that are built of them."""

import itertools
import math

import numpy as np
import pytest

from attention import MultiHeadAttention, attention, causal_mask, fused_attention, padding_mask
from attention.blocks import Block, FeedForward, GatedFeedForward
from attention.cache import KVCache
from attention.encoders import Classifier, bert
from attention.models import GPT, gpt2, llama
from attention.scaled_dot_product import attention_weights, qk_norm
from attention.transformer import Decoder, Encoder, Transformer
from minigrad import Tensor, gelu, gradients, relu
from minigrad.engine.record import is_recording
from minigrad.nn import Dropout, LayerNorm, RMSNorm

random = np.random.default_rng(3)
B, T, S, H, D_MODEL, D_FF, V, C = 2, 3, 5, 7, 14, 17, 19, 23
WORDS = random.integers(0, V, (B, T))
SOURCE = random.integers(0, V, (B, S))
PADDING = padding_mask([2, 5], S)


def rng():
    return np.random.default_rng(5)


def t(*shape, dtype=float):
    return Tensor(random.standard_normal(shape), dtype=dtype, requires_grad=True)


def randomised(model):
    """Draw every parameter, so that no 0 and no 1 hides a mistake."""
    for parameter in model.parameters():
        parameter.data = 0.3 * random.standard_normal(parameter.shape)
    return model


def block(cross=False, d_model=D_MODEL, num_heads=H, feed_forward=None, **options):
    heads = [MultiHeadAttention(d_model, num_heads, bias=True, rng=rng()) for _ in "sc"]
    feed_forward = feed_forward or FeedForward(d_model, D_FF, activation=gelu, rng=rng())
    return randomised(Block(heads[0], feed_forward, cross=heads[1] if cross else None, **options))


SIZES = {"d_model": D_MODEL, "num_heads": H, "num_blocks": 2}
OTHER = {"tied": True, "num_kv_heads": 1, "d_k": 6, "eps": 1e-6, "max_length": 11}
OTHER |= {"pairs": "halves", "base": 500.0}
GPTS = {
    "gpt2": lambda **options: gpt2(V, 11, **SIZES | {"rng": rng()} | options),
    "llama": lambda **options: llama(V, num_kv_heads=1, **SIZES | {"rng": rng()} | options),
    "tied llama": lambda **options: llama(V, **OTHER | SIZES | {"rng": rng()} | options),
}
gpts = pytest.mark.parametrize("make", GPTS.values(), ids=GPTS)


def text_encoder(**options):
    return bert(V, 11, **SIZES | {"rng": rng()} | options)


def paper(**options):
    """Return the paper's Transformer, small, with V target words and more source words."""
    return Transformer(V + 4, V, d_ff=D_FF, **SIZES | {"rng": rng()} | options)


ALL = slice(None)
MODELS = {  # each model, and a call of it with some texts of the batch
    "gpt2": (GPTS["gpt2"], lambda model, b=ALL: model(WORDS[b])),
    "llama": (GPTS["llama"], lambda model, b=ALL: model(WORDS[b])),
    "tied llama": (GPTS["tied llama"], lambda model, b=ALL: model(WORDS[b])),
    "bert": (
        text_encoder,
        lambda model, b=ALL: model(SOURCE[b], kinds=SOURCE[b] % 2, mask=PADDING[b]),
    ),
    "Transformer": (paper, lambda model, b=ALL: model(SOURCE[b], WORDS[b], source_mask=PADDING[b])),
}
models = pytest.mark.parametrize(("make", "call"), MODELS.values(), ids=MODELS)


class Given:
    """A stand-in for an `Embedding` that gives vectors which are leaves."""

    def __init__(self, vectors, embedding):
        self.vectors, self.weight = vectors, embedding.weight

    def __call__(self, words):
        return self.vectors[:, : np.shape(words)[1]]


# ---------------------------------------------------------------- value


def test_a_gate_multiplies_what_goes_through_it():
    made, x = GatedFeedForward(D_MODEL, D_FF, rng=rng()), t(B, T, D_MODEL)
    p = made.state_dict()
    assert list(p) == ["w_1.weight", "w_3.weight", "w_2.weight"]
    gate = x.data @ p["w_1.weight"]
    expected = (gate / (1 + np.exp(-gate)) * (x.data @ p["w_3.weight"])) @ p["w_2.weight"]
    np.testing.assert_allclose(made(x).data, expected, rtol=1e-11, atol=1e-13)


def normed(layer, x):
    """Return LayerNorm or RMSNorm, as their papers write them."""
    centred = x - x.mean(axis=-1, keepdims=True) if isinstance(layer, LayerNorm) else x
    y = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + layer.eps) * layer.gain.data
    return y + layer.bias.data if isinstance(layer, LayerNorm) else y


@pytest.mark.parametrize("cross", [False, True])
@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("p", [0.0, 0.5])
def test_a_block_is_its_formula_and_drops_from_what_each_of_its_parts_adds(p, norm_first, cross):
    norm = RMSNorm if norm_first else LayerNorm
    made = block(cross, norm_first=norm_first, norm=norm, dropout=p, rng=rng())
    x, memory = t(B, T, D_MODEL), t(B, S, D_MODEL) if cross else None
    mask, memory_mask = causal_mask(T), PADDING if cross else None
    bias = random.standard_normal((H, T, T))
    looks_back = lambda x: made.attention(x, mask=mask, score_bias=bias)
    at_memory = lambda x: made.cross(x, memory, mask=memory_mask)
    steps = [(looks_back, made.norm_attention)]
    steps += [(at_memory, made.norm_cross)] if cross else []
    steps += [(made.feed_forward, made.norm_feed_forward)]
    y, drop = x.data, Dropout(p, rng=rng())
    for f, layer in steps:
        added = drop(f(Tensor(normed(layer, y) if norm_first else y))).data
        y = y + added if norm_first else normed(layer, y + added)
    found = made(x, memory, mask=mask, memory_mask=memory_mask, score_bias=bias)
    np.testing.assert_allclose(found.data, y, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("norm_first", [False, True])
def test_a_stack_is_its_blocks_one_after_the_other_and_in_pre_ln_a_norm(norm_first):
    options = {"norm_first": norm_first, "rng": rng()}
    encoder = randomised(Encoder(2, D_MODEL, H, D_FF, **options))
    decoder = randomised(Decoder(2, D_MODEL, H, D_FF, **options))
    x, memory, mask = t(B, T, D_MODEL), t(B, S, D_MODEL), padding_mask([2, 3], T)
    y = z = x
    for one, other in zip(encoder.blocks, decoder.blocks, strict=True):
        y, z = one(y, mask=mask), other(z, memory, mask=causal_mask(T))
    if norm_first:
        y, z = encoder.final_norm(y), decoder.final_norm(z)
    assert (encoder.final_norm is not None) == (decoder.final_norm is not None) == norm_first
    np.testing.assert_array_equal(encoder(x, mask=mask).data, y.data)
    np.testing.assert_array_equal(decoder(x, memory).data, z.data)


def spied(model, run, outer=lambda attend: attend):
    """Return the attention weights with which each layer computes while a model runs."""
    computed, layers = [], [m for m in model.modules() if isinstance(m, MultiHeadAttention)]

    def spy(q, k, v, *, drop, **options):
        computed.append(attention_weights(q, k, **options).data)
        return attention(q, k, v, drop=drop, **options)

    before = [layer.attend for layer in layers]
    for layer in layers:
        layer.attend = outer(spy)
    run()
    for layer, attend in zip(layers, before, strict=True):
        layer.attend = attend
    return computed


MAPPED = {  # a model, and how it and its maps are asked
    **{name: (make, {}) for name, make in GPTS.items()},
    "bert": (text_encoder, {"kinds": [[0, 0, 1], [0, 1, 1]], "mask": padding_mask([2, 0], T)}),
}


@pytest.mark.parametrize("attend", [None, qk_norm()], ids=["fused", "qk_norm"])
@pytest.mark.parametrize(("make", "asked"), MAPPED.values(), ids=MAPPED)
def test_a_models_maps_are_the_weights_with_which_it_computes(make, asked, attend):
    model = randomised(make(attend=attend))
    outer = qk_norm if hasattr(attend, "prepare") else lambda attend: attend
    computed = spied(model, lambda: model(WORDS, **asked), outer)
    maps = model.maps(WORDS, **asked)
    assert is_recording() and all(p.grad is None for p in model.parameters())
    assert [each.shape for each in maps] == [(B, H, T, T)] * 2
    for ours, theirs in zip(maps, computed, strict=True):
        assert type(ours) is np.ndarray and np.ptp(ours) > 0.01
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-13)
    if "mask" in asked:
        for each in maps:
            assert not each[~np.broadcast_to(asked["mask"][:, None], each.shape)].any()
    elif isinstance(model, GPT):
        assert not any(each[..., ~causal_mask(T)].any() for each in maps)
        other = model.maps(WORDS[:, :2])  # what is ahead of a position changes no weight of it
        np.testing.assert_allclose(other[1], maps[1][..., :2, :2], rtol=1e-9)


def test_the_papers_model_is_its_figure():
    """Words times √d_model plus positions; the decoder looks back, and at all of the source."""
    model, mask = randomised(paper()), PADDING

    def embedded(words, table):
        rows = math.sqrt(D_MODEL) * table.weight.data[words]
        angles = np.arange(words.shape[1])[:, None] / 10_000 ** (np.arange(0, D_MODEL, 2) / D_MODEL)
        rows[..., 0::2] += np.sin(angles)
        rows[..., 1::2] += np.cos(angles)
        return Tensor(rows)

    memory = model.encoder(embedded(SOURCE, model.source_tokens), mask=mask)
    y = model.decoder(embedded(WORDS, model.target_tokens), memory, memory_mask=mask)
    expected = y.data @ model.target_tokens.weight.data.T
    np.testing.assert_allclose(
        model(SOURCE, WORDS, source_mask=mask).data, expected, rtol=1e-11, atol=1e-12
    )
    np.testing.assert_allclose(
        model.encode(SOURCE, source_mask=mask).data, memory.data, rtol=1e-11, atol=1e-12
    )


@gpts
def test_a_gpt_is_words_blocks_a_norm_and_scores(make):
    model = randomised(make())
    x = model.tokens.weight.data[WORDS]
    if model.positions is not None:
        x = x + model.positions.weight.data[:T]
    x = Tensor(x)
    for layer in model.blocks:
        x = layer(x, mask=causal_mask(T))
    head = model.tokens.weight.data.T if model.head is None else model.head.weight.data
    found = model(WORDS)
    assert found.shape == (B, T, V)
    np.testing.assert_allclose(found.data, model.norm(x).data @ head, rtol=1e-11, atol=1e-12)


def test_a_text_encoder_adds_words_positions_and_kinds():
    model, kinds = randomised(text_encoder()), SOURCE % 2
    p = model.state_dict()
    x = p["tokens.weight"][SOURCE] + p["positions.weight"][:S] + p["kinds.weight"][kinds]
    expected = model.encoder(Tensor(normed(model.norm, x)))
    np.testing.assert_allclose(model(SOURCE, kinds=kinds).data, expected.data, rtol=1e-11)
    zeros = np.zeros_like(SOURCE)
    np.testing.assert_array_equal(model(SOURCE).data, model(SOURCE, kinds=zeros).data)


def test_a_classifier_scores_the_mean_of_what_is_no_padding():
    model = randomised(Classifier(Encoder(1, D_MODEL, H, D_FF, rng=rng()), D_MODEL, C, rng=rng()))
    x, lengths = t(B, S, D_MODEL), [2, 0]
    weight, bias = model.head.weight.data, model.head.bias.data
    vectors = model.encoder(x).data
    np.testing.assert_allclose(model(x).data, vectors.mean(axis=1) @ weight + bias, rtol=1e-11)
    mask = padding_mask(lengths, S)
    vectors = model.encoder(x, mask=mask).data
    expected = [vectors[0, :2].mean(axis=0) @ weight + bias, bias]
    np.testing.assert_allclose(model(x, mask=mask).data, expected, rtol=1e-11)


def test_a_model_has_the_activation_that_it_was_asked_for():
    options = SIZES | {"rng": rng(), "activation": relu}
    for blocks in (gpt2(V, 11, **options).blocks, bert(V, 11, **options).encoder.blocks):
        assert {block.feed_forward.activation for block in blocks} == {relu}


def count(model):
    return sum(p.size for p in model.parameters())


def test_models_have_as_many_parameters_as_their_papers_count():
    """GPT-2 of 12 blocks and 768 features: 124,439,808 of 50,257 words and 1,024 positions."""
    d, n, words, length = 24, 3, 29, 31
    sizes = {"d_model": d, "num_heads": 4, "num_blocks": n, "rng": rng()}
    formula = lambda d, n, words, length: words * d + length * d + n * (12 * d * d + 13 * d) + 2 * d
    assert formula(768, 12, 50_257, 1_024) == 124_439_808
    assert count(gpt2(words, length, **sizes)) == formula(d, n, words, length)
    bert_formula = lambda d, n, words, length: formula(d, n, words, length) + 2 * d
    assert bert_formula(768, 12, 30_522, 512) == 108_891_648  # without the pooler
    assert count(bert(words, length, **sizes)) == bert_formula(d, n, words, length)
    # Llama 2 7B: 32 blocks of 4,096 features, gates of 11,008, each head its own keys.
    formula = lambda d, n, words, d_ff: 2 * words * d + n * (4 * d * d + 3 * d * d_ff + 2 * d) + d
    assert formula(4_096, 32, 32_000, 11_008) == 6_738_415_616
    assert count(llama(words, num_kv_heads=4, d_ff=31, **sizes)) == formula(d, n, words, 31)
    assert count(llama(words, num_kv_heads=4, **sizes)) == formula(d, n, words, 8 * d // 3)
    few = llama(words, num_kv_heads=1, d_ff=31, **sizes)
    assert count(few) == formula(d, n, words, 31) - n * 2 * d * d * 3 // 4


# ---------------------------------------------------------------- derivative


@models
def test_every_parameter_receives_a_gradient(make, call):
    model = randomised(make())
    y = call(model)
    y.backward(random.standard_normal(y.shape))
    for name, p in model.named_parameters():
        assert p.grad.shape == p.shape
        # A number added to all scores of a query changes nothing: a key's bias never learns.
        if name.endswith("w_k.bias"):
            assert abs(p.grad).max() < 1e-10
        else:
            assert abs(p.grad).max() > 1e-8, name  # (a softmax drawn saturated makes some small)


@models
def test_a_float32_model_stays_float32_in_everything_that_is_recorded(make, call):
    model = make().astype(np.float32)
    assert {p.dtype for p in model.parameters()} == {np.dtype(np.float32)}
    y = call(model)
    found, seen = [y], set()
    for x in found:
        if id(x) in seen:
            continue
        seen.add(id(x))
        assert x.dtype == np.float32
        found += [z for z in (x.node.inputs if x.node else ()) if z.requires_grad]
    for gradient in gradients(y, model.parameters(), np.ones(y.shape)):
        assert gradient.dtype == np.float32


# ---------------------------------------------------------------- law


def reaches(y, x, t):
    """Return True for the positions of x with respect to which output t has a gradient."""
    (dx,) = gradients(y[:, t], [x], random.standard_normal(y[:, t].shape), retain_graph=True)
    return (dx != 0).any(axis=-1)


@gpts
@pytest.mark.parametrize("attend", [attention, fused_attention])
def test_in_a_gpt_no_gradient_flows_from_an_output_to_a_later_word(make, attend):
    model, x = randomised(make(attend=attend)), t(B, S, D_MODEL)
    model.tokens = Given(x, model.tokens)
    y = model(SOURCE)
    for position in range(S):
        np.testing.assert_array_equal(reaches(y, x, position), [np.arange(S) <= position] * B)


def test_in_the_papers_model_the_target_is_causal_and_the_source_is_not():
    model, source, target = randomised(paper()), t(B, S, D_MODEL), t(B, T, D_MODEL)
    model.source_tokens = Given(source, model.source_tokens)
    model.target_tokens = Given(target, model.target_tokens)
    y = model(SOURCE, WORDS, source_mask=PADDING)
    for position in range(T):
        np.testing.assert_array_equal(reaches(y, target, position), [np.arange(T) <= position] * B)
        np.testing.assert_array_equal(
            reaches(y, source, position), [np.arange(S) < 2, np.arange(S) < 5]
        )


ENCODING = {  # models with padding: what (model, words, mask) gives that is no padding
    "bert": (lambda model, words, mask: model(words, mask=mask).data[:, :2]),
    "Transformer": (lambda model, words, mask: model(words, WORDS, source_mask=mask).data),
}


@pytest.mark.parametrize("name", ENCODING)
def test_padding_its_content_and_its_length_change_nothing(name):
    model, ask, mask = randomised(MODELS[name][0]()), ENCODING[name], padding_mask([2, 4], S)
    y = ask(model, SOURCE, mask)
    filled = np.where(mask[:, 0], SOURCE, 7)
    np.testing.assert_allclose(ask(model, filled, mask), y, rtol=1e-12, atol=1e-13)
    shorter = ask(model, SOURCE[:, :4], mask[..., :4])
    np.testing.assert_allclose(shorter, y, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize(("norm_first", "ratio"), [(False, 1), (True, 2)])
def test_four_times_the_blocks_halve_the_gradient_of_the_last_one_only_with_pre_ln(
    norm_first, ratio
):
    """Xiong et al. 2020, theorem 1: it does not depend on depth, or falls with its root."""
    squares = {4: [], 16: []}
    for num_blocks, seed in itertools.product(squares, range(12)):
        draw = np.random.default_rng(seed)
        model = Encoder(num_blocks, 32, 4, 64, norm_first=norm_first, rng=draw)
        y, last = model(Tensor(draw.standard_normal((5, 7, 32)))), model.blocks[-1].feed_forward
        (of_last,) = gradients(y, [last.w_2.weight], draw.standard_normal(y.shape))
        squares[num_blocks].append((of_last**2).sum())
    assert math.sqrt(np.mean(squares[4]) / np.mean(squares[16])) == pytest.approx(ratio, rel=0.2)


def test_gpt2_starts_with_deviations_of_002_and_less_where_it_writes_into_the_residual():
    model = gpt2(101, 103, d_model=96, num_heads=2, num_blocks=8, rng=rng())
    for name, p in model.named_parameters():
        if p.ndim == 2:
            writes = name.endswith(("w_o.weight", "w_2.weight"))
            expected = 0.02 / math.sqrt(2 * 8) if writes else 0.02
            assert p.data.std() == pytest.approx(expected, rel=0.05), name
        else:
            assert (p.data == (1 if name.endswith("gain") else 0)).all()


@models
def test_equal_generators_give_equal_models_and_one_gives_blocks_that_differ(make, call):
    one, other = make(), make()
    for (name, a), b in zip(one.named_parameters(), other.parameters(), strict=True):
        np.testing.assert_array_equal(a.data, b.data, err_msg=name)
    matrices = [p.data.ravel() for p in one.parameters() if p.ndim == 2]
    assert len(np.unique(np.concatenate(matrices))) == sum(m.size for m in matrices)


DROPPING = {name: pair for name, pair in MODELS.items() if "llama" not in name}


@pytest.mark.parametrize(("make", "call"), DROPPING.values(), ids=DROPPING)
def test_every_dropout_of_a_model_drops_something_while_it_is_trained_and_not_after(make, call):
    model = make(dropout=0.3)
    drops = [m for m in model.modules() if isinstance(m, Dropout)]
    assert len(drops) >= 2 * SIZES["num_blocks"]  # of each block's weights, and what it adds
    whole = call(model.eval()).data
    np.testing.assert_array_equal(whole, call(make()).data)
    model.train()
    for one in drops:
        for m in drops:
            m.p = 0.5 if m is one else 0.0
        assert (call(model).data != whole).any()


def trained_once(make, call, generators, **options):
    """Return a step's scores and gradients, those of a second replay, and of the second order."""
    model = make(**options)
    for i, layer in enumerate(m for m in model.modules() if isinstance(m, Dropout)):
        layer.rng = generators[i % len(generators)]
    y, parameters = call(model), model.parameters()
    loss = (y * y).sum()
    first = [y.data, *[generator.random() for generator in generators]]
    for _ in range(2):
        first += gradients(loss, parameters, retain_graph=True)
        first += [generator.random() for generator in generators]
    recorded = gradients(loss, parameters, create_graph=True)
    second = gradients(sum((g * g).sum() for g in recorded), parameters)
    return first, [*second, *[generator.random() for generator in generators]]


@pytest.mark.parametrize("number", [1, 3], ids=["one generator for all", "three in turns"])
@models
def test_a_model_that_recomputes_its_blocks_is_trained_as_one_that_does_not(make, call, number):
    """Bit for bit, with dropout too, and its generators are left where the plain step left them.

    (Not bit for bit: second derivatives, and the Transformer, where several blocks use the memory.
    They add the same contributions in another order.)
    """
    near, found = {"rtol": 1e-9, "atol": 1e-9}, []
    options = {"dropout": 0.3} if make in dict(DROPPING.values()) else {}
    for recompute in (True, False):
        draw = [np.random.default_rng(seed) for seed in range(number)]
        found.append(trained_once(make, call, draw, recompute=recompute, **options))
    for order, exact in enumerate([make is not paper, False]):
        for one, other in zip(found[0][order], found[1][order], strict=True):
            np.testing.assert_allclose(one, other, **{"rtol": 0} if exact else near)


def test_dropout_that_is_not_drawn_again_the_same_would_be_refused(monkeypatch):
    monkeypatch.setattr("attention.blocks.drawing_the_same", lambda f, module: f)
    with pytest.raises(RuntimeError, match="gave another value the second time"):
        trained_once(*MODELS["gpt2"], [rng()], recompute=True, dropout=0.3)


def test_a_block_with_a_cache_is_not_computed_again():
    model = GPTS["gpt2"](recompute=True)
    y = model(WORDS, caches=model.caches())
    gradients(y.sum(), model.parameters())  # (run again, each block would add to its cache)


CHUNKS = {"in chunks": [2, 3], "a prompt, then one by one": [3, 1, 1]}


@gpts
@pytest.mark.parametrize("chunks", CHUNKS.values(), ids=CHUNKS)
def test_with_a_cache_the_scores_are_those_of_the_whole_text(make, chunks):
    model = randomised(make())
    whole, caches, done = model(SOURCE).data, model.caches(), 0
    assert [type(cache) for cache in caches] == [KVCache] * 2
    for n in chunks:
        found = model(SOURCE[:, done : done + n], caches=caches).data
        done += n
        np.testing.assert_allclose(found, whole[:, done - n : done], rtol=1e-10, atol=1e-12)
        assert [cache.length for cache in caches] == [done] * 2
    for layer, cache in zip(model.blocks, caches, strict=True):  # a shared head is kept once
        assert cache.k.shape[1] == cache.v.shape[1] == layer.attention.num_kv_heads


def test_a_model_of_a_trained_length_takes_that_many_positions_with_a_cache_or_without():
    """One more is refused, and the caches are as before. Rotary positions alone would go on."""
    model = randomised(GPTS["llama"](max_length=5))
    whole, caches = model(SOURCE).data, model.caches()
    for done, n in ((0, 3), (3, 2)):
        found = model(SOURCE[:, done : done + n], caches=caches).data
        np.testing.assert_allclose(found, whole[:, done : done + n], rtol=1e-10, atol=1e-12)
    longer, said = np.hstack([SOURCE, WORDS[:, :1]]), r"^6 positions were asked for, and .*=5: "
    for call in (lambda: model(longer), lambda: model(WORDS[:, :1], caches=caches)):
        with pytest.raises(ValueError, match=said):
            call()
    assert [cache.length for cache in caches] == [5] * 2
    model.max_length = None
    y = model(longer).data
    np.testing.assert_allclose(y[:, :5], whole, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(
        model(WORDS[:, :1], caches=caches).data, y[:, 5:], rtol=1e-10, atol=1e-12
    )


def test_every_norm_of_a_model_has_the_eps_that_was_asked_for():
    for make, default in ((GPTS["gpt2"], 1e-5), (GPTS["llama"], 1e-5), (text_encoder, 1e-12)):
        for model, eps in ((make(), default), (make(eps=0.001), 0.001)):
            norms = [layer for layer in model.modules() if isinstance(layer, LayerNorm | RMSNorm)]
            assert [norm.eps for norm in norms] == [eps] * 5
