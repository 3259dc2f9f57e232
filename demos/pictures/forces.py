"""Pictures · Attention in a plane: forward mixes, backward pulls (the first page and chapter 11).

`drawn` says where each part is, and `forces.js` says the same of what a reader has moved. The files
that open README are `still`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup

from demos.pages.page import FOLDER
from demos.pages.templates import fill
from demos.pages.text import formula, inline
from demos.pictures import data, math, number, way_back
from minigrad import Tensor, gradients, softmax

PLANE, BARS = (480, 400), (236, 130)  # the sizes of a plane, and of a panel with bars
ROOM = 14  # between a pull that is cut and the edge of its plane
EDGES = ((16, 464), (40, 390))  # of the names in a plane
# Where a name stands: how far to the right, how far down. Points on top of each other have names
# at different sides, and one that would leave the plane stands at the other side.
SIDES = {"q": (1, 0), "k": [(0, -1), (-1, 0), (0, 1)], "v": [(0, 1), (0, -1), (1, 0)]}
CAPTIONS = {  # of a panel: its caption, and the colour of it
    "keys": ("q and keys: a key is as large as its weight", ""),
    "weights": ("weights", "fore"),
    "scores": ("pull on the scores", "back"),
    "values": ("values, mixed by the weights", ""),
}


class Scene(NamedTuple):
    """A scene: q, keys and values in a plane, and a star for the output, or a fixed g."""

    q: Sequence[float]
    k: Sequence[Sequence[float]]
    v: Sequence[Sequence[float]]
    star: Sequence[float] | None
    g: Sequence[float] | None
    scale: float
    unit: float  # how long 1 is
    zero: tuple[float, float]  # where (0, 0) is
    bar: float  # how long 1 is among the pulls on the scores
    below: tuple[float, float]  # where the output's name stands, as in SIDES
    note: str  # the last words below the picture


FIRST = Scene(
    q=(1.1, 0.3),
    k=((1.5, -0.7), (-1.3, 1.1), (-0.3, -1.5)),
    v=((-1.7, -1.0), (0.3, 1.6), (1.7, -0.8)),
    star=(0.3, 0.6),
    g=None,
    scale=2**-0.5,
    unit=84,
    zero=(240, 216),
    bar=44,
    below=(2, 1),
    note="Drag any point. A pull is minus the gradient. Three keys, two dimensions: for many keys "
    "see chapter 16.",
)
CHAPTER_11 = Scene(
    q=way_back.Q[0, :2].tolist(),
    k=way_back.K[:, :2].tolist(),
    v=way_back.V.tolist(),
    star=None,
    g=way_back.G[0].tolist(),
    scale=way_back.SCALE,
    unit=66,
    zero=(116, 340),
    bar=30,
    below=(-2, 0),
    note="The first two entries of q and the keys; the others are 0. g = (1, -1) is fixed. "
    "A pull is minus the gradient.",
)


def passes(scene: Scene, scale: float) -> dict[str, Any]:
    """Return both passes, computed by the engine; a pull goes against the gradient."""
    q = Tensor([scene.q], requires_grad=True)
    k, v = (Tensor(rows, requires_grad=True) for rows in (scene.k, scene.v))
    z = scale * (q @ k.mT)
    p = softmax(z)
    o = p @ v
    if scene.star:
        loss = 0.5 * ((o - np.array(scene.star)) ** 2).sum()
    else:
        loss = (o * np.array(scene.g)).sum()
    back = [-gradient for gradient in gradients(loss, [q, k, v, z, o])]
    pulls = dict(zip(("q", "k", "v", "z", "o"), back, strict=True))
    pulls |= {name: pulls[name][0] for name in ("q", "z", "o")}
    return {"p": p.data[0], "o": o.data[0], "L": loss.item(), "pulls": pulls, "scale": scale}


# ---------------------------------------------------------------- where the parts are


def arrow(start: Any, by: Any, *, inside: bool = True) -> dict[str, Any]:
    """Return a path from a point, as long as `by`; it ends at the edge with a second head."""
    length = float(np.hypot(*by))
    if length < 1:
        return {"d": "", "stroke-width": "0.0"}
    along = np.divide(by, length)
    ends = [
        ((size - ROOM if step > 0 else ROOM) - from_) / step
        for from_, step, size in zip(start, along, PLANE, strict=True)
        if step
    ]
    room = max(min(ends), 20) if inside else length
    width = min(4.5, length / 5)
    across = 1.3 * width * np.array([-along[1], along[0]])
    heads = []
    for back in (0, 14) if length > room else (0,):
        tip = start + along * (min(length, room) - back)
        middle = tip - 2.8 * width * along
        heads.append(f"M{_xy(middle + across)}L{_xy(tip)}L{_xy(middle - across)}Z")
    return {"d": f"M{_xy(start)}L{_xy(tip)}{''.join(heads)}", "stroke-width": f"{width:.1f}"}


def _xy(point: Any) -> str:
    return f"{point[0]:.1f},{point[1]:.1f}"


def _two(x: float) -> str:
    """Return a number with two decimals, of which a small one is not 0."""
    if 0 < abs(x) < 0.005:
        return "≈ 0"
    return f"{x + 0.0:.2f}".replace("-", "−")  # (and -0 is 0)


def drawn(scene: Scene, computed: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the attributes of every part that moves; `text` is what it says."""
    zero, unit = np.array(scene.zero), np.array([scene.unit, -scene.unit])
    at = lambda point: zero + unit * point
    pulls, parts = computed["pulls"], {}

    def line(start: Any, end: Any, weight: float) -> dict[str, Any]:
        ends = [f"{x:.1f}" for x in (*start, *end, 1 + 8 * weight)]
        return dict(zip(("x1", "y1", "x2", "y2", "stroke-width"), ends, strict=True))

    def point(name: str, place: Any, radius: float, side: Any) -> None:
        ring = dict(zip(("cx", "cy"), (f"{x:.1f}" for x in at(place)), strict=True))
        parts[name] = ring | {"r": f"{radius:.1f}"}
        parts[f"move-{name}"] = ring
        x, y = (
            middle + away if low <= middle + away <= high else middle - away
            for middle, away, (low, high) in zip(
                at(place), np.multiply(side, radius + 13), EDGES, strict=True
            )
        )
        parts[f"name-{name}"] = {"x": f"{x:.1f}", "y": f"{y + 5:.1f}"}

    q, o = at(scene.q), at(computed["o"])
    parts["arrow-q"] = arrow(zero, q - zero, inside=False)
    parts["pull-q"] = arrow(q, unit * pulls["q"])
    ends = np.cumsum(computed["scale"] * pulls["z"][:, None] * scene.k, axis=0)
    parts["sum"] = {"points": " ".join(map(_xy, [q, *(q + unit * ends)]))}
    point("q", scene.q, 3, SIDES["q"])
    parts["hull"] = {"points": " ".join(_xy(at(v)) for v in scene.v)}
    for j, (k, v, p) in enumerate(zip(scene.k, scene.v, computed["p"], strict=True)):
        radius = 5 + 20 * p**0.5
        parts[f"beam-{j}"] = line(zero, at(k), p)
        parts[f"mix-{j}"] = line(o, at(v), p)
        parts[f"pull-k{j}"] = arrow(at(k), unit * pulls["k"][j])
        parts[f"pull-v{j}"] = arrow(at(v), unit * pulls["v"][j])
        point(f"k{j}", k, radius, SIDES["k"][j])
        point(f"v{j}", v, radius, SIDES["v"][j])
        pull = pulls["z"][j]
        length, cut = min(48, scene.bar * abs(pull)), scene.bar * abs(pull) > 48
        x, side = (140, 1) if pull > 0 else (140 - length, -1)
        parts[f"weight-{j}"] = {"width": f"{130 * p:.1f}"}
        parts[f"weight-number-{j}"] = {"x": f"{40 + 130 * p:.1f}", "text": _two(p)}
        parts[f"score-{j}"] = {"x": f"{x:.1f}", "width": f"{length:.1f}"}
        parts[f"score-number-{j}"] = {
            "x": f"{140 + side * (length + 26 + 5 * cut):.1f}",
            "text": ("»" if cut else "") + ("+" if pull >= 0.005 else "") + _two(pull),
        }
    point("o", computed["o"], 8, scene.below)
    parts["pull-o"] = arrow(o, unit * pulls["o"])
    if scene.star:
        x, y = at(scene.star)
        parts["star"] = {"x": f"{x:.1f}", "y": f"{y + 9:.1f}"}
        parts["move-star"] = {"cx": f"{x:.1f}", "cy": f"{y:.1f}"}
    return parts


