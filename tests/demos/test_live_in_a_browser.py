"""Live, in a real browser: a page's examples run, and nothing that a reader types breaks it."""

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from demos.live._runtime import MISSING
from tests.demos.live_blocks import blocks

SOFTMAX, IDEA, GRAPHS = "3.6-softmax.html", "0-the-idea.html", "5-graphs.html"
REPLAY, EXACT = "2.1-replay.html", "11-attention.html"
BLOCKS = [block for block in blocks() if block.module not in MISSING]

# After it a run keeps the names that are there: what has begun would begin with new ones.
AS_NEW = "blocks.forEach((each) => { each.ran = each.hasBegun = false; })"


@pytest.fixture(scope="module")
def site(served):
    served.add_chapters("3.6", "0", "5", "2.1", "11", "minigrad.runs.sweeps")
    return served


@pytest.fixture(scope="module")
def tab(site, open_tab):
    """A tab whose Python has come: most tests share it."""
    tab = open_tab(viewport={"width": 1280, "height": 900})
    tab.go(SOFTMAX)
    return tab


def button(tab, block, words):
    return (
        tab.page.locator(".holder:has(.bar):has(+ .console)")
        .nth(block)
        .get_by_role("button", name=words)
    )


def status(block):
    return f"blocks[{block}].status.textContent"


def wait(tab, block):
    """Wait for the end of a run; return what stands below the block."""
    tab.until(f"!blocks[{block}].running && !{status(block)}.startsWith('First')")
    return tab.js(f"`${{{status(block)}}}\\n${{blocks[{block}].after.innerText}}`").strip()


def run(tab, block, text=None):
    """Run a block, or the reader's lines in it; return what stands below it."""
    if text is not None:
        tab.js(f"blocks[{block}].editing || blocks[{block}].edit()")
        tab.page.locator(".editor textarea").first.fill(text)
    button(tab, block, "Run").click()
    return wait(tab, block)


# ------------------------------------------------------------------ value


def test_a_run_is_as_in_the_book_and_runs_what_is_above_first(tab):
    assert tab.js("blocks.length") == 4
    assert tab.js("all('button .cost').length === blocks.length + definitions.length")
    said = run(tab, 2)
    assert said.startswith("As in the book, ") and said.endswith("First, the 2 blocks above ran.")
    assert tab.js("document.querySelectorAll('.cost, .differs, .failed').length") == 0
    shown = tab.js("[...blocks[0].element.querySelectorAll('.got')].map(e => e.textContent)")
    assert shown == ["array([0.25, 0.75])", "array([ 0.09, -0.09])"]
    assert run(tab, 0).startswith("As in the book, ")


def test_a_page_that_runs_is_printed_without_its_buttons(tab, request):
    tab.go(SOFTMAX)
    tab.page.emulate_media(media="print")
    request.addfinalizer(lambda: tab.page.emulate_media(media="screen"))
    shown = "s => [...document.querySelectorAll(s)].some((part) => part.checkVisibility())"
    assert tab.js(shown, "h1") and tab.js(shown, "p")
    assert not any(tab.js(shown, part) for part in (".facts .runs", ".bar", ".evening"))


def test_what_is_not_as_in_the_book_is_marked_line_by_line(tab):
    changed = "import minigrad\nsoftmax = lambda x: minigrad.softmax(x) * 2"
    tab.js(AS_NEW)
    tab.ask({"run": changed, "of": "minigrad.ops.softmaxes"})
    assert run(tab, 0).startswith("Not as in the book, ")
    shown = "[...blocks[0].element.querySelectorAll('.differs, .book')].map(e => e.textContent)"
    expected = ["array([0.5, 1.5])", "array([0.25, 0.75])"]
    expected += ["array([ 0.18, -0.18])", "array([ 0.09, -0.09])"]
    assert tab.js(shown) == expected
    tab.ask({"run": "from minigrad import softmax", "of": "minigrad.ops.softmaxes"})
    assert run(tab, 0).startswith("As in the book, ") and tab.js(shown) == []


