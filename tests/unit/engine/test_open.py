from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from taskmix.engine import open_study, own_study
from taskmix.errors import InputError
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
