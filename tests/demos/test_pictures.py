"""Pictures of chapters: what their scripts compute is what minigrad computes."""

import functools
import importlib
import inspect
import json
import re

import numpy as np
import pytest

from attention import attention_backward
from attention.laboratory import collapse, freezing_line
from attention.laboratory.trained import steps_over_rates
from attention.positions import sinusoidal
from demos.laboratory import _over_training
from demos.laboratory._steps import Findings
from demos.laboratory._trained import kept_rows
from demos.pages.page import FOLDER as PAGES
from demos.pictures import (
    CHAPTERS,
    SHARED_SCRIPTS,
    bypass,
    error,
    heads,
    loop,
    measured,
    number,
    product,
    valley,
    waiting,
    way_back,
)
from minigrad import idea

SHARED = ("axes", "draws")
# The texts of a drawing that leave it, and the pairs that overlap.
UNCLEAR = """() => {
  const svg = document.querySelector(".pic svg"), box = (e) => e.getBoundingClientRect();
  const within = (a, b) => b.left <= a.left && a.right <= b.right && b.top <= a.top
    && a.bottom <= b.bottom;
  const over = (a, b) => a.left < b.right && b.left < a.right && a.top + 2 < b.bottom
    && b.top + 2 < a.bottom;
  const texts = [...svg.querySelectorAll("text")].filter((e) => box(e).width);
  const pairs = texts.flatMap((a, i) => texts.slice(i + 1).map((b) => [a, b]));
  return [
    ...texts.filter((e) => !within(box(e), box(svg))).map((e) => [e]),
    ...pairs.filter(([a, b]) => over(box(a), box(b))),
  ].map((each) => each.map((e) => e.textContent));
}"""


# The least size in pixels of the texts that are seen.
LEAST = """() => Math.min(...[...document.querySelectorAll("svg text, svg tspan")]
  .filter((e) => e.textContent.trim("\\u200b ") && e.getClientRects().length)
  .map((e) => parseFloat(getComputedStyle(e).fontSize) * Math.hypot(...["a", "b"]
    .map((part) => e.getScreenCTM()[part]))))"""


def test_a_picture_names_the_scripts_whose_functions_its_own_calls():
    folder = PAGES.parent / "pictures"
    text = {path.stem: path.read_text(encoding="utf-8") for path in folder.glob("*.js")}
    shared = {name: re.findall(r"^(?:const|function) (\w+)", text[name], re.M) for name in SHARED}
    drawn = {name for names in CHAPTERS.values() for name in names}
    for name in drawn & {*text}:
        called = {*re.findall(r"\b(\w+)\(", text[name])}
        needed = [script for script, functions in shared.items() if called & {*functions}]
        assert sorted(SHARED_SCRIPTS.get(name, ())) == needed, name
    assert {*SHARED_SCRIPTS} <= drawn


@functools.cache
def drawn(name):
    """Return a chapter's picture by its module, or by a function of it, such as measured.chain."""
    module, _, function = name.partition(".")
    return getattr(importlib.import_module(f"demos.pictures.{module}"), function or "picture")()


@pytest.fixture
def shown(visit, tmp_path):
    """shown(name, *settings of its sliders, **options): its page, and what it has computed."""

    def shown(name, *settings, **options):
        picture = drawn(name)
        files = (
            PAGES.parent / "pictures" / f"{each}.js"
            for each in (*SHARED_SCRIPTS.get(name, ()), name)
        )
        script = "".join(file.read_text(encoding="utf-8") for file in files if file.exists())
        css = (PAGES / "site.css").read_text(encoding="utf-8")
        path = tmp_path / f"{name}.html"
        head = f"<!doctype html><html lang=en><meta charset=utf-8><title>{name}</title>"
        body = f"<style>{css}</style><body class=chapter><main>{picture}</main>"
        path.write_text(f"{head}{body}<script>{script}</script>", encoding="utf-8")
        page = visit(path, viewport={"width": 420, "height": 900}, **options)
        for i, value in enumerate(settings):
            page.locator("input").nth(i).fill(str(value))
        return page, json.loads(page.get_attribute(".pic", "data-found") or "null")

    return shown


def alt(name):
    """Return what the still picture says."""
    return re.search('aria-label="([^"]*)"', drawn(name))[1]


