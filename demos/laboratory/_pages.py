"""Laboratory · Pages: those of Explore, where a reader moves a picture of attention's gradient.

The pages are in `explore/` and their longer texts in `explore.md`. What they need is computed
here by minigrad.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from attention import attention
from attention.scaling import typical_query
from demos._files import docstring, files, seconds
from demos.laboratory import _gpt, explorable
from demos.pages.book import Book
from demos.pages.page import Page
from demos.pages.templates import ENVIRONMENT, fill, parts
from demos.pages.text import inline, sections
from demos.pictures import kept, softmax
from demos.pictures.bars import bars
from minigrad import Steps, Tensor
from minigrad.runs.saving import write_whole

HERE = Path(__file__).parent
PAGES = ("explore", "softmax", "way-back", "why_half", "gpt")  # of explore/
# An exponent as text, its value, and a colour.
LINES = (("0", 0.0, "cross"), ("½", 0.5, "ink"), ("¾", 0.75, "soft"))


def lines() -> Markup:
    """Return the median of ‖∂L/∂q‖ over d_k at three exponents of the scale, as a picture."""
    drawn = explorable.draws(0)
    curves = []
    for name, a, colour in LINES:
        medians = [explorable.measure(drawn, d_k, a).median for d_k in explorable.D_KS[::2]]
        heights = [8 - 46 * math.log10(x) for x in medians]
        points = " ".join(f"{15 + 48 * i},{y:.1f}" for i, y in enumerate(heights))
        end = f"{heights[-1] + 4:.1f}"
        curves.append({"name": name, "colour": colour, "points": points, "end": end})
    return fill("laboratory/lines.html", curves=curves)


def learns() -> Markup:
    """Return a paragraph for each training: a link to its page, what it shows, and its command."""
    paragraphs = []
    for name in ("reverse", "induction"):
        path = files()[name]
        title, _, says = docstring(path).partition("\n")[0].partition(": ")
        how = parts.code(f"python -m demos {name}") + f", {seconds(path)} s"
        paragraphs.append((parts.link(f"demo-{name}.html", inline(title)), inline(says), how))
    return fill("laboratory/learns.html", paragraphs=paragraphs)


def write_explorables(folder: Path, sources: Mapping[str, str]) -> None:
    """Write the scripts, and the pages that step: a head with the scale and without it, a GPT.

    `sources` has the address of each file's page, to which a step's line is a link.
    """
    d_k, keys, seed = softmax.CASES["extreme"]
    q, k, v, g = typical_query(d_k, keys=keys, rng=np.random.default_rng(seed))
    both = []
    for scale in (None, 1.0):
        inputs = [
            Tensor(array, requires_grad=True, name=name)
            for name, array in {"q": q, "k": k, "v": v}.items()
        ]
        with Steps() as steps:
            loss = (attention(*inputs, scale=scale) * Tensor(g, name="r")).sum()
        steps.backward(loss)
        both.append(steps)
    titles = ("with the scale", "without the scale")
    limits = (1e-6, 1.0)
    title = f"One head over {keys} keys, an extreme case: with the scale 1/√{d_k} and without it"
    both[0].save(
        folder / "step.html",
        beside=both[1],
        titles=titles,
        title=title,
        limits=limits,
        sources=sources,
    )
    title = f"A GPT of {_gpt.BLOCKS} blocks"
    stepped = folder / _gpt.STEPPED
    _gpt.steps().save(stepped, title=title, limits=_gpt.limits(), sources=sources)
    _, script, style = explorable.parts(0)
    write_whole(folder / "why_half.js", f'"use strict";\n{{\n{script}\n}}\n'.encode())
    ours = ":root { --on: var(--ink); --box: var(--raised); }\n"
    write_whole(folder / "why_half.css", (ours + style).encode())


def pages(book: Book) -> list[Page]:
    """Return the pages of Explore."""
    text = (HERE / "explore.md").read_text("utf-8")
    values = sections(text, book.links) | {
        "bars": Markup(bars()),
        "lines": lines(),
        "learns": learns(),
        "belongs": book.links("chapters 3.6, 11 and 16"),
        "by_hand": softmax.by_hand(),
        "softmax": softmax.texts(book.links)["softmax"],
        "columns": _gpt.columns(),
        "picture": kept,
        "explorable": Markup(explorable.parts(0)[0]),
    }
    pages = []
    for name in PAGES:
        page: Any = ENVIRONMENT.get_template(f"laboratory/explore/{name}.html").make_module(values)
        kind = f"explore {name}"
        pages.append(Page(f"{name}.html", page.title, [Markup(page)], page.says, "Explore", kind))
    return pages
