"""Live, in a real browser: a definition is edited, answered under its code, and reset."""

import json
from concurrent.futures import ProcessPoolExecutor
from urllib.parse import quote

import pytest

from demos.live._breaks import BREAKS, broken, kept
from demos.live._breaks import answered as answered_at_build
from demos.live._definitions import lines_of
from demos.pages.templates import fill

SOFTMAX, IDEA = "3.6-softmax.html", "0-the-idea.html"
LOOP = ("minigrad.idea", "backward")


@pytest.fixture(scope="module")
def tab(served, open_tab):
    served.add_chapters("3.6", "0", "3.5")
    tab = open_tab(viewport={"width": 1280, "height": 900})
    tab.go(SOFTMAX)
    return tab


def bar(tab, name):
    """Return the place of the buttons of a definition."""
    code = tab.page.locator(f'.code[data-of="{name}"]').first
    return code.locator("xpath=preceding-sibling::*[contains(@class, 'holder')][1]")


def change(tab, name, old, new):
    """Edit a definition and use the changed lines; return what is told under it."""
    bar(tab, name).get_by_role("button", name="Edit").click()
    area = tab.page.get_by_label(f"The lines of {name}")
    text = tab.js(f"definitions.find((each) => each.name === {name!r}).book")
    assert old in text
    area.fill(text.replace(old, new))
    area.press("Control+Enter")
    return answered(tab, name)


def answered(tab, name):
    found = f"definitions.find((each) => each.name === {name!r})"
    tab.until(f"!isGoingOn({found}.runButton)")
    return tab.js(f"`${{{found}.status.textContent}}\\n${{{found}.after.innerText}}`")


def test_a_broken_softmax_is_told_marked_reaches_attention_and_is_reset(tab, findings):
    known = BREAKS["minigrad.ops.softmaxes", "softmax"][0]
    told = change(tab, "softmax", known.old, known.new)
    assert told.startswith("Your lines are in use everywhere in the project.")
    assert "✗ gradcheck: the rule softmax is wrong, in its VJP for input 0." in told
    assert "1.013" in told and "0.000" in told
    assert tab.js("all('.verdict img')[0].naturalWidth") > 300
    assert tab.js("all('.differs').map((each) => each.textContent)") == ["array([0.9, 0. ])"]
    for scheme in ("light", "dark"):
        tab.page.emulate_media(color_scheme=scheme)
        found = [each["nodes"][0]["html"][:100] for each in findings(tab.page)]
        assert not found
    check = (
        "gradcheck(attention, *[np.random.default_rng(0).standard_normal((2, 3))] * 3, order=1)\n"
    )
    _, heard = tab.ask({"run": check, "of": "minigrad.ops.softmaxes"})
    assert "The rule softmax is wrong" in str(heard)
    bar(tab, "softmax").get_by_role("button", name="Reset").click()
    assert tab.js("all('.verdict:not(.breaks *), .differs, .editor').length") == 0
    done, _ = tab.ask({"run": check, "of": "minigrad.ops.softmaxes"})
    assert done is True  # (a new Python)


def shown(tab):
    """Return what a run or a judgement has left in the blocks, and what of it is not the book's."""
    rows = tab.js("all('.console .got').map((each) => each.textContent)")
    return rows, tab.js("all('.differs, .out.book').map((each) => each.textContent)")


def test_right_lines_take_back_what_wrong_lines_have_marked(tab):
    tab.js("blocks[0].run()")
    tab.until("!blocks[0].running && blocks[0].ran")
    assert shown(tab)[0] and not shown(tab)[1]
    known = BREAKS["minigrad.ops.softmaxes", "softmax"][0]
    change(tab, "softmax", known.old, known.new)
    assert shown(tab) == (["array([0.9, 0. ])"], ["array([0.9, 0. ])", "array([ 0.09, -0.09])"])
    area = tab.page.get_by_label("The lines of softmax")
    area.fill(area.input_value().replace(known.new, known.old))
    area.press("Control+Enter")
    tab.until("isGoingOn(definitions[0].runButton)")
    assert "✓ gradcheck" in answered(tab, "softmax")
    assert shown(tab) == ([], [])
    assert tab.js("blocks.filter((each) => !each.resetButton.hidden).length") == 0


