"""Live, in a real browser: exercises are written, checked and kept, and programs run (Try)."""

import json
import re

import pytest

from demos.learn import _pages as learn
from demos.learn._mistakes import mistaken
from demos.learn._moving import unpacked
from demos.learn.exercises import filled, solution, stub
from demos.live._try import page as try_page
from demos.live._try import programs
from tests.demos.learn_texts import ANSWERS, OURS
from tests.demos.test_live_exercises import check, in_terminal

SOFTMAX, SLOPE, LIST, TRY = "exercise-13.html", "exercise-1.html", "exercises.html", "try.html"


@pytest.fixture(scope="module")
def site(served):
    served.add(*learn.pages(served.contents), try_page())
    return served


@pytest.fixture(scope="module")
def tab(site, open_tab):
    """A tab that most tests share."""
    tab = open_tab(viewport={"width": 1280, "height": 900}, accept_downloads=True)
    tab.go(LIST)
    return tab


@pytest.fixture
def fresh(tab):
    """Give fresh(page, text): the tab on a page; what is kept is nothing, or the text."""

    def fresh(file, text=None):
        tab.go(LIST)
        tab.js("localStorage.clear(); kept.unwritten = {}")
        tab.js("sessionStorage.clear()")
        if text is not None:
            tab.js("text => localStorage.setItem(KEY, text)", text)
        tab.go(file)
        return tab

    return fresh


def below(text):
    """Return what of an exercise's text is in its editor: what comes after the docstring."""
    return text.split('"""', 2)[2].strip("\n")


def write(tab, text):
    tab.page.locator(".editor textarea").fill(below(text))


def click(tab, words):
    tab.page.get_by_role("button", name=words, exact=False).first.click()


def answer(tab, words="Check"):
    """Press a button, wait for the answer, and return what stands below it."""
    click(tab, words)
    tab.until("!python.busy && document.querySelector('.answer').childElementCount > 0")
    return tab.page.inner_text(".answer")


def status(tab):
    return tab.page.inner_text(".status")


def in_editor(tab):
    return tab.page.locator(".editor textarea").input_value()


def stored(tab):
    return tab.js("JSON.parse(localStorage.getItem(KEY))")


# ------------------------------------------------------------------ value


def test_an_exercise_is_solved_and_still_solved_after_a_reload(fresh):
    tab = fresh(SOFTMAX)
    assert in_editor(tab) == below(stub("e13_softmax"))
    assert tab.page.inner_text(".numbers").split()[0] == "16"
    write(tab, mistaken("e13_softmax"))
    said = check("e13_softmax", mistaken("e13_softmax"))[0]
    assert answer(tab) == f"derivative: {said['said']}"
    assert stored(tab)["solved"] == []
    write(tab, solution("e13_softmax"))
    assert answer(tab) == "Solved."
    assert stored(tab) == {
        "minigrad exercises": 1,
        "files": {"e13_softmax": solution("e13_softmax")},
        "solved": ["e13_softmax"],
        "read": [],
    }
    tab.page.reload()
    assert in_editor(tab) == below(solution("e13_softmax")) and status(tab) == "Solved."
    tab.go(LIST)
    assert tab.js("[...document.querySelectorAll('.route .solved')].map(e => e.innerText)") == [
        "13\nSoftmax\nsolved"
    ]
    assert tab.page.get_by_text("Exercise 13 ★ · solved").count() == 1
    assert tab.page.get_by_text("Solved in this browser: 1 of 24.").count() == 1
    filled_station = (
        "getComputedStyle(document.querySelector('.route .solved'), '::before').backgroundColor"
    )
    assert tab.js(filled_station) != tab.js(filled_station.replace(".solved", "li"))
    tab.go(SOFTMAX)
    write(tab, mistaken("e13_softmax"))
    assert stored(tab)["solved"] == []  # as in a terminal: other lines are to be checked again
    assert status(tab) == ""
    write(tab, solution("e13_softmax"))  # (the lines that were solved)
    assert stored(tab)["solved"] == ["e13_softmax"] and status(tab) == "Solved."
    tab.page.locator(".editor textarea").press("Control+End")
    click(tab, "Check")
    tab.page.locator(".editor textarea").press_sequentially("  ")
    tab.until("!python.busy && document.querySelector('.answer .told')")
    said = "Solved, as it was when you pressed Check. Check it again."
    assert tab.page.inner_text(".answer") == said and stored(tab)["solved"] == []
    tab.page.locator(".editor textarea").press("x")
    assert tab.page.inner_text(".answer") == ""
    write(tab, solution("e13_softmax"))
    assert stored(tab)["solved"] == ["e13_softmax"]


