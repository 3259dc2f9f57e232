"""Tests: how hypothesis draws (no deadline; the same draws in CI), one BLAS thread, a browser."""

import os
import shutil

import pytest
from hypothesis import settings

# Several threads make small products slower, above all on a busy machine: there the sweep of
# chapter 16 took 17 s with two of them, and 0.6 with one. (NumPy reads this when it is imported.)
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

settings.register_profile("here", deadline=None, max_examples=50)
settings.register_profile("ci", deadline=None, max_examples=50, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")


# A real browser: Chromium, offline, driven by playwright.
PROGRAMS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")  # (while it is open, no test can call asyncio.run)
def browser():
    """Chromium; without it, or without playwright, the test skips. (In CI a skip is a failure.)"""
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


@pytest.fixture
def visit(browser):
    """visit(path, **options of the context): the page, which must not complain nor ask for more."""
    opened = []

    def visit(path, fragment="", **options):
        context = browser.new_context(offline=True, **options)
        page = context.new_page()
        requests, complaints = [], []
        page.on("request", lambda request: requests.append(request.url))
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(path.as_uri() + fragment)
        opened.append((context, requests, complaints))
        return page

    yield visit
    for context, requests, complaints in opened:
        assert len(requests) == 1 and not complaints
        context.close()
