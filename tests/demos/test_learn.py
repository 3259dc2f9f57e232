"""Exercises: stubs fail, solutions pass, wrong answers are answered; the command and its folder."""

import ast
import csv
import json
import math
import re
import shutil

import pytest

from attention.scaling import ties
from demos.learn import EXERCISES, GROUPS, PATH
from demos.learn._grading import graded
from demos.learn._mistakes import mistaken
from demos.learn._running import check_of, judged, run
from demos.learn.exercises import chapter, chapters, filled, solution, stub, title
from demos.site._contents import book
from demos.site._landing import FINDINGS
from tests.demos.learn_answers import RIGHT, TYPICAL, WRONG
from tests.demos.running import ROOT, demo_here
from tests.test_readme import README

FOLDER = ROOT / "demos" / "learn" / "exercises"
# Their stubs are wrong, and not empty.
BUGS = {"e06_bug", "e12_double", "e18_bug", "e21_heads"}


PREDICT = solution("e17_predict")


def answer(name, text):
    """Return the check's words for a text, in this process. (It may import our other solutions.)"""
    return judged(FOLDER / f"{name}.py", name, text)


# ------------------------------------------------------------------ value: the exercises


def test_there_are_twenty_four_exercises_in_groups_of_six_numbered_in_order():
    assert [len(names) for names in GROUPS.values()] == [6] * 4
    names = [name for names in GROUPS.values() for name in names]
    assert [name[:4] for name in names] == [f"e{n:02}_" for n in range(1, 25)]
    assert set(names) == {file.stem for file in FOLDER.glob("e*.py")}


@pytest.mark.parametrize("name", EXERCISES)
def test_a_stub_fails_and_says_that_it_is_empty(name):
    found = answer(name, stub(name))
    assert not found.solved
    assert (name in BUGS) == ("still to be written" not in found.said), found.said
    assert name not in BUGS or found.kind, found.said  # a sentence of the check, not an accident


@pytest.mark.parametrize("name", EXERCISES)
def test_our_solution_is_right(name):
    assert answer(name, solution(name)) == (True, "", "", (), "", "solved")


@pytest.mark.parametrize(
    ("name", "lines", "words"), [(name, *each) for name, wrong in WRONG.items() for each in wrong]
)
def test_a_wrong_answer_is_answered(name, lines, words):
    texts = [lines] if isinstance(lines, str) else lines
    found = answer(name, mistaken(name) if lines is TYPICAL else filled(name, *texts))
    assert not found.solved and words in found.said, found.said


@pytest.mark.parametrize(
    ("name", "lines"), [(name, lines) for name, right in RIGHT.items() for lines in right]
)
def test_a_right_answer_that_is_not_ours_is_accepted(name, lines):
    found = answer(name, filled(name, lines))
    assert found.solved, found.said


def test_an_exercise_has_a_task_three_hints_and_wrong_answers_and_fits_on_80_columns():
    for name in EXERCISES:
        check, text = check_of(name), solution(name)
        docstring = ast.get_docstring(ast.parse(text))
        first, _, rest = docstring.partition("\n\n")
        assert re.fullmatch(rf"Exercise {int(name[1:3])} · [^:]+: [^\n]+\.", first)
        assert len(title(name)) < 62
        assert chapter(name) in rest.split("\n\n")[-1]
        assert len(check.HINTS) == 3 and all(len(hint) > 40 for hint in check.HINTS)
        assert len(WRONG[name]) >= 3 and TYPICAL in dict(WRONG[name])
        assert max(map(len, f"{text}\n{stub(name)}".splitlines())) <= 78
        assert text.count("# Your lines begin.") == stub(name).count("# Your lines end.") >= 1
        assert "The learner gets" not in text + stub(name)


# ------------------------------------------------------------------ refusal: our lines, spoiled

# Of these nothing is asked that the learner does not see: their sentences are not for a learner.
NOT_SAID = "cannot go on|NoneType|memoryview|object has no attribute|object is not|sub-views"


def refused(name, tree):
    """Return what the check says of our solution, after a change of its tree."""
    found = judged(FOLDER / f"{name}.py", name, ast.unparse(ast.fix_missing_locations(tree)))
    assert not found.solved and not re.search(NOT_SAID, found.said), found.said
    return found.said


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


# ------------------------------------------------------------------ value: a way through

SLOPE = solution("e01_slope")


@pytest.fixture
def folder(tmp_path):
    """A learner's folder, just made."""
    made = learn("init", tmp_path / "mine")
    assert made.returncode == 0, made.stderr
    return tmp_path / "mine"


@pytest.fixture
def here(monkeypatch):
    """Checks run in this process: for what the command makes of an answer."""
    monkeypatch.setattr("demos.learn._running.run", judged)


def learn(*words):
    """`python -m demos learn …` in this process."""
    return demo_here("learn", *words)


def contents(folder):
    return {p.name: p.read_bytes() for p in folder.iterdir() if p.name[0] != "."}


