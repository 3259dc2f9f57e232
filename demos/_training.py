"""Demos · Training: a run that can be stopped, and pass marks.

The training loop itself is not here. Each demo writes its own loop in a dozen lines.
"""

from __future__ import annotations

import contextlib
import re
import signal
import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from tqdm import tqdm

from demos._files import stop
from minigrad import keep_memory
from minigrad.nn import Module
from minigrad.optim import Optimizer
from minigrad.runs.checkpoints import checkpoint_facts, load_checkpoint, save_checkpoint

# What must be equal for a run to continue, and its name in an error.
FIXED = {"demo": "demo", "seed": "--seed", "steps": "--steps"}

Number = float | np.floating[Any]


class Run:
    """The steps 1, 2, … of one training: counted, shown, and saved so that it can continue later.

    A `for` over a Run yields the steps and shows a progress bar. Every 100 steps and after the last
    one the Run writes a checkpoint to the demo's folder: the model, the optimizer, the generator
    and what was measured. After Ctrl-C, or SIGTERM, the current step is finished, the checkpoint is
    written, and the program ends with a sentence. `--resume` starts from that file and gives the
    same weights bit for bit. Without it, what an earlier run has saved is removed, once the first
    checkpoint of this run is written.
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
        keep_memory()  # what a step frees, the next one needs again
        self.chosen = chosen
        self.steps = chosen.steps
        self.what = what
        self.done = 0
        self.parts: dict[str, Any] = {"model": model, "optimizer": optimizer, "rng": rng}
        self.history: dict[str, list[Any]] = {}
        self.about = {name: getattr(chosen, name) for name in FIXED}
        self.path = chosen.out / f"{re.sub(r'[^a-z0-9.]+', '_', what.lower())}.safetensors"
        self.interrupted = 0  # by this signal
        self.bar: Any = None
        if chosen.resume and self.path.exists():
            self._go_on()
        else:
            self._save()  # (fails now if it cannot be written)
        while chosen.earlier:
            path = chosen.earlier.pop()
            if path != self.path:
                path.unlink(missing_ok=True)

    def __iter__(self) -> Iterator[int]:
        self.bar = tqdm(total=self.steps, initial=self.done, desc=self.what)
        handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        for number, handler in handlers.items():
            if handler is not signal.SIG_IGN:  # (a script's `demo &` ignores SIGINT)
                signal.signal(number, self._interrupt)
        try:
            for step in range(self.done + 1, self.steps + 1):
                yield step
                self.bar.update()
                self.done = step
                if self.interrupted or step % 100 == 0 or step == self.steps:
                    self._save()
                if self.interrupted:
                    self._end_early()
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
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
        """Return the losses that were shown, from the first step on."""
        return self.history.get("loss", [])

    def _interrupt(self, signal_number: int, _: Any) -> None:
        if self.interrupted:  # the second Ctrl-C ends the program at once
            raise KeyboardInterrupt
        self.interrupted = signal_number

    def _end_early(self) -> NoReturn:
        """Say where the training stopped and how it continues."""
        self._stop(
            f"stopped {self.what!r} after step {self.done} of {self.steps}, and saved it in "
            f"{self.path}: the same command with --resume continues from there",
            128 + self.interrupted,
        )

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

    def _go_on(self) -> None:
        """Load the checkpoint."""
        try:
            facts = checkpoint_facts(self.path)
            for name, option in FIXED.items():
                if facts.get(name) != self.about[name]:
                    self._stop(
                        f"{self.path} was begun with another {option}, {facts.get(name)} and not "
                        f"{self.about[name]}: start again without --resume"
                    )
            load_checkpoint(self.path, **self.parts)
        except (ValueError, LookupError, OSError) as error:
            self._stop(f"cannot resume: {error}; start again without --resume")
        self.done = facts["done"]
        self.history = facts["history"]


def checkpoints(chosen: Namespace) -> list[Path]:
    """Return the checkpoints in the demo's folder that a run of the same demo has saved."""
    paths = []
    for path in chosen.out.glob("*.safetensors"):
        with contextlib.suppress(ValueError, OSError):  # not a checkpoint, or not ours
            if checkpoint_facts(path).get("demo") == chosen.demo:
                paths.append(path)
    return paths


class Marks:
    """The marks of a demo: scores to be reached, and scores that its ablations must not reach.

    chosen    the demo's options. With --quick nothing fails. With --marks each mark is printed with
              its verdict; otherwise only missed marks, and at the end the number that passed
    """

    def __init__(self, chosen: Namespace) -> None:
        self.enforced = not chosen.quick
        self.every = chosen.marks
        self.failed: list[str] = []
        self.rows: list[list[str]] = []

    def at_least(self, what: str, got: Number, mark: Number, form: str = ".1%") -> None:
        """Judge a score that must not be below its mark."""
        self._judge(what, got, f"at least {mark:{form}}", bool(got >= mark), form)

    def at_most(self, what: str, got: Number, mark: Number, form: str = ".1%") -> None:
        """Judge a score that must not be above its mark: an ablation's, or a loss."""
        self._judge(what, got, f"at most {mark:{form}}", bool(got <= mark), form)

    def trained(self, what: str, losses: Sequence[float]) -> None:
        """Require that the loss has fallen: an ablation that never trained would prove nothing."""
        last = float(np.mean(losses[-20:])) / losses[0]
        self.at_most(f"{what}, its loss, last over first", last, 0.9, ".2f")

    def _judge(self, what: str, got: Number, expected: str, passed: bool, form: str) -> None:
        verdict = "passed" if passed else "FAILED" if self.enforced else "not reached (--quick)"
        line = f"{what}: expected {expected}, got {got:{form}}: {verdict}"
        if self.every or not passed:
            print(f"   {line}")
        self.rows.append([what, f"{got:{form}}", expected, verdict])
        if not passed:
            self.failed.append(line)

    @property
    def note(self) -> str:
        """Return the sentence at the top of a page whose run failed a mark; "" if none failed."""
        failed = len(self.failed) if self.enforced else 0
        if not failed:
            return ""
        count = f"{failed} of its {len(self.rows)}"
        return f"This run failed {count} marks, so it does not confirm the claim."

    def end(self) -> None:
        """Say how many marks were passed, and leave with exit code 1 if one was failed."""
        passed = sum(row[-1] == "passed" for row in self.rows)
        shows = "" if self.every else "; --marks shows them"
        print(f"\n{passed} of {len(self.rows)} checks passed{shows}")
        if self.failed and self.enforced:
            print("\nFailed:", *self.failed, sep="\n   ", file=sys.stderr)
            raise SystemExit(1)
