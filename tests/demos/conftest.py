"""Demos: each is run to its end once, and what it leaves is looked at by several tests."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.demos.running import demo


@pytest.fixture(scope="session")
def pool():
    """Two demos run at a time, each in its process, while the tests wait for the first of them."""
    pool = ThreadPoolExecutor(2)
    yield pool
    pool.shutdown(cancel_futures=True)


@pytest.fixture(scope="session")
def wanted(request):
    """wanted(fixture): the names for which a test of this session uses the fixture."""

    def wanted(fixture):
        using = [item for item in request.session.items if fixture in item.fixturenames]
        called = [item.callspec.params for item in using if hasattr(item, "callspec")]
        return dict.fromkeys(params["name"] for params in called if "name" in params)

    return wanted


@pytest.fixture(scope="session")
def begun(tmp_path_factory, pool):
    """begun(name, *options): a demo that has been started; its result() is what `finished` gives.

    All are in one folder, as a user has them. A demo is run once, with the options of the first
    call.
    """
    out, done = tmp_path_factory.mktemp("out"), {}

    def run(name, *options):
        ran = demo(name, "--out", out / name, *options)
        assert ran.returncode == 0, ran.stderr
        return out / name, ran.stdout

    def begun(name, *options):
        if name not in done:
            done[name] = pool.submit(run, name, *options)
        return done[name]

    return begun


@pytest.fixture(scope="session")
def finished(begun):
    """finished(name, *options): a demo's folder, and what it printed. Its marks must be kept."""
    return lambda name, *options: begun(name, *options).result()
