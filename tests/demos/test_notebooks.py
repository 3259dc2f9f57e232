"""Notebooks: they have each example and each line of a demo once, and they run in a kernel."""

import ast
import doctest
import io
import json
import os
import re
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from demos import files, options
from demos.site._notebooks import PRELUDE, of_chapter, of_demo
from tests.demos.running import ENVIRONMENT, ROOT

SOURCES = [path for package in ("minigrad", "attention") for path in (ROOT / package).rglob("*.py")]
CHAPTERS = sorted(path for path in SOURCES if re.match(r'"""[\d.]+ · ', path.read_text("utf-8")))


def dotted(path):
    """A module's name."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def cells(text, kind=""):
    """The cells of a notebook, or what those of a kind hold."""
    cells = nbformat.reads(text, as_version=4).cells
    return [cell.source for cell in cells if cell.cell_type == kind] if kind else cells


def lines(*texts):
    """The lines that are not empty."""
    return [line for text in texts for line in text.splitlines() if line.strip()]


@pytest.fixture
def chapter(tmp_path):
    """chapter(docstring): the cells after the title and the prelude."""

    def chapter(docstring):
        path = tmp_path / "chapter.py"
        path.write_text(f'"""9.9 · A title.\n\n{docstring}\n"""\n', encoding="utf-8")
        return cells(of_chapter(path))[2:]

    return chapter


@pytest.mark.parametrize("path", CHAPTERS, ids=dotted)
def test_a_chapter_has_its_title_its_names_and_each_example_once(path):
    source, text = path.read_text(encoding="utf-8"), of_chapter(path)
    title, *told = cells(text, "markdown")
    assert title == "# " + source.removeprefix('"""').split("\n")[0]
    public = re.findall(r"^(?:def|class) ([^\W_]\w*)", source, re.MULTILINE)
    headings = re.findall(r"^## `(\w+)`$", "\n".join(told), re.MULTILINE)
    assert [name for name in headings if name in public] == list(dict.fromkeys(public))
    prelude, *code = cells(text, "code")
    assert prelude == PRELUDE
    private = {f"from {dotted(path)} import {name}" for name in {*headings} - {*public}}
    found = [line.rstrip() for line in lines(*code) if line not in private]
    assert found == re.findall(r"^ *(?:>>>|\.\.\.) (.*?) *(?:# doctest: .*)?$", source, re.M)


@pytest.mark.parametrize("path", files().values(), ids=files())
def test_a_demo_has_each_of_its_lines_once_and_its_code_is_the_same(path):
    source, text = path.read_text(encoding="utf-8"), of_demo(path)
    tree = ast.parse(source)
    first, *rest = cells(text)
    assert first["source"] == f"# {ast.get_docstring(tree)}"
    told = "\n".join(source.split("\n")[tree.body.pop(0).end_lineno :])
    assert ast.dump(ast.parse("\n".join(cells(text, "code")))) == ast.dump(tree)
    plain = lambda texts: list(filter(None, [line.lstrip("#% ") for line in lines(*texts)]))
    assert plain(cell["source"] for cell in rest) == plain([told])


