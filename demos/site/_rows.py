"""Site · Rows: a file as rows of prose at the left and code at the right, in its order."""

from __future__ import annotations

import ast
import doctest
import re
from collections.abc import Iterator
from typing import Any

from markupsafe import Markup

from demos.pages.source import DEFINITIONS, Source, coloured
from demos.pages.templates import parts
from demos.pages.text import inline, slug
from demos.site._book import Book
from demos.site._contents import STOP
from demos.site._questions import QUESTIONS

EXAMPLES = doctest.DocTestParser()
Part = str | list[doctest.Example]  # of a docstring


def rows(book: Book, source: Source) -> list[Markup]:
    """Return a file as rows: the module's docstring, then every statement in order.

    A chapter of the evening asks its question at the end of its lesson.
    """
    start = source.tree.body[0].end_lineno or 1
    rows = [_opening(book, source)]
    later = STOP in source.docstring
    imports = [x for x in source.tree.body if isinstance(x, ast.Import | ast.ImportFrom)]
    if imports:
        first = start + 1
        start = imports[-1].end_lineno or 1
        names = {x.module for x in imports if isinstance(x, ast.ImportFrom)} - {"__future__"}
        summary = f"Imports: {', '.join(sorted(names))}" if names else "Imports"
        code = book.code(source, first, start)
        rows.append(parts.row("", parts.fold(summary, code, "fold imports")))
    for kind, *what in _items(source, start + 1):
        if kind == "head":
            rows.append(parts.section(slug(what[0]), inline(what[0], book.links)))
        elif kind == "stop":
            summary, _, more = what[0].partition("\n\n")
            rows.append(_question(book, source))
            rows.append(parts.later_begins(inline(summary)))  # (a summary may not hold links)
            rows.append(parts.row(book.prose(more)))
            later = True
        elif kind == "code":
            first, last = what
            name = _named(source, first, last)
            code = book.code(source, first, last, of=name) + book.breaks(source, name)
            rows.append(parts.row("", code))
        else:
            rows.append(_definition(book, source, *what))
    rows.append(parts.later_ends() if later else _question(book, source))
    return list(filter(None, rows))


def _opening(book: Book, source: Source) -> Markup:
    """Return the rows of the module's docstring: each text with the examples that follow it."""
    text = source.docstring.partition("\n")[2]
    replaced = re.search(r"^In chapter 0: `(.+?)`\.$", text, re.MULTILINE)
    right = [_replaces(book, replaced[1])] if replaced else []
    text = text.replace(replaced[0], "") if replaced else text
    rows = []
    lesson = True
    blocks = _parts(text)
    for part, following in zip(blocks, [*blocks[1:], ""], strict=False):
        if not isinstance(part, str):
            continue
        if STOP in part and lesson:
            before, _, part = part.partition(STOP)
            rows += [parts.row(book.prose(before)), parts.later_begins(STOP)]
            lesson = False
        if isinstance(following, str):
            rows.append(parts.row(book.prose(part)))
            continue
        paragraphs = part.split("\n\n")
        beside = -1
        if len(paragraphs) > 1 and not paragraphs[-2].startswith("    "):
            beside = -2  # a display stands with the sentence above it
        rows.append(parts.row(book.prose("\n\n".join(paragraphs[:beside]))))
        left = book.prose("\n\n".join(paragraphs[beside:]))
        rows.append(parts.row(left, book.console(source, following)))
    return Markup("").join([*right, *rows])


def _question(book: Book, source: Source) -> Markup:
    """Return what a chapter asks, with its folded answer; nothing for another file."""
    for number, question in QUESTIONS.items():
        if book.chapters[number].source is source:
            example = book.console(source, EXAMPLES.get_examples(question.example))
            answer = parts.row(book.prose(question.says), example)
            return parts.asked(inline(question.asks, book.links), answer)
    return Markup("")


def _replaces(book: Book, code: str) -> Markup:
    """Return the line of chapter 0 that a chapter replaces, with a link to it."""
    idea = book.files["minigrad.idea"]
    numbers = [n for n, line in enumerate(idea.lines, 1) if code in line]
    if len(numbers) != 1:
        raise ValueError(f"chapter 0 has the line {code!r} {len(numbers)} times, and not once")
    return parts.replaces(f"{book.address(idea, '')}#L{numbers[0]}", coloured(code, {})[:1])


