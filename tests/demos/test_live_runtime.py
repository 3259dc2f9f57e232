"""Live: what Python for pages is made of is compared with what is known, and stands beside them."""

import base64
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
import threading
import urllib.request
import zipfile
import zlib
from http.client import HTTPConnection

import pytest
from markupsafe import Markup

from demos.live import _runtime, runtime
from demos.live._runtime import LOCK, MISSING, Runtime, checked, digest, wrong_in_wheel, zipped
from demos.pages.page import Page
from demos.site._document import document
from demos.site._serving import listening
from tests.demos.running import ROOT

WHEEL, LIST = "numpy-1-any.whl", "numpy-1.dist-info/RECORD"
INSIDE = {"numpy/__init__.py": b"x = 1\n", "numpy/core.so": b"\0\1"}


def record(files):
    """Return a wheel's list of its files."""
    rows = []
    for name, content in files.items():
        sha = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
        rows.append(f"{name},sha256={sha},{len(content)}")
    return "\n".join([*rows, f"{LIST},,\n"]).encode()


def wheel(files=INSIDE, listed=INSIDE):
    return zipped({**files, LIST: record(listed)})


@pytest.fixture
def known(monkeypatch):
    """Return small files of a runtime, and let their hashes be those that the project knows."""
    lock = {
        "info": {"python": "3.13.2"},
        "packages": {
            "numpy": {"version": "2.2.5", "file_name": WHEEL, "sha256": digest(wheel())},
        },
    }
    files = {name: name.encode() for name in _runtime.FILES} | {LOCK: json.dumps(lock).encode()}
    for name, content in files.items():
        monkeypatch.setitem(_runtime.FILES, name, digest(content))
    return files


@pytest.fixture
def folder(known, tmp_path):
    """Return a folder with a whole runtime."""
    for name, content in {**known, WHEEL: wheel()}.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


# ------------------------------------------------------------------ the files


def test_equal_files_give_equal_bytes():
    assert zipped({"a": b"1", "b": b"2"}) == zipped({"b": b"2", "a": b"1"})


def test_the_code_is_the_project_and_what_draws():
    code = _runtime.our_code()
    assert code == _runtime.our_code()
    names = set(zipfile.ZipFile(io.BytesIO(code)).namelist())
    needed = {"minigrad/ops/softmaxes.py", "minigrad/graphs/web/page.js", "attention/masks.py"}
    needed |= {"demos/live/_reader.py", "demos/learn/exercises/e01_slope.py"}
    assert needed <= names
    assert not [name for name in names if "__pycache__" in name or name.startswith("demos/site")]


def test_the_reader_needs_nothing_but_the_code_and_numpy(tmp_path):
    """(In a Python that sees the zip, NumPy, and nothing else of this environment.)"""
    (tmp_path / "code.zip").write_bytes(_runtime.our_code())
    with zipfile.ZipFile(tmp_path / "code.zip") as archive:
        archive.extractall(tmp_path / "code")
    import numpy

    (tmp_path / "code" / "numpy").symlink_to(os.path.dirname(numpy.__file__))
    libraries = os.path.dirname(os.path.dirname(numpy.__file__)) + "/numpy.libs"
    if os.path.isdir(libraries):
        (tmp_path / "code" / "numpy.libs").symlink_to(libraries)
    ask = json.dumps({"id": 1, "run": ">>> float(softmax([0.0, 0.0])[0])\n0.5\n", "of": "minigrad"})
    program = (
        f"import sys; sys.path.insert(0, {str(tmp_path / 'code')!r})\n"
        "from demos.live._reader import Reader\n"
        f"Reader(sys.__stdout__.write).answer({ask!r})\n"
    )
    words = [sys.executable, "-I", "-S", "-c", program]
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert '"done": true' in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("files", "listed", "wrong"),
    [
        (INSIDE, INSIDE, ""),
        (INSIDE | {"numpy/core.so": b"\0\2"}, INSIDE, "numpy/core.so"),
        (INSIDE | {"numpy/more.py": b""}, INSIDE, "numpy/more.py"),
        ({"numpy/__init__.py": b"x = 1\n"}, INSIDE, "numpy/core.so"),
    ],
)
def test_a_wheel_is_compared_with_its_own_list(files, listed, wrong):
    assert wrong_in_wheel(wheel(files, listed)) == wrong


