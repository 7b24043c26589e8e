"""Looks at tasks before anything is trained: what in the data would spoil what is learned from it.

A finding is a sentence for the user and a kind for code. Rows are compared by what they say, so a text
that occurs in two splits or in two tasks is found wherever it stands.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from taskmix.adviser._leaks import find_leak
from taskmix.tasks import MISSING, Split, Task, TaskSet, metric_of_imbalance

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
]

FEW_ROWS = 100  # to train on: with fewer, seeds differ more than ways of training
RARE_SHARE = 0.02  # of the rows to train on: a smaller class is named as rare
COMMON_SHARE = 0.5  # of the smaller task's inputs: from here on two tasks may be one
SAME_AGREEMENT = 0.9  # of the labels' information: from here on they are


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Something a user should know of the data."""

    kind: FindingKind
    tasks: tuple[str, ...]
    words: str
    share: float = float("nan")  # of the rows concerned, where that says something
    is_warning: bool = True  # whether results may mislead because of it


def look_at(tasks: TaskSet) -> tuple[Finding, ...]:
    """Everything found, task by task and then pair by pair."""
    keys = _Keys()
    found = [finding for task in tasks for finding in _within(task, keys)]
    found += [finding for a, b in combinations(tasks, 2) for finding in _between(a, b, keys)]
    return tuple(found)


class _Keys:
    """The rows of tables as values that can be compared; tables that tasks share are read once."""

    def __init__(self) -> None:
        self._known: dict[int, list[Hashable]] = {}
        self._distinct: dict[int, set[Hashable]] = {}
        self._labels: dict[str, Mapping[Hashable, list[Hashable]]] = {}

    def __call__(self, split: Split) -> list[Hashable]:
        place = id(split.inputs)
        if place not in self._known:
            # An answer is what is to be learned, and not a part of the row that is asked.
            asked = [name for name in split.inputs.column_names if name != "answer"]
            if "prompt" not in asked:
                asked = split.inputs.column_names
            columns = [split.inputs.column(name).to_pylist() for name in asked]
            rows = zip(*columns, strict=True) if len(columns) > 1 else columns[0]
            self._known[place] = [_frozen(row) for row in rows]
        return self._known[place]

    def distinct(self, split: Split) -> set[Hashable]:
        """The rows without repetition."""
        place = id(split.inputs)
        if place not in self._distinct:
            self._distinct[place] = set(self(split))
        return self._distinct[place]

    def labelled(self, task: Task) -> Mapping[Hashable, list[Hashable]]:
        """The labels of each input to train on; of a sentence, all of its tags as one."""
        if task.name not in self._labels:
            found: dict[Hashable, list[Hashable]] = {}
            train = task.splits["train"]
            for key, label in zip(self(train), _labels(task, train), strict=True):
                if label is not None:
                    found.setdefault(key, []).append(label)
            self._labels[task.name] = found
        return self._labels[task.name]


def _frozen(value: Any) -> Hashable:
    """Lists and messages as tuples; a number that is none as a word, since NaN equals nothing."""
    if isinstance(value, dict):
        return tuple(_frozen(part) for part in value.items())
    if isinstance(value, list | tuple):
        return tuple(_frozen(part) for part in value)
    if isinstance(value, float) and value != value:
        return "NaN"
    return value  # type: ignore[no-any-return]


def _within(task: Task, keys: _Keys) -> Iterator[Finding]:
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
    seen = keys.distinct(train)
    for name in ("dev", "test"):
        split = task.splits.get(name)
        if split is not None and len(split):
            share = float(np.mean([key in seen for key in keys(split)]))
            if share > 0:
                words = (
                    f"{named} has {share:.1%} of its {name} rows among those to train on: its "
                    f"{name} score flatters."
                )
                yield Finding(kind="seen in training", tasks=(task.name,), words=words, share=share)
    labels = keys.labelled(task)
    against = sum(len(set(each)) > 1 for each in labels.values())
    if task.kind == "classification" and against:
        share = against / len(labels)
        words = f"{named} has {against} inputs that occur with different labels in training."
        yield Finding(kind="contradiction", tasks=(task.name,), words=words, share=share)


