"""Pictures · The loop of chapter 0 walks back over five boxes, the newest first."""

import re

from demos.pages.text import inline
from demos.pictures import box, drawing, figure, line, number, text
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
    waiting, turns = {root}, [("", ["L"], {x: 1.0 * (x == "L") for x in named})]
    while waiting:  # (the loop of chapter 0, which notes each turn)
        y = max(waiting, key=lambda value: value.time)
        waiting.remove(y)
        for each, vjp in zip(y.inputs, y.vjps, strict=True):
            each.grad = each.grad + vjp(y.grad)
            waiting.add(each)
        order = sorted(waiting, key=lambda value: -value.time)
        found = {letter: float(value.grad) for letter, value in named.items()}
        turns.append((name[id(y)], [name[id(value)] for value in order], found))
    return named, turns


def picture() -> str:
    """Return the figure: at each turn the box that is taken, those that wait, and the gradients."""
    named, turns = walk()
    parts, count = [], len(turns)
    for start, end, up in LINKS:
        (x, y), (u, v) = PLACES[start], PLACES[end]
        taken = next(i for i, turn in enumerate(turns) if turn[0] == end)
        ends = [(x + 40, y + up), (u - 40 - 6 * (end == "L"), v + up)]
        other = " ".join(str(i) for i in range(count) if i != taken)
        parts.append(line(ends, "soft", tip=True, at=other))
        parts.append(line(ends[::-1], "back", tip=True, at=str(taken)))
    for letter, made in MADE.items():
        parts.append(text(PLACES[letter][0], PLACES[letter][1] - 25, made, "soft"))
    for letter, value in named.items():
        x, y = PLACES[letter]
        for i, (taken, waiting, grads) in enumerate(turns):
            kind = "now" if taken == letter else "waits" if letter in waiting else ""
            name = f"{letter} = {number(float(value.array))}"
            parts.append(box(x, y, name, kind, 92 if letter == "L" else 80, at=str(i)))
            if grads[letter]:
                shown = f"gradient {number(grads[letter])}"
                parts.append(text(x, y + 38, shown, "back", at=str(i)))
    told = ["The gradient of L with respect to itself is 1. L waits (dashed)."]
    for taken, waiting, _ in turns[1:]:
        what = "sends each input its share" if named[taken].inputs else "has no inputs"
        rest = f"{' and '.join(waiting) or 'nothing'} wait{'s' * (len(waiting) < 2)}"
        told.append(f"{taken} is the newest that waits: it is taken, and {what}. Now {rest}.")
    told = [re.sub(r"\ba\b", "*a*", each) for each in told]  # (a name, and not the word)
    found = ", ".join(f"{letter} {number(grad)}" for letter, grad in turns[-1][2].items())
    alt = f"Five boxes: a = x x, b = a c, L = -log b. The gradients at the end: {found}."
    says = "x is used twice, so its gradient is a sum: −0.5 from each use."
    last = count - 1  # the turn that is seen until the script runs
    hidden = lambda m: m[0] + ' style="display: none"' * (str(last) not in m[1].split())
    svg = re.sub(r' data-at="([^"]*)"', hidden, drawing(470, 230, parts, alt))
    bar = f'<input type="range" max="{last}" value="{last}" aria-label="Turn of the loop">'
    bar += "".join(f'<p data-at="{i}">{inline(each)}</p>' for i, each in enumerate(told))
    return figure("loop", svg, says, bar)