@pytest.mark.usefixtures("here")
def test_the_first_unsolved_exercise_is_checked_and_after_a_solved_one_the_next(folder):
    done = learn("--in", folder)
    assert done.returncode == 1 and done.stderr == ""
    assert done.stdout.startswith(f"Exercise 1 of {len(EXERCISES)} · A slope: how fast")
    assert f"\n{folder / 'e01_slope.py'}\n" in done.stdout
    assert "still to be written: e01_slope.py, line 19" in done.stdout
    assert f"    python -m demos learn --in {folder} --hint\n" in done.stdout
    (folder / "e01_slope.py").write_text(SLOPE)
    done = learn("--in", folder)
    assert done.returncode == 1 and "  Solved.\n" in done.stdout
    assert "Exercise 2 of" in done.stdout and "e02_product.py, line" in done.stdout
    again = learn("--in", folder).stdout
    assert (
        again.startswith("Exercise 2 of")
        and max(map(len, again.replace(str(folder), "").splitlines())) <= 80
    )
    (folder / "e01_slope.py").write_text(SLOPE + "\n")  # what was solved is another file now
    assert "[ ]  1  4.1   A slope" in learn("--in", folder, "--list").stdout
    assert learn("--in", folder).stdout.startswith("Exercise 1 of")
    for name in EXERCISES:
        (folder / f"{name}.py").write_text(solution(name))
    done = learn("--in", folder)
    assert done.returncode == 0
    end = " ".join(done.stdout.split()).partition("All twenty-four exercises are solved. ")[2]
    (heading,), (path,) = re.findall('"([^"]+)"', end), re.findall(r"\w+/\w+\.py", end)
    assert f"\n## {heading}\n" in README and docstring_of(ROOT / path).startswith("12 · ")
    listed = learn("--in", folder, "--list").stdout.replace(str(folder), "")
    assert listed.count("[x]") == len(EXERCISES) and max(map(len, listed.splitlines())) <= 80


@pytest.mark.usefixtures("here")
def test_an_exercise_can_be_asked_for_by_its_number(folder):
    said = learn("--in", folder, "2").stdout
    assert said.startswith("Exercise 2 of") and said.endswith(f"--in {folder} 2 --hint\n")


def test_the_hints_come_one_by_one_and_then_all_of_them(folder):
    said = [learn("--in", folder, "1", "--hint").stdout for _ in range(4)]
    counts = [re.findall(r"hint (\d) of 3", each) for each in said]
    assert counts == [["1"], ["2"], ["3"], ["1", "2", "3"]]
    assert "--solution" in said[2] and "--solution" not in said[1]
    assert "hint 1 of 3" in learn("--in", folder, "2", "--hint").stdout


def test_the_solution_is_shown_beside_the_learners_lines_and_changes_nothing(folder):
    (folder / "e01_slope.py").write_text(filled("e01_slope", "return 'mine'"))
    before = contents(folder)
    said = learn("--in", folder, "--solution").stdout
    assert "\n-     return 'mine'\n+     return (f(x + h) - f(x - h)) / (2 * h)\n" in said
    (folder / "e02_product.py").unlink()
    assert "\n+     return a * b, lambda g" in learn("--in", folder, "2", "--solution").stdout
    assert contents(folder) | {"e02_product.py": before["e02_product.py"]} == before
    (folder / "e01_slope.py").write_text(SLOPE)
    assert "the same as ours" in learn("--in", folder, "1", "--solution").stdout


@pytest.mark.usefixtures("here")
def test_the_folder_is_named_in_the_commands_only_if_it_was(folder, monkeypatch):
    monkeypatch.chdir(folder)
    assert "    python -m demos learn --hint\n" in learn().stdout
    monkeypatch.chdir(folder.parent)
    assert "    python -m demos learn --in mine --hint\n" in learn("--in", "mine").stdout


@pytest.mark.usefixtures("here")
def test_the_commands_of_the_readme_lead_to_the_first_exercise(tmp_path, monkeypatch):
    _, _, section = README.partition("\n## Exercises\n")
    section, _, _ = section.partition("\n## ")
    commands = re.findall(r"^    python -m demos (.+)$", section, re.MULTILINE)
    (tmp_path / "repository").mkdir()
    monkeypatch.chdir(tmp_path / "repository")
    made, checked = [demo_here(*line.split()) for line in commands]
    assert (made.returncode, made.stderr, checked.returncode) == (0, "", 1)
    assert (
        checked.stdout.startswith("Exercise 1 of") and "--in ../exercises --hint" in checked.stdout
    )
    options = set(re.findall(r"`(--\w+)`", section))
    assert options >= {"--watch", "--hint", "--solution", "--list"}
    assert all(f"{option} " in demo_here("learn", "--help").stdout for option in options)


def docstring_of(path):
    return ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""


def named(path):
    """The numbers of the exercises that a chapter names."""
    said = re.findall(r"Exercises? ([^`]*) of\s+`python -m demos learn`", docstring_of(path))
    pairs = re.findall(r"(\d+)(?: to (\d+))?", " ".join(said))
    return [number for a, b in pairs for number in range(int(a), int(b or a) + 1)]


def test_an_exercise_and_its_chapter_name_each_other():
    files = [file for part in ("minigrad", "attention") for file in (ROOT / part).rglob("*.py")]
    pairs = {(file.relative_to(ROOT).as_posix(), n) for file in files for n in named(file)}
    assert {number for _, number in pairs} == set(range(1, 25))
    for file, number in pairs:
        *_, last = docstring_of(FOLDER / f"{EXERCISES[number - 1]}.py").split("\n\n")
        assert file in last, (number, last)
    contents, _ = book()
    for number, name in enumerate(EXERCISES, start=1):
        assert (contents[chapter(name)].source.path, number) in pairs


