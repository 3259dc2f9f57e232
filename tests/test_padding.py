"""Chapters 11.1 and 15 · Padding: texts of unequal length are computed as if each were alone."""

import itertools

import numpy as np
import pytest

from attention import attention, bert, fused_attention, generate, gpt2, llama, models
from attention.masks import left_padded, real_positions
from attention.positions import SinusoidalPositions
from attention.transformer import Transformer
from minigrad import Tensor, cross_entropy, gradients

random = np.random.default_rng(3)
V, LONGEST = 19, 11
SIZES = {"d_model": 24, "num_heads": 4, "num_blocks": 2, "rng": np.random.default_rng(5)}
PROMPTS = [random.integers(0, V, n).tolist() for n in (5, 1, LONGEST, 3)]


def rng(seed=5):
    return np.random.default_rng(seed)


def sinusoidal(length, attend):
    model = KINDS["gpt2"](length, attend)
    model.positions, model.max_length = SinusoidalPositions(), length
    return model


KINDS = {
    "gpt2": lambda length, attend: gpt2(V, length, attend=attend, **SIZES),
    "llama": lambda n, attend: llama(V, num_kv_heads=2, max_length=n, attend=attend, **SIZES),
    "sinusoidal": sinusoidal,
}
kinds = pytest.mark.parametrize("kind", KINDS)
attends = pytest.mark.parametrize("attend", [attention, fused_attention])


def lively(model):
    """Give the model weights so large that each token changes what it says."""
    draw = rng(2)
    for p in model.parameters():
        added = (0.8 if p.ndim == 2 else 0.2) * draw.standard_normal(p.shape)
        p.data = p.data * (p.ndim == 1) + added
    return model


def made(kind, attend=None, length=32):
    return lively(KINDS[kind](length, attend))


def same_as_alone(found, model, prompts, *numbers, rng=None, **options):
    assert isinstance(found, list) and len(found) == len(prompts)
    for b, prompt in enumerate(prompts):
        alone = generate(model, [prompt], *numbers, rng=rng and rng(b), **options)[0]
        np.testing.assert_array_equal(found[b], alone, strict=True)


def largest_difference(model):
    """Return how far the scores of unequal prompts are from those of each prompt alone."""
    found = model(PROMPTS).data
    apart = [found[b, -len(p) :] - model([p]).data[0] for b, p in enumerate(PROMPTS)]
    return max(np.abs(scores).max() for scores in apart)


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
        together = np.concatenate([scores[b] for scores in found])[-len(alone) :]
        np.testing.assert_allclose(together, alone, rtol=0, atol=1e-12)


@pytest.mark.parametrize("cached", [True, False])
@attends
@kinds
def test_each_prompt_gets_the_tokens_that_it_gets_alone_up_to_its_own_end(kind, attend, cached):
    model, options = made(kind, attend), {"temperature": 0, "cached": cached}
    whole = generate(model, PROMPTS, 9, **options)
    same_as_alone(whole, model, PROMPTS, 9, **options)
    lengths = set()
    for end in {int(text[-3]) for text in whole}:
        texts = generate(model, PROMPTS, 9, end=end, **options)
        same_as_alone(texts, model, PROMPTS, 9, end=end, **options)
        lengths |= {len(text) - len(prompt) for text, prompt in zip(texts, PROMPTS, strict=True)}
    assert len(lengths) > 1


@kinds
def test_with_a_generator_for_each_prompt_the_drawn_tokens_are_those_of_each_alone(kind):
    model, options = made(kind), {"temperature": 3.0, "top_k": 7}
    for prompts in (PROMPTS, [prompt[-1:] for prompt in PROMPTS]):
        found = generate(model, prompts, 9, rng=[rng(b) for b in range(4)], **options)
        same_as_alone([*found], model, prompts, 9, rng=rng, **options)


@kinds
def test_each_row_counts_its_own_tokens_against_the_length_of_the_model(kind):
    """The longest prompt ends at once, and the others go on as far as they can alone."""
    model, options = made(kind, length=LONGEST), {"temperature": 0}
    options["end"] = int(generate(model, [PROMPTS[2]], 1, **options)[0, -1])
    found = generate(model, PROMPTS, 7, **options)
    same_as_alone(found, model, PROMPTS, 7, **options)
    assert max(len(text) - len(prompt) for text, prompt in zip(found, PROMPTS, strict=True)) > 1
    with pytest.raises(ValueError, match=r"12 positions|positions up to 11"):
        generate(model, PROMPTS, 7, temperature=0)


