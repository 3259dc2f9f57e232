"""The picture of chapter 16: its map, its hill and the reader's point are those of attention."""

import json
import re

import numpy as np
import pytest

from attention.scaling import heads, ratios, saturation, saturations
from demos.pictures.draws import normal
from demos.pictures.hill import HALF, SEED, SPREADS, lengths, picture, ratio
from demos.site._book import Book
from demos.site._chapters import page_of_chapter
from demos.site._contents import book
from demos.site._document import copy_beside, document

SETTINGS = [(64, 64), (16, 5), (256, 8), (32, 512), (1024, 1024)]  # d_k and the number of keys


@pytest.fixture(scope="module")
def drawn():
    return normal(SEED, 2 * HALF)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """The chapter's page, and what the site puts beside it."""
    folder, contents = tmp_path_factory.mktemp("site"), Book(*book())
    page = page_of_chapter(contents, contents.chapters["16"])
    (folder / page.file).write_text(document(page, "a footer"), encoding="utf-8")
    copy_beside(folder)
    return folder / page.file


def move(page, d_k, keys, fits=0.0):
    """Move the sliders, and return the two heights, their ratio, and the ratio of the means."""
    places = [np.log2(d_k), np.log2(keys / 4) if keys > 5 else 0, fits]
    for i, place in enumerate(places):
        page.locator("#hill input").nth(i).fill(f"{place:g}")
    return json.loads(page.get_attribute("#hill", "data-found"))


def test_the_readers_point_is_what_minigrad_computes(path, drawn, look):
    page = look(path)
    for d_k, keys in SETTINGS:
        both = [lengths(drawn, keys, s) for s in (d_k**0.5, 1.0)]
        without, scaled = map(np.median, both)
        found = move(page, d_k, keys)
        both_ratios = [without / scaled, both[0].mean() / both[1].mean()]
        np.testing.assert_allclose(found, [without, scaled, *both_ratios], rtol=1e-9)
        low, _, high = (float(f"{x:.2g}") for x in scaled * ratio(drawn, keys, d_k))
        assert f"(90 % limits {low:g} to {high:g})" in page.text_content("#hill .moves p")


def test_a_key_that_fits_takes_the_mean_away_in_the_picture_as_in_attention(path, drawn, look):
    page, before = look(path), np.inf
    for fits in (0.0, 3.0, 6.0):
        both = [lengths(drawn, 64, s, fits) for s in (32.0, 1.0)]
        *_, means = move(page, 1024, 64, fits)
        assert means == pytest.approx(both[0].mean() / both[1].mean(), rel=1e-9)
        assert means < before
        before = means
        true = [
            heads(1024, a, queries=2048, fit=fits / 32, rng=np.random.default_rng(1))[2].mean()
            for a in (0.0, 0.5)
        ]
        assert fits == 6 or means == pytest.approx(true[0] / true[1], rel=0.35)
    assert means < 0.1 and true[0] / true[1] < 0.1


def test_the_still_picture_says_its_numbers_and_is_where_the_sliders_begin(path, drawn, look):
    shown = picture()
    alt = re.search('aria-label="(The median.*?)"', shown)[1]
    for d_k, keys in [(16, 5), (64, 64), (256, 64)]:
        assert f" {ratio(drawn, keys, d_k)[1]:.2g} at {d_k} with {keys}" in alt
    assert "&lt;0.001 at 1024 with 5" in alt and ratio(drawn, 5, 1024)[2] < 0.001
    low, _, high = ratio(drawn, 1024, 1024)
    assert "≈ 1 at 1024 with 1024" in alt and low < 1 < high
    points = "#hill svg circle"
    places = "all => all.map(e => ['cx', 'cy'].map(name => Number(e.getAttribute(name))))"
    moved = look(path).eval_on_selector_all(points, places)
    numbers = re.findall(r'<circle[^>]*cx="(.*?)" cy="(.*?)"', shown)
    np.testing.assert_allclose(np.array(numbers, float), moved, rtol=1e-5)


def test_the_map_and_the_hill_are_those_of_attention(drawn):
    """‖∂L/∂q‖ is only about s ‖J ∂L/∂p‖: a query is not exactly √d_k long, with its own draws."""
    for cell in ratios(saturations((16, 64, 256), keys=(5, 64), repeats=5)):
        middle = ratio(drawn, cell.keys, cell.d_k)[1]
        assert abs(np.log10(middle / cell.median)) < 0.04 + 3 * cell.error, cell
    for s in SPREADS[::7]:
        measured = saturation(64, lambda d_k, s=s: s / d_k**0.5, rng=np.random.default_rng(0))
        assert np.median(lengths(drawn, 64, s)) == pytest.approx(measured.gradient_median, rel=0.15)
