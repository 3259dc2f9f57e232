"""The laboratory: eight measurements of what the scale does, and what hides it.

Claim. The scale d_k^-½ is the one power of d_k with which nothing that decides how a head learns
depends on its width: not the scores, not the gradient of a typical query, not the largest stable
step. Without a scale a typical query of a wide head gets no gradient, and the learning rates that
work shrink. What hides this is named too: means, Adam, small initial weights, small widths.

Each measurement is a sweep (chapter 16.11), whose results are kept in a file of the output folder.
A run that was stopped continues there. With `--full` there are more widths, rates and seeds.

    python -m demos laboratory [--out DIR] [--seed N] [--full] [--jobs N] [--dask ADDRESS]  # 80 s
"""

# %% Set-up

import numpy as np

from attention.figures import plot_sweep, save_figure
from attention.laboratory.basin import outcomes, training
from attention.laboratory.chain import factors
from attention.laboratory.figures import (
    by_repeat,
    plot_basin,
    plot_changed_scale,
    plot_entropies,
    plot_factors,
    plot_freezing,
    plot_heads_learning,
    plot_lookup,
    plot_sharpness,
)
from attention.laboratory.freezing import collapse, freezing_line, lookup
from attention.laboratory.neighbours import WAYS, neighbour
from attention.laboratory.results import SweepError
from attention.laboratory.sharpness import head_sharpness, slope
from attention.laboratory.sweeps import progress, sweep
from attention.laboratory.trained import trained_heads
from attention.laboratory.workers import workers
from attention.scaling import saturation, summary
from demos import options, stop
from demos._page import Page, try_it
from demos._training import Marks
from demos.laboratory import _trained


