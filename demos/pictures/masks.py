"""Pictures · Three masks, and the weights that they leave (chapter 11.1)."""

import numpy as np

from attention import attention_weights, causal_mask, padding_mask
from demos.pictures import figure, shapes, text

POSITIONS, SIDE = 5, 27
MASKS = {
    "causal": causal_mask(POSITIONS),
    "a window of 2": np.triu(causal_mask(POSITIONS), -1),
    "padding: 3 real": padding_mask(np.array([3]), POSITIONS)[0].repeat(POSITIONS, axis=0),
}


def picture() -> str:
    """Return the figure: the same queries and keys under three masks."""
    rng = np.random.default_rng(0)
    q, k = rng.standard_normal((2, POSITIONS, 8))
    parts = []
    for number, (name, mask) in enumerate(MASKS.items()):
        left = 12 + 156 * number
        weights = attention_weights(q, k, mask=mask).data
        for i, j in [*np.argwhere(~mask), *np.argwhere(mask)]:  # (the lines of what is seen on top)
            x, y = left + SIDE * j, 40 + SIDE * i
            parts.append(shapes.rect(x, y, SIDE, SIDE, "seen" if mask[i, j] else "closed"))
            if mask[i, j]:
                weight = f"{weights[i, j]:.2f}".removeprefix("0")
                parts.append(text(x + SIDE / 2, y + 18, weight, "fore mono"))
        parts.append(text(left + SIDE * POSITIONS / 2, 26, name))
    alt = (
        "Five queries (rows) and five keys (columns) under three masks. Causal: query t sees keys "
        "0 to t. A window of 2: itself and the one before. Padding: the first three keys."
    )
    says = (
        "A mask chooses what a query (a row) may look at. Softmax shares the weight 1 among what "
        "is left, and a forbidden key (empty) gets exactly 0."
    )
    return figure("masks", (478, 188), parts, alt, says)