@pytest.mark.parametrize("path", [*CHAPTERS, *files().values()], ids=dotted)
def test_a_notebook_is_valid_and_has_the_same_bytes_again(path):
    of = of_chapter if path in CHAPTERS else of_demo
    whole = json.loads(of(path))
    nbformat.validate(whole)
    assert (whole["nbformat"], whole["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in whole["cells"]}) == len(whole["cells"])
    assert whole["metadata"]["kernelspec"]["name"] == "python3"
    assert of(path) == of(path)


def test_a_cell_ends_where_a_value_is_shown_and_an_error_that_is_meant_stops_none(chapter):
    raised = "Traceback (most recent call last):\nE: ..."
    found = chapter(f">>> a = 1\n>>> a\n1\n>>> b = 2\n>>> b / 0\n{raised}\n>>> c = 3\n\nText.")
    assert [cell["source"] for cell in found] == ["a = 1\na", "b = 2\nb / 0", "c = 3", "Text."]
    assert [cell.metadata.get("tags") for cell in found] == [None, ["raises-exception"], None, None]


def test_columns_and_displays_are_displays_and_sentences_are_text(chapter):
    (cell,) = chapter("x   the input,\n    or more\ny z  two\n\n    a = b\n\nA line.   (T, S)")
    shown = "    x   the input,\n        or more\n    y z  two\n\n    a = b\n\nA line.   (T, S)"
    assert cell["source"] == shown


SIGNS = '<b> & "quoted" </script> ∂L/∂xᵢ ⟨y, g⟩ √d_k'


def test_signs_of_html_and_unicode_are_in_the_file_as_they_are(chapter, tmp_path):
    told, code = chapter(f"{SIGNS}\n\n>>> a = {SIGNS!r}")
    assert (told["source"], code["source"]) == (SIGNS, f"a = {SIGNS!r}")
    path = tmp_path / "demo.py"
    path.write_text(f'"""A demo."""\n\n# %% {SIGNS}\n# {SIGNS}\n\nb = {SIGNS!r}\n', "utf-8")
    text = of_demo(path)
    assert cells(text, "markdown")[1] == f"## {SIGNS}\n{SIGNS}"
    assert cells(text, "code") == [f"b = {SIGNS!r}"]
    assert "√d_k" in text


KERNEL = ["ipykernel_launcher.py", "-f", "kernel.json"]
SCRIPT = {"__file__": str(files()["two_moons"])}
CELL = {"get_ipython": lambda: None}  # (VS Code gives cells the `__file__` of a script, too)


@pytest.mark.parametrize("names", [CELL, CELL | SCRIPT], ids=["Jupyter", "VS Code"])
def test_a_demo_in_a_notebook_takes_its_defaults(names, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", KERNEL)
    ask = "options('two_moons', 'A claim.', steps=600, quick=20)"
    chosen = eval(ask, names | {"options": options})
    assert chosen.out == Path("out/two_moons") and chosen.file == SCRIPT["__file__"]
    assert (chosen.seed, chosen.steps, chosen.quick, chosen.resume) == (0, 600, False, False)
    with pytest.raises(SystemExit, match="^2$"):  # a script has no such option
        eval(ask, SCRIPT | {"options": options})


@pytest.mark.slow
@pytest.mark.parametrize("path", CHAPTERS, ids=dotted)
def test_the_cells_of_a_chapter_in_their_order_show_what_the_chapter_shows(path):
    """They share their names, so an example must not change what a later one uses."""
    space, code = {}, "\n".join(cells(of_chapter(path), "code"))
    for line in [PRELUDE, *re.findall(r"^from \S+ import _\w+$", code, re.MULTILINE)]:
        exec(line, space)
    text = path.read_text(encoding="utf-8").replace('"""', "")
    examples = doctest.DocTestParser().get_examples(text)
    report = io.StringIO()
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE, verbose=False)
    whole = doctest.DocTest(examples, space, dotted(path), None, 0, None)
    assert runner.run(whole, out=report.write).failed == 0, report.getvalue()


# ------------------------------------------------------------------ a real kernel


@pytest.fixture
def executed(tmp_path, monkeypatch):
    """executed(text): the cells of a notebook that a kernel has run, in a folder of its own."""
    for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name))  # nothing of the user's decides anything

    def executed(text):
        notebook = nbformat.reads(text, as_version=4)
        where = {"metadata": {"path": str(tmp_path)}}
        client = NotebookClient(notebook, timeout=300, kernel_name="python3", resources=where)
        client.execute(env=os.environ | ENVIRONMENT | {"PYTHONPATH": str(ROOT)})
        return [cell for cell in notebook.cells if cell.cell_type == "code"]

    return executed


def printed(cells, name="stdout"):
    """Return the text that the cells have printed. None of them may have an error."""
    found = [each for cell in cells for each in cell.outputs]
    assert not [each for each in found if each.output_type == "error"]
    return "".join(each.text for each in found if each.get("name") == name)


@pytest.mark.slow
def test_a_chapter_runs_in_a_kernel_and_shows_its_values(executed):
    cells = executed(of_chapter(ROOT / "minigrad/ops/softmaxes.py"))
    assert printed(cells) == printed(cells, "stderr") == ""
    values = [each.data["text/plain"] for cell in cells for each in cell.outputs]
    pair = "array([0.25, 0.75])"
    assert values == [pair, "array([ 0.09, -0.09])", pair, "np.float64(4.0)"]


FIGURES = {"first_gradient": 2, "two_moons": 2}


@pytest.mark.slow
@pytest.mark.parametrize("name", FIGURES)
def test_a_demo_runs_in_a_kernel_to_its_page_and_its_marks(name, executed, tmp_path, finished):
    cells = executed(of_demo(files()[name]))
    said = printed(cells)
    passed, of = re.search(r"(\d+) of (\d+) checks passed; --marks shows them\n$", said).groups()
    assert passed == of
    folder, on_the_command_line = finished(name)
    names = {path.name for path in folder.iterdir()}
    # Its cells show themselves, so it needs no page and no picture for a list of pages.
    outputs = [each for cell in cells for each in cell.outputs if "data" in each]
    parts = [each.data.get("text/html", "") for each in outputs]
    assert on_the_command_line and "".join(parts).count("</figure>") == FIGURES[name]
    names -= {"index.html", "content.json", "small.png", "small.svg"}
    assert {path.name for path in (tmp_path / "out" / name).iterdir()} == names
    bars = re.findall(r"100%.*?(\d+)/\1 ", printed(cells, "stderr"))
    assert bars == ["600", "600"] * (name == "two_moons")
