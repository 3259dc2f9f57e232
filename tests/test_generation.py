"""Chapter 15.4 · Generation: which words are drawn, how often, with a cache and with beams."""

import itertools
import math

import numpy as np
import pytest

from attention import attention
from attention.generation import _beam_search, choose, generate, probabilities, stream, translate
from attention.models import gpt2, llama
from attention.transformer import Transformer
from minigrad import Tensor, gradients, log_softmax
from minigrad.engine.record import is_recording

random = np.random.default_rng(3)
B, T, S, V = 2, 3, 5, 19
LOGITS = 2 * random.standard_normal((7, V))


def rng(seed=5):
    return np.random.default_rng(seed)


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


SIZES = {"d_model": 14, "num_heads": 7, "num_blocks": 2}
MODELS = {
    "gpt2": lambda **options: gpt2(V, 23, **SIZES, rng=rng(), **options),
    "llama": lambda **options: llama(V, num_kv_heads=1, **SIZES, rng=rng(), **options),
}
models = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
PROMPT = random.integers(0, V, (B, T))


def lively(model):
    """Give the model weights so large that it is sure of something."""
    draw = rng(7)
    for p in model.parameters():
        p.data = 0.5 * draw.standard_normal(p.shape)
    return model


# ---------------------------------------------------------------- value


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_words_are_drawn_from_the_softmax_of_scores_over_the_temperature(temperature):
    found = probabilities(LOGITS, temperature=temperature)
    np.testing.assert_allclose(found, softmax(LOGITS / temperature), rtol=1e-13)


@pytest.mark.parametrize("k", [1, 2, 5, V, V + 4])
def test_top_k_keeps_the_best_k_words_and_their_odds(k):
    found = probabilities(LOGITS, temperature=0.7, top_k=k)
    whole = softmax(LOGITS / 0.7)
    for row, p in zip(found, whole, strict=True):
        best = np.argsort(-p)[:k]
        assert set(np.flatnonzero(row)) == set(best)
        np.testing.assert_allclose(row[best], p[best] / p[best].sum(), rtol=1e-12)


@pytest.mark.parametrize("top_p", [1e-9, 0.3, 0.5, 0.9, 1.0])
def test_top_p_keeps_the_fewest_words_that_have_probability_p_together(top_p):
    found = probabilities(LOGITS, top_p=top_p)
    for row, p in zip(found, softmax(LOGITS), strict=True):
        kept = np.flatnonzero(row)
        assert p[kept].sum() >= top_p - 1e-12
        assert p[kept].sum() - p[kept].min() < top_p  # one fewer would not do
        assert p[kept].min() >= np.delete(p, kept).max(initial=0)
        np.testing.assert_allclose(row[kept], p[kept] / p[kept].sum(), rtol=1e-12)


def test_top_p_is_not_put_off_by_rounding():
    kept = lambda p, top_p: int((probabilities(np.log([p]), top_p=top_p) > 0).sum())
    assert kept([0.4, 0.3, 0.2, 0.1], 0.9) == 3
    assert kept([0.6, 0.3, 0.1], 0.9) == 2
    assert kept([0.1] * 10, 0.3) == 3


def test_top_k_and_top_p_together_keep_what_both_keep():
    one, other = probabilities(LOGITS, top_k=3), probabilities(LOGITS, top_p=0.6)
    both = probabilities(LOGITS, top_k=3, top_p=0.6)
    np.testing.assert_array_equal(both > 0, (one > 0) & (other > 0))


def test_the_old_name_of_the_number_of_tokens_is_refused():
    for use, words in ((stream, "keyword argument 'num_tokens'"), (generate, "'max_new_tokens'$")):
        with pytest.raises(TypeError, match=words):
            use(MODELS["gpt2"](), PROMPT, num_tokens=3)


@models
@pytest.mark.parametrize("max_new_tokens", [0, 7])
def test_greedy_text_is_the_best_word_after_the_best_word(make, max_new_tokens):
    model, words = lively(make()), PROMPT
    for _ in range(max_new_tokens):
        best = np.argmax(model(words).data[:, -1], axis=-1)
        words = np.concatenate([words, best[:, None]], axis=1)
    np.testing.assert_array_equal(generate(model, PROMPT, max_new_tokens, temperature=0), words)


# ---------------------------------------------------------------- law


def test_scores_may_be_enormous_and_minus_infinity_is_a_word_that_never_comes():
    scores = np.array([[1e6, 1e6 - 1, -np.inf, -1e6]])
    np.testing.assert_allclose(
        probabilities(scores), [[math.e / (1 + math.e), 1 / (1 + math.e), 0, 0]], rtol=1e-9
    )


