"""Chapters 16 to 16.7 · What the measurements refuse: wrong sizes, and numbers that are not finite.

Each test goes over all measurements and all of their arguments, which are read from the signatures.
"""

import dataclasses
import inspect
import math

import numpy as np
import pytest

import attention.laboratory
from attention import scaling
from attention.laboratory import basin, chain, freezing, neighbours, sharpness, trained
from attention.scaling import saturation, summary

SMALL = {"queries": 6, "per_key_set": 3, "keys": 5}
MEASUREMENTS = {  # a measurement, and arguments with which it takes milliseconds
    scaling.saturation: {"d_k": 4, "a": 0.5, **SMALL},
    scaling.typical_query: {"d_k": 4, "queries": 7},
    chain.factors: {"d_k": 4, "a": 0.5, **SMALL},
    chain.spectrum: {"d_k": 4, "a": 0.5, **SMALL},
    freezing.collapse: {"n": 5, "s": 1.0, "samples": 7},
    freezing.lookup: {"n": 5, "b": 0.5, "samples": 7},
    freezing.limit: {"n": 5, "s": 1.0},
    sharpness.head_sharpness: {"d_k": 4, "a": 0.5, "sequences": 2, "d_model": 3},
    basin.training: {"d_k": 4, "a": 0.5, "lr": 0.1, "limit": 2, "batch": 3, "d_model": 5},
    basin.first_step: {"d_k": 4, "a": 0.5, "batch": 3, "d_model": 5},
    trained.trained_heads: {"d_k": 4, "a": 0.5, "limit": 1, "second_limit": 1, "questions": 5},
    neighbours.neighbour: {"d_k": 4, "way": "none", "d_model": 5, **SMALL},
}
ARGUMENTS = [
    (measure, name, parameter)
    for measure in MEASUREMENTS
    for name, parameter in inspect.signature(measure).parameters.items()
]
SIZES = [(measure, name) for measure, name, p in ARGUMENTS if p.annotation == "int"]
NUMBERS = [(measure, name) for measure, name, p in ARGUMENTS if p.annotation == "float"]
SCALES = [measure for measure, name, _ in ARGUMENTS if name == "a"]
NAMES = [(measure, name) for measure, name, p in ARGUMENTS if p.annotation == "str"]


def called(measure, **others):
    """The measurement with one argument changed."""
    has_rng = "rng" in inspect.signature(measure).parameters
    rng = {"rng": np.random.default_rng(0)} if has_rng else {}
    return measure(**(MEASUREMENTS[measure] | others), **rng)


def numbers_of(found):
    """All numbers of a result, however deep."""
    if dataclasses.is_dataclass(found):
        return [x for value in vars(found).values() for x in numbers_of(value)]
    if isinstance(found, list | tuple):
        return [x for value in found for x in numbers_of(value)]
    return [] if found is None or isinstance(found, str) else list(np.ravel(found))


def test_every_public_measurement_is_in_the_table():
    public = {
        getattr(attention.laboratory, name)
        for name in attention.laboratory.__all__
        if inspect.isfunction(getattr(attention.laboratory, name))
    }
    with_draws = {f for f in public if "rng" in inspect.signature(f).parameters}
    assert with_draws - MEASUREMENTS.keys() == {sharpness.largest_eigenvalue} | {
        sharpness.largest_of_hessian
    }
    assert len(SIZES) > 40 and len(NUMBERS) >= 10 and len(SCALES) == 7 and len(NAMES) == 6


@pytest.mark.parametrize("measure", MEASUREMENTS, ids=lambda f: f.__name__)
def test_good_arguments_give_finite_numbers(measure):
    assert np.all(np.isfinite(np.array(numbers_of(called(measure)), float)))


@pytest.mark.parametrize(("measure", "name"), SIZES, ids=lambda x: getattr(x, "__name__", x))
@pytest.mark.parametrize("size", [0, -1, 2.5, math.nan, True])
def test_a_wrong_size_is_refused_by_its_name(measure, name, size):
    if name == "limit" and size == 0 and measure is trained.trained_heads:
        return  # a model that was not trained may be measured
    with pytest.raises(ValueError, match=rf"^{name} must be an integer of \d or more: got "):
        called(measure, **{name: size})


@pytest.mark.parametrize(
    "measure", [m for m, name in SIZES if name == "per_key_set"], ids=lambda f: f.__name__
)
def test_as_many_queries_are_measured_as_were_asked_for_or_none(measure):
    for queries in range(1, 14):
        for per_key_set in (1, 2, 3, 5):
            sizes = {"queries": queries, "per_key_set": per_key_set}
            if queries % per_key_set:
                with pytest.raises(ValueError, match=f"queries={queries} cannot be shared equally"):
                    called(measure, **sizes)
            else:
                found = called(measure, **sizes)
                assert getattr(found, "queries", queries) == queries
                if measure is saturation:  # in shares of so many
                    share = called(measure, **sizes, dead=0.1).dead_share
                    assert (share * queries) == pytest.approx(round(share * queries))


@pytest.mark.parametrize(("measure", "name"), NUMBERS, ids=lambda x: getattr(x, "__name__", x))
@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_not_finite_is_refused_by_its_name(measure, name, number):
    if name == "dead" and number == math.inf:
        return  # then all queries count as dead
    with pytest.raises(ValueError, match=rf"^{name} must be a (finite number|length)"):
        called(measure, **{name: number})


