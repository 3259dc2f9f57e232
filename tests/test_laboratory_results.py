"""Chapter 16.8 · Results: whatever happens to the file, no wrong number is read from it."""

import errno
import functools
import json
import math
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attention.laboratory import bits, results, sweeps
from attention.laboratory.results import LostFile, SweepError, as_text, from_text, results_file
from attention.laboratory.sweeps import sweep
from tests.laboratory_cells import Found, doubled, measured

ROOT = Path(__file__).parents[1]

ABOUT = {"measure": "here.cell", "settings": {"n": [1, 2], "a": [0.5]}, "seed": 0}
RECORDS = [{"settings": {"n": n}, "result": {"x": x}} for n, x in enumerate([0.1, math.nan, -1e-9])]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "r.jsonl"


def written(path, records=RECORDS, about=ABOUT):
    """What a file held, to which some records are appended then."""
    with results_file(path, about) as (found, append):
        for record in records:
            append(record)
    return found


def same(one, other):
    return json.dumps(one) == json.dumps(other)


# ------------------------------------------------------------------ value

FOUND = st.builds(
    Found,
    n=st.integers(),
    product=st.floats(),
    narrow=st.floats(width=32).map(np.float32),
    draws=st.lists(st.floats()),
    pair=st.tuples(st.floats(), st.integers()),
    said=st.text(),
    odd=st.floats().map(np.float64),
)


def plain(value):
    """A NumPy number as Python's."""
    return value.item() if isinstance(value, np.generic) else value


@given(FOUND)
def test_every_bit_of_a_result_comes_back_from_its_text(found):
    text = as_text(found)
    back = from_text(Found, text)
    for name, value in vars(found).items():
        assert repr(getattr(back, name)) == repr(plain(value))  # a repr has every digit
    assert "\n" not in text and text.isascii()


@dataclass(frozen=True)
class Nested:
    """Lists and tuples inside of one another."""

    curve: tuple[tuple[int, float], ...]
    rows: list[tuple[str, bool]]
    maybe: tuple[float, ...] | None
    other: Optional[list[float]]  # noqa: UP045 (the older spelling)


def test_tuples_come_back_where_they_are_declared():
    for maybe, other in [(None, None), ((0.5, 1.0), [0.5])]:
        nested = Nested(((1, 0.5), (2, 0.25)), [("a", True)], maybe, other)
        assert from_text(Nested, as_text(nested)) == nested


@dataclass(frozen=True)
class Part:
    """One of several rows inside of a result."""

    n: int
    pair: tuple[float, float]


@dataclass(frozen=True)
class Whole:
    """A result made of others."""

    first: Part
    parts: list[Part]
    by_two: tuple[tuple[Part, Part], ...]
    none: Part | None


def test_dataclasses_inside_of_a_result_come_back():
    one, two = Part(1, (0.1, np.nan)), Part(2, (np.inf, 1 / 3))
    for maybe in (None, one):
        whole = Whole(one, [two, one], ((one, two),), maybe)
        assert repr(from_text(Whole, as_text(whole))) == repr(whole)


@dataclass(frozen=True)
class Own:
    """A result with a field that it sets itself."""

    x: float
    double: float = field(init=False)
    parts: list[Part] = field(default_factory=list)

    def __post_init__(self):
        object.__setattr__(self, "double", 2 * self.x)


def test_a_field_that_sets_itself_comes_back():
    own = Own(0.1, parts=[Part(1, (0.5, 2.0))])
    assert from_text(Own, as_text(own)) == own and own.double == 0.2
    object.__setattr__(own, "double", 3.0)  # what nobody can compute again
    with pytest.raises(TypeError, match=r"^Own.double would not come back: 3.0 would be 0.2$"):
        as_text(own)


def test_a_file_gives_back_what_was_appended(path):
    assert written(path) == []
    found = written(path, records=RECORDS[:1])
    assert same(found, RECORDS)
    assert same(written(path, []), RECORDS + RECORDS[:1])
    assert [*json.loads(path.read_text().splitlines()[0])] == ["sweep", "crc32"]


# ------------------------------------------------------------------ law: torn and damaged files

