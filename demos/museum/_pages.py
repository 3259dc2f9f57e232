"""Museum · Pages: the parts of an exhibit, for its page, for the museum's page and a terminal.

What a symptom measures is drawn by its kind: a number as a bar, a few numbers as columns, many as a
line, and a table of true and false as a map.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from textwrap import fill as fill_lines
from textwrap import indent
from typing import Any, cast

import numpy as np
from markupsafe import Markup, escape

from attention.figures import D_K
from demos._files import docstring, files
from demos.museum.exhibits import NAMES, Exhibit, difference, exhibit, shown, source
from demos.pages.book import Book
from demos.pages.page import Names, Page, one_of
from demos.pages.source import Source, coloured
from demos.pages.tables import columns, printed
from demos.pages.templates import fill, parts
from demos.pages.text import inline, sentence

HERE = Path(__file__).parent
Seen = Sequence[tuple[str, Any, Any]]  # what is measured, in the broken version and the repaired


def seen(each: Exhibit, seed: int = 0) -> Seen:
    """Return what an exhibit's symptom measures in both versions."""
    broken, repaired = (each.symptoms(f, seed) for f in (each.module.broken, each.module.repaired))
    return [(what, value, repaired[what]) for what, value in broken.items()]


def verdicts(each: Exhibit, seed: int) -> list[tuple[str, str]]:
    """Return what the check says of both versions, and minigrad of a user's mistake."""
    module = each.module
    told = [
        ("broken", each.caught(module.broken, seed) or "NOT CAUGHT"),
        ("repaired", each.caught(module.repaired, seed) or "passes"),
    ]
    if refusal := each.refused():
        told.append(("minigrad", refusal))
    return told


def html(
    each: Exhibit,
    prose: Callable[[str], Markup],
    check: Markup,
    place: str,
    head: str,
    seed: int = 0,
) -> Markup:
    """Return an exhibit: its lines as buttons, its symptom drawn, and a fold with the rest.

    prose         sets a text as HTML
    check         the check's lines as HTML
    place, head   the fold's id, and the tag of its headings
    """
    kinds = {"-": "taken", "+": "given", " ": ""}
    told = "\n".join(f"{version:10}{said}" for version, said in verdicts(each, seed))
    return fill(
        "museum/exhibit.html",
        head=head,
        place=place,
        drawing=drawing(seen(each, seed)),
        puzzle=puzzle(each),
        title=sentence(each.title),
        name=each.name,
        story=prose(each.story),
        lines=[(kinds[mark], mark, line) for mark, line in marked(each)],
        says=prose(inspect.getdoc(each.module.check) or ""),
        check=check,
        verdicts=told,
        repair=prose(each.module.REPAIR),
    )


def text(each: Exhibit, seed: int = 0) -> str:
    """Return an exhibit as text for a terminal."""
    module, rows = each.module, []
    for what, *both in seen(each, seed):
        lines = [shown(value).splitlines() for value in both]
        rows += [[what * (not i), *pair] for i, pair in enumerate(zip(*lines, strict=True))]
    check = "\n".join(f"     {line}" for line in source(module.check, docstring=False))
    lines = (f"{version:10}{said}" for version, said in verdicts(each, seed))
    told = "\n".join(fill_lines(x, 97, subsequent_indent=" " * 10) for x in lines)
    head = f"── {each.number} · {each.title} ".ljust(99 - len(each.name), "─")
    code = "\n".join(difference(source(module.broken), source(module.repaired)))
    symptom = printed(f"Symptom. {inspect.getdoc(module.symptom)}")
    table = columns(["", "broken", "repaired"], rows)
    says, repair = printed(f"Check. {inspect.getdoc(module.check)}"), f"Repair. {module.REPAIR}"
    return (
        f"{head} {each.name}\n{printed(each.story)}\n\n{code}\n\n{symptom}\n{table}\n\n"
        f"{says}\n{check}\n{indent(told, '   ')}\n\n{printed(repair)}"
    )


# ---------------------------------------------------------------- its lines


def marked(each: Exhibit) -> list[tuple[str, Markup]]:
    """Return an exhibit's lines as HTML: - marks what is wrong, and + what repairs it."""
    broken, repaired = source(each.module.broken), source(each.module.repaired)
    ours, theirs = (iter(coloured("\n".join(lines), {})) for lines in (broken, repaired))
    found = []
    for mark in (f"{line}    "[3] for line in difference(broken, repaired)):
        new = Markup("") if mark == "-" else next(theirs)
        found.append((mark, new if mark == "+" else next(ours)))
    return found


def puzzle(each: Exhibit) -> Markup:
    """Return an exhibit's function, each line a button. Beside a missing line, both are right."""
    lines, buttons = marked(each), []
    marks = "".join(mark for mark, _ in lines)
    for i, (mark, line) in enumerate(lines):
        lacks = "-" not in marks and "+" in marks[max(i - 1, 0) : i + 2]
        right = lacks or mark == "-"
        answer = "This line is right: the repaired version has it, too."
        if right:
            missing = ", here a line is missing" if lacks else ""
            answer = f"Yes{missing}: {each.title}."
        if mark != "+" and line:
            buttons.append({"answer": answer, "right": right, "line": line})
    ask = "Click the line that is wrong." if "-" in marks else "Click where a line is missing."
    return fill("museum/puzzle.html", buttons=buttons, ask=ask)


# ---------------------------------------------------------------- the site's pages


