"""The book: every file shows its chapter, and every package lists its chapters."""

import ast
import functools
import importlib
import inspect
import io
import re
import subprocess
import tokenize
from pathlib import Path

import numpy as np
import pytest

from demos.site._checking import examples, failure
from demos.site._contents import book
from tests.test_readme import BLOCKS

ROOT = Path(__file__).parents[1]
CHAPTERS = list(book()[0].values())
TABLE = [(each.number, each.source.path, len(each.source.lines)) for each in CHAPTERS]
FILES = sorted((ROOT / "minigrad").rglob("*.py")) + sorted((ROOT / "attention").rglob("*.py"))


def first_line(path):
    return (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").split("\n")[0]


NUMBERED = [path for path in FILES if re.match(r"[\d.]+ · ", first_line(path))]


def tracked():
    """Every file of the project, as git knows them."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    return listed.stdout.splitlines()


def test_the_visible_top_level_holds_the_six_agreed_names():
    top = {name.split("/")[0] for name in tracked()}
    visible = {name for name in top if not name.startswith(".")}
    assert visible == {"pyproject.toml", "README.md", "minigrad", "attention", "tests", "demos"}


# Lines that may stand: what the tree had after issue “Arrows only downwards” and 4 % of air, and
# what later issues added. Who raises a number writes down why.
BUDGETS = {
    # 10,800 and air. “The book answers”: `agreement`, its drawing, and a hook for viz.js (400).
    "minigrad/": 12_100,  # “In use”: groups, functional_call, types (300), sweeps (210)
    # “In use”: prompts of unequal length, `real=`, and `recompute` of a Stack (600).
    # “Unequal before, vanishing after”: chapter 16.8, over a training (300).
    "attention/": 6_000,
    "attention/laboratory/": 2_200,
    # 19,400 and air. 4,400 of these are exercises, slips, stories and programs by hand, which are
    # texts. “The book answers”: the Python of pages that run, and of their runtime (1,700).
    # “The first picture”: attention in a plane, pictures of chapters, questions, tasks, sections
    # for Find, demos that are one page, the twelve blocks of a GPT, plots of 16.2 to 16.7 (1,600).
    # “Unequal before, vanishing after”: laws in figures, a GPT over a training, a citation, and
    # marks that a referee asked for (800).
    # “In use”: measured changes of a step, a class that is graded, many workers (1,000).
    "demos/": 25_400,
    # 24,300 and air. “The book answers”: a real browser, and the same in CPython (2,200).
    # “The first picture”: what is drawn against the engine, links, and what Find finds (1,100).
    # “Unequal before, vanishing after”: each law against the engine, and a GPT’s heads (600).
    "tests/": 30_700,  # “In use”: files that cheat (180), killed workers (150), other parts
}
BOOK = 10_800  # the chapters; 300 are 16.8 of “Unequal before, vanishing after”, 200 “In use”
# .js, .css and .html: 2,800 and air, 1,100 for pages that run, and 700 of “The first picture”: a
# hero that moves, Find for sentences, the line of the evening, a demo's frame, a GPT's grid.
WEB = 4_700
DATA = {  # what a command wrote
    "demos/laboratory/results_full_steps.json",  # laboratory --full
    "demos/laboratory/results_full_trained.json",
    "demos/laboratory/results_full_over_training.jsonl",
    "demos/pretrained/real_heads.jsonl",  # python -m demos.pretrained._real_heads
}


def lines_of(names):
    return sum(len((ROOT / name).read_text(encoding="utf-8").splitlines()) for name in names)


def test_no_part_has_more_lines_than_its_budget():
    names = tracked()
    python = [name for name in names if name.endswith(".py")]
    found = {part: lines_of(n for n in python if n.startswith(part)) for part in BUDGETS}
    assert not {part: n for part, n in found.items() if n > BUDGETS[part]}, found
    assert lines_of(NUMBERED) <= BOOK
    ours = [n for n in names if n.endswith((".js", ".css", ".html")) and "dagre" not in n]
    assert lines_of(ours) <= WEB
    data = (".json", ".jsonl", ".txt", ".csv")
    assert {name for name in names if name.endswith(data)} == DATA


def test_the_table_of_contents_lists_every_chapter_in_order():
    listed = [path for _, path, _ in TABLE]
    exist = {str(path.relative_to(ROOT)) for path in NUMBERED}
    assert set(listed) == exist and len(listed) == len(exist)
    numbers = [tuple(int(n) for n in number.split(".")) for number, *_ in TABLE]
    assert numbers == sorted(numbers)


def said_by(package):
    """Return the docstring of a package."""
    return ast.get_docstring(ast.parse((package / "__init__.py").read_text(encoding="utf-8")))


# How a package names chapters: "    3.6  softmaxes", "    1, 2  engine", "    chapter 16.2, chain".
LISTED = re.compile(r"^    (?:chapter )?([\d.]+)(?:, [\d.]+)?,? +(\w+)\b", re.MULTILINE)


def test_a_package_lists_its_chapters_in_their_order():
    rows = {}
    for number, path, _ in TABLE:
        file = ROOT / path
        package, name = file.parent, file.stem
        if name == "__init__":  # a chapter that has a folder of its own
            package, name = package.parent, package.name
        rows.setdefault(package, []).append((number, name))
    for package, expected in rows.items():
        listed = LISTED.findall(said_by(package))
        assert [row for row in listed if row in expected] == expected, package
        folders = {name for _, name in {*listed} - {*expected}}  # with chapters of their own
        assert all((package / name / "__init__.py").is_file() for name in folders), folders
    assert len(rows) == 8


def test_a_file_without_a_number_is_named_by_its_package():
    for path in FILES:
        if path not in NUMBERED and path.name != "__init__.py":
            package = path.parent / "__init__.py"
            said = ast.get_docstring(ast.parse(package.read_text(encoding="utf-8")))
            assert re.search(rf"\b{path.stem}\b", said), path


NUMBER = r"\d+(?:\.\d+)*"


def test_each_chapter_that_is_spoken_of_exists():
    exist = {number for number, *_ in TABLE}
    exist |= {number.split(".")[0] for number in exist}  # "chapter 2" is 2.1 to 2.4
    for name in tracked():
        if name.endswith((".py", ".md", ".html", ".js")):
            text = (ROOT / name).read_text(encoding="utf-8")
            joined = (
                rf"[Cc]hapters?\s+(?:#\s+)?({NUMBER}(?:(?:,|,? and| or| to)\s+(?:#\s+)?{NUMBER})*)"
            )
            for listed in re.findall(joined, text):
                assert set(re.findall(NUMBER, listed)) <= exist, (name, listed)


STOP = "A first reading may stop here."


@pytest.mark.parametrize("path", [path for number, path, _ in TABLE if number[:2] in ("1.", "2.")])
def test_in_chapters_1_and_2_the_lesson_comes_first_and_says_where_it_ends(path):
    before, stop, after = (ROOT / path).read_text(encoding="utf-8").partition(STOP)
    assert stop and STOP not in after
    heading, says, *_ = after.splitlines()
    assert heading == "" and re.match(r" *# What follows", says)
    assert before.count("\n") < 260  # of which more than half are prose


def test_a_long_chapter_says_where_a_first_reading_may_stop():
    """(Chapter 6 is reference from its first line.)"""
    for number, path, lines in TABLE:
        if lines > 220 and not number.startswith("6."):
            text = (ROOT / path).read_text(encoding="utf-8")
            assert STOP in text or REFERENCE.strip("# \n") in text, path


@pytest.mark.parametrize("path", sorted((ROOT / "demos").rglob("*.py")), ids=lambda p: p.stem)
def test_every_demo_file_opens_with_what_it_shows(path):
    assert len(first_line(path)) > 20


def test_attention_uses_public_names_of_minigrad_alone():
    """A name in the `__all__` of minigrad, minigrad.nn or minigrad.optim."""
    for path in sorted((ROOT / "attention").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module.split(".")[0] == "minigrad":
                assert node.module in ("minigrad", "minigrad.nn", "minigrad.optim"), path
                public = importlib.import_module(node.module).__all__
                assert {each.name for each in node.names} <= set(public), path


def changes_from_outside(tree):
    """Yield each piece of a module that changes another module, or a class that is made."""
    for node in ast.walk(tree):
        text = ast.unparse(node) if isinstance(node, ast.Call | ast.Assign) else ""
        if re.match(r"(setattr|vars\(.*\)\.update)\(|.*\.__globals__\[.*\] = ", text):
            yield text
    for node in tree.body:
        targets = getattr(node, "targets", [getattr(node, "target", None)])
        if any(isinstance(target, ast.Attribute) for target in targets):
            yield ast.unparse(node)


def test_no_module_changes_another_and_no_class_is_changed_after_it_is_made():
    """(`Module.__init_subclass__` wraps two methods while a class is being made, and says so.)"""
    for path in FILES:
        assert not list(changes_from_outside(ast.parse(path.read_text(encoding="utf-8")))), path
    for patch in (
        "vars(_words).update(ops=ops)",
        "checking.explained = explained",
        "f.__globals__['f'] = g",
        "for name in names:\n    setattr(Tensor, name, f)",
    ):
        assert list(changes_from_outside(ast.parse(patch))), patch


NUMBERS = {path: tuple(int(n) for n in number.split(".")) for number, path, _ in TABLE}


def test_no_name_of_a_module_is_also_a_public_function_of_its_package():
    import attention
    import minigrad

    for package in (minigrad, minigrad.ops, attention):
        modules = {path.stem for path in Path(package.__file__).parent.iterdir()}
        assert not modules & set(package.__all__)


# Names in backticks. A reader of chapter n may meet the name of a later chapter, if the sentence
# says which one: `recompute` (chapter 2.4). What is looked at: docstrings and comments, without
# their examples. What is not: chapter 0, which has everything in small under the same names; words
# of NumPy, which a reader brings along; `minigrad.name`, which says where it is; the fused rules'
# own function `backward(g, y, needs)`; names that the file has for parameters or fields of its own;
# and in a package's `__init__`, a table of contents, the names of the package.


def defined_in_chapters():
    """Every public function and class of a chapter that is not a word of NumPy: its number."""
    found = {}
    for path, number in NUMBERS.items():
        for node in ast.parse((ROOT / path).read_text(encoding="utf-8")).body:
            is_thing = isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name[0] != "_"
            if is_thing and number != (0,) and not hasattr(np, node.name):
                found[node.name] = min(number, found.get(node.name, number))
    return found


def own_names(path):
    """The parameters of a file's functions, and the fields of its classes."""
    nodes = list(ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))))
    return {node.arg for node in nodes if isinstance(node, ast.arg)} | {
        getattr(node.target, "id", "") for node in nodes if isinstance(node, ast.AnnAssign)
    }