def test_a_blank_line_is_as_in_the_book_where_another_line_is_not(tab):
    lines = ["a", " ", "b"]
    marked = """(lines) => {
        const element = make("div", {}, make("div", { className: "in", textContent: ">>> f()" }),
          ...lines.map((textContent) => make("div", { className: "out", textContent })));
        const compared = new Compared(element);
        compared.begin(0);
        compared.out("x\\n\\ny\\n\\nb\\n");
        compared.differs();
        return [...element.querySelectorAll(".differs, .book")].map((each) => each.textContent);
    }"""
    assert tab.js(marked, lines) == ["x", " ", "y", "a"]


def test_edited_lines_run_and_reset_brings_the_book_back(tab):
    button(tab, 0, "Edit").click()
    area = tab.page.locator(".editor textarea")
    assert area.input_value().startswith("softmax([0.0, np.log(3.0)])\nfrom minigrad import grad")
    area.press("Control+a")
    area.press_sequentially("def f(x):\nreturn x ** 2")
    assert area.input_value() == "def f(x):\n    return x ** 2"
    area.press("Enter")
    area.press("Backspace")
    area.press("Control+z")
    area.fill("def f(x):\n    return x ** 2\nf(3)\nprint('a', 1)\n")
    assert tab.js("[...document.querySelectorAll('.editor .k')].map(e => e.textContent)") == [
        "def",
        "return",
    ]
    area.press("Control+Enter")
    assert wait(tab, 0).split()[-3:] == ["9", "a", "1"]
    button(tab, 0, "Reset").click()
    assert tab.page.locator(".editor").count() == 0 and tab.js(status(0)) == ""
    assert tab.js("document.activeElement.textContent") == "Edit"
    assert tab.js("[...blocks[0].element.querySelectorAll('.got')].length") == 0


def test_the_pages_have_the_blocks_of_the_book(site, tab):
    for file in (SOFTMAX, IDEA, GRAPHS):
        tab.go(file)
        texts = [block.text for block in blocks() if block.page == file]
        assert tab.js("blocks.map(each => each.doctest)") == texts
    tab.go(SOFTMAX)


def wrong(tab, some):
    found = []
    for block in some:
        done, heard = tab.ask({"run": block.text, "of": block.module})
        if not done:
            found.append((block.module, block.place, heard))
    return found


def test_blocks_print_in_the_browser_what_is_in_the_book(tab):
    some = sorted({each.module for each in BLOCKS if "laboratory" not in each.module})[::5]
    assert not wrong(tab, [each for each in BLOCKS if each.module in some])


@pytest.mark.slow
def test_all_blocks_print_in_the_browser_what_is_in_the_book(tab):
    tab.js("python.restart()")
    assert not wrong(tab, BLOCKS)


def test_a_graph_and_a_stepped_page_are_drawn_in_frames_of_their_own(tab):
    text = (
        'x = Tensor([0.0, np.log(3.0)], requires_grad=True, name="x")\n'
        "with Steps() as steps:\n    loss = (softmax(x) ** 2).sum()\n"
        'graph(loss, grads=True)\nsteps.backward(loss)\nsteps.save("both.html")\n'
    )
    assert "Graph(" in run(tab, 0, text)
    drawn, stepped = tab.page.locator("iframe.drawn"), tab.page.locator("iframe.stepped")
    assert drawn.get_attribute("sandbox") == ""
    assert stepped.get_attribute("sandbox") == "allow-scripts"
    tab.page.frame_locator("iframe.stepped").get_by_text("falls most").first.wait_for()
    assert tab.page.frame_locator("iframe.drawn").locator("svg[aria-label]").count() == 1
    frame = stepped.element_handle().content_frame()
    refused = "(() => { try { return localStorage.length; } catch (e) { return e.name; } })()"
    assert frame.evaluate(refused) == "SecurityError"
    keeps = tab.page.locator(".kept a")
    assert [x.get_attribute("download") for x in keeps.all()] == ["picture.svg", "both.html"]
    button(tab, 0, "Reset").click()


