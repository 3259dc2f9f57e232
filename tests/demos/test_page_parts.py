"""The parts of a page: all beside each other, with any text, in the dark, on paper, on a phone."""

import os
import re
import shutil
from html.parser import HTMLParser
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attention.figures import new_figure, save_figure
from attention.maps import animate_weights
from demos._markup import marked
from demos._page import Page
from minigrad import Steps, Tensor, graph
from minigrad.graphs.scale import SCALE
from tests.conftest import PROGRAMS


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """What a page can hold: a drawing, a figure, an animation, and a page of both passes."""
    folder = tmp_path_factory.mktemp("made")
    x = Tensor([[1e-9, 2.0]], requires_grad=True, name="x")
    with Steps() as steps:
        loss = (x * Tensor([[1e-4, 3.0]], name="c")).sum() ** 2
    graph(loss, grads=True, steps=steps).save(folder / "graph.svg")
    steps.backward(loss)
    steps.save(folder / "steps.html", title="Both")
    figure = new_figure(6, 3)
    figure.subplots().plot([0, 1])
    save_figure(figure, folder / "figure")
    frames = [np.eye(2), np.full((2, 2), 0.5), 1 - np.eye(2)]
    titles = ["1", "2", "3"]
    animate_weights(frames, list("ab"), list("ab"), folder / "maps.gif", titles=titles)
    return folder


# ------------------------------------------------------------------ law: each part does its work

SCRIPT = "for (const p of document.querySelectorAll('.ours')) { p.textContent = 'it ran'; }"
ADD = {
    "steps": lambda page, made: page.steps(made / "steps.html", title="Both"),
    "slider": lambda page, made: page.slider(
        made / "maps.gif", ["1", "2", "3"], alts=["eye", "even", "odd"], caption="Move"
    ),
    "program": lambda page, made: page.program(
        '<p class="ours"></p>', script=SCRIPT, style=".ours { color: rgb(1, 2, 3); }"
    ),
}
SUBSETS = [names for n in range(4) for names in combinations(ADD, n)]


def test_stars_around_words_are_stress_and_all_others_stay():
    for text, shown in {
        "*Means.* One norm": "<em>Means.</em> One norm",
        "*Small initial weights.* GPT-2": "<em>Small initial weights.</em> GPT-2",
        "is *saturated*, so": "is <em>saturated</em>, so",
        "*a* and *b c*": "<em>a</em> and <em>b c</em>",
        "2 * 3 * 4, a*b*c, **kwargs": "2 * 3 * 4, a*b*c, **kwargs",
        "`*x*` is *code*": "<code>*x*</code> is <em>code</em>",
    }.items():
        assert marked(text) == shown


@pytest.mark.parametrize("names", SUBSETS, ids="-".join)
def test_every_part_of_a_page_does_its_work_beside_any_others(names, made, visit, tmp_path):
    page = Page("A page", claim="It has parts.")
    for name in [*names, *names]:  # and twice
        ADD[name](page, made)
    page.figures([(made / f"{name}.svg", name, "") for name in ("graph", "figure")])
    shown = visit(page.write(tmp_path))  # (which fails if the page complains)
    allowed = re.search('script-src ([^"]*)', (tmp_path / "index.html").read_text("utf-8"))[1]
    assert ("'none'" in allowed) == (names == ())
    if "steps" in names:
        for inside in shown.frames[1:]:
            inside.click("#last")
            assert re.match(r"step (\d+) of \1\b", inside.inner_text("#place"))
        assert len(shown.frames) == 3
    if "slider" in names:
        for slider in shown.locator(".slider").all():
            slider.locator("input").press("ArrowRight")
            assert slider.locator("output").inner_text() == "2"
            assert slider.locator("img:visible").get_attribute("alt") == "2. even"
    if "program" in names:
        assert shown.locator(".ours").all_inner_texts() == ["it ran"] * 2
        assert shown.locator(".ours").first.evaluate("p => getComputedStyle(p).color") == (
            "rgb(1, 2, 3)"
        )
    assert shown.locator("svg[role=img]").count() == 2


# ------------------------------------------------------------------ law: a text is shown as it is