# ---------------------------------------------------------------- the picture

Element = tuple[str, str, str]  # a tag, its part, its classes


def elements(scene: Scene) -> dict[str, list[Element]]:
    """Return what each panel consists of, from the back to the front."""
    numbers = range(len(scene.k))
    keys: list[Element] = [("line", f"beam-{j}", "fore beam") for j in numbers]
    keys += [("circle", f"k{j}", "fore dot") for j in numbers]
    keys += [("path", "arrow-q", "fore arrow"), ("circle", "q", "fore dot")]
    keys.append(("polyline", "sum", "back"))
    keys += [("path", f"pull-{x}", "back arrow") for x in (*(f"k{j}" for j in numbers), "q")]
    keys += [("text", f"name-{x}", "") for x in (*(f"k{j}" for j in numbers), "q")]
    keys += [("circle", f"move-{x}", "ring") for x in ("q", *(f"k{j}" for j in numbers))][::-1]
    values: list[Element] = [("polygon", "hull", "")]
    values += [("line", f"mix-{j}", "fore beam") for j in numbers]
    values += [("circle", f"v{j}", "fore dot") for j in numbers]
    values.append(("circle", "o", "fore dot output"))
    if scene.star:
        values.append(("text", "star", "star"))
    values += [("path", f"pull-{x}", "back arrow") for x in (*(f"v{j}" for j in numbers), "o")]
    values += [("text", f"name-{x}", "") for x in (*(f"v{j}" for j in numbers), "o")]
    values += [("circle", f"move-v{j}", "ring") for j in numbers]
    if scene.star:
        values.append(("circle", "move-star", "ring"))
    bars = {}
    for panel, name, kind in (("weights", "weight", "fore"), ("scores", "score", "back")):
        bars[panel] = [("rect", f"{name}-{j}", kind) for j in numbers]
        bars[panel] += [("text", f"{name}-number-{j}", "number") for j in numbers]
    return {"keys": keys, **bars, "values": values}


