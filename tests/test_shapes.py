"""Shape comments are executed: each `# (…, T, S)` in attention/ is compared with a real call.

The source is parsed, and on every line with such a comment the expression that ends there is
wrapped in a check. Then the chapters run on prime sizes, where no two axes can be confused.
"""

import ast
import re
import sys
import types
from pathlib import Path

import numpy as np
import pytest

import attention  # noqa: F401 (its modules must be there, to be put back)
from minigrad import Tensor

FOLDER = Path(__file__).parents[1] / "attention"
COMMENT = re.compile(r"#\s+\(([^()]*)\)$")
SIZES = {"B": 2, "T": 3, "S": 5, "H": 7, "d_k": 11, "d_v": 13, "d_model": 17}
CHAPTERS = ("masks", "scaled_dot_product", "multi_head")  # in the order of their imports


def commented_lines(source):
    """Line number → the shape that its trailing comment states."""
    found = {}
    for number, line in enumerate(source.splitlines(), 1):
        if match := COMMENT.search(line):
            found[number] = match.group(1)
    return found


def fits(shape, stated, sizes=SIZES):
    """Whether a shape is the stated one; … stands for any number of axes."""
    parts = [part.strip() for part in stated.rstrip(",").split(",")]
    free = parts[0] == "…"
    named = [eval(part.replace("·", "*"), {}, sizes) for part in parts[free:] if part]
    return tuple(shape[len(shape) - len(named) :]) == tuple(named) and (
        free or len(shape) == len(named)
    )


class Wrap(ast.NodeTransformer):
    """Put `_check(expression, line)` around the outermost expression ending on each such line."""

    def __init__(self, lines):
        self.lines, self.done = lines, set()

    def visit(self, node):
        line = getattr(node, "end_lineno", None)
        value = isinstance(node, ast.expr) and not isinstance(getattr(node, "ctx", None), ast.Store)
        if value and line in self.lines and line not in self.done:
            self.done.add(line)
            inside = self.generic_visit(node)
            call = ast.Call(ast.Name("_check", ast.Load()), [inside, ast.Constant(line)], [])
            return ast.copy_location(call, node)
        return self.generic_visit(node)


@pytest.fixture(scope="module")
def traced():
    """The chapters with their checks in place, and the set of (chapter, line) that have run."""
    ran, modules, before = set(), {}, dict(sys.modules)
    for name in CHAPTERS:
        source = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
        lines = commented_lines(source)

        def check(value, line, name=name, lines=lines):
            # A letter that the function gives a meaning of its own has that one: split_heads
            # calls the positions T, whether they are queries or keys.
            sizes = SIZES | {k: v for k, v in sys._getframe(1).f_locals.items() if k in SIZES}
            where = f"{name}:{line}: {value.shape} is not ({lines[line]})"
            assert fits(value.shape, lines[line], sizes), where
            ran.add((name, line))
            return value

        module = types.ModuleType(f"attention.{name}")
        module._check = check
        tree = ast.fix_missing_locations(Wrap(lines).visit(ast.parse(source)))
        sys.modules[module.__name__] = module
        exec(compile(tree, name, "exec"), module.__dict__)
        modules[name] = module
    sys.modules.update({f"attention.{name}": before[f"attention.{name}"] for name in CHAPTERS})
    return modules, ran


def test_every_shape_comment_of_attention_is_true_and_was_reached(traced):
    modules, ran = traced
    rng = np.random.default_rng(0)
    B, T, S, H = (SIZES[letter] for letter in "BTSH")
    d_k, d_v, d_model = (SIZES[letter] for letter in ("d_k", "d_v", "d_model"))
    padding = modules["masks"].padding_mask([2, 5], S)
    modules["masks"].causal_mask(T, S)
    layer = modules["multi_head"].MultiHeadAttention(d_model, H, d_k=d_k, d_v=d_v, rng=rng)
    x, memory = (Tensor(rng.standard_normal((B, n, d_model))) for n in (T, S))
    layer(x, memory, mask=padding)
    layer.weights(x, memory)
    stated = {
        (name, line)
        for name in CHAPTERS
        for line in commented_lines((FOLDER / f"{name}.py").read_text(encoding="utf-8"))
    }
    assert len(stated) > 12
    assert ran == stated


def test_a_wrong_shape_comment_would_be_noticed():
    assert fits((2, 7, 3, 11), "…, H, T, d_k")
    assert not fits((2, 7, 11, 3), "…, H, T, d_k")
    assert not fits((2, 3, 7, 11), "…, H, T, d_k")
    assert fits((2, 3, 91), "…, T, H · d_v") and not fits((2, 3, 77), "…, T, H · d_v")
    assert fits((5,), "S,") and not fits((1, 5), "S,")