def test_the_chapters_of_an_exercise_are_those_that_it_names_with_their_files():
    assert "Chapter 0, where" in stub("e02_product") and chapters("e02_product") == ["0"]
    assert "as chapter 1.3 does" in stub("e07_exp") and chapters("e07_exp") == ["1.3", "3.1"]
    assert chapters("e03_chain") == ["0", "2.1"] and chapter("e03_chain") == "2.1"


def test_the_words_that_exercise_17_sends_a_reader_to_are_in_its_chapter():
    (words,) = re.findall(r'up\s+to the words\s+"([^"]+)"', docstring_of(FOLDER / "e17_predict.py"))
    chapter = docstring_of(ROOT / "attention" / "scaling.py")
    before, _, after = chapter.partition(" ".join(words.split()))
    assert "median" not in before and "median" in after  # the results are next


def test_what_exercise_17_asks_is_said_by_no_page_that_is_read_before():
    before = " ".join([README, docstring_of(ROOT / "attention/scaled_dot_product.py"), *FINDINGS])
    asked = re.findall(r"# a number: .* (with 1/d_k|without a scale) at (d_k = \d+)", PREDICT)
    assert len(asked) == PREDICT.count("# a number") - 2
    assert not re.search(r"\.564|\.45\b|1/√π", before)  # ties and plateau
    for scale, width in asked:
        assert scale not in before and (scale == "with 1/d_k" or width not in before)
    assert "dead" not in before


def test_exercise_16_names_the_mistake_in_a_number_and_leaves_its_formula_to_the_hints():
    said = [answer("e16_pencil", filled("e16_pencil", x)).said for x, _ in WRONG["e16_pencil"][1:]]
    numbers = [words for words in said if "is not right" in words]
    assert len(numbers) > 6
    assert all(re.fullmatch(r"\w+ = \S+ is not right: [^=·]+", words) for words in numbers)


def test_the_hints_of_exercise_17_are_as_measured():
    check = check_of("e17_predict")
    seen, last = check.measured(), check.HINTS[-1]
    for told, d_k, a in zip(
        re.findall(r"some (\d+) times", last), (64, 1024), (1.0, 0.0), strict=True
    ):
        scaled, other = (seen(d_k, each, "gradient_median") for each in (0.5, a))
        assert scaled / other == pytest.approx(float(told), rel=0.2)
    assert "1/√π" in last and ties(2) == pytest.approx(math.pi**-0.5)
    assert check.of_two_keys() == pytest.approx(math.sqrt(2 / math.pi) * ties(2), rel=0.06)
    assert 1 < seen(1024, 0.0, "gradient_mean") / seen(64, 0.0, "gradient_mean") < 1.5


# ------------------------------------------------------------------ value: the path


@pytest.mark.usefixtures("here")
def test_the_path_is_checked_in_its_order_and_ends_at_the_question_of_the_readme(folder):
    said = learn("init", folder).stdout
    assert f"open {EXERCISES[0]}.py" in said and f"With --path it begins with {PATH[0]}.py" in said
    listed = learn("--in", folder, "--list").stdout
    assert "first contact: 2, 4, 6, 10, 13, 19, 16, 22\n" in listed
    stars = re.findall(r"^  \[ \] +(\d+)\*", listed, re.MULTILINE)
    assert sorted(f"e{int(n):02}" for n in stars) == sorted(name[:3] for name in PATH)
    for name in PATH:
        done = learn("--in", folder, "--path")
        assert done.returncode == 1 and f"\n{folder / name}.py\n" in done.stdout
        assert done.stdout.endswith(f"    python -m demos learn --in {folder} --path --hint\n")
        said = learn("--in", folder, "--path", "--hint").stdout
        assert said.startswith(f"Exercise {int(name[1:3])} of") and "hint 1 of 3" in said
        (folder / f"{name}.py").write_text(solution(name))
    done = learn("--in", folder, "--path")
    assert done.returncode == 0 and done.stdout.count("Solved.") == 1
    end = " ".join(done.stdout.split())
    assert "**How does a gradient get back through attention?**" in README
    assert "Can you say now how a gradient gets back through attention?" in end
    assert "Chapter 11, attention/scaled_dot_product.py" in end
    assert learn("--in", folder, "--path").returncode == 0
    assert learn("--in", folder).stdout.startswith("Exercise 1 of")


# ------------------------------------------------------------------ law: nothing is lost


