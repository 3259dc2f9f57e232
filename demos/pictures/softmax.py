"""Pictures · Softmax moved by hand, with a guess first (chapter 3.6 and Explore).

Its texts are in `softmax.md`. `softmax.js` computes the same in the browser, at each move.
"""

from __future__ import annotations

import re
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
from markupsafe import Markup

from attention.scaling import typical_query
from demos.pages.page import data
from demos.pages.templates import fill, parts
from demos.pages.text import Links, formula, inline, sections
from minigrad import Tensor, gradients, softmax

HERE = Path(__file__).parent
# d_k, keys, and the seed of a query: one with the factors of chapter 16's two pictures.
CASES = {"extreme": (512, 5, 39), "usual": (64, 64, 233)}
SETTINGS = np.linspace(0, 1, 101)  # of the slider; the scale is d_k^(setting - 1)
SCALES = {"1/d_k": 0, "1/√d_k": 50, "1, no scale": 100}  # and their places among the settings
NAMES = {"x": "x", "y": "y", "g": "g", "departures": "g - ⟨y, g⟩", "of_x": "∂L/∂x"}
BEFORE = """Softmax turns scores x into weights y. Here the scores are a scale c times the products
q·k of a query with its keys, each of d_k numbers (chapter 11)."""


def picture() -> str:
    """Return the part that both pages have, and where it is explained further."""
    link = parts.link("softmax.html", "What the scale does behind softmax")
    return parts.paragraph(inline(BEFORE)) + by_hand() + parts.paragraph(link, "after")


def by_hand() -> Markup:
    """Return softmax to be moved by hand, for its page and for chapter 3.6."""
    return fill("pictures/softmax.html", **texts(formula))


def texts(links: Links) -> dict[str, Any]:
    """Return the texts of `softmax.md` as HTML, and what else softmax's part is filled with."""
    cases = {name: measured(*case) for name, case in CASES.items()}
    given = data([case["given"] for case in cases.values()])
    values: dict[str, Any] = {"still": still(cases["extreme"]), "cases": Markup(given)}
    for name, case in cases.items():
        (x, raw_x), (q, raw_q) = (size[[50, 100]] for size in case["sizes"])
        values[f"{name}_x"] = times(raw_x / x)
        values[f"{name}_q"] = times(raw_q / q)
        values[f"{name}_size"] = f"{x:.3g}"
        values[f"{name}_root"] = f"{CASES[name][0] ** 0.5:.3g}"
        values[f"{name}_fewer"] = f"{float(f'{x / raw_x:.2g}'):,.0f}"
    text = Template((HERE / "softmax.md").read_text(encoding="utf-8")).substitute(values)
    return values | sections(text, links)


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
    sizes = [np.sqrt((gradient**2).mean(axis=-1)) for gradient in (of_x, scales * of_x @ k)]
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


def still(case: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Return a query's RMS at x and q and its rows at three scales, for a table."""
    tables = []
    for scale, at in SCALES.items():
        of_x, of_q = (_short(size[at]) for size in case["sizes"])
        rows = []
        for name, values in case["rows"].items():
            rows.append((formula(NAMES[name]), [_short(x) for x in values[at]]))
        tables.append((formula(scale), of_x, of_q, rows))
    return tables


def _short(x: float) -> Markup:
    """Return a number with three digits, a small one with a power of ten."""
    return formula(re.sub(r"e-0*", "·10^-", f"{x:.3g}"))
