"""Unequal, not vanishing: a report of what 1/√d_k does to the gradients of attention.

Claim. Without the scale gradients do not all vanish. The mean grows at every width and number of
keys; the median grows at the widths in use, and falls where a head is too wide for its keys. What
the scale changes at every width from 16 on is how unequal the gradients are. Which power of d_k
suits a step depends on the optimizer, as long as one rate is kept for all weights. And a model that
has learned a look-up keeps its answers without its scale, but learns the next task more slowly.

Each measurement is a sweep, whose results are kept in the folder `results` of the output folder.
A run that was stopped continues there. Numbers that only `--full` can show are read from small
files that a run with `--full` wrote, and are marked so.

    python -m demos laboratory [--out DIR] [--seed N] [--full] [--jobs N] [--dask ADDRESS]  # 100 s
"""

# %% Set-up

import math

from attention.laboratory.sweeps import sweep, workers
from attention.scaling import saturation
from demos import options, stop
from demos._kept import keep, made
from demos._page import Page, try_it
from demos._training import Marks
from demos.laboratory._gradients import GPT2, Distributions, Hill, Map
from demos.laboratory._steps import FULL, Steps
from demos.laboratory._steps import sweeps as sweeps_of_steps
from demos.laboratory._trained import KEPT, AllTrained
from demos.laboratory._trained import sweeps as sweeps_of_trained


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
marks = Marks(chosen)
size = "quick" if chosen.quick else "full" if chosen.full else "default"


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
small = {"queries": [sized(32, 128, 512)], "deviation": [GPT2]}
hill = {"d_k": [256], "keys": NS[::2], "queries": [sized(64, 1024, 4096)], "a": scales}
runs = {
    "map": (saturation, both, sized(1, 2, 8), ["a"]),
    "map of GPT-2": (saturation, both | small, 1, ["a"]),
    "hill": (saturation, hill, 1, ["a"]),
}
runs |= sweeps_of_steps(size) | sweeps_of_trained(size)

measured = {}
with workers(chosen.jobs, chosen.dask):
    for number, (name, (measure, settings, repeats, paired)) in enumerate(runs.items(), start=1):
        found = sweep(
            measure,
            settings,
            seed=chosen.seed,
            repeats=repeats,
            paired=paired,
            folder=chosen.out / "results",
            label=f"{name} ({number} of {len(runs)})",
        )
        measured[name] = [result for _, result in found]

# %% What was found: five figures

trained = [row for name in sweeps_of_trained(size) for row in measured[name]]
SECTIONS = [
    the_map := Map(measured["map"], measured["map of GPT-2"]),
    Distributions(chosen.seed, queries=sized(64, 1024, 4096)),
    Hill(measured["hill"], measured["map"]),
    steps := Steps(measured, seed=chosen.seed, size=size),
    AllTrained(trained),
]
if chosen.full:
    steps.run.write(chosen.out / FULL.name)
    keep(chosen.out / KEPT.name, trained, made("python -m demos laboratory --full", chosen.seed))
print(f"\nThe laboratory, seed {chosen.seed}, in its {size} size")
for number, section in enumerate(SECTIONS, start=1):
    print(f"\n{number} · {section.heading}\n")
    section.print(marks)
    section.draw(chosen.out)
CLAIMS = [claim for section in SECTIONS for claim in section.claims]

# %% The report

