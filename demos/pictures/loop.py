"""Pictures · The loop of chapter 0 walks back over five boxes, the newest first."""

import re

from demos.pages.templates import fill
from demos.pages.text import inline
from demos.pictures import box, figure, line, number, shapes, text
from minigrad.idea import Value, minus_log, multiply

PLACES = {"x": (48, 60), "c": (48, 175), "a": (172, 60), "b": (296, 115), "L": (418, 115)}
MADE = {"a": "x · x", "b": "a · c", "L": "-log b"}
LINKS = (("x", "a", -8), ("x", "a", 8), ("a", "b", 0), ("c", "b", 0), ("b", "L", 0))
Turn = tuple[str, list[str], dict[str, float]]  # what is taken, what waits, and the gradients


def walk() -> tuple[dict[str, Value], list[Turn]]:
    """Return the values, and each turn of the loop."""
    x, c = Value(2.0), Value(0.5)
    a = multiply(x, x)
    b = multiply(a, c)
    named = {"x": x, "c": c, "a": a, "b": b, "L": minus_log(b)}
    name = {id(value): letter for letter, value in named.items()}
    root = named["L"]
    root.grad = root.grad + 1
    start = {letter: float(value.grad) for letter, value in named.items()}
    waiting, turns = {root}, [("", ["L"], start)]
    while waiting:  # (the loop of chapter 0, which notes each turn)
        y = max(waiting, key=lambda value: value.time)
        waiting.remove(y)
        for x, vjp in zip(y.inputs, y.vjps, strict=True):
            x.grad = x.grad + vjp(y.grad)
            waiting.add(x)
        order = sorted(waiting, key=lambda value: -value.time)
        grads = {letter: float(value.grad) for letter, value in named.items()}
        turns.append((name[id(y)], [name[id(value)] for value in order], grads))
    return named, turns


def picture() -> str:
    """Return the figure: at each turn the box that is taken, those that wait, and the gradients."""
    named, turns = walk()
    last = len(turns) - 1  # the turn that is seen until the script runs
    parts = []

    def seen(at: list[int], part: str) -> str:
        listed = " ".join(map(str, at))
        return shapes.group([part], data={"at": listed}, hidden=last not in at)

    for start, end, up in LINKS:
        (x, y), (u, v) = PLACES[start], PLACES[end]
        edge = 46 if end == "L" else 40
        ends = [(x + 40, y + up), (u - edge, v + up)]
        turn = next(i for i, (taken, _, _) in enumerate(turns) if taken == end)
        others = [i for i in range(len(turns)) if i != turn]
        parts.append(seen(others, line(ends, "soft", tip=True)))
        parts.append(seen([turn], line(ends[::-1], "back", tip=True)))
    for letter, made in MADE.items():
        x, y = PLACES[letter]
        parts.append(text(x, y - 25, made, "soft"))
    for letter, value in named.items():
        x, y = PLACES[letter]
        name = f"{letter} = {number(float(value.array))}"
        for i, (taken, waiting, grads) in enumerate(turns):
            kind = "now" if taken == letter else "waits" if letter in waiting else ""
            parts.append(seen([i], box(x, y, name, kind, 92 if letter == "L" else 80)))
            if grads[letter]:
                gradient = f"gradient {number(grads[letter])}"
                parts.append(seen([i], text(x, y + 38, gradient, "back")))
    sentences = ["The gradient of L with respect to itself is 1. L waits (dashed)."]
    for taken, waiting, _ in turns[1:]:
        what = "sends each input its share" if named[taken].inputs else "has no inputs"
        rest = " and ".join(waiting) or "nothing"
        verb = "wait" if len(waiting) > 1 else "waits"
        sentence = f"{taken} is the newest that waits: it is taken, and {what}. Now {rest} {verb}."
        sentences.append(re.sub(r"\ba\b", "*a*", sentence))  # (a name, and not the word)
    ends = ", ".join(f"{letter} {number(grad)}" for letter, grad in turns[-1][2].items())
    alt = f"Five boxes: a = x x, b = a c, L = -log b. The gradients at the end: {ends}."
    says = "x is used twice, so its gradient is a sum: −0.5 from each use."
    bar = fill("pictures/loop.html", sentences=list(map(inline, sentences)))
    return figure("loop", (470, 230), parts, alt, says, bar)
