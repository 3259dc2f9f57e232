"""Python for pages that run: get its files, and compare each with what is known of it.

    python -m demos runtime [DIR]

DIR (out/runtime) gets Pyodide and viz.js by `npm pack`. NumPy's wheel is a file of Pyodide's
release, which you put there yourself. Then `python -m demos site --runtime DIR` copies all of them
beside the pages. Nothing is installed. A file is written whole or not at all.
"""

from __future__ import annotations

import argparse
import io
import json
import shutil
import subprocess
import tarfile
import tempfile
import zipfile
from pathlib import Path

from demos._files import stop
from demos.live import _runtime
from demos.live._runtime import FILES, digest
from minigrad.runs.saving import write_whole

# A package of somebody else's, in which is a copy of NumPy's wheel, for tests.
REPACKED = "@bentopdf/pymupdf-wasm@0.11.16"
REPACKED_WHEEL = "125230b4c3ecd08803e5c43f1162e017c0718d9f253146225a705a952b9c16c2"  # its SHA-256
SECONDS = 600  # for a package


def packed(package: str, work: Path) -> dict[str, bytes]:
    """Return the files of a package, as npm gives it."""
    npm = shutil.which("npm")
    if npm is None:
        stop("the packages come by npm, which is not here: install Node.js, or on Debian npm")
    print(f"{package} …", flush=True)
    words = [npm, "pack", package, "--loglevel=error", "--fetch-retries=1"]
    words.append(f"--pack-destination={work}")
    try:
        done = subprocess.run(
            words, cwd=work, capture_output=True, text=True, check=False, timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        stop(f"npm has not got {package} in {SECONDS} s: try again, or from elsewhere")
    if done.returncode:
        why = next((x for x in done.stderr.splitlines() if "code E" in x), "")
        reason = why.rpartition("code ")[2] or f"npm ended with {done.returncode}"
        stop(f"the registry does not give {package} ({reason}): is there a network?")
    (archive,) = work.glob("*.tgz")
    with tarfile.open(archive) as opened:
        members = [each for each in opened if each.isfile()]
        files = {each.name.partition("/")[2]: opened.extractfile(each).read() for each in members}
    archive.unlink()
    return files


def main() -> None:
    """Make the folder."""
    parser = argparse.ArgumentParser(prog="python -m demos runtime", description=__doc__)
    parser.add_argument("folder", metavar="DIR", nargs="?", type=Path, default=_runtime.OUT)
    parser.add_argument(
        "--repacked", action="store_true", help="for tests: take NumPy's wheel from another package"
    )
    chosen = parser.parse_args()
    folder = chosen.folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as work:
            make(folder, Path(work), chosen.repacked)
    except OSError as error:
        stop(f"{folder} cannot be made: {error}")
    runtime = _runtime.checked(folder)
    wheel = "Pyodide's own wheel" if runtime.is_official else "a repacked wheel"
    megabytes = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
    print(f"Python {runtime.python}, NumPy {runtime.numpy} ({wheel}), {megabytes:.1f} MB: {folder}")


def make(folder: Path, work: Path, is_repacked: bool) -> None:
    """Fill the folder with what is not there yet."""
    there = {path.name: digest(path.read_bytes()) for path in folder.iterdir() if path.is_file()}
    if any(there.get(name) != sha for name, sha in FILES.items()):
        files = packed(f"pyodide@{_runtime.PYODIDE}", work)
        files["viz.js"] = packed(f"@viz-js/viz@{_runtime.VIZ}", work)["dist/viz.js"]
        for name, sha in FILES.items():
            if digest(files[name]) != sha:
                stop(f"{name} of the registry is not the file that this project knows")
            write_whole(folder / name, files[name])
    numpy = json.loads((folder / _runtime.LOCK).read_text("utf-8"))["packages"]["numpy"]
    wheel = folder / numpy["file_name"]
    if wheel.exists():  # (`checked` looks at it)
        return
    if not is_repacked:
        stop(
            f"one file is missing, NumPy's wheel. Take {wheel.name} from the release of Pyodide "
            f"{_runtime.PYODIDE}, put it into {folder}, and run this again. (Its SHA-256 must be "
            f"{numpy['sha256']}. For tests --repacked finds a copy.)"
        )
    copy = packed(REPACKED, work)[f"assets/{wheel.name}"]
    if digest(copy) != REPACKED_WHEEL:
        stop(f"the wheel in {REPACKED} is not the file that this project knows")
    with zipfile.ZipFile(io.BytesIO(copy)) as archive:
        names = [name for name in archive.namelist() if not name.endswith("/")]
        write_whole(wheel, _runtime.zipped({name: archive.read(name) for name in names}))


if __name__ == "__main__":
    main()
