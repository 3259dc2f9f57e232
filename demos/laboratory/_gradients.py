"""Figures 1 to 3 of the laboratory: the map, distributions, and one hill for all widths."""

from functools import cached_property

import numpy as np

from attention.scaling import heads, ratios
from demos.laboratory._figures import plot_distributions, plot_hill, plot_map

POINTS = ((64, 64), (64, 1024), (512, 5))  # d_k and keys of figure 2
# The marks of what is claimed.
LARGER = 1.5
UNEQUAL = 1.1
FLAT = 1.4
TOP = 1.5
GPT2 = round(0.02 * 768**0.5, 6)  # the deviation of q and k at GPT-2's initial weights


class Map:
    """Figure 1: the median without the scale over that with it, for each d_k and number of keys."""

    def __init__(self, rows, of_gpt2):
        self.cells = ratios(rows)
        self.of_gpt2 = ratios(of_gpt2)
        self.repeats = self.cells[0].repeats
        self.queries = rows[0].queries
        self.fewer = of_gpt2[0].queries
        self.usual = [c for c in self.cells if 16 <= c.d_k <= 128 and c.keys >= 64]
        self.wide = [c for c in self.cells if c.d_k >= 16]
        self.extreme = min(self.cells, key=lambda c: c.median)

    def range_of(self, name, cells):
        """Return the smallest and the largest value of a ratio's field in some cells."""
        values = [getattr(c, name) for c in cells]
        return min(values), max(values)

    @property
    def more(self):
        """Return how many times as large the tenth's share is without the scale, in wide cells."""
        return [c.top_tenth_without / c.top_tenth_with for c in self.wide]

    @cached_property
    def figure(self):
        """Draw both maps."""
        maps = [("variance 1", 1.0, self.cells), ("GPT-2's initial weights", GPT2, self.of_gpt2)]
        return plot_map(maps)

    def judge(self, marks):
        """Judge this run: a claim is falsified if its mark fails."""
        usual, _ = self.range_of("median", self.usual)
        marks.at_least(
            "smallest ratio of medians, d_k 16 to 128, 64 keys or more", usual, LARGER, ".2f"
        )
        marks.at_most("smallest ratio of medians on the map", self.extreme.median, 0.1, ".1e")
        mean, _ = self.range_of("mean", self.cells)
        marks.at_least("smallest ratio of means on the map", mean, 1.0, ".2f")
        marks.at_least(
            "smallest ratio of the tenth's shares, d_k ≥ 16", min(self.more), UNEQUAL, ".2f"
        )
        real, _ = self.range_of("median", [c for c in self.of_gpt2 if c.keys >= 64])
        marks.at_least(
            "smallest ratio of medians, GPT-2's weights, 64 keys or more", real, 1.0, ".2f"
        )

    @property
    def claims(self):
        """Return the rows of the report's table: claim, effect, repeats, condition of failure."""
        repeats = f"{len(self.cells)} cells × {self.repeats} × {self.queries} queries"
        low, high = self.range_of("mean", self.cells)
        usual, most = self.range_of("median", self.usual)
        return [
            [
                "With random q and k the mean of ‖∂L/∂q‖ grows without the scale",
                f"{low:.1f} to {high:.0f} times",
                repeats,
                "a cell of the map with a ratio of means below 1",
            ],
            [
                "With random q and k the median grows at d_k 16 to 128 with 64 keys or more, and "
                "falls where a head is too wide for its keys",
                f"{usual:.1f} to {most:.0f} times; {self.extreme.median:.0e} at d_k = "
                f"{self.extreme.d_k} with {self.extreme.keys} keys",
                repeats,
                f"a ratio below {LARGER} in one of these cells, at unit variance; or below 1 at "
                "GPT-2's initial weights",
            ],
            [
                "Gradients become unequal, for d_k ≥ 16",
                f"the tenth's share is {min(self.more):.1f} to {max(self.more):.1f} times as large",
                repeats,
                f"a cell in which it is less than {UNEQUAL} times as large",
            ],
        ]

    def show(self, page):
        """Show the figure, after a question."""
        low, high = self.range_of("median", self.usual)
        error = max((c.error for c in self.wide if c.median > 0.01), default=0.0)
        page.ask(
            "As the number of keys grows at one width, does a typical query's gradient without a "
            "scale become smaller or larger, compared with 1/√d_k?",
            "Larger. Among more keys the second best key is nearer to the best, so fewer queries "
            "are decided. With the scale, on the other hand, the weights thin out, and so do the "
            "gradients.",
            guesses=("smaller", "larger"),
        )
        page.figure(
            self.figure,
            "map",
            alt="Two maps over d_k and the number of keys. At unit variance the median without the "
            f"scale is {low:.1f} to {high:.0f} times the one with it at d_k from 16 to 128 with 64 "
            f"keys or more, and {self.extreme.median:.0e} at d_k = {self.extreme.d_k} with "
            f"{self.extreme.keys} keys. At GPT-2's initial weights it is larger nearly everywhere.",
            caption="Figure 1. The median ‖∂L/∂q‖ without the scale, divided by that with it. "
            "Grey: larger without the scale; crimson: smaller; line: equal; dotted: the freezing "
            "line, where scores without a scale spread by √(2 ln n) and a few keys begin to have "
            f"all weight. {self.repeats} repeats of {self.queries} queries (right: one of "
            f"{self.fewer}); standard error of log₁₀ at most {error:.2f} where the ratio is above "
            ".01. Points: d_k and trained context of three models, whose q and k do not have unit "
            "variance: the right map has the deviation of GPT-2's initial weights",
        ).place = "below"


