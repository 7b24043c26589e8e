"""What the template of the page shows: its tables' rows, and all of it together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from taskmix.report._advice import AdviceContents, DeliveredContents
from taskmix.report._drawing import Palette
from taskmix.report._study import Specifications, Standing
from taskmix.report._transfer import TransferContents


@dataclass(frozen=True)
class ScoreTableCell:
    """A score of the table, and how it stands in its row."""

    mean: str
    spread: str
    standing: Standing


@dataclass(frozen=True)
class ScoreTableRow:
    """A task, or all of them together."""

    name: str
    overall: bool
    metric: str
    size: str
    cells: list[ScoreTableCell | None]  # one a label


@dataclass(frozen=True)
class TaskTableRow:
    """What a task is."""

    name: str
    kind: str
    inputs: str
    classes: int | None
    metric: str
    sizes: list[str]  # one a split


@dataclass(frozen=True)
class RunTableRow:
    """A run and how it ended."""

    name: str
    label: str
    seed: int
    tasks: str
    status: str
    step: str
    best_step: str
    time: str
    error: str | None


@dataclass(frozen=True, kw_only=True)
class PageContents:
    """Everything the template shows, as text."""

    kicker: str  # which command the page is of
    title: str
    labels: tuple[str, ...]
    label_colours: int
    palette: Palette
    shown_panels: int
    headline: tuple[str, ...]
    facts: list[tuple[str, str]]
    advice: AdviceContents | None
    transfer: TransferContents | None
    delivered: DeliveredContents | None
    ways: list[tuple[str, str]]  # labels, each with what it does
    untitled: tuple[str, ...]  # figures whose one panel needs no title
    first_sections: list[tuple[str, str]]  # of advice, or of transfer
    sections: list[tuple[str, str]]
    figure_sections: list[tuple[str, str]]
    best: str
    table: list[ScoreTableRow]
    table_caption: str
    specification: Specifications
    splits: list[str]
    tasks: list[TaskTableRow]
    known: Mapping[str, bool]  # which columns of the tasks have something in them
    unfinished: list[RunTableRow]
    unfinished_words: str
    runs: list[RunTableRow]
    runs_summary: str
    notes: tuple[str, ...]
    how_to_read: str
    command: str
    updated: str
    versions: str
