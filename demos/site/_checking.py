"""Site · Checking: the examples run, every link leads somewhere, and no address stands twice."""

from __future__ import annotations

import doctest
import importlib
import subprocess
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import minigrad
from demos.live._examples import PRELUDE
from demos.pages.page import Page
from demos.site._contents import ROOT


def version() -> str:
    """Return the version, and where there is a repository its commit and the commit's date."""
    said = ["git", "-C", str(ROOT), "log", "-1", "--format=commit %h of %cs"]
    done = subprocess.run(said, capture_output=True, text=True, check=False)
    return f"minigrad {minigrad.__version__}, {done.stdout.strip() or 'no commit'}"


def examples(name: str) -> Iterator[doctest.DocTest]:
    """Yield a module's examples; they may use PRELUDE's names, and a private one its module's."""
    space: dict[str, object] = {}
    exec(PRELUDE, space)
    module = importlib.import_module(name)
    for test in doctest.DocTestFinder(exclude_empty=True).find(module):
        private = test.name.rpartition(".")[2].startswith("_")
        test.globs = dict(vars(module) if private else space)
        if test.examples:
            yield test


def failure(test: doctest.DocTest) -> str:
    """Run a docstring's examples; return what the wrong ones say."""
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE, verbose=False)
    runner.run(test, out=said.append)
    return "".join(said)


def failures(names: list[str]) -> str:
    """Return what the first wrong docstring of these modules says."""
    return next(filter(None, (failure(test) for name in names for test in examples(name))), "")


class Targets(HTMLParser):
    """The links and the addresses of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the address of an element, and where it leads."""
        found = dict(attrs)
        self.ids += filter(None, [found.get("id")])
        self.links += filter(None, (found.get(name) for name in ("href", "src")))


def wrong_links(folder: Path, pages: list[Page]) -> list[str]:
    """Return every link that leads nowhere, and every address that a page has twice."""
    found = {page.file: Targets((folder / page.file).read_text("utf-8")) for page in pages}
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