def prose(path):
    """The docstrings of a file without their examples, and its comments, as paragraphs."""
    source = (ROOT / path).read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef):
            text = re.sub(r"^ *(>>>|\.\.\.) .*", "", ast.get_docstring(node) or "", flags=re.M)
            yield from text.split("\n\n")
    comments, last = [], 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            if token.start[0] != last + 1:
                yield " ".join(comments)
                comments = []
            comments.append(token.string.lstrip("# "))
            last = token.start[0]
    yield " ".join(comments)


def named_too_early(paragraph, number, defined):
    """Names of chapters after `number` in sentences that do not say the chapter."""
    for sentence in re.split(r"(?<=[.?!])[)\"]?\s+", paragraph):
        said = re.findall(r"chapters? ([\d.]*\d)(?: (?:and|or|to) ([\d.]*\d))?", sentence)
        said = [tuple(map(int, each.split("."))) for pair in said for each in pair if each]
        for name, arguments in re.findall(r"`(?:@|with )?(\w+)(\(.*?\))?:?`", sentence):
            chapter = defined.get(name, (0,))
            told = any(chapter[: len(each)] == each for each in said)
            if chapter > number and not told and arguments != "(g, y, needs)":
                yield name, ".".join(map(str, chapter)), " ".join(sentence.split())


