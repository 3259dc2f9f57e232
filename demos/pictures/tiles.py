"""Pictures · Attention in tiles over T × S, with the running maximum (chapter 12)."""

import numpy as np

from demos.pictures import figure, line, number, shapes, text

ROWS, COLUMNS, SIDE, BLOCK = 4, 6, 42, 2


def running(z: np.ndarray) -> list[tuple[float, float]]:
    """Return m and l of one query after each block of keys."""
    m, total, pairs = -np.inf, 0.0, []
    for block in z.reshape(-1, BLOCK):
        higher = max(m, block.max())
        total = total * np.exp(m - higher) + np.exp(block - higher).sum()
        m = higher
        pairs.append((float(m), float(total)))
    return pairs


def picture() -> str:
    """Return the figure: the scores of one query are read two by two, and m and l follow."""
    z = np.array([1.0, 0.0, 2.0, -1.0, 0.5, 1.5])
    pairs = running(z)
    parts = [text(136, 22, "T queries × S keys")]
    for i, j in np.ndindex(ROWS, COLUMNS):
        x, y = 10 + SIDE * j, 38 + SIDE * i
        if i == 1:
            parts.append(shapes.rect(x, y, SIDE, SIDE, "seen"))
            parts.append(text(x + SIDE / 2, y + 26, number(float(z[j])), "fore"))
        else:
            parts.append(shapes.rect(x, y, SIDE, SIDE))
    for j in range(0, COLUMNS + 1, BLOCK):
        x = 10 + SIDE * j
        parts.append(line([(x, 32), (x, 44 + SIDE * ROWS)], "heavy"))
    for k, (m, total) in enumerate(pairs):
        x = 10 + SIDE * (BLOCK * k + 1)
        parts.append(text(x, 236, f"m = {number(m)}", "fore"))
        parts.append(text(x, 260, f"l = {number(total)}", "fore"))
    notes = {
        98: "Scores z of one query:",
        118: "read two at a time,",
        138: "and not kept.",
        236: "m: the largest so far",
        260: "l: the sum of exp(z - m)",
    }
    parts += [text(274, y, words, "start soft") for y, words in notes.items()]
    alt = "Six scores of one query are read in three blocks. m and l are then "
    alt += "; ".join(f"{number(m)} and {number(total)}" for m, total in pairs)
    alt += ". The weights are exp(z - m)/l."
    says = "The forward pass needs no block twice: when m grows to m′, l is multiplied by "
    says += "exp(m - m′), and so is the sum of the values that becomes the output."
    return figure("tiles", (470, 278), parts, alt, says)
