"""Pictures · Sinusoidal positions are dials: a hand for each pair of features (chapter 14)."""

import numpy as np

from attention.positions import sinusoidal
from demos.pictures import data, drawing, figure, line, number, text

D_MODEL, POSITION, SHIFT = 8, 20, 2
MIDDLES, Y, RADIUS = (92, 232, 352, 472), 112, 44


def rates() -> np.ndarray:
    """Return by how much each hand turns from a position to the next, in radians."""
    sin, cos = sinusoidal(1, D_MODEL, start=1).reshape(-1, 2).T
    return np.arctan2(sin, cos)


def hand(pair: int, sin: float, cos: float, kind: str) -> str:
    """Return a hand: sin is to the right, and cos is up."""
    x = MIDDLES[pair]
    return line([(x, Y), (x + RADIUS * sin, Y - RADIUS * cos)], kind, hand=kind)


def picture() -> str:
    """Return the figure: four dials at one position, and a second hand for a later one."""
    now, later = sinusoidal(SHIFT + 1, D_MODEL, start=POSITION)[[0, -1]].reshape(2, -1, 2)
    parts = []
    for i, (x, rate) in enumerate(zip(MIDDLES, rates(), strict=True)):
        parts.append(text(x, 24, f"pair {i}"))
        parts.append(f'<g data-pair="{i}"><circle r="{RADIUS}" cx="{x}" cy="{Y}"/>')
        parts.append(hand(i, *now[i], "ink") + hand(i, *later[i], "cross"))
        for j, name in enumerate(("sin", "cos")):
            parts.append(text(x - 42, 200 + 20 * j, name, "start soft"))
            shown = f"{now[i, j]:.3f}".replace("-", "−")
            parts.append(text(x + 44, 200 + 20 * j, shown, "end fore", value=name))
        parts.append(text(x, 246, f"turn {number(SHIFT * rate)}", "cross") + "</g>")
    for name, (sin, cos), kind in (("t", now[0], "ink"), ("t + Δ", later[0], "cross")):
        x, y = MIDDLES[0] + (RADIUS + 26) * sin, Y + 5 - (RADIUS + 18) * cos
        parts.append(text(x, y, name, kind, tip=kind))
    turns = ", ".join(number(SHIFT * rate) for rate in rates())
    alt = f"Four dials. At position {POSITION} their hands (sin, cos) are at "
    alt += ", ".join(f"({sin:.3f}, {cos:.3f})" for sin, cos in now)
    alt += f". A shift by {SHIFT} turns them by {turns} radians."
    bars = '<label>Position t<input type="range" max="120" '
    bars += f'value="{POSITION}"></label><label>Shift Δ<input type="range" min="1" max="5" '
    bars += f'value="{SHIFT}"></label><p aria-live="polite"></p>'
    kept = {"d_model": D_MODEL, "radius": RADIUS, "middles": MIDDLES, "y": Y}
    says = "Each pair of features is a hand: sin to the right, cos up. From t to t + Δ each hand "
    says += "turns by an angle that depends on Δ alone, and not on t."
    return figure("dial", drawing(530, 262, parts, alt), says, bars + data(kept))
