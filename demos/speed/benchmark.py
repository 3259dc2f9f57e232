"""Speed: this engine beside NumPy written by hand, and beside PyTorch.

Claim. All contestants compute the same numbers, and the table says honestly how long each takes.
"hand" is forward, backward and Adam derived on paper for one model and written in NumPy: how fast
NumPy could be. "in blocks" is attention in blocks, ours or PyTorch's. Each contestant of a row has
its own process, all get the same weights and inputs, and their values and gradients are compared
before anything is timed: a row with wrong numbers is not timed. Then they take turns.

    python -m demos benchmark [--rows NAME …] [--threads N] [--quick]

PyTorch takes part if it is installed. The table has our times, medians of one call or node. Its
ratios are medians of the rounds' ratios. A cell "227 → 183 ms" is two measurements: with the C
library's allocator as it is, and with freed memory kept. The last table, "what to change here", has
the factors of what a user may change in a training step: below 1 is faster, or smaller. All
numbers, also those of the others, are in speed.json; measured.md beside this file has what earlier
runs measured.
"""

# %% Set-up

import argparse
import importlib.util
import json
from datetime import date

from tqdm import tqdm

from demos import options, stop
from demos._training import Marks
from demos.speed.bench.changes import GROUPS
from demos.speed.bench.race import changes, processes, race
from demos.speed.bench.report import about, table, table_of_changes
from demos.speed.bench.rows import NAMES, ROWS
from minigrad.runs.saving import write_whole

SECONDS = 330  # of a run
ALL = (*NAMES, "changes")


def more_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that only this demo has."""
    parser.add_argument(
        "--rows",
        nargs="+",
        choices=ALL,
        default=ALL,
        metavar="NAME",
        help=f"which rows to measure, or what to change: {', '.join(ALL)} (all)",
    )
    parser.add_argument("--threads", type=int, default=1, help="threads of each process (1)")


chosen = options("benchmark", __doc__.splitlines()[0], add=more_options)
rounds, turn = (2, 0.002) if chosen.quick else (9, 0.1)  # turns, and seconds of a turn
if chosen.threads < 1:
    stop(f"--threads must be 1 or larger: got {chosen.threads}")
against = ["torch"] if importlib.util.find_spec("torch") else []
if not against:
    print("PyTorch is not installed: this run compares with NumPy by hand alone.\n")

# %% The race
# Each row is measured with the allocator's defaults, and then with freed memory kept.

data = {
    "date": date.today().isoformat(),
    "against": against,
    "threads": chosen.threads,
    "rounds": rounds,
    "quick": chosen.quick,
    "seed": chosen.seed,
    "rows": {},
}
rows = [row for row in ROWS if row.name in chosen.rows]
for row in tqdm(rows, desc="benchmark", disable=not rows):
    data["rows"][row.name] = {}
    for allocator in ("default", "kept"):
        asked = row, against, chosen.quick, chosen.seed, allocator == "kept"
        with processes(*asked, threads=chosen.threads) as taking_part:
            outcome = race(row, taking_part, rounds=rounds, turn=turn)
        data["rows"][row.name][allocator] = outcome
if "changes" in chosen.rows:
    asked = against, chosen.quick, chosen.seed
    data["changes"] = changes(*asked, threads=chosen.threads, rounds=rounds, turn=turn)

# %% What came of it

if chosen.quick:
    print("\n(--quick: tiny sizes and two turns. These times mean nothing.)")
print(f"\n{about(data)}\n")
right = 0
for row in rows:
    print(f"{row.name}: {row.in_words(chosen.quick)}")
    wrong = [each for outcome in data["rows"][row.name].values() for each in outcome["wrong"]]
    print(*(f"   WRONG, and not timed: {each}\n" for each in wrong), sep="", end="")
    right += not wrong
if rows:
    print(f"\n{table(data)}\n")
outcomes = data.get("changes", {})
for group, outcome in outcomes.items():
    print(f"changes: {GROUPS[group][0].in_words(chosen.quick)}")
    print(*(f"   WRONG, and not timed: {each}\n" for each in outcome["wrong"]), sep="", end="")
    right += not outcome["wrong"]
if outcomes:
    print(f"\n{table_of_changes(outcomes)}\n")
marks = Marks(chosen)
marks.at_least("rows in which all compute the same", right, len(rows) + len(outcomes), "d")
content = json.dumps(data, indent=1, ensure_ascii=False) + "\n"
print(f"All numbers: {write_whole(chosen.out / 'speed.json', content)}")
marks.end()

# %% Try it
# - Run `--rows toy char-gpt` and compare the two numbers of each cell: how much of a step is the
#   price of memory that was given back?
# - Run it with `--threads 2`: which contestants become faster, and in which rows nobody does?
