"""Pictures · Attention in tiles over T × S, with the running maximum (chapter 12)."""

import numpy as np

from demos.pictures import drawing, figure, line, number, text
from minigrad import softmax

ROWS, COLUMNS, SIDE, BLOCK = 4, 6, 44, 2


def running(z: np.ndarray) -> list[tuple[float, float]]:
    """Return m and l of one query after each block of keys."""
    m, total, found = -np.inf, 0.0, []
    for block in z.reshape(-1, BLOCK):
        higher = max(m, block.max())
        total = total * np.exp(m - higher) + np.exp(block - higher).sum()
        m = higher
        found.append((float(m), float(total)))
    return found


def picture() -> str:
    """Return the figure: the scores of one query are read two by two, and m and l follow."""
    z = np.array([1.0, 0.0, 2.0, -1.0, 0.5, 1.5])
    found = running(z)
    parts = [text(152, 20, "S keys"), text(12, 130, "T", "start")]
    for i in range(ROWS):
        for j in range(COLUMNS):
            kind = ' class="seen"' if i == 1 else ""
            x, y = 30 + SIDE * j, 36 + SIDE * i
            parts.append(f'<rect x="{x}" y="{y}" width="{SIDE}" height="{SIDE}"{kind}/>')
            if i == 1:
                parts.append(text(x + SIDE / 2, y + 27, number(z[j]), "fore"))
    for j in range(0, COLUMNS + 1, BLOCK):
        x = 30 + SIDE * j
        parts.append(line([(x, 30), (x, 42 + SIDE * ROWS)], "heavy"))
    for k, (m, total) in enumerate(found):
        x = 30 + SIDE * (BLOCK * k + 1)
        parts.append(text(x, 240, f"m = {number(m)}", "fore"))
        parts.append(text(x, 260, f"l = {number(total)}", "fore"))
    weights = np.exp(z - found[-1][0]) / found[-1][1]
    parts.append(text(320, 80, "One query’s scores,", "start"))
    parts.append(text(320, 100, "two keys at a time", "start"))
    parts.append(text(320, 246, "the largest so far, and", "start soft"))
    parts.append(text(320, 264, "the sum of exp(z - m)", "start soft"))
    apart = np.abs(weights - softmax(z)).max()
    alt = "Six scores of one query are read in three blocks. m and l are then "
    alt += "; ".join(f"{number(m)} and {number(total)}" for m, total in found)
    alt += f". The weights exp(z - m)/l differ from softmax by {apart:.0e}."
    says = "No block is needed twice: when m grows to m′, l is multiplied by exp(m - m′)."
    return figure("tiles", drawing(520, 280, parts, alt), says)
