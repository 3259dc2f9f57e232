"""Site: each paragraph, formula, example and line of a chapter is on its page, once."""

import ast
import doctest
import functools
import re
import unicodedata
from collections import Counter
from html.parser import HTMLParser

import pytest
from markupsafe import Markup

import minigrad
from demos.live._examples import Spaces
from demos.pages import source as sources
from demos.pages.page import Page
from demos.pages.text import columns, display, formula, inline, markdown
from demos.site import _checking
from demos.site._book import Book
from demos.site._chapters import page_of_chapter, page_of_tool
from demos.site._contents import ROOT, STOP, book
from demos.site._document import HEADER, document
from demos.site._landing import FINDINGS
from demos.site._questions import QUESTIONS
from demos.site._rows import _replaces

BOOK = Book(*book())

VOID = ("img", "br", "wbr", "meta", "link", "source", "input")


class Read(HTMLParser):
    """A page's prose, its lines of code by number, its examples and its headings."""

    def __init__(self, text):
        super().__init__()
        self.open, self.prose, self.headings, self.console = [], [], [], []
        self.code = {}
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        kind = (found.get("class") or "").split()
        if tag in ("h1", "h2", "h3"):
            self.headings.append("")
        if "in" in kind or "out" in kind:
            self.console.append("")
        if "ln" in kind and "data-n" in found:
            assert int(found["data-n"]) not in self.code, "a line is there twice"
            self.code[int(found["data-n"])] = ""
        if tag not in VOID:
            self.open.append((tag, kind, found))

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop()[0] == tag

    def handle_data(self, text):
        kinds = [kind for _, kinds, _ in self.open for kind in kinds]
        tags = [tag for tag, _, _ in self.open]
        if {"h1", "h2", "h3"} & set(tags):
            self.headings[-1] += text
        elif "ln" in kinds:
            numbered = [found["data-n"] for _, _, found in self.open if "data-n" in found]
            for number in numbered:
                self.code[int(number)] += text
        elif "in" in kinds or "out" in kinds:
            self.console[-1] += text
        elif "prose" in kinds or (
            "summary" in tags and "later" in self.open[-1 - tags[::-1].index("summary") - 1][1]
        ):
            self.prose.append(text)


def bare(text):
    """The letters and digits of a text, whether an index is a small letter or a mark-up."""
    text = unicodedata.normalize("NFKC", text.replace("`", "").replace("*", ""))
    return "".join(c for c in text if c.isalnum())


def documented(source):
    """Each docstring that a page takes out of its code: of the module, functions and methods."""
    yield source.tree
    for node in source.tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            methods = [x for x in node.body if isinstance(x, ast.FunctionDef)]
            if ast.get_docstring(node) or any(map(ast.get_docstring, methods)):
                yield node
            if isinstance(node, ast.ClassDef) and any(map(ast.get_docstring, methods)):
                yield from (x for x in methods if ast.get_docstring(x))


CHAPTERS = {each.source.name: each for each in BOOK.chapters.values()}
NAMES = [*CHAPTERS, *(each.name for each in BOOK.tools)]
every_page = pytest.mark.parametrize("name", NAMES)


@functools.cache  # (and not made while pytest collects, which it does in each of its processes)
def page_of(name):
    """Return the page of a file of the book."""
    if name in CHAPTERS:
        return page_of_chapter(BOOK, CHAPTERS[name])
    return page_of_tool(BOOK, BOOK.files[name])


def read_page(name):
    """Read a page, without its question, whose text is not in the file."""
    return Read("".join(html for html in page_of(name).body if 'id="question"' not in html))


