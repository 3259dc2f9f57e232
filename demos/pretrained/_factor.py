"""Demos · Pretrained: the loss over a factor on the scale that a model was trained with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from attention import GPT
from attention.figures import save_figure
from demos._page import Page
from demos._training import Marks
from demos.pretrained._alice import ALICE
from demos.pretrained._figures import plot_factor
from demos.pretrained._heads import see
from demos.pretrained._loading import untrained, writer
from demos.pretrained._recovery import loss_on, set_scale

AWAY = 32**0.5  # the factor that takes 1/√d_k away: d_k is 32
FACTORS = [0.0, 0.25, 0.5, 0.5**0.5, 1.0, 2**0.5, 2.0, 2**1.5, 4.0, AWAY]
ONE = FACTORS.index(1.0)
BOOK, OWN, LONG = "“Alice”", "its own texts", "“Alice” in long lines"


class OverFactor:
    """The loss on three kinds of texts, over a factor on the trained scale."""

    def __init__(self, model: GPT, tokenizer: Any, alice: Any, own: Any) -> None:
        lines = ALICE.replace("\n\n", "¶").replace("\n", " ").replace("¶", "\n\n")
        unbroken = np.array(tokenizer.encode(lines)[: len(alice)])
        each: dict[str, Any] = {
            BOOK: [],
            OWN: [],
            LONG: [],
        }  # the loss of each text, at each factor
        for factor in FACTORS:
            set_scale(model, lambda d_k, factor=factor: factor * d_k**-0.5)
            for name, texts in ((BOOK, alice[None]), (OWN, own), (LONG, unbroken[None])):
                each[name].append([loss_on(model, text[None]) for text in texts])
        set_scale(model, None)
        self.losses = {name: np.mean(found, axis=1) for name, found in each.items()}
        self.rise = np.array(each[OWN]) - each[OWN][ONE]  # (factors, texts)
        self.nearest = min((ONE - 1, ONE + 1), key=lambda i: self.rise[i].mean())
        self.error = self.rise[self.nearest].std(ddof=1) / len(own) ** 0.5
        # W_Q / √d_k without a scale computes what the trained model computes.
        exact, absorbed = writer(), writer()
        for block in absorbed.blocks:
            block.attention.w_q.weight.data = block.attention.w_q.weight.data / AWAY
        set_scale(absorbed, 1.0)
        self.absorbed = abs(loss_on(absorbed, alice[None]) - loss_on(exact, alice[None]))
        self.raw_std = float(see(untrained(), alice, AWAY).score_std.mean())

    def tell(self, marks: Marks) -> None:
        """Print the table, and judge it."""
        print(f"   {'factor':24}" + "".join(f"{factor:>7.2f}" for factor in FACTORS))
        for name, losses in self.losses.items():
            print(f"   {name:24}" + "".join(f"{loss:>7.3f}" for loss in losses))
        off = abs(self.smallest(BOOK) - 1)
        marks.at_most(
            "“Alice”: distance from 1 of the factor with the smallest loss", off, 0.0, ".2f"
        )
        marks.at_least(
            f"its own texts: loss at {FACTORS[self.nearest]:.2f} above that at 1, in standard "
            "errors",
            self.rise[self.nearest].mean() / self.error,
            2.0,
            ".1f",
        )
        steps = np.diff(self.rise[ONE:].mean(axis=1))
        marks.at_least(
            "its own texts: smallest rise from a factor to the next, from 1 to √d_k",
            steps.min(),
            0.0,
            ".3f",
        )
        what = "no scale, and W_Q / √d_k: loss, from the trained one"
        marks.at_most(what, self.absorbed, 1e-9, ".0e")
        what = "before the training: standard deviation of the raw scores"
        marks.at_most(what, self.raw_std, 0.5, ".2f")

    def smallest(self, name: str) -> float:
        """Return the factor with the smallest loss."""
        return FACTORS[int(np.argmin(self.losses[name]))]

    def show(self, page: Page, out: Path, *, grown: float) -> None:
        """Add the picture to the page, and its limits; `grown` is the raw scores' spread now."""
        save_figure(plot_factor(FACTORS, self.losses), out / "factor")
        said = "; ".join(
            f"{name} {losses[0]:.2f} at 0, {losses[ONE]:.2f} at 1, {losses[-1]:.2f} at √d_k"
            for name, losses in self.losses.items()
        )
        page.figure(
            out / "factor.svg",
            alt=f"The loss over a factor on the scale: {said}.",
            caption="Loss of the English model; each kind of marker is a kind of text. “Alice” in "
            "long lines has spaces instead of its line breaks. Blue: the "
            f"trained scale. Orange: the factor √d_k = {AWAY:.3g}, which takes the scale away. "
            "With 0 all keys get the same weight",
        )
        page.table(
            ["text", *(f"{factor:.3g}" for factor in FACTORS)],
            [[name, *(f"{loss:.3f}" for loss in of)] for name, of in self.losses.items()],
            caption="The same in numbers, over the factor",
        )
        page.say(
            "“Alice” is the first 128 tokens of the book, in its lines; the loss says how badly "
            f"the model predicts the token that follows each of them. On {self.rise.shape[1]} of "
            f"the model's own texts the loss at {FACTORS[self.nearest]:.2g} is "
            f"{self.rise[self.nearest].mean():.3f} ± {self.error:.3f} (one standard "
            "error) above that at 1. Without its line breaks “Alice” is strange to the model, "
            "which was trained on short lines. There the loss is "
            f"smallest at the factor {self.smallest(LONG):.2g}. So the trained scale need not be "
            "the best one on a text of another kind than those of the training.",
            "Does this show that attention needs the scale? No. It shows which scale these weights "
            "were trained for. W_Q can take the factor in: if W_Q is divided by √d_k, the model "
            "without a scale is the model that was trained, to rounding. And before its training "
            "the model did not need the scale. Its matrices began with a standard deviation of "
            "0.02, and with them the raw scores on “Alice” have the standard deviation "
            f"{self.raw_std:.2f}. Now, after a training that divided them by √d_k, they have "
            f"{grown:.0f} on average over the heads.",
        )