def test_a_name_of_a_later_chapter_comes_with_its_chapter():
    defined = defined_in_chapters()
    assert {"no_grad", "gradcheck", "Linear", "Adam", "attention", "translate"} <= defined.keys()
    early = []
    for path, number in NUMBERS.items():
        if number == (0,):
            continue
        inside = number if path.endswith("__init__.py") else None
        known = {n: c for n, c in defined.items() if c[: len(number)] != inside}
        for name in own_names(path):
            known.pop(name, None)
        for paragraph in prose(path):
            early += [(path, *found) for found in named_too_early(paragraph, number, known)]
    assert not early, "\n".join(map(str, early))


@pytest.mark.parametrize(
    ("sentence", "found"),
    [
        ("It is freed by `recompute`.", ["recompute"]),
        ("It is freed by `recompute(f, x)`. See chapter 2.4.", ["recompute"]),
        ("It is freed by `@recompute` (chapter 2.2).", ["recompute"]),
        ("It is freed by `recompute` (chapter 2.4).", []),
        ("It is freed by `recompute`, as chapters 1.2 and 2 say.", []),
        ("`Tensor`, `np.recompute` and `t.recompute()` are not later names.", []),
    ],
)
def test_a_name_too_early_is_found(sentence, found):
    early = list(named_too_early(sentence, (1, 2), {"recompute": (2, 4), "Tensor": (1, 1)}))
    assert [name for name, _, _ in early] == found


