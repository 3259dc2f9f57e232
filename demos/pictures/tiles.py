"""Pictures · Attention in tiles over T × S, with the running maximum (chapter 12)."""

import numpy as np

from demos.pictures import drawing, figure, line, number, text

ROWS, COLUMNS, SIDE, BLOCK = 4, 6, 42, 2


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
    parts = [text(136, 22, "T queries × S keys")]
    for i, j in np.ndindex(ROWS, COLUMNS):
        x, y, kind = 10 + SIDE * j, 38 + SIDE * i, ' class="seen"' * (i == 1)
        parts.append(f'<rect x="{x}" y="{y}" width="{SIDE}" height="{SIDE}"{kind}/>')
        parts += [text(x + SIDE / 2, y + 26, number(float(z[j])), "fore")] * (i == 1)
    for j in range(0, COLUMNS + 1, BLOCK):
        x = 10 + SIDE * j
        parts.append(line([(x, 32), (x, 44 + SIDE * ROWS)], "heavy"))
    for k, (m, total) in enumerate(found):
        x = 10 + SIDE * (BLOCK * k + 1)
        shown = f"m = {number(m)}", f"l = {number(total)}"
        parts += [text(x, y, each, "fore") for y, each in zip((236, 260), shown, strict=True)]
    notes = {98: "Scores z of one query:", 118: "read two at a time,", 138: "and not kept."}
    notes |= {236: "m: the largest so far", 260: "l: the sum of exp(z - m)"}
    parts += [text(274, y, words, "start soft") for y, words in notes.items()]
    alt = "Six scores of one query are read in three blocks. m and l are then "
    alt += "; ".join(f"{number(m)} and {number(total)}" for m, total in found)
    alt += ". The weights are exp(z - m)/l."
    says = "The forward pass needs no block twice: when m grows to m′, l is multiplied by "
    says += "exp(m - m′), and so is the sum of the values that becomes the output."
    return figure("tiles", drawing(470, 278, parts, alt), says)
