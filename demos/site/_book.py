"""Site · Book: all chapters and tools, the addresses of what is in them, and links to these."""

from __future__ import annotations

import ast
import doctest
import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from demos.learn import EXERCISES
from demos.live._breaks import Answer
from demos.live._definitions import judges
from demos.pages.source import DEFINITIONS, Source, coloured, places
from demos.pages.templates import fill, parts
from demos.pages.text import formula, markdown
from demos.site._contents import Chapter

NUMBER = r"\d+(?:\.\d+)*"
NUMBERED = rf"(?:[Cc]hapter|[Ee]xercise)s?\s+{NUMBER}(?:(?:, and|,| and| or| to)\s+{NUMBER})*"


class Book:
    """All chapters and tools, and the addresses of what is in them."""

    def __init__(
        self, chapters: dict[str, Chapter], files: dict[str, Source], out: Path | None = None
    ) -> None:
        self.out = out  # the folder of the site
        self.chapters = chapters
        self.files = files
        self.pages = {chapter.source.name: chapter.page for chapter in chapters.values()}
        self.tools = [source for name, source in files.items() if name not in self.pages]
        self.pages |= {tool.name: f"{tool.name}.html" for tool in self.tools}
        self.index: list[tuple[str, str, str]] = []  # of Find: a name, what it is, its address
        self.kept: Mapping[tuple[str, str], list[Answer]] = {}  # answers to broken definitions
        self._cache: dict[Source, list[Markup]] = {}

    @property
    def evening(self) -> list[Chapter]:
        """Return the chapters of the evening, in their order."""
        return [chapter for chapter in self.chapters.values() if chapter.star]

    def address(self, source: Source, name: str) -> str:
        """Return where a definition is shown; no name stands for the file, "" for nowhere."""
        if source.name not in self.pages:
            return ""
        node = source.defined.get(name)
        if node and not (isinstance(node, DEFINITIONS) and ast.get_docstring(node)):
            name = f"L{node.lineno}"  # (what has no docstring has no heading)
        return self.pages[source.name] + (f"#{name}" if name else "")

    def sources(self) -> dict[str, str]:
        """Return the page of each file that the site shows, by its path in the project."""
        return {source.path: self.pages[name] for name, source in self.files.items()}

    def links(self, text: str) -> Markup:
        """Return a text as HTML whose chapters and exercises are links."""
        html = []
        for i, part in enumerate(re.split(f"({NUMBERED})", text)):
            page = self._exercise if part[:1] in ("e", "E") else self._chapter
            numbered = lambda m, page=page: page(m[0])
            html.append(re.sub(NUMBER, numbered, part) if i % 2 else formula(part))
        return Markup("".join(html))

    def _chapter(self, number: str) -> Markup:
        inside = [n for n in self.chapters if n == number or n.startswith(f"{number}.")]
        if not inside:
            raise ValueError(f"there is no chapter {number}")
        return parts.link(self.chapters[inside[0]].page, number)

    def _exercise(self, number: str) -> Markup:
        if not 1 <= int(number) <= len(EXERCISES):
            raise ValueError(f"there is no exercise {number}")
        return parts.link(f"exercise-{number}.html", number)

    def find(self) -> str:
        """Return the script with what Find finds; of what it finds equally well, chapters first."""
        kinds = ("chapter", "term", "minigrad/", "attention/")
        tools = {self.pages[tool.name] for tool in self.tools}

        def order(entry: tuple[str, str, str]) -> tuple[Any, ...]:
            name, kind, address = entry
            late = address.startswith("0-") or address.partition("#")[0] in tools
            place = next((i for i, x in enumerate(kinds) if kind.startswith(x)), len(kinds))
            return late, place, len(name), entry

        index = sorted(self.index, key=order)
        listed = json.dumps(index, ensure_ascii=False, separators=(",", ":"))
        return f"window.FIND={listed};\n"

    def prose(self, text: str) -> Markup:
        """Return a docstring's paragraphs as HTML."""
        linked = lambda number: self._chapter(number) if number in self.chapters else number
        html = str(markdown(text, self.links))
        cell = r"(<tr><td[^>]*>)([\d.]+)<"
        return Markup(re.sub(cell, lambda m: f"{m[1]}{linked(m[2])}<", html))

    # ------------------------------------------------------------ code

    def breaks(self, source: Source, name: str) -> Markup:
        """Return the known ways to break a definition, folded, with what is told of each."""
        answers = self.kept.get((source.name, name), [])
        return fill("live/breaks.html", answers=answers, quote=quote) if answers else Markup("")

    def code(
        self, source: Source, first: int, last: int, skip: range = range(0), of: str = ""
    ) -> Markup:
        """Return lines first to last of a file as HTML, with refusals and overloads folded.

        `of` is the name of the definition that they are, or whose lines are among them. Where a
        small program judges it, a page that runs lets its reader change it.
        """
        numbers = [n for n in range(first, last + 1) if n not in skip]
        lines = self._lines(source)
        full = [n for n in numbers if source.lines[n - 1].strip()]
        if not full:
            return Markup("")
        pad = min(len(t) - len(t.lstrip()) for t in (source.lines[n - 1] for n in full))
        rows = []
        folded = _folded(source)
        for n in range(full[0], full[-1] + 1):
            if n in skip or (n - 1 in skip and not source.lines[n - 1].strip()):
                continue
            line = re.sub(rf"^(<span[^>]*>)? {{{pad}}}", r"\1", str(lines[n - 1]))
            first, end, summary = folded.get(n, (0, 0, ""))
            count = "1 line" if first == end else f"{end - first + 1} lines"
            opens = f"{summary}, {count}" if n == first else ""
            rows.append({"n": n, "html": Markup(line), "opens": opens, "closes": n == end})
        return parts.folded_lines(rows, of if judges(source.name, of) else "")

    def _lines(self, source: Source) -> list[Markup]:
        if source not in self._cache:
            files = self.files | {source.name: source}  # (a demo is not a file of the book)
            links = places(source.tree, source.lines, files, source, self.address)
            lines = coloured(source.text, links)
            if source.name == "minigrad.idea":
                lines = [self._ledger(line) for line in lines]
            self._cache[source] = lines
        return self._cache[source]

    def _ledger(self, line: Markup) -> Markup:
        """Return a line of the table that ends chapter 0, with links to the chapters it names."""
        row = re.fullmatch(r'(<span class="c"># .* {2})(\d.*)', line)
        if not row:
            return line
        return Markup(row[1] + re.sub(NUMBER, lambda number: self._chapter(number[0]), row[2]))

    def console(self, source: Source, examples: list[doctest.Example]) -> Markup:
        """Return a docstring's examples as HTML: what is typed, and what is printed."""
        rows: list[tuple[str, str]] = []  # a prompt or "", and a line
        for example in examples:
            code = example.source.rstrip("\n")
            links = places(ast.parse(code), code.split("\n"), self.files, source, self.address)
            for i, line in enumerate(coloured(code, links)):
                rows.append(("... " if i else ">>> ", line))
            for line in example.want.replace("<BLANKLINE>", " ").splitlines():
                rows.append(("", line or " "))
        return parts.console(rows)


@cache
def _folded(source: Source) -> dict[int, tuple[int, int, str]]:
    """Return, by each of its lines, what is folded: its first line, its last, and what it is."""
    folds: dict[int, tuple[int, int, str]] = {}
    for node in ast.walk(source.tree):
        if not isinstance(node, ast.stmt):
            continue
        named = [*getattr(node, "decorator_list", ()), *getattr(node, "targets", ())]
        names = {getattr(target, "id", "") for target in named}
        first = node.lineno
        if isinstance(node, ast.If) and isinstance(node.body[-1], ast.Raise) and not node.orelse:
            summary = "a refusal"
        elif "overload" in names:
            first -= 1  # (the decorator's line)
            summary = "a type"
        elif "__all__" in names:
            summary = "the public names"
        else:
            continue
        for n in range(first, node.end_lineno + 1):
            folds.setdefault(n, (first, node.end_lineno, summary))
    return folds