# ------------------------------------------------------------------ what goes wrong


def test_an_endless_loop_is_stopped_and_nothing_typed_is_lost(tab):
    text = "print('begins')\nwhile True:\n    pass\n"
    tab.js("blocks[0].editing || blocks[0].edit()")
    tab.page.locator(".editor textarea").fill(text)
    button(tab, 0, "Run").click()
    tab.until("blocks[0].after.innerText.includes('begins')")
    button(tab, 0, "Stop").click()
    assert "Stopped. Python starts anew when you need it next." in wait(tab, 0)
    assert tab.page.locator(".editor textarea").input_value() == text
    button(tab, 1, "Run").click()  # (it waits for the loop above)
    tab.until("blocks[0].after.innerText.includes('begins')")
    button(tab, 1, "Stop").click()
    assert wait(tab, 1) == "Example 1 did not run to its end."
    assert run(tab, 0, "1 + 1\n").endswith("s.\n2")
    tab.page.locator(".editor textarea").fill(text)
    button(tab, 0, "Run").click()
    tab.until("blocks[0].after.innerText.includes('begins')")
    button(tab, 0, "Reset").click()
    assert wait(tab, 0) == "" and not tab.js("blocks[0].bar.classList.contains('on')")
    button(tab, 0, "Edit").click()
    assert tab.page.locator(".editor textarea").input_value() == text
    tab.page.get_by_role("button", name="The book's lines").click()
    assert tab.page.locator(".editor textarea").input_value() == tab.js("blocks[0].typed")
    button(tab, 0, "Reset").click()


