"""What cannot be is refused in a sentence: every row of `refusals.py`."""

import builtins

import pytest

from minigrad import Tensor
from tests.refusals import REFUSALS, names


@pytest.mark.parametrize(("call", "error", "words"), REFUSALS, ids=[row[0] for row in REFUSALS])
def test_what_cannot_be_is_refused_in_a_sentence_and_changes_no_tensor(call, error, words):
    given = names()
    leaves = [t for t in given.values() if isinstance(t, Tensor)]
    before = [t.data for t in leaves]
    with pytest.raises(getattr(builtins, error), match=words):
        exec(call, given)
    for t, array in zip(leaves, before, strict=True):
        assert t.grad is None and t.data is array
