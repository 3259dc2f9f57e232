"""The five source texts together: the counts in the table of `python -m demos texts`."""

import re

import numpy as np
import pytest

from demos.texts.sources import (
    agreeing,
    as_numpy_prints,
    beside,
    counted,
    love_transformers,
    love_you,
    mammal_and_reptile,
    sky_is_blue,
    your_journey,
)
from tests.demos.running import demo

# Counted again from the texts, without the shapes that they print.
COUNTS = {
    love_transformers: (121, 121),
    love_you: (82, 552),
    sky_is_blue: (8, 10),
    your_journey: (310, 310),
    mammal_and_reptile: (167, 167),
}


@pytest.mark.parametrize("text", COUNTS, ids=lambda text: text.__name__.rpartition(".")[2])
def test_the_numbers_that_come_back_are_as_many_as_counted(text):
    assert counted(text) == COUNTS[text]
    assert set(text.ours()) <= set(text.PRINTED)
    assert bool(text.LOST) == (COUNTS[text][0] < COUNTS[text][1])


@pytest.mark.parametrize("text", COUNTS, ids=lambda text: text.__name__.rpartition(".")[2])
def test_a_number_that_differs_in_its_last_digit_is_not_counted(text, monkeypatch):
    ours = text.ours()
    # (The last name: text 001's rows are made to fit its first.)
    name = [n for n in ours if agreeing(text.PRINTED[n], text.as_text(ours[n]))][-1]
    kept, other = text.PRINTED[name].split(), {"0": "1", ".": ".0"}
    first = kept[0]
    monkeypatch.setitem(
        text.PRINTED, name, " ".join([first[:-1] + other.get(first[-1], "0"), *kept[1:]])
    )
    assert counted(text) == (COUNTS[text][0] - 1, COUNTS[text][1])


def test_numpys_print_options_change_nothing():
    array = np.array([1e-9, 2.0, 0.123456789012])
    expected = as_numpy_prints(array)
    with np.printoptions(precision=3, suppress=True, sign="+", floatmode="fixed"):
        assert as_numpy_prints(array) == expected


def test_the_demo_prints_the_counts_and_every_sentence(tmp_path):
    done = demo("texts", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    rows = re.findall(r"^(\w+) +(\d+) +(\d+) +(\d+) +(\d+)$", done.stdout, re.MULTILINE)
    assert rows[:-1] == [
        (t.__name__.rpartition(".")[2], *map(str, (printed, same, len(t.SLIPS), len(t.COMPLETED))))
        for t, (same, printed) in COUNTS.items()
    ]
    assert done.stdout.count(": passed") == 5
    assert re.search(r"^together +1160 +688 +45 +23$", done.stdout, re.MULTILINE)
    flat = " ".join(done.stdout.split())
    for text in COUNTS:
        for sentence in (*text.SLIPS, *text.COMPLETED):
            assert " ".join(sentence.split()) in flat
        assert text.LOST in flat


def test_numbers_stand_side_by_side_row_by_row():
    array = mammal_and_reptile.ANIMALS[:2, :2]
    texts = mammal_and_reptile.as_text(array)
    assert beside("two", "1 2 3 4", array, texts).count("\n") == 2
    with pytest.raises(ValueError):
        agreeing("1 2 3", texts)
