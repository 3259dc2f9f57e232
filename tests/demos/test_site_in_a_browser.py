"""Site, in a real browser: no request, no complaint, no sideways scrolling; Find and folds."""

import io
import re

import pytest

KINDS = (  # a page of each kind (those of Explore have tests of their own)
    "index",
    "book",
    "3.6-softmax",
    "minigrad.graphs.folding",
    "exercises",
    "exercise-13",
    "museum",
    "exhibit-1",
    "demos",
    "demo-recall",
    "words",
)


@pytest.fixture(scope="module")
def site(run_once):
    folder, done = run_once("site")
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def visit(look, site):
    """visit(name, **options): a page of the site."""
    return lambda name, *fragment, **options: look(site / f"{name}.html", *fragment, **options)


@pytest.mark.slow
def test_no_page_of_the_site_complains_or_asks_for_more(visit, site):
    pages = sorted(path.stem for path in site.glob("*.html"))
    assert len(pages) > 150
    for name in pages:
        if name != "step" and name != "why_half":  # (pages of their own, tested elsewhere)
            visit(name)


@pytest.mark.parametrize("name", KINDS)
def test_a_page_of_each_kind_fits_every_width_and_axe_finds_nothing(visit, findings, name):
    for width in (320, 390, 1000, 1600):
        page = visit(name, width=width)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, (name, width)
    for scheme in ("light", "dark"):
        found = findings(visit(name, scheme=scheme))
        assert [(f["id"], [n["html"][:90] for n in f["nodes"]]) for f in found] == []


# How far what is seen has moved by itself, as Chromium counts it (cumulative layout shift).
SHIFT = """() => new Promise((done) => {
  let shift = 0;
  new PerformanceObserver((list) => list.getEntries().forEach((entry) => { shift += entry.value; }))
    .observe({type: "layout-shift", buffered: true});
  setTimeout(() => done(shift), 300);
})"""


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize(
    "name", [*KINDS, "0-the-idea", "4.1-finite-differences", "14-positions", "gpt"]
)
def test_nothing_moves_while_a_page_is_loaded(visit, name, width):
    assert visit(name, width=width).evaluate(SHIFT) < 0.05


@pytest.mark.parametrize("name", ["explore", "gpt", "15.3-models", "16-why-d-k", "demos"])
def test_in_the_dark_no_picture_is_a_white_sheet(visit, name):
    """(A plot of matplotlib is a light card, less bright than paper.)"""
    imread = pytest.importorskip("matplotlib.image").imread
    page = visit(name, scheme="dark")
    pictures = page.locator("main img:visible")
    assert pictures.count()
    for picture in pictures.all():
        source = picture.get_attribute("src")
        brightness = imread(io.BytesIO(picture.screenshot()))[..., :3].mean()
        assert brightness < (0.9 if source.endswith((".png", "map.svg")) else 0.8), source


def test_find_is_opened_typed_into_and_followed_by_keyboard_alone(visit):
    """(It waits for what a reader sees: the policy forbids the evaluated text of other waits.)"""
    page = visit("index")
    page.keyboard.press("/")
    page.locator("dialog input").wait_for()
    page.keyboard.type("softm")
    page.locator("#found li").first.wait_for()
    found = page.locator("#found li").all_inner_texts()
    assert any(line.startswith("3.6 Softmax") for line in found)
    page.keyboard.press("ArrowDown")
    assert page.locator("#found [aria-selected=true]").count() == 1
    page.locator("dialog input").fill("softmax")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"softmax"))
    page.keyboard.press("/")
    page.locator("dialog input").wait_for()
    page.keyboard.type("softm")
    page.locator("#found li").first.wait_for()
    page.locator("dialog input").fill("</script><b>x")
    page.get_by_text("Nothing found").wait_for()
    assert page.locator("dialog b").count() == 0
    page.keyboard.press("Escape")
    page.locator("dialog").wait_for(state="hidden")


