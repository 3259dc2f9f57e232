"""Site · Landing: the question, the picture, and the ways into the book."""

from __future__ import annotations

import ast
from html import escape

import numpy as np

from attention.scaling import typical_query
from demos.site._chapters import Book
from demos.site._templates import Page, formula, inline
from minigrad import GradientError, Tensor, gradcheck, gradients, primitive, softmax

FINDINGS = (  # sentences of chapter 16, where a test finds them
    "Softmax of scores that far apart puts nearly all weight on one key.",
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
    loop = idea.defined["backward"]
    assert isinstance(loop, ast.FunctionDef)
    skip = range(loop.body[0].lineno, (loop.body[0].end_lineno or 0) + 1)
    said = escape("\n\n".join(_told()))
    stations = "".join(
        f'<li><a href="{x.page}"><b>{x.number}</b> {formula(x.title)}</a> '
        f"<small>{x.minutes} min</small></li>"
        for x in evening
    )
    tools = len(book.files) - len(chapters)
    body = [
        '<section class="hero"><div><h1>How does a gradient get back through attention?</h1>'
        '<p class="sub">A book whose pages are its source code: an autograd engine in NumPy, and '
        "attention on top of it. Every derivative is derived where it stands, and every number is "
        "computed.</p><p>"
        f'<a class="button main" href="{chapters["0"].page}">Start: the idea in forty lines</a> '
        f'<a class="button" href="{chapters["11"].page}">The answer: five lines</a></p>'
        f'<p class="facts"><span>{len(chapters)} chapters, {len(evening)} for an evening</span>'
        f"<span>24 exercises that answer back</span><span>{tools} tools</span>"
        "<span>one dependency: NumPy</span></p></div>"
        '<figure><picture><source media="(max-width: 500px)" srcset="pictures/hero_narrow.svg">'
        '<img src="pictures/hero.svg" alt="The gradient on its way from the loss back to the query '
        "q, without the scale divided by with it: equal down to the weights. At q it is 4.7 times "
        'larger with 64 keys at d_k = 64, and 2,000 times smaller with 5 keys at d_k = 512.">'
        "</picture></figure></section>",
        '<section class="two"><div><h2>Three things are enough</h2>'
        "<p>A <b>value</b> remembers its inputs. For each input it keeps one <b>function</b>. It "
        "takes the gradient of the value and returns what the value contributes to the gradient of "
        "the input. And a <b>loop</b> goes from the loss back to older and older values.</p>"
        f'<p>That is all of it: <a href="{chapters["0"].page}">chapter 0</a> differentiates '
        "attention with it. The rest of the book is there because these lines lack something, and "
        "a chapter that replaces one of them begins with that line.</p></div>"
        f"<div>{book.code(idea, loop.lineno, loop.end_lineno or 0, skip)}</div></section>",
        '<section><h2>Read it, move it, do it</h2><div class="cards">'
        f'<div class="card"><a class="picture" href="{chapters["3.6"].page}#softmax" '
        'aria-label="Read the chapter on softmax">'
        f'<div class="formula">{formula("∂L/∂x = y ⊙ (g - ⟨y, g⟩)")}</div>'
        f"<code>{rules.lines[62].strip()}</code></a><h3>Read</h3><p>The prose at the left is the "
        "docstring, the code at the right is the file that runs. Nothing was copied.</p></div>"
        '<div class="card"><a class="picture" href="softmax.html" aria-label="Move softmax">'
        f"{_bars()}</a><h3>Move</h3><p>Take the scale out, and see which factor becomes 0. Step "
        '<a href="explore.html">through both passes</a> of a head.</p></div>'
        '<div class="card"><a class="picture" href="exercise-13.html" aria-label="Do exercise 13">'
        f'<pre class="plain">{said}</pre></a><h3>Do</h3><p>Write the rules in your own editor. '
        '<a href="exercises.html">Exercises</a> say what is wrong with a derivative.</p></div>'
        "</div></section>",
        f"<section><h2>An evening: {len(evening)} chapters, "
        f"{sum(x.minutes for x in evening)} minutes</h2><p>Python, the chain rule and products of "
        f'matrices are enough to begin with.</p><ol class="route">{stations}</ol></section>',
        '<section class="two"><div><h2>Sixteen mistakes. None of them raises an error.</h2>'
        '<p>The shape is right, and something is wrong. <a href="museum.html">The museum</a> has '
        "each with its symptom, and with a check of a few lines that catches it.</p>"
        f"<p><b>Which line is wrong?</b></p></div><div>{exhibit}</div></section>",
        f'<section><h2>What is true about {formula("1/√d_k")}</h2><div class="cards">'
        + "".join(f'<p class="card">{inline(text, book.links)}</p>' for text in FINDINGS)
        + f'</div><p><a href="{chapters["16"].page}">Chapter 16</a> measures it.</p></section>',
    ]
    says = "An autograd engine in NumPy, and attention on top of it, as a book of linked pages."
    return Page("index.html", "How does a gradient get back through attention?", body, says)


def _told() -> list[str]:
    """Return what `gradcheck` says of a softmax that forgets that its elements are coupled."""

    @primitive(name="softmax")
    def wrong(x, /):  # type: ignore[no-untyped-def]
        e = np.exp(x)
        return e / e.sum(axis=-1, keepdims=True), lambda g, y: g * y * (1 - y)

    try:
        gradcheck(wrong, np.random.default_rng(0).standard_normal((3, 5)))
    except GradientError as error:
        return [x for x in str(error).splitlines() if x.startswith(("The rule ", "The value "))]
    raise AssertionError("a wrong rule was not found")


def _bars() -> str:
    """Return the weights of one query, above, and the gradient at its scores, below, as an SVG."""
    q, k, v, g = typical_query(512, keys=5, rng=np.random.default_rng(0))
    scores = Tensor((q @ k.T / np.sqrt(512)).ravel(), requires_grad=True)
    weights = softmax(scores)
    (back,) = gradients(weights, [scores], (g @ v.T).ravel())
    bars = []
    for i, (weight, gradient) in enumerate(zip(weights.data, back, strict=True)):
        up, down = 130 * weight, 130 * abs(gradient)
        x, top = 10 + 46 * i, 95 - down if gradient > 0 else 95
        bars.append(
            f'<rect class="forward" x="{x}" y="{60 - up:.1f}" width="36" height="{up:.1f}"/>'
        )
        bars.append(
            f'<rect class="backward" x="{x}" y="{top:.1f}" width="36" height="{down:.1f}"/>'
        )
    return f'<svg viewBox="0 0 240 150" aria-hidden="true">{"".join(bars)}</svg>'
