"""Pictures · Sinusoidal positions are dials: a hand for each pair of features (chapter 14)."""

import numpy as np

from attention.positions import sinusoidal
from demos.pictures import data, figure, line, number, shapes, slider, text

D_MODEL, POSITION, SHIFT = 8, 20, 2
MIDDLES, Y = (57, 159, 261, 363), 112
RADII = {"cross": 41, "ink": 29}  # of the later hand and of the one now
HANDS = {"cross": "cross", "ink": "ink heavy"}


def picture() -> str:
    """Return the figure: four dials at one position, and a second hand for a later one."""
    now, later = sinusoidal(SHIFT + 1, D_MODEL, start=POSITION)[[0, -1]].reshape(2, -1, 2)
    turns = SHIFT * np.arctan2(*sinusoidal(1, D_MODEL, start=1).reshape(-1, 2).T)
    parts = [text(16, 27, f"d_model = {D_MODEL}", "start")]
    for kind, name, x, t_x, t in (
        ("ink", "position t =", 144, 232, POSITION),
        ("cross", "t + Δ =", 302, 360, POSITION + SHIFT),
    ):
        parts.append(line([(x - 26, 22), (x - 6, 22)], HANDS[kind]))
        parts.append(text(x, 27, name, "start"))
        parts.append(text(t_x, 27, str(t), "start", value=kind))
    for i, (x, turn) in enumerate(zip(MIDDLES, turns, strict=True)):
        parts.append(text(x, 60, f"pair {i}"))
        dial = [shapes.circle(x, Y, 41)]
        for (kind, long), (sin, cos) in zip(RADII.items(), (later[i], now[i]), strict=True):
            ends = [(x, Y), (x + long * sin, Y - long * cos)]  # sin to the right, and cos up
            dial.append(line(ends, HANDS[kind], hand=kind))
        for j, name in enumerate(("sin", "cos")):
            dial.append(text(x - 42, 182 + 20 * j, name, "start soft"))
            value = f"{now[i, j]:.3f}".replace("-", "−")
            dial.append(text(x + 44, 182 + 20 * j, value, "end fore", value=name))
        dial.append(text(x, 228, f"turn {number(turn)}", "cross"))
        parts.append(shapes.group(dial, data={"pair": i}))
    alt = f"d_model = {D_MODEL}: four dials. At position {POSITION} the hands (sin, cos) are at "
    alt += ", ".join(f"({sin:.3f}, {cos:.3f})" for sin, cos in now)
    alt += f". A shift by {SHIFT} turns them by {', '.join(map(number, turns))} radians."
    bars = slider("Position t", 0, 120, POSITION) + slider("Shift Δ", 1, 5, SHIFT)
    bars += shapes.answer()
    given = {"d_model": D_MODEL, "radii": RADII, "middles": MIDDLES, "y": Y}
    says = "Eight features are four pairs, and each pair is a hand: sin to the right, cos up. From "
    says += "t to t + Δ each hand turns clockwise by an angle (here in radians) that depends on Δ "
    says += "alone, and not on t."
    return figure("dial", (420, 246), parts, alt, says, bars + data(given))