def test_our_lines_stand_beside_the_learner_s(fresh):
    tab = fresh(SOFTMAX)
    write(tab, mistaken("e13_softmax"))
    write(tab, filled("e13_softmax", "while True:\n    pass"))
    click(tab, "Check")
    assert tab.page.get_by_role("button", name="Our lines").is_disabled()
    click(tab, "Stop")
    tab.until("!isGoingOn(all('.buttons button')[0])")
    write(tab, mistaken("e13_softmax"))
    shown = answer(tab, "Our lines")
    assert "-         lambda g, y: g * y * (1 - y)," in shown
    assert tab.page.locator(".answer .given").count() == tab.page.locator(".answer .taken").count()
    write(tab, solution("e13_softmax"))
    assert answer(tab, "Our lines") == "Your file is the same as ours."


def test_a_chain_of_5_000_values_is_freed(tab):
    """(The stack of a browser does not survive what is freed one inside of another.)"""
    done, heard = tab.ask({"check": "e05_order", "text": OURS["e05_order"], "files": {}})
    assert done["solved"], heard
    lines = (
        "x = Tensor(1.0, requires_grad=True)\ny = x\nfor _ in range(5000):\n    y = y * x\ny = 1"
    )
    assert tab.ask({"run": lines, "of": "minigrad"})[0] is True


def comparable(answer):
    """Return an answer without what is other in WebAssembly, or from one Python to another.

    There NumPy is not told of an overflow, and warns of none. Where recursion ends, and in which
    words, is Python's own affair.
    """
    words = r"line \d+, (in \w+: RecursionError: maximum recursion depth exceeded)[\w ]*(?= \()"
    said = re.sub(words, r"\1", answer["said"])
    warned = [each for each in answer["warned"] if " encountered in " not in each]
    return answer | {"said": said, "warned": warned}


def wrong(tab, folder, answers):
    found = []
    for name, text in answers:
        done, heard = tab.ask({"check": name, "text": text, "files": OURS})
        expected = in_terminal(folder, name, text)
        if comparable(done) != comparable(expected):
            found.append((name, done, expected, heard))
    return found


def test_answers_are_those_of_the_terminal(tab, tmp_path):
    assert wrong(tab, tmp_path, ANSWERS[4:8]) == []


@pytest.mark.slow
def test_all_answers_are_those_of_the_terminal(tab, tmp_path):
    assert len(ANSWERS) > 100 and wrong(tab, tmp_path, ANSWERS) == []


# ------------------------------------------------------------------ law: nothing typed is lost


def test_begin_again_can_be_taken_back(fresh):
    tab = fresh(SLOPE)
    typed = "# mine: </script>\n" + below(solution("e01_slope"))
    tab.page.locator(".editor textarea").fill(typed)
    click(tab, "Begin again")
    assert in_editor(tab) == below(stub("e01_slope"))
    click(tab, "My lines back")
    assert in_editor(tab) == typed
    tab.page.reload()
    assert in_editor(tab) == typed


