"""Sections 7 and 8 of the laboratory: why a missing scale may not be noticed, and other ways."""

import numpy as np

from attention.laboratory.neighbours import WAYS
from attention.scaling import summary
from demos.laboratory._rates import Table


class Hidden:
    """Section 7: what hides that a scale is missing."""

    heading, name = "Why a missing scale may not be noticed", "hidden"

    def __init__(self, measured, *, limit):
        self.adam, self.small = Table(measured["basin of Adam"]), Table(measured["small weights"])
        self.limit = limit
        raw = [t for t in measured["basin"] if t.a == 0]
        self.raw_std = [
            (d_k, np.mean([t.score_std for t in raw if t.d_k == d_k]))
            for d_k in (f({t.d_k for t in raw}) for f in (min, max))
        ]
        of_ways = measured["neighbours"]
        self.wide = max(row.d_k for row in of_ways)
        self.std_of = {
            way: np.mean([r.score_std for r in of_ways if (r.d_k, r.way) == (self.wide, way)])
            for way in ("0.02", "none")
        }

    def print(self, marks):
        """Both tables."""
        self.adam.print("Adam")
        self.small.print("SGD, GPT-2's initial weights")

    def draw(self, folder):
        """(Tables alone.)"""

    def of_adam(self):
        """Adam's steps at the narrowest and the widest head, at one rate."""
        rate = 0.03 if 0.03 in self.adam.rates else self.adam.rates[-1]
        first, last = self.adam.d_ks[0], self.adam.d_ks[-1]
        half, one = ([self.adam.at(a, d_k, rate) for d_k in (first, last)] for a in (0.5, 1.0))
        return (
            f"At the rate {rate:g}, d_k = {first} and d_k = {last} need: with 1/√d_k {half[0]} and "
            f"{half[1]} steps; with 1/d_k {one[0]} and {one[1]}."
        )

    def show(self, page, folder):
        """The section of the page."""
        (narrow, narrow_std), (wide, wide_std) = self.raw_std
        page.say(
            "If you train a model without the scale, you may see nothing of all this. These are "
            "the reasons that were measured here.",
        )
        page.list(
            [
                "*Means.* One norm of the gradient over all queries rises while the typical "
                "query's becomes 0.",
                f"*Small widths.* At d_k = {narrow} the raw scores of this task have the standard "
                f"deviation {narrow_std:.1f}, and at d_k = {wide} {wide_std:.1f}.",
                "*Adam* changes the question. Its first step takes only the signs of a gradient, "
                "so it moves a score like d_k^(1-a), where SGD moves it like d_k^(1-2a). With Adam "
                "the exponent that needs the same steps at every width is 1, and not ½ (chapter "
                f"16.5). {self.of_adam()}",
                "*Small initial weights.* GPT-2 draws its matrices so small that raw scores at "
                f"d_k = {self.wide} have the standard deviation {self.std_of['0.02']:.1f}, and not "
                f"{self.std_of['none']:.1f}.",
                "*The scale in the weights.* T5 has no scale and draws W_q √d_k times smaller. "
                "That repairs softmax, and not the step: chapter 16.4.",
                "*A task that is learned.* Then the answers stay right without the scale (section "
                "6).",
            ]
        )
        page.table(self.adam.header, self.adam.rows, caption=self.adam.caption("Adam", self.limit))
        page.table(
            self.small.header,
            self.small.rows,
            caption=self.small.caption("SGD, with initial weights as small as GPT-2's", self.limit),
        )


class Neighbours:
    """Section 8: other ways to keep scores in bounds."""

    heading, name = "Scores can be kept in bounds in other ways", "neighbours"

    def __init__(self, rows):
        self.found = summary(rows, by=("d_k", "way", "growth"))
        self.narrow, self.wide = (f({row.d_k for row in rows}) for f in (min, max))
        self.header = ["way", f"std at {self.narrow}", f"std at {self.wide}"]
        self.header += ["entropy", "median", "mean", "dead"]

    @property
    def rows(self):
        """A way, its scores at two widths, and what was measured at the larger one."""
        found = []
        for way in WAYS:
            few, many = (self.found[d_k, way, 1.0] for d_k in (self.narrow, self.wide))
            found.append(
                [
                    way,
                    f"{few['score_std'][0]:.2f}",
                    f"{many['score_std'][0]:.2f}",
                    f"{many['entropy'][0]:.2f}",
                    f"{many['gradient_median'][0]:.3f}",
                    f"{many['gradient_mean'][0]:.3f}",
                    f"{many['dead_share'][0]:.0%}",
                ]
            )
        return found

    def print(self, marks):
        """The table."""
        for cells in (self.header, *self.rows):
            print(f"   {cells[0]:12}" + "".join(f"{cell:>13}" for cell in cells[1:]))

    def draw(self, folder):
        """(A table alone.)"""

    def show(self, page, folder):
        """The section of the page."""
        page.table(
            self.header,
            self.rows,
            caption=f"{len(WAYS)} ways at the start of a training: the scores' standard deviation "
            f"at two d_k; then, at d_k = {self.wide}, entropy / log n, median and mean of "
            "‖∂L/∂q‖ and the share of dead queries (chapter 16.7)",
        )
        page.say(
            "The median and the mean of T5, 0.02 and GPT-2 cannot be compared with the others: "
            "their q is shorter, so ∂L/∂q is as many times longer. At the token, before W_q, T5's "
            "gradient is that of 1/√d_k (chapter 16.7).",
        )