SWEEP = functools.partial(sweep, measured, {"n": [1, 2, 3]}, seed=0)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The file of a sweep that nobody disturbed, and its rows."""
    path = tmp_path_factory.mktemp("whole") / "r.jsonl"
    rows = SWEEP(path=path)
    return path.read_bytes(), repr(rows)


@given(st.data())
@settings(max_examples=40)
def test_a_file_that_was_cut_at_any_byte_is_continued(whole, tmp_path_factory, data):
    content, rows = whole
    path = tmp_path_factory.mktemp("cut") / "r.jsonl"
    path.write_bytes(content[: data.draw(st.integers(0, len(content)))])
    told = []
    assert repr(SWEEP(path=path, shown=lambda done, _: told.append(done))) == rows
    kept = len(told) and told[0]
    assert path.read_bytes() == content and told == list(range(kept, 4))


@given(st.data())
@settings(max_examples=60)
def test_a_byte_that_was_changed_is_noticed(whole, tmp_path_factory, data):
    content, rows = whole
    path = tmp_path_factory.mktemp("changed") / "r.jsonl"
    place = data.draw(st.integers(0, len(content) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda byte: byte != content[place]))
    damaged = content[:place] + bytes([byte]) + content[place + 1 :]
    path.write_bytes(damaged)
    if place == len(content) - 1:  # without its end the last line is torn
        assert repr(SWEEP(path=path)) == rows
        return
    with pytest.raises(SweepError) as caught:
        SWEEP(path=path)
    number = content[:place].count(b"\n") + 1
    said = f"line {number} of {path} is damaged" if number > 1 else f"{path} is not a file of resul"
    assert said in str(caught.value) or content[place : place + 1] == b"\n"
    assert path.read_bytes() == damaged


def test_the_remedy_of_a_damaged_line_helps(path, whole):
    content, rows = whole
    path.write_bytes(content.replace(b"draws", b"drawn", 2).replace(b"drawn", b"draws", 1))
    with pytest.raises(SweepError, match=r"^line 3 of .* is damaged: remove this line, and its"):
        SWEEP(path=path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:2] + lines[3:]))
    assert repr(SWEEP(path=path)) == rows


def line_of(record):
    """A line that has its checksum."""
    return results._line(record)


@given(st.data())
@settings(max_examples=40)
def test_any_lines_with_their_checksums_are_continued_or_refused(whole, tmp_path_factory, data):
    content, rows = whole
    header, *lines = content.splitlines(keepends=True)
    first = json.loads(lines[0])
    other = {"settings": first["settings"], "result": first["result"] | {"n": 99}}
    odd = [None, [], {}, 3, "x", {"n": 1}, [{}]]
    strange = [
        line_of(other),
        *(line_of({"sweep": each}) for each in odd),
        *(line_of({"settings": each, "result": first["result"]}) for each in odd),
        *(line_of({"settings": first["settings"], "result": each}) for each in odd),
        line_of({"settings": first["settings"]}),
        line_of({}),
    ]
    own = st.lists(st.sampled_from([header, *lines]), max_size=6)
    drawn = data.draw(own) + data.draw(st.lists(st.sampled_from(strange), max_size=1))
    begin = data.draw(st.sampled_from([[header], [], 2 * [header], [content]]))
    given = b"".join(begin + list(data.draw(st.permutations(drawn))))
    path = tmp_path_factory.mktemp("lines") / "r.jsonl"
    path.write_bytes(given)
    try:
        found = repr(SWEEP(path=path))
    except SweepError as error:
        assert "\n" not in str(error) and str(path) in str(error)
        assert path.read_bytes() == given
    else:
        changed = line_of(other) in given and lines[0] not in given  # (its checksum is right)
        assert (found == rows) != changed and path.read_bytes().startswith(given)


def test_a_file_that_was_doubled_is_refused_until_its_second_first_line_is_removed(path, whole):
    content, rows = whole
    path.write_bytes(2 * content)
    with pytest.raises(SweepError, match=r"^line 5 of .* does not hold a result: remove this line"):
        SWEEP(path=path)
    path.write_bytes(content + content.partition(b"\n")[2])
    assert repr(SWEEP(path=path)) == rows


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda path: path.unlink(), "was removed while the sweep ran, and its results are lost"),
        (
            lambda path: path.with_suffix(".new").replace(path),
            "was removed while the sweep ran, an",
        ),
        (lambda path: os.truncate(path, 0), "was changed by another program while the sweep ran"),
        (lambda path: os.truncate(path, 9999), "was changed by another program while the sweep"),
        (
            lambda path: path.write_bytes(path.read_bytes() + b"x"),
            "was changed by another program while the sw",
        ),
    ],
)
def test_a_file_that_is_lost_while_the_sweep_runs_is_one_sentence(change, said, path):
    path.with_suffix(".new").touch()
    with pytest.raises(LostFile) as caught:
        SWEEP(path=path, shown=lambda done, _: change(path) if done == 1 else None)
    assert str(caught.value).startswith(f"{path} {said}")


@pytest.mark.parametrize(
    "content", ["hello", "hello\n", "\n", '{"sweep": 3}\n', "[]\n", "3\n", "[" * 99_999 + "\n"]
)
def test_a_file_of_something_else_is_refused_and_not_changed(content, path):
    path.write_text(content)
    with pytest.raises(SweepError, match="is not a file of results, or its first line is damaged$"):
        written(path)
    assert path.read_text() == content


# ------------------------------------------------------------------ refusal: other sweeps


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"seed": 1}, "(seed is 0 there and 1 here)"),
        ({"repeats": 2}, "(repeats is 1 there and 2 here)"),
        ({"paired": ["n"]}, '(paired is [] there and ["n"] here)'),
        ({"settings": {"n": [1, 2]}}, "(n is [1, 2, 3] there and [1, 2] here)"),
        ({"settings": {"n": [1, 2, 3.0]}}, "(n is [1, 2, 3] there and [1, 2, 3.0] here)"),
        (
            {"settings": {"n": [1, 2, 3], "a": [1]}},
            '(settings is {"n": [1, 2, 3]} there and {"n": [1, 2, 3], "a": [1]} here)',
        ),
        ({"settings": {"n": [1], "a": [1]}, "seed": 1}, "; seed is 0 there and 1 here)"),
        ({"measure": doubled}, "(measure is "),
    ],
)
def test_a_file_of_another_sweep_is_refused_and_not_changed(changed, said, path, whole):
    content, _ = whole
    path.write_bytes(content)
    arguments = {"settings": {"n": [1, 2, 3]}, "seed": 0, "measure": measured} | changed
    with pytest.raises(SweepError) as caught:
        sweep(path=path, **arguments)
    assert str(caught.value).startswith(f"{path} belongs to another sweep (")
    assert said in str(caught.value)
    said = "): remove this file, or choose another path (for a demo another folder, with --out)"
    assert str(caught.value).endswith(said)
    assert path.read_bytes() == content


@pytest.mark.parametrize("name", ["NumPy", "Python", "the code of minigrad and attention"])
def test_a_file_of_another_version_is_refused(name, path, whole, monkeypatch):
    content, _ = whole
    path.write_bytes(content)
    here = bits.facts(measured.__module__)
    monkeypatch.setattr(sweeps, "facts", lambda module: here | {name: "changed"})
    said = f'{path} belongs to another sweep ({name} is "{here[name]}" there and "changed" here): '
    with pytest.raises(SweepError) as caught:
        SWEEP(path=path)
    assert str(caught.value).startswith(said)


def test_the_first_line_says_what_the_sweep_is(whole):
    about = json.loads(whole[0].splitlines()[0])["sweep"]
    assert about["measure"] == "tests.laboratory_cells.measured"
    assert about["settings"] == {"n": [1, 2, 3]} and about["seed"] == 0
    assert about["versions"]["NumPy"] == np.__version__
    assert list(about["versions"])[-2:] == [
        "the code of minigrad and attention",
        "the code of tests.laboratory_cells",
    ]


def test_a_cell_that_the_sweep_does_not_have_is_refused(path):
    SWEEP(path=path)
    first = path.read_bytes().splitlines(keepends=True)[0]
    path.write_bytes(first)
    with results_file(path, json.loads(first)["sweep"]) as (_, append):
        append({"settings": {"n": 9, "repeat": 0}, "result": {}})
    said = f'{path} holds a cell that this sweep does not have: {{"n": 9, "repeat": 0}}'
    with pytest.raises(SweepError, match=re.escape(said)):
        SWEEP(path=path)


# ------------------------------------------------------------------ refusal: files


def test_of_two_programs_that_write_one_file_the_second_is_refused(path):
    code = (
        "from attention.laboratory.results import results_file\nimport sys\n"
        "with results_file(sys.argv[1], {}) as (_, append):\n"
        "    print('locked', flush=True)\n    sys.stdin.read()\n"
        "    append({'settings': 1, 'result': 2})\n"
    )
    command = [sys.executable, "-c", code, path]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "cwd": ROOT}
    with subprocess.Popen(command, **pipes) as other:
        other.stdout.readline()
        with pytest.raises(SweepError, match=f"^another sweep is writing to {path}: wait for its"):
            written(path, about={})
        other.communicate()
    assert written(path, [], about={}) == [{"settings": 1, "result": 2}]


def test_a_path_that_cannot_be_written_is_one_sentence(tmp_path):
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "fifo")
    for path, said in [
        (tmp_path / "none" / "r.jsonl", f"there is no folder {tmp_path}/none to write r.jsonl to"),
        (tmp_path / "file" / "r.jsonl", f"there is no folder {tmp_path}/file to write r.jsonl to"),
        (tmp_path, f"{tmp_path} cannot be written: Is a directory"),
        (tmp_path / "fifo", f"{tmp_path}/fifo is not a regular file"),
        (tmp_path / ("n" * 300), f"{tmp_path}/{'n' * 300} cannot be written: File name too long"),
        (Path("/dev/zero"), "/dev/zero is not a regular file"),
    ]:
        with pytest.raises(SweepError) as caught:
            written(path)
        assert str(caught.value) == said


def test_a_file_that_may_not_be_written_is_one_sentence(path, monkeypatch):
    def refused(*_, **__):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr("builtins.open", refused)  # (the tests may run as root, who may all)
    with pytest.raises(SweepError, match=f"^{path} cannot be written: Permission denied$"):
        written(path)


def test_on_a_full_disk_the_part_of_a_line_is_taken_back(path, whole):
    content, rows = whole
    resource = pytest.importorskip("resource", reason="needs a limit for the size of files")
    end = content.index(b"\n", content.index(b"\n") + 1) + 20  # inside the third line
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    said = f"^{path} cannot be written: File too large: 1 of 3 results are kept in "
    resource.setrlimit(resource.RLIMIT_FSIZE, (end, limit[1]))
    try:
        with pytest.raises(SweepError, match=said):
            SWEEP(path=path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert path.read_bytes() == content[: end - 20 + 1]
    assert repr(SWEEP(path=path)) == rows


# ------------------------------------------------------------------ refusal: results


@dataclass(frozen=True)
class Any_:
    """A result that can hold anything."""

    x: object


@dataclass(frozen=True)
class Changing:
    """A result that changes what it is given."""

    x: float

    def __post_init__(self):
        object.__setattr__(self, "x", self.x + 1)


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (3.0, "a measurement returns a dataclass: got float"),
        (Found, "a measurement returns a dataclass: got type"),
        (
            Any_(np.ones(2)),
            "Any_.x must be a number, text, or a list of them: got ndarray: use .toli",
        ),
        (Any_({"a": 1}), "Any_.x must be a number, text, or a list of them: got dict"),
        (Any_([1, [2j]]), "Any_.x must be a number, text, or a list of them: got complex"),
        (
            Any_(np.longdouble(1)),
            "Any_.x must be a number, text, or a list of them: got longdouble",
        ),
        (Any_((1, 2)), "Any_.x would not come back: (1, 2) would be [1, 2]"),
        (Changing(1.0), "Changing.x would not come back: 2.0 would be 3.0"),
    ],
)
def test_a_result_that_would_not_come_back_is_refused(result, said):
    with pytest.raises(TypeError) as caught:
        as_text(result)
    assert str(caught.value).startswith(said)