@pytest.mark.parametrize(
    ("steps", "rate"), [(60, 0.09), (1, 0.05), (25, 0.1), (60, 0.01), (40, 0.03)]
)
def test_the_four_paths_are_those_of_the_optimizers(shown, steps, rate):
    page, found = shown("valley", steps, rate)
    assert [*found] == [*valley.OPTIMIZERS]
    for name, end in found.items():
        path = valley.path(name, rate, steps)
        np.testing.assert_allclose(end, path[-1], rtol=1e-9)
        drawn = page.get_attribute(f'[data-name="{name}"] polyline', "points")
        assert len(drawn.split()) == steps + 1
    assert page.evaluate(UNCLEAR) == []


def test_the_still_valley_says_where_each_path_ends():
    for name in valley.OPTIMIZERS:
        x, y = valley.path(name)[-1]
        f = 0.5 * ((x - 4) ** 2 + 20 * (y - 1) ** 2)
        assert f"{name} is at ({x:.2f}, {y:.2f}), f = {f:.2g}" in alt("valley")


@pytest.mark.parametrize(("t", "shift"), [(20, 2), (0, 1), (57, 5), (119, 1), (120, 3)])
def test_the_hands_are_the_sinusoidal_positions(shown, t, shift):
    page, found = shown("dial", t, shift)
    rows = sinusoidal(shift + 1, 8, start=t)
    np.testing.assert_allclose(np.ravel(found["now"]), rows[0], rtol=1e-9)
    np.testing.assert_allclose(np.ravel(found["later"]), rows[-1], rtol=1e-9)
    np.testing.assert_allclose(found["turns"], shift / 10.0 ** np.arange(4), rtol=1e-9)
    assert page.evaluate(UNCLEAR) == []


def test_the_still_dials_say_their_hands():
    for sin, cos in sinusoidal(1, 8, start=20).reshape(-1, 2):
        assert f"({sin:.3f}, {cos:.3f})" in alt("dial")
    assert "by 2, 0.2, 0.02, 0.002 radians" in alt("dial")


def test_the_way_back_is_that_of_attention_backward(shown):
    page, found = shown("way_back")
    engine = way_back.passes()
    arrays = way_back.Q, way_back.K, way_back.V, way_back.G
    engine["∂L/∂q"], *_ = attention_backward(*arrays, scale=way_back.SCALE)
    for name in set(found) - {"L", "∂L/∂L"}:
        np.testing.assert_allclose(found[name], engine[name], rtol=1e-9, atol=1e-14, err_msg=name)
    assert found["L"] == pytest.approx([float(engine["L"])] * 3, rel=1e-9)
    for t, button in enumerate(page.locator(".moves button").all()):
        button.click()
        for name in ("z", "p", "o", "part", "∂L/∂p", "∂L/∂z", "∂L/∂q"):
            value = page.text_content(f'[data-value="{name}"]')
            assert value == way_back.numbers(engine[name][t])
        assert page.evaluate(UNCLEAR) == []


def test_the_still_way_back_says_the_numbers_of_chapter_11():
    log = number(np.log(3), 4)
    said = f"z ({log}, 0), p (0.75, 0.25), o (3, 1), average 2, ∂L/∂p (4, −4), ∂L/∂z (1.5, −1.5)"
    assert f"{said}, ∂L/∂q ({number(0.75 * np.log(3), 4)}, −3, 0, 0)" in alt("way_back")


@pytest.mark.parametrize("name", ["valley", "dial", "way_back", "product", "loop"])
def test_everyone_can_read_and_move_it(shown, findings, name):
    for scheme in ("light", "dark"):
        page, _ = shown(name, color_scheme=scheme)
        found = [(f["id"], f["nodes"][0]["html"][:90]) for f in findings(page)]
        assert [each for each in found if each[0] != "page-has-heading-one"] == []
    before = page.text_content(".pic")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    keys = {"valley": "ArrowLeft", "dial": "ArrowLeft", "loop": "ArrowRight"}
    page.keyboard.press(keys.get(name, "Enter"))
    assert page.text_content(".pic") != before


