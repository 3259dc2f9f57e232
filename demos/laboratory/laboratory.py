"""Unequal before, vanishing after: a report of what 1/√d_k does to the gradients of attention.

Claim. Attention divides q·k by √d_k, it is said, so that gradients do not vanish. We measure
‖∂L/∂q‖ of single queries. If q, n different keys k, and the gradient at the weights have
independent standard Gaussian entries, then for each n only the spread s of the scores matters,
except in very narrow heads. Without the scale the mean is larger at every d_k and n measured; the
median is larger or smaller. ρ, the density of ties between the two best keys, explains the mean and
the mean square: the mean goes to √(2/π) ρ, and for √d_k far above ρ (mean)²/mean square goes to
6ρ/(π√d_k). The median is largest at s near 2.3 ρ, as measured. If one key is correlated with q by
α, ties become rare: at d_k = 256 the mean is smaller than with the scale once α√d_k is above 2.6
with 5 keys, and above 5.3 with 1,024. A small GPT is trained with the scale. If a block then loses
it, the mean gets smaller in each head that has found its key; before the training, from variance 1,
in none. In two real models (d_k = 32) the mean grows in most heads, and the median falls. So from
variance 1, without the scale, a head's query gradients are unequal before it has found its key, and
after that most queries get next to none.

    python -m demos laboratory [--out DIR] [--seed N] [--full] [--jobs N] [--dask ADDRESS]

Each measurement is a sweep, whose results are kept in the folder `results` of the output folder. A
run that was stopped continues there. Numbers that only `--full` can show are read from small files
that a run with `--full` wrote, and are marked so.
"""

# %% Set-up

import base64
import html
import io
import math
from typing import Any

from attention.scaling import saturation
from demos import options, stop
from demos._json_lines import keep, made
from demos.laboratory import _over_training
from demos.laboratory._gradients import GPT2, Distributions, Fits, Hill, Map
from demos.laboratory._laws import TOP, plot_summary
from demos.laboratory._steps import FULL, StepsToLearn
from demos.laboratory._steps import sweeps as sweeps_of_steps
from demos.laboratory._trained import KEPT, AllTrained
from demos.laboratory._trained import sweeps as sweeps_of_trained
from demos.pages.publish import publish
from demos.pages.source import cells
from demos.pages.templates import fill
from demos.pages.text import inline, slug
from minigrad import __version__
from minigrad.runs.sweeps import sweep, workers

SECONDS = 110  # of a run


