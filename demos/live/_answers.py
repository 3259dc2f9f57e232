"""Live · Answers: the numbers and the picture of a verdict."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from minigrad import Graph

COLUMNS = 6  # of a row that are shown


def compared(what: str, yours: Any, moving: Any) -> dict[str, Any]:
    """Return the rows of two arrays beside each other, the worst first, with their sums."""
    columns = yours.shape[-1] if yours.ndim else 1
    pairs = list(zip(yours.reshape(-1, columns), moving.reshape(-1, columns), strict=True))
    largest = np.abs(np.concatenate([yours.ravel(), moving.ravel()])).max()
    digits = int(np.clip(3 - np.ceil(np.log10(largest)), 0, 6)) if largest > 0 else 1

    def text(x: float) -> str:
        rounded = f"{x:.{digits}f}"
        return rounded.removeprefix("-") if float(rounded) == 0 else rounded

    rows = []
    worst_first = sorted(range(len(pairs)), key=lambda n: -np.abs(np.subtract(*pairs[n])).sum())
    for n in worst_first:
        a, b = pairs[n]
        place = f"row {n}" if len(pairs) > 1 else ""
        yours, moving = ([text(x) for x in part[:COLUMNS]] for part in (a, b))
        sums = [text(a.sum()), text(b.sum())]
        rows.append({"place": place, "yours": yours, "moving": moving, "sums": sums})
    return {"what": what, "rows": rows}


def picture(drawing: Graph) -> str | None:
    """Return a graph as SVG, without the data that it carries; None where nothing can draw."""
    svg = drawing._repr_svg_()
    return svg and re.sub("<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
