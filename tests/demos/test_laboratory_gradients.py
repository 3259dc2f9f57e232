"""Figures 1 to 3 of the laboratory: the marks of their claims fail if an effect is taken out."""

from argparse import Namespace
from dataclasses import replace

import numpy as np
import pytest

from attention.scaling import saturation
from demos._training import Marks
from demos.laboratory._gradients import Distributions, Hill, Map


def judged(section):
    """Return the marks of a section: name → True if it was passed."""
    marks = Marks(Namespace(quick=False, marks=True))
    section.judge(marks)
    return {row[0]: row[-1] == "passed" for row in marks.rows}


def narrow(rows):
    """Return rows that stand for the map at GPT-2's initial weights."""
    return [row for row in rows if row.d_k <= 128]


@pytest.fixture(scope="module")
def rows():
    """Return the rows of a small map."""
    cells = [(16, 64), (64, 64), (64, 1024), (512, 5), (512, 64), (512, 1024), (16, 5), (64, 5)]
    cells += [(16, 1024)]
    return [
        saturation(d_k, a, keys=n, queries=256, rng=np.random.default_rng([d_k, n, repeat]))
        for d_k, n in cells
        for repeat in range(2)
        for a in (0.0, 0.5)
    ]


def test_the_marks_of_the_map_pass_and_the_claims_name_what_was_measured(rows):
    section = Map(rows, narrow(rows))
    assert all(judged(section).values()), judged(section)
    for _, effect, repeats, falsifier in section.claims:
        assert effect and falsifier and repeats == "9 cells × 2 × 256 queries"


@pytest.mark.parametrize(
    ("name", "fails"),
    [
        ("gradient_mean", "smallest ratio of means on the map"),
        ("gradient_median", "smallest ratio of medians, d_k 16 to 128, 64 keys or more"),
        ("top_tenth_share", "smallest ratio of the tenth's shares, d_k ≥ 16"),
    ],
)
def test_a_map_without_the_effect_fails_its_mark(rows, name, fails):
    """One cell in which the lack of the scale changes nothing, or the other way round."""
    pairs = list(zip(rows[::2], rows[1::2], strict=True))
    wrong = []
    for raw, scaled in pairs:
        if (raw.d_k, raw.keys) == (64, 64):
            raw = replace(raw, **{name: 0.9 * getattr(scaled, name)})
        wrong += [raw, scaled]
    found = judged(Map(wrong, narrow(rows)))
    assert not found[fails] and sum(not passed for passed in found.values()) == 1


def test_most_queries_get_more_without_the_scale_among_many_keys():
    section = Distributions(0, queries=256)
    assert all(judged(section).values())
    section.smaller[1] = 0.5
    assert not any(judged(section).values())


def test_the_hill_has_its_top_beyond_1_and_all_scaled_widths_at_one_height(rows):
    spreads = (0.5, 1.0, 3.0, 6.0, 16.0)
    lines = [
        saturation(
            256, 0.5 - np.log(s) / np.log(256), keys=n, queries=512, rng=np.random.default_rng(n)
        )
        for n in (5, 64)
        for s in spreads
    ]
    hill = Hill(lines, rows)
    assert all(judged(hill).values()) and list(hill.tops.values()) == pytest.approx(
        [3, 6], rel=1e-6
    )
    low = [replace(row, gradient_median=1 / (i % 5 + 1)) for i, row in enumerate(lines)]
    assert not judged(Hill(low, rows))["the lowest top of a hill, as a spread s"]
    wide = [
        replace(row, gradient_median=2 * row.gradient_median) if row.d_k == 512 else row
        for row in rows
    ]
    assert not judged(Hill(lines, wide))["scaled medians over d_k ≥ 16, largest over smallest"]
