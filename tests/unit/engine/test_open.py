from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from taskmix.engine import open_study, own_study, working_alone
from taskmix.errors import InputError, OptionError, RunError
from taskmix.tasks import TaskSet, digits_tasks


@dataclass(frozen=True)
class InMemory:
    """Tasks that no file and no name stands for."""

    names: tuple[str, ...]

    def load(self) -> TaskSet:
        return digits_tasks().select(self.names)


def test_other_tasks_in_memory_are_refused_by_a_study_about_some(tmp_path: Path) -> None:
    first, other = InMemory(("parity", "half")), InMemory(("prime",))
    open_study(tmp_path / "study", first.load(), first).settle()
    open_study(tmp_path / "study", first.load(), first).settle()
    with pytest.raises(InputError, match="should be used for the tasks it is about"):
        open_study(tmp_path / "study", other.load(), other).settle()


def test_a_study_whose_runs_all_failed_before_they_wrote_anything_can_be_opened_again(
    tmp_path: Path,
) -> None:
    (tmp_path / "study" / "0123456789abcdef").mkdir(parents=True)
    (tmp_path / "study" / "0123456789abcdef" / ".lock").touch()
    assert own_study(tmp_path / "study").path == tmp_path / "study"
    (tmp_path / "study" / "0123456789abcdef" / "photo.jpg").touch()
    with pytest.raises(InputError, match="new, empty or its own"):
        own_study(tmp_path / "study")


def test_who_comes_second_is_told_who_is_at_it_and_since_when(tmp_path: Path) -> None:
    study = tmp_path / "study"
    words = f"process {os.getpid()} on .*, since 20"
    with working_alone(study, "advise"):
        with pytest.raises(RunError, match=words) as caught, working_alone(study, "advise"):
            raise AssertionError
        assert str(study) in str(caught.value)
    with working_alone(study, "advise"):
        pass


def test_an_adviser_that_had_nothing_to_do_leaves_nothing(tmp_path: Path) -> None:
    study = tmp_path / "study"
    with pytest.raises(OptionError), working_alone(study, "advise"):
        raise OptionError("The budget should be larger.")
    assert not study.exists()


def test_a_folder_that_was_there_is_left_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(OptionError), working_alone(tmp_path, "advise"):
        raise OptionError("The budget should be larger.")
    assert (tmp_path / "notes.txt").read_text() == "mine"
    new = tmp_path / "new"
    with pytest.raises(OptionError), working_alone(new, "advise"):
        (new / "notes.txt").write_text("mine")
        raise OptionError("The budget should be larger.")
    assert (new / "notes.txt").read_text() == "mine"
