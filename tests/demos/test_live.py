"""Live: what a page's Python answers, in the Python that the tests are in."""

import builtins
import io
import json
import re
import sys
from collections import defaultdict

import pytest

from demos.learn.exercises import filled
from demos.live import _reader, _try
from demos.live._definitions import lines_of
from demos.live._examples import LETTERS, Printed, Spaces, run, sentence
from demos.live._runtime import MISSING
from minigrad.graphs import draw_with
from tests.demos.live_blocks import blocks


@pytest.fixture
def ask(tmp_path, monkeypatch):
    """Give ask(text, of=MODULE): what the messages about a block say, by their kind."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    spaces = Spaces()

    def ask(text, of="minigrad.idea"):
        heard = defaultdict(list)

        def post(**message):
            for kind, what in message.items():
                heard[kind].append(what)

        heard["done"] = run({"run": text, "of": of, "name": "example 1"}, post, spaces)
        heard["out"] = "".join(heard["out"])
        return heard

    return ask


def of_module(module):
    return [block for block in blocks() if block.module == module]


MODULES = sorted({block.module for block in blocks()})


def wrong(ask, modules):
    """Return each block that does not print what is in the book."""
    found = []
    for module in modules:
        for block in of_module(module):
            heard = ask(block.text, module)
            if not heard["done"]:
                found.append((module, block.place, heard["failed"], heard["out"]))
    return found


def test_blocks_print_what_is_in_the_book(ask):
    assert not wrong(ask, MODULES[::5])


@pytest.mark.slow
def test_all_blocks_print_what_is_in_the_book(ask):
    assert not wrong(ask, MODULES)


def test_the_blocks_that_need_a_missing_package_are_known(ask, monkeypatch):
    for package in MISSING.values():
        monkeypatch.setitem(sys.modules, package, None)
    found = wrong(ask, MISSING)
    assert len(found) == sum(len(of_module(module)) for module in MISSING)  # (none can run)
    for module, place, failed, _ in found:
        assert place > 1 or MISSING[module] in str(failed)


# ------------------------------------------------------------------ value


def test_each_example_prints_at_its_place(ask):
    heard = ask(">>> a = 2\n>>> a\n2\n>>> a + 1\n4\n")
    assert heard["begin"] == [0, 1, 2] and heard["out"] == "2\n3\n" and heard["differs"] == [2]
    assert heard["done"] is False


def test_the_reader_s_own_lines_have_no_prompt_and_share_the_names_of_the_page(ask):
    lines = "a = log_softmax([0.0, 0.0]) + np.log(2)\na\nfor i in range(2):\n    print(i)"
    assert ask(lines)["out"] == "array([0., 0.])\n0\n1\n"
    heard = ask(">>> a[0]\n0.5\n>>> _\n0.5\n")
    assert heard["done"] is False and heard["out"] == "np.float64(0.0)\nnp.float64(0.0)\n"
    assert ask("a", "minigrad.optim")["failed"]  # another page has other names


def test_an_expected_error_is_as_in_the_book(ask):
    text = ">>> 1 / 0\nTraceback (most recent call last):\n    ...\nZeroDivisionError: {}\n"
    heard = ask(text.format("division by zero"))
    assert heard["done"] and heard["out"].endswith("ZeroDivisionError: division by zero\n")
    assert ask(text.format("something else"))["failed"] == [
        "line 1: ZeroDivisionError: division by zero"
    ]


def test_integers_of_32_bits_are_those_of_the_book(ask):
    assert ask(">>> np.arange(2, dtype=np.int32)\narray([0, 1])\n")["done"]
    assert ask(">>> np.int32(1).dtype\ndtype('int64')\n")["done"]
    assert not ask(">>> np.arange(2, dtype=np.int16)\narray([0, 1])\n")["done"]


def test_pictures_and_files_are_shown(ask):
    heard = ask(
        'x = Tensor(2.0, requires_grad=True)\nd = graph(x * x)\nd\nd.save("x.dot")\n'
        'np.save("x.npy", np.ones(2))\n'
    )
    assert heard["shown"] == ["picture.svg", "x.dot", "x.npy"]
    assert heard["text"][0].startswith("<?xml") and heard["text"][1].startswith("digraph")
    assert len(heard["base64"]) == 1
    assert ask("1")["shown"] == []


def test_a_path_is_printed_unless_its_file_is_shown(ask):
    heard = ask(
        "from pathlib import Path\nPath('a').mkdir()\nPath('a/b.txt').write_text('b')\n"
        "Path('a/b.txt')\nPath('a')\nPath('c')\n"
        "graph(Tensor(2.0, requires_grad=True) * 2).save('x.dot')\n"
    )
    assert heard["shown"] == ["a/b.txt", "x.dot"] and heard["text"][0] == "b"
    assert heard["out"] == "1\nPosixPath('a')\nPosixPath('c')\n"
    assert ask("Path('x.dot')")["out"] == "PosixPath('x.dot')\n"  # (not written in this run)


def test_a_name_of_the_page_is_the_page_s_own(ask):
    assert ask("softmax is idea.softmax")["failed"]  # (chapter 0 does not import itself)
    assert ask("softmax(Value([[0.0, 0.0]])).array")["out"] == "array([[0.5, 0.5]])\n"


# ------------------------------------------------------------------ refusal


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("x = 1\ndef f(:\n    pass", "line 2: SyntaxError: invalid syntax"),
        ("x = 1\nx.y", "line 2: AttributeError: 'int' object has no attribute 'y'"),
        (">>> x = 1\n>>> def f():\n...     return x.y\n>>> f()\n1\n", "line 3: AttributeError"),
        ("def f(n): return f(n + 1)\nf(0)", "line 1: RecursionError: maximum recursion depth"),
        ("exit()", "line 1: SystemExit"),
        (">>>x = 1", "ValueError: line 1 of the docstring"),
        ("-" * 100_000 + "1", ""),  # (another error in each Python)
        ("input()", "line 1: EOFError: EOF when reading a line"),
        ("raise MemoryError", "line 1: MemoryError"),
        ("Tensor([1, 2]) @ Tensor([[1]])", "line 1: ValueError: "),
    ],
)
def test_an_error_is_one_sentence_with_the_reader_s_line(ask, text, sentence):
    heard = ask(text)
    (failed,) = heard["failed"]
    assert failed.startswith(sentence) and "\n" not in failed and heard["done"] is False
    (trace,) = heard["trace"]
    assert "demos/live" not in trace and len(trace) < 5000


def test_try_says_which_line_of_readme_it_misses(tmp_path, monkeypatch):
    text = _try.README.read_text("utf-8")
    for old, said in (
        (_try.STEP.strip(), "README's own model has no line 'optimizer.step()'"),
        ("## Your own rule", "README has no program under 'Your own rule'"),
    ):
        assert old in text
        monkeypatch.setattr(_try, "README", tmp_path / "README.md")
        _try.README.write_text(text.replace(old, "## Something else"), "utf-8")
        with pytest.raises(ValueError, match=re.escape(said)):
            _try.programs()


@pytest.mark.parametrize("text", ["exec('1 / 0')", "eval('1 / 0')"])
def test_a_line_of_a_text_that_nobody_sees_is_not_the_reader_s(ask, text):
    heard = ask(f"x = 1\n\n{text}\n")
    assert heard["failed"] == ["line 3: ZeroDivisionError: division by zero"]


def test_a_definition_in_the_reader_s_lines_is_theirs_and_one_of_exec_is_not(ask):
    hidden = "exec('def f():\\n\\n\\n    1 / 0')\n"
    with pytest.raises(ZeroDivisionError) as caught:
        exec(hidden + "f()", {})
    assert sentence(caught.value) == "ZeroDivisionError: division by zero"
    assert ask(hidden + "f()")["failed"] == ["line 2: ZeroDivisionError: division by zero"]


def test_after_an_error_the_block_ends(ask):
    heard = ask(">>> 1 / 0\n>>> print(1)\n1\n")
    assert heard["begin"] == [0] and heard["out"] == ""


def test_a_million_prints_are_cut_with_a_sentence(ask):
    heard = ask("for i in range(100_000): print(i)")
    assert len(heard["out"]) < LETTERS + 100
    assert heard["out"].endswith("only the first 20,000 letters are shown)\n")


@pytest.mark.parametrize("prompt", ["", ">>> "])
def test_a_block_is_cut_once(ask, prompt):
    lines = ["print('a' * 15_000)", "print('b' * 15_000)", "print('c' * 15_000)"]
    heard = ask("".join(f"{prompt}{line}\n" for line in lines))
    assert heard["out"].count("letters are shown") == 1 and len(heard["out"]) < LETTERS + 100
    assert "c" not in heard["out"].partition("…")[0]


def test_what_a_loop_prints_is_cut_while_it_goes_on():
    sent = []
    out = Printed(lambda out: sent.append(out))
    out.write("a" * (LETTERS + 1))  # (no end of a line, and no end of the run)
    assert sent == ["a" * LETTERS + "\n… (only the first 20,000 letters are shown)\n"]


# ------------------------------------------------------------------ the reader


@pytest.fixture
def program(monkeypatch):
    """Let drawings be made by a program again, and let input() ask again."""
    monkeypatch.setattr(builtins, "input", builtins.input)
    yield
    draw_with(None)


def test_questions_and_answers_are_json(tmp_path, monkeypatch, program):
    monkeypatch.chdir(tmp_path)
    sent = []
    drawn = lambda source: json.dumps(["<svg xmlns='http://www.w3.org/2000/svg'/>", "{}"])
    reader = _reader.Reader(sent.append, drawn=drawn)
    graph = "graph(Tensor(2.0, requires_grad=True) * 2)"
    reader.answer(json.dumps({"id": 7, "run": graph, "of": "minigrad.idea"}))
    heard = [json.loads(text) for text in sent]
    assert {each.pop("id") for each in heard} == {7}
    begin, out, shown, done = heard
    assert begin == {"begin": 0} and out["out"].startswith("Graph(") and done == {"done": True}
    assert shown["shown"] == "picture.svg" and "aria-label" in shown["text"]


def test_where_a_function_draws_there_are_svgs_alone(tmp_path, monkeypatch, program):
    monkeypatch.chdir(tmp_path)
    sent = []
    reader = _reader.Reader(sent.append, drawn=lambda source: "")
    text = 'graph(Tensor(2.0, requires_grad=True) * 2).save("x.png")'
    reader.answer(json.dumps({"id": 1, "run": text, "of": "minigrad.idea"}))
    (failed,) = (x for x in map(json.loads, sent) if "failed" in x)
    assert "save it as .svg" in failed["failed"] and "pip install" not in failed["failed"]


def asked(reader, sent, **question):
    """Ask a reader something; return what it says, in one text."""
    sent.clear()
    reader.answer(json.dumps({"id": 1, "of": "minigrad.idea", **question}))
    return " ".join(sent)


def test_what_a_page_forgets_are_the_names_that_its_blocks_made(tmp_path, monkeypatch, program):
    monkeypatch.chdir(tmp_path)
    sent = []
    reader = _reader.Reader(sent.append)
    asked(reader, sent, run="mine = softmax = 3")
    assert '"3' in asked(reader, sent, run="mine")
    asked(reader, sent, forget="minigrad.idea")
    assert "NameError" in asked(reader, sent, run="mine")
    assert "function" in asked(reader, sent, run="softmax")
    asked(reader, sent, forget="minigrad.idea")
    assert '"done": null' in asked(reader, sent, forget="minigrad.idea")  # (nothing is there)


def test_input_says_that_nobody_answers(tmp_path, monkeypatch, program):
    monkeypatch.chdir(tmp_path)
    sent = []
    reader = _reader.Reader(sent.append)
    said = "line 2: EOFError: input() has nobody to answer here: write the value into the lines"
    assert said in asked(reader, sent, run="x = 1\nx = input('x = ')")
    text = filled("e01_slope", "return float(input())")
    answer = asked(reader, sent, check="e01_slope", text=text, files={})
    assert "input() has nobody to answer here" in answer


def test_a_question_that_would_end_python_is_answered(tmp_path, monkeypatch, program):
    monkeypatch.chdir(tmp_path)
    sent = []
    monkeypatch.setattr(_reader._exercises, "compare", lambda message: exit())
    answer = asked(_reader.Reader(sent.append), sent, compare="e01_slope", text="")
    assert "SystemExit" in answer and '"done": null' in answer


def test_a_question_that_fails_is_answered(tmp_path, monkeypatch, program):
    monkeypatch.chdir(tmp_path)
    sent = []
    of, name = "attention.scaled_dot_product", "unit_length"  # which no small program uses
    question = {"id": 1, "define": lines_of(of, name), "of": of, "name": name}
    _reader.Reader(sent.append).answer(json.dumps(question))
    failed, done = map(json.loads, sent)
    assert failed["failed"] == "ValueError: no small program uses unit_length"
    assert done == {"id": 1, "done": None}