@every_page
def test_a_page_has_every_line_of_code_once_and_as_it_is(name):
    source, read = BOOK.files[name], read_page(name)
    expected = dict(enumerate(source.lines, start=1))
    for node in documented(source):
        if ast.get_docstring(node):
            said = node.body[0]
            for n in range(said.lineno, said.end_lineno + 1):
                expected.pop(n)
    stop = False
    for n, line in list(expected.items()):
        stop = STOP in line or (stop and line.strip().startswith("#"))
        if not line.strip() or stop or re.match(r" *# -{5,}", line):
            expected.pop(n)  # (a heading, and what follows the line where a reading may stop)
    found = {n: line for n, line in read.code.items() if line.strip()}
    assert found.keys() == expected.keys()
    assert {n: line.strip() for n, line in found.items()} == {
        n: line.strip() for n, line in expected.items()
    }


@every_page
def test_a_page_has_every_paragraph_and_every_example_once_and_in_order(name):
    source, read = BOOK.files[name], read_page(name)
    parser, texts, examples = doctest.DocTestParser(), [], []
    for node in documented(source):
        said = ast.get_docstring(node) or ""
        said = said.partition("\n")[2] if node is source.tree else said
        for part in parser.parse(said):
            if isinstance(part, str):
                texts.append(re.sub(r"^In chapter 0: .*$", "", part, flags=re.MULTILINE))
            else:
                examples += [x[4:] for x in doctest_lines(part)]
                examples += part.want.replace("<BLANKLINE>", "").splitlines()
    shown = [re.sub(r"^(>>> |\.\.\. )", "", line) for line in read.console]
    assert [x.rstrip() for x in shown] == [x.rstrip() for x in examples]
    follows = "".join(m[1] for m in re.finditer(r"# -* ?(A first reading.*)\n", source.text))
    for line in re.findall(rf"{re.escape(STOP)}\n((?: *#.*\n)*)", source.text):
        follows += line
    letters, said = bare("".join(read.prose)), bare("".join(texts))
    assert Counter(letters) == Counter(said + bare(follows.replace("#", "")))
    for text in texts:
        for paragraph in re.split(r"\n\s*\n", text):
            words = bare(paragraph)
            assert (
                len(words) < 25 or letters.count(words) == said.count(words) or STOP in paragraph
            ), paragraph


def doctest_lines(example):
    """The lines of an example as they stand, with their prompts."""
    first, *more = example.source.rstrip("\n").split("\n")
    return [f">>> {first}", *(f"... {line}" for line in more)]


@every_page
def test_columns_that_are_made_with_blanks_are_set_as_a_table(name):
    for node in documented(BOOK.files[name]):
        for part in re.split(r"\n\s*\n", ast.get_docstring(node) or ""):
            lines = part.split("\n")
            wide = sum(bool(re.search(r"[^ \n] {3,}[^ ]", line)) for line in lines) > 1
            wide |= any(re.match(r"[\w, ]*\w  \S", line) for line in lines)
            if wide and ">>>" not in part and not part.startswith("    "):
                assert len(columns(lines)) > 2, part


@every_page
def test_no_heading_shows_marks_instead_of_a_formula(name):
    for heading in Read("".join(page_of(name).body)).headings:
        assert not re.search(r"\bd_k\b|[ᵢⱼₖ`]", heading)


@every_page
def test_a_chapter_of_the_evening_asks_its_question_where_its_lesson_ends(name):
    body = page_of(name).body
    places = [i for i, html in enumerate(body) if 'id="question"' in html]
    numbers = [n for n in QUESTIONS if BOOK.chapters[n].source.name == name]
    assert len(places) == len(numbers)
    for place, number in zip(places, numbers, strict=True):
        assert not any('id="later"' in html for html in body[:place])
        if STOP in BOOK.files[name].text:
            assert body[place + 1].startswith('<details class="later" id="later">')
        else:
            assert place == len(body) - 2  # (then the links to the chapters before and after)
        asks, says, _ = QUESTIONS[number]
        question, answer = body[place].split('<details class="fold">')
        assert str(inline(asks, BOOK.links)) in question
        assert str(BOOK.prose(says)) in answer and answer.endswith("</details></section>")


