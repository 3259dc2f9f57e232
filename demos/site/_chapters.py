"""Site · Chapters: rows of prose at the left and code at the right, from the files as they are."""

from __future__ import annotations

import ast
import doctest
import re
from collections.abc import Callable
from html import escape
from typing import Any

from demos.site import _source
from demos.site._contents import PICTURES, STOP, Chapter
from demos.site._source import DEFINITIONS, Source
from demos.site._templates import Page, formula, inline, markdown, plain

SAYS = """<p>The pages are the source files: prose at the left, code at the right. Those with a
<span class="star">★</span> make an evening. They need Python, the chain rule and products of
matrices, and chapters 11 and 16 the variance of a sum. What a first reading may leave out is
folded, and not in the minutes. (Some numbers are not used.)</p>"""
EXAMPLES = doctest.DocTestParser()


class Book:
    """All chapters and tools, and the addresses of what is in them."""

    def __init__(self, chapters: dict[str, Chapter], files: dict[str, Source]) -> None:
        self.chapters, self.files = chapters, files
        self.pages = {each.source.name: each.page for each in chapters.values()}
        for name in files.keys() - self.pages.keys():
            self.pages[name] = f"{name}.html"
        self.index: list[tuple[str, str, str]] = []  # of Find: a name, what it is, its address
        self._cache: dict[Source, list[str]] = {}

    @property
    def tools(self) -> list[Source]:
        """The files that are not chapters."""
        known = {each.source for each in self.chapters.values()}
        return [each for each in self.files.values() if each not in known]

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
        out, last = [], 0
        number = r"\d+(?:\.\d+)*"
        joined = rf"(?:[Cc]hapter|[Ee]xercise)s?\s+{number}(?:(?:, and|,| and| or| to)\s+{number})*"
        for m in re.finditer(joined, text):
            out.append(formula(text[last : m.start()]))
            page = self._exercise if m[0][0] in "eE" else self._chapter
            out.append(re.sub(number, lambda n, page=page: page(n[0]), m[0]))
            last = m.end()
        return "".join([*out, formula(text[last:])])

    def _chapter(self, number: str) -> str:
        inside = [n for n in self.chapters if n == number or n.startswith(f"{number}.")]
        if not inside:
            raise ValueError(f"there is no chapter {number}")
        return f'<a href="{self.chapters[inside[0]].page}">{number}</a>'

    def _exercise(self, number: str) -> str:
        if not 1 <= int(number) <= 24:
            raise ValueError(f"there is no exercise {number}")
        return f'<a href="exercise-{number}.html">{number}</a>'

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
        shown, folded = [], self._folded(source)
        for n in range(kept[0], kept[-1] + 1):
            if n in skip or (n - 1 in skip and not source.lines[n - 1].strip()):
                continue
            line = re.sub(rf"^(<span[^>]*>)? {{{pad}}}", r"\1", lines[n - 1])
            span = folded.get(n)
            if span and n == span[0]:
                count = span[1] - span[0] + 1
                title = f"{span[2]}, {count} line{'s' * (count > 1)}"
                shown.append(f'<details class="fold"><summary>{title}</summary>')
            shown.append(f'<div class="ln" id="L{n}" data-n="{n}">{line or " "}</div>')
            if span and n == span[1]:
                shown.append("</details>")
        return f'<div class="code" tabindex="0">{"".join(shown)}</div>'

    def _lines(self, source: Source) -> list[str]:
        if source not in self._cache:
            files = self.files | {source.name: source}  # (a demo is no file of the book)
            links = _source.places(source.tree, source.lines, files, source, self.address)
            self._cache[source] = _source.coloured(source.text, links)
        return self._cache[source]

    def _folded(self, source: Source) -> dict[int, tuple[int, int, str]]:
        """Return the spans of lines that are folded: by each of their lines."""
        found = {}
        for node in ast.walk(source.tree):
            first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0)
            marks = {getattr(each, "id", "") for each in getattr(node, "decorator_list", ())}
            targets = {getattr(each, "id", "") for each in getattr(node, "targets", ())}
            raises = isinstance(node, ast.If) and isinstance(node.body[-1], ast.Raise)
            if raises and not node.orelse:
                said = "a refusal"
            elif "overload" in marks:
                first, said = first - 1, "a type"
            elif "__all__" in targets:
                said = "the public names"
            else:
                continue
            found.update((n, (first, last, said)) for n in range(first, last + 1) if n not in found)
        return found

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

    def parts(self, source: Source, docstring: str) -> list[tuple[str, Any]]:
        """Split a docstring into its texts and its blocks of examples, in order."""
        found: list[tuple[str, Any]] = []
        for part in EXAMPLES.parse(docstring):
            if isinstance(part, str):
                text = "\n".join(x if x.strip() else "" for x in part.split("\n")).strip("\n")
                if text.strip():
                    found.append(("text", text))
            elif found and found[-1][0] == "examples":
                found[-1][1].append(part)
            else:
                found.append(("examples", [part]))
        return found

    # ------------------------------------------------------------ pages

    def chapter(self, chapter: Chapter) -> Page:
        """Return a chapter's page."""
        source, order = chapter.source, list(self.chapters.values())
        place = order.index(chapter)
        title, says = formula(chapter.title), chapter.says[:1].upper() + chapter.says[1:]
        linked = lambda found: ", ".join(
            f'<a href="{x.page}">{x.number} {formula(x.title)}</a>' for x in found
        )
        facts = [f"{chapter.minutes} min{' · ★ of the evening' * chapter.star}"]
        facts += [f"needs {linked(chapter.needs)}"] * bool(chapter.needs)
        facts += [_many("leads to", chapter.leads, linked)] * bool(chapter.leads)
        facts += [
            f"<code>{source.path}</code>, {len(source.lines)} lines",
            self.notebook(chapter.number),
        ]
        head = [
            f'<p class="kicker">Chapter {chapter.number} · {chapter.part}</p><h1>{title}</h1>',
            f'<p class="sub">{inline(says, self.links)}{"." * (says[-1] != "?")}</p>',
            f'<div class="facts">{"".join(f"<div>{fact}</div>" for fact in facts)}</div>',
        ]
        if chapter.number in PICTURES:
            name, says = PICTURES[chapter.number]
            head.append(_figure(name, says))
        turns = [
            f'<a href="{x.page}" rel="{rel}">{before}{x.number} {formula(x.title)}{after}</a>'
            for found, rel, before, after in (
                (order[place - 1 : place] if place else [], "prev", "← ", ""),
                (order[place + 1 : place + 2], "next", "", " →"),
            )
            for x in found
        ]
        side = self.contents(chapter)
        turn = f'<nav class="turn" aria-label="Chapters before and after">{"".join(turns)}</nav>'
        body = [side, *head, *self.rows(source), turn]
        name = f"{chapter.number} {plain(title)}"
        self.index.append((name, "chapter", chapter.page))
        body = [re.sub("<strong>(.+?)</strong>", self._term(chapter), part) for part in body]
        return Page(chapter.page, name, body, plain(chapter.says), "Book", "chapter")

    def _term(self, chapter: Chapter) -> Callable[[re.Match[str]], str]:
        """Return a function that gives a word in bold letters an address, and lists it."""
        known: set[str] = set()

        def marked(m: re.Match[str]) -> str:
            word = plain(m[1]).rstrip(".?")
            if (place := f"term-{_slug(word)}") in known or not _slug(word):
                return m[0]
            known.add(place)
            self.index.append((word, f"term, chapter {chapter.number}", f"{chapter.page}#{place}"))
            return f'<strong id="{place}">{m[1]}</strong>'

        return marked

    def contents(self, now: Chapter | None = None) -> str:
        """Return the list of all chapters, by parts."""
        shown, part = [], ""
        for each in self.chapters.values():
            if each.part != part:
                part = each.part
                shown.append(f"<b>{part}</b>")
            here = ' aria-current="page"' if each is now else ""
            star = ' <span class="star" aria-label="of the evening">★</span>' * each.star
            shown.append(
                f'<a href="{each.page}"{here}>{each.number} {formula(each.title)}{star}</a>'
            )
        nav = f'<nav aria-label="Chapters">{"".join(shown)}</nav>'
        return f'<details class="contents"><summary>All chapters</summary>{nav}</details>'

    def page(self) -> Page:
        """Return the list of all chapters, with what you know after each."""
        shown, part = ["<h1>The book</h1>", SAYS, '<div class="parts">'], ""
        for each in self.chapters.values():
            if each.part != part:
                shown += ["</ol></section>"] * bool(part)
                shown += [f"<section><h2>{each.part}</h2>", '<ol class="list">']
                part = each.part
            star = ' <span class="star" title="of the evening">★</span>' * each.star
            shown.append(
                f'<li><b>{each.number}</b> <a href="{each.page}">{formula(each.title)}</a>{star} '
                f"<small>{each.minutes} min</small><br>{inline(each.after, self.links)}</li>"
            )
        tools = "".join(
            f'<li><a href="{self.pages[each.name]}"><code>{each.name}</code></a><br>'
            f"{inline(each.docstring.partition(chr(10))[0], self.links)}</li>"
            for each in self.tools
        )
        shown += ["</ol></section></div><h2>Tools, to be used and not read</h2>"]
        shown += [f'<ul class="list">{tools}</ul>']
        return Page("book.html", "The book", shown, "All chapters in their order.", "Book")

    def notebook(self, name: str) -> str:
        """Return the link to a notebook."""
        return f'<a href="notebooks/{name}.ipynb" download>as a notebook</a>'

    def tool(self, source: Source) -> Page:
        """Return a tool's page of reference."""
        said = source.docstring.partition("\n")[0]
        self.index.append((source.name, "a tool", self.pages[source.name]))
        body = [
            self.contents(),
            '<p class="kicker">A tool, to be used and not read</p>',
            f"<h1><code>{source.name}</code></h1>",
            f'<p class="sub">{inline(said, self.links)}</p>',
            f'<p class="kicker"><code>{source.path}</code>, {len(source.lines)} lines</p>',
            *self.rows(source),
        ]
        return Page(self.pages[source.name], source.name, body, plain(said), "Book", "chapter")

    # ------------------------------------------------------------ rows

    def rows(self, source: Source) -> list[str]:
        """Return a file as rows: the module's docstring, then every statement in order."""
        first, *body = source.tree.body
        shown = [self._opening(source)]
        later = STOP in source.docstring
        imports = [x for x in body if isinstance(x, ast.Import | ast.ImportFrom)]
        start = first.end_lineno or 1
        if imports:
            end = imports[-1].end_lineno or 1
            modules = sorted(
                {x.module or "" for x in imports if isinstance(x, ast.ImportFrom)} - {"__future__"}
            )
            said = f"Imports{': ' * bool(modules)}{', '.join(modules)}"
            inside = self.code(source, start + 1, end)
            shown.append(
                _row(
                    "", f'<details class="fold imports"><summary>{said}</summary>{inside}</details>'
                )
            )
            start = end
        for kind, *what in self._items(
            source, [x for x in body if x.lineno > start], start, len(source.lines)
        ):
            if kind == "head":
                place = _slug(what[0])
                shown.append(f'<h2 id="{place}">{inline(what[0], self.links)}{_self(place)}</h2>')
            elif kind == "stop":
                summary, _, more = what[0].partition("\n\n")
                shown += [_later(inline(summary, self.links)), _row(self.prose(more))]
                later = True
            elif kind == "code":
                shown.append(_row("", self.code(source, *what)))
            else:
                shown.append(self._definition(source, *what))
        return [*filter(None, shown), *["</details>"] * later]

    def _opening(self, source: Source) -> str:
        """Return the rows of the module's docstring: each text with the examples that follow it."""
        text = source.docstring.partition("\n")[2]
        replaced = re.search(r"^In chapter 0: `(.+?)`\.$", text, re.MULTILINE)
        right = [self._replaces(replaced[1])] if replaced else []
        text = text.replace(replaced[0], "") if replaced else text
        rows, lesson = [], True
        parts = self.parts(source, text)
        for (kind, what), (following, examples) in zip(parts, [*parts[1:], ("", [])], strict=False):
            if kind == "text" and STOP in what and lesson:
                before, _, what = what.partition(STOP)
                rows += [_row(self.prose(before)), _later(STOP)]
                lesson = False
            if kind == "text":
                paragraphs = what.split("\n\n")
                two = len(paragraphs) > 1 and not paragraphs[-2].startswith("    ")
                beside = len(paragraphs) - 1 - two
                alone = paragraphs[:beside] if following == "examples" else paragraphs
                rows.append(_row(self.prose("\n\n".join(alone))))
                if following == "examples":
                    left = self.prose("\n\n".join(paragraphs[beside:]))
                    rows.append(_row(left, self.console(source, examples)))
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

    def _items(
        self, source: Source, body: list[Any], start: int, end: int
    ) -> list[tuple[Any, ...]]:
        """Return headings, the stop line, code, and definitions, with their lines."""
        found: list[tuple[Any, ...]] = []
        for node in [*body, None]:
            first = end + 1
            if node is not None:
                first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
            first = self._gap(source, found, start + 1, first, node)
            if node is None:
                break
            start = node.end_lineno
            methods = [x for x in getattr(node, "body", ()) if isinstance(x, ast.FunctionDef)]
            if isinstance(node, ast.ClassDef) and any(map(ast.get_docstring, methods)):
                head = min([methods[0].lineno, *(d.lineno for d in methods[0].decorator_list)]) - 1
                inner = node.body[node.body.index(methods[0]) :]
                while (
                    source.lines[head - 1].lstrip().startswith(("#", "@"))
                    or not source.lines[head - 1].strip()
                ):
                    head -= 1
                found.append(("definition", node, first, head, node.name))
                for item in self._items(source, inner, head, node.end_lineno):
                    if item[0] == "definition":
                        item = (*item[:4], f"{node.name}.{item[4]}")
                    found.append(item)
            elif isinstance(node, DEFINITIONS) and ast.get_docstring(node):
                found.append(("definition", node, first, start, node.name))
            elif found and found[-1][0] == "code" and found[-1][2] >= first - 2:
                found[-1] = ("code", found[-1][1], start)
            else:
                found.append(("code", first, start))
        return found

    def _gap(self, source: Source, found: list[Any], first: int, last: int, node: Any) -> int:
        """Handle the comments between two statements; return where the next one's lines begin."""
        n = first
        while n < last:
            line = source.lines[n - 1].strip()
            if STOP in line:
                said = []
                while n < last and source.lines[n].strip().startswith("#"):
                    said.append(source.lines[n].strip().removeprefix("#").strip())
                    n += 1
                found.append(("stop", "\n".join([STOP, *said])))
            elif m := re.fullmatch(r"# -{5,} ?(.*)", line):
                found.append(("head", m[1]))
            elif line.startswith("#"):
                end = n
                while end < last and source.lines[end - 1].strip().startswith("#"):
                    end += 1
                if end == last and node is not None:
                    return n
                found.append(("code", n, end - 1))
                n = end
            n += 1
        return last

    def _definition(self, source: Source, node: Any, first: int, last: int, name: str) -> str:
        said = ast.get_docstring(node) or ""
        skip = range(node.body[0].lineno, node.body[0].end_lineno + 1) if said else range(0)
        self.index.append((name, source.path, self.address(source, name)))
        head = f'<h2 class="name" id="{name}"><code>{name}</code>{_self(name)}</h2>'
        parts = self.parts(source, said)
        texts = "\n\n".join(what for kind, what in parts if kind == "text").split("\n\n")
        shown = [self.console(source, what) for kind, what in parts if kind == "examples"]
        cut = next((i for i, text in enumerate(texts) if "∂" in text), 0)
        value = _value(node)
        if cut and value and last > value:
            top = head + self.prose("\n\n".join(texts[:cut]))
            rest = self.prose("\n\n".join(texts[cut:]))
            code = self.code(source, value + 1, last, skip)
            return _row(top, self.code(source, first, value, skip), "rule") + _row(
                rest, "".join([code, *shown])
            )
        code = self.code(source, first, last, skip)
        return _row(head + self.prose("\n\n".join(texts)), "".join([code, *shown]), "rule")