class Codes(HTMLParser):
    """The texts of the elements `code` and `pre`, as a browser reads them."""

    def __init__(self, html):
        super().__init__()
        self.found, self.inside = [], False
        self.feed(html)

    def handle_starttag(self, tag, _):
        self.inside = self.inside or tag in ("code", "pre")
        if tag in ("code", "pre"):
            self.found.append("")

    def handle_endtag(self, tag):
        self.inside = self.inside and tag not in ("code", "pre")

    def handle_data(self, text):
        if self.inside:
            self.found[-1] += text


PIECES = ["*a*", "*", " ", "a", "<b>", "&amp;", "&", '"', "'", "_", "\n", "é"]
TEXT = st.lists(st.sampled_from(PIECES), max_size=6).map("".join) | st.text(
    st.characters(exclude_categories=["Cs", "Cc"])
)


@given(TEXT.map(lambda text: text.replace("`", "")), TEXT)
def test_code_is_shown_as_it_is(code, around):
    around = around.replace("`", "")
    assert Codes(marked(f"{around}`{code}`{around}")).found == ([code] if code else [])
    page = Page("A page", claim="It has code.")
    page.code([code, "- *x*"])
    page.fold("All", f"\n{code}")
    lines, folded = Codes("".join(page._parts)).found
    assert lines == f"\n{code}\n- *x*\n" and folded == f"\n\n{code}"  # (a browser drops the first)


def test_an_empty_first_line_is_shown(visit, tmp_path):
    page = Page("A page", claim="It has code.")
    page.code(["", "second"])
    assert visit(page.write(tmp_path)).locator("pre").text_content() == "\nsecond\n"


def test_what_is_added_after_an_error_inside_a_fold_is_outside_of_it(visit, tmp_path):
    page = Page("A page", claim="It has a fold.")
    with pytest.raises(KeyError), page.folded("Inside"):
        raise KeyError
    page.say("outside")
    assert visit(page.write(tmp_path)).get_by_text("outside").is_visible()


# ------------------------------------------------------------------ refusal


@pytest.mark.parametrize(
    ("header", "rows", "groups", "said"),
    [
        (["a", "b"], [["1"]], [], "a row under 2 names has 1 cells"),
        (["a", "b"], [["1", "2"], ["1", "2", "3"]], [], "a row under 2 names has 3 cells"),
        (["a", "b"], [["1", "2"]], [("g", 1)], "the groups above 2 columns are for 1 of them"),
        (["a", "b"], [["1", "2"]], [("g", 3)], "the groups above 2 columns are for 3 of them"),
    ],
)
def test_a_table_whose_parts_do_not_fit_is_one_sentence(header, rows, groups, said):
    with pytest.raises(ValueError, match=f"^{said}$"):
        Page("t", claim="c").table(header, rows, caption="c", groups=groups)


@pytest.mark.parametrize(
    "inside",
    [
        "<script>1</script>",
        "<g><SCRIPT/></g>",
        '<x:script xmlns:x="http://www.w3.org/2000/svg"/>',
        '<g onclick="1"/>',
        "<g><a ONLOAD = '1'/></g>",
        "<g>",
    ],
)
def test_a_picture_that_does_something_is_refused(inside, tmp_path):
    path = tmp_path / "a.svg"
    page = Page("t", claim="c")
    path.write_text(f'<svg xmlns="http://www.w3.org/2000/svg">{inside}</svg>')
    with pytest.raises(ValueError, match=r"^\S+a\.svg (has|is not) .+"):
        page.figure(path, alt="a")
    path.write_text('<svg xmlns="http://www.w3.org/2000/svg"><text>on = 1 onclick=2</text></svg>')
    page.figure(path, alt="a")


# ------------------------------------------------------------------ in the dark, on paper, narrow

DRAWN = """[...document.querySelectorAll("svg.light .node")].map(node => ({
    box: [...node.querySelectorAll("polygon, path")].map(box => getComputedStyle(box).fill)[0],
    texts: [...node.querySelectorAll("text")].map(text => getComputedStyle(text).fill)}))"""
