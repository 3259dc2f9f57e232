"""Sections 1 to 3 of the laboratory: the gradient of a typical query, its factors, more keys."""

from collections import defaultdict

import numpy as np

from attention.figures import of_scale, plot_sweep, save_figure
from attention.laboratory.figures import plot_factors, plot_freezing, plot_lookup
from attention.laboratory.freezing import freezing_line
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


class Keys:
    """Section 3: another number of keys."""

    heading, name = "Among more keys the weights freeze a little later", "freezing"

    def __init__(self, rows, lookups, of_saturation):
        self.rows, self.lookups = rows, lookups
        by_n = defaultdict(list)
        for row in rows:
            by_n[row.n].append(row)
        self.on_line = {
            n: min(group, key=lambda row: abs(row.s - freezing_line(row.n)))
            for n, group in by_n.items()
        }
        self.gradients = Gradients(of_saturation)

    def print(self, marks):
        """The entropy on the line, and what must be so."""
        for n, row in self.on_line.items():
            print(
                f"   {n:>7} keys: on the line, at d_k = 2 ln n = {freezing_line(n) ** 2:.1f}, "
                f"entropy / log n is {row.entropy:.3f} ± {row.entropy_error:.3f} (standard error)"
            )
        least = min(row.entropy for row in self.on_line.values())
        marks.at_least("on the line: entropy / log n, the smallest", least, 0.2, ".2f")

    def draw(self, folder):
        """The entropy over the spread of the scores, and look-ups over the number of keys."""
        save_figure(plot_freezing(self.rows), folder / "freezing")
        save_figure(plot_lookup(self.lookups), folder / "lookups")

    def lasting(self):
        """Between which d_k the raw median falls below the scaled one."""
        found = self.gradients
        below = [
            d_k
            for d_k in found.d_ks
            if found.mean("gradient_median", d_k, 0.0) < found.mean("gradient_median", d_k, 0.5)
        ]
        keys = f"among {found.rows[0].keys:,} keys the median of ‖∂L/∂q‖"
        if not below or below[0] == found.d_ks[0]:
            return f"{keys} does not cross the scaled one between the d_k that were measured."
        before = found.d_ks[found.d_ks.index(below[0]) - 1]
        return f"{keys} falls below the scaled one only between d_k = {before} and {below[0]}."

    def show(self, page, folder):
        """The section of the page."""
        page.say(
            "Without the scale the scores of n keys have the standard deviation s = √d_k. In the "
            "limit of many keys softmax freezes at s = √(2 ln n): a few keys have all the weight. "
            "This line is at "
            + ", ".join(f"d_k = {freezing_line(n) ** 2:.1f} for {n:,} keys" for n in self.on_line)
            + ". With a finite number of keys there is no such point, but a wide crossover.",
            "At this d_k the weight begins to lie on a few keys. Gradients last longer: "
            f"{self.lasting()}",
        )
        page.figure(
            folder / "freezing.svg",
            alt="Entropy over the spread of the scores for three numbers of keys: on the freezing "
            "line it is "
            + ", ".join(f"{row.entropy:.2f}" for row in self.on_line.values())
            + " of log n, and no line has a kink.",
            caption="Entropy of softmax over n Gaussian scores (chapter 16.3)",
        )
        few, many = (f({row.n for row in self.lookups}) for f in (min, max))
        weight = {(row.n, row.b): row.found for row in self.lookups}
        page.say(
            "1/√d_k settles the width of a head, and not the number of its keys. With it the "
            "scores of random keys have the standard deviation σ = 1 however many keys there are, "
            "so each weight becomes smaller as n grows. One more key fits the query: its score is "
            f"6σ above the mean of the others. Among {few} keys it has {weight[few, 0.0]:.2f} of "
            f"the weight, and among {many:,} {weight[many, 0.0]:.3f}. If the scores are also "
            f"multiplied by log n / log {few}, it keeps {weight[many, 1.0]:.2f}. The square root "
            "of that factor keeps something else: the entropy / log n of the random keys.",
        )
        page.figure(
            folder / "lookups.svg",
            alt=f"With more keys a key that stands out loses its weight if the scale is fixed: "
            f"{weight[many, 0.0]:.3f} is left among {many:,}. If scores are multiplied by log n it "
            f"keeps {weight[many, 1.0]:.2f}. The entropy over log n stays if they are multiplied "
            "by √log n.",
            caption=f"Longer sequences: 1/√d_k, and the same times (log n / log {few})^b with "
            "b = ½ and b = 1 (chapter 16.3)",
        )
