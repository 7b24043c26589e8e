"""Some rows of tasks that have more than can be read."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from taskmix.tasks._kept import JOINED
from taskmix.tasks._task import Split, Task, TaskSet


def sample_rows(
    tasks: TaskSet,
    most: Mapping[str, int],  # rows by the name of a split; a split without a number stays whole
    *,
    seed: int = 0,
) -> TaskSet:
    """At most so many rows of each task's splits, drawn evenly, in their order.

    Tasks of one source get the same rows of it.

    >>> from taskmix.tasks import digits_tasks
    >>> few = sample_rows(digits_tasks(), {"train": 100})
    >>> few["parity"].sizes
    {'train': 100, 'dev': 400, 'test': 497}
    """
    taken: dict[int, pa.Table] = {}

    def sampled(task: Task, name: str, split: Split) -> Split:
        if name not in most or len(split) <= most[name]:
            return split
        word = repr((seed, task.source, name)).encode()
        generator = np.random.default_rng(
            int.from_bytes(hashlib.sha256(word).digest()[:8], "little")
        )
        rows = np.sort(generator.permutation(len(split))[: most[name]])
        key = id(split.inputs)
        if key not in taken:
            taken[key] = split.inputs.take(pa.array(rows))
        return replace(split, inputs=taken[key], targets=_targets(task, split, rows))

    return replace(
        tasks,
        tasks=tuple(
            replace(task, splits={name: sampled(task, name, s) for name, s in task.splits.items()})
            for task in tasks
        ),
        _content=[],
    )


def _targets(task: Task, split: Split, rows: NDArray[np.int64]) -> NDArray[np.generic]:
    if len(split.targets) == 0:  # the answer is in the inputs
        return split.targets
    if task.kind != "tagging":
        return split.targets[rows]
    lengths = np.array([len(words) for words in split.inputs.column("tokens").to_pylist()])
    kept = np.zeros(len(lengths), dtype=np.bool_)
    kept[rows] = True
    return split.targets[np.repeat(kept, lengths)]


def train_on_dev(tasks: TaskSet) -> TaskSet:
    """The tasks with their dev rows among those to train on, and no dev rows left to choose by.

    Tasks that shared their rows still do.

    >>> train_on_dev(digits_tasks())["parity"].sizes
    {'train': 700, 'test': 497}
    """
    tables: dict[tuple[int, int], pa.Table] = {}

    def joined(train: Split, dev: Split) -> Split:
        parts = (train.inputs, dev.inputs)
        key = (id(parts[0]), id(parts[1]))
        if key not in tables:
            tables[key] = pa.concat_tables(parts, promote_options="default")
            JOINED.put(tables[key], None, parts)
        return Split(tables[key], np.concatenate([train.targets, dev.targets]))

    def of(task: Task) -> Task:
        splits = {name: split for name, split in task.splits.items() if name != "dev"}
        if "dev" in task.splits and "train" in splits:
            splits["train"] = joined(splits["train"], task.splits["dev"])
        return replace(task, splits=splits)

    return TaskSet(tuple(of(task) for task in tasks), tasks.notes)
