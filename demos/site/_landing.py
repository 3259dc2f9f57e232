"""Site · Landing: the question, the picture, and the ways into the book."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from demos._files import files
from demos.learn._pages import answer_to_mistake
from demos.museum._pages import puzzle
from demos.museum.exhibits import exhibit
from demos.pages.page import Page
from demos.pages.templates import fill, parts
from demos.pages.text import formula, inline
from demos.pictures import forces
from demos.pictures.bars import bars
from demos.site._book import Book

FINDINGS = (  # sentences of chapter 16, where a test finds them
    "A product q·k is a sum of d_k independent terms of mean 0 and variance 1, so Var(q·k) = d_k.",
    "At d_k = 64, the width of the paper's heads, a typical gradient is *larger* without the "
    "scale, except with a handful of keys.",
    "So from variance 1, without the scale, a head's query gradients are unequal before it has "
    "found its key, and after that most queries get next to none.",
)


def landing(book: Book) -> Page:
    """Return the first page."""
    chapters = book.chapters
    idea, rules = book.files["minigrad.idea"], book.files["minigrad.ops.softmaxes"]
    loop: Any = idea.defined["backward"]
    skip = range(loop.body[0].lineno, loop.body[0].end_lineno + 1)
    rule = next(line.strip() for line in rules.lines if "lambda g, y: y * (g" in line)
    answer = answer_to_mistake("e13_softmax")
    told = answer.said.splitlines()[1:]  # (the first line says which input was checked)
    html = fill(
        "site/landing.html",
        idea=chapters["0"].page,
        attention=chapters["11"].page,
        softmax=chapters["3.6"].page,
        why=chapters["16"].page,
        chapters=len(chapters),
        demos=len(files()),
        minutes=sum(x.minutes for x in book.evening),
        forces=forces.figure(forces.FIRST, chapters["16"].page)
        + parts.script("pictures/forces.js"),
        loop=book.code(idea, loop.lineno, loop.end_lineno, skip),
        formula=formula,
        rule=rule,
        bars=Markup(bars()),
        told="\n\n".join(told),
        evening=book.evening,
        exhibit=puzzle(exhibit("wrong_axis")),
        findings=[inline(text, book.links) for text in FINDINGS],
    )
    says = "An autograd engine in NumPy, and attention on top of it, as a book of linked pages."
    return Page("index.html", "How does a gradient get back through attention?", [html], says)
