"""Tests: what followed in a text, and how likely that makes what comes next."""

import re
from collections import Counter

import numpy as np
import pytest

from demos.tasks._counting import bits_of, chances, documentation, followers

# ------------------------------------------------------------------ value


def test_what_followed_is_counted_for_characters_and_for_words():
    assert followers("banana", 2) == [
        {"": Counter("banana")},
        {"b": Counter("a"), "a": Counter("nn"), "n": Counter("aa")},
        {"ba": Counter("n"), "an": Counter("aa"), "na": Counter("n")},
    ]
    words = ("the", "sky", "is", "blue", "and", "world", "is", "round")
    one, two = (followers(words, n)[n] for n in (1, 2))
    assert one[("is",)] == {"blue": 1, "round": 1} and two[("sky", "is")] == {"blue": 1}


def test_a_chance_is_the_formula_of_witten_and_bell():
    following = followers("banana", 2)
    lowest = (2 + 3 / 3) / (6 + 3)  # n: 2 of 6, three kinds, and a third for each of three letters
    after_a = (2 + 1 * lowest) / (2 + 1)
    after_na = (1 + 1 * after_a) / (1 + 1)
    assert chances(following, "bana", "n", 3) == pytest.approx([lowest, after_a, after_na])
    assert chances(following, "nn", "a", 3)[2] == chances(following, "nn", "a", 3)[1]  # never seen
    bits = bits_of("na", following, "bana", 3)
    last = (2 + 1 * chances(following, "an", "a", 3)[1]) / (2 + 1)  # after "an", twice an a
    assert bits[2] == pytest.approx(-np.mean(np.log2([after_na, last])))


# ------------------------------------------------------------------ law


@pytest.mark.parametrize("before", ["", "ban", "xx"])
def test_the_chances_of_all_characters_sum_to_1_in_every_order(before):
    following = followers("banana and a cabin", 3)
    letters = sorted({*"banana and a cabin", "x"})
    sums = np.sum([chances(following, before, c, len(letters)) for c in letters], axis=0)
    np.testing.assert_allclose(sums, 1, rtol=1e-12)


def test_the_documentation_repeats_no_paragraph_and_never_speaks_of_a_sky():
    text = documentation()
    paragraphs = [" ".join(part.split()) for part in text.split("\n\n") if part.strip()]
    assert len(set(paragraphs)) == len(paragraphs) > 1000
    words = Counter(re.findall("[a-z]+", text.lower()))
    assert words["sky"] == 0 and words["destroyed"] > 0 and words["used"] > 100
