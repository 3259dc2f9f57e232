"""Site · Explore: softmax moved by hand, both passes step by step, and cards that lead to them.

The pages are in `explore.html` and their longer texts in `explore.md`. What both need is computed
here by minigrad. `softmax.html` is on the page of chapter 3.6 too, and `softmax.js` computes the
same in the browser, at each move.
"""

from __future__ import annotations

import math
import re
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
from demos.site._landing import bars
from demos.site._templates import FOLDER, Links, Page, data, fill, formula, inline, markdown
from minigrad import Steps, Tensor, gradients, softmax
from minigrad.runs.saving import write_whole

# d_k, keys, and the seed of a query: one with the factors that README's first picture has.
CASES = {"extreme": (512, 5, 39), "usual": (64, 64, 233)}
SETTINGS = np.linspace(0, 1, 101)  # of the slider; the scale is d_k^(setting - 1)
SCALES = {"1/d_k": 0, "1/√d_k": 50, "1, no scale": 100}  # and their places among the settings
NAMES = {"x": "x", "y": "y", "g": "g", "departures": "g - ⟨y, g⟩", "of_x": "∂L/∂x"}
LINES = (("0", 0.0, "cross"), ("½", 0.5, "ink"), ("¾", 0.75, "soft"))  # exponent, colour


def measured(d_k: int, keys: int, seed: int) -> dict[str, Any]:
    """Return a query's rows at each setting, the RMS at x and q, and what softmax.js is given."""
    q, k, v, g = typical_query(d_k, keys=keys, rng=np.random.default_rng(seed))
    scales = float(d_k) ** (SETTINGS[:, None] - 1)
    x = Tensor(scales * (q @ k.T), requires_grad=True)  # (101, n)
    y = softmax(x)
    of_y = np.broadcast_to(g @ v.T, x.shape)
    (of_x,) = gradients(y, [x], of_y)
    departures = of_y - (y.data * of_y).sum(axis=-1, keepdims=True)
    rows = {"x": x.data, "y": y.data, "g": of_y, "departures": departures, "of_x": of_x}
    sizes = [np.sqrt((each**2).mean(axis=-1)) for each in (of_x, scales * of_x @ k)]
    styles, span = {}, np.ptp(of_y) + np.ptp(departures)
    for name, values in rows.items():  # a row keeps its unit; a departure has the same as g
        low, high = min(values.min(), 0), max(values.max(), 0)
        height = 115 * (high - low) / span if name in ("g", "departures") else 54
        styles[name] = f"--low:{low:.6g};--high:{high:.6g};--height:{height:.0f}px"
    given = {"d_k": d_k, "raw": (k @ q[0]).tolist(), "g": of_y[0].tolist(), "styles": styles}
    given["products"] = [[float(f"{x:.12g}") for x in row] for row in k @ k.T]
    return {"rows": rows, "sizes": sizes, "given": given}


def times(ratio: float) -> str:
    """Return a ratio with two digits: "5.4", or "1/30,000"."""
    return f"{ratio:.2g}" if ratio > 0.095 else f"1/{float(f'{1 / ratio:.2g}'):,.0f}"


def still(found: dict[str, Any]) -> str:
    """Return a query's rows at three scales as a table, for a reader without JavaScript."""
    shown = []
    for scale, at in SCALES.items():
        of_x, of_q = (formula(_short(size[at])) for size in found["sizes"])
        said = f"c = {formula(scale)}: RMS at the scores {of_x}, at q {of_q}"
        shown.append(f'<tr><th colspan="6" scope="rowgroup">{said}</th></tr>')
        for name, values in found["rows"].items():
            cells = "".join(f'<td class="number">{formula(_short(x))}</td>' for x in values[at])
            shown.append(f'<tr><th scope="row">{formula(NAMES[name])}</th>{cells}</tr>')
    return f'<div class="formula" tabindex="0"><table>{"".join(shown)}</table></div>'


def _short(x: float) -> str:
    """Return a number with three digits, a small one with a power of ten."""
    return re.sub(r"e-0*", "·10^-", f"{x:.3g}")


