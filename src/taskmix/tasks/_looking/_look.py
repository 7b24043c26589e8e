"""Looks at tasks before anything is trained: what in the data would spoil what is learned from it.

A finding is a sentence for the user and a kind for code. Rows are compared by what they say
(`_row_keys.py`), so a text that occurs in two splits or in two tasks is found wherever it stands.

A task may be another's copy, and its test rows such that another trains on. All keys of all tables are
sorted once, each with the tables that have it. A task is compared with those that hold its labels under
other names, and with the first few of those that share most of its inputs: the work grows with the
rows, however many tasks share them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from taskmix.tasks._looking._leaks import find_leak
from taskmix.tasks._row_keys import (
    Keys,
    Labelled,
    RowKeys,
    labelled,
    row_labels,
    target_keys,
    token_counts,
)
from taskmix.tasks._scoring._metrics import count_classes, metric_of_imbalance
from taskmix.tasks._task import MISSING, Split, Task, TaskSet

FEW_ROWS = 100  # to train on: with fewer, seeds differ more than ways of training
RARE_SHARE = 0.02  # of the rows to train on: a smaller class is named as rare
Places = NDArray[np.int64]
COMMON_SHARE = 0.5  # of the smaller task's inputs: from here on two tasks may be one
SAME_AGREEMENT = 0.9  # of the labels' information: from here on they are
MOST_NEIGHBOURS = (
    4  # of the tasks that share an input, the first so many are compared with the others
)
MOST_COMPARED = 50_000  # common inputs whose labels are compared, evenly over all
MOST_ALIKE = 3  # findings of one kind, the worst; with more, one says how many there are

FindingKind = Literal[
    "seen in training",
    "seen in another task",
    "same task twice",
    "same inputs",
    "contradiction",
    "one class",
    "rare class",
    "imbalance",
    "leak",
    "few rows",
    "no dev rows",
    # Only `check_tasks` says these: they are about the files, and change no advice.
    "duplicates",
    "few of a class",
    "missing from dev",
    "joined labels",
    "like names",
    "telling id",
    "constant column",
    "empty column",
    "many categories",
    "missing cells",
    "empty texts",
    "long texts",
    "shift",
]


def look_at(
    tasks: TaskSet, keys: RowKeys | None = None, *, stop: Callable[[], bool] = lambda: False
) -> tuple[Finding, ...]:
    """Everything found, task by task and then pair by pair, until `stop` says so.

    >>> import pyarrow as pa
    >>> rows = pa.table({"x": [0.5, 1.5, 3.0], "label": ["no", "yes", "yes"]})
    >>> tasks = tables_as_tasks({"a": {"train": rows, "dev": rows}})
    >>> [finding.kind for finding in look_at(tasks)]
    ['few rows', 'seen in training']
    """
    keys = RowKeys() if keys is None else keys
    found: list[Finding] = []
    for task in tasks:
        found += () if stop() else _within(task, keys)
    found += () if stop() else between(tasks, keys)
    return tuple(join_alike(found))


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
    counts = count_classes(train.targets, len(task.labels))
    named = f"Task `{task.name}`"
    if (counts > 0).sum() < 2:
        words = f"{named} has one class only among its rows to train on: nothing can be learned."
        yield Finding(kind="one class", tasks=(task.name,), words=words)
        return
    least = RARE_SHARE * counts.sum()
    rare = [label for label, count in zip(task.labels, counts, strict=True) if count < least]
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


def between(tasks: TaskSet, keys: RowKeys) -> list[Finding]:
    """What is found in tasks of one kind of input: pairs of them, and test rows that others have."""
    found: list[Finding] = []
    usable = [task for task in tasks if task.kind != "sequences" and task.size]
    for inputs in dict.fromkeys(task.inputs for task in usable):
        alike = [task for task in usable if task.inputs == inputs]
        if len(alike) > 1:
            known = [labelled(task, keys) for task in alike]
            for a, b in _pairs(alike, known):
                found += _same_task(alike[a], alike[b], known[a], known[b])
            found += _seen_elsewhere(alike, keys)
    return found


def _owners(tables: Sequence[Keys]) -> tuple[Keys, Places, Places, Places]:
    """All keys in their order; where the tables that have each begin, and how many; the tables."""
    every = np.concatenate(tables)
    order = np.argsort(every, kind="stable")
    found, starts, counts = np.unique(every[order], return_index=True, return_counts=True)
    numbers = np.repeat(np.arange(len(tables)), [len(each) for each in tables])
    return found, starts, counts, numbers[order]


def _pairs(tasks: Sequence[Task], known: Sequence[Labelled]) -> list[tuple[int, int]]:
    """Places of tasks that may be one, or share half of their inputs."""
    pairs = set()
    first: dict[tuple[bytes, bytes], int] = {}
    for place, (task, its) in enumerate(zip(tasks, known, strict=True)):
        twin = first.setdefault((its.keys.tobytes(), _pattern(task, its)), place)
        if twin != place:
            pairs.add((twin, place))
    _, starts, counts, owners = _owners([each.keys for each in known])
    begin, have = np.repeat(starts, counts), np.repeat(counts, counts)
    common = Counter[int]()
    for number in range(MOST_NEIGHBOURS):
        several = have > number
        one, other = owners[begin[several] + number], owners[several]
        found, sizes = np.unique((one * len(tasks) + other)[one < other], return_counts=True)
        common.update(dict(zip(found.tolist(), sizes.tolist(), strict=True)))
    for pair, count in common.items():
        a, b = divmod(pair, len(tasks))
        if count >= COMMON_SHARE * min(len(known[a].keys), len(known[b].keys)):
            pairs.add((a, b))
    return sorted(pairs)


def _pattern(task: Task, known: Labelled) -> bytes:
    """Equal for the same labels of the same inputs, whatever the labels are called."""
    _, first, codes = np.unique(_values(task, known.first), return_index=True, return_inverse=True)
    ranks = codes if task.kind == "regression" else np.argsort(np.argsort(first))[codes]
    return ranks.tobytes()


def _seen_elsewhere(tasks: Sequence[Task], keys: RowKeys) -> Iterator[Finding]:
    """Test rows that another task trains on; columns of labels of one table train on the same."""
    first: dict[int, Task] = {}
    for task in tasks:
        first.setdefault(id(task.splits["train"].inputs), task)
    tables = {table: number for number, table in enumerate(first)}
    names = [task.name for task in first.values()]
    known, starts, counts, owners = _owners(
        [keys.distinct(t.splits["train"]) for t in first.values()]
    )
    for task in tasks:
        if "test" not in task.splits or not len(task.splits["test"]):
            continue
        own, rows = tables[id(task.splits["train"].inputs)], keys(task.splits["test"])
        places = np.minimum(np.searchsorted(known, rows), len(known) - 1)
        places = places[known[places] == rows]
        one, last = owners[starts[places]], owners[starts[places] + counts[places] - 1]
        others = np.where(one == own, last, one)
        others = others[others != own]
        if len(others):
            share, other = len(others) / len(rows), names[np.bincount(others).argmax()]
            is_one = (others == others[0]).all()
            whose = f"`{other}` trains on" if is_one else f"`{other}` and other tasks train on"
            words = f"Task `{task.name}` has {share:.1%} of its test rows among those {whose}."
            both = (task.name, other)
            yield Finding(kind="seen in another task", tasks=both, words=words, share=share)


def _same_task(a: Task, b: Task, ours: Labelled, theirs: Labelled) -> Iterator[Finding]:
    common, mine, other = np.intersect1d(
        ours.keys, theirs.keys, assume_unique=True, return_indices=True
    )
    share = len(common) / max(min(len(ours.keys), len(theirs.keys)), 1)
    if share < COMMON_SHARE:
        return
    step = max(len(common) // MOST_COMPARED, 1)
    rows = ours.first[mine][::step], theirs.first[other][::step]
    same = a.kind == b.kind and len(common) >= 2 and _agreement(a, b, *rows) >= SAME_AGREEMENT
    both = (a.name, b.name)
    if same:
        words = f"Tasks `{a.name}` and `{b.name}` are one: {share:.0%} of the rows, labels and all."
        yield Finding(kind="same task twice", tasks=both, words=words, share=share)
    elif a.splits["train"].inputs is not b.splits["train"].inputs:  # two columns of one table
        words = f"Tasks `{a.name}` and `{b.name}` have {share:.0%} of their inputs in common."
        yield Finding(kind="same inputs", tasks=both, words=words, share=share, is_warning=False)


def _agreement(a: Task, b: Task, ours: NDArray[np.int64], theirs: NDArray[np.int64]) -> float:
    """Of the labels of these rows: from 0, nothing in common, to 1, the same up to their names."""
    left, right = _values(a, ours), _values(b, theirs)
    if a.kind == "regression":
        if left.std() == 0 or right.std() == 0:
            return float(np.array_equal(left, right))
        return float(np.corrcoef(left, right)[0, 1] ** 2)
    from sklearn.metrics import adjusted_mutual_info_score

    numbers = [np.unique(each, return_inverse=True)[1] for each in (left, right)]
    if max(len(np.unique(each)) for each in numbers) < 2:
        return 0.0  # one class each: nothing to compare
    return float(adjusted_mutual_info_score(*numbers))


def _values(task: Task, rows: NDArray[np.int64]) -> NDArray[Any]:
    """What these rows of train have as labels; of sentences, tag by tag."""
    train = task.splits["train"]
    if task.kind == "generation":
        return row_labels(task, train)[0][rows]
    targets: NDArray[Any] = np.asarray(train.targets)
    if task.kind == "tagging":
        lengths = token_counts(train)
        starts = np.cumsum(lengths) - lengths
        sizes = lengths[rows]
        ends = np.cumsum(sizes)
        tokens = np.arange(sizes.sum()) + np.repeat(starts[rows] - (ends - sizes), sizes)
        return np.asarray(targets[tokens])
    return targets[rows] if targets.ndim == 1 else target_keys(targets[rows])


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Something a user should know of the data."""

    kind: FindingKind
    tasks: tuple[str, ...]
    words: str
    share: float = float("nan")  # of the rows concerned, where that says something
    is_warning: bool = True  # whether results may mislead because of it


def join_alike(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Those of each kind together, the worst first; many become one that names the first few."""
    kinds: dict[tuple[FindingKind, bool], list[Finding]] = {}
    for each in findings:
        kinds.setdefault((each.kind, each.is_warning), []).append(each)
    for alike in kinds.values():
        alike.sort(key=lambda each: -each.share if each.share == each.share else 0.0)
        if len(alike) <= MOST_ALIKE:
            yield from alike
            continue
        tasks = tuple(dict.fromkeys(name for each in alike for name in each.tasks))
        several = f"{len(tasks):,} tasks are" if len(tasks) > 1 else f"{len(alike):,} columns are"
        named = " ".join(each.words for each in alike[:MOST_ALIKE])
        yield replace(alike[0], tasks=tasks, words=f"{named} In all, {several} like this.")
