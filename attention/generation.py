"""15.4 · Generation: one word after the other.

A model gives scores for the next word. How does it come to write a text? Choose a word, append it,
ask again. What "choose" means makes all the difference. **Greedy** takes the highest score: right
where there is one answer, and soon repeating itself where there are many. **Sampling** draws from
softmax(logits / temperature): below 1 the scores are further apart, above 1 nearer. Each rare word
is unlikely, but there are so many that one of them is drawn often, and a single one can derail the
text. So **top-k** draws from the k best only (Fan et al. 2018), and **top-p** from the fewest that
together have probability p (Holtzman et al. 2019). **Beam search** keeps the n best beginnings
instead of one, for where the whole sentence counts and not its first word.

With a cache (chapter 13.1) each step of `generate` computes the new position alone; `translate`,
whose beams change places, computes every position anew.

Legend: B batch, T words so far, S words of a source, V words there are, d_model features.

    >>> from attention.generation import choose
    >>> choose(np.array([[1.0, 3.0, 2.0]]), temperature=0.0, rng=None)
    array([1])
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from attention.models import GPT
from attention.scaled_dot_product import check_mask
from attention.transformer import Transformer
from minigrad import Tensor, log_softmax, no_grad
from minigrad.nn import Dropout, Module

Array = np.ndarray[Any, Any]


@no_grad
def generate(
    model: GPT,
    prompt: Any,
    num_words: int,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    cached: bool = True,
    rng: np.random.Generator | None = None,
) -> Array:
    """The prompt, continued by so many words.   (B, T) → (B, T + num_words)

    temperature  0 is greedy; otherwise words are drawn, and rng is needed
    top_k, top_p  draw from the best k words, from the fewest that have probability p together,
                 of all words
    cached       False computes every position anew at each step: slower, and equal to rounding

    Prompts are of equal length, without padding. ValueError if the model is in training mode.
    """
    _refuse_dropout(model)
    words = np.array(prompt)
    if words.ndim != 2 or words.shape[1] == 0:
        raise ValueError(f"a prompt has shape (B, T) with T ≥ 1: got {words.shape}")
    caches = model.caches() if cached else None
    new = words
    for _ in range(num_words):
        logits = model(new, caches=caches).data[:, -1]  # (B, V)
        chosen = choose(logits, temperature=temperature, top_k=top_k, top_p=top_p, rng=rng)
        words = np.concatenate([words, chosen[:, None]], axis=1)
        new = words[:, -1:] if cached else words
    return words


def _refuse_dropout(model: Module) -> None:
    """A model that still drops would write at random, whatever the temperature."""
    if any(isinstance(m, Dropout) and m.p and m.training for m in model.modules()):
        raise ValueError(
            "the model is in training mode and drops at random: call model.eval() first"
        )


def choose(
    logits: Array,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    rng: np.random.Generator | None,
) -> Array:
    """One word for each row of scores.   (B, V) → (B,)

    The options are those of `generate`. ValueError if they make no sense, or a score is NaN.
    """
    logits = np.asarray(logits, float)
    if logits.ndim != 2:
        raise ValueError(f"scores have shape (B, V), a row for each text: got {logits.shape}")
    best = np.max(logits, axis=-1, initial=-np.inf)
    if len(logits) and not np.isfinite(best).all():
        raise ValueError("no word can be chosen: a row of scores has a NaN, or no finite number")
    if temperature < 0:
        raise ValueError(f"temperature must not be negative: got {temperature}")
    _check_options(top_k, top_p)
    if temperature == 0:
        return np.asarray(np.argmax(logits, axis=-1))
    if rng is None:
        raise TypeError(
            "drawing words needs rng=np.random.default_rng(seed); temperature=0 is greedy"
        )
    p = probabilities(logits, temperature=temperature, top_k=top_k, top_p=top_p)
    # The first word at which the cumulative probability passes a number drawn from [0, 1).
    so_far = p.cumsum(axis=-1)  # its last is 1 but for rounding, and no draw may exceed it
    passed = so_far > rng.random((len(p), 1)) * so_far[:, -1:]
    return passed.argmax(axis=-1)  # type: ignore[no-any-return]


def probabilities(
    logits: Array, *, temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None
) -> Array:
    """What words are drawn from: softmax(logits / temperature) of those left.   (…, V) → (…, V)

    >>> from attention.generation import probabilities
    >>> probabilities(np.log([[0.5, 0.3, 0.2]]), top_p=0.6).round(3)
    array([[0.625, 0.375, 0.   ]])
    """
    if not temperature > 0:
        raise ValueError(f"a temperature to divide by is above 0: got {temperature}")
    _check_options(top_k, top_p)
    logits = np.asarray(logits, float)
    with np.errstate(over="ignore"):  # a score far below the best, by a tiny temperature: -∞
        colder = (logits - logits.max(axis=-1, keepdims=True)) / temperature
    p = np.exp(log_softmax(colder))
    order = np.argsort(-p, axis=-1, kind="stable")
    ranked = np.take_along_axis(p, order, axis=-1)
    kept = np.ones(ranked.shape, bool)
    if top_k is not None:
        kept[..., top_k:] = False
    if top_p is not None:  # up to and with the word that brings the sum to p
        kept &= ranked.cumsum(axis=-1) - ranked < top_p - 1e-12  # (sums of tenths round)
    left = np.zeros(p.shape)
    np.put_along_axis(left, order, np.where(kept, ranked, 0), axis=-1)
    return left / left.sum(axis=-1, keepdims=True)  # type: ignore[no-any-return]


def _check_options(top_k: int | None, top_p: float | None) -> None:
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k keeps at least one word: got {top_k}")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError(f"top_p is a probability above 0: got {top_p}")


@no_grad
def translate(
    model: Transformer,
    source: Any,
    *,
    start: int,
    end: int,
    max_words: int,
    num_beams: int = 1,
    source_mask: Any = None,
) -> list[list[int]]:
    """A target sentence for each source, by beam search.   (B, S) → B lists of words

    Sentences begin after the word `start` and stop before the word `end`; only if none has ended
    after max_words is one taken that has not. A beam is judged by its mean log-probability for each
    word, the end among them: a sum would prefer short sentences. One beam is greedy decoding.
    (Vaswani et al., section 6.1, keep 4 beams and divide by ((5 + n)/6)^0.6 for n words.)
    source_mask is padding's, (B, 1, S).
    """
    _refuse_dropout(model)
    if num_beams < 1:
        raise ValueError(f"a search needs at least one beam: got num_beams={num_beams}")
    sources = np.asarray(source)
    if sources.ndim != 2:
        raise ValueError(f"sources have shape (B, S), a row for each text: got {sources.shape}")
    if source_mask is not None:
        each = (len(sources), 1, sources.shape[1])
        source_mask = np.broadcast_to(check_mask(source_mask, each), each)
    found = []
    for row in range(len(sources)):
        mask = None if source_mask is None else source_mask[row : row + 1]
        memory = model.encode(sources[row : row + 1], source_mask=mask)  # (1, S, d_model)

        def scores(beams: list[list[int]], memory: Tensor = memory, mask: Any = mask) -> Array:
            several = np.array(beams)
            copies = Tensor(np.repeat(memory.data, len(beams), axis=0))
            logits = model.decode(several, copies, source_mask=mask)
            return log_softmax(logits.data[:, -1])  # type: ignore[return-value]

        found.append(_beam_search(scores, start, end, max_words, num_beams))
    return found


def _beam_search(
    scores: Callable[[list[list[int]]], Array], start: int, end: int, max_words: int, num_beams: int
) -> list[int]:
    """The best finished sentence: all beams are continued by all words, and the best ones kept."""
    beams: list[tuple[float, list[int]]] = [(0.0, [start])]
    finished: list[tuple[float, list[int]]] = []
    for _ in range(max_words):
        log_p = scores([words for _, words in beams])
        options = [
            (total + float(log_p[i, word]), [*words, int(word)])
            for i, (total, words) in enumerate(beams)
            for word in np.argsort(-log_p[i], kind="stable")[: num_beams + 1]
        ]
        options.sort(key=lambda option: -option[0])
        beams = []
        for total, words in options:
            if len(beams) == num_beams:
                break
            if words[-1] == end:
                finished.append((total / (len(words) - 1), words[1:-1]))
            else:
                beams.append((total, words))
        # Totals only fall: no living beam can still have a better mean than this.
        hope = max((total / max_words for total, _ in beams), default=-np.inf)
        if finished and (num_beams == 1 or max(finished)[0] >= hope):
            break
    if not finished:
        finished = [(total / max(len(words) - 1, 1), words[1:]) for total, words in beams]
    return max(finished, key=lambda sentence: sentence[0])[1]
