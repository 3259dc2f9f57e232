"""Tests: a NaN is never lost. (Chapters 3, 6, 7, 11 to 15.)

Wherever a definition gives NaN, a faster way to the same gives NaN too, in values and in gradients,
and nowhere else. The one exception is in the docstring of fused attention: a NaN that meets only
weights of 0, such as a value that a query may not look at.
"""

import itertools
import warnings

import numpy as np
import pytest

from attention import attention, causal_mask, fused_attention
from minigrad import Tensor, gradients, ops, unfused
from tests import oracles
from tests.cases import CASES

T, S = 5, 7
STRANGE = [np.nan, np.inf, -np.inf]


def quietly(f, *args):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return f(*args)


def with_one(array, value, rng):
    """Return the array with that value at one place."""
    changed = np.array(array)
    changed.flat[rng.integers(changed.size)] = value
    return changed


def both_passes(case):
    inputs = [
        Tensor(x, requires_grad=True) if i in case.floating else x
        for i, x in enumerate(case.inputs)
    ]
    y = case.ours(*inputs)
    return [y.data, *gradients(y.sum(), [inputs[i] for i in case.floating])]


@pytest.mark.parametrize("name", sorted({case.name for case in CASES}))
def test_an_operation_gives_nan_where_its_oracle_does_and_a_fused_one_just_there(name):
    rng = np.random.default_rng(4)
    for case in (case for case in CASES if case.name == name):
        for i in case.floating:
            if not np.size(case.inputs[i]) or not isinstance(case.inputs[i], np.ndarray):
                continue
            inputs = list(case.inputs)
            inputs[i] = with_one(inputs[i], np.nan, rng)
            spoilt = case._replace(inputs=tuple(inputs))
            tensors = [Tensor(x) if isinstance(x, np.ndarray) else x for x in inputs]
            y = np.asarray(quietly(spoilt.ours, *tensors).data)
            wanted = quietly(oracles.expected, spoilt)
            assert not (np.isnan(wanted) & ~np.isnan(y)).any(), spoilt
            if name == "masked_softmax":  # its docstring says where there is none
                np.testing.assert_array_equal(np.isnan(y), np.isnan(wanted), str(spoilt))
            if hasattr(getattr(ops, name, None), "definition") or name == "cross_entropy":
                found = quietly(both_passes, spoilt)
                with unfused():
                    composed = quietly(both_passes, spoilt)
                for one, other in zip(found, composed, strict=True):
                    np.testing.assert_array_equal(np.isnan(one), np.isnan(other), str(spoilt))


MASKS = [None, causal_mask(T, S), np.arange(T)[:, None] != 2, np.ones((T, S), bool)]


@pytest.mark.parametrize("where", ["q", "k", "v", "scale", "overflow"])
def test_fused_attention_gives_nan_where_attention_does(where):
    rng = np.random.default_rng(3)
    for mask, value in itertools.product(MASKS, STRANGE):
        arrays = {name: rng.standard_normal((2, n, 3)) for name, n in (("q", T), ("k", S))}
        arrays["v"] = rng.standard_normal((2, S, 3))
        scale = value if where == "scale" else 1.0
        if where == "overflow":
            arrays["q"], arrays["k"] = 1e200 * arrays["q"], 1e200 * arrays["k"]
        elif where != "scale":
            arrays[where] = with_one(arrays[where], value, rng)

        def both_passes(attend, arrays=arrays, mask=mask, scale=scale, **options):
            leaves = [Tensor(x, requires_grad=True) for x in arrays.values()]
            y = attend(*leaves, mask=mask, scale=scale, **options)
            return [y.data, *gradients(y.sum(), leaves)]

        wanted = quietly(both_passes, attention)
        visible = np.ones((2, T, 3), bool)
        if where == "v" and mask is not None:  # what a query may not look at: see the docstring
            spoilt = ~np.isfinite(arrays["v"]).any(axis=-1)  # (2, S)
            visible = (mask & spoilt[:, None]).any(axis=-1, keepdims=True)  # (2, T, 1)
        for block in (2, 128):
            found = quietly(lambda f=both_passes, block=block: f(fused_attention, block=block))
            lost = np.isnan(wanted[0]) & ~np.isnan(found[0])
            assert not (lost & visible).any()
            if where != "v" and block == 128:  # (of a skipped block the gradients are 0)
                for one, other in zip(found[1:], wanted[1:], strict=True):
                    assert not (np.isnan(other) & ~np.isnan(one)).any()
