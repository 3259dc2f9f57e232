"""Pictures · Four optimizers in one valley, two by two (chapter 8)."""

from collections.abc import Callable

import numpy as np

from demos.pictures import data, drawing, figure, line, text
from minigrad import Tensor
from minigrad.optim import SGD, Adam, AdamW, Optimizer

START, MINIMUM, STEEP = (-1.0, 1.8), (4.0, 1.0), 20.0
MOMENTUM, DECAY, RATE, STEPS = 0.7, 0.2, 0.09, 60
OPTIMIZERS: dict[str, Callable[[list[Tensor], float], Optimizer]] = {
    "SGD": SGD,
    "SGD with momentum": lambda p, rate: SGD(p, rate, momentum=MOMENTUM),
    "Adam": Adam,
    "AdamW": lambda p, rate: AdamW(p, rate, decay=DECAY),
}
UNIT, LEFT, ZEROS = 78, 100, (174, 388)  # pixels for 1, and where x = 0 and y = 0 are drawn


def valley(x: Tensor, y: Tensor) -> Tensor:
    """Return f, which is 20 times as steep along y as along x."""
    return 0.5 * ((x - MINIMUM[0]) ** 2 + STEEP * (y - MINIMUM[1]) ** 2)


def path(name: str, rate: float = RATE, steps: int = STEPS) -> np.ndarray:
    """Return where an optimizer is after each step.   → (steps + 1, 2)"""
    p = Tensor(START, requires_grad=True)
    optimizer, found = OPTIMIZERS[name]([p], rate), [p.data]
    for _ in range(steps):
        optimizer.zero_grad()
        valley(p[0], p[1]).backward()
        optimizer.step()
        found.append(p.data)
    return np.array(found)


def contours(zero: int) -> list[str]:
    """Return a panel: lines along which f is equal."""
    panel = f'<rect x="1" y="{zero - 146}" width="518" height="158"/>'
    parts = [f'{panel}<clipPath id="valley-{zero}">{panel}</clipPath>']
    for level in (0.1, 0.5, 2.0, 5.0, 9.0, 14.0):
        a, b = UNIT * np.sqrt([2 * level, 2 * level / STEEP])
        begin = f"M{LEFT + UNIT * MINIMUM[0] - a:.4g},{zero - UNIT * MINIMUM[1]:g}"
        arcs = "".join(f" a{a:.4g},{b:.4g} 0 1 0 {way * a:.4g},0" for way in (2, -2))
        shape = f'class="contour" clip-path="url(#valley-{zero})" d="{begin}{arcs}"'
        parts.append(f"<path {shape}/>")
    return [*parts, text(LEFT, zero + 5, "+ 0", "start soft")]


def picture() -> str:
    """Return the figure: SGD without and with momentum above, Adam without and with decay below."""
    parts, ends = [part for zero in ZEROS for part in contours(zero)], []
    for i, name in enumerate(OPTIMIZERS):
        found, zero, kind = path(name), ZEROS[i // 2], ("ink", "cross")[i % 2]
        points = [(LEFT + UNIT * x, zero - UNIT * y) for x, y in found]
        (x, y), edge = points[-1], zero + (12 if i % 2 else -146)
        parts.append(f'<g data-name="{name}" data-zero="{zero}" data-edge="{edge}">')
        parts += [line(points, kind), line([(x, edge), (x, y)], "soft")]
        size = 5.5 - 2 * (i % 2)
        parts.append(f'<circle class="fill-{kind}" r="{size}" cx="{x:.4g}" cy="{y:.4g}"/>')
        parts.append(text(x, edge + (17 if i % 2 else -7), name, kind) + "</g>")
        f = valley(*map(Tensor, found[-1])).item()
        ends.append(f"{name} is at ({found[-1, 0]:.2f}, {found[-1, 1]:.2f}), f = {f:.2g}")
    alt = f"After {STEPS} steps from {START} at rate {RATE} in a valley whose floor leads to "
    svg = drawing(520, 426, parts, f"{alt}{MINIMUM}: {'; '.join(ends)}.")
    bars = f'<label>Steps<input type="range" max="{STEPS}" value="{STEPS}"></label>'
    bars += '<label>Rate<input type="range" min="0.01" max="0.1" step="0.01" '
    bars += f'value="{RATE}"></label><p aria-live="polite"></p>'
    kept = {"start": START, "minimum": MINIMUM, "steep": STEEP, "momentum": MOMENTUM}
    kept |= {"decay": DECAY, "unit": UNIT, "left": LEFT}
    says = f"At a high rate SGD swings from wall to wall (at {2 / STEEP} forever) and creeps along "
    says += "the floor; momentum adds up there. Adam’s steps are about as long one way as the "
    says += "other, and the decay of AdamW pulls it toward 0."
    return figure("valley", svg, says, bars + data(kept))