def words(part: str) -> Markup:
    """Return the name of a point."""
    name = part.removeprefix("name-")
    if name == "o":
        return Markup("output")
    return math(name[0] + "".join("₁₂₃"[int(digit)] for digit in name[1:]))


def panels(scene: Scene) -> dict[str, Markup]:
    """Return what is in each panel: its caption, what stands still, and the parts that move."""
    parts = drawn(scene, passes(scene, scene.scale))
    inside = {}
    for panel, listed in elements(scene).items():
        caption, kind = CAPTIONS[panel]
        if panel == "values" and scene.star:
            caption += "; star = target"
        inside[panel] = fill(
            "pictures/forces.svg.html",
            panel=panel,
            caption=math(caption),
            kind=kind,
            zero=scene.zero,
            rows=len(scene.k),
            elements=[(*element, parts.get(element[1], {})) for element in listed],
            words=words,
        )
    return inside


def alt(scene: Scene) -> str:
    """Return the picture in words."""
    computed = passes(scene, scene.scale)
    weights = ", ".join(f"{p:.2f}" for p in computed["p"])
    pull = ", ".join(number(x) for x in computed["pulls"]["q"])
    end = "toward the star" if scene.star else "against g"
    return (
        f"Forward: q meets {len(scene.k)} keys, the weights {weights} mix the values, and the "
        f"mixture is the output. Backward: the output is pulled {end}, the values with it, and "
        f"the pull on q, ({pull}), is the sum of arrows along the keys."
    )


def figure(scene: Scene, address: str = "") -> Markup:
    """Return the figure; its chapter 16 is a link to an address."""
    note = str(inline(scene.note))
    if address:
        note = note.replace("chapter 16", f'<a href="{address}">chapter 16</a>')
    given = scene._asdict() | {"size": PLANE, "room": ROOM, "sides": SIDES, "edges": EDGES}
    return fill(
        "pictures/forces.html",
        alt=alt(scene),
        panels=panels(scene),
        plane=PLANE,
        bars=BARS,
        note=Markup(note),
        normal=formula("1/√d_k"),
        star=bool(scene.star),
        scale=np.log2(scene.scale),
        data=data(given),
    )


def picture() -> str:
    """Return the figure of chapter 11, with its numbers."""
    return figure(CHAPTER_11)


# ---------------------------------------------------------------- README's first picture

STILLS = {  # of a file: its size, how large a plane and bars are, and where its panels are
    "forces": (
        (1200, 452),
        {"keys": 1, "weights": 1, "scores": 1, "values": 1},
        {"keys": (4, 46), "weights": (484, 60), "scores": (484, 232), "values": (716, 46)},
    ),
    "forces_narrow": (
        (400, 816),
        {"keys": 0.8, "weights": 0.82, "scores": 0.82, "values": 0.8},
        {"keys": (8, 44), "weights": (6, 370), "scores": (202, 370), "values": (8, 486)},
    ),
}


def still(name: str) -> str:
    """Return the text of an SVG for README: in the dark it is dark, and it asks for nothing."""
    size, scales, places = STILLS[name]
    css = (FOLDER / "site.css").read_text("utf-8")
    lines = [line for line in css.splitlines() if line.startswith(".forces ")]
    style = css[: css.index("*, ::before")] + "\n".join(lines)
    svg = fill(
        "pictures/forces_still.html",
        alt=alt(FIRST),
        size=size,
        places=places,
        panels=panels(FIRST),
        scales=scales,
        css=Markup(re.sub(r"\s+", " ", style)),
    )
    return f"{svg}\n"


def save_stills(folder: Path) -> None:
    """Write README's first picture: a wide file, and a narrow one for phones."""
    for name in STILLS:
        (folder / f"{name}.svg").write_text(still(name), "utf-8", newline="\n")
