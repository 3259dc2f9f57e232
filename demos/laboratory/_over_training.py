"""Figure 6 of the laboratory: the heads of a small GPT over a training, and a race over spreads."""

from pathlib import Path
from typing import Any

from attention.laboratory.over_training import natural_spread, over_training, race

KEPT = Path(__file__).with_name("results_full_over_training.jsonl")
STARTS = ["unit", "0.02"]
SPREADS = [1 / 32, 1 / 8, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0]
SEEDS = 4


def sweeps(size):
    """Return the sweeps of a run: a name, and the arguments of its sweep."""

    def trainings(seeds, **settings):
        settings = {"init": STARTS, "drawn": [False]} | settings
        # (The trainings of a default run are the beginnings of a full one's.)
        return over_training, settings, seeds, ["init", "drawn", "limit"]

    if size == "quick":
        return {"over a training": trainings(1, limit=[2], d_k=[8])}
    if size == "default":
        return {"over a training": trainings(1, limit=[50])}
    plan: dict[str, Any] = {
        "over a training": trainings(SEEDS, limit=[400]),
        "periods drawn": trainings(SEEDS, limit=[600], drawn=[True]),
    }
    for init in STARTS:
        settings = {"init": [init], "spread": sorted({*SPREADS, *with_and_without(init)})}
        plan[f"race from {init}"] = race, settings, SEEDS, ["init", "spread"]
    return plan


def with_and_without(init):
    """Return the spreads of the scores at the start with the scale 1/√d_k, and without it."""
    return natural_spread(init, 64), 8 * natural_spread(init, 64)
