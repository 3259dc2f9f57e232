"""Pictures · The map of chapter 16, and the hill of which it compares two places.

‖∂L/∂q‖ is about s ‖J g‖, as the chapter derives: s = scale · √d_k is the spread of the scores, J is
softmax's derivative, and g = ∂L/∂p. So one draw of scores and of g serves every width.
"""

import numpy as np

from attention.scaling import DEAD
from demos.laboratory.explorable import normal
from demos.pictures import drawing, figure, line, number, text
from demos.site._templates import formula
from minigrad import Tensor, gradients, softmax

SEED, HALF = 0, 2**18  # numbers for the scores, and as many for g
WIDTHS, KEYS, SPREADS = (16, 64, 256, 1024), (5, 64, 1024), 2 ** np.arange(-2, 5.01, 0.25)


def median(drawn: np.ndarray, keys: int, s: float) -> float:
    """Return the median of s ‖J g‖ over queries whose scores have the spread s."""
    queries = min(2**14, HALF // keys)
    scores, g = drawn.reshape(2, HALF)[:, : queries * keys].reshape(2, queries, keys)
    x = Tensor(s * scores, requires_grad=True)
    (of_x,) = gradients(softmax(x), [x], g)
    return float(s * np.median(np.linalg.norm(of_x, axis=-1)))


def on_map(d_k: int, keys: int) -> tuple[float, float]:
    """Return where a width and a number of keys are drawn: powers of two both ways."""
    return 100 + 17 * np.log2(keys / 5), 84 + 26 * np.log2(d_k / 16)


def on_hill(s: float, long: float) -> tuple[float, float]:
    """Return where a spread and a median are drawn; a shorter one than DEAD is at the bottom."""
    return 394 + 32 * np.log2(s), 107 - 43 * np.log10(max(long, DEAD))


def short(x: float) -> str:
    """Return a number with two digits, a small one as a power of ten."""
    digit, power = f"{x:.0e}".split("e")
    return number(x, 2) if x >= DEAD else f"{digit}·10^{int(power)}"


def picture() -> str:
    """Return the figure: the map with a point, and the hill with the two places it compares."""
    drawn, told = normal(SEED, 2 * HALF), []
    parts = [text(20, 22, "without the scale / with it", "start"), text(62, 48, "d_k", "end soft")]
    for keys in KEYS:
        name = f"{keys:,}" + " keys" * (keys == KEYS[0])
        parts.append(text(on_map(16, keys)[0], 48, name, "soft"))
        for d_k in WIDTHS:
            ratio = median(drawn, keys, d_k**0.5) / median(drawn, keys, 1.0)
            (x, y), kind = on_map(d_k, keys), "cross" if ratio < 1 else ""
            shape = f'<rect x="{x - 28:g}" y="{y - 25:g}" width="56" height="38" rx="5"/>'
            parts.append(f'<g class="{kind}">{shape}{text(x, y - 9, short(ratio), kind)}</g>')
            told.append(f"{ratio:.2g} at {d_k} with {keys}")
    parts += [text(62, on_map(d_k, 5)[1] - 2, str(d_k), "end soft") for d_k in WIDTHS]
    x, y = on_map(64, 64)
    parts.append(f'<circle class="fill-ink point" r="5" cx="{x:g}" cy="{y:g}"/>')

    parts.append(text(330, 22, "median of ‖∂L/∂q‖", "start"))
    parts.append(text(572, 22, "64 keys", "end keys"))
    parts.append(line([on_hill(0.25, DEAD), on_hill(32, DEAD)], "soft"))
    for long in (10, 1, 0.1, 0.01, DEAD):
        parts.append(text(322, on_hill(1, long)[1] + 5, number(long), "end soft"))
    parts += [text(on_hill(s, 1)[0], 255, str(s), "soft") for s in (1, 4, 16)]
    parts.append(text(442, 276, "spread s of the scores", "soft"))
    hill = {float(s): median(drawn, 64, s) for s in SPREADS}
    parts.append(line([on_hill(*each) for each in hill.items()], "back"))
    for s, name, kind in ((1, "with", "ink"), (8, "without", "cross")):
        x, y = on_hill(s, hill[s])
        parts.append(f'<g class="{name}">{line([(x, 54), (x, y)], kind)}{text(x, 48, name, kind)}')
        parts.append(f'<circle class="fill-{kind}" r="6" cx="{x:g}" cy="{y:g}"/></g>')
    alt = (
        f"The median of ‖∂L/∂q‖ without the scale over with it, by d_k and keys: {', '.join(told)}"
    )
    alt += f". With 64 keys the hill is {hill[1]:.2g} at s = 1 and {hill[8]:.2g} at 8."

    bar = '<label>{}: <b></b><input type="range" min="{}" max="{}" value="{}"></label>'
    controls = bar.format(formula("d_k"), 4, 10, 6) + bar.format("number of keys", 0, 8, 4)
    controls += f'<p data-seed="{SEED}" aria-live="polite"></p>'
    says = (
        "1/√d_k puts every width at s = 1. Without the scale a head is at s = √d_k. A cell of the "
    )
    says += (
        "map is the hill there over the hill at 1: less than 1 where √d_k is far beyond the top."
    )
    return figure("hill", drawing(590, 288, parts, alt), says, controls)
