"""Explore: what moves on its pages is what minigrad computes, and everyone can move it."""

import json
import re
from itertools import pairwise

import numpy as np
import pytest

from attention import attention, attention_weights
from attention.scaling import typical_query
from demos.laboratory import _gpt
from demos.laboratory._pages import learns, write_explorables
from demos.laboratory._pages import pages as explore
from demos.pages.page import data
from demos.pictures.softmax import CASES
from demos.site._book import Book
from demos.site._chapters import page_of_chapter
from demos.site._contents import book
from demos.site._document import copy_beside, document
from minigrad import Tensor, gradients
from tests.demos.running import ROOT

PICTURES = ROOT / "demos" / "pictures"
FILES = ["explore.html", "softmax.html", "way-back.html", "why_half.html", "gpt.html"]
SETTINGS = {0.0: 1.0, 0.5: 0.5, 1.0: 0.0}  # of the slider, and the exponent a of d_k^-a


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The pages, and what the site puts beside them."""
    folder = tmp_path_factory.mktemp("site")
    contents = Book(*book())
    pages = explore(contents)
    assert [page.file for page in pages] == FILES
    pages += [page_of_chapter(contents, contents.chapters[n]) for n in ("3.6", "13")]
    write_explorables(folder, contents.sources())
    for page in pages:
        (folder / page.file).write_text(document(page, "a footer"), encoding="utf-8")
    copy_beside(folder)
    return folder


def by_minigrad(case, a):
    """Both passes of a case, by attention itself: the rows, and the gradient's RMS at x and q."""
    d_k, keys, seed = CASES[case]
    q, k, v, g = typical_query(d_k, keys=keys, rng=np.random.default_rng(seed))
    q, scale = Tensor(q, requires_grad=True), float(d_k) ** -a
    (of_q,) = gradients(attention(q, k, v, scale=scale), [q], g)
    y = attention_weights(q, k, scale=scale).data[0]
    of_y = (g @ v.T)[0]
    departures = of_y - y @ of_y
    of_x = y * departures
    rows = {"x": scale * (k @ q.data[0]), "y": y, "g": of_y, "departures": departures, "of_x": of_x}
    return rows, np.sqrt((of_x**2).mean()), np.sqrt((of_q**2).mean())


# ------------------------------------------------------------------ what is written


def test_nothing_in_the_data_ends_its_element():
    hard = {"</script>": ["<!--", "<script>", 0.1]}
    assert "<" not in data(hard) and json.loads(data(hard)) == hard


def test_a_training_leads_to_its_page_and_says_its_command():
    assert "python -m demos reverse</code>, 8 s" in learns()
    assert re.findall('href="(.*?)"', learns()) == ["demo-reverse.html", "demo-induction.html"]


def test_the_ratios_in_the_text_are_those_of_attention(folder):
    text = re.sub("<[^>]+>", "", (folder / "softmax.html").read_text(encoding="utf-8"))
    told = {"extreme": ("1/45,000", "2,000 times smaller"), "usual": ("0.6", "5 times larger")}
    for case, (at_x, at_q) in told.items():
        (_, x, q), (_, raw_x, raw_q) = by_minigrad(case, 0.5), by_minigrad(case, 0.0)
        number = float(at_x.removeprefix("1/").replace(",", ""))
        assert (1 / number if "/" in at_x else number) == pytest.approx(raw_x / x, rel=0.04)
        assert float(at_q.split()[0].replace(",", "")) == pytest.approx(
            max(raw_q / q, q / raw_q), rel=0.04
        )
        assert f" {at_x} of the gradient" in text and f" about {at_q} without the scale" in text


def test_the_usual_query_is_near_the_median_of_many():
    rng = np.random.default_rng(0)
    q, k, g = (rng.standard_normal((1001, n, 64)) for n in (1, 64, 1))
    sizes = []
    for scale in (1.0, 1 / 8):
        x = scale * (q @ k.mT)
        y = np.exp(x - x.max(axis=-1, keepdims=True))
        y /= y.sum(axis=-1, keepdims=True)
        of_y = g @ rng.standard_normal((1001, 64, 64)).mT
        of_x = y * (of_y - (y * of_y).sum(axis=-1, keepdims=True))
        both = of_x, scale * of_x @ k
        sizes.append([np.median(np.sqrt((each**2).mean(axis=(-2, -1)))) for each in both])
    assert 0.5 < sizes[0][0] / sizes[1][0] < 0.7  # 0.6
    assert 4.2 < sizes[0][1] / sizes[1][1] < 5.2  # about 5


