"""Site · Notebooks: a chapter's examples, or a demo's cells, as the text of an `.ipynb`."""

import ast
import doctest
import re
from pathlib import Path
from textwrap import indent

import nbformat
from markupsafe import Markup
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from demos.live._examples import PRELUDE
from demos.pages.source import cells

COLUMNS = re.compile(r"^\S(?:[^\n]*[^\s.])? {2,}\S.*?(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)


def of_chapter(path: Path) -> str:
    """Return a chapter's notebook: its docstrings, with their examples as cells of code."""
    module = ast.parse(path.read_text(encoding="utf-8"))
    title, _, text = ast.get_docstring(module).partition("\n")
    cells = [new_markdown_cell(f"# {title}"), new_code_cell(PRELUDE), *_taken_apart(text)]
    nodes = [node for node in ast.walk(module) if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    for node in sorted(nodes, key=lambda node: node.lineno):
        text, is_private = ast.get_docstring(node) or "", node.name.startswith("_")
        if ">>> " in text or (text and node in module.body and not is_private):
            if is_private:
                parts = path.resolve().with_suffix("").relative_to(Path(__file__).parents[2]).parts
                cells.append(new_code_cell(f"from {'.'.join(parts)} import {node.name}"))
            cells += _taken_apart(f"## `{node.name}`\n\n{text}")
    return _notebook(cells)


def of_demo(path: Path) -> str:
    """Return a demo's notebook: the heading of a cell, and the comment below it, are text."""
    source = path.read_text(encoding="utf-8")
    shown = _taken_apart(f"# {ast.get_docstring(ast.parse(source))}")
    for cell in cells(source):
        text = f"## {cell.heading}\n{cell.comment}" if cell.heading else cell.comment
        shown += [new_markdown_cell(text), new_code_cell(cell.code)]
    return _notebook(shown)


def notebook(name: str) -> Markup:
    """Return the link to a notebook."""
    return Markup(f'<a href="notebooks/{name}.ipynb" download>as a notebook</a>')


def _taken_apart(docstring: str) -> list[NotebookNode]:
    """Return the cells of a docstring. Columns that are made with spaces become a display."""
    cells, code = [], ""
    for part in filter(None, [*doctest.DocTestParser().parse(docstring), "\n"]):
        if isinstance(part, str):
            shown = COLUMNS.sub(lambda found: indent(found[0], "    "), part)
            cells += [new_code_cell(code), new_markdown_cell(shown)]
            code = ""
        else:
            code += re.sub(" *# doctest: .*", "", part.source)
            if part.want:  # a cell ends here, since it shows the value of its last line alone
                cell = new_code_cell(code)
                if part.exc_msg:
                    cell.metadata.tags = ["raises-exception"]  # (the next cells run, too)
                cells.append(cell)
                code = ""
    return cells


def _notebook(cells: list[NotebookNode]) -> str:
    """Return the file: the cells that are not empty, numbered, and the language of the code."""
    cells = [cell for cell in cells if cell.source.strip()]
    for i, cell in enumerate(cells):
        cell.source = cell.source.strip("\n")
        cell.id = f"cell-{i}"  # (nbformat draws it at random, and a build has the same bytes again)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    notebook = new_notebook(cells=cells, metadata=metadata)
    nbformat.validate(notebook)
    return nbformat.writes(notebook) + "\n"
