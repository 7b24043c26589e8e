"""From files to tasks: everything is decided per row, then every split of every task is a slice.

The files of an origin are one stack of rows. A table of two thousand tasks costs little more than a
table of one, and targets that read the same columns share one table of inputs.

`check_tasks` wants to see the files themselves as tasks are made of them. A `TaskSet` has only what is
learned from. What a column was taken for, which files were read and where a row stands in them is known
while they are read, and is handed to whoever watches; nobody pays for it otherwise.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from taskmix.tasks._columns._roles import unseen_categories
from taskmix.tasks._columns._stack import StackedFiles, match_column
from taskmix.tasks._formats._readers import Rows
from taskmix.tasks._formats._words import Notes
from taskmix.tasks._loading._inputs import InputPlan, build_inputs, name_columns, remarks_on_cells
from taskmix.tasks._loading._layout import (
    RowLayout,
    empty_texts,
    equal_inputs,
    find_split_column,
    lay_out,
    leave_out_rows,
    read_splits,
    remarks_on_target,
)
from taskmix.tasks._loading._multilabel import mark_labels
from taskmix.tasks._loading._sequences import gather_sequences, holds_sequences
from taskmix.tasks._loading._targets import Target, choose_metric, keep_labels, settle_labels
from taskmix.tasks._loading._wanted import (
    Wanted,
    alike,
    plan_wanted,
    read_wanted,
    suggest_task_column,
    wanted_as_written,
    with_targets,
)
from taskmix.tasks._reading import WRITTEN, Reading, TaskKind
from taskmix.tasks._scoring._metrics import metric_of_imbalance
from taskmix.tasks._task import MISSING, Split, Task


@dataclass(frozen=True, eq=False, kw_only=True)
class SeenFiles:
    """The files of one origin, and what was made of them."""

    stack: StackedFiles
    tasks: tuple[str, ...]  # ordered by task column, and then by target
    targets: tuple[str | None, ...]  # columns; None of sequences
    plans: tuple[InputPlan, ...]  # of each target
    task_column: str | None
    split_column: str | None
    ignored: frozenset[str]
    layout: RowLayout | None  # None of sequences that were gathered from several rows each
    classes: NDArray[np.int64] | None  # [row], of the first target, where it has classes

    def place(self, task: str, split: str, row: int) -> int | None:
        """The row of the stack that is a task's row."""
        if self.layout is None:
            return None
        group = self.tasks.index(task) // len(self.targets)
        piece = self.layout.pieces[group][split]
        return int(self.layout.order[piece][row])

    def rows_of(self, split: str) -> NDArray[np.int64]:
        """Rows of the stack that are in that split of any task."""
        if self.layout is None:
            return np.zeros(0, dtype=np.int64)
        order = self.layout.order
        parts = [order[group[split]] for group in self.layout.pieces if split in group]
        return np.sort(np.concatenate([np.zeros(0, dtype=np.int64), *parts]))


_watcher: ContextVar[list[SeenFiles] | None] = ContextVar("_watcher", default=None)


@contextmanager
def watching() -> Iterator[list[SeenFiles]]:
    """The files of all tasks that are made inside, in their order."""
    seen: list[SeenFiles] = []
    token = _watcher.set(seen)
    try:
        yield seen
    finally:
        _watcher.reset(token)


def watcher() -> list[SeenFiles] | None:
    """Where to put what is seen; None where nobody watches."""
    return _watcher.get()


_ONE_LABEL = "all rows of train have the same label"


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
    parts = alike(origin.parts)
    names = next(iter(parts.values())).table.column_names
    wanted = [wanted_as_written(want, names) for want in wanted]
    apart = [match_column(names, name) or name for name in apart]
    settings = wanted[0].settings
    named = {split: name_columns(part, settings) for split, part in parts.items()}
    stack = StackedFiles(with_targets(named, wanted, notes, strict=strict), strict=strict)
    task_column = settings.task_column or _own_task_column(origin, stack)
    split_column = find_split_column(stack, settings, origin.whole)
    if split_column is not None:
        read_splits(stack, split_column)  # raises what is wrong with it, before anything else
    beside = [name for name in (task_column, split_column) if name is not None]
    files = stack
    targets: list[Target | None] = [None]
    if holds_sequences(stack, settings):
        stack, inner = gather_sequences(stack, settings, beside)
        task_column = inner or task_column
    else:
        targets = [read_wanted(stack, want, beside) for want in wanted]
    kept = np.ones(len(stack), dtype=np.bool_)
    for target in targets:
        if target is not None and settings.labels is not None:
            kept &= keep_labels(stack, target, settings.labels)
    left_out = leave_out_rows(stack, task_column, targets, kept)
    features_not = {*apart, *beside, *(target.column for target in targets if target is not None)}
    plans = [
        plan_wanted(stack, want, target, features_not)
        for want, target in zip(wanted, targets, strict=False)
    ]
    built = {plan: build_inputs(stack, plan) for plan in dict.fromkeys(plans)}
    layout = lay_out(
        stack,
        kept,
        task_column=task_column,
        split_column=split_column,
        whole=origin.whole,
        strata=None if targets[0] is None else targets[0].strata,
        same=lambda: None if targets[0] is None else equal_inputs(built[plans[0]]),
    )
    columns = [
        _column(stack, want, target, plan, kept, layout)
        for want, target, plan in zip(wanted, targets, plans, strict=False)
    ]
    remarks = {plan: plan.remarks + remarks_on_cells(stack, plan) for plan in built}
    for plan, table in built.items():
        remarks[plan] += empty_texts(stack, table, kept)
        if plan.kind == "table":
            remarks[plan] += tuple(unseen_categories(stack, table, layout.trained_on, kept))
    inputs = {plan: layout.tables(table) for plan, table in built.items()}
    tasks = [
        _task(origin, column, columns, layout.groups[group], group, inputs[column.plan], words)
        for group, words in enumerate(layout.divided)
        for column in columns
    ]
    about = [(*left_out, *remarks[column.plan], *column.remarks) for column in columns]
    _take_notes(tasks, about, layout, notes)
    if len(columns) == len(tasks) == 1 and task_column is None:
        notes.suggest(_suggestion(stack, columns[0], features_not), tasks[0].name)
    notes.count(len(tasks))
    if (seen := watcher()) is not None:
        words = None if targets[0] is None else targets[0].words
        seen.append(
            SeenFiles(
                stack=files,
                tasks=tuple(task.name for task in tasks),
                targets=tuple(None if each is None else each.column for each in targets),
                plans=tuple(column.plan for column in columns),
                task_column=task_column,
                split_column=split_column,
                ignored=frozenset({*apart, *(settings.ignore or ())}),
                layout=layout if files is stack else None,
                classes=words.codes
                if words is not None and len(words.codes) == len(stack)
                else None,
            )
        )
    return tasks


