"""Site · Chapters: rows of prose at the left and code at the right, from the files as they are."""

from __future__ import annotations

import ast
import doctest
import importlib
import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any

from demos import pictures
from demos.site import _source
from demos.site._contents import PICTURES, STOP, Chapter
from demos.site._source import DEFINITIONS, Source
from demos.site._templates import (
    Page,
    fill,
    fold,
    formula,
    inline,
    markdown,
    plain,
    row,
    sentence,
    slug,
    top,
    turn,
)

EXAMPLES = doctest.DocTestParser()
NUMBER = r"\d+(?:\.\d+)*"
NUMBERED = rf"(?:[Cc]hapter|[Ee]xercise)s?\s+{NUMBER}(?:(?:, and|,| and| or| to)\s+{NUMBER})*"
Part = str | list[doctest.Example]  # of a docstring


class Book:
    """All chapters and tools, and the addresses of what is in them."""

    def __init__(self, chapters: dict[str, Chapter], files: dict[str, Source]) -> None:
        self.chapters, self.files = chapters, files
        self.pages = {each.source.name: each.page for each in chapters.values()}
        self.tools = [each for name, each in files.items() if name not in self.pages]
        self.pages |= {each.name: f"{each.name}.html" for each in self.tools}
        self.index: list[tuple[str, str, str]] = []  # of Find: a name, what it is, its address
        self._cache: dict[Source, list[str]] = {}

    def address(self, source: Source, name: str) -> str:
        """Return where a definition is shown; no name stands for the file, "" for nowhere."""
        if source.name not in self.pages:
            return ""
        node = source.defined.get(name)
        if node and not (isinstance(node, DEFINITIONS) and ast.get_docstring(node)):
            name = f"L{node.lineno}"  # (what has no docstring has no heading)
        return self.pages[source.name] + (f"#{name}" if name else "")

    def links(self, text: str) -> str:
        """Return a text as HTML whose chapters and exercises are links."""
        shown = []
        for i, part in enumerate(re.split(f"({NUMBERED})", text)):
            page = self._exercise if part[:1] in ("e", "E") else self._chapter
            numbered = lambda m, page=page: page(m[0])
            shown.append(re.sub(NUMBER, numbered, part) if i % 2 else formula(part))
        return "".join(shown)

    def _chapter(self, number: str) -> str:
        inside = [n for n in self.chapters if n == number or n.startswith(f"{number}.")]
        if not inside:
            raise ValueError(f"there is no chapter {number}")
        return f'<a href="{self.chapters[inside[0]].page}">{number}</a>'

    def _exercise(self, number: str) -> str:
        if not 1 <= int(number) <= 24:
            raise ValueError(f"there is no exercise {number}")
        return f'<a href="exercise-{number}.html">{number}</a>'

    def found(self) -> str:
        """Return the script with what Find finds; of what it finds equally well, chapters first."""
        kinds = ("chapter", "term", "minigrad/", "attention/")
        tools = {self.pages[each.name] for each in self.tools}

        def order(each: tuple[str, str, str]) -> tuple[Any, ...]:
            name, kind, address = each
            late = address.startswith("0-") or address.partition("#")[0] in tools
            place = next((i for i, x in enumerate(kinds) if kind.startswith(x)), len(kinds))
            return late, place, len(name), each

        index = sorted(self.index, key=order)
        listed = json.dumps(index, ensure_ascii=False, separators=(",", ":"))
        return f"window.FIND={listed};\n"

    def prose(self, text: str) -> str:
        """Return a docstring's paragraphs as HTML."""
        number = lambda m: f"{m[1]}{self._chapter(m[2]) if m[2] in self.chapters else m[2]}<"
        return re.sub(r"(<tr><td[^>]*>)([\d.]+)<", number, markdown(text, self.links))

    # ------------------------------------------------------------ code

    def code(self, source: Source, first: int, last: int, skip: range = range(0)) -> str:
        """Return lines first to last of a file as HTML, with refusals and overloads folded."""
        numbers = [n for n in range(first, last + 1) if n not in skip]
        lines = self._lines(source)
        kept = [n for n in numbers if source.lines[n - 1].strip()]
        if not kept:
            return ""
        pad = min(len(t) - len(t.lstrip()) for t in (source.lines[n - 1] for n in kept))
        shown, folded = [], _folded(source)
        for n in range(kept[0], kept[-1] + 1):
            if n in skip or (n - 1 in skip and not source.lines[n - 1].strip()):
                continue
            line = re.sub(rf"^(<span[^>]*>)? {{{pad}}}", r"\1", lines[n - 1])
            line = f'<div class="ln" id="L{n}" data-n="{n}">{line or " "}</div>'
            begins, ends, said = folded.get(n, (0, 0, ""))
            if n == begins:
                said += f", {ends - n + 1} line{'s' * (ends > n)}"
                line = f'<details class="fold"><summary>{said}</summary>{line}'
            shown.append(line + "</details>" * (n == ends))
        return f'<div class="code" tabindex="0">{"".join(shown)}</div>'

    def _lines(self, source: Source) -> list[str]:
        if source not in self._cache:
            files = self.files | {source.name: source}  # (a demo is not a file of the book)
            links = _source.places(source.tree, source.lines, files, source, self.address)
            self._cache[source] = _source.coloured(source.text, links)
        return self._cache[source]

    def console(self, source: Source, examples: list[doctest.Example]) -> str:
        """Return a docstring's examples as HTML: what is typed, and what is printed."""
        rows = []
        for each in examples:
            lines = each.source.rstrip("\n").split("\n")
            links = _source.places(ast.parse(each.source), lines, self.files, source, self.address)
            for i, line in enumerate(_source.coloured(each.source.rstrip("\n"), links)):
                prompt = "... " if i else ">>> "
                rows.append(f'<div class="in"><span class="ps">{escape(prompt)}</span>{line}</div>')
            for line in each.want.replace("<BLANKLINE>", " ").splitlines():
                rows.append(f'<div class="out">{escape(line, quote=False) or " "}</div>')
        return f'<div class="code console" tabindex="0">{"".join(rows)}</div>'

    # ------------------------------------------------------------ pages

    def chapter(self, chapter: Chapter) -> Page:
        """Return a chapter's page."""
        source, order = chapter.source, list(self.chapters.values())
        linked = lambda found: ", ".join(f'<a href="{x.page}">{_named(x)}</a>' for x in found)
        facts = [f"{chapter.minutes} min{' · ★ of the evening' * chapter.star}"]
        if chapter.needs:
            facts.append(f"needs {linked(chapter.needs)}")
        if len(chapter.leads) > 6:
            summary = f"leads to {len(chapter.leads)} chapters"
            facts.append(fold(summary, linked(chapter.leads)))
        elif chapter.leads:
            facts.append(f"leads to {linked(chapter.leads)}")
        facts += [_size(source), notebook(chapter.number)]
        kicker = f"Chapter {chapter.number} · {chapter.part}"
        sub = sentence(chapter.says, self.links)
        body = [self.contents(chapter), top(kicker, formula(chapter.title), sub, facts)]
        if chapter.number in pictures.CHAPTERS:
            body.append(_drawn(pictures.CHAPTERS[chapter.number]))
        elif chapter.number in PICTURES:
            body.append(_figure(*PICTURES[chapter.number]))
        pages = [(each.page, _named(each)) for each in order]
        body += [*self.rows(source), turn(pages, order.index(chapter))]
        name = plain(_named(chapter))
        self.index.append((name, "chapter", chapter.page))
        body = [re.sub("<strong>(.+?)</strong>", self._term(chapter), part) for part in body]
        return Page(chapter.page, name, body, plain(chapter.says), "Book", "chapter")

    def _term(self, chapter: Chapter) -> Callable[[re.Match[str]], str]:
        """Return a function that gives a word in bold letters an address, and lists it."""
        known: set[str] = set()

        def marked(m: re.Match[str]) -> str:
            word = plain(m[1]).rstrip(".?")
            if (place := f"term-{slug(word)}") in known or not slug(word):
                return m[0]
            known.add(place)
            self.index.append((word, f"term, chapter {chapter.number}", f"{chapter.page}#{place}"))
            return f'<strong id="{place}">{m[1]}</strong>'

        return marked

    def parts(self, shown: Callable[[Chapter], str], around: str) -> str:
        """Return each part's name and its chapters as `shown`, put into `around`."""
        groups = groupby(self.chapters.values(), key=lambda each: each.part)
        return "".join(around.format(part, "".join(map(shown, each))) for part, each in groups)

    def contents(self, now: Chapter | None = None) -> str:
        """Return the folded list of all chapters."""

        def shown(each: Chapter) -> str:
            here = ' aria-current="page"' * (each is now)
            star = ' <span class="star" aria-label="of the evening">★</span>' * each.star
            return f'<a href="{each.page}"{here}>{_named(each)}{star}</a>'

        nav = f'<nav aria-label="Chapters">{self.parts(shown, "<b>{}</b>{}")}</nav>'
        return f'<details class="contents"><summary>All chapters</summary>{nav}</details>'

    def page(self) -> Page:
        """Return the list of all chapters, with what you know after each."""

        def shown(each: Chapter) -> str:
            star = ' <span class="star" title="of the evening">★</span>' * each.star
            return (
                f'<li><b>{each.number}</b> <a href="{each.page}">{formula(each.title)}</a>{star} '
                f"<small>{each.minutes} min</small><br>{inline(each.after, self.links)}</li>"
            )

        around = '<section><h2>{}</h2><ol class="list">{}</ol></section>'
        tools = "".join(
            f'<li><a href="{self.pages[each.name]}"><code>{each.name}</code></a><br>'
            f"{inline(each.docstring.partition(chr(10))[0], self.links)}</li>"
            for each in self.tools
        )
        body = fill("book", parts=self.parts(shown, around), tools=tools)
        return Page("book.html", "The book", [body], "All chapters in their order.", "Book")

    def tool(self, source: Source) -> Page:
        """Return a tool's page of reference."""
        said, page = source.docstring.partition("\n")[0], self.pages[source.name]
        self.index.append((source.name, "a tool", page))
        kicker, title = "A tool, to be used and not read", f"<code>{source.name}</code>"
        head = top(kicker, title, inline(said, self.links), [_size(source)])
        body = [self.contents(), head, *self.rows(source)]
        return Page(page, source.name, body, plain(said), "Book", "chapter")

    # ------------------------------------------------------------ rows

    def rows(self, source: Source) -> list[str]:
        """Return a file as rows: the module's docstring, then every statement in order."""
        start = source.tree.body[0].end_lineno or 1
        shown, later = [self._opening(source)], STOP in source.docstring
        imports = [x for x in source.tree.body if isinstance(x, ast.Import | ast.ImportFrom)]
        if imports:
            first, start = start + 1, imports[-1].end_lineno or 1
            names = {x.module for x in imports if isinstance(x, ast.ImportFrom)} - {"__future__"}
            said = ": ".join(filter(None, ["Imports", ", ".join(sorted(names))]))
            shown.append(row("", fold(said, self.code(source, first, start), "fold imports")))
        for kind, *what in _items(source, start + 1):
            if kind == "head":
                place = slug(what[0])
                shown.append(f'<h2 id="{place}">{inline(what[0], self.links)}{_self(place)}</h2>')
            elif kind == "stop":
                summary, _, more = what[0].partition("\n\n")
                shown += [_later(inline(summary, self.links)), row(self.prose(more))]
                later = True
            elif kind == "code":
                shown.append(row("", self.code(source, *what)))
            else:
                shown.append(self._definition(source, *what))
        return [*filter(None, shown), *["</details>"] * later]

    def _opening(self, source: Source) -> str:
        """Return the rows of the module's docstring: each text with the examples that follow it."""
        text = source.docstring.partition("\n")[2]
        replaced = re.search(r"^In chapter 0: `(.+?)`\.$", text, re.MULTILINE)
        right = [self._replaces(replaced[1])] if replaced else []
        text = text.replace(replaced[0], "") if replaced else text
        rows, lesson, parts = [], True, _parts(text)
        for part, following in zip(parts, [*parts[1:], ""], strict=False):
            if not isinstance(part, str):
                continue
            if STOP in part and lesson:
                before, _, part = part.partition(STOP)
                rows += [row(self.prose(before)), _later(STOP)]
                lesson = False
            paragraphs, beside = part.split("\n\n"), None
            if not isinstance(following, str):  # a display stands with the sentence above it
                beside = -2 if paragraphs[-2:-1] and not paragraphs[-2].startswith("    ") else -1
            rows.append(row(self.prose("\n\n".join(paragraphs[:beside]))))
            if beside:
                left = self.prose("\n\n".join(paragraphs[beside:]))
                rows.append(row(left, self.console(source, following)))
        return "".join([*right, *rows])

    def _replaces(self, code: str) -> str:
        idea = self.files["minigrad.idea"]
        found = [n for n, line in enumerate(idea.lines, 1) if code in line]
        if len(found) != 1:
            raise ValueError(f"chapter 0 has the line {code!r} {len(found)} times, and not once")
        line, idea_page = _source.coloured(code, {})[0], self.address(idea, "")
        return (
            f'<div class="replaces"><a href="{idea_page}#L{found[0]}">In chapter 0:</a>'
            f'<div class="code" tabindex="0"><div class="ln">{line}</div></div></div>'
        )

    def _definition(self, source: Source, node: Any, first: int, last: int, name: str) -> str:
        said = ast.get_docstring(node) or ""
        skip = range(node.body[0].lineno, node.body[0].end_lineno + 1) if said else range(0)
        self.index.append((name, source.path, self.address(source, name)))
        head = f'<h2 class="name" id="{name}"><code>{name}</code>{_self(name)}</h2>'
        parts = _parts(said)
        texts = "\n\n".join(x for x in parts if isinstance(x, str)).split("\n\n")
        shown = "".join(self.console(source, x) for x in parts if not isinstance(x, str))
        cut = next((i for i, text in enumerate(texts) if "∂" in text), 0)
        value = _value(node)
        if not (cut and value and last > value):
            left = head + self.prose("\n\n".join(texts))
            return row(left, self.code(source, first, last, skip) + shown, "rule")
        left = head + self.prose("\n\n".join(texts[:cut]))
        above = row(left, self.code(source, first, value, skip), "rule")
        rest = self.prose("\n\n".join(texts[cut:]))
        return above + row(rest, self.code(source, value + 1, last, skip) + shown)