REFERENCE = "\n# Reference: no demo uses what follows.\n"
SHOWN = [
    *sorted((ROOT / "attention").glob("*.py")),
    *sorted((ROOT / "minigrad" / "nn").glob("*.py")),
    ROOT / "minigrad" / "optim.py",
]


def names_in(tree):
    """Every name that a piece of code reads, calls or imports."""
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} | {
        each.name for node in imports for each in node.names
    }


def definitions(text):
    """Each function and class of a module's top level, with the names in it."""
    kinds = ast.FunctionDef | ast.ClassDef
    return {node.name: names_in(node) for node in ast.parse(text).body if isinstance(node, kinds)}


def reached(names):
    """These names of the shown packages, and all that their definitions lead to."""
    inside = {}
    for path in SHOWN:
        for name, more in definitions(path.read_text(encoding="utf-8")).items():
            inside[name] = inside.get(name, set()) | more
    names = names & inside.keys()
    while new := set().union(*(inside[name] for name in names)) & inside.keys() - names:
        names = names | new
    return names


@functools.cache
def in_demos(*, without=""):
    """The names in all demos, but for one of them, and in README's blocks of code."""
    texts = [p.read_text("utf-8") for p in (ROOT / "demos").rglob("*.py") if p.stem != without]
    return set().union(*(names_in(ast.parse(text)) for text in [*texts, *BLOCKS]))


def below_the_line(path):
    """The definitions of a chapter that are marked as reference."""
    text = path.read_text(encoding="utf-8")
    lesson, line, _ = text.partition(REFERENCE)
    assert text.count(line or REFERENCE) == bool(line), path
    return definitions(text).keys() - definitions(lesson).keys()


def public_names():
    import attention
    import minigrad.nn
    import minigrad.optim

    packages = (attention, minigrad.nn, minigrad.optim)
    return {name for package in packages for name in package.__all__}


def test_a_public_name_is_used_by_a_demo_or_stands_below_the_line_that_says_no_demo_uses_it():
    used = reached(in_demos())
    reference = set().union(*map(below_the_line, SHOWN))
    assert public_names() - used <= reference
    assert not used & reference  # the line does not say too much


def test_what_a_demo_reaches_through_others_is_found_and_what_it_does_not_reach_is_not():
    assert "KVCache" not in in_demos() and "KVCache" in reached({"generate"})
    assert "Decoder" in reached({"Transformer"}) and "GatedFeedForward" in reached({"llama"})
    assert "fused_attention" in reached({"MultiHeadAttention"}) - reached({"attention"})
    assert "recompute" in in_demos() and "recompute" not in in_demos(without="charlm")


def first_words(thing):
    """Return the first line of a docstring, which is what `help()` and the site show first."""
    return (inspect.getdoc(thing) or "").split("\n")[0]


def test_every_public_name_has_a_first_line_that_says_what_it_is():
    import attention
    import minigrad
    import minigrad.nn
    import minigrad.optim

    packages = (minigrad, minigrad.nn, minigrad.optim, attention)
    said = {(p.__name__, n): first_words(getattr(p, n)) for p in packages for n in p.__all__}
    assert len(said) > 150 and not [name for name, line in said.items() if not line]


def modules():
    """Yield the name of each module of the two packages."""
    for path in FILES:
        dotted = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        yield dotted.removesuffix(".__init__")


EXAMPLES = [test for name in modules() for test in examples(name)]


@pytest.mark.parametrize("example", EXAMPLES, ids=[test.name for test in EXAMPLES])
def test_a_docstrings_example_does_what_it_shows(example):
    assert failure(example) == ""


def test_the_evening_is_short():
    evening = [ROOT / each.source.path for each in CHAPTERS if each.star]
    lessons = [path.read_text(encoding="utf-8").partition(STOP)[0] for path in evening]
    assert len(lessons) == 14 and sum(lesson.count("\n") for lesson in lessons) <= 1_800
