"""`check_tasks`: all that can be said of tasks without training.

Rows of dev or test may be unlike those of train, so that a score there is of other rows: numbers are
compared by the distance of Kolmogorov and Smirnov, the largest difference of the two shares below a
value; categories and labels by the total variation, half the sum of the differences of shares. Some of
either is chance: what two samples of these sizes from one population differ by is added to the distance
from which on a column is named. At most 20,000 rows of a split are looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from taskmix.tasks._columns._dates import dates_of
from taskmix.tasks._columns._roles import UNUSABLE, ColumnKind, count_values, role_of
from taskmix.tasks._columns._stack import StackedFiles, cell_family
from taskmix.tasks._formats._words import quoted, show_path
from taskmix.tasks._loading._build import SeenFiles, watching
from taskmix.tasks._loading._folder import load_tasks
from taskmix.tasks._looking._faults import (
    Where,
    look_at_columns,
    look_at_names,
    look_at_rows,
    look_at_texts,
)
from taskmix.tasks._looking._look import Finding, join_alike, look_at
from taskmix.tasks._reading import InputKind, TaskKind
from taskmix.tasks._row_keys import RowKeys
from taskmix.tasks._scoring._metrics import count_classes
from taskmix.tasks._task import Task, TaskSet


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


_ROWS_READ = 500_000  # to say where rows stand: each time a file is read again up to the row
_LONGEST_EXAMPLE = 40  # characters
_UNCOUNTED = frozenset({"text", *UNUSABLE})  # how many values these have tells nobody anything
FAR = 0.2  # of rows that would have to change for the splits to be alike, beside what is chance
FEWEST_ROWS = 50  # of a split
_MOST_ROWS = 20_000
_BY_CHANCE = 1.95  # of Kolmogorov's distribution: one column in a thousand has more
_MOST_WORDS = 200  # categories; of more, each is too rare to compare
_SHOWN = 5


def check_tasks(source: Any, **how: Any) -> TaskCheck:
    r"""What tasks are in a folder, what each column was taken for, and what is wrong with the rows.

    `source` and all options are those of `load_tasks`. Nothing is trained and nothing is written.

    >>> from pathlib import Path
    >>> rows = [f"{n},{n % 7},{n % 3}" for n in range(60)]
    >>> _ = Path("rows.csv").write_text("id,x,class\n" + "\n".join(rows) + "\n")
    >>> found = check_tasks("rows.csv")
    >>> [(column.name, column.kind, column.use) for column in found.columns[1:]]
    [('x', 'number', 'feature'), ('class', 'number', 'label')]
    """
    with watching() as seen:
        tasks = load_tasks(source, **how)
    return TaskCheck(
        source=str(source) if isinstance(source, str) or hasattr(source, "parts") else "",
        files=tuple(_files(seen)),
        tasks=tuple(_tasks(tasks)),
        columns=columns_seen(seen),
        notes=tasks.notes,
        findings=tuple(join_alike(_findings(tasks, seen))),
    )


def _files(seen: Sequence[SeenFiles]) -> Iterator[FileRead]:
    known = set()
    for files in seen:
        for split, part in zip(files.stack.splits, files.stack.parts, strict=True):
            if part.path not in known:
                known.add(part.path)
                yield FileRead(
                    path=show_path(part.path),
                    format=part.format,
                    rows=part.table.num_rows,
                    split=split,
                )


def _tasks(tasks: TaskSet) -> Iterator[TaskRead]:
    for task in tasks:
        yield TaskRead(
            name=task.name,
            kind=task.kind,
            inputs=task.inputs,
            label=task.reading.label,
            classes=len(task.labels),
            metric=task.metric,
            by_imbalance=task.reading.by_imbalance,
            sizes=task.sizes,
        )


def _findings(tasks: TaskSet, seen: Sequence[SeenFiles]) -> Iterator[Finding]:
    keys = RowKeys()
    where = _places(seen)
    said: set[tuple[str, str]] = set()
    for files in seen:
        about = tuple(name for name in files.tasks if name in tasks.names)
        for finding in (*look_at_columns(files), *shifted_columns(files)) if about else ():
            # Tasks with the same files, or many folders of the same kind, need it said once.
            if (finding.kind, finding.words) not in said:
                said.add((finding.kind, finding.words))
                yield finding
    yield from look_at_texts([files for files in seen if set(files.tasks) & set(tasks.names)])
    # Contradictions are said below, with their rows.
    yield from (each for each in look_at(tasks, keys) if each.kind != "contradiction")
    yield from look_at_names(tasks)
    for task in tasks:
        yield from look_at_rows(task, keys, where)
        yield from shifted_labels(task)


def _places(seen: Sequence[SeenFiles]) -> Where:
    """Where a row stands, as long as that does not take much reading."""
    files_of = {task: files for files in seen for task in files.tasks}
    left = _ROWS_READ

    def where(task: str, split: str, row: int) -> str | None:
        nonlocal left
        files = files_of.get(task)
        place = None if files is None else files.place(task, split, row)
        if files is None or place is None:
            return None
        starts = files.stack.starts
        left -= place - int(starts[np.searchsorted(starts, place, side="right") - 1])
        return files.stack.where(place) if left > 0 else None

    return where


def columns_seen(seen: Sequence[SeenFiles]) -> tuple[ColumnSeen, ...]:
    """In the order in which they came up."""
    found: dict[tuple[str, str, str], list[ColumnSeen]] = {}
    for files in seen:
        for column in _columns(files):
            found.setdefault((column.name, column.kind, column.use), []).append(column)
    return tuple(
        replace(
            columns[0],
            values=max(each.values for each in columns),
            missing=float(np.mean([each.missing for each in columns])),
            files=len(columns),
        )
        for columns in found.values()
    )


def _columns(files: SeenFiles) -> Iterator[ColumnSeen]:
    stack = files.stack
    for name in stack.names:
        role = role_of(stack, name)
        is_read = not (role.kind == "other" and any(name in p.unusable for p in stack.parts))
        missing, example = _cells(stack, name) if is_read else (0.0, "")
        yield ColumnSeen(
            name=name,
            kind=role.kind,
            use=_use(files, name),
            values=0 if role.kind in _UNCOUNTED else count_values(stack, role),
            missing=missing,
            example=example,
        )


def _use(files: SeenFiles, name: str) -> str:
    if name == files.task_column:
        return "task"
    if name == files.split_column:
        return "split"
    if name in files.targets:
        return "label"
    left_out = ""
    for plan in files.plans:
        if name in plan.columns:
            return "feature" if plan.kind == "table" else plan.kind.replace("pair", "text")
        if name == plan.answer:
            return "answer"
        left_out = left_out or dict(plan.left_out).get(name, "")
    if name in files.ignored:
        return "left out (as asked)"
    return f"left out ({left_out})" if left_out else "left out"


def _cells(stack: StackedFiles, name: str) -> tuple[float, str]:
    """The share of missing cells, and the first that is not."""
    nothing = rows = 0
    example = ""
    for part in stack.parts:
        if name not in part.table.column_names:
            continue
        cells = part.table.column(name)
        rows += len(cells)
        nothing += cells.null_count
        if not example:
            first = next((cell.as_py() for cell in cells if cell.is_valid), None)
            example = "" if first is None else _shown(first)
    odd = None
    if role_of(stack, name).kind in ("number", "category", "id"):
        cells = stack.column(name)
        nothing, odd = cells.null_count, stack.odd(name)
    if odd is not None and not odd.are_missing:
        example = quoted(odd.value, limit=_LONGEST_EXAMPLE)
    return nothing / max(rows, 1), example


def _shown(value: object) -> str:
    text = value if isinstance(value, str) else quoted(value, limit=_LONGEST_EXAMPLE)
    text = " ".join(text[: 4 * _LONGEST_EXAMPLE].split())
    return text if len(text) <= _LONGEST_EXAMPLE else f"{text[: _LONGEST_EXAMPLE - 3]}..."


def shifted_columns(files: SeenFiles) -> Iterator[Finding]:
    """Inputs that differ, one finding a split."""
    train = _some(files.rows_of("train"))
    for plan in files.plans[:1]:
        if plan.kind != "table" or len(train) < FEWEST_ROWS:
            continue
        for split in ("dev", "test"):
            rows = _some(files.rows_of(split))
            if len(rows) < FEWEST_ROWS:
                continue
            found: dict[str, float] = {}
            for name in plan.columns:
                distance = _distance(files, name, train, rows)
                if distance is not None:
                    found[name] = distance
            if found:
                worst = sorted(found, key=lambda name: -found[name])
                shown = ", ".join(f"`{name}` ({found[name]:.2f})" for name in worst[:_SHOWN])
                shown += f" and {len(worst) - _SHOWN} more" if len(worst) > _SHOWN else ""
                words = (
                    f"Rows of {split} are unlike those of train in {shown}; 0 is alike, 1 has nothing "
                    "in common."
                )
                yield Finding(kind="shift", tasks=files.tasks, words=words, share=found[worst[0]])


def shifted_labels(task: Task) -> Iterator[Finding]:
    """Splits whose classes are divided otherwise than in train."""
    if task.kind != "classification" or "train" not in task.splits:
        return
    counts = {
        split: count_classes(rows.targets, len(task.labels)) for split, rows in task.splits.items()
    }
    train = counts["train"]
    for split in ("dev", "test"):
        if split in task.splits:
            other = counts[split]
            distance = _variation(train, other)
            if distance is not None:
                change = np.abs(_shares(train) - _shares(other))
                place = int(np.argmax(change.round(9)))
                words = (
                    f"Task `{task.name}` has other shares of its classes in {split} than in train: "
                    f"{task.labels[place]!r} has {_shares(train)[place]:.0%} of train and "
                    f"{_shares(other)[place]:.0%} of {split}."
                )
                yield Finding(kind="shift", tasks=(task.name,), words=words, share=distance)


def _distance(
    files: SeenFiles, name: str, train: NDArray[np.int64], rows: NDArray[np.int64]
) -> float | None:
    if role_of(files.stack, name).kind == "constant":
        return None
    dates = dates_of(files.stack, name)
    cells = files.stack.column(name) if dates is None else dates.days
    ours, theirs = cells.take(pa.array(train)), cells.take(pa.array(rows))
    if cell_family(cells.type) == "number":
        return _largest_difference(_numbers(ours), _numbers(theirs))
    both = pa.chunked_array([*ours.cast(pa.string()).chunks, *theirs.cast(pa.string()).chunks])
    encoded = both.combine_chunks().dictionary_encode()
    if len(encoded.dictionary) > _MOST_WORDS:
        return None
    codes = np.asarray(encoded.indices.fill_null(len(encoded.dictionary)).to_numpy())
    size = len(encoded.dictionary) + 1
    return _variation(
        np.bincount(codes[: len(ours)], minlength=size),
        np.bincount(codes[len(ours) :], minlength=size),
    )


def _largest_difference(ours: NDArray[np.float64], theirs: NDArray[np.float64]) -> float | None:
    if min(len(ours), len(theirs)) < FEWEST_ROWS:
        return None
    every = np.concatenate((ours, theirs))
    below = [
        np.searchsorted(np.sort(each), every, side="right") / len(each) for each in (ours, theirs)
    ]
    distance = float(np.abs(below[0] - below[1]).max())
    chance = _BY_CHANCE * np.sqrt(1 / len(ours) + 1 / len(theirs))
    return distance if distance >= FAR + chance else None


def _variation(ours: NDArray[np.int64], theirs: NDArray[np.int64]) -> float | None:
    if min(ours.sum(), theirs.sum()) < FEWEST_ROWS:
        return None
    pooled = _shares(ours + theirs)
    # The mean of |x| for a normal x with this variance, class by class.
    spread = pooled * (1 - pooled) * (1 / ours.sum() + 1 / theirs.sum())
    chance = 0.5 * float(np.sqrt(2 / np.pi * spread).sum())
    distance = 0.5 * float(np.abs(_shares(ours) - _shares(theirs)).sum())
    return distance if distance >= FAR + 2 * chance else None


def _shares(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.asarray(counts / max(counts.sum(), 1), dtype=np.float64)


def _numbers(cells: pa.ChunkedArray) -> NDArray[np.float64]:
    values = cells.cast(pa.float64(), safe=False).to_numpy()
    return np.asarray(values[np.isfinite(values)], dtype=np.float64)


def _some(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    step = -(-len(rows) // _MOST_ROWS) or 1
    return rows[::step]
