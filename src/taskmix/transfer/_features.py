"""What a task is like before anything is trained on it, as numbers that tasks can be compared by.

Three things of its rows to train on: the mean of its inputs, the labels, the number of rows. The mean
is that of the vectors of a pretrained model where one is named, and otherwise of words, hashed, of the
numbers of each column, in standard units, and of the categories of the others. Means are as long as a
text's vector, and tasks are few: only the main directions in which the known tasks differ are kept.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from taskmix.errors import InputError
from taskmix.tasks import MISSING, FeatureEncoding, Split, Task, TaskSet

ROWS = 500  # of a task, at most, evenly drawn
DIRECTIONS = 4  # fewer than there are tasks, or every known task is described exactly
TEXTS = ("text", "pair", "tokens")  # inputs that a pretrained model reads
HASHED = 1 << 12  # places of words and categories; two that share one are taken for each other


def task_features(
    known: Sequence[Task],
    new: Sequence[Task],
    *,
    model: str | None = None,
    on_progress: Callable[[int, int], None] | None = None,  # rows that the model has read, of all
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Features of known and of new tasks, [task, feature] both; `model` reads texts if it is given.

    >>> import pyarrow as pa
    >>> from taskmix.tasks import tables_as_tasks
    >>> rows = {"train": pa.table({"x": [0.5, 1.5, 3.0], "label": ["no", "yes", "yes"]})}
    >>> tasks = tables_as_tasks({name: rows for name in "abc"})
    >>> known, new = task_features(tasks[:2], tasks[2:])
    >>> known.shape[1] == new.shape[1], bool(np.allclose(known[0], new[0]))  # the same rows
    (True, True)
    """
    every = [_some_rows(task) for task in (*known, *new)]
    count = len(known)
    blocks = [_numbers(every, count), _words(every)]
    if model is not None:
        blocks.append(_vectors(every, model, on_progress))
    parts = []
    for block in blocks:
        away = block - block[:count].mean(axis=0)
        # A block counts as much as any other, however many columns it has.
        parts.append(away / (np.linalg.norm(away[:count]) or 1.0))
    labels = [_labels(task, rows.size) for task, rows in zip(every, (*known, *new), strict=True)]
    means = np.hstack(parts)
    axes = np.linalg.svd(means[:count], full_matrices=False)[2][: min(DIRECTIONS, count - 1)]
    found = np.hstack([means @ axes.T, np.array(labels)])
    return found[:count], found[count:]


def _some_rows(task: Task) -> Task:
    """The task with the rows that are looked at."""
    if "train" not in task.splits or not len(task.splits["train"]):
        raise InputError(
            f"Every task should have rows to train on, to be compared by. Found none in `{task.name}`. "
            "Give it a train file, or leave it out."
        )
    split = task.splits["train"]
    places = np.unique(np.linspace(0, len(split) - 1, ROWS).astype(int))
    # Targets of words are as many as words: the label statistics of tagging count those of all rows.
    targets = split.targets if len(split.targets) != len(split) else split.targets[places]
    taken = split.inputs.take(pa.array(places))
    if task.kind == "tagging":
        lengths = [len(words) for words in taken.column("tokens").to_pylist()]
        targets = np.resize(targets, sum(lengths))
    return replace(task, splits={"train": Split(taken, targets)})


def _numbers(tasks: Sequence[Task], known: int) -> NDArray[np.float64]:
    """[task, column], the mean of every column of numbers in standard units; 0 where there is none."""
    values: dict[str, list[NDArray[np.float64]]] = {}
    for place, task in enumerate(tasks):
        for name, column in _columns(task):
            if pa.types.is_floating(column.type) or pa.types.is_integer(column.type):
                rows = np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False))
                values.setdefault(name, [np.zeros(0)] * len(tasks))[place] = rows[np.isfinite(rows)]
    found = np.zeros((len(tasks), len(values)))
    for column_place, each in enumerate(values.values()):
        pooled = np.concatenate(each[:known])
        if not len(pooled) or pooled.std() == 0:
            continue
        for place, rows in enumerate(each):
            if len(rows):
                found[place, column_place] = (rows.mean() - pooled.mean()) / pooled.std()
    return found


def _words(tasks: Sequence[Task]) -> NDArray[np.float64]:
    """[task, place], the mean of the rows' hashed words and categories."""
    from sklearn.feature_extraction.text import HashingVectorizer

    hashing = HashingVectorizer(n_features=HASHED, analyzer=list, alternate_sign=False)
    return np.array(
        [np.asarray(hashing.transform(_words_of(task)).mean(axis=0)).ravel() for task in tasks]
    )


def _words_of(task: Task) -> list[list[str]]:
    """[row], the words of its texts, and its categories with their column."""
    found: list[list[str]] = [[] for _ in range(len(task.splits["train"]))]
    for name, column in _columns(task):
        if pa.types.is_floating(column.type) or pa.types.is_integer(column.type):
            continue
        for row, cell in zip(found, column.to_pylist(), strict=True):
            if cell is None:
                continue
            row += [f"{name}={cell}"] if task.inputs == "table" else _split(cell)
    return found


def _split(cell: Any) -> list[str]:
    if isinstance(cell, str):
        return cell.lower().split()
    if isinstance(cell, list) and all(isinstance(each, str) for each in cell):
        return [each.lower() for each in cell]
    return json.dumps(cell).lower().split()


def _vectors(
    tasks: Sequence[Task], model: str, on_progress: Callable[[int, int], None] | None
) -> NDArray[np.float64]:
    """[task, dimension], the mean of what a pretrained model reads; 0 for tasks without text."""
    pairs = any(task.inputs == "pair" for task in tasks)
    encoding = FeatureEncoding(path=model, as_pairs=pairs)
    means: list[NDArray[np.float64] | None] = []
    every = sum(task.size for task in tasks if task.inputs in TEXTS)
    before = 0  # rows of the tasks that have been read

    def tell(done: int, total: int) -> None:
        if on_progress is not None:
            on_progress(before + rows * done // total, every)

    for task in tasks:
        if task.inputs not in TEXTS:
            means.append(None)
            continue
        rows = task.size
        # One by one: two tasks of different folders may call their files alike.
        encoded = encoding.encode(TaskSet((task,)), on_progress=tell)[0].splits["train"]
        values: Any = getattr(encoded.inputs, "values")  # noqa: B009 - a protocol without it
        means.append(values.float().mean(dim=0).numpy())
        before += rows
    widths = [len(each) for each in means if each is not None]
    width = widths[0] if widths else 0
    return np.array([np.zeros(width) if each is None else each for each in means])


def _labels(task: Task, size: int) -> list[float]:
    """Rows, classes and how evenly they occur; what is learned is a number, or classes."""
    targets = task.splits["train"].targets
    rows = float(np.log(size))
    if task.kind == "multilabel":
        return [rows, float(np.log(max(len(task.labels), 1))), float((targets == 1).mean()), 0.0]
    if task.kind not in ("classification", "tagging"):
        return [rows, 0.0, 0.0, 1.0]
    counts = np.bincount(targets[targets != MISSING].astype(int), minlength=1)
    shares = counts[counts > 0] / max(counts.sum(), 1)
    even = float(-(shares * np.log(shares)).sum())
    return [rows, float(np.log(max(len(task.labels), 1))), even, 0.0]


def _columns(task: Task) -> Iterator[tuple[str, pa.Array]]:
    table = task.splits["train"].inputs
    for name in table.column_names:
        yield name, table.column(name).combine_chunks()
