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

from attention.laboratory.chain import factors
from attention.laboratory.results import SweepError
from attention.laboratory.sweeps import progress, sweep
from attention.laboratory.trained import trained_heads
from attention.laboratory.workers import workers
from attention.scaling import saturation
from demos import options, stop
from demos._page import Page, try_it
from demos._training import Marks
from demos.laboratory._gradients import Factors, Gradients
from demos.laboratory._steps import FULL, Steps, sweeps
from demos.laboratory._trained import AllTrained


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


def sized(quick, default, full):
    """A size by the size of the run."""
    return {"quick": quick, "default": default, "full": full}[size]


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
}


# %% Everything is measured
# A cell is one combination of settings. The exponents of a combination see the same draws.

runs = {
    name: (measure, settings | {"a": EXPONENTS}, repeats, ["a"])
    for name, (measure, settings, repeats) in SWEEPS.items()
}
given = {
    "d_k": sized([8], [64], [64, 512]),
    "a": [0.0, 0.5],
    "limit": [sized(3, 300, 300)],
    "second_limit": [sized(3, 600, 600)],
}
runs["trained"] = (trained_heads, given, sized(1, 1, 5), ["a"])
runs |= sweeps(size)

measured = {}
try:
    with workers(chosen.jobs, chosen.dask) as executor:
        for number, (name, (measure, settings, repeats, paired)) in enumerate(runs.items(), 1):
            with progress(f"{name} ({number} of {len(runs)})") as shown:
                file = f"{name.replace(' ', '_')}_{size}_seed_{chosen.seed}.jsonl"
                found = sweep(
                    measure,
                    settings,
                    seed=chosen.seed,
                    repeats=repeats,
                    paired=paired,
                    executor=executor,
                    path=chosen.out / file,
                    shown=shown,
                )
            measured[name] = [result for _, result in found]
except SweepError as error:
    stop(f"laboratory: {error}")

# %% What was found, in the order of the page

SECTIONS = [
    Gradients(measured["saturation"]),
    Factors(measured["factors"]),
    steps := Steps(measured, seed=chosen.seed, size=size),
    AllTrained(measured["trained"]),
]
if chosen.full:
    steps.run.write(chosen.out / FULL.name)
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
# - Add 0.9 to `grid` in `_steps.py`: with which optimizer does the first step depend least on d_k
#   there? Run it with `--out out/grid`, because the kept results belong to the old settings.
# - Give `saturation` the setting `"keys": [1024]`, and add 2048 and 4096 to its `d_k`: at which d_k
#   is half of the queries dead? Run it with `--out out/keys`.
