"""Site · Chapters: the pages of chapters and tools, and the list of all chapters."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from itertools import groupby

from markupsafe import Markup

from demos import pictures
from demos._files import DEMOS
from demos.pages.page import Page, turn
from demos.pages.source import Source
from demos.pages.templates import fill, parts
from demos.pages.text import formula, inline, plain, sentence, slug
from demos.site._book import Book
from demos.site._contents import PICTURES, Chapter
from demos.site._notebooks import notebook
from demos.site._rows import rows

WORDS = {  # chapters whose readers may know other words for what they see
    "1.1": ("words.html#pytorch", "PyTorch’s words for it"),
    "7.1": ("words.html#modules", "PyTorch’s words for it"),
}
EXAMPLES, DEFINITIONS = 'class="code console"', " data-of="  # in a page that has some


def page_of_chapter(book: Book, chapter: Chapter) -> Page:
    """Return a chapter's page."""
    source = chapter.source
    links = lambda chapters: parts.links([(other.page, _named(other)) for other in chapters])
    minutes = f"{chapter.minutes} min"
    facts = [f"{minutes} · ★ of the evening" if chapter.star else minutes]
    if chapter.needs:
        facts.append("needs " + links(chapter.needs))
    for words, chapters in (("also uses", chapter.uses), ("leads to", chapter.leads)):
        others = [other for other in chapters if other not in chapter.needs]
        if others:
            count = "1 chapter" if len(others) == 1 else f"{len(others)} chapters"
            facts.append(parts.fold(f"{words} {count}", links(others)))
    if chapter.number in WORDS:
        facts.append(parts.link(*WORDS[chapter.number]))
    facts += [_size(source), notebook(chapter.number)]
    kicker = f"Chapter {chapter.number} · {chapter.part}"
    sub = sentence(chapter.says, book.links)
    body = [_evening(book, chapter), _contents(book, chapter)]
    body.append(parts.top(kicker, formula(chapter.title), sub, facts))
    body += [_drawn(name) for name in pictures.CHAPTERS.get(chapter.number, ())]
    body += [pictures.kept(*file) for file in PICTURES.get(chapter.number, ())]
    body += [*rows(book, source), _turn(book, chapter)]
    name = plain(_named(chapter))
    book.index.append((name, "chapter", chapter.page))
    term = _term(book, chapter)
    body = [Markup(re.sub("<strong>(.+?)</strong>", term, str(html))) for html in body]
    says = plain(chapter.says)
    return Page(chapter.page, name, body, says, "Book", "chapter", source.name, _live(body))


def _live(body: list[Markup]) -> list[str]:
    """Return the scripts of a page that runs: for its examples, and for its definitions."""
    html = Markup("").join(body)
    if DEFINITIONS in html:
        return ["blocks", "definitions"]
    return ["blocks"] if EXAMPLES in html else []


def _after(book: Book, chapter: Chapter) -> tuple[str, Markup]:
    """Return the address and the name of what follows a chapter of the evening."""
    stations = book.evening
    place = stations.index(chapter) + 1
    if place == len(stations):
        return "exercises.html", Markup("the exercises")
    return stations[place].page, _named(stations[place])


def _evening(book: Book, chapter: Chapter) -> Markup:
    """Return the line of the evening's chapters; nothing for a chapter that is not one of them."""
    if not chapter.star:
        return Markup("")
    after = _after(book, chapter)
    return fill("site/evening.html", stations=book.evening, now=chapter, after=after)


def _turn(book: Book, chapter: Chapter) -> Markup:
    """Return links to the chapters before and after, of the evening if it is one of them."""
    order = list(book.chapters.values())
    pages = [(other.page, _named(other)) for other in order]
    place = order.index(chapter)
    if not chapter.star:
        return turn(pages, place)
    after, earlier = _after(book, chapter), book.evening[: book.evening.index(chapter)]
    others = [page for page in pages[place + 1 : place + 2] if page != after]
    return parts.turn([(star.page, _named(star)) for star in earlier[-1:]], [after], others)


def _term(book: Book, chapter: Chapter) -> Callable[[re.Match[str]], str]:
    """Return a function that gives a word in bold letters an address, and lists it."""
    known: set[str] = set()

    def marked(m: re.Match[str]) -> str:
        word = plain(m[1]).rstrip(".?")
        if (place := f"term-{slug(word)}") in known or not slug(word):
            return m[0]
        known.add(place)
        book.index.append((word, f"term, chapter {chapter.number}", f"{chapter.page}#{place}"))
        return parts.term(place, Markup(m[1]))

    return marked


def _by_parts(book: Book) -> list[tuple[str, list[Chapter]]]:
    """Return the name of each part, and its chapters."""
    groups = groupby(book.chapters.values(), key=lambda chapter: chapter.part)
    return [(part, list(chapters)) for part, chapters in groups]


def _contents(book: Book, now: Chapter | None = None) -> Markup:
    """Return the folded list of all chapters."""
    return fill("site/contents.html", parts=_by_parts(book), now=now, formula=formula)


def page_of_contents(book: Book) -> Page:
    """Return the list of all chapters, with what you know after each."""
    body = fill(
        "site/book.html",
        parts=_by_parts(book),
        tools=[(book.pages[x.name], x.name, x.docstring.partition("\n")[0]) for x in book.tools],
        formula=formula,
        inline=lambda text: inline(text, book.links),
    )
    return Page("book.html", "The book", [body], "All chapters in their order.", "Book")


def page_of_tool(book: Book, source: Source) -> Page:
    """Return a tool's page of reference."""
    first_line = source.docstring.partition("\n")[0]
    page = book.pages[source.name]
    book.index.append((source.name, "a tool", page))
    kicker = "A tool, to be used and not read"
    sub = inline(first_line, book.links)
    head = parts.top(kicker, parts.code(source.name), sub, [_size(source)])
    body = [_contents(book), head, *rows(book, source)]
    says = plain(first_line)
    return Page(page, source.name, body, says, "Book", "chapter", source.name, _live(body))


def _named(chapter: Chapter) -> Markup:
    return f"{chapter.number} " + formula(chapter.title)


def _size(source: Source) -> Markup:
    return parts.code(source.path) + f", {len(source.lines)} lines"


def _drawn(name: str) -> Markup:
    """Return a chapter's picture, and the scripts that move it."""
    module, _, function = name.partition(".")
    drawing = importlib.import_module(f"demos.pictures.{module}")
    picture = getattr(drawing, function or "picture")()
    needed = [*pictures.SHARED_SCRIPTS.get(name, ())]
    if (DEMOS / "pictures" / f"{name}.js").exists():
        needed.append(name)
    scripts = [parts.script(f"pictures/{script}.js") for script in needed]
    return Markup("").join([Markup(picture), *scripts])