LOOSE = """[...document.querySelectorAll("svg.light text")].filter(
    text => !text.closest(".node") || !text.closest(".node").querySelector("polygon, path")
).map(text => getComputedStyle(text).fill)"""


def light(colour):
    return sum(map(int, re.findall(r"\d+", colour)[:3])) / (3 * 255)


def test_a_drawing_keeps_the_colours_of_its_boxes_in_the_dark(made, visit, tmp_path):
    page = Page("A page", claim="It has a drawing.")
    page.figure(made / "graph.svg", alt="graph")
    page.write(tmp_path)
    boxes, loose = {}, {}
    for scheme in ("light", "dark"):
        shown = visit(tmp_path / "index.html", color_scheme=scheme)
        boxes[scheme], loose[scheme] = shown.evaluate(DRAWN), shown.evaluate(LOOSE)
    with_boxes = [each for each in boxes["dark"] if each.get("box")]
    assert [n.get("box") for n in boxes["dark"]] == [n.get("box") for n in boxes["light"]]
    assert len(with_boxes) >= 3 and len({n["box"] for n in with_boxes}) > 1
    assert all(light(n["box"]) > 0.4 and light(t) == 0 for n in with_boxes for t in n["texts"])
    assert min(map(light, loose["dark"])) > 0.5 > max(map(light, loose["light"]))
    ground = "getComputedStyle(document.querySelector('svg.light .graph > polygon')).fill"
    assert light(shown.evaluate(ground)) < 0.15
    filters = "getComputedStyle(document.querySelector('svg.light')).filter"
    assert shown.evaluate(filters) == "none"
    assert SCALE[0].startswith("#ef")  # pale is light, here and on the page of both passes


CUT = """[...document.querySelectorAll("table, pre, svg[role=img]")].filter(
    e => e.getBoundingClientRect().right > innerWidth + 1 || e.scrollWidth > e.clientWidth + 1)"""


def wide_page(made, folder):
    page = Page("A page", claim="It is wide.")
    for columns in (2, 12, 33):
        row = ["row", *["-1234.5678"] * (columns - 1)]
        page.table([f"name {i}" for i in range(columns)], [row], caption=f"{columns} columns")
    for letters in (10, 150):
        page.code(["- " + "x" * letters, "+ " + "y" * letters], marked=letters > 100)
        page.code(["x y " * (letters // 4)])
    page.figures([(made / f"{name}.svg", name, "") for name in ("graph", "figure")])
    return page.write(folder)


def test_on_paper_nothing_is_cut_and_no_line_of_columns_is_broken(made, visit, tmp_path):
    page = visit(wide_page(made, tmp_path), viewport={"width": 700, "height": 900})
    page.emulate_media(media="print")
    assert page.evaluate(f"{CUT}.length") == 0
    assert set(
        page.locator("pre").evaluate_all("all => all.map(p => getComputedStyle(p).whiteSpace)")
    ) == {"pre"}
    kept = "all => all.map(h => getComputedStyle(h).breakAfter)"
    assert set(page.locator("h1, h2").evaluate_all(kept)) == {"avoid"}


def test_what_is_wider_than_a_phone_has_a_bar_below_it_and_nothing_else_has(
    made, tmp_path, browser
):
    program = os.environ.get("CHROME") or next(filter(None, map(shutil.which, PROGRAMS)), None)
    shown = browser.browser_type.launch(
        executable_path=program, args=["--no-sandbox"], ignore_default_args=["--hide-scrollbars"]
    )
    page = shown.new_page(viewport={"width": 400, "height": 800}, is_mobile=True, has_touch=True)
    page.goto(wide_page(made, tmp_path).as_uri())
    both = "all => all.map(e => [e.scrollWidth > e.clientWidth, e.offsetHeight - e.clientHeight])"
    found = page.locator(".scroll, pre").evaluate_all(both)
    assert {tuple(each) for each in found} == {(True, 10), (False, 0)}
    ends = """all => all.map(e => {
        e.scrollLeft = 1e6;
        return e.scrollLeft + e.clientWidth >= e.scrollWidth - 1; })"""
    assert all(page.locator(".scroll, pre").evaluate_all(ends))
    shown.close()