def test_the_questions_are_those_of_the_evening_and_short():
    assert list(QUESTIONS) == [n for n, chapter in BOOK.chapters.items() if chapter.star]
    assert max(len(asks.split()) for asks, _, _ in QUESTIONS.values()) <= 30
    assert max(len(says.split()) for _, says, _ in QUESTIONS.values()) <= 60


@pytest.mark.parametrize("number", QUESTIONS)
def test_the_example_of_an_answer_prints_what_it_shows(number):
    space = Spaces()[BOOK.chapters[number].source.name]
    test = doctest.DocTestParser().get_doctest(QUESTIONS[number].example, space, number, None, None)
    tried = doctest.DocTestRunner().run(test)
    assert tried.attempted > 0 and tried.failed == 0


def test_every_file_of_the_book_has_a_page_and_every_finding_stands_in_chapter_16():
    assert len({page_of(name).file for name in NAMES}) == len(BOOK.files) == len(NAMES)
    says = " ".join(BOOK.chapters["16"].source.docstring.split())
    assert all(finding in says for finding in FINDINGS)


# ------------------------------------------------------------------ value: text, set


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a row xᵢ of A", "a row <x>(<i>) of <A>"),
        ("A = a ⊙ b", "<A> = <a> ⊙ <b>"),
        ("I know a, b", "I know <a>, <b>"),
        ("A Y = I. A reader", "<A> <Y> = <I>. A reader"),
        ("W_Qᵢ, d_model, headᵢ", "<W>(<Q><i>), <d>(model), head(<i>)"),
        ("x² - 2x⁻¹ᵀ", "<x>[2] − 2<x>[−1T]"),
        ("d_k^(1 - 2a) and 10^-3", "<d>(<k>)[1 − 2<a>] and 10[−3]"),
        ("T5, GPT-2, 4e-6, x's dx", "T5, GPT-2, 4e-6, <x>’s <dx>"),
        ("num_heads = -x", "{num_heads} = −<x>"),
    ],
)
def test_a_formula_is_set_and_a_word_is_not(text, shown):
    found = str(formula(text)).replace("<var>", "<").replace("</var>", ">")
    for tag, left, right in (("sub", "(", ")"), ("sup", "[", "]"), ("code", "{", "}")):
        found = found.replace(f"<{tag}>", left).replace(f"</{tag}>", right)
    assert found == shown


@pytest.mark.parametrize("text", ["x ⊕ y", "x^", "x_", "2^ 3"])
def test_a_formula_that_cannot_be_set_ends_the_build(text):
    with pytest.raises(ValueError, match="a formula cannot be set"):
        formula(text)


def test_lines_laid_out_with_spaces_are_a_table_or_formulas():
    table = display("    one    x = 1\n    two    a word\n           or more")
    assert table.count("<tr>") == 2 and "a word or more" in table
    formulas = display("    y = x        L = y\n    z = y + x + 1 + 2      and more")
    assert "<table>" not in formulas and formulas.count("<span>") == 4
    assert display("    time ──▶ x").startswith("<pre")


def test_a_text_has_paragraphs_lists_displays_and_tables_of_parameters():
    shown = markdown(
        "A line\nof x.\n\n- one\n- two\n  more\n    - inside\n\nEnd:\n\n    y = x\n\n    z = y"
    )
    assert shown.count("<p>") == 2 and "A line of <var>x</var>." in shown
    assert shown.count("<li>") == 3 and "two more" in shown and shown.count("<ul>") == 2
    assert shown.count('<div class="formula"') == 2  # a blank line between two formulas
    parameters = markdown("x     an array\naxis  a number")
    assert '<td class="short"><code>axis</code></td>' in parameters and "<p>" not in parameters
    assert "<code>" not in markdown("    one    x = 1\n    two    a word")


HOSTILE = "</script><b>&\"'"


