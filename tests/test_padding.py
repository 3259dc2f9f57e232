"""Chapters 11.1 and 15 · Padding: texts of unequal length are computed as if each were alone."""

import itertools

import numpy as np
import pytest

from attention import attention, fused_attention, models
from attention.encoders import bert
from attention.generation import generate, stream, translate
from attention.masks import left_padded, real_positions
from attention.models import GPT, gpt2, llama
from attention.positions import SinusoidalPositions
from attention.transformer import Stack, Transformer
from minigrad import Tensor, cross_entropy, gradients
from minigrad.nn import Embedding

random = np.random.default_rng(3)
V, H, D_MODEL, LONGEST = 19, 4, 24, 11
SIZES = {"d_model": D_MODEL, "num_heads": H, "num_blocks": 2}
PROMPTS = [random.integers(0, V, n).tolist() for n in (5, 1, LONGEST, 3)]


def rng(seed=5):
    return np.random.default_rng(seed)


def sinusoidal_gpt(length, attend):
    body = Stack(2, D_MODEL, H, 32, norm_first=True, attend=attend, rng=rng())
    words = Embedding(V, D_MODEL, rng=rng())
    places = SinusoidalPositions()
    return GPT(words, body.blocks, body.final_norm, positions=places, max_length=length)


def grouped(length, attend):
    return llama(V, num_kv_heads=2, max_length=length, attend=attend, rng=rng(), **SIZES)


KINDS = {
    "gpt2": lambda length, attend: gpt2(V, length, attend=attend, rng=rng(), **SIZES),
    "llama": grouped,
    "sinusoidal": sinusoidal_gpt,
}
kinds = pytest.mark.parametrize("kind", KINDS)
attends = pytest.mark.parametrize("attend", [attention, fused_attention])


def lively(model):
    """Give the model weights so large that each token changes what it says."""
    draw = rng(2)
    for p in model.parameters():
        p.data = p.data * (p.ndim == 1) + (0.8 if p.ndim == 2 else 0.2) * draw.standard_normal(
            p.shape
        )
    return model


def made(kind, attend=None, length=32):
    return lively(KINDS[kind](length, attend))


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def same(found, expected):
    assert isinstance(found, list) and len(found) == len(expected)
    for text, right in zip(found, expected, strict=True):
        np.testing.assert_array_equal(text, right, strict=True)


def largest_difference(model):
    """Return how far the scores of unequal prompts are from those of each prompt alone."""
    found = model(PROMPTS).data
    apart = [found[b, -len(p) :] - model([p]).data[0] for b, p in enumerate(PROMPTS)]
    return max(np.abs(each).max() for each in apart)


# ---------------------------------------------------------------- value


@attends
@kinds
def test_scores_of_unequal_prompts_are_those_of_each_alone_also_with_a_cache(kind, attend):
    model = made(kind, attend)
    assert largest_difference(model) < 1e-12
    caches, more = model.caches(), random.integers(0, V, (len(PROMPTS), 3))
    found = [model(new, caches=caches).data for new in (PROMPTS, more[:, :2], more[:, 2:])]
    for b, prompt in enumerate(PROMPTS):
        alone = model([[*prompt, *more[b]]]).data[0]
        close(np.concatenate([scores[b] for scores in found])[-len(alone) :], alone)
    assert all(cache.real.shape == (len(PROMPTS), LONGEST + 3) for cache in caches)


@pytest.mark.parametrize("cached", [True, False])
@attends
@kinds
def test_each_prompt_gets_the_tokens_that_it_gets_alone_up_to_its_own_end(kind, attend, cached):
    model, options = made(kind, attend), {"temperature": 0, "cached": cached}
    whole = [generate(model, [prompt], 9, **options)[0] for prompt in PROMPTS]
    same(generate(model, PROMPTS, 9, **options), whole)
    lengths = set()
    for end in {int(text[-3]) for text in whole}:
        alone = [generate(model, [prompt], 9, end=end, **options)[0] for prompt in PROMPTS]
        same(generate(model, PROMPTS, 9, end=end, **options), alone)
        steps = np.stack([*stream(model, PROMPTS, 9, end=end, **options)], axis=1)
        for text, prompt, row in zip(alone, PROMPTS, steps, strict=True):
            new = text[len(prompt) :]
            np.testing.assert_array_equal(row[: len(new)], new)
            assert (row[len(new) :] == end).all()
            lengths.add(len(new))
    assert len(lengths) > 1


