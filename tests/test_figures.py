"""Chapter 17 · Figures and maps: what can be read in them, by any eye and in print."""

import re
import warnings
from itertools import combinations, pairwise
from xml.etree import ElementTree

import numpy as np
import pytest

from attention.figures import PALETTE, PAPER, in_the_dark, name_ends, new_figure, save_figure
from attention.maps import animate_weights, changing, plot_heads

Image = pytest.importorskip("PIL.Image")
to_hex = pytest.importorskip("matplotlib.colors").to_hex


def luminance(colour):
    """The relative luminance of "#rrggbb", as WCAG 2 defines it."""
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


def test_a_colour_has_one_meaning_and_is_seen_on_white():
    colours = [colour for group in PALETTE for colour in group]
    assert len(set(colours)) == len(colours)
    assert min(map(contrast, colours)) >= 3


def test_colours_that_occur_together_differ_in_lightness():
    assert contrast("#d62728", "#2ca02c") < 1.5  # the red and green that were side by side
    for group in PALETTE:
        for one, other in combinations(group, 2):
            assert contrast(one, other) > 1.35, (one, other)


def test_colours_are_seen_and_told_apart_on_a_dark_screen_too():
    for group in PALETTE:
        dark = [in_the_dark(colour) for colour in group]
        assert min(contrast(colour, PAPER) for colour in dark) >= 4.3
        for one, other in combinations(dark, 2):
            assert contrast(one, other) > 1.2, (one, other)


COLOURS = """[...document.querySelectorAll("svg *")].flatMap(part => {
    const {fill, stroke} = getComputedStyle(part);
    return [fill, stroke];
})"""


def test_no_colour_of_a_saved_figure_stays_light_on_a_dark_screen(tmp_path, visit):
    figure = new_figure(4, 4)
    panel = figure.subplots()
    named = [colour for group in PALETTE for colour in group]
    for i, colour in enumerate(named):
        panel.plot([0, 1], [i, i], color=colour)
        panel.fill_between([0, 1], i, i + 1, color=colour, alpha=0.2, hatch="//", linewidth=0)
        panel.text(0.5, i, str(i), color=colour)
    panel.scatter([0.1, 0.2], [3, 4], facecolors="none", edgecolors="black")
    panel.text(0.2, 3, "3", color="white")
    panel.set_title("black ink")
    panel.legend(["a line"])
    path = save_figure(figure, tmp_path / "all")[1]

    def shown(scheme):
        return set(visit(path, color_scheme=scheme).evaluate(COLOURS)) - {"none"}

    def rgb(colour):
        return f"rgb({', '.join(str(int(colour[i : i + 2], 16)) for i in (1, 3, 5))})"

    light, dark = shown("light"), shown("dark")
    assert {rgb(c) for c in [*named, "#000000", "#ffffff"]} <= light
    assert {rgb(in_the_dark(c)) for c in [*named, "#000000", "#ffffff"]} <= dark
    same = {c for c in light & dark if "url" not in c}
    assert same <= {rgb(c) for c in named if in_the_dark(c) == c}


