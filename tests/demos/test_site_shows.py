"""The site's exercises, exhibits and demos: each has its page, and none tells the answer."""

import importlib
import itertools
import re
from html import unescape

import pytest

from demos import files
from demos._files import CHAPTERS
from demos.learn import EXERCISES
from demos.learn import _pages as learn
from demos.learn._running import Answer
from demos.learn.exercises import number, solution, stub
from demos.museum import _pages as museum
from demos.museum.exhibits import NAMES, difference, exhibit, source
from demos.pages.page import LIST, page_alone
from demos.site import _demos
from demos.site._book import Book
from demos.site._chapters import page_of_chapter
from demos.site._contents import book
from demos.site._document import document
from demos.site._tasks import SETUP, TASKS, lines_of, tasks
from demos.site._words import words
from tests.demos.running import demo_here


@pytest.fixture(scope="module")
def contents():
    """The book that the pages lead to."""
    return Book(*book())


@pytest.fixture(scope="module")
def pages(contents):
    """The text of every page, by its file."""
    found = [page for show in (learn, museum, _demos) for page in show.pages(contents)]
    return {page.file: document(page, "") for page in [*found, words(contents)]}


def plain(shown):
    """A page's words, without its tags."""
    return unescape(re.sub("<[^>]*>", "", shown))


def test_every_exercise_exhibit_and_demo_has_a_page_to_which_its_list_leads(pages):
    found = {
        "exercises.html": [f"exercise-{number(name)}.html" for name in EXERCISES],
        "museum.html": [f"exhibit-{exhibit(name).number}.html" for name in NAMES],
        "demos.html": [f"demo-{name}.html" for name in files()],
    }
    for listed, names in found.items():
        assert all(f'href="{name}"' in pages[listed] for name in names)
        for before, name, after in zip([None, *names], names, [*names[1:], None], strict=False):
            links = re.findall('<a href="([^"]*)" rel="(?:prev|next)"', pages[name])
            assert links == [x for x in (before, after) if x], name
    assert set(pages) == {*found, *itertools.chain(*found.values()), "words.html"}


@pytest.mark.parametrize("name", EXERCISES)
def test_an_exercise_has_each_hint_once_and_folded_and_no_line_of_ours(pages, contents, name):
    page = pages[f"exercise-{number(name)}.html"]
    hints = importlib.import_module(f"demos.learn.checks.{name}").HINTS
    for i, hint in enumerate(hints, 1):
        fold = f"<summary>Hint {i} of 3</summary>{contents.prose(hint)}</details>"
        assert page.count(fold) == 1
    given = {line.strip() for line in stub(name).splitlines()}
    ours = {line.strip() for line in solution(name).splitlines()} - given - {"return (", ")"}
    shown = plain(re.sub('<details class="fold">.*?</details>', "", page))
    assert ours and not {line for line in ours if line in shown}
    assert all(line in shown for line in stub(name).partition('\n"""\n')[2].splitlines())


@pytest.mark.parametrize("name", NAMES)
def test_the_lines_of_an_exhibit_that_are_wrong_are_those_that_differ(pages, name):
    each = exhibit(name)
    broken, repaired = source(each.module.broken), source(each.module.repaired)
    changed = difference(broken, repaired)
    page = pages[f"exhibit-{each.number}.html"]
    before = page.partition('<details class="later"')[0]
    buttons = re.findall('<button class="line" type="button" (.*?)>(.*?)</button>', before)
    assert [plain(line) for _, line in buttons] == [line for line in broken if line]
    right = {plain(line) for what, line in buttons if what.endswith(" data-right")}
    wrong = {line[5:] for line in changed if line[3:4] == "-"}
    if not wrong:  # a line is missing, between these two
        (at,) = (i for i, line in enumerate(changed) if line[3:4] == "+")
        wrong = {changed[at - 1][5:], changed[at + 1][5:]}
    assert right == wrong
    after = plain(page.removeprefix(before))
    assert all(line[5:] in after for line in changed)
    assert each.title not in plain(re.sub('data-said="[^"]*"', "", before))
    assert each.title not in plain(pages["museum.html"])


def test_what_a_check_says_is_shown_as_text(contents, monkeypatch):
    said = "</script><b>&amp;\n  </pre>"
    monkeypatch.setattr(learn, "answer_to_mistake", lambda _: Answer(False, said, "law"))
    page = document(learn.pages(contents)[13], "")
    assert "law: &lt;/script&gt;&lt;b&gt;&amp;amp;\n  &lt;/pre&gt;</pre>" in page