@kinds
def test_with_a_generator_for_each_prompt_the_drawn_tokens_are_those_of_each_alone(kind):
    model, end = made(kind), 3
    options = {"temperature": 3.0, "top_k": 7, "end": end}
    alone = [generate(model, [p], 9, rng=rng(b), **options)[0] for b, p in enumerate(PROMPTS)]
    same(generate(model, PROMPTS, 9, rng=[*map(rng, range(len(PROMPTS)))], **options), alone)
    equal = [prompt[-1:] for prompt in PROMPTS]
    rows = generate(model, equal, 9, rng=[*map(rng, range(len(PROMPTS)))], temperature=3.0)
    assert rows.shape == (len(PROMPTS), 10)
    for b, row in enumerate(rows):
        np.testing.assert_array_equal(
            row, generate(model, equal[b : b + 1], 9, rng=rng(b), temperature=3.0)[0]
        )


@kinds
def test_each_row_counts_its_own_tokens_against_the_length_of_the_model(kind):
    """The longest prompt ends at once, and the others go on as far as they can alone."""
    model = made(kind, length=LONGEST)
    end = int(generate(model, [PROMPTS[2]], 1, temperature=0)[0, -1])
    alone = [generate(model, [p], 7, temperature=0, end=end)[0] for p in PROMPTS]
    same(generate(model, PROMPTS, 7, temperature=0, end=end), alone)
    new = [len(text) - len(prompt) for text, prompt in zip(alone, PROMPTS, strict=True)]
    assert new[2] == 1 and max(new) > 1
    with pytest.raises(ValueError, match=r"12 positions|positions up to 11"):
        generate(model, PROMPTS, 7, temperature=0)


READS = {
    "gpt2": made("gpt2"),
    "llama": made("llama"),
    "sinusoidal": made("sinusoidal"),
    "bert": lively(bert(V, LONGEST, rng=rng(), **SIZES)),
}
SOURCES = lively(Transformer(V, V, d_ff=32, rng=rng(), **SIZES))
for block in SOURCES.decoder.blocks:  # what is written depends more on what is read
    block.cross.w_v.weight.data = 9 * block.cross.w_v.weight.data
BESIDE = np.array([[1, 0, 0, 1, 1], [0, 0, 1, 1, 1], [0, 1, 1, 1, 0], [1, 1, 1, 1, 1]], bool)
HOLES = np.array([[1, 0, 1, 0, 1], [0, 1, 0, 1, 1]], bool)


def at_padding(real, seed):
    """Return tokens (B, S) that differ from seed to seed at padding alone."""
    tokens = rng(11).integers(0, V, real.shape)
    return np.where(real, tokens, rng(seed).integers(0, V, real.shape))


@pytest.mark.parametrize(
    ("name", "real"), [*itertools.product(READS, [BESIDE[1:]]), ("bert", BESIDE), ("bert", HOLES)]
)
def test_a_model_told_which_tokens_are_real_computes_each_text_as_if_it_were_alone(name, real):
    model, tokens = READS[name], at_padding(real, 1)
    found = model(tokens, real=real).data
    assert np.isfinite(found).all()
    for b, row in enumerate(real):
        close(found[b, row], model(tokens[b : b + 1, row]).data[0])


@pytest.mark.parametrize("real", [BESIDE, HOLES], ids=["beside", "holes"])
def test_a_translation_depends_on_the_real_tokens_of_its_source_alone(real):
    source, target = at_padding(real, 1), rng().integers(0, V, (len(real), 3))
    found = SOURCES(source, target, real=real).data
    options = {"start": 0, "end": 1, "max_tokens": 5, "num_beams": 3}
    sentences = translate(SOURCES, source, real=real, **options)
    for b, row in enumerate(real):
        alone = source[b : b + 1, row]
        close(found[b], SOURCES(alone, target[b : b + 1]).data[0])
        assert sentences[b : b + 1] == translate(SOURCES, alone, **options)