def add(parser):
    """Add the options that only this demo has."""
    parser.add_argument(
        "--full",
        action="store_true",
        help="more repeats, rates and seeds: some 12 minutes with --jobs 2",
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes that measure (%(default)s)")
    parser.add_argument("--dask", metavar="ADDRESS", help="a Dask cluster that measures instead")


chosen = options("laboratory", __doc__.splitlines()[0], quick=True, add=add)
if chosen.jobs < 1:
    stop(f"laboratory: --jobs must be 1 or larger: got {chosen.jobs}")
page = publish(chosen)
size = "full" if chosen.full else "default"
if chosen.quick:
    size = "quick"


def sized(quick, default, full):
    """Return the one of three sizes that belongs to the size of the run."""
    return {"quick": quick, "default": default, "full": full}[size]


# %% Everything is measured
# A cell is one combination of settings. What is compared sees the same draws. The map takes the
# scale and its lack at each d_k and number of keys; the hill takes one d_k and many scales.

D_KS = sized([16, 512], [4, 16, 32, 64, 128, 256, 512, 1024], [2**n for n in range(2, 12)])
NS = sized([5, 64], [5, 16, 64, 256, 1024, 4096], [5, 16, 64, 256, 1024, 4096])
FEW_NS = sized(NS, NS[::2], NS[::2])
both = {"d_k": D_KS, "keys": NS, "a": [0.0, 0.5]}
spreads = sized([1.0, 3.0, 9.0], [2.0**n for n in (-2, -1, 0, 1, 1.5, 2, 2.5, 3, 3.5, 4, 5)], None)
spreads = spreads or [2.0 ** (n / 4) for n in range(-8, 21)]
scales = [round(0.5 - math.log(s) / math.log(256), 9) for s in spreads]
of_gpt2 = {"queries": [sized(32, 128, 512)], "deviation": [GPT2]}
a_hill = {"d_k": [256], "keys": FEW_NS, "queries": [sized(64, 512, 4096)], "a": scales}
HILLS = sized(2, 4, 4)  # repeats
stands_out = [m / 16 for m in sized([0, 6], range(7), range(7))]  # α = m/√d_k
a_fit = {"d_k": [256], "keys": FEW_NS, "a": [0.0, 0.5], "fit": stands_out}
a_fit["queries"] = [sized(64, 512, 4096)]
runs = {
    "map": (saturation, both, sized(1, 2, 8), ["a"]),
    "map of GPT-2": (saturation, both | of_gpt2, 1, ["a"]),
    "hill": (saturation, a_hill, HILLS, ["a"]),
    "a key that fits": (saturation, a_fit, sized(2, 4, 8), ["a"]),
}
runs |= sweeps_of_steps(size) | sweeps_of_trained(size) | _over_training.sweeps(size)

measured = {}
with workers(chosen.jobs, chosen.dask):
    for number, (name, (measure, settings, repeats, paired)) in enumerate(runs.items(), start=1):
        results = sweep(
            measure,
            settings,
            seed=chosen.seed,
            repeats=repeats,
            paired=paired,
            folder=chosen.out / "results",
            label=f"{name} ({number} of {len(runs)})",
        )
        measured[name] = [result for _, result in results]
        if name == "a key that fits":
            of_fits = results  # (a row does not say which key fits)

# %% What was found

trained = [row for name in sweeps_of_trained(size) for row in measured[name]]
over_training = [row for name in _over_training.sweeps(size) for row in measured[name]]
SECTIONS: list[Any] = [
    the_map := Map(measured["map"], measured["map of GPT-2"]),
    distributions := Distributions(chosen.seed, queries=sized(64, 1024, 4096)),
    hill := Hill(measured["hill"], measured["map"], HILLS),
    fits := Fits(of_fits),
    steps := StepsToLearn(measured, seed=chosen.seed, size=size),
    of_trained := AllTrained(trained),
    gpt := _over_training.OverATraining(over_training),
]
if chosen.full:
    steps.run.write(chosen.out / FULL.name)
    about = made("python -m demos laboratory --full", chosen.seed)
    keep(chosen.out / KEPT.name, trained, about)
    keep(chosen.out / _over_training.KEPT.name, over_training, about)

headings = [cell.heading for cell in cells(page.source.text) if cell.heading[:1].isdigit()]
small = []
for number, (section, heading) in enumerate(zip(SECTIONS, headings, strict=True), start=1):
    png = io.BytesIO()
    section.figure.savefig(png, format="png", dpi=60)
    data = base64.b64encode(png.getvalue()).decode()
    place = {"address": slug(heading), "number": number, "heading": inline(heading)}
    small.append(place | {"data": data})
low, high = the_map.range_of("mean", the_map.cells)
usual, most = the_map.range_of("median", the_map.usual)
page.style += """.small { display: grid; gap: 1rem 1.6rem; font: 14px/1.35 var(--sans);
  grid-template-columns: repeat(auto-fill, minmax(14rem, 1fr)); }
  .small img { width: 100%; height: 8.4rem; object-fit: contain; background: #fff; }
  .row.rule figure svg { max-height: none; }
  pre { white-space: pre-wrap; }
  @media print { details::details-content { content-visibility: visible; block-size: auto; }
    details:has(> .code) { display: none; } }"""
picture = page.figure(
    plot_summary(hill.lines, fits.rows, gpt.kept, gpt.said_falls()),
    "summary",
    alt="Left above: the median is a hill over the spread of the scores, with its top at s = "
    f"{hill.said_tops()}. Right above: the mean without the scale over that with it falls below 1 "
    f"at m = {fits.said_equal()}. Below: over the training of a small GPT "
    f"it falls in {gpt.said_falls()}.",
    caption="The report in three pictures. Dots are measured. Dashed lines are derived for large "
    "s, and right above divided by the measured mean with the scale. Left above is d_k = 256, and "
    f"bars are at s = {TOP} ρ, which is measured. Below, a point is a head of figure 7: filled if "
    "it has found a key, and drawn at 10⁻⁶ if it is below that",
)
page.finding(
    f"With random q and k the mean gradient is {low:.1f} to {high:.0f} times larger without the "
    f"scale, in every cell of the map; a typical query's is {usual:.1f} to {most:.0f} times larger "
    "at d_k from 16 to 128 with 64 keys or more. If a key fits the query by six deviations, with "
    f"{fits.keys[0]} to {fits.keys[-1]:,} keys at d_k = {fits.d_k}, the mean is at most "
    f"{fits.said_last()} times as large.",
    picture,
)
page.html(fill("laboratory/small.html", figures=small), place="right")

# %% 1 · What happens without the scale depends on d_k and on the number of keys

the_map.show(page)
the_map.judge(page.marks)

# %% 2 · Unequal: some queries get far more, and some get none

distributions.show(page)
distributions.judge(page.marks)

# %% 3 · One hill for all widths, and 1/√d_k is not its top
# Chapter 16 derives that d_k and the scale matter only through s = scale · √d_k, except in very
# narrow heads. So each statistic is one function of s for each number of keys, and only the
# exponent ½ makes s the same at every d_k. `ties` derives what they come near for large s, where
# the two best keys alone count.

hill.show(page)
hill.judge(page.marks)

# %% 4 · If a key fits the query by enough, the mean vanishes too
# Queries whose two best keys nearly tie decide the mean. If a query is correlated with one key,
# this key stands out, and ties become rare: their density is ρ(m).

fits.show(page)
fits.judge(page.marks)

# %% 5 · Which exponent keeps a first step equal depends on the optimizer and the initial weights
# A head learns associative recall (chapter 16.5). By how much does its first step move the scores,
# and after how many steps are 98 % of its answers right?
#
# With relative steps (Adafactor, with which T5 was trained) a head with T5's initial values and no
# scale trains as one with 1/√d_k does, while the root mean square of W_q is above the .001 that
# Adafactor takes at least. With SGD and Adam T5's first steps are longer.

steps.show(page)
steps.judge(page.marks)

# %% 6 · Without its scale a look-up model still answers, and learns a second task later
# A small gradient of the loss has two causes. A head may have *finished*, so that little is wrong.
# Or it is *saturated*, so that softmax passes nothing on. A random g at the head's output tells
# them apart, because its size does not depend on what is wrong. At one rate a model of which many
# queries are dead for g learns the next task later, in the median. Single trainings overlap.
#
# To take the scale away says nothing about a model that never had it: W_Q can absorb any factor.
# The open points are models that were trained without it.

of_trained.show(page)
of_trained.judge(page.marks)

# %% 7 · Over a training: when does a head's mean fall, and is 1 a good constant?
# A small GPT learns to repeat random tokens with 1/√d_k (chapter 16.8). At some steps the scale of
# one block is taken away, and a random g is sent back from each head's output.

gpt.show(page)
gpt.judge(page.marks)

# %% Claims, and what would falsify them
# A mark of this command checks each claim. This run's draws follow from `--seed` (0 if not given)
# and the settings of a cell; with and without the scale a cell sees the same ones.

names = [name for name, *_ in page.marks.rows]
now = [name for name in names if "--full" not in name and not name.startswith("real heads")]
page.say(
    f"{len(now)} of {len(names)} marks judge this run. Those with --full in their names judge kept "
    "runs with --full, and those of real heads the kept heads of two models."
)
with page.folded("The claims"):
    page.table(
        ["claim", "effect", "repeats", "falsified by"],
        [claim for section in SECTIONS for claim in section.claims],
    )

# %% How each figure is made again

ours, full = f"python -m demos laboratory --seed {chosen.seed}", "python -m demos laboratory --full"
with page.folded("Commands, draws and spreads"):
    page.table(
        ["figure", "command", "draws", "spread"],
        [
            ["1", ours, the_map.draws(), the_map.spread()],
            ["2", ours, f"{len(distributions.points[0][1]):,} queries", "the figure is the spread"],
            [
                "3",
                ours,
                f"{hill.repeats} repeats, {hill.lines[0][1].queries:,} queries a point",
                "the dots' distance; tops, by parabolas through three points: ± one standard error",
            ],
            [
                "4",
                ours,
                f"{fits.repeats} repeats of {fits.queries} queries",
                "error bars; where it is 1, by lines between two m: ± one standard error",
            ],
            ["5", f"above: {ours}; below: {full}", "the table below it", "± in the table below it"],
            [
                "6",
                f"{full}; right: python -m demos.pretrained._real_heads",
                "its caption",
                "± there",
            ],
            ["7", full, "its caption", "right: error bars; left: the points"],
        ],
        caption="Small files keep what only --full can show, with its date, seed and NumPy",
    )

# %% Limits
# - No trained model with heads of d_k = 64 or more was at hand, except the toys that are trained
#   here: the real heads have d_k = 32.
# - Queries and keys are random in figures 1 to 4, of variance 1 and Gaussian, and all n keys are
#   different. GPT-2's initial weights give q and k another deviation, so its map is another one.
#   With many equal keys, or with heavy tails, the numbers are others.
# - The correlated key of figure 4 is a model of a key that fits, and not a trained one.
# - Figures 1 to 4 have one layer. The tasks that are trained here are toys: the GPT of figure 7
#   learns to repeat tokens, with Adam at one rate.
# - The gradients are those of single queries. Those of the keys, the values and the weights W_Q and
#   W_K, which are sums over queries, are not measured.
# - The laws are for large s: at d_k = 64 the mean is still 10 to 35 % below its limit with 5 to
#   1,024 keys (chapter 16). The -ρ of the mean square is derived for many keys only.
# - Each demo draws its own numbers, so `scaling` and `why_half` show others.

# %% References
# What was read of most is said beside it, often an abstract. There we did not find ρ at a finite
# number of keys, or the gradient if one key stands out.

with page.folded("What was read"):
    page.say(
        """- Vaswani et al. 2017, Attention Is All You Need, section 3.2.1 and its footnote 4: the
  suspicion that large dot products push softmax into regions of extremely small gradients.
- Giorlandino & Goldt 2025, Two failure modes of deep transformers (arXiv 2505.24333; abstract, and
  the programs of its figures): the nearest prior work. They map attention to the Random Energy
  Model and derive, for many keys, how signals pass whole blocks at initialisation, and where
  gradients vanish. A curve 1 - √2/β, set by hand and commented out in their program beside the
  squared gradient of W_Q, has the shape of our mean square over ρ s, for n → ∞ and ρ = √(2 ln n).
  Here single queries are counted.
- Lucibello & Mézard 2023, The exponential capacity of dense associative memories (arXiv
  2304.14964; abstract): a random energy model decides which stored pattern is retrieved; they
  name attention.
- Yang et al. 2022, Tensor Programs V (arXiv 2203.03466; chapter 16.5): μP, with the scale 1/d_k.
- Derrida & Toulouse 1985 (not read; as others cite it): the moments of that model's weights,
  from which the limit of many keys follows.
- Infinite-width limit of a single attention layer, 2025 (arXiv 2506.00846; abstract): given the
  scores, an attention layer is Gaussian. Chapter 16 uses the same for its gradient.
- Wang et al. 2021, Escaping the gradient vanishing (arXiv 2108.07153; abstract): real scores are
  not Gaussian, so that softmax saturates and gradients vanish.
- Mudarisov et al. 2025, Limitations of normalization in attention (arXiv 2508.17821; abstract):
  the sensitivity of gradients at low temperature, and GPT-2.
- Veličković et al. 2024, Softmax is not enough (arXiv 2410.01104; abstract): with more keys weights
  must disperse, the other side of chapter 16.3.
- Hron et al. 2020, Infinite attention (arXiv 2006.10540; abstract) and Bordelon et al. 2024,
  Infinite limits of multi-head transformer dynamics (arXiv 2405.15712; abstract): limits of many
  heads and of wide queries and keys, which depend on how the scores are scaled.
- Dong et al. 2021 (abstract) and Noci et al. 2022 (introduction): the other end, rank collapse.
  Weights that are too flat let the gradients of queries and keys vanish in deep stacks.
- Yang & Hu 2021 and Everett et al. 2024 (abstracts, and summaries of this point): scale, rate and
  initial values are one symmetry of a parametrisation.
- Anson & Aitchison 2025, Controlling changes to attention logits (arXiv 2511.21377): rates of
  their own for W_Q and W_K, which control the change of the scores.
- Zhai et al. 2023, Stabilizing Transformer Training by Preventing Attention Entropy Collapse
  (abstract): low entropy goes with instability; Dehghani et al. 2023 (a summary was read) and
  Wortsman et al. 2023 (its abstract): the growth of logits at high rates, and QK norm.
- Lewkowycz et al. 2020 and Cohen et al. 2021 (chapter 16.4): steps beyond 2/λ work, too.
- Shazeer & Stern 2018 (chapter 16.5): the relative steps with which T5 was trained."""
    )

# %% To cite this report
# Printing the page gives a PDF, in which only the code stays folded. A file CITATION.cff would be:

citation = f"""cff-version: 1.2.0
message: Please cite this report with the commit that you ran.
type: software
title: "{__doc__.partition(":")[0]}: what 1/√d_k does to the gradients of attention"
authors:
  - name: The minigrad authors
version: {__version__}"""
page.html(f"<pre>{html.escape(citation)}</pre>", citation, "below")

# %% What to conclude

page.say(
    "With 1/√d_k heads of all widths start at one place, if q and k start with variance 1, and the "
    "gradients of their queries are much more alike. A head that has found its key still gets "
    "gradients with it (figure 6). The scale does not provide numerical stability: softmax's "
    "subtraction of the maximum does."
)
page.end()

# %% Try it
# - Set `deviation` in `of_gpt2` to 2.0: which cells of the second map change their colour?
# - Give `D_KS` the value 8192 and `NS` 16 alone: how small does the median become, and what has the
#   mean done?
