"""Site · Explore: softmax moved by hand, both passes step by step, and cards that lead to them.

The pages are in `explore.html` and their longer texts in `explore.md`. What both need is computed
here by minigrad. `softmax.js` computes the same in the browser, at each move.
"""

from __future__ import annotations

import json
import math
import re
import shutil
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from attention import attention
from attention.scaling import typical_query
from demos import files
from demos.__main__ import said, seconds
from demos.laboratory import explorable
from demos.site._chapters import Book
from demos.site._landing import _bars
from demos.site._templates import Page, formula, inline, markdown
from minigrad import Steps, Tensor, gradients, softmax
from minigrad.runs.saving import write_whole

FOLDER = Path(__file__).parent
CASES = {"extreme": (512, 5, 0), "usual": (64, 64, 21)}  # d_k, keys, and the seed of a query
SCALES = {"1/d_k": 1.0, "1/√d_k": 0.5, "1, no scale": 0.0}  # the exponent a of d_k^-a
LINES = (("0", 0.0, "cross"), ("½", 0.5, "ink"), ("¾", 0.75, "soft"))


def data(found: object) -> str:
    """Return JSON for a page, in which nothing can end the script element around it."""
    return json.dumps(found, separators=(",", ":")).replace("<", "\\u003c")


def query(d_k: int, keys: int, seed: int) -> dict[str, Any]:
    """Return what softmax.js needs of a query: q·k, g = ∂L/∂y, and the products of its keys."""
    q, k, v, g = typical_query(d_k, keys=keys, rng=np.random.default_rng(seed))
    products = [[float(f"{x:.12g}") for x in row] for row in k @ k.T]
    return {"d_k": d_k, "raw": (k @ q[0]).tolist(), "g": (v @ g[0]).tolist(), "products": products}


def passes(d_k: int, keys: int, seed: int, a: float) -> tuple[dict[str, Any], float, float]:
    """Return both passes of a query's softmax, row by row, and the gradient's RMS at x and at q."""
    q, k, v, g = typical_query(d_k, keys=keys, rng=np.random.default_rng(seed))
    q = Tensor(q, requires_grad=True)
    x = (q @ k.T) * float(d_k) ** -a
    y = softmax(x)
    of_y = g @ v.T
    of_q, of_x = gradients(y, [q, x], of_y)
    departures = of_y - y.data @ of_y.T
    rows = {"x": x.data, "y": y.data, "g - ⟨y, g⟩": departures, "∂L/∂x": of_x}
    return rows, *(float(np.sqrt((each**2).mean())) for each in (of_x, of_q))


def times(ratio: float) -> str:
    """Return a ratio with two digits: "5.4", or "1/30,000"."""
    return f"{ratio:.2g}" if ratio > 0.095 else f"1/{float(f'{1 / ratio:.2g}'):,.0f}"


def still() -> str:
    """Return the extreme case at three scales as a table, for a reader without JavaScript."""
    rows = []
    for scale, a in SCALES.items():
        found, at_x, at_q = passes(*CASES["extreme"], a)
        sizes = f"RMS at the scores {at_x:.3g}, at q {at_q:.3g}"
        rows.append(f'<tr><th colspan="6" scope="rowgroup">c = {formula(scale)}: {sizes}</th></tr>')
        for name, values in found.items():
            cells = "".join(f'<td class="number">{x:.3g}</td>' for x in values[0])
            rows.append(f'<tr><th scope="row">{formula(name)}</th>{cells}</tr>')
    return f'<div class="formula" tabindex="0"><table>{"".join(rows)}</table></div>'


