"""Demos · Texts: the blank with which "The sky is blue …" opens, filled by two counts.

The first count knows which word came after the last one or two words, in Python's documentation
and in the text's own sentence. The second one does the same with characters. The documentation is
what `charlm` trains its GPT on, and the page of that demo asks the GPT.
"""

from __future__ import annotations

import re
from collections import Counter

from demos._counting import BEGINNING, FILLERS, UNFITTING, bits_of, documentation, followers
from demos.publish import Published
from demos.texts.sources.sky_is_blue import SENTENCE

ORDERS = 4  # the most useful number of characters, as charlm finds


def row(who: str, counts: Counter[str]) -> list[str]:
    """Return a table's row: who was asked, the count, the likeliest words, the share of "blue"."""
    total = counts.total()
    likely = ", ".join(f"“{word}” {count / total:.0%}" for word, count in counts.most_common(3))
    return [who, f"{total:,}", likely, f"{counts['blue'] / total:.0%}"]


def ask(page: Published) -> None:
    """Ask both counts, and say what they answer."""
    text = documentation()
    read = text[: len(text) * 9 // 10]  # charlm holds out the rest
    words, sentence = re.findall("[a-z]+", read.lower()), SENTENCE.lower().split()
    by_words = {
        who: followers(tuple(its_words), len(last))[-1][last]
        for who, its_words, last in (
            ("documentation, last word", words, ("is",)),
            ("the sentence, last word", sentence, ("is",)),
            ("the sentence, last two words", sentence, ("sky", "is")),
        )
    }
    following, choices = followers(read, ORDERS), len(set(text))
    by_characters = {word: bits_of(f"{word} ", following, BEGINNING, choices) for word in FILLERS}
    with page.folded("What the counts answer"):
        page.table(
            ["asked", "found", "what comes next", "“blue”"],
            [row(*each) for each in by_words.items()],
            caption="Counting which word comes after the last one or two words",
        )
        page.say(
            "A count of characters can score a word that it never found. It needs -log₂ p bits for "
            "a character of probability p, so likely ones need few. A long word needs more bits in "
            "all, so the table has the mean over the characters of the word and the space after "
            "it. “used” is there for comparison: it comes after “is” in the documentation. The "
            "more characters a count looks back, the more bits it needs for “blue”."
        )
        page.table(
            ["word in the blank", "n = 1", f"n = {ORDERS}"],
            [[w, f"{b[1]:.2f}", f"{b[ORDERS]:.2f}"] for w, b in by_characters.items()],
            caption="Counting what comes after the last n characters: bits for each character",
        )
    marks = page.marks
    marks.at_most("documentation: places that speak of a sky", words.count("sky"), 0, "d")
    never, half, sure = (counts["blue"] / counts.total() for counts in by_words.values())
    marks.at_most('documentation: "blue" after "is"', never, 0)
    marks.at_most('the sentence, last word: "blue"', half, 0.5)
    marks.at_least('the sentence, last two words: "blue"', sure, 1)
    most = max(by_characters[word][ORDERS] for word in UNFITTING)
    what = f'n = {ORDERS}: bits of "blue", beyond those of any word that does not fit'
    marks.at_least(what, by_characters["blue"][ORDERS] - most, 0, ".2f")