@pytest.mark.parametrize(
    "words", ["chain rule", "float32", "learning rate", "one-hot", "faster", "padding", "resume"]
)
def test_find_leads_from_words_to_a_section_that_has_them(visit, words):
    page = visit("index")
    page.keyboard.press("/")
    page.locator("dialog input").fill(words)
    page.get_by_text(re.compile(r"\d found$")).wait_for()
    page.locator("#found span", has_text=re.compile("^(page|section of .*)$")).last.click()
    page.wait_for_load_state("load")
    section = page.url.partition("#")[2]
    shown = page.locator(f"[id='{section}']" if section else "main").first
    around = shown.locator("xpath=ancestor::*[contains(@class, 'row')]").or_(page.locator("main"))
    assert all(word in around.first.inner_text().lower() for word in words.split()), page.url


def test_a_chapter_of_the_evening_that_is_left_for_the_next_one_is_remembered(visit):
    page = visit("2.1-replay")
    before = page.locator(".evening .left").inner_text()
    page.locator(".turn [rel=next]").click()
    page.wait_for_url(re.compile("3-primitives"))
    assert page.locator(".evening .done").all_inner_texts() == ["2.1"]
    assert visit("index").locator(".route .done b").all_inner_texts() == ["2.1"]
    page = visit("1.3-rules")
    left = int(page.locator(".evening .left").inner_text().split()[0])
    stations = page.locator(".evening li")
    minutes = [int(each.get_attribute("data-minutes")) for each in stations.all()]
    assert left == sum(minutes[3:]) - minutes[4] and before == f"{sum(minutes[4:])} min left"
    page.evaluate("localStorage.setItem('minigrad.exercises', 'another kind')")
    page = visit("3-primitives")
    page.locator(".turn [rel=next]").click()
    assert page.evaluate("localStorage.getItem('minigrad.exercises')") == "another kind"
    page.evaluate("localStorage.clear()")


def test_an_address_a_link_and_print_open_a_fold(visit, site):
    page = visit("3.6-softmax", "#logsumexp")
    assert page.locator("#logsumexp").is_visible()
    page = visit("3.6-softmax")
    assert not page.locator("#logsumexp").is_visible()
    line = page.locator(".later .ln").first.get_attribute("id")
    page = visit("3.6-softmax", f"#{line}")
    assert page.locator(f"#{line}").is_visible()
    page = visit("3.6-softmax")
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("#logsumexp").is_visible()


def test_print_keeps_the_bars_of_softmax(visit):
    """(A browser prints no backgrounds but those that a page insists on.)"""
    page = visit("3.6-softmax")
    page.emulate_media(media="print")
    adjust = "all => all.map(each => getComputedStyle(each, '::before').printColorAdjust)"
    bars = page.eval_on_selector_all(".bars .cells data", adjust)
    assert len(bars) > 10 and set(bars) == {"exact"}


def test_copied_code_has_no_line_numbers_prompts_or_results(visit):
    page = visit("3.6-softmax")
    page.evaluate("navigator.clipboard.writeText = async text => { window.copied = text }")
    page.locator(".beside .copy").nth(1).click(force=True)
    assert "@primitive" in page.evaluate("copied")
    console = page.locator(".holder:has(+ .console) .copy").first
    console.click(force=True)
    copied = page.evaluate("copied")
    assert copied.startswith("softmax([0.0, np.log(3.0)])\n") and "array(" not in copied


def test_an_exhibits_lines_answer_a_click(visit):
    page = visit("exhibit-1")
    said = page.locator(".said").first
    page.locator(".exhibit button").first.click()
    wrong = said.inner_text()
    page.locator(".exhibit button[data-right]").first.click()
    assert said.inner_text() != wrong
    assert page.locator(".exhibit button.good").count() == 1


@pytest.mark.slow
def test_the_site_is_the_same_bytes_twice(run_once, site):
    folder, done = run_once("site", "--seed", "0")
    assert done.returncode == 0, done.stderr
    files = lambda root: {p.relative_to(root): p.read_bytes() for p in root.rglob("*.*")}
    one, other = files(folder), files(site)
    assert [name for name in one | other if one.get(name) != other.get(name)] == []
