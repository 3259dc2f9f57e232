"""Chapter 16.1 · Every measurement of the laboratory is a cell that a sweep can send anywhere."""

import json
import pickle
from dataclasses import asdict

import numpy as np
import pytest

from attention.laboratory import collapse, factors, lookup, neighbour, spectrum
from attention.scaling import saturation

SMALL = {"keys": 5, "queries": 6, "per_key_set": 3}


def inverse(d_k):
    """A scale as a function of d_k."""
    return 1 / d_k


CELLS = [
    (saturation, (7, 0.5), SMALL | {"queries": 30}),
    (saturation, (7, inverse), SMALL | {"queries": 30}),
    (factors, (7, 1), SMALL),
    (factors, (7, inverse), SMALL),
    (spectrum, (7, 0), SMALL),
    (collapse, (7, 2.5), {"samples": 3}),
    (lookup, (7, 0.5), {"samples": 3}),
    (neighbour, (7, "additive"), SMALL | {"d_model": 11}),
]


@pytest.mark.parametrize(("measure", "settings", "options"), CELLS)
def test_a_cell_is_found_by_name_repeats_itself_and_gives_what_json_can_say(
    measure, settings, options
):
    sent = pickle.loads(pickle.dumps((measure, settings)))
    assert sent == (measure, settings)
    first, again = (
        measure(*settings, **options, rng=np.random.default_rng([3, 5])) for _ in range(2)
    )
    other = measure(*settings, **options, rng=np.random.default_rng([3, 6]))
    assert first == again != other
    assert json.loads(json.dumps(asdict(first))) == asdict(first)


@pytest.mark.parametrize("measure", [saturation, factors, spectrum])
def test_a_function_of_d_k_is_the_scale_itself_and_gives_its_name_to_the_row(measure):
    rows = [
        asdict(measure(7, a, **SMALL | {"queries": 30}, rng=np.random.default_rng(0)))
        for a in (1, inverse)
    ]
    assert [row.pop("a") for row in rows] == [1.0, "inverse"]
    assert rows[0] == pytest.approx(rows[1], rel=1e-12)
