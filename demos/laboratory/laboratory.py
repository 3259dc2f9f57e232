"""Unequal before, vanishing after: a report of what 1/√d_k does to the gradients of attention.

Claim. Without the scale the gradients of a head are unequal before it has found its key, and gone
after. With random q and k the mean grows at every width and number of keys; the median grows at
d_k from 16 to 128 with 64 keys or more, and falls where a head is too wide for its keys. If one key
fits the query, the mean vanishes too. Which power of d_k suits a step depends on the optimizer, as
long as one rate is kept for all weights. And a model that has learned a look-up keeps its answers
without its scale, but learns the next task more slowly.

    python -m demos laboratory [--out DIR] [--seed N] [--full] [--jobs N] [--dask ADDRESS]

Each measurement is a sweep, whose results are kept in the folder `results` of the output folder. A
run that was stopped continues there. Numbers that only `--full` can show are read from small files
that a run with `--full` wrote, and are marked so.
"""

# %% Set-up

import base64
import io
import math
from typing import Any

from attention.laboratory.sweeps import sweep, workers
from attention.scaling import saturation
from demos import options, stop
from demos._json_lines import keep, made
from demos.laboratory import _over_training
from demos.laboratory._gradients import GPT2, Distributions, Hill, Map
from demos.laboratory._steps import FULL, StepsToLearn
from demos.laboratory._steps import sweeps as sweeps_of_steps
from demos.laboratory._trained import KEPT, AllTrained
from demos.laboratory._trained import sweeps as sweeps_of_trained
from demos.pages.publish import publish
from demos.pages.source import cells
from demos.pages.templates import fill
from demos.pages.text import inline, slug

SECONDS = 100  # of a run