def test_a_wheel_without_a_list_is_wrong():
    for content in (zipped(INSIDE), b"not a zip"):
        assert wrong_in_wheel(content) == "a list of its files"


def test_a_damaged_byte_is_a_name_and_not_an_error():
    whole = wheel()
    for place in range(len(whole)):
        for bit in (1, 16, 128):
            damaged = bytearray(whole)
            damaged[place] ^= bit
            assert isinstance(wrong_in_wheel(bytes(damaged)), str)  # ("" if it is a date's)
    inside = bytearray(whole)
    inside[whole.index(zlib.compress(INSIDE["numpy/__init__.py"], 9)[2:-4])] ^= 255
    assert wrong_in_wheel(bytes(inside)) == "numpy/__init__.py"


def test_a_row_of_the_list_without_three_columns_lists_nothing():
    name = "numpy/core.so"
    listed = record(INSIDE).decode().replace(f"{name},", f"{name};", 1).encode()
    assert wrong_in_wheel(zipped({**INSIDE, LIST: listed})) == name


def test_a_whole_folder_says_which_wheel_it_has(folder, known):
    assert checked(folder).is_official
    again = zipfile.ZipFile(folder / WHEEL, "a")
    again.comment = b"packed again"
    again.close()
    copy = checked(folder)
    assert not copy.is_official and (copy.python, copy.numpy) == ("3.13.2", "2.2.5")
    for which, words in ((copy, "packed again"), (Runtime(folder, True), "the wheel of Pyodide")):
        assert words in str(which.versions().body[0])


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("viz.js", None, "has no viz.js: `python -m demos runtime"),
        ("viz.js", b"changed", "viz.js is not that of the version asked for"),
        (WHEEL, None, f"has no {WHEEL}"),
        (WHEEL, wheel(INSIDE | {"numpy/core.so": b""}), "numpy/core.so is not as it should be"),
        (WHEEL, zipped(INSIDE), "a list of its files is not as it should be"),
        (WHEEL, b"not a zip", "a list of its files is not as it should be"),
    ],
)
def test_a_folder_with_a_wrong_file_is_refused(folder, name, content, said):
    if content is None:
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(content)
    with pytest.raises(OSError, match=said) as error:
        checked(folder)
    assert error.value.errno is None  # (so `python -m demos site` says the sentence alone)


# ------------------------------------------------------------------ the pages


def test_only_a_page_that_runs_has_its_policy_and_its_scripts(folder):
    there = checked(folder)
    page = Page("a.html", "a", [Markup("")], "", module="minigrad.idea", live=("blocks",))
    still = Page("a.html", "a", [Markup("")], "", module="minigrad.idea")
    for quiet in (document(page, "v"), document(still, "v", runtime=there)):
        assert 'src="live/' not in quiet and "wasm-unsafe-eval" not in quiet
        assert "connect-src" not in quiet and "Python 3.13.2" not in quiet
    how = "python -m demos site --serve"
    assert how in document(page, "v") and how not in document(still, "v")
    html = document(page, "v", runtime=there)
    assert how not in html
    assert "connect-src 'self'" in html and "'wasm-unsafe-eval' 'sha256-" in html
    assert 'src="live/blocks.js"' in html and "runtime/code.zip?" in html
    assert "Python 3.13.2 and NumPy 2.2.5" in html
    (module, package), *_ = MISSING.items()
    lacks = Page("a.html", "a", [Markup("")], "", module=module, live=("blocks",))
    assert f'data-missing="{package}"' in document(lacks, "v", runtime=there)


def test_the_runtime_stands_beside_the_pages(folder, tmp_path):
    out = tmp_path / "site"
    out.mkdir()
    there = checked(folder)
    there.copy_to(out)
    for address in [*there.addresses.values(), "live/worker.js", "live/live.css"]:
        assert (out / address.partition("?")[0]).exists()


