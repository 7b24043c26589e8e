"""Looks at tasks before anything is trained: what in the data would spoil what is learned from it.

A finding is a sentence for the user and a kind for code. Rows are compared by what they say
(`_row_keys.py`), so a text that occurs in two splits or in two tasks is found wherever it stands.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from taskmix.tasks._looking._between import between
from taskmix.tasks._looking._finding import Finding
from taskmix.tasks._looking._labelled import labelled
from taskmix.tasks._looking._leaks import find_leak
from taskmix.tasks._looking._row_keys import RowKeys
from taskmix.tasks._scoring import metric_of_imbalance
from taskmix.tasks._task import MISSING, Split, Task, TaskSet

FEW_ROWS = 100  # to train on: with fewer, seeds differ more than ways of training
RARE_SHARE = 0.02  # of the rows to train on: a smaller class is named as rare


def look_at(tasks: TaskSet, keys: RowKeys | None = None) -> tuple[Finding, ...]:
    """Everything found, task by task and then pair by pair.

    >>> import pyarrow as pa
    >>> rows = pa.table({"x": [0.5, 1.5, 3.0], "label": ["no", "yes", "yes"]})
    >>> tasks = tables_as_tasks({"a": {"train": rows, "dev": rows}})
    >>> [finding.kind for finding in look_at(tasks)]
    ['few rows', 'seen in training']
    """
    keys = RowKeys() if keys is None else keys
    found = [finding for task in tasks for finding in _within(task, keys)]
    found += between(tasks, keys)
    return tuple(found)


def _within(task: Task, keys: RowKeys) -> Iterator[Finding]:
    named = f"Task `{task.name}`"
    train = task.splits.get("train")
    if train is None or not len(train):
        return
    if "dev" not in task.splits or not len(task.splits["dev"]):
        words = f"{named} has no dev rows, so nothing can be chosen by how well it does."
        yield Finding(kind="no dev rows", tasks=(task.name,), words=words)
    if len(train) < FEW_ROWS:
        words = f"{named} has only {len(train)} rows to train on."
        yield Finding(kind="few rows", tasks=(task.name,), words=words)
    yield from _classes(task, train)
    leak = find_leak(task)
    if leak is not None:
        words = (
            f"{named} has its labels in its inputs: {leak.where} tells {leak.share:.0%} of them, so its "
            "score says nothing of the task itself."
        )
        yield Finding(kind="leak", tasks=(task.name,), words=words, share=leak.share)
    for name in ("dev", "test"):
        split = task.splits.get(name)
        if split is not None and len(split):
            share = keys.share_of(split, train)
            if share > 0:
                words = (
                    f"{named} has {share:.1%} of its {name} rows among those to train on: its "
                    f"{name} score flatters."
                )
                yield Finding(kind="seen in training", tasks=(task.name,), words=words, share=share)
    if task.kind in ("classification", "multilabel"):
        known = labelled(task, keys)
        against = int(known.contradicted.sum())
        if against:
            share = against / len(known.keys)
            words = f"{named} has {against} inputs that occur with different labels in training."
            yield Finding(kind="contradiction", tasks=(task.name,), words=words, share=share)


def _classes(task: Task, train: Split) -> Iterator[Finding]:
    if task.kind == "multilabel":
        yield from _label_sets(task, train)
    if task.kind not in ("classification", "tagging"):
        return
    known = train.targets[train.targets != MISSING].astype(np.int64)
    counts = np.bincount(known, minlength=len(task.labels))
    named = f"Task `{task.name}`"
    if (counts > 0).sum() < 2:
        words = f"{named} has one class only among its rows to train on: nothing can be learned."
        yield Finding(kind="one class", tasks=(task.name,), words=words)
        return
    rare = [
        label
        for label, count in zip(task.labels, counts, strict=True)
        if count < RARE_SHARE * counts.sum()
    ]
    if rare and task.kind == "classification":
        shown = ", ".join(rare[:3]) + (" and others" if len(rare) > 3 else "")
        words = f"{named} has classes with under {RARE_SHARE:.0%} of its rows: {shown}."
        yield Finding(kind="rare class", tasks=(task.name,), words=words)
    targets = {name: split.targets for name, split in task.splits.items()}
    asked_for = metric_of_imbalance(task.labels, targets)
    if asked_for is not None and task.kind == "classification":
        constant = float(counts.max() / counts.sum())
        words = f"{named} is imbalanced: a constant answer has accuracy {constant:.2f}"
        words += f", so {asked_for} says more." if task.metric == "accuracy" else "."
        yield Finding(
            kind="imbalance",
            tasks=(task.name,),
            words=words,
            share=constant,
            is_warning=task.metric == "accuracy",
        )


def _label_sets(task: Task, train: Split) -> Iterator[Finding]:
    """Labels that all rows have, or none, and labels that few have."""
    rows = (train.targets != MISSING).sum(axis=0)
    having = (train.targets == 1).sum(axis=0)
    named = f"Task `{task.name}`"
    if not ((having > 0) & (having < rows)).any():
        words = f"{named} has the same labels in all rows to train on: nothing can be learned."
        yield Finding(kind="one class", tasks=(task.name,), words=words)
        return
    rare = [
        label
        for label, count, known in zip(task.labels, having, rows, strict=True)
        if count < RARE_SHARE * known
    ]
    if rare:
        shown = ", ".join(rare[:3]) + (" and others" if len(rare) > 3 else "")
        words = f"{named} has labels that under {RARE_SHARE:.0%} of its rows have: {shown}."
        yield Finding(kind="rare class", tasks=(task.name,), words=words)
