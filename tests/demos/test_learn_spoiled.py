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

    def fail(*given):
        raise ValueError("no such thing")

    def spoiled(x):
        if callable(x):
            return {
                "a VJP that raises": fail,
                "a VJP of None": lambda *given: None,
                "a VJP of a list": lambda *given: x(*given).tolist(),
                "a VJP of NaN": lambda *given: x(*given) * np.nan,
            }.get(how, x)
        if how == "an array for a Tensor":
            return x.data if isinstance(x, Tensor) else x
        if how == "a list":
            return getattr(x, "data", x).tolist() if isinstance(x, Tensor | np.ndarray) else x
        return x * np.nan if how == "NaN" and isinstance(x, Tensor | np.ndarray | float) else x

    return tuple(map(spoiled, found)) if isinstance(found, tuple) else spoiled(found)
'''
# What must be said of each. A list is right where the check takes a list as it takes an array.
WORDS = {
    "a forgotten return": r"returned None: is a return missing\?",
    "an array for a Tensor": "is an array, not a Tensor: the gradient of .* is lost",
    "a list": "is a list|gave list, not an array",
    "NaN": r"\bnan\b|NaN",
    "a VJP that raises": r"\)[^\n]*\.\n\w+\.py, line \d+, in fail: ValueError: .*no such thing",
    "a VJP of None": r"the VJP of \w+ for input 0 gave None: is a return missing\?",
    "a VJP of a list": "the VJP of .* gave list, not an array",
    "a VJP of NaN": "There the gradient is nan",
}
# Of these nothing is asked that the learner does not see: their sentences are not for a learner.
NOT_SAID = "cannot go on|NoneType|memoryview|object has no attribute|object is not|sub-views"


def functions():
    """The exercises, and their functions that have a hole and return something."""
    for name in EXERCISES:
        lines = solution(name).splitlines()
        for node in ast.parse(solution(name)).body:
            text = "\n".join(lines[node.lineno - 1 : node.end_lineno + 1])
            if isinstance(node, ast.FunctionDef) and "Your lines" in text and "return" in text:
                yield name, node.name


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


@pytest.mark.parametrize(
    ("name", "function", "how"),
    [(*each, how) for each in functions() for how in WORDS if changes(*each, how)],
)
def test_a_spoiled_solution_is_told_in_which_way(name, function, how):
    found = judged(FOLDER / f"{name}.py", name, spoiled(name, function, how))
    if not (how == "a list" and found.solved):
        assert not found.solved
        assert re.search(WORDS[how], found.said, re.IGNORECASE), found.said
        assert not re.search(NOT_SAID, found.said), found.said


# ---------------------------------------------------------------- an option that is not used

USED = {  # what the main part of a check gives as these arguments that have no default
    ("e01_slope", "slope", "h"): 0.5,
    ("e21_heads", "split", "num_heads"): 3,
    ("e22_backward", "backward", "scale"): 7**-0.5,
    ("e23_optimizer", "momentum_step", "lr"): 0.1,
    ("e23_optimizer", "adam_step", "lr"): 0.1,
    ("e23_optimizer", "adam_step", "t"): 1,
    ("e24_reverse", "block", "num_heads"): 2,
    ("e24_reverse", "step", "lr"): 0.01,
}


def options():
    """Every argument with a default value, and those above: what a learner might not use."""
    found = dict(USED)
    for name in EXERCISES:
        for node in ast.parse(solution(name)).body:
            if (name, getattr(node, "name", "")) in functions():
                given = node.args.args[len(node.args.args) - len(node.args.defaults) :]
                pairs = [*zip(given, node.args.defaults, strict=True)]
                pairs += zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
                for argument, default in pairs:
                    if isinstance(default, ast.Constant):
                        found[name, node.name, argument.arg] = default.value
    return [(*key, value) for key, value in found.items()]


@pytest.mark.parametrize(("name", "function", "option", "value"), options())
def test_a_solution_that_does_not_use_an_option_is_refused(name, function, option, value):
    tree = ast.parse(solution(name))
    node = next(n for n in tree.body if getattr(n, "name", "") == function)
    node.body.insert(1, ast.parse(f"{option} = {value!r}").body[0])  # (after the docstring)
    found = judged(FOLDER / f"{name}.py", name, ast.unparse(ast.fix_missing_locations(tree)))
    assert not found.solved
    assert not re.search(NOT_SAID, found.said), found.said
