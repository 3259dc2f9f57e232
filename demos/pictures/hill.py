"""Pictures · The map of chapter 16, and the hill of which it compares two places.

‖∂L/∂q‖ is about s ‖J ∂L/∂p‖, as the chapter derives: s = scale · √d_k is the spread of the scores,
and J is softmax's derivative. So one draw of scores and of ∂L/∂p serves every width.
"""

import numpy as np

from attention.scaling import DEAD
from demos.pictures import data, figure, line, number, place, shapes, slider, text
from demos.pictures.draws import normal
from minigrad import Tensor, gradients, softmax

SEED, HALF = 0, 2**18  # numbers for the scores, and as many for ∂L/∂p
WIDTHS, KEYS, SPREADS = (16, 64, 256, 1024), (5, 64, 1024), 2 ** np.arange(-2, 5.01, 0.25)
MAP, HILL = (34.8, -18, 16.9, -26), (340, 107, 24, 43)  # powers of two; of two right, of ten up
LIMITS = 0.82  # 1.64/2: the middle of n queries is within LIMITS · √n ranks 90 times of 100


def lengths(drawn: np.ndarray, keys: int, s: float, fits: float = 0.0) -> np.ndarray:
    """Return s ‖J ∂L/∂p‖ of queries whose scores spread by s; key 0 is higher by s `fits`."""
    queries = min(2**14, HALF // keys)
    scores, of_p = drawn.reshape(2, HALF)[:, : queries * keys].reshape(2, queries, keys)
    x = Tensor(s * (scores + fits * (np.arange(keys) == 0)), requires_grad=True)
    (of_x,) = gradients(softmax(x), [x], of_p)
    return s * np.linalg.norm(of_x, axis=-1)


def ratio(drawn: np.ndarray, keys: int, d_k: int) -> np.ndarray:
    """Return the median without the scale between its 90 % limits, over the median with it."""
    without, scaled = (lengths(drawn, keys, s) for s in (d_k**0.5, 1.0))
    ranks = 0.5 + LIMITS * np.array([-1, 0, 1]) / len(without) ** 0.5
    return np.quantile(without, ranks) / np.median(scaled)


def picture() -> str:
    """Return the figure: the map with a point, and the hill with the two places it compares."""
    drawn, cells = normal(SEED, 2 * HALF), []
    parts = [text(12, 22, "without the scale / with it", "start"), text(40, 48, "d_k", "end soft")]
    for keys in KEYS:
        x, _ = place(MAP, np.log2(keys), 0)
        name = f"{keys:,} keys" if keys == KEYS[0] else f"{keys:,}"
        parts.append(text(x, 48, name, "soft"))
        for d_k in WIDTHS:
            _, y = place(MAP, 0, np.log2(d_k))
            low, middle, high = ratio(drawn, keys, d_k)
            kind = ""
            words = number(middle, 2) if middle >= DEAD else f"<{DEAD}"
            if high < 1:
                kind = "cross"
            elif low < 1:
                kind, words = "soft", "≈ 1"
            edge = shapes.rect(x - 29, y - 25, 58, 40, rx=5)
            parts.append(shapes.group([edge, text(x, y - 8, words, kind)], kind))
            cells.append(f"{words} at {d_k} with {keys}")
    parts += [text(40, place(MAP, 0, np.log2(w))[1], str(w), "end soft") for w in WIDTHS]
    parts.append(shapes.circle(*place(MAP, 6, 6), 5, "fill-ink point"))

    at = lambda s, long: place(HILL, np.log2(s), np.log10(max(long, DEAD)))
    parts += [text(242, 22, "median of ‖∂L/∂q‖", "start"), text(464, 22, "64 keys", "end keys")]
    parts.append(line([at(0.25, DEAD), at(32, DEAD)], "soft"))
    for long in (10, 1, 0.1, 0.01, DEAD):
        parts.append(text(284, at(1, long)[1] + 5, number(long), "end soft"))
    parts += [text(at(s, 1)[0], 255, str(s), "soft") for s in (1, 4, 16)]
    parts.append(text(378, 276, "spread s of the scores", "soft"))
    hill = {float(s): float(np.median(lengths(drawn, 64, s))) for s in SPREADS}
    parts.append(line([at(*point) for point in hill.items()], "back"))
    for s, name, kind in ((1, "with", "ink"), (8, "without", "cross")):
        x, y = at(s, hill[s])
        height = line([(x, 54), (x, y)], kind)
        dot = shapes.circle(x, y, 6, f"fill-{kind}")
        parts.append(shapes.group([height, text(x, 48, name, kind), dot], name))
    alt = "The median of ‖∂L/∂q‖ without the scale over with it, by d_k and keys: "
    alt += f"{', '.join(cells)}. With 64 keys the hill is {hill[1]:.2g} at s = 1 and "
    alt += f"{hill[8]:.2g} at 8."
    bars = slider("d_k", 4, 10, 6) + slider("Number of keys", 0, 8, 4)
    bars += slider("m: how far one key stands out, as α √d_k", 0, 6, 0, 0.5)
    bars += shapes.answer()
    given = {"seed": SEED, "half": HALF, "limits": LIMITS, "floor": DEAD, "axes": (MAP, HILL)}
    given["spreads"] = SPREADS.tolist()
    says = "With 1/√d_k the scores have the spread s = 1 at every d_k; without it s = √d_k. Each "
    says += "number at the left is the height of its hill (of 5, 64 or 1,024 keys) at s = √d_k, "
    says += (
        "divided by the height at s = 1. It is below 1 (dashed) where √d_k is far to the right of "
    )
    says += (
        f"the top. (≈ 1: here {HALF // KEYS[-1]} random queries are too few to tell.) The map is "
    )
    says += "for m = 0. If one key fits (m > 0), the right side of the hill falls."
    return figure("hill", (470, 288), parts, alt, says, bars + data(given))
