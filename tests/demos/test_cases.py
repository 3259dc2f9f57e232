"""Two cases of the way back without the scale: their numbers by another way, and how they look."""

import json
import math
import re
from xml.etree import ElementTree

import numpy as np
import pytest

from demos.first import _cases
from demos.first._back import CASES, STATIONS, facts, number
from demos.site._contents import PICTURES
from tests.demos.running import ROOT

SVG = "{http://www.w3.org/2000/svg}"
NAMES = ("usual", "extreme")
PATHS = {name: ROOT / "demos" / "pictures" / f"{name}.svg" for name in NAMES}


def way_back(q, k, v, g, scale):
    """Chapter 11's way back in NumPy: the RMS at q, q·kᵀ, scores, weights and output, by query."""
    z = scale * np.einsum("tic,tjc->tij", q, k)
    p = np.exp(z - z.max(axis=-1, keepdims=True))
    p /= p.sum(axis=-1, keepdims=True)
    to_p = np.einsum("tic,tjc->tij", g, v)  # ∂L/∂P = G Vᵀ
    to_z = p * (to_p - (p * to_p).sum(axis=-1, keepdims=True))
    to_dots = scale * to_z
    to_q = np.einsum("tij,tjc->tic", to_dots, k)
    return [np.sqrt((x**2).mean(axis=(1, 2))) for x in (to_q, to_dots, to_z, to_p, g)]


def computed(keys, d_k):
    """The ratio at each station from q to L, and the middle 8 of 10 queries at q, both ways."""
    with_scale, without = [], []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        q, k, v, g = (rng.standard_normal((1001, n, d_k)) for n in (1, keys, keys, 1))
        with_scale.append(way_back(q, k, v, g, 1 / math.sqrt(d_k)))
        without.append(way_back(q, k, v, g, 1.0))
    with_scale, without = (np.concatenate(x, axis=1) for x in (with_scale, without))
    line = [*(np.median(without, axis=1) / np.median(with_scale, axis=1)), 1.0]
    middle = (
        np.percentile(x[0], (10, 90)) / np.median(with_scale[0]) for x in (with_scale, without)
    )
    return {"line": line, **dict(zip(("with", "without"), middle, strict=True))}


@pytest.fixture(scope="module")
def numbers():
    return [computed(*case) for case in CASES]


@pytest.fixture(scope="module", params=NAMES)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def case(name, numbers):
    return numbers[NAMES.index(name)]


@pytest.fixture(scope="module")
def root(name):
    return ElementTree.parse(PATHS[name]).getroot()


def texts(root):
    """The labels of a picture, with d_k written as in the source."""
    return ["".join(each.itertext()).replace("dk", "d_k") for each in root.iter(f"{SVG}text")]


def lines(root, kind):
    """The points of every path of this kind."""
    ways = [path.get("d") for path in root.iter(f"{SVG}path") if path.get("class") == kind]
    return [
        [tuple(map(float, p.split(","))) for p in re.findall(r"[\d.]+,[\d.]+", w)] for w in ways
    ]


# ------------------------------------------------------------------ value


def test_the_pictures_keep_the_numbers_that_numpy_computes(name, root, case):
    kept = json.loads(root.find(f"{SVG}metadata").text)
    assert kept["queries"] == 8008
    assert (kept["case"]["keys"], kept["case"]["d_k"]) == CASES[NAMES.index(name)]
    for what, values in case.items():
        np.testing.assert_allclose(kept["case"][what], values, rtol=1e-3)


def test_the_line_and_the_bars_are_drawn_where_these_numbers_are(root, case):
    one, ten = _cases.ONE, _cases.TEN

    def ratios(points):
        return [10 ** ((y - one) / (ten - one)) for _, y in points]

    half = 10 ** (0.06 / abs(ten - one)) - 1  # coordinates have one decimal
    pale, drawn = lines(root, "line without")
    assert pale == drawn
    np.testing.assert_allclose(ratios(drawn)[::-1], case["line"][:4], rtol=half)
    for kind in ("with", "without"):
        (bar,) = lines(root, f"bar {kind} s4")
        np.testing.assert_allclose(ratios(bar), np.maximum(case[kind], 1e-5), rtol=half)
    level = lines(root, "line")[0]
    assert len(level) == len(STATIONS) and ratios(level) == [1.0] * len(level)
    beyond = case["without"][0] < 1e-5  # then an arrow says that the bar goes on
    assert len(lines(root, "way without s4")) == beyond


def test_the_labels_and_the_alt_text_say_what_was_computed(name, root, case, numbers):
    labels, alt = " ".join(texts(root)), root.get("aria-label")
    at_q, _, passed, *_ = case["line"]
    folds = [case[kind][1] / case[kind][0] for kind in ("with", "without")]
    assert folds[1] / folds[0] > 20
    if name == "usual":
        assert at_q > 3
        said = [f"about {at_q:.0f} times larger", f"softmax passes on {passed:.1f}"]
        said += ["64 keys, d_k = 64", f"{round(folds[1], -1):.0f}-fold"]
        root_of = "√64 = 8"
    else:
        assert at_q < 1e-3 and 1e12 < folds[1] < 1e14
        said = [f"about {round(1 / at_q, -3):,.0f} times smaller"]
        said += [f"softmax passes on 1/{round(1 / passed, -3):,.0f}", "5 keys, d_k = 512"]
        said.append("10¹³-fold")
        root_of = "√512 ≈ 23"
    for words in [*said, f"{folds[0]:.0f}-fold"]:
        assert words in labels and words in alt
    assert f"nothing divides by {root_of}" in labels


