"""Figures 1 to 4 of the laboratory: the map, distributions, one hill, and a key that fits."""

import math
from dataclasses import replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from attention.scaling import MEASURED, deviation, heads, ratios, ties
from demos.laboratory._figures import plot_distributions, plot_map
from demos.laboratory._laws import (
    LEAST,
    TIE,
    TOP,
    equal_medians,
    mean_law,
    plot_fits,
    plot_laws,
    share_law,
    square_law,
)

POINTS = ((64, 64), (64, 1024), (512, 5))  # d_k and keys of figure 2
# The marks of what is claimed.
LARGER = 1.5
UNEQUAL = 1.1
FLAT = 1.4
TOPS = (2.0, 2.6)  # over ρ
NEAR_SQUARE = 1.1  # how far a root mean square may be from its law: 2,048 queries place it to .05
NEAR_MEAN = 1.25  # and a mean that is extrapolated to large s: 2,048 queries place it to .1
CONTOUR = 1.4  # and the d_k of equal medians
BEYOND = 1.5  # times the law's d_k: there the median is smaller without the scale
FAR = (8.0, 16.0)  # the spreads s at which the mean square is judged
LEFT = 0.3  # of the mean, if a key stands out by m = 6
APART = 0.35  # how far the m at which the means are equal may be from that of the law
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
        self.derived = {}  # number of keys → the d_k at which the medians should be equal
        for n in sorted({c.keys for c in self.cells}):
            scaled = [r.gradient_median for r in rows if r.keys == n and r.a and r.d_k >= 16]
            self.derived[n] = equal_medians(n, float(np.mean(scaled)))
        self.contour = {n: self.equal(n) for n in self.derived}
        beyond = [c for c in self.cells if c.d_k > BEYOND * self.derived[c.keys]]
        self.beyond = max(beyond, key=lambda c: c.median)

    def range_of(self, name, cells):
        """Return the smallest and the largest value of a ratio's field in some cells."""
        values = [getattr(c, name) for c in cells]
        return min(values), max(values)

    def equal(self, n):
        """Return the d_k at which the measured medians are equal, between cells; NaN if none is."""
        row = sorted((c.d_k, c.median) for c in self.wide if c.keys == n)
        for (before, high), (after, low) in pairwise(row):
            if high >= 1 > low:
                part = math.log(high) / math.log(high / low)
                return before ** (1 - part) * after**part
        return math.nan

    @property
    def factors(self):
        """Return the factor of one standard error of a ratio for each number of keys, pooled.

        A cell has few repeats. So the variances of its row's cells are averaged, from d_k = 16 on,
        where the ratio is above .01.
        """
        errors = {}
        for cell in self.wide:
            if cell.median > 0.01:
                errors.setdefault(cell.keys, []).append(cell.error)
        return {n: 10 ** float(np.mean(np.square(each)) ** 0.5) for n, each in errors.items()}

    @property
    def more(self):
        """Return how many times as large the tenth's share is without the scale, in wide cells."""
        return [c.top_tenth_without / c.top_tenth_with for c in self.wide]

    @cached_property
    def figure(self):
        """Draw both maps."""
        maps = [("variance 1", 1.0, self.cells), ("GPT-2's initial weights", GPT2, self.of_gpt2)]
        return plot_map(maps, self.derived)

    def judge(self, marks):
        """Judge this run: a claim is falsified if its mark fails."""
        usual, _ = self.range_of("median", self.usual)
        marks.at_least(
            "smallest ratio of medians, d_k 16 to 128, 64 keys or more", usual, LARGER, ".2f"
        )
        marks.at_most(
            "largest ratio of medians, d_k 1½ times the law's or more", self.beyond.median, 1, ".2f"
        )
        mean, _ = self.range_of("mean", self.cells)
        marks.at_least("smallest ratio of means on the map", mean, 1.0, ".2f")
        marks.at_least(
            "smallest ratio of the tenth's shares, d_k ≥ 16", min(self.more), UNEQUAL, ".2f"
        )
        apart = [math.log(self.derived[n] / d_k) for n, d_k in self.contour.items()]
        apart = math.exp(max(abs(each) for each in apart if not math.isnan(each)))
        marks.at_most("d_k of equal medians over that of the law", apart, CONTOUR, ".2f")
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
                f"{usual:.1f} to {most:.0f} times; at most {up(self.beyond.median)} times where "
                f"d_k is more than {BEYOND} times the law's below",
                repeats,
                f"a ratio below {LARGER} in one of these cells, at unit variance, or below 1 at "
                "GPT-2's initial weights with 64 keys or more; or above 1 in one of the wide heads",
            ],
            [
                "Gradients become unequal, for d_k ≥ 16",
                f"the tenth's share is {min(self.more):.1f} to {max(self.more):.1f} times as large",
                repeats,
                f"a cell in which it is less than {UNEQUAL} times as large",
            ],
            [
                f"The medians are equal about where {TIE:.2f} s exp(-s δ), δ the median gap, "
                "has fallen to the median with the scale",
                f"d_k measured and derived: {self.law_and_contour()}",
                repeats,
                f"a number of keys for which the two are more than {CONTOUR} times apart",
            ],
        ]

    def law_and_contour(self):
        """Return the d_k of equal medians as a sentence has it: measured, and derived."""
        pairs = (
            f"{d_k:,.0f} and {self.derived[n]:,.0f} with {n:,} keys"
            for n, d_k in self.contour.items()
            if not math.isnan(d_k)
        )
        return ", ".join(pairs)

    def show(self, page):
        """Show the figure, after a question."""
        low, high = self.range_of("median", self.usual)
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
            "keys or more, and smaller in heads that are wide for their keys. At GPT-2's initial "
            "weights it is larger nearly everywhere.",
            caption="Figure 1. The median ‖∂L/∂q‖ without the scale, divided by that with it. "
            "Grey: larger without the scale; crimson: smaller; line: equal; dashed (left): where "
            "the law of the median says so; dotted: the freezing line, where scores without a "
            "scale spread by √(2 ln n) and a few keys begin to have all weight. Points: d_k and "
            "trained context of three models, whose q and k do not have unit variance: the right "
            "map has the deviation of GPT-2's initial weights",
        ).place = "below"

    def draws(self):
        """Return how many queries were drawn, as text."""
        return f"{self.repeats} repeats of {self.queries} queries; right: one of {self.fewer}"

    def spread(self):
        """Return the error of a ratio, as text."""
        low, high = min(self.factors.values()), max(self.factors.values())
        return (
            f"left, one standard error: a factor of {low:.2f} to {high:.2f}, pooled over the cells "
            "of a row from d_k = 16 on in which the ratio is above .01; right: unknown"
        )


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
            title = f"d_k = {d_k}, {keys:,} keys"
            self.points.append((title, raw, scaled, mean_law(keys)))
        self.smaller = [float((raw < scaled).mean()) for _, raw, scaled, _ in self.points]
        ends = [np.quantile(scaled, (0.05, 0.95)) for _, _, scaled, _ in self.points]
        self.within = [float(high / low) for low, high in ends]  # nine in ten

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
        within = f"{min(self.within):.1f} to {max(self.within):.1f}"
        page.figure(
            self.figure,
            "distributions",
            alt="The share of queries below each length of the gradient at three points. With the "
            f"scale nine in ten lengths are within a factor of {within}; without it they spread "
            "over many powers of ten.",
            caption="Figure 2. With the scale (solid) the gradients of nine in ten queries are "
            f"within a factor of {within}; without it (dashed) some have far more, and some none. "
            "Circles are means, and a cross is the mean √(2/π) ρ that is derived for wide heads. "
            "The share of queries whose own gradient is smaller without the scale: "
            + ", ".join(
                f"{share:.0%} at {title}"
                for (title, *_), share in zip(self.points, self.smaller, strict=True)
            ),
        ).place = "below"