SOURCES = lively(Transformer(V, V, d_ff=32, **SIZES))
READS = {kind: made(kind) for kind in KINDS} | {"bert": lively(bert(V, 11, **SIZES))}
READS["Transformer"] = lambda source, **real: SOURCES(source, [[1, 2]] * len(source), **real)
BESIDE = np.array([[0, 0, 1, 1, 1], [0, 1, 1, 1, 0], [1, 1, 1, 1, 1]], bool)
HOLES = np.array([[1, 0, 1, 0, 1], [0, 1, 0, 1, 1]], bool)
CASES = [*itertools.product(READS, [BESIDE]), ("bert", HOLES), ("Transformer", HOLES)]


def at_padding(real, seed):
    """Return tokens (B, S) that differ from seed to seed at padding alone."""
    return np.where(real, *(rng(s).integers(0, V, real.shape) for s in (11, seed)))


@pytest.mark.parametrize(("name", "real"), CASES)
def test_a_model_told_which_tokens_are_real_computes_each_text_as_if_it_were_alone(name, real):
    model, tokens = READS[name], at_padding(real, 1)
    found = model(tokens, real=real).data
    for b, row in enumerate(real):
        alone = model(tokens[b : b + 1, row]).data[0]
        together = found[b] if name == "Transformer" else found[b, row]
        np.testing.assert_allclose(together, alone, rtol=0, atol=1e-12)


# ---------------------------------------------------------------- derivative


@attends
@kinds
def test_padding_gets_no_gradient_and_no_gradient_depends_on_it(kind, attend):
    """Also in a row of padding alone, whose queries may look nowhere."""
    real, model, found = np.vstack([BESIDE, np.zeros(5, bool)]), made(kind, attend), []
    for seed in (1, 2):  # (other tokens at padding: a gradient for them would be in other rows)
        tokens = at_padding(real, seed)
        targets = np.where(real, tokens, -100)
        scores = model(tokens, real=real)
        assert np.isfinite(scores.data).all()
        loss = cross_entropy(scores, targets, ignore_index=-100)
        found.append(gradients(loss, model.parameters()))
    for one, other in zip(*found, strict=True):
        assert np.isfinite(one).all() and one.any()
        np.testing.assert_array_equal(one, other)


# ---------------------------------------------------------------- law


@kinds
def test_the_comparison_notices_positions_of_columns_and_keys_of_padding(kind, monkeypatch):
    """(Columns shift all rotary positions of a text by one number, which changes no product.)"""
    model = made(kind)
    with monkeypatch.context() as patch:
        patch.setattr(models, "real_positions", lambda real: np.arange(11) + 0 * real)
        assert (largest_difference(model) > 1e-2) == (kind != "llama")
    monkeypatch.setattr(models, "without_padding", lambda mask, real: mask)
    assert largest_difference(model) > 1e-2


def test_a_layer_turns_each_text_by_positions_counted_from_its_first_token():
    model, starts = made("llama"), []
    layer = model.blocks[0].attention
    turn = layer.rotate
    layer.rotate = lambda x, start: starts.append(start) or turn(x, start)
    generate(model, PROMPTS, 2, temperature=0)
    first, _, then, _ = (start[:, 0] for start in starts)  # queries, keys, and so again
    np.testing.assert_array_equal(first, real_positions(left_padded(PROMPTS)[1]))
    np.testing.assert_array_equal(then[:, 0], [*map(len, PROMPTS)])


def test_texts_of_equal_length_are_computed_as_before():
    model, rows = made("llama"), np.array([[1, 2, 3], [4, 5, 6]])
    for found in (model(rows.tolist()), model(rows, real=rows > 0), model(Tensor(rows))):
        np.testing.assert_array_equal(found.data, model(rows).data)
    assert generate(model, rows.tolist(), 4, temperature=0).shape == (2, 7)


# ---------------------------------------------------------------- refusal


def test_padding_within_a_text_is_refused_by_a_causal_model_also_across_its_cache():
    model, words = made("llama"), "in row 1 of real padding has tokens on both sides$"
    caches, real = model.caches(), np.array([[1, 1, 1, 1], [0, 1, 0, 1]], bool)
    model(np.ones((2, 3), int), real=real[:, :3], caches=caches)
    for tokens, given, earlier in (((2, 4), real, None), ((2, 1), None, caches)):
        with pytest.raises(ValueError, match=words):
            model(np.ones(tokens, int), real=given, caches=earlier)
    assert [cache.length for cache in caches] == [3, 3]
