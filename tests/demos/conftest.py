"""Demos: each is run to its end once, and what it leaves is looked at by several tests."""

import pytest

from tests.demos.running import demo


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """finished(name, *options): a demo's folder, and what it printed. Its marks must be kept.

    All are in one folder, as a user has them. A demo is run once, with the options of the first
    call.
    """
    out, done = tmp_path_factory.mktemp("out"), {}

    def run(name, *options):
        if name not in done:
            ran = demo(name, "--out", out / name, *options)
            assert ran.returncode == 0, ran.stderr
            done[name] = out / name, ran.stdout
        return done[name]

    return run