def add(parser):
    """The options that only this demo has."""
    parser.add_argument(
        "--full", action="store_true", help="more widths, rates and seeds: some 15 minutes"
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes that measure (%(default)s)")
    parser.add_argument("--dask", metavar="ADDRESS", help="the scheduler of a Dask cluster")


chosen = options("laboratory", __doc__.splitlines()[0], quick=True, add=add)
marks = Marks(enforced=not chosen.quick)
size = "quick" if chosen.quick else "full" if chosen.full else "default"
EXPONENTS = [0.0, 0.5, 1.0]
KEYS = [64, 1024, 131_072]  # of chapter 16.3
NAMES = {0.0: "no scale", 0.5: "1/√d_k", 1.0: "1/d_k"}


def sized(quick, default, full):
    """A size by the size of the run."""
    return {"quick": quick, "default": default, "full": full}[size]


LIMIT = sized(20, 300, 400)  # steps of a training
SWEEPS = {
    "saturation": (
        saturation,
        {"d_k": sized([4, 64], [2**n for n in range(2, 11)], [2**n for n in range(2, 11)])},
        sized(1, 5, 20),
    ),
    "factors": (
        factors,
        {"d_k": sized([4, 64], [4, 16, 64, 256, 1024], [2**n for n in range(2, 11)])},
        sized(1, 3, 10),
    ),
    "sharpness": (
        head_sharpness,
        {"d_k": sized([8, 16], [8, 16, 32, 64, 128, 256, 512], [8, 16, 32, 64, 128, 256, 512])},
        sized(2, 5, 10),
    ),
    "basin": (
        training,
        {
            "d_k": sized([8], [8, 64, 512], [8, 32, 128, 512, 2048]),
            "lr": sized([0.1], [0.1, 0.3, 1.0, 3.0], [0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0]),
            "optimizer": ["sgd"],
            "limit": [LIMIT],
        },
        sized(1, 2, 5),
    ),
    "basin of Adam": (
        training,
        {
            "d_k": sized([8], [8, 512], [8, 32, 128, 512, 2048]),
            "lr": sized([0.01], [0.003, 0.01], [0.001, 0.003, 0.01, 0.03, 0.1]),
            "optimizer": ["adam"],
            "limit": [LIMIT],
        },
        sized(1, 2, 5),
    ),
    "small weights": (
        training,
        {
            "d_k": sized([8], [8, 512], [8, 32, 128, 512, 2048]),
            "lr": sized([0.1], [0.1], [0.03, 0.1, 0.3, 1.0, 3.0]),
            "init": ["gpt2"],
            "limit": [LIMIT],
        },
        sized(1, 2, 5),
    ),
}


# %% Everything is measured
# A cell is one combination of settings. The exponents of a combination see the same draws.

runs = {
    name: (measure, settings | {"a": EXPONENTS}, repeats, "a")
    for name, (measure, settings, repeats) in SWEEPS.items()
}
for n, samples in zip(KEYS, sized((9, 9, 2), (500, 200, 16), (4000, 1000, 100)), strict=True):
    spreads = [round(part * freezing_line(n), 6) for part in np.arange(0.2, 2.01, 0.2)]
    given = {"n": [n], "s": spreads, "samples": [samples]}
    runs[f"{n} keys"] = (collapse, given, 1, "s")
given = {"n": [64, 512, 4096, 32_768], "b": [0.0, 0.5, 1.0], "samples": [sized(8, 100, 500)]}
runs["lookups"] = (lookup, given, 1, "b")
given = {"d_k": sized([16], [16, 64, 256], [16, 64, 256, 1024]), "way": list(WAYS)}
runs["neighbours"] = (neighbour, given, sized(1, 2, 5), "way")
given = {
    "d_k": sized([8], [64], [64, 512]),
    "a": [0.0, 0.5],
    "limit": [sized(3, 300, 300)],
    "second_limit": [sized(3, 600, 600)],
}
runs["trained"] = (trained_heads, given, sized(1, 1, 5), "a")

measured = {}
try:
    with workers(chosen.jobs, chosen.dask) as executor:
        for number, (name, (measure, settings, repeats, pair)) in enumerate(runs.items(), 1):
            with progress(f"{name} ({number} of {len(runs)})") as shown:
                file = f"{name.replace(' ', '_')}_{size}_seed_{chosen.seed}.jsonl"
                found = sweep(
                    measure,
                    settings,
                    seed=chosen.seed,
                    repeats=repeats,
                    paired=[pair],
                    executor=executor,
                    path=chosen.out / file,
                    shown=shown,
                )
            measured[name] = [result for _, result in found]
except SweepError as error:
    stop(f"laboratory: {error}")

# %% What was found

widest = measured["saturation"][-1].d_k
by_scale = {a: [row for row in measured["saturation"] if row.a == a] for a in EXPONENTS}
of_saturation, of_factors = summary(measured["saturation"]), summary(measured["factors"])
narrowest = measured["saturation"][0].d_k


def mean_of(name, d_k, a):
    """Chapter 16's measurement, the mean over the repeats."""
    return of_saturation[d_k, a][name][0]


def with_spread(found, name, form=".2f"):
    """mean ± standard deviation over the repeats."""
    mean, spread = found[name]
    return f"{mean:{form}} ± {spread:{form}}"


print(f"\nThe laboratory, seed {chosen.seed}, in its {size} size")
print(f"\n1 · Scores, weights and gradients, from d_k = {narrowest} to {widest}\n")
errors = [
    np.mean([row.score_variance for row in by_scale[0.0] if row.d_k == d_k]) / d_k - 1
    for d_k in sorted({row.d_k for row in by_scale[0.0]})
]
marks.at_most(
    "variance of the raw scores over d_k, largest distance from 1",
    np.abs(errors).max(),
    0.15,
    ".3f",
)
marks.at_least("dead queries at the largest d_k, no scale", mean_of("dead_share", widest, 0.0), 0.3)
marks.at_most("dead queries at the largest d_k, 1/√d_k", mean_of("dead_share", widest, 0.5), 0.01)
risen, fallen = (
    mean_of(name, widest, 0.0) / mean_of(name, 64, 0.0)
    for name in ("gradient_mean", "gradient_median")
)
marks.at_least(f"no scale, {widest} over 64: mean ‖∂L/∂q‖", risen, 0.5, ".2f")
marks.at_most(f"no scale, {widest} over 64: median ‖∂L/∂q‖", fallen, 0.1, ".4f")

print("\n2 · The factors of ∂L/∂q\n")
first, last = measured["factors"][0].d_k, measured["factors"][-1].d_k
lost = {a: of_factors[last, a]["gain_j"][0] / of_factors[first, a]["gain_j"][0] for a in EXPONENTS}
marks.at_most(f"no scale: J's gain at {last} over that at {first}", lost[0.0], 0.01, ".1e")
marks.at_least(f"1/√d_k: J's gain at {last} over that at {first}", lost[0.5], 0.8, ".2f")

print("\n3 · The number of keys\n")
on_line = {}
for n in KEYS:
    rows = measured[f"{n} keys"]
    on_line[n] = min(rows, key=lambda row: abs(row.s - freezing_line(row.n)))
    where = f"{n:>7} keys: on the line, at d_k = 2 ln n = {freezing_line(n) ** 2:.1f},"
    found = f"entropy / log n is {on_line[n].entropy:.3f} ± {on_line[n].entropy_error:.3f}"
    print(f"   {where} {found} (standard error)")
marks.at_least(
    "on the line: entropy / log n, the smallest",
    min(r.entropy for r in on_line.values()),
    0.25,
    ".2f",
)

print("\n4 · The largest stable step\n")
of_widths = sorted({row.d_k for row in measured["sharpness"]})
slopes = {a: slope(of_widths, by_repeat(measured["sharpness"], a)) for a in EXPONENTS}
for a, (rise, error) in slopes.items():
    off = abs(rise - (1 - 2 * a))
    marks.at_most(
        f"{NAMES[a]}: slope of log sharpness {rise:.2f} ± {error:.2f}, from {1 - 2 * a:+.0f}",
        off,
        0.2,
        ".2f",
    )
worst = max(row.residual / row.sharpness for row in measured["sharpness"])
marks.at_most("residual ‖Hv - λv‖ / λ, the largest", worst, 1e-3, ".0e")

print("\n5 · Which learning rates work: steps to 98 % on associative recall\n")
basin = outcomes(measured["basin"])
rates = sorted({row.lr for row in measured["basin"]})
d_ks = sorted({row.d_k for row in measured["basin"]})


def table_of(found, optimizer, init, rates, d_ks):
    """The rows of a table: a scale and d_k, and what became of each learning rate."""
    return [
        [f"{NAMES[a]}, d_k = {d_k}", *(str(found[optimizer, init, a, d_k, lr]) for lr in rates)]
        for a in EXPONENTS
        for d_k in d_ks
    ]


def printed(rows, header):
    """A table on the terminal."""
    for cells in (header, *rows):
        print(f"   {cells[0]:22}" + "".join(f"{cell:>18}" for cell in cells[1:]))


rate_header = ["learning rate", *(f"{lr:g}" for lr in rates)]
basin_rows = table_of(basin, "sgd", "unit", rates, d_ks)
printed(basin_rows, rate_header)
working = {
    a: [
        lr
        for lr in rates
        if all(
            basin["sgd", "unit", a, d, lr].learned == basin["sgd", "unit", a, d, lr].trainings
            for d in d_ks
        )
    ]
    for a in EXPONENTS
}
print()
for a, found in working.items():
    said = ", ".join(f"{lr:g}" for lr in found) or "none of them"
    print(f"   {NAMES[a]}: rates at which every training learned at every width: {said}")
print()
marks.at_least("1/√d_k: rates that work at every width", len(working[0.5]), 2, "d")
marks.at_most(
    "  and no scale, of those",
    len(set(working[0.0]) & set(working[0.5])),
    len(working[0.5]) - 1,
    "d",
)

print("\n6 · A trained model, whose scale is changed\n")
trained = _trained.all_trained(measured["trained"])
trained_rows = _trained.table_rows(trained)
_trained.printed(trained_rows, trained, marks)

print("\n7 · What hides it\n")
adam, small = outcomes(measured["basin of Adam"]), outcomes(measured["small weights"])
adam_rates = sorted({row.lr for row in measured["basin of Adam"]})
adam_rows = table_of(
    adam, "adam", "unit", adam_rates, sorted({row.d_k for row in measured["basin of Adam"]})
)
printed(adam_rows, ["Adam, learning rate", *(f"{lr:g}" for lr in adam_rates)])
small_rates = sorted({row.lr for row in measured["small weights"]})
small_rows = table_of(
    small, "sgd", "gpt2", small_rates, sorted({row.d_k for row in measured["small weights"]})
)
print()
printed(small_rows, ["GPT-2's weights, rate", *(f"{lr:g}" for lr in small_rates)])

print("\n8 · What else keeps scores in bounds\n")
of_neighbours = summary(measured["neighbours"], by=("d_k", "way", "growth"))
narrow, wide = (f({row.d_k for row in measured["neighbours"]}) for f in (min, max))
neighbour_rows = []
for way in WAYS:
    few, many = of_neighbours[narrow, way, 1.0], of_neighbours[wide, way, 1.0]
    neighbour_rows.append(
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
NEIGHBOURS = ["way", f"std at {narrow}", f"std at {wide}", "entropy", "median", "mean", "dead"]
for cells in (NEIGHBOURS, *neighbour_rows):
    print(f"   {cells[0]:12}" + "".join(f"{cell:>13}" for cell in cells[1:]))

# %% Pictures

lookup_rows = measured["lookups"]
shown_lr = 0.3 if 0.3 in rates else rates[0]
looked_at = [t for t in measured["basin"] if t.d_k == d_ks[-1] and t.lr == shown_lr]
looked_at = [t for t in looked_at if t.broke_at is None]
widest_trained = [row for row in measured["trained"] if row.d_k == measured["trained"][-1].d_k]
drawn = {
    "sweep": plot_sweep([row for row in measured["saturation"] if row.a < 1]),
    "factors": plot_factors(measured["factors"]),
    "freezing": plot_freezing([row for n in KEYS for row in measured[f"{n} keys"]]),
    "lookups": plot_lookup(lookup_rows),
    "sharpness": plot_sharpness(measured["sharpness"]),
    "basin": plot_basin(basin),
    "entropies": plot_entropies(looked_at),
    "heads": plot_heads_learning(widest_trained),
    "changed": plot_changed_scale(widest_trained),
}
for name, figure in drawn.items():
    save_figure(figure, chosen.out / name)

raw_std = {
    d_k: np.mean([t.score_std for t in measured["basin"] if (t.d_k, t.a) == (d_k, 0.0)])
    for d_k in d_ks
}

small_std, unit_std = (of_neighbours[wide, way, 1.0]["score_std"][0] for way in ("0.02", "none"))

# %% The page: a report to be projected, one claim and one picture at a time

page = Page(
    "The √d_k laboratory",
    claim="With 1/√d_k, and with no other power of d_k, a head of any width starts with the same "
    "scores, the same gradients and the same largest stable step.",
)
page.say(
    "Everything on this page was measured by minigrad with random queries and keys of variance 1, "
    f"or with one head that learns to look up a value by its key (seed {chosen.seed}). The scale "
    "is written as d_k^-a: a = 0 is no scale, ½ is the paper's, 1 is 1/d_k. Numbers after ± are "
    "standard deviations over repeats, if nothing else is said.",
)

page.section("1 · Without the scale a typical query gets nothing", name="gradients")
page.ask(
    f"A head has no scale, and d_k grows from 64 to {widest}. What happens to ‖∂L/∂q‖: does its "
    "mean over all queries fall, and does its median?",
    f"The mean does not fall: at d_k = {widest} it is {risen:.2g} times that at 64. The median is "
    f"{1 / fallen:.0f} times smaller. {mean_of('dead_share', widest, 0.0):.0%} of the queries have "
    "less than 0.001, and a tenth of them holds "
    f"{mean_of('top_tenth_share', widest, 0.0):.0%} of the squared gradient.",
)
page.figure(
    chosen.out / "sweep.svg",
    alt=f"Six measurements over d_k. Without the scale {mean_of('dead_share', widest, 0.0):.0%} of "
    f"the queries are dead at d_k = {widest}; with 1/√d_k hardly anything depends on d_k.",
    caption="64 keys, 512 queries a repeat (chapter 16)",
)
page.table(
    ["scale", "d_k", "variance of scores", "entropy / log n", "median ‖∂L/∂q‖", "mean", "dead"],
    [
        [
            NAMES[a],
            d_k,
            with_spread(of_saturation[d_k, a], "score_variance", ".3g"),
            with_spread(of_saturation[d_k, a], "entropy"),
            with_spread(of_saturation[d_k, a], "gradient_median", ".2g"),
            with_spread(of_saturation[d_k, a], "gradient_mean", ".2g"),
            f"{mean_of('dead_share', d_k, a):.0%}",
        ]
        for a in EXPONENTS
        for d_k in (narrowest, 64, widest)
    ],
    caption="The same in numbers, with 1/d_k; a query is dead if ‖∂L/∂q‖ is below 0.001",
)

page.section("2 · Softmax's Jacobian is the factor that dies", name="factors")
page.say(
    "On its way from the output back to a query the gradient is multiplied by four factors: "
    "∂L/∂q = Kᵀ · scale · J V g, where J = diag(p) - p pᵀ belongs to softmax. A factor's gain is "
    "how much longer it makes the gradient.",
)
page.figure(
    chosen.out / "factors.svg",
    alt=f"Gains over d_k. Without a scale J's gain falls {1 / lost[0.0]:,.0f} times from d_k = "
    f"{first} to {last}; with 1/√d_k no factor depends on d_k.",
    caption="Medians over 512 queries (chapter 16.2). V gains √n at every d_k, and is not drawn",
)
page.say(
    "If a is below ½, J dies as d_k grows. If a is above ½, the scale becomes smaller than Kᵀ can "
    "make up for. Only at ½ does neither depend on d_k.",
)

page.section("3 · How early that is: the freezing line", name="freezing")
page.say(
    "Without the scale the scores of n keys have the standard deviation s = √d_k. In the limit of "
    "many keys softmax freezes at s = √(2 ln n): a few keys have all the weight. For "
    + ", ".join(f"{n:,} keys that is d_k = {freezing_line(n) ** 2:.1f}" for n in KEYS)
    + ". A real number of keys has no such point, but a wide crossover.",
)
page.figure(
    chosen.out / "freezing.svg",
    alt="Entropy over the spread of the scores for three numbers of keys: on the freezing line it "
    "is " + ", ".join(f"{row.entropy:.2f}" for row in on_line.values()) + " of log n, and no line "
    "has a kink.",
    caption="Entropy of softmax over n Gaussian scores (chapter 16.3)",
)
page.figure(
    chosen.out / "lookups.svg",
    alt="With more keys a key that stands out loses its weight if the scale is fixed, and keeps it "
    "if scores are multiplied by log n. The entropy over log n stays if they are multiplied by "
    "√log n.",
    caption="Longer sequences: 1/√d_k, and the same times √log n and log n (chapter 16.3)",
)

page.section("4 · The largest stable step", name="sharpness")
page.ask(
    "A step of gradient descent is stable if the rate is below 2/λ, where λ is the largest "
    "eigenvalue of the Hessian. How does λ with respect to W_q and W_k grow with d_k: for a = 0, "
    "½ and 1?",
    "Like d_k^(1-2a): the slopes of log λ against log d_k are "
    + ", ".join(f"{rise:.2f} ± {error:.2f} for {NAMES[a]}" for a, (rise, error) in slopes.items())
    + " (± one standard error). So ½ is the exponent with which one learning rate suits every "
    "width.",
)
page.figure(
    chosen.out / "sharpness.svg",
    alt="The largest eigenvalue over d_k: it rises without a scale, stays with 1/√d_k and falls "
    "with 1/d_k.",
    caption="By exact Hessian-vector products and Lanczos's method (chapter 16.4)",
)

page.section("5 · Which learning rates work", name="basin")
page.say(
    "One head learns associative recall by plain gradient descent (SGD), with new batches of 64 "
    f"questions, for at most {LIMIT} steps. A cell says after how many steps 98 % of the "
    "answers are right.",
)
page.figure(
    chosen.out / "basin.svg",
    alt="Steps over learning rate and d_k. "
    + " ".join(
        f"{NAMES[a]}: every training learned at every width at the rates "
        f"{', '.join(f'{lr:g}' for lr in found) or 'none'}."
        for a, found in working.items()
    ),
    caption="Mean steps to 98 %; hatched: no training got there (chapter 16.5)",
)
page.table(rate_header, basin_rows, caption="The same with the spread over the seeds")
page.say(
    "With 1/√d_k the same rates work at every width, and need as many steps. Without a scale large "
    "rates stop working, and at small rates a wide head learns more slowly than a narrow one. With "
    "1/d_k the rates that work move up with the width.",
)
page.figure(
    chosen.out / "entropies.svg",
    alt=f"The entropy of the weights through the training at d_k = {d_ks[-1]} and rate "
    f"{shown_lr:g}: with 1/√d_k it starts near log n and falls as the head learns; without a scale "
    "it is near 0 from the first step.",
    caption=f"What the head's weights do meanwhile: d_k = {d_ks[-1]}, learning rate {shown_lr:g}",
)

_trained.section(page, chosen.out, trained_rows, trained)

page.section("7 · What hides it", name="hidden")
page.say(
    "If you train a model without the scale, you may see nothing of all this. These are the "
    "reasons that were measured here.",
)
page.list(
    [
        "*Means.* One norm of the gradient over all queries rises where the typical query dies.",
        f"*Small widths.* At d_k = {d_ks[0]} the raw scores of this task have the standard "
        f"deviation {raw_std[d_ks[0]]:.1f}, and at d_k = {d_ks[-1]} {raw_std[d_ks[-1]]:.1f}.",
        "*Adam* changes the question. Its first step takes only the signs of a gradient, so it "
        "moves a score like d_k^(1-a), where SGD moves it like d_k^(1-2a). With Adam the exponent "
        "that needs the same steps at every width is 1, and not ½ (chapter 16.5).",
        "*Small initial weights.* GPT-2 draws its matrices so small that raw scores at "
        f"d_k = {wide} have the standard deviation {small_std:.1f}, and not {unit_std:.1f}.",
        "*The scale in the weights.* T5 has no scale and draws W_q √d_k times smaller. That "
        "repairs softmax, and not the step: chapter 16.4.",
    ]
)
page.table(
    ["learning rate", *(f"{lr:g}" for lr in adam_rates)],
    adam_rows,
    caption="Adam: steps to 98 %",
)
page.table(
    ["learning rate", *(f"{lr:g}" for lr in small_rates)],
    small_rows,
    caption="SGD, with initial weights as small as GPT-2's: steps to 98 %",
)

page.section("8 · What else keeps scores in bounds", name="neighbours")
page.table(
    NEIGHBOURS,
    neighbour_rows,
    caption=f"Ten other ways at the start of a training: the scores' standard deviation at two "
    f"d_k; then, at d_k = {wide}, entropy / log n, median and mean of ‖∂L/∂q‖ and the share of "
    "dead queries (chapter 16.7)",
)
page.conclude(
    "The scale is not about numerical stability, which softmax's subtraction of the maximum "
    "provides. It decides how many queries get a gradient, and how large a step may be. Both are "
    "independent of the width at the exponent ½ alone, if the step is that of gradient descent. It "
    "does not follow that a model without the scale ends with a worse loss: small initial weights, "
    "a small width or a smaller rate can make up for it.",
    try_it(chosen.file),
)
with page.folded("All marks of this run"):
    marks.table(page, "Scores beside their pass marks")
print(f"\nThe page: {page.write(chosen.out, quick=chosen.quick, note=marks.note)}")
marks.end()

# %% Try it
# - Add 0.25 to `EXPONENTS` (and to `NAMES`): where is its slope
#   in section 4, and which rates work in section 5?
# - Let `saturation` have `"keys": [1024]` too: at which d_k is half of the queries dead?
