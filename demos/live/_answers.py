"""Live · Answers: the numbers and the picture of a verdict, and what is told of lines that stop."""

from __future__ import annotations

import linecache
import re
import traceback
from typing import Any

import numpy as np

from demos.live._examples import sentence
from minigrad import Graph

OWN = "<your "  # how the file name of a reader's lines begins


def compared(what: str, yours: Any, moving: Any) -> dict[str, Any]:
    """Return the rows of two arrays beside each other, the worst first, with their sums."""
    columns = yours.shape[-1] if yours.ndim else 1
    pairs = list(zip(yours.reshape(-1, columns), moving.reshape(-1, columns), strict=True))
    numbers = np.concatenate([yours.ravel(), moving.ravel()])
    largest = np.abs(numbers[np.isfinite(numbers)]).max(initial=0)
    digits = int(np.clip(3 - np.ceil(np.log10(largest)), 0, 6)) if largest > 0 else 1

    def text(x: float) -> str:
        rounded = f"{x:.{digits}f}"
        return rounded.removeprefix("-") if float(rounded) == 0 else rounded

    def texts(part: Any) -> list[str]:
        return [*(text(x) for x in part), text(part.sum())]

    def apart(n: int) -> float:
        return float(np.nan_to_num(np.abs(np.subtract(*pairs[n])).sum(), nan=np.inf))

    worst_first = sorted(range(len(pairs)), key=apart, reverse=True)
    a, b = pairs[worst_first[0]]
    while texts(a) == texts(b) and digits < 9:
        digits += 1
    rows = []
    for n in worst_first:
        place = f"row {n}" if len(pairs) > 1 else ""
        (*yours, your_sum), (*moving, moving_sum) = map(texts, pairs[n])
        sums = [your_sum, moving_sum]
        rows.append({"place": place, "yours": yours, "moving": moving, "sums": sums})
    return {"what": what, "rows": rows}


def picture(drawing: Graph) -> str | None:
    """Return a graph as SVG, without the data that it carries; None where nothing can draw."""
    svg = drawing._repr_svg_()
    return svg and re.sub("<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)


def stopped(error: BaseException) -> dict[str, Any]:
    """Return the verdict on lines that raise an error: its words, the line, and its arrays."""
    answer = {"right": False, "heading": f"It stops. {sentence(error)}", "reason": ""}
    places = [
        (frame, number)
        for raised in (error, error.__cause__)  # (a hint on an error is raised from it)
        for frame, number in traceback.walk_tb(raised.__traceback__ if raised else None)
        if frame.f_code.co_filename.startswith(OWN)
    ]
    if places:
        frame, number = places[-1]
        code = linecache.getline(frame.f_code.co_filename, number).partition("#")[0].strip(" ,\n")
        names = dict.fromkeys(re.findall(r"\w+", code))
        known = frame.f_locals
        shapes = [f"{n} {known[n].shape}" for n in names if hasattr(known.get(n), "shape")]
        arrays = f"The shapes are {', '.join(shapes)}. " if shapes else ""
        words = sentence(error).removeprefix(f"line {number}: ")
        answer |= {"heading": f"It stops in line {number}: {code}", "reason": f"{arrays}{words}"}
    return answer
