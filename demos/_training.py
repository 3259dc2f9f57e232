"""Demos · Training: a run that can be stopped, pass marks, and pictures of the losses.

The training loop itself is not here. Each demo writes its own loop in a dozen lines.
"""

from __future__ import annotations

import re
import signal
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
from tqdm import tqdm

from attention.figures import ABLATION, MODEL, REFERENCE, name_ends, new_figure, save_figure
from demos import stop
from minigrad import keep_memory
from minigrad.nn import Module
from minigrad.optim import Optimizer
from minigrad.runs.checkpoints import checkpoint_facts, load_checkpoint, save_checkpoint

# What must be equal for a run to continue, and its name in an error.
FIXED = {"demo": "demo", "source": "text of its files", "seed": "--seed", "steps": "--steps"}


class Run:
    """The steps 1, 2, … of one training: counted, shown, and saved so that it can continue later.

    A `for` over a Run yields the steps and shows a progress bar. Every 100 steps and after the last
    one the Run writes a checkpoint to the demo's folder: the model, the optimizer, the generator
    and what was measured. After Ctrl-C, or SIGTERM, the current step is finished, the checkpoint is
    written, and the program ends with a sentence. `--resume` starts from that file and gives the
    same weights bit for bit.
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
        keep_memory()  # what a step frees, the next one needs again (chapter 9.3)
        self.steps, self.what, self.done = chosen.steps, what, 0
        self.parts: dict[str, Any] = {"model": model, "optimizer": optimizer, "rng": rng}
        self.history: dict[str, list[Any]] = {}
        self.about = {name: getattr(chosen, name) for name in (*FIXED, "begun")}
        self.path = chosen.out / f"{re.sub(r'[^a-z0-9.]+', '_', what.lower())}.safetensors"
        self.interrupted = 0  # by this signal
        self.bar: Any = None
        if chosen.resume and self.path.exists():
            self._go_on(chosen)
        elif chosen.begun is None:
            self._stop(f"there is no {self.path} to resume: start again without --resume")
        else:
            self._save()  # replaces an earlier run's file, and fails now if it cannot be written

    def __iter__(self) -> Iterator[int]:
        self.bar = tqdm(total=self.steps, initial=self.done, desc=self.what)
        before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
        for each, handler in before.items():
            if handler is not signal.SIG_IGN:  # (a script's `demo &` ignores SIGINT)
                signal.signal(each, self._interrupt)
        try:
            for step in range(self.done + 1, self.steps + 1):
                yield step
                self.bar.update()
                self.done = step
                if self.interrupted or step % 100 == 0 or step == self.steps:
                    self._save()
                if self.interrupted:
                    self._stop(
                        f"stopped {self.what!r} after step {step} of {self.steps}, and saved it "
                        f"in {self.path}: the same command with --resume continues from there",
                        128 + self.interrupted,
                    )
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)
            self.bar.close()

    def show(self, **numbers: float) -> None:
        """Put numbers at the end of the bar, such as loss=… and accuracy=…, and keep them."""
        self.keep(**{name: float(value) for name, value in numbers.items()})
        texts = {name: f"{value:.4g}" for name, value in numbers.items()}
        self.bar.set_postfix(texts, refresh=False)

    def keep(self, **measured: Any) -> None:
        """Append a number or an array to the history of its name."""
        for name, value in measured.items():
            self.history.setdefault(name, []).append(value)

    @property
    def losses(self) -> list[float]:
        """The losses that were shown, from the first step on."""
        return self.history.get("loss", [])

    def _interrupt(self, signal_number: int, _: Any) -> None:
        if self.interrupted:  # the second Ctrl-C ends the program at once
            raise KeyboardInterrupt
        self.interrupted = signal_number

    def _stop(self, sentence: str, code: int = 2) -> NoReturn:
        """End with a sentence on a separate line."""
        if self.bar is not None:
            self.bar.close()
        stop(sentence, code=code)

    def _save(self) -> None:
        history = {
            name: [np.asarray(value).tolist() for value in values]
            for name, values in self.history.items()
        }
        facts = self.about | {"done": self.done, "history": history}
        try:
            save_checkpoint(self.path, **self.parts, **facts)
        except OSError as error:
            self._stop(f"cannot write {self.path}: {error.strerror or error}")

    def _go_on(self, chosen: Namespace) -> None:
        """Load the checkpoint, if it is from this run: the trainings of a run share `begun`."""
        try:
            facts = checkpoint_facts(self.path)
            if chosen.begun and facts.get("begun") != chosen.begun:
                return  # the file is from an earlier run: this training had not begun yet
            for name, said in FIXED.items():
                if facts.get(name) != self.about[name]:
                    self._stop(
                        f"{self.path} was begun with another {said}, {facts.get(name)} and not "
                        f"{self.about[name]}: start again without --resume"
                    )
            load_checkpoint(self.path, **self.parts)
        except (ValueError, LookupError, OSError) as error:
            self._stop(f"cannot resume: {error}; start again without --resume")
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

    def trained(self, what: str, losses: Sequence[float]) -> None:
        """The loss must have fallen: an ablation that never trained would prove nothing."""
        last = float(np.mean(losses[-20:])) / losses[0]
        self.at_most(f"{what}, its loss, last over first", last, 0.9, ".2f")

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


class Line(NamedTuple):
    """What was measured at each step, as a line of a picture."""

    name: str
    values: Sequence[float]
    colour: str
    style: str = "-"


def plot_training(
    path: Path,
    claim: str,
    runs: Mapping[str, tuple[Run, float]],
    *,
    choices: int,
    mark: float,
    counted: str,
    scored: str,
) -> list[Path]:
    """The losses of the model and its ablation, and below them how much of the answers is right.

    runs     name → its run, and its score in the end; the model first
    choices  how many answers there are: chance is one of them
    mark     the pass mark of the score, which is a diamond behind the last step
    counted  what is right or wrong in a step; `scored`, what is so in the score
    """
    figure = new_figure(6.8, 6.4)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    lines, ends = [], []
    for (name, (run, score)), colour, style in zip(
        runs.items(), (MODEL, ABLATION), ("-", "--"), strict=True
    ):
        lines.append(Line(name, run.losses, colour, style))
        draw_line(below, run.history["accuracy"], colour, centred, style)
        below.plot(1.02 * run.steps, score, "D", color=colour, markersize=6, clip_on=False)
        ends.append((score, f"{name}: {score:.1%}", colour))
    draw_losses(above, lines, {f"chance: ln {choices}": np.log(choices)})
    levels = {f"chance: {1 / choices:.0%}": 1 / choices, f"pass mark: {mark:.0%}": mark}
    below.set_ylim(-0.04, 1.04)
    name_ends(below, ends + draw_levels(below, levels))
    below.set(xlabel="step", ylabel=f"{counted} right\n◆ {scored}")
    below.grid(alpha=0.25)
    figure.suptitle(claim, fontsize=11)
    return save_figure(figure, path)


def draw_losses(panel: Any, lines: Sequence[Line], levels: Mapping[str, float]) -> None:
    """Losses on a logarithmic axis, with their names; a run that broke with NaN ends in a ✕."""
    from matplotlib.ticker import LogLocator, NullFormatter

    panel.set_yscale("log")
    last = max(len(line.values) for line in lines)
    drawn = [draw_line(panel, line.values, line.colour, smoothed, line.style) for line in lines]
    top = 3 * max(*(values[0] for values in drawn), *levels.values())
    bottom = 0.6 * min(values.min() for values in drawn)
    panel.set_ylim(bottom, top)
    panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if top < 30 * bottom else (1,)))
    ends = []
    for line, values in zip(lines, drawn, strict=True):
        if len(values) == last:
            ends.append((values[-1], line.name, line.colour))
            continue
        at = len(values), min(values[-1], 0.6 * top)
        panel.plot(*at, "X", color=line.colour, markersize=9)
        said = f"{line.name}, NaN at step {len(values) + 1}"
        panel.annotate(said, at, (8, 0), textcoords="offset points", color=line.colour, va="center")
    name_ends(panel, ends + draw_levels(panel, levels))
    panel.yaxis.set_major_formatter("{x:g}")
    panel.yaxis.set_minor_formatter(NullFormatter())
    panel.set_ylabel("loss")
    panel.grid(alpha=0.25)


def draw_levels(panel: Any, levels: Mapping[str, float]) -> list[tuple[float, str, str]]:
    """A dotted line at each height, and what `name_ends` needs for its name."""
    for height in levels.values():
        panel.axhline(height, color=REFERENCE, linestyle=":", linewidth=1.2)
    return [(height, name, REFERENCE) for name, height in levels.items()]


def draw_line(
    panel: Any,
    values: Sequence[float],
    colour: str,
    mean: Callable[[Any], Any],
    style: str = "-",
) -> Any:
    """The mean of each value and its neighbours, over a band from their lower to upper quartile."""
    steps, middle = np.arange(1, len(values) + 1), mean(values)
    starts, ends = neighbours(len(values))
    near = [np.quantile(values[a:b], (0.25, 0.75)) for a, b in zip(starts, ends, strict=True)]
    panel.fill_between(steps, *np.transpose(near), color=colour, alpha=0.2, linewidth=0)
    panel.plot(steps, middle, style, color=colour, linewidth=1.8)
    return middle


def smoothed(values: Sequence[float]) -> Any:
    """The geometric mean of each value and its neighbours, as the axis is logarithmic.

    So an exponential decay is kept.
    """
    return np.exp(centred(np.log(np.maximum(values, np.finfo(float).tiny))))


def centred(values: Sequence[float]) -> Any:
    """The mean of each value and its neighbours. The window is centred, so the mean does not lag."""
    starts, ends = neighbours(len(values))
    sums = np.cumsum([0.0, *values])
    return (sums[ends] - sums[starts]) / (ends - starts)


def neighbours(n: int, share: float = 0.04) -> tuple[Any, Any]:
    """Where the window of each of n values starts and ends: a twenty-fifth of them all.

    It grows from the first value alone, since losses fall fast there, and is cut off at the end.
    """
    at = np.arange(n)
    reach = np.minimum(at, int(n * share / 2))
    return at - reach, np.minimum(at + reach + 1, n)
