"""Why 1/√d_k, and not another power: guess first, then move the exponent of the scale.

Claim. Attention multiplies its scores by d_k^-a. One power of d_k keeps a typical query's gradient
the same at every d_k. Which one?

512 random queries q look at 64 random keys k of d_k features each. Their entries have mean 0 and
variance 1, and so has the gradient ∂L/∂p that arrives at the attention weights p. First you change
the scale, which multiplies the scores before softmax, and later how well a key fits. What is
measured is ‖∂L/∂q‖, one number for each query: the length of the gradient that reaches it. With
gradient descent, a longer one moves the query further. A query with less than 0.001 is called dead.

    python -m demos why_half [--out DIR] [--seed N]
"""

# %% Set-up

import math

from attention.figures import REFERENCE, SCALED, SCALED_TWICE, UNSCALED, name_ends, new_figure
from attention.scaling import ratios, saturations, top_tenth
from demos import options
from demos.laboratory.explorable import D_KS, EXPONENTS, FITS, FROM, apart, draws, measure, parts
from demos.pages.publish import publish
from demos.pages.templates import parts as page_parts

SECONDS = 2  # of a run

chosen = options("why_half", __doc__.splitlines()[0])
page = publish(chosen)

# %% What you see
# What you move is computed in the browser. The page works without a network, and can be mailed. Its
# 64 keys are one row of the map in chapter 16.

few, usual, many = ratios(saturations((64,), keys=(5, 64, 1024), seed=chosen.seed))
page.finding(
    f"With {usual.keys} keys and d_k = 64, the width of the paper's heads, a typical query's "
    f"gradient is {usual.median:.1f} times larger without a scale than with 1/√d_k. With "
    f"{many.keys:,} keys it is {many.median:.0f} times larger, and with {few.keys} keys "
    f"{1 / few.median:.1f} times smaller."
)
markup, script, style = parts(chosen.seed)
at_site = page_parts.tile("why_half.html", "To be moved by hand", "Find the flat line", "")
program = page.program(markup, script=script, style=style, at_site=at_site)
program.place = "question"  # (on top)
page.marks.at_most("median, a = 0 over ½, d_k = 64, 5 keys", few.median, 0.8, ".2f")
page.marks.at_least("median, a = 0 over ½, d_k = 64, 64 keys", usual.median, 3, ".1f")
page.marks.at_least("median, a = 0 over ½, d_k = 64, 1,024 keys", many.median, 15, ".0f")

# %% What minigrad measures
# The same draws go through this project's engine: attention of 512 queries over 64 keys at nine d_k
# and 21 exponents, and ‖∂L/∂q‖ of each query.

drawn = draws(chosen.seed)
measured = {a: [measure(drawn, d_k, a) for d_k in D_KS] for a in EXPONENTS}
median = {a: [queries.median for queries in row] for a, row in measured.items()}
mean = {a: [queries.mean for queries in row] for a, row in measured.items()}
spread = {a: apart(medians) for a, medians in median.items()}

page.table(
    ["a", *(f"d_k = {d_k}" for d_k in D_KS[::2]), "largest / smallest", "mean", "dead"],
    [
        [
            f"{a:g}",
            *(f"{x:.3g}" for x in median[a][::2]),
            f"{spread[a]:.3g}",
            f"{mean[a][-1]:.3g}",
            f"{measured[a][-1].dead_share:.0%}",
        ]
        for a in (0.0, 0.25, 0.4, 0.45, 0.5, 0.55, 0.6, 0.75, 1.0)
    ],
    caption="‖∂L/∂q‖ with the scale d_k^-a: its median at five d_k, how far apart the medians from "
    "d_k = 16 to 1024 are, and at d_k = 1024 mean and dead share",
)
flattest = min(spread, key=spread.get)
at_64, at_1024 = D_KS.index(64), D_KS.index(1024)
tenth = {a: top_tenth(measured[a][at_64].norms) for a in (0.0, 0.5)}
page.marks.at_most("distance of the flattest exponent from ½", abs(flattest - 0.5), 0.051, ".2f")
page.marks.at_most("largest / smallest median at ½", spread[0.5], 1.2, ".2f")
page.marks.at_most(
    "median at a = 0, 1024 over 64", median[0.0][at_1024] / median[0.0][at_64], 0.05, ".4f"
)
page.marks.at_least(
    "mean at a = 0, 1024 over 64", mean[0.0][at_1024] / mean[0.0][at_64], 0.5, ".2f"
)
page.marks.at_least(
    "top tenth's share at a = 0 over that at ½, d_k = 64", tenth[0.0] / tenth[0.5], 1.5, ".1f"
)

