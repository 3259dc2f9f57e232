"""Site, in a real browser: no request, no complaint, no sideways scrolling; Find and folds."""

import re

import pytest

KINDS = (  # a page of each kind (those of Explore have tests of their own)
    *("index", "book", "3.6-softmax", "minigrad.graphs.folding", "exercises", "exercise-13"),
    *("museum", "exhibit-1", "demos", "demo-recall", "words"),
)


@pytest.fixture(scope="module")
def site(run_once):
    folder, done = run_once("site")
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def look(tabs, site):
    """look(page, width, scheme): a page of the site, which must ask for files of the site alone."""

    def look(name, width=1280, scheme="light", fragment=""):
        page, said = tabs()
        said.clear()
        page.set_viewport_size({"width": width, "height": 800})
        page.emulate_media(media="screen", color_scheme=scheme)
        page.goto("about:blank")
        page.goto((site / f"{name}.html").as_uri() + fragment)
        page.wait_for_load_state("load")
        asked = {text for what, text in said if what == "asks for" and "about:" not in text}
        assert all(text.startswith(site.as_uri()) for text in asked), asked
        assert [each for each in said if each[0] != "asks for"] == []
        return page

    return look


def test_no_page_of_the_site_complains_or_asks_for_more(look, site):
    pages = sorted(path.stem for path in site.glob("*.html"))
    assert len(pages) > 150
    for name in pages:
        if name != "step" and name != "why_half":  # (pages of their own, tested elsewhere)
            look(name)


@pytest.mark.parametrize("name", KINDS)
def test_a_page_of_each_kind_fits_every_width_and_axe_finds_nothing(look, findings, name):
    for width in (320, 390, 1000, 1600):
        page = look(name, width)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, (name, width)
    for scheme in ("light", "dark"):
        found = findings(look(name, 1280, scheme))
        assert [(f["id"], [n["html"][:90] for n in f["nodes"]]) for f in found] == []


def test_find_is_opened_typed_into_and_followed_by_keyboard_alone(look):
    page = look("index")
    page.keyboard.press("/")
    page.wait_for_function("window.FIND")
    page.keyboard.type("softm")
    found = page.locator("#found li").all_inner_texts()
    assert any(line.startswith("3.6 Softmax") for line in found)
    page.keyboard.press("ArrowDown")
    assert page.locator("#found [aria-selected=true]").count() == 1
    page.locator("dialog input").fill("softmax")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"softmax"))
    page.keyboard.press("/")
    page.wait_for_function("window.FIND")
    page.keyboard.type("</script><b>x")
    assert page.locator("dialog b").count() == 0
    assert page.locator("dialog .count").inner_text() == "Nothing found"
    page.keyboard.press("Escape")
    assert not page.locator("dialog").is_visible()


def test_an_address_a_link_and_print_open_a_fold(look, site):
    page = look("3.6-softmax", fragment="#logsumexp")
    assert page.locator("#logsumexp").is_visible()
    page = look("3.6-softmax")
    assert not page.locator("#logsumexp").is_visible()
    line = page.locator(".later .ln").first.get_attribute("id")
    page = look("3.6-softmax", fragment=f"#{line}")
    assert page.locator(f"#{line}").is_visible()
    page = look("3.6-softmax")
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("#logsumexp").is_visible()


def test_copied_code_has_no_line_numbers_prompts_or_results(look):
    page = look("3.6-softmax")
    page.evaluate("navigator.clipboard.writeText = async text => { window.copied = text }")
    page.locator(".beside .copy").nth(1).click(force=True)
    assert "@primitive" in page.evaluate("copied")
    console = page.locator(".holder:has(+ .console) .copy").first
    console.click(force=True)
    copied = page.evaluate("copied")
    assert copied.startswith("softmax([0.0, np.log(3.0)])\n") and "array(" not in copied


def test_an_exhibits_lines_answer_a_click(look):
    page = look("exhibit-1")
    said = page.locator(".said").first
    page.locator(".exhibit button").first.click()
    wrong = said.inner_text()
    page.locator(".exhibit button[data-right]").first.click()
    assert said.inner_text() != wrong
    assert page.locator(".exhibit button.good").count() == 1


def test_the_site_is_the_same_bytes_twice(run_once, site):
    folder, done = run_once("site", "--seed", "0")
    assert done.returncode == 0, done.stderr
    files = lambda root: {p.relative_to(root): p.read_bytes() for p in root.rglob("*.*")}
    one, other = files(folder), files(site)
    assert [name for name in one | other if one.get(name) != other.get(name)] == []
