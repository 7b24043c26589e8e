from __future__ import annotations

import os
from pathlib import Path

import pytest

from taskmix.adviser import advising_alone
from taskmix.errors import OptionError, RunError


def test_who_comes_second_is_told_who_is_at_it_and_since_when(tmp_path: Path) -> None:
    study = tmp_path / "study"
    words = f"process {os.getpid()} on .*, since 20"
    with advising_alone(study):
        with pytest.raises(RunError, match=words) as caught, advising_alone(study):
            raise AssertionError
        assert str(study) in str(caught.value)
    with advising_alone(study):
        pass


def test_an_adviser_that_had_nothing_to_do_leaves_nothing(tmp_path: Path) -> None:
    study = tmp_path / "study"
    with pytest.raises(OptionError), advising_alone(study):
        raise OptionError("The budget should be larger.")
    assert not study.exists()


def test_a_folder_that_was_there_is_left_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(OptionError), advising_alone(tmp_path):
        raise OptionError("The budget should be larger.")
    assert (tmp_path / "notes.txt").read_text() == "mine"
    new = tmp_path / "new"
    with pytest.raises(OptionError), advising_alone(new):
        (new / "notes.txt").write_text("mine")
        raise OptionError("The budget should be larger.")
    assert (new / "notes.txt").read_text() == "mine"
