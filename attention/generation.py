"""15.4 · Generation: one token after the other.

A model gives scores for the next token. How does it come to write a text? Choose a token, append
it, and ask again. **Greedy** takes the token with the highest score. That is right where there is
one answer, but a longer text soon repeats itself. **Sampling** draws from softmax(logits /
temperature): a temperature below 1 moves the scores further apart, one above 1 moves them together.
Each rare token is unlikely, but there are so many that one of them is drawn often, and a single one
can derail the text. So **top-k** draws only from the k best tokens (Fan et al. 2018), and **top-p**
only from the fewest that together have probability p (Holtzman et al. 2019). **Beam search** keeps
the n best beginnings instead of one, for a task that needs the best sentence and not the best first
token.

`stream` gives each token as soon as it is chosen, and `generate` gives the whole text. With a cache
(`KVCache`) each step computes the new position alone. `translate` computes every position anew:
its beams change places, and a cache would have to follow them.

**Prompts of unequal length** are padded on the left, since the next token is read off the last
column. No token may look at the padding, and positions are counted from each prompt's first token:
otherwise the prompt would begin in the middle of a text. Then each prompt gets the tokens that it
gets alone. (Its scores differ by rounding, since sums over more keys are taken in another order.)

    >>> from attention.models import llama
    >>> model = llama(11, d_model=8, num_heads=4, num_blocks=2, rng=np.random.default_rng(0))
    >>> texts = generate(model, [[1, 2, 3], [4]], 2, temperature=0)
    >>> [np.array_equal(text, generate(model, [text[:-2]], 2, temperature=0)[0]) for text in texts]
    [True, True]

Legend: B batch, T tokens so far, S tokens of a source, V tokens in the vocabulary, d_model
features.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from attention.blocks import refuse_dropout
from attention.masks import left_padded
from attention.models import GPT
from attention.scaled_dot_product import Mask
from attention.transformer import Transformer
from minigrad import Tensor, as_number, log_softmax, no_grad

Array = np.ndarray[Any, Any]
Generators = np.random.Generator | Sequence[np.random.Generator] | None


def stream(
    model: GPT,
    prompt: Any,
    max_new_tokens: int,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    end: int | None = None,
    cached: bool = True,
    rng: Generators = None,
) -> Iterator[Array]:
    """Yield the tokens after a prompt, one step at a time.   (B, T) → max_new_tokens times (B,)

    prompt       integers (B, T), or a list of B prompts of unequal length, each of which gets the
                 tokens that it gets alone
    temperature  0 is greedy; otherwise tokens are drawn, and rng is needed
    rng          a generator for all rows, or a list of one for each: then what is drawn for a row
                 does not depend on the other rows
    top_k        draw from the k best tokens; None means from all
    top_p        draw from the fewest tokens that have probability p together
    end          the token after which a text stops. A row of the batch that has ended gets `end`
                 again until all rows have ended, and then the stream ends too. An `end` in the
                 prompt stops nothing
    cached       False computes every position anew at each step: slower, with results that are
                 equal but for rounding

    So a program can print a text while it is written: `for token in stream(…)`. An error is raised
    at the step that meets it: for a model that drops at random at the first one, for a text that
    outgrows the model's positions where it does (ValueError, as for an empty prompt).
    """
    refuse_dropout(model)
    max_new_tokens = as_number("max_new_tokens", max_new_tokens, 0, whole=True)
    if end is not None:
        end = as_number("end", end, 0, model.tokens.weight.shape[0], whole=True)
    new, real = _prompts(prompt)  # (B, T), and where it is not padding, or None
    caches = model.caches() if cached else None
    ended = np.zeros(len(new), bool)  # (B,)
    for _ in range(max_new_tokens):
        padding = {} if real is None else {"real": real}
        with no_grad():  # (it ends before the yield: the caller goes on with a record)
            logits = model(new, caches=caches, **padding).data[:, -1]  # (B, V)
        chosen = choose(logits, temperature=temperature, top_k=top_k, top_p=top_p, rng=rng)  # (B,)
        if end is not None:
            chosen = np.where(ended, end, chosen)
            ended = chosen == end  # (B,)
        new = np.concatenate([new[:, :0] if cached else new, chosen[:, None]], axis=1)
        if real is not None:  # an ended text is not read on, so it outgrows no positions
            real = np.concatenate([real[:, :0] if cached else real, ~ended[:, None]], axis=1)
        yield chosen
        if end is not None and ended.all():
            return


def generate(model: GPT, prompt: Any, max_new_tokens: int, **options: Any) -> Any:
    """Continue the prompt by max_new_tokens tokens.   (B, T) → (B, T + max_new_tokens)

    The options are those of `stream`, whose steps it joins. With `end` it stops when the last text
    has ended, and the other rows are filled with `end`.

    Of a list of prompts of unequal length it returns a list of arrays (T_b + new tokens,), each as
    it would be alone, and so with its first `end` as its last token.
    """
    tokens, real = _prompts(prompt)  # (B, T), and where it is not padding, or None
    steps = stream(model, prompt, max_new_tokens, **options)
    texts = np.concatenate([tokens, *(chosen[:, None] for chosen in steps)], axis=1)
    if real is None:
        return texts
    T = tokens.shape[1]
    alone = []
    for row, is_real in zip(texts, real, strict=True):
        ends = T + np.flatnonzero(row[T:] == options.get("end"))  # those of the prompt stop nothing
        last = ends[0] if len(ends) else len(row) - 1
        alone.append(row[is_real.argmax() : last + 1])
    return alone


def choose(
    logits: Array,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    rng: Generators,
) -> Array:
    """Choose one token for each row of scores.   (B, V) → (B,)

    The options are those of `generate`. ValueError if a score is NaN.
    """
    logits = np.asarray(logits, float)
    if not np.isfinite(logits.max(axis=-1)).all():
        raise ValueError("no token can be chosen: a row of scores has a NaN, or no finite number")
    if temperature == 0:
        return np.asarray(np.argmax(logits, axis=-1))
    p = probabilities(logits, temperature=temperature, top_k=top_k, top_p=top_p)
    # The first token at which the cumulative probability passes a number drawn from [0, 1).
    so_far = p.cumsum(axis=-1)  # the last is 1 but for rounding, and no draw may exceed it
    passed = so_far > _drawn(rng, len(p)) * so_far[:, -1:]
    return np.asarray(passed.argmax(axis=-1))


def probabilities(
    logits: Array, *, temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None
) -> Array:
    """softmax(logits / temperature), and 0 for tokens left out by top_k, top_p.   (…, V) → (…, V)

    >>> from attention.generation import probabilities
    >>> probabilities(np.log([[0.5, 0.3, 0.2]]), top_p=0.6).round(3)
    array([[0.625, 0.375, 0.   ]])
    """
    if not temperature > 0:
        raise ValueError(f"a temperature to divide by is above 0: got {temperature}")
    if (top_k is not None and top_k < 1) or (top_p is not None and not 0 < top_p <= 1):
        raise ValueError(f"top_k is 1 or more, top_p a probability: got {top_k} and {top_p}")
    logits = np.asarray(logits, float)
    p = np.exp(log_softmax((logits - logits.max(axis=-1, keepdims=True)) / temperature))
    order = np.argsort(-p, axis=-1, kind="stable")
    ranked = np.take_along_axis(p, order, axis=-1)
    kept = np.ones(ranked.shape, bool)
    if top_k is not None:
        kept[..., top_k:] = False
    if top_p is not None:  # up to and with the token that brings the sum to p
        kept &= ranked.cumsum(axis=-1) - ranked < top_p - 1e-12  # (sums of tenths are rounded)
        kept[..., :1] = True  # the fewest tokens are at least one
    left = np.zeros(p.shape)
    np.put_along_axis(left, order, np.where(kept, ranked, 0), axis=-1)
    return np.asarray(left / left.sum(axis=-1, keepdims=True))  # (…, V)


@no_grad
def translate(
    model: Transformer,
    source: Any,
    *,
    start: int,
    end: int,
    max_tokens: int,
    num_beams: int = 1,
    source_mask: Any = None,
) -> list[list[int]]:
    """Find a target sentence for each source by beam search.   (B, S) → B lists of tokens

    Sentences begin after the token `start` and stop before the token `end`. If no sentence has
    ended after max_tokens, the best unfinished one is taken. A beam's score is the mean
    log-probability of its tokens, `end` included: a sum would prefer short sentences. One beam is
    greedy decoding. (Vaswani et al., section 6.1, keep 4 beams and divide by ((5 + n)/6)^0.6 for n
    tokens.) source_mask is padding's, (B, 1, S).
    """
    refuse_dropout(model)
    end = as_number("end", end, 0, model.target_tokens.weight.shape[0], whole=True)
    num_beams = as_number("num_beams", num_beams, 1, whole=True)
    sources = _texts(source)
    found = []
    for row in range(len(sources)):
        mask = None if source_mask is None else source_mask[row : row + 1]  # (1, 1, S)
        memory = model.encode(sources[row : row + 1], source_mask=mask)  # (1, S, d_model)

        def scores(beams: list[list[int]], memory: Tensor = memory, mask: Any = mask) -> Array:
            several = np.array(beams)
            copies = Tensor(np.repeat(memory.data, len(beams), axis=0))  # (…, S, d_model)
            logits = model.decode(several, copies, source_mask=mask)
            return log_softmax(logits.data[:, -1])  # type: ignore[return-value]

        found.append(_beam_search(scores, start, end, max_tokens, num_beams))
    return found


# ---------------------------------------------------- A first reading may stop here.
# What follows: the search itself.


def _beam_search(
    scores: Callable[[list[list[int]]], Array],
    start: int,
    end: int,
    max_tokens: int,
    num_beams: int,
) -> list[int]:
    """Return the best finished sentence: each step tries the best tokens after every beam."""
    beams: list[tuple[float, list[int]]] = [(0.0, [start])]
    finished: list[tuple[float, list[int]]] = []
    for _ in range(max_tokens):
        log_p = scores([tokens for _, tokens in beams])
        options = [
            (total + float(log_p[i, token]), [*tokens, int(token)])
            for i, (total, tokens) in enumerate(beams)
            for token in np.argsort(-log_p[i], kind="stable")[: num_beams + 1]
        ]
        options.sort(key=lambda option: -option[0])
        beams = []
        for total, tokens in options:
            if len(beams) == num_beams:
                break
            if tokens[-1] == end:
                finished.append((total / (len(tokens) - 1), tokens[1:-1]))
            else:
                beams.append((total, tokens))
        # Totals only fall: no beam can still have a better mean than this.
        hope = max((total / max_tokens for total, _ in beams), default=-np.inf)
        if finished and (num_beams == 1 or max(finished)[0] >= hope):
            break
    if not finished:
        finished = [(total / max(len(tokens) - 1, 1), tokens[1:]) for total, tokens in beams]
    return max(finished, key=lambda sentence: sentence[0])[1]


def _drawn(rng: Any, rows: int) -> Array:
    """Draw a number of [0, 1) for each row, from one generator or the row's own.   → (rows, 1)"""
    several = isinstance(rng, list | tuple)
    if not all(hasattr(generator, "random") for generator in (rng if several else [rng])):
        raise TypeError(
            "drawing tokens needs rng=np.random.default_rng(seed), or a list of one for each row, "
            f"and got {rng!r:.60}; temperature=0 is greedy"
        )
    if not several:
        return np.asarray(rng.random((rows, 1)))
    if len(rng) != rows:
        raise ValueError(f"rng is one generator, or one for each of {rows} texts: got {len(rng)}")
    return np.array([[generator.random()] for generator in rng])


def _prompts(prompt: Any) -> tuple[Array, Mask | None]:
    """Return the prompts as integers (B, T), and where they are not padding, if some are."""
    tokens, real = left_padded(prompt)
    return _texts(tokens), real


def _texts(tokens: Any) -> Array:
    """Return the tokens as integers, a row for each text; ValueError for another shape."""
    try:
        array = np.array(tokens)
    except ValueError:  # rows of unequal lengths
        raise ValueError(
            f"texts of one batch are of equal length: got {[*map(np.size, tokens)]} tokens; pass "
            "them one by one"
        ) from None
    if array.ndim != 2 or array.shape[1] == 0:
        raise ValueError(f"texts have shape (B, T) with T ≥ 1, one in each row: got {array.shape}")
    return array.astype(int, casting="same_kind")