def test_what_is_said_of_the_gpt_is_in_its_pictures():
    def boxes(name):
        text = (PICTURES / name).read_text(encoding="utf-8")
        return json.loads(re.search(r"<metadata>(.*?)</metadata>", text, re.DOTALL)[1])["boxes"]

    folded, opened = boxes("gpt.svg"), boxes("gpt_opened.svg")
    assert len(folded) == 15
    (strip,) = (dict(box["strip"]) for box in folded if "strip" in box)
    assert [*strip] == [str(n) for n in range(1, 12)]
    assert max(strip.values()) < 1.05 * min(strip.values())
    grads = {box["title"]: box["grad"] for box in opened}
    way = [grads[name] for name in ("w_o", "heads", "weights", "scores")]
    falls = [before / after for before, after in pairwise(way)]
    assert min(falls) > 1 and max(falls) == falls[0]
    assert max(grads["w_q"], grads["w_k"]) < grads["w_v"] / 10
    (attention_box,) = (box for box in folded if box["title"] == "attention")
    assert attention_box["rows"][0]["grad"] < grads["w_o"] / 1000
    (keys,) = (box for box in opened if box["title"] == "w_k")
    assert [row["grad"] < 1e-15 for row in keys["rows"]] == [False, True]


def test_a_gpts_gradient_keeps_its_size_and_a_layer_hands_little_of_it_to_its_input():
    sizes = np.array([[cell.rms for cell in cells] for cells in _gpt.columns()])  # (12, 4)
    assert sizes.shape == (12, 4)
    for entering, leaving in ((0, 1), (2, 3)):
        assert sizes[:, leaving].max() < 1.05 * sizes[:, leaving].min()
        assert (sizes[:, entering] / sizes[:, leaving]).max() < 0.0011


# ------------------------------------------------------------------ in a browser


@pytest.fixture
def visit(look, folder):
    """visit(file, **options): a page of Explore, whose slider does not move by itself."""
    still = {"reduced_motion": "reduce"}
    return lambda file, **options: look(folder / file, **still | options)


def guess(page, n, case=0):
    page.click(f".cases button:nth-child({case + 1})")
    page.click(f".question:not([hidden]) button:nth-child({n})")


@pytest.mark.parametrize(("place", "case"), [*enumerate(CASES)])
def test_its_numbers_are_those_of_minigrad(visit, place, case):
    page = visit("softmax.html")
    guess(page, 1, place)
    for setting, a in SETTINGS.items():
        page.click(f'.ticks [data-to="{setting:g}"]')
        rows, *sizes = by_minigrad(case, a)
        for name, wanted in rows.items():
            shown = page.eval_on_selector_all(
                f"[data-row={name}] data", "all => all.map(e => e.value)"
            )
            np.testing.assert_allclose([float(x) for x in shown], wanted, rtol=1e-9, atol=1e-13)
        shown = [float(page.get_attribute(f"#{name}", "value")) for name in ("rms_x", "rms_q")]
        np.testing.assert_allclose(shown, sizes, rtol=1e-9)


def test_it_asks_before_it_shows(visit):
    page = visit("softmax.html")
    assert page.is_disabled("#c") and not page.is_visible(".after")
    assert page.input_value("#c") == "0.5" and page.inner_text("#rms_x") == "0.142"
    guess(page, 1)
    assert page.inner_text(".told >> visible=true").startswith(
        "Not as you guessed: it becomes 45,000"
    )
    assert page.input_value("#c") == "1" and not page.is_visible(".after")
    assert page.inner_text("#rms_x_times") == "1/45,000 of that"
    guess(page, 3)  # the first guess stays
    assert page.get_attribute(".question:not([hidden]) [data-right]", "aria-pressed") is None
    guess(page, 2, case=1)
    assert page.inner_text(".told >> visible=true").startswith("As you guessed: 0.6 ")
    assert page.inner_text("#rms_q_times") == "4.9 times that" and page.is_visible(".after")