@pytest.mark.parametrize(
    ("name", "i", "j"), [("A", 0, 0), ("A", 1, 2), ("B", 0, 0), ("B", 1, 1), ("B", 2, 0)]
)
def test_what_comes_back_to_an_element_is_its_gradient(shown, name, i, j):
    page, first = shown("product")
    numbers = product.numbers()
    assert first == numbers["∂L/∂A"][0, 0]
    page.locator(f"[data-m={name}][data-i='{i}'][data-j='{j}']").focus()
    found = float(page.get_attribute("#product", "data-found"))
    assert found == numbers[f"∂L/∂{name}"][i, j] and page.evaluate(UNCLEAR) == []
    assert page.text_content("[data-sum]").endswith(f" = {number(found)}")
    assert page.locator(".cell.reached").count() == 4 and page.locator(".cell.now").count() == 1


@pytest.mark.parametrize(
    ("power", "h"),
    [(-12, "10⁻¹²"), (-8.5, "3.2·10⁻⁹"), (-5.5, "3.2·10⁻⁶"), (-3, "0.001"), (0, "1")],
)
def test_the_error_of_a_step_is_that_of_difference(shown, power, h):
    page, found = shown("error", power)
    assert found == pytest.approx(error.error(power), rel=1e-6, abs=1e-12)
    assert page.text_content(".moves b") == h
    assert page.evaluate(UNCLEAR) == []


def test_the_loop_and_its_lines_are_one_picture_in_thirteen_steps(shown):
    page, _ = shown("loop")
    named = loop.values()
    idea.backward(named["L"])
    source, first = inspect.getsourcelines(idea.backward)
    taken, notes = "", []
    for step in range(13):
        assert page.evaluate(UNCLEAR) == []
        (lit,) = page.locator(".lit").all()
        code = source[int(lit.get_attribute("data-n")) - first].partition("  #")[0].strip()
        words, note = lit.locator("> span").inner_text().strip(), lit.locator("i").inner_text()
        assert words == code
        kinds = {"root.grad": " = 1", "y = max": "y = ", "x.grad": ".grad = ", "for x": "no inputs"}
        assert next(kind for start, kind in kinds.items() if code.startswith(start)) in note
        taken += note.removeprefix("y = ") if note.startswith("y = ") else ""
        notes.append(note)
        turned = page.locator(".link.sent").count()
        assert turned == sum(".grad = " in each for each in notes[1:])  # (the first begins at L)
        assert page.locator(".in-use").count() == (code.startswith("x.grad"))
        if step < 12:
            page.get_by_role("button", name="Next step").click()
    assert page.get_by_role("button", name="Next step").is_disabled()
    assert taken == "Lbacx" and notes[8] == "x.grad = −0.5 − 0.5 = −1"
    for name, value in named.items():
        assert page.locator(f"[data-box={name}] > text").text_content() == number(value.grad.item())


def test_the_still_loop_is_its_last_step_and_says_the_gradients():
    assert "at the end: x −1, c −2, a −0.25, b −0.5, L 1." in alt("loop")
    assert loop.picture().count('class="link sent"') == 5


def test_a_readers_own_loop_takes_the_place_of_the_books(shown):
    page, _ = shown("loop")
    step = loop.walked()["steps"][2] | {"line": 1}
    given = {
        "steps": [step],
        "says": "It may never end.",
        "text": "def backward(root):\n    <b>own",
    }
    page.evaluate("detail => document.dispatchEvent(new CustomEvent('loop', {detail}))", given)
    assert page.locator(".steps > div > span").all_text_contents() == given["text"].split("\n")
    assert page.locator(".lit").inner_text().startswith("    <b>own")
    assert page.locator("#loop [role=status]").inner_text().endswith("It may never end.")


def test_the_newest_first_gives_the_gradient_and_a_before_b_does_not():
    def value(x):
        a = idea.multiply(x, x)
        b = a.array + x.array
        return a.array * b

    slope = (value(idea.Value(3.001)) - value(idea.Value(2.999))) / 0.002
    assert f"gives {number(slope)} for" in alt("waiting") and "81" in alt("waiting")
    assert waiting.picture().count("135") >= 2


@pytest.mark.parametrize("seed", range(8))
def test_the_bypass_keeps_a_part_of_the_direction_and_a_block_without_it_keeps_none(seed):
    with_it, alone = (bypass.directions(seed, bypass=kept) for kept in (True, False))
    assert with_it[0] > 0.9 and with_it[-1] > 0.25
    assert abs(alone[0]) < 0.35 and max(map(abs, alone)) < 0.55


