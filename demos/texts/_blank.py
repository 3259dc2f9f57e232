"""Demos · Texts: the blank with which "The sky is blue …" opens, filled by two counts.

"The sky is ___ and world is round." The first count knows which word came after the last one or two
words, in Python's documentation and in the text's own sentence. The second one does the same with
characters, so that it can also score words that it never read. The documentation is what `charlm`
trains its GPT on, and the page of that demo asks the GPT.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from demos._counting import BEGINNING, FILLERS, UNFITTING, bits_of, documentation, followers
from demos._page import Html, Page, link
from demos._training import Marks
from demos.texts.sources import say
from demos.texts.sources.sky_is_blue import SENTENCE

ORDERS = 4  # the most useful number of characters, as charlm finds
HEADER = ("asked", "found", "what comes next", "“blue”")


class Answers(NamedTuple):
    """The answers of the counts."""

    by_words: dict[str, Counter[str]]  # who was asked → which word came next, and how often
    by_characters: dict[str, Any]  # a word → bits for each of its characters, by each order


def row(who: str, counts: Counter[str]) -> list[str]:
    """Return a table's row: who was asked, the count, the likeliest words, the share of "blue"."""
    total = counts.total()
    likely = ", ".join(f"“{word}” {count / total:.0%}" for word, count in counts.most_common(3))
    return [who, f"{total:,}", likely, f"{counts['blue'] / total:.0%}"]


def ask(marks: Marks) -> Answers:
    """Ask both counts, and print what they say."""
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
    print("0 · The sky is ___\n")
    for cells in (HEADER, *(row(*each) for each in by_words.items())):
        print("   {:29}{:>9}   {:25}{:>6}".format(*cells))
    print(f"\n   bits for each character{'n = 1':>9}{f'n = {ORDERS}':>9}")
    for word, bits in by_characters.items():
        print(f"   {word:23}{bits[1]:9.2f}{bits[ORDERS]:9.2f}")
    marks.at_most("documentation: places that speak of a sky", words.count("sky"), 0, "d")
    never, half, sure = (counts["blue"] / counts.total() for counts in by_words.values())
    marks.at_most('documentation: "blue" after "is"', never, 0)
    marks.at_most('the sentence, last word: "blue"', half, 0.5)
    marks.at_least('the sentence, last two words: "blue"', sure, 1)
    most = max(by_characters[word][ORDERS] for word in UNFITTING)
    what = f'n = {ORDERS}: bits of "blue", beyond those of any word that does not fit'
    marks.at_least(what, by_characters["blue"][ORDERS] - most, 0, ".2f")
    print()
    say(
        "The last word cannot tell the sky from the world, and two words can. But where to look is "
        "one thing, and what fits there is another: it comes from the text that was read."
    )
    return Answers(by_words, by_characters)


def show(page: Page, answers: Answers, charlm: Path) -> None:
    """Add the blank to the page, as a section.

    charlm  the page of that demo, which may not be there
    """
    page.section("The blank in “The sky is ___”")
    page.say(
        "The text opens with a blank: “The sky is ___ and world is round.” It says that "
        "“hesitating”, “destroyed” and “skipping” do not fit. It never asks its layers to fill the "
        "blank. So we ask a count of what came after the last word in some text.",
    )
    rows = [row(*each) for each in answers.by_words.items()]
    (_, times, likely, _), (_, _, halves, _), _ = rows
    page.ask(
        "One count is made from Python's documentation, and another one from the sentence “The "
        "sky is blue and world is round” alone. What does each of them put after “is”?",
        f"The documentation has “is” {times} times. After it comes {likely}, and “blue” never. The "
        f"sentence has “is” twice, and its count says {halves}: the last word is the same after "
        "the sky and after the world.",
    )
    page.table(
        HEADER,
        rows,
        caption="Counting which word comes after the last one or two words",
    )
    page.say(
        "A count of characters can score a word that it never found. It needs -log₂ p bits for a "
        "character of probability p, so likely ones need few. A long word needs more bits in all, "
        "so the table has the mean over the characters of the word and the space after it. “used” "
        "is there for comparison: it is a word that comes after “is” in the documentation.",
    )
    page.table(
        ["word in the blank", "n = 1", f"n = {ORDERS}"],
        [[w, f"{b[1]:.2f}", f"{b[ORDERS]:.2f}"] for w, b in answers.by_characters.items()],
        caption="Counting what comes after the last n characters: bits for each character",
    )
    address, command = f"../{charlm.parent.name}/{charlm.name}", "python -m demos charlm"
    asked = link("asked the same", address) if charlm.exists() else "asked the same"
    page.say(
        "A count of the last two words tells the sky from the world. Attention can look back "
        "farther. But where to look is one thing, and what fits there is another: it comes from "
        "the text that was read. The documentation never speaks of a sky. So the more characters a "
        "count looks back, the more bits it needs for “blue”. The text's own layers were made from "
        "random numbers and from no text, and they give vectors, not words.",
        Html(
            f"A GPT that was trained on the documentation is {asked} by <code>{command}</code>. "
            "Its answer is not better."
        ),
    )