def test_nothing_is_overwritten_by_a_second_init(folder):
    (folder / "e01_slope.py").write_text("mine")
    (folder / "e02_product.py").unlink()
    before = contents(folder)
    assert learn("init", folder).stdout.startswith(f"New in {folder}: e02_product.py\n")
    assert contents(folder) == before | {"e02_product.py": stub("e02_product").encode()}
    assert f"New in {folder}: nothing\n" in learn("init", folder).stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("init",), "init takes one folder: python -m demos learn init FOLDER"),
        (("init", ROOT / "mine"), "is inside of the repository"),
        (("init", "full"), "full has other files in it, such as notes.txt: choose a new or empty"),
        ((), "is not a folder of exercises: `python -m demos learn init FOLDER` makes one"),
        (("--in", "mine", "99"), "no exercise 99: they are numbered 1 to"),
        (("--in", "mine", "1", "2"), "no exercise 1 2: they are numbered 1 to"),
    ],
)
def test_what_cannot_be_done_is_one_sentence_and_changes_nothing(
    words, said, folder, tmp_path, monkeypatch
):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine")
    monkeypatch.chdir(tmp_path)
    before = {p: p.is_file() and p.read_bytes() for p in tmp_path.rglob("*")}
    done = learn(*words)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert said in done.stderr
    assert {p: p.is_file() and p.read_bytes() for p in tmp_path.rglob("*")} == before


# ------------------------------------------------------------------ refusal: what goes wrong

DISASTERS = {
    "no colon": ("def slope(f, x, h)\n    pass\n", "line 1: SyntaxError: expected ':'"),
    "a module": ("import nonsense\n", "line 1: ModuleNotFoundError: No module named 'nonsense'"),
    "an exit": ("x = 1\nexit(3)\n", "line 2: SystemExit: 3"),
    "recursion": (filled("e01_slope", "return slope(f, x, h)"), "in slope: RecursionError"),
    "its own error": (
        filled("e01_slope", "return help_me(f)") + "\n\ndef help_me(f):\n    return f(1) / 0\n",
        "line 24, in help_me: ZeroDivisionError: division by zero",
    ),
    "several lines": ("raise ValueError('one\\ntwo')\n", "line 1: ValueError: one two"),
    "another name": ("def slop(f, x, h):\n    return 1\n", "e01_slope.py defines no slope"),
    "no return": (filled("e01_slope", "f(x + h) - f(x - h)"), "returned None"),
    "a text": (filled("e01_slope", "return 'steep'"), "is 'steep', which is neither a number nor"),
    "a shape": (filled("e01_slope", "return [1.0, 2.0]"), "the shape (2,); the shape () was"),
}


@pytest.mark.parametrize("what", DISASTERS)
def test_a_file_that_is_wrong_gets_a_sentence_with_its_line(what, tmp_path):
    text, words = DISASTERS[what]
    path = tmp_path / "e01_slope.py"
    path.write_text(text)
    found = judged(path, "e01_slope")
    assert not found.solved and words in found.said, found.said
    assert found.said.startswith("e01_slope.py") or "slope(" in found.said


def test_what_is_not_a_text_in_utf_8_is_told_so(tmp_path):
    path = tmp_path / "e01_slope.py"
    path.write_text(SLOPE, encoding="utf-16")
    found = judged(path, "e01_slope")
    assert found.said == "e01_slope.py has null bytes, as UTF-16 has: save the file as UTF-8"


@pytest.mark.usefixtures("here")
def test_a_folder_in_the_place_of_a_file_is_told_so(folder):
    (folder / "e01_slope.py").unlink()
    (folder / "e01_slope.py").mkdir()
    assert "e01_slope.py is a folder or a device: rename it" in learn("--in", folder).stdout
    assert "[ ]  1  4.1   A slope" in learn("--in", folder, "--list").stdout
    assert "\n+     return (f(x + h)" in learn("--in", folder, "--solution").stdout


@pytest.mark.parametrize(
    "text",
    ["", '{"solved": {"e0', "{}", "[]", '{"solved": [1], "hints": {}}', '{"solved": {"\xff": 1}}'],
)
def test_a_damaged_memory_is_begun_anew_and_told_once(text, folder):
    (folder / ".minigrad-learn.json").write_text(text, encoding="latin-1")
    said = [learn("--in", folder, "1", "--hint").stdout for _ in range(2)]
    assert ["damaged and was begun anew" in each for each in said] == [True, False]
    assert "hint 1 of 3" in said[0] and "hint 2 of 3" in said[1]


def test_the_mark_of_a_syntax_error_is_below_the_place_that_python_says(tmp_path):
    path = tmp_path / "e01_slope.py"
    path.write_text("def slope(f, x, h):\n    return f(x ++ h) 2\n")
    found = judged(path, "e01_slope")
    *_, code, mark = found.said.splitlines()
    assert code == "    return f(x ++ h) 2" and mark.strip("^ ") == ""
    assert code[mark.index("^") : mark.rindex("^") + 1] == "2"


def test_an_exercise_that_uses_others_says_which_of_them_is_not_solved(tmp_path):
    for name in EXERCISES:
        (tmp_path / f"{name}.py").write_text(solution(name))
    path = tmp_path / "e24_reverse.py"
    used = [f"e{n}" for n in (10, 11, 13, 14, 15, 19, 21, 23)]
    names = [name for name in EXERCISES if name[:3] in used]
    assert re.findall(r"from (e\d\d\w+) import", path.read_text()) == names
    assert list(check_of("e24_reverse").USES) == names
    for name in names:
        other = tmp_path / f"{name}.py"
        other.write_text(stub(name))
        found = judged(path, "e24_reverse")
        said = (
            f"{name}.py is used here, and exercise {int(name[1:3])} is not solved. Its check says"
        )
        assert not found.solved and found.said.startswith(said), found.said
        other.unlink()
        found = judged(path, "e24_reverse")
        assert f"(exercise {int(name[1:3])} is used here: `python -m demos learn init" in found.said
        other.write_text(solution(name))


