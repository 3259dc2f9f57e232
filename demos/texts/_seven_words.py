"""Demos · Texts: the sentence of seven words that "I love Transformers" mentions, computed.

The notebook draws its tensors for "I try to understand the Transformer architecture", with
d_model = 512 and eight heads of 64 features, and then takes a smaller example. Here the sentence is
computed by the same recipe: digits from 0 to 9 as inputs, Xavier's bound for each head's matrix,
and the scale 1/√d_k. It is computed twice, with the digits as they are ("text") and with the same
digits at mean 0 and variance 1 ("unit").

With h heads Xavier's bound for one head's matrix, √(6 / (d_model + d_model/h)), gives queries and
keys of unit inputs the variance 2h/(h + 1): 4/3 with two heads, and 16/9 with eight. The standard
deviation of the scaled scores is then 16/9 too.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from attention.figures import save_figure
from attention.maps import entropy
from demos._page import Page
from demos._training import Marks
from demos.texts._tensors import draw_looks
from demos.texts.sources import love_transformers as source

Array = np.ndarray[Any, Any]

D_MODEL, NUM_HEADS = 512, 8
STEPS = ("input", "W_Q", "Q'", "weights", "heads", "concatenated", "output")


class Heads(NamedTuple):
    """The steps of the eight heads with one kind of inputs, and their measurements."""

    steps: dict[str, Array]  # what each step computes
    spread: Array  # (H,), the mean entropy / log n of each head
    reached: Array  # (H, T), ‖∂L/∂q‖ of each query, where L is the sum of the output
    deviation: float  # the standard deviation of the scaled scores

    @property
    def sharp(self) -> float:
        """Return the share of queries that put more than .999 on one word."""
        return float((self.steps["weights"].max(axis=-1) > 0.999).mean())

    def dead(self, limit: float) -> float:
        """Return the share of queries whose gradient is below the limit."""
        return float((self.reached < limit).mean())


def compute(*, unit: bool) -> Heads:
    """Compute the sentence with the text's digits (by its seed, 0), or with unit inputs."""
    case = source.layer(unit=unit, n=len(source.SEVEN), d_model=D_MODEL, num_heads=NUM_HEADS)
    steps = source.steps(*case)
    spread = entropy(steps["weights"]).mean(axis=-1) / np.log(len(source.SEVEN))
    return Heads(steps, spread, source.reached(*case), float(source.scores(*case).std()))


def shapes(text: Heads) -> list[list[str]]:
    """Return each step's name, its shape as the text draws it (heads last), and as it is stored."""
    stored = {name: text.steps[name].shape for name in STEPS}
    drawn = {name: s[1:] + s[:1] if len(s) == 3 else s for name, s in stored.items()}
    return [[name, str(drawn[name]), str(stored[name])] for name in STEPS]


def findings(text: Heads, unit: Heads) -> list[list[str]]:
    """Return a row for each measurement: its name, with the text's digits, with unit inputs."""
    both, limit = (text, unit), dying(unit)
    by_head = (" ".join(f"{share:.2f}".lstrip("0") for share in each.spread) for each in both)
    return [
        ["deviation of the scaled scores", *(f"{each.deviation:.3g}" for each in both)],
        ["entropies / log n (equal: 1)", *by_head],
        ["queries above .999 on one word", *(f"{each.sharp:.0%}" for each in both)],
        [
            f"‖∂L/∂q‖, median of {text.reached.size} queries",
            *(f"{np.median(each.reached):.1e}" for each in both),
        ],
        ["‖∂L/∂q‖, their mean", *(f"{each.reached.mean():.1e}" for each in both)],
        [f"queries with ‖∂L/∂q‖ < {limit:.4f}", *(f"{each.dead(limit):.0%}" for each in both)],
    ]


def dying(unit: Heads) -> float:
    """Return a thousandth of the gradient that a median query gets with unit inputs."""
    return float(np.median(unit.reached) / 1000)


def report(text: Heads, unit: Heads, marks: Marks) -> None:
    """Print both tables, and judge what they show."""
    print(f"\n5 · {' '.join(source.SEVEN)!r}: d_model = {D_MODEL}, eight heads\n")
    for name, drawn, stored in shapes(text):
        print(f"   {name:14}in the drawing {drawn:14}in the code {stored}")
    print()
    for what, *cells in [["", "digits, as in the text", "unit"], *findings(text, unit)]:
        print(f"   {what:33}{cells[0]:>32}{cells[1]:>32}")
    limit, off = dying(unit), abs(unit.deviation / (16 / 9) - 1)
    marks.at_most("unit: the scores' standard deviation, from 16/9", off, 0.05)
    marks.at_least("unit: entropy / log n of the sharpest head", unit.spread.min(), 0.4, ".2f")
    marks.at_most("text: entropy / log n of the most even head", text.spread.max(), 0.2, ".2f")
    marks.at_least("text: queries above .999 on one word", text.sharp, 0.5)
    marks.at_least("text: queries that get almost no gradient", text.dead(limit), 0.4)
    marks.at_most("unit: queries that get almost no gradient", unit.dead(limit), 0)
    mean = text.reached.mean() / unit.reached.mean()
    marks.at_least("the mean hides it: mean ‖∂L/∂q‖, text over unit", mean, 0.5, ".2f")


def show(page: Page, text: Heads, unit: Heads, folder: Path) -> None:
    """Add the section to the page, with its picture."""
    named = {"digits from 0 to 9, as in the text": text, "mean 0 and variance 1": unit}
    looks = {name: each.steps["weights"] for name, each in named.items()}
    save_figure(draw_looks(looks, source.SEVEN), folder / "seven")
    page.section("The sentence of seven words")
    page.say(
        f"The text mentions a sentence of seven words, “{' '.join(source.SEVEN)}”, at d_model = "
        f"{D_MODEL}, because its drawing has these sizes. It does not compute it. We do, by its "
        "own recipe: digits from 0 to 9, Xavier for each of the eight heads, and the scale 1/√64.",
    )
    page.table(
        ["step", "shape in the drawing", "shape in the code"],
        shapes(text),
        caption="Every step of seven words at d_model = 512 with eight heads of 64 features",
    )
    page.ask(
        "A head has 64 features now, and its scores are divided by 8. Do the heads of this "
        "sentence share their attention better than those of “I love Transformers”?",
        f"They do not: {text.sharp:.0%} of the {text.reached.size} queries put more than .999 on "
        "one word. The scale takes care of the 64 features. But digits from 0 to 9 make queries "
        "and keys too long, whatever d_model is.",
    )
    page.figure(
        folder / "seven.svg",
        alt="Sixteen maps of seven by seven words. With digits almost every row has one dark cell, "
        "and in heads 5 and 7 all words look at one word. At mean 0 and variance 1 each row is "
        "spread.",
        caption="Where the eight heads look: above with digits, below with mean 0 and variance 1",
    )
    header = ["", "digits, as in the text", "mean 0, variance 1"]
    page.table(header, findings(text, unit), caption="What the eight heads do")
    page.say(
        f"With digits {text.dead(dying(unit)):.0%} of the queries get less than "
        f"{dying(unit):.4f}, a thousandth of the gradient that a median query gets at mean 0 and "
        "variance 1. The mean does not show it, since a few undecided queries get much.",
        "At mean 0 and variance 1 the standard deviation of the scores is "
        f"{unit.deviation:.2f} and not 1. Xavier's bound is taken for one head's matrix, which "
        "gives queries and keys the variance 2h/(h + 1). With eight heads that is 16/9.",
    )