def test_begin_again_and_check_and_a_reload_lose_nothing(fresh):
    tab = fresh(SLOPE)
    write(tab, solution("e01_slope"))
    click(tab, "Begin again")
    assert answer(tab) != "Solved." and in_editor(tab) == below(stub("e01_slope"))
    assert stored(tab)["files"] == {"e01_slope": solution("e01_slope")}
    click(tab, "My lines back")
    assert in_editor(tab) == below(solution("e01_slope"))
    click(tab, "Begin again")
    tab.page.reload()
    assert in_editor(tab) == below(solution("e01_slope"))
    click(tab, "Begin again")
    tab.page.locator(".editor textarea").fill("a = 1")
    click(tab, "My lines back")
    tab.page.reload()
    assert in_editor(tab) == below(solution("e01_slope"))


def test_all_that_begin_again_has_replaced_comes_back_in_turn(fresh):
    tab = fresh(SLOPE)
    for typed in ("a = 1", "b = 2"):
        tab.page.locator(".editor textarea").fill(typed)
        click(tab, "Begin again")
    tab.page.reload()
    seen = [in_editor(tab)]
    for _ in range(2):
        click(tab, "My lines back")
        seen.append(in_editor(tab))
    assert seen == ["b = 2", "a = 1", "b = 2"]


def test_where_it_is_written_in_the_page_the_terminal_comes_second(fresh):
    tab = fresh("exercise-4.html")
    tab.page.reload()  # (its folds as they come)
    assert not tab.page.get_by_text("python -m demos learn 4").is_visible()
    tab.page.get_by_text("Or in a terminal").click()
    assert tab.page.get_by_text("python -m demos learn 4").is_visible()
    tab.page.get_by_role("link", name="Next on the path: 6").click()
    tab.until("location.pathname.endsWith('exercise-6.html')")
    tab.page.goto(tab.site.address + LIST)
    assert tab.page.get_by_text("Each exercise is written in its page").is_visible()
    assert not tab.page.get_by_text("python -m demos learn init FOLDER --load").is_visible()


def test_save_and_load_are_one_file_which_the_terminal_reads(fresh, tmp_path):
    tab = fresh(SLOPE)
    write(tab, solution("e01_slope"))
    assert answer(tab) == "Solved."
    with tab.page.expect_download() as download:
        click(tab, "Save")
    path = tmp_path / "exercises.json"
    download.value.save_as(path)
    assert unpacked(path) == ({"e01_slope": solution("e01_slope")}, ["e01_slope"])
    write(tab, stub("e01_slope"))
    tab.page.set_input_files("input[type=file]", path)
    tab.until("all('.status')[1].textContent.startsWith('1 exercise is loaded')")
    assert in_editor(tab) == below(solution("e01_slope")) and stored(tab)["solved"] == ["e01_slope"]
    assert answer(tab) == "Solved."  # (which leaves the way back)
    tab.page.reload()
    tab.page.locator(".editor textarea").fill("a = 1")
    click(tab, "Undo")
    assert in_editor(tab) == below(stub("e01_slope")) and stored(tab)["solved"] == []
    click(tab, "Undo")
    assert in_editor(tab) == "a = 1"  # (typed after Load)
    click(tab, "Undo")
    assert in_editor(tab) == below(stub("e01_slope"))
    page = {"minigrad exercises": 1, "files": {"e01_slope": "a = 1"}, "read": ["b.html"]}
    path.write_text(json.dumps(page | {"solved": ["e01_slope", "e02_operation"]}))
    tab.js("keepAsRead('a.html')")
    tab.page.set_input_files("input[type=file]", path)
    tab.until("all('.status')[1].textContent.includes(', 1 solved.')")  # (of those that are there)
    assert stored(tab)["read"] == ["a.html", "b.html"]
    click(tab, "Undo")
    assert stored(tab)["read"] == ["a.html"]
    del page["read"]
    path.write_text(json.dumps(page | {"solved": []}))  # (as a terminal writes it)
    tab.page.set_input_files("input[type=file]", path)
    tab.until("all('.status')[1].textContent.startsWith('1 exercise is loaded')")
    assert stored(tab)["read"] == ["a.html"]
    path.write_text('{"files": 1}')
    tab.page.set_input_files("input[type=file]", path)
    tab.until("document.querySelector('.status').textContent.includes('Nothing is changed')")


