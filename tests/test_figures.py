"""Figures and maps: what can be read in them, by any eye and in print."""

from itertools import combinations

import numpy as np
import pytest

from attention import figures
from attention.figures import name_ends, new_figure, save_figure
from attention.maps import changing, plot_heads

Image = pytest.importorskip("PIL.Image")
to_hex = pytest.importorskip("matplotlib.colors").to_hex


def luminance(colour):
    """Return the relative luminance of "#rrggbb", as WCAG 2 defines it."""
    rgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(colour, other="#ffffff"):
    light, dark = sorted([luminance(colour), luminance(other)], reverse=True)
    return (light + 0.05) / (dark + 0.05)


def drawn_weights(*shape, mask=True):
    weights = np.exp(np.random.default_rng(0).standard_normal(shape)) * mask
    return weights / weights.sum(axis=-1, keepdims=True)


def letters(n):
    return [chr(ord("a") + i) for i in range(n)]


def apart(boxes):
    return not any(one.overlaps(other) for one, other in combinations(boxes, 2))


# ------------------------------------------------------------------ the palette


PALETTE = (  # groups of colours that occur together
    (figures.UNSCALED, figures.SCALED, figures.SCALED_TWICE),
    (figures.MODEL, figures.ABLATION),
    (figures.TEXT, figures.HALFWAY, figures.UNIT),
    (figures.MAMMAL, figures.REPTILE),
    figures.KINDS,
    (figures.REFERENCE,),
)


def test_a_colour_has_one_meaning_and_is_seen_on_white():
    colours = [colour for group in PALETTE for colour in group]
    assert len(set(colours)) == len(colours)
    assert min(map(contrast, colours)) >= 3


def test_colours_that_occur_together_differ_in_lightness():
    assert contrast("#d62728", "#2ca02c") < 1.5  # the red and green that were side by side
    for group in PALETTE:
        for one, other in combinations(group, 2):
            assert contrast(one, other) > 1.35, (one, other)


def test_names_at_the_ends_of_lines_do_not_touch_and_keep_their_order():
    figure = new_figure(5, 3)
    panel = figure.subplots()
    panel.plot([1, 2], [0, 1])
    heights = [0.5, 0.51, 0.5, 0.98, 0.1]
    name_ends(panel, [(height, f"line {i}", "black") for i, height in enumerate(heights)])
    figure.draw_without_rendering()
    names = sorted(panel.texts, key=lambda text: text.get_window_extent().y0)
    assert apart([text.get_window_extent() for text in names])
    at = [heights[int(text.get_text()[-1])] for text in names]
    assert at == sorted(at)


# ------------------------------------------------------------------ maps


def test_masked_cells_are_hatched_and_have_no_colour_and_no_number():
    mask = np.tril(np.ones((5, 5), bool))
    figure = plot_heads(drawn_weights(2, 5, 5, mask=mask), letters(5), letters(5), mask=mask)
    for panel in figure.axes[:2]:
        assert panel.patch.get_hatch()  # the ground, which is seen where there is no colour
        assert np.array_equal(np.ma.getmaskarray(panel.images[0].get_array()), ~mask)
        assert {text.get_position() for text in panel.texts} == {
            (s, t) for t, s in np.argwhere(mask)
        }
    assert "hatched" in figure.axes[-1].get_ylabel()  # the colour bar
    plain = plot_heads(drawn_weights(1, 5, 5), letters(5), letters(5))
    assert "hatched" not in plain.axes[-1].get_ylabel()


@pytest.mark.parametrize(("T", "S", "numbers"), [(8, 8, True), (5, 13, False)])
def test_cells_are_square_and_few_of_them_have_numbers(T, S, numbers):
    figure = plot_heads(drawn_weights(3, T, S), letters(T), ["k"] * S)
    for panel in figure.axes[:3]:
        assert panel.get_aspect() == 1
        assert len(panel.texts) == T * S * numbers