def test_what_the_heads_add_is_the_layers_output_and_each_looks_where_it_is_said():
    layer, x = heads.layer()
    assert np.allclose(heads.added(layer, x).sum(axis=0), layer(x).data, rtol=1e-12, atol=1e-15)
    before, same, first, alike = layer.weights(x).data
    assert before[1:].argmax(axis=-1).tolist() == [0, 1, 2, 3] and first[:, 0].min() > 0.95
    assert same[0].round(2).tolist() == [0.5, 0, 0, 0.5, 0] and np.allclose(alike, 0.2)


def test_the_graph_of_chapter_5_has_what_its_dot_says():
    said = alt("record")
    for words in ("mean () with the gradient 1", "multiply (2,) with the gradient 0.5"):
        assert words in said
    picture = importlib.import_module("demos.pictures.record").picture()
    assert picture.count("<polygon") == 3  # (arrows)


MEASURED = [name for names in CHAPTERS.values() for name in names if name.startswith("measured.")]


@pytest.mark.parametrize("name", [name for names in CHAPTERS.values() for name in names])
def test_on_a_phone_no_text_of_a_picture_is_smaller_than_8_pixels(shown, name):
    if name in ("forces", "softmax"):
        pytest.skip("test_hero and test_site_explore look at this one")
    page, _ = shown(name)
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate(LEAST) >= 8
    assert name not in MEASURED or page.evaluate(UNCLEAR) == []


def ends(name):
    """Return of each line of a measured picture its first and its last number."""
    lines = re.findall(r"(?:\. |; )([^:;]+): ([-−\d.e]+) at [\d.]+, ([\d.e−-]+) at", alt(name))
    return {line: [float(x.replace("−", "-")) for x in both] for line, *both in lines}


def test_what_the_chapters_of_the_laboratory_say_of_their_lines_is_so():
    assert ends("measured.chain")["no scale"][1] < 1e-3
    first, last = ends("measured.chain")["1/√d_k"]
    assert last == pytest.approx(first, rel=0.1)
    (low, high), (same, alike) = (ends("measured.sharpness")[x] for x in ("no scale", "1/√d_k"))
    assert high > 30 * low and alike == pytest.approx(same, rel=0.2)
    for name, (low, high) in ends("measured.neighbours").items():
        steady, falls = name in ("1/√d_k", "log n"), name in ("1/d_k", "QK-norm")
        assert (high < low / 3) == falls and (steady or falls or high > 3 * low)
        assert not steady or high == pytest.approx(low, rel=0.1)
    keys = (16, 256, 4096)
    rows = [collapse(n, freezing_line(n), rng=np.random.default_rng(0)) for n in keys]
    assert min(row.entropy for row in rows) > 1 / 3


def test_the_kept_trainings_are_drawn_as_the_laboratory_draws_them():
    found = Findings.read()
    for name, a in measured.SCALES.items():
        ways = {k[-1]: v for k, v in found.outcomes.items() if k[:5] == ("sgd", "unit", a, 0, 512)}
        steps = [way.steps_mean for _, way in sorted(ways.items()) if way.learned]
        assert ends("measured.basin")[name] == pytest.approx([steps[0], steps[-1]], rel=0.01)
    best = [found.best("sgd", a, 0.0, 512).steps_mean for a in (0.0, 0.5)]
    assert 9 < best[0] / best[1] < 11
    _, rows = kept_rows()
    every = [row for row in rows if row.a and len({task.lr for task in row.second}) > 1]
    assert len(every) == 10 and {row.d_k for row in every} == {64}
    for name, change in (("1/√d_k", "as trained"), ("no scale", "no scale")):
        steps = [*steps_over_rates(every, change).values()]
        reached = [x for x in steps if x < np.inf]
        assert ends("measured.trained")[name] == pytest.approx([reached[0], reached[-1]], rel=0.01)
        assert (steps[-1] == np.inf) == (name == "no scale")


def test_the_kept_races_are_drawn_as_the_laboratory_draws_them():
    _, _, races = _over_training.kept_rows()
    for init, name in (("unit", "variance 1"), ("0.02", "GPT-2 (.02)")):
        steps = [np.mean(of) for of in _over_training.steps_over_spreads(races, init).values()]
        drawn = ends("measured.over_training")[name]
        assert drawn == pytest.approx([steps[0], steps[-1]], rel=0.01)
        assert min(steps) < min(drawn) / 1.6  # a valley
