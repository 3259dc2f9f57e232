"""Demos · README's first picture, drawn: a wide file, and a narrow one for phones.

What it shows is computed in `_back`; `hero.html` is the file around it. By the rules of hero.css
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

CSS = re.sub(r"\s+", " ", Path(__file__).with_name("hero.css").read_text("utf-8"))
DECADES = range(-5, 2)  # what is smaller leaves the picture
# The places of a file:
#   stations  along the way from q to L: each station, and half the length of its box
#   across    across the way: the boxes and half their width, the orange arrow, the ratios 1 and 10
#   grid      both ends of the grid's lines, along the way and across it
#   bars      along the way, of each case: its bar with the scale, and its bar without it
#   labels    x, y, classes of hero.css and the text. | begins another line. U and R are the facts
#             of the usual case and of the extreme one
WIDE = {
    "size": (780, 454),
    "stations": ((262, 15), (388, 27), (500, 32), (608, 36), (692, 32), (754, 15)),
    "across": ((106, 14), 136, 219, 182),
    "grid": ((24, 768), (146, 402)),
    "bars": ((174, 214), (62, 102)),
    "labels": """
 24  34 big        Without 1/√d_k gradients grow or vanish, and become far more unequal
 24  57 soft Median gradient of {n} random queries without 1/√d_k, divided by the median with it
 24 101 key        Bars at q: the middle 8|of 10, longest ÷ shortest
441  85 fore.mid   ÷ √d_k or not
552  85 fore.mid   softmax
388 141 back.key.mid gradient
768 239 key.end    with 1/√d_k: always 1
768 178 soft.end   10
768 289 soft.end   1/100
768 363 soft.end   1/10,000
194 425 soft.mid   {U[keys]},|{U[d_k]}
 82 425 soft.mid   {R[keys]},|{R[d_k]}
514 210 bad.s1     softmax passes on {U[passed]}
512 395 bad.s1     softmax passes on {R[passed]}
480 190 bad.s2     nothing divides by {U[root]}
486 417 bad.s2.end nothing divides by {R[root]}
274 163 bad.key.s3 Usual: {U[keys]}, {U[d_k]}
274 184 bad.big.s3 {U[end]}
274 310 bad.key.s3 Extreme: {R[keys]}, {R[d_k]}
274 331 bad.big.s3 {R[end]}
174 241 key.mid.s4 {U[with]}
214 279 bad.key.mid.s4 {U[without]}
 62 248 key.mid.s4 {R[with]}
116 397 bad.key.s4 {R[without]}
""",
}
NARROW = {  # with L at the top
    "size": (390, 640),
    "stations": ((420, 13), (364, 13), (262, 13), (176, 13), (136, 13), (96, 13)),
    "across": ((46, 34), 87, 309, 352),
    "grid": ((82, 609), (84, 378)),
    "bars": ((495, 515), (569, 589)),
    "labels": """
 12  26 big        Without 1/√d_k gradients grow or|vanish, and become far more unequal
 12  69 soft       Median gradient without 1/√d_k ÷ median with it
 97 160 back.key   gradient
299 121 key.end    with 1/√d_k: always 1
 97 195 bad.s1     softmax passes|on {R[passed]}
297 238 bad.s1.end softmax passes|on {U[passed]}
301 284 bad.s2.end nothing divides|by {U[root]}
173 333 bad.s2     nothing divides|by {R[root]}
299 389 bad.key.s3.end usual: {U[keys]}
176 408 bad.key.s3 extreme: {R[keys]}
 12 454 key        At q. Bars: the middle 8 of 10, longest ÷ shortest
 12 478 bad.key.s3 {U[keys]}, {U[d_k]}:
150 478 bad.key.s3 {U[end]}
 12 499 with       with
 12 519 bad        without
296 499 key.end.s4 {U[with]}
252 519 bad.key.end.s4 {U[without]}
 12 552 bad.key.s3 {R[keys]}, {R[d_k]}:
150 552 bad.key.s3 {R[end]}
 12 573 with       with
 12 593 bad        without
288 573 key.end.s4 {R[with]}
 98 573 bad.key.s4 {R[without]}
137 627 soft.mid   1/10,000
223 627 soft.mid   1/100
309 627 soft.mid   1
352 627 soft.mid   10
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


def shapes(usual, rare, stations, across, grid, bars):
    """Return what hero.html draws: boxes, and paths, each by its classes and its way."""
    is_wide = stations[0][0] < stations[-1][0]  # from q to L is to the right, and not upwards
    along = [a for a, _ in stations]
    (middle, thick), back, one, ten = across

    def at(a, b):
        return (a, b) if is_wide else (b, a)

    def ratio(a, r):
        return at(a, one + (ten - one) * max(math.log10(r), DECADES[0]))

    lines = [[ratio(a, 10.0**power) for a in grid[0]] for power in DECADES]
    lines += [[at(a, b) for b in grid[1]] for a in along]
    behind, boxes = [("grid", way(*lines))], []
    for (a, _), (b, half) in pairwise(stations):
        gap = half + 3 if is_wide else -half - 3
        behind.append(("on", way(*arrow(at(a, middle), at(b - gap, middle)))))
    for name, (a, half) in zip(STATIONS, stations, strict=True):
        boxes.append((*at(a, middle), *at(half, thick), name))

    level = [ratio(a, 1) for a in along]
    paths = [[ratio(a, r) for a, r in zip(along, c["line"], strict=True)] for c in (usual, rare)]
    front = [
        ("way", way(*arrow(at(along[-1], back), at(along[0], back)))),
        ("both without", way(level[3:])),
        ("line", way(level)),
        ("line without", way(paths[0][3::-1])),
        ("line rare without", way(paths[1][3::-1])),
    ]
    without = [[point] for points in paths for point in points[:3]]
    drawn = []
    for case, places, (end, *_) in zip((usual, rare), bars, paths, strict=True):
        for name, a in zip(("with", "without"), places, strict=True):
            drawn.append((f"bar {name} s4", way([ratio(a, r) for r in case[name]])))
            if case[name][0] < 10.0 ** DECADES[0]:
                drawn.append((f"way {name} s4", way(*arrow(ratio(a, 1e-4), ratio(a, 1e-5)))))
        if is_wide:
            drawn.append(("without s4", way([end, (places[1] + 7, end[1])])))
    return {
        "behind": behind,
        "boxes": boxes,
        "front": front,
        "motion": "leftward" if is_wide else "downward",
        "dots_without": way(*without),
        "dots": way(*([point] for point in level)),
        "bars": drawn,
    }


def picture(usual, rare, size, labels, **place):
    """Return the text of a file."""
    texts = []
    for line in labels.format(n=f"{QUERIES:,}", U=facts(usual), R=facts(rare)).strip().splitlines():
        x, y, kind, text = line.split(maxsplit=3)
        texts.append((x, y, kind.replace(".", " "), text.split("|")))
    numbers = json.dumps({"queries": QUERIES, "cases": [usual, rare]})
    width, height = size
    svg = fill(
        "first/hero.html",
        width=width,
        height=height,
        alt=alt(usual, rare),
        numbers=numbers,
        css=CSS,
        labels=texts,
        **shapes(usual, rare, **place),
    )
    return f"{svg}\n"


def save_hero(folder, seed=0):
    """Write hero.svg and hero_narrow.svg, and return the two cases."""
    cases = [measure(*case, seed) for case in CASES]
    for name, place in (("hero", WIDE), ("hero_narrow", NARROW)):
        Path(folder, f"{name}.svg").write_text(picture(*cases, **place), "utf-8", newline="\n")
    return cases