def test_reset_while_lines_are_judged_leaves_a_new_python_and_the_typed_lines(tab):
    tab.js("definitions[0].editing && definitions[0].reset()")
    bar(tab, "log_softmax").get_by_role("button", name="Edit").click()
    area = tab.page.get_by_label("The lines of log_softmax")
    typed = area.input_value() + "# mine\n"
    area.fill(typed)
    area.press("Control+Enter")
    tab.until("isGoingOn(definitions[1].runButton)")
    bar(tab, "log_softmax").get_by_role("button", name="Reset").click()
    assert answered(tab, "log_softmax") == "\n" and tab.js("python.worker") is None
    bar(tab, "log_softmax").get_by_role("button", name="Edit").click()
    assert area.input_value() == typed
    tab.page.get_by_role("button", name="The book's lines").click()
    assert area.input_value() == tab.js("definitions[1].book")
    bar(tab, "log_softmax").get_by_role("button", name="Reset").click()


def test_reset_of_lines_that_were_not_used_leaves_the_blocks_as_they_are(tab):
    tab.js("blocks[0].edit()")
    tab.page.get_by_label("Example 1").fill("6 * 7")
    tab.js("blocks[0].run()")
    tab.until("!blocks[0].running && blocks[0].ran")
    bar(tab, "softmax").get_by_role("button", name="Edit").click()
    bar(tab, "softmax").get_by_role("button", name="Reset").click()
    assert tab.js("blocks[0].after.innerText").strip() == "42"
    assert tab.js("blocks.map((each) => each.resetButton.hidden)") == [False, True, True, True]
    assert tab.js("all('.bar.on').length") == 1
    tab.js("blocks[0].reset()")


def test_what_could_not_be_judged_is_neither_right_nor_wrong(tab):
    answer = {"heading": "H", "reason": "", "numbers": None, "picture": None, "examples": []}
    for right, sign in ((True, "✓"), (False, "✗"), (None, "?")):
        box = tab.js("(answer) => told(answer).outerHTML", {**answer, "right": right})
        assert f"<b>{sign} H</b>" in box
        assert ("unjudged" in box) == (right is None)


# Tags, classes and words, without blanks and the quoting of addresses.
OUTLINE = """(box) => [...box.querySelectorAll(":not(tbody)")].map((each) => [
    each.tagName, each.className, each.colSpan ?? 1, each.alt ?? "",
    decodeURIComponent(each.getAttribute("src") ?? ""), each.textContent.replace(/\\s+/g, ""),
])"""


def softmax_answers():
    """Return the answers that a page of the site has. (In a process: softmax stays broken.)"""
    place = "minigrad.ops.softmaxes", "softmax"
    return list(answered_at_build(place, BREAKS[place]))


@pytest.mark.slow
def test_an_answer_in_the_page_looks_as_one_of_the_build_does(tab):
    with ProcessPoolExecutor(1) as pool:
        answers = pool.submit(softmax_answers).result()
    for part in ("numbers", "picture", "examples", "message"):
        assert any(answer[part] for answer in answers)
    assert any(answer["numbers"]["rows"][1:] for answer in answers if answer["numbers"])
    bare = {"numbers": None, "picture": None, "examples": [], "message": ""}
    answers += [{**answers[0], **bare, "right": right} for right in (True, None)]
    for answer in answers:
        html = fill("live/breaks.html", answers=[answer], quote=quote)
        html = html.replace("this line says", "your line says")  # (there it is ours)
        built = """(html) => {
            const page = new DOMParser().parseFromString(html, "text/html");
            return (OUTLINE)(page.querySelector(".breaks > details"));
        }"""
        outline = tab.js(built.replace("OUTLINE", OUTLINE), html)
        outline = outline[outline.index(next(x for x in outline if "verdict" in x[1])) :]
        made = "(answer) => { const box = make('div', {}, told(answer)); return (OUTLINE)(box); }"
        assert tab.js(made.replace("OUTLINE", OUTLINE), answer) == outline


def test_a_syntax_error_is_a_sentence_and_the_lines_stay(tab):
    told = change(tab, "log_softmax", "def log_softmax(x", "def log_softmax(x(")
    assert "line 2: SyntaxError" in told and "in use" not in told
    assert tab.js("definitions[1].inUse") == ""
    area = tab.page.get_by_label("The lines of log_softmax")
    assert "log_softmax(x(" in area.input_value()
    area.fill("@primitive\ndef log_softmax(x, /, axis=-1):\n    while True:\n        pass\n")
    area.press("Control+Enter")
    tab.until("definitions[1].status.textContent === 'Your lines are being checked …'")
    bar(tab, "log_softmax").get_by_role("button", name="Stop").click()
    assert "Stopped. Python starts anew when you need it next." in answered(tab, "log_softmax")
    assert "Not in use any more" not in answered(tab, "log_softmax")  # (they never were)
    assert "while True" in area.input_value()
    bar(tab, "log_softmax").get_by_role("button", name="Reset").click()