def test_a_site_is_served_here_with_the_kinds_of_its_files(tmp_path):
    (tmp_path / "a.wasm").write_bytes(b"\0asm")
    server = listening(tmp_path, 0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/a.wasm"
    (tmp_path.parent / "secret.txt").write_text("not for everybody", "utf-8")
    with urllib.request.urlopen(address) as answer:
        assert answer.headers["Content-Type"] == "application/wasm"
    with pytest.raises(OSError, match=r"port \d+ cannot be had .* --serve PORT"):
        listening(tmp_path, server.server_port)
    with pytest.raises(OSError, match="port 99999 cannot be had"):
        listening(tmp_path, 99_999)
    outside = HTTPConnection("127.0.0.1", server.server_port)
    outside.request("GET", "/../secret.txt")
    assert outside.getresponse().status == 404
    server.shutdown()
    server.server_close()


# ------------------------------------------------------------------ the command

NPM = """#!{python}
import pathlib, shutil, sys
package = sys.argv[2]
to = next(word for word in sys.argv if word.startswith("--pack-destination=")).partition("=")[2]
here = pathlib.Path(__file__).parent / (package.split("@")[-2].split("/")[-1] + ".tgz")
if not here.exists():
    sys.exit("npm error code ECONNREFUSED")
shutil.copy(here, to)
"""


@pytest.fixture
def npm(tmp_path, monkeypatch, known):
    """Give npm(files by package): a program of that name, which has them."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "npm").write_text(NPM.format(python=sys.executable))
    (programs / "npm").chmod(0o755)
    monkeypatch.setenv("PATH", str(programs))

    def npm(**packages):
        for name, files in packages.items():
            with tarfile.open(programs / f"{name.replace('_', '-')}.tgz", "w:gz") as archive:
                for path, content in files.items():
                    info = tarfile.TarInfo(f"package/{path}")
                    info.size = len(content)
                    archive.addfile(info, io.BytesIO(content))

    return npm


def make(monkeypatch, capsys, *words):
    """Run the command; return what it says."""
    monkeypatch.setattr(sys, "argv", ["runtime", *map(str, words)])
    try:
        runtime.main()
    except SystemExit as end:
        assert end.code == 2
    said = capsys.readouterr()
    return said.out + said.err


def test_the_command_makes_the_folder_once(npm, known, tmp_path, monkeypatch, capsys):
    to = tmp_path / "made"
    make_it = lambda *words: make(monkeypatch, capsys, to, *words)
    assert "does not give pyodide@0.28.3 (ECONNREFUSED)" in make_it()
    assert list(to.iterdir()) == []
    viz = {"dist/viz.js": known["viz.js"]}
    npm(pyodide=known | {LOCK: b"changed"}, viz=viz)
    assert f"{LOCK} of the registry is not the file" in make_it()
    npm(pyodide=known, viz=viz)
    more = INSIDE | {"numpy-1.dist-info/INSTALLER": b""}
    assert f"Take {WHEEL} from the release of Pyodide" in make_it()
    again = wheel(more, more)
    npm(pymupdf_wasm={f"assets/{WHEEL}": again})
    assert "is not the file that this project knows" in make_it("--repacked")
    assert not (to / WHEEL).exists()
    monkeypatch.setattr(runtime, "REPACKED_WHEEL", digest(again))
    assert "(a repacked wheel)" in make_it("--repacked")
    assert not list(to.glob(".*")) and checked(to)
    (tmp_path / "programs" / "npm").unlink()
    assert "NumPy 2.2.5 (a repacked wheel)" in make_it()  # all is there
    (to / "viz.js").unlink()
    assert "npm, which is not here" in make_it()


def test_the_command_is_one_of_the_demos(tmp_path):
    words = [sys.executable, "-m", "demos", "runtime", str(tmp_path)]
    nowhere = {**os.environ, "PATH": ""}
    done = subprocess.run(words, cwd=ROOT, env=nowhere, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "npm, which is not here" in done.stderr
    listed = [sys.executable, "-m", "demos"]
    done = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=False)
    assert "runtime" in done.stdout
