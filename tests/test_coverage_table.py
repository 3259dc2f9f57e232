"""The table of coverage: every cell of it, and that it notices what is wrong."""

import numpy as np
import pytest

from minigrad import Tensor, exp, functional, one_hot, ops, primitive
from minigrad.functional import numpy_words
from minigrad.ops import inverses
from tests import cases, coverage_table, oracles
from tests.cases import WORDS, case
from tests.coverage_table import CASES, CONSTANTS, METHODS, ROWS, cells, main, row

# ---------------------------------------------------------------- value


def counted(_, name):
    return cells(name)


@pytest.mark.parametrize("name", ROWS)
def test_each_cell_counts_cases_that_passed_or_says_why_there_are_none(name, run_once):
    for column, cell in run_once(counted, name)[1].items():
        if column != "PyTorch" or oracles.torch is not None:
            assert cell.good, "\n".join([column, str(cell), *cell.failures])


def test_the_table_has_a_row_for_every_differentiable_operation():
    public = {*ops.__all__, *functional.__all__}
    found_by_numpy_only = {
        name
        for module in (inverses, numpy_words)
        for name, f in vars(module).items()
        if callable(f) and f.__module__ == module.__name__ and name[0] != "_"
    }
    assert found_by_numpy_only == set(WORDS) and not found_by_numpy_only & public
    assert set(ROWS) == (public - CONSTANTS) | set(METHODS) | set(WORDS)
    assert set(ROWS) == {case.name for case in CASES}
    assert len(ROWS) == len(set(ROWS))
    assert not isinstance(one_hot(Tensor([2, 0]), 3), Tensor)  # the only constant


# ---------------------------------------------------------------- law: the checks are checked


@primitive
def right(x, /):
    return lambda: np.exp(x), lambda g, y: g * y


@primitive
def slightly_wrong(x, /):
    return lambda: np.exp(x), lambda g, y: g * y * 1.0005


@primitive
def cut(x, /):
    return lambda: np.exp(x), lambda g, y: g * np.exp(getattr(x, "data", x))


@primitive
def of_a_cut_seed(x, /):
    return lambda: np.exp(x), lambda g, y: getattr(g, "data", g) * y


@primitive
def wide(x, /):
    return lambda: np.exp(x.astype(float)).astype(x.dtype), lambda g, y: g * y * np.float64([1.0])


@primitive
def halved(a, b, /):
    """Add; the gradient of a stretched b is a mean where it should be a sum."""
    n = a.size // b.size
    return lambda: a + b, lambda g, y: g, lambda g, y: g / n


WRONG = {
    "nothing": ("exp", right, set()),
    "a value": ("exp", lambda x: right(x) * (1 + 1e-9), {"value", "PyTorch"}),
    "a plain result": ("exp", lambda x: right(x) if type(x) is Tensor else Tensor(x), {"value"}),
    "a slope": ("exp", slightly_wrong, {"order 1", "order 2", "PyTorch"}),
    "a cut second order": ("exp", cut, {"order 2"}),
    "a cut seed": ("exp", of_a_cut_seed, {"order 2", "jvp·vjp"}),
    "a dtype": ("exp", wide, {"float32"}),
    "a sum over copies": ("add", halved, {"order 1", "order 2", "broadcasting", "PyTorch"}),
}


@pytest.mark.parametrize(("name", "operation", "columns"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_fails_in_the_columns_that_look_at_it(monkeypatch, name, operation, columns):
    monkeypatch.setitem(cases.OURS, name, operation)
    inputs = [cases.x(3, 5)] if name == "exp" else [cases.x(3, 5), cases.x(5)]
    found = row(name, [case(name, *inputs)])
    if oracles.torch is None:
        columns = columns - {"PyTorch"}
    assert {column for column, cell in found.items() if cell.failures} == columns


def test_a_cell_without_a_count_needs_a_reason_and_one_with_a_count_must_have_none():
    assert not row("exp", [])["value"].good
    assert not coverage_table.Cell(3, (), "one input").good
    assert str(coverage_table.Cell(3, ("why",), "")) == "1 FAILED"


def test_the_command_says_what_failed(monkeypatch, capsys):
    monkeypatch.setitem(cases.OURS, "exp", lambda x: exp(x) * 2.0)
    monkeypatch.setattr(coverage_table, "cells", coverage_table.cells.__wrapped__)
    assert main("exp") == 1
    printed = capsys.readouterr().out
    assert "exp, value: 2 failed, 1 passed" in printed and "exp (3,5): AssertionError" in printed