def test_a_warning_is_told_once_with_its_line():
    text = filled(
        "e01_slope", "import numpy as np\nnp.exp(np.array(1e9))\nreturn (f(x+h)-f(x-h))/h/2"
    )
    found = answer("e01_slope", text)
    assert found.solved
    assert found.warned == ("e01_slope.py, line 20: overflow encountered in exp",)


# In a process of their own: what would end or stop these tests.
PROCESSES = {
    "loops": (
        filled("e01_slope", "while True:\n    pass"),
        r"line (19|20), in slope: still at work after 1 s, and stopped there: does a loop never",
    ),
    "prints": (
        filled("e01_slope", "while True: print('x' * 99)"),
        "line 19, in slope: still at work",
    ),
    "swallows": (
        filled("e01_slope", "while True:\n    try:\n        print(1)\n    except BaseException: 1"),
        "still at work after 4 s, and nothing interrupts it: does a loop catch every exception",
    ),
    "ends": ("import os\nos._exit(7)\n", "ended with 7 before the check had an answer"),
    "ends well": ("import os\nos._exit(0)\n", "ended with 0 before the check had an answer"),
    "interrupts": ("raise KeyboardInterrupt\n", "e01_slope.py, line 1: KeyboardInterrupt$"),
    "warns": (
        "import warnings\nfor i in range(999): warnings.warn(f'{i}')\nraise ValueError('x' * 9999)",
        "line 3: ValueError: x+\n…$",
    ),
    "asks": ("input('a number? ')\n", r"line 1: EOFError: .*nobody can answer input\(\) here"),
}


@pytest.mark.parametrize("what", PROCESSES)
def test_whatever_a_file_does_to_its_process_the_answer_is_one_sentence(
    what, tmp_path, monkeypatch
):
    path = tmp_path / "e01_slope.py"
    path.write_text(PROCESSES[what][0])
    if what != "swallows":  # (a busy machine takes seconds to start a process)
        monkeypatch.setattr("demos.learn._running.KILLED", 60.0)
    stopped = what in ("loops", "prints", "swallows")
    found = run(path, "e01_slope", seconds=1.0 if stopped else 20.0)
    assert not found.solved and re.search(PROCESSES[what][1], found.said), found
    if what == "prints":  # what it prints is shown, and cut off
        assert found.printed.splitlines() == ["x" * 99] * 20 + ["…"]
    assert what != "asks" or found.printed == "a number?"
    assert what != "warns" or (len(found.said) < 4100 and len(found.warned) == 21)


AT_ITS_END = """
import atexit, json, os, threading, time

class Dies:
    def __del__(self): raise ValueError

dies = Dies()
atexit.register(lambda: 1 / 0)
threading.Thread(target=time.sleep, args=(1000,)).start()
json.dumps = lambda *a, **k: "{}"
os.write(1, b"\\xff")
os.write(2, b"{}")
"""


def test_what_a_file_does_at_the_end_of_its_process_changes_no_answer(tmp_path):
    path = tmp_path / "e01_slope.py"
    path.write_text(SLOPE + AT_ITS_END)
    assert run(path, "e01_slope") == (True, "", "", (), "\ufffd", "solved")


@pytest.mark.usefixtures("here")
def test_watch_checks_again_when_a_file_is_saved_or_removed_and_ctrl_c_ends_it(folder, monkeypatch):
    def interrupted():
        raise KeyboardInterrupt

    path = folder / "e01_slope.py"
    steps = iter([lambda: path.write_text(SLOPE), lambda: None, path.unlink, interrupted])
    monkeypatch.setattr("time.sleep", lambda seconds: next(steps)())
    done = learn("--in", folder, "--watch")
    first, second, third, rest = done.stdout.split("Waiting until you save. Ctrl-C ends.\n")
    assert "still to be written" in first and "  Solved." in second and "and save it." in second
    assert "Exercise 2 of" in second and "e01_slope.py is not there: `python -m demos" in third
    assert (done.returncode, done.stderr, rest.strip()) == (0, "", "")


# ------------------------------------------------------------------ value: one file, for a page


def test_a_folder_goes_into_one_file_and_the_file_into_another_folder(folder, tmp_path):
    mine = solution("e02_product") + "# mine: é\n"
    (folder / "e02_product.py").write_text(mine, "utf-8")
    learn("--in", folder, "2")
    file = tmp_path / "all.json"
    said = learn("--in", folder, "--save", file).stdout
    assert said.endswith("24 exercises, 1 of them solved. A page's Load reads it.\n")
    other = tmp_path / "other"
    assert "New in" in learn("init", other, "--load", file).stdout
    assert [p.read_text("utf-8") for p in sorted(other.glob("*.py"))] == [
        mine if name == "e02_product" else stub(name) for name in EXERCISES
    ]
    assert "[x]  2*" in learn("--in", other, "--list").stdout