# %% When a key fits
# So far the keys are random. Let each query be correlated with one key by α, so that this key's
# score stands out by m = α √d_k deviations. Training makes such keys.

out = {
    (m, a): measure(drawn, D_KS[-1], a, m) for m in FITS[::2] for a in (0.0, 0.5)
}  # at the widest head
page.table(
    ["m", "mean, no scale", "mean, 1/√d_k", "median, no scale", "median, 1/√d_k"],
    [
        [
            f"{m:g}",
            *(f"{out[m, a].mean:.2g}" for a in (0.0, 0.5)),
            *(f"{out[m, a].median:.2g}" for a in (0.0, 0.5)),
        ]
        for m in FITS[::2]
    ],
    caption=f"‖∂L/∂q‖ at d_k = {D_KS[-1]}, if one key stands out by m. Chapter 16 has where "
    "the two means are equal: near m = 4 for 64 keys",
)
before, after = (out[m, 0.0].mean / out[m, 0.5].mean for m in (0.0, 6.0))
page.say(
    f"Without a scale the mean is {before:.0f} times larger while no key fits, and "
    f"{after:.0e} times as large at m = 6. So the mean is larger while no key fits, and "
    "gone where one fits by that much. (Chapter 16.8 has what a trained head keeps.)"
)
page.marks.at_least("mean at d_k = 1024, no scale over 1/√d_k, m = 0", before, 5.0, ".1f")
page.marks.at_most("mean at d_k = 1024, no scale over 1/√d_k, m = 6", after, 0.1, ".0e")

# %% Three pictures
# They are for a reader without JavaScript, and for paper.

COLOURS = {0.0: UNSCALED, 0.5: SCALED, 1.0: SCALED_TWICE}


def at(a, *places):
    """Return the medians at an exponent and some d_k, as a sentence has them."""
    return ", ".join(f"{median[a][D_KS.index(d_k)]:.2g} at d_k = {d_k}" for d_k in places)


def panel(x_axis, y_axis, title):
    """Return a figure, and its panel with a logarithmic y axis."""
    figure = new_figure(3.8, 3.2)
    axes = figure.subplots()
    axes.set_yscale("log")
    axes.set_xlabel(x_axis)
    axes.set_ylabel(y_axis)
    axes.set_title(title, fontsize=9)
    axes.grid(alpha=0.25)
    return figure, axes


page.style += "main > figure { display: inline-block; max-width: 100%; margin: 0 1rem 0 0; }"
page.style += " main > figure figcaption { max-width: 22rem; }"
lines, axes = panel("d_k", "‖∂L/∂q‖", "nearly level at ½")
axes.set_xscale("log", base=2)
for a, colour in COLOURS.items():
    axes.plot(D_KS, mean[a], "^:", color=colour, markersize=3)
    axes.plot(D_KS, median[a], "o-", color=colour, markersize=4)
axes.set_xticks(D_KS[::2], [str(d_k) for d_k in D_KS[::2]])
axes.set_ylim(1e-3, 10)
name_ends(axes, [(median[a][-1], f"a = {a:g}", colour) for a, colour in COLOURS.items()])
page.figure(
    lines,
    "lines",
    alt="The median and the mean of the gradient over d_k. Without a scale the median is "
    f"{at(0.0, 4, 32, 1024)}; with a = ½ {at(0.5, 4, 32, 1024)}; with a = 1 "
    f"{at(1.0, 4, 32, 1024)}.",
    caption="Median (line) and mean (dots) over d_k, with no scale (a = 0), 1/√d_k (½) and 1/d_k "
    "(1)",
).place = "below"

flatness, axes = panel("a", "largest / smallest median", f"flattest at a = {flattest:g}")
axes.plot(EXPONENTS, list(spread.values()), "o-", color=REFERENCE, markersize=3)
for a, colour in COLOURS.items():
    axes.plot(a, spread[a], "o", color=colour, markersize=7)
page.figure(
    flatness,
    "flatness",
    alt="The largest median from d_k = 16 on, divided by the smallest, over the exponent: it is "
    f"{spread[0.0]:.0f} at a = 0, {spread[0.5]:.2f} at ½ and {spread[1.0]:.1f} at 1.",
    caption="The largest median from d_k = 16 on, divided by the smallest: 1 is a flat line",
).place = "below"

hill, axes = panel("s = d_k^(½-a)", "median ‖∂L/∂q‖", "one hill for all")
axes.set_xscale("log", base=2)
for a in [*(a for a in EXPONENTS if a not in COLOURS), *COLOURS]:
    size = 6 if a in COLOURS else 2.5
    s = [d_k ** (0.5 - a) for d_k in D_KS]
    axes.plot(s, median[a], "o", color=COLOURS.get(a, REFERENCE), markersize=size)
