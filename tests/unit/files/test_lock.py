from __future__ import annotations

from pathlib import Path

import pytest

from taskmix.errors import RecordError
from taskmix.files import holding


def test_a_lock_is_held_once_and_free_afterwards(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    with holding(path) as first:
        assert first
        with holding(path) as second:
            assert not second
        with holding(path) as third:  # asking in vain releases nothing
            assert not third
    with pytest.raises(ZeroDivisionError), holding(path):
        raise ZeroDivisionError
    with holding(path) as again:
        assert again


def test_a_lock_in_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"\.lock"), holding(tmp_path / "missing" / ".lock"):
        pass
