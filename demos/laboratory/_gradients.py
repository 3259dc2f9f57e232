"""Sections 1 and 2 of the laboratory: the gradient of a typical query, and its factors."""

import numpy as np

from attention.figures import of_scale, plot_sweep, save_figure
from attention.laboratory.figures import plot_factors
from attention.scaling import DEAD, summary
from demos._markup import plus_minus


class Gradients:
    """Section 1: chapter 16's sweep."""

    heading, name = "Without the scale a typical query of a wide head gets nothing", "gradients"

    def __init__(self, rows):
        self.rows, self.found = rows, summary(rows)
        self.d_ks = sorted({row.d_k for row in rows})
        self.exponents = sorted({row.a for row in rows})
        self.widest = self.d_ks[-1]
        self.risen, self.fallen = (
            self.mean(name, self.widest, 0.0) / self.mean(name, 64, 0.0)
            for name in ("gradient_mean", "gradient_median")
        )
        self.dead = self.mean("dead_share", self.widest, 0.0)

    def mean(self, name, d_k, a):
        """Chapter 16's measurement, the mean over the repeats."""
        return self.found[d_k, a][name][0]

    @property
    def range_of_medians(self):
        """How far the medians of several samples are apart."""
        raw = [row for row in self.rows if (row.d_k, row.a) == (self.widest, 0.0)]
        medians = [row.gradient_median for row in raw]
        return (
            f"Without a scale the median of ‖∂L/∂q‖ at d_k = {self.widest} went from "
            f"{min(medians):.2g} to {max(medians):.2g} in {len(raw)} samples of {raw[0].queries} "
            "queries."
        )

    def print(self, marks):
        """What must be so."""
        errors = [self.mean("score_variance", d_k, 0.0) / d_k - 1 for d_k in self.d_ks]
        far = np.abs(errors).max()
        marks.at_most("variance of the raw scores over d_k, largest distance from 1", far, 0.15)
        marks.at_least("dead queries at the largest d_k, no scale", self.dead, 0.3)
        scaled = self.mean("dead_share", self.widest, 0.5)
        marks.at_most("dead queries at the largest d_k, 1/√d_k", scaled, 0.01)
        over = f"no scale, {self.widest} over 64:"
        marks.at_least(f"{over} mean ‖∂L/∂q‖", self.risen, 0.5, ".2f")
        marks.at_most(f"{over} median ‖∂L/∂q‖", self.fallen, 0.1, ".4f")

    def draw(self, folder):
        """The six panels, without 1/d_k."""
        save_figure(plot_sweep([row for row in self.rows if row.a < 1]), folder / "sweep")

    def show(self, page, folder):
        """The section of the page."""
        top = self.mean("top_tenth_share", self.widest, 0.0)
        keys = " and ".join(f"{n:,}" for n in sorted({row.keys for row in self.rows}))
        page.ask(
            f"A head has no scale, and d_k grows from 64 to {self.widest}. What happens to "
            "‖∂L/∂q‖: does its mean over all queries fall, and does its median?",
            f"The mean does not fall: at d_k = {self.widest} it is {self.risen:.2g} times that at "
            f"64. The median is {1 / self.fallen:.0f} times smaller. {self.dead:.0%} of the "
            f"queries have less than {DEAD:g}, and the tenth of all queries with the longest "
            f"gradients holds {top:.0%} of the squared gradient.",
        )
        page.figure(
            folder / "sweep.svg",
            alt=f"Six measurements over d_k. Without the scale {self.dead:.0%} of the queries are "
            f"dead at d_k = {self.widest}; with 1/√d_k the scores, the weights and the median "
            "gradient hardly depend on d_k.",
            caption=f"{keys} keys, {self.rows[0].queries} queries a repeat (chapter 16)",
        )
        header = ["scale", "d_k", "variance of scores", "entropy / log n", "median ‖∂L/∂q‖"]
        page.table(
            [*header, "mean", "dead"],
            [
                [
                    of_scale(a)[1],
                    d_k,
                    plus_minus(*self.found[d_k, a]["score_variance"]),
                    plus_minus(*self.found[d_k, a]["entropy"]),
                    plus_minus(*self.found[d_k, a]["gradient_median"]),
                    plus_minus(*self.found[d_k, a]["gradient_mean"]),
                    f"{self.mean('dead_share', d_k, a):.0%}",
                ]
                for a in self.exponents
                for d_k in sorted(
                    {self.d_ks[0], 64, *(d for d in self.d_ks if d >= 1024), self.widest}
                )
            ],
            caption="The same in numbers, with 1/d_k; a query is dead if ‖∂L/∂q‖ is below "
            f"{DEAD:g}",
        )


class Factors:
    """Section 2: the gains of the chain."""

    heading, name = "Softmax's Jacobian is the factor that becomes small", "factors"

    def __init__(self, rows):
        self.rows, self.found = rows, summary(rows)
        self.first, self.last = min(row.d_k for row in rows), max(row.d_k for row in rows)

    def kept(self, a):
        """J's gain at the largest d_k over that at the smallest."""
        last, first = (self.found[d_k, a]["gain_j"][0] for d_k in (self.last, self.first))
        return last / first

    def print(self, marks):
        """What must be so."""
        over = f"J's gain at {self.last} over that at {self.first}"
        marks.at_most(f"no scale: {over}", self.kept(0.0), 0.01, ".1e")
        marks.at_least(f"1/√d_k: {over}", self.kept(0.5), 0.8, ".2f")

    def draw(self, folder):
        """The gains over d_k."""
        save_figure(plot_factors(self.rows), folder / "factors")

    def show(self, page, folder):
        """The section of the page."""
        page.say(
            "On its way from the output back to a query the gradient is multiplied by four "
            "factors: ∂L/∂q = Kᵀ · scale · J V g, where J = diag(p) - p pᵀ belongs to softmax. A "
            "factor's gain is how much longer it makes the gradient.",
        )
        page.figure(
            folder / "factors.svg",
            alt=f"Gains over d_k. Without a scale J's gain falls {1 / self.kept(0.0):,.0f} times "
            f"from d_k = {self.first} to {self.last}; with 1/√d_k no factor depends on d_k.",
            caption="Medians over 512 queries (chapter 16.2). V gains √n at every d_k, and is not "
            "drawn",
        )
        page.say(
            "If a is below ½, J's gain falls as d_k grows. If a is above ½, the scale becomes "
            "smaller than Kᵀ can make up for. Only at ½ does neither depend on d_k.",
        )
