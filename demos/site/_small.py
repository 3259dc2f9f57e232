"""Site · Small: a picture without text for each demo, from what it drew when it was run in OUT.

python -m demos.site._small OUT  # reads OUT/NAME/PICTURE.svg, writes demos/pictures/small/
"""

import base64
import colorsys
import io
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
from PIL import Image

from demos.learn import EXERCISES, PATH
from demos.museum.exhibits import exhibit
from demos.texts.sources import counted
from minigrad.runs.saving import write_whole

DEMOS = Path(__file__).parents[1]
PANELS = """draw/gpt first_gradient/graph scaling/sweep/6 why_half/hill/1 laboratory/map/1
addition/weights/2 addition/weights/7 charlm/bits/1 digits/weights/1 digits/weights/10
digits/weights/19 digits/weights/28 induction/weights/1 induction/weights/2 recall/loss/1
reverse/weights/1 sort/weights/3 sort/weights/4 translate/cross_attention/7 two_moons/boundary/1
pretrained/maps/5 pretrained/maps/9 love_transformers/scale/1 love_you/weights/1 love_you/weights/9
mammal_and_reptile/plane/1 mammal_and_reptile/plane/2 sky_is_blue/spread/2
your_journey/one_vector/1 your_journey/one_vector/2"""
# A letter, and its colour on light ground and on dark: forward, backward, crimson, ink; five kinds.
COLOURS = re.findall(
    r"(\w) (\S+) (\S+)",
    """f #1f5fae #8cb8f5 b #b4500a #f3a261 c #b3204d #ff86a8 i #1b1b1f #ececf0 v #14104f #cdc8ff
    w #7d1d4f #f08cc0 x #56670f #b9cf5f y #8f66c9 #c3a6ee z #b98a00 #e5bd4a""",
)
LINES = ".l,.p{fill:none;stroke:currentColor;stroke-width:2}.p{stroke-width:4;stroke-linecap:round}"
SQUARE = np.array([[0, 0], [1, 0], [1, 1], [0, 1]])
Mark = tuple[str, float, np.ndarray]  # a letter of a colour (then l: a line, p: a point), opacity


def points(text: str) -> np.ndarray:
    """Return the points that the text of a path or a polygon has."""
    return np.array(re.findall(r"-?\d[\d.e-]*", text), float).reshape(-1, 2)


def ours(colour: str) -> tuple[str, float]:
    """Return the letter that stands for a colour, and its opacity."""
    rgb = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    hue, saturation, value = colorsys.rgb_to_hsv(*rgb)
    grey = saturation < 0.1 or value < 0.25
    letter = "i" if grey else "cbifc"[np.searchsorted([0.03, 0.2, 0.52, 0.8], hue)]
    return next((x for x, light, _ in COLOURS if light == colour), letter), round(1 - min(rgb), 1)


def marks(parts: list[ElementTree.Element], box: np.ndarray) -> Iterator[Mark]:
    """Yield what is drawn in these parts of a figure, whose axes are the box."""
    for graph, each in ((part.get("class"), x) for part in parts for x in part.iter()):
        style = dict(re.findall(r"([\w-]+): ([^;]+)", each.get("style", ""))) | each.attrib
        text = each.get("d") or each.get("points") or f"{each.get('x')} {each.get('y')}"
        fill, stroke = style.get("fill", "none"), style.get("stroke", "none")
        if each.tag.endswith("image"):
            yield from cells(each, box)
        elif each.tag.endswith("use") and "#" in fill + stroke:
            letter, opacity = ours(fill if fill != "none" else stroke)
            yield letter + "p", opacity if letter == "i" else 1, points(text)
        elif "clip-path" in style or graph:
            if fill[0] == "#":
                letter, opacity = ours(fill)
                yield letter, float(style.get("fill-opacity", opacity)), points(text)
            elif stroke[0] == "#":
                letter, opacity = ours(stroke)
                yield letter + "l", opacity if letter == "i" else 1, points(text)


def cells(image: ElementTree.Element, box: np.ndarray) -> Iterator[Mark]:
    """Yield the cells of a map of weights, the larger the darker, or of a grey picture."""
    data = next(x for name, x in image.attrib.items() if name.endswith("href")).partition(",")[2]
    picture = Image.open(io.BytesIO(base64.b64decode(data))).convert("RGBA")
    white = Image.new("RGBA", picture.size, "white")
    seen = np.asarray(Image.alpha_composite(white, picture).convert("RGB"))[::-1] / 255
    letter, grey = "f" if np.ptp(seen, axis=2).max() > 0.1 else "i", seen.mean(axis=2)
    cuts = [[0, *(np.flatnonzero(np.diff(grey, axis=i).any(axis=1 - i)) + 1)] for i in (0, 1)]
    y, x = (np.array([*cut, n]) for cut, n in zip(cuts, grey.shape, strict=True))
    size = np.ptp(box, axis=0) / grey.shape[::-1]
    for i, j in np.ndindex(len(y) - 1, len(x) - 1):
        opacity = round(1 - grey[y[i], x[j]], 1)
        if opacity:
            corner, wide = np.array([x[j], y[i]]), np.array([x[j + 1] - x[j], y[i + 1] - y[i]])
            yield letter, opacity, box.min(axis=0) + (corner + SQUARE * wide) * size


