"""Demos · What leaving out 1/√d_k does on the way back, drawn: the usual case, and an extreme one.

What is shown is computed in `_back`; `cases.html` is the file around it. By the rules of cases.css
its lines and bars draw themselves once over a pale picture of their end. Without motion and in
print they are there at once.
"""

import json
import math
import re
from itertools import pairwise
from pathlib import Path

import numpy as np

from demos.first._back import CASES, QUERIES, STATIONS, alt, facts, measure
from demos.pages.templates import fill

CSS = re.sub(r"\s+", " ", Path(__file__).with_name("cases.css").read_text("utf-8"))
DECADES = range(-5, 2)  # what is smaller leaves the picture
SIZE = (560, 402)
PLACES = ((150, 15), (226, 27), (316, 32), (408, 36), (482, 32), (540, 15))  # x, half a width
MIDDLE, HALF, BACK, ONE, TEN = 84, 13, 112, 190, 154  # y: boxes, the way back, the ratios 1 and 10
BARS = {"with": 50, "without": 92}
# Of each label: x, y, classes of cases.css and the text, with the facts of a case.
LABELS = """
 24  26 big        {keys}, {d_k}: {end} at q
 24  47 soft       Median gradient without 1/√d_k, divided by the median with it
271  66 fore.mid   ÷ √d_k or not
362  66 fore.mid   softmax
271 117 back.key.mid gradient
552 206 key.end    with 1/√d_k: always 1
552 150 soft.end   10
552 258 soft.end   1/100
552 330 soft.end   1/10,000
 24 392 soft       Bars at q: the middle 8 of 10, longest ÷ shortest
"""
MORE = {  # of a file: its own labels
    "usual": """
240 152 bad.s2     nothing divides by {root}
330 222 bad.s1     softmax passes on {passed}
 50 213 key.mid.s4 {with}
 92 252 bad.key.mid.s4 {without}
""",
    "extreme": """
240 303 bad.s2     nothing divides by {root}
328 364 bad.s1     softmax passes on {passed}
 50 219 key.mid.s4 {with}
106 350 bad.key.s4 {without}
""",
}


def way(*lines):
    """Return the d of a path: lines through points; a line of one point is a dot."""
    ways = []
    for line in lines:
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in line)
        ways.append(f"M{points}h0" if len(line) == 1 else f"M{points}")
    return "".join(ways).replace(".0", "")


def arrow(start, end):
    """Return the two lines of an arrow, level or upright."""
    (x, y), (u, v) = end, 5 * np.sign(np.subtract(end, start))
    return [start, end], [(x - u - v, y - v - u), end, (x - u + v, y - v + u)]


def at(x, ratio):
    """Return where a ratio is drawn."""
    return x, ONE + (TEN - ONE) * max(math.log10(ratio), DECADES[0])


def shapes(case):
    """Return what cases.html draws: boxes, and paths, each by its classes and its way."""
    xs = [x for x, _ in PLACES]
    lines = [[at(x, 10.0**power) for x in (24, 552)] for power in DECADES]
    lines += [[(x, y) for y in (124, 372)] for x in xs]
    behind = [("grid", way(*lines))]
    for (x, _), (end, half) in pairwise(PLACES):
        behind.append(("on", way(*arrow((x, MIDDLE), (end - half - 3, MIDDLE)))))
    level = [at(x, 1) for x in xs]
    path = [at(x, ratio) for x, ratio in zip(xs, case["line"], strict=True)]
    front = [
        ("way", way(*arrow((xs[-1], BACK), (xs[0], BACK)))),
        ("both without", way(level[3:])),
        ("line", way(level)),
        ("line without", way(path[3::-1])),
    ]
    bars = []
    for name, x in BARS.items():
        bars.append((f"bar {name} s4", way([at(x, ratio) for ratio in case[name]])))
        if case[name][0] < 10.0 ** DECADES[0]:
            bars.append((f"way {name} s4", way(*arrow(at(x, 1e-4), at(x, 1e-5)))))
    bars.append(("without s4", way([path[0], (BARS["without"] + 7, path[0][1])])))
    return {
        "behind": behind,
        "boxes": [(x, MIDDLE, h, HALF, n) for n, (x, h) in zip(STATIONS, PLACES, strict=True)],
        "front": front,
        "dots_without": way(*([point] for point in path[:3])),
        "dots": way(*([point] for point in level)),
        "bars": bars,
    }


def picture(name, case):
    """Return the text of a file."""
    labels = []
    for line in (LABELS + MORE[name].lstrip()).format(**facts(case)).strip().splitlines():
        x, y, kind, text = line.split(maxsplit=3)
        labels.append((x, y, kind.replace(".", " "), text))
    numbers = json.dumps({"queries": QUERIES, "case": case})
    svg = fill(
        "first/cases.html",
        size=SIZE,
        alt=alt(case),
        numbers=numbers,
        css=CSS,
        labels=labels,
        **shapes(case),
    )
    return f"{svg}\n"


def save_cases(folder, seed=0):
    """Write usual.svg and extreme.svg, and return the two cases."""
    cases = [measure(*case, seed) for case in CASES]
    for name, case in zip(MORE, cases, strict=True):
        Path(folder, f"{name}.svg").write_text(picture(name, case), "utf-8", newline="\n")
    return cases
