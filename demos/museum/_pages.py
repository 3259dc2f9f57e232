"""Museum · Pages: the parts of an exhibit, for its page, for the museum's page and a terminal.

What a symptom measures is drawn by its kind: a number as a bar, a few numbers as columns, many as a
line, and a table of true and false as a map.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from textwrap import fill as fill_lines
from textwrap import indent
from typing import Any, cast

import numpy as np
from markupsafe import Markup

from attention.figures import D_K
from demos._files import docstring, files
from demos.museum.exhibits import NAMES, Exhibit, difference, exhibit, short_text, source
from demos.pages.book import Book
from demos.pages.page import Names, Page, one_of
from demos.pages.source import Source, coloured
from demos.pages.tables import columns, printed
from demos.pages.templates import fill, parts
from demos.pages.text import inline, sentence

HERE = Path(__file__).parent
Seen = Sequence[tuple[str, Any, Any]]  # what is measured, in the broken version and the repaired


def seen(case: Exhibit, seed: int = 0) -> Seen:
    """Return what an exhibit's symptom measures in both versions."""
    broken, repaired = (case.symptoms(f, seed) for f in (case.module.broken, case.module.repaired))
    return [(what, value, repaired[what]) for what, value in broken.items()]


def verdicts(case: Exhibit, seed: int) -> list[str]:
    """Return what the check says of both versions, and minigrad of a user's mistake."""
    module = case.module
    answers = {
        "broken": case.caught(module.broken, seed) or "NOT CAUGHT",
        "repaired": case.caught(module.repaired, seed) or "passes",
    }
    if refusal := case.refused():
        answers["minigrad"] = refusal
    return [f"{version:10}{answer}" for version, answer in answers.items()]


