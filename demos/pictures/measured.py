"""Pictures · What chapters 16.2 to 16.8 measure: a line for each scale, on logarithmic axes."""

import json
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from attention.laboratory import collapse, factors, freezing_line, head_sharpness, neighbour
from demos._files import DEMOS
from demos._json_lines import read
from demos.pictures import Points, figure, line, number, place, text

LOOKS = {"no scale": "cross", "1/√d_k": "", "1/d_k": "soft", "on paper, n → ∞": "cross"}
LOOKS |= {"variance 1": "", "GPT-2 (.02)": "soft"}
SCALES = {"no scale": 0.0, "1/√d_k": 0.5, "1/d_k": 1.0}
D_KS = (8, 32, 128, 512)
LABORATORY = DEMOS / "laboratory"
KEPT = "The numbers are those of `python -m demos laboratory --full`, kept with their seeds."
NOW = "Computed here with seed 0."


def drawn(
    name: str,
    axes: Sequence[str],
    ticks: Sequence[Sequence[float]],
    lines: Mapping[str, Points],
    says: str,
) -> str:
    """Return a figure: a line for each name, the axes' names and ticks, and what it says."""
    (left, right), (bottom, top) = (np.log10([row[0], row[-1]]) for row in ticks)
    wide, high = 330 / (right - left), 180 / (top - bottom)
    at = lambda x, y: place((64 - wide * left, 224 + high * bottom, wide, high), *np.log10([x, y]))
    parts = [text(12, 24, axes[1], "start"), text(394, 266, axes[0], "end")]
    for y in ticks[1]:
        parts.append(line([at(ticks[0][0], y), at(ticks[0][-1], y)], "closed"))
        parts.append(text(56, at(1, y)[1] + 5, number(y, 4), "end soft"))
    for x in ticks[0]:
        parts.append(text(at(x, 1)[0], 244, f"1/{1 / x:g}" if x < 1 else number(x, 4), "soft"))
    below = 300.0  # (names that would overlap move up)
    for label, points in sorted(lines.items(), key=lambda each: each[1][-1][1]):
        kind = LOOKS.get(label, "fore")
        parts.append(line([at(x, y) for x, y in points], kind))
        below = min(at(*points[-1])[1] + 5, below - 22)
        parts.append(text(at(*points[-1])[0] + 5, below, label, f"start {kind}"))
    ends = [
        f"{label}: {number(points[0][1])} at {number(points[0][0], 4)}, {number(points[-1][1])} "
        f"at {number(points[-1][0], 4)}"
        for label, points in lines.items()
    ]
    alt = f"{axes[1]}, over {axes[0]}. {'; '.join(ends)}."
    return figure(name, (488, 276), parts, alt, says)


def of_scales(d_ks: Sequence[int], size: Callable[..., float]) -> dict[str, Points]:
    """Return a line over d_k for each scale."""
    return {
        name: [(d_k, size(d_k, a, rng=np.random.default_rng(0))) for d_k in d_ks]
        for name, a in SCALES.items()
    }


def chain() -> str:
    """Return the figure of chapter 16.2."""
    lines = of_scales((4, *D_KS[1:]), lambda *of, rng: factors(*of, queries=128, rng=rng).gain_j)
    says = "Without the scale softmax's J shortens the gradient more and more as heads grow wider. "
    says += f"With 1/√d_k its gain does not depend on d_k. Medians of 128 queries. {NOW}"
    ticks = (4, 32, 128, 512), (1e-4, 1e-3, 1e-2, 1e-1)
    return drawn("chain", ("d_k", "gain of J"), ticks, lines, says)


def freezing() -> str:
    """Return the figure of chapter 16.3."""
    parts = (0.25, 0.5, 0.7, 1, 1.4, 2, 4)
    lines = {
        f"{n:,} keys": [
            (x, collapse(n, x * freezing_line(n), rng=np.random.default_rng(0)).entropy)
            for x in parts
        ]
        for n in (16, 256, 4096)
    }
    lines["on paper, n → ∞"] = [(x, 1 - x * x) for x in (*parts[:3], 0.85, 0.95, 0.974)]
    says = "At the freezing line, 1, a third of the entropy or more is left, and on paper nothing: "
    says += f"with this many keys freezing is a wide crossover. Means of 500 rows. {NOW}"
    ticks = (0.25, 0.5, 1, 2, 4), (0.05, 0.1, 0.2, 0.5, 1)
    axes = "spread of the scores / √(2 ln n)", "entropy / log n"
    return drawn("freezing", axes, ticks, lines, says)