DEEP = """class A:
    def __lt__(self, other):
        return sorted([A(), A()]) is None
sorted([A(), A()])
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1\ndef f(:\n    pass\n", "line 2: SyntaxError: invalid syntax"),
        ("def f(n):\n    return f(n + 1)\nf(0)\n", "line 2: RecursionError: "),
        (DEEP, "Python has ended: Maximum call stack size exceeded. What you typed is here."),
        ("2 + 2\n", "4"),  # (a new Python has begun)
        ("a = np.ones(2**28)\n", "line 1: ValueError: array is too big"),
        ("b = bytearray(2**31 - 1)\n", "line 1: MemoryError"),
        ("a = [bytearray(2**26) for i in range(100)]\n", "line 1: MemoryError"),
        ("for i in range(100_000):\n    print(i)\n", "only the first 20,000 letters are shown"),
        ("exit()\n", "line 1: SystemExit"),
        ("input()\n", "line 1: EOFError: input() has nobody to answer here"),
        ("print('</script><b>&')\n", "</script><b>&"),
        ("open('</script>.txt'.replace('/', '|'), 'w').write('x')\n", "Keep <|script>.txt"),
        ("raise ValueError('</script><b>')\n", "line 1: ValueError: </script><b>"),
        ("import torch\n", "line 1: ModuleNotFoundError: "),
    ],
)
def test_each_is_a_sentence(tab, text, said):
    assert said in run(tab, 0, text)
    assert tab.page.locator(".editor textarea").input_value() == text
    assert tab.page.locator(".after-run script, .after-run b b").count() == 0
    if text == DEEP:  # (Pyodide tells of it in the console)
        assert "fatal error" in tab.said[0]
        tab.said.clear()


def test_a_block_below_an_error_runs_and_says_which_block_above_did_not_end(tab):
    run(tab, 0, "1 / 0\n")
    tab.js("blocks[1].edit()")
    tab.page.get_by_label("Example 2").fill("6 * 7\n")  # (which needs nothing from above)
    assert run(tab, 1).endswith("s. Example 1 did not run to its end.\n42")
    tab.page.get_by_label("Example 2").fill("nothing\n")
    assert "Example 1 did not run to its end.\nline 1: NameError" in run(tab, 1)
    assert tab.js("all('.status a').map((each) => each.hash)") == ["#example-1"]
    button(tab, 1, "Reset").click()
    button(tab, 0, "Reset").click()


@pytest.mark.parametrize("page", [REPLAY, EXACT])
def test_every_block_runs_twice_also_what_spends_a_record(tab, page):
    tab.go(page)
    last = tab.js("blocks.length") - 1
    for _ in range(2):
        assert run(tab, last).startswith("As in the book, ")
    for block in range(last + 1):
        for _ in range(2):
            assert run(tab, block).startswith("As in the book, "), block
    assert tab.js("all('.failed, .differs').length") == 0
    tab.go(SOFTMAX)


def test_chapter_0_s_command_runs_in_its_page(tab):
    tab.go(IDEA)
    place = tab.page.locator("pre.plain + .buttons")
    place.get_by_role("button", name="Run").click()
    tab.until("!python.busy && all('.after-run .got').length")
    numbers = re.findall(r"-?\d\.\d+", tab.page.inner_text("pre.got"))
    assert len(numbers) == 8
    assert [float(x) for x in numbers[:4]] == pytest.approx([float(x) for x in numbers[4:]])
    tab.go(SOFTMAX)


def test_a_connection_that_is_lost_is_a_sentence_and_the_next_run_tries_again(site, open_tab):
    tab = open_tab()
    tab.page.route("**/*.whl", lambda route: route.abort())
    tab.go(SOFTMAX)
    said = run(tab, 0)
    assert "Python could not be loaded: " in said and "Press the button to try again." in said
    tab.page.unroute("**/*.whl")
    assert run(tab, 0).startswith("As in the book")
    lost = "net::ERR_FAILED"
    assert all(lost in x for x in tab.said), tab.said
    tab.said.clear()


def test_a_browser_that_allows_no_worker_says_so_and_one_that_fails_stops_no_other_run(tab):
    tab.go(SOFTMAX)
    tab.js(
        "python.restart(), window.allowed = Worker, Worker = function () { throw Error('no'); }, 0"
    )
    said = run(tab, 0)
    assert "Python could not be loaded: no. Press the button to try again." in said
    assert tab.js("isGoingOn(blocks[0].runButton)") is False
    tab.js("Worker = window.allowed, 0")
    ask = """() => {
        python.ask({ run: "1", of: "minigrad" }, () => { throw Error("this one fails"); });
        window.second = "";
        python.ask({ run: "1", of: "minigrad" }).then((answer) => { window.second = answer; });
        try { python.stop(); } catch (error) { return error.message; }
    }"""
    assert tab.js(ask) == "this one fails"
    tab.until("window.second === null")


def test_a_page_that_is_left_takes_its_python_with_it(site, open_tab):
    tab = open_tab()
    tab.go(SOFTMAX)
    tab.js("sessionStorage.clear()")
    run(tab, 0, "1\n")
    button(tab, 0, "Run").click()
    assert len(tab.page.workers) == 1
    tab.go(IDEA)
    assert tab.page.workers == [] and tab.page.locator(".cost").count() == 0  # (it has come once)
    tab.page.go_back()
    assert run(tab, 0).startswith("As in the book")


def test_a_browser_that_keeps_nothing_runs(site, open_tab):
    tab = open_tab()
    refuse = "Object.defineProperty(window, '{}', {{ get() {{ throw new Error('no'); }} }});"
    tab.page.add_init_script("".join(map(refuse.format, ("sessionStorage", "localStorage"))))
    tab.go(IDEA)
    assert run(tab, 0).startswith("As in the book")


def test_examples_that_need_a_missing_package_say_so(site, tab):
    tab.go("minigrad.runs.sweeps.html")
    assert tab.page.locator(".bar").count() == 0
    assert "need joblib" in tab.page.locator(".status").first.inner_text()
    tab.go(SOFTMAX)


def test_from_a_file_there_are_no_buttons_and_the_page_says_how_to_get_them(site, open_tab):
    tab = open_tab()
    tab.site = type("Here", (), {"address": site.folder.as_uri()})
    tab.page.goto((site.folder / SOFTMAX).as_uri())
    assert tab.page.locator(".bar").count() == 0
    assert "python -m demos site --serve" in tab.page.locator("footer").inner_text()


# ------------------------------------------------------------------ law: nobody else is asked


class Counting(BaseHTTPRequestHandler):
    """Another host."""

    asked = 0

    def do_GET(self):
        Counting.asked += 1
        self.send_response(200)
        self.send_header("Access-Control-Allow-Origin", "*")
        self.end_headers()

    def log_message(self, *args):
        pass


def test_python_reaches_no_other_host(tab):
    other = HTTPServer(("127.0.0.1", 0), Counting)
    threading.Thread(target=other.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{other.server_port}/secret"
    text = f"from js import fetch, XMLHttpRequest\np = fetch({address!r})\n"
    text += f"x = XMLHttpRequest.new()\nx.open('GET', {address!r}, False)\nx.send()\n"
    _, heard = tab.ask({"run": text, "of": "minigrad.idea"})
    assert "NetworkError" in json.dumps(heard)
    _, heard = tab.ask({"run": "import js\njs.eval('1')", "of": "minigrad.idea"})
    assert "EvalError" in json.dumps(heard)
    other.shutdown()
    other.server_close()
    assert Counting.asked == 0
    refused = "Content Security Policy"
    assert all(refused in text or address in text for text in tab.said), tab.said
    tab.said.clear()


# ------------------------------------------------------------------ law: for everybody


def test_the_keyboard_is_enough(tab):
    tab.js("sessionStorage.removeItem('minigrad.lines.minigrad.ops.softmaxes.Example 1')")
    tab.go(SOFTMAX)
    tab.js("blocks[0].bar.previousElementSibling.focus()")
    names = []
    for _ in range(3):
        tab.page.keyboard.press("Tab")
        names.append(tab.js("document.activeElement.textContent"))
        assert tab.js("getComputedStyle(document.activeElement).opacity") == "1"
        if names[-1] == "Run":
            tab.page.keyboard.press("Enter")
            assert wait(tab, 0).startswith("As in the book")
        if names[-1] == "Edit":
            tab.page.keyboard.press("Enter")
            break
    assert names == ["Run", "Edit"]
    assert tab.js("document.activeElement.tagName") == "TEXTAREA"
    tab.page.keyboard.press("Tab")
    assert tab.js("document.activeElement.value").startswith("    softmax")
    tab.page.keyboard.press("Control+z")
    assert tab.js("document.activeElement.value").startswith("softmax")
    tab.page.keyboard.press("Escape")
    tab.page.keyboard.press("Tab")
    assert tab.js("document.activeElement.tagName") != "TEXTAREA"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_after_a_run_and_in_an_editor(tab, findings, scheme):
    tab.page.emulate_media(color_scheme=scheme)
    run(tab, 0, "1 / 0\n")
    tab.js(AS_NEW)
    tab.ask({"run": "softmax = 1", "of": "minigrad.ops.softmaxes"})
    run(tab, 1)
    found = [(each["id"], each["nodes"][0]["html"][:100]) for each in findings(tab.page)]
    assert not found
    tab.page.emulate_media(color_scheme="light")


def test_on_a_phone_the_buttons_are_large_and_nothing_is_wider_than_the_page(site, open_tab):
    phone = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
    tab = open_tab(**phone)
    tab.go(SOFTMAX)
    run(tab, 0, "x = Tensor([1.0], requires_grad=True)\ngraph((x * x).sum(), grads=True)\n")
    assert tab.js("document.documentElement.scrollWidth") <= 390
    for each in tab.page.locator(".bar button:visible").all():
        assert each.bounding_box()["height"] >= 44
    assert tab.js("getComputedStyle(document.querySelector('.editor textarea')).fontSize") == "16px"
