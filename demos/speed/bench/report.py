"""Demos · Speed: what the race found, as text, as a Markdown table, as data and as a picture."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Any

from attention.figures import new_figure, save_figure

BASES = ("hand", "torch", "torch fused", "floor")  # what times are divided by
HEADS = {"torch fused": "torch-f"}  # in the head of a column
TITLES = {"torch": "PyTorch", "torch fused": "PyTorch fused", "hand": "hand", "floor": "floor"}
ALLOCATORS = {"default": "the allocator's defaults", "kept": "freed memory kept (mallopt)"}
COLOURS = {
    "hand": "#7a7a7a",
    "minigrad": "#2f7d4f",
    "minigrad fused": "#8cc29e",
    "torch": "#6a4a9c",
    "torch fused": "#b39ddb",
}
# What is raised where data are not as --json wrote them.
FORMAT = 1  # of what --json writes; another number where an older program could not read it
LEGEND = """\
Times are of one call, node or token, the median and the least of all rounds. Ratios are medians of
the rounds' ratios: to the program by hand, to PyTorch, to PyTorch's fused attention ("/torch-f"),
and to the floor, the products of the program by hand alone. By hand, a backward pass is derived on
paper. The rows "encoder" and "generation" have none, and "hand" is a plain program in NumPy there.
"faults" are page faults of a call, and "MB" is the peak of resident memory above the weights and
inputs."""
QUICK = "(--quick: tiny sizes and two turns. These times mean nothing.)"
OTHER = "#c9a227"  # autograd, MyGrad, JAX

Data = dict[str, Any]


def ratios(times: Data) -> Data:
    """Return contestant → base → its time over the base's; only where both were measured.

    The two times of a round are measured one after the other, so the ratio is taken in each round.
    The median of these ratios hardly changes if the machine becomes slower for a while.
    """
    return {
        name: {
            base: median(a / b for a, b in zip(found["rounds"], times[base]["rounds"], strict=True))
            for base in BASES
            if base in times and base != name
        }
        for name, found in times.items()
    }


def shown(seconds: float, row: Data) -> float:
    """Return a time in the row's unit, of one node or token where the row counts those."""
    return seconds / row["count"] * (1e6 if row["unit"] == "µs" else 1e3)


def unit(row: Data) -> str:
    """Return the unit with its reference: "µs a node"."""
    return row["unit"] + (f" a {row['per'].rstrip('s')}" if row["per"] else "")


def _ratio(found: Data, base: str) -> str:
    return f"{found[base]:.2f}" if base in found else ""


def _number(x: float) -> str:
    """Return a number with three digits, without an exponent."""
    return f"{x:.3g}" if x < 100 else f"{x:,.0f}"


def _megabytes(n: int | None) -> str:
    return "" if n is None else f"{n / 1e6:.1f}"


def table(row: Data, allocator: str) -> str:
    """Return a row under one allocator as a table, without columns that would be empty."""
    outcome = row["allocators"][allocator]
    if outcome["wrong"]:
        return "\n".join(f"   WRONG, and not timed: {each}" for each in outcome["wrong"])
    times = outcome["times"]
    columns = {
        f"/{HEADS.get(base, base)}": [_ratio(found["ratios"], base) for found in times.values()]
        for base in BASES
    }
    columns["faults"] = [
        "" if found["faults"] is None else f"{found['faults']:,.0f}" for found in times.values()
    ]
    columns["MB"] = [_megabytes(found["peak"]) for found in times.values()]
    columns = {head: column for head, column in columns.items() if any(column)}
    heads = "".join(f"{head:>9}" for head in columns)
    lines = [f"   {ALLOCATORS[allocator]:28}{'median':>10}{'least':>10} {unit(row):10}{heads}"]
    for i, (name, found) in enumerate(times.items()):
        cells = "".join(f"{column[i]:>9}" for column in columns.values())
        lines.append(
            f"   {name:28}{shown(found['median'], row):10.3f}{shown(found['minimum'], row):10.3f} "
            f"{'':10}{cells}".rstrip()
        )
    for name, said in outcome["failed"].items():
        lines.append(f"   {name}: could not do it: {said}")
    return "\n".join(lines)


def right(row: Data) -> bool:
    """Return True if all numbers of a row agree, and this engine could compute them."""
    return not any(
        outcome["wrong"] or any(name.startswith("minigrad") for name in outcome["failed"])
        for outcome in row["allocators"].values()
    )


def tables(data: Data) -> str:
    """Return the printed text of all measurements."""
    parts = [QUICK] if data["quick"] else []
    parts += [about(data), LEGEND]
    for row in data["rows"]:
        lines = [table(row, allocator) for allocator in row["allocators"]]
        parts.append("\n".join([f"{row['name']}: {row['what']}", *lines]))
    return "\n\n".join(parts)