def _value(node: Any) -> int | None:
    """Return the last line of a rule's value, if its VJPs stand on lines of their own."""
    last = node.body[-1]
    if not isinstance(last, ast.Return) or not isinstance(last.value, ast.Tuple):
        return None
    value, *vjps = last.value.elts
    lines = [each.lineno for each in vjps]
    return value.end_lineno if lines and min(lines) > (value.end_lineno or 0) else None


def _row(left: str, right: str = "", kind: str = "") -> str:
    if not right:
        return f'<div class="prose {kind}">{left}</div>' if left else ""
    return (
        f'<div class="row {kind}"><div class="prose">{left}</div>'
        f'<div class="beside">{right}</div></div>'
    )


def _many(said: str, found: list[Chapter], linked: Callable[[list[Chapter]], str]) -> str:
    """Return links to chapters, folded if they are more than six."""
    if len(found) <= 6:
        return f"{said} {linked(found)}"
    return f"<details><summary>{said} {len(found)} chapters</summary>{linked(found)}</details>"


def _figure(name: str, says: str) -> str:
    """Return a picture that leads to itself; a phone gets the narrow one if there is one."""
    narrow = '<source media="(max-width: 500px)" srcset="pictures/hero_narrow.svg">'
    return (
        f'<figure><a href="pictures/{name}.svg"><picture>{narrow * (name == "hero")}'
        f'<img src="pictures/{name}.svg" alt="{says}"></picture></a></figure>'
    )


def _self(place: str) -> str:
    return f'<a class="self" href="#{place}" aria-label="Address of {place}">¶</a>'


def _later(said: str) -> str:
    return f'<details class="later" id="later"><summary>{said}</summary>'


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
