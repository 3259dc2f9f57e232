"""Exercises: our solutions, spoiled in the ways of a tired evening; each is told what is wrong."""

import ast
import re

import pytest

from demos.learn import EXERCISES
from demos.learn._running import judged
from demos.learn.exercises import FOLDER, solution

# Put at the end of a solution: what its functions return goes through `spoil`.
SPOIL = '''

def spoil(how, found):
    """What a function returns, spoiled: each of its values, or each of its VJPs."""
    import numpy as np
    from minigrad import Tensor

    def spoiled(x):
        if how == "a VJP of None":
            return (lambda *given: None) if callable(x) else x
        if how == "an array for a Tensor":
            return x.data if isinstance(x, Tensor) else x
        return x * np.nan if isinstance(x, Tensor | np.ndarray | float) else x

    return tuple(map(spoiled, found)) if isinstance(found, tuple) else spoiled(found)
'''
WORDS = {  # what must be said of each
    "a forgotten return": r"returned None: is a return missing\?",
    "an array for a Tensor": "is an array, not a Tensor: the gradient of .* is lost",
    "NaN": r"\bnan\b|NaN",
    "a VJP of None": r"the VJP of \w+ for input 0 gave None: is a return missing\?",
}
# Of these nothing is asked that the learner does not see: their sentences are not for a learner.
NOT_SAID = "cannot go on|NoneType|memoryview|object has no attribute|object is not|sub-views"


def functions(name):
    """The functions of an exercise that have a hole and return something."""
    lines = solution(name).splitlines()
    for node in ast.parse(solution(name)).body:
        text = "\n".join(lines[node.lineno - 1 : node.end_lineno + 1])
        if isinstance(node, ast.FunctionDef) and "Your lines" in text and "return" in text:
            yield node


class Spoiled(ast.NodeTransformer):
    """A function, in which each `return x` has become `x` or `return spoil(how, x)`."""

    def __init__(self, how):
        self.how, self.inside = how, False

    def visit_FunctionDef(self, node):
        if not self.inside:  # (functions within it return as they did)
            self.inside = True
            self.generic_visit(node)
        return node

    def visit_Return(self, node):
        if self.how == "a forgotten return":
            return ast.Expr(node.value)
        spoil = ast.Name("spoil", ast.Load())
        return ast.Return(ast.Call(spoil, [ast.Constant(self.how), node.value], []))


def spoiled(name, function, how):
    """An exercise's file with our solution, of which one function is spoiled."""
    tree = ast.parse(solution(name))
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == function:
            Spoiled(how).visit(node)
    return ast.unparse(ast.fix_missing_locations(tree)) + SPOIL


def changes(name, function, how):
    """Whether what a function returns is something that this way of spoiling changes."""
    tensors = ("e19_attention", "e20_mask", "e21_heads", "e24_reverse")
    rules = re.search(r"@(minigrad\.)?primitive\ndef " + function, solution(name))
    if how == "an array for a Tensor":
        return name in tensors
    if "VJP" in how:
        return bool(rules)
    return how != "NaN" or name != "e05_order"


@pytest.mark.parametrize("name", EXERCISES)
def test_a_spoiled_solution_is_told_in_which_way(name):
    for function in (node.name for node in functions(name)):
        for how in (how for how in WORDS if changes(name, function, how)):
            found = judged(FOLDER / f"{name}.py", name, spoiled(name, function, how))
            assert not found.solved, (function, how)
            assert re.search(WORDS[how], found.said, re.IGNORECASE), found.said
            assert not re.search(NOT_SAID, found.said), found.said


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
        text = ast.unparse(ast.fix_missing_locations(tree))
        found = judged(FOLDER / f"{name}.py", name, text)
        assert not found.solved, (function, option)
        assert not re.search(NOT_SAID, found.said), found.said
