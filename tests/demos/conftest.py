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
