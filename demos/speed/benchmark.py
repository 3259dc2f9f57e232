"""How fast is it: this engine beside NumPy written by hand, beside PyTorch, and beside BLAS alone.

Claim. All contestants compute the same numbers, and the table says honestly how long each takes.
"hand" is forward, backward and Adam derived on paper for one model and written in NumPy: how fast
NumPy could be. "floor" is the matrix products of that program, back to back and nothing else.
"fused" is attention in blocks, ours or PyTorch's. Each contestant of a row has its own process, all
get the same weights and inputs, and their values and gradients are compared before anything is
timed: a row with wrong numbers is not timed. Then they take turns. Each row is measured twice, with
the C library's allocator as it is, and with freed memory kept. Python's cycle collector runs, as it
does for a user, except in one row.

    python -m demos benchmark [--rows NAME …] [--against [torch]] [--threads N] [--quick]  # 400 s

PyTorch takes part if it is installed, and `--against` alone leaves it out. The table has our times,
medians of one call, node or token. Its ratios are medians of the rounds' ratios: to the program by
hand, to PyTorch, to PyTorch's fused attention and to the floor. "faults" are page faults of a call.
All numbers, also those of the others, are in speed.json; measured.md beside this file is an earlier
run.
"""

# %% Set-up

import argparse
import importlib.util
import json
from datetime import date

from tqdm import tqdm

from demos import options, stop
from demos._training import Marks
from demos.speed.bench.race import processes, race
from demos.speed.bench.report import about, table
from demos.speed.bench.rows import NAMES, ROWS
from minigrad.runs.saving import write_whole


def more_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that only this demo has."""
    parser.add_argument(
        "--rows",
        nargs="+",
        choices=NAMES,
        default=NAMES,
        metavar="NAME",
        help=f"which rows to measure: {', '.join(NAMES)} (all)",
    )
    parser.add_argument(
        "--against",
        nargs="*",
        choices=("torch",),
        metavar="torch",
        help="compare with PyTorch (if installed), or not",
    )
    parser.add_argument("--threads", type=int, default=1, help="threads of each process (1)")
    parser.add_argument("--rounds", type=int, help="turns of each contestant (9)")


chosen = options("benchmark", __doc__.splitlines()[0], add=more_options)
usual, turn = (2, 0.002) if chosen.quick else (9, 0.1)  # turns, and seconds of a turn
rounds = usual if chosen.rounds is None else chosen.rounds
if chosen.threads < 1 or rounds < 1:
    stop(f"--threads and --rounds must be 1 or larger: got {chosen.threads} and {rounds}")
there, against = importlib.util.find_spec("torch") is not None, chosen.against
if against and not there:
    stop("torch is not installed: pip install torch")
if against is None:
    against = ["torch"] if there else []
    if not there:
        print("PyTorch is not installed. This run compares with NumPy by hand alone.")
        print("For PyTorch: pip install torch.\n")

# %% The race
# Each row is measured with the allocator's defaults, and then with freed memory kept.

data = {
    "date": date.today().isoformat(),
    "against": against,
    "threads": chosen.threads,
    "rounds": rounds,
    "quick": chosen.quick,
    "seed": chosen.seed,
    "allocators": {},
    "rows": {},
}
rows = [row for row in ROWS if row.name in chosen.rows]
shared = {"threads": chosen.threads, "quick": chosen.quick, "seed": chosen.seed}
with tqdm(total=len(rows) * 2, desc="benchmark") as bar:
    for row in rows:
        data["rows"][row.name] = {}
        for allocator in ("default", "kept"):
            bar.set_postfix_str(f"{row.name}, {allocator}", refresh=True)
            with processes(row, against, keep=allocator == "kept", **shared) as taking_part:
                outcome = race(row, taking_part, rounds=rounds, turn=turn)
            data["rows"][row.name][allocator] = outcome
            data["allocators"][allocator] = outcome.pop("allocator", "unknown")
            bar.update()

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
print(f"\n{table(data)}\n")
marks = Marks(chosen)
marks.at_least("rows in which all compute the same", right, len(rows), "d")
content = json.dumps(data, indent=1, ensure_ascii=False) + "\n"
print(f"All numbers: {write_whole(chosen.out / 'speed.json', content)}")
marks.end()

# %% Try it
# - Run `--rows toy char-gpt` and look at the column of page faults under both allocators: how much
#   of a step is the price of memory that was given back?
# - Run it with `--threads 2`: which contestants become faster, and in which rows nobody does?
