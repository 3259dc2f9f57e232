"""Arrows run downwards: demos → attention → minigrad, and inside each from a floor to lower ones.

An arrow is an import of one file by another, wherever it stands: in a function and under
TYPE_CHECKING too. (A name in a string, as `import_module` takes it, is not seen.) A file on a floor
can be read, tested and changed without what is above it. `python -m tests.test_imports` counts.
"""

import ast
import functools
import re
import subprocess
import sys
from importlib.util import resolve_name
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# The floors, from below. A line has a folder and its files from the left: each stands above what is
# before it. A number stands for the chapters that begin with it, in the order of their numbers, and
# then, if it is a chapter, for the folder's `__init__`; `*` for the rest of the folder, files that
# do not know one another.
HOUSE = """
minigrad                     0
minigrad/runs                __init__ saving memory
minigrad/engine              __init__ freeing options hints 1 slips 2 safety
minigrad/ops                 3.1 error_function 3
minigrad/checks              __init__ 4.1 rounding 4.2 comparing culprit mistakes explaining
minigrad/checks              agreeing 4.3
minigrad/functional          manipulation 6 numpy_words table
minigrad/nn                  initial 7 substitution __init__
minigrad/graphs              operations summary model variable_names names scale folding worked text
minigrad/graphs              render page steps drawing 5
minigrad                     8
minigrad/runs                checkpoints sweeps
minigrad                     __init__

attention                    figures cache 11 12 13 14 15 16 encoders mapping maps __init__
attention/laboratory         16 figures __init__

demos                        _files _json_lines _training __init__
demos/pages                  __init__ templates text source tables book page content publish
demos                        _training_curves
demos/live                   __init__ _loop
demos/pictures               __init__ draws way_back *
demos/pretrained             __init__ _loading _figures _heads _agreement _kept_heads _real_heads *
demos/laboratory/explorable  __init__
demos/laboratory             __init__ _figures _steps _trained _over_training _laws _gradients _gpt
demos/laboratory             _pages *
demos/first                  __init__ _back _cases _sweep *
demos/tasks                  __init__ _counting *
demos/texts/sources          __init__ *
demos/texts                  __init__ _one_vector _two_places _text_page *
demos/museum/exhibits        __init__ _engine *
demos/museum                 __init__ _pages *
demos/learn                  __init__
demos/learn/exercises        __init__ *
demos/learn                  _telling _running
demos/learn/checks           __init__ *
demos/learn                  _mistakes _moving _grading _pages *
demos/live                   _examples _answers _chapter_0 _judging _definitions _breaks
demos/live                   _exercises _reader _runtime _try *
demos/speed/bench            __init__ rows by_hand by_hand_step changes programs race report *
demos/speed                  __init__ _crew *
demos/site                   __init__ _contents _book _notebooks _questions _rows _chapters
demos/site                   _checking _document _demos _landing _words _tasks _sections _serving *
demos                        __main__
"""
UP = {  # the arrows that run up, and why
    ("minigrad/engine/tensor", "minigrad/engine/record"): "`p -= step` asks whether it is recorded",
    ("minigrad/engine/tensor", "minigrad/engine/words"): "a Tensor inherits its words",
    ("minigrad/engine/words", "minigrad/engine/autograd"): "`t.backward()` imports it when called",
}
OTHERS = {  # what the two packages may import from elsewhere, but for Python's own modules
    "minigrad": {"numpy", "safetensors", "scipy"},
    "attention": {"numpy", "matplotlib"},
}


def tree():
    """Return the text of each file of the three packages, by its path without .py."""
    paths = [path for package in ("minigrad", "attention", "demos") for path in walked(package)]
    return {path.with_suffix("").as_posix(): (ROOT / path).read_text("utf-8") for path in paths}


def walked(package):
    """Return the Python files of a package."""
    return sorted(path.relative_to(ROOT) for path in (ROOT / package).rglob("*.py"))


parsed = functools.cache(ast.parse)