def _own_task_column(origin: Origin, stack: StackedFiles) -> str | None:
    """The column `task` of a whole table, or one that stands for sheets and lists of a file."""
    column = match_column(stack.names, "task")
    return column if origin.whole or column in stack.parts[0].added else None


def _suggestion(stack: StackedFiles, column: _Column, apart: Collection[str]) -> str | None:
    """A column that may name tasks, where all rows became one."""
    target = column.target
    if target is None or stack.parts[0].format == "conll":
        return None
    words = target.words if target.kind == "classification" else None
    used = {*apart, *(column.plan.columns if column.plan.kind != "table" else ())}
    labels = None if words is None else words.codes
    return suggest_task_column(stack, column.plan.kind, used, labels)


def _column(
    stack: StackedFiles,
    want: Wanted,
    target: Target | None,
    plan: InputPlan,
    kept: NDArray[np.bool_],
    layout: RowLayout,
) -> _Column:
    if target is None or target.written is not None:
        nothing: list[dict[str, NDArray[Any]]] = [
            {split: np.empty(0) for split in pieces} for pieces in layout.pieces
        ]
        return _Column(want, target, plan, (), nothing)
    own = remarks_on_target(stack, target, kept)
    if target.values is not None:
        values = layout.arrays(target.values)
        return _Column(want, target, plan, (), values, target.remarks + own)
    labels, indices, remarks = settle_labels(
        stack,
        target,
        want.settings,
        kept=kept,
        known=layout.known,
    )
    if target.sets is not None:
        marks = mark_labels(target.sets, len(labels), indices)
        return _Column(want, target, plan, labels, layout.arrays(marks), remarks + own)
    values = layout.arrays(indices, target.offsets)
    return _Column(want, target, plan, labels, values, remarks + own)


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
    labels, values = _own_classes(column, group)
    metric = choose_metric(column.target, labels, wanted)
    asked_for = None  # by how the classes are divided
    if wanted is None and kind == "classification":
        asked_for = metric_of_imbalance(labels, values)
        metric = asked_for or metric
    label = None if column.target is None else column.target.column
    reading = Reading(
        inputs=column.plan.kind,
        columns=column.plan.columns,
        label=None if kind in WRITTEN and label in column.plan.columns else label,
        kind=kind,
        classes=len(labels),
        metric=metric,
        by_imbalance=asked_for is not None,
        left_out=column.plan.left_out,
        divided=divided,
    )
    return Task(
        name=origin.task_name(column.want, group_name, alone=alone),
        kind=kind,
        inputs=column.plan.kind,
        labels=labels,
        metric=metric,
        source=origin.task_name(first.want, group_name, alone=alone),
        columns=column.plan.columns,
        reading=reading,
        splits={split: Split(table, values[split]) for split, table in inputs[group].items()},
    )


def _own_classes(column: _Column, group: int) -> tuple[tuple[str, ...], Mapping[str, NDArray[Any]]]:
    """The classes that occur in one task's rows, and its targets counted by them."""
    labels, values = column.labels, column.values[group]
    is_said = column.want.settings.labels is not None
    if is_said or not labels or len(column.values) == 1:
        return labels, values
    everywhere = np.concatenate([*values.values()])
    if everywhere.ndim == 2:  # a mark for each label
        own = np.flatnonzero((everywhere == 1).any(axis=0))
        kept = {split: marks[:, own] for split, marks in values.items()}
    else:
        own = np.unique(everywhere[everywhere != MISSING])
        kept = {
            split: np.where(each == MISSING, MISSING, np.searchsorted(own, each))
            for split, each in values.items()
        }
    return (tuple(labels[place] for place in own), kept) if len(own) else (labels, values)


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