class Hill:
    """Figure 3: median, mean, mean square and share over the spread of the scores."""

    def __init__(self, rows, raw, repeats=1):
        """Take the rows of a hill, the repeats of a scale one after the other, and of the map."""
        means = averaged(rows)
        self.lines = [(spread_of_scores(row), row) for row in means]
        self.repeats = repeats
        self.raw = [row for row in raw if row.a == 0 and row.d_k >= 16]
        self.scaled = [row for row in raw if row.a == 0.5 and row.d_k >= 16]
        self.keys = sorted({row.keys for row in rows})
        self.tops = {n: top(medians(means, n)) for n in self.keys}
        self.errors = {}
        for n in self.keys:
            tops = [top(medians(rows[repeat::repeats], n)) for repeat in range(repeats)]
            self.errors[n] = float(deviation(tops) / repeats**0.5)

    @property
    def flatness(self):
        """Return the largest over the smallest median with 1/√d_k, over widths, at the worst n."""
        flatness = []
        for n in {row.keys for row in self.scaled}:
            medians = [row.gradient_median for row in self.scaled if row.keys == n]
            flatness.append(max(medians) / min(medians))
        return max(flatness)

    @property
    def of_ties(self):
        """Return each hill's top over ρ."""
        return [top / ties(n) for n, top in self.tops.items()]

    @property
    def squares(self):
        """Return n → the root mean squares over those of the law, at the spreads of FAR."""
        found = {n: [] for n in self.keys}
        for s, row in self.lines:
            if FAR[0] <= round(s, 6) <= FAR[1]:
                found[row.keys].append((row.gradient_square / square_law(row.keys, s)) ** 0.5)
        return {n: float(np.exp(np.mean(np.log(each)))) for n, each in found.items()}

    @property
    def means(self):
        """Return n → the mean over √(2/π) ρ, extrapolated by a straight line over 1/s.

        The line goes through the spreads from 3 to 16. Beyond, few queries carry the mean.
        """
        found = {}
        for n in self.keys:
            points = [(1 / s, row.gradient_mean) for s, row in self.lines if row.keys == n]
            x, mean = zip(*(point for point in points if 1 / 17 < point[0] <= 1 / 3), strict=True)
            found[n] = float(np.polyfit(x, mean, 1)[1]) / mean_law(n)
        return found

    @property
    def shares(self):
        """Return the spread next to 8, and there n → (mean)²/mean square."""
        at = min({s for s, _ in self.lines}, key=lambda s: abs(s - 8))
        here = [row for s, row in self.lines if s == at]
        return at, {row.keys: row.gradient_mean**2 / row.gradient_square for row in here}

    @cached_property
    def figure(self):
        """Draw the four statistics with their laws."""
        return plot_laws(self.lines, self.raw)

    def judge(self, marks):
        """Judge this run: the claim is falsified if a mark fails."""
        marks.at_most(
            "scaled medians over d_k ≥ 16, largest over smallest", self.flatness, FLAT, ".2f"
        )
        marks.at_least("the lowest top of a hill, over ρ", min(self.of_ties), TOPS[0], ".2f")
        marks.at_most("the highest top of a hill, over ρ", max(self.of_ties), TOPS[1], ".2f")
        for name, found, near in (
            ("root mean square, s from 8 to 16,", self.squares, NEAR_SQUARE),
            ("mean, extrapolated to large s,", self.means, NEAR_MEAN),
        ):
            apart = math.exp(max(abs(math.log(ratio)) for ratio in found.values()))
            marks.at_most(f"{name} from its law, times", apart, near, ".2f")

    @property
    def claims(self):
        """Return rows of the report's table."""
        return [
            [
                "For each number of keys the median is a hill over the spread s of the scores, and "
                "1/√d_k puts every width at s = 1 if q and k have variance 1. That is not its top, "
                f"which is near {TOP} ρ",
                f"scaled medians {self.flatness:.2f} times apart from d_k = 16 on; tops at "
                f"{self.said_tops()}",
                f"{len(self.scaled)} scaled measurements",
                f"scaled medians more than {FLAT} times apart at one number of keys, or a top "
                f"outside of {TOPS[0]:.1f} to {TOPS[1]:.1f} ρ",
            ],
            [
                "For large s the mean goes to √(2/π) ρ, and the mean square is near ρ (s - ρ)/3",
                "measured over derived (the mean extrapolated in 1/s), with "
                + ", ".join(
                    f"{n:,} keys {self.means[n]:.2f} (mean) and {self.squares[n]:.2f} (root mean "
                    "square)"
                    for n in self.keys
                ),
                f"{self.lines[0][1].queries:,} queries for each point",
                f"a mean more than {NEAR_MEAN} times from its law, or a root mean square more than "
                f"{NEAR_SQUARE} times at s from 8 to 16",
            ],
        ]

    def said_tops(self):
        """Return the tops as a sentence has them."""
        return ", ".join(
            f"{top:.2f} ± {self.errors[n]:.2f} with {n:,} keys ({top / ties(n):.2f} ρ)"
            for n, top in self.tops.items()
        )

    def show(self, page):
        """Show the figure."""
        at, shares = self.shares
        page.figure(
            self.figure,
            "hill",
            alt="Median, mean, mean square and share over the spread s of the scores, for each "
            f"number of keys. The medians are hills with their tops at s = {self.said_tops()}, and "
            "the circles of the widths without a scale lie on them. The means level off at "
            "√(2/π) ρ.",
            caption="Figure 3. Dots: d_k = 256 with many scales; dashed: what `ties` has for large "
            "s. Circles (above left): the widths from d_k = 16 on without a scale, each at s = "
            f"√d_k. The tops of the medians are at s = {self.said_tops()}, and a bar is at {TOP} "
            "ρ, which is measured. (mean)²/mean square is below its law at first: at s = "
            f"{at:.2g} it is "
            + ", ".join(
                f"{share:.2f} (law: {share_law(n, at):.2f}) with {n:,} keys"
                for n, share in shares.items()
            )
            + ". Single medians in the far tail vary widely",
        ).place = "below"


