"""Pictures · The loop of chapter 0 and its lines: a step is what one line has changed."""

import inspect
import re

from markupsafe import Markup

from demos.live._loop import LINKS, values, walked
from demos.pages.source import coloured
from demos.pages.templates import fill
from demos.pages.text import inline
from demos.pictures import box, data, line, number, shapes, text
from minigrad import idea

PLACES = {"x": (62, 60), "c": (62, 195), "a": (206, 60), "b": (350, 128), "L": (494, 128)}
MADE = {"a": "x · x", "b": "a · c", "L": "-log b"}
# Of each of LINKS: how far its arrow is below the middle, and where its number is.
ARROWS = ((-9, 134, 42), (9, 134, 90), (0, 296, 84), (0, 206, 178), (0, 421, 119))


def picture() -> str:
    """Return the figure: the boxes at the end of the loop, and its lines beside them."""
    named, steps = values(), walked()["steps"]
    last, parts = steps[-1], []
    for n, ((start, end, _), (down, x, y)) in enumerate(zip(LINKS, ARROWS, strict=True)):
        (u, v), (s, t) = PLACES[start], PLACES[end]
        ends = [(u + 47, v + down), (s - 48, t + down)]
        ways = [line(ends, "soft", tip=True), line(ends[::-1], "back", tip=True)]
        ways.append(text(x, y, last["sent"][n], "back"))
        parts.append(shapes.group(ways, "link sent", {"link": n}))
    for name, made in MADE.items():
        x, y = PLACES[name]
        parts.append(text(x, y - 25, made, "soft"))
    for name, value in named.items():
        x, y = PLACES[name]
        inside = box(x, y, f"{name} = {number(value.array.item())}", width=92)
        gradient = text(x, y + 37, last["grads"][name], "back")
        parts.append(shapes.group([inside, gradient], "done", {"box": name}))
    ends = ", ".join(f"{name} {gradient}" for name, gradient in last["grads"].items())
    alt = f"Five boxes: a = x x, b = a c, L = -log b. The gradients at the end: {ends}."
    says = "An arrow turns when a gradient goes back along it. x is used twice, and gets the sum."
    source, first = inspect.getsourcelines(idea.backward)
    docstring = (idea.backward.__doc__ or "").count("\n") + 1  # its lines
    code = re.sub(r"  # .*", "", "".join(source).rstrip())
    lines = list(enumerate(coloured(code, {})))
    return fill(
        "pictures/loop.html",
        drawing=shapes.drawing(556, 250, parts, alt),
        lines=[(n, first + n, Markup(html)) for n, html in lines if not 0 < n <= docstring],
        last=len(steps) - 1,
        data=data(steps),
        says=inline(says),
    )
