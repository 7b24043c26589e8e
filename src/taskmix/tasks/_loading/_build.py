"""From files to tasks: everything is decided per row, then every split of every task is a slice.

The files of an origin are one stack of rows. A table of two thousand tasks costs little more than a
table of one, and targets that read the same columns share one table of inputs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from taskmix.tasks._columns import StackedFiles, unseen_categories
from taskmix.tasks._formats import Rows
from taskmix.tasks._loading._inputs import (
    InputPlan,
    build_inputs,
    name_columns,
    plan_inputs,
    plan_written,
    remarks_on_cells,
    target_column,
    tokens_column,
)
from taskmix.tasks._loading._layout import RowLayout, find_split_column, lay_out
from taskmix.tasks._loading._notes import Notes
from taskmix.tasks._loading._sequences import gather_sequences, holds_sequences
from taskmix.tasks._loading._settings import TaskSettings
from taskmix.tasks._loading._targets import (
    Target,
    choose_metric,
    keep_labels,
    read_target,
    settle_labels,
)
from taskmix.tasks._loading._written import find_written
from taskmix.tasks._reading import WRITTEN, Reading, TaskKind
from taskmix.tasks._scoring import metric_of_imbalance
from taskmix.tasks._task import Split, Task

_ONE_LABEL = "all rows of train have the same label"


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """One target asked for: its column, and the name of its task where it has one of its own."""

    label: str | None
    settings: TaskSettings
    name: str | None = None


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where tasks come from: a file for each split, or one table that is still to be divided."""

    name: str  # of the task; with several targets, the first part of their names; a frame has none
    parts: Mapping[str, Rows]  # by split; a whole table under any name
    whole: bool = False
    is_only: bool = False  # so that names from a task column need nothing before them

    def __post_init__(self) -> None:
        for part in self.parts.values():
            if part.table.num_rows == 0:
                part.bad("A split should have rows.", "none", "Fill the file or take it away.")

    def task_name(self, want: Wanted, group: str | None, *, alone: bool) -> str:
        """The folder, the value of the task column, the target: as many as are needed."""
        if want.name is not None:
            return want.name if group is None else f"{want.name}/{group}"
        parts = [] if (group is not None and self.is_only) or not self.name else [self.name]
        parts += [] if group is None else [group]
        parts += [] if (alone and parts) or want.label is None else [want.label]
        return "/".join(parts) or "task"


@dataclass(frozen=True, eq=False)
class _Column:
    """One target over all groups."""

    want: Wanted
    target: Target | None  # sequences have none
    plan: InputPlan
    labels: tuple[str, ...]
    values: list[dict[str, NDArray[Any]]]  # by group and split
    remarks: tuple[str, ...] = ()


def make_tasks(
    origin: Origin,
    wanted: Sequence[Wanted],  # with settings that agree but for the target
    notes: Notes,
    apart: Collection[str] = (),  # columns that are targets elsewhere, and so no features here
    *,
    strict: bool = False,
) -> list[Task]:
    """The tasks of one origin, ordered by task column and then as wanted."""
    settings = wanted[0].settings
    named = {split: name_columns(part, settings) for split, part in origin.parts.items()}
    stack = StackedFiles(named, strict=strict)
    task_column = settings.task_column
    if task_column is None and origin.whole and "task" in stack.names:
        task_column = "task"
    split_column = find_split_column(stack, settings, origin.whole)
    beside = [name for name in (task_column, split_column) if name is not None]
    targets: list[Target | None] = [None]
    if holds_sequences(stack, settings):
        stack, inner = gather_sequences(stack, settings, beside)
        task_column = inner or task_column
    else:
        targets = [_read_target(stack, want, beside) for want in wanted]
    kept = np.ones(len(stack), dtype=np.bool_)
    for target in targets:
        if target is not None and settings.labels is not None:
            kept &= keep_labels(stack, target, settings.labels)
    layout = lay_out(
        stack, kept, task_column=task_column, split_column=split_column, whole=origin.whole
    )
    features_not = {*apart, *beside, *(target.column for target in targets if target is not None)}
    columns = [
        _column(stack, want, target, kept, layout, features_not)
        for want, target in zip(wanted, targets, strict=False)
    ]
    inputs: dict[InputPlan, list[dict[str, pa.Table]]] = {}
    remarks: dict[InputPlan, tuple[str, ...]] = {}
    for column in columns:
        if column.plan not in inputs:
            table = build_inputs(stack, column.plan)
            inputs[column.plan] = layout.tables(table)
            remarks[column.plan] = column.plan.remarks + remarks_on_cells(stack, column.plan)
            if column.plan.kind == "table":
                unseen = unseen_categories(stack, table, layout.trained_on, kept)
                remarks[column.plan] += tuple(unseen)
    tasks = [
        _task(origin, column, columns, layout.groups[group], group, inputs[column.plan], words)
        for group, words in enumerate(layout.divided)
        for column in columns
    ]
    about = [(*remarks[column.plan], *column.remarks) for column in columns]
    _take_notes(tasks, about, layout, notes)
    return tasks