def test_what_a_text_says_stays_text():
    for shown in (inline(HOSTILE), inline(f"`{HOSTILE}`"), display(f"    {HOSTILE}")):
        assert "<b>" not in shown and "&lt;/script&gt;" in shown
    source = sources.Source("x", "x.py", f'"""0 · X: y."""\nx = "{HOSTILE[:-2]}"  # {HOSTILE}\n')
    shown = "".join(sources.coloured(source.text, {}))
    assert "<b>" not in shown and shown.count("&lt;/script&gt;") == 2
    page = document(Page("x.html", HOSTILE, [], HOSTILE), "")
    assert "<b>" not in page and 'content="&lt;/script&gt;' in page


# ------------------------------------------------------------------ value: links in code


def test_a_name_leads_to_its_definition_only_where_the_file_binds_it():
    text = (
        '"""x."""\nimport numpy as np\nfrom minigrad import softmax\nfrom minigrad import ops\n'
        "def f(x):\n    with np.errstate(divide=1):\n        return softmax(x) + ops.exp(x)\n"
        "def g(softmax):\n    return softmax(f) + [sum for sum in f]\n"
    )
    source = sources.Source("x", "x.py", text)
    files = BOOK.files | {"x": source}
    address = lambda home, name: f"{home.name}#{name}"
    places = sources.places(source.tree, source.lines, files, source, address)
    rules, curves = "minigrad.ops.softmaxes#softmax", "minigrad.ops.elementwise#exp"
    assert places == {
        (3, 21): rules,
        (4, 21): "minigrad.ops#",
        (7, 15): rules,
        (7, 28): "minigrad.ops#",
        (7, 32): curves,
        (9, 19): "x#f",
        (9, 40): "x#f",
    }


# ------------------------------------------------------------------ refusal


def test_a_chapter_an_exercise_or_a_line_that_is_not_there_ends_the_build():
    for text, said in ((f"chapter {99}", "there is no"), ("Exercise 25", "no exercise 25")):
        with pytest.raises(ValueError, match=said):
            BOOK.links(text)
    with pytest.raises(ValueError, match="chapter 0 has the line 'x = 1' 0 times"):
        _replaces(BOOK, "x = 1")


def test_links_that_lead_nowhere_and_examples_that_are_wrong_are_found(tmp_path, monkeypatch):
    body = ['<a href="b.html">', '<a href="#x">', '<i id="y"></i><i id="y"></i>', '<a href="#y">']
    page = Page("a.html", "a", [Markup(html) for html in body], "a")
    (tmp_path / "a.html").write_text(document(page, ""))
    shared = ("index.html", "tasks.html", "words.html", "site.css", "site.js", "exhibit.js")
    for name in (*shared, *(file for _, file in HEADER)):
        (tmp_path / name).touch()
    wrong = _checking.wrong_links(tmp_path, [page])
    assert sorted(wrong) == ["a.html: #x", "a.html: #y twice", "a.html: b.html"]
    (tmp_path / "wrong_example.py").write_text('"""x.\n\n>>> 1 + 1\n3\n"""\n')
    monkeypatch.syspath_prepend(tmp_path)
    assert "Expected:\n    3\nGot:\n    2" in _checking.failures(["wrong_example"])
    assert _checking.failures(["minigrad.ops.softmaxes"]) == ""


def test_the_footer_has_the_version_of_the_source():
    assert _checking.version().startswith(f"minigrad {minigrad.__version__}, ")


def test_the_minutes_are_words_and_lines_of_what_a_first_reading_reads():
    softmax = BOOK.chapters["3.6"]
    lesson = softmax.source.text.partition(STOP)[0]
    words = sum(len(text.split()) for text in lesson.split('"""')[1::2])
    lines = [x for text in lesson.split('"""')[0::2] for x in text.splitlines() if x.strip()]
    assert abs(softmax.minutes - (words / 120 + len(lines) / 6)) < 1
    assert (ROOT / softmax.source.path).is_file()
