"""Types: what mypy --strict says of a user's file, which is not in the project's folder."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import attention
import minigrad.nn
import minigrad.optim
from minigrad import functional, ops
from tests.test_readme import BLOCKS

pytest.importorskip("mypy", reason="types are checked by mypy")

ROOT = Path(__file__).parents[1]
PACKAGES = (minigrad, minigrad.nn, minigrad.optim, attention)
OWN = """
from collections.abc import Callable

import numpy as np

from minigrad import Tensor, cross_entropy, exp, layer_norm, mse, softmax
from minigrad.nn import Linear, Module, functional_call
from minigrad.optim import AdamW


class Net(Module):
    def __init__(self, rng: np.random.Generator) -> None:
        self.layer = Linear(3, 5, rng=rng)

    def forward(self, x: Tensor, *, power: int = 1) -> Tensor:
        return softmax(self.layer(x), axis=-1) ** power


class Called(Module):
    def __call__(self, x: Tensor) -> tuple[Tensor, int]:
        return exp(x), 3


def use(f: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    if isinstance(f, Module):
        f.eval()
    return f


rng = np.random.default_rng(0)
net, x = Net(rng), Tensor(np.ones((7, 3)))
decayed, others = net.parameters()[:1], net.parameters()[1:]
optimizer = AdamW([{"params": decayed}, {"params": others, "weight_decay": 0.0, "lr": 0.1}])
use(net)
reveal_type(net(x, power=2))  # Tensor
reveal_type(Called()(x))  # tuple[Tensor, int]
reveal_type(Module()(x))  # Any
reveal_type(functional_call(net, {}, x))  # Tensor
reveal_type(softmax)  # def (Any, axis: Any =) -> Tensor
reveal_type(layer_norm)  # def (Any, Any, Any, eps: Any =) -> Tensor
reveal_type(mse)  # def (prediction: Any, target: Any, *, reduction: str =) -> Tensor
reveal_type(optimizer.lr)  # float
"""
WHERE = "minigrad.engine.tensor."
WRONG = """
text: str = net(x)  # Incompatible types in assignment
softmax(x, axes=0)  # Unexpected keyword argument
x.summ()  # "Tensor" has no attribute
AdamW([3.0])  # incompatible type
cross_entropy(x, [0], ignore_index="a")  # incompatible type
"""


def strict(folder, programs, *options):
    """Return mypy's lines about these programs, each of which is a file of its own."""
    for name, program in programs.items():
        (folder / name).write_text(program, encoding="utf-8")
    # (silent: an installed package is not checked, and its types are read)
    asked = ["--strict", "--config-file=", "--follow-imports=silent", "--no-error-summary"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *asked, "--cache-dir=cache", *options, *sorted(programs)],
        cwd=folder,
        env=os.environ | {"MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    return done.stdout.splitlines()


def test_readmes_programs_and_a_users_own_pass_mypy_strict_and_its_mistakes_do_not(tmp_path):
    readme = {f"readme_{i}.py": block for i, block in enumerate(BLOCKS)}
    # (A rule is called with arrays and with Tensors, and README leaves its argument untyped.)
    rules = {name: block for name, block in readme.items() if "@primitive" in block}
    assert len(rules) == 1 and strict(tmp_path, rules, "--allow-untyped-defs") == []

    others = {name: block for name, block in readme.items() if name not in rules}
    starred = [f"from {package.__name__} import *" for package in PACKAGES]
    names = [f"print({name})" for package in PACKAGES for name in package.__all__]
    others["starred.py"] = "\n".join([*starred, *names])
    found = strict(tmp_path, {**others, "own.py": OWN + WRONG})
    revealed = re.findall('Revealed type is "(.*)"', "\n".join(found).replace(WHERE, ""))
    assert revealed == re.findall(r"^reveal_type\(.*\)  # (.*)$", OWN, re.MULTILINE)
    errors = [line for line in found if ": error: " in line]
    for number, line in enumerate(WRONG.strip().splitlines(), OWN.count("\n") + 2):
        of_line = [error for error in errors if error.startswith(f"own.py:{number}: ")]
        assert line.partition("  # ")[2] in "".join(of_line)
        errors = [error for error in errors if error not in of_line]
    assert errors == []


def test_a_star_brings_every_operation_but_those_that_python_has():
    assert {*ops.__all__, *functional.__all__} - {*minigrad.__all__} == {"abs", "max", "min", "sum"}
