"""The parts of a page: all beside each other, with any text, in the dark and on paper."""

import re

import numpy as np
import pytest

from attention.figures import new_figure, save_figure
from attention.maps import animate_weights
from demos._markup import marked
from demos._page import Page, link
from minigrad import Steps, Tensor, graph


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Make what a page can hold: a drawing, a figure, an animation, and a page of both passes."""
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


@pytest.mark.parametrize("names", [(), tuple(ADD)], ids=["none", "all"])
def test_every_part_of_a_page_does_its_work_beside_all_others(names, made, visit, tmp_path):
    page = Page("A page", claim="It has parts.")
    for name in [*names, *names]:  # and twice
        ADD[name](page, made)
    page.figures([(made / f"{name}.svg", name, "") for name in ("graph", "figure")])
    shown = visit(page.write(tmp_path))  # (which fails if the page complains)
    allowed = re.search('script-src ([^"]*)', (tmp_path / "index.html").read_text("utf-8"))[1]
    assert ("'none'" in allowed) == (names == ())
    assert shown.locator("svg[role=img]").count() == 2
    assert len(shown.frames) == 1 + 2 * bool(names)
    for inside in shown.frames[1:]:
        inside.click("#last")
        assert re.match(r"step (\d+) of \1\b", inside.inner_text("#place"))
    for slider in shown.locator(".slider").all():
        assert slider.locator("img:visible").get_attribute("alt") == "1. eye"
        for said in ("2. even", "3. odd"):
            slider.locator("input").press("ArrowRight")
            assert slider.locator("output").inner_text() == said[0]
            assert slider.locator("img:visible").get_attribute("alt") == said
            assert slider.locator("input").get_attribute("aria-valuetext") == said[0]
    assert shown.locator(".ours").all_inner_texts() == ["it ran"] * (2 * bool(names))
    if names:
        colour = "p => getComputedStyle(p).color"
        assert shown.locator(".ours").first.evaluate(colour) == "rgb(1, 2, 3)"
        shown = visit(tmp_path / "index.html", java_script_enabled=False)
        assert shown.locator(".slider img:visible").first.get_attribute("alt") == "3. odd"
        assert not shown.locator(".slider input").first.is_visible()


# ------------------------------------------------------------------ law: a text is shown as it is


def test_stars_around_words_are_stress_all_others_stay_and_code_is_shown_as_it_is():
    for text, shown in {
        "*Means.* One norm": "<em>Means.</em> One norm",
        "is *saturated*, so": "is <em>saturated</em>, so",
        "*a* and *b c*": "<em>a</em> and <em>b c</em>",
        "2 * 3 * 4, a*b*c, **kwargs": "2 * 3 * 4, a*b*c, **kwargs",
        "`*x*` is *code*": "<code>*x*</code> is <em>code</em>",
        '<b> &amp; `<b> "q"`': '&lt;b&gt; &amp;amp; <code>&lt;b&gt; "q"</code>',
    }.items():
        assert marked(text) == shown


HOSTILE = "</script><b onclick='x'>&\"`"


def test_all_text_of_a_page_is_escaped(tmp_path):
    page = Page(HOSTILE, claim=HOSTILE)
    page.section(HOSTILE, name=HOSTILE)
    page.head(HOSTILE)
    page.say(HOSTILE)
    page.ask(HOSTILE, HOSTILE)
    page.table(
        [HOSTILE], [[HOSTILE], [link(HOSTILE, HOSTILE)]], caption=HOSTILE, groups=[(HOSTILE, 1)]
    )
    with page.folded(HOSTILE):
        page.code([HOSTILE, f"- {HOSTILE}"], marked=True)
    page.fold(HOSTILE, HOSTILE)
    page.facts({HOSTILE: [HOSTILE]})
    page.conclude(HOSTILE, [HOSTILE])
    (tmp_path / "one").mkdir()
    text = page.write(tmp_path / "one", quick=True, note=HOSTILE).read_text("utf-8")
    assert "<b onclick" not in text and "</script" not in text
    assert text.count("This is a --quick run") == 1
    assert "onclick" in (tmp_path / "index.html").read_text("utf-8")


def test_words_and_wide_numbers_are_told_apart_and_a_program_is_never_read_as_words(tmp_path):
    page = Page("A page", claim="It has a table.")
    many = "0.1 0.2 0.3 0.4 0.5 0.6 0.7"
    page.table(["a", "b", "c"], [["this is a line of a few words", many, 1]], caption="One row")
    page.code(["- 1", "+ 2", "  3"])
    (tmp_path / "one").mkdir()
    text = page.write(tmp_path / "one").read_text("utf-8")
    assert '<td class="words">this' in text and f'<td class="wide">{many}' in text
    assert "<del>" not in text.partition("</style>")[2]


# ------------------------------------------------------------------ refusal


def test_a_table_whose_parts_do_not_fit_is_one_sentence():
    page = Page("t", claim="c")
    with pytest.raises(ValueError, match="^a row under 2 names has 1 cells$"):
        page.table(["a", "b"], [["1"]], caption="c")
    with pytest.raises(ValueError, match="^the groups above 2 columns are for 1 of them$"):
        page.table(["a", "b"], [["1", "2"]], caption="c", groups=[("g", 1)])


@pytest.mark.parametrize("inside", ["<script>1</script>", '<g onclick="1"/>', "<g>"])
def test_a_picture_that_does_something_is_refused(inside, tmp_path):
    path = tmp_path / "a.svg"
    page = Page("t", claim="c")
    path.write_text(f'<svg xmlns="http://www.w3.org/2000/svg">{inside}</svg>')
    with pytest.raises(ValueError, match=r"^\S+a\.svg (has|is not) .+"):
        page.figure(path, alt="a")
    path.write_text('<svg xmlns="http://www.w3.org/2000/svg"><text>on = 1 onclick=2</text></svg>')
    page.figure(path, alt="a")


# ------------------------------------------------------------------ in the dark, on paper

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


CUT = """[...document.querySelectorAll("table, pre, svg[role=img]")].filter(
    e => e.getBoundingClientRect().right > innerWidth + 1 || e.scrollWidth > e.clientWidth + 1)"""


def test_on_paper_nothing_is_cut_and_no_line_of_columns_is_broken(made, visit, tmp_path):
    page = Page("A page", claim="It is wide.")
    for columns in (2, 12, 33):
        row = ["row", *["-1234.5678"] * (columns - 1)]
        page.table([f"name {i}" for i in range(columns)], [row], caption=f"{columns} columns")
    for letters in (10, 150):
        page.code(["- " + "x" * letters, "+ " + "y" * letters], marked=letters > 100)
    page.figures([(made / f"{name}.svg", name, "") for name in ("graph", "figure")])
    shown = visit(page.write(tmp_path), viewport={"width": 700, "height": 900})
    shown.emulate_media(media="print")
    assert shown.evaluate(f"{CUT}.length") == 0
    style = "all => all.map(p => getComputedStyle(p).whiteSpace)"
    assert set(shown.locator("pre").evaluate_all(style)) == {"pre"}
