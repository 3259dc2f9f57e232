"""Site · Landing: the question, the picture, and the ways into the book."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from attention.scaling import typical_query
from demos import files
from demos.learn._mistakes import mistaken
from demos.learn._running import judged
from demos.learn.exercises import FOLDER as EXERCISES
from demos.site._chapters import Book
from demos.site._contents import PICTURES
from demos.site._templates import Page, fill, formula, inline
from minigrad import Tensor, gradients, softmax

FINDINGS = (  # sentences of chapter 16, where a test finds them
    "A product q·k is a sum of d_k terms of mean 0 and variance 1, so Var(q·k) = d_k.",
    "At d_k = 64, the width of the paper's heads, a typical gradient is *larger* without the "
    "scale, except with a handful of keys.",
    "With it a head of any width starts at the same place, and the gradients of its queries are "
    "much more alike.",
)


def landing(book: Book, exhibit: str) -> Page:
    """Return the first page; `exhibit` is the HTML of one exhibit."""
    chapters = book.chapters
    evening = [each for each in chapters.values() if each.star]
    idea, rules = book.files["minigrad.idea"], book.files["minigrad.ops.softmaxes"]
    loop: Any = idea.defined["backward"]
    skip = range(loop.body[0].lineno, loop.body[0].end_lineno + 1)
    rule = next(line.strip() for line in rules.lines if "lambda g, y: y * (g" in line)
    answer = judged(EXERCISES / "e13_softmax.py", "e13_softmax", mistaken("e13_softmax"))
    told = answer.said.splitlines()[1:]  # (the first line says which input was checked)
    stop = '<li><a href="{}"><b>{}</b> {}</a> <small>{} min</small></li>'
    stations = (stop.format(x.page, x.number, formula(x.title), x.minutes) for x in evening)
    text = fill(
        "landing",
        idea=chapters["0"].page,
        attention=chapters["11"].page,
        softmax=chapters["3.6"].page,
        why=chapters["16"].page,
        chapters=len(chapters),
        demos=len(files()),
        stars=len(evening),
        minutes=sum(x.minutes for x in evening),
        alt=escape(PICTURES["11"][1]),
        loop=book.code(idea, loop.lineno, loop.end_lineno, skip),
        formula=formula("∂L/∂x = y ⊙ (g - ⟨y, g⟩)"),
        rule=escape(rule, quote=False),
        bars=bars(),
        told=escape("\n\n".join(told), quote=False),
        evening="".join(stations),
        exhibit=exhibit,
        scale=formula("1/√d_k"),
        findings="".join(f'<p class="card">{inline(x, book.links)}</p>' for x in FINDINGS),
    )
    says = "An autograd engine in NumPy, and attention on top of it, as a book of linked pages."
    return Page("index.html", "How does a gradient get back through attention?", [text], says)


def bars() -> str:
    """Return a picture: the weights of a query above, and the gradient at its scores below."""
    q, k, v, g = typical_query(512, keys=5, rng=np.random.default_rng(0))
    scores = Tensor((q @ k.T / np.sqrt(512)).ravel(), requires_grad=True)
    weights = softmax(scores)
    (back,) = gradients(weights, [scores], (g @ v.T).ravel())
    bar = '<rect class="{}" x="{}" y="{:.1f}" width="36" height="{:.1f}"/>'
    shown = ""
    for i, (weight, gradient) in enumerate(zip(130 * weights.data, 130 * back, strict=True)):
        shown += bar.format("forward", 10 + 46 * i, 60 - weight, weight)
        shown += bar.format("backward", 10 + 46 * i, 95 - max(gradient, 0), abs(gradient))
    return f'<svg viewBox="0 0 240 150" aria-hidden="true">{shown}</svg>'
