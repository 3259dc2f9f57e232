"""Publish: a script says each thing once; its page has its code, and is whole and escaped."""

import re
import struct
from html import unescape

import pytest

import demos
from demos import options
from demos.pages.content import saved
from demos.pages.page import Page, page_alone
from demos.pages.source import Source
from demos.pages.tables import columns, figure, inlined, printed, table
from demos.pages.templates import fill, parts
from demos.pages.text import inline, set_text
from demos.site._book import Book
from demos.site._contents import book
from demos.site._document import document
from tests.demos.running import ROOT, python

HOSTILE = '</script><b>&"'
DEMO = f'''"""A title {HOSTILE}: a sentence below it.

Claim. A claim with `code`, 1/√d_k and {HOSTILE}.

    python -m demos fake

What stands below the command.
"""

# %% Set-up
from attention.figures import new_figure
from demos import options
from demos.pages.publish import publish
from minigrad import Steps, Tensor, graph
chosen = options("fake", "A title", quick=True)
page = publish(chosen)
figure = new_figure(8, 2)
figure.subplots().plot([0, 1])

# %% A silent cell
# Its comment {HOSTILE} is *prose*.
silent = '{HOSTILE}'

# %% A cell that says
says = lambda: page.say("A *function* says `this` --quick √d_k ħ.")
says()
page.table(["", silent], [["a", 1.5], [silent, "2 %"]], caption=silent)
page.figure(figure, "one", alt="Alt " + silent, caption=silent)
page.figure(graph(Tensor(2.0, requires_grad=True, name="x") ** 2), "two", alt="A graph of 2")
with Steps() as steps:
    loss = Tensor(2.0, requires_grad=True, name="x") ** 2
steps.backward(loss)
page.embed(steps.save(chosen.out / "steps.html", title="Both"))

# %% What came of it
slider = page.slider([figure, figure], "three", ["1", silent], alt=["low", "high"], caption="M")
page.finding("We found 97.5%.", slider)
page.ask("A question " + silent + "?", "An answer.", guesses=("6 %", "50 %"))
page.ask("Another question?", "Another answer.")
page.marks.at_least("score", 0.5, 0.9)
page.end()

# %% Try it
# - This change, in a text
#   of two lines?
'''


def run(folder, *words, text=DEMO):
    """Run the fake demo as a plain script; return its output folder and its process."""
    (folder / "fake.py").write_text(text, "utf-8")
    done = python(folder / "fake.py", "--out", folder / "out", *words, PYTHONPATH=str(ROOT))
    return folder / "out", done


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    return run(tmp_path_factory.mktemp("ran"))


def shown(folder):
    """Return what a reader sees of a page."""
    page = (folder / "index.html").read_text("utf-8").partition("</style>")[2]
    page = re.sub("(?s)<script>.*?</script>|</?(var|code|em|sub|span)[^>]*>", "", page)
    return " ".join(unescape(re.sub("<[^>]*>", " ", page)).split())


def assert_in_order(parts, text):
    for part in parts.replace("|\n", "|").split("|"):
        assert part in text, f"{part}: {text}"
        text = text.partition(part)[2]


def test_what_is_said_is_printed_and_stands_on_the_page_in_its_order(ran):
    folder, done = ran
    said = f"""A function says this --quick √d_k ħ.|{HOSTILE}|   a     |  1.5|   {HOSTILE}|   2 %|
one.png: {HOSTILE}|two.png: A graph of 2|three.png: M. {HOSTILE}: high|We found 97.5%.|A question|
(6 %, 50 %?)|   An answer.|got 50.0%: FAILED|The page: {folder}/index.html|0 of 1 checks passed"""
    assert_in_order(said, done.stdout)
    assert done.returncode == 1 and "Failed:" in done.stderr
    page = f"""A sentence below it|This run failed 1 of its 1 marks|got 50.0%|We found 97.5%.|
A claim|M|A question|An answer|seed 0|stands below|Set-up The code|A silent cell|is prose.|The code|
silent|that says|A function says this|{HOSTILE}|The code|What came of it|Another answer.|The code|
Try it|This change, in a text of two lines?|0 of 1 checks passed"""
    assert_in_order(page, shown(folder))
    assert printed("    a  = `b`\n\nIt *is* `b`.") == "    a  = `b`\n\nIt is b."
    assert "page.end()" not in shown(folder) and "--quick run" not in shown(folder)


def test_pictures_are_saved_and_inlined_with_ids_of_their_own(ran):
    folder, page = ran[0], (ran[0] / "index.html").read_text("utf-8")
    names = {f"{name}.{ending}" for name in ("one", "two", "three") for ending in ("svg", "png")}
    names |= {"index.html", "content.json", "steps.html", "small.png"}
    assert {path.name for path in folder.iterdir()} == names
    width, height = struct.unpack(">II", (folder / "small.png").read_bytes()[16:24])
    assert 480 <= width <= 490 and 50 <= height < 300  # its figure is wide
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids)) > 2
    alts = [unescape(alt) for alt in re.findall(r'role="img" aria-label="([^"]*)"', page)]
    assert alts == [f"Alt {HOSTILE}", "A graph of 2"]