def lines() -> str:
    """Return the median of ‖∂L/∂q‖ over d_k at three exponents of the scale, as a picture."""
    drawn, shown = explorable.draws(0), ""
    for name, a, colour in LINES:
        medians = [explorable.measure(drawn, d_k, a).median for d_k in explorable.D_KS[::2]]
        heights = [8 - 46 * math.log10(x) for x in medians]
        way = " ".join(f"{15 + 48 * i},{y:.1f}" for i, y in enumerate(heights))
        ink = f"var(--{colour})"
        shown += f'<polyline points="{way}" fill="none" stroke="{ink}" stroke-width="3"/>'
        shown += f'<text x="215" y="{heights[-1] + 4:.1f}" fill="{ink}">'
        shown += f'<tspan font-style="italic">a</tspan> = {name}</text>'
    return f'<svg class="lines" viewBox="0 0 260 140" aria-hidden="true">{shown}</svg>'


def learns(folder: Path) -> str:
    """Return a paragraph for each training: a link to its page if it has run, else its command."""
    found = []
    for name in ("reverse", "induction"):
        docstring, page = said(files()[name]), f"demos/{name}/index.html"
        title, _, says = docstring.partition("\n")[0].partition(": ")
        how = f"<code>python -m demos {name}</code>, {seconds(docstring)} s"
        if (folder / page).exists():
            how = f'<a href="{page}">Its page</a>'
        found.append(f"<p><b>{inline(title)}</b>: {inline(says)}<br>{how}</p>")
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
            loss = (attention(*inputs, scale=scale) * Tensor(g, name="r")).sum()
        steps.backward(loss)
        both.append(steps)
    titles, limits = ("with the scale", "without the scale"), (1e-6, 1.0)
    title = f"One head over {keys} keys, an extreme case: with the scale 1/√{d_k} and without it"
    both[0].save(folder / "step.html", beside=both[1], titles=titles, title=title, limits=limits)
    _, script, style = explorable.parts(0)
    write_whole(folder / "why_half.js", f'"use strict";\n{{\n{script}\n}}\n'.encode())
    ours = ":root { --on: var(--ink); --box: var(--raised); }\n"
    write_whole(folder / "why_half.css", (ours + style).encode())


def by_hand() -> str:
    """Return softmax to be moved by hand, for its page and for chapter 3.6."""
    return fill("softmax", **texts(formula))


def texts(links: Links) -> dict[str, str]:
    """Return the texts of `explore.md` as HTML, and what else softmax's part is filled with."""
    cases = {name: measured(*case) for name, case in CASES.items()}
    given = data([case["given"] for case in cases.values()])
    found = {"still": still(cases["extreme"]), "cases": given}
    for name, case in cases.items():
        (x, raw_x), (q, raw_q) = (size[[50, 100]] for size in case["sizes"])
        found |= {f"{name}_x": times(raw_x / x), f"{name}_q": times(raw_q / q)}
        found |= {f"{name}_size": f"{x:.3g}", f"{name}_root": f"{CASES[name][0] ** 0.5:.3g}"}
        found[f"{name}_fewer"] = f"{float(f'{x / raw_x:.2g}'):,.0f}"
    text = Template((FOLDER / "explore.md").read_text(encoding="utf-8")).substitute(found)
    parts = re.split(r"^# (\w+)\n", text, flags=re.MULTILINE)[1:]
    return found | {k: markdown(v, links) for k, v in zip(parts[::2], parts[1::2], strict=True)}


def explore(book: Book, folder: Path) -> list[Page]:
    """Return the pages of Explore; the site's folder says which demos have run."""
    found = texts(book.links) | {
        "bars": bars(),
        "lines": lines(),
        "learns": learns(folder),
        "belongs": book.links("chapters 3.6, 11 and 16"),
        "by_hand": by_hand(),
        "explorable": explorable.parts(0)[0],
    }
    parts = iter(re.split(r"<!-- (\S+)\.html · (.+?) · (.+) -->\n", fill("explore", **found))[1:])
    return [
        Page(f"{name}.html", title, [body], says, "Explore", f"explore {name}")
        for name, title, says, body in zip(parts, parts, parts, parts, strict=True)
    ]
