"""Site · Demos: their list, by kinds, and a page for each with its cells."""

from __future__ import annotations

from pathlib import Path

from demos._files import CHAPTERS, DEMOS, KINDS, docstring, files, seconds
from demos.pages.content import FOLDER, Part, saved
from demos.pages.page import LIST, PAGE, Page, one_of, written_by
from demos.pages.source import Source
from demos.pages.templates import fill, parts
from demos.pages.text import inline, sentence
from demos.site._book import Book
from demos.site._notebooks import notebook

LISTED = ("demos.html", "Demos")


def pages(book: Book) -> list[Page]:
    """Return the list of the demos, and a page for each."""
    cards = fill("site/demos.html", kinds=[_kind(book, kind) for kind in KINDS])
    sub = (
        "Each demo states a claim and runs it. The page of one that has been run has its findings."
    )
    of_demos = [page_of_demo(book, name) for name in files()]
    return [one_of("Demos", [LISTED], 0, "Claims that run", sub, cards), *of_demos]


def _page(name: str) -> str:
    return f"demo-{name}.html"


def _picture(book: Book, name: str) -> str:
    """Return where a demo's small picture is: that of its run here, or the one that is kept."""
    for folder, place in ((book.out, f"demos/{name}/small"), (DEMOS, f"pictures/small/{name}")):
        for address in (f"{place}.png", f"{place}.svg"):
            if folder and (folder / address).exists():
                return address
    return ""


def _kind(book: Book, kind: str) -> dict[str, object]:
    """Return what the list says of a folder of demos, and of each demo in it."""
    _, _, line = docstring(DEMOS / kind / "__init__.py").partition(" · ")
    heading, _, about = line.partition(": ")
    paths = [path for path in files().values() if path.parent.name == kind]
    cards = [_card(book, path) for path in paths]
    return {"heading": heading, "about": sentence(about), "demos": cards}


def _card(book: Book, path: Path) -> dict[str, object]:
    """Return what a card says: a demo's name, title and seconds, and its picture."""
    name = path.stem
    return {
        "name": name,
        "page": _page(name),
        "title": inline(docstring(path).splitlines()[0]),
        "seconds": seconds(path),
        "picture": _picture(book, name),
    }


def page_of_demo(book: Book, name: str) -> Page:
    """Return a demo's page: its file, and what it has said if it has been run here."""
    path = files()[name]
    where = path.relative_to(DEMOS.parent)
    file = Source(".".join(where.with_suffix("").parts), where.as_posix(), path.read_text("utf-8"))
    content = saved(file, book.out / FOLDER / name if book.out else None)
    picture = _picture(book, name)
    if picture and not content.facts:
        content.parts.append(Part(parts.small_figure(picture), 0, "picture"))
    belongs = book.chapters[CHAPTERS[name]]
    facts = [
        *([parts.code(f"python -m demos {name}")] if content.facts else []),  # (or the text has it)
        f"{seconds(path)} s",
        *content.facts,
        "chapter " + parts.link(belongs.page, f"{belongs.number} " + inline(belongs.title)),
        parts.code(file.path),
        # (`learn` is not a notebook: it asks for a folder.)
        parts.link("exercises.html", "The exercises") if name == "learn" else notebook(name),
    ]
    book.index.append((name, "demo", _page(name)))
    code = lambda lines: book.code(file, lines.start, lines.stop - 1)
    beside = fill("site/demo.html", style=content.style)
    body = [beside, *content.body(book.links, code, facts)]
    names = [LISTED, *((_page(name), name) for name in files())]
    demo = one_of("Demos", names, 1 + list(files()).index(name), *map(inline, content.title), *body)
    demo.kind += " demo"
    return demo


def remove_pages(folder: Path) -> None:
    """Remove the pages that demos have written alone: the site has them in its frame."""
    for path in folder.glob(f"{FOLDER}/**/index.html"):
        if written_by(path, PAGE) or written_by(path, LIST):
            path.unlink()
