"""Demos · Training: a run that can be stopped, pass marks, and a picture of the loss.

The training loop itself is not here. Each demo writes its own, whole, in a dozen lines.
"""

from __future__ import annotations

import re
import signal
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from attention.figures import new_figure, save_figure
from demos import stop
from minigrad.checkpoints import checkpoint_facts, load_checkpoint, save_checkpoint
from minigrad.nn import Module
from minigrad.optim import Optimizer


class Run:
    """The steps 1, 2, … of one training: counted, shown, and saved so that they can go on later.

    A `for` over it yields the steps, behind a progress bar. Every 100 steps and after the last one
    it writes a checkpoint to the demo's folder: the model, the optimizer, the generator and what
    was measured. Ctrl-C lets the step under way finish, writes the checkpoint and ends the program
    with a sentence. `--resume` starts from that file, and comes to the same weights bit for bit.
    """

    def __init__(
        self,
        chosen: Namespace,
        what: str,
        *,
        model: Module,
        optimizer: Optimizer,
        rng: np.random.Generator,
    ) -> None:
        self.steps, self.what, self.done = chosen.steps, what, 0
        self.parts: dict[str, Any] = {"model": model, "optimizer": optimizer, "rng": rng}
        self.history: dict[str, list[Any]] = {}
        self.about = {"begun": chosen.begun, "seed": chosen.seed, "steps": chosen.steps}
        self.path = chosen.out / f"{re.sub(r'[^a-z0-9.]+', '_', what.lower())}.safetensors"
        self.interrupted = False
        if chosen.resume and self.path.exists():
            self._go_on(chosen)
        elif chosen.begun is None:
            stop(f"--resume finds no {self.path}: start anew without it")

    def __iter__(self) -> Iterator[int]:
        self.bar = tqdm(total=self.steps, initial=self.done, desc=self.what)
        before = signal.signal(signal.SIGINT, self._interrupt)
        try:
            for step in range(self.done + 1, self.steps + 1):
                yield step
                self.bar.update()
                self.done = step
                if self.interrupted or step % 100 == 0 or step == self.steps:
                    self._save()
                if self.interrupted:
                    self.bar.close()
                    stop(
                        f"stopped after step {step} of {self.steps} of {self.what!r}, which is in "
                        f"{self.path}: the same command with --resume goes on from there",
                        code=130,
                    )
        finally:
            signal.signal(signal.SIGINT, before)
            self.bar.close()

    def show(self, **numbers: float) -> None:
        """Put numbers at the end of the bar, such as loss=… and accuracy=…, and keep them."""
        self.keep(**{name: float(value) for name, value in numbers.items()})
        texts = {name: f"{value:.4f}" for name, value in numbers.items()}
        self.bar.set_postfix(texts, refresh=False)

    def keep(self, **measured: Any) -> None:
        """Append a number or an array to the history of its name."""
        for name, value in measured.items():
            self.history.setdefault(name, []).append(value)

    @property
    def losses(self) -> list[float]:
        """The losses that were shown, from the first step on."""
        return self.history.get("loss", [])

    def _interrupt(self, *_: Any) -> None:
        if self.interrupted:  # asked twice: now
            raise KeyboardInterrupt
        self.interrupted = True

    def _save(self) -> None:
        history = {
            name: [np.asarray(value).tolist() for value in values]
            for name, values in self.history.items()
        }
        facts = self.about | {"done": self.done, "history": history}
        save_checkpoint(self.path, **self.parts, **facts)

    def _go_on(self, chosen: Namespace) -> None:
        """Set everything from the checkpoint, unless it is of another run than the first one's."""
        try:
            facts = checkpoint_facts(self.path)
            if facts["begun"] != (chosen.begun or facts["begun"]):
                return  # an earlier run left it there: this training had not begun yet
            for option in ("seed", "steps"):
                if facts[option] != self.about[option]:
                    stop(
                        f"{self.path} was begun with --{option} {facts[option]}: got "
                        f"--{option} {self.about[option]}; give the same, or start anew without "
                        "--resume"
                    )
            load_checkpoint(self.path, **self.parts)
        except (ValueError, KeyError) as error:
            stop(f"--resume cannot go on: {error}; start anew without it")
        self.about["begun"] = chosen.begun = facts["begun"]
        self.done, self.history = facts["done"], facts["history"]


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