def _parts(docstring: str) -> list[Part]:
    """Split a docstring into its texts and its blocks of examples, in order."""
    found = (x for x in EXAMPLES.parse(docstring) if not isinstance(x, str) or x.strip())
    blocks = (list(each) for _, each in groupby(found, key=type))
    return [x[0].strip("\n") if isinstance(x[0], str) else x for x in blocks]


def _documented(body: list[Any], lines: list[str], inside: str = "") -> Iterator[Any]:
    """Yield each definition that has text: its first line, itself, its last line and its name.

    A class whose methods have text ends where they begin.
    """
    for node in (each for each in body if isinstance(each, DEFINITIONS)):
        first, last = _first(node), node.end_lineno
        methods = [x for x in node.body if isinstance(x, ast.FunctionDef)]
        if isinstance(node, ast.ClassDef) and any(map(ast.get_docstring, methods)):
            last = _first(methods[0]) - 1
            while not lines[last - 1] or lines[last - 1].startswith("#"):
                last -= 1
            yield first, (node, last, inside + node.name)
            yield from _documented(node.body, lines, f"{inside}{node.name}.")
        elif ast.get_docstring(node):
            yield first, (node, last, inside + node.name)


def _first(node: Any) -> int:
    """Return the first line of a definition: that of its decorators, if it has some."""
    return min(each.lineno for each in [node, *node.decorator_list])


