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
(chapter 13.1) each step computes the new position alone. `translate` computes every position anew:
its beams change places, and a cache would have to follow them.

Legend: B batch, T tokens so far, S tokens of a source, V tokens in the vocabulary, d_model
features.

    >>> from attention.generation import choose
    >>> choose(np.array([[1.0, 3.0, 2.0]]), temperature=0.0, rng=None)
    array([1])
"""

from __future__ import annotations

import numbers
import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from attention.blocks import refuse_dropout
from attention.models import GPT
from attention.scaled_dot_product import check_mask
from attention.transformer import Transformer
from minigrad import Tensor, log_softmax, no_grad
from minigrad.engine.tensor import refuse_masked
from minigrad.nn import Dropout, Embedding
from minigrad.ops.indexing import integers_below

Array = np.ndarray[Any, Any]


def stream(
    model: GPT,
    prompt: Any,
    num_tokens: int,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    end: int | None = None,
    cached: bool = True,
    rng: np.random.Generator | None = None,
) -> Iterator[Array]:
    """The tokens after a prompt, one step at a time: num_tokens arrays.   (B, T) → (B,), …

    temperature  0 is greedy; otherwise tokens are drawn, and rng is needed
    top_k        draw from the k best tokens; None means from all
    top_p        draw from the fewest tokens that have probability p together
    end          the token after which a text stops. A row of the batch that has ended gets `end`
                 again until all rows have ended, and then the stream ends too. An `end` in the
                 prompt stops nothing
    cached       False computes every position anew at each step: slower, with results that are
                 equal but for rounding

    So a program can print a text while it is written: `for token in stream(…)`. Prompts are of
    equal length, without padding. What is wrong is refused when `stream` is called, such as a model
    in training mode or a prompt longer than the model's positions. Only a text that outgrows them,
    learned ones or `max_length`, is refused where it does: with `end` it may stop before. Between
    two steps the caller's gradients are recorded as usual. If parameters change there, positions
    that are cached keep their former keys and values.

    Threads may share the model. Each of them needs an rng of its own, so that its text depends on
    the seed alone.
    """
    tokens = _prompt(prompt, model)
    _count(num_tokens, "num_tokens")
    if end is not None:
        _check_end(end, model.tokens)
    _check_options(temperature, top_k, top_p)
    if temperature:
        _check_rng(rng)
    refuse_dropout(model)
    if num_tokens:
        model.refuse_beyond(tokens.shape[1])
    how = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "rng": rng}
    return _steps(model, tokens, num_tokens, end, cached, how)


def _steps(
    model: GPT, new: Array, num_tokens: int, end: int | None, cached: bool, how: dict[str, Any]
) -> Iterator[Array]:
    """The steps of `stream`: a generator runs nothing before its first step, and checks too late.

    no_grad ends before each yield. Otherwise the caller would go on without a record.
    """
    caches = model.caches() if cached else None
    drops = [m for m in model.modules() if isinstance(m, Dropout) and m.p]
    ended = np.zeros(len(new), bool)  # (B,)
    for _ in range(num_tokens):
        refuse_dropout(*drops)  # (which the caller may have set to training since)
        with no_grad():
            logits = model(new, caches=caches).data[:, -1]  # (B, V)
        chosen = choose(logits, **how)  # (B,)
        if end is not None:
            chosen = np.where(ended, end, chosen)
            ended = chosen == end  # (B,)
        new = np.concatenate([new[:, :0] if cached else new, chosen[:, None]], axis=1)
        yield chosen
        if end is not None and ended.all():
            return


def generate(
    model: GPT,
    prompt: Any,
    num_tokens: int,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    end: int | None = None,
    cached: bool = True,
    rng: np.random.Generator | None = None,
) -> Array:
    """The prompt, continued by num_tokens tokens.   (B, T) → (B, T + num_tokens)

    The options are those of `stream`, whose steps it joins. With `end` the texts may be shorter:
    (B, T + n), where n ≤ num_tokens is the length of the longest new text, its `end` included. The
    other rows are filled with `end`.
    """
    tokens = _prompt(prompt, model)
    options: dict[str, Any] = {"end": end, "cached": cached, "rng": rng}
    steps = stream(
        model, tokens, num_tokens, temperature=temperature, top_k=top_k, top_p=top_p, **options
    )
    return np.concatenate([tokens, *(chosen[:, None] for chosen in steps)], axis=1)


def choose(
    logits: Array,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    rng: np.random.Generator | None,
) -> Array:
    """One token for each row of scores.   (B, V) → (B,)

    The options are those of `generate`. ValueError if one is out of range, or a score is NaN.
    """
    refuse_masked(logits, "choose")
    logits = np.asarray(logits, float)
    if logits.ndim != 2:
        raise ValueError(f"scores have shape (B, V), a row for each text: got {logits.shape}")
    best = np.max(logits, axis=-1, initial=-np.inf)
    if len(logits) and not np.isfinite(best).all():
        raise ValueError("no token can be chosen: a row of scores has a NaN, or no finite number")
    _check_options(temperature, top_k, top_p)
    if temperature == 0:
        return np.asarray(np.argmax(logits, axis=-1))
    draw = _check_rng(rng)
    p = probabilities(logits, temperature=temperature, top_k=top_k, top_p=top_p)
    # The first token at which the cumulative probability passes a number drawn from [0, 1).
    so_far = p.cumsum(axis=-1)  # the last is 1 but for rounding, and no draw may exceed it
    passed = so_far > draw.random((len(p), 1)) * so_far[:, -1:]
    return passed.argmax(axis=-1)  # type: ignore[no-any-return]


def probabilities(
    logits: Array, *, temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None
) -> Array:
    """softmax(logits / temperature), and 0 for tokens left out by top_k, top_p.   (…, V) → (…, V)

    >>> from attention.generation import probabilities
    >>> probabilities(np.log([[0.5, 0.3, 0.2]]), top_p=0.6).round(3)
    array([[0.625, 0.375, 0.   ]])
    """
    if temperature == 0:
        raise ValueError("a temperature to divide by is above 0: got 0")
    _check_options(temperature, top_k, top_p)
    refuse_masked(logits, "probabilities")
    logits = np.asarray(logits, float)
    # A score far below the best, by a tiny temperature: -∞. One of -∞ by an infinite one: NaN.
    with np.errstate(over="ignore", invalid="ignore"):
        colder = (logits - logits.max(axis=-1, keepdims=True)) / temperature
    p = np.exp(log_softmax(np.where(logits == -np.inf, -np.inf, colder)))
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
    return left / left.sum(axis=-1, keepdims=True)  # type: ignore[no-any-return]  # (…, V)


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
    """A target sentence for each source, by beam search.   (B, S) → B lists of tokens

    Sentences begin after the token `start` and stop before the token `end`. If no sentence has
    ended after max_tokens, the best unfinished one is taken. A beam's score is the mean
    log-probability of its tokens, `end` included: a sum would prefer short sentences. One beam is
    greedy decoding. (Vaswani et al., section 6.1, keep 4 beams and divide by ((5 + n)/6)^0.6 for n
    tokens.) source_mask is padding's, (B, 1, S).
    """
    refuse_dropout(model)
    if _whole(num_beams, "num_beams") < 1:
        raise ValueError(f"a search needs at least one beam: got num_beams={num_beams}")
    sources = np.asarray(source)
    if sources.ndim != 2:
        raise ValueError(f"sources have shape (B, S), a row for each text: got {sources.shape}")
    _count(max_tokens, "max_tokens")
    _check_end(end, model.target_tokens)
    if source_mask is not None:
        each = (len(sources), 1, sources.shape[1])
        source_mask = np.broadcast_to(check_mask(source_mask, each), each)  # (B, 1, S)
    found = []
    for row in range(len(sources)):
        mask = None if source_mask is None else source_mask[row : row + 1]
        memory = model.encode(sources[row : row + 1], source_mask=mask)  # (1, S, d_model)

        def scores(beams: list[list[int]], memory: Tensor = memory, mask: Any = mask) -> Array:
            several = np.array(beams)
            copies = Tensor(np.repeat(memory.data, len(beams), axis=0))  # (…, S, d_model)
            logits = model.decode(several, copies, source_mask=mask)
            return log_softmax(logits.data[:, -1])  # type: ignore[return-value]

        found.append(_beam_search(scores, start, end, max_tokens, num_beams))
    return found


# ---------------------------------------------------- A first reading may stop here.
# What follows: the search itself, and sentences for arguments that do not fit.


def _beam_search(
    scores: Callable[[list[list[int]]], Array],
    start: int,
    end: int,
    max_tokens: int,
    num_beams: int,
) -> list[int]:
    """The best finished sentence: each step tries every token after every beam."""
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


def _prompt(prompt: Any, model: GPT) -> Array:
    """A prompt as an array of its own, of tokens that the model knows."""
    if isinstance(prompt, np.ma.MaskedArray):
        raise TypeError("a prompt would lose the mask of a masked array: write the tokens out")
    try:
        tokens = np.array(prompt)
    except ValueError:
        raise ValueError("prompts of one batch have equal lengths: write them one by one") from None
    if tokens.ndim != 2 or tokens.shape[1] == 0:
        raise ValueError(f"a prompt has shape (B, T) with T ≥ 1: got {tokens.shape}")
    return integers_below(tokens, model.tokens.weight.shape[0], "the prompt")


def _check_options(temperature: float, top_k: int | None, top_p: float | None) -> None:
    """Refuse what `choose` cannot draw with."""
    if not isinstance(temperature, numbers.Real):
        raise TypeError(f"a temperature is a number: got {temperature!r}")
    if not temperature >= 0:  # or NaN
        raise ValueError(f"a temperature is 0 or above: got {temperature}")
    if top_k is not None and _whole(top_k, "top_k") < 1:
        raise ValueError(f"top_k keeps at least one token: got {top_k}")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError(f"top_p is a probability above 0: got {top_p}")


def _check_rng(rng: Any) -> np.random.Generator:
    """What tokens are drawn with."""
    if rng is None or not hasattr(rng, "random"):
        got = "" if rng is None else f": got {rng!r}"
        raise TypeError(
            f"drawing tokens needs rng=np.random.default_rng(seed); temperature=0 is greedy{got}"
        )
    return rng  # type: ignore[no-any-return]


def _check_end(end: Any, table: Embedding) -> None:
    """Refuse an `end` that no text could come to."""
    vocab_size = table.weight.shape[0]
    if not 0 <= _whole(end, "end") < vocab_size:
        raise ValueError(f"end is one of the {vocab_size} tokens from 0 on: got {end}")


def _count(number: Any, name: str) -> None:
    """Refuse what is not a number of tokens."""
    if _whole(number, name) < 0:
        raise ValueError(f"{name} must not be negative: got {number}")


def _whole(number: Any, name: str) -> int:
    """A number that counts something."""
    try:
        if isinstance(number, bool):  # which Python would count with
            raise TypeError
        return operator.index(number)
    except TypeError:
        raise TypeError(f"{name} is a whole number: got {number!r}") from None
