"""Demos · Counting: what followed the last n characters of a text, or its last n words.

`charlm` sets such counts beside a model, also for the blank of a source text.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from pydoc_data.topics import topics
from typing import Any

import numpy as np

# A source text (`sky_is_blue`) opens with "The sky is ___ and world is round".
BEGINNING = "The sky is "
UNFITTING = ("hesitating", "destroyed", "skipping")  # says the text
FILLERS = ("blue", "round", *UNFITTING, "used")  # the last comes after "is" in the documentation


def documentation() -> str:
    """Return all topics of Python's `help`, such as that of `help("while")`: every Python has them.

    Many topics repeat paragraphs of other topics; such paragraphs are a fifth of all the text. Here
    each paragraph is taken once, however its lines are broken. (Phrases still repeat.)
    """
    paragraphs = [part for name in sorted(topics) for part in topics[name].split("\n\n")]
    return "\n\n".join({" ".join(part.split()): part for part in paragraphs}.values())


def followers(text: Sequence[Any], orders: int) -> list[dict[Any, Counter[Any]]]:
    """Return for each n up to `orders` a table: n neighbours → the counts of what followed them.

    text  a string, or a tuple of words
    """
    following: list[dict[Any, Counter[Any]]] = [defaultdict(Counter) for _ in range(orders + 1)]
    for n, counts in enumerate(following):
        for i in range(n, len(text)):
            counts[text[i - n : i]][text[i]] += 1
    return following


def chances(
    following: Sequence[dict[Any, Counter[Any]]], before: Sequence[Any], then: Any, choices: int
) -> list[float]:
    """Return the probability that `then` comes after `before`, by each order.

    Where the counts of an order are small, the next lower order gets more weight. The smoothing is
    that of Witten and Bell (1991). A context h was followed by `kinds` different characters. Each
    of them counts as one surprise, and a surprise has the probabilities of the lower order:

        p(c | h) = (count(h c) + kinds(h) · p(c | h without its first)) / (count(h) + kinds(h))

    choices  how many characters there are: the lowest order of all gives them equal probabilities
    """
    p = 1 / choices
    probabilities = []
    for n, counts in enumerate(following):
        after = counts.get(before[len(before) - n :])
        if after:
            p = (after[then] + len(after) * p) / (after.total() + len(after))
        probabilities.append(p)
    return probabilities


def bits_of(
    word: str, following: Sequence[dict[Any, Counter[Any]]], before: str, choices: int
) -> Any:
    """Return the mean of -log₂ p over the characters of the word after `before`, by each order."""
    orders = [chances(following, before + word[:i], c, choices) for i, c in enumerate(word)]
    return -np.log2(orders).mean(axis=0)
