"""Demos: each is run to its end once, and what it leaves is looked at by several tests."""

import pytest


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
