"""Sections 4 and 5 of the laboratory: the largest stable step, and which learning rates work."""

import numpy as np

from attention.figures import of_scale, save_figure
from attention.laboratory.basin import outcomes
from attention.laboratory.figures import by_repeat, plot_basin, plot_entropies, plot_sharpness
from attention.laboratory.sharpness import slope


def listed(words):
    """One, two and three."""
    words = list(words)
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


class Steps:
    """Section 4: the sharpness over d_k."""

    heading = "The largest stable step hardly depends on the width only with 1/√d_k"
    name = "sharpness"

    def __init__(self, rows):
        self.rows = rows
        self.d_ks = sorted({row.d_k for row in rows})
        self.exponents = sorted({row.a for row in rows})
        self.slopes = {a: slope(self.d_ks, by_repeat(rows, a)) for a in self.exponents}

    def print(self, marks):
        """The slopes, and what must be so."""
        for a, (rise, error) in self.slopes.items():
            what = f"{of_scale(a)[1]}: slope of log sharpness {rise:.2f} ± {error:.2f}"
            off = abs(rise - (1 - 2 * a))
            marks.at_most(f"{what}, its distance from {1 - 2 * a:+g}", off, 0.25, ".2f")
        worst = max(row.residual / row.sharpness for row in self.rows)
        marks.at_most("residual ‖Hv - λv‖ / λ, the largest", worst, 2e-3, ".0e")

    def draw(self, folder):
        """The eigenvalue over d_k."""
        save_figure(plot_sharpness(self.rows), folder / "sharpness")

    def show(self, page, folder):
        """The section of the page."""
        repeats = sum((row.d_k, row.a) == (self.d_ks[0], 0.0) for row in self.rows)
        slopes = [
            f"{rise:.2f} ± {error:.2f} for {of_scale(a)[1]}"
            for a, (rise, error) in self.slopes.items()
        ]
        page.ask(
            "A step of gradient descent is stable if the rate is below 2/λ, where λ is the largest "
            "eigenvalue of the Hessian. How does λ with respect to W_q and W_k change with d_k: "
            "for a = 0, ½ and 1?",
            f"Nearly like d_k^(1-2a): the slopes of log λ against log d_k are {listed(slopes)}. So "
            "½ is the exponent at which λ hardly depends on the width. (± is one standard error, "
            f"estimated from {repeats} repeats. So few can make it two times too small. Chapter "
            "16.4 has 20 repeats, and explains why the slopes are not exactly 1 - 2a.)",
        )
        page.figure(
            folder / "sharpness.svg",
            alt="The largest eigenvalue over d_k: it rises without a scale, stays with 1/√d_k and "
            "falls with 1/d_k.",
            caption="By exact Hessian-vector products and Lanczos's method (chapter 16.4)",
        )


class Table:
    """What became of trainings with one optimizer and one way to draw the weights."""

    def __init__(self, rows):
        self.found = outcomes(rows)
        self.optimizer, self.init = rows[0].optimizer, rows[0].init
        self.exponents = sorted({row.a for row in rows})
        self.rates = sorted({row.lr for row in rows})
        self.d_ks = sorted({row.d_k for row in rows})

    def at(self, a, d_k, lr):
        """What became of the trainings with these settings."""
        return self.found[self.optimizer, self.init, a, d_k, lr]

    def widths(self, a, lr):
        """The d_k at which every training learned."""
        each = {d_k: self.at(a, d_k, lr) for d_k in self.d_ks}
        return [d_k for d_k, one in each.items() if one.learned == one.trainings]

    def working(self, a):
        """The rates at which every training learned at every width."""
        return [lr for lr in self.rates if self.widths(a, lr) == self.d_ks]

    def said(self, a):
        """At which widths each rate worked."""
        groups = {}
        for lr in self.rates:
            groups.setdefault(tuple(self.widths(a, lr)), []).append(f"{lr:g}")
        parts = []
        for widths, rates in groups.items():
            where = f"at d_k = {listed(map(str, widths))}" if widths else "at no width"
            where = "at every width" if list(widths) == self.d_ks else where
            parts.append(f"{listed(rates)} {where}")
        return f"{of_scale(a)[1]}: {'; '.join(parts)}."

    @property
    def header(self):
        """The names of the columns."""
        return ["learning rate", *(f"{lr:g}" for lr in self.rates)]

    @property
    def rows(self):
        """A scale and d_k, and what became of each learning rate."""
        return [
            [f"{of_scale(a)[1]}, d_k = {d_k}", *(str(self.at(a, d_k, lr)) for lr in self.rates)]
            for a in self.exponents
            for d_k in self.d_ks
        ]

    def print(self, title):
        """The table on the terminal."""
        print(f"   {title}: steps to 98 % on associative recall")
        for cells in (self.header, *self.rows):
            print(f"   {cells[0]:22}" + "".join(f"{cell:>18}" for cell in cells[1:]))
        print()

    def caption(self, what, limit):
        """What the cells mean."""
        several = max(one.trainings for one in self.found.values())
        return (
            f"{what}: steps to 98 % of right answers, mean ± spread of {several} trainings. Never: "
            f"not within {limit} steps. (1 of {several}): the mean is over those that learned"
        )