def _read_target(stack: StackedFiles, want: Wanted, beside: Sequence[str]) -> Target:
    column = target_column(stack, want.settings, want.label)
    said = want.settings.kind in WRITTEN or want.settings.prompt or want.settings.answer
    if said or column not in stack.names:
        written = find_written(stack, want.settings, want.label, beside)
        if written is not None:
            return Target(written.answer or written.columns[0], written.kind, written=written)
    return read_target(stack, column, want.settings, tokens_column(stack, want.settings))


def _column(
    stack: StackedFiles,
    want: Wanted,
    target: Target | None,
    kept: NDArray[np.bool_],
    layout: RowLayout,
    features_not: Collection[str],
) -> _Column:
    nothing: list[dict[str, NDArray[Any]]] = [
        {split: np.empty(0) for split in pieces} for pieces in layout.pieces
    ]
    if target is not None and target.written is not None:
        plan = plan_written(stack, target.written, features_not)
        return _Column(want, target, plan, (), nothing)
    if target is None:
        shape = "symbols" if "symbols" in stack.names else "values"
        return _Column(want, None, InputPlan("sequences", (shape,)), (), nothing)
    is_tagging = target.kind == "tagging"
    plan = plan_inputs(
        stack, want.settings, target=target.column, is_tagging=is_tagging, apart=features_not
    )
    if target.values is not None:
        values = layout.arrays(target.values)
        return _Column(want, target, plan, (), values, target.remarks)
    labels, indices, remarks = settle_labels(
        stack,
        target,
        want.settings,
        kept=kept,
        known=layout.known,
    )
    return _Column(want, target, plan, labels, layout.arrays(indices, target.offsets), remarks)


def _task(
    origin: Origin,
    column: _Column,
    columns: Sequence[_Column],
    group_name: str | None,
    group: int,
    inputs: list[dict[str, pa.Table]],
    divided: tuple[str, ...],
) -> Task:
    # Inputs are called after the first task that reads them: names differ, so sources do.
    first = next(other for other in columns if other.plan == column.plan)
    alone = len(columns) == 1
    kind: TaskKind = "sequences" if column.target is None else column.target.kind
    wanted = column.want.settings.metric
    metric = choose_metric(column.target, column.labels, wanted)
    asked_for = None  # by how the classes are divided
    if wanted is None and kind == "classification":
        asked_for = metric_of_imbalance(column.labels, column.values[group])
        metric = asked_for or metric
    label = None if column.target is None else column.target.column
    reading = Reading(
        inputs=column.plan.kind,
        columns=column.plan.columns,
        label=None if kind in WRITTEN and label in column.plan.columns else label,
        kind=kind,
        classes=len(column.labels),
        metric=metric,
        by_imbalance=asked_for is not None,
        left_out=column.plan.left_out,
        divided=divided,
    )
    return Task(
        name=origin.task_name(column.want, group_name, alone=alone),
        kind=kind,
        inputs=column.plan.kind,
        labels=column.labels,
        metric=metric,
        source=origin.task_name(first.want, group_name, alone=alone),
        columns=column.plan.columns,
        reading=reading,
        splits={
            split: Split(table, column.values[group][split])
            for split, table in inputs[group].items()
        },
    )


def _take_notes(
    tasks: Sequence[Task], about: Sequence[Sequence[str]], layout: RowLayout, notes: Notes
) -> None:
    for group, remark in layout.remarks:
        for task in tasks[group * len(about) : (group + 1) * len(about)]:
            notes.add(remark, task.name)
    for place, task in enumerate(tasks):
        for remark in about[place % len(about)]:
            notes.add(remark, task.name)
        if task.kind == "classification" and "train" in task.splits:
            targets = task.splits["train"].targets
            if (targets == targets[0]).all():
                notes.add(_ONE_LABEL, task.name)
