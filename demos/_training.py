"""Demos · Training: a progress bar, pass marks, and a picture of the loss.

The training loop itself is not here. Each demo writes its own, whole, in a dozen lines.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from attention.figures import new_figure, save_figure


class Bar:
    """A progress bar over the steps 1, 2, … of a training, which shows loss and accuracy."""

    def __init__(self, steps: int, what: str) -> None:
        self.bar = tqdm(range(1, steps + 1), desc=what)

    def __iter__(self) -> Iterator[int]:
        return iter(self.bar)

    def show(self, **numbers: float) -> None:
        """Put numbers at the end of the bar, such as loss=… and accuracy=…."""
        texts = {name: f"{value:.4f}" for name, value in numbers.items()}
        self.bar.set_postfix(texts, refresh=False)


class Marks:
    """What a demo claims: scores that must be reached, and ablations that must not reach theirs.

    With `enforced=False` (--quick) everything is printed and nothing fails.
    """

    def __init__(self, *, enforced: bool) -> None:
        self.enforced = enforced
        self.failed: list[str] = []

    def at_least(self, what: str, got: float, mark: float, form: str = ".1%") -> None:
        """A score that must not be below its mark."""
        self._judge(what, got, f"at least {mark:{form}}", got >= mark, form)

    def at_most(self, what: str, got: float, mark: float, form: str = ".1%") -> None:
        """A score, an ablation's or a loss, that must not be above its mark."""
        self._judge(what, got, f"at most {mark:{form}}", got <= mark, form)

    def _judge(self, what: str, got: float, expected: str, passed: bool, form: str) -> None:
        verdict = "passed" if passed else "FAILED" if self.enforced else "not reached (--quick)"
        line = f"{what}: expected {expected}, got {got:{form}}: {verdict}"
        print(f"   {line}")
        if not passed:
            self.failed.append(line)

    def end(self) -> None:
        """Leave with exit code 1 if a mark was failed."""
        if self.failed and self.enforced:
            print("\nFailed:", *self.failed, sep="\n   ", file=sys.stderr)
            raise SystemExit(1)


def plot_losses(losses: Mapping[str, Sequence[float]], path: Path, note: str = "") -> list[Path]:
    """Every training's loss over its steps, on a logarithmic axis, smoothed as the bold line."""
    figure = new_figure(7.0, 4.2)
    axes = figure.subplots()
    for number, (name, values) in enumerate(losses.items()):
        steps = np.arange(1, len(values) + 1)
        colour = f"C{number}"
        axes.plot(steps, values, color=colour, alpha=0.25, linewidth=0.8)
        axes.plot(steps, smoothed(values), color=colour, linewidth=1.8, label=name)
    axes.set_yscale("log")
    axes.set_ylim(top=5 * max(values[0] for values in losses.values()))  # not up to where one broke
    axes.set_xlabel("step")
    axes.set_ylabel("loss")
    axes.set_title(note, fontsize=10)
    axes.grid(alpha=0.25)
    axes.legend(fontsize=9)
    return save_figure(figure, path)


def smoothed(values: Sequence[float], share: float = 0.04) -> Any:
    """The mean of each value and those before it, about a twenty-fifth of all."""
    window = max(1, int(len(values) * share))
    sums = np.cumsum(np.concatenate([np.zeros(1), np.asarray(values, float)]))
    ends = np.arange(1, len(values) + 1)
    starts = np.maximum(ends - window, 0)
    return (sums[ends] - sums[starts]) / (ends - starts)