def lines() -> str:
    """Return the median of ‖∂L/∂q‖ over d_k at three exponents of the scale, as a picture."""
    drawn, shown = explorable.draws(0), []
    for name, a, colour in LINES:
        medians = [explorable.measure(drawn, d_k, a).median for d_k in explorable.D_KS[::2]]
        points = [(15 + 48 * i, 8 - 46 * math.log10(x)) for i, x in enumerate(medians)]
        way = " ".join(f"{x},{y:.1f}" for x, y in points)
        shown.append(
            f'<polyline points="{way}" fill="none" stroke="var(--{colour})" stroke-width="3"/>'
            f'<text x="215" y="{points[-1][1] + 4:.1f}" fill="var(--{colour})"><tspan font-style="italic">a</tspan> = {name}</text>'
        )
    return f'<svg class="lines" viewBox="0 0 260 140" aria-hidden="true">{"".join(shown)}</svg>'


def learns(folder: Path) -> str:
    """Return a paragraph for each training: a link to its page if it has run, else its command."""
    found = []
    for name in ("reverse", "induction"):
        docstring, page = said(files()[name]), f"demos/{name}/index.html"
        title, _, says = docstring.partition("\n")[0].partition(": ")
        how = f"<code>python -m demos {name}</code>, {seconds(docstring)} s"
        if (folder / page).exists():
            how = f'<a href="{page}">Its page</a>'
        found.append(f"<p><b>{inline(title)}</b>: {inline(says)} {how}</p>")
    return "".join(found)


def write_explorables(folder: Path) -> None:
    """Write the scripts, and the page that steps through a head with the scale and without it."""
    d_k, keys, seed = CASES["extreme"]
    q, k, v, g = typical_query(d_k, keys=keys, rng=np.random.default_rng(seed))
    both = []
    for scale in (None, 1.0):
        inputs = [
            Tensor(x, requires_grad=True, name=n) for x, n in zip((q, k, v), "qkv", strict=True)
        ]
        with Steps() as steps:
            loss = (attention(*inputs, scale=scale) * Tensor(g, name="g")).sum()
        steps.backward(loss)
        both.append(steps)
    titles, limits = ("with 1/√d_k", "without the scale"), (1e-6, 1.0)
    title = f"One head at d_k = {d_k}, with the scale and without it"
    both[0].save(folder / "step.html", beside=both[1], titles=titles, title=title, limits=limits)
    _, script, style = explorable.parts(0)
    write_whole(folder / "why_half.js", f'"use strict";\n{{\n{script}\n}}\n'.encode())
    ours = ":root { --on: var(--ink); --box: var(--raised); }\n"
    write_whole(folder / "why_half.css", (ours + style).encode())
    shutil.copyfile(FOLDER / "softmax.js", folder / "softmax.js")


def explore(book: Book, folder: Path) -> list[Page]:
    """Return the pages of Explore; write into the site's folder what they ask for."""
    write_explorables(folder)
    found: dict[str, str] = {}
    for name, (d_k, keys, seed) in CASES.items():
        (_, x, q), (_, raw_x, raw_q) = (passes(d_k, keys, seed, a) for a in (0.5, 0.0))
        found |= {f"{name}_size": f"{x:.3g}", f"{name}_root": f"{d_k**0.5:.3g}"}
        found |= {f"{name}_x": times(raw_x / x), f"{name}_q": times(raw_q / q)}
        found[f"{name}_fewer"] = f"{float(f'{x / raw_x:.2g}'):,.0f}"
    text = Template((FOLDER / "explore.md").read_text(encoding="utf-8")).substitute(found)
    parts = re.split(r"^# (\w+)\n", text, flags=re.MULTILINE)[1:]
    found |= {k: markdown(v, book.links) for k, v in zip(parts[::2], parts[1::2], strict=True)}
    found |= {"bars": _bars(), "lines": lines(), "learns": learns(folder), "still": still()}
    found["cases"] = data([query(*case) for case in CASES.values()])
    found["explorable"] = explorable.parts(0)[0]
    html = Template((FOLDER / "explore.html").read_text(encoding="utf-8")).substitute(found)
    pages = iter(re.split(r"<!-- (\S+) · (.+?) · (.+) -->\n", html)[1:])
    return [
        Page(file, title, [body], says, "Explore", f"explore {file.partition('.')[0]}")
        for file, title, says, body in zip(pages, pages, pages, pages, strict=True)
    ]
