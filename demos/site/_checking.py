"""Site · Checking: the examples run, every link leads somewhere, and no address stands twice."""

from __future__ import annotations

import doctest
import importlib
import subprocess
from html.parser import HTMLParser
from importlib import metadata
from pathlib import Path
from urllib.parse import unquote, urlsplit

from demos.site._contents import PRELUDE, ROOT
from demos.site._templates import Page


def version() -> str:
    """Return the version, and where there is a repository its commit and the commit's date."""
    said = ["git", "-C", str(ROOT), "log", "-1", "--format=commit %h of %cs"]
    done = subprocess.run(said, capture_output=True, text=True, check=False)
    number = metadata.version("minigrad-attention")
    return f"minigrad {number}, {done.stdout.strip() or 'no commit'}"


def failures(names: list[str]) -> str:
    """Run the examples of these modules; return what the first wrong one says."""
    space: dict[str, object] = {}
    exec(PRELUDE, space)
    said: list[str] = []
    for name in names:
        module = importlib.import_module(name)
        for test in doctest.DocTestFinder(exclude_empty=True).find(module):
            private = test.name.rpartition(".")[2].startswith("_")
            test.globs = dict(vars(module) if private else space)
            runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
            if test.examples and runner.run(test, out=said.append).failed:
                return "".join(said)
    return ""


class Targets(HTMLParser):
    """The links and the addresses of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the address of an element, and where it leads."""
        found = dict(attrs)
        self.ids += filter(None, [found.get("id")])
        self.links += filter(None, (found.get(name) for name in ("href", "src", "data-href")))


def wrong_links(folder: Path, pages: list[Page]) -> list[str]:
    """Return every link that leads nowhere, and every address that a page has twice."""
    found = {}
    for page in pages:
        found[page.file] = Targets()
        found[page.file].feed((folder / page.file).read_text(encoding="utf-8"))
    wrong = []
    for file, page in found.items():
        wrong += [f"{file}: #{i} twice" for i in {i for i in page.ids if page.ids.count(i) > 1}]
        for link in page.links:
            parts = urlsplit(link)
            target = unquote(parts.path) or file
            there = (folder / target).exists()
            if there and parts.fragment and target in found:
                there = parts.fragment in found[target].ids
            if not (there or parts.scheme in ("http", "https", "data")):
                wrong.append(f"{file}: {link}")
    return wrong