def test_the_status_says_of_which_lines_it_is(tab):
    tab.js("definitions[0].editing && definitions[0].reset()")
    right = tab.js("definitions[0].book")
    status = "definitions[0].status.textContent"
    in_use = "Your lines are in use everywhere in the project."
    assert in_use in change(tab, "softmax", "def softmax", "def softmax")
    area = tab.page.get_by_label("The lines of softmax")
    area.fill(right + "\n1 / 0")
    assert tab.js(status) == "Changed: press Use my lines again."
    area.press("Control+Enter")
    told = answered(tab, "softmax")
    assert told.startswith("These lines are not in use; your earlier ones still are.\n")
    area.fill(right)
    assert tab.js(status) == in_use
    area.press("Control+Enter")
    area.press("Enter")  # (while it is checked)
    assert answered(tab, "softmax").startswith("Changed: press Use my lines again.\n✓")


def test_reset_of_a_definition_in_use_stops_another_run_with_a_sentence(tab):
    tab.js("definitions[0].editing && definitions[0].reset()")
    tab.js("blocks[0].edit()")
    tab.page.get_by_label("Example 1").fill("while True:\n    pass")
    change(tab, "softmax", "def softmax", "def softmax")
    tab.js("blocks[0].run(), 0")  # (0: its promise is not waited for)
    tab.until("python.busy && isGoingOn(blocks[0].runButton)")
    bar(tab, "softmax").get_by_role("button", name="Reset").click()
    tab.until("!isGoingOn(blocks[0].runButton)")
    assert "Stopped. Python starts anew when you need it next." in tab.js(
        "blocks[0].after.innerText"
    )
    assert tab.js("definitions[0].after.childNodes.length") == 0
    tab.js("blocks[0].reset()")


def test_what_is_typed_in_a_chapter_comes_back_after_a_reload(tab):
    tab.go(SOFTMAX)
    for object, label in (("blocks[0]", "Example 1"), ("definitions[0]", "The lines of softmax")):
        tab.js(f"{object}.edit()")
        area = tab.page.get_by_label(label)
        book = tab.js(f"{object}.typed ?? {object}.book")
        area.fill("mine = 1")
        tab.go(SOFTMAX)
        tab.js(f"{object}.edit()")
        assert area.input_value() == "mine = 1"
        said = tab.page.locator(".status", has=tab.page.get_by_role("button"))
        assert said.inner_text() == "Your lines, as you left them. The book's lines"
        said.get_by_role("button").click()
        assert area.input_value() == book and said.inner_text() == "The book's lines. My lines"
        tab.go(SOFTMAX)
        tab.js(f"{object}.edit()")
        assert area.input_value() == book and said.inner_text() == "The book's lines. My lines"
        said.get_by_role("button").click()
        assert area.input_value() == "mine = 1"
        area.fill(book)
        tab.js(f"{object}.reset()")
    assert tab.js("Object.keys(sessionStorage).filter((key) => key.startsWith('minigrad.lines'))")


def test_chapter_0s_loop_takes_min_for_max(tab):
    tab.go(IDEA)
    told = change(tab, "backward", BREAKS[LOOP][0].old, BREAKS[LOOP][0].new)
    assert "✗ Differences: 2 of 10 gradients are wrong." in told
    assert "Each rule is right by itself." in told
    lines = tab.page.locator("#loop .steps").inner_text()  # the picture steps through them
    assert BREAKS[LOOP][0].new in lines and BREAKS[LOOP][0].old not in lines
    bar(tab, "backward").get_by_role("button", name="Reset").click()


def test_every_definition_is_used_as_it_stands(tab):
    """(Its lines on the page are put together from the parts beside its derivation.)"""
    for page in (SOFTMAX, "3.5-linear-algebra.html"):
        tab.go(page)
        module = tab.js("document.body.dataset.module")
        for name, text in tab.js("definitions.map((each) => [each.name, each.book])"):
            done, heard = tab.ask({"define": text, "of": module, "name": name})
            assert done and done["right"] is not False and done["examples"] == [], (name, heard)


@pytest.mark.slow
def test_known_ways_to_break_are_told_in_the_browser_as_they_are_in_the_page(tab):
    with ProcessPoolExecutor(1) as pool:
        answers = pool.submit(kept).result()
    for place, ways in BREAKS.items():
        of, name = place
        for known, answer in zip(ways, answers[place], strict=True):
            told, _ = tab.ask({"define": broken(place, known), "of": of, "name": name})
            for part in ("right", "heading", "reason", "numbers", "examples"):
                now, before = (json.dumps(each[part]) for each in (told, answer))
                assert now.replace("int32", "int64") == before, (place, known.title)
            assert (told["picture"] is None) == (answer["picture"] is None)
        tab.ask({"define": lines_of(*place), "of": of, "name": name})
