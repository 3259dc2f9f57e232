"""Live · Runtime: Python for the reader's browser: its files are checked, and put beside the pages.

A folder has them, which `python -m demos runtime` makes: Pyodide (CPython for WebAssembly), NumPy's
wheel for it, and viz.js (Graphviz). They are published with the pages, so each file is compared
with what is known of it before: the files of the two packages with the hashes below, and the wheel
with the hash in Pyodide's own list. A wheel that somebody has packed again has another hash. Then
each file in it is compared with the wheel's own list, and the page of versions says so.
"""

from __future__ import annotations

import base64
import csv
import gzip
import hashlib
import io
import json
import shutil
import zipfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from demos._files import DEMOS
from demos.pages.page import Page, policy_name
from demos.pages.templates import fill

PYODIDE, VIZ = "0.28.3", "3.31.0"  # versions of the packages `pyodide` and `@viz-js/viz`
GRAPHVIZ = "16.1.0"  # in that version of viz.js
FILES = {  # of each file of the two packages: its SHA-256
    "pyodide.mjs": "635a6da3218fe4e5668da595acfe8b5ce77453d597d602f19a423dd250653441",
    "pyodide.asm.js": "b22e5831eade9ff10e6fe2c811c68688cd91f10154377b4f80debcf5bafa1e56",
    "pyodide.asm.wasm": "5effb6a1a6cc4a1a85bec4622701aa797c031e1de923cbbaf2ad47abdc4ab325",
    "python_stdlib.zip": "71fee17f88a6260ec8c9c7c063533ee59c021fdc88a1ce76247378d3c4a35f4c",
    "pyodide-lock.json": "f6e6f42f451f42affbbcddb00e8c9a3278dcbf399f57aab9f3f568839a7ff4a6",
    "viz.js": "b9840ae5b70681356c207510db8820ac3f883607740616455d9c7c47d67ea646",
}
LOCK = "pyodide-lock.json"
OUT = Path("out/runtime")  # where it is looked for, if nothing else is said
OURS = (  # what the reader's Python imports of this project
    "minigrad/**/*",
    "attention/**/*.py",
    "demos/__init__.py",
    "demos/_files.py",
    "demos/learn/**/*.py",
    "demos/live/**/*.py",
)
# Modules whose examples need a package that is not there.
MISSING = {"minigrad.runs.sweeps": "joblib", "minigrad.runs.checkpoints": "safetensors"}
FRAMES = DEMOS / "live" / "frames"


def digest(content: bytes) -> str:
    """Return the SHA-256 of a file, as hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def zipped(files: dict[str, bytes]) -> bytes:
    """Return files as a zip. Equal files give equal bytes."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sorted(files.items()):
            info = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o644 << 16
            archive.writestr(info, content, compresslevel=9)
    return out.getvalue()


def our_code() -> bytes:
    """Return what Python needs of this project, as a zip."""
    root = DEMOS.parent
    paths = {path.relative_to(root): path for pattern in OURS for path in root.glob(pattern)}
    kept = {name: path for name, path in paths.items() if "__pycache__" not in name.parts}
    return zipped({name.as_posix(): p.read_bytes() for name, p in kept.items() if p.is_file()})


def wrong_in_wheel(content: bytes) -> str:
    """Return the first file of a wheel that is not as the wheel's own RECORD says, or ""."""
    name = "a list of its files"
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            names = {name for name in archive.namelist() if not name.endswith("/")}
            record = next((name for name in names if name.endswith(".dist-info/RECORD")), "")
            if not record:
                return name
            rows = csv.reader(io.StringIO(archive.read(record).decode()))
            known = {row[0]: row[1] for row in rows if len(row) == 3}
            for name in sorted(names | {*known}):
                if name not in names or name not in known:
                    return name
                found = hashlib.sha256(archive.read(name)).digest()
                sha = "sha256=" + base64.urlsafe_b64encode(found).decode().rstrip("=")
                if name != record and known[name] != sha:
                    return name
    except Exception:  # (of many kinds: `zipfile` and `zlib` have read damaged bytes)
        return name
    return ""