def test_loading_overwrites_no_lines_and_says_which_are_other(folder, tmp_path):
    file = tmp_path / "page.json"
    texts = {"e01_slope": "a = 1\n", "e02_product": stub("e02_product"), "e99": "b"}
    page = {"minigrad exercises": 1, "files": texts, "solved": ["e01_slope"]}
    file.write_text(json.dumps(page))
    said = learn("init", folder, "--load", file).stdout
    assert "e01_slope.py is there already, and other than in" in " ".join(said.split())
    assert "e02_product.py is there" not in said and not (folder / "e99.py").exists()
    assert (folder / "e01_slope.py").read_text() == stub("e01_slope")
    assert "[x]" not in learn("--in", folder, "--list").stdout


OTHER_FILES = ["", "[]", '{"minigrad exercises": 2, "files": {}, "solved": []}', '{"files": 1}']
OTHER_FILES.append('{"minigrad exercises": 1, "files": {"e01_slope": 1}, "solved": []}')


@pytest.mark.parametrize("text", OTHER_FILES)
def test_a_file_of_another_kind_is_not_loaded(text, tmp_path):
    file = tmp_path / "page.json"
    file.write_text(text)
    done = learn("init", tmp_path / "new", "--load", file)
    assert done.returncode and "is not a file that a page's Save or --save has" in done.stderr
    assert not (tmp_path / "new").exists()


def test_saving_replaces_no_file_and_loading_needs_one_and_a_folder(folder, tmp_path):
    done = [
        learn("--in", folder, "--save", folder / "e01_slope.py"),
        learn("init", tmp_path / "new", "--load", tmp_path / "none"),
        learn("--in", folder, "--load", "x"),
    ]
    words = ["is there already: choose", "cannot be read", "--load goes with init"]
    assert [word in each.stderr for word, each in zip(words, done, strict=True)] == [True] * 3


# ------------------------------------------------------------------ a class

WRONG_SLOPE = filled("e01_slope", "return 1 / h")
CHANGES_THE_CHECK = filled(
    "e01_slope",
    "f.__globals__['same'] = f.__globals__['law'] = lambda *words, **options: None\nreturn 3.0",
)
EVERY_NAME = """
import sys
for name, module in list(sys.modules.items()):
    assert not name.startswith(("demos", "tests")), name
    if name == "__main__":
        assert not set(vars(module)) & {"main", "judged"}
"""
CHEATS = {  # a learner's file: the state of its row, and what is said of it
    "imports our lines": (
        "from demos.learn.exercises.e01_slope import slope\n",
        ("error", "line 1: ModuleNotFoundError: No module named 'demos'"),
    ),
    "imports them inside": (
        filled("e01_slope", "from demos.learn.exercises.e01_slope import slope\nreturn slope"),
        ("error", "in slope: ModuleNotFoundError: No module named 'demos'"),
    ),
    "imports our tests": (
        "import importlib\nimportlib.import_module('tests.demos.learn_answers')\n",
        ("error", "No module named 'tests'"),
    ),
    "takes the finder away": (
        "import sys\nsys.meta_path.pop(0)\nfrom demos.learn.exercises.e01_slope import slope\n",
        ("error", "line 3: PermissionError: the files of the checks are closed"),
    ),
    "reads our lines": (
        "import minigrad, pathlib\nroot = pathlib.Path(minigrad.__file__).parents[1]\n"
        "exec((root / 'demos/learn/exercises/e01_slope.py').read_text())\n",
        ("error", "line 3: PermissionError: the files of the checks are closed"),
    ),
    "replaces same if it can": (
        "try:\n    import demos.learn.checks.e01_slope as e\n    e.same = e.law = print\n"
        f"except ImportError:\n    pass\n{WRONG_SLOPE}",
        ("not yet", "slope(f, 2.0, 0.5) for f(x) = 3 x + 1 is 2; 3 was expected"),
    ),
    "changes the check through what it is given": (
        CHANGES_THE_CHECK,
        ("tampered", "the check accepts a wrong answer too, after this file has run"),
    ),
    "writes the answer itself": (
        "import os, pathlib\nfor to in pathlib.Path(__file__).parents[1].glob('*/answer'):\n"
        "    to.write_text(repr(('guess', True, '', '', (), '', 'solved')))\nos._exit(0)\n",
        ("error", "the process ended with 0 before the check had an answer"),
    ),
    "looks for our names, and is right": (
        EVERY_NAME + filled("e01_slope", EVERY_NAME + "return (f(x + h) - f(x - h)) / (2 * h)"),
        ("solved", ""),
    ),
}


@pytest.mark.parametrize("what", CHEATS)
def test_a_file_that_cheats_is_not_solved(what, tmp_path, monkeypatch):
    text, (state, words) = CHEATS[what]
    folder = tmp_path / "ann"
    folder.mkdir()
    (folder / "e01_slope.py").write_text(text)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    found = graded(folder, "e01_slope")
    assert found.state == state and words in found.said, found
    assert found.solved == (state == "solved")


def test_the_last_exercise_is_graded_with_the_files_that_it_uses(tmp_path):
    for name in ("e24_reverse", *check_of("e24_reverse").USES):
        (tmp_path / f"{name}.py").write_text(solution(name))
    assert graded(tmp_path, "e24_reverse").state == "solved"
    (tmp_path / "e10_matmul.py").write_text("import demos.learn.exercises.e10_matmul\n")
    found = graded(tmp_path, "e24_reverse")
    assert found.state == "error" and "e10_matmul.py, line 1: ModuleNotFound" in found.said


