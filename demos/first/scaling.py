"""Why √d_k: which gradients grow without it, which shrink, and how unequal they become.

Claim. From variance 1, without the scale 1/√d_k, the query gradients of a head are unequal before
it has found its key, and after that most queries get next to none (chapter 16). This demo shows the
first: of random queries, at d_k = 64 with 64 keys, a tenth has 61 % of the squared gradient, and
with the scale 27 %. Whether a typical query gets less or more depends on d_k and on the number of
keys: there it gets about 5 times more. The scale does not guarantee a gradient either.

    python -m demos scaling [--out DIR] [--seed N]
"""

# %% Set-up

from itertools import product

import numpy as np
from tqdm import tqdm

from attention import attention
from attention.scaling import DEAD, MEASURED, ratios, saturations, summary, typical_query
from demos import options
from demos.first._sweep import plot_sweep, plus_minus
from demos.laboratory._figures import plot_map
from demos.pages.publish import publish
from minigrad import Steps, Tensor, gradients, graph, numerical_gradient
from minigrad.graphs.render import described

SECONDS = 7  # of a run

chosen = options("scaling", __doc__.splitlines()[0])
page = publish(chosen)
D_KS, NS = (4, 8, 16, 32, 64, 128, 256, 512, 1024), (5, 16, 64, 256, 1024)
D_K, KEYS = 512, 5  # the extreme, drawn below
MANY, REPEATS = 64, 5  # keys of the sweep over d_k, and how often it measures
GRADIENTS = ("mean", "mean square", "median")  # columns of a table

# %% The map
# How long is the gradient ‖∂L/∂q‖ of a query, without the scale and with it? Queries and keys are
# random, of unit variance, and so is ∂L/∂(weights). A measurement takes 512 queries, with and
# without the scale on the same draws. The map has the median without the scale, divided by that
# with it, for each d_k and number of keys. Its row of 64 keys and the cells of the table are
# measured five times.

CELLS = ((D_K, KEYS), (64, 64), (64, 1024))  # the extreme, and the width of the paper's heads
rows = []
for d_k, keys in tqdm([*product(D_KS, NS)], desc="the map"):
    times = REPEATS if keys == MANY or (d_k, keys) in CELLS else 1
    rows += saturations((d_k,), repeats=times, keys=keys, seed=chosen.seed)
cells = ratios(rows)
larger = [cell.median > 1 for cell in cells]
extreme, usual, longer = (next(c for c in cells if (c.d_k, c.keys) == each) for each in CELLS)
the_map = page.figure(
    plot_map([("grey: larger without the scale; crimson: smaller; line: equal", 1.0, cells)]),
    "map",
    alt="A map over d_k and the number of keys. The median without the scale is "
    f"{usual.median:.1f} times the one with it at d_k = 64 with 64 keys, {longer.median:.0f} times "
    f"with 1,024 keys, and {extreme.median:.1g} times at d_k = {D_K} with {KEYS} keys.",
    caption="The median ‖∂L/∂q‖ without the scale, divided by that with it. Dotted: where the "
    "scores without a scale spread by √(2 ln n), and a few of n keys begin to have all weight",
)
page.finding(
    f"Without the scale a typical gradient is larger in {sum(larger)} of the {len(cells)} cells, "
    f"and smaller in {len(cells) - sum(larger)}, where a head is wide for its number of keys.",
    the_map,
)
means = [cell.mean for cell in cells]
page.ask(
    "That is the median, which a typical query gets. In how many of the cells is the mean over all "
    "queries larger without the scale?",
    f"In {sum(mean > 1 for mean in means)} of {len(cells)}: it is {min(means):.1f} to "
    f"{max(means):.0f} times as large. Where most queries get nothing, a few get very much.",
    guesses=("in about half", "in all"),
)
page.marks.at_least("the map: the smallest ratio of means", min(means), 1.0, ".2f")
page.marks.at_least("the median at d_k = 64 with 64 keys", usual.median, 3.0, ".1f")
page.marks.at_most("the median at the extreme", extreme.median, 0.01, ".1g")
unequal = usual.top_tenth_without / usual.top_tenth_with
page.marks.at_least("the tenth's share, without over with, at 64, 64", unequal, 1.5, ".1f")
page.table(
    ["d_k", "keys", "median", "(± factor)", "mean", "tenth's share without", "with"],
    [
        [
            cell.d_k,
            f"{cell.keys:,}",
            f"{cell.median:.2g}",
            f"{10**cell.error:.2f}",
            f"{cell.mean:.2g}",
            f"{cell.top_tenth_without:.0%}",
            f"{cell.top_tenth_with:.0%}",
        ]
        for cell in (extreme, usual, longer)
    ],
    caption=f"‖∂L/∂q‖ without the scale over that with it, {REPEATS} times 512 queries; and how "
    "much of the squared gradient the tenth of the queries with the longest gradients has",
)
both = [row for row in rows if (row.d_k, row.keys) == CELLS[0]]
alone = [1 / ratios(pair)[0].median for pair in zip(both[::2], both[1::2], strict=True)]
page.say(
    f"This is one draw. In the first row the typical gradient is {1 / extreme.median:,.0f} times "
    f"smaller, and in its {REPEATS} repeats alone {min(alone):,.0f} to {max(alone):,.0f} times. "
    "Chapter 16 has the numbers of more draws."
)

