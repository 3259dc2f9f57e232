"""The laboratory: eight measurements of what the scale does, and why its lack may not be noticed.

Claim. The scale d_k^-½ is the one power of d_k with which nothing that decides how a head begins to
learn depends on its width: not the scores, not the gradient of a typical query, and nearly not the
largest stable step. Without a scale a typical query of a wide head gets no gradient, and the wider
the head, the more steps it needs. Reasons why this may not be noticed are measured too: means,
small widths, Adam, small initial weights, and the answers of a trained model.

Each measurement is a sweep (chapter 16.11), whose results are kept in a file of the output folder.
A run that was stopped continues there. With `--full` there are more widths, rates and seeds.

    python -m demos laboratory [--out DIR] [--seed N] [--full] [--jobs N] [--dask ADDRESS]  # 80 s
"""

# %% Set-up

import numpy as np

from attention.laboratory.basin import training
from attention.laboratory.chain import factors
from attention.laboratory.freezing import collapse, freezing_line, lookup
from attention.laboratory.neighbours import WAYS, neighbour
from attention.laboratory.results import SweepError
from attention.laboratory.sharpness import head_sharpness
from attention.laboratory.sweeps import progress, sweep
from attention.laboratory.workers import workers
from attention.scaling import saturation
from demos import options, stop
from demos._page import Page, try_it
from demos._training import Marks
from demos.laboratory._gradients import Factors, Gradients, Keys
from demos.laboratory._hidden import Hidden, Neighbours
from demos.laboratory._rates import Rates, Steps
from demos.laboratory._trained import KEPT, AllTrained, keep, sweeps


def add(parser):
    """The options that only this demo has."""
    parser.add_argument(
        "--full",
        action="store_true",
        help="more widths, rates and seeds: some 10 minutes with --jobs 2",
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes that measure (%(default)s)")
    parser.add_argument("--dask", metavar="ADDRESS", help="the scheduler of a Dask cluster")


chosen = options("laboratory", __doc__.splitlines()[0], quick=True, add=add)
marks = Marks(chosen)
size = "quick" if chosen.quick else "full" if chosen.full else "default"
EXPONENTS = [0.0, 0.5, 1.0]  # a of the scale d_k^-a
KEYS = [64, 1024, 131_072]  # of chapter 16.3


def sized(quick, default, full):
    """A size by the size of the run."""
    return {"quick": quick, "default": default, "full": full}[size]


LIMIT = sized(20, 400, 400)  # steps of a training
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
            "d_k": sized([8], [8, 64, 256], [8, 32, 128, 512, 2048]),
            "lr": sized([0.1], [0.1, 0.3, 1.0, 3.0], [0.03, 0.1, 0.3, 1.0, 3.0]),
            "optimizer": ["sgd"],
            "limit": [LIMIT],
        },
        sized(1, 2, 5),
    ),
    "basin of Adam": (
        training,
        {
            "d_k": sized([8], [8, 512], [8, 32, 128, 512]),
            "lr": sized([0.01], [0.01, 0.03], [0.001, 0.003, 0.01, 0.03, 0.1]),
            "optimizer": ["adam"],
            "limit": [LIMIT],
        },
        sized(1, 2, 5),
    ),
    "small weights": (
        training,
        {
            "d_k": sized([8], [8, 512], [8, 32, 128, 512]),
            "lr": sized([0.1], [0.1], [0.1, 0.3, 1.0]),
            "init": ["gpt2"],
            "limit": [LIMIT],
        },
        sized(1, 3, 5),
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
runs |= sweeps(size)

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
                    paired=pair if isinstance(pair, list) else [pair],
                    executor=executor,
                    path=chosen.out / file,
                    shown=shown,
                )
            measured[name] = [result for _, result in found]
except SweepError as error:
    stop(f"laboratory: {error}")

# %% What was found, in the order of the page

trained = [row for name in sweeps(size) for row in measured[name]]
if size == "full":
    command = "python -m demos laboratory --full"
    keep(chosen.out / KEPT.name, trained, command=command, seed=chosen.seed)
SECTIONS = [
    Gradients(measured["saturation"]),
    Factors(measured["factors"]),
    Keys(
        [row for n in KEYS for row in measured[f"{n} keys"]],
        measured["lookups"],
        measured["saturation"],
    ),
    Steps(measured["sharpness"]),
    Rates(measured["basin"], measured["sharpness"], limit=LIMIT),
    AllTrained(trained),
    Hidden(measured, limit=LIMIT),
    Neighbours(measured["neighbours"]),
]
print(f"\nThe laboratory, seed {chosen.seed}, in its {size} size")
for number, section in enumerate(SECTIONS, start=1):
    print(f"\n{number} · {section.heading}\n")
    section.print(marks)
    section.draw(chosen.out)

# %% The page: a report to be projected, one claim and one picture at a time

page = Page(
    "The √d_k laboratory",
    claim="With 1/√d_k, and with no other power of d_k, a head of any width starts with the same "
    "scores, the same gradients and nearly the same largest stable step.",
)
page.say(
    "Everything on this page was measured by minigrad with random queries and keys of variance 1, "
    f"or with one head that learns to look up a value by its key (seed {chosen.seed}). The scale "
    "is written as d_k^-a: a = 0 is no scale, ½ is the paper's, 1 is 1/d_k. Numbers after ± are "
    "standard deviations over repeats, if nothing else is said.",
    "Each demo draws its own random numbers, so `scaling` and `why_half` show other numbers at the "
    f"same seed. {SECTIONS[0].range_of_medians}",
)
for number, section in enumerate(SECTIONS, start=1):
    page.section(f"{number} · {section.heading}", name=section.name)
    section.show(page, chosen.out)
page.conclude(
    "The scale is not about numerical stability, which softmax's subtraction of the maximum "
    "provides. It decides how many queries get a gradient, and how large a step may be. At the "
    "exponent ½ alone the gradient does not depend on the width, and the step of gradient descent "
    "hardly does. It does not follow that a model without the scale ends with a worse loss: small "
    "initial weights, a small width or a smaller rate can make up for it.",
    try_it(chosen.file),
)
with page.folded("All marks of this run"):
    marks.table(page, "Scores beside their pass marks")
print(f"\nThe page: {page.write(chosen.out, quick=chosen.quick, note=marks.note)}")
marks.end()

# %% Try it
# - Add 0.25 to `EXPONENTS`: where is its slope in section 4, and which rates work in section 5? Run
#   it with `--out out/quarter`, because the kept results belong to the old settings.
# - Give `saturation` the setting `"keys": [1024]`, and add 2048 and 4096 to its `d_k`: at which d_k
#   is half of the queries dead? Run it with `--out out/keys`.