def sharpness() -> str:
    """Return the figure of chapter 16.4."""
    lines = of_scales(D_KS, lambda *of, rng: head_sharpness(*of, rng=rng).sharpness)
    says = "Without a scale the loss is the more curved, the wider the head: nearly like d_k. With "
    says += f"1/√d_k it is equally curved at every width. One batch of 256 queries. {NOW}"
    return drawn("sharpness", ("d_k", "sharpness λ"), (D_KS, (1e-4, 0.01, 1, 100)), lines, says)


def basin() -> str:
    """Return the figure of chapter 16.5: trainings with SGD at d_k = 512."""
    rows = (LABORATORY / "results_full_steps.json").read_text("utf-8").splitlines()
    trainings = [(key, one) for kind, key, one in map(json.loads, rows) if kind == "trainings"]
    lines = {
        name: [
            (key[-1], one["steps_mean"])
            for key, one in trainings
            if key[:5] == ["sgd", "unit", a, 0, 512] and one["learned"]
        ]
        for name, a in SCALES.items()
    }
    says = "With 1/√d_k a head learns ten times faster than without, each at its best rate. "
    says += f"1/d_k needs larger rates. Means of the trainings that learned, of eight. {KEPT}"
    axes = "learning rate", "SGD's steps at d_k = 512"
    return drawn("basin", axes, ((0.03, 0.1, 0.3, 1, 3, 10), (10, 30, 100, 400)), lines, says)


def trained() -> str:
    """Return the figure of chapter 16.6: the second task at d_k = 64, after one with 1/√d_k."""
    _, rows = read(LABORATORY / "results_full_trained.json")
    steps: dict[str, dict[float, list[float]]] = {"no scale": {}, "1/√d_k": {}}
    every = [row for row in rows if row["a"] and len({task["lr"] for task in row["second"]}) > 1]
    for task in (task for row in every for task in row["second"] if task["slowed"] == 1):
        name = {"no scale": "no scale", "as trained": "1/√d_k"}.get(task["change"])
        if name:
            steps[name].setdefault(task["lr"], []).append(task["steps"] or np.inf)
    lines = {
        name: [
            (lr, float(np.median(of))) for lr, of in sorted(by.items()) if np.median(of) < np.inf
        ]
        for name, by in steps.items()
    }
    says = "A trained head whose scale is taken away still answers, but learns a second task more "
    says += f"slowly, or at the rate 1 not within 1,500. Medians of ten trainings. {KEPT}"
    axes = "learning rate", "steps of the second task"
    return drawn("trained", axes, ((0.03, 0.1, 0.3, 1), (10, 30, 100, 300, 1000)), lines, says)


def neighbours() -> str:
    """Return the figure of chapter 16.7."""
    names = ("no scale", "1/√d_k", "1/d_k", "QK-norm", "log n")
    of = lambda d_k, name: neighbour(
        d_k, "none" if name == "no scale" else name, queries=64, rng=np.random.default_rng(0)
    )
    lines = {name: [(d_k, of(d_k, name).score_std) for d_k in (16, 64, 256)] for name in names}
    says = "With 1/√d_k, and with log n, scores begin with one spread at every width. QK-norm and "
    says += f"1/d_k make it fall as heads grow wider. 64 queries. {NOW}"
    axes = "d_k", "spread of the scores"
    return drawn("neighbours", axes, ((16, 64, 256), (0.03, 0.1, 1, 10, 30)), lines, says)


def over_training() -> str:
    """Return the figure of chapter 16.8: steps over the spread of the scores at the start."""
    _, rows = read(LABORATORY / "results_full_over_training.jsonl")
    steps: dict[str, dict[float, list[int]]] = {"unit": {}, "0.02": {}}
    for row in (row for row in rows if "spread" in row):
        steps[row["init"]].setdefault(row["spread"], []).append(row["steps"] or 400)
    lines = {
        name: [(s, float(np.mean(of))) for s, of in sorted(steps[init].items())]
        for name, init in (("variance 1", "unit"), ("GPT-2 (.02)", "0.02"))
    }
    says = "A GPT learns soonest if its scores spread by about 1 at the start: a valley with a "
    says += f"flat floor from ½ to 2. Means of four trainings; not done counts as 400. {KEPT}"
    axes = "spread of the scores at the start", "steps to a loss of ½"
    ticks = (1 / 32, 1 / 8, 0.5, 1, 2, 4, 8), (30, 50, 100, 200, 400)
    return drawn("over_training", axes, ticks, lines, says)