def add(parser):
    """Add the options that only this demo has."""
    parser.add_argument(
        "--full",
        action="store_true",
        help="more repeats, rates and seeds: some 20 minutes with --jobs 2",
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

D_KS = sized([16, 512], [4, 16, 64, 128, 256, 512, 1024, 2048], [2**n for n in range(2, 12)])
NS = sized([5, 64], [5, 16, 64, 256, 1024, 4096], [5, 16, 64, 256, 1024, 4096])
both = {"d_k": D_KS, "keys": NS, "a": [0.0, 0.5]}
spreads = sized([1.0, 3.0], [2.0**n for n in (-2, -1, 0, 1, 1.5, 2, 2.5, 3, 3.5, 4, 5)], None)
spreads = spreads or [2.0 ** (n / 4) for n in range(-8, 21)]
scales = [round(0.5 - math.log(s) / math.log(256), 9) for s in spreads]
of_gpt2 = {"queries": [sized(32, 128, 512)], "deviation": [GPT2]}
a_hill = {"d_k": [256], "keys": NS[::2], "queries": [sized(64, 1024, 4096)], "a": scales}
runs = {
    "map": (saturation, both, sized(1, 2, 8), ["a"]),
    "map of GPT-2": (saturation, both | of_gpt2, 1, ["a"]),
    "hill": (saturation, a_hill, 1, ["a"]),
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

# %% What was found

trained = [row for name in sweeps_of_trained(size) for row in measured[name]]
over_training = [row for name in _over_training.sweeps(size) for row in measured[name]]
SECTIONS: list[Any] = [
    the_map := Map(measured["map"], measured["map of GPT-2"]),
    distributions := Distributions(chosen.seed, queries=sized(64, 1024, 4096)),
    hill := Hill(measured["hill"], measured["map"]),
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
  .row.rule figure svg { max-height: none; }"""
page.finding(
    f"With random q and k the mean gradient is {low:.1f} to {high:.0f} times larger without the "
    f"scale, in every cell of the map; a typical query's is {usual:.1f} to {most:.0f} times larger "
    "at d_k from 16 to 128 with 64 keys or more. The tenth of the queries with the longest "
    f"gradients has {min(the_map.more):.1f} to {max(the_map.more):.1f} times as large a share of "
    "the squared gradient.",
    page.html(fill("laboratory/small.html", figures=small)),
)

# %% 1 · What happens without the scale depends on d_k and on the number of keys

the_map.show(page)
the_map.judge(page.marks)

# %% 2 · Unequal: some queries get far more, and some get none

distributions.show(page)
distributions.judge(page.marks)

# %% 3 · One hill for all widths, and 1/√d_k is not its top
# Softmax's Jacobian J, the matrix of its derivatives, depends on the scores alone. With independent
# entries of variance 1, scale · Kᵀ makes J ∂L/∂p about s = scale · √d_k times as long. So the
# median is one function of s for each number of keys. That s does not depend on d_k at the exponent
# ½ alone is algebra; the measurement tests the code and the assumption.

hill.show(page)
hill.judge(page.marks)

# %% 4 · Which exponent is right for a step depends on what else is kept
# A head learns associative recall (chapter 16.5). By how much does its first step move the scores,
# and after how many steps are 98 % of its answers right?
#
# Relative steps (Adafactor, Shazeer & Stern 2018, with which T5 was trained) cannot tell T5's
# initial values from the scale 1/√d_k: at d_k = 64 and 256, where √d_k is a power of 2, the
# trainings are the same bit for bit, and elsewhere up to rounding. With SGD and Adam T5's values
# repair the softmax and not the step.

steps.show(page)
steps.judge(page.marks)

# %% 5 · Without its scale a look-up model still answers, and learns slowly
# A small gradient of the loss has two causes. A head may have *finished*, so that little is wrong.
# Or it is *saturated*, so that softmax passes nothing on. A random g at the head's output tells
# them apart, because its size does not depend on what is wrong. The share of queries that is dead
# for the loss does not say how fast a model learns the next task; the share that is dead for g
# does.
#
# Taking the scale away says nothing about a model that never had one: W_Q can absorb any factor.
# Trained models that calculate give wrong answers without their scale.

of_trained.show(page)
of_trained.judge(page.marks)

# %% 6 · Over a training heads cross from unequal to gone, and why the constant is 1
# A small GPT learns to repeat random tokens (chapter 16.8). At some steps the scale of one block is
# taken away, and a random g is sent back from each head's output. And how many steps does the GPT
# need from another spread of the scores at the start?

gpt.show(page)
gpt.judge(page.marks)

# %% Claims, and what would falsify them
# A mark of this command checks each claim, and a test makes each mark fail. Marks with --full in
# their names judge the kept run with --full.

with page.folded("The claims"):
    page.table(
        ["claim", "effect", "repeats", "falsified by"],
        [claim for section in SECTIONS for claim in section.claims],
    )

# %% Limits
# Queries, keys and the gradient at the weights are independent and random, except in figures 4 to
# 6. There is one layer, and two in figure 6. Variance 1 is an assumption: GPT-2's initial weights
# give q and k another deviation, so its map is another one. The tasks are toys, and small models
# stand for the trained ones. Each demo draws its own numbers: `scaling` and `why_half` show others.

# %% References

with page.folded("What was read"):
    page.say(
        """- Vaswani et al. 2017, Attention Is All You Need, section 3.2.1 and its footnote 4: the
  suspicion that large dot products push softmax into regions of extremely small gradients.
- Giorlandino & Goldt 2025, Two failure modes of deep transformers (arXiv 2505.24333): the nearest
  prior work. They derive, by the Random Energy Model, how signals pass whole blocks at
  initialisation, and where gradients vanish. Here single queries are counted.
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

# %% What to conclude

page.say(
    "With 1/√d_k heads of all widths start at one place, and the gradients of their queries are "
    "much more alike. The scale is not about numerical stability, which softmax's subtraction of "
    "the maximum provides."
)
page.end()

# %% Try it
# - Set `deviation` in `of_gpt2` to 2.0: which cells of the second map change their colour?
# - Give `D_KS` the value 8192 and `NS` 16 alone: how small does the median become, and what has the
#   mean done?
