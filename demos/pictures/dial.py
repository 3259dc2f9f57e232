"""Pictures · Sinusoidal positions are dials: a hand for each pair of features (chapter 14)."""

import numpy as np

from attention.positions import sinusoidal
from demos.pictures import data, drawing, figure, line, number, slider, text

D_MODEL, POSITION, SHIFT = 8, 20, 2
MIDDLES, Y, RADII = (57, 159, 261, 363), 112, {"cross": 41, "ink": 29}


def picture() -> str:
    """Return the figure: four dials at one position, and a second hand for a later one."""
    now, later = sinusoidal(SHIFT + 1, D_MODEL, start=POSITION)[[0, -1]].reshape(2, -1, 2)
    turns = SHIFT * np.arctan2(*sinusoidal(1, D_MODEL, start=1).reshape(-1, 2).T)
    parts = [text(16, 27, f"d_model = {D_MODEL}", "start")]
    keys = ("ink heavy", "position t =", 144, POSITION), ("cross", "t + Δ =", 302, POSITION + SHIFT)
    for kind, name, x, t in keys:
        parts.append(line([(x - 26, 22), (x - 6, 22)], kind))
        parts.append(text(x, 27, name, "start"))
        parts.append(text(x + (88 if x < 200 else 58), 27, str(t), "start", value=kind.split()[0]))
    for i, (x, turn) in enumerate(zip(MIDDLES, turns, strict=True)):
        parts.append(text(x, 60, f"pair {i}"))
        parts.append(f'<g data-pair="{i}"><circle r="41" cx="{x}" cy="{Y}"/>')
        for (kind, long), (sin, cos) in zip(RADII.items(), (later[i], now[i]), strict=True):
            ends = [(x, Y), (x + long * sin, Y - long * cos)]  # sin to the right, and cos up
            parts.append(line(ends, kind + " heavy" * (kind == "ink"), hand=kind))
        for j, name in enumerate(("sin", "cos")):
            parts.append(text(x - 42, 182 + 20 * j, name, "start soft"))
            shown = f"{now[i, j]:.3f}".replace("-", "−")
            parts.append(text(x + 44, 182 + 20 * j, shown, "end fore", value=name))
        parts.append(text(x, 228, f"turn {number(turn)}", "cross") + "</g>")
    alt = f"d_model = {D_MODEL}: four dials. At position {POSITION} the hands (sin, cos) are at "
    alt += ", ".join(f"({sin:.3f}, {cos:.3f})" for sin, cos in now)
    alt += f". A shift by {SHIFT} turns them by {', '.join(map(number, turns))} radians."
    bars = slider("Position t", 0, 120, POSITION) + slider("Shift Δ", 1, 5, SHIFT)
    bars += '<p aria-live="polite"></p>'
    kept = {"d_model": D_MODEL, "radii": RADII, "middles": MIDDLES, "y": Y}
    says = "Eight features are four pairs, and each pair is a hand: sin to the right, cos up. From "
    says += "t to t + Δ each hand turns clockwise by an angle (here in radians) that depends on Δ "
    says += "alone, and not on t."
    return figure("dial", drawing(420, 246, parts, alt), says, bars + data(kept))
