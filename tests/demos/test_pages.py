"""The pages of the demos: they need nothing, and everyone can read them."""

import functools
import re

import pytest

from demos._files import CHAPTERS
from demos.site._book import Book
from demos.site._contents import book
from demos.site._demos import page_of_demo
from demos.site._document import HEADER, copy_beside, document
from tests.demos.test_texts import TEXTS, run_of
from tests.demos.test_training_demos import TRAIN

# How a demo is run here, as elsewhere. (Of each kind of page there is one that a browser looks at.)
RUN = {name: run_of(name, "--quick") for name in TEXTS}
RUN |= {name: (name, "--seed", "1") for name in ("first_gradient", "scaling")}
RUN |= {name: (name, "--quick") for name in (*TRAIN, "texts", "laboratory")}
RUN |= {name: (name,) for name in ("draw", "museum", "why_half")}
# Backwards: test_training_demos, which another process runs at the same time, shares these runs,
# and in one order each process would wait while the other runs a demo.
every_page = pytest.mark.parametrize("name", [*reversed(RUN)])
SEEN = ["love_you", "texts", "museum", "scaling", "reverse"]


@pytest.fixture(scope="module")
def page_of(finished):
    """Give page_of(name): a demo's page. The list of the texts is made last, with all its links."""

    def page_of(name):
        for text in TEXTS if name == "texts" else []:
            finished(*RUN[text])
        return finished(*RUN[name])[0] / "index.html"

    return page_of


@pytest.fixture(scope="module")
def in_frame(page_of, tmp_path_factory):
    """Give in_frame(name): a demo's page on the site."""
    site = tmp_path_factory.mktemp("site")
    (site / "demos").mkdir()
    copy_beside(site)
    contents = Book(*book(), site)

    @functools.cache
    def in_frame(name):
        (site / "demos" / name).symlink_to(page_of(name).parent)
        path = site / f"demo-{name}.html"
        path.write_text(document(page_of_demo(contents, name), ""), "utf-8")
        return path

    return in_frame


def read(page_of, name):
    """Return the page without the pages inside it."""
    return re.sub(r'srcdoc="[^"]*"', "", page_of(name).read_text("utf-8"))


# ------------------------------------------------------------------ value: what a page says


def test_the_list_of_texts_links_to_each_of_them(page_of):
    page = read(page_of, "texts")
    assert re.findall(r'href="../(\w+)/index.html"', page) == list(TEXTS)
    assert page.count("<li>") >= sum(len(each.source.COMPLETED) for each in TEXTS.values())


# ------------------------------------------------------------------ law: a page is short

# Words that are seen, and with what is folded, without code and pictures; and where the first
# picture or table begins, which is in the first screen of a demo that has a finding.
COUNT = """opened => {
    const main = document.querySelector("main").cloneNode(true);
    const left = main.querySelectorAll("svg, iframe, script, .code, pre, .exhibit, .diff");
    left.forEach(x => x.remove());
    main.querySelectorAll("details").forEach(x => { x.open = opened; });
    document.body.append(main);
    const count = main.innerText.split(/\\s+/).filter(Boolean).length;
    main.remove();
    return count;
}"""
FIRST = """Math.min(...[...document.querySelectorAll("main :is(svg, img, table)")]
    .filter(x => x.offsetParent || x.getClientRects().length)
    .map(x => x.getBoundingClientRect().top))"""
# A report: seven figures whose captions say how they are read, in a terminal too; the limits; and
# folded the claims with what would refute them, the marks, and what was read. Sixteen exhibits.
LONGER = {"laboratory": (2300, 6800, 125), "museum": (1200, 2600, 80)}


@every_page
def test_a_page_is_short_and_shows_its_picture_first_and_a_terminal_gets_few_lines(
    name, page_of, finished, visit
):
    page = visit(page_of(name), viewport={"width": 1280, "height": 800})
    found = page.evaluate(f"({COUNT})(false)"), page.evaluate(f"({COUNT})(true)")
    most = LONGER.get(name, (1200, 2500, 80))
    assert found[0] <= most[0] and found[1] <= most[1], found
    assert page.evaluate(FIRST) < 600 or name == "why_half"  # (which asks first)
    printed = finished(*RUN[name])[1].splitlines()
    assert sum("--quick" not in line for line in printed) <= most[2]


# ------------------------------------------------------------------ in a real browser


def assert_picture_first(page):
    """Assert that the picture stands below the finding, and above the claim and the facts."""
    parts = (".finding", ".opening .beside", ".claim", ".facts")
    tops = [page.locator(part).first.bounding_box()["y"] for part in parts]
    assert tops == sorted(tops)


@pytest.mark.parametrize("name", SEEN)
def test_a_page_can_be_read_at_any_width_in_any_light_on_paper_and_with_a_screen_reader(
    name, page_of, visit, serious
):
    path = page_of(name)
    page = visit(path, viewport={"width": 400, "height": 800}, color_scheme="dark")
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    assert_picture_first(page)
    page.emulate_media(media="print", color_scheme="light")
    folded = "[...document.querySelectorAll('details > :not(summary)')]"
    hidden = f"{folded}.filter(e => !e.offsetHeight && !e.querySelector('iframe'))"
    assert page.evaluate(f"{hidden}.length") == 0
    page.emulate_media(media="screen", color_scheme="light")
    page.set_viewport_size({"width": 1000, "height": 800})
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") <= 1000
    schemes = ("light", "dark") if name == "museum" else ("dark",)  # (one template for all)
    for scheme in schemes:
        page.emulate_media(color_scheme=scheme)
        assert not serious(page, drawn=False), scheme


@every_page
def test_a_page_leads_only_to_what_is_there_and_loads_nothing(name, page_of):
    path = page_of(name)
    page = read(page_of, name)
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    links = re.findall(r'(?:src|href)="(?!data:)([^"]*)"', page)
    for address in links:
        there = address[1:] in ids if address.startswith("#") else (path.parent / address).exists()
        assert there, address
    assert not re.search(r"@import|url\((?!#)", page)
    assert set(re.findall(r"https?://[^/\" &;<]+", page)) <= {"http://www.w3.org"}


# ------------------------------------------------------------------ the same content, on the site


@every_page
def test_the_site_has_the_finding_first_and_what_is_around_a_page(name, in_frame):
    path = in_frame(name)
    page = path.read_text("utf-8")
    places = [page.find(part) for part in ('class="opening"', 'class="facts"', "<h2 id=")]
    assert 'class="finding"' in page[: places[1]] and sorted(places) == places
    assert 'class="question"' not in page or page.index('class="question"') < places[1]
    links = re.findall(r'href="(?!data:|#)([^"]*)"', page)
    assert {file for _, file in HEADER} <= set(links) and ' rel="next"' in page
    assert any(link.startswith(f"{CHAPTERS[name]}-") for link in links)
    asked = re.findall(r'<[^>]* src="(?!data:)([^"]*)"', page)
    assert all((path.parent / address).is_file() for address in asked)
    assert 'srcdoc="' not in page and not re.search(r"<script(?! defer src=)", page)


@pytest.mark.parametrize("name", SEEN)
def test_on_a_phone_a_page_of_the_site_fits_and_has_its_picture_first(
    name, in_frame, look, serious
):
    page = look(in_frame(name), width=390, scheme="dark", is_mobile=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert_picture_first(page)
    assert not serious(page, drawn=False)
