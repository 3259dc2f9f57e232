"""Fifteen mistakes that people make, each run, seen, caught by a check and repaired.

Claim. People make mistakes of these fifteen kinds, and none of them raises an error where it is
made. Each mistake has a check of a few lines. The check rejects the broken version, accepts the
repaired one, and fits into any project. The broken line that is shown is read from the function
that runs.

    python -m demos museum [NAME …] [--out DIR] [--seed N]  # 2 s

NAMEs choose exhibits. Without a NAME the demo shows all exhibits and a list at the end. One exhibit
fits on a screen of 40 lines. The demo draws no pictures.
"""

# %% Set-up

import difflib
import sys

from demos import options, stop
from demos._training import Marks
from demos.museum.exhibits import NAMES, exhibit

if not __debug__:
    stop("the checks are assertions: run the museum without -O, and without PYTHONOPTIMIZE")
asked, rest, value = [], [], False
for word in sys.argv[1:]:  # a NAME is a word that is neither an option nor its value
    (rest if value or word.startswith("-") else asked).append(word)
    value = len(word) > 2 and any(option.startswith(word) for option in ("--out", "--seed"))
sys.argv[1:] = rest
chosen = options("museum", f"{(__doc__ or '').splitlines()[0]} NAMEs: {', '.join(NAMES)}.")
asked = [word.casefold() for word in asked]
marks = Marks(enforced=not chosen.quick)
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
if len(exhibits) > 1:
    print(f"{'NAME':22}{'mistake':48}{'broken':>12}{'repaired':>12}")
    for each, *verdicts in zip(exhibits, broken, repaired, strict=True):
        columns = "".join(f"{'caught' if said else 'passes':>12}" for said in verdicts)
        print(f"{each.name:22}{each.title:48}{columns}")
marks.at_least("broken, and caught by the check", sum(map(bool, broken)), len(exhibits), "d")
marks.at_most("repaired, and caught by the check", sum(map(bool, repaired)), 0, "d")
marks.end()

# %% Try it
# - In exhibits/repeated_index.py, let the check look up the tokens [3, 1, 0]. Why does this demo
#   now end with exit code 1, and what follows for a test that passes?
# - In exhibits/lost_sum.py, let `broken` return g.mean(axis=0). Which of the check's two assertions
#   fails, and why does the layer learn the plane nevertheless?
