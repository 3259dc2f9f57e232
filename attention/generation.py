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

With a cache (chapter 13.1) each step of `generate` computes the new position alone. `translate`
computes every position anew: its beams change places, and a cache would have to follow them.

Legend: B batch, T tokens so far, S tokens of a source, V tokens in the vocabulary, d_model
features.

    >>> from attention.generation import choose
    >>> choose(np.array([[1.0, 3.0, 2.0]]), temperature=0.0, rng=None)
    array([1])
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from attention.models import GPT
from attention.scaled_dot_product import check_mask
from attention.transformer import Transformer
from minigrad import Tensor, log_softmax, no_grad
from minigrad.nn import Dropout, Module, renamed

Array = np.ndarray[Any, Any]


@renamed(num_words="num_tokens")
@no_grad
def generate(
    model: GPT,
    prompt: Any,
    num_tokens: int,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    cached: bool = True,
    rng: np.random.Generator | None = None,
) -> Array:
    """The prompt, continued by num_tokens tokens.   (B, T) → (B, T + num_tokens)

    temperature  0 is greedy; otherwise tokens are drawn, and rng is needed
    top_k        draw from the k best tokens; None means from all
    top_p        draw from the fewest tokens that have probability p together
    cached       False computes every position anew at each step: slower, with results that are
                 equal but for rounding

    Prompts are of equal length, without padding. ValueError if the model is in training mode.
    Threads may share the model. Each of them needs an rng of its own, so that its text depends on
    the seed alone.
    """
    _refuse_dropout(model)
    _whole(num_tokens, "num_tokens")
    tokens = np.array(prompt)
    if tokens.ndim != 2 or tokens.shape[1] == 0:
        raise ValueError(f"a prompt has shape (B, T) with T ≥ 1: got {tokens.shape}")
    caches = model.caches() if cached else None
    new = tokens
    for _ in range(num_tokens):
        logits = model(new, caches=caches).data[:, -1]  # (B, V)
        chosen = choose(logits, temperature=temperature, top_k=top_k, top_p=top_p, rng=rng)
        tokens = np.concatenate([tokens, chosen[:, None]], axis=1)
        new = tokens[:, -1:] if cached else tokens
    return tokens


def _refuse_dropout(model: Module) -> None:
    """Refuse a model in training mode: dropout would make its text random at any temperature."""
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
    """One token for each row of scores.   (B, V) → (B,)

    The options are those of `generate`. ValueError if one is out of range, or a score is NaN.
    """
    logits = np.asarray(logits, float)
    if logits.ndim != 2:
        raise ValueError(f"scores have shape (B, V), a row for each text: got {logits.shape}")
    best = np.max(logits, axis=-1, initial=-np.inf)
    if len(logits) and not np.isfinite(best).all():
        raise ValueError("no token can be chosen: a row of scores has a NaN, or no finite number")
    if temperature < 0:
        raise ValueError(f"temperature must not be negative: got {temperature}")
    _check_options(top_k, top_p)
    if temperature == 0:
        return np.asarray(np.argmax(logits, axis=-1))
    if rng is None or not hasattr(rng, "random"):
        got = "" if rng is None else f": got {rng!r}"
        raise TypeError(
            f"drawing tokens needs rng=np.random.default_rng(seed); temperature=0 is greedy{got}"
        )
    p = probabilities(logits, temperature=temperature, top_k=top_k, top_p=top_p)
    # The first token at which the cumulative probability passes a number drawn from [0, 1).
    so_far = p.cumsum(axis=-1)  # the last is 1 but for rounding, and no draw may exceed it
    passed = so_far > rng.random((len(p), 1)) * so_far[:, -1:]
    return passed.argmax(axis=-1)  # type: ignore[no-any-return]


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
    _check_options(top_k, top_p)
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


def _check_options(top_k: int | None, top_p: float | None) -> None:
    if top_k is not None and _whole(top_k, "top_k") < 1:
        raise ValueError(f"top_k keeps at least one token: got {top_k}")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError(f"top_p is a probability above 0: got {top_p}")


def _whole(number: Any, name: str) -> int:
    """A number that counts something."""
    try:
        return operator.index(number)
    except TypeError:
        raise TypeError(f"{name} is a whole number: got {number!r}") from None


@renamed(max_words="max_tokens")
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
    _refuse_dropout(model)
    if _whole(num_beams, "num_beams") < 1:
        raise ValueError(f"a search needs at least one beam: got num_beams={num_beams}")
    sources = np.asarray(source)
    if sources.ndim != 2:
        raise ValueError(f"sources have shape (B, S), a row for each text: got {sources.shape}")
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
# What follows: the search itself.


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
        if not 0 <= end < log_p.shape[-1]:
            raise ValueError(f"end is one of the {log_p.shape[-1]} tokens from 0 on: got {end}")
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
