"""Chapter 17.3 · Figures of the laboratory: any exponent has a line, and titles are computed."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

from attention.figures import OF_SCALE
from attention.laboratory import factors, head_sharpness, outcomes, trained_heads, training
from attention.laboratory.figures import (
    plot_basin,
    plot_entropies,
    plot_factors,
    plot_freezing,
    plot_lookup,
    plot_sharpness,
    plot_trained,
)
from attention.laboratory.freezing import collapse, freezing_line, lookup

EXPONENTS = (0.0, 0.25, 0.5)


def draws(seed=0):
    return np.random.default_rng(seed)


def of_factors(a):
    sizes = {"queries": 4, "per_key_set": 2, "keys": 5}
    return [factors(d_k, a, rng=draws(), **sizes) for d_k in (4, 8)]


def of_sharpness(a):
    sizes = {"sequences": 2, "d_model": 3}
    return [head_sharpness(d_k, a, rng=draws(seed), **sizes) for d_k in (4, 8) for seed in (0, 1)]


def of_trainings(a):
    sizes = {"batch": 3, "d_model": 5, "limit": 2}
    return [training(4, a, lr=0.1, rng=draws(seed), **sizes) for seed in (0, 1)]


FIGURES = {
    plot_factors: of_factors,
    plot_sharpness: of_sharpness,
    plot_entropies: of_trainings,
    plot_basin: of_trainings,
}


@pytest.mark.parametrize("plot", FIGURES, ids=lambda f: f.__name__)
def test_an_exponent_without_a_colour_of_its_own_is_drawn_under_its_name(plot):
    rows = [row for a in EXPONENTS for row in FIGURES[plot](a)]
    figure = plot(outcomes(rows) if plot is plot_basin else rows)
    texts = [text.get_text() for panel in figure.axes for text in panel.texts]
    texts += [panel.get_title() for panel in figure.axes]
    for name in (*(OF_SCALE[a][1] for a in (0.0, 0.5)), "d_k^-0.25"):
        assert any(name in text for text in texts)


@pytest.mark.parametrize("plot", FIGURES, ids=lambda f: f.__name__)
def test_a_single_repeat_is_drawn_without_a_band(plot):
    rows = [row for a in (0.0, 0.5) for row in FIGURES[plot](a)]
    keys = [(getattr(row, "d_k", 0), row.a) for row in rows]
    first = [row for i, row in enumerate(rows) if keys[i] not in keys[:i]]
    if plot is plot_sharpness:  # (its slope needs two repeats)
        return
    plot(outcomes(first) if plot is plot_basin else first).draw_without_rendering()


def test_titles_say_what_was_found():
    n, line = 64, freezing_line(64)
    rows = [collapse(n, part * line, samples=9, rng=draws()) for part in (0.5, 1, 1.5)]
    (panel,) = plot_freezing(rows).axes
    assert panel.get_title() == f"On the line {rows[1].entropy:.2f} of the entropy log n are left"
    looked = [lookup(n, b, samples=9, rng=draws()) for n in (64, 512) for b in (0.0, 0.5, 1.0)]
    found = [row for row in looked if row.b == 1.0]
    titles = [panel.get_title() for panel in plot_lookup(looked).axes]
    assert f"{found[0].found:.2f} → {found[1].found:.2g} (times log n)" in titles[0]
    rows = [row for a in (0.0, 0.5) for row in of_sharpness(a)]
    raw = {d: np.mean([r.sharpness for r in rows if (r.d_k, r.a) == (d, 0)]) for d in (4, 8)}
    (panel,) = plot_sharpness(rows).axes
    assert f"λ becomes {raw[8] / raw[4]:.2g} (no scale)" in panel.get_title()
    trainings = of_trainings(0.5)
    (panel,) = plot_entropies(trainings).axes
    start = np.mean([t.entropy[0] for t in trainings])
    assert panel.get_title() == f"At the first step the entropy is {start:.2f} (1/√d_k)"
    sizes = {"limit": 1, "second_limit": 1, "questions": 9, "every_rate": True}
    rows = [trained_heads(4, a, rng=draws(), **sizes) for a in (0.0, 0.5)]
    learned = {"as trained": 20, "no scale": 50}
    tasks = [dataclasses.replace(t, steps=learned.get(t.change)) for t in rows[1].second]
    tasks = [
        dataclasses.replace(t, steps=None if (t.lr, t.change) == (1, "no scale") else t.steps)
        for t in tasks
    ]
    rows[1] = dataclasses.replace(rows[1], second=tasks)
    heads = [SimpleNamespace(entropy=0.3, median=[x, 1], mean=[1, 1]) for x in (-2, -1, 1)]
    dead, steps, real = [panel.get_title() for panel in plot_trained(rows, heads).axes]
    ends = [{end.change: end for end in row.end} for row in rows]
    pairs = [ends[1]["as trained"], ends[0]["1/√d_k"]], [ends[1]["no scale"], ends[0]["as trained"]]
    shares = [np.mean([end.passed_dead for end in pair]) for pair in pairs]
    assert dead == f"Dead for g: {shares[0]:.0%} with 1/√d_k,\n{shares[1]:.0%} without it"
    assert steps == "Without the scale 2.5 to 2.5 times\nthe steps, or never"
    assert real == "3 real heads: the mean grows in 3,\nthe median in 1"
    never = [dataclasses.replace(t, steps=None) for t in trainings]
    (panel,) = plot_basin(outcomes(never)).axes
    assert panel.get_title() == "1/√d_k: none works always"