def test_a_mask_beside_real_forbids_more():
    model, tokens, mask = READS["bert"], at_padding(BESIDE, 1), np.tri(5, dtype=bool)
    both = model(tokens, mask=mask, real=BESIDE).data
    assert np.abs(both - model(tokens, real=BESIDE).data)[BESIDE].max() > 1e-3
    close(both[3], model(tokens[3:], mask=mask).data[0])
    maps = model.maps(tokens, mask=mask, real=BESIDE)
    assert not any(weights[..., ~(mask & BESIDE[1])][1].any() for weights in maps)


# ---------------------------------------------------------------- derivative


@attends
@kinds
def test_padding_gets_no_gradient_and_no_gradient_depends_on_it(kind, attend):
    """Also in a row of padding alone, whose queries may look nowhere."""
    real = np.array([[0, 0, 1, 1, 1], [0, 1, 1, 1, 0], [0, 0, 0, 0, 0]], bool)
    model = made(kind, attend)
    found = []
    for seed in (1, 2):
        tokens = at_padding(real, seed)
        targets = np.where(real, tokens, -100)
        vectors = []
        embed = model.tokens.__call__
        model.tokens = lambda x, embed=embed, out=vectors: out.append(embed(x)) or out[0]
        model.tokens.weight = embed.__self__.weight
        loss = cross_entropy(model(tokens, real=real), targets, ignore_index=-100)
        of_vectors, *rest = gradients(loss, [vectors[0], *model.parameters()])
        model.tokens = embed.__self__
        assert not of_vectors[~real].any() and of_vectors[real].any()
        found.append([loss.data, *rest])
    assert all(np.isfinite(g).all() for g in found[0])
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


# ---------------------------------------------------------------- law


def columns(real):
    """Count positions from the first column, as a model without `real_positions` would."""
    return np.broadcast_to(np.arange(real.shape[1]), real.shape)


@kinds
def test_the_comparison_notices_positions_of_columns_and_keys_of_padding(kind, monkeypatch):
    """(Columns shift all rotary positions of a text by one number, which changes no product.)"""
    model = made(kind)
    with monkeypatch.context() as patch:
        patch.setattr(models, "real_positions", columns)
        assert (largest_difference(model) > 1e-2) == (kind != "llama")
    monkeypatch.setattr(models, "without_padding", lambda mask, real: mask)
    assert largest_difference(model) > 1e-2


def test_a_layer_turns_each_text_by_positions_counted_from_its_first_token():
    model, starts = made("llama"), []
    layer = model.blocks[0].attention
    turn = layer.rotate
    layer.rotate = lambda x, start: starts.append(start) or turn(x, start)
    caches = model.caches()
    for new in (PROMPTS, [[1]] * len(PROMPTS)):
        model(new, caches=caches)
    first, _, then, _ = (start[:, 0] for start in starts)
    np.testing.assert_array_equal(first, real_positions(left_padded(PROMPTS)[1]))
    np.testing.assert_array_equal(then[:, 0], [*map(len, PROMPTS)])


def test_texts_of_equal_length_are_computed_as_before():
    model, rows = made("llama"), [[1, 2, 3], [4, 5, 6]]
    expected = model(np.array(rows)).data
    for options in ({}, {"real": np.ones((2, 3), bool)}):
        np.testing.assert_array_equal(model(rows, **options).data, expected)
    found = generate(model, rows, 4, temperature=0)
    np.testing.assert_array_equal(found, generate(model, np.array(rows), 4, temperature=0))
    assert isinstance(found, np.ndarray)
    assert model(Tensor(rows)).shape == (2, 3, V) and model([1, 2, 3]).shape == (3, V)


# ---------------------------------------------------------------- refusal


def test_padding_within_a_text_is_refused_by_a_causal_model_also_across_its_cache():
    model, caches = made("llama"), None
    words = "real has tokens on both sides of row 1, column 2$"
    hole = np.array([[1, 1, 1, 1], [0, 1, 0, 1]], bool)
    with pytest.raises(ValueError, match=words):
        model(np.ones((2, 4), int), real=hole)
    caches = model.caches()
    model(np.ones((2, 3), int), real=hole[:, :3], caches=caches)
    with pytest.raises(ValueError, match=words):
        model([[1], [1]], caches=caches)
    assert [cache.length for cache in caches] == [3, 3]
    model([[1], [1]], real=[[True], [False]], caches=caches)