axes.set_xticks([2.0**n for n in (-5, -3, -1, 1, 3, 5)], ["1/32", "1/8", "½", "2", "8", "32"])
page.figure(
    hill,
    "hill",
    alt="All medians over the standard deviation s of the scores lie on one hill, whose top is "
    "between s = 5 and 6. With a = ½ all nine are at s = 1.",
    caption="All 189 medians over s, the standard deviation of the scores: with a = ½ (black) the "
    "nine of them are at one place",
).place = "below"

# %% Why it is ½
# A score q·k is a sum of d_k products, so its standard deviation is √d_k, and after the scale it is
# s = d_k^(½-a). The gradient is ∂L/∂q = d_k^-a · Kᵀ J ∂L/∂p, where J = diag(p) - p pᵀ comes from
# softmax. The keys are about √d_k long, so d_k^-a Kᵀ makes J ∂L/∂p about d_k^-a √d_k = s times as
# long. And J depends on nothing but the scores. So d_k and *a* matter through s alone.
#
# Over s the median is a hill. For small s the weights are nearly equal, J hardly changes, and the
# gradient grows like s. The top is between 5 and 6. Beyond it softmax puts nearly all weight on one
# key, J is nearly 0, and so is the gradient of the typical query. The few queries whose best two
# keys are nearly equal keep their J, and their gradients grow like s. They hold the mean up, so one
# mean over all queries hides the dead ones.

below = [a for a in EXPONENTS if a < 0.4]  # of these, where both ends of the line are most alike
second = min(below, key=lambda a: abs(math.log(median[a][FROM] / median[a][-1])))
others = [row.gradient_median for row in saturations([1024], (0.0,), repeats=5, seed=chosen.seed)]
page.say(
    "So without a scale the gradients are unequal. At d_k = 64 the tenth of the queries with the "
    f"longest ones has {tenth[0.0]:.0%} of the squared gradient, and with 1/√d_k {tenth[0.5]:.0%}."
)
page.say(
    "If a is below ½, s grows with d_k, so wider heads are further to the right on the hill: "
    "beyond its top early without a scale, and late near ½. There is no second a that gives a flat "
    f"line. At a = {second:g} the first and the last median are most alike, on different sides of "
    f"the top: {at(second, 16, 1024)}. But between them the line rises to "
    f"{max(median[second][FROM:]):.2g}, so it is not flat. "
    "If a is above ½, s shrinks, and the gradient of every query with it: at a = 1 it halves "
    "whenever d_k grows fourfold. Only at ½ is s = 1 at every d_k."
)
page.say(
    "So it is algebra that the exponent is ½. It follows if the entries of q and k are independent "
    "and have variance 1, and the measurement tests the code: from d_k = 16 to "
    f"1024 the medians at ½ must be the same, and they are, to {spread[0.5] - 1:.0%}."
)
page.say(
    "s = 1 is not the top of the hill. At d_k = 64 the median of these queries is "
    f"{median[0.0][at_64] / median[0.5][at_64]:.1f} times larger without a scale (above it is "
    f"{usual.median:.1f} times, of other queries). What ½ gives is "
    "that the width does not matter. (At d_k = 4 and 8 the median is a little lower at ½ too: a "
    "gradient of so few numbers varies more in length from query to query. Flatness is therefore "
    "judged from d_k = 16 on.)"
)
page.say(
    "Each demo draws its own random numbers, so `scaling` and `laboratory` show other numbers at "
    f"the same seed. Without a scale the median at d_k = 1024 is {median[0.0][at_1024]:.2g} here, "
    f"and from {min(others):.2g} to {max(others):.2g} in five samples of chapter 16."
)

# %% What to conclude

page.say(
    "With 1/√d_k a head of any width starts with the same spread of scores, the same weights and "
    "nearly the same gradients. Without a scale the gradients are more unequal, and whether a "
    "typical one is larger or smaller depends on d_k and on the number of keys: it vanishes only "
    "where d_k is large for that number. An exponent above ½ weakens all queries alike. This "
    "holds before a key fits, for independent entries of variance 1. Without a scale the gradients "
    "vanish where one fits by much. The demo `recall` trains a head with and without the scale."
)
page.end()

# %% Try it
# - Open the page with `#d_k=1024&a=0` at the end of its address, and step through ten queries: how
#   many are dead, and how does one with a long gradient share its weight out?
# - Run it with another `--seed`: which numbers change, and is the flat line still at ½?