# %% The extreme: one head over 5 keys at d_k = 512
# The two heads differ in one number, the scale. The box r has random numbers: L = ⟨r, output⟩, so
# ∂L/∂output = r. A box is a tensor, and its colour is the RMS of the gradient there: the root of
# the mean of its squared elements, the size of a typical one. The query is one of 1001 random ones:
# the one whose gradient has the median length without the scale, so it is neither the best case nor
# the worst.

LIMITS, SEEDS = (1e-6, 1.0), 100  # of the colours; how many other typical queries are drawn
q, k, v, g = typical_query(D_K, keys=KEYS, rng=np.random.default_rng(chosen.seed))
page.style += "main > figure { display: inline-block; max-width: 100%; margin: 0 1rem 0 0; }"
passes = []
for scale, title in ((None, "scaled"), (1.0, "unscaled")):
    inputs = [Tensor(a, requires_grad=True, name=n) for a, n in zip((q, k, v), "qkv", strict=True)]
    with Steps() as steps:
        loss = (attention(*inputs, scale=scale) * Tensor(g, name="r")).sum()
    drawing = graph(loss, grads=True, limits=LIMITS, steps=steps)
    page.figure(
        drawing,
        f"head_{title}",
        alt=f"One head, {title}: {described(drawing)}.",
        caption=f"{title}: times {'1' if scale else f'1/√{D_K} = {D_K**-0.5:.3f}'}",
    ).place = "below"
    steps.backward(loss)
    passes.append(steps)


def of_seed(seed):
    """Return how many times smaller ∂L/∂q of a typical query is without the scale."""
    q, k, v, g = typical_query(D_K, keys=KEYS, rng=np.random.default_rng(seed))
    x = Tensor(q, requires_grad=True)
    scaled, raw = (
        gradients(attention(x, Tensor(k), Tensor(v), scale=scale), [x], g)[0]
        for scale in (None, 1.0)
    )
    return np.linalg.norm(scaled) / np.linalg.norm(raw)


apart = of_seed(chosen.seed)
low, high = np.quantile([of_seed([chosen.seed, i]) for i in range(SEEDS)], (0.1, 0.9))
page.say(
    f"The query's ∂L/∂q is {apart:,.0f} times smaller without the scale. In {0.8 * SEEDS:.0f} of "
    f"{SEEDS} other draws the factor is between {low:,.0f} and {high:,.0f}. The gradients are the "
    "same at the weights. So softmax makes the difference, although without the division by √d_k "
    "the last product makes the gradient √d_k times as long."
)

# %% Is so small a gradient true?
# Finite differences (chapter 4.1) move each element of q, and of v, a little. They use no rule.


def checked(i, scale):
    """Return ‖∂L/∂(input i)‖ by the engine and by differences, and how far the gradients agree."""

    def loss(x):
        inputs = [x if n == i else Tensor(a) for n, a in enumerate((q, k, v))]
        return (attention(*inputs, scale=scale) * g).sum()

    x = Tensor((q, k, v)[i], requires_grad=True)
    (exact,) = gradients(loss(x), [x])
    numeric, resolution = numerical_gradient(loss, x)
    norm, found, off, sees = map(np.linalg.norm, (exact, numeric, exact - numeric, resolution))
    told = f"{off / norm:.0e}" if sees < 0.01 * norm else f"resolves nothing below {sees:.0e}"
    return [f"{norm:.9e}", f"{found:.9e}", told]


page.table(
    ["", "by the engine", "by differences", "agree to"],
    [
        [f"{name} ∂L/∂{'qkv'[i]}", *checked(i, scale)]
        for name, scale in (("scaled", None), ("unscaled", 1.0))
        for i in (0, 2)
    ],
    caption="Norms of the gradients",
)

