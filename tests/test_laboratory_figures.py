"""Figures of the laboratory: any exponent has a line, and titles are computed."""

import dataclasses
from types import SimpleNamespace

import numpy as np

from attention.laboratory import first_step, outcomes, trained_heads, training
from attention.laboratory.basin import step_exponents
from attention.laboratory.figures import plot_steps, plot_trained

EXPONENTS = (0.0, 0.25, 0.5)


def draws(seed=0):
    return np.random.default_rng(seed)


def of_steps(a):
    return [
        first_step(d_k, a, optimizer=optimizer, rng=draws(seed))
        for optimizer in ("sgd", "adam", "adafactor")
        for d_k in (4, 8)
        for seed in (0, 1)
    ]


def of_trainings(a, follow=0.0):
    one = training(4, a, lr=0.1, follow=follow, limit=2, rng=draws())
    return [dataclasses.replace(one, lr=lr, steps=round(9 / lr), accuracy=1.0) for lr in (0.1, 0.3)]


def test_the_figure_of_steps_names_the_flattest_exponent_and_the_best_rates():
    first = [row for a in EXPONENTS for row in of_steps(a)]
    found = [*of_trainings(0.0), *of_trainings(1.0), *of_trainings(1.0, follow=1.0)]
    found += [dataclasses.replace(row, steps=None) for row in of_trainings(0.5)]
    rises = step_exponents(first)
    above, below = (panel.get_title() for panel in plot_steps(first, outcomes(found), d_k=4).axes)
    for optimizer, name in (("sgd", "SGD"), ("adam", "Adam"), ("adafactor", "relative steps")):
        flattest = min(EXPONENTS, key=lambda a: abs(rises[optimizer, "unit", a][0]))
        assert f"{flattest:g} ({name})" in above
    assert below.endswith("30 (no scale), 30 (1/d_k), 30 (1/d_k, other rate)")
    some = [dataclasses.replace(row, accuracy=0.5) if row.lr == 0.3 else row for row in found]
    some += [row for row in found if row.lr == 0.3]  # at the rate .3 one of two learned
    assert plot_steps(first, outcomes(some), d_k=4).axes[1].get_title().count("90 (") == 3


def test_the_figure_of_trained_models_says_what_was_found():
    sizes = {"limit": 1, "second_limit": 1, "questions": 9, "every_rate": True}
    rows = [trained_heads(4, a, rng=draws(), **sizes) for a in (0.0, 0.5)]
    learned = {"as trained": 20, "no scale": 50}
    tasks = [dataclasses.replace(t, steps=learned.get(t.change)) for t in rows[1].second]
    tasks = [
        dataclasses.replace(t, steps=None if (t.lr, t.change) == (1, "no scale") else t.steps)
        for t in tasks
    ]
    rows[1] = dataclasses.replace(rows[1], second=tasks)
    heads = [
        SimpleNamespace(entropy=0.3, alone_median=[x, 0.6], alone_mean=[1, 0.1])
        for x in (-2, 1, 1.3)
    ]
    dead, steps, real = [panel.get_title() for panel in plot_trained(rows, heads).axes]
    raw, scaled = (end.passed_dead for row in rows for end in row.end if end.change == "as trained")
    assert dead.startswith("d_k = 4, as trained, dead for g:")
    assert dead.endswith(f"\n{scaled:.0%} with 1/√d_k, {raw:.0%} without")
    assert steps == "Without the scale 2.5 to 2.5 times\nthe steps, or never"
    assert real == "3 real heads, one at a time:\nmean grows in 3, median in 1"
