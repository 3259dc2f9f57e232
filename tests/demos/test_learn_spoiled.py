"""Exercises: our solutions without a return, or without the use of an option, are refused."""

import ast
import re

import pytest

from demos.learn import EXERCISES
from demos.learn._running import judged
from demos.learn.exercises import FOLDER, solution

# Of these nothing is asked that the learner does not see: their sentences are not for a learner.
NOT_SAID = "cannot go on|NoneType|memoryview|object has no attribute|object is not|sub-views"


def refused(name, tree):
    """Return what the check says of our solution, after a change of its tree."""
    found = judged(FOLDER / f"{name}.py", name, ast.unparse(ast.fix_missing_locations(tree)))
    assert not found.solved and not re.search(NOT_SAID, found.said), found.said
    return found.said


# ---------------------------------------------------------------- a forgotten return


class Forgetful(ast.NodeTransformer):
    """A change of a function that turns each `return x` into `x`."""

    def visit_FunctionDef(self, node):
        return node  # (functions within it return as they did)

    def visit_Return(self, node):
        return ast.Expr(node.value)


@pytest.mark.parametrize("name", EXERCISES)
def test_a_forgotten_return_is_told(name):
    lines = solution(name).splitlines()
    for number, node in enumerate(ast.parse(solution(name)).body):
        text = "\n".join(lines[node.lineno - 1 : node.end_lineno + 1])
        if isinstance(node, ast.FunctionDef) and "Your lines" in text and "return" in text:
            tree = ast.parse(solution(name))
            Forgetful().generic_visit(tree.body[number])
            assert "returned None: is a return missing?" in refused(name, tree), node.name


# ---------------------------------------------------------------- an option that is not used

# The options of each exercise's functions, and what the main part of its check gives for them.
OPTIONS = {
    "e01_slope": {"slope": {"h": 0.5}},
    "e08_sum": {"sum": {"axis": None, "keepdims": False}},
    "e15_layer_norm": {"layer_norm": {"eps": 1e-5}},
    "e21_heads": {"split": {"num_heads": 3}},
    "e22_backward": {"backward": {"scale": 7**-0.5, "may_look": True}},
    "e23_optimizer": {
        "momentum_step": {"lr": 0.1, "momentum": 0.9},
        "adam_step": {"lr": 0.1, "t": 1, "b1": 0.9, "b2": 0.999, "eps": 1e-8},
    },
    "e24_reverse": {"block": {"num_heads": 2}, "step": {"lr": 0.01}},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_a_solution_that_does_not_use_an_option_is_refused(name):
    pairs = [(f, *each) for f, options in OPTIONS[name].items() for each in options.items()]
    for function, option, value in pairs:
        tree = ast.parse(solution(name))
        node = next(n for n in tree.body if getattr(n, "name", "") == function)
        node.body.insert(1, ast.parse(f"{option} = {value!r}").body[0])  # (after the docstring)
        refused(name, tree)