def pages(book: Book) -> list[Page]:
    """Return the list of the exhibits, each by what it does, and a page for each."""
    rooms = [exhibit(name) for name in NAMES]
    names = [("museum.html", "Museum")]
    names += [(f"exhibit-{each.number}.html", f"Exhibit {each.number}") for each in rooms]
    claim, _, why = docstring(files()["museum"]).partition("\n")
    tiles = []
    for each in rooms:
        meant = (inspect.getdoc(each.module.broken) or "").partition("   ")[0]
        tiles.append(parts.tile(*names[each.number], inline(meant), _symptom(each)))
    body = book.prose(why) + parts.tiles("The exhibits", tiles)
    each = [_exhibit(book, each, names) for each in rooms]
    return [
        one_of("Museum", names, 0, "Sixteen mistakes, and no error", inline(claim), body),
        *each,
    ]


def _symptom(each: Exhibit) -> Markup:
    """Return what is seen of an exhibit's mistake."""
    return inline(inspect.getdoc(each.module.symptom) or "")


def _exhibit(book: Book, each: Exhibit, names: Names) -> Page:
    address, name = names[each.number]
    file = Source(each.module.__name__, "", inspect.getsource(each.module))
    check = cast(ast.FunctionDef, file.defined["check"])  # (and not a variable of that name)
    text = range(check.body[0].lineno, check.body[0].end_lineno + 1)
    code = book.code(file, check.lineno, check.end_lineno, text)
    body = html(each, book.prose, code, "mistake", "h2")
    book.index.append((each.title, f"museum, exhibit {each.number}", address))
    return one_of("Museum", names, each.number, name, _symptom(each), body)


# ---------------------------------------------------------------- its symptom, drawn

SIDE = 205  # the width of a column; the left one is of the broken version
COLOURS = ("--cross", "--ink")


def drawing(rows: Seen) -> Markup:
    """Return both versions side by side as an SVG, with a row for each thing measured."""
    out, y = "", 22
    for x, (version, colour) in enumerate(zip(("this version", "repaired"), COLOURS, strict=True)):
        out += _text(version, x * SIDE, 13, f"fill:var({colour});font-weight:600")
    same = lambda what: re.sub(r",.*|\d", "", what)  # (what measures the same has one scale)
    for what, *both in rows:
        alike = [x for other, *pair in rows for x in pair if same(other) == same(what)]
        every = [0.0, *(n for value in alike for n in _numbers(value) if np.isfinite(n))]
        cells = [_cell(value, min(every), max(*every, min(every) + 1e-9)) for value in both]
        out += _text(what, 0, y + 15, "fill:var(--soft)")
        for x, ((shape, _), colour) in enumerate(zip(cells, COLOURS, strict=True)):
            out += f'<g style="color:var({colour})" fill="currentColor" '
            out += f'transform="translate({x * SIDE} {y + 20})">{shape}</g>'
        y += 24 + max(height for _, height in cells)
    said = (f"{what}: {_said(b)} in this version, {_said(r)} repaired." for what, b, r in rows)
    size = f'style="max-width:32rem" viewBox="-4 -4 {2 * SIDE} {y + 4}"'
    alt = escape(" ".join(said))
    return Markup(f'<svg class="drawn" role="img" {size} aria-label="{alt}">{out}</svg>')


def _numbers(value: Any) -> list[float]:
    """Return a value's numbers; an empty list for a shape, a truth value or words."""
    if isinstance(value, bool | tuple):
        return []
    try:
        return (
            np.ravel(value.replace("%", "").split() if isinstance(value, str) else value)
            .astype(float)
            .tolist()
        )
    except ValueError:
        return []


def _cell(value: Any, low: float, high: float) -> tuple[str, int]:
    """Return a drawing of a value, and its height. The numbers drawn go from low to high."""
    found, most = _numbers(value), max(high, -low)
    finite = [x if np.isfinite(x) else 0.0 for x in found]
    if isinstance(value, np.ndarray) and value.dtype == bool:
        squares = [
            "".join(f"M{14 * j} {14 * i + 4}h12v12h-12z" for i, j in np.argwhere(each))
            for each in (value, ~value)
        ]
        return f'<path d="{squares[0]}"/><path opacity=".15" d="{squares[1]}"/>', 14 * len(value)
    if len(found) < 2:
        width = round(120 * abs(finite[0]) / most) if found else 0
        return f'<path d="M0 3h{width}v12h-{width}z"/>' + _text(
            shown(value), width + 6 * bool(width), 14
        ), 20
    step = 190 / len(found)
    at = [8 + 52 * (high - x) / (high - low) for x in (*finite, 0.0)]
    base = f'<path d="M0 {at[-1]:.1f}h190" stroke="currentColor" opacity=".5"/>'
    if len(found) > 20:
        points = " ".join(f"{step * i:.1f} {y:.1f}" for i, y in enumerate(at[:-1]))
        line = f'<polyline fill="none" stroke="currentColor" stroke-width="2" points="{points}"/>'
        return base + line + _text(shown(value), 0, 76), 78
    shapes = [base]
    for i, (x, y) in enumerate(zip(found, at, strict=False)):
        shapes.append(
            f'<path d="M{step * i + 3:.1f} {at[-1]:.1f}V{y:.1f}h{step - 6:.1f}V{at[-1]:.1f}z"/>'
        )
        shapes.append(_text(f"{x:.2g}", step * (i + 0.5), 76, "text-anchor:middle"))
    return "".join(shapes), 78


def _text(text: str, x: float, y: float, style: str = "") -> str:
    style = f"font:13px var(--sans);fill:var(--ink);{style}"
    shown = re.sub(r"\bd_k\b", D_K, str(escape(text)))
    return f'<text x="{x:.1f}" y="{y:.1f}" style="{style}">{shown}</text>'


def _said(value: Any) -> str:
    """Return a value in words, for the picture's label; of a map, how many are true in each row."""
    if isinstance(value, np.ndarray) and value.dtype == bool:
        return f"{' '.join(map(str, value.sum(axis=-1)))} of a row's {len(value)}"
    return shown(value)