def html(
    case: Exhibit,
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
    return fill(
        "museum/exhibit.html",
        head=head,
        place=place,
        drawing=drawing(seen(case, seed)),
        puzzle=puzzle(case),
        title=sentence(case.title),
        name=case.name,
        story=prose(case.story),
        lines=[(kinds[mark], mark, line) for mark, line in marked(case)],
        says=prose(inspect.getdoc(case.module.check) or ""),
        check=check,
        verdicts="\n".join(verdicts(case, seed)),
        repair=prose(case.module.REPAIR),
    )


def text(case: Exhibit, seed: int = 0) -> str:
    """Return an exhibit as text for a terminal."""
    module = case.module
    rows = []
    for what, *both in seen(case, seed):
        lines = [short_text(value).splitlines() for value in both]
        first, *more = zip(*lines, strict=True)
        rows.append([what, *first])
        rows += [["", *pair] for pair in more]
    check = "\n".join(f"     {line}" for line in source(module.check, docstring=False))
    answers = "\n".join(
        fill_lines(line, 97, subsequent_indent="          ") for line in verdicts(case, seed)
    )
    head = f"── {case.number} · {case.title} ".ljust(99 - len(case.name), "─")
    code = "\n".join(difference(source(module.broken), source(module.repaired)))
    symptom = printed(f"Symptom. {inspect.getdoc(module.symptom)}")
    table = columns(["", "broken", "repaired"], rows)
    says = printed(f"Check. {inspect.getdoc(module.check)}")
    repair = printed(f"Repair. {module.REPAIR}")
    return (
        f"{head} {case.name}\n{printed(case.story)}\n\n{code}\n\n{symptom}\n{table}\n\n"
        f"{says}\n{check}\n{indent(answers, '   ')}\n\n{repair}"
    )


# ---------------------------------------------------------------- its lines


@cache
def marked(case: Exhibit) -> list[tuple[str, Markup]]:
    """Return an exhibit's lines as HTML: - marks what is wrong, and + what repairs it."""
    broken = source(case.module.broken)
    repaired = source(case.module.repaired)
    ours, theirs = (iter(coloured("\n".join(lines), {})) for lines in (broken, repaired))
    lines = []
    for mark in (f"{line}    "[3] for line in difference(broken, repaired)):
        new = Markup("") if mark == "-" else next(theirs)
        lines.append((mark, new if mark == "+" else next(ours)))
    return lines


def puzzle(case: Exhibit) -> Markup:
    """Return an exhibit's function, each line a button. Beside a missing line, both are right."""
    lines = marked(case)
    buttons = []
    marks = "".join(mark for mark, _ in lines)
    for i, (mark, line) in enumerate(lines):
        lacks = "-" not in marks and "+" in marks[max(i - 1, 0) : i + 2]
        if lacks:
            answer = f"Yes, here a line is missing: {case.title}."
        elif mark == "-":
            answer = f"Yes: {case.title}."
        else:
            answer = "This line is right: the repaired version has it, too."
        if mark != "+" and line:
            buttons.append({"answer": answer, "right": lacks or mark == "-", "line": line})
    ask = "Click the line that is wrong." if "-" in marks else "Click where a line is missing."
    return fill("museum/puzzle.html", buttons=buttons, ask=ask)


# ---------------------------------------------------------------- the site's pages


def pages(book: Book) -> list[Page]:
    """Return the list of the exhibits, each by what it does, and a page for each."""
    cases = [exhibit(name) for name in NAMES]
    names = [("museum.html", "Museum")]
    names += [(f"exhibit-{case.number}.html", f"Exhibit {case.number}") for case in cases]
    claim, _, why = docstring(files()["museum"]).partition("\n")
    tiles = []
    for case in cases:
        meant = inline(inspect.getdoc(case.module.broken) or "")
        tiles.append(parts.tile(*names[case.number], meant, _symptom(case)))
    body = book.prose(why) + parts.tiles("The exhibits", tiles)
    hall = one_of("Museum", names, 0, "Sixteen mistakes, and no error", inline(claim), body)
    return [hall, *(_exhibit(book, case, names) for case in cases)]


def _symptom(case: Exhibit) -> Markup:
    """Return what is seen of an exhibit's mistake."""
    return inline(inspect.getdoc(case.module.symptom) or "")


def _exhibit(book: Book, case: Exhibit, names: Names) -> Page:
    address, name = names[case.number]
    file = Source(case.module.__name__, "", inspect.getsource(case.module))
    check = cast(ast.FunctionDef, file.defined["check"])  # (and not a variable of that name)
    text = range(check.body[0].lineno, check.body[0].end_lineno + 1)
    code = book.code(file, check.lineno, check.end_lineno, text)
    body = html(case, book.prose, code, "mistake", "h2")
    book.index.append((case.title, f"museum, exhibit {case.number}", address))
    return one_of("Museum", names, case.number, name, _symptom(case), body)


# ---------------------------------------------------------------- its symptom, drawn

SIDE = 205  # the width of a column; the left one is of the broken version
VERSIONS = (("this version", "--cross"), ("repaired", "--ink"))  # with their colours


def drawing(rows: Seen) -> Markup:
    """Return both versions side by side as an SVG, with a row for each thing measured."""
    same = lambda what: re.sub(r",.*|\d", "", what)  # (what measures the same has one scale)
    drawn = []
    sentences = []
    y = 22
    for what, broken, repaired in rows:
        alike = [x for other, *pair in rows for x in pair if same(other) == same(what)]
        numbers = [n for value in alike for n in _numbers(value) if np.isfinite(n)]
        low = min([0.0, *numbers])
        high = max([0.0, *numbers, low + 1e-9])
        cells = [_cell(value, low, high) for value in (broken, repaired)]
        drawn.append({"what": _label(what), "y": y, "cells": cells})
        y += 24 + max(cell["height"] for cell in cells)
        words = f"{_in_words(broken)} in this version, {_in_words(repaired)} repaired."
        sentences.append(f"{what}: {words}")
    return fill(
        "museum/drawing.html",
        rows=drawn,
        side=SIDE,
        height=y + 4,
        versions=VERSIONS,
        label=" ".join(sentences),
    )


def _numbers(value: Any) -> list[float]:
    """Return a value's numbers; an empty list for a shape, a truth value or words."""
    if isinstance(value, bool | tuple):
        return []
    if isinstance(value, str):
        value = value.replace("%", "").split()
    try:
        return np.ravel(value).astype(float).tolist()
    except ValueError:
        return []


def _cell(value: Any, low: float, high: float) -> dict[str, Any]:
    """Return what a drawing of a value needs: its kind, its height and its places.

    The numbers drawn go from low to high.
    """
    if _is_map(value):
        marked = {"true": _squares(value), "false": _squares(~value)}
        return {"kind": "map", "height": 14 * len(value), **marked}
    numbers = _numbers(value)
    finite = [x if np.isfinite(x) else 0.0 for x in numbers]
    label = _label(short_text(value))
    if len(numbers) < 2:
        width = round(120 * abs(finite[0]) / max(high, -low)) if finite else 0
        x = width + 6 if width else 0
        return {"kind": "bar", "height": 20, "width": width, "x": x, "label": label}
    step = 190 / len(numbers)
    *heights, zero = (8 + 52 * (high - x) / (high - low) for x in (*finite, 0.0))
    if len(numbers) > 20:
        points = " ".join(f"{step * i:.1f} {y:.1f}" for i, y in enumerate(heights))
        return {"kind": "line", "height": 78, "zero": zero, "points": points, "label": label}
    columns = [
        (step * i, y, f"{number:.2g}")
        for i, (number, y) in enumerate(zip(numbers, heights, strict=True))
    ]
    return {"kind": "columns", "height": 78, "zero": zero, "step": step, "columns": columns}


def _is_map(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == bool


def _squares(value: Any) -> str:
    """Return the path of a square at each place that is true."""
    return "".join(f"M{14 * j} {14 * i + 4}h12v12h-12z" for i, j in np.argwhere(value))


def _label(text: str) -> Markup:
    """Return a text of the drawing, in which d_k has its index."""
    return Markup(D_K).join(re.split(r"\bd_k\b", text))


def _in_words(value: Any) -> str:
    """Return a value in words, for the picture's label; of a map, how many are true in each row."""
    if _is_map(value):
        return f"{' '.join(map(str, value.sum(axis=-1)))} of a row's {len(value)}"
    return short_text(value)