class Rates:
    """Section 5: which learning rates work at which width."""

    heading, name = "With 1/√d_k a learning rate needs as many steps at every width", "basin"

    def __init__(self, trainings, of_sharpness, *, limit):
        self.table, self.limit = Table(trainings), limit
        self.trainings = trainings
        self.raw_lambda = {
            d_k: np.mean([r.sharpness for r in of_sharpness if (r.d_k, r.a) == (d_k, 0.0)])
            for d_k in {row.d_k for row in of_sharpness}
        }
        self.shown_rate = 0.3 if 0.3 in self.table.rates else self.table.rates[0]

    def print(self, marks):
        """The table, and what must be so."""
        self.table.print("SGD")
        for a in self.table.exponents:
            print(f"   Rates at which every training learned. {self.table.said(a)}")
        both = [self.table.at(0.5, d_k, self.shown_rate).steps_mean for d_k in self.table.d_ks]
        apart = max(both) / min(both) if None not in both else np.inf
        what = f"1/√d_k, rate {self.shown_rate:g}: steps at one width over those at another"
        marks.at_most(what, apart, 2.0, ".2f")
        scaled, raw = (self.table.working(a) for a in (0.5, 0.0))
        marks.at_least("1/√d_k: rates that work at every width", len(scaled), 2, "d")
        large = sum(lr >= 1 for lr in raw)
        marks.at_most("no scale: rates of 1 or more that do", large, 0, "d")

    def draw(self, folder):
        """The basin, and the entropy of the widest head at one rate."""
        save_figure(plot_basin(self.table.found), folder / "basin")
        widest = self.table.d_ks[-1]
        some = [t for t in self.trainings if (t.d_k, t.lr) == (widest, self.shown_rate)]
        save_figure(plot_entropies([t for t in some if t.broke_at is None]), folder / "entropies")

    def slower(self):
        """How many more steps the widest head needs, at each scale that can be compared."""
        first, last = self.table.d_ks[0], self.table.d_ks[-1]
        both = {
            a: (self.table.at(a, first, self.shown_rate), self.table.at(a, last, self.shown_rate))
            for a in (0.0, 0.5)
        }
        return (
            f"At the rate {self.shown_rate:g} the steps at d_k = {first} and at {last} are "
            f"{both[0.0][0]} and {both[0.0][1]} without a scale, and {both[0.5][0]} and "
            f"{both[0.5][1]} with 1/√d_k."
        )

    def predicted(self):
        """Section 4's prediction beside the rates that worked, without a scale."""
        worked = self.table.working(0.0)
        common = sorted(self.raw_lambda.keys() & set(self.table.d_ks))
        if not worked or not common:
            return ""
        stable = 2 / self.raw_lambda[common[-1]]
        return (
            "The prediction of section 4 is right for ½ and 1, and wrong without a scale: there "
            f"2/λ is {stable:.1g} at d_k = {common[-1]}, and the rate {worked[-1]:g} learns "
            "nevertheless. The parabola behind 2/λ is true only very near, so a step that is too "
            "long does little harm (chapter 16.5)."
        )

    def show(self, page, folder):
        """The section of the page."""
        page.say(
            "One head learns associative recall by plain gradient descent (SGD), with new batches "
            f"of 64 questions, for at most {self.limit} steps. A cell says after how many steps "
            "98 % of the answers are right.",
        )
        page.figure(
            folder / "basin.svg",
            alt="Steps over learning rate and d_k. Rates at which every training learned: "
            + " ".join(self.table.said(a) for a in self.table.exponents),
            caption="Mean steps to 98 %, over the trainings that got there; hatched: none did "
            "(chapter 16.5)",
        )
        page.table(
            self.table.header, self.table.rows, caption=self.table.caption("SGD", self.limit)
        )
        page.say("These are the rates at which every training learned:")
        page.list([self.table.said(a) for a in self.table.exponents])
        page.say(*filter(None, [self.slower(), self.predicted()]))
        widest, starts = self.table.d_ks[-1], {}
        for t in self.trainings:
            if (t.d_k, t.lr) == (widest, self.shown_rate):
                starts.setdefault(t.a, []).append(t.entropy[0])
        page.figure(
            folder / "entropies.svg",
            alt=f"The entropy of the weights through the training at d_k = {widest} and rate "
            f"{self.shown_rate:g}. At the first step it is "
            + listed(
                f"{np.mean(values):.2f} log n with {of_scale(a)[1]}" for a, values in starts.items()
            )
            + ".",
            caption=f"What the head's weights do meanwhile: d_k = {widest}, learning rate "
            f"{self.shown_rate:g}",
        )
