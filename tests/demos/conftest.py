"""Demos: each is run to its end once, and what it leaves is looked at by several tests.

And pages that run: a site with a runtime, served here, for a real browser.
"""

import os
import threading
import time
from pathlib import Path

import pytest

from demos.live._runtime import OUT, checked
from demos.site._book import Book
from demos.site._chapters import page_of_chapter, page_of_tool
from demos.site._contents import book
from demos.site._document import copy_beside, document
from demos.site._serving import listening


@pytest.fixture(scope="session")
def finished(run_once):
    """Give finished(name, *options): a demo's folder and printed text. Its marks must be kept."""

    def finished(*run):
        folder, done = run_once(*run)
        assert done.returncode == 0, done.stderr
        return folder, done.stdout

    return finished


@pytest.fixture
def look(tabs):
    """Give look(path, **options): a page, which must not complain, nor ask for other folders."""
    seen = []

    def look(path, fragment="", *, width=1280, scheme="light", **options):
        page, said = tabs(**options)
        seen.append((said, path.parent.as_uri()))
        page.set_viewport_size({"width": width, "height": 800})
        page.emulate_media(media="screen", color_scheme=scheme)
        page.goto("about:blank")
        page.goto(path.as_uri() + fragment)
        page.wait_for_load_state("load")
        return page

    yield look
    for said, folder in seen:
        near = {each for each in said if each[1].startswith((folder, "about:", "data:"))}
        assert {what for what, _ in near} <= {"asks for"} and set(said) <= near


@pytest.fixture(scope="session")
def runtime():
    """Return the folder's runtime; skip the test without one. (In CI a skip is a failure.)"""
    folder = os.environ.get("MINIGRAD_NEEDS_RUNTIME")
    if folder is None and not OUT.is_dir():
        pytest.skip("no Python for pages: python -m demos runtime --repacked")
    return checked(Path(folder or OUT))


class Site:
    """A folder of pages that run, at an address of this machine."""

    def __init__(self, folder, runtime):
        self.folder, self.runtime, self.contents = folder, runtime, Book(*book())
        copy_beside(folder)
        runtime.copy_to(folder)
        self.server = listening(folder, 0)
        self.address = f"http://127.0.0.1:{self.server.server_port}/"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def add(self, *pages):
        """Write pages."""
        for page in pages:
            (self.folder / page.file).write_text(document(page, "", runtime=self.runtime), "utf-8")

    def add_chapters(self, *numbers):
        """Write chapters, and tools by the names of their modules."""
        tools = {each.name: each for each in self.contents.tools}
        for number in numbers:
            if number in tools:
                self.add(page_of_tool(self.contents, tools[number]))
            else:
                self.add(page_of_chapter(self.contents, self.contents.chapters[number]))


@pytest.fixture(scope="module")
def served(runtime, tmp_path_factory):
    """Give a Site without pages."""
    site = Site(tmp_path_factory.mktemp("served"), runtime)
    yield site
    site.server.shutdown()
    site.server.server_close()


class Tab:
    """A tab of a browser, which may ask nobody but the site."""

    def __init__(self, site, page):
        self.site, self.page, self.said = site, page, []
        page.on("console", lambda message: self.said.append(message.text))
        page.on("pageerror", lambda error: self.said.append(str(error)))
        page.on("request", self.asks)
        page.set_default_timeout(60_000)

    def asks(self, request):
        """Note a request to another place."""
        if not request.url.startswith((self.site.address, "blob:", "data:", "about:")):
            self.said.append(request.url)

    def go(self, file):
        """Open a page of the site, and its folds."""
        self.page.goto(self.site.address + file)
        self.js("all('details').forEach(each => { each.open = true; })")

    def js(self, code, *what):
        """Return what JavaScript says. (The policy refuses eval, and so wait_for_function.)"""
        return self.page.evaluate(code, *what)

    def until(self, code, seconds=300):
        """Wait until JavaScript says something that is true, and return it."""
        ends = time.monotonic() + seconds
        while not (found := self.js(code)):
            assert time.monotonic() < ends, (code, self.said)
            time.sleep(0.02)
        return found

    def ask(self, question):
        """Return the answer of the page's Python, and what was said before it."""
        code = """question => {
            window.heard = []; window.answer = null;
            python.ask(question, m => heard.push(m)).then(done => { window.answer = [done]; });
        }"""
        self.js(code, question)
        (done,) = self.until("window.answer")
        return done, self.js("heard")


@pytest.fixture(scope="module")
def open_tab(browser, served):
    """Give open_tab(**options of a context): a Tab, which must not complain."""
    opened = []

    def open_tab(**options):
        tab = Tab(served, browser.new_context(**options).new_page())
        opened.append(tab)
        return tab

    yield open_tab
    for tab in opened:
        tab.page.context.close()
        assert not tab.said