@pytest.mark.parametrize("options", [{}, {"temperature": 0.5}, {"top_p": 0.8}], ids=str)
def test_words_come_as_often_as_their_probabilities_say(options):
    """Of n draws, a word of probability p comes n p times, give or take 5 √(n p (1 - p))."""
    n, scores = 20_000, LOGITS[:1]
    p = probabilities(scores, **options)[0]
    drawn = choose(np.tile(scores, (n, 1)), **options, rng=rng())
    counts = np.bincount(drawn, minlength=V)
    assert not counts[p == 0].any()
    assert (abs(counts - n * p) <= 5 * np.sqrt(n * p * (1 - p))).all()


def test_a_word_of_probability_0_is_not_drawn_even_by_the_largest_number_a_generator_gives():
    """Sums of probabilities end a rounding below 1, and a draw may fall between."""

    class Largest:
        def random(self, shape):
            return np.full(shape, 1 - 2.0**-53)

    scores = np.concatenate([np.full((1000, 1), -1e9), rng().standard_normal((1000, 50))], axis=1)
    assert (choose(scores, rng=Largest()) > 0).all()


@models
def test_equal_seeds_write_equal_texts_and_others_others(make):
    model = make()
    one, same, other = (generate(model, PROMPT, 11, rng=rng(seed)) for seed in (5, 5, 7))
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()
    np.testing.assert_array_equal(one[:, :T], PROMPT)
    unsigned = generate(model, PROMPT.astype(np.uint64), 11, rng=rng())
    np.testing.assert_array_equal(one, unsigned, strict=True)
    assert generate(model, [[3]], 2, rng=rng()).shape == (1, 3)
    assert one.shape == (B, T + 11) and one.dtype.kind == "i" and ((one >= 0) & (one < V)).all()


@models
def test_a_cached_step_computes_the_new_position_alone(make):
    model, seen = make(), []
    words = model.tokens
    model.tokens = lambda x: seen.append(np.shape(x)) or words(x)
    model.tokens.weight = words.weight  # a function may have attributes too
    generate(model, PROMPT, 3, temperature=0)
    assert seen == [(B, T), (B, 1), (B, 1)]
    seen.clear()
    generate(model, PROMPT, 3, temperature=0, cached=False)
    assert seen == [(B, T), (B, T + 1), (B, T + 2)]


WAYS = [{"top_k": 3}, {"temperature": 0, "cached": False}]
ways = pytest.mark.parametrize("options", WAYS, ids=str)


@pytest.mark.parametrize("rows", [1, B])
@ways
@models
def test_an_end_cuts_each_text_where_it_would_have_come_and_changes_no_other_word(
    make, options, rows
):
    """For every token that comes, or is in the prompt, as the end, and one that never comes."""
    model, prompt, n, cuts = lively(make()), PROMPT[:rows], 5, set()
    whole = generate(model, prompt, n, **options, rng=rng())
    for end in {*whole.ravel().tolist(), min({*range(V)} - {*whole.ravel().tolist()})}:
        cut = generate(model, prompt, n, end=end, **options, rng=rng())
        lengths = [min([*row, end].index(end) + 1, n) for row in whole[:, T:].tolist()]
        expected = whole[:, : T + max(lengths)].copy()
        for row, length in zip(expected, lengths, strict=True):
            row[T + length :] = end
        np.testing.assert_array_equal(cut, expected, strict=True)
        cuts |= set(lengths)
    assert len(cuts) > 1  # some texts end early, and some do not end


@pytest.mark.parametrize("end", [None, 3])
@ways
@models
def test_a_stream_gives_the_words_of_the_text_one_step_at_a_time(make, options, end):
    model = lively(make())
    whole = generate(model, PROMPT, 7, end=end, **options, rng=rng())
    found = []
    for word in stream(model, PROMPT, 7, end=end, **options, rng=rng()):
        assert word.shape == (B,)
        found.append(word.copy())
        word[:] = 0  # the caller's own
    np.testing.assert_array_equal(np.stack(found, axis=1), whole[:, T:])


def test_a_stream_computes_nothing_until_it_is_asked_and_nothing_after_all_texts_have_ended():
    seen = []
    model = lively(MODELS["llama"](attend=lambda *x, **o: seen.append(1) or attention(*x, **o)))
    end = int(generate(model, PROMPT[:1], 1, temperature=0)[0, -1])
    seen.clear()
    words = stream(model, PROMPT[:1], 9, end=end, temperature=0)
    assert not seen
    assert [int(word[0]) for word in words] == [end] and len(seen) == len(model.blocks)
    assert list(stream(model, PROMPT, 0, temperature=0)) == []


def recorded():
    """Return True if the caller gets a gradient."""
    w = Tensor(3.0, requires_grad=True)
    (d,) = gradients(w * w, [w]) if (w * w).requires_grad else (None,)
    return d == 6.0


