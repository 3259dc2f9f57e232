"""Pages · Tables: tables and pictures of a demo, as HTML and as text for a terminal."""

from __future__ import annotations

import re
import shutil
import textwrap
from collections.abc import Sequence
from itertools import zip_longest

from markupsafe import Markup

from demos.pages.templates import parts
from demos.pages.text import MARKDOWN, inline, set_text

NUMBER = re.compile(r"[-−+]?[\d.,]+(e[-+]?\d+)?( ?%| times)?( ± [\d.]+)?")


def terminal_width() -> int:
    """Return how wide a text in the terminal may be."""
    return min(shutil.get_terminal_size().columns, 100)


def printed(text: str, width: int | None = None) -> str:
    """Return Markdown for a terminal: in lines that fit, and without its marks."""
    width = width or terminal_width()
    paragraphs = []
    for part in re.split(r"\n\s*\n|\n(?=- )", text.strip("\n")):
        if not part.startswith("    "):
            line = MARKDOWN.parseInline(" ".join(part.split("\n")))[0]
            words = "".join(token.content for token in line.children or [])
            part = textwrap.fill(words, width, break_on_hyphens=False)
        paragraphs.append(part)
    return "\n\n".join(paragraphs)


def inlined(svg: str, alt: str, name: str) -> Markup:
    """Return an SVG as a part of a page: its ids begin with its name, and `alt` says what it is."""
    svg = re.sub("<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = re.sub(r'(href="#|url\(#)', rf"\1{name}-", svg)
    svg = re.sub(' (role="img"|aria-label="[^"]*")', "", svg, count=2)  # (of a Graph)
    labelled = Markup('<svg role="img" aria-label="{}"').format(alt)
    return Markup(svg.replace("<svg", labelled, 1))


def figure(picture: Markup, caption: str) -> Markup:
    """Return a picture in a frame that moves sideways if it is too wide, over its caption."""
    size = re.search(r'<(?:svg|img)[^>]*? (?:width="|viewBox="\S+ \S+ )([\d.]+)(pt)?', picture)
    wide = f"{size[1]}{size[2] or 'px'}" if size else ""
    return parts.figure(picture, inline(caption, set_text), wide)


def table(head: Sequence[str], rows: Sequence[Sequence[object]], caption: str = "") -> Markup:
    """Return a table as HTML. Columns of numbers are aligned to the right."""
    texts, right = _cells(head, rows)
    head, *rows = [[inline(cell, set_text) for cell in cells] for cells in texts]
    return parts.table(head, rows, right, inline(caption, set_text))


def columns(head: Sequence[str], rows: Sequence[Sequence[object]], caption: str = "") -> str:
    """Return the same table for a terminal. Its widest column is as wide as the others allow."""
    texts, right = _cells(head, rows)
    plain = [[printed(cell) for cell in cells] for cells in texts]
    widths = _widths(plain)
    widest = widths.index(max(widths))
    too_much = sum(widths) + 3 * len(widths) - terminal_width()
    if too_much > 0:
        for cells, of_row in zip(plain, texts, strict=True):
            cells[widest] = printed(of_row[widest], max(widths[widest] - too_much, 20))
        widths = _widths(plain)
    lines = [printed(caption)] if caption else []
    for cells in plain:
        for parts_of_row in zip_longest(*(cell.split("\n") for cell in cells), fillvalue=""):
            line = ""
            for part, width, at_right in zip(parts_of_row, widths, right, strict=True):
                line += "   " + (part.rjust(width) if at_right else part.ljust(width))
            lines.append(line.rstrip())
    return "\n".join(lines)


def _widths(rows: list[list[str]]) -> list[int]:
    """Return the length of the longest line in each column."""
    columns = zip(*rows, strict=True)
    return [max(len(line) for cell in column for line in cell.split("\n")) for column in columns]


def _cells(head: Sequence[str], rows: Sequence[Sequence[object]]) -> tuple[list[list[str]], list]:
    """Return a table's texts, its head first, and which of its columns have numbers alone."""
    texts = [list(head), *([str(cell) for cell in cells] for cells in rows)]
    is_number = lambda cell: not cell or NUMBER.fullmatch(printed(cell))
    if not rows:
        return texts, [False for _ in head]
    columns = zip(*texts[1:], strict=True)
    return texts, [any(column) and all(map(is_number, column)) for column in columns]
