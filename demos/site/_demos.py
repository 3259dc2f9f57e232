"""Site · Demos: their list, by kinds, and a page for each with its cells."""

from __future__ import annotations

import re
from pathlib import Path

from markupsafe import Markup

from demos._files import DEMOS, KINDS, docstring, files, seconds
from demos.pages.page import Names, Page, one_of
from demos.pages.source import Source, cells
from demos.pages.templates import parts
from demos.pages.text import inline, sentence
from demos.site._book import Book
from demos.site._notebooks import notebook

PATHS = re.compile(r"(?<![`\w/])([\w/]+/\w+\.py|__+)(?!`)")  # not to be set as formulas


def pages(book: Book) -> list[Page]:
    """Return the list of the demos, and a page for each."""
    known = files()
    names = [("demos.html", "Demos"), *((f"demo-{name}.html", name) for name in known)]
    body = ""
    for kind in KINDS:
        _, _, line = docstring(DEMOS / kind / "__init__.py").partition(" · ")
        heading, _, about = line.partition(": ")
        cards = "".join(_card(book, path) for path in known.values() if path.parent.name == kind)
        body += f'<h2>{heading}</h2><p>{sentence(about)}</p><div class="cards">{cards}</div>'
    sub = (
        "Each demo states a claim and runs it. One that has been run here leads to what it showed."
    )
    each = [_demo(book, place, names) for place in range(1, len(names))]
    return [one_of("Demos", names, 0, "Claims that run", sub, Markup(body)), *each]


def _picture(book: Book, name: str) -> str:
    """Return the small picture of a demo's run in this folder, or the one that is kept, or ""."""
    places = [
        (book.out, f"demos/{name}/small.png"),
        (book.out, f"demos/{name}/small.svg"),
        (DEMOS, f"pictures/small/{name}.png"),
        (DEMOS, f"pictures/small/{name}.svg"),
    ]
    for folder, address in places:
        if folder and (folder / address).exists():
            return f'<img src="{address}" alt="" width="240" height="150">'
    return ""


def _card(book: Book, path: Path) -> str:
    name, text = path.stem, docstring(path)
    run = f"<code>python -m demos {name}</code> · {seconds(path)} s"
    if address := book.ran(name):
        run += f'<br><a href="{address}">What it showed</a>'
    image = ""
    if picture := _picture(book, name):
        link = f'<a class="picture" href="demo-{name}.html" aria-hidden="true" tabindex="-1">'
        image = f"{link}{picture}</a>"
    link = f'<h3><a href="demo-{name}.html">{name}</a></h3><p>{inline(text.splitlines()[0])}</p>'
    return f'<div class="card">{image}{link}<p>{run}</p></div>'


def _demo(book: Book, place: int, names: Names) -> Page:
    page, name = names[place]
    path = files()[name]
    where = path.relative_to(DEMOS.parent)
    file = Source(".".join(where.with_suffix("").parts), where.as_posix(), path.read_text("utf-8"))
    claim, _, text = file.docstring.partition("\n")
    prose = lambda text: book.prose(PATHS.sub(r"`\1`", text))
    picture = _picture(book, name)
    figure = Markup(f"<figure>{picture}</figure>") if picture else ""
    body = [parts.row(prose(text), figure)]
    for cell in cells(file.text):
        code = book.code(file, cell.lines.start, cell.lines.stop - 1)
        code = parts.fold(f"{len(cell.lines)} lines", code) if cell.heading == "Set-up" else code
        left = prose(cell.comment)
        if cell.heading:
            heading = inline(PATHS.sub(r"`\1`", cell.heading))
            left = Markup(f"<h2>{heading}</h2>{left}")
        body.append(parts.row(left, code))
    facts = [f"{seconds(path)} s", parts.code(file.path)]
    if name != "learn":  # (which asks for a folder on its command line)
        facts.append(notebook(name))
    book.index.append((name, "demo", page))
    return one_of("Demos", names, place, parts.code(name), inline(claim), *body, facts=facts)
