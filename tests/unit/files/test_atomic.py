from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from taskmix.errors import RecordError
from taskmix.files import (
    _atomic,
    delete,
    is_temporary,
    make_folder,
    making_folder,
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
    pieces = [
        b"a" * 10,
        b"b" * ((1 << 20) + 1),
        b"c" * ((1 << 20) - 1),
        b"d" * 5,
        b"",
        b"e" * (1 << 20),
    ]
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
        sink.write(b"x" * 2 * (1 << 20))
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
    ours = ".taskmix-0123456789abcdef.tmp"
    others = {".lock", "run.json", "notes.tmp", ".notes.123.tmp", ".taskmix-x.tmp"}
    for name in [ours, *others]:
        (tmp_path / name).touch()
    (tmp_path / ".taskmix-00000000000000ff.tmp" / "books").mkdir(parents=True)
    (tmp_path / ".taskmix-00000000000000ff.tmp" / "books" / "train.jsonl").touch()
    remove_stale(tmp_path)
    remove_stale(tmp_path / "missing")
    assert {entry.name for entry in tmp_path.iterdir()} == others


def test_deleting_a_file_twice_and_making_a_folder_twice_is_fine(tmp_path: Path) -> None:
    make_folder(tmp_path / "a" / "b")
    make_folder(tmp_path / "a" / "b")
    write_bytes(tmp_path / "a" / "b" / "c", b"")
    for _ in range(2):
        delete(tmp_path / "a" / "b" / "c", is_ours=lambda path: path.name == "c")
    assert not (tmp_path / "a" / "b" / "c").exists()


def test_nothing_is_deleted_where_one_file_is_not_ours(tmp_path: Path) -> None:
    for name in ["a/ours-1", "a/b/ours-2", "a/b/theirs", "a/ours-3"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    with pytest.raises(RecordError, match=r"theirs.*nothing was deleted"):
        delete(tmp_path / "a", is_ours=lambda path: path.name.startswith("ours"))
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 4
    (tmp_path / "a" / "b" / "theirs").unlink()
    delete(tmp_path / "a", is_ours=lambda path: path.name.startswith("ours"))
    assert not (tmp_path / "a").exists()


def test_a_link_is_deleted_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("mine")
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "link").symlink_to(tmp_path / "precious")
    delete(tmp_path / "a", is_ours=lambda path: path.name == "link")
    assert not (tmp_path / "a").exists()
    assert (tmp_path / "precious" / "file").read_text() == "mine"


def test_a_folder_is_made_whole_or_not_at_all(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), making_folder(tmp_path / "new") as aside:
        (aside / "file").write_text("half")
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []
    with making_folder(tmp_path / "new") as aside:
        assert is_temporary(aside / "file")
        (aside / "file").write_text("whole")
        assert not (tmp_path / "new").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["new"]
    assert (tmp_path / "new" / "file").read_text() == "whole"


def test_a_folder_is_not_made_over_one_that_was_filled_meanwhile(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="new"), making_folder(tmp_path / "new") as aside:
        (aside / "file").write_text("ours")
        (tmp_path / "new").mkdir()
        (tmp_path / "new" / "other").write_text("theirs")
    assert [path.name for path in tmp_path.iterdir()] == ["new"]
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["other"]


def test_two_that_write_one_file_at_once_use_two_files_aside(tmp_path: Path) -> None:
    with replacing(tmp_path / "a") as one:
        one.write(b"one")
        with replacing(tmp_path / "a") as two:
            two.write(b"two")
        assert (tmp_path / "a").read_bytes() == b"two"
    assert (tmp_path / "a").read_bytes() == b"one"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a"]


def test_a_name_that_is_taken_is_not_written_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "victim").write_text("mine")
    monkeypatch.setattr(_atomic.secrets, "token_hex", lambda size: "0" * 2 * size)
    (tmp_path / f".taskmix-{'0' * 16}.tmp").symlink_to(tmp_path / "victim")
    with pytest.raises(RecordError, match=r"run\.json"):
        write_bytes(tmp_path / "run.json", b"other")
    assert (tmp_path / "victim").read_text() == "mine"
    assert (tmp_path / f".taskmix-{'0' * 16}.tmp").is_symlink()  # not ours, so it stays