@dataclass
class Runtime:
    """A folder with all files of a runtime, which are as they should be."""

    folder: Path
    is_official: bool  # whether NumPy's wheel is that of Pyodide's release

    @cached_property
    def lock(self) -> dict[str, Any]:
        """Pyodide's own list of packages."""
        return json.loads((self.folder / LOCK).read_text("utf-8"))

    @cached_property
    def code(self) -> bytes:
        """This project's files, as a zip."""
        return our_code()

    @property
    def wheel(self) -> str:
        """The file name of NumPy's wheel."""
        return self.lock["packages"]["numpy"]["file_name"]

    @property
    def python(self) -> str:
        """The version of Python."""
        return self.lock["info"]["python"]

    @property
    def numpy(self) -> str:
        """The version of NumPy."""
        return self.lock["packages"]["numpy"]["version"]

    @cached_property
    def addresses(self) -> dict[str, str]:
        """The addresses of what a page's Python is made of, from the page."""
        code = f"runtime/code.zip?{digest(self.code)[:12]}"  # (of another build: another address)
        wheel = f"runtime/{self.wheel}"
        return {"runtime": "runtime/", "code": code, "numpy": wheel, "viz": "runtime/viz.js"}

    @cached_property
    def megabytes(self) -> int:
        """How much a first visit loads from a server that compresses."""
        total = len(self.code)
        for name in [*FILES, self.wheel]:
            content = (self.folder / name).read_bytes()
            packed = name.endswith((".zip", ".whl"))
            total += len(content if packed else gzip.compress(content))
        return round(total / 1e6)

    @cached_property
    def policy(self) -> Markup:
        """Return what the policy of a page that runs allows its scripts, beside the page's own.

        A stepped page is shown in a frame, which has the policy of the page around it.
        """
        web = DEMOS.parent / "minigrad" / "graphs" / "web"
        scripts = [(web / name).read_text("utf-8") for name in ("dagre.min.js", "page.js")]
        return Markup(" ".join(["'wasm-unsafe-eval'", *map(policy_name, scripts)]))

    def copy_to(self, out: Path) -> None:
        """Put the runtime, the project's files and the scripts beside the pages."""
        (out / "runtime").mkdir(exist_ok=True)
        for name in [*FILES, self.wheel]:
            shutil.copyfile(self.folder / name, out / "runtime" / name)
        (out / "runtime" / "code.zip").write_bytes(self.code)
        shutil.copytree(FRAMES, out / "live", dirs_exist_ok=True)

    def versions(self) -> Page:
        """Return the page of versions."""
        body = fill(
            "live/versions.html",
            runtime=self,
            pyodide=PYODIDE,
            viz=VIZ,
            graphviz=GRAPHVIZ,
            same_here=np.__version__ == self.numpy,
            here=np.__version__,
        )
        says = "What runs on these pages, and how its files were checked."
        return Page("versions.html", "Versions", [Markup(body)], says)


def checked(folder: Path) -> Runtime:
    """Return the runtime of a folder; OSError if a file is missing or is not as it should be."""
    how = f"`python -m demos runtime {folder}` makes it"
    for name, sha in FILES.items():
        if not (folder / name).is_file():
            raise OSError(f"{folder} has no {name}: {how}")
        if digest((folder / name).read_bytes()) != sha:
            raise OSError(f"{folder / name} is not that of the version asked for: {how} anew")
    there = Runtime(folder, is_official=True)
    wheel = folder / there.wheel
    if not wheel.is_file():
        raise OSError(f"{folder} has no {wheel.name}: {how}")
    content = wheel.read_bytes()
    if digest(content) == there.lock["packages"]["numpy"]["sha256"]:
        return there
    if wrong := wrong_in_wheel(content):
        raise OSError(
            f"{wheel} is neither the wheel of Pyodide {PYODIDE} nor a whole copy of it: {wrong} is "
            "not as it should be"
        )
    return Runtime(folder, is_official=False)
