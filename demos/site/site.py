"""The book as a site: chapters, exercises and exhibits on pages that lead to one another.

Claim. The tutorial is the source. So its pages are made from the files as they are: prose from the
docstrings, code from the lines that run. Every example is run, and every link, formula and chapter
is checked. What does not fit ends the build.

    python -m demos site [--out DIR] [--all] [--base URL]  # 12 s

The pages need no server and ask for nothing from outside. `--all` also runs the demos whose
packages are installed, so that their pages are there (some minutes). `--base` is the address at
which the site will stand.

Why not a documentation generator? Sphinx reads reStructuredText, in which a docstring's displays
would be quotations. pdoc shows a module's members and not its text in order. mkdocs wants a
Markdown file for each page. pycco sets comments beside code, and not docstrings.
"""

# %% Set-up

import doctest
import importlib
import shutil
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

try:
    import markdown_it  # noqa: F401
    import pygments  # noqa: F401
except ImportError as error:
    raise SystemExit(f'site needs {error.name}: pip install -e ".[site]"') from None

from demos import options, stop
from demos.site._chapters import Book
from demos.site._contents import ROOT, book
from demos.site._templates import Page
from minigrad.runs.saving import write_whole

FOLDER = Path(__file__).parent


def version() -> str:
    """Return the version, and where there is a repository its commit and the commit's date."""
    from importlib.metadata import version

    said = ["git", "-C", str(ROOT), "log", "-1", "--format=commit %h of %cs"]
    done = subprocess.run(said, capture_output=True, text=True, check=False)
    return f"minigrad {version('minigrad-attention')}, {done.stdout.strip() or 'no commit'}"


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
            ids = found[target].ids if target in found else None
            if parts.scheme in ("http", "https", "data"):
                continue
            if not (folder / target).exists() or (parts.fragment and ids is not None and parts.fragment not in ids):
                wrong.append(f"{file}: {link}")
    return wrong


def more(parser: argparse.ArgumentParser) -> None:
    """Add this demo's own options."""
    parser.add_argument("--all", action="store_true", help="run the demos, for their pages")
    parser.add_argument("--base", default="", help="the address at which the site will stand")


chosen = options("site", __doc__.splitlines()[0], add=more)
began = time.perf_counter()

# %% Examples
# All examples of the book are run, beside the writing of the pages.

contents = Book(*book())
names = list(contents.files)
pool = ProcessPoolExecutor(2)
examples = [pool.submit(failures, names[i::2]) for i in range(2)]

# %% Pages

pages = [landing(contents), contents.page()]
pages += [contents.chapter(each) for each in contents.chapters.values()]
pages += [contents.tool(each) for each in contents.tools]
pages += [*explore(contents), *exercises(contents), *museum(contents), *shows(contents, chosen)]

# %% Files

