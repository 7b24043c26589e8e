from __future__ import annotations

from pathlib import Path

import pytest

from taskmix.errors import RecordError
from taskmix.files import holding, read_note


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


def test_who_holds_a_lock_can_say_so_in_it(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    assert read_note(path) is None
    with holding(path, note="the first of two holders"), holding(path, note="in vain") as second:
        assert not second
        assert read_note(path) == "the first of two holders"
    with holding(path, note="a second") as held:
        assert held
        assert read_note(path) == "a second"