@pytest.mark.parametrize("why", ["QuotaExceededError", "SecurityError"])
def test_a_refused_storage_is_told_and_the_lines_stay(fresh, why, tmp_path):
    tab = fresh(SLOPE)
    tab.js(f"Storage.prototype.setItem = () => {{ throw new DOMException('no', '{why}'); }}; 0")
    write(tab, solution("e01_slope"))
    assert "keeps nothing here" in tab.page.inner_text(".warned")
    assert answer(tab) == "Solved." and in_editor(tab) == below(solution("e01_slope"))
    with tab.page.expect_download() as download:
        click(tab, "Save")
    download.value.save_as(tmp_path / "a.json")
    assert unpacked(tmp_path / "a.json")[1] == ["e01_slope"]
    tab.js("kept.unwritten = {}")  # (otherwise the browser asks before it leaves)


@pytest.mark.parametrize("text", ["{", '"a"', "null", '{"e01_slope": {"text": "x = 1"}}'])
def test_something_of_another_kind_is_put_aside(fresh, text):
    tab = fresh(SLOPE, text)
    assert in_editor(tab) == below(stub("e01_slope"))
    assert "is of another kind" in tab.page.inner_text(".warned")
    assert tab.js("localStorage.getItem(KEY)") == text
    write(tab, solution("e01_slope"))
    assert tab.js("localStorage.getItem(ASIDE)") == text
    tab.js("localStorage.setItem(KEY, '{again')")
    write(tab, stub("e01_slope"))
    assert tab.js("[ASIDE, `${ASIDE}.2`].map((key) => localStorage.getItem(key))") == [
        text,
        "{again",
    ]
    assert list(stored(tab)["files"]) == ["e01_slope"]


def test_a_file_that_began_with_other_words_is_shown_whole(fresh):
    text = '"""An older task."""\n\nslope = 1\n'
    page = {"minigrad exercises": 1, "files": {"e01_slope": text}, "solved": []}
    tab = fresh(SLOPE, json.dumps(page))
    assert in_editor(tab) == text.rstrip("\n") and "so all of it is here" in status(tab)
    assert tab.page.inner_text(".numbers").split() == ["1", "2", "3"]


def test_a_second_tab_is_told_and_can_take_the_other_s_lines(fresh):
    tab = fresh(SLOPE)
    tab.page.locator(".editor textarea").fill("a = 1")
    other = tab.page.context.new_page()
    other.goto(tab.site.address + SLOPE)
    other.locator(".editor textarea").fill("b = 2")
    tab.until("document.querySelector('.status').textContent.startsWith('Another tab')")
    assert in_editor(tab) == "a = 1"
    click(tab, "Take them")
    assert in_editor(tab) == "b = 2"
    click(tab, "My lines back")
    assert in_editor(tab) == "a = 1"
    other.close()


# ------------------------------------------------------------------ refusal


def test_a_loop_is_stopped_by_the_clock_and_by_the_button(fresh):
    tab = fresh(SLOPE)
    text = filled("e01_slope", "print('begin')\nwhile True:\n    x = x + h")
    done, heard = tab.ask({"check": "e01_slope", "text": text, "files": {}, "seconds": 1})
    assert "in slope: still at work after 1 s, and stopped there" in done["said"], heard
    write(tab, text)
    click(tab, "Check")
    tab.until("document.querySelector('.answer').textContent.includes('begin')")
    click(tab, "Stop")
    assert "Stopped." in tab.page.inner_text(".answer")
    assert tab.page.get_by_role("button", name="Check").count() == 1
    assert in_editor(tab) == below(text)