@pytest.fixture
def classes(tmp_path, monkeypatch):
    """Three folders, two of them of one name; one is empty."""
    monkeypatch.chdir(tmp_path)
    for name in ("one/ann", "two/ann", "empty"):
        (tmp_path / name).mkdir(parents=True)
    for name, text in {
        "one/ann/e01_slope.py": SLOPE,
        "one/ann/e02_product.py": stub("e02_product"),
        "one/ann/e03_chain.py": "1 / 0\n",
        "two/ann/e01_slope.py": CHANGES_THE_CHECK,
        "two/ann/notes.txt": "mine",
    }.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "two/ann/e02_product.py").mkdir()
    return tmp_path


STATES = {
    "one/ann": ["solved", "not yet", "error"] + ["missing"] * 21,
    "two/ann": ["tampered"] + ["missing"] * 23,
    "empty": ["missing"] * 24,
}


def test_a_class_gets_a_row_for_each_folder_and_nothing_is_written(classes):
    writes = "\nfrom pathlib import Path\nPath(__file__).with_name('written').touch()\n"
    (classes / "one/ann/e01_slope.py").write_text(SLOPE + writes)
    before = {p: (p.stat().st_mtime_ns, p.is_file() and p.read_bytes()) for p in classes.rglob("*")}
    done = learn("grade", *STATES, "one/ann/", "--csv", "-j", "2")
    heading, *found = csv.reader(done.stdout.splitlines())
    assert heading == ["folder", *EXERCISES, "solved"]
    counts = [str(states.count("solved")) for states in STATES.values()]
    assert found == [[x, *STATES[x], n] for x, n in zip(STATES, counts, strict=True)]
    assert (done.returncode, done.stderr) == (1, "")
    after = {p: (p.stat().st_mtime_ns, p.is_file() and p.read_bytes()) for p in classes.rglob("*")}
    assert after == before


@pytest.fixture
def graded_here(monkeypatch):
    """Checks of a class run in this process: for what the command makes of their answers."""
    monkeypatch.setattr("demos.learn._grading.run", lambda path, name, wrong: judged(path, name))


@pytest.mark.usefixtures("graded_here")
def test_the_rows_are_also_a_table_of_marks_and_one_list_with_what_is_said(classes):
    (classes / "two/ann/e01_slope.py").write_text(WRONG_SLOPE)
    done = learn("grade", *STATES)
    numbers, one, two, empty, legend = done.stdout.splitlines()
    assert numbers.split() == [*map(str, range(1, 25)), "solved", "folder"]
    assert one.split() == ["x", ".", "e", *"-" * 21, "1", "one/ann"]
    assert two.split() == [".", *"-" * 23, "0", "two/ann"]
    assert empty.split() == [*"-" * 24, "0", "empty"]
    assert legend == "x solved   . not yet   t out of time   - missing   e error   T tampered"
    rows = json.loads(learn("grade", *STATES, "--json").stdout)
    assert [row["folder"] for row in rows] == list(STATES)
    assert [row["solved"] for row in rows] == [1, 0, 0]
    assert [list(row["exercises"]) for row in rows] == [list(EXERCISES)] * 3
    said = rows[0]["exercises"]["e03_chain"]
    assert said == {"state": "error", "said": said["said"]}
    assert said["said"] == "e03_chain.py, line 1: ZeroDivisionError: division by zero"
    for name in PATH:
        (classes / "empty" / f"{name}.py").write_text(solution(name))
    assert [learn("grade", "empty", *words).returncode for words in ((), ("--path",))] == [1, 0]


def test_a_file_that_never_ends_is_out_of_time(tmp_path, monkeypatch):
    monkeypatch.setattr("demos.learn._running.SECONDS", 1.0)
    for name in ("e01_slope", "e02_product"):
        (tmp_path / f"{name}.py").write_text("while True: pass\n")
    assert graded(tmp_path, "e01_slope").state == "out of time"
    (tmp_path / "e01_slope.py").write_text(PROCESSES["swallows"][0])
    assert graded(tmp_path, "e01_slope").state == "out of time"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("grade",), "grade needs folders, or --course for its own lines"),
        (("grade", "empty", "--path", "--course", "x"), "--path is eight exercises of the book"),
        (("grade", "empty", "--list"), "grade takes folders"),
        (("grade", "empty", "none"), "none is not a folder: grade takes the folders of the"),
        (("grade", "two/ann/notes.txt"), "two/ann/notes.txt is not a folder"),
        (("grade", "empty", "-j", "0"), "-j 0 is not a number of checks: write 1 or more"),
        (("1", "--json"), "--csv, --json and -j go with grade"),
    ],
)
@pytest.mark.usefixtures("classes")
def test_what_cannot_be_graded_is_one_sentence(words, said):
    done = learn(*words)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert said in done.stderr


# ------------------------------------------------------------------ a course of somebody else