class Distributions:
    """Figure 2: how ‖∂L/∂q‖ is distributed at three points of the map."""

    def __init__(self, seed, *, queries):
        self.points = []
        for d_k, keys in POINTS:
            both = [
                heads(
                    d_k, a, keys=keys, queries=queries, rng=np.random.default_rng([seed, d_k, keys])
                )
                for a in (0.0, 0.5)
            ]
            (_, _, raw), (_, _, scaled) = both
            self.points.append((f"d_k = {d_k}, {keys:,} keys", raw, scaled))
        self.smaller = [float((raw < scaled).mean()) for _, raw, scaled in self.points]

    @cached_property
    def figure(self):
        """Draw the three distributions."""
        return plot_distributions(self.points)

    def judge(self, marks):
        """Judge the share of the queries whose gradient is smaller without the scale."""
        marks.at_most("that share at d_k = 64 with 1,024 keys", self.smaller[1], 0.2)

    claims = ()  # (the map has the claim)

    def show(self, page):
        """Show the figure."""
        page.figure(
            self.figure,
            "distributions",
            alt="The share of queries below each length of the gradient at three points. With the "
            "scale nine in ten lengths are within a factor of 2 to 7; without it they spread over "
            "many powers of ten.",
            caption="Figure 2. With the scale (solid) the gradients of nine in ten queries are "
            "within a factor of 2 to 7; without it (dashed) some have far more, and some none. "
            "Circles are means. The share of queries whose own gradient is smaller without the "
            "scale: "
            + ", ".join(
                f"{share:.0%} at {title}"
                for (title, *_), share in zip(self.points, self.smaller, strict=True)
            ),
        ).place = "below"


class Hill:
    """Figure 3: the median of ‖∂L/∂q‖ over the spread of the scores."""

    def __init__(self, rows, raw):
        self.lines = [(row.d_k ** (0.5 - row.a), row) for row in rows]
        self.raw = [row for row in raw if row.a == 0 and row.d_k >= 16]
        self.scaled = [row for row in raw if row.a == 0.5 and row.d_k >= 16]
        self.keys = sorted({row.keys for row in rows})
        self.tops = {n: max(self.line(n), key=lambda point: point[1])[0] for n in self.keys}

    def line(self, n):
        """Return (s, median) for each measurement with this number of keys."""
        return [(s, row.gradient_median) for s, row in self.lines if row.keys == n]

    @property
    def flatness(self):
        """Return the largest over the smallest median with 1/√d_k, over widths, at the worst n."""
        flatness = []
        for n in {row.keys for row in self.scaled}:
            medians = [row.gradient_median for row in self.scaled if row.keys == n]
            flatness.append(max(medians) / min(medians))
        return max(flatness)

    @cached_property
    def figure(self):
        """Draw the hill."""
        return plot_hill(self.lines, self.raw)

    def judge(self, marks):
        """Judge this run: the claim is falsified if a mark fails."""
        marks.at_most(
            "scaled medians over d_k ≥ 16, largest over smallest", self.flatness, FLAT, ".2f"
        )
        marks.at_least(
            "the lowest top of a hill, as a spread s", min(self.tops.values()), TOP, ".1f"
        )

    @property
    def claims(self):
        """Return a row of the report's table."""
        tops = ", ".join(f"{top:.1f} with {n:,} keys" for n, top in self.tops.items())
        return [
            [
                "For each number of keys the median is a hill over the spread s of the scores, and "
                "1/√d_k puts every width at s = 1, which is not its top",
                f"scaled medians {self.flatness:.2f} times apart from d_k = 16 on; tops at {tops}",
                f"{len(self.scaled)} scaled measurements",
                f"scaled medians more than {FLAT} times apart at one number of keys, or a top "
                f"below s = {TOP}",
            ]
        ]

    def show(self, page):
        """Show the figure."""
        tops = ", ".join(
            f"{top:.1f} with {n:,} keys ({top / (2 * np.log(n)) ** 0.5:.1f} freezing lines)"
            for n, top in self.tops.items()
        )
        page.figure(
            self.figure,
            "hill",
            alt="The median gradient over the spread s of the scores is a hill for each number of "
            f"keys, with its top near s = {tops}. The points of all widths without a scale lie on "
            "it.",
            caption=f"Figure 3. The tops are near s = {tops}. Lines: d_k = 256 with many scales. "
            "Points: all widths without a scale, each at s = √d_k, one for each repeat. In the far "
            "tail, where the median is below a thousandth, single medians vary by a factor of ten",
        )