def up(x):
    """Return an upper bound in one digit, rounded upward."""
    unit = 10 ** math.floor(math.log10(x))
    return f"{math.ceil(x / unit) * unit:.1g}"


def spread_of_scores(row):
    """Return s = scale · √d_k of a measurement."""
    return row.d_k ** (0.5 - row.a)


def averaged(rows):
    """Return one row for each number of keys and scale, with the means of its repeats."""
    groups = {}
    for row in rows:
        groups.setdefault((row.keys, row.a), []).append(row)
    means = []
    for group in groups.values():
        of = {name: float(np.mean([getattr(row, name) for row in group])) for name in MEASURED}
        means.append(replace(group[0], queries=sum(row.queries for row in group), **of))
    return means


def medians(rows, n):
    """Return (s, median) for each measurement with this number of keys."""
    return sorted((spread_of_scores(row), row.gradient_median) for row in rows if row.keys == n)


def top(line):
    """Return where a parabola over log s, through the three points at the largest, has its top."""
    best = max(range(1, len(line) - 1), key=lambda i: line[i][1])
    s, heights = zip(*line[best - 1 : best + 2], strict=True)
    square, slope, _ = np.polyfit(np.log(s), heights, 2)
    return float(np.exp(-slope / (2 * square)))


class Fits:
    """Figure 4: the mean without the scale over that with it, as one key stands out."""

    def __init__(self, results):
        """Take (cell, measurement) of a sweep over keys, m/√d_k and the scale."""
        groups = {}
        for cell, row in results:
            m = round(cell["fit"] * cell["d_k"] ** 0.5, 6)
            groups.setdefault((cell["keys"], m), ([], []))[cell["a"] == 0.5].append(row)
        self.d_k = results[0][0]["d_k"]
        self.queries = results[0][1].queries
        self.rows = []
        self.ratios = {}  # (number of keys, m) → the ratio of each repeat
        for (n, m), pair in sorted(groups.items()):
            without, scaled = (np.array([row.gradient_mean for row in rows]) for rows in pair)
            self.ratios[n, m] = ratios = without / scaled.mean()
            error = float(deviation(ratios) / len(ratios) ** 0.5 / ratios.mean())
            self.rows.append((n, m, float(ratios.mean()), error, float(scaled.mean())))
        self.repeats = len(ratios)
        self.keys = sorted({row[0] for row in self.rows})

    def line(self, n):
        """Return the m and the ratios of the means of this number of keys."""
        return zip(*((m, ratio) for keys, m, ratio, *_ in self.rows if keys == n), strict=True)

    @property
    def equal(self):
        """Return n → the m at which the means are equal, by a straight line between two points."""
        return {n: crossing(*self.line(n)) for n in self.keys}

    @property
    def errors(self):
        """Return n → the standard error of that m, from the repeats."""
        errors = {}
        for n in self.keys:
            m, _ = self.line(n)
            repeats = zip(*(self.ratios[n, each] for each in m), strict=True)
            errors[n] = float(deviation([crossing(m, x) for x in repeats]) / self.repeats**0.5)
        return errors

    @property
    def derived(self):
        """Return n → the same of the law, √(2/π) ρ(m) over the measured mean with the scale."""
        laws = [(n, m, mean_law(n, m) / scaled) for n, m, *_, scaled in self.rows]
        return {
            n: crossing(*zip(*(x[1:] for x in laws if x[0] == n), strict=True)) for n in self.keys
        }

    @property
    def last(self):
        """Return the largest ratio of means at the largest m, and its standard error."""
        m = max(row[1] for row in self.rows)
        ratio, error = max((row[2], row[3]) for row in self.rows if row[1] == m)
        return ratio, ratio * error

    def said_last(self):
        """Return that ratio as a sentence has it."""
        ratio, error = self.last
        return f"{ratio:.2f} ± {error:.2f}"

    @cached_property
    def figure(self):
        """Draw the ratios with their law."""
        return plot_fits(self.rows)

    def judge(self, marks):
        """Judge this run: a claim is falsified if its mark fails."""
        first = [list(self.line(n))[1][0] for n in self.keys]
        marks.at_least("smallest ratio of means if no key fits", min(first), LARGER, ".2f")
        marks.at_most("largest ratio of means, m = 6", self.last[0], LEFT, ".2g")
        apart = max(abs(self.equal[n] - self.derived[n]) for n in self.keys)
        marks.at_most("m of equal means, distance from that of the law", apart, APART, ".2f")

    @property
    def claims(self):
        """Return a row of the report's table."""
        first = [list(self.line(n))[1][0] for n in self.keys]
        return [
            [
                f"If one of {self.keys[0]} to {self.keys[-1]:,} keys stands out by m at d_k = "
                f"{self.d_k}, the mean falls like ρ(m), and below the one with the scale",
                f"the ratio of means is {min(first):.1f} to {max(first):.0f} at m = 0, and at most "
                f"{self.said_last()} at m = 6; it is 1 at m = {self.said_equal()}",
                f"{len(self.rows)} cells × {self.repeats} × {self.queries} queries",
                f"a ratio below {LARGER} at m = 0 or above {LEFT} at m = 6, or an m of equal means "
                f"more than {APART} from that of the law",
            ]
        ]

    def said_equal(self):
        """Return where the means are equal as a sentence has it."""
        return ", ".join(
            f"{m:.2f} ± {self.errors[n]:.2f} with {n:,} keys (law: {self.derived[n]:.2f})"
            for n, m in self.equal.items()
        )

    def show(self, page):
        """Show the figure."""
        page.figure(
            self.figure,
            "fits",
            alt="The ratio of the means over m falls from above 1 to nearly 0. It is 1 at m = "
            f"{self.said_equal()}.",
            caption=f"Figure 4. At d_k = {self.d_k} each query is correlated with one key by "
            "α = m/√d_k. The mean of ‖∂L/∂q‖ without the scale, divided by that with it: dots, "
            "with one standard error; dashed, √(2/π) ρ(m) over the measured mean with the scale. "
            f"They are 1 at m = {self.said_equal()}. Dots below {LEAST} are not drawn",
        )


def crossing(m, ratios):
    """Return the m at which falling ratios are 1, by a straight line between two logarithms."""
    return float(np.interp(0, -np.log(ratios), m))
