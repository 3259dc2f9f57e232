"""Chapter 0 · The idea: on its own legs, and equal to the engine."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import minigrad
from minigrad import idea
from tests.test_book import NUMBERED
from tests.test_readme import BLOCKS

RNG = np.random.default_rng(7)


def printed(capsys):
    """The numbers that each line of the output ends with."""
    lines = capsys.readouterr().out.splitlines()
    return [np.array(line.partition("[[")[2].strip("]").split(), float) for line in lines]


def test_it_prints_the_numbers_of_readmes_first_block(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(BLOCKS[0], "README", "exec"), {})
    (by_the_engine,) = printed(capsys)
    idea.main()
    by_these_lines, by_differences = printed(capsys)
    np.testing.assert_array_equal(by_these_lines, by_the_engine)
    np.testing.assert_allclose(by_differences, by_the_engine, rtol=1e-7)


def test_importing_it_prints_nothing_and_running_it_does():
    run = lambda *arguments: subprocess.run(
        [sys.executable, "-W", "error", *arguments], capture_output=True, text=True, check=True
    )
    assert run("-c", "import minigrad.idea").stdout == ""
    assert run("-m", "minigrad.idea").stdout.count("[[-0.69709084") == 2


PAIRS = {
    "matmul": (idea.matmul, lambda a, b: a @ b, [(3, 5), (5, 2)]),
    "transpose": (idea.transpose, lambda a: a.mT, [(3, 5)]),
    "multiply": (idea.multiply, lambda a, b: a * b, [(3, 5), (3, 5)]),
    "minus_log": (idea.minus_log, lambda p: -np.log(p), [(3, 5)]),
    "softmax": (idea.softmax, minigrad.softmax, [(3, 5)]),
    "attention weights": (
        idea.attention_weights,
        lambda q, k: minigrad.softmax(q @ k.mT / np.sqrt(7)),
        [(3, 7), (5, 7)],
    ),
    "a value used at three depths": (
        lambda x: idea.multiply(idea.multiply(y := idea.softmax(x), idea.matmul(y, x)), y),
        lambda x: (y := minigrad.softmax(x)) * (y @ x) * y,
        [(3, 3)],
    ),
}


@pytest.mark.parametrize(("small", "large", "shapes"), PAIRS.values(), ids=PAIRS)
def test_every_operation_is_that_of_the_engine_in_value_and_gradient(small, large, shapes):
    arrays = [RNG.uniform(0.5, 1.5, shape) for shape in shapes]
    values = [idea.Value(a) for a in arrays]
    tensors = [minigrad.Tensor(a, requires_grad=True) for a in arrays]
    y, t = small(*values), large(*tensors)
    idea.backward(y)
    t.backward(np.ones(t.shape))
    np.testing.assert_allclose(y.array, t.data, rtol=1e-12)
    for x, tensor in zip(values, tensors, strict=True):
        np.testing.assert_allclose(x.grad, tensor.grad, rtol=1e-10, atol=1e-14)


def test_it_is_whole_in_one_file():
    names = runpy.run_path(idea.__file__, run_name="alone")
    assert not any(getattr(x, "__module__", "").startswith("minigrad") for x in names.values())


OPENS = re.compile(r'^""".*\n\nIn chapter 0: `(.+)`\.\n\n')


def test_chapters_open_with_the_line_of_chapter_0_that_they_replace():
    text = Path(idea.__file__).read_text(encoding="utf-8")
    found = {path: OPENS.match(path.read_text(encoding="utf-8")) for path in NUMBERED}
    lines = [match[1] for match in found.values() if match]
    assert len(lines) == 13 and all(line in text for line in lines)
