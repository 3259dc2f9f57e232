"""Chapter 6.5 · Vocabulary: PyTorch's names of functions and classes are answered with ours."""

import importlib
import inspect
import pickle
import pkgutil
import re
from pathlib import Path

import numpy as np
import pytest

import attention
import minigrad
from minigrad import Tensor
from minigrad.functional.vocabulary import OTHER_NAMES, OTHER_WORDS
from tests.making import M as A

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def leaf(values=A):
    return Tensor(values, requires_grad=True, name="t")


NAMES = {name: text.format(name) for names, text in OTHER_NAMES.items() for name in names.split()}


def imported(module, name):
    exec(f"from {module} import {name}", {})


@pytest.mark.parametrize("module", ["minigrad", "minigrad.nn", "minigrad.optim"])
@pytest.mark.parametrize("name", [*NAMES, *sorted(OTHER_WORDS.keys() - dir(minigrad))])
def test_a_name_of_pytorchs_is_answered_with_ours_and_is_an_ordinary_lack(module, name):
    if (module, name) == ("minigrad", "functional"):
        return  # minigrad has a package of that name
    holder = importlib.import_module(module)
    expected = f"{module} has no {name}: use {NAMES.get(name) or OTHER_WORDS[name]}"
    for ask, error in ((getattr, AttributeError), (imported, ImportError)):
        with pytest.raises(error) as caught:
            ask(holder if ask is getattr else module, name)
        assert str(caught.value) == expected
    assert not hasattr(holder, name) and getattr(holder, name, "none") == "none"


@pytest.mark.parametrize("name", NAMES)
def test_what_the_answer_names_is_there_and_works(name):
    code = NAMES[name].partition(" (")[0]
    code = code.removeprefix("a loop over slices of ")
    code = code.replace("...", "3, 4" if name in ("full", "linspace") else "3")
    model = minigrad.nn.Linear(3, 2, rng=np.random.default_rng(0))
    names = {"np": np, "minigrad": minigrad, "attention": attention, "Tensor": Tensor}
    names |= {"t": leaf(), "u": leaf(A.T), "values": A, "n": 3, "shape": (6, 1), "f": np.exp}
    names |= {"model": model, "parameters": model.parameters(), "max_norm": 1.0}
    names |= {"rng": np.random.default_rng(0), "step": 1}
    names |= {"schedule": {"peak": 1.0, "warmup": 1, "total": 9}}
    names |= {"prediction": leaf(), "target": A, "path": "/nowhere/at/all"}
    names["loss"] = names["t"].sum()
    if code in ("a list", "a dict"):
        holder = minigrad.nn.Module()
        holder.members = [model] if code == "a list" else {"first": model}
        assert len(holder.parameters()) == 2
    elif name in ("save", "load"):
        with pytest.raises(FileNotFoundError, match="/nowhere/at/all|no folder /nowhere/at"):
            exec(code, names)
    else:
        exec(f"found = {code.rpartition(' = ')[2]}", names)
        assert names["found"] is not None


def test_a_name_that_lives_in_another_of_our_modules_is_answered_with_that_module():
    for module, name, there in [
        ("minigrad", "Linear", "minigrad.nn.Linear"),
        ("minigrad", "Adam", "minigrad.optim.Adam"),
        ("minigrad.nn", "relu", "minigrad.relu"),
        ("minigrad.optim", "no_grad", "minigrad.no_grad"),
    ]:
        with pytest.raises(ImportError, match=f"^{module} has no {name}: use {there}$"):
            imported(module, name)


def test_a_name_that_no_table_knows_gets_pythons_own_error():
    with pytest.raises(AttributeError, match="^module 'minigrad' has no attribute 'describe'$"):
        minigrad.describe  # noqa: B018 (minigrad.optim imports one, and does not offer it)
    with pytest.raises(ImportError, match="^cannot import name 'reluu' from 'minigrad' "):
        imported("minigrad", "reluu")


def test_what_looks_at_a_module_finds_what_it_has():
    for module in (minigrad, minigrad.nn, minigrad.optim):
        space = {}
        exec(f"from {module.__name__} import *", space)
        public = getattr(module, "__all__", None) or ["SGD", "Adam", "warmup_cosine"]
        assert set(public) <= space.keys() and not NAMES.keys() & space.keys()
        for name in public:
            assert pickle.loads(pickle.dumps(space[name])) is space[name]
        assert dict(inspect.getmembers(module)).keys() >= set(public)
        assert inspect.unwrap(module) is module and inspect.getsource(module)


def test_modules_are_still_found_by_from_import():
    for name in ("idea", "optim", "saving", "checkpoints"):  # the last two by their old paths
        imported("minigrad", name)
    assert not NAMES.keys() & {m.name for m in pkgutil.walk_packages(minigrad.__path__)} - {
        "functional"
    }


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


CLASSES = ["ReLU", "LeakyReLU", "ELU", "GELU", "SiLU", "Softplus", "Sigmoid", "Tanh", "Flatten"]
CLASSES += ["LogSigmoid"]


@pytest.mark.parametrize("name", [*CLASSES, "Softmax", "LogSoftmax", "Identity"])
def test_the_function_named_for_a_class_of_pytorchs_computes_the_same(name):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    options = {"dim": -1} if "Softmax" in name else {}
    expected = getattr(torch.nn, name)(**options)(torch.tensor(A))
    found = eval(NAMES[name], {"np": np, "minigrad": minigrad})(leaf())
    np.testing.assert_allclose(found.data, expected.numpy(), rtol=1e-12)
