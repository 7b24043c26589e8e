"""What is wrong with the rows of a task: doubles, contradictions, classes that are too rare to learn.

If the same input has different labels, no model can be right on all of its rows: with the commonest
label of each input it is right on some share of the rows, which is the accuracy that nothing exceeds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from taskmix.tasks._looking import Finding, RowKeys, labelled
from taskmix.tasks._task import MISSING, Task

FEWEST_OF_CLASS = 3  # rows to train on: with fewer, one cannot be told from a slip
MANY_DOUBLES = 0.05  # of the rows: from here on they count as many rows and say as little as one
_NAMED = 3  # classes
Where = Callable[[str, str, int], str | None]  # of a task, a split and a row, where it stands


def look_at_rows(task: Task, keys: RowKeys, where: Where) -> Iterator[Finding]:
    """What advice does not look for."""
    train = task.splits.get("train")
    if train is None or not len(train) or task.kind == "sequences":
        return
    yield from _doubles(task, keys, where)
    if task.kind == "classification":
        yield from _contradictions(task, keys, where)
        yield from _rare(task)


def _doubles(task: Task, keys: RowKeys, where: Where) -> Iterator[Finding]:
    for name, split in task.splits.items():
        rows = keys(split)
        more = len(rows) - len(keys.distinct(split))
        if not more:
            continue
        share = more / len(rows)
        order = np.argsort(rows, kind="stable")
        same = order[:-1][rows[order[1:]] == rows[order[:-1]]]
        first = int(same.min())
        second = int(np.flatnonzero(rows == rows[first])[1])
        words = (
            f"Task `{task.name}` has {more:,} of its {len(rows):,} {name} rows ({share:.1%}) more than "
            f"once{_named(where, task.name, name, first, second)}."
        )
        yield Finding(
            kind="duplicates",
            tasks=(task.name,),
            words=words,
            share=share,
            is_warning=share >= MANY_DOUBLES,
        )


def _named(where: Where, task: str, split: str, first: int, second: int) -> str:
    places = [where(task, split, row) for row in (first, second)]
    if None in places:
        return ""
    return f"; the first is {places[0]}, again in {places[1]}"


def _contradictions(task: Task, keys: RowKeys, where: Where) -> Iterator[Finding]:
    known = labelled(task, keys)
    against = int(known.contradicted.sum())
    if not against:
        return
    targets = np.asarray(task.splits["train"].targets).astype(np.int64)
    pairs, counts = np.unique(
        known.inputs.astype(np.int64) * len(task.labels) + targets[known.rows], return_counts=True
    )
    best = np.zeros(len(known.keys), dtype=np.int64)
    np.maximum.at(best, pairs // len(task.labels), counts)
    bound = np.floor(1000 * best.sum() / len(known.rows)) / 1000
    first = int(known.first[known.contradicted].min())
    same = known.inputs[np.flatnonzero(known.rows == first)[0]]
    others = known.rows[known.inputs == same]
    second = int(others[targets[others] != targets[first]][0])
    places = [where(task.name, "train", row) for row in (first, second)]
    shown = ""
    if None not in places:
        one, other = (task.labels[targets[row]] for row in (first, second))
        shown = f", as {one!r} in {places[0]} and {other!r} in {places[1]}"
    inputs = "1 input that occurs" if against == 1 else f"{against:,} inputs that occur"
    words = (
        f"Task `{task.name}` has {inputs} with different labels in training{shown}: accuracy on these "
        f"rows cannot exceed {bound:.3f}."
    )
    yield Finding(
        kind="contradiction", tasks=(task.name,), words=words, share=against / len(known.keys)
    )


def _rare(task: Task) -> Iterator[Finding]:
    def counts(split: str) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        targets = np.asarray(task.splits[split].targets)
        return np.bincount(targets[targets != MISSING].astype(np.int64), minlength=len(task.labels))

    train = counts("train")
    few = [label for label, n in zip(task.labels, train, strict=True) if n < FEWEST_OF_CLASS]
    if few:
        words = (
            f"Task `{task.name}` has {len(few)} of {len(task.labels)} classes with fewer than "
            f"{FEWEST_OF_CLASS} rows to train on: {_some(few)}."
        )
        yield Finding(kind="few of a class", tasks=(task.name,), words=words)
    if "dev" in task.splits and len(task.splits["dev"]):
        in_dev = counts("dev")
        absent = [
            label
            for label, n, have in zip(task.labels, train, in_dev, strict=True)
            if n and not have
        ]
        if absent:
            words = (
                f"Task `{task.name}` has {len(absent)} of {len(task.labels)} classes that no dev row "
                f"has, so ways of training are not compared on them: {_some(absent)}."
            )
            few_rows = len(absent) <= 0.1 * len(task.labels)
            yield Finding(
                kind="missing from dev", tasks=(task.name,), words=words, is_warning=not few_rows
            )


def _some(labels: list[str]) -> str:
    shown = ", ".join(
        label if len(label) <= 40 else f"{label[:37]}..." for label in labels[:_NAMED]
    )
    return shown + (f" and {len(labels) - _NAMED} more" if len(labels) > _NAMED else "")
