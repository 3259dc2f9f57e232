"""Site · Chapters: the pages of chapters and tools, and the list of all chapters."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from itertools import groupby
from pathlib import Path

from demos import pictures
from demos._files import DEMOS
from demos.pages.page import Page, fill, fold, top, turn
from demos.pages.source import Source
from demos.pages.text import formula, inline, plain, sentence, slug
from demos.site._book import Book
from demos.site._contents import PICTURES, Chapter
from demos.site._notebooks import notebook
from demos.site._rows import rows


def page_of_chapter(book: Book, chapter: Chapter) -> Page:
    """Return a chapter's page."""
    source, order = chapter.source, list(book.chapters.values())
    linked = lambda found: ", ".join(f'<a href="{x.page}">{_named(x)}</a>' for x in found)
    facts = [f"{chapter.minutes} min{' · ★ of the evening' if chapter.star else ''}"]
    if chapter.needs:
        facts.append(f"needs {linked(chapter.needs)}")
    if len(chapter.leads) > 6:
        summary = f"leads to {len(chapter.leads)} chapters"
        facts.append(fold(summary, linked(chapter.leads)))
    elif chapter.leads:
        facts.append(f"leads to {linked(chapter.leads)}")
    facts += [_size(source), notebook(chapter.number)]
    kicker = f"Chapter {chapter.number} · {chapter.part}"
    sub = sentence(chapter.says, book.links)
    body = [_contents(book, chapter), top(kicker, formula(chapter.title), sub, facts)]
    if chapter.number in pictures.CHAPTERS:
        body.append(_drawn(pictures.CHAPTERS[chapter.number]))
    elif chapter.number in PICTURES:
        body.append(_figure(*PICTURES[chapter.number]))
    pages = [(each.page, _named(each)) for each in order]
    body += [*rows(book, source), turn(pages, order.index(chapter))]
    name = plain(_named(chapter))
    book.index.append((name, "chapter", chapter.page))
    body = [re.sub("<strong>(.+?)</strong>", _term(book, chapter), part) for part in body]
    return Page(chapter.page, name, body, plain(chapter.says), "Book", "chapter")


def _term(book: Book, chapter: Chapter) -> Callable[[re.Match[str]], str]:
    """Return a function that gives a word in bold letters an address, and lists it."""
    known: set[str] = set()

    def marked(m: re.Match[str]) -> str:
        word = plain(m[1]).rstrip(".?")
        if (place := f"term-{slug(word)}") in known or not slug(word):
            return m[0]
        known.add(place)
        book.index.append((word, f"term, chapter {chapter.number}", f"{chapter.page}#{place}"))
        return f'<strong id="{place}">{m[1]}</strong>'

    return marked


def _listed(book: Book, shown: Callable[[Chapter], str], around: str) -> str:
    """Return each part's name and its chapters as `shown`, put into `around`."""
    groups = groupby(book.chapters.values(), key=lambda each: each.part)
    return "".join(around.format(part, "".join(map(shown, each))) for part, each in groups)


def _contents(book: Book, now: Chapter | None = None) -> str:
    """Return the folded list of all chapters."""

    def shown(each: Chapter) -> str:
        here = ' aria-current="page"' * (each is now)
        star = ' <span class="star" aria-label="of the evening">★</span>' * each.star
        return f'<a href="{each.page}"{here}>{_named(each)}{star}</a>'

    nav = f'<nav aria-label="Chapters">{_listed(book, shown, "<b>{}</b>{}")}</nav>'
    return f'<details class="contents"><summary>All chapters</summary>{nav}</details>'


def page_of_contents(book: Book) -> Page:
    """Return the list of all chapters, with what you know after each."""

    def shown(each: Chapter) -> str:
        star = ' <span class="star" title="of the evening">★</span>' * each.star
        return (
            f'<li><b>{each.number}</b> <a href="{each.page}">{formula(each.title)}</a>{star} '
            f"<small>{each.minutes} min</small><br>{inline(each.after, book.links)}</li>"
        )

    around = '<section><h2>{}</h2><ol class="list">{}</ol></section>'
    tools = "".join(
        f'<li><a href="{book.pages[each.name]}"><code>{each.name}</code></a><br>'
        f"{inline(each.docstring.partition(chr(10))[0], book.links)}</li>"
        for each in book.tools
    )
    body = fill(
        Path(__file__).with_name("book.html"), parts=_listed(book, shown, around), tools=tools
    )
    return Page("book.html", "The book", [body], "All chapters in their order.", "Book")


def page_of_tool(book: Book, source: Source) -> Page:
    """Return a tool's page of reference."""
    said, page = source.docstring.partition("\n")[0], book.pages[source.name]
    book.index.append((source.name, "a tool", page))
    kicker, title = "A tool, to be used and not read", f"<code>{source.name}</code>"
    head = top(kicker, title, inline(said, book.links), [_size(source)])
    body = [_contents(book), head, *rows(book, source)]
    return Page(page, source.name, body, plain(said), "Book", "chapter")


def _named(chapter: Chapter) -> str:
    return f"{chapter.number} {formula(chapter.title)}"


def _size(source: Source) -> str:
    return f"<code>{source.path}</code>, {len(source.lines)} lines"


def _figure(name: str, says: str) -> str:
    """Return a picture that leads to itself; a phone gets the narrow one if there is one."""
    narrow = '<source media="(max-width: 500px)" srcset="pictures/hero_narrow.svg">'
    return (
        f'<figure><a href="pictures/{name}.svg"><picture>{narrow * (name == "hero")}'
        f'<img src="pictures/{name}.svg" alt="{says}"></picture></a></figure>'
    )


def _drawn(name: str) -> str:
    """Return a chapter's picture, and the scripts that move it."""
    picture = importlib.import_module(f"demos.pictures.{name}").picture()
    needed = {
        "draws": '"seed":' in picture,
        "axes": "<label>" in picture,
        name: (DEMOS / "pictures" / f"{name}.js").exists(),
    }
    scripts = (f'<script defer src="pictures/{x}.js"></script>' for x in needed if needed[x])
    return picture + "".join(scripts)
