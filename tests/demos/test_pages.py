"""The pages of the demos: they need nothing, and everyone can read them."""

import re
from html import unescape

import pytest

from tests.demos.test_texts import TEXTS, run_of

# How a demo is run here, as elsewhere. (Of each kind of page there is one that a browser looks at.)
RUN = {name: run_of(name, "--quick") for name in TEXTS}
RUN |= {name: (name, "--seed", "1") for name in ("first_gradient", "scaling")}
RUN |= {name: (name, "--quick") for name in ("reverse", "texts")}
SEEN = ["love_you", "texts", "museum", "scaling", "reverse"]


@pytest.fixture
def page_of(finished):
    """Give page_of(name): a demo's page. The list of the texts is made last, with all its links."""

    def page_of(name):
        for text in TEXTS if name == "texts" else []:
            finished(*RUN[text])
        return finished(*RUN.get(name, [name]))[0] / "index.html"

    return page_of


def read(page_of, name):
    """Return the page without the pages inside it, and as text."""
    page = re.sub(r'srcdoc="[^"]*"', "", page_of(name).read_text("utf-8"))
    return page, " ".join(unescape(re.sub(r"<style>.*?</style>|<[^>]*>", "", page)).split())


# ------------------------------------------------------------------ value: what a page says


@pytest.mark.parametrize("name", TEXTS)
def test_the_page_of_a_text_has_its_numbers_its_lines_the_way_back_and_a_question(name, page_of):
    text = TEXTS[name]
    page, said = read(page_of, name)
    assert f"The text prints {text.printed} numbers, and {text.same} of them come" in said
    lines = [line.replace("`", "") for s in text.source.SLIPS for line in (s.says, s.so)]
    assert [line for line in lines if line not in said] == []
    assert len(re.findall(r'<span class="kind', page)) == len(text.source.SLIPS)
    assert "The way back" in said and "What do you expect?" in said
    figures = re.findall(r'<svg\b[^>]*? role="img" aria-label="([^"]*)"', page)
    assert len(figures) >= 3 and min(map(len, figures)) > 40
    assert sum("The RMS of the gradient goes from" in alt for alt in figures) == 2
    assert page.count("<iframe") == 1 and "What to conclude" in said and "Try it" in said


def test_the_list_of_texts_links_to_each_of_them(page_of):
    page, said = read(page_of, "texts")
    assert re.findall(r'href="../(\w+)/index.html"', page) == list(TEXTS)
    assert all(
        step in said for t in TEXTS.values() for step in t.source.COMPLETED if "`" not in step
    )


# ------------------------------------------------------------------ in a real browser


@pytest.mark.parametrize("name", SEEN)
def test_a_page_can_be_read_at_any_width_in_any_light_on_paper_and_with_a_screen_reader(
    name, page_of, visit, serious
):
    path = page_of(name)
    page = visit(path, viewport={"width": 400, "height": 800}, color_scheme="dark")
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    page.emulate_media(media="print", color_scheme="light")
    hidden = (
        "[...document.querySelectorAll('details > :not(summary)')].filter(e => !e.offsetHeight)"
    )
    assert page.evaluate(f"{hidden}.length") == 0
    page.emulate_media(media="screen", color_scheme="light")
    page.set_viewport_size({"width": 1000, "height": 800})
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") <= 1000
    schemes = ("light", "dark") if name == "museum" else ("dark",)  # (one template for all)
    for scheme in schemes:
        page.emulate_media(color_scheme=scheme)
        assert not serious(page, drawn=False), scheme


@pytest.mark.parametrize("name", [*RUN, "museum", "why_half"])
def test_a_page_leads_only_to_what_is_there_and_loads_nothing(name, page_of):
    path = page_of(name)
    page = read(page_of, name)[0]
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    links = re.findall(r'(?:src|href)="(?!data:)([^"]*)"', page)
    for address in links:
        there = address[1:] in ids if address.startswith("#") else (path.parent / address).exists()
        assert there, address
    assert not re.search(r"@import|url\((?!#)", page)
    assert set(re.findall(r"https?://[^/\" &;<]+", page)) <= {"http://www.w3.org"}
