"""Pictures · Four optimizers in one valley, two by two (chapter 8)."""

from collections.abc import Callable

import numpy as np

from demos.pages.templates import fill
from demos.pictures import Axes, data, figure, line, number, place, shapes, slider, text
from minigrad import Tensor
from minigrad.optim import SGD, Adam, AdamW, Optimizer

START, MINIMUM, STEEP = (-1.0, 1.8), (4.0, 1.0), 20.0
MOMENTUM, DECAY, RATE, STEPS = 0.7, 0.2, 0.09, 60
OPTIMIZERS: dict[str, Callable[[list[Tensor], float], Optimizer]] = {
    "SGD": SGD,
    "SGD with momentum": lambda p, rate: SGD(p, rate, momentum=MOMENTUM),
    "Adam": Adam,
    "AdamW": lambda p, rate: AdamW(p, rate, weight_decay=DECAY),
}
PANELS: tuple[Axes, Axes] = (112, 199, 70, 70), (112, 402, 70, 70)


def valley(x: Tensor, y: Tensor) -> Tensor:
    """Return f, which is 20 times as steep along y as along x."""
    return 0.5 * ((x - MINIMUM[0]) ** 2 + STEEP * (y - MINIMUM[1]) ** 2)


def path(name: str, rate: float = RATE, steps: int = STEPS) -> np.ndarray:
    """Return where an optimizer is after each step.   → (steps + 1, 2)"""
    p = Tensor(START, requires_grad=True)
    optimizer, places = OPTIMIZERS[name]([p], rate), [p.data]
    for _ in range(steps):
        optimizer.zero_grad()
        valley(p[0], p[1]).backward()
        optimizer.step()
        places.append(p.data)
    return np.array(places)


def contours(axes: Axes) -> list[str]:
    """Return a panel: lines along which f is equal, and the numbers along x and y."""
    (x, y), zero = place(axes, *MINIMUM), axes[1]
    ways = []
    for level in (0.1, 0.5, 2.0, 5.0, 9.0, 14.0):
        a, b = axes[2] * np.sqrt([2 * level, 2 * level / STEEP])
        halves = "".join(f" a{a:.4g},{b:.4g} 0 1 0 {across:.4g},0" for across in (2 * a, -2 * a))
        ways.append(f"M{x - a:.4g},{y:g}{halves}")
    edge = shapes.rect(28, zero - 138, 440, 152)
    parts: list[str] = [fill("pictures/valley.html", edge=edge, name=f"valley-{zero}", ways=ways)]
    parts += [text(14, zero - 124, "y", "soft"), text(458, zero + 30, "x", "soft")]
    parts += [text(14, place(axes, 0, y)[1] + 5, str(y), "soft") for y in (0, 1)]
    return parts + [text(place(axes, x, 0)[0], zero + 30, number(x), "soft") for x in range(-1, 5)]


def picture() -> str:
    """Return the figure: SGD without and with momentum above, Adam without and with decay below."""
    parts, ends = [part for axes in PANELS for part in contours(axes)], []
    parts.append(text(28, 22, "f = ½ (x - 4)² + 10 (y - 1)²", "start"))
    parts.append(text(468, 22, f"{STEPS} steps at rate {RATE}", "end soft"))
    for i, name in enumerate(OPTIMIZERS):
        panel, second = divmod(i, 2)
        axes = PANELS[panel]
        kind, left, radius = ("cross", 150, 3.5) if second else ("ink", 28, 5.5)
        places = path(name)
        points = [place(axes, *xy) for xy in places]
        dot = shapes.circle(*points[-1], radius, f"fill-{kind}")
        named = {"name": name, "panel": panel}
        parts.append(shapes.group([line(points, kind), dot], data=named))
        top = axes[1] - 146
        parts.append(line([(left, top - 5), (left + 28, top - 5)], kind))
        parts.append(text(left + 35, top, name, f"start {kind}"))
        x, y = places[-1]
        f = valley(Tensor(x), Tensor(y)).item()
        ends.append(f"{name} is at ({x:.2f}, {y:.2f}), f = {f:.2g}")
    alt = f"After {STEPS} steps from {START} at rate {RATE} in a valley whose floor leads to "
    alt += f"{MINIMUM}: {'; '.join(ends)}."
    bars = slider("Steps", 0, STEPS, STEPS) + slider("Rate", 0.01, 0.1, RATE, 0.01)
    bars += shapes.answer()
    given = {"start": START, "minimum": MINIMUM, "steep": STEEP, "momentum": MOMENTUM}
    given |= {"decay": DECAY, "axes": PANELS}
    says = "All start at (-1, 1.8), and along a grey line f is the same. At a high rate SGD swings "
    says += f"from wall to wall (at rate {2 / STEEP} forever) and creeps along the floor, where "
    says += f"momentum ({MOMENTUM}) adds up. Adam’s steps are about as long one way as the other, "
    says += f"and the decay of AdamW ({DECAY}) pulls it toward (0, 0). The best rate of each is "
    says += "another: this picture shows how they move, and not which is best."
    return figure("valley", (470, 441), parts, alt, says, bars + data(given))