def test_check_waits_for_what_is_not_a_check(fresh):
    tab = fresh(SLOPE)
    write(tab, solution("e01_slope"))
    tab.js("window.first = python.ask({ run: 'sum(range(10**6))', of: 'minigrad' }); 0")
    worker = "window.worker ??= python.worker, window.worker === python.worker"
    assert tab.js(f"python.busy && ({worker})")
    assert answer(tab) == "Solved." and tab.js(worker)


def test_what_nothing_interrupts_ends_with_its_python(fresh):
    tab = fresh(SLOPE)
    tab.ask({"run": "1", "of": "minigrad"})  # (Python is there)
    tab.js("""() => {
        const place = document.querySelector('[data-exercise]');
        const later = window.setTimeout;
        window.setTimeout = (f, ms) => later(f, ms > 5000 ? 300 : ms);
        0;
    }""")
    write(tab, filled("e01_slope", "return sum(int('9' * 4000) for i in range(10**9))"))
    assert "nothing interrupts it: does a loop catch every exception?" in answer(tab)
    tab.page.reload()


# ------------------------------------------------------------------ the page Try


def run(tab):
    click(tab, "Run")
    tab.until("!python.busy && !document.querySelector('.status').textContent.endsWith('…')")
    return tab.page.inner_text(".answer")


def test_the_programs_of_try_are_those_of_the_page_and_what_is_typed_comes_back(fresh):
    tab = fresh(TRY)
    names = tab.js("[...document.querySelectorAll('.choice button')].map(e => e.textContent)")
    assert names == [*programs()] and in_editor(tab) == programs()["A graph"].rstrip()
    tab.page.locator(".editor textarea").fill("mine = 1")
    click(tab, "Your own rule")
    assert in_editor(tab) == programs()["Your own rule"].rstrip()
    click(tab, "Both passes")  # (a second program)
    run(tab)
    tab.page.reload()
    assert in_editor(tab) == programs()["Both passes of your own code"].rstrip()
    click(tab, "My lines back")
    assert in_editor(tab) == "mine = 1"
    assert tab.page.get_by_role("button", name="My lines back").count() == 0
    tab.page.reload()
    assert in_editor(tab) == "mine = 1"


def test_graphs_and_stepped_pages_are_drawn_below(fresh):
    tab = fresh(TRY)
    assert run(tab).startswith("[[-0.6970")
    frame = tab.page.locator("iframe.drawn")
    assert frame.get_attribute("sandbox") == "" and "<svg" in frame.get_attribute("srcdoc")
    click(tab, "Both passes")
    assert "square → x, input 1, 2 of 2" in run(tab)
    frame = tab.page.locator("iframe.stepped")
    assert frame.get_attribute("sandbox") == "allow-scripts"
    frame.content_frame.get_by_role("heading", name="Both passes, step by step").wait_for()


def test_the_classifier_says_its_loss_as_it_goes(fresh):
    tab = fresh(TRY)
    click(tab, "Your own model")
    click(tab, "Run")
    tab.until("/ 20  0\\.\\d+/.test(document.querySelector('.answer').textContent)")
    click(tab, "Stop")
    assert "Stopped." in tab.page.inner_text(".answer")
    assert re.search(r"^  0  0\.\d+  ■", tab.page.inner_text(".answer"), re.MULTILINE)


# ------------------------------------------------------------------ seen


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("file", [SOFTMAX, LIST, TRY])
def test_axe_finds_nothing_and_nothing_is_wider_than_a_phone(fresh, findings, file, scheme):
    page = {"minigrad exercises": 1, "files": {}, "solved": ["e13_softmax", "e01_slope"]}
    tab = fresh(file, json.dumps(page))
    tab.page.emulate_media(color_scheme=scheme)
    if file == SOFTMAX:
        write(tab, mistaken("e13_softmax"))
        answer(tab)
    assert findings(tab.page) == []
    tab.page.set_viewport_size({"width": 390, "height": 800})
    assert tab.js("document.documentElement.scrollWidth") == 390
    tab.page.set_viewport_size({"width": 1280, "height": 900})
