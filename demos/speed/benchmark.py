"""How fast is it: this engine beside NumPy written by hand, beside PyTorch, and beside BLAS alone.

Claim. All contestants compute the same numbers, and the table says honestly how long each takes.
"hand" is forward, backward and Adam derived on paper for one model and written in NumPy: how fast
NumPy could be. (Where a row has no backward pass, it is a plain program in NumPy.) "floor" is the
matrix products of that program, back to back and nothing else. "fused" is attention in blocks, ours
or PyTorch's. Each contestant of a row has its own process, all get the same weights and inputs, and
their values and gradients are compared before anything is timed: a row with wrong numbers is not
timed. Then they take turns. Each row is measured twice, with the C library's allocator as it is,
and with freed memory kept. Python's cycle collector runs, as it does for a user, except in one row.

    python -m demos benchmark [--rows NAME …] [--against NAME …] [--threads N] [--quick]  # 400 s

`--against torch autograd mygrad jax` chooses frameworks; without it PyTorch, if it is installed.
`--json FILE` writes all numbers, `--markdown` prints the table that is in measured.md beside this
file, and `--from FILE` shows what `--json` wrote, and measures nothing.
"""

# %% Set-up

import argparse
import json
from datetime import date
from pathlib import Path

from tqdm import tqdm

from demos import options, stop
from demos._training import Marks
from demos.speed.bench import machine
from demos.speed.bench.race import INSTALL, Outcome, missing, processes, race
from demos.speed.bench.report import FORMAT, markdown, picture, ratios, right, tables
from demos.speed.bench.rows import NAMES, in_words, row_named, sizes_of
from minigrad.runs.saving import write_whole


