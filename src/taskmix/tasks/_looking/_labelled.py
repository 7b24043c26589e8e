"""The labels of the rows that a task trains on, one for each different input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taskmix.tasks._looking._row_keys import Keys, RowKeys, column_keys, group_keys, target_keys
from taskmix.tasks._reading import WITHOUT_TARGETS
from taskmix.tasks._task import MISSING, Split, Task


@dataclass(frozen=True, eq=False)
class Labelled:
    """Inputs with a label; those that occur several times once."""

    keys: Keys  # [input], in their order
    first: NDArray[np.int64]  # [input], the first row of train that has it
    contradicted: NDArray[np.bool_]  # [input], whether it has different labels
    rows: NDArray[np.int64]  # [labelled row], their places in train
    inputs: NDArray[np.int64]  # [labelled row], into `keys`


def labelled(task: Task, keys: RowKeys) -> Labelled:
    """The inputs to train on that have a label."""
    train = task.splits["train"]
    labels, known = row_labels(task, train)
    rows = np.flatnonzero(known)
    own, labels = keys(train)[rows], labels[rows]
    found, first, inputs = np.unique(own, return_index=True, return_inverse=True)
    contradicted = np.zeros(len(found), dtype=np.bool_)
    contradicted[inputs[labels != labels[first][inputs]]] = True
    return Labelled(found, rows[first], contradicted, rows, inputs)


def row_labels(task: Task, split: Split) -> tuple[Keys, NDArray[np.bool_]]:
    """[row], a key for the label, of a sentence for all of its tags; and whether there is one."""
    nothing = np.zeros(len(split), dtype=np.uint64)
    if task.kind == "generation":
        answers = column_keys(split.inputs.column("answer"))
        return answers, np.ones(len(split), dtype=np.bool_)
    if task.kind in WITHOUT_TARGETS:
        return nothing, np.zeros(len(split), dtype=np.bool_)
    targets: NDArray[Any] = np.asarray(split.targets)
    if task.kind == "tagging":
        lengths = token_counts(split)
        return group_keys(target_keys(targets), lengths), np.ones(len(split), dtype=np.bool_)
    flat = targets.reshape(len(targets), -1)
    missing = np.isnan(flat) if flat.dtype.kind == "f" else flat == MISSING
    return target_keys(targets), ~missing.all(axis=1) if len(flat) else np.zeros(0, np.bool_)


def token_counts(split: Split) -> NDArray[np.int64]:
    """[row], how many words a sentence has."""
    lists = split.inputs.column("tokens").combine_chunks()
    return np.asarray(lists.value_lengths().to_numpy(zero_copy_only=False), dtype=np.int64)
