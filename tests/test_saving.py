"""Chapter 9 · Saving: whole or not at all."""

import os
import stat

import pytest

from minigrad.runs.saving import write_whole


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
