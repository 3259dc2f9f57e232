"""The explorable: its numbers are those of this project's engine, and everyone can use it."""

import numpy as np
import pytest

from attention.scaling import heads, ratios, saturations, top_tenth
from demos.laboratory.explorable import D_KS, EXPONENTS, apart, draws, measure
from demos.pictures.draws import uniform

WITHOUT_A_FIT = [
    (4, 0),
    (64, 0),
    (1024, 0),
    (256, 0.25),
    (16, 0.5),
    (1024, 0.5),
    (32, 0.75),
    (1024, 1),
]
# With a key that stands out, too; in a narrow head the query is that key.
SETTINGS = [(d_k, a, 0) for d_k, a in WITHOUT_A_FIT]
SETTINGS += [(256, 0, 2), (64, 0, 3), (1024, 0.5, 3), (64, 0.5, 6), (4, 0, 5)]


@pytest.fixture(scope="module")
def drawn():
    return draws(0)


@pytest.fixture(scope="module")
def medians(drawn):
    """Return (d_k, a) → the median of ‖∂L/∂q‖, by the engine."""
    return {(d_k, a): measure(drawn, d_k, a).median for d_k in D_KS for a in EXPONENTS}


@pytest.fixture
def path(finished):
    return finished("why_half")[0] / "index.html"


def move(page, d_k, a, m=0):
    """Move all three sliders, as a hand does."""
    page.evaluate(
        """([place, a, m]) => [["d_k", place], ["a", a], ["m", m]].forEach(([id, value]) => {
            const slider = document.getElementById(id);
            slider.value = value;
            slider.dispatchEvent(new Event("input"));
        })""",
        [D_KS.index(d_k), a, m],
    )


def number(page, name):
    return float(page.get_attribute(f"#{name}", "value"))


# ------------------------------------------------------------------ value: the draws


def test_uniform_is_mulberry32_as_it_is_written_with_single_numbers():
    found, state = [], 7
    for _ in range(1000):
        state = (state + 0x6D2B79F5) % 2**32
        t = (state ^ (state >> 15)) * (state | 1) % 2**32
        t ^= (t + (t ^ (t >> 7)) * (t | 61)) % 2**32
        found.append((t ^ (t >> 14)) / 2**32)
    assert np.array_equal(uniform(7, 1000), found)


# ------------------------------------------------------------------ value: the page's numbers


def test_its_numbers_equal_those_of_the_engine(path, drawn, visit):
    page = visit(path, "#d_k=64&a=0")
    for d_k, a, m in SETTINGS:
        move(page, d_k, a, m)
        here = measure(drawn, d_k, a, m)
        shown = [number(page, name) for name in ("entropy", "largest", "mean", "median", "dead")]
        wanted = [here.entropy, here.largest_weight, here.mean, here.median, here.dead_share]
        np.testing.assert_allclose(shown, wanted, rtol=1e-9)
        norms = page.evaluate(
            """() => Array.from({length: 10}, (_, n) => {
                const query = document.getElementById("query");
                query.value = n + 1;
                query.dispatchEvent(new Event("change"));
                return Number(document.getElementById("norm").value);
            })"""
        )
        # A small norm is a difference of numbers near 1, which rounding leaves uncertain by 1e-14.
        np.testing.assert_allclose(norms, here.norms[:10], rtol=1e-9, atol=1e-13)


def test_its_dead_share_is_that_of_chapter_16s_sweep_within_three_standard_errors(path, visit):
    raw = [row.dead_share for row in saturations([1024], repeats=5) if row.a == 0]
    page = visit(path, "#d_k=1024&a=0")
    assert abs(number(page, "dead") - np.mean(raw)) < 0.07  # 3 √(.44 · .56 / 512)
    assert page.inner_text("#dead") == f"{number(page, 'dead'):.0%}".replace("%", " %")


def test_the_line_of_the_medians_is_flat_at_one_half_alone(path, medians, visit):
    page = visit(path, "#d_k=64&a=0")
    page.click("#all")
    seen = page.evaluate(
        """exponents => exponents.map(a => {
            const slider = document.getElementById("a");
            slider.value = a;
            slider.dispatchEvent(new Event("input"));
            const line = document.querySelector("path.median").getAttribute("d");
            return [Number(document.getElementById("apart").value), line];
        })""",
        EXPONENTS,
    )
    found = {}
    for a, (apart_there, line) in zip(EXPONENTS, seen, strict=True):
        assert apart_there == pytest.approx(apart([medians[d_k, a] for d_k in D_KS]), rel=1e-9)
        heights = [float(point.split()[1]) for point in line[1:].split("L")][2:]
        assert (max(heights) - min(heights) < 4) == (a == 0.5)  # of a picture 216 high
        found[a] = apart_there
    assert found.pop(0.5) < 1.12 < 1.2 < min(found.values())
    assert page.locator("#lines .ghost").count() == page.locator("#tried circle").count() - 1 == 20
    assert page.locator("#hill .now").count() == 9