def test_a_picture_inside_a_figure_has_the_colours_of_the_lines_beside_it(tmp_path, visit):
    colours = [colour for group in PALETTE for colour in group]
    squares = np.array([[int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in colours])
    figure = new_figure(len(colours), 2)
    figure.set_layout_engine("none")
    panel = figure.add_axes((0, 0, 1, 1))
    panel.imshow(squares[None].astype(np.uint8), aspect="auto")
    for i, colour in enumerate(colours):
        panel.fill_between([i - 0.5, i + 0.5], 0, 0.6, color=colour)
    panel.axis("off")
    page = visit(save_figure(figure, tmp_path / "two")[1], color_scheme="dark")
    page.set_viewport_size({"width": 96 * len(colours), "height": 192})
    page.screenshot(path=tmp_path / "two.png")
    seen = np.asarray(Image.open(tmp_path / "two.png").convert("RGB")).astype(int)
    for x in range(48, seen.shape[1], 96):
        assert np.abs(seen[40, x] - seen[140, x]).max() <= 2  # in the picture, and below in a shape


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
        (patch,) = (p for p in panel.patches if p.get_hatch())
        places = [(s, t) for s in range(-1, 6) for t in range(-1, 6)]
        inside = patch.get_path().contains_points(places)
        hatched = {place for place, yes in zip(places, inside, strict=True) if yes}
        assert hatched == {(s, t) for t, s in np.argwhere(~mask)}
        assert np.array_equal(np.ma.getmaskarray(panel.images[0].get_array()), ~mask)
        assert {text.get_position() for text in panel.texts} == {
            (s, t) for t, s in np.argwhere(mask)
        }
    assert "hatched" in figure.axes[-1].get_ylabel()  # the colour bar
    plain = plot_heads(drawn_weights(1, 5, 5), letters(5), letters(5))
    assert not plain.axes[0].patches and "hatched" not in plain.axes[-1].get_ylabel()


@pytest.mark.parametrize(("T", "S", "numbers"), [(8, 8, True), (5, 13, False), (1, 64, True)])
def test_cells_are_square_and_few_of_them_have_numbers(T, S, numbers):
    figure = plot_heads(drawn_weights(3, T, S), letters(T), ["k"] * S)
    for panel in figure.axes[:3]:
        assert panel.get_aspect() == 1
        assert len(panel.texts) == T * S * numbers


@pytest.mark.parametrize("share", [0.2, 0.6, 1.0])
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


def test_a_title_is_about_what_is_drawn_and_fits_above_its_map():
    weights = drawn_weights(16, 2, 2)
    for mask in (None, [[True, False], [True, True]], np.eye(2, dtype=bool)):
        under = np.where(True if mask is None else mask, weights, np.nan)
        figure = plot_heads(under, letters(2), letters(2), mask=mask)
        assert "nan" not in figure.axes[0].get_title()
        figure.canvas.draw()
        titles = [panel.title.get_window_extent() for panel in figure.axes[:16]]
        assert apart(titles)


def test_a_number_is_darker_or_lighter_than_its_cell_on_any_screen():
    weights = np.linspace(0, 1, 64).reshape(1, 8, 8)
    panel = plot_heads(weights, letters(8), letters(8)).axes[0]
    for text in panel.texts:
        s, t = text.get_position()
        cell = to_hex(panel.images[0].to_rgba(weights[0, t, s]))
        number = to_hex(text.get_color())
        assert contrast(number, cell) > 3.3
        assert contrast(in_the_dark(number), in_the_dark(cell)) > 3.3


@pytest.mark.parametrize(
    ("keys", "rotation"), [("I love you", 0), ("I love Transformers", 0), ("1 2 3 4 5 6 7 8 9", 0)]
)
def test_few_names_and_single_letters_are_not_turned(keys, rotation):
    keys = keys.split()
    panel = plot_heads(drawn_weights(4, 3, len(keys)), letters(3), keys).axes[-2]
    assert {label.get_rotation() for label in panel.get_xticklabels()} == {rotation}


@pytest.mark.parametrize(
    ("H", "T", "keys", "title"),
    [
        (4, 3, "I love Transformers", "as drawn by the recipe of the text, asked from 0"),
        (8, 3, "I love you", "Xavier weights, unit variance\nhead 8"),
        (2, 7, "kitten lizard salmon whale wolf", "trained, asked from the average"),
        (4, 6, "Your journey starts with one step", "V1, causal"),
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
    boxes = [panel.title.get_window_extent() for panel in figure.axes[:H]]
    assert apart(boxes + [panel.bbox for panel in figure.axes[:H]])
    for box in boxes:
        assert box.x0 >= 0 and box.y1 <= figure.bbox.y1 and box.x1 <= figure.bbox.x1


def test_a_colour_bar_says_if_it_does_not_reach_the_largest_weight(tmp_path):
    weights = np.array([[[0.9, 0.1], [0.2, 0.8]]])
    for largest, extend in ((1.0, "neither"), (0.5, "max")):
        figure = plot_heads(weights, letters(2), letters(2), largest=largest)
        assert figure.axes[0].images[0].get_clim() == (0, largest)
        assert figure.axes[0].images[0].colorbar.extend == extend


def test_equal_maps_give_equal_pictures(tmp_path):
    mask, weights = np.tri(3, dtype=bool), drawn_weights(2, 3, 3)
    texts = [
        save_figure(plot_heads(weights, letters(3), letters(3), mask=mask), tmp_path / name)[1]
        for name in "ab"
    ]
    assert texts[0].read_text() == texts[1].read_text()


def test_equal_maps_in_one_picture_have_ids_of_their_own(tmp_path):
    weights = np.repeat(drawn_weights(1, 3, 3), 4, axis=0)
    text = save_figure(plot_heads(weights, letters(3), letters(3)), tmp_path / "a")[1].read_text()
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert text.count("<image") == 5 and len(ids) == len(set(ids))


# ------------------------------------------------------------------ animations


def test_frames_that_hardly_differ_are_left_out_and_the_first_and_last_are_shown():
    moving = [np.array([[1 - x, x]]) for x in (0, 0.01, 0.02, 0.5, 0.55, 0.9, 0.9, 0.91)]
    assert changing(moving) == [0, 3, 5, 7]
    assert changing(moving[:1]) == [0]


def test_an_animation_runs_once_and_rests_on_its_last_frame(tmp_path):
    frames = [np.array([[1 - x, x], [0.5, 0.5]]) for x in (0, 0.4, 0.4, 0.8, 1)]
    path = tmp_path / "a.gif"
    titles = [f"step {i}" for i in range(5)]
    animate_weights(frames, letters(2), letters(2), path, titles=titles)
    with Image.open(path) as gif:
        assert "loop" not in gif.info and gif.n_frames == 4
        pictures, durations = [], []
        for i in range(gif.n_frames):
            gif.seek(i)
            pictures.append(np.array(gif.convert("RGB")))
            durations.append(gif.info["duration"])
    assert durations[-1] == 3000 and sum(durations[:-1]) < 5000  # what moves longer needs a pause
    assert all((one != other).any() for one, other in pairwise(pictures))
    assert (pictures[0][0, 0] == 255).all()  # the ground is white


# ------------------------------------------------------------------ law: numbers, masks, names


@pytest.mark.parametrize("weight", [0, 0.5, -0.5, -0.001, 0.999, 1, 10, 10.25, 100.5, np.nan])
def test_the_number_in_a_cell_is_the_weight_to_two_digits(weight):
    (text,) = plot_heads(np.array([[[weight]]], float), ["a"], ["b"]).axes[0].texts
    assert float(text.get_text()) == pytest.approx(weight, abs=0.005001, nan_ok=True)


@pytest.mark.parametrize(
    "mask", [np.eye(2, dtype=int), np.eye(2), [[1, 0], [0, 1]], "a", [[True]] * 3]
)
def test_a_mask_that_is_not_boolean_or_does_not_fit_is_refused_in_a_sentence(mask):
    with pytest.raises((TypeError, ValueError), match="^mask (must be boolean|of shape)"):
        plot_heads(drawn_weights(1, 2, 2), letters(2), letters(2), mask=mask)


def test_different_names_give_different_files_and_a_name_is_never_shortened(tmp_path):
    figure = new_figure(1, 1)
    names = ["loss", "loss_lr0.1", "loss_lr0.2", "loss.png", "loss.svg", ".hidden", "a.b.c", "…"]
    for name in names:
        paths = save_figure(figure, tmp_path / name)
        assert [path.name for path in paths] == [f"{name}.png", f"{name}.svg"]
    assert len(list(tmp_path.iterdir())) == 2 * len(names)
    for name in ("", ".", "..", f"{tmp_path}/", f"{tmp_path}/.."):
        with pytest.raises(ValueError, match="^a figure is saved under the name of a file"):
            save_figure(figure, name)


def test_a_label_of_any_characters_gives_a_picture_that_a_browser_can_read(tmp_path):
    figure = new_figure(3, 3)
    figure.suptitle("".join(map(chr, [*range(1, 10), *range(11, 128), 0xFFFE, 0xFFFF])), wrap=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # (the font has no such signs)
        path = save_figure(figure, tmp_path / "any")[1]
    assert ElementTree.parse(path).getroot().get("class") == "drawn"


def test_a_figure_that_is_dark_already_stays_as_it_is_on_a_dark_screen(tmp_path, visit):
    shown = {}
    for ground in ("white", "black"):
        figure = new_figure(2, 2)
        figure.set_facecolor(ground)
        figure.text(0.5, 0.5, "a", color="white" if ground == "black" else "black")
        path = save_figure(figure, tmp_path / ground)[1]
        colours = [set(visit(path, color_scheme=s).evaluate(COLOURS)) for s in ("light", "dark")]
        shown[ground] = colours[0] == colours[1]
    assert shown == {"white": False, "black": True}


@pytest.mark.parametrize("rasterized", [False, True])
def test_gouraud_shading_follows_a_dark_screen_only_where_it_is_a_picture(rasterized, tmp_path):
    figure, shades = new_figure(2, 2), np.arange(9).reshape(3, 3)
    figure.subplots().pcolormesh(shades, shading="gouraud", rasterized=rasterized)
    svg = save_figure(figure, tmp_path / "shades")[1].read_text("utf-8")
    assert ("<image" in svg, "<linearGradient" in svg) == (rasterized, not rasterized)