@pytest.mark.parametrize("name", files())
def test_a_demo_that_has_not_run_is_a_card_and_a_page_with_its_command_and_code(name, pages):
    command = f"python -m demos {name}"
    page = pages[f"demo-{name}.html"]
    assert f"<code>{command}</code>" in pages["demos.html"] and command in page
    assert 'class="finding"' not in page and "checks passed" not in page
    before, _, code = page.partition('<div class="facts">')
    assert '<div class="ln"' not in before and 'data-n="' in code
    assert re.search(rf'<a href="{re.escape(CHAPTERS[name])}-[\w-]+.html">', code)


def test_no_page_that_a_demo_has_written_alone_stays_in_the_site(tmp_path):
    folder = tmp_path / "demos" / "recall"
    folder.mkdir(parents=True)
    (folder.parent / "index.html").write_bytes(page_alone("A list", [], generator=LIST))
    (folder / "index.html").write_bytes(page_alone("A page", []))
    (folder / "steps.html").write_bytes(page_alone("Not a page", [], generator="steps"))
    _demos.remove_pages(tmp_path)
    assert [path.name for path in tmp_path.rglob("*.html")] == ["steps.html"]


def test_a_demo_shows_the_small_picture_of_its_run_here_or_the_one_that_is_kept(tmp_path):
    here = tmp_path / "demos" / "scaling"
    here.mkdir(parents=True)
    for run in (False, True):
        listed, *each = _demos.pages(Book(*book(), tmp_path))
        page = each[list(files()).index("scaling")]
        address = "demos/scaling/small.png" if run else "pictures/small/scaling.png"
        for text in (document(listed, ""), document(page, "")):
            images = [src for src in re.findall('<img src="(.*?)"', text) if "scaling" in src]
            assert images == [address]
        (here / "small.png").write_bytes(b"")
    assert not re.search('<img src="[^"]*small', document(each[list(files()).index("recall")], ""))


def test_the_words_are_those_of_the_vocabulary_and_all_public_names(pages):
    page = pages["words.html"]
    for package in ("minigrad", "minigrad.nn", "minigrad.optim", "attention"):
        part = page.partition(f'<h2 id="{package}">')[2].partition("<h2")[0]
        names = importlib.import_module(package).__all__
        assert re.findall(r"<li><a href=[^>]*><code>(\w+)</code>", part) == list(names)


def test_the_lines_of_all_tasks_run_one_after_the_other(contents, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shown = plain(document(tasks(contents), "")).replace("\n", " ")
    space = {}
    exec(SETUP, space)
    for task in itertools.chain(*TASKS.values()):
        lines = lines_of(task)
        assert 1 <= len(lines) <= 5
        assert all(line.strip() in shown for line in lines)
        if lines[0].startswith("python -m demos "):
            folders = re.findall(r" ([a-z]+)(?= )", lines[0].partition(" grade")[2])
            for name in folders:
                (tmp_path / name).mkdir()
            done = demo_here(*lines[0].split()[3:])
            assert re.findall(r"^([a-z]+),missing", done.stdout, re.MULTILINE) == folders
            continue
        exec("\n".join(lines), space)
    assert {path.name for path in tmp_path.iterdir()} >= {"run.npz", "weights.npz", "slide.svg"}
    assert space["H"].tolist() == [[6, 0], [0, 12]] and space["Hv"].tolist() == [6, 12]


def test_the_links_that_lead_on_follow_the_evening(contents):
    stars = contents.evening
    assert len(stars) == 14 and all(chapter.star for chapter in stars)
    for chapter, after in itertools.zip_longest(stars, stars[1:]):
        shown = document(page_of_chapter(contents, chapter), "")
        page = after.page if after else "exercises.html"
        assert set(re.findall(r'href="([^"]+)" rel="next"', shown)) == {page}
        assert re.search(r'aria-current="step">([\d.]+)<', shown)[1] == chapter.number
    minutes = [int(n) for n in re.findall(r'data-minutes="(\d+)"', shown)]
    assert minutes == [chapter.minutes for chapter in stars]


def test_a_chapter_needs_earlier_chapters_of_the_evening_alone(contents):
    order = list(contents.chapters.values())
    for place, chapter in enumerate(order):
        assert bool(chapter.needs) == (place > 0), chapter.number
        assert all(other.star and other in order[:place] for other in chapter.needs)


def test_the_table_that_ends_chapter_0_leads_to_the_chapters_it_names(contents):
    shown = document(page_of_chapter(contents, contents.chapters["0"]), "")
    table = shown.partition("The chapter that adds it")[2]
    for named in ("1.1", "1.4", "2.2", "3.6", "4", "15"):
        assert re.search(rf'<a href="{re.escape(named)}[.-][^"]+">{re.escape(named)}</a>', table)