REFERENCES = [
    "Vaswani et al. 2017, Attention Is All You Need, section 3.2.1 and its footnote 4: the "
    "suspicion that large dot products push softmax into regions of extremely small gradients.",
    "Giorlandino & Goldt 2025, Two failure modes of deep transformers (arXiv 2505.24333): the "
    "nearest prior work. They derive, by the Random Energy Model, how signals pass whole blocks at "
    "initialisation, and where gradients vanish. Here single queries are counted.",
    "Dong et al. 2021 (abstract) and Noci et al. 2022 (introduction): the other end, "
    "rank collapse. Weights that are too flat let the gradients of queries and keys vanish in deep "
    "stacks.",
    "Yang & Hu 2021 and Everett et al. 2024 (abstracts, and summaries of this point): scale, rate "
    "and initial values are one symmetry of a parametrisation.",
    "Anson & Aitchison 2025, Controlling changes to attention logits (arXiv 2511.21377): rates of "
    "their own for W_Q and W_K, which control the change of the scores.",
    "Zhai et al. 2023, Stabilizing Transformer Training by Preventing Attention Entropy Collapse "
    "(abstract): low entropy goes with instability; Dehghani et al. 2023 (a summary was read) and "
    "Wortsman et al. 2023 (its abstract): the growth of logits at high rates, and QK norm.",
    "Lewkowycz et al. 2020 and Cohen et al. 2021 (chapter 16.4): steps beyond 2/λ work, too.",
    "Shazeer & Stern 2018 (chapter 16.5): the relative steps with which T5 was trained.",
]
low, high = the_map.range_of("mean", the_map.cells)
usual, most = the_map.range_of("median", the_map.usual)
page = Page(
    "Unequal, not vanishing: what 1/√d_k does to the gradients of attention",
    claim="Without the scale the gradients of the queries are more unequal. A typical query's "
    f"gradient is {usual:.1f} to {most:.0f} times larger at d_k from 16 to 128 with 64 keys or "
    "more, and smaller only where a head is too wide for its keys.",
)
page.head("Abstract")
page.say(
    "The scale 1/√d_k of attention is said to prevent vanishing gradients. We measure the gradient "
    "of each query through one softmax. Without the scale the mean grows at every width and number "
    f"of keys measured, {low:.1f} to {high:.0f} times. At the widths in use the median grows, too; "
    "it falls below the scaled one beyond a d_k that grows with the number of keys. From d_k = 16 "
    "on gradients become unequal: the tenth of the queries with the longest ones has "
    f"{min(the_map.more):.1f} to {max(the_map.more):.1f} times as large a share of the squared "
    "gradient. For each number of keys all widths lie on one hill, and 1/√d_k puts them at one "
    "place, which is not its top. Which power of d_k keeps a step the same depends on the "
    "optimizer only while one rate is kept for all weights. A toy model that has learned a look-up "
    "keeps its answers without its scale, but learns a second task more slowly. Trained models "
    "that calculate give wrong answers without it.",
)
for number, section in enumerate(SECTIONS, start=1):
    page.section(f"{number} · {section.heading}", name=section.name)
    section.show(page, chosen.out)
page.section(f"{len(SECTIONS) + 1} · Claims, and what would falsify them", name="claims")
page.table(
    ["claim", "effect", "repeats", "falsified by"],
    CLAIMS,
    caption="A mark of this command checks each claim, and a test makes each mark fail. Marks with "
    "--full in their names judge the kept run with --full",
)
with page.folded("All marks of this run"):
    marks.table(page, "Scores beside their pass marks")
page.section(f"{len(SECTIONS) + 2} · Limits", name="limits")
page.say(
    "Queries, keys and the gradient at the weights are independent and random, except in figures "
    "4 and 5. There is one layer. Variance 1 is an assumption: GPT-2's initial weights give q and "
    f"k a deviation of {GPT2:.2f}, so its map is another one. The tasks are toys, and two small "
    "models stand for the trained ones.",
)
page.section(f"{len(SECTIONS) + 3} · References", name="references")
page.list(REFERENCES)
page.conclude(
    "With 1/√d_k heads of all widths start at one place, and the gradients of their queries are "
    "much more alike. The scale is not about numerical stability, which softmax's subtraction "
    "of the maximum provides. To reproduce: `python -m demos laboratory`, and with `--full` what "
    f"is marked so (seed {chosen.seed}). Each demo draws its own numbers, so `scaling` and "
    "`why_half` show others.",
    try_it(chosen.file),
)
print(f"\nThe page: {page.write(chosen.out, quick=chosen.quick, note=marks.note)}")
marks.end()

# %% Try it
# - Set `deviation` in `small` to 2.0: which cells of the second map change their colour?
# - Give `D_KS` the value 8192 and `NS` 16 alone: how small does the median become, and what has the
#   mean done?