COURSE = ROOT / "tests" / "demos" / "course"
WHAT = {  # of a course: what is not as it should be, and what is said
    "": "is not a course",
    "exercises/mean.py": "call it by a letter and its number",
    "exercises/e01_slope.py": "e01_slope is an exercise of ",
    "exercises/d01_mean.py": "d01_mean.py is not there: each exercise needs a check",
    "checks/d01_mean.py exercises/d01_mean.py": "has no `# Your lines begin.`",
}


def test_a_course_is_tried_given_checked_and_graded_as_ours_is(tmp_path):
    own = learn("grade", "--course", COURSE, "--csv")
    assert own.returncode == 0
    assert own.stdout.splitlines()[0] == "folder,c01_mean,c02_square,solved"
    ann = tmp_path / "ann"
    learn("init", ann, "--course", COURSE)
    assert (ann / "c02_square.py").read_text() == stub("c02_square")
    first = learn("--in", ann)
    assert first.returncode == 1
    assert first.stdout.startswith("Exercise 1 of 2 · A mean: the gradient of an average")
    (ann / "c01_mean.py").write_text(solution("c01_mean"))
    assert "element [1] is -2; -4 was expected" in " ".join(learn("--in", ann).stdout.split())
    assert "[x]  1 " in learn("--in", ann, "--list").stdout
    assert "hint 1 of 3: Try it with one number" in learn("--in", ann, "--hint").stdout
    (ann / "c02_square.py").write_text(solution("c02_square"))
    done = learn("--in", ann)
    assert done.returncode == 0
    assert done.stdout.endswith("All exercises of the course are solved.\n")


@pytest.mark.parametrize("cheat", ["import demos", f"open({str(COURSE / 'checks/c01_mean.py')!r})"])
def test_a_courses_checks_are_closed_too(cheat, tmp_path):
    (tmp_path / "c01_mean.py").write_text(f"{cheat}\n{solution('c01_mean')}")
    assert graded(tmp_path, "c01_mean").state == "error"


def test_a_check_that_accepts_what_the_learner_gets_is_found_by_its_author(tmp_path):
    shutil.copytree(COURSE, tmp_path / "loose")
    check = "HINTS = 'a', 'b', 'c'\ndef check(answer):\n    pass\n"
    for file in (tmp_path / "loose/exercises").glob("*.py"):
        file.rename(file.with_stem(f"{file.stem}_again"))
        (tmp_path / "loose/checks" / f"{file.stem}_again.py").write_text(check)
    done = learn("grade", "--course", tmp_path / "loose", "--csv")
    assert done.returncode == 1
    assert done.stdout.splitlines()[1] == f"{tmp_path / 'loose'} (own lines),tampered,tampered,0"


def test_a_check_without_hints_is_one_sentence_for_its_author_and_a_learner(tmp_path):
    shutil.copytree(COURSE / "exercises", tmp_path / "mute/exercises")
    (tmp_path / "mute/checks").mkdir()
    for file in (tmp_path / "mute/exercises").glob("*.py"):
        file.rename(file.with_stem(f"{file.stem}_mute"))
        (tmp_path / f"mute/checks/{file.stem}_mute.py").write_text("check = print\n")
    learn("init", tmp_path / "ann", "--course", tmp_path / "mute")
    for words in (("grade", "--course", tmp_path / "mute"), ("--in", tmp_path / "ann", "--hint")):
        done = learn(*words)
        assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
        assert "checks/c01_mean_mute.py has no HINTS = (where to look, " in done.stderr


def test_what_a_file_writes_beside_itself_lands_beside_it_and_when_graded_in_its_copy(tmp_path):
    file = tmp_path / "e01_slope.py"
    file.write_text(f"open('beside.txt', 'w').close()\n{solution('e01_slope')}")
    assert graded(tmp_path, "e01_slope").state == "solved"
    assert {each.name for each in tmp_path.iterdir()} == {file.name}
    assert run(file, "e01_slope").solved and (tmp_path / "beside.txt").is_file()
    assert not (ROOT / "beside.txt").exists()


@pytest.mark.parametrize(("files", "said"), WHAT.items())
def test_a_course_that_cannot_be_read_is_one_sentence(files, said, tmp_path):
    for file in files.split():
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text("x = 1\n")
    done = learn("init", tmp_path / "ann", "--course", tmp_path)
    assert (done.returncode, done.stdout) == (2, "") and said in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--path",), "--path goes with the exercises of the book"),
        (("--save", "all.json"), "--save goes with the exercises of the book"),
        (("--course", "x"), "--course goes with init and grade"),
        (("3",), "they are numbered 1 to 2"),
    ],
)
def test_what_only_the_book_has_is_refused_in_a_folder_of_a_course(words, said, tmp_path):
    learn("init", tmp_path / "ann", "--course", COURSE)
    done = learn("--in", tmp_path / "ann", *words)
    assert done.returncode == 2 and said in done.stderr


def test_a_course_that_has_moved_is_told_and_named_anew(tmp_path):
    learn("init", tmp_path / "ann", "--course", COURSE)
    (tmp_path / "ann" / ".minigrad-course").write_text("/was/here")
    assert "the course /was/here is not there" in learn("--in", tmp_path / "ann").stderr
    learn("init", tmp_path / "ann", "--course", COURSE)
    assert learn("--in", tmp_path / "ann").returncode == 1