@pytest.mark.parametrize("share", [0.2, 1.0])
def test_a_title_says_how_decided_rows_are_among_the_keys_that_they_may_look_at(share):
    """Equal weights are 1 under any mask and one key alone is 0; two equal keys of four are 1/2."""
    mask = np.random.default_rng(0).random((3, 6, 5)) < share
    weights = mask / np.maximum(mask.sum(axis=-1, keepdims=True), 1)
    one_key = np.eye(5)[mask.argmax(axis=-1)] * mask
    four = np.tile([[True] * 4 + [False]], (3, 6, 1))
    halves = np.tile([0.5, 0.5, 0, 0, 0], (3, 6, 1))
    for given, allowed, expected in ((weights, mask, 1), (one_key, mask, 0), (halves, four, 0.5)):
        panels = plot_heads(given, letters(6), letters(5), mask=allowed).axes[:3]
        for panel, may in zip(panels, allowed, strict=True):
            said = " ".join(panel.get_title().split())
            chooses = (may.sum(axis=-1) > 1).any()
            assert said.endswith(f", entropy {expected:.2f} log n") or not chooses
            assert ("entropy" in said) == chooses


def test_a_number_is_darker_or_lighter_than_its_cell():
    weights = np.linspace(0, 1, 64).reshape(1, 8, 8)
    panel = plot_heads(weights, letters(8), letters(8)).axes[0]
    for text in panel.texts:
        s, t = text.get_position()
        cell = to_hex(panel.images[0].to_rgba(weights[0, t, s]))
        number = to_hex(text.get_color())
        assert contrast(number, cell) > 3.3


@pytest.mark.parametrize(
    ("H", "T", "keys", "title"),
    [
        (4, 3, "I love Transformers", "as drawn by the recipe of the text, asked from 0"),
        (8, 3, "I love you", "Xavier weights, unit variance\nhead 8"),
        (8, 11, "4 1 7 + 3 8 5 = 2 0 8", "block 2, head 4"),
        (2, 23, " ".join("0" * 23), "block 2: what followed the token before"),
    ],
)
def test_no_title_is_cut_or_touches_another_and_the_figure_is_no_wider_than_a_page(
    H, T, keys, title
):
    keys = keys.split()
    figure = plot_heads(drawn_weights(H, T, len(keys)), letters(T), keys, titles=[title] * H)
    assert figure.get_figwidth() < 8
    figure.draw_without_rendering()
    assert [label.get_text() for label in figure.axes[H - 1].get_xticklabels()] == keys
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == letters(T)
    boxes = [panel.title.get_window_extent() for panel in figure.axes[:H]]
    assert apart(boxes + [panel.bbox for panel in figure.axes[:H]])
    for box in boxes:
        assert box.x0 >= 0 and box.y1 <= figure.bbox.y1 and box.x1 <= figure.bbox.x1


def test_a_colour_bar_says_if_it_does_not_reach_the_largest_weight():
    weights = np.array([[[0.9, 0.1], [0.2, 0.8]]])
    for largest, extend in ((1.0, "neither"), (0.5, "max")):
        figure = plot_heads(weights, letters(2), letters(2), largest=largest)
        assert figure.axes[0].images[0].get_clim() == (0, largest)
        assert figure.axes[0].images[0].colorbar.extend == extend


# ------------------------------------------------------------------ frames


def test_frames_that_hardly_differ_are_left_out_and_the_first_and_last_are_shown():
    moving = [
        np.array([[1 - x, x], [x, 1 - x]]) for x in (0, 0.01, 0.02, 0.5, 0.55, 0.9, 0.9, 0.91)
    ]
    assert changing(moving) == [0, 3, 5, 7]
    assert changing(moving[:1]) == [0]


# ------------------------------------------------------------------ law: numbers and files


@pytest.mark.parametrize("weight", [0, 0.5, -0.001, 0.999, 1, 10.25, np.nan])
def test_the_number_in_a_cell_is_the_weight_to_two_digits(weight):
    (text,) = plot_heads(np.array([[[weight]]], float), ["a"], ["b"]).axes[0].texts
    assert float(text.get_text()) == pytest.approx(weight, abs=0.005001, nan_ok=True)


def test_a_figure_is_saved_twice_under_its_whole_name_and_equal_ones_are_equal(tmp_path):
    names = ("lr0.1", "lr0.2")
    made = [plot_heads(drawn_weights(1, 3, 3), letters(3), letters(3)) for _ in names]
    both = [save_figure(figure, tmp_path / name) for figure, name in zip(made, names, strict=True)]
    assert [path.name for path in both[0]] == ["lr0.1.png", "lr0.1.svg"]
    assert both[0][0].read_bytes().startswith(b"\x89PNG")
    assert both[0][1].read_text() == both[1][1].read_text()