def about(data: Data) -> str:
    """Return machine, date, versions and kernels, in a paragraph."""
    machine = data["machine"]
    versions = ", ".join(
        [f"Python {machine['Python']}", f"NumPy {machine['NumPy']}"]
        + [f"{name} {number}" for name, number in data["versions"].items()]
    )
    kernels = "; ".join(
        f"{each['library']} {each['version'] or ''}, kernel {each['kernel']}, threads "
        f"{each['threads']}"
        for each in data["blas"]
    )
    unknown = 'unknown (pip install -e ".[bench]" shows it)'
    allocators = ", then ".join(data["allocators"].values())
    return "\n".join(
        [
            f"{data['date']}, {machine['processor']}, {machine['cores']} cores "
            f"({', '.join(machine['vector units']) or 'vector units unknown'}), "
            f"{machine['system']}, {machine['C library']}.",
            f"{versions}.",
            f"NumPy's BLAS: {kernels or unknown}.",
            f"{data['threads']} thread{'s' if data['threads'] != 1 else ''} each, "
            f"{data['rounds']} rounds, float32. Memory: {allocators}.",
        ]
    )


def markdown(data: Data) -> str:
    """Return one table of it all: our times, also divided by those of the others."""
    lines = [
        "| row | work | allocator | minigrad | / hand | / PyTorch | / floor | fused | / hand "
        "| / PyTorch | / PyTorch fused | / floor |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in data["rows"]:
        for allocator, outcome in row["allocators"].items():
            cells = [row["name"], row["what"], allocator]
            if outcome["wrong"]:
                lines.append(f"| {' | '.join(cells)} | wrong, not timed |" + " |" * 8)
                continue
            for name, bases in (
                ("minigrad", ("hand", "torch", "floor")),
                ("minigrad fused", BASES),
            ):
                found = outcome["times"].get(name)
                ours = f"{_number(shown(found['median'], row))} {unit(row)}" if found else ""
                cells += [ours, *(_ratio(found["ratios"], each) if found else "" for each in bases)]
            lines.append(f"| {' | '.join(cells)} |")
    note = " ".join(about(data).split())
    return "\n".join([*lines, "", f"Medians. {note}"])


def picture(data: Data, path: Path) -> list[Path]:
    """Draw each row's contestants as bars: how many times as long as PyTorch, or as by hand.

    The axis is logarithmic, so half and double are equally far from 1.
    """
    names = [n for n in data["allocators"] if any(n in row["allocators"] for row in data["rows"])]
    base = "torch" if "torch" in data["against"] else "hand"
    rows = [row for row in data["rows"] if _compared(row, base)]
    groups = [(row["name"], _compared(row, base)) for row in rows]
    height = sum(0.9 + 0.75 * len(each) for _, each in groups)
    figure = new_figure(5.2 * len(names) + 1.0, 0.9 + 0.21 * height)
    panels = figure.subplots(1, len(names), sharex=True, sharey=True, squeeze=False)[0]
    labelled: set[str] = set()
    for panel, allocator in zip(panels, names, strict=True):
        ticks, y = [], 0.0
        for row, (_, group) in zip(rows, groups, strict=True):
            outcome = row["allocators"].get(allocator, {"times": {}, "wrong": []})
            first = y
            for name in group:
                ratio = outcome["times"].get(name, {}).get("ratios", {}).get(base)
                if ratio:
                    panel.barh(
                        y,
                        ratio - 1,
                        left=1,
                        height=0.7,
                        color=COLOURS.get(name, OTHER),
                        label=None if name in labelled else name,
                    )
                    side = {"ha": "left"} if ratio >= 1 else {"ha": "right"}
                    panel.annotate(
                        f"{ratio:.2f}",
                        (ratio, y),
                        (3 if ratio >= 1 else -3, 0),
                        textcoords="offset points",
                        va="center",
                        fontsize=6.5,
                        **side,
                    )
                    labelled.add(name)
                y += 0.75
            ticks.append((first + y - 0.75) / 2)
            y += 0.9
        panel.set_xscale("log", base=2)
        panel.xaxis.set_major_formatter(lambda x, _: f"{x:g}" if x >= 1 else f"1/{1 / x:g}")
        panel.axvline(1, color="black", linewidth=0.8)
        panel.set_yticks(ticks, [name for name, _ in groups], fontsize=9)
        panel.margins(x=0.12)
        panel.set_title(ALLOCATORS[allocator], fontsize=10)
        panel.set_xlabel(f"time / {TITLES[base]} (left of 1 is faster)", fontsize=9)
        panel.grid(axis="x", alpha=0.25)
    panels[0].invert_yaxis()
    if labelled:
        figure.legend(loc="outside lower center", ncols=6, fontsize=8)
    threads = f"{data['threads']} thread{'s' if data['threads'] != 1 else ''}"
    title = f"{data['machine']['processor']}, {threads}, {data['date']}"
    figure.suptitle(f"{title}\n{QUICK}" if data["quick"] else title, fontsize=9)
    return save_figure(figure, path)


def _compared(row: Data, base: str) -> list[str]:
    """Return the contestants of a row that have a ratio to the base, except the floor."""
    found: dict[str, None] = {}
    for outcome in row["allocators"].values():
        found |= {n: None for n, each in outcome["times"].items() if base in each["ratios"]}
    return [name for name in found if name != "floor"]