@pytest.mark.parametrize(
    ("case", "said"), [(0, ["even", "middle", "one"]), (1, ["even", "middle", "large"])]
)
def test_it_says_which_factor_is_small(visit, case, said):
    page = visit("softmax.html")
    guess(page, 2, case)
    found = []
    for setting in SETTINGS:
        page.click(f'.ticks [data-to="{setting:g}"]')
        (shown,) = page.eval_on_selector_all(
            ".says > :not([hidden])", "all => all.map(e => e.dataset.when)"
        )
        found.append(shown)
    assert found == said


def test_the_keyboard_guesses_and_moves_the_slider(visit):
    page = visit("softmax.html")
    page.focus(".question:not([hidden]) button")
    page.keyboard.press("Enter")
    page.focus(".cases [aria-pressed=false]")
    for _ in range(4):  # past the other guesses
        page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "c"
    page.keyboard.press("Home")
    assert page.get_attribute("#c", "aria-valuetext") == "c = 0.00195"
    page.keyboard.press("ArrowRight")
    assert page.input_value("#c") == "0.01"
    page.keyboard.press("End")
    assert page.inner_text("#scale") == "1"


def test_chapter_3_6_has_it_too(visit):
    page = visit("3.6-softmax.html")
    assert page.is_disabled("#c") and not page.is_visible(".still")
    guess(page, 3)
    assert page.inner_text("#rms_x_times") == "1/45,000 of that"
    guess(page, 2, case=1)
    assert page.get_attribute(".after a", "href") == "softmax.html" and page.is_visible(".after")
    ids = page.eval_on_selector_all("[id]", "all => all.map(e => e.id)")
    assert len(ids) == len(set(ids))


def test_it_moves_by_itself_to_where_the_guess_asks(visit):
    page = visit("softmax.html", reduced_motion="no-preference")
    guess(page, 3)
    assert float(page.input_value("#c")) < 1
    page.locator("#scale:text-is('1')").wait_for()


def test_without_javascript_the_three_scales_are_a_table(visit):
    page = visit("softmax.html", java_script_enabled=False)
    assert page.is_visible(".still table") and page.is_visible(".after")
    assert not page.is_visible(".play")
    assert page.locator(".still th[colspan]").count() == 3


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("width", [320, 390, 1280])
def test_no_page_scrolls_sideways(visit, file, width):
    page = visit(file, width=width)
    if file == "softmax.html":
        guess(page, 1)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(visit, findings, file, scheme):
    page = visit(file, scheme=scheme)
    if file == "why_half.html":
        page.click("#skip")
    for case in (0, 1) if file == "softmax.html" else ():
        guess(page, 1, case)
    assert [(f["id"], [n["html"][:90] for n in f["nodes"]]) for f in findings(page)] == []


@pytest.mark.parametrize("part", range(4))
def test_a_cell_of_the_gpt_opens_its_step_with_its_number(visit, part):
    cell = _gpt.columns()[6][part]
    page = visit("gpt.html")
    page.focus(f"[aria-label^='Block 6, {cell.part}']")
    page.keyboard.press("Enter")
    steps = page.frame("stepper")
    steps.wait_for_url(f"**/{cell.address}")
    steps.locator(".box.gradient.now").last.wait_for()
    said = " ".join(steps.locator(".box.now .grad").all_inner_texts())
    said = re.sub("·10⁻([⁰¹²³⁴-⁹])", lambda power: f"e-{'⁰¹²³⁴⁵⁶⁷⁸⁹'.index(power[1])}", said)
    assert f"{cell.rms:.3g}" in {f"{float(x):.3g}" for x in re.findall(r"grad ([\d.e-]+)", said)}
    assert steps.inner_text("#message") == ""


def test_attentions_weights_are_a_map_for_each_head(visit):
    steps = visit("gpt.html").frame("stepper")
    steps.click(".box:has-text('weights#1')")
    found = steps.locator("figure:has(figcaption:text('gradient of weights')) table")
    assert found.count() == 4 and found.first.locator("tr").count() == 4


def test_a_step_leads_to_its_line_of_source(visit):
    link = visit("gpt.html").frame("stepper").locator("#more a").first
    page, (file, number) = link.page, link.inner_text().split(", line ")
    link.click()
    page.wait_for_url(f"**/13-multi-head-attention.html#L{number}")
    line = (ROOT / file).read_text("utf-8").splitlines()[int(number) - 1]
    shown = page.locator(f"#L{number}").inner_text().split("  #")[0].strip()
    assert shown and shown in line
