"""Site · Notebooks: a chapter's examples, or a demo's cells, as the text of an `.ipynb`."""

import ast
import doctest
import json
import re
from pathlib import Path
from textwrap import indent

from markupsafe import Markup

from demos.pages.source import cells
from demos.site._contents import PRELUDE

COLUMNS = re.compile(r"^\S(?:[^\n]*[^\s.])? {2,}\S.*?(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)


def of_chapter(path: Path) -> str:
    """Return a chapter's notebook: its docstrings, with their examples as cells of code."""
    module = ast.parse(path.read_text(encoding="utf-8"))
    title, _, text = ast.get_docstring(module).partition("\n")
    cells = [_cell("markdown", f"# {title}"), _cell("code", PRELUDE), *_taken_apart(text)]
    nodes = [node for node in ast.walk(module) if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    for node in sorted(nodes, key=lambda node: node.lineno):
        text, is_private = ast.get_docstring(node) or "", node.name.startswith("_")
        if ">>> " in text or (text and node in module.body and not is_private):
            if is_private:
                parts = path.resolve().with_suffix("").relative_to(Path(__file__).parents[2]).parts
                cells.append(_cell("code", f"from {'.'.join(parts)} import {node.name}"))
            cells += _taken_apart(f"## `{node.name}`\n\n{text}")
    return _notebook(cells)


def of_demo(path: Path) -> str:
    """Return a demo's notebook: the heading of a cell, and the comment below it, are text."""
    source = path.read_text(encoding="utf-8")
    shown = _taken_apart(f"# {ast.get_docstring(ast.parse(source))}")
    for cell in cells(source):
        text = f"## {cell.heading}\n{cell.comment}" if cell.heading else cell.comment
        shown += [_cell("markdown", text), _cell("code", cell.code)]
    return _notebook(shown)


def notebook(name: str) -> Markup:
    """Return the link to a notebook."""
    return Markup(f'<a href="notebooks/{name}.ipynb" download>as a notebook</a>')


def _taken_apart(docstring: str) -> list[dict]:
    """Return the cells of a docstring. Columns that are made with spaces become a display."""
    cells, code = [], ""
    for part in filter(None, [*doctest.DocTestParser().parse(docstring), "\n"]):
        if isinstance(part, str):
            shown = COLUMNS.sub(lambda found: indent(found[0], "    "), part)
            cells += [_cell("code", code), _cell("markdown", shown)]
            code = ""
        else:
            code += re.sub(" *# doctest: .*", "", part.source)
            if part.want:  # a cell ends here, since it shows the value of its last line alone
                tags = ["raises-exception"] if part.exc_msg else []  # (the next cells run, too)
                cells.append(_cell("code", code, *tags))
                code = ""
    return cells


def _cell(kind: str, source: str, *tags: str) -> dict:
    more = {"execution_count": None, "outputs": []} if kind == "code" else {}
    return {"cell_type": kind, "metadata": {"tags": tags}, "source": source.strip("\n"), **more}


def _notebook(cells: list[dict]) -> str:
    """Return the file: the cells that are not empty, numbered, and the language of the code."""
    cells = [{"id": f"cell-{i}", **cell} for i, cell in enumerate(cells) if cell["source"].strip()]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    whole = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, ensure_ascii=False, indent=1) + "\n"