def imported(file, text):
    """Yield the dotted names that the imports of a file ask for."""
    package = file.replace("/", ".").rpartition(".")[0]
    for node in ast.walk(parsed(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = resolve_name("." * node.level + (node.module or ""), package)
            yield from (f"{module}.{alias.name}" for alias in node.names)


def arrows(files):
    """Return which files each file imports, and which packages from elsewhere.

    `from minigrad.nn import layers` leads to a file, `from minigrad.nn import Linear` to
    `minigrad/nn/__init__`: the longest beginning of a name that is a file.
    """
    inside = {file: set() for file in files}
    outside = {file: set() for file in files}
    for file, text in files.items():
        for dotted in imported(file, text):
            parts = dotted.split(".")
            beginnings = ["/".join(parts[:n]) for n in range(len(parts), 0, -1)]
            candidates = [path + end for path in beginnings for end in ("", "/__init__")]
            targets = [path for path in candidates if path in files]
            if targets:
                inside[file].add(targets[0])
            else:
                outside[file].add(parts[0])
    return inside, outside


def chapters(files):
    """Return the number of each file that is a chapter: (3, 6)."""
    docstrings = {file: ast.get_docstring(parsed(text)) or "" for file, text in files.items()}
    numbers = {file: re.match(r"([\d.]+) · ", text) for file, text in docstrings.items()}
    return {file: tuple(map(int, n[1].split("."))) for file, n in numbers.items() if n}


def floors(files):
    """Return the floor of each file, a number, and the words of HOUSE for which there is none."""
    numbers, placed, missing = chapters(files), {}, []
    for line in filter(None, HOUSE.splitlines()):
        folder, *words = line.split()
        for word in words:
            rest = [f for f in files if f.rpartition("/")[0] == folder and f not in placed]
            if word[0].isdigit():
                start = [int(n) for n in word.split(".")]
                rest = [f for f in rest if list(numbers.get(f, ()))[: len(start)] == start]
                rest.sort(key=lambda f: (f.endswith("/__init__"), numbers[f]))
            elif word != "*":
                rest = [f for f in rest if f == f"{folder}/{word}"]
            if not rest:
                missing.append(f"{folder} {word}")
            floor = len(placed)
            for file in rest:
                placed[file] = floor if word == "*" else len(placed)
    return placed, missing


def circles(inside):
    """Return the sets of files of which each leads to each other."""

    def reached(file):
        found, waiting = set(), [file]
        while waiting:
            new = inside[waiting.pop()] - found
            found |= new
            waiting += new
        return found

    behind = {file: reached(file) for file in inside}
    return {
        frozenset(other for other in behind[file] if file in behind[other])
        for file in inside
        if file in behind[file]
    }


def complaints(files):
    """Return what is wrong with the imports of these files, a line for each arrow."""
    (inside, outside), (floor, missing) = arrows(files), floors(files)
    wrong = [f"HOUSE has a place for {words}, which is not there" for words in missing]
    wrong += [f"{file} has no place in HOUSE" for file in files if file not in floor]
    for file in floor:
        above = {other for other in inside[file] if floor.get(other, 0) >= floor[file]}
        wrong += [f"{file} → {other} runs up" for other in above if (file, other) not in UP]
        allowed = OTHERS.get(file.split("/")[0], outside[file]) | sys.stdlib_module_names
        wrong += [f"{file} → {other} is not allowed" for other in outside[file] - allowed]
    unused = [pair for pair in UP if pair[1] not in inside.get(pair[0], ())]
    return wrong + [f"{file} → {other} is not there any more" for file, other in unused]


TREE = tree()


def test_every_arrow_runs_down():
    assert not complaints(TREE)


def test_there_is_no_circle_but_that_of_a_tensor_and_its_words():
    (circle,) = circles(arrows(TREE)[0])
    assert circle >= {file for pair in UP for file in pair}
    assert all(file.startswith("minigrad/engine/") for file in circle)


def test_a_chapters_floor_is_its_number():
    """(A chapter that is a folder's `__init__` gathers the files of its folder.)"""
    (floor, _), numbers = floors(TREE), chapters(TREE)
    alone = [file for file in numbers if not file.endswith("/__init__")]
    assert sorted(alone, key=floor.get) == sorted(alone, key=numbers.get)


@pytest.mark.parametrize(
    ("file", "line", "complaint"),
    [
        ("minigrad/ops/reduce", "import torch", "torch is not allowed"),
        (
            "minigrad/nn/layers",
            "def f():\n    from attention import gpt2",
            "attention/__init__ runs up",
        ),
        ("minigrad/optim", "from demos.learn import learn", "demos/learn/learn runs up"),
        ("minigrad/nn/layers", "import tests.making", "tests is not allowed"),
        ("minigrad/nn/layers", "from minigrad import Tensor", "minigrad/__init__ runs up"),
        (
            "minigrad/ops/shape",
            "from minigrad.ops import softmaxes",
            "minigrad/ops/softmaxes runs up",
        ),
        ("minigrad/ops/shape", "from . import softmaxes", "minigrad/ops/softmaxes runs up"),
        (
            "minigrad/engine/record",
            "from minigrad.engine.rules import fused",
            "engine/rules runs up",
        ),
        ("attention/masks", "import attention.models", "attention/models runs up"),
        ("attention/masks", "from demos import options", "demos/__init__ runs up"),
        ("demos/pages/text", "from demos.museum import museum", "demos/museum/museum runs up"),
        ("demos/tasks/sort", "from demos.tasks.reverse import data", "demos/tasks/reverse runs up"),
        ("demos/pages/new", "import json", "demos/pages/new has no place"),
    ],
)
def test_a_wrong_arrow_is_found(file, line, complaint):
    files = {**TREE, file: f"{TREE.get(file, '')}\n{line}\n"}
    (found,) = complaints(files)
    assert complaint in found


def test_drawing_is_imported_by_its_first_use_and_its_names_are_listed():
    code = """if True:
        import sys, minigrad
        assert "minigrad.graphs" not in sys.modules
        assert {"Graph", "Steps", "graph", "Tensor"} <= {*dir(minigrad)}
        assert minigrad.graph is minigrad.graphs.graph"""
    subprocess.run([sys.executable, "-c", code], check=True)


if __name__ == "__main__":
    inside, _ = arrows(TREE)
    pairs = {(file, other) for file in inside for other in inside[file]}
    floor, _ = floors(TREE)
    up = {pair for pair in pairs if floor[pair[1]] >= floor[pair[0]]}
    high = {}  # the files on the longest way down from each file
    for file in sorted(floor, key=floor.get):
        high[file] = 1 + max((high[x] for x in inside[file] if (file, x) not in up), default=0)
    rooms = {file.rpartition("/")[0] for file in TREE}
    print(f"{len(TREE)} files in {len(rooms)} rooms, the longest way down has {max(high.values())}")
    print(f"{len(pairs)} arrows, {len(up)} run up:", *(f"\n    {a} → {b}" for a, b in sorted(up)))
    for circle in circles(inside):
        print(f"a circle of {len(circle)} files:", *sorted(circle))