@models
def test_between_the_steps_of_a_stream_the_caller_has_gradients_and_within_them_none(make):
    inside = []
    model = lively(make(attend=lambda *x, **o: inside.append(is_recording()) or attention(*x, **o)))
    words = stream(model, PROMPT, 5, temperature=0)
    for _ in range(2):
        next(words)
        assert recorded()
    words.close()
    assert recorded() and inside and not any(inside)


# Beam search, on a language of 4 words whose odds depend on the last two.

START, END, WORDS = 0, 1, 4


def language(seed):
    table = log_softmax(2 * np.random.default_rng(seed).standard_normal((WORDS, WORDS, WORDS)))

    def scores(beams):
        return np.array([table[beam[-2] if len(beam) > 1 else 0, beam[-1]] for beam in beams])

    return scores


def rated(scores, words):
    """Return the mean log-probability of what follows START."""
    total = sum(scores([[START, *words[:i]]])[0, word] for i, word in enumerate(words))
    return total / len(words)


def exhaustive(scores, max_tokens):
    """Return the best of all sentences that end within max_tokens."""
    others = [word for word in range(WORDS) if word != END]
    ended = [
        [*inside, END] for n in range(max_tokens) for inside in itertools.product(others, repeat=n)
    ]
    return max(ended, key=lambda words: rated(scores, words))[:-1]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("max_tokens", [1, 4])
def test_with_beams_for_all_beginnings_beam_search_is_exhaustive_search(seed, max_tokens):
    scores = language(seed)
    found = _beam_search(scores, START, END, max_tokens, WORDS**max_tokens)
    assert found == exhaustive(scores, max_tokens)


def beams_in_full(scores, max_tokens, num_beams):
    """Search by the description: every beam by every word, and the best num_beams go on.

    A sentence that ends before they are found is finished. The search is over when no beam can
    reach a better mean than the best finished one, as totals only fall; one beam, when it ends.
    """
    beams, finished = {(START,): 0.0}, {}
    for _ in range(max_tokens):
        options = {
            (*words, word): total + scores([words])[0, word]
            for words, total in beams.items()
            for word in range(WORDS)
        }
        beams = {}
        for words in sorted(options, key=options.get, reverse=True):
            if len(beams) < num_beams:
                (finished if words[-1] == END else beams)[words] = options[words]
        means = [total / (len(words) - 1) for words, total in finished.items()]
        hope = max([total / max_tokens for total in beams.values()], default=-np.inf)
        if finished and (num_beams == 1 or max(means) >= hope):
            break
    found = finished or beams
    best = max(found, key=lambda words: found[words] / (len(words) - 1))
    return [word for word in best[1:] if word != END]


@pytest.mark.parametrize("num_beams", [1, 2, 3, 5])
def test_so_many_beams_are_kept_at_every_step(num_beams):
    for seed in range(101):
        scores = language(seed)
        expected = beams_in_full(scores, 5, num_beams)
        assert _beam_search(scores, START, END, 5, num_beams) == expected


def translator(**options):
    return lively(
        Transformer(V, WORDS, d_model=14, num_heads=7, num_blocks=1, d_ff=17, rng=rng(), **options)
    )


SOURCES = random.integers(0, V, (B, S))


@pytest.mark.parametrize("num_beams", [1, 2, 64])
def test_translation_is_beam_search_in_what_the_model_scores(num_beams):
    model, mask = translator(), np.arange(S) < np.array([3, 5])[:, None, None]
    found = translate(
        model, SOURCES, start=START, end=END, max_tokens=3, num_beams=num_beams, source_mask=mask
    )
    for b in range(B):

        def scores(beams, b=b):
            sources = np.repeat(SOURCES[b : b + 1], len(beams), axis=0)
            logits = model(sources, np.array(beams), source_mask=mask[b : b + 1])
            return log_softmax(logits.data[:, -1])

        assert found[b] == _beam_search(scores, START, END, 3, num_beams)
        if num_beams == 64:
            assert found[b] == exhaustive(scores, 3)
        assert len(found[b]) <= 3 and END not in found[b]


# ---------------------------------------------------------------- refusal


def test_a_model_that_still_drops_is_refused_until_it_is_told_that_training_is_over():
    said = "^the model is in training mode and drops at random: call model.eval\\(\\) first$"
    model = MODELS["gpt2"](dropout=0.1)
    with pytest.raises(ValueError, match=said):
        generate(model, PROMPT, 1, temperature=0)
    assert generate(model.eval(), PROMPT, 1, temperature=0).shape == (B, T + 1)
    model = translator(dropout=0.1)
    with pytest.raises(ValueError, match=said):
        translate(model, SOURCES, start=START, end=END, max_tokens=2)
    assert len(translate(model.eval(), SOURCES, start=START, end=END, max_tokens=2)) == B