def test_what_the_page_says_of_the_hill_is_so(drawn, medians):
    s = {(d_k, a): d_k ** (0.5 - a) for d_k, a in medians}
    assert 4 < s[max(medians, key=medians.get)] < 8  # its top is near 6
    for one, other in (
        ((32, 0.0), (1024, 0.25)),
        ((64, 0.75), (1024, 0.65)),
        ((16, 0.5), (512, 0.5)),
    ):
        assert s[one] == pytest.approx(s[other], rel=0.01)
        assert medians[one] == pytest.approx(medians[other], rel=0.12)
    assert medians[256, 1.0] / medians[1024, 1.0] == pytest.approx(2, rel=0.03)
    first, top, last = (medians[d_k, 0.15] for d_k in (16, 128, 1024))
    assert last == pytest.approx(first, rel=0.2) and top > 1.6 * max(first, last)
    # Short gradients: as large in the root mean square, but more varied, with a lower median.
    short, long = (measure(drawn, d_k, 0.5).norms for d_k in (4, 1024))
    assert np.sqrt((short**2).mean() / (long**2).mean()) == pytest.approx(1, abs=0.15)
    assert np.log(short).std() > 1.5 * np.log(long).std()
    assert 0.7 < np.median(short) / np.median(long) < 0.9


def test_a_key_that_stands_out_takes_the_gradients_away_without_a_scale_alone(path, drawn, visit):
    page = visit(path, "#d_k=1024&a=0&m=6")
    assert number(page, "mean") == pytest.approx(measure(drawn, 1024, 0, 6).mean, rel=1e-6)
    said = page.inner_text("#said").replace("\xa0", " ")
    assert number(page, "mean") < 1e-6 and "stands out by m = 6, half of the queries" in said
    move(page, 1024, 0.5, 6)
    assert number(page, "mean") > 0.1
    found = [measure(drawn, d_k, 0.5, 6).median for d_k in D_KS if d_k >= 36]
    assert number(page, "apart") == pytest.approx(max(found) / min(found), rel=1e-9)
    assert "From dk = 64 to 1024" in said
    # It is chapter 16's key that fits: other draws, the same means.
    for a in (0.0, 0.5):
        rng = np.random.default_rng(3)
        there = heads(1024, a, queries=2048, fit=3 / 32, rng=rng)[2].mean()
        assert measure(drawn, 1024, a, 3).mean == pytest.approx(there, rel=0.35)


def test_its_64_keys_are_marked_as_one_row_of_the_map_before_the_guess(finished):
    folder, printed = finished("why_half")
    said = " ".join(printed.partition("map")[0].split())
    few, usual, many = ratios(saturations((64,), keys=(5, 64, 1024)))
    assert f"{usual.median:.1f} times larger without a scale than with" in said
    assert f"1,024 keys it is {many.median:.0f} times larger" in said
    assert f"with 5 keys {1 / few.median:.1f} times smaller" in said
    first = (folder / "index.html").read_text("utf-8").partition('id="guess"')[0]
    assert f"{many.median:.0f} times larger" in first and "½" not in first.partition("<h1")[2]


def test_what_the_page_says_of_shares_is_as_measured(finished, drawn, medians):
    printed = " ".join(finished("why_half")[1].split())
    flat = apart([medians[d_k, 0.5] for d_k in D_KS]) - 1
    without, scaled = (top_tenth(measure(drawn, 64, a).norms) for a in (0, 0.5))
    assert f"has {without:.0%} of the squared gradient, and with 1/√d_k {scaled:.0%}." in printed
    assert f"and they are, to {flat:.0%}." in printed
    assert medians[64, 0] > 20 * medians[1024, 0]


# ------------------------------------------------------------------ the guess


def test_the_guess_stays_beside_the_measurement(path, medians, visit):
    page = visit(path)
    assert page.is_hidden("#lab")
    page.click("#compare")
    assert page.inner_text("#message").startswith("Move the end of a line first")
    answers = page.locator("h2:text-is('Why it is ½'), h2:text-is('Try it'), main > figure")
    assert answers.count() == 5 and not any(each.is_visible() for each in answers.all())
    median = page.get_by_role("slider", name="the median")
    before = float(median.get_attribute("aria-valuenow"))
    place = median.bounding_box()
    page.mouse.move(place["x"] + 11, place["y"] + 11)
    page.mouse.down()
    page.mouse.move(place["x"] + 11, place["y"] - 20)
    page.mouse.up()
    assert float(median.get_attribute("aria-valuenow")) == pytest.approx(before + 0.75, abs=0.1)
    page.click("#compare")
    first, second = page.inner_text("#answer").strip().split("\n")
    assert f"measured is {medians[1024, 0]:.3g} (from {medians[64, 0]:.3g} at dk = 64)" in first
    assert "Not as you guessed" in first and "times smaller than that" in first
    assert second.endswith("As you guessed.")  # (the mean stays, where it was left)
    assert page.is_visible("#lab") and page.is_hidden("#message")
    assert all(each.is_visible() for each in answers.all())
    move(page, 1024, 0.5)
    kept = median.get_attribute("aria-valuenow")
    median.press("ArrowDown")
    assert median.get_attribute("aria-valuenow") == kept