@pytest.mark.parametrize(
    ("x", "said"),
    [(4.682, "4.7"), (9.96, "10"), (327.4, "330"), (45248.0, "45,000"), (4.8e13, "10¹³")],
)
def test_a_number_has_two_digits_that_count_or_its_power_of_ten(x, said):
    assert number(x) == said


# ------------------------------------------------------------------ law


def test_a_file_is_small_has_its_own_ground_and_asks_for_nothing(name, root):
    data = PATHS[name].read_bytes()
    assert len(data) <= 8192
    assert re.findall(rb"https?://[^\"]+", data) == [b"http://www.w3.org/2000/svg"]
    assert not re.search(rb"<script|<image|<foreignObject|\son\w+=|@import|url\(", data)
    width, height = root.get("viewBox").split()[2:]
    (ground,) = (rect for rect in root.iter(f"{SVG}rect") if rect.get("width") == width)
    assert ground.get("height") == height


def test_the_demo_draws_the_same_bytes_again(name, root, finished):
    folder, printed = finished("draw")
    assert (folder / f"{name}.svg").read_bytes() == PATHS[name].read_bytes()
    case = json.loads(root.find(f"{SVG}metadata").text)["case"]
    assert f"{facts(case)['end']} at q;" in printed


def test_chapter_16_shows_both_and_says_their_numbers(numbers):
    (usual, says), (extreme, of_extreme) = PICTURES["16"]
    assert (usual, extreme) == NAMES
    larger, smaller = (case["line"][0] for case in numbers)
    assert says.endswith(f"64 keys at d_k = 64 it is about {larger:.0f} times larger at q.")
    times = f"{round(1 / smaller, -3):,.0f}"
    assert of_extreme.endswith(f"5 keys at d_k = 512: it is about {times} times smaller at q.")


# ------------------------------------------------------------------ in a browser

# Pairs of labels that touch, labels that leave the picture or their box, and the smallest letters.
# (A label's rectangle has room above and below its letters.)
LABELS = """font => {
    const svg = document.documentElement;
    if (font) svg.style.fontFamily = font;
    const rectangle = each => each.getBoundingClientRect(), whole = rectangle(svg);
    const inside = (a, b) => a.left >= b.left && a.right <= b.right
        && a.top >= b.top && a.bottom <= b.bottom;
    const labels = [...svg.querySelectorAll("text")];
    const touching = [], outside = [];
    labels.forEach((label, i) => {
        const a = rectangle(label), before = label.previousElementSibling;
        const around = before.matches(".box") ? rectangle(before) : whole;
        if (!inside(a, around)) outside.push(label.textContent);
        for (const other of labels.slice(i + 1)) {
            const b = rectangle(other);
            const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
            const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
            if (wide > 0 && high > 3) touching.push([label.textContent, other.textContent]);
        }
    });
    const sizes = [...svg.querySelectorAll("text, tspan")].map(
        each => parseFloat(getComputedStyle(each).fontSize));
    const scale = whole.width / svg.viewBox.baseVal.width;
    return [touching, outside, labels.length, Math.min(...sizes) * scale];
}"""
MOTION = """() => {
    const all = document.getAnimations(), shapes = [...document.querySelectorAll("text, path")];
    return [all.length, Math.max(0, ...all.map(each => each.effect.getComputedTiming().endTime)),
        getComputedStyle(document.querySelector(".ghost")).display,
        Math.min(...shapes.map(each => getComputedStyle(each).opacity))];
}"""
GROUND = "() => getComputedStyle(document.querySelector('rect')).fill"


@pytest.mark.parametrize("font", ["", "DejaVu Sans"])
def test_no_two_labels_touch_and_none_is_cut_or_small(visit, name, font):
    page = visit(PATHS[name], viewport={"width": 540, "height": 700})
    touching, outside, count, smallest = page.evaluate(LABELS, font)
    assert (touching, outside) == ([], []) and count > 15 and smallest >= 10


def test_it_draws_itself_once_in_four_seconds_over_a_pale_picture_of_its_end(visit, name):
    page = visit(PATHS[name])
    count, end, ghost, palest = page.evaluate(MOTION)
    assert count > 5 and end <= 4000 and ghost == "inline" and 0.2 <= palest < 1
    page.evaluate("document.getAnimations().forEach(each => each.finish())")
    assert page.evaluate(MOTION)[3] == 1


def test_it_is_complete_without_motion_and_in_print(visit, name):
    page = visit(PATHS[name], reduced_motion="reduce")
    assert page.evaluate(MOTION) == [0, 0, "none", 1]
    page = visit(PATHS[name])
    page.emulate_media(media="print")
    assert page.evaluate(MOTION) == [0, 0, "none", 1]


def test_it_has_a_ground_of_its_own_in_light_and_in_dark(visit, name):
    grounds = [visit(PATHS[name], color_scheme=s).evaluate(GROUND) for s in ("light", "dark")]
    assert grounds == ["rgb(255, 255, 255)", "rgb(21, 23, 28)"]