def _classes(task: Task, train: Split) -> Iterator[Finding]:
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


def _labels(task: Task, split: Split) -> Sequence[Hashable | None]:
    """One a row; None where there is none."""
    targets = split.targets
    if task.kind == "generation":
        answers: list[str] = split.inputs.column("answer").to_pylist()
        return answers
    if task.kind == "language":
        return [None] * len(split)
    if task.kind == "tagging":
        lengths = [len(words) for words in split.inputs.column("tokens").to_pylist()]
        ends = np.cumsum(lengths)
        return [tuple(part.tolist()) for part in np.split(targets, ends[:-1])]
    if task.kind == "regression":
        return [None if value != value else value for value in targets.tolist()]
    return [None if value == MISSING else value for value in targets.tolist()]


def _between(a: Task, b: Task, keys: _Keys) -> Iterator[Finding]:
    if a.inputs != b.inputs or "sequences" in (a.kind, b.kind) or not (a.size and b.size):
        return
    yield from _same_task(a, b, keys)
    for one, other in ((a, b), (b, a)):
        test = one.splits.get("test")
        if test is None or not len(test) or _share_inputs(one, other):
            continue
        seen = keys.distinct(other.splits["train"])
        share = float(np.mean([key in seen for key in keys(test)]))
        if share > 0:
            words = (
                f"Task `{one.name}` has {share:.1%} of its test rows among those `{other.name}` "
                "trains on."
            )
            yield Finding(
                kind="seen in another task", tasks=(one.name, other.name), words=words, share=share
            )


def _share_inputs(a: Task, b: Task) -> bool:
    """Whether the two are columns of labels of one table: what one trains on the other does too."""
    return a.splits["train"].inputs is b.splits["train"].inputs


def _same_task(a: Task, b: Task, keys: _Keys) -> Iterator[Finding]:
    ours, theirs = keys.labelled(a), keys.labelled(b)
    common = [key for key in ours if key in theirs]
    share = len(common) / max(min(len(ours), len(theirs)), 1)
    if share < COMMON_SHARE:
        return
    same = (
        a.kind == b.kind
        and len(common) >= 2
        and _agreement(a.kind, [ours[k][0] for k in common], [theirs[k][0] for k in common])
        >= SAME_AGREEMENT
    )
    both = (a.name, b.name)
    if same:
        words = f"Tasks `{a.name}` and `{b.name}` are one: {share:.0%} of the rows, labels and all."
        yield Finding(kind="same task twice", tasks=both, words=words, share=share)
    elif not _share_inputs(a, b):
        words = f"Tasks `{a.name}` and `{b.name}` have {share:.0%} of their inputs in common."
        yield Finding(kind="same inputs", tasks=both, words=words, share=share, is_warning=False)


def _agreement(kind: str, ours: list[Any], theirs: list[Any]) -> float:
    """From 0, nothing in common, to 1, the same up to the labels' names."""
    if kind == "regression":
        a, b = np.asarray(ours, dtype=np.float64), np.asarray(theirs, dtype=np.float64)
        if a.std() == 0 or b.std() == 0:
            return float(np.array_equal(a, b))
        return float(np.corrcoef(a, b)[0, 1] ** 2)
    from sklearn.metrics import adjusted_mutual_info_score

    if kind == "tagging":
        ours = [tag for tags in ours for tag in tags]
        theirs = [tag for tags in theirs for tag in tags]
    numbers: list[NDArray[np.int64]] = [
        np.unique(each, return_inverse=True)[1] for each in (ours, theirs)
    ]
    if max(len(set(each.tolist())) for each in numbers) < 2:
        return 0.0  # one class each: nothing to compare
    return float(adjusted_mutual_info_score(*numbers))