def _definition(book: Book, source: Source, node: Any, first: int, last: int, name: str) -> Markup:
    docstring = ast.get_docstring(node) or ""
    skip = range(node.body[0].lineno, node.body[0].end_lineno + 1) if docstring else range(0)
    book.index.append((name, source.path, book.address(source, name)))
    head = parts.section(name, parts.code(name), "name")
    blocks = _parts(docstring)
    texts = "\n\n".join(x for x in blocks if isinstance(x, str)).split("\n\n")
    console = Markup("").join(book.console(source, x) for x in blocks if not isinstance(x, str))
    cut = next((i for i, text in enumerate(texts) if "∂" in text), 0)
    value = _value(node)
    of = name if last == node.end_lineno else ""  # (a class that ends where its methods begin)
    if not (cut and value and last > value):
        left = head + book.prose("\n\n".join(texts))
        code = book.code(source, first, last, skip, of) + book.breaks(source, name)
        return parts.row(left, code + console, "rule")
    left = head + book.prose("\n\n".join(texts[:cut]))
    above = parts.row(left, book.code(source, first, value, skip, name), "rule")
    rest = book.prose("\n\n".join(texts[cut:]))
    code = book.code(source, value + 1, last, skip, name) + book.breaks(source, name)
    return above + parts.row(rest, code + console)


def _named(source: Source, first: int, last: int) -> str:
    """Return the name of the function that these lines define; "" if it is not one function."""
    inside = [x for x in source.tree.body if first <= _first(x) and (x.end_lineno or 0) <= last]
    if len(inside) == 1 and isinstance(inside[0], ast.FunctionDef):
        return inside[0].name
    return ""


def _parts(docstring: str) -> list[Part]:
    """Split a docstring into its texts and its blocks of examples, in order."""
    parts: list[Part] = []
    for part in EXAMPLES.parse(docstring):
        if isinstance(part, str):
            if part.strip():
                parts.append(part.strip("\n"))
        elif parts and isinstance(parts[-1], list):
            parts[-1].append(part)
        else:
            parts.append([part])
    return parts


def _documented(body: list[Any], lines: list[str], inside: str = "") -> Iterator[Any]:
    """Yield each definition that has text: its first line, itself, its last line and its name.

    A class whose methods have text ends where they begin.
    """
    for node in (statement for statement in body if isinstance(statement, DEFINITIONS)):
        first = _first(node)
        last = node.end_lineno
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
    decorators = getattr(node, "decorator_list", ())
    return min(part.lineno for part in [node, *decorators])


def _items(source: Source, first: int) -> list[tuple[Any, ...]]:
    """Return what follows a line: headings, the stop, definitions with text, and other code."""
    lines = [*map(str.strip, source.lines), ""]
    definitions = dict(_documented(source.tree.body, lines))
    items: list[tuple[Any, ...]] = []
    n = first
    while n < len(lines):
        line = lines[n - 1]
        below = next(i for i in range(n, len(lines) + 1) if not lines[i - 1].startswith("#"))
        if STOP in line:
            comment = [x.removeprefix("#").strip() for x in lines[n : below - 1]]
            items.append(("stop", "\n".join([STOP, *comment])))
            n = below - 1
        elif m := re.fullmatch(r"# -{5,} ?(.*)", line):
            items.append(("head", m[1]))
        elif below in definitions:
            node, last, name = definitions[below]
            items.append(("definition", node, n, last, name))
            n = last
        elif line and items and items[-1][0] == "code" and items[-1][2] >= n - 2:
            items[-1] = ("code", items[-1][1], n)
        elif line:
            items.append(("code", n, n))
        n += 1
    return items


def _value(node: Any) -> int | None:
    """Return the last line of a rule's value, if its VJPs stand on lines of their own."""
    last = node.body[-1]
    if not isinstance(last, ast.Return) or not isinstance(last.value, ast.Tuple):
        return None
    value, *vjps = last.value.elts
    lines = [vjp.lineno for vjp in vjps]
    return value.end_lineno if lines and min(lines) > (value.end_lineno or 0) else None
