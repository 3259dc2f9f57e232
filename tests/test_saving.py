"""Chapter 9 · Saving: whole or not at all."""

import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from minigrad.runs.saving import write_whole
from tests.threads import in_threads

ROOT = Path(__file__).parents[1]


def test_text_and_bytes_are_written_and_replace_what_was_there(tmp_path):
    path = tmp_path / "x.txt"
    assert write_whole(path, "√d_k") == path
    assert path.read_text(encoding="utf-8") == "√d_k"
    assert write_whole(str(path), b"new").read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["x.txt"]


def test_a_file_gets_the_permissions_that_open_would_give(tmp_path):
    (tmp_path / "by_open").write_text("")
    write_whole(tmp_path / "by_us", "")
    modes = [stat.S_IMODE(os.stat(tmp_path / name).st_mode) for name in ("by_open", "by_us")]
    assert modes[0] == modes[1]


@pytest.mark.parametrize("fails", ["fsync", "replace"])
def test_an_interruption_leaves_the_old_file_and_no_other(tmp_path, monkeypatch, fails):
    path = write_whole(tmp_path / "x.txt", "old")

    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, fails, interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_whole(path, "new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["x.txt"]


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(OSError, match="there is no folder .*nowhere to write x.txt to"):
        write_whole(tmp_path / "nowhere" / "x.txt", "")


def test_a_replaced_file_keeps_its_permissions_and_a_link_stays_a_link(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    target.chmod(0o600)
    link.symlink_to(target)
    assert write_whole(link, "new") == link
    assert link.is_symlink() and target.read_text() == "new"
    assert target.stat().st_mode & 0o777 == 0o600
    assert {path.name for path in tmp_path.iterdir()} == {"target", "link"}


def test_a_pipe_is_not_replaced_by_a_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="is not a regular file"):
        write_whole(tmp_path / "pipe", "x")
    assert (tmp_path / "pipe").is_fifo()


def test_a_file_that_a_killed_program_left_is_removed_and_a_living_one_s_is_not(tmp_path):
    code = (
        "import os, sys, time; from minigrad.runs import saving;"
        "os.fsync = lambda handle: (print('writing', flush=True), time.sleep(60));"
        "saving.write_whole(sys.argv[1], b'x' * 1000)"
    )
    path = tmp_path / "x.bin"
    writers = [
        subprocess.Popen([sys.executable, "-c", code, path], stdout=subprocess.PIPE, cwd=ROOT)
        for _ in range(2)
    ]
    try:
        for writer in writers:
            assert writer.stdout.readline() == b"writing\n"
        left = set(tmp_path.iterdir())
        assert len(left) == 2
        writers[0].kill()
        writers[0].wait()
        write_whole(path, b"whole")
        assert path.read_bytes() == b"whole"
        assert len(set(tmp_path.iterdir()) & left) == 1  # the living one's
    finally:
        for writer in writers:
            writer.kill()
            writer.wait()
            writer.stdout.close()
    write_whole(path, b"again")
    assert os.listdir(tmp_path) == ["x.bin"]


@pytest.mark.parametrize("length", [246, 255])
def test_a_name_may_be_as_long_as_the_system_allows(tmp_path, length):
    path = tmp_path / ("x" * length)
    assert write_whole(path, "long").read_text() == "long"


def test_many_threads_write_one_name_and_each_time_it_is_whole(tmp_path):
    path, texts = tmp_path / "x.txt", [str(i) * 10_000 for i in range(10)]
    in_threads(*(lambda text=text: [write_whole(path, text) for _ in range(20)] for text in texts))
    assert path.read_text() in texts and os.listdir(tmp_path) == ["x.txt"]


def test_the_umask_of_the_process_is_never_touched(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "umask", lambda mask: pytest.fail("other threads would see it"))
    write_whole(tmp_path / "x.txt", "")


def test_a_link_into_nothing_and_a_loop_of_links_are_told_in_a_sentence(tmp_path):
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(OSError, match="a is a link that leads back to itself"):
        write_whole(tmp_path / "a", "x")
    (tmp_path / "gone").symlink_to(tmp_path / "no" / "folder" / "x")
    with pytest.raises(OSError, match="there is no folder .*no/folder, to which the link .*gone"):
        write_whole(tmp_path / "gone", "x")
    (tmp_path / "new").symlink_to(tmp_path / "target")  # as `open` does: the target is made
    assert write_whole(tmp_path / "new", "x").is_symlink()
    assert (tmp_path / "target").read_text() == "x"


def test_what_may_not_be_written_is_refused_and_stays_as_it_was():
    """As another user than root, who may write everything."""
    code = (
        "import os\n"
        "from minigrad.runs.saving import write_whole\n"
        "os.getuid() or os.setuid(65534)\n"
        "for name in ('locked.txt', 'folder/x.txt'):\n"
        "    try: write_whole(name, 'new')\n"
        "    except OSError as error: print(error)\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder)
        (top / "folder").mkdir()
        files = [top / "locked.txt", top / "folder" / "x.txt"]
        for file, mode in zip(files, (0o444, 0o666), strict=True):
            file.write_text("old")
            file.chmod(mode)
        top.chmod(0o777)
        (top / "folder").chmod(0o555)
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.splitlines() == [
            "locked.txt cannot be written: Permission denied",
            "folder/x.txt cannot be written: Permission denied",
        ]
        assert [file.read_text() for file in files] == ["old", "old"]
        (top / "folder").chmod(0o755)