def nowhere(d_k):
    return math.nan


@pytest.mark.parametrize("measure", SCALES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("a", [math.nan, math.inf, -math.inf, -1000, nowhere])
def test_a_scale_that_is_not_finite_is_refused(measure, a):
    if a == math.inf:  # 0, with which every query would be dead
        assert scaling.power(a)(4) == 0
        return
    with pytest.raises(ValueError, match=r"^the scale must be finite: at d_k=4, a=\S+ gives "):
        called(measure, a=a)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("measure", SCALES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("a", [-3, -20, -60, -150, -250, -400, 20, 150, 250, 400])
def test_no_scale_makes_a_measurement_say_nan(measure, a):
    try:
        found = called(measure, a=a)
    except ValueError as error:
        assert "finite" in str(error) or "floating-point" in str(error) or "broke" in str(error)
    else:
        numbers = np.array(numbers_of(found), float)
        assert np.all(np.isfinite(numbers))


@pytest.mark.parametrize(("measure", "name"), NAMES, ids=lambda x: getattr(x, "__name__", x))
@pytest.mark.parametrize("value", ["other", [], None, 3])
def test_a_name_that_is_not_known_is_refused_beside_those_that_are(measure, name, value):
    with pytest.raises(ValueError, match="(is one of|is not known)"):
        called(measure, **{name: value})


def test_recall_has_as_many_pairs_as_there_are_keys_at_most():
    for measure in (basin.training, basin.first_step):
        with pytest.raises(ValueError, match="pairs=17 need as many different keys"):
            called(measure, pairs=17)
        with pytest.raises(ValueError, match="pairs must be an integer of 2 or more: got 1"):
            called(measure, pairs=1)
        called(measure, pairs=16)


def test_a_training_whose_loss_becomes_nan_is_not_measured():
    with pytest.raises(ValueError, match="the training broke"), np.errstate(all="ignore"):
        trained.trained_heads(4, 0.5, lr=1e4, limit=100, rng=np.random.default_rng(0))


def test_an_exponent_of_numpys_does_not_change_the_precision():
    for kind in (np.float32, np.float16, np.int64, np.float64):
        scale = scaling.power(kind(1))(64)
        assert type(scale) is float and scale == 1 / 64
    one, other = (saturation(64, a, rng=np.random.default_rng(0)) for a in (0.5, np.float32(0.5)))
    assert one == other


# ------------------------------------------------------------------ summaries of all results

RESULTS = {
    kind
    for module in (scaling, basin, chain, freezing, neighbours, sharpness, trained)
    for kind in vars(module).values()
    if inspect.isclass(kind)
    and dataclasses.is_dataclass(kind)
    and kind.__module__ == module.__name__
} - {neighbours.Way}


def made(kind, number):
    """A row with other numbers, and the same texts."""
    values = {"int": 3, "float": number, "str": "text", "float | str": 0.5, "bool": True}
    return kind(
        **{
            field.name: values.get(field.type, None if "None" in field.type else [])
            for field in dataclasses.fields(kind)
        }
    )


@pytest.mark.parametrize(
    "kind", sorted(RESULTS, key=lambda k: k.__name__), ids=lambda k: k.__name__
)
def test_a_summary_of_any_result_works_or_names_the_field(kind):
    rows = [made(kind, 1.0), made(kind, 3.0)]
    texts = [f.name for f in dataclasses.fields(kind) if f.type in ("str", "float | str")]
    odd = [f.name for f in dataclasses.fields(kind) if "None" in f.type or f.type in ("Array",)]
    odd += [f.name for f in dataclasses.fields(kind) if f.type.startswith(("list", "Heads"))]
    if odd:
        with pytest.raises(ValueError, match=rf"{kind.__name__}\.({'|'.join(odd)}) cannot be aver"):
            summary(rows, by=tuple(texts))
        return
    found = summary(rows, by=tuple(texts))
    (numbers,) = found.values()
    for field in dataclasses.fields(kind):
        if field.type == "float":
            assert numbers[field.name] == (2.0, pytest.approx(math.sqrt(2)))
        elif field.type == "int":
            assert numbers[field.name] == (3, 0)
    if others := [name for name in texts if name != "a"]:
        with pytest.raises(ValueError, match=rf"{kind.__name__}\.{others[0]} cannot be averaged"):
            summary(rows, by=tuple(name for name in texts if name != others[0]))


def test_a_summary_by_a_field_that_rows_do_not_have_says_which_they_have():
    rows = [called(freezing.collapse)]
    with pytest.raises(ValueError, match="Collapse has no d_k to group by: it has n, s, entropy"):
        summary(rows)


def test_scales_without_a_name_are_not_merged():
    rows = [called(saturation, a=a) for a in (lambda d_k: 1.0, lambda d_k: 0.5)]
    with pytest.raises(ValueError, match="all lambdas have the same name"):
        summary(rows)


def test_a_single_row_has_no_spread():
    (numbers,) = summary([called(saturation)]).values()
    assert all(math.isnan(spread) and math.isfinite(mean) for mean, spread in numbers.values())