def test_the_keyboard_alone_does_everything(path, visit):
    page = visit(path)

    def tab_to(there):
        for _ in range(12):
            page.keyboard.press("Tab")
            if page.evaluate("there => document.activeElement.matches(there)", there):
                outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
                assert outline != "none"
                return
        raise AssertionError(there)

    for name in ("median", "mean"):
        tab_to(f"[role=slider][aria-label^='the {name}']")
        page.keyboard.press("PageDown")
    tab_to("#compare")
    page.keyboard.press("Enter")
    tab_to("#d_k")
    page.keyboard.press("End")
    tab_to("#a")
    for _ in range(10):
        page.keyboard.press("ArrowRight")
    assert page.inner_text("#d_k_said") == "1024" and page.inner_text("#a_said") == "0.5"
    assert page.get_attribute("#a", "aria-valuetext") == "a = 0.5, the scale is 0.0313"
    tab_to("#m")
    page.keyboard.press("ArrowRight")
    assert page.inner_text("#m_said") == "0.5" and page.locator("#tried circle").count() == 1
    tab_to("#all")
    page.keyboard.press("Enter")
    assert page.locator("#tried circle").count() == 21


# ------------------------------------------------------------------ links


def test_a_link_leads_to_a_setting_or_says_in_a_sentence_that_there_is_none(path, visit):
    page = visit(path, "#d_k=512&a=0.5&query=7")
    assert page.inner_text("#d_k_said") == "512" and page.inner_text("#a_said") == "0.5"
    assert page.input_value("#query") == "7" and page.is_visible("#lab")
    page.evaluate("location.hash = '#a=0.25'")
    page.wait_for_function("document.getElementById('a_said').textContent === '0.25'")
    assert page.evaluate("location.hash") == "#d_k=512&a=0.25&query=7"
    page.evaluate("location.hash = '#m=2.5'")
    page.wait_for_function("document.getElementById('m_said').textContent === '2.5'")
    assert page.evaluate("location.hash") == "#d_k=512&a=0.25&m=2.5&query=7"
    page.evaluate("location.hash = '#m=7'")
    page.wait_for_function("!document.getElementById('message').hidden")
    assert "m goes from 0 to 6 in steps of 0.5 here" in page.inner_text("#message")
    page = visit(path, "#d_k=64&a=0.52")
    assert page.is_visible("#message") and page.is_hidden("#lab")
    said = "The link asks for a = 0.52, but a goes from 0 to 1 in steps of 0.05 here."
    assert page.inner_text("#message") == said


# ------------------------------------------------------------------ everywhere


def test_it_fits_a_narrow_screen_and_a_sheet_of_paper(path, visit):
    page = visit(path, "#d_k=1024&a=0.25", viewport={"width": 320, "height": 800})
    page.select_option("#which", "How far from flat")
    page.click("#all")
    assert page.locator(".charts figure:visible").count() == 1 and page.is_visible("#tried")
    page.locator("#said").scroll_into_view_if_needed()
    assert page.locator("#a").bounding_box()["y"] > 0  # (the sliders stay in view)
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    page.emulate_media(media="print", color_scheme="light")
    assert page.is_hidden("#a") and page.is_hidden("#all") and page.is_visible("#hill svg")
    assert page.locator("main > figure svg").first.bounding_box()["height"] > 100


def test_axe_finds_nothing_serious(path, visit, serious):
    page = visit(path, "#d_k=256&a=0", bypass_csp=True)
    page.get_by_role("slider", name="the median").press("PageDown")
    page.click("#compare")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert serious(page) == [], scheme


def test_without_javascript_there_are_pictures_and_a_table_with_the_finding(path, medians, visit):
    page = visit(path, java_script_enabled=False)
    assert "Without JavaScript" in page.inner_text("main") and page.is_hidden("#lab")
    assert page.locator("main > figure svg:visible").count() == 3
    row = page.locator("tr:has(td:first-child:text-is('0.5'))").inner_text().split()
    assert row[1:6] == [f"{medians[d_k, 0.5]:.3g}" for d_k in D_KS[::2]]
    assert page.is_hidden("#guess") and page.is_visible("table")