# %% Both heads, step by step
# One slider moves both. On the way back, the arrow in use says how far the two are apart.

page.embed(
    passes[0].save(
        chosen.out / "steps.html",
        beside=passes[1],
        titles=("scaled", "unscaled"),
        title=f"One head at d_k = {D_K}, scaled and unscaled",
        limits=LIMITS,
    )
)

# %% Scores, weights and gradients over d_k
# This is the map's row of 64 keys. The shaded band is ± one standard deviation of five repeats.

row_of_many = [row for row in rows if row.keys == MANY]
found = summary(row_of_many)


def measured(name, d_k, a):
    """Return the mean of a measurement over the repeats."""
    return found[d_k, a][name][0]


def over(name, *d_ks):
    """Return the means of a measurement without the scale at several d_k, as text."""
    return " → ".join(f"{measured(name, d_k, 0):.2g}" for d_k in d_ks)


lost, top = (measured(name, 1024, 0) for name in ("dead_share", "top_tenth_share"))
alive, even = (measured(name, 1024, 0.5) for name in ("dead_share", "top_tenth_share"))
page.say(
    "Without the scale the scores' variance is d_k, and at last one key gets nearly all weight. "
    f"From d_k = 4, 64, 256 to 1024 the median of ‖∂L/∂q‖ rises and then falls, "
    f"{over('gradient_median', 4, 64, 256, 1024)}, and the mean levels off, "
    f"{over('gradient_mean', 4, 64, 256, 1024)}. At 1024 {lost:.0%} of the queries are dead, with "
    f"the scale {alive:.0%}, and the tenth with the longest gradients holds {top:.0%} of the "
    f"squared gradient ({even:.0%})."
)
page.say(
    "With 1/√d_k five of the six panels hardly change. The sixth is the share of that tenth: it "
    f"falls from {measured('top_tenth_share', D_KS[0], 0.5):.0%} to "
    f"{measured('top_tenth_share', D_KS[-1], 0.5):.0%}, because the lengths of short vectors vary "
    f"more. A query is called dead if its ‖∂L/∂q‖ is below {DEAD}: less than a hundredth of the "
    f"{measured('gradient_median', 64, 0.5):.2f} that a median query gets with the scale."
)
page.figure(
    plot_sweep(row_of_many),
    "sweep",
    alt="Six measurements over d_k from 4 to 1024. At 1024 the median gradient is "
    f"{measured('gradient_median', 1024, 0):.1g} without the scale and "
    f"{measured('gradient_median', 1024, 0.5):.2g} with it; {lost:.0%} of the queries are dead "
    f"without it, and {alive:.0%} with it.",
    caption=f"Six measurements over d_k, with {MANY} keys",
)
with page.folded("The numbers of the six panels, and the mean square"):
    page.table(
        ["d_k", "scale", "variance", "entropy", "weight", *GRADIENTS, "dead", "top 10 %"],
        [
            [d_k, "1/√d_k" if a else "none", *(plus_minus(*found[d_k, a][x]) for x in MEASURED)]
            for a in (0.0, 0.5)
            for d_k in D_KS
        ],
        caption=f"Mean ± spread of {REPEATS} repeats: variance of the scores; entropy / log n (1: "
        "equal weights, 0: one key alone); the largest weight; ‖∂L/∂q‖ and its square; dead "
        "queries; and what the tenth with the longest gradients holds",
    )

# %% The scale does not guarantee a gradient
# It repairs scores that grow with d_k, and it does not repair large inputs: a worked example is
# scaled, and nevertheless one of its two heads gets almost no gradient in W_Q and W_K. Run
# `python -m demos love_transformers`, which shows all of it and checks every derivative.

# %% What to conclude

page.say(
    "With the scale, if q and k start with variance 1, a head of any width starts at the same "
    "place, and the gradients of its queries are much more alike. Without it they are unequal "
    "before the head has found its key, and after that most queries get next to none (chapter 16). "
    "The scale is not needed where something else keeps scores small, such as "
    "small initial weights, and it is not enough where they are large for another reason, as with "
    "the inputs of `love_transformers`. Each demo draws its own random numbers, so `laboratory` "
    "and `why_half` show other numbers at the same seed."
)
page.end()

# %% Try it
# - Set `D_K` to 256, and then `KEYS` to 50 as well: which of the two revives the typical query?
