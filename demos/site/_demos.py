"""Site · Demos: their list, by kinds, and a page for each with its cells."""

from __future__ import annotations

import re
from pathlib import Path

from demos._files import DEMOS, KINDS, docstring, files, seconds
from demos.pages.page import Names, Page, one_of
from demos.pages.source import Source, cells
from demos.pages.templates import fill, parts
from demos.pages.text import inline, sentence
from demos.site._book import Book
from demos.site._notebooks import notebook

PATHS = re.compile(r"(?<![`\w/])([\w/]+/\w+\.py|__+)(?!`)")  # not to be set as formulas


def pages(book: Book) -> list[Page]:
    """Return the list of the demos, and a page for each."""
    names = [("demos.html", "Demos"), *((_page(name), name) for name in files())]
    cards = fill("site/demos.html", kinds=[_kind(book, kind) for kind in KINDS])
    sub = (
        "Each demo states a claim and runs it. One that has been run here leads to what it showed."
    )
    shown = [_demo(book, place, names) for place in range(1, len(names))]
    return [one_of("Demos", names, 0, "Claims that run", sub, cards), *shown]


def _page(name: str) -> str:
    return f"demo-{name}.html"


def _picture(book: Book, name: str) -> str:
    """Return where a demo's small picture is: that of its run here, or the one that is kept."""
    places = [
        (book.out, f"demos/{name}/small.png"),
        (book.out, f"demos/{name}/small.svg"),
        (DEMOS, f"pictures/small/{name}.png"),
        (DEMOS, f"pictures/small/{name}.svg"),
    ]
    for folder, address in places:
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
    """Return what a card says: a demo's name, title and seconds, its picture, what it showed."""
    name = path.stem
    return {
        "name": name,
        "page": _page(name),
        "title": inline(docstring(path).splitlines()[0]),
        "seconds": seconds(path),
        "picture": _picture(book, name),
        "ran": book.ran(name),
    }


def _demo(book: Book, place: int, names: Names) -> Page:
    page, name = names[place]
    path = files()[name]
    where = path.relative_to(DEMOS.parent)
    file = Source(".".join(where.with_suffix("").parts), where.as_posix(), path.read_text("utf-8"))
    claim, _, text = file.docstring.partition("\n")
    prose = lambda text: book.prose(PATHS.sub(r"`\1`", text))
    picture = _picture(book, name)
    figure = parts.small_figure(picture) if picture else ""
    body = [parts.row(prose(text), figure)]
    for cell in cells(file.text):
        code = book.code(file, cell.lines.start, cell.lines.stop - 1)
        code = parts.fold(f"{len(cell.lines)} lines", code) if cell.heading == "Set-up" else code
        left = prose(cell.comment)
        if cell.heading:
            heading = inline(PATHS.sub(r"`\1`", cell.heading))
            left = parts.heading("", heading) + left
        body.append(parts.row(left, code))
    facts = [f"{seconds(path)} s", parts.code(file.path)]
    if name != "learn":  # (which asks for a folder on its command line)
        facts.append(notebook(name))
    book.index.append((name, "demo", page))
    return one_of("Demos", names, place, parts.code(name), inline(claim), *body, facts=facts)