def test_all_text_is_escaped_and_a_reader_moves_and_guesses(ran, visit):
    page = (ran[0] / "index.html").read_text("utf-8")
    assert page.count("<script") == page.count("</script") == 1 and "<b>&" not in page
    tab = visit(ran[0] / "index.html", viewport={"width": 390, "height": 800})  # (no request)
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390
    assert tab.locator("figure svg").first.bounding_box()["width"] == 0.75 * 8 * 96  # (8 inches)
    picture, answer = tab.locator(".slider img:visible"), tab.get_by_text("An answer.").first
    assert tab.title() == f"A title {HOSTILE}"
    assert picture.get_attribute("alt") == f"{HOSTILE}. high" and not answer.is_visible()
    tab.locator(".slider input").press("ArrowLeft")
    tab.get_by_role("button", name="50 %").click()
    tab.frames[1].locator(".tick").last.click()
    assert picture.get_attribute("alt") == "1. low" and answer.is_visible()


def test_the_site_sets_the_same_content_in_its_frame_while_the_file_is_the_same(ran, capsys):
    folder = ran[0]
    contents = Book(*book())
    source = Source("fake", "fake.py", DEMO)
    content = saved(source, folder)
    body = content.body(contents.links, lambda of: contents.code(source, of[0], of[-1]), [])
    page = document(Page("a.html", HOSTILE, body, ""), "")
    scripts = re.findall("<script[^>]*>", page)
    assert len(scripts) == page.count("</script") and all(" src=" in x for x in scripts)
    assert "<b>&" not in page and "srcdoc" not in page
    assert page.count('<iframe title="steps" src="demos/fake/steps.html">') == 1
    alone = (folder / "index.html").read_text("utf-8")
    for part in (
        '<div class="finding">.*?</div>',
        '<div class="slider">.*?</div>',
        "<svg .*?</svg>",
    ):
        found = re.findall(part, page, re.DOTALL)
        assert found and found == re.findall(part, alone, re.DOTALL)
    later = Source("fake", "fake.py", DEMO + "# A change.\n")
    assert not saved(later, folder).parts and "has changed since its run" in capsys.readouterr().out


def test_a_notebook_shows_each_part_and_writes_no_page(tmp_path, monkeypatch):
    parts = []
    monkeypatch.setattr("IPython.display.display", lambda part: parts.append(part.data))
    monkeypatch.setattr(demos, "files", lambda: {"fake": tmp_path / "fake.py"})
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fake.py").write_text(DEMO, "utf-8")
    with pytest.raises(SystemExit):
        exec(DEMO, {"get_ipython": None, "options": options})
    assert len(parts) == 9 and not list(tmp_path.rglob("index.html"))
    assert "<table" in parts[1] and parts[2].startswith("<figure") and "<details" in parts[7]


def test_a_killed_run_leaves_no_page_and_a_file_that_no_demo_wrote_stays(tmp_path):
    folder, _ = run(tmp_path, "--quick")
    assert "This is a --quick run" in shown(folder)
    before = (folder / "index.html").read_bytes()
    killed = "import os\nos.replace = lambda *paths: os.kill(os.getpid(), 9)\npage.end()"
    _, done = run(tmp_path, "--quick", text=DEMO.replace("page.end()", killed))
    assert done.returncode == -9
    assert (folder / "index.html").read_bytes() == before
    (folder / "index.html").write_text("mine")
    _, done = run(tmp_path)
    assert done.returncode == 2 and "is not a demo's page" in done.stderr
    assert (folder / "index.html").read_text() == "mine"


def test_a_text_is_escaped_wherever_it_stands():
    hard = """<script>"&'"""
    picture = inlined("<svg></svg>", hard, "name")
    image = {"data": "", "label": hard, "alt": hard, "width": "9"}
    title = page_alone(hard, [], generator="a test").decode()
    assert unescape(re.search("<title>(.*?)</title>", title)[1]) == hard
    places = {
        "caption": figure(picture, hard),
        "cell": table(["head"], [[hard]]),
        "caption of a table": table([hard], [["cell"]], hard),
        "question": parts.question(inline(hard, set_text), [hard], hard),
        "slider": parts.slider(hard, [image]),
        "tile": parts.tile(hard, hard, hard, hard),
        "top": parts.top(hard, hard, hard, [hard]),
        "puzzle": fill("museum/puzzle.html", buttons=[], ask=hard),
        "page": title,
    }
    for place, html in places.items():
        assert hard in unescape(html) and "<script>" not in html, place
    for html in (picture, places["slider"]):
        assert unescape(re.search('aria-label="([^"]*)"', html)[1]) == hard


def test_a_long_cell_stays_in_its_column_of_the_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    lines = columns(["when", "what is said", "far"], [["then", 20 * "word ", "0.5"]]).splitlines()
    assert len(lines) > 2 and max(map(len, lines)) <= 60
    begin = lines[0].index("what is said")
    assert all(line[:begin].strip() in ("when", "then", "") for line in lines)
    assert "".join(line[begin:] for line in lines).count("word") == 20
