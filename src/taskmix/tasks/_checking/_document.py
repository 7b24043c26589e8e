"""What `check_tasks` answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from taskmix.tasks._columns._roles import ColumnKind
from taskmix.tasks._looking._look import Finding
from taskmix.tasks._reading import InputKind, TaskKind


@dataclass(frozen=True, kw_only=True)
class FileRead:
    """A file that tasks were made of."""

    path: str
    format: str
    rows: int
    split: str  # empty where one table has all of them


@dataclass(frozen=True, kw_only=True)
class TaskRead:
    """A task, and what it was taken for."""

    name: str
    kind: TaskKind
    inputs: InputKind
    label: str | None
    classes: int
    metric: str
    by_imbalance: bool  # whether the metric was chosen because one class is so common
    sizes: Mapping[str, int]  # rows of each split


@dataclass(frozen=True, kw_only=True)
class ColumnSeen:
    """A column: what it looks like, and what it is used as."""

    name: str
    kind: ColumnKind
    use: str  # label, text, feature, task, split, or left out and why
    values: int = 0  # different ones; 0 where they are not counted
    missing: float = 0.0  # the share of cells
    example: str = ""
    files: int = 1  # sets of files, each of a task or of several, that have it


@dataclass(frozen=True, kw_only=True)
class TaskCheck:
    """All that is known of tasks before training."""

    source: str
    files: tuple[FileRead, ...]
    tasks: tuple[TaskRead, ...]
    columns: tuple[ColumnSeen, ...]
    notes: tuple[str, ...]  # what was guessed, and how to say otherwise
    findings: tuple[Finding, ...]

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """The findings because of which results may mislead."""
        return tuple(each for each in self.findings if each.is_warning)
