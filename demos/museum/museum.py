"""A museum of mistakes: sixteen that people make, each run, seen, caught by a check and repaired.

Claim. People make mistakes of these sixteen kinds, and none of them raises an error where it is
made. Each mistake has a check of a few lines. The check rejects the broken version, accepts the
repaired one, and fits into any project.

    python -m demos museum [NAME …] [--out DIR] [--seed N]
"""

# %% Set-up

import difflib
import inspect

from markupsafe import Markup

from demos import options, stop
from demos.museum._pages import HERE, drawing, html, seen, text
from demos.museum.exhibits import NAMES, exhibit, source
from demos.pages.publish import publish
from demos.pages.source import coloured
from demos.pages.tables import columns, figure
from demos.pages.templates import parts
from demos.pages.text import inline, markdown, set_text

SECONDS = 2  # of a run

if not __debug__:
    stop("the checks are assertions: run the museum without -O, and without PYTHONOPTIMIZE")
chosen = options(
    "museum",
    f"{__doc__.splitlines()[0]} NAMEs: {', '.join(NAMES)}.",
    add=lambda parser: parser.add_argument(
        "names", nargs="*", metavar="NAME", help="exhibits to print whole, without a page"
    ),
)
asked = [word.casefold() for word in chosen.names]
for name in asked:
    if name not in NAMES:
        close = difflib.get_close_matches(name, NAMES, n=1)
        meant = f" (did you mean {close[0]}?)" if close else ""
        stop(f"there is no exhibit {name!r}{meant}: the exhibits are {', '.join(NAMES)}")
exhibits = [exhibit(name) for name in NAMES if not asked or name in asked]
page = publish(chosen)

# %% The checks

broken = [case.caught(case.module.broken, chosen.seed) for case in exhibits]
repaired = [case.caught(case.module.repaired, chosen.seed) for case in exhibits]
refused = [case.number for case in exhibits if case.refused()]
page.marks.at_least("broken, and caught by the check", sum(map(bool, broken)), len(exhibits), "d")
page.marks.at_most("repaired, and caught by the check", sum(map(bool, repaired)), 0, "d")
if asked:
    for case in exhibits:
        page.html("", text(case, chosen.seed))
else:
    first, fourth, tenth = (seen(exhibits[i], chosen.seed) for i in (0, 3, 9))
    rows = [first[1], fourth[0], tenth[-1]]
    picture = figure(drawing(rows), "Symptoms of exhibits 1, 4 and 10, beside the repaired version")
    page.finding(
        f"All {len(exhibits)} run without an error, and what they compute is wrong. The checks "
        f"catch {sum(map(bool, broken))} of them, and {sum(map(bool, repaired))} of the repaired.",
        page.html(picture),
    )
    page.ask(
        "How many of these mistakes does this project refuse with an error, when they are typed as "
        "most people type them?",
        f"{len(refused)}: those of exhibits {', '.join(map(str, refused))}. In the others each "
        "operation is right by itself, so only what must be true of the result can tell.",
        guesses=("none", "some", "all"),
    )
    verdict = lambda sentence: "caught" if sentence else "passes"
    rows = [
        [case.name, case.title, verdict(of_broken), verdict(of_repaired)]
        for case, of_broken, of_repaired in zip(exhibits, broken, repaired, strict=True)
    ]
    page.html("", columns(["NAME", "mistake", "broken", "repaired"], rows))

# %% The exhibits
# Each exhibit is a function that runs without an error and is wrong. You see the function, and what
# it does beside what the repaired one does. A line of it is wrong, or missing. Click it before you
# open “Find it”: there are the mistake, the check that catches it, and the repair. The functions
# shown here are those that ran.

links = (parts.link(f"#exhibit-{case.number}", case.number) for case in exhibits)
script = (HERE / "exhibit.js").read_text("utf-8")
of_site = parts.paragraph(parts.link("museum.html", "The sixteen exhibits"))
page.program(parts.paragraph(Markup(" ").join(links)), script=script, at_site=of_site)
for case in exhibits if not asked else ():
    check = coloured("\n".join(source(case.module.check, docstring=False)), {})
    symptom = inline(inspect.getdoc(case.module.symptom), set_text)
    head = parts.heading(f"exhibit-{case.number}", f"Exhibit {case.number}") + parts.sub(symptom)
    prose = lambda words: markdown(words, set_text)
    body = html(case, prose, parts.lines(check), f"mistake-{case.number}", "h3", chosen.seed)
    page.html(head + body, place="below", at_site="")  # (the site has a page of each)

# %% What to conclude

page.say(
    "A mistake of this kind is found by what must be true and not by reading. A sum that has to be "
    "1, a spread that must not grow, a gradient that has to be 0, and a finite difference find all "
    "of them. A check counts only if the broken version fails it."
)
page.marks.end() if asked else page.end()

# %% Try it
# - In `exhibits/repeated_index.py`, let the check look up the tokens [3, 1, 0]. Why does this demo
#   now end with exit code 1, and what follows for a test that passes?
# - In `exhibits/lost_sum.py`, let `broken` return g.mean(axis=0). Which of the check's two
#   assertions fails, and why does the layer learn the plane nevertheless?
