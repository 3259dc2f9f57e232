"""Demos · Pretrained: what became of the trainings of W_Q and W_K, and of the temperatures.

The default run trains each part once, with Adam at one rate. `--full` takes five seeds, more rates
and SGD, and its trainings are kept in results_full.jsonl, whose first line says how it was made:

    python -m demos pretrained --full

The page shows both, each under its name.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from attention.figures import save_figure
from demos._kept import read
from demos._page import Page
from demos._training import Marks
from demos.pretrained._figures import plot_recovery
from demos.pretrained._recovery import LEARNED, LOOKS, OTHERS, Recovery

KEPT = Path(__file__).with_name("results_full.jsonl")
MANY = 320  # texts, of which each is used once in 80 steps of 4
STARTS = {1.0: "too flat: 1/d_k", 0.0: "too sharp: no scale"}
PARTS = {
    ("weights", LEARNED): f"W_Q and W_K, {LEARNED} texts",
    ("weights", MANY): f"W_Q and W_K, {MANY} texts",
    ("temperatures", LEARNED): f"16 temperatures, {LEARNED} texts",
}
NAMES = {"adam": "Adam", "sgd": "SGD"}
HEADER = ["what learns", "start", "optimizer", "rate", "before", "after", "won back"]
HEADER += ["before", "after", "won back"]
GROUPS = [("", 4), ("loss on 16 learned texts", 3), ("loss on 8 other texts", 3)]
WIDTHS = 28, 22, 11, 8, 9, 16, 10, 9, 16, 10  # on the screen
Key = tuple[str, int, float, str]  # what learns, from how many texts, the start, the optimizer


class Recovered:
    """All trainings of a run: for each part, start and optimizer those at the best rate.

    The best rate is the one with the smallest mean loss on the other texts after the last step.
    """

    def __init__(self, results: Sequence[Recovery]) -> None:
        self.rates: dict[Key, dict[float, list[Recovery]]] = {}
        for r in results:
            key = (r.part, r.texts, r.a, r.optimizer)
            self.rates.setdefault(key, {}).setdefault(r.lr, []).append(r)
        self.of = {
            key: min(rates.values(), key=lambda found: np.mean([_end(r.others, r) for r in found]))
            for key, rates in self.rates.items()
        }
        self.seeds = len(next(iter(self.of.values())))
        self.steps = max(LOOKS[len(r.others) - 1] for r in results)

    def won_back(self, key: Key, *, learned: bool = False) -> float:
        """Return the share of what the wrong scale costs that the training won back."""
        return float(np.mean([_won(r, learned) for r in self.of[key]]))

    def temperatures(self, a: float) -> Any:
        """Return the temperatures after the training, over 1/√d_k or √d_k: 1 is the way back."""
        found = self.of["temperatures", LEARNED, a, "adam"]
        return np.mean([r.temperatures for r in found], axis=0) * 32 ** (0.5 - a)

    def rows(self) -> list[list[str]]:
        """Return a row for each part, start and optimizer, at the best rate."""
        rows = []
        for key, found in sorted(self.of.items(), key=lambda item: _order(item[0])):
            part, texts, a, optimizer = key
            cells = [PARTS[part, texts], STARTS[a], NAMES[optimizer], f"{found[0].lr:g}"]
            for learned in (True, False):
                values = [r.learned if learned else r.others for r in found]
                before, after = np.array([[each[0], each[-1]] for each in values]).T
                spread = f" ± {after.std(ddof=1):.3f}" if len(after) > 1 else ""
                cells += [f"{before.mean():.3f}", f"{after.mean():.3f}{spread}"]
                cells.append(f"{self.won_back(key, learned=learned):.0%}")
            rows.append(cells)
        return rows

    def below(self, key: Key) -> float:
        """Return how far the loss on the learned texts ends below that of the trained model."""
        return float(np.mean([r.trained[0] - r.learned[-1] for r in self.of[key]]))

    def tell(self, marks: Marks) -> None:
        """Print the table, and judge."""
        for cells in (HEADER, *self.rows()):
            print(f"   {cells[0]:{WIDTHS[0]}}" + _line(cells[1:]))
        on_learned, on_others = self.trained()
        print(f"\n   with the trained scale: {on_learned:.3f} on the learned texts, ", end="")
        print(f"{on_others:.3f} on the others")
        few, many, heads = ("weights", LEARNED), ("weights", MANY), ("temperatures", LEARNED)
        for a, least in ((0.0, 0.3), (1.0, 0.1)):
            what = f"{STARTS[a]}, W_Q and W_K: learned texts' loss below the trained model's"
            marks.at_least(what, self.below((*few, a, "adam")), least, ".2f")
        flat, sharp = (self.won_back((*few, a, "adam")) for a in (1.0, 0.0))
        marks.at_least("too flat, W_Q and W_K: won back on other texts", flat, 0.5)
        marks.at_most("too sharp, W_Q and W_K: won back on other texts", sharp, 0.3)
        more = self.won_back((*many, 0.0, "adam")) - sharp
        marks.at_least(f"  and with {MANY} texts more than with {LEARNED}, by", more, 0.1)
        for a in (0.0, 1.0):
            won = self.won_back((*heads, a, "adam"))
            marks.at_least(f"{STARTS[a]}, 16 temperatures: won back on other texts", won, 0.85)
        middle = float(np.exp(np.abs(np.log(self.temperatures(0.0)).mean())))
        what = "too sharp: geometric mean of the temperatures, from 1/√d_k by a factor of"
        marks.at_most(what, middle, 1.5, ".2f")

    def trained(self) -> Any:
        """Return the loss with the trained scale on the learned texts, and on the others."""
        return np.mean([r.trained for found in self.of.values() for r in found], axis=0)

    def show(self, page: Page, out: Path, *, full: tuple[dict[str, Any], Recovered] | None) -> None:
        """Add a question, the picture and the tables; `full` is from a run with --full."""
        few, many, heads = ("weights", LEARNED), ("weights", MANY), ("temperatures", LEARNED)
        sharp, flat = ((*few, a, "adam") for a in (0.0, 1.0))
        on_learned, on_others = self.trained()
        end = np.mean([r.learned[-1] for r in self.of[sharp]])
        page.ask(
            "Two models start with factors that are equally far from the trained scale: one with "
            "1/d_k, √d_k times too small, and one with no scale, √d_k times too large. In each, "
            f"W_Q and W_K alone are trained on {LEARNED} texts that the model wrote itself. Does "
            "the second one learn? And do 16 numbers that multiply the scores of the 16 heads do "
            "better or worse than all the numbers in W_Q and W_K?",
            f"It overfits these {LEARNED} texts: there its loss falls to {end:.2f}, below "
            f"the {on_learned:.2f} of the model with its trained scale. On {OTHERS} other texts of "
            f"the same kind it wins back {self.won_back(sharp):.0%} of what the lost scale costs, "
            f"and the first model {self.won_back(flat):.0%}. The 16 temperatures win back "
            f"{self.won_back((*heads, 0.0, 'adam')):.0%} from too sharp and "
            f"{self.won_back((*heads, 1.0, 'adam')):.0%} from too flat. Won back is the share "
            "(before - after) / (before - loss with the trained scale).",
        )
        save_figure(plot_recovery(self.curves(), LOOKS, self.trained()), out / "recovery")
        page.figure(
            out / "recovery.svg",
            alt="The loss over the steps. On the learned texts W_Q and W_K fall below the trained "
            "model from both starts. On other texts they hardly move from too sharp, and the "
            "temperatures come back to the trained model.",
            caption=f"Adam, seeds: {self.seeds}. Left: the {LEARNED} learned texts (for {MANY} "
            f"texts the first {LEARNED} of them). Right: {OTHERS} other texts. The blue line is "
            "the model with its trained scale",
        )
        page.table(
            HEADER,
            self.rows(),
            groups=GROUPS,
            caption=f"This run: texts of 64 tokens, {self.steps} steps of 4 texts; seeds: "
            f"{self.seeds}. The model with its trained scale has the losses {on_learned:.3f} and "
            f"{on_others:.3f}",
        )
        of_sharp, of_flat = self.temperatures(0.0), self.temperatures(1.0)
        page.say(
            "*The scale is easy to learn back.* The temperatures of the 16 heads come back to "
            f"{of_sharp.min():.1f} to {of_sharp.max():.1f} times the trained factor from too sharp "
            f"(geometric mean {np.exp(np.log(of_sharp).mean()):.2f}), and from too flat to "
            f"{of_flat.min():.1f} to {of_flat.max():.1f} times. They are numbers by which the demo "
            "multiplies each head's queries; `attention`'s scale is one number. So the gradients "
            "that pass the sharp softmax suffice to find the way back, if the way back is all that "
            "can be learned.",
            "*From too sharp, W_Q and W_K generalise worse.* With more texts, of which each is "
            f"used once, the same start wins back {self.won_back((*many, 0.0, 'adam')):.0%} on "
            f"other texts in the same {self.steps} steps. So the few texts are one reason, and not "
            "the only one. If you look at the other texts alone, W_Q and W_K seem not to learn: "
            "they learn, and something else.",
            "This is one model and few steps: nothing is said of a longer training.",
        )
        if full is not None:
            about, found = full
            page.table(
                HEADER,
                found.rows(),
                groups=GROUPS,
                caption=f"From a run with --full of {about['date']} (`{about['command']}`, seed "
                f"{about['seed']}, NumPy {about['numpy']}): {found.seeds} seeds of texts and their "
                "order, ± one standard deviation; each at the best of two or three rates",
            )

    def curves(self) -> dict[tuple[str, int, float], Any]:
        """Return both losses over the steps with Adam: (2, seeds, looks) for each training."""
        return {
            key[:3]: np.array([[getattr(r, name) for r in found] for name in ("learned", "others")])
            for key, found in self.of.items()
            if key[3] == "adam" and all(r.broke_at is None for r in found)
        }


def kept() -> tuple[dict[str, Any], Recovered]:
    """Return how the kept trainings of a run with --full were made, and the trainings."""
    about, rows = read(KEPT)
    return about, Recovered([Recovery(**row) for row in rows])


def _order(key: Key) -> tuple[Any, ...]:
    return list(PARTS).index(key[:2]), -key[2], key[3]


def _end(losses: Sequence[float], r: Recovery) -> float:
    """Return the last loss; infinite if the training broke."""
    return losses[-1] if r.broke_at is None else np.inf


def _won(r: Recovery, learned: bool) -> float:
    losses, trained = (r.learned, r.trained[0]) if learned else (r.others, r.trained[1])
    with np.errstate(divide="ignore", invalid="ignore"):  # (a scale that costs nothing: NaN)
        return float(np.divide(losses[0] - losses[-1], losses[0] - trained))


def _line(cells: Sequence[str]) -> str:
    return "".join(f"{cell:>{width}}" for cell, width in zip(cells, WIDTHS[1:], strict=True))
