"""Live · Breaks: known ways to break a definition, and what the reader is told of each.

The answers are computed when the site is built, by the function that the browser's Python calls, in
a process of their own: the definitions there are broken, one after the other. So they are in the
page, and need no Python, no script and no server.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from demos.live._definitions import define, lines_of, put
from demos.live._examples import Spaces


class Break(NamedTuple):
    """A way to break a definition: a part of its lines, and what takes its place."""

    title: str
    old: str
    new: str


Answer = dict[str, Any]
BREAKS: dict[tuple[str, str], tuple[Break, ...]] = {
    ("minigrad.idea", "backward"): (
        Break("take the oldest value first", "max(waiting", "min(waiting"),
        Break("do not add up: keep what came last", "x.grad + vjp(y.grad)", "vjp(y.grad)"),
        Break("begin with L in place of 1", "np.ones_like(root.array)", "root.array"),
    ),
    ("minigrad.ops.linalg", "_matmul"): (
        Break("forget to transpose B", "g @ b.mT", "g @ b"),
        Break("lose a sign", "g @ b.mT", "-g @ b.mT"),
        Break("take y for g", "a.mT @ g", "a.mT @ y"),
    ),
    ("minigrad.ops.softmaxes", "softmax"): (
        Break("leave ⟨y, g⟩ out", "y * (g - (y * g).sum(axis=axis, keepdims=True))", "y * g"),
        Break(
            "take sigmoid's rule",
            "y * (g - (y * g).sum(axis=axis, keepdims=True))",
            "g * y * (1 - y)",
        ),
        Break("plus for minus", "(g - (y * g)", "(g + (y * g)"),
        Break("sum along the other axis", "(y * g).sum(axis=axis", "(y * g).sum(axis=0"),
        Break(
            "take the average without weights",
            "(y * g).sum(axis=axis, keepdims=True)",
            "g.mean(axis=axis, keepdims=True)",
        ),
    ),
    ("minigrad.engine.replay", "_fitted"): (
        Break("take one share for all", "g.sum(axis=tuple(range(extra)))", "g[(0,) * extra]"),
        Break(
            "take the mean of the shares",
            "g.sum(axis=tuple(range(extra)))",
            "g.mean(axis=tuple(range(extra)))",
        ),
        Break("do not sum at all", "    if extra:", "    if False:"),
    ),
    ("minigrad.ops.fused", "layer_norm"): (
        Break("forget that μ moves", "h -= h.mean(axis=-1, keepdims=True)", "pass"),
        Break("forget that σ moves", "h -= n * along", "pass"),
        Break("forget the gain", "h = g * gain", "h = 1 * g"),
        Break("forget to divide by σ", "h /= sigma", "pass"),
    ),
    ("minigrad.ops.classification", "_cross_entropy"): (
        Break("forget the truth", "p -= truth", "pass"),
        Break("plus for minus", "p -= truth", "p += truth"),
        Break("take log p for p", "p = np.exp(log_p)", "p = log_p.copy()"),
        Break("ignore g", "p *= g[..., None]", "pass"),
    ),
    ("attention.scaled_dot_product", "attention_backward"): (
        Break("forget softmax's average", "(dP - (P * dP).sum(axis=-1, keepdims=True))", "dP"),
        Break("forget the scale of Q", "dQ = scale * dZ @ K", "dQ = dZ @ K"),
        Break("scale twice", "dP = G @ V.mT", "dP = scale * G @ V.mT"),
        Break("take the scores for the weights", "dV = P.mT @ G", "dV = Z.mT @ G"),
    ),
}


def broken(place: tuple[str, str], known: Break) -> str:
    """Return a definition's lines, broken. ValueError if the part is not there once."""
    lines = lines_of(*place)
    if lines.count(known.old) != 1:
        raise ValueError(f"{place[1]} has {known.old!r} {lines.count(known.old)} times, not once")
    return lines.replace(known.old, known.new)


def kept() -> dict[tuple[str, str], list[Answer]]:
    """Return for each definition the answers to all ways to break it, with their titles."""
    answers: dict[tuple[str, str], list[Answer]] = {}
    for place, ways in BREAKS.items():
        answers[place] = list(answered(place, ways))
        put(place, lines_of(*place))
    return answers


def refused(*, failed: str, trace: str) -> None:
    """Raise what is told of lines that do not run. (Ours do.)"""
    raise ValueError(f"a known way to break a definition does not run: {failed}\n{trace}")


def answered(place: tuple[str, str], ways: tuple[Break, ...]) -> Iterator[Answer]:
    """Yield the answer to each way: what `define` says, and which line became which."""
    of, name = place
    for known in ways:
        text = broken(place, known)
        question = {"define": text, "of": of, "name": name}
        answer = define(question, refused, Spaces())
        assert answer is not None  # (or it was refused)
        pairs = zip(lines_of(of, name).splitlines(), text.splitlines(), strict=True)
        (changed,) = [pair for pair in pairs if pair[0] != pair[1]]
        before, now = (line.strip() for line in changed)
        yield {"title": known.title, "before": before, "after": now} | answer
