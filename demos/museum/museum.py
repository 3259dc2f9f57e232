"""Sixteen mistakes that people make, each run, seen, caught by a check and repaired.

Claim. People make mistakes of these sixteen kinds, and none of them raises an error where it is
made. Each mistake has a check of a few lines. The check rejects the broken version, accepts the
repaired one, and fits into any project. The broken line that is shown is read from the function
that runs.

    python -m demos museum [NAME …] [--out DIR] [--seed N]  # 2 s

NAMEs choose exhibits. Without a NAME the demo shows all exhibits and a list at the end. One exhibit
fits on a screen of 40 lines. The page, index.html or with NAMEs some.html, shows each mistake first
and lets you look for it.
"""

# %% Set-up

import difflib
import inspect

from demos import options, stop
from demos._page import Html, Page, link, try_it
from demos._training import Marks
from demos.museum.exhibits import NAMES, difference, exhibit, shown, source

if not __debug__:
    stop("the checks are assertions: run the museum without -O, and without PYTHONOPTIMIZE")
chosen = options(
    "museum",
    f"{(__doc__ or '').splitlines()[0]} NAMEs: {', '.join(NAMES)}.",
    add=lambda parser: parser.add_argument(
        "names", nargs="*", metavar="NAME", help="an exhibit, or several (all)"
    ),
)
asked = [word.casefold() for word in chosen.names]
marks = Marks(chosen)
for name in asked:
    if name not in NAMES:
        close = difflib.get_close_matches(name, NAMES, n=1)
        meant = f" (did you mean {close[0]}?)" if close else ""
        stop(f"there is no exhibit {name!r}{meant}: the exhibits are {', '.join(NAMES)}")
exhibits = [exhibit(name) for name in NAMES if not asked or name in asked]

# %% The exhibits
# Each exhibit shows where the mistake is made; the broken line, marked -, and the line that repairs
# it, marked +; the symptom in both versions; the check, and its result for both versions.

for each in exhibits:
    print(f"{each.screen(chosen.seed)}\n")

# %% The list
# A check that cannot fail proves nothing. Each check has to reject the broken version and to accept
# the repaired one.

broken = [each.caught(each.module.broken, chosen.seed) for each in exhibits]
repaired = [each.caught(each.module.repaired, chosen.seed) for each in exhibits]
verdicts = list(zip(exhibits, broken, repaired, strict=True))

# %% The page
# The page first shows what the broken version does. What is wrong is behind a line that opens it.

page = Page(
    "A museum of mistakes",
    claim="People make these mistakes, and none of them raises an error where it is made. A check "
    "of a few lines catches each of them.",
)
page.say(
    "Each exhibit is a function that runs without an error and is wrong. You see the function, and "
    "what it does. A line of it is wrong, or missing. Look for it before you open “Find it”: there "
    "are the mistake, the check that catches it, and the repair. The functions shown here are "
    "those that ran.",
)


def place(each):
    """Return an exhibit's id on the page: its name would tell the mistake in the address bar."""
    return f"exhibit-{each.number}"


places = [link(str(each.number), f"#{place(each)}") for each in exhibits]
page.say(Html(f"Exhibits: {' · '.join(places)}"))


def measured(symptoms):
    """Return the measurements of a symptom: names, and values as texts."""
    return {name: shown(value) for name, value in symptoms.items()}


for each, said, passed in verdicts:
    module = each.module
    before, after = (
        measured(each.symptoms(f, chosen.seed)) for f in (module.broken, module.repaired)
    )
    page.section(f"Exhibit {each.number}", name=place(each))
    page.code(source(module.broken))
    page.say(inspect.getdoc(module.symptom))
    page.table(
        ["measured", "this version"],
        list(before.items()),
        caption=f"What exhibit {each.number} does",
    )
    question = "Find it: which line is wrong or missing, and which check would notice?"
    with page.folded(question, asked=True):
        page.head(f"The mistake: {each.title}")
        page.say(each.story)
        changed = difference(source(module.broken), source(module.repaired))
        page.code([line[3:] for line in changed], marked=True)
        page.table(
            ["measured", "broken", "repaired"],
            [[name, value, after[name]] for name, value in before.items()],
            caption=f"What both versions of exhibit {each.number} do",
        )
        page.head("The check")
        page.say(inspect.getdoc(module.check))
        page.code(source(module.check, docstring=False))
        rows = [["broken", said or "NOT CAUGHT"], ["repaired", passed or "passes"]]
        if (refused := each.refused()) is not None:
            rows.append(["minigrad", refused])
        caption = f"What the check of exhibit {each.number} says"
        page.table(["version", "what the check says"], rows, caption=caption)
        page.head("The repair")
        page.say(module.REPAIR)
if len(exhibits) > 1:
    page.section("The list")
    with page.folded("All exhibits, with their names"):
        page.table(
            ["exhibit", "mistake", "broken", "repaired"],
            [
                [
                    link(each.name, f"#{place(each)}"),
                    each.title,
                    *("caught" if told else "passes" for told in both),
                ]
                for each, *both in verdicts
            ],
            caption="What the checks say",
        )
page.conclude(
    "A mistake of this kind is found by what must be true and not by reading. A sum that has to be "
    "1, a spread that must not grow, a gradient that has to be 0, and a finite difference find all "
    "of them. A check counts only if the broken version fails it.",
    try_it(chosen.file),
)
only = "" if len(exhibits) == len(NAMES) else f"Only these exhibits: {', '.join(asked)}."
kept = "some.html" if only else "index.html"  # the page of all exhibits is not replaced by some
page.write(chosen.out, quick=chosen.quick, note=only, name=kept)

# %%
# The list says where the page is.

if len(exhibits) > 1:
    print(f"── The list; the page is {chosen.out / 'index.html'}")
    print(f"{'NAME':22}{'mistake':48}{'broken':>12}{'repaired':>12}")
    for each, *both in verdicts:
        columns = "".join(f"{'caught' if told else 'passes':>12}" for told in both)
        print(f"{each.name:22}{each.title:48}{columns}")
marks.at_least("broken, and caught by the check", sum(map(bool, broken)), len(exhibits), "d")
marks.at_most("repaired, and caught by the check", sum(map(bool, repaired)), 0, "d")
marks.end()

# %% Try it
# - In exhibits/repeated_index.py, let the check look up the tokens [3, 1, 0]. Why does this demo
#   now end with exit code 1, and what follows for a test that passes?
# - In exhibits/lost_sum.py, let `broken` return g.mean(axis=0). Which of the check's two assertions
#   fails, and why does the layer learn the plane nevertheless?