def _items(source: Source, first: int) -> list[tuple[Any, ...]]:
    """Return what follows a line: headings, the stop, definitions with text, and other code."""
    lines = [*map(str.strip, source.lines), ""]
    definitions = dict(_documented(source.tree.body, lines))
    found: list[tuple[Any, ...]] = []
    n = first
    while n < len(lines):
        line = lines[n - 1]
        below = next(i for i in range(n, len(lines) + 1) if not lines[i - 1].startswith("#"))
        if STOP in line:
            said = [x.removeprefix("#").strip() for x in lines[n : below - 1]]
            found.append(("stop", "\n".join([STOP, *said])))
            n = below - 1
        elif m := re.fullmatch(r"# -{5,} ?(.*)", line):
            found.append(("head", m[1]))
        elif below in definitions:
            node, last, name = definitions[below]
            found.append(("definition", node, n, last, name))
            n = last
        elif line and found and found[-1][0] == "code" and found[-1][2] >= n - 2:
            found[-1] = ("code", found[-1][1], n)
        elif line:
            found.append(("code", n, n))
        n += 1
    return found


@cache
def _folded(source: Source) -> dict[int, tuple[int, int, str]]:
    """Return, by each of its lines, what is folded: its first line, its last, and what it is."""
    found: dict[int, tuple[int, int, str]] = {}
    for node in ast.walk(source.tree):
        named = [*getattr(node, "decorator_list", ()), *getattr(node, "targets", ())]
        names = {getattr(each, "id", "") for each in named}
        if isinstance(node, ast.If) and isinstance(node.body[-1], ast.Raise) and not node.orelse:
            first, said = node.lineno, "a refusal"
        elif "overload" in names:
            first, said = node.lineno - 1, "a type"
        elif "__all__" in names:
            first, said = node.lineno, "the public names"
        else:
            continue
        lines = range(first, node.end_lineno + 1)
        found |= {n: (first, node.end_lineno, said) for n in lines if n not in found}
    return found


def _value(node: Any) -> int | None:
    """Return the last line of a rule's value, if its VJPs stand on lines of their own."""
    last = node.body[-1]
    if not isinstance(last, ast.Return) or not isinstance(last.value, ast.Tuple):
        return None
    value, *vjps = last.value.elts
    lines = [each.lineno for each in vjps]
    return value.end_lineno if lines and min(lines) > (value.end_lineno or 0) else None


def notebook(name: str) -> str:
    """Return the link to a notebook."""
    return f'<a href="notebooks/{name}.ipynb" download>as a notebook</a>'


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
    shown = importlib.import_module(f"demos.pictures.{name}").picture()
    own = Path(pictures.__path__[0], f"{name}.js").exists()
    scripts = ["draws"] * ('"seed":' in shown) + ["axes"] * ("<label>" in shown)
    scripts += [name] * own
    return shown + "".join(f'<script defer src="pictures/{x}.js"></script>' for x in scripts)


def _self(place: str) -> str:
    return f'<a class="self" href="#{place}" aria-label="Address of {place}">¶</a>'


def _later(said: str) -> str:
    return f'<details class="later" id="later"><summary>{said}</summary>'
