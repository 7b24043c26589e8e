from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from taskmix.errors import RecordError
from taskmix.records import _atomic
from taskmix.records._atomic import (
    BUFFER,
    make_folder,
    read_bytes,
    remove,
    remove_stale,
    replacing,
    write_bytes,
)


def test_a_block_that_fails_leaves_the_old_content_and_no_file_aside(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    write_bytes(path, b"old")
    with pytest.raises(ZeroDivisionError), replacing(path) as sink:
        sink.write(b"new")
        raise ZeroDivisionError
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.json"]


def test_small_and_large_pieces_arrive_in_order_and_are_counted(tmp_path: Path) -> None:
    pieces = [b"a" * 10, b"b" * (BUFFER + 1), b"c" * (BUFFER - 1), b"d" * 5, b"", b"e" * BUFFER]
    with replacing(tmp_path / "a") as sink:
        for piece in pieces:
            assert sink.write(piece) == len(piece)
        assert sink.tell() == sum(map(len, pieces))
        sink.overwrite(3, b"XY")
    expected = bytearray(b"".join(pieces))
    expected[3:5] = b"XY"
    assert (tmp_path / "a").read_bytes() == expected


def test_a_disk_that_takes_little_at_a_time_gets_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, view: write(descriptor, view[:7]))
    write_bytes(tmp_path / "a", bytes(range(100)))
    monkeypatch.undo()
    assert (tmp_path / "a").read_bytes() == bytes(range(100))


def test_what_is_written_to_an_abandoned_file_reaches_no_other(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), replacing(tmp_path / "a") as sink:
        raise ZeroDivisionError
    with (tmp_path / "b").open("wb") as other:  # gets the same number from the kernel
        sink.write(b"x" * 2 * BUFFER)
        sink.overwrite(0, b"x")
        sink.drain()
        other.write(b"own")
    assert (tmp_path / "b").read_bytes() == b"own"


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        (errno.ENOSPC, "Free some space"),
        (errno.EDQUOT, "Free some space"),
        (errno.EACCES, "Change its permissions"),
        (errno.EROFS, "choose another folder"),
        (errno.EIO, "Check the disk"),
    ],
)
@pytest.mark.parametrize("call", ["open", "write", "fsync", "replace"])
def test_an_error_of_the_disk_is_a_sentence_with_the_file_and_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, code: int, remedy: str
) -> None:
    path = tmp_path / "run.json"
    write_bytes(path, b"old")

    def refuse(*arguments: object) -> None:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch, pytest.raises(RecordError, match=remedy) as caught:
        patch.setattr(_atomic.os, call, refuse)
        write_bytes(path, b"new")
    assert str(tmp_path) in str(caught.value)
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.json"]


def test_a_file_system_that_cannot_flush_folders_is_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> None:
        raise OSError(errno.EINVAL, "Invalid argument")

    fsync = os.fsync
    calls = iter([fsync, refuse])
    monkeypatch.setattr(os, "fsync", lambda descriptor: next(calls)(descriptor))
    write_bytes(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"new"


def test_what_killed_processes_were_writing_is_swept_and_nothing_else(tmp_path: Path) -> None:
    for name in [".run.json.123.tmp", ".lock", "run.json", "notes.tmp"]:
        (tmp_path / name).touch()
    remove_stale(tmp_path)
    remove_stale(tmp_path / "missing")
    assert {entry.name for entry in tmp_path.iterdir()} == {".lock", "run.json", "notes.tmp"}


def test_removing_a_file_twice_and_making_a_folder_twice_is_fine(tmp_path: Path) -> None:
    make_folder(tmp_path / "a" / "b")
    make_folder(tmp_path / "a" / "b")
    write_bytes(tmp_path / "a" / "b" / "c", b"")
    remove(tmp_path / "a" / "b" / "c")
    remove(tmp_path / "a" / "b" / "c")
    with pytest.raises(FileNotFoundError):
        read_bytes(tmp_path / "a" / "b" / "c")


def test_a_folder_in_the_place_of_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "run.json").mkdir()
    with pytest.raises(RecordError, match="should be readable"):
        read_bytes(tmp_path / "run.json")
    with pytest.raises(RecordError, match=r"run\.json"):
        write_bytes(tmp_path / "run.json", b"")


def test_a_link_in_its_place_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("mine")
    (tmp_path / f".run.json.{os.getpid()}.tmp").symlink_to(tmp_path / "victim")
    with pytest.raises(RecordError, match=r"run\.json"):
        write_bytes(tmp_path / "run.json", b"other")
    assert (tmp_path / "victim").read_text() == "mine"
    write_bytes(tmp_path / "run.json", b"other")  # the link is gone
    assert (tmp_path / "run.json").read_bytes() == b"other"
