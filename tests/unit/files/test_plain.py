from __future__ import annotations

import os
from pathlib import Path

import pytest

from taskmix.errors import RecordError
from taskmix.files import UnreadableError, check_plain, open_plain, read_plain


@pytest.fixture(params=["pipe", "link to a pipe", "folder", "device", "socket"])
def odd(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "odd"
    match request.param:
        case "pipe":
            os.mkfifo(path)
        case "link to a pipe":
            os.mkfifo(tmp_path / "pipe")
            path.symlink_to(tmp_path / "pipe")
        case "folder":
            path.mkdir()
        case "device":
            path.symlink_to("/dev/zero")
        case "socket":
            import socket

            with socket.socket(socket.AF_UNIX) as listening:
                listening.bind(str(path))
    return path


@pytest.mark.parametrize("read", [read_plain, open_plain, check_plain])
def test_what_is_no_plain_file_is_refused_at_once(odd: Path, read: object) -> None:
    assert callable(read)
    with pytest.raises(RecordError, match="odd"):
        read(odd)


def test_a_sparse_file_that_claims_to_be_large_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "run.json").open("wb") as file:
        file.truncate(20 * 2**30)
    with pytest.raises(UnreadableError, match="21,474,836,480"):
        read_plain(tmp_path / "run.json")


def test_a_plain_file_and_a_link_to_one_are_read_up_to_the_limit(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    assert read_plain(tmp_path / "a", limit=5) == read_plain(tmp_path / "b") == b"12345"
    with pytest.raises(UnreadableError, match="at most 4 bytes"):
        read_plain(tmp_path / "a", limit=4)


def test_a_missing_file_is_told_as_such(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_plain(tmp_path / "missing")