def panel(out: Path, place: str) -> tuple[np.ndarray, bool, list[Mark]]:
    """Return a panel's box, whether its shape is kept, and its marks. (A graph is turned.)"""
    name, picture, *number = place.split("/")
    root = ElementTree.parse(out / name / f"{picture}.svg").getroot()
    if number:
        axes = next(group for group in root.iter() if group.get("id") == f"axes_{number[0]}")
        parts = [x for x in axes[1:] if not re.match("matplotlib|FillBetween", x.get("id", ""))]
        box = points(axes[0][0].get("d", ""))
        return box, bool(axes.findall(".//{*}image")), list(marks(parts, box))
    parts = [group for group in root.iter() if group.get("class") in ("node", "edge")]
    first = (mark for part in parts for mark in list(marks([part], SQUARE))[:1])
    found = [(letter, opacity, p[:, ::-1]) for letter, opacity, p in first]
    return np.concatenate([p for *_, p in found]), True, found


def written(panels: list[tuple[np.ndarray, bool, list[Mark]]]) -> str:
    """Return the picture: its panels side by side, in 240 × 150."""
    room, paths = (238 - 10 * len(panels)) / len(panels), defaultdict(str)
    for i, (box, kept, found) in enumerate(panels):
        low, size = box.min(axis=0), np.ptp(box, axis=0)
        scale = np.array([room, 138]) / size
        scale = scale.min() if kept else scale
        start = [6 + i * (room + 10) + room / 2, 75] - size * scale / 2
        for kind, opacity, at in found:
            line: list[np.ndarray] = []
            for point in np.clip((at - low) * scale + start, 0, [240, 150]).round().astype(int):
                if len(line) > 1 and np.linalg.det([line[-1] - line[-2], point - line[-1]]) == 0:
                    line[-1] = point
                elif not line or abs(point - line[-1]).max() > 1:
                    line.append(point)
            path = "M" + "L".join(f"{x} {y}" for x, y in line)
            paths[kind, opacity] += path + {"": "z", "l": "", "p": "h0"}[kind[1:]]
    body = [
        f'<path class="{" ".join(kind)}" opacity="{opacity:g}" d="{path}"/>'
        for (kind, opacity), path in paths.items()
    ]
    used = [each for each in COLOURS if any(kind[0] == each[0] for kind, _ in paths)]
    light, dark = ("".join(f".{x[0]}{{color:{x[i]}}}" for x in used) for i in (1, 2))
    style = f"path{{fill:currentColor}}{light}{LINES * any(kind[1:] for kind, _ in paths)}"
    style += f"@media(prefers-color-scheme:dark){{{dark}}}"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 240 150"><style>{style}</style>'
    return f"{head}{''.join(body)}</svg>\n"


def grid(kinds: list[tuple[str, float]]) -> tuple[np.ndarray, bool, list[Mark]]:
    """Return a panel of squares, six in a row."""
    found = [(*kind, np.array(divmod(i, 6))[::-1] + SQUARE * 0.9) for i, kind in enumerate(kinds)]
    return np.concatenate([p for *_, p in found]), True, found


def bars(rows: list[list[float]], line: float = 0) -> tuple[np.ndarray, bool, list[Mark]]:
    """Return a panel of bars, each of a dark and a pale part; and a line across them."""
    found: list[Mark] = [("cl", 1, np.array([[line, 0], [line, len(rows)]]))] * bool(line)
    for i, (dark, pale) in enumerate(rows):
        corner, height = np.array([0, i + 0.15]), np.array([1, 0.7])
        found.append(("i", 1, corner + SQUARE * height * [dark, 1]))
        found.append(("i", 0.2, corner + [dark, 0] + SQUARE * height * [pale, 1]))
    return np.concatenate([p for *_, p in found]), False, found


def main(out: Path) -> None:
    """Write all pictures."""
    found = defaultdict(list)
    for place in PANELS.split():
        found[place.partition("/")[0]].append(panel(out, place))
    found["learn"] = [grid([("i", 1 if x in PATH else 0.2) for x in EXERCISES])]
    room = exhibit("reversed_mask")
    for f, letter in ((room.module.broken, "c"), (room.module.repaired, "i")):
        felt = next(iter(room.symptoms(f).values())).ravel()
        found["museum"].append(grid([(letter, 1) if x else ("i", 0.1) for x in felt]))
    texts = ["love_transformers", "love_you", "sky_is_blue", "your_journey", "mammal_and_reptile"]
    told = [import_module(f"demos.texts.sources.{name}_text") for name in texts]
    found["texts"] = [bars([[float(b), float(a - b)] for b, a in map(counted, told)])]
    measured = (DEMOS / "speed" / "measured.md").read_text(encoding="utf-8")
    ratios = re.findall(r"(?m)^\|[^|]*\|[^|]*\|[^|]*\|[^|]*\| ([\d.]+) →", measured)
    found["benchmark"] = [bars([[float(x), 0] for x in ratios], line=1)]
    for name, panels in found.items():
        write_whole(DEMOS / "pictures" / "small" / f"{name}.svg", written(panels).encode())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