def more_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that only this demo has."""
    parser.add_argument("--rows", nargs="+", choices=NAMES, metavar="NAME",
                        help=f"which rows to measure: {', '.join(NAMES)} (all)")  # fmt: skip
    parser.add_argument("--against", nargs="*", choices=tuple(INSTALL), metavar="NAME",
                        help=f"frameworks to compare with: {', '.join(INSTALL)}")  # fmt: skip
    parser.add_argument("--threads", type=int, help="threads of each process (1)")
    parser.add_argument("--rounds", type=int, help="turns of each contestant (9)")
    parser.add_argument("--allocator", choices=("default", "kept", "both"),
                        help="as it is, with freed memory kept, or (usually) both")  # fmt: skip
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers to a file")
    parser.add_argument("--markdown", action="store_true", help="print it all as one table")
    parser.add_argument("--from", type=Path, metavar="FILE", dest="source",
                        help="show what --json wrote, and measure nothing")  # fmt: skip


chosen = options("benchmark", __doc__.splitlines()[0], add=more_options)
measures = ("rows", "against", "threads", "rounds", "allocator", "json")  # options of a measurement
asked = [f"--{name}" for name in measures if getattr(chosen, name) is not None]
if chosen.source and (asked or chosen.quick):
    others = " and ".join(asked or ["--quick"])
    stop(f"--from shows what was measured before, and measures nothing: leave out {others}")
ROUNDS, TURN = (2, 0.002) if chosen.quick else (9, 0.1)  # turns, and seconds of a turn
rounds = ROUNDS if chosen.rounds is None else chosen.rounds
threads = 1 if chosen.threads is None else chosen.threads
if threads < 1 or rounds < 1:
    stop(f"--threads and --rounds must be 1 or larger: got {threads} and {rounds}")
against = chosen.against
if against is None:
    against = [] if missing("torch") else ["torch"]
    if not chosen.source and missing("torch"):
        print("PyTorch is not installed. This run compares with NumPy by hand alone.")
        print(f"For PyTorch: {INSTALL['torch']}.\n")
for name in against:
    if missing(name) and not chosen.source:
        stop(missing(name))
if chosen.json:
    try:  # an error should come before the work
        before = chosen.json.read_bytes() if chosen.json.is_file() else None
        write_whole(chosen.json, before or b"")
        if before is None:
            chosen.json.unlink()
    except OSError as error:
        stop(str(error))
both = chosen.allocator in (None, "both")
allocators = ("default", "kept") if both else (chosen.allocator,)

# %% The race
# Each row is measured with the allocator's defaults, and then with freed memory kept.


def measured():
    """Return all measurements as plain data."""
    data = {
        "format": FORMAT,
        "date": date.today().isoformat(),
        "machine": machine.describe(),
        "versions": {},
        "blas": {},
        "allocators": {},
        "against": against,
        "threads": threads,
        "rounds": rounds,
        "quick": chosen.quick,
        "seed": chosen.seed,
        "rows": [],
    }
    rows = [row_named(name) for name in NAMES if name in (chosen.rows or NAMES)]
    for row in rows:
        sizes = sizes_of(row, chosen.quick)
        data["rows"].append(
            {name: getattr(row, name) for name in ("name", "kind", "per", "unit")}
            | {"what": in_words(row, chosen.quick), "sizes": sizes}
            | {"count": sizes.get(row.per, 1), "allocators": {}}
        )
    with tqdm(total=len(rows) * len(allocators) * (rounds + 1), desc="benchmark") as bar:
        for row, found in zip(rows, data["rows"], strict=True):
            for allocator in allocators:
                bar.set_postfix_str(f"{row.name}, {allocator}", refresh=True)
                outcome = raced(row, allocator, bar)
                for name, found_in in outcome.about.items():
                    data["versions"] |= found_in.get("versions", {})
                    data["allocators"][allocator] = found_in.get("allocator", "")
                    if name == "minigrad":
                        data["blas"] = found_in.get("blas", [])
                for name, each in ratios(outcome.times).items():
                    outcome.times[name]["ratios"] = each
                found["allocators"][allocator] = {
                    "times": outcome.times,
                    "wrong": outcome.wrong,
                    "failed": outcome.failed,
                }
    return data


def raced(row, allocator, bar) -> Outcome:
    """Race one row under one allocator."""
    with processes(
        row,
        against,
        keep_memory=allocator == "kept",
        threads=threads,
        quick=chosen.quick,
        seed=chosen.seed,
    ) as taking_part:
        before = bar.n
        outcome = race(row, taking_part, rounds=rounds, turn=TURN, tick=bar.update)
    bar.update(rounds + 1 - (bar.n - before))
    return outcome


def made_of(data):
    """Return the tables, one table of all, the number of rows that are right, and the pictures."""
    number = sum(map(right, data["rows"]))
    return tables(data), markdown(data), number, picture(data, chosen.out / "speed")


if chosen.source:
    try:
        data = json.loads(chosen.source.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        stop(f"{chosen.source} cannot be read: {error}")
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        stop(f"{chosen.source} was not written by --json of this version: measure again")
else:
    if machine.warning():
        print(f"Warning: {machine.warning()}\n")
    data = measured()
text, as_one, number, pictures = made_of(data)

# %% What came of it

print(f"\n{text}\n")
chosen.quick = data["quick"]  # (with --from, that of the measurement)
marks = Marks(chosen)
marks.at_least("rows in which all compute the same", number, len(data["rows"]), "d")
if chosen.json:
    content = json.dumps(data, indent=1, ensure_ascii=False) + "\n"
    try:
        print(f"\nNumbers: {write_whole(chosen.json, content)}")
    except OSError as error:  # (a full disk)
        stop(f"the numbers could not be written: {error}")
print(f"\nPictures: {pictures[0]}")
if chosen.markdown:
    print(f"\n{as_one}")
marks.end()

# %% Try it
# - Run `--rows toy char-gpt` and look at the column of page faults under both allocators: how much
#   of a step is the price of memory that was given back?
# - Run it with `--threads 2`: which contestants become faster, and in which rows nobody does?
