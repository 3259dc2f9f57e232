"""Chapter 6.5 · Vocabulary: words that mean something else in PyTorch; what a module offers."""

import pickle
import re
from pathlib import Path

import numpy as np
import pytest

import minigrad
from minigrad import Tensor

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def test_what_looks_at_a_module_finds_what_it_has():
    for module in (minigrad, minigrad.nn, minigrad.optim):
        space = {}
        exec(f"from {module.__name__} import *", space)
        assert set(module.__all__) <= space.keys()
        for name in module.__all__:
            assert pickle.loads(pickle.dumps(space[name])) is space[name]


OTHERWISE = re.findall(r"^\| `(t\.[^|]+)` \| `(t\.|np\.)([^|]+)` \|", README, re.MULTILINE)


@pytest.mark.parametrize("row", OTHERWISE, ids=[row[0] for row in OTHERWISE])
def test_what_the_readme_gives_for_a_word_with_another_meaning_computes_what_pytorchs_does(row):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    theirs, start, rest = row
    compared = 0
    for shape in ((6,), (4, 6)):
        t = np.random.default_rng(0).standard_normal(shape)
        pairs = zip(theirs.split("`, `"), f"{start}{rest}".split("`, `"), strict=True)
        for their, our in pairs:
            try:
                wanted = eval(their, {"t": torch.tensor(t)})
            except (RuntimeError, IndexError):
                continue  # PyTorch has no such call for this number of axes
            found = eval(our, {"np": np, "t": Tensor(t, requires_grad=True)})
            as_lists = isinstance(wanted, tuple)
            for one, other in zip(
                found if as_lists else [found], wanted if as_lists else [wanted], strict=True
            ):
                np.testing.assert_allclose(getattr(one, "data", one), np.asarray(other), rtol=1e-12)
            compared += 1
    assert compared
