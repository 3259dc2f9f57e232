"""Saving: a file is written whole or not at all."""

import os
import stat

import pytest

from minigrad.runs.saving import write_whole
from tests.threads import in_threads


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


def test_a_link_stays_a_link_and_a_file_that_is_replaced_keeps_its_permissions(tmp_path):
    (tmp_path / "runs").mkdir()
    target = write_whole(tmp_path / "runs" / "7.txt", "old")
    target.chmod(0o600)
    link = tmp_path / "latest.txt"
    link.symlink_to(target)
    assert write_whole(link, "new") == link and link.readlink() == target
    assert target.read_text() == "new" and stat.S_IMODE(target.stat().st_mode) == 0o600
    assert os.listdir(tmp_path / "runs") == ["7.txt"]


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


def test_many_threads_write_one_name_and_each_time_it_is_whole(tmp_path):
    path, texts = tmp_path / "x.txt", [str(i) * 10_000 for i in range(10)]
    in_threads(*(lambda text=text: [write_whole(path, text) for _ in range(20)] for text in texts))
    assert path.read_text() in texts and os.listdir(tmp_path) == ["x.txt"]
