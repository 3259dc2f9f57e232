"""Pages · Source: a file's definitions and imports, by `ast`, and its lines in colour, with links.

A name in code leads to its definition where the file's own imports or definitions bind it, and
where no function around it has a variable of that name.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup
from pygments.lexers import PythonLexer
from pygments.token import STANDARD_TYPES

Address = Callable[["Source", str], str]  # where a definition of a file is shown
CELL = re.compile(r"^# %%(.*)\n((?:#.*\n)*)\n*((?:(?!# %%).*\n)*)", re.MULTILINE)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
DEFINITIONS = (ast.FunctionDef, ast.ClassDef)
SCOPES = (*FUNCTIONS, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(eq=False)
class Source:
    """A Python file: its path in the project, its text, and what its names are bound to."""

    name: str  # minigrad.ops.softmaxes
    path: str  # minigrad/ops/softmaxes.py
    text: str

    def __post_init__(self) -> None:
        self.tree = ast.parse(self.text)
        self.lines = self.text.splitlines()
        self.docstring = ast.get_docstring(self.tree) or ""

    @cached_property
    def imports(self) -> dict[str, tuple[str, str]]:
        """The names that the file imports: the module, and the name there or "" for all of it."""
        bound = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    bound[alias.asname or alias.name.partition(".")[0]] = (alias.name, "")
            elif isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    name = alias.asname or alias.name
                    key = f"*{node.module}" if name == "*" else name
                    bound[key] = (node.module or "", alias.name)
        return bound

    @cached_property
    def defined(self) -> dict[str, ast.stmt]:
        """The functions, classes and variables of the module's top level."""
        statements: dict[str, ast.stmt] = {}
        for node in self.tree.body:
            if isinstance(node, DEFINITIONS):
                statements[node.name] = node
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for target in targets:
                    if isinstance(target, ast.Name) and target.id != "__all__":
                        statements[target.id] = node
        return statements

    def imported(self, files: Mapping[str, Source]) -> set[str]:
        """Return the modules in which the names that this file imports are defined."""
        targets = (resolve(files, *bound) for bound in self.imports.values())
        return {target[0].name for target in targets if target}


def sources(root: Path, packages: tuple[str, ...]) -> dict[str, Source]:
    """Return every Python file of the packages, by the name of its module."""
    files = {}
    for path in sorted(p for package in packages for p in (root / package).rglob("*.py")):
        place = path.relative_to(root).as_posix()
        name = place.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
        files[name] = Source(name, place, path.read_text(encoding="utf-8"))
    return files


def resolve(files: Mapping[str, Source], module: str, name: str) -> tuple[Source, str] | None:
    """Follow a name through the imports to the file that defines it; None outside of the files."""
    source = files.get(f"{module}.{name}") or files.get(module)
    if source is None or not name or source.name != module:
        return (source, "") if source else None
    if name in source.defined:
        return source, name
    if name in source.imports:
        return resolve(files, *source.imports[name])
    stars = (resolve(files, key[1:], name) for key in source.imports if key[0] == "*")
    return next((target for target in stars if target and target[1]), None)


def places(
    tree: ast.AST, lines: list[str], files: Mapping[str, Source], home: Source, address: Address
) -> dict[tuple[int, int], str]:
    """Return the address of each name in the tree that a file's imports or definitions bind."""
    addresses: dict[tuple[int, int], str] = {}

    def put(line: int, column: int, target: tuple[Source, str] | None) -> None:
        if target and (there := address(*target)):
            addresses[line, len(lines[line - 1].encode()[:column].decode())] = there

    def visit(node: ast.AST, hidden: frozenset[str]) -> None:
        if isinstance(node, SCOPES):
            for decorator in getattr(node, "decorator_list", ()):
                visit(decorator, hidden)
            hidden |= _variables(node)
        if isinstance(node, ast.Name) and node.id not in hidden:
            put(node.lineno, node.col_offset, resolve(files, home.name, node.id))
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                put(alias.lineno, alias.col_offset, resolve(files, node.module or "", alias.name))
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module = None if node.value.id in hidden else home.imports.get(node.value.id)
            inner = module and resolve(files, *module)
            if inner and not inner[1] and node.end_lineno:
                start = (node.end_col_offset or 0) - len(node.attr.encode())
                put(node.end_lineno, start, resolve(files, inner[0].name, node.attr))
        for child in ast.iter_child_nodes(node):
            if child not in getattr(node, "decorator_list", ()):
                visit(child, hidden)

    visit(tree, frozenset())
    return addresses


def _variables(scope: ast.AST) -> set[str]:
    """Return the names that a function or comprehension binds itself."""
    nodes = [node for node in ast.walk(scope) if node is not scope]
    names = {node.arg for node in nodes if isinstance(node, ast.arg)}
    names |= {node.name for node in nodes if isinstance(node, DEFINITIONS)}
    used = (node for node in nodes if isinstance(node, ast.Name))
    return names | {node.id for node in used if isinstance(node.ctx, ast.Store)}


class Cell(NamedTuple):
    """A cell of a demo: its heading, its comment, its code, and the lines of the code."""

    heading: str
    comment: str  # Markdown
    code: str
    lines: range


def cells(text: str) -> list[Cell]:
    """Return the cells of a demo, each from a line that begins with "# %%" up to the next."""
    cells = []
    for m in CELL.finditer(text):
        code = m[3].rstrip()
        first = 1 + text.count("\n", 0, m.start(3))
        lines = range(first, first + len(code.splitlines()))
        cells.append(Cell(m[1].strip(), re.sub("(?m)^# ?", "", m[2]), code, lines))
    return cells


def coloured(text: str, links: Mapping[tuple[int, int], str]) -> list[Markup]:
    """Return the lines of Python code as HTML: colours by kind of token, and names as links."""
    lines = [""]
    column = 0
    for _, kind, value in PythonLexer(stripnl=False).get_tokens_unprocessed(text):
        mark = STANDARD_TYPES.get(kind, "")[:1]
        for part in re.findall(r"\n|[^\n]+", value):
            if part == "\n":
                lines.append("")
                column = 0
                continue
            html = escape(part, quote=False)
            if address := links.get((len(lines), column)):
                html = f'<a href="{escape(address)}">{html}</a>'
            if mark and mark in "kscm" and part.strip():
                html = f'<span class="{mark}">{html}</span>'
            lines[-1] += html
            column += len(part)
    return [Markup(line) for line in lines]
