"""Pictures · Values that wait, and why the newest is taken first (chapter 2.1)."""

from demos.pictures import box, drawing, figure, line, number, text
from minigrad import Tensor, gradients

PLACES = {"x": (60, 90), "a": (190, 40), "b": (320, 90), "L": (450, 90)}


def picture() -> str:
    """Return the figure: a is used by b and by L, so b has to come before a."""
    x = Tensor(3.0, requires_grad=True)
    a = x * x
    b = a + x
    loss = a * b
    right = dict(zip("xab", gradients(loss, [x, a, b]), strict=True))
    early = b.data * 2 * x.data + a.data  # ∂L/∂x if a passes on before b has sent to it
    parts = []
    for start, end in ("xa", "xb", "ab", "aL", "bL"):
        (p, q), (u, v) = PLACES[start], PLACES[end]
        ways = {"aL": [(p + 38, q - 6), (u, q - 6), (u, v - 17)]}
        path = ways.get(start + end, [(p + 39, q), (u - 40, v)])
        parts.append(line(path, "soft", tip=True))
    made = {"x": "x = 3", "a": "a = x²", "b": "b = a + x", "L": "L = a b"}
    for i, (letter, place) in enumerate(PLACES.items()):
        parts.append(box(*place, made[letter], "", 76))
        parts.append(text(place[0], place[1] + 33, f"time {i + 1}", "soft"))
    rows = [("taken", "sends to", "then waits, the newest first"), ("L", "a, b", "b, a")]
    rows += [("b", "a, x", "a, x"), ("a", "x", "x"), ("x", "", "")]
    for i, row in enumerate(rows):
        for column, words in zip((70, 200, 340), row, strict=True):
            kind = "start soft" if i == 0 else "start"
            parts.append(text(column, 150 + 24 * i, words, kind))
    found, wrong = number(float(right["x"])), number(float(early))
    parts.append(text(40, 282, f"∂L/∂x = {found}", "start back big"))
    parts.append(text(200, 282, f"a before b: {wrong}", "start cross"))
    alt = f"a is used by b and by L. The newest first gives {found} for ∂L/∂x, a first {wrong}."
    says = "When the newest is taken, all that was made from it has sent: its gradient is complete."
    return figure("waiting", drawing(560, 300, parts, alt), says)
